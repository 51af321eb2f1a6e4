"""The gradients that both halves share; the oldest is overwritten when the ring is full."""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.compiled.jit import kernel
from goldstein.solvers.compiled.vectors import copy, distance, length
from goldstein.solvers.compiled.views import integers, row, vector


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
def ask_about(search: Any, x: Any) -> None:
    """Shift the bounds on distances to those from x."""
    asked = vector(search.ring_asked, search.dim)
    moved = distance(x, asked) * (1.0 + 1e-12)
    if moved == 0.0:
        return
    copy(x, asked)
    near, far = (
        vector(search.ring_near, search.ring_size),
        vector(search.ring_far, search.ring_size),
    )
    for index in range(search.ring_size):
        near[index] -= moved
        far[index] += moved


@kernel
def is_near(search: Any, index: Any, radius: Any) -> Any:
    """Is this entry within the radius of the point last asked about?"""
    near, far = (
        vector(search.ring_near, search.ring_size),
        vector(search.ring_far, search.ring_size),
    )
    if near[index] > radius:
        return False
    if far[index] > radius:
        point = row(search.ring_points, search.dim, index)
        far[index] = distance(point, vector(search.ring_asked, search.dim))
        near[index] = far[index]
    return far[index] <= radius


@kernel
def forget_unperturbed(search: Any) -> None:
    """No entry whose point was not drawn at random is near anything from now on."""
    near = vector(search.ring_near, search.ring_size)
    perturbed = integers(search.ring_perturbed, search.ring_size)
    for index in range(search.ring_size):
        if perturbed[index] == 0:
            near[index] = math.inf
