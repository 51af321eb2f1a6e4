"""The inverse of a positive definite matrix on a changing set of its rows.

A large hull problem changes its active set by one row at a time. Updating the inverse costs a
rank-one product where factorising afresh costs a cube; one step of refinement and a test of the
residual keep it accurate.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsymv, dsyr
from scipy.linalg.lapack import dpotrf, dpotri

from goldstein.checker.arrays import Indices, Matrix, Vector

#: Residual that is accepted after refinement.
_RESIDUAL = 1e-5
#: The same after factorising afresh: nothing better is to be had from these products.
_LAST_RESIDUAL = 1e-3
#: Added to the diagonal, in units of the shift: many gradients are nearly dependent.
RIDGE = 1e-13


class ActiveInverse:
    """Solve (G + c) u = 1 on a set of rows, from one set to the next.

    Parameters
    ----------
    size : int
        Rows of G at most.

    Examples
    --------
    >>> inverse = ActiveInverse(3)
    >>> gram = np.diag([1.0, 2.0, 4.0])
    >>> inverse.solve(gram, np.array([0, 2]), 0.0)
    array([1.  , 0.25])
    >>> inverse.solve(gram, np.array([0, 1, 2]), 0.0)
    array([1.  , 0.5 , 0.25])
    """

    def __init__(self, size: int) -> None:
        # Zero outside the active rows; only the lower triangle is kept.
        self._inverse: Matrix = np.zeros((size, size), order="F")
        self._active = np.zeros(size, dtype=bool)
        self._shift = 0.0

    @property
    def size(self) -> int:
        return len(self._inverse)

    def forget(self) -> None:
        """Start afresh at the next question."""
        self._active[:] = False

    def renumber(self, kept: Indices) -> None:
        """Row `kept[i]` becomes row i; the others are gone."""
        gone = self._active.copy()
        if (kept >= self.size).any():
            self.forget()  # rows came after the last question, and the storage grew
            return
        gone[kept] = False
        if np.count_nonzero(gone) > 8:
            self.forget()
            return
        for index in np.flatnonzero(gone):
            if not self._remove(int(index)):
                self.forget()
                return
        lower = np.tril(self._inverse)
        full = lower + np.tril(lower, -1).T
        self._inverse[:] = 0.0
        count = len(kept)
        self._inverse[:count, :count] = full[np.ix_(kept, kept)]
        active = self._active[kept]
        self._active[:] = False
        self._active[:count] = active

    def solve(self, gram: Matrix, active: Indices, shift: float) -> Vector | None:
        """Return u with (gram + shift) u = 1 on the active rows, or None if it is near singular."""
        wanted = np.zeros(self.size, dtype=bool)
        wanted[active] = True
        changed = np.flatnonzero(wanted != self._active)
        fresh = changed.size > 8 + len(active) // 16 or not self._active.any()
        if not fresh:
            # Rows leave before others enter: the smaller matrix is better conditioned.
            leaving = changed[self._active[changed]]
            entering = changed[wanted[changed]]
            fresh = not (
                all(self._remove(int(i)) for i in leaving)
                and all(self._enter(gram, int(i)) for i in entering)
            )
        answer = None if fresh else self._refined(gram, active, _RESIDUAL)
        if answer is None and self._factorise(gram, active, shift):
            answer = self._refined(gram, active, _LAST_RESIDUAL)
        if answer is None:
            self.forget()
        return answer

    def _enter(self, gram: Matrix, index: int) -> bool:
        column = np.zeros(self.size)
        column[: len(gram)] = gram[index] + self._shift
        pivot = column[index] + RIDGE * self._shift
        column *= self._active
        image = dsymv(1.0, self._inverse, column, lower=1)
        schur = pivot - float(column @ image)
        if not schur > 0.1 * RIDGE * pivot:
            return False
        image[index] = -1.0
        self._inverse = dsyr(1.0 / schur, image, lower=1, a=self._inverse, overwrite_a=1)
        self._active[index] = True
        return True

    def _remove(self, index: int) -> bool:
        inverse = self._inverse
        column = np.concatenate([inverse[index, :index], inverse[index:, index]])
        pivot = float(column[index])
        if not pivot > 0.0:
            return False
        self._inverse = inverse = dsyr(-1.0 / pivot, column, lower=1, a=inverse, overwrite_a=1)
        inverse[index, : index + 1] = 0.0
        inverse[index:, index] = 0.0
        self._active[index] = False
        return True

    def _factorise(self, gram: Matrix, active: Indices, shift: float) -> bool:
        active = np.sort(active)
        block = gram[np.ix_(active, active)] + shift
        block.flat[:: len(active) + 1] += RIDGE * shift
        factor, failed = dpotrf(block.T, lower=1, overwrite_a=1)
        if failed:
            return False
        block, failed = dpotri(factor, lower=1, overwrite_c=1)
        if failed:
            return False
        self._inverse[:] = 0.0
        self._inverse[np.ix_(active, active)] = np.tril(block)
        self._active[:] = False
        self._active[active] = True
        self._shift = shift
        return True

    def _refined(self, gram: Matrix, active: Indices, tolerance: float) -> Vector | None:
        size = len(gram)
        rough = dsymv(1.0, self._inverse, self._active.astype(np.float64), lower=1)
        for _ in range(3):
            residual = np.zeros(self.size)
            image = gram @ rough[:size] + (RIDGE * self._shift) * rough[:size]
            residual[active] = 1.0 - image[active] - self._shift * rough.sum()
            error = float(np.abs(residual).max())
            if not error <= 0.5:
                return None
            rough += dsymv(1.0, self._inverse, residual, lower=1)
            if error <= tolerance:
                answer: Vector = rough[active]
                return answer
        return None
