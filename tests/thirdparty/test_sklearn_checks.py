"""scikit-learn's own checks, on the estimators as they come: no parameter is chosen for them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor
from sklearn.utils import estimator_checks

from goldstein.sklearn import ReLUNetClassifier, ReLUNetRegressor, RhoMarginSVC

#: Checks that a network of the usual size passes quickly; small ones meet all of them elsewhere.
QUICK = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weights_pandas_series",
    "check_sample_weights_invariance",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_parameters_default_constructible",
    "check_no_attributes_set_in_init",
    "check_estimators_unfitted",
    "check_readonly_memmap_input",
    "check_n_features_in",
)
ESTIMATORS = {
    # RhoMarginSVC passes all checks, not only these, in tests/sklearn/test_margin_svc.py.
    "ReLUNetRegressor": ReLUNetRegressor,
    "ReLUNetClassifier": ReLUNetClassifier,
    "one layer": lambda: ReLUNetRegressor(layers=1),
    "huber": lambda: ReLUNetRegressor(loss="huber"),
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_estimators_as_they_come_pass(name: str) -> None:
    estimator = ESTIMATORS[name]()
    met = set()
    for tried, check in estimator_checks.estimator_checks_generator(estimator):
        called = check.func.__name__
        if called in QUICK:
            check(tried)
            met.add(called)
    assert len(met) >= 6
    assert "check_sample_weight_equivalence_on_dense_data" in met


def test_the_huber_loss_is_robust() -> None:
    """Every tenth target is ten times too large: the others are fitted as if it were not there."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 3))
    y = 100.0 + 20.0 * np.abs(X[:, 0]) + 10.0 * X[:, 1] + 5.0 * rng.standard_normal(240)
    spoiled = y.copy()
    spoiled[::10] *= 10.0
    net = ReLUNetRegressor(8, loss="huber", certificate="goldstein", random_state=0)
    error = np.median(np.abs(net.fit(X, spoiled).predict(X) - y))
    line = np.median(np.abs(HuberRegressor(max_iter=1000).fit(X, spoiled).predict(X) - y))
    assert error < line < np.median(np.abs(y - np.median(y)))


def test_features_of_very_different_spread_are_worth_a_word() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) * [1.0, 1e4]
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(UserWarning, match="StandardScaler"):
        RhoMarginSVC(certificate="goldstein", random_state=0).fit(X, y)
