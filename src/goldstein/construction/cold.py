"""A certificate at a given point, from nothing but the function; and a quick look at it.

For the quick look few gradients are taken, each where the shortest one is to be expected. Where a
function falls, its gradients shrink along the way down, so the second gradient is taken at the far
end of the ball. From then on gradients are compared with an affine function: the next one is taken
where that is shortest within the ball, and a little further against what is left there. A handful
of them comes as near to the smallest bound as dozens of random ones, and the last ones are short by
themselves, so that a claim rests on one or two points: these have to be checked.
"""

import math
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.verifying import CHECKS, C, confirmed
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.limits import as_box
from goldstein.checker.rounding import distance_upper, norms_upper
from goldstein.construction.goldstein_claim import FINE, UNSEEN, Construction
from goldstein.errors import InputError, KinkError, OutOfCalls, UnresolvedError
from goldstein.numerics import streams
from goldstein.numerics.hull import Hull, min_norm_weights
from goldstein.oracles import CountedOracle
from goldstein.oracles.diagnose import STRICTLY, required_resolution
from goldstein.solvers import Request
from goldstein.solvers.gather import ROUNDED, Enrichment, enrich

#: Halvings of the interval in which the multiplier of the ball is looked for, in powers of ten.
HALVINGS, SMALLEST, LARGEST = 40, -13.0, 6.0


def shortest_in_ball(offsets: Matrix, gradients: Matrix, radius: float) -> Vector:
    """Return weights that sum to 1, negative ones too, with a short combination of gradients.

    Were the gradient an affine function of the point, the combination of the gradients would be the
    gradient at the combination of the points; `offsets` are these points from the centre of a ball,
    and the weights keep their combination within `radius`, up to rounding, where that is possible.

    Examples
    --------
    >>> offsets = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> gradients = np.array([[3.0, 1.0], [2.0, 1.0]])
    >>> shortest_in_ball(offsets, gradients, 10.0).round(6)
    array([-2.,  3.])
    >>> shortest_in_ball(offsets, gradients, 2.0).round(6)
    array([-1.,  2.])
    """
    squared, far = gradients @ gradients.T, offsets @ offsets.T
    squared, far_scaled = squared / (np.trace(squared) or 1.0), far / (np.trace(far) or 1.0)
    ones, small = np.ones(len(far)), 1e-14 * np.eye(len(far))

    def weights(power: float) -> tuple[Vector, float]:
        """The shortest combination, with a price for its distance from the centre."""
        w: Vector = np.linalg.lstsq(squared + 10.0**power * far_scaled + small, ones)[0]
        w /= w.sum()
        return w, math.sqrt(max(float(w @ far @ w), 0.0))

    found, distance = weights(SMALLEST)
    if distance <= radius:
        return found
    low, high = SMALLEST, LARGEST
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if weights(middle)[1] > radius else (low, middle)
    return weights(high)[0]


#: A gradient that shortens the vector by less than this share is the last, unless so many more like
#: it would do.
GAIN, MORE = 0.02, 4.0

#: Gradients at most.
MOST = 24

#: The first gradient is taken within this part of the radius: next to x, and on no kink.
NEAR = 0.125

#: How far one goes beyond the place where the affine function is shortest, as a part of the radius.
BEYOND = 0.15


def look_at_far_ends(
    oracle: CountedOracle, x: Vector, radius: float, eps: float, seed: int, found: Enrichment
) -> None:
    """Add gradients to `found` until the bound is eps or hardly improves, and look for descent."""
    rng = streams.stream(seed, len(found.points), "far ends")
    hull = Hull(x.size, 8)
    inner = streams.inner_radius(x, radius)
    y, previous = streams.uniform_in_ball(rng, x, NEAR * radius), math.inf
    try:
        for _ in range(MOST):
            try:
                g = oracle.gradient(y)
            except KinkError:
                found.kinks += 1
                y = streams.uniform_in_ball(rng, x, NEAR * radius)
                continue
            found.points.append(y)
            found.gradients.append(g)
            hull.add(g)
            m = hull.solve()[1]
            norm = math.sqrt(m @ m)
            steepest = max(math.sqrt(g @ g) for g in found.gradients)
            gain = previous - norm
            if norm <= eps or (gain < GAIN * previous and norm - MORE * gain > eps):
                break
            previous = norm
            ratio = streams.narrow(norm / steepest, x.size)
            reach = inner * (1.0 - ratio * rng.random() / 8.0)
            offset = _next_offset(np.array(found.points), x, hull.gradients, m, reach)
            y = x + (1.0 - ratio / 8.0) * offset + reach * ratio / 8.0 * streams.tilt(rng, m, norm)
        if norm <= eps:
            _keep_few(found, eps)
        elif len(found.points) > 1 and oracle.has_value:
            # The value at the last point came with its gradient where that is cheap.
            there, offset = oracle.value(found.points[-1]), found.points[-1] - x
            here = oracle.value(x)
            least = max(0.25 * radius * norm, ROUNDED * abs(here))
            step = math.sqrt(offset @ offset)
            found.saw(here - there, least, offset / (step or 1.0), step)
    except OutOfCalls:
        return


