"""What a user's mistake must not turn into: a success, a silence, or a lost run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.functions import VALLEY_START as START
from tests.functions import valley as f
from tests.functions import valley_gradient as grad

import goldstein as gs

ASK: dict[str, Any] = {"eps": 1e-3, "delta": 1e-3}


def without(k: int) -> Any:
    def wrong(x: np.ndarray) -> np.ndarray:
        g = grad(x)
        g[k] = 0.0
        return g

    return wrong


WRONG = {
    "sign": lambda x: -grad(x),
    "twice": lambda x: 2 * grad(x),
    "a tenth": lambda x: 0.1 * grad(x),
    "no coordinate 0": without(0),
    "no coordinate 1": without(1),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("seed", range(3))
def test_a_wrong_gradient_ends_the_run_with_its_name(kind: str, seed: int) -> None:
    res = gs.minimize(f, START, WRONG[kind], rng=seed, **ASK)
    assert not res.success
    assert res.status is gs.Status.WRONG_GRADIENT
    assert "check_gradient" in res.message
    assert "coordinate" in res.message
    assert res.certificate is None
    assert res.nfev + res.ngev < 400


def test_a_gradient_of_the_wrong_sign_costs_a_few_dozen_calls() -> None:
    res = gs.minimize(f, START, WRONG["sign"], rng=0, **ASK)
    assert res.nfev + res.ngev <= 150


@pytest.mark.parametrize("kind", ["twice", "a tenth", "no coordinate 0"])
def test_verify_and_certify_notice_it_too(kind: str) -> None:
    unchecked = {"options": {"check_gradient": False}}
    res = gs.minimize(f, START, WRONG[kind], rng=0, **ASK, **unchecked)
    assert res.success
    found = res.certificate.verify(f, WRONG[kind])
    assert [c.name for c in found.checks if not c.ok] == ["values"]
    assert res.certificate.verify(f, WRONG[kind], check_values=False).ok
    with pytest.raises(gs.WrongGradientError, match="check_gradient"):
        gs.certify(f, res.x, WRONG[kind], delta=1e-3, rng=0)


def test_right_gradients_are_never_called_wrong() -> None:
    """Kinks, steep curvature, flat functions, values with few digits."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 5)), rng.standard_normal(30)
    functions = [
        (lambda x: np.abs(A @ x - b).sum(), lambda x: A.T @ np.sign(A @ x - b)),
        (lambda x: 1e8 + np.abs(x).sum(), np.sign),
        (lambda x: 1e6 * (x @ x) + np.abs(x).max(), None),
        (lambda x: 0.0, lambda x: np.zeros(5)),
        (lambda x: round(float(x @ x), 7), lambda x: 2 * x),
        (lambda x: np.sqrt(np.abs(x)).sum(), lambda x: 0.5 * np.sign(x) / np.sqrt(np.abs(x))),
    ]

    def steep(x: np.ndarray) -> np.ndarray:
        g = 2e6 * x
        k = int(np.abs(x).argmax())
        g[k] += np.sign(x[k])
        return g

    for value, gradient in functions:
        for delta in (1e-1, 1e-3, 1e-6):
            res = gs.minimize(
                value, rng.standard_normal(5), gradient or steep, eps=1e-3, delta=delta, rng=1,
                max_calls=1000, options={"check_gradient": True},
            )  # fmt: skip
            assert res.status is not gs.Status.WRONG_GRADIENT


# --- one story at the end of the budget ---


