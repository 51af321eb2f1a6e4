"""A local search for SciPy: what `minimize` hands over comes in, an OptimizeResult goes out."""

import warnings
from collections.abc import Callable
from functools import partial, wraps
from itertools import compress
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, OptimizeWarning

from goldstein.api.inputs import as_vector, is_number, method_options
from goldstein.api.minimize import minimize
from goldstein.calculus.tracing import TraceError, traced_oracle
from goldstein.certificates import GoldsteinCertificate, KKTCertificate, ValuesCertificate
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.limits import as_box
from goldstein.construction.values_claim import least_cost
from goldstein.errors import InputError, OracleError
from goldstein.numerics.streams import seed_from, smallest_delta, stream
from goldstein.oracles.problem import given, lacks_gradient
from goldstein.result import Result, Status
from goldstein.solvers.loop import teller

#: Accuracy without `tol`: SciPy's own default for gradients.
TOL = 1e-5

#: Values alone: what is claimed of a point, unless the user says otherwise. A claim of 1e-5 would
#: take a million values, a search of that accuracy takes hundreds.
CLAIM = 0.1

#: The accuracy that `tol=0` stands for.
LEAST = 2.0**-52

#: A slope is measured along so many directions, with steps of this size, relative to the point, and
#: with halves of them; where those do not agree on this part of it, noise is all that is seen.
DIRECTIONS, STEP, AGREED = 3, 2.0**-17, 0.1

#: Options that go with values only.
STATISTICAL = {"confidence", "search_eps", "workers"}

#: SciPy's own words.
FIXED = "All independent variables were fixed by bounds."

#: What `res.status` is; 99 is SciPy's own for a callback that stops a run.
_ORDER = """
VERIFIED OUT_OF_CALLS OUT_OF_TIME STALLED NOT_VERIFIED INFEASIBLE DEGENERATE UNBOUNDED
WRONG_GRADIENT NOT_DETERMINISTIC BALL_TOO_SMALL ROUNDS_EXHAUSTED STEPS_EXHAUSTED ESTIMATED
"""
CODES = {Status[name]: k for k, name in enumerate(_ORDER.split())} | {Status.STOPPED: 99}

#: Arguments of `goldstein.minimize` that are options here.
_OWN = (
    "stationarity", "method", "rng", "lipschitz", "max_calls", "max_time", "progress", "checkpoint",
    "workers",
)  # fmt: skip

#: SciPy's names for the limit on evaluations.
_LIMITS = ("maxfev", "maxfun")


def _has_values_only(fun: Any, args: Any, x0: Any, options: dict[str, Any]) -> bool:
    """Are values asked for, or can no gradient be derived from the code?"""
    if STATISTICAL & options.keys():
        return True
    try:
        traced_oracle(fun, args, as_vector(x0, "x0", exact=False))
    except TraceError:
        return True
    return False


