"""Which claim to state: one that holds a hair beside its points too, on any machine.

Nothing here is trusted. A claim stated too boldly is refused by `verify`; the margins below are
chosen so that this does not happen.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.goldstein import GoldsteinCertificate, of_sum_one, strongest_claim
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.blackbox.differences import NOISE, RESOLVED
from goldstein.checker.blackbox.perturbed import ROUNDS, SAME, Neighbourhood, resample
from goldstein.checker.blackbox.perturbed import radius as perturbation
from goldstein.checker.constrained.box import as_box
from goldstein.checker.rounding import (
    combination_norm_upper,
    distance_upper,
    distances_upper,
    norm_upper,
    norms_upper,
    rounding_slack,
    up,
)
from goldstein.errors import KinkError, NotDeterministicError, OutOfCalls, OutOfTime
from goldstein.numerics.hull import MANY_VARIABLES, SOLVED, best_bound
from goldstein.numerics.streams import stream
from goldstein.oracles import Oracle
from goldstein.oracles.agreement import STRICTLY

Rows = NDArray[np.intp]

#: The bound that is stated allows for so many times the change that was seen a hair away.
MARGIN = 8.0

#: What a gradient may be longer by next to a point where nobody has looked.
UNSEEN = 1.01

#: Entries of gradients that change by more than this part of their length jump.
JUMP = 2.0**-10

#: Points are dropped whose gradients change by this part of the largest change or more.
UNSTEADY = 1e-3

#: One looks this many hairs away, at most this part of the ball: a check that displaces by one hair
#: must not meet what was not met here, a sliver between two kinks say.
HAIRS, FARTHEST = 256.0, 2.0**-6

#: Where a hair is more than this part of the ball, points are often within a hair of a kink: there
#: one looks more often.
COARSE, COARSE_LOOKS = 2.0**-16, 3

#: Where it is less, but more than this, a point may still be in a sliver between two kinks: there
#: one looks nearer by as well, this many hairs away.
FINE, NEAR_LOOKS, NEAR_HAIRS = 2.0**-24, 2, 2.0

#: Who drops a point and tries the next may end with a lucky one: every drop calls for one more near
#: look beside the points that follow, up to this many.
MORE_LOOKS = 3

#: Beside so few points one look comes first: where it changes nothing, it is all that is needed.
FEW = 4

#: The same of who states one claim after the other: from this one on, whenever their number has
#: doubled, this many more near looks.
MANY_CLAIMS, LOOKS_MORE = 16, 2

#: A ball is stated to be this much larger than what f resolves: a check that finds a coarser step
#: must find one that is short against the ball.
ROOM = 16.0 / (STRICTLY * RESOLVED)

#: How often unsteady points are dropped.
ATTEMPTS = 4


def looks_beside(x: Vector, delta: float) -> int:
    """How often a claim about x looks beside each of its points, if none of them is dropped."""
    return sum(_looks(float(perturbation(x, delta).max()), delta))


def _looks(width: float, delta: float) -> tuple[int, int]:
    """Return how often one looks far and how often near by, where a hair is so wide."""
    far = COARSE_LOOKS if width > COARSE * delta else 1
    return far, NEAR_LOOKS if FINE * delta < width <= COARSE * delta else 0


def heaviest(claim: Any) -> list[tuple[Vector, Vector]]:
    """Return the points of a claim with their gradients, those on which it rests most first."""
    return _by_share(claim.points, claim.gradients, claim.weights)


def _by_share(points: Matrix, gradients: Matrix, weights: Vector) -> list[tuple[Vector, Vector]]:
    order = np.argsort(-weights * norms_upper(gradients), kind="stable")
    return [(points[j], gradients[j]) for j in order if weights[j] > 0]


def taken(rows: Matrix, used: Rows | list[int]) -> Matrix:
    """Return these rows; all of them without a copy."""
    return rows if len(used) == len(rows) else rows[used]


def distances(points: Matrix, x: Vector) -> list[float]:
    """Return bounds of the distances from x; one by one where differences would take memory."""
    if x.size < MANY_VARIABLES:
        return distances_upper(points, x)
    return [distance_upper(y, x) for y in points]


def _brought_forward(rows: Matrix, used: Rows) -> Matrix:
    """Return these rows without a copy: they change places with the first ones."""
    for place, row in enumerate(used.tolist()):
        if place != row:
            rows[[place, row]] = rows[[row, place]]
    return rows[: len(used)]


def differ(weights: Vector, rows: Matrix, others: Matrix, allowed: float) -> bool:
    """Do gradients asked for again differ by more than is allowed: by more than rounding explains?

    That is a part of their mean length and, where they nearly vanish, a part of the bound.
    """
    gap = math.fsum(w * n for w, n in zip(weights.tolist(), distances_upper(rows, others)))
    return not gap <= allowed < math.inf


def drift(weights: Vector, rows: Matrix, others: Matrix) -> float:
    """Return what gradients change by next to their points, in entries that do not jump.

    Their combination may have changed less by luck, and on another machine it changes again: what
    cancels in the user's own code is rounded there in another way.
    """
    changes = np.abs(others - rows)
    lengths = np.array(norms_upper(rows))[:, None]
    smooth = np.where(changes <= JUMP * lengths, changes, 0.0)
    return math.fsum((weights * norms_upper(smooth)).tolist())


def scale_of(weights: Vector, rows: Matrix) -> tuple[float, float]:
    """Return the mean length of gradients, and what rounding may add to their bound.

    It does so in sums, and in weights that are chosen anew.
    """
    lengths = [(w, length) for w, length in zip(weights.tolist(), norms_upper(rows)) if w > 0]
    mean, longest = math.fsum(w * n for w, n in lengths), max(n for _, n in lengths)
    return mean, rounding_slack(weights.size, mean) + SOLVED * longest


class _Remembering:
    """Asks an oracle, and keeps one of the answers: beside a point a gradient says if it is noise.

    Parameters
    ----------
    oracle : Oracle
    which : int
        The number of the answer, counted from 0.
    """

    def __init__(self, oracle: Oracle, which: int) -> None:
        self._oracle, self._left = oracle, which
        self.answer: Vector | None = None

    def gradient(self, y: Vector) -> Vector:
        g = self._oracle.gradient(y)
        if self._left == 0:
            self.answer = g
        self._left -= 1
        return g


class Stating:
    """Points with gradients near x, and what is known of the gradients a hair beside them.

    Parameters
    ----------
    oracle : Oracle
        Asked beside points where nothing is known yet, until its deadline if it has one.
    x : ndarray
    delta : float
        The radius that was asked for.
    points, gradients : ndarray, shape (k, d)
    seed : int
        Seed of the displacements.
    number : int
        Of this claim, among those that one run has tried.
    draws : int
        Draws beside every point in many variables; all that they find has to fit into memory.
    resolution : float
        Steps that the function resolves.
    """

    def __init__(
        self,
        oracle: Oracle,
        x: Vector,
        delta: float,
        points: Matrix,
        gradients: Matrix,
        seed: int,
        number: int = 1,
        draws: int = ROUNDS,
        resolution: float = 0.0,
    ) -> None:
        self.oracle, self.x, self.delta = oracle, x, delta
        #: What the function resolves; a check displaces points by no less.
        self.place = Neighbourhood(x, delta, as_box(None, x.size), resolution)
        self.points, self.gradients = points, gradients
        self.seed, self._number, self._draws = seed, number, draws
        # For each point the gradients found beside it, or None where a kink was met.
        self._neighbours: dict[int, Matrix | None] = {}
        self._told: dict[int, float] = {}
        # For sets of gradients a bound of their shortest vector, and its weights.
        self._optimal: dict[bytes, tuple[float, Vector]] = {}
        #: Points whose gradients changed so much that a claim cannot rest on them.
        self.unsteady: set[int] = set()
        #: Whether the claim was looked at beside its points.
        self.looked = True
        #: Points that were asked for beside others, with their gradients.
        self.asked: list[tuple[Vector, Vector]] = []

    @cached_property
    def rng(self) -> np.random.Generator:
        """Where displacements are drawn from."""
        return stream(self.seed, len(self.points), "stating")

    @property
    def hairs(self) -> Matrix:
        """How far the points are displaced, entry by entry."""
        return perturbation(self.points, self.delta, self.resolution)

    @property
    def resolution(self) -> float:
        """What the function resolves; a check displaces points by no less."""
        return self.place.resolution

    @resolution.setter
    def resolution(self, step: float) -> None:
        self.place.resolution = step
        # Another check may have to displace by many times as much.
        wide = 0.5 * HAIRS if step else 1.0
        near = [j for j, away in self._told.items() if away < wide * norm_upper(self.hairs[j])]
        self._forget_told(near)

    @property
    def _width(self) -> float:
        return float(perturbation(self.x, self.delta, self.resolution).max())

    @property
    def _looks(self) -> int:
        return _looks(self._width, self.delta)[0]

    def bound(self) -> float:
        """Return a bound of the shortest vector of all gradients, a hair beside them or not."""
        return self._best(np.arange(len(self.points)))[0]

    def rests_on(self) -> list[tuple[Vector, Vector]]:
        """Return the points a claim would rest on, with their gradients; the heaviest first."""
        weights = self._best(np.arange(len(self.points)))[1]
        return _by_share(self.points, self.gradients, weights)

    def tell(self, j: int, gradient: Vector, away: float) -> None:
        """Say what the gradient is at another point, so far away from point j: a hair or more.

        It saves a call where it hardly differs; where it does, the function is asked nearer by.
        """
        if self._looks == 1:
            self._neighbours[j] = gradient[None]
            self._told[j] = away

    def claim(
        self,
        enough: float,
        meta: dict[str, Any] | None = None,
        descent: Vector | None = None,
        weights: Vector | None = None,
    ) -> GoldsteinCertificate | None:
        """Return the strongest claim that survives, or None where no gradient is steady.

        The search for a better one ends at a bound of `enough`. `weights` are tried first.
        """
        if self.x.size >= MANY_VARIABLES:
            return self._claim_for_many(enough, meta, descent, weights)
        hint = weights
        best: tuple[float, float, Rows, Vector] | None = None
        pool = np.arange(len(self.points))
        for _ in range(2 * ATTEMPTS):
            bound, weights = self._best(pool)
            if (
                hint is not None
                and (given := combination_norm_upper(hint, self.gradients)) <= bound
            ):
                bound, weights = given, hint
            hint = None
            used = pool
            if not (positive := weights > 0).all():
                used, weights = pool[positive], weights[positive]
            weights = of_sum_one(weights)
            try:
                self._look([j for j in used.tolist() if j not in self._neighbours])
            except OutOfCalls:
                # No call is left to look beside more points: those looked at have to do.
                pool = np.intersect1d(pool, list(self._neighbours))
                if pool.size == 0:
                    return self.unseen(meta)
                continue
            steady = np.array([self._neighbours[j] is not None for j in used.tolist()])
            if steady.all():
                stated, mean = self._survives(used, weights, bound)
                if stated < (math.inf if best is None else best[0]):
                    best = stated, mean, used, weights
                if best is not None and stated <= max(enough, 1.5 * bound):
                    break
                if not self._told.keys().isdisjoint(used.tolist()):
                    self._forget_told(used.tolist())
                    continue
                changes = self._changes(used)
                steady = changes < UNSTEADY * changes.max(initial=0.0)
            self.unsteady.update(used[~steady].tolist())
            pool = np.setdiff1d(pool, used[~steady])
            if pool.size == 0:
                break
        if best is None:
            return None
        self._require_determinism(*best)
        return self._stated(best[0], *best[2:], meta, descent)

    def _best(self, rows: Rows) -> tuple[float, Vector]:
        """Return a bound of the shortest vector and its weights; the problem is solved once."""
        key = rows.tobytes()
        if key not in self._optimal:
            self._optimal[key] = best_bound(self._rows(rows))
        return self._optimal[key]

    def _rows(self, rows: Rows) -> Matrix:
        """Return these gradients."""
        return taken(self.gradients, rows)

    def _claim_for_many(
        self,
        enough: float,
        meta: dict[str, Any] | None,
        descent: Vector | None,
        weights: Vector | None,
    ) -> GoldsteinCertificate | None:
        """The same in many variables, where hardly a point is far from all kinks.

        To drop those that are not would leave none. But beside a point only one or two of the many
        coordinates meet a kink, and others the next time, so among the gradients of a few draws the
        combination is found again: that is what a check does, and what is done here.
        """
        try:
            bound, weights = best_bound(self.gradients, weights, self._deadline)
        except OutOfTime:
            return self.unseen(meta)
        used, weights = np.flatnonzero(weights > 0), weights[weights > 0]
        weights = weights / weights.sum()
        rows, points = _brought_forward(self.gradients, used), _brought_forward(self.points, used)
        self._optimal.clear()  # rows have changed places
        mean, slack = scale_of(weights, rows)
        slack += SAME * mean
        asked = _Remembering(self.oracle, int(weights.argmax()))
        try:
            goal = max(enough, bound + slack)
            found = math.inf
            if len(points) <= FEW:
                found = self._beside_all(asked, points, weights)
            if not found <= goal:
                seed = int(self.rng.integers(2**32))
                found = resample(
                    lambda _, y: asked.gradient(y), self.place, points,
                    np.zeros(len(points), dtype=np.intp), weights, self._bound, goal, seed,
                    self._draws,
                )  # fmt: skip
        except OutOfCalls:
            return self.unseen(meta)
        if math.isinf(found):
            return None
        found = max(found, bound)
        stated = up(found + MARGIN * (found - bound) + slack)
        if found + slack <= enough:
            stated = min(stated, enough)
        heaviest = int(weights.argmax())
        if asked.answer is None or self._is_other(asked.answer, heaviest, stated):
            self._require_same(stated, heaviest)
        longest = max(norm_upper(perturbation(y, self.delta, self.resolution)) for y in points)
        radius = self._with_room(max(distances(points, self.x)), longest)
        return GoldsteinCertificate(
            self.x, radius, max(stated, bound), points, rows, weights, meta=dict(meta or {}),
            descent=descent,
        )  # fmt: skip

    def _beside_all(self, oracle: _Remembering, points: Matrix, weights: Vector) -> float:
        """Return the bound a hair beside all points; inf where a kink was met.

        The points themselves are twins of those displaced ones, and their bound is known.
        """
        try:
            rows = [oracle.gradient(self.place.perturbed(self.rng, y)) for y in points]
        except KinkError:
            return math.inf
        return best_bound(np.array(rows), weights, self._deadline)[0]

    @property
    def _deadline(self) -> float:
        return getattr(self.oracle, "deadline", math.inf)

    def _bound(self, rows: Matrix, _: Rows, weights: Vector | None) -> tuple[float, Vector]:
        return best_bound(rows, weights, self._deadline)

    def unseen(self, meta: dict[str, Any] | None) -> GoldsteinCertificate:
        """No call is left to look beside a point: drawn at random, one is hardly on a kink.

        The first will do; the one with the shortest gradient might be short for lying in a sliver.
        What is next to it may be as long as anything in the ball.
        """
        self.looked = False
        left = np.setdiff1d(np.arange(len(self.points)), list(self.unsteady))
        first = left[:1] if left.size else np.zeros(1, dtype=np.intp)
        eps = UNSEEN * max(norms_upper(self.gradients))
        return self._stated(eps, first, np.ones(1), meta)

    def _stated(
        self,
        eps: float,
        used: Rows,
        weights: Vector,
        meta: dict[str, Any] | None,
        descent: Vector | None = None,
    ) -> GoldsteinCertificate:
        points = taken(self.points, used)
        claim = strongest_claim(self.x, points, self._rows(used), weights, *self._best(used))
        delta = self._with_room(claim["delta"], max(norms_upper(taken(self.hairs, used))))
        claim.update(eps=max(claim["eps"], eps), delta=delta)
        return GoldsteinCertificate(**claim, meta=dict(meta or {}), descent=descent)

    def _with_room(self, radius: float, hair: float) -> float:
        """The displacements need room too, where all points are next to x; so do differences."""
        if not self.resolution and self.oracle.has_value:  # nobody has looked
            return max(radius, self.delta)
        room = max(radius + 4.0 * hair, ROOM * self.resolution)
        return max(radius, min(self.delta, up(room)))

    def _require_determinism(self, eps: float, mean: float, used: Rows, weights: Vector) -> None:
        """Noise would make any claim come true: the hull of random vectors contains 0.

        Gradients that hardly change a hair away cannot be noise; otherwise one is asked for again.
        """
        # What was told beside a point is forgotten where nearer looks were wanted, which may have
        # found no call left.
        seen = self._neighbours.keys() >= set(used.tolist())
        if not seen or any(
            differ(weights, self._rows(used), others, SAME * mean + NOISE * eps)
            for others in self._beside(used)
        ):
            self._require_same(eps, int(used[weights.argmax()]))

    def _require_same(self, eps: float, heaviest: int) -> None:
        try:
            again = self.oracle.gradient(self.points[heaviest].copy())
        except (OutOfCalls, KinkError):  # nothing more is to be had; `verify` will ask
            return
        if self._is_other(again, heaviest, eps):
            gap = norm_upper(again - self.gradients[heaviest])
            raise NotDeterministicError(self.oracle.name, gap)

    def _is_other(self, gradient: Vector, row: int, eps: float) -> bool:
        allowed = SAME * norm_upper(gradient) + NOISE * eps
        return differ(np.ones(1), gradient[None], self.gradients[row][None], allowed)

    def _forget_told(self, rows: list[int]) -> None:
        for j in rows:
            if self._told.pop(j, None) is not None:
                del self._neighbours[j]

    def _changes(self, rows: Rows) -> Vector:
        """Return how much each gradient changes a hair away, where no kink was met."""
        here = self._rows(rows)
        changes: Vector = np.max([norms_upper(here - others) for others in self._beside(rows)], 0)
        return changes

    def _look(self, rows: list[int]) -> None:
        """Ask for gradients beside these points, for all of them at once."""
        if not rows:
            return
        looks, near = _looks(self._width, self.delta)
        near += LOOKS_MORE * (self._number // MANY_CLAIMS).bit_length()
        near += min(len(self.unsteady), MORE_LOOKS)
        far = min(max(1.0, FARTHEST * self.delta / self._width), HAIRS)
        hairs = [far] * looks + [min(far, NEAR_HAIRS)] * near
        places = [
            self.place.perturbed(self.rng, self.points[j], far) for j in rows for far in hairs
        ]
        answers = self.oracle.gradients_at(np.array(places))
        for j in rows:
            found: list[Vector] = []
            for z, gradient in zip(places[: len(hairs)], answers):
                if gradient is not None:
                    self.asked.append((z, gradient))
                    found.append(gradient)
            del places[: len(hairs)]
            self._neighbours[j] = np.array(found) if len(found) == len(hairs) else None

    def _beside(self, rows: Rows) -> list[Matrix]:
        """Return the gradients beside these points, one matrix for each look."""
        known = [found for j in rows.tolist() if (found := self._neighbours[j]) is not None]
        if all(len(others) == 1 for others in known):
            return [np.concatenate(known)]
        return [
            np.array([others[min(k, len(others) - 1)] for others in known])
            for k in range(max(map(len, known)))
        ]

    def _survives(self, used: Rows, weights: Vector, bound: float) -> tuple[float, float]:
        """Return a bound that holds beside the points as well, with room to spare.

        And the mean length of the gradients.
        """
        others = [best_bound(rows, weights)[0] for rows in self._beside(used)]
        change = max(abs(other - bound) for other in others)
        mean, slack = scale_of(weights, self._rows(used))
        # A check displaces by one hair; here one has looked many of them away.
        part = 2.0 / HAIRS if self._told.keys().isdisjoint(used.tolist()) else 1.0
        slack += part * max(drift(weights, self._rows(used), rows) for rows in self._beside(used))
        total = max(bound, *others) + MARGIN * change + slack
        return 0.0 if total <= 0.0 else up(total), mean
