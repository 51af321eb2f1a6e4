"""How the kernels are compiled: in separate units, once per machine, and kept on disk.

Numba copies whatever a function calls into the code of that function, again at every level. So the
search is cut into a few units that call each other through pointers: compiling takes a fraction of
the time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import types

from goldstein.solvers.compiled.constants import VALUES

F = TypeVar("F", bound=Callable[..., object])

#: Sums may be reordered, which lets them run in vector registers; NaN and infinity stay what they
#: are.
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp"},
}


def kernel(function: F) -> F:
    """Compile a function that only other kernels call: nothing to reach it from Python is made."""
    inner: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: F = numba.njit(**_OPTIONS, **inner)(function)
    return compiled


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
    """Return a digest of all files of kernels, and of the constants they take from `auto`."""
    digest = hashlib.sha256(repr(VALUES).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
