"""What is printed, and shown in a notebook: nothing has the default repr of Python."""

from __future__ import annotations

import numpy as np
import pytest

import goldstein as gs
from goldstein import parallel
from goldstein.oracles import as_oracle


def f(x):
    return abs(x).sum()


ASKED = {"eps": 1e-3, "delta": 1e-3, "rng": 0}
THINGS = {
    "many starts": lambda: parallel.multistart(f, np.eye(2), np.sign, n_jobs=1, **ASKED),
    "target": lambda: gs.suggest_target(f, [1.0, 2.0], np.sign),
    "gradient check": lambda: gs.check_gradient(f, np.sign, [1.0, 2.0]),
    "search": lambda: gs.Search([1.0, 2.0], eps=1e-3, delta=1e-3),
    "result": lambda: gs.minimize(f, [1.0, 2.0], np.sign, **ASKED),
}


@pytest.mark.parametrize("name", THINGS)
def test_things_show_themselves(name: str) -> None:
    thing = THINGS[name]()
    assert " object at 0x" not in repr(thing)
    shown = thing._repr_html_()
    assert shown.startswith(("<pre>", "<table>"))
    assert "<Search" not in shown  # escaped


def test_oracles_say_what_they_are() -> None:
    assert repr(as_oracle(f, np.sign)) == "<FunctionOracle f, any number of variables>"


def test_the_table_of_a_result_has_x() -> None:
    res = THINGS["result"]()
    assert '<th scope="row" style="text-align: left">x</th>' in res._repr_html_()
    assert res.njev == res.ngev


def test_next_to_zero_there_is_nothing_to_compare_delta_with() -> None:
    assert "of the largest |x_i|" not in str(THINGS["result"]())


@pytest.mark.parametrize(
    ("word", "hint"), [("max_iter", "max_calls"), ("grad", "jac"), ("gradient", "jac")]
)
def test_words_of_other_libraries_are_answered_with_ours(word: str, hint: str) -> None:
    with pytest.raises(gs.errors.InputTypeError, match=hint):
        gs.minimize(f, [1.0, 2.0], **{word: np.sign}, **ASKED)
