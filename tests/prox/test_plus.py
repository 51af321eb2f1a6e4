"""`minimize(..., plus=term)`: known answers, exact zeros, certificates that verify."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, lsq_linear
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso

import goldstein as gs


def least_squares(A, b):
    n = len(b)

    def f(w):
        return 0.5 * float(np.sum((A @ w - b) ** 2)) / n

    def grad(w):
        return A.T @ (A @ w - b) / n

    return f, grad


def solved(f, grad, x0, term, eps=1e-4, delta=1e-4, **options):
    res = gs.minimize(f, x0, grad, plus=term, eps=eps, delta=delta, rng=0, **options)
    assert res.success, res
    assert res.certificate.eps <= eps
    assert res.certificate.delta <= delta
    verdict = res.certificate.verify(f, grad, plus=term)
    assert verdict.ok, verdict
    return res


@pytest.mark.parametrize("weight", [0.1, 1.0, 5.0, 20.0, 100.0])
def test_the_lasso_is_that_of_scikit_learn(weight):
    X, y = load_diabetes(return_X_y=True)
    X, y = X / X.std(axis=0), y - y.mean()
    f, grad = least_squares(X, y)
    peer = Lasso(alpha=weight, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y).coef_
    res = solved(f, grad, np.zeros(10), gs.prox.l1(weight))
    assert res.fun == pytest.approx(f(peer) + weight * np.abs(peer).sum(), rel=1e-10)
    assert np.array_equal(res.x != 0, peer != 0)
    assert res.x == pytest.approx(peer, abs=1e-4)


def test_the_lasso_with_more_variables_than_rows():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((60, 150))
    truth = np.zeros(150)
    truth[:6] = 3.0 * rng.standard_normal(6)
    f, grad = least_squares(A, A @ truth + 0.1 * rng.standard_normal(60))
    res = solved(f, grad, np.zeros(150), gs.prox.l1(0.2))
    # The optimality conditions, written down again.
    g = grad(res.x)
    on = res.x != 0
    assert 0 < on.sum() < 20
    assert np.abs(g[on] + 0.2 * np.sign(res.x[on])).max() <= 2e-4
    assert np.abs(g[~on]).max() <= 0.2 + 2e-4


def test_the_group_lasso_has_whole_groups_of_zeros():
    rng = np.random.default_rng(2)
    groups = [list(range(5 * k, 5 * k + 5)) for k in range(8)]
    A = rng.standard_normal((50, 40))
    truth = np.zeros(40)
    truth[:10] = 2.0
    f, grad = least_squares(A, A @ truth + 0.1 * rng.standard_normal(50))
    term = gs.prox.group_l2(0.4, groups)
    res = solved(f, grad, np.zeros(40), term, eps=1e-5)
    off = [k for k, group in enumerate(groups) if not res.x[group].any()]
    assert off == list(range(2, 8))
    g = grad(res.x)
    for k, group in enumerate(groups):
        if k in off:
            assert np.linalg.norm(g[group]) <= 0.4 + 1e-4
        else:
            unit = res.x[group] / np.linalg.norm(res.x[group])
            assert np.linalg.norm(g[group] + 0.4 * unit) <= 1e-4
    # A minimiser of a convex function: plain proximal gradient steps, many, end there too.
    w, step = np.zeros(40), 1.0 / np.linalg.norm(A.T @ A / 50, 2)
    for _ in range(3000):
        w = term.prox(w - step * grad(w), step)
    assert res.fun == pytest.approx(f(w) + term.value(w), rel=1e-9)


def test_least_absolute_deviations_plus_l1_is_the_linear_program():
    rng = np.random.default_rng(3)
    n, d, weight = 40, 10, 0.2
    A = rng.standard_normal((n, d))
    b = A[:, :3] @ np.full(3, 2.0) + 0.3 * rng.standard_t(2, n)

    def f(w):
        return float(np.abs(A @ w - b).mean())

    def grad(w):
        return A.T @ np.sign(A @ w - b) / n

    costs = np.concatenate([np.full(2 * d, weight), np.full(2 * n, 1 / n)])
    program = linprog(costs, A_eq=np.hstack([A, -A, -np.eye(n), np.eye(n)]), b_eq=b)
    peer = program.x[:d] - program.x[d : 2 * d]
    res = solved(f, grad, np.zeros(d), gs.prox.l1(weight), eps=1e-3, delta=1e-3)
    assert res.fun == pytest.approx(program.fun, abs=1e-5)
    assert np.array_equal(res.x == 0, np.abs(peer) < 1e-9)
    assert (res.x == 0).any()


@pytest.mark.parametrize("layout", ["matrix", "vector"])
def test_soft_thresholding_of_singular_values(layout):
    rng = np.random.default_rng(4)
    M = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 5)) + 0.05 * rng.standard_normal(
        (6, 5)
    )
    shape = (6, 5) if layout == "matrix" else (30,)

    def f(X):
        return 0.5 * float(np.sum((X.reshape(6, 5) - M) ** 2))

    def grad(X):
        return (X.reshape(6, 5) - M).reshape(shape)

    U, s, W = np.linalg.svd(M, full_matrices=False)
    expected = (U * np.maximum(s - 0.5, 0.0)) @ W
    term = gs.prox.nuclear(0.5, (6, 5))
    res = solved(f, grad, np.zeros(shape), term, eps=1e-5)
    assert res.x.shape == shape
    assert res.x.reshape(6, 5) == pytest.approx(expected, abs=1e-4)
    assert "rank 2 of 5" in res.certificate.summary()
    assert np.linalg.svd(res.x.reshape(6, 5), compute_uv=False)[2] < 1e-12


def test_completing_a_matrix():
    rng = np.random.default_rng(5)
    M = rng.standard_normal((6, 1)) @ rng.standard_normal((1, 5))
    seen = rng.random((6, 5)) < 0.8

    def f(x):
        return 0.5 * float(np.sum(seen * (x.reshape(6, 5) - M) ** 2))

    def grad(x):
        return (seen * (x.reshape(6, 5) - M)).ravel()

    res = solved(f, grad, np.zeros(30), gs.prox.nuclear(0.1, (6, 5)), eps=1e-4, delta=1e-3)
    assert "rank 1" in res.certificate.summary()


def test_a_box_and_a_simplex():
    c = np.array([3.0, 0.1, -2.0])

    def f(x):
        return float(np.abs(x - c).sum() + 0.5 * x @ x)

    def grad(x):
        return np.sign(x - c) + x

    res = solved(f, grad, np.zeros(3), gs.prox.box(-0.5, 0.4))
    assert res.x[[0, 2]].tolist() == [0.4, -0.5]
    assert res.x[1] == pytest.approx(0.1, abs=2e-4)

    Q = np.random.default_rng(6).standard_normal((20, 8))

    def largest(x):
        return float((Q @ x).max())

    def row(x):
        return Q[(Q @ x).argmax()]

    program = linprog(
        np.append(np.zeros(8), 1.0), A_ub=np.hstack([Q, -np.ones((20, 1))]), b_ub=np.zeros(20),
        A_eq=np.append(np.ones(8), 0.0)[None], b_eq=[1.0], bounds=[(0, None)] * 8 + [(None, None)],
    )  # fmt: skip
    res = solved(largest, row, np.full(8, 0.125), gs.prox.simplex(), eps=1e-3)
    assert res.fun == pytest.approx(program.fun, abs=1e-4)
    assert abs(res.x.sum() - 1.0) <= 1e-15
    assert np.array_equal(res.x == 0, program.x[:8] < 1e-9)


def test_a_start_that_is_the_answer_and_one_that_is_far_off():
    f, grad = least_squares(np.eye(3), np.array([3.0, 0.1, -2.0]))
    for start in (np.zeros(3), np.array([1e4, -1e4, 1e4])):
        res = solved(f, grad, start, gs.prox.l1(0.5))
        # n = 3 rows: soft thresholding by 3 * 0.5.
        assert res.x == pytest.approx([1.5, 0.0, -0.5], abs=1e-3)
        assert res.x[1] == 0.0
    res = solved(f, grad, np.ones(3), gs.prox.l1(5.0))
    assert not res.x.any()


def test_an_expression_and_a_nonconvex_function():
    x = gs.Variable(3)
    F = gs.sum_squares(x - np.array([2.0, 0.1, -1.0]))
    res = gs.minimize(F, np.ones(3), plus=gs.prox.l1(0.5), eps=1e-5, delta=1e-5, rng=0)
    assert res.success
    assert res.certificate.verify(F).ok
    assert res.x == pytest.approx([1.75, 0.0, -0.75], abs=1e-4)

    def wavy(x):
        return float(np.cos(3 * x).sum() + 0.5 * x @ x)

    def slope(x):
        return -3 * np.sin(3 * x) + x

    res = solved(wavy, slope, np.array([0.3, 2.0, -0.01]), gs.prox.l1(0.2))


def test_the_same_seed_gives_the_same_answer_and_budgets_are_exact():
    f, grad = least_squares(np.eye(4), np.arange(4.0))
    asked = []

    def counting(x):
        asked.append(1)
        return f(x)

    one, two = (
        gs.minimize(counting, np.ones(4), grad, plus=gs.prox.l1(0.3), eps=1e-6, delta=1e-6, rng=1)
        for _ in range(2)
    )
    assert one.certificate.digest == two.certificate.digest
    assert one.nfev + two.nfev == len(asked)
    for most in (1, 5, 17, 40):
        res = gs.minimize(
            f, np.ones(4), grad, plus=gs.prox.l1(0.3), eps=1e-9, delta=1e-6, rng=1, max_calls=most
        )
        assert res.nfev + res.ngev <= most
        assert res.success == (res.certificate is not None and res.certificate.eps <= 1e-9)
        if res.certificate is not None:
            assert res.certificate.verify(f, grad).ok


def test_callbacks_stop_a_run_and_see_whole_points():
    f, grad = least_squares(np.eye(4), np.arange(4.0))
    seen = []

    def stop(x):
        seen.append(x.shape)
        return True

    res = gs.minimize(
        f, np.ones(4), grad, plus=gs.prox.l1(0.3), eps=1e-6, delta=1e-6, rng=1, callback=stop
    )
    assert seen == [(4,)]
    assert res.status in (gs.Status.STOPPED, gs.Status.VERIFIED)


# --- with bounds ---------------------------------------------------------------------------------


def test_the_lasso_between_bounds_is_that_of_scikit_learn_and_scipy():
    """Positive coefficients: scikit-learn's; and without a penalty, SciPy's."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X / X.std(axis=0), y - y.mean()
    f, grad = least_squares(X, y)
    peer = Lasso(1.0, fit_intercept=False, positive=True, tol=1e-12, max_iter=100_000).fit(X, y)
    term = gs.prox.l1(1.0)
    res = gs.minimize(f, np.zeros(10), grad, plus=term, bounds=[(0, None)] * 10, eps=1e-4,
                      delta=1e-4, rng=0)  # fmt: skip
    assert res.success
    assert res.certificate.verify(f, grad).ok
    assert np.array_equal(res.x != 0, peer.coef_ != 0)
    assert res.x == pytest.approx(peer.coef_, abs=1e-3)
    bounds = (np.full(10, -9.0), np.full(10, 12.0))
    res = gs.minimize(f, np.zeros(10), grad, plus=gs.prox.l1(0.0), bounds=list(zip(*bounds)),
                      eps=1e-4, delta=1e-4, rng=0)  # fmt: skip
    assert res.success
    assert res.x == pytest.approx(lsq_linear(X, y, bounds).x, abs=1e-2)


