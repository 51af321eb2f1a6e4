"""From a certificate and what the user gives to the checker, which reads and decides."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from goldstein.checker import sampled
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.blackbox.differences import COARSEST
from goldstein.checker.constrained.limits import DEGENERATE, Limits, as_box, as_groups
from goldstein.checker.function import Asked, Layout, is_vector, shown, taken_apart
from goldstein.checker.rounding import up
from goldstein.checker.verification import Label, Verification
from goldstein.errors import GoldsteinError, InputError, OutOfCalls, UnresolvedError
from goldstein.numerics.hull import MANY_VARIABLES
from goldstein.numerics.hull_problems import shortest_weights, sparse_weights
from goldstein.numerics.streams import seed_from
from goldstein.oracles import Oracle, as_oracle
from goldstein.result import PlottedCertificate
from goldstein.storage.codec import Stored, array, is_layout, record

#: Checks in a row that a claim has to pass before it is stated, and how many are tried.
CHECKS, TRIES = 3, 9

#: A kind of certificate.
C = TypeVar("C", bound=Any)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LaidOut(Stored, PlottedCertificate):
    """A claim about a function of points in some layout, part of the claim."""

    label: Label = "conditional"
    meta: dict[str, Any] = field(default_factory=dict)
    layout: Layout = field(default_factory=list)
    digest: str = ""
    #: The layout is that of the user's own point, and need not be asked for again.
    own_layout: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if not self.layout:
            object.__setattr__(self, "layout", [int(np.size(self.x))])
        if not is_layout(self.layout):
            raise InputError("the layout of the point in this certificate is not one of ours.")
        super().__post_init__()


@record
class Sampled(LaidOut):
    """A claim that rests on gradients of f at points near x."""

    x: Vector = array("d")
    delta: float
    eps: float
    points: Matrix = array("k d")
    gradients: Matrix = array("k d")
    weights: Vector = array("k")


class WithMultipliers:
    """A claim about f and constraints, one multiplier for each component of these."""

    multipliers: Vector
    _limits: ClassVar[tuple[str, ...]] = ("bounds", "constraints")

    @property
    def active(self) -> list[int]:
        """Components of the constraints with a multiplier."""
        return [int(i) for i in np.flatnonzero(self.multipliers)]


class Qualified(WithMultipliers):
    """One that also says how far the gradients of the constraints are from cancelling."""

    qualification: float

    @property
    def degenerate(self) -> bool:
        """Whether the constraints alone nearly cancel: the claim then says nothing about f."""
        return self.qualification <= DEGENERATE


def with_layout(certificate: Any, layout: Layout | None) -> Any:
    """Return a certificate about a function of points in this layout, the user's own."""
    if layout is None or not hasattr(certificate, "own_layout"):
        return certificate
    if hasattr(certificate, "layout"):
        return replace(certificate, layout=layout, own_layout=True, digest="")
    certificate = copy(certificate)
    object.__setattr__(certificate, "own_layout", layout)
    return certificate


def digest_after(certificate: Any) -> str:
    """Return the digest of a certificate made of this one: an altered one stays altered."""
    return "" if certificate.digest == certificate.content_digest() else certificate.digest


def thinned(certificate: C) -> C:
    """Return a certificate with at most d + 1 gradients, with the same combination (Caratheodory).

    It is kept up to rounding, or shortened.
    """
    claim: Any = certificate
    weights = sparse_weights(claim.weights, claim.gradients)
    used = np.flatnonzero(weights > 0)
    points, gradients = claim.points[used], claim.gradients[used]
    return replace(
        claim, points=points, gradients=gradients, weights=weights[used], digest=digest_after(claim)
    )


def in_layout(certificate: Any) -> str:
    """Say in a summary how the function is called, where that is not with a vector."""
    plain = is_vector(certificate.layout)
    return "" if plain else f", f is called with {shown(certificate.layout)}"


def layout_of(certificate: Any, like: Any) -> Layout:
    """Return the layout in which the verifier's function is called.

    That of `like`, or a vector; what a certificate says of it is a claim. Only where it was made
    here, of the user's own point, that layout need not be given again.
    """
    if like is not None:
        return taken_apart(like, "like")[0]
    return certificate.layout if certificate.own_layout else [certificate.x.size]


def derived(fun: Any, jac: Any, args: Any, x: Vector, layout: Layout) -> tuple[Any, ...]:
    """Return what was given, or the expression that code without a gradient computes."""
    if jac is None and callable(fun) and not isinstance(fun, Oracle):
        return (as_oracle(fun, None, args, None if is_vector(layout) else layout, x),)
    return fun, jac, args, layout


