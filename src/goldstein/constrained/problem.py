"""A constrained problem: the objective, the box and the system, asked together."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.constrained.box import Box, as_box
from goldstein.constrained.system import System, as_system, system_identity
from goldstein.errors import GoldsteinError, InputTypeError, KinkError, OracleError
from goldstein.oracles import CountedOracle, Oracle
from goldstein.storage.journal import Journal


@dataclass(eq=False)
class Problem:
    """Minimise `objective` subject to `box` and `system`; a point is asked about once.

    `objective` counts: value and constraints at a point are one call, gradient and Jacobian too.
    """

    objective: CountedOracle
    box: Box
    system: System

    @classmethod
    def of(
        cls,
        oracle: Oracle,
        x: Vector,
        bounds: Any,
        constraints: Any,
        max_calls: int | None = None,
        journal: Journal | None = None,
    ) -> Problem:
        """Read the arguments; the constraints are asked once, at the point of the box nearest x."""
        if not (oracle.has_gradient and oracle.has_value):
            raise InputTypeError(
                f"bounds and constraints need a function with values and gradients; {oracle.name} "
                "has noisy samples of gradients only."
            )
        box = as_box(bounds, x.size)
        system = as_system(() if constraints is None else constraints, box.clip(x), journal)
        return cls(CountedOracle(oracle, max_calls), box, system)

    @staticmethod
    def identity(bounds: Any, constraints: Any, dim: int) -> dict[str, Any]:
        """Describe bounds and constraints, without asking them, for a checkpoint."""
        box = as_box(bounds, dim)
        limits = np.concatenate([box.lower, box.upper]).tobytes()
        return {
            "bounds": hashlib.blake2b(limits, digest_size=8).hexdigest(),
            "constraints": system_identity(() if constraints is None else constraints, dim),
        }

    def answers(self, y: Vector) -> tuple[Vector, Vector, Matrix]:
        """Return gradient, values of the constraints and Jacobian at a point of the box."""
        return self.objective.gradient(y), self.system.values(y), self.system.rows(y)

    @property
    def failures(self) -> list[OracleError]:
        """The last exceptions of f and of the constraints."""
        known = [self.objective.failure, *(group.failure for group in self.system.groups)]
        return [failure for failure in known if failure is not None]

    def excuse(self, failure: GoldsteinError) -> None:
        """Raise an exception of f or of a constraint that does not come again at its point.

        Functions need not be defined wherever a search looks; one that fails once is broken.
        """
        if not isinstance(failure, OracleError) or failure.__cause__ is None:
            return
        x = failure.point
        with contextlib.suppress(KinkError):
            try:
                self.system.values(x), self.system.rows(x)
                self.objective.value(x), self.objective.gradient(x)
            except OracleError:
                return
        raise failure

    def feasible(self, x: Vector) -> bool:
        """Whether x satisfies everything, up to FEASIBLE."""
        system = self.system
        excess = np.abs(system.excess(system.values(x)))
        return self.box.contains(x) and bool((excess <= system.tolerances()).all())
