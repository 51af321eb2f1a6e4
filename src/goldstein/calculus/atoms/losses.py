"""Piecewise polynomial losses: hinge, pinball, ramp, eps_insensitive, huber, squared_hinge."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from goldstein.calculus.atoms.base import Elementwise, PiecewisePolynomial
from goldstein.calculus.expression import Expression
from goldstein.errors import InputError
from goldstein.numerics.exact_floats import exact_number, positive


def hinge(u: Expression) -> Expression:
    """Return max(1 - u, 0).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> hinge(Variable(2))(np.array([-1.0, 2.0]))
    array([2., 0.])
    """
    return Elementwise(PiecewisePolynomial("hinge", [1], [[1, -1], [0]]), u)


def pinball(u: Expression, tau: float = 0.5) -> Expression:
    """Return the quantile loss max(tau u, (tau - 1) u).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> pinball(Variable(2), 0.25)(np.array([-1.0, 2.0]))
    array([0.75, 0.5 ])
    """
    t = exact_number(tau, "tau")
    if not 0 < t < 1:
        raise InputError(f"tau must lie strictly between 0 and 1, got {tau!r}.")
    return Elementwise(PiecewisePolynomial("pinball", [0], [[0, t - 1], [0, t]]), u)


def ramp(u: Expression, rho: float = 1.0) -> Expression:
    """Return the rho-margin loss min(1, max(0, 1 - u/rho)).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> ramp(Variable(3), rho=2.0)(np.array([-1.0, 1.0, 3.0]))
    array([1. , 0.5, 0. ])
    """
    r = positive("rho", rho)
    return Elementwise(PiecewisePolynomial("ramp", [0, r], [[1], [1, -1 / r], [0]]), u)


def eps_insensitive(u: Expression, eps: float) -> Expression:
    """Return max(|u| - eps, 0).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> eps_insensitive(Variable(2), 0.5)(np.array([-1.0, 0.25]))
    array([0.5, 0. ])
    """
    e = positive("eps", eps)
    return Elementwise(PiecewisePolynomial("eps_insensitive", [-e, e], [[-e, -1], [0], [-e, 1]]), u)


def huber(u: Expression, threshold: float = 1.0) -> Expression:
    """Return u^2/2 up to `threshold`, and linear growth beyond.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> huber(Variable(2))(np.array([-3.0, 0.5]))
    array([2.5  , 0.125])
    """
    t = positive("threshold", threshold)
    half = Fraction(1, 2)
    pieces: list[list[Any]] = [[-half * t * t, -t], [0, 0, half], [-half * t * t, t]]
    return Elementwise(PiecewisePolynomial("huber", [-t, t], pieces), u)


def squared_hinge(u: Expression) -> Expression:
    """Return max(1 - u, 0)^2.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> squared_hinge(Variable(2))(np.array([-1.0, 2.0]))
    array([4., 0.])
    """
    return Elementwise(PiecewisePolynomial("squared_hinge", [1], [[1, -2, 1], [0]]), u)


__all__ = ["eps_insensitive", "hinge", "huber", "pinball", "ramp", "squared_hinge"]
