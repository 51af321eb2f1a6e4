"""How large the metric of the fast half is, in all directions at once.

BFGS corrects one direction per step. Where the metric is out of scale as a whole that takes as many
steps as there are variables, so here it is multiplied by a number: where steps end too early, where
models have to be corrected one after the other, and where f looks like a norm.

Around a sharp minimum with very many kinks (a recovery from more data than unknowns, say) f - f* is
close to a norm, whose second derivatives grow like 1 / (f - f*) while f falls. But its square is
smooth, and BFGS for (f - f*)^2 / 2 is BFGS for f with two changes: before an update H is divided
by the ratio r > 1 of the gaps f - f* at both ends of the step, and the change of the gradient is
g' - r g. The gap need not be known: falls that shrink geometrically tell what is left (Aitken),
their logarithms being smoothed twice (Brown). As long as this goes well the search is "homing": its
steps are those of the metric alone, without a model.

`n` is the quasi-Newton search: see `solvers.quasi_newton`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from goldstein.solvers.tuning import TUNING

if TYPE_CHECKING:
    from goldstein.solvers.quasi_newton import QuasiNewton


def adapt(n: QuasiNewton, sy: float) -> float:
    """Scale the metric after a line search.

    Returns s'y for what it is to learn from the step, 0 for nothing.
    """
    _note_fall(n)
    if n.homing:
        return _home(n)
    _shrink(n, sy)
    _let_grow(n)
    _watch(n)
    return sy


def _shrink(n: QuasiNewton, sy: float) -> None:
    """Shrink the metric where models had to be corrected, and gain far less than it promised."""
    n.corrected = n.corrected + 1 if n.attempt > 0 else 0
    if n.limited or n.corrected < TUNING.shrink_after:
        return
    if n.square_of_gradient() > TUNING.out_of_scale * (n.fx - n.best_value):
        ratio = sy / n.square_of_change()
        if ratio < 1.0:
            n.scale_metric(max(TUNING.shrink_least, ratio))


def _has_scale(n: QuasiNewton) -> bool:
    """Not so before the first update, with the latest pairs only, of plain BFGS and in noise."""
    return bool(n.scaled and n.has_model and n.steady and not n.limited)


def _let_grow(n: QuasiNewton) -> None:
    """Let the metric grow where f still falls steeply at the end of a full step.

    Then the step was too short, though not by so much that the line search would go on.
    """
    if not _has_scale(n) or n.attempt > 0 or n.best_trial < 1.0:
        return
    left = n.slope_found() / n.slope
    if left > TUNING.steep:
        n.scale_metric(min(TUNING.grow_most, 1.0 / max(1.0 - left, 0.1)))


def _note_fall(n: QuasiNewton) -> None:
    """Smooth the logarithm of what line searches gain."""
    fall = n.fx - n.best_value
    if not fall > 0.0:
        return
    new = math.log(fall)
    if n.whole_fall == 0.0:
        n.smooth_fall = new
        n.smoother_fall = new
    n.smooth_fall += TUNING.smooth * (new - n.smooth_fall)
    n.smoother_fall += TUNING.smooth * (n.smooth_fall - n.smoother_fall)


def _gap(n: QuasiNewton) -> float:
    """Return how far f will still fall if it goes on like this."""
    trend = TUNING.smooth / (1.0 - TUNING.smooth) * (n.smooth_fall - n.smoother_fall)
    if trend >= 0.0:
        return math.inf
    level = 2.0 * n.smooth_fall - n.smoother_fall
    return math.exp(min(level + trend, 700.0)) / -math.expm1(trend)


def _watch(n: QuasiNewton) -> None:
    """Begin to follow the gap where first trials are too far, one after the other."""
    n.far_off = n.far_off + 1 if n.too_far else max(0, n.far_off - 1)
    able = _has_scale(n) and n.dim > TUNING.few_variables
    if able and not n.came_back and n.far_off >= TUNING.home_after:
        n.homing = True
        n.good_steps = 0
        n.gap_share = 2.0 * TUNING.least_share
        n.keep_metric()


def _home(n: QuasiNewton) -> float:
    """Let the metric follow the gap; once that does not go well, never again."""
    fall, gap = n.fx - n.best_value, _gap(n)
    n.gap_share += TUNING.learn * (fall / (fall + gap) - n.gap_share)
    n.good_steps += 1
    if n.trials > 1 and not n.too_far:
        if n.good_steps <= TUNING.home_trust:
            return _come_back(n)
        n.good_steps = 0
    if n.gap_share < TUNING.least_share:
        return _come_back(n)
    ratio = 1.0 + fall / gap if gap > 0.0 else 1.0
    _let_grow(n)
    power = 1.0 if n.best_trial > 1.0 else TUNING.home_power
    n.scale_metric(n.best_trial**power / ratio)
    return n.measure_change_since(ratio)


def _come_back(n: QuasiNewton) -> float:
    """Take the metric up again as it was."""
    n.homing = False
    n.came_back = True
    n.restore_metric()
    return 0.0
