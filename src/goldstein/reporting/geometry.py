"""A certificate seen in a plane: its points around x, its gradients around 0."""

import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.oracles import Oracle

#: Shorter than this part of the longest gradient, the direction of the shortest vector is rounding.
_NOISE = 1e-12

#: Points of a grid for level lines, each way.
_FINEST, _COARSEST = 81, 15


@dataclass(frozen=True)
class Geometry:
    """What there is to draw.

    Attributes
    ----------
    centre : ndarray, shape (2,)
        x where the picture is exact, else 0.
    basis : ndarray, shape (2, d)
        Orthonormal; the plane that is drawn.
    radius : float
        delta.
    points : ndarray, shape (k, 2)
        Where the gradients were taken.
    directions : ndarray, shape (k, 2)
        Ways to leave the pivot, where there is one.
    pivot : ndarray, shape (2,), or None
    gradients : ndarray, shape (k, 2)
        Of f; their hull is drawn.
    mean : ndarray, shape (2,)
        The convex combination in use.
    pushes : list of (name, vector)
        Multipliers times gradients of constraints, and the normal of the bounds.
    rest : ndarray, shape (2,)
        What is left: the claim is about its length.
    axes : pair of str
        What the two directions are.
    exact : bool
        Two variables or one: nothing is projected.
    """

    centre: Vector
    basis: Matrix
    radius: float
    points: Matrix
    directions: Matrix
    pivot: Vector | None
    gradients: Matrix
    mean: Vector
    pushes: list[tuple[str, Vector]]
    rest: Vector
    axes: tuple[str, str]
    exact: bool


def geometry_of(certificate: Any) -> Geometry:
    """Project a certificate of any kind; what it does not have stays empty."""
    x = np.asarray(certificate.x, dtype=np.float64)
    none = np.zeros((0, x.size))
    gradients = np.asarray(getattr(certificate, "gradients", none))
    weights = np.asarray(getattr(certificate, "weights", np.zeros(0)))
    points = getattr(certificate, "points", none)
    mean = np.asarray(getattr(certificate, "mean", np.zeros(x.size)))
    if len(gradients) and weights.sum() > 0:
        mean = weights @ gradients / weights.sum()
    pushes = _pushes(certificate)
    rest = mean + sum((push for _, push in pushes), np.zeros(x.size))
    basis, axes = _plane(rest, [*gradients, *(push for _, push in pushes)], x.size)
    exact = x.size <= 2
    pivot = getattr(certificate, "pivot", None)

    def seen(vectors: Any) -> Any:
        return np.asarray(vectors) @ basis.T

    centre = seen(x) if exact else np.zeros(2)
    return Geometry(
        centre=centre, basis=basis, radius=float(certificate.delta),
        points=centre + seen(np.asarray(none if points is None else points) - x),
        directions=seen(getattr(certificate, "directions", none)),
        pivot=None if pivot is None else centre + seen(pivot - x), gradients=seen(gradients),
        mean=seen(mean), pushes=[(name, seen(push)) for name, push in pushes], rest=seen(rest),
        axes=axes, exact=exact,
    )  # fmt: skip


def _pushes(certificate: Any) -> list[tuple[str, Vector]]:
    """Constraints, bounds and terms, each as one vector; constraints need their gradients."""
    found: list[tuple[str, Vector]] = []
    rows = getattr(certificate, "constraint_gradients", None)
    if rows is not None:
        index, weights = certificate.constraint_index, certificate.constraint_weights
        for i in np.unique(index[weights != 0.0]):
            found.append((f"constraint {i}", weights[index == i] @ rows[index == i]))
    slope = getattr(certificate, "subgradient", None)
    if slope is not None and np.any(slope):
        found.append(("subgradient of the term", np.asarray(slope)))
    normal = getattr(certificate, "normal", None)
    if normal is not None and np.any(normal):
        found.append(("bounds", np.asarray(normal)))
    return found


def _plane(rest: Vector, vectors: list[Vector], size: int) -> tuple[Matrix, tuple[str, str]]:
    """The plane of the shortest vector and the direction in which the others differ most."""
    if size <= 2:
        return np.eye(2)[:, :size], ("first variable", "second variable")
    stacked = np.array(vectors) if vectors else np.zeros((0, size))
    longest = float(np.linalg.norm(stacked, axis=1).max(initial=0.0))
    length = float(np.linalg.norm(rest))
    visible = length > _NOISE * longest
    basis: list[Vector] = [rest / length] if visible else []
    axes = ("shortest vector", "widest direction") if visible else ("widest", "next widest")
    centred = stacked - stacked.mean(axis=0) if len(stacked) else stacked
    for e in basis:
        centred = centred - np.outer(centred @ e, e)
    if len(centred):
        basis += list(np.linalg.svd(centred, full_matrices=False)[2][: 2 - len(basis)])
    for axis in np.eye(2, size):  # where there are too few vectors, any direction will do
        if len(basis) < 2:
            left = axis - sum((e @ axis) * e for e in basis)
            if np.linalg.norm(left) > 0.5:
                basis.append(left / np.linalg.norm(left))
    return np.array(basis), axes


@dataclass(frozen=True)
class Grid:
    """Values over a square of the plane."""

    across: NDArray[np.float64]
    up: NDArray[np.float64]
    values: Matrix


def grid_around(
    geometry: Geometry, x: Vector, fun: Callable[[Vector], Any], half: float, seconds: float
) -> Grid | None:
    """Ask for values on the plane through x, as finely as the time allows; None if it does not."""
    d = len(x)

    def ask(a: float, b: float) -> float:
        return float(fun(x + a * geometry.basis[0][:d] + b * geometry.basis[1][:d]))

    try:
        each = seconds_per(lambda: ask(0.0, 0.0))
        n = int(min(_FINEST, np.sqrt(seconds / max(each, 1e-9))))
        if n < _COARSEST:
            return None
        steps = np.linspace(-half, half, n)
        with np.errstate(all="ignore"):
            values = np.array([[ask(a, b) for a in steps] for b in steps])
    except Exception:  # the function may not like places where it was never asked
        return None
    values = np.where(np.isfinite(values), values, np.nan)
    if not np.isfinite(values).any() or np.nanmin(values) == np.nanmax(values):
        return None
    return Grid(geometry.centre[0] + steps, geometry.centre[1] + steps, values)


def seconds_per(call: Callable[[], Any]) -> float:
    """Return what a call takes: the best of a few, the first of which may load something."""
    return min(timeit.repeat(call, number=1, repeat=4))


def value_function(fun: Any) -> Callable[[Vector], Any]:
    """Return the values of whatever `minimize` takes as a function."""
    if isinstance(fun, Oracle):
        return fun.value

    def value(x: Vector) -> Any:
        answer = fun(x)
        return answer[0] if isinstance(answer, tuple | list) else answer

    return value
