"""Claims about minima: how far f(x) is above the lowest value on a ball, or everywhere.

Theorem. Let m <= f on the ball B of radius r around y, loss = f(y) - m(y), m'(y; h) >= -eps |h|,
and m - z'Mz/2 convex on B, M >= lam I. Then for z in B, t = |z - y|,

    f(z) >= f(y) - loss - eps t + lam/2 t^2.

Proof. g = m - (. - y)'M(. - y)/2 is convex on B, so g(z) >= g(y) + g'(y; z - y), and g' = m' at y.
eps bounds the lengths in an enclosure of the slopes of all pieces of m at y.

So f >= f(y) - gap on B with gap = loss + max of eps t - lam/2 t^2 over t <= r; if
lam > 0 and within = (eps + sqrt(eps^2 + 2 lam loss)) / lam < r, every z farther than `within` is
higher than y: the lowest points of B are inside it, local minimisers of f (strict). If f itself is
strictly convex on B there is no other local minimiser in B (unique); if f is convex everywhere the
local minimum is global, and B shows its gap. For r infinite all this holds everywhere.

With bounds and constraints the same is said of f plus penalties, for feasible z: see
`goldstein.checker.minimum.feasible`. B is then the part of the ball inside the bounds, where y may
be on its boundary. Everything is decided in rationals, or in intervals rounded outwards.
"""

import math
from contextlib import suppress
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from goldstein.checker.enclosed.point import is_small
from goldstein.checker.errors import GoldsteinError, NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.minimum.cases import Cases, farthest_low
from goldstein.checker.minimum.curvature import Curvature, Pass, Region
from goldstein.checker.minimum.feasible import Feasible
from goldstein.checker.minimum.lines import is_large, line_below
from goldstein.checker.minimum.spans import Span
from goldstein.checker.minimum.supports import held, sharpened, slope_of_lines
from goldstein.checker.nodes import Max, Order
from goldstein.checker.rationals import (
    fraction_upper,
    sqrt_upper,
    squared_distance,
    squared_norm,
    to_fraction,
    to_fractions,
)
from goldstein.checker.rounding import up
from goldstein.checker.sides import Point, Program, finite_numbers, point_at
from goldstein.checker.verification import Verification

SCOPES = ("ball", "box", "global")


class Shown(NamedTuple):
    """f(z) >= f(y) - loss - eps t + growth/2 t^2 for t = |z - y| <= reach."""

    eps: float
    loss: Fraction
    growth: float
    reach: float

    @property
    def gap(self) -> Fraction | None:
        """The largest f(y) - f(z); None if there is no bound."""
        eps, lam = Fraction(self.eps), Fraction(self.growth)
        if math.isinf(self.reach) or (lam > 0 and lam * Fraction(self.reach) > eps):
            if lam > 0:
                return self.loss + eps * eps / (2 * lam)
            return self.loss if lam == 0 and eps == 0 else None
        r = Fraction(self.reach)
        return self.loss + eps * r - lam * r * r / 2

    @property
    def within(self) -> float:
        """How far the lowest points are from y, at most; infinite where nothing is shown."""
        return farthest_low(self.eps, self.growth, self.loss) if self.growth > 0 else math.inf


class Minorant(NamedTuple):
    """m(z) >= f(y) - loss - eps t + h'(curvature)h/2 for h = z - y, t = |h| <= reach."""

    curvature: Curvature
    eps: float
    loss: Fraction
    reach: float

    def show(self, growth: float) -> Shown:
        """State what a growth shows; refuse it where it is not proved."""
        if not self.curvature.at_least(growth):
            raise NotCertifiableError(f"the curvature is not proved to be at least {growth:g}.")
        return Shown(self.eps, self.loss, growth, self.reach)


def minorant(
    program: Program, y: Any, reach: float, supports: Any = (), sharp: Any = (), box: Any = None
) -> Minorant:
    """Derive the minorant of supports on the ball of radius `reach` around y, or refuse them."""
    region, own = Region(y, reach, box), held(program, supports, sharp)
    run = Pass(program, region, own)
    total, _ = run.backward(program.last, Span(np.ones(1)))
    alone = Pass(program, Region(y, 0.0), own, alone=run)
    terms = [term for part in own.values() for term in part.terms]
    bare = Pass(program, region if terms else Region(y, 0.0))
    top, low = bare.here.values[-1].hi[0], alone.values[-1].lo[0]
    slopes = alone.slopes[-1].size[0]
    if not np.isfinite([top, low, *slopes]).all():
        raise NotCertifiableError("value or gradient could not be enclosed; rescale the data.")
    exact = slope_of_lines(program, own) if math.isinf(reach) and is_small(program) else None
    length = sqrt_upper(squared_norm(to_fractions(slopes) if exact is None else exact))
    loss, eps = 0.0, 0.0
    if terms:
        if math.isinf(reach):
            raise NotCertifiableError("sharpness needs a ball of finite radius.")
        loss, eps = sharpened(total, terms, bare, reach)
    if not all(math.isfinite(part.charge) for part in own.values()):
        raise NotCertifiableError("a concave kink inside has no finite charge.")
    charge = sum((Fraction(part.charge) for part in own.values()), Fraction(0))
    whole = max(Fraction(top) - Fraction(low), Fraction(0)) + Fraction(loss) + charge
    return Minorant(total, up(length + eps) if eps else length, whole, reach)


