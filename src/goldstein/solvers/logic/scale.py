"""How large the metric of the quasi-Newton member is, in all directions at once.

BFGS corrects one direction per step. Where the metric is out of scale as a whole that takes as many
steps as there are variables, so here it is multiplied by a number: where steps end too early, and
where models have to be corrected one after the other.

`n` is the quasi-Newton search: see `solvers.quasi_newton`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldstein.solvers.tuning import TUNING

if TYPE_CHECKING:
    from goldstein.solvers.quasi_newton import QuasiNewton


def adapt(n: QuasiNewton, sy: float) -> None:
    """Scale the metric after a line search whose step and change of gradient have this product."""
    _shrink(n, sy)
    _let_grow(n)


def _shrink(n: QuasiNewton, sy: float) -> None:
    """Shrink the metric where models had to be corrected, and gain far less than it promised."""
    n.corrected = n.corrected + 1 if n.attempt > 0 else 0
    if n.limited or n.corrected < TUNING.shrink_after:
        return
    if n.square_of_gradient() > TUNING.out_of_scale * (n.fx - n.best_value):
        ratio = sy / n.square_of_change()
        if ratio < 1.0:
            n.scale_metric(max(1.0 / TUNING.rescale_most, ratio))


def _let_grow(n: QuasiNewton) -> None:
    """Let the metric grow where f still falls steeply at the end of a full step.

    Then the step was too short, though not by so much that the line search would go on.
    """
    # There is no scale before the first update, with the latest pairs only, and in noise.
    known = n.scaled and n.steady and not n.limited
    if not known or n.attempt > 0 or n.best_trial < 1.0:
        return
    left = n.slope_found() / n.slope
    if left > TUNING.steep:
        n.scale_metric(min(TUNING.rescale_most, 1.0 / max(1.0 - left, 0.1)))
