"""The words of the language, one by one, against what they mean.

Every kind of node is compared with a few lines of rational arithmetic: values, derivatives, which
entries of its arguments it needs, and which entries it calls constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from goldstein.checker.kinked import Max, Norm2, Piecewise
from scipy import sparse

from goldstein.checker import nodes
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.nodes import Still
from goldstein.checker.rationals import Q, to_fraction
from goldstein.errors import InputError

Vectors = list[list[Fraction]]

MATRIX = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 0.0], [0.5, 3.0, 0.0], [0.0, 1.0, 1.0]])
ABS = ((Fraction(0),), ((Fraction(0), Fraction(-1)), (Fraction(0), Fraction(1))))
#: 0 up to -1, (u + 1)^2 up to 1, then 4 u: a smooth breakpoint at -1, and none at 1.
BENT = (
    (Fraction(-1), Fraction(1)),
    (
        (Fraction(0), Fraction(0), Fraction(0)),
        (Fraction(1), Fraction(2), Fraction(1)),
        (Fraction(0), Fraction(4), Fraction(0)),
    ),
)


def bent(u: Fraction) -> Fraction:
    return Fraction(0) if u <= -1 else (u + 1) ** 2 if u <= 1 else 4 * u


def product(args: Vectors) -> list[Fraction]:
    """A table of 2 x 3 times one of 3 x 2."""
    left, right = args
    return [
        sum((left[3 * i + k] * right[2 * k + j] for k in range(3)), Fraction(0))
        for i in range(2)
        for j in range(2)
    ]


def times(A: Any, columns: int) -> Callable[[Vectors], list[Fraction]]:
    def answer(args: Vectors) -> list[Fraction]:
        u = args[0]
        return [
            sum((Fraction(a) * u[k * columns + c] for k, a in enumerate(row)), Fraction(0))
            for row in A.tolist()
            for c in range(columns)
        ]

    return answer


@dataclass(frozen=True)
class Kind:
    """A node, and what it means."""

    node: Any
    meaning: Callable[[Vectors], list[Fraction]]


RATIONAL: dict[str, Kind] = {
    "take": Kind(
        nodes.Take((0,), (4,), 3, np.array([2, 0, 2])), lambda a: [a[0][2], a[0][0], a[0][2]]
    ),
    "dense": Kind(nodes.Linear((0,), (3,), 4, MATRIX, 1), times(MATRIX, 1)),
    "dense, 2 columns": Kind(nodes.Linear((0,), (6,), 8, MATRIX, 2), times(MATRIX, 2)),
    "sparse": Kind(nodes.Linear((0,), (3,), 4, sparse.csr_array(MATRIX), 1), times(MATRIX, 1)),
    "sparse, 2 columns": Kind(
        nodes.Linear((0,), (6,), 8, sparse.csr_array(MATRIX), 2), times(MATRIX, 2)
    ),
    "scale": Kind(
        nodes.Scale((0,), (3,), 3, np.array([2.0, 0.0, -0.5])),
        lambda a: [2 * a[0][0], Fraction(0), -a[0][2] / 2],
    ),
    "divide": Kind(
        nodes.Scale((0,), (3,), 3, np.array([2.0, 4.0, -0.5]), True),
        lambda a: [a[0][0] / 2, a[0][1] / 4, -a[0][2] * 2],
    ),
    "third": Kind(
        nodes.Scale((0,), (2,), 2, Fraction(1, 3)), lambda a: [u * Fraction(1, 3) for u in a[0]]
    ),
    "over third": Kind(
        nodes.Scale((0,), (2,), 2, Fraction(1, 3), True), lambda a: [u * 3 for u in a[0]]
    ),
    "shift": Kind(
        nodes.Shift((0,), (3,), 3, np.array([0.0, 1.0, -2.5])),
        lambda a: [a[0][0], a[0][1] + 1, a[0][2] - Fraction(5, 2)],
    ),
    "add": Kind(
        nodes.Add((0, 1, 2), (2, 2, 2), 2), lambda a: [sum(us, Fraction(0)) for us in zip(*a)]
    ),
    "stack": Kind(nodes.Stack((0, 1, 2), (2, 1, 3), 6), lambda a: [*a[0], *a[1], *a[2]]),
    "total": Kind(nodes.Total((0,), (4,), 1), lambda a: [sum(a[0], Fraction(0))]),
    "multiply": Kind(
        nodes.Multiply((0, 1), (3, 3), 3), lambda a: [u * v for u, v in zip(*a, strict=True)]
    ),
    "product": Kind(nodes.Product((0, 1), (6, 6), 4, 3), product),
    "abs": Kind(Piecewise((0,), (4,), 4, *ABS), lambda a: [abs(u) for u in a[0]]),
    "bent": Kind(Piecewise((0,), (4,), 4, *BENT), lambda a: [bent(u) for u in a[0]]),
    "constant pieces": Kind(
        Piecewise((0,), (2,), 2, (Fraction(0),), ((Fraction(3),), (Fraction(3),))),
        lambda a: [Fraction(3)] * 2,
    ),
    "max": Kind(Max((0,), (6,), 2, 3), lambda a: [max(a[0][:3]), max(a[0][3:])]),
}


def draw(node: Any, seed: int) -> Vectors:
    """Arguments on a grid, all different, and on no breakpoint."""
    rng = np.random.default_rng(seed)
    return [
        [Fraction(int(k), 8) + Fraction(1, 16) for k in rng.permutation(40)[:size] - 20]
        for size in node.sizes
    ]


def enclosed(args: Vectors) -> list[Enclosure]:
    return [Enclosure(np.array([float(u) for u in arg])) for arg in args]


def piece_of(node: Any, args: Vectors) -> Any:
    if not node.decides:
        return None
    piece, ties = node.decide(enclosed(args)[0], lambda places: [args[0][p] for p in places])
    assert not ties
    return piece


def paths(args: Vectors, ways: Vectors) -> list[dict[int, Any]]:
    return [
        {p: [Q(u), Q(v)] for p, (u, v) in enumerate(zip(arg, way))} for arg, way in zip(args, ways)
    ]


def inside(e: Enclosure, values: list[Fraction]) -> bool:
    pairs = zip(e.mid.tolist(), e.rad.tolist(), values, strict=True)
    return all(abs(Fraction(m) - value) <= Fraction(r) for m, r, value in pairs)


@pytest.mark.parametrize("name", RATIONAL)
def test_values(name: str) -> None:
    kind = RATIONAL[name]
    for seed in range(5):
        args = draw(kind.node, seed)
        truth, piece = kind.meaning(args), piece_of(kind.node, args)
        assert inside(kind.node.forward(enclosed(args), piece), truth)
        places = range(kind.node.size)
        still = paths(args, [[Fraction(0)] * len(arg) for arg in args])
        found = kind.node.entries(places, still, piece)
        assert [to_fraction(found[p][0]) for p in places] == truth


@pytest.mark.parametrize("name", RATIONAL)
def test_needs(name: str) -> None:
    """Some entries, from those entries of the arguments that are said to be needed."""
    kind = RATIONAL[name]
    args = draw(kind.node, 0)
    piece, truth = piece_of(kind.node, args), kind.meaning(args)
    known = paths(args, args)
    for p in range(kind.node.size):
        needed = kind.node.needs([p], piece)
        some = [{q: path[q] for q in set(places)} for path, places in zip(known, needed)]
        found = kind.node.entries([p], some, piece)
        assert set(found) == {p}
        assert to_fraction(found[p][0]) == truth[p]
    assert len(kind.node.needs([0], piece)) == len(kind.node.of)


@pytest.mark.parametrize("name", RATIONAL)
def test_derivatives(name: str) -> None:
    """The polynomial along a line, exact derivatives and enclosures of them agree."""
    kind, node = RATIONAL[name], RATIONAL[name].node
    for seed in range(5):
        args, ways = draw(node, seed), draw(node, seed + 100)
        piece = piece_of(node, args)
        lines = node.entries(range(node.size), paths(args, ways), piece)
        g = {p: Q(Fraction(p + 2, 3)) for p in range(node.size) if p != 1}

        def ask(arg: list[Fraction]) -> Callable[[Any], list[Any]]:
            return lambda places: [Q(arg[p]) for p in places]

        pulled = node.pull(g, [ask(arg) for arg in args], piece)
        steps = (
            to_fraction(c) * way[p] for way, part in zip(ways, pulled) for p, c in part.items()
        )
        slope = sum(
            (to_fraction(g[p]) * to_fraction(lines[p][1]) for p in g if len(lines[p]) > 1),
            Fraction(0),
        )
        assert sum(steps, Fraction(0)) == slope
        # A small step along the line.
        t = Fraction(1, 2**30)
        there = kind.meaning([[u + t * v for u, v in zip(*pair)] for pair in zip(args, ways)])
        for p in range(node.size):
            value = sum((to_fraction(c) * t**k for k, c in enumerate(lines[p])), Fraction(0))
            assert value == there[p]
        weights = [to_fraction(g[p]) if p in g else Fraction(0) for p in range(node.size)]
        boxes = node.backward(Enclosure.from_fractions(weights), enclosed(args), piece)
        for box, part, size in zip(boxes, pulled, node.sizes, strict=True):
            exact = [to_fraction(part.get(p, 0)) for p in range(size)]
            pairs = zip(box.mid.tolist(), box.rad.tolist(), exact, strict=True)
            room = Fraction(2.0**-48)  # weights that are no floats are rounded
            middle = [abs(Fraction(m) - e) <= Fraction(r) + abs(e) * room for m, r, e in pairs]
            assert all(middle)


@pytest.mark.parametrize("name", RATIONAL)
def test_what_is_called_constant_is_constant(name: str) -> None:
    kind, node = RATIONAL[name], RATIONAL[name].node
    rng = np.random.default_rng(0)
    claimed = 0
    for seed in range(60):
        args = draw(node, seed)
        masks = []
        for arg in args:
            constant = rng.random(len(arg)) < rng.choice([0.3, 0.8, 1.0])
            zero = constant & (rng.random(len(arg)) < rng.choice([0.0, 0.5, 1.0]))
            masks.append(Still(constant, zero))
        if node.decides and any(mask.zero.any() for mask in masks):
            masks = [Still(mask.constant, np.zeros_like(mask.zero)) for mask in masks]
        args = [[u * (not z) for u, z in zip(a, m.zero)] for a, m in zip(args, masks)]
        still = node.still(masks, piece_of(node, args), {})
        here = kind.meaning(args)
        assert (still.constant | ~still.zero).all()
        for _ in range(3):
            moved = [
                [u + (not c) * Fraction(int(rng.integers(-99, 99)), 2**20) for u, c in zip(a, m[0])]
                for a, m in zip(args, masks)
            ]
            there = kind.meaning(moved)
            for p in range(node.size):
                assert not still.constant[p] or here[p] == there[p]
                assert not still.zero[p] or there[p] == 0
        claimed += int(still.constant.sum())
    assert claimed > 0
    # Of constants everything is constant.
    still = node.still(
        [Still(np.ones(s, bool), np.zeros(s, bool)) for s in node.sizes], piece_of(node, args), {}
    )
    assert still.constant.all()


def zeros_of(node: Any, *zero: list[bool], loose: Any = None, piece: Any = None) -> list[bool]:
    masks = [Still(np.array(mask), np.array(mask)) for mask in zero]
    found: list[bool] = node.still(masks, piece, loose or {}).zero.tolist()
    return found


def test_what_is_called_zero() -> None:
    yes, no = True, False
    assert zeros_of(RATIONAL["multiply"].node, [yes, no, no], [no, no, yes]) == [yes, no, yes]
    assert zeros_of(RATIONAL["scale"].node, [no, no, yes]) == [no, yes, yes]
    assert zeros_of(RATIONAL["shift"].node, [yes, yes, no]) == [yes, no, no]
    assert zeros_of(RATIONAL["add"].node, [yes, yes], [yes, no], [yes, yes]) == [yes, no]
    assert zeros_of(RATIONAL["stack"].node, [yes, no], [yes], [no, no, yes]) == [
        yes, no, yes, no, no, yes,
    ]  # fmt: skip
    assert zeros_of(RATIONAL["total"].node, [yes] * 4) == [yes]
    assert zeros_of(RATIONAL["total"].node, [yes, yes, yes, no]) == [no]
    assert zeros_of(RATIONAL["dense"].node, [yes, no, yes]) == [yes, yes, no, no]
    assert zeros_of(RATIONAL["take"].node, [yes, no, no, no]) == [no, yes, no]
    left, right = [yes] * 3 + [no] * 3, [no] * 6
    assert zeros_of(RATIONAL["product"].node, left, right) == [yes, yes, no, no]
    right = [yes, no, no, no, yes, no]
    assert zeros_of(RATIONAL["product"].node, [no, yes, no, no, no, yes], right) == [
        yes, no, no, no,
    ]  # fmt: skip
    for kind in (nodes.Log((0,), (2,), 2), nodes.LogSumExp((0,), (4,), 2, 2)):
        size = kind.sizes[0]
        assert (
            kind.still([Still(np.ones(size, bool), np.ones(size, bool))], None, {}).zero.any() == no
        )
    huber = nodes.PseudoHuber((0,), (2,), 2, Fraction(1))
    assert zeros_of(huber, [yes, no]) == [yes, no]


def test_products_of_constants_and_zeros() -> None:
    """A product is constant if both factors are, or if one is 0."""
    node = nodes.Product((0, 1), (2, 2), 1, 2)
    yes, no = True, False
    for c, z, d, w, constant in (
        ([yes, yes], [no, no], [yes, yes], [no, no], True),
        ([yes, no], [no, no], [yes, yes], [no, no], False),
        ([yes, no], [no, no], [yes, yes], [no, yes], True),
        ([yes, yes], [yes, no], [no, yes], [no, no], True),
        ([yes, yes], [yes, no], [no, no], [no, no], False),
        ([yes, yes], [yes, yes], [no, no], [no, no], True),
    ):
        masks = [Still(np.array(c), np.array(z)), Still(np.array(d), np.array(w))]
        assert node.still(masks, None, {}).constant.tolist() == [constant]


def test_matrices_that_are_elsewhere_are_not_called_constant() -> None:
    class Elsewhere:
        shape = (2, 2)

    node = nodes.Linear((0,), (2,), 2, Elsewhere(), 1)
    still = node.still([Still(np.ones(2, bool), np.ones(2, bool))], None, {})
    assert not still.constant.any()
    assert not still.zero.any()


F = Fraction
BAD: dict[str, Callable[[], Any]] = {
    "no arguments": lambda: nodes.Add((), (), 2),
    "another size": lambda: nodes.Add((0, 1), (2, 3), 2),
    "a variable of something": lambda: nodes.Variable((0,), (1,), 1),
    "a place beyond": lambda: nodes.Take((0,), (2,), 1, np.array([2])),
    "a negative place": lambda: nodes.Take((0,), (2,), 1, np.array([-1])),
    "too few places": lambda: nodes.Take((0,), (2,), 2, np.array([1])),
    "rows": lambda: nodes.Linear((0,), (3,), 3, MATRIX, 1),
    "width": lambda: nodes.Linear((0,), (4,), 4, MATRIX, 1),
    "columns": lambda: nodes.Linear((0,), (3,), 4, MATRIX, 2),
    "factor": lambda: nodes.Scale((0,), (2,), 2, np.ones(3)),
    "factor's size": lambda: nodes.Scale((0,), (3,), 2, np.ones(2)),
    "rational factor's size": lambda: nodes.Scale((0,), (3,), 2, F(1)),
    "over 0": lambda: nodes.Scale((0,), (2,), 2, np.array([1.0, 0.0]), True),
    "over the rational 0": lambda: nodes.Scale((0,), (2,), 2, F(0), True),
    "shift": lambda: nodes.Shift((0,), (2,), 2, np.ones(3)),
    "shift's size": lambda: nodes.Shift((0,), (3,), 2, np.ones(2)),
    "stack": lambda: nodes.Stack((0, 1), (2, 3), 4),
    "empty stack": lambda: nodes.Stack((), (), 0),
    "total": lambda: nodes.Total((0,), (2,), 2),
    "one factor": lambda: nodes.Multiply((0,), (2,), 2),
    "three factors": lambda: nodes.Multiply((0, 1, 2), (2, 2, 2), 2),
    "factors": lambda: nodes.Multiply((0, 1), (2, 3), 2),
    "one table": lambda: nodes.Product((0,), (6,), 4, 3),
    "tables": lambda: nodes.Product((0, 1), (6, 7), 4, 3),
    "first table": lambda: nodes.Product((0, 1), (7, 6), 4, 3),
    "inner": lambda: nodes.Product((0, 1), (6, 6), 4, 0),
    "table's size": lambda: nodes.Product((0, 1), (6, 6), 5, 3),
    "threshold": lambda: nodes.PseudoHuber((0,), (2,), 2, F(0)),
    "threshold's size": lambda: nodes.PseudoHuber((0,), (3,), 2, F(1)),
    "no columns": lambda: Max((0,), (0,), 2, 0),
    "row's length": lambda: Max((0,), (5,), 2, 3),
    "two arguments": lambda: Max((0, 1), (6, 6), 2, 3),
    "equal breakpoints": lambda: Piecewise((0,), (1,), 1, (F(1), F(1)), ((F(0),),) * 3),
    "descending": lambda: Piecewise((0,), (1,), 1, (F(1), F(0)), ((F(0),),) * 3),
    "a piece too few": lambda: Piecewise((0,), (1,), 1, (F(1),), ((F(0),),)),
    "a piece too many": lambda: Piecewise((0,), (1,), 1, (F(1),), ((F(0),),) * 3),
    "lengths": lambda: Piecewise((0,), (1,), 1, (F(0),), ((F(0),), (F(0), F(1)))),
    "no coefficients": lambda: Piecewise((0,), (1,), 1, (F(0),), ((), ())),
    "a jump": lambda: Piecewise((0,), (1,), 1, (F(0),), ((F(0),), (F(1),))),
    "a second jump": lambda: Piecewise(
        (0,), (1,), 1, (F(0), F(1)), ((F(0), F(0)), (F(0), F(1)), (F(0), F(0)))
    ),
    "piecewise size": lambda: Piecewise((0,), (2,), 1, *ABS),
}


@pytest.mark.parametrize("name", BAD)
def test_a_node_that_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="does not fit"):
        BAD[name]()


def test_nodes_that_fit() -> None:
    assert nodes.Scale((0,), (2,), 2, F(0)).factor == 0
    assert nodes.Scale((0,), (2,), 2, F(2), True).inverse
    assert nodes.Take((0,), (2,), 0, np.zeros(0, dtype=int)).size == 0
    assert Piecewise((0,), (1,), 1, (F(0),), ((F(3),), (F(3),))).jumps == [0]


def test_slopes_and_jumps() -> None:
    node = RATIONAL["bent"].node
    assert node.slopes == ((F(0), F(0)), (F(2), F(2)), (F(4), F(0)))
    assert node.jumps == [0, 0]
    assert RATIONAL["abs"].node.jumps == [2]
    assert not node.flat
    assert RATIONAL["abs"].node.flat
    assert RATIONAL["constant pieces"].node.slopes == ((F(0),), (F(0),))


TINY = F(1, 10**40)


def asked(values: list[Fraction]) -> tuple[Callable[[Any], list[Fraction]], list[int]]:
    """Exact values, and the places that were asked for."""
    places: list[int] = []

    def exact(some: Any) -> list[Fraction]:
        places.extend(some)
        return [values[p] for p in some]

    return exact, places


def test_pieces_are_decided_exactly() -> None:
    """Beside a breakpoint by less than an enclosure can tell, and on it."""
    node = Piecewise((0,), (7,), 7, *BENT)
    values = [F(-1), -1 - TINY, -1 + TINY, F(1), 1 - TINY, 1 + TINY, F(0)]
    exact, places = asked(values)
    piece, ties = node.decide(Enclosure.from_fractions(values), exact)
    assert piece.tolist() == [0, 0, 1, 1, 1, 2, 1]
    assert ties == {0: 0, 3: 1}
    assert set(places) == {0, 1, 2, 3, 4, 5}


def test_the_largest_entry_is_decided_exactly() -> None:
    node = Max((0,), (12,), 4, 3)
    third = F(1, 3)
    values = [
        F(1), F(2), F(0),
        third, third + TINY, F(0),
        third + TINY, third, third + TINY,
        F(5), F(5), F(5),
    ]  # fmt: skip
    exact, places = asked(values)
    piece, ties = node.decide(Enclosure.from_fractions(values), exact)
    assert piece.tolist() == [1, 4, 6, 9]
    assert ties == {2: [6, 8], 3: [9, 10, 11]}
    assert set(places) == {3, 4, 6, 7, 8, 9, 10, 11}
    for bad in (math.nan, math.inf):
        doubtful = Enclosure(np.array([1.0, 2.0]), np.array([0.0, bad]))
        exact, places = asked([F(1), F(2)])
        piece, ties = Max((0,), (2,), 1, 2).decide(doubtful, exact)
        assert (piece.tolist(), ties, sorted(places)) == ([1], {}, [0, 1])


def test_rows_that_are_zero_are_decided_exactly() -> None:
    node = Norm2((0,), (8,), 4, 2)
    values = [F(0), F(0), F(0), TINY**20, F(3), F(4), F(0), F(1)]
    exact, places = asked(values)
    piece, ties = node.decide(Enclosure.from_fractions(values), exact)
    assert piece == {1: [0, TINY**20]}
    assert ties == {0: [0, 1]}
    assert set(places) == {0, 1, 2, 3}


def test_norms_and_their_derivatives() -> None:
    node = Norm2((0,), (6,), 3, 2)
    u = Enclosure(np.array([3.0, 4.0, 0.0, 0.0, -5.0, 12.0]))
    assert inside(node.forward([u], {}), [F(5), F(0), F(13)])
    g = Enclosure(np.array([1.0, 2.0, -1.0]))
    (box,) = node.backward(g, [u], {1: [F(3) * TINY**20, F(4) * TINY**20]})
    truth = [F(3, 5), F(4, 5), F(6, 5), F(8, 5), F(5, 13), F(-12, 13)]
    assert inside(box, truth)
    assert (box.rad < 1e-13).all()


def test_smooth_kinds() -> None:
    """Logarithm, log-sum-exp and pseudo-Huber against their formulas."""
    pytest.importorskip("flint")
    u = np.array([0.5, 2.0, 1.0, 3.0])
    g = Enclosure(np.array([1.0, -2.0]))
    log = nodes.Log((0,), (4,), 4)
    assert np.allclose(log.forward([Enclosure(u)], None).mid, np.log(u), rtol=1e-14)
    four = Enclosure(np.array([1.0, -2.0, 3.0, 0.5]))
    assert np.allclose(log.backward(four, [Enclosure(u)], None)[0].mid, four.mid / u, rtol=1e-14)
    (pulled,) = log.pull({1: Q(F(3))}, [lambda places: [Q(F(2)) for _ in places]], None)
    assert {p: to_fraction(c) for p, c in pulled.items()} == {1: F(3, 2)}
    rows = nodes.LogSumExp((0,), (4,), 2, 2)
    table = np.exp(u.reshape(2, 2))
    value = rows.forward([Enclosure(u)], None)
    assert np.allclose(value.mid, np.log(table.sum(axis=1)), rtol=1e-14)
    assert (value.rad < 1e-14).all()
    shares = table / table.sum(axis=1, keepdims=True)
    slope = rows.backward(g, [Enclosure(u)], None)[0]
    assert np.allclose(slope.mid, (shares * g.mid[:, None]).ravel(), rtol=1e-13)
    huge = rows.forward([Enclosure(np.array([1e4, 1e4, -1e4, -1e4]))], None)
    assert np.allclose(huge.mid, [1e4 + math.log(2.0), math.log(2.0) - 1e4], rtol=1e-14)
    huber = nodes.PseudoHuber((0,), (4,), 4, F(3, 2))
    root = np.sqrt(1 + (u / 1.5) ** 2)
    assert np.allclose(huber.forward([Enclosure(u)], None).mid, 2.25 * (root - 1.0), rtol=1e-13)
    slope = huber.backward(four, [Enclosure(u)], None)[0]
    assert np.allclose(slope.mid, four.mid * u / root, rtol=1e-13)
    assert (slope.rad < 1e-13).all()


def test_what_stays_where_it_is_tied() -> None:
    """An entry left on a breakpoint is constant only if its argument is."""
    node = Piecewise((0,), (3,), 3, (F(0),), ((F(0), F(0)), (F(0), F(1))))  # max(u, 0)
    moving = Still(np.zeros(3, bool), np.zeros(3, bool))
    piece = np.array([0, 0, 1])
    assert node.still([moving], piece, {}).constant.tolist() == [True, True, False]
    assert node.still([moving], piece, {}).zero.tolist() == [True, True, False]
    assert node.still([moving], piece, {0: 0}).constant.tolist() == [False, True, False]
    assert node.still([moving], piece, {0: 0}).zero.tolist() == [False, True, False]
    resting = Still(np.ones(3, bool), np.array([True, False, True]))
    assert node.still([resting], piece, {0: 0, 1: 0, 2: 0}).constant.all()
    assert node.still([resting], piece, {0: 0, 1: 0, 2: 0}).zero.tolist() == [True, False, True]
    # A constant piece that is not 0; and a function that is not 0 at 0.
    step = Piecewise((0,), (2,), 2, (F(0), F(1)), ((F(2), F(0)), (F(2), F(1)), (F(3), F(0))))
    moving = Still(np.zeros(2, bool), np.zeros(2, bool))
    assert step.still([moving], np.array([0, 2]), {}).constant.all()
    assert not step.still([moving], np.array([0, 2]), {}).zero.any()
    zero = Still(np.ones(2, bool), np.ones(2, bool))
    assert not step.still([zero], np.array([0, 0]), {0: 0, 1: 0}).zero.any()
    # Breakpoints below 0 are passed on the way to the piece that rules there.
    late = Piecewise((0,), (1,), 1, (F(-1),), ((F(5), F(4)), (F(0), F(-1))))
    one = Still(np.ones(1, bool), np.ones(1, bool))
    assert late.still([one], np.array([1]), {}).zero.all()
    half = Piecewise((0,), (1,), 1, (F(1, 2),), ((F(1, 2), F(0)), (F(0), F(1))))
    assert not half.still([one], np.array([0]), {0: 0}).zero.any()
    early = Piecewise((0,), (1,), 1, (F(1),), ((F(0), F(-1)), (F(5), F(-6))))
    assert early.still([one], np.array([0]), {}).zero.all()


def test_what_stays_of_the_largest() -> None:
    """Tied entries must all be constant, or all 0."""
    node = Max((0,), (6,), 2, 3)
    mask = np.array([True, True, False, False, True, True])
    still = Still(mask, mask)
    piece = np.array([0, 4])
    assert node.still([still], piece, {}).constant.tolist() == [True, True]
    assert node.still([still], piece, {0: [0, 1]}).constant.tolist() == [True, True]
    assert node.still([still], piece, {0: [0, 2]}).constant.tolist() == [False, True]
    assert node.still([still], piece, {0: [0, 2]}).zero.tolist() == [False, True]
    assert node.still([still], piece, {1: [3, 4]}).zero.tolist() == [True, False]


def test_numbers_are_gathered_by_place() -> None:
    terms = [(3, F(1)), (1, F(2)), (3, F(4)), (1, F(-2)), (0, F(0))]
    assert nodes.gathered(terms) == {3: F(5)}
