"""Construction of Goldstein claims that hold next to their points too, on any machine.

Nothing here is trusted. A claim stated too boldly is refused by `verify`; the margins below are
chosen so that this does not happen.
"""

import math
from typing import Any

import numpy as np

from goldstein.certificates.goldstein import GoldsteinCertificate, of_sum_one
from goldstein.checker import rounding
from goldstein.checker.arrays import Indices, Mask, Matrix, Vector
from goldstein.checker.blackbox.differences import NOISE, RESOLVED
from goldstein.checker.blackbox.perturbed import SAME, Neighbourhood, resample
from goldstein.checker.blackbox.perturbed import radius as perturbation
from goldstein.checker.constrained.limits import as_box
from goldstein.errors import KinkError, NotDeterministicError, OutOfCalls, OutOfTime
from goldstein.numerics.hull import MANY_VARIABLES, SOLVED, best_bound
from goldstein.numerics.streams import stream
from goldstein.oracles import Oracle
from goldstein.oracles.diagnose import STRICTLY

#: The bound that is stated allows for so many times the change that was seen next to points, and
#: for a combination that is longer by this part, by curvature alone.
MARGIN, CURVED = 8.0, 2.0**-9

#: What a gradient may be longer by next to a point where nobody has looked.
UNSEEN = 1.01

#: Entries of gradients that change by more than this part of their length jump.
JUMP = 2.0**-10

#: One looks this many perturbation radii away, at most this part of the ball, and no less than so
#: many: a check that moves points by one must not meet what was not met here.
RADII, FARTHEST, LEAST = 256.0, 2.0**-12, 4.0

#: Where a search was told what is so many of them away on one side, that will do, unless one is
#: more than this part of the ball.
NEARER, TOLD = 8.0, 2.0**-14

#: Where a first look is not enough, a claim is checked as others will: in so many draws, with this
#: part of the bound, and once more with other ones.
DRAWS, SPARE = 2, 0.9

#: Where a perturbation radius is more than this part of the ball, points are now and then within
#: one of a kink.
FINE = 2.0**-18

#: And where what f resolves is more than this part of it, a claim is checked whole.
COARSE = 2.0**-10

#: A claim that is better than it has to be is stated with this much room, and is never finer than
#: this part of what was asked for: it may not hold under another rounding of f.
ROOMY, FINEST = 1.25, 2.0**-10

#: On another machine the user's own code rounds x by some units in the last place, and gradients
#: may differ by a small part of eps only: so many units have to fit into eps.
UNITS = 256.0

#: How often points next to kinks are replaced.
ATTEMPTS = 4

#: A check may find f to be coarser than whoever states the claim: by this factor.
MORE = 2.0

#: Beside so few points one look comes first in many variables, too: where it changes nothing, it is
#: all that is needed.
FEW = 4

#: A ball is stated to be this much larger than what f resolves: a check that finds a coarser step
#: must find one that is short against the ball.
ROOM = 16.0 / (STRICTLY * RESOLVED)


def heaviest(claim: Any) -> list[tuple[Vector, Vector]]:
    """Return the points of a claim with their gradients, those on which it rests most first."""
    return by_share(claim.points, claim.gradients, claim.weights)


def by_share(points: Matrix, gradients: Matrix, weights: Vector) -> list[tuple[Vector, Vector]]:
    """Return points and gradients, the heaviest first; what only rounding uses is left out."""
    order = np.argsort(-weights * rounding.norms_upper(gradients), kind="stable")
    least = 2.0**-40 * weights.max()
    return [(points[j], gradients[j]) for j in order if weights[j] > least]


def taken(rows: Matrix, used: Indices | list[int]) -> Matrix:
    """Return these rows; all of them without a copy."""
    return rows if len(used) == len(rows) else rows[used]


def distances(points: Matrix, x: Vector) -> list[float]:
    """Return bounds of the distances from x; one by one where differences would take memory."""
    if x.size < MANY_VARIABLES:
        return rounding.distances_upper(points, x)
    return [rounding.distance_upper(y, x) for y in points]


def drift(weights: Vector, rows: Matrix, others: Matrix) -> float:
    """Return what gradients change by next to their points, in entries that do not jump.

    Their combination may have changed less by luck, and on another machine it changes again: what
    cancels in the user's own code is rounded there in another way.
    """
    smooth = np.where(_jumps(rows, others), 0.0, others - rows)
    return math.fsum((weights * rounding.norms_upper(smooth)).tolist())


def _jumps(rows: Matrix, others: Matrix) -> Mask:
    """Which entries change by more than curvature explains?"""
    return np.asarray(np.abs(others - rows) > JUMP * np.array(rounding.norms_upper(rows))[:, None])


