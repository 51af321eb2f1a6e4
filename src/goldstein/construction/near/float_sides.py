"""Which pieces rule just beside a point, as float64 sees it: for searches, not for proofs."""

from __future__ import annotations

import numpy as np

from goldstein.calculus.atoms.base import Elementwise
from goldstein.calculus.atoms.maximum import Max
from goldstein.calculus.atoms.row_maximum import RowMax
from goldstein.calculus.expression import KinkNode, Pieces, Tie
from goldstein.calculus.kinks import Examination
from goldstein.checker.arrays import Matrix, Vector
from goldstein.construction.near.local_model import dense
from goldstein.errors import NotCertifiableError

#: Rates of change closer than this, relative to the rows, do not decide.
UNDECIDED = 1e-11


class FloatSides:
    """The pieces beside an examined point, direction by direction.

    Where all kinks through the point are ties of affine entries, their rates of change along a
    direction decide, in float64; elsewhere the exact form is asked.
    """

    def __init__(self, found: Examination) -> None:
        self.found = found
        self._parts: list[tuple[KinkNode, list[Tie], Matrix, Vector]] = []
        self._simple = True
        for node in found.form.root.kink_nodes:
            ties = found.ties.get(id(node))
            if not ties:
                continue
            inner = node.args[0]
            if not inner.is_affine or not isinstance(node, Elementwise | Max | RowMax):
                self._simple = False
                return
            rows = dense([found.row(inner, entry) for entry, _ in ties], found.form.dim)
            self._parts.append((node, ties, rows, np.linalg.norm(rows, axis=1)))

    def pieces(self, direction: Vector) -> Pieces | None:
        """Return the pieces beside the point, or None where the direction does not decide."""
        if not self._simple:
            try:
                return self.found.form.pieces_beside(self.found, direction.tolist())
            except NotCertifiableError:
                return None
        pieces = dict(self.found.pieces)
        size = float(np.linalg.norm(direction))
        for node, ties, rows, lengths in self._parts:
            rates, slack = rows @ direction, UNDECIDED * size * lengths
            if isinstance(node, Elementwise):
                if (np.abs(rates) <= slack).any():
                    return None
                entries, levels = np.array(ties).T
                chosen = pieces[id(node)].copy()
                chosen.flat[entries] = levels + (rates > 0)
            elif isinstance(node, Max):
                best = _winner(rates, slack)
                if best is None:
                    return None
                chosen = ties[best][0]
            else:
                assert isinstance(node, RowMax)
                chosen = pieces[id(node)].copy()
                owners, columns = np.divmod([entry for entry, _ in ties], node.columns)
                for owner in np.unique(owners).tolist():
                    among = np.flatnonzero(owners == owner)
                    best = _winner(rates[among], slack[among])
                    if best is None:
                        return None
                    chosen[owner] = columns[among[best]]
            pieces[id(node)] = chosen
        return pieces


def _winner(rates: Vector, slack: Vector) -> int | None:
    """Return the place of the largest rate; None if another one comes close without being equal."""
    best = int(rates.argmax())
    gap = rates[best] - rates
    close = (gap > 0) & (gap <= slack + slack[best])
    return None if close.any() else best


__all__ = ["FloatSides"]
