"""Recovery with 1-norm losses from planted solutions, few measurements or many."""

from typing import Any

import numpy as np
from numpy.random import Generator

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import signs, sum_of_moduli
from goldstein.problems.registry import AnyDimension, Instance, Objective, family, together

problem = family("recovery")


def _unit(v: Vector) -> Vector:
    return v / np.linalg.norm(v)


def _phases(A: Vector, b: Vector) -> Objective:
    """mean_i |(a_i'x)^2 - b_i|."""
    m = b.size
    return sum_of_moduli(
        lambda x: ((A @ x) ** 2 - b) / m, lambda x, s: 2.0 / m * ((s * (A @ x)) @ A)
    )


def _bilinear(A: Vector, B: Vector, y: Vector) -> Objective:
    """mean_i |(a_i'u)(b_i'v) - y_i| with x = (u, v)."""
    m, half = A.shape

    def pullback(x: Vector, s: Vector) -> Vector:
        left, right = A @ x[:half], B @ x[half:]
        return np.concatenate([(s * right) @ A, (s * left) @ B]) / m

    return sum_of_moduli(lambda x: ((A @ x[:half]) * (B @ x[half:]) - y) / m, pullback)


@problem(
    AnyDimension(2), "mean_i |(a_i'x)^2-b_i|, 5d equations",
    "Duchi, Ruan (2019), Inf. Inference 8(3), 471-529, own seed", reference=1.9207725687753198e-16,
    seed=31, size=20,
)  # fmt: skip
def phase_retrieval(d: int, rng: Generator) -> Instance:
    """Real phase retrieval without corruption."""
    m = 5 * d
    A = rng.standard_normal((m, d))
    b = (A @ _unit(rng.standard_normal(d))) ** 2
    rng.random(m)  # the corruption draw of the noisy variants, kept so that x0 stays the same
    return Instance(_unit(rng.standard_normal(d)), _phases(A, b))


@problem(
    AnyDimension(4, 2), "mean_i |(a_i'u)(b_i'v)-y_i|, x = (u,v), 4d equations, 10% corrupted",
    "Charisopoulos, Davis, Diaz, Drusvyatskiy (2021), Found. Comput. Math. 21, own seed", best=None,
    kind="planted", reference=0.12753174947854498, seed=33, size=20,
)  # fmt: skip
def blind_deconvolution(d: int, rng: Generator) -> Instance:
    """Two unknown factors, some measurements grossly wrong."""
    half, m = d // 2, 4 * d
    A, B = rng.standard_normal((m, half)), rng.standard_normal((m, half))
    u, v = _unit(rng.standard_normal(half)), _unit(rng.standard_normal(half))
    y = (A @ u) * (B @ v)
    gross = rng.random(m) < 0.1
    y[gross] = 3.0 * rng.standard_normal(int(gross.sum()))
    x0 = rng.standard_normal(d) / np.sqrt(half)
    return Instance(x0, _bilinear(A, B, y), np.concatenate([u, v]))


@problem(
    AnyDimension(4, 2), "mean_i ||X'a_i|^2-|X'b_i|^2-c_i|, X of rank 2, 4d equations",
    "Davis, Jiang (2022), arXiv:2205.00064, sec. 5, own seed", reference=3.37403716077489e-16,
    seed=35, size=20,
)  # fmt: skip
def quadratic_sensing(d: int, rng: Generator) -> Instance:
    """Low-rank recovery from differences of squares; x is X, row by row."""
    rows, rank, m = d // 2, 2, 4 * d
    A, B = rng.standard_normal((m, rows)), rng.standard_normal((m, rows))
    truth = rng.standard_normal((rows, rank))
    truth /= np.linalg.norm(truth)

    def measure(X: Vector) -> Vector:
        return np.sum((A @ X) ** 2, axis=1) - np.sum((B @ X) ** 2, axis=1)

    targets = measure(truth)

    def pullback(x: Vector, s: Vector) -> Vector:
        X = x.reshape(rows, rank)
        return 2.0 / m * (A.T @ (s[:, None] * (A @ X)) - B.T @ (s[:, None] * (B @ X))).ravel()

    objective = sum_of_moduli(lambda x: (measure(x.reshape(rows, rank)) - targets) / m, pullback)
    return Instance(_unit(rng.standard_normal(d)), objective)


