"""Weaken the checker on purpose, line by line: some test must notice.

    python -m benchmarks.mutation --sample 200
    python -m benchmarks.mutation --only goldstein.py --lines 40-80

A mutant is the checker with one thing changed: a comparison turned or made strict or not, a
condition negated or taken for granted, `and` for `or`, a constant moved, a sum for a difference, a
returned verdict replaced by True, a check not made. Each runs the tests named below, in a copy of
the package; a mutant that no test notices survives, and is printed. Survivors that weaken nothing
are named with their reason in `benchmarks/mutation_survivors.md`.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECKER = ROOT / "src" / "goldstein" / "checker"
ALONE = ROOT / "src" / "goldstein_check.py"

#: The fast tests of each file, most telling first; a mutant runs them until one fails.
COMMON = ("tests/checker", "tests/reliability/test_checker_attacked.py")
TESTS: dict[str, tuple[str, ...]] = {
    "beside.py": ("tests/certificates/test_goldstein.py", "tests/certificates/test_attacks.py"),
    "box.py": ("tests/constrained/test_forgery.py", "tests/constrained/test_bounds_kept.py"),
    "files.py": ("tests/certificates/test_store.py",),
    "goldstein.py": ("tests/certificates/test_attacks.py", "tests/certificates/test_goldstein.py"),
    "kkt.py": (
        "tests/constrained/test_forgery.py",
        "tests/constrained/test_gap.py",
        "tests/constrained/test_traps.py",
    ),
    "near_kkt.py": ("tests/constrained/test_near_kkt.py", "tests/constrained/test_forgery.py"),
    "verification.py": ("tests/certificates/test_store.py",),
    "rounding.py": ("tests/numerics/test_rounding.py",),
    "float_dot.py": ("tests/numerics/test_exact_vector.py", "tests/numerics/test_rounding.py"),
    "exact_vector.py": ("tests/numerics/test_exact_vector.py",),
    "enclosures.py": ("tests/calculus/test_enclosures_overflow.py",),
    "goldstein_check.py": ("tests/certificates/test_proof_files.py",),
}
EXACT = (
    "tests/certificates/test_near_checker.py", "tests/certificates/test_fresh_checker.py",
    "tests/numerics/test_exact.py", "tests/certificates/test_near_extremes.py",
)  # fmt: skip

_TURNED = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
_EXCHANGED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult}


@dataclass(frozen=True)
class Mutant:
    """A file with one change: the k-th at one of its nodes."""

    path: Path
    line: int
    what: str
    node: int
    k: int

    @property
    def name(self) -> str:
        return f"{self.path.name}:{self.line}: {self.what}"

    def source(self) -> str:
        """Return the text of the changed file."""
        tree = ast.parse(self.path.read_text())
        _change(next(itertools.islice(ast.walk(tree), self.node, None)), self.k)
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a file."""
    tree = ast.parse(path.read_text())
    prose = _prose(tree)
    return [
        Mutant(path, getattr(node, "lineno", 0), what, number, k)
        for number, node in enumerate(ast.walk(tree))
        if id(node) not in prose
        for k, what in enumerate(_names(node))
    ]


def _prose(tree: ast.AST) -> set[int]:
    """Texts, annotations and messages: nothing depends on them."""
    quiet: set[int] = set()

    def hush(node: ast.AST | None) -> None:
        if node is not None:
            quiet.update(id(part) for part in ast.walk(node))

    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom):
            hush(node)
        if isinstance(node, ast.AnnAssign | ast.arg):
            hush(node.annotation)
        if isinstance(node, ast.FunctionDef):
            hush(node.returns)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hush(node)
    return quiet


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


def tests_of(name: str) -> list[str]:
    """The tests of a file of the checker, telling ones first."""
    if name == ALONE.name:
        return list(TESTS[name])
    chosen = [*TESTS.get(name, EXACT), *COMMON]
    return [test for test in chosen if (ROOT / test).exists()]


def survives(mutant: Mutant, source: Path, seconds: float) -> bool:
    """Whether no test notices; `source` is a copy of src to put the mutant into."""
    place = source / mutant.path.relative_to(ROOT / "src")
    original = place.read_text()
    place.write_text(mutant.source())
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
        "--timeout", str(seconds), "-o", "addopts=--import-mode=importlib", *tests_of(place.name),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            timeout=8 * seconds,
            check=False,
        )
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False  # it never ends: noticed
    finally:
        place.write_text(original)


def _wanted(asked: argparse.Namespace) -> Iterator[Mutant]:
    first, _, last = (asked.lines or "1-999999").partition("-")
    for path in [*sorted(CHECKER.glob("*.py")), ALONE]:
        if asked.only is None or path.name in asked.only:
            for mutant in mutants(path):
                if int(first) <= mutant.line <= int(last or first):
                    yield mutant


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=None, help="so many, drawn at random")
    parser.add_argument("--only", nargs="*", default=None, help="files of the checker")
    parser.add_argument("--lines", default=None, help="of that file, as in 10-20")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9, help="at most, all in all")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one test")
    asked = parser.parse_args(arguments)
    chosen = list(_wanted(asked))
    total = len(chosen)
    if asked.sample is not None and asked.sample < total:
        chosen = random.Random(asked.seed).sample(chosen, asked.sample)
    begin, done = time.perf_counter(), 0
    lived = []
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        for mutant in chosen:
            if time.perf_counter() - begin > 60 * asked.minutes:
                break
            done += 1
            if survives(mutant, source, asked.seconds):
                lived.append(mutant)
                print("SURVIVES", mutant.name, flush=True)
    killed = done - len(lived)
    print(
        f"{killed} of {done} mutants killed ({killed / max(1, done):.1%}), "
        f"of {total} in all, in {time.perf_counter() - begin:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
