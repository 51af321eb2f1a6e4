"""Differences of convex functions with known global minima, and clustering."""

from typing import Any

import numpy as np
from numpy.random import Generator

from goldstein.checker.arrays import Vector
from goldstein.problems import haarala, test19
from goldstein.problems.forms import bundled, sign, signs
from goldstein.problems.registry import AnyDimension, Instance, Objective, family, together

problem = family(
    "dc", "Joki, Bagirov, Karmitsa, Makela (2017), J. Global Optim. 68, 501-535, problem {}"
)
applied = family("applied")


@problem(
    2, "CB3(x)+min{q1, q2, q3}, three quadratics", "1", best=2.0, reference=2.0, start=[2.0, 2.0]
)
def dc_1(a: float, b: float) -> Any:
    """Minimiser (1, 1)."""
    value, gradient = test19.cb3_pair(a, b)
    quadratics = (
        (a * a - 2.0 * a + b * b - 4.0 * b + 4.0, (2.0 * a - 2.0, 2.0 * b - 4.0)),
        (2.0 * a * a - 5.0 * a + b * b - 2.0 * b + 4.0, (4.0 * a - 5.0, 2.0 * b - 2.0)),
        (a * a + 2.0 * b * b - 4.0 * b + 1.0, (2.0 * a, 4.0 * b - 4.0)),
    )
    least, row = min(quadratics, key=lambda piece: piece[0])
    return value + least, np.add(gradient, row)


@problem(2, "|x1-1|+100||x1|-x2|", "2", reference=2.220446049250313e-16, start=[-1.2, 1.0])
def dc_2(a: float, b: float) -> Any:
    """A steep folded valley. Minimiser (1, 1)."""
    s = 100.0 if abs(a) >= b else -100.0
    return abs(a - 1.0) + 100.0 * abs(abs(a) - b), (sign(a - 1.0) + (s if a >= 0.0 else -s), -s)


@problem(
    AnyDimension(2), "d max|x_i|-sum|x_i|", "4", reference=3.979039320256561e-13,
    note="minimisers: all |x_i| equal", start=haarala.ramp_start, size=20,
)  # fmt: skip
def dc_4(x: Vector) -> Any:
    """Goffin's function of the moduli."""
    s, modulus = signs(x), np.abs(x)
    k = int(np.argmax(modulus))
    g = -s
    g[k] += x.size * s[k]
    return x.size * modulus[k] - np.sum(modulus), g


@problem(
    2, "x2+0.1|x|^2+10max{0, -x2}-|x1|-|x2|", "6", best=-2.5, reference=-2.5, start=[10.0, 1.0]
)
def dc_6(a: float, b: float) -> Any:
    """Minimisers (5, 0) and (-5, 0)."""
    value = b + 0.1 * (a * a + b * b) + 10.0 * max(0.0, -b) - abs(a) - abs(b)
    return value, (0.2 * a - sign(a), 0.2 * b + (0.0 if b >= 0.0 else -8.0))


@problem(
    3,
    "9-8x1-6x2-4x3+2|x|_1+4x1^2+2x2^2+2x3^2+10max{0, x1+x2+2x3-3, -x1, -x2, -x3}-|x1-x2|-|x1-x3|",
    "8", best=3.5, reference=3.7499999999999987,
)  # fmt: skip
def dc_8() -> Instance:
    """Minimiser (3/4, 5/4, 1/4)."""
    faces = np.array([[0.0, 0, 0], [1, 1, 2], [-1, 0, 0], [0, -1, 0], [0, 0, -1]])
    offsets = np.array([0.0, -3.0, 0.0, 0.0, 0.0])
    linear, quadratic = np.array([-8.0, -6.0, -4.0]), np.array([4.0, 2.0, 2.0])

    def both(x: Vector) -> Any:
        separable = linear @ x + 2.0 * np.sum(np.abs(x)) + quadratic @ (x * x)
        concave = abs(x[0] - x[1]) + abs(x[0] - x[2])
        limits = faces @ x + offsets
        i = int(np.argmax(limits))
        first, second = signs(x[0] - x[1:])
        slopes = np.array([first + second, -first, -second])
        gradient = linear + 2.0 * signs(x) + 2.0 * quadratic * x + 10.0 * faces[i] - slopes
        return 9.0 + separable + 10.0 * limits[i] - concave, gradient

    return Instance(np.full(3, 0.5), together(both))


def _clustering(points: Vector, k: int) -> Objective:
    """sum_i min_j |p_i - c_j|^2 with the k centres stacked in x."""

    def both(x: Vector) -> Any:
        gaps = points[:, None, :] - x.reshape(k, -1)
        squared = np.sum(gaps * gaps, axis=2)
        member = (np.argmin(squared, axis=1)[:, None] == np.arange(k)).astype(np.float64)
        pull = np.sum(member, axis=0)[:, None] * x.reshape(k, -1) - member.T @ points
        return float(np.sum(squared.min(axis=1))), (2.0 * pull).ravel()

    return together(both)


@problem(
    4, "sum_i min_{j<=2} |p_i-c_j|^2, five points of the plane", "9", best=11.0 / 6.0,
    reference=1.8333333333333333, note="x0 has both centres equal, where f is not differentiable",
)  # fmt: skip
def dc_9() -> Instance:
    """Two-means of (2,0), (2,1), (3,0), (0,2), (1,2)."""
    points = np.array([[2.0, 0.0], [2.0, 1.0], [3.0, 0.0], [0.0, 2.0], [1.0, 2.0]])
    return Instance(np.array([4.0, 2.0, 4.0, 2.0]), _clustering(points, 2))


@applied(
    12, "sum_i min_{j<=3} |p_i-c_j|^2, iris data",
    "Bagirov, Karmitsa, Taheri (2020), Partitional Clustering via Nonsmooth Optimization; data"
    " Fisher (1936)", best=78.851441426146, kind="literature", reference=78.851441426146,
    note="a local minimum of value 142.7540625 exists",
)  # fmt: skip
def iris_kmeans_3() -> Instance:
    """Minimum sum-of-squares clustering of Fisher's iris data (needs scikit-learn)."""
    points, _ = bundled("iris")
    return Instance(points[[0, 50, 100]].ravel() + 0.01, _clustering(points, 3))


@applied(
    8, "mean_i min{|x_i'w-y_i|, 0.3}",
    "capped absolute loss with 30% gross outliers, own instance; cf. Ong, An (2013), Optim."
    " Methods Softw. 28, 830-854", best=None, kind="planted", reference=0.08156838549224826,
    note="flat far away from the solution", seed=61,
)  # fmt: skip
def capped_l1(rng: Generator) -> Instance:
    """Robust regression with a bounded loss, from the least-squares start."""
    n, d, cap = 100, 8, 0.3
    inputs = rng.standard_normal((n, d))
    truth = rng.standard_normal(d)
    targets = inputs @ truth
    gross = rng.random(n) < 0.3
    targets[gross] += 5.0 * rng.standard_normal(int(gross.sum()))

    def both(w: Vector) -> Any:
        r = inputs @ w - targets
        value = np.sum(np.minimum(np.abs(r), cap)) / n
        return float(value), (signs(r) * (np.abs(r) < cap)) @ inputs / n

    return Instance(np.linalg.lstsq(inputs, targets, rcond=None)[0], together(both), truth)
