"""The third search, for many variables: when it sweeps, and what becomes of where it ends.

`w` is the sweep: see `solvers.coordinate_sweep` for its attributes and its arithmetic. It works
best where f is a sum of terms of a few variables each, which is why people have many variables, and
has nothing to say where coordinates mean nothing. So it is one of three, and has to win to go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldstein.solvers.logic.portfolio import BUNDLE, begin_afresh, counts, open_slice, recentre

if TYPE_CHECKING:
    from goldstein.checker.arrays import Vector
    from goldstein.solvers.auto import AutoState

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
