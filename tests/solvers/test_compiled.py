"""`auto` in machine code: the same promises as `auto`, for functions compiled by Numba or not."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

import goldstein as gs
from goldstein.solvers import Request
from goldstein.solvers.compiled import CompiledAuto
from goldstein.solvers.compiled.solver import CompiledState
from goldstein.solvers.tuning import TUNING

ROW = np.array([3.0, -1.0, 2.0, 0.5])
ON = {"compiled": True}

# Kinds of answers, chosen by a number, so that one compilation serves all tests.
FINE, NAN_VALUE, NAN_GRADIENT, RAISES, KINKS, FAR_NAN, SHORT = range(7)


@numba.njit
def value(x: Any, kind: Any, count: Any) -> Any:
    """A maximum of squares and a sum of kinks; the minimum is 0 at 0."""
    count[0] += 1
    if kind == NAN_VALUE and count[0] > 3:
        return np.nan
    if kind == FAR_NAN and np.abs(x).max() > 4.0:
        return np.nan
    if kind == RAISES and count[0] > 5:
        raise ValueError("not today")
    top, total = 0.0, 0.0
    for i in range(x.size):
        top = max(top, x[i] * x[i])
        total += abs(x[i])
    x[:] = 7.0  # whoever lends us a point must lend a copy
    return top + total


@numba.njit
def gradient(x: Any, kind: Any, count: Any) -> Any:
    count[1] += 1
    if kind == NAN_GRADIENT and count[1] > 2:
        return np.full(x.size, np.nan)
    if kind == SHORT:
        return np.zeros(x.size - 1)
    top = 0
    for i in range(x.size):
        if abs(x[i]) > abs(x[top]):
            top = i
    g = np.sign(x)
    if kind == KINKS and not g.all():
        raise gs.KinkError("an entry is zero")
    g[top] += 2.0 * x[top]
    return g


def solve(
    kind: int = FINE, x0: Any = ROW, eps: float = 1e-3, rng: int = 0, **more: Any
) -> tuple[gs.Result, np.ndarray]:
    """Return the result and the number of calls that were really made."""
    count = np.zeros(2, dtype=np.int64)
    options = {**ON, **more.pop("options", {})}
    pair = value, gradient
    if more.pop("plain", False):  # the same functions, out of the sight of compiled code
        pair = (lambda x, kind, count: value(x, kind, count)), lambda *all: gradient(*all)
    res = gs.minimize(
        pair[0], x0, pair[1], args=(kind, count), eps=eps, delta=eps, rng=rng, options=options,
        **more,
    )  # fmt: skip
    return res, count


@pytest.mark.parametrize("eps", [1e-2, 1e-4, 1e-6])
def test_finds_the_minimum_and_proves_it(eps: float) -> None:
    res, _ = solve(eps=eps)
    assert res.success
    assert res.method == "auto (compiled)"
    assert res.method in str(res)
    assert res.certificate.meta["method"] == res.method
    assert np.abs(res.x).max() <= 10 * eps
    assert res.certificate.eps <= eps
    fresh = np.zeros(2, dtype=np.int64)
    check = res.certificate.verify(lambda x: value(x, FINE, fresh), lambda x: gradient(x, 0, fresh))
    assert check.ok
    assert fresh[1] > 0


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("dim", [1, 2, 30])
def test_every_call_is_counted(dim: int, plain: bool) -> None:
    res, count = solve(x0=np.linspace(-3.0, 2.0, dim), plain=plain)
    assert res.success
    assert (res.nfev, res.ngev) == tuple(count)


@pytest.mark.parametrize("eps", [1e-2, 1e-5])
def test_who_answers_does_not_matter(eps: float) -> None:
    """Compiled code and Python ask the same function at the same points."""
    for dim in (2, 9):
        x0 = np.linspace(-3.0, 2.0, dim)
        (one, count), (other, counted) = (solve(x0=x0, eps=eps, plain=p) for p in (False, True))
        assert np.array_equal(one.x, other.x)
        assert np.array_equal(one.certificate.points, other.certificate.points)
        assert count.tolist() == counted.tolist()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 20])
def test_the_budget_is_met_exactly(limit: int, plain: bool) -> None:
    res, count = solve(eps=1e-6, max_calls=limit, x0=np.linspace(-3.0, 2.0, 12), plain=plain)
    assert res.status is gs.Status.OUT_OF_CALLS
    assert res.nfev + res.ngev == count.sum() == limit


@numba.njit
def tent(x: Any, lowest: Any) -> Any:
    """The distance from a far point; the lowest value asked for is noted."""
    f = np.abs(x - 1e6).sum()
    lowest[0] = min(lowest[0], f)
    return f


@numba.njit
def tent_gradient(x: Any, lowest: Any) -> Any:
    return np.sign(x - 1e6)


@pytest.mark.parametrize("calls", [8, 15, 22])
def test_calls_that_run_out_in_a_line_search_lose_nothing(calls: int) -> None:
    """The step is doubled far from the minimum; its gains belong to the result."""
    lowest = np.array([np.inf])
    res = gs.minimize(
        tent, np.zeros(2), tent_gradient, args=(lowest,), eps=0.1, delta=1e-3, rng=0,
        max_calls=calls, options=ON,
    )  # fmt: skip
    assert not res.success
    # What the last word asks for in the ball around x may be a little lower; no step was lost.
    assert res.fun <= lowest[0] + 2e-3 < 2e6 - 10.0


def test_a_seed_decides_everything_and_no_other_generator_is_touched() -> None:
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, again, cut, other = (
        solve(rng=rng, options=more)[0]
        for rng, more in ((3, {}), (3, {}), (3, {"stretch": 1}), (4, {}))
    )
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    for same in (again, cut):  # where the run returns to Python does not matter
        assert np.array_equal(one.x, same.x)
        assert np.array_equal(one.certificate.points, same.certificate.points)
        assert (one.nfev, one.ngev) == (same.nfev, same.ngev)
    assert not np.array_equal(one.certificate.points, other.certificate.points)


@pytest.mark.parametrize("dim", [2, 9])
def test_certifies_without_the_fast_half(dim: int) -> None:
    res, count = solve(x0=np.linspace(-3.0, 2.0, dim), eps=1e-2, options={"newton": False})
    assert res.success
    assert (res.nfev, res.ngev) == tuple(count)
    assert (np.diff(res.history.fun) <= 0).all()


class Sabotaged(CompiledAuto):
    """Spoils the fast half's memory whenever it can."""

    def __init__(self, kind: str) -> None:
        super().__init__(stretch=1)
        self.kind = kind

    def step(self, oracle: Any, state: CompiledState, request: Request) -> None:
        arrays, size = state.memory.newton, state.x.size
        factor = arrays["factor"]
        if self.kind == "ascent":  # J'g is taken for the pieces themselves, and J is -1
            factor[:] = -np.eye(size)
            state.memory.model["rows"][:] = arrays["rows"]
        elif self.kind == "nan":
            factor[:] = np.nan
        elif self.kind == "zero":
            factor[:] = 0.0
        elif self.kind == "noise":
            factor[:] = 1e3 * np.cos(np.arange(size * size).reshape(size, size) + state.fx)
        else:  # it believes to stand elsewhere, and to stand well there
            arrays["x"][:] += 1.0
            state.memory.record.newton.fx = -1e9
        arrays["levels"][:] += 1.0
        arrays["stale"].view(np.int64)[:] = self.kind != "ascent"
        super().step(oracle, state, request)


