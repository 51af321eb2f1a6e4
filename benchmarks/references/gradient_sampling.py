"""Gradient sampling.

Burke, Lewis, Overton, "A robust gradient sampling algorithm for nonsmooth, nonconvex
optimization", SIAM Journal on Optimization 15 (2005): d + 1 random gradients in a ball, the
shortest vector of their hull, an Armijo step along it, and a smaller ball when it is short.
"""

from __future__ import annotations

import numpy as np
from benchmarks.answer import Answer
from benchmarks.recorder import Recorder

from goldstein.numerics.hull import min_norm_weights
from goldstein.numerics.streams import uniform_in_ball

SHRINK = 0.1
BACKTRACK = 0.5
MAX_BACKTRACKS = 50


def solve(
    oracle: Recorder, x0: np.ndarray, eps: float, delta: float, rng: np.random.Generator
) -> Answer:
    x = np.array(x0)
    fx = oracle.value(x)
    radius = max(delta, 0.1)
    while True:
        # The ball and the tolerance shrink together until both are what was asked for.
        target = eps * radius / delta
        points = [uniform_in_ball(rng, x, radius) for _ in range(x.size + 1)]
        gradients = np.array([oracle.gradient(y) for y in points])
        m = min_norm_weights(gradients) @ gradients
        norm = float(np.linalg.norm(m))
        if norm <= target:
            if radius <= delta:
                return Answer.with_evidence(x, "certified", points, list(gradients))
            radius = max(delta, SHRINK * radius)
            continue
        step = 1.0
        for _ in range(MAX_BACKTRACKS):
            trial = x - (step / norm) * m
            value = oracle.value(trial)
            if value < fx - 1e-6 * step * norm:
                x, fx = trial, value
                break
            step *= BACKTRACK
        else:
            radius = max(delta, SHRINK * radius)
