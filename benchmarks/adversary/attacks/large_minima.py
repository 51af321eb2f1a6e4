"""Minima of large functions of rows, and claims about them that one lie would make true.

f = c . z + the sum of w_i phi(a_i . z + b_i) and of maxima of rows, convex, in so many variables or
rows that no table of gradients is made. A point z and slopes s_i of every kink there are drawn, and
c = - sum of w_i s_i a_i: z is a minimum, exactly. A lie is one slope or weight that the function
does not have, drawn before c is: whoever believes it believes in a minimum where f falls. Rows are
repeated, dead, tied; scales of z, f and rows are powers of two from 2^-480 to 2^480.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import exact, forged, verdict
from benchmarks.adversary.attacks.minimum_forgeries import _changed
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs
from goldstein.calculus.atoms.piecewise import Elementwise, PiecewisePolynomial
from goldstein.certificates.minimum import limits_of
from goldstein.checker.minimum.feasible import Feasible
from goldstein.checker.minimum.supports import Support
from goldstein.checker.nodes import Max, Piecewise
from goldstein.construction.rows import with_lines

ZERO, ONE = Fraction(0), Fraction(1)

#: How a claim lies; what is true is drawn half of the time.
LIES = ("steep", "elsewhere", "concave", "negative", "unbalanced", "below", "bend", "nested")

#: By how much a slope is outside of its kink, or the sum of weights is not 1.
STEPS = (ONE, Fraction(1, 4), Fraction(1, 2**10), Fraction(1, 2**30))


@dataclass
class Curve:
    """A continuous function of one number: a polynomial of degree 2 between breakpoints."""

    breaks: list[Fraction]
    pieces: list[list[Fraction]]

    def value(self, v: Fraction) -> Fraction:
        a, b, q = self.pieces[sum(t < v for t in self.breaks)]
        return a + b * v + q * v * v

    def slopes(self, v: Fraction) -> list[Fraction]:
        """The slopes on both sides."""
        sides = sum(t < v for t in self.breaks), sum(t <= v for t in self.breaks)
        return [self.pieces[k][1] + 2 * self.pieces[k][2] * v for k in sides]


@dataclass
class Group:
    """Weighted kinks of rows, or maxima of so many rows each; `slopes` are what a claim says."""

    curve: Curve | None
    rows: list[dict[int, Fraction]]
    shifts: list[Fraction]
    weights: list[Fraction]
    columns: int = 1
    third: int = 1
    slopes: list[Fraction] = field(default_factory=list)
    #: Where slopes are those of a kink, by default at the argument itself; and what bends there.
    at: dict[int, Fraction] = field(default_factory=dict)
    bends: dict[int, Fraction] = field(default_factory=dict)

    def arguments(self, z: list[Fraction]) -> list[Fraction]:
        sums = (
            sum((v * z[j] for j, v in row.items()), b) for row, b in zip(self.rows, self.shifts)
        )
        return [u / self.third for u in sums]

    def value(self, z: list[Fraction]) -> Fraction:
        u, k = self.arguments(z), self.columns
        if self.curve is not None:
            values = [self.curve.value(v) for v in u]
        else:
            values = [max(u[i : i + k]) for i in range(0, len(u), k)]
        return sum((w * v for w, v in zip(self.weights, values)), ZERO)

    def pulled(self) -> dict[int, Fraction]:
        """The sum of weights, slopes and rows."""
        found: dict[int, Fraction] = {}
        for i, (row, s) in enumerate(zip(self.rows, self.slopes)):
            for j, v in row.items():
                found[j] = found.get(j, ZERO) + self.weights[i // self.columns] * s * v / self.third
        return found


def _curve(rng: Rng, convex: bool, unit: Fraction) -> Curve:
    """Pieces whose slopes ascend, or one kink of which descends."""
    count = int(rng.integers(1, 4))
    breaks = sorted(
        {Fraction(int(v), int(rng.choice([1, 1, 2, 3]))) for v in rng.integers(-6, 7, count)}
    )
    bends = [Fraction(int(v), 4) for v in rng.choice([0, 0, 1, 2], len(breaks) + 1)]
    jumps = [Fraction(int(v), 2) for v in rng.integers(0, 4, len(breaks))]
    if not convex:
        jumps[int(rng.integers(len(jumps)))] = -ONE
    pieces = [[ZERO, Fraction(int(rng.integers(-2, 2))), bends[0]]]
    for t, jump, q in zip(breaks, jumps, bends[1:]):
        a, b, p = pieces[-1]
        slope = b + 2 * p * t + jump - 2 * q * t
        pieces.append([a + b * t + p * t * t - slope * t - q * t * t, slope, q])
    scaled = [[a * unit, b, q / unit] for a, b, q in pieces]
    return Curve([t * unit for t in breaks], scaled)


@dataclass
class Large:
    """A function, exactly and as an expression, and what is claimed of it."""

    dim: int
    line: list[Fraction]
    groups: list[Group]
    point: list[Fraction]
    copies: int
    #: z, f and the arguments of kinks are these powers of two large.
    units: tuple[int, int, int]
    nested: Group | None = None

    def exact(self, z: list[Fraction]) -> Fraction:
        total = sum((c * q for c, q in zip(self.line, z) if c), ZERO)
        total += sum((self.copies * group.value(z) for group in self.groups), ZERO)
        if self.nested is not None:  # | |u| - 1 |
            (u,), (w,) = self.nested.arguments(z), self.nested.weights
            total += w * abs(abs(u) - 1)
        return total

    def expression(self) -> Any:
        x = gs.Variable(self.dim)
        found = gs.sum(np.array(list(map(float, self.line))) * x)
        for group in self.groups:
            found = found + _written(group, x, self.dim, self.copies)
        if self.nested is not None:
            u = _affine(self.nested, x, self.dim, 1)
            found = found + gs.sum(float(self.nested.weights[0]) * gs.abs(gs.abs(u) - 1.0))
        return found

    def supports(self, program: Any) -> list[Support]:
        """Slopes and weights as evidence, of all copies of a row."""
        kinked = [k for k, node in enumerate(program.nodes) if isinstance(node, Piecewise | Max)]
        found = []
        for group, k in zip(self.groups, kinked):
            n, c, u = len(group.weights), group.columns, group.arguments(self.point)
            for i, s in enumerate(group.slopes):
                t, p = group.at.get(i, u[i]), group.bends.get(i, ZERO)
                s -= p * (u[i] - t)
                if group.curve is not None and t not in group.curve.breaks:
                    continue
                for copy in range(self.copies):
                    row = copy * n + i // c
                    place = row if group.curve is not None else row * c + i % c
                    found.append(Support(k, row, place, t if group.curve else ZERO, s, p))
        if self.nested is not None:
            found += [Support(k, 0, 0, ZERO, ZERO, ZERO) for k in kinked[len(self.groups) :]]
        return found


def _affine(group: Group, x: Any, dim: int, copies: int) -> Any:
    A = np.zeros((len(group.rows), dim))
    for i, row in enumerate(group.rows):
        for j, v in row.items():
            A[i, j] = float(v)
    u = gs.linear(np.tile(A, (copies, 1)), x) + np.tile(list(map(float, group.shifts)), copies)
    return u / group.third if group.third > 1 else u


def _written(group: Group, x: Any, dim: int, copies: int) -> Any:
    u, weights = _affine(group, x, dim, copies), np.tile(list(map(float, group.weights)), copies)
    if group.curve is not None:
        phi = PiecewisePolynomial("phi", group.curve.breaks, group.curve.pieces)
        return gs.sum(weights * Elementwise(phi, u))
    return gs.sum(weights * gs.max(u.reshape(weights.size, group.columns), axis=1))


def _rows(rng: Rng, count: int, active: int, unit: Fraction) -> list[dict[int, Fraction]]:
    rows = []
    for _ in range(count):
        some = rng.choice(active, min(active, int(rng.integers(1, 4))), replace=False).tolist()
        rows.append({j: Fraction(int(rng.integers(-4, 5))) * unit for j in some})
        if rng.random() < 0.1:
            rows[-1] = {}  # it never moves
        if len(rows) > 1 and rng.random() < 0.15:
            rows[-1] = rows[int(rng.integers(len(rows) - 1))]
    return rows


def draw(rng: Rng, lie: str) -> Large:
    """Draw a function, a point, and what is said of every kink there."""
    dim, copies = [(256, 1), (256, 1), (64, 128), (16, 512)][
        int(rng.choice(4, p=[0.5, 0.2, 0.2, 0.1]))
    ]
    e, g, h = (int(rng.choice([0, 0, 0, -30, 30, -300, 300, -480, 480])) for _ in range(3))
    if abs(g - h) > 900 or abs(h - e) > 900 or abs(g - e) > 900 or rng.random() < 0.5:
        e = g = h = 0
    place, height, unit = (Fraction(2) ** v for v in (e, g, h))
    active = min(dim, int(rng.integers(1, 7)))
    point = [ZERO] * dim
    for j in range(active):
        point[j] = Fraction(int(rng.integers(-16, 17)), 8) * place
    found = Large(dim, [ZERO] * dim, [], point, copies, (e, g, h))
    kinds = ["max" if rng.random() < 0.3 else "curve" for _ in range(int(rng.integers(1, 4)))]
    if lie != "negative":
        kinds[0] = "max" if lie in ("unbalanced", "below") else "curve" if lie else kinds[0]
    for j, kind in enumerate(kinds):
        own = lie if j == 0 else ""
        count = 8 if dim < 256 else int(rng.integers(1, 9))
        rows = _rows(rng, 2 * count if kind == "max" else count, active, unit / place)
        if lie:  # what is lied about moves
            rows[0] = {0: Fraction(int(rng.choice([-2, 1, 3]))) * unit / place}
        weights = [Fraction(int(rng.integers(1, 9)), 4) * height / unit for _ in range(count)]
        third = int(rng.choice([1, 1, 3])) if copies == 1 else 1
        group = Group(None, rows, [ZERO] * len(rows), weights, 1, third)
        (_maxima if kind == "max" else _kinks)(
            rng, group, point, own, unit, lie and rng.random() < 0.6
        )
        found.groups.append(group)
    for group in found.groups:
        for j, v in group.pulled().items():
            found.line[j] -= copies * v
    if lie == "nested":
        u = {0: Fraction(int(rng.choice([-1, 2]))) * unit / place}
        found.nested = Group(
            None, [u], [-u[0] * point[0]], [height / unit * int(rng.integers(1, 4))]
        )
    found.line = [Fraction(float(v)) for v in found.line]  # as a rule what it was
    return found


def _kinks(rng: Rng, group: Group, point: Any, lie: str, unit: Fraction, alone: Any) -> None:
    """Choose shifts, so that some arguments are on kinks, and slopes there."""
    curve = group.curve = _curve(rng, lie != "concave", unit)
    if lie == "negative":
        group.weights = [-w for w in group.weights] if rng.random() < 0.3 else [
            -group.weights[0], *group.weights[1:]]  # fmt: skip
    bare = group.arguments(point)
    for i, u in enumerate(bare):
        t = curve.breaks[int(rng.integers(len(curve.breaks)))]
        if lie == "concave" and i == 0:
            t = next(b for b in curve.breaks if curve.slopes(b)[0] > curve.slopes(b)[1])
        off = Fraction(int(rng.choice([0, 0, 0, 1, -2, 5])), 4) * unit
        off = unit / 2 if alone and i else ZERO if lie and i == 0 else off
        shift = group.third * (t + off - u)
        group.shifts[i] = Fraction(float(shift))
    for i, u in enumerate(group.arguments(point)):
        low, high = sorted(curve.slopes(u))
        s = low + (high - low) * int(rng.integers(0, 5)) / 4
        if i == 0 and lie == "steep":
            step = STEPS[int(rng.integers(len(STEPS)))]
            s = high + step if rng.random() < 0.5 else low - step
        elif i == 0 and lie in ("elsewhere", "bend"):
            others = [t for t in curve.breaks if t != u] or [u + unit]
            group.at[i] = others[int(rng.integers(len(others)))]
            t, s = group.at[i], min(curve.slopes(group.at[i]))
            if lie == "bend":  # a line of this slope at another kink, bent to be level here
                group.bends[i] = Fraction(int(rng.choice([-1, 1])), 2**8) / (t - u)
                s += group.bends[i] * (u - t)
        elif i == 0 and lie in ("concave", "negative"):
            s = (low + high) / 2
        group.slopes.append(s)


def _maxima(rng: Rng, group: Group, point: Any, lie: str, unit: Fraction, alone: Any) -> None:
    """Choose shifts, so that some entries are the largest together, and their weights."""
    group.columns, group.slopes = 2, [ZERO] * len(group.rows)
    group.weights[0] *= -1 if lie == "negative" else 1
    for i in range(len(group.weights)):
        one, other = (group.arguments(point)[2 * i + j] for j in (0, 1))
        tied = rng.random() < 0.7 and not (alone and i)
        tied = tied or (i == 0 and lie in ("unbalanced", "negative"))
        gap = ZERO if tied and lie != "below" else unit / 2
        group.shifts[2 * i] = Fraction(float(group.third * (other - one + gap)))
        u = group.arguments(point)[2 * i : 2 * i + 2]
        share = Fraction(int(rng.integers(0, 5)), 4) if u[0] == u[1] else Fraction(int(u[0] > u[1]))
        pair = [share, 1 - share]
        if i == 0 and lie == "unbalanced":
            step = STEPS[int(rng.integers(len(STEPS)))]
            pair = [[share + step, 1 - share], [1 + step, -step]][int(rng.integers(2))]
        if i == 0 and lie == "below":
            pair = pair[::-1]
        group.slopes[2 * i : 2 * i + 2] = pair


def _limited(rng: Rng, f: Large) -> tuple[dict[str, Any], list[float]]:
    """Bounds that hold f where it is: some normals are added to its slope."""
    unit, height = Fraction(2) ** f.units[0], Fraction(2) ** f.units[1]
    ends, normal = [], [0.0] * f.dim
    whole = rng.random() < 0.5
    for j, q in enumerate(f.point):
        low, high = (q - 4 * unit, q + 4 * unit) if whole or j < 6 else (-math.inf, math.inf)
        if j < 6 and rng.random() < 0.4:
            sign = int(rng.choice([-1, 1]))
            low, high = (q, high) if sign < 0 else (low, q)
            pull = Fraction(int(rng.integers(1, 5))) * height / unit
            moved = f.line[j] - sign * pull
            if Fraction(float(moved)) == moved:
                f.line[j], normal[j] = moved, float(sign * pull)
        ends.append((float(low), float(high)))
    return {"bounds": ends}, normal


def _claimed(f: Large, F: Any, limits: dict[str, Any], normal: list[float]) -> Any:
    """State the minimum as slopes show it; by hand where the library does not."""
    program, x = F.program(), np.array([float(q) for q in f.point])
    supports, more = f.supports(program), dict[str, Any]()
    if limits:
        problem = limits_of(x, limits["bounds"], ())
        weights = 2.0 * np.abs(normal)
        own = Feasible(program, problem, weights)
        program = own.program
        for i, k in own.at.items():
            supports.append(
                Support(k, 0, 0, f.point[i], Fraction(int(np.sign(normal[i])), 2), ZERO)
            )
        more = {
            "penalties": weights, "multipliers": np.zeros(0),
            "normal": own.multipliers(supports),
        }  # fmt: skip
    try:
        return forged(with_lines(program, x, supports), **more), ""
    except (gs.GoldsteinError, OverflowError) as refusal:
        e, g, _ = f.units
        eps, reach = 2.0 ** (g - e - 60), float(2.0 ** max(e + 3, 2))
        fields = {
            "x": x, "exact_pivot": tuple(f.point), "delta": 0.0, "eps": eps, "radius": reach,
            "reach": reach, "gap": eps * reach * 2.0, "supports": tuple(supports),
        }  # fmt: skip
        try:
            return gs.MinimumCertificate(**fields, **more), str(refusal)
        except gs.GoldsteinError:
            return None, str(refusal)


def _points(rng: Rng, f: Large, cert: Any, limits: dict[str, Any]) -> Iterator[list[Fraction]]:
    """Points of the ball and the box: along rows, against the slope, at random, near and far."""
    x, unit = exact(cert.x), Fraction(2) ** f.units[0]
    if len(x) != f.dim:
        return
    ways: list[dict[int, Fraction]] = [row for group in f.groups for row in group.rows if row]
    ways += [f.nested.rows[0]] if f.nested is not None else []
    ways = [ways[int(i)] for i in rng.permutation(len(ways))[:6]]
    ways = [{j: Fraction(int(np.sign(v))) for j, v in row.items()} for row in ways]
    ways += [
        {j: Fraction(int(rng.integers(-4, 5))) for j in range(min(f.dim, 6))} for _ in range(4)
    ]
    ways += [{j: Fraction(int(np.sign(v))) for j, v in enumerate(f.line[:6])}, {0: ONE}]
    yield f.point
    radius = min(Fraction(min(cert.radius, 1e300)), 64 * unit)
    for way in ways:
        length = math.isqrt(int(sum(v * v for v in way.values())) * 2**40) + 1
        for sign in (1, -1):
            for t in (1, Fraction(1, 16), Fraction(1, 2**12), Fraction(1, 2**30)):
                z = list(x)
                for j, v in way.items():
                    z[j] += sign * t * radius * v * 2**20 / length
                if limits:
                    ends = limits["bounds"]
                    z = [min(max(q, _end(a)), _end(b)) for q, (a, b) in zip(z, ends)]
                yield z


def _end(value: float) -> Fraction:
    return (
        Fraction(value) if math.isfinite(value) else Fraction(10) ** 400 * (1 if value > 0 else -1)
    )


def contradicted(rng: Rng, f: Large, cert: Any, limits: dict[str, Any]) -> str:
    """Return what is wrong with a claim, as far as points show it."""
    if cert.x.size != f.dim:
        return "about points of another length"
    x, (lows, highs) = exact(cert.x), zip(*limits["bounds"]) if limits else ((), ())
    inside = all(_end(a) <= q <= _end(b) for q, a, b in zip(x, lows, highs))
    if limits and not inside:
        return "x is outside"
    here = f.exact(x)
    for z in _points(rng, f, cert, limits):
        far = sum((a - b) ** 2 for a, b in zip(z, x))
        if math.isfinite(cert.radius) and far > Fraction(cert.radius) ** 2:
            continue
        value = f.exact(z)
        if value < here - Fraction(cert.gap):
            return f"f falls by {float(here - value):.3g}"
        if cert.global_gap is not None and value < here - Fraction(cert.global_gap):
            return "f is lower than cases say"
        if cert.strict and value <= here and far > Fraction(cert.within or 0.0) ** 2:
            return "f is as low farther away"
    return ""


def large_minima(rng: Rng, seen: Seen) -> None:
    lie = str(rng.choice(LIES)) if rng.random() < 0.5 else ""
    f = draw(rng, lie)
    limits, normal = _limited(rng, f) if rng.random() < 0.25 else ({}, [])
    try:
        F = f.expression()
    except (gs.GoldsteinError, OverflowError) as refusal:
        seen.silent(str(refusal))
        return
    seen.note(f"{lie or 'no lie'}, {f.dim} variables, {f.copies} copies, units {f.units}")
    cert, refusal = _claimed(f, F, limits, normal)
    if cert is None:
        seen.silent(refusal)
        return
    claims = [(cert, f"{lie or 'a minimum'} {refusal}")]
    for _ in range(2):
        fields = _changed(rng, cert)
        fields |= _changed(rng, cert) if rng.random() < 0.3 else {}
        claims.append((forged(cert, **fields), f"{lie}, and {str(fields)[:300]}"))
    small = {"eps": cert.eps * float(rng.choice([0.0, 0.5])), "gap": cert.gap / 4}
    claims.append((forged(cert, **small), "smaller"))
    if rng.random() < 0.2:
        claims.append((forged(cert, supports=()), "no supports"))
    if lie:  # as if nothing were lost
        claims.append((forged(cert, gap=2.0 ** (f.units[1] - 40)), f"{lie}, and no gap"))
    if not limits and f.copies == 1 and rng.random() < 0.03:  # which takes longest
        claims.append((_asked(f, F), "asked for"))
    for claim, said in claims:
        if claim is None:
            seen.silent()
            continue
        ok, label = verdict(claim, F, **limits)
        if claim.kind != "minimum":
            here, there = (f.exact(exact(z)) for z in (claim.x, claim.point))
            seen.claim(ok, label, here - there >= Fraction(claim.fall) > 0, "lower", own=True)
            continue
        wrong = contradicted(rng, f, claim, limits) if ok else ""
        stated = said == "asked for" or (claim is cert and not lie and not refusal)
        seen.claim(ok, label, False if wrong else None, f"{said}: {wrong}", own=stated)


def _asked(f: Large, F: Any) -> Any:
    """What the library says itself of the point: a minimum, or a lower point."""
    x, delta = np.array([float(q) for q in f.point]), 2.0 ** max(f.units[0], -40) / 8
    try:
        found: Any = gs.certify(F, x, delta=delta, stationarity="minimum")
    except gs.GoldsteinError:
        return None
    return found if found.kind in ("minimum", "refutation") else None


ATTACK = Attack(
    "large-minima",
    "minima of large functions of rows, and claims that one false slope or weight would make true",
    weight=2,
    one=large_minima,
)
