"""How the kernels are compiled: in separate units, once per machine, and kept on disk.

Numba copies whatever a function calls into the code of that function, again at every level. So the
search is cut into a few units that call each other through pointers: compiling takes a fraction of
the time.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numba
from numba import types
from numba.extending import overload_method, register_jitable

import goldstein.solvers
from goldstein.numerics import cone
from goldstein.solvers import tuning
from goldstein.solvers.compiled.records import StateRecord

F = TypeVar("F", bound=Callable[..., object])

#: Sums may be reordered, which lets them run in vector registers; NaN and infinity stay what they
#: are.
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp"},
}

#: For what only other kernels call: nothing to reach it from Python is made.
_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

#: Decisions are those of Python to the last bit; only a division by zero gives infinity.
DECISIONS: Any = {"error_model": "numpy", **_INNER}


def kernel(function: F) -> F:
    """Compile a function that only other kernels call."""
    compiled: F = numba.njit(**_OPTIONS, **_INNER)(function)
    return compiled


def method(function: F) -> F:
    """Let compiled decisions call a function as the method of a record that has its name."""

    @wraps(function)
    def chosen(*_: Any) -> Any:
        return function

    offer: Any = overload_method  # type checkers do not know what it takes
    options = {**_OPTIONS, **_INNER}
    offer(StateRecord, function.__name__, jit_options=options, strict=False)(chosen)
    return kernel(function)


def share(module: ModuleType) -> None:
    """Let compiled code call the functions of a module of decisions, as they stand there."""
    for function in vars(module).values():
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            register_jitable(**DECISIONS)(function)


def unit(make: Callable[[str], Callable[[Any], Any]]) -> Any:
    """Compile a function of one address, to be called through its own; the code is kept on disk.

    `make(stamp)` returns a function that closes over the stamp of the sources: Numba looks at the
    file of this function alone to see whether stored code is out of date, and at what it closes
    over.
    """
    function = make(_stamp())
    signature = types.int64(types.int64)
    try:
        return numba.cfunc(signature, cache=True, **_OPTIONS)(function)
    except RuntimeError:  # no folder can be written: compile anew in every process
        return numba.cfunc(signature, **_OPTIONS)(function)


@cache
def _stamp() -> str:
    """Return a digest of all files that are compiled."""
    solvers = Path(goldstein.solvers.__file__).parent
    files = [*solvers.glob("compiled/*.py"), *solvers.glob("logic/*.py")]
    files += [Path(module.__file__ or "") for module in (cone, tuning)]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()
