"""The kink form of the margin objective: limits of gradients along many directions in one pass.

At a pivot the rows off their kinks pull the same way along every direction. Their part of the
gradient is enclosed once; each row on a kink adds its own vector, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.calculus.affine import Linear
from goldstein.calculus.arithmetic import ENCLOSURE
from goldstein.calculus.atoms.base import Elementwise, PiecewisePolynomial
from goldstein.calculus.blocked_rows import BlockedRows
from goldstein.calculus.expression import Expression, KinkNode
from goldstein.calculus.kinks import Examination, KinkForm
from goldstein.checker.enclosures import Enclosure
from goldstein.checker.rounding import UNIT, norm_upper
from goldstein.errors import NotCertifiableError
from goldstein.numerics.exact import exact_signs

Matrix = NDArray[np.float64]

#: Entries of the rows on kinks, or of the gradients, up to which they are written out.
WRITTEN_OUT = 10**7

#: Entries that are enclosed at a time.
BLOCK = 2**14

#: More than a product can lose by underflow, even if subnormals are flushed.
UNDERFLOW = 2.0**-1000


class MarginKinkForm(KinkForm):
    """A margin objective seen through its kinks."""

    @property
    def _loss(self) -> Elementwise:
        """The ramps. What is proved is read from the tree, not from the model's attributes."""
        (loss,) = self.root.kink_nodes
        assert isinstance(loss, Elementwise)
        return loss

    @property
    def _steepness(self) -> Enclosure:
        """The slope of the ramp, -1/rho."""
        function = self._loss.function
        assert isinstance(function, PiecewisePolynomial)
        answer: Enclosure = ENCLOSURE.constant(function.slopes[1][0])
        return answer

    @property
    def _rows(self) -> Any:
        """The matrix whose rows decide which ramp is where."""
        node: Expression = self._loss.args[0]
        while not isinstance(node, Linear):
            (node,) = node.args
        return node.A

    def _decide(self, node: KinkNode, found: Examination) -> None:
        if isinstance(self._rows, BlockedRows) and node is self._loss:
            # Exact arithmetic needs the rows in doubt, one after the other: fetch them together.
            self._rows.keep(self._loss.in_doubt(found.values[id(node.args[0])]).tolist())
        super()._decide(node, found)

    def limiting_boxes(
        self, point: Sequence[Any], directions: Sequence[Sequence[Any]] | NDArray[Any]
    ) -> tuple[Matrix, Matrix] | None:
        """Return enclosures of the limits of gradients, as the general form does."""
        found = self.examine(point)
        ties = found.ties.get(id(self._loss), [])
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
        loss = self._loss
        entries, levels = np.array(ties).T
        pieces = found.pieces[id(loss)].copy()
        # Pieces 0 and 2 are flat, piece 1 is the ramp; level k lies between pieces k and k + 1.
        pieces[entries] = 2 * levels
        slopes = self.root.cotangents(found.values, ENCLOSURE, {**found.pieces, id(loss): pieces})
        common, weights = slopes[id(self.root.variable)], slopes[id(loss)][entries]
        Z = self._rows[entries]
        rows = Z.toarray() if sparse.issparse(Z) else Z
        sides = _signs_of_products(ways, rows)
        if not sides.all():
            raise NotCertifiableError(
                "the direction stays on a kink: it does not show a point of differentiability."
            )
        on_ramp = np.where(levels == 0, sides > 0, sides < 0)
        pulls = (weights * self._steepness).reshape(-1, 1)
        mid, rad = np.empty((len(ways), self.dim)), np.empty(self.dim)
        ramps = Enclosure(on_ramp.astype(np.float64))
        step = max(1, BLOCK // max(on_ramp.shape))
        for start in range(0, self.dim, step):
            some = slice(start, start + step)
            limits = common[some] + ramps @ (Enclosure(rows[:, some]) * pulls)
            # One radius per coordinate, the largest, serves all directions.
            mid[:, some], rad[some] = limits.mid, limits.rad.max(axis=0)
        if not (np.isfinite(mid).all() and np.isfinite(rad).all()):
            raise NotCertifiableError("a gradient at the pivot overflows; rescale the data.")
        return mid, np.broadcast_to(rad, mid.shape)


@np.errstate(all="ignore")
def _signs_of_products(left: Matrix, right: Matrix) -> NDArray[np.int8]:
    """Return the exact signs of all inner products of a row of `left` and one of `right`."""
    d = left.shape[1]
    value = left @ right.T
    sizes = [np.array([norm_upper(row) for row in rows]) for rows in (left, right)]
    # Twice the bound of the rounding errors, for those of the bound itself; and underflow.
    error = 2 * (d + 4) * UNIT * np.multiply.outer(*sizes) + (d + 2) * UNDERFLOW
    decided = np.abs(value) > error  # False wherever something overflowed
    signs = np.where(decided, np.sign(value), 0).astype(np.int8)
    for i, j in zip(*np.nonzero(~decided)):
        signs[i, j] = exact_signs(right[j : j + 1], left[i])[0]
    return signs


__all__ = ["MarginKinkForm"]
