"""The other side of a search that asks and is told: the function answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from goldstein.errors import KinkError
from goldstein.oracles import CountedOracle
from goldstein.solvers.logic.questions import NOTHING, TRIAL, VALUE


def drive(
    oracle: CountedOracle,
    search: Any,
    question: int,
    told: Callable[[Any], int],
    kinked: Callable[[Any], int],
) -> None:
    """Answer the questions of a search until it has none.

    The question is about `search.point`; values are told as `search.reply`, gradients as
    `search.found`, and where there is no gradient the search is told that.
    """
    while question != NOTHING:
        if question == TRIAL:
            search.reply = oracle.trial_value(search.point)
        elif question == VALUE:
            search.reply = oracle.value(search.point)
        else:
            try:
                search.found = oracle.gradient(search.point)
            except KinkError:
                question = kinked(search)
                continue
        question = told(search)
