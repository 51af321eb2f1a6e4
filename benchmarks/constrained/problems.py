"""The problems: formulas from the literature, or data with an answer from linear programming.

The constrained problems of `goldstein.problems`; those of `geometric`; HS: W. Hock and K.
Schittkowski, Test examples for nonlinear programming codes, 1981; and problems made from random
data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from benchmarks.constrained import geometric
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, linprog

import goldstein as gs
from goldstein.problems.constrained import wong_2_polynomials
from goldstein.problems.forms import SparsePolynomials

Array = Any


@dataclass
class Problem:
    """min fun, subject to `limits` (bounds and constraints as SciPy takes them)."""

    name: str
    fun: Callable[[Array], float]
    jac: Callable[[Array], Array]
    x0: Array
    best: float | None
    limits: dict[str, Any] = field(default_factory=dict)


def maximum(
    values: Callable[[Array], Array], rows: Callable[[Array, int], Array]
) -> tuple[Callable[[Array], float], Callable[[Array], Array]]:
    """Return max_i values_i and its gradient, `rows(x, i)` that of piece i."""
    return (
        lambda x: float(np.max(values(x))),
        lambda x: np.asarray(rows(x, int(np.argmax(values(x)))), dtype=float),
    )


def at_least(values: Callable[[Array], Array], rows: Callable[[Array], Array]) -> Any:
    return NonlinearConstraint(values, 0.0, np.inf, jac=lambda x: np.atleast_2d(rows(x)))


def all_problems() -> list[Problem]:
    """Return the list; making it costs a few linear programs."""
    made: list[Problem] = [
        *literature(), *linearly_constrained(),
        hs113(), hs43(), hs100(), hs114(),
        *basis_pursuits(), *sphere_dictionaries(), *eigenvalues(), *boxes(), budget_svm(),
        fair_svm(), monotone_fit(), budget_regression(), nonnegative_regression(), cvar(),
        simplex_max(), circle(), median_in_a_ball(),
    ]  # fmt: skip
    return made


def literature() -> list[Problem]:
    """The problems that are part of the library."""
    return [
        Problem(p.name, p.fun, p.jac, p.x0.copy(), p.best_value, p.limits)
        for p in gs.problems.suite("constrained")
    ]


def linearly_constrained() -> list[Problem]:
    """More of Luksan and Vlcek's, which need too many calls for the tests of the library."""
    return [Problem(p.name, p.fun, p.jac, p.x0, p.best, p.limits) for p in geometric.made()]


def hs113() -> Problem:
    polynomials = wong_2_polynomials()
    system = SparsePolynomials(polynomials)
    limits = NonlinearConstraint(
        lambda x: system.values(x)[1:], -np.inf, 0.0,
        jac=lambda x: np.array([system.gradient(x, k) for k in range(1, len(polynomials))]),
    )  # fmt: skip
    start = gs.problems.get("wong_2_linear").x0.copy()
    return Problem(
        "HS113", lambda x: float(system.values(x)[0]), lambda x: system.gradient(x, 0), start,
        24.3062091, {"constraints": limits},
    )  # fmt: skip


def hs43() -> Problem:
    c = np.array([[-1, 1, -1, 1], [1, 0, 0, 1], [-2, 1, 0, 1.0]])
    q = np.array([[1, 1, 1, 1], [1, 2, 1, 2], [2, 1, 1, 0.0]])
    top = np.array([8, 10, 5.0])
    lin, quad = np.array([-5, -5, -21, 7.0]), np.array([1, 1, 2, 1.0])
    limit = at_least(lambda x: top + c @ x - q @ x**2, lambda x: c - 2 * q * x)
    return Problem(
        "HS43", lambda x: float(quad @ x**2 + lin @ x), lambda x: 2 * quad * x + lin, np.zeros(4),
        -44.0, {"constraints": limit},
    )  # fmt: skip


