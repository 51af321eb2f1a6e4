"""Train one ReLU network: restarts, full-batch or mini-batch, early stopping, certificates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from goldstein.api import certify, minimize
from goldstein.api.starts import search_from
from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.near import NearCertificate
from goldstein.checker.arrays import Vector
from goldstein.fitting.near_proof import (
    NOT_ASKED,
    near_or_note,
    noted,
    proof_deadline,
    time_left,
)
from goldstein.models.networks import ReLUNetwork
from goldstein.oracles import Oracle
from goldstein.sklearn.chunked_network import ChunkedNetwork

Network = ReLUNetwork | ChunkedNetwork


@dataclass(frozen=True)
class Training:
    """How to train."""

    eps: float
    delta: float
    solver: str
    batch_size: int
    max_calls: int
    max_time: float | None
    n_init: int
    seed: int
    near: bool
    patience: int | None


@dataclass(frozen=True)
class NetworkFit:
    """A trained network and what is proved about it."""

    theta: Vector
    value: float
    goldstein: GoldsteinCertificate
    near: NearCertificate | None
    iterations: int


class Batches(Oracle):
    """A network's objective with noisy gradients from random batches."""

    def __init__(self, model: ReLUNetwork, batch_size: int) -> None:
        self.model = model
        self.dim = model.dim
        self.knows_kinks = True
        self.samples = int(model.setting.X.shape[0])
        self.batch_size = min(batch_size, self.samples)

    @property
    def name(self) -> str:
        return self.model.name

    def value(self, x: Vector) -> float:
        return self.model.value(x)

    def gradient(self, y: Vector) -> Vector:
        return self.model.gradient(y)

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        rows = rng.choice(self.samples, self.batch_size, replace=False)
        return self.model.sample_gradient(x, rows)


def fit_network(
    model: Network,
    training: Training,
    *,
    start: Vector | None = None,
    score: Callable[[Vector], float] | None = None,
) -> NetworkFit:
    """Train from `start` or from `n_init` random starts and keep the best.

    Parameters
    ----------
    model : ReLUNetwork or ChunkedNetwork
    training : Training
    start : ndarray, optional
        Warm start; the only one then.
    score : callable, optional
        Validation score of parameters; with it training stops early.
    """
    begin = time.perf_counter()
    if start is not None:
        starts = [start]
    else:
        starts = [model.start(training.seed + k) for k in range(training.n_init)]
    best = search_from(
        starts,
        lambda x0: _train(model, training, x0, score, begin),
        (lambda fit: fit.value) if score is None else (lambda fit: -score(fit.theta)),
    )
    return _with_near(model, best, training, begin)


def _train(
    model: Network,
    training: Training,
    x0: Vector,
    score: Callable[[Vector], float] | None,
    begin: float,
) -> NetworkFit:
    watch = None if score is None else _Watch(score, training.patience or 1, x0)
    oracle: Oracle = model
    if isinstance(model, ReLUNetwork) and training.solver != "auto":
        oracle = Batches(model, training.batch_size)
    result = minimize(
        oracle,
        x0,
        eps=training.eps,
        delta=training.delta,
        method=training.solver,
        rng=training.seed,
        max_calls=training.max_calls,
        max_time=time_left(begin, training.max_time),
        callback=watch,
    )
    theta, certificate = result.x, result.certificate
    if watch is not None:
        watch(theta)
        if not np.array_equal(theta, watch.best):
            theta, certificate = watch.best, None
    if not isinstance(certificate, GoldsteinCertificate):
        certificate = certify(
            model, theta, delta=training.delta, eps=training.eps, rng=training.seed
        )
    return NetworkFit(theta, model.value(theta), certificate, None, result.nit)


class _Watch:
    """A callback that remembers the best validation score and stops when it no longer rises."""

    def __init__(self, score: Callable[[Vector], float], patience: int, x0: Vector) -> None:
        self.score, self.patience = score, patience
        self.best, self.best_score, self.since = x0.copy(), score(x0), 0

    def __call__(self, x: Vector) -> bool:
        here = self.score(x)
        self.since += 1
        if here > self.best_score:
            self.best, self.best_score, self.since = x.copy(), here, 0
        return self.since >= self.patience


def _with_near(model: Network, fit: NetworkFit, training: Training, begin: float) -> NetworkFit:
    """Add a near certificate, or a note why there is none."""
    proof, note = None, NOT_ASKED
    if training.near and not isinstance(model, ReLUNetwork):
        note = "not tried: the exact proof needs all rows in one place"
    elif training.near:
        proof, note = near_or_note(
            model, fit.goldstein, training.eps, training.delta, training.seed,
            proof_deadline(begin, training.max_time),
        )  # fmt: skip
    if proof is not None:
        return replace(fit, near=noted(proof, note))
    return replace(fit, goldstein=noted(fit.goldstein, note))