@problem(
    27, "mean_ij |uv'-M|, u of length 15, v of length 12",
    "Charisopoulos, Davis, Diaz, Drusvyatskiy (2021), Found. Comput. Math. 21, own instance",
    best=None, kind="planted", reference=0.5762070872358309,
    note="the planted factors minimise globally with high probability", seed=38,
)  # fmt: skip
def robust_pca(rng: Generator) -> Instance:
    """A rank-one matrix with 10% gross errors."""
    m, n = 15, 12
    u, v = rng.standard_normal(m), rng.standard_normal(n)
    gross = 5.0 * rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.1)
    matrix = np.outer(u, v) + gross

    def both(x: Vector) -> Any:
        gap = np.outer(x[:m], x[m:]) - matrix
        s = signs(gap) / (m * n)
        return float(np.sum(np.abs(gap)) / (m * n)), np.concatenate([s @ x[m:], x[:m] @ s])

    return Instance(
        rng.standard_normal(m + n), together(both), float(np.sum(np.abs(gross)) / (m * n))
    )


@problem(
    AnyDimension(2), "mean_i |z_i'q|/|q|, 400 samples",
    "Bai, Jiang, Sun (2019), ICLR, Subgradient descent learns orthogonal dictionaries, own seed",
    best=None, kind="planted", reference=0.21701076527298452,
    note="every dictionary column is a local minimiser; undefined at 0", seed=39, size=15,
)  # fmt: skip
def dictionary_learning(d: int, rng: Generator) -> Instance:
    """One column of an orthogonal dictionary, in scale-invariant form."""
    samples = 400
    codes = rng.standard_normal((d, samples)) * (rng.random((d, samples)) < 0.3)
    data = (np.linalg.qr(rng.standard_normal((d, d)))[0] @ codes).T

    def both(x: Vector) -> Any:
        length, z = np.linalg.norm(x), data @ x
        value = np.sum(np.abs(z)) / (samples * length)
        return float(value), (signs(z) @ data / samples - value * x / length) / length

    best_column = float(np.min(np.sum(np.abs(codes), axis=1) / samples))
    return Instance(_unit(rng.standard_normal(d)), together(both), best_column)


sensing = family("sensing", "{}, own instance")
CHARISOPOULOS = (
    "Charisopoulos, Chen, Davis, Diaz, Ding, Drusvyatskiy (2021), Found. Comput. Math. 21,"
    " 1505-1593"
)
LI = "Li, Zhu, So, Vidal (2020), SIAM J. Optim. 30(1), 660-686"


def _corrupted(b: Vector, share: float, size: float, rng: Generator) -> Vector:
    """Replace this share of the measurements by noise."""
    return np.where(rng.random(b.shape) < share, size * rng.standard_normal(b.shape), b)


@sensing(30, "mean_i |<A_i, UU'>-b_i|, U of size 15 x 2, 150 measurements", LI, seed=301)
def matrix_sensing(rng: Generator) -> Instance:
    """A positive semidefinite matrix of rank two; x is U, row by row."""
    n, rank, m = 15, 2, 150
    A = rng.standard_normal((m, n, n))
    A += A.transpose(0, 2, 1)
    truth = rng.standard_normal((n, rank)) / np.sqrt(n)
    b = np.einsum("kij,ir,jr->k", A, truth, truth)

    def residuals(x: Vector) -> Vector:
        U = x.reshape(n, rank)
        return (A.reshape(m, -1) @ (U @ U.T).ravel() - b) / m

    def pullback(x: Vector, s: Vector) -> Vector:
        return 2.0 / m * ((s @ A.reshape(m, -1)).reshape(n, n) @ x.reshape(n, rank)).ravel()

    x0 = truth + 0.5 * rng.standard_normal((n, rank)) / np.sqrt(n)
    return Instance(x0.ravel(), sum_of_moduli(residuals, pullback))


