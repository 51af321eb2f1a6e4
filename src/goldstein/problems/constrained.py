"""Problems with bounds and constraints: minimax under linear ones, and a valley cut by a kink.

The data are those of Luksan and Vlcek's report; wong_2 and wong_3 keep their linear constraints as
constraints and penalise the others in the objective.
"""

from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

from goldstein.checker.arrays import Vector
from goldstein.problems import forms, test06
from goldstein.problems.registry import Instance, Objective, family, plane_pair, together

constrained = partial(family, "constrained", constrained=True, kind="literature")
problem = constrained("Luksan, Vlcek (2000), TR 798, ICS Prague, linearly constrained minimax: {}")


def _linear(rows: Any, low: Any, high: Any = np.inf) -> dict[str, Any]:
    return {"constraints": LinearConstraint(np.atleast_2d(rows), low, high)}


def _waves(a: float, b: float) -> Any:
    """max{x1^2 + x2^2 + x1 x2 - 1, sin x1, -cos x2}."""
    values = (a**2 + b**2 + a * b - 1, np.sin(a), -np.cos(b))
    return forms.top(values, ((2 * a + b, 2 * b + a), (np.cos(a), 0.0), (0.0, np.sin(b))))


def _growths(a: float, b: float) -> Any:
    """max{-exp(x1 - x2), sinh(x1 - 1) - 1, -log x2 - 1}."""
    e = np.exp(a - b)
    values = (-e, np.sinh(a - 1) - 1, -np.log(b) - 1)
    return forms.top(values, ((-e, e), (np.cosh(a - 1), 0.0), (0.0, -1 / b)))


#: The logarithm needs a positive variable: a bound that is not active says so.
_POSITIVE = {"bounds": Bounds([-np.inf, 1e-3], [np.inf, np.inf])}

_WAVES: Any = "max{x1^2+x2^2+x1 x2-1, sin x1, -cos x2}", _waves, {}
_GROWTHS: Any = "max{-exp(x1-x2), sinh(x1-1)-1, -ln x2-1}", _growths, _POSITIVE


def _madsen(
    number: int, function: Any, limit: str, best: float, x0: Any, row: Any, low: float
) -> None:
    """Add Madsen's problem of this number: a function under one linear constraint."""
    formula, objective, bounds = function

    @problem(2, f"{formula} s.t. {limit}", f"MAD{number}", name=f"mad_{number}", best=best)
    def build() -> Instance:
        return Instance(x0, plane_pair(objective), limits={**bounds, **_linear(row, low)})


_madsen(1, _WAVES, "x1+x2 >= 1/2", -0.38965952, [1.0, 2.0], [1.0, 1.0], 0.5)
_madsen(2, _WAVES, "-3x1-x2 >= 5/2", -0.33035714, [-2.0, -1.0], [-3.0, -1.0], 2.5)
_madsen(4, _GROWTHS, "x1/20-x2 >= -1/2", -0.44891079, [-1.0, 0.01], [0.05, -1.0], -0.5)
_madsen(5, _GROWTHS, "-9x1/10+x2 >= 1", -0.42928061, [-1.0, 3.0], [-0.9, 1.0], 1.0)


@problem(
    7, "max_i |1/15+(2/15) sum_j cos(2 pi x_j sin t_i)|, 163 angles, s.t. distances >= 0.4",
    "MAD6 (antenna array)", best=0.10183089,
)  # fmt: skip
def mad_6() -> Instance:
    """Madsen's sixth problem: positions of antennas."""
    sines = np.sin(np.pi * (8.5 + 0.5 * np.arange(1, 164)) / 180)

    def residuals(x: Vector) -> Vector:
        return 1 / 15 + 2 / 15 * np.cos(2 * np.pi * np.outer(sines, x)).sum(axis=1)

    def row(x: Vector, i: int) -> Vector:
        return -4 * np.pi / 15 * sines[i] * np.sin(2 * np.pi * sines[i] * x)

    steps = np.zeros((8, 7))
    steps[0, 0] = steps[7, 6] = 1.0
    for i in range(5):
        steps[i + 1, i], steps[i + 1, i + 1] = -1.0, 1.0
    steps[6, [3, 5]] = -1.0, 1.0
    low = np.array([0.4] * 6 + [1.0, 3.5])
    high = np.array([np.inf] * 6 + [1.0, 3.5])
    start = 0.5 * np.arange(1.0, 8.0)
    return Instance(start, forms.largest_modulus(residuals, row), limits=_linear(steps, low, high))


