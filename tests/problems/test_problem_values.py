"""Values, gradients and facts of every problem, against independent references."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from goldstein import problems
from goldstein.problems.forms import SparsePolynomials
from goldstein.problems.registry import DEFINITIONS, AnyDimension
from goldstein.problems.test06 import wong_1_polynomials, wong_3_polynomials

REFERENCE = json.loads((Path(__file__).parent / "reference_values.json").read_text())
SCALABLE = sorted(n for n, d in DEFINITIONS.items() if isinstance(d.dims, AnyDimension))


def sizes(name: str) -> list[int]:
    """The smallest size, two more, all allowed."""
    dims = DEFINITIONS[name].dims
    assert isinstance(dims, AnyDimension)
    if name == "nesterov_worst":
        return [10, 11, 37]
    return [dims.minimum, dims.minimum + dims.multiple, dims.minimum + 7 * dims.multiple]


def check_gradient(problem: problems.Problem, x: np.ndarray, rng: np.random.Generator) -> None:
    """Central differences along random directions.

    A kink inside the stencil spoils a difference, so a smaller step may speak for a larger one.
    """
    value, gradient = problem.fun_and_jac(x)
    assert value == pytest.approx(problem.fun(x), rel=1e-14, abs=1e-300)
    np.testing.assert_allclose(gradient, problem.jac(x), rtol=1e-13, atol=1e-300)
    assert gradient.shape == (problem.dim,)
    for _ in range(3):
        u = rng.standard_normal(problem.dim)
        u /= np.linalg.norm(u)
        slope = float(gradient @ u)
        scale = max(float(np.linalg.norm(gradient)), 1e-6)
        errors = []
        for h in (1e-5, 1e-6, 1e-7):
            difference = (problem.fun(x + h * u) - problem.fun(x - h * u)) / (2 * h)
            noise = 4e-16 * abs(value) / h
            errors.append((abs(difference - slope) - noise) / scale)
        assert min(errors) < 1e-5, (problem.name, x, errors)


@pytest.mark.parametrize("name", problems.names())
def test_the_gradient_is_the_derivative_of_the_value(name: str) -> None:
    problem = problems.get(name)
    rng = np.random.default_rng(7)
    # Near the start, and around the origin, where other pieces are active.
    for spread in (1e-3, 0.1, 1.0, 3.0):
        noise = rng.standard_normal((2, problem.dim))
        check_gradient(problem, problem.x0 + spread * noise[0], rng)
        check_gradient(problem, spread * noise[1], rng)


def test_the_second_residual_of_watson_has_the_right_gradient() -> None:
    problem = problems.get("watson")
    rng = np.random.default_rng(6)
    x = 1e-3 * rng.standard_normal(20)
    x[:2] += (2.0, -1.0)
    assert problem.fun(x) == abs(x[1] - x[0] ** 2 - 1.0)
    check_gradient(problem, x, rng)


@pytest.mark.parametrize("name", SCALABLE)
def test_the_gradient_is_right_at_other_sizes(name: str) -> None:
    rng = np.random.default_rng(8)
    for d in sizes(name):
        problem = problems.get(name, d=d)
        assert problem.dim == d
        check_gradient(problem, problem.x0 + 0.3 * rng.standard_normal(d), rng)


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_values_agree_with_an_independent_implementation(name: str) -> None:
    problem = problems.get(name)
    index = np.arange(1.0, problem.dim + 1.0)
    expected = REFERENCE[name]
    assert problem.dim == expected["dim"]
    for k, (value, slope) in enumerate(zip(expected["values"], expected["slopes"], strict=True)):
        x = problem.x0 + (3.0, 0.1, 1.0)[k % 3] * np.sin(k * index)
        assert problem.fun(x) == pytest.approx(value, rel=1e-11, abs=1e-13)
        if k == 0:
            continue  # a start may lie on a kink, where implementations may choose differently
        gradient = problem.jac(x)
        noise = 1e-11 * max(1.0, float(np.linalg.norm(gradient))) * math.sqrt(problem.dim)
        assert float(gradient @ np.cos(index)) == pytest.approx(slope, rel=1e-10, abs=noise)


def pairs(x: list[float]) -> list[tuple[float, float]]:
    return list(pairwise(x))


def literal_active_faces(x: list[float]) -> float:
    return max(math.log(abs(y) + 1.0) for y in [-sum(x), *x])


def literal_brown_2(x: list[float]) -> float:
    return sum(abs(a) ** (b * b + 1) + abs(b) ** (a * a + 1) for a, b in pairs(x))


def literal_cb3(a: float, b: float) -> tuple[float, float, float]:
    return a**4 + b**2, (2 - a) ** 2 + (2 - b) ** 2, 2 * math.exp(-a + b)


def literal_crescent(a: float, b: float) -> tuple[float, float]:
    return a**2 + (b - 1) ** 2 + b - 1, -(a**2) - (b - 1) ** 2 + b + 1


def literal_mifflin_2(x: list[float]) -> float:
    total = 0.0
    for a, b in pairs(x):
        y = a**2 + b**2 - 1
        total += -a + 2 * y + 1.75 * abs(y)
    return total


def literal_hilbert(x: list[float]) -> list[float]:
    return [abs(sum(xj / (i + j + 1) for j, xj in enumerate(x))) for i in range(len(x))]


def literal_tridiagonal(
    x: list[float], diagonal: Callable[[float, int], float], below: float, above: float
) -> float:
    d = len(x)
    worst = 0.0
    for i in range(d):
        r = diagonal(x[i], i + 1)
        r += below * x[i - 1] if i > 0 else 0.0
        r += above * x[i + 1] if i < d - 1 else 0.0
        worst = max(worst, abs(r))
    return worst


def literal_blocks(x: list[float]) -> float:
    worst = 0.0
    for i in range(1, len(x) + 1):
        j = (i - 1) // 5
        block = sum(math.cos(x[k - 1]) for k in range(5 * j + 1, 5 * j + 6))
        xi = x[i - 1]
        worst = max(worst, abs(5 - (j + 1) * (1 - math.cos(xi)) - math.sin(xi) - block))
    return worst


LITERAL: dict[str, Callable[[list[float]], float]] = {
    "maxq": lambda x: max(t * t for t in x),
    "mxhilb": lambda x: max(literal_hilbert(x)),
    "chained_lq": lambda x: sum(max(-a - b, -a - b + a * a + b * b - 1) for a, b in pairs(x)),
    "chained_cb3_1": lambda x: sum(max(literal_cb3(a, b)) for a, b in pairs(x)),
    "chained_cb3_2": lambda x: max(
        map(sum, zip(*[literal_cb3(a, b) for a, b in pairs(x)], strict=True))
    ),
    "active_faces": literal_active_faces,
    "brown_2": literal_brown_2,
    "chained_mifflin_2": literal_mifflin_2,
    "chained_crescent_1": lambda x: max(
        map(sum, zip(*[literal_crescent(a, b) for a, b in pairs(x)], strict=True))
    ),
    "chained_crescent_2": lambda x: sum(max(literal_crescent(a, b)) for a, b in pairs(x)),
    "test29_5": lambda x: sum(literal_hilbert(x)),
    "test29_6": lambda x: literal_tridiagonal(x, lambda t, i: (3 - 2 * t) * t + 1, -1.0, -1.0),
    "test29_17": literal_blocks,
    "test29_20": lambda x: literal_tridiagonal(x, lambda t, i: (0.5 * t - 3) * t - 1, 1.0, 2.0),
    "test29_22": lambda x: literal_tridiagonal(
        x,
        lambda t, i: 2 * t + (t + i / (len(x) + 1) + 1) ** 3 / (2 * (len(x) + 1) ** 2),
        -1.0,
        -1.0,
    ),
    "test29_24": lambda x: literal_tridiagonal(
        x,
        lambda t, i: (
            2 * t + 10 * math.sinh(10 * t) / (len(x) + 1) ** 2 - (1.0 if i == len(x) else 0.0)
        ),
        -1.0,
        -1.0,
    ),
    "goffin": lambda x: len(x) * max(x) - sum(x),
    "dc_4": lambda x: len(x) * max(map(abs, x)) - sum(map(abs, x)),
    "nesterov_chebyshev_rosenbrock_1": lambda x: (
        (x[0] - 1) ** 2 / 4 + sum(abs(b - 2 * a * a + 1) for a, b in pairs(x))
    ),
    "nesterov_chebyshev_rosenbrock_2": lambda x: (
        abs(x[0] - 1) / 4 + sum(abs(b - 2 * abs(a) + 1) for a, b in pairs(x))
    ),
    "ferrier_1": lambda x: sum(abs(i * t * t - 2 * t + sum(x)) for i, t in enumerate(x, 1)),
}


@pytest.mark.parametrize("name", sorted(LITERAL))
def test_vectorised_formulas_agree_with_literal_loops(name: str) -> None:
    rng = np.random.default_rng(5)
    for d in [*sizes(name), 50]:
        problem = problems.get(name, d=d)
        for x in (problem.x0, problem.x0 + 0.5 * rng.standard_normal(d), rng.standard_normal(d)):
            assert problem.fun(x) == pytest.approx(LITERAL[name](x.tolist()), rel=1e-12, abs=1e-13)


def test_the_polynomials_of_wong_agree_with_their_formulas() -> None:
    """Every constraint separately: most are inactive wherever the maximum is looked at."""
    rng = np.random.default_rng(9)
    for x in rng.normal(scale=3.0, size=(5, 20)):
        # Numbered from 1 as in the literature.
        _, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t = [0.0, *x.tolist()]
        first = [
            (a - 10) ** 2 + 5 * (b - 12) ** 2 + c**4 + 3 * (d - 11) ** 2 + 10 * e**6 + 7 * f**2
            + g**4 - 4 * f * g - 10 * f - 8 * g,
            2 * a**2 + 3 * b**4 + c + 4 * d**2 + 5 * e - 127,
            7 * a + 3 * b + 10 * c**2 + d - e - 282,
            23 * a + b**2 + 6 * f**2 - 8 * g - 196,
            4 * a**2 + b**2 - 3 * a * b + 2 * c**2 + 5 * f - 11 * g,
        ]  # fmt: skip
        third = [
            a**2 + b**2 + a * b - 14 * a - 16 * b + (c - 10) ** 2 + 4 * (d - 5) ** 2
            + (e - 3) ** 2 + 2 * (f - 1) ** 2 + 5 * g**2 + 7 * (h - 11) ** 2 + 2 * (i - 10) ** 2
            + (j - 7) ** 2 + (k - 9) ** 2 + 10 * (l - 1) ** 2 + 5 * (m - 7) ** 2
            + 4 * (n - 14) ** 2 + 27 * (o - 1) ** 2 + p**4 + (q - 2) ** 2 + 13 * (r - 2) ** 2
            + (s - 3) ** 2 + t**2 + 95,
            3 * (a - 2) ** 2 + 4 * (b - 3) ** 2 + 2 * c**2 - 7 * d - 120,
            5 * a**2 + 8 * b + (c - 6) ** 2 - 2 * d - 40,
            0.5 * (a - 8) ** 2 + 2 * (b - 4) ** 2 + 3 * e**2 - f - 30,
            a**2 + 2 * (b - 2) ** 2 - 2 * a * b + 14 * e - 6 * f,
            4 * a + 5 * b - 3 * g + 9 * h - 105,
            10 * a - 8 * b - 17 * g + 2 * h,
            -3 * a + 6 * b + 12 * (i - 8) ** 2 - 7 * j,
            -8 * a + 2 * b + 5 * i - 2 * j - 12,
            a + b + 4 * k - 21 * l,
            a**2 + 15 * k - 8 * l - 28,
            4 * a + 9 * b + 5 * m**2 - 9 * n - 87,
            3 * a + 4 * b + 3 * (m - 6) ** 2 - 14 * n - 10,
            14 * a**2 + 35 * o - 79 * p - 92,
            15 * b**2 + 11 * o - 61 * p - 54,
            5 * a**2 + 2 * b + 9 * q**4 - r - 68,
            a**2 - b + 19 * s - 20 * t + 19,
            7 * a**2 + 5 * b**2 + s**2 - 30 * t,
        ]  # fmt: skip
        for z, polynomials, expected in (
            (x[:7], wong_1_polynomials(), first),
            (x, wong_3_polynomials(), third),
        ):
            system = SparsePolynomials(polynomials)
            np.testing.assert_allclose(system.values(z), expected, rtol=1e-12, atol=1e-9)
            for number in range(len(expected)):
                u = rng.standard_normal(z.size)
                up, down = system.values(z + 1e-5 * u), system.values(z - 1e-5 * u)
                slope = (up - down)[number] / 2e-5
                exact = float(system.gradient(z, number) @ u)
                assert slope == pytest.approx(exact, rel=1e-5, abs=1e-3)


@pytest.mark.parametrize("name", problems.names())
def test_the_facts_are_consistent(name: str) -> None:
    problem = problems.get(name)
    assert problem.name == name
    assert len(problem.citation) > 20
    assert problem.formula
    assert (problem.best_value is None) == (problem.best_value_kind == "none")
    start = problem.fun(problem.x0)
    assert math.isfinite(start)
    if problem.best_value is not None:
        assert problem.best_value < start
        if problem.reference_value is not None:
            assert problem.reference_value >= problem.best_value - 1e-12 * max(1.0, abs(start))
            assert problem.reference_value < start


@pytest.mark.parametrize("name", problems.names())
def test_an_exact_best_value_is_a_lower_bound(name: str) -> None:
    problem = problems.get(name)
    if problem.best_value_kind != "exact":
        assert problem.best_value_kind in ("literature", "planted", "best-found", "none")
        return
    assert problem.best_value is not None
    rng = np.random.default_rng(11)
    for spread in (0.0, 1e-3, 0.1, 1.0, 3.0):
        for _ in range(20):
            x = problem.x0 + spread * rng.standard_normal(problem.dim)
            assert problem.fun(x) >= problem.best_value - 1e-12 * max(1.0, abs(problem.best_value))


def zeros(d: int) -> np.ndarray:
    return np.zeros(d)


MINIMISERS: dict[str, Callable[[int], np.ndarray]] = {
    **dict.fromkeys(
        ["maxq", "maxq_20", "mxhilb", "active_faces", "brown_2", "chained_crescent_1",
         "chained_crescent_2", "test29_5", "test29_17", "crescent", "goffin", "dc_4", "wf",
         "half_and_half", "lewis_wylie_max", "lewis_wylie_sum", "ferrier_1", "ferrier_4",
         "convex_polyhedron"],
        zeros,
    ),
    **dict.fromkeys(
        ["chained_cb3_1", "chained_cb3_2", "cb3", "rosenbrock", "nonsmooth_rosenbrock", "dc_1",
         "dc_2", "nesterov_chebyshev_rosenbrock_smooth", "nesterov_chebyshev_rosenbrock_1",
         "nesterov_chebyshev_rosenbrock_2"],
        np.ones,
    ),
    "chained_lq": lambda d: np.full(d, math.sqrt(0.5)),
    "lq": lambda d: np.full(d, math.sqrt(0.5)),
    "dem": lambda d: np.array([0.0, -3.0]),
    "mifflin_1": lambda d: np.array([1.0, 0.0]),
    "mifflin_2": lambda d: np.array([1.0, 0.0]),
    "rosen_suzuki": lambda d: np.array([0.0, 1.0, 2.0, -1.0]),
    "polak_6": lambda d: np.array([0.0, 1.0, 2.0, -1.0]),
    "clarke_trap": lambda d: np.array([0.0, 1.0]),
    "nesterov_worst": lambda d: np.where(np.arange(d) < 10, -0.1, 0.0),
    "dc_6": lambda d: np.array([5.0, 0.0]),
    "dc_8": lambda d: np.array([0.75, 1.25, 0.25]),
    "dc_9": lambda d: np.array([7 / 3, 1 / 3, 0.5, 2.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(MINIMISERS))
def test_an_exact_best_value_is_attained(name: str) -> None:
    all_sizes = sizes(name) if name in SCALABLE else [problems.get(name).dim]
    for d in all_sizes:
        problem = problems.get(name, d=d)
        assert problem.best_value_kind == "exact"
        assert problem.fun(MINIMISERS[name](d)) == pytest.approx(problem.best_value, abs=1e-12 * d)


@pytest.mark.parametrize(
    ("name", "slope", "below", "above", "start"),
    [
        ("test29_6", lambda x: 3 - 4 * x, -1.0, -1.0, -1.0),
        ("test29_20", lambda x: x - 3, 1.0, 2.0, -1.0),
    ],
)
def test_tridiagonal_systems_have_a_root(
    name: str, slope: Callable[[np.ndarray], np.ndarray], below: float, above: float, start: float
) -> None:
    """Newton's method on the literal system drives the max-norm to zero, so 0 is the minimum."""
    from scipy.linalg import solve_banded

    diagonal = {
        "test29_6": lambda x: (3 - 2 * x) * x + 1,
        "test29_20": lambda x: (0.5 * x - 3) * x - 1,
    }[name]
    for d in (2, 3, 50, 10_000):
        x = np.full(d, start)
        for _ in range(30):
            r = diagonal(x)
            r[1:] += below * x[:-1]
            r[:-1] += above * x[1:]
            bands = np.zeros((3, d))
            bands[0, 1:], bands[1], bands[2, :-1] = above, slope(x), below
            x = x - solve_banded((1, 1), bands, r)
        assert problems.get(name, d=d).fun(x) < 1e-12


