"""Problems about a hull of gradients that its kernel solves (`hull`): few points are enough, a cone
or a convex set is added to the hull, a linear term to the squared length.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf
from scipy.optimize import nnls

from goldstein.checker.arrays import Matrix, Vector
from goldstein.numerics.hull import convex_weights, min_norm_weights

#: Turns, at most: the nearest point of the set, then the best weights for it.
TURNS = 300

#: How far above the largest linear coefficient the square that stands for them begins.
_ABOVE = 1e3
#: Coefficients this many times above what one column alone achieves count as if they were there:
#: nothing is chosen so far up, and one that dwarfs the others would cost them their digits.
_OUT_OF_REACH = 1e3
#: Linear coefficients this small do not matter, and dividing by them could overflow.
_NOTHING = 1e-200
#: Added to the diagonal of a Gram matrix, against its largest entry, until it has a factor.
_RIDGES = (1e-14, 1e-12, 1e-10)


def sparse_weights(weights: Vector, rows: Matrix) -> Vector:
    """Return convex weights with at most d + 1 positive entries and no longer combination.

    The min-norm weights of the used rows are tried first: an active-set solver returns an
    affinely independent support. Where rounding left more, weight is moved along null vectors.

    Examples
    --------
    >>> rows = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    >>> int((sparse_weights(np.full(4, 0.25), rows) > 0).sum())
    2
    """
    w = np.zeros(weights.size)
    used = np.flatnonzero(weights > 0)
    w[used] = min_norm_weights(rows[used])
    d = rows.shape[1]
    while True:
        used = np.flatnonzero(w > 0)
        if used.size <= d + 1:
            w /= w.sum()
            return w
        # d + 2 vectors of R^d are affinely dependent: a null vector moves weight off one of them.
        few = used[: d + 2]
        scale = np.abs(rows[few]).max() or 1.0
        system = np.vstack([rows[few].T / scale, np.ones(few.size)])
        null = np.linalg.svd(system, full_matrices=True)[2][-1]
        if not (null > 0).any():
            null = -null
        positive = np.flatnonzero(null > 0)
        ratios = w[few[positive]] / null[positive]
        first = int(np.argmin(ratios))
        w[few] = np.maximum(w[few] - ratios[first] * null, 0.0)
        w[few[positive[first]]] = 0.0


def shortest_weights(hull: Matrix, cone: Matrix) -> tuple[Vector, Vector]:
    """Return weights of the shortest vector of a hull plus a cone, which may be empty."""
    return conic_weights(hull, cone) if len(cone) else (min_norm_weights(hull), np.zeros(0))


def conic_weights(hull: Matrix, cone: Matrix) -> tuple[Vector, Vector]:
    """Return (a, b) that minimise |F' a + K' b|, with sum a = 1.

    Examples
    --------
    >>> a, b = conic_weights(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([[-2.0, 0.0]]))
    >>> bool(abs(a @ [1.0, 3.0] - 2.0 * b[0]) < 1e-12)
    True
    """
    lengths = np.linalg.norm(hull, axis=1)
    scale = float(lengths.max(initial=0.0)) or 1.0
    sizes = np.linalg.norm(cone, axis=1)
    sizes[sizes == 0.0] = 1.0
    columns = np.concatenate([hull / scale, cone / sizes[:, None]]).T
    mark = np.concatenate([np.ones(len(hull)), np.zeros(len(cone))])[None]
    target = np.zeros(columns.shape[0] + 1)
    target[-1] = 1.0
    system = np.concatenate([columns, mark])
    try:
        weights: Vector = nnls(system, target, maxiter=30 * sum(system.shape))[0]
    except (RuntimeError, ValueError):  # it cycles, or numbers are not finite
        weights = np.zeros(len(hull) + len(cone))
    a, b = weights[: len(hull)], weights[len(hull) :]
    total = math.fsum(a.tolist())
    if not 0.0 < total < math.inf:
        a, b = np.zeros(len(hull)), np.zeros(len(cone))
        a[int(lengths.argmin())] = 1.0
        return a, b
    a = a / total
    return a / math.fsum(a.tolist()), b * (scale / total) / sizes


def shortest_sum(rows: Matrix, nearest: Callable[[Vector], Vector]) -> tuple[float, Vector, Vector]:
    """Return (length, weights, v): |weights @ rows + v| is small, weights convex, v in the set.

    Parameters
    ----------
    rows : ndarray, shape (k, d)
    nearest : callable
        The point of the set that is nearest to a wish.

    Examples
    --------
    >>> length, weights, v = shortest_sum(
    ...     np.array([[1.0, 3.0], [-1.0, 3.0]]), lambda wish: np.clip(wish, -3.0, 0.0) * [0.0, 1.0]
    ... )
    >>> bool(length < 1e-9), float(v[1])
    (True, -3.0)
    """
    best = _measured(rows, np.full(len(rows), 1.0 / len(rows)), nearest)
    for _ in range(TURNS):
        found = _measured(rows, min_norm_weights(rows + best[2]), nearest)
        if found[0] >= best[0]:
            break
        best = found
    return best


def _measured(
    rows: Matrix, weights: Vector, nearest: Callable[[Vector], Vector]
) -> tuple[float, Vector, Vector]:
    m = weights @ rows
    v = nearest(-m)
    return float(np.linalg.norm(m + v)), weights, v


@np.errstate(over="ignore", invalid="ignore")
def quadratic_weights(columns: Matrix, linear: Vector) -> Vector | None:
    """Minimise |Cw|^2/2 + a'w over the simplex, nearly; None where rounding stops the search.

    As non-negative least squares: on the simplex 2a'w is the square (a'w + c)^2/c but for a
    constant and (a'w)^2/c, a thousandth of a'w at most; and the weights need not sum to one, as
    long as a sum other than one is punished, since the other squares all grow with that sum.

    Parameters
    ----------
    columns : ndarray, shape (height, count)
        C.
    linear : ndarray, shape (count,)
        a >= 0.

    Examples
    --------
    >>> quadratic_weights(np.eye(2), np.array([0.0, 0.5])).round(3)
    array([0.75, 0.25])
    """
    top = linear.item(int(linear.argmax()))
    if top == math.inf:
        return None
    height, count = columns.shape
    lowest = int(linear.argmin())
    column = columns[:, lowest]
    reach = _OUT_OF_REACH * (0.5 * float(column.dot(column)) + linear.item(lowest))
    if 0.0 < reach < top:
        top, linear = reach, np.minimum(linear, reach)
    offset = _ABOVE * top
    if not offset > _NOTHING:
        offset = 1.0
    system = np.ones((height + 2, count))
    np.divide(columns, math.sqrt(offset), out=system[:height])
    np.divide(linear, offset, out=system[height])
    system[height] += 1.0
    target = np.zeros(height + 2)
    target[-1] = 1.0
    return convex_weights(system, target)


def factor_of_gram(gram: Matrix) -> Matrix | None:
    """Return columns with these inner products, up to rounding; None where there are none.

    Examples
    --------
    >>> columns = factor_of_gram(np.array([[4.0, 2.0], [2.0, 3.0]]))
    >>> (columns.T @ columns).round(12)
    array([[4., 2.],
           [2., 3.]])
    """
    scale = float(gram.diagonal().max())
    for ridge in _RIDGES:
        system = np.array(gram, order="F")
        system.flat[:: len(gram) + 1] += ridge * scale
        factor, failed = dpotrf(system, clean=1, overwrite_a=1)
        if not failed:
            return np.asarray(factor)
    return None
