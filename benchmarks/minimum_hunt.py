"""A hunt for false claims about minima: random functions, claimed balls, exact attacks.

Run `python -m benchmarks.minimum_hunt --n 1000 --seed 0`, with `--kind free` (functions on the
whole space), `limited` (inside random bounds and constraints), `cases` (sums of ramps and other
kinks, proved by a tree of cases), `lines` (convex functions of rows, proved as large ones are) or
`models` (ramp machines, networks). Every function is drawn as a tree with an evaluation in
rationals of its own, which shares no code with the library; the library is given
the same function as an expression. What it claims is attacked at random points, at corners, on the
kinks, between kinks, and where floating point descent from random points ends; values are compared
as rationals.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

import goldstein as gs
from goldstein import models
from goldstein.certificates.minimum import limits_of
from goldstein.checker.minimum import lines
from goldstein.checker.minimum.curvature import Pass, Region
from goldstein.checker.minimum.minimum import Shown, minorant, rise
from goldstein.checker.minimum.spans import Span
from goldstein.checker.nodes import Max
from goldstein.checker.rationals import fraction_upper, sqrt_upper, squared_distance
from goldstein.construction.cases import with_cases
from goldstein.construction.minimum import (
    by_row,
    kinks_near,
    prove_minimum,
    refuted,
    with_gap,
)
from goldstein.construction.rows import minimum_by_rows, with_lines
from goldstein.errors import GoldsteinError

Exact = Callable[[list[Fraction]], Fraction]


@dataclass
class Drawn:
    """A function: as an expression, and in rationals."""

    expression: Any
    exact: Exact


def _leaf(rng: np.random.Generator, x: Any, d: int) -> Drawn:
    a = [int(v) for v in rng.integers(-2, 3, d)]
    b = int(rng.integers(-2, 3))
    affine = gs.sum(np.array(a, dtype=float) * x) + float(b)
    return Drawn(affine, lambda z: sum((v * q for v, q in zip(a, z)), Fraction(b)))


def _abs(u: Drawn) -> Drawn:
    return Drawn(abs(u.expression), lambda z: abs(u.exact(z)))


def _relu(u: Drawn) -> Drawn:
    return Drawn(gs.relu(u.expression), lambda z: max(u.exact(z), Fraction(0)))


def _square(u: Drawn) -> Drawn:
    return Drawn(gs.square(u.expression), lambda z: u.exact(z) ** 2)


def _ramp(u: Drawn) -> Drawn:
    one = Fraction(1)
    return Drawn(
        gs.ramp(u.expression, rho=1.0),
        lambda z: min(one, max(one - u.exact(z), Fraction(0))),
    )


def _huber(u: Drawn) -> Drawn:
    def exact(z: list[Fraction]) -> Fraction:
        v = u.exact(z)
        return v * v / 2 if abs(v) <= 1 else abs(v) - Fraction(1, 2)

    return Drawn(gs.huber(u.expression, 1.0), exact)


def _cube(u: Drawn) -> Drawn:
    return Drawn(u.expression**3, lambda z: u.exact(z) ** 3)


def _product(u: Drawn, v: Drawn) -> Drawn:
    return Drawn(u.expression * v.expression, lambda z: u.exact(z) * v.exact(z))


def _largest(*parts: Drawn) -> Drawn:
    stacked = gs.max(gs.stack([p.expression for p in parts]))
    return Drawn(stacked, lambda z: max(p.exact(z) for p in parts))


def _weighted(c: int, u: Drawn, v: Drawn) -> Drawn:
    share = Fraction(c, 2)
    return Drawn(
        u.expression + float(share) * v.expression, lambda z: u.exact(z) + share * v.exact(z)
    )


ONES = (_abs, _relu, _square, _ramp, _huber, _cube)


def draw(rng: np.random.Generator, x: Any, d: int, depth: int) -> Drawn:
    """Draw a function of a Variable x of size d."""
    if depth == 0 or rng.random() < 0.15:
        return _leaf(rng, x, d)
    kind = rng.integers(10)
    if kind < 5:
        chosen = ONES[int(rng.choice(len(ONES), p=[0.3, 0.2, 0.25, 0.1, 0.1, 0.05]))]
        return chosen(draw(rng, x, d, depth - 1))
    if kind < 6:
        return _product(draw(rng, x, d, depth - 1), draw(rng, x, d, depth - 1))
    if kind < 7:
        return _largest(*(draw(rng, x, d, depth - 1) for _ in range(int(rng.integers(2, 4)))))
    weight = int(rng.choice([-4, -2, -1, 1, 2, 4]))
    return _weighted(weight, draw(rng, x, d, depth - 1), draw(rng, x, d, depth - 1))


def start(rng: np.random.Generator, f: Drawn, d: int) -> list[Fraction]:
    """Return a point: on a grid, where kinks meet, or where a coarse descent ends."""
    best = [Fraction(int(v), 2) for v in rng.integers(-4, 5, d)]
    if rng.random() < 0.3:
        return best
    step = Fraction(1)
    value = f.exact(best)
    while step > Fraction(1, 16):
        moves = [tuple(step * int(v) for v in rng.integers(-1, 2, d)) for _ in range(6)]
        tries = [[a + b for a, b in zip(best, move)] for move in moves]
        lower = min(tries, key=f.exact)
        if f.exact(lower) < value:
            best, value = lower, f.exact(lower)
        else:
            step /= 2
    return best


def attacks(
    rng: np.random.Generator, f: Drawn, y: list[Fraction], radius: float, n: int
) -> list[list[Fraction]]:
    """Return points of a ball: corners, ends of the axes, random ones, and ends of descents."""
    d, r = len(y), Fraction(min(radius, 64.0))
    shrink = Fraction(1) - Fraction(1, 2**40)
    found = []
    for _ in range(n):
        h = rng.choice([-1, 0, 1], d) if rng.random() < 0.4 else rng.standard_normal(d)
        length = float(np.linalg.norm(h)) or 1.0
        t = r * shrink * Fraction(float(rng.choice([1.0, 0.5, rng.random(), rng.random() ** 8])))
        found.append([a + t * Fraction(float(v / length)) * shrink for a, v in zip(y, h)])
    for _ in range(2):
        z = found[int(rng.integers(len(found)))]
        for k in range(24):
            step = r / 2 ** (k // 4 + 1)
            h = rng.standard_normal(d)
            w = [a + step * Fraction(float(v)) for a, v in zip(z, h / np.linalg.norm(h))]
            if sum((a - b) ** 2 for a, b in zip(w, y)) <= r * r and f.exact(w) < f.exact(z):
                z = w
        found.append(z)
    for k in range(d):  # kinks of integer data lie on the grid
        for v in (math.floor(y[k]), math.ceil(y[k])):
            z = [Fraction(v) if j == k else a for j, a in enumerate(y)]
            if abs(z[k] - y[k]) <= r:
                found.append(z)
    return found


def false_claims(f: Drawn, program: Any, cert: Any, points: list[list[Fraction]]) -> list[str]:
    """Return what is wrong with a claim."""
    wrong = []
    here, gap = f.exact([Fraction(v) for v in cert.x.tolist()]), Fraction(cert.gap)
    y = list(cert.exact_pivot)
    at = f.exact(y)
    shown = minorant(program, y, cert.reach, cert.supports, cert.sharp).show(cert.growth)
    for z in points:
        value = f.exact(z)
        far = sum((a - Fraction(b)) ** 2 for a, b in zip(z, cert.x.tolist()))
        inside = math.isinf(cert.radius) or far <= Fraction(cert.radius) ** 2
        if inside and value < here - gap:
            wrong.append("gap")
        t2 = sum((a - b) ** 2 for a, b in zip(z, y))
        if math.isinf(cert.reach) or t2 <= Fraction(cert.reach) ** 2:
            t = Fraction(math.sqrt(t2)) * (1 + Fraction(1, 2**50))
            low = at - shown.loss - Fraction(shown.eps) * t + Fraction(cert.growth) * t2 / 2
            if value < low:
                wrong.append("growth")
    if cert.convexity is not None:
        wrong += ["convexity"] * bent_wrongly(f, points, y, cert)
    return wrong


def bent_wrongly(f: Drawn, points: list[list[Fraction]], y: list[Fraction], cert: Any) -> bool:
    c = Fraction(cert.convexity)
    reach = math.inf if cert.scope == "global" else cert.reach
    for a, b in pairwise(points):
        inside = math.isinf(reach) or all(
            sum((p - q) ** 2 for p, q in zip(z, y)) <= Fraction(reach) ** 2 for z in (a, b)
        )
        if inside:
            middle = [(p + q) / 2 for p, q in zip(a, b)]
            gap = f.exact(a) + f.exact(b) - 2 * f.exact(middle)
            if gap < c / 4 * sum((p - q) ** 2 for p, q in zip(a, b)):
                return True
    return False


def curved_wrongly(
    rng: np.random.Generator, f: Drawn, program: Any, y: list[Fraction], radius: float, n: int
) -> int | None:
    """Compare the curvature pass with exact second differences; None where it refuses."""
    try:
        total, _ = Pass(program, Region(y, radius)).backward(program.last, Span(np.ones(1)))
    except GoldsteinError:
        return None
    lower = [[Fraction(v) for v in row] for row in total.lower.tolist()]
    wrong = 0
    points = attacks(rng, f, y, radius, 2 * n)
    for a, b in zip(points[::2], points[1::2]):
        h = [q - p for p, q in zip(a, b)]
        bend = sum(h[i] * lower[i][j] * h[j] for i in range(len(h)) for j in range(len(h)))
        middle = [(p + q) / 2 for p, q in zip(a, b)]
        wrong += f.exact(a) + f.exact(b) - 2 * f.exact(middle) < bend / 4
    return wrong


def hunt(seed: int, counts: Counter[str], n: int = 24) -> None:
    """Draw one function and attack everything that is claimed about it."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    x = gs.Variable(d)
    f = draw(rng, x, d, int(rng.integers(1, 4)))
    if isinstance(f.expression, gs.Expression):
        look(rng, seed, f, start(rng, f, d), counts, n)