def test_kinks_zeros_and_bounds_at_once_against_a_linear_programme():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 8))
    b = A @ np.array([2, -1, 0, 0, 1.5, 0, 0, 0.0]) + 0.1 * rng.standard_normal(30)
    lower = np.array([0.0] * 4 + [-1.0] * 2 + [-50.0] * 2)
    upper = np.array([1.2] * 4 + [0.5] * 2 + [50.0] * 2)

    def f(x):
        return float(np.abs(A @ x - b).sum())

    def grad(x):
        return A.T @ np.sign(A @ x - b)

    res = gs.minimize(f, np.ones(8), grad, plus=gs.prox.l1(3.0), bounds=list(zip(lower, upper)),
                      eps=1e-3, delta=1e-3, rng=0)  # fmt: skip
    assert res.success
    assert res.certificate.verify(f, grad).ok
    assert ((res.x >= lower) & (res.x <= upper)).all()
    eye, zeros = np.eye(8), np.zeros((30, 8))
    rows = np.block([
        [eye, -eye, zeros.T], [-eye, -eye, zeros.T],
        [A, zeros, -np.eye(30)], [-A, zeros, -np.eye(30)],
    ])  # fmt: skip
    costs = np.concatenate([np.zeros(8), np.full(8, 3.0), np.ones(30)])
    limits = [*zip(lower, upper), *[(0, None)] * 38]
    best = linprog(costs, rows, np.concatenate([np.zeros(16), b, -b]), bounds=limits)
    assert res.fun == pytest.approx(best.fun, rel=1e-4)
    assert (res.x[1:4] == 0).all()


