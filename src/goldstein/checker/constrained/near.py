"""The near-KKT claim: a pivot within delta of x is feasible and KKT up to eps, exactly.

Limits of gradients of f along the directions belong to the subdifferential at the pivot, those of
the constraints to theirs; with a normal of the bounds there they cancel up to eps. The pivot
satisfies all constraints, and every constraint with a multiplier is at its limit. That constraints
say something about f is proved, too: along some direction all of them fall.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np

from goldstein.checker.arrays import Mask, Vector
from goldstein.checker.constrained.limits import (
    DEGENERATE,
    Box,
    Limits,
    as_box,
    as_groups,
    check_signs,
    meant,
    readings,
)
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.enclosed.point import EnclosedPoint
from goldstein.checker.errors import InputTypeError, NotCertifiableError
from goldstein.checker.exact import exact_combination
from goldstein.checker.nodes import Affine, Max, Order, Piecewise, Variable
from goldstein.checker.rationals import exact_dot, sqrt_upper, squared_norm
from goldstein.checker.rationals import to_fractions as exactly
from goldstein.checker.sides import Limits as GradientLimits
from goldstein.checker.sides import Point, Program, point_at
from goldstein.checker.verification import Verification

#: Exact midpoints and radii of a gradient.
Limit = tuple[list[Fraction], list[Fraction]]


def linear_program(row: Vector) -> Program:
    """Return the function row . x, its numbers taken as exact."""
    d = row.size
    return Program([Variable((), (), d), Affine((0,), (d,), 1, np.array(row)[None])])


@dataclass(eq=False)
class ExactProblem:
    """Bounds and constraints for exact questions; who proposes directions is not believed."""

    box: Box
    system: Limits
    parts: Sequence[Program]
    #: Proposes directions along which gradients of constraints rise, from what it is given.
    separate: Callable[..., Iterable[Sequence[Any]]]

    @cached_property
    def point(self) -> Callable[[int, Any], Point]:
        """(i, y) -> what holds of component i at a pivot, found once."""
        return cache(lambda i, y: point_at(self.parts[i], y))

    def check_place(self, found: Verification, cert: Any) -> None:
        """The pivot inside bounds and constraints, and at every limit that has a multiplier."""
        box, system, y = self.box, self.system, cert.exact_pivot
        arrays = cert.constraint_directions, cert.constraint_weights, cert.normal, cert.multipliers
        sound = all(np.isfinite(a).all() for a in arrays) and cert.digest == cert.content_digest()
        words = "unaltered" if sound else "a field was changed, or is not finite"
        if not found.add("content", sound, words):
            return
        sizes = {box.lower.size, *(part.dim for part in self.parts)} == {cert.x.size}
        fits = check_signs(found, cert, system, box)
        if not (found.add("sizes", sizes, "those of x") and fits):
            return
        inside = box.contains(np.array(y, dtype=object)) and box.contains(cert.x)
        found.add("bounds", inside, "x and pivot inside" if inside else "x or the pivot is outside")
        for i in range(len(self.parts)):
            low, high = self.point(i, y).between()
            lower, upper = float(system.lower[i]), float(system.upper[i])
            if not (lower <= low and high <= upper):
                found.add("feasibility", False, f"{system.name(i)} is violated, or may be")
            multiplier = cert.multipliers[i]
            if multiplier and not low == high == (upper if multiplier > 0 else lower):
                words = f"a multiplier on {system.name(i)}, which is not at its limit"
                found.add("activity", False, words)
        if found.ok:
            found.add("feasibility", True, "all constraints hold at the pivot")
            found.add("activity", True, "constraints with a multiplier are at their limits")

    def limit(self, cert: Any, i: int, way: Any) -> Limit:
        """Return the limit of gradients of component i at the pivot along a direction."""
        return as_rationals(self.point(i, cert.exact_pivot).limits([way]))[0]

    def residual(
        self, cert: Any, limits: GradientLimits, weights: Vector, allowance: int = 1
    ) -> float:
        """Bound the length in the claim; radii of enclosures count `allowance` times."""
        shares = exactly(weights)
        factors = [share / sum(shares, Fraction(0)) for share in shares]
        rows = np.flatnonzero(cert.constraint_weights).tolist()
        found = as_rationals(limits) + [
            self.limit(cert, int(cert.constraint_index[r]), cert.constraint_directions[r])
            for r in rows
        ]
        factors += exactly(cert.constraint_weights[rows])
        mid = exact_combination([*factors, 1], [*(m for m, _ in found), exactly(cert.normal)])
        rad = exact_combination([abs(f) for f in factors], [r for _, r in found])
        return sqrt_upper(squared_norm([abs(m) + allowance * r for m, r in zip(mid, rad)]))

    def check_qualification(self, found: Verification, cert: Any, seed: int) -> None:
        """Constraints whose gradients cancel each other prove anything about f, that is nothing."""
        q = self.qualification(cert, seed)
        words = f"all constraint gradients at the pivot stay {q:.3g} away from 0"
        if q <= DEGENERATE:
            words = "constraint gradients are not proved to stay away from 0: degenerate, the claim"
            words += " says nothing about f"
        found.add("qualification", q > DEGENERATE, words)

    def qualification(self, cert: Any, seed: int) -> float:
        """Bound from below how far constraint gradients in use are from cancelling each other."""
        return min(self.separation(cert, seed, mask)[0] for mask in self.readings(cert))

    def readings(self, cert: Any) -> list[Mask]:
        """Which equalities form a line."""
        affine = np.array([part.affine[part.last] for part in self.parts], dtype=bool)
        return readings(cert, self.system, affine)

    def separation(self, cert: Any, seed: int, linear: Mask) -> tuple[float, list[Fraction]]:
        """Return the bound for one reading of the equalities, and the direction that proves it."""
        some, across = meant(cert, self.system, linear)
        best, along = 0.0, [Fraction(0)] * cert.x.size
        if not some:
            return 1.0, along
        rng, rows = np.random.default_rng(seed), []
        for i in across:
            with suppress(NotCertifiableError):  # a kink: the others have to do
                rows.append(self.limit(cert, i, rng.standard_normal(cert.x.size))[0])
        for v in self.separate(self, cert, some, rows, seed):
            proved = self._proved(cert, some, rows, exactly(v))
            if proved > best:
                best, along = proved, exactly(v)
            if best > DEGENERATE:
                break
        return best, along

    def _proved(
        self, cert: Any, some: list[int], rows: Sequence[Sequence[Fraction]], v: list[Fraction]
    ) -> float:
        """Return t such that <g, v> >= t |v| for every gradient in use, relative to its length.

        v does not lead across linear equalities, against a normal, or along what is fixed.
        """
        places = zip(v, cert.normal.tolist(), self.box.fixed.tolist(), strict=True)
        wrong = any(n > 0 > a or n < 0 < a or (fixed and a) for a, n, fixed in places)
        if wrong or not any(v) or any(exact_dot(row, v) for row in rows):
            return 0.0
        least, size = 1.0, sqrt_upper(squared_norm(v))
        for i in some:
            low, high = derivative_range(self.parts[i], cert.exact_pivot, v)
            longest, minus = 0.0, [-a for a in v]
            for way in (*cert.constraint_directions[cert.constraint_index == i], v, minus):
                with suppress(NotCertifiableError):  # this direction stays on a kink
                    longest = max(longest, sqrt_upper(squared_norm(self.limit(cert, i, way)[0])))
            share = (low if cert.multipliers[i] > 0 else -high) / (longest * size or math.inf)
            if not share > 0.0:
                return 0.0
            least = min(least, share)
        return least


def exact_problem(x: Vector, bounds: Any, constraints: Any, separate: Any) -> ExactProblem:
    """Read bounds and constraints as `minimize` takes them; black boxes are refused."""
    box = as_box(bounds, x.size)
    system = constraints
    if not isinstance(system, Limits):
        system = Limits(as_groups(constraints, x.size), box.clip(np.nan_to_num(x)))
    parts = []
    for group in system.groups:
        if len(group.parts) != group.size:
            raise InputTypeError(
                f"stationarity='near' needs constraints whose kinks are known, and {group.name} is "
                "a black box; write it as an Expression (F <= 1, F == 0) or as a LinearConstraint."
            )
        for part in group.parts:
            parts.append(linear_program(part) if isinstance(part, np.ndarray) else part.program())
    return ExactProblem(box, system, parts, separate)


def as_rationals(limits: GradientLimits) -> list[Limit]:
    """Return limits of gradients as rationals: midpoints, and radii, 0 where exact."""
    exact, mids, rads = limits
    rows = [exactly(mid) for mid in mids] if exact is None else exact
    return [(row, exactly(rad)) for row, rad in zip(rows, rads, strict=True)]


def derivative_range(
    program: Program, y: Sequence[Fraction], v: Sequence[Fraction]
) -> tuple[float, float]:
    """Enclose <g, v> for all Clarke subgradients g at y.

    Going forward, every limit of gradients has at a kink one of its slopes, so that its derivative
    along v lies in the hull of what these give; Clarke subgradients are convex combinations.
    """
    point = EnclosedPoint(program, y)
    series = {0: [point.value(0), Enclosure.of(v)]}
    for k, node in enumerate(program.nodes[1:], 1):
        args = [series[a] for a in node.of]
        series[k] = node.forward(args, point.pieces.get(k))
        if k in point.ties and len(series[k]) > 1:
            series[k][1] = _widened(node, point, k, args[0][1], series[k][1])
    if len(series[program.last]) < 2:
        return 0.0, 0.0
    (low,), (high,) = series[program.last][1].ends()
    finite = math.isfinite(low) and math.isfinite(high)
    return (float(low), float(high)) if finite else (-math.inf, math.inf)


def _widened(node: Any, point: Any, k: int, u: Enclosure, out: Enclosure) -> Enclosure:
    """Replace the derivatives of tied entries by the hull of what their pieces give."""
    low, high = out.ends()
    for i, tie in point.ties[k].items():
        if isinstance(node, Piecewise):
            parts = Enclosure.of(node.beside[point.pieces[k][i]]) * u[[i, i]]
        elif isinstance(node, Max):
            parts = u[tie]
        elif isinstance(node, Order):
            raise NotCertifiableError("a constraint is on a tie of sorted entries; no rule for it.")
        else:
            size = (u[tie] * u[tie]).sum().root().reshape(1)
            parts = Enclosure.of([-1, 1]) * size[[0, 0]]
        ends = parts.ends()
        low[i], high[i] = ends[0].min(), ends[1].max()
    mid = 0.5 * low + 0.5 * high
    return Enclosure(mid, np.maximum(high - mid, mid - low) * (1 + 2.0**-50) + 2.0**-1000)
