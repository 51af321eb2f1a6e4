"""The function in question, as a check asks it: copies go out, finite numbers come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.errors import GoldsteinError, InputError, InputTypeError
from goldstein.checker.layout import Layout, flattened, put_together

#: f among the functions of a problem; components of the constraints are counted from 0.
OBJECTIVE = -1


class BlackBox:
    """`fun(x, *args)` and `jac(x, *args)`, or one `fun` that returns both, over a vector.

    Parameters
    ----------
    fun : callable
        Returns f(x), or the pair (f(x), gradient) when `jac` is True.
    jac : callable or True
    args : sequence
    layout : list, optional
        The layout of the points that both are written for; a vector by default.
    """

    def __init__(
        self, fun: Any, jac: Any, args: Sequence[Any] = (), layout: Layout | None = None
    ) -> None:
        self.fun, self.jac, self.args, self.layout = fun, jac, tuple(args), layout
        # One call answers both questions at a point: the pair is kept as a whole.
        self._last: tuple[bytes, tuple[Any, Any]] = b"", (None, None)

    def _call(self, function: Any, x: Vector) -> Any:
        return function(x if self.layout is None else put_together(self.layout, x), *self.args)

    def _both(self, x: Vector) -> tuple[Any, Any]:
        key = x.tobytes()  # before anybody writes into x
        if self._last[0] != key:
            answer = self._call(self.fun, x)
            if not (isinstance(answer, tuple | list) and len(answer) == 2):
                raise InputTypeError(
                    "jac=True says that the function returns a pair (value, gradient), but it "
                    f"returned {type(answer).__name__}; return both, or pass jac=your_gradient."
                )
            # A buffer that the user's code reuses must not change under us.
            self._last = key, (answer[0], np.array(self._flat(answer[1])))
        return self._last[1]

    def _flat(self, gradient: Any) -> Any:
        if self.layout is None:
            return gradient
        return flattened(gradient, self.layout, "the gradient")

    def value(self, x: Vector) -> Any:
        return self._both(x)[0] if self.jac is True else self._call(self.fun, x)

    def gradient(self, y: Vector) -> Any:
        return self._both(y)[1] if self.jac is True else self._flat(self._call(self.jac, y))


class Asked:
    """A function with `value` and `gradient`, whose answers are looked at before they are used."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.has_value: bool = getattr(function, "has_value", True)
        #: The name of a precision below float64 in which gradients arrive.
        self.coarse = ""

    def value(self, x: Vector) -> float:
        raw = np.asarray(self._answer(self.function.value, x))
        if raw.size != 1 or raw.dtype.kind not in "fiub" or not np.isfinite(raw).all():
            raise InputError(f"a value is {str(raw)[:40]}, expected one finite number.")
        return float(raw.reshape(()).item())

    def gradient(self, y: Vector) -> Vector:
        raw = np.asarray(self._answer(self.function.gradient, y))
        if raw.shape != y.shape or raw.dtype.kind not in "fiub" or not np.isfinite(raw).all():
            raise InputError(f"a gradient of shape {raw.shape} is not {y.size} finite numbers.")
        if raw.dtype.kind == "f" and raw.dtype.itemsize < 8:
            self.coarse = raw.dtype.name
        return np.array(raw, dtype=np.float64)

    def _answer(self, question: Callable[[Vector], Any], x: Vector) -> Any:
        try:
            return question(x.copy())
        except GoldsteinError:
            raise
        except Exception as failure:
            raise InputError(f"it raised {type(failure).__name__}: {failure}") from failure

    def smallest_ball(self, x: Vector) -> float:
        """Return the radius below which single precision does not tell points from x."""
        return 100 * 2.0**-24 * max(1.0, float(np.abs(x).max(initial=0.0))) if self.coarse else 0.0