@sensing(
    66,
    "mean_i |<A_i, UV'>-b_i|, U of size 12 x 3, V of size 10 x 3, 300 measurements, 10% corrupted",
    LI, best=None, kind="planted", seed=302,
)  # fmt: skip
def matrix_sensing_rectangular(rng: Generator) -> Instance:
    """A matrix of rank three, some measurements grossly wrong; x is U, then V."""
    p, q, rank, m = 12, 10, 3, 300
    flat = rng.standard_normal((m, p, q)).reshape(m, -1)
    truth = rng.standard_normal(rank * (p + q)) / np.sqrt(rank)

    def product(x: Vector) -> Vector:
        U, V = x[: p * rank].reshape(p, rank), x[p * rank :].reshape(q, rank)
        return flat @ (U @ V.T).ravel()

    b = _corrupted(product(truth), 0.1, 20.0, rng)

    def pullback(x: Vector, s: Vector) -> Vector:
        U, V = x[: p * rank].reshape(p, rank), x[p * rank :].reshape(q, rank)
        combination = (s @ flat).reshape(p, q) / m
        return np.concatenate([(combination @ V).ravel(), (combination.T @ U).ravel()])

    objective = sum_of_moduli(lambda x: (product(x) - b) / m, pullback)
    return Instance(truth + 0.4 * rng.standard_normal(truth.size), objective, truth)


@sensing(
    100, "mean_i |(a_i'u)(b_i'v)-y_i|, x = (u,v), 800 equations, 20% corrupted", CHARISOPOULOS,
    best=None, kind="planted", seed=303,
)  # fmt: skip
def bilinear_sensing(rng: Generator) -> Instance:
    """Two factors from many bilinear equations."""
    half, m = 50, 800
    A, B = rng.standard_normal((m, half)), rng.standard_normal((m, half))
    truth = rng.standard_normal(2 * half) / np.sqrt(half)
    y = _corrupted((A @ truth[:half]) * (B @ truth[half:]), 0.2, 3.0, rng)
    x0 = truth + 0.5 * rng.standard_normal(2 * half) / np.sqrt(half)
    return Instance(x0, _bilinear(A, B, y), truth)


@sensing(
    60, "mean_i |(a_i'x)^2-b_i|, 360 equations, 10% corrupted",
    "Duchi, Ruan (2019), Inf. Inference 8(3), 471-529", best=None, kind="planted", seed=304,
)  # fmt: skip
def phase_retrieval_corrupted(rng: Generator) -> Instance:
    """Real phase retrieval with gross errors, from a start that knows half of the solution."""
    d, m = 60, 360
    A = rng.standard_normal((m, d))
    truth = rng.standard_normal(d) / np.sqrt(d)
    b = np.abs(_corrupted((A @ truth) ** 2, 0.1, 5.0, rng))
    return Instance(truth + 0.6 * rng.standard_normal(d) / np.sqrt(d), _phases(A, b), truth)


@sensing(
    40, "mean_i | |a_i^H z|^2-b_i |, z complex of length 20, x = (Re z, Im z), 240 equations",
    "Duchi, Ruan (2019), Inf. Inference 8(3), 471-529", note="minimisers form a circle", seed=305,
)  # fmt: skip
def complex_phase_retrieval(rng: Generator) -> Instance:
    """Phase retrieval over the complex numbers."""
    n, m = 20, 240
    real, imaginary = rng.standard_normal((2, m, n)) / np.sqrt(2.0)
    first = np.hstack([real, imaginary])
    second = np.hstack([-imaginary, real])
    truth = rng.standard_normal(2 * n) / np.sqrt(n)
    b = (first @ truth) ** 2 + (second @ truth) ** 2

    def pullback(x: Vector, s: Vector) -> Vector:
        return 2.0 / m * ((s * (first @ x)) @ first + (s * (second @ x)) @ second)

    objective = sum_of_moduli(lambda x: ((first @ x) ** 2 + (second @ x) ** 2 - b) / m, pullback)
    return Instance(truth + 0.6 * rng.standard_normal(2 * n) / np.sqrt(n), objective)


