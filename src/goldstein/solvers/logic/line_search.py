"""A quasi-Newton step: to the minimum of the model, then a weak Wolfe search by bisection.

`n` is the quasi-Newton search: see `solvers.quasi_newton` for its attributes and its arithmetic.

What becomes of a line search of the quasi-Newton member.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from goldstein.solvers.base import VALUE_LIMIT
from goldstein.solvers.logic.portfolio import may_recentre, recentre
from goldstein.solvers.logic.questions import GRADIENT, NOTHING, TRIAL, VALUE
from goldstein.solvers.tuning import TUNING

if TYPE_CHECKING:
    from goldstein.solvers.auto import AutoState
    from goldstein.solvers.quasi_newton import QuasiNewton

#: What the answer is for: the gradient of the start; f at the minimum of the model, and its
#: gradient where the model was wrong; f at a later trial; the gradient at a good trial, and at the
#: best one in the end; f where it does not seem to be finite.
_START, _MODEL, _CORRECTION, _LATER, _GOOD, _BEST, _CONFIRM = range(7)

#: What the first trial of a line search is: the minimum of the model, or the quasi-Newton step
#: although there is a model; or there was no choice.
_NEITHER, _MODELLED, _PLAIN = range(3)


def begin(n: QuasiNewton) -> int:
    """Begin a line search; return the first question."""
    n.moved = False
    n.attempt = 0
    n.looks = 0
    n.best_trial = 0.0
    if n.known:
        if n.pieces == 0:
            n.found = n.g
            _add_piece(n, n.fx)
        return _propose(n)
    n.y = n.x
    n.point = n.x
    return _look(n, _START)


def told(n: QuasiNewton) -> int:
    """Take note of the answer; return the next question. `n.moved` says how a search has ended."""
    if n.phase == _MODEL:
        return _after_model(n)
    if n.phase == _LATER:
        n.trial_value = n.reply
        return _bisect(n)
    if n.phase == _CONFIRM:
        return _give_up(n)
    if n.noting:
        n.note()
    if n.phase == _START:
        n.g = n.found
        n.known = True
        _add_piece(n, n.fx)
        return _propose(n)
    slope = n.slope_found()
    slot = _add_piece(n, n.trial_value - n.trial * slope)
    if n.phase == _CORRECTION:
        _learn_from_failure(n)
        return _propose(n)
    n.best_slot = slot
    if n.phase == _BEST or slope >= TUNING.curvature * n.slope:
        return _conclude(n)
    if n.high == math.inf and not n.extrapolates:
        return _conclude(n)
    n.low = n.trial
    return _next_trial(n)


def kinked(n: QuasiNewton) -> int:
    """There is no gradient: step aside at random, a little farther each time, never make one up.

    Where there is none beside a trial either, that was too far.
    """
    if n.aside == TUNING.looks:
        return NOTHING if n.phase == _START else _turn_back(n)
    n.step_aside(10.0 ** (3.0 * n.aside - 12.0))
    n.aside += 1
    return GRADIENT


def _turn_back(n: QuasiNewton) -> int:
    """Go on with a shorter step than the trial."""
    n.trial_value = math.inf
    n.best_trial = 0.0
    if n.phase == _CORRECTION:
        n.high = math.inf
        n.trials = 0
    if n.phase == _CORRECTION or n.low >= n.trial:
        n.low = 0.0
    return _bisect(n)


def cut_short(n: QuasiNewton) -> None:
    """The calls have run out in the midst of it: what has been gained is kept."""
    if n.best_trial > 0.0:
        n.x = n.best
        n.fx = n.best_value
        n.known = False


def forget(n: QuasiNewton) -> None:
    """Start the model afresh: what it learned leads nowhere."""
    n.pieces = 0
    n.scaled = False
    n.clear_model()


def _propose(n: QuasiNewton) -> int:
    """Ask for f where the model has its minimum."""
    _find_direction(n)
    if n.slope == 0.0:
        n.stuck = True
        return NOTHING
    n.trial = 1.0
    if not n.scaled:
        # The first step has no scale: do not leave the neighbourhood of the start.
        n.trial = min(1.0, max(1.0, n.largest()) / n.reach)
    return _try(n, _MODEL)


def _find_direction(n: QuasiNewton) -> None:
    """With a single piece it is the quasi-Newton direction."""
    modelled = n.scaled and n.pieces > 1
    if n.attempt == 0 and n.looks == 0:
        n.first = _choose(n) if modelled else _NEITHER
        modelled = n.first == _MODELLED
    if modelled:
        n.slope = n.minimise_model()
    else:
        n.slope = n.follow_metric()
    if not (math.isfinite(n.slope) and n.slope < 0.0):
        forget(n)
        n.slope = n.follow_gradient()
    n.reach = n.direction_length()


def _choose(n: QuasiNewton) -> int:
    """Shall the first trial be the minimum of the model or the quasi-Newton step alone?

    Where f looks smooth the pieces count its curvature a second time. So both are tried, and the
    one whose first trials were right more often goes first. In few variables a model is complete so
    soon, and near the end it is so good, that there is nothing to find out.
    """
    open_question = n.dim > TUNING.few_variables and not n.limited
    early = n.recent_fall >= TUNING.near_end * n.whole_fall
    plain = open_question and early and n.plain_misses < n.model_misses
    return _PLAIN if plain else _MODELLED


def _keep_score(n: QuasiNewton) -> None:
    """After a line search: was its first trial right, neither too far nor too close?"""
    fall = n.fx - n.best_value
    n.whole_fall += fall
    n.recent_fall += 2.0 * TUNING.learn * (fall - n.recent_fall)
    missed = 0.0 if n.attempt == 0 and n.looks == 0 and n.trials == 1 else 1.0
    if n.first == _PLAIN:
        n.plain_misses += TUNING.learn * (missed - n.plain_misses)
    elif n.first == _MODELLED:
        n.model_misses += TUNING.learn * (missed - n.model_misses)


def _after_model(n: QuasiNewton) -> int:
    n.trial_value = n.reply
    # Where f has risen beyond all measure its gradient may overflow.
    useful = n.scaled and n.attempt < n.null_steps and n.trial_value < -VALUE_LIMIT
    if useful and not _low_enough(n):
        # A null step: the model was wrong there, so tell it what f looks like.
        n.attempt += 1
        return _look(n, _CORRECTION)
    n.low = 0.0
    n.high = math.inf
    n.trials = 0
    return _bisect(n)


def _bisect(n: QuasiNewton) -> int:
    """The trial has a value: is it too far, or not far enough?"""
    if n.trials == TUNING.trials:
        return _conclude(n)
    n.trials += 1
    if not _low_enough(n):
        n.high = n.trial
        # No trial was low enough, however close: is the other side of the kink worth a look?
        none = n.best_trial == 0.0 and n.trial_value < math.inf and n.looks < TUNING.looks
        if none and n.trials == TUNING.no_descent:
            if not n.scaled:
                return _conclude(n)
            n.looks += 1
            return _look(n, _CORRECTION)
        return _next_trial(n)
    # While f falls this fast from one trial to the next, no need to look.
    fall = TUNING.curvature * n.slope * (n.trial - n.best_trial)
    falling = n.best_trial > 0.0 and n.high == math.inf
    steep = falling and n.trial_value - n.best_value < fall
    n.best_trial = n.trial
    n.best_value = n.trial_value
    n.best_slot = -1
    n.best = n.y
    if not steep:
        return _look(n, _GOOD)
    n.low = n.trial
    return _next_trial(n)


def _next_trial(n: QuasiNewton) -> int:
    bracketed = n.high < math.inf
    n.trial = 0.5 * (n.low + n.high) if bracketed else 2.0 * n.low
    if bracketed and n.high - n.low <= 1e-15 * n.high:
        return _conclude(n)
    return _try(n, _LATER)


def _conclude(n: QuasiNewton) -> int:
    if n.best_trial == 0.0:
        close = 1e-8 * max(1.0, n.largest())
        if n.trial_value == math.inf and n.trial * n.reach <= close:
            n.phase = _CONFIRM
            return VALUE  # not finite arbitrarily close to x: say so
        return _give_up(n)
    if n.best_slot < 0:
        n.trial = n.best_trial
        n.trial_value = n.best_value
        n.y = n.best
        n.point = n.best
        return _look(n, _BEST)
    sy = n.measure_change(n.best_trial)
    n.length = n.best_trial * n.reach
    n.shift_pieces()
    n.settle_piece(n.best_slot, n.best_value)
    if _teaches(n, sy):
        _adapt(n, sy)
        n.learn(sy)
        n.scaled = True
    _keep_score(n)
    n.fx = n.best_value
    n.g = n.found
    n.x = n.best
    n.moved = True
    return NOTHING


def _teaches(n: QuasiNewton, sy: float) -> bool:
    """A change whose square underflows has no scale to learn."""
    return bool(1e-300 < sy < math.inf and n.change_counts())


def _learn_from_failure(n: QuasiNewton) -> None:
    """Let the metric know how the gradient changed on the way to a trial that was not taken.

    It learns the kinks across which f is steep twice as fast as from the steps alone.
    """
    if n.limited:
        return
    sy = n.measure_change(n.trial)
    if _teaches(n, sy):
        n.find_rises()
        n.learn(sy)


def _give_up(n: QuasiNewton) -> int:
    n.barren = not n.scaled
    forget(n)
    n.stuck = True
    return NOTHING


def _low_enough(n: QuasiNewton) -> bool:
    low: bool = n.trial_value < n.fx + TUNING.armijo * n.trial * n.slope
    return low


def _try(n: QuasiNewton, phase: int) -> int:
    n.place_trial(n.trial)
    n.phase = phase
    return TRIAL


def _look(n: QuasiNewton, phase: int) -> int:
    """Ask for the gradient at the trial."""
    n.aside = 0
    n.phase = phase
    return GRADIENT


def _add_piece(n: QuasiNewton, level: float) -> int:
    """Let the model have the gradient that was found; the oldest piece goes when it is full."""
    slot: int = n.pieces % n.capacity
    n.pieces += 1
    n.store_piece(slot, level)
    return slot


def _adapt(n: QuasiNewton, sy: float) -> None:
    """Scale the metric after a line search whose step and change of gradient have this product.

    BFGS corrects one direction per step. Where the metric is out of scale as a whole that takes as
    many steps as there are variables, so here it is multiplied by a number: where steps end too
    early, and where models have to be corrected one after the other.
    """
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


def prepare(s: AutoState) -> None:
    """Before a line search: are its gradients worth remembering?"""
    s.newton.noting = not s.refuted


def ended(s: AutoState) -> None:
    """After a line search: take its point, and try what is known around it as a certificate."""
    n = s.newton
    if not n.moved:
        s.slice_ends = 0
        return
    if not adopt(s):
        return
    if n.length > s.delta or not may_recentre(s):
        return
    # The gradients around x are there already: trying them as a certificate costs no call.
    recentre(s, s.delta)
    if s.bundle_size() == 0:
        return
    norm = s.shortest()
    s.bound = norm
    s.radius = s.delta
    if norm <= s.eps:
        s.proved = True
    elif norm <= s.close * s.eps or n.length <= s.short * s.delta:
        # Close in; should that fail, not again before things look better than now.
        s.close = min(s.close, 0.5 * norm / s.eps)
        s.short = min(s.short, 0.5 * n.length / s.delta)
        s.working = s.delta
        s.slice_ends = 0


def adopt(s: AutoState) -> bool:
    """Move to where this member is, if that is better; it never takes the other one up."""
    s.moved = s.newton.fx < s.fx
    if s.moved:
        s.x = s.newton.x
        s.fx = s.newton.fx
        s.steps += 1
    return bool(s.moved)
