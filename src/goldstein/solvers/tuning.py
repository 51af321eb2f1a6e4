"""Every constant of `auto`, each with its reason; interpreted and compiled runs have the same."""

from typing import NamedTuple


class Tuning(NamedTuple):
    """A tuple, because compiled code can take one for a constant."""

    # ------------------------------------------------------------ the schedule of the portfolio
    #: Calls of the shortest slice.
    shortest: int = 6
    #: Neither member gets a smaller share than this: the fast one may yet succeed, and the other
    #: has the guarantee.
    least: float = 0.15
    #: The member that lowered f faster per call in its last slices gets better odds by this factor.
    reward: float = 1.5
    #: As long as its steps are this long against delta, the quasi-Newton member is far from done.
    far: float = 10.0
    #: Its share as long as it is far from done.
    far_share: float = 0.97
    #: How often it corrects its model before the step is cut; once less while far from done.
    null_steps: int = 2

    # ------------------------------------------------------------ the bundle member
    #: A small displacement: the first gradient in a ball is taken this close to its centre, where
    #: symmetries are kept, against the radius; points are taken four times as far inside the ball,
    #: to leave room for the checker's displacement.
    displaced: float = 1e-3
    #: The working radius shrinks by this when its ball is certified.
    shrink: float = 0.3

    # ------------------------------------------------------------ between the members
    #: When the bound that costs no call is this close to eps, the other member closes in.
    close: float = 3.0
    #: Or when the steps are this short against delta.
    short: float = 0.1
    #: Calls per variable without progress before a run that float64 cannot finish is ended; moves
    #: of the centre by the quasi-Newton member between two falls of f that count in the theorem.
    patience: int = 100

    # ------------------------------------------------------------ the quasi-Newton member
    #: What is small: up to this dimension the quasi-Newton matrix is a small factor, the bundle has
    #: room for this many gradients in any dimension, and the model of a step for so many linear
    #: pieces at most (or d + 10).
    small: int = 60
    #: Up to this one it is dense.
    dense_limit: int = 500
    #: Pairs (step, change of gradient) of the limited metric, and pieces in its model at most.
    pairs: int = 30
    #: A piece above f at x belongs to a function that is not convex: its error counts so often.
    above: float = 100.0
    #: The metric is out of scale where it promises this many times what a corrected step gains.
    out_of_scale: float = 30.0
    #: And only where so many line searches in a row had to correct their model.
    shrink_after: int = 3
    #: The metric is too small where more than this part of the slope is left after a full step.
    steep: float = 0.5
    #: The metric shrinks and grows as a step says, but by no larger factor than this.
    rescale_most: float = 4.0
    #: A step must gain this part of what the slope promises.
    armijo: float = 1e-4
    #: Weak Wolfe: the slope must shrink to this part.
    curvature: float = 0.8
    #: Trials of one line search.
    trials: int = 40
    #: After so many that are not low enough something is wrong: look at the gradient there, so many
    #: times in a line search, or, without a scale, let the other member run. (As many
    #: steps aside from a kink are made.)
    no_descent: int = 10
    looks: int = 3
    #: In more variables than this, the model has to earn its place against the plain step, until a
    #: line search lowers f by this part only of what it fell in all.
    few_variables: int = 4
    near_end: float = 1e-2
    #: A guess of how often first trials are wrong; the share that a new one counts, and half of
    #: that of a new fall in the average of those of late.
    guess: float = 0.4
    learn: float = 0.15


TUNING = Tuning()
