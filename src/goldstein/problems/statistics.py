"""Estimation with absolute values, and sums of eigenvalues."""

from typing import Any

import numpy as np
from numpy.random import Generator

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import (
    added,
    signs,
    sum_of_moduli,
    sum_of_positive_parts,
    weighted_modulus,
)
from goldstein.problems.registry import Instance, Objective, family, together

problem = family("statistics", "{}, own instance", kind="best-found")


def _heavy(rng: Generator, n: int, d: int) -> tuple[Vector, Vector]:
    """A linear model with an intercept and heavy tails."""
    A = np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))])
    return A, A @ rng.standard_normal(d) + rng.standard_t(2.0, n)


@problem(
    30, "mean_i |a_i'x-b_i|, n = 150",
    "Bloomfield, Steiger (1983), Least Absolute Deviations, Birkhauser", convex=True,
    best=1.0846005644730705, seed=381,
)  # fmt: skip
def absolute_deviations(rng: Generator) -> Instance:
    """Linear regression with absolute loss: the minimum is a vertex with d exact rows."""
    A, b = _heavy(rng, 150, 30)
    n = b.size
    objective = sum_of_moduli(lambda x: (A @ x - b) / n, lambda _, s: (s @ A) / n)
    return Instance(np.zeros(30), objective)


@problem(
    12, "mean_i max{0.9(b_i-a_i'x), 0.1(a_i'x-b_i)}, n = 120",
    "Koenker, Bassett (1978), Econometrica 46(1), 33-50", convex=True, best=0.503378546897173,
    seed=382,
)  # fmt: skip
def quantile_regression(rng: Generator) -> Instance:
    """The 0.9-quantile of a linear model."""
    A, b = _heavy(rng, 120, 12)
    n = b.size

    def both(x: Vector) -> Any:
        r = b - A @ x
        slopes = np.where(r > 0.0, 0.9, -0.1)
        return float(slopes @ r) / n, -(slopes @ A) / n

    return Instance(np.zeros(12), together(both))


@problem(
    16, "mean_i min_{j<=8} |p_i-c_j|_1, 90 points of the plane",
    "Bradley, Mangasarian, Street (1997), Adv. Neural Inf. Process. Syst. 9",
    best=1.324301242023593, note="many local minima", seed=383,
)  # fmt: skip
def k_median(rng: Generator) -> Instance:
    """Eight medians; x is the centres, row by row."""
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
    best=0.41776832704560213, note="many local minima", seed=384,
)  # fmt: skip
def multisource_weber(rng: Generator) -> Instance:
    """Ten sites that serve 150 customers."""
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
    seed=385,
)  # fmt: skip
def conditional_value_at_risk(rng: Generator) -> Instance:
    """A portfolio of twenty assets with a small tail risk."""
    n, d = 200, 20
    G = np.column_stack([np.ones(n), 0.05 + 0.3 * rng.standard_t(4.0, (n, d))])
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
    "Joachims (2002), Proc. KDD, 133-142", convex=True, best=0.10899029134911598, seed=386,
)  # fmt: skip
def ranking(rng: Generator) -> Instance:
    """A hinge for every pair that should be ordered."""
    upper, lower = rng.standard_normal((20, 15)) + 0.4, rng.standard_normal((15, 15))
    D = (upper[:, None] - lower).reshape(300, 15)
    hinge = sum_of_positive_parts(lambda x: (1.0 - D @ x) / 300.0, lambda _, s: -(s @ D) / 300.0)
    ridge = together(lambda x: (0.005 * float(x @ x), 0.01 * x))
    return Instance(np.zeros(15), added(hinge, ridge))


def _affine_matrices(rng: Generator, d: int, n: int) -> tuple[Vector, Vector]:
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
        return float(np.sum(values[-3:]) + 0.5 * (x @ x)), np.tensordot(rest, top @ top.T, 2) + x

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
    seed=389,
)  # fmt: skip
def nuclear_norm_regression(rng: Generator) -> Instance:
    """A matrix of low rank; kinks where singular values vanish."""
    n, p, q = 60, 8, 6
    A = rng.standard_normal((n, p * q))
    truth = np.outer(rng.standard_normal(p), rng.standard_normal(q))
    b = A @ truth.ravel() + 0.3 * rng.standard_normal(n)

    def both(x: Vector) -> Any:
        U, s, V = np.linalg.svd(x.reshape(p, q), full_matrices=False)
        r = A @ x - b
        return float(0.5 * (r @ r) / n + 0.2 * np.sum(s)), r @ A / n + 0.2 * (U @ V).ravel()

    return Instance(rng.standard_normal(p * q), together(both))


