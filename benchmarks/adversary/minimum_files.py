"""Proof files of minima, honest and forged, attacked by a search for lower points.

A random function, in every fourth file one whose substitutes are sharp or cost something, in every
third bounds, constraints and penalties; random supports at some kinks, some of them wrong on
purpose; the numbers of the claim are what `goldstein-check` itself derives of them, just so, or a
little too good. What is true is found by looking: along axes, at
random points of the ball, in decimals of some digits (`exact_oracle`). A claim that such a point
contradicts must not be TRUE.
"""

from __future__ import annotations

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
    Truth,
    Undecided,
    decimal,
    rational,
    rationals,
)
from benchmarks.adversary.limit_files import limits, place, texts
from benchmarks.adversary.proof_files import ABS, Program, ProofFile, op, rows, variable, written

import goldstein_check as own

#: Points of the ball that are looked at.
LOOKS = 60


def random_minimum(seed: int) -> Document:
    """A random function and supports; the numbers are not yet what they show."""
    rng = random.Random(seed)
    pivot = [
        Fraction(rng.randint(-1, 1), rng.choice([1, 1, 2])) for _ in range(rng.choice([1, 2, 2, 3]))
    ]
    program = Program(rng, pivot, True)
    plain = [program.forms, program.forms, program.matrix, program.total, program.product]
    plain += [program.kink] * 3 + [program.largest, program.norm, program.smooth]
    for _ in range(rng.randint(1, 5)):
        rng.choice(plain if rng.random() < 0.9 else program.steps)()
    nodes = program.finished()
    if rng.random() < 0.6:  # something that grows
        last = len(nodes)
        square = {"breakpoints": [], "pieces": [["0", "0", rng.choice(["1", "3", "1/2"])]]}
        total = {
            "op": "affine",
            "of": [last],
            "columns": 1,
            "width": len(pivot),
            "at": [list(range(len(pivot)))],
        }
        nodes += [
            {"op": "piecewise", "of": [0], **square},
            total,
            {"op": "add", "of": [last - 1, last + 1]},
        ]
    reach = rng.choice([Fraction(1, 8), Fraction(1, 2), Fraction(1), Fraction(2), None])
    evidence: Document = {
        "pivot": texts(rng, pivot), "reach": None if reach is None else written(rng, reach),
        "growth": "0", "convexity": None, "supports": [], "sharp": [],
    }  # fmt: skip
    claim = {
        "kind": "minimum", "eps": "0", "delta": "0", "gap": "0", "within": None, "strict": False,
        "unique": False, "scope": "global" if reach is None else "ball",
        "radius": None if reach is None else written(rng, reach),
    }  # fmt: skip
    return {
        "schema": "goldstein-proof", "version": 2, "claim": claim, "x": texts(rng, pivot),
        "function": nodes, "evidence": evidence,
    }  # fmt: skip


