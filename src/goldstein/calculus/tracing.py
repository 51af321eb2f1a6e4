"""`trace`: the expression that plain NumPy code computes, found by running it once.

The code runs with a `Traced` array in place of x. While it does, it is lent names: a copy of its
function sees `max`, `sum`, `float`, `math`, `np.zeros` and a few more that know traced arrays; the
user's module is not changed. What is found is compared with the code at many points. That they
agree is reported, and never called a proof: a claim is about the expression.

Equal parts of expressions, made twice, become one: what is the same is then seen to be.
"""

from __future__ import annotations

import builtins
import functools
import linecache
import math
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from goldstein.calculus import Expression, Variable, atoms, operators
from goldstein.calculus.conditions import Condition, where
from goldstein.calculus.expression import holds_expressions, in_order, numbered
from goldstein.calculus.numpy_protocol import MOVERS, apply_function, apply_ufunc
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.arrays import flint
from goldstein.checker.enclosed.irrational import LogSumExp, Smooth
from goldstein.checker.function import Layout, is_vector, put_together, taken_apart
from goldstein.errors import GoldsteinError, InputError, InputTypeError
from goldstein.numerics.streams import stream
from goldstein.oracles import FunctionOracle, Oracle

#: Longer arrays are compared by identity.
LONG = 4096


class Sharing:
    """Expressions so far, by what they are.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> w, same = Variable(2), Sharing()
    >>> same(w[0]) is same(w[0])
    True
    """

    def __init__(self) -> None:
        self._known: dict[int, Expression] = {}
        self._made: dict[Any, Expression] = {}

    def __call__(self, root: Expression) -> Expression:
        """Return the expression with its parts shared."""
        made: dict[int, Expression] = {}
        for e in in_order(root, lambda e: () if id(e) in self._known else e.args):
            if id(e) not in self._known:
                for a in e.args:
                    made.setdefault(id(a), self._known.get(id(a), a))
                same = all(made[id(a)] is a for a in e.args)
                args = tuple(id(made[id(a)]) for a in e.args)
                key = (type(e), e.kind, e.name, e.shape, args, _key(e.data)) if args else id(e)
                made[id(e)] = self._made.setdefault(key, e if same else e.rebuilt(made))
                # All that was seen is kept: its number stays its own.
                self._known |= {id(e): made[id(e)], id(made[id(e)]): made[id(e)]}
                made[id(made[id(e)])] = made[id(e)]
                self._made.setdefault(("kept", id(e)), e)
            made[id(e)] = self._known[id(e)]
        return made[id(root)]


def _key(data: Any) -> Any:
    if isinstance(data, tuple):
        return tuple(map(_key, data))
    if isinstance(data, np.ndarray):
        return (data.shape, data.tobytes()) if data.size <= LONG else id(data)
    return data


#: Points at which code and expression are compared; fewer if that takes longer than so many
#: seconds.
POINTS, SECONDS = 64, 0.5

#: Nodes beyond which a trace is given up.
LONGEST = 100_000


class TraceError(InputTypeError):
    """Code that cannot be read as an expression."""

    __module__ = "goldstein.errors"


#: What to write instead, by what was asked for.
_INSTEAD = {
    "bool": "chooses by value; write np.where(condition, a, b), np.maximum(a, b) or np.abs(a)",
    "index": "uses a value as an index; sort, max and median take the place of arg functions",
    "mask": "picks entries by value; write np.where(mask, a, 0.0).sum() for a sum over them",
    "round": "rounds: its value would jump",
    "number": "asks for the number in a traced array",
}


