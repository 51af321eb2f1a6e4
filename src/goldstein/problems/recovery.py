"""Robust recovery: weakly convex 1-norm losses with a planted solution."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import signs, sum_of_moduli
from goldstein.problems.problem import Instance, Objective
from goldstein.problems.registry import AnyDimension, problem

FAMILY = "recovery"


def _unit(v: Vector) -> Vector:
    return np.asarray(v / np.linalg.norm(v))


@problem(
    AnyDimension(2), "mean_i |(a_i'x)^2-b_i|, 5d equations",
    "Duchi, Ruan (2019), Inf. Inference 8(3), 471-529, own seed", reference=1.9207725687753198e-16,
)  # fmt: skip
def phase_retrieval(d: int = 20, seed: int = 31) -> Instance:
    """Real phase retrieval without corruption."""
    rng = np.random.default_rng(seed)
    m = 5 * d
    A = rng.standard_normal((m, d))
    truth = _unit(rng.standard_normal(d))
    b = (A @ truth) ** 2
    rng.random(m)  # the corruption draw of the noisy variants, kept so that x0 stays the same
    objective = sum_of_moduli(
        lambda x: ((A @ x) ** 2 - b) / m, lambda x, s: np.asarray(2.0 / m * ((s * (A @ x)) @ A))
    )
    return Instance(_unit(rng.standard_normal(d)), objective)


@problem(
    AnyDimension(4, 2), "mean_i |(a_i'u)(b_i'v)-y_i|, x = (u,v), 4d equations, 10% corrupted",
    "Charisopoulos, Davis, Diaz, Drusvyatskiy (2021), Found. Comput. Math. 21, own seed", best=None,
    kind="planted", reference=0.12753174947854498,
)  # fmt: skip
def blind_deconvolution(d: int = 20, seed: int = 33) -> Instance:
    """Two unknown factors, some measurements grossly wrong."""
    half, m = d // 2, 4 * d
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((m, half)), rng.standard_normal((m, half))
    u, v = _unit(rng.standard_normal(half)), _unit(rng.standard_normal(half))
    y = (A @ u) * (B @ v)
    gross = rng.random(m) < 0.1
    y[gross] = 3.0 * rng.standard_normal(int(gross.sum()))

    def pullback(x: Vector, s: Vector) -> Vector:
        left, right = A @ x[:half], B @ x[half:]
        return np.concatenate([(s * right) @ A, (s * left) @ B]) / m

    objective = sum_of_moduli(lambda x: ((A @ x[:half]) * (B @ x[half:]) - y) / m, pullback)
    x0 = rng.standard_normal(d) / np.sqrt(half)
    return Instance(x0, objective, objective.value(np.concatenate([u, v])))


@problem(
    AnyDimension(4, 2), "mean_i ||X'a_i|^2-|X'b_i|^2-c_i|, X of rank 2, 4d equations",
    "Davis, Jiang (2022), arXiv:2205.00064, sec. 5, own seed", reference=3.37403716077489e-16,
)  # fmt: skip
def quadratic_sensing(d: int = 20, seed: int = 35) -> Instance:
    """Low-rank recovery from differences of squares; x is X, row by row."""
    rows, rank, m = d // 2, 2, 4 * d
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((m, rows)), rng.standard_normal((m, rows))
    truth = rng.standard_normal((rows, rank))
    truth /= np.linalg.norm(truth)

    def measure(X: Vector) -> Vector:
        return np.asarray(np.sum((A @ X) ** 2, axis=1) - np.sum((B @ X) ** 2, axis=1))

    targets = measure(truth)

    def pullback(x: Vector, s: Vector) -> Vector:
        X = x.reshape(rows, rank)
        G = A.T @ (s[:, None] * (A @ X)) - B.T @ (s[:, None] * (B @ X))
        return np.asarray(2.0 / m * G.ravel())

    objective = sum_of_moduli(lambda x: (measure(x.reshape(rows, rank)) - targets) / m, pullback)
    return Instance(_unit(rng.standard_normal(d)), objective)


@problem(
    27, "mean_ij |uv'-M|, u of length 15, v of length 12",
    "Charisopoulos, Davis, Diaz, Drusvyatskiy (2021), Found. Comput. Math. 21,"
    " own instance",
    best=None, kind="planted", reference=0.5762070872358309,
    note="the planted factors minimise globally with high probability",
)  # fmt: skip
def robust_pca(seed: int = 38) -> Instance:
    """A rank-one matrix with 10% gross errors."""
    m, n = 15, 12
    rng = np.random.default_rng(seed)
    u, v = rng.standard_normal(m), rng.standard_normal(n)
    gross = 5.0 * rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.1)
    matrix = np.outer(u, v) + gross

    def both(x: Vector) -> tuple[float, Vector]:
        gap = np.outer(x[:m], x[m:]) - matrix
        s = signs(gap) / (m * n)
        return float(np.sum(np.abs(gap)) / (m * n)), np.concatenate([s @ x[m:], x[:m] @ s])

    def value(x: Vector) -> float:
        return float(np.sum(np.abs(np.outer(x[:m], x[m:]) - matrix)) / (m * n))

    objective = Objective(value, lambda x: both(x)[1], both)
    x0 = rng.standard_normal(m + n)
    return Instance(x0, objective, float(np.sum(np.abs(gross)) / (m * n)))


@problem(
    AnyDimension(2), "mean_i |z_i'q|/|q|, 400 samples",
    "Bai, Jiang, Sun (2019), ICLR, Subgradient descent learns orthogonal"
    " dictionaries, own seed",
    best=None, kind="planted", reference=0.21701076527298452,
    note="every dictionary column is a local minimiser; undefined at 0",
)  # fmt: skip
def dictionary_learning(d: int = 15, seed: int = 39) -> Instance:
    """One column of an orthogonal dictionary, in scale-invariant form."""
    samples = 400
    rng = np.random.default_rng(seed)
    codes = rng.standard_normal((d, samples)) * (rng.random((d, samples)) < 0.3)
    dictionary = np.linalg.qr(rng.standard_normal((d, d)))[0]
    data = (dictionary @ codes).T

    def both(x: Vector) -> tuple[float, Vector]:
        length, z = np.linalg.norm(x), data @ x
        value = np.sum(np.abs(z)) / (samples * length)
        return float(value), np.asarray((signs(z) @ data / samples - value * x / length) / length)

    def value(x: Vector) -> float:
        return float(np.sum(np.abs(data @ x)) / (samples * np.linalg.norm(x)))

    best_column = float(np.min(np.sum(np.abs(codes), axis=1) / samples))
    objective = Objective(value, lambda x: both(x)[1], both)
    return Instance(_unit(rng.standard_normal(d)), objective, best_column)
