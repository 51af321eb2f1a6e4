"""Small constrained problems with kinks and known answers, shared by the tests."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

ROOT = np.sqrt(2.0)


@dataclass
class Known:
    fun: Any
    jac: Any
    x0: Any
    best: float
    bounds: Any = None
    constraints: Any = field(default_factory=list)

    @property
    def problem(self):
        return {"bounds": self.bounds, "constraints": self.constraints}


def maximum(pieces, gradients):
    """Return value and gradient of a maximum of smooth pieces."""

    def jac(x):
        return np.array(gradients[int(np.argmax([p(x) for p in pieces]))](x), dtype=float)

    return (lambda x: max(p(x) for p in pieces)), jac


def curtis_overton():
    def fun(x):
        return 8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2

    def jac(x):
        s = 8 * np.sign(x[0] ** 2 - x[1])
        return np.array([2 * s * x[0] - 2 * (1 - x[0]), -s])

    limit = NonlinearConstraint(
        lambda x: max(ROOT * x[0], 2 * x[1]),
        -np.inf,
        1.0,
        jac=lambda x: np.array([ROOT, 0.0]) if ROOT * x[0] > 2 * x[1] else np.array([0.0, 2.0]),
    )
    # The solution is (1/sqrt 2, 1/2).
    return Known(fun, jac, [-1.0, 1.0], (1 - 1 / ROOT) ** 2, constraints=limit)


def mad(lower, x0, best, row):
    pieces = [
        lambda x: x[0] ** 2 + x[1] ** 2 + x[0] * x[1] - 1,
        lambda x: np.sin(x[0]),
        lambda x: -np.cos(x[1]),
    ]
    gradients = [
        lambda x: [2 * x[0] + x[1], 2 * x[1] + x[0]],
        lambda x: [np.cos(x[0]), 0.0],
        lambda x: [0.0, np.sin(x[1])],
    ]
    return Known(
        *maximum(pieces, gradients), x0, best, constraints=LinearConstraint([row], lower, np.inf)
    )


def box_and_simplex():
    # min max_i x_i on the simplex: all equal.
    d = 5
    return Known(
        lambda x: x.max(),
        lambda x: np.eye(d)[int(x.argmax())],
        np.array([0.7, 0.3, 0.0, 0.0, 0.0]),
        1 / d,
        Bounds(np.zeros(d), np.ones(d)),
        LinearConstraint(np.ones((1, d)), 1.0, 1.0),
    )


def corner():
    # Pulled out of the box in two coordinates; 0.5 is a kink inside.
    target = np.array([2.0, -0.3, 0.5])
    return Known(
        lambda x: np.abs(x - target).sum(),
        lambda x: np.sign(x - target),
        [0.2, 0.7, 0.1],
        1.3,
        [(0, 1), (0.0, None), (None, 1.0)],
    )


def circle():
    # |x_1| + |x_2| on the unit circle: least at the axes, where the value is 1.
    return Known(
        lambda x: np.abs(x).sum(),
        np.sign,
        [0.3, 0.8],
        1.0,
        constraints={"type": "eq", "fun": lambda x: x @ x - 1, "jac": lambda x: 2 * x},
    )


KNOWN = {
    "curtis_overton": curtis_overton(),
    "mad1": mad(0.5, [1.0, 2.0], -0.38965952, [1.0, 1.0]),
    "mad2": mad(2.5, [-2.0, -1.0], -0.33035714, [-3.0, -1.0]),
    "box_and_simplex": box_and_simplex(),
    "corner": corner(),
    "circle": circle(),
}
