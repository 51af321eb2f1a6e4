"""Dembo's geometric programs and an exchange economy, as minimax problems under linear constraints.

L. Luksan and J. Vlcek, Test problems for nonsmooth unconstrained and linearly constrained
optimization, TR 798, ICS Prague, 2000 (their Fortran codes eild22, tafu22 have the data);
R. S. Dembo, A set of geometric programming test problems and their solutions, Math. Programming 10
(1976), 192-213, problems 3, 5 and 7; H. Scarf's economy of five traders and eight goods. Curved
constraints sum(terms) <= 1 of a program are penalised in the objective, as there:
f = max{p_0, p_0 + weight (p_k - 1)}; linear ones stay constraints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint

Array = Any

#: A coefficient and the powers of the variables, numbered from 1 as in the literature.
Term = tuple[float, Mapping[int, float]]


class Signomials:
    """Sums of terms c x_1^a_1 ... x_n^a_n; whole powers, so that x < 0 makes sense too."""

    def __init__(self, sums: Sequence[Sequence[Term]], dim: int) -> None:
        terms = [(k, *term) for k, one in enumerate(sums) for term in one]
        self._owner = np.array([k for k, _, _ in terms])
        self._coefficient = np.array([c for _, c, _ in terms])
        self._powers = np.zeros((len(terms), dim))
        for row, (_, _, powers) in zip(self._powers, terms):
            for variable, power in powers.items():
                row[variable - 1] = power
        self.size = len(sums)

    def _terms(self, x: Array) -> Array:
        return self._coefficient * np.prod(x**self._powers, axis=1)

    def values(self, x: Array) -> Array:
        return np.bincount(self._owner, self._terms(x), self.size)

    def gradient(self, x: Array, k: int) -> Array:
        mine = self._owner == k
        return (self._terms(x)[mine] @ self._powers[mine]) / x


def minimax(
    name: str,
    sums: Sequence[Sequence[Term]],
    weight: float,
    x0: Array,
    best: float,
    limits: dict[str, Any],
) -> Made:
    """Minimise max{p_0, p_0 + weight (p_k - 1)}."""
    system = Signomials(sums, x0.size)

    def pieces(x: Array) -> Array:
        found = system.values(x)
        found[1:] = found[0] + weight * (found[1:] - 1.0)
        return found

    def gradient(x: Array) -> Array:
        k = int(np.argmax(pieces(x)))
        slope = system.gradient(x, 0)
        return slope + weight * system.gradient(x, k) if k else slope

    return Made(name, lambda x: float(pieces(x).max()), gradient, x0, best, limits, system)


def _limits(dim: int, low: Array, high: Array, rows: Sequence[Mapping[int, float]]) -> Any:
    """Bounds, and linear rows that must not exceed 1."""
    A = np.zeros((len(rows), dim))
    for row, entries in zip(A, rows):
        for variable, entry in entries.items():
            row[variable - 1] = entry
    return {"bounds": Bounds(low, high), "constraints": LinearConstraint(A, -np.inf, 1.0)}


@dataclass
class Made:
    """A problem, and the program p_0 -> min, p_k <= 1 that it came from, if from one."""

    name: str
    fun: Any
    jac: Any
    x0: Array
    best: float
    limits: dict[str, Any]
    program: Signomials | None = None


def dembo_3() -> Made:
    """Alkylation; no bound but that of x_7 is far from the answer."""
    sums: list[list[Term]] = [
        [(1.715, {1: 1}), (0.035, {1: 1, 6: 1}), (4.0565, {3: 1}), (10, {2: 1}), (3000, {}),
         (-0.063, {3: 1, 5: 1})],
        [(0.0059553571, {6: 2}), (0.88392857, {3: 1, 1: -1}), (-0.1175625, {6: 1})],
        [(1.1088, {1: 1, 3: -1}), (0.1303533, {1: 1, 3: -1, 6: 1}),
         (-0.0066033, {1: 1, 3: -1, 6: 2})],
        [(6.6173269e-4, {6: 2}), (0.017239878, {5: 1}), (-0.0056595559, {4: 1}),
         (-0.019120592, {6: 1})],
        [(56.85075, {5: -1}), (1.08702, {6: 1, 5: -1}), (0.32175, {4: 1, 5: -1}),
         (-0.03762, {6: 2, 5: -1})],
        [(0.006198, {7: 1}), (2462.3121, {2: 1, 3: -1, 4: -1}), (-25.125634, {2: 1, 3: -1})],
        [(161.18996, {7: -1}), (5000, {2: 1, 3: -1, 7: -1}),
         (-489510, {2: 1, 3: -1, 4: -1, 7: -1})],
        [(44.333333, {5: -1}), (0.33, {7: 1, 5: -1})],
        [(0.819672, {1: 1, 3: -1}), (0.819672, {3: -1})],
        [(24500, {2: 1, 3: -1, 4: -1}), (-250, {2: 1, 3: -1})],
        [(0.010204082, {4: 1}), (1.2244898e-5, {2: -1, 3: 1, 4: 1})],
        [(6.25e-5, {1: 1, 6: 1}), (6.25e-5, {1: 1}), (-7.625e-5, {3: 1})],
        [(1.22, {1: -1, 3: 1}), (1, {1: -1}), (-1, {6: 1})],
    ]  # fmt: skip
    limits = _limits(
        7, [1, 1, 1, 85, 90, 3, 145], [2000, 120, 5000, 93, 95, 12, 162],
        [{5: 0.022556, 7: -0.007595}, {1: -5e-4, 3: 6.1e-4}],
    )  # fmt: skip
    start = np.array([1745, 110, 3048, 89, 92, 8, 145.0])
    return minimax("DEMBO3", sums, 1e5, start, 1227.2260757, limits)


def dembo_5() -> Made:
    """A heat exchanger (Hock-Schittkowski 106)."""
    sums: list[list[Term]] = [
        [(1, {1: 1}), (1, {2: 1}), (1, {3: 1})],
        [(833.33252, {4: 1, 1: -1, 6: -1}), (100, {6: -1}), (-83333.333, {1: -1, 6: -1})],
        [(1250, {5: 1, 2: -1, 7: -1}), (-1250, {4: 1, 2: -1, 7: -1}), (1, {4: 1, 7: -1})],
        [(1.25e6, {3: -1, 8: -1}), (-2500, {5: 1, 3: -1, 8: -1}), (1, {5: 1, 8: -1})],
    ]  # fmt: skip
    limits = _limits(
        8, [100, 1000, 1000] + [10] * 5, [1e4] * 3 + [1000] * 5,
        [{4: 0.0025, 6: 0.0025}, {4: -0.0025, 5: 0.0025, 7: 0.0025}, {5: -0.01, 8: 0.01}],
    )  # fmt: skip
    start = np.array([5000, 5000, 5000, 200, 350, 150, 225, 425.0])
    return minimax("DEMBO5", sums, 1e5, start, 7049.2480205, limits)


def dembo_7() -> Made:
    """Membrane separation in seven stages."""
    first: list[Term] = [(1.262626, {k: 1}) for k in range(12, 17)]
    first += [(-1.23106, {k: 1, k + 11: 1}) for k in range(1, 6)]
    stages: list[list[Term]] = [
        [(0.975, {k: 1}), (0.03475, {k: 1, k + 5: -1}), (-0.00975, {k: 2, k + 5: -1})]
        for k in range(1, 6)
    ]
    balances: list[list[Term]] = [
        [(1, {6: 1, 7: -1}), (1, {1: 1, 12: 1, 7: -1, 11: -1}), (-1, {6: 1, 12: 1, 7: -1, 11: -1})],
        [(1, {7: 1, 8: -1}), (0.002, {7: 1, 12: 1, 8: -1}), (-0.002, {1: 1, 12: 1, 8: -1}),
         (0.002, {2: 1, 13: 1, 8: -1}), (-0.002, {13: 1})],
        [(1, {8: 1}), (1, {9: 1}), (0.002, {8: 1, 13: 1}), (-0.002, {2: 1, 13: 1}),
         (0.002, {3: 1, 14: 1}), (-0.002, {9: 1, 14: 1})],
        [(1, {9: 1, 3: -1}), (1, {4: 1, 15: 1, 3: -1, 14: -1}),
         (-1, {8: 1, 15: 1, 3: -1, 14: -1}), (500, {10: 1, 3: -1, 14: -1}),
         (-500, {9: 1, 3: -1, 14: -1})],
        [(1, {10: 1, 4: -1}), (1, {5: 1, 16: 1, 4: -1, 15: -1}), (-1, {16: 1, 15: -1}),
         (500, {15: -1}), (-500, {10: 1, 4: -1, 15: -1})],
        [(0.9, {4: -1}), (0.002, {16: 1}), (-0.002, {5: 1, 16: 1, 4: -1})],
    ]  # fmt: skip
    pairs = ((12, 11), (4, 5), (3, 4), (2, 3), (1, 2), (9, 10), (8, 9))
    order: list[list[Term]] = [[(1, {a: 1, b: -1})] for a, b in pairs]
    limits = _limits(
        16, [0.1] * 4 + [0.9, 1e-4] + [0.1] * 4 + [1, 1e-6, 1, 500, 500, 1e-6],
        [0.9] * 4 + [1.0, 0.1] + [0.9] * 4 + [1e4, 5e3, 5e3, 1e4, 1e4, 5e3],
        [{11: 0.002, 12: -0.002}],
    )  # fmt: skip
    start = np.array([0.8, 0.83, 0.85, 0.87, 0.9, 0.1, 0.12, 0.19, 0.25, 0.29, 512, 13.1, 71.8, 640,
                      650, 5.7])  # fmt: skip
    sums = [first, *stages, *balances, *order]
    return minimax("DEMBO7", sums, 1e3, start, 174.7869944, limits)


def equil() -> Made:
    """Prices at which no good is demanded more than supplied; shares, endowments, elasticities."""
    shares = np.array([
        [1, 1, 1, 1, 1, 1, 1, 1], [2, 0.8, 1, 0.5, 1, 1, 1, 1],
        [1, 1.2, 0.8, 1.2, 1.6, 2, 0.6, 0.1], [2, 0.1, 0.6, 2, 1, 1, 1, 2],
        [1.2, 1.2, 0.8, 1, 1.2, 0.1, 3, 4],
    ])  # fmt: skip
    supply = np.full((5, 8), 0.1)
    supply[0, [0, 1, 4, 7]], supply[1, [1, 4]] = (3, 1, 5, 6), (10, 5)
    supply[2, [1, 2, 4, 6]], supply[3, [3, 5]], supply[4, 7] = (9, 10, 4, 7), (10, 3), 11
    elasticity = np.array([0.5, 1.2, 0.8, 2.0, 1.5])[:, None]

    def parts(x: Array) -> tuple[Array, Array, Array]:
        wealth = supply @ x
        spread = (shares * x ** (1 - elasticity)).sum(axis=1)
        return wealth, spread, shares / (x**elasticity * spread[:, None])

    def pieces(x: Array) -> Array:
        wealth, _, rates = parts(x)
        return wealth @ rates - supply.sum(axis=0)

    def gradient(x: Array) -> Array:
        k = int(np.argmax(pieces(x)))
        wealth, spread, rates = parts(x)
        slope = shares * (1 - elasticity) * x**-elasticity / spread[:, None]
        found = rates[:, k] @ (supply - slope * wealth[:, None])
        found[k] -= float((rates[:, k] * elasticity[:, 0]) @ wealth) / x[k]
        return found

    limits = {
        "bounds": Bounds(np.full(8, 1e-8), np.full(8, np.inf)),
        "constraints": LinearConstraint(np.ones((1, 8)), 1.0, 1.0),
    }
    return Made("EQUIL", lambda x: float(pieces(x).max()), gradient, np.full(8, 0.125), 0.0, limits)


def mad_8() -> Made:
    """Half of the variables bounded; the largest modulus of 38 sums."""
    one = np.append(np.repeat(np.arange(1, 19), 2), 19)
    index = np.concatenate([[0], one])  # x_1, then twice each of x_2 to x_19, and x_20
    double = np.arange(38) % 2 == 0

    def residuals(x: Array) -> Array:
        y = x[index]
        return x.sum() - 1.0 + y * (np.where(double, 2.0, 1.0) * y - 1.0)

    def gradient(x: Array) -> Array:
        values = residuals(x)
        k = int(np.argmax(np.abs(values)))
        found = np.ones(20)
        found[index[k]] += 2.0 * (2.0 if double[k] else 1.0) * x[index[k]] - 1.0
        return np.sign(values[k]) * found

    low = np.array([0.5] * 10 + [-np.inf] * 10)
    return Made(
        "MAD8", lambda x: float(np.abs(residuals(x)).max()), gradient, np.full(20, 100.0),
        0.50694799, {"bounds": Bounds(low, np.full(20, np.inf))},
    )  # fmt: skip


def made() -> list[Made]:
    return [dembo_3(), dembo_5(), dembo_7(), equil(), mad_8()]