class _Trace:
    """One run of the code: its first refusal is kept, even if the code swallows it."""

    def __init__(self) -> None:
        self.refusal: TraceError | None = None
        self.shared = Sharing()

    def refuse(self, what: str) -> NoReturn:
        line = _users_line()
        self.refusal = self.refusal or TraceError(f"{line}{_INSTEAD.get(what, what)}.")
        raise self.refusal

    def wrap(self, value: Any) -> Any:
        if isinstance(value, Expression):
            return Traced(self.shared(value), self)
        if isinstance(value, list | tuple):
            return type(value)(map(self.wrap, value))
        return value

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function of expressions with traced arrays; a refusal names the line."""
        try:
            return self.wrap(
                function(*map(plain, args), **{k: plain(v) for k, v in options.items()})
            )
        except GoldsteinError as failure:
            if failure is self.refusal:
                raise
            self.refuse(str(failure).rstrip("."))


def plain(value: Any) -> Any:
    """Return what stands behind traced arrays."""
    if isinstance(value, Traced):
        return value.value
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return plain(value.tolist())
    return value


def _users_line() -> str:
    """Return the line of the user's code that is being run."""
    for frame, number in traceback.walk_stack(sys._getframe(2)):
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("goldstein.", "numpy", "functools")) or "_lent" in frame.f_globals:
            return _line(frame.f_code.co_filename, number)
    return ""