def hs100() -> Problem:
    def fun(x: Array) -> float:
        return float(
            (x[0] - 10) ** 2 + 5 * (x[1] - 12) ** 2 + x[2] ** 4 + 3 * (x[3] - 11) ** 2
            + 10 * x[4] ** 6 + 7 * x[5] ** 2 + x[6] ** 4 - 4 * x[5] * x[6] - 10 * x[5] - 8 * x[6]
        )  # fmt: skip

    def jac(x: Array) -> Array:
        return np.array([
            2 * (x[0] - 10), 10 * (x[1] - 12), 4 * x[2] ** 3, 6 * (x[3] - 11), 60 * x[4] ** 5,
            14 * x[5] - 4 * x[6] - 10, 4 * x[6] ** 3 - 4 * x[5] - 8,
        ])  # fmt: skip

    def values(x: Array) -> Array:
        return np.array([
            127 - 2 * x[0] ** 2 - 3 * x[1] ** 4 - x[2] - 4 * x[3] ** 2 - 5 * x[4],
            282 - 7 * x[0] - 3 * x[1] - 10 * x[2] ** 2 - x[3] + x[4],
            196 - 23 * x[0] - x[1] ** 2 - 6 * x[5] ** 2 + 8 * x[6],
            -4 * x[0] ** 2 - x[1] ** 2 + 3 * x[0] * x[1] - 2 * x[2] ** 2 - 5 * x[5] + 11 * x[6],
        ])  # fmt: skip

    def rows(x: Array) -> Array:
        J = np.zeros((4, 7))
        J[0, :5] = -4 * x[0], -12 * x[1] ** 3, -1, -8 * x[3], -5
        J[1, :5] = -7, -3, -20 * x[2], -1, 1
        J[2, [0, 1, 5, 6]] = -23, -2 * x[1], -12 * x[5], 8
        J[3, [0, 1, 2, 5, 6]] = -8 * x[0] + 3 * x[1], -2 * x[1] + 3 * x[0], -4 * x[2], -5, 11
        return J

    return Problem(
        "HS100", fun, jac, np.array([1, 2, 0, 4, 0, 1, 1.0]), 680.6300573,
        {"constraints": at_least(values, rows)},
    )  # fmt: skip


def hs114() -> Problem:
    """Alkylation: variables of sizes from 1e-5 to 16,000, and equalities with quotients."""
    a, b = 0.99, 0.9

    def fun(x: Array) -> float:
        return float(
            5.04 * x[0] + 0.035 * x[1] + 10 * x[2] + 3.36 * x[4] - 0.063 * x[3] * x[6]
        )  # fmt: skip

    def jac(x: Array) -> Array:
        return np.array([5.04, 0.035, 10, -0.063 * x[6], 3.36, 0, -0.063 * x[3], 0, 0, 0])

    def values(x: Array) -> Array:
        g5 = x[0] * (1.12 + 0.13167 * x[7] - 0.00667 * x[7] ** 2) - a * x[3]
        g6 = 57.425 + 1.098 * x[7] - 0.038 * x[7] ** 2 + 0.325 * x[5] - a * x[6]
        return np.array([g5, g6, (1 / a - a) * x[3] - g5, (1 / a - a) * x[6] - g6])

    def rows(x: Array) -> Array:
        J = np.zeros((4, 10))
        J[0, 0] = 1.12 + 0.13167 * x[7] - 0.00667 * x[7] ** 2
        J[0, 7], J[0, 3] = x[0] * (0.13167 - 0.01334 * x[7]), -a
        J[1, [7, 5, 6]] = 1.098 - 0.076 * x[7], 0.325, -a
        J[2:] = -J[:2]
        J[2, 3] += 1 / a - a
        J[3, 6] += 1 / a - a
        return J

    def balances(x: Array) -> Array:
        share = 98000 * x[2] / (x[3] * x[8] + 1000 * x[2])
        return np.array([share - x[5], (x[1] + x[4]) / x[0] - x[7]])

    def balance_rows(x: Array) -> Array:
        D, J = x[3] * x[8] + 1000 * x[2], np.zeros((2, 10))
        J[0, [2, 3, 8, 5]] = (
            98000 / D - 98e6 * x[2] / D**2, -98000 * x[2] * x[8] / D**2,
            -98000 * x[2] * x[3] / D**2, -1,
        )  # fmt: skip
        J[1, [0, 1, 4, 7]] = -(x[1] + x[4]) / x[0] ** 2, 1 / x[0], 1 / x[0], -1
        return J

    A = np.zeros((5, 10))
    A[0, [9, 8]], A[1, [6, 9]] = (-0.222, -b), (3, -a)
    A[2:4] = -A[:2]
    A[2, 8] += 1 / b - b
    A[3, 9] += 1 / a - a
    A[4, [3, 0, 4]] = 1.22, -1, -1
    low, high = [1e-5] * 5 + [85, 90, 3, 1.2, 145], [2000, 16000, 120, 5000, 2000, 93, 95, 12, 4]
    return Problem(
        "HS114", fun, jac, np.array([1745, 12000, 110, 3048, 1974, 89.2, 92.8, 8, 3.6, 145]),
        -1768.80696,
        {"bounds": Bounds(low, [*high, 162]),
         "constraints": [
             LinearConstraint(A[:4], [-35.82, 133, 35.82, -133], np.inf),
             LinearConstraint(A[4:], 0, 0),
             NonlinearConstraint(values, 0, np.inf, jac=rows),
             NonlinearConstraint(balances, 0, 0, jac=balance_rows),
         ]},
    )  # fmt: skip


