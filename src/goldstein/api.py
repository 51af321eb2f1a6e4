"""`minimize` and `certify`: the only place where solvers meet certificates."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldstein.certificates import GoldsteinCertificate
from goldstein.errors import InputError, InputTypeError, KinkError, OutOfCalls
from goldstein.numerics.ball import shrink, uniform_in_ball
from goldstein.numerics.rounding import distance_upper
from goldstein.numerics.streams import seed_from, stream
from goldstein.oracles import CountedOracle, Oracle, as_oracle
from goldstein.oracles.journal import JournalOracle, seed_in
from goldstein.result import Result, Status
from goldstein.solvers import REGISTRY, Evidence, Request, Solver, State
from goldstein.solvers.enrich import Enrichment, enrich
from goldstein.solvers.loop import Outcome, run

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
RNG = int | np.random.Generator | None

#: Points a solver queried at unperturbed places are displaced by this part of delta.
JITTER = 1e-3

#: Smallest delta, in units of rounding at x: below it a ball has hardly any points.
_FLOOR = 1e4 * 2.0**-53


class PrecisionWarning(UserWarning):
    """The request is close to what float64 can distinguish."""


def minimize(
    fun: Oracle | Callable[..., Any],
    x0: ArrayLike,
    jac: Callable[..., Any] | bool | None = None,
    *,
    args: Sequence[Any] = (),
    eps: float,
    delta: float,
    stationarity: Literal["goldstein", "near"] = "goldstein",
    method: str | Solver = "auto",
    rng: RNG = None,
    lipschitz: float | None = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    progress: bool | Callable[[State, int], None] = False,
    checkpoint: str | Path | None = None,
    options: dict[str, Any] | None = None,
) -> Result:
    """Minimise a function with kinks and prove how stationary the answer is.

    Parameters
    ----------
    fun : callable, Oracle or Expression
        The function; with `jac=True` it returns (value, gradient).
    x0 : array_like
        Start.
    jac : callable or True
        The gradient. It is asked for at randomly perturbed points only when it counts.
    args : sequence
        Extra arguments of `fun` and `jac`.
    eps, delta : float
        The question: some convex combination of gradients within `delta` of x has norm <= `eps`.
    stationarity : {"goldstein", "near"}
        "near" asks for more: a point within `delta` has a Clarke subgradient of norm <= `eps`.
        It needs an Expression.
    method : str or Solver
        "auto", "bundle", "pingd", "psingd", "o2nc", or a configured solver.
    rng : None, int or Generator
        Same seed, same result; the seed used is in the result.
    lipschitz : float, optional
        Lipschitz constant; estimated and guarded if missing.
    max_calls : int, optional
        Limit on values plus gradients. Default 50,000 + 100 d.
    max_time : float, optional
        Limit in seconds.
    callback : callable
        `callback(x)` or `callback(intermediate_result=...)` after each descent step; StopIteration
        (or a true return value) stops the run.
    progress : bool
        Show a status line on stderr, on a terminal only.
    checkpoint : path
        Journal of the run; if the file is there and belongs to this run, the run resumes from it.
    options : dict
        Parameters of the named method.

    Returns
    -------
    Result
        `success` is true exactly when `certificate` was verified and meets the request.

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> def f(x): return abs(x[0]) + 2 * abs(x[1])
    >>> def g(x): return np.array([np.sign(x[0]), 2 * np.sign(x[1])])
    >>> res = gs.minimize(f, [3.0, -1.0], g, eps=1e-3, delta=1e-3, rng=0)
    >>> res.success
    True
    >>> res.certificate.verify(f, g).ok
    True
    """
    start = _vector(x0, "x0")
    _check_target(eps, delta, start)
    if stationarity not in ("goldstein", "near"):
        raise InputError(f"stationarity must be 'goldstein' or 'near', got {stationarity!r}.")
    if bounds is not None or not (isinstance(constraints, tuple | list) and not constraints):
        raise InputError(
            "bounds and constraints are not supported yet; put them into fun as an exact penalty."
        )
    budget = _budget(max_calls, 50_000 + 100 * start.size)
    if max_time is not None and not (_is_number(max_time) and max_time > 0):
        raise InputError(f"max_time must be positive seconds or None, got {max_time!r}.")
    if callback is not None and not callable(callback):
        raise InputTypeError(f"callback must be callable, got {type(callback).__name__}.")
    solver = _solver(method, options)
    oracle = _sized(as_oracle(fun, jac, args), start)
    seed = seed_from(rng)
    begin = time.perf_counter()
    if checkpoint is not None and rng is None:
        recorded = seed_in(checkpoint)
        seed = seed if recorded is None else recorded
    request = Request(float(eps), float(delta), seed, lipschitz)
    identity = {
        "function": oracle.name, "x0": hashlib.sha256(start.tobytes()).hexdigest(),
        "eps": request.eps, "delta": request.delta,
        "method": solver.name, "options": repr(sorted(vars(solver).items())), "seed": seed,
        "stationarity": stationarity, "lipschitz": lipschitz,
    }  # fmt: skip
    with _journalled(oracle, checkpoint, identity) as base:
        counted = CountedOracle(base, budget)
        judge = _Judge(counted, request, _meta(oracle, solver.name, seed, x0))
        outcome = run(
            solver,
            counted,
            start,
            request,
            judge=judge,
            max_time=max_time,
            callback=callback,
            progress=_status_line if progress is True else progress or None,
        )
        certificate, status = outcome.certificate, outcome.status
        if certificate is None:
            certificate, fresh = _last_evidence(solver, outcome, judge)
            if fresh and certificate is not None and certificate.eps <= request.eps:
                status = Status.CERTIFIED  # the run was cut short with the proof in its hands
        if certificate is not None and isinstance(base, JournalOracle) and base.replayed:
            _check_replayed(certificate, oracle, base)
    state = outcome.state
    done = status in (Status.CERTIFIED, Status.UNBOUNDED)
    if delta * eps / 4 < 8 * 2.0**-53 * abs(state.fx) and not done:
        warnings.warn(
            f"the descent test compares values to {delta * eps / 4:.3g}, but |f| = "
            f"{abs(state.fx):.3g} is only exact to {abs(state.fx) * 2.0**-52:.3g}; "
            "raise eps or delta, or shift f by a constant.",
            PrecisionWarning,
            stacklevel=2,
        )
    success = status is Status.CERTIFIED
    message = status.message
    if status.advice and not success:
        message += f"; {status.advice}"
    return Result(
        x=state.x.copy(),
        fun=state.fx,
        success=success,
        status=status,
        message=message,
        nit=state.steps,
        nfev=counted.values,
        ngev=counted.gradients,
        certificate=certificate,
        history=outcome.history,
        seed=seed,
        time=time.perf_counter() - begin,
        method=solver.name,
    )


def certify(
    fun: Oracle | Callable[..., Any],
    x: ArrayLike,
    jac: Callable[..., Any] | bool | None = None,
    *,
    args: Sequence[Any] = (),
    delta: float,
    eps: float = 0.0,
    stationarity: Literal["goldstein", "near"] = "goldstein",
    rng: RNG = None,
    max_calls: int | None = None,
) -> GoldsteinCertificate:
    """Say how stationary a point is, wherever it came from. The point is never moved.

    Parameters
    ----------
    fun, jac, args, rng
        As in `minimize`.
    x : array_like
        The point, e.g. the answer of another optimizer.
    delta : float
        Radius of the ball.
    eps : float
        Stop as soon as this is reached; 0 asks for the smallest bound the budget allows.
    max_calls : int, optional
        Limit on values plus gradients; default 8 d + 400.

    Returns
    -------
    GoldsteinCertificate
        `eps` is the bound that was found. If the point is visibly not stationary at this delta,
        `descent` is a unit direction along which f falls.

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
    point = _vector(x, "x")
    eps = _tolerance(eps)
    _check_target(1.0, delta, point)
    oracle = _sized(as_oracle(fun, jac, args), point)
    seed = seed_from(rng)
    counted = CountedOracle(oracle, _budget(max_calls, 8 * point.size + 400))
    found = Enrichment()
    enrich(
        counted, point, float(delta), float(eps), seed, found,
        patience=max(30, min(point.size, 200)),
    )  # fmt: skip
    return _from_enrichment(found, point, float(delta), oracle, seed, x)


