"""What all models share: an expression with a start point and a fused float64 pass."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.calculus import sum_squares
from goldstein.calculus.blocked_rows import BlockedRows
from goldstein.calculus.constants import hand_over, hand_over_sparse, own, own_sparse
from goldstein.calculus.expression import Expression
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import fraction_upper
from goldstein.errors import InputError
from goldstein.numerics.exact_floats import exact_float, exact_floats, exact_number, positive
from goldstein.numerics.streams import seed_from, stream


class Model(Expression):
    """An objective built from data. The tree defines it; the fused pass only evaluates it faster.

    Attributes
    ----------
    tree : Expression
        The same function, node by node. Everything that certifies uses the tree.
    """

    def __init__(self, tree: Expression) -> None:
        super().__init__(nodes.Add, (tree,), ())

    def rebuilt(self, made: dict[int, Expression]) -> Expression:
        return made[id(self.tree)]

    @property
    def tree(self) -> Expression:
        return self.args[0]

    def start(self, rng: int | np.random.Generator | None = None) -> Vector:
        """Return a start point of the usual size; same seed, same point."""
        if isinstance(rng, np.random.Generator):
            return self._start(rng)
        return self._start(stream(seed_from(rng), 0, "start"))

    def _start(self, rng: np.random.Generator) -> Vector:
        raise NotImplementedError

    def solver_lipschitz(self, x: Vector, delta: float) -> float:
        """Return a Lipschitz constant on the delta-neighbourhood of {F <= F(x)}; inf if none."""
        raise NotImplementedError


def data_matrix(data: Any, name: str) -> Any:
    """Return finite data of shape (n, d): dense, sparse, or in blocks of rows."""
    matrix: Any
    if isinstance(data, BlockedRows):
        matrix, entries = data, data.norms()
    elif sparse.issparse(data):
        matrix = own_sparse(data, name)
        entries = matrix.data
    else:
        matrix = own(data, name)
        entries = matrix
    if len(matrix.shape) != 2 or 0 in matrix.shape:
        raise InputError(f"{name} must have shape (n, d), got {matrix.shape}.")
    if not np.isfinite(entries).all():
        raise InputError(f"{name} has a NaN or an infinity; clean the data first.")
    return matrix


def with_constant_feature(data: Any) -> Any:
    """Return the data with a last column of ones, private to expressions: not copied again."""
    ones = np.ones((data.shape[0], 1))
    if sparse.issparse(data):
        return hand_over_sparse(sparse.csr_array(sparse.hstack([data, ones])))
    return hand_over(np.hstack([data, ones]))


def ridge_term(lam: float | Fraction, u: Expression) -> Expression:
    """Return lam/2 |u|^2, lam > 0; nothing is rounded in proofs."""
    lam = exact_number(lam, "lam")
    half = 0.5 * float(lam)
    if 2 * Fraction(half) == lam:
        return half * sum_squares(u)
    answer, divisor = sum_squares(u), 2 / lam
    while divisor > 2**1000:  # beyond what one division takes
        answer, divisor = answer / 2**1000, divisor / 2**1000
    return answer / divisor


def nonnegative(name: str, value: Any) -> float:
    """Return a nonnegative finite parameter, or refuse it."""
    number = exact_number(value, name)
    if number < 0 or math.isinf(fraction_upper(number)):
        raise InputError(f"{name} must be a nonnegative finite number, got {value!r}.")
    return float(number)


def exact_positive(name: str, value: Any) -> float:
    """Return a positive parameter that is a float64 number, or refuse it."""
    return exact_float(positive(name, value), name)


def sample_weights(weights: Any, samples: int) -> Vector:
    """Return one nonnegative finite number per sample, in an array of their own."""
    shares = np.array(exact_floats(weights, "weights"))
    if shares.shape != (samples,) or (shares < 0).any():
        raise InputError(
            f"weights must be {samples} nonnegative finite numbers, one per row of the data."
        )
    return shares
