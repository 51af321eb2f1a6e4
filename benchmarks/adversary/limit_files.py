"""Proof files with bounds, constraints and terms, honest and forged, and the truth about them.

As `proof_files`, for the other kinds of claims: near-kkt, plus, refutation. Gradients and values
are those of `exact_oracle`; the rest is a few comparisons of rationals, written down anew.
Constraints like to be degenerate: thin cones, |l|, products, forms that are opposite or repeated.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
from typing import Any

from benchmarks.adversary.exact_oracle import (
    ByValue,
    Document,
    Function,
    Oracle,
    Truth,
    Undecided,
    decimal,
    rational,
    rationals,
)
from benchmarks.adversary.proof_files import (
    ABS,
    Program,
    ProofFile,
    op,
    root_above,
    rounded,
    rows,
    variable,
    written,
)

Row = list[Fraction]


def texts(rng: random.Random, values: Any) -> list[Any]:
    return [None if q is None else written(rng, Fraction(q)) for q in values]


def function(rng: random.Random, pivot: Row, steps: int) -> list[Document]:
    """A random function whose kinks like to meet in the pivot."""
    program = Program(rng, pivot, True)
    for _ in range(steps):
        rng.choice(program.steps)()
    return program.finished()


def constraint(rng: random.Random, pivot: Row) -> list[Document]:
    """A function that is 0 in the pivot: a form, a kink of forms, a thin cone, a product."""
    d, name = len(pivot), rng.choice(["form", "form", "kink", "max", "cone", "product", "norm2"])
    count = 2 if name in ("max", "norm2", "product", "cone") else 1
    table = [[Fraction(rng.randint(-2, 2)) for _ in pivot] for _ in range(count)]
    if name == "cone":  # min(-a - K |b|, a/2) <= 0 everywhere
        table = [[Fraction(int(i == k % d)) for i in range(d)] for k in range(2)]
    offset = [-sum(a * y for a, y in zip(row, pivot)) for row in table]
    lines = [" ".join(str(a) for a in row) for row in table]
    nodes = [variable(d), rows(0, *lines, offset=[str(b) for b in offset])]
    if name == "kink":
        left = rng.choice(["-1", "0", "1/2"])
        nodes.append(op("piecewise", 1, breakpoints=["0"], pieces=[["0", left], ["0", "1"]]))
    elif name in ("max", "norm2"):
        nodes.append(op(name, 1, columns=2))
    elif name == "product":
        nodes += [rows(1, "1 0"), rows(1, "0 1"), op("multiply", 2, 3)]
        nodes += [rows(1, f"{rng.choice([0, 1])} 0"), op("add", 4, 5)]
    elif name == "cone":
        wide = rng.choice([1, 30, 900])
        nodes += [rows(1, "0 1"), op("piecewise", 2, **ABS)]
        nodes += [rows(3, str(wide)), rows(1, "1 0"), op("add", 4, 5), rows(1, "-1/2 0")]
        # -min(...) = max(a + K |b|, -a/2): both rows of one table.
        nodes += [rows(6, "1", "0"), rows(7, "0", "1"), op("add", 8, 9), op("max", 10, columns=2)]
        nodes += [rows(11, "-1")]
    return nodes


def random_limits(seed: int) -> Document:
    """A random claim of one of the kinds."""
    rng = random.Random(seed)
    d = rng.choice([1, 2, 2, 3])
    pivot = [Fraction(rng.randint(-1, 1), rng.choice([1, 1, 2])) for _ in range(d)]
    kind = rng.choice(["near-kkt", "near-kkt", "plus", "refutation"])
    claim = {"kind": kind, "eps": "1", "delta": "1"}
    document: Document = {
        "schema": "goldstein-proof", "version": 2, "claim": claim,
        "x": texts(rng, pivot), "function": function(rng, pivot, rng.randint(1, 4)), "evidence": {},
    }  # fmt: skip
    make = {"near-kkt": _kkt, "plus": _plus, "refutation": _refutation}[kind]
    make(rng, document, pivot, d)
    return document


def _vectors(rng: random.Random, count: int, d: int) -> list[Row]:
    return [[Fraction(rng.choice([-2, -1, 0, 1, 1, 3])) for _ in range(d)] for _ in range(count)]


def limits(rng: random.Random, document: Document, pivot: Row) -> None:
    if rng.random() < 0.7:
        low = [
            rng.choice([None, q, q - 1, q - 1, q + 1 if rng.random() < 0.1 else q]) for q in pivot
        ]
        up = [rng.choice([None, q, q + 1, q + 1]) for q in pivot]
        document["bounds"] = {"lower": texts(rng, low), "upper": texts(rng, up)}
    if rng.random() < 0.85:
        pairs = [
            ("0", "0"),
            (None, "0"),
            (None, "0"),
            (None, "0"),
            ("0", None),
            (None, "1"),
            ("-1", "0"),
        ]
        document["constraints"] = [
            dict(zip(("lower", "upper"), rng.choice(pairs)), function=constraint(rng, pivot))
            for _ in range(rng.choice([1, 1, 2, 3]))
        ]


def _kkt(rng: random.Random, document: Document, pivot: Row, d: int) -> None:
    """Mostly what fits: normals at bounds, one sign a constraint, the one of its limit."""
    limits(rng, document, pivot)
    count, parts = rng.choice([1, 2]), document.get("constraints", [])
    honest, used = rng.random() < 0.8, []
    for _ in range(rng.randint(0, 3) if parts else 0):
        i, size = rng.randrange(len(parts)), rng.choice([Fraction(1, 2), 1, 1, 3])
        sign = 1 if parts[i]["upper"] == "0" else -1
        sign = sign if honest else rng.choice([-1, 0, 1])
        way = texts(rng, _vectors(rng, 1, d)[0])
        used.append(
            {"constraint": i, "weight": written(rng, Fraction(sign * size)), "direction": way}
        )
    normal = [rng.choice([0, 0, 1, -1]) for _ in pivot]
    if honest:
        bounds = document.get("bounds", {"lower": [None] * d, "upper": [None] * d})
        at = [[e is not None and rational(e) == q for e, q in zip(bounds[side], pivot)]
              for side in ("lower", "upper")]  # fmt: skip
        normal = [rng.choice([0, int(up), -int(low)]) for low, up in zip(*at)]
    document["evidence"] = {
        "pivot": texts(rng, pivot), "weights": texts(rng, [1] * count), "rows": used,
        "directions": [texts(rng, v) for v in _vectors(rng, count, d)],
        "normal": texts(rng, normal), "separation": texts(rng, _vectors(rng, 1, d)[0]),
    }  # fmt: skip
    document["x"] = texts(rng, [q + rng.choice([0, 0, 0, Fraction(1, 8)]) for q in pivot])


def _plus(rng: random.Random, document: Document, pivot: Row, d: int) -> None:
    points = [
        [q + Fraction(rng.randint(-8, 8), 32) for q in pivot] for _ in range(rng.choice([1, 2]))
    ]
    name = rng.choice(["l1_box", "l1_box", "group_l2", "simplex", "nuclear"])
    term: Document = {"name": name}
    if name == "l1_box":
        term["weight"] = texts(rng, [rng.choice([0, 1, Fraction(1, 2)]) for _ in pivot])
        term["lower"] = texts(rng, [rng.choice([None, q, q - 1]) for q in pivot])
        term["upper"] = texts(rng, [rng.choice([None, q, q + 1]) for q in pivot])
    elif name == "group_l2":
        term["groups"] = rng.choice([[list(range(d))], [[i] for i in range(d)], [[0]]])
        term["weight"] = texts(rng, [rng.choice([1, 2]) for _ in term["groups"]])
    elif name == "nuclear":  # one row, one column, or a table that is not factorised
        m = rng.choice([1, d, 2 if d % 2 == 0 else 1])
        rows = [pivot[i : i + d // m] for i in range(0, d, d // m)]
        sides = rows, [[Fraction(i == j) for j in range(d // m)] for i in range(d // m)]
        if 1 in (m, d // m):
            size = rng.choice([Fraction(1), Fraction(2), Fraction(1, 2)])
            long, one = (
                [[q / size] for q in pivot],
                [[size + rng.choice([0, 0, Fraction(1, 2**40)])]],
            )
            sides = (one, long) if m == 1 else (long, one)
        term |= {"rows": m, "columns": d // m, "weight": written(rng, rng.choice([1, 2, 3]))}
        term |= {
            side: [texts(rng, row) for row in rows] for side, rows in zip(("left", "right"), sides)
        }
    else:
        pivot = [abs(q) for q in pivot]
        document["x"] = texts(rng, pivot)
        points = [[a + Fraction(rng.randint(-8, 8), 32) for a in pivot] for _ in points]
        term["total"] = written(rng, sum(pivot) + rng.choice([0, 0, 0, Fraction(1, 64)]))
    document["term"] = term
    v = [
        rng.choice([Fraction(-1), Fraction(0), Fraction(1), Fraction(1, 2), Fraction(2)])
        for _ in pivot
    ]
    document["evidence"] = {
        "points": [texts(rng, y) for y in points], "weights": texts(rng, [1] * len(points)),
        "subgradient": texts(rng, v),
    }  # fmt: skip
    document["claim"]["delta"] = rng.choice(["1", "1/2", "1/64", "4"])


def _refutation(rng: random.Random, document: Document, pivot: Row, d: int) -> None:
    limits(rng, document, pivot)
    z = [q + Fraction(rng.randint(-4, 4), 4) for q in pivot]
    document["claim"], document["evidence"] = (
        {"kind": "refutation", "fall": "1"},
        {"point": texts(rng, z)},
    )


# --- the truth ------------------------------------------------------------------------------------


def value(nodes: list[Document], y: Row) -> tuple[Decimal, Decimal]:
    """Return f(y), and what counts as 0."""
    f = Function(nodes)
    f.look_at(y)
    oracle = Oracle(f)
    with localcontext(oracle.context):
        return f.jets([decimal(q) for q in y], ByValue(oracle.tiny)).value, Decimal(10) ** -60


def place(document: Document, y: Row, fails: list[str]) -> list[Decimal]:
    """Return values of the constraints; say what does not hold at y."""
    bounds = document.get("bounds", {"lower": [None] * len(y), "upper": [None] * len(y)})
    for q, low, up in zip(y, bounds["lower"], bounds["upper"]):
        if (low is not None and q < rational(low)) or (up is not None and q > rational(up)):
            fails.append("bounds")
    found = []
    for part in document.get("constraints", []):
        c, tiny = value(part["function"], y)
        if part["lower"] is not None and c < decimal(rational(part["lower"])) - tiny:
            fails.append("feasibility")
        if part["upper"] is not None and c > decimal(rational(part["upper"])) + tiny:
            fails.append("feasibility")
        found.append(c)
    return found


def gradient(nodes: list[Document], y: Row, v: Row | None, fails: list[str]) -> list[Fraction]:
    f = Function(nodes)
    f.look_at([*y, *(v or [])])
    limit = Oracle(f).limit(y, v)
    if limit.slope is None:
        fails.append("kink")
        return [Fraction(0)] * f.dim
    return [Fraction(a) for a in limit.slope]


def truth_of(document: Document) -> tuple[list[str], Fraction | None, bool]:
    """Return what fails besides the residual, the residual, and whether that is beyond doubt."""
    fails: list[str] = []
    x, evidence, kind = rationals(document["x"]), document["evidence"], document["claim"]["kind"]
    if kind == "refutation":
        z = rationals(evidence["point"])
        place(document, z, fails)
        (fx, _), (fz, _) = value(document["function"], x), value(document["function"], z)
        return fails, Fraction(fx) - Fraction(fz), True
    delta, sure = rational(document["claim"]["delta"]), True
    if kind == "near-kkt":
        y = rationals(evidence["pivot"])
        ways: list[tuple[Row, Row | None]] = [(y, rationals(v)) for v in evidence["directions"]]
        extra = rationals(evidence["normal"])
        sure = _multipliers(document, y, fails)
        for row in evidence["rows"]:
            nodes = document["constraints"][row["constraint"]]["function"]
            g = gradient(nodes, y, rationals(row["direction"]), fails)
            extra = [a + rational(row["weight"]) * b for a, b in zip(extra, g)]
    else:
        ways = [(rationals(p), None) for p in evidence["points"]]
        extra = rationals(evidence["subgradient"])
    if any(sum((a - b) ** 2 for a, b in zip(x, p)) > delta**2 for p, _ in ways):
        fails.append("distance")
    found = [gradient(document["function"], p, v, fails) for p, v in ways]
    whole = [sum(column) / len(found) + b for column, b in zip(zip(*found), extra)]
    size = root_above(sum(a * a for a in whole))
    if kind == "plus":
        gap, away = _gap(document["term"], x, extra)
        if gap is None or away > delta or (gap and away == delta):
            fails.append("term")
        else:
            size += gap / (delta - away) if gap else 0
    return fails, size, sure


def _multipliers(document: Document, y: Row, fails: list[str]) -> bool:
    """Check signs, activity and the separation; return whether the last one is beyond doubt."""
    bounds = document.get("bounds", {"lower": [None] * len(y), "upper": [None] * len(y)})
    evidence, parts = document["evidence"], document.get("constraints", [])
    values, v, sure = place(document, y, fails), rationals(evidence["separation"]), True
    place({**document, "constraints": []}, rationals(document["x"]), fails)
    normal = rationals(evidence["normal"])
    for q, n, low, up in zip(y, normal, bounds["lower"], bounds["upper"]):
        limit = up if n > 0 else low
        if n and (limit is None or rational(limit) != q):
            fails.append("normal")
    signs = [0] * len(parts)
    for row in evidence["rows"]:
        sign = (rational(row["weight"]) > 0) - (rational(row["weight"]) < 0)
        if sign * signs[row["constraint"]] < 0:
            fails.append("signs")
        signs[row["constraint"]] = sign or signs[row["constraint"]]
    needed = False
    for part, sign, c in zip(parts, signs, values):
        limit = part["upper" if sign > 0 else "lower"]
        if sign and (limit is None or abs(c - decimal(rational(limit))) > Decimal(10) ** -60):
            fails.append("activity")
        line = part["lower"] is not None and part["lower"] == part["upper"]
        affine = all(node["op"] in ("variable", "affine", "add") for node in part["function"])
        needed = needed or bool(sign and not (line and affine))
    for part, sign in zip(parts, signs) if needed else []:
        line = part["lower"] is not None and part["lower"] == part["upper"]
        affine = all(node["op"] in ("variable", "affine", "add") for node in part["function"])
        f = Function(part["function"])
        f.look_at(y)
        oracle = Oracle(f)
        slopes = [sum(Fraction(a) * b for a, b in zip(g, v)) for g in oracle.sampled(y, 12)]
        tiny = Fraction(1, 10**15)
        if sign and not (line and affine):
            if any(sign * s <= tiny for s in slopes):
                fails.append("separation")
            try:
                sure = sure and all(sign * sum(Fraction(a) * b for a, b in zip(g, v)) > tiny
                                    for g in oracle.outer(y))  # fmt: skip
            except Undecided:
                sure = False
        elif line and any(abs(s) > tiny for s in slopes):
            fails.append("separation")
    if needed:
        for n, way, low, up in zip(normal, v, bounds["lower"], bounds["upper"]):
            fixed = low is not None and up is not None and rational(low) == rational(up)
            if n * way < 0 or (way and fixed):
                fails.append("separation")
    return sure


def _contracts(V: list[Row], w: Fraction) -> bool:
    """Is no singular value above w? All principal minors of w^2 I - V'V are >= 0."""
    columns = list(zip(*V))
    gram = [[sum((a * b for a, b in zip(p, q)), Fraction(0)) for q in columns] for p in columns]
    whole = [[w * w * (i == j) - g for j, g in enumerate(row)] for i, row in enumerate(gram)]

    def minor(rows: tuple[int, ...], cols: tuple[int, ...]) -> Fraction:
        if not rows:
            return Fraction(1)
        terms = (
            (-1) ** k * whole[rows[0]][j] * minor(rows[1:], tuple(c for c in cols if c != j))
            for k, j in enumerate(cols)
        )
        return sum(terms, Fraction(0))

    places = range(len(columns))
    sets = itertools.chain.from_iterable(
        itertools.combinations(places, k + 1) for k in range(len(columns))
    )
    return all(minor(keep, keep) >= 0 for keep in sets)


