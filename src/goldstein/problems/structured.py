"""Structured problems from the nonsmooth quasi-Newton and bundle literature."""

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.problems.forms import largest, sign, signs, sum_of_moduli
from goldstein.problems.registry import AnyDimension, Instance, family, plane_pair, together

problem = family("structured")
lewis_wylie = family("lewis-wylie", "Lewis, Wylie (2019), arXiv:1907.11742, eq. {}")
ferrier = family(
    "ferrier", "Hare, Sagastizabal (2010), SIAM J. Optim. 20(5), 2442-2473 (Ferrier polynomials)"
)


@problem(
    2, "w|x1^2-x2|+(1-x1)^2, w = 8", "Lewis, Overton (2013), Math. Program. 141, 135-163",
    reference=1.0412146923696211e-14,
)  # fmt: skip
def nonsmooth_rosenbrock(w: float = 8.0) -> Instance:
    """Rosenbrock's valley with a kink along its floor. Minimiser (1, 1)."""

    def both(a: float, b: float) -> Any:
        s = w if a * a >= b else -w
        return w * abs(a * a - b) + (1.0 - a) ** 2, (2.0 * s * a - 2.0 * (1.0 - a), -s)

    return Instance([-1.2, 1.0], plane_pair(both))


@problem(
    8, "sqrt(x'Ax)+x'Bx, A = diag(1,0,1,0,...), B = diag(1/i^2)",
    "Lewis, Overton (2013), Math. Program. 141, 135-163; Mifflin, Sagastizabal (2012)", convex=True,
    reference=9.076023962486877e-21,
)  # fmt: skip
def half_and_half() -> Instance:
    """Partly smooth: sharp in half of the variables, quadratic in the other half."""
    curvature = 1.0 / np.arange(1.0, 9.0) ** 2

    def both(x: Vector) -> Any:
        g = 2.0 * curvature * x
        length = math.sqrt(x[::2] @ x[::2])
        if length > 0.0:
            g[::2] += x[::2] / length
        return length + curvature @ (x * x), g

    return Instance(np.full(8, 20.08), together(both))


@problem(
    AnyDimension(1), "max_{i<=m} x_i+|x|^2/2, m = 10",
    "Nesterov (2004), Introductory Lectures on Convex Optimization, sec. 3.2.1", convex=True,
    best=None, reference=-0.049999999999999975,
)  # fmt: skip
def nesterov_worst(d: int = 50, m: int = 10) -> Instance:
    """The resisting oracle of the lower complexity bound; minimum -1/(2m)."""
    if not 1 <= m <= d:
        raise InputError(f"nesterov_worst: m = {m} is not possible; use 1 <= m <= d = {d}.")

    def both(x: Vector) -> Any:
        g = x.copy()
        g[int(np.argmax(x[:m]))] += 1.0
        return float(x[:m].max() + 0.5 * (x @ x)), g

    return Instance(np.zeros(d), together(both), -0.5 / m)


@problem(
    2, "|x1|-|x2|+x2^2/2",
    "elementary example of a Clarke stationary point with descent directions; cf. Clarke (1983),"
    " Optimization and Nonsmooth Analysis", best=-0.5, reference=-0.5,
    note="0 is Clarke stationary, yet no minimiser; x0 lies on the ridge", start=[1.0, 0.0],
)  # fmt: skip
def clarke_trap(a: float, b: float) -> Any:
    """Clarke stationary at 0 although it can be left downhill."""
    return abs(a) - abs(b) + 0.5 * b * b, (sign(a), b - sign(b))


