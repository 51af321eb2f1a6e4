"""Functions of one real number made of polynomials, and their expressions, entry by entry.

Activation functions: relu, leaky_relu, abs, hard_tanh, relu6, soft_threshold, gated_relu.

Piecewise polynomial losses: hinge, pinball, ramp, eps_insensitive, huber, squared_hinge.

Sparsity penalties: capped_l1, scad, mcp, log_sum. Each acts entry by entry.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from math import isinf
from typing import Any, NamedTuple

from goldstein.calculus.expression import Expression, as_expression
from goldstein.calculus.operators import multiply, rational_scale
from goldstein.checker import nodes
from goldstein.checker.enclosed import irrational
from goldstein.checker.rationals import fraction_upper
from goldstein.errors import InputError
from goldstein.numerics.exact import exact_number, positive


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


def capped_l1(u: Expression, threshold: float = 1.0) -> Expression:
    """Return min(|u|, threshold).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> capped_l1(Variable(2))(np.array([-3.0, 0.5]))
    array([1. , 0.5])
    """
    t = positive("threshold", threshold)
    pieces: list[list[Any]] = [[t], [0, -1], [0, 1], [t]]
    return Elementwise(PiecewisePolynomial("capped_l1", [-t, 0, t], pieces), u)


def scad(u: Expression, lam: float = 1.0, a: float = 3.7) -> Expression:
    """Return the smoothly clipped absolute deviation (Fan and Li 2001), a > 2.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> scad(Variable(2), 1.0, 3.0)(np.array([0.5, 9.0]))
    array([0.5, 2. ])
    """
    l, k = positive("lam", lam), exact_number(a, "a")
    if k <= 2:
        raise InputError(f"scad needs a > 2, got {a!r}.")
    outer = l * l * (k + 1) / 2
    bend = 1 / (2 * (k - 1))
    right = [-l * l * bend, 2 * k * l * bend, -bend]
    left = [right[0], -right[1], right[2]]
    pieces: list[list[Any]] = [[outer], left, [0, -l], [0, l], right, [outer]]
    return Elementwise(PiecewisePolynomial("scad", [-k * l, -l, 0, l, k * l], pieces), u)


def mcp(u: Expression, lam: float = 1.0, gamma: float = 2.0) -> Expression:
    """Return the minimax concave penalty (Zhang 2010), gamma > 1.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> mcp(Variable(2), 1.0, 2.0)(np.array([1.0, 9.0]))
    array([0.75, 1.  ])
    """
    l, g = positive("lam", lam), positive("gamma", gamma)
    if g <= 1:
        raise InputError(f"mcp needs gamma > 1, got {gamma!r}.")
    outer, bend = g * l * l / 2, -1 / (2 * g)
    pieces: list[list[Any]] = [[outer], [0, -l, bend], [0, l, bend], [outer]]
    return Elementwise(PiecewisePolynomial("mcp", [-g * l, 0, g * l], pieces), u)


def log_sum(u: Expression, lam: float = 1.0, eps: float = 1.0) -> Expression:
    """Return lam log(1 + |u|/eps).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> log_sum(Variable(1), 1.0, 0.5)(np.array([0.0]))
    array([0.])
    """
    u, l, e = as_expression(u, "log_sum"), positive("lam", lam), positive("eps", eps)
    require_range("log_sum", [l, e, l / e])
    inner = Elementwise(PiecewisePolynomial("log_sum", [0], [[1, -1 / e], [1, 1 / e]]), u)
    log = Expression(irrational.Smooth, (inner,), u.shape, ("log",), "log")
    curve = Curve(partial(_flank, l, e), fraction_upper(l / e**2), (Fraction(0),))
    return Atom(rational_scale(log, l), u, "log_sum", curve)


def _flank(lam: Fraction, eps: Fraction, low: float, high: float) -> float:
    nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    if nearest == 0.0:
        return fraction_upper(lam / eps)
    return float(lam) / (float(eps) + nearest) if math.isfinite(nearest) else 0.0


__all__ = [
    "absolute", "capped_l1", "eps_insensitive", "gated_relu", "hard_tanh", "hinge", "huber",
    "leaky_relu", "log_sum", "mcp", "pinball", "ramp", "relu", "relu6", "scad",
    "soft_threshold", "squared_hinge",
]  # fmt: skip