@pytest.mark.parametrize("d", [50, 100, 200, 1000])
def test_chained_mifflin_2_attains_its_best_value(d: int) -> None:
    """All y_i vanish except the second and the last: a two-parameter family."""
    from scipy.optimize import minimize

    problem = problems.get("chained_mifflin_2", d=d)

    def point(angles: np.ndarray) -> np.ndarray:
        x = np.empty(d)
        x[:2] = math.cos(angles[0]), math.sin(angles[0])
        x[2::2], x[3::2] = math.cos(angles[1]), math.sin(angles[1])
        x[-1] = 0.0
        return x

    best = minimize(lambda a: problem.fun(point(a)), [0.6, 0.78], tol=1e-12).fun
    assert best == pytest.approx(problem.best_value, rel=1e-9)
    literature = {50: -34.795, 100: -70.150, 200: -140.86, 1000: -706.55}[d]
    assert best == pytest.approx(literature, rel=2e-5)


@pytest.mark.parametrize("name", [n for n in problems.names() if DEFINITIONS[n].convex])
def test_convex_problems_satisfy_the_gradient_inequality(name: str) -> None:
    problem = problems.get(name)
    rng = np.random.default_rng(3)
    for spread in (0.01, 0.3, 2.0):
        for _ in range(30):
            x, y = problem.x0 + spread * rng.standard_normal((2, problem.dim))
            value, gradient = problem.fun_and_jac(x)
            bound = value + float(gradient @ (y - x))
            assert problem.fun(y) >= bound - 1e-10 * max(1.0, abs(value), abs(bound))


