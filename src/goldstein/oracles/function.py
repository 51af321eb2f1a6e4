"""Oracles made from plain callables, with SciPy's conventions for `jac` and `args`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputTypeError
from goldstein.oracles.base import Oracle
from goldstein.oracles.finite_sum import as_stochastic
from goldstein.oracles.structure import Structure

#: What `jac` may be instead of a gradient: SciPy's names for differences of values.
DIFFERENCES = ("2-point", "3-point")


class ValueOracle(Oracle):
    """A function of which only values can be had.

    Parameters
    ----------
    fun : callable or Oracle
    args : sequence
        Extra arguments.
    """

    has_gradient = False

    def __init__(self, fun: Callable[..., Any] | Oracle, args: Sequence[Any] = ()) -> None:
        self.fun, self.args = fun, tuple(args)
        if isinstance(fun, Oracle):
            self.dim = fun.dim

    @property
    def name(self) -> str:
        if isinstance(self.fun, Oracle):
            return self.fun.name
        return getattr(self.fun, "__name__", type(self.fun).__name__)

    def value(self, x: Vector) -> Any:
        return self.fun.value(x) if isinstance(self.fun, Oracle) else self.fun(x, *self.args)

    def gradient(self, y: Vector) -> Vector:
        raise InputTypeError(f"of {self.name} only values can be had; its gradient was asked for.")


def as_values(
    fun: Oracle | Callable[..., Any], args: Sequence[Any] = (), structure: Structure | None = None
) -> Oracle:
    """Return the values of `fun` as an Oracle over a vector; gradients it may have stay unasked."""
    args = args if isinstance(args, tuple | list) else (args,)
    if isinstance(fun, Oracle):
        if args or structure is not None or not fun.has_value:
            raise InputTypeError(
                f"{fun.name} is an oracle: it takes one vector and no args, and must have values."
            )
        return ValueOracle(fun)
    if not callable(fun):
        raise InputTypeError(
            f"fun must be a callable or a goldstein.Oracle, got {type(fun).__name__}."
        )
    return ValueOracle(fun if structure is None else structure.around(fun, None)[0], args)


def values_of(
    fun: Any, jac: Any, args: Sequence[Any] = (), structure: Structure | None = None
) -> Oracle:
    """Return the values of what the user gave; a gradient that comes with them is left alone."""
    if jac is True or callable(jac):
        return ValueOracle(as_oracle(fun, jac, args, structure))
    return as_values(fun, args, structure)


class FunctionOracle(Oracle):
    """A black box: `fun(x, *args)` and `jac(x, *args)`, or one `fun` that returns both.

    Parameters
    ----------
    fun : callable
        Returns f(x), or the pair (f(x), gradient) when `jac` is True.
    jac : callable or True
        Returns the gradient.
    args : sequence
        Extra arguments handed to both.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = FunctionOracle(lambda x: np.abs(x).sum(), np.sign)
    >>> oracle.value(np.array([1.0, -2.0]))
    np.float64(3.0)
    """

    def __init__(
        self, fun: Callable[..., Any], jac: Callable[..., Any] | bool, args: Sequence[Any] = ()
    ) -> None:
        self.fun = fun
        self.args = tuple(args)
        self.jac = jac
        # With jac=True one call answers both questions at a point: keep the last pair, together
        # with its point, since threads may ask.
        self._last: tuple[bytes, tuple[float, Vector]] | None = None

    @property
    def name(self) -> str:
        return getattr(self.fun, "__name__", type(self.fun).__name__)

    def _both(self, x: Vector) -> tuple[float, Vector]:
        key, last = x.tobytes(), self._last
        if last is None or key != last[0]:
            answer = self.fun(x, *self.args)
            if not (isinstance(answer, tuple | list) and len(answer) == 2):
                raise InputTypeError(
                    f"jac=True says that {self.name} returns a pair (value, gradient), but it "
                    f"returned {type(answer).__name__}; return both, or pass jac=your_gradient."
                )
            # A gradient buffer the user reuses must not change under us. Nothing is converted:
            # the guard wants to see what it is.
            gradient = answer[1].copy() if isinstance(answer[1], np.ndarray) else answer[1]
            last = self._last = key, (answer[0], gradient)
        return last[1]

    def value(self, x: Vector) -> float:
        if self.jac is True:
            return self._both(x)[0]
        answer: float = self.fun(x, *self.args)
        return answer

    def gradient(self, y: Vector) -> Vector:
        if self.jac is True:
            gradient = self._both(y)[1]
            return gradient.copy() if isinstance(gradient, np.ndarray) else gradient
        assert callable(self.jac)
        answer: Vector = self.jac(y, *self.args)
        return answer


def as_oracle(
    fun: Oracle | Callable[..., Any],
    jac: Callable[..., Any] | bool | None = None,
    args: Sequence[Any] = (),
    structure: Structure | None = None,
) -> Oracle:
    """Return `fun` as an Oracle over a vector, or explain what is missing.

    `structure` says how the vector is laid out in the point that `fun` and `jac` know.
    """
    if not isinstance(args, tuple | list):
        args = (args,)
    if structure is not None and not isinstance(fun, Oracle) and callable(fun):
        fun, jac = structure.around(fun, jac)
    noisy = as_stochastic(fun, jac)
    if noisy is not None and not args:
        return noisy
    if isinstance(fun, Oracle):
        if jac is not None or args:
            raise InputTypeError(
                f"fun is already an oracle ({fun.name}) and brings its own gradient; "
                "drop jac and args."
            )
        if structure is not None:
            raise InputTypeError(
                f"{fun.name} is an oracle over one vector, but the point has the layout "
                f"{structure}; pass a vector."
            )
        return fun
    if not callable(fun):
        raise InputTypeError(
            f"fun must be a callable, a goldstein.Oracle or a goldstein.Expression, "
            f"got {type(fun).__name__}."
        )
    if jac is True or callable(jac):
        return FunctionOracle(fun, jac, args)
    raise InputTypeError(
        f"no gradient: jac is {jac!r}. Pass jac=your_gradient, or jac=True if fun returns "
        "(value, gradient); for automatic differentiation see goldstein.torch.oracle and "
        "goldstein.jax.oracle. Where there are only values: jac='2-point' or method='values', and "
        "what is proved is then statistical."
    )
