"""A search that asks and is told is `minimize`, call by call."""

from __future__ import annotations

import gc
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein import Search

METHODS = ["auto", "bundle", "pingd", "psingd", "o2nc"]


class Spy:
    """Writes down every question and answers it."""

    def __init__(self, name: str, dim: int) -> None:
        self.problem = gs.problems.get(name, d=dim)
        self.asked: list[tuple[str, bytes]] = []

    def value(self, x: np.ndarray) -> float:
        self.note("value", x)
        return self.problem.value(x)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        self.note("gradient", x)
        return self.problem.gradient(x)

    def note(self, what: str, x: np.ndarray) -> None:
        """A search that was just told does not ask the same again; `minimize` may."""
        if (what, x.tobytes()) not in self.asked[-1:]:
            self.asked.append((what, x.tobytes()))

    def answer(self, search: Search, most: float = np.inf) -> int:
        """Answer up to `most` questions; return how many there were."""
        count = 0
        while count < most and (question := search.ask()) is not None:
            assert question.value != question.gradient
            if question.value:
                search.tell(value=self.value(question.point))
            else:
                search.tell(gradient=self.gradient(question.point))
            count += 1
        return count


def both(method: str, **more: Any) -> tuple[Spy, gs.Result, Search]:
    plain, told = Spy("chained_crescent_1", 6), Spy("chained_crescent_1", 6)
    request: dict[str, Any] = {"eps": 0.1, "delta": 0.05, "method": method, "rng": 3, **more}
    res = gs.minimize(plain.value, plain.problem.x0, plain.gradient, **request)
    search = Search(told.problem.x0, **request)
    told.answer(search)
    assert told.asked == plain.asked
    return plain, res, search


@pytest.mark.parametrize("method", METHODS)
def test_asks_what_minimize_asks_and_returns_what_it_returns(method: str) -> None:
    _, res, search = both(method, max_calls=400)
    assert search.ask() is None
    assert search.result is not None
    assert np.array_equal(search.result.x, res.x)
    assert (search.result.fun, search.result.status) == (res.fun, res.status)
    assert (search.result.nfev, search.result.ngev) == (res.nfev, res.ngev)


@pytest.mark.parametrize("calls", [0, 1, 7, 20])
def test_a_pickled_search_goes_on_where_it_was(calls: int) -> None:
    plain, res, _ = both("auto")
    spy = Spy("chained_crescent_1", 6)
    search = Search(spy.problem.x0, eps=0.1, delta=0.05, rng=3)
    spy.answer(search, calls)
    open_question = search.ask()
    assert open_question is not None
    search = pickle.loads(pickle.dumps(search))
    assert np.array_equal(search.ask().point, open_question.point)
    spy.answer(search)
    assert spy.asked == plain.asked
    assert np.array_equal(search.result.x, res.x)


def test_what_was_told_may_be_overwritten_at_once() -> None:
    """One array for all gradients, one for all values; the pickled search has them apart."""
    problem = gs.problems.get("chained_crescent_1", d=6)
    request: dict[str, Any] = {"eps": 0.1, "delta": 0.05, "rng": 3}
    res = gs.minimize(problem, problem.x0, **request)
    search, value, gradient = Search(problem.x0, **request), np.empty(()), np.empty(6)
    while (question := search.ask()) is not None:
        if question.value:
            value[...] = problem.value(question.point)
            search.tell(value=value)
        else:
            gradient[:] = problem.gradient(question.point)
            search.tell(gradient=gradient)
        value[...] = gradient[:] = np.nan
    for found in (search.result, pickle.loads(pickle.dumps(search)).result):
        assert found is not None
        assert (found.fun, found.ngev, found.success) == (res.fun, res.ngev, True)


def test_a_question_stays_open_until_it_is_answered() -> None:
    search = Search([1.0, 2.0], eps=0.1, delta=0.1, rng=0)
    first = search.ask()
    assert first is search.ask()
    assert search.result is None
    with pytest.raises(gs.InputError, match=r"asks for the value; tell\(value=\.\.\.\)"):
        search.tell(gradient=np.ones(2))
    assert first is search.ask()


def test_what_was_volunteered_is_not_asked_for() -> None:
    """Values and gradients at one point: the search counts both, and asks once."""
    problem = gs.problems.get("chained_crescent_1", d=6)
    search = Search(problem.x0, eps=0.1, delta=0.05, rng=3)
    asked = 0
    while (question := search.ask()) is not None:
        asked += 1
        at = question.point
        search.tell(value=problem.value(at), gradient=problem.gradient(at))
    _, res, _ = both("auto")
    assert np.array_equal(search.result.x, res.x)
    assert asked < search.result.nfev + search.result.ngev == res.nfev + res.ngev


