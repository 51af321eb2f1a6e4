"""The near certificate: a pivot near x, and limits of gradients there that nearly cancel.

The evidence is a rational pivot y, directions v_j and weights a_j. Along y + t v_j, t -> 0+, the
function is differentiable and its gradients tend to some g_j; every such limit belongs to the
Clarke subdifferential at y, which is convex. So |sum a_j g_j| / sum a_j bounds its distance from 0.
The checker decides in exact arithmetic; it needs no constant and believes nothing that is stored.
With bounds or constraints the pivot is exactly feasible, and multipliers are proved there; that the
constraints are not degenerate shows along a direction, searched here and proved by the checker.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.export import export_proof, written_limits
from goldstein.certificates.kkt import listed
from goldstein.certificates.verifying import WithMultipliers, derived, unfitting
from goldstein.checker import near, rationals
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.blackbox.qualification import Hull
from goldstein.checker.constrained.limits import DEGENERATE
from goldstein.checker.constrained.near import ExactProblem, exact_problem
from goldstein.checker.enclosed.point import farthest
from goldstein.checker.function import taken_apart
from goldstein.checker.near import bound, combined_upper, unusable
from goldstein.checker.sides import Limits, Pause, Program, point_at
from goldstein.checker.verification import Label, Verification
from goldstein.errors import GoldsteinError, InputError, InputTypeError, NotCertifiableError
from goldstein.numerics.hull_problems import shortest_weights, sparse_weights
from goldstein.numerics.streams import seed_from
from goldstein.result import PlottedCertificate
from goldstein.storage.codec import Stored, array, real_numbers, record, text

#: Random directions in which gradients of constraints are looked at, and rounds of looking along
#: the direction that separates them from 0.
RANDOM, LOOKS = 4, 8

Row = Sequence[Fraction]


def separating(
    problem: ExactProblem, cert: Any, some: list[int], rows: list[Row], seed: int
) -> Iterator[list[Fraction]]:
    """Propose directions across which no row leads and along which some constraints rise.

    Some limits of gradients propose one; who asks for the next one has found others that do not
    agree: then one looks along it.
    """
    rng, d = np.random.default_rng(seed), cert.x.size
    known = np.array([*map(_near, rows)]).reshape(-1, d)
    hull = Hull(cert.normal, problem.box.fixed, known, shortest_weights)
    random = rng.standard_normal((RANDOM, d))
    directions = np.concatenate([cert.constraint_directions, cert.directions, random])
    for _ in range(LOOKS):
        for i in some:
            for direction in np.concatenate([directions, -directions]):
                with suppress(NotCertifiableError):  # this direction stays on a kink
                    row = _near(problem.limit(cert, i, direction)[0])
                    hull.rows.append((i, math.copysign(1.0, cert.multipliers[i]) * row))
        q, v = hull.separation()
        if q <= DEGENERATE:
            return
        yield _tangent(v, rows, hull)
        noise = rng.standard_normal((RANDOM, d)) / math.sqrt(d)
        directions = np.concatenate([v[None], v + 1e-3 * noise, v + 1e-6 * noise])


def _near(row: Row) -> Vector:
    return np.array([rationals.nearest_float(a) for a in row])


def _tangent(v: Vector, rows: Sequence[Row], hull: Hull) -> list[Fraction]:
    """Return what is left of v without its parts across linear equalities, exactly.

    It is 0 along coordinates that are fixed, or held by a normal, up to rounding.
    """
    still = hull.fixed.copy()
    still[hull.used[hull.signs * v[hull.used] <= 1e-9]] = True
    basis: list[list[Fraction]] = []
    rest: list[Fraction] = []
    for row in [*rows, rationals.to_fractions(v)]:  # Gram and Schmidt
        rest = [Fraction(0) if stays else a for a, stays in zip(row, still)]
        for other in basis:
            share = rationals.exact_dot(rest, other) / rationals.squared_norm(other)
            rest = [a - share * b for a, b in zip(rest, other)]
        basis += [rest] if any(rest) else []
    return rest


#: Refused when a file is read: reducing fractions takes quadratic time in their digits (one of this
#: length takes seconds), and coordinates over one denominator take this many bits of memory.
_LONGEST = 1_000_000
_LONGEST_SHARED = 2**30


def written_pivot(pivot: Sequence[Fraction]) -> list[str]:
    """Write the pivot's coordinates for a file.

    Hexadecimal: converting long integers to decimal digits takes quadratic time.
    """
    return [f"{hex(q.numerator)}/{hex(q.denominator)}" for q in pivot]


def parse_pivot(texts: Any) -> tuple[Fraction, ...]:
    """Read the pivot's coordinates; refuse what would take minutes or gigabytes to compute with."""
    if not (isinstance(texts, list) and all(isinstance(text, str) for text in texts)):
        raise InputError("the pivot must be a list of rationals in hexadecimal.")
    if sum(len(text) ** 2 for text in texts) > _LONGEST**2:
        raise InputError("the coordinates of the pivot have too many digits.")
    pivot = tuple(_parse(text) for text in texts)
    shared = 1
    for q in pivot:
        shared = math.lcm(shared, q.denominator)
        if shared.bit_length() * len(pivot) > _LONGEST_SHARED:
            raise InputError("the common denominator of the pivot has too many digits.")
    return pivot


