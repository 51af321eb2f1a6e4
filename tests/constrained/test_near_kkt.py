"""Near-KKT: proved exactly, or not at all."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, linprog
from tests.limits import limiting_gradients

import goldstein as gs
from goldstein.certificates.near import prove_near_kkt, separating
from goldstein.checker.constrained.near import exact_problem
from goldstein.numerics.hull_problems import conic_weights

NEAR = {"eps": 1e-3, "delta": 1e-3, "stationarity": "near", "rng": 0}


def svm(n=80, d=6, seed=3):
    """Hinge loss of data with noise, and the difference of the mean scores of two groups."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sign(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n))
    w = gs.Variable(d)
    loss = gs.sum(gs.relu(1.0 - gs.linear(y[:, None] * X, w))) / n
    return w, loss, (X[: n // 2].mean(axis=0) - X[n // 2 :].mean(axis=0))[None]


def proved(fun, start, **limits):
    """Minimise, and check the proof against the expressions."""
    res = gs.minimize(fun, start, **NEAR, **limits)
    assert res.success, res.message
    assert isinstance(res.certificate, gs.NearKKTCertificate)
    found = res.certificate.verify(fun, **limits)
    assert found.ok, found
    assert found.label == "certified"
    assert found.eps <= 1e-3
    assert found.delta <= 1e-3
    return res


def failed(certificate, fun, **limits):
    return {c.name for c in certificate.verify(fun, **limits).checks if not c.ok}


# --- problems with known answers ------------------------------------------------------------------


def test_bounded_svm():
    _, loss, _ = svm()
    box = [(-0.3, 0.3)] * 6
    res = proved(loss, np.zeros(6), bounds=box)
    strict = gs.minimize(loss, np.zeros(6), bounds=box, **{**NEAR, "eps": 1e-8})
    assert strict.certificate.eps < 1e-12
    assert np.count_nonzero(res.bound_multipliers) >= 1


@pytest.mark.parametrize("seed", range(3))
def test_svm_with_fairness_in_a_box(seed):
    _, loss, gap = svm(seed=seed)
    limits = {"bounds": [(-1, 1)] * 6, "constraints": LinearConstraint(gap, -0.02, 0.02)}
    res = proved(loss, np.zeros(6), **limits)
    at = [sum(Fraction(a) * q for a, q in zip(gap[0].tolist(), res.certificate.exact_pivot))]
    if res.multipliers[0]:
        assert abs(at[0]) == Fraction(0.02)  # exactly, as a rational number


def test_svm_with_a_budget_that_has_kinks():
    w, loss, gap = svm()
    limits = {"constraints": [gs.norm1(w) <= 1.0, gs.linear(gap, w) == 0.0]}
    res = proved(loss, np.full(6, 0.1), **limits)
    assert res.multipliers[0] > 0
    assert sum(map(abs, res.certificate.exact_pivot)) == 1


def test_a_budget_in_more_variables():
    """The kinks of the budget meet those of the loss: 12 variables, 400 rows."""
    w, loss, _ = svm(n=400, d=12, seed=1)
    res = proved(loss, np.zeros(12), constraints=gs.norm1(w) <= 1.0)
    assert sum(map(abs, res.certificate.exact_pivot)) == 1
    assert sum(q == 0 for q in res.certificate.exact_pivot) >= 1


def test_margin_model_has_a_variable_of_its_own():
    """f and the constraints are written over different variables, and f is a fused model."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((60, 4)) + 0.3
    model = gs.models.MarginSVM(Z, rho=1.0, lam=0.01)
    w = gs.Variable(4)
    limits = {"bounds": [(0, 1)] * 4, "constraints": gs.sum(w) <= 1.0}
    proved(model, np.full(4, 0.2), **limits)


def test_a_curved_constraint_with_a_rational_point():
    x = gs.Variable(2)
    res = proved(-x[0], [0.2, 0.3], constraints=gs.sum_squares(x) <= 1.0)
    assert res.multipliers == pytest.approx([0.5], rel=1e-2)


def test_smooth_objective_at_a_vertex():
    x = gs.Variable(2)
    res = proved(
        gs.sum_squares(x - [2.0, 1.0]), [0.0, 0.0], bounds=[(0, 1), (0, None)],
        constraints=gs.sum(x) <= 1.0,
    )  # fmt: skip
    assert res.x == pytest.approx([1.0, 0.0], abs=2e-3)


def test_certify_does_not_move_the_point():
    x = gs.Variable(2)
    F, point = gs.sum(abs(x - 2.0)), np.array([1.0, 2.0 + 1e-4])
    certificate = gs.certify(F, point, delta=1e-3, stationarity="near", bounds=[(0, 1), (0, 3)])
    assert (certificate.x == point).all()
    assert certificate.exact_pivot == (1, 2)
    assert certificate.eps < 1e-12


# --- traps ----------------------------------------------------------------------------------------


def line():
    x = gs.Variable(1)
    return x, gs.sum(x)


def test_no_constraint_qualification_is_no_success():
    x, f = line()
    res = gs.minimize(f, [0.3], **NEAR, constraints=gs.sum_squares(x) <= 0.0, max_calls=4000)
    assert not res.success


def test_a_narrow_constraint_with_a_kink_is_fine():
    x, f = line()
    res = proved(f, [0.5], constraints=gs.sum(abs(x)) <= 2.0**-30)
    assert res.multipliers == pytest.approx([1.0])
    assert res.certificate.exact_pivot == (-Fraction(1, 2**30),)


def test_dependent_constraints_share_the_multiplier():
    _x, f = line()
    res = proved(-f, [0.0], constraints=[f <= 1.0, 2 * f <= 2.0])
    assert res.multipliers @ [1.0, 2.0] == pytest.approx(1.0)


def test_constraint_that_is_nearly_active_gets_no_multiplier():
    """x = 0 is no KKT point for -1e-4 + 1e-6 x <= 0, which the ball does not reach."""
    _x, f = line()
    limits = {"constraints": 1e-6 * f - 1e-4 <= 0.0}
    certificate = gs.certify(-f, [0.0], delta=1e-3, eps=1e-3, stationarity="near", **limits)
    assert certificate.eps == 1.0
    assert not certificate.multipliers.any()


def test_a_constraint_that_always_holds_is_degenerate():
    """-|x| <= 0 has gradients of both signs at 0: with a multiplier every f would be stationary."""
    x = gs.Variable(2)
    limits = {"constraints": -abs(x[0]) <= 0.0}
    res = gs.minimize(5 * x[0] + abs(x[1]), [1.0, 1.0], **NEAR, **limits, max_calls=3000)
    assert not res.success
    fun = 5 * x[0] + abs(x[1])
    problem = exact_problem(np.zeros(2), None, limits["constraints"], separating)
    ways = np.array([[1.0, 1.0], [1.0, -1.0]])
    forged = prove_near_kkt(
        fun.program(), problem, np.zeros(2), [Fraction(0)] * 2, ways, np.ones(2),
        [(0, np.array([1.0, 0.5]), 5.0)], np.zeros(2),
    )  # fmt: skip
    assert forged.eps == 0.0
    assert failed(forged, fun, **limits) == {"qualification"}


def test_an_equality_with_a_segment_of_solutions():
    x = gs.Variable(2)
    res = proved(gs.norm1(x), [0.9, -0.4], constraints=gs.sum(x) == 1.0)
    assert abs(res.multipliers[0]) <= 1.0 + 1e-12
    assert sum(res.certificate.exact_pivot) == 1


def test_fixed_variables_may_be_pushed_either_way():
    x = gs.Variable(2)
    res = proved(gs.norm1(x - 3.0), [0.0, 0.0], bounds=[(1, 1), (None, None)])
    assert res.certificate.exact_pivot[0] == 1
    assert res.bound_multipliers == pytest.approx([1.0, 0.0])


def test_infeasible_is_said_as_without_near():
    x, f = line()
    res = gs.minimize(gs.sum_squares(x), [0.5], **NEAR, constraints=[f >= 1.0, f <= 0.0])
    assert res.status is gs.Status.INFEASIBLE


def test_ties_and_exact_kinks():
    """Five pieces meet at the pivot, on the constraint, which has a kink there itself."""
    x = gs.Variable(2)
    F = gs.max(gs.stack([x[0], -x[0], x[1], -x[1], x[0] + x[1]])) - 2 * gs.sum(x)
    proved(F, [0.3, -0.2], constraints=gs.maximum(x[0], x[1]) <= 0.0)


# --- what the checker refuses ---------------------------------------------------------------------

# min -2 x0 + 3 x1 + |x2| with x0 <= 1, x1 <= 5 and x1 >= 0: multiplier 2, normal -3 at (1, 0, 0).
X = gs.Variable(3)
FUN = -2 * X[0] + 3 * X[1] + abs(X[2])
LIMITS = {
    "bounds": [(None, None), (0.0, None), (None, None)],
    "constraints": X[:2] <= np.array([1.0, 5.0]),
}


@pytest.fixture(scope="module")
def honest():
    certificate = proved(FUN, [0.0, 1.0, 0.5], **LIMITS).certificate
    assert certificate.exact_pivot == (1, 0, 0)
    assert certificate.multipliers == pytest.approx([2.0, 0.0])
    return certificate


def forged(certificate, **changes):
    return failed(replace(certificate, digest="", **changes), FUN, **LIMITS)


def with_row(certificate, index, weight, **changes):
    return forged(
        certificate,
        constraint_directions=np.vstack([certificate.constraint_directions, np.ones(3)]),
        constraint_index=np.append(certificate.constraint_index, index),
        constraint_weights=np.append(certificate.constraint_weights, weight),
        multipliers=certificate.multipliers + weight * np.eye(2)[index],
        eps=certificate.eps + 2 * abs(weight),
        **changes,
    )


def test_multiplier_on_an_inactive_constraint(honest):
    assert with_row(honest, 1, 0.1) == {"activity"}


def test_wrong_sign(honest):
    assert "multipliers" in with_row(honest, 1, -0.1)


def test_both_signs_on_one_constraint(honest):
    assert with_row(honest, 0, -0.1) == {"multipliers"}


def test_stated_multipliers_are_those_used(honest):
    assert forged(honest, multipliers=[1.0, 0.0]) == {"multipliers"}


def test_component_that_does_not_exist(honest):
    assert forged(honest, constraint_index=honest.constraint_index + 7) == {"constraints"}


def test_weights_of_f_that_sum_to_zero(honest):
    nothing = {"constraint_weights": 0 * honest.constraint_weights, "multipliers": [0.0, 0.0]}
    assert forged(honest, weights=0 * honest.weights, normal=np.zeros(3), **nothing) == {"numbers"}
    assert forged(honest, weights=-honest.weights) == {"numbers"}


def test_scaled_residual(honest):
    weights = 0.5 * honest.constraint_weights
    changes = {"constraint_weights": weights, "multipliers": 0.5 * honest.multipliers}
    assert forged(honest, **changes) == {"bound"}


def test_pivot_outside_the_bounds(honest):
    below = (Fraction(1), -Fraction(1, 10**40), Fraction(0))
    assert {"bounds", "normal"} & forged(honest, exact_pivot=below, delta=1.0)


def test_x_outside_the_bounds(honest):
    assert "bounds" in forged(honest, x=[1.0, -1e-9, 0.0], delta=1.0)


def test_normal_where_the_pivot_is_not_on_a_bound(honest):
    above = (Fraction(1), Fraction(1, 10**40), Fraction(0))
    assert forged(honest, exact_pivot=above, delta=1.0) == {"normal"}


def test_normal_of_the_wrong_sign(honest):
    assert forged(honest, normal=-honest.normal) == {"normal"}


def test_violation_that_no_float_would_show(honest):
    beyond = (1 + Fraction(1, 10**40), Fraction(0), Fraction(0))
    assert forged(honest, exact_pivot=beyond, delta=1.0) == {"activity", "feasibility"}
    inside = (1 - Fraction(1, 10**40), Fraction(0), Fraction(0))
    assert forged(honest, exact_pivot=inside, delta=1.0) == {"activity"}


def test_pivot_outside_the_ball(honest):
    assert forged(honest, x=[0.9, 0.0, 0.0]) == {"ball"}


def test_direction_along_the_kink_shows_nothing(honest):
    ways = np.zeros_like(honest.directions) + [1.0, 1.0, 0.0]
    assert forged(honest, directions=ways) == {"subgradients"}


def test_one_side_of_the_kink_is_not_enough(honest):
    ways = np.abs(honest.directions) + 0.1
    assert forged(honest, directions=ways) == {"bound"}


def test_another_function_or_constraint(honest):
    assert failed(honest, FUN + 0.5 * X[0], **LIMITS) == {"bound"}
    other = {**LIMITS, "constraints": X[:2] <= np.array([1.5, 5.0])}
    assert failed(honest, FUN, **other) == {"activity"}
    assert "constraints" in failed(honest, FUN)
    assert "problem" in failed(honest, FUN, bounds=[(0, 1)])


def test_altered_after_it_was_made(honest):
    assert failed(replace(honest, eps=0.5), FUN, **LIMITS) == {"content"}


def test_numbers_that_are_none(honest):
    assert forged(honest, normal=[np.nan, 0.0, 0.0]) == {"content"}
    assert forged(honest, eps=-1.0) == {"numbers"}
    assert forged(honest, delta=np.nan) == {"numbers"}


def test_file_round_trip(honest, tmp_path):
    loaded = gs.load_certificate(honest.save(tmp_path / "point"))
    assert isinstance(loaded, gs.NearKKTCertificate)
    assert loaded.exact_pivot == honest.exact_pivot
    assert loaded.verify(FUN, **LIMITS).ok
    assert "multipliers [0] 2" in loaded.summary()
    with pytest.raises(gs.InputError):
        gs.NearKKTCertificate.from_record(*_without(honest, "normal"))


def _without(certificate, name):
    _, arrays, fields = certificate.to_record()
    return {k: v for k, v in arrays.items() if k != name}, fields


def test_the_checker_makes_its_own_view(honest, monkeypatch):
    """What a search keeps on the nodes of an expression does not reach the check."""
    x = gs.Variable(3)
    fun = -2 * x[0] + 3 * x[1] + abs(x[2])
    fun.__dict__["_own_form"] = None
    fun.__dict__["plan"] = ()
    assert honest.verify(fun, **LIMITS).ok


# --- what does not go together --------------------------------------------------------------------


def test_black_boxes_are_refused_by_name():
    black = NonlinearConstraint(lambda x: x[0], -np.inf, 0.0, jac=lambda x: np.eye(3)[:1])
    with pytest.raises(gs.InputTypeError, match=r"constraints\[0\].*black box"):
        gs.minimize(FUN, np.zeros(3), **NEAR, constraints=black)
    with pytest.raises(gs.InputTypeError, match="kinks are known"):
        gs.minimize(
            lambda x: x[0], np.zeros(3), lambda x: np.eye(3)[0], **NEAR, bounds=[(0, 1)] * 3
        )


def test_user_code_in_a_constraint_is_not_proved():
    x = gs.Variable(1)
    odd = gs.smooth_function(gs.sum(x), np.tanh, lambda u: 1 - np.tanh(u) ** 2)
    with pytest.raises(gs.NotCertifiableError):
        gs.certify(-gs.sum(x), [0.0], delta=1e-3, stationarity="near", constraints=odd <= 0.0)
    with pytest.raises(gs.NotCertifiableError):
        gs.certify(odd, [0.0], delta=1e-3, stationarity="near", bounds=[(0, 1)])
    # A checker that is handed such a function refuses it as well.
    plain = gs.certify(gs.sum(x), [0.0], delta=1e-3, stationarity="near", bounds=[(0, 1)])
    assert failed(plain, odd, bounds=[(0, 1)]) == {"problem"}


def test_f_is_never_asked_outside_the_bounds():
    crossed = []

    class Watched(gs.models.MarginSVM):
        def value(self, x):
            crossed.extend(x[(x < 0) | (x > 1)])
            return super().value(x)

        def gradient(self, y):
            crossed.extend(y[(y < 0) | (y > 1)])
            return super().gradient(y)

    Z = np.random.default_rng(1).standard_normal((40, 3)) + 0.2
    proved(Watched(Z, rho=1.0, lam=0.01), np.full(3, 0.5), bounds=[(0, 1)] * 3)
    assert not crossed


# --- against linear programming -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_pivots_of_convex_problems_are_as_low_as_linear_programming_says(seed):
    """max of affine functions plus |x|_1 in a box, under random rows and an equality.

    A KKT point of a convex problem is a minimiser: f(y) <= best + eps times the diameter, and y is
    feasible exactly.
    """
    rng = np.random.default_rng(seed)
    d, k, m = 4, 6, 3
    A, b = rng.standard_normal((k, d)), rng.standard_normal(k)
    rows, room = rng.standard_normal((m, d)), rng.uniform(0.0, 0.5, m)
    flat = rng.integers(-2, 3, d).astype(float)
    x = gs.Variable(d)
    fun = gs.max(gs.linear(A, x) + b) + 0.5 * gs.norm1(x)
    limits = {
        "bounds": [(-1.0, 0.75)] * d,
        "constraints": [LinearConstraint(rows, -np.inf, room), gs.linear(flat[None], x) == 0.0],
    }
    res = proved(fun, np.zeros(d), **limits)
    y = res.certificate.exact_pivot
    assert all(-1 <= q <= Fraction(3, 4) for q in y)
    assert sum(Fraction(a) * q for a, q in zip(flat.tolist(), y)) == 0
    for row, top in zip(rows.tolist(), room.tolist()):
        assert sum(Fraction(a) * q for a, q in zip(row, y)) <= Fraction(top)
    best = _linear_program(A, b, rows, room, flat)
    here = fun.value(res.certificate.pivot)
    assert here <= best + res.certificate.eps * 1.75 * np.sqrt(d) + 1e-9
    assert here >= best - 1e-9


def _linear_program(A, b, rows, room, flat):
    """Return min max_i (A x + b)_i + |x|_1 / 2 under the limits; variables x, u >= |x|, t."""
    k, d = A.shape
    zero, one = np.zeros, np.ones
    tops = np.hstack([A, zero((k, d)), -one((k, 1))])
    sizes = [np.hstack([s * np.eye(d), -np.eye(d), zero((d, 1))]) for s in (1.0, -1.0)]
    strips = np.hstack([rows, zero((len(rows), d + 1))])
    return linprog(
        np.concatenate([zero(d), 0.5 * one(d), [1.0]]),
        np.vstack([tops, *sizes, strips]), np.concatenate([-b, zero(2 * d), room]),
        np.concatenate([flat, zero(d + 1)])[None], [0.0],
        bounds=[(-1.0, 0.75)] * d + [(0, None)] * d + [(None, None)],
    ).fun  # fmt: skip


def test_without_a_proof_the_best_kkt_certificate_is_kept():
    """No rational point is on both the circle and the line, so that the constraint is never tight.

    min |x - y| - x on x^2 + y^2 <= 1 is at x = y = 1/sqrt 2.
    """
    x = gs.Variable(2)
    fun, limits = abs(x[0] - x[1]) - x[0], {"constraints": gs.sum_squares(x) <= 1.0}
    res = gs.minimize(fun, [0.1, 0.2], **NEAR, **limits)
    assert not res.success
    assert "eps = " in res.message or "pivot" in res.message
    assert isinstance(res.certificate, gs.KKTCertificate)
    assert res.certificate.eps <= 1e-3
    assert res.certificate.verify(fun, **limits).ok
    assert res.nfev + res.ngev < 3000


# --- soundness, against an enumeration of all pieces ----------------------------------------------


def shortest_by_enumeration(A, b, rows, room, y):
    """Return the distance of 0 from df(y) + cone of constraints at their limits + normals of a box.

    f = max(A x + b) + |x|_1 with integers, the box [-1, 1]^2: every set is written down.
    """
    values = [sum(a * q for a, q in zip(row, y)) + s for row, s in zip(A, b)]
    active = [row for row, v in zip(A, values) if v == max(values)]
    signs = itertools.product(*[(-1, 1) if q == 0 else (1 if q > 0 else -1,) for q in y])
    hull = [np.array(row, float) + s for s in map(np.array, signs) for row in active]
    cone = [
        np.array(row, float)
        for row, top in zip(rows, room)
        if sum(a * q for a, q in zip(row, y)) == top
    ]
    cone += [side * np.eye(2)[k] for k in range(2) for side in (-1, 1) if y[k] == side]
    weights, shares = conic_weights(np.array(hull), np.array(cone).reshape(-1, 2))
    return float(np.linalg.norm(weights @ np.array(hull) + shares @ np.array(cone).reshape(-1, 2)))


@pytest.mark.parametrize("seed", range(8))
def test_no_evidence_whatever_proves_more_than_is_true(seed):
    rng = np.random.default_rng(seed)
    x = gs.Variable(2)
    accepted = 0
    for _ in range(80):
        A, b = rng.integers(-3, 4, (3, 2)), rng.integers(-1, 2, 3)
        rows, room = rng.integers(-2, 3, (2, 2)), rng.integers(0, 2, 2)
        fun = gs.max(gs.linear(A.astype(float), x) + b.astype(float)) + gs.norm1(x)
        limits = {
            "bounds": [(-1, 1)] * 2,
            "constraints": gs.linear(rows.astype(float), x) <= room.astype(float),
        }
        y = tuple(Fraction(int(q), 2) for q in rng.integers(-2, 3, 2))
        problem = exact_problem(
            np.array(y, float), limits["bounds"], limits["constraints"], separating
        )
        ways, weights = rng.standard_normal((4, 2)), rng.random(4)
        # The best weights for these ways, so that as much as possible is accepted.
        hull = np.array([np.array(m, float) for m, _ in limiting_gradients(fun, y, ways)])
        honest = rng.random() < 0.8
        use = rng.random(2) < 0.7
        sides = [(k, s) for k in range(2) for s in (-1, 1) if rng.random() < 0.5]
        if honest:  # only what is at its limit
            at = [sum(a * q for a, q in zip(row, y)) == top for row, top in zip(rows, room)]
            use, sides = use & np.array(at), [(k, s) for k, s in sides if y[k] == s]
        normals = [s * np.eye(2)[k] for k, s in sides]
        cone = np.array([*rows[use].astype(float), *normals]).reshape(-1, 2)
        if rng.random() < 0.8:
            weights, shares = conic_weights(hull, cone)
        else:
            shares = rng.random(len(cone))
        pairs = zip(np.flatnonzero(use).tolist(), shares)
        rows_used = [(i, rng.standard_normal(2), float(w)) for i, w in pairs if w > 0]
        normal = sum((w * n for w, n in zip(shares[use.sum() :], normals)), np.zeros(2))
        try:
            claim = prove_near_kkt(
                fun.program(), problem, np.array(y, float), y, ways, weights, rows_used, normal
            )
        except gs.NotCertifiableError:
            continue
        if claim.verify(fun, seed=seed, **limits).ok:
            accepted += 1
            assert claim.eps >= shortest_by_enumeration(A, b, rows, room, y) - 1e-9
            inside = [sum(a * q for a, q in zip(row, y)) <= top for row, top in zip(rows, room)]
            assert all(inside)
    assert accepted >= 5
