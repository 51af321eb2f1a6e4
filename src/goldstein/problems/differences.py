"""Differences of convex functions with known global minima, and clustering."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.data import bundled
from goldstein.problems.forms import signs
from goldstein.problems.haarala import ramp_start
from goldstein.problems.problem import Instance, Objective
from goldstein.problems.registry import AnyDimension, problem
from goldstein.problems.test19 import cb3_gradient, cb3_value

FAMILY = "dc"
SOURCE = "Joki, Bagirov, Karmitsa, Makela (2017), J. Global Optim. 68, 501-535, problem "


@problem(2, "CB3(x)+min{q1, q2, q3}, three quadratics", "1", best=2.0, reference=2.0)
def dc_1() -> Instance:
    """Minimiser (1, 1)."""

    def quadratics(a: float, b: float) -> tuple[float, float, float]:
        return (
            a * a - 2.0 * a + b * b - 4.0 * b + 4.0,
            2.0 * a * a - 5.0 * a + b * b - 2.0 * b + 4.0,
            a * a + 2.0 * b * b - 4.0 * b + 1.0,
        )

    def value(x: Vector) -> float:
        a, b = x.tolist()
        return cb3_value(a, b)[0] + min(quadratics(a, b))

    def gradient(x: Vector) -> Vector:
        a, b = x.tolist()
        q = quadratics(a, b)
        rows = (
            (2.0 * a - 2.0, 2.0 * b - 4.0),
            (4.0 * a - 5.0, 2.0 * b - 2.0),
            (2.0 * a, 4.0 * b - 4.0),
        )
        return np.asarray(cb3_gradient(a, b) + np.array(rows[q.index(min(q))]))

    return Instance(np.array([2.0, 2.0]), Objective(value, gradient))


@problem(2, "|x1-1|+100||x1|-x2|", "2", reference=2.220446049250313e-16)
def dc_2() -> Instance:
    """A steep folded valley. Minimiser (1, 1)."""

    def value(x: Vector) -> float:
        a, b = x.tolist()
        return float(abs(a - 1.0) + 100.0 * abs(abs(a) - b))

    def gradient(x: Vector) -> Vector:
        a, b = x.tolist()
        s = 100.0 if abs(a) >= b else -100.0
        return np.array([(1.0 if a >= 1.0 else -1.0) + (s if a >= 0.0 else -s), -s])

    return Instance(np.array([-1.2, 1.0]), Objective(value, gradient))


@problem(
    AnyDimension(2), "d max|x_i|-sum|x_i|", "4", reference=3.979039320256561e-13,
    note="minimisers: all |x_i| equal",
)  # fmt: skip
def dc_4(d: int = 20) -> Instance:
    """Goffin's function of the moduli."""

    def gradient(x: Vector) -> Vector:
        s = signs(x)
        k = int(np.argmax(np.abs(x)))
        g = -s
        g[k] += x.size * s[k]
        return g

    def value(x: Vector) -> float:
        modulus = np.abs(x)
        return float(x.size * modulus.max() - np.sum(modulus))

    return Instance(ramp_start(d), Objective(value, gradient))


@problem(2, "x2+0.1|x|^2+10max{0, -x2}-|x1|-|x2|", "6", best=-2.5, reference=-2.5)
def dc_6() -> Instance:
    """Minimisers (5, 0) and (-5, 0)."""

    def value(x: Vector) -> float:
        a, b = x.tolist()
        return float(b + 0.1 * (a * a + b * b) + 10.0 * max(0.0, -b) - abs(a) - abs(b))

    def gradient(x: Vector) -> Vector:
        a, b = x.tolist()
        slope = 0.0 if b >= 0.0 else -8.0
        return np.array([0.2 * a - (1.0 if a >= 0.0 else -1.0), 0.2 * b + slope])

    return Instance(np.array([10.0, 1.0]), Objective(value, gradient))