def look(
    rng: np.random.Generator, seed: int, f: Drawn, y: list[Fraction], counts: Counter[str], n: int
) -> None:
    """Attack what is claimed about one point of a function."""
    expression, program = f.expression, f.expression.program()
    counts["functions"] += 1
    at = np.array([float(v) for v in y])
    radius = float(rng.choice([0.25, 1.0, 3.0, 2.0 ** -rng.integers(0, 8)]))
    bad = curved_wrongly(rng, f, program, y, radius, n)
    counts["curvatures"] += bad is not None
    counts["false curvatures"] += bad or 0
    claims = [with_gap(program, at, y, radius)]
    if seed % SEARCHED == 0:
        claims.append(prove_minimum(program, at, y))
    for cert in claims:
        if cert is None:
            continue
        counts[f"claims: {cert.scope}{' strict' * cert.strict}{' unique' * cert.unique}"] += 1
        counts["claims not verified"] += not cert.verify(expression).ok
        points = attacks(rng, f, list(cert.exact_pivot), min(cert.radius, cert.reach), n)
        if math.isinf(cert.radius):
            points += attacks(rng, f, y, 16.0, n)
        for what in false_claims(f, program, cert, points):
            counts[f"false {what}"] += 1
            counts["false claims"] += 1
    denied = refuted(program, at, y, 0.0) if seed % SEARCHED == 0 else None
    if denied is not None:
        counts["refutations"] += 1
        point = [Fraction(v) for v in denied.point.tolist()]
        lower = f.exact(y) - f.exact(point) >= Fraction(denied.fall) > 0
        h = [Fraction(v) for v in denied.direction.tolist()]
        beside = [a + v / 2**40 for a, v in zip(y, h)]
        falls = f.exact(beside) < f.exact(y)
        counts["false refutations"] += not (lower and falls and denied.verify(expression).ok)
        if any(c is not None and c.strict and c.gap == 0 for c in claims):
            counts["contradictions"] += 1


