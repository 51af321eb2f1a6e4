"""The fast half: a quasi-Newton search for functions with kinks, as in `solvers.quasi_newton`."""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.compiled import ask
from goldstein.solvers.compiled.constants import (
    ARMIJO,
    CURVATURE,
    HOPE,
    LOCALITY,
    MAX_TRIALS,
    TOO_HIGH,
)
from goldstein.solvers.compiled.draws import ball_point, fill_normal
from goldstein.solvers.compiled.jit import kernel, unit
from goldstein.solvers.compiled.metric import apply, renew, update
from goldstein.solvers.compiled.ring import remember
from goldstein.solvers.compiled.simplex import collect, combine, square, start_at
from goldstein.solvers.compiled.vectors import copy, distance, dot, largest, length, move
from goldstein.solvers.compiled.views import call, integers, row, search_at, vector, words

#: Steps aside from a kink.
_ASIDE = 8


@kernel
def restart(search: Any) -> None:
    """Continue from the best point; the metric and the pieces are kept."""
    x, here = vector(search.x, search.dim), vector(search.newton_x, search.dim)
    if search.model.count > 0:
        step = vector(search.step, search.dim)
        move(x, -1.0, here, step)
        _shift(search, step)
    copy(x, here)
    search.newton_fx = search.fx
    search.known = 0
    search.stuck = 0


@kernel
def forget(search: Any, room: Any) -> None:
    """Start the model afresh: what it learned leads nowhere. Next step: not beyond `room`."""
    search.room = room
    search.planes = 0
    search.scaled = 0
    model = search.model
    model.count = 0
    weights, stale = vector(model.weights, model.capacity), integers(search.stale, model.capacity)
    for slot in range(model.capacity):
        weights[slot] = 0.0
        stale[slot] = 1


@kernel
def _step(search: Any) -> Any:
    """Make one line search; False when it led nowhere, or when the stretch has to stop."""
    x = vector(search.newton_x, search.dim)
    p, y = vector(search.direction, search.dim), vector(search.trial, search.dim)
    if search.known == 0:
        copy(x, y)
        if _look(search, search.newton_fx) < 0:
            return False
        copy(vector(search.found, search.dim), vector(search.newton_g, search.dim))
        search.known = 1
    slope, trial, fy = 0.0, 1.0, 0.0
    for attempt in range(search.null_steps + 1):
        slope = _direction(search)
        if slope == 0.0:
            search.stuck = 1
            return False
        trial = 1.0
        if search.scaled == 0:
            # The first step has no scale: do not leave the neighbourhood of the start.
            room = search.room if search.room > 0.0 else max(1.0, largest(x))
            trial = min(1.0, room / length(p))
        move(x, trial, p, y)
        fy = ask.trial_value(search, y)
        if search.stop != 0:
            return False
        if fy < search.newton_fx + ARMIJO * trial * slope:
            break
        too_far = fy - search.newton_fx > TOO_HIGH * -slope
        if search.scaled == 0 or attempt == search.null_steps or too_far:
            break
        # A null step: the model was wrong there, so tell it what f looks like.
        if _look(search, fy) < 0:
            return False
    return _line_search(search, slope, trial, fy)


@kernel
def _shift(search: Any, step: Any) -> None:
    """x moves by a step: find what the pieces are at the new x."""
    model = search.model
    levels, travel = vector(search.levels, model.count), vector(search.travel, model.count)
    rises = vector(search.rises, model.count)
    by = length(step)
    for slot in range(model.count):
        rises[slot] = dot(row(model.rows, search.dim, slot), step)
        levels[slot] += rises[slot]
        travel[slot] += by


@kernel
def _direction(search: Any) -> Any:
    """Leave the step to the minimum of the model in `search.direction`; return its slope."""
    p, g = vector(search.direction, search.dim), vector(search.newton_g, search.dim)
    model = search.model
    slope = 0.0
    if search.scaled == 1 and model.count > 1:
        renew(search)
        _prepare_model(search)
        call(search.minimising, model.address)
        combination = vector(model.point, search.dim)
        combine(model, model.rows, combination)
        combine(model, search.images, p)
        slope = -dot(combination, p)
        for i in range(search.dim):
            p[i] = -p[i]
    elif search.scaled == 1:
        apply(search, g, p)
        for i in range(search.dim):
            p[i] = -p[i]
        slope = dot(p, g)
    if math.isfinite(slope) and slope < 0.0:
        return slope
    if search.scaled == 1:
        forget(search, 0.0)
    for i in range(search.dim):
        p[i] = -g[i]
    return dot(p, g)


@kernel
def _prepare_model(search: Any) -> None:
    """Pose the quadratic programme of the step, from the weights of the last one."""
    model = search.model
    model.relative, model.noise, model.exact = 1e-9, 1e-13, 0
    levels, travel = vector(search.levels, model.count), vector(search.travel, model.count)
    linear = vector(model.linear, model.count)
    low, lowest = math.inf, 0
    for slot in range(model.count):
        gap = abs(search.newton_fx - levels[slot])
        linear[slot] = max(gap, LOCALITY * travel[slot] * travel[slot])
        height = 0.5 * square(model, slot) + linear[slot]
        if height < low:
            low, lowest = height, slot
    if not collect(model) > 0.0:
        start_at(model, lowest)


