"""Small minimax problems collected by Luksan and Vlcek as TEST06: formulas."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import largest
from goldstein.problems.polynomials import (
    Polynomial,
    SparsePolynomials,
    Term,
    penalised,
    rosen_suzuki_polynomials,
)
from goldstein.problems.problem import Instance
from goldstein.problems.registry import problem

FAMILY = "test06"
SOURCE = "Luksan, Vlcek (2000), TR 798, ICS Prague, TEST06 no. "


@problem(
    dims=2,
    family=FAMILY,
    citation=SOURCE + "2 (Watson, Fletcher)",
    formula="max{x1+r+q, -x1+r+q, x1-r+q}/2, r = 10x1/(x1+0.1), q = 2x2^2",
    reference=9.616638343378792e-36,
    note="pole at x1 = -0.1",
)
def wf() -> Instance:
    """Minimiser 0."""
    mix = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])

    def pieces(x: Vector) -> Vector:
        a, b = x.tolist()
        return np.asarray(0.5 * (mix @ np.array([a, 10.0 * a / (a + 0.1)])) + b * b)

    def row(x: Vector, i: int) -> Vector:
        a, b = x.tolist()
        return np.array([0.5 * (mix[i, 0] + mix[i, 1] / (a + 0.1) ** 2), 2.0 * b])

    return Instance(np.array([3.0, 1.0]), largest(pieces, row))


@problem(
    dims=3,
    family=FAMILY,
    citation=SOURCE + "4",
    best=3.5997192998262393,
    kind="literature",
    formula="max{s+x3^2-1, s+(x3-2)^2, x1+x2+x3-1, x1+x2-x3+1,"
    " 2x1^3+6x2^2+2(5x3-x1+1)^2, x1^2-9x3}, s = x1^2+x2^2",
    reference=3.5997192998262393,
)
def evd52() -> Instance:
    """Quadratics, planes and a cubic."""

    def pieces(x: Vector) -> Vector:
        a, b, c = x.tolist()
        s, w = a * a + b * b, 5.0 * c - a + 1.0
        cubic = 2.0 * a**3 + 6.0 * b * b + 2.0 * w * w
        planes = (a + b + c - 1.0, a + b - c + 1.0)
        return np.array([s + c * c - 1.0, s + (c - 2.0) ** 2, *planes, cubic, a * a - 9.0 * c])

    def row(x: Vector, i: int) -> Vector:
        a, b, c = x.tolist()
        w = 5.0 * c - a + 1.0
        rows = (
            (2.0 * a, 2.0 * b, 2.0 * c),
            (2.0 * a, 2.0 * b, 2.0 * c - 4.0),
            (1.0, 1.0, 1.0),
            (1.0, 1.0, -1.0),
            (6.0 * a * a - 4.0 * w, 12.0 * b, 20.0 * w),
            (2.0 * a, 0.0, -9.0),
        )
        return np.array(rows[i])

    return Instance(np.ones(3), largest(pieces, row))


@problem(
    dims=4,
    family=FAMILY,
    citation=SOURCE + "6",
    best=-44.0,
    reference=-44.00000000000001,
    formula="Rosen-Suzuki in (a, x2-a^4, x3, x4), a = x1-(x4+1)^4",
)
def polak_6() -> Instance:
    """Rosen-Suzuki after a nonlinear bijection of the variables."""
    system = SparsePolynomials(rosen_suzuki_polynomials())

    def substitute(x: Vector) -> Vector:
        a = x[0] - (x[3] + 1.0) ** 4
        return np.array([a, x[1] - a**4, x[2], x[3]])

    def pieces(x: Vector) -> Vector:
        p = system.values(substitute(x))
        return np.array([p[0], *(p[0] + 10.0 * p[1:])])

    def row(x: Vector, i: int) -> Vector:
        z = substitute(x)
        g = system.gradient(z, 0)
        if i > 0:
            g = g + 10.0 * system.gradient(z, i)
        along_a = g[0] - 4.0 * z[0] ** 3 * g[1]
        return np.array([along_a, g[1], g[2], g[3] - 4.0 * (x[3] + 1.0) ** 3 * along_a])

    return Instance(np.zeros(4), largest(pieces, row))


def wong_1_polynomials() -> list[Polynomial]:
    """Objective and four constraints of Hock and Schittkowski's problem 100."""
    p0: list[Term] = [
        (1, 1, 2, 10), (5, 2, 2, 12), (1, 3, 4, 0), (3, 4, 2, 11), (10, 5, 6, 0),
        (7, 6, 2, 0), (1, 7, 4, 0), (-10, 6, 1, 0), (-8, 7, 1, 0),
    ]  # fmt: skip
    return [
        (0.0, p0, [(-4, 6, 7)]),
        (-127.0, [(2, 1, 2, 0), (3, 2, 4, 0), (1, 3, 1, 0), (4, 4, 2, 0), (5, 5, 1, 0)], []),
        (-282.0, [(7, 1, 1, 0), (3, 2, 1, 0), (10, 3, 2, 0), (1, 4, 1, 0), (-1, 5, 1, 0)], []),
        (-196.0, [(23, 1, 1, 0), (1, 2, 2, 0), (6, 6, 2, 0), (-8, 7, 1, 0)], []),
        (0.0, [(4, 1, 2, 0), (1, 2, 2, 0), (2, 3, 2, 0), (5, 6, 1, 0), (-11, 7, 1, 0)],
         [(-3, 1, 2)]),
    ]  # fmt: skip


