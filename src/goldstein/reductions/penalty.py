"""Bounds and constraints: exact penalties that rise until the point is feasible.

The solver gets the penalised function in coordinates along equalities; what it finds is snapped to
bounds, restored to the constraints, and claimed to be KKT.

Feasible iterates: descent of the improvement function around ever better feasible points.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, linprog, minimize

from goldstein import errors
from goldstein.checker.arrays import Vector
from goldstein.construction.kkt_claim import Around
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.problem import Problem, System
from goldstein.reductions.base import DECIDED, FINAL, Answer, Options, Run, register_reduction
from goldstein.reductions.functions import Boxed, Chart, Coordinates, Penalised, Violation
from goldstein.reductions.limited import RUNAWAY, Limited, restored, unproved
from goldstein.result import Status
from goldstein.solvers import Evidence
from goldstein.solvers.base import VALUE_LIMIT

#: Values and gradients at most: a few, and a few for each variable.
CALLS, CALLS_PER_VARIABLE = 60, 4

#: In more variables its own steps, each a dense least squares problem, take longer than a search.
LARGEST = 200

#: Smooth steps take little more than one value for each gradient; more of them mean kinks.
VALUES_PER_GRADIENT, MORE_VALUES = 1.2, 8

#: It ends where f falls by less than this part of it, if not later.
FALL = 1e-7


class _Enough(Exception):
    """Ends the run from inside the function."""


def head_start(
    problem: Problem, x: Vector, enough: float, seen: Callable[[Vector, float], None]
) -> Vector | None:
    """Return the last point of a short smooth search from x, or None if it led nowhere.

    It ends where f falls by less than `enough`. `seen(y, f(y))` is told of every point it went to.
    f and the constraints are asked inside the bounds only.
    """
    box, objective = problem.box, problem.f
    free = ~box.fixed
    if free.sum() > LARGEST:
        return None
    most = min(CALLS + CALLS_PER_VARIABLE * x.size, (objective.limit - objective.calls) / 4)
    values = gradients = 0
    last = x

    def whole(z: Vector) -> Vector:
        y = x.copy()
        y[free] = z
        return box.clip(y)

    def fun(z: Vector) -> float:
        nonlocal values
        values += 1
        if values + gradients > most or values > VALUES_PER_GRADIENT * gradients + MORE_VALUES:
            raise _Enough
        return objective.value(whole(z))

    def jac(z: Vector) -> Vector:
        nonlocal gradients, last
        gradients += 1
        y = whole(z)
        slope = objective.gradient(y)
        last = y
        if gradients > 1:
            seen(y, objective.last_value)
        return slope[free]

    least = min(enough, FALL * (1.0 + abs(objective.last_value)))
    try:
        with np.errstate(all="ignore"):
            found = minimize(
                fun, x[free], jac=jac, method="SLSQP",
                bounds=Bounds(box.lower[free], box.upper[free]),
                constraints=_as_dicts(problem, whole, free),
                options={"ftol": least, "maxiter": 1000},
            )  # fmt: skip
        last = whole(np.asarray(found.x, dtype=np.float64))
    except errors.OutOfCalls:
        raise
    except (_Enough, ValueError):
        pass
    except errors.GoldsteinError as failure:
        # A kink, or a place where nothing is defined; what matters will be met again.
        problem.excuse(failure)
    return last if gradients > 1 and np.isfinite(last).all() else None


def _as_dicts(
    problem: Problem, whole: Callable[[Vector], Vector], free: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    """Write the system as SLSQP takes it: equalities, and functions that must not be negative."""
    system = problem.constraints
    sides = [
        ("eq", system.equal, 1.0, system.upper),
        ("ineq", np.isfinite(system.upper) & ~system.equal, -1.0, system.upper),
        ("ineq", np.isfinite(system.lower) & ~system.equal, 1.0, system.lower),
    ]

    def written(kind: str, which: Any, sign: float, limit: Vector) -> dict[str, Any]:
        return {
            "type": kind,
            "fun": lambda z: sign * (system.values(whole(z)) - limit)[which],
            "jac": lambda z: sign * system.rows(whole(z))[which][:, free],
        }

    return [written(*side) for side in sides if side[1].any()]


#: A head start ends where f falls by less than so many times eps * delta.
EARLY_FALL = 10.0

#: What a weight is multiplied by where its constraint stays violated, and how often at most.
RAISE, RAISES = 8.0, 10

#: After so many raises one looks whether there is any feasible point at all.
DOUBT = 3

#: Charts along curved equalities, before penalties take over; none next to a kink of theirs.
CHARTS, BESIDE = 10, 4.0


@register_reduction
class Penalty(Limited):
    """Runs of a solver on the penalised function, its weights rising until x is feasible."""

    stages = 40

    @classmethod
    def accepts(cls, problem: Problem, options: Options) -> bool:
        alone = problem.term is None and problem.stencil is None
        return problem.limited and alone and not options.feasible

    def __init__(self, run: Run, early: bool = True) -> None:
        super().__init__(run)
        self._early_too = early and run.solver.name == "auto"
        self._last: Answer | None = None
        #: What was proved while a search was still going on.
        self._proved: Answer | None = None
        self._along: Coordinates | Chart | None = None
        self._charts = CHARTS
        self._raises, self._feasible_known = 0, False

    def begin(self, x: Vector) -> Vector | Answer:
        """Return the answer where no penalty is needed for it; else choose the first weights."""
        found = super().begin(x)
        if isinstance(found, Answer):
            return found
        hopeless = _hopeless(self.problem, x)
        if hopeless is not None:
            found = self._least_violation(hopeless)
            if isinstance(found, Answer):
                return found
            if not self.problem.feasible(found):
                return Answer(hopeless, Status.INFEASIBLE)
        early = self._early(x) if self._early_too else None
        if early is not None:
            return early
        self.first_weights(x)
        return x

    def ended(self, x: Vector, status: Status) -> Answer:
        if status is not Status.NOT_VERIFIED:
            return super().ended(x, status)
        return replace(self._last or Answer(x, status), status=status)

    def stage(self, x: Vector, stage: int) -> Vector | Answer:
        """Minimise the penalised function once."""
        penalised = Penalised(self.problem, self._rho, self._wall, self._coordinates(x))
        target = replace(self._target, seed=self._target.seed + stage)
        try:
            outcome = self.solve(penalised, x, target, self._proves)
        except errors.OracleError as failure:
            # Far outside the feasible set a function need not be defined.
            if penalised.best is None or not self._rho.size or self._raises >= RAISES:
                raise
            self.problem.excuse(failure)
            return self._steeper(penalised, x)
        if penalised.steepest > self._wall:
            self._wall = 4.0 * penalised.steepest
        if self._proved is not None:
            return self._proved
        if penalised.left is not None:
            self._along, self._charts = None, self._charts - 1
            return penalised.left
        if outcome.status in RUNAWAY:
            return self._ran_away(penalised, x, outcome.status)
        y = penalised.invert(outcome.state.x)
        if outcome.status in (Status.WRONG_GRADIENT, Status.NOT_DETERMINISTIC):
            return self.blame(y, outcome.status)
        last = self._last = self.judged(y, self.evidence(outcome), outcome.status, penalised)
        if last.status in DECIDED or outcome.status in FINAL:
            return last
        if isinstance(self._along, Chart):
            # It may have led to its own end: penalties decide.
            self._along, self._charts = None, 0
            return y
        return self._next(penalised, y, outcome.status, last)

    def _ran_away(self, penalised: Penalised, x: Vector, status: Status) -> Vector | Answer:
        if penalised.best is not None and penalised.best[0] < VALUE_LIMIT:
            return Answer(penalised.best[1], Status.UNBOUNDED)
        return Answer(x, status) if self._raises >= RAISES else self._steeper(penalised, x)

    def _next(
        self, penalised: Penalised, y: Vector, ended: Status, last: Answer
    ) -> Vector | Answer:
        """Decide what a claim that failed calls for: a smaller ball, or larger weights."""
        x = last.x
        if self.run.late:
            return replace(last, status=Status.OUT_OF_TIME)
        excess = self.excess(y)
        if self.problem.feasible(x):
            # The claim failed for another reason.
            return x if self.closer() else replace(last, status=unproved(ended))
        self._raises += 1
        if self._raises >= RAISES or (self._raises == DOUBT and not self._feasible_known):
            found = self._least_violation(x)
            if isinstance(found, Answer):
                return found
            x, self._feasible_known = found, True
        if self._raises >= RAISES:
            return replace(last, status=Status.NOT_VERIFIED)
        self._raise(excess != 0.0, penalised)
        return x

    def _coordinates(self, x: Vector) -> Coordinates | Chart:
        if self._along is None:
            near = BESIDE * self.request.delta
            chart = Chart(self.problem, x, near) if self._charts else None
            along = chart if chart is not None and chart.made else None
            self._along = along or Coordinates(self.problem, x)
        return self._along

    def _steeper(self, penalised: Penalised, x: Vector) -> Vector:
        """Raise all weights and return the best point met."""
        self._raises += 1
        self._raise(np.ones(self._rho.size, dtype=bool), penalised)
        return x if penalised.best is None else penalised.best[1]

    def _raise(self, which: NDArray[np.bool_], penalised: Penalised) -> None:
        self._rho = np.where(which, RAISE * self._rho, self._rho)
        self._wall = max(self._wall, 4.0 * penalised.steepest)
        if self._rho.size:
            self._wall *= RAISE

    def _early(self, x: Vector) -> Answer | None:
        """Return the answer if a smooth search already finds it."""

        def seen(y: Vector, value: float) -> None:
            self.stop.x = y
            self.run.moved(y, value, self.problem.constraints.violation(y))
            if self.run.late:
                raise errors.OutOfTime("value")

        try:
            enough = EARLY_FALL * self.request.eps * self.request.delta
            place = head_start(self.problem, x, enough, seen)
        except errors.OutOfTime:
            return self.judged(self.best, None, Status.OUT_OF_TIME)
        if place is None:
            return None
        try:
            answer = self.judged(place, None, Status.NOT_VERIFIED, early=True)
        except errors.OracleError as failure:  # it led to where nothing is defined
            self.problem.excuse(failure)
            return None
        return answer if answer.status is Status.VERIFIED else None

    def _proves(self, evidence: Evidence, penalised: Boxed) -> bool:
        """Whether what the search knows so far is KKT: multipliers are freer than weights."""
        y = penalised.invert(evidence.x)
        answer = self.judged(y, evidence, Status.NOT_VERIFIED, penalised, early=True)
        self._proved = answer if answer.status is Status.VERIFIED else None
        return self._proved is not None

    def _least_violation(self, x: Vector) -> Vector | Answer:
        """Minimise the violation alone: a feasible point, or the answer that there is none."""
        problem, request = self.problem, self.request
        violation = Violation(problem.constraints, x)
        sizes = np.linalg.norm(problem.constraints.rows(x), axis=1)
        small = float(sizes[sizes > 0].min(initial=1.0))
        alone = Problem(CountedOracle(_Billed(violation, problem)), problem.box, System((), x))
        run = replace(
            self.run, problem=alone, meta={**self.run.meta, "function": violation.title},
            request=replace(request, eps=min(request.eps, 1e-3 * small)),
            callback=None, progress=None,
        )  # fmt: skip
        found, free = Penalty(run, early=False).search(x), np.zeros(x.size, dtype=bool)
        place = restored(problem, found.x, request.delta, free, request.seed)
        if problem.feasible(place):
            return place
        if found.status is Status.VERIFIED:
            # Constraints, taken as linear, could all be met within the ball.
            sizes = np.linalg.norm(problem.constraints.rows(found.x), axis=1)
            if (np.abs(self.excess(found.x)) <= request.delta * sizes).all():
                return Answer(found.x, Status.DEGENERATE)
            return replace(found, status=Status.INFEASIBLE)
        return Answer(found.x, found.status) if found.status in FINAL else found.x


#: Linear constraints violated by less than this, relative to their limits, may well be met.
ROUNDING = 1e-9

#: A linear program with more entries than this would cost more than the search for a point.
LARGE = 10**6


def _hopeless(problem: Problem, x: Vector) -> Vector | None:
    """Return where linear constraints are violated least, if no point meets them and the bounds."""
    which = problem.constraints.linear
    if not which.any():
        return None
    rows = np.vstack([group.parts for group in problem.constraints.groups if group.linear])
    lower, upper = problem.constraints.lower[which], problem.constraints.upper[which]
    large = len(rows) * (len(rows) + x.size) > LARGE
    if large or ((rows @ x >= lower) & (rows @ x <= upper)).all():
        return None
    excess = -np.eye(len(rows))
    sides, limits = np.block([[rows, excess], [-rows, excess]]), np.concatenate([upper, -lower])
    kept = np.isfinite(limits)
    box = [*zip(problem.box.lower, problem.box.upper), *[(0.0, None)] * len(rows)]
    cost = np.concatenate([np.zeros(x.size), np.ones(len(rows))])
    found = linprog(cost, sides[kept], limits[kept], bounds=box)
    slack = ROUNDING * (1.0 + float(np.abs(limits[kept]).max()))
    return None if found.status or found.fun <= slack else problem.box.clip(found.x[: x.size])


class _Billed(Oracle):
    """The violation as an objective; its calls are paid from the budget of the problem."""

    def __init__(self, inner: Violation, problem: Problem) -> None:
        self.inner, self.problem, self.dim = inner, problem, inner.dim

    @property
    def name(self) -> str:
        return f"the {self.inner.title}"

    def _pay(self, values: int, gradients: int) -> None:
        if self.problem.f.calls >= self.problem.f.limit:
            raise errors.OutOfCalls("violation")
        self.problem.f.spend(values, gradients)

    def value(self, x: Vector) -> float:
        self._pay(1, 0)
        return self.inner.value(x)

    def gradient(self, y: Vector) -> Vector:
        self._pay(0, 1)
        return self.inner.gradient(y)


class Improvement(Boxed):
    """H around one feasible point: whatever lowers it is feasible, and better.

    For a feasible point x with value f(x), and weights s_i > 0,

        H(y) = max(f(y) - f(x), s_i (c_i(y) - ub_i), s_i (lb_i - c_i(y))).

    H(x) = 0 by its first term, and H(y) < 0 means that f has fallen and that all constraints
    hold strictly. Gradients of H that cancel combine gradients of f and of constraints (Fritz
    John); divided by the share of f they are a KKT certificate.

    Parameters
    ----------
    problem : Problem
        Without equalities.
    value : float
        f at the feasible point.
    scales : ndarray, shape (m,)
        The weights s_i.
    wall : float
        Weight of the distance to the box.
    """

    def __init__(self, problem: Problem, value: float, scales: Vector, wall: float) -> None:
        super().__init__(problem, wall)
        self.level, self.scales = value, scales

    def inside(self, y: Vector) -> float:
        return max(self._fall(y), float(self._gaps(y).max(initial=-np.inf)))

    def _fall(self, y: Vector) -> float:
        return self.objective(y) - self.level

    def slope(self, y: Vector) -> Vector:
        system = self.problem.constraints
        gaps = self._gaps(y)
        worst = int(gaps.argmax()) if gaps.size else 0
        if not gaps.size or self._fall(y) >= gaps[worst]:
            return self.objective_slope(y)
        # A gradient of a constraint costs no call of f.
        i = worst % system.size
        sign = 1.0 if worst < system.size else -1.0
        return sign * self.scales[i] * system.rows(y)[i]

    def stops(self, y: Vector, far: float) -> NDArray[np.bool_]:
        """Return the constraints that decide H at y though their limits are further than `far`."""
        gaps = self._gaps(y).reshape(2, -1)
        top = max(self._fall(y), float(gaps.max(initial=-np.inf)))
        try:
            lengths = np.linalg.norm(self.problem.constraints.rows(y), axis=1)
        except errors.KinkError:
            return np.zeros(gaps.shape[1], dtype=bool)
        distant = -gaps > far * self.scales * lengths
        return (distant & (gaps >= top - 0.1 * abs(top))).any(axis=0)

    def _gaps(self, y: Vector) -> Vector:
        """Return how far each limit is exceeded, times its weight: upper ones, then lower ones."""
        system = self.problem.constraints
        if not system.size:
            return np.zeros(0)
        values = system.values(y)
        above, below = values - system.upper, system.lower - values
        return np.concatenate([self.scales * above, self.scales * below])


def require_feasible(problem: Problem, x: Vector) -> None:
    """Refuse a start from which feasible iterates cannot be had."""
    system = problem.constraints
    advice = "drop options={'feasible': True}"
    if system.equal.any():
        name = system.name(int(np.flatnonzero(system.equal)[0]))
        raise errors.InputError(
            f"feasible iterates need room inside the constraints, and {name} is an equality; "
            f"solve it for a variable, or {advice}."
        )
    excess = np.abs(system.excess(system.values(x)))
    if excess.any():
        worst = int(excess.argmax())
        raise errors.InputError(
            f"feasible iterates need a feasible x0, and {system.name(worst)} is violated there by "
            f"{excess[worst]:.3g}; pass a feasible point (gs.minimize(gs.Violation(constraints, "
            f"x0), x0, bounds=bounds, ...) finds one), or {advice}."
        )


#: Constraints count so many times their natural size, and so many times more where one of them
#: stops a stage although its limit is so many deltas away: f may fall until limits are close.
FIRM, FIRMER, FAR = 8.0, 4.0, 1000.0

#: The part of delta after which a stage that moves less than it is the last.
STILL = 1e-2


@register_reduction
class Feasible(Limited):
    """Every accepted point satisfies bounds and constraints, and is lower than the last centre."""

    stages = 200

    @classmethod
    def accepts(cls, problem: Problem, options: Options) -> bool:
        return options.feasible and problem.limited and problem.stencil is None

    def begin(self, x: Vector) -> Vector | Answer:
        require_feasible(self.problem, x)
        found = super().begin(x)
        if isinstance(found, Answer):
            return found
        self.first_weights(x)
        self._value = self.problem.f.value(x)
        self._last = Answer(x, Status.NOT_VERIFIED)
        return x

    def stage(self, x: Vector, stage: int) -> Vector | Answer:
        problem, request = self.problem, self.request
        function = Improvement(problem, self._value, FIRM * self._rho, FIRM * self._wall)
        outcome = self.solve(function, x, replace(self._target, seed=request.seed + stage))
        self._wall = max(self._wall, function.steepest)
        y = function.invert(outcome.state.x)
        # An improvement below 0 is a fall of f at a feasible point.
        fallen = outcome.state.fx < 0.0 and not self.excess(y).any()
        far = float(np.linalg.norm(y - x)) if fallen else 0.0
        stopped = function.stops(y, FAR * request.delta)
        self._rho = np.where(stopped, FIRMER * self._rho, self._rho)
        if fallen:
            self.stop.x = x = y
            try:
                self._value = problem.f.value(y)
            except errors.OutOfCalls:
                return replace(self._last, x=y, status=Status.OUT_OF_CALLS)
        if outcome.status in RUNAWAY or self._value < VALUE_LIMIT:
            return Answer(x, Status.UNBOUNDED)
        if outcome.status in (Status.WRONG_GRADIENT, Status.NOT_DETERMINISTIC):
            return self.blame(x, outcome.status)
        ended = outcome.status in FINAL or self.run.late
        if ended or far <= STILL * request.delta:
            last = self._last = self.judged(x, self.evidence(outcome), outcome.status, function)
            if last.status in DECIDED or ended:
                return last
            if not self.closer():
                return replace(last, status=Status.NOT_VERIFIED)
        return x

    def placed(self, around: Around) -> Vector:
        """Return x on the bounds that carry a normal, if it stays feasible there."""
        moved = super().placed(around)
        return around.x if self.excess(moved).any() else moved
