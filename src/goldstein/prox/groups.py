"""The group lasso: whole groups of entries that are 0.

The nuclear norm: matrices of low rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.fenchel import singular_upper
from goldstein.errors import InputError, InputTypeError
from goldstein.prox.term import Chart, Term, inward, plain, weight_of


class GroupL2(Term):
    """h(x) = sum_k weight_k |x_k| over groups x_k of entries."""

    name = "group_l2"

    def __init__(self, weight: ArrayLike | float, groups: Sequence[Sequence[int]]) -> None:
        self.groups = _index_sets(groups)
        self.weight = weight_of("weight", weight)
        if self.weight.size not in (1, len(self.groups)):
            raise InputError(
                f"group_l2: {self.weight.size} weights for {len(self.groups)} groups; give one "
                "for all, or one for each."
            )
        self.each: Vector = np.broadcast_to(self.weight, (len(self.groups),))
        self._penalised = np.concatenate(self.groups)

    def _lengths(self, x: Vector) -> Vector:
        return np.array([np.linalg.norm(x[group]) for group in self.groups])

    def value(self, x: Vector) -> float:
        return math.fsum((self.each * self._lengths(x)).tolist())

    def prox(self, x: Vector, step: float) -> Vector:
        z = x.copy()
        for group, weight, length in zip(self.groups, self.each, self._lengths(x)):
            z[group] *= max(0.0, 1.0 - step * weight / length) if length > 0 else 0.0
        return z + 0.0

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        v = np.zeros_like(x)
        for group, weight, length in zip(self.groups, self.each, self._lengths(x)):
            if length > 0:
                v[group] = x[group] / length * (weight * inward(len(group)))
            else:
                longest = float(np.linalg.norm(wish[group]))
                v[group] = wish[group] * min(1.0, weight * inward(len(group)) / (longest or 1.0))
        return v

    def record(self) -> dict[str, Any]:
        return {"weight": plain(self.weight), "groups": [g.tolist() for g in self.groups]}

    def check(self, size: int) -> None:
        largest = int(self._penalised.max())
        if largest >= size:
            raise InputError(f"group_l2: a group has entry {largest}, the point has {size}.")

    def snap(self, x: Vector, width: float) -> Vector:
        z = x.copy()
        for group, length in zip(self.groups, self._lengths(x)):
            if length <= width:
                z[group] = 0.0
        return z

    def chart(self, x: Vector) -> Chart:
        free = np.ones(x.size, dtype=bool)
        for group in self.groups:
            free[group] = x[group].any()
        return Chart(self, x, free)

    def structure(self, x: Vector) -> str:
        gone = sum(not x[group].any() for group in self.groups)
        return f"{gone} of {len(self.groups)} groups are 0"


def group_l2(weight: ArrayLike | float, groups: Sequence[Sequence[int]]) -> Term:
    """Return h(x) = sum_k weight_k |x_k|, the sum of the lengths of groups of entries.

    Parameters
    ----------
    weight : float or array_like
        One number for all groups, or one for each.
    groups : sequence of sequences of int
        The entries of each group. Groups do not overlap; entries in no group are free.

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.group_l2(1.0, [[0, 1], [2]]).prox(np.array([3.0, 4.0, 0.5]), 1.0)
    array([2.4, 3.2, 0. ])
    """
    return GroupL2(weight, groups)


def _index_sets(groups: Any) -> list[NDArray[np.intp]]:
    try:
        sets = [np.array(group, dtype=object).ravel() for group in groups]
        whole = all(isinstance(i, int | np.integer) for group in sets for i in group)
        found = [group.astype(np.intp) for group in sets] if whole else []
    except TypeError:
        found = []
    if not found or any(group.size == 0 for group in found):
        raise InputTypeError("groups must be lists of indices, none of them empty.")
    everything = np.concatenate(found)
    if (everything < 0).any() or np.unique(everything).size < everything.size:
        raise InputError("groups must not overlap, and their indices count from 0.")
    return found


#: Singular values below this part of the largest are rounding errors.
ROUNDING = 1e-12


class _Factors(Chart):
    """Matrices of a rank as products A B'; h is (|A|^2 + |B|^2) / 2 for the best factors."""

    def __init__(self, term: Nuclear, U: Matrix, s: Vector, W: Matrix) -> None:
        self.weight, self.shape, self.rank = float(term.weight[0]), term.shape, s.size
        root = np.sqrt(s)
        self.start = np.concatenate([(U * root).ravel(), (W.T * root).ravel()])

    def _factors(self, u: Vector) -> tuple[Matrix, Matrix]:
        rows, columns = self.shape
        cut = rows * self.rank
        return u[:cut].reshape(rows, self.rank), u[cut:].reshape(columns, self.rank)

    def point(self, u: Vector) -> Vector:
        A, B = self._factors(u)
        return (A @ B.T).ravel()

    def pull(self, g: Vector, u: Vector) -> Vector:
        A, B = self._factors(u)
        G = g.reshape(self.shape)
        return np.concatenate([(G @ B).ravel(), (G.T @ A).ravel()])

    def value(self, u: Vector) -> float:
        return 0.5 * self.weight * float(u @ u)

    def slope(self, u: Vector) -> Vector:
        return self.weight * u


