"""The constrained family: starts, gradients, and answers of the literature reproduced."""

import numpy as np
import pytest

import goldstein as gs
from goldstein.checker.constrained.limits import as_box
from goldstein.oracles.problem import as_system

NAMES = gs.problems.names("constrained")


def test_the_family_is_apart():
    assert len(NAMES) == 9
    assert not set(NAMES) & set(gs.problems.names())
    assert sorted(gs.problems.names("all")) == sorted([*NAMES, *gs.problems.names()])
    assert [p.name for p in gs.problems.suite("all") if p.limits] == []
    with pytest.raises(gs.InputError, match="no kind of problems"):
        gs.problems.names("secret")


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_derivatives_inside_the_bounds(name):
    p = gs.problems.get(name)
    box = as_box(p.limits.get("bounds"), p.dim)
    system = as_system(p.limits["constraints"], box.clip(p.x0))
    rng = np.random.default_rng(5)
    for _ in range(5):
        x = box.clip(p.x0 + 0.1 * rng.standard_normal(p.dim))
        u = rng.standard_normal(p.dim)
        h = 1e-6
        slope = (p.fun(x + h * u) - p.fun(x - h * u)) / (2 * h)
        assert slope == pytest.approx(p.jac(x) @ u, rel=1e-4, abs=1e-4)
        change = (system.values(x + h * u) - system.values(x - h * u)) / (2 * h)
        assert change == pytest.approx(system.rows(x) @ u, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_of_the_literature_is_found_and_proved(name):
    p = gs.problems.get(name)
    res = gs.minimize(p, p.x0, eps=1e-3, delta=1e-3, rng=0, **p.limits)
    assert res.success, res.message
    assert res.violation <= 1e-9
    # The claim is about points within delta of x: f may be off by about the slope times delta.
    assert res.fun == pytest.approx(p.best_value, rel=1e-3, abs=1e-3)
    assert res.certificate.verify(p, **p.limits).ok


def test_wong_2_at_a_printed_solution():
    """Its value at the solution that Hock and Schittkowski print with seven digits."""
    p = gs.problems.get("wong_2_linear")
    x = np.array([2.171996, 2.363683, 8.773926, 5.095984, 0.9906548, 1.430574, 1.321644, 9.828726,
                  8.280092, 8.375927])  # fmt: skip
    assert p.fun(x) == pytest.approx(24.3062091, abs=1e-3)


def test_limits_are_not_rotated():
    with pytest.raises(gs.InputError, match="rotate problems without them"):
        gs.problems.rotated(gs.problems.get("mad_1"), seed=0)
