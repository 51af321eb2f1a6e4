"""Train one ReLU network: restarts, full-batch or mini-batch, early stopping, certificates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.api import certify, minimize
from goldstein.api.starts import search_from, uninterrupted
from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.near import NearCertificate
from goldstein.checker.arrays import Vector
from goldstein.fitting.fit import FIT, NOT_ASKED, Fit, Options, near_or_note, whole_fit
from goldstein.models.networks import ReLUNetwork
from goldstein.oracles import Oracle
from goldstein.sklearn.chunked_network import ChunkedNetwork

Network = ReLUNetwork | ChunkedNetwork


@dataclass(frozen=True)
class Training(Options):
    """How to train: `score` is the validation score of parameters, with which it stops early."""

    solver: str = "auto"
    batch_size: int = 64
    patience: int = 1
    score: Callable[[Vector], float] | None = None


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


def fit_network(model: Network, training: Training) -> Fit:
    """Train from the start that is given, or from random ones, and keep the best."""
    return whole_fit(training, model, lambda: _fit(model, training))


def _fit(model: Network, training: Training) -> Fit:
    begin = time.perf_counter()
    kept, score = training.kept, training.score
    if training.start is not None:
        starts = [training.start]
    else:
        starts = [model.start(training.seed + k) for k in range(training.n_init)]

    def train(k: int) -> Fit:
        return kept.part(
            f"start-{k}", FIT,
            lambda: _train(model, training, starts[k], training.begin(begin), f"start-{k}"),
            training.limits,
            final=lambda fit: score is None and fit.goldstein.eps <= training.eps,
            holds=lambda fit: fit.holds(model),
        )  # fmt: skip

    best = search_from(
        range(len(starts)),
        train,
        (lambda fit: fit.value) if score is None else (lambda fit: -score(fit.x)),
    )
    return best.concluded(*_near(model, best, training, training.begin(begin)))


def _train(model: Network, training: Training, x0: Vector, begin: float, name: str) -> Fit:
    watch = None if training.score is None else _Watch(training.score, training.patience, x0)
    oracle: Oracle = model
    if isinstance(model, ReLUNetwork) and training.solver != "auto":
        oracle = Batches(model, training.batch_size)
    asked: dict[str, Any] = {"eps": training.eps, "delta": training.delta, "rng": training.seed}
    run = minimize(
        oracle, x0, method=training.solver, max_calls=training.max_calls,
        max_time=training.time_left(begin), callback=watch,
        checkpoint=training.kept.journal(name), **asked,
    )  # fmt: skip
    result = uninterrupted(run)
    theta, certificate = result.x, result.certificate
    if watch is not None:
        watch(theta)
        if not np.array_equal(theta, watch.best):
            theta, certificate = watch.best, None
    if not isinstance(certificate, GoldsteinCertificate):
        certificate = certify(model, theta, **asked)
    return Fit(theta, model.value(theta), certificate, None, result.nit)


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


def _near(
    model: Network, fit: Fit, training: Training, begin: float
) -> tuple[NearCertificate | None, str]:
    """Return a near certificate, or None, and why there is none."""
    if training.near and not isinstance(model, ReLUNetwork):
        return None, "not tried: the exact proof needs all rows in one place"
    if training.near and isinstance(fit.goldstein, GoldsteinCertificate):
        return near_or_note(model, fit.goldstein, training, training.proof_deadline(begin))
    return None, NOT_ASKED
