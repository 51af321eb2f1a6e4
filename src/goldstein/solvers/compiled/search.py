"""The compiled loop: who answers the questions of `solvers.logic`, and when to come back."""

from __future__ import annotations

from typing import Any

from goldstein.solvers.base import VALUE_LIMIT
from goldstein.solvers.compiled import newton
from goldstein.solvers.compiled.ask import answer, count
from goldstein.solvers.compiled.ball import go_surely
from goldstein.solvers.compiled.bundle import shortest
from goldstein.solvers.compiled.jit import kernel, unit
from goldstein.solvers.compiled.layout import ASKS, BEGINS, EVIDENCE, GIVEN_UP, OUT_OF_CALLS, PAUSED
from goldstein.solvers.compiled.newton import go_fast
from goldstein.solvers.compiled.views import search_at
from goldstein.solvers.logic import line_search, newton_half
from goldstein.solvers.logic.centre import close_in, retarget
from goldstein.solvers.logic.progress import IDLE_LIMIT, look_back, stalled
from goldstein.solvers.logic.questions import NOTHING
from goldstein.solvers.logic.turns import NEWTON, open_turn, refuted, take_turns


@kernel
def _calls(search: Any) -> Any:
    return search.values + search.gradients


@unit
def stretch(address: Any) -> Any:
    """Go on until there is something to say to Python; a question may have been left open."""
    search = search_at(address)
    if search.stop == ASKS:
        count(search)  # Python has answered
    search.stop = 0
    while True:
        _step(search)
        if search.stop != 0:
            return search.stop
        calls = _calls(search)
        take_turns(search, calls)
        look_back(search)
        search.stalled = stalled(search, calls)
        search.idle = search.idle + 1 if calls == search.step_began else 0
        if search.proved:
            return EVIDENCE
        if search.stalled or search.idle >= IDLE_LIMIT:
            return GIVEN_UP
        if calls >= search.pause or search.fx < VALUE_LIMIT:
            return PAUSED


@kernel
def _step(search: Any) -> None:
    """Make a step of the half whose turn it is, or finish the one that was interrupted."""
    fast = search.turn == NEWTON
    if search.question == NOTHING:
        search.step_began = _calls(search)
        search.proved = False
        search.entry = BEGINS
        if fast:
            newton_half.prepare(search)
    while True:
        search.question = go_fast(search.address) if fast else go_surely(search.address)
        if search.question == NOTHING:
            break
        answer(search)
        if search.stop != 0:
            if fast and search.stop == OUT_OF_CALLS:
                line_search.cut_short(search.newton)
                newton_half.adopt(search)
            return
    if fast:
        newton_half.ended(search)


@unit
def begin(address: Any) -> Any:
    """Prepare the first turn; the request and f(x0) are in the record."""
    search = search_at(address)
    newton.restart_newton(search)
    open_turn(search, _calls(search))
    return 0


@unit
def learn_refuted(address: Any) -> Any:
    search = search_at(address)
    refuted(search, _calls(search))
    return 0


@unit
def aim_again(address: Any) -> Any:
    """Go on with the request that is in the record."""
    search = search_at(address)
    retarget(search, search.eps, search.delta)
    return 0


@unit
def last(address: Any) -> Any:
    """Gather what is known around the best point; return how much that is."""
    search = search_at(address)
    close_in(search)
    if search.hull.count > 0:
        shortest(search, 0.0)
    return search.hull.count