def verified(
    certificate: Any,
    fun: Any,
    jac: Any = None,
    args: Any = (),
    *,
    like: Any = None,
    seed: int | None = None,
    check_values: bool = True,
    plus: Any = None,
    **limits: Any,
) -> Verification:
    """Decide a claim that rests on gradients near x; `limits` are bounds and constraints."""
    layout = layout_of(certificate, like)
    x = np.nan_to_num(certificate.x)
    f = sampled.asked(*derived(fun, jac, args, x, layout))
    try:
        box = as_box(limits.get("bounds"), x.size)
        system = None
        if limits:
            # Constraints are asked for their sizes, at a point inside, whatever x is.
            system = Limits(as_groups(limits.get("constraints", ()), x.size, layout), box.clip(x))
        problem = sampled.Problem(f, box, shortest_weights, layout, plus, system)
    except GoldsteinError as failure:
        return unfitting(failure)
    return sampled.check(certificate, problem, seed_from(seed), check_values)


def unfitting(failure: GoldsteinError) -> Verification:
    """Return the verdict where what was given cannot be what a claim is about."""
    found = Verification(eps=math.inf, delta=math.inf, label="conditional")
    found.add("problem", False, f"function, bounds or constraints do not fit: {failure}")
    return found


def as_proved(certificate: C, fun: Any, seed: int | None = None, enough: float = 0.0) -> C | None:
    """Return a certificate about a function that knows its kinks with the eps that is proved.

    Exact gradients overrule those in float64. Where rounding alone makes the bound larger than
    stated, the larger one is stated, with room for enclosures of another machine; None if anything
    else fails. Gradients that are all rounding agree up to a part of a bound of `enough`.
    """
    claim: Any = certificate
    found = claim.verify(fun, seed=seed)
    if found.ok:
        return certificate
    failed = {c.name for c in found.checks if not c.ok}
    if not failed <= {"bound", "gradients"} or not math.isfinite(found.eps):
        return None
    eps = up(found.eps + 3.0 * max(found.eps - claim.eps, 0.0), 2.0**-40)
    if "gradients" in failed:
        eps = min(enough, 2.0**10 * eps)
    wider = replace(claim, eps=eps, digest="")
    return wider if wider.verify(fun, seed=seed).ok else None


class Rehearsed(Asked):
    """A function that counts, as several checks in a row ask it.

    What an earlier check was told, or who searched and states the claim, is not asked for again,
    once in each: whoever asks twice looks for noise. That is done at the heaviest point.
    """

    def __init__(self, oracle: Any) -> None:
        super().__init__(oracle)
        self._before: dict[tuple[str, bytes], Any] = {}
        self._now: dict[tuple[str, bytes], Any] = {}

    def begin(self, claim: Any) -> None:
        """Another check begins."""
        self._before, self._now = {**self._before, **self._now}, {}
        here = None if self.function.answers is None else self.function.answers.known_value(claim.x)
        if here is not None:
            self._before["value", claim.x.tobytes()] = here
        for j in np.argsort(claim.weights)[:-1] if claim.x.size < MANY_VARIABLES else ():
            self._before["gradient", claim.points[j].tobytes()] = claim.gradients[j]

    def _answer(self, question: Callable[[Vector], Any], x: Vector) -> Any:
        key = question.__name__, x.tobytes()
        found = self._before.pop(key, None)
        if found is None:
            found = super()._answer(question, x)
        if x.size < MANY_VARIABLES:
            self._now[key] = found
        return found


def checks(oracle: Any, box: Any, system: Any) -> Callable[[Any, int, bool], Verification]:
    """Return a function of claim, seed and `check_values` that decides as `verify` will."""
    plain = oracle.plain
    f = sampled.asked(plain) if hasattr(plain, "program") else Rehearsed(oracle)

    def check(claim: Any, seed: int, check_values: bool) -> Verification:
        if isinstance(f, Rehearsed):
            f.begin(claim)
        term = claim.term.to_record() if hasattr(claim, "term") else None
        problem = sampled.Problem(f, box, shortest_weights, claim.layout, term, system)
        return sampled.check(claim, problem, seed, check_values)

    return check


def confirmed(
    certificate: C, oracle: Any, box: Any, system: Any, seed: int, check_values: bool
) -> C | None:
    """Return a claim about a black box that several checks in a row accept.

    Where perturbed points alone show a larger eps, that is stated, with room; None if anything else
    fails, or the next check always finds more.

    Raises
    ------
    OutOfCalls, UnresolvedError
    """
    claim: Any = certificate
    passed, check = 0, checks(oracle, box, system)
    for k in range(TRIES):
        found = check(claim, seed + 2 + k, check_values)
        passed = passed + 1 if found.ok else 0
        if passed == CHECKS:
            return claim
        if found.ok:
            continue
        if oracle.calls >= oracle.limit:
            raise OutOfCalls
        failed = {check.name for check in found.checks if not check.ok}
        if "resolution" in failed:
            raise UnresolvedError(COARSEST * claim.delta)
        if failed != {"kinks"} or not math.isfinite(found.eps):
            return None
        claim = replace(claim, eps=up(2.0 * found.eps - claim.eps), digest="")
    return None