@dataclass(frozen=True)
class StationarityCurve:
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
    x: ArrayLike,
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
    point = _vector(x, "x")
    radii = np.sort(
        np.atleast_1d(np.logspace(-6, 0, 7) if deltas is None else _vector(deltas, "deltas"))
    )
    eps = _tolerance(eps)
    for radius in radii:
        _check_target(1.0, float(radius), point)
    oracle = _sized(as_oracle(fun, jac, args), point)
    seed = seed_from(rng)
    counted = CountedOracle(oracle, _budget(max_calls, radii.size * (8 * point.size + 400)))
    found = Enrichment()
    certificates: list[GoldsteinCertificate] = []
    for radius in radii:
        found.descent = None
        enrich(
            counted, point, float(radius), eps, seed, found,
            patience=max(30, min(point.size, 200)),
        )  # fmt: skip
        certificate = _from_enrichment(found, point, float(radius), oracle, seed, x)
        if certificates and certificates[-1].eps < certificate.eps:
            certificate = certificates[-1]  # what holds in a ball holds in every larger one
        certificates.append(certificate)
    return StationarityCurve(radii, np.array([c.eps for c in certificates]), certificates)


class _Judge:
    """The certificate layer's answer to evidence: ask the function again, and decide."""

    def __init__(self, oracle: CountedOracle, request: Request, meta: dict[str, Any]) -> None:
        self.oracle = oracle
        self.request = request
        self.meta = meta
        self.trials = 0

    def __call__(
        self, evidence: Evidence
    ) -> tuple[GoldsteinCertificate | None, tuple[Matrix, Matrix] | None]:
        certificate, fresh = self.weigh(evidence)
        good = certificate is not None and certificate.eps <= self.request.eps
        return (certificate, None) if good else (None, fresh)

    def weigh(
        self, evidence: Evidence
    ) -> tuple[GoldsteinCertificate | None, tuple[Matrix, Matrix]]:
        """Return the strongest certificate at fresh gradients of the evidence's points."""
        self.trials += 1
        rng = stream(self.request.seed, self.trials, "judge")
        points, gradients = [], []
        for y, safe in zip(evidence.points, evidence.perturbed):
            z = y if safe else _displace(rng, y, evidence.x, self.request.delta)
            if distance_upper(z, evidence.x) > self.request.delta:
                continue
            with contextlib.suppress(KinkError):
                gradients.append(self.oracle.gradient(z))
                points.append(z)
        if not points:
            empty = np.zeros((0, evidence.x.size))
            return None, (empty, empty)
        fresh = np.array(points), np.array(gradients)
        return GoldsteinCertificate.from_gradients(evidence.x, *fresh, meta=self.meta), fresh


