"""Maxima of about as many pieces as there are variables, and uniform approximation."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import largest, largest_modulus
from goldstein.problems.problem import Instance, Objective
from goldstein.problems.registry import family

problem = family("maxima", "{}", kind="best-found")
OWN = "own instance, in the manner of "
LEMARECHAL = OWN + "Lemarechal, Mifflin (1978), Nonsmooth Optimization, Pergamon"
CHENEY = OWN + "Cheney (1966), Introduction to Approximation Theory, McGraw-Hill, ch. 2 and 3"


def _balanced(rng: np.random.Generator, pieces: int, d: int) -> Vector:
    """Gradients with 0 in the interior of their hull, so that the maximum is bounded below."""
    A = rng.standard_normal((pieces, d))
    weights = rng.uniform(0.2, 1.0, pieces)
    return np.asarray(A - (weights @ A) / np.sum(weights))


def _affine(A: Vector, b: Vector) -> Objective:
    return largest(lambda x: A @ x + b, lambda _, i: A[i].copy())


@problem(30, "max_{i<=31} a_i'x+b_i", LEMARECHAL, convex=True, best=0.018438411865077435)
def max_affine(seed: int = 341) -> Instance:
    """As few affine pieces as a sharp minimum can have: d + 1."""
    rng = np.random.default_rng(seed)
    A, b = _balanced(rng, 31, 30), rng.standard_normal(31)
    return Instance(rng.standard_normal(30), _affine(A, b))


@problem(20, "max_{i<=60} a_i'x+b_i", LEMARECHAL, convex=True, best=0.7919335987720462)
def max_affine_many(seed: int = 342) -> Instance:
    """Three times as many affine pieces as variables."""
    rng = np.random.default_rng(seed)
    A, b = _balanced(rng, 60, 20), rng.standard_normal(60)
    return Instance(3.0 * rng.standard_normal(20), _affine(A, b))


def _quadratics(rng: np.random.Generator, pieces: int, d: int, lowest: float) -> Vector:
    """Symmetric matrices with eigenvalues between `lowest` and 2."""
    matrices = []
    for _ in range(pieces):
        Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
        matrices.append((Q * rng.uniform(lowest, 2.0, d)) @ Q.T)
    return np.array(matrices)


@problem(
    20, "max_{i<=20} x'Q_i x/2+a_i'x+b_i, Q_i positive definite", LEMARECHAL, convex=True,
    best=0.6701080181360113,
)  # fmt: skip
def max_quadratics(seed: int = 343) -> Instance:
    """Convex quadratics, as many as variables."""
    rng = np.random.default_rng(seed)
    Q, A, b = _quadratics(rng, 20, 20, 0.1), rng.standard_normal((20, 20)), rng.standard_normal(20)
    objective = largest(
        lambda x: 0.5 * ((Q @ x) @ x) + A @ x + b, lambda x, i: np.asarray(Q[i] @ x + A[i])
    )
    return Instance(rng.standard_normal(20), objective)


@problem(
    15, "max_{i<=18} x'Q_i x/2+a_i'x+b_i+|x|^4/20, Q_i indefinite", LEMARECHAL,
    best=-0.25945366998533526, note="local minima exist",
)  # fmt: skip
def max_quadratics_nonconvex(seed: int = 344) -> Instance:
    """Indefinite quadratics under a quartic."""
    rng = np.random.default_rng(seed)
    Q, A, b = _quadratics(rng, 18, 15, -1.0), rng.standard_normal((18, 15)), rng.standard_normal(18)
    objective = largest(
        lambda x: 0.5 * ((Q @ x) @ x) + A @ x + b + 0.05 * (x @ x) ** 2,
        lambda x, i: np.asarray(Q[i] @ x + A[i] + 0.2 * (x @ x) * x),
    )
    return Instance(rng.standard_normal(15), objective)


@problem(25, "max_{i<=26} exp(a_i'x+b_i)", LEMARECHAL, convex=True, best=1.030680025229611)
def max_exponentials(seed: int = 345) -> Instance:
    """Curved pieces that look alike far from the minimum."""
    rng = np.random.default_rng(seed)
    A, b = _balanced(rng, 26, 25) / 5.0, 0.3 * rng.standard_normal(26)
    objective = largest(
        lambda x: np.exp(A @ x + b), lambda x, i: np.asarray(np.exp(A[i] @ x + b[i]) * A[i])
    )
    return Instance(rng.standard_normal(25), objective)


@problem(
    12, "max_{i<=60} |x-p_i|",
    "Elzinga, Hearn (1972), Management Science 19(1), 96-104, own instance", convex=True,
    best=6.426638426703803,
)  # fmt: skip
def smallest_enclosing_ball(seed: int = 346) -> Instance:
    """The centre of the smallest ball around sixty points."""
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((60, 12)) * np.linspace(0.5, 2.0, 12)
    objective = largest(
        lambda x: np.sqrt(np.sum((P - x) ** 2, axis=1)),
        lambda x, i: np.asarray((x - P[i]) / np.sqrt((x - P[i]) @ (x - P[i]))),
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
        return np.asarray((upper @ x[:3]) / (1.0 + lower @ x[3:]) - target)

    def row(x: Vector, i: int) -> Vector:
        below = 1.0 + lower[i] @ x[3:]
        above = upper[i] @ x[:3]
        return np.concatenate([upper[i] / below, -above / below**2 * lower[i]])

    return Instance(np.array([0.2, 0.9, 0.0, 0.1, 0.0, 0.0]), largest_modulus(residuals, row))
