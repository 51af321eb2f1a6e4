"""The arithmetic of the bundle member, as in `solvers.ball_state` and `solvers.auto`.

The gradients that both members share; the oldest is overwritten when the ring is full.

The gradients around the centre of the bundle member, and their shortest vector.
"""

import math
from typing import Any

from goldstein.solvers.compiled.layout import BEGINS, TOLD
from goldstein.solvers.compiled.quadratic import (
    remove,
    shortest_point,
    shortest_row,
    square,
    start_at,
)
from goldstein.solvers.compiled.records import integers, make_kernels, row, search_at, unit, vector
from goldstein.solvers.compiled.vectors import ball_point, copy, distance, dot, length, move
from goldstein.solvers.logic import bundle_member
from goldstein.solvers.logic.questions import NOTHING


def remember(search: Any, point: Any, gradient: Any, perturbed: Any) -> None:
    """Store a pair, and raise the Lipschitz constant where the gradient contradicts it."""
    norm = length(gradient)
    if norm > search.lipschitz:
        search.lipschitz = max(2.0 * search.lipschitz, norm)
    size = search.ring_size
    index = search.added % size
    copy(point, row(search.ring_points, search.dim, index))
    copy(gradient, row(search.ring_gradients, search.dim, index))
    integers(search.ring_perturbed, size)[index] = perturbed
    integers(search.ring_known, size)[index] = 1
    search.added += 1


def is_near(search: Any, index: Any, radius: Any) -> Any:
    """Is this entry within the radius of the centre, and not forgotten?"""
    if integers(search.ring_known, search.ring_size)[index] == 0:
        return False
    return distance(row(search.ring_points, search.dim, index), search.centre) <= radius


def forget(search: Any, spared: Any) -> None:
    """Forget all entries; those drawn at random may be spared."""
    known = integers(search.ring_known, search.ring_size)
    perturbed = integers(search.ring_perturbed, search.ring_size)
    for index in range(search.ring_size):
        if perturbed[index] == 0 or not spared:
            known[index] = 0


def remember_found(search: Any) -> None:
    remember(search, search.point, search.found, 1)


def remember_fresh(search: Any) -> None:
    """Believe what the judge was told."""
    for index in range(search.fresh_count):
        point = row(search.fresh_points, search.dim, index)
        remember(search, point, row(search.fresh_gradients, search.dim, index), 1)


def clear_memory(search: Any) -> None:
    forget(search, False)


def note(newton: Any) -> None:
    """Let the other member know of the gradient."""
    remember(search_at(newton.owner), newton.point, newton.found, 0)


_SLACK = 1e-12
_NOISE = 2.0**-50


def bundle_size(search: Any) -> Any:
    return search.hull.count


def clear_bundle(search: Any) -> None:
    search.hull.count = 0
    search.hull.active = 0
    search.hull.valid = 0
    search.solved = 0
    search.clean = 0


def shortest(search: Any) -> Any:
    """Leave the shortest vector of the hull in its `point`; return its length."""
    measure(search)
    point = vector(search.hull.point, search.dim)
    return math.sqrt(dot(point, point))


def measure(search: Any) -> None:
    """Find the weights of the shortest vector."""
    hull = search.hull
    count = hull.count
    point = vector(hull.point, hull.width)
    if hull.active == 0:
        start_at(hull, shortest_row(hull))
        search.clean = 0
    if search.clean == 1 and search.solved >= count - 1:
        squared = dot(point, point)
        if search.solved == count:
            return
        # One newcomer: it alone can have changed anything.
        noise = _NOISE * math.sqrt(squared * square(hull, count - 1))
        if not dot(row(hull.rows, hull.width, count - 1), point) < squared * (1 - _SLACK) - noise:
            search.solved = count
            return
    hull.relative, hull.noise = _SLACK, _NOISE
    squared = shortest_point(hull)
    best = shortest_row(hull)
    if not squared <= square(hull, best):
        # Only rounding among rows of very different lengths can do this.
        start_at(hull, best)
        copy(row(hull.rows, hull.width, best), point)
    search.solved = count
    search.clean = 1


def add(search: Any, point: Any, gradient: Any, perturbed: Any, reach: Any) -> None:
    """Add a gradient of a point within `reach` of the centre; room is made without loss."""
    hull = search.hull
    if hull.count == hull.capacity:
        _make_room(search)
    new = hull.count
    hull.count = new + 1
    copy(point, row(search.points, search.dim, new))
    copy(gradient, row(hull.rows, hull.width, new))
    integers(search.perturbed, hull.count)[new] = perturbed
    vector(search.reach, hull.count)[new] = reach
    vector(hull.weights, hull.count)[new] = 0.0
    products = row(hull.gram, hull.capacity, new)
    for other in range(hull.count):
        product = dot(row(hull.rows, hull.width, other), gradient)
        products[other] = product
        row(hull.gram, hull.capacity, other)[new] = product


