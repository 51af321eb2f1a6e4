"""Constraints of which there are only values: bounds kept, claims honest, attacks refused."""

from __future__ import annotations

import dataclasses
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.values_coverage import misses
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

import goldstein as gs
import goldstein.scipy

ROOT_HALF = np.sqrt(0.5)


def rosenbrock(x: np.ndarray) -> float:
    return float(8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2)


def slope(x: np.ndarray) -> np.ndarray:
    side = np.sign(x[0] ** 2 - x[1])
    return np.array([16 * side * x[0] - 2 * (1 - x[0]), -8 * side])


def roof(x: np.ndarray) -> float:
    return float(1 - max(np.sqrt(2) * x[0], 2 * x[1]))


CURTIS_OVERTON: dict[str, Any] = {"type": "ineq", "fun": roof}
TASK: dict[str, Any] = {"eps": 0.3, "delta": 1e-2, "rng": 0}


@pytest.mark.parametrize("jac", ["2-point", "3-point", slope])
def test_curtis_and_overton_without_the_gradient_of_the_constraint(jac: Any) -> None:
    res = gs.minimize(rosenbrock, [-1.0, 1.0], jac, constraints=CURTIS_OVERTON, **TASK)
    assert res.success
    assert res.x == pytest.approx([ROOT_HALF, 0.5], abs=1e-2)
    assert res.violation <= 1e-9
    assert (res.certificate.label, res.certificate.kind) == ("estimated", "values-kkt")
    assert (res.ngev > 0) == callable(jac)
    # The multipliers form the interval [-0.414, -0.207]: the gradient of f is 0.414 (1, 0).
    assert -0.45 <= res.multipliers[0] <= -0.18
    for seed in range(3):
        found = res.certificate.verify(rosenbrock, constraints=CURTIS_OVERTON, seed=seed)
        assert found.ok, found
        assert found.eps <= 0.3
        assert found.label == "estimated"
    # Gradients, which the claim did without, agree.
    known = NonlinearConstraint(
        lambda x: -roof(x), -np.inf, 0.0,
        jac=lambda x: np.array([[np.sqrt(2), 0.0]] if np.sqrt(2) * x[0] > 2 * x[1] else [[0, 2.0]]),
    )  # fmt: skip
    truth = gs.certify(rosenbrock, res.x, slope, delta=1e-2, constraints=known, rng=0)
    assert truth.eps <= res.certificate.eps


def test_every_question_is_inside_the_bounds_and_hardly_any_is_asked_twice() -> None:
    asked: Counter[bytes] = Counter()
    low, high = np.array([-1.5, 0.2]), np.array([0.6, 2.0])

    def inside(x: np.ndarray) -> None:
        assert ((x >= low) & (x <= high)).all()

    def f(x: np.ndarray) -> float:
        inside(x)
        return rosenbrock(x)

    def c(x: np.ndarray) -> float:
        inside(x)
        asked[x.tobytes()] += 1
        return float(0.8 - x[0] ** 2 - x[1] ** 2)

    res = gs.minimize(
        f, [-1.0, 1.0], "2-point", constraints={"type": "ineq", "fun": c},
        bounds=list(zip(low, high)), **TASK,
    )  # fmt: skip
    assert res.success
    assert sum(asked.values()) <= res.constr_nfev + 2
    assert sum(asked.values()) <= 1.05 * len(asked)
    assert res.certificate.verify(f, constraints={"type": "ineq", "fun": c},
                                  bounds=list(zip(low, high))).ok  # fmt: skip


def circle(limit: float) -> NonlinearConstraint:
    return NonlinearConstraint(lambda x: float(x @ x), -np.inf, limit)


def bowl(x: np.ndarray) -> float:
    return float((x[0] - 1) ** 2 + (x[1] - 2.5) ** 2)


def bowl_slope(x: np.ndarray) -> np.ndarray:
    return np.array([2 * (x[0] - 1), 2 * (x[1] - 2.5)])