def _line(file: str, number: int) -> str:
    text = linecache.getline(file, number).strip()
    text = f"{text[:70]}..." if len(text) > 73 else text
    return f"line {number}: `{text}` " if text else f"line {number} "


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the code that is being traced: an expression, or numbers that may become one."""

    __array_priority__ = 1000.0

    def __init__(self, value: Any, trace: _Trace) -> None:
        self.value, self._trace = value, trace

    # --- NumPy -----------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", (None,))[0]
        found = self._ufunc(ufunc, method, inputs, options)
        if out is None or (isinstance(out, Traced) and not out.shape):
            return found  # NumPy's numbers cannot be written to, its arrays can
        if not isinstance(out, Traced):
            self._trace.refuse("writes into an array of numbers; write a = a + b instead of a += b")
        out[...] = found
        return out

    def _ufunc(self, ufunc: Any, method: str, inputs: Any, options: dict[str, Any]) -> Any:
        known = list(map(plain, inputs))
        if not any(isinstance(a, Expression | list | tuple | Condition) for a in known):
            return getattr(ufunc, method)(*known, **options)
        if ufunc in COMPARED and method == "__call__":
            return Condition.compare(COMPARED[ufunc], known[0], known[1], self._trace)
        if ufunc in (np.equal, np.not_equal):
            self._trace.refuse("compares for equality, which no float64 number stands for")
        if ufunc in (np.sign, np.heaviside, np.floor, np.ceil, np.rint, np.trunc, np.mod,
                     np.floor_divide):  # fmt: skip
            self._trace.refuse(f"np.{ufunc.__name__} jumps")
        known = [
            a if not isinstance(a, list | tuple)
            else operators.stack(a) if holds_expressions(a) else np.asarray(a)
            for a in known
        ]  # fmt: skip
        return self._trace.call(apply_ufunc, ufunc, method, known, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function is np.where:
            return lent_where(*args, trace=self._trace)
        special = _NUMPY.get(function.__name__)
        if special is not None:
            return functools.partial(special, self._trace)(*args, **options)
        if not _traced_inside((args, options)):
            return function(*plain(args), **plain(options))
        options = {k: v for k, v in options.items() if k not in ("dtype", "out", "order") or
                   (k == "order" and v not in (None, "C", "K", "A"))}  # fmt: skip
        return self._trace.call(apply_function, function, args, options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._known("number"), dtype=dtype)

    # --- what arrays have ------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.value)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> Any:
        return np.dtype(np.float64)

    @property
    def T(self) -> Any:
        return np.transpose(self)

    @property
    def flat(self) -> Any:
        return self.reshape(-1)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def _require_places(self, index: Any) -> None:
        if _traced_inside(index) or isinstance(index, Condition):
            self._trace.refuse("mask" if isinstance(index, Condition) else "index")

    def __getitem__(self, index: Any) -> Any:
        self._require_places(index)
        return self._trace.call(lambda value: value[index], self)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._require_places(index)
        known = plain(value)
        if _traced_inside(value) and isinstance(known, list):
            known = operators.stack(known)
        if not any(isinstance(a, Expression) for a in (known, self.value)):
            self.value = np.array(self.value, dtype=np.float64)
            self.value[index] = known
            return

        def arrange(places: list[Any]) -> Any:
            places[0][index] = places[1]
            return places[0]

        self.value = self._trace.call(operators.moved, [self.value, known], arrange).value

    def reshape(self, *shape: Any, order: Any = "C") -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, *([axes] if len(axes) > 1 else axes))

    def copy(self) -> Traced:
        return Traced(self.value, self._trace)

    def sort(self, axis: int = -1) -> None:
        self.value = plain(np.sort(self, axis))

    def astype(self, dtype: Any, **options: Any) -> Traced:
        if np.dtype(dtype).kind != "f":
            self._trace.refuse("round")
        return self

    def item(self, *index: Any) -> Any:
        return self[index] if index else self.reshape(())

    def tolist(self) -> Any:
        return [row.tolist() if row.ndim else row for row in self] if self.ndim else self

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS:
            return functools.partial(getattr(np, _METHODS[name]), self)
        if name.startswith("arg") or name in ("any", "all", "nonzero", "round", "searchsorted"):
            self._trace.refuse("bool" if name in ("any", "all") else "index")
        raise AttributeError(f"a traced array has no attribute {name!r}")

    def _known(self, what: str) -> Any:
        if isinstance(self.value, Expression):
            self._trace.refuse(what)
        return self.value

    def __bool__(self) -> bool:
        return bool(self._known("bool"))

    def __float__(self) -> float:
        return float(self._known("number"))

    def __int__(self) -> int:
        self._trace.refuse("round")

    __round__ = __trunc__ = __floor__ = __ceil__ = lambda self, *_: self._trace.refuse("round")

    def __index__(self) -> int:
        self._trace.refuse("index")

    def __complex__(self) -> complex:
        self._trace.refuse("uses complex numbers, which have no order")

    __hash__ = None  # type: ignore[assignment]


COMPARED = {np.less: "<", np.less_equal: "<=", np.greater: ">", np.greater_equal: ">="}
_NAMES = (
    "sum mean max min std var prod cumsum cumprod dot clip squeeze swapaxes repeat take ptp trace "
    "diagonal ravel conj"
)
_METHODS = {name: name for name in _NAMES.split()} | {"flatten": "ravel"}


def _traced_inside(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_traced_inside, value))
    if isinstance(value, dict):
        return any(map(_traced_inside, value.values()))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return any(map(_traced_inside, value.ravel().tolist()))
    return isinstance(value, Traced) and isinstance(value.value, Expression)


# --- lent names ----------------------------------------------------------------------------------


def lent_where(condition: Any, *branches: Any, trace: _Trace) -> Any:
    """`np.where` of a comparison of traced arrays."""
    if len(branches) != 2 or _traced_inside(condition):
        trace.refuse("mask")
    if isinstance(condition, Condition):
        return trace.call(where, condition, *branches)
    shape = np.broadcast_shapes(np.shape(condition), *map(np.shape, branches))
    mask = np.broadcast_to(plain(condition), shape)
    return trace.call(operators.moved, list(branches), lambda places: np.where(mask, *places))


def _new(name: str, trace: _Trace, *args: Any, **options: Any) -> Traced:
    return Traced(getattr(np, name)(*args, **options), trace)


def _array(trace: _Trace, data: Any, *args: Any, **options: Any) -> Any:
    if isinstance(data, types.GeneratorType | map | zip):
        data = list(data)
    if _traced_inside(data):
        known = plain(data)
        return data.copy() if isinstance(data, Traced) else trace.call(operators.stack, known)
    return Traced(np.array(plain(data), *args, **options), trace)


def _called(trace: _Trace, function: Any, *args: Any, **options: Any) -> Any:
    """Call a function of NumPy, which looks for traced arrays in arguments but not in lists."""
    lists = [isinstance(a, list | tuple) and _traced_inside(a) for a in args]
    return function(*(_array(trace, a) if b else a for a, b in zip(args, lists)), **options)


def _like(number: float, trace: _Trace, like: Any, *args: Any, **options: Any) -> Any:
    return Traced(np.full(np.shape(plain(like)), number), trace)


def _chosen(trace: _Trace, which: str, *args: Any, **options: Any) -> Any:
    """`max` and `min` of Python, of several or of all."""
    entries = list(args[0]) if len(args) == 1 else list(args)
    if not _traced_inside(entries) or options:
        return getattr(builtins, which)(*args, **options)
    if len({np.shape(plain(e)) for e in entries}) == 1:
        reduce = atoms.largest if which == "max" else atoms.smallest
        return trace.call(lambda some: reduce(operators.stack(some), axis=0), entries)
    return functools.reduce(np.maximum if which == "max" else np.minimum, entries)


def _summed(trace: _Trace, entries: Any, start: Any = 0) -> Any:
    parts = list(entries)
    if not _traced_inside(parts) or len({np.shape(plain(p)) for p in parts}) > 1:
        return builtins.sum(parts, start)
    return trace.call(lambda some: operators.stack(some).sum(axis=0), parts) + start


def _math(trace: _Trace, name: str) -> Callable[..., Any]:
    own = getattr(math, name)
    twin = {"fabs": "abs", "pow": "power", "atan": "arctan", "prod": "prod", "asinh": "arcsinh",
            "degrees": "rad2deg"}.get(name, name)  # fmt: skip

    def call(*args: Any, **options: Any) -> Any:
        if not _traced_inside(args):
            return own(*plain(args), **options)
        if name in ("fsum", "dist"):
            flat = [np.asarray(a) if not _traced_inside(a) else _array(trace, a) for a in args]
            return np.sum(flat[0]) if name == "fsum" else np.linalg.norm(flat[0] - flat[1])
        if name == "hypot":
            return np.linalg.norm(_array(trace, list(args)))
        return getattr(np, twin, own)(*args, **options)

    return call


#: Functions of NumPy that make arrays, or need more than expressions.
_NUMPY: dict[str, Callable[..., Any]] = {
    **{name: functools.partial(_new, name) for name in ("zeros", "ones", "empty", "full")},
    "array": _array, "asarray": _array, "asfarray": _array, "copy": _array,
    "zeros_like": functools.partial(_like, 0.0), "ones_like": functools.partial(_like, 1.0),
    "empty_like": functools.partial(_like, 0.0),
    "full_like": lambda trace, like, number, *a, **o: _like(0.0, trace, like) + number,
    "isfinite": lambda trace, u, **o: np.ones(np.shape(plain(u)), bool),
    "isnan": lambda trace, u, **o: np.zeros(np.shape(plain(u)), bool),
}  # fmt: skip


class _Lent:
    """A module of which some names are replaced."""

    def __init__(self, module: Any, lender: _Lender) -> None:
        self.__dict__["_pair"] = module, lender

    def __getattr__(self, name: str) -> Any:
        module, lender = self.__dict__["_pair"]
        return lender.lent(getattr(module, name))


class _Lender:
    """Copies of functions that see other names."""

    def __init__(self, trace: _Trace) -> None:
        self.trace, self.made = trace, dict[int, Any]()
        self.kept: list[Any] = []
        own = functools.partial
        self.builtins = {
            "max": own(_chosen, trace, "max"), "min": own(_chosen, trace, "min"),
            "sum": own(_summed, trace), "float": self._float,
            "sorted": lambda some, **o: (
                list(np.sort(_array(trace, list(some)))) if _traced_inside(list(some)) and not o
                else sorted(some, **o)),
        }  # fmt: skip

    def _float(self, value: Any = 0.0) -> Any:
        return value if isinstance(value, Traced) else float(value)

    def lent(self, value: Any) -> Any:
        """Return what the code sees in place of a global of its module."""
        if isinstance(value, types.ModuleType):
            return _Lent(value, self) if value in (np, np.linalg, math) else value
        if isinstance(value, type) and value in (float, np.float64):
            return self._float
        if isinstance(value, types.BuiltinFunctionType) and value.__module__ == "math":
            return _math(self.trace, value.__name__)
        name = getattr(value, "__name__", "")
        if name in _NUMPY and getattr(np, name, None) is value:
            return functools.partial(_NUMPY[name], self.trace)
        own = getattr(np, name, getattr(np.linalg, name, None)) if name else None
        if own is value and name not in MOVERS and not isinstance(value, type):
            return functools.partial(_called, self.trace, value)
        return self.copied(value) if _is_users(value) else value

    def copied(self, fun: Any) -> Any:
        """Return a copy of the user's function that sees lent names."""
        if isinstance(fun, functools.partial):
            return functools.partial(self.copied(fun.func), *fun.args, **fun.keywords)
        if isinstance(fun, types.MethodType):
            return types.MethodType(self.copied(fun.__func__), fun.__self__)
        if not isinstance(fun, types.FunctionType):
            call = vars(type(fun)).get("__call__")
            known = isinstance(call, types.FunctionType)
            return types.MethodType(self.copied(call), fun) if known else fun
        if id(fun) not in self.made:
            names: dict[str, Any] = {"_lent": True}
            cells = tuple(types.CellType() for _ in fun.__closure__ or ())
            twin = types.FunctionType(fun.__code__, names, fun.__name__, fun.__defaults__, cells)
            twin.__kwdefaults__ = fun.__kwdefaults__
            self.made[id(fun)] = twin
            self.kept.append(fun)  # so that its id stays its own
            used = _names_in(fun.__code__)
            names |= {k: v for k, v in self.builtins.items() if k not in fun.__globals__}
            names |= {k: self.lent(v) if k in used else v for k, v in fun.__globals__.items()}
            for cell, old in zip(cells, fun.__closure__ or ()):
                try:
                    cell.cell_contents = self.lent(old.cell_contents)
                except ValueError:  # not filled yet
                    continue
        return self.made[id(fun)]


