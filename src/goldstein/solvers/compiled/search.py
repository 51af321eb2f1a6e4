"""Questions to the user's function: counted, limited, and checked like those from Python.

The decisions of `solvers.logic`, made callable by compiled code.

The compiled loop: who answers the questions of `solvers.logic`, and when to come back.
"""

import math
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from numba.extending import overload, register_jitable

from goldstein.numerics.streams import LONGEST, narrow
from goldstein.solvers import logic
from goldstein.solvers.ball_state import steps_per_round
from goldstein.solvers.base import VALUE_LIMIT
from goldstein.solvers.compiled import layout, newton
from goldstein.solvers.compiled.bundle import go_surely, shortest
from goldstein.solvers.compiled.newton import go_fast
from goldstein.solvers.compiled.records import (
    DECISIONS,
    answer_of,
    make_kernels,
    search_at,
    share,
    unit,
    vector,
)
from goldstein.solvers.compiled.vectors import copy
from goldstein.solvers.logic import line_search, portfolio
from goldstein.solvers.logic.questions import GRADIENT, NOTHING, TRIAL

#: What the adapter of the user's functions is asked for, and what it says.
_VALUE, _GRADIENT = 0, 1
_ANSWERED, _RAISED = 0, 1


def _respond(search: Any) -> None:
    """Answer the open question, or leave that to Python; `search.stop` is set where it is not."""
    search.entry = layout.TOLD
    if search.values + search.gradients >= search.ceiling:
        search.stop = layout.OUT_OF_CALLS
    elif search.asking == 0:
        search.stop = layout.ASKS
    else:
        count(search)
        if search.question == GRADIENT:
            _answer_gradient(search)
        else:
            _answer_value(search)


def count(search: Any) -> None:
    if search.question == GRADIENT:
        search.gradients += 1
    else:
        search.values += 1


def _answer_value(search: Any) -> None:
    """Overflow and NaN at a trial point only mean: too far (infinity)."""
    answered = _asked(search, _VALUE) == _ANSWERED
    search.reply = vector(search.answer, 1)[0]
    if not answered:
        search.stop = layout.ASKS
    elif not math.isfinite(search.reply):
        search.reply = math.inf
        if search.question != TRIAL:
            search.stop = layout.ASKS


def _answer_gradient(search: Any) -> None:
    """A function that raises stops the stretch: Python asks it again whether that was a kink.

    Once it was, `search.kinks` is set and the search goes on by itself.
    """
    state = _asked(search, _GRADIENT)
    found = search.found
    copy(vector(search.answer, search.dim), found)
    if state == _ANSWERED:
        finite = True
        for i in range(found.size):
            finite = finite and abs(found[i]) <= LONGEST
        if finite:
            return
    elif state == _RAISED and search.kinks == 1:
        search.entry = layout.KINKED
        return
    search.stop = layout.ASKS


def _asked(search: Any, what: Any) -> Any:
    copy(search.point, vector(search.lent, search.dim))
    return answer_of(
        search.asking, search.lent, search.dim, search.answer, what, search.words, search.pair
    )


for _found in iter_modules(logic.__path__):
    share(import_module(f"{logic.__name__}.{_found.name}"))
register_jitable(**DECISIONS)(narrow)


@overload(steps_per_round, jit_options=DECISIONS)
def _steps_per_round(lipschitz: Any, eps: Any) -> Any:
    """As a float, which does not overflow; one round failing with probability 1/e."""

    def steps(lipschitz: Any, eps: Any) -> Any:
        return max(1.0, math.ceil(5.0 * math.e * (lipschitz / eps) ** 2))

    return steps


def _calls(search: Any) -> Any:
    return search.values + search.gradients


@unit
def stretch(address: Any) -> Any:
    """Go on until there is something to say to Python; a question may have been left open."""
    search = search_at(address)
    if search.stop == layout.ASKS:
        count(search)  # Python has answered
    search.stop = 0
    while True:
        _step(search)
        if search.stop != 0:
            return search.stop
        calls = _calls(search)
        portfolio.reschedule(search, calls)
        portfolio.look_back(search)
        search.stalled = portfolio.stalled(search, calls)
        search.idle = search.idle + 1 if calls == search.step_began else 0
        if search.proved:
            return layout.EVIDENCE
        if search.stalled or search.idle >= portfolio.IDLE_LIMIT:
            return layout.GIVEN_UP
        if calls >= search.pause or search.fx < VALUE_LIMIT:
            return layout.PAUSED


def _step(search: Any) -> None:
    """Make a step of the member that runs, or finish the one that was interrupted."""
    fast = search.member == portfolio.NEWTON
    if search.question == NOTHING:
        search.step_began = _calls(search)
        search.proved = False
        search.entry = layout.BEGINS
        if fast:
            line_search.prepare(search)
    while True:
        search.question = go_fast(search.address) if fast else go_surely(search.address)
        if search.question == NOTHING:
            break
        _respond(search)
        if search.stop != 0:
            if fast and search.stop == layout.OUT_OF_CALLS:
                line_search.cut_short(search.newton)
                line_search.adopt(search)
            return
    if fast:
        line_search.ended(search)


@unit
def begin(address: Any) -> Any:
    """Prepare the first slice; the request and f(x0) are in the record."""
    search = search_at(address)
    newton.restart_newton(search)
    portfolio.open_slice(search, _calls(search))
    return 0


@unit
def learn_refuted(address: Any) -> Any:
    search = search_at(address)
    portfolio.refuted(search, _calls(search))
    return 0


@unit
def aim_again(address: Any) -> Any:
    """Go on with the request that is in the record."""
    search = search_at(address)
    portfolio.retarget(search, search.eps, search.delta)
    return 0


@unit
def last(address: Any) -> Any:
    """Gather what is known around the best point; return how much that is."""
    search = search_at(address)
    portfolio.close_in(search)
    if search.hull.count > 0:
        shortest(search)
    return search.hull.count


make_kernels(globals())