def held_minimum(seed: int) -> Document:
    """Norms, ramps, and kinks of what bends, around 0: substitutes that are sharp, or cost."""
    rng = random.Random(seed)
    pivot = [
        Fraction(rng.choice([0, 0, 0, 1, -1]), rng.choice([4, 64]))
        for _ in range(rng.choice([1, 2]))
    ]
    nodes, ends, supports, sharp = [variable(len(pivot))], list[int](), list[Any](), list[Any]()
    for _ in range(rng.randint(1, 3)):
        what, k = rng.choice(["norm", "bent", "ramp", "pair"]), len(nodes)
        lines = [[rng.choice(["1", "0", "-1", "2", "1/3"]) for _ in pivot] for _ in range(2)]
        nodes.append(rows(0, *map(" ".join, lines[: 1 + (what in ("norm", "pair"))])))
        entry, sigma, bend = {"row": 0}, rng.choice(["1/2", "1/2", "1/4", "3/2"]), "0"
        if what == "norm":
            weights = rng.choice(
                [["0", "0"], ["1/2", "0"], ["3/10", "4/10"], ["3/5", "4/5"], ["0"]]
            )
            nodes.append(op("norm2", k, columns=2))
            parts = [{"place": i, "s": w} for i, w in enumerate(weights)]
        else:
            parts = [{"place": 0, "t": "0", "s": rng.choice(["0", "0", "1/2", "-1/2"]), "p": "0"}]
            if what in ("bent", "pair"):
                by = rng.choice(["1/2", "-1/4", "1"])
                size = sum((rational(a) ** 2 for a in lines[0]), Fraction(0))
                bend = rng.choice(["8", written(rng, 2 * abs(rational(by)) * size)])
                nodes.append(op("piecewise", k, breakpoints=[], pieces=[["0", "1", by]]))
            shape = RAMP if what == "ramp" else ABS
            if what == "pair":
                parts = [{"place": i, "s": "1/2"} for i in (0, 1)]
                nodes.append(op("max", len(nodes) - 1, columns=2))
            else:
                nodes.append(op("piecewise", len(nodes) - 1, **shape))
        ends.append(len(nodes) - 1)
        supports += [{"node": ends[-1]} | entry | part for part in parts]
        if rng.random() < 0.7:
            one, other = rng.choice([(0, 1), (1, 0)]) if what in ("norm", "pair") else (0, 0)
            stated = {"one": one, "other": other, "sigma": sigma, "bend": bend}
            sharp.append({"node": ends[-1]} | entry | stated)
    square = {"breakpoints": [], "pieces": [["0", "0", rng.choice(["0", "1/8", "1/2", "2"])]]}
    nodes += [op("piecewise", 0, **square), rows(len(nodes), " ".join(["1"] * len(pivot)))]
    nodes.append(op("add", *ends, len(nodes) - 1))
    reach = rng.choice(["1/8", "1/2", "1", "2"])
    evidence = {"pivot": texts(rng, pivot), "reach": reach, "growth": "0", "convexity": None,
                "supports": supports, "sharp": sharp}  # fmt: skip
    claim = {"kind": "minimum", "eps": "0", "delta": "0", "gap": "0", "within": None,
             "strict": False, "unique": False, "scope": "ball", "radius": reach}  # fmt: skip
    return {"schema": "goldstein-proof", "version": 2, "claim": claim, "x": texts(rng, pivot),
            "function": nodes, "evidence": evidence}  # fmt: skip


def give_limits(rng: random.Random, document: Document) -> None:
    """Bounds and constraints around the pivot, and penalties of some; x may violate them."""
    pivot = rationals(document["evidence"]["pivot"])
    limits(rng, document, pivot)
    count = len(document.get("constraints", [])) + len(pivot)
    weights = [rng.choice(["0", "1/2", "1", "2", "8"]) for _ in range(count)]
    if rng.random() < 0.05:
        weights[0] = "-1"
    document["evidence"]["penalties"] = weights
    document["claim"]["violation"] = rng.choice(["0", "0", "0", "1"])


def give_supports(rng: random.Random, document: Document, nodes: list[Any]) -> None:
    """Hold some kinks; most of the numbers are right."""
    y = rationals(document["evidence"]["pivot"])
    at = own.Pass(nodes, y, Fraction(0), {}).values
    supports, sharp = document["evidence"]["supports"], document["evidence"]["sharp"]
    for k, node in enumerate(nodes):
        if node.op not in ("piecewise", "max", "norm2") or rng.random() < 0.4:
            continue
        for row in range(node.size):
            places = range(row * node.columns, (row + 1) * node.columns)
            entry = {"node": k, "row": row}
            if node.op == "piecewise":
                value = at[node.of[0]][row]
                ends = node.ends
                t = rng.choice([*ends, value[0]]) if own.finite(value[0]) else Fraction(0)
                steep = node.tables[1]
                sides = [steep[sum(b < t for b in ends)], steep[sum(b <= t for b in ends)]]
                slopes = [sum(c * t**j for j, c in enumerate(p)) for p in sides]
                s = rng.choice([slopes[0], slopes[1], sum(slopes) / 2, sum(slopes) / 2])
                s += rng.choice([0, 0, 0, 0, 0, Fraction(1, 2**40)])
                p = rng.choice([0, 0, -1, 2, -4])
                more = {"place": row, "s": written(rng, s), "t": written(rng, t), "p": str(p)}
                supports.append(entry | more)
                if rng.random() < 0.3:
                    sigma = abs(slopes[1] - slopes[0]) / rng.choice([2, 2, 4])
                    sharp.append(
                        entry
                        | {
                            "one": row,
                            "other": row,
                            "sigma": written(rng, sigma),
                            "bend": str(rng.choice([0, 2, 8])),
                        }
                    )
            else:
                parts = [rng.randint(0, 3) for _ in places]
                total = sum(parts) or 1
                for i, part in zip(places, parts):
                    weight = Fraction(part, total) + rng.choice(
                        [0, 0, 0, 0, 0, 0, 0, Fraction(1, 2**60)]
                    )
                    supports.append(entry | {"place": i, "s": written(rng, weight)})
                if rng.random() < 0.3 and len(places) > 1:
                    one, other = rng.sample(list(places), 2)
                    sigma = min(
                        Fraction(parts[one - places.start], total),
                        Fraction(parts[other - places.start], total),
                    )
                    sharp.append(
                        entry
                        | {
                            "one": one,
                            "other": other,
                            "sigma": written(rng, sigma * rng.choice([1, Fraction(1, 2)])),
                            "bend": str(rng.choice([0, 2, 8])),
                        }
                    )


