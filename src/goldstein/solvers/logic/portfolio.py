"""When is a run given up that float64 cannot finish?

Two members share the calls: whose it is, and how many calls it gets.

Where the bundle member stands, and the known gradients around it.

The third search, for many variables: when it sweeps, and what becomes of where it ends.

`w` is the sweep: see `solvers.coordinate_sweep` for its attributes and its arithmetic. It works
best where f is a sum of terms of a few variables each, which is why people have many variables, and
has nothing to say where coordinates mean nothing. So it is one of three, and has to win to go on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from goldstein.solvers.tuning import TUNING

if TYPE_CHECKING:
    from goldstein.checker.arrays import Vector
    from goldstein.solvers.auto import AutoState

#: Points are taken this far inside a ball.
INSIDE = 1.0 - 4.0 * TUNING.displaced


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


#: A solver that takes so many steps without asking anything will never ask again.
IDLE_LIMIT = 1000


def look_back(s: AutoState) -> None:
    """Keep in `s.earlier` what f was between a quarter and a member of the steps ago.

    Steps, and not calls: many of these are spent on a proof, and f does not fall meanwhile.
    """
    if s.steps >= s.mark_steps:
        s.earlier = s.mark_value
        s.mark_value = s.fx
        s.mark_steps = s.steps + max(1, s.steps // 4)


def stalled(s: AutoState, calls: int) -> bool:
    """Has nothing improved for long, where float64 cannot even resolve the descent test?

    Where it can, the guarantee holds and giving up would break it.
    """
    bound = s.bound if s.radius <= s.delta else math.inf
    if s.fx < s.progress_value or bound < 0.99 * s.progress_bound:
        s.progress_value = min(s.progress_value, s.fx)
        s.progress_bound = min(s.progress_bound, bound)
        s.progress_calls = calls
        return False
    resolved = 0.25 * s.delta * s.eps >= 8.0 * 2.0**-53 * abs(s.fx)
    idle = calls - s.progress_calls
    patient: bool = idle <= TUNING.patience * (s.dim + 10)
    return not resolved and not patient


NEWTON, BUNDLE = 0, 1


def open_slice(s: AutoState, calls: int) -> None:
    """Give the member that runs its calls."""
    far = s.newton.length > TUNING.far * s.delta
    s.newton.null_steps = TUNING.null_steps - 1 if far else TUNING.null_steps
    newtons = max(s.share, TUNING.far_share) if far else s.share
    share = newtons if s.member == NEWTON else 1.0 - newtons
    s.slice_began = calls
    s.slice_value = s.fx
    # Long enough for both to have their shares, of which none is shorter than this.
    both = max(2.0 * (min(s.dim, 100) + 10), TUNING.shortest / min(newtons, 1.0 - newtons))
    s.slice_ends = calls + max(TUNING.shortest, int(share * both))


def reschedule(s: AutoState, calls: int) -> None:
    """After a step: is the slice over?"""
    if s.has_portfolio and calls >= s.slice_ends and not s.proved:
        _switch(s, calls)


def refuted(s: AutoState, calls: int) -> None:
    """Gradients at unperturbed points were refuted: asked again nearby, they are different."""
    s.refuted = True
    s.drop_unperturbed()
    s.remember_fresh()
    s.working = s.delta
    recentre(s, s.delta)
    s.member = BUNDLE
    open_slice(s, calls)


def _switch(s: AutoState, calls: int) -> None:
    """Let the other member run, and more calls to the one that earns them."""
    _reward(s, (s.slice_value - s.fx) / max(1, calls - s.slice_began))
    n = s.newton
    if s.member == NEWTON:
        s.member = BUNDLE
    elif not (n.stuck and n.barren and s.fx >= n.fx):  # else it would fail there as it did
        s.member = NEWTON
        if n.stuck or n.fx > s.fx:
            s.restart_newton()
    open_slice(s, calls)


def _reward(s: AutoState, rate: float) -> None:
    if s.member == NEWTON:
        s.newton_rate = _mean(s.newton_rate, rate)
    else:
        s.bundle_rate = _mean(s.bundle_rate, rate)
    if not (math.isnan(s.newton_rate) or math.isnan(s.bundle_rate)):
        better = s.newton_rate > s.bundle_rate
        odds = s.share / (1.0 - s.share)
        odds *= TUNING.reward if better else 1.0 / TUNING.reward
        s.share = min(1.0 - TUNING.least, max(TUNING.least, odds / (1.0 + odds)))


def _mean(old: float, new: float) -> float:
    return new if math.isnan(old) else 0.5 * (old + new)


#: Calls that the other two have before the first sweep: easy problems need no more.
FIRST = 150

#: Gradients of the first sweep; the next ones are longer by the factor, up to the limit.
LENGTH, LONGER, LONGEST = 500, 3, 9000

#: Sweeps that lost, in a row, before there are no more of them.
LOSSES = 2

#: Part of the coordinates that gradients must have had something to say about. Where they are told
#: of one by one (the largest entry, say), each needs a sweep of its own.
TOUCHED = 0.5

#: Calls that the bundle member gets where a sweep has won, and again whenever the bound
#: has fallen to this part.
STAY, BETTER = 150, 0.9

#: Between two sweeps the other two get this part of the calls of a sweep, and no fewer than these.
PAUSE, LEAST_PAUSE = 0.5, 200


def is_due(s: AutoState, calls: int) -> bool:
    """Is a sweep due?"""
    w = s.sweep
    if w is None or w.losses >= LOSSES:
        return False
    if w.length == 0:
        if calls < w.due:
            return False
        w.sweeps += 1
        w.began = calls
        w.others_fell = w.last_value - s.fx
        w.depart(
            s.origin[0] if w.sweeps == 1 else s.x, min(LENGTH * LONGER ** (w.sweeps - 1), LONGEST)
        )
    return True


def ended(s: AutoState, calls: int) -> bool:
    """A sweep is over: go where it ended if f is lower there; return whether to prove it."""
    w = s.sweep
    assert w is not None
    spent = calls - w.began
    fell = s.fx - w.reply
    s.moved = w.reply < s.fx
    if s.moved:
        s.x = w.point
        s.fx = w.reply
        s.steps += 1
    won: bool = s.moved and counts(s, s.fx + fell) and w.touched() >= TOUCHED
    # From the second sweep on it must have gained more per call than the others since the last, or
    # it is not worth going on with. Where it ended is worth a proof in any case.
    others = max(1, w.began - w.last_calls)
    faster = w.sweeps == 1 or fell * others >= w.others_fell * spent
    w.losses = 0 if won and faster else w.losses + 1
    w.last_calls = calls
    w.last_value = s.fx
    w.due = calls + max(LEAST_PAUSE, int(PAUSE * spent))
    w.rest()
    if won:
        begin_afresh(s)
        s.member = BUNDLE
    open_slice(s, calls)
    if won:
        w.bound = s.bound
        s.slice_ends = calls + STAY
    return won


def take_in(s: AutoState, point: Vector, gradient: Vector) -> None:
    """Give the bundle member a gradient that was placed around x for its proof."""
    s.point = point
    s.found = gradient
    s.remember_found()
    s.offered = s.added
    s.add_found()


def leave_to_proof(s: AutoState, calls: int, helpful: float) -> None:
    """Leave the gradients that were placed around x to the bundle member.

    Where their bound is above `helpful`, they are not what they seemed to be: no burden, then.
    """
    s.working = s.delta
    recentre(s, s.delta)
    if s.bundle_size() > 0 and s.shortest() > helpful:
        begin_afresh(s)
    s.member = BUNDLE
    open_slice(s, calls)
    s.slice_ends = calls + STAY


def stay(s: AutoState, calls: int, refuted: bool) -> None:
    """Let the bundle member go on as long as its bound falls, or a proof just failed."""
    w = s.sweep
    if w is not None and s.member == BUNDLE and (refuted or s.bound <= BETTER * w.bound):
        w.bound = min(w.bound, s.bound)
        s.slice_ends = max(s.slice_ends, calls + STAY)
        w.due = max(w.due, s.slice_ends)