def test_a_box_with_bounds_is_their_intersection():
    f, grad = least_squares(np.eye(3), np.array([2.0, -1.0, 0.3]))
    res = gs.minimize(f, np.zeros(3), grad, plus=gs.prox.box(-0.5, 1.0), bounds=[(0, 3)] * 3,
                      eps=1e-5, delta=1e-5, rng=0)  # fmt: skip
    assert res.success
    assert res.x == pytest.approx([1.0, 0.0, 0.3], abs=1e-4)
    assert res.certificate.verify(f, grad, plus=gs.prox.box(np.zeros(3), np.ones(3))).ok
    assert res.certificate.verify(f, grad, plus=gs.prox.box(-0.5, 1.0), bounds=[(0, 3)] * 3).ok
    assert not res.certificate.verify(f, grad, plus=gs.prox.box(-0.5, 1.0)).ok


@pytest.mark.parametrize("bounds", [None, [(0, 1)] * 3, [(-2, -0.25), (-1, 1), (0.5, 2)]])
def test_near_stationarity_of_the_sum(bounds):
    w = gs.Variable(3)
    aim = np.array([2.0, 0.3, -1.0])
    f = gs.sum_squares(w - aim)
    term = gs.prox.l1(1.0)
    res = gs.minimize(f, np.ones(3), plus=term, bounds=bounds, eps=1e-3, delta=1e-3, rng=0,
                      stationarity="near")  # fmt: skip
    assert res.success
    assert res.certificate.label == "certified"
    low, high = zip(*(bounds or [(-np.inf, np.inf)] * 3))
    truth = np.clip(np.sign(aim) * np.maximum(np.abs(aim) - 0.5, 0.0), low, high)
    assert res.x == pytest.approx(truth, abs=2e-3)
    whole, box = term.added_to(f) if bounds is None else term.bounded(
        np.array(low), np.array(high)
    ).added_to(f)  # fmt: skip
    x = np.clip(np.linspace(-1, 1, 3), low, high)
    assert whole.value(x) == pytest.approx(f.value(x) + np.abs(x).sum())
    assert res.certificate.verify(whole, **({} if box is None else {"bounds": box})).ok
    with pytest.raises(gs.InputError, match="near stationarity of f"):
        gs.minimize(f, np.ones(3), plus=gs.prox.simplex(1.0), eps=1e-3, delta=1e-3,
                    stationarity="near")  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"plus": 0.1}, "gs.prox.l1"),
        ({"plus": gs.prox.l1([1.0, 2.0])}, "2 entries, but the point has 3"),
        ({"plus": gs.prox.nuclear(1.0, (2, 2))}, "shape"),
        ({"plus": gs.prox.group_l2(1.0, [[7]])}, "entry 7"),
        (
            {"plus": gs.prox.l1(1.0), "constraints": LinearConstraint([[1, 1, 1]], 0, 1)},
            "does not go together",
        ),
        ({"plus": gs.prox.group_l2(1.0, [[0, 1]]), "bounds": [(0, 1)] * 3}, "group_l2 has none"),
        ({"plus": gs.prox.box(2.0, 3.0), "bounds": [(0, 1)] * 3}, "there is no such point"),
    ],
)
def test_what_does_not_fit_is_refused(options, words):
    f, grad = least_squares(np.eye(3), np.ones(3))
    with pytest.raises((gs.InputError, gs.InputTypeError), match=words):
        gs.minimize(f, np.ones(3), grad, eps=1e-3, delta=1e-3, **options)


