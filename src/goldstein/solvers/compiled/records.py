"""Records with methods: what compiled decisions take for a state.

How kernels are described to Numba; `build` makes machine code of them.

Numba copies whatever a function calls into the code of that function, again at every level. So the
search is cut into a few units that know of each other by name only: compiling takes a fraction of
the time.

Arrays, records and functions at an address.

Kernels pass one record around, which says where its arrays are. Passing the arrays themselves would
be the natural thing, and takes Numba many times as long to compile. A view owns nothing; Python
keeps the memory alive.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import (
    intrinsic,
    lower_setattr,
    models,
    overload_attribute,
    overload_method,
    register_jitable,
    register_model,
)
from numba.np.numpy_support import carray

from goldstein.solvers.compiled.layout import NEWTON_VECTORS, SEARCH_VECTORS, Face, Search


class StateRecord(types.Record):
    """A record of Numba, of a class of its own: methods are looked up before fields."""


register_model(StateRecord)(models.RecordModel)


def state_record(dtype: Any) -> Any:
    """Return the type of such a record and of those inside it; without a `dim` it stays plain."""
    plain = numba.from_dtype(dtype)
    if "dim" not in dtype.names:
        return plain
    fields: list[Any] = []
    for name, field in plain.fields.items():
        nested = dtype[name].names is not None
        kind = state_record(dtype[name]) if nested else field.type
        place = {"type": kind, "offset": field.offset, "alignment": field.alignment}
        fields.append((name, place))
    return StateRecord(fields, plain.size, plain.aligned)


#: Sums may be reordered, which lets them run in vector registers; NaN and infinity stay what they
#: are. Only other kernels call: nothing to reach them from Python is made.
KERNELS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp"},
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

#: Decisions are those of Python to the last bit; only a division by zero gives infinity.
DECISIONS: Any = {**KERNELS, "fastmath": False}

#: What can be called from outside: a word for a word, usually the address of a record.
UNIT = types.int64(types.int64)
UNITS: dict[str, Callable[[Any], Any]] = {}


def make_kernels(module: dict[str, Any]) -> None:
    """Compile all functions of a module for other kernels.

    Compiled decisions call those whose first argument is a state as methods of its record.
    """
    offer: Any = overload_method  # type checkers do not know what it takes
    for name, function in list(module.items()):
        if not inspect.isfunction(function) or function.__module__ != module["__name__"]:
            continue
        if next(iter(inspect.signature(function).parameters)) in ("search", "newton"):
            offer(StateRecord, name, jit_options=KERNELS, strict=False)(_choosing(function))
        module[name] = numba.njit(**KERNELS)(function)


def _choosing(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def chosen(*_: Any) -> Any:
        return function

    return chosen


def share(module: ModuleType) -> None:
    """Let compiled code call the functions of a module of decisions, as they stand there."""
    for function in vars(module).values():
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            register_jitable(**DECISIONS)(function)


def unit(function: Callable[[Any], Any]) -> Any:
    """Make a function of one address known by its name, to kernels and to Python."""
    name = f"goldstein_{function.__name__}"
    UNITS[name] = function
    return types.ExternalFunction(name, UNIT)


_WORD = 8


def _pointer_of(kind: Any) -> Any:
    """Return an intrinsic that makes a pointer of this type of an address."""

    def at(typing: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(kind))

        return kind(types.int64), build

    return intrinsic(at)


#: A pointer to whatever is at an address.
pointer = _pointer_of(types.voidptr)


def _view_of(dtype: Any) -> Any:
    def view(address: Any, size: Any) -> Any:
        return carray(pointer(address), size, dtype)

    return numba.njit(**KERNELS)(view)


def _answer_of(typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """Call the adapter at an address with its arguments (see `binding`)."""
    word = ir.IntType(64)
    adapter = ir.FunctionType(word, [word] * 6).as_pointer()

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.call(builder.inttoptr(values[0], adapter), values[1:])

    return types.int64(*[types.int64] * 7), build


answer_of: Any = intrinsic(_answer_of)  # type checkers do not know what it takes


#: vector(address, size), and the same for int64 and uint64.
vector = _view_of(np.float64)
integers = _view_of(np.int64)
words = _view_of(np.uint64)

#: The record at an address.
search_at, face_at = (_pointer_of(state_record(np.dtype(kind))) for kind in (Search, Face))


def _vector_attribute(name: str) -> None:
    """Let a record have a vector of all variables as an attribute, where it says the vector is.

    To assign to it copies the numbers.
    """
    field = f"at_{name}"

    def get(record: Any) -> Any:
        return vector(getattr(record, field), record.dim)

    attribute: Any = overload_attribute  # type checkers do not know what it takes
    attribute(StateRecord, name, jit_options=DECISIONS, strict=False)(lambda record: get)

    def put(record: Any, value: Any) -> None:
        target = vector(getattr(record, field), record.dim)
        for i in range(target.size):
            target[i] = value[i]

    def assign(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.compile_internal(builder, put, signature, values)

    assignment: Any = lower_setattr
    assignment(StateRecord, name)(assign)


for _name in sorted({*SEARCH_VECTORS.split(), *NEWTON_VECTORS.split()}):
    _vector_attribute(_name)


def _row(address: Any, width: Any, index: Any) -> Any:
    return vector(address + _WORD * width * index, width)


#: row(address, width, index): a row of a matrix with rows of this width.
row: Any = numba.njit(**KERNELS)(_row)
