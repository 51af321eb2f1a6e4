"""NumPy's functions on expressions: those that have a meaning here, and words for the others."""

import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from goldstein.calculus import atoms, operators
from goldstein.calculus.expression import Expression, holds_expressions
from goldstein.errors import InputTypeError

#: Functions that only move entries: they are called with places instead. By name, how many of the
#: arguments, or entries of the first one, are moved.
ONE, MANY, ALL = 1, -1, -2
_MOVERS = {
    ONE: "reshape ravel transpose swapaxes moveaxis rollaxis roll flip fliplr flipud rot90 tile "
    "repeat take squeeze expand_dims broadcast_to diag diagonal diagflat tril triu split "
    "array_split hsplit vsplit atleast_1d atleast_2d atleast_3d delete pad resize take_along_axis "
    "compress",
    MANY: "concatenate stack hstack vstack dstack column_stack block",
    ALL: "meshgrid broadcast_arrays",
    2: "append",
}
MOVERS = {name: how for how, names in _MOVERS.items() for name in names.split()}


def _binary(name: str) -> Callable[[Any, Any], Any]:
    """Apply an operator with the expression's own method: NumPy's would come back here."""

    def apply(a: Any, b: Any) -> Any:
        if isinstance(a, Expression):
            return getattr(a, f"__{name}__")(b)
        return getattr(b, f"__r{name}__")(a)

    return apply


def _same(names: str) -> dict[Any, Callable[..., Any]]:
    """Functions of NumPy that are atoms of the same name."""
    return {getattr(np, name): getattr(atoms, name) for name in names.split()}


