"""Look for a counterexample to a claimed triple.

A search can refute a claim, never prove it. It is aimed at the places where claims about kinks go
wrong: centers one radius away from a kink, and points on the boundary of the closed balls.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from goldstein.apriori.rules import OuterLipschitz
from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import squared_distance
from goldstein.errors import InputError, KinkError
from goldstein.numerics.hull import min_norm_weights

#: Returns the vertices of dF(z), one per row: dF(z) is their convex hull.
Subdifferential = Callable[[Vector], ArrayLike]
PivotMap = Callable[[Vector], ArrayLike]


@dataclass(frozen=True)
class Violation:
    """A point where a claimed triple fails.

    Attributes
    ----------
    x, pivot, z : ndarray
        Center, its pivot, and a point of the closed ball around the center.
    element : ndarray or None
        A member of dF(z) that is too far from dF(pivot); None if the pivot itself is too far.
    found, allowed : float
        The offending distance, and what the claim allows.
    """

    x: Vector
    pivot: Vector
    z: Vector
    element: Vector | None
    found: float
    allowed: float

    def __str__(self) -> str:
        at = f"at x = {_show(self.x)} with pivot {_show(self.pivot)}"
        if self.element is None:
            return f"{at}: the pivot is {self.found:.6g} away, the claim allows {self.allowed:.6g}"
        return (
            f"{at}: dF({_show(self.z)}) contains {_show(self.element)}, which is {self.found:.6g} "
            f"from dF(pivot), the claim allows {self.allowed:.6g}"
        )


def falsify(
    subdifferential: Subdifferential,
    claim: OuterLipschitz,
    pivot: PivotMap | None = None,
    *,
    centers: ArrayLike | None = None,
    kinks: ArrayLike = (),
    dim: int = 1,
    spread: float = 3.0,
    trials: int = 200,
    rng: int | np.random.Generator = 0,
    tolerance: float = 1e-9,
) -> Violation | None:
    """Search for a violation of `dF(z) subset dF(y) + kappa |z-y| B`.

    Parameters
    ----------
    subdifferential : callable
        Maps a point to the vertices of its subdifferential (rows).
    claim : OuterLipschitz
        The triple under test.
    pivot : callable, optional
        The pivot map of the claim. Without one, a center counts as a violation only if every
        candidate pivot fails: the kinks within the radius, the center, and a grid between them.
    centers : array, optional
        Points x to try first; random ones and points near the kinks are added.
    kinks : array, optional
        Points on kinks (numbers in one dimension).
    dim : int
        Number of variables.
    spread : float
        Random centers are drawn from a cube of this half-width.
    trials : int
        Number of random centers.
    rng : int or Generator
        Source of the random points.
    tolerance : float
        Relative slack for rounding.

    Returns
    -------
    Violation or None
        None means only that nothing was found.

    Examples
    --------
    The strict test `|u| < r` for the relu pivot fails when the kink is on the boundary.

    >>> def relu_slopes(z):
    ...     return [[0.0], [1.0]] if z[0] == 0 else [[float(z[0] > 0)]]
    >>> claim = OuterLipschitz(0.5, 0.5, 0.0)
    >>> def strict(x):
    ...     return [0.0] if abs(x[0]) < 0.5 else x
    >>> print(falsify(relu_slopes, claim, strict, kinks=[0.0]))
    at x = [0.5] with pivot [0.5]: dF([0.]) contains [0.], which is 1 from dF(pivot), ...
    >>> def closed(x):
    ...     return [0.0] if abs(x[0]) <= 0.5 else x
    >>> falsify(relu_slopes, claim, closed, kinks=[0.0]) is None
    True
    """
    generator = np.random.default_rng(rng)
    known = _points(kinks, dim)
    search = _Search(subdifferential, claim, known, generator, tolerance)
    for x in _centers(claim, centers, known, dim, spread, trials, generator):
        candidates = [_point(pivot(x), dim)] if pivot else search.candidate_pivots(x)
        violation = search.best_of(x, candidates)
        if violation is not None:
            return violation
    return None


def falsify_modulus(
    subdifferential: Subdifferential,
    pivot: ArrayLike,
    points: ArrayLike,
    modulus: float,
    *,
    tolerance: float = 1e-9,
) -> Violation | None:
    """Search for a violation of the inclusion at one pivot, over given points.

    Examples
    --------
    >>> falsify_modulus(lambda z: [2.0 * z], [0.0], [[1.0], [2.0]], 2.0) is None
    True
    >>> falsify_modulus(lambda z: [2.0 * z], [0.0], [[1.0], [2.0]], 1.9).found
    2.0
    """
    y = np.atleast_1d(np.asarray(pivot, dtype=np.float64))
    inner = _vertices(subdifferential, y)
    for z in _points(points, y.size):
        violation = _inclusion(subdifferential, y, y, inner, z, modulus, tolerance)
        if violation is not None:
            return violation
    return None


def sampled_subdifferential(
    gradient: Callable[[Vector], Vector],
    *,
    radius: float = 1e-7,
    samples: int = 64,
    rng: int | np.random.Generator = 0,
) -> Subdifferential:
    """Return a subdifferential made of gradients at random points near z.

    An inner approximation, up to `radius` times the smoothness of the pieces: a kink of codimension
    two or more may have pieces that no sample meets, so read a violation as a question.

    Examples
    --------
    >>> corners = sampled_subdifferential(np.sign)(np.array([0.0, 2.0]))
    >>> np.unique(corners, axis=0)
    array([[-1.,  1.],
           [ 1.,  1.]])
    """
    generator = np.random.default_rng(rng)

    def subdifferential(z: Vector) -> ArrayLike:
        found = []
        for _ in range(samples):
            direction = generator.standard_normal(z.size)
            near = z + radius * direction / np.linalg.norm(direction)
            try:
                found.append(gradient(near))
            except KinkError:
                continue  # a null set; the other samples speak
        if not found:
            raise InputError(
                f"all {samples} points within {radius} of {z} are kinks; increase the radius."
            )
        return np.array(found)

    return subdifferential


def distance_to_hull(vector: ArrayLike, vertices: ArrayLike) -> float:
    """Return the distance from a vector to the convex hull of some vertices.

    Examples
    --------
    >>> distance_to_hull([0.0, 3.0], [[-1.0, 1.0], [1.0, 1.0]])
    2.0
    """
    shifted = np.atleast_2d(np.asarray(vertices, dtype=np.float64)) - np.asarray(vector)
    if shifted.shape[0] == 1:
        return float(np.linalg.norm(shifted[0]))
    if shifted.shape[1] == 1:  # an interval: no solver needed
        low, high = float(shifted.min()), float(shifted.max())
        return max(0.0, low, -high)
    return float(np.linalg.norm(min_norm_weights(shifted) @ shifted))


@dataclass
class _Search:
    """One run: the claim, the kinks, and the points of a ball worth trying."""

    subdifferential: Subdifferential
    claim: OuterLipschitz
    kinks: list[Vector]
    rng: np.random.Generator
    tolerance: float

    def best_of(self, x: Vector, pivots: Iterable[Vector]) -> Violation | None:
        """Return None if some pivot survives, else the violation of the last one."""
        # The ball is the same for every pivot, so that all face the same points.
        ball = list(self.ball(x))
        violation = None
        for y in pivots:
            violation = self.check(x, y, ball)
            if violation is None:
                return None
        return violation

    def check(self, x: Vector, y: Vector, ball: Sequence[Vector]) -> Violation | None:
        radius = self.claim.pivot_radius
        if not _within(y, x, radius):
            return Violation(x, y, y, None, float(np.linalg.norm(y - x)), radius)
        inner = _vertices(self.subdifferential, y)
        for z in ball:
            violation = _inclusion(
                self.subdifferential, x, y, inner, z, self.claim.modulus, self.tolerance
            )
            if violation is not None:
                return violation
        return None

    def ball(self, x: Vector) -> Iterator[Vector]:
        """Yield points of the closed ball: its center, kinks, axis ends, random ones."""
        reach = self.claim.reach if math.isfinite(self.claim.reach) else 1.0
        axes = np.eye(x.size)[: min(x.size, 16)]
        ends = itertools.chain(x + reach * axes, x - reach * axes)
        inside = []
        for _ in range(8 + 4 * x.size):
            direction = self.rng.standard_normal(x.size)
            length = reach * self.rng.random() ** (1.0 / x.size)
            inside.append(x + length * direction / np.linalg.norm(direction))
        for z in itertools.chain([x], self.kinks, ends, inside):
            if _within(z, x, reach):
                yield z

    def candidate_pivots(self, x: Vector) -> list[Vector]:
        radius = self.claim.pivot_radius
        grid = [
            x + step * axis for step in np.linspace(-radius, radius, 41) for axis in np.eye(x.size)
        ]
        return [y for y in [*self.kinks, x, *grid] if _within(y, x, radius)]


def _inclusion(
    subdifferential: Subdifferential,
    x: Vector,
    y: Vector,
    inner: Vector,
    z: Vector,
    modulus: float,
    tolerance: float,
) -> Violation | None:
    allowed = modulus * float(np.linalg.norm(z - y))
    for element in _vertices(subdifferential, z):
        limit = allowed + tolerance * (1.0 + float(np.linalg.norm(element)))
        # A vertex that is near enough spares the projection.
        if float(np.linalg.norm(inner - element, axis=1).min()) <= limit:
            continue
        found = distance_to_hull(element, inner)
        if found > limit:
            return Violation(x, y, z, element, found, allowed)
    return None


def _centers(
    claim: OuterLipschitz,
    given: ArrayLike | None,
    kinks: list[Vector],
    dim: int,
    spread: float,
    trials: int,
    rng: np.random.Generator,
) -> Iterator[Vector]:
    if given is not None:
        yield from _points(given, dim)
    radii = sorted({claim.pivot_radius, min(claim.reach, spread)})
    # Exactly one radius away from a kink, and a hair to either side of that.
    offsets = [r * f for r in radii for f in (0.5, 1.0 - 1e-12, 1.0, 1.0 + 1e-12, 1.5)]
    for kink in kinks:
        yield kink
        for offset in offsets:
            for axis in np.eye(dim):
                yield kink + offset * axis
                yield kink - offset * axis
    for left, right in itertools.combinations(kinks, 2):
        yield (left + right) / 2
    for _ in range(trials):
        center = rng.uniform(-spread, spread, dim)
        if kinks and rng.random() < 0.5:
            near = kinks[int(rng.integers(len(kinks)))]
            center = near + rng.uniform(-2.0, 2.0, dim) * radii[-1]
        yield center


def _within(z: Vector, x: Vector, radius: float) -> bool:
    """Decide `|z - x| <= radius` exactly: a violation outside the closed ball would be none."""
    rough = float(np.linalg.norm(z - x))
    if abs(rough - radius) > 1e-9 * (radius + float(np.abs(x).max(initial=0.0))):
        return rough < radius
    return squared_distance(z, x) <= Fraction(radius) ** 2


def _vertices(subdifferential: Subdifferential, z: Vector) -> Vector:
    return np.asarray(subdifferential(z), dtype=np.float64).reshape(-1, z.size)


def _points(values: ArrayLike, dim: int) -> list[Vector]:
    return list(np.asarray(values, dtype=np.float64).reshape(-1, dim))


def _point(value: ArrayLike, dim: int) -> Vector:
    return np.asarray(value, dtype=np.float64).reshape(dim)


def _show(point: Vector) -> str:
    return np.array2string(point, threshold=8, edgeitems=3, precision=6)