def rise(program: Program, y: Any, x: Any) -> Fraction:
    """Return an upper bound of f(x) - f(y)."""
    if list(y) == to_fractions(x):
        return Fraction(0)
    high, low = (Pass(program, Region(z, 0.0)).values[-1] for z in (x, y))
    return Fraction(high.hi[0]) - Fraction(low.lo[0])


def convexity(program: Program, y: Any, reach: float, least: float, box: Any = None) -> bool:
    """Is f - least/2 |z|^2 convex on the ball of radius `reach` around y, or everywhere?"""
    run = Pass(program, Region(y, reach, box))
    return run.backward(program.last, Span(np.ones(1)))[0].at_least(least)


class Claim(NamedTuple):
    """What is being decided: the claim, the function, and its limits where there are some."""

    cert: Any
    program: Program
    limits: Feasible | None

    @property
    def box(self) -> Any:
        return None if self.limits is None else self.limits.problem.box

    @property
    def everywhere(self) -> bool:
        """Does the ball contain all points inside the bounds?"""
        return Region(self.cert.exact_pivot, self.cert.reach, self.box).everywhere


def check(cert: Any, program: Program, problem: Any = None) -> Verification:
    """Decide a claim about a minimum, with a sentence for everything that was looked at.

    A `problem` has bounds and constraints (`goldstein.checker.constrained.near.ExactProblem`).
    """
    found = Verification(eps=math.inf, delta=math.inf, label="conditional")
    fault = _unusable(cert)
    if not found.add("numbers", not fault, fault or "finite, in order"):
        return found
    fits = program.dim == cert.x.size == len(cert.exact_pivot)
    if not found.add("dimension", fits, f"{cert.x.size}, the function has {program.dim}"):
        return found
    y = cert.exact_pivot
    square = squared_distance(y, cert.x)
    found.delta = sqrt_upper(square)
    near = square <= Fraction(cert.delta) ** 2
    found.add("ball", near, f"pivot at distance {found.delta:.6g}, claimed {cert.delta:.6g}")
    limits = None
    try:
        if problem is not None or cert.penalties is not None:
            limits = _check_place(found, cert, program, problem)
            if limits is None:
                return found
        claim = Claim(cert, program if limits is None else limits.program, limits)
        shown = _shown(claim)
        rest = rise(claim.program, y, cert.x)
    except GoldsteinError as failure:
        found.add("curvature", False, str(failure))
        return found
    found.eps = shown.eps
    how = f"growth {cert.growth:.6g} on a ball of radius {cert.reach:.6g} around the pivot"
    found.add("curvature", True, f"{how}, {len(cert.supports)} supports")
    words = f"recomputed eps {shown.eps:.6g}, claimed {cert.eps:.6g}"
    found.add("bound", shown.eps <= cert.eps, words)
    _check_gap(found, cert, shown, rest)
    _check_flags(found, claim, shown)
    if cert.global_gap is not None:
        _check_cases(found, claim)
    _check_scope(found, claim, shown)
    return found.conclude(cert.label)


def _shown(claim: Claim) -> Shown:
    """Derive what is shown: of large functions by lines, where these will do."""
    cert, y = claim.cert, claim.cert.exact_pivot
    if is_large(claim.program) and not cert.sharp and cert.growth == 0:
        with suppress(NotCertifiableError):
            eps, loss = line_below(claim.program, y, cert.supports).ends
            if eps <= cert.eps:
                return Shown(eps, loss, 0.0, cert.reach)
    given = cert.reach, cert.supports, cert.sharp, claim.box
    return minorant(claim.program, y, *given).show(cert.growth)