@pytest.mark.parametrize("kind", ["ascent", "nan", "zero", "noise", "lie"])
def test_certifies_with_a_sabotaged_fast_half(kind: str) -> None:
    """Noise for a metric may cost all the calls: no step is worth anything then. But no truth."""
    count = np.zeros(2, dtype=np.int64)
    start = np.linspace(-3.0, 2.0, 8)
    res = gs.minimize(
        value, start, gradient, args=(FINE, count), eps=1e-2, delta=1e-2, rng=0,
        method=Sabotaged(kind), max_calls=4000,
    )  # fmt: skip
    fresh = np.zeros(2, dtype=np.int64)
    assert res.certificate.verify(value, gradient, args=(FINE, fresh)).ok
    assert res.success or (kind == "noise" and res.status is gs.Status.OUT_OF_CALLS)
    assert res.fun <= 1e-2 * value(start, FINE, fresh)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (NAN_VALUE, "value is nan"),
        (NAN_GRADIENT, "gradient is nan at coordinate 0"),
        (RAISES, "ValueError: not today"),
        (SHORT, r"shape \(3,\), expected \(4,\)"),
    ],
)
@pytest.mark.parametrize("plain", [False, True])
def test_a_bad_answer_names_the_point(kind: int, words: str, plain: bool) -> None:
    with pytest.raises(gs.OracleError, match=words) as caught:
        solve(kind, eps=1e-6, plain=plain)
    assert caught.value.point.shape == (4,)
    assert np.isfinite(caught.value.point).all()
    assert caught.value.last_good is not None


@pytest.mark.parametrize("plain", [False, True])
def test_a_trial_that_goes_too_far_is_taken_back(plain: bool) -> None:
    res, _ = solve(FAR_NAN, x0=np.full(4, 3.9), plain=plain)
    assert res.success


