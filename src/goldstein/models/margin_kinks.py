"""The kink form of the margin objective: limits of gradients along many directions in one pass.

At a pivot the rows off their kinks pull the same way along every direction. Their part of the
gradient is enclosed once; each row on a kink adds its own vector, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.calculus.arithmetic import ENCLOSURE
from goldstein.calculus.enclosures import Enclosure
from goldstein.calculus.kinks import Examination, KinkForm
from goldstein.errors import NotCertifiableError
from goldstein.numerics.exact import exact_signs

if TYPE_CHECKING:
    from goldstein.models.margin_svm import MarginSVM

Matrix = NDArray[np.float64]

#: Entries of the rows on kinks, or of the gradients, up to which they are written out.
WRITTEN_OUT = 10**7


class MarginKinkForm(KinkForm):
    """A margin objective seen through its kinks."""

    root: MarginSVM

    def limiting_boxes(
        self, point: Sequence[Any], directions: Sequence[Sequence[Any]] | NDArray[Any]
    ) -> tuple[Matrix, Matrix] | None:
        """Return enclosures of the limits of gradients, as the general form does."""
        found = self.examine(point)
        ties = found.ties.get(id(self.root.loss), [])
        ways = np.asarray(directions)
        written = max(len(ties), len(ways)) * self.dim
        if (
            len(ways) < 2
            or not ties
            or written > WRITTEN_OUT
            or ways.dtype != np.float64
            or self._affords_rationals(len(ways))
        ):
            return super().limiting_boxes(point, directions)
        return self._from_common_part(found, ties, ways)

    def _from_common_part(
        self, found: Examination, ties: list[tuple[int, int]], ways: Matrix
    ) -> tuple[Matrix, Matrix]:
        loss = self.root.loss
        entries, levels = np.array(ties).T
        pieces = found.pieces[id(loss)].copy()
        # Pieces 0 and 2 are flat, piece 1 is the ramp; level k lies between pieces k and k + 1.
        pieces[entries] = 2 * levels
        common = self._enclosed(found, {**found.pieces, id(loss): pieces})
        Z = self.root.Z[entries]
        rows = Z.toarray() if sparse.issparse(Z) else Z
        sides = np.array([exact_signs(rows, way) for way in ways])
        if not sides.all():
            raise NotCertifiableError(
                "the direction stays on a kink: it does not show a point of differentiability."
            )
        on_ramp = np.where(levels == 0, sides > 0, sides < 0)
        slope = ENCLOSURE.constant(-1 / Fraction(self.root.rho))
        weights = Enclosure(self.root.problem.weights[entries][:, None])
        limits = common + Enclosure(on_ramp.astype(np.float64)) @ (
            Enclosure(rows) * (weights * slope)
        )
        if not (np.isfinite(limits.mid).all() and np.isfinite(limits.rad).all()):
            raise NotCertifiableError("a gradient at the pivot overflows; rescale the data.")
        return limits.mid, limits.rad


__all__ = ["MarginKinkForm"]
