"""Norms and squares: sum_squares, norm1, norm2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.calculus.affine import multiply_jets, sum_entries
from goldstein.calculus.arithmetic import FLOAT, RATIONAL, Arithmetic, Irrational
from goldstein.calculus.atoms.activations import absolute
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
from goldstein.errors import InputError, NotCertifiableError


class SumSquares(Expression):
    """The sum of the squares of all entries."""

    own_degree = 2

    def __init__(self, arg: Any) -> None:
        super().__init__((as_expression(arg, "sum_squares"),), ())

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        flat = values[0].reshape(-1)
        if arithmetic is FLOAT:
            return np.asarray(flat @ flat)
        return (flat * flat).sum()

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        # In this order: twice the cotangent may overflow where the entries are 0.
        return (values[0] * cotangent * arithmetic.constant(np.asarray(2.0)),)

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        value = np.asarray(float((b.value**2).sum()))
        lipschitz = 0.0 if b.lipschitz == 0.0 else 2.0 * b.size * b.lipschitz
        return Bound(value, lipschitz, b.radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        return multiply_jets(jets[0], jets[0], lambda a, b: np.asarray((a * b).sum(), dtype=object))


class Norm2(KinkNode):
    """The Euclidean norm of all entries; its only kink is the origin.

    A piece is None where the argument is visibly not zero. Else it is a direction: that of the
    argument where it is too small to be enclosed, that in which it is left at the origin.
    """

    own_degree = float("inf")

    def __init__(self, arg: Any) -> None:
        arg = as_expression(arg, "norm2")
        if arg.size == 0:
            raise InputError("norm2 expects at least one entry, got none.")
        super().__init__((arg,), ())

    @property
    def has_kinks(self) -> bool:
        return True

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        flat = values[0].reshape(-1)
        if arithmetic is FLOAT:
            return np.asarray(_length(flat))
        if arithmetic is RATIONAL:
            raise Irrational("norm2")
        return (flat * flat).sum().root()

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        u = values[0]
        if arithmetic is FLOAT:
            if isinstance(piece, tuple):
                u = np.array([float(q) for q in piece]).reshape(self.args[0].shape)
            elif not u.any():  # lost to underflow
                return (np.zeros(u.shape),)
            return (cotangent * _unit(u),)
        if arithmetic is RATIONAL:
            raise Irrational("norm2")
        if isinstance(piece, tuple):
            u = Enclosure.of(piece).reshape(self.args[0].shape)
        flat = u.reshape(-1)
        return (u * (cotangent * (flat * flat).sum().root().reciprocal()),)

    def clear_piece(self, u: Vector, slack: Any) -> Any:
        return "away" if (np.abs(u) > np.reshape(slack, u.shape)).any() else None

    def nearest_piece(self, u: Vector) -> Any:
        return "away" if u.any() else tuple(np.ones(u.size))

    def examine(self, u: Enclosure, exact: ExactEntry) -> tuple[Any, list[Tie], list[int]]:
        if u.signs().any():
            return None, [], []
        entries = [exact(i) for i in range(u.size)]
        if any(entries):
            return _direction(entries), [], []
        # Should the argument never leave the origin, any direction serves: nothing depends on it.
        return _direction([Fraction(1)] + entries[1:]), [(0, 0)], []

    def felt(self, ties: list[Tie], moves: Callable[[int], bool]) -> list[Tie]:
        return ties if any(moves(i) for i in range(self.args[0].size)) else []

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        (inner,) = args
        return Still.everywhere((), bool(inner.constant.all()), bool(inner.zero.all()))

    def split(self, piece: Any, ties: list[Tie], leading: Leading) -> Any:
        paths = [leading(i) for i in range(self.args[0].size)]
        for power in range(max(len(path) for path in paths)):
            direction = [path[power] if power < len(path) else Fraction(0) for path in paths]
            if any(direction):
                return _direction(direction)
        raise NotCertifiableError("the direction stays at the origin of a norm.")

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        return Bound(np.asarray(np.linalg.norm(b.value)), b.lipschitz, b.radius)


def _direction(entries: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Scale to largest entry 1: its square does not underflow."""
    top = max(abs(entry) for entry in entries)
    return tuple(entry / top for entry in entries)


def _power_of_two(u: Vector) -> int:
    """The exponent that brings the largest entry near 1: squares neither over- nor underflow."""
    return int(np.frexp(np.abs(u).max(initial=0.0))[1])


def _length(u: Vector) -> float:
    exponent = _power_of_two(u)
    return float(np.ldexp(np.linalg.norm(np.ldexp(u, -exponent)), exponent))


def _unit(u: Vector) -> Vector:
    scaled = np.ldexp(u, -_power_of_two(u))
    answer: Vector = scaled / np.linalg.norm(scaled)
    return answer


def norm1(u: Expression) -> Expression:
    """Return the sum of the absolute values.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> norm1(Variable(2)).value(np.array([3.0, -4.0]))
    7.0
    """
    return sum_entries(absolute(u))


def norm2(u: Expression) -> Expression:
    """Return the Euclidean norm.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> norm2(Variable(2)).value(np.array([3.0, -4.0]))
    5.0
    """
    return Norm2(u)


__all__ = ["Norm2", "SumSquares", "norm1", "norm2"]
