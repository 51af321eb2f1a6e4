"""A head start for expressions: jumps to the minima of piecewise linear models.

Where kinks are curved or nested, as in Nesterov's Chebyshev-Rosenbrock functions, a search by
gradients creeps along a valley that is folded exponentially often, or ends in one of exponentially
many points that are stationary and no minima. The model of `piecewise_linear` sees the folds. Leaps
over boxes of shrinking size, with lines between knots in place of curved functions, find the
region; from where each of them lands, steps on tangents (the prox-linear method, which converges
quadratically to sharp minima) find the bottom. What comes out is a start for a search: nothing
here is trusted, and where a leap promises nothing it is the last.
"""

from __future__ import annotations

import math
import time

import numpy as np

from goldstein.calculus.evaluation import has_kinks
from goldstein.calculus.expression import Expression
from goldstein.checker.arrays import Vector
from goldstein.construction.initialisation.piecewise_linear import Model, is_straight, links
from goldstein.errors import OutOfCalls
from goldstein.oracles import CountedOracle, Oracle

#: Links of the chain at most: each is a row or two of a program, and a derivative to be computed.
MOST_LINKS = 80

#: Lines in place of a curved function.
KNOTS = 10

#: The first box reaches this far, in units of the largest entry of x (and of 1); each next one
#: half as far, so many times.
REACH, LEAPS = 2.0, 10

#: From where they end the leaps begin again, so many times at most, while f falls by this part of
#: the whole fall: from another point the lines between knots are others.
ROUNDS, AGAIN = 4, 1e-6

#: Steps on tangents after each leap.
STEPS = 12

#: A leap that promises less than this part of what was gained so far is the last.
WORTH = 1e-9

#: A step is taken where f falls by this part of what the model promises.
ENOUGH, GOOD = 0.1, 0.7

#: Steps end where a model promises less than this, in units of the box.
FLAT = 1e-9

#: Part of the calls of a run that the head start may take.
SHARE = 0.25


def applies(root: Oracle) -> bool:
    """Are there few kinks, all of them straight, and some nested, or several and some curved?

    Where all arguments are affine the kinks lie side by side, and a single curved one makes one
    valley: searches by gradients do well there.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> x = Variable(2)
    >>> applies(sum(abs(x))), applies(abs(x[1] - 2 * abs(x[0])))
    (False, True)
    """
    if not isinstance(root, Expression) or root.shape != ():
        return False
    nodes, affine, kinked = root.evaluation.nodes, list[bool](), list[bool]()
    for node in nodes:
        affine.append(node.affine and all(affine[a] for a in node.of))
        kinked.append(has_kinks(node) or any(kinked[a] for a in node.of))
    kinks = [node for node in nodes if has_kinks(node)]
    curved = any(not affine[node.of[0]] for node in kinks)
    several = sum(nodes[node.of[0]].size for node in kinks) > 1
    nested = any(kinked[node.of[0]] for node in kinks)
    return (
        all(is_straight(node) for node in kinks)
        and (nested or (curved and several))
        and sum(nodes[k].sizes[0] for k in links(root.evaluation)) <= MOST_LINKS
    )


def head_start(
    expression: Expression, oracle: CountedOracle, x: Vector, deadline: float = math.inf
) -> Vector:
    """Return a point where f is no larger than at x; `oracle` counts, and asks for the values."""
    search = _Leaps(expression, oracle, deadline)
    spare = (oracle.limit - oracle.calls) * (1.0 - SHARE)
    with oracle.reserved(0 if math.isinf(spare) else int(spare)):
        return search.run(x)


class _Leaps:
    def __init__(self, expression: Expression, oracle: CountedOracle, deadline: float) -> None:
        self.expression, self.oracle, self.deadline = expression, oracle, deadline
        self.best: tuple[float, Vector] = math.inf, np.zeros(0)

    def run(self, x: Vector) -> Vector:
        self.best = math.inf, x
        try:
            first = self.value(x)
            for _ in range(ROUNDS):
                before = self.best[0]
                self.leap(first)
                if before - self.best[0] <= AGAIN * (first - self.best[0]):
                    break
        except OutOfCalls:
            pass
        return self.best[1]

    def leap(self, first: float) -> None:
        """Leap over boxes of shrinking size; f was `first` at the start."""
        reach = REACH * max(1.0, float(np.abs(self.best[1]).max()))
        for _ in range(LEAPS):
            fx, x = self.best
            step, promised = self.minimise(x, reach, KNOTS)
            if promised <= WORTH * max(first - fx, reach):
                break
            y = x + step
            self.follow(y, self.value(y), reach / KNOTS)
            reach /= 2.0
        fx, x = self.best
        self.follow(x, fx, reach)

    def follow(self, x: Vector, fx: float, reach: float) -> None:
        """Go down on tangents."""
        for _ in range(STEPS):
            step, promised = self.minimise(x, reach)
            if promised <= FLAT * reach:
                return
            y = x + step
            fy = self.value(y)
            if fy <= fx - ENOUGH * promised:
                reach *= 2.0 if fx - fy > GOOD * promised else 1.0
                x, fx = y, fy
            else:
                reach = float(np.abs(step).max()) / 4.0

    def value(self, x: Vector) -> float:
        value = self.oracle.trial_value(x)
        if value < self.best[0]:
            self.best = value, x.copy()
        return value

    def minimise(self, x: Vector, reach: float, knots: int = 0) -> tuple[Vector, float]:
        """Return the step to the minimum of a model, and what it promises; 0 where there is none.

        All derivatives that a model is made of count as one gradient.
        """
        left = self.deadline - time.perf_counter()
        if left <= 0.0 or self.oracle.calls >= self.oracle.limit:
            raise OutOfCalls("a model")
        self.oracle.spend(0, 1)
        found = Model.at(self.expression.evaluation, x, knots).minimise(reach, left)
        return (np.zeros(x.size), 0.0) if found is None else found
