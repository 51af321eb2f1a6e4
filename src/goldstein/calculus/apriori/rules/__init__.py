"""The rules of the outer-Lipschitz calculus as plain functions on triples.

Each docstring states the rule, proves it in two lines, and names the proposition or the erratum of
Tian, Zhou and So (ICML 2022). Radii and moduli are rounded up, reaches down.
"""

from goldstein.calculus.apriori.rules.compositions import (
    linear_composition,
    nonlinear_composition,
    pivot_factor,
    rescale,
    rowwise_composition,
    vector_rescale,
)
from goldstein.calculus.apriori.rules.conversion import near_from_goldstein
from goldstein.calculus.apriori.rules.pieces import (
    gated_pivot,
    levelled,
    nearest_kink,
    nearest_kink_pivot,
    pieces,
    scalar_pieces,
)
from goldstein.calculus.apriori.rules.sums import (
    ArrowBlock,
    arrow_modulus,
    partially_separable_sum,
    scale,
    separable_sum,
    shared_pivot_sum,
    smooth_sum,
)

__all__ = [
    "ArrowBlock",
    "arrow_modulus",
    "gated_pivot",
    "levelled",
    "linear_composition",
    "near_from_goldstein",
    "nearest_kink",
    "nearest_kink_pivot",
    "nonlinear_composition",
    "partially_separable_sum",
    "pieces",
    "pivot_factor",
    "rescale",
    "rowwise_composition",
    "scalar_pieces",
    "scale",
    "separable_sum",
    "shared_pivot_sum",
    "smooth_sum",
    "vector_rescale",
]
