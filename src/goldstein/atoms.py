"""The atoms and the arithmetic that expressions are made of, all of them.

>>> import goldstein as gs
>>> x = gs.Variable(2)
>>> gs.atoms.mcp(x, lam=1.0, gamma=2.0).shape
(2,)
"""

from goldstein.calculus import *  # noqa: F403

__all__ = [  # noqa: F405
    "abs", "capped_l1", "concatenate", "eps_insensitive", "gated_relu", "hard_tanh", "hinge",
    "huber", "leaky_relu", "linear", "log_sum", "logistic", "max", "max_affine", "maximum",
    "mcp", "min", "minimum", "norm1", "norm2", "pinball", "pseudo_huber", "ramp", "relu",
    "relu6", "row_max", "scad", "smooth_function", "soft_threshold", "softmax_cross_entropy",
    "softplus", "square", "squared_hinge", "stack", "sum", "sum_squares",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
