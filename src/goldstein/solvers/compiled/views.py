"""Arrays, records and functions at an address.

Kernels pass one record around, which says where its arrays are. Passing the arrays themselves would
be the natural thing, and takes Numba many times as long to compile. A view owns nothing; Python
keeps the memory alive.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload_attribute

from goldstein.solvers.compiled.jit import DECISIONS, kernel
from goldstein.solvers.compiled.layout import FACE, NEWTON_VECTORS, SEARCH, SEARCH_VECTORS
from goldstein.solvers.compiled.records import StateRecord, state_record

_WORD = 8


def view_of(item: Any) -> Any:
    """Return an intrinsic (address, size) -> array of items of this type."""

    def view(typing: Any, address: Any, size: Any) -> Any:
        if not isinstance(address, types.Integer):
            raise TypingError(f"an address is an integer, not {address}")
        array = types.Array(item, 1, "C")

        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            made = context.make_array(array)(context, builder)
            width = context.get_abi_sizeof(context.get_data_type(item))
            stride = context.get_constant(types.intp, width)
            context.populate_array(
                made,
                data=builder.inttoptr(values[0], made.data.type),
                shape=[values[1]],
                strides=[stride],
                itemsize=stride,
                meminfo=None,
            )
            return made._getvalue()

        return array(types.int64, types.int64), build

    return intrinsic(view)


def _record_of(dtype: Any) -> Any:
    record = state_record(dtype)

    def at(typing: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(record))

        return record(types.int64), build

    return intrinsic(at)


def _answer_of(typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
    """Call the adapter at an address with its arguments (see `binding`)."""
    word = ir.IntType(64)
    adapter = ir.FunctionType(word, [word] * 6).as_pointer()

    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.call(builder.inttoptr(values[0], adapter), values[1:])

    return types.int64(*[types.int64] * 7), build


answer_of: Any = intrinsic(_answer_of)  # type checkers do not know what it takes


#: vector(address, size), and the same for int64 and uint64.
vector = view_of(types.float64)
integers = view_of(types.int64)
words = view_of(types.uint64)

#: The record at an address.
search_at = _record_of(SEARCH)
face_at = _record_of(FACE)


def _vector_attribute(name: str) -> None:
    """Let a record have a vector of all variables as an attribute, where it says the vector is."""
    field = f"at_{name}"

    def get(record: Any) -> Any:
        return vector(getattr(record, field), record.dim)

    attribute: Any = overload_attribute  # type checkers do not know what it takes
    attribute(StateRecord, name, jit_options=DECISIONS, strict=False)(lambda record: get)


for _name in sorted({*SEARCH_VECTORS.split(), *NEWTON_VECTORS.split()}):
    _vector_attribute(_name)


@kernel
def row(address: Any, width: Any, index: Any) -> Any:
    """Return a row of a matrix with rows of this width."""
    return vector(address + _WORD * width * index, width)