def _displace(rng: np.random.Generator, y: Vector, x: Vector, delta: float) -> Vector:
    """Move y by JITTER delta at random, staying inside the ball."""
    offset = y - x
    room = (1.0 - 2.0 * JITTER) * delta
    distance = math.sqrt(offset @ offset)
    if distance > room:
        offset *= room / distance
    return uniform_in_ball(rng, x + offset, JITTER * delta * shrink(x.size))


def _last_evidence(
    solver: Solver, outcome: Outcome, judge: _Judge
) -> tuple[GoldsteinCertificate | None, bool]:
    """A run without success still says what it can prove, with the calls that are left.

    The second answer says whether the gradients were asked for again.
    """
    evidence = solver.best_evidence(outcome.state)
    if evidence is None or not np.array_equal(evidence.x, outcome.state.x):
        return None, False
    try:
        return judge.weigh(evidence)[0], True
    except OutOfCalls:
        safe = evidence.perturbed
        if evidence.gradients is None or not safe.any():
            return None, False
        certificate = GoldsteinCertificate.from_gradients(
            evidence.x, evidence.points[safe], evidence.gradients[safe], meta=judge.meta
        )
        return certificate, False


def _check_replayed(
    certificate: GoldsteinCertificate, oracle: Oracle, journal: JournalOracle
) -> None:
    """What rests on a checkpoint is believed only after asking the function itself."""
    if not certificate.verify(oracle).ok:
        raise InputError(
            f"checkpoint {journal.path} was made with another function: the certificate does not "
            "hold for this one. Name another file, or delete it to start afresh."
        )


