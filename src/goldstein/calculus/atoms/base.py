"""What every atom of one real variable answers, and the node that applies it entry by entry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import inf, isinf, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.calculus.affine import add_jets, multiply_jets
from goldstein.calculus.arithmetic import ENCLOSURE, FLOAT, Arithmetic, rational
from goldstein.calculus.expression import (
    Bound,
    ExactEntry,
    Expression,
    Jet,
    KinkNode,
    Leading,
    Tie,
    as_expression,
    leading_sign,
)
from goldstein.calculus.set_once import SetOnce
from goldstein.calculus.stillness import Still
from goldstein.checker.arrays import Indices, Vector
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.rationals import fraction_upper
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact_floats import exact_number


class ScalarFunction(SetOnce, ABC):
    """A continuous function of one real number, smooth between finitely many breakpoints.

    Attributes
    ----------
    name : str
    breakpoints : tuple of Fraction
        Ascending; piece k lies between breakpoint k-1 and breakpoint k.
    jumps : tuple of Fraction
        Jump of the derivative at each breakpoint; a breakpoint with jump 0 is not a kink.
    lipschitz : float
        Global Lipschitz constant, `inf` if there is none.
    curvature : float
        Largest |second derivative| inside the pieces.
    pivot_limit : float
        The nearest-kink pivot rule is valid for every radius below this.
    pivot_limit_attained : bool
        Whether it is valid at the limit too.
    """

    name: str
    breakpoints: tuple[Fraction, ...] = ()
    jumps: tuple[Fraction, ...] = ()
    lipschitz: float = inf
    curvature: float = inf
    pivot_limit: float = inf
    pivot_limit_attained: bool = True
    degree: float = inf
    #: False when values are known in float64 only.
    exact: bool = True

    @abstractmethod
    def value(self, u: Vector) -> Vector:
        """Return the values in float64."""

    @abstractmethod
    def slope(self, u: Vector, piece: Indices) -> Vector:
        """Return the derivatives of the given pieces in float64."""

    @abstractmethod
    def value_in(self, u: Any, piece: Indices, arithmetic: Arithmetic) -> Any:
        """Return the values of the given pieces in another arithmetic."""

    @abstractmethod
    def slope_in(self, u: Any, piece: Indices, arithmetic: Arithmetic) -> Any:
        """Return the derivatives of the given pieces in another arithmetic."""

    @abstractmethod
    def steepest(self, low: float, high: float) -> float:
        """Return an upper bound of |derivative| on an interval."""

    def sharpest(self, low: float, high: float) -> float:
        """Return an upper bound of |second derivative| inside the pieces on an interval."""
        return self.curvature

    @abstractmethod
    def anew(self) -> ScalarFunction:
        """Return the same function, made anew from its definition."""

    def compose_jet(self, u: Jet, piece: Indices) -> Jet:
        """Return the function of a polynomial in t, exactly."""
        raise InputTypeError(f"{self.name} is not a polynomial.")

    @property
    def constants(self) -> tuple[Fraction | None, ...]:
        """The value of every piece that is constant, None for the others."""
        return (None,) * (len(self.breakpoints) + 1)

    @property
    def keeps_zero(self) -> bool:
        """True when the function of 0 is known to be 0."""
        return False

    @cached_property
    def levels(self) -> Vector:
        """The breakpoints as floats."""
        return np.array([float(t) for t in self.breakpoints])

    @cached_property
    def kinks(self) -> tuple[float, ...]:
        """The breakpoints where the derivative jumps."""
        return tuple(float(t) for t, jump in zip(self.breakpoints, self.jumps) if jump)

    @property
    def is_smooth(self) -> bool:
        return not self.kinks

    def piece(self, u: Vector) -> Indices:
        """Return the piece of every entry in float64 (the lower one at a breakpoint)."""
        if len(self.levels) == 1:
            return np.asarray(u > self.levels[0], dtype=np.intp)
        answer: Indices = np.searchsorted(self.levels, u)
        return answer


class PiecewisePolynomial(ScalarFunction):
    """A continuous function given by one polynomial per piece, with exact coefficients.

    Parameters
    ----------
    name : str
    breakpoints : sequence of Fraction
    pieces : sequence of sequences of Fraction
        Coefficients by ascending power; one more piece than breakpoints.

    Examples
    --------
    >>> relu = PiecewisePolynomial("relu", [0], [[0], [0, 1]])
    >>> relu.jumps, relu.lipschitz, relu.curvature
    ((Fraction(1, 1),), 1.0, 0.0)
    """

    def __init__(
        self,
        name: str,
        breakpoints: Sequence[Fraction | int],
        pieces: Sequence[Sequence[Fraction | int]],
        *,
        pivot_limit: float = inf,
        pivot_limit_attained: bool = True,
    ) -> None:
        self.name = name
        self.breakpoints = tuple(exact_number(t, f"a breakpoint of {name}") for t in breakpoints)
        self.degree = max(1, max(len(c) for c in pieces) - 1)
        width = int(self.degree) + 1
        self.pieces = tuple(
            tuple(
                exact_number(c[k], f"a coefficient of {name}") if k < len(c) else Fraction(0)
                for k in range(width)
            )
            for c in pieces
        )
        self.slopes = tuple(
            tuple((k + 1) * c[k + 1] for k in range(width - 1)) for c in self.pieces
        )
        require_range(name, [*self.breakpoints, *chain(*self.pieces, *self.slopes)])
        self.jumps = tuple(
            _horner(self.slopes[k + 1], t) - _horner(self.slopes[k], t)
            for k, t in enumerate(self.breakpoints)
        )
        self.pivot_limit = pivot_limit
        self.pivot_limit_attained = pivot_limit_attained
        self.lipschitz = self.steepest(-inf, inf)
        self.curvature = self.sharpest(-inf, inf)
        self._value_table = np.array([[float(a) for a in c] for c in self.pieces])
        self._slope_table = np.array([[float(a) for a in c] for c in self.slopes])

    def anew(self) -> PiecewisePolynomial:
        twin = object.__new__(type(self))
        PiecewisePolynomial.__init__(
            twin, self.name, self.breakpoints, self.pieces,
            pivot_limit=self.pivot_limit, pivot_limit_attained=self.pivot_limit_attained,
        )  # fmt: skip
        return twin

    def value(self, u: Vector) -> Vector:
        return _evaluate(self._value_table, u, self.piece(u))

    def slope(self, u: Vector, piece: Indices) -> Vector:
        return _evaluate(self._slope_table, u, piece)

    def value_in(self, u: Any, piece: Indices, arithmetic: Arithmetic) -> Any:
        return _evaluate_in(self.pieces, u, piece, arithmetic)

    def slope_in(self, u: Any, piece: Indices, arithmetic: Arithmetic) -> Any:
        return _evaluate_in(self.slopes, u, piece, arithmetic)

    def steepest(self, low: float, high: float) -> float:
        return max(self._extreme(k, slope, low, high) for k, slope in enumerate(self.slopes))

    def sharpest(self, low: float, high: float) -> float:
        bends = [[(j + 1) * c[j + 1] for j in range(len(c) - 1)] for c in self.slopes]
        return max(self._extreme(k, bend, low, high) for k, bend in enumerate(bends))

    def _extreme(
        self, piece: int, polynomial: Sequence[Fraction], low: float, high: float
    ) -> float:
        """Return an upper bound of |polynomial| where a piece meets an interval."""
        left = max(low, float(self.breakpoints[piece - 1]) if piece else -inf)
        last = piece == len(self.breakpoints)
        right = min(high, inf if last else float(self.breakpoints[piece]))
        if left > right or not polynomial:
            return 0.0
        if not any(polynomial[1:]):
            return fraction_upper(abs(polynomial[0]))
        if isinf(left) or isinf(right):
            return inf
        if not any(polynomial[2:]):  # at most linear: the ends are the extremes
            ends = [abs(_horner(polynomial, Fraction(end))) for end in (left, right)]
        else:
            far = max(abs(Fraction(left)), abs(Fraction(right)))
            ends = [_horner([abs(a) for a in polynomial], far)]
        return fraction_upper(max(ends))

    @property
    def constants(self) -> tuple[Fraction | None, ...]:
        return tuple(None if any(c[1:]) else c[0] for c in self.pieces)

    @property
    def keeps_zero(self) -> bool:
        return self.pieces[sum(t < 0 for t in self.breakpoints)][0] == 0

    def compose_jet(self, u: Jet, piece: Indices) -> Jet:
        table = np.empty((len(self.pieces), int(self.degree) + 1), dtype=object)
        for k, coefficients in enumerate(self.pieces):
            table[k] = [rational(a) for a in coefficients]
        result: Jet = [table[piece, -1]]
        for power in range(int(self.degree) - 1, -1, -1):
            result = multiply_jets(result, u, lambda a, b: a * b)
            result = add_jets([result, [table[piece, power]]])
        return result


def require_range(name: str, numbers: Sequence[Fraction]) -> None:
    """Refuse numbers beyond float64, in which values and gradients are evaluated."""
    for number in numbers:
        if isinf(fraction_upper(abs(number))):
            size = number.numerator.bit_length() - number.denominator.bit_length()
            raise InputError(
                f"{name} would have a coefficient of the size 2**{size}, beyond the range of "
                "float64; choose less extreme parameters, or rescale its argument."
            )


def _horner(coefficients: Sequence[Fraction], t: Fraction) -> Fraction:
    total = Fraction(0)
    for a in reversed(coefficients):
        total = total * t + a
    return total


def _evaluate(table: NDArray[np.float64], u: Vector, piece: Indices) -> Vector:
    total: Vector = table[piece, -1]
    for power in range(table.shape[1] - 2, -1, -1):
        total = total * u + table[piece, power]
    return total


def _evaluate_in(
    table: Sequence[Sequence[Fraction]], u: Any, piece: Indices, arithmetic: Arithmetic
) -> Any:
    if arithmetic is FLOAT:
        return _evaluate(np.array([[float(a) for a in c] for c in table]), u, piece)
    if arithmetic is ENCLOSURE:
        rows = [Enclosure.of(c) for c in table]
        mid = np.array([r.mid for r in rows])
        rad = np.array(
            [
                [
                    0.0 if Fraction(m) == a else x
                    for a, m, x in zip(c, r.mid.tolist(), r.rad.tolist())
                ]
                for c, r in zip(table, rows)
            ]
        )
        total = Enclosure(mid[piece, -1], rad[piece, -1])
        for power in range(len(table[0]) - 2, -1, -1):
            total = total * u + Enclosure(mid[piece, power], rad[piece, power])
        return total
    exact = [[rational(a) for a in c] for c in table]
    out = np.empty(piece.shape, dtype=object)
    for place, (k, x) in enumerate(zip(piece.ravel().tolist(), u.ravel().tolist())):
        total = exact[k][-1]
        for a in reversed(exact[k][:-1]):
            total = total * x + a
        out.flat[place] = total
    return out


def interval(centre: Vector, spread: float) -> tuple[float, float]:
    """Return an interval that holds all entries, moved by at most `spread`."""
    low = float(np.min(centre, initial=inf)) - spread
    high = float(np.max(centre, initial=-inf)) + spread
    # A centre that overflowed says nothing.
    return (-inf if isnan(low) else low), (inf if isnan(high) else high)


class Elementwise(KinkNode):
    """A scalar function applied to every entry of an expression."""

    def __init__(self, function: ScalarFunction, arg: Any) -> None:
        arg = as_expression(arg, function.name)
        self.function = function
        self.own_degree = function.degree
        self.exact = function.exact
        super().__init__((arg,), arg.shape)

    def with_args(self, args: Sequence[Expression]) -> Elementwise:
        return Elementwise(self.function.anew(), args[0])

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def has_kinks(self) -> bool:
        return not self.function.is_smooth

    @property
    def own_affine(self) -> bool:
        return False

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        if arithmetic is FLOAT:
            return self.function.value(values[0])
        return self.function.value_in(values[0], piece, arithmetic)

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        (u,) = values
        if arithmetic is FLOAT:
            where = self.function.piece(u) if piece is None else piece
            return (cotangent * self.function.slope(u, where),)
        return (cotangent * self.function.slope_in(u, piece, arithmetic),)

    @property
    def needs_no_decision(self) -> bool:
        return not self.function.breakpoints

    def clear_piece(self, u: Vector, slack: Any) -> Indices | None:
        """Return the pieces if no entry is within `slack` of a kink, else None."""
        margin = np.reshape(slack, u.shape)
        for t in self.function.kinks:
            # Written so that a NaN or an overflow counts as doubt.
            if not (np.abs(u - t) > margin + 2.0**-50 * abs(t)).all():
                return None
        return self.function.piece(u)

    def nearest_piece(self, u: Vector) -> Any:
        return self.function.piece(u)

    def in_doubt(self, u: Enclosure) -> Indices:
        """Return the entries that `examine` will ask for."""
        gaps = [u.reshape(-1) - ENCLOSURE.constant(t) for t in self.function.breakpoints]
        return np.flatnonzero(~np.logical_and.reduce([gap.signs() != 0 for gap in gaps]))

    def examine(self, u: Enclosure, exact: ExactEntry) -> tuple[Any, list[Tie], list[int]]:
        levels = self.function.breakpoints
        flat = u.reshape(-1)
        piece = np.zeros(flat.size, dtype=np.intp)
        ties: list[Tie] = []
        bent: list[int] = []
        for k, t in enumerate(levels):
            gap = flat - ENCLOSURE.constant(t)
            signs = gap.signs()
            piece += signs > 0
            for i in np.flatnonzero(signs == 0).tolist():
                value = exact(i)
                piece[i] += value > t
                if value == t and self.function.jumps[k]:
                    ties.append((i, k))
                elif value == t:
                    bent.append(i)
        return piece.reshape(self.shape), ties, bent

    def felt(self, ties: list[Tie], moves: Callable[[int], bool]) -> list[Tie]:
        return [tie for tie in ties if moves(tie[0])]

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        (inner,) = args
        constants = self.function.constants
        flat = np.array([c is not None for c in constants])[piece]
        zero = np.array([c == 0 for c in constants])[piece]
        strictly = np.ones(self.shape, dtype=bool)
        strictly.flat[sorted(touched)] = False
        return Still(
            inner.constant | (strictly & flat),
            (inner.zero & self.function.keeps_zero) | (strictly & zero),
        )

    def split(self, piece: Any, ties: list[Tie], leading: Leading) -> Any:
        chosen = piece.copy()
        for i, k in ties:
            chosen.flat[i] = k + (leading_sign(leading(i)) > 0)
        return chosen

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        steepest = self.function.steepest(*interval(b.value, b.spread))
        value = self.function.value(b.value)
        lipschitz = 0.0 if steepest == 0.0 or b.lipschitz == 0.0 else steepest * b.lipschitz
        return Bound(value, lipschitz, b.radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        if isinf(self.function.degree):
            return super().jet(jets, piece)
        return self.function.compose_jet(jets[0], piece)


__all__ = ["Elementwise", "PiecewisePolynomial", "ScalarFunction", "interval", "require_range"]
