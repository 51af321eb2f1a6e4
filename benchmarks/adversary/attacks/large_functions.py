"""Functions of more than 40,000 multiplications: signs by enclosures, and by long exact sums.

f = slope . w + the mean of kinks of rows a_i . w - b_i, where many rows are tied at the pivot
exactly, or nearly. Rows, levels and pivot are small integers over powers of two, or thirds; every
subgradient at the pivot is at least |slope| minus the mean length of the rows long.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import forged, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs

#: What is tied: entries of one function of rows; of two; rows of a table; a square besides.
KINDS = ("abs", "relu", "huber", "twice", "max", "norm2", "curved", "sparse", "softplus")


def large_functions(rng: Rng, seen: Seen) -> None:
    kind = KINDS[int(rng.integers(len(KINDS)))]
    n, d = [(420, 100), (300, 140)][int(rng.integers(2))]
    rows = rng.integers(-3, 4, (n, d)).astype(float)
    if kind == "sparse":
        rows[rng.random((n, d)) < 0.4] = 0.0
        rows[:2] = 0.0
    pivot = [Fraction(int(a), 8) for a in rng.integers(-8, 9, d)]
    if rng.random() < 0.4:  # one coordinate, seen by a few rows, is no float
        pivot[0] = Fraction(1, 3)
        rows[:, 0] = 3.0 * rng.integers(-1, 2, n)
    levels = [
        sum((Fraction(a) * q for a, q in zip(row, pivot)), Fraction(0)) for row in rows.tolist()
    ]
    tied = rng.random(n) < rng.choice([0.02, 0.1, 0.3])
    tied[:2] = kind == "sparse" or rng.random() < 0.5
    b = np.array(
        [
            float(level) + (0.0 if t else float(rng.choice([-2.0, 1.0, 2.0**-40])))
            for level, t in zip(levels, tied.tolist())
        ]
    )
    slope = rng.integers(-4, 5, d) * 8.0
    slope[0] = 64.0
    F = _function(kind, rows, b, slope, n)
    ways = rng.integers(-9, 10, (int(rng.integers(2, 5)), d)).astype(float)
    if rng.random() < 0.3:  # along this one a row stays where it is
        ways[0] = _along(rng, rows[int(np.flatnonzero(tied)[0])] if tied.any() else rows[0], d)
    weights = rng.integers(1, 5, len(ways)).astype(float)
    x = np.array([float(q) for q in pivot])
    seen.note(f"{kind}, {n} x {d}, {int(tied.sum())} rows tied")
    try:
        claim = gs.NearCertificate.prove(F, x, pivot, ways, weights)
    except gs.GoldsteinError as refusal:
        seen.silent(str(refusal))
        return
    # No gradient of the rest is longer than the mean length of the rows.
    most = float(np.linalg.norm(rows, axis=1).mean()) * (
        2.0 if kind in ("twice", "curved") else 1.0
    )
    least = float(np.linalg.norm(slope)) - most
    ok, label = verdict(claim, F)
    seen.claim(ok, label, claim.eps >= least * (1 - 1e-9), f"its own: {claim.eps!r}", own=True)
    wrong = forged(claim, eps=float(least * rng.choice([0.0, 0.5, 1 - 1e-6])))
    seen.claim(*verdict(wrong, F), False, f"every subgradient is at least {least!r} long")
    for other in _forgeries(rng, claim, least):
        seen.claim(*verdict(other, F), False, f"forged: {type(other).__name__}")


def _forgeries(rng: Rng, claim: Any, least: float) -> list[Any]:
    """The same with eps below the truth and something else to blame for it."""
    small, size = {"eps": 0.9 * least}, claim.weights.size
    tiny = np.full(size, 2.0**-1074)
    spread = claim.weights * 10.0 ** rng.integers(-300, 300, size)
    huge = np.full(size, 1e308)
    return [forged(claim, weights=weights, **small) for weights in (tiny, spread, huge)] + [
        forged(claim, directions=1e300 * claim.directions, **small)
    ]


def _function(kind: str, rows: Any, b: Any, slope: Any, n: int) -> Any:
    from scipy import sparse

    w = gs.Variable(rows.shape[1])
    u = gs.linear(sparse.csr_array(rows) if kind == "sparse" else rows, w) - b
    line = gs.sum(w * slope)
    half = n // 2
    if kind == "max":
        return line + gs.sum(gs.maximum(u[:half], u[half:])) / n
    if kind == "norm2":
        return line + (gs.norm2(u[:2]) + gs.norm2(u[2:])) / n
    if kind == "softplus":
        return line + gs.sum(gs.abs(u)) / (2 * n) + gs.sum(gs.softplus(u)) / (2 * n)
    atoms = {"relu": gs.relu, "huber": lambda v: gs.huber(v, 1.0)}
    whole = line + gs.sum(atoms.get(kind, gs.abs)(u)) / n
    if kind == "twice":
        return whole + gs.sum(gs.relu(u)) / n
    if kind == "curved":
        return whole + gs.sum(gs.abs(u * 0.5)) / n
    return whole


def _along(rng: Rng, row: Any, d: int) -> Any:
    """A direction along which a row does not change."""
    way = rng.integers(-3, 4, d).astype(float)
    used = np.flatnonzero(row)
    if used.size:
        k = used[0]
        rest = float(row @ way - row[k] * way[k])
        way = way * row[k]
        way[k] = -rest
    return way if math.isfinite(float(way.sum())) and way.any() else np.ones(d)


ATTACK = Attack(
    "large-functions",
    "functions too large for rationals: hundreds of rows, many of them tied",
    weight=2,
    one=large_functions,
)