@pytest.mark.parametrize("plain", [False, True])
def test_a_kink_is_answered_by_a_step_aside(plain: bool) -> None:
    """Numba can raise the error; Python learns once that it means a kink."""
    res, count = solve(KINKS, x0=np.array([0.0, 3.0, 0.0, 1.0]), plain=plain)
    assert res.success
    assert (res.nfev, res.ngev) == tuple(count)


def test_callbacks_history_and_time_limit_work_between_stretches() -> None:
    seen: list[np.ndarray] = []
    res, _ = solve(x0=np.linspace(-3.0, 2.0, 30), options={"stretch": 5}, callback=seen.append)
    assert res.success
    assert len(seen) >= 3
    assert (np.diff(res.history.fun) <= 0).all()
    often: list[np.ndarray] = []
    solve(x0=np.linspace(-3.0, 2.0, 30), plain=True, callback=often.append)
    assert len(often) > len(seen)  # with plain functions after every step
    stopped, _ = solve(options={"stretch": 1}, callback=lambda x: True)
    assert stopped.status is gs.Status.STOPPED
    large = np.linspace(-3.0, 2.0, 300)
    late, _ = solve(x0=large, eps=1e-4, options={"stretch": 1}, max_time=1e-9)
    assert late.status is gs.Status.OUT_OF_TIME


@numba.njit
def both(x: Any) -> Any:
    """A tent upside down: unbounded below along the first entry."""
    return x[0] + abs(x[1]), np.array([1.0, np.sign(x[1])])


def test_one_function_may_return_the_pair() -> None:
    res = gs.minimize(both, [0.0, 1.0], True, eps=1e-2, delta=1e-2, rng=0, options=ON)
    assert res.status is gs.Status.UNBOUNDED


def test_what_numba_cannot_call_python_does() -> None:
    """Plain functions, an oracle, arguments that are no numbers."""
    ask: dict[str, Any] = {"eps": 1e-2, "delta": 1e-2, "rng": 0, "options": ON}
    plain = gs.minimize(value.py_func, ROW, gradient.py_func, args=(FINE, np.zeros(2)), **ask)
    mixed = gs.minimize(value, ROW, gradient.py_func, args=(FINE, np.zeros(2)), **ask)
    named = gs.minimize(value.py_func, ROW, gradient.py_func, args=(FINE, [0, 0]), **ask)
    assert plain.success
    for same in (mixed, named):
        assert np.array_equal(plain.x, same.x)
    assert gs.minimize(gs.problems.get("maxq", d=3), np.ones(3), **ask).success


def test_what_is_wrong_with_the_request_is_said() -> None:
    ask: dict[str, Any] = {"eps": 1e-2, "delta": 1e-2, "options": ON}
    with pytest.raises(gs.OracleError, match="raised TypeError"):
        gs.minimize(value, [1.0], gradient, args=(0,), **ask)
    with pytest.raises(gs.InputTypeError, match="'compiled' of method 'auto' must be True or"):
        gs.minimize(value, [1.0], gradient, **{**ask, "options": {"compiled": 1}})
    with pytest.raises(gs.InputError, match="stretch"):
        CompiledAuto(stretch=0)


@pytest.mark.parametrize("more", [{}, {"stretch": 10, "newton": True}])
def test_with_many_variables_the_faster_search_runs_whatever_was_asked_for(more: Any) -> None:
    for d, method in (
        (TUNING.dense_limit, "auto (compiled)"),
        (TUNING.dense_limit + 1, "auto"),
    ):
        problem = gs.problems.get("chained_crescent_1", d=d)
        res = gs.minimize(problem, problem.x0, eps=1e-2, delta=1e-2, rng=0, options={**ON, **more})
        assert res.method == method
        assert res.success


def test_a_run_resumes_from_its_journal(tmp_path: Any) -> None:
    path = tmp_path / "journal"
    whole, _ = solve(eps=1e-5)
    cut, _ = solve(eps=1e-5, checkpoint=path, callback=lambda x: x[0] < 1.0)
    resumed, _ = solve(eps=1e-5, checkpoint=path)
    assert cut.status is gs.Status.STOPPED
    assert np.array_equal(whole.x, resumed.x)
    assert (whole.nfev, whole.ngev) == (resumed.nfev, resumed.ngev)


def test_compiled_off_is_auto() -> None:
    count = np.zeros(2, dtype=np.int64)
    ask: dict[str, Any] = {"args": (FINE, count), "eps": 1e-2, "delta": 1e-2, "rng": 0}
    off = gs.minimize(value, ROW, gradient, options={"compiled": False}, **ask)
    plain = gs.minimize(value, ROW, gradient, **ask)
    assert np.array_equal(off.x, plain.x)
