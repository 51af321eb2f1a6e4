"""Each trap of constrained problems: what must happen, and what must never be called KKT."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import goldstein as gs

ONE = np.ones(1)
TARGET = {"eps": 1e-3, "delta": 1e-3, "rng": 0}


def at_most_zero(c, jac):
    return NonlinearConstraint(c, -np.inf, 0.0, jac=jac)


def verified(res, fun, jac, **problem):
    """Success means that the check passes, with any seed."""
    assert res.success
    return all(res.certificate.verify(fun, jac, seed=s, **problem).ok for s in range(5))


def test_no_constraint_qualification_is_degenerate():
    constraints = at_most_zero(lambda x: x[0] ** 2, lambda x: 2 * x)
    res = gs.minimize(lambda x: x[0], [1.0], lambda x: ONE, constraints=constraints, **TARGET)
    assert not res.success
    assert res.status is gs.Status.DEGENERATE
    assert not res.certificate.verify(lambda x: x[0], lambda x: ONE, constraints=constraints).ok


VANISHING = {
    "x^2 <= 0": (1.0, at_most_zero(lambda x: x[0] ** 2, lambda x: np.array([2 * x[0], 0.0]))),
    "|x|^2 <= 0": (1.0, at_most_zero(lambda x: x @ x, lambda x: 2 * x)),
    "|x|^1.5 <= 0": (
        1.0,
        at_most_zero(
            lambda x: abs(x[0]) ** 1.5,
            lambda x: np.array([1.5 * np.sign(x[0]) * abs(x[0]) ** 0.5, 0.0]),
        ),
    ),
    "max(0, x)^2 <= 0": (
        -1.0,
        at_most_zero(lambda x: max(0, x[0]) ** 2, lambda x: np.array([2 * max(0, x[0]), 0.0])),
    ),
    "x^2 == 0": (
        1.0,
        NonlinearConstraint(lambda x: x[0] ** 2, 0, 0, jac=lambda x: np.array([2 * x[0], 0.0])),
    ),
    "two parabolas that touch": (
        1.0,
        [
            at_most_zero(lambda x: x[1] - 0.5 * x[0] ** 2, lambda x: np.array([-x[0], 1.0])),
            at_most_zero(lambda x: 1.5 * x[0] ** 2 - x[1], lambda x: np.array([3 * x[0], -1.0])),
        ],
    ),
}


@pytest.mark.parametrize("delta", [1e-1, 1e-2, 1e-4])
@pytest.mark.parametrize("start", [1.0, -0.3])
@pytest.mark.parametrize("name", VANISHING)
def test_gradients_that_vanish_or_cancel_are_never_a_success(name, start, delta):
    slope, constraints = VANISHING[name]
    res = gs.minimize(
        lambda x: slope * x[0], [start, start], lambda x: np.array([slope, 0.0]), eps=1e-2,
        delta=delta, rng=0, constraints=constraints, max_calls=5000,
    )  # fmt: skip
    assert res.status in (gs.Status.DEGENERATE, gs.Status.NOT_VERIFIED)
    assert abs(res.x[0]) <= max(delta, 1e-3)


def test_a_narrow_kinked_constraint_is_fine():
    constraints = at_most_zero(lambda x: max(x[0], -x[0]) - 1e-9, np.sign)
    fun, jac = (lambda x: x[0]), (lambda x: ONE)
    res = gs.minimize(fun, [1.0], jac, constraints=constraints, **TARGET)
    assert verified(res, fun, jac, constraints=constraints)
    assert res.multipliers == pytest.approx([1.0], abs=2e-3)


def test_dependent_constraints_share_the_multiplier():
    constraints = [
        at_most_zero(lambda x: x[0] - 1, lambda x: ONE),
        at_most_zero(lambda x: 2 * x[0] - 2, lambda x: 2 * ONE),
    ]
    fun, jac = (lambda x: -x[0]), (lambda x: -ONE)
    res = gs.minimize(fun, [0.0], jac, constraints=constraints, **TARGET)
    assert verified(res, fun, jac, constraints=constraints)
    assert res.multipliers @ [1.0, 2.0] == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("slope", [0.0, 1e-3])
def test_no_multiplier_on_a_constraint_that_is_not_reached(slope):
    constraints = at_most_zero(lambda x: -1e-4 + slope * x[0], lambda x: slope * ONE)
    certificate = gs.certify(
        lambda x: -x[0], [0.0], lambda x: -ONE, delta=1e-3, constraints=constraints, rng=0
    )
    assert certificate.multipliers == [0.0]
    assert certificate.eps == pytest.approx(1.0)


def test_a_constraint_that_always_holds_is_degenerate():
    constraints = at_most_zero(lambda x: -abs(x[0]), lambda x: np.array([-np.sign(x[0]), 0.0]))
    fun, jac = (lambda x: 5 * x[0]), (lambda x: np.array([5.0, 0.0]))
    certificate = gs.certify(fun, [0.0, 0.0], jac, delta=1e-3, constraints=constraints, rng=0)
    assert certificate.degenerate
    found = certificate.verify(fun, jac, constraints=constraints)
    assert [check.name for check in found.checks if not check.ok] == ["qualification"]


def test_multiplier_of_an_equality_on_a_segment_of_solutions():
    constraints = LinearConstraint([[1.0, 1.0]], 1.0, 1.0)
    fun = lambda x: np.abs(x).sum()  # noqa: E731
    res = gs.minimize(fun, [3.0, -1.0], np.sign, constraints=constraints, **TARGET)
    assert verified(res, fun, np.sign, constraints=constraints)
    assert res.fun == pytest.approx(1.0, abs=2e-3)
    assert abs(res.multipliers[0]) <= 1.0 + 2e-3


@pytest.mark.parametrize("d", [1, 3])
def test_a_fixed_variable_stays(d):
    seen = []

    def fun(x):
        seen.append(x[0])
        return np.abs(x - 3).sum()

    bounds = [(1.0, 1.0), *[(None, None)] * (d - 1)]
    jac = lambda x: np.sign(x - 3)  # noqa: E731
    res = gs.minimize(fun, np.zeros(d), jac, bounds=bounds, **TARGET)
    assert verified(res, fun, jac, bounds=bounds)
    assert set(seen) <= {1.0}


def test_infeasible_with_its_certificate():
    constraints = [
        at_most_zero(lambda x: 1 - x[0], lambda x: -ONE),
        at_most_zero(lambda x: x[0], lambda x: ONE),
    ]
    res = gs.minimize(
        lambda x: x[0] ** 2, [3.0], lambda x: 2 * x, constraints=constraints, **TARGET
    )
    assert res.status is gs.Status.INFEASIBLE
    assert not res.success
    violation = gs.Violation(constraints, [3.0])
    assert violation.value(res.x) == pytest.approx(1.0, abs=1e-6)
    assert res.certificate.verify(violation).ok


def test_a_function_with_a_domain_is_never_asked_outside():
    def fun(x):
        assert (x >= 0).all()
        return np.sqrt(x[0]) + abs(x[1] - 0.5)

    def jac(x):
        assert (x >= 0).all()
        return np.array([0.5 / np.sqrt(max(x[0], 1e-300)), np.sign(x[1] - 0.5)])

    bounds = Bounds([0.0, 0.0], [np.inf, np.inf])
    res = gs.minimize(fun, [0.3, 2.0], jac, bounds=bounds, max_calls=3000, **TARGET)
    assert res.x[0] <= 1e-6
    if res.certificate is not None:
        res.certificate.verify(fun, jac, bounds=bounds)


@pytest.mark.parametrize("start", [0.5, 1.0, 1.9])
def test_a_penalty_that_is_unbounded_below_is_no_unbounded_problem(start):
    constraints = at_most_zero(lambda x: x[0] - 2, lambda x: ONE)
    fun, jac = (lambda x: -(x[0] ** 3)), (lambda x: -3 * x**2)
    res = gs.minimize(fun, [start], jac, constraints=constraints, **TARGET)
    assert verified(res, fun, jac, constraints=constraints)
    assert res.x == pytest.approx([2.0], abs=1e-3)
    assert res.multipliers == pytest.approx([12.0], abs=0.1)


def test_a_wrong_constraint_gradient_is_named():
    wrong = at_most_zero(lambda x: x[0] - 1, lambda x: np.array([-1.0, 0.0]))
    right = at_most_zero(lambda x: x[1] - 9, lambda x: np.array([0.0, 1.0]))
    fun, jac = (lambda x: -x[0] + x[1] ** 2), (lambda x: np.array([-1.0, 2 * x[1]]))
    res = gs.minimize(fun, [0.0, 1.0], jac, constraints=[right, wrong], **TARGET)
    assert res.status is gs.Status.WRONG_GRADIENT
    assert "constraints[1]" in res.message
    assert "constraints[0]" not in res.message


def test_verify_names_a_wrong_constraint_gradient():
    def problem(sign):
        return at_most_zero(lambda x: x[0] - 1, lambda x: sign * np.array([1.0, 0.0]))

    fun, jac = (lambda x: -x[0] + x[1] ** 2), (lambda x: np.array([-1.0, 2 * x[1]]))
    lie = at_most_zero(lambda x: 1 - x[0], lambda x: np.array([1.0, 0.0]))
    certificate = gs.certify(fun, [1.0, 0.0], jac, delta=1e-3, constraints=problem(1.0), rng=0)
    assert certificate.verify(fun, jac, constraints=problem(1.0)).ok
    found = certificate.verify(fun, jac, constraints=lie)
    assert not found.ok
    assert [c.name for c in found.checks if not c.ok] == ["values"]
    assert "constraints[0]" in found.checks[-1].message


def test_a_constraint_next_to_its_limit_needs_a_witness():
    constraints = at_most_zero(lambda x: x[0] - 1e-30, lambda x: ONE)
    fun, jac = (lambda x: -x[0]), (lambda x: -ONE)
    certificate = gs.certify(fun, [0.0], jac, delta=1e-3, constraints=constraints, rng=0)
    assert certificate.multipliers == pytest.approx([1.0])
    rows = certificate.constraint_points
    assert (rows[:, 0] >= 1e-30).any()
    assert certificate.verify(fun, jac, constraints=constraints).ok


@pytest.mark.parametrize("start", [0.0, 0.5])
def test_a_bound_may_be_a_kink_of_an_expression_that_knows_it(start):
    """Every point of the face x_i = 0 is a kink of |x_i|: the search must not end there."""
    rng = np.random.default_rng(1)
    matrix, target = rng.standard_normal((12, 8)), rng.standard_normal(12)
    w = gs.Variable(8)
    misfit, bounds = gs.norm1(matrix @ w - target), [(0.0, 1.2)] * 8
    question = {"bounds": bounds, "eps": 1e-3, "delta": 1e-4, "rng": 0, "max_calls": 5000}
    res = gs.minimize(misfit + 3 * gs.norm1(w), np.full(8, start), **question)
    same = gs.minimize(misfit + 3 * gs.sum(w), np.full(8, start), **question)  # x >= 0: no kink
    assert verified(res, misfit + 3 * gs.norm1(w), None, bounds=bounds)
    assert res.fun == pytest.approx(same.fun, abs=1e-3)
