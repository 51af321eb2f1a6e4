"""Small proof files that would take a checker hours, or all the memory of a machine.

Each of them is well-formed, and cheap to write: `HEAVY[name](n)` is the text of a file whose cost
grows with n, most of them out of all proportion to its length. A checker must end, within its
bounds of time and memory, whatever it then says.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from benchmarks.adversary.proof_files import ABS, RELU, Node, op, proof, variable


def ones(of: int, at: list[list[int]], width: int = 1, columns: int = 1) -> Node:
    """A matrix of ones at some places."""
    return op("affine", of, columns=columns, width=width, at=at)


def copies(n: int) -> list[Node]:
    """n variables, and n^2 entries that a file of n lines makes of them."""
    return [variable(n), ones(0, [[0]] * n, columns=n)]


def about(function: list[Node], point: list[str], count: int = 1, **changes: Any) -> str:
    """A claim about a point, along (1, ..., 1), so many times."""
    return json.dumps(proof(function, point, [["1"] * len(point)] * count, **changes))


def goldstein(function: list[Node], x: str, count: int, **claim: str) -> str:
    document = proof(function, [x], [], kind="goldstein", **claim)
    document["evidence"] = {"points": [["1"]] * count, "weights": ["1"] * count}
    return json.dumps(document)


def _tied(n: int) -> str:
    return about([variable(1), ones(0, [[0]] * n), op("max", 1, columns=n)], ["0"])


def _tied_constants(n: int) -> str:
    same = [variable(1), ones(0, [[]] * n), op("piecewise", 1, **RELU), op("max", 2, columns=n)]
    return about(same, ["0"])


def _powers(n: int) -> str:
    power = op("piecewise", 1, breakpoints=[], pieces=[["1"] * 32])
    return about([*copies(n), power, op("max", 2, columns=n * n)], ["0"] * n)


def _wide(n: int) -> str:
    wide = [ones(1, [[0]], n * n) for _ in range(n)]
    return about([*copies(n), *wide], ["0"] * n)


def _sums(n: int) -> str:
    sums = [op("add", 1, 1) for _ in range(n)]
    return about([*copies(n), *sums, op("max", n + 1, columns=n * n)], ["0"] * n)


def _norms(n: int, at: str) -> str:
    function = [*copies(n), op("norm2", 1, columns=1), op("max", 2, columns=n * n)]
    return about(function, [at] * n)


def _kinks(n: int) -> str:
    function = [*copies(n), op("piecewise", 1, **RELU), ones(2, [[0]], n * n)]
    return about(function, ["0"] * n, 10)


def _denominators(n: int) -> str:
    rng = random.Random(0)
    point = [str(rng.getrandbits(250) | 1) for _ in range(2 * n)]
    function = [variable(2 * n), op("norm2", 0, columns=2), ones(1, [list(range(n))], n)]
    return about(function, point)


def _vanishing(n: int) -> str:
    """n times w - w, each on a kink: to be proved constant one by one."""
    both = [variable(1), ones(0, [[0]] * n), op("affine", 0, columns=1, width=1, rows=[["-1"]] * n)]
    ends = [op("add", 1, 2), op("piecewise", 3, **ABS), ones(4, [list(range(n))], n)]
    return about([*both, *ends], ["0"])


def _many_directions(n: int) -> str:
    return about([variable(1), *(op("add", k) for k in range(10 * n))], ["0"], 100 * n)


def _long_sum(n: int) -> str:
    total = [variable(1), op("add", *[0] * (200 * n)), ones(1, [[0]] * n)]
    return about([*total, op("piecewise", 2, **ABS), op("max", 3, columns=n)], ["0"])


def _far(n: int) -> str:
    return goldstein([variable(1)], "0", 100 * n, delta="0x1" + "0" * (20 * n))


def _beside_a_long_number(n: int) -> str:
    return goldstein([variable(1)], "1/0x1" + "0" * (20 * n) + "1", 100 * n, delta="2", eps="2")


def _weights(n: int) -> str:
    rng, document = random.Random(0), json.loads(about([variable(1)], ["0"], 20 * n))
    document["evidence"]["weights"] = [f"1/{hex(rng.getrandbits(200) | 1)}" for _ in range(20 * n)]
    return json.dumps(document)


def _breakpoints(n: int) -> str:
    """Degree 31 with long rational coefficients, continuous at long rational breakpoints."""
    rng = random.Random(0)
    bottom, most = hex(rng.getrandbits(9900) | 1), min(n, 999)
    tops = sorted(rng.getrandbits(9900) for _ in range(most))
    sums = [sum(tops[:k]) for k in range(most + 1)]
    pieces = [["0"] * 30 + [f"-{hex(a)}/{bottom}", str(k)] for k, a in enumerate(sums)]
    breakpoints = [f"{hex(t)}/{bottom}" for t in tops]
    return about([variable(1), op("piecewise", 0, breakpoints=breakpoints, pieces=pieces)], ["0"])


def _empty_pieces(n: int) -> str:
    breakpoints, pieces = [str(k) for k in range(999)], [["0"] * 32] + [[]] * 999
    node = op("piecewise", 0, breakpoints=breakpoints, pieces=pieces)
    return about([variable(1)] + [node] * (n // 5), ["0"])


def _squares(n: int) -> str:
    squares = [op("multiply", k, k) for k in range(n)]
    return about([variable(1), *squares, op("piecewise", n, **RELU)], ["1/3"])


def _long_kinks(n: int) -> str:
    function = [variable(1), ones(0, [[0]] * n), op("piecewise", 1, **RELU),
                op("max", 2, columns=n)]  # fmt: skip
    return about(function, ["1/0x" + "f" * (20 * n)])


def _logarithms(n: int) -> str:
    function = [*copies(n), op("log", 1), op("logsumexp", 2, columns=n * n)]
    return about(function, ["1/3"] * n)


def minimum(function: list[Node], **evidence: Any) -> str:
    """A claim that 1/3 is a minimum, in every variable."""
    x = ["1/3"] * function[0]["size"]
    claim = {"kind": "minimum", "eps": "0", "delta": "0", "gap": "0", "radius": "1/2",
             "within": None, "scope": "ball", "strict": False, "unique": False}  # fmt: skip
    shown = {
        "pivot": x,
        "reach": "1",
        "growth": "0",
        "convexity": None,
        "supports": [],
        "sharp": [],
    }
    claim |= {"global_gap": "0"} if "cases" in evidence else {}
    whole = {"schema": "goldstein-proof", "version": 2, "claim": claim, "x": x}
    return json.dumps(whole | {"evidence": shown | evidence, "function": function})


def many_pieces(n: int, *lines: list[str]) -> list[Node]:
    """n entries of a thousand pieces each, which are a line, or two in turn, and their sum."""
    ends = [f"{k}/1000" for k in range(999)]
    pieces = [lines[k % len(lines)] for k in range(1000)]
    return [variable(1), ones(0, [[0]] * n), op("piecewise", 1, breakpoints=ends, pieces=pieces),
            ones(2, [list(range(n))], n)]  # fmt: skip


def _pieces_of_a_minimum(n: int) -> str:
    return minimum(many_pieces(n, [f"{k}/7" for k in range(32)]))


def _lines_of_a_minimum(n: int) -> str:
    return minimum(many_pieces(n, ["0", "1"]))


def _entries_of_a_minimum(n: int) -> str:
    square = [variable(1), ones(0, [[0]] * n), ones(1, [[0]] * n, columns=n)]
    return minimum([*square, ones(2, [[0]], n * n)])


def _gradients_of_a_minimum(n: int) -> str:
    total = ones(0, [list(range(n))], n)
    return minimum([variable(n), total, ones(1, [[0]] * n), ones(2, [[0]], n)])


def _variables_of_a_minimum(n: int) -> str:
    return minimum([variable(20 * n), ones(0, [[0]], 20 * n)])


def _cases(n: int) -> str:
    """As many cases as there are entries, whose kinks have a thousand breakpoints."""
    ends = [str(k) for k in range(999)]
    steps = [["0"], *([str(-(k // 2)), "1"] if k % 2 else [str(k // 2)] for k in range(1, 1000))]
    waves = op("piecewise", 1, breakpoints=ends, pieces=steps)
    square = op("piecewise", 0, breakpoints=[], pieces=[["0", "0", "1"]])
    function = [variable(1), ones(0, [[0]] * n), waves,
                ones(2, [list(range(n))], n), square, op("add", 3, 4)]  # fmt: skip
    case = {"point": ["0"], "slopes": ["0"] * n, "parts": 1}
    return minimum(function, cases={"growth": "1", "tree": [case] * (n // 10)})


def _long_matrix(n: int) -> str:
    """The sizes of a table of singular values, stated with long numbers."""
    size = n // 25
    document = proof([variable(size), ones(0, [[0]], size)], ["1"] * size, [], kind="plus")
    long = [f"1/0x{k:x}{'f' * 20000}" for k in range(1, size + 1)]
    document |= {
        "version": 2,
        "evidence": {"points": [["1"] * size], "weights": ["1"], "subgradient": long},
    }
    document["term"] = {"name": "nuclear", "weight": "1", "rows": 1, "columns": size,
                        "left": [["1"]], "right": [[q] for q in long]}  # fmt: skip
    return json.dumps(document)


def _lists(n: int) -> str:
    return '{"schema": [' + "[]," * (10_000 * n) + "[]]}"


def _objects(n: int) -> str:
    return '{"schema": [' + '{"a":1},' * (4_000 * n) + "{}]}"


HEAVY: dict[str, Callable[[int], str]] = {
    "tied affine entries": lambda n: _tied(20 * n),
    "tied constants": _tied_constants,
    "powers of many entries": _powers,
    "wide matrices": _wide,
    "sums of many entries": _sums,
    "norms": lambda n: _norms(n, "1"),
    "norms on kinks": lambda n: _norms(n, "0"),
    "entries on kinks": _kinks,
    "norms without a common denominator": _denominators,
    "constants to be proved": _vanishing,
    "directions and nodes": _many_directions,
    "a sum of many terms": _long_sum,
    "a long delta": _far,
    "a long x": _beside_a_long_number,
    "weights without a common denominator": _weights,
    "long breakpoints": _breakpoints,
    "empty pieces": _empty_pieces,
    "repeated squares": _squares,
    "long numbers on kinks": _long_kinks,
    "logarithms": _logarithms,
    "pieces of a minimum": _pieces_of_a_minimum,
    "lines of a minimum": _lines_of_a_minimum,
    "entries of a minimum": _entries_of_a_minimum,
    "gradients of a minimum": _gradients_of_a_minimum,
    "variables of a minimum": _variables_of_a_minimum,
    "cases of a minimum": _cases,
    "long numbers in a term": _long_matrix,
    "lists": _lists,
    "objects": _objects,
}

__all__ = ["HEAVY"]
