"""The half with the guarantee: Algorithm 1 in a ball whose radius shrinks and grows."""

from __future__ import annotations

import math
from typing import Any

from goldstein.numerics.cone import narrow
from goldstein.solvers.logic.algorithm_one import (
    DESCENT,
    FARTHER,
    FIRST,
    HALF,
    SPARSE,
    aim,
    descends,
    look,
    looked,
    move,
    told_farther,
    told_half,
    try_farther,
)
from goldstein.solvers.logic.centre import counts, offer, recentre
from goldstein.solvers.logic.questions import GRADIENT, NOTHING, TRIAL, VALUE
from goldstein.solvers.schedules import steps_per_round
from goldstein.solvers.tuning import TUNING


def begin(s: Any) -> int:
    """Begin a step; return the first question."""
    # A fall of f too small for the theorem must not restart its argument again and again.
    if counts(s, s.centre_value):
        recentre(s, s.working)
    else:
        offer(s, s.working)
    if s.bundle_size() > 0:
        return _test(s)
    s.draw_first(s.working * TUNING.first)
    s.phase = FIRST
    return GRADIENT


def told(s: Any) -> int:
    """Take note of the answer; return the next question."""
    if s.phase == DESCENT:
        return _after_trial(s)
    if s.phase == SPARSE:
        return _descend(s) if descends(s) else _learn_why(s)
    if s.phase == FARTHER:
        return _landed(s, told_farther(s))
    if s.phase == HALF:
        return told_half(s)
    s.remember_found()
    s.offered = s.added
    s.add_found()
    return _test(s) if s.phase == FIRST else looked(s)


def kinked(s: Any) -> int:
    """In floating point a random point may be a kink; the next draw is another."""
    return NOTHING


def _test(s: Any) -> int:
    """Is m short enough? If not, aim along it."""
    radius = s.working
    goal = s.eps * max(1.0, radius / s.delta)
    norm = s.shortest(goal)
    s.bound = norm
    s.radius = radius
    if not norm <= goal:
        aim(s, norm, radius, narrow(norm / s.lipschitz, s.dim))
        return TRIAL if radius > s.delta else VALUE
    if radius <= s.delta:
        s.return_to_centre()
        s.fx = s.centre_value
        s.proved = True
    else:
        _shrink(s)
    return NOTHING


def _after_trial(s: Any) -> int:
    if s.reply == math.inf:
        _shrink(s)
        return NOTHING
    if descends(s):
        return _descend(s)
    s.failed_steps += 1
    s.end_value = s.reply
    if s.failed_steps % TUNING.sparse_every == 0 and _aim_sparsely(s):
        return TRIAL
    return _learn_why(s)


def _aim_sparsely(s: Any) -> bool:
    """Aim along the largest entries of m only, if they are not most of them.

    In high dimension the many small entries of m are noise, which a function with many kinks does
    not forgive: the step fails although its few large entries lead down.
    """
    part, share = TUNING.sparse[s.failed_steps // TUNING.sparse_every % len(TUNING.sparse)]
    norm = s.find_sparse(part)
    if norm == 0.0:
        return False
    s.step_norm = norm
    s.span = share * s.working
    s.place_farther()
    s.phase = SPARSE
    return True


def _learn_why(s: Any) -> int:
    if s.failed_steps >= steps_per_round(s.lipschitz, s.eps):
        s.clear_bundle()
        s.failed_steps = 0
        return NOTHING
    return look(s, s.working * TUNING.inside, s.end_value)


def _descend(s: Any) -> int:
    move(s)
    return _landed(s, try_farther(s))


def _landed(s: Any, question: int) -> int:
    """A step is over when it is not doubled any more; one that went far widens the ball."""
    if question == NOTHING:
        if s.span > 4.0 * s.working:
            s.working = 2.0 * s.working
        recentre(s, s.working)
    return question


def _shrink(s: Any) -> None:
    s.working = max(s.delta, TUNING.shrink * s.working)
    recentre(s, s.working)
