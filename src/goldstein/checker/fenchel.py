"""How far v is from being a subgradient of a convex term h at x: bounds of the Fenchel gap.

The gap h(x) + h*(v) - <v, x> is never negative, and 0 exactly if v is a subgradient of h at x. If
it is at most g, then for every r > 0 some point within r of x has a subgradient within g / r of v
(Brondsted and Rockafellar, 1965). So a small gap is all that has to be believed of v: the functions
below bound it from above in float64, infinity where v is outside the domain of h*.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.beside import mean_length
from goldstein.checker.rounding import UNIT, gamma, norm_upper, up

Record = Mapping[str, Any]

#: What a product may lose next to 0.
_UNDERFLOW = 2.0**-1070


def term_share(
    term: Record, x: Vector, v: Vector, delta: float, weights: Vector, rows: Matrix
) -> float:
    """Return what a term adds to eps: its gap over delta, and the rounding of rows g_j + v."""
    gap, away = fenchel_gap(term, x, v)
    room = math.nextafter(delta - away, -math.inf) if away else delta
    if not (gap < math.inf and room > 0.0):
        return math.inf
    rounding = up(2.0 * UNIT * mean_length(weights, rows))
    return up(up(gap / room) + rounding) if gap or rounding else 0.0


def fenchel_gap(term: Record, x: Vector, v: Vector) -> tuple[float, float]:
    """Bound the gap of v for a term given by name and parameters: (gap, how far from x).

    The names and parameters are those of `goldstein.prox`; of a number there may be one for all.
    """
    name = term["name"]
    if name == "l1":
        return l1_gap(x, v, _each(term["weight"], x.size)), 0.0
    if name == "group_l2":
        groups = [np.array(group, dtype=np.intp) for group in term["groups"]]
        return groups_gap(x, v, groups, _each(term["weight"], len(groups))), 0.0
    if name == "box":
        return box_gap(x, v, _each(term["lower"], x.size), _each(term["upper"], x.size)), 0.0
    if name == "simplex":
        return simplex_gap(x, v, float(term["total"]))
    if name == "nuclear":
        rows, columns = term["shape"]
        X, V = x.reshape(rows, columns), v.reshape(rows, columns)
        return nuclear_gap(X, V, float(term["weight"])), 0.0
    return math.inf, 0.0


def _each(values: Any, size: int) -> Vector:
    return np.broadcast_to(np.asarray(values, dtype=np.float64), (size,))


def products_upper(a: Vector, b: Vector) -> float:
    """Return an upper bound of <a, b>, entries >= 0 and known to a few units in the last place."""
    if not ((a > 0) & (b > 0)).any():
        return 0.0
    return up(math.fsum((a * b).tolist()) + a.size * _UNDERFLOW, 16 * UNIT)


def dot_lower(v: Vector, x: Vector) -> float:
    """Return a lower bound of <v, x>."""
    products = v * x
    slack = 4 * UNIT * math.fsum(np.abs(products).tolist()) + v.size * _UNDERFLOW
    return math.nextafter(math.fsum(products.tolist()) - slack, -math.inf)


def l1_gap(x: Vector, v: Vector, weights: Vector) -> float:
    """h = sum_i weights_i |x_i|: |v_i| <= weights_i, and equal with the sign of x_i != 0."""
    if (np.abs(v) > weights).any():
        return math.inf
    return products_upper(weights - v * np.sign(x), np.abs(x))


def groups_gap(x: Vector, v: Vector, groups: Sequence[NDArray[np.intp]], weights: Vector) -> float:
    """h = sum_k weights_k |x_k| over blocks x_k of x: |v_k| <= weights_k, and v is 0 elsewhere."""
    everything = np.concatenate(groups)
    if np.unique(everything).size < everything.size or (everything < 0).any():
        return math.inf  # blocks overlap
    free = np.ones(x.size, dtype=bool)
    gaps = []
    for group, weight in zip(groups, weights.tolist()):
        free[group] = False
        if norm_upper(v[group]) > weight:
            return math.inf
        if x[group].any():
            longest = up(weight * norm_upper(x[group]))
            gaps.append(max(0.0, up(longest - dot_lower(v[group], x[group]))))
    return math.inf if v[free].any() else products_upper(np.array(gaps), np.ones(len(gaps)))


def box_gap(x: Vector, v: Vector, lower: Vector, upper: Vector) -> float:
    """h = 0 between the bounds, infinity outside: v points out of the box at x."""
    if ((x < lower) | (x > upper)).any():
        return math.inf
    above, below = v > 0, v < 0
    if np.isinf(upper[above]).any() or np.isinf(lower[below]).any():
        return math.inf
    room = np.concatenate([upper[above] - x[above], x[below] - lower[below]])
    return products_upper(np.concatenate([v[above], -v[below]]), room)


def simplex_gap(x: Vector, v: Vector, total: float) -> tuple[float, float]:
    """h = 0 where x >= 0 and sum x = total: return the gap, and how far x is from such a point.

    Sums of floats are seldom exact: the gap is that of the point whose largest entry makes up for
    what is missing.
    """
    if (x < 0).any():
        return math.inf, math.inf
    missing = abs(math.fsum([*x.tolist(), -total]))
    missing = up(missing) if missing else 0.0
    largest = int(x.argmax())
    if missing > 0.5 * x[largest]:
        return math.inf, math.inf
    short = v.max() - v
    gap = products_upper(x, short) + up(missing * float(short[largest]))
    return (up(gap) if gap else 0.0), missing


def nuclear_gap(X: Matrix, V: Matrix, weight: float) -> float:
    """h = weight times the sum of singular values: no singular value of V exceeds weight."""
    if singular_upper(V)[0] > weight:
        return math.inf
    if not X.any():
        return 0.0
    most = up(weight * singular_upper(X)[1])
    return max(0.0, up(most - dot_lower(V.ravel(), X.ravel())))


def singular_upper(A: Matrix) -> tuple[float, float]:
    """Return upper bounds of the largest singular value, and of the sum of all.

    From an approximate decomposition A = U S W + R: U and W are nearly orthogonal, R nearly 0, and
    by how much is bounded.
    """
    if not A.any():
        return 0.0, 0.0
    U, s, W = np.linalg.svd(A, full_matrices=False)
    k = s.size
    product = (U * s) @ W
    error = gamma(k + 4) * ((np.abs(U) * s) @ np.abs(W)) + 2 * UNIT * np.abs(A)
    rest = up(norm_upper((np.abs(A - product) + 2 * error).ravel()), 16 * UNIT)
    stretch = up(_stretch(U.T) * _stretch(W), 16 * UNIT)
    largest = up(up(float(s.max()) * stretch) + rest)
    everything = up(products_upper(s, np.ones(k)) * stretch) + up(math.sqrt(k) * rest)
    return largest, up(everything)


def _stretch(rows: Matrix) -> float:
    """Return an upper bound of the norm of nearly orthonormal rows."""
    gram = rows @ rows.T
    error = 2 * gamma(rows.shape[1] + 4) * (np.abs(rows) @ np.abs(rows).T)
    off = norm_upper((np.abs(gram - np.eye(len(rows))) + error).ravel())
    return up(math.sqrt(up(1.0 + off, 16 * UNIT)))
