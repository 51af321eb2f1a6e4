"""From a local minimiser with known kinks to certificates, without any search.

At the minimiser the active rows sit on their convex kink, and shares in [0, 1] of their slopes
balance the gradient. Sort the shares in decreasing order and let direction j lead to where the
first j active rows are on the ramp and the others beyond it: the differences of consecutive shares
are the weights of a convex combination of gradients that has exactly these shares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.near import NearCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.construction.goldstein_claim import Stating
from goldstein.errors import KinkError, NotCertifiableError
from goldstein.fitting.margin_finish import dispensable, distinct_rows
from goldstein.fitting.margin_newton import LocalMinimum
from goldstein.fitting.margin_rowspace import least_norm
from goldstein.models.margin_problem import MarginProblem
from goldstein.models.margin_svm import MarginSVM
from goldstein.numerics.budget import Budget
from goldstein.numerics.exact_point import point_on

#: Where there is no kink, the point of the certificate is this share of the way out.
_LITTLE = 2.0**-10


#: A row that left its kink is at least this far from it, in units of rho.
_CLEARANCE = 1e-8

#: A single gradient this many times too long is not examined further.
HOPELESS = 1.1

#: Part of delta that scaled points use.
SCALING_REACH = 0.9


@dataclass(frozen=True)
class Staircase:
    """Ways to leave a minimiser so that the gradients along them cancel.

    Attributes
    ----------
    moves : ndarray, shape (m, d)
        Directions, short enough that only rows on their kink change piece; k + 1 at most for k
        distinct rows.
    weights : ndarray, shape (m,)
        Positive.
    """

    moves: Matrix
    weights: Vector


def staircase(problem: MarginProblem, found: LocalMinimum, delta: float) -> Staircase:
    """Return the directions and weights that the shares of the active rows stand for."""
    reach = 0.5 * min(delta, free_radius(problem, found))
    if found.active.size == 0:
        # No kink: one point will do, a little way off, for the gradient at the minimiser itself is
        # all rounding error and would not survive a check that displaces the point.
        little = _LITTLE * reach / (max(1.0, problem.ridge.max()) * np.sqrt(problem.dim))
        return Staircase(np.full((1, problem.dim), little), np.ones(1))
    rows, group = _written_out(problem, found)
    shares = np.zeros(len(rows))
    shares[group] = found.shares
    order = np.argsort(-shares)
    # Sign of the change of margin i along direction j: down, onto the ramp, for the first j rows.
    signs = np.empty((len(rows) + 1, len(rows)))
    signs[:, order] = 1.0 - 2.0 * np.tri(len(rows) + 1, len(rows), -1)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    weights = -np.diff(np.concatenate([[1.0], shares[order], [0.0]]))
    used = weights > 0
    moves = least_norm(rows, (signs[used] * lengths).T).T
    longest = float(np.sqrt(np.einsum("ij,ij->i", moves, moves).max()))
    if longest > 0.0:  # opposite rows may leave no move; the proof will refuse to stay on a kink
        moves *= reach / longest
    return Staircase(moves, weights[used])


def _written_out(problem: MarginProblem, found: LocalMinimum) -> tuple[Matrix, NDArray[np.intp]]:
    """Return the distinct active rows, dense, and the place of each active row among them."""
    rows, group = distinct_rows(problem.Z[found.active])
    return rows.toarray() if sparse.issparse(rows) else rows, group


def free_radius(problem: MarginProblem, found: LocalMinimum) -> float:
    """Distance within which no row changes piece except those on their kink.

    A row that is on its kink without carrying a share does not count: points too close together
    would not survive a check that displaces them.
    """
    margin = problem.product(found.v) - problem.shift
    gap = np.minimum(np.abs(margin), np.abs(margin - problem.rho))
    gap[gap <= 1e-9 * problem.rho] = np.inf
    gap[found.active] = np.inf
    return float((gap / np.maximum(problem.row_norms, 1e-300)).min())


def thinned(
    problem: MarginProblem, found: LocalMinimum, eps: float, delta: float
) -> LocalMinimum | None:
    """Return a minimiser moved off some kinks, or None when none can be left.

    A row on its kink carries a share of its slope. Where that share is near 0 or 1, stepping off
    the kink to that side costs little of eps. The exact part of a proof grows fast with the rows
    that stay.
    """
    if found.active.size == 0:
        return None
    leaving = dispensable(problem, found.active, found.shares, eps)
    if leaving.size == 0:
        return None
    rows = problem.Z[found.active]
    rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
    side = np.round(found.shares)
    wanted = np.zeros(len(rows))
    # Share 0 lies beyond the kink, share 1 on the ramp before it.
    wanted[leaving] = 1.0 - 2.0 * side[leaving]
    move = least_norm(rows, wanted)
    length = float(np.linalg.norm(move))
    if length == 0.0:
        return None  # rows of zeros: no move takes them off their kink
    move *= 0.5 * min(delta, free_radius(problem, found)) / length
    shift = rows @ move
    sides_reached = (np.sign(shift) == np.sign(wanted))[leaving].all()
    if not sides_reached or np.abs(shift[leaving]).min() < _CLEARANCE * problem.rho:
        return None  # the rows depend on each other, or there is no room between them
    kept = np.setdiff1d(np.arange(len(rows)), leaving)
    return replace(found, v=found.v + move, active=found.active[kept], shares=found.shares[kept])


def goldstein_at(
    model: MarginSVM, found: LocalMinimum, delta: float, seed: int
) -> GoldsteinCertificate | None:
    """Return a Goldstein certificate at the minimiser, or None when a point meets a kink."""
    stairs = staircase(model.problem, found, delta)
    points = found.v + stairs.moves
    try:
        gradients = np.array([model.gradient(y) for y in points])
    except KinkError:
        return None
    meta = {"function": model.name, "method": "margin-newton", "seed": seed}
    stating = Stating(model, found.v, delta, points, gradients, seed)
    return stating.claim(0.0, meta, weights=stairs.weights)


def goldstein_by_scaling(
    model: MarginSVM, v: Vector, delta: float, count: int, seed: int
) -> GoldsteinCertificate | None:
    """Return a Goldstein certificate from the points (1 + t) v, or None when one meets a kink.

    Scaling moves all margins near the kink by the same amount. At a minimiser of the smoothed
    objective a row's distance from its kink tells its share; so the part of the points at which the
    row is on the ramp is that share, up to 1 / count. No system is solved for the directions: this
    serves where thousands of rows sit on their kinks.
    """
    length = float(np.linalg.norm(v))
    if length == 0.0:
        return None
    reach = SCALING_REACH * delta / length
    steps = reach * (np.arange(1, 2 * count, 2) / count - 1.0)
    points = v + steps[:, None] * v
    try:
        gradients = np.array([model.gradient(y) for y in points])
    except KinkError:
        return None
    meta = {"function": model.name, "method": "margin-newton, scaled", "seed": seed}
    return Stating(model, v, delta, points, gradients, seed).claim(0.0, meta)


def near_at(
    model: MarginSVM, found: LocalMinimum, eps: float, delta: float, budget: Budget | None = None
) -> NearCertificate | None:
    """Return a near certificate at the minimiser; its pivot puts the active rows on their kinks.

    Raises
    ------
    OutOfBudget
        When that takes too long.
    """
    budget = budget or Budget()
    problem = model.problem
    if found.active.size == 0 and float(np.linalg.norm(problem.gradient(found.v))) > HOPELESS * eps:
        return None  # a gradient this long is no matter of rounding
    level = Fraction(problem.shift) + Fraction(problem.rho)
    rows = _written_out(problem, found)[0]
    pivot = point_on(rows, [level] * len(rows), found.v, delta, pause=budget.require)
    if pivot is None:
        return None
    stairs = staircase(problem, found, delta)
    try:
        return NearCertificate.prove(
            model, found.v, pivot, stairs.moves, stairs.weights, pause=budget.spend
        )
    except NotCertifiableError:
        return None
