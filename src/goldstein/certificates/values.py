"""What values alone say about stationarity, with confidence: randomised differences.

Let f be Lipschitz near the box Y = y + [-h_1, h_1] x ... x [-h_d, h_d], and F its mean over boxes
of this shape. The gradient of F at y is the mean of the gradients of f over Y, an element of the
Goldstein set of any ball that holds Y; and its i-th entry is the expectation of

    ( f(y + z + h_i e_i) - f(y + z - h_i e_i) ) / (2 h_i),   z_i = 0, z_j uniform in [-h_j, h_j],

by the fundamental theorem of calculus along e_i and Fubini. So differences *with random offsets in
the other coordinates* are unbiased for a subgradient, where plain differences are not. A sample is
the vector of these for fresh z, averaged over the points y_j with their weights; its entries lie
within the slopes of f along the coordinates. Limits for the means of the entries
(`certificates.confidence`, and McDiarmid's for the whole vector) bound the distance of the
Goldstein set from 0 with confidence.

With constraints the claim is one of KKT. Minimise f subject to lb <= c_i <= ub_i and bounds, all
Lipschitz near the ball of radius delta around x. Fixed beforehand are boxes y_j + [-h, h] inside
ball and bounds, convex weights w_j, and weights m_ij, for each i of one sign, that of the limit
they belong to; lambda_i = sum_j m_ij. For one box let

    phi_j = w_j f + sum_i m_ij c_i,     V = sum_j D phi_j(y_j),

D the randomised difference above, with offsets of its own for each
sample and j. D is linear in the function, and for f and each c_i its mean is the mean of the
gradients over the box, an element of the Goldstein set of that function at x. Hence

    E V = sum_j w_j u_j + sum_i sum_j m_ij v_ij,

u_j in the Goldstein set of f, v_ij in that of c_i.

Goldstein sets are convex, so the first sum is an element of the set of f; and for each i the
weights m_ij have one sign, so that its part is lambda_i times a convex combination of the v_ij,
itself an element of the set of c_i. (With both signs it would be no multiple of a subgradient: two
gradients of a curved function, subtracted, give nearly anything.) A bound b of |E V + n|, n the
best normal of the bounds at x, therefore says

    dist(0, d_delta f(x) + sum_i lambda_i d_delta c_i(x) + N(x)) <= b.

The samples V are independent, and their entry k is bounded by sum_j (w_j times the slope of f plus
sum_i |m_ij| times that of c_i) along e_k, which is what `slopes` has: not the slopes of the phi_j,
which are next to 0 wherever the terms cancel, and would be believed to stay so. The limits for
means hold, and b is wrong with probability at most 1 - confidence. It does not matter that f and
the constraints are asked at the same points: means of sums need no independence within a sample.

What is *not* statistical is looked up: x is feasible up to `feasibility`, and for each inequality
with a multiplier a stored point of the ball reaches or crosses its limit (an equality holds at x,
or has values on both sides). And what a multiplier means is measured: where the gradients of the
constraints in use cancel each other the claim says nothing about f (`qualification`, as for
`KKTCertificate`, on differences).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.confidence import DIGITS, Many, mean_limits, quantum_of, sampling_slack
from goldstein.certificates.export import NoProofFile
from goldstein.certificates.verifying import LaidOut, Qualified, layout_of
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.blackbox.qualification import LESS, PAIRS, qualification
from goldstein.checker.constrained.limits import DEGENERATE, Box, as_box, check_signs
from goldstein.checker.rounding import UNIT, distance_upper, norm_upper, up
from goldstein.checker.sampled import check_layout
from goldstein.checker.verification import Label, Verification
from goldstein.errors import GoldsteinError, InputError, InputTypeError
from goldstein.numerics.hull_problems import shortest_weights
from goldstein.numerics.streams import seed_from, stream
from goldstein.oracles import CountedOracle, Oracle, differences, function, separable
from goldstein.oracles.problem import System, Values, as_system
from goldstein.storage.codec import array, record

#: The part of 1 - confidence that goes to McDiarmid's bound; the rest goes to the entries.
WHOLE = 0.1

#: A half-width of a box must be this large against the point, or float64 does not see it.
VISIBLE = 2.0**-40

#: The fewest samples that a claim is made of: they also show how steep f is.
FEWEST = 24

#: Points evaluated at once, and the most that a verification will ask for.
CHUNK, EFFORT = 20_000, 100_000_000


@record
class ValuesCertificate(NoProofFile, LaidOut):
    """Statistical evidence, from values alone, that x is (eps, delta)-Goldstein stationary.

    `dist(0, Goldstein set of f at x, plus the normals of the bounds at x) <= eps` was found with
    probability at least `confidence` over the random draws, if `slopes` are right. This is never a
    proof: finitely many values cannot give one.

    Attributes
    ----------
    x : ndarray, shape (d,)
    delta, eps : float
    points : ndarray, shape (k, d)
        Centres of the boxes.
    weights : ndarray, shape (k,)
        Convex.
    widths : ndarray, shape (d,)
        Half-widths h of the boxes; `|y_j - x| + |h| <= delta`. 0 for variables that cannot move.
    slopes : ndarray, shape (d,)
        Bounds of the slopes of f along the coordinates, taken on trust: given by the user, or one
        and a half times what was seen (`meta["slopes"]` says which). A fresh draw beyond them
        refuses the certificate.
    confidence : float
    samples : int
        Fresh samples, of `2 d k` values each.
    mean : ndarray, shape (d,)
        Their mean when the claim was made: an estimate of a subgradient; for information.
    grain : float
        Values that change in steps larger than rounding: how large the steps are.
    lower, upper : ndarray, shape (d,)
        Bounds of the variables.
    label : str
        Always "estimated".
    meta, digest
        As in `GoldsteinCertificate`.

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> f = lambda x: np.abs(x).sum()
    >>> res = gs.minimize(f, [0.3, -0.2], eps=0.1, delta=0.01, method="values", rng=0)
    >>> res.certificate.label, res.certificate.confidence, res.certificate.verify(f).ok
    ('estimated', 0.95, True)
    """

    kind: ClassVar[str] = "values"
    _limits: ClassVar[tuple[str, ...]] = ("bounds",)

    x: Vector = array("d")
    delta: float
    eps: float
    points: Matrix = array("k d")
    weights: Vector = array("k")
    widths: Vector = array("d")
    slopes: Vector = array("d")
    confidence: float
    samples: int
    mean: Vector = array("d")
    grain: float
    lower: Vector = array("d", finite=False)
    upper: Vector = array("d", finite=False)
    label: Label = field(default="estimated", kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.samples, bool) or not isinstance(self.samples, int | np.integer):
            raise InputTypeError(f"samples must be an integer, got {self.samples!r}.")
        object.__setattr__(self, "samples", int(self.samples))
        if self.label != "estimated":
            raise InputError(f"values alone support the label 'estimated', not {self.label!r}.")
        super().__post_init__()
        if not (self.weights.size and self.x.size):
            raise InputError("a certificate from values needs variables, and points with weights.")

    @property
    def normal(self) -> Vector:
        """What the bounds at x contribute: <= 0 at lower bounds, >= 0 at upper ones, else 0."""
        return normal_against(self.mean, Box(self.lower, self.upper), self.x)

    def verify(
        self,
        fun: Oracle | Callable[..., Any],
        jac: Any = None,
        args: Sequence[Any] = (),
        *,
        bounds: Any = None,
        like: Any = None,
        seed: int | None = None,
        workers: separable.Workers = None,
    ) -> Verification:
        """Draw as many samples afresh, and see whether they support the claim.

        Parameters
        ----------
        fun, args, bounds, workers
            As in `minimize`.
        jac
            Not used: other certificates have it.
        seed : int, optional
            By default nobody can foresee the draws.

        Returns
        -------
        Verification
            `eps` is the bound that the fresh samples give at this confidence.
        """
        layout = layout_of(self, like)
        oracle = CountedOracle(function.values_of(fun, None, args, layout))
        found, box = Verification(math.inf, math.inf, "estimated"), as_box(bounds, self.x.size)
        places = Places(self.points, self.weights, self.widths)
        with separable.mapped(workers) as ask:
            if plain_checks(found, self, box, places.cost) and check_layout(found, self, layout):
                source = OfFunction(partial(oracle.values_at, workers=ask), places)
                check_fresh(found, self, box, source, seed_from(seed))
        return found

    def summary(self) -> str:
        """One line for people."""
        return (
            f"({self.eps:.3g}, {self.delta:.3g})-Goldstein stationary with confidence "
            f"{self.confidence:g}, {self.samples} samples of differences, estimated (statistics; "
            f"slopes up to {float(self.slopes.max(initial=0.0)):.3g} are believed)"
        )


@dataclass(frozen=True)
class Places:
    """Where differences are taken: boxes around points, weights of the points, room to move."""

    points: Matrix
    weights: Vector
    widths: Vector

    @property
    def cost(self) -> int:
        """Values per sample."""
        return 2 * int((self.widths > 0).sum()) * len(self.weights)


@dataclass(frozen=True)
class Draws:
    """Samples: their weighted means over the points, and the steepest difference met."""

    vectors: Matrix
    steepest: Vector
    largest_value: float


def differences_at(
    values_at: Many, point: Vector, widths: Vector, samples: int, rng: np.random.Generator
) -> Iterator[tuple[int, NDArray[np.float64], Vector]]:
    """Draw randomised differences in the box around a point; see the module.

    Some at a time: the number of the first, the differences along the coordinates that can move,
    shape (samples, coordinates, functions), and the largest value of each function.
    """
    free = np.flatnonzero(widths > 0)
    dim, count, widths = widths.size, free.size, widths[free]
    rows = max(1, CHUNK // max(1, 2 * count))
    axis = np.arange(count)
    for first in range(0, samples, rows):
        some = min(rows, samples - first)
        offsets = rng.uniform(-widths, widths, (some, count, count))
        ends = np.broadcast_to(point, (2, some, count, dim)).copy()
        offsets[:, axis, axis] = 0.0
        ends[..., free] += offsets
        ends[0, :, axis, free] += widths[:, None]
        ends[1, :, axis, free] -= widths[:, None]
        asked = values_at(ends.reshape(-1, dim)).reshape(2, some, count, -1)
        # What float64 made of them, not what was meant.
        spans = (ends[0, :, axis, free] - ends[1, :, axis, free]).T[..., None]
        largest = np.abs(asked).max(axis=(0, 1, 2), initial=0.0)
        yield first, (asked[0] - asked[1]) / spans, largest


def upper_bound(
    draws: Matrix, slopes: Vector, box: Box, x: Vector, miss: float, spare: float = 0.0
) -> float:
    """Return what the distance from 0 is at most, wrong with probability <= `miss`.

    `spare` lets the limits of the entries be wider, by so many standard deviations of their means.
    """
    n = len(draws)
    low, high = mean_limits(draws, slopes, (1.0 - WHOLE) * miss)
    margin = spare * math.sqrt(2.0 / n) * draws.std(axis=0)
    entries = norm_upper(left_by_normals(low - margin, high + margin, box, x))
    mean = draws.mean(axis=0)
    seen = norm_upper(left_by_normals(mean - margin, mean + margin, box, x))
    free = ~box.fixed
    whole = seen + sampling_slack(n, norm_upper(slopes[free]), 1.0 - WHOLE * miss)
    return up(min(entries, whole))


def left_by_normals(low: Vector, high: Vector, box: Box, x: Vector) -> Vector:
    """Return what normals of the bounds leave, at worst, of a vector between low and high."""
    below, above = box.normal_signs(x)
    left = np.maximum(np.where(below, 0.0, high), np.where(above, 0.0, -low))
    return np.maximum(left, 0.0)


def normal_against(mean: Vector, box: Box, x: Vector) -> Vector:
    """Return the normal of the bounds at x that cancels what it can of a vector."""
    below, above = box.normal_signs(x)
    return np.where((below & (mean > 0)) | (above & (mean < 0)), -mean, 0.0)


def rounding_of(widths: Vector, largest_value: float, grain: float) -> float:
    """Return how long a vector of differences can be that rounding of values made."""
    free = widths > 0
    blur = DIGITS * UNIT * largest_value + grain
    return up(norm_upper(blur / widths[free])) if free.any() else 0.0


@dataclass(frozen=True)
class OfFunction:
    """Samples of the differences of one function."""

    values_at: Many
    places: Places

    #: What is known of the terms at two points becomes what is known of both.
    _joined: ClassVar[np.ufunc] = np.maximum

    def draw(self, samples: int, rng: np.random.Generator) -> Draws:
        """Draw samples; `steepest` and `largest_value` are bounds of their terms.

        Slopes and rounding are those of the terms, though these may cancel.
        """
        widths = self.places.widths
        free = widths > 0
        vectors, steepest, largest = np.zeros((samples, widths.size)), np.zeros(widths.size), 0.0
        for j, point in enumerate(self.places.points):
            asked, weights, sizes = self._terms(j)
            if not weights.size:
                continue  # a point that serves nothing
            steep, size = np.zeros((int(free.sum()), weights.size)), np.zeros(weights.size)
            for first, found, seen in differences_at(asked, point, widths, samples, rng):
                vectors[first : first + len(found), free] += found @ weights
                steep = np.maximum(steep, np.abs(found).max(axis=0, initial=0.0))
                size = np.maximum(size, seen)
            steepest[free] = self._joined(steepest[free], steep @ sizes)
            largest = float(self._joined(largest, size @ sizes))
        return Draws(vectors, steepest, largest)

    def _terms(self, j: int) -> tuple[Many, Vector, Vector]:
        """Return the functions that count at point j, as columns, their weights and sizes."""
        return self.values_at, self.places.weights[j : j + 1], np.ones(1)

    def quantum(self, delta: float, slopes: Vector, box: Box, rng: np.random.Generator) -> float:
        """Return the size of the steps in which values change, beyond what slopes allow."""
        used = self.places.weights > 0
        points, widths = self.places.points[used], self.places.widths
        return quantum_of(self.values_at, points, widths, slopes, delta, box, rng)


def check_fresh(
    found: Verification, cert: ValuesCertificate, box: Box, source: OfFunction, seed: int
) -> Vector | None:
    """Decide whether samples drawn afresh support the claim; return their mean."""
    rng = stream(seed, 0, "fresh differences")
    try:
        draws = source.draw(cert.samples, rng)
        grain = source.quantum(cert.delta, cert.slopes, box, rng)
    except GoldsteinError as failure:
        found.add("values", False, f"a function could not be evaluated: {failure}")
        return None
    finite = bool(np.isfinite(draws.vectors).all())
    if not found.add("values", finite, "all finite" if finite else "not all are finite"):
        return None
    steep = bool((draws.steepest <= cert.slopes).all())
    said = "no fresh difference is steeper" if steep else "a fresh one is steeper"
    found.add("slopes", steep, said)
    miss = 1.0 - cert.confidence
    bound = upper_bound(draws.vectors, cert.slopes, box, cert.x, miss)
    rounding = rounding_of(cert.widths, draws.largest_value, max(grain, cert.grain))
    found.eps = up(bound + rounding, 4e-9)
    found.add(
        "bound",
        found.eps <= cert.eps,
        f"fresh samples give {found.eps:.6g}, claimed {cert.eps:.6g}",
    )
    return draws.vectors.mean(axis=0)


def are_visible(points: Matrix, widths: Vector, box: Box) -> bool:
    """Are boxes wide enough for float64 to see them?"""
    seen = (widths > 0.0) & (widths >= VISIBLE * np.abs(points).max(axis=0))
    return bool((seen | ((widths == 0.0) & box.fixed)).all())


def plain_checks(found: Verification, cert: ValuesCertificate, box: Box, cost: int) -> bool:
    """Whatever needs no question to the function."""
    _, stored, fields = cert.to_record()
    arrays = [array for name, array in stored.items() if name not in ("lower", "upper")]
    numbers = [value for value in fields.values() if isinstance(value, float)]
    finite = all(np.isfinite(a).all() for a in arrays) and all(map(math.isfinite, numbers))
    whole = cert.samples >= FEWEST and cert.samples * max(cost, 1) <= EFFORT
    sane = 0.0 < cert.confidence < 1.0 and min(numbers) >= 0.0 and whole
    if not found.add("numbers", finite and sane, "finite, and of a possible size"):
        return False
    same = cert.digest == cert.content_digest()
    found.add("content", same, "unaltered" if same else "altered after it was made")
    convex = (cert.weights >= 0).all() and abs(math.fsum(cert.weights) - 1.0) <= 1e-9
    found.add("weights", bool(convex), "nonnegative, sum 1")
    reach = up(norm_upper(cert.widths))
    found.delta = max(up(distance_upper(y, cert.x) + reach) for y in cert.points)
    found.add("ball", found.delta <= cert.delta, f"boxes within {found.delta:.6g}")
    corners = [y + side * cert.widths for y in cert.points for side in (-1.0, 1.0)]
    inside = box.contains(np.array(corners)) and box.contains(cert.x)
    found.add("bounds", inside, "boxes and x inside the bounds")
    wide = are_visible(cert.points, cert.widths, box)
    found.add("widths", wide, "boxes that float64 can see" if wide else "a box is too narrow")
    found.add("label", cert.label == "estimated", "values support 'estimated'")
    return found.ok


Rows = NDArray[np.int64]


@record
class ValuesKKTCertificate(Qualified, ValuesCertificate):
    """Statistical evidence, from values alone, that x is an (eps, delta)-Goldstein-KKT point.

    `dist(0, Goldstein set of f + sum_i multipliers[i] (Goldstein set of c_i) + normals of the
    bounds at x) <= eps` was found with probability at least `confidence` over the random draws, if
    `slopes` are right; the multipliers were fixed before. Never a proof, whatever gradients are
    known: all of it is asked for by values.

    Attributes
    ----------
    x, delta, eps, points, widths, confidence, samples, grain, lower, upper, label, meta, digest
        As in `ValuesCertificate`.
    weights : ndarray, shape (k,)
        Of f at the points: convex; 0 where a point serves constraints only.
    mean : ndarray, shape (d,)
        Mean of the samples: of the gradient of f with the multiples of those of the constraints.
    slopes : ndarray, shape (d,)
        Bounds of the slopes along the coordinates: that of f, and those of the constraints times
        the size of their multipliers, added up.
    constraint_weights : ndarray, shape (r,)
        Signed like the multipliers: positive at the upper limit, negative at the lower one.
    constraint_index, point_index : ndarray of int, shape (r,)
        Which component of the constraints, and which of the points, a weight belongs to.
    multipliers : ndarray, shape (m,)
        Sums of `constraint_weights`.
    witnesses : ndarray, shape (t, d)
        Points of the ball that reach or cross the limits of inequalities with a multiplier.
    witness_index : ndarray of int, shape (t,)
        The component that a witness is for.
    feasibility : float
        The largest violation of a constraint at x.
    qualification : float
        As in `KKTCertificate`, measured on differences; next to 0 the claim is `degenerate`.

    Examples
    --------
    >>> import goldstein as gs
    >>> f, c = lambda x: abs(x[0]) + x[1], {"type": "ineq", "fun": lambda x: x[1] - x[0] ** 2}
    >>> res = gs.minimize(f, [1.0, 2.0], "2-point", eps=0.2, delta=0.01, constraints=c, rng=0)
    >>> res.certificate.label, res.certificate.verify(f, constraints=c).ok
    ('estimated', True)
    >>> bool(abs(res.multipliers[0] + 1.0) < 0.1)
    True
    """

    kind: ClassVar[str] = "values-kkt"

    constraint_weights: Vector = array("r")
    constraint_index: Rows = array("r", np.int64)
    point_index: Rows = array("r", np.int64)
    multipliers: Vector = array("m")
    witnesses: Matrix = array("t d")
    witness_index: Rows = array("t", np.int64)
    feasibility: float
    qualification: float

    def verify(  # type: ignore[override]  # of points that are vectors
        self,
        fun: Oracle | Callable[..., Any],
        jac: Any = None,
        args: Sequence[Any] = (),
        *,
        bounds: Any = None,
        constraints: Any = (),
        seed: int | None = None,
        workers: separable.Workers = None,
    ) -> Verification:
        """Draw as many samples afresh, and see whether they support the claim.

        Parameters
        ----------
        fun, args, bounds, constraints, workers
            As in `minimize`.
        jac
            Not used: other certificates have it.
        seed : int, optional
            By default nobody can foresee the draws.
        """
        oracle, seed = CountedOracle(function.values_of(fun, None, args)), seed_from(seed)
        found, box = Verification(math.inf, math.inf, "estimated"), as_box(bounds, self.x.size)
        cost = 2 * self.x.size * len(self.points)
        if not (plain_checks(found, self, box, cost) and _check_witnesses(found, self, box)):
            return found
        stencil = differences.Stencil(box.lower, box.upper, seed, central=True)
        with separable.mapped(workers) as ask:
            try:
                system = as_system(constraints, self.x, stencil=stencil, workers=ask)
                if _check_constraints(found, self, system):
                    many, values_at = Multiples.of(self), partial(oracle.values_at, workers=ask)
                    source = OfMultiples(values_at, many, system)
                    mean = check_fresh(found, self, box, source, seed)
                    if found.ok and mean is not None:
                        _check_qualification(found, self, source, box, mean, seed)
            except GoldsteinError as failure:
                found.add("problem", False, f"constraints could not be asked: {failure}")
        return found

    def summary(self) -> str:
        """One line for people."""
        degenerate = ", degenerate" if self.degenerate else ""
        return (
            f"({self.eps:.3g}, {self.delta:.3g})-Goldstein-KKT with confidence "
            f"{self.confidence:g}, violation {self.feasibility:.3g}, {len(self.active)} of "
            f"{self.multipliers.size} constraints in use{degenerate}, {self.samples} samples of "
            "differences, estimated (statistics)"
        )


@dataclass(frozen=True)
class Multiples(Places):
    """Where differences are taken, of f with these weights and of constraints with those."""

    constraint_weights: Vector
    constraint_index: Rows
    point_index: Rows

    @classmethod
    def of(cls, claim: ValuesKKTCertificate) -> Multiples:
        """Return those of a claim."""
        return cls(**{part.name: getattr(claim, part.name) for part in fields(cls)})

    def multipliers(self, size: int) -> Vector:
        """Return the sums of the weights for each of so many components."""
        totals = np.zeros(size)
        np.add.at(totals, self.constraint_index, self.constraint_weights)
        return totals


@dataclass(frozen=True)
class OfMultiples(OfFunction):
    """Samples V of the module; f and the constraints are asked at a point once."""

    places: Multiples
    system: System

    _joined: ClassVar[np.ufunc] = np.add

    def _terms(self, j: int) -> tuple[Many, Vector, Vector]:
        here, of_f = self.places.point_index == j, float(self.places.weights[j])
        index, weights = self.places.constraint_index[here], self.places.constraint_weights[here]

        def asked(points: Matrix) -> Matrix:
            columns = [self.values_at(points)[:, None]] if of_f else []
            if index.size:
                columns.append(self.system.many_values(points)[:, index])
            return np.concatenate(columns, axis=1)

        weights = np.concatenate([[of_f], weights]) if of_f else weights
        return asked, weights, np.abs(weights)

    def quantum(self, delta: float, slopes: Vector, box: Box, rng: np.random.Generator) -> float:
        """Return the steps of f, and of each constraint times its multiplier."""
        m, system = self.places, self.system
        where = m.points[m.weights > 0]
        total = quantum_of(self.values_at, where, m.widths, slopes, delta, box, rng)
        for i, weight in enumerate(np.abs(m.multipliers(system.size)).tolist()):
            if weight and not system.linear[i]:
                where = m.points[np.unique(m.point_index[m.constraint_index == i])]
                allowed, component = slopes / weight, _component(system, i)
                total += weight * quantum_of(component, where, m.widths, allowed, delta, box, rng)
        return total


def _component(system: System, i: int) -> Many:
    return lambda points: system.many_values(points)[:, i]


def reached(
    system: System, i: int, multiplier: float, here: Vector, witnesses: Sequence[Vector]
) -> bool:
    """Whether the limit that a multiplier belongs to is reached at x, or at a witness.

    `here` are the values at x. An equality holds at x, or has values on both sides of its limit.
    """
    values = np.array([here[i], *(system.values(z)[i] for z in witnesses)])
    above, below = bool((values >= system.upper[i]).any()), bool((values <= system.lower[i]).any())
    if system.equal[i]:
        return bool(abs(here[i] - system.upper[i]) <= system.tolerances()[i]) or (above and below)
    return above if multiplier > 0 else below


def measured_qualification(
    source: OfMultiples, box: Box, x: Vector, delta: float, mean: Vector,
    rng: np.random.Generator, pairs: int = PAIRS,
) -> float:  # fmt: skip
    """Return how far the gradients of the constraints in use are from cancelling each other.

    Differences stand in for gradients; `mean` shows which bounds are in use.
    """
    multiples, system = source.places, source.system
    rows = [
        (int(i), system.rows(multiples.points[j])[i].copy())
        for i, j in zip(multiples.constraint_index.tolist(), multiples.point_index.tolist())
    ]
    normal, multipliers = normal_against(mean, box, x), multiples.multipliers(system.size)
    claim = SimpleNamespace(x=x, delta=delta, normal=normal, multipliers=multipliers)
    problem = SimpleNamespace(box=box, system=system, propose=shortest_weights)
    return qualification(claim, problem, rows, rng, 0.0, pairs)


def _check_witnesses(found: Verification, cert: ValuesKKTCertificate, box: Box) -> bool:
    far = max((distance_upper(z, cert.x) for z in cert.witnesses), default=0.0)
    found.delta = max(found.delta, far)
    inside = box.contains(cert.witnesses) and far <= cert.delta
    found.add("witnesses", bool(inside), "inside ball and bounds" if inside else "outside")
    owned = bool(((cert.point_index >= 0) & (cert.point_index < len(cert.points))).all())
    found.add("points", owned, "every weight has a point" if owned else "a weight has no point")
    return found.ok


def _check_constraints(found: Verification, cert: ValuesKKTCertificate, system: System) -> bool:
    """Signs, feasibility and activity: all by values, nothing by chance."""
    check_signs(found, cert, system, Box(cert.lower, cert.upper))
    if not found.ok:
        return False
    here = system.values(cert.x).copy()
    again = Values(system.groups)(cert.x)
    steady = bool((again == here).all())
    found.add("deterministic", steady, "constraints answer alike" if steady else "constraints vary")
    violation = system.violation(cert.x)
    room = 2.0**-48 * float(np.abs(here).max(initial=0.0))
    found.add(
        "feasibility",
        violation <= cert.feasibility + room,
        f"violation {violation:.3g} at x, claimed {cert.feasibility:.3g}",
    )
    missing = [
        i
        for i in cert.active
        if not reached(
            system, i, cert.multipliers[i], here, list(cert.witnesses[cert.witness_index == i])
        )
    ]
    found.add(
        "activity",
        not missing,
        f"a multiplier on {system.name(missing[0])}, which no stored point reaches"
        if missing
        else "every constraint with a multiplier is reached in the ball",
    )
    return found.ok


def _check_qualification(
    found: Verification, cert: ValuesKKTCertificate, source: OfMultiples, box: Box, mean: Vector,
    seed: int,
) -> None:  # fmt: skip
    rng = stream(seed, 0, "qualification")
    q = measured_qualification(source, box, cert.x, cert.delta, mean, rng)
    honest = cert.qualification <= LESS * q
    empty = min(q, cert.qualification) <= DEGENERATE
    found.add(
        "qualification",
        honest and not empty,
        f"differences of the constraints stay {q:.3g} away from 0"
        + ("" if honest else f", {cert.qualification:.3g} is stated")
        + (": degenerate, the claim says nothing about f" if empty else ""),
    )
