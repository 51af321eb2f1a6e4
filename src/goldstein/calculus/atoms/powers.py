"""Powers of expressions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.calculus.atoms import smooth
from goldstein.calculus.atoms.base import Atom, Elementwise, PiecewisePolynomial
from goldstein.calculus.expression import Expression, as_expression
from goldstein.calculus.operators import sum_entries
from goldstein.errors import GoldsteinError, InputError
from goldstein.numerics.exact_floats import exact_floats, exact_number

#: Larger powers are no use in float64, and slow in exact arithmetic.
LARGEST = 32


def square(u: Expression) -> Expression:
    """Return u^2, entry by entry.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> square(Variable(2))(np.array([-1.0, 2.0]))
    array([1., 4.])
    """
    return Elementwise(PiecewisePolynomial("square", [], [[0, 0, 1]]), u)


def sum_squares(u: Any) -> Expression:
    """Return the sum of the squares of all entries.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> sum_squares(Variable(2)).value(np.array([3.0, 4.0]))
    25.0
    """
    u = as_expression(u, "sum_squares")
    return Atom(sum_entries(square(u)), u, "SumSquares")


def power(u: Any, exponent: Any) -> Expression:
    """Return u to a power, entry by entry: `u ** exponent`.

    A whole power is a polynomial, or one over it; others are exp(exponent log(u)), for u > 0. Base
    or exponent may be a number, or both expressions.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> (Variable(2) ** 3)(np.array([-1.0, 2.0]))
    array([-1.,  8.])
    >>> (Variable(2) ** -0.5)(np.array([1.0, 4.0]))
    array([1. , 0.5])
    """
    if not isinstance(u, Expression):
        base = exact_floats(u, "the base")
        if not (base > 0).all():
            raise InputError(f"base ** u needs a positive base, got {u!r}.")
        return smooth.exp(as_expression(exponent, "**") * np.log(base))
    if isinstance(exponent, Expression):
        return smooth.exp(exponent * smooth.log(u))
    try:
        exact = exact_number(exponent, "the exponent")
    except GoldsteinError:
        raise InputError(
            f"u ** p needs one number p, or an expression; got {exponent!r}."
        ) from None
    if exact == Fraction(1, 2):
        return smooth.sqrt(u)
    if exact.denominator != 1 or abs(exact) > LARGEST:
        return smooth.exp(smooth.log(u) * float(exact))
    n = int(exact)
    if n < 0:
        return power(smooth.reciprocal(u), -n)
    if n < 3:
        return [0.0 * u + 1.0, u, square(u)][n]
    return Elementwise(PiecewisePolynomial(f"power_{n}", [], [[0] * n + [1]]), u)


__all__ = ["power", "square", "sum_squares"]