def model(rng: np.random.Generator) -> Drawn:
    """Draw a ramp machine, for two classes or more, or a network, with few integer data."""
    kind, n, d = int(rng.integers(4)), int(rng.integers(2, 6)), int(rng.integers(1, 3))
    X = rng.integers(-2, 3, (n, d))
    ridge = Fraction(int(rng.integers(0, 5)), 4)
    given = [[Fraction(int(v)) for v in row] for row in X.tolist()]
    if kind == 0:
        rho, weights = int(rng.integers(1, 3)), rng.integers(1, 4, n).tolist()
        expression = models.margin_svm(X, float(rho), ridge, weights=weights, total=Fraction(n))
        return Drawn(expression, lambda z: _ramps(given, weights, rho, z) / n + _ridge(ridge, z))
    if kind == 1:
        classes = int(rng.integers(2, 4))
        labels = rng.integers(0, classes, n).tolist()
        expression = models.multiclass_margin(X[:, :1], labels, classes, 1.0, ridge)
        firsts = [row[0] for row in given]
        return Drawn(expression, lambda z: _margins(firsts, labels, classes, ridge, z))
    width, y = int(rng.integers(1, 3)), rng.integers(-2, 3, n).tolist()
    loss, bend = ("squared", "huber")[int(rng.integers(2))], bool(rng.random() < 0.5)
    options: Any = {"loss": loss, "ridge": float(ridge), "bias": bend}
    rows = [[*row, Fraction(1)] for row in given] if bend else given
    make = models.relu_one_layer if kind == 2 else models.relu_two_layer
    return Drawn(
        make(X, y, width, **options),
        lambda z: _network(rows, y, width, loss == "huber", z) + _ridge(ridge, z),
    )


