"""Coordinate descent for squared loss plus l1, MCP or SCAD, entry by entry in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.prox.weakly_convex import thresholded

#: Full passes over all entries, and passes over the nonzero ones between two of them.
FULL, PARTIAL = 200, 20


@dataclass(frozen=True)
class Penalty:
    """sum_j h(c_j): "l1", "mcp" or "scad" of slope `alpha` at 0 and shape `gamma`."""

    name: str
    alpha: float
    gamma: float

    @property
    def rho(self) -> float:
        """How concave it is."""
        return {"l1": 0.0, "mcp": 1.0 / self.gamma, "scad": 1.0 / (self.gamma - 1.0)}[self.name]


def descend(gram: Matrix, pull: Vector, start: Vector, penalty: Penalty) -> Vector:
    """Minimise c'gram c / 2 - pull'c + penalty(c) from a start; the objective never rises.

    Examples
    --------
    >>> descend(np.eye(2), np.array([3.0, 0.5]), np.zeros(2), Penalty("l1", 1.0, 3.0))
    array([2., 0.])
    """
    c = start.copy()
    slope = gram @ c - pull
    diagonal = np.diag(gram)
    c[diagonal <= 0.0] = 0.0
    # Where the penalty is more concave than the loss is convex: a convex bound of the loss.
    curve = np.maximum(diagonal, 1.001 * penalty.rho)
    usable = np.flatnonzero(diagonal > 0.0)
    small = 1e-9 * max(1e-300, float(np.abs(pull).max(initial=0.0)))

    def sweep(entries: NDArray[np.intp]) -> float:
        largest = 0.0
        for j in entries:
            aim = c[j] - slope[j] / curve[j]
            new = thresholded(penalty.name, aim, 1.0 / curve[j], penalty.alpha, penalty.gamma)
            step = new - c[j]
            if step:
                slope[:] += gram[:, j] * step
                c[j] = new
                largest = max(largest, abs(step) * curve[j])
        return largest

    for _ in range(FULL):
        if sweep(usable) <= small:
            break
        for _ in range(PARTIAL):
            if sweep(np.flatnonzero(c)) <= small:
                break
    return _solved(gram, pull, c, penalty)


def _solved(gram: Matrix, pull: Vector, c: Vector, penalty: Penalty) -> Vector:
    """Solve the linear equations of the pieces that the nonzero entries are on, if they stay."""
    size, free = np.abs(c), np.flatnonzero(c)
    if not free.size:
        return c
    slope, bend = np.full(c.size, penalty.alpha), np.zeros(c.size)  # h' = sign (slope + bend |c|)
    end = penalty.gamma * penalty.alpha
    if penalty.name != "l1":
        begin = penalty.alpha if penalty.name == "scad" else 0.0
        middle = (size > begin) & (size < end)
        slope[middle], bend[middle] = penalty.alpha + penalty.rho * begin, -penalty.rho
        slope[size >= end] = 0.0
    better = c.copy()
    matrix = gram[np.ix_(free, free)] + np.diag(bend[free])
    right = (pull - np.sign(c) * slope)[free]
    better[free] = np.linalg.lstsq(matrix, right, rcond=None)[0]
    near = np.abs(better - c).max() <= 1e-4 * float(size.max())
    return better if near and bool((better[free] * c[free] > 0).all()) else c
