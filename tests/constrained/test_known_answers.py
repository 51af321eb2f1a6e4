"""Problems with known answers: value, feasibility, bounds never left, success <=> verify."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, nnls

import goldstein as gs
from goldstein.checker.constrained.limits import as_box
from goldstein.numerics.hull_problems import conic_weights
from goldstein.solvers import REGISTRY

from .problems import KNOWN


def guarded(known):
    """The functions of a problem, refusing to be asked outside the bounds."""
    box = as_box(known.bounds, len(known.x0))

    def guard(function):
        def ask(x):
            assert box.contains(x), f"asked outside the bounds, at {x}"
            return function(x)

        return ask

    return guard(known.fun), guard(known.jac)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", KNOWN)
def test_auto_finds_and_proves(name, seed):
    known = KNOWN[name]
    fun, jac = guarded(known)
    res = gs.minimize(fun, known.x0, jac, eps=1e-3, delta=1e-3, rng=seed, **known.problem)
    assert res.success, res
    assert res.violation <= 1e-9
    # eps times the distance, and what f varies by in the ball.
    assert res.fun == pytest.approx(known.best, abs=1e-2)
    for check in range(5):
        found = res.certificate.verify(fun, jac, seed=check, **known.problem)
        assert found.ok, found
        assert found.eps <= 1e-3


@pytest.mark.parametrize("budget", [2, 5, 20, 60, 150, 100_000])
@pytest.mark.parametrize("name", KNOWN)
def test_the_budget_is_kept_and_every_call_is_counted(name, budget):
    known = KNOWN[name]
    asked = [0, 0]

    def fun(x):
        asked[0] += 1
        return known.fun(x)

    def jac(x):
        asked[1] += 1
        return known.jac(x)

    res = gs.minimize(
        fun, known.x0, jac, eps=1e-3, delta=1e-3, rng=0, max_calls=budget, **known.problem
    )
    assert asked == [res.nfev, res.ngev]
    assert sum(asked) <= budget
    assert res.success or budget < 100_000


@pytest.mark.parametrize("method", [n for n, made in REGISTRY.items() if not made.on_values])
@pytest.mark.parametrize("name", ["corner", "circle", "box_and_simplex"])
def test_every_solver_stays_in_the_bounds_and_tells_the_truth(name, method):
    known = KNOWN[name]
    fun, jac = guarded(known)
    res = gs.minimize(
        fun, known.x0, jac, eps=1e-2, delta=1e-2, rng=0, method=method, max_calls=1500,
        **known.problem,
    )  # fmt: skip
    assert res.nfev + res.ngev <= 1500
    if res.certificate is not None and res.status is not gs.Status.INFEASIBLE:
        found = res.certificate.verify(fun, jac, **known.problem)
        assert found.ok, found
    assert res.success == (
        res.certificate is not None and res.certificate.eps <= 1e-2 and res.violation <= 1e-9
    )


def linear(c):
    return (lambda x: c @ x), (lambda x: c)


def test_certify_against_linear_programming():
    """For a linear program the residual is 0 exactly at solutions."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        A, c = rng.standard_normal((6, 3)), rng.standard_normal(3)
        b = np.abs(rng.standard_normal(6)) + 0.5
        bounds = [(-1.0, 1.0)] * 3
        x = np.clip(linprog(c, A, b, bounds=bounds).x, -1.0, 1.0)
        x[np.abs(np.abs(x) - 1) < 1e-9] = np.sign(x[np.abs(np.abs(x) - 1) < 1e-9])
        limits = LinearConstraint(A, -np.inf, b)
        problem = {"bounds": bounds, "constraints": limits}
        fun, jac = linear(c)
        solved = gs.certify(fun, x, jac, delta=1e-6, rng=0, **problem)
        assert solved.eps <= 1e-9
        inside = gs.certify(fun, 0 * x, jac, delta=1e-6, rng=0, **problem)
        assert inside.eps == pytest.approx(np.linalg.norm(c))


@pytest.mark.parametrize("seed", range(20))
def test_shortest_vector_of_hull_plus_cone(seed):
    """Optimality of the projection: no column makes an obtuse angle with the shortest vector."""
    rng = np.random.default_rng(seed)
    hull, cone = rng.standard_normal((4, 5)) + 1.0, rng.standard_normal((3, 5))
    a, b = conic_weights(hull, cone)
    m = a @ hull + b @ cone
    assert a.sum() == pytest.approx(1.0)
    assert min(a.min(), b.min()) >= 0
    assert (hull @ m >= m @ m - 1e-9).all()
    assert (cone @ m >= -1e-9).all()
    # One point and a cone: a plain projection.
    a, b = conic_weights(hull[:1], cone)
    assert np.linalg.norm(hull[0] + b @ cone) == pytest.approx(nnls(-cone.T, hull[0])[1])


def test_two_sided_constraints_and_sparse_jacobians():
    from scipy.optimize import NonlinearConstraint
    from scipy.sparse import csr_matrix

    asked = []

    def values(x):
        asked.append(x.tobytes())
        return np.array([x[0] + x[1], x[0] - x[1]])

    limits = NonlinearConstraint(
        values, [-1.0, 0.0], [1.0, 3.0], jac=lambda x: csr_matrix([[1.0, 1.0], [1.0, -1.0]])
    )
    fun, jac = (lambda x: 2 * x[0] + x[1]), (lambda x: np.array([2.0, 1.0]))
    res = gs.minimize(fun, [0.5, 0.0], jac, eps=1e-3, delta=1e-3, rng=0, constraints=limits)
    assert res.success
    # At (-0.5, -0.5) both lower limits hold with equality: 1.5 (1, 1) + 0.5 (1, -1) = (2, 1).
    assert res.x == pytest.approx([-0.5, -0.5], abs=2e-3)
    assert res.multipliers == pytest.approx([-1.5, -0.5], abs=1e-2)
    assert len(asked) <= 2 * (res.nfev + res.ngev) + 200


@pytest.mark.parametrize("seed", range(3))
def test_claims_do_not_rest_on_the_point_that_a_search_ends_at(seed):
    """Three entries tie for the largest at x: its gradient is one of three, by chance."""
    known = KNOWN["box_and_simplex"]
    res = gs.minimize(
        known.fun, known.x0, known.jac, eps=1e-2, delta=1e-2, rng=seed, **known.problem
    )
    assert res.success
    for check in range(60):
        assert res.certificate.verify(known.fun, known.jac, seed=check, **known.problem).ok
