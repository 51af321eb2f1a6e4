"""Expressions, their kinks, and what both prove about stationarity.

The theory before a run (`goldstein.apriori`) and the searches for proofs
(`goldstein.construction.near`) lie above; their names are found here when they are asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from goldstein.calculus.atoms import absolute as abs
from goldstein.calculus.atoms import (
    capped_l1,
    eps_insensitive,
    gated_relu,
    hard_tanh,
    hinge,
    huber,
    leaky_relu,
    log_sum,
    logistic,
    max_affine,
    maximum,
    mcp,
    minimum,
    norm1,
    norm2,
    pinball,
    pseudo_huber,
    ramp,
    relu,
    relu6,
    row_max,
    scad,
    smooth_function,
    soft_threshold,
    softmax_cross_entropy,
    softplus,
    square,
    squared_hinge,
    sum_squares,
)  # fmt: skip
from goldstein.calculus.atoms import largest as max
from goldstein.calculus.atoms import smallest as min
from goldstein.calculus.expression import Ball, Expression, Variable
from goldstein.calculus.operators import concatenate, linear, stack
from goldstein.calculus.operators import sum_entries as sum

_HIGHER = {
    "goldstein.apriori.arrangement": ["MissingAssumption"],
    "goldstein.apriori.explain": ["Explanation"],
    "goldstein.apriori.falsify": [
        "Violation", "falsify", "falsify_modulus", "sampled_subdifferential",
    ],
    "goldstein.apriori.modulus": ["Block"],
    "goldstein.apriori.outer_lipschitz": ["OuterLipschitz"],
    "goldstein.apriori.rules": [
        "ArrowBlock", "linear_composition", "near_from_goldstein", "nonlinear_composition",
        "partially_separable_sum", "pieces", "rescale", "rowwise_composition", "scalar_pieces",
        "scale", "separable_sum", "shared_pivot_sum", "smooth_sum", "vector_rescale",
    ],
    "goldstein.apriori.target": ["GoldsteinTarget", "goldstein_target"],
    "goldstein.construction.near.clarke": [
        "ClarkeDistance", "SpanTest", "clarke_distance", "span_test",
    ],
    "goldstein.construction.near.pivot_proof": ["near_certificate"],
}  # fmt: skip
_WHERE = {name: module for module, names in _HIGHER.items() for name in names}

__all__ = [
    "Ball", "Expression", "Variable", "abs", "capped_l1", "concatenate", "eps_insensitive",
    "gated_relu", "hard_tanh", "hinge", "huber", "leaky_relu", "linear", "log_sum", "logistic",
    "max", "max_affine", "maximum", "mcp", "min", "minimum", "norm1", "norm2", "pinball",
    "pseudo_huber", "ramp", "relu", "relu6", "row_max", "scad", "smooth_function",
    "soft_threshold", "softmax_cross_entropy", "softplus", "square", "squared_hinge", "stack",
    "sum", "sum_squares",
]  # fmt: skip
__all__ += list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'goldstein.calculus' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_WHERE[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