def _next_offset(offsets: Matrix, x: Vector, gradients: Matrix, m: Vector, radius: float) -> Vector:
    """Return where to look next, from the centre of the ball; the points become offsets from it."""
    if len(offsets) == 1:
        return m * (-radius / math.sqrt(m @ m))
    offsets -= x
    weights = shortest_in_ball(offsets, gradients, radius)
    offset, left = weights @ offsets, weights @ gradients
    offset -= BEYOND * radius / (math.sqrt(left @ left) or 1.0) * left
    offset *= min(1.0, radius / math.sqrt(offset @ offset))
    return offset


def _keep_few(found: Enrichment, eps: float) -> None:
    """Keep few rows whose hull reaches eps: beside every row of a claim one has to look again."""
    rows = np.array(found.gradients)
    chosen = [int(np.einsum("ij,ij->i", rows, rows).argmin())]
    while len(chosen) < len(rows):
        m = min_norm_weights(rows[chosen]) @ rows[chosen]
        entering = int((rows @ m).argmin())
        if m @ m <= eps**2 or entering in chosen:
            break
        chosen.append(entering)
    m = min_norm_weights(rows[chosen]) @ rows[chosen]
    if m @ m <= eps**2:
        found.points = [found.points[j] for j in chosen]
        found.gradients = [found.gradients[j] for j in chosen]


#: How often the search goes on after a claim that would not have survived.
SEARCHES = 4

#: A function of which so many calls do not say what it resolves hardly does.
MANY_CALLS = 100

#: How much shorter a vector is looked for after a claim that came out too large.
CLOSER = 4.0

#: One looks this much farther than what f was found to resolve, where that is within this part of
#: the ball: a check may find a coarser step.
COARSER, WIDEST = 32.0, 2.0**-8

#: How much smaller a ball is tried where values do not resolve this one.
SMALLER = 64.0


def farther(resolution: Vector | float, delta: float) -> Vector | float:
    """Return how far beside points one looks who says of a point what holds, once and for all."""
    fine = COARSER * float(np.max(resolution)) <= WIDEST * delta
    return (COARSER if fine else 1.0) * resolution


