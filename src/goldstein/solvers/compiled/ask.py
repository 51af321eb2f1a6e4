"""Questions to the user's function: counted, limited, and checked like those from Python."""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.compiled.jit import kernel
from goldstein.solvers.compiled.layout import BAD_GRADIENT, BAD_VALUE, OUT_OF_CALLS
from goldstein.solvers.compiled.vectors import copy, dot
from goldstein.solvers.compiled.views import answer_of, vector

#: What is asked for, and what came back.
VALUE, GRADIENT = 0, 1
ANSWERED, RAISED = 0, 1


@kernel
def trial_value(search: Any, x: Any) -> Any:
    """Return f(x); overflow and NaN only mean: too far (infinity).

    `search.stop` is set when no answer can be had.
    """
    if search.values + search.gradients >= search.ceiling:
        search.stop = OUT_OF_CALLS
        return math.inf
    search.values += 1
    if _asked(search, x, vector(search.answer, search.dim), VALUE) == ANSWERED:
        found = vector(search.answer, 1)[0]
        return found if math.isfinite(found) else math.inf
    search.stop = BAD_VALUE
    copy(x, vector(search.culprit, search.dim))
    return math.inf


@kernel
def value(search: Any, x: Any) -> Any:
    """Return f(x), which must be finite: `search.stop` is set where it is not."""
    found = trial_value(search, x)
    if found == math.inf and search.stop == 0:
        search.stop = BAD_VALUE
        copy(x, vector(search.culprit, search.dim))
    return found


@kernel
def gradient(search: Any, y: Any, target: Any) -> Any:
    """Set target to the gradient and return True; where there is none, return False.

    A function that raises stops the stretch: Python asks it again to see whether that was a kink.
    Once it was, `search.kinks` is set and the search itself steps aside.
    """
    if search.values + search.gradients >= search.ceiling:
        search.stop = OUT_OF_CALLS
        return False
    search.gradients += 1
    state = _asked(search, y, target, GRADIENT)
    if state == ANSWERED:
        if math.isfinite(dot(target, target)):
            return True
        finite = True
        for i in range(target.size):
            finite = finite and math.isfinite(target[i])
        if finite:
            return True
    elif state == RAISED and search.kinks == 1:
        return False
    search.stop = BAD_GRADIENT
    copy(y, vector(search.culprit, search.dim))
    return False


@kernel
def _asked(search: Any, x: Any, target: Any, question: Any) -> Any:
    copy(x, vector(search.lent, search.dim))
    answer = vector(search.answer, search.dim)
    state = answer_of(
        search.asking, search.lent, search.dim, search.answer, question, search.words, search.pair
    )
    if question == GRADIENT:
        copy(answer, target)
    return state
