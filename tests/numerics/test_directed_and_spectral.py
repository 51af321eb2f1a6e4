"""Roundings go the safe way; singular value bounds hold and are tight."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from goldstein.errors import InputError
from goldstein.numerics import exact
from goldstein.numerics.spectral import singular_bounds, spectral_norm_upper

positive = st.floats(min_value=1e-300, max_value=1e300)


@given(positive, positive)
def test_products_quotients_and_sums_enclose(a, b):
    p, q = Fraction(a), Fraction(b)
    up = exact.product_up(a, b)
    assert math.isinf(up) or Fraction(up) >= p * q
    assert Fraction(exact.quotient_down(a, b)) <= p / q
    up = exact.quotient_up(a, b)
    assert math.isinf(up) or Fraction(up) >= p / q
    assert Fraction(exact.sum_up([a, b])) >= p + q
    assert Fraction(exact.root_up(a)) ** 2 >= p
    norm = exact.root_sum_squares_up([a, b])
    assert math.isinf(norm) or Fraction(norm) ** 2 >= p * p + q * q


def test_infinity_and_zero():
    assert exact.product_up(0.0, math.inf) == 0.0
    assert exact.product_up(2.0, math.inf) == math.inf
    assert exact.quotient_down(math.inf, 2.0) == math.inf
    assert exact.quotient_up(1.0, math.inf) == 0.0
    assert exact.sum_up([1.0, math.inf]) == math.inf
    assert exact.root_up(math.inf) == math.inf
    assert exact.root_sum_squares_up([math.inf]) == math.inf


def is_positive_definite(matrix):
    """Exact Gaussian elimination with Fractions."""
    work = [list(row) for row in matrix]
    for k in range(len(work)):
        if work[k][k] <= 0:
            return False
        for i in range(k + 1, len(work)):
            factor = work[i][k] / work[k][k]
            work[i] = [a - factor * b for a, b in zip(work[i], work[k], strict=True)]
    return True


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_exactly_and_are_tight(seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((3, 5)) * 10.0 ** rng.integers(-5, 5)
    if seed % 2:
        a[2] = a[0] + 1e-7 * a[2]
    bounds = singular_bounds(a)
    rows = [[Fraction(v) for v in row] for row in a.tolist()]
    gram = [[sum(p * q for p, q in zip(r, s, strict=True)) for s in rows] for r in rows]

    def shifted(sign, bound):
        square = Fraction(bound) ** 2
        return [
            [sign * (g - (square if i == j else 0)) for j, g in enumerate(row)]
            for i, row in enumerate(gram)
        ]

    assert is_positive_definite(shifted(-1, bounds.largest))  # largest^2 I - A A^T > 0
    assert is_positive_definite(shifted(1, bounds.smallest))  # A A^T - smallest^2 I > 0
    true = np.linalg.svd(a, compute_uv=False)
    assert bounds.largest <= true[0] * (1 + 1e-12)
    assert bounds.smallest >= true[-1] - 1e-12 * true[0]


def test_dependent_rows_have_no_positive_lower_bound():
    assert singular_bounds([[1.0, 2.0], [0.1, 0.2]]).smallest == 0.0
    assert singular_bounds(np.zeros((2, 3))) == singular_bounds(np.zeros((0, 3)))


def test_sparse_and_wide_matrices():
    a = sparse.random_array((40, 60), density=0.1, rng=np.random.default_rng(0)).tocsr()
    assert singular_bounds(a) == singular_bounds(a.toarray())
    eye = sparse.identity(2500, format="csr")
    assert 1.0 <= spectral_norm_upper(eye) <= 1.0 + 1e-9


def test_non_finite_matrices_are_refused():
    with pytest.raises(InputError, match="non-finite"):
        singular_bounds([[math.nan]])
