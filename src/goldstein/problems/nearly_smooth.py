"""Functions that look smooth for most of the way: smooth losses with penalties that have kinks."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import (
    added,
    signs,
    sum_of_moduli,
    sum_of_positive_parts,
    together,
    weighted_modulus,
)
from goldstein.problems.problem import Instance, Objective
from goldstein.problems.registry import family

problem = family("nearly smooth", "{}, own instance", kind="best-found")


def _squares(A: Vector, b: Vector, scale: float = 1.0) -> Objective:
    """scale |Ax - b|^2 / 2."""

    def both(x: Vector) -> Any:
        r = A @ x - b
        return 0.5 * scale * float(r @ r), np.asarray(scale * (r @ A))

    return together(both)


def _jumps(weight: float) -> Objective:
    """weight sum_i |x_{i+1} - x_i|."""
    return sum_of_moduli(
        lambda x: weight * np.diff(x), lambda _, s: weight * (np.append(0.0, s) - np.append(s, 0.0))
    )


def _sparse(rng: np.random.Generator, d: int, count: int) -> Vector:
    """A vector with this many nonzero entries."""
    x = np.zeros(d)
    x[rng.choice(d, count, replace=False)] = 2.0 * rng.standard_normal(count)
    return x


@problem(
    50, "mean_i log(1+exp(-y_i a_i'x))+0.02|x|_1, n = 200",
    "Koh, Kim, Boyd (2007), J. Mach. Learn. Res. 8, 1519-1555", convex=True,
    best=0.3632095896522388,
)  # fmt: skip
def l1_logistic(seed: int = 361) -> Instance:
    """Logistic regression with a 1-norm."""
    n, d = 200, 50
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    y = signs(A @ _sparse(rng, d, 8) + rng.standard_normal(n))
    Z = y[:, None] * A

    def both(x: Vector) -> Any:
        u = Z @ x
        return float(np.mean(np.logaddexp(0.0, -u))), np.asarray(-(1.0 / (1.0 + np.exp(u))) @ Z / n)

    return Instance(np.full(d, 0.5), added(together(both), weighted_modulus(0.02)))


@problem(
    200, "|x-b|^2/2+0.5 sum_i |x_{i+1}-x_i|", "Rudin, Osher, Fatemi (1992), Physica D 60, 259-268",
    convex=True, best=24.430440580965872,
)  # fmt: skip
def total_variation(seed: int = 362) -> Instance:
    """A noisy step function, denoised."""
    d = 200
    rng = np.random.default_rng(seed)
    b = np.repeat([0.0, 2.0, -1.0, 1.0], 50) + 0.5 * rng.standard_normal(d)

    return Instance(b.copy(), added(_squares(np.eye(d), b), _jumps(0.5)))


@problem(
    60, "|Ax-b|^2/(2n)+0.05|x|_1+0.1 sum_i |x_{i+1}-x_i|, n = 80",
    "Tibshirani, Saunders, Rosset, Zhu, Knight (2005), J. R. Stat. Soc. B 67, 91-108", convex=True,
    best=1.085809023270071,
)  # fmt: skip
def fused_lasso(seed: int = 363) -> Instance:
    """Coefficients that are sparse and piecewise constant."""
    n, d = 80, 60
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    truth = np.repeat([0.0, 1.0, 0.0, -0.5, 0.0, 0.0], 10)
    b = A @ truth + 0.5 * rng.standard_normal(n)
    penalty = added(weighted_modulus(0.05), _jumps(0.1))
    return Instance(rng.standard_normal(d), added(_squares(A, b, 1.0 / n), penalty))


@problem(
    30, "|x|^2/20+mean_i max{0, 1-y_i a_i'x}, n = 120",
    "Cortes, Vapnik (1995), Mach. Learn. 20, 273-297", convex=True, best=0.3210673720316909,
)  # fmt: skip
def hinge_svm(seed: int = 364) -> Instance:
    """A support vector machine whose minimum lies on few kinks."""
    n, d = 120, 30
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    Z = signs(A @ rng.standard_normal(d) + 2.0 * rng.standard_normal(n))[:, None] * A
    hinge = sum_of_positive_parts(lambda x: (1.0 - Z @ x) / n, lambda _, s: -(s @ Z) / n)
    return Instance(rng.standard_normal(d), added(_squares(np.eye(d), np.zeros(d), 0.1), hinge))


@problem(
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


@problem(
    40, "x'Qx/2+c'x+5 sum_{i<=12} max{0, a_i'x-b_i}",
    "Han, Mangasarian (1979), Math. Program. 17, 251-269", convex=True, best=-146.71753393963687,
)  # fmt: skip
def penalised_quadratic(seed: int = 366) -> Instance:
    """A quadratic program in an exact penalty, condition number 1000."""
    d, m = 40, 12
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    Q = (turn * np.logspace(-2.0, 1.0, d)) @ turn.T
    c, A, b = rng.standard_normal(d), rng.standard_normal((m, d)), rng.uniform(0.0, 1.0, m)

    def both(x: Vector) -> Any:
        image = Q @ x
        return float(0.5 * (x @ image) + c @ x), image + c

    limits = sum_of_positive_parts(lambda x: 5.0 * (A @ x - b), lambda _, s: 5.0 * (s @ A))
    return Instance(np.ones(d), added(together(both), limits))


@problem(
    50, "|Ax-b|^2/(2n)+0.3 sum_g |x_g|, n = 100, ten groups of five",
    "Yuan, Lin (2006), J. R. Stat. Soc. B 68, 49-67", convex=True, best=1.8415114499634768,
)  # fmt: skip
def group_lasso(seed: int = 367) -> Instance:
    """Kinks only where a whole group vanishes."""
    n, d = 100, 50
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    truth = np.where(np.arange(d) < 15, rng.standard_normal(d), 0.0)
    b = A @ truth + 0.5 * rng.standard_normal(n)

    def groups(x: Vector) -> tuple[float, Vector]:
        parts = x.reshape(10, 5)
        lengths = np.sqrt(np.sum(parts**2, axis=1))
        directions = parts / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        return 0.3 * float(np.sum(lengths)), 0.3 * directions.ravel()

    return Instance(rng.standard_normal(d), added(_squares(A, b, 1.0 / n), together(groups)))


@problem(
    80, "|Ax-b|^2/(2n)+sum_i p(min{|x_i|, 0.6}), p(t) = 0.2t-t^2/6, n = 100",
    "Zhang (2010), Ann. Statist. 38(2), 894-942", best=0.459451777023863, note="local minima exist",
)  # fmt: skip
def minimax_concave_regression(seed: int = 368) -> Instance:
    """A nonconvex penalty with a kink at 0 only."""
    n, d, lam, gamma = 100, 80, 0.2, 3.0
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    b = A @ _sparse(rng, d, 10) + 0.3 * rng.standard_normal(n)

    def penalty(x: Vector) -> tuple[float, Vector]:
        t = np.abs(x)
        inside = t < gamma * lam
        value = np.where(inside, lam * t - t * t / (2.0 * gamma), 0.5 * gamma * lam * lam)
        return float(np.sum(value)), np.asarray(np.where(inside, lam - t / gamma, 0.0) * signs(x))

    return Instance(np.zeros(d) + 0.1, added(_squares(A, b, 1.0 / n), together(penalty)))


@problem(
    60, "|Ax-b|^2/(2n)+0.1(|x|_1-|x|), n = 50",
    "Yin, Lou, He, Xin (2015), SIAM J. Sci. Comput. 37(1), A536-A563", best=0.5212397496291787,
    note="a difference of convex functions",
)  # fmt: skip
def l1_minus_l2(seed: int = 369) -> Instance:
    """Fewer rows than unknowns, a penalty that prefers sparse vectors."""
    n, d = 50, 60
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    b = A @ _sparse(rng, d, 6)

    def length(x: Vector) -> tuple[float, Vector]:
        norm = np.sqrt(x @ x)
        return -0.1 * float(norm), np.asarray(-0.1 * x / (norm if norm > 0.0 else 1.0))

    penalty = added(weighted_modulus(0.1), together(length))
    return Instance(rng.standard_normal(d), added(_squares(A, b, 1.0 / n), penalty))
