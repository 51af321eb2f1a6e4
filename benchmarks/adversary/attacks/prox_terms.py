"""Claims about f + h with subgradients that are none, just outside, or at points h does not allow.

f is linear, so its Goldstein set is one vector g; what subgradients of h are within delta of x is
known coordinate by coordinate, group by group or by singular values. The truth is the distance
between -g and all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, five, honest, made
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs


@dataclass
class Term:
    """A term, a point and subgradients to claim, and the distance of a vector from the truth."""

    term: Any
    x: Any
    #: Lower bound of |g + v| over all subgradients v of h within delta of x.
    least: Callable[[Any, Any, float], float]
    #: A subgradient of h at x.
    inside: Any


def _l1(rng: Rng, dim: int) -> Term:
    weight = rng.uniform(0.1, 2.0, dim)
    x = rng.choice([0.0, 0.0, 1.0, -2.0, 1e-9, 1e-3], dim)

    def least(g: Any, x: Any, delta: float) -> float:
        slack = np.maximum(np.abs(g) - weight, 0.0)
        return float(np.linalg.norm(np.where(np.abs(x) > delta, g + weight * np.sign(x), slack)))

    v = np.where(x == 0, weight * rng.uniform(-1, 1, dim), weight * np.sign(x))
    return Term(gs.prox.l1(weight), x, least, v)


def _box(rng: Rng, dim: int) -> Term:
    lower, upper = -rng.uniform(0.5, 1.0, dim), rng.uniform(0.5, 1.0, dim)
    x = np.where(rng.random(dim) < 0.4, upper, np.where(rng.random(dim) < 0.5, lower, 0.1))

    def least(g: Any, x: Any, delta: float) -> float:
        outside = np.maximum(np.maximum(x - upper, lower - x), 0.0)
        if np.linalg.norm(outside) > delta:
            return math.inf
        left = np.where(x - lower <= delta, np.minimum(g, 0.0), g)  # v <= 0 at lower bounds
        left = np.where(upper - x <= delta, np.maximum(g, 0.0), left)
        both = (x - lower <= delta) & (upper - x <= delta)
        return float(np.linalg.norm(np.where(both, 0.0, left)))

    v = np.where(x == upper, 1.0, np.where(x == lower, -1.0, 0.0)) * rng.uniform(0, 2, dim)
    return Term(gs.prox.box(lower, upper), x, least, v)


def _groups(rng: Rng, dim: int) -> Term:
    weight, cut = float(rng.uniform(0.2, 2.0)), max(1, dim // 2)
    groups = [list(range(cut)), list(range(cut, dim))][: 1 + (dim > cut)]
    x = rng.standard_normal(dim)
    for group in groups:
        if rng.random() < 0.5:
            x[group] = 0.0

    def least(g: Any, x: Any, delta: float) -> float:
        parts = []
        for group in groups:
            length = float(np.linalg.norm(x[group]))
            short = max(float(np.linalg.norm(g[group])) - weight, 0.0)
            if length <= 4 * delta:
                parts.append(short)
                continue
            # Directions of points within delta of x turn by an angle of sine delta / length.
            turned = 2.0 * weight * delta / length
            there = float(np.linalg.norm(g[group] + weight * x[group] / length))
            parts.append(max(short, there - turned))
        return float(np.linalg.norm(parts))

    v = np.zeros(dim)
    for group in groups:
        length = float(np.linalg.norm(x[group]))
        v[group] = weight * x[group] / length if length else 0.9 * weight / len(group)
    return Term(gs.prox.group_l2(weight, groups), x, least, v * (1 - 1e-15))


def _simplex(rng: Rng, dim: int) -> Term:
    x = rng.choice([0.0, 0.25, 0.5], dim)
    x[0] = 1.0
    total = float(x.sum())

    def least(g: Any, x: Any, delta: float) -> float:
        if np.linalg.norm(np.minimum(x, 0.0)) > delta or abs(x.sum() - total) > delta * dim:
            return math.inf
        # v = c - s with s >= 0, and s = 0 where x is further than delta from 0.
        free = x > delta
        if not free.any():
            return 0.0
        best = math.inf
        for c in np.linspace(-np.abs(g).max(), np.abs(g).max(), 2001):
            left = np.where(free, g + c, np.minimum(g + c, 0.0))
            best = min(best, float(np.linalg.norm(left)))
        return best - float(np.abs(g).max()) / 1000.0 * math.sqrt(dim)

    v = np.where(x > 0, 0.7, 0.7 - rng.uniform(0, 1, dim))
    return Term(gs.prox.simplex(total), x, least, v)


def _nuclear(rng: Rng, dim: int) -> Term:
    """A diagonal matrix turned by a rotation: its singular values are known."""
    weight, size = float(rng.uniform(0.2, 2.0)), max(2, min(dim, 3))
    left, _ = np.linalg.qr(rng.standard_normal((size, size)))
    values = rng.choice([0.0, 1.0, 2.0], size)
    X = (left * values) @ left.T

    def least(g: Any, x: Any, delta: float) -> float:
        """|V| <= weight in the spectral norm, wherever one looks."""
        singular = np.linalg.svd(g.reshape(size, size), compute_uv=False)
        return float(np.linalg.norm(np.maximum(singular - weight, 0.0))) * (1 - 1e-9)

    shares = np.where(values > 0, 1.0, rng.uniform(-1, 1, size))
    V = (left * (weight * shares)) @ left.T * (1 - 1e-14)
    return Term(gs.prox.nuclear(weight, (size, size)), X.ravel(), least, V.ravel())


TERMS = (_l1, _box, _groups, _simplex, _nuclear)


def prox_terms(rng: Rng, seen: Seen) -> None:
    of = TERMS[int(rng.integers(len(TERMS)))](rng, int(rng.integers(1, 6)))
    delta = float(10.0 ** rng.uniform(-8, -2))
    dim = of.x.size
    v, x = of.inside.copy(), of.x.copy()
    deed = int(rng.integers(7))
    at = int(rng.integers(dim))
    step = float(10.0 ** rng.uniform(-12, 0)) * float(rng.choice([-1.0, 1.0]))
    if deed == 1:
        v[at] += step  # perhaps outside
    elif deed == 2:
        v = v * (1.0 + step)
    elif deed == 3:
        x[at] += step  # perhaps off the kink, or outside the domain
    elif deed == 4:
        v = -v
    elif deed == 5:
        v = rng.standard_normal(dim)
    elif deed == 6:  # outside a simplex, perhaps, and the sum is what it was
        x[at] += step
        x[at - 1] -= step
    g = -v
    seen.note(f"{of.term!r}, x = {x.tolist()}, v = {v.tolist()}, delta = {delta!r}")

    def fun(y: Any) -> float:
        return float(g @ y)

    def jac(y: Any) -> Any:
        return g.copy()

    def false(claim: Any) -> str:
        true = of.least(g, claim.x, claim.delta)
        return f"the truth is {true!r}" if below(claim.eps, true, 1e3) else ""

    if rng.random() < 0.15 and deed < 3:
        ask: dict[str, Any] = {"eps": 1e-3, "delta": delta, "rng": 0, "max_calls": 200}
        run = lambda: gs.minimize(fun, x, jac, plus=of.term, **ask)  # noqa: E731
        honest(seen, run, (fun, jac), false, plus=of.term)
        return
    claim = made(
        gs.PlusCertificate, x=x, delta=delta, eps=float(10.0 ** rng.uniform(-12, -3)),
        points=x[None], gradients=g[None], weights=np.ones(1), subgradient=v, term=of.term,
    )  # fmt: skip
    if claim is None:
        seen.silent("cannot be stated")
        return
    accepted, _, label = five(claim, fun, jac, plus=of.term)
    seen.claim(accepted > 0, label, not false(claim), f"eps = {claim.eps!r}: {false(claim)}")


ATTACK = Attack(
    "prox-terms",
    "f + h: forged subgradients, just outside the subdifferential, x just outside the domain",
    weight=8,
    one=prox_terms,
)
