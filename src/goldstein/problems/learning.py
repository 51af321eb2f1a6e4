"""Training problems: margin machines and small ReLU networks on fixed data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.data import bundled, shipped, standardised
from goldstein.problems.forms import signs
from goldstein.problems.problem import Instance, Objective
from goldstein.problems.registry import problem

FAMILY = "learning"
PAPER = "Tian, Zhou, So (2022), ICML, PMLR 162, sec. 5"
GEBKEN = "Gebken, Ulbrich (2026), arXiv:2603.23236, experiments 1 and 2"


def _margin_machine(Z: Vector, cost: float) -> Objective:
    """|w|^2/2 + cost sum_i phi(z_i.w), phi(u) = min{1, max{0, 1-u}}."""

    def value(w: Vector) -> float:
        return float(0.5 * (w @ w) + cost * np.sum(np.clip(1.0 - Z @ w, 0.0, 1.0)))

    def both(w: Vector) -> tuple[float, Vector]:
        u = Z @ w
        sloped = ((u > 0.0) & (u < 1.0)).astype(np.float64)
        loss = 0.5 * (w @ w) + cost * np.sum(np.clip(1.0 - u, 0.0, 1.0))
        return float(loss), np.asarray(w - cost * (sloped @ Z))

    return Objective(value, lambda w: both(w)[1], both)


def _flipped(labels: Vector, share: float, seed: int) -> Vector:
    draws = np.random.default_rng(seed).random(labels.size)
    return np.asarray(labels * np.where(draws < share, -1.0, 1.0))


def _ridge(X: Vector, y: Vector, lam: float) -> Vector:
    """A nonzero start: w = 0 is a Clarke stationary trap of the margin loss."""
    n, d = X.shape
    if n <= d:
        return np.asarray(X.T @ np.linalg.solve(X @ X.T + lam * np.eye(n), y))
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
    Z = _flipped(y, 0.1, 41)[:, None] * X
    return Instance(_ridge(X, y, 0.1), _margin_machine(Z, 20.0))


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
    Z = _flipped(y, 0.2, 43)[:, None] * X
    return Instance(_ridge(X, y, 1.0), _margin_machine(Z, 1.0))


class _Loss(NamedTuple):
    """A loss of the prediction and its derivative, both per sample."""

    value: Callable[[Vector], Vector]
    slope: Callable[[Vector], Vector]


def _logistic(y: Vector) -> _Loss:
    return _Loss(lambda h: np.logaddexp(0.0, -y * h), lambda h: -y / (1.0 + np.exp(y * h)))


def _pseudo_huber(y: Vector) -> _Loss:
    return _Loss(
        lambda h: np.sqrt(1.0 + (h - y) ** 2) - 1.0,
        lambda h: (h - y) / np.sqrt(1.0 + (h - y) ** 2),
    )


def _mean_absolute(y: Vector) -> _Loss:
    return _Loss(lambda h: np.abs(h - y) / y.size, lambda h: signs(h - y) / y.size)


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

    def both(w: Vector) -> tuple[float, Vector]:
        activation = X @ w.reshape(units, -1).T
        h = np.maximum(activation, 0.0) @ output
        back = loss.slope(h)[:, None] * (activation > 0.0) * output
        value = np.sum(loss.value(h)) + 0.5 * lam * (w @ w)
        return float(value), np.asarray((back.T @ X).ravel() + lam * w)

    def value(w: Vector) -> float:
        h = np.maximum(X @ w.reshape(units, -1).T, 0.0) @ output
        return float(np.sum(loss.value(h)) + 0.5 * lam * (w @ w))

    x0 = np.random.default_rng(51).standard_normal(units * 50) / np.sqrt(50.0)
    return Instance(x0, Objective(value, lambda w: both(w)[1], both))


def _two_layer(X: Vector, units: int, loss: _Loss, lam: float) -> Objective:
    """sum_i loss_i(sum_j a_j relu(w_j.x_i)) + lam/2 |(a, W)|^2; x is a, then W row by row."""

    def both(theta: Vector) -> tuple[float, Vector]:
        a, W = theta[:units], theta[units:].reshape(units, -1)
        activation = X @ W.T
        hidden = np.maximum(activation, 0.0)
        h = hidden @ a
        slope = loss.slope(h)
        back = slope[:, None] * (activation > 0.0) * a
        g = np.concatenate([slope @ hidden, (back.T @ X).ravel()]) + lam * theta
        return float(np.sum(loss.value(h)) + 0.5 * lam * (theta @ theta)), g

    def value(theta: Vector) -> float:
        h = np.maximum(X @ theta[units:].reshape(units, -1).T, 0.0) @ theta[:units]
        return float(np.sum(loss.value(h)) + 0.5 * lam * (theta @ theta))

    return Objective(value, lambda theta: both(theta)[1], both)


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
    "teacher and student ReLU regression, own instance; cf. Safran, Shamir (2018),"
    " ICML, PMLR 80",
    reference=8.73144149574993e-17, note="spurious local minima exist",
)  # fmt: skip
def relu_teacher(seed: int = 55) -> Instance:
    """Mean absolute error against a planted network of the same shape."""
    inputs, units, n = 5, 3, 60
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, inputs))
    W = rng.standard_normal((units, inputs)) / np.sqrt(inputs)
    a = np.array([1.0, -1.0, 1.0])
    loss = _mean_absolute(np.maximum(X @ W.T, 0.0) @ a)
    x0 = np.concatenate([a, W.ravel()]) + 0.5 * rng.standard_normal(units * (1 + inputs))
    return Instance(x0, _two_layer(X, units, loss, 0.0))


def _network_1321(absolute: bool, seed: int) -> Instance:
    """A 1-3-2-1 ReLU net fits sin(pi e^t) - t on 7 points; x is W1, b1, W2, b2, w, b."""
    n, lam = 7, 1e-4
    t = np.linspace(-1.0, 1.0, n)
    target = np.sin(np.pi * np.exp(t)) - t

    def forward(w: Vector) -> tuple[Vector, Vector, Vector]:
        first = np.maximum(t[:, None] * w[:3] + w[3:6], 0.0)
        second = np.maximum(first @ w[6:12].reshape(2, 3).T + w[12:14], 0.0)
        return first, second, np.asarray(second @ w[14:16] + w[16] - target)

    def value(w: Vector) -> float:
        r = forward(w)[2]
        loss = np.sum(np.abs(r)) if absolute else r @ r
        return float(loss / n + lam * np.sum(np.abs(w)))

    def gradient(w: Vector) -> Vector:
        first, second, r = forward(w)
        error = signs(r) / n if absolute else 2.0 * r / n
        back2 = error[:, None] * w[14:16] * (second > 0.0)
        back1 = (back2 @ w[6:12].reshape(2, 3)) * (first > 0.0)
        blocks = (
            t @ back1,
            np.sum(back1, axis=0),
            (back2.T @ first).ravel(),
            np.sum(back2, axis=0),
            error @ second,
            [np.sum(error)],
        )
        return np.asarray(np.concatenate(blocks) + lam * signs(w))

    x0 = np.random.default_rng(seed).uniform(-1.0, 1.0, 17)
    return Instance(x0, Objective(value, gradient))


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