@sensing(
    25, "mean_i |x'A_i x-b_i|, 125 indefinite matrices",
    "Davis, Drusvyatskiy, Paquette (2020), IMA J. Numer. Anal. 40(4), 2652-2695", seed=306,
)  # fmt: skip
def quadratic_measurements(rng: Generator) -> Instance:
    """A vector from values of indefinite quadratic forms."""
    d, m = 25, 125
    A = rng.standard_normal((m, d, d))
    A += A.transpose(0, 2, 1)
    truth = rng.standard_normal(d) / np.sqrt(d)

    def forms(x: Vector) -> Vector:
        return (A @ x) @ x

    b = forms(truth)
    objective = sum_of_moduli(lambda x: (forms(x) - b) / m, lambda x, s: 2.0 / m * (s @ (A @ x)))
    return Instance(truth + 0.5 * rng.standard_normal(d) / np.sqrt(d), objective)


def _factorisation(matrix: Vector, seen: Vector, rank: int) -> Objective:
    """mean |UV' - M| over the entries that were seen; x is U, then V."""
    p = len(matrix)
    count = float(np.sum(seen))

    def gap(x: Vector) -> Vector:
        U, V = x[: p * rank].reshape(p, rank), x[p * rank :].reshape(-1, rank)
        return (seen * (U @ V.T - matrix)).ravel() / count

    def pullback(x: Vector, s: Vector) -> Vector:
        U, V = x[: p * rank].reshape(p, rank), x[p * rank :].reshape(-1, rank)
        S = seen * s.reshape(matrix.shape) / count
        return np.concatenate([(S @ V).ravel(), (S.T @ U).ravel()])

    return sum_of_moduli(gap, pullback)


@sensing(
    80, "mean_ij |UV'-M|, U and V of size 20 x 2, 10% of M corrupted", CHARISOPOULOS, best=None,
    kind="planted", seed=307,
)  # fmt: skip
def robust_pca_rank_2(rng: Generator) -> Instance:
    """A matrix of rank two with gross errors."""
    n, rank = 20, 2
    truth = rng.standard_normal(2 * n * rank)
    clean = truth[: n * rank].reshape(n, rank) @ truth[n * rank :].reshape(n, rank).T
    objective = _factorisation(_corrupted(clean, 0.1, 8.0, rng), np.ones((n, n)), rank)
    return Instance(truth + 0.7 * rng.standard_normal(truth.size), objective, truth)


@sensing(
    64, "mean over 60% of all (i,j) of |UV'-M|, U of size 18 x 2, V of size 14 x 2", CHARISOPOULOS,
    best=0.17833626118152318, kind="best-found",
    note="the planted factors are not quite the minimum", seed=308,
)  # fmt: skip
def matrix_completion(rng: Generator) -> Instance:
    """The rest of a matrix of rank two from some of its entries, 5% of them wrong."""
    p, q, rank = 18, 14, 2
    truth = rng.standard_normal((p + q) * rank)
    clean = truth[: p * rank].reshape(p, rank) @ truth[p * rank :].reshape(q, rank).T
    matrix = _corrupted(clean, 0.05, 5.0, rng)
    seen = (rng.random((p, q)) < 0.6).astype(np.float64)
    x0 = truth + 0.5 * rng.standard_normal(truth.size)
    return Instance(x0, _factorisation(matrix, seen, rank))