nearly_smooth = family("nearly smooth", "{}, own instance", kind="best-found")


def _squares(A: Vector, b: Vector, scale: float = 1.0) -> Objective:
    """scale |Ax - b|^2 / 2."""

    def both(x: Vector) -> Any:
        r = A @ x - b
        return 0.5 * scale * float(r @ r), scale * (r @ A)

    return together(both)


def _jumps(weight: float) -> Objective:
    """weight sum_i |x_{i+1} - x_i|."""
    return sum_of_moduli(
        lambda x: weight * np.diff(x), lambda _, s: weight * (np.append(0.0, s) - np.append(s, 0.0))
    )


def _sparse(rng: Generator, d: int, count: int) -> Vector:
    """A vector with this many nonzero entries."""
    x = np.zeros(d)
    x[rng.choice(d, count, replace=False)] = 2.0 * rng.standard_normal(count)
    return x


@nearly_smooth(
    50, "mean_i log(1+exp(-y_i a_i'x))+0.02|x|_1, n = 200",
    "Koh, Kim, Boyd (2007), J. Mach. Learn. Res. 8, 1519-1555", convex=True,
    best=0.3632095896522388, seed=361,
)  # fmt: skip
def l1_logistic(rng: Generator) -> Instance:
    """Logistic regression with a 1-norm."""
    n, d = 200, 50
    A = rng.standard_normal((n, d))
    Z = signs(A @ _sparse(rng, d, 8) + rng.standard_normal(n))[:, None] * A

    def both(x: Vector) -> Any:
        u = Z @ x
        return float(np.mean(np.logaddexp(0.0, -u))), -(1.0 / (1.0 + np.exp(u))) @ Z / n

    return Instance(np.full(d, 0.5), added(together(both), weighted_modulus(0.02)))


@nearly_smooth(
    200, "|x-b|^2/2+0.5 sum_i |x_{i+1}-x_i|", "Rudin, Osher, Fatemi (1992), Physica D 60, 259-268",
    convex=True, best=24.430440580965872, seed=362,
)  # fmt: skip
def total_variation(rng: Generator) -> Instance:
    """A noisy step function, denoised."""
    d = 200
    b = np.repeat([0.0, 2.0, -1.0, 1.0], 50) + 0.5 * rng.standard_normal(d)

    return Instance(b.copy(), added(_squares(np.eye(d), b), _jumps(0.5)))


@nearly_smooth(
    60, "|Ax-b|^2/(2n)+0.05|x|_1+0.1 sum_i |x_{i+1}-x_i|, n = 80",
    "Tibshirani, Saunders, Rosset, Zhu, Knight (2005), J. R. Stat. Soc. B 67, 91-108", convex=True,
    best=1.085809023270071, seed=363,
)  # fmt: skip
def fused_lasso(rng: Generator) -> Instance:
    """Coefficients that are sparse and piecewise constant."""
    n, d = 80, 60
    A = rng.standard_normal((n, d))
    b = A @ np.repeat([0.0, 1.0, 0.0, -0.5, 0.0, 0.0], 10) + 0.5 * rng.standard_normal(n)
    penalty = added(weighted_modulus(0.05), _jumps(0.1))
    return Instance(rng.standard_normal(d), added(_squares(A, b, 1.0 / n), penalty))


@nearly_smooth(
    30, "|x|^2/20+mean_i max{0, 1-y_i a_i'x}, n = 120",
    "Cortes, Vapnik (1995), Mach. Learn. 20, 273-297", convex=True, best=0.3210673720316909,
    seed=364,
)  # fmt: skip
def hinge_svm(rng: Generator) -> Instance:
    """A support vector machine whose minimum lies on few kinks."""
    n, d = 120, 30
    A = rng.standard_normal((n, d))
    Z = signs(A @ rng.standard_normal(d) + 2.0 * rng.standard_normal(n))[:, None] * A
    hinge = sum_of_positive_parts(lambda x: (1.0 - Z @ x) / n, lambda _, s: -(s @ Z) / n)
    return Instance(rng.standard_normal(d), added(_squares(np.eye(d), np.zeros(d), 0.1), hinge))