def gathered(
    oracle: CountedOracle, x: Vector, target: Request, found: Enrichment, deadline: float
) -> Enrichment:
    """Gather gradients around x; some calls are kept back to look beside those that matter."""
    left = int(min(oracle.limit - oracle.calls, 2.0**62))
    with oracle.reserved(min(x.size + 41, left // 2)):
        # Gradients without visible gain before the search gives up.
        patience = max(30, min(x.size, 400))
        enrich(oracle, x, target, found, patience=patience, deadline=deadline)
    return found


def in_ball(found: Enrichment, x: Vector, delta: float) -> tuple[Matrix, Matrix]:
    """Return the points within delta of x, and their gradients."""
    near = [j for j, y in enumerate(found.points) if distance_upper(y, x) <= delta]
    points = np.array([found.points[j] for j in near]).reshape(-1, x.size)
    gradients = np.array([found.gradients[j] for j in near]).reshape(-1, x.size)
    if len(near) == len(found.points):  # once is enough, where they are long
        found.points, found.gradients = list(points), list(gradients)
    return points, gradients


@dataclass
class Cold:
    """Gathers gradients around a point, and states the strongest claim that survives its check.

    Where a claim would rest on points next to a kink, the gradients found beside them are added,
    and the search goes on without those points. The seed is that of the remarks.
    """

    oracle: CountedOracle
    x: Vector
    request: Request
    meta: dict[str, Any]
    deadline: float = math.inf
    check_gradient: bool = True
    confirm: bool = True

    def __post_init__(self) -> None:
        oracle = self.oracle
        self._best: GoldsteinCertificate | None = None
        # What is looked for, in which ball; and what f was found to resolve.
        self._target = replace(self.request, seed=int(self.meta["seed"]))
        self._resolution: Vector | float = 0.0
        self._refused: UnresolvedError | None = None
        # Calls that are kept back to check the claim in the end.
        checks = min(CHECKS * (8 * self.x.size + 40), (oracle.limit - oracle.calls) // 3)
        self._keep = checks if self.confirm else 0

    def certificate(self, found: Enrichment) -> GoldsteinCertificate:
        """Return the claim; what is known already is added to."""
        for _ in range(SEARCHES):
            with self._keeping():
                gathered(self.oracle, self.x, self._target, found, self.deadline)
            target = self._target
            self.oracle.require_visible(self.x, target.delta)
            if not found.points:
                break
            rows = in_ball(found, self.x, target.delta)
            built = Construction(self.oracle, self.x, target.delta, *rows, target.seed)
            if not self._resolved(built):
                found = Enrichment(value=found.value)
                continue
            with self._keeping():
                claim = built.claim(self.request.eps, *remarks(found, self.meta))
            self._best = better(self._best, claim)
            if not self._goes_on(built):
                break
            found.points, found.gradients = built.steady()
        if self._best is None:
            raise InputError(
                f"no gradient could be had within {self._target.delta:g} of x ({found.kinks} kinks "
                "met); raise max_calls or delta."
            )
        return self._confirmed(self._best)

    def _keeping(self) -> AbstractContextManager[None]:
        left = self.oracle.limit - self.oracle.calls
        return self.oracle.reserved(int(max(0, min(self._keep, left))))

    def _resolved(self, built: Construction) -> bool:
        """See how fine f is; False where the search goes on in a smaller ball."""
        left, delta = self.oracle.limit - self.oracle.calls, built.delta
        try:
            if self.check_gradient:  # of these points: others may have been next to a kink
                known = built.rests_on()
                asked = (self.oracle, self.x, delta, built.seed, known)
                self._resolution = required_resolution(*asked)
        except OutOfCalls:
            if left >= MANY_CALLS:
                raise UnresolvedError(STRICTLY * delta) from None
        except UnresolvedError as unresolved:
            if self._refused is not None or delta / SMALLER < streams.smallest_delta(self.x):
                raise self._refused or unresolved from None
            # What is proved of a smaller ball is true of this one, and f may be smooth there.
            self._target, self._refused = replace(self._target, delta=delta / SMALLER), unresolved
            return False
        built.place.resolution = farther(self._resolution, delta)
        return True

    def _goes_on(self, built: Construction) -> bool:
        """Whether more gradients may lead to a better claim, and there is time for them."""
        if self._best is not None and self._best.eps <= self.request.eps:
            return False
        # What is stated allows for more than what was found: then more has to be found.
        goal, bound = self._target.eps, built.best()[0]
        if 0.0 < bound <= goal:
            self._target = replace(self._target, eps=min(goal, bound) / CLOSER)
        elif not built.unsteady:
            return False
        return time.perf_counter() <= self.deadline

    def _confirmed(self, best: GoldsteinCertificate) -> GoldsteinCertificate:
        """Check a claim as others will, where displacements are not tiny."""
        if not self.confirm or np.max(self._resolution) <= FINE * self._target.delta:
            return best
        target = replace(self._target, eps=self.request.eps)
        return survived(best, self.oracle, target, self._resolution)


def survived(claim: C, oracle: CountedOracle, target: Request, resolution: Vector | float) -> C:
    """Return a claim with the eps that checks in a row find.

    Where displacements are coarse the next check may see more than those few have.

    Raises
    ------
    UnresolvedError
    """
    known: Any = claim
    coarse, stated = bool(np.max(resolution) > FINE * target.delta), None
    try:
        stated = confirmed(known, oracle, as_box(None, known.x.size), None, target.seed, True)
    except OutOfCalls:
        if not coarse:
            return claim
    proved = UNSEEN * max(norms_upper(known.gradients + getattr(known, "subgradient", 0.0)))
    if stated is not None:
        more = 2.0 if coarse or stated.eps > known.eps else 1.0
        proved = min(more * stated.eps, target.eps if stated.eps <= target.eps else math.inf)
    return replace(known, eps=max(known.eps, proved), digest="")


def better(
    one: GoldsteinCertificate | None, other: GoldsteinCertificate | None
) -> GoldsteinCertificate | None:
    """Return the one with the smaller bound."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda certificate: certificate.eps)


def hint_around(
    oracle: CountedOracle, x: Vector, target: Request, deadline: float
) -> GoldsteinCertificate | None:
    """Return gradients around x as a hint where a pivot may be; it need not survive a check."""
    found = gathered(oracle, x, target, Enrichment(), deadline)
    if not found.points:
        return None
    return GoldsteinCertificate.from_gradients(x, *in_ball(found, x, target.delta))


def remarks(found: Enrichment, meta: dict[str, Any]) -> tuple[dict[str, Any], Vector | None]:
    """Return the remarks of a certificate and the direction of descent that was met."""
    if found.descent is None:
        return meta, None
    # Where squares underflow, a direction can miss the length 1 visibly.
    direction = found.descent / np.linalg.norm(found.descent)
    more = {"descent_step": found.descent_step, "descent_fall": found.descent_fall}
    return {**meta, **more}, direction
