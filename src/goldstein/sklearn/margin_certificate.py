"""From a local minimiser with known kinks to a Goldstein certificate, without any search.

At the minimiser the active rows sit on their convex kink, and shares in [0, 1] of their slopes
balance the gradient. Sort the shares in decreasing order and let point j lie where the first j active
rows are on the ramp and the others beyond it: the differences of consecutive shares are weights of a
convex combination of the gradients there which has exactly these shares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates import GoldsteinCertificate
from goldstein.errors import KinkError
from goldstein.sklearn.margin_newton import LocalMinimum, distinct_rows
from goldstein.sklearn.margin_oracle import MarginOracle
from goldstein.sklearn.margin_problem import MarginProblem

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def certificate_at(
    oracle: MarginOracle, found: LocalMinimum, delta: float, seed: int
) -> GoldsteinCertificate | None:
    """Return a certificate at the minimiser, or None when a point of it meets a kink."""
    points, weights = _staircase(oracle.problem, found, delta)
    try:
        gradients = np.array([oracle.gradient(y) for y in points])
    except KinkError:
        return None
    meta = {"function": oracle.name, "method": "margin-newton", "seed": seed}
    return GoldsteinCertificate.from_gradients(found.v, points, gradients, weights, meta=meta)


def _staircase(
    problem: MarginProblem, found: LocalMinimum, delta: float
) -> tuple[Matrix, Vector]:
    if found.active.size == 0:
        return found.v[None, :], np.ones(1)
    M, group = distinct_rows(problem.Z[found.active])
    shares = np.zeros(len(M))
    shares[group] = found.shares
    order = np.argsort(-shares)
    # Sign of the displacement of margin i at point j: down, onto the ramp, for the first j rows.
    steps = np.tri(len(M) + 1, len(M), -1)
    signs = np.empty_like(steps)
    signs[:, order] = 1.0 - 2.0 * steps
    lengths = np.sqrt(np.einsum("ij,ij->i", M, M))
    moves = (np.linalg.pinv(M) @ (signs * lengths).T).T
    longest = float(np.sqrt(np.einsum("ij,ij->i", moves, moves).max()))
    reach = 0.5 * min(delta, _free_radius(problem, found))
    weights = -np.diff(np.concatenate([[1.0], shares[order], [0.0]]))
    return found.v + (reach / longest) * moves, np.maximum(weights, 0.0)


def _free_radius(problem: MarginProblem, found: LocalMinimum) -> float:
    """Distance within which no row changes piece except the active ones."""
    margin = problem.product(found.v) - problem.shift
    gap = np.minimum(np.abs(margin), np.abs(margin - problem.rho))
    gap[found.active] = np.inf
    return float((gap / np.maximum(problem.row_norms, 1e-300)).min())