def basis_pursuits() -> list[Problem]:
    found = []
    for seed, (m, d) in enumerate([(8, 20), (15, 50)]):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((m, d))
        b = A[:, :3] @ np.array([1.0, -2.0, 1.5])
        best = linprog(np.ones(2 * d), A_eq=np.hstack([A, -A]), b_eq=b).fun
        found.append(
            Problem(
                f"basis pursuit {d}", lambda x: float(np.abs(x).sum()), np.sign,
                rng.standard_normal(d), best, {"constraints": LinearConstraint(A, b, b)},
            )
        )  # fmt: skip
    return found


def sphere_dictionaries() -> list[Problem]:
    found = []
    for d in (10, 30):
        rng = np.random.default_rng(d)
        sparse = rng.standard_normal((d, 10 * d)) * (rng.random((d, 10 * d)) < 0.3)
        Y = np.linalg.qr(rng.standard_normal((d, d)))[0] @ sparse
        start = rng.standard_normal(d)
        found.append(_dictionary(Y, start / np.linalg.norm(start)))
    return found


def _dictionary(Y: Array, start: Array) -> Problem:
    n = Y.shape[1]
    sphere = NonlinearConstraint(lambda q: q @ q, 1.0, 1.0, jac=lambda q: 2 * q[None])
    return Problem(
        f"dictionary {start.size}", lambda q: float(np.abs(q @ Y).sum() / n),
        lambda q: Y @ np.sign(q @ Y) / n, start, None, {"constraints": sphere},
    )  # fmt: skip


def eigenvalues() -> list[Problem]:
    rng = np.random.default_rng(2)
    M = rng.standard_normal((6, 8, 8))
    M = (M + M.transpose(0, 2, 1)) / 2

    def fun(x: Array) -> float:
        return float(np.linalg.eigvalsh(np.tensordot(x, M, 1))[-1])

    def jac(x: Array) -> Array:
        v = np.linalg.eigh(np.tensordot(x, M, 1))[1][:, -1]
        return np.einsum("i,kij,j->k", v, M, v)

    shifted = M[0]

    def fun_box(x: Array) -> float:
        return float(np.linalg.eigvalsh(np.tensordot(x, M[1:], 1) + shifted)[-1])

    def jac_box(x: Array) -> Array:
        v = np.linalg.eigh(np.tensordot(x, M[1:], 1) + shifted)[1][:, -1]
        return np.einsum("i,kij,j->k", v, M[1:], v)

    simplex = {
        "bounds": Bounds(np.zeros(6), np.ones(6)),
        "constraints": LinearConstraint(np.ones((1, 6)), 1.0, 1.0),
    }
    return [
        Problem("eigenvalue, simplex", fun, jac, np.full(6, 1 / 6), None, simplex),
        Problem(
            "eigenvalue, box", fun_box, jac_box, np.zeros(5), None,
            {"bounds": Bounds(np.full(5, -0.2), np.full(5, 0.2))},
        ),
    ]  # fmt: skip


def boxes() -> list[Problem]:
    found = []
    for seed in range(3):
        rng = np.random.default_rng(100 + seed)
        found.append(_minimax_box(
            seed, rng.standard_normal((40, 20)), rng.standard_normal(40), rng.random(20)
        ))  # fmt: skip
    return found


