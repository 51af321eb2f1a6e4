"""The multiclass margin model: its tree, its fused pass, its kinks, and two classes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize as scipy_minimize
from tests.limits import limiting_gradients, require_one_gradient

import goldstein as gs
from goldstein.calculus import Variable, row_max, sum
from goldstein.certificates import NearCertificate
from goldstein.errors import InputError, InputTypeError, KinkError
from goldstein.models import margin_svm, multiclass_margin
from goldstein.models.margin_svm import Smoothing

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))
Y = RNG.integers(0, 4, 30)
P = RNG.uniform(0.0, 2.0, 30)
CASES: dict[str, Any] = {
    "plain": lambda: multiclass_margin(X, Y, 4),
    "weighted": lambda: multiclass_margin(X, Y, 4, 0.7, 0.1, weights=P, shift=-0.4),
    "no intercept": lambda: multiclass_margin(X, Y, 4, 2.0, 0.5, intercept=False),
    "no ridge": lambda: multiclass_margin(X, Y, 4, 1.0, 0.0, shift=0.2),
    "sparse": lambda: multiclass_margin(sparse.csr_array(X * (np.abs(X) > 0.7)), Y, 4),
    "a class without rows": lambda: multiclass_margin(X, Y % 3, 5),
}
cases = pytest.mark.parametrize("case", sorted(CASES))


def by_definition(F: Any, theta: np.ndarray) -> float:
    """The objective in plain words."""
    W = theta.reshape(F.classes, -1)
    rows = F.X.toarray() if sparse.issparse(F.X) else F.X
    total = (
        0.5
        * F.lam
        * (W[:, :-1] if F.intercept else W).ravel()
        @ (W[:, :-1] if F.intercept else W).ravel()
    )
    for x, label, p in zip(rows, F.labels, F.weights):
        s = W @ x
        u = s[label] - max(np.delete(s, label)) - F.shift
        total += p * min(1.0, max(0.0, 1.0 - u / F.rho))
    return float(total)


@cases
def test_fused_pass_tree_definition_and_differences_agree(case: str) -> None:
    F = CASES[case]()
    rng = np.random.default_rng(1)
    for size in (0.1, 0.5, 1.0):
        x = size * rng.standard_normal(F.dim)
        assert F.value(x) == pytest.approx(by_definition(F, x), rel=1e-12)
        assert F.tree.value(x) == pytest.approx(F.value(x), rel=1e-12)
        require_one_gradient(F, x)


@cases
def test_smooth_approximation_approaches_the_objective(case: str) -> None:
    F = CASES[case]()
    x = np.random.default_rng(2).standard_normal(F.dim)
    gaps = [abs(F.smooth(x, Smoothing(w * F.rho))[0] - F.value(x)) for w in (1e-1, 1e-3, 1e-6)]
    assert gaps[2] <= 1e-4 * (1 + F.value(x))
    assert gaps[2] - 1e-12 <= gaps[1] <= gaps[0] + 1e-12
    s = Smoothing(0.2 * F.rho, 0.3 * F.rho)
    h = 1e-6
    slopes = [(F.smooth(x + h * e, s)[0] - F.smooth(x - h * e, s)[0]) / (2 * h)
              for e in np.eye(x.size)]  # fmt: skip
    np.testing.assert_allclose(F.smooth(x, s)[1], slopes, atol=1e-5)


@cases
def test_kinks_are_refused_and_constants_hold(case: str) -> None:
    F = CASES[case]()
    if F.shift <= 0:  # else all rows are on the flat part, where ties do not matter
        with pytest.raises(KinkError):
            F.gradient(np.zeros(F.dim))
    else:
        np.testing.assert_array_equal(F.gradient(np.zeros(F.dim)), 0.0)
    rng = np.random.default_rng(3)
    x = rng.standard_normal(F.dim)
    bound, level = F.solver_lipschitz(x, 0.2), F.value(x)
    seen = 0
    for _ in range(200):
        y = x * rng.random() + 0.1 * rng.standard_normal(x.size)
        if F.value(y) <= level:
            step = rng.standard_normal(x.size)
            seen += 1
            assert np.linalg.norm(F.gradient(y + 0.2 * step / np.linalg.norm(step))) <= bound
    assert seen > 5


@given(seed=st.integers(0, 10**6), shift=st.sampled_from([0.0, -0.5]))
@settings(max_examples=20, deadline=None)
def test_two_classes_are_the_two_class_problem(seed: int, shift: float) -> None:
    """With W = (-v/2, v/2) the objective is that of v, with half the ridge."""
    rng = np.random.default_rng(seed)
    rows, labels = rng.standard_normal((12, 2)), rng.integers(0, 2, 12)
    p = rng.uniform(0.1, 1.0, 12)
    native = multiclass_margin(rows, labels, 2, 0.8, 0.3, weights=p, shift=shift)
    signs = np.where(labels == 1, 1.0, -1.0)
    Z = np.column_stack([rows, np.ones(12)]) * signs[:, None]
    binary = margin_svm(Z, 0.8, 0.15, weights=p, shift=shift, intercept=True)
    v = rng.standard_normal(3)
    W = np.concatenate([-v / 2, v / 2])
    assert native.value(W) == pytest.approx(binary.value(v), rel=1e-12)
    g = native.gradient(W)
    np.testing.assert_allclose((g[3:] - g[:3]) / 2, binary.gradient(v), atol=1e-12)
    np.testing.assert_allclose(g[3:] + g[:3], 0.0, atol=1e-12)


def test_exact_near_certificate_at_a_minimiser_with_ties() -> None:
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((40, 2))
    labels = (np.arctan2(rows[:, 1], rows[:, 0]) // (2 * np.pi / 3)).astype(int) + 2
    F = multiclass_margin(rows, labels, 4, 1.0, 0.02, weights=np.full(40, 1 / 40))
    start = scipy_minimize(F.smooth, np.zeros(F.dim), args=(Smoothing(0.1, 5.0),), jac=True).x
    found = gs.minimize(F, start, eps=1e-4, delta=1e-3, stationarity="near", rng=0)
    assert found.success
    assert len(found.certificate.weights) > 1  # not a smooth point
    assert found.certificate.verify(F).label == "certified"
    other = multiclass_margin(rows, labels[::-1], 4, 1.0, 0.02, weights=np.full(40, 1 / 40))
    assert not found.certificate.verify(other).ok


# --- row_max -------------------------------------------------------------------------------------


def test_row_max_shows_all_sides_of_a_tie_exactly() -> None:
    F = sum(row_max(Variable(4).reshape(2, 2)) * np.array([1.0, -2.0]))
    limits = limiting_gradients(F, [1.0, 1.0, 0.5, 0.5], np.array(
        [[1.0, 0, 1, 0], [0, 1.0, 1, 0], [0, 1.0, 0, 1], [1.0, 0, 0, 1]]))  # fmt: skip
    assert [g for g, _ in limits] == [
        [1, 0, -2, 0], [0, 1, -2, 0], [0, 1, 0, -2], [1, 0, 0, -2]]  # fmt: skip
    assert all(r == [Fraction(0)] * 4 for _, r in limits)
    with pytest.raises(gs.NotCertifiableError, match="stays on a kink"):
        limiting_gradients(F, [1.0, 1.0, 0.5, 0.5], [[1.0, 1.0, 1.0, 0.0]])


def test_row_max_knows_a_tie_that_rounding_hides() -> None:
    rows = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    F = sum(row_max((rows @ Variable(3)).reshape(1, 2)))
    with pytest.raises(KinkError):
        F.gradient(np.array([0.25, 0.5, 0.75]))
    # One bit more, and it is no tie; a float comparison with a tolerance could not tell.
    close = np.nextafter(0.75, 1.0)
    np.testing.assert_array_equal(F.gradient(np.array([0.25, 0.5, close])), [0.0, 0.0, 1.0])


def test_equal_entries_of_a_row_are_no_kink() -> None:
    w = Variable(1)
    F = sum(row_max((np.ones((2, 1)) @ w).reshape(1, 2)))
    np.testing.assert_array_equal(F.gradient(np.array([0.0])), [1.0])


def test_row_max_has_no_a_priori_rule_and_says_so() -> None:
    with pytest.raises(gs.NotCertifiableError, match="many rows"):
        multiclass_margin(X, Y, 4).outer_lipschitz(pivot_radius=0.1)


@pytest.mark.parametrize(
    "build",
    [
        lambda: multiclass_margin(X, Y, 3),
        lambda: multiclass_margin(X, Y[:5], 4),
        lambda: multiclass_margin(X, Y.astype(float), 4),
        lambda: multiclass_margin(X, 0 * Y, 1),
        lambda: multiclass_margin(X, Y, 4, rho=0.0),
        lambda: multiclass_margin(X, Y, 4, lam=-1.0),
        lambda: multiclass_margin(X, Y, 4, shift=np.inf),
        lambda: multiclass_margin(X, Y, 4, weights=-P),
        lambda: multiclass_margin(X * np.nan, Y, 4),
    ],
)
def test_mistakes_are_named(build: Any) -> None:
    with pytest.raises(InputError):
        build()


def test_row_max_needs_a_table() -> None:
    with pytest.raises(InputTypeError):
        row_max(Variable(3))


@pytest.mark.parametrize(
    ("rho", "shift", "bits"), [(0.7, 0.1, 60), (1e-20, 1.0, 30), (3.0, -1.0 / 3.0, 60)]
)
def test_the_proof_is_about_rho_and_shift_themselves_not_their_rounded_sum(
    rho: float, shift: float, bits: int
) -> None:
    # The margin lies strictly on the ramp, next to its end, by less than rho + shift is rounded.
    end = Fraction(rho) + Fraction(shift)
    first = float(end)
    second = float(Fraction(first) - end + Fraction(rho) / 2**bits)
    at = np.array([first, second])
    margin = Fraction(first) - Fraction(second) - Fraction(shift)
    assert 0 < margin < Fraction(rho)
    model = multiclass_margin(
        [[1.0]], np.array([0]), 2, rho=rho, lam=0.0, shift=shift, intercept=False
    )
    pivot = [Fraction(value) for value in at.tolist()]
    proof = NearCertificate.prove(model, at, pivot, [[1.0, 0.5]], [1.0])
    assert proof.eps >= 2**0.5 / rho * (1 - 1e-12)
