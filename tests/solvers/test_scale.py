"""The scale of the metric: it grows where steps end too early, and shrinks where models mislead."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from goldstein.solvers.logic import line_search
from goldstein.solvers.tuning import TUNING


@pytest.mark.parametrize(
    ("share", "factor"), [(0.2, None), (0.6, 2.5), (0.79, TUNING.rescale_most)]
)
def test_metric_grows_where_slope_is_left(share, factor):
    factors = []
    n = SimpleNamespace(
        limited=False, scaled=True, steady=True, attempt=0, best_trial=1.0,
        slope=-2.0, slope_found=lambda: -2.0 * share, scale_metric=factors.append,
    )  # fmt: skip
    line_search._let_grow(n)
    assert factors == ([] if factor is None else [pytest.approx(factor)])


@pytest.mark.parametrize(("square", "factor"), [(4.0, 0.5), (100.0, 1.0 / TUNING.rescale_most)])
def test_metric_shrinks_after_corrections_in_a_row_that_gain_little(square, factor):
    factors = []
    n = SimpleNamespace(
        limited=False, corrected=0, attempt=1, fx=1.0, best_value=0.99,
        square_of_gradient=lambda: 10.0, square_of_change=lambda: square,
        scale_metric=factors.append,
    )  # fmt: skip
    for _ in range(TUNING.shrink_after):
        assert not factors
        line_search._shrink(n, 2.0)
    assert factors == [pytest.approx(factor)]
