"""Training problems: margin machines and ReLU networks on fixed data, some on few rows."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import bundled, shipped, signs, standardised
from goldstein.problems.registry import Instance, Objective, family, together

problem = family("learning")
PAPER = "Tian, Zhou, So (2022), ICML, PMLR 162, sec. 5"
GEBKEN = "Gebken, Ulbrich (2026), arXiv:2603.23236, experiments 1 and 2"


def _margin_machine(Z: Vector, cost: float) -> Objective:
    """|w|^2/2 + cost sum_i phi(z_i.w), phi(u) = min{1, max{0, 1-u}}."""

    def both(w: Vector) -> Any:
        u = Z @ w
        sloped = ((u > 0.0) & (u < 1.0)).astype(np.float64)
        loss = 0.5 * (w @ w) + cost * np.sum(np.clip(1.0 - u, 0.0, 1.0))
        return float(loss), w - cost * (sloped @ Z)

    return together(both)


def _flipped(labels: Vector, share: float, seed: int) -> Vector:
    return labels * np.where(np.random.default_rng(seed).random(labels.size) < share, -1.0, 1.0)


def _ridge(X: Vector, y: Vector, lam: float) -> Vector:
    """A nonzero start: w = 0 is a Clarke stationary trap of the margin loss."""
    n, d = X.shape
    if n <= d:
        return X.T @ np.linalg.solve(X @ X.T + lam * np.eye(n), y)
    return np.asarray(np.linalg.solve(X.T @ X + lam * np.eye(d), X.T @ y))


@problem(
    200, "|w|^2/2+20 sum_i min{1, max{0, 1-y_i x_i'w}}, n = 38",
    PAPER + ".1; data Golub et al. (1999), Science 286", best=131.6840462741846, kind="best-found",
    reference=132.86365863679717, note="n <= d and data of full rank; 10% of the labels flipped",
)  # fmt: skip
def margin_svm_golub() -> Instance:
    """The rho-margin machine in the surjective setting."""
    data = shipped("golub200")
    X, y = data["X"] / np.linalg.norm(data["X"], 2), data["y"]
    return Instance(_ridge(X, y, 0.1), _margin_machine(_flipped(y, 0.1, 41)[:, None] * X, 20.0))


@problem(
    31, "|w|^2/2+sum_i min{1, max{0, 1-y_i x_i'w}}, n = 569",
    PAPER + ".1; data Street, Wolberg, Mangasarian (1993)", best=117.43420184125125,
    kind="best-found", reference=117.60412387487028, note="n > d; 20% of the labels flipped",
)  # fmt: skip
def margin_svm_breast_cancer() -> Instance:
    """The rho-margin machine with more samples than variables (needs scikit-learn)."""
    inputs, targets = bundled("breast_cancer")
    X = np.column_stack([standardised(inputs), np.ones(len(inputs))])
    y = np.where(targets == 1.0, 1.0, -1.0)
    return Instance(_ridge(X, y, 1.0), _margin_machine(_flipped(y, 0.2, 43)[:, None] * X, 1.0))


class _Loss(NamedTuple):
    """A loss of the prediction and its derivative, both per sample."""

    value: Callable[[Vector], Vector]
    slope: Callable[[Vector], Vector]


def _logistic(y: Vector) -> _Loss:
    return _Loss(lambda h: np.logaddexp(0.0, -y * h), lambda h: -y / (1.0 + np.exp(y * h)))


def _pseudo_huber(y: Vector) -> _Loss:
    return _Loss(
        lambda h: np.sqrt(1.0 + (h - y) ** 2) - 1.0, lambda h: (h - y) / np.sqrt(1.0 + (h - y) ** 2)
    )


def _absolute(y: Vector, weight: float = 1.0) -> _Loss:
    return _Loss(lambda h: np.abs(h - y) / weight, lambda h: signs(h - y) / weight)


@problem(
    200, "sum_i log(1+exp(-y_i h_i))+0.025|W|^2, h_i = sum_{j<=4} (-1)^j relu(w_j'x_i)",
    PAPER + ".2.1; data Golub et al. (1999), Science 286", best=2.0110371128550977,
    kind="best-found", reference=2.0110371128550977, note="n = 38 <= 50 inputs, data of full rank",
)  # fmt: skip
def relu_one_layer_golub() -> Instance:
    """One layer of four ReLU units with fixed output signs; x is W, row by row."""
    units, lam = 4, 0.05
    data = shipped("golub200")
    X = data["X"][:, :50] / np.sqrt(50.0)  # not centred: centring would cost one rank
    loss = _logistic(data["y"])
    output = np.array([-1.0, 1.0, -1.0, 1.0])

    def both(w: Vector) -> Any:
        activation = X @ w.reshape(units, -1).T
        h = np.maximum(activation, 0.0) @ output
        back = loss.slope(h)[:, None] * (activation > 0.0) * output
        return float(np.sum(loss.value(h)) + 0.5 * lam * (w @ w)), (back.T @ X).ravel() + lam * w

    x0 = np.random.default_rng(51).standard_normal(units * 50) / np.sqrt(50.0)
    return Instance(x0, together(both))


def _two_layer(X: Vector, units: int, loss: _Loss, lam: float) -> Objective:
    """sum_i loss_i(sum_j a_j relu(w_j.x_i)) + lam/2 |(a, W)|^2; x is a, then W row by row."""

    def both(theta: Vector) -> Any:
        a, W = theta[:units], theta[units:].reshape(units, -1)
        activation = X @ W.T
        hidden = np.maximum(activation, 0.0)
        h = hidden @ a
        slope = loss.slope(h)
        back = slope[:, None] * (activation > 0.0) * a
        g = np.concatenate([slope @ hidden, (back.T @ X).ravel()]) + lam * theta
        return float(np.sum(loss.value(h)) + 0.5 * lam * (theta @ theta)), g

    return together(both)


@problem(
    60, "sum_i sqrt(1+(h_i-y_i)^2)-1+0.05|.|^2, h_i = sum_{j<=5} a_j relu(w_j'x_i)",
    PAPER + ".2.2; data Efron et al. (2004), Ann. Statist. 32", best=69.60233598648558,
    kind="best-found", reference=72.36780973578381, note="n = 442 > 11 inputs",
)  # fmt: skip
def relu_two_layer_diabetes() -> Instance:
    """Two layers, five units, diabetes data (needs scikit-learn)."""
    inputs, targets = bundled("diabetes")
    X = np.column_stack([standardised(inputs), np.ones(len(inputs))]) / np.sqrt(11.0)
    loss = _pseudo_huber(standardised(targets))
    rng = np.random.default_rng(54)
    outer, inner = rng.standard_normal(5) / np.sqrt(5.0), rng.standard_normal(55) / np.sqrt(11.0)
    return Instance(np.concatenate([outer, inner]), _two_layer(X, 5, loss, 0.1))


@problem(
    18, "mean_i |sum_{j<=3} a_j relu(w_j'x_i)-y_i|, n = 60",
    "teacher and student ReLU regression, own instance; cf. Safran, Shamir (2018), ICML, PMLR 80",
    reference=8.73144149574993e-17, note="spurious local minima exist", seed=55,
)  # fmt: skip
def relu_teacher(rng: Generator) -> Instance:
    """Mean absolute error against a planted network of the same shape."""
    inputs, units, n = 5, 3, 60
    X = rng.standard_normal((n, inputs))
    W = rng.standard_normal((units, inputs)) / np.sqrt(inputs)
    a = np.array([1.0, -1.0, 1.0])
    loss = _absolute(np.maximum(X @ W.T, 0.0) @ a, n)
    x0 = np.concatenate([a, W.ravel()]) + 0.5 * rng.standard_normal(units * (1 + inputs))
    return Instance(x0, _two_layer(X, units, loss, 0.0))


def _network_1321(absolute: bool, seed: int) -> Instance:
    """A 1-3-2-1 ReLU net fits sin(pi e^t) - t on 7 points; x is W1, b1, W2, b2, w, b."""
    n, lam = 7, 1e-4
    t = np.linspace(-1.0, 1.0, n)
    target = np.sin(np.pi * np.exp(t)) - t

    def both(w: Vector) -> Any:
        first = np.maximum(t[:, None] * w[:3] + w[3:6], 0.0)
        second = np.maximum(first @ w[6:12].reshape(2, 3).T + w[12:14], 0.0)
        r = second @ w[14:16] + w[16] - target
        loss = np.sum(np.abs(r)) if absolute else r @ r
        error = signs(r) / n if absolute else 2.0 * r / n
        back2 = error[:, None] * w[14:16] * (second > 0.0)
        back1 = (back2 @ w[6:12].reshape(2, 3)) * (first > 0.0)
        inner = (t @ back1, np.sum(back1, axis=0), (back2.T @ first).ravel())
        g = np.concatenate([*inner, np.sum(back2, axis=0), error @ second, [np.sum(error)]])
        return float(loss / n + lam * np.sum(np.abs(w))), g + lam * signs(w)

    return Instance(np.random.default_rng(seed).uniform(-1.0, 1.0, 17), together(both))


@problem(
    17, "mean absolute error of a 1-3-2-1 ReLU net on 7 points+1e-4|w|_1", GEBKEN,
    best=0.0013473500976115202, kind="best-found", reference=0.013458003894892254,
    note="many local minima",
)  # fmt: skip
def network_1321_mae() -> Instance:
    """The small network with absolute loss."""
    return _network_1321(True, 71)


@problem(
    17, "mean squared error of a 1-3-2-1 ReLU net on 7 points+1e-4|w|_1", GEBKEN,
    best=0.0011236411963474434, kind="best-found", reference=0.0011999902779716602,
    note="many local minima",
)  # fmt: skip
def network_1321_mse() -> Instance:
    """The small network with squared loss."""
    return _network_1321(False, 73)


few_rows = family(
    "networks on few rows", "{}, own instance", kind="best-found", note="many local minima"
)


def _layers(sizes: tuple[int, ...], x: Vector) -> list[tuple[Vector, Vector]]:
    """Cut x into weight matrices and biases."""
    parts = np.split(x, np.cumsum([size for a, b in pairwise(sizes) for size in (a * b, b)])[:-1])
    return [(W.reshape(len(b), -1), b) for W, b in zip(parts[::2], parts[1::2])]


def _network(X: Vector, sizes: tuple[int, ...], loss: _Loss, decay: float) -> Objective:
    """A ReLU network with biases and one output, the mean loss of its outputs, decay/2 |x|^2."""

    def both(x: Vector) -> Any:
        layers = _layers(sizes, x)
        hidden = [X]
        for weights, bias in layers[:-1]:
            hidden.append(np.maximum(hidden[-1] @ weights.T + bias, 0.0))
        last, offset = layers[-1]
        outputs = (hidden[-1] @ last.T + offset)[:, 0]
        back = (loss.slope(outputs) / outputs.size)[:, None]
        blocks: list[Vector] = []
        for (weights, _), below in zip(reversed(layers), reversed(hidden)):
            blocks = [(back.T @ below).ravel(), np.sum(back, axis=0), *blocks]
            back = (back @ weights) * (below > 0.0)
        value = float(np.mean(loss.value(outputs))) + 0.5 * decay * float(x @ x)
        return value, np.concatenate(blocks) + decay * x

    return together(both)


def _he_start(sizes: tuple[int, ...], rng: Generator) -> Vector:
    """He's initialisation, with small biases."""
    parts = []
    for inputs, outputs in pairwise(sizes):
        parts.append(rng.standard_normal(inputs * outputs) * np.sqrt(2.0 / inputs))
        parts.append(0.1 * rng.standard_normal(outputs))
    return np.concatenate(parts)


