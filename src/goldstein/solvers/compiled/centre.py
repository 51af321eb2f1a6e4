"""Where the half with the guarantee stands, and the known gradients around it."""

from __future__ import annotations

from typing import Any

from goldstein.solvers.compiled import bundle
from goldstein.solvers.compiled.constants import INSIDE, SMALL_MOVES
from goldstein.solvers.compiled.jit import kernel, unit
from goldstein.solvers.compiled.ring import ask_about, is_near
from goldstein.solvers.compiled.vectors import copy, distance
from goldstein.solvers.compiled.views import call, integers, row, search_at, vector


@kernel
def may_recentre(search: Any) -> Any:
    """May the fast half move the centre of the other one? Always after a fall that counts."""
    if search.fx < search.counted_value - 0.25 * search.delta * search.eps:
        search.counted_value = search.fx
        search.small_moves = 0
        return True
    search.small_moves += 1
    return search.small_moves <= SMALL_MOVES


@kernel
def recentre(search: Any, radius: Any) -> None:
    """Move the bundle half to the best point, with the gradients known around it."""
    search.wanted, search.moves = radius, 1
    call(search.gathering, search.address)


@kernel
def offer(search: Any, radius: Any) -> None:
    """Let the bundle have what the ring learned around the centre since it was last asked."""
    if search.offered != search.added:
        search.wanted, search.moves = radius, 0
        call(search.gathering, search.address)


@kernel
def _recentre(search: Any) -> None:
    radius = search.wanted
    x, centre = vector(search.x, search.dim), vector(search.centre, search.dim)
    moved = distance(x, centre) * (1.0 + 1e-12)
    copy(x, centre)
    search.centre_value = search.fx
    search.failed_steps = 0
    if radius <= search.gathered:
        bundle.recentre(search, centre, moved, radius * INSIDE)
    else:
        bundle.clear(search)
    if search.hull.count == 0:
        search.offered = 0
    search.gathered = radius


@kernel
def _offer(search: Any) -> None:
    inside = search.wanted * INSIDE
    perturbed = integers(search.ring_perturbed, search.ring_size)
    ask_about(search, vector(search.centre, search.dim))
    oldest = max(search.offered, search.added - search.ring_size)
    taken = 0
    for entry in range(search.added - 1, oldest - 1, -1):
        index = entry % search.ring_size
        if taken < search.hull.capacity and is_near(search, index, inside):
            taken += 1
            point = row(search.ring_points, search.dim, index)
            gradient = row(search.ring_gradients, search.dim, index)
            bundle.add(search, point, gradient, perturbed[index], inside)
    search.offered = search.added


@unit
def GATHER(stamp: str) -> Any:
    def gather(address: Any) -> Any:
        stamp  # noqa: B018
        search = search_at(address)
        if search.moves == 1:
            _recentre(search)
        _offer(search)
        return 0

    return gather
