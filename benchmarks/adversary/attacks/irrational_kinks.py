"""Near claims at kinks whose places are irrational, known by a box; and at ties of sorted entries.

f = a |g(u) - level| + b u + c |v - u| has its kink where g(u) = level: at log 3, pi / 6, ... The
last part is written as a maximum, a norm, or a sum of sorted entries. How stationary f is beside
the kink, and how far the kink is from x, is known to 60 digits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from benchmarks.adversary.ask import below, forged, made, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen
from scipy.optimize import nnls

import goldstein as gs
from goldstein import calculus

#: Digits of the places of kinks.
DIGITS = 60

#: Second derivatives of the functions where they are used, at most.
BENT = 40.0

#: Expression, level, where it is reached, slope there.
SMOOTH: dict[str, tuple[Any, float, Any, Any]] = {
    "exp": (np.exp, 3.0, lambda: mpmath.log(3), mpmath.exp),
    "sin": (np.sin, 0.5, lambda: mpmath.asin(0.5), mpmath.cos),
    "cos": (np.cos, 0.25, lambda: mpmath.acos(0.25), lambda t: -mpmath.sin(t)),
    "tanh": (np.tanh, 0.5, lambda: mpmath.atanh(0.5), lambda t: 1 - mpmath.tanh(t) ** 2),
    "arctan": (np.arctan, 0.5, lambda: mpmath.tan(0.5), lambda t: 1 / (1 + t * t)),
    "log": (np.log, 0.5, lambda: mpmath.exp(0.5), lambda t: 1 / t),
    "sqrt": (np.sqrt, 1.5, lambda: mpmath.mpf(2.25), lambda t: 1 / (2 * mpmath.sqrt(t))),
    "reciprocal": (lambda u: 1 / u, 0.75, lambda: mpmath.mpf(4) / 3, lambda t: -1 / t**2),
    "square": (lambda u: u * u, 2.0, lambda: mpmath.sqrt(2), lambda t: 2 * t),
    "nothing": (lambda u: u, 0.75, lambda: mpmath.mpf(0.75), lambda t: mpmath.mpf(1)),
}  # fmt: skip

#: |d|, written in several ways.
MODULI: tuple[Any, ...] = (
    calculus.abs,
    lambda d: calculus.max(calculus.stack([d, -d])),
    lambda d: calculus.norm2(calculus.stack([d, 0.0 * d])),
    lambda d: calculus.sum_largest(calculus.stack([d, -d, 0.0 * d]), 1),
    lambda d: calculus.sum_largest(calculus.stack([-d, 0.0 * d, d]), 2),
    lambda d: -calculus.trimmed_sum(calculus.stack([0.0 * d, d, -d]), 0, 2),
)


class Case:
    """One function; `least` is how stationary it can be within a ball."""

    def __init__(self, rng: Rng) -> None:
        self.name = str(rng.choice(list(SMOOTH)))
        function, level, root, slope = SMOOTH[self.name]
        with mpmath.workdps(DIGITS):
            self.root = root()
            self.slope = float(slope(self.root))
        self.a, self.c = (float(v) for v in rng.integers(1, 6, 2) / 2)
        # Stationary at the kink, or not by some part of its slope.
        self.b = float(rng.choice([0.0, 0.5, 0.9, 1.5, 2.5])) * self.a * abs(self.slope)
        way, w = int(rng.integers(len(MODULI))), gs.Variable(2)
        self.f = self.a * calculus.abs(function(w[0]) - level) + self.b * w[0]
        self.f = self.f + self.c * MODULI[way](w[1] - w[0])
        self.text = f"{self.a} |{self.name}(u) - {level}| + {self.b!r} u + {self.c} |v - u| ({way})"

    def _shortest(self, gap: float) -> float:
        """Return the least |(gap - t, t)| for |t| <= c."""
        t = min(0.5 * gap, self.c)
        return math.hypot(gap - t, t)

    def least(self, x: Any, delta: float) -> float:
        """Return a lower bound of what a subgradient within delta of x can be."""
        with mpmath.workdps(DIGITS):
            away = abs(mpmath.mpf(float(x[0])) - self.root)
            reached = away <= mpmath.mpf(delta)
        reach, steep = float(away) + delta, self.a * abs(self.slope)
        beside = [abs(self.b + s * self.a * self.slope) for s in (1, -1)]
        found = self._shortest(max(0.0, min(beside) - BENT * self.a * reach))
        return min(found, self._shortest(max(0.0, self.b - steep))) if reached else found

    def claim(self, rng: Rng) -> Any:
        """Return a near claim with a box of some size around the kink."""
        x = np.full(2, float(self.root))
        pivot = tuple(map(Fraction, x.tolist()))
        x[0] += float(rng.choice([0.0, 1.0, -1.0])) * 10.0 ** rng.uniform(-7, -3)
        signs = np.array([[s, t] for s in (1.0, -1.0) for t in (1.0, -1.0)])
        ways = np.array([[s, s + 2.0 * t] for s, t in signs])
        up = signs[:, 0] * self.a * self.slope * np.sign(self.slope)
        rows = np.array([self.b + up - self.c * signs[:, 1], self.c * signs[:, 1]]).T
        scale = 1e3 * np.abs(rows).max()
        weights, _ = nnls(np.vstack([rows.T, np.full(4, scale)]), np.array([0.0, 0.0, scale]))
        eps = float(np.linalg.norm(weights @ rows) / weights.sum()) + 1e-9
        if self.name in ("nothing", "sqrt"):  # the kink is at a float
            radii = switches = None
        else:
            radii = np.full(2, 2.0**-48) * np.array([1.0, 3.0])
            switches = self._switches()
        away = float(np.linalg.norm(x - [float(q) for q in pivot]))
        return made(
            gs.NearCertificate, x=x, exact_pivot=pivot, delta=away * (1 + 1e-12) + 1e-13, eps=eps,
            directions=ways, weights=weights, gradients=np.zeros_like(ways), errors=np.zeros(4),
            radii=radii, switches=switches,
        )  # fmt: skip

    def _switches(self) -> Any:
        """Return kinks of the two nodes that have some: the last entries that may be tied."""
        rows = []
        for k, node in enumerate(self.f.program().nodes):
            if node.name == "piecewise":
                rows.append([k, 0, 0])
            elif node.name == "norm2":
                rows += [[k, 0, -1], [k, 1, -1]]
            elif node.name in ("max", "order"):
                rows += [[k, 0, j] for j in range(1, node.columns)]
        return np.array(rows)


def _forgeries(rng: Rng, case: Case, honest: Any) -> list[tuple[str, Any]]:
    away = float(rng.choice([0.5, 0.9, 1 - 1e-9])) * honest.delta
    step = Fraction(1, int(rng.choice([2**10, 2**20, 2**44, 2**52]))) * int(rng.choice([-1, 1]))
    moved = tuple(q + step * int(rng.integers(2)) for q in honest.exact_pivot)
    true = case.least(honest.x, honest.delta)
    found = [
        ("eps lowered", forged(honest, eps=float(rng.choice([0.5, 0.99])) * true)),
        ("eps 0", forged(honest, eps=float(rng.choice([0.0, -1.0, math.nan])))),
        ("delta lowered", forged(honest, delta=away)),
        ("the pivot moved", forged(honest, exact_pivot=moved, delta=honest.delta + 2.0**-8)),
        ("weights", forged(honest, weights=rng.random(4))),
        ("ways", forged(honest, directions=rng.integers(-1, 2, (4, 2)).astype(float))),
        ("x moved", forged(honest, x=honest.x + rng.choice([1e-3, 1e-9], 2))),
    ]
    if honest.radii is not None:
        rows, k = honest.switches, int(rng.integers(len(honest.switches)))
        wrong = rows + rng.integers(-1, 2, rows.shape)
        part, wild = 10.0 ** rng.uniform(-6, 9), float(rng.choice([-1.0, math.nan, math.inf]))
        found += [
            ("radii", forged(honest, radii=part * honest.radii, delta=honest.delta + part)),
            ("a radius 0", forged(honest, radii=honest.radii * [1.0, 0.0])),
            ("a radius that is none", forged(honest, radii=honest.radii * [1.0, wild])),
            ("no radius", forged(honest, radii=0.0 * honest.radii)),
            ("a switch less", forged(honest, switches=np.delete(rows, k, axis=0))),
            ("a switch twice", forged(honest, switches=rows[[*range(len(rows)), k]])),
            ("another switch", forged(honest, switches=wrong)),
            ("another order", forged(honest, switches=rng.permutation(rows))),
            ("no box", forged(honest, radii=None, switches=None)),
        ]
    return found


def irrational_kinks(rng: Rng, seen: Seen) -> None:
    case = Case(rng)
    honest = case.claim(rng)
    seen.note(case.text)
    if honest is None:
        seen.silent()
        return
    deeds = _forgeries(rng, case, honest)
    chosen = rng.choice(len(deeds), 4, replace=False).tolist()
    for deed, claim in [("as it was made", honest), *(deeds[k] for k in chosen)]:
        if claim is None:
            seen.silent()
            continue
        true = case.least(claim.x, claim.delta)
        ok, label = verdict(claim, case.f)
        said = f"{deed}: eps = {claim.eps!r}, delta = {claim.delta!r}; truth at least {true!r}"
        seen.claim(ok, label, not below(claim.eps, true), said)


ATTACK = Attack(
    "irrational-kinks",
    "near claims at kinks whose places are irrational, and at ties of sorted entries; boxes forged",
    weight=4,
    one=irrational_kinks,
)
