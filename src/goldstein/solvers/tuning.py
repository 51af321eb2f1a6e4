"""Every constant of `auto`, each with its reason; interpreted and compiled runs have the same."""

from __future__ import annotations

from typing import NamedTuple


class Tuning(NamedTuple):
    """A tuple, because compiled code can take one for a constant."""

    # ------------------------------------------------------------ the turns of the two halves
    #: Share of the calls that the fast half gets at the start.
    share: float = 0.6
    #: Calls of the shortest turn.
    shortest: int = 6
    #: Neither half gets a smaller share than this: the fast one may yet find its way, and the other
    #: has the guarantee.
    least: float = 0.15
    #: The half that lowered f faster per call in its last turns gets better odds by this factor.
    reward: float = 1.5
    #: As long as its steps are this long against delta, the fast half is far from done.
    far: float = 10.0
    #: Its share as long as it is far from done.
    far_share: float = 0.97
    #: How often it corrects its model for one step as long as it is far from done.
    far_null: int = 1
    #: How often it corrects its model, else, before the step is cut.
    null_steps: int = 2
    #: After this many calls per variable a limited memory has had its chance: plain BFGS goes on.
    plain_after: int = 4
    #: Plain BFGS is done when its steps are this short against delta.
    done: float = 1e-6

    # ------------------------------------------------------------ the half with the guarantee
    #: Points are taken this far inside the ball, to leave room for the checker's displacement.
    inside: float = 1.0 - 4e-3
    #: A small displacement: the first gradient in a ball is taken this close to its centre, where
    #: symmetries are kept, against the radius; midpoints of a bisection are moved off any kink,
    #: against the interval.
    displaced: float = 1e-3
    #: The working radius shrinks by this when its ball is certified.
    shrink: float = 0.3
    #: The bundle has room for this many gradients in any dimension.
    gather: int = 60
    #: A gradient with <g, m> at most this share of |m|^2 is what a bisection looks for.
    found: float = 0.5
    #: Halvings before a bisection gives up.
    halvings: int = 8

    # ------------------------------------------------------------ between the halves
    #: When the bound that costs no call is this close to eps, the other half closes in.
    close: float = 3.0
    #: Or when the steps are this short against delta.
    short: float = 0.1
    #: Moves of the centre by the fast half between two falls of f that count in the theorem.
    small_moves: int = 50
    #: Calls per variable without progress before a run that float64 cannot finish is ended.
    patience: int = 100

    # ------------------------------------------------------------ the fast half
    #: Up to this dimension the quasi-Newton matrix is a small factor.
    small_limit: int = 60
    #: Up to this one it is dense.
    dense_limit: int = 500
    #: Linear pieces in the model of a step: d + 10, and at most this many.
    planes: int = 80
    #: Pairs (step, change of gradient) of the limited metric, and pieces in its model at most.
    pairs: int = 30
    #: A piece above f at x belongs to a function that is not convex: its error counts so often.
    above: float = 100.0
    #: The metric is out of scale where it promises this many times what a corrected step gains.
    out_of_scale: float = 30.0
    #: And only where so many line searches in a row had to correct their model.
    shrink_after: int = 3
    #: Then it shrinks as the step says, but to no smaller part than this.
    shrink_least: float = 0.25
    #: The metric is too small where more than this part of the slope is left after a full step;
    #: then it grows as the step says, but by no larger factor than this.
    steep: float = 0.5
    grow_most: float = 4.0
    #: The share of a new fall in the smoothed ones, and in the average of late.
    smooth: float = 0.3
    #: So many first trials more that were too far than others, of late: f may look like a norm.
    home_after: int = 4
    #: It does not after a line search that had to go on, except for one in so many.
    home_trust: int = 10
    #: Nor where a step gains less than this share of what is left, on average.
    least_share: float = 0.12
    #: A step that had to be cut tells the scale of the metric to this power.
    home_power: float = 0.7
    #: A step must gain this part of what the slope promises.
    armijo: float = 1e-4
    #: Weak Wolfe: the slope must shrink to this part.
    curvature: float = 0.8
    #: The same without a model, where nothing else shortens the steps.
    curvature_plain: float = 0.5
    #: Trials of one line search.
    trials: int = 40
    #: After so many that are not low enough something is wrong: look at the gradient there, so many
    #: times in a line search, or, without a scale, let the other half have its turn.
    no_descent: int = 10
    looks: int = 3
    #: In more variables than this, the model has to earn its place against the plain step, until a
    #: line search lowers f by this part only of what it fell in all.
    few_variables: int = 4
    near_end: float = 1e-2
    #: A guess of how often first trials are wrong; the share that a new one counts, here
    #: and in the average of what steps gain.
    guess: float = 0.4
    learn: float = 0.15
    #: Where f rose by this many times what it should have fallen, its gradient teaches nothing.
    too_high: float = 1e30
    #: Steps aside from a kink, each ten times as long as the one before.
    aside: int = 8


TUNING = Tuning()
