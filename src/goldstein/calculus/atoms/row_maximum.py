"""The largest entry of every row of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.calculus.arithmetic import Arithmetic
from goldstein.calculus.expression import (
    Bound,
    ExactEntry,
    Expression,
    Jet,
    KinkNode,
    Leading,
    Tie,
    as_expression,
)
from goldstein.calculus.stillness import Still
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.errors import InputTypeError, NotCertifiableError


class RowMax(KinkNode):
    """The largest entry of every row. A piece is the column of the largest entry, per row."""

    def __init__(self, arg: Expression) -> None:
        if arg.ndim != 2 or arg.shape[1] == 0:
            raise InputTypeError("row_max expects an expression of shape (n, k) with k >= 1.")
        super().__init__((arg,), arg.shape[:1])

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        return np.arange(self.args[0].shape[0])

    @property
    def columns(self) -> int:
        """Entries per row."""
        return self.args[0].shape[1]

    @property
    def has_kinks(self) -> bool:
        return self.columns > 1

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        (u,) = values
        return np.asarray(u.max(axis=1)) if piece is None else u[self._rows, piece]

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        (u,) = values
        chosen = np.zeros(self.args[0].shape)
        chosen[self._rows, u.argmax(axis=1) if piece is None else piece] = 1.0
        if isinstance(cotangent, Enclosure):
            return (cotangent.reshape(-1, 1) * chosen,)
        spread = np.broadcast_to(cotangent, self.shape)[:, None]
        if spread.dtype != object:
            return (spread * chosen,)
        out = arithmetic.zeros(self.args[0].shape)
        for i, j in zip(*np.nonzero(chosen)):
            out[i, j] = spread[i, 0]
        return (out,)

    def clear_piece(self, u: Vector, slack: Any) -> Any:
        margin = np.broadcast_to(np.reshape(slack, u.shape), u.shape)
        top = u.argmax(axis=1)
        floor = (u - margin)[self._rows, top]
        # Written so that a NaN or an overflow counts as doubt.
        beaten = (u + margin < floor[:, None]).sum(axis=1)
        return top if (beaten == self.columns - 1).all() else None

    def nearest_piece(self, u: Vector) -> Any:
        return u.argmax(axis=1)

    @np.errstate(all="ignore")
    def examine(self, u: Enclosure, exact: ExactEntry) -> tuple[Any, list[Tie], list[int]]:
        floor = np.where(np.isfinite(u.rad).all(axis=1), (u.mid - u.rad).max(axis=1), -np.inf)
        reach = u.mid + u.rad
        # The doubled margin covers the rounding of the two lines above.
        low = floor - 2.0**-50 * np.abs(floor)
        rivals = ~(reach + 2.0**-50 * np.abs(reach) + 2.0**-1000 < low[:, None])
        piece = rivals.argmax(axis=1)
        ties: list[Tie] = []
        for i in np.flatnonzero(rivals.sum(axis=1) > 1).tolist():
            values = {j: exact(i * self.columns + j) for j in np.flatnonzero(rivals[i]).tolist()}
            top = max(values.values())
            tied = [j for j, value in values.items() if value == top]
            piece[i] = tied[0]
            if len(self._distinct(i, tied)) > 1:
                ties.extend((i * self.columns + j, 0) for j in tied)
        return piece, ties, []

    def _distinct(self, row: int, columns: list[int]) -> list[int]:
        """One column for every different affine function among the given ones."""
        inner = self.args[0]
        if not inner.is_affine:
            return columns
        kinds: dict[Any, int] = {}
        for j in columns:
            at = row * self.columns + j
            kinds.setdefault((tuple(sorted(inner.row(at).items())), inner.offset(at)), j)
        return list(kinds.values())

    def _by_row(self, entries: Iterable[int]) -> dict[int, list[int]]:
        rows: dict[int, list[int]] = {}
        for entry in entries:
            row, column = divmod(entry, self.columns)
            rows.setdefault(row, []).append(column)
        return rows

    def felt(self, ties: list[Tie], moves: Callable[[int], bool]) -> list[Tie]:
        return [
            (row * self.columns + column, 0)
            for row, columns in self._by_row(entry for entry, _ in ties).items()
            if any(moves(row * self.columns + column) for column in columns)
            for column in columns
        ]

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        (inner,) = args
        constant, zero = (mask[self._rows, piece] for mask in (inner.constant, inner.zero))
        for row, columns in self._by_row(sorted(touched)).items():
            constant[row], zero[row] = (m[row, columns].all() for m in (inner.constant, inner.zero))
        return Still(constant, zero)

    def split(self, piece: Any, ties: list[Tie], leading: Leading) -> Any:
        chosen = piece.copy()
        for row, columns in self._by_row(entry for entry, _ in ties).items():
            paths = {j: list(leading(row * self.columns + j)) for j in self._distinct(row, columns)}
            length = max(len(path) for path in paths.values())
            padded = {j: path + [Fraction(0)] * (length - len(path)) for j, path in paths.items()}
            best = max(padded.values())
            winners = [j for j, path in padded.items() if path == best]
            if len(winners) > 1:
                raise NotCertifiableError(
                    "the direction does not separate the tied entries of a row of row_max."
                )
            chosen[row] = winners[0]
        return chosen

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        return Bound(np.asarray(b.value.max(axis=1)), b.lipschitz, b.radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        return [np.asarray(c[self._rows, piece], dtype=object) for c in jets[0]]


def row_max(u: Any) -> Expression:
    """Return the largest entry of every row.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> row_max(Variable(4).reshape(2, 2))(np.array([1.0, 5.0, 2.0, -3.0]))
    array([5., 2.])
    """
    return RowMax(as_expression(u, "row_max"))


__all__ = ["RowMax", "row_max"]
