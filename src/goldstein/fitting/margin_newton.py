"""A local minimiser of the rho-margin objective: Newton's method on less and less rounded kinks.

The path has three parts. (1) The hinge loss, smoothed: convex, so the start does not matter. (2)
The flat part of the loss moves in from far away, so that outliers drop out one after the other. (3)
The rounding shrinks, and at last convex subproblems with true kinks are solved, on the few rows
that can still change piece. Nothing here is trusted: the certificate is made and checked elsewhere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from goldstein.checker.arrays import Matrix, Vector
from goldstein.fitting.margin_finish import MOST_HINGES, REACH, dispensable, settle_on_kinks
from goldstein.models.margin_svm import MarginProblem, Smoothing

#: A Newton system is solved to this part of its right-hand side.
FORCING = 0.1

#: Most products with the curvature per step.
MOST_PRODUCTS = 60

#: The residual of a prediction in units of the tolerance, and its most products. Shares are
#: gradients times the number of rows: a small residual can be all of a share.
ACCURACY, PREDICTION_PRODUCTS = 0.05, 200

#: Rows are copied when they are at most this part of all.
FEW = 0.4

#: Curvature given to a variable without penalty, in units of the largest penalty.
_FLOOR = 1e-3


def truncated_direction(
    problem: MarginProblem, u: Vector, gradient: Vector, s: Smoothing, tolerance: float
) -> Vector:
    """Return a direction of descent, close to Newton's, of the smoothed objective.

    Parameters
    ----------
    problem : MarginProblem
    u, gradient : ndarray
        Z v and the gradient at the present point v.
    s : Smoothing
    tolerance : float
        Norm of a gradient that counts as zero: no need to solve more accurately than that.

    Examples
    --------
    >>> import numpy as np
    >>> P = MarginProblem.from_rows(np.eye(2), np.ones(2) / 2, np.ones(2), rho=1.0)
    >>> truncated_direction(P, np.ones(2), np.array([1.0, 0.0]), Smoothing(0.5), 1e-9)
    array([-0.66666667,  0.        ])
    """
    rows, c = problem.curvature(u, s)
    convex = c > 0
    multiply = curvature_product(problem, rows[convex], c[convex])
    goal = max(FORCING * float(np.sqrt(gradient @ gradient)), 0.5 * tolerance)
    return conjugate_gradients(multiply, -gradient, goal, MOST_PRODUCTS)


def conjugate_gradients(
    multiply: Callable[[Vector], Vector], right: Vector, goal: float, most: int
) -> Vector:
    """Solve A x = right, A positive definite, until the residual is at most `goal` long."""
    A = LinearOperator((right.size, right.size), multiply, dtype=right.dtype)
    return np.asarray(cg(A, right, rtol=0.0, atol=goal, maxiter=most)[0])


def curvature_product(
    problem: MarginProblem, rows: NDArray[np.intp], c: Vector
) -> Callable[[Vector], Vector]:
    """Return the product with the penalty's curvature plus sum_i c_i z_i z_i' over some rows."""
    diagonal = np.maximum(problem.ridge, _FLOOR * max(float(problem.ridge.max()), 1e-8))
    if rows.size <= FEW * problem.rows:
        Z = problem.Z[rows]
        across = Z.T
        return lambda x: diagonal * x + across @ (c * (Z @ x))
    weights = np.zeros(problem.rows)
    weights[rows] = c
    return lambda x: diagonal * x + problem.transposed_product(weights * problem.product(x))


def narrowed(
    problem: MarginProblem, v: Vector, u: Vector, old: float, new: float, tolerance: float
) -> Vector:
    """Predict the minimiser for the rounding `new` from v, the minimiser for `old`.

    A row within the rounding of its convex kink carries a share of its slope, which its distance
    from the kink tells. The shares balance the gradient, and hardly change when the rounding
    shrinks: what changes is that each row moves towards its kink, in proportion. One Newton step
    with the old set of rows and the new rounding leads there. Newton's method from the old point
    does not: to it most of these rows look settled on one side.

    Parameters
    ----------
    problem : MarginProblem
    v, u : ndarray
        The point and Z v.
    old, new : float
        Widths of the rounding.
    tolerance : float
        Norm of a gradient that counts as zero.

    Examples
    --------
    One row, v = u: with width w the share is (1 + w - v) / (2 w), and v is the share.

    >>> P = MarginProblem.from_rows(np.ones((1, 1)), np.ones(1), np.ones(1), rho=1.0)
    >>> old, new = 0.5, 0.05
    >>> v = np.array([(1 + old) / (1 + 2 * old)])
    >>> narrowed(P, v, v, old, new, 1e-12), round((1 + new) / (1 + 2 * new), 8)
    (array([0.95454545]), 0.95454545)
    """
    margin = u - problem.shift
    rows = np.flatnonzero(np.abs(margin - problem.rho) < old)
    pull = np.where((margin > 0) & (margin < problem.rho), problem.weights / problem.rho, 0.0)
    # Not cut off at 0 and 1: this is the quadratic model of these rows.
    shares = (problem.rho + new - margin[rows]) / (2.0 * new)
    pull[rows] = shares * problem.weights[rows] / problem.rho
    gradient = problem.ridge * v + problem.slope - problem.transposed_product(pull)
    multiply = curvature_product(problem, rows, problem.weights[rows] / (2.0 * new * problem.rho))
    return v + conjugate_gradients(multiply, -gradient, ACCURACY * tolerance, PREDICTION_PRODUCTS)


#: Up to this many variables the Newton system is solved directly.
DIRECT_LIMIT = 300

#: The continuation itself runs on at most this many rows.
SUBSAMPLE = 4096

#: Distances of the flat part, in units of rho, and roundings that go with them.
_TRUNCATION = ((4.0, 0.5), (2.0, 0.5), (1.0, 0.5), (0.5, 0.3), (0.25, 0.2), (0.0, 0.1))

#: Rows this many times longer than the median make a second path worth its time.
LEVERAGE = 3.0

#: Rows that enter a Newton matrix, per variable, and at most.
HESSIAN_ROWS_EACH = 50
HESSIAN_ROWS = 6000

#: Most rows whose kinks are met exactly by a proof: its time grows with their fourth power.
MOST_ON_KINKS = 300

#: The first rounding on all rows, in units of rho: after a path, and after a warm start.
_FIRST_WIDTH = 0.2
_WARM_WIDTH = 0.05

#: Parts of a step that are tried, one after the other.
_BACKTRACKING = [0.5**k for k in range(1, 34)]

#: Newton steps per rounding.
_STEPS = 8

#: Each rounding is this part of the one before, down to the last one, in units of rho.
_SHRINK = 0.25
_LAST_WIDTH = 0.01

#: The same beyond the last one.
_SHARPEN = 0.1

#: To count the rows that stay on their kinks, the rounding is made this much finer.
_FINE = 0.05

#: Where the curvature is concave, steps are at most 1 / (1 - this) times the safe ones.
_CONCAVE_CAP = 0.6

#: Part of its diagonal that makes a curvature matrix definite; more than rounding takes away.
_TRACE = 1e-10

#: Accuracy of the value, relative, that goes with the tolerance of a gradient.
VALUE_ACCURACY = 1e-3

#: Part of eps that the search uses up.
_SAFETY = 0.9


@dataclass(frozen=True)
class LocalMinimum:
    """What the search found.

    Attributes
    ----------
    v : ndarray
    active : ndarray of int
        Rows that sit on the convex kink.
    shares : ndarray
        The part in [0, 1] of each active row's slope that balances the gradient.
    iterations : int
        Newton steps, over all rows and over few rows alike.
    """

    v: Vector
    active: NDArray[np.intp]
    shares: Vector
    iterations: int


class _Search:
    """Newton iterations on one problem, counted."""

    def __init__(self) -> None:
        self.iterations = 0

    def settle(
        self, problem: MarginProblem, v: Vector, s: Smoothing, tol: float, steps: int
    ) -> tuple[Vector, Vector]:
        """Minimise the smoothed objective from v; return (v, Z v)."""
        u, value, gradient = problem.smooth_pass(v, s)
        for _ in range(steps):
            if np.sqrt(gradient @ gradient) <= tol:
                break
            if problem.dim > DIRECT_LIMIT:
                direction = truncated_direction(problem, u, gradient, s, tol)
            else:
                direction = _newton_direction(problem, u, gradient, s)
            slope = float(gradient @ direction)
            if slope >= 0.0:
                break
            self.iterations += 1
            v_new = v + direction
            u_new, value_new, gradient_new = problem.smooth_pass(v_new, s)
            if value_new > value + 1e-4 * slope:
                # Backtracking costs no product with the data.
                du = u_new - u
                for step in _BACKTRACKING:
                    v_new, u_new = v + step * direction, u + step * du
                    value_new = problem.smooth_value(v_new, u_new, s)
                    if value_new <= value + 1e-4 * step * slope:
                        break
                else:
                    break
                gradient_new = problem.smooth_gradient(v_new, u_new, s)
            stalled = value - value_new <= 1e-15 * abs(value)
            v, u, value, gradient = v_new, u_new, value_new, gradient_new
            if stalled:
                break
        return v, u

    def narrow(
        self, problem: MarginProblem, v: Vector, u: Vector, widths: tuple[float, float], tol: float
    ) -> Vector:
        """Return a start for the second width: the predicted minimiser, or v if that is worse."""
        there = narrowed(problem, v, u, *widths, tol)
        s = Smoothing(widths[1])
        before = problem.smooth_gradient(v, u, s)
        after = problem.smooth_pass(there, s)[2]
        self.iterations += 1
        return there if after @ after < before @ before else v

    def sharpen(
        self, problem: MarginProblem, v: Vector, u: Vector, width: float, tol: float, delta: float
    ) -> Vector:
        """Shrink the rounding to what scaling v by delta / |v| moves the margins at the kink."""
        level = abs(problem.shift + problem.rho)
        last = 0.9 * delta * level / max(float(np.linalg.norm(v)), 1e-300)
        while width > last > 0.0:
            before, width = width, max(_SHARPEN * width, last)
            v = self.narrow(problem, v, u, (before, width), tol)
            v, u = self.settle(problem, v, Smoothing(width), tol, 20)
        return v

    def ended(self, v: Vector, active: Any = (), shares: Any = ()) -> LocalMinimum:
        """Return what was found, with the rows on their kinks."""
        rows, parts = np.asarray(active, dtype=np.intp), np.asarray(shares, dtype=np.float64)
        return LocalMinimum(v, rows, parts, self.iterations)


def _newton_direction(problem: MarginProblem, u: Vector, gradient: Vector, s: Smoothing) -> Vector:
    rows, c = problem.curvature(u, s)
    enough = min(HESSIAN_ROWS, HESSIAN_ROWS_EACH * problem.dim)
    if rows.size > enough:
        # Every k-th of many rows tells the curvature well enough.
        every = -(-rows.size // enough)
        c = c[::every] * every
        rows = rows[::every]
    # The intercept is not penalised: without rows in reach its curvature would be 0.
    diagonal = np.maximum(problem.ridge, 1e-8 * max(float(problem.ridge.max()), 1e-8))
    up = c > 0
    convex = _curvature_matrix(problem.Z[rows[up]], c[up], diagonal)
    concave = None
    if not up.all():
        concave = _curvature_matrix(problem.Z[rows[~up]], -c[~up], np.zeros(problem.dim))
    try:
        return _solved(convex, concave, gradient)
    except linalg.LinAlgError:
        # Beside long or heavy rows the penalty is lost in rounding: a trace of the rows' own
        # curvature takes its place.
        convex[np.diag_indices_from(convex)] *= 1.0 + _TRACE
        return _solved(convex, concave, gradient)


def _solved(convex: Matrix, concave: Matrix | None, gradient: Vector) -> Vector:
    """Return Newton's step for the curvature convex - concave, a descent direction."""
    if concave is None:
        factor = linalg.cho_factor(convex, lower=True, check_finite=False)
        return np.asarray(-linalg.cho_solve(factor, gradient, check_finite=False))
    # In the metric of the convex part the concave part has eigenvalues mu >= 0, and Newton's step
    # is 1 / (1 - mu) times the safe one; where mu is near or above 1, a few times.
    mu, Q = linalg.eigh(concave, convex, check_finite=False)
    return np.asarray(-Q @ ((Q.T @ gradient) / (1.0 - np.minimum(mu, _CONCAVE_CAP))))


