"""Many questions at once give the answers of one after the other."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.functions import VALLEY_START, valley, valley_gradient

import goldstein as gs
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles.counted import Attempt
from goldstein.oracles.separable import mapped


def square(x: float) -> float:
    return x * x


@pytest.mark.parametrize("workers", [None, 1, 2, -1, map])
def test_answers_are_in_order(workers):
    with mapped(workers) as ask:
        assert list(ask(square, [3.0, 1.0, 2.0])) == [9.0, 1.0, 4.0]
        assert list(ask(square, [])) == []


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


def backwards(function, items):
    return list(map(function, items))[::-1]


def first_only(function, items):
    return [function(items[0])] * len(items)


def all_but_one(function, items):
    return list(map(function, items))[1:]


def one_too_many(function, items):
    return [*map(function, items), 0.0]


@pytest.mark.parametrize(
    ("workers", "words"),
    [
        (backwards, "another order"),
        (first_only, "another order"),
        (all_but_one, "answers to"),
        (one_too_many, "answers to"),
    ],
)
def test_answers_to_other_questions_are_refused(workers, words):
    """A mistake (`imap_unordered`) that would make claims with gradients of other points."""

    def f(x):
        return float(np.abs(x).sum() + 0.3 * x[0])

    def grad(x):
        return np.sign(x) + [0.3, 0.0, 0.0]

    x, ask = np.array([1.0, -2.0, 0.5]), {"eps": 0.1, "delta": 1e-2, "rng": 0}
    with pytest.raises(InputError, match=words):
        gs.minimize(f, x, grad, workers=workers, **ask)
    with pytest.raises(InputError, match=words):
        gs.certify(f, 1e-6 * x, grad, workers=workers, **ask)
    with pytest.raises(InputError, match=words):
        gs.minimize(f, x, "2-point", workers=workers, **ask)
    honest = gs.minimize(f, x, "2-point", **ask).certificate
    assert honest.verify(f, workers=map).ok
    assert not honest.verify(f, workers=workers).ok


def test_who_answers_without_the_function_is_believed():
    with mapped(lambda function, items: np.abs(items)) as ask:
        assert ask(abs, [-1, 2]) == [1, 2]


def test_a_gradient_that_is_always_the_same_array_is_read_in_time():
    """All answers of a round are given before the first is read."""
    kept = np.empty(2)

    def into_the_same_place(x):
        kept[:] = valley_gradient(x)
        return kept

    task = {"eps": 1e-3, "delta": 1e-3, "rng": 0, "workers": map}
    one = gs.minimize(valley, VALLEY_START, valley_gradient, **task)
    other = gs.minimize(valley, VALLEY_START, into_the_same_place, **task)
    assert (one.nfev, one.ngev, one.fun) == (other.nfev, other.ngev, other.fun)
    assert (one.certificate.gradients == other.certificate.gradients).all()
