"""What a compiled run remembers: records of numbers that also say where the arrays are.

Records are what Numba compiles once for all dimensions and passes on as a single pointer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.solvers.compiled.constants import GATHER, MAX_PLANES

Vector = NDArray[np.float64]
Words = NDArray[np.int64]

#: Why a stretch ended.
PAUSED, EVIDENCE, OUT_OF_CALLS, BAD_VALUE, BAD_GRADIENT, STALLED = range(6)

#: Whose turn it is.
NEWTON, BUNDLE = 0, 1

#: A quadratic programme on the simplex: its data, its weights, and a factor of the active rows.
FACE = np.dtype(
    [("address", "i8")]
    + [(name, "i8") for name in ("gram", "rows", "point", "linear")]
    + [(name, "i8") for name in ("weights", "kept", "order", "factor", "slopes", "ones", "step")]
    # rows there are; room for rows; length of a row; rows with weight; is the factor valid?
    + [(name, "i8") for name in ("count", "capacity", "width", "active", "valid", "exact")]
    # added to the matrix before it was factorised; slack of the optimality test
    + [(name, "f8") for name in ("shift", "relative", "noise")]
)

_FLOATS = (
    # the request, and the best point's value
    "eps", "delta", "fx", "bound", "radius", "lipschitz",
    # the half with the guarantee
    "centre_value", "working", "gathered", "counted_value", "close", "short",
    # turns and progress
    "share", "turn_value", "newton_rate", "bundle_rate", "progress_value", "progress_bound",
    # the fast half
    "newton_fx", "newton_length", "room", "jitter", "trial_value",
    # what to gather: all that is known within this radius of the best point
    "wanted",
)  # fmt: skip
_INTEGERS = (
    # where this record is, and the code of the units it may call
    "address", "dim",
    "asking", "minimising", "measuring", "gathering", "looking", "newton_step", "bundle_step",
    # calls made by the kernels; how many they may make; when to report to Python
    "values", "gradients", "ceiling", "pause",
    # why the stretch ended; the gradient says where it has kinks; descent steps; idle steps
    "stop", "kinks", "steps", "idle",
    # gradients seen by the ring, and its room; those offered to the bundle
    "added", "ring_size", "offered",
    # rows that the last solve has seen; their weights are optimal
    "settled", "clean",
    # gather around the best point, or around the old centre
    "moves",
    "failed_steps", "small_moves", "progress_calls",
    # what the judge asked again
    "fresh_count", "fresh_points", "fresh_gradients",
    "newton", "turn", "turn_began", "turn_ends", "turns_of_newton", "turns_of_bundle",
    # pieces of the model seen so far; the metric has a scale; there is a gradient; no way down;
    # the piece whose products are next computed afresh; corrections of the model per step
    "planes", "scaled", "known", "stuck", "next_renewed", "null_steps",
)  # fmt: skip
_ARRAYS = (
    # best point, centre of the bundle half, the question that was not answered, what the user's
    # function gets and may overwrite
    "x", "centre", "culprit", "lent",
    # room to work
    "trial", "asked", "answer", "direction", "best", "found", "change", "step", "along",
    "rises", "falls",
    # random words; extra arguments of the user's functions; the latest pair (value, gradient)
    "draws", "words", "pair",
    # the ring of gradients: distances from `ring_asked` lie between near and far
    "ring_points", "ring_gradients", "ring_perturbed", "ring_near", "ring_far", "ring_asked",
    # the bundle, beside its face: no point is farther from the centre than its reach
    "points", "perturbed", "reach", "sources", "places",
    # the fast half: rows of `images` are the matrix times the pieces
    "newton_x", "newton_g", "matrix", "images", "levels", "travel", "stale",
)  # fmt: skip
SEARCH = np.dtype(
    [(name, "f8") for name in _FLOATS]
    + [(name, "i8") for name in _INTEGERS]
    + [(name, "i8") for name in _ARRAYS]
    + [("hull", FACE), ("model", FACE)]
)


@dataclass
class Memory:
    """The record of a run and the arrays it points to, by name."""

    search: NDArray[Any]
    arrays: dict[str, NDArray[Any]]
    hull: dict[str, NDArray[Any]]
    model: dict[str, NDArray[Any]]


def allocate(x0: Vector, words: Words, draws: NDArray[np.uint64]) -> Memory:
    """Return the memory of a run that begins at x0."""
    d = x0.size
    room, kept = max(GATHER, d + 2), 4 * min(d, 200) + 100
    planes = min(d + 10, MAX_PLANES)
    arrays: dict[str, NDArray[Any]] = {name: np.zeros(d) for name in _ARRAYS}
    arrays.update({name: x0.copy() for name in ("x", "centre", "newton_x")})
    arrays.update({name: np.zeros(planes) for name in ("rises", "falls", "levels", "travel")})
    arrays.update(draws=draws.copy(), words=words, pair=np.zeros(2 * d + 2))
    arrays.update({name: np.zeros((kept, d)) for name in ("ring_points", "ring_gradients")})
    arrays.update(ring_near=np.zeros(kept), ring_far=np.full(kept, np.inf))
    arrays.update(ring_perturbed=np.zeros(kept, dtype=np.int64))
    arrays.update(points=np.zeros((room, d)), reach=np.zeros(room))
    for name in ("perturbed", "sources", "places"):
        arrays[name] = np.zeros(room, dtype=np.int64)
    arrays.update(matrix=np.zeros((d, d)), images=np.zeros((planes, d)))
    arrays.update(stale=np.ones(planes, dtype=np.int64))
    search = np.zeros(1, dtype=SEARCH)
    record = search[0]
    record["address"] = search.ctypes.data
    for name in ("hull", "model"):
        record[name]["address"] = search[name].ctypes.data
    record["dim"], record["ring_size"] = d, kept
    for name in _ARRAYS:
        record[name] = arrays[name].ctypes.data
    return Memory(search, arrays, _face(record["hull"], room, d), _face(record["model"], planes, d))


def _face(record: Any, capacity: int, width: int) -> dict[str, NDArray[Any]]:
    """Give a quadratic programme its arrays."""
    arrays: dict[str, NDArray[Any]] = {
        name: np.zeros(capacity + 1)
        for name in ("linear", "weights", "kept", "slopes", "ones", "step")
    }
    arrays["gram"] = np.zeros((capacity, capacity))
    arrays["factor"] = np.zeros((capacity + 1, capacity + 1))
    arrays["rows"] = np.zeros((capacity, width))
    arrays["point"] = np.zeros(width)
    arrays["order"] = np.zeros(capacity + 1, dtype=np.int64)
    record["capacity"], record["width"] = capacity, width
    for name, array in arrays.items():
        record[name] = array.ctypes.data
    return arrays