def _parse(text: str) -> Fraction:
    top, _, bottom = text.partition("/")
    try:
        return Fraction(int(top, 16), int(bottom, 16))
    except (ValueError, ZeroDivisionError):
        raise InputError("a coordinate of the pivot is not a rational in hexadecimal.") from None


class AtPivot(Stored, PlottedCertificate):
    """A claim about a rational point near x."""

    x: Vector
    exact_pivot: tuple[Fraction, ...]

    #: The layout of the user's own point; the claim itself is about a function of vectors.
    own_layout: Any = None

    def told(self, fun: Any, jac: Any = None, args: Any = (), like: Any = None) -> tuple[Any, ...]:
        """Return the verifier's function, or what its code computes in the layout of `like`."""
        if isinstance(fun, Described):  # a function of vectors
            return fun, jac, args
        own = self.own_layout or [self.x.size]
        layout = own if like is None else taken_apart(like, "like")[0]
        return derived(fun, jac, args, self.x, layout)

    def __post_init__(self) -> None:
        try:
            pivot = tuple(rationals.to_fractions(self.exact_pivot))
        except (TypeError, ValueError, OverflowError) as failure:
            if isinstance(failure, InputError):
                raise
            raise InputTypeError(
                f"the pivot must be a vector of rationals: {failure}."
            ) from failure
        if len(pivot) != (size := np.size(self.x)):
            raise InputError(f"the pivot has {len(pivot)} coordinates, x has shape ({size},).")
        object.__setattr__(self, "exact_pivot", pivot)
        super().__post_init__()

    @cached_property
    def pivot(self) -> Vector:
        """The pivot rounded to float64; the exact one is `exact_pivot`."""
        rounded = np.array([rationals.nearest_float(q) for q in self.exact_pivot])
        rounded.setflags(write=False)
        return rounded


@record
class PivotClaim(AtPivot):
    """A claim about stationarity, or minimality, at a rational point near x."""

    x: Vector = array("d")
    exact_pivot: tuple[Fraction, ...] = text(written_pivot, parse_pivot)
    delta: float
    eps: float


#: Enclosures may come out differently on another machine, by their radii: claims allow for it.
CHANGE_OF_MACHINE = 4


@runtime_checkable
class Described(Protocol):
    """A function that can be described exactly to the checker."""

    def program(self) -> Program: ...


