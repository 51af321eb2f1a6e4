"""Claims that rest on gradients at points near x: a combination of them is at most eps long.

|sum_j w_j grad f(y_j) + sum_r mu_r grad c_i(r)(z_r) + n| <= eps, all points within delta of x and
inside the bounds, w convex. Without constraints and n it is the Goldstein claim. n is a subgradient
of a convex term at x (`goldstein.checker.fenchel`), or normal to the bounds at x; what the
constraints have to satisfy is decided in `goldstein.checker.constraints`.

Gradients of black boxes are believed, but for kinks: they are asked for again at the stored points,
and at perturbed ones, and compared with values. A function whose structure is known is asked for
enclosures of its gradients instead.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker import errors, rounding
from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.checker.blackbox.beside import look_beside
from goldstein.checker.blackbox.perturbed import SAME
from goldstein.checker.blackbox.qualification import check_qualification
from goldstein.checker.constrained import limits
from goldstein.checker.constrained.limits import Box, Component
from goldstein.checker.enclosed.written import Written
from goldstein.checker.fenchel import Record, term_share
from goldstein.checker.function import OBJECTIVE, Asked, BlackBox, Layout, is_vector, shown
from goldstein.checker.rationals import squared_distance
from goldstein.checker.rounding import distances_upper, mean_length, rounding_slack, up
from goldstein.checker.verification import Verification

#: Proposes (a, b), a convex and b >= 0, for which a @ hull + b @ cone is short. Any answer is good
#: enough: weights are not believed, their combination is bounded.
Propose = Callable[[Matrix, Matrix], tuple[Vector, Vector]]

#: Another machine rounds the user's own code differently: by this part of the claimed eps.
SAME_SHARE = 0.01

#: A kink shows as a jump; curvature changes gradients a little way off by less than this part of
#: their length.
CURVED = 2.0**-40


def asked(fun: Any, jac: Any = None, args: Any = (), layout: Layout | None = None) -> Asked:
    """Read a function as `minimize` takes it; points have this layout, or are vectors."""
    own = hasattr(fun, "value") and hasattr(fun, "gradient")
    layout = None if layout is None or is_vector(layout) else layout
    if own and (jac is not None or args or layout is not None):
        raise errors.InputTypeError("fun is an oracle over one vector; drop jac, args and like.")
    if own and hasattr(fun, "program"):
        with suppress(errors.NotCertifiableError):  # a part of it is user code
            return Written(fun.program())
    if own:
        # Nothing that a search may have written is read.
        return Asked(fun.anew() if hasattr(fun, "anew") else fun)
    if not callable(fun) or not (jac is True or callable(jac)):
        raise errors.InputTypeError(
            f"a check asks for gradients: pass jac=your_gradient, or jac=True if fun returns "
            f"(value, gradient); got fun of type {type(fun).__name__} and jac = {jac!r}."
        )
    return Asked(BlackBox(fun, jac, args if isinstance(args, tuple | list) else (args,), layout))


@dataclass(frozen=True, eq=False)
class Problem:
    """What a claim is about: f, bounds, a convex term, constraints; and who proposes weights."""

    f: Asked
    box: Box
    propose: Propose
    layout: Layout
    term: Record | None = None
    system: Any = None

    def function(self, i: int) -> Any:
        """Return f, or a component of the constraints."""
        return self.f if i == OBJECTIVE else Component(self.system, i)


class Rows:
    """Gradients of f with weights >= 0; `goldstein.checker.constrained.kkt` has those of others."""

    def __init__(self, cert: Any, problem: Problem) -> None:
        self.cert, self.problem = cert, problem
        self.points, self.stored, self.weights = _used(cert.points, cert.gradients, cert.weights)
        self.owners = np.full(self.weights.size, OBJECTIVE)
        self.sign = {OBJECTIVE: 1.0}
        self.low, self.high = problem.box.normal_signs(cert.x)
        #: What is added to every combination: a subgradient of the term.
        self.fixed: Vector | None = getattr(cert, "subgradient", None)

    def ask(self, i: int, y: Vector) -> Vector:
        """Return a row: a gradient at a point."""
        return self.sign[i] * self.problem.function(i).gradient(y.copy())

    def length(
        self, rows: Matrix, owners: Indices, weights: Vector, normal: Vector | None = None
    ) -> float:
        """Return an upper bound of the combination's length."""
        extra, share = normal, 1.0
        if normal is None:
            extra, share = self.fixed, math.fsum(weights.tolist())
        if extra is not None and extra.any():
            rows, weights = np.concatenate([rows, extra[None]]), np.append(weights, share)
            owners = np.append(owners, 0)
        mean = rounding.combination_norm_upper(weights, rows)
        if (owners == OBJECTIVE).all() or not mean:
            return mean
        total = up(math.fsum(weights.tolist()))
        return up(up(mean * total) / rounding.sum_lower(weights[owners == OBJECTIVE]))

    def scale(self, rows: Matrix) -> float:
        """Return the mean length of rows."""
        return mean_length(self.weights, rows if self.fixed is None else rows + self.fixed)


def rows_of(cert: Any, problem: Problem) -> Rows:
    """Return the rows that a claim is about, of constraints besides where it has some."""
    if problem.system is None:
        return Rows(cert, problem)
    from goldstein.checker.constrained.kkt import KKTRows

    return KKTRows(cert, problem)


def _used(points: Matrix, gradients: Matrix, weights: Vector) -> tuple[Matrix, Matrix, Vector]:
    """Leave out rows of no weight; large arrays are not worth a copy where there are none."""
    used: Any = slice(None) if (weights > 0).all() else weights > 0
    return points[used], gradients[used], weights[used]


