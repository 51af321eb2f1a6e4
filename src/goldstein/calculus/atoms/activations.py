"""Activation functions: relu, leaky_relu, abs, hard_tanh, relu6, soft_threshold, gated_relu."""

from __future__ import annotations

from typing import Any

from goldstein.calculus.atoms.base import Elementwise, PiecewisePolynomial
from goldstein.calculus.expression import Expression
from goldstein.calculus.operators import multiply
from goldstein.numerics.exact_floats import exact_number, positive


def relu(u: Expression) -> Expression:
    """Return max(u, 0), entry by entry.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> relu(Variable(2))(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return Elementwise(PiecewisePolynomial("relu", [0], [[0], [0, 1]]), u)


def leaky_relu(u: Expression, slope: float = 0.01) -> Expression:
    """Return u where u > 0 and `slope * u` elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> leaky_relu(Variable(2), 0.5)(np.array([-1.0, 2.0]))
    array([-0.5,  2. ])
    """
    s = exact_number(slope, "slope")
    return Elementwise(PiecewisePolynomial("leaky_relu", [0], [[0, s], [0, 1]]), u)


def absolute(u: Expression) -> Expression:
    """Return |u|, entry by entry (public name: `abs`).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, abs
    >>> abs(Variable(2))(np.array([-1.0, 2.0]))
    array([1., 2.])
    """
    return Elementwise(PiecewisePolynomial("abs", [0], [[0, -1], [0, 1]]), u)


def hard_tanh(u: Expression) -> Expression:
    """Return u clipped to [-1, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> hard_tanh(Variable(2))(np.array([-3.0, 0.5]))
    array([-1. ,  0.5])
    """
    return Elementwise(PiecewisePolynomial("hard_tanh", [-1, 1], [[-1], [0, 1], [1]]), u)


def relu6(u: Expression) -> Expression:
    """Return u clipped to [0, 6].

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> relu6(Variable(2))(np.array([-3.0, 7.0]))
    array([0., 6.])
    """
    return Elementwise(PiecewisePolynomial("relu6", [0, 6], [[0], [0, 1], [6]]), u)


def soft_threshold(u: Expression, threshold: float) -> Expression:
    """Return sign(u) max(|u| - threshold, 0).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> soft_threshold(Variable(2), 1.0)(np.array([-3.0, 0.5]))
    array([-2.,  0.])
    """
    t = positive("threshold", threshold)
    return Elementwise(PiecewisePolynomial("soft_threshold", [-t, t], [[t, 1], [0], [-t, 1]]), u)


def gated_relu(a: Any, b: Expression) -> Expression:
    """Return `a * max(b, 0)`, the product of a gate and a rectified expression.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> w = Variable(2)
    >>> gated_relu(w[0], w[1]).value(np.array([3.0, 2.0]))
    6.0
    """
    return multiply(relu(b), a)


__all__ = [
    "absolute", "gated_relu", "hard_tanh", "leaky_relu", "relu", "relu6", "soft_threshold",
]  # fmt: skip