def _ridge(ridge: Fraction, z: list[Fraction]) -> Fraction:
    return ridge / 2 * sum(q * q for q in z)


def _dot(row: list[Fraction], z: list[Fraction]) -> Fraction:
    return sum((a * q for a, q in zip(row, z, strict=True)), Fraction(0))


def _ramps(rows: Any, weights: list[int], rho: int, z: list[Fraction]) -> Fraction:
    parts = (min(Fraction(1), max(Fraction(0), 1 - _dot(row, z) / rho)) for row in rows)
    return sum((p * v for p, v in zip(weights, parts)), Fraction(0))


def _margins(
    x: list[Fraction], labels: list[int], classes: int, ridge: Fraction, z: list[Fraction]
) -> Fraction:
    total = ridge / 2 * sum(z[2 * c] ** 2 for c in range(classes))  # not of the intercepts
    for v, label in zip(x, labels):
        scores = [z[2 * c] * v + z[2 * c + 1] for c in range(classes)]
        u = scores[label] - max(scores[:label] + scores[label + 1 :])
        total += min(Fraction(1), max(Fraction(0), 1 - u))
    return total


def _network(rows: Any, y: list[int], width: int, huber: bool, z: list[Fraction]) -> Fraction:
    k, total = len(rows[0]), Fraction(0)
    outer = z[k * width :] or [Fraction(1 - 2 * (j % 2)) for j in range(width)]
    for row, target in zip(rows, y):
        active = [max(Fraction(0), _dot(row, z[k * j : k * j + k])) for j in range(width)]
        v = abs(_dot(outer, active) - target)
        total += v - Fraction(1, 2) if huber and v > 1 else v * v / 2
    return total


def hunt_models(seed: int, counts: Counter[str], n: int = 24) -> None:
    """Draw a model; attack what is claimed at points of a grid, and where runs end."""
    rng = np.random.default_rng(seed)
    f = model(rng)
    y = start(rng, f, f.expression.dim)
    if rng.random() < 0.3:
        x0 = np.array([float(v) for v in y]) + 0.01 * rng.standard_normal(len(y))
        x = gs.minimize(f.expression, x0, eps=1e-4, delta=1e-4, rng=0, max_calls=400).x
        y = [Fraction(v) for v in x.tolist()]
    look(rng, seed, f, y, counts, n)


def with_rows(rng: np.random.Generator, x: Any, d: int) -> Drawn:
    """Draw a convex function of rows of integers, scaled; many are equal, dependent or 0."""
    f = None
    for _ in range(int(rng.integers(1, 4))):
        n, scale = int(rng.integers(1, 5)), 2.0 ** int(rng.choice([0, 0, 0, -1, 1, 40, -40, -500]))
        A, b = rng.integers(-2, 3, (n, d)) * scale, rng.integers(-2, 3, n) * scale
        table = [[Fraction(v) for v in row] for row in np.column_stack([A, b]).tolist()]
        part = _of_rows(int(rng.integers(7)), A @ x + b, table)
        share = Fraction(int(rng.integers(1, 5)), int(rng.integers(1, 4)))
        weighted = part.expression * share.numerator / share.denominator
        if f is None:
            f = Drawn(weighted, lambda z, part=part, share=share: share * part.exact(z))
        else:
            f = Drawn(
                f.expression + weighted,
                lambda z, f=f, part=part, share=share: f.exact(z) + share * part.exact(z),
            )
    assert f is not None
    return f