def _lewis_wylie(d: int, pieces: int, seed: int) -> tuple[Any, Any, Any]:
    """g_i.x + x'H_i x/2 + c_i|x|^4/24 with a convex combination of the g_i equal to zero."""
    rng = np.random.default_rng(seed)
    slopes = rng.standard_normal((pieces, d))
    weights = rng.random(pieces) + 0.1
    slopes[-1] = -(weights[:-1] @ slopes[:-1]) / weights[-1]
    roots = rng.standard_normal((pieces, d, d)) / math.sqrt(d)
    hessians = roots @ roots.transpose(0, 2, 1)
    quartic = rng.random(pieces)

    def values(x: Vector) -> Vector:
        return slopes @ x + 0.5 * ((hessians @ x) @ x) + quartic / 24.0 * (x @ x) ** 2

    def row(x: Vector, i: int) -> Vector:
        return slopes[i] + hessians[i] @ x + quartic[i] / 6.0 * (x @ x) * x

    def pullback(x: Vector, s: Vector) -> Vector:
        return s @ slopes + s @ (hessians @ x) + (quartic @ s) / 6.0 * (x @ x) * x

    return values, row, pullback


@lewis_wylie(
    AnyDimension(10), "max_{i<=10} g_i'x+x'H_i x/2+c_i|x|^4/24, sum lam_i g_i = 0", "(8.4)",
    convex=True, reference=1.7389973853066093e-14,
)  # fmt: skip
def lewis_wylie_max(d: int = 30, seed: int = 1) -> Instance:
    """Strongly convex, partly smooth. Minimiser 0."""
    values, row, _ = _lewis_wylie(d, 10, seed)
    return Instance(np.ones(d), largest(values, row))


@lewis_wylie(
    AnyDimension(8), "sum_{i<=8} |g_i'x+x'H_i x/2+c_i|x|^4/24|", "(8.5)",
    reference=8.568992230239814e-16,
)  # fmt: skip
def lewis_wylie_sum(d: int = 20, seed: int = 3) -> Instance:
    """Nonconvex; 0 is a minimiser, possibly not the only one."""
    values, _, pullback = _lewis_wylie(d, 8, seed)
    return Instance(np.ones(d), sum_of_moduli(values, pullback))


def _ferrier(d: int, ridge: float) -> Instance:
    index = np.arange(1.0, d + 1.0)

    def both(x: Vector) -> Any:
        r = index * x * x - 2.0 * x + np.sum(x)
        s = signs(r)
        value = np.sum(np.abs(r)) + 0.5 * ridge * (x @ x)
        return value, s * (2.0 * index * x - 2.0) + np.sum(s) + ridge * x

    return Instance(1.0 / index**2, together(both))


@ferrier(AnyDimension(2), "sum |h_i|, h_i = i x_i^2-2x_i+sum x", reference=1.4226836015325814e-18)
def ferrier_1(d: int = 10) -> Instance:
    """Sum of moduli of Ferrier's polynomials. Minimiser 0."""
    return _ferrier(d, 0.0)


@ferrier(AnyDimension(2), "sum |h_i|+|x|^2/2, h_i as in ferrier_1", reference=9.408860575614115e-19)
def ferrier_4(d: int = 10) -> Instance:
    """The same with a quadratic. Minimiser 0."""
    return _ferrier(d, 1.0)


chebyshev = family(
    "chebyshev-rosenbrock",
    "Gurbuzbalaban, Overton (2012), Nonlinear Anal. 75, 1282-1289 (functions by Nesterov)",
)
ANY = AnyDimension(2)


def _corner(d: int) -> Vector:
    return np.append(-1.0, np.ones(d - 1))


def _joined(first: tuple[Any, Any], rest: Any, left: Vector, right: Vector) -> tuple[Any, Vector]:
    """A term of x_1 with its slope, and the others: what x_i loses and x_{i+1} gains of them."""
    g = np.append(first[1], 0.0 + right)
    g[:-1] -= left
    return first[0] + rest, g


def _parabola(t: float) -> tuple[float, float]:
    return 0.25 * (t - 1.0) ** 2, 0.5 * (t - 1.0)


