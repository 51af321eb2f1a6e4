"""`certify` and its company: a point as it is, over radii, from other optimizers, on data.

`look_around`: which share of a ball is lower than its centre, for functions of any kind.

Several starts, and the best of what came of them.
"""

import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Required, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from goldstein.api import inputs
from goldstein.api.driver import Call, Task
from goldstein.certificates import (
    GoldsteinCertificate,
    KKTCertificate,
    NearCertificate,
    NearKKTCertificate,
    PlusCertificate,
    ValuesCertificate,
)
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.limits import as_box
from goldstein.checker.verification import Label
from goldstein.construction.cold import Cold, look_at_far_ends
from goldstein.construction.judge import describe
from goldstein.errors import InputError, InputTypeError, KinkError
from goldstein.numerics.streams import LONGEST, seed_from, smallest_delta, stream, uniform_in_ball
from goldstein.oracles import CountedOracle, Oracle, as_oracle, data_mean, function, separable
from goldstein.prox.term import Term
from goldstein.reductions.base import Options
from goldstein.result import InNotebooks, Plotted, Result
from goldstein.solvers import Request
from goldstein.solvers.base import CTRL_C
from goldstein.solvers.gather import Enrichment

Function = Oracle | Callable[..., Any]
Gradient = Callable[..., Any] | bool | None


class _How(TypedDict, total=False):
    """The arguments that do not change what kind of certificate it is."""

    args: Sequence[Any]
    delta: Required[float]
    eps: float
    rng: inputs.RNG
    max_calls: int | None
    max_time: float | None
    workers: separable.Workers


@overload
def certify(
    fun: Function, x: Any, jac: Gradient = None, *, stationarity: Literal["goldstein"] = ...,
    bounds: None = None, constraints: tuple[()] = (), plus: None = None, **how: Unpack[_How],
) -> GoldsteinCertificate: ...  # fmt: skip
@overload
def certify(
    fun: Function, x: Any, jac: Gradient = None, *, stationarity: Literal["goldstein"] = ...,
    bounds: Any = None, constraints: tuple[()] = (), plus: Term, **how: Unpack[_How],
) -> PlusCertificate: ...  # fmt: skip
@overload
def certify(
    fun: Function, x: Any, jac: Gradient = None, *, stationarity: Literal["goldstein"] = ...,
    bounds: Any = None, constraints: Any = (), plus: None = None, **how: Unpack[_How],
) -> GoldsteinCertificate | KKTCertificate: ...  # fmt: skip
@overload
def certify(
    fun: Function, x: Any, jac: str, *, stationarity: Literal["goldstein"] = ...,
    bounds: Any = None, constraints: tuple[()] = (), plus: None = None, **how: Unpack[_How],
) -> ValuesCertificate: ...  # fmt: skip
@overload
def certify(
    fun: Function, x: Any, jac: Gradient = None, *, stationarity: Literal["near"],
    bounds: None = None, constraints: tuple[()] = (), plus: Term | None = None,
    **how: Unpack[_How],
) -> NearCertificate: ...  # fmt: skip
@overload
def certify(
    fun: Function, x: Any, jac: Gradient = None, *, stationarity: Literal["near"],
    bounds: Any = None, constraints: Any = (), plus: Term | None = None, **how: Unpack[_How],
) -> NearCertificate | NearKKTCertificate: ...  # fmt: skip
@overload
def certify(
    fun: Function, x: Any, jac: Gradient = None, *, stationarity: Literal["minimum"],
    bounds: Any = None, constraints: Any = (), plus: Term | None = None,
    curvature: float | None = None, **how: Unpack[_How],
) -> Any: ...  # fmt: skip


