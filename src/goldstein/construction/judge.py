"""The certificate layer's answer to a solver's evidence."""

import contextlib
import math
import time
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np

from goldstein import errors
from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.verifying import C, confirmed
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.blackbox.differences import HEAVY
from goldstein.checker.constrained.limits import as_box
from goldstein.checker.rounding import norm_upper
from goldstein.construction import goldstein_claim as claims
from goldstein.construction.cold import Cold, better, in_ball, survived
from goldstein.numerics.hull import MANY_VARIABLES
from goldstein.numerics.streams import size_of, smallest_delta, stream, uniform_in_balls
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.diagnose import gradient_is_wrong, likely_resolution, required_resolution
from goldstein.result import Status
from goldstein.solvers import Evidence, Request, Solver, State
from goldstein.solvers.base import value_of
from goldstein.solvers.gather import Enrichment, enrich
from goldstein.solvers.logic.questions import TRIAL
from goldstein.solvers.loop import LONG, Outcome

#: Points a solver queried at unperturbed places are displaced by this part of delta.
JITTER = 1e-3

#: The others too, by a little: that they were drawn at random is only what the solver says; and by
#: so many times what f resolves.
LEAST, WIDE = 2.0**-30, 16.0

#: And by no less than this part of the point: many times what `verify` displaces by, or a point
#: so close to a kink would fail there every second time.
VISIBLE = 2.0**-38

#: Two values at one point differ by no more than this part of them, where threads add up sums.
ROUNDING = 2.0**-40

#: Endings after which nothing about the last point is worth a call.
_NOTHING_TO_SAY = (
    Status.UNBOUNDED,
    Status.NOT_DETERMINISTIC,
    Status.BALL_TOO_SMALL,
    Status.WRONG_GRADIENT,
)

#: Seconds that the last word may take in any case.
QUICK = 0.05

#: From this rejection on, at every power of two, the judge looks for itself.
AFRESH = 4

#: Calls that a look at one point takes: who has them claims nothing without it.
ONE_LOOK = 3

#: Displacements tried where one meets a kink: in float64 that can happen, twice hardly.
DRAWS = 3


