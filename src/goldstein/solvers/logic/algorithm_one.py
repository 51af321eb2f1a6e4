"""A step of Algorithm 1, for `pingd`, `bundle` and `auto`: descend along -m, or learn why not.

`s` is a ball around a centre (`solvers.ball_state`) with a combination m of gradients from it. The
step failed if f falls by less than |m|/4 per unit on the way: then somewhere on the segment the
gradient g has <g, m> well below |m|^2, and with g the combination gets shorter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldstein.solvers.base import VALUE_LIMIT
from goldstein.solvers.logic.questions import GRADIENT, NOTHING, TRIAL

if TYPE_CHECKING:
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
