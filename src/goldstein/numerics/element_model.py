"""The minimum of a sum of small piecewise linear functions and quadratics, in many variables.

    min over v of  sum_k max_i (a_ki + g_ki'v_k)  +  sum_k v_k'B_k v_k / 2  +  mu |v|^2 / 2,
    v_k = v[I_k].

Every term sees a few variables only, so the linear systems of an interior point method are as
sparse as the sum. Nothing rests on how good the answer is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded
from scipy.sparse import csc_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from goldstein.checker.arrays import Indices, Matrix, Vector

#: Elements come last, so that arithmetic runs over long rows: piece, variable of the element,
#: element; or a matrix of each element.
Cube = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Up to this bandwidth a banded factorisation is the fastest.
NARROW = 30

#: Variables times the square of the bandwidth: beyond it a factorisation may take minutes.
TOO_WIDE = 2e10

#: Steps of the interior point method; how close to the boundary they go.
STEPS, NEARLY = 40, 0.995

#: When it is done: the gap, against the fall that is predicted, and the gradient, against the
#: steepest piece; and where a rough answer will do.
FINE, ROUGH = (1e-8, 1e-10), (1e-7, 1e-9)

#: Added to the diagonal, against its largest entry, where a factorisation fails.
RIDGES = (0.0, 1e-14, 1e-12, 1e-10)


class ElementSystem:
    """Symmetric matrices that are sums of small ones, at fixed places.

    Parameters
    ----------
    indices : ndarray of int, shape (m, K)
        Variables of each element, one column each; `dim` stands for none.
    dim : int

    Examples
    --------
    >>> system = ElementSystem(np.array([[0, 1], [1, 2]]), 3)  # 0 and 1; 1 and 2
    >>> solve = system.factorise(np.ones((2, 2, 2)), 1.0)
    >>> solve(np.array([2.0, 5.0, 4.0])).round(12)
    array([0.5, 1. , 1.5])
    """

    def __init__(self, indices: Indices, dim: int) -> None:
        self.indices, self.dim = indices, dim
        width = indices.shape[0]
        rows = np.repeat(indices, width, axis=0).ravel()
        columns = np.tile(indices, (width, 1)).ravel()
        # The band of a chain is as narrow as it gets; other graphs are put in order first.
        self._order: Indices | None = None
        real = (rows < dim) & (columns < dim)
        self.band = _band(rows[real], columns[real])
        if self.band > NARROW:
            ones = np.ones(int(real.sum()), dtype=np.int8)
            graph = csc_array((ones, (rows[real], columns[real])), (dim, dim)).tocsr()
            order = np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.intp)
            place = np.empty(dim + 1, dtype=np.intp)
            place[order] = np.arange(dim)
            place[dim] = dim
            rows, columns = place[rows], place[columns]
            self._order = order
            self.band = _band(rows[real], columns[real])
        self._low = np.flatnonzero(real & (rows >= columns))
        rows, columns = rows[self._low], columns[self._low]
        self._banded = self.band <= NARROW
        self._places: Indices
        if self._banded:
            self._places = (rows - columns) * dim + columns
        else:
            keys = columns * dim + rows
            filled, places = np.unique(keys, return_inverse=True)
            self._places = places.astype(np.intp)
            self._rows, self._columns = filled % dim, filled // dim

    @property
    def is_narrow(self) -> bool:
        """Can matrices be factorised in a reasonable time?"""
        return self._banded or self.dim * float(self.band) ** 2 <= TOO_WIDE

    def gather(self, v: Vector) -> Matrix:
        """Return v[I_k] for all elements, in columns."""
        return np.append(v, 0.0)[self.indices]

    def scatter(self, parts: Matrix) -> Vector:
        """Return the sum of vectors of the elements."""
        total = np.bincount(self.indices.ravel(), parts.ravel(), self.dim + 1)
        return total[: self.dim].astype(np.float64, copy=False)

    def factorise(self, blocks: Cube, diagonal: float) -> Callable[[Vector], Vector] | None:
        """Return what solves systems with the sum of these blocks, or None where that fails."""
        entries = blocks.ravel().take(self._low)
        if self._banded:
            size = (self.band + 1) * self.dim
            flat = np.bincount(self._places, entries, size).astype(np.float64, copy=False)
            matrix = flat.reshape(self.band + 1, self.dim)
            matrix[0] += diagonal
            factor = _cholesky(matrix)
            if factor is None:
                return None
            return self._ordered(lambda b: cho_solve_banded((factor, True), b))
        values = np.bincount(self._places, entries, self._rows.size)
        lower = csc_array((values, (self._rows, self._columns)), (self.dim, self.dim))
        whole = csc_array(lower + lower.T)
        whole.setdiag(lower.diagonal() + diagonal)
        try:
            solver = splu(
                whole, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )  # fmt: skip
        except RuntimeError:
            return None
        return self._ordered(solver.solve)

    def _ordered(self, solve: Callable[[Vector], Vector]) -> Callable[[Vector], Vector]:
        order = self._order
        if order is None:
            return solve

        def in_order(b: Vector) -> Vector:
            answer = np.empty_like(b)
            answer[order] = solve(b[order])
            return answer

        return in_order


def minimise_elements(
    system: ElementSystem,
    levels: Matrix,
    slopes: Cube,
    used: Mask,
    curvature: Cube,
    mu: float,
    accuracy: tuple[float, float] = FINE,
    late: Callable[[], bool] = lambda: False,
) -> InteriorPoint:
    """Minimise the model by Mehrotra's predictor and corrector.

    Parameters
    ----------
    system : ElementSystem
    levels, slopes : ndarray, shapes (p, K) and (p, m, K)
        The pieces of every element: value at v = 0 and gradient.
    used : ndarray of bool, shape (p, K)
        Where there is a piece; in every element there is one.
    curvature : ndarray, shape (m, m, K)
    mu : float
    accuracy : FINE or ROUGH
    late : callable
        Says when to be content with what has been found.

    Examples
    --------
    |v - 1| + 2 v, and 2 |v + 1|:

    >>> system = ElementSystem(np.array([[0, 0]]), 1)
    >>> levels = np.array([[-1.0, 2.0], [1.0, -2.0]])
    >>> slopes = np.array([[[3.0, 2.0]], [[1.0, -2.0]]])
    >>> flat = np.zeros((1, 1, 2))
    >>> found = minimise_elements(system, levels, slopes, levels < 9, flat, 1e-3)
    >>> found.v.round(4), found.weights.round(2)
    (array([-1.]), array([[0.  , 0.25],
           [1.  , 0.75]]))
    """
    point = InteriorPoint(system, levels, slopes, used, curvature, mu)
    with np.errstate(all="ignore"):  # at its last digits a slack may vanish: that is the end
        before = 0.0
        for _ in range(STEPS):
            gap, flat = point.look()
            # Beyond a certain gap rounding makes the gradient grow again.
            close = gap <= accuracy[0] * point.fall
            if late() or (close and (flat <= accuracy[1] or flat >= before)):
                break
            before = flat
            if not point.advance(gap):
                break
    return point


class InteriorPoint:
    """A point with positive slack and weights on its path to the minimum.

    Attributes
    ----------
    v : ndarray
    tops : ndarray, shape (K,)
        The maximum of the linear pieces there, element by element, from above.
    weights, slack : ndarray, shape (p, K)
        Of every piece: convex weights in every element, and how far it lies below the top. Their
        products tend to zero, the weights to the multipliers.
    """

    def __init__(
        self,
        system: ElementSystem,
        levels: Matrix,
        slopes: Cube,
        used: Mask,
        curvature: Cube,
        mu: float,
    ) -> None:
        self.system, self.levels, self.curvature, self.mu = system, levels, curvature, mu
        self.slopes = np.where(used[:, None], slopes, 0.0)
        self.unused = np.nonzero(~used)
        self.count = int(used.sum())
        self.highest: Vector = np.where(used, levels, -np.inf).max(axis=0)
        self.steepest = float(np.abs(self.slopes).max(initial=0.0))
        spare = 1e-3 * self.steepest + 1e-300
        self.v: Vector = np.zeros(system.dim)
        self.tops: Vector = self.highest + spare
        self.slack: Matrix = self.tops - levels
        self.slack[self.unused] = 1.0
        # Products with the slack are to be alike: a piece far below must not look important.
        self.weights: Matrix = used / self.slack
        self.weights /= self.weights.sum(axis=0)

    @property
    def fall(self) -> float:
        return float((self.highest - self.tops).sum())

    def look(self) -> tuple[float, float]:
        """Compute what is missing; return the gap, and the gradient against the steepest piece."""
        own = self.system.gather(self.v)
        parts = combined(self.slopes, self.weights) + along(self.curvature, own)
        self.gradient: Vector = self.mu * self.v + self.system.scatter(parts)
        # What rounding has done to the constraints: weights sum to 1, slack is what is left.
        self.short: Vector = 1.0 - self.weights.sum(axis=0)
        self.loose: Matrix = self.tops - self.levels - along(self.slopes, own) - self.slack
        self.loose[self.unused] = 0.0
        flat = float(np.abs(self.gradient).max()) / max(self.steepest, 1e-300)
        return float(np.vdot(self.weights, self.slack)), flat

    def advance(self, gap: float) -> bool:
        """Predict, correct, step; return False where the system cannot be solved."""
        ratio = self.weights / self.slack
        total = ratio.sum(axis=0)
        centre = combined(self.slopes, ratio) / total
        blocks = self.curvature.copy()
        for slope, share in zip(self.slopes, ratio):
            deviation = slope - centre
            for i, one in enumerate(deviation):
                blocks[i] += (share * one) * deviation
        solve = self.system.factorise(blocks, self.mu)
        if solve is None:
            return False
        self.ratio, self.total, self.centre, self.solve = ratio, total, centre, solve
        products = self.weights * self.slack
        _, _, heavier, wider = self._direction(-products)
        length = self._length(heavier, wider)
        ahead = float(np.vdot(self.weights + length * heavier, self.slack + length * wider))
        target = (ahead / gap) ** 3 * (gap / self.count) - products - heavier * wider
        target[self.unused] = 0.0
        change, rise, heavier, wider = self._direction(target)
        if not (np.isfinite(change).all() and np.isfinite(heavier).all()):
            return False
        length = self._length(heavier, wider)
        self.v += length * change
        self.tops += length * rise
        self.weights += length * heavier
        self.slack += length * wider
        return True

    def _direction(self, target: Matrix) -> tuple[Vector, Vector, Matrix, Matrix]:
        """Return changes of v, tops, weights and slack that change weights * slack by target."""
        wanted = target / self.slack - self.ratio * self.loose
        mean = (wanted.sum(axis=0) - self.short) / self.total
        load = combined(self.slopes, wanted - self.ratio * mean)
        change = self.solve(-self.gradient - self.system.scatter(load))
        own = self.system.gather(change)
        rise = mean + (self.centre * own).sum(axis=0)
        wider = rise - along(self.slopes, own)
        wider[self.unused] = 0.0
        return change, rise, wanted - self.ratio * wider, wider + self.loose

    def _length(self, heavier: Matrix, wider: Matrix) -> float:
        return min(_room(self.weights, heavier), _room(self.slack, wider))


def _cholesky(matrix: Matrix) -> Matrix | None:
    """Return the factor of a banded matrix, with more on its diagonal where that is needed."""
    for ridge in RIDGES:
        matrix[0] += ridge * matrix[0].max()
        try:
            factor: Matrix = cholesky_banded(matrix, lower=True, check_finite=False)
        except LinAlgError:
            continue
        if np.isfinite(factor).all():
            return factor
    return None


def combined(slopes: Cube, weights: Matrix) -> Matrix:
    """Return combinations of the pieces, element by element: (p, m, K) and (p, K) to (m, K)."""
    return np.einsum("pmk,pk->mk", slopes, weights)


def along(slopes: Cube, own: Matrix) -> Matrix:
    """Return inner products, element by element: (p, m, K) and (m, K) to (p, K)."""
    return np.einsum("pmk,mk->pk", slopes, own)


def _room(numbers: Matrix, change: Matrix) -> float:
    """Return how much of a change, at most all of it, leaves all numbers positive."""
    fastest = -float(np.nanmin(change / numbers, initial=0.0))
    return min(1.0, NEARLY / fastest) if fastest > 0.0 else 1.0


def _band(rows: Indices, columns: Indices) -> int:
    return int(np.abs(rows - columns).max(initial=0))
