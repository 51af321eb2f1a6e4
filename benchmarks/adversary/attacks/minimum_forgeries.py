"""Claims about minima of random expressions, honest ones and with one or two fields changed.

The functions, and their values in rationals, are those of `benchmarks.minimum_hunt`. A claim is
false where a point contradicts it: a lower value inside its scope, a chord above the function, a
low point farther away than is said. That no point does says nothing: such a claim may be either.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
from benchmarks.adversary.ask import forged, verdict
from benchmarks.adversary.mutations import changed
from benchmarks.adversary.suite import Attack, Rng, Seen
from benchmarks.minimum_hunt import (
    Drawn,
    attacks,
    bent_wrongly,
    draw,
    ridge_of,
    start,
    with_kinks,
)

import goldstein as gs
from goldstein.certificates.minimum import limits_of
from goldstein.checker.nodes import Kinked
from goldstein.construction.cases import with_cases
from goldstein.construction.minimum import prove_minimum, refuted, with_gap

#: Numbers of a claim that are made stronger, or weaker, by a factor.
NUMBERS = ("gap", "growth", "reach", "radius", "within", "convexity", "global_gap", "eps", "delta",
           "case_growth", "violation")  # fmt: skip
FACTORS = (-1.0, 0.0, 0.5, 0.99, 1.01, 2.0, 100.0, math.inf, math.nan)


def _changed(rng: Rng, cert: Any) -> dict[str, Any]:
    """Draw one field of a claim, and another value of it."""
    what = int(rng.integers(8))
    if what == 0:
        flag = str(rng.choice(["strict", "unique"]))
        return {flag: not getattr(cert, flag)}
    if what == 1:
        far = {"reach": math.inf, "growth": float(rng.choice([0.0, cert.growth, 0.5]))}
        scope = {"scope": str(rng.choice(["ball", "global", "box"])), "radius": math.inf}
        return scope | (far if rng.random() < 0.5 else {})
    if what == 2:
        moved = cert.x + rng.standard_normal(cert.x.size) * 10.0 ** rng.uniform(-9, 1)
        return {"x": moved} if rng.random() < 0.5 else {"exact_pivot": tuple(map(Fraction, moved))}
    if what == 3 and cert.supports:
        rows = list(cert.supports)
        k = int(rng.integers(len(rows)))
        name = str(rng.choice(["node", "row", "place", "t", "s", "p"]))
        whole = name in ("node", "row", "place")
        step = Fraction(
            int(rng.choice([-1, 1])) if whole else int(rng.integers(-2, 3)), 4 - 3 * whole
        )
        old = getattr(rows[k], name)
        rows[k] = rows[k]._replace(**{name: type(old)(old + step)})
        return {"supports": tuple(rows[: k + 1] if rng.random() < 0.1 else rows)}
    if what == 4 and cert.sharp:
        rows = [h._replace(sigma=h.sigma * int(rng.integers(-1, 4))) for h in cert.sharp]
        if rng.random() < 0.5:
            name = str(rng.choice(["node", "row", "one", "other"]))
            rows[0] = rows[0]._replace(**{name: getattr(rows[0], name) + int(rng.choice([-1, 1]))})
        return {"sharp": tuple(rows)}
    if what == 5 and cert.case_splits is not None:
        names = ["case_points", "case_slopes", "case_splits"]
        if len(cert.case_splits) and rng.random() < 0.3:  # the last case twice
            tables = [getattr(cert, name) for name in names]
            return {n: np.concatenate([t, t[-1:]]) for n, t in zip(names, tables)}
        name = str(rng.choice(names))
        table = getattr(cert, name).copy()
        if table.size:
            table[int(rng.integers(len(table)))] += rng.choice([-1.0, 1.0, 0.25])
        return {name: table[: int(rng.integers(len(table) + 1))] if rng.random() < 0.3 else table}
    if what == 6:
        name = str(rng.choice(["penalties", "multipliers", "normal", "case_points", "case_splits"]))
        table = getattr(cert, name)
        return {name: None if table is None or rng.random() < 0.2 else changed(name, table, rng)}
    if what == 7:  # of another function: one variable more, or less
        one = rng.random() < 0.5
        moved, pivot = (cert.x[1:], cert.exact_pivot[1:]) if one else (np.append(cert.x, 0.0), ())
        return {"x": moved, "exact_pivot": pivot or (*cert.exact_pivot, Fraction(0))}
    name = str(rng.choice(NUMBERS))
    old = getattr(cert, name)
    return {name: (1.0 if old is None else old or 1e-3) * float(rng.choice(FACTORS))}


def contradicted(
    f: Drawn, cert: Any, points: list[list[Fraction]], feasible: Any, error: Fraction = Fraction(0)
) -> str:
    """Return what is wrong with a claim, as far as some points show it; values have an error."""
    x, y = [Fraction(v) for v in cert.x.tolist()], list(cert.exact_pivot)
    here, pivot = f.exact(x), f.exact(y)
    for z in filter(feasible, points):
        value, far = f.exact(z), sum((a - b) ** 2 for a, b in zip(z, x))
        inside = math.isinf(cert.radius) or far <= Fraction(cert.radius) ** 2
        value += 2 * error
        if inside and value < here - Fraction(cert.gap):
            return f"f is lower than the gap says at {list(map(float, z))}"
        beyond = cert.within is not None and far > Fraction(cert.within) ** 2
        if inside and beyond and value < pivot:
            return f"f is lower than at the pivot at {list(map(float, z))}"
        if cert.global_gap is not None and value < here - Fraction(cert.global_gap):
            return f"f is lower than cases say at {list(map(float, z))}"
    if cert.penalties is None and cert.convexity is not None:
        least = cert.convexity - 1e-9 * bool(error)
        less = SimpleNamespace(convexity=least, scope=cert.scope, reach=cert.reach)
        return "f is less convex" if bent_wrongly(f, points, y, less) else ""
    return ""


def minimum_forgeries(rng: Rng, seen: Seen) -> None:
    d = int(rng.integers(1, 4))
    x, ridge = gs.Variable(d), Fraction(int(rng.integers(1, 9)), 4)
    f = Drawn(ridge_of(x, ridge), lambda z: ridge / 2 * sum(q * q for q in z))
    cases = rng.random() < 0.3
    if cases:  # a sum of kinks, all that a tree of cases is about
        f = with_kinks(rng, f, x, d)
    else:
        bare, bowl = draw(rng, x, d, int(rng.integers(1, 4))), f
        f = bare
        if rng.random() < 0.5:  # grows everywhere: claims about all points
            f = Drawn(bare.expression + bowl.expression, lambda z: bare.exact(z) + bowl.exact(z))
    if not isinstance(f.expression, gs.Expression):
        seen.silent("a constant")
        return
    y = start(rng, f, d)
    at, limits = np.array([float(v) for v in y]), dict[str, Any]()
    high = rng.integers(2, 5, d).astype(float)
    if rng.random() < 0.3:
        row, level = rng.integers(-2, 3, d).astype(float), int(rng.integers(-1, 4))
        y = [min(max(q, -Fraction(h)), Fraction(h)) for q, h in zip(y, high.tolist())]
        at = np.array([float(v) for v in y])
        limits = {"bounds": list(zip(-high, high)), "constraints": [gs.sum(row * x) <= level]}

    def feasible(z: list[Fraction]) -> bool:
        if not limits:
            return True
        inside = all(abs(q) <= Fraction(h) for q, h in zip(z, high.tolist()))
        return inside and sum(Fraction(a) * q for a, q in zip(row.tolist(), z)) <= level

    try:
        program, problem = f.expression.program(), limits_of(at, **limits) if limits else None
        radius = float(rng.choice([0.25, 1.0, 3.0]))
        cert = with_gap(program, at, y, radius, problem)
        if rng.random() < 0.25:  # that takes longest
            cert = prove_minimum(program, at, y, problem=problem) or cert
        kinks = any(any(getattr(n, "jumps", [1])) for n in program.nodes if isinstance(n, Kinked))
        if cert is not None and kinks and not limits and (cases or rng.random() < 0.2):
            cert, _ = with_cases(program, cert, int(rng.choice([3, 20])))
        denied = refuted(program, at, y, 0.0, problem=problem) if cert is None else None
    except gs.GoldsteinError:
        cert, denied = None, None
    if denied is not None:
        lower(rng, seen, f, denied, limits, feasible)
    if cert is None:
        seen.silent()
        return
    put(rng, seen, f, cert, y, limits, feasible)


def put(
    rng: Rng,
    seen: Seen,
    f: Drawn,
    cert: Any,
    y: list[Fraction],
    limits: dict[str, Any],
    feasible: Any,
    error: Fraction = Fraction(0),
    own: bool = True,
) -> None:
    """Put a claim to the library, and some forgeries of it; its `own` claims must verify."""
    points = attacks(rng, f, y, min(cert.radius, cert.reach), 12) + attacks(rng, f, y, 8.0, 12)
    points += [[Fraction(int(v), 2) for v in rng.integers(-6, 7, len(y))] for _ in range(12)]
    claims = [(cert, "honest")]
    for _ in range(4):
        fields = _changed(rng, cert)
        fields |= _changed(rng, cert) if rng.random() < 0.3 else {}
        claims.append((forged(cert, **fields), str(fields)))
    for claim, said in claims:
        if claim is None:
            seen.silent()
            continue
        ok, label = verdict(claim, f.expression, **limits)
        wrong = contradicted(f, claim, points, feasible, error) if ok else ""
        stated = own and said == "honest"
        seen.claim(ok, label, False if wrong else None, f"{said}: {wrong}", own=stated)


def _elsewhere(rng: Rng, cert: Any) -> dict[str, Any]:
    """Draw another content of one field of a refutation."""
    name = str(rng.choice(["fall", "slope", "point", "direction", "x", "exact_pivot", "label"]))
    if name in ("fall", "slope"):
        old = getattr(cert, name)
        factor = float(rng.choice([0.99, 1.01, 2.0, -1.0, math.nan]))
        return {name: float(rng.choice([-1.0, 1e-3])) if old is None else old * factor}
    if name == "label":
        return {name: str(rng.choice(["certified", "refuted", "estimated"]))}
    if name == "exact_pivot":
        step = Fraction(1, 2 ** int(rng.integers(0, 60)))
        pivot = tuple(q + step for q in cert.exact_pivot)
        return {name: pivot if rng.random() < 0.7 else (*pivot, step)}
    return {name: changed(name, getattr(cert, name), rng)}


def lower(
    rng: Rng,
    seen: Seen,
    f: Drawn,
    cert: Any,
    limits: dict[str, Any],
    feasible: Any,
    error: Fraction = Fraction(0),
) -> None:
    """Refutations: their falls and slopes, and points that are not feasible or not lower."""
    for fields in ({}, _elsewhere(rng, cert), _elsewhere(rng, cert)):
        claim = forged(cert, **fields) if fields else cert
        if claim is None:
            continue
        ok, label = verdict(claim, f.expression, **limits)
        if not ok:
            seen.claim(ok, label, None, f"{fields}", own=not fields)
            continue
        here, there = ([Fraction(v) for v in z.tolist()] for z in (claim.x, claim.point))
        fall = f.exact(here) - f.exact(there) + 2 * error
        true = fall >= Fraction(claim.fall) > 0 and feasible(there)
        if claim.slope is not None:  # f is lower right beside the pivot
            way = [Fraction(v) for v in claim.direction.tolist()]
            t, y = Fraction(1, 2**60) / max(1, *map(abs, way)), claim.exact_pivot
            beside = f.exact([a + t * v for a, v in zip(y, way)]) - f.exact(list(y))
            true = true and beside < t * Fraction(claim.slope) / 2 + 2 * error
        about = float(max(min(fall, Fraction(10) ** 300), -(Fraction(10) ** 300)))
        said = f"{fields}: f falls by {about!r}, claimed {claim.fall!r}"
        seen.claim(ok, label, bool(true), said, own=not fields)


ATTACK = Attack(
    "minimum-forgeries",
    "claims about minima, and refutations, of random expressions, with fields changed",
    weight=6,
    one=minimum_forgeries,
)
