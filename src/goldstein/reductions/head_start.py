"""A head start: SLSQP as if everything were smooth, until kinks show in its line searches.

Where f and the constraints are smooth, or the answer is a vertex, its last point is often KKT
already; where they are not, little is lost. Nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

from goldstein.checker.arrays import Vector
from goldstein.errors import GoldsteinError, OutOfCalls
from goldstein.oracles.problem import Problem

#: Values and gradients at most: a few, and a few for each variable.
CALLS, CALLS_PER_VARIABLE = 60, 4

#: In more variables its own steps, each a dense least squares problem, take longer than a search.
LARGEST = 200

#: Smooth steps take little more than one value for each gradient; more of them mean kinks.
VALUES_PER_GRADIENT, MORE_VALUES = 1.2, 8

#: It ends where f falls by less than this part of it, if not later.
FALL = 1e-7


class _Enough(Exception):
    """Ends the run from inside the function."""


def head_start(
    problem: Problem, x: Vector, enough: float, seen: Callable[[Vector, float, Vector], None]
) -> Vector | None:
    """Return the last point of a short smooth search from x, or None if it led nowhere.

    It ends where f falls by less than `enough`. `seen(y, f(y), gradient)` is told of every point it
    went to. f and the constraints are asked inside the bounds only.
    """
    box, objective = problem.box, problem.f
    free = ~box.fixed
    if free.sum() > LARGEST:
        return None
    most = min(CALLS + CALLS_PER_VARIABLE * x.size, (objective.limit - objective.calls) / 4)
    values = gradients = 0
    last = x

    def whole(z: Vector) -> Vector:
        y = x.copy()
        y[free] = z
        return box.clip(y)

    def fun(z: Vector) -> float:
        nonlocal values
        values += 1
        if values + gradients > most or values > VALUES_PER_GRADIENT * gradients + MORE_VALUES:
            raise _Enough
        return objective.value(whole(z))

    def jac(z: Vector) -> Vector:
        nonlocal gradients, last
        gradients += 1
        y = whole(z)
        slope = objective.gradient(y)
        last = y
        if gradients > 1:
            seen(y, objective.last_value, slope)
        found: Vector = slope[free]
        return found

    least = min(enough, FALL * (1.0 + abs(objective.last_value)))
    try:
        with np.errstate(all="ignore"):
            found = minimize(
                fun, x[free], jac=jac, method="SLSQP",
                bounds=Bounds(box.lower[free], box.upper[free]),
                constraints=list(_as_dicts(problem, whole, free)),
                options={"ftol": least, "maxiter": 1000},
            )  # fmt: skip
        last = whole(np.asarray(found.x, dtype=np.float64))
    except OutOfCalls:
        raise
    except (_Enough, ValueError):
        pass
    except GoldsteinError as failure:
        # A kink, or a place where nothing is defined; what matters will be met again.
        problem.excuse(failure)
    return last if gradients > 1 and np.isfinite(last).all() else None


def _as_dicts(
    problem: Problem, whole: Callable[[Vector], Vector], free: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    """Write the system as SLSQP takes it: equalities, and functions that must not be negative."""
    system = problem.constraints
    sides = [
        ("eq", system.equal, 1.0, system.upper),
        ("ineq", np.isfinite(system.upper) & ~system.equal, -1.0, system.upper),
        ("ineq", np.isfinite(system.lower) & ~system.equal, 1.0, system.lower),
    ]

    def written(kind: str, which: Any, sign: float, limit: Vector) -> dict[str, Any]:
        return {
            "type": kind,
            "fun": lambda z: sign * (system.values(whole(z)) - limit)[which],
            "jac": lambda z: sign * system.rows(whole(z))[which][:, free],
        }

    return [written(*side) for side in sides if side[1].any()]
