"""The shape of the source: sizes, complexity, and how far one has to walk to follow a run.

    python -m benchmarks.shape                      # this tree
    python -m benchmarks.shape --source ../old/src  # another one
    python -m benchmarks.shape --json shape.json    # for a program; --static leaves the runs out

* **Lines** are lines of code: no blanks, no comments, no docstrings.
* **One importer**: modules that exactly one other module of the package imports, wherever in its
  text the import stands.
* **Walks**: files of the package in which a function is called in the course of a run, and changes
  of file from one call to the next (in the order of the calls, returns left aside). Each run is
  made once before, so that nothing is imported any more.
* **Since One stack**: what each room had when that landed, what it has now, and how much of that is
  in files that were first added later (`git log --diff-filter=A`, renames followed), for minima,
  formulas, proof files, fields and doors; new are lines whose text stood nowhere in the tree of
  the landing, for a file may be made of what was there.
* **Verification**: lines of code of the functions that `verify` enters, and the lines that it
  executes, in all and outside `goldstein/checker`; CPU time is the median of many.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

HERE = Path(__file__).parents[1]

#: Functions below the surface have at most so many arguments, and all at most so many branches.
MOST_ARGUMENTS, MOST_BRANCHES = 8, 12

#: Modules whose `__all__` is the public surface, beside the command line.
PUBLIC = ("goldstein", "goldstein.calculus", "goldstein.models", "goldstein.prox",
          "goldstein.problems", "goldstein.scipy", "goldstein.sklearn", "goldstein.parallel",
          "goldstein.torch", "goldstein.jax")  # fmt: skip

#: The last commit of the session in which One stack landed.
ONE_STACK = "e2283f0b"

_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
            tokenize.ENDMARKER)  # fmt: skip

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def lines_of_code(path: Path) -> frozenset[int]:
    """Return the numbers of the lines that are neither blank, comment nor docstring."""
    text = path.read_text()
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node):
            told.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    rows: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            rows.update(range(token.start[0], token.end[0] + 1))
    return frozenset(rows - told)


def modules(source: Path) -> dict[str, Path]:
    """Return the files of the package by the names of their modules."""
    found = {}
    for path in sorted((source / "goldstein").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def rooms(source: Path) -> dict[str, tuple[int, int]]:
    """Return lines of code and files of every folder of the package, the largest first."""
    lines, files = Counter[str](), Counter[str]()
    for path in sorted(source.rglob("*.py")):
        room = room_of(path, source)
        lines[room] += len(lines_of_code(path))
        files[room] += 1
    return {room: (count, files[room]) for room, count in lines.most_common()}


def room_of(path: Path, source: Path) -> str:
    """Return the folder of the package that a file is in, or the file itself."""
    parts = path.relative_to(source).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[-1]


def code_of(path: Path) -> list[str]:
    """Return the lines of code of a file, without their indentation."""
    text = path.read_text().splitlines()
    return [text[row - 1].strip() for row in sorted(lines_of_code(path)) if row <= len(text)]


def since(source: Path, landing: str = ONE_STACK) -> dict[str, dict[str, int]]:
    """Return by room: lines at a landing, lines now, those of files added later, and the new.

    Nothing where the history is not there.
    """
    names = git("log", "--diff-filter=A", "-M", "-C", "--format=", "--name-only",
                f"{landing}..HEAD", "--", "src")  # fmt: skip
    tree = git("archive", landing, "src")
    if not (names and tree) or source != HERE / "src":
        return {}
    found = defaultdict[str, dict[str, int]](
        lambda: dict.fromkeys(("then", "now", "added", "new"), 0)
    )
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(tree)) as archive:
            archive.extractall(folder, filter="data")
        before = Path(folder) / "src"
        known: set[str] = set()
        for path in before.rglob("*.py"):
            lines = code_of(path)
            found[room_of(path, before)]["then"] += len(lines)
            known.update(lines)
    added = {HERE / name for name in names.decode().split()}
    for path in source.rglob("*.py"):
        lines, row = code_of(path), found[room_of(path, source)]
        row["now"] += len(lines)
        if path in added:
            row["added"] += len(lines)
            row["new"] += sum(line not in known for line in lines)
    return dict(sorted(found.items(), key=lambda item: -item[1]["new"]))


def git(*command: str) -> bytes:
    """Return what git says of this tree, nothing where it does not know it."""
    done = subprocess.run(["git", *command], cwd=HERE, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else b""


def importers(source: Path) -> dict[str, set[str]]:
    """Return who imports each module."""
    known, found = modules(source), defaultdict[str, set[str]](set)
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text())):
            for target in _imported(node, name, path.name == "__init__.py"):
                module = target if target in known else target.rpartition(".")[0]
                if module in known and module != name:
                    found[module].add(name)
    return found


def _imported(node: ast.AST, name: str, package: bool) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        parts = name.split(".")
        above = parts[: len(parts) - node.level + package]
        base = ".".join([*above, *filter(None, [base])])
    return [f"{base}.{alias.name}" for alias in node.names]


def functions(source: Path) -> Iterator[tuple[str, str, Function]]:
    """Yield module, qualified name and definition of every function."""
    for name, path in modules(source).items():
        pending: list[tuple[str, ast.AST]] = [("", ast.parse(path.read_text()))]
        while pending:
            prefix, node = pending.pop()
            for child in ast.iter_child_nodes(node):
                inside = prefix
                if isinstance(child, Function | ast.ClassDef):
                    inside = f"{prefix}.{child.name}".lstrip(".")
                    if isinstance(child, Function):
                        yield name, inside, child
                pending.append((inside, child))


def arguments(function: Function) -> list[ast.arg]:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [arg for k, arg in enumerate(given) if k or arg.arg not in ("self", "cls")]


def says_any(function: Function) -> int:
    """Return how many annotations of a signature mention `Any`."""
    star = [function.args.vararg, function.args.kwarg]
    noted = [arg.annotation for arg in (*arguments(function), *filter(None, star))]
    return sum(
        any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(note))
        for note in (*noted, function.returns)
        if note is not None
    )


def public() -> set[tuple[str, str]]:
    """Return module and qualified name of what the public modules list."""
    import importlib

    found = set()
    for name in PUBLIC:
        module = importlib.import_module(name)
        things = (getattr(module, each) for each in module.__all__)
        found |= {(t.__module__, t.__qualname__) for t in things if hasattr(t, "__qualname__")}
    return found


def crowded(source: Path) -> list[str]:
    """Return functions below the public surface that take many arguments."""
    listed = public()
    return sorted({
        f"{module}.{name} ({len(arguments(function))})"
        for module, name, function in functions(source)
        if len(arguments(function)) > MOST_ARGUMENTS
        and not module.startswith("goldstein.cli.commands")
        and (module, name) not in listed
        and (module, name.rpartition(".")[0]) not in listed
    })  # fmt: skip


def complex_functions(source: Path) -> list[str]:
    """Return what ruff finds to have too many branches."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--select", "C901", "--isolated", "--no-cache",
         "--config", f"lint.mccabe.max-complexity={MOST_BRANCHES}", "--output-format", "json",
         str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return [
        f"{Path(row['filename']).relative_to(source)}: {row['message']}"
        for row in json.loads(done.stdout)
    ]


