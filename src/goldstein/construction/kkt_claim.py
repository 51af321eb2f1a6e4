"""Which KKT claim to state about a point: gather answers around it, combine, look beside.

Nothing here is trusted: `verify` decides.
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from goldstein.certificates.kkt import LISTED, KKTCertificate, residual_upper
from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.checker.blackbox.beside import rebound
from goldstein.checker.blackbox.perturbed import Neighbourhood, radius, resample
from goldstein.checker.blackbox.qualification import CLOSE, qualification
from goldstein.checker.constrained.limits import best_normal
from goldstein.checker.rounding import distance_upper, norm_upper, up
from goldstein.checker.sampled import Problem as Checked
from goldstein.checker.sampled import Rows, rows_of
from goldstein.construction import goldstein_claim as claims
from goldstein.errors import ContradictedError, KinkError, OutOfCalls
from goldstein.numerics.hull_problems import conic_weights, shortest_weights
from goldstein.numerics.streams import conic_point, inner_radius, narrow, stream, uniform_in_ball
from goldstein.oracles.diagnose import resolution_of
from goldstein.oracles.problem import Problem

#: The combination is sought so much shorter than the claim, which has to survive beside it.
SPARE = 0.9

#: Pairs of points beside x that are looked at: more than a check will.
CENTRE_PAIRS = 6

#: One looks this much farther than what f was found to resolve: a check may find a coarser step.
FARTHER = 8.0

#: Gradients that change by more than this part of their length beside a point are beyond a kink.
JUMP = 0.1

#: Columns of nonlinear constraints in one combination.
COLUMNS = 3000


@dataclass
class Combination:
    """The shortest combination of what is known: weights, owners, and the vector itself."""

    weights: Vector
    cone: Vector
    owners: list[tuple[int, int, float]]
    normal: Vector
    vector: Vector

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.vector))


class Around:
    """Answers of a problem at points of the ball around x, inside the bounds.

    Parameters
    ----------
    problem : Problem
    x : ndarray
        Inside the bounds.
    delta : float
    seed : int
    """

    def __init__(self, problem: Problem, x: Vector, delta: float, seed: int) -> None:
        self.problem, self.x, self.delta, self.seed = problem, x, delta, seed
        self.resolution: Vector | float = 0.0
        self.place = Neighbourhood(x, delta, problem.box, self.resolution)
        f: Any = problem.f
        self.checked = Checked(f, problem.box, shortest_weights, [], None, problem.constraints)
        self.points, self.gradients, self.rows = list[Vector](), list[Vector](), list[Matrix]()
        system = problem.constraints
        #: The points seen that reach or cross limits furthest: by component, 1 above and -1 below.
        self._reached: dict[tuple[int, float], tuple[float, Vector]] = {}
        #: Equalities that hold at x.
        self._excess = np.abs(system.excess(system.values(x)))
        self._holds = self._excess <= system.tolerances()
        self._looked: set[tuple[int, float]] = set()
        #: Points at which one saw how fine f is.
        self._seen: set[bytes] = set()
        #: Points next to kinks.
        self.unsteady: set[bytes] = set()
        self.see(x)

    def moved_to(self, x: Vector) -> Around:
        """Return what is known of the ball around another point."""
        other = Around(self.problem, x, self.delta, self.seed)
        for y, g, rows in zip(self.points, self.gradients, self.rows):
            if distance_upper(y, x) <= self.delta:
                other.see(y)
                other.points.append(y)
                other.gradients.append(g)
                other.rows.append(rows)
        return other

    def see(self, y: Vector) -> None:
        """Remember which limits y reaches."""
        system = self.problem.constraints
        if not system.size:
            return
        values = system.values(y)
        for sign, past in ((1.0, values - system.upper), (-1.0, system.lower - values)):
            for i, much in enumerate(past.tolist()):
                if much >= self._reached.get((i, sign), (0.0,))[0]:
                    self._reached[i, sign] = much, y

    def ask(self, y: Vector) -> bool:
        """Add a point; False where it is outside or on a kink."""
        if distance_upper(y, self.x) > self.delta:
            return False
        try:
            gradient = self.problem.f.gradient(y)
            rows = self.problem.constraints.rows(y)
        except KinkError:
            return False
        self.see(y)
        self.points.append(y)
        self.gradients.append(gradient)
        self.rows.append(rows.copy())
        return True

    def look_for_limits(self) -> None:
        """Walk towards limits that may be within the ball and have not been reached yet."""
        system, box = self.problem.constraints, self.problem.box
        if not system.size or not self.rows:
            return
        values = system.values(self.x)
        for i in range(system.size):
            if system.equal[i]:
                continue
            above, below = system.upper[i] - values[i], values[i] - system.lower[i]
            for sign, gap in ((1.0, above), (-1.0, below)):
                seen = self._reached.get((i, sign), (-math.inf,))[0]
                # A point that reaches the limit by rounding alone may miss it elsewhere.
                if (i, sign) in self._looked or seen > 1e-12 * (1.0 + abs(values[i])):
                    continue
                along = sign * max((rows[i] for rows in self.rows), key=np.linalg.norm)
                steep = float(np.linalg.norm(along))
                if not math.isfinite(gap) or steep == 0.0 or gap > 4.0 * steep * self.delta:
                    continue
                self._looked.add((i, sign))
                far = inner_radius(self.x, self.delta)
                for reach in (min(2.0 * gap / steep + 1e-3 * far, far), far):
                    self.see(box.clip(self.x + (reach / steep) * along))

    def combine(self, low: Mask | None = None, high: Mask | None = None) -> Combination:
        """Return the shortest combination; normals where `low`, `high` say (default: at x)."""
        if low is None or high is None:
            low, high = self.problem.box.normal_signs(self.x)
        system = self.problem.constraints
        signs, twins = list[list[float]](), self._twins()
        for i in range(system.size):
            if twins[i][0] != i:
                signs.append([])
                continue
            up_, down = (i, 1.0) in self._reached, (i, -1.0) in self._reached
            if system.equal[i]:
                up_ = down = bool(self._holds[i]) or (up_ and down)
            longest = max(float(np.linalg.norm(rows[i])) for rows in self.rows)
            if self._excess[i] > CLOSE * self.delta * longest and not system.linear[i]:
                up_ = down = False
            signs.append([s for s, on in ((1.0, up_), (-1.0, down)) if on])
        found = self._combine(signs, low, high)
        if any(len(sides) > 1 for sides in signs):
            # One sign for each constraint, or it would be no multiplier.
            totals = np.zeros(system.size)
            for weight, (i, _, sign) in zip(found.cone.tolist(), found.owners):
                totals[i] += sign * weight
            signs = [
                sides if len(sides) < 2 else [1.0 if totals[i] >= 0 else -1.0]
                for i, sides in enumerate(signs)
            ]
            found = self._combine(signs, low, high)
        return found

    def _twins(self) -> list[list[int]]:
        """Return for each component those that are the same equality, itself among them.

        V'V = I written entry by entry says everything but the diagonal twice.
        """
        system, same = self.problem.constraints, dict[Any, list[int]]()
        for i, row in enumerate(self.rows[0] if system.equal.sum() > 1 else ()):
            size = np.abs(row).max(initial=0.0) or 1.0
            key = (np.round(row / size, 12) + 0.0).tobytes() if system.equal[i] else i
            same.setdefault(key, []).append(i)
        found = {i: group for group in same.values() for i in group}
        return [found.get(i, [i]) for i in range(system.size)]

    def _combine(self, signs: list[list[float]], low: Mask, high: Mask) -> Combination:
        system, dim = self.problem.constraints, self.x.size
        count = len(self.points)
        curved = sum(1 for i, sides in enumerate(signs) if sides and not system.linear[i])
        latest = count - min(count, max(1, COLUMNS // max(1, curved)))
        central = min(range(count), key=lambda j: float(np.linalg.norm(self.points[j] - self.x)))

        def known(i: int) -> range:
            """Return the points whose gradients of component i are used."""
            if system.linear[i]:
                return range(1)
            # With both signs, gradients at two points would cancel anything by curvature alone.
            return range(latest, count) if len(signs[i]) == 1 else range(central, central + 1)

        wanted = [(i, sign) for i, sides in enumerate(signs) for sign in sides]
        owners = [(i, j, sign) for i, sign in wanted for j in known(i) if self.rows[j][i].any()]
        columns = np.array([sign * self.rows[j][i] for i, j, sign in owners]).reshape(-1, dim)
        normals = np.concatenate([-np.eye(dim)[low], np.eye(dim)[high]])
        matrix = np.array(self.gradients)
        a, b = conic_weights(matrix, np.concatenate([columns, normals]))
        b = b[: len(owners)]
        total = a @ matrix + b @ columns
        normal = best_normal(total, low, high)
        return Combination(a, b, owners, normal, total + normal)

    def enrich(self, eps: float, patience: int, deadline: float = math.inf) -> Combination | None:
        """Add points against the current vector until it is short, or nothing is gained."""
        rng = stream(self.seed, len(self.points), "kkt")
        reflect = self.problem.box.reflect
        milestone, since = math.inf, 0
        with contextlib.suppress(OutOfCalls):
            while since < patience and time.perf_counter() < deadline:
                if not self.points:
                    self.ask(reflect(uniform_in_ball(rng, self.x, self.delta)))
                    since += 1
                    continue
                self.look_for_limits()
                found = self.combine()
                steep = max(float(np.linalg.norm(g)) for g in self.gradients)
                if found.length <= max(eps, 1e-14 * steep):
                    return found
                if found.length <= 0.9 * milestone:
                    milestone, since = found.length, 0
                ratio = narrow(found.length / max(steep, found.length), self.x.size)
                ratio = max(ratio, float(bool(self.unsteady)))  # beside kinks that x is on
                y = conic_point(rng, self.x, found.vector, found.length, self.delta, ratio)
                self.ask(reflect(y))
                since += 1
        return self.combine() if self.points else None

    def state(
        self, found: Combination, meta: dict[str, Any], enough: float = 0.0
    ) -> KKTCertificate:
        """Return the claim of a combination; its eps holds at perturbed points, too.

        Where these reach a good part of `enough`, that is stated: it is checked whole besides.
        """
        certificate = self._plain(found, meta)
        factors = np.concatenate([certificate.weights, np.abs(certificate.constraint_weights)])
        rows = np.concatenate([certificate.gradients, certificate.constraint_gradients])
        mean, slack = claims.scale_of(factors, rows)
        used = rows_of(certificate, self.checked)
        drawn: list[Vector] = []

        def ask(i: int, y: Vector) -> Vector:
            drawn.append(used.ask(i, y))
            return drawn[-1]

        try:
            near = resample(
                ask, self.place, used.points, used.owners, used.weights,
                partial(rebound, used),
                max(certificate.eps + slack, SPARE * enough), self.seed + 1,
            )  # fmt: skip
            slack += self._beyond_kinks(used)
        except OutOfCalls:  # nobody has looked
            near, slack = certificate.eps, slack + (claims.UNSEEN - 1.0) * mean
        if math.isfinite(near):
            change, survives = abs(near - certificate.eps), near + slack <= SPARE * enough
            if len(drawn) >= len(used.points):
                first = np.array(drawn[: len(used.points)])
                slack += 0.25 * claims.drift(used.weights, used.stored, first)
            eps = up(max(certificate.eps, near) + claims.MARGIN * change + slack)
            if survives:
                eps = min(eps, enough)
            certificate = replace(certificate, eps=eps, digest="")
        return certificate

    def _beyond_kinks(self, used: Rows) -> float:
        """Return what a combination changes by at most, where points are displaced across kinks.

        Of two opposite places one is beyond a kink that is nearer than they are. It takes a look
        only where displacements are not tiny.
        """
        if radius(self.x, self.delta, self.place.resolution).max() <= claims.FINE * self.delta:
            return 0.0
        rng, change = stream(self.seed, len(self.points), "beside"), 0.0
        for i, y, w, g in zip(used.owners.tolist(), used.points, used.weights, used.stored):
            step = self.place.perturbed(rng, y) - y
            with contextlib.suppress(KinkError):
                sides = [used.ask(i, self.place.inside(y + s * step)) - g for s in (1.0, -1.0)]
                gap = max(map(norm_upper, sides))
                if gap > JUMP * norm_upper(g):
                    change += w * gap
                    self.unsteady.add(y.tobytes())
        return change

    def look(self, found: Combination) -> None:
        """See how fine f is: a claim has to hold where a check looks.

        Raises
        ------
        UnresolvedError
        """
        order = np.argsort(-found.weights, kind="stable")
        known = [(self.points[j], self.gradients[j]) for j in order if found.weights[j] > 0]
        new = [(y, g) for y, g in known if y.tobytes() not in self._seen]
        if not new:
            return
        self._seen.update(y.tobytes() for y, _ in new)
        with contextlib.suppress(ContradictedError):
            # Whoever checks the claim will say what is wrong.
            f, box = self.problem.f, self.problem.box
            steps = resolution_of(f, self.x, self.delta, self.seed, new, box)
            self.resolution = np.maximum(self.resolution, steps)
        self.place.resolution = FARTHER * self.resolution

    def _plain(self, found: Combination, meta: dict[str, Any]) -> KKTCertificate:
        problem, x = self.problem, self.x
        used = np.flatnonzero(found.weights > 0)
        weights = found.weights[used] / math.fsum(found.weights[used].tolist())
        # Twins share a multiplier: without one an equality forbids to move along its gradient.
        twins = self._twins()
        rows = [
            (self.points[j], k, self.rows[j][k], sign * w / len(twins[i]))
            for w, (i, j, sign) in zip(found.cone.tolist(), found.owners)
            for k in twins[i]
            if w > 0
        ]
        multipliers = np.zeros(problem.constraints.size)
        for i in {i for _, i, _, _ in rows}:
            multipliers[i] = math.fsum(w for _, k, _, w in rows if k == i)
        rows += self._witnesses(multipliers)
        points = np.array([self.points[j] for j in used])
        places = [*points, *(y for y, _, _, _ in rows)]
        room = max(4.0 * norm_upper(radius(y, self.delta, self.resolution)) for y in places)
        widest = max(distance_upper(y, x) for y in places)
        wide = up(max(widest + room, claims.ROOM * float(np.max(self.resolution))))
        heavy, rng = [(i, g) for _, i, g, w in rows if w != 0.0], stream(self.seed, 0, "centre")
        claim = SimpleNamespace(x=x, delta=self.delta, normal=found.normal, multipliers=multipliers)
        q = qualification(claim, self.checked, heavy, rng, self.place.resolution, CENTRE_PAIRS)
        certificate = KKTCertificate(
            x=x,
            delta=max(widest, min(self.delta, wide)),
            eps=0.0,
            feasibility=problem.constraints.violation(x),
            points=points,
            gradients=np.array([self.gradients[j] for j in used]),
            weights=weights,
            constraint_points=np.array([y for y, _, _, _ in rows]).reshape(-1, x.size),
            constraint_index=np.array([i for _, i, _, _ in rows], dtype=np.int64),
            constraint_gradients=np.array([g for _, _, g, _ in rows]).reshape(-1, x.size),
            constraint_weights=np.array([w for _, _, _, w in rows]),
            normal=found.normal,
            multipliers=multipliers,
            qualification=q,
            meta={**meta, **self._spoken(multipliers)},
        )
        return replace(certificate, eps=residual_upper(certificate), digest="")

    def _spoken(self, multipliers: Vector) -> dict[str, Any]:
        """What a summary says of the constraints: names, and how many are reached nowhere."""
        system = self.problem.constraints
        if not system.size:
            return {}
        used = np.flatnonzero(multipliers)[:LISTED].tolist()
        reached = {i for i, _ in self._reached}
        slack = sum(i not in reached for i in np.flatnonzero(~system.equal).tolist())
        return {"active": [system.name(i) for i in used], "slack": slack}

    def _witnesses(self, multipliers: Vector) -> list[tuple[Vector, int, Vector, float]]:
        """Rows of weight 0: where the limits of inequalities with a multiplier are reached."""
        system = self.problem.constraints
        found: list[tuple[Vector, int, Vector, float]] = []
        for i in np.flatnonzero(multipliers).tolist():
            signs = [1.0 if multipliers[i] > 0 else -1.0]
            if system.equal[i]:
                signs = [] if self._holds[i] else [1.0, -1.0]
            seen = [self._reached[i, sign][1] for sign in signs if (i, sign) in self._reached]
            # Only the values there count: the points may be kinks.
            found += [(y, i, np.zeros(self.x.size), 0.0) for y in seen]
        return found


def state_kkt(
    around: Around,
    eps: float,
    meta: dict[str, Any],
    *,
    patience: int,
    deadline: float = math.inf,
    or_nothing: bool = False,
    look: bool = False,
) -> KKTCertificate | None:
    """Gather until a claim of `eps` survives, or nothing is gained; None where nothing is known.

    With `or_nothing` a claim that cannot be as good as `eps` costs no further calls, and is None;
    with `look` one sees how fine f is, whatever the claim.
    """
    best: KKTCertificate | None = None
    for attempt in range(3):
        f = around.problem.f
        with f.reserved(int((f.limit - f.calls) // 2 if look and f.limit < math.inf else 0)):
            found = around.enrich(SPARE * eps, patience, deadline)
        if found is None or (or_nothing and found.length > eps):
            break
        around.look_for_limits()
        if look or found.length <= eps:
            around.look(found)
        certificate = around.state(found, meta, eps)
        if best is None or certificate.eps < best.eps:
            best = certificate
        if best.eps <= eps or found.length > eps or time.perf_counter() > deadline:
            break
        # Short, but not beside: other points of the ball have to carry it.
        rng = stream(around.seed, attempt, "again")
        heavy = set(np.flatnonzero(found.weights > 0).tolist())
        unsteady = {j for j in heavy if around.points[j].tobytes() in around.unsteady}
        heavy = unsteady or heavy
        kept = [j for j in range(len(around.points)) if j not in heavy]
        moved = [around.place.perturbed(rng, around.points[j], 256.0) for j in heavy - unsteady]
        around.points = [around.points[j] for j in kept]
        around.gradients = [around.gradients[j] for j in kept]
        around.rows = [around.rows[j] for j in kept]
        try:
            for y in moved:
                around.ask(y)
        except OutOfCalls:
            break
    if best is not None and best.eps <= eps:  # no more than was asked for has to survive
        best = replace(
            best, eps=min(eps, max(claims.ROOMY * best.eps, claims.FINEST * eps)), digest=""
        )
    return best
