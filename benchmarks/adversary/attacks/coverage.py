"""Statistical claims against the truth: as often wrong as they say, at most.

Functions whose Goldstein set is nearest to 0 exactly where the mean of the samples is, so that a
claim has nothing to spare: max_i x_i at 0 (the mean of its gradients is (1/d, ..., 1/d), and no
combination is shorter), and expectations of linear functions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from benchmarks.adversary.ask import ROUNDING
from benchmarks.adversary.suite import Attack, Rng, Seen
from scipy.optimize import NonlinearConstraint

import goldstein as gs


def coverage(rng: Rng, seen: Seen) -> None:
    kind = rng.random()
    if kind < 0.7:
        _of_samples(rng, seen)
    elif kind < 0.85:
        _of_values(rng, seen)
    else:
        _of_values_with_constraints(rng, seen)


def _state(seen: Seen, eps: float, true: float, confidence: float, what: str) -> None:
    holds = eps >= true * (1 - ROUNDING)
    said = f"{what}: eps = {eps!r} with confidence {confidence}, the truth is {true!r}"
    seen.claim(True, "estimated", holds, said, miss=1.0 - confidence)


def _of_samples(rng: Rng, seen: Seen) -> None:
    """E xi . x, samples on two points along E xi, which is a few deviations of their mean long."""
    dim, samples = int(rng.integers(1, 4)), int(rng.choice([20, 100]))
    way = rng.standard_normal(dim)
    way /= np.linalg.norm(way)
    spread, rare = float(rng.uniform(0.5, 3.0)), float(rng.choice([0.5, 0.5, 0.1]))
    mean = float(rng.uniform(0.5, 6.0)) * spread / math.sqrt(samples) * way
    high, low = spread * math.sqrt((1 - rare) / rare), -spread * math.sqrt(rare / (1 - rare))
    bound = max(float(np.linalg.norm(mean + step * way)) for step in (high, low))

    def sample(x: Any, draw: Any) -> Any:
        return mean + (high if draw.random() < rare else low) * way

    confidence = float(rng.choice([0.5, 0.9, 0.99]))
    found = gs.confidence_bound(
        gs.SampleStream(sample), np.zeros(dim), [np.full(dim, 0.01), np.zeros(dim)], [0.5, 0.5],
        samples=samples, gradient_bound=bound * (1 + 1e-12), confidence=confidence, rng=rng,
    )  # fmt: skip
    _state(seen, found.eps, float(np.linalg.norm(mean)), confidence, "ConfidenceBound")


def _largest(x: Any) -> float:
    return float(np.max(x))


def _of_values(rng: Rng, seen: Seen) -> None:
    dim, delta = int(rng.integers(2, 5)), float(10.0 ** rng.uniform(-3, 0))
    claim = gs.certify(
        _largest, np.zeros(dim), "2-point", delta=delta, eps=1.2 / math.sqrt(dim),
        rng=int(rng.integers(2**31)), max_calls=3000,
    )  # fmt: skip
    _state(seen, claim.eps, 1.0 / math.sqrt(dim), claim.confidence, "values")


def _of_values_with_constraints(rng: Rng, seen: Seen) -> None:
    """max_i x_i + x_last where x_last >= 0, certified at 0: the multiplier takes the last entry."""
    dim, delta = int(rng.integers(2, 4)), float(10.0 ** rng.uniform(-3, 0))

    def fun(x: Any) -> float:
        return _largest(x[:-1]) + 0.5 * float(x[-1])

    floor = NonlinearConstraint(lambda x: -x[-1], -np.inf, 0.0)
    result = gs.certify(
        fun, np.zeros(dim + 1), "2-point", delta=delta, eps=1.2 / math.sqrt(dim),
        constraints=[floor], rng=int(rng.integers(2**31)), max_calls=3000,
    )  # fmt: skip
    _state(seen, result.eps, 1.0 / math.sqrt(dim), result.confidence, "values, constraints")


ATTACK = Attack(
    "coverage",
    "ConfidenceBound, values and values with constraints: stated confidence against the truth",
    weight=5,
    one=coverage,
)