def constants(source: Path) -> int:
    """Return how many constants `auto` has: fields of any class called Tuning."""
    return sum(
        isinstance(line, ast.AnnAssign)
        for path in (source / "goldstein" / "solvers").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.name == "Tuning"
        for line in node.body
    )


def static(source: Path) -> dict[str, Any]:
    """Return everything that can be seen without a run."""
    import goldstein as gs

    anys = Counter[str]()
    for module, _, function in functions(source):
        anys["everywhere"] += says_any(function)
        if module.startswith("goldstein.solvers.logic"):
            anys["solvers/logic"] += says_any(function)
    by_room = rooms(source)
    known = modules(source)
    return {
        "rooms": by_room,
        "since": since(source),
        "lines": sum(lines for lines, _ in by_room.values()),
        "files": sum(files for _, files in by_room.values()),
        "modules": len(known),
        "modules with one importer": sum(len(who) == 1 for who in importers(source).values()),
        "constants in Tuning": constants(source),
        "Any in signatures of solvers/logic": anys["solvers/logic"],
        "Any in signatures everywhere": anys["everywhere"],
        "functions above 12 branches": complex_functions(source),
        "functions below the surface with more than 8 arguments": crowded(source),
        "public top-level names": len(gs.__all__),
    }


def walk(run: Callable[[], Any], root: str) -> dict[str, int]:
    """Return how many files are entered, and how often one has to change the file."""
    files: Counter[str] = Counter()
    changes, last = 0, ""

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal changes, last
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(root):
            files[name] += 1
            changes += last not in ("", name)
            last = name

    run()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return {"files": len(files), "changes": changes, "calls": sum(files.values())}


