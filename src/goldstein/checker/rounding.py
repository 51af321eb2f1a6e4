"""Upper bounds that stay upper bounds in float64.

The model is the usual one: each operation errs by a factor (1 + e), |e| <= u = 2^-53, and a dot
product of n terms in any order errs by at most g(n) |a|.|b| with g(n) = n u / (1 - n u)
(Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). Underflow adds at most the
smallest normal number per operation.
"""

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector

UNIT = 2.0**-53
_TINY = float(np.finfo(float).tiny)
_SMALL_PRODUCT = 2.0**-960
_LARGE = 4_000_000


def gamma(n: int) -> float:
    """Return an upper bound of n u / (1 - n u).

    Examples
    --------
    >>> gamma(1) >= 2.0**-53
    True
    """
    return 1.01 * n * UNIT


def up(value: float, relative: float = 4 * UNIT) -> float:
    """Return a float certainly >= value (1 + relative)."""
    return math.nextafter(value * (1.0 + relative), math.inf)


def norm_upper(v: Vector) -> float:
    """Return an upper bound of |v| for the exact real vector whose entries are stored in v."""
    return norms_upper(v[None])[0]


def norms_upper(rows: Matrix) -> list[float]:
    """Return the same for every row."""
    rows = np.asarray(rows, dtype=np.float64)
    with np.errstate(all="ignore"):
        return [_norm_upper(v, q) for v, q in zip(rows, np.vecdot(rows, rows).tolist())]


def _norm_upper(v: Vector, square: float) -> float:
    """Bound a length by the computed square of it; underflow is covered by the 2 in gamma."""
    exponent = 0
    if not 2.0**-600 < square < 2.0**600:
        top = float(np.abs(v).max(initial=0.0))
        if not 0.0 < top < math.inf:
            return math.inf if top else 0.0
        # Scaling by a power of two is exact and keeps the squares away from over- and underflow.
        exponent = math.frexp(top)[1]
        v = np.ldexp(v, -exponent)
        square = float(v.dot(v))
    root = up(math.sqrt(up(square, gamma(v.size + 2))))
    return up(float(np.ldexp(root, exponent)) if exponent else root)


def mean_length(weights: Vector, rows: Matrix) -> float:
    """Return sum_j w_j |g_j|, rounded up: the scale of a combination.

    A steep gradient of no weight adds nothing.
    """
    return math.fsum(w * n for w, n in zip(weights.tolist(), norms_upper(rows)) if w > 0)


def rounding_slack(count: int, mean: float) -> float:
    """What rounding may add to the bound of so many rows: another machine sums in another order."""
    return 64 * gamma(count + 8) * mean


def distance_upper(y: Vector, x: Vector) -> float:
    """Return an upper bound of |y - x|; the rounding of the subtraction is covered."""
    return distances_upper(y[None], x)[0]


def distances_upper(points: Matrix, x: Vector | Matrix) -> list[float]:
    """Return the same for every row of points, from one x or each from its own."""
    with np.errstate(over="ignore", invalid="ignore"):
        return [up(length) if length else 0.0 for length in norms_upper(points - x)]


def combination_norm_upper(weights: Vector, rows: Matrix) -> float:
    """Return an upper bound of |sum_j w_j g_j| / sum_j w_j, weights >= 0, in float64.

    A fast bound first; where its rounding slack is visible (nearly cancelling gradients) the sum
    is done again exactly, coordinate by coordinate.

    Examples
    --------
    >>> combination_norm_upper(np.array([0.5, 0.5]), np.array([[1.0], [-1.0]]))
    0.0
    """
    weights, used = np.maximum(weights, 0.0), weights > 0
    if not used.any():
        return math.inf
    # Rows without weight add zeros; of a large matrix they are not worth a copy.
    w, g = (weights, rows) if used.all() or rows.size > _LARGE else (weights[used], rows[used])
    with np.errstate(over="ignore", invalid="ignore"):
        combo = w.dot(g)
        slack = gamma(w.size + 1) * _mean_moduli(w, g) + w.size * _TINY
        widest, blur, length = norms_upper(np.array([np.abs(combo) + slack, slack, combo]))
        bound = up(widest / sum_lower(w))
        if blur > 1e-3 * length and g.size <= _LARGE:
            return min(bound, _combination_norm_exact(w, g))
    return bound


def _mean_moduli(w: Vector, g: Matrix) -> Vector:
    """Return sum_j w_j |g_j|, entry by entry; of a large matrix there is no second copy."""
    width = max(1, _LARGE // len(w))
    blocks = range(0, g.shape[1], width)
    return np.concatenate([w.dot(np.abs(g[:, first : first + width])) for first in blocks])


def _combination_norm_exact(w: Vector, g: Matrix) -> float:
    """The same bound from exactly rounded sums of exactly split products."""
    high = w[:, None] * g
    low = product_error(w[:, None], g, high, _SMALL_PRODUCT)
    # Next to underflow it is not known: there it is covered by a unit of the limit.
    lost = (np.abs(high) < _SMALL_PRODUCT) & (g != 0.0)
    low[lost] = 0.0
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return math.inf  # entries beyond 1e300: the plain bound has to do
    terms = np.concatenate([high, low])
    # fsum is correctly rounded: one unit covers it.
    try:
        combo = np.array([abs(math.fsum(column)) for column in terms.T.tolist()])
    except OverflowError:
        return math.inf
    combo += lost.sum(axis=0) * (UNIT * _SMALL_PRODUCT)
    return up(norm_upper(combo) / sum_lower(w), 8 * UNIT) if combo.any() else 0.0


def sum_lower(w: Vector) -> float:
    """A positive lower bound of the sum of positive numbers (fsum is correctly rounded)."""
    return math.nextafter(math.fsum(w.tolist()), 0.0) or math.fsum(w.tolist())


@np.errstate(all="ignore")
def product_error(a: Any, b: Any, product: Any, least: float = 2.0**-900) -> Any:
    """Return a b - fl(a b), exactly (Dekker's splitting); NaN where something overflows, and of
    products below `least`, where something may underflow."""
    split = 2.0**27 + 1.0
    ah, bh = split * a - (split * a - a), split * b - (split * b - b)
    al, bl = a - ah, b - bh
    error = al * bl - (((product - ah * bh) - al * bh) - ah * bl)
    known = np.isfinite(error) & (np.abs(product) >= least)
    return np.where((a == 0) | (b == 0), 0.0, np.where(known, error, np.nan))
