"""`certify` and `stationarity_curve`: how stationary is a point, wherever it came from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from goldstein.api.constrained import certify_constrained
from goldstein.api.from_nothing import certificate_from, gathered
from goldstein.api.inputs import (
    LONGEST,
    RNG,
    as_point,
    as_vector,
    call_budget,
    check_constrained,
    check_target,
    deadline_after,
    refuse_on_values,
    refuse_workers,
    sized,
    smallest_delta,
    tolerance,
)
from goldstein.api.judge import describe
from goldstein.api.options import in_words
from goldstein.api.stationarity import Stationarity, stationarity_named
from goldstein.certificates import (
    GoldsteinCertificate,
    KKTCertificate,
    NearCertificate,
    NearKKTCertificate,
    ValuesCertificate,
)
from goldstein.certificates.verifying import as_proved, with_layout
from goldstein.checker.arrays import Vector
from goldstein.checker.rounding import distance_upper
from goldstein.constrained.box import as_box
from goldstein.constrained.problem import Problem
from goldstein.constrained.system import given, lacks_gradient
from goldstein.display import Plotted
from goldstein.errors import NotCertifiableError
from goldstein.numerics.streams import seed_from
from goldstein.oracles import CountedOracle, Oracle, as_oracle
from goldstein.oracles.function import DIFFERENCES, as_values
from goldstein.oracles.workers import Workers, mapped
from goldstein.solvers.enrich import Enrichment


@overload
def certify(
    fun: Oracle | Callable[..., Any],
    x: Any,
    jac: Callable[..., Any] | bool | None = None,
    *,
    args: Sequence[Any] = (),
    delta: float,
    eps: float = 0.0,
    stationarity: Literal["goldstein"] = "goldstein",
    rng: RNG = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: None = None,
    constraints: tuple[()] = (),
    workers: Workers = None,
) -> GoldsteinCertificate: ...


@overload
def certify(
    fun: Oracle | Callable[..., Any],
    x: Any,
    jac: Callable[..., Any] | bool | None = None,
    *,
    args: Sequence[Any] = (),
    delta: float,
    eps: float = 0.0,
    stationarity: Literal["goldstein"] = "goldstein",
    rng: RNG = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: Any = None,
    constraints: Any = (),
    workers: Workers = None,
) -> GoldsteinCertificate | KKTCertificate: ...


@overload
def certify(
    fun: Oracle | Callable[..., Any],
    x: Any,
    jac: str,
    *,
    args: Sequence[Any] = (),
    delta: float,
    eps: float = 0.0,
    stationarity: Literal["goldstein"] = "goldstein",
    rng: RNG = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: Any = None,
    constraints: tuple[()] = (),
    workers: Workers = None,
) -> ValuesCertificate: ...


@overload
def certify(
    fun: Oracle | Callable[..., Any],
    x: Any,
    jac: Callable[..., Any] | bool | None = None,
    *,
    args: Sequence[Any] = (),
    delta: float,
    eps: float = 0.0,
    stationarity: Literal["near"],
    rng: RNG = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: None = None,
    constraints: tuple[()] = (),
    workers: Workers = None,
) -> NearCertificate: ...


@overload
def certify(
    fun: Oracle | Callable[..., Any],
    x: Any,
    jac: Callable[..., Any] | bool | None = None,
    *,
    args: Sequence[Any] = (),
    delta: float,
    eps: float = 0.0,
    stationarity: Literal["near"],
    rng: RNG = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: Any = None,
    constraints: Any = (),
    workers: Workers = None,
) -> NearCertificate | NearKKTCertificate: ...


@in_words
def certify(
    fun: Oracle | Callable[..., Any],
    x: Any,
    jac: Callable[..., Any] | bool | str | None = None,
    *,
    args: Sequence[Any] = (),
    delta: float,
    eps: float = 0.0,
    stationarity: Literal["goldstein", "near"] = "goldstein",
    rng: RNG = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: Any = None,
    constraints: Any = (),
    workers: Workers = None,
) -> (
    GoldsteinCertificate | NearCertificate | KKTCertificate | NearKKTCertificate | ValuesCertificate
):
    """Say how stationary a point is, wherever it came from. The point is never moved.

    Parameters
    ----------
    fun, jac, args, rng, stationarity
        As in `minimize`.
    x : array_like
        The point, e.g. the answer of another optimizer.
    delta : float
        Radius of the ball.
    eps : float
        Stop as soon as this is reached; 0 asks for the smallest bound the budget allows.
    max_calls : int, optional
        Limit on values plus gradients; default 8 d + 400.
    max_time : float, optional
        Limit in seconds; what has been found by then is stated.
    bounds, constraints
        As in `minimize`: the certificate then says how close to KKT the point is. x must be inside
        the bounds; whatever constraint it violates is stated.
    workers : map-like callable or int
        As in `minimize`.

    Returns
    -------
    GoldsteinCertificate, NearCertificate, KKTCertificate, NearKKTCertificate or ValuesCertificate
        The last where `jac` is "2-point" or "3-point": with a confidence, from values alone.
        `eps` is the bound that was found. If the point is visibly not stationary at this delta,
        `descent` of a Goldstein certificate is a unit direction along which f falls.

    Raises
    ------
    NotCertifiableError
        When a near certificate was asked for and no pivot was found, or the gradients of an
        expression in float64 are contradicted by the exact ones.

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> cert = gs.certify(lambda x: abs(x[0]), [0.0], np.sign, delta=1e-3, rng=0)
    >>> cert.eps < 1e-12
    True
    >>> gs.certify(lambda x: abs(x[0]), [1.0], np.sign, delta=1e-3, rng=0).descent
    array([-1.])
    """
    structure, point = as_point(x, "x")
    laid_out = partial(with_layout, layout=None if structure is None else structure.spec)
    eps = tolerance(eps)
    check_target(1.0, delta, point)
    kind = stationarity_named(stationarity)
    deadline = deadline_after(max_time)
    seed = seed_from(rng)
    blind = isinstance(jac, str) and jac in DIFFERENCES
    if blind or lacks_gradient(constraints):
        from goldstein.api.values import certify_values

        refuse_on_values(kind)
        if given(constraints):
            check_constrained(structure)
        values = as_values(fun, args, structure) if blind else as_oracle(fun, jac, args, structure)  # type: ignore[arg-type]
        with mapped(workers) as ask:
            return laid_out(certify_values(
                sized(values, point), point, float(delta), eps, as_box(bounds, point.size),
                call_budget(max_calls, 20_000 + 2_000 * point.size), seed,
                describe(values, "certify", seed, x), deadline, constraints, not blind,
                ask,
            ))  # fmt: skip
    oracle = sized(as_oracle(fun, jac, args, structure), point)  # type: ignore[arg-type]
    budget = call_budget(max_calls, 8 * point.size + 400)
    if bounds is not None or given(constraints):
        refuse_workers(workers, ("bounds= or constraints=", True))
        check_constrained(structure)
        problem = Problem.of(oracle, point, bounds, constraints, budget)
        remarks = describe(oracle, "certify", seed, x)
        if eps > 0:
            remarks["asked_eps"] = eps
        if kind.require is not None:
            kind.require(oracle)
        if kind.strengthen is not None:
            from goldstein.api.near_kkt import certify_near_kkt  # brings all of the calculus

            return certify_near_kkt(problem, point, float(delta), eps, seed, remarks, deadline)
        return certify_constrained(problem, point, float(delta), eps, seed, remarks, deadline)
    meta = {**describe(oracle, "certify", seed, x), "asked_delta": float(delta)}
    if eps > 0:
        meta["asked_eps"] = eps
    with mapped(workers) as ask:
        counted = CountedOracle(oracle, budget, LONGEST, None if workers is None else ask)
        if kind.strengthen is not None:
            stronger: NearCertificate = _certify_stronger(
                kind, counted, oracle, point, float(delta), eps, seed, deadline
            )
            return stronger
        certificate = certificate_from(
            Enrichment(), point, float(delta), eps, counted, meta, deadline
        )
    if hasattr(oracle, "program"):
        certificate = _exactly(certificate, oracle, seed)
    return laid_out(certificate)


def _exactly(certificate: GoldsteinCertificate, oracle: Oracle, seed: int) -> GoldsteinCertificate:
    """Exact gradients overrule those in float64, where cancellation may have lost them."""
    proved: GoldsteinCertificate | None = as_proved(certificate, oracle, seed)
    if proved is None:
        raise NotCertifiableError(
            f"the gradients of {oracle.name} are lost to rounding in float64; rescale the data or "
            "rearrange the expression."
        )
    return proved


def _certify_stronger(
    kind: Stationarity,
    counted: CountedOracle,
    oracle: Oracle,
    point: Vector,
    delta: float,
    eps: float,
    seed: int,
    deadline: float,
) -> Any:
    """Try the gradients of several radii as hints; keep the best proof."""
    assert kind.targets is not None
    assert kind.strengthen is not None
    if kind.require is not None:
        kind.require(oracle)
    best: Any = None
    for wanted, radius in kind.targets(eps, delta, smallest_delta(point)):
        found = gathered(counted, point, radius, wanted, seed, Enrichment(), deadline)
        if not found.points:
            break
        around = hint_from(found, point, radius)
        limit = None if math.isinf(deadline) else deadline
        stronger = kind.strengthen(oracle, around, eps, delta, seed, limit)
        if stronger is not None and (best is None or stronger.eps < best.eps):
            best = stronger
        if best is not None and best.eps <= eps:
            break
    if best is None:
        raise NotCertifiableError(
            f"no verified proof of the kind {kind.name!r} was found within {delta:g} of x; raise "
            "delta or max_calls, or ask for stationarity='goldstein'."
        )
    return best


@dataclass(frozen=True)
class StationarityCurve(Plotted):
    """The certified eps as a function of delta, at one point.

    Attributes
    ----------
    deltas, eps : ndarray
    certificates : list of GoldsteinCertificate
    """

    deltas: Vector
    eps: Vector
    certificates: list[GoldsteinCertificate]

    def __repr__(self) -> str:
        rows = [f"  delta {d:9.3g}   eps {e:9.3g}" for d, e in zip(self.deltas, self.eps)]
        return "\n".join(["StationarityCurve", *rows])


def stationarity_curve(
    fun: Oracle | Callable[..., Any],
    x: Any,
    jac: Callable[..., Any] | bool | None = None,
    *,
    deltas: ArrayLike | None = None,
    args: Sequence[Any] = (),
    eps: float = 0.0,
    rng: RNG = None,
    max_calls: int | None = None,
) -> StationarityCurve:
    """Answer "which delta?": the certified eps of one point over a range of radii.

    One bundle serves all radii, because a gradient found in a small ball counts in every larger
    one; the curve therefore never rises.

    Parameters
    ----------
    fun, x, jac, args, rng
        As in `certify`.
    deltas : array_like
        Radii; default 1e-6 to 1, one per decade.
    eps : float
        No need to do better than this.
    max_calls : int, optional
        Limit for the whole curve; default (8 d + 400) per radius.

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> curve = gs.stationarity_curve(lambda x: abs(x[0]), [0.01], np.sign,
    ...                               deltas=[1e-3, 1e-1], rng=0)
    >>> curve.eps.round(6)
    array([1., 0.])
    """
    structure, point = as_point(x, "x")
    radii = np.sort(
        np.atleast_1d(np.logspace(-6, 0, 7) if deltas is None else as_vector(deltas, "deltas"))
    )
    eps = tolerance(eps)
    for radius in radii:
        check_target(1.0, float(radius), point)
    oracle = sized(as_oracle(fun, jac, args, structure), point)
    seed = seed_from(rng)
    budget = call_budget(max_calls, radii.size * (8 * point.size + 400))
    counted = CountedOracle(oracle, budget, LONGEST)
    meta = describe(oracle, "certify", seed, x)
    found = Enrichment()
    certificates: list[GoldsteinCertificate] = []
    for radius in radii:
        found.descent = None
        certificate = certificate_from(found, point, float(radius), eps, counted, meta)
        if certificates and certificates[-1].eps < certificate.eps:
            certificate = certificates[-1]  # what holds in a ball holds in every larger one
        certificates.append(certificate)
    return StationarityCurve(radii, np.array([c.eps for c in certificates]), certificates)


def hint_from(found: Enrichment, x: Vector, delta: float) -> GoldsteinCertificate:
    """The same gradients as a hint where a pivot may be; a hint need not survive a check."""
    inside = [distance_upper(y, x) <= delta for y in found.points]
    return GoldsteinCertificate.from_gradients(
        x, np.array(found.points)[inside], np.array(found.gradients)[inside]
    )