def _names_in(code: types.CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _is_users(value: Any) -> bool:
    plainly = isinstance(value, types.FunctionType | functools.partial | types.MethodType)
    module = getattr(value, "__module__", "") or ""
    return plainly and module.partition(".")[0] not in ("numpy", "scipy", "goldstein", "math")


# --- tracing -------------------------------------------------------------------------------------


def trace(fun: Callable[..., Any], like: Any, args: Sequence[Any] = ()) -> Expression:
    """Return the expression that plain NumPy code computes.

    The code is run, once or twice, with an array that notes what is done to it: operators, loops,
    indexing, NumPy's functions, `max`, `sum`, `math` and `np.where` of comparisons. Code that
    chooses by value is refused, with the line and what to write instead.

    Parameters
    ----------
    fun : callable
        Takes an array of the shape of `like`, or a structure of arrays like it, and returns a
        number.
    like : int, array_like, or dict, list or tuple of arrays
        The dimension, or a point: the expression and `fun` are compared around it.
    args : sequence
        Extra arguments of `fun`.

    Returns
    -------
    Expression
        Of one vector, the numbers of `like` in order. `describe()` prints what claims are about.

    Raises
    ------
    TypeError
        Where the code leaves the language, or code and expression differ at some point.

    Examples
    --------
    >>> import numpy as np
    >>> def f(x):
    ...     return np.abs(x[0] - np.exp(x[1])) + max(x[0] ** 2, x[1] ** 2)
    >>> F = trace(f, np.zeros(2))
    >>> bool(F.value(np.array([1.0, 0.5])) == f(np.array([1.0, 0.5])))
    True
    >>> trace(lambda x: x[0] if x[0] > 0 else -x[0], 1)
    Traceback (most recent call last):
        ...
    goldstein.errors.TraceError: ...chooses by value; write np.where(condition, a, b)...
    """
    if isinstance(like, int | np.integer) and not isinstance(like, bool):
        like = np.zeros(int(like))
    layout, arrays = taken_apart(like, "like")
    flat = np.concatenate([np.zeros(0), *(array.ravel() for array in arrays)])
    if flat.size == 0:
        raise InputError("a function of no variables cannot be traced; like has no entries.")

    return _traced(fun, flat, args, layout)


def _traced(fun: Any, flat: Vector, args: Sequence[Any], layout: Layout) -> Expression:
    def build(x: Any) -> Any:
        return x if is_vector(layout) else put_together(layout, x)

    found = [_run(fun, flat, build, args) for _ in range(2)]
    if not _same(*found):
        raise TraceError(
            "the code does something else the second time it is run: it uses random numbers, a "
            "clock or a counter, which an expression cannot."
        )
    compare(found[0], lambda x: fun(build(x), *args), flat)
    return found[0]


def traced_oracle(
    fun: Callable[..., Any], args: Sequence[Any], like: Vector, layout: Layout | None = None
) -> Oracle:
    """Return the function of code as an oracle over a vector.

    Where enclosures that its proofs need are not installed, its values stay those of the code, and
    only its gradient is derived: what is claimed of it then is conditional.
    """
    args = args if isinstance(args, tuple | list) else (args,)
    found = _traced(fun, like, args, layout or [like.size])
    name = getattr(fun, "__name__", type(fun).__name__)
    named = Expression(nodes.Add, (found,), (), (), name)
    smooth = any(isinstance(n, Smooth | LogSumExp) for n in numbered(found)[0])
    if smooth and flint() is None:
        return FunctionOracle(fun, lambda x, *_: named.gradient(np.ravel(x)), args, layout)
    return named


def _run(fun: Any, flat: Vector, build: Callable[[Any], Any], args: Sequence[Any]) -> Expression:
    """Run the code on a traced array and return its answer."""
    variable = Variable(flat.size)
    state = _Trace()
    try:
        with np.errstate(all="ignore"):
            answer = _Lender(state).copied(fun)(build(Traced(variable, state)), *args)
    except TraceError:
        raise
    except RecursionError:
        raise TraceError("the code recurses too deeply to be traced.") from None
    except Exception as failure:
        if state.refusal is not None:
            raise state.refusal from None
        raise TraceError(
            f"{_failed_line(failure)}{type(failure).__name__}: {failure} (while being traced)."
        ) from failure
    if state.refusal is not None:  # which the code has swallowed
        raise state.refusal
    value = plain(answer)
    if not isinstance(value, Expression):
        raise TraceError(
            f"the code returned {type(answer).__name__}, which does not depend on x as far as "
            "tracing sees; it must return a number computed from x with NumPy's functions."
        )
    if value.variable is not variable:
        raise TraceError("the code returned an array of an earlier call: it keeps answers.")
    if value.size != 1:
        raise TraceError(f"the code returned shape {value.shape}, expected one number.")
    return value.reshape(())


def _failed_line(failure: BaseException) -> str:
    steps = list(traceback.walk_tb(failure.__traceback__))
    lines = (_line(f.f_code.co_filename, n) for f, n in reversed(steps) if "_lent" in f.f_globals)
    return next(lines, "")


def _same(one: Expression, two: Expression) -> bool:
    """Are two traces the same list of nodes?"""
    first, second = in_order(one), in_order(two)
    at = {id(e): k for k, e in enumerate(first)}, {id(e): k for k, e in enumerate(second)}
    if len(first) > LONGEST:
        raise TraceError(f"the code takes {len(first)} steps, more than {LONGEST}.")
    return len(first) == len(second) and all(
        a.kind is b.kind and a.shape == b.shape and _equal(a.data, b.data)
        and [at[0][id(c)] for c in a.args] == [at[1][id(c)] for c in b.args]
        for a, b in zip(first, second)
    )  # fmt: skip


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a is b or a == b)


