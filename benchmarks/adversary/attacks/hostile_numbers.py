"""Numbers at the ends of what arithmetic has: long digits, beyond float64, irrational values.

f = s w_0 + |w_0 - p| + a part whose numbers are hard and which does not depend on w_0: every
subgradient is at least s - 1 long. Then constraints whose values are irrational at the pivot: a
multiplier on one of them says that it is exactly at its limit, which it is not.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import forged, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs

W = gs.Variable(3)


def _squares(u: Any, times: int) -> Any:
    for _ in range(times):
        u = gs.square(u)
    return u


#: Parts whose slope in w_0 is 0 at pivots (p, q, r) with q, r of any size.
PARTS: dict[str, Any] = {
    "plain": lambda: 0.0 * gs.sum(W),
    "long digits": lambda: gs.abs(_squares(W[1], 7)) * 2.0**-90,
    "too many digits": lambda: gs.abs(_squares(W[1], 16)) * 0.0,
    "beyond float64": lambda: (W[1] * 1e300) * 1e300,
    "tiny": lambda: gs.abs((W[1] * 1e-300) * 1e-300),
    "norm": lambda: gs.norm2(W[1:]),
    "norm of constants": lambda: gs.norm2(0.0 * W),
    "norm inside": lambda: gs.abs(gs.norm2(W[1:]) - 1.0),
    "logarithm": lambda: gs.abs(gs.softplus(W[1]) - 0.5),
    "exactly half a logarithm": lambda: gs.abs(gs.softplus(0.0 * W[1]) - gs.softplus(0.0 * W[2])),
    "bend": lambda: gs.abs(gs.pseudo_huber(W[1])),
    "division": lambda: gs.abs(W[1] / 3 + W[2] / 7),
    "maximum": lambda: gs.max(gs.concatenate([W[1:], 2.0 * W[1:]])),
    "dead": lambda: gs.relu(W[1:2] * gs.relu(W[2:] * 0.0 - 1.0)).sum(),
}


def hostile_numbers(rng: Rng, seen: Seen) -> None:
    name = list(PARTS)[int(rng.integers(len(PARTS)))]
    p = Fraction(int(rng.integers(-9, 10)), int(rng.choice([1, 3, 8])))
    others = [
        Fraction(0), Fraction(1), Fraction(-1, 7), Fraction(1, 10**400), Fraction(10) ** 40,
        Fraction(3) ** 200, Fraction(2) ** -1074,
    ]  # fmt: skip
    pivot = [p, others[int(rng.integers(len(others)))], others[int(rng.integers(len(others)))]]
    slope = float(rng.choice([1.5, 4.0, 2.0**40]))
    if p.denominator == 1 or p.denominator == 8:
        kink = gs.abs(W[0] - float(p))
    else:
        kink = gs.abs(3.0 * W[0] - float(3 * p)) / 3
    F = slope * W[0] + kink + PARTS[name]()
    least = slope - 1.0
    x = np.array([float(min(max(q, Fraction(-(2**1000))), Fraction(2**1000))) for q in pivot])
    ways = rng.choice([1.0, -1.0, 0.5, 2.0**-1074, 1e300], (3, 3))
    seen.note(f"{name}, pivot {[str(q)[:30] for q in pivot]}, slope {slope}")
    claim: Any = None
    try:
        claim = gs.NearCertificate.prove(F, x, pivot, ways, rng.integers(1, 4, 3).astype(float))
    except gs.GoldsteinError as refusal:
        seen.silent(str(refusal))
    if claim is not None:
        ok, label = verdict(claim, F)
        seen.claim(ok, label, claim.eps >= least * (1 - 1e-9), claim.summary(), own=True)
        for fields in ({}, {"weights": claim.weights * 2.0**-1000}, {"delta": np.inf}):
            low = forged(claim, eps=least * float(rng.choice([0.0, 0.5, 1 - 1e-9])), **fields)
            seen.claim(*verdict(low, F), False, f"{claim.summary()}, but the truth is {least}")
    _constrained(rng, seen, F, p, slope)


def _constrained(rng: Rng, seen: Seen, F: Any, p: Fraction, slope: float) -> None:
    """A multiplier on a constraint that is not at its limit, or only nearly."""
    if p.denominator == 3:
        return
    zero = float(p)
    base = slope * W[0] + 0.0 * gs.sum(W)
    hidden = [
        # name, constraint <= level, whether a multiplier on it is true
        ("softplus", gs.softplus(zero - W[0]), 0.6931471805599453),
        ("norm", gs.norm2(W - np.array([zero, 1.0, 1.0])) - (W[0] - zero), 1.4142135623730951),
        ("pseudo_huber", gs.pseudo_huber(W[1] + 1.0) - (W[0] - zero), 0.41421356237309515),
        ("exact", zero - W[0], 0.0),
        ("tied", gs.abs(W[1]) + (zero - W[0]), 0.0),
        ("norm at 0", gs.norm2(W[1:]) + (zero - W[0]), 0.0),
        ("largest", gs.max(gs.concatenate([zero - W[:1], (zero - W[:1]) / 3 - W[1:2]])), 0.0),
    ]
    what, constraint, level = hidden[int(rng.integers(len(hidden)))]
    true = level == 0.0
    x = np.array([zero, 0.0, 0.0])
    weight = slope * (2.0 if what == "softplus" else 1.0)
    claim = gs.NearKKTCertificate(
        x=x, exact_pivot=tuple(Fraction(a) for a in x.tolist()), delta=0.0, eps=1e-9 * slope,
        directions=[[1.0, 0.5, 0.25]], weights=[1.0],
        constraint_directions=[[0.5, 1.0, -1.0], [0.5, -1.0, 1.0]], constraint_index=[0, 0],
        constraint_weights=[weight / 2, weight / 2], normal=np.zeros(3), multipliers=[weight],
    )  # fmt: skip
    for limit in (level, np.nextafter(level, 9.0), level + 1.0):
        ok, label = verdict(claim, base, constraints=[constraint <= limit])
        exact = true and limit == level
        seen.claim(ok, label, None if exact else False, f"{what} <= {limit!r}: multiplier {weight}")


ATTACK = Attack(
    "hostile-numbers",
    "digits without end, gradients beyond float64, limits that are reached only nearly",
    weight=2,
    one=hostile_numbers,
)
