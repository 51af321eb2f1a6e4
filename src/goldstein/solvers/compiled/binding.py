"""The user's jitted functions behind one signature, so that the loop is compiled only once.

Numba would compile the whole loop anew for every function it is given. Here only a small adapter is
compiled per pair of functions and types of arguments; the loop calls it through a pointer.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.np.numpy_support import carray
from numba.np.unsafe.ndarray import to_fixed_tuple
from numpy.typing import NDArray

from goldstein.solvers.compiled.records import integers, pointer, vector

#: state = answer(x, size, target, question, words, pair), all but the size being addresses
_SIGNATURE = types.int64(*[types.int64] * 6)

#: An argument takes at most an address and three extents.
_MOST_WORDS = 4

_ANSWERED, _RAISED, _WRONG_SHAPE = 0, 1, 2

#: (fun, jac, types of the arguments) -> adapter. Compiled code is never freed anyway.
_ADAPTERS: dict[tuple[Any, ...], Any] = {}


def bind(
    fun: Any, jac: Any, args: tuple[Any, ...]
) -> tuple[Any, NDArray[np.int64], list[Any]] | None:
    """Return the adapter, the arguments as words, and what must be kept alive meanwhile.

    None where compiled code cannot call the functions with a vector and these arguments.
    """
    if not all(each is True or isinstance(each, Dispatcher) for each in (fun, jac)):
        return None
    words: list[int] = []
    alive: list[Any] = []
    loaders: list[tuple[tuple[str, int], int]] = []
    for arg in args:
        known = _as_words(arg)
        if known is None:
            return None
        loaders.append((known[0], len(words)))
        words.extend(known[1])
        alive.append(known[2])
    key = (fun, jac, tuple(loaders))
    if key not in _ADAPTERS:
        _ADAPTERS[key] = _adapter(fun, jac, loaders)
    adapter = _ADAPTERS[key]
    return None if adapter is None else (adapter, np.array([*words, 0], dtype=np.int64), alive)


def _as_words(arg: Any) -> tuple[tuple[str, int], list[int], Any] | None:
    """Return the kind of an argument, its words, and the array that owns its memory."""
    dimensions = getattr(arg, "ndim", 0)
    if isinstance(arg, bool | int | float | np.bool_ | np.integer | np.floating):
        whole = isinstance(arg, int | np.integer)
        if whole and not -(2**63) <= arg < 2**63:
            return None
        wide = np.bool_ if isinstance(arg, bool | np.bool_) else np.int64 if whole else np.float64
        arg = np.array([arg], dtype=wide)
    if not isinstance(arg, np.ndarray) or not 1 <= arg.ndim <= 3:
        return None
    if not arg.dtype.isnative or arg.dtype.kind not in "fiub":
        return None
    array = np.ascontiguousarray(arg)
    return (array.dtype.str, dimensions), [array.ctypes.data, *array.shape], array


def _adapter(fun: Any, jac: Any, loaders: list[tuple[tuple[str, int], int]]) -> Any:
    """Compile the adapter; None where Numba cannot."""
    make: Any = _pair_adapter if jac is True else _two_adapter
    functions = [fun] if jac is True else [fun, jac]
    asked: list[Any] = [_with_arguments(each, loaders) for each in functions]
    try:
        return numba.cfunc(_SIGNATURE)(make(*asked))
    except NumbaError:
        return None


def _two_adapter(ask_fun: Any, ask_jac: Any) -> Callable[..., Any]:
    def answer(at: Any, size: Any, result: Any, question: Any, extra: Any, pair: Any) -> Any:
        x, target = vector(at, size), vector(result, size)
        try:
            if question == 0:
                target[0] = ask_fun(x, extra)
                return _ANSWERED
            g = ask_jac(x, extra)
        except Exception:
            return _RAISED
        if len(g) != size:
            return _WRONG_SHAPE
        for i in range(size):
            target[i] = g[i]
        return _ANSWERED

    return answer


def _pair_adapter(ask_fun: Any) -> Callable[..., Any]:
    def answer(at: Any, size: Any, result: Any, question: Any, extra: Any, stored: Any) -> Any:
        # One call answers both questions at a point. pair: [there is one, value, x, gradient]
        x, target, pair = vector(at, size), vector(result, size), vector(stored, 2 * size + 2)
        same = pair[0] == 1.0
        for i in range(size):
            same = same and pair[2 + i] == x[i]
        if not same:
            pair[0] = 0.0
            for i in range(size):
                pair[2 + i] = x[i]
            try:
                value, g = ask_fun(x, extra)
            except Exception:
                return _RAISED
            if len(g) != size:
                return _WRONG_SHAPE
            pair[0], pair[1] = 1.0, value
            for i in range(size):
                pair[2 + size + i] = g[i]
        if question == 0:
            target[0] = pair[1]
        else:
            for i in range(size):
                target[i] = pair[2 + size + i]
        return _ANSWERED

    return answer


def _with_arguments(function: Any, loaders: list[tuple[tuple[str, int], int]]) -> Any:
    """Return a jitted function of (x, address of the words) that unpacks the arguments."""

    def bare(x: Any, extra: Any, *rest: Any) -> Any:
        return function(x, *rest)

    chain = numba.njit(bare)
    for kind, at in reversed(loaders):
        chain = _loading(chain, _loader(kind), at)
    return chain


def _loading(inner: Any, load: Any, at: int) -> Any:
    most = at + _MOST_WORDS

    def outer(x: Any, extra: Any, *rest: Any) -> Any:
        return inner(x, extra, *(rest + (load(integers(extra, most), at),)))

    return numba.njit(outer)


def _loader(kind: tuple[str, int]) -> Any:
    """Return a jitted function that reads one argument of this kind from the words."""
    dtype, dimensions = np.dtype(kind[0]), kind[1]

    def load_number(words: Any, at: Any) -> Any:
        return carray(pointer(words[at]), 1, dtype)[0]

    def load_array(words: Any, at: Any) -> Any:
        extents = words[at + 1 : at + 1 + dimensions]
        shape: Any = to_fixed_tuple(extents, dimensions)  # type: ignore[call-arg]
        return carray(pointer(words[at]), shape, dtype)

    return numba.njit(load_array if dimensions else load_number)
