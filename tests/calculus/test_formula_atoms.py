"""Smooth functions, order statistics and products, against NumPy and against many digits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import mpmath
import numpy as np
import pytest

import goldstein as gs
from goldstein.checker.enclosed.arrays import FUNCTIONS, Enclosure
from goldstein.checker.sides import point_at
from goldstein.errors import InputError, NotCertifiableError

a = gs.atoms
M = np.arange(6.0).reshape(3, 2) / 4.0

#: The same text for an expression and for an array, of four numbers; and what NumPy calls it.
SAME: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sigmoid": (a.sigmoid, lambda x: 1.0 / (1.0 + np.exp(-x))),
    "sum_largest": (lambda x: a.sum_largest(x, 2), lambda x: np.sort(x)[-2:].sum()),
    "trimmed_sum": (lambda x: a.trimmed_sum(x, 1, 1), lambda x: np.sort(x)[1:-1].sum()),
    "log_sum_exp": (gs.calculus.atoms.log_sum_exp, lambda x: np.log(np.exp(x).sum())),
    "quotient": (lambda x: a.quotient(x[0], x[1]), lambda x: x[0] / x[1]),
}
TWICE: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(np, name)
        for name in (
            "exp",
            "expm1",
            "sin",
            "cos",
            "tan",
            "tanh",
            "sinh",
            "cosh",
            "arctan",
            "arcsinh",
            "exp2",
            "square",
            "sort",
            "median",
            "ptp",
            "var",
            "std",
            "prod",
            "cumsum",
            "cumprod",
            "diff",
            "flip",
            "ravel",
        )
    },
    "log": lambda x: np.log(x**2 + 1.0),
    "log1p": lambda x: np.log1p(x**2),
    "log10": lambda x: np.log10(np.exp(x)),
    "log2": lambda x: np.log2(1.0 + np.abs(x)),
    "sqrt": lambda x: np.sqrt(x * x + 0.25),
    "root of squares": lambda x: np.sqrt(x @ x),
    "root of rows": lambda x: np.sqrt((x.reshape(2, 2) ** 2).sum(axis=1)),
    "rms": lambda x: np.sqrt(np.mean(x**2)),
    "abs by root": lambda x: np.sqrt(x**2),
    "hypot": lambda x: np.hypot(x[:2], x[2:]),
    "real power": lambda x: (x**2 + 1.0) ** 1.7,
    "negative power": lambda x: x**-3,
    "power of two": lambda x: np.abs(x) ** x,
    "exponential": lambda x: 3.0**x,
    "reciprocal": lambda x: 1.0 / x,
    "quotient": lambda x: x / x[0],
    "norm of rows": lambda x: np.linalg.norm(x.reshape(2, 2), axis=0),
    "norm 1": lambda x: np.linalg.norm(x, 1),
    "norm inf": lambda x: np.linalg.norm(x, np.inf),
    "norm 3": lambda x: np.linalg.norm(x, 3),
    "frobenius": lambda x: np.linalg.norm(x.reshape(2, 2)),
    "sum of an axis": lambda x: np.sum(x.reshape(2, 2), axis=1, keepdims=True),
    "two axes": lambda x: np.sum(x.reshape(1, 2, 2), axis=(0, 2)),
    "mean": lambda x: np.mean(x.reshape(2, 2), axis=0),
    "max": lambda x: x.reshape(2, 2).max(axis=0),
    "min": lambda x: np.min(x.reshape(2, 2), axis=1),
    "quantile": lambda x: np.quantile(x, 0.3),
    "percentile": lambda x: np.percentile(x, 80),
    "outer": lambda x: np.outer(x, x),
    "median of rows": lambda x: np.median(x.reshape(2, 2), axis=1),
    "sorted columns": lambda x: np.sort(x.reshape(2, 2), axis=0),
    "trace": lambda x: np.trace(x.reshape(2, 2)),
    "inner": lambda x: np.inner(x, x[::-1]),
    "einsum": lambda x: np.einsum("ij,kj->ki", x.reshape(2, 2), M),
    "einsum of two": lambda x: np.einsum("ij,jk->ik", x.reshape(2, 2), x.reshape(2, 2)),
    "matmul": lambda x: x.reshape(2, 2) @ x.reshape(2, 2) @ x[:2],
    "stacks of tables": lambda x: np.ones((3, 2, 2)) @ x.reshape(2, 2),
    "average": lambda x: np.average(x, weights=[1.0, 2.0, 3.0, 4.0]),
    "convolve": lambda x: np.convolve(x, [1.0, -1.0, 0.5], "same"),
    "cross": lambda x: np.cross(x[:3], np.array([1.0, 2.0, 3.0])),
    "tril": lambda x: np.tril(x.reshape(2, 2)),
    "diag": lambda x: np.diag(x),
    "pad": lambda x: np.pad(x, 1),
    "roll": lambda x: np.roll(x, 1),
    "append": lambda x: np.append(x, 7.0),
    "tile": lambda x: np.tile(x, 2),
    "repeat": lambda x: np.repeat(x, 2),
    "split": lambda x: np.split(x, 2)[1],
    "column_stack": lambda x: np.column_stack([x, 2.0 * x]),
    "diff of a table": lambda x: np.diff(x.reshape(2, 2), axis=0),
    "maximum.reduce": lambda x: np.maximum.reduce(x),
    "accumulate": lambda x: np.maximum.accumulate(x),
    "subtract.outer": lambda x: np.subtract.outer(x, x),
    "logaddexp": lambda x: np.logaddexp(x, 1.0),
    "swapaxes": lambda x: np.swapaxes(x.reshape(2, 2), 0, 1),
    "rot90": lambda x: np.rot90(x.reshape(2, 2)),
    "meshgrid": lambda x: np.meshgrid(x, x)[0],
    "expand": lambda x: np.expand_dims(x, 1),
}
SAME |= {name: (function, function) for name, function in TWICE.items()}


@pytest.mark.parametrize("name", SAME)
def test_values_and_gradients_are_numpys(name: str) -> None:
    ours, theirs = SAME[name]
    u = ours(gs.Variable(4))
    for seed in range(2):
        x, v = np.random.default_rng(seed).standard_normal((2, 4))
        there = np.asarray(theirs(x))
        assert u.shape == there.shape
        np.testing.assert_allclose(u(x), there, rtol=1e-12, atol=1e-12)
    weights = np.random.default_rng(9).standard_normal(u.size)
    F = gs.sum(u.reshape(u.size) * weights)
    slope = (F.value(x + 1e-6 * v) - F.value(x - 1e-6 * v)) / 2e-6
    assert F.gradient(x) @ v == pytest.approx(slope, rel=1e-6, abs=1e-6)
    limits = point_at(F.program(), x).limits(v[None])
    assert (np.abs(limits.mid[0] - F.gradient(x)) <= limits.rad[0] + 1e-9).all()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_enclosures_contain_what_many_digits_say(name: str) -> None:
    mpmath.mp.dps = 50
    known: dict[str, Callable[[Any], Any]] = {
        "reciprocal": lambda t: 1 / t, "arctan": mpmath.atan,
        "pseudo_huber": lambda t: mpmath.sqrt(1 + t * t) - 1,
    }  # fmt: skip
    value = known.get(name) or getattr(mpmath, name)
    rng = np.random.default_rng(1)
    mids = np.exp(rng.uniform(-5, 3, 40)) * (
        1 if FUNCTIONS[name].domain else rng.choice([-1, 1], 40)
    )
    box = Enclosure(mids, np.abs(mids) * rng.choice([0.0, 1e-12, 1e-3], 40))
    for found, exact in (
        (FUNCTIONS[name].at(box), value),
        (FUNCTIONS[name].slope_of(box), lambda t: mpmath.diff(value, t)),
    ):
        for k in range(40):
            for end in (-1.0, 0.0, 0.37, 1.0):
                t = mpmath.mpf(float(mids[k])) + mpmath.mpf(float(box.rad[k])) * end
                gap = abs(exact(t) - mpmath.mpf(float(found.mid[k])))
                assert gap <= mpmath.mpf(float(found.rad[k])) + mpmath.mpf(10) ** -18


@pytest.mark.parametrize(
    ("make", "point"),
    [
        (lambda w: a.log(w[0]), [0.0]), (lambda w: a.sqrt(w[0]), [0.0]),
        (lambda w: a.log(w[0]), [-1.0]), (lambda w: a.quotient(w[0], w[0]), [0.0]),
        (lambda w: w[0] ** 0.5, [0.0]), (lambda w: w[0] ** w[0], [0.0]),
        (lambda w: w[0] ** 1.5, [-2.0]), (lambda w: a.tan(w[0]) / w[0], [0.0]),
    ],
)  # fmt: skip
def test_domains_are_part_of_a_claim(make: Callable[[Any], Any], point: list[float]) -> None:
    here = point_at(make(gs.Variable(1)).program(), point)
    with pytest.raises(NotCertifiableError, match=r"positive|nonzero"):
        here.limits(np.ones((1, 1)))


def test_exact_values_decide_kinks_of_smooth_functions() -> None:
    """|x0 - exp(x1)| at (1, 0), where exp is known exactly: Clarke's subgradients are a segment."""
    w = gs.Variable(2)
    F = gs.abs(w[0] - a.exp(w[1])) + gs.abs(a.sin(w[1]) + a.sqrt(w[0]) - 1.0)
    here = point_at(F.program(), [1.0, 0.0])
    limits = here.limits(np.array([[1.0, 0.5], [-1.0, 0.0]]))
    np.testing.assert_allclose(limits.mid, [[1.5, 0.0], [-1.5, 0.0]], atol=1e-12)
    with pytest.raises(NotCertifiableError):  # along the first kink
        here.limits(np.array([[1.0, 1.0]]))