@record
class NearCertificate(PivotClaim):
    """Proof that x is (eps, delta)-near stationary: a pivot within delta has a subgradient <= eps.

    Attributes
    ----------
    x : ndarray, shape (d,)
    exact_pivot : tuple of Fraction
        The pivot y, |y - x| <= delta; or the centre of a box that contains it.
    delta, eps : float
        Both rounded up.
    directions : ndarray, shape (k, d)
        Ways to leave the pivot; along each the gradients have a limit.
    weights : ndarray, shape (k,)
        Nonnegative.
    gradients : ndarray, shape (k, d)
        The limits of gradients in float64, for people; the checker computes them again.
    errors : ndarray, shape (k,)
        How far each of them is from the exact one, at most.
    label : str
    meta : dict
    radii : ndarray, shape (d,), or None
        Where the pivot lies on kinks of irrational functions it is not rational itself: it lies in
        the box of these radii, within delta of x as a whole.
    switches : ndarray of int, shape (s, 3), or None
        The kinks that meet in it: number of a node, of an entry of its argument, and of the
        breakpoint, or of the entry that it is tied with. As many of the first as there are positive
        radii are solved for.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, abs, sum
    >>> F = sum(abs(Variable(1)))
    >>> cert = NearCertificate.prove(F, [0.05], [0], [[1.0], [-1.0]], [0.5, 0.5])
    >>> cert.eps, cert.delta, cert.label
    (0.0, 0.05, 'certified')
    >>> cert.verify(F).ok
    True
    """

    kind: ClassVar[str] = "near"

    directions: Matrix = array("k d")
    weights: Vector = array("k")
    gradients: Matrix = array("k d")
    errors: Vector = array("k")
    label: Label = "certified"
    meta: dict[str, Any] = field(default_factory=dict)
    radii: Vector | None = array("d", default=None)
    switches: Any = array("s three", dtype=np.int64, default=None)

    @classmethod
    def prove(
        cls,
        fun: Described | Program,
        x: Any,
        pivot: Sequence[Any],
        directions: Any,
        weights: Any,
        meta: dict[str, Any] | None = None,
        pause: Pause = lambda: None,
        box: tuple[Any, Any] | None = None,
    ) -> NearCertificate:
        """Derive eps and delta from the function, and state them.

        A `pause` is called between the steps of a long proof, and may raise. A `box` is a pair of
        `radii` and `switches`.

        Raises
        ------
        NotCertifiableError
            When the directions do not show elements of the subdifferential.
        """
        point, shares = real_numbers("x", x), real_numbers("weights", weights)
        vectors = np.atleast_2d(real_numbers("directions", directions))
        exact = tuple(rationals.to_fractions(np.atleast_1d(np.asarray(pivot, dtype=object))))
        if vectors.shape != (shares.size, point.size) or len(exact) != point.size:
            raise InputError(
                f"x and pivot must have the same length d, directions shape (k, d) and weights "
                f"shape (k,); got {point.shape}, {len(exact)}, {vectors.shape}, {shares.shape}."
            )
        fault = unusable(point, vectors, shares)
        if fault:
            raise InputError(f"{fault}: x, directions and weights must be usable numbers.")
        if not shares.all():
            vectors, shares = vectors[shares > 0], shares[shares > 0]
        limits = point_at(program_of(fun), exact, len(vectors), box).limits(vectors, pause)
        return cls.from_limits(point, exact, vectors, shares, limits, meta, box)

    @classmethod
    def from_limits(
        cls,
        x: Vector,
        pivot: tuple[Fraction, ...],
        directions: Matrix,
        weights: Vector,
        limits: Limits,
        meta: dict[str, Any] | None = None,
        box: tuple[Any, Any] | None = None,
    ) -> NearCertificate:
        """State what limits of gradients that are already known show."""
        exact, mid, rad = limits
        if not np.isfinite(mid).all():
            raise NotCertifiableError(
                "a gradient at the pivot is beyond the range of float64; rescale the data."
            )
        errors = rad.max(axis=1)
        if exact is not None:
            rows = zip(mid.tolist(), exact, strict=True)
            gaps = (max(abs(Fraction(f) - g) for f, g in zip(row, limit)) for row, limit in rows)
            errors = np.array([rationals.fraction_upper(gap) for gap in gaps])
        return cls(
            x=x,
            exact_pivot=pivot,
            delta=rationals.sqrt_upper(farthest(pivot, x, box)),
            eps=bound(limits, weights, CHANGE_OF_MACHINE),
            directions=directions,
            weights=weights,
            gradients=mid,
            errors=errors,
            meta=dict(meta or {}),
            radii=None if box is None else box[0],
            switches=None if box is None else box[1],
        )

    def verify(self, fun: Any, *, args: Any = (), like: Any = None) -> Verification:
        """Re-derive the distance, the subgradients and their combination in exact arithmetic.

        Parameters
        ----------
        fun : Expression, or code that it is derived from
            The function; its structure must be known.
        args, like
            As in `minimize`, for code: further arguments, and a point in the layout it is called
            with.

        Returns
        -------
        Verification
        """
        return near.check(self, program_of(self.told(fun, None, args, like)[0]))

    def reduce(self) -> NearCertificate:
        """Return an equivalent certificate with at most d + 1 directions (Caratheodory).

        `eps` is recomputed from the stored gradients and their error bounds.
        """
        fault = unusable(self.x, self.gradients, self.weights)
        if fault or not (np.isfinite(self.errors).all() and (self.errors >= 0).all()):
            raise InputError(f"the certificate cannot be reduced: {fault or 'unusable errors'}.")
        weights = sparse_weights(self.weights, self.gradients)
        used = np.flatnonzero(weights > 0)
        if used.size == self.weights.size:
            return self
        rows = [rationals.to_fractions(row) for row in self.gradients[used]]
        eps = combined_upper(weights[used], rows)
        if self.errors.any():
            # A check bounds the errors by their norms, and another machine may round differently.
            error = CHANGE_OF_MACHINE * float(self.errors.max()) * math.sqrt(self.x.size)
            eps = (eps + error) * (1.0 + 2.0**-40)
        kept = {name: getattr(self, name)[used] for name in ("directions", "gradients", "errors")}
        return replace(self, weights=weights[used], eps=eps, **kept)

    def export(self, path: str | Path, fun: Described) -> Path:
        """Write certificate and function to one readable file that `goldstein-check` decides.

        Parameters
        ----------
        path : str or Path
            The suffix .json is added if there is none.
        fun : Expression
            The function that the certificate is about.
        """
        if self.radii is not None:
            raise NotCertifiableError(
                "the pivot is known by a box only, and proof files have rational pivots."
            )
        evidence = {name: getattr(self, name) for name in ("directions", "weights")}
        return export_proof(path, fun, self, {"pivot": self.exact_pivot, **evidence})

    def summary(self) -> str:
        """One line for people."""
        found = "1 subgradient" if len(self.weights) == 1 else f"{len(self.weights)} subgradients"
        claim = f"({self.eps:.3g}, {self.delta:.3g})-near stationary"
        return f"{claim}, {found} at the pivot, {self.label}"


