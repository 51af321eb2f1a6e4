"""A second reader of proof files, written from the format page (docs/proof_files.md) alone.

Decides claims of kind "near" about functions of the nodes variable, affine, add, max and piecewise
with pieces of degree at most 1. Its author had not seen a line of the library or of its checkers.
Where the page left a choice, the comment says "choice": goldstein-check was run on small files to
see what it does, its code was not read.
"""

import json
import re
from bisect import bisect_left
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

Vector = list[Fraction]
RATIONAL = re.compile(r"(-?)(0x[0-9a-f]+|[0-9]+)(?:/(0x[0-9a-f]+|[0-9]+))?")
FLOAT = re.compile(r"(-?)0x([01])(?:\.([0-9a-f]+))?p([+-][0-9]{1,4})")  # choice: a signed exponent
OTHER_KINDS = ("goldstein", "near-kkt", "plus", "refutation", "minimum")
OTHER_OPS = ("multiply", "norm2", "logsumexp", "log")


class Outside(Exception):
    """A kind or a node that is not in this fragment."""


class Entry(NamedTuple):  # of a node: value at the pivot, gradient with the pieces chosen
    value: Fraction
    gradient: Vector
    constant: bool


def need(condition: bool) -> None:
    if not condition:
        raise ValueError("not a proof file")


def number(text: Any) -> Fraction:
    need(isinstance(text, str))
    if match := RATIONAL.fullmatch(text):
        sign, *parts = match.groups(default="1")
        above, below = (int(part, 16 if part.startswith("0x") else 10) for part in parts)
        need(below > 0)
        return Fraction(-above if sign == "-" else above, below)
    need((match := FLOAT.fullmatch(text)) is not None)
    sign, whole, digits, power = match.groups(default="")
    value = int(whole + digits, 16) * Fraction(2) ** (int(power) - 4 * len(digits))
    need(value < 2**1024 and Fraction(float(value)) == value)  # a float64
    return -value if sign else value


def vector(data: Any, length: int | None = None, read: Any = number) -> list[Any]:
    need(isinstance(data, list) and length in (None, len(data)))
    return [read(entry) for entry in data]


def integer(data: Any, low: int, end: float = float("inf")) -> int:
    need(type(data) is int and low <= data < end)
    return data


def fields(data: Any, names: str, optional: str = "") -> list[Any]:
    need(isinstance(data, dict) and set(names.split()) <= set(data))
    need(set(data) <= set(names.split()) | set(optional.split()))
    return [data[name] for name in names.split()]


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs))
    return dict(pairs)


def read_node(node: Any, sizes: list[int]) -> int:
    """Checks a node, replaces its numbers by fractions, returns the length of its value."""
    need(isinstance(node, dict))
    op, of = node.get("op"), node.setdefault("of", [])  # choice: the variable may have "of": []
    if op in OTHER_OPS:
        raise Outside
    vector(of, None, lambda place: integer(place, 0, len(sizes)))
    need((op == "variable") == (not sizes))
    if op == "variable":
        return integer(fields(node, "op of size")[2], 1)
    need(len(of) == 1 or (op == "add" and len(of) > 1))
    size = sizes[of[0]]
    need(all(sizes[k] == size for k in of))
    if op == "add":
        fields(node, "op of")
        return size
    if op == "max":
        columns = integer(fields(node, "op of columns")[2], 1)
        need(size % columns == 0)
        return size // columns
    if op == "piecewise":
        breakpoints, pieces = fields(node, "breakpoints pieces", "op of")
        breakpoints = vector(breakpoints)
        pieces = vector(pieces, len(breakpoints) + 1, vector)
        need(all(a < b for a, b in pairwise(breakpoints)))
        if any(any(piece[2:]) for piece in pieces):
            raise Outside
        pieces = [(*piece, Fraction(0), Fraction(0))[:2] for piece in pieces]
        for at, ((a, b), (c, d)) in zip(breakpoints, pairwise(pieces), strict=True):
            need(a + b * at == c + d * at)  # continuous
        node.update(breakpoints=breakpoints, pieces=pieces)
        return size
    need(op == "affine")
    columns, width = fields(node, "columns width", "op of rows at offset")
    need(integer(columns, 1) * integer(width, 1) == size)
    need("rows" in node or "at" in node)  # choice: one of both tells how many rows there are
    full = [list(range(width)) for _ in vector(node.get("rows", []), None, lambda row: row)]
    at = vector(node.get("at", full), None, lambda row: vector(row, None, lambda place: place))
    need(all(integer(place, 0, width) >= 0 for row in at for place in row))
    need(len(at) > 0 and all(len(set(row)) == len(row) for row in at))  # choice: no place twice
    rows = vector(node.get("rows", [["1"] * len(row) for row in at]), len(at), vector)
    need(all(len(row) == len(places) for row, places in zip(rows, at, strict=True)))
    node["rows"] = [list(zip(*pair, strict=True)) for pair in zip(rows, at, strict=True)]
    length = len(at) * columns
    node["offset"] = vector(node.get("offset", ["0"] * length), length)  # one for every entry
    return length