def derived(document: Document, folder: Any) -> tuple[Any, Any] | None:
    """Return claim and function as the checker reads them."""
    path = folder / "file.json"
    path.write_text(json.dumps(document))
    own.spent[0], own.Room.kept = 0, 0
    try:
        claim, nodes = own.read(path)
    except own.Unreadable:
        return None
    return claim, claim.get("program", nodes)


RAMP = {"breakpoints": ["-1", "0", "1"], "pieces": [["1"], ["0", "-1"], ["0", "1"], ["1"]]}

GROWTHS = [Fraction(q) for q in ("8", "6", "2", "1", "1/2", "1/8", "0", "-1/4", "-1", "-4", "-32")]


def fill(rng: random.Random, document: Document, folder: Any) -> bool:
    """State what the evidence shows; return False where it shows nothing."""
    read = derived(document, folder)
    if read is None:
        return False
    claim, nodes = read
    y, r = rationals(document["evidence"]["pivot"]), claim["reach"]
    everywhere, box, flat, fails = not own.finite(r), None, True, list[str]()
    place(document, y, fails)
    if "bounds" in fails:
        return False
    if "penalties" in claim:
        box = [own.Span(*ends) for ends in zip(claim["lower"], claim["upper"])]
        flat = all(part["function"][-1].affine for part in claim["constraints"])
    try:
        total, loss, eps = own.minorant(nodes, y, r, claim["held"], box)
        if not own.finite(eps) or not own.finite(loss):
            return False
        growth = next((g for g in GROWTHS if total.at_least(g)), None)
        if growth is None or (everywhere and (growth < 0 or (growth == 0 and eps))):
            return False
        plain, _ = own.Pass(nodes, y, r, {}, box=box).backward(
            len(nodes) - 1, [own.point(Fraction(1))]
        )
        convex = next((g for g in GROWTHS[:7] if plain.at_least(g)), None)
    except own.Refused:
        return False
    eps += (eps > 0) * (1 + eps) / 10**40  # roots are enclosed
    if growth > 0 and own.times(growth, r) > eps:
        gap = loss + eps * eps / (2 * growth)
    else:
        gap = loss + (eps * r - growth * r * r / 2 if not everywhere else 0)
    gap += (gap + 1) / 10**40
    document["claim"] |= {"eps": written(rng, eps), "gap": written(rng, gap)}
    document["evidence"]["growth"] = written(rng, growth)
    if growth > 0 and not fails:
        far = (eps + own.root(eps * eps + 2 * growth * loss, True)) / growth
        if far < r:
            document["claim"] |= {"strict": True, "within": written(rng, far + (1 + far) / 10**40)}
    if convex is not None and rng.random() < 0.5:
        document["evidence"]["convexity"] = written(rng, convex)
        document["claim"]["unique"] = bool(document["claim"]["strict"] and convex > 0 and flat)
        if document["claim"]["strict"] and rng.random() < 0.5:
            document["claim"] |= {"scope": "global", "radius": None}
    return True