def test_a_tie_that_is_only_nearly_one_is_refused() -> None:
    w = gs.Variable(2)
    F = gs.abs(w[0] - a.exp(w[1]))
    with pytest.raises(NotCertifiableError, match="cannot be decided"):
        point_at(F.program(), [float(np.exp(0.5)), 0.5]).limits(np.ones((1, 2)))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_sums_of_the_largest_have_the_subgradients_of_all_orders(k: int) -> None:
    """At a tie of all entries the limits are the ways to choose k of them."""
    F = a.sum_largest(gs.Variable(4), k)
    here = point_at(F.program(), [1.0, 1.0, 1.0, 0.0])
    found = {tuple(map(float, row)) for row in here.limits(
        np.random.default_rng(0).standard_normal((60, 4))).mid}  # fmt: skip
    expected = {tuple(float(i in some) for i in range(4)) for some in combinations(range(3), k)}
    assert found == expected


def test_ties_whose_order_does_not_matter_are_no_kinks() -> None:
    F = a.sum_largest(gs.Variable(3), 2)
    assert not point_at(F.program(), [1.0, 1.0, 0.0]).ties
    np.testing.assert_array_equal(F.gradient(np.array([1.0, 1.0, 0.0])), [1.0, 1.0, 0.0])
    with pytest.raises(gs.KinkError):
        F.gradient(np.array([1.0, 0.0, 0.0]))