TUTORIAL = [
    {"type": "ineq", "fun": lambda x: x[0] - 2 * x[1] + 2},
    {"type": "ineq", "fun": lambda x: -x[0] - 2 * x[1] + 6},
    {"type": "ineq", "fun": lambda x: -x[0] + 2 * x[1] + 2},
]


@pytest.mark.parametrize("jac", [None, "2-point", "3-point", bowl_slope])
def test_the_tutorial_of_slsqp_as_it_stands(jac: Any) -> None:
    """https://docs.scipy.org/doc/scipy/reference/generated/scipy.optimize.minimize.html"""
    res = minimize(bowl, (2, 0), jac=jac, method=goldstein.scipy.method,
                   bounds=((0, None), (0, None)), constraints=TUTORIAL)  # fmt: skip
    assert res.success
    assert res.x == pytest.approx([1.4, 1.7], abs=1e-4)
    assert res.multipliers == pytest.approx([-0.8, 0, 0], abs=1e-3)
    assert res.certificate.eps <= 0.15 * np.hypot(2, 5)  # of about the slope at the start
    assert res.certificate.label == "estimated"


def test_scipys_default_jacobian_of_a_nonlinear_constraint() -> None:
    """NonlinearConstraint has jac='2-point' unless told otherwise."""
    both = [circle(1.0), LinearConstraint([[1, 1]], 0, 2)]
    res = minimize(bowl, (0.5, 0), method=goldstein.scipy.method, constraints=both, tol=1e-4)
    peer = minimize(bowl, (0.5, 0), method="SLSQP", constraints=both)
    assert res.success
    assert res.x == pytest.approx(peer.x, abs=1e-3)
    equal = NonlinearConstraint(lambda x: float(x @ x), 1.0, 1.0)
    res = minimize(bowl, (0.5, 0.2), method=goldstein.scipy.method, constraints=equal, tol=1e-4)
    assert res.success
    assert res.x == pytest.approx(np.array([1, 2.5]) / np.hypot(1, 2.5), abs=1e-3)


def test_other_ways_in() -> None:
    asked = {"constraints": circle(1.0), "eps": 0.2, "delta": 1e-2, "rng": 1}
    res = gs.minimize(bowl, [0.5, 0.0], method="values", workers=lambda f, xs: map(f, xs), **asked)
    assert res.success
    certificate = gs.certify(bowl, res.x, "2-point", **asked)
    assert certificate.eps <= 0.2
    assert certificate.verify(bowl, constraints=circle(1.0)).ok
    exact = gs.certify(bowl, res.x, bowl_slope, **asked)
    assert exact.label == "estimated"
    assert exact.eps <= 0.2
    search = gs.Search([0.5, 0.0], method="values", eps=0.2, delta=1e-2, rng=1,
                       constraints={"type": "ineq", "fun": round_room})  # fmt: skip
    told = 0
    while (question := search.ask()) is not None:
        assert not question.gradient
        search.tell(value=bowl(question.point))
        told += 1
        if told == 20:
            search = pickle.loads(pickle.dumps(search))
    same = gs.minimize(bowl, [0.5, 0.0], method="values", eps=0.2, delta=1e-2, rng=1,
                       constraints={"type": "ineq", "fun": round_room})  # fmt: skip
    assert np.array_equal(search.result.x, same.x)
    assert search.result.certificate.eps == same.certificate.eps
    assert np.array_equal(search.result.certificate.mean, same.certificate.mean)


def round_room(x: np.ndarray) -> float:
    return float(1.0 - x @ x)


