"""Proof files of minima by trees of cases, honest and forged, and a search for lower points.

A random function f = r + sum b phi(u) of kinks phi of affine u (some are not of that form, on
purpose); a tree that a crude branch and bound finds, its bound about as good as it can be stated;
and forgeries of every field of it. What is true is found by looking, as in `minimum_files`.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterator
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
from benchmarks.adversary.limit_files import texts
from benchmarks.adversary.minimum_files import derived, fill
from benchmarks.adversary.proof_files import ProofFile, op, variable, written
from benchmarks.differential import NotWritten, program_of

import goldstein_check as own
from goldstein.checker.minimum.cases import Cases
from goldstein.construction.cases import Tree, _preorder
from goldstein.errors import GoldsteinError

Row = list[Fraction]

#: Cases of a tree, at most, of both searches, and gaps that are tried for it.
MOST, FEW = 24, 6
GAPS = [Fraction(q) for q in ("1/1024", "1/32", "1/2", "8")]


# --- functions ------------------------------------------------------------------------------------


def random_pieces(rng: random.Random, degree: int) -> Document:
    """A continuous function of up to three kinks."""
    ends = sorted(rng.sample([Fraction(k, 2) for k in range(-3, 4)], rng.choice([1, 2, 2, 3])))
    pieces: list[Row] = []
    for i, t in enumerate([ends[0], *ends]):
        row = [Fraction(0), Fraction(rng.randint(-2, 2), rng.choice([1, 1, 2, 3]))]
        if 0 < i < len(ends) and rng.random() < 0.4:
            row += [Fraction(0)] * (degree - 2) + [Fraction(rng.choice([-1, 1, 1, 2]), 2)]
        if i == len(ends) > 1 and rng.random() < 0.7:  # lines below and above, everywhere
            row = pieces[0][:2]
        if i:
            row[0] = own.value_in(pieces[-1], t) - own.value_in(row, t)
        pieces.append(row)
    return {
        "breakpoints": [str(t) for t in ends],
        "pieces": [[str(c) for c in row] for row in pieces],
    }


def random_function(rng: random.Random) -> tuple[list[Document], Fraction]:
    """Return nodes, and what their smooth part grows with."""
    d, curvature = rng.choice([1, 1, 2]), Fraction(rng.choice(["1/4", "1/2", "1"]))

    def forms(of: int, count: int) -> Document:
        table = [[str(rng.choice([-2, -1, 0, 1, 1])) for _ in range(d)] for _ in range(count)]
        offset = [str(Fraction(rng.randint(-3, 3), 2)) for _ in range(count)]
        return op("affine", of, columns=1, width=d, rows=table, offset=offset)

    nodes, ends = [variable(d)], list[int]()

    def weighed(of: int, size: int, least: int, end: int = 5) -> None:
        row = [[str(Fraction(rng.choice([k for k in range(least, end) if k]), rng.choice([1, 2])))
                for _ in range(size)]]  # fmt: skip
        nodes.append(op("affine", of, columns=1, width=size, rows=row))
        ends.append(len(nodes) - 1)

    shapes = [
        {"breakpoints": [], "pieces": [["0", str(rng.randint(-1, 1)), str(curvature / 2)]]},
        {"breakpoints": ["0"], "pieces": [["0", "0", str(curvature / 2)]] * 2},
    ]
    nodes.append(op("piecewise", 0, **rng.choice(shapes)))
    nodes.append(op("affine", 1, columns=1, width=d, at=[list(range(d))]))
    ends.append(2)
    for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 2])):  # groups of kinks
        size = rng.choice([1, 1, 2])
        nodes.append(forms(0, size))
        pieces = random_pieces(rng, 3 if rng.random() < 0.05 else 2)
        nodes.append(op("piecewise", len(nodes) - 1, **pieces))
        first, last = (rational(pieces["pieces"][k][1]) for k in (0, -1))
        signs = (-4, 0) if first > last else (1, 5) if first < last else (-4, 5)
        weighed(len(nodes) - 1, size, *(signs if rng.random() < 0.95 else (-4, 5)))
    odd = rng.random()
    if odd < 0.4:  # convex, or (seldom) not
        size = rng.choice([1, 2, 3])
        nodes.append(forms(0, size))
        name = rng.choice(["logsumexp", "norm2", "max", "log"])
        if name == "log":
            nodes.append(op("multiply", len(nodes) - 1, len(nodes) - 1))
        else:
            nodes.append(op(name, len(nodes) - 1, columns=size))
        weighed(len(nodes) - 1, size if name == "log" else 1, rng.choice([1, 1, 1, -2]))
    elif odd < 0.5:  # kinks of what is not affine, what is not affine of kinks
        nodes.append(op("add", rng.choice(ends), rng.choice(ends)))
        last = len(nodes) - 1
        kink = op("piecewise", last, **random_pieces(rng, 2))
        nodes.append(rng.choice([kink, op("multiply", last, last)]))
        weighed(len(nodes) - 1, 1, 1)
    return [*nodes, op("add", *ends)], curvature


# --- a tree ---------------------------------------------------------------------------------------


def value(nodes: list[Any], z: Row) -> Fraction:
    return own.value_of(nodes, own.exact(z))[1]  # type: ignore[no-any-return]


def low_point(rng: random.Random, nodes: list[Any]) -> Row:
    """Look for a low point in steps that are halved."""
    d, step = nodes[0].size, Fraction(2)
    starts = [[Fraction(rng.randint(-12, 12), 2) for _ in range(d)] for _ in range(16)]
    here, z = min((value(nodes, start), start) for start in starts)
    for _ in range(30):
        ways = itertools.product(range(d), (step, -step))
        others = [[*z[:k], z[k] + h, *z[k + 1 :]] for k, h in ways]
        best = min((value(nodes, other), other) for other in others)
        step = step if best[0] < here else step / 4
        here, z = min((here, z), best)
    return z


class Search:
    """Branch and bound with the lines of goldstein-check."""

    def __init__(self, rng: random.Random, claim: Document, nodes: list[Any], growth: Fraction):
        self.rng, self.nodes, self.growth = rng, nodes, growth
        self.held, self.last = claim["lines"], len(nodes) - 1
        self.lines = [
            (nodes[k].of[0], i, nodes[k], line)
            for k, part in self.held.items() for i, line in part.items()
        ]  # fmt: skip
        run = own.Pass(nodes, [Fraction(0)] * nodes[0].size, own.INF, self.held, only=True)
        run.backward(self.last, [own.point(Fraction(1))])  # the signs of the lines
        self.steep = [own.length(run.slopes[arg][i]) for arg, i, *_ in self.lines]

    def first(self, node: Any, line: Any, u: Any) -> Fraction:
        """Return a slope whose line is on the right side."""
        ends = [q if own.finite(q) else None for q in u]
        outer = [node.tables[1][0][0], node.tables[1][-1][0]]
        if None in ends or ends[0] == ends[1]:
            return Fraction(float(sum(outer) / 2))
        low, high = (own.over_pieces(node, node.tables[0], own.point(q))[0] for q in ends)
        return Fraction(float((high - low) / (ends[1] - ends[0])))

    def look(self, ranges: list[Any], slopes: Row, y: Row) -> Any:
        for (_, i, node, line), s, u in zip(self.lines, slopes, ranges):
            line.lay(node, i, s, u)
        return own.Pass(self.nodes, y, own.ZERO, self.held, only=True)

    def gradient(self, at: Any) -> Any:
        one = [own.point(Fraction(1))]
        return at.backward(self.last, one, slopes_only=True)[1]

    def settled(self, ranges: list[Any]) -> tuple[Row, Row, Any]:
        """Return slopes, a point, and what they show."""
        slopes = [self.first(node, line, u) for (_, _, node, line), u in zip(self.lines, ranges)]
        y = [Fraction(0)] * self.nodes[0].size
        for trial in range(5):
            at = self.look(ranges, slopes, y)
            if trial == 2:  # other slopes of the pieces, where they are better
                for j, (arg, i, node, line) in enumerate(self.lines):
                    u, options = at.values[arg][i].mid(), {}
                    for s in [slopes[j], *(own.value_in(p, u) for p in node.tables[1])]:
                        try:
                            line.lay(node, i, s, ranges[j])
                        except own.Refused:
                            continue
                        options[s] = line.side * (s * u + line.base[0])
                    slopes[j] = Fraction(float(max(options, key=lambda s: options[s])))
                at = self.look(ranges, slopes, y)
            g = self.gradient(at)
            y = [
                Fraction(float(q - g[k].mid() / self.growth / (1 + trial // 3)))
                for k, q in enumerate(y)
            ]
        return slopes, y, self.look(ranges, slopes, y)

    def tree(self, goal: Fraction) -> list[Document] | None:
        """Return cases that show f >= goal, or None."""
        rng, tree = self.rng, list[Document]()
        left: list[Any] = [[own.Span(-own.INF, own.INF)] * len(self.lines)]
        while left:
            if len(tree) == FEW:
                return None
            ranges, rest = left.pop(), None
            slopes = [Fraction(rng.randint(-1, 1)) for _ in self.lines]
            y = [Fraction(rng.randint(-1, 1)) for _ in range(self.nodes[0].size)]
            if ranges is not None and all(lo <= hi for lo, hi in ranges):
                slopes, y, at = self.settled(ranges)
                eps = own.length(self.gradient(at))
                square = eps * eps + 2 * self.growth * (goal - at.values[self.last][0][0])
                if square > 0:
                    far = (eps + own.root(square, True)) / self.growth
                    rest = [
                        u & (at.values[arg][i] + own.Span(-far * b, far * b))
                        for u, b, (arg, i, *_) in zip(ranges, self.steep, self.lines)
                    ]
            case: Document = {"point": texts(rng, y), "slopes": texts(rng, slopes), "parts": 0}
            tree.append(case)
            if rest is None and (not self.lines or rng.random() < 0.97):
                continue
            if rest is None:  # more parts than there have to be
                case["parts"] = rng.choice([1, 2])
            elif not self.lines or not all(u.bounded() for u in ranges):
                case["parts"] = 1
            else:
                case["parts"] = 2
            sides = [own.Span(-own.INF, own.INF)]
            if case["parts"] == 2:
                j, t = self.cut(ranges if rest is None else rest)
                case |= {"entry": j, "t": written(rng, t)}
                sides = [own.Span(t, own.INF), own.Span(-own.INF, t)]
            left += [
                rest and [u & side if k == case.get("entry") else u for k, u in enumerate(rest)]
                for side in sides
            ]
        return tree

    def cut(self, ranges: list[Any] | None) -> tuple[int, Fraction]:
        """Return an entry and where it is split: at a kink inside, or in the middle."""
        places = [(j, u) for j, u in enumerate(ranges or []) if u.bounded() and u[0] < u[1]]
        if not places:
            return 0, Fraction(self.rng.randint(-2, 2), 2)
        kinks = [
            (j, t) for j, u in places for t in self.lines[j][2].ends if u[0] < t < u[1]
        ]  # fmt: skip
        if kinks:
            return self.rng.choice(kinks)
        j, u = max(places, key=lambda place: place[1].radius())
        return j, Fraction(float(u.mid()))


def found_by_the_library(
    rng: random.Random, function: list[Document], goal: Fraction
) -> list[Document] | None:
    """Return cases that its better search finds, for quadratic functions with kinks."""
    try:
        tree = Tree(Cases(program_of(function)), goal)
        root = tree.grow(MOST, math.inf)
    except (GoldsteinError, NotWritten, ValueError, OverflowError):
        return None
    cases = list[Document]()
    for found in [] if tree.heap else _preorder(root):
        entry, t = found.split
        parts = {-1.0: 0, -2.0: 1}.get(entry, 2)
        rows = (texts(rng, row.tolist()) for row in (found.y, found.slopes))
        cases.append(dict(zip(("point", "slopes"), rows)) | {"parts": parts})
        if parts == 2:
            cases[-1] |= {"entry": int(entry), "t": written(rng, Fraction(t))}
    return cases or None


def shown(claim: Document, nodes: list[Any], gap: Fraction) -> bool:
    """Is this gap shown by the tree of a claim?"""
    try:
        own.check_cases(claim | {"global_gap": gap}, nodes)
    except own.Refused:
        return False
    return True


def random_cases(seed: int, folder: Any) -> Document | None:
    """A claim by cases; None where none was found."""
    rng = random.Random(seed)
    function, growth = random_function(rng)
    head: Document = {"schema": "goldstein-proof", "version": 2}
    evidence: Document = {
        "pivot": ["0"], "reach": "1/64", "growth": "0", "convexity": None, "supports": [],
        "sharp": [],
    }  # fmt: skip
    claim: Document = {
        "kind": "minimum", "eps": "0", "delta": "0", "gap": "0", "within": None, "strict": False,
        "unique": False, "scope": "ball", "radius": "1/64",
    }  # fmt: skip
    size = function[0]["size"]
    evidence["pivot"] = ["0"] * size
    document = head | {
        "claim": claim, "x": ["0"] * size, "function": function, "evidence": evidence,
    }  # fmt: skip
    read = derived(document, folder)
    if read is None:
        return None
    nodes, x = read[1], low_point(rng, read[1])
    document["x"] = evidence["pivot"] = texts(rng, x)
    if not fill(rng, document, folder):
        return None
    cases: Document = {"growth": written(rng, growth), "tree": []}
    claim["global_gap"], evidence["cases"] = "0", cases
    read = derived(document, folder)
    if read is None:
        return None
    search, top = Search(rng, read[0], nodes, growth), value(nodes, x)
    for gap in GAPS:
        tree = found_by_the_library(rng, function, top - gap) or search.tree(top - gap)
        if tree is not None:
            break
    cases["tree"] = tree or []
    read = derived(document, folder)
    if tree is None or read is None:
        return None
    if shown(read[0], nodes, gap):  # as good as the tree shows it, about
        less = Fraction(0)
        for _ in range(8):
            middle = (less + gap) / 2
            less, gap = (less, middle) if shown(read[0], nodes, middle) else (middle, gap)
    claim["global_gap"] = written(rng, gap)
    if rng.random() < 0.7:
        most = max(gap, rational(claim["gap"]))
        claim |= {
            "scope": "global", "radius": None, "within": None, "strict": False, "unique": False,
            "gap": written(rng, most),
        }  # fmt: skip
        evidence["convexity"] = None
    return document


# --- forgeries ------------------------------------------------------------------------------------

Forger = Callable[[random.Random, Document, list[Document]], None]


def _gap(rng: random.Random, document: Document, tree: list[Document]) -> None:
    stated = rational(document["claim"]["global_gap"])
    document["claim"]["global_gap"] = str(
        stated * rng.choice([Fraction(1, 2), Fraction(9, 10), -1])
    )


def _growth(rng: random.Random, document: Document, tree: list[Document]) -> None:
    cases = document["evidence"]["cases"]
    factor = rng.choice(["0", "-1", "1048577/1048576", "2", "1/2"])
    cases["growth"] = str(rational(cases["growth"]) * Fraction(factor))


def _missing(rng: random.Random, document: Document, tree: list[Document]) -> None:
    del tree[rng.randrange(len(tree))]


def _more(rng: random.Random, document: Document, tree: list[Document]) -> None:
    tree.insert(rng.randint(0, len(tree)), rng.choice(tree))


def _parts(rng: random.Random, document: Document, tree: list[Document]) -> None:
    case = rng.choice(tree)
    case["parts"] = rng.choice([0, 0, 1, 2, 3, True, "1", None])
    if case["parts"] != 2:
        case.pop("entry", None)
        case.pop("t", None)


def _entry(rng: random.Random, document: Document, tree: list[Document]) -> None:
    case = rng.choice([case for case in tree if case["parts"] == 2] or tree)
    case["entry"] = rng.choice([0, 1, len(case["slopes"]), -1, None, "0"])


def _side(rng: random.Random, document: Document, tree: list[Document]) -> None:
    case = rng.choice([case for case in tree if case["parts"] == 2] or tree)
    case["t"] = rng.choice(["1000", "-1000", "1/3", "0", None])


def _order(rng: random.Random, document: Document, tree: list[Document]) -> None:
    rng.shuffle(tree)


def _numbers(name: str) -> Forger:
    def forge(rng: random.Random, document: Document, tree: list[Document]) -> None:
        case = rng.choice(tree)
        row = case[name]
        if not row or not isinstance(row, list):
            case[name] = rng.choice([["0"], [], None, "0"])
        elif rng.random() < 0.1:
            case[name] = rng.choice([[*row, "0"], row[1:], None, "0"])
        else:
            k = rng.randrange(len(row))
            row[k] = str(rational(row[k]) + Fraction(rng.choice(["1", "-1", "1/64", "40"])))

    return forge


def _claim(rng: random.Random, document: Document, tree: list[Document]) -> None:
    """What cases do not show."""
    claim = document["claim"]
    claim |= rng.choice([
        {"strict": True, "within": "1/128"}, {"within": "1000"}, {"radius": "1", "scope": "global"},
        {"scope": "global", "radius": None, "gap": "0"}, {"unique": True},
        {"global_gap": None}, {"scope": "box"},
    ])  # fmt: skip


def _absent(rng: random.Random, document: Document, tree: list[Document]) -> None:
    if rng.random() < 0.5:
        del document["claim"]["global_gap"]
    if rng.random() < 0.5:
        del document["evidence"]["cases"]
    else:
        rng.choice([document["evidence"]["cases"], rng.choice(tree)]).popitem()


def _elsewhere(rng: random.Random, document: Document, tree: list[Document]) -> None:
    """The same tree for another point."""
    moved = [str(q + Fraction(rng.choice([-1, 1, 3]), 2)) for q in rationals(document["x"])]
    document["x"] = document["evidence"]["pivot"] = moved
    document["evidence"]["growth"], document["claim"]["eps"] = "-64", "1000"
    document["claim"]["gap"] = "1000"


FORGERS: dict[str, Forger] = {
    "a smaller gap": _gap, "growth": _growth, "a case less": _missing, "a case more": _more,
    "parts": _parts, "entry": _entry, "t": _side, "another order": _order,
    "point": _numbers("point"), "slopes": _numbers("slopes"), "another claim": _claim,
    "a field less": _absent, "another x": _elsewhere,
}  # fmt: skip


def lower_point(document: Document, points: list[Row]) -> str:
    """Say where f is lower than the claim has it anywhere, if that is known."""
    try:
        stated = rational(document["claim"]["global_gap"])
        function = Function(document["function"])
        with localcontext(prec=60):
            sides, x = ByValue(Decimal(10) ** -50), rationals(document["x"])
            here = function.jets([decimal(q) for q in x], sides).value
            for z in points:
                there = function.jets([decimal(q) for q in z], sides).value
                if there < here - decimal(stated) - Decimal(10) ** -35 * (1 + abs(here)):
                    return f"f is lower by {here - there} at {[str(q) for q in z]}"
    except (Undecided, InvalidOperation, KeyError, TypeError, ValueError, AttributeError):
        pass
    return ""


def files(seed: int, folder: Any) -> Iterator[ProofFile]:
    """A claim about as good as its tree, and two forged ones."""
    try:
        document = random_cases(seed, folder)
    except (own.Refused, own.Unreadable, Undecided, InvalidOperation, OverflowError):
        return
    if document is None:
        return
    rng = random.Random(-seed - 1)
    tree = document["evidence"]["cases"]["tree"]
    points = [rationals(case["point"]) for case in tree] + [rationals(document["x"])]
    points += [
        [a + Fraction(rng.randint(-32, 32), 16) for a in z] for z in points for _ in range(4)
    ]

    def proof(found: Document, what: str) -> ProofFile:
        wrong = lower_point(found, points)
        truth = Truth("fails" if wrong else "open", wrong, false=bool(wrong))
        return ProofFile(json.dumps(found), what, truth)

    yield proof(document, "cases")
    for name in rng.sample(sorted(FORGERS), 2):
        forged = json.loads(json.dumps(document))
        FORGERS[name](rng, forged, forged["evidence"]["cases"]["tree"])
        yield proof(forged, f"cases, {name} forged")
