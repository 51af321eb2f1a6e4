"""The bundle member: Algorithm 1 in a ball whose radius shrinks and grows.

A step of Algorithm 1, for `pingd`, `bundle` and `auto`: descend along -m, or learn why not.

`s` is a ball around a centre (`solvers.ball_state`) with a combination m of gradients from it. The
step failed if f falls by less than |m|/4 per unit on the way: then somewhere on the segment the
gradient g has <g, m> well below |m|^2, and with g the combination gets shorter.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from goldstein.numerics.streams import narrow
from goldstein.solvers.ball_state import steps_per_round
from goldstein.solvers.base import VALUE_LIMIT
from goldstein.solvers.logic.portfolio import INSIDE, counts, offer, recentre
from goldstein.solvers.logic.questions import GRADIENT, NOTHING, TRIAL, VALUE
from goldstein.solvers.tuning import TUNING

if TYPE_CHECKING:
    from goldstein.solvers.auto import AutoState
    from goldstein.solvers.ball_state import BallState

#: What the answer is for: the first gradient of a ball; f at the trial point; f at twice the step;
#: the gradient of a random point.
FIRST, DESCENT, FARTHER, DRAWN = range(4)


def aim(s: BallState, norm: float, radius: float, ratio: float) -> None:
    """Place the trial point, for an m of this length and q = `ratio`."""
    s.norm = norm
    s.span = radius
    s.ratio = ratio
    s.place_descent()
    s.phase = DESCENT


def descends(s: BallState) -> bool:
    """Has f fallen by more than a quarter of what m promises over the step?"""
    enough: bool = s.reply - s.centre_value < -0.25 * s.span * s.norm
    return enough


def move(s: BallState) -> None:
    """Take the step."""
    s.x = s.point
    s.fx = s.reply
    s.steps += 1
    s.moved = True


def try_farther(s: BallState) -> int:
    """Double the step that has succeeded; `s.span` ends as the first length that was not taken."""
    s.span *= 2.0
    if s.fx < VALUE_LIMIT:
        return NOTHING
    s.place_farther()
    s.phase = FARTHER
    return TRIAL


def told_farther(s: BallState) -> int:
    """Follow every success, so that nothing is lost when the calls run out on the way."""
    if s.reply >= s.fx or not descends(s):
        return NOTHING
    s.x = s.point
    s.fx = s.reply
    return try_farther(s)


def look(s: BallState, radius: float) -> int:
    """Ask for a gradient on the way of a failed step: at a random point of the tilted segment."""
    s.look_radius = radius
    s.draw_conic()
    s.phase = DRAWN
    return GRADIENT


def begin(s: AutoState) -> int:
    """Begin a step; return the first question."""
    # A fall of f too small for the theorem must not restart its argument again and again.
    if counts(s, s.centre_value):
        recentre(s, s.working)
    else:
        offer(s, s.working)
    if s.bundle_size() > 0:
        return _test(s)
    s.draw_first(s.working * TUNING.displaced)
    s.phase = FIRST
    return GRADIENT


def told(s: AutoState) -> int:
    """Take note of the answer; return the next question."""
    if s.phase == DESCENT:
        return _after_trial(s)
    if s.phase == FARTHER:
        return _landed(s, told_farther(s))
    s.remember_found()
    s.offered = s.added
    s.add_found()
    return _test(s) if s.phase == FIRST else NOTHING


def kinked(s: AutoState) -> int:
    """In floating point a random point may be a kink; the next draw is another."""
    return NOTHING


def _test(s: AutoState) -> int:
    """Is m short enough? If not, aim along it."""
    radius = s.working
    goal = s.eps * max(1.0, radius / s.delta)
    norm = s.shortest()
    s.bound = norm
    s.radius = radius
    if not norm <= goal:
        aim(s, norm, radius, narrow(norm / s.lipschitz, s.dim))
        if s.was_tried():
            s.reply = s.tried_value
            return _after_trial(s)
        return TRIAL if radius > s.delta else VALUE
    if radius <= s.delta:
        s.x = s.centre
        s.fx = s.centre_value
        s.proved = True
    else:
        _shrink(s)
    return NOTHING


def _after_trial(s: AutoState) -> int:
    s.tried_value = s.reply
    s.tried = s.point
    if s.reply == math.inf:
        _shrink(s)
        return NOTHING
    if descends(s):
        move(s)
        return _landed(s, try_farther(s))
    s.failed_steps += 1
    if s.failed_steps >= steps_per_round(s.lipschitz, s.eps):
        s.clear_bundle()
        s.failed_steps = 0
        return NOTHING
    return look(s, s.working * INSIDE)


def _landed(s: AutoState, question: int) -> int:
    """A step is over when it is not doubled any more; one that went far widens the ball."""
    if question == NOTHING:
        if s.span > 4.0 * s.working:
            s.working = 2.0 * s.working
        recentre(s, s.working)
    return question


def _shrink(s: AutoState) -> None:
    s.working = max(s.delta, TUNING.shrink * s.working)
    recentre(s, s.working)
