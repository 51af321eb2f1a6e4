"""The gradients that both halves share; the oldest is overwritten when the ring is full."""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.compiled.jit import kernel, method
from goldstein.solvers.compiled.vectors import copy, distance, length
from goldstein.solvers.compiled.views import integers, row, search_at, vector


@kernel
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
    vector(search.ring_near, size)[index] = 0.0
    vector(search.ring_far, size)[index] = math.inf
    search.added += 1


@kernel
def _bounds(search: Any) -> Any:
    size = search.ring_size
    return vector(search.ring_near, size), vector(search.ring_far, size)


@kernel
def ask_about(search: Any, x: Any) -> None:
    """Shift the bounds on distances to those from x."""
    moved = distance(x, search.ring_asked) * (1.0 + 1e-12)
    if moved == 0.0:
        return
    copy(x, search.ring_asked)
    near, far = _bounds(search)
    for index in range(search.ring_size):
        near[index] -= moved
        far[index] += moved


@kernel
def is_near(search: Any, index: Any, radius: Any) -> Any:
    """Is this entry within the radius of the point last asked about?"""
    near, far = _bounds(search)
    if near[index] > radius:
        return False
    if far[index] > radius:
        point = row(search.ring_points, search.dim, index)
        far[index] = distance(point, search.ring_asked)
        near[index] = far[index]
    return far[index] <= radius


@kernel
def forget(search: Any, spared: Any) -> None:
    """No entry is near anything from now on; those drawn at random may be spared."""
    near = vector(search.ring_near, search.ring_size)
    perturbed = integers(search.ring_perturbed, search.ring_size)
    for index in range(search.ring_size):
        if perturbed[index] == 0 or not spared:
            near[index] = math.inf


@method
def remember_found(search: Any) -> None:
    remember(search, search.point, search.found, 1)


@method
def remember_fresh(search: Any) -> None:
    """Believe what the judge was told."""
    for index in range(search.fresh_count):
        point = row(search.fresh_points, search.dim, index)
        remember(search, point, row(search.fresh_gradients, search.dim, index), 1)


@method
def clear_memory(search: Any) -> None:
    forget(search, False)


@method
def note(newton: Any) -> None:
    """Let the other half know of the gradient."""
    drawn = 1 if newton.jitter > 0.0 else 0
    remember(search_at(newton.owner), newton.point, newton.found, drawn)
