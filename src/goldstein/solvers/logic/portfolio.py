"""When is a run given up that float64 cannot finish?

Two members share the calls: whose it is, and how many calls it gets.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from goldstein.solvers.logic.centre import recentre
from goldstein.solvers.tuning import TUNING

if TYPE_CHECKING:
    from goldstein.solvers.auto import AutoState

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
