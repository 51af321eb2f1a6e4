"""Whole powers of expressions."""

from __future__ import annotations

from typing import Any

from goldstein.calculus.atoms.base import Atom, Elementwise, PiecewisePolynomial
from goldstein.calculus.expression import Expression, as_expression
from goldstein.calculus.operators import sum_entries
from goldstein.errors import GoldsteinError, InputError
from goldstein.numerics.exact_floats import exact_number

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


def power(u: Expression, exponent: Any) -> Expression:
    """Return u to a whole power, entry by entry, as a polynomial: `u ** exponent`.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> (Variable(2) ** 3)(np.array([-1.0, 2.0]))
    array([-1.,  8.])
    """
    try:
        exact = exact_number(exponent, "the exponent")
    except GoldsteinError:
        exact = None
    if exact is None or exact.denominator != 1 or not 0 <= exact <= LARGEST:
        raise InputError(
            f"u ** n needs one whole number n from 0 to {LARGEST}, got {exponent!r}; for the root "
            "of a sum of squares use norm2(u), for another smooth power "
            "smooth_function(u, value, derivative)."
        )
    n = int(exact)
    if n < 3:
        return [0.0 * u + 1.0, u, square(u)][n]
    return Elementwise(PiecewisePolynomial(f"power_{n}", [], [[0] * n + [1]]), u)


__all__ = ["power", "square", "sum_squares"]