def dot(a: Vector, b: Vector) -> Fraction:
    return sum((s * t for s, t in zip(a, b, strict=True)), Fraction(0))


def combine(terms: list[tuple[Fraction, Entry]], offset: Fraction, n: int) -> Entry:
    terms = [(c, e) for c, e in terms if c]  # choice: a coefficient 0 uses nothing
    gradient = [sum((c * e.gradient[i] for c, e in terms), Fraction(0)) for i in range(n)]
    value = sum((c * e.value for c, e in terms), offset)
    return Entry(value, gradient, all(e.constant for _, e in terms))


def limit(nodes: list[dict[str, Any]], y: Vector, v: Vector) -> Vector | None:
    """The limit of gradients at y + t v, t > 0 small; None where a kink is not left.

    All pieces have degree 1: the coefficient of t of an entry is <gradient, v>, others are 0.
    """
    n, done = len(y), []
    affine: list[bool] = []  # choice: made of affine nodes and sums
    plain: list[bool] = []  # choice: no entry of this node and of those below was decided by v
    for node in nodes:
        args, decided, out = [done[k] for k in node["of"]], False, []
        if node["op"] == "variable":
            out = [Entry(y[i], [Fraction(i == k) for k in range(n)], False) for i in range(n)]
        elif node["op"] == "add":
            for entries in zip(*args, strict=True):
                out.append(combine([(Fraction(1), e) for e in entries], Fraction(0), n))
        elif node["op"] == "affine":
            for i, offset in enumerate(node["offset"]):  # tables are stored row by row
                row, column = divmod(i, node["columns"])
                terms = [(c, args[0][k * node["columns"] + column]) for c, k in node["rows"][row]]
                out.append(combine(terms, offset, n))
        elif node["op"] == "piecewise":
            breakpoints, pieces = node["breakpoints"], node["pieces"]
            for u in args[0]:
                k, stays = bisect_left(breakpoints, u.value), False
                if u.value in breakpoints[k : k + 1]:
                    rate = dot(u.gradient, v)
                    decided, stays = decided or rate != 0, rate == 0
                    if stays and pieces[k][1] != pieces[k + 1][1] and not u.constant:
                        return None
                    k += rate > 0
                entry = combine([(pieces[k][1], u)], pieces[k][0], n)
                out.append(entry._replace(constant=u.constant or (entry.constant and not stays)))
        else:
            for i in range(0, len(args[0]), node["columns"]):
                row = args[0][i : i + node["columns"]]
                tied = [e for e in row if e.value == max(e.value for e in row)]
                top = max(dot(e.gradient, v) for e in tied)
                left = [e for e in tied if dot(e.gradient, v) == top]
                decided = decided or len(left) < len(tied)
                same = affine[node["of"][0]] and all(e.gradient == left[0].gradient for e in left)
                if len(left) > 1 and not same and not all(e.constant for e in left):
                    return None
                out.append(left[0])
        smooth = node["op"] in ("variable", "affine", "add")
        affine.append(smooth and all(affine[k] for k in node["of"]))
        plain.append(not decided and all(plain[k] for k in node["of"]))
        if plain[-1]:
            out = [e._replace(constant=e.constant or not any(e.gradient)) for e in out]
        done.append(out)
    return done[-1][0].gradient


def judge(text: str) -> bool:
    proof = json.loads(text, object_pairs_hook=once)
    need(isinstance(proof, dict) and isinstance(proof.get("claim"), dict))
    if proof["claim"].get("kind") in OTHER_KINDS:
        raise Outside
    names = "schema version x function claim evidence"
    schema, version, x, nodes, claim, evidence = fields(proof, names)
    kind, eps, delta = fields(claim, "kind eps delta")
    need((schema, kind) == ("goldstein-proof", "near") and integer(version, 1, 3) > 0)
    sizes: list[int] = []
    vector(nodes, None, lambda node: sizes.append(read_node(node, sizes)))
    need(sizes[-1:] == [1])
    pivot, directions, weights = fields(evidence, "pivot directions weights")
    x, pivot = vector(x, sizes[0]), vector(pivot, sizes[0])
    directions = vector(directions, None, lambda v: vector(v, sizes[0]))
    weights, eps, delta = vector(weights, len(directions)), number(eps), number(delta)
    step = [a - b for a, b in zip(pivot, x, strict=True)]
    if min(eps, delta, *weights) < 0 or not any(weights) or dot(step, step) > delta**2:
        return False
    used = [j for j, weight in enumerate(weights) if weight]  # choice: others may stay on a kink
    gradients = [limit(nodes, pivot, directions[j]) for j in used]
    if None in gradients:
        return False
    total = [dot([weights[j] for j in used], list(g)) for g in zip(*gradients, strict=True)]
    return dot(total, total) <= (eps * sum(weights)) ** 2


def decide(text: str) -> str:
    try:
        return "TRUE" if judge(text) else "FALSE"
    except Outside:
        return "OUTSIDE"
    except (ValueError, RecursionError):
        return "UNREADABLE"
