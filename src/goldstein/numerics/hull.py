"""The shortest vector in the convex hull of some gradients.

Every certificate and every descent direction of this library is such a vector,

    m = argmin |v|,  v in conv{g_1, ..., g_k},      m = w_1 g_1 + ... + w_k g_k.

`min_norm_weights` answers once and accurately. `Hull` answers again and again while gradients come
and go: it keeps the Gram matrix and the last active set, so that one new gradient costs one
matrix-vector product and, as a rule, one small linear system. Nothing that certifies depends on how
good the answer is: any weights on the simplex give a valid vector of the hull.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lstsq
from scipy.linalg.lapack import dgeqrf, dposv, dpotrf, dpotrs
from scipy.optimize import nnls

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.checker.rounding import combination_norm_upper
from goldstein.errors import InputError, OutOfTime

#: Below this ratio |m| / scale the Gram matrix has lost half of its digits: use the rows instead.
GRAM_LIMIT = 1e-5

#: Weights are found up to this part of the longest gradient, some units in its last place: whoever
#: chooses them again does no better.
SOLVED = 2.0**-48

#: Relative slack in the optimality test <m, g_j> >= |m|^2.
SLACK = 1e-12

UNIT = float(np.finfo(np.float64).eps)

#: More unseen gradients than this make it worth guessing the whole active set at once.
MANY_NEW = 8

#: Many of so many active gradients nearly depend on each other: their Gram matrix gets a ridge,
#: this part of the shift.
LARGE_SET, RIDGE = 100, 1e-13

#: Up to this many numbers, non-negative least squares is the fastest first guess.
SMALL_SYSTEM = 5000

#: From this many variables on the rows are too long to be factorised: their Gram matrix is, and
#: what it has lost is regained by a few passes over the rows.
MANY_VARIABLES = 1000

#: There the Gram matrix does down to this ratio |m| / scale, where a hundredth of |m|^2 is lost.
FINE_GRAM_LIMIT = 1e-7

#: Columns per block of a Gram matrix.
BLOCK = 16384

#: Rows are the same if their squared distance is no more than this part of the longest square.
SAME = 1e-14

#: How often an answer from the Gram matrix is corrected by the rows, two passes each.
CORRECTIONS = 2

#: Added to the diagonal of a Gram matrix that could not be factorised, in units of the shift.
RESCUE = 1e-11


def min_norm_weights(gradients: ArrayLike, deadline: float = math.inf) -> Vector:
    """Return convex weights of the shortest vector in the hull of the rows.

    Parameters
    ----------
    gradients : array_like, shape (k, d)
        Finite rows, k >= 1.
    deadline : float
        In many variables: when to be content with what has been found, as `time.perf_counter()`
        tells the time; where that is nothing, `OutOfTime` is raised.

    Returns
    -------
    ndarray, shape (k,)
        Non-negative, summing to one.

    Examples
    --------
    >>> import numpy as np
    >>> min_norm_weights([[1.0, 1.0], [1.0, -3.0]])
    array([0.75, 0.25])
    """
    rows = np.ascontiguousarray(gradients, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise InputError(
            f"gradients have shape {rows.shape}, expected (k, d) with at least one row."
        )
    scale = max(rows.item(rows.argmax()), -rows.item(rows.argmin()))
    if not math.isfinite(scale):
        raise InputError("gradients contain a non-finite number; every row must be finite.")
    count = len(rows)
    if count == 1 or scale == 0.0:
        return _vertex(count, 0)
    if rows.shape[1] >= MANY_VARIABLES and 1e-100 < scale < 1e100:
        return _of_long_rows(rows, deadline)
    rows = rows / scale
    squared = np.einsum("ij,ij->i", rows, rows)
    columns = rows.T
    if columns.shape[0] > 2 * count:
        # The norm sees the rows only through the triangular factor, which is much smaller.
        columns = _triangle(columns)
    # As non-negative least squares: [C/longest; 1'] w ~ [0; 1] has a multiple of them as solution.
    longest = math.sqrt(squared.item(int(squared.argmax())))
    system = np.vstack([columns / longest, np.ones(count)])
    weights = convex_weights(system, np.append(np.zeros(len(columns)), 1.0))
    if weights is None:
        hull = Hull(rows.shape[1], count)
        for row in rows:
            # One at a time, so that the hull does not come back here for a first guess.
            hull.add(row)
            hull.solve()
        weights = hull.weights.copy()
    point = weights.dot(rows)
    shortest = int(squared.argmin())
    return weights if point.dot(point) <= squared.item(shortest) else _vertex(count, shortest)


def best_bound(
    rows: Matrix, weights: Vector | None = None, deadline: float = math.inf
) -> tuple[float, Vector]:
    """Return a bound of the shortest vector of the hull, and its weights (these, or better)."""
    best = np.maximum(min_norm_weights(rows, deadline), 0.0)
    bound = combination_norm_upper(best, rows)
    if weights is not None:
        given = combination_norm_upper(weights, rows)
        if given <= bound:
            return given, weights
    return bound, best


class Hull:
    """The shortest vector in a hull of gradients that grows and shrinks.

    Parameters
    ----------
    dim : int
        Length of a gradient.
    capacity : int
        Rows to allocate at first; the storage doubles when it is full.
    deadline : float
        When a search must end, as `time.perf_counter()` tells the time; the vector found by then
        is the answer.

    Notes
    -----
    Wolfe's method (Wolfe, Mathematical Programming 11, 1976): keep an active set whose affine
    shortest vector has positive weights; let in the gradient with the smallest ``<m, g_j>``; walk
    towards the new affine solution and let go of the weights that reach zero. The arithmetic runs
    on the Gram matrix until ``|m|`` is small against the gradients, and from there on the rows.

    Examples
    --------
    >>> hull = Hull(2, 4)
    >>> hull.add(np.array([1.0, 1.0])), hull.add(np.array([1.0, -3.0]))
    (0, 1)
    >>> weights, point = hull.solve()
    >>> weights
    array([0.75, 0.25])
    >>> point.round(12)
    array([1., 0.])
    """

    def __init__(self, dim: int, capacity: int = 32, deadline: float = math.inf) -> None:
        if dim < 1 or capacity < 1:
            raise InputError(f"dim={dim} and capacity={capacity} must both be at least 1.")
        self.dim = dim
        self.size = 0
        self.deadline = deadline
        self._gram_limit = GRAM_LIMIT if dim < MANY_VARIABLES else FINE_GRAM_LIMIT
        self.point: Vector = np.zeros(dim)
        self._allocate(capacity)
        self._active = 0  # how many entries of _order are in use
        self._settled = 0  # rows already seen by the last solve
        self._disturbed = False  # weights no longer minimise over the active set
        self._squared = 0.0  # |point|^2
        self._shortest, self._longest = math.inf, 0.0  # squared lengths among the rows

    @classmethod
    def of(cls, rows: Matrix, gram: Matrix, deadline: float = math.inf) -> Hull:
        """Return the hull of these rows, which are not copied: nobody may change them."""
        count, dim = rows.shape
        hull = cls(dim, 1, deadline)
        hull._allocate(count, rows)
        hull.size = count
        hull._gram_limit = GRAM_LIMIT  # an answer that is wanted once is worth some passes more
        hull._gram[:] = gram
        diagonal = hull._gram.diagonal()
        hull._shortest, hull._longest = float(diagonal.min()), float(diagonal.max())
        return hull

    @property
    def gradients(self) -> Matrix:
        """The rows in the order of their indices (a view)."""
        return self._rows[: self.size]

    @property
    def gram(self) -> Matrix:
        """Inner products of the rows (a view)."""
        return self._gram[: self.size, : self.size]

    @property
    def weights(self) -> Vector:
        """The weights of the last `solve`; rows added since then have weight zero (a view)."""
        return self._weights[: self.size]

    @property
    def support(self) -> Indices:
        """Indices of the rows with positive weight, ascending."""
        return np.flatnonzero(self.weights)

    def add(self, gradient: Vector) -> int:
        """Append a row and return its index."""
        index = self.size
        if index == len(self._rows):
            self._grow()
        self._rows[index] = gradient
        self._weights[index] = 0.0
        self.size = index + 1
        self._multiply(index)
        return index

    def keep(self, indices: ArrayLike) -> None:
        """Drop all rows but these; row `indices[i]` becomes row `i`."""
        kept = np.asarray(indices, dtype=np.intp)
        count = len(kept)
        self._move_rows(kept)
        # The right-hand sides are copies, so overlapping storage is safe.
        self._gram[:count, :count] = self.gram.take(kept, 0).take(kept, 1)
        self._weights[:count] = self.weights.take(kept)
        self.size = count
        # Rows that no solve has seen yet may still have to enter.
        self._disturbed |= bool((kept >= self._settled).any())
        self._restart()

    def clear(self) -> None:
        """Drop all rows; the storage stays."""
        self.size = self._active = self._settled = 0
        self._disturbed = False
        self._shortest, self._longest = math.inf, 0.0
        self.point = np.zeros(self.dim)

    def solve(self) -> tuple[Vector, Vector]:
        """Return the weights (a view) and the shortest vector.

        Raises
        ------
        InputError
            When there is no row.
        """
        count = self.size
        if count == 0:
            raise InputError("the hull is empty: add a gradient before solving.")
        weights, rows = self._weights[:count], self._rows[:count]
        if not self._longest < math.inf:
            # Squares overflow: the one-shot solver rescales.
            weights[:] = min_norm_weights(rows)
            self._restart()
            return weights, self.point
        gram = self._gram[:count, :count]
        entering = None
        if self._active == 0:
            self._start_at(int(gram.diagonal().argmin()))
            self.point, self._squared = rows[self._order[0]].copy(), self._shortest
        known, known_weights = self._squared, weights.copy()
        if self._settled == count - 1 > 0 and not self._disturbed:
            # One newcomer goes first; after an exact answer it alone can change anything.
            product = float(rows[-1].dot(self.point))
            if self._enters(count - 1, product, self._squared, math.sqrt(self._squared)):
                entering = count - 1
            else:
                self._settled = count
                return weights, self.point
        if count - self._settled > MANY_NEW:
            self._guess(gram)
        if self._disturbed:
            self._descend(gram, exact=False)
        self._search(gram, entering)
        point = weights.dot(rows)
        squared = float(point.dot(point))
        # Is it so short against the rows it is made of that their Gram matrix is too coarse?
        short, squares = self._gram_limit**2, self._gram.diagonal()
        coarse = squared <= short * self._longest
        if coarse and squared <= short * float(squares[self._order[: self._active]].max()):
            self._descend(gram, exact=True)
            self._search(gram, None, exact=True)
            point = weights.dot(rows)
            squared = float(point.dot(point))
        # Only rounding among rows of very different lengths can do these.
        if squared > known:
            self._return_to(known_weights)
            point, squared = self.point, known
        if squared > self._shortest:
            shortest = int(gram.diagonal().argmin())
            self._start_at(shortest)
            point = rows[shortest].copy()
            squared = self._shortest
        self.point, self._squared = point, squared
        self._settled, self._disturbed = count, False
        return weights, point

    def _search(self, gram: Matrix, entering: int | None, exact: bool = False) -> None:
        """Run Wolfe's method from the current weights; never makes |m| longer.

        `exact`: in the accuracy of the rows, for vectors much shorter than these.
        """
        weights = self.weights
        kept, best = weights, math.inf
        for _ in range(3 * self.size + 10):
            if self._is_late() or self._active == self.size:
                return  # no time, or no one is left to enter
            if entering is None:
                entering, squared = self._next_row(gram, exact)
                if squared >= best:
                    self._return_to(kept)
                    return
                if entering is None:
                    return
                best, kept = squared, weights.copy()
            self._order[self._active] = entering
            self._active += 1
            entering = None
            self._descend(gram, exact)

    def _next_row(self, gram: Matrix, exact: bool) -> tuple[int | None, float]:
        """Return the row that has to enter next, None after an exact answer, and |m|^2."""
        weights = self.weights
        if exact:
            point = weights.dot(self.gradients)
            products, squared = self.gradients.dot(point), float(point.dot(point))
            length = math.sqrt(squared)
        else:
            products = gram.dot(weights)
            squared = float(products.dot(weights))
            first = int(self._order[0])
            length = math.sqrt(gram.item(first, first))
        lowest = int(products.argmin())
        enters = self._enters(lowest, products.item(lowest), squared, length)
        return (lowest if enters else None), squared

    def _is_late(self) -> bool:
        return self.deadline < math.inf and time.perf_counter() > self.deadline

    def _enters(self, index: int, product: float, squared: float, length: float) -> bool:
        """Does <m, g> fall below |m|^2 by more than its rounding error, for a row outside?

        `length` is that of the vectors the product was computed with.
        """
        noise = 4.0 * UNIT * length * math.sqrt(self._gram.item(index, index))
        return product < squared * (1.0 - SLACK) - noise and self._weights.item(index) <= 0.0

    def _return_to(self, weights: Vector) -> None:
        """Rounding has the last word: stay with the better weights."""
        self.weights[:] = weights
        self._collect()

    def _descend(self, gram: Matrix, exact: bool) -> None:
        """Walk to the affine shortest vector of the active set, dropping weights that reach 0."""
        weights = self._weights
        while self._active > 1:
            active = self._order[: self._active]
            target = self._affine(gram, active, exact)
            if target is None:
                self._collect()
                return
            if target.item(int(target.argmin())) > 0.0:
                weights[active] = target
                return
            current = weights[active]
            step, leaving = 2.0, 0
            for place, (have, want) in enumerate(zip(current.tolist(), target.tolist())):
                if want <= 0.0:
                    ratio = have / (have - want) if have > 0.0 else 0.0
                    if ratio < step:
                        step, leaving = ratio, place
            current += step * (target - current)
            np.maximum(current, 0.0, out=current)
            current[leaving] = 0.0
            weights[active] = current / np.add.reduce(current)
            active[leaving:-1] = active[leaving + 1 :].copy()
            self._active -= 1
        # A single row is left: all weight is its own.
        self._start_at(int(self._order[0]))

    def _affine(self, gram: Matrix, active: Indices, exact: bool) -> Vector | None:
        """Weights (of any sign, summing to one) of the shortest vector in the affine hull."""
        if not exact and len(active) == 2:
            i, j = active.tolist()
            first, mixed, last = gram.item(i, i), gram.item(i, j), gram.item(j, j)
            gap = first - 2.0 * mixed + last
            if gap > UNIT * (first + last):
                share = (first - mixed) / gap
                return np.array([1.0 - share, share])
        elif not exact:
            answer = self._affine_by_factor(gram, active)
            total = 0.0 if answer is None else sum(answer.tolist())  # faster than NumPy for a few
            if answer is not None and 0.0 < total < math.inf:
                answer /= total
                return answer
        return self._affine_from_rows(active)

    def _affine_by_factor(self, gram: Matrix, active: Indices) -> Vector | None:
        """A multiple of the same weights from a Cholesky factor of the Gram matrix."""
        # Adding a constant to the Gram matrix changes the length of the solution only.
        everyone = len(active) == len(gram)
        if everyone:
            block = gram + self._longest
        else:
            block = gram.take(active, 0).take(active, 1)
            diagonal = block.diagonal()
            block += diagonal.item(int(diagonal.argmax()))
        if len(active) >= LARGE_SET:
            block.flat[:: len(active) + 1] += RIDGE * self._longest
        _, solution, failed = dposv(block.T, self._ones[: len(active)], overwrite_a=1)
        if failed:
            return None
        answer: Vector = solution[active] if everyone else solution
        return answer

    def _affine_from_rows(self, active: Indices) -> Vector | None:
        """The same by rank-revealing least squares on the gradients themselves."""
        if self.dim >= MANY_VARIABLES:
            ridge = RIDGE if len(active) >= LARGE_SET else 0.0
            return affine_of_long_rows(
                self.gradients, self.gram, active, self._longest, ridge, self._is_late
            )
        rows = self._rows[active]
        scale = math.sqrt(float(self._gram[active, active].max()))
        if scale == 0.0:
            return None
        system = np.vstack([rows.T / scale, np.ones(len(active))])
        target = np.append(np.zeros(self.dim), 1.0)
        answer: Vector = lstsq(
            system, target, UNIT, lapack_driver="gelsy", check_finite=False, overwrite_a=True
        )[0]
        total = float(answer.sum())
        return answer / total if 0.0 < total < math.inf else None

    def _guess(self, gram: Matrix) -> None:
        """Try to find the whole active set at once; taken only if it shortens the vector."""
        small = self.size * self.dim <= SMALL_SYSTEM
        weights = min_norm_weights(self.gradients) if small else self._pivot(gram)
        if weights is not None:
            old = self.weights
            if float(weights @ gram @ weights) < float(old @ gram @ old):
                old[:] = weights
                self._collect()
                self._disturbed = True

    def _pivot(self, gram: Matrix) -> Vector | None:
        """Block principal pivoting: several gradients change sides in one round.

        Portugal, Judice and Vicente, Mathematics of Computation 63 (1994). It may fail, and then
        costs a few factorisations.
        """
        count = self.size
        shift = float(gram.trace()) / count
        system = gram + shift
        free = np.ones(count, dtype=bool)
        solution = np.zeros(count)
        for _ in range(12):
            inside = np.flatnonzero(free)
            block = system[inside[:, None], inside]
            block.flat[:: len(inside) + 1] += 1e-12 * shift
            _, values, failed = dposv(block.T, self._ones[: len(inside)], overwrite_a=1)
            if failed:
                return None
            solution[:] = 0.0
            solution[inside] = values
            flips = np.where(free, solution < 0.0, system @ solution < 1.0 - 1e-10)
            if not flips.any():
                break
            free ^= flips
            if not free.any():
                return None
        weights = np.where(np.isfinite(solution), solution, 0.0).clip(min=0.0)
        total = float(weights.sum())
        return weights / total if 0.0 < total < math.inf else None

    def _start_at(self, index: int) -> None:
        self.weights[:] = 0.0
        self._weights[index] = 1.0
        self._order[0] = index
        self._active = 1

    def _collect(self) -> None:
        """Make the active set equal to the rows with positive weight."""
        positive = np.flatnonzero(self.weights)
        self._active = len(positive)
        self._order[: self._active] = positive

    def _restart(self) -> None:
        """Continue from the weights that are left, if any."""
        weights = self.weights
        total = float(weights.sum())
        if total > 0.0:
            weights /= total
        self._collect()
        # Dropping rows without weight leaves the shortest vector where it was.
        self._disturbed |= abs(total - 1.0) > 4.0 * UNIT * self.size
        self._settled = self.size if total > 0.0 else 0
        self.point = weights @ self.gradients
        self._squared = float(self.point @ self.point)
        diagonal = self.gram.diagonal()
        self._shortest = diagonal.item(int(diagonal.argmin())) if self.size else math.inf
        self._longest = diagonal.item(int(diagonal.argmax())) if self.size else 0.0

    def _multiply(self, index: int) -> None:
        products = self._rows[: self.size].dot(self._rows[index])
        self._gram[index, : self.size] = products
        self._gram[: self.size, index] = products
        square = products.item(index)
        if square < self._shortest:
            self._shortest = square
        if not square <= self._longest:
            self._longest = square  # also when it is nan

    def _move_rows(self, kept: Indices) -> None:
        """Row `kept[i]` becomes row `i`; long rows one by one, to save memory."""
        if self.dim < MANY_VARIABLES or (np.diff(kept) <= 0).any():
            self._rows[: len(kept)] = self.gradients.take(kept, 0)
            return
        for place, row in enumerate(kept.tolist()):
            if place != row:
                self._rows[place] = self._rows[row]

    def _allocate(self, capacity: int, rows: Matrix | None = None) -> None:
        self._rows: Matrix = np.empty((capacity, self.dim)) if rows is None else rows
        self._gram: Matrix = np.empty((capacity, capacity))
        self._weights: Vector = np.zeros(capacity)
        self._order: Indices = np.empty(capacity + 1, dtype=np.intp)
        self._ones: Vector = np.ones(capacity + 1)

    def _grow(self) -> None:
        rows, gram, weights, order = self._rows, self._gram, self._weights, self._order
        old = len(rows)
        self._allocate(2 * old)
        self._rows[:old], self._gram[:old, :old], self._weights[:old] = rows, gram, weights
        self._order[: old + 1] = order


def _of_long_rows(rows: Matrix, deadline: float) -> Vector:
    """Convex weights of the shortest vector, from the Gram matrix; of equal rows the first counts.

    Rows that are the same up to rounding would make the Gram matrix singular.
    """
    gram = gram_of_long_rows(rows, lambda: time.perf_counter() > deadline)
    kept = different_rows(gram)
    if len(kept) == len(rows):
        return Hull.of(rows, gram, deadline).solve()[0].copy()
    weights = np.zeros(len(rows))
    weights[kept] = Hull.of(rows[kept], gram[np.ix_(kept, kept)], deadline).solve()[0]
    return weights


def _triangle(columns: Matrix) -> Matrix:
    """Return R of the factorisation QR: what `numpy.linalg.qr` does, in a tenth of its time."""
    factor: Matrix = np.triu(dgeqrf(columns)[0][: columns.shape[1]])
    return factor


def _vertex(count: int, index: int) -> Vector:
    weights = np.zeros(count)
    weights[index] = 1.0
    return weights


def convex_weights(system: Matrix, target: Vector) -> Vector | None:
    """Minimise |A w - b| over w >= 0 and divide w by its sum; None where that fails.

    Examples
    --------
    >>> convex_weights(np.array([[1.0, -3.0], [1.0, 1.0]]), np.array([0.0, 1.0]))
    array([0.75, 0.25])
    """
    try:
        weights: Vector = nnls(system, target, maxiter=10 * target.size + 10 * system.shape[1])[0]
    except (RuntimeError, ValueError):  # it cycles, or numbers are not finite
        return None
    total = math.fsum(weights.tolist())
    if not 0.0 < total < math.inf:
        return None
    weights /= total
    return weights


def gram_of_long_rows(rows: Matrix, late: Callable[[], bool] = lambda: False) -> Matrix:
    """Return the inner products of the rows, block by block, as long as there is time.

    Examples
    --------
    >>> gram_of_long_rows(np.array([[3.0, 4.0], [1.0, 0.0]]))
    array([[25.,  3.],
           [ 3.,  1.]])
    """
    count, dim = rows.shape
    gram = np.zeros((count, count))
    for begin in range(0, dim, BLOCK):
        if late():
            raise OutOfTime("inner products")
        block = rows[:, begin : begin + BLOCK]
        gram += block @ block.T
    return gram


def different_rows(gram: Matrix) -> Indices:
    """Return the indices of rows that are no repetition of an earlier one, up to rounding.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> different_rows(rows @ rows.T)
    array([0, 1])
    """
    squares = gram.diagonal()
    far = SAME * float(squares.max())
    kept: list[int] = []
    for row in range(len(gram)):
        gaps = squares[row] + squares[kept] - 2.0 * gram[row, kept]
        if not (gaps <= far).any():
            kept.append(row)
    return np.array(kept, dtype=np.intp)


def affine_of_long_rows(
    rows: Matrix,
    gram: Matrix,
    active: Indices,
    shift: float,
    ridge: float = 0.0,
    late: Callable[[], bool] = lambda: False,
) -> Vector | None:
    """Return weights of the active rows, of any sign, summing to one; or None where that fails.

    They come from the Gram matrix. Residuals are computed from the rows, so the digits that the
    Gram matrix has lost come back (corrected semi-normal equations: Bjorck, Linear Algebra and its
    Applications 88, 1987), at two passes over the rows each time.

    Parameters
    ----------
    rows, gram : ndarray
        All rows and their inner products.
    active : ndarray of int
    shift : float
        Added to all entries of the Gram matrix, which changes the length of a solution only.
    ridge : float
        Added to its diagonal, in units of the shift.
    late : callable
        Says when there is no time for corrections.

    Examples
    --------
    >>> rows = np.array([[1.0, 1.0], [1.0, -3.0]])
    >>> affine_of_long_rows(rows, rows @ rows.T, np.array([0, 1]), 10.0).round(12)
    array([0.75, 0.25])
    """
    count = len(active)
    block = gram[np.ix_(active, active)] + shift
    for more in (ridge, RESCUE):
        system = block.copy()
        system.flat[:: count + 1] += more * shift
        factor, failed = dpotrf(system, lower=1, overwrite_a=1)
        if not failed:
            break
    else:
        return None
    ones = dpotrs(factor, np.ones(count), lower=1)[0]
    total = float(ones.sum())
    if not 0.0 < total < math.inf:
        return None
    answer: Vector = ones / total
    everywhere = np.zeros(len(rows))
    for _ in range(CORRECTIONS):
        if late():
            break
        everywhere[active] = answer
        products = rows.dot(everywhere.dot(rows))[active]
        change = dpotrs(factor, products, lower=1)[0]
        answer = answer - (change - ones * (float(change.sum()) / total))
    total = float(answer.sum())
    return answer / total if 0.0 < total < math.inf else None
