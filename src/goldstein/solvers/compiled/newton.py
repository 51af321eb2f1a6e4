"""BFGS with a factor of the matrix, H = J J', and its products with the pieces of the model.

As in `solvers.metric`, whose docstring has the formula. Rows of the model are J'g for the
pieces g (its columns): a step changes each of them by a multiple of one vector.

The arithmetic of `solvers.quasi_newton`; its decisions are in `logic`.
"""

import math
from typing import Any

from goldstein.solvers.compiled.layout import BEGINS, TOLD
from goldstein.solvers.compiled.quadratic import collect, shortest_point, square, start_at
from goldstein.solvers.compiled.records import integers, make_kernels, row, search_at, unit, vector
from goldstein.solvers.compiled.vectors import (
    add_multiple,
    copy,
    distance,
    dot,
    fill,
    fill_normal,
    length,
    move,
    scale,
)
from goldstein.solvers.compiled.vectors import largest as largest_of
from goldstein.solvers.logic import line_search
from goldstein.solvers.tuning import TUNING


def to_factor(newton: Any, g: Any, target: Any) -> None:
    """Set target = J'g."""
    fill(0.0, target)
    for i in range(newton.dim):
        add_multiple(g[i], row(newton.factor, newton.dim, i), target)


def from_factor(newton: Any, v: Any, target: Any) -> None:
    """Set target = J v."""
    for i in range(newton.dim):
        target[i] = dot(row(newton.factor, newton.dim, i), v)


def renew(newton: Any) -> None:
    """Bring the columns and products of new pieces up to date.

    One other piece per step is computed afresh too, to forget the rounding errors of its updates.
    """
    model = newton.model
    stale = integers(newton.stale, model.count)
    newton.next_renewed += 1
    stale[newton.next_renewed % model.count] = 1
    for slot in range(model.count):
        if stale[slot] == 1:
            to_factor(newton, row(newton.rows, newton.dim, slot), row(model.rows, newton.dim, slot))
    for slot in range(model.count):
        if stale[slot] == 1:
            column = row(model.rows, newton.dim, slot)
            products = row(model.gram, model.capacity, slot)
            for other in range(model.count):
                product = dot(row(model.rows, newton.dim, other), column)
                products[other] = product
                row(model.gram, model.capacity, other)[slot] = product
    for slot in range(model.count):
        stale[slot] = 0


def _square(newton: Any, v: Any) -> Any:
    to_factor(newton, v, newton.along)
    return dot(newton.along, newton.along)


def square_of_gradient(newton: Any) -> Any:
    """Return g'Hg."""
    return _square(newton, newton.g)


def square_of_change(newton: Any) -> Any:
    """Return y'Hy."""
    return _square(newton, newton.change)


def scale_metric(newton: Any, factor: Any) -> None:
    size, model, root = newton.dim, newton.model, math.sqrt(factor)
    for i in range(size):
        scale(root, row(newton.factor, size, i))
    for slot in range(model.count):
        scale(root, row(model.rows, size, slot))
        scale(factor, row(model.gram, model.capacity, slot))


def learn(newton: Any, sy: Any) -> None:
    """BFGS: learn from the step and the change of the gradient; their product is `sy`."""
    size, s = newton.dim, newton.step
    along, behind_p = newton.along, newton.behind
    if newton.scaled == 0:
        _begin(newton, math.sqrt(sy / dot(newton.change, newton.change)))
    square = dot(behind_p, behind_p)
    if not 0.0 < square < math.inf:
        return
    # J + s a' with a = (sqrt(s'y) r / |r| - J'y) / s'y, where r = -J'g and g led to the step.
    to_factor(newton, newton.change, along)
    share = math.sqrt(sy / square)
    for i in range(size):
        along[i] = (-share * behind_p[i] - along[i]) / sy
    for i in range(size):
        add_multiple(s[i], along, row(newton.factor, size, i))
    _follow(newton, along)


def _follow(newton: Any, along: Any) -> None:
    """The factor has changed by s a': change the columns of the pieces, and their products."""
    model, size = newton.model, newton.dim
    stale = integers(newton.stale, model.count)
    rises, falls = vector(newton.rises, model.count), vector(newton.falls, model.count)
    half = 0.5 * dot(along, along)
    for slot in range(model.count):
        column = row(model.rows, size, slot)
        falls[slot] = dot(column, along) + half * rises[slot]
        add_multiple(rises[slot], along, column)
    for slot in range(model.count):
        if stale[slot] == 0:
            products = row(model.gram, model.capacity, slot)
            add_multiple(rises[slot], falls, products)
            add_multiple(falls[slot], rises, products)


def _begin(newton: Any, diagonal: Any) -> None:
    """Start from a multiple of the identity; the step was along a gradient."""
    size = newton.dim
    for i in range(size):
        entries = row(newton.factor, size, i)
        fill(0.0, entries)
        entries[i] = diagonal
        newton.behind[i] = -newton.step[i]
    stale = integers(newton.stale, newton.model.count)
    for slot in range(newton.model.count):
        stale[slot] = 1