def test_a_run_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    task: dict[str, Any] = {"method": "values", "constraints": circle(1.0), "eps": 0.2,
                            "delta": 1e-2, "rng": 3}  # fmt: skip
    whole = gs.minimize(bowl, [0.5, 0.0], **task)
    left = [150]

    def tired(x: np.ndarray) -> float:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return bowl(x)

    tired.__name__ = "bowl"
    stopped = gs.minimize(tired, [0.5, 0.0], checkpoint=tmp_path / "run", **task)
    assert (stopped.status, stopped.stopped_by) == (gs.Status.STOPPED, "Ctrl-C")
    res = gs.minimize(bowl, [0.5, 0.0], checkpoint=tmp_path / "run", **task)
    assert np.array_equal(res.x, whole.x)
    assert res.certificate.digest == whole.certificate.digest


def test_no_point_is_feasible() -> None:
    never = circle(-1.0)
    res = gs.minimize(bowl, [2.0, 0.0], "2-point", constraints=never, eps=0.1, delta=1e-2, rng=0)
    assert res.status is gs.Status.INFEASIBLE
    assert not res.success
    assert res.certificate.label == "estimated"
    assert res.certificate.verify(gs.Violation(never, res.x)).ok


# --- coverage ------------------------------------------------------------------------------------


def test_coverage_of_the_bound() -> None:
    """400 claims at 95 %, kinks of f and of the constraint through every box."""
    assert misses(trials=400, samples=50, seed=1) <= 0.05


# --- attacks -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest() -> gs.ValuesKKTCertificate:
    res = gs.minimize(bowl, [0.5, 0.0], "2-point", constraints=circle(1.0), eps=0.2, delta=1e-2,
                      rng=0)  # fmt: skip
    assert res.success
    return res.certificate


def refused(certificate: Any, fun: Any = bowl, constraints: Any = None, **limits: Any) -> set[str]:
    found = certificate.verify(
        fun, constraints=circle(1.0) if constraints is None else constraints, seed=5, **limits
    )
    assert not found.ok
    return {check.name for check in found.checks if not check.ok}


def test_it_is_verified_and_comes_back_from_its_file(honest: Any, tmp_path: Path) -> None:
    assert honest.verify(bowl, constraints=circle(1.0)).ok
    back = gs.load_certificate(honest.save(tmp_path / "kkt"))
    assert back.digest == honest.digest == back.content_digest()
    assert back.verify(bowl, constraints=circle(1.0)).ok
    assert "KKT with confidence 0.95" in repr(back)
    with pytest.raises(gs.GoldsteinError, match="estimated"):
        dataclasses.replace(honest, label="conditional", digest="")


def test_wrong_multipliers_are_refused(honest: Any) -> None:
    doubled = dataclasses.replace(
        honest, constraint_weights=2 * honest.constraint_weights,
        multipliers=2 * honest.multipliers, digest="",
    )  # fmt: skip
    assert refused(doubled) & {"bound", "slopes"}
    flipped = dataclasses.replace(
        honest, constraint_weights=-honest.constraint_weights,
        multipliers=-honest.multipliers, digest="",
    )  # fmt: skip
    assert "multipliers" in refused(flipped)
    hidden = dataclasses.replace(honest, multipliers=0 * honest.multipliers, digest="")
    assert "multipliers" in refused(hidden)
    # Weights of both signs cancel any gradient of a curved constraint.
    both = dataclasses.replace(
        honest,
        constraint_weights=np.concatenate([honest.constraint_weights, [500.0, -500.0]]),
        constraint_index=np.concatenate([honest.constraint_index, [0, 0]]),
        point_index=np.concatenate([honest.point_index, [0, 0]]),
        digest="",
    )
    assert "multipliers" in refused(both)
    halved = dataclasses.replace(honest, weights=honest.weights / 2, digest="")
    assert "weights" in refused(halved)


def test_a_point_that_serves_nothing_changes_nothing(honest: Any) -> None:
    idle = dataclasses.replace(
        honest, points=np.concatenate([honest.points, honest.points[:1]]),
        weights=np.append(honest.weights, 0.0), digest="",
    )  # fmt: skip
    assert idle.verify(bowl, constraints=circle(1.0), seed=5).ok


