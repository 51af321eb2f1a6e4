"""How kernels are described to Numba; `build` makes machine code of them.

Numba copies whatever a function calls into the code of that function, again at every level. So the
search is cut into a few units that know of each other by name only: compiling takes a fraction of
the time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, TypeVar

import numba
from numba import types
from numba.extending import overload_method, register_jitable

from goldstein.solvers.compiled.records import StateRecord

F = TypeVar("F", bound=Callable[..., object])

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


def kernel(function: F) -> F:
    """Compile a function that only other kernels call."""
    compiled: F = numba.njit(**KERNELS)(function)
    return compiled


def method(function: F) -> F:
    """Let compiled decisions call a function as the method of a record that has its name."""

    @wraps(function)
    def chosen(*_: Any) -> Any:
        return function

    offer: Any = overload_method  # type checkers do not know what it takes
    offer(StateRecord, function.__name__, jit_options=KERNELS, strict=False)(chosen)
    return kernel(function)


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
