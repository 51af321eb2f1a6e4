"""The kink form of the margin objective: limits of gradients along many directions in one pass.

At a pivot the rows off their kinks pull the same way along every direction. Their part of the
gradient is enclosed once; each row on a kink adds an exact vector, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.calculus.kinks import RATIONAL_WORK, Examination, GradientEnclosure, KinkForm
from goldstein.errors import NotCertifiableError
from goldstein.numerics.exact import common_denominator, exact_signs

if TYPE_CHECKING:
    from goldstein.models.margin_svm import MarginSVM

#: Entries of the rows on kinks up to which they are written out.
WRITTEN_OUT = 4 * 10**6


class MarginKinkForm(KinkForm):
    """A margin objective seen through its kinks."""

    root: MarginSVM

    def limiting_gradients(
        self, point: Sequence[Any], directions: Sequence[Sequence[Any]] | NDArray[Any]
    ) -> list[GradientEnclosure]:
        """Return enclosures of the limits of gradients, as the general form does."""
        found = self.examine(point)
        ties = found.ties.get(id(self.root.loss), [])
        ways = np.asarray(directions)
        exact = self.is_small and self._work * len(ways) <= 10 * RATIONAL_WORK
        written = len(ties) * self.dim
        if exact or len(ways) < 2 or not 0 < written <= WRITTEN_OUT or ways.dtype != np.float64:
            return super().limiting_gradients(point, directions)
        return self._from_common_part(found, ties, ways)

    def _from_common_part(
        self, found: Examination, ties: list[tuple[int, int]], ways: NDArray[np.float64]
    ) -> list[GradientEnclosure]:
        loss = self.root.loss
        entries, levels = np.array(ties).T
        pieces = found.pieces[id(loss)].copy()
        # Pieces 0 and 2 are flat, piece 1 is the ramp; level k lies between pieces k and k + 1.
        pieces[entries] = 2 * levels
        mid, rad = self._enclosed(found, {**found.pieces, id(loss): pieces})
        Z = self.root.Z[entries]
        rows = Z.toarray() if sparse.issparse(Z) else Z
        sides = np.array([exact_signs(rows, way) for way in ways])
        if not sides.all():
            raise NotCertifiableError(
                "the direction stays on a kink: it does not show a point of differentiability."
            )
        on_ramp = np.where(levels == 0, sides > 0, sides < 0)
        pulls, denominator = self._pulls(rows, entries)
        tops, bottom = common_denominator(mid)
        base = np.array(tops, dtype=object) * denominator
        total = bottom * denominator
        answers: list[GradientEnclosure] = []
        for here in on_ramp:
            exact = base + bottom * pulls[here].sum(axis=0) if here.any() else base
            answers.append(([Fraction(top, total) for top in exact.tolist()], rad))
        return answers

    def _pulls(
        self, rows: NDArray[np.float64], entries: NDArray[np.intp]
    ) -> tuple[NDArray[np.object_], int]:
        """Return the gradients of the losses of some rows on the ramp: integers, a denominator."""
        tops, bottom = common_denominator(rows.ravel())
        weights, under = common_denominator(self.root.problem.weights[entries])
        rho = Fraction(self.root.rho)
        pulls = np.array(tops, dtype=object).reshape(rows.shape)
        pulls *= -rho.denominator * np.array(weights, dtype=object)[:, None]
        return pulls, bottom * under * rho.numerator


__all__ = ["MarginKinkForm"]