def _make_room(search: Any) -> None:
    """Drop the rows without weight.

    The active rows are affinely independent, so there are at most d + 1 of them, fewer than the
    bundle has room for. Should rounding fill it nevertheless, the lightest row goes.
    """
    measure(search)
    hull = search.hull
    weights, places = vector(hull.weights, hull.count), integers(search.places, hull.count)
    lightest = 0
    for index in range(hull.count):
        places[index] = 0 if weights[index] > 0.0 else -1
        if weights[index] < weights[lightest]:
            lightest = index
    if hull.active == hull.count:
        places[lightest] = -1
    _keep_placed(search)


def add_found(search: Any) -> None:
    add(search, search.point, search.found, 1, search.working)


def keep_near(search: Any, moved: Any, radius: Any) -> None:
    """Drop the rows with points outside the ball around the centre, which moved by `moved`."""
    count = search.hull.count
    reach, places = vector(search.reach, count), integers(search.places, count)
    for index in range(count):
        reach[index] += moved
        if reach[index] > radius:
            reach[index] = distance(row(search.points, search.dim, index), search.centre)
        places[index] = 0 if reach[index] <= radius else -1
    _keep_placed(search)


def drop_unperturbed(search: Any) -> None:
    """Forget what rests on a point that was not drawn at random."""
    count = search.hull.count
    places, perturbed = integers(search.places, count), integers(search.perturbed, count)
    for index in range(count):
        places[index] = 0 if perturbed[index] == 1 else -1
    _keep_placed(search)
    forget(search, True)


def gather(search: Any, radius: Any) -> None:
    """Let the bundle have what the ring knows within the radius and it was not offered."""
    perturbed = integers(search.ring_perturbed, search.ring_size)
    oldest = max(search.offered, search.added - search.ring_size)
    taken = 0
    for entry in range(search.added - 1, oldest - 1, -1):
        index = entry % search.ring_size
        if taken < search.hull.capacity and is_near(search, index, radius):
            taken += 1
            point = row(search.ring_points, search.dim, index)
            gradient = row(search.ring_gradients, search.dim, index)
            add(search, point, gradient, perturbed[index], radius)


def _keep_placed(search: Any) -> None:
    """Drop the rows whose place is -1; the others keep their order, weights and factor."""
    hull = search.hull
    count = hull.count
    places, sources = integers(search.places, count), integers(search.sources, count)
    kept = 0
    for index in range(count):
        if places[index] >= 0:
            places[index] = kept
            sources[kept] = index
            kept += 1
    if kept == count:
        return
    if kept == 0:
        clear_bundle(search)
        return
    leaving = _drop_active(search)
    weights, reach = vector(hull.weights, count), vector(search.reach, count)
    perturbed = integers(search.perturbed, count)
    total = 0.0
    # Every source lies behind its target, so nothing is overwritten before it has been read.
    for index in range(kept):
        source = sources[index]
        weights[index] = weights[source]
        total += weights[index]
        ours, theirs = row(hull.gram, hull.capacity, index), row(hull.gram, hull.capacity, source)
        for other in range(kept):
            ours[other] = theirs[sources[other]]
        if source != index:
            copy(row(search.points, search.dim, source), row(search.points, search.dim, index))
            copy(row(hull.rows, hull.width, source), row(hull.rows, hull.width, index))
            perturbed[index] = perturbed[source]
            reach[index] = reach[source]
    if leaving > 0 or search.solved < count:
        search.clean = 0
    if hull.active > 0:
        for index in range(kept):
            weights[index] /= total
    hull.count = kept
    search.solved = kept


def _drop_active(search: Any) -> Any:
    """Take the rows without a place out of the active set, renumber it; return how many left."""
    hull = search.hull
    order, places = integers(hull.order, hull.active), integers(search.places, hull.count)
    leaving = 0
    for place in range(hull.active):
        if places[order[place]] < 0:
            leaving += 1
    if 3 * leaving > hull.active:
        hull.valid = 0  # a new factor is cheaper than so many rotations
    for place in range(hull.active - 1, -1, -1):
        if places[order[place]] < 0:
            remove(hull, place)
    for place in range(hull.active):
        order[place] = places[order[place]]
    return leaving


def place_descent(search: Any) -> None:
    """Ask at the trial point of Algorithm 1."""
    copy(vector(search.hull.point, search.dim), search.aimed)
    size = -search.span * (1.0 - search.ratio / 8.0) / search.norm
    move(search.centre, size, search.aimed, search.point)


def place_farther(search: Any) -> None:
    """Ask at the end of a step of length `span`."""
    move(search.centre, -search.span / search.norm, search.aimed, search.point)


def draw_first(search: Any, radius: Any) -> None:
    ball_point(search, search.centre, radius)


def move_centre(search: Any) -> Any:
    """Move the centre to x; return how far that is, and a little more."""
    moved = distance(search.x, search.centre) * (1.0 + 1e-12)
    copy(search.x, search.centre)
    return moved


def is_centred(search: Any) -> Any:
    return distance(search.x, search.centre) == 0.0


def was_tried(search: Any) -> Any:
    return distance(search.point, search.tried) == 0.0


@unit
def go_surely(address: Any) -> Any:
    """Go on with a step; return the next question."""
    search = search_at(address)
    if search.entry == BEGINS:
        return bundle_member.begin(search)
    if search.entry == TOLD:
        return bundle_member.told(search)
    return NOTHING


make_kernels(globals())
