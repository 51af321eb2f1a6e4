"""What a page is about: a result, and the function it belongs to as far as that is known.

What is proved and what is trusted, in one sentence each.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from goldstein.certificates import Verification
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.limits import as_box
from goldstein.checker.function import is_vector, put_together
from goldstein.errors import GoldsteinError
from goldstein.oracles import CountedOracle, Oracle, differences, function
from goldstein.oracles.problem import Problem, as_system
from goldstein.reporting.geometry import Geometry, geometry_of
from goldstein.result import History, Result, minimality


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
        return function.flat_point(self.result.x, "x")[1]

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
            stencil=differences.Stencil(box.lower, box.upper, 0),
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
            lambda point: fun.value(function.flat_point(point, "x")[1]),
            lambda point: put_together(layout, fun.gradient(function.flat_point(point, "x")[1])),
        )


_CLAIMS = {
    "goldstein": "some convex combination of gradients taken within delta = {delta:.3g} of x has "
    "length at most eps = {eps:.3g}: x is ({eps:.3g}, {delta:.3g})-Goldstein stationary",
    "near": "a point within delta = {delta:.3g} of x has a Clarke subgradient of length at most "
    "eps = {eps:.3g}: x is ({eps:.3g}, {delta:.3g})-near stationary",
    "kkt": "gradients of f and of the constraints taken within delta = {delta:.3g} of x cancel up "
    "to eps = {eps:.3g}, with multipliers of the right signs, and no constraint is violated by "
    "more than {feasibility:.3g} at x: x is an ({eps:.3g}, {delta:.3g})-Goldstein-KKT point",
    "plus": "some convex combination of gradients of f taken within delta = {delta:.3g} of x, plus "
    "a subgradient of the term there, has length at most eps = {eps:.3g}",
    "values": "values at random points say, with confidence {confidence:.3g}, that some convex "
    "combination of gradients within delta = {delta:.3g} of x has length at most eps = {eps:.3g}",
    "values-kkt": "values at random points say, with confidence {confidence:.3g}, that gradients "
    "of f and of the constraints within delta = {delta:.3g} of x cancel up to eps = {eps:.3g}, "
    "with multipliers of the right signs; no constraint is violated by more than "
    "{feasibility:.3g} at x",
    "minimum": "{said}: nowhere there is f lower than at x by more than {gap:.3g}",
    "refutation": "{said}",
    "near-kkt": "within delta = {delta:.3g} of x there is a point that satisfies all constraints "
    "exactly and is KKT up to eps = {eps:.3g}",
}

_TRUST = {
    "certified": "the structure of the function is known, signs are exact and bounds are rigorous; "
    "nothing is trusted but the definition of the function and the checker",
    "conditional": "all algebra is checked; the function is trusted to return its own gradient",
    "estimated": "statistics: it holds with the stated confidence, if what they assume is so",
    "refuted": "a rigorous lower bound exceeds the claim",
}


def claim_of(certificate: Any) -> str:
    """Return the claim in one sentence.

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> cert = gs.certify(lambda x: abs(x[0]), [0.01], np.sign, delta=0.1, rng=0)
    >>> print(claim_of(cert))
    some convex combination of gradients taken within delta = ... of x has length at most eps = ...:
    x is (...)-Goldstein stationary
    """
    words = _CLAIMS.get(getattr(certificate, "kind", ""))
    if words is None:
        return str(certificate.summary() if hasattr(certificate, "summary") else certificate)
    names = ("eps", "delta", "gap", "feasibility", "confidence")
    numbers = {name: getattr(certificate, name, None) for name in names}
    return words.format(said=minimality(certificate), **numbers)


def trust_of(certificate: Any) -> str:
    """Return what must be believed besides."""
    if certificate.label == "conditional" and getattr(certificate, "kind", "") == "kkt":
        return "all algebra is checked; function and constraints are trusted to return gradients"
    return _TRUST.get(str(certificate.label), "")


def shortfall_of(certificate: Any) -> str:
    """Return what was asked for and is not so, in the words of the certificate; or nothing."""
    said = str(certificate.summary())
    return said.partition("; proved:")[0] if said.startswith("NOT") else ""
