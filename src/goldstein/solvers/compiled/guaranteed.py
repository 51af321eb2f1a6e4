"""The half with the guarantee: Bundle-PINGD with a working radius, as in `solvers.auto`."""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.compiled import ask, bundle
from goldstein.solvers.compiled.centre import offer, recentre
from goldstein.solvers.compiled.constants import (
    FIRST,
    INSIDE,
    SHRINK,
    SPARSE,
    SPARSE_EVERY,
    VALUE_LIMIT,
    WIDE,
)
from goldstein.solvers.compiled.draws import ball_point, conic_point
from goldstein.solvers.compiled.jit import kernel, unit
from goldstein.solvers.compiled.ring import remember
from goldstein.solvers.compiled.vectors import copy, dot, move
from goldstein.solvers.compiled.views import search_at, vector, words


@kernel
def _step(search: Any) -> Any:
    """Make one step; True when the ball of the request is certified."""
    eps, delta, radius = search.eps, search.delta, search.working
    # A fall of f too small for the theorem must not restart its argument again and again.
    if search.fx < search.centre_value - 0.25 * delta * eps:
        recentre(search, radius)
    else:
        offer(search, radius)
    x, m = vector(search.centre, search.dim), vector(search.hull.point, search.dim)
    asked, draws = vector(search.asked, search.dim), words(search.draws, 4)
    if search.hull.count == 0:
        ball_point(draws, x, radius * FIRST, asked)
        _ask(search)
        if search.hull.count == 0:
            return False
    norm = bundle.shortest(search)
    search.bound, search.radius = norm, radius
    if norm <= eps * max(1.0, radius / delta):
        if radius <= delta:
            copy(x, vector(search.x, search.dim))
            search.fx = search.centre_value
            return True
        _shrink(search)
        return False
    ratio = min(norm / search.lipschitz, 1.0) * min(1.0, WIDE / search.dim)
    trial = vector(search.trial, search.dim)
    move(x, -radius * (1.0 - ratio / 8.0) / norm, m, trial)
    value = ask.trial_value(search, trial)
    if search.stop == 0 and value == math.inf and radius <= delta:
        ask.value(search, trial)  # not finite within delta of x: say so
    if search.stop != 0:
        return False
    if value == math.inf:
        _shrink(search)
        return False
    if value - search.centre_value < -0.25 * radius * norm:
        _descend(search, value, m, norm, radius)
        return False
    search.failed_steps += 1
    if search.failed_steps % SPARSE_EVERY == 0 and _sparse_step(search):
        return False
    if search.stop != 0:
        return False
    if search.failed_steps >= _steps_per_round(search.lipschitz, eps):
        bundle.clear(search)
        search.failed_steps = 0
        return False
    conic_point(draws, x, m, norm, radius * INSIDE, ratio, asked)
    _ask(search)
    return False


@kernel
def _shrink(search: Any) -> None:
    search.working = max(search.delta, SHRINK * search.working)
    recentre(search, search.working)


@kernel
def _steps_per_round(lipschitz: Any, eps: Any) -> Any:
    """K of `solvers.schedules`, one round failing with probability 1/e."""
    return max(1.0, math.ceil(5.0 * math.e * (lipschitz / eps) ** 2))


@kernel
def _sparse_step(search: Any) -> Any:
    """Try a step along the largest entries of m only; the small ones are noise to many kinks."""
    m, sparse = vector(search.hull.point, search.dim), vector(search.direction, search.dim)
    part, share = SPARSE[search.failed_steps // SPARSE_EVERY % len(SPARSE)]
    wanted, have, count = part * dot(m, m), 0.0, 0
    for i in range(search.dim):
        sparse[i] = 0.0
    while have < wanted:
        count += 1
        if count > 0.5 * search.dim:
            return False
        top = -1
        for i in range(search.dim):
            if sparse[i] == 0.0 and (top < 0 or abs(m[i]) > abs(m[top])):
                top = i
        sparse[top] = m[top]
        have += m[top] * m[top]
    norm, size = math.sqrt(have), share * search.working
    trial = vector(search.trial, search.dim)
    move(vector(search.centre, search.dim), -size / norm, sparse, trial)
    value = ask.trial_value(search, trial)
    if search.stop != 0 or value - search.centre_value >= -0.25 * size * norm:
        return False
    _descend(search, value, sparse, norm, size)
    return True


@kernel
def _ask(search: Any) -> None:
    """Let the bundle have the gradient at `search.asked`; a kink there costs the call."""
    point, gradient = vector(search.asked, search.dim), vector(search.found, search.dim)
    if ask.gradient(search, point, gradient):
        remember(search, point, gradient, 1)
        offer(search, search.working)


@kernel
def _descend(search: Any, value: Any, m: Any, norm: Any, size: Any) -> None:
    """Take the step to `search.trial`, and double it while the decrease stays proportional."""
    x, trial = vector(search.x, search.dim), vector(search.trial, search.dim)
    copy(trial, x)
    search.fx = value
    search.steps += 1
    size *= 2.0
    while search.fx >= VALUE_LIMIT:
        move(vector(search.centre, search.dim), -size / norm, m, trial)
        there = ask.trial_value(search, trial)
        if search.stop != 0:
            return
        if there >= search.fx or there - search.centre_value >= -0.25 * size * norm:
            break
        copy(trial, x)
        search.fx = there
        size *= 2.0
    if size > 4.0 * search.working:
        search.working *= 2.0
    recentre(search, search.working)


@unit
def BUNDLE_STEP(stamp: str) -> Any:
    def step(address: Any) -> Any:
        stamp  # noqa: B018
        return 1 if _step(search_at(address)) else 0

    return step
