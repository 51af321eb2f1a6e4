"""Networks with kinks on few rows: more weights than a fit needs, so the end is flat or sharp."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import signs, together
from goldstein.problems.problem import Instance, Objective
from goldstein.problems.registry import problem

FAMILY = "networks on few rows"


def _layers(sizes: tuple[int, ...], x: Vector) -> list[tuple[Vector, Vector]]:
    """Cut x into weight matrices and biases."""
    parts = []
    at = 0
    for inputs, outputs in pairwise(sizes):
        weights = x[at : at + inputs * outputs].reshape(outputs, inputs)
        at += inputs * outputs
        parts.append((weights, x[at : at + outputs]))
        at += outputs
    return parts


def _network(X: Vector, sizes: tuple[int, ...], loss: Objective, decay: float) -> Objective:
    """A ReLU network with biases and one output, a loss of its outputs, decay/2 |x|^2."""

    def both(x: Vector) -> tuple[float, Vector]:
        layers = _layers(sizes, x)
        hidden = [X]
        for weights, bias in layers[:-1]:
            hidden.append(np.maximum(hidden[-1] @ weights.T + bias, 0.0))
        last, offset = layers[-1]
        outputs = (hidden[-1] @ last.T + offset)[:, 0]
        back = loss.gradient(outputs)[:, None]
        blocks: list[Vector] = []
        for (weights, _), below in zip(reversed(layers), reversed(hidden)):
            blocks = [(back.T @ below).ravel(), np.sum(back, axis=0), *blocks]
            back = (back @ weights) * (below > 0.0)
        value = loss.value(outputs) + 0.5 * decay * float(x @ x)
        return value, np.concatenate(blocks) + decay * x

    return together(both)


def _start(sizes: tuple[int, ...], rng: np.random.Generator) -> Vector:
    """He's initialisation, with small biases."""
    parts = []
    for inputs, outputs in pairwise(sizes):
        parts.append(rng.standard_normal(inputs * outputs) * np.sqrt(2.0 / inputs))
        parts.append(0.1 * rng.standard_normal(outputs))
    return np.concatenate(parts)


def _mean_absolute(y: Vector) -> Objective:
    return Objective(
        lambda h: float(np.mean(np.abs(h - y))), lambda h: np.asarray(signs(h - y) / y.size)
    )


@problem(
    31, "mean absolute error of a 4-5-1 ReLU net on 12 rows+5e-4|x|^2",
    "cf. Tian, Zhou, So (2022), ICML, PMLR 162, sec. 5.2, own instance", best=0.012531321488503605,
    kind="best-found", note="many local minima",
)  # fmt: skip
def relu_few_rows_absolute(seed: int = 321) -> Instance:
    """Absolute loss; at the end most rows are fitted exactly."""
    rng = np.random.default_rng(seed)
    X, y, sizes = rng.standard_normal((12, 4)), rng.standard_normal(12), (4, 5, 1)
    return Instance(_start(sizes, rng), _network(X, sizes, _mean_absolute(y), 1e-3))


@problem(
    49, "mean logistic loss of a 6-6-1 ReLU net on 20 rows+5e-3|x|^2",
    "cf. Tian, Zhou, So (2022), ICML, PMLR 162, sec. 5.2, own instance", best=0.1554754968473439,
    kind="best-found", note="many local minima",
)  # fmt: skip
def relu_few_rows_logistic(seed: int = 322) -> Instance:
    """A smooth loss: only the units have kinks."""
    rng = np.random.default_rng(seed)
    X, y, sizes = rng.standard_normal((20, 6)), signs(rng.standard_normal(20)), (6, 6, 1)
    loss = Objective(
        lambda h: float(np.mean(np.logaddexp(0.0, -y * h))),
        lambda h: np.asarray(-y / (1.0 + np.exp(y * h)) / y.size),
    )
    return Instance(_start(sizes, rng), _network(X, sizes, loss, 1e-2))


@problem(
    37, "mean absolute error of a 2-4-4-1 ReLU net on 15 rows+5e-4|x|^2",
    "cf. Gebken, Ulbrich (2026), arXiv:2603.23236, own instance", best=0.008797310798999002,
    kind="best-found", note="many local minima",
)  # fmt: skip
def relu_deep_few_rows(seed: int = 323) -> Instance:
    """Two hidden layers."""
    rng = np.random.default_rng(seed)
    X, sizes = rng.uniform(-1.0, 1.0, (15, 2)), (2, 4, 4, 1)
    y = np.sin(3.0 * X[:, 0]) * X[:, 1]
    return Instance(_start(sizes, rng), _network(X, sizes, _mean_absolute(y), 1e-3))


@problem(
    61, "mean hinge loss of a 8-6-1 ReLU net on 24 rows+5e-3|x|^2",
    "cf. Laurent, von Brecht (2018), ICML, PMLR 80, own instance", best=0.06523604943581825,
    kind="best-found", note="many local minima",
)  # fmt: skip
def relu_few_rows_hinge(seed: int = 324) -> Instance:
    """Kinks in the loss and in the units."""
    rng = np.random.default_rng(seed)
    X, y, sizes = rng.standard_normal((24, 8)), signs(rng.standard_normal(24)), (8, 6, 1)
    loss = Objective(
        lambda h: float(np.mean(np.maximum(0.0, 1.0 - y * h))),
        lambda h: np.asarray(np.where(y * h < 1.0, -y, 0.0) / y.size),
    )
    return Instance(_start(sizes, rng), _network(X, sizes, loss, 1e-2))


@problem(
    24, "mean_i |max_{j<=3} (a_j't_i+c_j)-max_{j<=3} (b_j't_i+e_j)-y_i|+5e-4|x|^2, 30 rows",
    "Cui, Pang, Sen (2018), SIAM J. Optim. 28(4), 3344-3374, own instance",
    best=0.05150067683894201, kind="best-found", note="many local minima",
)  # fmt: skip
def piecewise_affine_regression(seed: int = 325) -> Instance:
    """A difference of two maxima of affine functions, fitted with absolute loss."""
    rng = np.random.default_rng(seed)
    T = np.column_stack([rng.standard_normal((30, 3)), np.ones(30)])
    rows = np.arange(30)
    truth = rng.standard_normal((2, 3, 4))
    y = np.max(T @ truth[0].T, axis=1) - np.max(T @ truth[1].T, axis=1)
    y += 0.1 * rng.standard_normal(30)

    def both(x: Vector) -> tuple[float, Vector]:
        planes = x.reshape(2, 3, 4)
        up, down = T @ planes[0].T, T @ planes[1].T
        i, j = np.argmax(up, axis=1), np.argmax(down, axis=1)
        r = up[rows, i] - down[rows, j] - y
        s = signs(r) / r.size
        g = np.zeros((2, 3, 4))
        np.add.at(g[0], i, s[:, None] * T)
        np.add.at(g[1], j, -s[:, None] * T)
        return float(np.mean(np.abs(r)) + 5e-4 * (x @ x)), g.ravel() + 1e-3 * x

    return Instance((truth + 0.7 * rng.standard_normal((2, 3, 4))).ravel(), together(both))