def _unusable(cert: Any) -> str:
    positive = cert.delta, cert.eps, cert.gap, cert.violation, cert.within or 0.0
    others = cert.growth, cert.convexity or 0.0, cert.global_gap or 0.0, cert.case_growth
    if not all(np.isfinite(part).all() for part in (cert.x, positive, others)):
        return "an entry is not finite"
    if min(positive) < 0 or not cert.reach > 0:
        return "a radius, gap or bound is negative"
    return "" if cert.scope in SCOPES else f"there is no scope {cert.scope!r}"


def _check_place(found: Verification, cert: Any, program: Program, problem: Any) -> Feasible | None:
    """Look at what is claimed about bounds, constraints and multipliers; None for nonsense."""
    weights, y = cert.penalties, cert.exact_pivot
    sizes = problem is not None and weights is not None
    sizes = sizes and weights.shape == (len(problem.parts) + program.dim,)
    sizes = sizes and {part.dim for part in problem.parts} <= {program.dim}
    sizes = sizes and bool((np.isfinite(weights) & (weights >= 0)).all())
    words = "one for every constraint and every variable, finite and not negative"
    if not found.add("penalties", sizes, words):
        return None
    limits = Feasible(program, problem, weights)
    inside = all(map(problem.box.contains, (cert.x, np.array(y, dtype=object))))
    if not found.add("bounds", inside, "x and pivot inside" if inside else "x or pivot outside"):
        return None
    worst = fraction_upper(limits.violation(cert.x.tolist()))
    right = worst <= cert.violation
    found.add("feasibility", right, f"violated by {worst:.6g}, claimed {cert.violation:.6g}")
    told = cert.multipliers is not None and cert.normal is not None
    told = told and np.array_equal(
        np.append(cert.multipliers, cert.normal), limits.multipliers(cert.supports)
    )
    found.add("multipliers", told, "of the supports" if told else "others than the supports have")
    return limits


def _check_gap(found: Verification, cert: Any, shown: Shown, rest: Fraction) -> None:
    if shown.gap is None:
        found.add("gap", False, "there is no finite gap: no growth, and eps is not 0")
        return
    whole = max(shown.gap + rest, Fraction(0))
    words = f"recomputed {fraction_upper(whole):.6g}, claimed {cert.gap:.6g}"
    found.add("gap", whole <= Fraction(cert.gap), words)


def _check_flags(found: Verification, claim: Claim, shown: Shown) -> None:
    cert, limits = claim.cert, claim.limits
    inside = shown.within < shown.reach
    if cert.strict or cert.within is not None:
        found.add("strict", inside, f"lowest points within {shown.within:.6g} of the pivot")
        least = fraction_upper(Fraction(shown.within if inside else 0) + Fraction(cert.delta))
        claimed = cert.within is not None and least <= cert.within < cert.radius
        words = f"at most {least:.6g} from x, inside the scope, claimed {cert.within}"
        found.add("within", claimed, words)
        if limits is not None:
            feasible = not limits.violation(cert.exact_pivot)
            found.add("pivot", feasible, "feasible" if feasible else "not feasible: never strict")
    if cert.unique:
        own = (cert.convexity or 0.0) > 0 and (limits is None or limits.flat)
        found.add("unique", cert.strict and own, "a strict minimum of a strictly convex function")


def _check_cases(found: Verification, claim: Claim) -> None:
    """Decide what a tree of cases shows of f everywhere."""
    cert = claim.cert
    arrays = cert.case_points, cert.case_slopes, cert.case_splits
    if any(a is None for a in arrays) or cert.case_splits.shape[1:] != (2,):
        found.add("cases", False, "there is no tree")
        return
    try:
        cases = Cases(claim.program)
        cases.require(cert.case_growth)
        goal = point_at(claim.program, cert.x).between()[1] - Fraction(cert.global_gap)
        fits = cert.case_points.shape[1] == cert.x.size and cert.case_slopes.shape[1] == cases.size
        fits = fits and bool(np.isfinite(cert.case_slopes).all())
        wrong = False, "wrong sizes, or a slope is not finite"
        found.add("cases", *(cases.all_closed(*arrays, goal) if fits else wrong))
    except GoldsteinError as failure:
        found.add("cases", False, str(failure))


