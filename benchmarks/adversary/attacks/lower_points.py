"""Refutations of black boxes: f seems to be lower at another point, by rounding or not at all.

f = K + sum_i a_i z_i + b_i z_i^2 with z = (x + C) - C, or in single precision. How much lower f is
without rounding is a rational number; what values show is wrong by up to some units of K or of C.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import honest, made, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs


class Function:
    """A quadratic function, as a program computes it and as it is."""

    def __init__(self, rng: Rng, dim: int) -> None:
        self.a = rng.standard_normal(dim) * (rng.random() < 0.7)
        self.b = rng.standard_normal(dim) * 10.0 ** rng.uniform(-2, 2)
        self.offset = float(rng.choice([0.0, 1.0, 10.0 ** rng.uniform(3, 15)]))
        self.shift = float(rng.choice([0.0, 0.0, 10.0 ** rng.uniform(3, 12)]))
        self.type = np.float32 if rng.random() < 0.15 else np.float64

    def _z(self, x: Any) -> Any:
        shift = self.type(self.shift)
        return (np.asarray(x, dtype=self.type) + shift) - shift

    def value(self, x: Any) -> float:
        z, a, b = self._z(x), self.a.astype(self.type), self.b.astype(self.type)
        return float(self.type(self.offset) + a @ z + b @ (z * z))

    def gradient(self, x: Any) -> Any:
        z = self._z(x)
        return self.a.astype(self.type) + self.type(2) * self.b.astype(self.type) * z

    def exact(self, x: Any) -> Fraction:
        """Return the value without the offset."""
        rows = zip(*(map(Fraction, v.tolist()) for v in (np.asarray(x, float), self.a, self.b)))
        return sum((a * z + b * z * z for z, a, b in rows), Fraction(0))

    def __str__(self) -> str:
        return f"{self.offset!r} + {self.a} z + {self.b} z^2, C = {self.shift!r}, {self.type}"


def lower_points(rng: Rng, seen: Seen) -> None:
    dim = int(rng.integers(1, 5))
    f = Function(rng, dim)
    seen.note(str(f))

    def false(claim: Any) -> str:
        if not isinstance(claim, gs.Refutation) or f.type is np.float32:
            return ""  # numbers of f itself are rounded: which function it is, nobody knows
        fall = f.exact(claim.x) - f.exact(claim.point)
        return "" if fall >= Fraction(claim.fall) else f"f falls by {float(fall)!r}"

    if rng.random() < 0.2:
        delta = float(10.0 ** rng.uniform(-8, -1))
        ask: dict[str, Any] = {"delta": delta, "stationarity": "minimum", "rng": 0}
        start = np.zeros(dim) if rng.random() < 0.7 else rng.standard_normal(dim)
        box = f.value, f.gradient
        honest(seen, lambda: gs.certify(f.value, start, f.gradient, **ask), box, false)
        return
    x = rng.standard_normal(dim) * 10.0 ** rng.uniform(-3, 3)
    way = rng.standard_normal(dim) * 10.0 ** rng.uniform(-14, 0)
    if rng.random() < 0.5:
        way = -np.sign(f.gradient(x)) * np.abs(way)
    point = x + way
    fall = f.value(x) - f.value(point)
    fall = abs(fall) * float(rng.choice([0.5, 0.99, 1.0, 1.0, 1.01, 2.0])) or 5e-324
    claim = made(
        gs.Refutation, x=x, point=point, direction=way, fall=fall, label="conditional",
        exact_pivot=tuple(map(Fraction, x.tolist())),
    )  # fmt: skip
    if claim is None:
        seen.silent()
        return
    ok, label = verdict(claim, f.value, f.gradient)
    wrong = false(claim)
    seen.claim(ok, label, not wrong, f"a fall of {fall!r} from {x} to {point}; {wrong}")


ATTACK = Attack(
    "lower-points",
    "points that are said to be lower, where values are rounded: refutations of black boxes",
    weight=3,
    one=lower_points,
)