_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "matmul": "matmul",
    "power": "pow", "float_power": "pow",
}  # fmt: skip
UFUNCS: dict[Any, Callable[..., Any]] = {
    **{getattr(np, name): _binary(own) for name, own in _OPERATORS.items()},
    **_same("absolute square maximum minimum exp expm1 log log1p sin cos tan sinh cosh tanh arctan "
            "arcsinh sqrt reciprocal"),
    np.fabs: atoms.absolute, np.fmax: atoms.maximum, np.fmin: atoms.minimum,
    np.negative: operator.neg, **dict.fromkeys((np.positive, np.conjugate), operator.pos),
    np.logaddexp: lambda a, b: atoms.softplus(_binary("sub")(b, a)) + a,
    np.hypot: lambda *sides: atoms.sqrt(_binary("add")(*map(np.square, sides))),
    np.exp2: lambda a: atoms.power(2.0, a),
    np.log2: lambda a: atoms.log(a) / math.log(2.0),
    np.log10: lambda a: atoms.log(a) / math.log(10.0),
    **dict.fromkeys((np.deg2rad, np.radians), lambda a: a * (math.pi / 180.0)),
}  # fmt: skip
_COMPARISONS = frozenset(
    {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
)


def _dot(a: Any, b: Any) -> Any:
    return _binary("matmul")(a, b) if np.ndim(a) and np.ndim(b) else _binary("mul")(a, b)


def _clip(u: Any, low: Any = None, high: Any = None, **options: Any) -> Expression:
    low, high = options.get("min", low), options.get("max", high)
    raised = u if low is None else atoms.maximum(u, low)
    return raised if high is None else atoms.minimum(raised, high)


def _difference(u: Expression, n: int = 1, axis: int = -1) -> Expression:
    for _ in range(n):
        first = operators.moved([u], lambda p: np.delete(p[0], -1, axis))
        u = operators.moved([u], lambda p: np.delete(p[0], 0, axis)) - first
    return u


def _average(u: Any, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return u.mean(axis)
    if axis is not None and np.ndim(weights) == 1:
        weights = np.reshape(weights, [-1 if k == axis % np.ndim(u) else 1 for k in
                                       range(np.ndim(u))])  # fmt: skip
    return operators.sum_entries(u * weights, axis) / np.sum(weights * np.ones(np.shape(u)), axis)


def _cross(a: Any, b: Any) -> Any:
    turn = [[1, 2, 0], [2, 0, 1]]
    (a1, a2), (b2, b1) = ([c[..., p] for p in turn] for c in (a, b))
    return a1 * b1 - a2 * b2


def _accumulated(combine: Callable[[Any, Any], Any], u: Expression, axis: int = 0) -> Expression:
    columns = operators.moved([u], lambda p: list(np.moveaxis(p[0], axis, 0)))
    for k in range(1, len(columns)):
        columns[k] = combine(columns[k - 1], columns[k])
    return operators.moved(columns, lambda p: np.stack(p, axis))


def _convolve(a: Any, b: Any, mode: str = "full") -> Any:
    a, b = (c if isinstance(c, Expression) else np.asarray(c) for c in (a, b))
    n, m = np.size(a), np.size(b)
    low, size = {"full": (0, n + m - 1), "valid": (min(n, m) - 1, max(n, m) - min(n, m) + 1),
                 "same": ((min(n, m) - 1) // 2, max(n, m))}[mode]  # fmt: skip
    i, j = np.indices((n, m)).reshape(2, -1)
    table = (i + j == low + np.arange(size)[:, None]).astype(np.float64)
    return operators.linear(table, _binary("mul")(a[i], b[j]))


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: operators.sum_entries,
    np.mean: lambda u, axis=None, keepdims=False: u.mean(axis, keepdims),
    np.average: _average,
    np.max: lambda u, axis=None, keepdims=False: atoms.largest(u, axis=axis, keepdims=keepdims),
    np.min: lambda u, axis=None, keepdims=False: atoms.smallest(u, axis=axis, keepdims=keepdims),
    np.ptp: lambda u, axis=None: u.max(axis) - u.min(axis),
    **_same("var std sort median quantile"),
    np.prod: operators.product,
    np.cumsum: operators.cumulated,
    np.cumprod: lambda u, axis=0: _accumulated(_binary("mul"), u, axis),
    np.percentile: lambda u, q, *more, **options: atoms.quantile(u, q / 100.0, *more, **options),
    np.dot: _dot,
    np.inner: lambda a, b: _dot(a, b if np.ndim(b) < 2 else np.swapaxes(b, -1, -2)),
    np.outer: lambda a, b: operators.einsum("i,j->ij", np.ravel(a), np.ravel(b)),
    np.cross: _cross,
    np.trace: lambda u: np.diagonal(u).sum(),
    np.convolve: _convolve,
    np.einsum: operators.einsum,
    np.vdot: lambda a, b: _dot(np.ravel(a), np.ravel(b)),
    np.linalg.norm: atoms.norm,
    np.clip: _clip,
    np.diff: _difference,
    **{getattr(np, name): operator.attrgetter(name) for name in ("shape", "ndim", "size")},
    **dict.fromkeys((np.real, np.copy), operator.pos),
}

#: `ufunc.reduce`, `.accumulate`, `.outer`.
_REDUCED = {
    np.add: operators.sum_entries, np.maximum: atoms.largest, np.minimum: atoms.smallest,
    np.multiply: operators.product,
}  # fmt: skip


def apply_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Answer `ufunc(*inputs)`, some of which are expressions."""
    if ufunc in _COMPARISONS:
        next(a for a in inputs if isinstance(a, Expression))._no_order(None)
    options = {name: value for name, value in options.items() if value is not None}
    if method == "reduce" and ufunc in _REDUCED:
        return _REDUCED[ufunc](inputs[0], **{"axis": 0} | options)
    if method == "accumulate" and ufunc in UFUNCS and not options:
        return _accumulated(UFUNCS[ufunc], *inputs)
    if method == "outer" and ufunc in UFUNCS and not options:
        a, b = inputs
        return UFUNCS[ufunc](a.reshape(*np.shape(a), *[1] * np.ndim(b)), b)
    if ufunc not in UFUNCS or method != "__call__" or options:
        _refuse(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"), options)
    return UFUNCS[ufunc](*inputs)


def apply_function(function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Answer a function of NumPy that is no ufunc."""
    name = f"{function.__module__}.{function.__name__}"
    mover = MOVERS.get(function.__name__)
    try:
        if mover is not None and function.__module__ == "numpy":
            return _moved(function, mover, args, options)
        if function in FUNCTIONS:
            return FUNCTIONS[function](*args, **options)
    except TypeError as failure:
        if isinstance(failure, InputTypeError):
            raise
        _refuse(name, options)
    _refuse(name, {})


def _moved(function: Any, how: int, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Call a function that moves entries with places."""
    parts: list[Any] = list(args if how == ALL else args[0] if how == MANY else args[:how])
    rest = () if how == ALL else args[1 if how == MANY else how :]
    parts = [operators.stack(p) if holds_expressions(p) else p for p in parts]
    if how == MANY:
        return operators.moved(parts, lambda places: function(places, *rest, **options))
    return operators.moved(parts, lambda places: function(*places, *rest, **options))


def _refuse(name: str, options: dict[str, Any]) -> NoReturn:
    what = f"{name} with {', '.join(options)}" if options else name
    raise InputTypeError(
        f'{what} is not known for expressions, whose kinks must be known. The page "No gradient '
        "needed\" of the documentation lists NumPy's functions that are; a smooth function of your "
        "own is smooth_function(u, value, derivative), for anything else give a gradient."
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
        "goldstein.torch.oracle(fn, params), or goldstein.torch.trace(fn, params)."
    )
