"""Starts of robust regression with high breakdown: elemental subsets, concentration, scales.

Half of the rows may be arbitrarily wrong: fits of few random rows, of which some are clean, are
improved on the rows that they explain best (Rousseeuw and Van Driessen 2006), and the scale is that
of the middle half of the residuals (Rousseeuw and Yohai 1984).

Coordinate descent for squared loss plus l1, MCP or SCAD, entry by entry in closed form.

Linear quantiles by linear programming (HiGHS): untrusted starts.

The dual is solved, whose rows are the coefficients: max y'u with A'u = 0 and one bounded u per row
of the data. Its multipliers are the coefficients; rows with u inside its bounds are met exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import GoldsteinError
from goldstein.prox.term import thresholded

#: Tukey's constant with a breakdown of one half; 1.5476 makes the scale right for normal errors.
HALF = 1.5476

#: Steps of reweighted least squares.
STEPS = 200


def weighted_least_squares(A: Matrix, y: Vector, weights: Vector) -> Vector:
    """Return the least squares solution; the shortest where there are many."""
    root = np.sqrt(weights)
    return np.asarray(np.linalg.lstsq(A * root[:, None], y * root, rcond=None)[0], dtype=np.float64)


def smallest(residuals: Vector, weights: Vector, share: float) -> NDArray[np.intp]:
    """Return the rows of the smallest residuals that together have a share of the weight."""
    order = np.argsort(np.abs(residuals), kind="stable")
    reached = np.cumsum(weights[order])
    return order[: int(np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-12))) + 1]


def concentrated(
    A: Matrix, y: Vector, weights: Vector, theta: Vector, share: float, steps: int
) -> tuple[Vector, float]:
    """Fit again and again to the rows that are explained best; return also the trimmed loss."""
    kept: NDArray[np.intp] = np.empty(0, dtype=np.intp)
    for _ in range(steps):
        new = np.sort(smallest(y - A @ theta, weights, share))
        if np.array_equal(new, kept):
            break
        kept = new
        theta = weighted_least_squares(A[kept], y[kept], weights[kept])
    r = y - A @ theta
    kept = smallest(r, weights, share)
    return theta, float(weights[kept] @ r[kept] ** 2)


def trimmed_starts(
    A: Matrix, y: Vector, weights: Vector, share: float, tries: int, rng: np.random.Generator
) -> list[Vector]:
    """Return the best ends of concentration steps from random subsets, the lowest loss first."""
    n, p = A.shape
    starts = [weighted_least_squares(A, y, weights)]
    for _ in range(tries):
        rows = rng.choice(n, min(p, n), replace=False)
        starts.append(np.linalg.lstsq(A[rows], y[rows], rcond=None)[0])
    short = [concentrated(A, y, weights, theta, share, 2) for theta in starts]
    short.sort(key=lambda found: found[1])
    ends = [concentrated(A, y, weights, theta, share, STEPS) for theta, _ in short[:10]]
    return [theta for theta, _ in sorted(ends, key=lambda found: found[1])]


class RobustLoss(NamedTuple):
    """A loss of residuals in units of their scale: values, slopes, curvatures."""

    value: Callable[[Vector, float], Vector]
    slope: Callable[[Vector, float], Vector]
    bend: Callable[[Vector, float], Vector]

    def pull(self, r: Vector, c: float) -> Vector:
        """Return weights with which the squared loss is a bound from above."""
        return np.divide(self.slope(r, c), r, out=np.ones_like(r), where=r != 0.0)


def _inside(u: Vector, c: float) -> Vector:
    return np.maximum(1.0 - (u / c) ** 2, 0.0)


TUKEY = RobustLoss(
    lambda u, c: c * c / 6.0 * (1.0 - _inside(u, c) ** 3),
    lambda u, c: u * _inside(u, c) ** 2,
    lambda u, c: _inside(u, c) * (1.0 - 5.0 * (u / c) ** 2),
)
HUBER = RobustLoss(
    lambda u, c: np.where(np.abs(u) <= c, 0.5 * u * u, c * (np.abs(u) - 0.5 * c)),
    lambda u, c: np.clip(u, -c, c),
    lambda u, c: (np.abs(u) <= c).astype(np.float64),
)


def counted_rows(weights: Vector) -> float:
    """Return for how many rows weights stand: their sum, a row of weight 2 being two rows.

    Small weights are no counts: at least as many as there are equal ones that say as much.
    """
    total = float(weights.sum())
    return max(total, total * total / float(weights @ weights))


def s_scale(residuals: Vector, weights: Vector, free: float, start: float | None = None) -> float:
    """Return the s for which Tukey's loss of residuals / s, summed over n - p, is half its bound.

    n rows that p coefficients were fitted to have residuals that are too small: without the p few
    rows look met, and the others wrong. `free` is 1 - p / n.
    """
    shares, size = weights / weights.sum(), np.abs(residuals)
    bound = free * HALF * HALF / 12.0
    order = np.argsort(size, kind="stable")
    s = float(start or size[order][np.searchsorted(np.cumsum(shares[order]), 0.5)] / 0.6745)
    for _ in range(STEPS):
        if s <= 0.0:
            break
        ratio = float(shares @ TUKEY.value(residuals / s, HALF)) / bound
        s *= ratio**0.5
        if abs(ratio - 1.0) < 1e-12:
            break
    return s


def reweighted(
    A: Matrix, y: Vector, weights: Vector, theta: Vector, loss: RobustLoss, c: float
) -> Vector:
    """Lower the mean loss of residuals: reweighted least squares, then Newton steps."""
    for _ in range(STEPS):
        pull = weights * loss.pull(y - A @ theta, c)
        if np.count_nonzero(pull) < A.shape[1]:
            return theta
        new = weighted_least_squares(A, y, pull)
        moved = float(np.abs(new - theta).max())
        theta = new
        if moved <= 1e-6 * max(1.0, float(np.abs(theta).max())):
            break

    def slope(at: Vector) -> Vector:
        return -A.T @ (weights * loss.slope(y - A @ at, c))

    g = slope(theta)
    for _ in range(20):
        H = A.T @ ((weights * loss.bend(y - A @ theta, c))[:, None] * A)
        trial = theta - np.linalg.lstsq(H, g, rcond=None)[0]
        ahead = slope(trial)
        if not np.linalg.norm(ahead) < np.linalg.norm(g):
            break
        theta, g = trial, ahead
    return theta


def s_estimate(
    A: Matrix, y: Vector, weights: Vector, starts: list[Vector], free: float
) -> tuple[Vector, float]:
    """Return coefficients whose residuals have a small robust scale, and that scale."""
    best: tuple[Vector, float] | None = None
    for theta in starts:
        s = s_scale(y - A @ theta, weights, free)
        for _ in range(STEPS):
            if s <= 0.0:
                break
            pull = weights * _inside((y - A @ theta) / s, HALF) ** 2
            if np.count_nonzero(pull) < A.shape[1]:
                break
            trial = weighted_least_squares(A, y, pull)
            below = s_scale(y - A @ trial, weights, free, s)
            if below >= s * (1.0 - 1e-10):
                break
            theta, s = trial, below
        if best is None or s < best[1]:
            best = theta, s
    assert best is not None
    return best


#: Full passes over all entries, and passes over the nonzero ones between two of them.
FULL, PARTIAL = 200, 20


@dataclass(frozen=True)
class Penalty:
    """sum_j h(c_j): "l1", "mcp" or "scad" of slope `alpha` at 0 and shape `gamma`."""

    name: str
    alpha: float
    gamma: float

    @property
    def rho(self) -> float:
        """How concave it is."""
        return {"l1": 0.0, "mcp": 1.0 / self.gamma, "scad": 1.0 / (self.gamma - 1.0)}[self.name]


def descend(gram: Matrix, pull: Vector, start: Vector, penalty: Penalty) -> Vector:
    """Minimise c'gram c / 2 - pull'c + penalty(c) from a start; the objective never rises.

    Examples
    --------
    >>> descend(np.eye(2), np.array([3.0, 0.5]), np.zeros(2), Penalty("l1", 1.0, 3.0))
    array([2., 0.])
    """
    c = start.copy()
    slope = gram @ c - pull
    diagonal = np.diag(gram)
    c[diagonal <= 0.0] = 0.0
    # Where the penalty is more concave than the loss is convex: a convex bound of the loss.
    curve = np.maximum(diagonal, 1.001 * penalty.rho)
    usable = np.flatnonzero(diagonal > 0.0)
    small = 1e-9 * max(1e-300, float(np.abs(pull).max(initial=0.0)))

    def sweep(entries: NDArray[np.intp]) -> float:
        largest = 0.0
        for j in entries:
            aim = c[j] - slope[j] / curve[j]
            new = thresholded(penalty.name, aim, 1.0 / curve[j], penalty.alpha, penalty.gamma)
            step = new - c[j]
            if step:
                slope[:] += gram[:, j] * step
                c[j] = new
                largest = max(largest, abs(step) * curve[j])
        return largest

    for _ in range(FULL):
        if sweep(usable) <= small:
            break
        for _ in range(PARTIAL):
            if sweep(np.flatnonzero(c)) <= small:
                break
    return _solved(gram, pull, c, penalty)


def _solved(gram: Matrix, pull: Vector, c: Vector, penalty: Penalty) -> Vector:
    """Solve the linear equations of the pieces that the nonzero entries are on, if they stay."""
    size, free = np.abs(c), np.flatnonzero(c)
    if not free.size:
        return c
    slope, bend = np.full(c.size, penalty.alpha), np.zeros(c.size)  # h' = sign (slope + bend |c|)
    end = penalty.gamma * penalty.alpha
    if penalty.name != "l1":
        begin = penalty.alpha if penalty.name == "scad" else 0.0
        middle = (size > begin) & (size < end)
        slope[middle], bend[middle] = penalty.alpha + penalty.rho * begin, -penalty.rho
        slope[size >= end] = 0.0
    better = c.copy()
    matrix = gram[np.ix_(free, free)] + np.diag(bend[free])
    right = (pull - np.sign(c) * slope)[free]
    better[free] = np.linalg.lstsq(matrix, right, rcond=None)[0]
    near = np.abs(better - c).max() <= 1e-4 * float(size.max())
    return better if near and bool((better[free] * c[free] > 0).all()) else c


#: Targets beyond this are as far for the linear program.
FAR_TARGET = 1e12

#: Parts of its range by which a multiplier counts as inside.
INSIDE = 1e-9


def quantile_coefficients(
    A: Matrix, y: Vector, weights: Vector, quantiles: Vector, price: Vector, *, ordered: bool
) -> tuple[Matrix, float]:
    """Return one row of coefficients per quantile, and the largest multiplier of the order.

    They minimise sum_k sum_i weights_i pinball_k(y_i - a_i.c_k) + sum_kj price_j |c_kj|, if
    `ordered` with a_i.c_k <= a_i.c_(k+1) for all rows.

    Examples
    --------
    >>> A, y = np.ones((5, 1)), np.array([1.0, 2.0, 3.0, 4.0, 50.0])
    >>> half = np.array([0.5])
    >>> quantile_coefficients(A, y, np.full(5, 0.2), half, np.zeros(1), ordered=False)[0]
    array([[3.]])
    """
    n, p = A.shape
    count = len(quantiles)
    low = np.concatenate([weights * (tau - 1.0) for tau in quantiles])
    high = low + np.tile(weights, count)
    parts, ranges = [sparse.block_diag([A.T] * count)], [np.column_stack([low, high])]
    if ordered and count > 1:  # columns of the multipliers of the order: + in k + 1, - in k
        step = sparse.eye(count - 1, count, k=1) - sparse.eye(count - 1, count)
        parts.append(sparse.kron(step.T, A.T))
        ranges.append(np.tile([0.0, np.inf], (n * (count - 1), 1)))
    # A price is a pair of slopes at 0: two more columns, of opposite sign, without reward.
    paid = np.flatnonzero(np.tile(price, count))
    costs = np.tile(price, count)[paid]
    pick = sparse.csr_matrix(
        (np.ones(paid.size), (paid, np.arange(paid.size))), (p * count, paid.size)
    )
    blocks = sparse.hstack([*parts, pick], format="csr")
    bounds = np.vstack([*ranges, np.column_stack([-costs, costs])])
    # A target far away says on which side of the answer it is; HiGHS takes 1e20 for infinite.
    reward = np.zeros(len(bounds))
    reward[: n * count] = np.tile(np.clip(y, -FAR_TARGET, FAR_TARGET), count)
    found = linprog(-reward, A_eq=blocks, b_eq=np.zeros(p * count), bounds=bounds, method="highs")
    if found.x is None:
        raise GoldsteinError(f"the linear program of the quantiles failed: {found.message}")
    width = np.where(np.isfinite(bounds[:, 1]), bounds[:, 1] - bounds[:, 0], 1.0)
    inside = np.minimum(found.x - bounds[:, 0], bounds[:, 1] - found.x) > INSIDE * width
    start = -np.asarray(found.eqlin.marginals)
    c = _refined(blocks[:, inside].T.toarray(), reward[inside], start)
    first_paid = len(found.x) - paid.size
    c[paid[inside[first_paid:]]] = 0.0
    return c.reshape(count, p), float(found.x[n * count : first_paid].max(initial=0.0))


def _refined(rows: Matrix, targets: Vector, start: Vector) -> Vector:
    """Return the coefficients nearest to a start that meet the rows; the start if none do."""
    better: Vector = start + np.linalg.lstsq(rows, targets - rows @ start, rcond=None)[0]
    near = np.abs(better - start).max() <= 1e-7 * max(1.0, float(np.abs(start).max()))
    return better if near else start