def _curvature_matrix(Z: Any, c: Vector, diagonal: Vector) -> Vector:
    """Return Z'cZ plus a diagonal, c > 0; Z is a copy and is overwritten."""
    if sparse.issparse(Z):
        Z = sparse.diags_array(np.sqrt(c)) @ Z
        H = (Z.T @ Z).toarray()
    else:
        Z *= np.sqrt(c)[:, None]
        H = Z.T @ Z
    H[np.diag_indices_from(H)] += diagonal
    return np.asarray(H)


def minimise_margin(
    problem: MarginProblem, *, start: Vector | None = None, rng: np.random.Generator, eps: float,
    delta: float = 0.0,
) -> LocalMinimum:  # fmt: skip
    """Return a local minimiser, or the best point on the way to one.

    Parameters
    ----------
    problem : MarginProblem
    start : ndarray, optional
        Warm start: parts (1) and (2) of the path are skipped.
    rng : Generator
        Draws the rows the path begins on when there are more than `SUBSAMPLE`.
    eps : float
        Gradient norm that counts as zero on the way.
    delta : float
        Radius of the ball in which a certificate may use points. Where too many rows sit on their
        kinks to solve for them, the rounding shrinks until scaling the answer within this ball
        takes each of them across its kink.
    """
    search = _Search()
    rho = problem.rho
    if start is None:
        v, width = _path_end(search, problem, rng), _FIRST_WIDTH * rho
    else:
        v, width = start.copy(), _WARM_WIDTH * rho
    tolerance, start_width = _tolerance(problem, v, eps), width
    while True:
        v, u = search.settle(problem, v, Smoothing(width), tolerance, _STEPS)
        gradient = problem.gradient(v, u)
        if np.sqrt(gradient @ gradient) <= _SAFETY * eps and problem.clear_of_kinks(v, u):
            return search.ended(v)
        reach = int((np.abs(u - problem.shift - rho) <= REACH * width).sum())
        if width <= _LAST_WIDTH * rho or (reach <= MOST_HINGES and width < start_width):
            if problem.dim > DIRECT_LIMIT and _too_many_kinks(problem, v, u, width, tolerance, eps):
                return search.ended(search.sharpen(problem, v, u, width, tolerance, delta))
            v, active, shares, rounds = settle_on_kinks(problem, v, u, width, _SAFETY * eps)
            search.iterations += rounds
            return search.ended(v, active, shares)
        if problem.dim > DIRECT_LIMIT:
            v = search.narrow(problem, v, u, (width, _SHRINK * width), tolerance)
        width *= _SHRINK


