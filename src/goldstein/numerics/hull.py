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

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dgelsy, dposv
from scipy.optimize import nnls

from goldstein.errors import InputError

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Below this ratio |m| / scale the Gram matrix has lost half of its digits: use the rows instead.
GRAM_LIMIT = 1e-5

#: Relative slack in the optimality test <m, g_j> >= |m|^2.
SLACK = 1e-12

UNIT = float(np.finfo(np.float64).eps)

#: More unseen gradients than this make it worth guessing the whole active set at once.
MANY_NEW = 8


def min_norm_weights(gradients: ArrayLike) -> Vector:
    """Return convex weights of the shortest vector in the hull of the rows.

    The problem is posed as non-negative least squares on ``[G'/s; 1'] w ~ [0; 1]``, whose solution
    is a multiple of the wanted weights for every scale ``s > 0``.

    Parameters
    ----------
    gradients : array_like, shape (k, d)
        Finite rows, k >= 1.

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
    scale = float(np.abs(rows).max(initial=0.0))
    if not math.isfinite(scale):
        raise InputError("gradients contain a non-finite number; every row must be finite.")
    count = len(rows)
    if count == 1 or scale == 0.0:
        return _vertex(count, 0)
    rows = rows / scale
    squared = np.einsum("ij,ij->i", rows, rows)
    best = _vertex(count, int(squared.argmin()))
    scale = math.sqrt(float(squared.max()))
    columns = rows.T / scale
    if columns.shape[0] > 2 * count:
        # The norm sees the rows only through the triangular factor, which is much smaller.
        columns = np.asarray(np.linalg.qr(columns, mode="r"))
    system = np.vstack([columns, np.ones(count)])
    target = np.zeros(len(system))
    target[-1] = 1.0
    try:
        weights = _on_simplex(nnls(system, target, maxiter=10 * count + 30)[0])
    except (RuntimeError, ValueError, np.linalg.LinAlgError):
        hull = Hull(rows.shape[1], count)
        for row in rows:
            hull.add(row)
        weights = hull.solve()[0].copy()
    if weights is None:
        return best
    point = weights @ rows
    return weights if float(point @ point) <= float(squared.min()) else best


class Hull:
    """The shortest vector in a hull of gradients that grows and shrinks.

    Parameters
    ----------
    dim : int
        Length of a gradient.
    capacity : int
        Rows to allocate at first; the storage doubles when it is full.

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
    >>> point
    array([1., 0.])
    """

    def __init__(self, dim: int, capacity: int = 32) -> None:
        if dim < 1 or capacity < 1:
            raise InputError(f"dim={dim} and capacity={capacity} must both be at least 1.")
        self.dim = dim
        self.size = 0
        self._rows: Matrix = np.empty((capacity, dim))
        self._gram: Matrix = np.empty((capacity, capacity))
        self._weights: Vector = np.zeros(capacity)
        self._active: Indices = np.empty(0, dtype=np.intp)
        self._solved = 0
        self.point: Vector = np.zeros(dim)

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
        """Indices of the rows with positive weight."""
        return np.sort(self._active)

    def add(self, gradient: Vector) -> int:
        """Append a row and return its index."""
        index = self.size
        if index == len(self._rows):
            self._grow()
        self._rows[index] = gradient
        self._weights[index] = 0.0
        self.size = index + 1
        self._products(index)
        return index

    def replace(self, index: int, gradient: Vector) -> None:
        """Overwrite one row; its weight is forgotten."""
        if not 0 <= index < self.size:
            raise InputError(f"index {index} is not one of the {self.size} rows.")
        self._rows[index] = gradient
        self._products(index)
        self._forget(np.delete(self._active, np.flatnonzero(self._active == index)))

    def keep(self, indices: ArrayLike) -> None:
        """Drop all rows but these; row `indices[i]` becomes row `i`."""
        kept = np.asarray(indices, dtype=np.intp)
        count = len(kept)
        weights = self.weights[kept]
        rows, gram = self.gradients[kept], self.gram[np.ix_(kept, kept)]
        self._rows[:count], self._gram[:count, :count] = rows, gram
        self._weights[:count] = weights
        self.size = count
        self._forget(np.flatnonzero(weights > 0.0))

    def clear(self) -> None:
        """Drop all rows; the storage stays."""
        self.size = self._solved = 0
        self._active = np.empty(0, dtype=np.intp)
        self.point = np.zeros(self.dim)

    def solve(self) -> tuple[Vector, Vector]:
        """Return the weights and the shortest vector (views that the next change overwrites).

        Raises
        ------
        InputError
            When there is no row.
        """
        count = self.size
        if count == 0:
            raise InputError("the hull is empty: add a gradient before solving.")
        gram = self.gram
        if not len(self._active):
            self._active = np.array([int(gram.diagonal().argmin())], dtype=np.intp)
            self.weights[:] = 0.0
            self._weights[self._active] = 1.0
        if not math.isfinite(float(gram.diagonal().sum())):
            # Squares overflow: the one-shot solver rescales.
            self._accept(min_norm_weights(self.gradients))
            return self.weights, self.point
        if count - self._solved > MANY_NEW:
            self._guess(gram)
        self._search(gram, exact=False)
        weights = self._weights[:count]
        self.point = weights @ self._rows[:count]
        scale = float(gram.diagonal()[self._active].max())
        if float(self.point @ self.point) <= GRAM_LIMIT**2 * scale:
            self._search(gram, exact=True)
            self.point = weights @ self._rows[:count]
        self._solved = count
        return weights, self.point

    def _search(self, gram: Matrix, *, exact: bool) -> None:
        """Run Wolfe's method from the current weights; never makes |m| longer."""
        count = self.size
        rows = self._rows[:count]
        weights = self._weights[:count]
        active, best = self._active, math.inf
        kept, previous = active, weights
        for _ in range(3 * count + 10):
            if len(active) > 1:
                active = self._descend(gram, active, exact)
            if exact:
                point = weights @ rows
                products = rows @ point
                squared = float(point @ point)
            else:
                products = gram @ weights
                squared = float(products @ weights)
            if not squared < best:
                # No progress: rounding has the last word, so go back to the better weights.
                if best < math.inf and squared > best:
                    weights[:] = previous
                    active = kept
                break
            best, kept, previous = squared, active, weights.copy()
            entering = int(products.argmin())
            noise = 4.0 * UNIT * math.sqrt(float(gram[entering, entering]))
            noise *= math.sqrt(squared) if exact else math.sqrt(float(gram[active[0], active[0]]))
            if products[entering] >= squared * (1.0 - SLACK) - noise or weights[entering] > 0.0:
                break
            active = np.append(active, entering)
        self._active = active

    def _descend(self, gram: Matrix, active: Indices, exact: bool) -> Indices:
        """Walk to the affine shortest vector of the active set, dropping weights that reach 0."""
        weights = self._weights
        while True:
            target = self._affine(gram, active, exact)
            if target is None:
                active = active[weights[active] > 0.0]
                return active
            if target.min() > 0.0:
                weights[active] = target
                return active
            current = weights[active]
            leaving = target <= 0.0
            gaps = current[leaving]
            step = float((gaps / (gaps - target[leaving] + 1e-300)).min())
            moved = current + step * (target - current)
            # At least one weight is exactly zero now; name it so despite rounding.
            moved[leaving & (moved <= 4.0 * UNIT)] = 0.0
            drop = moved <= 0.0
            if not drop.any():
                drop[np.flatnonzero(leaving)[moved[leaving].argmin()]] = True
            weights[active[drop]] = 0.0
            active = active[~drop]
            moved = moved[~drop]
            weights[active] = moved / moved.sum()
            if len(active) == 1:
                return active

    def _affine(self, gram: Matrix, active: Indices, exact: bool) -> Vector | None:
        """Weights (of any sign, summing to one) of the shortest vector in the affine hull."""
        count = len(active)
        ones = np.ones(count)
        if not exact:
            block = gram[active[:, None], active]
            block += block.trace() / count
            _, solution, failed = dposv(block, ones, overwrite_a=1, overwrite_b=1)
            if not failed:
                total = float(solution.sum())
                if math.isfinite(total) and total > 0.0:
                    answer: Vector = solution / total
                    return answer
        return self._affine_from_rows(active)

    def _affine_from_rows(self, active: Indices) -> Vector | None:
        """The same by rank-revealing least squares on the gradients themselves."""
        rows = self._rows[active]
        scale = math.sqrt(float(self._gram[active, active].max()))
        if scale == 0.0:
            return None
        system = np.empty((self.dim + 1, len(active)), order="F")
        np.divide(rows.T, scale, out=system[:-1])
        system[-1] = 1.0
        target = np.zeros((max(system.shape), 1))
        target[self.dim] = 1.0
        pivots = np.zeros(len(active), dtype=np.int32)
        length = 4 * len(active) + 64 * (max(system.shape) + 1)
        _, solution, _, _, failed = dgelsy(system, target, pivots, UNIT, length)
        solution = solution[: len(active), 0]
        total = float(solution.sum())
        if failed or not math.isfinite(total) or total <= 0.0:
            return None
        answer: Vector = solution / total
        return answer

    def _guess(self, gram: Matrix) -> None:
        """Try to find the whole active set at once by block principal pivoting.

        Several gradients change sides in one round (Portugal, Judice and Vicente, Mathematics of
        Computation 63, 1994). It may fail, and then costs a few factorisations; a success is taken
        only if it shortens the vector.
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
            _, values, failed = dposv(block, np.ones(len(inside)), overwrite_a=1)
            if failed:
                return
            solution[:] = 0.0
            solution[inside] = values
            dual = system @ solution - 1.0
            flips = np.where(free, solution < 0.0, dual < -1e-10)
            if not flips.any():
                break
            free ^= flips
            if not free.any():
                return
        weights = _on_simplex(solution)
        if weights is None:
            return
        old = self.weights
        if float(weights @ gram @ weights) < float(old @ gram @ old):
            old[:] = weights
            self._active = np.flatnonzero(weights)

    def _accept(self, weights: Vector) -> None:
        self.weights[:] = weights
        self._active = np.flatnonzero(weights)
        self._solved = self.size
        self.point = weights @ self.gradients

    def _forget(self, active: Indices) -> None:
        """Continue from what is left of the active set."""
        weights = self.weights
        left = weights[active]
        weights[:] = 0.0
        total = float(left.sum())
        if total > 0.0:
            weights[active] = left / total
            self._active = active
        else:
            self._active = np.empty(0, dtype=np.intp)
        self._solved = min(self._solved, self.size)
        self.point = weights @ self.gradients

    def _products(self, index: int) -> None:
        row = self._rows[: self.size] @ self._rows[index]
        self._gram[index, : self.size] = row
        self._gram[: self.size, index] = row

    def _grow(self) -> None:
        old = len(self._rows)
        rows, gram, weights = self._rows, self._gram, self._weights
        self._rows = np.empty((2 * old, self.dim))
        self._gram = np.empty((2 * old, 2 * old))
        self._weights = np.zeros(2 * old)
        self._rows[:old], self._gram[:old, :old], self._weights[:old] = rows, gram, weights


def _vertex(count: int, index: int) -> Vector:
    weights = np.zeros(count)
    weights[index] = 1.0
    return weights


def _on_simplex(raw: Vector) -> Vector | None:
    """Clip and normalise, or None when nothing positive and finite is left."""
    weights = np.where(np.isfinite(raw), raw, 0.0).clip(min=0.0)
    total = float(weights.sum())
    if not (0.0 < total < math.inf):
        return None
    weights /= total
    return weights
