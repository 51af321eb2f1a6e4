"""How a function is called: layouts of points, and answers that are looked at before use."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from goldstein.checker.blackbox.perturbed import has_room
from goldstein.checker.constrained.limits import as_box
from goldstein.checker.errors import InputError, InputTypeError, OracleError
from goldstein.checker.function import (
    Asked,
    BlackBox,
    flattened,
    is_vector,
    put_together,
    shown,
    size_of,
    taken_apart,
)
from goldstein.storage.codec import is_layout

FLAT = np.arange(6.0)
#: Points of the numbers 0 to 5, their layouts, and how these are shown.
POINTS: list[tuple[Any, list[Any], str]] = [
    (FLAT, [6], "array(6,)"),
    (FLAT.reshape(2, 3), [2, 3], "array(2, 3)"),
    ([FLAT[:2], FLAT[2:].reshape(2, 2)], ["list", [2], [2, 2]], "list(array(2,), array(2, 2))"),
    ((FLAT[:1], 1.0, FLAT[2:]), ["tuple", [1], [], [4]], "tuple(array(1,), array(), array(4,))"),
    (
        {"a": 0.0, "b": [FLAT[1:3], {"c": FLAT[3:]}]},
        ["dict", ["a", "b"], [], ["list", [2], ["dict", ["c"], [3]]]],
        "{a: array(), b: list(array(2,), {c: array(3,)})}",
    ),
    ([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [2, 3], "array(2, 3)"),
]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return np.shape(a) == np.shape(b) and bool(np.all(np.asarray(a) == np.asarray(b)))


@pytest.mark.parametrize(("point", "layout", "words"), POINTS)
def test_points_are_taken_apart_and_put_together(point: Any, layout: Any, words: str) -> None:
    found, arrays = taken_apart(point, "x")
    assert found == layout
    assert is_layout(found)
    assert np.concatenate([a.ravel() for a in arrays]).tolist() == FLAT.tolist()
    assert flattened(point, layout, "x").tolist() == FLAT.tolist()
    again = put_together(layout, FLAT)
    assert same(again, point if layout != [2, 3] else FLAT.reshape(2, 3))
    assert size_of(layout) == 6
    assert shown(layout) == words
    assert is_vector(layout) == (layout == [6])
    for other in POINTS:
        if other[1] != layout:
            with pytest.raises(InputTypeError, match="layout"):
                flattened(other[0], layout, "x")
    for wrong in (FLAT[:5], np.zeros(7), FLAT.reshape(2, 3)):
        with pytest.raises(InputError, match="numbers for a point of 6"):
            put_together(layout, wrong)


def test_parts_that_nobody_asked_for_are_no_part_of_a_point() -> None:
    two = ["tuple", [1], [2]]
    assert flattened((FLAT[:1], FLAT[1:3]), two, "x").tolist() == [0.0, 1.0, 2.0]
    for other in ((FLAT[:1], FLAT[1:3], FLAT[3:]), (FLAT[:1],), [FLAT[:1], FLAT[1:3]]):
        with pytest.raises(InputTypeError, match="layout"):
            flattened(other, two, "x")


def test_points_that_are_none() -> None:
    for bad in (
        {1: FLAT},
        {"a": {2: FLAT}},
        "text",
        [FLAT, "text"],
        1j * FLAT,
        {"a": [[1.0], [1.0, 2.0]]},
    ):
        with pytest.raises(InputTypeError, match="x"):
            taken_apart(bad, "x")
    with pytest.raises(InputTypeError, match=r"x\['a'\]\[1\]"):
        taken_apart({"a": (FLAT, "text")}, "x")
    with pytest.raises(InputError, match=r"x\['a'\]"):
        taken_apart({"a": [2**53 + 1], "b": FLAT}, "x", exact=True)
    assert taken_apart({"a": [2**53 + 1]}, "x")[0] == ["dict", ["a"], [1]]
    assert taken_apart([], "x")[0] == [0]
    assert put_together(["list"], np.zeros(0)) == []


@pytest.mark.parametrize(
    "data", [3, "list", [-1], [1.0], [True], ["set", [1]], ["dict"], ["dict", ["a"]],
             ["dict", ["a", "a"], [1], [1]], ["dict", [1], [1]], ["dict", "a", [1]],
             ["list", 3], ["tuple", ["x"]], ["list", [2], [-2]]],
)  # fmt: skip
def test_other_data_are_no_layouts(data: Any) -> None:
    assert not is_layout(data)
    deep: list[Any] = [1]
    for _ in range(60):
        deep = ["list", deep]
    assert not is_layout(deep)


def test_one_call_answers_both_questions() -> None:
    calls: list[Any] = []
    shared = np.zeros(2)

    def both(x: Any, factor: float) -> Any:
        calls.append(x.copy())
        shared[:] = 2.0 * factor * x
        x[:] = 7.0  # what users do with their argument is their affair
        return factor * 1.0, shared

    asked = Asked(BlackBox(both, True, (3.0,)))
    x, y = np.array([1.0, 2.0]), np.array([4.0, 5.0])
    assert asked.value(x) == 3.0
    first = asked.gradient(x)
    assert first.tolist() == [6.0, 12.0]
    assert len(calls) == 1
    assert asked.gradient(y).tolist() == [24.0, 30.0]
    assert first.tolist() == [6.0, 12.0]
    assert asked.gradient(x).tolist() == [6.0, 12.0]
    assert len(calls) == 3
    assert x.tolist() == [1.0, 2.0]
    for answer in (1.0, (1.0, x, x), "ab"):
        with pytest.raises(InputTypeError, match="pair"):
            Asked(BlackBox(lambda x, a=answer: a, True)).gradient(x)


def test_functions_of_laid_out_points() -> None:
    layout = ["dict", ["a", "b"], [1], [2, 1]]

    def fun(p: Any) -> float:
        return float(p["a"][0] + 2 * p["b"].sum())

    def jac(p: Any) -> Any:
        assert p["b"].shape == (2, 1)
        return {"a": np.ones(1), "b": np.full((2, 1), 2.0)}

    x = np.array([1.0, 2.0, 3.0])
    for box in (
        BlackBox(fun, jac, (), layout),
        BlackBox(lambda p: (fun(p), jac(p)), True, (), layout),
    ):
        assert Asked(box).value(x) == 11.0
        assert Asked(box).gradient(x).tolist() == [1.0, 2.0, 2.0]
    for wrong in (lambda p: np.ones(3), lambda p: {"a": np.ones(1), "b": np.ones(2)}):
        with pytest.raises(InputTypeError, match="layout"):
            Asked(BlackBox(fun, wrong, (), layout)).gradient(x)


X = np.array([0.5, -2.0])


@pytest.mark.parametrize("answer", [np.nan, np.inf, 1j, "a", [1.0, 2.0], None, []])
def test_values_are_one_finite_number(answer: Any) -> None:
    with pytest.raises(InputError):
        Asked(BlackBox(lambda x: answer, None)).value(X)


@pytest.mark.parametrize(
    "answer", [[1.0], [1.0, np.nan], [1.0, -np.inf], [1j, 0], ["a", "b"], 1.0, [[1.0, 2.0]], None]
)
def test_gradients_are_as_many_finite_numbers(answer: Any) -> None:
    with pytest.raises(InputError):
        Asked(BlackBox(None, lambda x: answer)).gradient(X)


def test_answers_of_all_real_types() -> None:
    for kind in (np.float64, np.float32, np.float16, np.int8, np.uint8, bool):
        asked = Asked(
            BlackBox(lambda x, k=kind: np.ones((1, 1), k), lambda x, k=kind: np.ones(2, k))
        )
        assert asked.value(X) == 1.0
        assert asked.gradient(X).tolist() == [1.0, 1.0]
        assert asked.gradient(X).dtype == np.float64
        coarse = kind in (np.float32, np.float16)
        assert bool(asked.coarse) == coarse
        # A hundred units in the last place of single precision, at |x| = 2 and at 0.02.
        for x, least in ((X, 100 * 2.0**-24 * 2.0), (0.01 * X, 100 * 2.0**-24)):
            assert has_room(x, least, as_box(None, 2), asked.coarse)
            assert has_room(x, 0.999 * least, as_box(None, 2), asked.coarse) != coarse


def test_errors_of_functions_can_be_sent() -> None:
    def fails(x: Any) -> float:
        raise ZeroDivisionError("no")

    with pytest.raises(InputError, match="ZeroDivisionError: no"):
        Asked(BlackBox(fails, None)).value(X)
    error = OracleError("f is nan", X, 3)
    error.value = np.nan
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "f is nan"
    assert (again.point.tolist(), again.call, again.last_good) == (X.tolist(), 3, None)
    assert np.isnan(again.value)