@few_rows(
    31, "mean absolute error of a 4-5-1 ReLU net on 12 rows+5e-4|x|^2",
    "cf. Tian, Zhou, So (2022), ICML, PMLR 162, sec. 5.2", best=0.012531321488503605, seed=321,
)  # fmt: skip
def relu_few_rows_absolute(rng: Generator) -> Instance:
    """Absolute loss; at the end most rows are fitted exactly."""
    X, y, sizes = rng.standard_normal((12, 4)), rng.standard_normal(12), (4, 5, 1)
    return Instance(_he_start(sizes, rng), _network(X, sizes, _absolute(y), 1e-3))


@few_rows(
    49, "mean logistic loss of a 6-6-1 ReLU net on 20 rows+5e-3|x|^2",
    "cf. Tian, Zhou, So (2022), ICML, PMLR 162, sec. 5.2", best=0.1554754968473439, seed=322,
)  # fmt: skip
def relu_few_rows_logistic(rng: Generator) -> Instance:
    """A smooth loss: only the units have kinks."""
    X, y, sizes = rng.standard_normal((20, 6)), signs(rng.standard_normal(20)), (6, 6, 1)
    return Instance(_he_start(sizes, rng), _network(X, sizes, _logistic(y), 1e-2))


@few_rows(
    37, "mean absolute error of a 2-4-4-1 ReLU net on 15 rows+5e-4|x|^2",
    "cf. Gebken, Ulbrich (2026), arXiv:2603.23236", best=0.008797310798999002, seed=323,
)  # fmt: skip
def relu_deep_few_rows(rng: Generator) -> Instance:
    """Two hidden layers."""
    X, sizes = rng.uniform(-1.0, 1.0, (15, 2)), (2, 4, 4, 1)
    y = np.sin(3.0 * X[:, 0]) * X[:, 1]
    return Instance(_he_start(sizes, rng), _network(X, sizes, _absolute(y), 1e-3))