@problem(
    3,
    "9-8x1-6x2-4x3+2|x|_1+4x1^2+2x2^2+2x3^2+10max{0, x1+x2+2x3-3, -x1, -x2, -x3}"
    "-|x1-x2|-|x1-x3|",
    "8", best=3.5, reference=3.7499999999999987,
)  # fmt: skip
def dc_8() -> Instance:
    """Minimiser (3/4, 5/4, 1/4)."""
    faces = np.array([[0.0, 0, 0], [1, 1, 2], [-1, 0, 0], [0, -1, 0], [0, 0, -1]])
    offsets = np.array([0.0, -3.0, 0.0, 0.0, 0.0])
    linear, quadratic = np.array([-8.0, -6.0, -4.0]), np.array([4.0, 2.0, 2.0])

    def value(x: Vector) -> float:
        separable = linear @ x + 2.0 * np.sum(np.abs(x)) + quadratic @ (x * x)
        concave = abs(x[0] - x[1]) + abs(x[0] - x[2])
        return float(9.0 + separable + 10.0 * np.max(faces @ x + offsets) - concave)

    def gradient(x: Vector) -> Vector:
        face = faces[int(np.argmax(faces @ x + offsets))]
        first, second = signs(x[0] - x[1:])
        concave = np.array([first + second, -first, -second])
        return np.asarray(linear + 2.0 * signs(x) + 2.0 * quadratic * x + 10.0 * face - concave)

    return Instance(np.full(3, 0.5), Objective(value, gradient))


def _clustering(points: Vector, k: int) -> Objective:
    """sum_i min_j |p_i - c_j|^2 with the k centres stacked in x."""

    def distances(x: Vector) -> Vector:
        gaps = points[:, None, :] - x.reshape(k, -1)
        return np.asarray(np.sum(gaps * gaps, axis=2))

    def both(x: Vector) -> tuple[float, Vector]:
        squared = distances(x)
        nearest = np.argmin(squared, axis=1)
        member = (nearest[:, None] == np.arange(k)).astype(np.float64)
        pull = np.sum(member, axis=0)[:, None] * x.reshape(k, -1) - member.T @ points
        return float(np.sum(squared.min(axis=1))), (2.0 * pull).ravel()

    return Objective(lambda x: float(np.sum(distances(x).min(axis=1))), lambda x: both(x)[1], both)


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
    "Bagirov, Karmitsa, Taheri (2020), Partitional Clustering via Nonsmooth"
    " Optimization; data Fisher (1936)",
    best=78.851441426146, kind="literature", reference=78.851441426146,
    note="a local minimum of value 142.7540625 exists",
)  # fmt: skip
def iris_kmeans_3() -> Instance:
    """Minimum sum-of-squares clustering of Fisher's iris data (needs scikit-learn)."""
    points, _ = bundled("iris")
    return Instance(points[[0, 50, 100]].ravel() + 0.01, _clustering(points, 3))


@applied(
    8, "mean_i min{|x_i'w-y_i|, 0.3}",
    "capped absolute loss with 30% gross outliers, own instance;"
    " cf. Ong, An (2013), Optim. Methods Softw. 28, 830-854",
    best=None, kind="planted", reference=0.08156838549224826,
    note="flat far away from the solution",
)  # fmt: skip
def capped_l1(seed: int = 61) -> Instance:
    """Robust regression with a bounded loss, from the least-squares start."""
    rng = np.random.default_rng(seed)
    n, d, cap = 100, 8, 0.3
    inputs = rng.standard_normal((n, d))
    truth = rng.standard_normal(d)
    targets = inputs @ truth
    gross = rng.random(n) < 0.3
    targets[gross] += 5.0 * rng.standard_normal(int(gross.sum()))

    def value(w: Vector) -> float:
        return float(np.sum(np.minimum(np.abs(inputs @ w - targets), cap)) / n)

    def gradient(w: Vector) -> Vector:
        r = inputs @ w - targets
        return np.asarray((signs(r) * (np.abs(r) < cap)) @ inputs / n)

    start = np.asarray(np.linalg.lstsq(inputs, targets, rcond=None)[0], dtype=np.float64)
    return Instance(start, Objective(value, gradient), value(truth))
