"""The near-KKT claim: a pivot within delta of x is feasible and KKT up to eps, exactly.

Limits of gradients of f along the directions belong to the subdifferential at the pivot, those of
the constraints to theirs; with a normal of the bounds there they cancel up to eps. The pivot
satisfies all constraints, and every constraint with a multiplier is at its limit. That constraints
say something about f is proved, too: along some direction all of them fall.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.box import Box, as_box
from goldstein.checker.constrained.limits import Limits, as_groups
from goldstein.checker.constrained.multipliers import DEGENERATE, Hull, check_signs, meant
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.enclosed.point import EnclosedPoint
from goldstein.checker.errors import InputTypeError, NotCertifiableError
from goldstein.checker.exact import exact_combination
from goldstein.checker.nodes import Affine, Max, Piecewise, Variable
from goldstein.checker.rationals import nearest_float, sqrt_upper, squared_norm, to_fractions
from goldstein.checker.sides import Limits as GradientLimits
from goldstein.checker.sides import Program, point_at
from goldstein.checker.verification import Verification

#: Random directions in which gradients of constraints are looked at, and rounds of looking along
#: the direction that separates them from 0.
RANDOM, LOOKS = 4, 8

#: Exact midpoints and radii of a gradient.
Limit = tuple[list[Fraction], list[Fraction]]


def linear_program(row: Vector) -> Program:
    """Return the function row . x, its numbers taken as exact."""
    d = row.size
    return Program([Variable((), (), d), Affine((0,), (d,), 1, np.array(row)[None])])


@dataclass(eq=False)
class ExactProblem:
    """Bounds and constraints for exact questions; who proposes weights is not believed."""

    box: Box
    system: Limits
    parts: Sequence[Program]
    propose: Callable[[Matrix, Matrix], tuple[Vector, Vector]]

    def check_place(self, found: Verification, cert: Any) -> None:
        """The pivot inside bounds and constraints, and at every limit that has a multiplier."""
        box, system, y = self.box, self.system, cert.exact_pivot
        arrays = cert.constraint_directions, cert.constraint_weights, cert.normal, cert.multipliers
        sound = all(np.isfinite(a).all() for a in arrays) and cert.digest == cert.content_digest()
        words = "unaltered" if sound else "a field was changed, or is not finite"
        if not found.add("content", sound, words):
            return
        check_signs(found, cert, system, box)
        sizes = {box.lower.size, *(part.dim for part in self.parts)} == {cert.x.size}
        if not (found.add("sizes", sizes, "those of x") and found.ok):
            return
        inside = all(l <= q <= u for q, l, u in zip(y, box.lower.tolist(), box.upper.tolist()))
        inside = inside and box.contains(cert.x)  # comparisons of rationals with floats are exact
        found.add("bounds", inside, "x and pivot inside" if inside else "x or the pivot is outside")
        violated, missed = "", ""
        for i, part in enumerate(self.parts):
            low, high = point_at(part, y).between()
            lower, upper = float(system.lower[i]), float(system.upper[i])
            if not (lower <= low and high <= upper):
                violated = violated or f"{system.name(i)} is violated at the pivot, or may be"
            multiplier = cert.multipliers[i]
            if multiplier and not low == high == (upper if multiplier > 0 else lower):
                missed = missed or f"a multiplier on {system.name(i)}, which is not at its limit"
        found.add("feasibility", not violated, violated or "all constraints hold at the pivot")
        found.add("activity", not missed, missed or "constraints with a multiplier are at limits")

    def limits(self, cert: Any, i: int, direction: Vector) -> Limit:
        """Return the limit of gradients of component i at the pivot along a direction."""
        found = point_at(self.parts[i], cert.exact_pivot).limits(direction[None])
        return as_rationals(found)[0]

    def residual(
        self, cert: Any, limits: GradientLimits, weights: Vector, allowance: int = 1
    ) -> float:
        """Bound the length in the claim; radii of enclosures count `allowance` times."""
        shares = to_fractions(weights)
        factors = [share / sum(shares, Fraction(0)) for share in shares]
        rows = np.flatnonzero(cert.constraint_weights).tolist()
        found = as_rationals(limits) + [
            self.limits(cert, int(cert.constraint_index[r]), cert.constraint_directions[r])
            for r in rows
        ]
        factors += to_fractions(cert.constraint_weights[rows])
        mid = exact_combination([*factors, 1], [*(m for m, _ in found), to_fractions(cert.normal)])
        rad = exact_combination([abs(f) for f in factors], [r for _, r in found])
        return sqrt_upper(squared_norm([abs(m) + allowance * r for m, r in zip(mid, rad)]))

    def check_qualification(self, found: Verification, cert: Any, seed: int) -> None:
        """Constraints whose gradients cancel each other prove anything about f, that is nothing."""
        q = self.qualification(cert, seed)
        found.add(
            "qualification",
            q > DEGENERATE,
            f"all constraint gradients at the pivot stay {q:.3g} away from 0"
            if q > DEGENERATE
            else "constraint gradients are not proved to stay away from 0: degenerate, the claim "
            "says nothing about f",
        )

    def qualification(self, cert: Any, seed: int) -> float:
        """Bound from below how far constraint gradients in use are from cancelling each other.

        Some limits of gradients propose a direction; all of them, enclosed, decide about it. Where
        they do not agree, one looks along it, and proposes again.
        """
        hull = Hull(cert.normal, self.box.fixed, self.propose)
        rng = np.random.default_rng(seed)
        some = meant(cert, self.system)
        random = rng.standard_normal((RANDOM, cert.x.size))
        ways = np.concatenate([cert.constraint_directions, cert.directions, random])
        best = 0.0 if some else 1.0
        for _ in range(LOOKS if some else 0):
            for i in some:
                for way in np.concatenate([ways, -ways]):
                    try:
                        mid, _ = self.limits(cert, i, way)
                    except NotCertifiableError:  # this direction stays on a kink
                        continue
                    row = np.array([nearest_float(m) for m in mid])
                    hull.add(i, math.copysign(1.0, cert.multipliers[i]) * row)
            q, v = hull.separation()
            if q <= DEGENERATE:
                return best
            best = max(best, self._proved(cert, some, hull, v))
            if best > 0.5 * q:
                break
            noise = rng.standard_normal((RANDOM, v.size)) / math.sqrt(v.size)
            ways = np.concatenate([v[None], v + 1e-3 * noise, v + 1e-6 * noise])
        return best

    def _proved(self, cert: Any, some: list[int], hull: Hull, v: Vector) -> float:
        """Return t such that <g, v> >= t for every gradient in use, relative to its length."""
        least = 1.0
        for i in some:
            sign = math.copysign(1.0, cert.multipliers[i])
            low, high = derivative_range(self.parts[i], cert.exact_pivot, v)
            rows = [g for k, g in zip(hull.index, hull.rows) if k == i]
            longest = max(float(np.linalg.norm(g)) for g in rows)
            least = min(least, (low if sign > 0 else -high) / longest)
        return max(0.0, least)


def exact_problem(x: Vector, bounds: Any, constraints: Any, propose: Any) -> ExactProblem:
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
    return ExactProblem(box, system, parts, propose)


def as_rationals(limits: GradientLimits) -> list[Limit]:
    """Return limits of gradients as rationals: midpoints, and radii, 0 where exact."""
    exact, mids, rads = limits
    rows = [to_fractions(mid) for mid in mids] if exact is None else exact
    return [(row, to_fractions(rad)) for row, rad in zip(rows, rads, strict=True)]


def derivative_range(program: Program, y: Sequence[Fraction], v: Vector) -> tuple[float, float]:
    """Enclose <g, v> for all Clarke subgradients g at y.

    Going forward, every limit of gradients has at a kink one of its slopes, so that its derivative
    along v lies in the hull of what these give; Clarke subgradients are convex combinations.
    """
    point, series = EnclosedPoint(program, y), {}
    series[0] = [point.value(0), Enclosure(v)]
    for k, node in enumerate(program.nodes):
        if k == 0:
            continue
        ties = point.ties.get(k, {})
        (arg,) = node.of if ties else (0,)
        piece = point.pieces.get(k)
        if ties and not isinstance(node, Piecewise | Max):  # a norm: any unit vector may come out
            one = Enclosure.of([1, *[0] * (node.columns - 1)])
            piece = {**piece, **dict.fromkeys(ties, one)}
        out = node.forward([series[a] for a in node.of], piece)
        if ties and len(out) > 1:
            out[1] = _widened(node, ties, series[arg][1], out[1])
        series[k] = out
    last = series[program.last]
    if len(last) < 2:
        return 0.0, 0.0
    (low,), (high,) = last[1].ends()
    finite = math.isfinite(low) and math.isfinite(high)
    return (float(low), float(high)) if finite else (-math.inf, math.inf)


def _widened(node: Any, ties: dict[int, Any], u: Enclosure, out: Enclosure) -> Enclosure:
    """Replace the derivatives of tied entries by the hull of what their pieces give."""
    low, high = out.ends()
    for i, tie in ties.items():
        if isinstance(node, Piecewise):
            slopes = [sum(c * node.breakpoints[tie] ** k for k, c in enumerate(node.slopes[side]))
                      for side in (tie, tie + 1)]  # fmt: skip
            parts = Enclosure.of(slopes) * u[[i, i]]
        elif isinstance(node, Max):
            parts = u[tie]
        else:
            size = (u[tie] * u[tie]).sum().root().reshape(1)
            parts = Enclosure.of([-1, 1]) * size[[0, 0]]
        ends = parts.ends()
        low[i], high[i] = ends[0].min(), ends[1].max()
    mid = 0.5 * low + 0.5 * high
    return Enclosure(mid, np.maximum(high - mid, mid - low) * (1 + 2.0**-50) + 2.0**-1000)


__all__ = [
    "ExactProblem",
    "Limit",
    "as_rationals",
    "derivative_range",
    "exact_problem",
    "linear_program",
]
