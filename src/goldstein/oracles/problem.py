"""A problem: the function, its bounds, its constraints and a convex term, asked together."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.box import Box, as_box
from goldstein.errors import GoldsteinError, InputTypeError, KinkError, OracleError
from goldstein.oracles.base import Oracle
from goldstein.oracles.constraints import System, as_system, given, system_identity
from goldstein.oracles.counted import CountedOracle
from goldstein.oracles.differences import Stencil

if TYPE_CHECKING:
    from goldstein.prox.term import Term


@dataclass(eq=False)
class Problem:
    """Minimise f + term over the box, subject to constraints; a point is asked about once.

    `f` counts: value and constraints at a point are one call, gradient and Jacobian too.

    Attributes
    ----------
    f : CountedOracle
    box : Box
    constraints : System
    term : Term, optional
    """

    f: CountedOracle
    box: Box
    constraints: System
    term: Term | None = None
    #: Whether there are bounds or constraints.
    limited: bool = True
    #: How differences are taken where there are values only.
    stencil: Stencil | None = None

    @classmethod
    def of(
        cls,
        f: CountedOracle | Oracle,
        x: Vector,
        bounds: Any = None,
        constraints: Any = (),
        term: Term | None = None,
        stencil: Stencil | None = None,
        **how: Any,
    ) -> Problem:
        """Read bounds and constraints; these are asked once, at the point of the box nearest x.

        `how` says how the answers of constraints are stored, and asked for: see `as_system`.
        """
        limited = bounds is not None or given(constraints)
        if limited and stencil is None and not (f.has_gradient and f.has_value):
            raise InputTypeError(
                f"bounds and constraints need a function with values and gradients; {f.name} has "
                "noisy samples of gradients only."
            )
        box = as_box(bounds, x.size)
        constraints = () if constraints is None else constraints
        system = as_system(constraints, box.clip(x), stencil=stencil, **how)
        counted = f if isinstance(f, CountedOracle) else CountedOracle(f)
        return cls(counted, box, system, term, limited=limited, stencil=stencil)

    def value(self, x: Vector) -> float:
        """Return f(x), and the term there."""
        return self.f.value(x) + (0.0 if self.term is None else self.term.value(x))

    def answers(self, y: Vector) -> tuple[Vector, Vector, Matrix]:
        """Return gradient, values of the constraints and Jacobian at a point of the box."""
        return self.f.gradient(y), self.constraints.values(y), self.constraints.rows(y)

    @property
    def failures(self) -> list[OracleError]:
        """The last exceptions of f and of the constraints."""
        known = [self.f.failure, *(group.failure for group in self.constraints.groups)]
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
                self.constraints.values(x), self.constraints.rows(x)
                self.f.value(x), self.f.gradient(x)
            except OracleError:
                return
        raise failure

    def feasible(self, x: Vector) -> bool:
        """Whether x satisfies everything, up to FEASIBLE."""
        system = self.constraints
        excess = np.abs(system.excess(system.values(x)))
        return self.box.contains(x) and bool((excess <= system.tolerances()).all())


def limits_identity(bounds: Any, constraints: Any, dim: int) -> dict[str, Any]:
    """Describe bounds and constraints, without asking them, for a checkpoint."""
    if bounds is None and not given(constraints):
        return {}
    box = as_box(bounds, dim)
    limits = np.concatenate([box.lower, box.upper]).tobytes()
    return {
        "bounds": hashlib.blake2b(limits, digest_size=8).hexdigest(),
        "constraints": system_identity(() if constraints is None else constraints, dim),
    }
