"""Upper bounds that stay upper bounds in float64.

The model is the usual one: each operation errs by a factor (1 + e), |e| <= u = 2^-53, and a dot
product of n terms in any order errs by at most g(n) |a|.|b| with g(n) = n u / (1 - n u)
(Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). Underflow adds at most the
smallest normal number per operation.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from goldstein.numerics.exact import sqrt_upper

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

UNIT = 2.0**-53
_TINY = float(np.finfo(float).tiny)


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
    top = float(np.abs(v).max(initial=0.0))
    if top == 0.0 or not math.isfinite(top):
        return top
    # Scaling by a power of two is exact and keeps the squares away from over- and underflow.
    scale = 2.0 ** -math.frexp(top)[1]
    w = v * scale
    squared = up(float(w @ w), gamma(v.size + 2)) + v.size * _TINY
    return up(up(math.sqrt(squared)) / scale)


def distance_upper(y: Vector, x: Vector) -> float:
    """Return an upper bound of |y - x|; the rounding of the subtraction is covered."""
    difference = y - x
    return up(norm_upper(difference), 4 * UNIT) if difference.any() else 0.0


def combination_norm_upper(weights: Vector, rows: Matrix) -> float:
    """Return an upper bound of |sum_j w_j g_j| / sum_j w_j, weights >= 0, in float64.

    A fast bound first; where its rounding slack is visible (nearly cancelling gradients) the sum
    is done again exactly, coordinate by coordinate.

    Examples
    --------
    >>> combination_norm_upper(np.array([0.5, 0.5]), np.array([[1.0], [-1.0]]))
    0.0
    """
    used = weights > 0
    w, g = weights[used], rows[used]
    if w.size == 0:
        return math.inf
    total = math.fsum(w)  # correctly rounded: within one unit of the exact sum
    combo = w @ g
    slack = gamma(w.size + 1) * (w @ np.abs(g)) + w.size * _TINY
    bound = up(norm_upper(np.abs(combo) + slack) / math.nextafter(total, 0.0))
    if norm_upper(slack) > 1e-3 * norm_upper(combo) and g.size <= 4_000_000:
        return min(bound, _combination_norm_exact(w, g))
    return bound


def _combination_norm_exact(w: Vector, g: Matrix) -> float:
    """The same bound from exactly rounded sums of exactly split products."""
    high = w[:, None] * g
    low = _product_error(w[:, None], g, high)
    if not np.isfinite(low).all() or _may_underflow(high):
        return _combination_norm_rational(w, g)
    terms = np.concatenate([high, low])
    # fsum is correctly rounded: one unit covers it.
    combo = np.array([math.fsum(column) for column in terms.T])
    total = math.fsum(w)
    return up(norm_upper(combo) / math.nextafter(total, 0.0), 8 * UNIT) if combo.any() else 0.0


def _may_underflow(high: Matrix) -> bool:
    magnitude = np.abs(high[high != 0.0])
    return bool(magnitude.size and magnitude.min() < 2.0**-960)


def _product_error(a: Matrix, b: Matrix, product: Matrix) -> Matrix:
    """Return a*b - fl(a*b), exactly (Dekker's splitting), barring over- and underflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        split = 2.0**27 + 1.0
        ah = split * a - (split * a - a)
        al = a - ah
        bh = split * b - (split * b - b)
        bl = b - bh
        error: Matrix = al * bl - (((product - ah * bh) - al * bh) - ah * bl)
    return error


def _combination_norm_rational(w: Vector, g: Matrix) -> float:
    weights = [Fraction(float(a)) for a in w]
    total = sum(weights)
    square = Fraction(0)
    for column in g.T:
        s = sum((a * Fraction(float(b)) for a, b in zip(weights, column)), Fraction(0)) / total
        square += s * s
    return sqrt_upper(square)
