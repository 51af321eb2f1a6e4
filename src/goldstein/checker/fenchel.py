"""How far v is from being a subgradient of a convex term h at x: bounds of the Fenchel gap.

The gap h(x) + h*(v) - <v, x> is never negative, and 0 exactly if v is a subgradient of h at x. If
it is at most g, then for every r > 0 some point within r of x has a subgradient within g / r of v
(Brondsted and Rockafellar, 1965). So a small gap is all that has to be believed of v: the functions
below bound it from above in float64, infinity where v is outside the domain of h*.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.checker.rounding import UNIT, gamma, mean_length, norm_upper, up

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
    sizes = [np.asarray(term.get(key, 1.0), dtype=np.float64) for key in ("weight", "total")]
    if not all((size >= 0).all() and np.isfinite(size).all() for size in sizes):
        return math.inf, 0.0  # no convex function
    if name in ("l1", "box", "l1_box"):
        sides = term.get("weight", 0.0), term.get("lower", -math.inf), term.get("upper", math.inf)
        return l1_box_gap(x, v, *(_each(side, x.size) for side in sides)), 0.0
    if name == "group_l2":
        groups = [np.array(group, dtype=np.intp) for group in term["groups"]]
        return groups_gap(x, v, groups, _each(term["weight"], len(groups))), 0.0
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


def l1_box_gap(x: Vector, v: Vector, weights: Vector, lower: Vector, upper: Vector) -> float:
    """h = sum_i weights_i |x_i| between the bounds, infinity outside.

    h* takes the highest point of the concave v_i z - weights_i |z| between the bounds, whose slope
    is v_i + weights_i below 0 and v_i - weights_i above: the gap is what can be gained from x_i to
    the right, below and above 0, or to the left, above and below.
    """
    if ((x < lower) | (x > upper)).any():
        return math.inf
    gains = np.concatenate([v + weights, v - weights, weights - v, -v - weights])
    right = np.minimum(upper, 0.0) - x, upper - np.maximum(x, 0.0)
    left = x - np.maximum(lower, 0.0), np.minimum(x, 0.0) - lower
    ways = np.concatenate([*right, *left])
    open_ = (gains > 0) & (ways > 0)
    return math.inf if np.isinf(ways[open_]).any() else products_upper(gains[open_], ways[open_])


def groups_gap(x: Vector, v: Vector, groups: Sequence[Indices], weights: Vector) -> float:
    """h = sum_k weights_k |x_k| over blocks x_k of x: |v_k| <= weights_k, and v is 0 elsewhere."""
    everything = np.concatenate(groups)
    if np.unique(everything).size < everything.size or (everything < 0).any():
        return math.inf  # blocks overlap
    gaps = []
    for group, weight in zip(groups, weights.tolist()):
        if norm_upper(v[group]) > weight:
            return math.inf
        if x[group].any():
            longest = up(weight * norm_upper(x[group]))
            gaps.append(max(0.0, up(longest - dot_lower(v[group], x[group]))))
    free = np.delete(v, everything)
    return math.inf if free.any() else products_upper(np.array(gaps), np.ones(len(gaps)))


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