def _of_rows(kind: int, u: Any, table: list[list[Fraction]]) -> Drawn:
    one: Any = Fraction(1)
    value: Any = [
        lambda v: sum(map(abs, v)), lambda v: sum(max(q, 0 * q) for q in v), max,
        lambda v: -min(v), lambda v: sum(q * q for q in v),
        lambda v: sum(max(q, -3 * q) / 4 for q in v),
        lambda v: sum(q * q / 2 if abs(q) <= 1 else abs(q) - one / 2 for q in v),
    ][kind]  # fmt: skip
    expression = [
        lambda: gs.sum(abs(u)), lambda: gs.sum(gs.relu(u)), lambda: gs.max(u),
        lambda: -gs.min(u), lambda: gs.sum(gs.square(u)), lambda: gs.sum(gs.pinball(u, 0.25)),
        lambda: gs.sum(gs.huber(u, 1.0)),
    ][kind]()  # fmt: skip
    return Drawn(expression, lambda z: value([_dot(row, [*z, one]) for row in table]))


def hunt_lines(seed: int, counts: Counter[str], n: int = 16) -> None:
    """Draw a convex function of rows; attack what its multipliers show, forged ones too."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    f = with_rows(rng, gs.Variable(d), d)
    if not isinstance(f.expression, gs.Expression):
        return
    program = f.expression.program()
    counts["functions"] += 1
    y = start(rng, f, d)
    at, drawn = np.array([float(v) for v in y]), random_supports(rng, program, y)
    tried = [(at, y, drawn)]
    moved = [v + Fraction(int(rng.integers(-3, 4)), 3 * 2 ** int(rng.integers(0, 60))) for v in y]
    tried.append((at, moved, random_supports(rng, program, moved)))
    try:
        cert, best = minimum_by_rows(program, at, math.inf, False)
        found = list(cert.supports)
        tried += [(best, [Fraction(v) for v in best.tolist()], found), (at, y, found)]
    except GoldsteinError:
        counts["refused"] += 1
    forged = [(x, z, forge(rng, program, z, own)) for x, z, own in tried if own]
    large, lines.LARGE = lines.LARGE, 1
    try:
        for k, (x, z, supports) in enumerate(tried + forged):
            counts["forged"] += k >= len(tried)
            attack_lines(rng, f, x, z, supports, counts, n)
    finally:
        lines.LARGE = large


def random_supports(rng: np.random.Generator, program: Any, y: Any) -> list[Any]:
    """Draw slopes and weights of the kinks that a point is on, or next to."""
    kinks = kinks_near(program, y)
    found = []
    for places in by_row(kinks.supports).values():
        own = [kinks.supports[j] for j in places]
        parts = rng.integers(0, 4, len(own)) + (np.arange(len(own)) == 0)
        for j, g, part in zip(places, own, parts.tolist()):
            low, high = (Fraction(float(end[j])) for end in (kinks.low, kinks.high))
            share = Fraction(part, int(parts.sum()))
            is_max = isinstance(program.nodes[g.node], Max)
            found.append(g._replace(s=share if is_max else low + share * (high - low)))
    return found


def forge(rng: np.random.Generator, program: Any, y: Any, supports: list[Any]) -> list[Any]:
    """Change one entry of the evidence, or leave one out; best so that gradients cancel."""
    found, j = list(supports), int(rng.integers(len(supports)))
    g, tiny = found[j], Fraction(int(rng.choice([-1, 1])), 2 ** int(rng.integers(0, 70)))
    other = found[int(rng.integers(len(found)))]
    changes: list[Any] = [
        {"s": g.s + tiny}, {"t": g.t + tiny}, {"p": tiny}, {"s": other.s}, {"t": other.t},
        {"place": other.place}, {"row": other.row, "place": other.place}, {"node": other.node},
        {"s": -g.s}, {"s": g.s * (1 + tiny)},
    ]  # fmt: skip
    if rng.random() < 0.5:
        with suppress(GoldsteinError):
            shift = cancelling(program, y, supports, g)
            found[j] = g._replace(s=g.s + shift)
            row = [i for i, h in enumerate(found) if (h.node, h.row) == (g.node, g.row) and i != j]
            if row and rng.random() < 0.5:  # weights whose sum is 1 again
                found[row[0]] = found[row[0]]._replace(s=found[row[0]].s - shift)
    elif rng.random() < 0.1:
        del found[j]
    else:
        found[j] = g._replace(**changes[int(rng.integers(len(changes)))])
    return found


def cancelling(program: Any, y: Any, supports: list[Any], g: Any) -> Fraction:
    """Return the change of a slope after which the line is flat along its row."""
    slope = lines.line_below(program, y, supports).slope.mid
    weights = {k: share.mid for k, _, share in lines.terms(program)}
    row = Pass(program, Region(y, 0.0)).slopes[program.nodes[g.node].of[0]].mid[g.place]
    with np.errstate(all="ignore"):
        found = -(slope @ row) / (row @ row) / weights[g.node][g.row]
    return Fraction(float(found)) if np.isfinite(found) else Fraction(0)


def attack_lines(
    rng: np.random.Generator, f: Drawn, x: Any, y: list[Fraction], supports: list[Any],
    counts: Counter[str], n: int,
) -> None:  # fmt: skip
    """State what lines show, let the checker decide, and compare it with exact values."""
    program = f.expression.program()
    try:
        cert = with_lines(program, x, supports)
        if list(cert.exact_pivot) != y:
            eps, loss = lines.line_below(program, y, supports).ends
            delta = sqrt_upper(squared_distance(y, x))
            gap = (Shown(eps, loss, 0.0, cert.reach).gap or 0) + rise(program, y, x)
            cert = replace(
                cert, exact_pivot=tuple(y), delta=delta, eps=eps, gap=fraction_upper(max(gap, 0)),
                radius=math.nextafter(cert.reach - delta, 0.0),
            )  # fmt: skip
    except GoldsteinError:
        counts["claims refused"] += 1
        return
    if not cert.verify(f.expression).ok:
        counts["claims refused"] += 1
        return
    counts["claims: lines"] += 1
    low, at = f.exact([Fraction(v) for v in x.tolist()]) - Fraction(cert.gap), f.exact(y)
    shown = lines.line_below(program, y, supports).ends
    points = attacks(rng, f, y, min(cert.radius, 64.0), n)
    points += attacks(rng, f, [Fraction(v) for v in np.round(x).tolist()], 2.0, n)
    for z in points:
        counts["attacks"] += 1
        square = sum((a - Fraction(b)) ** 2 for a, b in zip(z, x.tolist()))
        inside = square <= Fraction(cert.radius) ** 2
        away = Fraction(sqrt_upper(squared_distance(z, y)))
        value = f.exact(z)
        wrong = (inside and value < low) or value < at - shown[1] - Fraction(shown[0]) * away
        counts["false claims"] += wrong


def hunt_limited(seed: int, counts: Counter[str], n: int = 24) -> None:
    """Draw a function and limits; attack what is claimed at feasible points, compared exactly."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    x = gs.Variable(d)
    f, c = draw(rng, x, d, int(rng.integers(1, 4))), draw(rng, x, d, int(rng.integers(1, 3)))
    if not (isinstance(f.expression, gs.Expression) and isinstance(c.expression, gs.Expression)):
        return
    low, high = (sign * rng.integers(1, 4, d).astype(float) for sign in (-1, 1))
    y = start(rng, f, d)
    y = [min(max(q, Fraction(a)), Fraction(b)) for q, a, b in zip(y, low, high)]
    limit = math.ceil(c.exact(y)) + int(rng.integers(0, 2))
    equal = rng.random() < 0.2 and c.exact(y) == limit
    limits = {
        "bounds": list(zip(low, high)),
        "constraints": [c.expression == limit if equal else c.expression <= limit],
    }
    at = np.array([float(v) for v in y])
    program, problem = f.expression.program(), limits_of(at, **limits)
    counts["functions"] += 1

    def feasible(z: list[Fraction]) -> bool:
        inside = all(a <= q <= b for q, a, b in zip(z, low.tolist(), high.tolist()))
        value = c.exact(z) if inside else Fraction(0)
        return inside and (value == limit if equal else value <= limit)

    radius = float(rng.choice([0.25, 1.0, 3.0]))
    try:
        claims = [with_gap(program, at, y, radius, problem)]
        if seed % SEARCHED == 0:
            claims.append(prove_minimum(program, at, y, problem=problem))
        many = seed % SEARCHED == 0
        denied = refuted(program, at, y, 0.0, problem=problem) if many else None
    except GoldsteinError:
        counts["refused"] += 1
        return
    for cert in claims:
        if cert is None:
            continue
        counts[f"claims: {cert.scope}{' strict' * cert.strict}{' unique' * cert.unique}"] += 1
        counts["claims not verified"] += not cert.verify(f.expression, **limits).ok
        here, gap = f.exact(y), Fraction(cert.gap)
        points = attacks(rng, f, y, min(cert.radius, 6.0), 2 * n)
        points += [[Fraction(int(v), 2) for v in rng.integers(-6, 7, d)] for _ in range(n)]
        points = [[min(max(q, Fraction(a)), Fraction(b)) for q, a, b in zip(z, low, high)]
                  for z in points]  # fmt: skip
        for z in filter(feasible, points):
            far = sum((a - b) ** 2 for a, b in zip(z, y))
            inside = math.isinf(cert.radius) or far <= Fraction(cert.radius) ** 2
            beyond = cert.strict and far > Fraction(cert.within) ** 2 and f.exact(z) <= here
            counts["attacks"] += inside
            counts["false claims"] += inside and (f.exact(z) < here - gap or beyond)
    if denied is not None:
        counts["refutations"] += 1
        point = [Fraction(v) for v in denied.point.tolist()]
        right = feasible(point) and f.exact(y) - f.exact(point) >= Fraction(denied.fall) > 0
        right = right and denied.verify(f.expression, **limits).ok
        counts["false refutations"] += not right
        if any(c is not None and c.scope == "global" and c.gap == 0 for c in claims):
            counts["contradictions"] += 1