#: The linear part of the model bends by its square over this many times its largest coefficient: of
#: two combinations that are as short, the one with pieces close to f at x is taken more firmly. A
#: largest coefficient this small has no scale to bend by.
BENDS, NOTHING = 1e2, 1e-200

# ---------------------------------------------------------------- where to ask


def place_trial(newton: Any, trial: Any) -> None:
    move(newton.x, trial, newton.p, newton.y)
    copy(newton.y, newton.point)


def step_aside(newton: Any, share: Any) -> None:
    fill_normal(search_at(newton.owner), newton.point)
    move(newton.y, share * max(1.0, largest_of(newton.y)), newton.point, newton.point)


def restart_newton(search: Any) -> None:
    """Continue from the best point; the metric and the pieces are kept."""
    newton = search.newton
    if newton.pieces > 0:
        move(search.x, -1.0, newton.x, newton.step)
        shift_pieces(newton)
    if distance(search.x, newton.x) > 0.0:
        newton.known = 0
    copy(search.x, newton.x)
    newton.fx = search.fx
    newton.stuck = 0
    newton.barren = 0


# ---------------------------------------------------------------- the direction


def minimise_model(newton: Any) -> Any:
    """Leave the step to the minimum of the model in `p`; return its slope."""
    model = newton.model
    renew(newton)
    _prepare_model(newton)
    slope = -shortest_point(model)
    copy(vector(model.point, newton.dim), newton.behind)
    from_factor(newton, newton.behind, newton.p)
    scale(-1.0, newton.p)
    return slope


def follow_metric(newton: Any) -> Any:
    if newton.scaled == 0:
        return follow_gradient(newton)
    to_factor(newton, newton.g, newton.behind)
    from_factor(newton, newton.behind, newton.p)
    scale(-1.0, newton.p)
    return dot(newton.p, newton.g)


def follow_gradient(newton: Any) -> Any:
    copy(newton.g, newton.p)
    scale(-1.0, newton.p)
    return dot(newton.p, newton.g)


def direction_length(newton: Any) -> Any:
    return length(newton.p)


def largest(newton: Any) -> Any:
    return largest_of(newton.x)


# ---------------------------------------------------------------- the model


def slope_found(newton: Any) -> Any:
    return dot(newton.found, newton.p)


def store_piece(newton: Any, slot: Any, level: Any) -> None:
    model = newton.model
    model.count = min(newton.pieces, newton.capacity)
    copy(newton.found, row(newton.rows, newton.dim, slot))
    vector(newton.levels, model.count)[slot] = level
    vector(model.weights, model.count)[slot] = 0.0
    integers(newton.stale, model.count)[slot] = 1


def settle_piece(newton: Any, slot: Any, level: Any) -> None:
    vector(newton.levels, newton.capacity)[slot] = level


def find_rises(newton: Any) -> None:
    """How much does each piece rise along the step?"""
    model, step = newton.model, newton.step
    rises = vector(newton.rises, model.count)
    for slot in range(model.count):
        rises[slot] = dot(row(newton.rows, newton.dim, slot), step)


def shift_pieces(newton: Any) -> None:
    """x moves by the step: find what the pieces are at the new x."""
    find_rises(newton)
    model = newton.model
    levels, rises = vector(newton.levels, model.count), vector(newton.rises, model.count)
    for slot in range(model.count):
        levels[slot] += rises[slot]


def measure_change(newton: Any, trial: Any) -> Any:
    """Return s'y for the step s to the best trial and the change y of the gradient."""
    step, change = newton.step, newton.change
    copy(newton.p, step)
    scale(trial, step)
    move(newton.found, -1.0, newton.g, change)
    return dot(step, change)


def change_counts(newton: Any) -> Any:
    change = newton.change
    return dot(change, change) > 0.0


def clear_model(newton: Any) -> None:
    model = newton.model
    model.count = 0
    weights, stale = vector(model.weights, model.capacity), integers(newton.stale, model.capacity)
    for slot in range(model.capacity):
        weights[slot] = 0.0
        stale[slot] = 1


def _prepare_model(newton: Any) -> None:
    """Pose the quadratic programme of the step, from the weights of the last one."""
    model = newton.model
    model.relative, model.noise, model.bend = 1e-9, 1e-13, 0.0
    levels = vector(newton.levels, model.count)
    linear = vector(model.linear, model.count)
    low, lowest = math.inf, 0
    top = 0.0
    for slot in range(model.count):
        gap = newton.fx - levels[slot]
        linear[slot] = max(gap, -TUNING.above * gap)
        top = max(top, linear[slot])
        height = 0.5 * square(model, slot) + linear[slot]
        if height < low:
            low, lowest = height, slot
    model.bend = 1.0 / (BENDS * top) if top > NOTHING else 0.0
    if not collect(model) > 0.0:
        start_at(model, lowest)


@unit
def go_fast(address: Any) -> Any:
    """Go on with a line search; return the next question."""
    search = search_at(address)
    newton = search.newton
    newton.reply = search.reply
    if search.entry == BEGINS:
        return line_search.begin(newton)
    if search.entry == TOLD:
        return line_search.told(newton)
    return line_search.kinked(newton)


make_kernels(globals())
