"""Expressions, their kinks, and what both prove about stationarity.

The theory before a run (`goldstein.apriori`) and the searches for proofs
(`goldstein.construction.near`) lie above; their names are found here when they are asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

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
    "goldstein.apriori.arrangement": ["MissingAssumption"],
    "goldstein.apriori.explain": ["Explanation"],
    "goldstein.apriori.modulus": ["Block"],
    "goldstein.apriori.outer_lipschitz": ["OuterLipschitz"],
    "goldstein.apriori.rules": [
        "ArrowBlock", "linear_composition", "near_from_goldstein", "partially_separable_sum",
        "rescale", "separable_sum", "shared_pivot_sum", "smooth_sum",
    ],
    "goldstein.apriori.target": ["GoldsteinTarget", "goldstein_target"],
    "goldstein.construction.near.clarke": [
        "ClarkeDistance", "SpanTest", "clarke_distance", "span_test",
    ],
    "goldstein.construction.near.pivot": ["near_certificate"],
}  # fmt: skip
_WHERE = {name: module for module, names in _HIGHER.items() for name in names}

__all__ = [  # noqa: F405
    "Ball", "Expression", "Variable", "abs", "arcsinh", "arctan", "capped_l1", "concatenate",
    "cos", "cosh", "cumsum", "einsum", "eps_insensitive", "exp", "expm1", "gated_relu", "greater",
    "hard_tanh", "hinge", "huber", "leaky_relu", "linear", "log", "log1p", "log_sum", "logistic",
    "max", "max_affine", "maximum", "mcp", "median", "min", "minimum", "norm", "norm1", "norm2",
    "pinball", "power", "prod", "pseudo_huber", "quantile", "quotient", "ramp", "reciprocal",
    "relu", "relu6", "row_max", "scad", "sigmoid", "sin", "sinh", "smooth_function",
    "soft_threshold", "softmax_cross_entropy", "softplus", "sort", "sqrt", "square",
    "squared_hinge", "stack", "std", "sum", "sum_largest", "sum_squares", "tan", "tanh",
    "trimmed_sum", "var", "where",
]  # fmt: skip
__all__ += list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'goldstein.calculus' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
