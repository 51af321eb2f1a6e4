"""Scalable systems of equations in the max-norm or 1-norm (TEST29); O(d) per call.

Problem 5, with its dense Hilbert matrix, costs O(d log d).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems import forms
from goldstein.problems.registry import AnyDimension, Instance, Objective, family

problem = family(
    "test29",
    "Luksan, Tuma, Siska, Vlcek, Ramesova (2002), UFO 2002, TR 883, ICS Prague, TEST29 no. {}",
)
ANY = AnyDimension(2)


def _tridiagonal(
    diagonal: forms.Pieces, slope: Callable[[float, int], float], below: float, above: float
) -> Objective:
    """max_i |diagonal_i(x_i) + below x_{i-1} + above x_{i+1}|; slope(x_i, i) = diagonal_i'."""

    def residuals(x: Vector) -> Any:
        r = diagonal(x)
        r[1:] += below * x[:-1]
        r[:-1] += above * x[1:]
        return r

    def row(x: Vector, i: int) -> Vector:
        g = forms.unit_vector(x.size, i, slope(float(x[i]), i))
        if i > 0:
            g[i - 1] = below
        if i + 1 < x.size:
            g[i + 1] = above
        return g

    return forms.largest_modulus(residuals, row)


@problem(
    ANY, "sum_i |sum_j x_j/(i+j-1)|", "5", name="test29_5", convex=True,
    reference=7.60661627709413e-13,
)  # fmt: skip
def hilbert_l1(d: int = 50) -> Instance:
    """L1HILB: the 1-norm of the Hilbert matrix times x."""
    product = forms.hilbert_product(d)
    return Instance(np.ones(d), forms.sum_of_moduli(product, lambda x, s: product(s)))


@problem(
    ANY, "max_i |(3-2x_i)x_i+1-x_{i-1}-x_{i+1}|", "6", name="test29_6",
    reference=1.1601830607332886e-14,
)  # fmt: skip
def broyden_tridiagonal(d: int = 50) -> Instance:
    """Broyden's tridiagonal system."""
    objective = _tridiagonal(
        lambda x: (3.0 - 2.0 * x) * x + 1.0, lambda t, i: 3.0 - 4.0 * t, -1.0, -1.0
    )
    return Instance(np.full(d, -1.0), objective)


@problem(
    AnyDimension(5, 5),
    "max_i |5-(j+1)(1-cos x_i)-sin x_i-sum_{k=5j+1}^{5j+5} cos x_k|, j=floor((i-1)/5)", "17",
    name="test29_17", reference=3.4638958368304884e-14,
)  # fmt: skip
def trigonometric_blocks(d: int = 50) -> Instance:
    """Blocks of five variables; only whole blocks make 0 a solution."""
    factor = np.arange(d) // 5 + 1.0

    def residuals(x: Vector) -> Vector:
        cosines = np.cos(x)
        blocks = np.repeat(np.sum(cosines.reshape(-1, 5), axis=1), 5)
        return 5.0 - factor * (1.0 - cosines) - np.sin(x) - blocks

    def row(x: Vector, i: int) -> Vector:
        g = np.zeros(x.size)
        block = slice(i - i % 5, i - i % 5 + 5)
        g[block] = np.sin(x[block])
        g[i] -= factor[i] * np.sin(x[i]) + np.cos(x[i])
        return g

    return Instance(np.full(d, 1.0 / d), forms.largest_modulus(residuals, row))


@problem(
    ANY, "max_i |(0.5x_i-3)x_i-1+x_{i-1}+2x_{i+1}|", "20", name="test29_20",
    reference=4.884981308350689e-14,
)  # fmt: skip
def quadratic_tridiagonal(d: int = 50) -> Instance:
    """A quadratic tridiagonal system, not symmetric."""
    objective = _tridiagonal(lambda x: (0.5 * x - 3.0) * x - 1.0, lambda t, i: t - 3.0, 1.0, 2.0)
    return Instance(np.full(d, -1.0), objective)


@problem(
    ANY, "max_i |2x_i+(x_i+i/(d+1)+1)^3/(2(d+1)^2)-x_{i-1}-x_{i+1}|", "22", name="test29_22",
    reference=3.4139358007223564e-15,
)  # fmt: skip
def boundary_value(d: int = 50) -> Instance:
    """A discretised boundary value problem."""
    t = np.arange(1.0, d + 1.0) / (d + 1.0)
    weight = 0.5 / (d + 1.0) ** 2

    def diagonal(x: Vector) -> Vector:
        u = x + t + 1.0
        return 2.0 * x + weight * u * u * u

    objective = _tridiagonal(
        diagonal, lambda u, i: 2.0 + 3.0 * weight * (u + float(t[i]) + 1.0) ** 2, -1.0, -1.0
    )
    return Instance(t * (t - 1.0), objective)


@problem(
    ANY, "max_i |2x_i+10 sinh(10x_i)/(d+1)^2-x_{i-1}-x_{i+1}|, x_0 = 0, x_{d+1} = 1", "24",
    name="test29_24", reference=0.000883314869173403, note="Troesch's problem; very flat valleys",
)  # fmt: skip
def troesch(d: int = 50) -> Instance:
    """Troesch's boundary value problem in the max-norm."""
    weight = 10.0 / (d + 1.0) ** 2

    def diagonal(x: Vector) -> Vector:
        r = 2.0 * x + weight * np.sinh(10.0 * x)
        r[-1] -= 1.0
        return r

    def slope(t: float, i: int) -> float:
        return float(2.0 + 10.0 * weight * np.cosh(10.0 * t))

    return Instance(np.ones(d), _tridiagonal(diagonal, slope, -1.0, -1.0))