class Attempt(NamedTuple):
    """A proof that was tried: the best certificate or None, and how it went: "proved", or why not.

    `degenerate`: the constraints prove anything about f at the point, that is nothing.
    """

    certificate: Any
    note: str = ""
    degenerate: bool = False


def program_of(fun: Any) -> Program:
    if isinstance(fun, Program):
        return fun
    if not isinstance(fun, Described):
        raise InputTypeError(
            f"a near certificate is about a function whose kinks are known; got "
            f"{type(fun).__name__}. Build the function as a goldstein Expression."
        )
    return fun.program()


Rows = NDArray[np.int64]


@record
class NearKKTCertificate(WithMultipliers, PivotClaim):
    """Proof that within `delta` of x there is a feasible point that is KKT up to `eps`.

    The pivot y satisfies bounds and constraints exactly. Along y + t v, t -> 0+, gradients of f and
    of constraints have limits, elements of the Clarke subdifferentials at y; the weights combine
    them and `normal`, a normal of the bounds at y, to a vector of length <= eps. f has weight 1,
    and a constraint with a multiplier is exactly at its limit at y. The check uses rational
    arithmetic and believes nothing that is stored.

    Attributes
    ----------
    x : ndarray, shape (d,)
        Inside the bounds.
    exact_pivot : tuple of Fraction
    delta, eps : float
        Both rounded up.
    directions : ndarray, shape (k, d)
        Ways to leave the pivot, for f.
    weights : ndarray, shape (k,)
        Nonnegative; only their ratios count.
    constraint_directions : ndarray, shape (r, d)
        Ways to leave the pivot, for constraints.
    constraint_index : ndarray of int, shape (r,)
        Which component of the constraints a row belongs to.
    constraint_weights : ndarray, shape (r,)
        Signed like the multipliers: positive at the upper limit, negative at the lower one.
    normal : ndarray, shape (d,)
        Entries <= 0 at lower bounds, >= 0 at upper bounds, 0 elsewhere.
    multipliers : ndarray, shape (m,)
        Sums of `constraint_weights`.
    label, meta, digest
        As in `GoldsteinCertificate`.

    Examples
    --------
    >>> import goldstein as gs
    >>> x = gs.Variable(2)
    >>> F, limits = gs.sum(abs(x - 2.0)), {"bounds": [(0, 1), (None, None)]}
    >>> res = gs.minimize(F, [0.0, 0.0], eps=1e-3, delta=1e-3, stationarity="near", rng=0, **limits)
    >>> res.certificate
    <NearKKTCertificate (...)-near KKT, certified; multipliers none; 1 active bound>
    >>> res.certificate.verify(F, **limits).ok
    True
    """

    kind: ClassVar[str] = "near-kkt"

    directions: Matrix = array("k d")
    weights: Vector = array("k")
    constraint_directions: Matrix = array("r d")
    constraint_index: Rows = array("r", np.int64)
    constraint_weights: Vector = array("r")
    normal: Vector = array("d")
    multipliers: Vector = array("m")
    label: Label = "certified"
    meta: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    def verify(
        self, fun: Any, *, args: Any = (), like: Any = None, bounds: Any = None,
        constraints: Any = (), seed: int | None = None,
    ) -> Verification:  # fmt: skip
        """Re-derive everything in exact arithmetic from the expressions.

        Parameters
        ----------
        fun : Expression, or code that it is derived from
        args, like
            As in `minimize`, for code: further arguments, and a point in the layout it is called
            with.
        bounds, constraints
            As in `minimize`; constraints are expressions or `LinearConstraint`.
        seed : int, optional
            Seed of the directions in which the constraints are looked at besides, to see whether
            they are degenerate; by default nobody can foresee them.
        """
        try:
            program = program_of(self.told(fun, None, args, like)[0])
            problem = exact_problem(self.x, bounds, constraints, separating)
        except GoldsteinError as failure:
            return unfitting(failure)
        return near.check(self, program, problem, seed_from(seed))

    def export(
        self, path: str | Path, fun: Described, *, bounds: Any = None, constraints: Any = ()
    ) -> Path:
        """Write certificate, function and limits to one file that `goldstein-check` decides.

        Parameters
        ----------
        path : str or Path
            The suffix .json is added if there is none; one that ends in .gz is compressed.
        fun, bounds, constraints
            What the certificate is about, as in `minimize`.
        """
        problem = exact_problem(self.x, bounds, constraints, separating)
        found = Verification(eps=math.inf, delta=math.inf, label="conditional")
        problem.check_place(found, self)
        if not found.ok:
            check = next(check for check in found.checks if not check.ok)
            raise InputError(
                f"the certificate is not about these bounds and constraints ({check.name}: "
                f"{check.message}); pass the bounds= and constraints= that minimize was given."
            )
        _, along = problem.separation(self, 0, problem.readings(self)[0])
        rows = zip(self.constraint_index, self.constraint_weights, self.constraint_directions)
        evidence = {
            "pivot": self.exact_pivot, "directions": self.directions, "weights": self.weights,
            "normal": self.normal, "separation": along,
            "rows": [{"constraint": int(i), "weight": w, "direction": v} for i, w, v in rows],
        }  # fmt: skip
        return export_proof(path, fun, self, evidence, **written_limits(problem))

    def summary(self) -> str:
        """One line for people."""
        parts = [
            f"({self.eps:.3g}, {self.delta:.3g})-near KKT, {self.label}",
            "multipliers " + (listed(self.multipliers) or "none"),
        ]
        on_bounds = int(np.count_nonzero(self.normal))
        if on_bounds:
            parts.append(f"{on_bounds} active bound{'s' if on_bounds > 1 else ''}")
        return "; ".join(parts)


