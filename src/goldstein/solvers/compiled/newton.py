"""The arithmetic of the fast half, as in `solvers.quasi_newton`; its decisions are in `logic`."""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.compiled import decisions  # noqa: F401
from goldstein.solvers.compiled.draws import ball_point, fill_normal
from goldstein.solvers.compiled.jit import kernel, method, unit
from goldstein.solvers.compiled.layout import BEGINS, TOLD
from goldstein.solvers.compiled.metric import before, behind, renew
from goldstein.solvers.compiled.simplex import collect, shortest_point, square, start_at
from goldstein.solvers.compiled.vectors import copy, dot, length, move, scale
from goldstein.solvers.compiled.vectors import largest as largest_of
from goldstein.solvers.compiled.views import integers, row, search_at, vector
from goldstein.solvers.logic import line_search
from goldstein.solvers.tuning import TUNING

#: The linear part of the model bends by its square over this many times its largest coefficient: of
#: two combinations that are as short, the one with pieces close to f at x is taken more firmly. A
#: largest coefficient this small has no scale to bend by.
BENDS, NOTHING = 1e2, 1e-200

# ---------------------------------------------------------------- where to ask


@method
def stay(newton: Any) -> None:
    copy(newton.x, newton.y)


@method
def place_trial(newton: Any, trial: Any) -> None:
    move(newton.x, trial, newton.p, newton.y)
    copy(newton.y, newton.point)


@method
def near_trial(newton: Any) -> None:
    if newton.jitter > 0.0:
        ball_point(search_at(newton.owner), newton.y, newton.jitter)
    else:
        copy(newton.y, newton.point)


@method
def step_aside(newton: Any, share: Any) -> None:
    fill_normal(search_at(newton.owner), newton.point)
    move(newton.y, share * max(1.0, largest_of(newton.y)), newton.point, newton.point)


@method
def keep_trial(newton: Any) -> None:
    copy(newton.y, newton.best)


@method
def return_to_best(newton: Any) -> None:
    copy(newton.best, newton.y)


@method
def take_best(newton: Any) -> None:
    copy(newton.best, newton.x)


@method
def adopt_gradient(newton: Any) -> None:
    copy(newton.found, newton.g)


@method
def restart_newton(search: Any) -> None:
    """Continue from the best point; the metric and the pieces are kept."""
    newton = search.newton
    if newton.pieces > 0:
        move(search.x, -1.0, newton.x, newton.step)
        shift_pieces(newton, length(newton.step))
    copy(search.x, newton.x)
    newton.fx = search.fx
    newton.known = 0
    newton.stuck = 0


@method
def begin_plain(search: Any) -> None:
    """Never asked for: the matrix is dense."""


# ---------------------------------------------------------------- the direction


@method
def minimise_model(newton: Any) -> Any:
    """Leave the step to the minimum of the model in `p`; return its slope."""
    solve_model(newton.owner)
    return newton.slope


@unit
def solve_model(address: Any) -> Any:
    newton = search_at(address).newton
    model = newton.model
    renew(newton)
    _prepare_model(newton)
    newton.slope = -shortest_point(model)
    copy(vector(model.point, newton.dim), newton.behind)
    before(newton, newton.behind, newton.p)
    scale(-1.0, newton.p)
    return 0


@method
def follow_metric(newton: Any) -> Any:
    if newton.scaled == 0:
        return follow_gradient(newton)
    behind(newton, newton.g, newton.behind)
    before(newton, newton.behind, newton.p)
    scale(-1.0, newton.p)
    return dot(newton.p, newton.g)


@method
def follow_gradient(newton: Any) -> Any:
    copy(newton.g, newton.p)
    scale(-1.0, newton.p)
    return dot(newton.p, newton.g)


@method
def direction_length(newton: Any) -> Any:
    return length(newton.p)


@method
def largest(newton: Any) -> Any:
    return largest_of(newton.x)


# ---------------------------------------------------------------- the model


@method
def slope_found(newton: Any) -> Any:
    return dot(newton.found, newton.p)


@method
def store_piece(newton: Any, slot: Any, level: Any, travel: Any) -> None:
    model = newton.model
    model.count = min(newton.pieces, newton.capacity)
    copy(newton.found, row(newton.rows, newton.dim, slot))
    vector(newton.levels, model.count)[slot] = level
    vector(newton.travel, model.count)[slot] = travel
    vector(model.weights, model.count)[slot] = 0.0
    integers(newton.stale, model.count)[slot] = 1


@method
def settle_piece(newton: Any, slot: Any, level: Any) -> None:
    vector(newton.levels, newton.capacity)[slot] = level
    vector(newton.travel, newton.capacity)[slot] = 0.0


@method
def find_rises(newton: Any) -> None:
    """How much does each piece rise along the step?"""
    model, step = newton.model, newton.step
    rises = vector(newton.rises, model.count)
    for slot in range(model.count):
        rises[slot] = dot(row(newton.rows, newton.dim, slot), step)


@method
def shift_pieces(newton: Any, by: Any) -> None:
    """x moves by a step of this length: find what the pieces are at the new x."""
    find_rises(newton)
    model = newton.model
    levels, travel = vector(newton.levels, model.count), vector(newton.travel, model.count)
    rises = vector(newton.rises, model.count)
    for slot in range(model.count):
        levels[slot] += rises[slot]
        travel[slot] += by


@method
def measure_change(newton: Any, trial: Any) -> Any:
    """Return s'y for the step s to the best trial and the change y of the gradient."""
    step, change = newton.step, newton.change
    copy(newton.p, step)
    scale(trial, step)
    move(newton.found, -1.0, newton.g, change)
    return dot(step, change)


@method
def measure_change_since(newton: Any, ratio: Any) -> Any:
    """Return s'y where y is the change of the gradient since `ratio` times what it was."""
    move(newton.found, -ratio, newton.g, newton.change)
    return dot(newton.step, newton.change)


@method
def change_counts(newton: Any) -> Any:
    change = newton.change
    return dot(change, change) > 0.0


@method
def clear_model(newton: Any) -> None:
    model = newton.model
    model.count = 0
    weights, stale = vector(model.weights, model.capacity), integers(newton.stale, model.capacity)
    for slot in range(model.capacity):
        weights[slot] = 0.0
        stale[slot] = 1


@kernel
def _prepare_model(newton: Any) -> None:
    """Pose the quadratic programme of the step, from the weights of the last one."""
    model = newton.model
    model.relative, model.noise, model.bend = 1e-9, 1e-13, 0.0
    levels, travel = vector(newton.levels, model.count), vector(newton.travel, model.count)
    linear = vector(model.linear, model.count)
    low, lowest = math.inf, 0
    top = 0.0
    for slot in range(model.count):
        gap = newton.fx - levels[slot]
        gap = max(gap, -TUNING.above * gap)
        linear[slot] = max(gap, TUNING.locality * travel[slot] * travel[slot])
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
