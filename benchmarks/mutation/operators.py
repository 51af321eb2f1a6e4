"""The mutants of a file: copies of it with one thing changed.

A comparison turned or made strict or not, a condition negated or taken for granted, `and` for `or`,
a constant moved, a sum for a difference, a returned verdict replaced by True, a check not made.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).parents[2]
CHECKER = ROOT / "src" / "goldstein" / "checker"
#: What decides claims first, then their arithmetic, then the checker that stands alone.
FIRST = (
    "sampled.py", "near.py", "minimum/lower.py", "constrained/near.py",
    "constrained/kkt.py", "constrained/limits.py",
    "blackbox/beside.py", "blackbox/perturbed.py", "blackbox/differences.py",
    "fenchel.py", "sides.py", "nodes.py",
)  # fmt: skip
FILES = [
    *(CHECKER / name for name in FIRST),
    *(path for path in sorted(CHECKER.rglob("*.py")) if path not in {CHECKER / n for n in FIRST}),
    ROOT / "src" / "goldstein_check.py",
]


def label(path: Path) -> str:
    """Return the name of a file of the checker, with its part."""
    return path.relative_to(CHECKER).as_posix() if CHECKER in path.parents else path.name


_TURNED = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
_EXCHANGED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult}


@dataclass(frozen=True)
class Mutant:
    """A file with one change: the k-th at one of its nodes.

    Attributes
    ----------
    lines : tuple of int
        First and last line of the statement (of a compound one: of its head).
    function : str
        The outermost function in which the change is; empty if it takes effect on import.
    """

    path: Path
    line: int
    what: str
    node: int
    k: int
    lines: tuple[int, int]
    function: str

    @property
    def key(self) -> str:
        return f"{label(self.path)}:{self.line}:{self.node}.{self.k}"

    @property
    def name(self) -> str:
        return f"{label(self.path)}:{self.line}: {self.what}"

    @property
    def place(self) -> tuple[str, str, str]:
        """What tells it from others wherever its line is: file, function, change."""
        return label(self.path), self.function, self.what

    def code(self) -> CodeType:
        """Return the compiled file with the change."""
        tree = ast.parse(self.path.read_text())
        _change(next(itertools.islice(ast.walk(tree), self.node, None)), self.k)
        return compile(ast.fix_missing_locations(tree), str(self.path), "exec", dont_inherit=True)


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    tree = ast.parse(path.read_text())
    prose, where = _prose(tree), _places(tree)
    around = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    return [
        Mutant(path, getattr(node, "lineno", 0), what + _context(node, around), number, k, *place)
        for number, node in enumerate(ast.walk(tree))
        if id(node) not in prose
        for place in [where[id(node)]]
        for k, what in enumerate(_names(node))
    ]


def _context(node: ast.AST, around: dict[int, ast.AST]) -> str:
    """Say where a number stands."""
    if not isinstance(node, ast.Constant):
        return ""
    whole = around[id(node)]
    while isinstance(whole, ast.UnaryOp | ast.Constant):
        whole = around[id(whole)]
    return f" in {ast.unparse(whole)[:70]}"


def _places(tree: ast.AST) -> dict[int, tuple[tuple[int, int], str]]:
    """Return lines of the statement and outermost function of every node, by identity."""
    found: dict[int, tuple[tuple[int, int], str]] = {}

    def visit(node: ast.AST, lines: tuple[int, int], scope: str, function: str) -> None:
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            lines = node.lineno, max(node.lineno, last)
        found[id(node)] = lines, function
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            scope = f"{scope}.{node.name}" if scope else node.name
        # Defaults and decorators of a function take effect where it is defined.
        inside = node.body if isinstance(node, ast.FunctionDef) else []
        for child in ast.iter_child_nodes(node):
            visit(child, lines, scope, function or (scope if child in inside else ""))

    visit(tree, (0, 0), "", "")
    return found


def _prose(tree: ast.AST) -> set[int]:
    """Texts, annotations and messages: nothing depends on them."""
    quiet: set[int] = set()
    for node in ast.walk(tree):
        for part in _said(node):
            quiet.update(id(word) for word in ast.walk(part))
    return quiet


def _said(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that only people read."""
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.Import() | ast.ImportFrom():
            return [node]
        case ast.AnnAssign() | ast.arg():
            return [node.annotation] if node.annotation is not None else []
        case ast.FunctionDef(name="__repr__" | "_repr_html_"):
            return [node]
        case ast.FunctionDef():
            return [node.returns] if node.returns is not None else []
        case ast.Expr(value=ast.Constant()):
            return [node]
        case ast.IfExp() if _is_text(node.body) and _is_text(node.orelse):
            return [node]
        case ast.Call(func=ast.Attribute(attr="add"), args=[_, _, message]):
            return [message]
        case ast.Call(func=ast.Attribute(attr="reshape")):  # any negative number does for -1
            return [part for part in node.args if isinstance(part, ast.UnaryOp)]
        case ast.Call(func=ast.Name(id="spend")):  # an estimate of the work ahead
            return list(node.args)
        case ast.Call(func=ast.Name(id="need"), args=[_, message]):
            return [message]
    return []


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return isinstance(node.value, str)
        case ast.BinOp(op=ast.Add()):
            return _is_text(node.left) or _is_text(node.right)
        case ast.IfExp():
            return _is_text(node.body) and _is_text(node.orelse)
    return isinstance(node, ast.JoinedStr)


