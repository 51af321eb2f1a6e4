"""A function plus a linear one."""

from __future__ import annotations

from goldstein.checker.arrays import Vector
from goldstein.oracles.base import Oracle


class Tilted(Oracle):
    """f(x) + <slope, x>: the kinks are those of f.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.oracles import FunctionOracle
    >>> tilted = Tilted(FunctionOracle(lambda x: abs(x).sum(), np.sign), np.array([0.5, 0.0]))
    >>> tilted.gradient(np.array([1.0, -1.0]))
    array([ 1.5, -1. ])
    """

    def __init__(self, inner: Oracle, slope: Vector) -> None:
        self.inner, self.slope = inner, slope
        self.knows_kinks = inner.knows_kinks
        self.dim = inner.dim
        self.has_value = inner.has_value
        self.has_gradient = inner.has_gradient

    @property
    def name(self) -> str:
        return self.inner.name

    def value(self, x: Vector) -> float:
        return float(self.inner.value(x) + self.slope @ x)

    def gradient(self, y: Vector) -> Vector:
        return self.inner.gradient(y) + self.slope
