"""Expressions, their kinks, and what both prove about stationarity.

The theory before a run (`goldstein.apriori`) and the searches for proofs
(`goldstein.construction.near`) lie above; their names are found here when they are asked for.
"""

import importlib
from typing import Any

from goldstein.calculus import atoms as _atoms
from goldstein.calculus.atoms import *  # noqa: F403
from goldstein.calculus.atoms import absolute as abs
from goldstein.calculus.atoms import largest as max
from goldstein.calculus.atoms import smallest as min
from goldstein.calculus.conditions import greater, where
from goldstein.calculus.expression import Ball, Expression, Variable
from goldstein.calculus.operators import concatenate, einsum, linear, stack
from goldstein.calculus.operators import cumulated as cumsum
from goldstein.calculus.operators import product as prod
from goldstein.calculus.operators import sum_entries as sum

_HIGHER = {
    "goldstein.apriori.explain": [
        "Explanation", "GoldsteinTarget", "MissingAssumption", "goldstein_target",
    ],
    "goldstein.apriori.modulus": ["Block"],
    "goldstein.apriori.rules": [
        "ArrowBlock", "OuterLipschitz", "linear_composition", "near_from_goldstein",
        "partially_separable_sum", "rescale", "separable_sum", "shared_pivot_sum", "smooth_sum",
    ],
    "goldstein.construction.near.kinks": [
        "ClarkeDistance", "SpanTest", "clarke_distance", "span_test",
    ],
    "goldstein.construction.near.pivot": ["near_certificate"],
}  # fmt: skip
#: Names of rooms above.
FOUND_ABOVE = {name: module for module, names in _HIGHER.items() for name in names}

#: Atoms that go by another name here, or by none.
_INNER = {"absolute", "largest", "lifted", "log_sum_exp", "smallest"}
__all__ = [
    "Ball", "Expression", "Variable", "abs", "concatenate", "cumsum", "einsum", "greater",
    "linear", "max", "min", "prod", "stack", "sum", "where",
]  # fmt: skip
__all__ += [name for name in _atoms.__all__ if name not in _INNER]
__all__ += list(FOUND_ABOVE)


def __getattr__(name: str) -> Any:
    if name not in FOUND_ABOVE:
        raise AttributeError(f"module 'goldstein.calculus' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(FOUND_ABOVE[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
