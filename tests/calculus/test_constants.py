"""Numbers enter an expression exactly, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.limits import exact_row, limiting_gradients

import goldstein as gs
from goldstein.models import margin_svm, relu_one_layer, relu_two_layer

W = gs.Variable(1)

#: Ways in which a number enters an expression, and what they make of w = 1 and the number b.
WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Fraction], Fraction]]] = {
    "w + b": (lambda b: W + b, lambda b: 1 + b),
    "b + w": (lambda b: b + W, lambda b: 1 + b),
    "w - b": (lambda b: W - b, lambda b: 1 - b),
    "b - w": (lambda b: b - W, lambda b: b - 1),
    "w * b": (lambda b: W * b, lambda b: b),
    "b * w": (lambda b: b * W, lambda b: b),
    "w / b": (lambda b: W / b, lambda b: 1 / b),
}
#: Numbers that are exactly what they look like, in all the types they come in.
NUMBERS: list[tuple[Any, Fraction]] = [
    (np.uint8(200), Fraction(200)),
    (np.array([200], dtype=np.uint8), Fraction(200)),
    (np.int8(-128), Fraction(-128)),
    (np.array([-128], dtype=np.int8), Fraction(-128)),
    (np.uint64(2**63), Fraction(2**63)),
    (np.array([2**63], dtype=np.uint64), Fraction(2**63)),
    (np.int64(-(2**63)), Fraction(-(2**63))),
    (2**70, Fraction(2**70)),
    (np.float32(0.1), Fraction(float(np.float32(0.1)))),
    (np.array([0.1], dtype=np.float16), Fraction(float(np.float16(0.1)))),
    (np.longdouble(0.5), Fraction(1, 2)),
    (True, Fraction(1)),
    (np.array([True]), Fraction(1)),
    (Fraction(3, 4), Fraction(3, 4)),
    (Decimal("0.25"), Fraction(1, 4)),
    ([0.1], Fraction(0.1)),
    (np.array(3), Fraction(3)),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("number", "exact"), NUMBERS, ids=lambda v: f"{type(v).__name__} {v}")
def test_a_number_is_what_it_is_whatever_its_type(way: str, number: Any, exact: Fraction) -> None:
    build, truth = WAYS[way]
    u = build(number)
    row, constant = exact_row(u)
    assert row.get(0, 0) + constant == truth(exact)
    assert u(np.ones(1))[0] == pytest.approx(float(truth(exact)), rel=1e-15)


def test_the_difference_from_an_unsigned_array_is_certified_where_it_vanishes() -> None:
    F = gs.sum(gs.abs(W - np.array([200], dtype=np.uint8)))
    assert F.value(np.array([200.0])) == 0.0
    assert gs.certify(F, [200.0], delta=0.1, stationarity="near", rng=0).eps == 0.0
    assert gs.certify(F, [-56.0], delta=0.1, stationarity="near", rng=0).eps == 1.0


#: What no float64 number is.
ROUNDED = [
    2**53 + 1, np.int64(2**53 + 1), np.array([2**63 + 1], dtype=np.uint64), 10**400,
    np.array([1, 2**60 + 1]), Fraction(1, 3), Decimal("0.1"), np.array([Fraction(1, 3)]),
    np.longdouble(1) / 3, np.array([np.longdouble(1) / 3]),
]  # fmt: skip
#: What is no finite real number.
STRANGE = [
    "1.5", b"1", np.array(["1"]), 1j, np.array([1 + 0j]), None, [None], [[1.0], [1.0, 2.0]],
    np.array(["2020-01-01"], dtype="datetime64[D]"), np.ma.masked_array([1.0], [True]), object(),
    float("nan"), np.array([np.inf]), {1: 2}, Decimal("NaN"),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number", ROUNDED + STRANGE, ids=lambda v: type(v).__name__)
def test_anything_else_is_refused_in_words(way: str, number: Any) -> None:
    exact_quotient = isinstance(number, int | Fraction | Decimal | np.integer | np.longdouble)
    if way == "w / b" and exact_quotient and number == number and number != 10**400:
        assert 1 / exact_row(WAYS[way][0](number))[0][0] == Fraction(*_ratio(number))
        return
    with pytest.raises(gs.GoldsteinError, match=r".{20}"):
        gs.sum(WAYS[way][0](number))  # a masked array on the left hands over later than others


def _ratio(number: Any) -> tuple[int, int]:
    return (int(number) if isinstance(number, np.integer) else number).as_integer_ratio()


MATRICES = {
    "A @ w": lambda A: A @ W,
    "linear": lambda A: gs.linear(A, W),
    "w @ A": lambda A: W.reshape(1, 1) @ A,
    "max_affine": lambda A: gs.max_affine(A, 0.0, W),
    "margin_svm": lambda A: margin_svm(A),
    "data": lambda A: relu_one_layer(A, [1.0], 1),
    "targets": lambda A: relu_two_layer([[1.0]], np.reshape(A, (1, 1)), 1),
}


@pytest.mark.parametrize("way", MATRICES)
@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.float32, bool])
def test_matrices_of_short_types_are_taken_exactly(way: str, kind: Any) -> None:
    A = np.array([[0.1 if kind is np.float32 else -128 if kind is np.int8 else 1]], dtype=kind)
    F, G = MATRICES[way](A), MATRICES[way](A.astype(np.float64))
    F, G = (gs.sum(F), gs.sum(G)) if F.shape else (F, G)
    x = np.linspace(1.0, 2.0, F.dim)
    assert F.value(x) == G.value(x)
    ways = np.ones((1, F.dim))
    assert limiting_gradients(F, x, ways) == limiting_gradients(G, x, ways)


@pytest.mark.parametrize("way", MATRICES)
@pytest.mark.parametrize(
    "A",
    [
        np.array([[2**53 + 1]]),
        np.array([["1"]]),
        np.array([[1j]]),
        np.array([[np.nan]]),
        np.array([[np.longdouble(1) / 3]]),
        np.array([[Fraction(1, 3)]]),
    ],
    ids=["large", "text", "complex", "NaN", "long", "third"],
)
def test_matrices_that_would_be_rounded_are_refused(way: str, A: Any) -> None:
    with pytest.raises(gs.GoldsteinError):
        MATRICES[way](A)


@pytest.mark.parametrize("form", ["csr_array", "coo_array", "csc_matrix", "lil_array"])
def test_sparse_matrices_of_short_types_do_not_wrap(form: str) -> None:
    rows = sparse.coo_array((np.array([200, 100], dtype=np.uint8), ([0, 0], [0, 0])), shape=(1, 1))
    wanted = 300 if form == "coo_array" else 200
    if form != "coo_array":
        rows = getattr(sparse, form)(np.array([[200]], dtype=np.uint8))
    assert exact_row(gs.linear(rows, W))[0] == {0: wanted}
    with pytest.raises(gs.InputError, match="float64"):
        gs.linear(getattr(sparse, form)(np.array([[2**53 + 1]])), W)


PARAMETERS: dict[str, Callable[[Any], Any]] = {
    "leaky_relu": lambda p: gs.leaky_relu(W, p),
    "huber": lambda p: gs.huber(W, p),
    "ramp": lambda p: gs.ramp(W, rho=p),
    "pinball": lambda p: gs.pinball(W, p),
    "soft_threshold": lambda p: gs.soft_threshold(W, p),
    "eps_insensitive": lambda p: gs.eps_insensitive(W, p),
    "capped_l1": lambda p: gs.capped_l1(W, p),
    "scad lam": lambda p: gs.scad(W, p),
    "mcp lam": lambda p: gs.mcp(W, p),
    "log_sum lam": lambda p: gs.log_sum(W, p),
    "log_sum eps": lambda p: gs.log_sum(W, 1.0, p),
    "pseudo_huber": lambda p: gs.pseudo_huber(W, p),
    "margin rho": lambda p: margin_svm([[1.0]], rho=p),
    "margin lam": lambda p: margin_svm([[1.0]], lam=p),
    "margin shift": lambda p: margin_svm([[1.0]], shift=p),
    "weights": lambda p: margin_svm([[1.0]], weights=[p]),
    "ridge": lambda p: relu_two_layer([[1.0]], [1.0], 1, ridge=p),
    "threshold": lambda p: relu_two_layer([[1.0]], [1.0], 1, loss="huber", threshold=p),
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.longdouble, Fraction, np.array])
def test_parameters_of_any_type_are_taken_exactly(name: str, kind: Any) -> None:
    number = kind(0.75) if kind is not np.float32 else np.float32(0.1)
    near = float(number)
    given, plain = PARAMETERS[name](number), PARAMETERS[name](near)
    given, plain = (gs.sum(given), gs.sum(plain)) if given.shape else (given, plain)
    for at in (-0.3, 0.05, 2.0):
        x = np.full(given.dim, at)
        assert given.value(x) == plain.value(x)
        np.testing.assert_array_equal(given.gradient(x), plain.gradient(x))
        ways = np.ones((1, given.dim))
        assert limiting_gradients(given, x, ways) == (limiting_gradients(plain, x, ways))


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize(
    "number", ["0.5", None, 1j, float("nan"), float("inf"), np.ones(2), [0.5, 0.5], W, object()],
    ids=lambda v: f"{type(v).__name__}",
)  # fmt: skip
def test_parameters_that_are_no_numbers_are_refused(name: str, number: Any) -> None:
    with pytest.raises(gs.GoldsteinError):
        PARAMETERS[name](number)


@pytest.mark.parametrize("name", [name for name in PARAMETERS if name != "weights"])
def test_a_truth_value_is_no_parameter(name: str) -> None:
    with pytest.raises(gs.InputTypeError, match="truth value"):
        PARAMETERS[name](True)


@pytest.mark.parametrize("point", [["1"], [1j], [None], [2**53 + 1], [W], [[1.0], [2.0, 3.0]]])
def test_points_are_numbers_too(point: Any) -> None:
    F = gs.sum(gs.abs(W))
    for ask in (F.value, F.gradient, F):
        with pytest.raises(gs.GoldsteinError):
            ask(point)
