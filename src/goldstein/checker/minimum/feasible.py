"""Bounds and constraints: f plus penalties, which is f itself at feasible points.

Let P = f + sum w_i dist(c_i, [l_i, u_i]), w >= 0, over constraints l <= c <= u and bounds of the
variables. P >= f, and P(z) = f(z) for feasible z. So P(z) >= P(x) - gap on some set shows
f(z) >= f(x) - gap for the feasible points of that set, whether x is feasible or not; and where the
pivot is feasible, feasible points that are as low are no farther than `within` from it.

A support of a penalty, of slope s between 0 and 1 at u_i (-1 and 0 at l_i), puts the Lagrangian
below P: w_i s is a multiplier, of the right sign by itself; a constraint that is not active at
the pivot, or violated there, is paid for by what the support misses. Sharpness of a penalty is
that of an active constraint. No rule is needed besides those for any other function.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.near import ExactProblem, linear_program
from goldstein.checker.minimum.supports import Support
from goldstein.checker.nodes import Add, Affine, Node, Piecewise
from goldstein.checker.rationals import nearest_float
from goldstein.checker.sides import Program, point_at


class Feasible:
    """A function with penalties; first those of the constraints, then those of the variables."""

    def __init__(self, program: Program, problem: ExactProblem, weights: Vector) -> None:
        self.problem, self.weights, box = problem, weights, problem.box
        self.lower = np.append(problem.system.lower, box.lower)
        self.upper = np.append(problem.system.upper, box.upper)
        #: The nodes that measure distances, by components.
        self.at: dict[int, int] = {}
        nodes, ends = list(program.nodes), [program.last]
        for i in np.flatnonzero(weights).tolist():
            part, shift = self._part(i), len(nodes) - 1
            moved = ((node, tuple(a + shift if a else 0 for a in node.of)) for node in part.nodes)
            nodes += [replace(node, of=of) for node, of in list(moved)[1:]]
            k = self.at[i] = len(nodes)
            nodes.append(_distance(k - 1 if part.last else 0, *self.limits(i)))
            nodes.append(Affine((k,), (1,), 1, weights[i : i + 1, None]))
            ends.append(k + 1)
        if self.at:
            nodes.append(Add(tuple(ends), (1,) * len(ends), 1))
        self.program = Program(nodes)

    def limits(self, i: int) -> tuple[float, float]:
        return float(self.lower[i]), float(self.upper[i])

    def _part(self, i: int) -> Program:
        m, d = len(self.problem.parts), self.problem.box.lower.size
        return self.problem.parts[i] if i < m else linear_program(np.eye(1, d, i - m)[0])

    @property
    def flat(self) -> bool:
        """Are all constraints affine, the feasible set convex?"""
        return all(part.affine[part.last] for part in self.problem.parts)

    def violation(self, point: Sequence[Any]) -> Fraction:
        """Return by how much a point violates bounds and constraints, at most."""
        ends = [point_at(part, point).between() for part in self.problem.parts]
        ends += [(q, q) for q in map(Fraction, point)]
        worst = Fraction(0)
        for i, (low, high) in enumerate(ends):
            least, most = self.limits(i)
            worst = max(worst, high - Fraction(most)) if most < np.inf else worst
            worst = max(worst, Fraction(least) - low) if least > -np.inf else worst
        return worst

    def multipliers(self, supports: Sequence[Support]) -> Vector:
        """Return the multipliers in supports, rounded: positive at upper limits."""
        slopes = {g.node: g.s for g in supports}
        found = np.zeros(self.weights.size)
        for i, k in self.at.items():
            share = slopes.get(k, Fraction(0))
            found[i] = nearest_float(share * Fraction(float(self.weights[i])))
        return found


def _distance(of: int, lower: float, upper: float) -> Node:
    """Return the distance of a number from an interval, as a node."""
    one, ends, pieces = Fraction(1), list[Fraction](), [(Fraction(0), Fraction(0))]
    if lower > -np.inf:
        ends.append(Fraction(lower))
        pieces.insert(0, (Fraction(lower), -one))
    if upper < np.inf:
        ends += [Fraction(upper)] if upper > lower else []
        pieces = [*pieces[: len(ends)], (-Fraction(upper), one)]
    return Piecewise((of,), (1,), 1, tuple(ends), tuple(pieces))
