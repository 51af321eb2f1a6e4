"""How many gradients a search may keep: what fits into the memory that the user allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from goldstein.errors import InputError
from goldstein.solvers.tuning import TUNING

#: Bytes that a search may use where the user does not say.
DEFAULT = 2_000_000_000

#: Up to this many variables the default leaves room for all that a search wants to keep.
ROOMY = 20_000

#: Vectors per point while it is judged, when the bundle itself has made room: the point, its
#: gradient, those that two draws find beside it, and a twin; and those of a certificate that is
#: kept while the run goes on.
PER_POINT = 7

#: Points that merged rows may remember, per row; all of them are judged.
MERGED = 1.1

#: Part of the memory for the search that knows the elements of a sum: nothing is judged meanwhile.
ELEMENTS = 0.55

#: Vectors per row of the bundle.
PER_ROW = PER_POINT * MERGED

#: Vectors besides: points, directions and trials of the searches, and the learners of a sweep.
FIXED = 40

#: Rows, pairs and pieces below which a search is not worth starting.
FEWEST = 3


@dataclass(frozen=True)
class Room:
    """What may be kept.

    Attributes
    ----------
    bundle : int
        Gradients of the half with the guarantee.
    points : float
        Points that these may rest on.
    memory : int
        Gradients shared between the halves.
    pairs : int
        Pairs of the limited metric, and linear pieces of its model, at most.
    matrix : bool
        There is room for a dense matrix.
    ample : bool
        Memory is no concern.
    """

    bundle: int
    points: float
    memory: int
    pairs: int
    matrix: bool
    ample: bool = False


@lru_cache(maxsize=64)
def plan(dim: int, max_memory: int | None) -> Room:
    """Divide the memory: first what every search needs, then gradients.

    Examples
    --------
    >>> plan(10, None).bundle
    60
    >>> plan(100_000, 1_000_000_000).bundle
    130
    >>> plan(100_000, 10_000_000)
    Traceback (most recent call last):
        ...
    goldstein.errors.InputError: max_memory=10,000,000 bytes is too little for 100,000 variables: \
    the search needs 64,800,000 at least, 81 vectors.
    """
    if max_memory is None and dim < ROOMY:
        rows = max(TUNING.gather, 20_000_000 // dim)
        bundle = max(TUNING.gather, min(dim + 2, 1000, rows))
        memory = min(4 * min(dim, 200) + 100, rows)
        return Room(bundle, 2 * max(bundle, rows), memory, TUNING.pairs, True, ample=True)
    allowed = DEFAULT if max_memory is None else max_memory
    vectors = allowed // (8 * dim)
    least = FIXED + 3 * FEWEST + math.ceil((PER_ROW + 2) * FEWEST) + 2
    if max_memory is None:
        vectors = max(vectors, least)
    if vectors < least:
        raise InputError(
            f"max_memory={max_memory:,} bytes is too little for {dim:,} variables: the search "
            f"needs {8 * dim * least:,} at least, {least} vectors."
        )
    pairs = max(FEWEST, min(TUNING.pairs, (vectors - FIXED) // 20))
    left = vectors - FIXED - 3 * pairs
    memory = max(FEWEST, min(4 * min(dim, 200) + 100, left // 20))
    bundle = max(FEWEST, min(dim + 2, 1000, int((left - 2 * memory) / PER_ROW)))
    return Room(bundle, MERGED * bundle + 1, memory, pairs, 32 * dim * dim <= allowed // 4)
