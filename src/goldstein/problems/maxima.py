"""Maxima of about as many pieces as there are variables, and uniform approximation."""

from typing import Any

import numpy as np
from numpy.random import Generator

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import Pieces, Pullback, largest, largest_modulus, shipped
from goldstein.problems.registry import Instance, Objective, family, together

problem = family("maxima", "{}", kind="best-found")
OWN = "own instance, in the manner of "
LEMARECHAL = OWN + "Lemarechal, Mifflin (1978), Nonsmooth Optimization, Pergamon"
CHENEY = OWN + "Cheney (1966), Introduction to Approximation Theory, McGraw-Hill, ch. 2 and 3"


def _balanced(rng: Generator, pieces: int, d: int) -> Vector:
    """Gradients with 0 in the interior of their hull, so that the maximum is bounded below."""
    A = rng.standard_normal((pieces, d))
    weights = rng.uniform(0.2, 1.0, pieces)
    return A - (weights @ A) / np.sum(weights)


def _affine(A: Vector, b: Vector) -> Objective:
    return largest(lambda x: A @ x + b, lambda _, i: A[i].copy())


@problem(30, "max_{i<=31} a_i'x+b_i", LEMARECHAL, convex=True, best=0.018438411865077435, seed=341)
def max_affine(rng: Generator) -> Instance:
    """As few affine pieces as a sharp minimum can have: d + 1."""
    A, b = _balanced(rng, 31, 30), rng.standard_normal(31)
    return Instance(rng.standard_normal(30), _affine(A, b))


@problem(20, "max_{i<=60} a_i'x+b_i", LEMARECHAL, convex=True, best=0.7919335987720462, seed=342)
def max_affine_many(rng: Generator) -> Instance:
    """Three times as many affine pieces as variables."""
    A, b = _balanced(rng, 60, 20), rng.standard_normal(60)
    return Instance(3.0 * rng.standard_normal(20), _affine(A, b))


def _quadratics(rng: Generator, pieces: int, d: int, lowest: float) -> Vector:
    """Symmetric matrices with eigenvalues between `lowest` and 2."""
    matrices = []
    for _ in range(pieces):
        Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
        matrices.append((Q * rng.uniform(lowest, 2.0, d)) @ Q.T)
    return np.array(matrices)


@problem(
    20, "max_{i<=20} x'Q_i x/2+a_i'x+b_i, Q_i positive definite", LEMARECHAL, convex=True,
    best=0.6701080181360113, seed=343,
)  # fmt: skip
def max_quadratics(rng: Generator) -> Instance:
    """Convex quadratics, as many as variables."""
    Q, A, b = _quadratics(rng, 20, 20, 0.1), rng.standard_normal((20, 20)), rng.standard_normal(20)
    objective = largest(lambda x: 0.5 * ((Q @ x) @ x) + A @ x + b, lambda x, i: Q[i] @ x + A[i])
    return Instance(rng.standard_normal(20), objective)


@problem(
    15, "max_{i<=18} x'Q_i x/2+a_i'x+b_i+|x|^4/20, Q_i indefinite", LEMARECHAL,
    best=-0.25945366998533526, note="local minima exist", seed=344,
)  # fmt: skip
def max_quadratics_nonconvex(rng: Generator) -> Instance:
    """Indefinite quadratics under a quartic."""
    Q, A, b = _quadratics(rng, 18, 15, -1.0), rng.standard_normal((18, 15)), rng.standard_normal(18)
    objective = largest(
        lambda x: 0.5 * ((Q @ x) @ x) + A @ x + b + 0.05 * (x @ x) ** 2,
        lambda x, i: Q[i] @ x + A[i] + 0.2 * (x @ x) * x,
    )
    return Instance(rng.standard_normal(15), objective)


@problem(25, "max_{i<=26} exp(a_i'x+b_i)", LEMARECHAL, convex=True, best=1.030680025229611)
def max_exponentials(seed: int = 345) -> Instance:
    """Curved pieces that look alike far from the minimum."""
    rng = np.random.default_rng(seed)
    A, b = _balanced(rng, 26, 25) / 5.0, 0.3 * rng.standard_normal(26)
    objective = largest(lambda x: np.exp(A @ x + b), lambda x, i: np.exp(A[i] @ x + b[i]) * A[i])
    return Instance(rng.standard_normal(25), objective)


@problem(
    12, "max_{i<=60} |x-p_i|",
    "Elzinga, Hearn (1972), Management Science 19(1), 96-104, own instance", convex=True,
    best=6.426638426703803, seed=346,
)  # fmt: skip
def smallest_enclosing_ball(rng: Generator) -> Instance:
    """The centre of the smallest ball around sixty points."""
    P = rng.standard_normal((60, 12)) * np.linspace(0.5, 2.0, 12)
    objective = largest(
        lambda x: np.sqrt(np.sum((P - x) ** 2, axis=1)),
        lambda x, i: (x - P[i]) / np.sqrt((x - P[i]) @ (x - P[i])),
    )
    return Instance(P[0] + 1.0, objective)


@problem(
    10, "max_t |sum_{k<10} x_k T_k(t)-|t-0.3|^(3/2)|, 101 points of [-1, 1]", CHENEY, convex=True,
    best=0.007164636530395384,
)  # fmt: skip
def chebyshev_polynomial() -> Instance:
    """The best uniform approximation by polynomials of degree nine."""
    t = np.linspace(-1.0, 1.0, 101)
    basis = np.cos(np.arccos(t)[:, None] * np.arange(10))
    target = np.abs(t - 0.3) ** 1.5
    objective = largest_modulus(lambda x: basis @ x - target, lambda _, i: basis[i].copy())
    return Instance(np.zeros(10), objective)


