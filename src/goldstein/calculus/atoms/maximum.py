"""The largest entry of an expression, and the maximum of affine functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.calculus.affine import linear
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
from goldstein.errors import InputError, InputTypeError, NotCertifiableError


class Max(KinkNode):
    """The largest entry. A piece is the flat index of the entry that is the largest."""

    def __init__(self, arg: Expression) -> None:
        if arg.size == 0:
            raise InputError("max expects at least one entry, got none.")
        super().__init__((arg,), ())

    @property
    def has_kinks(self) -> bool:
        return self.args[0].size > 1

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        flat = values[0].reshape(-1)
        return np.asarray(flat.max()) if piece is None else flat[piece]

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        out = arithmetic.zeros((self.args[0].size,))
        at = 0 if piece is None else int(piece)
        if isinstance(out, Enclosure):
            spot = np.zeros(out.size)
            spot[at] = 1.0
            return ((cotangent * spot).reshape(self.args[0].shape),)
        out[at] = np.asarray(cotangent).item()
        return (out.reshape(self.args[0].shape),)

    def clear_piece(self, u: Vector, slack: Any) -> Any:
        flat, margin = u.reshape(-1), np.reshape(slack, -1)
        top = int(flat.argmax())
        # Written so that a NaN or an overflow counts as doubt.
        beaten = flat + margin < flat[top] - margin[top]
        return top if beaten.sum() == flat.size - 1 else None

    def nearest_piece(self, u: Vector) -> Any:
        return int(u.reshape(-1).argmax())

    @np.errstate(all="ignore")
    def examine(self, u: Enclosure, exact: ExactEntry) -> tuple[Any, list[Tie], list[int]]:
        flat = u.reshape(-1)
        floor = float((flat.mid - flat.rad).max()) if np.isfinite(flat.rad).all() else -np.inf
        reach = flat.mid + flat.rad
        # The doubled margin covers the rounding of the two lines above.
        rivals = np.flatnonzero(
            ~(reach + 2.0**-50 * np.abs(reach) + 2.0**-1000 < floor - 2.0**-50 * abs(floor))
        )
        if rivals.size == 1:
            return int(rivals[0]), [], []
        values = {i: exact(i) for i in rivals.tolist()}
        top = max(values.values())
        tied = [i for i, value in values.items() if value == top]
        if len(self._distinct(tied)) == 1:
            return tied[0], [], []
        return tied[0], [(i, 0) for i in tied], []

    def _distinct(self, entries: list[int]) -> dict[Any, int]:
        """One entry for every different affine function among the given ones."""
        inner = self.args[0]
        if not inner.is_affine:
            return {i: i for i in entries}
        kinds: dict[Any, int] = {}
        for i in entries:
            kinds.setdefault((tuple(sorted(inner.row(i).items())), inner.offset(i)), i)
        return kinds

    def felt(self, ties: list[Tie], moves: Callable[[int], bool]) -> list[Tie]:
        return ties if any(moves(i) for i, _ in ties) else []

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        (inner,) = args
        top = sorted(touched) or [piece]
        parts = inner.constant.reshape(-1)[top], inner.zero.reshape(-1)[top]
        return Still.everywhere((), *(bool(part.all()) for part in parts))

    def split(self, piece: Any, ties: list[Tie], leading: Leading) -> Any:
        paths = {i: list(leading(i)) for i in self._distinct([i for i, _ in ties]).values()}
        length = max(len(path) for path in paths.values())
        padded = {i: path + [Fraction(0)] * (length - len(path)) for i, path in paths.items()}
        best = max(padded.values())
        winners = [i for i, path in padded.items() if path == best]
        if len(winners) > 1:
            raise NotCertifiableError("the direction does not separate the tied entries of max.")
        return winners[0]

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        return Bound(np.asarray(b.value.max()), b.lipschitz, b.radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        return [np.asarray(c.reshape(-1)[piece], dtype=object) for c in jets[0]]


def largest(u: Any, *others: Any) -> Expression:
    """Return the largest entry of an expression, or of a list of them (public name: `max`).

    Examples
    --------
    >>> from goldstein.calculus import Variable, max
    >>> x, y = Variable(2)
    >>> max([x + y, x * y, 1.0]).value(np.array([2.0, 3.0]))
    6.0
    """
    _require_one("max", others)
    return Max(as_expression(u, "max"))


def smallest(u: Any, *others: Any) -> Expression:
    """Return the smallest entry of an expression, or of a list of them (public name: `min`).

    Examples
    --------
    >>> from goldstein.calculus import Variable, min
    >>> min(Variable(3)).value(np.array([1.0, 5.0, 2.0]))
    1.0
    """
    _require_one("min", others)
    return -Max(-as_expression(u, "min"))


def _require_one(name: str, others: tuple[Any, ...]) -> None:
    if others:
        raise InputTypeError(
            f"{name} takes one expression, or a list of them: {name}([a, b]). For two expressions, "
            f"entry by entry, use {name}imum(a, b)."
        )


def max_affine(A: Any, b: Any, w: Expression) -> Expression:
    """Return the maximum of the affine functions `A @ w + b`.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> max_affine([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]], 0.0, Variable(2)).value(np.array([1, 0]))
    2.0
    """
    return Max(linear(A, w) + b)


__all__ = ["Max", "largest", "max_affine", "smallest"]
