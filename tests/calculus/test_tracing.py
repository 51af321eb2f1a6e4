"""Plain NumPy code as expressions: what is read, what is refused and how, what is noticed."""

from __future__ import annotations

import builtins
import functools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from benchmarks.random_programs import Compared

import goldstein as gs
import goldstein.scipy

DATA = np.random.default_rng(0).standard_normal((6, 4))


def helper(u: Any) -> Any:
    return math.exp(u) + max(u, 0.25)


def with_helper(x: Any) -> Any:
    return helper(x[0]) * sum(abs(v) for v in x)


def filled(x: Any) -> Any:
    z = np.zeros(4)
    for i in range(len(x)):
        z[i] = math.sin(x[i]) + (z[i - 1] if i else 1.0)
    z[1:3] += x[:2]
    z[-1] *= 2.0
    return float(np.sqrt(np.sum(z**2)))


def in_place(x: Any) -> Any:
    y = x.copy()
    y -= 1.0
    y[0] = 2.0 * np.abs(y[1]) + 0.1
    return y.max() - y.min() + np.linalg.norm(DATA @ y, 1)


def outer(scale: float) -> Callable[[Any], Any]:
    def f(x: Any, shift: Any = 0.5) -> Any:
        def inner(u: Any) -> Any:
            return max(u - shift, scale * u)

        return sum(inner(u) for u in x.tolist())

    return f


class Loss:
    def __init__(self, data: Any) -> None:
        self.data = data

    def __call__(self, x: Any) -> Any:
        return self.value(x)

    def value(self, x: Any) -> Any:
        r = self.data @ x
        return np.where(np.abs(r) < 1.0, 0.5 * r**2, np.abs(r) - 0.5).mean()


TRACED: dict[str, Callable[[Any], Any]] = {
    "helpers": with_helper,
    "filled arrays": filled,
    "in place": in_place,
    "closures": outer(0.25),
    "objects": Loss(DATA),
    "methods": Loss(DATA).value,
    "partial": functools.partial(lambda k, x: k * np.abs(x).sum(), 3.0),
    "max of a generator": lambda x: max(v * v for v in x),
    "min of two": lambda x: min(x[0], x[1]) + max(x[2], 0.0, -x[3]),
    "sorted": lambda x: sum(w * v for w, v in zip([1.0, 2.0, 3.0, 4.0], sorted(x))),
    "math": lambda x: math.hypot(x[0], x[1]) + math.fabs(x[2]) + math.sqrt(x[3] ** 2 + 1.0),
    "methods of arrays": lambda x: (
        x.reshape(2, 2).T.sum(axis=0).max() + x.dot(x) + x.clip(-1, 1).mean()
    ),
    "array of parts": lambda x: np.array([x[0] * x[1], np.exp(x[2]), 1.0]).max(),
    "comprehension": lambda x: np.sum([abs(x[i] - x[i - 1]) for i in range(1, 4)]),
    "enumerate": lambda x: sum((i + 1) * abs(v) for i, v in enumerate(x)),
    "lists of numbers": lambda x: np.abs(x - [1, 2, 3, 4]).sum() + np.max([1, 0, 1, 0] * x),
    "unpacking": lambda x: (lambda p, q, r, s: abs(p - q) + r * s)(*x),
    "like": lambda x: np.abs(np.ones_like(x) - x).sum() + np.zeros_like(x).sum(),
    "none index": lambda x: np.abs(x[:, None] - x[None, :]).sum(),
    "ellipsis": lambda x: np.abs(x.reshape(2, 2)[..., 0]).sum(),
    "numbers first": lambda x: np.maximum(0.0, 1.0 - DATA @ x).sum() + 2.0 / (1.0 + x @ x),
    "builtin pow": lambda x: pow(x[0], 2) + abs(x[1]) ** 3 + x[2] ** 2.0,
    "median of sizes": lambda x: np.median(np.abs(x - 1.0)),
    "mask of numbers": lambda x: np.where(np.array([True, False, True, False]), x, -x).max(),
    "float of a number": lambda x: float(np.abs(x[0])) + float("2"),
    "isfinite": lambda x: np.abs(x).sum() if np.isfinite(x).all() else np.inf,
}