@problem(
    6, "max_t |(x1+x2 t+x3 t^2)/(1+x4 t+x5 t^2+x6 t^3)-log(1.2+t)|, 61 points of [-1, 1]", CHENEY,
    best=0.00015985339697954792, note="poles of the rational function",
)  # fmt: skip
def chebyshev_rational() -> Instance:
    """The best uniform approximation of a logarithm by rational functions."""
    t = np.linspace(-1.0, 1.0, 61)
    upper = t[:, None] ** np.arange(3)
    lower = t[:, None] ** np.arange(1, 4)
    target = np.log(1.2 + t)

    def residuals(x: Vector) -> Vector:
        return (upper @ x[:3]) / (1.0 + lower @ x[3:]) - target

    def row(x: Vector, i: int) -> Vector:
        below = 1.0 + lower[i] @ x[3:]
        return np.concatenate([upper[i] / below, -(upper[i] @ x[:3]) / below**2 * lower[i]])

    return Instance(np.array([0.2, 0.9, 0.0, 0.1, 0.0, 0.0]), largest_modulus(residuals, row))


eigenvalues = family("eigenvalues")
not_lipschitz = family("not-lipschitz")


@eigenvalues(
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
        return X / lengths, lengths

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

    return Instance(np.random.default_rng(7).standard_normal(n * n), together(both, value))


def _top_eigenvalue(matrix: Pieces, pullback: Pullback) -> Objective:
    """The largest eigenvalue of a matrix; `pullback(x, U)` is the gradient of <U, matrix>."""

    def both(x: Vector) -> Any:
        spectrum, basis = np.linalg.eigh(matrix(x))
        u = basis[:, -1]
        return spectrum[-1], pullback(x, np.outer(u, u).ravel())

    return together(both, lambda x: np.linalg.eigvalsh(matrix(x))[-1])


def _symmetric(rng: Generator, m: int) -> Vector:
    B = rng.uniform(-1.0, 1.0, (m, m))
    return (B + B.T) / 2.0


@eigenvalues(
    10, "lambda_max(A0+sum x_i A_i), 15 x 15",
    "Lewis, Wylie (2019), arXiv:1907.11742, eq. (8.7), own seed", convex=True,
    best=1.9955269678851322, kind="best-found", reference=1.9955269678851335,
    note="value confirmed by semidefinite programming", seed=11,
)  # fmt: skip
def max_eigenvalue(rng: Generator) -> Instance:
    """The largest eigenvalue of an affine matrix function."""
    d, m = 10, 15
    matrices = np.stack([_symmetric(rng, m) for _ in range(d + 1)])
    flat = matrices[1:].reshape(d, m * m)

    return Instance(
        np.zeros(d),
        _top_eigenvalue(
            lambda x: matrices[0] + (x @ flat).reshape(m, m), lambda _, rank_one: flat @ rank_one
        ),
    )


@eigenvalues(
    6, "lambda_max(A0+sum x_i A_i+sum x_i x_j B_ij), 10 x 10",
    "Noll, Apkarian (2005), Math. Program. 104, 701-727, own seed", best=1.9204966156684031,
    kind="best-found", reference=1.9204966156684031, seed=13,
)  # fmt: skip
def bilinear_matrix_inequality(rng: Generator) -> Instance:
    """A nonconvex maximum eigenvalue function, kept coercive by its diagonal blocks."""
    d, m = 6, 10
    affine = np.stack([_symmetric(rng, m) for _ in range(d + 1)])
    bilinear = np.stack([[0.5 * _symmetric(rng, m) for _ in range(d)] for _ in range(d)])
    bilinear = 0.5 * (bilinear + bilinear.transpose(1, 0, 2, 3))
    bilinear += 0.9 * np.eye(d)[:, :, None, None] * np.eye(m)
    linear_flat, bilinear_flat = affine[1:].reshape(d, -1), bilinear.reshape(d * d, -1)

    def matrix(x: Vector) -> Vector:
        return affine[0] + (x @ linear_flat + np.outer(x, x).ravel() @ bilinear_flat).reshape(m, m)

    def pullback(x: Vector, rank_one: Vector) -> Vector:
        return linear_flat @ rank_one + 2.0 * (bilinear_flat @ rank_one).reshape(d, d) @ x

    return Instance(np.ones(d), _top_eigenvalue(matrix, pullback))


@not_lipschitz(
    4, "max Re eig(A+BKC), A 8 x 8, K 2 x 2",
    "Burke, Lewis, Overton (2002), Linear Algebra Appl. 351-352, 117-145, own random plant",
    locally_lipschitz=False, best=0.530764065905418, kind="best-found",
    reference=0.5926569641483315,
    note="not locally Lipschitz at defective matrices: outside the theory", seed=21,
)  # fmt: skip
def static_output_feedback(rng: Generator) -> Instance:
    """The spectral abscissa of a closed loop."""
    n, m, p = 8, 2, 2
    A = rng.standard_normal((n, n)) / np.sqrt(n)
    B, C = rng.standard_normal((n, m)), rng.standard_normal((p, n))

    def closed_loop(x: Vector) -> Vector:
        return A + B @ x.reshape(m, p) @ C

    def value(x: Vector) -> float:
        return float(np.linalg.eigvals(closed_loop(x)).real.max())

    def both(x: Vector) -> Any:
        M = closed_loop(x)
        spectrum, right = np.linalg.eig(M)
        k = int(np.argmax(spectrum.real))
        mirrored, left = np.linalg.eig(M.T)
        u = left[:, int(np.argmin(np.abs(mirrored - spectrum[k])))]  # u'M = spectrum[k] u'
        sensitivity = np.outer(B.T @ u, C @ right[:, k]) / (u @ right[:, k])
        return value(x), sensitivity.real.ravel()

    return Instance(np.zeros(m * p), together(both, value))
