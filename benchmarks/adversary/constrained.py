"""Constrained problems made of trees, and the truth about their multipliers, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import NonlinearConstraint

from benchmarks.adversary.cells import gradients
from benchmarks.adversary.shortest import Row, distance, dot, shortest
from benchmarks.adversary.trees import Tree


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

    Nothing is said about which multipliers: only that those which are not 0 belong to constraints
    whose gradients do not cancel each other at x, and that some multipliers of these leave `eps`.
    """
    used = [k for k, multiplier in enumerate(multipliers) if multiplier]
    r = Fraction(radius)
    at_x = [g for k in used for g in sorted(gradients(problem.limits[k], x))]
    if at_x and _vanish(at_x, problem.normals(x)):
        return "the gradients of the constraints with a multiplier cancel each other at x"
    hull = sorted(gradients(problem.objective, x, r))
    cone = [g for k in used for g in sorted(gradients(problem.limits[k], x, r))]
    true = distance(hull, [*cone, *problem.normals(x)])
    if eps < true * (1.0 - 1e-9) - 1e-12:
        return f"no multipliers leave less than {true!r}"
    return ""


def _vanish(rows: list[Any], normals: list[Any]) -> bool:
    """Whether 0 is in the hull of the rows, or they cancel with normals."""
    vector = shortest(rows, normals)
    return dot(vector, vector) == 0
