"""A function whose answers are kept in a journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.oracles.answers import BadAnswer, as_gradient, as_value
from goldstein.oracles.base import Oracle, Wrapper
from goldstein.storage.journal import Journal


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
        try:
            return float(self.journal.asked("value", x, self._value, _is_value)[0])
        except _Useless as answer:
            return answer.raw  # type: ignore[no-any-return]

    def gradient(self, y: Vector) -> Vector:
        try:
            return self.journal.asked(
                "gradient", y, lambda z: _checked(self.inner.gradient(z), z.shape), of_size(y.size)
            )
        except _Useless as answer:
            return answer.raw  # type: ignore[no-any-return]

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        draw = repr(rng.bit_generator.state).encode()
        try:
            return self.journal.asked(
                "sample", x, lambda z: _checked(self.inner.sample(z, rng), z.shape),
                of_size(x.size), draw,
            )  # fmt: skip
        except _Useless as answer:
            return answer.raw  # type: ignore[no-any-return]

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
    coarse = isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize < 8
    return answer.astype(dtype) if coarse else answer