@dataclass
class Judge:
    """The certificate layer's answer to evidence: ask the function again, and decide.

    After a run that was out of time, `grace` seconds are left for the last word.
    """

    oracle: CountedOracle
    request: Request
    meta: dict[str, Any]
    check_gradient: bool = True
    grace: float = math.inf
    #: Steps that f was found to resolve.
    resolution: Vector | float = 0.0
    trials: int = 0
    _looked: set[bytes] = field(default_factory=set)

    def __call__(
        self, evidence: Evidence
    ) -> tuple[GoldsteinCertificate | None, tuple[Matrix, Matrix] | None]:
        if self.request.delta < smallest_delta(evidence.x):
            size = size_of(evidence.x)
            raise errors.BallTooSmallError(
                f"float64 has too few points within {self.request.delta:g} of an x of size {size:g}"
            )
        built, fresh = self._ask_again(evidence)
        eps = self.request.eps
        certificate = None
        if built is not None and built.best()[0] <= eps:
            certificate = self._claimed(built)
        # After some rejections the judge goes on from the displaced points without the solver. On
        # a sharp minimum the solver's points crowd at the kinks, where no claim survives, and it
        # may bring them again and again; others, drawn afresh, certify the point in a few calls.
        again = self.trials >= AFRESH and self.trials & (self.trials - 1) == 0
        if again and (certificate is None or certificate.eps > eps):
            certificate = self._afresh(evidence.x, Enrichment(list(fresh[0]), list(fresh[1])))
        met = certificate is not None and certificate.eps <= eps
        return (certificate, None) if met else (None, fresh)

    def asked_again(self, evidence: Evidence) -> tuple[Any, Any]:
        """Return the evidence with fresh gradients where these still cancel; claim nothing."""
        built, fresh = self._ask_again(evidence)
        if built is None or built.best()[0] > self.request.eps:
            return None, fresh
        return replace(evidence, points=fresh[0], gradients=fresh[1]), None

    def _claimed(self, built: claims.Construction) -> GoldsteinCertificate | None:
        """State a claim, after a look at how fine f is, and at what the claim rests on."""
        try:
            built.place.resolution = self.look(built.x, built.rests_on())
            certificate = built.claim(self.request.eps, self.meta)
            if certificate is not None and certificate.eps <= self.request.eps:
                certificate = self.confirmed(certificate)
        except errors.OutOfCalls:  # nobody knows whether more would hold
            certificate = built.unseen(self.meta)
        # What nobody has looked at is no success: it rests on what a solver says.
        met = certificate is not None and certificate.eps <= self.request.eps
        return None if met and not built.looked else certificate

    def confirmed(self, certificate: C) -> C | None:
        """Look at what a claim rests on; where displacements are not tiny, check it whole."""
        self.look(certificate.x, claims.heaviest(certificate))
        fine = np.max(self.resolution) <= claims.COARSE * self.request.delta
        if fine or self.oracle.plain.is_written or certificate.x.size >= MANY_VARIABLES:
            return certificate
        box = as_box(None, certificate.x.size)
        seed = self.request.seed
        return confirmed(certificate, self.oracle, box, None, seed, self.check_gradient)

    def _afresh(self, x: Vector, found: Enrichment) -> GoldsteinCertificate | None:
        if x.size >= MANY_VARIABLES:
            return None  # hundreds of gradients more than `max_memory` allows for
        request, left = self.request, self.oracle.limit - self.oracle.calls
        spare = left - 6 * (2 * x.size + 50)
        keep = int(spare) if 0 < spare < math.inf else 0
        with (
            contextlib.suppress(errors.OutOfCalls, errors.InputError, errors.UnresolvedError),
            self.oracle.reserved(keep),
        ):
            meta = {"seed": request.seed, **self.meta}
            return Cold(self.oracle, x, request, meta).certificate(found)
        return None

    def suspect(self, state: State) -> None:
        """The run takes long: is the function to blame?"""
        if self.oracle.calls >= LONG:
            self.require_one_value(state.x)
        radius = self.request.delta
        if state.steps == 0:
            # f does not fall. Looked at where the ball may be too small.
            radius = max(radius, 1e-3 * max(1.0, float(np.abs(state.x).max())))
        if self.check_gradient and gradient_is_wrong(
            self.oracle, state.x, radius, self.request.seed
        ):
            raise errors.WrongGradientError(self.oracle.name)

    def require_one_value(self, x: Vector) -> None:
        """Ask for f at one point twice: among noisy values no step can be judged."""
        if not self.oracle.has_value:
            return
        once, again = value_of(self.oracle, x, TRIAL), self.oracle.trial_value(x)
        noise = abs(again - once)
        rounding = ROUNDING * max(abs(again), abs(once))
        if noise > max(rounding, self.request.eps * self.request.delta / 8):
            raise errors.NotDeterministicError(self.oracle.name, noise, "values")

    def look(self, x: Vector, known: list[tuple[Vector, Vector]]) -> Vector | float:
        """Return what f resolves near x; refuse gradients that values contradict.

        What was looked at before is not asked again.
        """
        new = [(y, g) for y, g in known if y.tobytes() not in self._looked]
        if not self.check_gradient or len(known) - len(new) >= min(len(known), HEAVY):
            return self.resolution
        request = self.request
        found = required_resolution(self.oracle, x, request.delta, request.seed, new)
        self.resolution = np.maximum(self.resolution, found)
        self._looked.update(y.tobytes() for y, _ in new[:HEAVY])
        return self.resolution

    def last_word(self, solver: Solver, outcome: Outcome) -> GoldsteinCertificate | None:
        """What a run that was cut short can prove of its last point, with the calls kept back."""
        state = outcome.state
        silent = outcome.status in _NOTHING_TO_SAY or not self.oracle.has_gradient
        if silent or self.request.delta < smallest_delta(state.x):
            return None
        hurry = outcome.status is Status.OUT_OF_TIME
        brief = hurry and state.x.size >= MANY_VARIABLES
        until = time.perf_counter() + max(self.grace, QUICK) if hurry else math.inf
        # What is found out of f now: the run has ended for another reason.
        cut = contextlib.suppress(
            errors.OutOfCalls, errors.BallTooSmallError, errors.UnresolvedError
        )
        with cut, self.oracle.until(until):
            # Where the clock did not even allow for f(x0), there is no search to ask.
            evidence = None if math.isnan(state.fx) else solver.best_evidence(state)
            if brief and evidence is not None:
                # As many as can be looked at, beside and again, in the seconds of grace.
                seconds = outcome.history.time[-1] / max(1, self.oracle.calls)
                evidence = _heaviest(evidence, max(1, int(self.grace / (4.0 * seconds))))
            found = self._known(evidence, state.x)
            found.value = state.fx if math.isfinite(state.fx) else None
            evidence = None  # what is not held is room for what follows
            # Half of the calls add gradients to those known here, half look beside them.
            most = getattr(state, "most_gradients", math.inf) - len(found.points)
            with self.oracle.reserved(int((self.oracle.limit - self.oracle.calls) // 2)):
                enrich(
                    self.oracle, state.x, self.request, found, patience=state.x.size + 10,
                    max_gradients=0 if hurry and found.points else 1 if hurry else max(0, most),
                )  # fmt: skip
            if not found.points:
                return None
            rows, claim = in_ball(found, state.x, self.request.delta), None
            if len(rows[0]):
                if self.oracle.limit - self.oracle.calls >= ONE_LOOK:
                    self.look(state.x, [(rows[0][0], rows[1][0])])
                claim = self._claimed(self._state(state.x, *rows))
            if outcome.status is Status.STALLED and not (claim and claim.eps <= self.request.eps):
                claim = better(claim, self._afresh(state.x, Enrichment(value=found.value)))
            special = state.x.size >= MANY_VARIABLES or self.oracle.plain.is_written
            special = special or self.oracle.limit - self.oracle.calls < ONE_LOOK
            if claim is None or claim.eps <= self.request.eps or special:
                return claim
            return self.left_of(claim)
        return None

    def left_of(self, claim: C) -> C:
        """Return what a look and checks leave of a claim that is not what was asked for."""
        steps = self.look(claim.x, claims.heaviest(claim))
        return survived(claim, self.oracle, self.request, steps)

    def _known(self, evidence: Evidence | None, x: Vector) -> Enrichment:
        """Return what the solver knows about gradients at random points around x."""
        found = Enrichment()
        if evidence is not None and np.array_equal(evidence.x, x):
            if evidence.gradients is None:
                found.points, found.gradients = map(list, self._ask_again(evidence)[1])
            else:
                safe = np.flatnonzero(evidence.perturbed)
                found.points = list(claims.taken(evidence.points, safe))
                found.gradients = list(claims.taken(evidence.gradients, safe))
        return found

    def _state(self, x: Vector, points: Matrix, gradients: Matrix) -> claims.Construction:
        request = self.request
        self.oracle.require_visible(x, request.delta)
        built = claims.Construction(self.oracle, x, request.delta, points, gradients, request.seed)
        built.place.resolution = self.resolution
        return built

    def _displaced(self, evidence: Evidence) -> tuple[list[int], Matrix, Matrix]:
        """Ask for all gradients at once, each a little aside, and again where one met a kink.

        Returns which were to be had, their points and themselves. In many variables the points of
        the evidence are moved, not copied.
        """
        x, delta = evidence.x, self.request.delta
        rng, many = stream(self.request.seed, self.trials, "judge"), x.size >= MANY_VARIABLES
        # A point that a check may move across a kink is moved before.
        known = (
            [] if many or evidence.gradients is None else zip(evidence.points, evidence.gradients)
        )
        step = max(float(np.max(self.resolution)), likely_resolution(self.oracle, x, delta, known))
        least = max(LEAST, min(JITTER, WIDE * step / delta))
        shares = [least if safe else JITTER for safe in evidence.perturbed.tolist()]
        wanted = list(range(len(shares)))
        points, gradients = evidence.points, np.empty(evidence.points.shape)
        if not many:
            points = np.empty(points.shape)
        asked: list[int] = []
        for left in reversed(range(DRAWS)):
            for part in [[j] for j in wanted] if many else [wanted]:
                reach = [shares[j] for j in part]
                points[part] = _displace(rng, claims.taken(evidence.points, part), x, delta, reach)
            away = claims.distances(claims.taken(points, wanted), x)
            wanted = list(compress(wanted, [distance <= delta for distance in away]))
            kinks = []
            for j, gradient in zip(wanted, self.oracle.gradients_at(claims.taken(points, wanted))):
                if gradient is None or (left and _crossed(evidence, j, gradient)):
                    kinks.append(j)
                else:
                    gradients[j] = gradient
                    asked.append(j)
            if not kinks:
                break
            wanted = kinks
        asked.sort()
        return asked, claims.taken(points, asked), claims.taken(gradients, asked)

    def _ask_again(
        self, evidence: Evidence
    ) -> tuple[claims.Construction | None, tuple[Matrix, Matrix]]:
        self.trials += 1
        asked, points, gradients = self._displaced(evidence)
        fresh = points, gradients
        if not asked:
            return None, fresh
        built = self._state(evidence.x, *fresh)
        if evidence.gradients is not None and evidence.x.size < MANY_VARIABLES:
            # What the solver was told nearby is what a claim about a point finds beside it.
            moves = points - claims.taken(evidence.points, asked)
            squares = np.vecdot(moves, moves)
            far = squares >= np.vecdot(built.radii, built.radii)
            for j in far.nonzero()[0].tolist():
                built.tell(j, evidence.gradients[asked[j]], math.sqrt(squares[j]))
        return built, fresh


def _crossed(evidence: Evidence, j: int, gradient: Vector) -> bool:
    """Is a kink between a point that was drawn at random and where it has been moved?"""
    if evidence.gradients is None or not evidence.perturbed[j]:
        return False
    change = norm_upper(gradient - evidence.gradients[j])
    return change > claims.JUMP * norm_upper(gradient)


def _heaviest(evidence: Evidence, most: int) -> Evidence:
    """Keep the points that weigh most."""
    if evidence.weights.size <= most:
        return evidence
    kept = np.argsort(-evidence.weights)[:most]
    gradients = None if evidence.gradients is None else evidence.gradients[kept]
    weights = evidence.weights[kept] / evidence.weights[kept].sum()
    return Evidence(evidence.x, evidence.points[kept], weights, evidence.perturbed[kept], gradients)


def _displace(
    rng: np.random.Generator, points: Matrix, x: Vector, delta: float, shares: list[float]
) -> Matrix:
    """Move points at random by their share of delta (no less than `verify` sees), in the ball."""
    centres = points - x
    sizes = np.abs(points).max(axis=1).tolist()
    reaches = [
        max(share * delta, min(VISIBLE * size, JITTER * delta))
        for share, size in zip(shares, sizes)
    ]
    for j, square in enumerate(np.vecdot(centres, centres).tolist()):
        room, distance = delta - 2.0 * reaches[j], math.sqrt(square)
        if distance > room:
            centres[j] *= room / distance
    centres += x
    return uniform_in_balls(rng, centres, reaches)


def last_calls(oracle: CountedOracle, dim: int) -> int:
    """Calls kept back, so that a run that is cut short can still prove something."""
    return int(min(2 * (dim + 2), oracle.limit // 10))


def describe(oracle: Oracle, method: str, seed: int, given: Any) -> dict[str, Any]:
    """Return the remarks of a certificate: what, and how."""
    meta: dict[str, Any] = {"function": oracle.name, "method": method, "seed": seed}
    dtype = getattr(given, "dtype", None)
    if dtype is not None and dtype != np.float64:
        meta["converted_from"] = str(dtype)
    return meta
