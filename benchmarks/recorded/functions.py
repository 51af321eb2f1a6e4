"""Functions that the recorded runs, walks and timings are about: plain ones and expressions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import goldstein as gs

Array = np.ndarray
Pair = tuple[Callable[[Array], Any], Callable[[Array], Array]]


class Asked:
    """A function and its gradient that remember at which points they were asked, in which order.

    Parameters
    ----------
    fun, jac : callable, or an oracle and nothing
    """

    def __init__(self, fun: Any, jac: Any = None) -> None:
        self._fun, self._jac = (fun.value, fun.gradient) if jac is None else (fun, jac)
        self._hash, self.values, self.gradients = hashlib.sha256(), 0, 0

    def fun(self, x: Array) -> Any:
        self.values += 1
        self._hash.update(b"f" + np.ascontiguousarray(x).tobytes())
        return self._fun(x)

    def jac(self, x: Array) -> Array:
        self.gradients += 1
        self._hash.update(b"g" + np.ascontiguousarray(x).tobytes())
        return self._jac(x)

    def fields(self) -> dict[str, Any]:
        """Return how often it was asked so far, and a hash of where."""
        asked = {"asked.values": self.values, "asked.gradients": self.gradients}
        return {**asked, "asked.points": self._hash.hexdigest()[:16]}


def valley(x: Array) -> float:
    """The function of the README: a curved valley with a kink along its bottom."""
    return abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2


def valley_slope(x: Array) -> Array:
    s = np.sign(x[1] - x[0] ** 2)
    return np.array([-2 * s * x[0] - 2 * (1 - x[0]), s])


VALLEY: Pair = (valley, valley_slope)
VALLEY_START = [-1.2, 1.0]


def distances(x: Array) -> float:
    return float(np.abs(x - np.arange(x.size)).sum() + 0.5 * np.abs(x).max())


def distances_slope(x: Array) -> Array:
    top = np.zeros(x.size)
    k = int(np.abs(x).argmax())
    top[k] = 0.5 * np.sign(x[k])
    return np.sign(x - np.arange(x.size)) + top


#: Polyhedral: sums of absolute values and the largest of them.
DISTANCES: Pair = (distances, distances_slope)


@cache
def regression(rows: int, columns: int, seed: int = 0) -> tuple[Array, Array]:
    """Return features and targets, of which half the coefficients are 0."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns))
    truth = np.where(np.arange(columns) % 2, 0.0, 2.0)
    return A, A @ truth + 0.3 * rng.standard_normal(rows)


def squares(rows: int, columns: int) -> Pair:
    """Least squares."""
    A, b = regression(rows, columns)
    return (
        lambda x: float(((A @ x - b) ** 2).mean() / 2),
        lambda x: A.T @ (A @ x - b) / rows,
    )


def deviations(rows: int, columns: int) -> Pair:
    """Least absolute deviations."""
    A, b = regression(rows, columns)
    return (
        lambda x: float(np.abs(A @ x - b).mean()),
        lambda x: A.T @ np.sign(A @ x - b) / rows,
    )


def chain_value(u: Array) -> Array:
    return np.maximum(u[:, 0] ** 2 + u[:, 1] ** 2 - 1.0, 0.0) - u[:, 0] - u[:, 1]


def chain_slope(u: Array) -> Array:
    outside = u[:, 0] ** 2 + u[:, 1] ** 2 > 1.0
    return 2.0 * outside[:, None] * u - 1.0


def chain(d: int) -> tuple[Any, Array]:
    """Return a sum of elements, one for each two neighbours, and its start."""
    neighbours = np.arange(d - 1)[:, None] + [0, 1]
    start = -0.5 + 0.1 * np.random.default_rng(0).standard_normal(d)
    return gs.PartiallySeparable((chain_value, chain_slope), neighbours), start


def classes(rows: int, columns: int, count: int = 2) -> tuple[Array, Array]:
    """Return features and labels 0, 1, ... with a tenth of them wrong."""
    rng = np.random.default_rng(rows + columns)
    X = rng.standard_normal((rows, columns))
    labels = (X[:, :count] if count > 2 else X[:, :2] @ [[1.0, -1.0], [-1.0, 1.0]]).argmax(axis=1)
    wrong = rng.random(rows) < 0.1
    return X, np.where(wrong, (labels + 1) % count, labels)


def support_vectors(rows: int, columns: int) -> Any:
    """Return the ramp loss machine as a model: an expression with a start."""
    X, labels = classes(rows, columns)
    return gs.models.margin_svm((2.0 * labels - 1.0)[:, None] * X, lam=1e-2)


def network(rows: int, columns: int, width: int, loss: str = "squared") -> Any:
    """Return a network with one hidden layer as a model."""
    A, b = regression(rows, columns)
    return gs.models.relu_two_layer(A, b, width, loss=loss, ridge=1e-3)


def hinge_sum(rows: int, columns: int) -> Any:
    """Return a support vector machine without a bound on the loss, written out."""
    X, labels = classes(rows, columns)
    w = gs.Variable(columns)
    margins = gs.linear((2.0 * labels - 1.0)[:, None] * X, w)
    return gs.sum(gs.relu(1.0 - margins)) / rows + 0.01 * gs.sum_squares(w)


def valley_expression() -> Any:
    w = gs.Variable(2)
    return abs(w[1] - w[0] ** 2) + (1 - w[0]) ** 2


