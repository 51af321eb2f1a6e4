"""The atoms: functions with known kinks, slopes and constants.

To add one: write it into the file of its family, with its name in `__all__` there and in the list
here, and add an example to `EXAMPLES` in `tests/atoms.py`; the contract tests pick it up.
"""

from goldstein.calculus.atoms.activations import *  # noqa: F403
from goldstein.calculus.atoms.losses import *  # noqa: F403
from goldstein.calculus.atoms.maximum import *  # noqa: F403
from goldstein.calculus.atoms.norms import *  # noqa: F403
from goldstein.calculus.atoms.order import *  # noqa: F403
from goldstein.calculus.atoms.penalties import *  # noqa: F403
from goldstein.calculus.atoms.powers import *  # noqa: F403
from goldstein.calculus.atoms.smooth import *  # noqa: F403
from goldstein.calculus.atoms.softmax import *  # noqa: F403
from goldstein.calculus.atoms.transcendental import *  # noqa: F403

__all__ = [  # noqa: F405
    "absolute", "arcsinh", "arctan", "capped_l1", "cos", "cosh", "eps_insensitive", "exp",
    "expm1", "gated_relu", "hard_tanh", "hinge", "huber", "largest", "leaky_relu", "lifted",
    "log", "log1p", "log_sum", "log_sum_exp", "logistic", "max_affine", "maximum", "mcp",
    "median", "minimum", "norm", "norm1", "norm2", "pinball", "power", "pseudo_huber", "quantile",
    "quotient", "ramp", "reciprocal", "relu", "relu6", "row_max", "scad", "sigmoid", "sin",
    "sinh", "smallest", "smooth_function", "soft_threshold", "softmax_cross_entropy", "softplus",
    "sort", "sqrt", "square", "squared_hinge", "std", "sum_largest", "sum_squares", "tan", "tanh",
    "trimmed_sum", "var",
]  # fmt: skip
