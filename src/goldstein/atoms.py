"""The atoms and the arithmetic that expressions are made of, all of them.

>>> import goldstein as gs
>>> x = gs.Variable(2)
>>> gs.atoms.mcp(x, lam=1.0, gamma=2.0).shape
(2,)
"""

from goldstein.calculus import *  # noqa: F403
from goldstein.calculus.atoms import *  # noqa: F403

__all__ = [  # noqa: F405
    "abs", "arcsinh", "arctan", "capped_l1", "concatenate", "cos", "cosh", "cumsum", "einsum",
    "eps_insensitive", "exp", "expm1", "gated_relu", "greater", "hard_tanh", "hinge", "huber",
    "leaky_relu", "linear", "log", "log1p", "log_sum", "logistic", "max", "max_affine", "maximum",
    "mcp", "median", "min", "minimum", "norm", "norm1", "norm2", "pinball", "power", "prod",
    "pseudo_huber", "quantile", "quotient", "ramp", "reciprocal", "relu", "relu6", "row_max",
    "scad", "sigmoid", "sin", "sinh", "smooth_function", "soft_threshold",
    "softmax_cross_entropy", "softplus", "sort", "sqrt", "square", "squared_hinge", "stack",
    "std", "sum", "sum_largest", "sum_squares", "tan", "tanh", "trimmed_sum", "var", "where",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
