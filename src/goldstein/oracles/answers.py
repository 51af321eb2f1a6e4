"""What counts as an answer: one finite number, or one finite vector of the right shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg.blas import ddot

from goldstein.oracles.base import Vector


class BadAnswer(Exception):
    """Says in words what is wrong with an answer; the guard adds the point and the call.

    `value` is the offending number where a value was not finite.
    """

    def __init__(self, message: str, value: float | None = None) -> None:
        super().__init__(message)
        self.value = value


def as_value(raw: Any) -> float:
    """Return the answer of `value` as a finite float.

    Examples
    --------
    >>> as_value(np.array([2.0]))
    2.0
    """
    if not isinstance(raw, float | int):
        array = np.asarray(raw)
        if array.size != 1:
            raise BadAnswer(f"value has shape {array.shape}, expected a number")
        if array.dtype.kind not in "fiub":
            raise BadAnswer(f"value is {_kind(raw)}, expected a number")
        raw = array.reshape(()).item()
    answer = float(raw)
    if not math.isfinite(answer):
        raise BadAnswer(f"value is {answer}, expected a finite number", answer)
    return answer


def as_gradient(raw: Any, shape: tuple[int, ...]) -> Vector:
    """Return the answer of `gradient` as a new finite float64 vector.

    It is always a copy: a buffer that the user's code reuses must not change under us.
    """
    array = raw
    if not isinstance(raw, np.ndarray):
        try:
            array = np.asarray(raw)
        except (TypeError, ValueError, RuntimeError):
            raise BadAnswer(f"gradient is {_kind(raw)}, expected an array of numbers") from None
    if array.dtype.kind not in "fiub":
        raise BadAnswer(f"gradient is {_kind(raw)}, expected an array of numbers")
    if array.shape != shape:
        raise BadAnswer(f"gradient has shape {array.shape}, expected {shape}")
    answer: Vector = np.array(array, dtype=np.float64)
    # A finite sum of squares proves all entries finite in one pass, without a temporary; BLAS
    # itself keeps silent about an overflow.
    if not math.isfinite(ddot(answer, answer)) and not np.isfinite(answer).all():
        bad = int(np.flatnonzero(~np.isfinite(answer))[0])
        raise BadAnswer(f"gradient is {answer[bad]} at coordinate {bad}")
    return answer


def _kind(raw: Any) -> str:
    if raw is None:
        return "None (a missing return?)"
    dtype = getattr(raw, "dtype", None)
    return type(raw).__name__ if dtype is None else f"an array of {dtype}"
