"""The checker is one small package that stands alone: what it imports, and how long it is."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

import goldstein.checker

FOLDER = Path(goldstein.checker.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))

#: The claims about constrained problems, and what only they need.
CONSTRAINED = {"box.py", "constraints.py", "kkt.py", "near_kkt.py"}

#: Claims about f plus a convex term, and what only they need.
TERMS = {"fenchel.py"}

#: Lines of code (neither blank, nor comment, nor docstring) for claims without constraints, and
#: for those with them, and for convex terms.
CEILING, CONSTRAINED_CEILING, TERMS_CEILING = 2000, 710, 130

ALLOWED = {"numpy", "numpy.typing", "scipy.sparse", "flint"}


def imported(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            module = node.module or ""
            whole = module in ("scipy", "goldstein")
            found |= {f"{module}.{n.name}" for n in node.names} if whole else {module}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            found.add(ast.literal_eval(node.args[0]))
    return found


def lines_of_code(path: Path) -> int:
    source = path.read_text()
    prose: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            prose.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    skipped = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENDMARKER,
    }  # fmt: skip
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - prose)


def test_it_imports_nothing_but_numbers() -> None:
    for path in FILES:
        for module in imported(path):
            root = module.partition(".")[0]
            own = module == "goldstein.checker" or module.startswith("goldstein.checker.")
            assert own or module in ALLOWED or root in sys.stdlib_module_names, (path, module)


def test_it_stays_below_its_ceiling() -> None:
    lines = {path.name: lines_of_code(path) for path in FILES}
    constrained = sum(lines[name] for name in CONSTRAINED)
    terms = sum(lines[name] for name in TERMS)
    assert sum(lines.values()) - constrained - terms <= CEILING
    assert constrained <= CONSTRAINED_CEILING
    assert terms <= TERMS_CEILING


def test_claims_without_constraints_need_nothing_of_those_with_them() -> None:
    modules = {f"goldstein.checker.{Path(name).stem}" for name in CONSTRAINED}
    for path in FILES:
        assert path.name in CONSTRAINED or not imported(path) & modules, path.name
        assert path.name in TERMS or "goldstein.checker.fenchel" not in imported(path), path.name


def test_no_function_is_hard_to_follow() -> None:
    """Branches per function, as McCabe counts them."""
    branching = ast.If | ast.For | ast.While | ast.ExceptHandler
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                count = 1 + sum(isinstance(part, branching) for part in ast.walk(node))
                assert count <= 12, (path.name, node.name, count)


def test_the_readme_names_every_file() -> None:
    text = (FOLDER / "README.md").read_text()
    for path in FILES:
        assert path.name == "__init__.py" or f"`{path.name}`" in text, path.name
