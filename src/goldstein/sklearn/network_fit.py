"""Train one ReLU network: restarts, full-batch or mini-batch, early stopping, certificates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from goldstein.api import certify, minimize
from goldstein.api.starts import search_from, uninterrupted
from goldstein.certificates import GoldsteinCertificate
from goldstein.checker.arrays import Vector
from goldstein.fitting.fit import FIT, Fit, whole_fit
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
from goldstein.storage.folder import NO_STORE, Store

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
    kept: Store = NO_STORE,
) -> Fit:
    """Train from `start` or from `n_init` random starts and keep the best.

    Parameters
    ----------
    model : ReLUNetwork or ChunkedNetwork
    training : Training
    start : ndarray, optional
        Warm start; the only one then.
    score : callable, optional
        Validation score of parameters; with it training stops early.
    kept : Store
        Where finished starts and the answers of unfinished ones are kept.
    """
    return whole_fit(
        kept, model, _limits(training), lambda: _fit(model, training, start, score, kept)
    )


def _limits(training: Training) -> list[Any]:
    return [training.max_calls, training.max_time]


def _fit(
    model: Network,
    training: Training,
    start: Vector | None,
    score: Callable[[Vector], float] | None,
    kept: Store,
) -> Fit:
    begin = time.perf_counter()
    if start is not None:
        starts = [start]
    else:
        starts = [model.start(training.seed + k) for k in range(training.n_init)]

    def train(k: int) -> Fit:
        return kept.part(
            f"start-{k}", FIT,
            lambda: _train(
                model, training, starts[k], score, begin - kept.seconds, kept.journal(f"start-{k}")
            ),
            _limits(training),
            final=lambda fit: score is None and fit.goldstein.eps <= training.eps,
            holds=lambda fit: fit.holds(model),
        )  # fmt: skip

    best = search_from(
        range(len(starts)),
        train,
        (lambda fit: fit.value) if score is None else (lambda fit: -score(fit.x)),
    )
    return _with_near(model, best, training, begin - kept.seconds, kept)


def _train(
    model: Network,
    training: Training,
    x0: Vector,
    score: Callable[[Vector], float] | None,
    begin: float,
    checkpoint: Path | None,
) -> Fit:
    watch = None if score is None else _Watch(score, training.patience or 1, x0)
    oracle: Oracle = model
    if isinstance(model, ReLUNetwork) and training.solver != "auto":
        oracle = Batches(model, training.batch_size)
    run = minimize(
        oracle,
        x0,
        eps=training.eps,
        delta=training.delta,
        method=training.solver,
        rng=training.seed,
        max_calls=training.max_calls,
        max_time=time_left(begin, training.max_time),
        callback=watch,
        checkpoint=checkpoint,
    )
    result = uninterrupted(run)
    theta, certificate = result.x, result.certificate
    if watch is not None:
        watch(theta)
        if not np.array_equal(theta, watch.best):
            theta, certificate = watch.best, None
    if not isinstance(certificate, GoldsteinCertificate):
        certificate = certify(
            model, theta, delta=training.delta, eps=training.eps, rng=training.seed
        )
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


def _with_near(
    model: Network, fit: Fit, training: Training, begin: float, kept: Store
) -> Fit:
    """Add a near certificate, or a note why there is none."""
    proof, note = None, NOT_ASKED
    if training.near and not isinstance(model, ReLUNetwork):
        note = "not tried: the exact proof needs all rows in one place"
    elif training.near and isinstance(fit.goldstein, GoldsteinCertificate):
        proof, note = near_or_note(
            model, fit.goldstein, training.eps, training.delta, training.seed,
            proof_deadline(begin, training.max_time, kept),
        )  # fmt: skip
    if proof is not None:
        return replace(fit, near=noted(proof, note))
    return replace(fit, goldstein=noted(fit.goldstein, note))