def check(cert: Any, problem: Problem, seed: int, check_values: bool = True) -> Verification:
    """Decide a claim, with a sentence for everything that was looked at.

    The checks stop where a later one would mean nothing. `seed` is that of the displacements.
    """
    found = Verification(eps=math.inf, delta=math.inf, label="conditional")
    fits = _check_numbers(found, cert) and check_layout(found, cert, problem.layout)
    if not (fits and _check_place(found, cert, problem)):
        return found
    share = _check_term(found, cert, problem)
    try:
        if found.ok and problem.system is not None:
            limits.check(found, cert, problem.system, problem.box)
        if found.ok:
            step = _check_gradients(found, rows_of(cert, problem), share, seed, check_values)
        if found.ok and problem.system is not None:
            check_qualification(found, cert, problem, step, seed)
    except errors.KinkError as kink:
        found.add("gradients", False, f"a function has a kink at a stored point: {kink}")
    except errors.GoldsteinError as failure:
        found.add("gradients", False, f"a function could not be evaluated: {failure}")
    return found


def _check_numbers(found: Verification, cert: Any) -> bool:
    """What can be said without asking anything."""
    arrays = [value for value in vars(cert).values() if isinstance(value, np.ndarray)]
    names = "eps", "delta", "feasibility", "qualification"
    numbers = all(0 <= getattr(cert, name, 0.0) < math.inf for name in names)
    finite = numbers and all(np.isfinite(a).all() for a in arrays) and cert.weights.size > 0
    if not found.add("numbers", finite, "all entries finite" if finite else "non-finite or empty"):
        return False
    sealed = cert.digest == cert.content_digest()
    found.add("content", sealed, "unaltered" if sealed else "a field was changed after it was made")
    convex = bool(((cert.weights >= 0) & (cert.weights <= 2)).all())
    convex = convex and abs(math.fsum(cert.weights.tolist()) - 1.0) <= 1e-9
    why = "those of f are negative, or do not sum to 1; without f nothing is said about it"
    found.add("weights", convex, "nonnegative, sum 1" if convex else why)
    supported = cert.label in ("conditional", "estimated")
    found.add("label", supported, f"claimed {cert.label}, this check can support conditional")
    return convex


def check_layout(found: Verification, cert: Any, layout: Layout) -> bool:
    """The layout in which f is called is part of the claim."""
    same = cert.layout == layout
    advice = f"; the claim is about f of {shown(cert.layout)}: pass like=a point of that layout"
    return found.add("layout", same, f"x is {shown(layout)}" + ("" if same else advice))


def _check_place(found: Verification, cert: Any, problem: Problem) -> bool:
    """x and all points inside the bounds and the ball, before anything is asked there."""
    points = _used(cert.points, cert.gradients, cert.weights)[0]
    inside = True
    if problem.system is not None:
        points = np.concatenate([points, cert.constraint_points])
        inside = problem.box.contains(cert.x) and problem.box.contains(points)
        found.add("bounds", inside, "all points inside" if inside else "a point is outside")
    found.delta = max(distances_upper(points, cert.x), default=0.0)
    # The claim may be between the exact radius and our upper bound of it.
    limit = Fraction(cert.delta) ** 2
    within = found.delta <= cert.delta or all(squared_distance(y, cert.x) <= limit for y in points)
    found.delta = min(found.delta, cert.delta) if within else found.delta
    found.add("ball", within, f"points within {found.delta:.6g}, claimed {cert.delta:.6g}")
    return inside and within


def _check_term(found: Verification, cert: Any, problem: Problem) -> float:
    """Return what a convex term adds to eps."""
    if problem.term is None:
        return 0.0
    same = cert.term.to_record() == problem.term
    found.add("term", same, f"{cert.term!r}" + ("" if same else f", asked for was {problem.term}"))
    rows = cert.gradients + cert.subgradient
    share = term_share(problem.term, cert.x, cert.subgradient, cert.delta, cert.weights, rows)
    words = f"of the term at x, up to {share:.3g} of eps"
    if share == math.inf:
        words = "no subgradient of the term at x, or x is outside its domain"
    found.add("subgradient", share <= cert.eps, words)
    return share


def _check_gradients(
    found: Verification, rows: Rows, share: float, seed: int, check_values: bool
) -> Vector | float:
    """Ask for the gradients again: at the stored points, and at perturbed ones.

    Return what the functions resolve.
    """
    cert, problem = rows.cert, rows.problem
    fresh = np.array([rows.ask(int(i), y) for i, y in zip(rows.owners, rows.points)])
    mean = rows.scale(fresh)
    gaps = distances_upper(fresh, rows.stored)
    gap = math.fsum(w * n for w, n in zip(rows.weights.tolist(), gaps))
    same = gap <= SAME * mean + SAME_SHARE * cert.eps < math.inf
    other = "; this is another function, or its gradient is not deterministic"
    found.add("gradients", same, f"asked again, they differ by {gap:.3g}" + ("" if same else other))
    extra = share + getattr(problem.f, "error", 0.0)
    found.eps = rows.length(fresh, rows.owners, rows.weights)
    found.eps = up(found.eps + up(extra)) if extra else found.eps
    # A sum of many is not allowed for more than the gradients that differ: bounds are rounded up.
    limit = cert.eps + min(rounding_slack(rows.weights.size, mean), gap + rounding_slack(1, mean))
    within = found.eps <= limit
    found.add("bound", within, f"recomputed eps {found.eps:.6g}, claimed {cert.eps:.6g}")
    if not found.ok or (isinstance(problem.f, Written) and (rows.owners == OBJECTIVE).all()):
        return 0.0
    return look_beside(found, rows, limit - share + CURVED * mean, share, seed, check_values)
