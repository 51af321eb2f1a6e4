"""Constrained problems made of trees, and the truth about their multipliers, exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import below
from benchmarks.adversary.cells import gradients
from benchmarks.adversary.shortest import Row, distance, dot, shortest
from benchmarks.adversary.trees import Tree
from scipy.optimize import NonlinearConstraint


@dataclass
class Problem:
    """Minimise a tree where other trees are at most 0, perhaps between bounds."""

    objective: Tree
    limits: list[Tree]
    bounds: list[tuple[float, float]] | None = None
    tie: str = "left"
    _constraints: list[Any] = field(default_factory=list)

    @property
    def box(self) -> Any:
        """f and its gradient, as a program has them."""
        return self.objective.program(self.tie)

    def as_black_box(self) -> dict[str, Any]:
        """Return `bounds` and `constraints` for minimize, certify and verify."""
        if not self._constraints:
            for tree in self.limits:
                value, slope = tree.program(self.tie)
                made = NonlinearConstraint(
                    value, -np.inf, 0.0, jac=lambda x, slope=slope: slope(x)[None]
                )
                self._constraints.append(made)
        return {"constraints": self._constraints, **self._bounds()}

    def as_expressions(self) -> dict[str, Any]:
        return {"constraints": [t.expression() <= 0.0 for t in self.limits], **self._bounds()}

    def _bounds(self) -> dict[str, Any]:
        return {} if self.bounds is None else {"bounds": self.bounds}

    def __str__(self) -> str:
        limits = "; ".join(f"{tree} <= 0" for tree in self.limits)
        return f"minimise {self.objective} subject to {limits}, bounds {self.bounds}"

    def normals(self, x: Row) -> list[list[Fraction]]:
        """Return the normals of the bounds at a point."""
        found = []
        for k, (low, high) in enumerate(self.bounds or []):
            if Fraction(x[k]) == low:
                found.append([Fraction(-int(i == k)) for i in range(len(x))])
            if Fraction(x[k]) == high:
                found.append([Fraction(int(i == k)) for i in range(len(x))])
        return found


def unsupported(
    problem: Problem, x: Row, radius: float, eps: float, multipliers: Sequence[float]
) -> str:
    """Say why gradients at x, or within a radius, do not support a KKT claim; "" if they do.

    Only constraints with a multiplier count, and of these only some whose gradients do not cancel
    each other at x: where they do, a multiplier proves anything. What multipliers they have is not
    looked at.
    """
    r = Fraction(radius)
    hull, normals = sorted(gradients(problem.objective, x, r)), problem.normals(x)
    used = [k for k, multiplier in enumerate(multipliers) if multiplier]
    true, cancel = math.inf, False
    for count in range(len(used) + 1):
        for some in itertools.combinations(used, count):
            at_x = [g for k in some for g in sorted(gradients(problem.limits[k], x))]
            if at_x and _vanish(at_x, normals):
                cancel = True  # these say nothing about f
                continue
            cone = [g for k in some for g in sorted(gradients(problem.limits[k], x, r))]
            true = min(true, distance(hull, [*cone, *normals]))
    if not below(eps, true):
        return ""
    why = "; gradients of constraints cancel each other at x" if cancel else ""
    return f"no multipliers that mean something leave less than {true!r}{why}"


def _vanish(rows: list[Any], normals: list[Any]) -> bool:
    """Whether 0 is in the hull of the rows, or they cancel with normals."""
    vector = shortest(rows, normals)
    return dot(vector, vector) == 0