def test_kinks_and_bad_answers_are_understood() -> None:
    search = Search([0.0, 1.0], eps=1e-2, delta=1e-2, rng=0)
    kinks = 0
    while (question := search.ask()) is not None:
        at = question.point
        if question.value:
            search.tell(value=np.abs(at).sum())
        elif at.all():
            search.tell(gradient=np.sign(at))
        else:
            kinks += 1
            search.tell(kink=True)
    assert search.result.success
    assert kinks > 0
    with pytest.raises(gs.InputError, match="is over"):
        search.tell(value=0.0)
    bad = Search([1.0], eps=0.1, delta=0.1, rng=0)
    bad.tell(value=np.nan)
    for _ in range(2):
        with pytest.raises(gs.OracleError, match="nan"):
            bad.ask()


BAD_TELLS = [
    ({"value": "three"}, "expected a number"),
    ({"value": [1.0, 2.0]}, "expected a number"),
    ({"value": 1.0, "gradient": [1.0]}, r"shape \(1,\), expected \(2,\)"),
    ({"value": 1.0, "gradient": [1.0, np.nan]}, "nan at coordinate 1"),
    ({"value": 1j}, "number"),
]


@pytest.mark.parametrize(("told", "said"), BAD_TELLS)
def test_what_can_be_no_answer_is_refused_and_the_question_stays(told: Any, said: str) -> None:
    problem = gs.problems.get("crescent")
    search = Search(problem.x0, eps=1e-3, delta=1e-3, rng=0)
    question = search.ask()
    with pytest.raises(gs.InputError, match=said):
        search.tell(**told)
    assert search.ask() is question
    with pytest.raises(TypeError):
        search.tell(values=1.0)
    while (question := search.ask()) is not None:
        search.tell(value=problem.value(question.point), gradient=problem.gradient(question.point))
    assert search.result.success


def test_bounds_are_part_of_the_request() -> None:
    problem, bounds = gs.problems.get("crescent"), [(-1.5, 0.5), (0.25, None)]
    task = {"eps": 1e-3, "delta": 1e-3, "rng": 0, "bounds": bounds}
    res = gs.minimize(problem, problem.x0, **task)
    search = pickle.loads(pickle.dumps(Search(problem.x0, **task)))
    while (question := search.ask()) is not None:
        assert (question.point >= [-1.5, 0.25]).all()
        assert question.point[0] <= 0.5
        if question.value:
            search.tell(value=problem.value(question.point))
        else:
            search.tell(gradient=problem.gradient(question.point))
    assert search.result.success
    assert np.array_equal(search.result.x, res.x)
    assert search.result.certificate.verify(problem, bounds=bounds).ok


def test_nothing_is_left_of_a_search_that_is_given_up() -> None:
    before = threading.active_count()
    searches = [Search(np.ones(3), eps=0.1, delta=0.1, rng=k) for k in range(5)]
    threads = []
    for search in searches:
        search.ask()
        threads.append(search._thread)
    assert threading.active_count() == before + 5
    del searches, search
    gc.collect()
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_the_function_and_the_clock_belong_to_the_caller() -> None:
    with pytest.raises(gs.InputError, match="does not take callback, max_time"):
        Search([1.0], eps=0.1, delta=0.1, callback=print, max_time=3.0)
    with pytest.raises(gs.InputError, match=r"does not take maxcalls.*Did you mean 'max_calls'"):
        Search([1.0], eps=0.1, delta=0.1, maxcalls=3)


@pytest.mark.parametrize("state", [{}, {"request": 3, "answers": []}, {"request": {}}, None, 5])
def test_a_state_that_is_none_is_refused_in_words(state: Any) -> None:
    with pytest.raises(gs.InputError, match="not the state of a Search"):
        gs.Search.__new__(gs.Search).__setstate__(state)
    with pytest.raises(gs.InputError, match="no answers"):
        gs.Search.__new__(gs.Search).__setstate__({"request": {}, "answers": [(1.0, None)]})


def test_answers_of_a_stranger_are_believed_and_found_out_by_verify() -> None:
    """A search proves what it was told; whoever has the function need not believe it."""
    began = gs.Search([3.0, -1.0], eps=1e-2, delta=1e-2, rng=0)
    while began.ask() is not None:
        began.tell(value=0.0, gradient=np.zeros(2))  # another function, flat everywhere
    search = pickle.loads(pickle.dumps(began))
    assert search.result.success
    found = search.result.certificate.verify(lambda x: float(np.abs(x).sum()), np.sign)
    assert not found.ok
