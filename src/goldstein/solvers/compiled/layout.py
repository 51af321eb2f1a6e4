"""What a compiled run remembers: records of numbers that also say where the arrays are.

Records are what Numba compiles once for all dimensions and passes on as a single pointer. Their
fields have the names that `solvers.logic` knows them by.
"""

import ctypes
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.solvers.tuning import TUNING

#: Of an array by its name: the field that says where it is, its begin and its shape.
Places = dict[str, tuple[str, int, tuple[int, ...]]]

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


def _record(name: str, floats: str, integers: str, **nested: Any) -> Any:
    fields: list[tuple[str, Any]] = [(each, ctypes.c_double) for each in floats.split()]
    fields += [(each, ctypes.c_int64) for each in integers.split()]
    return type(name, (ctypes.Structure,), {"_fields_": [*fields, *nested.items()]})


#: A quadratic programme on the simplex: its data, its weights, and a factor of the active rows.
Face = _record(
    "Face",
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

Newton = _record(
    "Newton",
    "fx length reply trial trial_value slope reach low high best_trial best_value"
    " whole_fall recent_fall model_misses plain_misses",
    # the record this one is in; its arrays: pieces are `rows`, rows of the model J'g for each
    f"owner dim {addresses(NEWTON_VECTORS)} rises falls factor rows levels stale"
    " phase aside attempt looks first corrected trials best_slot pieces capacity null_steps"
    " known moved stuck barren scaled noting limited steady extrapolates"
    # the piece whose products are next computed afresh
    " next_renewed",
    model=Face,
)

Search = _record(
    "Search",
    "eps delta fx bound radius lipschitz reply"
    " centre_value tried_value span norm ratio look_radius"
    " working gathered counted_value close short"
    " share slice_value newton_rate bundle_rate progress_value progress_bound"
    " earlier mark_value",
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
    f" fresh_count fresh_points fresh_gradients {addresses(SEARCH_VECTORS)}"
    # what the user's function answers, and what it gets and may spoil
    " answer lent"
    # random words; extra arguments of the user's functions; the latest pair (value, gradient)
    " draws words pair"
    # the ring of gradients
    " ring_points ring_gradients ring_perturbed ring_known"
    # the bundle, beside its hull: no point is farther from the centre than its reach
    " points perturbed reach sources places",
    hull=Face,
    newton=Newton,
)


class Memory:
    """The record of a run that begins at x0, and the arrays that it points to.

    `words` are the extra arguments of the user's functions, `draws` the seed.
    """

    def __init__(self, x0: Vector, words: NDArray[np.int64], draws: NDArray[np.uint64]) -> None:
        search = self.record = Search()
        hull, newton, model = search.hull, search.newton, search.newton.model
        search.address = newton.owner = ctypes.addressof(search)
        hull.address, model.address = ctypes.addressof(hull), ctypes.addressof(model)
        search.dim = newton.dim = hull.width = model.width = x0.size
        hull.capacity, search.ring_size, newton.capacity = _rooms(x0.size)
        model.capacity = newton.capacity
        search.bound = search.radius = search.centre_value = search.slice_value = math.inf
        search.counted_value = search.progress_value = search.progress_bound = math.inf
        newton.length = math.inf
        newton.model_misses = newton.plain_misses = TUNING.guess
        search.newton_rate = search.bundle_rate = math.nan
        search.share, search.close, search.short = 0.5, TUNING.close, TUNING.short
        newton.steady = newton.extrapolates = 1
        size, places = _places(x0.size)
        block = np.zeros(size)
        begin = address(block)
        for record, arrays in zip((search, newton, hull, model), places, strict=True):
            for field, place, _ in arrays.values():
                setattr(record, field, begin + 8 * place)
        self.arrays, self.newton, self.hull, self.model = (Arrays(block, each) for each in places)
        # The question and the answer are those of the search.
        newton.at_point, newton.at_found = search.at_point, search.at_found
        search.words, search.draws = address(words), address(draws)
        self.kept = words, draws
        for vector in (self.arrays["x"], self.arrays["centre"], self.newton["x"]):
            vector[:] = x0
        self.arrays["tried"][:] = np.nan
        self.newton["stale"].view(np.int64)[:] = 1


class Arrays(dict[str, Vector]):
    """Arrays by name, of any shape: views of one block, made when they are asked for.

    Whole numbers are among them: what the bytes mean is for compiled code to know.
    """

    def __init__(self, block: Vector, places: Places) -> None:
        self._block, self._places = block, places

    def __missing__(self, name: str) -> Vector:
        _, begin, shape = self._places[name]
        made = self[name] = self._block[begin : begin + math.prod(shape)].reshape(shape)
        return made


def _rooms(d: int) -> tuple[int, int, int]:
    """Return how many rows the bundle, the ring and the model have room for."""
    return max(TUNING.small, d + 2), 4 * min(d, 200) + 100, min(d + 10, TUNING.small)


@lru_cache(maxsize=16)
def _places(d: int) -> tuple[int, list[Places]]:
    """Return how many numbers a run has, and (field, begin, shape) of the arrays of its records."""
    slots, ring, planes = _rooms(d)
    search = _shaped(f"{SEARCH_VECTORS} answer lent", d) | _shaped("pair", 2 * d + 2)
    search |= _shaped("ring_points ring_gradients", ring, d)
    search |= _shaped("ring_known ring_perturbed", ring) | _shaped("points", slots, d)
    search |= _shaped("reach perturbed sources places", slots)
    newton = _shaped(NEWTON_VECTORS, d) | _shaped("rises falls levels stale", planes)
    newton |= _shaped("factor", d, d) | _shaped("rows", planes, d)
    size, places = 0, list[Places]()
    for kind, shapes in (
        (Search, search),
        (Newton, newton),
        (Face, _face(slots, d)),
        (Face, _face(planes, d)),
    ):
        places.append({})
        for name, shape in shapes.items():
            field = f"at_{name}" if hasattr(kind, f"at_{name}") else name
            places[-1][name] = field, size, shape
            size += math.prod(shape)
    return size, places


def _shaped(names: str, *shape: int) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(names.split(), shape)


def _face(capacity: int, width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of a quadratic programme."""
    more = capacity + 1
    shapes = _shaped("linear weights kept slopes ones step order", more)
    shapes |= _shaped("gram", capacity, capacity) | _shaped("factor", more, more)
    return shapes | _shaped("rows", capacity, width) | _shaped("point", width)