@few_rows(
    61, "mean hinge loss of a 8-6-1 ReLU net on 24 rows+5e-3|x|^2",
    "cf. Laurent, von Brecht (2018), ICML, PMLR 80", best=0.06523604943581825, seed=324,
)  # fmt: skip
def relu_few_rows_hinge(rng: Generator) -> Instance:
    """Kinks in the loss and in the units."""
    X, y, sizes = rng.standard_normal((24, 8)), signs(rng.standard_normal(24)), (8, 6, 1)
    loss = _Loss(lambda h: np.maximum(0.0, 1.0 - y * h), lambda h: np.where(y * h < 1.0, -y, 0.0))
    return Instance(_he_start(sizes, rng), _network(X, sizes, loss, 1e-2))


@few_rows(
    24, "mean_i |max_{j<=3} (a_j't_i+c_j)-max_{j<=3} (b_j't_i+e_j)-y_i|+5e-4|x|^2, 30 rows",
    "Cui, Pang, Sen (2018), SIAM J. Optim. 28(4), 3344-3374", best=0.05150067683894201, seed=325,
)  # fmt: skip
def piecewise_affine_regression(rng: Generator) -> Instance:
    """A difference of two maxima of affine functions, fitted with absolute loss."""
    T = np.column_stack([rng.standard_normal((30, 3)), np.ones(30)])
    rows = np.arange(30)
    truth = rng.standard_normal((2, 3, 4))
    y = np.max(T @ truth[0].T, axis=1) - np.max(T @ truth[1].T, axis=1)
    y += 0.1 * rng.standard_normal(30)

    def both(x: Vector) -> Any:
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