@inputs.in_words
def certify(
    fun: Oracle | Callable[..., Any],
    x: Any,
    jac: Callable[..., Any] | bool | str | None = None,
    *,
    args: Sequence[Any] = (),
    delta: float,
    eps: float = 0.0,
    stationarity: Literal["goldstein", "near", "minimum"] = "goldstein",
    rng: inputs.RNG = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: Any = None,
    constraints: Any = (),
    plus: Term | None = None,
    curvature: float | None = None,
    workers: separable.Workers = None,
) -> Any:
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
    plus : Term, optional
        As in `minimize`: the claim is about f + h.
    curvature : float, optional
        As in `minimize`.
    workers : map-like callable or int
        As in `minimize`.

    Returns
    -------
    GoldsteinCertificate, or that of another kind
        With bounds or constraints a `KKTCertificate`, with `plus` a `PlusCertificate`, and where
        near stationarity is asked for a `NearCertificate` or `NearKKTCertificate`. A
        `ValuesCertificate` where `jac` is "2-point" or "3-point": with a confidence, from values.
        Where a minimum is asked for, a `MinimumCertificate`, a `Refutation`, or the strongest
        weaker certificate, in that order.
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
    layout, point = inputs.as_point(inputs.in_own_layout(fun, x), "x")
    eps, seed = inputs.tolerance(eps), seed_from(rng)
    inputs.check_target(1.0, delta, point)
    call = Call(fun, jac, args, x, layout, point, constraints)
    solver = inputs.make_solver("values" if call.on_values else "auto", None)
    few = 20_000 + 2_000 * point.size if solver.on_values else 8 * point.size + 400
    task = Task.read(
        call, solver, stationarity, Request(eps, float(delta), seed), name="certify", plus=plus,
        options=Options(central=True, curvature=inputs.declared(curvature)),
        budget=inputs.call_budget(max_calls, few), max_time=max_time, bounds=bounds,
        workers=workers,
    )  # fmt: skip
    if eps > 0 and not solver.on_values:
        task.meta["asked_eps"] = eps
    return task.stated()


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
    rng: inputs.RNG = None,
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
    layout, point = inputs.as_point(inputs.in_own_layout(fun, x), "x")
    radii = np.sort(np.logspace(-6, 0, 7) if deltas is None else inputs.as_vector(deltas, "deltas"))
    eps = inputs.tolerance(eps)
    for radius in radii:
        inputs.check_target(1.0, float(radius), point)
    oracle = inputs.sized(as_oracle(fun, jac, args, layout, point), point)
    seed = seed_from(rng)
    budget = inputs.call_budget(max_calls, radii.size * (8 * point.size + 400))
    counted = CountedOracle(oracle, budget, LONGEST)
    meta = describe(oracle, "certify", seed, x)
    found = Enrichment()
    certificates: list[GoldsteinCertificate] = []
    for radius in radii:
        found.descent = None
        target = Request(eps, float(radius), seed)
        certificate = Cold(counted, point, target, meta).certificate(found)
        if certificates and certificates[-1].eps < certificate.eps:
            certificate = certificates[-1]  # what holds in a ball holds in every larger one
        certificates.append(certificate)
    return StationarityCurve(radii, np.array([c.eps for c in certificates]), certificates)