def largest_affine(pieces: int, d: int) -> Any:
    """Return the largest of some affine functions that has a minimum."""
    A = np.random.default_rng(pieces).integers(-8, 9, (pieces, d)) / 4.0
    return gs.max_affine(np.vstack([A, -A.sum(axis=0)]), 0.0, gs.Variable(d))


def chebyshev(d: int, folds: bool) -> Any:
    """Return a nonsmooth Chebyshev-Rosenbrock function, with curved kinks or nested ones."""
    x = gs.Variable(d)
    bent = gs.abs(x[:-1]) if folds else x[:-1] ** 2
    return 0.25 * gs.abs(x[0] - 1.0) + gs.sum(gs.abs(x[1:] - 2.0 * bent + 1.0))


def sparse_fit(penalty: str) -> Any:
    """Return least absolute deviations with a penalty that is not convex, or none."""
    A, b = regression(20, 6)
    w = gs.Variable(6)
    loss = gs.norm1(gs.linear(A, w) - b) / 20
    penalties = {
        "l1": lambda: 0.1 * gs.norm1(w),
        "scad": lambda: gs.sum(gs.scad(w, 0.2)),
        "mcp": lambda: gs.sum(gs.mcp(w, 0.2)),
        "capped": lambda: 0.2 * gs.sum(gs.capped_l1(w, 0.5)),
        "group": lambda: 0.2 * (gs.norm2(w[:3]) + gs.norm2(w[3:])),
        "variation": lambda: 0.2 * gs.norm1(np.diff(w)),
    }
    return loss + penalties[penalty]()


#: Expressions by name, with the points from which they are minimised.
EXPRESSIONS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "valley": lambda: (valley_expression(), VALLEY_START),
    "largest affine 6x3": lambda: (largest_affine(6, 3), [1.0, -2.0, 0.5]),
    "largest affine 20x5": lambda: (largest_affine(20, 5), np.linspace(-1, 2, 5)),
    "chebyshev 3": lambda: (chebyshev(3, False), [-1.0, 1.0, 1.0]),
    "chebyshev 4 folds": lambda: (chebyshev(4, True), [-1.0, 1.0, 1.0, 1.0]),
    "hinges 40x4": lambda: (hinge_sum(40, 4), np.zeros(4)),
    "huber": lambda: (
        gs.sum(gs.huber(gs.linear(regression(15, 3)[0], gs.Variable(3)) - regression(15, 3)[1])),
        np.zeros(3),
    ),
    **{
        f"deviations + {name}": lambda name=name: (sparse_fit(name), np.linspace(-1, 1, 6))
        for name in ("l1", "scad", "mcp", "capped", "group", "variation")
    },
}

#: Atoms of three entries, as scalars.
ATOMS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda u, name=name: gs.sum(getattr(gs, name)(u))
        for name in ("relu", "leaky_relu", "abs", "hinge", "pinball", "ramp", "hard_tanh", "relu6",
                     "capped_l1", "scad", "mcp", "log_sum",
                     "huber", "squared_hinge", "square", "logistic", "softplus", "pseudo_huber")
    },
    **{
        name: lambda u, name=name: getattr(gs, name)(u)
        for name in ("max", "min", "norm1", "norm2", "sum_squares")
    },
    "soft_threshold": lambda u: gs.norm1(gs.soft_threshold(u, 0.4)),
    "eps_insensitive": lambda u: gs.sum(gs.eps_insensitive(u, 0.3)),
    "maximum": lambda u: gs.sum(gs.maximum(u, 2.0 * u[::-1] - 0.3)),
    "minimum": lambda u: gs.sum(gs.minimum(u, 0.25)),
    "row_max": lambda u: gs.sum(gs.row_max(gs.stack([u, -u, 2.0 * u[::-1]]))),
    "gated_relu": lambda u: gs.gated_relu(u[0], u[1]) + gs.relu(u[2]),
    "softmax": lambda u: gs.softmax_cross_entropy(u.reshape(1, 3), [1]),
    "concatenate": lambda u: gs.norm1(gs.concatenate([u[:2], 3.0 * u[1:]])),
    "cube": lambda u: gs.sum(gs.abs(u**3 - u)),
    "product": lambda u: gs.abs(u[0] * u[1] - 1.0) + gs.relu(u[2] * gs.relu(u[1])),
    "smooth": lambda u: gs.sum(gs.abs(gs.smooth_function(u, np.sin, np.cos))),
    "deep": lambda u: gs.abs(gs.sum(gs.relu(1.0 - gs.relu(u - 0.5 * gs.abs(u[::-1]))))),
}  # fmt: skip


def with_atom(name: str) -> Any:
    """Return an atom of affine functions, plus a quadratic."""
    w = gs.Variable(3)
    u = gs.linear([[1.0, 0.5, 0.0], [0.0, 1.0, -0.5], [0.25, 0.0, 1.0]], w) - [0.5, -0.25, 0.125]
    return ATOMS[name](u) + 0.25 * gs.sum_squares(w)


#: Models by name; each has a start for every seed.
MODELS: dict[str, Callable[[], Any]] = {
    "svm 40x3": lambda: support_vectors(40, 3),
    "svm 200x6": lambda: support_vectors(200, 6),
    "network 12x3": lambda: network(12, 3, 3),
    "network 30x4 huber": lambda: network(30, 4, 4, "huber"),
    "one layer 20x3": lambda: gs.models.relu_one_layer(*regression(20, 3), 4, ridge=1e-3),
    "three classes 30x3": lambda: gs.models.multiclass_margin(*classes(30, 3, 3), 3, lam=1e-2),
}
