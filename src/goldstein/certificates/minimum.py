"""The minimum certificate: how much lower f can be than at x, nearby or everywhere; and its denial.

`goldstein.checker.minimum` decides both. The evidence of a minimum is a minorant: supports at some
kinks of the function, and a number that its curvature exceeds on a ball around a pivot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from goldstein.certificates import near
from goldstein.certificates.export import Writer, export_proof, written_limits
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.near import ExactProblem, exact_problem
from goldstein.checker.minimum import lower, minimum
from goldstein.checker.minimum.box import check_box
from goldstein.checker.minimum.curvature import Pass, Region
from goldstein.checker.minimum.feasible import Feasible
from goldstein.checker.minimum.supports import Sharp, Support, Term, bend_of
from goldstein.checker.nodes import Piecewise
from goldstein.checker.sampled import asked
from goldstein.checker.verification import Label, Verification
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles.problem import given
from goldstein.storage.codec import array, record, text

#: A float that may be infinite: a file holds it as a text.
Radius = float


def _written_radius(value: float) -> str:
    return float(value).hex()


def _read_radius(value: Any) -> float:
    try:
        return float.fromhex(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError("a radius is not a number in hexadecimal.") from None


def _written_rows(rows: Sequence[Any]) -> list[list[Any]]:
    return [[v if isinstance(v, int) else near.written_pivot([v])[0] for v in row] for row in rows]


def _reader(kind: Any, whole: int) -> Any:
    def read(rows: Any) -> tuple[Any, ...]:
        width = len(kind._fields)
        if not isinstance(rows, list) or any(
            not isinstance(r, list)
            or len(r) != width
            or any(isinstance(v, bool) or not isinstance(v, int) for v in r[:whole])
            for r in rows
        ):
            raise InputError(f"the {kind.__name__} of the file cannot be read.")
        return tuple(kind(*row[:whole], *near.parse_pivot(row[whole:])) for row in rows)

    return read


def limits_of(x: Vector, bounds: Any, constraints: Any) -> ExactProblem | None:
    """Read bounds and constraints for the checker; None where there are none."""
    there = bounds is not None or given(constraints)
    return exact_problem(x, bounds, constraints, None) if there else None


@record
class MinimumCertificate(near.PivotClaim):
    """Proof that f is at most `gap` lower than at x, on a ball around x or everywhere.

    Attributes
    ----------
    x : ndarray, shape (d,)
    exact_pivot : tuple of Fraction
        The point that the proof is about, |pivot - x| <= delta.
    delta, eps : float
        The gradient of the minorant at the pivot has length at most eps.
    radius : float
        f(z) >= f(x) - gap for |z - x| <= radius; infinite for all z.
    gap : float
    within : float or None
        A lowest point of the scope is a local minimiser, and no farther from x than this.
    scope : {"ball", "box", "global"}
    strict, unique : bool
        Every lowest point is interior; f has one local minimiser in the scope.
    reach, growth : float
        f >= f(pivot) - loss - eps t + growth/2 t^2 for t = |z - pivot| <= reach.
    convexity : float or None
        f - convexity/2 |z|^2 is convex on the scope.
    supports, sharp : tuples
        The minorant; see `goldstein.checker.minimum.supports`.
    penalties : ndarray, shape (m + d,), or None
        With constraints or bounds: weights of the distances from them, of every constraint and
        every variable. The claim is then about feasible points (`goldstein.checker.minimum.
        feasible`).
    multipliers, normal : ndarray, shapes (m,) and (d,), or None
        The Lagrange multipliers in `supports`, positive at upper limits, rounded.
    violation : float
        By how much x violates the constraints, at most.
    global_gap : float or None
        Nowhere is f lower than f(x) - global_gap, by a tree of cases.
    case_growth, case_points, case_slopes, case_splits
        The tree (`goldstein.checker.minimum.cases`).
    curvature : float or None
        What the owner of a black box declares, f - curvature/2 |z|^2 convex; part of the claim.
    widths, points, weights : ndarray or None
        Of a black box: half widths of a box around x, points of cuts, and their weights for every
        face and for the box.
    label : str
    meta : dict

    Examples
    --------
    >>> import goldstein as gs
    >>> x = gs.Variable(2)
    >>> F = 10 * abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2
    >>> cert = gs.certify(F, [1.0, 1.0], delta=1e-6, stationarity="minimum")
    >>> cert.scope, cert.gap
    ('global', 0.0)
    >>> cert.verify(F).ok
    True
    """

    kind: ClassVar[str] = "minimum"
    _limits: ClassVar[tuple[str, ...]] = ("bounds", "constraints")

    radius: Radius = text(_written_radius, _read_radius)
    gap: float
    within: Any = None
    scope: str = "ball"
    strict: bool = False
    unique: bool = False
    reach: Radius = text(_written_radius, _read_radius, default=math.inf)
    growth: float = 0.0
    convexity: Any = None
    supports: tuple[Support, ...] = text(_written_rows, _reader(Support, 3), default=())
    sharp: tuple[Sharp, ...] = text(_written_rows, _reader(Sharp, 4), default=())
    penalties: Vector | None = array("p", default=None)
    multipliers: Vector | None = array("m", default=None)
    normal: Vector | None = array("d", default=None)
    violation: float = 0.0
    global_gap: Any = None
    case_growth: float = 0.0
    case_points: Matrix | None = array("n d", default=None)
    case_slopes: Matrix | None = array("n entries", default=None)
    case_splits: Matrix | None = array("n two", default=None)
    curvature: Any = None
    widths: Vector | None = array("d", default=None)
    points: Matrix | None = array("k d", default=None)
    weights: Matrix | None = array("faces k", default=None)
    label: Label = "certified"
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("within", "convexity", "curvature", "global_gap"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, float)):
                raise InputTypeError(f"{name} must be a float or None, got {value!r}.")
        if not (isinstance(self.strict, bool) and isinstance(self.unique, bool)):
            raise InputTypeError("strict and unique must be True or False.")

    def verify(
        self, fun: Any, jac: Any = None, *, args: Any = (), like: Any = None, bounds: Any = None,
        constraints: Any = (),
    ) -> Verification:  # fmt: skip
        """Derive the claim again: from the structure of the function, or from its cuts.

        Parameters
        ----------
        fun : Expression, or code that it is derived from
            The function; its structure must be known, unless its curvature was declared.
        jac, args, like
            As in `minimize`, for code and functions of declared curvature; `like` is a point in the
            layout they are called with.
        bounds, constraints
            As in `minimize`, where the claim was made with them: expressions or
            `LinearConstraint`.

        Returns
        -------
        Verification
        """
        told = self.told(fun, jac, args, like)
        if self.curvature is None:
            return minimum.check(
                self, near.program_of(told[0]), limits_of(self.x, bounds, constraints)
            )
        if self.points is None or self.weights is None or self.widths is None:
            raise InputError("a claim of declared curvature has points, weights and widths.")
        return check_box(self, asked(*told))

    def export(
        self, path: str | Path, fun: near.Described, *, bounds: Any = None, constraints: Any = ()
    ) -> Path:
        """Write certificate, function and limits to one file that `goldstein-check` decides.

        Parameters
        ----------
        path : str or Path
            The suffix .json is added if there is none; one that ends in .gz is compressed.
        fun, bounds, constraints
            What the certificate is about, as in `minimize`.
        """
        if self.curvature is not None:
            raise InputTypeError(
                "a proof file holds what follows from a formula, and this claim rests on a "
                "curvature that was declared and on the answers of the function. Hand over what "
                "certificate.save(...) writes; certificate.verify(...) asks the function again."
            )
        program, limits = near.program_of(fun), limits_of(self.x, bounds, constraints)
        if (limits is None) != (self.penalties is None):
            raise InputError(
                "the certificate is not about these bounds and constraints; pass the bounds= and "
                "constraints= that minimize was given."
            )
        if limits is not None:
            program = Feasible(program, limits, np.asarray(self.penalties)).program
        region = Region(self.exact_pivot, self.reach, None if limits is None else limits.box)
        at, bare = Writer(program).at, Pass(program, region)
        supports = []
        for g in self.supports:
            curved = isinstance(program.nodes[g.node], Piecewise)
            more = {"t": g.t, "p": g.p} if curved else {}
            supports.append({"node": at[g.node], "row": g.row, "place": g.place, "s": g.s, **more})
        sharp = []
        for h in self.sharp:
            (arg,) = program.nodes[h.node].of
            pair = {h.one: 1} if h.one == h.other else {h.one: 1, h.other: -1}
            smooth = Term(arg, pair, Fraction(0), 1.0)
            bend = 0.0 if program.affine[arg] else bend_of(bare, smooth) * (1 + 2.0**-30)
            sharp.append({**h._asdict(), "node": at[h.node], "bend": bend})
        evidence = {
            "pivot": self.exact_pivot, "reach": self.reach, "growth": self.growth,
            "convexity": self.convexity, "supports": supports, "sharp": sharp,
        }  # fmt: skip
        names = ["eps", "delta", "gap", "radius", "within", "scope", "strict", "unique"]
        if self.global_gap is not None:
            names.append("global_gap")
            evidence["cases"] = {"growth": self.case_growth, "tree": self._tree()}
        if limits is not None:
            names.append("violation")
            evidence["penalties"] = self.penalties
        claim = {name: getattr(self, name) for name in names}
        return export_proof(path, fun, self, evidence, claim, **written_limits(limits))

    def _tree(self) -> list[dict[str, Any]]:
        """Return the cases as a proof file has them."""
        points, lines, splits = self.case_points, self.case_slopes, self.case_splits
        if points is None or lines is None or splits is None:
            raise InputError("a bound of f everywhere is shown by cases, and there are none.")
        tree = []
        for point, slopes, (entry, t) in zip(points, lines, splits):
            parts = {-1: 0, -2: 1}.get(entry, 2)
            case = {"point": point, "slopes": slopes, "parts": parts}
            tree.append(case | ({"entry": int(entry), "t": t} if parts == 2 else {}))
        return tree

    def summary(self) -> str:
        """One line for people."""
        if_so = "" if self.curvature is None else f" if f has curvature {self.curvature:g}"
        far = self.scope != "global" and self.global_gap is not None
        more = f", {self.global_gap:.3g} everywhere" if far else ""
        return f"{self.said()}, gap {self.gap:.3g}{more}{self._nearby()}, {self.label}{if_so}"

    def said(self) -> str:
        """What is known about minimality, in a few words."""
        kind = ("unique " if self.unique else "strict ") if self.strict else ""
        among = "" if self.penalties is None else " among feasible points"
        if self.scope == "global":
            return f"{kind}global minimum{among}"
        if self.growth < 0:
            return f"not known to be a minimum: how low f can be within {self.radius:.3g} of x"
        size = "half width" if self.scope == "box" else "radius"
        return f"{kind}minimum{among} on a {self.scope} of {size} {self.radius:.3g}"

    def _nearby(self) -> str:
        return "" if self.within is None else f", minimiser within {self.within:.3g}"


@record
class Refutation(near.AtPivot):
    """Proof that x is not a minimum: a lower point, and where known a direction of descent.

    Attributes
    ----------
    x, point : ndarray, shape (d,)
    direction : ndarray, shape (d,)
    fall : float
        f(x) - f(point), rounded down.
    slope : float or None
        An upper bound of the derivative of f along the direction at the pivot, negative: the pivot
        is no local minimum.
    exact_pivot : tuple of Fraction
    delta : float
        |pivot - x| <= delta.
    label : str
    meta : dict

    Examples
    --------
    >>> import goldstein as gs
    >>> x = gs.Variable(1)
    >>> F = gs.sum(x * x / 2 - abs(x))
    >>> cert = gs.certify(F, [0.0], delta=1e-6, stationarity="minimum")
    >>> cert.fall, cert.slope, cert.verify(F).ok
    (0.5, -1.0, True)
    """

    kind: ClassVar[str] = "refutation"
    _limits: ClassVar[tuple[str, ...]] = ("bounds", "constraints")

    x: Vector = array("d")
    point: Vector = array("d")
    direction: Vector = array("d")
    fall: float
    slope: Any = None
    exact_pivot: tuple[Fraction, ...] = text(near.written_pivot, near.parse_pivot, default=())
    delta: float = 0.0
    label: Label = "refuted"
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def eps(self) -> float:
        """Nothing is claimed about gradients."""
        return math.inf

    def verify(
        self, fun: Any, jac: Any = None, *, args: Any = (), like: Any = None, bounds: Any = None,
        constraints: Any = (),
    ) -> Verification:  # fmt: skip
        """Evaluate f at both points, and its derivative along the direction."""
        told = self.told(fun, jac, args, like)
        if self.label != "conditional":  # the exact check, which also refuses other labels
            problem = limits_of(self.x, bounds, constraints)
            return minimum.check_refutation(self, near.program_of(told[0]), problem)
        found = lower.check(self, asked(*told))
        if bounds is not None or given(constraints):
            found.add("feasibility", False, "of a black box no limits are known")
        return found

    def export(
        self, path: str | Path, fun: near.Described, *, bounds: Any = None, constraints: Any = ()
    ) -> Path:
        """Write lower point, function and limits to one file that `goldstein-check` decides.

        Parameters
        ----------
        path : str or Path
            The suffix .json is added if there is none; one that ends in .gz is compressed.
        fun, bounds, constraints
            What the certificate is about, as in `minimize`.
        """
        limits = written_limits(limits_of(self.x, bounds, constraints))
        return export_proof(path, fun, self, {"point": self.point}, {"fall": self.fall}, **limits)

    def summary(self) -> str:
        """One line for people."""
        return f"{self.said()}, {self.label}"

    def said(self) -> str:
        """What is known about minimality, in a few words."""
        along = np.array2string(self.direction, threshold=6, edgeitems=2, precision=3)
        return f"not a minimum: f falls along {along} by {self.fall:.3g}"