def _from_enrichment(
    found: Enrichment, x: Vector, delta: float, oracle: Oracle, seed: int, given: Any
) -> GoldsteinCertificate:
    if not found.points:
        raise InputError(
            f"no gradient could be had within {delta:g} of x ({found.kinks} kinks met); "
            "raise max_calls or delta."
        )
    inside = [distance_upper(y, x) <= delta for y in found.points]
    meta = _meta(oracle, "certify", seed, given)
    if found.descent is not None:
        meta["descent_step"] = found.descent_step
    return GoldsteinCertificate.from_gradients(
        x,
        np.array(found.points)[inside],
        np.array(found.gradients)[inside],
        meta=meta,
        descent=found.descent,
    )


def _meta(oracle: Oracle, method: str, seed: int, given: Any) -> dict[str, Any]:
    meta = {"function": oracle.name, "method": method, "seed": seed}
    dtype = getattr(given, "dtype", None)
    if dtype is not None and dtype != np.float64:
        meta["converted_from"] = str(dtype)
    return meta


def _solver(method: str | Solver, options: dict[str, Any] | None) -> Solver:
    if isinstance(method, Solver):
        if options:
            raise InputTypeError(
                "options go with a method name; set them on the solver object instead."
            )
        return method
    if not isinstance(method, str):
        raise InputTypeError(
            f"method must be a name or a solver object, got {type(method).__name__}."
        )
    if method not in REGISTRY:
        close = difflib.get_close_matches(method, REGISTRY, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"unknown method {method!r}; known: {', '.join(sorted(REGISTRY))}.{hint}")
    try:
        return REGISTRY[method](**(options or {}))
    except TypeError as failure:
        raise InputTypeError(f"options of method {method!r}: {failure}.") from failure


def _vector(values: ArrayLike, name: str) -> Vector:
    try:
        if np.iscomplexobj(values):
            raise TypeError("complex numbers have no order")
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as failure:
        raise InputTypeError(f"{name} must be a vector of numbers: {failure}.") from failure
    array = np.atleast_1d(array)
    if array.ndim != 1 or array.size == 0:
        raise InputError(
            f"{name} must be a non-empty vector, got shape {array.shape}; use ravel()."
        )
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InputError(f"{name} must be finite, but {name}[{bad}] is {array[bad]}.")
    return array


def _sized(oracle: Oracle, x: Vector) -> Oracle:
    if oracle.dim is not None and oracle.dim != x.size:
        raise InputError(f"{oracle.name} has {oracle.dim} variables, but the point has {x.size}.")
    return oracle


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def _tolerance(eps: float) -> float:
    """The `eps` of certify: 0 asks for the smallest bound the budget allows."""
    if not _is_number(eps):
        raise InputTypeError(f"eps must be a number, got {type(eps).__name__}.")
    if not (math.isfinite(eps) and eps >= 0):
        raise InputError(f"eps must be finite and not negative, got {eps!r}.")
    return float(eps)


def _check_target(eps: float, delta: float, x: Vector) -> None:
    for name, value in (("eps", eps), ("delta", delta)):
        if not _is_number(value):
            raise InputTypeError(f"{name} must be a number, got {type(value).__name__}.")
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"{name} must be a positive finite number, got {value!r}.")
    floor = _FLOOR * max(1.0, float(np.abs(x).max()))
    if delta < floor:
        raise InputError(
            f"delta = {delta:g} is below {floor:.3g}, the smallest ball float64 can sample at a "
            "point of this size; raise delta or rescale the variables."
        )


def _budget(max_calls: int | None, default: int) -> int:
    if max_calls is None:
        return default
    if isinstance(max_calls, bool) or not isinstance(max_calls, int | np.integer) or max_calls < 1:
        raise InputError(f"max_calls must be a positive integer or None, got {max_calls!r}.")
    return int(max_calls)


@contextlib.contextmanager
def _journalled(
    oracle: Oracle, path: str | Path | None, identity: dict[str, Any]
) -> Iterator[Oracle]:
    if path is None:
        yield oracle
        return
    journal = JournalOracle(oracle, path, identity)
    try:
        yield journal
    finally:
        journal.close()


def _status_line(state: State, calls: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\rcalls {calls:>8}   f {state.fx:.8g}   |m| {state.bound:.3g}    ")
        sys.stderr.flush()