def test_sorting_before_a_linear_map_is_one_node() -> None:
    F = np.sort(gs.Variable(5))[:3].sum()
    assert [n.name for n in F.program().nodes] == ["variable", "order"]


WHERE: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: np.where(x > 0, x, 0.0),
    "abs": lambda x: np.where(x < 0, -x, x),
    "leaky": lambda x: np.where(x >= 0, x, 0.1 * x),
    "maximum": lambda x: np.where(x > x[::-1], x, x[::-1]),
    "huber": lambda x: np.where(np.abs(x) <= 1.3, 0.5 * x**2, 1.3 * np.abs(x) - 0.5 * 1.3**2),
    "tukey": lambda x: np.where(np.abs(x) < 2.0, 1.0 - (1.0 - (x / 2.0) ** 2) ** 3, 1.0),
    "squared hinge": lambda x: np.where(x < 1.0, (1.0 - x) ** 2, 0.0),
    "elu": lambda x: np.where(x > 0, x, np.exp(x) - 1.0),
    "both": lambda x: np.where((x > 0) & (x < 1), x * (1.0 - x), 0.0),
    "not": lambda x: np.where(~(x > 0), 0.0, np.sin(x)),
    "mask": lambda x: (x > 0.0) * x**2,
    "nested": lambda x: np.where(x > 1, 2.0 * x - 1.0, np.where(x > 0, x**2, 0.0)),
    "guarded": lambda x: np.where(x > 1.0, np.log(x), 0.0),
}


@pytest.mark.parametrize("name", WHERE)
def test_where_is_read(name: str) -> None:
    def f(x: Any) -> Any:
        return np.sum(WHERE[name](x) * np.arange(1.0, 5.0))

    F = gs.trace(f, np.zeros(4))
    rng = np.random.default_rng(2)
    for scale in (0.5, 3.0):
        x = scale * rng.standard_normal(4)
        with np.errstate(invalid="ignore"):
            assert F.value(x) == pytest.approx(f(x), rel=1e-12, abs=1e-12)


JUMPS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "beside": (lambda x: np.where(x[0] >= 0, x[1], 0.0), "jumps by"),
    "step": (lambda x: np.where(x[0] > 0, 1.0, 0.0), "jumps by"),
    "huber": (lambda x: np.where(np.abs(x) <= 1, 0.5 * x**2, np.abs(x)).sum(), "jumps by"),
    "exp": (lambda x: np.where(x > 0, x, np.exp(x)).sum(), "jumps by"),
}


@pytest.mark.parametrize("name", JUMPS)
def test_where_that_jumps_is_refused_with_the_jump(name: str) -> None:
    function, words = JUMPS[name]
    with pytest.raises(gs.TraceError, match=words):
        gs.trace(function, 2)


def test_rounded_constants_are_closed() -> None:
    """506 values of k: k |r| - k^2 / 2 jumps by what k^2 was rounded by; the program does not."""
    for k in np.linspace(0.5, 3.0, 23):
        F = gs.trace(
            lambda x, k=k: np.where(abs(x) <= k, 0.5 * x**2, k * abs(x) - 0.5 * k**2)[0], 1
        )
        pieces = F.describe()[1]["pieces"]
        t = Fraction(F.describe()[1]["breakpoints"][1])
        left, right = (sum(Fraction(c) * t**j for j, c in enumerate(p)) for p in pieces[1:])
        assert left == right


def test_where_needs_a_comparison() -> None:
    with pytest.raises(TypeError, match="comparison"):
        a.where(True, gs.Variable(1), 0.0)
    with pytest.raises(InputError, match="whole number"):
        a.sum_largest(gs.Variable(2), 3)
