"""What a page is about: a result, and the function it belongs to as far as that is known."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from goldstein.certificates import Verification
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.box import as_box
from goldstein.checker.layout import is_vector, put_together
from goldstein.errors import GoldsteinError
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.differences import Stencil
from goldstein.oracles.function import flat_point
from goldstein.oracles.problem import Problem, as_system
from goldstein.reporting.geometry import Geometry, geometry_of
from goldstein.result import History, Result


@dataclass(frozen=True)
class Subject:
    """A run to be shown.

    Attributes
    ----------
    result : Result
    fun : Oracle or None
        Without it nothing can be asked again.
    limits : dict
        `bounds`, `constraints` and `plus`, where there are any.
    command : str
        What somebody else types to verify the certificate.
    remark : str
        What the reader should know about this page; for instance why the function is missing.
    running : bool
        The run has not ended.
    calls : int
        So far, while it is running.
    starts : object or None
        What `multistart` returned, where the result is the best of it.
    """

    result: Result
    title: str
    fun: Oracle | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    remark: str = ""
    running: bool = False
    calls: int = 0
    starts: Any = None

    @property
    def certificate(self) -> Any:
        return self.result.certificate

    @property
    def history(self) -> History:
        return self.result.history

    @property
    def asked(self) -> tuple[float, float] | None:
        """The eps and the delta that were asked for."""
        asked = self.result.asked
        return None if asked is None else (asked.eps, asked.delta)

    @cached_property
    def x(self) -> Vector:
        """The point as one vector."""
        if self.certificate is not None:
            return np.asarray(self.certificate.x)
        return flat_point(self.result.x, "x")[1]

    @cached_property
    def geometry(self) -> Geometry:
        return geometry_of(self.certificate)

    @cached_property
    def value(self) -> Callable[[Vector], float] | None:
        """f, where its values can be asked: inside the bounds only, and nan elsewhere."""
        fun, problem = self.fun, self.problem
        if fun is None or not fun.has_value:
            return None
        if problem is None:
            return fun.value
        return lambda y: fun.value(y) if problem.box.contains(y) else np.nan

    @cached_property
    def problem(self) -> Problem | None:
        """The constrained problem, where there is one and its function is known."""
        if self.fun is None or not ({"bounds", "constraints"} & set(self.limits)):
            return None
        box = as_box(self.limits.get("bounds"), self.x.size)
        constraints = self.limits.get("constraints")
        # Constraints without a gradient are asked for values here, and for no differences.
        system = as_system(
            () if constraints is None else constraints, box.clip(self.x),
            stencil=Stencil(box.lower, box.upper, 0),
        )  # fmt: skip
        return Problem(CountedOracle(self.fun), box, system)

    @cached_property
    def verification(self) -> Verification | str | None:
        """What the check finds now; a sentence where it cannot be made."""
        if self.certificate is None or self.fun is None:
            return None
        try:
            found: Verification = self.certificate.verify(
                *self._callable(self.fun), **self._like, **{n: self.limits[n] for n in self.taken}
            )
        except (GoldsteinError, ValueError, TypeError) as failure:
            return f"the certificate could not be checked here: {failure}"
        return found

    @cached_property
    def taken(self) -> list[str]:
        """Which of the limits the certificate is about."""
        parameters = inspect.signature(self.certificate.verify).parameters
        return [name for name in self.limits if name in parameters]

    @property
    def _like(self) -> dict[str, Any]:
        """The layout of the run, which the page shows, where it is not that of a vector."""
        layout = getattr(self.certificate, "layout", [0])
        return {} if is_vector(layout) else {"like": put_together(layout, self.x)}

    def _callable(self, fun: Oracle) -> tuple[Any, ...]:
        """The function as the certificate wants it: one of matrices or dicts gets those."""
        layout = getattr(self.certificate, "layout", [0])
        if is_vector(layout):
            return (fun,)
        return (
            lambda point: fun.value(flat_point(point, "x")[1]),
            lambda point: put_together(layout, fun.gradient(flat_point(point, "x")[1])),
        )