def _too_many_kinks(
    problem: MarginProblem, v: Vector, u: Vector, width: float, tolerance: float, eps: float
) -> bool:
    """True when too many rows have to sit on their kinks to put them there exactly."""
    if problem.rows > 2 * MOST_HINGES:
        return True
    fine = _FINE * width
    there = problem.product(narrowed(problem, v, u, width, fine, tolerance))
    distance = (there - problem.shift - problem.rho) / (2.0 * fine)
    active = np.flatnonzero(np.abs(distance) < 0.5)
    if active.size <= MOST_ON_KINKS:
        return False
    leaving = dispensable(problem, active, 0.5 - distance[active], eps)
    return active.size - leaving.size > MOST_ON_KINKS


def _tolerance(problem: MarginProblem, v: Vector, eps: float) -> float:
    """Return the gradient norm to reach on the way.

    With a weak penalty a small gradient alone does not mean much: where F is convex it is within
    |g|^2 / (2 ridge) of its minimum, and that shall be a small part of its value. A direct Newton
    step ends far below its tolerance anyway.
    """
    if problem.dim <= DIRECT_LIMIT:
        return 0.3 * eps
    ridge = float(problem.ridge.max())
    return min(0.3 * eps, float(np.sqrt(2.0 * ridge * VALUE_ACCURACY * problem.value(v))) or eps)


