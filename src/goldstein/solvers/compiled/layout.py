"""What a compiled run remembers: records of numbers that also say where the arrays are.

Records are what Numba compiles once for all dimensions and passes on as a single pointer. Their
fields have the names that `solvers.logic` knows them by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.solvers.tuning import TUNING

Words = NDArray[np.int64]

#: Why a stretch ended: the first because Python is to answer the open question.
ASKS, PAUSED, EVIDENCE, OUT_OF_CALLS, GIVEN_UP = range(1, 6)

#: How a member goes on: with a new step, with an answer, or without one.
BEGINS, TOLD, KINKED = range(3)


def address(array: NDArray[Any]) -> int:
    """Return where the numbers of an array are: what `array.ctypes.data` is, sooner."""
    begin: int = array.__array_interface__["data"][0]
    return begin


def addresses(vectors: str) -> str:
    """Return the names of the fields that say where vectors are."""
    return " ".join(f"at_{name}" for name in vectors.split())


def _record(floats: str, integers: str, *nested: tuple[str, Any]) -> np.dtype[Any]:
    fields = [(name, "f8") for name in floats.split()]
    return np.dtype([*fields, *((name, "i8") for name in integers.split()), *nested])


#: A quadratic programme on the simplex: its data, its weights, and a factor of the active rows.
FACE = _record(
    # added to the matrix before it was factorised; slack of the optimality test; the curvature of
    # the linear part
    "shift relative noise bend",
    "address gram rows point linear weights kept order factor slopes ones step"
    # rows there are; room for rows; length of a row; rows with weight; is the factor valid?
    " count capacity width active valid exact",
)

#: Vectors of both members: a record has their addresses, and `views` makes attributes of them.
SEARCH_VECTORS = "x centre point found aimed tried"
NEWTON_VECTORS = "x g y p best step change along behind point found"

#: Arrays of the quasi-Newton member: its pieces are `rows`; rows of the model are J'g for each.
_NEWTON_ARRAYS = "rises falls factor rows levels stale"
NEWTON = _record(
    "fx length reply trial trial_value slope reach low high best_trial best_value sy"
    " whole_fall recent_fall model_misses plain_misses",
    # the record this one is in
    f"owner dim {addresses(NEWTON_VECTORS)} {_NEWTON_ARRAYS}"
    " phase aside attempt looks first corrected trials best_slot pieces capacity null_steps"
    " known moved stuck barren scaled noting limited steady extrapolates"
    # the piece whose products are next computed afresh
    " next_renewed",
    ("model", FACE),
)

_ARRAYS = (
    # what the user's function answers, and what it gets and may spoil
    "answer lent"
    # random words; extra arguments of the user's functions; the latest pair (value, gradient)
    " draws words pair"
    # the ring of gradients
    " ring_points ring_gradients ring_perturbed ring_known"
    # the bundle, beside its hull: no point is farther from the centre than its reach
    " points perturbed reach sources places"
)
SEARCH = _record(
    "eps delta fx bound radius lipschitz reply"
    " centre_value tried_value span norm ratio look_radius"
    " working gathered counted_value close short"
    " share slice_value newton_rate bundle_rate progress_value progress_bound"
    " earlier mark_value"
    # for units: how far the centre has moved; within which radius
    " wanted_move wanted_radius",
    "address dim"
    # the code of the user's functions; 0 where Python asks them
    " asking"
    # calls made; how many may be made; when to report to Python
    " values gradients ceiling pause"
    # why the stretch has to end; the open question, and how to go on; the gradient knows its kinks
    " stop question entry kinks"
    " phase failed_steps steps moved proved refuted step_began idle stalled"
    " has_portfolio member slice_began slice_ends small_moves progress_calls mark_steps"
    # gradients seen by the ring, and its room; those offered to the bundle
    " added ring_size offered"
    # rows that the last solve has seen; their weights are optimal
    " solved clean"
    # what the judge asked again
    f" fresh_count fresh_points fresh_gradients {addresses(SEARCH_VECTORS)} {_ARRAYS}",
    ("hull", FACE),
    ("newton", NEWTON),
)


_VECTORS = {"arrays": SEARCH_VECTORS, "newton": NEWTON_VECTORS}

#: Records inside the record of a search, as paths, by the names of their arrays in `Memory`.
_PATHS = {"arrays": (), "hull": ("hull",), "newton": ("newton",), "model": ("newton", "model")}

_KINDS: dict[str, Any] = {
    "draws": np.uint64,
    **dict.fromkeys(("ring_perturbed", "ring_known", "perturbed", "sources", "places"), np.int64),
    **dict.fromkeys(("stale", "order"), np.int64),
}


@cache
def word_of(*path: str) -> int:
    """Return the number of a field of the record, or of a record in it: all have eight bytes."""
    kind, begin = SEARCH, 0
    for each in path:
        kind, offset = kind.fields[each][:2]  # type: ignore[index]
        begin += offset
    return begin // 8


class Arrays(dict[str, NDArray[Any]]):
    """The arrays of a record by name: views of one block, made when they are asked for."""

    def __init__(self, block: Vector, places: dict[str, tuple[int, tuple[int, ...]]]) -> None:
        self._block, self._places = block, places

    def __missing__(self, name: str) -> NDArray[Any]:
        begin, shape = self._places[name]
        part: NDArray[Any] = self._block[begin : begin + math.prod(shape)]
        if name in _KINDS:
            part = part.view(_KINDS[name])
        if len(shape) > 1:
            part = part.reshape(shape)
        self[name] = part
        return part


class Memory:
    """One block of numbers for the record of a run and the arrays it points to."""

    def __init__(self, plan: _Plan) -> None:
        block = np.zeros(plan.size)
        #: The fields of the record as entries of arrays, which are faster to come by.
        self.numbers: Vector = block[: plan.record.size]
        self.counts: Words = self.numbers.view(np.int64)
        self.counts[:] = plan.record
        self.address = address(block)
        self.counts[plan.addresses] += self.address
        self.arrays, self.hull, self.newton, self.model = (
            Arrays(block, plan.places[owner]) for owner in _PATHS
        )

    @cached_property
    def search(self) -> NDArray[Any]:
        """The record, in an array of one entry."""
        return self.numbers.view(SEARCH)


@dataclass
class _Plan:
    """Where everything is in a block that begins with the record."""

    size: int
    #: The record of a run that has not begun, with addresses in a block at 0; where these are.
    record: Words
    addresses: NDArray[np.intp]
    places: dict[str, dict[str, tuple[int, tuple[int, ...]]]]


def allocate(x0: Vector, words: Words, draws: NDArray[np.uint64]) -> Memory:
    """Return the memory of a run that begins at x0."""
    memory = Memory(_plan(x0.size))
    for arrays, name in ((memory.arrays, "x"), (memory.arrays, "centre"), (memory.newton, "x")):
        arrays[name][:] = x0
    memory.arrays["draws"][:] = draws
    memory.arrays["tried"][:] = np.nan
    memory.newton["stale"][:] = 1
    memory.arrays["words"] = words
    memory.counts[word_of("words")] = address(words)
    return memory


@cache
def _blank() -> Words:
    """Return the record of a run that has not begun, without what depends on the variables."""
    search = np.zeros(1, dtype=SEARCH)
    for name in ("bound", "radius", "centre_value", "slice_value", "counted_value",
                 "progress_value", "progress_bound"):  # fmt: skip
        search[name] = math.inf
    search["newton"]["length"] = math.inf
    search["newton"]["model_misses"] = search["newton"]["plain_misses"] = TUNING.guess
    search["newton_rate"] = search["bundle_rate"] = math.nan
    search["share"], search["close"], search["short"] = 0.5, TUNING.close, TUNING.short
    for name in ("steady", "extrapolates"):
        search["newton"][name] = 1
    return search.view(np.int64)


@lru_cache(maxsize=16)
def _plan(d: int) -> _Plan:
    """Lay out the memory of runs with this many variables."""
    slots, remembered = max(TUNING.small, d + 2), 4 * min(d, 200) + 100
    planes = min(d + 10, TUNING.small)
    shapes: dict[str, dict[str, tuple[int, ...]]] = {
        "arrays": dict.fromkeys(f"{SEARCH_VECTORS} {_ARRAYS}".split(), (d,)),
        "hull": _face(slots, d),
        "newton": dict.fromkeys(NEWTON_VECTORS.split(), (d,)),
        "model": _face(planes, d),
    }
    shapes["arrays"].update(draws=(4,), words=(0,), pair=(2 * d + 2,), points=(slots, d))
    shapes["arrays"].update(ring_points=(remembered, d), ring_gradients=(remembered, d))
    shapes["arrays"].update(dict.fromkeys(("ring_known", "ring_perturbed"), (remembered,)))
    shapes["arrays"].update(dict.fromkeys(("reach", "perturbed", "sources", "places"), (slots,)))
    shapes["newton"].update(dict.fromkeys(("rises", "falls", "levels"), (planes,)))
    shapes["newton"].update(stale=(planes,), factor=(d, d), rows=(planes, d))
    record = _blank().copy()
    for number, fields in (
        (d, (("dim",), ("newton", "dim"), ("hull", "width"), ("newton", "model", "width"))),
        (planes, (("newton", "capacity"), ("newton", "model", "capacity"))),
        (slots, (("hull", "capacity"),)),
        (remembered, (("ring_size",),)),
    ):
        record[[word_of(*field) for field in fields]] = number
    places: dict[str, dict[str, tuple[int, tuple[int, ...]]]] = {}
    size, begins = record.size, {word_of("newton", "owner"): 0}
    for owner, path in _PATHS.items():
        places[owner] = {}
        for name, shape in shapes[owner].items():
            places[owner][name] = size, shape
            size += math.prod(shape)
        if owner == "newton":  # the question and the answer are those of the search
            places[owner].update({name: places["arrays"][name] for name in ("point", "found")})
        vectors = _VECTORS.get(owner, "").split()
        for name, (begin, _) in places[owner].items():
            begins[word_of(*path, f"at_{name}" if name in vectors else name)] = begin
        if owner != "newton":
            begins[word_of(*path, "address")] = word_of(*path)
    record[list(begins)] = [8 * begin for begin in begins.values()]
    return _Plan(size, record, np.array(list(begins)), places)


def _face(capacity: int, width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of a quadratic programme."""
    more = capacity + 1
    return {
        **dict.fromkeys(("linear", "weights", "kept", "slopes", "ones", "step", "order"), (more,)),
        "gram": (capacity, capacity),
        "factor": (more, more),
        "rows": (capacity, width),
        "point": (width,),
    }