@pytest.mark.parametrize("name", TRACED)
def test_code_is_read(name: str) -> None:
    f = TRACED[name]
    F = gs.trace(f, np.zeros(4))
    rng = np.random.default_rng(3)
    for _ in range(3):
        x, v = rng.standard_normal((2, 4))
        assert F.value(x) == pytest.approx(float(f(x.copy())), rel=1e-13, abs=1e-13)
        slope = (f(x + 1e-6 * v) - f(x - 1e-6 * v)) / 2e-6
        assert F.gradient(x) @ v == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_the_users_module_is_not_changed() -> None:
    before = dict(globals())
    gs.trace(with_helper, 4)
    assert {k: v for k, v in globals().items() if before.get(k) is not v} == {
        "before": before
    } or all(globals()[k] is v for k, v in before.items())
    assert max is builtins.max


def branches(x: Any) -> Any:
    if x[0] > 0:
        return x[0]
    return -x[0]


COUNTER = [0]


def counts(x: Any) -> Any:
    COUNTER[0] += 1
    return np.abs(x).sum() * COUNTER[0]


def swallows(x: Any) -> Any:
    try:
        return float(np.floor(x[0])) + x[1]
    except Exception:
        return x[1]


def by_type(x: Any) -> Any:
    return np.abs(x).sum() if isinstance(x, np.ndarray) else 2.0 * np.abs(x).sum()


KEPT: list[Any] = []


def keeps(x: Any) -> Any:
    if not KEPT:
        KEPT.append(np.abs(x).sum())
    return KEPT[0]