def _path_end(search: _Search, problem: MarginProblem, rng: np.random.Generator) -> Vector:
    """Return the end of the best path, on part of the rows where they are many."""
    # With more variables than that, part of the rows says nothing about the others.
    if problem.rows <= max(SUBSAMPLE, 10 * problem.dim):
        return _best_path(search, problem)
    few = problem.take(np.sort(rng.choice(problem.rows, SUBSAMPLE, replace=False)))
    aside = _Search()
    v = _best_path(aside, few)
    search.iterations += aside.iterations
    return v


def _best_path(search: _Search, problem: MarginProblem) -> Vector:
    """Follow the path, and a second one if some rows are long enough to bend the hinge solution."""
    v = _outlier_path(search, problem)
    if float(problem.row_norms.max()) <= LEVERAGE * float(np.median(problem.row_norms)):
        return v
    other = _outlier_path(search, problem.equal_lengths())
    give, width = _TRUNCATION[-1]
    s = Smoothing(width * problem.rho, give * problem.rho)
    other, _ = search.settle(problem, other, s, 1e-4, 15)
    return min(v, other, key=problem.value)


def _outlier_path(search: _Search, problem: MarginProblem) -> Vector:
    """Parts (1) and (2): from the smoothed hinge loss to the flat part in its place."""
    rho = problem.rho
    v = np.zeros(problem.dim)
    on_ramp = np.full(problem.rows, problem.shift + 0.5 * rho)
    # Where steps are cheap, accurately; with many variables roughly, as only its end matters.
    part = 1e-2 if problem.dim <= DIRECT_LIMIT else 0.1
    tolerance = part * float(np.linalg.norm(problem.gradient(v, on_ramp)))
    v, u = search.settle(problem, v, Smoothing(2.0 * rho, np.inf), tolerance, 30)
    for give, width in _TRUNCATION:
        s = Smoothing(width * rho, give * rho)
        if u.min() > problem.shift - s.give - s.width:
            continue  # no row is that far on the wrong side: nothing changes
        v, u = search.settle(problem, v, s, tolerance, 10)
    return v
