"""Verdicts of the command line: `goldstein verify CERT file.py` on certificates that are forged."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, forged, scratch
from benchmarks.adversary.mutations import changed_fields
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs

SOURCE = """
import numpy as np

x0 = np.array([1.0, -2.0])


def value(x):
    return float(2.0 * abs(x[0]) + 0.5 * x[0] + abs(x[1] - 1.0) + {slope!r} * x[1])


def gradient(x):
    return np.array([2.0 * np.sign(x[0]) + 0.5, np.sign(x[1] - 1.0) + {slope!r}])


problem = (value, gradient)
"""

SLOPES = (0.25, 1.5)


@functools.cache
def _problem(slope: float) -> tuple[Path, Any, Any, Any]:
    """Return a user's file, its functions, and an honest certificate at its kink."""
    path = scratch() / f"user_{slope}.py"
    path.write_text(SOURCE.format(slope=slope))
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    claim = gs.certify(names["value"], [0.0, 1.0], names["gradient"], delta=1e-3, rng=0)
    return path, names["value"], names["gradient"], claim


def _least(slope: float, x: Any, delta: float) -> float:
    parts = [
        2.0 * np.sign(x[0]) + 0.5 if abs(x[0]) > delta else 0.0,
        np.sign(x[1] - 1.0) + slope if abs(x[1] - 1.0) > delta else max(slope - 1.0, 0.0),
    ]
    return float(np.linalg.norm(parts))


def command_line(rng: Rng, seen: Seen) -> None:
    from typer.testing import CliRunner

    from goldstein.cli.app import app

    slope = float(rng.choice(SLOPES))
    path, _, _, honest = _problem(slope)
    other = _problem(SLOPES[0])[3]
    kind = int(rng.integers(4))
    if kind == 0:
        claim, deed = honest, "honest"
    elif kind == 1:
        claim, deed = other, "of another function"
    else:
        fields = changed_fields(honest, rng)
        claim, deed = forged(honest, **fields), f"changed {sorted(fields)}"
    if claim is None:
        seen.silent("cannot be held")
        return
    try:
        file = claim.save(scratch() / "claim")
    except gs.GoldsteinError:
        seen.silent("cannot be saved")
        return
    words = ["verify", str(file), str(path)]
    done = CliRunner().invoke(app, words)
    crashed = done.exception is not None and not isinstance(done.exception, SystemExit)
    true = _least(slope, claim.x, claim.delta)
    wrong = below(claim.eps, true) or claim.label == "certified"
    said = f"{deed}, exit code {done.exit_code}: eps = {claim.eps!r}, the truth is {true!r}"
    if crashed and not isinstance(done.exception, gs.GoldsteinError):
        raise done.exception  # type: ignore[misc]
    seen.claim(done.exit_code == 0, claim.label, not wrong, said, own=kind == 0)


ATTACK = Attack(
    "command-line",
    "`goldstein verify` of honest and forged files: its exit code",
    weight=2,
    one=command_line,
)