def compare(found: Expression, code: Callable[[Vector], Any], x: Vector) -> None:
    """Refuse a trace whose values are not those of the code."""
    rng, end = stream(0, 0, "trace"), time.perf_counter() + SECONDS
    scales = np.geomspace(1e-8, 1e2, POINTS)[rng.permutation(POINTS)]
    points = [x, -x, *(x + s * (1.0 + np.abs(x)) * rng.standard_normal(x.size) for s in scales)]
    for k, y in enumerate(points):
        if k >= 4 and time.perf_counter() > end:
            break
        with np.errstate(all="ignore"):
            try:
                theirs = float(np.asarray(code(y.copy()), dtype=np.float64).reshape(()))
            except Exception as failure:
                if k == 0:
                    raise TraceError(f"the code fails at x: {failure}.") from failure
                continue
        tape = found.evaluation.tape(y)
        ours, largest = float(tape[-1]), float(np.nanmax(np.abs(tape)))
        slack = 1e-9 * (1.0 + abs(theirs)) + 1e-13 * (largest if math.isfinite(largest) else 0.0)
        if math.isfinite(theirs) and not abs(ours - theirs) <= slack:
            raise TraceError(
                f"the code and its trace differ at x = {np.array2string(y, threshold=6)}: "
                f"{theirs!r} against {ours!r}. It may branch on types, write to x, or keep state."
            )