class Method:
    """A `method` for `scipy.optimize.minimize`, and for the local searches of its global methods.

    Parameters
    ----------
    **options
        Options that every run has unless it is given others. Global methods that drop the options
        they do not know (`shgo`) are told here.

    Notes
    -----
    Options: `eps` and `delta`, the question; `rng` (default 0: as repeatable as SciPy's methods);
    `method`, `stationarity`, `lipschitz`, `max_calls`, `max_time`, `progress`, `checkpoint` as
    in `goldstein.minimize`; `maxfev` or `maxfun` for `max_calls`; `gtol` for `eps`; `maxiter`, a
    limit on descent steps; `disp`; and the options of the method, as `goldstein.minimize` takes
    them.

    Without a gradient (jac=None, "2-point" or "3-point") it is derived from the code of `fun`;
    where that cannot be done the method is "values": the search goes on to `tol`, and the
    statistical certificate claims 0.1 of the slope at `x0` (0.1 where f is flat) unless `eps` is
    given. `workers`
    evaluate differences in parallel. The same where a constraint has no gradient (SciPy's default:
    a `NonlinearConstraint` without `jac`); that of `fun` is used where there is one.

    Without `eps` it is `tol`, without `delta` it is `tol max(1, |x0|_inf)`; without `tol` that is
    1e-5, SciPy's own limit for the length of a gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import minimize
    >>> import goldstein.scipy
    >>> res = minimize(lambda x: np.abs(x).sum(), [3.0, -1.0], jac=np.sign,
    ...                method=goldstein.scipy.method, options={"eps": 1e-3, "delta": 1e-3})
    >>> res.success, res.status, res.certificate.label
    (True, 0, 'conditional')
    """

    def __init__(self, **options: Any) -> None:
        self.options = options

    def __call__(
        self,
        fun: Callable[..., Any],
        x0: Any,
        args: tuple[Any, ...] = (),
        *,
        jac: Any = None,
        hess: Any = None,
        hessp: Any = None,
        bounds: Any = None,
        constraints: Any = (),
        callback: Callable[..., Any] | None = None,
        **options: Any,
    ) -> OptimizeResult:
        for name in compress(("hess", "hessp"), (hess is not None, hessp is not None)):
            said = f"Method goldstein does not use second derivatives ({name})."
            warnings.warn(said, RuntimeWarning, stacklevel=3)
        options = {**self.options, **options}
        if jac is None and "method" not in options and _has_values_only(fun, args, x0, options):
            options["method"] = "values"  # SciPy hands '2-point' and '3-point' over as None
        blind = options.get("method", "auto") == "auto" and lacks_gradient(constraints)
        task, rest = self._task(options, blind)
        start = as_vector(x0, "x0", exact=False)
        if start.size == 1 and callable(jac):
            jac = _with_one_entry(jac)
        statistical = blind or task.get("method") == "values"
        slope = partial(_slope, fun, start, args, bounds, task["rng"]) if statistical else None
        asked = _set_target(task, rest, start, slope)
        watch = _Watch(callback, rest.pop("maxiter", None))
        shown = rest.pop("disp", False)
        if rest:
            names = ", ".join(map(str, rest))
            warnings.warn(f"Unknown solver options: {names}", OptimizeWarning, stacklevel=3)
        box = as_box(bounds, start.size)
        if box.fixed.all() and not given(constraints):
            return _unmoved(box.lower, fun(box.lower, *args), 0, FIXED)
        if watch.most == 0:
            return _unmoved(start, fun(start, *args), CODES[Status.OUT_OF_CALLS], watch.limit)
        try:
            found = minimize(
                fun, start, jac, args=args, bounds=bounds, constraints=constraints,
                callback=watch.adapted(), **task,
            )  # fmt: skip
        except OracleError as failure:
            return _not_finite(failure, start)
        res = as_optimize_result(found)
        res.nfev += asked
        if watch.exhausted:
            res.status, res.message = CODES[Status.OUT_OF_CALLS], watch.limit
        elif watch.raised:
            res.message = "`callback` raised `StopIteration`."
        if shown:
            print(found)
        return res

    def lower(self) -> str:
        """What `shgo` looks up: a method of the user's own, which takes bounds and constraints."""
        return "_custom"

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"goldstein.scipy.Method({given})"

    @staticmethod
    def _task(options: dict[str, Any], blind: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Split the options into what `goldstein.minimize` takes, and the rest."""
        rest = dict(options)
        task = {name: rest.pop(name) for name in _OWN if name in rest}
        task.setdefault("rng", 0)
        for name in _LIMITS:
            if name in rest:
                task.setdefault("max_calls", rest.pop(name))
        known = method_options("values" if blind else task.get("method", "auto"))
        own = {name: rest.pop(name) for name in known if name in rest}
        return {**task, "options": own or None}, rest


def as_optimize_result(found: Result) -> OptimizeResult:
    """Return a result under SciPy's names."""
    res = OptimizeResult(
        x=found.x, fun=found.fun, jac=_combination(found.certificate), nit=found.nit,
        nfev=found.nfev, njev=found.ngev, status=CODES[found.status], success=found.success,
        message=found.message, certificate=found.certificate, seed=found.seed,
    )  # fmt: skip
    if found.violation is not None:
        res.update(
            multipliers=found.multipliers, bound_multipliers=found.bound_multipliers,
            maxcv=found.violation, constr_nfev=found.constr_nfev, constr_njev=found.constr_njev,
            constr_violation=found.violation,
        )  # fmt: skip
    return res


def _combination(certificate: Any) -> Vector | None:
    """The subgradient of f that was found: the certified combination of gradients near x."""
    if isinstance(certificate, GoldsteinCertificate | KKTCertificate):
        return certificate.weights @ certificate.gradients
    return certificate.mean if type(certificate) is ValuesCertificate else None


def _unmoved(x: Vector, value: Any, status: int, message: str) -> OptimizeResult:
    """Return the result of a search that never began."""
    return OptimizeResult(
        x=x, fun=float(value[0] if isinstance(value, tuple) else value), nit=0, nfev=1, njev=0,
        status=status, success=status == 0, message=message, certificate=None,
    )  # fmt: skip


def _not_finite(failure: OracleError, start: Vector) -> OptimizeResult:
    """Tell a start that is not finite, as SciPy does; the user's own exceptions pass."""
    if failure.__cause__ is not None:
        raise failure.__cause__
    if failure.value is None or failure.call > 1:
        raise failure
    return _unmoved(start, failure.value, CODES[Status.NOT_VERIFIED], str(failure))


def _with_one_entry(jac: Callable[..., Any]) -> Callable[..., Any]:
    """Return a derivative in one variable as a vector: a number will do in SciPy."""

    @wraps(jac)
    def gradient(x: Vector, *args: Any) -> Any:
        return np.atleast_1d(jac(x, *args))

    return gradient


def _slope(fun: Callable[..., Any], x: Vector, args: Any, bounds: Any, rng: Any) -> float:
    """Return how steep f is at x, about, by differences; 0 where they show noise, or a kink."""
    box, d = as_box(bounds, x.size), x.size
    ways = stream(seed_from(rng), 0, "slope").standard_normal((DIRECTIONS, d))
    ways *= STEP * max(1.0, float(np.linalg.norm(x))) / np.linalg.norm(ways, axis=1)[:, None]
    ahead, behind = (box.clip(x + s * np.vstack([ways, 0.5 * ways])) for s in (1.0, -1.0))
    lengths = np.linalg.norm(ahead - behind, axis=1)
    rises = [float(fun(a, *args) - fun(b, *args)) for a, b in zip(ahead, behind, strict=True)]
    whole, half = np.split(np.array(rises) / np.where(lengths > 0.0, lengths, 1.0), 2)
    agreed = np.abs(whole - half).max() <= AGREED * np.abs(whole).max()
    return float(np.sqrt(d * np.mean(whole**2))) if agreed else 0.0


def _set_target(
    task: dict[str, Any], rest: dict[str, Any], start: Vector, slope: Callable[[], float] | None
) -> int:
    """Take eps and delta out of the options, or derive them from tol and, for values, the slope.

    Return how many values that took: none where `max_calls` does not pay for a claim twice.
    """
    tol = rest.pop("tol", None)
    if tol is not None and not (is_number(tol) and 0 <= tol < np.inf):
        raise InputError(f"tol must be a finite number, zero or more, got {tol!r}.")
    tol = TOL if tol is None else max(float(tol), LEAST)
    eps, delta = rest.pop("eps", rest.pop("gtol", None)), rest.pop("delta", None)
    if delta is None:
        delta = max(tol * max(1.0, float(np.abs(start).max())), smallest_delta(start))
    asked = 0
    if eps is None:
        eps = tol
        if slope is not None:
            # The search has the accuracy, the statistical claim what it can have.
            task["options"] = {"search_eps": tol, **(task["options"] or {})}
            eps, most = max(tol, CLAIM), task.get("max_calls")
            if most is None or (is_number(most) and most >= 2 * least_cost(start.size)):
                asked = 4 * DIRECTIONS
                task |= {} if most is None else {"max_calls": most - asked}
                eps = max(eps, CLAIM * slope())
    task |= {"eps": eps, "delta": delta}
    return asked


class _Watch:
    """The user's callback with SciPy's OptimizeResult, and the limit on steps."""

    def __init__(self, callback: Callable[..., Any] | None, most: int | None) -> None:
        self.most = most
        self.steps, self.exhausted, self.raised = 0, False, False
        self.limit = f"the limit of maxiter = {most} descent steps was reached"
        self.tell = None if callback is None else teller(callback)

    def adapted(self) -> Callable[..., Any] | None:
        return None if self.tell is None and self.most is None else self._told

    def _told(self, intermediate_result: Any) -> Any:
        self.steps += 1
        answer = None
        if self.tell is not None:
            try:
                answer = self.tell(OptimizeResult(vars(intermediate_result)))
            except StopIteration:
                self.raised = True
                raise
        if self.most is not None and self.steps >= self.most:
            self.exhausted = True
            raise StopIteration
        return answer


#: The method without options of its own.
method = Method()
