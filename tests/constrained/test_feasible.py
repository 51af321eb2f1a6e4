"""Feasible iterates: every accepted point satisfies everything and is lower than the start."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint

import goldstein as gs

TARGET = {"eps": 1e-3, "delta": 1e-3, "options": {"feasible": True}}


def disc(x):
    return x @ x


DISC = NonlinearConstraint(disc, -np.inf, 1.0, jac=lambda x: 2 * x[None])
BOX = [(-0.5, 2.0)] * 3


def random_problem(seed):
    """A maximum of slopes and a concave term, inside a disc, a strip with a kink and a box."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((6, 3)), rng.standard_normal(6)
    row = rng.standard_normal(3)

    def fun(x):
        return float(np.max(A @ x + b) - 0.2 * x @ x)

    def jac(x):
        return A[np.argmax(A @ x + b)] - 0.4 * x

    strip = NonlinearConstraint(
        lambda x: abs(row @ x) + 0.1 * x[0], -np.inf, 0.4,
        jac=lambda x: (np.sign(row @ x) * row + 0.1 * np.eye(3)[0])[None],
    )  # fmt: skip
    return fun, jac, {"bounds": BOX, "constraints": [DISC, strip]}, row


@pytest.mark.parametrize("method", ["auto", "bundle"])
@pytest.mark.parametrize("seed", range(6))
def test_every_accepted_point_is_feasible_and_lower(seed, method):
    fun, jac, limits, row = random_problem(seed)
    seen = []
    res = gs.minimize(
        fun, np.zeros(3), jac, rng=seed, callback=seen.append, method=method, max_calls=20_000,
        **TARGET, **limits,
    )  # fmt: skip
    assert seen
    for x in [*seen, res.x]:
        assert ((x >= -0.5) & (x <= 2.0)).all()
        assert disc(x) <= 1.0
        assert abs(row @ x) + 0.1 * x[0] <= 0.4
    assert res.violation == 0.0
    assert max(fun(x) for x in seen) < fun(np.zeros(3))
    assert res.fun <= fun(seen[-1]) + 1e-3
    if method == "auto":
        assert res.success, res.message
        assert res.certificate.verify(fun, jac, **limits).ok


def test_the_answer_is_that_of_the_ordinary_search():
    """min |x| + |y - 2| with x + y <= 1: y = 1, x = 0, multiplier 1."""
    limits = {"constraints": LinearConstraint([[1.0, 1.0]], -np.inf, 1.0)}

    def fun(x):
        return abs(x[0]) + abs(x[1] - 2)

    def jac(x):
        return np.array([np.sign(x[0]), np.sign(x[1] - 2)])

    res = gs.minimize(fun, [-1.0, -1.0], jac, rng=0, **TARGET, **limits)
    assert res.success
    assert res.fun == pytest.approx(1.0, abs=5e-3)
    assert res.multipliers == pytest.approx([1.0], abs=1e-3)


def test_far_and_flat_constraints_do_not_hold_the_search_up():
    """-1e-4 <= 0 always holds and has no slope: f would fall by 1e-4 at a time."""
    always = NonlinearConstraint(lambda x: -1e-4, -np.inf, 0.0, jac=lambda x: np.zeros((1, 1)))
    res = gs.minimize(
        lambda x: abs(x[0] - 3.0), [0.0], lambda x: np.sign(x - 3.0), rng=0, constraints=always,
        **TARGET,
    )  # fmt: skip
    assert res.success
    assert res.multipliers == pytest.approx([0.0])


def test_no_qualification_is_no_success():
    flat = NonlinearConstraint(lambda x: x[0] ** 2, -np.inf, 0.0, jac=lambda x: 2 * x[None])
    res = gs.minimize(
        lambda x: x[0], [0.0], lambda x: np.ones(1), rng=0, constraints=flat, max_calls=3000,
        **TARGET,
    )  # fmt: skip
    assert not res.success
    assert res.x[0] == 0.0


def test_an_infeasible_start_is_an_error_that_says_what_to_do():
    with pytest.raises(gs.InputError, match=r"constraints\[0\].*violated there by 3.*Violation"):
        gs.minimize(lambda x: x[0], [2.0, 0.0], lambda x: np.eye(2)[0], constraints=DISC, **TARGET)


def test_an_equality_has_no_room():
    line = LinearConstraint([[1.0, 1.0]], 1.0, 1.0)
    with pytest.raises(gs.InputError, match=r"constraints\[0\] is an equality"):
        gs.minimize(lambda x: x[0], [1.0, 0.0], lambda x: np.eye(2)[0], constraints=line, **TARGET)


def test_without_constraints_it_means_nothing():
    with pytest.raises(gs.InputError, match="there are none"):
        gs.minimize(lambda x: abs(x[0]), [1.0], np.sign, **TARGET)


def test_the_option_is_true_or_false():
    with pytest.raises(gs.InputTypeError, match=r"feasible. must be True or False"):
        gs.minimize(
            lambda x: abs(x[0]), [1.0], np.sign, eps=1e-3, delta=1e-3, options={"feasible": 1}
        )


def test_unbounded_is_no_success():
    half = LinearConstraint([[0.0, 1.0]], -np.inf, 1.0)
    res = gs.minimize(
        lambda x: x[0] + abs(x[1]), [0.0, 0.0], lambda x: np.array([1.0, np.sign(x[1])]), rng=0,
        constraints=half, max_calls=2000, **TARGET,
    )  # fmt: skip
    assert not res.success
    assert res.fun < -1e3


def test_near_kkt_of_feasible_iterates():
    x = gs.Variable(2)
    fun, limits = gs.norm1(x - [0.0, 2.0]), {"constraints": gs.sum(x) <= 1.0}
    res = gs.minimize(fun, [-1.0, -1.0], rng=0, stationarity="near", **TARGET, **limits)
    assert res.success, res.message
    assert res.certificate.verify(fun, **limits).ok
