"""Smooth losses without a rational form: logistic, softplus, pseudo_huber, and user functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from goldstein.calculus.arithmetic import RATIONAL, Arithmetic, Irrational, enclose_function, flint
from goldstein.calculus.atoms.base import Elementwise, ScalarFunction, require_range
from goldstein.calculus.expression import Expression
from goldstein.checker.arrays import Indices, Vector
from goldstein.checker.enclosed.arrays import Enclosure, enclose
from goldstein.checker.rationals import fraction_upper
from goldstein.errors import InputError, NotCertifiableError
from goldstein.numerics.exact_floats import exact_number, positive

BallFunction = Callable[[Any, Any], Any]


class _Smooth(ScalarFunction):
    """One smooth piece, evaluated by floats or by balls."""

    def _ball_value(self, flint: Any, ball: Any) -> Any:
        raise NotImplementedError

    def _ball_slope(self, flint: Any, ball: Any) -> Any:
        raise NotImplementedError

    def value_in(self, u: Any, piece: Indices, arithmetic: Arithmetic) -> Any:
        return self._in(u, arithmetic, self._ball_value)

    def slope_in(self, u: Any, piece: Indices, arithmetic: Arithmetic) -> Any:
        return self._in(u, arithmetic, self._ball_slope)

    def _in(self, u: Any, arithmetic: Arithmetic, function: BallFunction) -> Any:
        if arithmetic is RATIONAL:
            raise Irrational(self.name)
        module = flint()
        return enclose_function(u, lambda ball: function(module, ball))


class Softplus(_Smooth):
    """log(1 + exp(sign u))."""

    lipschitz = 1.0
    curvature = 0.25

    def __init__(self, name: str, sign: float) -> None:
        self.name = name
        self.sign = sign

    def anew(self) -> Softplus:
        return Softplus(self.name, self.sign)

    def value(self, u: Vector) -> Vector:
        answer: Vector = np.logaddexp(0.0, self.sign * u)
        return answer

    def slope(self, u: Vector, piece: Indices) -> Vector:
        # exp of a nonpositive number cannot overflow.
        small = np.exp(-np.abs(u))
        rising = np.where(self.sign * u >= 0, 1.0, small) / (1.0 + small)
        answer: Vector = self.sign * rising
        return answer

    def _ball_value(self, flint: Any, ball: Any) -> Any:
        t = ball * int(self.sign)
        return ((-t).exp() + 1).log() + t if t > 0 else (t.exp() + 1).log()

    def _ball_slope(self, flint: Any, ball: Any) -> Any:
        return int(self.sign) / ((-int(self.sign) * ball).exp() + 1)

    def steepest(self, low: float, high: float) -> float:
        end = high if self.sign > 0 else -low
        return 1.0 / (1.0 + math.exp(-min(max(end, -700.0), 700.0))) if end < 700.0 else 1.0


class PseudoHuber(_Smooth):
    """t^2 (sqrt(1 + (u/t)^2) - 1)."""

    name = "pseudo_huber"
    curvature = 1.0

    def __init__(self, threshold: Any) -> None:
        self.threshold = positive("threshold", threshold)
        require_range(self.name, [self.threshold])
        self.lipschitz = float(self.threshold)

    def anew(self) -> PseudoHuber:
        return PseudoHuber(self.threshold)

    def value(self, u: Vector) -> Vector:
        t = float(self.threshold)
        # u^2 / (1 + sqrt) has no cancellation for small u; u / t could overflow.
        answer: Vector = t * (u * (u / (t + np.hypot(t, u))))
        return answer

    def slope(self, u: Vector, piece: Indices) -> Vector:
        t = float(self.threshold)
        answer: Vector = t * (u / np.hypot(t, u))
        return answer

    def _in(self, u: Any, arithmetic: Arithmetic, function: BallFunction) -> Any:
        if arithmetic is RATIONAL:
            raise Irrational(self.name)
        ratio: Enclosure = u / enclose(self.threshold)
        root = (ratio * ratio + 1.0).root()
        if function == self._ball_slope:
            return u / root
        return u * u / (root + 1.0)

    def steepest(self, low: float, high: float) -> float:
        far = max(abs(low), abs(high))
        return (
            float(self.threshold)
            if math.isinf(far)
            else far / math.hypot(1.0, far / float(self.threshold))
        )


class UserSmooth(_Smooth):
    """A smooth function given by callables: trusted in float64, never certified."""

    exact = False

    def __init__(
        self,
        value: Callable[[Vector], Any],
        derivative: Callable[[Vector], Any],
        lipschitz: float,
        smoothness: float,
    ) -> None:
        bounds = _bound(lipschitz, "lipschitz"), _bound(smoothness, "smoothness")
        self.name = getattr(value, "__name__", "smooth")
        self.function, self.derivative = value, derivative
        self.lipschitz, self.curvature = bounds

    def anew(self) -> UserSmooth:
        return UserSmooth(self.function, self.derivative, self.lipschitz, self.curvature)

    def value(self, u: Vector) -> Vector:
        return np.asarray(self.function(u), dtype=np.float64)

    def slope(self, u: Vector, piece: Indices) -> Vector:
        return np.asarray(self.derivative(u), dtype=np.float64)

    def _in(self, u: Any, arithmetic: Arithmetic, function: BallFunction) -> Any:
        raise NotCertifiableError(
            f"{self.name} is user code: its values are known in float64 only. Write it with the "
            "library's atoms to get certified results."
        )

    def steepest(self, low: float, high: float) -> float:
        return self.lipschitz


def _bound(value: Any, what: str) -> float:
    """Return a nonnegative number, infinity allowed, rounded up."""
    if isinstance(value, float) and value == math.inf:
        return math.inf
    number = exact_number(value, what)
    if number < 0:
        raise InputError(f"{what} must be nonnegative, got {value!r}.")
    return fraction_upper(number)


def softplus(u: Expression) -> Expression:
    """Return log(1 + exp(u)), entry by entry.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> softplus(Variable(1))(np.array([0.0])).round(6)
    array([0.693147])
    """
    return Elementwise(Softplus("softplus", 1.0), u)


def logistic(u: Expression) -> Expression:
    """Return the logistic loss log(1 + exp(-u)) of a margin u.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> logistic(Variable(1))(np.array([-1000.0]))
    array([1000.])
    """
    return Elementwise(Softplus("logistic", -1.0), u)


def pseudo_huber(u: Expression, threshold: float = 1.0) -> Expression:
    """Return t^2 (sqrt(1 + (u/t)^2) - 1), a smooth version of the Huber loss.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> pseudo_huber(Variable(1))(np.array([0.0]))
    array([0.])
    """
    return Elementwise(PseudoHuber(threshold), u)


def smooth_function(
    u: Expression,
    value: Callable[[Vector], Any],
    derivative: Callable[[Vector], Any],
    *,
    lipschitz: float = math.inf,
    smoothness: float = math.inf,
) -> Expression:
    """Apply a smooth function of your own, entry by entry.

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
    return Elementwise(UserSmooth(value, derivative, lipschitz, smoothness), u)


__all__ = ["logistic", "pseudo_huber", "smooth_function", "softplus"]