@chebyshev(
    ANY, "(x1-1)^2/4+sum_{i<d} (x_{i+1}-2x_i^2+1)^2", smooth=True, reference=4.6407207939954835e-29,
    note="very long curved valley", start=_corner, size=5,
)  # fmt: skip
def nesterov_chebyshev_rosenbrock_smooth(x: Vector) -> Any:
    """The smooth variant; unique minimiser at all ones."""
    r = x[1:] - 2.0 * x[:-1] ** 2 + 1.0
    return _joined(_parabola(x[0]), r @ r, 8.0 * r * x[:-1], 2.0 * r)


@chebyshev(
    ANY, "(x1-1)^2/4+sum_{i<d} |x_{i+1}-2x_i^2+1|", reference=2.2193366726374907e-08,
    note="one stationary point; x0 lies on every kink", start=_corner, size=3,
)  # fmt: skip
def nesterov_chebyshev_rosenbrock_1(x: Vector) -> Any:
    """First nonsmooth variant: regular, one stationary point."""
    r = x[1:] - 2.0 * x[:-1] ** 2 + 1.0
    return _joined(_parabola(x[0]), np.sum(np.abs(r)), 4.0 * signs(r) * x[:-1], signs(r))


@chebyshev(
    ANY, "|x1-1|/4+sum_{i<d} |x_{i+1}-2|x_i|+1|", reference=2.7755575615628914e-17,
    note="2^(d-1) Clarke stationary points, one minimiser", start=_corner, size=3,
)  # fmt: skip
def nesterov_chebyshev_rosenbrock_2(x: Vector) -> Any:
    """Second nonsmooth variant: many Clarke stationary points that are no minimisers."""
    r, first = x[1:] - 2.0 * np.abs(x[:-1]) + 1.0, x[0] - 1.0
    head = 0.25 * abs(first), 0.25 * sign(first)
    return _joined(head, np.sum(np.abs(r)), 2.0 * signs(r) * signs(x[:-1]), signs(r))


counterexample = family("counterexamples")


def _positive(name: str, delta: float) -> float:
    if not (math.isfinite(delta) and delta > 0.0):
        raise InputError(f"{name}: delta = {delta!r} is not possible; use a number > 0.")
    return float(delta)


@counterexample(
    2, "max{2x1, -2x1, x2}", "Tian, Zhou, So (2022), ICML, PMLR 162, Prop. 2.7", convex=True,
    reference=0.0,
    note="(0, 2 delta) is (0, delta)-Goldstein stationary; every Clarke subgradient in its"
    " delta-ball has norm at least 2/sqrt(5)",
)  # fmt: skip
def convex_polyhedron(delta: float = 0.5) -> Instance:
    """Even a convex polyhedral function separates the two notions, at x0 = (0, 2 delta)."""
    delta = _positive("convex_polyhedron", delta)

    def both(a: float, b: float) -> Any:
        return (2.0 * abs(a), (2.0 * sign(a), 0.0)) if 2.0 * abs(a) >= b else (b, (0.0, 1.0))

    return Instance([0.0, 2.0 * delta], plane_pair(both))


@counterexample(
    2, "(2 delta+x1) sin(pi x2/(2 delta))",
    "Kornowski, Shamir (2022), J. Mach. Learn. Res. 23(314), Prop. 21", smooth=True, bounded=False,
    best=None, kind="none",
    note="0 is (0, delta)-Goldstein stationary: the gradients at (0, delta) and (0, -delta)"
    " cancel; the gradient has norm at least 1 on the delta-ball",
)  # fmt: skip
def kornowski_shamir(delta: float = 0.5) -> Instance:
    """A smooth function that separates the two notions at x0 = 0; for certificates only."""
    delta = _positive("kornowski_shamir", delta)
    rate = math.pi / (2.0 * delta)

    def both(a: float, b: float) -> Any:
        sine, along = math.sin(rate * b), 2.0 * delta + a
        return along * sine, (sine, rate * along * math.cos(rate * b))

    return Instance([0.0, 0.0], plane_pair(both))
