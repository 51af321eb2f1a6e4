"""What a run costs beside its search, in calls of functions: seconds depend on the machine."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.construction.judge import Judge
from goldstein.solvers import Auto
from goldstein.solvers.compiled import CompiledAuto
from goldstein.solvers.loop import run

#: Calls around a run, for each of its judges, and for each gradient that is judged: a quarter more
#: than there were when this was written. Three of four calls of a judge belong to the look at what
#: values resolve: of ten coordinates six or seven appear in no gradient of the claim, and each of
#: them is looked at where it does matter, three times.
ONCE, JUDGED, PER_GRADIENT = 150, 1700, 30

PROBLEM = gs.problems.get("maxq", d=10)


def fun(x: np.ndarray) -> float:
    return PROBLEM.value(x)


def jac(x: np.ndarray) -> np.ndarray:
    return PROBLEM.gradient(x)


def calls_beside_the_search(x0: np.ndarray, method: Auto | CompiledAuto) -> tuple[int, list[int]]:
    """Return how many functions are called outside the user's and the steps of the search.

    And the number of gradients of each evidence that is judged.
    """
    judged: list[int] = []
    users = {fun.__code__, jac.__code__}
    calls, depth = 0, 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls, depth
        if event == "return":
            depth -= depth > 0
        elif event == "call":
            code, caller = frame.f_code, frame.f_back
            in_loop = caller is not None and caller.f_code is run.__code__
            if code is Judge.__call__.__code__:
                judged.append(len(frame.f_locals["evidence"].points))
            # Of what the loop calls, the start and the judge are no part of the search.
            elif depth or code in users or (in_loop and code.co_name not in ("start", "judged")):
                depth += 1
                return
            calls += not (in_loop and code.co_name == "judged")  # after every step

    sys.setprofile(note)
    try:
        res = gs.minimize(fun, x0, jac, eps=1e-3, delta=1e-3, rng=0, method=method)
    finally:
        sys.setprofile(None)
    assert res.success
    return calls, judged


@pytest.mark.parametrize("kind", [Auto, CompiledAuto])
def test_a_run_costs_few_calls_beside_its_search(kind: type[Auto] | type[CompiledAuto]) -> None:
    first = gs.minimize(fun, PROBLEM.x0, jac, eps=1e-3, delta=1e-3, rng=0, method=kind())
    for x0 in (PROBLEM.x0, first.x):
        calls, judged = calls_beside_the_search(x0, kind())
        assert judged
        assert calls <= ONCE + sum(JUDGED + PER_GRADIENT * count for count in judged)
