"""Back to the constraints: short Newton steps from a point that nearly satisfies them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.errors import KinkError
from goldstein.numerics.streams import stream
from goldstein.oracles.problem import Problem

#: Steps, and how many without visible gain before one gives up: a regular constraint is met up to
#: rounding after a few, a degenerate one halves its violation again and again.
STEPS, PATIENCE = 80, 4

#: Inequalities are crossed by this part of what they may be violated by: rounding must not matter.
BEYOND = 1e-4


def restored(
    problem: Problem, x: Vector, reach: float, held: NDArray[np.bool_], seed: int
) -> Vector:
    """Return a point within `reach` of x that satisfies the constraints, or the best one met.

    Coordinates in `held` stay. Equalities end next to 0, inequalities at 0 or below.
    """
    system, box = problem.constraints, problem.box
    if not system.size:
        return x
    allowed = system.tolerances()
    beyond = BEYOND * allowed
    best, least, idle = x, np.inf, 0
    y = x
    for step in range(STEPS):
        values = system.values(y)
        excess = system.excess(values)
        left = float((np.abs(excess) / allowed).max())
        idle = 0 if left < 0.9 * least else idle + 1
        if left < least:
            best, least = y, left
        violated = excess != 0.0
        if not violated.any() or idle >= PATIENCE:
            break
        # A violated constraint is often on a kink: it is asked a speck beside.
        rng = stream(seed, step, "restore")
        speck = 1e-9 * max(reach, 1e-12) * rng.standard_normal(y.size)
        try:
            rows = system.rows(box.clip(box.reflect(y + speck)))
        except KinkError:
            continue
        aim = excess + np.where(system.equal, 0.0, np.sign(excess) * beyond)
        rounding = violated & (np.abs(excess) <= 10.0 * beyond)
        beyond = np.where(rounding, 4.0 * beyond, beyond)
        moved = _step(rows[violated | system.equal], aim[violated | system.equal], y, problem, held)
        if np.linalg.norm(moved - x) > reach or np.array_equal(moved, y):
            break
        y = moved
    return best


def _step(
    rows: NDArray[np.float64], aim: Vector, y: Vector, problem: Problem, held: NDArray[np.bool_]
) -> Vector:
    """Return y after the shortest step that cancels `aim`, coordinates at their bounds held."""
    box, free = problem.box, ~(held | problem.box.fixed)
    for _ in range(10):
        step = np.zeros(y.size)
        step[free] = np.linalg.lstsq(rows[:, free], -aim, rcond=1e-12)[0]
        moved = box.clip(y + step)
        blocked = free & (moved != y + step)
        if not blocked.any():
            break
        # What hits its bound stays where it is; the others do the rest.
        stuck = blocked & ((y == box.lower) | (y == box.upper))
        if not stuck.any():
            break
        free = free & ~stuck
    return moved
