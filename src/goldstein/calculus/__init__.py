"""Expressions, their kinks, and what both prove about stationarity."""

from goldstein.calculus.affine import linear
from goldstein.calculus.affine import sum_entries as sum
from goldstein.calculus.apriori.explain import Explanation
from goldstein.calculus.apriori.falsify import (
    Violation,
    falsify,
)
from goldstein.calculus.apriori.modulus import Block
from goldstein.calculus.apriori.outer_lipschitz import OuterLipschitz
from goldstein.calculus.apriori.rules import (
    ArrowBlock,
    linear_composition,
    near_from_goldstein,
    partially_separable_sum,
    pieces,
    rescale,
    rowwise_composition,
    scale,
    separable_sum,
    shared_pivot_sum,
    smooth_sum,
)
from goldstein.calculus.apriori.target import GoldsteinTarget, goldstein_target
from goldstein.calculus.arrangement import MissingAssumption
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
)
from goldstein.calculus.atoms import largest as max
from goldstein.calculus.atoms import smallest as min
from goldstein.calculus.expression import Ball, Expression, Variable
from goldstein.calculus.kinks import KinkForm
from goldstein.calculus.near import near_certificate
from goldstein.calculus.span_test import ClarkeDistance, SpanTest, clarke_distance, span_test
from goldstein.calculus.stacking import concatenate, stack

__all__ = [
    "ArrowBlock",
    "Ball",
    "Block",
    "ClarkeDistance",
    "Explanation",
    "Expression",
    "GoldsteinTarget",
    "KinkForm",
    "MissingAssumption",
    "OuterLipschitz",
    "SpanTest",
    "Variable",
    "Violation",
    "abs",
    "capped_l1",
    "clarke_distance",
    "concatenate",
    "eps_insensitive",
    "falsify",
    "gated_relu",
    "goldstein_target",
    "hard_tanh",
    "hinge",
    "huber",
    "leaky_relu",
    "linear",
    "linear_composition",
    "log_sum",
    "logistic",
    "max",
    "max_affine",
    "maximum",
    "mcp",
    "min",
    "minimum",
    "near_certificate",
    "near_from_goldstein",
    "norm1",
    "norm2",
    "partially_separable_sum",
    "pieces",
    "pinball",
    "pseudo_huber",
    "ramp",
    "relu",
    "relu6",
    "rescale",
    "row_max",
    "rowwise_composition",
    "scad",
    "scale",
    "separable_sum",
    "shared_pivot_sum",
    "smooth_function",
    "smooth_sum",
    "soft_threshold",
    "softmax_cross_entropy",
    "softplus",
    "span_test",
    "square",
    "squared_hinge",
    "stack",
    "sum",
    "sum_squares",
]