def _minimax_box(seed: int, A: Array, b: Array, c: Array) -> Problem:
    return Problem(
        f"minimax, box {seed}", lambda x: float(np.max(A @ x + b) - 0.5 * c @ x**2),
        lambda x: A[np.argmax(A @ x + b)] - c * x, np.full(20, 0.5), None,
        {"bounds": Bounds(np.zeros(20), np.ones(20))},
    )  # fmt: skip


def _svm() -> tuple[Array, Array, Any, Any, float]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 6))
    y = np.sign(X @ np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.0]) + 0.5 * rng.standard_normal(80))
    Z = y[:, None] * X

    def fun(w: Array) -> float:
        return float(np.maximum(0, 1 - Z @ w).mean())

    def jac(w: Array) -> Array:
        return -Z[Z @ w < 1].sum(axis=0) / 80

    return X, Z, fun, jac, 80


def budget_svm() -> Problem:
    """Hinge loss with |w|_1 <= 1, as one constraint with kinks."""
    _, Z, fun, jac, n = _svm()
    d = Z.shape[1]
    cost = np.concatenate([np.zeros(2 * d), np.full(int(n), 1 / n)])
    A = np.vstack([
        np.hstack([-Z, Z, -np.eye(int(n))]),
        np.concatenate([np.ones(2 * d), np.zeros(int(n))])[None],
    ])  # fmt: skip
    best = linprog(cost, A, np.concatenate([np.full(int(n), -1.0), [1.0]])).fun
    limit = NonlinearConstraint(
        lambda w: np.abs(w).sum(), -np.inf, 1.0, jac=lambda w: np.sign(w)[None]
    )
    return Problem("SVM, l1 budget", fun, jac, np.full(d, 0.1), best, {"constraints": limit})


def fair_svm() -> Problem:
    """Hinge loss in a box; mean scores of two groups at most 0.05 apart."""
    X, Z, fun, jac, n = _svm()
    d = Z.shape[1]
    row = X[:40].mean(axis=0) - X[40:].mean(axis=0)
    cost = np.concatenate([np.zeros(d), np.full(int(n), 1 / n)])
    gap = np.concatenate([row, np.zeros(int(n))])
    A = np.vstack([np.hstack([-Z, -np.eye(int(n))]), gap, -gap])
    b = np.concatenate([np.full(int(n), -1.0), [0.05, 0.05]])
    best = linprog(cost, A, b, bounds=[(-1, 1)] * d + [(0, None)] * int(n)).fun
    return Problem(
        "SVM, fairness", fun, jac, np.full(d, 0.1), best,
        {"bounds": Bounds(-np.ones(d), np.ones(d)),
         "constraints": LinearConstraint(row[None], -0.05, 0.05)},
    )  # fmt: skip


def _least_absolute(
    name: str, A: Array, b: Array, x0: Array, limits: dict[str, Any], **lp: Any
) -> Problem:
    """mean |A x - b| with linear limits; the answer from a linear program in (x, t)."""
    m, d = A.shape
    cost = np.concatenate([np.zeros(d), np.full(m, 1 / m)])
    rows = [np.hstack([A, -np.eye(m)]), np.hstack([-A, -np.eye(m)])]
    right = [b, -b]
    if "A_ub" in lp:
        rows.append(np.hstack([lp["A_ub"], np.zeros((len(lp["A_ub"]), m))]))
        right.append(lp["b_ub"])
    box = list(lp.get("bounds", [(None, None)] * d)) + [(0, None)] * m
    best = linprog(cost, np.vstack(rows), np.concatenate(right), bounds=box).fun
    return Problem(
        name, lambda x: float(np.abs(A @ x - b).mean()),
        lambda x: A.T @ np.sign(A @ x - b) / m, x0, best, limits,
    )  # fmt: skip


def monotone_fit() -> Problem:
    rng = np.random.default_rng(5)
    b = np.sort(rng.standard_normal(15)) + 0.6 * rng.standard_normal(15)
    D = np.eye(15)[1:] - np.eye(15)[:-1]
    return _least_absolute(
        "monotone l1 fit", np.eye(15), b, np.zeros(15),
        {"constraints": LinearConstraint(D, 0.0, np.inf)}, A_ub=-D, b_ub=np.zeros(14),
    )  # fmt: skip