def test_unbounded_problems_go_down_for_ever() -> None:
    t = 1e4
    colville = problems.get("colville_1")
    assert not colville.bounded
    assert colville.fun([-t, 0, 0, 0, 0]) < -1e9
    # With sum d_j x_j^3 = 0 the cubic is gone and y may grow like |x|^2.
    dual = problems.get("shell_dual")
    x = np.array([0.41169636, 0.44776803, -0.16137128, -0.38278281, 0.0])
    x[4] = -np.cbrt(np.array([4.0, 8.0, 10.0, 6.0]) @ x[:4] ** 3 / 2.0)
    y = np.zeros(10)
    y[5], y[8] = 0.216, 0.548
    assert not dual.bounded
    assert dual.fun(np.concatenate([t * x, t * t * y])) < -1e7
    saddle = problems.get("kornowski_shamir", delta=0.5)
    assert not saddle.bounded
    assert saddle.fun([t, -0.5]) < -1e3


def test_smooth_problems_have_continuous_gradients() -> None:
    rng = np.random.default_rng(0)
    smooth = [n for n in problems.names() if DEFINITIONS[n].smooth]
    assert len(smooth) == 3
    for name in smooth:
        problem = problems.get(name)
        x = problem.x0 + rng.standard_normal(problem.dim)
        step = 1e-9 * rng.standard_normal(problem.dim)
        np.testing.assert_allclose(problem.jac(x + step), problem.jac(x), rtol=1e-5, atol=1e-5)
