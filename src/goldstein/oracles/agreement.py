"""Whoever states a claim compares values with gradients as whoever verifies it: more strictly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.blackbox.differences import COARSEST, HEAVY, Differences
from goldstein.checker.constrained.box import Box, as_box
from goldstein.errors import (
    ContradictedError,
    NotCertifiableError,
    NotDeterministicError,
    UnresolvedError,
    WrongGradientError,
)
from goldstein.oracles.base import Oracle
from goldstein.oracles.counted import CountedOracle

#: What is stated rests on steps that are shorter than a check wants them.
STRICTLY = COARSEST / 4.0

#: Nothing is stated where points have to be displaced by more than this part of delta.
COARSE = 2.0**-7

#: Where f resolves no less than this part of delta a look may have been lucky.
FINE = 2.0**-10

#: Where values show nothing, the step along which gradients change in proportion is found by luck:
#: a check may find one that is so many times as long.
BY_LUCK = 16.0

#: Looks at each heavy point, so many times as far as a check begins: no kink may be as near.
LOOKS, WIDER = 3, 2.0

#: From this many variables on memory is worth saving.
FEW = 1000

Known = list[tuple[Vector, Vector]]


class _Trials:
    """A counted function at points that may be outside its domain; around one x, each once."""

    def __init__(self, oracle: CountedOracle, x: Vector) -> None:
        here = x.tobytes()
        if oracle.looked is None or oracle.looked[0] != here:
            oracle.looked = here, {}
        self._told = oracle.looked[1]
        self._oracle, self.known_value = oracle, oracle.known_value
        self.size = abs(oracle.last_value) if oracle.values else None
        self.coarse = oracle.coarse

    def value(self, y: Vector) -> float:
        return float(self._once(self._oracle.trial_value, y))

    def gradient(self, y: Vector) -> Vector:
        found: Vector = self._once(self._oracle.gradient, y)
        return found

    def _once(self, ask: Callable[[Vector], Any], y: Vector) -> Any:
        key = ask.__name__, y.tobytes()
        if key in self._told:
            return self._told[key]
        found = ask(y)
        if y.size < FEW:
            self._told[key] = found
        return found


def _differences(
    oracle: CountedOracle, x: Vector, delta: float, seed: int, box: Box | None
) -> Differences | None:
    """None where there is nothing to compare, or no need: gradients of a formula are enclosed."""
    if not (oracle.has_value and oracle.has_gradient) or _is_enclosed(oracle.plain):
        return None
    return Differences(_Trials(oracle, x), x, delta, box or as_box(None, x.size), seed)


def _is_enclosed(f: Any) -> bool:
    """Does a check read the formula of f, whatever float64 makes of it?"""
    if f.is_written:
        with suppress(NotCertifiableError):
            return f.program() is not None
    return False


def resolution_of(
    oracle: CountedOracle, x: Vector, delta: float, seed: int, known: Known, box: Box | None = None
) -> Vector | float:
    """Return steps that f resolves near x, for each coordinate; 0 where nothing is known.

    Raises
    ------
    ContradictedError, UnresolvedError
    """
    looked = _differences(oracle, x, delta, seed, box)
    if looked is None:
        return 0.0
    found = looked.resolution(known, STRICTLY, HEAVY)
    if not looked.clear or found.max() > FINE * delta:
        # With longer steps a check may see what shorter ones do not show.
        again = Differences(looked.f, x, delta, looked.box, seed + 1)
        found = np.maximum(found, again.resolution(known))
        steps = [(y, g, WIDER * again.finest(y, g)) for y, g in known[:HEAVY] for _ in range(LOOKS)]
        if not (looked.clear and again.clear):
            found = np.maximum(found, np.minimum(BY_LUCK * found, COARSE * delta))
        elif not all(again.agree(*step)[0] for step in steps):
            raise UnresolvedError(STRICTLY * delta)
    if found.max() > COARSE * delta:
        raise UnresolvedError(STRICTLY * delta)
    return found


def required_resolution(
    oracle: CountedOracle, x: Vector, delta: float, seed: int, known: Known
) -> Vector | float:
    """Return the same; where values contradict gradients, say who is to blame.

    Raises
    ------
    NotDeterministicError, WrongGradientError, UnresolvedError
    """
    try:
        return resolution_of(oracle, x, delta, seed, known)
    except ContradictedError as found:
        if found.gap:
            raise NotDeterministicError(oracle.name, found.gap) from None
        raise WrongGradientError(oracle.name) from None


def gradient_is_wrong(
    oracle: Oracle, x: Vector, radius: float, seed: int, box: Box | None = None
) -> bool:
    """Decide whether differences of values contradict the gradients at random points around x.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.oracles import FunctionOracle
    >>> right = FunctionOracle(lambda x: np.abs(x).sum(), np.sign)
    >>> wrong = FunctionOracle(lambda x: np.abs(x).sum(), lambda x: 2 * np.sign(x))
    >>> [gradient_is_wrong(f, np.array([1.0, 2.0]), 0.1, 0) for f in (right, wrong)]
    [False, True]
    """
    counted = oracle if isinstance(oracle, CountedOracle) else CountedOracle(oracle)
    looked = _differences(counted, x, radius, seed, box)
    if looked is not None:
        try:
            looked.at_random()
        except ContradictedError:
            return True
    return False
