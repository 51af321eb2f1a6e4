"""Compiled competitors that a user has built: they ask through ctypes.

A peer is a shared library with the one function of `native/peer.h`; any other can join that way.
Libraries are looked for in the folder `GOLDSTEIN_PEERS`, or in `.venv-peers/native`.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
from benchmarks.answer import Answer
from benchmarks.recorder import Recorder

FOLDER = Path(__file__).parents[2] / ".venv-peers" / "native"
#: The stopping tests of the peers are set to this: they are judged by their way, not by their end.
TOLERANCE = 1e-9

_NUMBERS = ctypes.POINTER(ctypes.c_double)
_ASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, _NUMBERS, _NUMBERS, _NUMBERS)
_VALUE, _GRADIENT = 1, 2


def library(name: str) -> Path:
    """Where the library of a peer is, or would be."""
    return Path(os.environ.get("GOLDSTEIN_PEERS", FOLDER)) / f"{name}.so"


def missing(name: str) -> str | None:
    """Why a peer cannot be asked, in a sentence; None if it can."""
    path = library(name)
    if path.exists():
        return None
    return (
        f"{name} is skipped: no {path}; build it with the one function of "
        "benchmarks/peers/native/peer.h, and say where it is with GOLDSTEIN_PEERS."
    )


def solve(
    name: str, oracle: Recorder, x0: np.ndarray, eps: float, delta: float, seed: int
) -> Answer:
    """Run a peer; what the budget or the function raises is raised when the peer has returned."""
    peer = ctypes.CDLL(str(library(name))).peer_solve
    peer.argtypes = [ctypes.c_int, _NUMBERS, _ASK, ctypes.c_double, ctypes.c_int]
    x = np.array(x0, dtype=np.float64)
    dim = x.size
    raised: list[BaseException] = []

    def ask(what: int, place: ctypes.Array, value: ctypes.Array, gradient: ctypes.Array) -> int:
        if raised:
            return 1
        # A point of its own: the library may overwrite its memory.
        point = np.ctypeslib.as_array(place, (dim,)).copy()
        try:
            if what == _VALUE | _GRADIENT:
                value[0], answer = oracle.both(point)
            elif what == _VALUE:
                value[0], answer = oracle.value(point), None
            else:
                answer = oracle.gradient(point)
            if answer is not None:
                np.ctypeslib.as_array(gradient, (dim,))[:] = answer
        except BaseException as problem:  # nothing may pass through foreign frames
            raised.append(problem)
            return 1
        return 0

    code = peer(dim, x.ctypes.data_as(_NUMBERS), _ASK(ask), TOLERANCE, 10**8)
    if raised:
        raise raised[0]
    return Answer(x if np.all(np.isfinite(x)) else oracle.best_x, f"code {code}")
