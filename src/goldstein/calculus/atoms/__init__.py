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
from goldstein.calculus.atoms.penalties import capped_l1, log_sum, mcp, scad
from goldstein.calculus.atoms.powers import power, square, sum_squares
from goldstein.calculus.atoms.softmax import softmax_cross_entropy
from goldstein.calculus.atoms.transcendental import (
    logistic,
    pseudo_huber,
    smooth_function,
    softplus,
)  # fmt: skip

__all__ = [
    "absolute", "capped_l1", "eps_insensitive", "gated_relu", "hard_tanh", "hinge", "huber",
    "largest", "leaky_relu", "log_sum", "logistic", "max_affine", "maximum", "mcp", "minimum",
    "norm1", "norm2", "pinball", "power", "pseudo_huber", "ramp", "relu", "relu6", "row_max",
    "scad", "smallest", "smooth_function", "soft_threshold", "softmax_cross_entropy", "softplus",
    "square", "squared_hinge", "sum_squares",
]  # fmt: skip
