"""A function whose answers are kept in a journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.oracles.base import Oracle, Wrapper
from goldstein.oracles.counted import BadAnswer, as_gradient, as_value, is_coarse
from goldstein.storage.journal import Fits, Journal, Question


class _Useless(Exception):
    """An answer that is not kept; the guard above says what is wrong with it."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self.raw = raw


class JournalOracle(Wrapper):
    """Answer from the journal what it knows, and the rest from the function, writing as we go.

    Parameters
    ----------
    inner : Oracle
    journal : Journal
    """

    def __init__(self, inner: Oracle, journal: Journal) -> None:
        super().__init__(inner)
        self.journal = journal

    def value(self, x: Vector) -> float:
        return self._asked("value", x, self._value, _is_value)

    def gradient(self, y: Vector) -> Vector:
        return self._asked("gradient", y, lambda z: _checked(self.inner.gradient(z), z.shape))

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        draw = repr(rng.bit_generator.state).encode()
        asked = lambda z: _checked(self.inner.sample(z, rng), z.shape)  # noqa: E731
        return self._asked("sample", x, asked, more=draw)

    def _asked(
        self, what: str, x: Vector, question: Question, fits: Fits | None = None, more: bytes = b""
    ) -> Any:
        try:
            answer = self.journal.asked(what, x, question, fits or of_size(x.size), more)
        except _Useless as useless:
            return useless.raw
        return float(answer[0]) if what == "value" else answer

    def _value(self, x: Vector) -> NDArray[np.float64]:
        raw = self.inner.value(x)
        try:
            return np.array([as_value(raw)])
        except BadAnswer as bad:
            if bad.value is None:
                raise _Useless(raw) from None
            return np.array([bad.value])  # a run may step back from such a point and go on


def _is_value(stored: Vector | None) -> bool:
    return stored is not None and stored.size == 1


def of_size(size: int) -> Callable[[Vector | None], bool]:
    """Return whether an answer can be derivatives, so many of them; or a kink."""
    return lambda stored: (
        stored is None or (stored.size == size and bool(np.isfinite(stored).all()))
    )


def _checked(raw: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a gradient as the guard would take it, in the precision in which it came."""
    try:
        answer = as_gradient(raw, shape)
    except BadAnswer:
        raise _Useless(raw) from None
    dtype = getattr(raw, "dtype", None)
    return answer.astype(dtype) if is_coarse(dtype) else answer