@problem(
    dims=7,
    family=FAMILY,
    formula="max{p0, p0+10p_k}, 4 constraints (Hock-Schittkowski 100)",
    citation=SOURCE + "19",
    best=680.6300573744022,
    kind="literature",
    convex=True,
    reference=680.6300573744024,
)
def wong_1() -> Instance:
    """Wong's first problem, exactly penalised."""
    objective = penalised(wong_1_polynomials())
    return Instance(np.array([1.0, 2, 0, 4, 0, 1, 1]), objective)


def wong_3_polynomials() -> list[Polynomial]:
    """Objective and seventeen constraints."""
    p0: list[Term] = [
        (1, 1, 2, 0), (1, 2, 2, 0), (-14, 1, 1, 0), (-16, 2, 1, 0), (1, 3, 2, 10), (4, 4, 2, 5),
        (1, 5, 2, 3), (2, 6, 2, 1), (5, 7, 2, 0), (7, 8, 2, 11), (2, 9, 2, 10), (1, 10, 2, 7),
        (1, 11, 2, 9), (10, 12, 2, 1), (5, 13, 2, 7), (4, 14, 2, 14), (27, 15, 2, 1),
        (1, 16, 4, 0), (1, 17, 2, 2), (13, 18, 2, 2), (1, 19, 2, 3), (1, 20, 2, 0),
    ]  # fmt: skip
    return [
        (95.0, p0, [(1, 1, 2)]),
        (-120.0, [(3, 1, 2, 2), (4, 2, 2, 3), (2, 3, 2, 0), (-7, 4, 1, 0)], []),
        (-40.0, [(5, 1, 2, 0), (8, 2, 1, 0), (1, 3, 2, 6), (-2, 4, 1, 0)], []),
        (-30.0, [(0.5, 1, 2, 8), (2, 2, 2, 4), (3, 5, 2, 0), (-1, 6, 1, 0)], []),
        (0.0, [(1, 1, 2, 0), (2, 2, 2, 2), (14, 5, 1, 0), (-6, 6, 1, 0)], [(-2, 1, 2)]),
        (-105.0, [(4, 1, 1, 0), (5, 2, 1, 0), (-3, 7, 1, 0), (9, 8, 1, 0)], []),
        (0.0, [(10, 1, 1, 0), (-8, 2, 1, 0), (-17, 7, 1, 0), (2, 8, 1, 0)], []),
        (0.0, [(-3, 1, 1, 0), (6, 2, 1, 0), (12, 9, 2, 8), (-7, 10, 1, 0)], []),
        (-12.0, [(-8, 1, 1, 0), (2, 2, 1, 0), (5, 9, 1, 0), (-2, 10, 1, 0)], []),
        (0.0, [(1, 1, 1, 0), (1, 2, 1, 0), (4, 11, 1, 0), (-21, 12, 1, 0)], []),
        (-28.0, [(1, 1, 2, 0), (15, 11, 1, 0), (-8, 12, 1, 0)], []),
        (-87.0, [(4, 1, 1, 0), (9, 2, 1, 0), (5, 13, 2, 0), (-9, 14, 1, 0)], []),
        (-10.0, [(3, 1, 1, 0), (4, 2, 1, 0), (3, 13, 2, 6), (-14, 14, 1, 0)], []),
        (-92.0, [(14, 1, 2, 0), (35, 15, 1, 0), (-79, 16, 1, 0)], []),
        (-54.0, [(15, 2, 2, 0), (11, 15, 1, 0), (-61, 16, 1, 0)], []),
        (-68.0, [(5, 1, 2, 0), (2, 2, 1, 0), (9, 17, 4, 0), (-1, 18, 1, 0)], []),
        (19.0, [(1, 1, 2, 0), (-1, 2, 1, 0), (19, 19, 1, 0), (-20, 20, 1, 0)], []),
        (0.0, [(7, 1, 2, 0), (5, 2, 2, 0), (1, 19, 2, 0), (-30, 20, 1, 0)], []),
    ]  # fmt: skip


@problem(
    dims=20,
    family=FAMILY,
    formula="max{p0, p0+10p_k}, 17 polynomial constraints",
    citation=SOURCE + "21",
    best=133.72827616781444,
    kind="literature",
    convex=True,
    reference=133.72827616782362,
)
def wong_3() -> Instance:
    """Wong's third problem, exactly penalised."""
    objective = penalised(wong_3_polynomials())
    x0 = np.array([2.0, 3, 5, 5, 1, 2, 7, 3, 6, 10, 2, 2, 6, 15, 1, 2, 1, 2, 1, 3])
    return Instance(x0, objective)


@problem(
    dims=11,
    family=FAMILY,
    formula="max_{k<=10} sum_i (i+k-1)exp((x_i-sin(2i+k-3))^2)",
    citation=SOURCE + "23",
    best=261.08258060636683,
    kind="literature",
    convex=True,
    reference=261.08258060636683,
    note="texts with weights 1/(i+k) describe another function",
)
def polak_3() -> Instance:
    """Polak's third problem with the weights of the distributed code."""
    i, k = np.arange(1.0, 12.0), np.arange(1.0, 11.0)[:, None]
    weights, centres = i + k - 1.0, np.sin(2.0 * i + k - 3.0)

    def row(x: Vector, j: int) -> Vector:
        gap = x - centres[j]
        return np.asarray(2.0 * weights[j] * gap * np.exp(gap**2))

    return Instance(
        np.ones(11),
        largest(lambda x: np.sum(weights * np.exp((x - centres) ** 2), axis=1), row),
    )