def scale_of(weights: Vector, rows: Matrix) -> tuple[float, float]:
    """Return the mean length of gradients, and what rounding may add to their bound.

    It does so in sums, and in weights that are chosen anew.
    """
    lengths = [(w, n) for w, n in zip(weights.tolist(), rounding.norms_upper(rows)) if w > 0]
    mean, longest = math.fsum(w * n for w, n in lengths), max(n for _, n in lengths)
    return mean, rounding.rounding_slack(weights.size, mean) + SOLVED * longest


class Construction:
    """A claim that rests on points with gradients near x, and what is known next to them.

    Parameters
    ----------
    oracle : Oracle
        Asked next to points where nothing is known yet, until its deadline if it has one.
    x : ndarray
    delta : float
        The radius that was asked for.
    points, gradients : ndarray, shape (k, d)
    seed : int
        Seed of the displacements.
    """

    def __init__(
        self, oracle: Oracle, x: Vector, delta: float, points: Matrix, gradients: Matrix, seed: int
    ) -> None:
        self.oracle, self.x, self.delta, self.seed = oracle, x, delta, seed
        #: Its `resolution` are steps that the function resolves; a check displaces by no less.
        self.place = Neighbourhood(x, delta, as_box(None, x.size))
        self.points, self.gradients = points, gradients
        self.rng = stream(seed, len(points), "claim")
        # Gradients that are known next to points, and how far away.
        self._told: dict[int, tuple[Vector, float]] = {}
        self._optimal: tuple[float, Vector] | None = None
        #: Whether the claim was looked at next to its points.
        self.looked = True
        # What was found beside points; None where that is a kink.
        self._neighbours: dict[int, Matrix | None] = {}
        #: Rows next to which gradients jump: points within a few perturbation radii of a kink.
        self.unsteady: set[int] = set()

    @property
    def radii(self) -> Matrix:
        """How far a check displaces the points, entry by entry."""
        return perturbation(self.points, self.delta, self.place.resolution)

    def best(self, weights: Vector | None = None) -> tuple[float, Vector]:
        """Return a bound of the shortest vector of all gradients, and its weights (or these)."""
        if self._optimal is None or self._optimal[1].size != len(self.points):
            self._optimal = best_bound(self.gradients, None, self._deadline)
        if weights is not None:
            given = rounding.combination_norm_upper(weights, self.gradients)
            if given <= self._optimal[0]:
                self._optimal = given, weights
        return self._optimal

    def rests_on(self) -> list[tuple[Vector, Vector]]:
        """Return the points a claim would rest on, with their gradients; the heaviest first."""
        return by_share(self.points, self.gradients, self.best()[1])

    def steady(self) -> tuple[list[Vector], list[Vector]]:
        """Return points that no kink was found next to, and their gradients."""
        kept = [j for j in range(len(self.points)) if j not in self.unsteady]
        return list(self.points[kept]), list(self.gradients[kept])

    def tell(self, j: int, gradient: Vector, away: float) -> None:
        """Say what the gradient is so far away from point j: that may save a call."""
        self._told[j] = gradient, away

    def claim(
        self,
        enough: float,
        meta: dict[str, Any] | None = None,
        descent: Vector | None = None,
        weights: Vector | None = None,
    ) -> GoldsteinCertificate | None:
        """Return a claim that survives its check, or None where next to points kinks are met.

        The search for a better one ends at a bound of `enough`. `weights` are tried first.
        """
        eps = math.inf
        try:
            rows = np.arange(len(self.points))
            shares = self.best(weights)[1]
            if self.x.size < MANY_VARIABLES:
                eps, rows, weights = self._steadiest(rows, shares, enough)
            else:
                rows, weights = self._brought_forward(shares)
                eps = self._next_to(rows, weights) if rows.size <= FEW else math.inf
            bound, slack = self._scale(rows, weights)
            if eps > max(enough, 1.5 * bound):
                checked = self._as_checked(rows, weights, bound, slack, enough)
                eps = min(eps, checked + self._rounded(rows, weights, checked))
            elif self.unsteady or self._width > FINE * self.delta:  # it may have been luck
                eps = max(eps, self._as_checked(rows, weights, bound, slack, enough))
        except (OutOfCalls, OutOfTime):
            if math.isinf(eps):
                return self.unseen(meta)
        if math.isinf(eps) or weights is None:
            return None
        if eps <= enough:  # no more than was asked for has to survive
            eps = min(enough, max(ROOMY * eps, FINEST * enough))
        self._require_determinism(eps, rows, weights)
        return self._stated(eps, rows, weights, meta, descent)

    def _steadiest(
        self, pool: Indices, shares: Vector, enough: float
    ) -> tuple[float, Indices, Vector]:
        """Look next to points; those next to kinks are replaced by what was found beside them."""
        best, goal = (math.inf, pool, shares), math.inf
        for _ in range(ATTEMPTS):
            rows, weights = pool[shares > 0], of_sum_one(shares[shares > 0])
            bound = rounding.combination_norm_upper(weights, self.gradients[rows])
            goal = min(goal, max(enough, 1.5 * bound))
            if bound > goal:
                break
            try:
                eps = self._next_to(rows, weights)
            except OutOfCalls:
                if math.isinf(best[0]):
                    raise
                break
            steady = self.unsteady.isdisjoint(rows.tolist())
            if math.isinf(best[0]) or (steady and eps < best[0]):
                best = eps if steady else math.inf, rows, weights
            if eps > goal and self._told:  # nearer by it may be less
                self._told.clear()
                continue
            if steady:
                break
            pool = np.setdiff1d(np.arange(len(self.points)), list(self.unsteady))
            if not pool.size:
                break
            shares = best_bound(self.gradients[pool])[1]
        return best

    def _brought_forward(self, weights: Vector) -> tuple[Indices, Vector]:
        """Rows with weight change places with the first ones, so that nothing is copied."""
        rows = np.flatnonzero(weights > 0)
        for place, row in enumerate(rows.tolist()):
            for several in (self.points, self.gradients) if place != row else ():
                several[[place, row]] = several[[row, place]]
        return np.arange(rows.size), of_sum_one(weights[rows])

    def _taken(self, rows: Indices) -> tuple[Matrix, Matrix]:
        """Return points and gradients of rows; in many variables they are the first ones."""
        if self.x.size >= MANY_VARIABLES:
            return self.points[: rows.size], self.gradients[: rows.size]
        return self.points[rows], self.gradients[rows]

    def _scale(self, rows: Indices, weights: Vector) -> tuple[float, float]:
        """Return the bound of a combination, and what rounding may add to it."""
        gradients = self._taken(rows)[1]
        mean, slack = scale_of(weights, gradients)
        slack += SAME * mean if self.x.size >= MANY_VARIABLES else 0.0
        return rounding.combination_norm_upper(weights, gradients), slack

    def _next_to(self, rows: Indices, weights: Vector) -> float:
        """Return what one look next to every point supports, with room; inf where a kink was met.

        What was told of the neighbourhood of all of them saves the calls.
        """
        gradients = self._taken(rows)[1]
        bound, slack = self._scale(rows, weights)
        part, names = 1.0, rows.tolist()
        if all(j in self._told for j in names) and self._is_far(rows):
            looks = np.array([[self._told[j][0] for j in names]])
        else:
            part = self._look([j for j in names if j not in self._neighbours])
            known = [self._neighbours[j] for j in names]
            if any(found is None for found in known):
                return math.inf
            looks = np.swapaxes(np.array(known), 0, 1)
            for others in looks:
                self.unsteady.update(rows[_jumps(gradients, others).any(axis=1)].tolist())
        found = [best_bound(others, weights, self._deadline)[0] for others in looks]
        change = max(abs(other - bound) for other in found)
        bent, longest = max(drift(weights, gradients, some) for some in looks), max(bound, *found)
        total = longest + MARGIN * change + part * bent + slack + CURVED * longest * (bent > 0.0)
        return rounding.up(total) if total else 0.0

    def _is_far(self, rows: Indices) -> bool:
        """Are gradients known far enough away for a check that displaces by more than here?"""
        if self._width > TOLD * self.delta:
            return False
        wide = NEARER if np.any(self.place.resolution) else 1.0
        lengths = rounding.norms_upper(self.radii[rows])
        return all(self._told[j][1] >= wide * away for j, away in zip(rows.tolist(), lengths))

    def _look(self, names: list[int]) -> float:
        """Ask for gradients beside these points; return which part of a change a check sees.

        Of two opposite places one is beyond a kink that is nearer than they are.
        """
        far = min(max(LEAST, FARTHEST * self.delta / self._width), RADII)
        signs = (1.0, -1.0) if self._width > FINE * self.delta else (1.0,)
        places = np.empty((len(names) * len(signs), self.x.size))
        for k, j in enumerate(names):
            y = self.points[j]
            step = self.place.perturbed(self.rng, y, far) - y
            for row, sign in enumerate(signs, len(signs) * k):
                places[row] = self.place.inside(y + sign * step)
        answers = list(self.oracle.gradients_at(places)) if names else []
        for k, j in enumerate(names):
            found = answers[len(signs) * k : len(signs) * (k + 1)]
            kink = any(g is None for g in found)
            self._neighbours[j] = None if kink else np.array(found)
            self.unsteady.update([j] if kink else [])
        if self.x.size < MANY_VARIABLES:
            seen = [(y, g) for y, g in zip(places, answers) if g is not None]
            self.points = np.array([*self.points, *(y for y, _ in seen)])
            self.gradients = np.array([*self.gradients, *(g for _, g in seen)])
        return max(2.0 / RADII, 1.0 / far)

    @property
    def _width(self) -> float:
        return float(perturbation(self.x, self.delta, self.place.resolution).max())

    def _rounded(self, rows: Indices, weights: Vector, eps: float) -> float:
        """Return what gradients change by where x is rounded; it shows in fine claims only."""
        points, gradients = self._taken(rows)
        if eps > SAME * scale_of(weights, gradients)[0]:
            return 0.0
        signs = self.rng.choice([-1.0, 1.0], points.shape)
        places = points * (1.0 + UNITS * 2.0**-53 * signs)
        found = list(self.oracle.gradients_at(np.array([self.place.inside(y) for y in places])))
        kink = any(g is None for g in found)
        return 0.0 if kink else drift(weights, gradients, np.array(found))

    def _as_checked(
        self, rows: Indices, weights: Vector, bound: float, slack: float, enough: float
    ) -> float:
        """Return what a check will find, twice; inf where it meets kinks only."""
        goal, near = max(SPARE * enough, bound + slack), bound
        coarse = self._width > TOLD * self.delta
        for _ in range(2 if self.unsteady or coarse else 1):
            near = max(near, self._resampled(rows, weights, goal))
            if near > goal and enough:
                break
            goal = max(goal, near)  # twins are asked where it is reached
        known = self._neighbours.items()
        bent = any(some is not None and (some != self.gradients[j]).any() for j, some in known)
        stated = rounding.up(near + MARGIN * (near - bound) + slack + CURVED * near * bent)
        return min(stated, enough) if near + slack <= SPARE * enough else stated

    def _resampled(self, rows: Indices, weights: Vector, goal: float) -> float:
        """Return the bound that a check finds at perturbed points, with better weights there."""
        wide = Neighbourhood(self.x, self.delta, self.place.box, MORE * self.place.resolution)
        return resample(
            lambda _, y: self.oracle.gradient(y), wide, self._taken(rows)[0],
            np.zeros(rows.size, dtype=np.intp), weights,
            lambda some, _, known: best_bound(some, known, self._deadline), goal,
            int(self.rng.integers(2**32)), DRAWS,
        )  # fmt: skip

    @property
    def _deadline(self) -> float:
        return getattr(self.oracle, "deadline", math.inf)

    def unseen(self, meta: dict[str, Any] | None) -> GoldsteinCertificate:
        """No call is left to look next to a point: drawn at random, one is hardly on a kink.

        The first will do; the one with the shortest gradient might be short for lying in a sliver.
        What is next to it may be as long as anything in the ball.
        """
        self.looked = False
        eps = UNSEEN * max(rounding.norms_upper(self.gradients))
        return self._stated(eps, np.zeros(1, dtype=np.intp), np.ones(1), meta)

    def _stated(
        self,
        eps: float,
        rows: Indices,
        weights: Vector,
        meta: dict[str, Any] | None,
        descent: Vector | None = None,
    ) -> GoldsteinCertificate:
        points, gradients = self._taken(rows)
        reach = max(distances(points, self.x))
        step = self.place.resolution
        # Displacements need room too, where all points are next to x; so do differences.
        room = 4.0 * max(rounding.norm_upper(perturbation(y, self.delta, step)) for y in points)
        delta = min(self.delta, rounding.up(max(reach + room, ROOM * float(np.max(step)))))
        many = self.x.size >= MANY_VARIABLES
        if self.oracle.has_value and (many or not np.any(step)):  # a look at so small a ball is
            delta = self.delta  # not made, or too dear
        return GoldsteinCertificate(
            self.x, max(reach, delta), eps, points, gradients, weights, meta=dict(meta or {}),
            descent=descent,
        )  # fmt: skip

    def _require_determinism(self, eps: float, rows: Indices, weights: Vector) -> None:
        """Noise would make any claim come true: the hull of random vectors contains 0.

        A gradient that hardly changes beside its point is no noise; otherwise it is asked again.
        """
        heaviest = int(weights.argmax())
        y, g = (several[heaviest] for several in self._taken(rows))
        allowed = SAME * rounding.norm_upper(g) + NOISE * eps
        known = self._neighbours.get(int(rows[heaviest]))
        if known is not None and rounding.norm_upper(known[0] - g) <= allowed:
            return
        try:
            gap = rounding.norm_upper(self.oracle.gradient(y.copy()) - g)
        except (OutOfCalls, KinkError):  # nothing more is to be had; `verify` will ask
            return
        if not gap <= allowed:
            raise NotDeterministicError(self.oracle.name, gap)
