"""Oracles made from plain callables, with SciPy's conventions for `jac` and `args`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.function import BlackBox
from goldstein.checker.layout import Layout, is_vector, put_together, shown, taken_apart
from goldstein.errors import InputTypeError
from goldstein.oracles.base import Oracle, name_of
from goldstein.oracles.finite_sum import as_stochastic

#: What `jac` may be instead of a gradient: SciPy's names for differences of values.
DIFFERENCES = ("2-point", "3-point")


def flat_point(point: Any, name: str, exact: bool = False) -> tuple[Layout, Vector]:
    """Return the layout of a point, and its numbers; refuse to round them where `exact`.

    Examples
    --------
    >>> layout, flat = flat_point({"b": 1.0, "W": np.ones((2, 2))}, "x0")
    >>> flat
    array([1., 1., 1., 1., 1.])
    >>> put_together(layout, flat)["W"].shape
    (2, 2)
    """
    layout, arrays = taken_apart(point, name, exact)
    return layout, np.concatenate([np.zeros(0), *(array.ravel() for array in arrays)])


def callback_of_layout(user: Callable[..., Any], layout: Layout) -> Callable[..., Any]:
    """Return a callback that hands over points as the user wrote them."""
    try:
        modern = "intermediate_result" in inspect.signature(user).parameters
    except (TypeError, ValueError):
        modern = False
    if not modern:
        return lambda x: user(put_together(layout, x))
    return lambda intermediate_result: user(
        intermediate_result=replace(
            intermediate_result, x=put_together(layout, intermediate_result.x)
        )
    )


class _Called(BlackBox, Oracle):
    """A user's callable, by its own name; what it answers is left to the guard to judge."""

    @property
    def name(self) -> str:
        return name_of(self.fun)

    def _both(self, x: Vector) -> tuple[Any, Any]:
        key, last = x.tobytes(), self._last  # as a whole: threads may ask
        if last[0] != key:
            answer = self._call(self.fun, x)
            if not (isinstance(answer, tuple | list) and len(answer) == 2):
                raise InputTypeError(
                    f"jac=True says that {self.name} returns a pair (value, gradient), but it "
                    f"returned {type(answer).__name__}; return both, or pass jac=your_gradient."
                )
            # A buffer that the user's code reuses must not change under us.
            raw = self._flat(answer[1])
            gradient = raw.copy() if isinstance(raw, np.ndarray) else raw
            last = self._last = key, (answer[0], gradient)
        return last[1]


class FunctionOracle(_Called):
    """A black box: `fun(x, *args)` and `jac(x, *args)`, or one `fun` that returns both.

    Parameters
    ----------
    fun : callable
        Returns f(x), or the pair (f(x), gradient) when `jac` is True.
    jac : callable or True
        Returns the gradient.
    args : sequence
        Extra arguments handed to both.
    layout : list, optional
        The layout of the points that both are written for; a vector by default.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = FunctionOracle(lambda x: np.abs(x).sum(), np.sign)
    >>> oracle.value(np.array([1.0, -2.0]))
    np.float64(3.0)
    """

    def __init__(
        self, fun: Callable[..., Any], jac: Callable[..., Any] | bool, args: Sequence[Any] = (),
        layout: Layout | None = None,
    ) -> None:  # fmt: skip
        super().__init__(fun, jac, args, layout)
        if callable(jac) and not self.args and layout is None:
            # Nothing stands between the guard and the user's functions.
            self.value, self.gradient = fun, jac  # type: ignore[method-assign]


class ValueOracle(_Called):
    """A function of which only values can be had.

    Parameters
    ----------
    fun : callable or Oracle
    args : sequence
        Extra arguments.
    layout : list, optional
        As in `FunctionOracle`.
    """

    has_gradient = False

    def __init__(self, fun: Any, args: Sequence[Any] = (), layout: Layout | None = None) -> None:
        super().__init__(fun, False, args, layout)
        if isinstance(fun, Oracle):
            self.dim, self.value = fun.dim, fun.value  # type: ignore[method-assign]
        elif not self.args and layout is None:
            self.value = fun  # type: ignore[method-assign]

    @property
    def name(self) -> str:
        return self.fun.name if isinstance(self.fun, Oracle) else super().name

    def gradient(self, y: Vector) -> Vector:
        raise InputTypeError(f"of {self.name} only values can be had; its gradient was asked for.")


def as_values(
    fun: Oracle | Callable[..., Any], args: Sequence[Any] = (), layout: Layout | None = None
) -> Oracle:
    """Return the values of `fun` as an Oracle over a vector; gradients it may have stay unasked."""
    args = args if isinstance(args, tuple | list) else (args,)
    layout = None if layout is None or is_vector(layout) else layout
    if isinstance(fun, Oracle):
        if args or layout is not None or not fun.has_value:
            raise InputTypeError(
                f"{fun.name} is an oracle: it takes one vector and no args, and must have values."
            )
    elif not callable(fun):
        raise InputTypeError(
            f"fun must be a callable or a goldstein.Oracle, got {type(fun).__name__}."
        )
    return ValueOracle(fun, args, layout)


def values_of(fun: Any, jac: Any, args: Sequence[Any] = (), layout: Layout | None = None) -> Oracle:
    """Return the values of what the user gave; a gradient that comes with them is left alone."""
    if jac is True or callable(jac):
        return ValueOracle(as_oracle(fun, jac, args, layout))
    return as_values(fun, args, layout)


def as_oracle(
    fun: Oracle | Callable[..., Any],
    jac: Callable[..., Any] | bool | None = None,
    args: Sequence[Any] = (),
    layout: Layout | None = None,
    like: Vector | None = None,
) -> Oracle:
    """Return `fun` as an Oracle over a vector, or explain what is missing.

    `layout` says how the vector is laid out in the point that `fun` and `jac` know. Code without a
    gradient is traced, where `like` says how long the vector is.
    """
    if not isinstance(args, tuple | list):
        args = (args,)
    layout = None if layout is None or is_vector(layout) else layout
    plain = layout is None or isinstance(fun, Oracle) or not callable(fun)
    noisy = as_stochastic(fun, jac) if plain else None
    if noisy is not None and not args:
        return noisy
    if isinstance(fun, Oracle):
        if jac is not None or args:
            raise InputTypeError(
                f"fun is already an oracle ({fun.name}) and brings its own gradient; "
                "drop jac and args."
            )
        if layout is not None:
            raise InputTypeError(
                f"{fun.name} is an oracle over one vector, but the point has the layout "
                f"{shown(layout)}; pass a vector."
            )
        return fun
    if not callable(fun):
        raise InputTypeError(
            f"fun must be a callable, a goldstein.Oracle or a goldstein.Expression, "
            f"got {type(fun).__name__}."
        )
    if jac is True or callable(jac):
        return FunctionOracle(fun, jac, args, layout)
    why = ""
    if jac is None and like is not None:
        # From above: a function of code is an expression.
        tracing = importlib.import_module("goldstein.calculus.tracing")
        try:
            traced: Oracle = tracing.traced_oracle(fun, args, like, layout)
            return traced
        except tracing.TraceError as refusal:
            why = f" None could be derived from the code of fun: {refusal}"
    raise InputTypeError(
        f"no gradient: jac is {jac!r}.{why} Pass jac=your_gradient, or jac=True if fun returns "
        "(value, gradient); for automatic differentiation see goldstein.torch.oracle and "
        "goldstein.jax.oracle. Where there are only values: jac='2-point' or method='values', and "
        "what is proved is then statistical."
    )
