"""Smooth losses without a rational form: logistic, softplus, pseudo_huber, and user functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from goldstein.calculus.atoms.base import Atom, Curve, require_range
from goldstein.calculus.constants import hand_over
from goldstein.calculus.expression import Expression, as_expression
from goldstein.calculus.foreign import Foreign
from goldstein.calculus.operators import affine, rational_scale
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import fraction_upper
from goldstein.errors import InputError
from goldstein.numerics.exact_floats import exact_number, positive


def softplus(u: Expression) -> Expression:
    """Return log(1 + exp(u)), entry by entry.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> softplus(Variable(1))(np.array([0.0])).round(6)
    array([0.693147])
    """
    return _softplus("softplus", u, 1.0)


def logistic(u: Expression) -> Expression:
    """Return the logistic loss log(1 + exp(-u)) of a margin u.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> logistic(Variable(1))(np.array([-1000.0]))
    array([1000.])
    """
    return _softplus("logistic", u, -1.0)


def _softplus(name: str, u: Any, sign: float) -> Expression:
    """Return log(exp(0) + exp(sign u)), of rows (0, sign u)."""
    u = as_expression(u, name)
    ends = hand_over(np.repeat(np.arange(u.size + 1), 2)[:-1])
    rows = (
        hand_over(np.full(u.size, sign)),
        hand_over(np.arange(u.size)),
        ends,
        (2 * u.size, u.size),
    )
    pairs = affine("Linear", u, (2 * u.size,), rows)
    curve = Curve(partial(_rise, sign), 0.25)
    return Atom(Expression(nodes.LogSumExp, (pairs,), u.shape, (2,), name), u, name, curve)


def _rise(sign: float, low: float, high: float) -> float:
    end = high if sign > 0 else -low
    return 1.0 / (1.0 + math.exp(-min(max(end, -700.0), 700.0))) if end < 700.0 else 1.0


def pseudo_huber(u: Expression, threshold: float = 1.0) -> Expression:
    """Return t^2 (sqrt(1 + (u/t)^2) - 1), a smooth version of the Huber loss.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> pseudo_huber(Variable(1))(np.array([0.0]))
    array([0.])
    """
    u, t = as_expression(u, "pseudo_huber"), positive("threshold", threshold)
    require_range("pseudo_huber", [t])
    inner = rational_scale(u, 1 / t)
    smooth = Expression(nodes.Smooth, (inner,), u.shape, ("pseudo_huber",), "pseudo_huber")
    curve = Curve(partial(_bend, float(t)), 1.0)
    return Atom(rational_scale(smooth, t * t), u, "pseudo_huber", curve)


def _bend(threshold: float, low: float, high: float) -> float:
    far = max(abs(low), abs(high))
    return threshold if math.isinf(far) else far / math.hypot(1.0, far / threshold)


def smooth_function(
    u: Expression,
    value: Callable[[Vector], Any],
    derivative: Callable[[Vector], Any],
    *,
    lipschitz: float = math.inf,
    smoothness: float = math.inf,
) -> Expression:
    """Apply a smooth function of your own, entry by entry: trusted in float64, never certified.

    Parameters
    ----------
    value, derivative : callable
        Vectorised over arrays.
    lipschitz, smoothness : float
        Bounds of |derivative| and of |second derivative|, where known.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> smooth_function(Variable(1), np.sin, np.cos, lipschitz=1, smoothness=1)(np.zeros(1))
    array([0.])
    """
    u, name = as_expression(u, "smooth_function"), getattr(value, "__name__", "smooth")
    bounds = _bound(lipschitz, "lipschitz"), _bound(smoothness, "smoothness")
    user = Expression(Foreign, (u,), u.shape, (u.shape, value, derivative), name)
    return Atom(user, u, name, Curve(partial(_constant, bounds[0]), bounds[1]))


def _constant(number: float, low: float, high: float) -> float:
    return number


def _bound(value: Any, what: str) -> float:
    """Return a nonnegative number, infinity allowed, rounded up."""
    if isinstance(value, float) and value == math.inf:
        return math.inf
    number = exact_number(value, what)
    if number < 0:
        raise InputError(f"{what} must be nonnegative, got {value!r}.")
    return fraction_upper(number)


__all__ = ["logistic", "pseudo_huber", "smooth_function", "softplus"]
