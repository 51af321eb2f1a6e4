"""Minima of black boxes inside a box, by cuts, under a curvature that is declared; and forgeries.

f is a sum of a_i |z_i - k_i| + q_i / 2 (z_i - c_i)^2, so that the lowest value of a box is known
exactly, entry by entry. The truth: no point of the scope is lower than the gap says, the lowest
point is inside, and no farther from x than `within`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import forged, made, verdict
from benchmarks.adversary.mutations import changed
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs

#: Values of the black box are rounded.
TOLERANCE = Fraction(1, 10**9)

ARRAYS = ("points", "weights", "widths", "x")
NUMBERS = ("gap", "eps", "within", "radius", "curvature", "delta")


@dataclass(frozen=True)
class Separable:
    """A sum of functions of one variable each."""

    a: list[float]
    k: list[float]
    q: list[float]
    c: list[float]
    #: Answers there are NaN.
    hole: float

    def __call__(self, z: Any) -> float:
        a, k, q, c = map(np.array, (self.a, self.k, self.q, self.c))
        if z[0] == self.hole:
            return math.nan
        return float((a * np.abs(z - k) + q / 2 * (z - c) ** 2).sum())

    def gradient(self, z: Any) -> Any:
        a, k, q, c = map(np.array, (self.a, self.k, self.q, self.c))
        return a * np.sign(z - k) + q * (z - c)

    def one(self, i: int, t: Fraction) -> Fraction:
        a, k, q, c = (Fraction(row[i]) for row in (self.a, self.k, self.q, self.c))
        return a * abs(t - k) + q / 2 * (t - c) ** 2

    def lowest(self, i: int, low: Fraction | None, high: Fraction | None) -> list[Fraction]:
        """Return the places where entry i may be lowest between two ends; [] if it falls for ever.

        The ends come first.
        """
        a, k, q, c = (Fraction(row[i]) for row in (self.a, self.k, self.q, self.c))
        if low is None or high is None:
            if q < 0 or (q == 0 and a == 0):
                return []
            return [k, c + a / q, c - a / q] if q else [k]
        inside = [k, *([c + a / q, c - a / q] if q else [])]
        return [low, high, *(t for t in inside if low < t < high)]


def wrong(f: Separable, cert: Any) -> str:
    """Say what is false about a claim; nothing if it is true."""
    x = [Fraction(v) for v in cert.x.tolist()]
    drop, edge, square = Fraction(0), False, Fraction(0)
    for i, (t, r) in enumerate(zip(x, map(Fraction, cert.widths.tolist()))):
        ends = (None, None) if cert.scope == "global" else (t - r, t + r)
        places = f.lowest(i, *ends)
        if not places:
            return "f has no lowest point"
        best = min(places, key=lambda place: f.one(i, place))
        drop += f.one(i, t) - f.one(i, best)
        edge = edge or (ends[0] is not None and best in ends and len(places) > 1)
        square += (best - t) ** 2
    if drop > Fraction(cert.gap) + TOLERANCE:
        return f"f falls by {float(drop)!r}"
    if cert.strict and edge and drop > TOLERANCE:
        return "the lowest point is on a face"
    if (
        cert.within is not None
        and square > Fraction(cert.within) ** 2 + TOLERANCE
        and drop > TOLERANCE
    ):
        return f"the lowest point is {math.sqrt(square)!r} away"
    # A strongly convex function has one minimiser.
    return "more is unique than is shown" if cert.unique and min(f.q) <= 0 else ""


def honest(rng: Rng, f: Separable, x: Any, r: Any, curvature: float) -> Any:
    """State what one cut a face, and one at x, show."""
    d, rho = x.size, max(0.0, -curvature)
    points = [x + sign * r[i] * np.eye(d)[i] for i in range(d) for sign in (-1.0, 1.0)]
    points.append(x)
    weights = np.eye(2 * d + 1)
    if rng.random() < 0.5:  # in another order
        points, weights = points[::-1], weights[:, ::-1].copy()
    steep = f.gradient(x)
    gap = float(np.abs(steep) @ r + rho / 2 * (r @ r)) * (1 + 1e-9) + 1e-12
    convex = curvature >= 0 and rng.random() < 0.5
    return made(
        gs.MinimumCertificate, x=x, exact_pivot=tuple(map(Fraction, x.tolist())), delta=0.0,
        eps=float(np.linalg.norm(steep)) * (1 + 1e-9), radius=math.inf if convex else r.min(),
        gap=gap, within=float(np.linalg.norm(r)) * (1 + 2.0**-30), strict=True,
        scope="global" if convex else "box", curvature=curvature, widths=r,
        points=np.array(points), weights=weights, label="conditional",
    )  # fmt: skip


def _changed(rng: Rng, cert: Any) -> dict[str, Any]:
    what = int(rng.integers(4))
    if what == 0:
        name = str(rng.choice(ARRAYS))
        return {name: changed(name, getattr(cert, name), rng)}
    if what == 1:
        name = str(rng.choice(NUMBERS))
        factor = float(rng.choice([0.0, 0.5, 0.99, 2.0, -1.0, math.nan]))
        return {name: (getattr(cert, name) or 0.5) * factor}
    if what == 2:
        name = str(rng.choice(["strict", "unique"]))
        return {name: not getattr(cert, name)}
    label = str(rng.choice(["certified", "conditional", "estimated"]))
    scope = str(rng.choice(["box", "global", "ball"]))
    return {"label": label} if rng.random() < 0.5 else {"scope": scope, "radius": math.inf}


def declared_curvature(rng: Rng, seen: Seen) -> None:
    d = int(rng.integers(1, 4))
    k = rng.integers(-2, 3, d).astype(float)
    q = rng.choice([1.0, 0.5, 0.0, -0.25, -1.0], d)
    c, a = k + rng.choice([0.0, 0.25, -0.5], d), rng.choice([1.0, 2.0, 4.0, 0.0], d)
    off = float(rng.choice([0.0, 0.0, 1.0]))
    x, r = k + off * rng.choice([0.0, 2.0**-10, 2.0**-4], d), rng.choice([0.5, 0.125, 1.0], d)
    hole = float(x[0] + r[0]) if rng.random() < 0.05 else math.nan
    f = Separable(a.tolist(), k.tolist(), q.tolist(), c.tolist(), hole)
    true = float(q.min())
    curvature = true + float(rng.choice([0.0, 0.0, 0.0, -0.5, 0.5, 2.0]))
    cert = honest(rng, f, x, r, curvature)
    claims = [(cert, "honest")] + [
        (forged(cert, **fields), str(fields)) for fields in (_changed(rng, cert) for _ in range(4))
    ]
    for claim, said in claims:
        if claim is None:
            seen.silent()
            continue
        both = rng.random() < 0.3
        function: Any = (lambda z: (f(z), f.gradient(z)), True) if both else (f, f.gradient)
        ok, label = verdict(claim, *function)
        false = wrong(f, claim) if ok else ""
        lie = "declared curvature" if ok and claim.curvature > true else None
        seen.claim(ok, label, not false, f"{said}: {false}", belief=lie)


ATTACK = Attack(
    "declared-curvature",
    "minima of black boxes inside a box, by cuts under a declared curvature; fields changed",
    weight=4,
    one=declared_curvature,
)