def corners(d: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((d + 20, d)), rng.standard_normal(d + 20)

    def value(x: np.ndarray) -> float:
        return float(np.abs(A @ x - b).max() + 0.05 * x @ x)

    def slope(x: np.ndarray) -> np.ndarray:
        u = A @ x - b
        k = int(np.abs(u).argmax())
        return A[k] * np.sign(u[k]) + 0.1 * x

    return value, slope


@pytest.mark.filterwarnings("ignore::goldstein.PrecisionWarning")
@pytest.mark.parametrize("calls", [20, 60, 200, 1000, 3000])
@pytest.mark.parametrize("method", ["auto", "bundle"])
def test_a_run_that_is_cut_short_tells_one_story(method: str, calls: int) -> None:
    value, slope = corners(30)
    res = gs.minimize(
        value, np.zeros(30), slope, eps=1e-7, delta=1e-7, rng=0, max_calls=calls, method=method
    )
    assert res.nfev + res.ngev <= calls
    assert np.array_equal(res.certificate.x, res.x)
    assert all(res.certificate.verify(value, slope, seed=seed).ok for seed in (None, 0, 1))
    meets = res.certificate.eps <= 1e-7 and res.certificate.delta <= 1e-7
    assert res.success == meets


# --- Ctrl-C --------------------------------------------------------------------------------------


def interrupted(at: list[int]) -> tuple[Any, Any]:
    calls = 0

    def tick() -> None:
        nonlocal calls
        calls += 1
        if calls in at:
            raise KeyboardInterrupt

    value, slope = corners(10)
    return lambda x: (tick(), value(x))[1], lambda x: (tick(), slope(x))[1]


@pytest.mark.filterwarnings("ignore::goldstein.PrecisionWarning")
def test_ctrl_c_returns_the_best_point_and_its_certificate() -> None:
    value, slope = corners(10)
    res = gs.minimize(*_args(interrupted([60])), eps=1e-9, delta=1e-9, rng=0)
    assert res.status is gs.Status.STOPPED
    assert not res.success
    assert res.fun == value(res.x) < value(np.zeros(10))
    assert res.certificate.verify(value, slope).ok


def test_a_second_ctrl_c_raises() -> None:
    with pytest.raises(KeyboardInterrupt):
        gs.minimize(*_args(interrupted([60, 61])), eps=1e-9, delta=1e-9, rng=0)


def _args(pair: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    return pair[0], np.zeros(10), pair[1]


# --- which eps, which delta ---


def test_a_relative_accuracy_does_not_depend_on_units() -> None:
    plain = gs.minimize(f, START, grad, rel_eps=1e-4, delta=1e-3, rng=0)
    tall = gs.minimize(
        lambda x: 1024 * f(x), START, lambda x: 1024 * grad(x), rel_eps=1e-4, delta=1e-3, rng=0
    )
    assert plain.success
    assert tall.success
    assert tall.certificate.eps <= 1e-4 * tall.gradient_scale
    assert tall.gradient_scale == pytest.approx(1024 * plain.gradient_scale)
    assert plain.certificate.eps <= 1e-4 * plain.gradient_scale
    assert "of the first gradient" in repr(plain)


def test_one_accuracy_is_needed_and_only_one() -> None:
    for wrong in ({}, {"eps": 1e-3, "rel_eps": 1e-3}):
        with pytest.raises(TypeError, match="rel_eps"):
            gs.minimize(f, START, grad, delta=1e-3, **wrong)


def test_a_ball_larger_than_everything_is_said() -> None:
    res = gs.minimize(f, START, grad, eps=1e-3, delta=50.0, rng=0)
    assert "delta = 50 is larger" in res.message
    assert "note" not in gs.minimize(f, START, grad, rng=0, **ASK).message


def test_the_proposal_keeps_its_promise_on_convex_functions() -> None:
    """f(x) - min f <= f_tol, where the minimiser is no farther than x0 is large."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((20, 4))
    truth = rng.uniform(-0.5, 0.5, 4)
    b = A @ truth

    def value(x: np.ndarray) -> float:
        return float(np.abs(A @ x - b).max())

    def slope(x: np.ndarray) -> np.ndarray:
        u = A @ x - b
        k = int(np.abs(u).argmax())
        return A[k] * np.sign(u[k])

    for f_tol in (1e-1, 1e-3):
        target = gs.suggest_target(value, np.zeros(4), slope, f_tol=f_tol)
        res = gs.minimize(value, np.zeros(4), slope, eps=target.eps, delta=target.delta, rng=0)
        assert res.success
        assert res.fun <= 2 * f_tol
    assert gs.suggest_target(value, np.zeros(4), slope, x_tol=1e-5).delta == 1e-5


# --- points of any shape ---


def test_matrices_and_trees_come_back_as_they_were() -> None:
    target = np.arange(6.0).reshape(2, 3)
    res = gs.minimize(
        lambda X: np.abs(X - target).sum(), np.zeros((2, 3)), lambda X: np.sign(X - target),
        rng=0, **ASK,
    )  # fmt: skip
    assert res.success
    assert res.x.shape == (2, 3)
    assert np.allclose(res.x, target, atol=1e-2)
    assert res.certificate.verify(
        lambda X: np.abs(X - target).sum(), lambda X: np.sign(X - target)
    ).ok

    def tree_value(p: dict[str, Any]) -> float:
        return abs(p["b"] - 1.0) + np.abs(p["w"][0]).sum() + np.abs(p["w"][1] + 2).sum()

    def tree_slope(p: dict[str, Any]) -> dict[str, Any]:
        return {"b": np.sign(p["b"] - 1.0), "w": (np.sign(p["w"][0]), np.sign(p["w"][1] + 2))}

    seen: list[Any] = []
    res = gs.minimize(
        tree_value, {"b": 3.0, "w": (np.ones((2, 2)), np.ones(3))}, tree_slope, rng=0,
        callback=seen.append, **ASK,
    )  # fmt: skip
    assert res.success
    assert isinstance(res.x["w"], tuple)
    assert res.x["w"][0].shape == (2, 2)
    assert set(seen[-1]) == {"b", "w"}
    assert res.certificate.verify(tree_value, tree_slope).ok
    assert "b:" in repr(res)
    certificate = gs.certify(tree_value, res.x, tree_slope, delta=1e-3, rng=0)
    assert certificate.eps < 1e-3
    assert certificate.verify(tree_value, tree_slope).ok


def test_a_certificate_of_a_tree_survives_its_file(tmp_path: Any) -> None:
    def value(p: dict[str, Any]) -> float:
        return float(np.abs(p["a"]).sum())

    def slope(p: dict[str, Any]) -> dict[str, Any]:
        return {"a": np.sign(p["a"])}

    res = gs.minimize(value, {"a": np.ones((2, 2))}, slope, rng=0, **ASK)
    again = gs.load_certificate(res.certificate.save(tmp_path / "tree.cert"))
    assert not again.verify(value, slope).ok  # a file does not decide how f is called
    assert again.verify(value, slope, like=res.x).ok


FORGED = [["dict", ["a"]], ["dict", ["a", "a"], [1], [1]], ["x"], 7, [-1]]


@pytest.mark.parametrize("layout", FORGED)
def test_a_forged_layout_is_refused_in_words(layout: Any) -> None:
    with pytest.raises(gs.InputError, match="layout"):
        gs.GoldsteinCertificate([0.5], 1e-3, 1.0, [[0.5]], [[1.0]], [1.0], layout=layout)


def test_a_gradient_in_another_layout_is_named() -> None:
    with pytest.raises(TypeError, match=r"array\(3,\).*array\(2, 3\)") as caught:
        gs.minimize(lambda X: np.abs(X).sum(), np.ones((2, 3)), lambda X: np.sign(X[0]), **ASK)
    assert "layout" in str(caught.value)


# --- verdicts ---


def test_a_point_that_is_not_stationary_is_called_so_first() -> None:
    certificate = gs.certify(f, START, grad, delta=1e-3, eps=1e-3, rng=0)
    assert certificate.summary().startswith("NOT stationary to eps = 0.001 within delta")
    assert "f falls along" in certificate.summary()
    assert certificate.verify(f, grad).ok
    good = gs.certify(f, [1.0, 1.0], grad, delta=1e-3, eps=1e-3, rng=0)
    assert good.summary().startswith("(")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [1e-4, 1e-2])
def test_noisy_values_are_called_by_their_name(noise: float, seed: int) -> None:
    """Gradients without noise, values with it: no step can be judged, and no budget helps."""
    rng = np.random.default_rng(seed)
    res = gs.minimize(
        lambda x: f(x) + noise * rng.standard_normal(), START, grad, eps=1e-6, delta=1e-6, rng=seed
    )
    if not res.success:  # the claim is about gradients: it may be met before the noise matters
        assert res.status is gs.Status.NOT_DETERMINISTIC
        assert "two different answers" in res.message
        assert res.nfev + res.ngev < 5000


def test_noise_of_rounding_is_no_noise() -> None:
    """A sum in another order each time, as threads make it."""
    rng = np.random.default_rng(0)

    def shaky(x: np.ndarray) -> float:
        return f(x) * (1 + 1e-15 * rng.standard_normal())

    res = gs.minimize(shaky, START, grad, eps=1e-13, delta=1e-9, rng=0, max_calls=3000)
    assert res.status is not gs.Status.NOT_DETERMINISTIC
