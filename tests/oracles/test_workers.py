"""Many questions at once give the answers of one after the other."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from goldstein.errors import InputError, InputTypeError
from goldstein.oracles.workers import Attempt, mapped


def square(x: float) -> float:
    return x * x


@pytest.mark.parametrize("workers", [None, 1, 2, -1, map])
def test_answers_are_in_order(workers):
    with mapped(workers) as ask:
        assert ask(square, [3.0, 1.0, 2.0]) == [9.0, 1.0, 4.0]
        assert ask(square, []) == []


def test_closures_can_be_sent_to_processes_and_threads():
    shift = 3.0
    with mapped(2) as ask:
        assert ask(lambda x: x + shift, [1.0, 2.0]) == [4.0, 5.0]
    with ThreadPoolExecutor(2) as pool, mapped(pool.map) as ask:
        assert ask(lambda x: x + shift, [1.0, 2.0]) == [4.0, 5.0]


def test_one_failure_does_not_cost_the_others():
    with mapped(2) as ask:
        first, failure = ask(Attempt(lambda x: 1 / x), [2, 0])
    assert first == 0.5
    assert isinstance(failure, ZeroDivisionError)


@pytest.mark.parametrize(
    ("workers", "error"),
    [(0, InputError), (-2, InputError), (True, InputTypeError), ("4", InputTypeError)],
)
def test_what_cannot_be_workers_is_refused(workers, error):
    with pytest.raises(error, match="workers must be"), mapped(workers):
        pass
