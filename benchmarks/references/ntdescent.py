"""Normal tangent descent.

Davis, Jiang, "A local nearly linearly convergent first-order method for nonsmooth functions with
quadratic growth", Foundations of Computational Mathematics (2024). Radii 2^-i are tried in turn;
in each, normal steps (gradient at a random point of the ray) and tangent steps (at its end)
shorten a vector until it descends. Every such vector is a certificate at its radius.
"""

from __future__ import annotations

import math

import numpy as np
from benchmarks.answer import Answer
from benchmarks.recorder import Recorder

MAX_RADII = 50


def _segment(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The shortest vector of the segment [a, b]."""
    gap = a - b
    square = float(gap @ gap)
    if square == 0.0:
        return a
    share = min(1.0, max(0.0, float(a @ gap) / square))
    return a + share * (b - a)


def solve(
    oracle: Recorder, x0: np.ndarray, eps: float, delta: float, rng: np.random.Generator
) -> Answer:
    x = np.array(x0)
    fx, start_gradient = oracle.both(x)
    floor = 1e-6 * float(np.linalg.norm(start_gradient))
    count = 0
    while True:
        count += 1
        radii = min(count, MAX_RADII)
        # The gradient at x itself may belong to a kink, so take it just beside x.
        near = x + 1e-3 * delta * rng.standard_normal(x.size) / math.sqrt(x.size)
        v = oracle.gradient(near)
        points, gradients = [near], [v]
        scale = max(float(np.linalg.norm(v)), floor)
        best_x, best_f = x, fx
        for i in range(1, radii + 1):
            radius = 2.0 ** (i - radii)
            if np.linalg.norm(v) < scale * radius:
                break
            for tangent in (False, True):
                for _ in range(count):
                    norm = float(np.linalg.norm(v))
                    if norm <= eps and radius <= delta * (1.0 - 1e-9):
                        return Answer.with_evidence(x, "certified", points, gradients)
                    if norm == 0.0:
                        break
                    end = x - (radius / norm) * v
                    value = oracle.value(end)
                    if value < best_f:
                        best_x, best_f = end, value
                    if value <= fx - radius * norm / 8.0:
                        break
                    y = end if tangent else x + rng.random() * (end - x)
                    g = oracle.gradient(y)
                    points.append(y)
                    gradients.append(g)
                    v = _segment(v, g)
        x, fx = best_x, best_f
