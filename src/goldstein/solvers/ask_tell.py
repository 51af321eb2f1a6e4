"""The other side of a search that asks and is told: the function answers, once at each point."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from goldstein.checker.arrays import Vector
from goldstein.errors import KinkError
from goldstein.numerics.hull import MANY_VARIABLES
from goldstein.oracles import CountedOracle
from goldstein.solvers.logic.questions import NOTHING, TRIAL, VALUE

#: Numbers that are kept of points and gradients: a search asks again, if at all, before long.
NUMBERS = 1_000_000


class Answers:
    """What a function has said to a search, by point: no question is asked twice.

    Those who judge, and look for noise, ask the function itself.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.oracles.function import FunctionOracle
    >>> oracle = CountedOracle(FunctionOracle(lambda x: float(x @ x), lambda x: 2 * x))
    >>> answers, x = Answers(2), np.ones(2)
    >>> answers.value(oracle, x, TRIAL), answers.value(oracle, x, VALUE), oracle.calls
    (2.0, 2.0, 1)
    """

    def __init__(self, dim: int) -> None:
        #: In many variables memory is worth saving: values by a digest of the point, no gradients.
        self._many = dim >= MANY_VARIABLES
        self._most = NUMBERS // (1 if self._many else dim)
        self._values: dict[bytes, float] = {}
        self._gradients: dict[bytes, Vector | None] = {}

    def value(self, oracle: CountedOracle, x: Vector, question: int) -> float:
        key = self._key(x)
        known = self._values.get(key)
        # Where a value is not finite the oracle says so to those who have to know.
        if known is None or (question == VALUE and known in (float("inf"), float("-inf"))):
            known = oracle.trial_value(x) if question == TRIAL else oracle.value(x)
            self._keep(self._values, key, known)
        return known

    def gradient(self, oracle: CountedOracle, y: Vector) -> Vector | None:
        """Return the gradient, or None for a kink."""
        key = self._key(y)
        if key in self._gradients:
            return self._gradients[key]
        try:
            found = oracle.gradient(y)
        except KinkError:
            found = None
        if not self._many:
            self._keep(self._gradients, key, found)
        return found

    def _key(self, x: Vector) -> bytes:
        return hashlib.blake2b(x.tobytes()).digest() if self._many else x.tobytes()

    def _keep(self, table: dict[bytes, Any], key: bytes, answer: Any) -> None:
        if len(table) >= self._most:
            del table[next(iter(table))]
        table[key] = answer


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
        if question in (TRIAL, VALUE):
            search.reply = value_of(oracle, search.point, question)
            question = told(search)
        elif (found := gradient_of(oracle, search.point)) is None:
            question = kinked(search)
        else:
            search.found = found
            question = told(search)


def value_of(oracle: CountedOracle, x: Vector, question: int) -> float:
    """Return f(x); what a TRIAL asks for may be infinite."""
    if oracle.answers is not None:
        known: float = oracle.answers.value(oracle, x, question)
        return known
    return oracle.trial_value(x) if question == TRIAL else oracle.value(x)


def gradient_of(oracle: CountedOracle, y: Vector) -> Vector | None:
    """Return the gradient at y, or None for a kink."""
    answers = oracle.answers or Answers(y.size)
    found: Vector | None = answers.gradient(oracle, y)
    return found
