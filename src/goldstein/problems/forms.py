"""Outer functions that test problems share, and how to put functions together."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.extras import from_extra
from goldstein.problems.registry import Objective, together

Pieces = Callable[[Vector], Any]
Row = Callable[[Vector, int], Any]
#: Up to here the dense product is exact to the last bits and as fast as the FFT.
DENSE_LIMIT = 512
#: The vector-Jacobian product: the gradient of s . residuals at x.
Pullback = Callable[[Vector, Vector], Any]


def signs(v: Vector) -> Vector:
    """Return +1 where v >= 0 and -1 elsewhere: a kink is resolved to its right side."""
    return np.where(v >= 0.0, 1.0, -1.0)


def sign(t: float) -> float:
    """Return the same of one number."""
    return 1.0 if t >= 0.0 else -1.0


def unit_vector(d: int, i: int, entry: float = 1.0) -> Vector:
    """Return the vector with one nonzero entry."""
    e = np.zeros(d)
    e[i] = entry
    return e


def top(values: Sequence[float], rows: Sequence[Any]) -> tuple[Any, Any]:
    """Return the largest of some values and its gradient."""
    i = int(np.argmax(values))
    return values[i], rows[i]


def largest(pieces: Pieces, row: Row) -> Objective:
    """f = max_i pieces_i; `row(x, i)` is the gradient of piece i."""

    def both(x: Vector) -> tuple[float, Any]:
        v = pieces(x)
        i = int(np.argmax(v))
        return v[i], row(x, i)

    return together(both, lambda x: np.max(pieces(x)))


def largest_modulus(residuals: Pieces, row: Row) -> Objective:
    """f = max_i |residuals_i|; `row(x, i)` is the gradient of residual i."""

    def both(x: Vector) -> tuple[float, Any]:
        v = residuals(x)
        i = int(np.argmax(np.abs(v)))
        return (v[i], row(x, i)) if v[i] >= 0.0 else (-v[i], -np.asarray(row(x, i)))

    def value(x: Vector) -> float:
        v = residuals(x)
        return float(max(np.max(v), -np.min(v)))

    return together(both, value)


def sum_of_moduli(residuals: Pieces, pullback: Pullback) -> Objective:
    """f = sum_i |residuals_i|."""

    def both(x: Vector) -> tuple[float, Any]:
        v = residuals(x)
        return float(np.sum(np.abs(v))), pullback(x, signs(v))

    return together(both, lambda x: float(np.sum(np.abs(residuals(x)))))


def sum_of_positive_parts(residuals: Pieces, pullback: Pullback) -> Objective:
    """f = sum_i max{0, residuals_i}."""

    def both(x: Vector) -> tuple[float, Any]:
        v = residuals(x)
        return float(np.sum(np.maximum(v, 0.0))), pullback(x, (v > 0.0).astype(np.float64))

    return together(both, lambda x: float(np.sum(np.maximum(residuals(x), 0.0))))


def weighted_modulus(weight: float) -> Objective:
    """f = weight |x|_1."""
    return sum_of_moduli(lambda x: weight * x, lambda _, s: weight * s)


def added(first: Objective, second: Objective) -> Objective:
    """f = first + second."""

    def both(x: Vector) -> tuple[float, Any]:
        value, gradient = first.both(x)
        more, further = second.both(x)
        return value + more, gradient + further

    return together(both, lambda x: first.value(x) + second.value(x))


def hilbert_product(d: int) -> Pieces:
    """Return x -> Hx with H_ij = 1/(i+j-1), at O(d log d) cost for large d."""
    if d <= DENSE_LIMIT:
        index = np.arange(d)
        matrix = 1.0 / (index[:, None] + index + 1.0)
        return lambda x: np.asarray(matrix @ x)

    from scipy import fft  # imported here: only large problems pay for it

    # Hx is a convolution of 1/k with x reversed; wrap-around only reaches entries we drop.
    length = fft.next_fast_len(2 * d - 1, real=True)
    spectrum = fft.rfft(1.0 / np.arange(1.0, 2 * d), length)

    def product(x: Vector) -> Vector:
        full = fft.irfft(spectrum * fft.rfft(x[::-1], length), length)
        return np.asarray(full[d - 1 : 2 * d - 1])

    return product


def hilbert_row(d: int, i: int) -> Vector:
    """Return row i (counted from 0) of the d x d Hilbert matrix."""
    return 1.0 / np.arange(i + 1.0, i + 1.0 + d)


#: coefficient, variable (from 1, as in the literature), power, centre: c (x_i - centre)^power
Term = tuple[float, int, int, float]
#: coefficient and two variables: c x_i x_j
Product = tuple[float, int, int]
#: constant, terms, products
Polynomial = tuple[float, Sequence[Term], Sequence[Product]]


class SparsePolynomials:
    """A vector of polynomials, evaluated in a few array operations."""

    def __init__(self, polynomials: Sequence[Polynomial]) -> None:
        self.constants = np.array([p[0] for p in polynomials])
        terms = [(k, *term) for k, p in enumerate(polynomials) for term in p[1]]
        products = [(k, *product) for k, p in enumerate(polynomials) for product in p[2]]
        self._owner = np.array([t[0] for t in terms])
        self._coefficient = np.array([float(t[1]) for t in terms])
        self._variable = np.array([t[2] - 1 for t in terms])
        self._power = np.array([t[3] for t in terms])
        self._centre = np.array([float(t[4]) for t in terms])
        self._products = [(k, c, i - 1, j - 1) for k, c, i, j in products]

    def values(self, x: Vector) -> Vector:
        """Return all polynomials at x."""
        powers = self._coefficient * (x[self._variable] - self._centre) ** self._power
        out = self.constants + np.bincount(self._owner, powers, self.constants.size)
        for k, c, i, j in self._products:
            out[k] += c * x[i] * x[j]
        return np.asarray(out)

    def gradient(self, x: Vector, k: int) -> Vector:
        """Return the gradient of polynomial k."""
        mine = self._owner == k
        variable, power = self._variable[mine], self._power[mine]
        slopes = self._coefficient[mine] * power * (x[variable] - self._centre[mine]) ** (power - 1)
        g = np.bincount(variable, slopes, x.size)
        for owner, c, i, j in self._products:
            if owner == k:
                g[i] += c * x[j]
                g[j] += c * x[i]
        return np.asarray(g)


def penalised(polynomials: Sequence[Polynomial], penalty: float = 10.0) -> Objective:
    """max{p_0, p_0 + penalty p_1, ...}: p_0 under the constraints p_k <= 0, exactly penalised."""
    system = SparsePolynomials(polynomials)

    def pieces(x: Vector) -> Vector:
        p = system.values(x)
        v = p[0] + penalty * p
        v[0] = p[0]
        return np.asarray(v)

    def row(x: Vector, k: int) -> Vector:
        g = system.gradient(x, 0)
        return g if k == 0 else g + penalty * system.gradient(x, k)

    return largest(pieces, row)


def rosen_suzuki_polynomials() -> list[Polynomial]:
    """Rosen and Suzuki's objective and its three constraints, Comm. ACM 8 (1965), 113."""
    squares = ((1, 1, 2, 1), (1, 1, 1, 1), (1, 2, 1, 2), (1, 1, 1, 0))
    linear = ((-5, -5, -21, 7), (1, -1, 1, -1), (-1, 0, 0, -1), (2, -1, 0, -1))
    return [
        (
            -constant,
            [(float(q), i, 2, 0.0) for i, q in enumerate(square, 1)]
            + [(float(b), i, 1, 0.0) for i, b in enumerate(slope, 1)],
            [],
        )
        for constant, square, slope in zip((0.0, 8.0, 10.0, 5.0), squares, linear, strict=True)
    ]


FOLDER = Path(__file__).parent / "data"


def shipped(name: str) -> dict[str, Vector]:
    """Load the arrays of a shipped file as float64."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as archive:
        return {key: archive[key].astype(np.float64) for key in archive.files}


def bundled(name: Literal["iris", "breast_cancer", "diabetes"]) -> tuple[Vector, Vector]:
    """Load inputs and targets of a data set that comes with scikit-learn."""
    with from_extra(f"the problem with the {name} data", "scikit-learn", "sklearn"):
        from sklearn import datasets
    inputs, targets = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.asarray(inputs, dtype=np.float64), np.asarray(targets, dtype=np.float64)


def standardised(inputs: Vector) -> Vector:
    """Return columns of mean 0 and variance 1; a constant column becomes 0."""
    spread = inputs.std(axis=0)
    return np.asarray((inputs - inputs.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))
