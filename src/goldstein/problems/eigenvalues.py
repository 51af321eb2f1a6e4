"""Functions of eigenvalues of matrices that depend on x."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.data import shipped
from goldstein.problems.forms import Pieces, Pullback, together
from goldstein.problems.problem import Instance, Objective
from goldstein.problems.registry import family

problem = family("eigenvalues")
not_lipschitz = family("not-lipschitz")


@problem(
    196, "sum_{i<=7} log lambda_i(A o VV'), V = X with rows of length 1, 14 x 14",
    "Burke, Lewis, Overton (2005), SIAM J. Optim. 15(3), 751-779; matrix of Anstreicher, Lee"
    " (2004)", best=-2.5244675520541815, kind="literature", reference=-2.5244675520541797,
    note="undefined where a row of X vanishes",
)  # fmt: skip
def eigenvalue_product() -> Instance:
    """Log of the product of the 7 largest eigenvalues; the minimum is badly degenerate."""
    n, largest = 14, 7
    covariance = shipped("anstreicher_lee63")["A"][:n, :n]
    covariance = covariance / covariance.max()

    def normalised(x: Vector) -> tuple[Vector, Vector]:
        X = x.reshape(n, n)
        lengths = np.sqrt(np.sum(X * X, axis=1))[:, None]
        return np.asarray(X / lengths), lengths

    def value(x: Vector) -> float:
        V, _ = normalised(x)
        return float(np.sum(np.log(np.linalg.eigvalsh(covariance * (V @ V.T))[n - largest :])))

    def both(x: Vector) -> Any:
        V, lengths = normalised(x)
        spectrum, basis = np.linalg.eigh(covariance * (V @ V.T))
        top, U = spectrum[n - largest :], basis[:, n - largest :]
        G = 2.0 * (covariance * ((U / top) @ U.T)) @ V
        G -= np.sum(G * V, axis=1)[:, None] * V
        return float(np.sum(np.log(top))), (G / lengths).ravel()

    x0 = np.random.default_rng(7).standard_normal(n * n)
    return Instance(x0, together(both, value))


def _top_eigenvalue(matrix: Pieces, pullback: Pullback) -> Objective:
    """The largest eigenvalue of a matrix; `pullback(x, U)` is the gradient of <U, matrix>."""

    def both(x: Vector) -> Any:
        spectrum, basis = np.linalg.eigh(matrix(x))
        u = basis[:, -1]
        return spectrum[-1], pullback(x, np.outer(u, u).ravel())

    return together(both, lambda x: np.linalg.eigvalsh(matrix(x))[-1])


def _symmetric(rng: np.random.Generator, m: int) -> Vector:
    B = rng.uniform(-1.0, 1.0, (m, m))
    return np.asarray((B + B.T) / 2.0)


@problem(
    10, "lambda_max(A0+sum x_i A_i), 15 x 15",
    "Lewis, Wylie (2019), arXiv:1907.11742, eq. (8.7), own seed", convex=True,
    best=1.9955269678851322, kind="best-found", reference=1.9955269678851335,
    note="value confirmed by semidefinite programming",
)  # fmt: skip
def max_eigenvalue(seed: int = 11) -> Instance:
    """The largest eigenvalue of an affine matrix function."""
    d, m = 10, 15
    rng = np.random.default_rng(seed)
    matrices = np.stack([_symmetric(rng, m) for _ in range(d + 1)])
    flat = matrices[1:].reshape(d, m * m)

    return Instance(
        np.zeros(d),
        _top_eigenvalue(
            lambda x: matrices[0] + (x @ flat).reshape(m, m), lambda _, rank_one: flat @ rank_one
        ),
    )


@problem(
    6, "lambda_max(A0+sum x_i A_i+sum x_i x_j B_ij), 10 x 10",
    "Noll, Apkarian (2005), Math. Program. 104, 701-727, own seed", best=1.9204966156684031,
    kind="best-found", reference=1.9204966156684031,
)  # fmt: skip
def bilinear_matrix_inequality(seed: int = 13) -> Instance:
    """A nonconvex maximum eigenvalue function, kept coercive by its diagonal blocks."""
    d, m = 6, 10
    rng = np.random.default_rng(seed)
    affine = np.stack([_symmetric(rng, m) for _ in range(d + 1)])
    bilinear = np.stack([[0.5 * _symmetric(rng, m) for _ in range(d)] for _ in range(d)])
    bilinear = 0.5 * (bilinear + bilinear.transpose(1, 0, 2, 3))
    bilinear += 0.9 * np.eye(d)[:, :, None, None] * np.eye(m)
    linear_flat, bilinear_flat = affine[1:].reshape(d, -1), bilinear.reshape(d * d, -1)

    def matrix(x: Vector) -> Vector:
        flat = x @ linear_flat + np.outer(x, x).ravel() @ bilinear_flat
        return np.asarray(affine[0] + flat.reshape(m, m))

    def pullback(x: Vector, rank_one: Vector) -> Vector:
        curved = (bilinear_flat @ rank_one).reshape(d, d)
        return np.asarray(linear_flat @ rank_one + 2.0 * curved @ x)

    return Instance(np.ones(d), _top_eigenvalue(matrix, pullback))


@not_lipschitz(
    4, "max Re eig(A+BKC), A 8 x 8, K 2 x 2",
    "Burke, Lewis, Overton (2002), Linear Algebra Appl. 351-352, 117-145, own random plant",
    locally_lipschitz=False, best=0.530764065905418, kind="best-found",
    reference=0.5926569641483315,
    note="not locally Lipschitz at defective matrices: outside the theory",
)  # fmt: skip
def static_output_feedback(seed: int = 21) -> Instance:
    """The spectral abscissa of a closed loop."""
    n, m, p = 8, 2, 2
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) / np.sqrt(n)
    B, C = rng.standard_normal((n, m)), rng.standard_normal((p, n))

    def closed_loop(x: Vector) -> Vector:
        return np.asarray(A + B @ x.reshape(m, p) @ C)

    def value(x: Vector) -> float:
        return float(np.linalg.eigvals(closed_loop(x)).real.max())

    def gradient(x: Vector) -> Vector:
        M = closed_loop(x)
        spectrum, right = np.linalg.eig(M)
        k = int(np.argmax(spectrum.real))
        mirrored, left = np.linalg.eig(M.T)
        u = left[:, int(np.argmin(np.abs(mirrored - spectrum[k])))]  # u'M = spectrum[k] u'
        sensitivity = np.outer(B.T @ u, C @ right[:, k]) / (u @ right[:, k])
        return np.asarray(sensitivity.real.ravel())

    return Instance(np.zeros(m * p), Objective(value, gradient))