def walks(root: str) -> dict[str, dict[str, int]]:
    """Return the walks of the runs that people make."""
    import numpy as np
    import torch
    from benchmarks.recorded.families import limited
    from benchmarks.recorded.functions import VALLEY, VALLEY_START, regression, valley_expression
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    import goldstein as gs
    import goldstein.torch
    from goldstein.sklearn import RhoMarginSVC

    f, grad = VALLEY
    F, circle = valley_expression(), limited()["valley in a circle"][3]
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    A, b = (torch.tensor(part, dtype=torch.float32) for part in regression(48, 5))
    data = [(A[:24], b[:24, None]), (A[24:], b[24:, None])]
    target = {"eps": 1e-3, "delta": 1e-3, "rng": 0}
    coarse = {"eps": 0.1, "delta": 1e-2, "rng": 0}
    runs: dict[str, Callable[[], Any]] = {
        "minimize": lambda: gs.minimize(f, VALLEY_START, grad, **target),
        "minimize, bounds": lambda: gs.minimize(
            f, VALLEY_START, grad, bounds=[(-2.0, 0.5), (None, None)], **target
        ),
        "minimize, constraint": lambda: gs.minimize(f, VALLEY_START, grad, **circle, **target),
        "minimize, plus": lambda: gs.minimize(
            f, VALLEY_START, grad, plus=gs.prox.l1(0.1), **target
        ),
        "minimize, near": lambda: gs.minimize(F, VALLEY_START, stationarity="near", **target),
        "minimize, values only": lambda: gs.minimize(f, VALLEY_START, "2-point", **coarse),
        "certify": lambda: gs.certify(f, np.ones(2), grad, delta=1e-3, rng=0),
        "RhoMarginSVC.fit": lambda: RhoMarginSVC(random_state=0).fit(X, y),
        "torch.certify": lambda: goldstein.torch.certify(
            model, torch.nn.L1Loss(), data, delta=0.05, seed=0
        ),
    }
    return {name: walk(run, root) for name, run in runs.items()}


def entered(run: Callable[[], Any], root: str) -> set[tuple[str, int]]:
    """Return the lines of code of all functions of the package that are entered."""
    codes: set[CodeType] = set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            codes.add(frame.f_code)

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    found = set()
    for code in codes:
        text, first = inspect.getsourcelines(code)
        counted = lines_of_code(Path(code.co_filename))
        rows = range(first, first + len(text))
        found |= {(code.co_filename, row) for row in rows if row in counted}
    return found


