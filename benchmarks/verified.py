"""The checker that is proved sound, next to `goldstein-check`, on the same proof files.

Files of our own (atoms, SVMs, networks, maxima of affine functions), the honest and forged ones of
`benchmarks.differential`, and those of `adversary.proof_files`, whose truth is known. Of each
family: how many are inside the verified fragment, what both say, and how long it takes.
`verified/build.sh` makes the program.

    python -m benchmarks.verified --seeds 40
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.adversary import limit_files
from benchmarks.adversary.proof_files import files
from benchmarks.differential import cases, load_checker
from tests.atoms import EXAMPLES

import goldstein as gs
from goldstein.certificates import NearCertificate

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "build" / "verified" / "goldstein-check-verified"
VERDICTS = ("TRUE", "FALSE", "UNREADABLE", "outside")


@dataclass(frozen=True)
class Judged:
    """A proof file, whether its claim is known to be false, and what is said of it."""

    family: str
    name: str
    false: bool | None  # None: not known
    plain: int
    verified: int
    said: str
    seconds: tuple[float, float]

    @property
    def fault(self) -> bool:
        """A TRUE without support, or, if that is not known, that the other checker refuses."""
        return self.verified == 0 and (self.plain != 0 if self.false is None else self.false)


def build(folder: Path = PROGRAM.parent) -> tuple[int, str]:
    """Compile the proof and the program; return the exit code (77: no Coq) and what was said."""
    script = ROOT / "verified" / "build.sh"
    done = subprocess.run(["sh", str(script), str(folder)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def verdict(path: Path, *options: str) -> tuple[int, str]:
    """Return the exit code of the verified checker, and what it says."""
    command = [str(PROGRAM), *options, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout


# --- files of our own ----------------------------------------------------------------------------


def _atoms(path: Path) -> Iterator[str]:
    rng = np.random.default_rng(0)
    for name, atom in EXAMPLES.items():
        F = atom(gs.Variable(3) * np.array([1.0, 2.0, -1.0]))
        pivot = [Fraction(1, 3), Fraction(0), Fraction(-1)]
        ways = rng.standard_normal((3, 3))
        NearCertificate.prove(F, [0.3, 0.0, -1.0], pivot, ways, [1.0, 2.0, 0.5]).export(path, F)
        yield name


def _data(seed: int, rows: int, columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    return X, np.sign(X @ rng.standard_normal(columns) + rng.standard_normal(rows))


def _solved(path: Path, F: Any, x0: Any, target: float, kind: str) -> bool:
    res = gs.minimize(F, x0, eps=target, delta=target, stationarity=kind, rng=0, max_calls=4000)
    if res.certificate is not None:
        res.certificate.export(path, F)
    return res.certificate is not None


def _models(path: Path) -> Iterator[str]:
    """Solved problems: ramp SVMs, networks of one and two layers, maxima of affine functions."""
    for seed, kind in itertools.product(range(3), ("near", "goldstein")):
        X, y = _data(seed, 40, 4)
        w = gs.Variable(4)
        made = {
            "ramp SVM": gs.models.margin_svm(y[:, None] * X, rho=1.0, lam=1e-2),
            "one-layer network": gs.models.relu_one_layer(X, y, width=3, ridge=1e-2, mean=True),
            "two-layer network": gs.models.relu_two_layer(X, y, width=2, ridge=1e-2, mean=True),
            "maximum of affine functions": gs.max_affine(X, y, w) + 0.1 * gs.norm1(w),
            "least deviations": gs.sum(gs.abs(X @ w - y)) + 0.5 * gs.sum_squares(w),
        }
        for name, F in made.items():
            x0 = F.start(0) if hasattr(F, "start") else np.ones(F.dim)
            if _solved(path, F, x0, 5e-2, kind):
                yield f"{name}, {kind}, {seed}"


def collection(
    path: Path, seeds: range, own: bool = True
) -> Iterator[tuple[str, str, bool | None]]:
    """Write one proof file after the other; yield family, name, and if it is known to be false.

    Affine constraints need no separation; goldstein-check asks for one of inequalities.
    """
    if own:
        yield from (("atoms", name, None) for name in _atoms(path))
        yield from (("models", name, None) for name in _models(path))
    for seed in seeds:
        for case in cases(seed):
            case.certificate.export(path, case.function)
            yield "differential", f"seed {seed}, {case.deed}", None
        for file in files(seed):
            path.write_text(file.text)
            yield "adversary", f"seed {seed}, {file.what}", bool(file.fault(0))
        for file in limit_files.files(seed):
            path.write_text(file.text)
            false = bool(file.fault(0)) and getattr(file.truth, "reason", "") != "separation"
            for kind in ("near-kkt", "refutation"):
                if f'"kind": "{kind}"' in file.text:
                    yield f"{kind}, adversary", f"seed {seed}, {file.what}", false


def judge(seeds: range, own: bool = True) -> Iterator[Judged]:
    """Put all files to both checkers."""
    plain = load_checker()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "proof.json"
        for family, name, false in collection(path, seeds, own):
            start = time.perf_counter()
            with contextlib.redirect_stdout(io.StringIO()):
                code = plain.main([str(path)])
            middle = time.perf_counter()
            found, said = verdict(path)
            seconds = middle - start, time.perf_counter() - middle
            yield Judged(family, name, false, code, found, said.strip(), seconds)


# --- the table -----------------------------------------------------------------------------------


@dataclass
class Row:
    """What is said of a family of files."""

    said: Counter[tuple[int, int]] = field(default_factory=Counter)
    seconds: list[tuple[float, float]] = field(default_factory=list)

    def line(self, family: str) -> str:
        read = sum(n for (plain, _), n in self.said.items() if plain != 2)
        inside = sum(n for (plain, v), n in self.said.items() if plain != 2 and v != 3)
        times = [f"{1e3 * np.median(column):.1f}" for column in zip(*self.seconds, strict=True)]
        both = [self.said[0, 0], self.said[1, 1], self.said[0, 1]]
        cells = [family, read, f"{inside / max(read, 1):.0%}", *both, *times]
        return "| " + " | ".join(map(str, cells)) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="name what only goldstein-check proves")
    options = parser.parse_args()
    code, said = build()
    print(said)
    if code:
        return 0 if code == 77 else code
    table: dict[str, Row] = {}
    faults, outside = [], Counter[str]()
    for found in judge(range(options.first, options.first + options.seeds)):
        row = table.setdefault(found.family, Row())
        row.said[found.plain, found.verified] += 1
        row.seconds.append(found.seconds)
        if found.verified == 3:
            outside[found.said] += 1
        if found.fault:
            faults.append(found)
        if options.list and (found.plain, found.verified) == (0, 1):
            print(f"not proved: {found.family}, {found.name}")
    print("| files | readable | inside | both TRUE | both FALSE | only goldstein-check TRUE |"
          " goldstein-check, ms | verified, ms |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for family, row in table.items():
        print(row.line(family))
    for what, count in outside.most_common():
        print(f"{count:6d}  {what}")
    print(f"{len(faults)} faults")
    for found in faults:
        print(found)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
