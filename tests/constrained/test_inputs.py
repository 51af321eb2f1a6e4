"""Every mistake in bounds and constraints has a sentence of its own."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import goldstein as gs


def solve(**problem):
    return gs.minimize(
        lambda x: np.abs(x).sum(), [1.0, 2.0], np.sign, eps=1e-3, delta=1e-3, rng=0, **problem
    )


def nonlinear(fun=lambda x: x, lb=-np.inf, ub=0.0, jac=lambda x: np.eye(2)):
    return NonlinearConstraint(fun, lb, ub, jac=jac)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ({"bounds": [(0, 1)]}, "hold 1 pairs, but the point has 2"),
        ({"bounds": [(0, 1), (2, 1)]}, "variable 1 has lb = 2 and ub = 1"),
        ({"bounds": [(0, 1), (np.nan, 1)]}, "variable 1 has lb = nan"),
        ({"bounds": [(0, 1), 3]}, "one pair"),
        ({"bounds": [(0, 1), (0, 1, 2)]}, "one pair"),
        ({"bounds": 3}, "one pair"),
        ({"bounds": Bounds([0, 0, 0], 1)}, "2 variables"),
        ({"constraints": LinearConstraint([[1.0, 1.0, 1.0]], 0, 1)}, "expected 2 columns"),
        ({"constraints": nonlinear(lb=1.0, ub=0.0)}, "lb = 1 and ub = 0"),
        ({"constraints": nonlinear(ub=[0.0, np.nan])}, "nan"),
        ({"constraints": nonlinear(ub=[0.0, 0.0, 0.0])}, "2 components here and 3 promised"),
        ({"constraints": nonlinear(fun=lambda x: x.sum(), ub=[0.0, 0.0])}, "1 components here"),
        ({"constraints": nonlinear(jac="2-point"), "method": "bundle"}, "has no gradient"),
        ({"constraints": nonlinear(jac="4-point")}, "jac is '4-point', expected a function"),
        ({"constraints": nonlinear(jac=lambda x: np.eye(3))}, "Jacobian has shape"),
        ({"constraints": nonlinear(fun=lambda x: np.log(-x))}, "expected finite"),
        ({"constraints": {"type": "ineq"}}, "expected 'type'"),
        ({"constraints": {"type": "le", "fun": abs}}, "expected 'type'"),
        ({"constraints": [3]}, "LinearConstraint"),
        ({"bounds": [(0, 1)] * 2, "stationarity": "near"}, "near"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value")
def test_mistakes(problem, words):
    with pytest.raises(gs.GoldsteinError, match=words):
        solve(**problem)


LAYOUTS = {
    "matrix": (np.full((2, 2), 0.5), lambda x: x),
    "dict": (
        {"W": np.full((2, 1), 0.5), "b": np.full(2, 0.5)},
        lambda x: np.r_[x["W"].ravel(), x["b"]],
    ),
    "list": ([np.full((1, 3), 0.5), np.array(0.5)], lambda x: np.r_[x[0].ravel(), x[1]]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_points_with_a_layout_are_those_of_the_vector(name):
    """f and the constraints see x as it was given; bounds list its numbers in order."""
    x0, numbers = LAYOUTS[name]

    def like(x, flat):
        if isinstance(x, dict):
            return {"W": flat[:2].reshape(2, 1), "b": flat[2:]}
        return [flat[:3].reshape(1, 3), flat[3]] if isinstance(x, list) else flat.reshape(2, 2)

    def fun(x):
        return np.abs(np.ravel(numbers(x)) - target).sum()

    def jac(x):
        return like(x, np.sign(np.ravel(numbers(x)) - target))

    target = np.array([2.0, -1.0, 0.25, 3.0])
    total = NonlinearConstraint(
        lambda x: np.ravel(numbers(x)).sum(), -np.inf, 1.5, jac=lambda x: like(x, np.ones(4))
    )
    limits = {"bounds": [(0, 1)] * 4, "constraints": total}
    res = gs.minimize(fun, x0, jac, eps=1e-3, delta=1e-3, rng=0, **limits)
    assert res.success, res.message
    assert res.certificate.verify(fun, jac, like=x0, **limits).ok
    flat = NonlinearConstraint(np.sum, -np.inf, 1.5, jac=lambda x: np.ones((1, 4)))
    alone = gs.minimize(
        lambda x: np.abs(x - target).sum(), np.full(4, 0.5), lambda x: np.sign(x - target),
        eps=1e-3, delta=1e-3, rng=0, bounds=[(0, 1)] * 4, constraints=flat,
    )  # fmt: skip
    assert np.array_equal(np.ravel(numbers(res.x)), alone.x)
    assert not res.certificate.verify(fun, jac, like=np.zeros(4), **limits).ok


@pytest.mark.parametrize("bounds", [None, [(0, 1)] * 2])
@pytest.mark.parametrize("least", [1.5, 3.0])  # with bounds, or beside the first one, infeasible
def test_a_run_with_a_layout_and_constraints_resumes(tmp_path, bounds, least):
    def numbers(p):
        return np.array([p["a"], p["b"]])

    def slope(value):
        return {"a": value, "b": value}

    constraints = [
        {"type": "ineq", "fun": lambda p: 2.5 - numbers(p).sum(), "jac": lambda p: slope(-1.0)},
        {"type": "ineq", "fun": lambda p: numbers(p).sum() - least, "jac": lambda p: slope(1.0)},
        LinearConstraint([[1.0, -1.0]], -1.0, 0.5),
    ]

    def solved():
        return gs.minimize(
            lambda p: np.abs(numbers(p)).sum(), {"a": 0.5, "b": 1.0},
            lambda p: dict(zip("ab", np.sign(numbers(p)))), eps=1e-3, delta=1e-3, rng=0,
            bounds=bounds, constraints=constraints, checkpoint=tmp_path / "run",
        )  # fmt: skip

    first, again = solved(), solved()
    assert first.status.name == ("VERIFIED" if least < 2.0 else "INFEASIBLE"), first.message
    assert again.status is first.status
    assert again.x == first.x
    if least > 2.0:
        V = gs.Violation(constraints, {"a": 0.5, "b": 1.0})
        assert first.certificate.verify(V, bounds=bounds).ok


def test_certify_refuses_a_point_outside_the_bounds():
    with pytest.raises(gs.InputError, match="outside its bounds"):
        gs.certify(lambda x: x[0], [2.0], lambda x: np.ones(1), delta=1e-3, bounds=[(0, 1)])


def test_dict_constraints_with_arguments_and_an_infeasible_start():
    constraint = {
        "type": "ineq",
        "fun": lambda x, s: s - x[0],
        "jac": lambda x, s: np.array([-1.0, 0.0]),
        "args": (-1.0,),
    }
    res = solve(constraints=constraint)
    assert res.success
    assert res.x == pytest.approx([-1.0, 0.0], abs=2e-3)
    assert res.multipliers == pytest.approx([-1.0], abs=2e-3)


def test_expressions_as_constraints():
    x = gs.Variable(2)
    res = solve(constraints=NonlinearConstraint(gs.norm1(x), 1.0, np.inf))
    assert res.success
    assert res.fun == pytest.approx(1.0, abs=2e-3)


def test_callbacks_see_points_inside_the_bounds():
    seen = []
    gs.minimize(
        lambda x: np.abs(x + 1).sum(), [1.0, 2.0], lambda x: np.sign(x + 1), eps=1e-3, delta=1e-3,
        rng=0, bounds=[(0, 3), (0, 3)], callback=seen.append,
    )  # fmt: skip
    assert seen
    assert all(((x >= 0) & (x <= 3)).all() for x in seen)


def test_accuracy_relative_to_the_first_gradient():
    res = gs.minimize(
        lambda x: 100 * np.abs(x).sum(), [1.0, 2.0], lambda x: 100 * np.sign(x), rel_eps=1e-3,
        delta=1e-3, rng=0, bounds=[(0.5, 3), (None, 3)],
    )  # fmt: skip
    assert res.success
    assert res.x == pytest.approx([0.5, 0.0], abs=1e-3)
    assert res.bound_multipliers == pytest.approx([-100.0, 0.0], abs=0.2)


def test_comparisons_of_expressions():
    x = gs.Variable(2)
    objective = gs.sum(gs.abs(x - np.array([3.0, 2.0])))
    limits = [x >= 0.0, x <= np.array([2.0, 1.0]), gs.sum(x) == 2.5]
    res = gs.minimize(objective, [0.1, 0.2], eps=1e-3, delta=1e-3, rng=0, constraints=limits)
    assert res.success
    assert res.x.sum() == pytest.approx(2.5)
    assert res.fun == pytest.approx(2.5, abs=2e-3)
    assert res.certificate.verify(objective, constraints=limits).ok
    assert res.multipliers.size == 5


def test_a_comparison_is_no_truth_value():
    x = gs.Variable(2)
    assert x == x
    assert x != gs.Variable(2)
    assert len({x, gs.sum(x)}) == 2
    with pytest.raises(gs.InputTypeError, match="two-sided"):
        bool(0 <= gs.sum(x) <= 1)