def _names(node: ast.AST) -> list[str]:
    """Say what can be changed at a node, in the order in which `_change` counts."""
    match node:
        case ast.Compare():
            turned = [new.__name__ for op in node.ops for new in _TURNED[type(op)]]
            return [f"{ast.unparse(node)}: {name}" for name in turned]
        case ast.If() | ast.While():
            text = ast.unparse(node.test)
            return [f"not ({text})", f"True for {text}", f"False for {text}"][
                : 3 if isinstance(node, ast.If) else 1
            ]
        case ast.IfExp():
            return [f"other branch of {ast.unparse(node)}"]
        case ast.BoolOp():
            text = ast.unparse(node)
            return [
                f"and/or in {text}",
                *(f"{text} without part {k}" for k in range(len(node.values))),
            ]
        case ast.Return() if node.value is not None and _decides(node.value):
            return [f"return True for {ast.unparse(node.value)}"]
        case ast.BinOp() if type(node.op) in _EXCHANGED:
            return [f"{_EXCHANGED[type(node.op)].__name__} in {ast.unparse(node)}"]
        case ast.Constant() if isinstance(node.value, int | float) and type(node.value) is not bool:
            return [f"{node.value} + 1", f"{node.value} * 2"] if node.value else ["1 for 0"]
        case ast.Call() if getattr(node.func, "id", "") in ("min", "max", "any", "all"):
            return [f"opposite of {ast.unparse(node)}"]
        case ast.Expr() if isinstance(node.value, ast.Call):
            return [f"no {ast.unparse(node.value)[:60]}"]
    return []


def _decides(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare | ast.BoolOp) or (
        isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("bool", "all", "any")
    )


def _change(node: ast.AST, k: int) -> None:
    match node:
        case ast.Compare():
            places = [(i, new) for i, op in enumerate(node.ops) for new in _TURNED[type(op)]]
            node.ops[places[k][0]] = places[k][1]()
        case ast.If() | ast.While():
            test = ast.UnaryOp(ast.Not(), node.test)
            node.test = (test, ast.Constant(True), ast.Constant(False))[k]
        case ast.IfExp():
            node.body, node.orelse = node.orelse, node.body
        case ast.BoolOp() if k == 0:
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.BoolOp():
            neutral = isinstance(node.op, ast.And)
            node.values[k - 1] = ast.Constant(neutral)
        case ast.Return():
            node.value = ast.Constant(True)
        case ast.BinOp():
            node.op = _EXCHANGED[type(node.op)]()
        case ast.Constant():
            number = node.value
            node.value = 1 if not number else (number + 1, number * 2)[k]  # type: ignore[operator]
        case ast.Call():
            opposite = {"min": "max", "max": "min", "any": "all", "all": "any"}
            assert isinstance(node.func, ast.Name)
            node.func.id = opposite[node.func.id]
        case ast.Expr():
            node.value = ast.Constant(None)
