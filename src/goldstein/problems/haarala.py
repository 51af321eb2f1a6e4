"""The ten large-scale problems of Haarala, Miettinen and Makela (2004); O(d) per call.

MXHILB alone costs O(d log d).
"""

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems import forms
from goldstein.problems.registry import AnyDimension, Instance, Objective, family, together

problem = family(
    "haarala", "Haarala, Miettinen, Makela (2004), Optim. Methods Softw. 19(6), 673-692, problem {}"
)
ANY = AnyDimension(2)


def ramp_start(d: int) -> Vector:
    """Return 1, 2, ..., with the second half negated."""
    i = np.arange(1.0, d + 1.0)
    i[d // 2 :] *= -1.0
    return i


def _alternating(d: int, odd: float, even: float) -> Vector:
    x = np.full(d, odd)
    x[1::2] = even
    return x


def _chain(left: Vector, right: Vector) -> Vector:
    """Gradient of a sum over neighbours from the partials in x_i and in x_{i+1}."""
    g = np.empty(left.size + 1)
    g[:-1] = left
    g[-1] = 0.0
    g[1:] += right
    return g


def max_square() -> Objective:
    """max_i x_i^2, without temporaries of length d for the value."""

    def both(x: Vector) -> Any:
        i = int(np.argmax(np.abs(x)))
        return float(x[i]) ** 2, forms.unit_vector(x.size, i, 2.0 * x[i])

    return Objective(lambda x: float(max(x.max(), -x.min())) ** 2, both)


@problem(ANY, "max_i x_i^2", "1", convex=True, reference=1.9044843180314297e-14)
def maxq(d: int = 50) -> Instance:
    """One active square at a time: steepest descent needs d steps per sweep."""
    return Instance(ramp_start(d), max_square())


@problem(ANY, "max_i |sum_j x_j/(i+j-1)|", "2", convex=True, public=False)
def mxhilb(d: int = 50) -> Instance:
    """A max-norm of the badly conditioned Hilbert matrix."""
    return Instance(
        np.ones(d),
        forms.largest_modulus(forms.hilbert_product(d), lambda x, i: forms.hilbert_row(d, i)),
    )


def chained_lq_objective() -> Objective:
    """sum_i -x_i - x_{i+1} + max(0, x_i^2 + x_{i+1}^2 - 1)."""

    def both(x: Vector) -> Any:
        squares = x * x
        sums = squares[:-1] + squares[1:]
        outside = (sums > 1.0).astype(np.float64)
        g = 2.0 * x * _chain(outside, outside) - 2.0
        g[[0, -1]] += 1.0
        return np.sum(np.maximum(sums - 1.0, 0.0)) - (2.0 * np.sum(x) - x[0] - x[-1]), g

    return together(both)


@problem(
    ANY, "sum_{i<d} max{-x_i-x_{i+1}, -x_i-x_{i+1}+x_i^2+x_{i+1}^2-1}", "3", convex=True,
    best=lambda d: -(d - 1) * math.sqrt(2.0), reference=-69.2964645562816,
)  # fmt: skip
def chained_lq(d: int = 50) -> Instance:
    """Minimiser: all x_i = 1/sqrt(2)."""
    return Instance(np.full(d, -0.5), chained_lq_objective())


def _cb3_terms(x: Vector) -> tuple[list[Vector], list[tuple[Vector, Vector]]]:
    """The three pieces of each pair of neighbours, and their partials in both."""
    a, b = x[:-1], x[1:]
    squares, shifted, growth = x * x, (2.0 - x) ** 2, 2.0 * np.exp(b - a)
    pieces = [squares[:-1] ** 2 + squares[1:], shifted[:-1] + shifted[1:], growth]
    return pieces, [(4.0 * a * a * a, 2.0 * b), (2.0 * a - 4.0, 2.0 * b - 4.0), (-growth, growth)]


@problem(
    ANY, "sum_{i<d} max{x_i^4+x_{i+1}^2, (2-x_i)^2+(2-x_{i+1})^2, 2exp(x_{i+1}-x_i)}", "4",
    convex=True, best=lambda d: 2.0 * (d - 1), reference=98.00000000000009, start=2.0, size=50,
)  # fmt: skip
def chained_cb3_1(x: Vector) -> Any:
    """A sum of maxima: 3^(d-1) smooth pieces. Minimiser: all ones."""
    pieces, slopes = _cb3_terms(x)
    largest = np.argmax(pieces, axis=0)
    left, right = (np.choose(largest, side) for side in zip(*slopes))
    return np.sum(np.max(pieces, axis=0)), _chain(left, right)


@problem(
    ANY, "max{sum x_i^4+x_{i+1}^2, sum (2-x_i)^2+(2-x_{i+1})^2, sum 2exp(x_{i+1}-x_i)}", "5",
    convex=True, public=False, best=lambda d: 2.0 * (d - 1), start=2.0, size=50,
)  # fmt: skip
def chained_cb3_2(x: Vector) -> Any:
    """The maximum of three sums. Minimiser: all ones."""
    pieces, slopes = _cb3_terms(x)
    value, sides = forms.top([float(np.sum(piece)) for piece in pieces], slopes)
    return value, _chain(*sides)


@problem(
    ANY, "max{g(-sum x), g(x_1), ..., g(x_d)}, g(y) = ln(|y|+1)", "6",
    reference=2.375877272697807e-14, start=1.0, size=50,
)  # fmt: skip
def active_faces(x: Vector) -> Any:
    """Quasi-convex; all d+1 faces meet at the minimiser 0."""
    total, i = float(np.sum(x)), int(np.argmax(np.abs(x)))
    y = total if abs(total) >= abs(x[i]) else x[i]
    slope = math.copysign(1.0 / (abs(y) + 1.0), y)
    g = np.full(x.size, slope) if abs(total) >= abs(x[i]) else forms.unit_vector(x.size, i, slope)
    return math.log1p(abs(y)), g


@problem(
    ANY, "sum_{i<d} |x_i|^(x_{i+1}^2+1) + |x_{i+1}|^(x_i^2+1)", "7",
    reference=5.791182692926252e-16, start=lambda d: _alternating(d, -1.0, 1.0), size=50,
)  # fmt: skip
def brown_2(x: Vector) -> Any:
    """Nonsmooth generalisation of Brown's function 2. Minimiser: 0."""
    modulus, power, sign = np.abs(x), x * x + 1.0, np.sign(x)
    logarithm = np.log(np.where(modulus > 0.0, modulus, 1.0))
    u, v = modulus[:-1], modulus[1:]
    p, q = power[1:], power[:-1]
    left = p * u ** (p - 1.0) * sign[:-1] + 2.0 * x[:-1] * v**q * logarithm[1:]
    right = q * v ** (q - 1.0) * sign[1:] + 2.0 * x[1:] * u**p * logarithm[:-1]
    return np.sum(u**p) + np.sum(v**q), _chain(left, right)


@problem(
    ANY, "sum_{i<d} -x_i + 2y_i + 1.75|y_i|, y_i = x_i^2+x_{i+1}^2-1", "8", public=False,
    best=-34.79518140954764, kind="literature",
    note="best value known at d = 50, 100, 200 and 1000",
)  # fmt: skip
def chained_mifflin_2(d: int = 50) -> Instance:
    """At the best points known all y_i vanish but the second and the last."""

    def both(x: Vector) -> Any:
        squares = x * x
        y = squares[:-1] + squares[1:] - 1.0
        slope = 4.0 + 3.5 * forms.signs(y)
        value = 2.0 * np.sum(y) + 1.75 * np.sum(np.abs(y)) - np.sum(x[:-1])
        return value, _chain(slope * x[:-1] - 1.0, slope * x[1:])

    refined = {100: -70.15018778111931, 200: -140.86070717286947, 1000: -706.5460085828998}
    return Instance(np.full(d, -1.0), together(both), refined.get(d))


@problem(
    ANY, "max{sum c_i, sum -c_i+2x_{i+1}}, c_i = x_i^2+(x_{i+1}-1)^2+x_{i+1}-1", "9", reference=0.0,
    start=lambda d: _alternating(d, -1.5, 2.0), size=50,
)  # fmt: skip
def chained_crescent_1(x: Vector) -> Any:
    """sum x_{i+1} + |sum x_i^2+(x_{i+1}-1)^2-1|: one curved kink. Minimiser: 0."""
    shifted = x[1:] - 1.0
    q = float(x[:-1] @ x[:-1] + shifted @ shifted) - (x.size - 1)
    s = 2.0 * forms.sign(q)
    return float(np.sum(x[1:])) + abs(q), _chain(s * x[:-1], s * shifted + 1.0)


@problem(
    ANY, "sum_{i<d} max{c_i, -c_i+2x_{i+1}}, c_i = x_i^2+(x_{i+1}-1)^2+x_{i+1}-1", "10",
    public=False, start=lambda d: _alternating(d, -1.5, 2.0), size=50,
)  # fmt: skip
def chained_crescent_2(x: Vector) -> Any:
    """A curved kink for every pair of neighbours. Minimiser: 0."""
    q = x[:-1] ** 2 + (x[1:] - 1.0) ** 2 - 1.0
    s = 2.0 * forms.signs(q)
    return np.sum(x[1:]) + np.sum(np.abs(q)), _chain(s * x[:-1], s * (x[1:] - 1.0) + 1.0)