def with_kinks(rng: np.random.Generator, f: Drawn, x: Any, d: int) -> Drawn:
    """Add some kinks of affine arguments, as a tree of cases has them."""
    for _ in range(int(rng.integers(1, 7))):
        kind = (_abs, _relu, _ramp, _ramp)[int(rng.integers(4))]
        weight = int(rng.choice([-2, -1, 1, 2] if kind is _ramp else [1, 2]))
        f = _weighted(weight, f, kind(_leaf(rng, x, d)))
    return f


def hunt_cases(seed: int, counts: Counter[str], n: int = 24) -> None:
    """Draw a sum of kinks and a ridge; attack what a tree of cases claims everywhere."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    x = gs.Variable(d)
    ridge = Fraction(int(rng.integers(1, 5)), 4)
    zero = Drawn(ridge_of(x, ridge), lambda z: ridge / 2 * sum(q * q for q in z))
    f = with_kinks(rng, zero, x, d)
    at = gs.minimize(f.expression, rng.standard_normal(d), eps=1e-5, delta=1e-5, rng=0).x
    program = f.expression.program()
    found = prove_minimum(program, at, at.tolist())
    counts["functions"] += 1
    if found is None:
        return
    try:
        found, _ = with_cases(program, found, int(rng.choice([3, 20, 100])))
    except GoldsteinError:
        counts["refused"] += 1
        return
    if found.global_gap is None:
        return
    counts[f"claims: {found.scope} by cases"] += 1
    counts["claims not verified"] += not found.verify(f.expression).ok
    y = [Fraction(v) for v in at.tolist()]
    low = f.exact(y) - Fraction(found.global_gap)
    for z in attacks(rng, f, y, 8.0, 2 * n) + attacks(rng, f, [Fraction(0)] * d, 4.0, n):
        counts["attacks"] += 1
        counts["false claims"] += f.exact(z) < low
    for _ in range(4):  # another local minimum is the best attack
        z = gs.minimize(f.expression, 3 * rng.standard_normal(d), eps=1e-4, delta=1e-4, rng=0).x
        counts["false claims"] += f.exact([Fraction(v) for v in z.tolist()]) < low


def ridge_of(x: Any, ridge: Fraction) -> Any:
    return float(ridge) / 2 * gs.sum(gs.square(x))


#: The largest ball is searched for every so many functions: that takes most of the time, and the
#: checker decides on one ball.
SEARCHED = 16

KINDS = {
    "free": hunt, "limited": hunt_limited, "cases": hunt_cases, "lines": hunt_lines,
    "models": hunt_models,
}  # fmt: skip

FALSE = (
    "false curvatures",
    "false claims",
    "false refutations",
    "contradictions",
    "claims not verified",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, default="free")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of CPU")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    for k in range(given.n):
        if time.process_time() > given.seconds:
            break
        KINDS[given.kind](given.seed * 10**6 + k, counts)
    for name, count in sorted(counts.items()):
        print(f"{name}: {count}")
    print(", ".join(f"{name}: {counts[name]}" for name in FALSE))


if __name__ == "__main__":
    main()
