"""Leave the kinks that a certificate can do without: fewer of them, cheaper proofs.

A row on its kink carries a share of its slope. Where that share is near 0 or 1, stepping off the
kink to that side costs little of eps. The exact part of a proof grows fast with the rows that stay.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from goldstein.fitting.margin_certificate import free_radius
from goldstein.fitting.margin_dispensable import dispensable
from goldstein.fitting.margin_newton import LocalMinimum
from goldstein.fitting.margin_rowspace import least_norm
from goldstein.models.margin_problem import MarginProblem

#: A row that left its kink is at least this far from it, in units of rho.
_CLEARANCE = 1e-8


def thinned(
    problem: MarginProblem, found: LocalMinimum, eps: float, delta: float
) -> LocalMinimum | None:
    """Return a minimiser moved off some kinks, or None when none can be left."""
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