@kernel
def _line_search(search: Any, slope: Any, trial: Any, fy: Any) -> Any:
    """Weak Wolfe search by bisection; the first trial has been evaluated already."""
    p, y = vector(search.direction, search.dim), vector(search.trial, search.dim)
    x, g = vector(search.newton_x, search.dim), vector(search.newton_g, search.dim)
    best, change = vector(search.best, search.dim), vector(search.change, search.dim)
    low, high = 0.0, math.inf
    best_trial, best_value, best_slot = 0.0, math.inf, -1
    for _ in range(MAX_TRIALS):
        if fy < search.newton_fx + ARMIJO * trial * slope:
            # While f falls this fast from one trial to the next, no need to look.
            fall = CURVATURE * slope * (trial - best_trial)
            steep = best_trial > 0.0 and high == math.inf and fy - best_value < fall
            best_trial, best_value, best_slot = trial, fy, -1
            copy(y, best)
            if not steep:
                best_slot = _look(search, fy)
                if best_slot < 0:
                    return _keep(search, best_value)
                copy(vector(search.found, search.dim), change)
                if dot(change, p) >= CURVATURE * slope:
                    break
            low = trial
        else:
            high = trial
        trial = 0.5 * (low + high) if high < math.inf else 2.0 * low
        if high < math.inf and high - low <= 1e-15 * high:
            break
        move(x, trial, p, y)
        fy = ask.trial_value(search, y)
        if search.stop != 0:
            return best_trial > 0.0 and _keep(search, best_value)
    if best_trial == 0.0:
        close = 1e-8 * max(1.0, largest(x))
        if fy == math.inf and trial * length(p) <= close:
            ask.value(search, y)  # not finite arbitrarily close to x: say so
        forget(search, 0.0)
        search.stuck = 1
        return False
    if best_slot < 0:
        copy(best, y)
        best_slot = _look(search, best_value)
        if best_slot < 0:
            return _keep(search, best_value)
        copy(vector(search.found, search.dim), change)
    s = vector(search.step, search.dim)
    for i in range(search.dim):
        s[i] = best_trial * p[i]
        old = g[i]
        g[i] = change[i]
        change[i] -= old
    search.newton_length = best_trial * length(p)
    _shift(search, s)
    vector(search.levels, search.model.count)[best_slot] = best_value
    vector(search.travel, search.model.count)[best_slot] = 0.0
    sy = dot(s, change)
    if 1e-300 < sy < math.inf and dot(change, change) > 0.0:
        update(search, sy)
    copy(best, x)
    search.newton_fx = best_value
    return True


@kernel
def _keep(search: Any, value: Any) -> Any:
    """End a line search without a gradient; what it gained is kept if the run is at its end."""
    if search.stop != 0:
        copy(vector(search.best, search.dim), vector(search.newton_x, search.dim))
        search.newton_fx = value
        search.known = 0
    return False


@kernel
def _look(search: Any, value: Any) -> Any:
    """Ask for the gradient at the trial point, or next to it, and add it to the model.

    Leaves it in `search.found`; returns its slot in the model, or -1 without one.
    """
    search.trial_value = value
    return call(search.looking, search.address)


@kernel
def _look_around(search: Any) -> Any:
    y, g = vector(search.trial, search.dim), vector(search.found, search.dim)
    near = vector(search.asked, search.dim)
    draws = words(search.draws, 4)
    hair = 1e-12 * max(1.0, largest(y))
    copy(y, near)
    if search.jitter > 0.0:
        ball_point(draws, y, search.jitter, near)
    for attempt in range(_ASIDE + 1):
        if ask.gradient(search, near, g):
            break
        if search.stop != 0 or attempt == _ASIDE:
            return -1
        # A kink: step aside at random, a little farther each time.
        fill_normal(draws, near)
        for i in range(search.dim):
            near[i] = y[i] + hair * near[i]
        hair *= 10.0
    remember(search, near, g, 1 if search.jitter > 0.0 else 0)
    model, x = search.model, vector(search.newton_x, search.dim)
    slot = search.planes % model.capacity
    search.planes += 1
    model.count = min(search.planes, model.capacity)
    copy(g, row(model.rows, search.dim, slot))
    level = search.trial_value
    for i in range(search.dim):
        level += g[i] * (x[i] - y[i])
    vector(search.levels, model.count)[slot] = level
    vector(search.travel, model.count)[slot] = distance(x, y)
    vector(model.weights, model.count)[slot] = HOPE
    integers(search.stale, model.count)[slot] = 1
    return slot


@unit
def LOOK(stamp: str) -> Any:
    def look(address: Any) -> Any:
        stamp  # noqa: B018
        return _look_around(search_at(address))

    return look


@unit
def NEWTON_STEP(stamp: str) -> Any:
    def step(address: Any) -> Any:
        stamp  # noqa: B018
        return 1 if _step(search_at(address)) else 0

    return step
