"""How many gradients a search may keep: what fits into the memory that the user allows.

A ring of gradients with their points: the bundle that two searches share.

Gradients with the points they belong to: what turns a min-norm vector into evidence.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.errors import InputError
from goldstein.numerics.hull import MANY_VARIABLES, Hull
from goldstein.solvers.base import Evidence
from goldstein.solvers.tuning import TUNING


class LipschitzGuard:
    """Hold L and raise it whenever a gradient contradicts it.

    A violation sets L to max(2 L, |g|). Seeing no violation does not prove L: then only the
    probability statement of the theorem is lost, a certificate stays sound.

    Examples
    --------
    >>> guard = LipschitzGuard(1.0)
    >>> guard.observe(3.0), guard.value
    (True, 3.0)
    """

    def __init__(self, given: float | None) -> None:
        number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
        if given is not None and not (number and math.isfinite(given) and given > 0):
            raise InputError(
                f"lipschitz must be a positive number or None (estimate it), got {given!r}."
            )
        self.value = given or 0.0

    def observe(self, gradient_norm: float) -> bool:
        """Take note of |g|; return True when L had to be raised."""
        if gradient_norm <= self.value:
            return False
        self.value = max(2.0 * self.value, gradient_norm)
        return True


#: Bytes that a search may use where the user does not say.
DEFAULT = 2_000_000_000

#: Up to this many variables the default leaves room for all that a search wants to keep.
ROOMY = 20_000

#: Vectors per point while it is judged, when the bundle itself has made room: the point, its
#: gradient, those that two draws find beside it, and a twin; and those of a certificate that is
#: kept while the run goes on.
PER_POINT = 7

#: Points that merged rows may remember, per row; all of them are judged.
MERGED = 1.1

#: Part of the memory for the search that knows the elements of a sum: nothing is judged meanwhile.
ELEMENTS = 0.55

#: Vectors per row of the bundle.
PER_ROW = PER_POINT * MERGED

#: Vectors besides: points, directions and trials of the searches, and the learners of a sweep.
FIXED = 40

#: Rows, pairs and pieces below which a search is not worth starting.
FEWEST = 3


@dataclass(frozen=True)
class MemoryBudget:
    """What may be kept.

    Attributes
    ----------
    bundle : int
        Gradients of the bundle member.
    points : float
        Points that these may rest on.
    memory : int
        Gradients shared between the members.
    pairs : int
        Pairs of the limited metric, and linear pieces of its model, at most.
    matrix : bool
        There is room for a dense matrix.
    ample : bool
        Memory is no concern.
    """

    bundle: int
    points: float
    memory: int
    pairs: int
    matrix: bool
    ample: bool = False


@lru_cache(maxsize=64)
def plan(dim: int, max_memory: int | None) -> MemoryBudget:
    """Divide the memory: first what every search needs, then gradients.

    Examples
    --------
    >>> plan(10, None).bundle
    60
    >>> plan(100_000, 1_000_000_000).bundle
    130
    >>> plan(100_000, 10_000_000)
    Traceback (most recent call last):
        ...
    goldstein.errors.InputError: max_memory=10,000,000 bytes is too little for 100,000 variables: \
    the search needs 64,800,000 at least, 81 vectors.
    """
    if max_memory is None and dim < ROOMY:
        rows = max(TUNING.small, 20_000_000 // dim)
        bundle = max(TUNING.small, min(dim + 2, 1000, rows))
        memory = min(4 * min(dim, 200) + 100, rows)
        return MemoryBudget(bundle, 2 * max(bundle, rows), memory, TUNING.pairs, True, ample=True)
    allowed = DEFAULT if max_memory is None else max_memory
    vectors = allowed // (8 * dim)
    least = FIXED + 3 * FEWEST + math.ceil((PER_ROW + 2) * FEWEST) + 2
    if max_memory is None:
        vectors = max(vectors, least)
    if vectors < least:
        raise InputError(
            f"max_memory={max_memory:,} bytes is too little for {dim:,} variables: the search "
            f"needs {8 * dim * least:,} at least, {least} vectors."
        )
    pairs = max(FEWEST, min(TUNING.pairs, (vectors - FIXED) // 20))
    left = vectors - FIXED - 3 * pairs
    memory = max(FEWEST, min(4 * min(dim, 200) + 100, left // 20))
    bundle = max(FEWEST, min(dim + 2, 1000, int((left - 2 * memory) / PER_ROW)))
    return MemoryBudget(bundle, MERGED * bundle + 1, memory, pairs, 32 * dim * dim <= allowed // 4)


#: Numbers that are copied at a time.
_AT_ONCE = 1_000_000


class GradientMemory:
    """The latest gradients and where they were taken; the oldest is overwritten when full.

    Entries are numbered from 0 in the order in which they came; entry i sits in row i % capacity.

    Attributes
    ----------
    perturbed : ndarray of bool
        True for points drawn at random.
    added : int
        Entries seen so far.
    guard : LipschitzGuard
        A Lipschitz constant that no gradient seen so far contradicts.
    """

    def __init__(self, dim: int, capacity: int, lipschitz: float | None = None) -> None:
        self.capacity = capacity
        self.guard = LipschitzGuard(lipschitz)
        self.points: Matrix = np.empty((capacity, dim))
        self.gradients: Matrix = np.empty((capacity, dim))
        self.perturbed = np.zeros(capacity, dtype=bool)
        self.added = 0
        self._known = np.zeros(capacity, dtype=bool)

    def add(self, point: Vector, gradient: Vector, perturbed: bool) -> None:
        """Store a pair."""
        self.guard.observe(math.sqrt(gradient.dot(gradient)))
        row = self.added % self.capacity
        self.points[row] = point
        self.gradients[row] = gradient
        self.perturbed[row] = perturbed
        self._known[row] = True
        self.added += 1

    def near(self, x: Vector, radius: float, since: int = 0) -> Indices:
        """Return the rows of entries from `since` on within `radius` of x, latest first."""
        ages = np.arange(self.added - 1, max(since, self.added - self.capacity) - 1, -1)
        rows = ages % self.capacity
        rows = rows[self._known[rows]]
        near = [rows[:0]]
        width = max(1, _AT_ONCE // x.size)
        for first in range(0, rows.size, width):
            some = rows[first : first + width]
            offsets = self.points[some] - x
            near.append(some[np.einsum("ij,ij->i", offsets, offsets) <= radius * radius])
        return np.concatenate(near)

    def clear(self) -> None:
        """Forget all entries."""
        self._known[:] = False

    def drop_unperturbed(self) -> None:
        """Forget the entries whose points were not drawn at random."""
        self._known &= self.perturbed


@dataclass(slots=True)
class Origin:
    """The points a row stands for, whether each was drawn at random, and their shares."""

    points: list[Vector]
    perturbed: list[bool]
    shares: list[float]

    def distance(self, centre: Vector) -> float:
        """Return how far the farthest point is from the centre."""
        offsets = [point - centre for point in self.points]
        return math.sqrt(max(float(offset.dot(offset)) for offset in offsets))


class PointBundle:
    """A bounded set of gradients of points near one x, and the shortest vector of their hull.

    When all slots carry weight, two of them are merged into an aggregate that remembers which
    points it came from. The hull keeps the shortest vector, so nothing proved is lost, and the
    certificate can still list points and weights. Only when the aggregates have gathered more than
    `max_points` points are they given up, and the gradients they were made of with them.
    """

    def __init__(
        self,
        dim: int,
        capacity: int,
        max_points: float = math.inf,
        deadline: float = math.inf,
    ) -> None:
        # Memory that is not written to costs nothing; to grow costs a copy.
        first = capacity if dim >= MANY_VARIABLES else min(capacity, 64)
        self.hull = Hull(dim, first, deadline)
        self.capacity = capacity
        self.max_points = max_points
        self._origins: list[Origin] = []
        # For each row a bound on the distance of its points from the centre.
        self._reach: Vector = np.zeros(capacity)

    @property
    def size(self) -> int:
        return self.hull.size

    def clear(self) -> None:
        self.hull.clear()
        self._origins.clear()

    def add(
        self, point: Vector, gradient: Vector, perturbed: bool = True, reach: float = math.inf
    ) -> None:
        """Add a gradient; room is made without changing the shortest vector.

        `reach` is a bound on the distance from the centre, if one is known.
        """
        if self.hull.size == self.capacity:
            self._make_room()
        self._append(gradient, Origin([point], [perturbed], [1.0]), reach)

    def recentre(self, centre: Vector, moved: float, radius: float) -> None:
        """Drop the rows with points outside the ball around the centre, which moved by `moved`."""
        reach = self._reach[: self.size]
        reach += moved
        far = (reach > radius).nonzero()[0].tolist()
        if not far:
            return
        for row in far:
            reach[row] = self._origins[row].distance(centre)
        self._keep((reach <= radius).nonzero()[0])

    def drop_unperturbed(self) -> None:
        """Drop the rows that rest on a point which was not drawn at random."""
        self._keep([row for row, origin in enumerate(self._origins) if all(origin.perturbed)])

    def shortest(self) -> Vector:
        """Return the shortest vector of the hull."""
        return self.hull.solve()[1]

    def evidence(self, x: Vector, gradients: bool = True) -> Evidence:
        """Return the points behind the shortest vector.

        Without copies of the gradients where memory is worth saving.
        """
        points: list[Vector] = []
        perturbed: list[bool] = []
        weights: list[float] = []
        support = np.flatnonzero(self.hull.weights > 0)
        for row in support:
            origin = self._origins[row]
            points.extend(origin.points)
            perturbed.extend(origin.perturbed)
            weights.extend(self.hull.weights[row] * share for share in origin.shares)
        pure = len(points) == support.size  # no aggregate among them
        return Evidence(
            x.copy(),
            np.array(points),
            np.array(weights),
            np.array(perturbed),
            self.hull.gradients[support] if pure and gradients else None,
        )

    def release(self) -> None:
        """Drop all rows, and give their memory back."""
        self.hull = Hull(self.hull.dim, 1, self.hull.deadline)
        self._origins.clear()

    def _append(self, gradient: Vector, origin: Origin, reach: float) -> None:
        self._reach[self.size] = reach
        self.hull.add(gradient)
        self._origins.append(origin)

    def _keep(self, rows: ArrayLike) -> None:
        kept = np.asarray(rows, dtype=np.intp)
        if kept.size == 0:
            self.clear()
        elif kept.size < self.size:
            self.hull.keep(kept)
            self._reach[: kept.size] = self._reach[kept]
            self._origins = [self._origins[row] for row in kept.tolist()]

    def _make_room(self) -> None:
        self.hull.solve()
        weights = self.hull.weights
        used = np.flatnonzero(weights > 0)
        if used.size < self.capacity:
            self._keep(used)
            return
        if sum(len(origin.points) for origin in self._origins) >= self.max_points:
            self._keep([r for r, origin in enumerate(self._origins) if len(origin.points) == 1])
            return
        # Merge the two lightest rows: they matter least to the shape of the hull.
        i, j = (int(r) for r in np.argsort(weights)[:2])
        total = weights[i] + weights[j]
        a, b = weights[i] / total, weights[j] / total
        merged = a * self.hull.gradients[i] + b * self.hull.gradients[j]
        one, other = self._origins[i], self._origins[j]
        origin = Origin(
            one.points + other.points,
            one.perturbed + other.perturbed,
            [a * share for share in one.shares] + [b * share for share in other.shares],
        )
        reach = float(max(self._reach[i], self._reach[j]))
        self._keep([r for r in range(self.capacity) if r not in (i, j)])
        self._append(merged, origin, reach)
