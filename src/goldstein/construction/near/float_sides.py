"""Which pieces rule just beside a point, as float64 sees it: for searches, not for proofs."""

from __future__ import annotations

import numpy as np

from goldstein.calculus.evaluation import Pieces
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.nodes import Norm2, Order, Piecewise
from goldstein.checker.sides import Point, Side
from goldstein.construction.near.kinks import Kink, Kinks
from goldstein.errors import NotCertifiableError

#: Rates of change closer than this, relative to the rows, do not decide.
UNDECIDED = 1e-11


class FloatSides:
    """The pieces beside a point, direction by direction.

    Where all kinks through the point are ties of affine entries, their rates of change along a
    direction decide, in float64; elsewhere the checker is asked.
    """

    def __init__(self, form: Kinks, point: Point) -> None:
        self.form, self.point = form, point
        kinks = form.active(point)
        self._simple = all(
            form.affine(k) and not isinstance(form.nodes[k], Norm2 | Order) for k, _, _ in kinks
        )
        #: Entries of one node; or ties of one row.
        self._parts: list[tuple[list[Kink], Matrix, Vector]] = []
        if self._simple:
            rows, groups = form.rows(point, kinks), dict[tuple[int, int], list[int]]()
            for j, (k, _, level) in enumerate(kinks):
                tied = not isinstance(form.nodes[k], Piecewise)
                if tied or rows[j].any():
                    groups.setdefault((k, level if tied else -1), []).append(j)
            self._parts = [
                ([kinks[j] for j in some], rows[some], np.linalg.norm(rows[some], axis=1))
                for some in groups.values()
            ]

    def pieces(self, direction: Vector) -> Pieces | None:
        """Return the pieces beside the point, or None where the direction does not decide."""
        if not self._simple:
            try:
                return Side(self.point, direction).pieces
            except NotCertifiableError:
                return None
        pieces = dict(self.point.pieces)
        size = float(np.linalg.norm(direction))
        for kinks, rows, lengths in self._parts:
            k = kinks[0].k
            rates, slack = rows @ direction, UNDECIDED * size * lengths
            chosen = pieces[k].copy()
            if isinstance(self.form.nodes[k], Piecewise):
                if (np.abs(rates) <= slack).any():
                    return None
                _, entries, levels = np.array(kinks).T
                chosen[entries] = levels + (rates > 0)
            else:
                best = _winner(rates, slack)
                if best is None:
                    return None
                chosen[kinks[best].level] = kinks[best].entry
            pieces[k] = chosen
        return pieces


def _winner(rates: Vector, slack: Vector) -> int | None:
    """Return the place of the largest rate; None if another one comes close without being equal."""
    best = int(rates.argmax())
    gap = rates[best] - rates
    close = (gap > 0) & (gap <= slack + slack[best])
    return None if close.any() else best


__all__ = ["FloatSides"]