@inputs.in_words
def certify_result(
    res: Any,
    fun: Oracle | Callable[..., Any] | None = None,
    jac: Callable[..., Any] | bool | str | None = None,
    *,
    delta: float,
    eps: float = 0.0,
    args: Sequence[Any] = (),
    bounds: Any = None,
    constraints: Any = (),
    stationarity: Literal["goldstein", "near", "minimum"] = "goldstein",
    rng: inputs.RNG = None,
    max_calls: int | None = None,
    max_time: float | None = None,
) -> Any:
    """Say how stationary the answer of another optimizer is, whatever it says itself.

    Parameters
    ----------
    res : OptimizeResult, or anything with an `x`, or cvxpy.Problem
        What `scipy.optimize.minimize`, `basinhopping`, ... returned; a mapping with "x" will do. A
        problem of CVXPY, solved, brings its function, its constraints and the values of its
        variables along: `certify_result(problem, delta=...)`.
    fun, jac, args, delta, eps, bounds, constraints, stationarity, rng, max_calls, max_time
        As in `certify`. A point that misses its bounds by less than `delta`, as some methods leave
        it, is moved onto them; `certificate.x` is the point that the claim is about, and
        `certificate.meta["moved"]` how far that is from `res.x`.

    Returns
    -------
    The certificate, as `certify` returns it; `verify` checks it.

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> from scipy.optimize import minimize
    >>> def f(x): return abs(x[0]) + 2 * abs(x[1])
    >>> def g(x): return np.array([np.sign(x[0]), 2 * np.sign(x[1])])
    >>> res = minimize(f, [3.0, -1.0], method="Nelder-Mead")
    >>> certificate = gs.certify_result(res, f, g, delta=1e-3, rng=0)
    >>> certificate.eps < 1e-6, certificate.verify(f, g).ok
    (True, True)
    """
    if fun is None:
        fun, res, bounds, constraints = _read(res)
    x = inputs.as_vector(_point(res), "res.x")
    moved = 0.0
    if bounds is not None:
        x, moved = _inside(x, bounds, delta)
    request: dict[str, Any] = {
        "args": args, "delta": delta, "eps": eps, "bounds": bounds, "constraints": constraints,
        "stationarity": stationarity, "rng": rng, "max_calls": max_calls, "max_time": max_time,
    }  # fmt: skip
    found: Any = certify(fun, x, jac, **request)
    return replace(found, meta={**found.meta, "moved": moved}, digest="") if moved else found


def _read(problem: Any) -> tuple[Any, Any, Any, Any]:
    """Return function, point, bounds and constraints of a problem of CVXPY."""
    if not type(problem).__module__.startswith("cvxpy."):
        raise InputTypeError("fun is missing: certify_result(res, fun, jac, delta=...).")
    found = importlib.import_module("goldstein.cvxpy").read(problem)
    return found.objective, {"x": found.x0}, found.bounds, found.constraints


def _point(res: Any) -> Any:
    try:
        return res["x"] if isinstance(res, dict) else res.x
    except (KeyError, AttributeError):
        raise InputTypeError(
            f"{type(res).__name__} has no x; pass what the optimizer returned, or call "
            "gs.certify(fun, x, jac, delta=...) with the point itself."
        ) from None


def _inside(x: Vector, bounds: Any, delta: float) -> tuple[Vector, float]:
    inside = as_box(bounds, x.size).clip(x)
    moved = float(np.linalg.norm(inside - x))
    if moved > delta:
        raise InputError(
            f"res.x is {moved:g} outside the bounds, more than delta = {delta:g}: it is no point "
            "of this problem."
        )
    return inside, moved


#: Passes over the data unless the caller says otherwise: at most, and at least where memory is
#: short.
CALLS, FEWEST_CALLS = 600, 40

#: Numbers a search may keep (points and gradients): about one gigabyte.
KEPT_NUMBERS = 2**27


