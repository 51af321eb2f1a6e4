"""The compiled loop: two halves in turns, as in `solvers.auto`, where the reasons are given."""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.compiled import bundle, guaranteed, newton
from goldstein.solvers.compiled.centre import GATHER, may_recentre, recentre
from goldstein.solvers.compiled.constants import (
    CRAWL,
    FAR,
    FAR_NULL,
    FAR_SHARE,
    JITTER,
    LEAST,
    MAX_NULL_STEPS,
    MOST,
    PATIENCE,
    REWARD,
    VALUE_LIMIT,
)
from goldstein.solvers.compiled.jit import kernel, unit
from goldstein.solvers.compiled.layout import BUNDLE, EVIDENCE, NEWTON, PAUSED, STALLED
from goldstein.solvers.compiled.ring import forget_unperturbed, remember
from goldstein.solvers.compiled.simplex import MINIMISE
from goldstein.solvers.compiled.vectors import copy
from goldstein.solvers.compiled.views import call, row, search_at, vector

#: Steps without a question before the run is given up.
_IDLE_LIMIT = 1000


@kernel
def _stretch(search: Any) -> Any:
    search.stop = 0
    while True:
        before = search.values + search.gradients
        if search.turn == NEWTON:
            found = _newton_half(search)
        else:
            found = call(search.bundle_step, search.address) == 1
        if search.stop != 0:
            return search.stop
        if found:
            return EVIDENCE
        calls = search.values + search.gradients
        if search.newton == 1 and calls >= search.turn_ends:
            _switch(search)
        search.idle = search.idle + 1 if calls == before else 0
        if _stalled(search) or search.idle >= _IDLE_LIMIT:
            return STALLED
        if calls >= search.pause or search.fx < VALUE_LIMIT:
            return PAUSED


@kernel
def _newton_half(search: Any) -> Any:
    """Make one step; True when the free certificate attempt succeeded."""
    moved = call(search.newton_step, search.address) == 1
    # A step that the end of the calls cuts short has gained what it has gained.
    better = (moved or search.stop != 0) and search.newton_fx < search.fx
    if better:
        copy(vector(search.newton_x, search.dim), vector(search.x, search.dim))
        search.fx = search.newton_fx
        search.steps += 1
    if not moved:
        search.turn_ends = search.values + search.gradients
    if not (moved and better):
        return False
    step = search.newton_length
    if step > search.delta or not may_recentre(search):
        return False
    # The gradients around x are there already: trying them as a certificate costs no call.
    recentre(search, search.delta)
    if search.hull.count == 0:
        return False
    norm = bundle.shortest(search)
    search.bound, search.radius = norm, search.delta
    if norm <= search.eps:
        return True
    if norm <= search.close * search.eps or step <= search.short * search.delta:
        # Close in; should that fail, not again before things look better than now.
        search.close = min(search.close, 0.5 * norm / search.eps)
        search.short = min(search.short, 0.5 * step / search.delta)
        search.working = search.delta
        search.turn_ends = search.values + search.gradients
    return False


@kernel
def _switch(search: Any) -> None:
    """Give the turn to the other half, and more calls to the one that earns them."""
    calls = search.values + search.gradients
    rate = (search.turn_value - search.fx) / max(1, calls - search.turn_began)
    crawling = search.newton_length < CRAWL * search.delta
    if search.turn == NEWTON:
        first = search.turns_of_newton == 0
        search.newton_rate = rate if first else 0.5 * (search.newton_rate + rate)
        search.turns_of_newton += 1
    else:
        first = search.turns_of_bundle == 0
        search.bundle_rate = rate if first else 0.5 * (search.bundle_rate + rate)
        search.turns_of_bundle += 1
    if search.turns_of_newton > 0 and search.turns_of_bundle > 0:
        odds = search.share / (1.0 - search.share)
        better = search.newton_rate > search.bundle_rate and not crawling
        odds *= REWARD if better else 1.0 / REWARD
        search.share = min(MOST, max(LEAST, odds / (1.0 + odds)))
    if search.turn == NEWTON:
        search.turn = BUNDLE
        if crawling:
            newton.forget(search, search.delta)
    else:
        search.turn = NEWTON
        if search.newton_fx > search.fx or search.stuck == 1:
            newton.restart(search)
    _open_turn(search)


@kernel
def _open_turn(search: Any) -> None:
    far = search.newton_length > FAR * search.delta
    search.null_steps = FAR_NULL if far else MAX_NULL_STEPS
    newtons = max(search.share, FAR_SHARE) if far else search.share
    share = newtons if search.turn == NEWTON else 1.0 - newtons
    search.turn_began = search.values + search.gradients
    search.turn_value = search.fx
    search.turn_ends = search.turn_began + max(6, int(2.0 * share * (min(search.dim, 100) + 10)))


@kernel
def _stalled(search: Any) -> Any:
    """Has nothing improved for long, where float64 cannot even resolve the descent test?"""
    calls = search.values + search.gradients
    bound = search.bound if search.radius <= search.delta else math.inf
    if search.fx < search.progress_value or bound < 0.99 * search.progress_bound:
        search.progress_value = min(search.progress_value, search.fx)
        search.progress_bound = min(search.progress_bound, bound)
        search.progress_calls = calls
        return False
    resolved = 0.25 * search.delta * search.eps >= 8.0 * 2.0**-53 * abs(search.fx)
    return not resolved and calls - search.progress_calls > PATIENCE * (search.dim + 10)


@kernel
def _learn(search: Any) -> None:
    """Gradients at unperturbed points were refuted: believe what was asked again."""
    search.jitter = JITTER * search.delta
    forget_unperturbed(search)
    for index in range(search.fresh_count):
        point = row(search.fresh_points, search.dim, index)
        remember(search, point, row(search.fresh_gradients, search.dim, index), 1)
    search.working = search.delta
    recentre(search, search.delta)
    search.turn = BUNDLE
    _open_turn(search)


@unit
def BEGIN(stamp: str) -> Any:
    def begin(address: Any) -> Any:
        """Prepare the first turn; the request and f(x0) are in the record."""
        stamp  # noqa: B018
        search = search_at(address)
        newton.restart(search)
        _open_turn(search)
        return 0

    return begin


@unit
def STRETCH(stamp: str) -> Any:
    def stretch(address: Any) -> Any:
        """Search until there is something to say to Python, and return what."""
        stamp  # noqa: B018
        return _stretch(search_at(address))

    return stretch


@unit
def LEARN(stamp: str) -> Any:
    def learn(address: Any) -> Any:
        stamp  # noqa: B018
        _learn(search_at(address))
        return 0

    return learn


def connect(record: Any) -> None:
    """Tell a record where the units are."""
    record["minimising"] = MINIMISE.address
    record["measuring"] = bundle.MEASURE.address
    record["gathering"] = GATHER.address
    record["looking"] = newton.LOOK.address
    record["newton_step"] = newton.NEWTON_STEP.address
    record["bundle_step"] = guaranteed.BUNDLE_STEP.address
