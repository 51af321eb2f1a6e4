"""Fitted margin machines say whether they are minima."""

from __future__ import annotations

import numpy as np

import goldstein as gs
from goldstein.sklearn import ReLUNetRegressor, RhoMarginSVC


def test_a_margin_machine_is_a_minimum_on_a_ball() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 2))
    y = np.where(X @ [1.0, -1.0] + 0.3 * rng.standard_normal(24) > 0, 1, 0)
    machine = RhoMarginSVC(rho=1.0, C=1.0, fit_intercept=False, random_state=0).fit(X, y)
    F, found = machine.objective(X, y), machine.minimum_
    assert isinstance(found, gs.MinimumCertificate)
    assert found.verify(F).ok
    assert machine.gap_ == found.gap
    radius = min(found.radius, 1.0)
    for _ in range(200):
        h = rng.standard_normal(2)
        z = found.x + radius * rng.random() * h / np.linalg.norm(h)
        assert F.value(z) >= F.value(found.x) - found.gap - 1e-12


def test_networks_have_the_attributes() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((12, 2))
    net = ReLUNetRegressor(2, random_state=0, max_calls=400).fit(X, X[:, 0])
    assert net.gap_ is None or net.gap_ >= 0
    assert (net.minimum_ is None) == (net.gap_ is None)
