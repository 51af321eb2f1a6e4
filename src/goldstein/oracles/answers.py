"""What counts as an answer: one finite number, or one finite vector of the right shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg.blas import ddot

from goldstein.checker.arrays import Vector

#: What a value usually is.
_NUMBERS = (float, int)


class BadAnswer(Exception):
    """Says in words what is wrong with an answer; the guard adds the point and the call.

    `value` is the offending number where a value was not finite; `advice` says what to do, and is
    empty where that depends on the point.
    """

    def __init__(self, message: str, value: float | None = None, advice: str = "") -> None:
        super().__init__(message)
        self.value = value
        self.advice = advice


def as_value(raw: Any) -> float:
    """Return the answer of `value` as a finite float.

    Examples
    --------
    >>> as_value(np.array([2.0]))
    2.0
    """
    if not isinstance(raw, _NUMBERS):
        array = _as_array(raw, "value", "a number")
        if array.size != 1:
            raise BadAnswer(
                f"value has shape {array.shape}, expected a number",
                advice="Reduce it to one number, for example with .sum() or .mean().",
            )
        raw = array.reshape(()).item()
    answer = float(raw)
    if not math.isfinite(answer):
        raise BadAnswer(f"value is {answer}, expected a finite number", answer)
    return answer


def as_gradient(raw: Any, shape: tuple[int, ...]) -> Vector:
    """Return the answer of `gradient` as a new finite float64 vector."""
    return measured_gradient(raw, shape)[0]


def measured_gradient(raw: Any, shape: tuple[int, ...]) -> tuple[Vector, float]:
    """Return the answer of `gradient` as a new finite float64 vector, and its squared length.

    It is always a copy: a buffer that the user's code reuses must not change under us. The square
    may overflow.
    """
    array = raw
    if not (isinstance(raw, np.ndarray) and raw.dtype.kind in "fiub"):
        array = _as_array(raw, "gradient", "an array of numbers")
    if array.shape != shape:
        raise BadAnswer(
            f"gradient has shape {array.shape}, expected {shape}", advice=_reshape(array, shape)
        )
    answer: Vector = np.array(array, dtype=np.float64)
    # A finite sum of squares proves all entries finite in one pass, without a temporary; BLAS
    # itself keeps silent about an overflow.
    square: float = ddot(answer, answer)
    if not math.isfinite(square) and not np.isfinite(answer).all():
        bad = int(np.flatnonzero(~np.isfinite(answer))[0])
        raise BadAnswer(f"gradient is {answer[bad]} at coordinate {bad}")
    return answer, square


def too_long(gradient: Vector, longest: float) -> BadAnswer:
    """Say that a search cannot compute with this gradient."""
    size = float(np.abs(gradient).max())
    return BadAnswer(
        f"gradient has entries of size {size:.3g}",
        advice=(
            f"A search squares them, and squares of numbers beyond {longest:g} overflow in "
            "float64: divide the function by a constant."
        ),
    )


def _as_array(raw: Any, what: str, expected: str) -> np.ndarray[Any, Any]:
    """Return the answer as an array of real numbers, or say what it is instead."""
    try:
        array = np.asarray(raw)
    except (TypeError, ValueError, RuntimeError):
        array = None
    if array is None or array.dtype.kind not in "fiub":
        raise BadAnswer(
            f"{what} is {_kind(raw)}, expected {expected}", advice=_convert(raw, array, what)
        )
    return array


def _kind(raw: Any) -> str:
    if raw is None:
        return "None (a missing return?)"
    if _is_torch(raw):
        return "a torch tensor"
    return f"an array of {raw.dtype}" if isinstance(raw, np.ndarray) else type(raw).__name__


def _is_torch(raw: Any) -> bool:
    return type(raw).__module__.partition(".")[0] == "torch"


def _convert(raw: Any, array: np.ndarray[Any, Any] | None, what: str) -> str:
    """What to do about an answer that is no array of real numbers."""
    if raw is None:
        return f"End the function with `return` and its {what}."
    if isinstance(raw, tuple | list) and len(raw) == 2 and _ndim(raw[0]) == 0 < _ndim(raw[1]):
        return (
            "It returns a pair (value, gradient): pass that function as fun with jac=True."
            if what != "value"
            else "It returns a pair (value, gradient): pass jac=True and no other gradient."
        )
    if _is_torch(raw):
        return (
            "Differentiate torch functions with goldstein.torch.oracle, or return "
            f"{'value.item()' if what == 'value' else 'gradient.detach().cpu().numpy()'}."
        )
    if hasattr(raw, "toarray"):
        return "Make it dense: return it with .toarray().ravel()."
    if array is not None and array.dtype.kind == "c":
        return "Return a real number: take .real where the imaginary part is rounding alone."
    if array is not None and array.dtype.kind == "O" and array.size:
        entries = {type(entry).__name__ for entry in array.ravel()[:1000]} - {"float", "int"}
        return f"Convert it to floats; it holds {' and '.join(sorted(entries)) or 'numbers'}."
    return "Convert it to floats: float(...) or np.array(..., dtype=float)."


def _reshape(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> str:
    """What to do about a gradient of the wrong shape."""
    d = math.prod(shape)
    if array.size == d and array.ndim:
        return "It is a row or a column: return it with .ravel()."
    if array.size == d:
        return "Return an array with one entry: np.array([g])."
    if array.shape == (d, d):
        return "That is a matrix: a Hessian, or the Jacobian of a vector; fun must be one number."
    if array.ndim == 0:
        return f"Return one entry for each of the {d} variables."
    return f"x has {d} entries, and the gradient one for each; is the point of the right length?"


def _ndim(raw: Any) -> int:
    try:
        return np.ndim(raw)
    except (TypeError, ValueError, RuntimeError):
        return 1
