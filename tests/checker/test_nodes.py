"""The nine kinds of nodes, one by one, against what they mean.

Every kind is compared with a few lines of rational arithmetic: values and derivatives, exactly and
enclosed; the same of some of its entries alone; and which entries it calls constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from goldstein.checker import nodes
from goldstein.checker.enclosed.arrays import FUNCTIONS, Enclosure
from goldstein.checker.enclosed.irrational import LogSumExp, Norm2, Smooth
from goldstein.checker.enclosed.part import cut
from goldstein.checker.errors import Irrational
from goldstein.checker.exact import Exact, Still
from goldstein.checker.nodes import (
    MAX_DEGREE,
    Add,
    Affine,
    Max,
    Piecewise,
    Product,
)
from goldstein.errors import InputError, NotCertifiableError

Vectors = list[list[Fraction]]
F = Fraction

MATRIX = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 0.0], [0.5, 3.0, 0.0], [0.0, 1.0, 1.0]])
#: The same with stored zeros, and with two numbers for one entry.
TWICE = sparse.csr_array(
    (
        np.array([1.0, 0.0, -2.0, 0.25, 3.0, 0.25, 0.0, 1.0, 1.0]),
        np.array([0, 1, 2, 0, 1, 0, 2, 2, 1]),
        np.array([0, 3, 3, 7, 9]),
    ),
    shape=(4, 3),
)
ABS = ((F(0),), ((F(0), F(-1)), (F(0), F(1))))
#: 0 up to -1, (u + 1)^2 up to 1, then 4 u: a smooth breakpoint at -1, and none at 1.
BENT = ((F(-1), F(1)), ((F(0), F(0), F(0)), (F(1), F(2), F(1)), (F(0), F(4), F(0))))


def bent(u: Fraction) -> Fraction:
    return F(0) if u <= -1 else (u + 1) ** 2 if u <= 1 else 4 * u


def tables(batch: int, n: int, inner: int, m: int) -> Callable[[Vectors], list[Fraction]]:
    """Products of tables n x inner and inner x m, one after the other."""

    def answer(args: Vectors) -> list[Fraction]:
        left, right = args
        return [
            sum(
                (left[(b * n + i) * inner + k] * right[(b * inner + k) * m + j]
                 for k in range(inner)), F(0)
            )
            for b in range(batch) for i in range(n) for j in range(m)
        ]  # fmt: skip

    return answer


def times(
    A: Any, columns: int = 1, offset: Any = None, divisor: Any = None
) -> Callable[[Vectors], list[Fraction]]:
    """(A u + offset) / divisor, u a table of columns."""

    def answer(args: Vectors) -> list[Fraction]:
        u = args[0]
        found = [
            sum((F(a) * u[k * columns + c] for k, a in enumerate(row)), F(0))
            for row in A.tolist()
            for c in range(columns)
        ]
        more = [0.0] * len(found) if offset is None else offset.tolist()
        under = [1.0] * len(found) if divisor is None else divisor.tolist()
        return [(a + F(b)) / F(c) for a, b, c in zip(found, more, under, strict=True)]

    return answer


@dataclass(frozen=True)
class Kind:
    """A node, and what it means."""

    node: Any
    meaning: Callable[[Vectors], list[Fraction]]


def affine(matrix: Any, columns: int = 1, offset: Any = None, divisor: Any = None) -> Kind:
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix
    rows, width = dense.shape
    node = Affine((0,), (width * columns,), rows * columns, matrix, columns, offset, divisor)
    return Kind(node, times(dense, columns, offset, divisor))


def product(batch: int, n: int, inner: int, m: int) -> Kind:
    sizes = batch * n * inner, batch * inner * m
    return Kind(Product((0, 1), sizes, batch * n * m, batch, inner), tables(batch, n, inner, m))


EIGHT = np.array([1.0, -2.0, 0.0, 0.5, 3.0, 0.25, -1.0, 0.0])
RATIONAL: dict[str, Kind] = {
    "dense": affine(MATRIX),
    "dense, 2 columns": affine(MATRIX, 2),
    "sparse": affine(sparse.csr_array(MATRIX)),
    "sparse by columns": affine(sparse.csc_array(MATRIX)),
    "sparse, 2 columns": affine(sparse.csr_array(MATRIX), 2),
    "numbers twice": affine(TWICE),
    "numbers twice, 3 columns": affine(TWICE, 3),
    "offset": affine(MATRIX, 1, np.array([0.0, 1.0, -2.5, 1e-3])),
    "divided": affine(MATRIX, 1, None, np.array([3.0, -7.0, 0.1, 1.0])),
    "offset, divided, 2 columns": affine(MATRIX, 2, EIGHT, np.array([3, -7, 0.1, 1, 2, 5, 3, 9])),
    "some entries": affine(np.array([[0.0, 0, 1, 0], [1.0, 0, 0, 0], [0.0, 0, 1, 0]])),
    "total": affine(np.ones((1, 4))),
    "no rows": affine(np.zeros((0, 2))),
    "of nothing": affine(np.zeros((2, 0)), 1, np.array([1.0, -3.0])),
    "third": Kind(
        Piecewise((0,), (2,), 2, (), ((F(0), F(1, 3)),)), lambda a: [u * F(1, 3) for u in a[0]]
    ),
    "add": Kind(Add((0, 1, 2), (2, 2, 2), 2), lambda a: [sum(us, F(0)) for us in zip(*a)]),
    "add one": Kind(Add((0,), (2,), 2), lambda a: a[0]),
    "multiply": product(3, 1, 1, 1),
    "product": product(1, 2, 3, 2),
    "outer product": product(1, 2, 1, 3),
    "inner product": product(1, 1, 4, 1),
    "products": product(2, 2, 3, 1),
    "abs": Kind(Piecewise((0,), (4,), 4, *ABS), lambda a: [abs(u) for u in a[0]]),
    "bent": Kind(Piecewise((0,), (4,), 4, *BENT), lambda a: [bent(u) for u in a[0]]),
    "cube": Kind(
        Piecewise((0,), (2,), 2, (), ((F(1), F(0), F(-1, 2), F(3)),)),
        lambda a: [1 - u * u / 2 + 3 * u**3 for u in a[0]],
    ),
    "constant pieces": Kind(
        Piecewise((0,), (2,), 2, (F(0),), ((F(3),), (F(3),))), lambda a: [F(3)] * 2
    ),
    "max": Kind(Max((0,), (6,), 2, 3), lambda a: [max(a[0][:3]), max(a[0][3:])]),
    "max of one": Kind(Max((0,), (2,), 2, 1), lambda a: a[0]),
}  # fmt: skip


def draw(node: Any, seed: int) -> Vectors:
    """Arguments on a grid, all different, and on no breakpoint."""
    rng = np.random.default_rng(seed)
    return [
        [F(int(k), 8) + F(1, 16) for k in rng.permutation(40)[:size] - 20] for size in node.sizes
    ]


def exactly(args: Vectors, *more: Vectors) -> list[list[Exact]]:
    """Series with these coefficients."""
    return [[Exact.of(c) for c in pair] for pair in zip(args, *more)]


def enclosed(args: Vectors, *more: Vectors) -> list[list[Enclosure]]:
    return [[Enclosure.of(c) for c in pair] for pair in zip(args, *more)]


def piece_of(node: Any, args: Vectors) -> Any:
    if not hasattr(node, "decide"):
        return None
    piece, ties = node.decide(Exact.of(args[0]))
    assert not ties
    return piece


def inside(e: Enclosure, values: list[Fraction]) -> bool:
    pairs = zip(e.mid.ravel().tolist(), e.rad.ravel().tolist(), values, strict=True)
    return all(abs(F(m) - value) <= F(r) for m, r, value in pairs)


def every(size: int) -> list[np.ndarray]:
    """Every selection of some entries, in ascending order."""
    places = range(size)
    some = chain(*(combinations(places, k) for k in range(1, size + 1)))
    return [np.array(list(chosen), dtype=np.intp) for chosen in some]


@pytest.mark.parametrize("name", RATIONAL)
def test_values(name: str) -> None:
    kind = RATIONAL[name]
    for seed in range(5):
        args = draw(kind.node, seed)
        truth, piece = kind.meaning(args), piece_of(kind.node, args)
        (found,) = kind.node.forward(exactly(args), piece)
        assert found.fractions == truth
        (box,) = kind.node.forward(enclosed(args), piece)
        assert inside(box, truth)
        if hasattr(kind.node, "decide"):
            assert np.array_equal(kind.node.decide(enclosed(args)[0][0])[0], piece)


@pytest.mark.parametrize("name", RATIONAL)
def test_derivatives(name: str) -> None:
    """The polynomial along a line, derivatives pulled back, and enclosures of both agree."""
    kind, node = RATIONAL[name], RATIONAL[name].node
    for seed in range(5):
        args, ways = draw(node, seed), draw(node, seed + 100)
        piece = piece_of(node, args)
        series = [c.fractions for c in node.forward(exactly(args, ways), piece)]
        t = F(1, 2**30)  # a small step along the line
        there = kind.meaning([[u + t * v for u, v in zip(*pair)] for pair in zip(args, ways)])
        for p in range(node.size):
            assert sum((c[p] * t**k for k, c in enumerate(series)), F(0)) == there[p]
        first = series[1] if len(series) > 1 else [F(0)] * node.size
        g = [F(p + 2, 3) * (p != 1) for p in range(node.size)]
        values = [Exact.of(arg) for arg in args]
        pulled = [part.fractions for part in node.backward(Exact.of(g), values, piece)]
        steps = (c * v for part, way in zip(pulled, ways, strict=True) for c, v in zip(part, way))
        assert sum(steps, F(0)) == sum((a * b for a, b in zip(g, first)), F(0))
        # Enclosures: up to the first power of t.
        boxes = node.forward(enclosed(args, ways), piece)
        assert len(boxes) <= 2
        assert inside(boxes[0], kind.meaning(args))
        if len(boxes) > 1:
            assert inside(boxes[1], first)
        else:
            assert not any(first)
        boxes = node.backward(Enclosure.of(g), [Enclosure.of(arg) for arg in args], piece)
        assert all(inside(box, part) for box, part in zip(boxes, pulled, strict=True))


@pytest.mark.parametrize("name", RATIONAL)
def test_some_entries_alone(name: str) -> None:
    """A node cut to some of its entries says of them what the whole node says."""
    kind, node = RATIONAL[name], RATIONAL[name].node
    args, ways = draw(node, 0), draw(node, 100)
    piece = piece_of(node, args)
    whole = node.forward(exactly(args, ways), piece)
    for places in every(node.size) if node.size < 7 else every(node.size)[::11]:
        part, own, needs = cut(node, places, piece)
        assert len(needs) == len(node.of)
        some = [[c[need] for c in arg] for arg, need in zip(exactly(args, ways), needs)]
        found = part.forward(some, own)
        truth = kind.meaning(args)
        assert found[0].fractions == [truth[p] for p in places]
        for k, c in enumerate(whole):
            expected = c[places].fractions
            assert (found[k].fractions if k < len(found) else [F(0)] * places.size) == expected
        # Derivatives: entries that are not needed have none.
        g = [F(2 * p - 3, 5) for p in places.tolist()]
        full = [F(0)] * node.size
        for p, a in zip(places.tolist(), g):
            full[p] = a
        values = [Exact.of(arg) for arg in args]
        whole_back = node.backward(Exact.of(full), values, piece)
        back = part.backward(Exact.of(g), [v[need] for v, need in zip(values, needs)], own)
        for one, need, other in zip(back, needs, whole_back, strict=True):
            assert one.scattered(need, other.top.size).fractions == other.fractions


#: What is known of an entry: 0: nothing; or that it does not change; nor is anything but 0.
CONSTANT, ZERO = 1, 2


def marks(constant: Any, zero: Any) -> Any:
    constant, zero = np.array(constant, bool), np.array(zero, bool)
    return np.where(constant, np.where(zero, ZERO, CONSTANT), 0).astype(np.int8)


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
            masks.append(marks(constant, zero & (not hasattr(node, "decide"))))
        args = [[u * (z != ZERO) for u, z in zip(a, m)] for a, m in zip(args, masks)]
        found = constant_of(node, masks, piece_of(node, args), {})
        assert set(found.tolist()) <= {0, CONSTANT, ZERO}
        here = kind.meaning(args)
        for _ in range(3):
            moved = [
                [u + (not c) * F(int(rng.integers(-99, 99)), 2**20) for u, c in zip(a, m)]
                for a, m in zip(args, masks)
            ]
            there = kind.meaning(moved)
            for p, mark in enumerate(found.tolist()):
                assert not mark or here[p] == there[p]
                assert mark != ZERO or there[p] == 0
        claimed += int((found > 0).sum())
    assert claimed > 0 or not node.size
    # Of constants everything is constant.
    still = [np.full(size, CONSTANT, dtype=np.int8) for size in node.sizes]
    assert (constant_of(node, still, piece_of(node, args), {}) >= CONSTANT).all()


def constant_of(node: Any, masks: Any, piece: Any, loose: Any) -> Any:
    """What is proved of entries whose arguments are known by such marks."""
    args = [[Still.of(mask != ZERO), Still.of(mask == 0)] for mask in masks]
    nonzero, moving = node.still(args, piece, loose)
    return np.where(moving > 0, 0, np.where(nonzero > 0, CONSTANT, ZERO))


def zeros_of(node: Any, *zero: list[bool], loose: Any = None, piece: Any = None) -> list[bool]:
    found = constant_of(node, [marks(mask, mask) for mask in zero], piece, loose or {})
    return [mark == ZERO for mark in found.tolist()]


def test_what_is_called_zero() -> None:
    yes, no = True, False
    assert zeros_of(RATIONAL["multiply"].node, [yes, no, no], [no, no, yes]) == [yes, no, yes]
    assert zeros_of(RATIONAL["offset"].node, [yes, yes, yes]) == [yes, no, no, no]
    assert zeros_of(RATIONAL["divided"].node, [yes, no, yes]) == [yes, yes, no, no]
    assert zeros_of(RATIONAL["numbers twice"].node, [yes, no, yes]) == [yes, yes, no, no]
    assert zeros_of(RATIONAL["add"].node, [yes, yes], [yes, no], [yes, yes]) == [yes, no]
    assert zeros_of(RATIONAL["total"].node, [yes] * 4) == [yes]
    assert zeros_of(RATIONAL["total"].node, [yes, yes, yes, no]) == [no]
    assert zeros_of(RATIONAL["dense"].node, [yes, no, yes]) == [yes, yes, no, no]
    assert zeros_of(RATIONAL["dense, 2 columns"].node, [yes, no, no, no, yes, yes]) == [
        yes, no, yes, yes, no, no, no, no,
    ]  # fmt: skip
    assert zeros_of(RATIONAL["some entries"].node, [yes, no, no, no]) == [no, yes, no]
    left, right = [yes] * 3 + [no] * 3, [no] * 6
    assert zeros_of(RATIONAL["product"].node, left, right) == [yes, yes, no, no]
    right = [yes, no, no, no, yes, no]
    assert zeros_of(RATIONAL["product"].node, [no, yes, no, no, no, yes], right) == [
        yes, no, no, no,
    ]  # fmt: skip
    for kind in (
        Smooth((0,), (2,), 2, FUNCTIONS["log"]),
        Smooth((0,), (2,), 2, FUNCTIONS["exp"]),
        LogSumExp((0,), (4,), 2, 2),
    ):
        found = constant_of(kind, [np.full(kind.sizes[0], ZERO, dtype=np.int8)], None, {})
        assert found.tolist() == [CONSTANT, CONSTANT]
    assert zeros_of(Smooth((0,), (2,), 2, FUNCTIONS["pseudo_huber"]), [yes, no]) == [yes, no]
    assert zeros_of(Norm2((0,), (4,), 2, 2), [yes, no, yes, yes], piece={}) == [no, yes]


def test_products_of_constants_and_zeros() -> None:
    """A product is constant if both factors are, or if one is 0."""
    node = Product((0, 1), (2, 2), 1, 1, 2)
    yes, no = True, False
    for c, z, d, w, constant in (
        ([yes, yes], [no, no], [yes, yes], [no, no], True),
        ([yes, no], [no, no], [yes, yes], [no, no], False),
        ([yes, no], [no, no], [yes, yes], [no, yes], True),
        ([yes, yes], [yes, no], [no, yes], [no, no], True),
        ([yes, yes], [yes, no], [no, no], [no, no], False),
        ([yes, yes], [yes, yes], [no, no], [no, no], True),
    ):
        found = constant_of(node, [marks(c, z), marks(d, w)], None, {})
        assert (found >= CONSTANT).tolist() == [constant]


def test_matrices_that_are_elsewhere_are_not_called_constant() -> None:
    class Elsewhere:
        shape = (2, 2)

    node = Affine((0,), (2,), 2, Elsewhere())
    assert not node.rational
    assert not constant_of(node, [np.full(2, ZERO, dtype=np.int8)], None, {}).any()


BAD: dict[str, Callable[[], Any]] = {
    "no arguments": lambda: Add((), (), 2),
    "another size": lambda: Add((0, 1), (2, 3), 2),
    "a variable of something": lambda: nodes.Variable((0,), (1,), 1),
    "rows": lambda: Affine((0,), (3,), 3, MATRIX),
    "width": lambda: Affine((0,), (4,), 4, MATRIX),
    "columns": lambda: Affine((0,), (3,), 4, MATRIX, 2),
    "no columns of a matrix": lambda: Affine((0,), (0,), 0, MATRIX, 0),
    "two tables": lambda: Affine((0, 1), (3, 3), 4, MATRIX),
    "offset": lambda: Affine((0,), (3,), 4, MATRIX, 1, np.ones(3)),
    "offset of a table": lambda: Affine((0,), (6,), 8, MATRIX, 2, np.ones(4)),
    "divisor": lambda: Affine((0,), (3,), 4, MATRIX, 1, None, np.ones(5)),
    "over 0": lambda: Affine((0,), (3,), 4, MATRIX, 1, None, np.array([1.0, 0.0, 1, 1])),
    "one factor": lambda: Product((0,), (2,), 2, 2, 1),
    "three factors": lambda: Product((0, 1, 2), (2, 2, 2), 2, 2, 1),
    "factors": lambda: Product((0, 1), (2, 3), 2, 2, 1),
    "one table": lambda: Product((0,), (6,), 4, 1, 3),
    "tables": lambda: Product((0, 1), (6, 7), 4, 1, 3),
    "first table": lambda: Product((0, 1), (7, 6), 4, 1, 3),
    "inner": lambda: Product((0, 1), (6, 6), 4, 1, 0),
    "batch": lambda: Product((0, 1), (6, 6), 4, 0, 3),
    "negative": lambda: Product((0, 1), (6, 6), 4, -1, -3),
    "no entries": lambda: Product((0, 1), (0, 6), 0, 1, 3),
    "table's size": lambda: Product((0, 1), (6, 6), 5, 1, 3),
    "smooth size": lambda: Smooth((0,), (3,), 2, FUNCTIONS["log"]),
    "no columns": lambda: Max((0,), (0,), 2, 0),
    "row's length": lambda: Max((0,), (5,), 2, 3),
    "two arguments": lambda: Max((0, 1), (6, 6), 2, 3),
    "a norm's rows": lambda: Norm2((0,), (6,), 3, 3),
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


def test_slopes_and_jumps() -> None:
    node = RATIONAL["bent"].node
    assert node.slopes == ((F(0), F(0)), (F(2), F(2)), (F(4), F(0)))
    assert node.jumps == [0, 0]
    assert RATIONAL["abs"].node.jumps == [2]
    assert not node.flat
    assert RATIONAL["abs"].node.flat
    assert not RATIONAL["abs"].node.affine
    assert RATIONAL["third"].node.affine
    assert not RATIONAL["cube"].node.flat
    assert RATIONAL["constant pieces"].node.slopes == ((F(0),), (F(0),))
    assert Piecewise((0,), (1,), 1, (F(0),), ((F(3),), (F(3),))).jumps == [0]


TINY = F(1, 10**40)


def test_pieces_are_decided_exactly() -> None:
    """Beside a breakpoint by less than an enclosure can tell, and on it."""
    node = Piecewise((0,), (7,), 7, *BENT)
    piece, ties = node.decide(
        Exact.of([F(-1), -1 - TINY, -1 + TINY, F(1), 1 - TINY, 1 + TINY, F(0)])
    )
    assert piece.tolist() == [0, 0, 1, 1, 1, 2, 1]
    assert ties == {0: [0], 3: [3]}


def test_the_largest_entry_is_decided_exactly() -> None:
    node = Max((0,), (12,), 4, 3)
    third = F(1, 3)
    values = [
        F(1), F(2), F(0),
        third, third + TINY, F(0),
        third + TINY, third, third + TINY,
        F(5), F(5), F(5),
    ]  # fmt: skip
    piece, ties = node.decide(Exact.of(values))
    assert piece.tolist() == [1, 4, 6, 9]
    assert ties == {2: [6, 8], 3: [9, 10, 11]}


def test_what_enclosures_leave_open() -> None:
    """Rivals and signs that are not proved, also where something overflowed."""
    third = F(1, 3)
    e = Enclosure.of([F(1), F(2), third, third + TINY])
    assert e.largest(2) == [[1], [2, 3]]
    for bad in (math.nan, math.inf):
        for doubtful in (
            Enclosure(np.array([1.0, 2.0]), np.array([0.0, bad])),
            Enclosure(np.array([1.0, bad]), np.array([0.0, bad])),
            Enclosure(np.array([1.0, 2.0]), np.array([bad, 0.0])),
        ):
            assert doubtful.largest(2) == [[0, 1]]
            wide = np.flatnonzero(~np.isfinite(doubtful.rad)).tolist()
            assert [doubtful.signs()[k] for k in wide] == [0]
    assert e.signs(third).tolist() == [1, 1, 0, 0]
    assert Enclosure.of([third]).signs(third + TINY).tolist() == [0]
    assert Exact.of([third]).signs(third + TINY).tolist() == [-1]


def test_rows_that_are_zero_are_decided_exactly() -> None:
    node = Norm2((0,), (8,), 4, 2)
    piece, ties = node.decide(Exact.of([F(0), F(0), F(0), TINY**20, F(3), F(4), F(0), F(1)]))
    assert {row: way.fractions for row, way in piece.items()} == {0: [1, 0]}
    assert ties == {0: [0, 1]}


def test_norms_and_their_derivatives() -> None:
    node = Norm2((0,), (6,), 3, 2)
    u = Enclosure(np.array([3.0, 4.0, 0.0, 0.0, -5.0, 12.0]))
    assert inside(node.forward([[u]], {})[0], [F(5), F(0), F(13)])
    g = Enclosure(np.array([1.0, 2.0, -1.0]))
    truth = [F(3, 5), F(4, 5), F(6, 5), F(8, 5), F(5, 13), F(-12, 13)]
    for direction in (Exact.of([F(3) * TINY**20, F(4) * TINY**20]), Enclosure.of([F(3), F(4)])):
        (box,) = node.backward(g, [u], {1: direction})
        assert inside(box, truth)
        assert (box.rad < 1e-13).all()
        # Along a direction: the derivative is that of the rows, the second along (3, 4).
        way = Enclosure(np.array([1.0, 2.0, 1.0, -1.0, 0.0, 1.0]))
        _, slope = node.forward([[u, way]], {1: direction})
        assert inside(slope, [F(11, 5), F(-1, 5), F(12, 13)])
    # Where a row may be 0, nothing is said.
    around = Enclosure(np.array([1e-9, 0.0]), np.array([1e-8, 1e-8]))
    (box,) = Norm2((0,), (2,), 1, 2).backward(Enclosure(np.ones(1)), [around], {})
    assert not np.isfinite(box.rad).any()


IRRATIONAL: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "log": (Smooth((0,), (4,), 4, FUNCTIONS["log"]), np.log),
    "exp": (Smooth((0,), (4,), 4, FUNCTIONS["exp"]), np.exp),
    "pseudo_huber": (
        Smooth((0,), (4,), 4, FUNCTIONS["pseudo_huber"]), lambda u: np.sqrt(1 + u * u) - 1
    ),
    "logsumexp": (
        LogSumExp((0,), (4,), 2, 2), lambda u: np.log(np.exp(u.reshape(2, 2)).sum(axis=1))
    ),
    "norm2": (Norm2((0,), (4,), 2, 2), lambda u: np.sqrt((u.reshape(2, 2) ** 2).sum(axis=1))),
}  # fmt: skip


@pytest.mark.parametrize("name", IRRATIONAL)
def test_irrational_kinds(name: str) -> None:
    """Against their formulas, and their differences; of rationals there is no exact value."""
    pytest.importorskip("flint")
    node, formula = IRRATIONAL[name]
    u, v = np.array([0.5, 2.0, 1.0, 3.0]), np.array([1.0, -0.5, 0.25, 2.0])
    piece = {} if name == "norm2" else None
    value, slope = node.forward([[Enclosure(u), Enclosure(v)]], piece)
    assert np.allclose(value.mid, formula(u), rtol=1e-14)
    h = 1e-5
    assert np.allclose(slope.mid, (formula(u + h * v) - formula(u - h * v)) / (2 * h), rtol=1e-8)
    g = Enclosure(np.arange(1.0, node.size + 1.0))
    (back,) = node.backward(g, [Enclosure(u)], piece)
    assert np.isclose(back.mid @ v, g.mid @ slope.mid, rtol=1e-13)
    for box in (value, slope, back):
        assert (box.rad < 1e-12).all()
    assert not node.rational
    if name not in ("log", "logsumexp"):  # a logarithm has a rational slope
        with pytest.raises(Irrational):
            node.backward(Exact.of([1] * node.size), [Exact.of([F(1, 2)] * 4)], piece)
    for places in every(node.size):
        part, own, (need,) = cut(node, places, piece)
        some = part.forward([[Enclosure(u[need]), Enclosure(v[need])]], own)
        assert np.allclose(some[0].mid, value.mid[places], rtol=1e-15)
        assert np.allclose(some[1].mid, slope.mid[places], rtol=1e-15)


def test_smooth_kinds_where_floats_end() -> None:
    pytest.importorskip("flint")
    log = Smooth((0,), (1,), 1, FUNCTIONS["log"])
    (slope,) = log.backward(Exact.of([3]), [Exact.of([2])], None)
    assert slope.fractions == [F(3, 2)]
    for bad in ([F(0)], [F(-1)]):
        for array in (Exact.of(bad), Enclosure.of(bad)):
            with pytest.raises(NotCertifiableError, match="positive"):
                log.backward(type(array).of([1]), [array], None)
    with pytest.raises(NotCertifiableError, match="positive"):
        log.forward([[Enclosure(np.array([1.0]), np.array([1.0]))]], None)
    rows = LogSumExp((0,), (4,), 2, 2)
    (huge,) = rows.forward([[Enclosure(np.array([1e4, 1e4, -1e4, -1e4]))]], None)
    assert np.allclose(huge.mid, [1e4 + math.log(2.0), math.log(2.0) - 1e4], rtol=1e-14)
    (over,) = Smooth((0,), (1,), 1, FUNCTIONS["exp"]).forward([[Enclosure(np.array([1e9]))]], None)
    assert np.isinf(over.rad).all()


def test_what_stays_where_it_is_tied() -> None:
    """An entry left on a breakpoint is constant only if its argument is."""
    node = Piecewise((0,), (3,), 3, (F(0),), ((F(0), F(0)), (F(0), F(1))))  # max(u, 0)
    moving, piece = marks([False] * 3, [False] * 3), np.array([0, 0, 1])
    assert constant_of(node, [moving], piece, {}).tolist() == [ZERO, ZERO, 0]
    assert constant_of(node, [moving], piece, {0: [0]}).tolist() == [0, ZERO, 0]
    resting = marks([True] * 3, [True, False, True])
    loose = {0: [0], 1: [1], 2: [2]}
    assert constant_of(node, [resting], piece, loose).tolist() == [ZERO, CONSTANT, ZERO]
    # A constant piece that is not 0; and a function that is not 0 at 0.
    step = Piecewise((0,), (2,), 2, (F(0), F(1)), ((F(2), F(0)), (F(2), F(1)), (F(3), F(0))))
    moving = marks([False] * 2, [False] * 2)
    assert constant_of(step, [moving], np.array([0, 2]), {}).tolist() == [CONSTANT] * 2
    zero = marks([True] * 2, [True] * 2)
    assert constant_of(step, [zero], np.array([0, 0]), {0: [0], 1: [1]}).tolist() == [CONSTANT] * 2
    # Breakpoints below 0 are passed on the way to the piece that rules there.
    one = marks([True], [True])
    late = Piecewise((0,), (1,), 1, (F(-1),), ((F(5), F(4)), (F(0), F(-1))))
    assert constant_of(late, [one], np.array([1]), {}).tolist() == [ZERO]
    half = Piecewise((0,), (1,), 1, (F(1, 2),), ((F(1, 2), F(0)), (F(0), F(1))))
    assert constant_of(half, [one], np.array([0]), {0: [0]}).tolist() == [CONSTANT]
    early = Piecewise((0,), (1,), 1, (F(1),), ((F(0), F(-1)), (F(5), F(-6))))
    assert constant_of(early, [one], np.array([0]), {}).tolist() == [ZERO]


def test_what_stays_of_the_largest() -> None:
    """Tied entries must all be constant, or all 0."""
    node = Max((0,), (6,), 2, 3)
    mask = [True, True, False, False, True, True]
    still, piece = marks(mask, mask), np.array([0, 4])
    assert constant_of(node, [still], piece, {}).tolist() == [ZERO, ZERO]
    assert constant_of(node, [still], piece, {0: [0, 1]}).tolist() == [ZERO, ZERO]
    assert constant_of(node, [still], piece, {0: [0, 2]}).tolist() == [0, ZERO]
    assert constant_of(node, [still], piece, {1: [3, 4]}).tolist() == [ZERO, 0]
    some = marks(mask, [True, False, False, False, True, True])
    assert constant_of(node, [some], piece, {0: [0, 1]}).tolist() == [CONSTANT, ZERO]


def test_series_end_where_they_must() -> None:
    """Polynomials have a highest degree; enclosures end with the first power of t."""
    line = [Exact.of([1]), Exact.of([1])]
    power = Piecewise((0,), (1,), 1, (), ((F(0),) * MAX_DEGREE + (F(1),),))
    found = power.forward([line], np.zeros(1, dtype=np.intp))
    assert [c.fractions for c in found] == [
        [math.comb(MAX_DEGREE, k)] for k in range(MAX_DEGREE + 1)
    ]
    node = Product((0, 1), (1, 1), 1, 1, 1)
    with pytest.raises(NotCertifiableError, match="degree"):
        node.forward([found, line], None)
    boxes = [Enclosure.of([1]), Enclosure.of([1])]
    assert len(power.forward([boxes], np.zeros(1, dtype=np.intp))) == 2
    assert [c.fractions for c in nodes.plus(line, [Exact.of([2])])] == [[3], [1]]
    assert [c.fractions for c in nodes.plus([Exact.of([2])], line)] == [[3], [1]]