def certify_data(
    f: data_mean.DataMean,
    *,
    delta: float,
    eps: float,
    seed: int,
    max_calls: int | None,
    progress: data_mean.Progress,
) -> GoldsteinCertificate:
    """Return what can be proved about `f.start`, with a record of the data.

    First one gradient, then a few at the far end of the ball. Where the loss visibly falls nearby
    that is the answer: the point is not stationary, and many more passes hardly improve the bound.
    Where it does not, the search of `goldstein.certify` goes on from there.
    """
    point = f.start
    eps = inputs.tolerance(eps)
    inputs.check_target(1.0, delta, point)
    most = max(FEWEST_CALLS, min(CALLS, KEPT_NUMBERS // (2 * point.size)))
    budget = inputs.call_budget(max_calls, most)
    counted = CountedOracle(f, budget, LONGEST)
    meta = {**describe(f, "certify", seed, point), "asked_delta": float(delta)}
    if eps > 0:
        meta["asked_eps"] = eps
    with f.reporting(progress, int(budget)):
        found = Enrichment()
        with counted.reserved(min(8, int(budget) // 2)):
            look_at_far_ends(counted, point, float(delta), eps, seed, found)
        done = found.descent is not None and bool(found.points)
        target, deadline = Request(eps, float(delta), seed), 0.0 if done else math.inf
        # Passes over the data are dear.
        cold = Cold(counted, point, target, meta, deadline, confirm=False)
        certificate = cold.certificate(found)
    return replace(certificate, meta={**certificate.meta, **f.meta}, digest="")


#: Gradients looked at.
_GRADIENTS = 5

#: Accuracies relative to the size of x and of the gradients, unless the user says otherwise.
_RELATIVE = 1e-3


@dataclass(frozen=True)
class Target(InNotebooks):
    """A proposal for `minimize` and `certify`.

    Attributes
    ----------
    eps, delta : float
    gradient_scale : float
        Length of a typical gradient near x0, in units of f per unit of x.
    x_scale : float
        Size of x0, or 1 where x0 is smaller.
    """

    eps: float
    delta: float
    gradient_scale: float
    x_scale: float

    def __repr__(self) -> str:
        return (
            f"Target(eps={self.eps:.3g}, delta={self.delta:.3g}): gradients near x0 have length "
            f"{self.gradient_scale:.3g}, x0 has size {self.x_scale:.3g}"
        )


def suggest_target(
    fun: Oracle | Callable[..., Any],
    x0: Any,
    jac: Callable[..., Any] | bool | None = None,
    *,
    args: Sequence[Any] = (),
    f_tol: float | None = None,
    x_tol: float | None = None,
    rng: inputs.RNG = 0,
) -> Target:
    """Propose eps and delta from the start, a few gradients, and what matters to you.

    Parameters
    ----------
    fun, x0, jac, args, rng
        As in `minimize`.
    f_tol : float, optional
        A difference of f that does not matter. For a convex f with a minimiser within R of x,
        (eps, delta)-stationarity gives f(x) - min f <= eps R + 2 G delta, with G a bound of the
        gradients; the proposal makes this at most `f_tol` for R = `x_scale`, with the G that
        was seen.
    x_tol : float, optional
        A difference of x that does not matter: the largest delta.

    Returns
    -------
    Target

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> gs.suggest_target(lambda x: 5 * np.abs(x).sum(), [100.0], lambda x: 5 * np.sign(x))
    Target(eps=0.005, delta=0.1): gradients near x0 have length 5, x0 has size 100
    """
    for name, value in (("f_tol", f_tol), ("x_tol", x_tol)):
        if value is not None and not (inputs.is_number(value) and 0 < value < np.inf):
            raise InputError(f"{name} must be a positive finite number or None, got {value!r}.")
    layout, start = inputs.as_start(x0, fun)
    inputs.check_size(start)
    oracle = CountedOracle(
        inputs.sized(as_oracle(fun, jac, args, layout, start), start), longest=LONGEST
    )
    size = max(1.0, float(np.abs(start).max()))
    draw = stream(seed_from(rng), 0, "suggest")
    lengths = []
    for _ in range(_GRADIENTS):
        y = uniform_in_ball(draw, start, _RELATIVE * size)
        with suppress(KinkError):
            lengths.append(np.linalg.norm(oracle.gradient(y)))
    steep = float(np.median(lengths)) if lengths else 0.0
    if steep == 0.0:
        raise InputError(
            "every gradient near x0 is 0 or on a kink, so nothing can be proposed; give another x0."
        )
    delta = _RELATIVE * size if x_tol is None else float(x_tol)
    eps = _RELATIVE * steep
    if f_tol is not None:
        delta = min(delta, f_tol / (4.0 * steep))
        eps = f_tol / (2.0 * size)
    return Target(eps, max(delta, smallest_delta(start)), steep, size)


@dataclass(frozen=True)
class LookAround:
    """What values at random points of a ball say.

    Attributes
    ----------
    share : float
        Part of the points that were lower than x.
    upper : float
        With the stated confidence, no larger part of the ball is lower than x.
    lowest : float
        The lowest value seen minus f(x); 0 if none was lower.
    point : ndarray
        Where that was; x if none was lower.
    radius, confidence : float
    n : int
    label : str
        "estimated".
    """

    share: float
    upper: float
    lowest: float
    point: Any
    radius: float
    n: int
    confidence: float
    label: Label = "estimated"

    def __repr__(self) -> str:
        return (
            f"{100 * self.share:.3g} % of {self.n} points within {self.radius:g} are lower, at "
            f"most {100 * self.upper:.3g} % of the ball with confidence {self.confidence:g}; "
            f"lowest: {self.lowest:.3g} from f(x), {self.label}"
        )


def look_around(
    fun: Oracle | Callable[..., Any],
    x: Any,
    *,
    radius: float,
    n: int = 3000,
    confidence: float = 0.95,
    rng: inputs.RNG = None,
) -> LookAround:
    """Say which share of a ball is lower than its centre: statistics, for any function.

    Parameters
    ----------
    fun : callable, Oracle or Expression
        Only its values are asked for.
    x : array_like
        The centre.
    radius : float
        Points are uniform in the ball of this radius.
    n : int
        How many.
    confidence : float
        Of the upper limit (Clopper and Pearson, Biometrika 26, 1934).
    rng : None, int or Generator

    Returns
    -------
    LookAround

    Examples
    --------
    >>> import goldstein as gs
    >>> seen = gs.look_around(lambda x: abs(x[0]) - 0.1 * abs(x[1]), [0.0, 0.0], radius=1.0, rng=0)
    >>> 0.02 < seen.share < seen.upper < 0.1, seen.lowest < 0, seen.label
    (True, True, 'estimated')
    """
    layout, point = inputs.as_point(x, "x")
    for name, value, high in (("radius", radius, np.inf), ("confidence", confidence, 1.0)):
        if not (inputs.is_number(value) and 0 < value < high):
            raise InputError(f"{name} must be a number between 0 and {high:g}, got {value!r}.")
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"n must be a positive integer, got {n!r}.")
    oracle = CountedOracle(function.values_of(fun, None, (), layout))
    draw = stream(seed_from(rng), 0, "look around")
    here = oracle.value(point)
    lower, best, where = 0, here, point
    for _ in range(n):
        z = uniform_in_ball(draw, point, float(radius))
        value = oracle.value(z)
        lower += value < here
        if value < best:
            best, where = value, z
    upper = 1.0 if lower == n else float(betaincinv(lower + 1, n - lower, confidence))
    return LookAround(lower / n, upper, best - here, where, float(radius), n, float(confidence))


S = TypeVar("S")
T = TypeVar("T")


def best_of(answers: Iterable[T], value: Callable[[T], float]) -> T:
    """Return the answer of smallest value; of equal ones the first, and never one without value.

    Examples
    --------
    >>> best_of([3.0, math.nan, -1.0], value=float)
    -1.0
    """

    def key(answer: T) -> float:
        found = float(value(answer))
        return math.inf if math.isnan(found) else found

    return min(answers, key=key)


def search_from(starts: Iterable[S], search: Callable[[S], T], value: Callable[[T], float]) -> T:
    """Search from every start in turn, and return the best answer.

    Examples
    --------
    >>> search_from([-3, 2], search=abs, value=float)
    2
    """
    return best_of(map(search, starts), value)


def uninterrupted(result: Result) -> Result:
    """Return a result, unless Ctrl-C ended its run: then whatever it is a part of ends as well."""
    if result.stopped_by == CTRL_C:
        raise KeyboardInterrupt
    return result


def start_seed(seed: int, index: int) -> int:
    """Return the seed of one start: it depends on nothing but these two.

    Examples
    --------
    >>> start_seed(0, 1) == start_seed(0, 1) != start_seed(0, 2)
    True
    """
    return int(stream(seed, index, "seed of a start").integers(2**63))
