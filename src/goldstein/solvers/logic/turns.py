"""Two halves take turns: whose it is, and how many calls it gets."""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.logic.centre import begin_afresh, recentre
from goldstein.solvers.logic.line_search import forget
from goldstein.solvers.tuning import TUNING

NEWTON, BUNDLE = 0, 1


def open_turn(s: Any, calls: Any) -> None:
    """Give the half whose turn it is its calls."""
    far = s.newton.length > TUNING.far * s.delta
    s.newton.null_steps = TUNING.far_null if far else TUNING.null_steps
    newtons = max(s.share, TUNING.far_share) if far else s.share
    share = newtons if s.turn == NEWTON else 1.0 - newtons
    s.turn_began = calls
    s.turn_value = s.fx
    # Long enough for both to have their shares, of which none is shorter than this.
    both = max(2.0 * (min(s.dim, 100) + 10), TUNING.shortest / min(newtons, 1.0 - newtons))
    s.turn_ends = calls + max(TUNING.shortest, int(share * both))


def take_turns(s: Any, calls: Any) -> None:
    """After a step: is the turn over?"""
    if s.two_halves and calls >= s.turn_ends and not s.proved:
        _switch(s, calls)


def refuted(s: Any, calls: Any) -> None:
    """Gradients at unperturbed points were refuted: asked again nearby, they are different."""
    s.refuted = True
    if s.newton.has_model:
        s.newton.jitter = TUNING.jitter * s.delta
    s.drop_unperturbed()
    s.remember_fresh()
    s.working = s.delta
    recentre(s, s.delta)
    s.turn = BUNDLE
    open_turn(s, calls)


def _switch(s: Any, calls: Any) -> None:
    """Give the turn to the other half, and more calls to the one that earns them."""
    _reward(s, (s.turn_value - s.fx) / max(1, calls - s.turn_began))
    n = s.newton
    if not n.has_model:
        # It has to catch up before it can show what it is worth; when it is done, it is done.
        done = n.stuck or n.length < TUNING.done * s.delta
        s.share = TUNING.least if done else TUNING.most
        if done and not s.settled:
            _settle(s)
    if s.turn == NEWTON:
        s.turn = BUNDLE
        if _crawling(s):
            forget(n, s.delta)
    else:
        s.turn = NEWTON
        if _wants_plain(s, calls):
            s.begin_plain()
        n = s.newton
        if n.stuck or (n.has_model and n.fx > s.fx):
            s.restart_newton()
    open_turn(s, calls)


def _reward(s: Any, rate: Any) -> None:
    if s.turn == NEWTON:
        s.newton_rate = _mean(s.newton_rate, rate)
    else:
        s.bundle_rate = _mean(s.bundle_rate, rate)
    if not (math.isnan(s.newton_rate) or math.isnan(s.bundle_rate)):
        better = s.newton_rate > s.bundle_rate and not _crawling(s)
        odds = s.share / (1.0 - s.share)
        odds *= TUNING.reward if better else 1.0 / TUNING.reward
        s.share = min(TUNING.most, max(TUNING.least, odds / (1.0 + odds)))


def _mean(old: float, new: float) -> float:
    return new if math.isnan(old) else 0.5 * (old + new)


def _crawling(s: Any) -> bool:
    """Are the steps of the fast half so short that its model must be wrong?"""
    return bool(s.newton.has_model and s.newton.length < TUNING.crawl * s.delta)


def _wants_plain(s: Any, calls: Any) -> bool:
    """Has the model, with a limited memory, not succeeded after many calls?

    With about as many curved kinks as variables, a few linear pieces mislead, and so does a limited
    memory. BFGS learns the whole space in a few thousand steps, if it begins where kinks are far
    apart and is left alone with its point.
    """
    small_enough = s.newton.limited and s.dim <= TUNING.plain_limit
    return bool(small_enough and calls > TUNING.plain_after * s.dim)


def _settle(s: Any) -> None:
    """Let the bundle half begin afresh where the fast half has ended.

    What it gathered on the way shows the kinks in many combinations that do not matter here.
    """
    s.settled = True
    begin_afresh(s)
