"""BFGS with a factor of the matrix, H = J J', and its products with the pieces of the model.

As in `solvers.metric`, whose docstring has the formula. Rows of the model are J'g for the
pieces g (its columns): a step changes each of them by a multiple of one vector.
"""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.compiled.jit import kernel, method, unit
from goldstein.solvers.compiled.vectors import add_multiple, copy, dot, fill
from goldstein.solvers.compiled.vectors import scale as multiply
from goldstein.solvers.compiled.views import integers, row, search_at, vector


@kernel
def behind(newton: Any, g: Any, target: Any) -> None:
    """Set target = J'g."""
    fill(0.0, target)
    for i in range(newton.dim):
        add_multiple(g[i], row(newton.factor, newton.dim, i), target)


@kernel
def before(newton: Any, v: Any, target: Any) -> None:
    """Set target = J v."""
    for i in range(newton.dim):
        target[i] = dot(row(newton.factor, newton.dim, i), v)


@kernel
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
            behind(newton, row(newton.rows, newton.dim, slot), row(model.rows, newton.dim, slot))
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


@method
def scale_metric(newton: Any, factor: Any) -> None:
    size, model, root = newton.dim, newton.model, math.sqrt(factor)
    for i in range(size):
        multiply(root, row(newton.factor, size, i))
    for slot in range(model.count):
        multiply(root, row(model.rows, size, slot))
        multiply(factor, row(model.gram, model.capacity, slot))


@method
def keep_metric(newton: Any) -> None:
    size = newton.dim * newton.dim
    copy(vector(newton.factor, size), vector(newton.kept, size))


@method
def restore_metric(newton: Any) -> None:
    size, model = newton.dim * newton.dim, newton.model
    copy(vector(newton.kept, size), vector(newton.factor, size))
    stale = integers(newton.stale, model.count)
    for slot in range(model.count):
        stale[slot] = 1


@method
def learn(newton: Any, sy: Any) -> None:
    """BFGS: learn from the step and the change of the gradient; their product is `sy`."""
    newton.sy = sy
    learn_pair(newton.owner)


@unit
def learn_pair(address: Any) -> Any:
    newton = search_at(address).newton
    size, sy, s = newton.dim, newton.sy, newton.step
    along, behind_p = newton.along, newton.behind
    if newton.scaled == 0:
        _begin(newton, math.sqrt(sy / dot(newton.change, newton.change)))
    square = dot(behind_p, behind_p)
    if not 0.0 < square < math.inf:
        return 0
    # J + s a' with a = (sqrt(s'y) r / |r| - J'y) / s'y, where r = -J'g and g led to the step.
    behind(newton, newton.change, along)
    share = math.sqrt(sy / square)
    for i in range(size):
        along[i] = (-share * behind_p[i] - along[i]) / sy
    for i in range(size):
        add_multiple(s[i], along, row(newton.factor, size, i))
    _follow(newton, along)
    return 0


@kernel
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


@kernel
def _begin(newton: Any, scale: Any) -> None:
    """Start from a multiple of the identity; the step was along a gradient."""
    size = newton.dim
    for i in range(size):
        entries = row(newton.factor, size, i)
        fill(0.0, entries)
        entries[i] = scale
        newton.behind[i] = -newton.step[i]
    stale = integers(newton.stale, newton.model.count)
    for slot in range(newton.model.count):
        stale[slot] = 1
