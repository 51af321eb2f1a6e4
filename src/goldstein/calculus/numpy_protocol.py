"""NumPy's functions on expressions: those that have a meaning here, and words for the others."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from goldstein.calculus.atoms import (
    absolute,
    largest,
    maximum,
    minimum,
    norm1,
    norm2,
    smallest,
    softplus,
    square,
)
from goldstein.calculus.expression import Expression
from goldstein.calculus.operators import concatenate, stack, sum_entries
from goldstein.errors import InputError, InputTypeError


def _binary(name: str) -> Callable[[Any, Any], Any]:
    """Apply an operator with the expression's own method: NumPy's would come back here."""

    def apply(a: Any, b: Any) -> Any:
        if isinstance(a, Expression):
            return getattr(a, f"__{name}__")(b)
        return getattr(b, f"__r{name}__")(a)

    return apply


def _log_sum_exp(a: Any, b: Any) -> Expression:
    total: Expression = softplus(_binary("sub")(b, a)) + a
    return total


UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: _binary("add"),
    np.subtract: _binary("sub"),
    np.multiply: _binary("mul"),
    np.divide: _binary("truediv"),
    np.matmul: _binary("matmul"),
    np.power: _binary("pow"),
    np.negative: lambda a: -a,
    np.positive: lambda a: a,
    np.absolute: absolute,
    np.fabs: absolute,
    np.square: square,
    np.maximum: maximum,
    np.minimum: minimum,
    np.logaddexp: _log_sum_exp,
}
_COMPARISONS = frozenset(
    {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
)


def _norm(u: Expression, ord: Any = None) -> Expression:
    if ord in (None, 2) and (ord is None or u.ndim == 1):
        return norm2(u)
    if u.ndim == 1 and ord == 1:
        return norm1(u)
    if u.ndim == 1 and ord == math.inf:
        return largest(absolute(u))
    raise InputError(f"no norm of order {ord!r} for shape {u.shape}; there are 1, 2 and inf.")


def _dot(a: Any, b: Any) -> Any:
    return _binary("matmul")(a, b) if np.ndim(a) and np.ndim(b) else _binary("mul")(a, b)


def _clip(u: Any, low: Any = None, high: Any = None) -> Expression:
    raised = u if low is None else maximum(u, low)
    return raised if high is None else minimum(raised, high)


def _difference(u: Expression, n: int = 1) -> Expression:
    if u.ndim != 1:
        raise InputError(f"diff takes a vector, got shape {u.shape}; use slices.")
    for _ in range(n):
        u = u[1:] - u[:-1]
    return u


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: sum_entries,
    np.mean: lambda u: u.mean(),
    np.max: largest,
    np.min: smallest,
    np.dot: _dot,
    np.vdot: lambda a, b: _dot(np.ravel(a), np.ravel(b)),
    np.linalg.norm: _norm,
    np.clip: _clip,
    np.diff: _difference,
    np.reshape: lambda u, shape: u.reshape(shape),
    np.ravel: lambda u: u.reshape(-1),
    np.transpose: lambda u: u.T,
    np.stack: stack,
    np.concatenate: concatenate,
    np.shape: lambda u: u.shape,
    np.ndim: lambda u: u.ndim,
    np.size: lambda u: u.size,
}


def apply_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Answer `ufunc(*inputs)`, some of which are expressions."""
    if ufunc in _COMPARISONS:
        next(a for a in inputs if isinstance(a, Expression))._no_order(None)
    if ufunc not in UFUNCS or method != "__call__" or options:
        _refuse(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"), options)
    return UFUNCS[ufunc](*inputs)


def apply_function(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Answer a function of NumPy that is no ufunc."""
    name = f"{function.__module__}.{function.__name__}"
    if function not in FUNCTIONS:
        _refuse(name, {})
    try:
        return FUNCTIONS[function](*args, **options)
    except TypeError as failure:
        if isinstance(failure, InputTypeError):
            raise
        _refuse(name, options)


def _refuse(name: str, options: dict[str, Any]) -> NoReturn:
    known = [u.__name__ for u in UFUNCS] + [f.__name__ for f in FUNCTIONS]
    what = f"{name} with {', '.join(options)}" if options else name
    raise InputTypeError(
        f"{what} is not known for expressions, whose kinks must be known. There are "
        f"{', '.join(sorted(set(known)))} and the atoms of goldstein; a smooth function of your "
        "own is smooth_function(u, value, derivative)."
    )


#: Modules whose products ask for an array of numbers instead of leaving `@` to the expression.
_INSTEAD = {
    "scipy.sparse.linalg._interface": "for a LinearOperator A write gs.linear(A, u)",
    "pandas.core.frame": "for a DataFrame write frame.to_numpy() @ u",
}


def as_object(expression: Any, dtype: Any) -> Any:
    """Return an array of one object, by which SciPy's sparse matrices know that `@` is ours.

    Those who would go on with it as if it were numbers are told what to write, before they fail
    with words of their own.
    """
    caller = sys._getframe(2).f_globals.get("__name__", "")
    if caller in _INSTEAD:
        raise InputTypeError(
            f"an expression is a function, not an array of numbers: {_INSTEAD[caller]}."
        )
    if dtype is not None and np.dtype(dtype) != object:
        raise InputTypeError(
            f"an expression is a function, not an array of {np.dtype(dtype)} numbers: F.value(x) "
            "is its value at a point x."
        )
    box = np.empty((), dtype=object)
    box[()] = expression
    return box


def refuse_torch(function: Any) -> NoReturn:
    """PyTorch's functions know tensors only."""
    name = getattr(function, "__name__", str(function))
    raise InputTypeError(
        f"torch.{name} is not known for expressions; write it with NumPy's functions and the atoms "
        "of goldstein (np.abs, np.maximum, gs.relu, ...), or keep the function in PyTorch and pass "
        "goldstein.torch.oracle(fn, params)."
    )


__all__ = ["apply_function", "apply_ufunc", "as_object", "refuse_torch"]
