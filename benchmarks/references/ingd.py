"""Interpolated normalised gradient descent.

Zhang, Lin, Jegelka, Sra, Jadbabaie, "Complexity of finding stationary points of nonconvex
nonsmooth functions", ICML 2020. The Lipschitz constant is estimated at the start and doubled
whenever a longer gradient is met.
"""

from __future__ import annotations

import numpy as np
from benchmarks.answer import Answer
from benchmarks.recorder import Recorder

from goldstein.numerics.streams import uniform_in_ball


def solve(
    oracle: Recorder, x0: np.ndarray, eps: float, delta: float, rng: np.random.Generator
) -> Answer:
    x = np.array(x0)
    fx = oracle.value(x)
    samples = [oracle.gradient(uniform_in_ball(rng, x, delta)) for _ in range(10)]
    lipschitz = 1.2 * max(float(np.linalg.norm(g)) for g in samples)
    while True:
        y = uniform_in_ball(rng, x, delta)
        m = oracle.gradient(y)
        points, gradients = [y], [m]
        steps = int(np.ceil(48.0 * (lipschitz / eps) ** 2))
        for _ in range(steps):
            norm = float(np.linalg.norm(m))
            if norm <= eps:
                return Answer.with_evidence(x, "certified", points, gradients)
            lipschitz = max(lipschitz, norm)
            trial = x - (delta / norm) * m
            value = oracle.value(trial)
            if value - fx < -0.25 * delta * norm:
                x, fx = trial, value
                break
            y = x + rng.random() * (trial - x)
            g = oracle.gradient(y)
            length = float(np.linalg.norm(g))
            if length > lipschitz:
                lipschitz = max(2.0 * lipschitz, length)
            square = 4.0 * lipschitz**2
            beta = (square - norm**2) / (square + 2.0 * norm**2)
            m = beta * m + (1.0 - beta) * g
            points.append(y)
            gradients.append(g)
