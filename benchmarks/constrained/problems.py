"""The problems: formulas from the literature, or data with an answer from linear programming.

Minimax problems with linear constraints: L. Luksan and J. Vlcek, Test problems for nonsmooth
unconstrained and linearly constrained optimization, report 798, 2000. HS: W. Hock and K.
Schittkowski, Test examples for nonlinear programming codes, 1981. The constrained Rosenbrock
function: F. Curtis and M. Overton, SIAM J. Optim. 22, 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, linprog

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
        curtis_overton(), *mads(), mad6(), pentagon(), wong2(), hs113(), hs43(), hs100(),
        *basis_pursuits(), *sphere_dictionaries(), *eigenvalues(), *boxes(), budget_svm(),
        fair_svm(), monotone_fit(), budget_regression(), nonnegative_regression(), cvar(),
        simplex_max(), circle(), median_in_a_ball(),
    ]  # fmt: skip
    return made


def curtis_overton() -> Problem:
    r = np.sqrt(2.0)

    def jac(x: Array) -> Array:
        s = 8 * np.sign(x[0] ** 2 - x[1])
        return np.array([2 * s * x[0] - 2 * (1 - x[0]), -s])

    limit = NonlinearConstraint(
        lambda x: max(r * x[0], 2 * x[1]),
        -np.inf,
        1.0,
        jac=lambda x: np.array([[r, 0.0]]) if r * x[0] > 2 * x[1] else np.array([[0.0, 2.0]]),
    )
    return Problem(
        "Curtis-Overton", lambda x: 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2, jac,
        np.array([-1.0, 1.0]), (1 - 1 / r) ** 2, {"constraints": limit},
    )  # fmt: skip


def mads() -> list[Problem]:
    def values(x: Array) -> Array:
        return np.array([x[0] ** 2 + x[1] ** 2 + x[0] * x[1] - 1, np.sin(x[0]), -np.cos(x[1])])

    def rows(x: Array, i: int) -> Any:
        return [(2 * x[0] + x[1], 2 * x[1] + x[0]), (np.cos(x[0]), 0.0), (0.0, np.sin(x[1]))][i]

    def other_values(x: Array) -> Array:
        return np.array([-np.exp(x[0] - x[1]), np.sinh(x[0] - 1) - 1, -np.log(x[1]) - 1])

    def other_rows(x: Array, i: int) -> Any:
        e = np.exp(x[0] - x[1])
        return [(-e, e), (np.cosh(x[0] - 1), 0.0), (0.0, -1 / x[1])][i]

    def limited(row: Sequence[float], low: float) -> dict[str, Any]:
        return {"constraints": LinearConstraint([row], low, np.inf)}

    # The logarithm needs a positive variable: a bound that is not active says so.
    domain = {"bounds": Bounds([-np.inf, 1e-3], [np.inf, np.inf])}
    first, second = maximum(values, rows), maximum(other_values, other_rows)
    return [
        Problem("MAD1", *first, np.array([1.0, 2.0]), -0.38965952, limited((1.0, 1.0), 0.5)),
        Problem("MAD2", *first, np.array([-2.0, -1.0]), -0.33035714, limited((-3.0, -1.0), 2.5)),
        Problem(
            "MAD4", *second, np.array([-1.0, 0.01]), -0.44891079,
            {**domain, **limited((0.05, -1.0), -0.5)},
        ),
        Problem(
            "MAD5", *second, np.array([-1.0, 3.0]), -0.42928061,
            {**domain, **limited((-0.9, 1.0), 1.0)},
        ),
    ]  # fmt: skip


def mad6() -> Problem:
    angles = np.sin(np.pi * (8.5 + 0.5 * np.arange(1, 164)) / 180)

    def patterns(x: Array) -> Array:
        return 1 / 15 + 2 / 15 * np.cos(2 * np.pi * np.outer(angles, x)).sum(axis=1)

    def values(x: Array) -> Array:
        return np.abs(patterns(x))

    def rows(x: Array, i: int) -> Array:
        sign = np.sign(patterns(x)[i])
        return -sign * 4 * np.pi / 15 * angles[i] * np.sin(2 * np.pi * angles[i] * x)

    steps = np.zeros((8, 7))
    steps[0, 0] = 1.0
    for i in range(5):
        steps[i + 1, i], steps[i + 1, i + 1] = -1.0, 1.0
    steps[6, [3, 5]] = -1.0, 1.0
    steps[7, 6] = 1.0
    low = np.array([0.4] * 6 + [1.0, 3.5])
    high = np.array([np.inf] * 6 + [1.0, 3.5])
    return Problem(
        "MAD6", *maximum(values, rows), 0.5 * np.arange(1.0, 8.0), 0.10183089,
        {"constraints": LinearConstraint(steps, low, high)},
    )  # fmt: skip


def pentagon() -> Problem:
    pairs = [(0, 2), (2, 4), (4, 0)]

    def values(x: Array) -> Array:
        return np.array([-np.hypot(x[i] - x[j], x[i + 1] - x[j + 1]) for i, j in pairs])

    def rows(x: Array, k: int) -> Array:
        i, j = pairs[k]
        g = np.zeros(6)
        step = (x[i : i + 2] - x[j : j + 2]) / np.hypot(x[i] - x[j], x[i + 1] - x[j + 1])
        g[i : i + 2], g[j : j + 2] = -step, step
        return g

    sides = np.zeros((15, 6))
    for i in range(3):
        for j in range(5):
            sides[5 * i + j, 2 * i : 2 * i + 2] = (
                np.cos(2 * np.pi * j / 5), np.sin(2 * np.pi * j / 5),
            )  # fmt: skip
    return Problem(
        "PENTAGON", *maximum(values, rows), np.array([-1.0, 0.0, 0.0, -1.0, 1.0, 1.0]), -1.85961870,
        {"constraints": LinearConstraint(sides, -np.inf, 1.0)},
    )  # fmt: skip


def _hs113() -> tuple[Any, Any, Any, Any, Any]:
    scale = np.array([0, 0, 1, 4, 1, 2, 5, 7, 2, 1.0])
    centre = np.array([0, 0, 10, 5, 3, 1, 0, 11, 10, 7.0])

    def fun(x: Array) -> float:
        base = x[0] ** 2 + x[1] ** 2 + x[0] * x[1] - 14 * x[0] - 16 * x[1] + 45
        return float(base + scale @ (x - centre) ** 2)

    def jac(x: Array) -> Array:
        g = 2 * scale * (x - centre)
        g[0] = 2 * x[0] + x[1] - 14
        g[1] = 2 * x[1] + x[0] - 16
        return g

    def curved(x: Array) -> Array:  # <= 0
        return np.array([
            3 * (x[0] - 2) ** 2 + 4 * (x[1] - 3) ** 2 + 2 * x[2] ** 2 - 7 * x[3] - 120,
            5 * x[0] ** 2 + 8 * x[1] + (x[2] - 6) ** 2 - 2 * x[3] - 40,
            0.5 * (x[0] - 8) ** 2 + 2 * (x[1] - 4) ** 2 + 3 * x[4] ** 2 - x[5] - 30,
            x[0] ** 2 + 2 * (x[1] - 2) ** 2 - 2 * x[0] * x[1] + 14 * x[4] - 6 * x[5],
            -3 * x[0] + 6 * x[1] + 12 * (x[8] - 8) ** 2 - 7 * x[9],
        ])  # fmt: skip

    def rows(x: Array) -> Array:
        J = np.zeros((5, 10))
        J[0, :4] = 6 * (x[0] - 2), 8 * (x[1] - 3), 4 * x[2], -7
        J[1, :4] = 10 * x[0], 8, 2 * (x[2] - 6), -2
        J[2, [0, 1, 4, 5]] = x[0] - 8, 4 * (x[1] - 4), 6 * x[4], -1
        J[3, [0, 1, 4, 5]] = 2 * x[0] - 2 * x[1], 4 * (x[1] - 2) - 2 * x[0], 14, -6
        J[4, [0, 1, 8, 9]] = -3, 6, 24 * (x[8] - 8), -7
        return J

    A = np.zeros((3, 10))
    A[0, [0, 1, 6, 7]] = 4, 5, -3, 9
    A[1, [0, 1, 6, 7]] = 10, -8, -17, 2
    A[2, [0, 1, 8, 9]] = -8, 2, 5, -2
    return fun, jac, curved, rows, LinearConstraint(A, -np.inf, [105.0, 0.0, 12.0])


_HS113_START = np.array([2, 3, 5, 5, 1, 2, 7, 3, 6, 10.0])


def wong2() -> Problem:
    fun, jac, curved, rows, linear = _hs113()
    return Problem(
        "WONG2",
        *maximum(
            lambda x: fun(x) + np.concatenate([[0.0], 10 * curved(x)]),
            lambda x, i: jac(x) + (10 * rows(x)[i - 1] if i else 0.0),
        ),
        _HS113_START, 24.306209, {"constraints": linear},
    )  # fmt: skip


def hs113() -> Problem:
    fun, jac, curved, rows, linear = _hs113()
    bent = at_least(lambda x: -curved(x), lambda x: -rows(x))
    return Problem("HS113", fun, jac, _HS113_START, 24.3062091, {"constraints": [linear, bent]})


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