def budget_regression() -> Problem:
    rng = np.random.default_rng(6)
    A, b = rng.standard_normal((30, 5)), rng.standard_normal(30)
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    limit = NonlinearConstraint(
        lambda x: np.abs(x).sum(), -np.inf, 0.3, jac=lambda x: np.sign(x)[None]
    )
    return _least_absolute(
        "l1 fit, l1 budget", A, b, np.full(5, 0.5), {"constraints": limit}, A_ub=signs,
        b_ub=np.full(32, 0.3),
    )  # fmt: skip


def nonnegative_regression() -> Problem:
    rng = np.random.default_rng(7)
    A = rng.standard_normal((40, 10))
    b = A @ np.maximum(rng.standard_normal(10), 0) + 0.1 * rng.standard_normal(40)
    return _least_absolute(
        "nonnegative l1 fit", A, b, np.full(10, 0.5),
        {"bounds": Bounds(np.zeros(10), np.full(10, np.inf))}, bounds=[(0, None)] * 10,
    )  # fmt: skip


def cvar() -> Problem:
    """Mean of the worst tenth of losses of a portfolio: t + mean(max(0, loss - t)) / 0.1."""
    rng = np.random.default_rng(8)
    R = 0.01 * rng.standard_normal((50, 5)) * np.arange(1, 6) + 0.002 * np.arange(1, 6)

    def fun(v: Array) -> float:
        return float(v[-1] + np.maximum(0, -R @ v[:-1] - v[-1]).mean() / 0.1)

    def jac(v: Array) -> Array:
        worst = (-R @ v[:-1] - v[-1] > 0) / 50 / 0.1
        return np.append(-R.T @ worst, 1 - worst.sum())

    cost = np.concatenate([np.zeros(5), [1.0], np.full(50, 1 / 50 / 0.1)])
    A = np.hstack([-R, -np.ones((50, 1)), -np.eye(50)])
    one = np.concatenate([np.ones(5), np.zeros(51)])[None]
    best = linprog(
        cost, A, np.zeros(50), one, [1.0], [(0, 1)] * 5 + [(None, None)] + [(0, None)] * 50
    ).fun
    return Problem(
        "CVaR portfolio", fun, jac, np.append(np.full(5, 0.2), 0.0), best,
        {"bounds": Bounds(np.append(np.zeros(5), -np.inf), np.append(np.ones(5), np.inf)),
         "constraints": LinearConstraint(np.append(np.ones(5), 0.0)[None], 1.0, 1.0)},
    )  # fmt: skip


def simplex_max() -> Problem:
    d = 10
    return Problem(
        "largest entry, simplex", lambda x: float(x.max()), lambda x: np.eye(d)[int(x.argmax())],
        np.eye(d)[0], 1 / d,
        {"bounds": Bounds(np.zeros(d), np.ones(d)),
         "constraints": LinearConstraint(np.ones((1, d)), 1.0, 1.0)},
    )  # fmt: skip


def circle() -> Problem:
    return Problem(
        "l1 on a sphere", lambda x: float(np.abs(x).sum()), np.sign, np.array([0.3, 0.5, 0.8]), 1.0,
        {"constraints": NonlinearConstraint(lambda x: x @ x, 1.0, 1.0, jac=lambda x: 2 * x[None])},
    )  # fmt: skip


def median_in_a_ball() -> Problem:
    rng = np.random.default_rng(9)
    P = rng.standard_normal((12, 3)) + np.array([2.0, 0.0, 0.0])

    def jac(x: Array) -> Array:
        away = x - P
        return (away / np.linalg.norm(away, axis=1)[:, None]).sum(axis=0)

    ball = NonlinearConstraint(lambda x: x @ x, -np.inf, 1.0, jac=lambda x: 2 * x[None])
    return Problem(
        "median in a ball", lambda x: float(np.linalg.norm(x - P, axis=1).sum()), jac, np.zeros(3),
        None, {"constraints": ball},
    )  # fmt: skip
