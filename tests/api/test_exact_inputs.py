"""Numbers that a claim is about are taken exactly, or refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import goldstein as gs
from goldstein.certificates.confidence import confidence_bound

w = gs.Variable(2)
total = gs.norm1(w)
in_one = gs.sum(gs.abs(gs.Variable(1)))
ASKED: dict[str, Any] = {"eps": 0.1, "delta": 0.1, "rng": 0, "max_calls": 100}


def f(x: Any) -> float:
    return float(np.abs(x).sum())


def solved(**limits: Any) -> gs.Result:
    return gs.minimize(f, [1.0, 2.0], np.sign, **limits, **ASKED)


def nonlinear(low: Any, high: Any) -> NonlinearConstraint:
    return NonlinearConstraint(lambda x: x[0], low, high, jac=lambda x: np.array([[1.0, 0.0]]))


def matrix(rows: Any) -> Any:
    """A constraint as somebody else's class may have it; SciPy's rounds dense arrays itself."""
    return SimpleNamespace(A=rows, lb=-1.0, ub=1.0)


#: Everywhere a number becomes part of a claim, or of what a claim is about.
PLACES: dict[str, Callable[[Any], Any]] = {
    "low of a pair": lambda b: solved(bounds=[(b, None), (None, 1e17)]),
    "high of a pair": lambda b: solved(bounds=[(None, b), (None, None)]),
    "Bounds": lambda b: solved(bounds=Bounds(b, np.inf)),
    "lb": lambda b: solved(constraints=nonlinear(b, np.inf)),
    "ub": lambda b: solved(constraints=nonlinear(-np.inf, [b])),
    "F <= b": lambda b: total <= b,
    "F >= b": lambda b: total >= b,
    "F == b": lambda b: total == b,
    "w >= [b, b]": lambda b: w >= np.array([b, b]),
    "A": lambda b: solved(constraints=matrix([[b, 1]])),
    "A, next to a float": lambda b: solved(constraints=matrix([[b, 0.5]])),
    "l1": lambda b: gs.prox.l1([b, 1]),
    "group_l2": lambda b: gs.prox.group_l2(b, [[0, 1]]),
    "box": lambda b: gs.prox.box(-np.inf, [b, np.inf]),
    "simplex": lambda b: gs.prox.simplex(b),
    "nuclear": lambda b: gs.prox.nuclear(b, (1, 2)),
    "x of prove": lambda b: gs.NearCertificate.prove(in_one, [b], [b], [[1.0]], [1.0]),
    "x of certify": lambda b: gs.certify(f, [b, 0], np.sign, delta=1e5),
    "x of certify, in a dict": lambda b: gs.certify(
        lambda p: f(p["a"]), {"a": [[b, 0.5]]}, lambda p: {"a": np.sign(p["a"])}, delta=1e5
    ),
    "x of certify_result": lambda b: gs.certify_result({"x": [b]}, f, np.sign, delta=1e5),
    "x of stationarity_curve": lambda b: gs.stationarity_curve(f, [b], np.sign, deltas=[1e5]),
    "x of a certificate": lambda b: gs.GoldsteinCertificate(
        x=[b], delta=0.0, eps=0.0, points=[[b]], gradients=[[0.0]], weights=[1.0]
    ),
    "x of confidence_bound": lambda b: confidence_bound(
        gs.SampleStream(lambda x, rng: np.sign(x)),
        [b],
        [[b]],
        [1.0],
        samples=2,
        gradient_bound=1.0,
        rng=np.random.default_rng(0),
    ),
    "eps": lambda b: gs.minimize(f, [1.0, 2.0], np.sign, eps=b, delta=0.1),
    "delta": lambda b: gs.certify(f, [1.0, 2.0], np.sign, delta=b),
    "a constant, next to a float": lambda b: w * [b, 0.5],
}
#: What no float64 number is.
ROUNDED = [
    Fraction(1, 3), Decimal("0.1"), np.longdouble(1) / 3, 2**53 + 1, np.int64(2**53 + 1),
    np.uint64(2**63 + 1),
]  # fmt: skip


@pytest.mark.parametrize("number", ROUNDED, ids=lambda v: f"{type(v).__name__} {v}")
@pytest.mark.parametrize("place", PLACES)
def test_what_would_be_rounded_is_refused(place: str, number: Any) -> None:
    with pytest.raises(gs.GoldsteinError, match=r"not a float64 number|must be a number, got"):
        PLACES[place](number)


@pytest.mark.parametrize("number", ROUNDED, ids=lambda v: f"{type(v).__name__} {v}")
def test_a_claim_is_not_verified_for_rounded_bounds(number: Any) -> None:
    certificate = solved(bounds=[(0, 1)] * 2).certificate
    found = certificate.verify(f, np.sign, bounds=[(number, None), (None, None)])
    assert not found.ok
    assert "not a float64 number" in str(found)


#: What is a float64 number, in the types it comes in.
EXACT = [Fraction(1, 2), Decimal("0.5"), np.longdouble("0.5"), np.float32(0.1), np.int8(1), 1, 0.1]


@pytest.mark.parametrize("number", EXACT, ids=lambda v: f"{type(v).__name__} {v}")
@pytest.mark.parametrize("place", PLACES)
def test_what_is_a_float_is_taken(place: str, number: Any) -> None:
    if place in ("eps", "delta") and isinstance(number, Fraction | Decimal):
        return  # numbers of a question are plain ones
    PLACES[place](number)


def test_limits_are_what_they_were() -> None:
    third = np.float32(1) / np.float32(3)
    res = solved(bounds=[(Fraction(1, 2), None), (np.longdouble("0.25"), np.inf)])
    assert np.array_equal(res.x, [0.5, 0.25])
    assert solved(constraints=nonlinear(third, np.inf)).x[0] >= float(third)
    assert repr(total >= Fraction(1, 2)) == "<1 constraints, 0.5 <= F(x) <= inf>"
    assert gs.prox.box([0, -np.inf], [Fraction(1, 2), np.inf]).upper.tolist() == [0.5, np.inf]


def test_sparse_matrices_neither_wrap_nor_round() -> None:
    twice = (np.array([100, 100], dtype=np.int8), ([0, 0], [0, 0]))
    wrapping = LinearConstraint(sparse.coo_array(twice, shape=(1, 2)), 200.0, np.inf)
    assert solved(constraints=wrapping).x[0] == pytest.approx(1.0)  # 200 x0 >= 200, not -56 x0
    large = LinearConstraint(sparse.csr_array(np.array([[2**53 + 1, 0]])), 0.0, 1.0)
    with pytest.raises(gs.InputError, match=r"constraints\[0\]: A is .* not a float64 number"):
        solved(constraints=large)


@pytest.mark.parametrize("text", ["0", b"0", None, 1j])
@pytest.mark.parametrize("place", [p for p in PLACES if p not in ("low of a pair", "F == b")])
def test_what_is_no_number_is_refused_in_words(place: str, text: Any) -> None:
    if text is None and place == "high of a pair":
        return  # no bound
    with pytest.raises(gs.GoldsteinError, match=r".{20}"):
        PLACES[place](text)


def test_a_start_is_rounded_with_a_word_about_it() -> None:
    start = np.array([1, 2], dtype=np.longdouble) / 3
    with pytest.warns(gs.PrecisionWarning, match="starts at x0 rounded to float64"):
        res = gs.minimize(f, start, np.sign, **ASKED)
    with pytest.warns(gs.PrecisionWarning, match="starts at x0 rounded to float64"):
        gs.minimize(lambda p: f(p["a"]), {"a": start}, lambda p: {"a": np.sign(p["a"])}, **ASKED)
    assert res.success
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = gs.minimize(f, start.astype(float), np.sign, **ASKED)
        gs.minimize(f, np.array([0.1, 2], dtype=np.float32), np.sign, **ASKED)
    assert np.array_equal(res.x, same.x)


def test_answers_of_a_function_may_have_more_digits() -> None:
    """They are rounded: what is exact is the claim, about the function that is asked."""

    def gradient(p: Any) -> Any:
        return {"a": np.sign(p["a"]).astype(np.longdouble) / 3}

    res = gs.minimize(
        lambda p: np.abs(p["a"]).astype(np.longdouble).sum() / 3, {"a": np.ones(2)}, gradient,
        **ASKED,
    )  # fmt: skip
    assert res.success