def _check_scope(found: Verification, claim: Claim, shown: Shown) -> None:
    cert = claim.cert
    everywhere = cert.scope == "global"
    if cert.scope == "box":
        found.add("scope", False, "a box is shown by cuts on its faces")
    elif everywhere:
        local = shown.within < shown.reach and cert.convexity is not None
        cases = cert.global_gap is not None and cert.global_gap <= cert.gap
        cases = cases and not cert.strict and cert.within is None  # these are of the ball alone
        how = (claim.everywhere or local or cases) and math.isinf(cert.radius)
        found.add("scope", how, "curved everywhere, or convex and strict, or by cases")
    else:
        room = math.isinf(cert.reach)
        if not room and math.isfinite(cert.radius):
            room = Fraction(cert.radius) + Fraction(cert.delta) <= Fraction(cert.reach)
        words = f"a ball of radius {cert.radius:.6g} around x"
        found.add("scope", room and cert.radius >= 0, words)
    if cert.convexity is not None:
        own = math.inf if everywhere else cert.reach
        try:
            convex = cert.convexity >= 0 and convexity(
                claim.program, cert.exact_pivot, own, cert.convexity, claim.box
            )
            found.add("convex", convex, f"f is {cert.convexity:.6g}-convex there")
        except GoldsteinError as failure:
            found.add("convex", False, str(failure))


# --- refutation --------------------------------------------------------------------------------


def slope_along(point: Point, direction: Any) -> Fraction:
    """Return an upper bound of the one-sided derivative at a point; exact where f is rational.

    Every node is locally Lipschitz and has one-sided derivatives, so that they chain: a kink uses
    the slope of the side that its argument goes to, a maximum the largest derivative of those that
    are tied, a norm at 0 the norm of the derivative.
    """
    program = point.program
    moves: dict[int, Any] = {0: point.enclosed(finite_numbers(direction, program.dim, "direction"))}
    for k, node in enumerate(program.nodes[1:], 1):
        piece = point.pieces.get(k)
        if k in point.ties:
            piece = _leaving(node, piece, point.ties[k], moves[node.of[0]])
        args = [[point.value(a), moves[a]] for a in node.of]
        series = node.forward(args, piece)
        moves[k] = series[1] if len(series) > 1 else moves[node.of[0]] * point.enclosed(np.zeros(1))
    end = moves[program.last]
    if isinstance(end, Exact):
        return end.fractions[0]
    top = float(end.ends()[1][0])
    if not math.isfinite(top):
        raise NotCertifiableError("the slope of f is beyond float64.")
    return Fraction(top)


def _leaving(node: Any, piece: Any, ties: Any, move: Any) -> Any:
    """Return the pieces that the arguments go to."""
    piece = piece.copy()
    for row, places in ties.items():
        here = move[places]
        if not isinstance(here, Exact):
            one = len(here.largest(len(places))[0]) == 1
            known = one if isinstance(node, Max) else here.signs().any()
            if isinstance(node, Order) or not known:
                raise NotCertifiableError("the side that an argument goes to is not decided.")
        piece[row] = node.leave(piece[row], places, [here])[0]
    return piece


def check_refutation(cert: Any, program: Program, problem: Any = None) -> Verification:
    """Decide whether f is lower at a point by `fall`, and falls from the pivot at once.

    With bounds or constraints the point must be feasible, and nothing is said of slopes.
    """
    found = Verification(eps=math.inf, delta=math.inf, label="conditional")
    numbers = cert.x, cert.point, cert.direction, cert.fall
    usable = all(np.isfinite(a).all() for a in numbers) and cert.fall > 0
    fits = program.dim == cert.x.size == cert.point.size == cert.direction.size
    if not found.add("numbers", usable and fits, "finite, a positive fall, as long as x"):
        return found
    found.delta = sqrt_upper(squared_distance(cert.point, cert.x))
    try:
        here, there = point_at(program, cert.x).between(), point_at(program, cert.point).between()
        fall = here[0] - there[1]
        enough = fall >= to_fraction(cert.fall)
        found.add("fall", enough, f"f falls by {fraction_upper(fall):.6g}, claimed {cert.fall:.6g}")
        if problem is not None:
            limits = Feasible(program, problem, np.zeros(len(problem.parts) + program.dim))
            feasible = cert.slope is None and not limits.violation(cert.point.tolist())
            found.add("feasibility", feasible, "a feasible point, without a slope")
        if cert.slope is not None:
            pivot, along = point_at(program, cert.exact_pivot), to_fractions(cert.direction)
            slope = fraction_upper(slope_along(pivot, along))
            right = slope <= to_fraction(cert.slope) < 0
            found.add("slope", right, f"derivative {slope:.6g}, claimed {cert.slope:.6g}")
            square = squared_distance(cert.exact_pivot, cert.x)
            found.add("ball", square <= Fraction(cert.delta) ** 2, f"pivot within {cert.delta:.6g}")
    except GoldsteinError as failure:
        found.add("fall", False, str(failure))
        return found
    found.label = "refuted" if found.ok else found.label
    found.add("label", cert.label in ("refuted", "conditional"), f"claimed {cert.label}")
    return found
