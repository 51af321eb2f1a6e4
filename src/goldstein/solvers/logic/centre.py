"""Where the bundle member stands, and the known gradients around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldstein.solvers.tuning import TUNING

#: Points are taken this far inside a ball.
INSIDE = 1.0 - 4.0 * TUNING.displaced

if TYPE_CHECKING:
    from goldstein.solvers.auto import AutoState


def counts(s: AutoState, value: float) -> bool:
    """Is f at x so far below this value that the theorem counts it?"""
    enough: bool = s.fx < value - 0.25 * s.delta * s.eps
    return enough


def may_recentre(s: AutoState) -> bool:
    """May the quasi-Newton member move the centre of the other one?

    Always after a fall of f that counts in the theorem; otherwise only so often between two of
    them, or falls too small to count could interrupt the bundle member for ever.
    """
    if counts(s, s.counted_value):
        s.counted_value = s.fx
        s.small_moves = 0
        return True
    s.small_moves += 1
    return bool(s.small_moves <= TUNING.patience)


def recentre(s: AutoState, radius: float) -> None:
    """Move the bundle member to the best point, with the gradients known around it."""
    moved = s.move_centre()
    s.centre_value = s.fx
    s.failed_steps = 0
    if radius <= s.gathered:
        s.keep_near(moved, radius * INSIDE)
    else:
        s.clear_bundle()
    if s.bundle_size() == 0:
        s.offered = 0
    offer(s, radius)
    s.gathered = radius


def close_in(s: AutoState) -> None:
    """Gather what is known within delta of the best point, for the last word."""
    if s.working > s.delta or not s.is_centred():
        s.working = s.delta
        recentre(s, s.delta)


def retarget(s: AutoState, eps: float, delta: float) -> None:
    """Go on with another request."""
    s.eps = eps
    s.delta = delta
    s.close = TUNING.close
    s.short = TUNING.short
    # Whatever the ball was, the next one is as large as is asked for.
    s.working = delta
    recentre(s, delta)


def offer(s: AutoState, radius: float) -> None:
    """Let the bundle have what the memory learned around the centre since it was last asked."""
    if s.offered != s.added:
        s.gather(radius * INSIDE)
        s.offered = s.added


def begin_afresh(s: AutoState) -> None:
    """Let the bundle member begin afresh at x, in the ball that was asked for."""
    s.clear_memory()
    s.clear_bundle()
    s.working = s.delta
    recentre(s, s.delta)