class Nuclear(Term):
    """h(X) = weight times the sum of the singular values of X."""

    name = "nuclear"

    def __init__(self, weight: float, shape: tuple[int, int]) -> None:
        self.weight = weight_of("weight", weight)
        if self.weight.size != 1:
            raise InputError(f"nuclear: weight must be one number, got {weight!r}.")
        sizes = tuple(shape) if isinstance(shape, list | tuple) else ()
        whole = all(isinstance(n, int | np.integer) and n > 0 for n in sizes)
        if len(sizes) != 2 or not whole:
            raise InputError(f"nuclear: shape must be (rows, columns), got {shape!r}.")
        self.shape = (int(sizes[0]), int(sizes[1]))

    def _parts(self, x: Vector, width: float = 0.0) -> tuple[Matrix, Vector, Matrix]:
        """Return the singular values above rounding and `width`, with their vectors."""
        U, s, W = np.linalg.svd(x.reshape(self.shape), full_matrices=False)
        kept = s > max(ROUNDING * float(s.max(initial=0.0)), width)
        return U[:, kept], s[kept], W[kept]

    def value(self, x: Vector) -> float:
        s = np.linalg.svd(x.reshape(self.shape), compute_uv=False)
        return float(self.weight[0]) * math.fsum(s.tolist())

    def prox(self, x: Vector, step: float) -> Vector:
        less = step * float(self.weight[0])
        U, s, W = self._parts(x, less)
        return ((U * (s - less)) @ W).ravel()

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        weight = float(self.weight[0])
        U, _, W = self._parts(x)
        rest = wish.reshape(self.shape)
        rest = rest - U @ (U.T @ rest)
        rest = rest - (rest @ W.T) @ W
        P, t, Q = np.linalg.svd(rest, full_matrices=False)
        whole = weight * (U @ W) + (P * np.minimum(t, weight)) @ Q
        while (longest := singular_upper(whole)[0]) > weight:  # rounding: a little shorter
            whole = whole * (weight / longest * (1.0 - 2.0**-48))
        return np.asarray(whole).ravel()

    def record(self) -> dict[str, Any]:
        return {"weight": plain(self.weight), "shape": list(self.shape)}

    def check(self, size: int) -> None:
        if size != self.shape[0] * self.shape[1]:
            raise InputError(f"nuclear: shape {self.shape} for a point of {size} entries.")

    def snap(self, x: Vector, width: float) -> Vector:
        U, s, W = self._parts(x, width)
        return ((U * s) @ W).ravel()

    def chart(self, x: Vector) -> Chart:
        return _Factors(self, *self._parts(x))

    def structure(self, x: Vector) -> str:
        return f"rank {self._parts(x)[1].size} of {min(self.shape)}"


def nuclear(weight: float, shape: tuple[int, int]) -> Term:
    """Return h(X) = weight times the sum of the singular values of X.

    Parameters
    ----------
    weight : float
    shape : (int, int)
        Of the matrix; x0 may be a matrix of this shape, or its entries row by row.

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.nuclear(1.0, (2, 2)).prox(np.array([3.0, 0.0, 0.0, 0.5]), 1.0)
    array([2., 0., 0., 0.])
    """
    return Nuclear(weight, shape)
