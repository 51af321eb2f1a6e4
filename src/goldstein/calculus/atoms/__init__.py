"""The atoms: functions with known kinks, slopes and constants.

To add one: write its file, export it here, and add an example to `EXAMPLES` in `tests/atoms.py`;
the contract tests pick it up.
"""

from goldstein.calculus.atoms.activations import (
    absolute,
    gated_relu,
    hard_tanh,
    leaky_relu,
    relu,
    relu6,
    soft_threshold,
)  # fmt: skip
from goldstein.calculus.atoms.losses import (
    eps_insensitive,
    hinge,
    huber,
    pinball,
    ramp,
    squared_hinge,
)  # fmt: skip
from goldstein.calculus.atoms.maximum import (
    largest,
    max_affine,
    maximum,
    minimum,
    row_max,
    smallest,
)  # fmt: skip
from goldstein.calculus.atoms.norms import norm1, norm2
from goldstein.calculus.atoms.order import (
    median,
    norm,
    quantile,
    sort,
    std,
    sum_largest,
    trimmed_sum,
    var,
)  # fmt: skip
from goldstein.calculus.atoms.penalties import capped_l1, log_sum, mcp, scad
from goldstein.calculus.atoms.powers import power, square, sum_squares
from goldstein.calculus.atoms.smooth import (
    arcsinh,
    arctan,
    cos,
    cosh,
    exp,
    expm1,
    log,
    log1p,
    quotient,
    reciprocal,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)  # fmt: skip
from goldstein.calculus.atoms.softmax import lifted, log_sum_exp, softmax_cross_entropy
from goldstein.calculus.atoms.transcendental import (
    logistic,
    pseudo_huber,
    smooth_function,
    softplus,
)  # fmt: skip

__all__ = [
    "absolute", "arcsinh", "arctan", "capped_l1", "cos", "cosh", "eps_insensitive", "exp",
    "expm1", "gated_relu", "hard_tanh", "hinge", "huber", "largest", "leaky_relu", "lifted",
    "log", "log1p", "log_sum", "log_sum_exp", "logistic", "max_affine", "maximum", "mcp",
    "median", "minimum", "norm", "norm1", "norm2", "pinball", "power", "pseudo_huber", "quantile",
    "quotient", "ramp", "reciprocal", "relu", "relu6", "row_max", "scad", "sigmoid", "sin",
    "sinh", "smallest", "smooth_function", "soft_threshold", "softmax_cross_entropy", "softplus",
    "sort", "sqrt", "square", "squared_hinge", "std", "sum_largest", "sum_squares", "tan", "tanh",
    "trimmed_sum", "var",
]  # fmt: skip