def test_random_problems_verify_when_they_say_so():
    """Kinked and smooth f, all terms: success means that the check passes, with any seed."""
    rng = np.random.default_rng(7)
    verified = 0
    for trial in range(15):
        d = int(rng.integers(2, 7))
        A, b = rng.standard_normal((2 * d, d)), rng.standard_normal(2 * d)
        kinked = trial % 3 == 0

        def f(x, A=A, b=b, kinked=kinked):
            r = A @ x - b
            return float(np.abs(r).sum() if kinked else 0.5 * r @ r)

        def grad(x, A=A, b=b, kinked=kinked):
            r = A @ x - b
            return A.T @ (np.sign(r) if kinked else r)

        size = float(rng.uniform(0.1, 3.0))
        term = [
            gs.prox.l1(size),
            gs.prox.group_l2(size, [list(range(d // 2)), list(range(d // 2, d))][d < 2 :]),
            gs.prox.box(-size / 4, size / 4),
            gs.prox.simplex(size),
            gs.prox.nuclear(size, (1, d)),
        ][trial % 5]
        res = gs.minimize(f, np.ones(d), grad, plus=term, eps=1e-3, delta=1e-3, rng=trial)
        verified += res.success
        if res.certificate is not None:
            for seed in range(3):
                assert res.certificate.verify(f, grad, seed=seed).ok, (trial, term)
    assert verified >= 13


def test_a_certificate_is_drawn_with_its_subgradient():
    from goldstein.reporting.geometry import geometry_of
    from goldstein.reporting.subject import claim_of

    f, grad = least_squares(np.eye(2), np.array([3.0, 0.1]))
    certificate = solved(f, grad, np.ones(2), gs.prox.l1(0.5)).certificate
    seen = geometry_of(certificate)
    # Gradient and subgradient cancel: what is left is the claim.
    assert np.linalg.norm(seen.rest) <= 1e-4
    assert len(certificate.plot()) == 2
    assert "a subgradient of the term" in claim_of(certificate)


def test_a_kink_of_f_where_the_term_leads_is_no_error():
    """l1 leads to zeros, and an expression may have a kink exactly there, too."""
    rng = np.random.default_rng(2)
    w = gs.Variable(4)
    f = gs.norm1(rng.standard_normal((6, 4)) @ w - rng.standard_normal(6)) + gs.norm1(w)
    question = {"eps": 1e-3, "delta": 1e-3, "rng": 0, "max_calls": 2000}
    res = gs.minimize(f, np.full(4, 0.5), plus=gs.prox.l1(0.5), **question)
    whole = gs.minimize(f + 0.5 * gs.norm1(w), np.full(4, 0.5), **question)
    assert res.fun <= whole.fun + 1e-2
    assert not res.success or res.certificate.verify(f, plus=gs.prox.l1(0.5), seed=1).ok


@pytest.mark.parametrize("jac", ["2-point", "3-point"])
def test_a_term_next_to_values_alone_is_refused(jac):
    with pytest.raises(gs.InputError, match="plus= needs a gradient"):
        gs.minimize(
            lambda x: float(x @ x), np.ones(2), jac, plus=gs.prox.l1(0.1), eps=0.1, delta=0.1
        )