def prove_near_kkt(
    program: Program,
    problem: ExactProblem,
    x: Vector,
    pivot: Sequence[Fraction],
    directions: Matrix,
    weights: Vector,
    rows: list[tuple[int, Vector, float]],
    normal: Vector,
) -> NearKKTCertificate:
    """Derive eps and delta, and state them; `rows` are (component, direction, signed weight).

    Raises
    ------
    NotCertifiableError
        When a direction does not show an element of a subdifferential.
    """
    multipliers = np.zeros(problem.system.size)
    for i in {i for i, _, _ in rows}:
        multipliers[i] = math.fsum(w for k, _, w in rows if k == i)
    claim: dict[str, Any] = {
        "x": x, "exact_pivot": tuple(pivot), "directions": directions, "weights": weights,
        "constraint_directions": np.array([v for _, v, _ in rows]).reshape(-1, x.size),
        "constraint_index": np.array([i for i, _, _ in rows], dtype=np.int64),
        "constraint_weights": np.array([w for _, _, w in rows]),
        "normal": normal, "multipliers": multipliers,
        "delta": rationals.sqrt_upper(rationals.squared_distance(tuple(pivot), x)),
    }  # fmt: skip
    used = weights > 0
    limits = point_at(program, pivot, int(used.sum())).limits(directions[used])
    plain = NearKKTCertificate(**claim, eps=0.0)
    eps = problem.residual(plain, limits, weights[used], CHANGE_OF_MACHINE)
    return NearKKTCertificate(**claim, eps=eps)
