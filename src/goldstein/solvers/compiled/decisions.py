"""The decisions of `solvers.logic`, made callable by compiled code."""

from __future__ import annotations

import math
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from numba.extending import overload, register_jitable

from goldstein.numerics.cone import narrow
from goldstein.solvers import logic
from goldstein.solvers.compiled.jit import DECISIONS, share
from goldstein.solvers.schedules import steps_per_round

for _found in iter_modules(logic.__path__):
    share(import_module(f"{logic.__name__}.{_found.name}"))
register_jitable(**DECISIONS)(narrow)


@overload(steps_per_round, jit_options=DECISIONS)
def _steps_per_round(lipschitz: Any, eps: Any) -> Any:
    """As a float, which does not overflow; one round failing with probability 1/e."""

    def steps(lipschitz: Any, eps: Any) -> Any:
        return max(1.0, math.ceil(5.0 * math.e * (lipschitz / eps) ** 2))

    return steps