@problem(
    6, "the shortest distance of three points, negative, s.t. points in a pentagon", "PENTAGON",
    best=-1.8596187,
)  # fmt: skip
def pentagon() -> Instance:
    """Three points of a regular pentagon, as far apart as possible."""
    pairs = [(0, 2), (2, 4), (4, 0)]

    def pieces(x: Vector) -> Vector:
        return np.array([-np.hypot(x[i] - x[j], x[i + 1] - x[j + 1]) for i, j in pairs])

    def row(x: Vector, k: int) -> Vector:
        i, j = pairs[k]
        g = np.zeros(6)
        gap = x[i : i + 2] - x[j : j + 2]
        unit = gap / np.hypot(*gap)
        g[i : i + 2], g[j : j + 2] = -unit, unit
        return g

    angles = 2 * np.pi * np.arange(5) / 5
    sides = np.kron(np.eye(3), np.column_stack([np.cos(angles), np.sin(angles)]))
    start = np.array([-1.0, 0.0, 0.0, -1.0, 1.0, 1.0])
    return Instance(start, forms.largest(pieces, row), limits=_linear(sides, -np.inf, 1.0))


def wong_2_polynomials() -> list[forms.Polynomial]:
    """Objective and eight constraints (Hock-Schittkowski 113): wong_3 is made of them and more."""
    (_, terms, products), *rest = test06.wong_3_polynomials()
    return [(45.0, [term for term in terms if term[1] <= 10], products), *rest[:8]]


def _split(polynomials: list[forms.Polynomial]) -> tuple[Objective, dict[str, Any]]:
    """Penalise the curved constraints p <= 0, and keep the linear ones."""
    objective, *limits = polynomials
    flat = [not p[2] and all(power == 1 for _, _, power, _ in p[1]) for p in limits]
    curved = [p for p, straight in zip(limits, flat) if not straight]
    straight = forms.SparsePolynomials([p for p, is_flat in zip(limits, flat) if is_flat])
    size = max(variable for _, variable, _, _ in objective[1])
    rows = [straight.gradient(np.zeros(size), k) for k in range(sum(flat))]
    return forms.penalised([objective, *curved]), _linear(rows, -np.inf, -straight.constants)


@problem(
    10, "max{p0, p0+10p_k} s.t. 3 linear constraints (wong_2)", "WONG2", convex=True,
    best=24.3062091,
)  # fmt: skip
def wong_2_linear() -> Instance:
    """Wong's second problem, its linear constraints kept."""
    objective, limits = _split(wong_2_polynomials())
    return Instance(test06.WONG_START[:10], objective, limits=limits)


@problem(
    20, "max{p0, p0+10p_k} s.t. 4 linear constraints (wong_3)", "WONG3", convex=True,
    best=133.72827616781444,
)  # fmt: skip
def wong_3_linear() -> Instance:
    """Wong's third problem, its linear constraints kept."""
    objective, limits = _split(test06.wong_3_polynomials())
    return Instance(test06.WONG_START, objective, limits=limits)


@constrained()(
    2, "8|x1^2-x2|+(1-x1)^2 s.t. max{sqrt(2) x1, 2 x2} <= 1",
    "Curtis, Overton (2012), SIAM J. Optim. 22(2), 474-500, constrained Rosenbrock",
    best=(1 - np.sqrt(0.5)) ** 2,
)  # fmt: skip
def curtis_overton() -> Instance:
    """A valley with a kink, cut by a constraint with a kink."""
    root = np.sqrt(2.0)

    def both(x: Vector) -> Any:
        s = 8.0 if x[0] ** 2 >= x[1] else -8.0
        return 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2, (2 * s * x[0] - 2 * (1 - x[0]), -s)

    limit = NonlinearConstraint(
        lambda x: max(root * x[0], 2 * x[1]), -np.inf, 1.0,
        jac=lambda x: np.array([[root, 0.0] if root * x[0] > 2 * x[1] else [0.0, 2.0]]),
    )  # fmt: skip
    return Instance([-1.2, 1.0], together(both), limits={"constraints": limit})
