"""Quantile, robust and sparse regression: known answers, brute force, breakdown, proofs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.utils import estimator_checks

from goldstein.errors import InputError
from goldstein.sklearn import QuantileRegressor, RobustRegressor, SparseRegressor

#: All of them pass, below and slowly; these meet what is particular to the estimators.
QUICK = (
    "check_sample_weight_equivalence_on_dense_data", "check_no_attributes_set_in_init",
    "check_fit2d_1sample", "check_fit2d_1feature", "check_regressors_int", "check_n_features_in",
    "check_estimator_sparse_matrix",
)  # fmt: skip


def table(n: int = 40, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ np.arange(1.0, d + 1.0) + 0.5 + rng.standard_t(3, n)


def holds(model: object, X: np.ndarray, y: np.ndarray) -> bool:
    """Whether all that a fit says of itself is proved again from the data."""
    for k, claim in enumerate(model.certificates_):
        if not claim.verify(model.objective(X, y, machine=k)).ok:
            return False
    return all(
        m is None or m.verify(model.objective(X, y, machine=k)).ok
        for k, m in enumerate(model.minima_)
    )


@pytest.mark.parametrize("make", [QuantileRegressor, RobustRegressor, SparseRegressor])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scikit_learn_is_content_with_the_defaults(make: type) -> None:
    met = 0
    for tried, check in estimator_checks.estimator_checks_generator(make()):
        called = check.func.__name__
        # A dozen fits, all alike: one of the three will do.
        alike = called == "check_estimator_sparse_matrix" and make is not QuantileRegressor
        if called in QUICK and not alike:
            check(tried)
            met += 1
    assert met >= 6


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "make",
    [
        QuantileRegressor,
        pytest.param(RobustRegressor, marks=pytest.mark.exhaustive),
        pytest.param(SparseRegressor, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_check_of_scikit_learn_passes_on_the_defaults(make: type) -> None:
    estimator_checks.check_estimator(make())


def test_quantiles_are_global_minima() -> None:
    X, y = table()
    model = QuantileRegressor([0.25, 0.75], random_state=0).fit(X * [1.0, 1e4, 1e-3], 100 * y)
    Z = X * [1.0, 1e4, 1e-3]
    assert all(m.scope == "global" for m in model.minima_)
    assert holds(model, Z, 100 * y)
    for k, tau in enumerate((0.25, 0.75)):
        peer = linear_model.QuantileRegressor(quantile=tau, alpha=0.0).fit(X, 100 * y)
        np.testing.assert_allclose(model.coef_[k] * [1.0, 1e4, 1e-3], peer.coef_, rtol=1e-6)
        r = 100 * y - model.predict(Z)[:, k]
        assert abs((r > 1e-9).mean() - (1 - tau)) <= 4 / len(y)
    assert model.gap_ <= 1e-9 * model.objective_


def test_quantiles_do_not_cross_and_the_price_is_proved() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-1, 1, (25, 1)), rng.standard_normal(25)
    levels = [0.4, 0.5, 0.6]
    free = QuantileRegressor(levels, random_state=0).fit(X, y)
    kept = QuantileRegressor(levels, non_crossing=True, random_state=0).fit(X, y)
    hull = np.linspace(X.min(), X.max(), 50)[:, None]
    assert np.diff(free.predict(hull)).min() < -0.1
    assert np.diff(kept.predict(hull)).min() > -1e-12
    assert kept.objective_ > free.objective_
    assert holds(kept, X, y)
    assert kept.minimum_ is None or kept.gap_ < 1e-9


def test_an_l1_penalty_gives_the_zeros_of_scikit_learn() -> None:
    X, y = table(41, 5)
    own = QuantileRegressor(0.5, penalty="l1", alpha=0.3, random_state=0).fit(X, y)
    peer = linear_model.QuantileRegressor(quantile=0.5, alpha=0.3).fit(X, y)
    np.testing.assert_allclose(own.coef_, peer.coef_, atol=1e-8)
    assert (own.coef_ == 0).any()
    assert holds(own, X, y)


@pytest.mark.parametrize("loss", ["tukey", "trimmed"])
def test_forty_percent_of_wrong_rows_do_not_matter(loss: str) -> None:
    X, y = table(60, 2)
    X[:24] += 20.0
    y[:24] = -500.0 + y[:24]
    model = RobustRegressor(loss, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, [1.0, 2.0], atol=0.8)
    assert (np.abs(y - model.predict(X)) > 2.5 * model.scale_)[:24].all()
    assert holds(model, X, y)
    # The convex losses do break: the test can fail.
    broken = RobustRegressor("huber", certificate="goldstein", random_state=0).fit(X, y)
    assert np.abs(broken.coef_ - [1.0, 2.0]).max() > 1.5


@pytest.mark.parametrize("loss", ["tukey", "trimmed", "absolute"])
def test_what_most_rows_meet_exactly_is_the_fit(loss: str) -> None:
    """The exact fit property: two of three targets are 0, and the others do not matter."""
    X, _ = table(60, 2)
    y = np.zeros(60)
    y[:20] = np.linspace(1.0, 30.0, 20)
    model = RobustRegressor(loss, random_state=0).fit(X, y)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), 0.0, atol=1e-9)
    others = np.abs(y - model.predict(X)) > 2.5 * model.scale_
    np.testing.assert_array_equal(others, y > 0)
    assert holds(model, X, y)


@pytest.mark.parametrize("size", [1e8, 1e12, 1e100])
@pytest.mark.parametrize("loss", ["tukey", "trimmed"])
def test_wild_rows_decide_neither_units_nor_scale(loss: str, size: float) -> None:
    """Units of the root mean square hide the good rows of a column from float64."""
    X, y = table(40, 3)
    good = RobustRegressor(loss, random_state=0).fit(X[15:], y[15:])
    for far in (X[:15] * size, X[:15] + size):
        Z, z = np.vstack([far, X[15:]]), np.append(np.full(15, -50.0 * size), y[15:])
        model = RobustRegressor(loss, random_state=0).fit(Z, z)
        np.testing.assert_allclose(model.coef_, good.coef_, atol=1.0)
        assert 0.5 * good.scale_ < model.scale_ < 4.0 * good.scale_
        assert holds(model, Z, z)


@pytest.mark.parametrize("loss", ["huber", "absolute"])
def test_the_scale_of_convex_losses_does_not_grow_with_a_wild_target(loss: str) -> None:
    X, y = table(40, 3)
    y[0] = 1e12
    model = RobustRegressor(loss, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, [1.0, 2.0, 3.0], atol=1.0)
    assert 0.5 < model.scale_ < 4.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: RobustRegressor(random_state=0),
        lambda: RobustRegressor("trimmed", random_state=0),
        lambda: RobustRegressor("huber", random_state=0),
        lambda: QuantileRegressor([0.25, 0.75], non_crossing=True, random_state=0),
        lambda: QuantileRegressor(penalty="l1", alpha=0.1, random_state=0),
        lambda: SparseRegressor(penalty="l1"),
        lambda: SparseRegressor(loss="huber"),
    ],
)
def test_columns_far_from_zero_are_fitted_as_well(make: object) -> None:
    """In rows (x, 1) the intercept is lost behind x: squares of 1e8 times the spread."""
    X, y = table(40, 3)
    near, away = make().fit(X, y), make().fit(X + 1e8, y - 1e9)
    np.testing.assert_allclose(away.coef_, near.coef_, atol=1e-5)
    np.testing.assert_allclose(away.predict(X + 1e8) + 1e9, near.predict(X), atol=1e-4)
    assert holds(away, X + 1e8, y - 1e9)
    assert (away.gap_ is None) == (near.gap_ is None)


@pytest.mark.parametrize("how", [{"penalty": "l1"}, {}, {"penalty": "scad", "loss": "huber"}])
def test_a_sparse_fit_does_not_depend_on_the_unit_of_the_targets(how: dict[str, str]) -> None:
    """Prices in dollars: coefficients of 1e8 with the accuracy asked for those of 1."""
    X, y = table(40, 5)
    one = SparseRegressor(0.2, **how).fit(X, y)
    for unit in (2.0**30, 2.0**-30):
        other = SparseRegressor(0.2 * unit, **how).fit(X, unit * y)
        np.testing.assert_array_equal(other.coef_, unit * one.coef_)
        assert other.objective_ == unit**2 * one.objective_
        assert (other.gap_ is None) == (one.gap_ is None)
        assert holds(other, X, unit * y)
        path = SparseRegressor(**how).path(X, unit * y, 3)
        np.testing.assert_allclose(path[0].coef_, 0.0, atol=1e-9 * unit)
    y[:5] = 1e8
    assert np.isfinite(SparseRegressor(0.2, **how).fit(X, y).coef_).all()


@pytest.mark.parametrize("loss", ["tukey", "trimmed"])
def test_wrong_rows_that_are_all_the_same_are_many_rows(loss: str) -> None:
    """Missing values as 0 and -999: rows put together count as often as they were."""
    X, y = table(60, 2)
    X[:24], y[:24] = 0.0, -999.0
    good = RobustRegressor(loss, random_state=0).fit(X[24:], y[24:])
    model = RobustRegressor(loss, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, good.coef_, atol=0.5)
    assert 0.5 * good.scale_ < model.scale_ < 4.0 * good.scale_


def test_trimmed_squares_take_equal_rows_together() -> None:
    """Between two copies of a row no gradient of a sum of the smallest exists, anywhere."""
    X, y = table(30, 2)
    weights = np.full(30, 3.0)
    model = RobustRegressor("trimmed", random_state=0).fit(X, y, sample_weight=weights)
    claim = model.certificate_.verify(model.objective(X, y, sample_weight=weights))
    assert claim.ok
    assert model.certificate_.eps <= 1e-6


def test_entries_that_float64_cannot_square_are_refused() -> None:
    X, y = table()
    X[0, 0] = 1e200
    for model in (RobustRegressor(), RobustRegressor("trimmed"), SparseRegressor()):
        with pytest.raises(InputError, match="beyond"):
            model.fit(X, y)


def test_trimmed_squares_are_the_best_of_all_subsets() -> None:
    X, y = table(11, 1, seed=3)
    y[:3] += 30.0
    model = RobustRegressor("trimmed", random_state=0).fit(X, y)
    A = np.column_stack([X, np.ones(11)])
    kept = (11 + 2 + 1) // 2
    lowest = min(
        np.linalg.lstsq(A[list(s)], y[list(s)], rcond=None)[1][0]
        for s in combinations(range(11), kept)
    )
    assert model.objective_ == pytest.approx(lowest / kept, rel=1e-6)


def test_convex_losses_have_a_global_gap() -> None:
    X, y = table()
    for loss in ("huber", "absolute"):
        model = RobustRegressor(loss, random_state=0).fit(X, y)
        assert model.minimum_.scope == "global"
        assert model.gap_ < 1e-9
        assert holds(model, X, y)
    A = np.column_stack([X, np.ones(len(y))])
    here = np.abs(y - model.predict(X)).mean()
    rng, theta = np.random.default_rng(0), np.append(model.coef_, model.intercept_)
    for _ in range(200):
        assert np.abs(y - A @ (theta + 0.1 * rng.standard_normal(4))).mean() >= here - model.gap_


def test_whole_weights_are_repeated_rows() -> None:
    X, y = table(30, 2)
    times = np.random.default_rng(0).integers(0, 3, 30)
    for model in (RobustRegressor("trimmed", random_state=0), RobustRegressor(random_state=0)):
        model.set_params(certificate="goldstein")
        one = model.fit(X, y, times).coef_
        np.testing.assert_array_equal(one, model.fit(X.repeat(times, 0), y.repeat(times)).coef_)
    with pytest.raises(InputError, match="whole numbers"):
        RobustRegressor("trimmed").fit(X, y, times + 0.5)


def test_l1_is_the_lasso() -> None:
    X, y = table(50, 6)
    own = SparseRegressor(0.4, penalty="l1", random_state=0).fit(X, y)
    peer = linear_model.Lasso(alpha=0.4, tol=1e-12, max_iter=10**5).fit(X, y)
    np.testing.assert_allclose(own.coef_, peer.coef_, atol=1e-7)
    assert own.minimum_.scope == "global"
    assert holds(own, X, y)


@pytest.mark.parametrize("penalty", ["mcp", "scad"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_sparse_fits_are_proved_and_no_grid_point_is_lower(penalty: str, loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    y = 3.0 * X[:, 0] + 0.3 * rng.standard_normal(40)
    model = SparseRegressor(0.5, penalty=penalty, loss=loss, random_state=0).fit(X, y)
    assert model.coef_[1] == 0.0
    assert model.coef_[0] == pytest.approx(3.0, abs=0.3)  # l1 would shrink it by 0.5
    assert holds(model, X, y)
    assert model.minimum_ is not None
    F = model.objective(X, y)
    grid = [(a, b) for a in np.linspace(-1, 4, 21) for b in np.linspace(-1, 1, 9)]
    unit = model.unit_
    lowest = min(F.value(np.array([a, b, model.intercept_]) / unit) for a, b in grid)
    assert model.objective_ <= unit**2 * lowest + 1e-12


def test_paths_go_from_nothing_to_all() -> None:
    X, y = table(50, 4)
    path = SparseRegressor(penalty="mcp", certificate="goldstein", random_state=0).path(X, y, 6)
    sizes = [np.count_nonzero(model.coef_) for model in path]
    assert sizes[0] <= 1
    assert sizes[-1] == 4
    assert [m.alpha for m in path] == sorted((m.alpha for m in path), reverse=True)
    for model in path:
        assert model.certificate_.verify(model.objective(X, y)).ok


def test_what_cannot_be_is_refused_in_words() -> None:
    X, y = table(10, 1)
    with pytest.raises(InputError, match="ascending"):
        QuantileRegressor([0.9, 0.1]).fit(X, y)
    with pytest.raises(InputError, match="gamma > 2"):
        SparseRegressor(penalty="scad", gamma=1.5).fit(X, y)
    with pytest.raises(InputError, match=r"at least 0\.5"):
        RobustRegressor(coverage=0.2).fit(X, y)


def test_a_robust_fit_of_few_clean_rows_is_nearly_as_good_as_least_squares() -> None:
    """Five coefficients and an intercept take much of 17 residuals: the scale has to know."""
    errors, scales = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((17, 5)), rng.standard_normal(17)
        model = RobustRegressor(certificate="goldstein", random_state=0).fit(X, y)
        peer = linear_model.LinearRegression().fit(X, y)
        pair = [m.coef_ @ m.coef_ + m.intercept_**2 for m in (model, peer)]
        errors.append(pair)
        scales.append(model.scale_)
    own, least = np.mean(errors, axis=0)
    assert own <= 1.5 * least
    assert 0.7 <= np.mean(scales) <= 1.2


@pytest.mark.parametrize("value", [3.3, 1e9 / 3.0])
def test_a_constant_is_no_spread(value: float) -> None:
    """Rounding leaves something of value minus the mean of equal values: it is no unit."""
    X, y = table()
    constant = SparseRegressor(0.1).fit(X, np.full(len(y), value))
    assert not constant.coef_.any()
    assert constant.intercept_ == pytest.approx(value, rel=1e-12)
    wide = np.column_stack([X, np.full(len(y), value)])
    fit = QuantileRegressor(0.5, random_state=0).fit(wide, y)
    assert set(fit.units_) <= {0.5, 1.0, 2.0}
    assert fit.coef_[-1] == 0.0
    assert holds(constant, X, np.full(len(y), value))
    assert holds(fit, wide, y)


@pytest.mark.parametrize("unit", [2.0**-400, 2.0**400])
def test_units_of_any_size_change_nothing(unit: float) -> None:
    X, y = table()
    for make in (lambda: QuantileRegressor(0.5), lambda: RobustRegressor(n_init=20)):
        plain = make().set_params(random_state=0).fit(X, y)
        large = make().set_params(random_state=0).fit(X, unit * y)
        assert np.array_equal(unit * plain.coef_, large.coef_)
        assert large.certificate_.eps == plain.certificate_.eps


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_where_float64_sees_no_smaller_ball_a_larger_one_is_stated() -> None:
    """A quantile of wild rows: its coefficients are large in units of the others."""
    X, y = table(30)
    y = np.where(np.arange(30) < 14, 1e10 * np.arange(1.0, 31.0), y)
    fit = QuantileRegressor([0.2, 0.8], non_crossing=True, max_calls=50).fit(X, y)
    assert holds(fit, X, y)
    low, high = fit.predict(X).T
    assert (low <= high).all()
