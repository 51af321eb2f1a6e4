"""Enclosures contain what they say, compared with exact rationals where rounding is at its worst.

The midpoints are such that sums are half way between two floats, the radii such that sums of them
round down about every second time: nothing is left of a bound that forgets one of its roundings.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from goldstein.checker.enclosed import arrays
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.errors import MissingExtraError

UNIT = 2.0**-53
MIDS = [1.0, -1.0, 1.0 + 2.0**-52, UNIT, -UNIT, 3 * UNIT, 2.0, 0.0, 1.5, -3.0, 2.0**27 + 1.0]


def sample(seed: int, size: int, exact: bool = False) -> Enclosure:
    rng = np.random.default_rng(seed)
    mid = rng.choice(MIDS, size) * rng.choice([1.0, 1.0, 1.0 + 2.0**-52], size)
    rad = rng.random(size) * rng.choice([0.0, UNIT, 2.0**-40, 0.3], size)
    return Enclosure(mid, None if exact else rad)


def ends(e: Enclosure) -> list[tuple[Fraction, Fraction]]:
    """Return the exact ends of all entries."""
    pairs = zip(e.mid.ravel().tolist(), e.rad.ravel().tolist())
    return [(Fraction(m) - Fraction(r), Fraction(m) + Fraction(r)) for m, r in pairs]


def within(e: Enclosure, values: list[list[Fraction]], slack: float = 4.0) -> None:
    """Require each entry to contain its values, and to be hardly larger than needed."""
    for (low, high), inside in zip(ends(e), values, strict=True):
        assert low <= min(inside)
        assert max(inside) <= high
        needed = max(inside) - min(inside) + max(map(abs, inside)) * Fraction(UNIT)
        assert high - low <= Fraction(slack) * needed + Fraction(2.0**-900)


OPERATIONS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
}


@pytest.mark.parametrize("exact", [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str, exact: tuple[bool, bool]) -> None:
    operation = OPERATIONS[name]
    a, b = (sample(seed, 250, e) for seed, e in enumerate(exact))
    truth = [[operation(p, q) for p, q in product(*pair)] for pair in zip(ends(a), ends(b))]
    within(operation(a, b), truth, 8.0)
    if exact[1]:  # a plain array is exact
        within(operation(a, b.mid), truth, 8.0)


def test_numbers_that_are_no_floats() -> None:
    third, tenth = Fraction(1, 3), Fraction(1, 10)
    e = Enclosure.of([third, Fraction(1, 2), -tenth, Fraction(10) ** 400, Fraction(0)])
    assert e.mid.tolist()[:3] == [1 / 3, 0.5, -0.1]
    assert (e.rad == 0.0).tolist() == [False, True, False, False, True]
    assert np.isinf(e.mid[3])
    within(e[:3], [[third], [Fraction(1, 2)], [-tenth]])
    # The error of rounding is half a unit at worst, of the smallest numbers in its binade.
    worst = 1 + Fraction(1, 2**53) - Fraction(1, 2**200)
    within(Enclosure.of([worst]), [[worst]])
    tiny = Fraction(3, 2**1075)  # half way between two subnormal numbers
    low, high = ends(Enclosure.of([tiny]))[0]
    assert low <= tiny <= high


def test_reciprocals_and_quotients() -> None:
    e = sample(3, 800)
    e = e[np.abs(e.mid) > 1.001 * e.rad]
    truth = [[1 / end for end in pair] for pair in ends(e)]
    wide = e.rad > 0.2 * np.abs(e.mid)  # around the reciprocal of the middle an interval is wider
    answer = e.reciprocal()
    for (low, high), inside in zip(ends(answer), truth, strict=True):
        assert low <= min(inside)
        assert max(inside) <= high
    narrow = np.flatnonzero(~wide)
    within(answer[narrow], [truth[k] for k in narrow], 16.0)
    over = sample(4, len(truth))
    quotients = [[p * q for p, q in product(a, b)] for a, b in zip(ends(over), truth)]
    for (low, high), inside in zip(ends(over * answer), quotients, strict=True):
        assert low <= min(inside)
        assert max(inside) <= high


def test_an_interval_around_zero_has_no_reciprocal() -> None:
    e = Enclosure(np.array([1.0, -1.0, 0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0, 2.0, 1 - UNIT]))
    assert np.isinf(e.reciprocal().rad[:4]).all()


def test_roots() -> None:
    mid = np.array([4.0, 2.0, 1.0, 3.0, 0.0, 1e-3, 0.25, 1.0 + 2.0**-52])
    rad = np.array([0.0, 0.0, 0.5, 3.5, 0.0, 1e-4, 0.0, 0.0])
    answer = Enclosure(mid, rad).root()
    for (low, high), (least, most) in zip(ends(answer), ends(Enclosure(mid, rad))):
        assert low <= 0 or low**2 <= least
        assert high >= 0
        assert high**2 >= most
    exact = rad == 0.0
    assert (answer.rad[exact] <= 2.0**-48 * answer.mid[exact] + 2.0**-400).all()
    assert (answer.mid >= 0.0).all()
    rng = np.random.default_rng(0)
    many = Enclosure(rng.random(500) * 4.0 ** rng.integers(-5, 5, 500), rng.random(500) * 2.0**-50)
    for (low, high), (least, most) in zip(ends(many.root()), ends(many)):
        assert low <= 0 or low**2 <= max(least, 0)
        assert high**2 >= most


def matrix_truth(A: Enclosure, v: Enclosure) -> list[list[Fraction]]:
    """The ends of every row of A times v."""
    found = []
    columns = ends(v)
    for row in range(A.shape[0]):
        corners = [[p * q for p, q in product(a, b)] for a, b in zip(ends(A[row]), columns)]
        found.append([sum(map(min, corners), Fraction(0)), sum(map(max, corners), Fraction(0))])
    return found


def contained(e: Enclosure, truth: list[list[Fraction]], terms: int) -> None:
    for (low, high), (least, most), mid in zip(ends(e), truth, e.mid.ravel(), strict=True):
        assert low <= least
        assert most <= high
        room = Fraction(64 * terms * UNIT) * max(1, abs(Fraction(mid)), most - least)
        assert high - low <= 2 * (most - least) + Fraction(2**56) * room


@pytest.mark.parametrize("terms", [1, 2, 3, 17])
def test_products_of_tables(terms: int) -> None:
    A, v = sample(5, 40 * terms).reshape(40, terms), sample(6, terms)
    contained(A @ v, matrix_truth(A, v), terms)
    plain = Enclosure(A.mid)
    truth = matrix_truth(plain, v)
    contained(plain @ v, truth, terms)
    still = Enclosure(v.mid)
    exact = matrix_truth(plain, still)
    for answer in (plain @ still, A.mid @ still):
        contained(answer, exact, terms)
    contained(A.mid @ v, truth, terms)
    contained(Enclosure.__rmatmul__(v, sparse.csr_array(A.mid)), truth, terms)
    square = v.reshape(terms, 1)
    contained((A @ square).reshape(-1), matrix_truth(A, v), terms)


def test_sums() -> None:
    for terms in (1, 2, 5, 40):
        for seed in range(40):
            e = sample(seed, terms)
            low, high = (sum((pair[k] for pair in ends(e)), Fraction(0)) for k in (0, 1))
            contained(e.sum().reshape(1), [[low, high]], terms)


def test_scattered_sums() -> None:
    rng = np.random.default_rng(0)
    for terms, size in ((30, 5), (4, 50)):
        e, places = sample(7, terms), rng.integers(0, size, terms)
        answer = e.scattered(places, size)
        for k in range(size):
            pairs = [pair for pair, place in zip(ends(e), places) if place == k]
            low, high = (sum((pair[k] for pair in pairs), Fraction(0)) for k in (0, 1))
            contained(answer[k].reshape(1), [[low, high]], terms)
    alone = Enclosure(np.array([1.0, 3.0]), np.array([0.5, 0.0])).scattered(np.array([2, 0]), 3)
    assert alone.mid.tolist() == [3.0, 0.0, 1.0]
    assert alone.rad.tolist() == [0.0, 0.0, 0.5]


def test_products_that_underflow() -> None:
    small = Enclosure(np.full(3, 2.0**-600))
    for (low, high), truth in zip(ends(small * small), [Fraction(2) ** -1200] * 3):
        assert low <= truth <= high
    # What was lost is multiplied by a large number.
    A, v = np.full((1, 3), 2.0**1000), Enclosure(np.full(3, 2.0**-1074), np.full(3, 2.0**-1074))
    truth = matrix_truth(Enclosure(A), v)
    for e in (Enclosure(A) @ v, A @ v):
        low, high = ends(e)[0]
        assert low <= truth[0][0]
        assert truth[0][1] <= high


def test_what_overflows_says_nothing() -> None:
    huge = Enclosure(np.array([1e308, 1e308, -1e308]))
    assert np.isinf(huge.sum().rad)
    # Other kernels add in another order, which may not overflow: then the truth is inside.
    product = np.ones((1, 3)) @ huge
    ((low, high),) = [(-math.inf, math.inf)] if np.isinf(product.rad).all() else ends(product)
    assert low <= Fraction(1e308) <= high
    assert np.isinf((np.ones((1, 3)) @ Enclosure(np.full(3, 1e308))).rad).all()


def test_signs_are_proved_strictly() -> None:
    e = Enclosure(np.array([1.0, -1.0, 1.0, -1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.9, 0.9, 0, 0]))
    assert e.signs().tolist() == [0, 0, 1, -1, 0, 1]
    assert e.signs(Fraction(1)).tolist() == [0, -1, 0, -1, -1, 0]


def test_bounds_and_sizes() -> None:
    e = sample(8, 500)
    low, high = e.ends()
    for (least, most), bottom, top, size in zip(ends(e), low, high, e.magnitude):
        assert Fraction(bottom) <= least
        assert most <= Fraction(top)
        assert max(abs(least), abs(most)) <= Fraction(size)
        assert Fraction(size) <= max(abs(least), abs(most)) * (1 + Fraction(1, 2**40)) + Fraction(
            2.0**-900
        )


def test_functions_of_balls() -> None:
    pytest.importorskip("flint")
    e = Enclosure(np.array([[0.5, -1.0], [3.0, 0.0]]), np.array([[0.0, 0.25], [2.0**-40, 0.0]]))
    answer = e.balls("exp")
    assert answer.shape == (2, 2)
    with localcontext() as context:
        context.prec = 60
        for (low, high), inside in zip(ends(answer), ends(e)):
            for end in inside:
                value = (Decimal(end.numerator) / Decimal(end.denominator)).exp()
                assert low - Fraction(1, 10**50) <= Fraction(value) <= high + Fraction(1, 10**50)
    assert (answer.rad[0, 0], answer.rad[1, 1]) < (1e-14, 1e-14)
    assert (answer.rad > 0).all()


def test_functions_of_balls_need_flint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "flint", lambda: None)
    with pytest.raises(MissingExtraError, match="python-flint"):
        Enclosure(np.ones(1)).balls("log")


def test_the_logarithm_of_one() -> None:
    pytest.importorskip("flint")
    nothing = Enclosure(np.ones(1)).balls("log")
    assert nothing.mid.tolist() == [0.0]
    assert 0.0 <= nothing.rad[0] < 1e-200


@pytest.mark.parametrize("block", [1, 5, 12, 13])
def test_moduli_block_by_block(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_BLOCK", block)
    rng = np.random.default_rng(0)
    for shape in ((3, 4), (4, 3), (1, 12), (12, 1), (6, 6)):
        A, v = rng.integers(-4, 5, shape).astype(float), np.arange(1.0, shape[1] + 1.0)
        for matrix in (A, sparse.csr_array(A)):
            assert arrays._absolute_product(matrix, v).tolist() == (np.abs(A) @ v).tolist()
        table = np.stack([v, 2.0 * v], axis=1)
        assert arrays._absolute_product(A, table).tolist() == (np.abs(A) @ table).tolist()
    row = np.arange(-20.0, 20.0)
    assert arrays._absolute_product(row, np.ones(40)) == np.abs(row).sum()


@pytest.mark.parametrize("terms", [2, 3, 9, 2000])
def test_sums_that_lose_every_small_term(terms: int) -> None:
    """1 plus numbers just too small to change it, as midpoints and as radii."""
    lost = np.full(terms, 0.9 * UNIT)
    lost[0] = 1.0
    truth = sum(map(Fraction, lost.tolist()), Fraction(0))
    row, nothing = np.ones((1, terms)), np.zeros(terms)
    tall = np.ones((terms + 3, terms))
    for v, inside in (
        (Enclosure(lost), [truth]),
        (Enclosure(nothing, lost), [truth, -truth]),
        (Enclosure(-lost), [-truth]),
    ):
        answers = [
            Enclosure(row) @ v, row @ v, tall @ v, Enclosure(tall) @ v, v @ row.T, v.sum(),
            Enclosure.__rmatmul__(v, sparse.csr_array(row)),
            v.scattered(np.zeros(terms, dtype=int), 1),
            (Enclosure(tall.T[:, :2].T) @ v),
        ]  # fmt: skip
        for answer in answers:
            for low, high in ends(answer):
                assert low <= min(inside)
                assert max(inside) <= high
    wide = Enclosure(nothing[None], lost[None])
    for low, high in ends(wide @ Enclosure(np.ones(terms))):
        assert low <= -truth
        assert truth <= high


@pytest.mark.parametrize("exact_side", ["left", "right"])
def test_products_with_subnormal_allowances(exact_side: str) -> None:
    """What the allowance of a tiny factor loses to underflow, a huge factor makes visible."""
    huge = np.array([[2.0**1000, 2.0**946]])
    tiny = np.full(2, 2.0**-1060)  # the products are 2^-60 and 2^-114: half a digit of the sum
    found = huge @ Enclosure(tiny) if exact_side == "left" else Enclosure(huge) @ tiny
    true = Fraction(2) ** -60 + Fraction(2) ** -114
    assert Fraction(float(found.mid[0])) != true  # it was rounded
    assert abs(Fraction(float(found.mid[0])) - true) <= Fraction(float(found.rad[0]))
