"""The shortest vector of a Clarke subdifferential, searched in float64.

The answer is evidence: directions out of the point, and weights. Nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.sides import Point, Side
from goldstein.construction.near.kinks import Kinks, LocalModel, floats
from goldstein.errors import NotCertifiableError
from goldstein.numerics.budget import Budget
from goldstein.numerics.hull import Hull, min_norm_weights

#: Directions against the shortest vector, generated one after the other.
ROUNDS = 200


@dataclass
class Evidence:
    """Directions out of a point, and how to weigh the limits of gradients along them."""

    directions: Matrix
    weights: Vector
    eps: float

    @classmethod
    def of(cls, directions: list[Vector], weights: Vector, shortest: Vector) -> Evidence:
        """Return the directions that have weight."""
        used = np.flatnonzero(weights > 0)
        return cls(np.array(directions)[used], weights[used], float(np.linalg.norm(shortest)))


def box_shares(model: LocalModel) -> Vector:
    """Return the shares in [0, 1] that make `base + shares @ terms` shortest."""
    terms = model.terms
    if not np.any(terms):
        return np.zeros(len(terms))
    return np.asarray(lsq_linear(terms.T, -model.base, bounds=(0.0, 1.0), method="bvls").x)


def generic_evidence(
    form: Kinks,
    at: Point,
    *batches: Matrix,
    eps: float = 0.0,
    rng: np.random.Generator | None = None,
    budget: Budget | None = None,
) -> Evidence | None:
    """Weigh the limits of gradients along directions, whatever kinks there are.

    A batch of directions is tried only if those before it do not suffice. With a generator,
    directions against the shortest vector are added as long as they help: for a convex function
    the limit along such a direction is the most useful one there is.
    """
    budget = budget or Budget()
    point = floats(at.y)
    hull = Hull(point.size)
    usable: list[Vector] = []
    seen: set[bytes] = set()

    def offer(some: Iterable[Vector]) -> bool:
        """Take the directions that show something new; return whether there was one."""
        before = len(usable)
        for v in some:
            budget.spend()
            try:
                gradient = form.gradient(point, Side(at, v).pieces)
            except NotCertifiableError:  # this direction stays on a kink
                continue
            key = gradient.tobytes()
            if key not in seen and np.isfinite(gradient).all():
                seen.add(key)
                usable.append(v)
                hull.add(gradient)
        return len(usable) > before

    shortest = np.full(point.size, np.inf)
    for batch in batches:
        if float(np.linalg.norm(shortest)) > 0.5 * eps and offer(batch):
            weights, shortest = hull.solve()
    if not usable:
        return None
    for _ in range(ROUNDS if rng is not None else 0):
        budget.spend()
        length = float(np.linalg.norm(shortest))
        if rng is None or length <= 0.5 * eps or not offer(_against(shortest, rng)):
            break
        weights, shortest = hull.solve()
        if float(np.linalg.norm(shortest)) > length * (1.0 - 1e-6):
            break
    return Evidence.of(usable, weights, shortest)


def _against(shortest: Vector, rng: np.random.Generator) -> Iterator[Vector]:
    """Yield directions against a vector, ties broken at random."""
    aim = -shortest / float(np.linalg.norm(shortest))
    for scale in (1e-6, 1e-3, 1e-1):
        yield aim + scale * rng.standard_normal(aim.size) / np.sqrt(aim.size)


def additive_evidence(
    model: LocalModel,
    hints: Matrix,
    eps: float,
    rng: np.random.Generator,
    budget: Budget | None = None,
) -> Evidence | None:
    """Search directions at a point whose kinks are additive.

    Independent kinks allow every choice of sides, so the box's shortest vector is split into
    choices. Otherwise directions are generated against the current shortest vector, as long as
    they help.
    """
    budget = budget or Budget()
    pool = _Pool(model)
    pool.offer(hints)
    pool.offer(_threshold_directions(model, box_shares(model)))
    pool.offer(rng.standard_normal((32, model.base.size)))
    pool.offer(rng.standard_normal((64, len(model.rows))) @ model.rows)
    if not pool.directions:
        return None
    best = pool.solve()
    for _ in range(60):
        budget.spend()
        if best.eps <= 0.5 * eps:
            break
        if not pool.offer(_descent_directions(model, best, pool.shortest, rng)):
            break
        better = pool.solve()
        stalled = better.eps > best.eps * (1.0 - 1e-6)
        best = better if better.eps < best.eps else best
        if stalled:
            break
    return best


class _Pool:
    """Directions with different choices of sides, and the gradients they show."""

    def __init__(self, model: LocalModel) -> None:
        self.model = model
        self.lengths = np.linalg.norm(model.rows, axis=1)
        self.directions: list[Vector] = []
        self._sides: list[NDArray[np.bool_]] = []
        self._seen: set[bytes] = set()
        self.shortest: Vector = model.base

    def offer(self, directions: Matrix) -> bool:
        """Take the directions that show something new; return whether there was one."""
        news = False
        for v in directions:
            length = float(np.linalg.norm(v))
            if not (0.0 < length < np.inf):
                continue
            rates = self.model.rows @ v
            # Too close to a kink to be a convincing direction.
            if (np.abs(rates) <= 1e-11 * self.lengths * length).any():
                continue
            key = np.packbits(rates > 0).tobytes()
            if key not in self._seen:
                self._seen.add(key)
                self.directions.append(v)
                self._sides.append(rates > 0)
                news = True
        return news

    def solve(self) -> Evidence:
        """Return the best weights of the directions taken so far."""
        gradients = self.model.base + np.array(self._sides, dtype=float) @ self.model.terms
        weights = min_norm_weights(gradients)
        self.shortest = weights @ gradients
        return Evidence.of(self.directions, weights, self.shortest)


def _threshold_directions(model: LocalModel, shares: Vector) -> Matrix:
    """Directions whose sides are the level sets of the shares: they average to the shares."""
    levels = np.unique(np.concatenate([[0.0], shares[(shares > 1e-9) & (shares < 1 - 1e-9)]]))
    sides = np.array([np.where(shares > t + 1e-12, 1.0, -1.0) for t in levels])
    rates = sides * np.linalg.norm(model.rows, axis=1)
    return np.linalg.lstsq(model.rows, rates.T, rcond=None)[0].T


def _descent_directions(
    model: LocalModel, best: Evidence, shortest: Vector, rng: np.random.Generator
) -> Matrix:
    """Directions whose gradients point against the shortest vector, ties broken at random."""
    wanted = -np.sign(model.slopes) * (model.rows @ shortest)
    aim = np.linalg.lstsq(model.rows, wanted, rcond=None)[0]
    size = float(np.linalg.norm(aim)) or 1.0
    noise = rng.standard_normal((12, aim.size)) / np.sqrt(aim.size)
    aims = [aim + scale * size * e for e, scale in zip(noise, np.geomspace(1e-9, 1.0, 12))]
    mixed = [best.weights @ best.directions + size * 1e-3 * e for e in noise[:2]]
    return np.array([*aims, *mixed])
