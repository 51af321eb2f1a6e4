"""The checker is one small package that stands alone: what it imports, and how long it is."""

from __future__ import annotations

import ast
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from benchmarks import shape
from benchmarks.shape import lines_of_code

import goldstein.checker

FOLDER = Path(goldstein.checker.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))

#: Lines of code (neither blank, nor comment, nor docstring) of its parts, a tenth more than there
#: were when this was written: near, Goldstein and f + h claims; bounds and constraints; irrational
#: and large functions; what can only refuse; minima.
CEILINGS = {"": 1320, "constrained": 545, "enclosed": 925, "blackbox": 665, "minimum": 1680}

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


def test_it_imports_nothing_but_numbers() -> None:
    for path in FILES:
        for module in imported(path):
            root = module.partition(".")[0]
            own = module == "goldstein.checker" or module.startswith("goldstein.checker.")
            assert own or module in ALLOWED or root in sys.stdlib_module_names, (path, module)


def test_it_stays_below_its_ceilings() -> None:
    lines = dict.fromkeys(CEILINGS, 0)
    for path in FILES:
        lines[path.parent.name if path.parent != FOLDER else ""] += len(lines_of_code(path))
    assert {part: n for part, n in lines.items() if n > CEILINGS[part]} == {}


def test_small_claims_without_constraints_need_no_other_part() -> None:
    """Bounds, and the entrances to the other parts, are all that the files of the folder name."""
    entrances = {
        "near.py": {"enclosed.point"},
        "sides.py": {"enclosed.point"},
        "sampled.py": {
            "blackbox.beside", "blackbox.perturbed", "blackbox.qualification", "constrained",
            "constrained.kkt", "constrained.limits", "enclosed.written",
        },
    }  # fmt: skip
    parts = {f"goldstein.checker.{part}" for part in CEILINGS if part}
    for path in FILES:
        if path.parent == FOLDER:
            used = {
                module.removeprefix("goldstein.checker.")
                for module in imported(path)
                if any(module == part or module.startswith(f"{part}.") for part in parts)
            }
            assert used <= entrances.get(path.name, set()), path.name


@pytest.fixture(scope="module")
def outside() -> dict[str, Counter[str]]:
    """Lines outside the checker that a verification executes, by kind and by room."""
    root = str(FOLDER.parent) + os.sep
    found = {}
    for kind, run in shape.claims().items():
        assert run().ok
        files = (name.removeprefix(root) for name, _ in shape.executed(run, root))
        rooms = (name.split(os.sep)[0] for name in files)
        found[kind] = Counter(room for room in rooms if room != "checker")
    return found


#: What `verify` executes outside, a tenth more than when this was written: the fields of a
#: certificate and its seal (storage); proposals of weights and of directions (numerics, and of
#: near-KKT claims certificates); the term that was given (prox); and the translation of an
#: expression, which says what the function is (calculus, and numerics).
OUTSIDE = {
    "goldstein": {"certificates": 19, "storage": 14, "numerics": 39},
    "kkt": {"certificates": 20, "storage": 14, "numerics": 57},
    "plus": {"certificates": 20, "storage": 14, "numerics": 45, "prox": 10},
    "near": {"certificates": 10, "numerics": 5, "calculus": 185},
    "near-kkt": {"certificates": 35, "storage": 14, "numerics": 25, "calculus": 100},
}


@pytest.mark.parametrize("kind", OUTSIDE)
def test_little_is_executed_outside(kind: str, outside: dict[str, Counter[str]]) -> None:
    assert not outside[kind] - Counter(OUTSIDE[kind]), outside[kind]


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
        assert path.name == "__init__.py" or f"`{path.relative_to(FOLDER)}`" in text, path.name
