"""Building and evaluating expressions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from tests.limits import limiting_gradients

import goldstein.calculus as gc
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.errors import InputError, InputTypeError, KinkError, NotCertifiableError

finite = st.floats(-1e6, 1e6, allow_nan=False)


def test_dense_sparse_and_operator_agree():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((7, 4)) * (rng.random((7, 4)) < 0.6)
    w = gc.Variable(4)
    x = rng.standard_normal(4)
    forms = [A @ w, sparse.csr_array(A) @ w, sparse.csr_matrix(A) @ w]
    forms.append(gc.linear(aslinearoperator(A), w))
    answers = [gc.sum(gc.relu(u + 0.3)) for u in forms]
    for F in answers:
        assert F.value(x) == pytest.approx(np.maximum(A @ x + 0.3, 0).sum(), rel=1e-13)
        np.testing.assert_allclose(F.gradient(x), A.T @ (A @ x + 0.3 > 0), atol=1e-12)
    assert answers[0].knows_kinks


def test_operator_is_never_certified():
    F = gc.sum(gc.abs(gc.linear(aslinearoperator(np.eye(2)), gc.Variable(2))))
    with pytest.raises(NotCertifiableError, match="LinearOperator"):
        limiting_gradients(F, [0.0, 1.0], [[1.0, 1.0]])


def test_user_functions_are_never_certified():
    F = gc.sum(gc.smooth_function(gc.Variable(2), np.sin, np.cos, lipschitz=1, smoothness=1))
    np.testing.assert_allclose(F.gradient(np.zeros(2)), 1.0)
    with pytest.raises(NotCertifiableError, match="user code"):
        limiting_gradients(F, [0.0, 1.0], [[1.0, 1.0]])


def test_matrix_products_slices_and_transposes():
    rng = np.random.default_rng(1)
    X, theta = rng.standard_normal((5, 2)), rng.standard_normal(3 * 2 + 3)
    t = gc.Variable(9)
    W, a = t[:6].reshape(3, 2), t[6:]
    out = gc.relu(X @ W.T) @ a
    F = gc.sum_squares(out - 1.0)
    net = np.maximum(X @ theta[:6].reshape(3, 2).T, 0) @ theta[6:]
    assert F.value(theta) == pytest.approx(((net - 1) ** 2).sum())
    h = 1e-6
    slopes = [(F.value(theta + h * e) - F.value(theta - h * e)) / (2 * h) for e in np.eye(9)]
    np.testing.assert_allclose(F.gradient(theta), slopes, atol=1e-5)


def test_repeated_index_adds_up():
    w = gc.Variable(2)
    F = gc.sum(w[np.array([0, 0, 1])])
    np.testing.assert_array_equal(F.gradient(np.array([1.0, 2.0])), [2.0, 1.0])


def test_constants_on_both_sides():
    w = gc.Variable(2)
    x = np.array([1.0, -2.0])
    for F, value in [
        (gc.sum(3.0 - w), 7.0),
        (gc.sum(np.array([1.0, 2.0]) * w), -3.0),
        (gc.sum(w / 2.0), -0.5),
        (gc.sum(-w + np.ones(2)), 3.0),
        (np.array([1.0, 1.0]) @ w, -1.0),
        (w @ np.array([1.0, 1.0]), -1.0),
        (w @ w, 5.0),
    ]:
        assert F.value(x) == value


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (lambda: gc.Variable(0), InputError),
        (lambda: gc.Variable(2) + gc.Variable(2), InputError),
        (lambda: np.eye(3) @ gc.Variable(2), InputError),
        (lambda: np.array([[np.nan, 1.0]]) @ gc.Variable(2), InputError),
        (lambda: gc.Variable(2) + np.ones(3), InputError),
        (lambda: gc.relu(3.0), InputTypeError),
        (lambda: gc.relu(gc.Variable(2)).value(np.zeros(2)), InputTypeError),
        (lambda: gc.sum(gc.Variable(2)).value(np.zeros(3)), InputError),
        (lambda: gc.ramp(gc.Variable(2), rho=0.0), InputError),
        (lambda: gc.pinball(gc.Variable(2), 1.0), InputError),
        (lambda: gc.softmax_cross_entropy(gc.Variable(4).reshape(2, 2), [0, 2]), InputError),
        (lambda: list(gc.sum(gc.Variable(2))), InputTypeError),
        (lambda: gc.sum(gc.abs(gc.Variable(2))).gradient(np.array([np.nan, 1.0])), InputError),
    ],
)
def test_mistakes_are_named(build, kind):
    with pytest.raises(kind):
        build()


@pytest.mark.parametrize(
    ("row", "sign"),
    [
        ([1e16, 1.0, -1e16, -1.0], 0),
        ([1.0, 1e-17, -1.0, 0.0], 1),
        ([1.0, -1e-17, -1.0, 0.0], -1),
        ([5e-324, 0.0, 0.0, 0.0], 1),
        ([1e308, 1e308, -1e308, -1e308], 0),
    ],
)
def test_signs_of_kinks_are_exact(row, sign):
    F = gc.sum(gc.abs(np.array([row]) @ gc.Variable(4)))
    one = np.ones(4)
    if sign == 0:
        with pytest.raises(KinkError):
            F.gradient(one)
    else:
        np.testing.assert_array_equal(F.gradient(one), sign * np.array(row))


def test_three_tenths():
    # 3 * 0.1 - 0.3 is not zero for the stored numbers.
    F = gc.sum(gc.relu(np.array([[0.1]]) @ gc.Variable(1) - 0.3))
    exact = 3 * Fraction(0.1) - Fraction(0.3)
    assert float(exact) == 2.7755575615628914e-17
    np.testing.assert_array_equal(F.gradient(np.array([3.0])), [0.1])


def test_constant_rows_are_not_kinks():
    F = gc.sum(gc.relu(np.array([[0.0, 0.0], [1.0, 0.0]]) @ gc.Variable(2)))
    np.testing.assert_array_equal(F.gradient(np.array([1.0, 0.0])), [1.0, 0.0])


def test_cached_values_do_not_follow_a_changed_point():
    F = gc.sum_squares(gc.Variable(2))
    x = np.ones(2)
    assert F.value(x) == 2.0
    x[0] = 3.0
    assert F.value(x) == 10.0
    x[0] = 1.0
    np.testing.assert_array_equal(F.gradient(x), [2.0, 2.0])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(finite, min_size=3, max_size=3),
    st.lists(finite, min_size=3, max_size=3),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_enclosures_contain_exact_results(a, b, ra, rb):
    left = Enclosure(np.array(a), np.full(3, ra))
    right = Enclosure(np.array(b), np.full(3, rb))
    for s in (-1, 0, 1):
        p = [Fraction(v) + s * Fraction(ra) for v in a]
        q = [Fraction(v) - s * Fraction(rb) for v in b]
        cases = [
            (left + right, [x + y for x, y in zip(p, q)]),
            (left - right, [x - y for x, y in zip(p, q)]),
            (left * right, [x * y for x, y in zip(p, q)]),
            ((left @ right).reshape(1), [sum(x * y for x, y in zip(p, q))]),
            (left.sum().reshape(1), [sum(p)]),
        ]
        for found, exact in cases:
            for m, r, e in zip(found.mid, found.rad, exact):
                assert abs(Fraction(float(m)) - e) <= Fraction(float(r))


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-3, 1e6), st.floats(0, 0.5))
def test_reciprocal_and_root_contain_exact_results(value, share):
    e = Enclosure(np.array([value]), np.array([share * value]))
    for s in (-1, 0, 1):
        member = Fraction(value) + s * Fraction(share * value)
        inverse, root = e.reciprocal(), e.root()
        gap = abs(Fraction(float(inverse.mid[0])) - 1 / member)
        assert gap <= Fraction(float(inverse.rad[0]))
        low = Fraction(float(root.mid[0])) - Fraction(float(root.rad[0]))
        high = Fraction(float(root.mid[0])) + Fraction(float(root.rad[0]))
        assert max(low, Fraction(0)) ** 2 <= member <= high**2
    assert Enclosure(np.array([0.1]), np.array([0.2])).reciprocal().rad[0] == np.inf


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1.0, 1e150])
@pytest.mark.parametrize("size", [1e-170, 1.0, 1e150])
def test_kinks_are_seen_at_every_scale(scale, size):
    # 0.1 * 3 - 0.3 is a tiny positive number; floats may see 0 or the wrong sign.
    row = scale * np.array([0.1, -0.3])
    F = gc.sum(gc.relu(row[None, :] @ gc.Variable(2)))
    for point in (size * np.array([3.0, 1.0]), size * np.array([3.0, 1.0 + 2.0**-52])):
        exact = sum(Fraction(a) * Fraction(x) for a, x in zip(row, point))
        if exact == 0:
            with pytest.raises(KinkError):
                F.gradient(point)
        else:
            np.testing.assert_array_equal(F.gradient(point), row if exact > 0 else 0 * row)


def test_data_are_copied():
    A, b, c = np.eye(2), np.ones(2), np.full(2, 2.0)
    F = gc.sum(gc.relu(A @ gc.Variable(2) * c + b))
    x = np.array([1.0, 2.0])
    before = F.gradient(x).copy()
    for data in (A, b, c):
        data[:] = -7.0
    np.testing.assert_array_equal(F.gradient(x + 0.5), before)


def test_underflow_inside_a_chain_is_not_hidden_by_a_large_factor():
    # 1e-200 * 1e-150 underflows to 0 in floats; times 1e300 it is 1e-50, above the level 1e-55.
    inner = np.array([[1e-200]]) @ gc.Variable(1)
    F = gc.sum(gc.relu(np.array([[1e300]]) @ inner - 1e-55))
    assert F.gradient(np.array([1e-150]))[0] != 0.0


def test_operators_admit_that_they_do_not_know_their_kinks():
    u = gc.linear(aslinearoperator(np.eye(2)), gc.Variable(2))
    assert not gc.sum(gc.abs(u)).knows_kinks
    assert not (gc.sum(gc.abs(u)) + 1.0).knows_kinks
