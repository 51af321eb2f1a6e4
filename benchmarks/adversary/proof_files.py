"""Proof files, honest, forged and malformed, each with the verdict it must get.

`FORGED` are claims that are false by construction: along every direction the slope is a constant
that is not 0, and a checker that takes an irrational coefficient for 0 finds 0. `KNOWN` are claims
at the edge of what is true. `files(seed)` are those of one random function over every kind of node,
with irrational constants as coefficients, ties at every level, smooth breakpoints, constants on
kinks, rows that are equal or 0, curved arguments, long and short numbers: a claim, the same a
little above and a little below what the evidence shows, and the same damaged. What is true of them
says `exact_oracle`, which shares no code with a checker.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from benchmarks.adversary.exact_oracle import Document, Truth, judge, rational

Node = dict[str, Any]
Pieces = tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class ProofFile:
    """A file, what was done to it, and the truth; None if it is no proof file at all."""

    text: str
    what: str
    truth: Truth | None

    def fault(self, code: int, said: str = "") -> str:
        """Say what is wrong about an exit code; nothing if it may be so."""
        if self.truth is None:
            return "" if code == 2 else "read"
        if code == 0 and self.truth.false:
            return "false TRUE"
        if code == 0 and self.truth.evidence == "fails":
            return "unsupported TRUE"
        if code == 1 and self.truth.evidence == "supports":
            return "another combination" if "combination" in said else "refused"
        return "unread" if code == 2 and self.truth.evidence == "supports" else ""


# --- nodes ----------------------------------------------------------------------------------------


def op(name: str, *of: int, **fields: Any) -> Node:
    return {"op": name, "of": list(of), **fields}


def rows(of: int, *lines: str, **fields: Any) -> Node:
    """A matrix times an earlier node; a row is written as in "1 -2"."""
    entries = [line.split() for line in lines]
    return op("affine", of, columns=1, width=len(entries[0]), rows=entries, **fields)


def variable(size: int) -> Node:
    return {"op": "variable", "size": size}


def constant(of: int, value: str) -> Node:
    return op("piecewise", of, breakpoints=[], pieces=[[value]])


RELU = {"breakpoints": ["0"], "pieces": [["0"], ["0", "1"]]}
ABS = {"breakpoints": ["0"], "pieces": [["0", "-1"], ["0", "1"]]}


def proof(
    function: list[Node], pivot: list[str], directions: list[list[str]], **changes: str
) -> Document:
    """A near claim about the pivot itself, with equal weights."""
    return {
        "schema": "goldstein-proof", "version": 1, "x": pivot,
        "claim": {"kind": "near", "eps": "0", "delta": "0"} | changes,
        "evidence": {"pivot": pivot, "directions": directions, "weights": ["1"] * len(directions)},
        "function": function,
    }  # fmt: skip


# --- forgeries ------------------------------------------------------------------------------------

#: Nodes after the variable (node 0) that make an irrational constant c, by name.
CONSTANTS: dict[str, list[Node]] = {
    "log 2": [constant(0, "2"), op("log", 1)],
    "log(1 + e)": [constant(0, "0"), rows(1, "1", "1", offset=["0", "1"]),
                   op("logsumexp", 2, columns=2)],
    "root 2": [constant(0, "1"), rows(1, "1", "1"), op("norm2", 2, columns=2)],
    "log of a root": [constant(0, "1"), rows(1, "1", "1"), op("norm2", 2, columns=2), op("log", 3)],
    "a root of logs": [constant(0, "2"), op("log", 1), rows(2, "1", "3"),
                       op("norm2", 3, columns=2)],
}  # fmt: skip


def _odd_piecewise(c: int, n: int) -> list[Node]:
    """relu(c w - w^2) - relu(-c w - w^2): its slope is c."""
    return [
        op("multiply", 0, c), op("multiply", 0, 0), rows(n, "1", "-1"), rows(n + 1, "-1", "-1"),
        op("add", n + 2, n + 3), op("piecewise", n + 4, **RELU), rows(n + 5, "1 -1"),
    ]  # fmt: skip


def _odd_line(c: int, n: int) -> list[Node]:
    """relu(c w) - relu(-c w): its slope is c."""
    return [op("multiply", 0, c), rows(n, "1", "-1"), op("piecewise", n + 1, **RELU),
            rows(n + 2, "1 -1")]  # fmt: skip


def _odd_max(c: int, n: int) -> list[Node]:
    """max(c w - w^2, -c w) - max(-c w - w^2, c w) + 2 c w: its slope is 2 c."""
    return [
        op("multiply", 0, c), op("multiply", 0, 0), rows(n, "1", "-1", "-1", "1"),
        rows(n + 1, "-1", "0", "-1", "0"), op("add", n + 2, n + 3), op("max", n + 4, columns=2),
        rows(n + 5, "1 -1"), rows(n, "2"), op("add", n + 6, n + 7),
    ]  # fmt: skip


def _odd_norm2(c: int, n: int) -> list[Node]:
    """|(c relu(w), w^2)| - |(c relu(-w), w^2)|: its slope is c."""
    return [
        rows(0, "1", "-1"), op("piecewise", n, **RELU), rows(c, "1", "1"),
        op("multiply", n + 1, n + 2), op("multiply", 0, 0),
        rows(n + 3, "1 0", "0 0", "0 1", "0 0"), rows(n + 4, "0", "1", "0", "1"),
        op("add", n + 5, n + 6), op("norm2", n + 7, columns=2), rows(n + 8, "1 -1"),
    ]  # fmt: skip


def _odd_nested(c: int, n: int) -> list[Node]:
    """relu(relu(c w - w^2) - w^2) - relu(relu(-c w - w^2) - w^2): its slope is c."""
    return [
        *_odd_piecewise(c, n)[:-1], op("add", n + 5, n + 3), op("piecewise", n + 6, **RELU),
        rows(n + 7, "1 -1"),
    ]  # fmt: skip


def _odd_third_order(c: int, n: int) -> list[Node]:
    """|(c relu(w) - w^3, w^2)| - ...: a third coefficient is there to be found, too."""
    cubes = [op("piecewise", 0, breakpoints=[], pieces=[["0", "0", "0", "-1"]])]
    pair = _odd_norm2(c, n)
    return [
        *pair[:8], *cubes, rows(n + 8, "1", "0", "1", "0"), op("add", n + 7, n + 9),
        op("norm2", n + 10, columns=2), rows(n + 11, "1 -1"),
    ]  # fmt: skip


_SHAPES: dict[str, Callable[[int, int], list[Node]]] = {
    "a line": _odd_line,
    "piecewise": _odd_piecewise,
    "max": _odd_max,
    "norm2": _odd_norm2,
    "nested": _odd_nested,
    "third order": _odd_third_order,
}


def _forged() -> Iterator[tuple[str, Document]]:
    ways = [["1"], ["-1"]]
    for shape, nodes in _SHAPES.items():
        for name, made in CONSTANTS.items():
            function = [variable(1), *made, *nodes(len(made), len(made) + 1)]
            yield f"{shape}, {name}", proof(function, ["0"], ways, eps="1/1000000")


#: False claims: every slope around 0 is at least 1/3.
FORGED: dict[str, Document] = dict(_forged())


def _tiny() -> Iterator[tuple[str, Document]]:
    for shape, nodes in _SHAPES.items():
        for sign in ("1", "-1"):
            made = [*TINY, rows(len(TINY), sign)]
            function = [variable(1), *made, *nodes(len(made), len(made) + 1)]
            yield f"{shape}, {sign}", proof(function, ["0"], [["1"], ["-1"]])


#: The root of 2, less its first 384 bits.
TINY: list[Node] = [
    *CONSTANTS["root 2"], rows(3, "1", offset=[f"-{hex(math.isqrt(2 << 768))}/{hex(2**384)}"])
]  # fmt: skip
#: False claims, too: the slope is about 1e-116, of a sign that no enclosure of 384 bits can tell.
FORGED_TINY: dict[str, Document] = dict(_tiny())


# --- claims at the edge ---------------------------------------------------------------------------

#: Longer than enclosures: a little more than 1; next to 0; a slope that no enclosure holds exactly.
ABOVE, SMALL = hex(2**2000 + 1) + "/" + hex(2**2000), "1/" + hex(2**2000)
LONG_SLOPE = hex(2**2000 + 1) + "/" + hex(3**1300)


def _known() -> Iterator[tuple[str, bool, Document]]:
    line = [variable(1), rows(0, LONG_SLOPE)]
    least = rational(LONG_SLOPE) - Fraction(1, 2**5000)
    less = f"{hex(least.numerator)}/{hex(least.denominator)}"
    yield "a long slope", True, proof(line, ["1"], [["1"]], eps=LONG_SLOPE)
    yield "a long slope, less", False, proof(line, ["1"], [["1"]], eps=less)
    wedge = op("piecewise", 0, breakpoints=["1"], pieces=[["1", "-1"], ["-1", "1"]])
    for sign, true in (("-1", True), ("1", False)):  # |w - 1| - w, and |w - 1| + w
        function = [variable(1), wedge, rows(0, sign), op("add", 1, 2)]
        yield f"right of a kink, {sign}", true, proof(function, [ABOVE], [["-1"]], eps="1/2")
    norms = [variable(2), rows(0, "1 0", "0 0", "0 1", "0 0"), op("norm2", 1, columns=2)]
    for sign, true in (("1", True), ("-1", False)):  # |w_1| + |w_2| - w_1 + w_2, or - w_2
        function = [*norms, rows(2, "1 1"), rows(0, f"-1 {sign}"), op("add", 3, 4)]
        place = ["1", "-" + SMALL]
        yield f"a small norm, {sign}", true, proof(function, place, [["0", "1"]], eps="1/2")
    smooth = [variable(1), rows(0, "0", "3000"), op("logsumexp", 1, columns=2), rows(0, "-3000")]
    for eps, true in (("1/1" + "0" * 90, True), ("0", False)):
        function = [*smooth, op("add", 2, 3)]
        yield f"exp(-3000) <= {eps[:5]}", true, proof(function, ["1"], [["1"]], eps=eps)
    power = op("piecewise", 0, breakpoints=[], pieces=[["0"] * 31 + ["1"]])
    high = [variable(1), power, op("multiply", 1, 1), op("piecewise", 2, **RELU), rows(0, "1")]
    yield "degree 62", False, proof([*high, op("add", 3, 4)], ["0"], [["1"]], eps="1/2")
    for name, fields in {"eps": {"eps": "-1"}, "delta": {"delta": "-1", "eps": "9"}}.items():
        yield f"a negative {name}", False, proof(line, ["3"], [["1"]], **fields)
    for weights in (["-1", "2"], ["0", "0"]):
        document = proof(line, ["3"], [["1"], ["-1"]], eps="9")
        document["evidence"]["weights"] = weights
        yield f"weights {' '.join(weights)}", False, document


#: Claims, and whether they are to be believed.
KNOWN: dict[str, tuple[bool, Document]] = {name: (true, made) for name, true, made in _known()}


# --- random programs ------------------------------------------------------------------------------


class Program:
    """A random function whose kinks like to meet in a given point.

    Attributes
    ----------
    nodes : list of dict
    sizes, degrees : list of int
        Of the nodes.
    zero : list of bool
        Nodes that are known to vanish in the point.
    plain : bool
        All numbers are float64 numbers.
    """

    def __init__(self, rng: random.Random, pivot: list[Fraction], plain: bool) -> None:
        self.rng, self.pivot, self.plain = rng, pivot, plain
        self.nodes: list[Node] = [variable(len(pivot))]
        self.sizes, self.degrees, self.zero = [len(pivot)], [1], [not any(pivot)]
        self.steps: list[Callable[[], int]] = [
            self.forms, self.forms, self.matrix, self.total, self.total, self.product, self.product,
            self.kink, self.kink, self.kink, self.kink, self.largest, self.largest, self.largest,
            self.norm, self.norm, self.irrational, self.weighted, self.weighted, self.weighted,
            self.smooth, self.logarithm, self.table,
        ]  # fmt: skip

    def add(self, node: Node, size: int, degree: int, zero: bool = False) -> int:
        self.nodes.append(node)
        self.sizes.append(size)
        self.degrees.append(degree)
        self.zero.append(zero)
        return len(self.nodes) - 1

    def pick(self, most: int = 9) -> int:
        """An earlier node, rather a late one, rather one that vanishes."""
        found = [k for k, degree in enumerate(self.degrees) if degree <= most]
        nothing = [k for k in found if self.zero[k]]
        if nothing and self.rng.random() < 0.7:
            found = nothing
        return self.rng.choice(found[-3:] if self.rng.random() < 0.7 else found)

    def small(self) -> Fraction:
        top = self.rng.choice([-2, -1, -1, 0, 0, 1, 1, 1, 2, 3])
        return Fraction(top, self.rng.choice([1, 1, 1, 1, 2, 4 if self.plain else 3]))

    def entries(self, count: int, size: int) -> list[list[Fraction]]:
        """Rows that are often equal, opposite or 0."""
        table = [[self.small() for _ in range(size)] for _ in range(count)]
        for i in range(1, count):
            if self.rng.random() < 0.3:
                factor = self.rng.choice([1, 1, -1, 0])
                table[i] = [factor * a for a in table[self.rng.randrange(i)]]
        return table

    def linear(self, of: int, table: list[list[Fraction]], offset: list[Fraction]) -> int:
        """A matrix, and an offset if there is one; zeros are left out at times."""
        fields: dict[str, Any] = {}
        if offset:
            fields["offset"] = [written(self.rng, b) for b in offset]
        if self.rng.random() < 0.3:
            fields["at"] = [[k for k, a in enumerate(row) if a] for row in table]
            table = [[a for a in row if a] for row in table]
        if "at" not in fields or any(a != 1 for row in table for a in row):
            fields["rows"] = [[written(self.rng, a) for a in row] for row in table]
        node = op("affine", of, columns=1, width=self.sizes[of], **fields)
        return self.add(node, len(table), self.degrees[of], self.zero[of] and not any(offset))

    def forms(self) -> int:
        """Linear forms that vanish in the point, now and then but for one."""
        table = self.entries(self.rng.randint(1, 3), len(self.pivot))
        beside = [Fraction(self.rng.random() < 0.05) for _ in table]
        values = [sum(a * y for a, y in zip(row, self.pivot)) for row in table]
        at = self.linear(0, table, [b - value for b, value in zip(beside, values)])
        self.zero[at] = not any(beside)
        return at

    def matrix(self) -> int:
        of = self.pick()
        table = self.entries(self.rng.randint(1, 4), self.sizes[of])
        shift = self.rng.random() < 0.3
        return self.linear(of, table, [self.small() for _ in table] if shift else [])

    def table(self) -> int:
        """A matrix times a table of two or three columns."""
        columns, count = self.rng.choice([2, 3]), self.rng.randint(1, 2)
        of = self.resized(self.pick(), 2 * columns)
        lines = [[written(self.rng, a) for a in row] for row in self.entries(count, 2)]
        node = op("affine", of, columns=columns, width=2, rows=lines)
        return self.add(node, count * columns, self.degrees[of], self.zero[of])

    def resized(self, of: int, size: int) -> int:
        """The same node, or some of its entries, perhaps repeated."""
        if self.sizes[of] == size:
            return of
        at = [[self.rng.randrange(self.sizes[of])] for _ in range(size)]
        node = op("affine", of, columns=1, width=self.sizes[of], at=at)
        return self.add(node, size, self.degrees[of], self.zero[of])

    def total(self) -> int:
        a = self.pick()
        others = [self.resized(self.pick(), self.sizes[a]) for _ in range(self.rng.randint(0, 2))]
        of = [a, *others]
        degree, zero = max(self.degrees[k] for k in of), all(self.zero[k] for k in of)
        return self.add(op("add", *of), self.sizes[a], degree, zero)

    def product(self) -> int:
        a = self.pick(4)
        b = a if self.rng.random() < 0.4 else self.resized(self.pick(4), self.sizes[a])
        degree, zero = self.degrees[a] + self.degrees[b], self.zero[a] or self.zero[b]
        return self.add(op("multiply", a, b), self.sizes[a], degree, zero)

    def kink(self, of: int | None = None, some: Sequence[Pieces] = ()) -> int:
        of, (breakpoints, pieces) = of or self.pick(4), self.rng.choice(some or PIECES)
        degree = max(1, max(len(piece) for piece in pieces) - 1) * self.degrees[of]
        rules = pieces[sum(rational(t) < 0 for t in breakpoints)]
        node = op("piecewise", of, breakpoints=breakpoints, pieces=pieces)
        return self.add(node, self.sizes[of], degree, self.zero[of] and rules[0] == "0")

    def by_rows(self, name: str, of: int) -> int:
        columns, count = self.rng.choice([1, 2, 2, 3]), self.rng.randint(1, 2)
        of = self.resized(of, columns * count)
        degree, zero = self.degrees[of] * (1 if name == "max" else 2), self.zero[of]
        return self.add(op(name, of, columns=columns), count, degree, zero and name != "logsumexp")

    def largest(self) -> int:
        return self.by_rows("max", self.pick())

    def norm(self) -> int:
        return self.by_rows("norm2", self.pick(4))

    def smooth(self) -> int:
        return self.by_rows("logsumexp", self.pick(4))

    def logarithm(self) -> int:
        """The logarithm of 1 + u^2, or of 1 + u, which may be negative."""
        of, piece = self.pick(2), self.rng.choice([["1", "0", "1"], ["1", "0", "1"], ["1", "1"]])
        size, degree = self.sizes[of], 2 * self.degrees[of]
        u = self.add(op("piecewise", of, breakpoints=[], pieces=[piece]), size, degree)
        return self.add(op("log", u), size, degree)

    def irrational(self, some: Iterable[list[Node]] = ()) -> int:
        """A constant: a logarithm, a root, at times one that is 0 or next to it."""
        doubtful = DOUBTFUL[: len(DOUBTFUL) - self.plain]
        made = self.rng.choice([*some, *some, *CONSTANTS.values(), *doubtful])
        base = self.resized(0, 1)
        shift, of = len(self.nodes) - 1, base
        for node in made:
            of = node["of"][0] + shift if node["of"][0] else base
            size = len(node["rows"]) if "rows" in node else self.sizes[of] // node.get("columns", 1)
            self.add({**node, "of": [of]}, size, 1)
        return len(self.nodes) - 1

    def weighted(self) -> int:
        """Something times an irrational constant, and some square or product besides."""
        of = self.pick(4)
        c, size = self.resized(self.irrational(), self.sizes[of]), self.sizes[of]
        z = self.add(op("multiply", of, c), size, self.degrees[of], self.zero[of])
        if self.rng.random() < 0.3:
            return z
        square = self.product()
        factor = self.rng.choice([-1, -1, 1, 2])
        table = [[Fraction(0)] * self.sizes[square] for _ in range(size)]
        for row in table:
            row[self.rng.randrange(len(row))] = Fraction(factor)
        other = self.linear(square, table, [])
        degree, zero = self.degrees[other], self.zero[z] and self.zero[other]
        return self.add(op("add", z, other), size, max(degree, self.degrees[z]), zero)

    def contest(self) -> int:
        """A kink of c l - q: the first order and the second may disagree on its side."""
        count = self.rng.choice([1, 2, 2, 3, 4])
        line = self.resized(self.forms(), count)
        if self.rng.random() < 0.3:  # one side of the lines alone
            line = self.add(op("piecewise", line, **RELU), count, 1, self.zero[line])
        c = self.resized(self.irrational(CONSTANTS.values()), count)
        first = self.add(op("multiply", line, c), count, 1, self.zero[line])
        other = self.resized(self.forms(), count)
        square = self.add(op("multiply", other, other), count, 2, self.zero[other])
        factors = [self.rng.choice([-2, -1, -1, 0, 1, 1]) for _ in range(count)]
        table = [[Fraction(factors[i] * (i == k)) for k in range(count)] for i in range(count)]
        second = self.linear(square, table, [])
        zero = self.zero[first] and self.zero[second]
        both = self.add(op("add", first, second), count, 2, zero)
        if self.rng.random() < 0.4:
            return self.kink(both, PIECES[:3])
        return self.by_rows(self.rng.choice(["max", "norm2"]), both)

    def number(self, of: int) -> int:
        """One number of a node."""
        if self.sizes[of] == 1 and self.rng.random() < 0.7:
            return of
        signs = [Fraction(self.rng.choice([-1, 1, 1, 2])) for _ in range(self.sizes[of])]
        return self.linear(of, [signs], [])

    def finished(self) -> list[Node]:
        """Add up one number of some nodes on which no other depends, and drop the rest."""
        if self.rng.random() < 0.5:
            self.rng.choice([self.kink, self.largest, self.norm])()
        used = {k for node in self.nodes[1:] for k in node["of"]}
        ends = [k for k in range(len(self.nodes)) if k not in used]
        some = self.rng.sample(ends, min(len(ends), self.rng.choice([1, 1, 2, 3])))
        parts = [self.number(k) for k in some]
        if self.rng.random() < 0.3:
            parts.append(self.linear(0, self.entries(1, self.sizes[0]), []))
        root = self.add(op("add", *parts), 1, 1) if len(parts) > 1 else parts[0]
        kept, open_ = {0, root}, [root]
        while open_:
            new = set(self.nodes[open_.pop()].get("of", [])) - kept
            kept |= new
            open_ += new
        at = {k: i for i, k in enumerate(sorted(kept))}
        rest = [
            {**self.nodes[k], "of": [at[a] for a in self.nodes[k]["of"]]} for k in sorted(kept)[1:]
        ]
        return [self.nodes[0], *rest]


#: Constants that are 0, or next to it, and cannot be told from 0 by enclosures alone.
DOUBTFUL: list[list[Node]] = [
    [constant(0, "2"), rows(1, "1", "1", "1", offset=["0", "1", "4"]), op("log", 2),
     rows(3, "1 1 -1")],  # log 2 + log 3 - log 6
    [constant(0, "0"), rows(1, "1", "1"), op("norm2", 2, columns=2)],
    [constant(0, "4"), op("norm2", 1, columns=1)],
    TINY,
]  # fmt: skip

#: Breakpoints and pieces: kinks, smooth breakpoints, flat pieces, powers, several breakpoints.
PIECES: list[Pieces] = [
    (["0"], [["0"], ["0", "1"]]),
    (["0"], [["0", "-1"], ["0", "1"]]),
    (["0"], [["0", "1"], ["0"]]),
    (["0"], [["0"], ["0", "0", "1"]]),
    (["0"], [["0", "0", "-1"], ["0", "0", "1"]]),
    (["0"], [["0", "1"], ["0", "1", "-1"]]),
    (["0"], [["0", "1"], ["0", "1"]]),
    (["-1", "1"], [["-1"], ["0", "1"], ["1"]]),
    (["-1", "0", "1"], [["0"], ["1", "1"], ["1", "-1"], ["0"]]),
    (["0", "1"], [["0"], ["0", "2"], ["1", "0", "1"]]),
    (["1/2"], [["1/4"], ["0", "1/2"]]),
    ([], [["0", "0", "1"]]),
    ([], [["0", "-1", "0", "1"]]),
    ([], [["0"]]),
    ([], [["1", "2"]]),
]


def written(rng: random.Random, q: Fraction | int) -> str:
    """A number in one of the ways of proof files."""
    q = Fraction(q)
    long = max(abs(q.numerator), q.denominator) >= 2**50
    if not long and q.denominator & (q.denominator - 1) == 0 and rng.random() < 0.3:
        return float(q).hex().replace(".0p", "p")
    write = hex if long or rng.random() < 0.1 else str
    bottom = f"/{write(q.denominator)}" if q.denominator > 1 or rng.random() < 0.05 else ""
    return f"{write(q.numerator)}{bottom}"


# --- random files ---------------------------------------------------------------------------------


def random_document(seed: int) -> Document:
    """A random function, and a claim about it."""
    rng = random.Random(seed)
    plain, third = (True, 4) if rng.random() < 0.7 else (False, 3)
    pivot = [Fraction(0)] * rng.choice([1, 1, 2, 2, 2, 3])
    if rng.random() < 0.4:
        pivot = [Fraction(rng.randint(-2, 2), rng.choice([1, 1, 2, third])) for _ in pivot]
    program = Program(rng, pivot, plain)
    steps = program.steps if rng.random() < 0.6 else [program.contest] * 2 + [program.kink]
    for _ in range(rng.randint(1, 7 if program.contest not in steps else 4)):
        rng.choice(steps)()
    document = proof(program.finished(), [written(rng, q) for q in pivot], [])
    scale = (
        Fraction(2) ** rng.choice([-1000, -90, 90, 1000]) if rng.random() < 0.04 else Fraction(1)
    )
    if scale != 1:
        stretch(rng, document, scale)
    if rng.random() < 0.03:  # next to a kink, closer than enclosures can tell
        off = scale * Fraction(rng.choice([-1, 1]), 2**1500)
        document["evidence"]["pivot"] = [written(rng, off + rational(a)) for a in document["x"]]
        document["x"] = document["evidence"]["pivot"]
    count = rng.choice([1, 1, 2, 2, 3, 4])
    if rng.random() < 0.85:
        ways = [[rng.choice([-1, -1, 0, 1, 1, 2]) for _ in pivot] for _ in range(count)]
        if rng.random() < 0.4:
            ways = [[rng.randint(-99, 99) for _ in pivot] for _ in range(count)]
        document["evidence"]["directions"] = [[written(rng, a) for a in way] for way in ways]
    else:
        steps = [0, 0, 1, -1, Fraction(3, 8), Fraction(-7, 2**40)]
        points = [[scale * (q + rng.choice(steps)) for q in pivot] for _ in range(count)]
        document["claim"]["kind"] = "goldstein"
        document["evidence"] = {"points": [[written(rng, a) for a in y] for y in points]}
    weights = [rng.choice([1, 1, 1, 2, 3, Fraction(1, third), 0]) for _ in range(count)]
    document["evidence"]["weights"] = [written(rng, a) for a in [weights[0] or 1, *weights[1:]]]
    document["claim"]["eps"] = rng.choice(["0", "0", "1/2", "1", "1/1000000", "0x1p-60"])
    if document["claim"]["kind"] == "goldstein" or rng.random() < 0.3:
        move(rng, document, scale)
    return document


def stretch(rng: random.Random, document: Document, scale: Fraction) -> None:
    """Measure the variable in other units: f(w / scale), about scale * x."""
    function, size = document["function"], document["function"][0]["size"]
    for node in function[1:]:
        node["of"] = [k + 1 for k in node["of"]]
    lines = [[written(rng, 1 / scale)] for _ in range(size)]
    node = op("affine", 0, columns=1, width=size, rows=lines, at=[[k] for k in range(size)])
    document["function"] = [function[0], node, *function[1:]]
    at = [written(rng, scale * rational(a)) for a in document["x"]]
    document["x"] = document["evidence"]["pivot"] = at


def move(rng: random.Random, document: Document, scale: Fraction) -> None:
    """Put x beside the pivot or the points: within delta, just so, or not quite."""
    evidence = document["evidence"]
    points = evidence["points"] if "points" in evidence else [evidence["pivot"]]
    x = [rational(a) + scale * Fraction(rng.choice([0, 3, -4, 1]), 8) for a in document["x"]]
    document["x"] = [written(rng, a) for a in x]
    squares = [sum((a - rational(b)) ** 2 for a, b in zip(x, y)) for y in points]
    far = root_above(max(squares) / scale**2)
    delta = scale * rng.choice([far, far, far + 1, 2 * far, max(far - Fraction(1, 2**90), 0)])
    document["claim"]["delta"] = written(rng, delta)


def root_above(q: Fraction) -> Fraction:
    """A number that is the root, or a little more."""
    top, unit = q.numerator << 240, 1 << 120
    whole = -(-top // q.denominator)
    low = math.isqrt(whole)
    return Fraction(low + (low * low < whole), unit)


def files(seed: int) -> Iterator[ProofFile]:
    """Some proof files of one random function, with the truth about them."""
    document, rng = random_document(seed), random.Random(-seed - 1)
    truth = judge(document, seed)
    yield ProofFile(json.dumps(document), document["claim"]["kind"], truth)
    if truth.shown is not None:
        margin = 2 * (truth.shown / rng.choice([10**9, 10**20]) + truth.margin)
        above = max(truth.shown + margin, Fraction(1, 10**60))  # enclosures end at about 1e-100
        for name, eps in (("just above", above), ("just below", truth.shown - margin)):
            if eps > 0:
                near = Fraction(float(eps))  # at times a float64 number, on the same side
                far = near - truth.shown if eps > truth.shown else truth.shown - near
                eps = near if far > 2 * truth.margin and rng.random() < 0.7 else rounded(eps)
                evidence = "supports" if eps > truth.shown else "fails"
                false = truth.least is not None and truth.least > eps
                document["claim"]["eps"] = float(eps).hex() if eps == near else written(rng, eps)
                text = json.dumps(document)
                yield ProofFile(
                    text, name, Truth(evidence, "combination", truth.shown, false=false)
                )
    name = rng.choice(list(DAMAGE))
    yield ProofFile(damaged(document, name, rng), name, None)


def rounded(q: Fraction) -> Fraction:
    """Keep some hundred digits."""
    unit = 2 ** max(0, 400 - q.numerator.bit_length() + q.denominator.bit_length())
    return Fraction(q.numerator * unit // q.denominator, unit)


# --- damage ---------------------------------------------------------------------------------------


def _put(*path: Any) -> Callable[[Document, random.Random], None]:
    """Replace what is at a place by the last argument."""

    def damage(document: Any, rng: random.Random) -> None:
        *places, last, value = path
        for place in places:
            document = document[place]
        document[last] = value

    return damage


def _node(**fields: Any) -> Callable[[Document, random.Random], None]:
    """Put a node at the end that is not one."""

    def damage(document: Document, rng: random.Random) -> None:
        last = len(document["function"]) - 1
        document["function"].append({"op": "add", "of": [last], **fields})

    return damage


def _vectors(document: Document) -> list[list[str]]:
    evidence = document["evidence"]
    found: list[list[str]] = evidence["directions" if "directions" in evidence else "points"]
    return found


def _drop(document: Document, rng: random.Random) -> None:
    document.pop(rng.choice(sorted(document)))


def _bad_number(document: Document, rng: random.Random) -> None:
    bad = ["", "1.5", "1e9", "nan", "0x", "1/0", "+1", " 1", "0x1p+1101", "0x2p+0", "1/-2", 1, None]
    rng.choice([document["x"], document["evidence"]["weights"], *_vectors(document)])[0] = (
        rng.choice(bad)
    )


JUMP = {"breakpoints": ["0"], "pieces": [["0"], ["1"]]}
#: What makes a file unreadable: changes of the document.
DAMAGE: dict[str, Callable[[Document, random.Random], None]] = {
    "a field less": _drop,
    "a field more": _put("note", "1"),
    "another schema": _put("schema", "goldstein"),
    "another version": _put("version", 3),
    "an unknown kind": _put("claim", "kind", "kkt"),
    "a field more in the claim": _put("claim", "note", "1"),
    "a field more in the evidence": _put("evidence", "note", "1"),
    "a number that is none": _bad_number,
    "x too long": lambda document, rng: document["x"].append("0"),
    "a vector too long": lambda document, rng: rng.choice(_vectors(document)).append("0"),
    "a weight too many": lambda document, rng: document["evidence"]["weights"].append("1"),
    "no function": _put("function", []),
    "no variable": lambda document, rng: document["function"].pop(0),
    "a variable without a size": _put("function", 0, {"op": "variable"}),
    "a variable of size 0": _put("function", 0, "size", 0),
    "a huge variable": _put("function", 0, "size", 2**40),
    "a true size": _put("function", 0, "size", True),
    "an unknown node": _node(op="system"),
    "a later node": _node(of=[10**6]),
    "a negative node": _node(of=[-1]),
    "no arguments": _node(of=[]),
    "a field more in a node": _node(columns=1),
    "one factor": _node(op="multiply"),
    "a second variable": _node(op="variable", of=[], size=1),
    "rows of no length": _node(op="max", columns=0),
    "rows of a wrong length": _node(op="norm2", columns=3),
    "a wide matrix": _node(op="affine", columns=1, width=9, rows=[["1"]]),
    "no rows": _node(op="affine", columns=1, width=1, rows=[]),
    "more rows than places": _node(op="affine", columns=1, width=1, rows=[["1"]], at=[]),
    "a place twice": _node(op="affine", columns=1, width=1, rows=[["1", "1"]], at=[[0, 0]]),
    "a place outside": _node(op="affine", columns=1, width=1, at=[[1]]),
    "a long row": _node(op="affine", columns=1, width=1, rows=[["1", "1"]]),
    "a long offset": _node(op="affine", columns=1, width=1, rows=[["1"]], offset=["1", "1"]),
    "a jump": _node(op="piecewise", **JUMP),
    "a piece too few": _node(op="piecewise", breakpoints=["0"], pieces=[["0"]]),
    "no coefficients": _node(op="piecewise", breakpoints=[], pieces=[[]]),
    "descending": _node(op="piecewise", breakpoints=["1", "0"], pieces=[["0"]] * 3),
    "a high degree": _node(op="piecewise", breakpoints=[], pieces=[["0"] * 33]),
    "a long coefficient": _node(op="piecewise", breakpoints=[], pieces=[["0x" + "f" * 2500]]),
    "two numbers": _node(op="affine", columns=1, width=1, rows=[["1"], ["1"]]),
}
#: The same for the text.
TEXT: dict[str, Callable[[str], str]] = {
    "cut": lambda text: text[: len(text) // 2],
    "a key twice": lambda text: text.replace('"version"', '"version": 1, "version"', 1),
    "a float": lambda text: text.replace('"version": 1', '"version": 1.0', 1),
    "NaN": lambda text: text.replace('"version": 1', '"version": NaN', 1),
    "a long integer": lambda text: text.replace('"version": 1', f'"version": {"1" * 99}', 1),
    "a list": lambda text: f"[{text}]",
    "deep": lambda text: "[" * 10**5,
    "empty": lambda text: "",
}


def damaged(document: Document, name: str, rng: random.Random) -> str:
    """Return a file that is no proof file."""
    broken = copy.deepcopy(document)
    if rng.random() < 0.15:
        return rng.choice(list(TEXT.values()))(json.dumps(broken))
    DAMAGE[name](broken, rng)
    return json.dumps(broken)