def executed(run: Callable[[], Any], root: str) -> set[tuple[str, int]]:
    """Return the lines of the package that are executed."""
    found: set[tuple[str, int]] = set()

    def watch(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(root):
            return None
        if event == "line":
            found.add((frame.f_code.co_filename, frame.f_lineno))
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        run()
    finally:
        sys.settrace(before)
    return found


def claims() -> dict[str, Callable[[], Any]]:
    """Return a verification of each kind of certificate."""
    import numpy as np
    from benchmarks.recorded.families import limited, near_limited
    from benchmarks.recorded.functions import VALLEY, VALLEY_START, squares, valley_expression

    import goldstein as gs

    target = {"eps": 1e-3, "delta": 1e-3, "rng": 0}
    (f, grad), F = VALLEY, valley_expression()
    plain = gs.minimize(f, VALLEY_START, grad, **target).certificate
    circle = limited()["valley in a circle"][3]
    kkt = gs.minimize(f, VALLEY_START, grad, **circle, **target).certificate
    (loss, slope), term = squares(30, 6), gs.prox.l1(0.3)
    plus = gs.minimize(loss, np.linspace(0, 1, 6), slope, plus=term, **target).certificate
    near = gs.minimize(F, VALLEY_START, stationarity="near", **target).certificate
    H, x0, limits = near_limited()["hinges, fair"]
    both = gs.minimize(H, x0, stationarity="near", **limits, **target).certificate
    coarse = {"eps": 0.3, "delta": 1e-2, "rng": 0}
    seen = gs.minimize(f, VALLEY_START, "2-point", **coarse).certificate
    return {
        plain.kind: lambda: plain.verify(f, grad, seed=0),
        kkt.kind: lambda: kkt.verify(f, grad, seed=0, **circle),
        plus.kind: lambda: plus.verify(loss, slope, plus=term, seed=0),
        near.kind: lambda: near.verify(F),
        both.kind: lambda: both.verify(H, seed=0, **limits),
        seen.kind: lambda: seen.verify(f, seed=0),
    }


def cpu_time(run: Callable[[], Any], seconds: float = 1.0) -> float:
    """Return the median CPU time of a run, of about so many seconds of them and five at least."""
    times: list[float] = []
    while sum(times) < seconds or len(times) < 5:
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def verifications(root: str) -> dict[str, dict[str, float]]:
    """Return lines and times of verifications by kind."""
    found = {}
    for kind, run in claims().items():
        assert run().ok, f"a {kind} certificate does not verify"
        row: dict[str, float] = {}
        for name, lines in (("entered", entered(run, root)), ("executed", executed(run, root))):
            inside = sum(f"{root}checker{os.sep}" in file for file, _ in lines)
            row |= {f"{name} outside": len(lines) - inside, name: len(lines)}
        found[kind] = {**row, "ms": 1e3 * cpu_time(run)}
    return found


def table(head: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:], ""])


def shown(found: dict[str, Any]) -> str:
    """Return everything as tables."""
    parts = [table(["room", "lines of code", "files"], [
        *([room, *counts] for room, counts in found["rooms"].items()),
        ["**all**", found["lines"], found["files"]],
    ])]  # fmt: skip
    numbers = {
        key: len(value) if isinstance(value, list) else value
        for key, value in found.items()
        if not isinstance(value, dict)
    }
    parts.append(table(["", "number"], [[*item] for item in numbers.items()]))
    if found["since"]:
        rows = [[room, *row.values()] for room, row in found["since"].items()]
        then, now, added, new = (sum(row[k] for row in rows) for k in (1, 2, 3, 4))
        rows.append(["**all**", then, now, added, new])
        rows.append(["**now, without them**", "", "", now - added, now - new])
        head = ["room", "at One stack", "now", "in files added later", "of these new"]
        parts.append(table(head, rows))
    parts += [
        f"{key}:\n" + "".join(f"    {each}\n" for each in value)
        for key, value in found.items()
        if isinstance(value, list) and value
    ]
    if "walks" in found:
        rows = [[name, *row.values()] for name, row in found["walks"].items()]
        parts.append(table(["walk", "files", "changes of file", "calls"], rows))
        rows = [
            [kind, f"{row['entered outside']} of {row['entered']}",
             f"{row['executed outside']} of {row['executed']}", f"{row['ms']:.2f}"]
            for kind, row in found["verifications"].items()
        ]  # fmt: skip
        head = [
            "verify",
            "lines of functions entered outside the checker",
            "lines executed outside",
        ]
        parts.append(table([*head, "CPU ms"], rows))
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=HERE / "src")
    parser.add_argument("--json", type=Path, help="write the numbers to a file, too")
    parser.add_argument("--static", action="store_true", help="no walks, no verifications")
    options = parser.parse_args()
    source = options.source.resolve()
    if os.environ.get("GOLDSTEIN_SHAPE") != str(source):
        # Once more, with the sources in question in front.
        path = os.pathsep.join([str(source), str(HERE)])
        env = {**os.environ, "PYTHONPATH": path, "GOLDSTEIN_SHAPE": str(source)}
        env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "benchmarks.shape", *sys.argv[1:]]
        sys.exit(subprocess.run(command, env=env, check=False).returncode)
    found = static(source)
    if not options.static:
        root = str(source / "goldstein") + os.sep
        found |= {"walks": walks(root), "verifications": verifications(root)}
    print(shown(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
