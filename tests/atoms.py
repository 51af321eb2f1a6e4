"""One example of every atom on a variable of length 3, for the contract tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from goldstein.calculus import atoms
from goldstein.calculus.expression import Expression
from goldstein.calculus.operators import linear, sum_entries

Example = Callable[[Expression], Expression]

#: Atoms that act entry by entry.
ELEMENTWISE: dict[str, Example] = {
    "relu": atoms.relu,
    "leaky_relu": lambda u: atoms.leaky_relu(u, 0.25),
    "abs": atoms.absolute,
    "hinge": atoms.hinge,
    "pinball": lambda u: atoms.pinball(u, 0.3),
    "ramp": lambda u: atoms.ramp(u, rho=0.7),
    "hard_tanh": atoms.hard_tanh,
    "relu6": atoms.relu6,
    "soft_threshold": lambda u: atoms.soft_threshold(u, 0.4),
    "eps_insensitive": lambda u: atoms.eps_insensitive(u, 0.3),
    "capped_l1": lambda u: atoms.capped_l1(u, 0.8),
    "scad": lambda u: atoms.scad(u, 1.0, 3.7),
    "mcp": lambda u: atoms.mcp(u, 1.0, 2.0),
    "log_sum": lambda u: atoms.log_sum(u, 1.0, 0.5),
    "huber": lambda u: atoms.huber(u, 0.6),
    "squared_hinge": atoms.squared_hinge,
    "square": atoms.square,
    "power": lambda u: atoms.power(u, 3),
    "logistic": atoms.logistic,
    "softplus": atoms.softplus,
    "pseudo_huber": lambda u: atoms.pseudo_huber(u, 0.8),
}


def _summed(atom: Example, u: Expression) -> Expression:
    return sum_entries(atom(u))


#: Every atom as a scalar expression.
EXAMPLES: dict[str, Example] = {
    **{name: partial(_summed, atom) for name, atom in ELEMENTWISE.items()},
    "sum_squares": atoms.sum_squares,
    "max": atoms.largest,
    "min": atoms.smallest,
    "maximum": lambda u: sum_entries(atoms.maximum(u, 2.0 * u[::-1] - 0.3)),
    "minimum": lambda u: sum_entries(atoms.minimum(u, 0.25)),
    "row_max": lambda u: (
        sum_entries(
            atoms.row_max(linear(np.array([[1.0, 2.0, 0.0], [-1.0, 0.5, 1.0]]), u).reshape(1, 2))
        )
        + sum_entries(atoms.row_max(u[:2].reshape(1, 2)))
    ),
    "max_affine": lambda u: atoms.max_affine(
        np.array([[1.0, 2.0, 0.0], [-1.0, 0.5, 1.0], [0.0, -2.0, 3.0]]), [0.1, 0.0, -0.2], u
    ),
    "norm1": atoms.norm1,
    "norm2": atoms.norm2,
    "gated_relu": lambda u: atoms.gated_relu(u[0], u[1]) + atoms.relu(u[2]),
    "softmax_cross_entropy": lambda u: atoms.softmax_cross_entropy(u.reshape(1, 3), [1]),
}

__all__ = ["ELEMENTWISE", "EXAMPLES"]
