"""The dense BFGS matrix, and its products with the pieces of the model."""

from __future__ import annotations

from typing import Any

from goldstein.solvers.compiled.jit import kernel
from goldstein.solvers.compiled.vectors import dot
from goldstein.solvers.compiled.views import integers, row, vector


@kernel
def apply(search: Any, g: Any, target: Any) -> None:
    """Set target = H g."""
    for i in range(search.dim):
        target[i] = dot(row(search.matrix, search.dim, i), g)


@kernel
def renew(search: Any) -> None:
    """Bring the images and products of new pieces up to date.

    One other piece per step is computed afresh too, to forget the rounding errors of its updates.
    """
    model = search.model
    stale = integers(search.stale, model.count)
    search.next_renewed += 1
    stale[search.next_renewed % model.count] = 1
    for slot in range(model.count):
        if stale[slot] == 1:
            image = row(search.images, search.dim, slot)
            apply(search, row(model.rows, search.dim, slot), image)
            products = row(model.gram, model.capacity, slot)
            for other in range(model.count):
                product = dot(row(model.rows, search.dim, other), image)
                products[other] = product
                row(model.gram, model.capacity, other)[slot] = product
    for slot in range(model.count):
        stale[slot] = 0


@kernel
def update(search: Any, sy: Any) -> None:
    """BFGS: learn from the step and the change of the gradient; their product is `sy`."""
    size = search.dim
    s, change = vector(search.step, size), vector(search.change, size)
    along = vector(search.along, size)
    if search.scaled == 0:
        _begin(search, sy / dot(change, change))
    apply(search, change, along)
    # H + (sy + y'Hy)/sy^2 ss' - (Hy s' + s Hy')/sy, as one symmetric update of rank two.
    factor = 0.5 * (1.0 + dot(change, along) / sy) / sy
    for i in range(size):
        along[i] = factor * s[i] - along[i] / sy
    for i in range(size):
        entries = row(search.matrix, size, i)
        one, other = s[i], along[i]
        for j in range(size):
            entries[j] += one * along[j] + other * s[j]
    model = search.model
    stale = integers(search.stale, model.count)
    rises, falls = vector(search.rises, model.count), vector(search.falls, model.count)
    for slot in range(model.count):
        falls[slot] = dot(row(model.rows, size, slot), along)
    for slot in range(model.count):
        if stale[slot] == 0:
            image, products = row(search.images, size, slot), row(model.gram, model.capacity, slot)
            one, other = rises[slot], falls[slot]
            for i in range(size):
                image[i] += one * along[i] + other * s[i]
            for i in range(model.count):
                products[i] += one * falls[i] + other * rises[i]


@kernel
def _begin(search: Any, scale: Any) -> None:
    """Start from a multiple of the identity."""
    for i in range(search.dim):
        entries = row(search.matrix, search.dim, i)
        for j in range(search.dim):
            entries[j] = 0.0
        entries[i] = scale
    stale = integers(search.stale, search.model.count)
    for slot in range(search.model.count):
        stale[slot] = 1
    search.scaled = 1
