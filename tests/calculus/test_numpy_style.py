"""Functions written for arrays mean the same for expressions, or are refused in words."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from tests.limits import gradient_enclosure, limiting_gradients

import goldstein as gs
from goldstein.apriori.modulus import piece_modulus

A = np.array([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 4.0, -1.0]])
S = sparse.csr_array(A)
MASK = np.array([True, False, True, True])

#: Each is called with an array of length 4, and with a Variable.
SAME: dict[str, Callable[[Any], Any]] = {
    "entry": lambda x: x[1],
    "last entry": lambda x: x[-1],
    "slice": lambda x: x[1:3],
    "steps": lambda x: x[::2] - x[3::-2],
    "backwards": lambda x: x[::-1],
    "integers": lambda x: x[[2, 0, 2]],
    "array of integers": lambda x: x[np.array([[0, 1], [1, 3]])],
    "mask": lambda x: x[MASK],
    "ellipsis": lambda x: x[..., None] * x[None],
    "table": lambda x: x.reshape(2, 2)[:, 1],
    "reshape by tuple": lambda x: x.reshape((2, -1)),
    "np.reshape": lambda x: np.reshape(x, (2, 2)).T,
    "unpacked": lambda x: (lambda a, b, c, d: a * b - c * d)(*x),
    "for": lambda x: sum(u * k for k, u in enumerate(x)),
    "minus": lambda x: -x + (+x) * 2,
    "abs": lambda x: abs(x - 0.3),
    "np.abs": lambda x: np.abs(x[1:] - x[:-1]),
    "np.fabs": lambda x: np.fabs(x),
    "powers": lambda x: x**2 - x**3 / 4 + x**4 - x**5 + x**1 * 2 + x**0,
    "np.power": lambda x: np.power(x, 2) + np.square(x),
    "power of a float": lambda x: x**2.0 + x ** np.int64(3),
    "np.maximum": lambda x: np.maximum(x, x[::-1]),
    "np.maximum of a number": lambda x: np.maximum(x, 0.25) + np.maximum(-0.5, x),
    "np.minimum": lambda x: np.minimum(x, A[0]) + np.minimum(A[1], 2 * x),
    "np.clip": lambda x: np.clip(x, -0.5, 0.5),
    "np.sum": lambda x: np.sum(x * x),
    "sum of an axis": lambda x: np.sum(x.reshape(2, 2), axis=0) + x.reshape(2, 2).sum(axis=-1),
    "mean": lambda x: np.mean(x) + x.mean(),
    "max and min": lambda x: np.max(x) - np.min(x) + x.max() * x.min(),
    "np.dot": lambda x: np.dot(A, x) + A.dot(np.ones(4)),
    "matrix @": lambda x: A @ x,
    "@ matrix": lambda x: x @ A.T,
    "@ both": lambda x: x @ A.T @ A @ x,
    "list @": lambda x: np.array([1.0, 2.0, 3.0, 4.0]) @ x + x @ [1.0, 2.0, 3.0, 4.0],
    "sparse @": lambda x: S @ x,
    "@ sparse": lambda x: x @ S.T,
    "tables": lambda x: x.reshape(2, 2) @ x.reshape(2, 2).T,
    "norms": lambda x: np.linalg.norm(x) + np.linalg.norm(x, 1) - np.linalg.norm(x, np.inf),
    "frobenius": lambda x: np.linalg.norm(x.reshape(2, 2)),
    "diff": lambda x: np.diff(x) + np.diff(x[::-1], 1),
    "second diff": lambda x: np.diff(x, 2),
    "logaddexp": lambda x: np.logaddexp(0.0, x) + np.logaddexp(x, x[::-1]),
    "broadcast": lambda x: x[:, None] - x + x[0] - A[0, 0],
    "number on the left": lambda x: 2.0 - x * np.float64(3.0) + np.float32(0.5) * x,
    "array on the left": lambda x: A[0] - x + A[1] * x + A[0],
    "division": lambda x: x / 3 + x / np.array([1.0, 3.0, 7.0, 2.0]),
    "broadcast constants": lambda x: (
        x * A + (x[0] + A[0]) * 2 - A + x[1] / np.array([3.0, 5.0] * 2)
    ),
    "stack": lambda x: np.stack([x[:2], x[2:] ** 2]),
    "concatenate": lambda x: np.concatenate([x[:1], 2 * x[1:], [5.0]]),
    "shape": lambda x: x * np.size(x) + np.ndim(x) * x * np.shape(x)[0],
    "ravel": lambda x: np.ravel(x.reshape(2, 2).T),
    "vdot": lambda x: np.vdot(x, A[0]),
    "transpose": lambda x: np.transpose(x.reshape(2, 2)),
}


@pytest.mark.parametrize("name", SAME)
def test_values_are_those_of_numpy(name: str) -> None:
    function = SAME[name]
    u = function(gs.Variable(4))
    assert isinstance(u, gs.Expression)
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal(4)
        there = np.asarray(function(x))
        assert u.shape == there.shape
        np.testing.assert_allclose(u(x), there, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SAME)
def test_gradients_and_proofs_follow(name: str) -> None:
    weights = np.random.default_rng(9).standard_normal(100)
    F = gs.sum(SAME[name](gs.Variable(4)).reshape(-1) * weights[: np.size(SAME[name](A[0]))])
    x, v = np.random.default_rng(1).standard_normal((2, 4))
    slope = (F.value(x + 1e-6 * v) - F.value(x - 1e-6 * v)) / 2e-6
    g = F.gradient(x)
    assert g @ v == pytest.approx(slope, rel=1e-6, abs=1e-6)
    mid, rad = gradient_enclosure(F, x)
    assert (np.abs(mid - g) <= rad + 1e-9).all()
    ((exact, error),) = limiting_gradients(F, x, [v])
    np.testing.assert_allclose([float(e) for e in exact], g, atol=1e-9)
    assert all(e <= Fraction(1, 10**6) for e in error)
    twin = F.anew()
    np.testing.assert_array_equal(twin.gradient(x), g)


#: What has no meaning for expressions.
W = gs.Variable(3)
MISTAKES: dict[str, Callable[[], Any]] = {
    "np.sign": lambda: np.sign(W),
    "np.floor": lambda: np.floor(W),
    "np.linalg.svd": lambda: np.linalg.svd(W.reshape(1, 3)),
    "power of a negative number": lambda: (-2.0) ** W,
    "out": lambda: np.add(W, 1.0, out=np.zeros(3)),
    "in place": lambda: np.ones(3).__iadd__(W),
    "where": lambda: np.add(1.0, W, where=[True, False, True]),
    "np.where": lambda: np.where(W, 1.0, 0.0),
    "sum over a wrong axis": lambda: gs.sum(W, axis=1),
    "power of an array": lambda: W ** np.array([1, 2, 3]),
    "remainder": lambda: W % 2,
    "floor": lambda: 7 // W,
    "less": lambda: W[0] < 1.0,
    "at most": lambda: np.ones(3) <= W,
    "if": lambda: bool(W[0] >= 1.0),
    "truth": lambda: bool(W),
    "equal": lambda: bool(W == 1.0),
    "unequal": lambda: np.ones(3) != W,
    "contains": lambda: 1.0 in W,
    "builtin max": lambda: builtins.max(W[0], W[1]),
    "float": lambda: float(W[0]),
    "int": lambda: int(W[0]),
    "math": lambda: math.sin(W[0]),
    "too far": lambda: W[3],
    "by name": lambda: W["a"],
    "by a float": lambda: W[1.0],
    "too deep": lambda: W[0, 1],
    "wrong reshape": lambda: W.reshape(2, 2),
    "odd reshape": lambda: W.reshape("a"),
    "wrong shapes": lambda: W + np.ones(2),
    "wrong product": lambda: W * np.ones((2, 2)),
    "wrong matrix": lambda: np.ones((2, 2)) @ W,
    "number @": lambda: 3.0 @ W,
    "two variables": lambda: W + gs.Variable(3),
    "max of two": lambda: gs.max(W[0], W[1]),
    "min of two": lambda: gs.min(W[0], W[1]),
    "max of a number": lambda: gs.max(3.0),
    "maximum of numbers": lambda: gs.maximum(1.0, 2.0),
    "sum of a number": lambda: gs.sum(3.0),
    "norm of an array": lambda: gs.norm2(np.ones(3)),
    "squares of an array": lambda: gs.sum_squares(np.ones(3)),
    "stack of numbers": lambda: gs.stack([1.0, 2.0]),
    "stack of shapes": lambda: gs.stack([W, W[:2]]),
    "stack of text": lambda: gs.stack([W[0], "a"]),
    "concatenate scalars": lambda: gs.concatenate([W, W[0]]),
    "iterate over a scalar": lambda: list(W[0]),
    "no variables": lambda: gs.Variable(0),
    "variables by text": lambda: gs.Variable("2"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_everything_else_is_refused_in_words(name: str) -> None:
    with pytest.raises(gs.GoldsteinError, match=r"\w+ \w+ \w+"):
        MISTAKES[name]()


@pytest.mark.parametrize("left", [True, False])
def test_tensors_are_numbers_too(left: bool) -> None:
    torch = pytest.importorskip("torch")
    t = torch.tensor([0.1, 2.0, 3.0])
    u = (t * W, t @ W, t - W) if left else (W * t, W @ t, W - t)
    x = np.array([1.0, 2.0, -1.0])
    y = t.numpy().astype(float)
    same = (y * x, y @ x, y - x if left else x - y)
    for expression, value in zip(u, same):
        np.testing.assert_allclose(expression(x), value, rtol=1e-15)
    with pytest.raises(gs.InputTypeError, match="grad"):
        torch.ones(3, requires_grad=True) * W


def test_identity_and_hashing_stay() -> None:
    u = W[0]
    assert u == u
    assert u != W[1]
    assert len({u, W[1], u}) == 2
    assert u is not None
    assert u != "auto"


def test_a_list_of_expressions_is_a_vector() -> None:
    x, y = gs.Variable(2)
    at = np.array([2.0, -3.0])
    assert gs.max([x + y, x * y, 7.0]).value(at) == 7.0
    assert gs.min([x + y, x * y]).value(at) == -6.0
    assert gs.norm2([x**2, y]).value(at) == 5.0
    assert gs.sum(np.array([[x, y], [y, x]])).value(at) == -2.0
    np.testing.assert_array_equal(gs.relu([x, y])(at), [2.0, 0.0])


def test_the_largest_of_curved_functions_is_differentiated_piece_by_piece() -> None:
    x, y = gs.Variable(2)
    F = gs.max([x**2 + y, y**3 - x, x * y])
    for seed in range(20):
        at = np.random.default_rng(seed).standard_normal(2)
        a, b = at
        values = [a**2 + b, b**3 - a, a * b]
        slopes = [[2 * a, 1.0], [-1.0, 3 * b**2], [b, a]]
        np.testing.assert_allclose(F.gradient(at), slopes[int(np.argmax(values))], rtol=1e-12)


def test_higher_powers_bend_without_bound_and_on_a_ball_within_one() -> None:
    w = gs.Variable(1)
    F = gs.sum(w**3) + gs.sum(gs.abs(w))
    assert math.isinf(piece_modulus(F).total)
    on_a_ball = piece_modulus(F, (np.zeros(1), 2.0)).total
    assert 12.0 <= on_a_ball <= 12.0 * (1 + 1e-9)
    assert math.isinf(F.lipschitz())
    assert 13.0 <= F.lipschitz((np.zeros(1), 2.0)) <= 13.0 * (1 + 1e-9)


def test_the_logarithm_of_one_exponential_beside_its_shift() -> None:
    # m + log(sum(exp(u - m))) is written as one; without a sum there is nothing to write so.
    x = gs.Variable(2)
    F = np.log(np.exp(x[1] - x[0])) + x[0]
    assert F.value(np.array([1.0, 3.0])) == pytest.approx(3.0, rel=1e-15)
    assert F.gradient(np.array([1.0, 3.0])) == pytest.approx([0.0, 1.0], abs=1e-15)


def test_log_sum_exp_of_far_apart_numbers() -> None:
    F = np.logaddexp(gs.Variable(1), 3.0)
    for u in (-800.0, 0.0, 800.0):
        assert F(np.array([u]))[0] == pytest.approx(np.logaddexp(u, 3.0), rel=1e-14)
        assert gs.sum(F).gradient(np.array([u]))[0] == pytest.approx(expit(u - 3.0), rel=1e-12)


def test_other_libraries_are_told_what_to_write() -> None:
    import pandas
    import torch
    from scipy.sparse.linalg import aslinearoperator

    w, matrix = gs.Variable(3), np.arange(6.0).reshape(2, 3)
    operator, frame = aslinearoperator(matrix), pandas.DataFrame(matrix)
    for product in (lambda: operator @ w, lambda: operator * w, lambda: operator.dot(w)):
        with pytest.raises(gs.InputTypeError, match=r"LinearOperator A write gs\.linear\(A, u\)"):
            product()
    for product in (lambda: frame @ w, lambda: frame.dot(w)):
        with pytest.raises(gs.InputTypeError, match=r"DataFrame write frame\.to_numpy\(\) @ u"):
            product()
    with pytest.raises(gs.InputTypeError, match=r"torch\.abs is not known.*torch\.oracle"):
        torch.abs(w)
    x = np.array([1.0, -2.0, 3.0])
    right = matrix @ x
    for expression in (torch.tensor(matrix) @ w, gs.linear(operator, w), w @ operator.T):
        assert np.array_equal(expression(x), right)
    assert np.array_equal((torch.tensor(x) * w)(x), x * x)


def test_length_and_rounding() -> None:
    w = gs.Variable(3)
    assert (len(w), len(abs(w)), len(w.reshape(1, 3))) == (3, 3, 1)
    squares = sum(w[i] ** 2 for i in range(len(w)))
    assert squares.value(np.array([1.0, 2.0, 3.0])) == 14.0
    with pytest.raises(gs.InputTypeError, match="a scalar expression has no length"):
        len(squares)
    for rounding in (round, math.floor, math.ceil, math.trunc, lambda u: round(u, 2)):
        with pytest.raises(gs.InputTypeError, match="cannot be rounded"):
            rounding(w)
