"""The dense BFGS matrix, and its products with the pieces of the model."""

from __future__ import annotations

from typing import Any

from goldstein.solvers.compiled.jit import kernel, method, unit
from goldstein.solvers.compiled.vectors import dot
from goldstein.solvers.compiled.vectors import scale as multiply
from goldstein.solvers.compiled.views import integers, row, search_at, vector


@kernel
def apply(newton: Any, g: Any, target: Any) -> None:
    """Set target = H g."""
    for i in range(newton.dim):
        target[i] = dot(row(newton.matrix, newton.dim, i), g)


@kernel
def renew(newton: Any) -> None:
    """Bring the images and products of new pieces up to date.

    One other piece per step is computed afresh too, to forget the rounding errors of its updates.
    """
    model = newton.model
    stale = integers(newton.stale, model.count)
    newton.next_renewed += 1
    stale[newton.next_renewed % model.count] = 1
    for slot in range(model.count):
        if stale[slot] == 1:
            image = row(newton.images, newton.dim, slot)
            apply(newton, row(model.rows, newton.dim, slot), image)
            products = row(model.gram, model.capacity, slot)
            for other in range(model.count):
                product = dot(row(model.rows, newton.dim, other), image)
                products[other] = product
                row(model.gram, model.capacity, other)[slot] = product
    for slot in range(model.count):
        stale[slot] = 0


@method
def square_of_gradient(newton: Any) -> Any:
    """Return g'Hg."""
    apply(newton, newton.g, newton.along)
    return dot(newton.g, newton.along)


@method
def square_of_change(newton: Any) -> Any:
    """Return y'Hy."""
    apply(newton, newton.change, newton.along)
    return dot(newton.change, newton.along)


@method
def scale_metric(newton: Any, factor: Any) -> None:
    size, model = newton.dim, newton.model
    for i in range(size):
        multiply(factor, row(newton.matrix, size, i))
    for slot in range(model.count):
        multiply(factor, row(newton.images, size, slot))
        products = row(model.gram, model.capacity, slot)
        for other in range(model.count):
            products[other] *= factor


@method
def learn(newton: Any, sy: Any) -> None:
    """BFGS: learn from the step and the change of the gradient; their product is `sy`."""
    newton.sy = sy
    learn_pair(newton.owner)


@unit
def learn_pair(address: Any) -> Any:
    newton = search_at(address).newton
    size, sy = newton.dim, newton.sy
    s, change = newton.step, newton.change
    along = newton.along
    if newton.scaled == 0:
        _begin(newton, sy / dot(change, change))
    apply(newton, change, along)
    # H + (sy + y'Hy)/sy^2 ss' - (Hy s' + s Hy')/sy, as one symmetric update of rank two.
    factor = 0.5 * (1.0 + dot(change, along) / sy) / sy
    for i in range(size):
        along[i] = factor * s[i] - along[i] / sy
    for i in range(size):
        entries = row(newton.matrix, size, i)
        one, other = s[i], along[i]
        for j in range(size):
            entries[j] += one * along[j] + other * s[j]
    model = newton.model
    stale = integers(newton.stale, model.count)
    rises, falls = vector(newton.rises, model.count), vector(newton.falls, model.count)
    for slot in range(model.count):
        falls[slot] = dot(row(model.rows, size, slot), along)
    for slot in range(model.count):
        if stale[slot] == 0:
            image, products = row(newton.images, size, slot), row(model.gram, model.capacity, slot)
            one, other = rises[slot], falls[slot]
            for i in range(size):
                image[i] += one * along[i] + other * s[i]
            for i in range(model.count):
                products[i] += one * falls[i] + other * rises[i]
    return 0


@kernel
def _begin(newton: Any, scale: Any) -> None:
    """Start from a multiple of the identity."""
    for i in range(newton.dim):
        entries = row(newton.matrix, newton.dim, i)
        for j in range(newton.dim):
            entries[j] = 0.0
        entries[i] = scale
    stale = integers(newton.stale, newton.model.count)
    for slot in range(newton.model.count):
        stale[slot] = 1
