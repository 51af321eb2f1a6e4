"""Functions of one real number made of polynomials, and their expressions, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import isinf
from typing import Any, NamedTuple

from goldstein.calculus.expression import Expression, as_expression
from goldstein.checker import nodes
from goldstein.checker.rationals import fraction_upper
from goldstein.errors import InputError
from goldstein.numerics.exact_floats import exact_number


@dataclass(frozen=True, init=False)
class PiecewisePolynomial:
    """A continuous function given by one polynomial per piece, with exact coefficients.

    Parameters
    ----------
    name : str
    breakpoints : sequence of Fraction
        Ascending; piece k lies between breakpoint k-1 and breakpoint k.
    pieces : sequence of sequences of Fraction
        Coefficients by ascending power; one more piece than breakpoints.

    Examples
    --------
    >>> PiecewisePolynomial("relu", [0], [[0], [0, 1]]).jumps
    [Fraction(1, 1)]
    >>> PiecewisePolynomial("step", [0], [[0], [1]])
    Traceback (most recent call last):
        ...
    goldstein.errors.InputError: step: breakpoints must ascend, and the polynomials on both sides...
    """

    name: str
    breakpoints: tuple[Fraction, ...]
    pieces: tuple[tuple[Fraction, ...], ...]

    def __init__(
        self, name: str, breakpoints: Sequence[Any], pieces: Sequence[Sequence[Any]]
    ) -> None:
        width = max(2, *(len(piece) for piece in pieces))
        table = tuple(
            tuple(exact_number(c, f"a coefficient of {name}") for c in piece)
            + (Fraction(0),) * (width - len(piece))
            for piece in pieces
        )
        levels = tuple(exact_number(t, f"a breakpoint of {name}") for t in breakpoints)
        for field, given in (("name", name), ("breakpoints", levels), ("pieces", table)):
            object.__setattr__(self, field, given)
        try:
            self._node()
        except InputError:
            raise InputError(
                f"{name}: breakpoints must ascend, and the polynomials on both sides of each must "
                "have one value there."
            ) from None
        slopes = (c * k for piece in table for k, c in enumerate(piece))
        require_range(name, [*levels, *chain(*table), *slopes])

    def _node(self) -> nodes.Piecewise:
        return nodes.Piecewise((0,), (1,), 1, self.breakpoints, self.pieces)

    @property
    def jumps(self) -> list[Fraction]:
        """By how much the derivative jumps at each breakpoint; 0 is no kink."""
        return self._node().jumps


def require_range(name: str, numbers: Sequence[Fraction]) -> None:
    """Refuse numbers beyond float64, in which values and gradients are evaluated."""
    for number in numbers:
        if isinf(fraction_upper(abs(number))):
            size = number.numerator.bit_length() - number.denominator.bit_length()
            raise InputError(
                f"{name} would have a coefficient of the size 2**{size}, beyond the range of "
                "float64; choose less extreme parameters, or rescale its argument."
            )


class Curve(NamedTuple):
    """What is known of a function of one number before a run.

    Attributes
    ----------
    steepest : callable
        (low, high) -> an upper bound of |derivative| between two numbers.
    curvature : float or callable
        An upper bound of |second derivative| off the kinks, or (low, high) -> such a bound.
    kinks : tuple of Fraction
    """

    steepest: Callable[[float, float], float]
    curvature: float | Callable[[float, float], float]
    kinks: tuple[Fraction, ...] = ()


class Atom(Expression):
    """An expression that stands for another one, and has constants of its own.

    Attributes
    ----------
    of : Expression
        What it is a function of.
    known : Curve, or anything else that the theory before a run has a rule for
    """

    def __init__(self, meaning: Expression, of: Expression, name: str, known: Any = None) -> None:
        self.of, self.known = of, known
        super().__init__(nodes.Add, (meaning,), meaning.shape, (), name)

    def rebuilt(self, made: dict[int, Expression]) -> Expression:
        if type(self) is not Atom:
            return super().rebuilt(made)
        if id(self.of) not in made:
            return made[id(self.args[0])]
        return Atom(made[id(self.args[0])], made[id(self.of)], self.name, self.known)


def Elementwise(function: PiecewisePolynomial, u: Any) -> Expression:
    """Return a function of every entry of an expression."""
    u = as_expression(u, function.name)
    data = (function.breakpoints, function.pieces)
    return Expression(nodes.Piecewise, (u,), u.shape, data, function.name)


__all__ = ["Atom", "Curve", "Elementwise", "PiecewisePolynomial", "require_range"]