def refuted(document: Document, rng: random.Random) -> str:
    """Look for points of the scope that contradict the claim; return what was found."""
    function, claim = Function(document["function"]), document["claim"]
    x = rationals(document["x"])
    radius = Fraction(4) if claim["radius"] is None else rational(claim["radius"])
    scales = [
        1,
        1,
        Fraction(1, 2),
        Fraction(1, 8),
        Fraction(1, 64),
        *([16, 256] if claim["radius"] is None else []),
    ]
    gap, within = rational(claim["gap"]), claim["within"]
    with localcontext(prec=60):
        sides = ByValue(Decimal(10) ** -50)

        def f(z: list[Fraction]) -> Decimal:
            return function.jets([decimal(q) for q in z], sides).value

        here, tiny = f(x), Decimal(10) ** -35
        lowest, where = here, x
        for n in range(LOOKS):
            axis = [int(k == n // 2 % len(x)) * (1 - 2 * (n % 2)) for k in range(len(x))]
            h = (
                [Fraction(a) for a in axis]
                if n < 2 * len(x)
                else [Fraction(rng.randint(-9, 9)) for _ in x]
            )
            norm = own.root(sum((a * a for a in h), Fraction(0)) or Fraction(1), True)
            z = [a + rng.choice(scales) * radius * b / norm for a, b in zip(x, h)]
            fails = list[str]()
            place(document, z, fails)
            if fails:
                continue
            value = f(z)
            if value < here - decimal(gap) - tiny * (1 + abs(here)):
                return f"f is lower by {here - value} at {[str(q) for q in z]}"
            if value < lowest:
                lowest, where = value, z
        if claim["strict"] and lowest < here - tiny * (1 + abs(here)):
            far = sum((a - b) ** 2 for a, b in zip(where, x))
            if far > rational(within) ** 2 and lowest < here - decimal(gap):
                return "a lower point is farther than any minimiser"
    return ""


def files(seed: int, folder: Any) -> Iterator[ProofFile]:
    """Claims just as good as the evidence, and too good ones."""
    held = seed % 4 == 1
    document = held_minimum(seed) if held else random_minimum(seed)
    rng = random.Random(-seed - 1)
    read = derived(document, folder)
    if read is None:
        return
    try:
        if seed % 3 == 0:
            give_limits(rng, document)
            read = derived(document, folder) or read
        if not held:
            give_supports(rng, document, read[1])
        shows = fill(rng, document, folder)
        wrong = refuted(document, rng) if shows else ""
    except (own.Refused, own.Unreadable, Undecided, InvalidOperation):
        shows, wrong = False, ""
    evidence = "fails" if wrong else "open"
    yield ProofFile(json.dumps(document), "minimum", Truth(evidence, wrong, false=bool(wrong)))
    if shows:
        names = ["gap", "eps", "within", "growth", "strict", "unique"]
        limited = "penalties" in document["evidence"]
        name = rng.choice([*names, *["violation", "penalties", "bounds"] * limited])
        forged = json.loads(json.dumps(document))
        if name in ("violation", "penalties", "bounds"):
            if name == "violation":
                forged["claim"][name] = rng.choice(["-1", "0", None, "1/3"])
            elif name == "penalties":
                weights = forged["evidence"][name]
                weights[rng.randrange(len(weights))] = rng.choice(["-1", "0", "3", None])
            else:
                forged["bounds"] = {
                    side: [rng.choice(["0", None, "-1", "1"]) for _ in forged["x"]]
                    for side in ("lower", "upper")
                }
            truth = Truth("open", f"another {name}")
        elif name in ("strict", "unique"):
            if forged["claim"][name]:
                return
            forged["claim"] |= {name: True, "within": forged["claim"]["within"] or "1"}
            truth = Truth("open", "another flag")
        else:
            part = forged["evidence" if name == "growth" else "claim"]
            stated = None if part[name] is None else rational(part[name])
            if stated is None or (stated * 10**20 <= 1 and name != "growth"):
                return
            step = max(abs(stated), Fraction(1)) / 10**9
            part[name] = written(rng, stated + (1000 if name == "growth" else -min(step, stated)))
            truth = Truth("open" if name == "growth" else "fails", f"{name} too good")
        if limited and truth.evidence == "open":
            try:
                wrong = refuted(forged, rng)
            except (ValueError, TypeError, AttributeError, Undecided, InvalidOperation):
                wrong = ""
            truth = Truth("fails" if wrong else "open", wrong or truth.reason, false=bool(wrong))
        yield ProofFile(json.dumps(forged), f"minimum, {name} forged", truth)