@functools.lru_cache
def cached(x: Any) -> Any:
    return np.abs(x).sum()


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "if": (branches, r"line \d+: `if x\[0\] > 0:` chooses by value; write np.where"),
    "and": (lambda x: x[0] and x[1], "chooses by value"),
    "while": (lambda x: next(v for v in x if v > 0), "chooses by value"),
    "mask": (lambda x: x[x > 0].sum(), "picks entries by value; write np.where"),
    "argmin": (lambda x: x[np.argmin(x)], "not known|index"),
    "method argmax": (lambda x: x[x.argmax()], "index"),
    "floor": (lambda x: np.floor(x).sum(), "floor jumps"),
    "sign": (lambda x: (np.sign(x) * x).sum(), "sign jumps"),
    "int": (lambda x: int(x[0]), "rounds"),
    "astype": (lambda x: x.astype(int).sum(), "rounds"),
    "round": (lambda x: round(x[0], 2), "rounds"),
    "remainder": (lambda x: (x % 2.0).sum(), "jumps"),
    "equal": (lambda x: np.where(x == 0.0, 1.0, 2.0).sum(), "equality"),
    "svd": (lambda x: np.linalg.svd(x.reshape(2, 2))[1].sum(), "give a gradient"),
    "fft": (lambda x: np.abs(np.fft.fft(x)).sum(), "not known"),
    "random": (lambda x: random.random() * x[0], "something else the second time"),
    "counter": (counts, "something else the second time"),
    "swallowed": (swallows, "floor jumps"),
    "by type": (by_type, "differ at x"),
    "kept": (keeps, "keeps answers|does not depend"),
    "cached": (cached, "unhashable|cannot be traced|while being traced"),
    "constant": (lambda x: 3.0, "does not depend on x"),
    "a vector": (lambda x: 2.0 * x, "expected one number"),
    "an error": (lambda x: x[7], "cannot index|out of bounds"),
    "an own error": (lambda x: {}["a"], "KeyError"),
    "loops without end": (
        lambda x: functools.reduce(lambda s, _: s + s * x[0], range(3), x[0]) / 0.0,
        "divide|divisor",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_words(name: str) -> None:
    f, words = REFUSED[name]
    KEPT.clear()
    with pytest.raises(TypeError, match=words):
        gs.trace(f, np.ones(4))


def test_data_are_copied() -> None:
    data = np.ones(2)
    F = gs.trace(lambda x: np.abs(x - data).sum(), 2)
    data[:] = 7.0
    assert F.value(np.zeros(2)) == 2.0


def test_structures_and_arguments() -> None:
    def f(p: Any, k: float) -> Any:
        return k * np.abs(p["a"]).sum() + np.max(p["b"] ** 2)

    F = gs.trace(f, {"a": np.ones(2), "b": np.ones((2, 2))}, (3.0,))
    assert F.value(np.array([1.0, -1.0, 0.0, 0.0, 2.0, 0.0])) == 10.0


def curved(x: Any) -> Any:
    return np.abs(x[0] - np.exp(x[1])) + 0.1 * (x[0] - 2.0) ** 2 + 0.1 * x[1] ** 2


def curved_gradient(x: Any) -> Any:
    s = np.sign(x[0] - np.exp(x[1]))
    return np.array([s + 0.2 * (x[0] - 2.0), -s * np.exp(x[1]) + 0.2 * x[1]])


def test_minimize_needs_no_gradient() -> None:
    res = gs.minimize(curved, [1.0, 1.0], eps=1e-5, delta=1e-5, rng=0)
    assert res.success
    assert res.gradient_source == "traced"
    assert "gradient: derived from the code of fun" in repr(res)
    assert res.certificate.verify(curved).ok
    assert res.certificate.verify(curved, curved_gradient).ok
    given = gs.minimize(curved, [1.0, 1.0], curved_gradient, eps=1e-5, delta=1e-5, rng=0)
    assert given.gradient_source == "given"
    assert "derived" not in repr(given)
    np.testing.assert_allclose(given.x, res.x, atol=1e-4)
    values = gs.minimize(curved, [1.0, 1.0], "2-point", eps=0.5, delta=0.1, rng=0)
    assert values.gradient_source == "differences"
    expression = gs.minimize(gs.trace(curved, 2), [1.0, 1.0], eps=1e-3, delta=1e-3, rng=0)
    assert expression.gradient_source == "oracle"


def test_a_proof_at_an_irrational_pivot_from_plain_code() -> None:
    res = gs.minimize(curved, [1.0, 1.0], eps=1e-6, delta=1e-5, stationarity="near", rng=0)
    assert res.success
    assert res.certificate.label == "certified"
    assert res.certificate.eps < 1e-11
    assert res.certificate.verify(curved).ok


def test_certify_and_curves_and_many_starts_need_none() -> None:
    from goldstein.parallel import multistart

    assert gs.certify(np.linalg.norm, np.zeros(2), delta=1e-3, rng=0).eps < 1e-8
    curve = gs.stationarity_curve(lambda x: np.abs(x).sum(), [0.01], deltas=[1e-3, 1e-1], rng=0)
    np.testing.assert_allclose(curve.eps, [1.0, 0.0], atol=1e-12)
    found = multistart(curved, [[1.0, 1.0], [0.0, 0.0]], eps=1e-4, delta=1e-4, rng=0)
    assert found.best.gradient_source == "traced"


def test_the_scipy_method_derives_gradients_too() -> None:
    res = scipy.optimize.minimize(curved, [1.0, 1.0], method=goldstein.scipy.method)
    assert res.success
    assert res.njev > 0  # not from values alone
    plain = scipy.optimize.minimize(branches, [1.0, 1.0], method=goldstein.scipy.method,
                                    options={"maxfev": 200})  # fmt: skip
    assert plain.njev == 0


def test_where_tracing_fails_the_old_message_says_why() -> None:
    with pytest.raises(TypeError, match=r"(?s)no gradient.*chooses by value.*Pass jac"):
        gs.minimize(branches, [1.0], eps=1e-3, delta=1e-3)


def test_a_layout_is_traced_through() -> None:
    def f(p: Any) -> Any:
        return np.abs(p["a"]).sum() + np.max(p["b"] ** 2)

    start = {"a": np.ones(2), "b": np.ones((2, 2))}
    res = gs.minimize(f, start, eps=1e-4, delta=1e-4, rng=0)
    assert res.success
    assert res.x["b"].shape == (2, 2)
    assert res.certificate.verify(f).ok


def test_random_programs_are_those_of_numpy_jax_and_sixty_digits() -> None:
    pytest.importorskip("jax")
    compared = Compared()
    for seed in range(1_000_000, 1_000_030):
        compared.one(seed)
    assert compared.false == []
    assert compared.counts["enclosed gradient"] >= 20