@nearly_smooth(
    20, "sum_i 10(x_{i+1}-x_i^2)^2+(1-x_i)^2, +20 sum_k max{0, |x_{4k..4k+3}|^2-2}",
    "Han, Mangasarian (1979), Math. Program. 17, 251-269", best=8.781384748410966,
)  # fmt: skip
def penalised_rosenbrock() -> Instance:
    """A smooth valley with five constraints in an exact penalty."""

    def valley(x: Vector) -> tuple[float, Vector]:
        gap, rest = x[1:] - x[:-1] ** 2, 1.0 - x[:-1]
        g = np.zeros(20)
        g[1:] += 20.0 * gap
        g[:-1] -= 40.0 * gap * x[:-1] + 2.0 * rest
        return float(10.0 * (gap @ gap) + rest @ rest), g

    balls = sum_of_positive_parts(
        lambda x: 20.0 * (np.sum(x.reshape(5, 4) ** 2, axis=1) - 2.0),
        lambda x, s: 40.0 * np.repeat(s, 4) * x,
    )
    return Instance(np.tile([-1.2, 1.0], 10), added(together(valley), balls))


@nearly_smooth(
    40, "x'Qx/2+c'x+5 sum_{i<=12} max{0, a_i'x-b_i}",
    "Han, Mangasarian (1979), Math. Program. 17, 251-269", convex=True, best=-146.71753393963687,
    seed=366,
)  # fmt: skip
def penalised_quadratic(rng: Generator) -> Instance:
    """A quadratic program in an exact penalty, condition number 1000."""
    d, m = 40, 12
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    Q = (turn * np.logspace(-2.0, 1.0, d)) @ turn.T
    c, A, b = rng.standard_normal(d), rng.standard_normal((m, d)), rng.uniform(0.0, 1.0, m)

    def both(x: Vector) -> Any:
        image = Q @ x
        return float(0.5 * (x @ image) + c @ x), image + c

    limits = sum_of_positive_parts(lambda x: 5.0 * (A @ x - b), lambda _, s: 5.0 * (s @ A))
    return Instance(np.ones(d), added(together(both), limits))


@nearly_smooth(
    50, "|Ax-b|^2/(2n)+0.3 sum_g |x_g|, n = 100, ten groups of five",
    "Yuan, Lin (2006), J. R. Stat. Soc. B 68, 49-67", convex=True, best=1.8415114499634768,
    seed=367,
)  # fmt: skip
def group_lasso(rng: Generator) -> Instance:
    """Kinks only where a whole group vanishes."""
    n, d = 100, 50
    A = rng.standard_normal((n, d))
    b = A @ np.where(np.arange(d) < 15, rng.standard_normal(d), 0.0) + 0.5 * rng.standard_normal(n)

    def groups(x: Vector) -> tuple[float, Vector]:
        parts = x.reshape(10, 5)
        lengths = np.sqrt(np.sum(parts**2, axis=1))
        directions = parts / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        return 0.3 * float(np.sum(lengths)), 0.3 * directions.ravel()

    return Instance(rng.standard_normal(d), added(_squares(A, b, 1.0 / n), together(groups)))


@nearly_smooth(
    80, "|Ax-b|^2/(2n)+sum_i p(min{|x_i|, 0.6}), p(t) = 0.2t-t^2/6, n = 100",
    "Zhang (2010), Ann. Statist. 38(2), 894-942", best=0.459451777023863, note="local minima exist",
    seed=368,
)  # fmt: skip
def minimax_concave_regression(rng: Generator) -> Instance:
    """A nonconvex penalty with a kink at 0 only."""
    n, d, lam, gamma = 100, 80, 0.2, 3.0
    A = rng.standard_normal((n, d))
    b = A @ _sparse(rng, d, 10) + 0.3 * rng.standard_normal(n)

    def penalty(x: Vector) -> tuple[float, Vector]:
        t = np.abs(x)
        inside = t < gamma * lam
        value = np.where(inside, lam * t - t * t / (2.0 * gamma), 0.5 * gamma * lam * lam)
        return float(np.sum(value)), np.where(inside, lam - t / gamma, 0.0) * signs(x)

    return Instance(np.zeros(d) + 0.1, added(_squares(A, b, 1.0 / n), together(penalty)))


@nearly_smooth(
    60, "|Ax-b|^2/(2n)+0.1(|x|_1-|x|), n = 50",
    "Yin, Lou, He, Xin (2015), SIAM J. Sci. Comput. 37(1), A536-A563", best=0.5212397496291787,
    note="a difference of convex functions", seed=369,
)  # fmt: skip
def l1_minus_l2(rng: Generator) -> Instance:
    """Fewer rows than unknowns, a penalty that prefers sparse vectors."""
    n, d = 50, 60
    A = rng.standard_normal((n, d))
    b = A @ _sparse(rng, d, 6)

    def length(x: Vector) -> tuple[float, Vector]:
        norm = np.sqrt(x @ x)
        return -0.1 * float(norm), -0.1 * x / (norm if norm > 0.0 else 1.0)

    penalty = added(weighted_modulus(0.1), together(length))
    return Instance(rng.standard_normal(d), added(_squares(A, b, 1.0 / n), penalty))
