"""A step of Algorithm 1, for `pingd`, `bundle` and `auto`: descend along -m, or learn why not.

`s` is a ball around a centre (`solvers.ball_state`) with a combination m of gradients from it. The
step failed if f falls by less than |m|/4 per unit on the way: then somewhere on the segment the
gradient g has <g, m> well below |m|^2, and with g the combination gets shorter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldstein.solvers.base import VALUE_LIMIT
from goldstein.solvers.logic.questions import GRADIENT, NOTHING, TRIAL, VALUE
from goldstein.solvers.tuning import TUNING

if TYPE_CHECKING:
    from goldstein.solvers.ball_state import BallState

#: What the answer is for: the first gradient of a ball; f at the trial point; f at twice the step;
#: gradient and value at a midpoint; the gradient of a random point.
FIRST, DESCENT, FARTHER, MIDPOINT, HALF, DRAWN = range(6)

#: Where to look after a failed step.
RANDOM, BISECTION, HYBRID = range(3)


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


def look(s: BallState, radius: float, end_value: float) -> int:
    """Ask for a gradient on the way of a failed step, which ended at `end_value`.

    At random: a point of the tilted segment of Algorithm 1. By bisection: halve the segment and
    keep the half along which f falls less, until a gradient is good enough; for weakly convex and
    for smooth functions that takes logarithmically many halvings, for others it may fail. The
    hybrid falls back on a random point then, which keeps the guarantee at a constant factor.
    """
    s.look_radius = radius
    if s.line == RANDOM:
        return _draw(s)
    s.left = 0.0
    s.right = 1.0 - s.ratio / 8.0
    s.left_value = s.centre_value
    s.right_value = end_value
    s.halvings = 0
    return _halve(s)


def looked(s: BallState) -> int:
    """A gradient of `look` is known: was it good enough?"""
    if s.phase == DRAWN or s.found_along() <= TUNING.steep * s.norm * s.norm:
        return NOTHING
    s.phase = HALF
    return VALUE


def told_half(s: BallState) -> int:
    """Keep the half along which f falls less."""
    if s.right_value - s.reply >= s.reply - s.left_value:
        s.left = s.middle
        s.left_value = s.reply
    else:
        s.right = s.middle
        s.right_value = s.reply
    return _halve(s)


def _halve(s: BallState) -> int:
    if s.halvings == TUNING.no_descent:
        return _draw(s) if s.line == HYBRID else NOTHING
    s.halvings += 1
    s.middle = 0.5 * (s.left + s.right)
    s.draw_midpoint(TUNING.displaced * (s.right - s.left) * s.look_radius)
    s.phase = MIDPOINT
    return GRADIENT


def _draw(s: BallState) -> int:
    s.draw_conic()
    s.phase = DRAWN
    return GRADIENT