def _gap(term: Document, x: Row, v: Row) -> tuple[Fraction | None, Fraction]:
    """Return h(x) + h*(v) - <v, x>, the conjugate by going through corners; None if infinite."""
    zero = Fraction(0)
    if term["name"] == "simplex":
        missing = rational(term["total"]) - sum(x)
        k = x.index(max(x))
        moved = [a + missing * (i == k) for i, a in enumerate(x)]
        if min(moved) < 0:
            return None, abs(missing)
        top = rational(term["total"]) * max(v)
        return top - sum(a * b for a, b in zip(v, moved)), abs(missing)
    total = zero
    if term["name"] == "nuclear":
        left, right = ([rationals(row) for row in term[side]] for side in ("left", "right"))
        n, w = term["columns"], rational(term["weight"])
        if not _contracts([v[i : i + n] for i in range(0, len(v), n)], w):
            return None, zero
        whole = [sum((a * b for a, b in zip(p, q)), zero) for p in left for q in right]
        miss = sum(((a - b) ** 2 for a, b in zip(x, whole)), zero) * min(len(left), n)
        norms = sum((a * a for row in [*left, *right] for a in row), zero) / 2
        gap = w * (norms + root_above(miss)) - sum(a * b for a, b in zip(v, x))
        return max(gap, zero), zero
    if term["name"] == "l1_box":
        for a, b, w, low, up in zip(x, v, rationals(term["weight"]), term["lower"], term["upper"]):
            ends = [None if e is None else rational(e) for e in (low, up)]
            if (ends[0] is not None and a < ends[0]) or (ends[1] is not None and a > ends[1]):
                return None, zero
            if (ends[1] is None and b > w) or (ends[0] is None and b < -w):
                return None, zero
            corners = [e for e in ends if e is not None]
            inside = all(e is None or (e <= 0 if i == 0 else e >= 0) for i, e in enumerate(ends))
            corners += [zero] if inside else []
            best = max(b * z - w * abs(z) for z in [*corners, a])
            total += w * abs(a) + best - b * a
        return total, zero
    used = set()
    for group, w in zip(term["groups"], rationals(term["weight"])):
        used |= set(group)
        if sum(v[i] ** 2 for i in group) > w * w:
            return None, zero
        length = root_above(sum(x[i] ** 2 for i in group))
        total += w * length - sum(v[i] * x[i] for i in group)
    outside = any(v[i] for i in range(len(x)) if i not in used)
    return (None if outside else max(total, zero)), zero


def files(seed: int) -> Iterator[ProofFile]:
    """Claims at, just above and just below what the evidence shows, of one random document."""
    document, rng = random_limits(seed), random.Random(-seed - 1)
    try:
        fails, shown, sure = truth_of(document)
    except (Undecided, InvalidOperation) as why:
        yield ProofFile(json.dumps(document), document["claim"]["kind"], Truth("open", str(why)))
        return
    kind = document["claim"]["kind"]
    name, better = ("fall", -1) if kind == "refutation" else ("eps", 1)
    for what, step in (("just above", better), ("just below", -better)):
        stated = rounded(shown + step * (abs(shown) + 1) / rng.choice([10**6, 10**18]))
        holds = what == "just above" and (kind != "refutation" or stated > 0)
        evidence = "fails" if fails or not holds else "supports" if sure else "open"
        document["claim"][name] = written(rng, stated)
        reason = ", ".join(sorted(set(fails)))
        yield ProofFile(json.dumps(document), f"{kind} {what}", Truth(evidence, reason, shown))
