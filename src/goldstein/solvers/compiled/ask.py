"""Questions to the user's function: counted, limited, and checked like those from Python."""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.compiled.jit import kernel
from goldstein.solvers.compiled.layout import ASKS, KINKED, OUT_OF_CALLS, TOLD
from goldstein.solvers.compiled.vectors import copy, dot
from goldstein.solvers.compiled.views import answer_of, vector
from goldstein.solvers.logic.questions import GRADIENT, TRIAL

#: What the adapter of the user's functions is asked for, and what it says.
_VALUE, _GRADIENT = 0, 1
_ANSWERED, _RAISED = 0, 1


@kernel
def answer(search: Any) -> None:
    """Answer the open question, or leave that to Python; `search.stop` is set where it is not."""
    search.entry = TOLD
    if search.values + search.gradients >= search.ceiling:
        search.stop = OUT_OF_CALLS
    elif search.asking == 0:
        search.stop = ASKS
    else:
        count(search)
        if search.question == GRADIENT:
            _answer_gradient(search)
        else:
            _answer_value(search)


@kernel
def count(search: Any) -> None:
    if search.question == GRADIENT:
        search.gradients += 1
    else:
        search.values += 1


@kernel
def _answer_value(search: Any) -> None:
    """Overflow and NaN at a trial point only mean: too far (infinity)."""
    answered = _asked(search, _VALUE) == _ANSWERED
    search.reply = vector(search.answer, 1)[0]
    if not answered:
        search.stop = ASKS
    elif not math.isfinite(search.reply):
        search.reply = math.inf
        if search.question != TRIAL:
            search.stop = ASKS


@kernel
def _answer_gradient(search: Any) -> None:
    """A function that raises stops the stretch: Python asks it again whether that was a kink.

    Once it was, `search.kinks` is set and the search goes on by itself.
    """
    state = _asked(search, _GRADIENT)
    found = search.found
    copy(vector(search.answer, search.dim), found)
    if state == _ANSWERED:
        if math.isfinite(dot(found, found)):
            return
        finite = True
        for i in range(found.size):
            finite = finite and math.isfinite(found[i])
        if finite:
            return
    elif state == _RAISED and search.kinks == 1:
        search.entry = KINKED
        return
    search.stop = ASKS


@kernel
def _asked(search: Any, what: Any) -> Any:
    copy(search.point, vector(search.lent, search.dim))
    return answer_of(
        search.asking, search.lent, search.dim, search.answer, what, search.words, search.pair
    )
