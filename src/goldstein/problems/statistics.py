"""Estimation with absolute values, and sums of eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import added, signs, sum_of_moduli, sum_of_positive_parts, together
from goldstein.problems.problem import Instance, Objective
from goldstein.problems.registry import family

problem = family("statistics", "{}, own instance", kind="best-found")


def _heavy(rng: np.random.Generator, n: int, d: int) -> tuple[Vector, Vector]:
    """A linear model with an intercept and heavy tails."""
    A = np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))])
    return A, A @ rng.standard_normal(d) + rng.standard_t(2.0, n)


@problem(
    30, "mean_i |a_i'x-b_i|, n = 150",
    "Bloomfield, Steiger (1983), Least Absolute Deviations, Birkhauser", convex=True,
    best=1.0846005644730705,
)  # fmt: skip
def absolute_deviations(seed: int = 381) -> Instance:
    """Linear regression with absolute loss: the minimum is a vertex with d exact rows."""
    A, b = _heavy(np.random.default_rng(seed), 150, 30)
    n = b.size
    objective = sum_of_moduli(lambda x: (A @ x - b) / n, lambda _, s: (s @ A) / n)
    return Instance(np.zeros(30), objective)


@problem(
    12, "mean_i max{0.9(b_i-a_i'x), 0.1(a_i'x-b_i)}, n = 120",
    "Koenker, Bassett (1978), Econometrica 46(1), 33-50", convex=True, best=0.503378546897173,
)  # fmt: skip
def quantile_regression(seed: int = 382) -> Instance:
    """The 0.9-quantile of a linear model."""
    A, b = _heavy(np.random.default_rng(seed), 120, 12)
    n = b.size

    def both(x: Vector) -> Any:
        r = b - A @ x
        slopes = np.where(r > 0.0, 0.9, -0.1)
        return float(slopes @ r) / n, np.asarray(-(slopes @ A) / n)

    return Instance(np.zeros(12), together(both))


@problem(
    16, "mean_i min_{j<=8} |p_i-c_j|_1, 90 points of the plane",
    "Bradley, Mangasarian, Street (1997), Adv. Neural Inf. Process. Syst. 9",
    best=1.324301242023593, note="many local minima",
)  # fmt: skip
def k_median(seed: int = 383) -> Instance:
    """Eight medians; x is the centres, row by row."""
    rng = np.random.default_rng(seed)
    centres = 5.0 * rng.standard_normal((8, 2))
    P = (centres[:, None] + rng.standard_normal((8, 12, 2))).reshape(-1, 2)[:90]

    def both(x: Vector) -> Any:
        gaps = x.reshape(8, 2)[:, None] - P
        distances = np.sum(np.abs(gaps), axis=2)
        nearest, rows, g = np.argmin(distances, axis=0), np.arange(len(P)), np.zeros((8, 2))
        np.add.at(g, nearest, signs(gaps[nearest, rows]) / len(P))
        return float(np.mean(distances[nearest, rows])), g.ravel()

    return Instance((centres + rng.standard_normal((8, 2))).ravel(), together(both))


@problem(
    30, "mean_i min_{j<=10} |p_i-c_j|, 150 points of space",
    "Bagirov, Karmitsa, Taheri (2020), Partitional Clustering via Nonsmooth Optimization, Springer",
    best=0.41776832704560213, note="many local minima",
)  # fmt: skip
def multisource_weber(seed: int = 384) -> Instance:
    """Ten sites that serve 150 customers."""
    rng = np.random.default_rng(seed)
    P = rng.uniform(-1.0, 1.0, (150, 3))
    rows = np.arange(150)

    def both(x: Vector) -> Any:
        gaps = x.reshape(10, 3)[:, None] - P
        distances = np.sqrt(np.sum(gaps**2, axis=2))
        nearest = np.argmin(distances, axis=0)
        least = distances[nearest, rows]
        g = np.zeros((10, 3))
        np.add.at(g, nearest, gaps[nearest, rows] / np.where(least > 0.0, least, 1.0)[:, None])
        return float(np.mean(least)), g.ravel() / 150.0

    return Instance(rng.uniform(-0.7, 0.7, 30), together(both))


@problem(
    21, "t+sum_i max{0, -r_i'w-t}/(0.05n)+5|w-1/20|^2+10|sum w-1|, x = (t,w), n = 200",
    "Rockafellar, Uryasev (2000), J. Risk 2(3), 21-41", convex=True, best=0.1321448955177547,
)  # fmt: skip
def conditional_value_at_risk(seed: int = 385) -> Instance:
    """A portfolio of twenty assets with a small tail risk."""
    n, d = 200, 20
    rng = np.random.default_rng(seed)
    R = 0.05 + 0.3 * rng.standard_t(4.0, (n, d))
    G = np.column_stack([np.ones(n), R])
    tail = sum_of_positive_parts(
        lambda x: -(G @ x) / (0.05 * n), lambda _, s: -(s @ G) / (0.05 * n)
    )
    total = np.append(0.0, np.ones(d))
    budget = sum_of_moduli(
        lambda x: 10.0 * np.array([total @ x - 1.0]), lambda _, s: 10.0 * s[0] * total
    )

    def rest(x: Vector) -> tuple[float, Vector]:
        away = x[1:] - 1.0 / d
        return float(x[0] + 5.0 * (away @ away)), np.concatenate([[1.0], 10.0 * away])

    x0 = np.append(0.0, np.full(d, 1.0 / d) + 0.1 * rng.standard_normal(d))
    return Instance(x0, added(added(tail, budget), together(rest)))


@problem(
    15, "mean over pairs of max{0, 1-(a_i-b_j)'x}+0.005|x|^2, 20 x 15 pairs",
    "Joachims (2002), Proc. KDD, 133-142", convex=True, best=0.10899029134911598,
)  # fmt: skip
def ranking(seed: int = 386) -> Instance:
    """A hinge for every pair that should be ordered."""
    rng = np.random.default_rng(seed)
    upper, lower = rng.standard_normal((20, 15)) + 0.4, rng.standard_normal((15, 15))
    D = (upper[:, None] - lower).reshape(300, 15)
    hinge = sum_of_positive_parts(lambda x: (1.0 - D @ x) / 300.0, lambda _, s: -(s @ D) / 300.0)
    ridge = Objective(lambda x: 0.005 * float(x @ x), lambda x: 0.01 * x)
    return Instance(np.zeros(15), added(hinge, ridge))


def _affine_matrices(rng: np.random.Generator, d: int, n: int) -> tuple[Vector, Vector]:
    """A_0 and A_1, ..., A_d, symmetric."""
    A = rng.standard_normal((d + 1, n, n))
    A += A.transpose(0, 2, 1)
    return A[0], A[1:] / np.sqrt(n)


@problem(
    20, "sum of the 3 largest eigenvalues of A_0+sum_i x_i A_i+|x|^2/2, 12 x 12",
    "Overton, Womersley (1993), Math. Program. 62, 321-357", convex=True, best=17.9853781815181,
)  # fmt: skip
def eigenvalue_sum(seed: int = 387) -> Instance:
    """Kinks where the third and the fourth eigenvalue meet."""
    first, rest = _affine_matrices(np.random.default_rng(seed), 20, 12)

    def both(x: Vector) -> Any:
        values, vectors = np.linalg.eigh(first + np.tensordot(x, rest, 1))
        top = vectors[:, -3:]
        gradient = np.tensordot(rest, top @ top.T, 2) + x
        return float(np.sum(values[-3:]) + 0.5 * (x @ x)), gradient

    return Instance(np.zeros(20), together(both))


@problem(
    15, "spectral norm of A_0+sum_i x_i A_i, 10 x 10",
    "Overton, Womersley (1993), Math. Program. 62, 321-357", convex=True, best=5.610065345303268,
)  # fmt: skip
def spectral_norm(seed: int = 388) -> Instance:
    """Eigenvalues of both signs meet at the minimum."""
    first, rest = _affine_matrices(np.random.default_rng(seed), 15, 10)

    def both(x: Vector) -> Any:
        values, vectors = np.linalg.eigh(first + np.tensordot(x, rest, 1))
        i = int(np.argmax(np.abs(values)))
        s = 1.0 if values[i] >= 0.0 else -1.0
        return float(abs(values[i])), s * ((rest @ vectors[:, i]) @ vectors[:, i])

    return Instance(np.ones(15), together(both))


@problem(
    48, "|A(X)-b|^2/(2n)+0.2|X|_*, X of size 8 x 6, n = 60",
    "Recht, Fazel, Parrilo (2010), SIAM Rev. 52(3), 471-501", convex=True, best=0.7766842540618913,
)  # fmt: skip
def nuclear_norm_regression(seed: int = 389) -> Instance:
    """A matrix of low rank; kinks where singular values vanish."""
    n, p, q = 60, 8, 6
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p * q))
    truth = np.outer(rng.standard_normal(p), rng.standard_normal(q))
    b = A @ truth.ravel() + 0.3 * rng.standard_normal(n)

    def both(x: Vector) -> Any:
        U, s, V = np.linalg.svd(x.reshape(p, q), full_matrices=False)
        r = A @ x - b
        value = 0.5 * (r @ r) / n + 0.2 * np.sum(s)
        return float(value), np.asarray(r @ A / n + 0.2 * (U @ V).ravel())

    return Instance(rng.standard_normal(p * q), together(both))
