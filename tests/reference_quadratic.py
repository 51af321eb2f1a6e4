"""Quadratic programmes on the simplex by an active-set method: the reference."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dposv

_RIDGE = 1e-14
_SLACK = 1e-9


def minimise_on_simplex(
    gram: np.ndarray, linear: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Return w on the simplex minimising w'Kw/2 + a'w, by a primal active-set method.

    Only a proposal is made of the answer, so the method may stop early: it returns feasible
    weights whatever happens. `start` are the weights of a similar problem (any scale; zeros: none).

    Examples
    --------
    >>> minimise_on_simplex(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 0.5])).round(12)
    array([0.75, 0.25])
    """
    count = linear.size
    gram = np.array(gram, order="C")  # contiguous, and ours
    diagonal = gram.diagonal()
    scale = diagonal.item(int(diagonal.argmax()))
    face = _Face(gram, linear, start)
    gram.reshape(-1)[:: count + 1] += _RIDGE * scale
    for _ in range(4 * count):
        if not face.minimise():
            break
        slopes = face.slopes()
        level = sum(map(float.__mul__, face.values, slopes.take(face.support).tolist()))
        entering = int(slopes.argmin())
        slack = _SLACK * (abs(level) + 1e-4 * scale)
        if not slopes.item(entering) < level - slack or entering in face.support:
            break
        face.support.append(entering)
        face.values.append(0.0)
    weights = np.zeros(count)
    weights[face.support] = face.values
    weights /= math.fsum(face.values)
    return weights


class _Face:
    """The indices with weight, and their weights."""

    def __init__(self, gram: np.ndarray, linear: np.ndarray, start: np.ndarray | None) -> None:
        self.gram = gram
        self.linear = linear
        self.support: list[int] = []
        self.values: list[float] = []
        self._rows: np.ndarray = gram
        total = 0.0
        if start is not None:
            self.support = start.nonzero()[0].tolist()
            self.values = start.take(self.support).tolist() if self.support else []
            total = sum(self.values)
        if 0.0 < total < math.inf:
            self.values = [value / total for value in self.values]
        else:
            self.support = [int((0.5 * gram.diagonal() + linear).argmin())]
            self.values = [1.0]

    def minimise(self) -> bool:
        """Go to the minimiser over the face, leaving it where a weight vanishes.

        False when rounding stops the walk.
        """
        support, values = self.support, self.values
        while True:
            target = self._affine()
            if target is None:
                return False
            if min(target) > 0.0:
                self.values = target
                return True
            # Walk towards the affine solution until the first weight vanishes.
            step, leaving = math.inf, 0
            for place, (have, want) in enumerate(zip(values, target)):
                if want <= 0.0:
                    ratio = have / (have - want) if have > 0.0 else 0.0
                    if ratio < step:
                        step, leaving = ratio, place
            for place, want in enumerate(target):
                values[place] = max(0.0, values[place] + step * (want - values[place]))
            del support[leaving], values[leaving]

    def slopes(self) -> np.ndarray:
        """Derivatives with respect to all weights, at the minimiser over the face."""
        slopes: np.ndarray = np.array(self.values).dot(self._rows)
        slopes += self.linear
        return slopes

    def _between(self, i: int, j: int) -> list[float] | None:
        """The same for two indices, the most frequent case."""
        gram, linear = self.gram, self.linear
        mixed = gram.item(i, j)
        first, last = gram.item(i, i) - mixed, gram.item(j, j) - mixed
        gap = first + last
        if not gap > 0.0:
            return None
        share = (first + linear.item(i) - linear.item(j)) / gap
        return [1.0 - share, share] if math.isfinite(share) else None

    def _affine(self) -> list[float] | None:
        """Minimise over the affine hull of the face, ignoring signs."""
        indices = np.array(self.support)
        self._rows = self.gram.take(indices, 0)
        size = len(self.support)
        if size == 1:
            return [1.0]
        if size == 2:
            return self._between(*self.support)
        sides = np.empty((2, size))
        sides[0] = 1.0
        sides[1] = self.linear.take(indices)
        block = self._rows.take(indices, 1)
        _, solution, failed = dposv(block.T, sides.T, overwrite_a=1, overwrite_b=1)
        if failed:
            return None
        ones, shift = solution.T.tolist()
        total = sum(ones)
        if not 0.0 < total < math.inf:
            return None
        level = (1.0 + sum(shift)) / total
        target = [level * one - back for one, back in zip(ones, shift)]
        return target if math.isfinite(sum(target)) else None
