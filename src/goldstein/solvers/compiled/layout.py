"""What a compiled run remembers: records of numbers that also say where the arrays are.

Records are what Numba compiles once for all dimensions and passes on as a single pointer. Their
fields have the names that `solvers.logic` knows them by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.solvers.tuning import TUNING

Words = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

#: Why a stretch ended.
PAUSED, EVIDENCE, OUT_OF_CALLS, BAD_VALUE, BAD_GRADIENT, GIVEN_UP = range(6)

#: How a half goes on: with a new step, with an answer, or without one.
BEGINS, TOLD, KINKED = range(3)


def addresses(vectors: str) -> str:
    """Return the names of the fields that say where vectors are."""
    return " ".join(f"at_{name}" for name in vectors.split())


def _record(floats: str, integers: str, *nested: tuple[str, Any]) -> np.dtype[Any]:
    fields = [(name, "f8") for name in floats.split()]
    return np.dtype([*fields, *((name, "i8") for name in integers.split()), *nested])


#: A quadratic programme on the simplex: its data, its weights, and a factor of the active rows.
FACE = _record(
    # added to the matrix before it was factorised; slack of the optimality test
    "shift relative noise",
    "address gram rows point linear weights kept order factor slopes ones step"
    # rows there are; room for rows; length of a row; rows with weight; is the factor valid?
    " count capacity width active valid exact",
)

#: Vectors of both halves: a record has their addresses, and `views` makes attributes of them.
SEARCH_VECTORS = "x centre point found aimed sparse ring_asked"
NEWTON_VECTORS = "x g y p best step change along point found"

#: Arrays of the fast half: rows of `images` are the matrix times the pieces.
_NEWTON_ARRAYS = "rises falls matrix images levels travel stale"
NEWTON = _record(
    "fx length room jitter reply trial trial_value slope reach low high best_trial best_value sy",
    # the record this one is in
    f"owner dim {addresses(NEWTON_VECTORS)} {_NEWTON_ARRAYS}"
    " phase aside attempt corrected trials best_slot pieces capacity null_steps"
    " known moved stuck scaled noting has_model limited extrapolates"
    # the piece whose products are next computed afresh
    " next_renewed",
    ("model", FACE),
)

_ARRAYS = (
    # what the user's function answers, and what it gets and may spoil
    "answer lent"
    # random words; extra arguments of the user's functions; the latest pair (value, gradient)
    " draws words pair"
    # the ring of gradients: distances from `ring_asked` lie between near and far
    " ring_points ring_gradients ring_perturbed ring_near ring_far"
    # the bundle, beside its hull: no point is farther from the centre than its reach
    " points perturbed reach sources places"
)
SEARCH = _record(
    "eps delta fx bound radius lipschitz reply"
    " centre_value step_norm span norm ratio look_radius left right middle left_value right_value"
    " end_value working gathered counted_value close short"
    " share turn_value newton_rate bundle_rate progress_value progress_bound"
    " earlier mark_value"
    # for units: how far the centre has moved; within which radius
    " wanted_move wanted_radius",
    "address dim"
    # the code of the user's functions and of the units
    " asking minimising measuring tidying modelling learning fast guaranteed"
    # calls made; how many may be made; when to report to Python
    " values gradients ceiling pause"
    # why the stretch has to end; the open question, and how to go on; the gradient knows its kinks
    " stop question entry kinks"
    " phase line halvings failed_steps steps moved proved refuted settled idle stalled"
    " two_halves turn turn_began turn_ends small_moves progress_calls mark_calls"
    # gradients seen by the ring, and its room; those offered to the bundle
    " added ring_size offered"
    # rows that the last solve has seen; their weights are optimal; the step is along `sparse`
    " solved clean sparsely wanted"
    # what the judge asked again
    f" fresh_count fresh_points fresh_gradients {addresses(SEARCH_VECTORS)} {_ARRAYS}",
    ("hull", FACE),
    ("newton", NEWTON),
)


@dataclass
class Memory:
    """The record of a run and the arrays it points to, by name."""

    search: NDArray[Any]
    arrays: Arrays
    hull: Arrays
    newton: Arrays
    model: Arrays


def allocate(x0: Vector, words: Words, draws: NDArray[np.uint64]) -> Memory:
    """Return the memory of a run that begins at x0."""
    d = x0.size
    room, kept = max(TUNING.gather, d + 2), 4 * min(d, 200) + 100
    arrays: Arrays = {name: np.zeros(d) for name in f"{SEARCH_VECTORS} {_ARRAYS}".split()}
    arrays.update({name: x0.copy() for name in ("x", "centre")})
    arrays.update(draws=draws.copy(), words=words, pair=np.zeros(2 * d + 2))
    arrays.update({name: np.zeros((kept, d)) for name in ("ring_points", "ring_gradients")})
    arrays.update(ring_near=np.zeros(kept), ring_far=np.full(kept, np.inf))
    arrays.update(ring_perturbed=np.zeros(kept, dtype=np.int64))
    arrays.update(points=np.zeros((room, d)), reach=np.zeros(room))
    for name in ("perturbed", "sources", "places"):
        arrays[name] = np.zeros(room, dtype=np.int64)
    search = np.zeros(1, dtype=SEARCH)
    record = search[0]
    record["address"] = search.ctypes.data
    record["dim"], record["ring_size"] = d, kept
    _point(record, arrays)
    hull = _face(search["hull"], room, d)
    newton = _newton(record["newton"], x0, arrays)
    model = _face(search["newton"]["model"], int(record["newton"]["capacity"]), d)
    record["newton"]["owner"] = record["address"]
    return Memory(search, arrays, hull, newton, model)


def _newton(record: Any, x0: Vector, outer: Arrays) -> Arrays:
    """Give the fast half its arrays; the question and the answer are those of the search."""
    d, planes = x0.size, min(x0.size + 10, TUNING.planes)
    arrays: Arrays = {name: np.zeros(d) for name in NEWTON_VECTORS.split()}
    arrays.update(point=outer["point"], found=outer["found"])
    arrays.update({name: np.zeros(planes) for name in ("rises", "falls", "levels", "travel")})
    arrays.update(x=x0.copy(), matrix=np.zeros((d, d)), images=np.zeros((planes, d)))
    arrays.update(stale=np.ones(planes, dtype=np.int64))
    record["dim"], record["capacity"] = d, planes
    record["has_model"] = record["extrapolates"] = 1
    _point(record, arrays)
    return arrays


def _face(records: NDArray[Any], capacity: int, width: int) -> Arrays:
    """Give a quadratic programme its arrays."""
    record = records[0]
    arrays: Arrays = {
        name: np.zeros(capacity + 1)
        for name in ("linear", "weights", "kept", "slopes", "ones", "step")
    }
    arrays["gram"] = np.zeros((capacity, capacity))
    arrays["factor"] = np.zeros((capacity + 1, capacity + 1))
    arrays["rows"] = np.zeros((capacity, width))
    arrays["point"] = np.zeros(width)
    arrays["order"] = np.zeros(capacity + 1, dtype=np.int64)
    record["address"] = records.ctypes.data
    record["capacity"], record["width"] = capacity, width
    _point(record, arrays)
    return arrays


def _point(record: Any, arrays: Arrays) -> None:
    """Tell a record where its arrays are."""
    for name, array in arrays.items():
        record[name if name in record.dtype.names else f"at_{name}"] = array.ctypes.data
