"""What a certificate promises about f where f is convex, and whether f looks as if it were.

Of a convex f, the gradients g_j at points y_j with weights w_j say for every z

    f(z) >= f(x) - |sum w_j g_j| |z - x| - sum w_j (f(x) - f(y_j) - <g_j, x - y_j>),

so that no point within a distance has a value that is lower by more than what stands there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector

#: A search looks as far as this part of the start's length, or of 1, at least.
REACH = 0.1
#: f is not convex, as seen from x, where this part of the gradients says so, and no fewer of them.
ODD, LEAST_ODD = 0.04, 2
#: A gradient says so where the cosine between its change and the way is below minus this.
COSINE = 1e-3
#: Numbers that are copied at a time.
_AT_ONCE = 1_000_000


def rest(certificate: Any, start: Vector) -> float:
    """Return by how much a convex f may be lower than at x, as far from it as the start is."""
    x, gradients = certificate.x, certificate.gradients
    # f(x) - f(y_j) is at most the largest of <g, x - y_j> over the gradients that matter around x.
    rises = gradients @ x - certificate.points @ gradients.T
    errors = rises.max(axis=1) - rises.diagonal()
    way = x - start
    reach = max(math.sqrt(way @ way), REACH * max(1.0, math.sqrt(start @ start)))
    return float(certificate.eps * reach + certificate.weights @ errors)


def is_broken(certificate: Any, points: Matrix, gradients: Matrix) -> bool:
    """Are there gradients that no convex f has, as seen from the heaviest of the certificate?"""
    heaviest = int(np.argmax(certificate.weights))
    y, g = certificate.points[heaviest], certificate.gradients[heaviest]
    odd = 0
    width = max(1, _AT_ONCE // y.size)
    for first in range(0, len(points), width):
        way = points[first : first + width] - y
        change = gradients[first : first + width] - g
        inner = np.einsum("ij,ij->i", way, change)
        squares = np.einsum("ij,ij->i", way, way) * np.einsum("ij,ij->i", change, change)
        odd += int(np.count_nonzero(inner < -COSINE * np.sqrt(squares)))
    return odd >= max(LEAST_ODD, ODD * len(points))
