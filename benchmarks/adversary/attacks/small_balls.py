"""Balls too small to look around in: claims of every kind that rest on one point on a kink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.adversary.ask import five, forged
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs


def small_balls(rng: Rng, seen: Seen) -> None:
    """f rises along every coordinate; beside its kink the program says so, on it it says 0."""
    dim = int(rng.integers(1, 4))
    kink = rng.choice([0.0, 1.0, -2.5, 1e6, 1e-3], dim)
    slopes = rng.uniform(0.5, 2.0, (2, dim))

    def fun(x: Any) -> float:
        z = x - kink
        return float((slopes[1] * np.maximum(z, 0.0) - slopes[0] * np.maximum(-z, 0.0)).sum())

    def jac(x: Any) -> Any:
        return slopes[1] * (x > kink) + slopes[0] * (x < kink)

    true = float(np.linalg.norm(slopes.min(axis=0)))
    size = float(np.abs(kink).max())
    delta = float(rng.choice([0.0, 5e-324, 1e-300, 1e-17 * size, 1e-16 * size, 2**-52 * size]))
    maker = MAKERS[int(rng.integers(len(MAKERS)))]
    claim, limits, what = maker(fun, jac, kink)
    point = kink[None]
    claim = forged(
        claim, x=kink, delta=delta, eps=0.0, points=point, gradients=0.0 * point,
        weights=np.ones(1),
    )  # fmt: skip
    if claim is None:
        seen.silent("cannot be stated")
        return
    accepted, _, label = five(claim, fun, jac, **limits)
    said = f"{what}, eps = 0, delta = {delta!r} at {kink.tolist()}; the truth is {true!r}"
    seen.claim(accepted > 0, label, False, said)


Made = tuple[Any, dict[str, Any], str]


def _plain(fun: Any, jac: Any, kink: Any) -> Made:
    return gs.certify(fun, kink + 1.0, jac, delta=1e-3, rng=0), {}, "goldstein"


def _bounded(fun: Any, jac: Any, kink: Any) -> Made:
    limits = {"bounds": [(float(k) - 5.0, float(k) + 5.0) for k in kink]}
    return gs.certify(fun, kink + 1.0, jac, delta=1e-3, rng=0, **limits), limits, "kkt, bounds"


def _limited(fun: Any, jac: Any, kink: Any) -> Made:
    slack = {
        "type": "ineq", "fun": lambda x: 1e9 - np.abs(x).sum(),
        "jac": lambda x: -np.sign(x)[None],
    }  # fmt: skip
    limits = {"constraints": [slack]}
    claim = gs.certify(fun, kink + 1.0, jac, delta=1e-3, rng=0, **limits)
    return claim, limits, "kkt, a constraint far away"


def _plus(fun: Any, jac: Any, kink: Any) -> Made:
    term = gs.prox.box(-1e9, 1e9)
    base = gs.certify(fun, kink + 1.0, jac, delta=1e-3, rng=0)
    claim = gs.PlusCertificate(
        base.x, base.delta, base.eps, base.points, base.gradients, base.weights,
        np.zeros(kink.size), term,
    )  # fmt: skip
    return claim, {"plus": term}, "plus"


MAKERS: tuple[Callable[[Any, Any, Any], Made], ...] = (_plain, _bounded, _limited, _plus)

ATTACK = Attack(
    "small-balls",
    "claims with a ball too small to look around in, on a kink where the program says 0",
    weight=4,
    one=small_balls,
)