def test_constraints_out_of_reach_carry_no_multiplier(honest: Any) -> None:
    """x x <= 1.5 has the same gradients, and its limit is not in the ball."""
    assert "activity" in refused(honest, constraints=circle(1.5))
    assert "feasibility" in refused(honest, constraints=circle(0.9))
    # A witness from elsewhere is outside the ball; another function breaks the bound.
    far = dataclasses.replace(
        honest, witnesses=np.array([[1.0, 1.0]]), witness_index=np.array([0]), digest=""
    )
    assert "witnesses" in refused(far)
    assert refused(honest, fun=lambda x: bowl(x) + x[0]) & {"bound", "slopes"}
    assert "constraints" in refused(honest, constraints=[circle(1.0), circle(2.0)])
    assert "content" in refused(dataclasses.replace(honest, eps=honest.eps, digest="0" * 64))


def test_noisy_constraints_are_refused(honest: Any) -> None:
    rng = np.random.default_rng(0)
    noisy = NonlinearConstraint(lambda x: float(x @ x) - 1e-6 * rng.random(), -np.inf, 1.0)
    assert "deterministic" in refused(honest, constraints=noisy)


TRAPS: dict[str, Any] = {
    # Always true, with gradients on both sides: anything along e_1 is cancelled.
    "a ridge": NonlinearConstraint(lambda x: -abs(x[0]), -np.inf, 0.0),
    # Its gradient vanishes where it is reached.
    "a square": NonlinearConstraint(lambda x: float(x[0] ** 2), -np.inf, 0.0),
    # An equality as two inequalities.
    "two sides": NonlinearConstraint(lambda x: np.array([x[0], -x[0]]), -np.inf, 0.0),
}


@pytest.mark.parametrize("name", TRAPS)
def test_degenerate_constraints_never_make_a_success(name: str) -> None:
    def f(x: np.ndarray) -> float:
        return float(x[0] + 0.1 * x[1] ** 2)

    found = gs.certify(f, [0.0, 0.0], "2-point", constraints=TRAPS[name], delta=1e-2, eps=0.1,
                       rng=0)  # fmt: skip
    verdict = found.verify(f, constraints=TRAPS[name], seed=1)
    if name == "two sides":  # one of them suffices, and is a fair reason
        assert verdict.ok or found.degenerate
        return
    assert found.degenerate or found.eps >= 0.9
    assert not verdict.ok or found.eps >= 0.9
    forged = dataclasses.replace(found, qualification=1.0, digest="")
    assert not forged.verify(f, constraints=TRAPS[name], seed=1).ok or found.eps >= 0.9


def test_values_that_do_not_change_prove_nothing_of_constraints() -> None:
    """A constraint in single precision is flat over small boxes: its slope there is not 0."""
    coarse = NonlinearConstraint(lambda x: float(np.float32(1000.0 + x.sum())), -np.inf, 1000.0)

    def f(x: np.ndarray) -> float:
        return float(-x.sum())

    for seed in range(3):
        found = gs.certify(f, [0.0, 0.0], "2-point", constraints=coarse, delta=1e-5, rng=seed)
        assert found.eps >= 0.5 or found.degenerate or not found.active
        assert found.eps >= 0.5 or not found.verify(f, constraints=coarse).ok


def test_what_it_says_of_bad_input() -> None:
    with pytest.raises(gs.GoldsteinError, match="knows no bounds and no constraints"):
        gs.minimize(bowl, [0.5, 0.0], method="zeroth-order", constraints=circle(1.0), eps=0.1,
                    delta=0.1)  # fmt: skip
    with pytest.raises(gs.GoldsteinError, match="expected finite"):
        gs.minimize(bowl, [0.5, 0.0], "2-point", eps=0.1, delta=0.1,
                    constraints={"type": "ineq", "fun": lambda x: np.nan})  # fmt: skip
