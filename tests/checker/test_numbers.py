"""Bounds in float64 and exact numbers, against rationals, where rounding and range matter."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from goldstein.checker import exact, nodes, rationals, rounding
from goldstein.checker.enclosed import arrays
from goldstein.checker.errors import Irrational
from goldstein.checker.exact import Exact, exact_combination
from goldstein.checker.rationals import to_fraction
from goldstein.checker.verification import Verification
from goldstein.errors import InputError, InputTypeError, NotCertifiableError
from goldstein.numerics.exact import fraction_lower, sqrt_lower
from goldstein.storage.codec import as_number

F = Fraction
UNIT = F(1, 2**53)
SCALES = [1.0, 2.0**-1070, 2.0**-600, 2.0**-300, 2.0**-299, 2.0**299, 2.0**300, 2.0**600, 2.0**1000]


def squared(v: Any) -> Fraction:
    return sum((F(a) ** 2 for a in np.asarray(v).tolist()), F(0))


def above(bound: float, square: Fraction, room: int = 40) -> bool:
    """Is it an upper bound of a root, and within some units in the last place?"""
    least = F(bound) ** 2
    return square <= least <= square * (1 + room * UNIT) ** 2 + F(2.0**-1050) ** 2


@pytest.mark.parametrize("scale", SCALES)
def test_lengths_are_bounded_from_above(scale: float) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 10, 40):
        for _ in range(20):
            v = rng.standard_normal(size) * scale
            assert above(rounding.norm_upper(v), squared(v), 2 * size + 20)
            v = np.ones(size) * scale * (1 + 2.0**-52)
            assert above(rounding.norm_upper(v), squared(v), 2 * size + 20)
            x, y = rng.standard_normal((2, size)) * scale
            apart = [F(a) - F(b) for a, b in zip(y.tolist(), x.tolist())]
            square = sum((a * a for a in apart), F(0))
            assert square <= F(rounding.distance_upper(y, x)) ** 2


def test_many_rows_are_bounded_as_one_by_one() -> None:
    """Up to the last digits: some kernels sum the squares of a row that begins elsewhere anew."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((6, 7)) * 10.0 ** np.array([-320, -200, 0, 5, 200, 308])[:, None]
    alike = partial(pytest.approx, rel=1e-14, abs=0.0)
    assert rounding.norms_upper(rows) == alike([rounding.norm_upper(v) for v in rows])
    others = rng.standard_normal((6, 7))
    others[2] = rows[2]
    for x in (others, others[0]):
        each = [rounding.distance_upper(y, z) for y, z in zip(rows, np.broadcast_to(x, rows.shape))]
        assert rounding.distances_upper(rows, x) == alike(each)


def test_lengths_at_the_ends_of_the_range() -> None:
    assert rounding.norm_upper(np.zeros(3)) == 0.0
    assert rounding.norm_upper(np.zeros(0)) == 0.0
    assert rounding.distance_upper(np.ones(2), np.ones(2)) == 0.0
    assert rounding.distance_upper(np.array([1.0]), np.array([1.0 + 2.0**-52])) >= 2.0**-52
    assert rounding.norm_upper(np.array([1.7e308, 1.7e308])) == math.inf
    assert rounding.norm_upper(np.array([math.inf, 1.0])) == math.inf
    assert rounding.norm_upper(np.array([math.nan])) == math.inf
    assert rounding.distance_upper(np.array([1.7e308]), np.array([-1.7e308])) == math.inf
    for tiny in (2.0**-1074, 3 * 2.0**-1074):
        assert tiny <= rounding.norm_upper(np.array([tiny])) <= 8 * tiny
    # Whole numbers and float32 are taken as they are.
    assert 5.0 <= rounding.norm_upper(np.array([3, 4])) <= 5.0 * (1 + 1e-14)
    assert rounding.norm_upper(np.array([3e20, 4e20], dtype=np.float32)) * (1 + 1e-6) >= 5e20


def test_up_and_gamma() -> None:
    rng = np.random.default_rng(0)
    for value in rng.standard_normal(300).tolist():
        size = abs(value)
        assert F(rounding.up(size)) >= F(size) * (1 + 4 * UNIT)
        assert F(rounding.up(size, 2.0**-40)) >= F(size) * (1 + F(2.0**-40))
        assert F(rounding.up(size)) <= F(size) * (1 + 12 * UNIT)
    assert rounding.up(0.0) > 0.0
    for n in (1, 2, 1000, 10**6):
        assert F(rounding.gamma(n)) >= n * UNIT / (1 - n * UNIT)
        assert F(rounding.gamma(n)) <= F(102, 100) * n * UNIT


def combination(weights: Any, rows: Any) -> Fraction:
    """|sum w g| / sum w, squared."""
    used = [(F(w), [F(a) for a in row]) for w, row in zip(weights.tolist(), rows.tolist()) if w > 0]
    total = sum((w for w, _ in used), F(0))
    columns = [sum((w * row[k] for w, row in used), F(0)) for k in range(rows.shape[1])]
    return sum((c * c for c in columns), F(0)) / total**2


@pytest.mark.parametrize("scale", [1.0, 2.0**-1000, 2.0**-500, 2.0**-480, 2.0**400, 2.0**990])
def test_combinations_are_bounded_from_above(scale: float) -> None:
    rng = np.random.default_rng(0)
    for k, d in ((1, 1), (2, 3), (5, 2), (30, 4)):
        for nearly in (False, True, True):
            rows = rng.standard_normal((k, d)) * scale
            weights = rng.random(k) + 0.01
            if nearly and k > 1:  # the last row cancels the others, up to rounding
                rows[-1] = -(weights[:-1] @ rows[:-1]) / weights[-1]
            truth = combination(weights, rows)
            bound = rounding.combination_norm_upper(weights, rows)
            assert truth <= F(bound) ** 2
            slack = F(float(np.abs(rows).max())) * (F(1, 10**17) if nearly else F(1, 10**3))
            assert F(bound) ** 2 <= (truth * (1 + F(1, 10**9))) + (slack + F(2.0**-1010)) ** 2
            some = weights * (rng.random(k) < 0.5)
            some[0] = 1.0
            assert combination(some, rows) <= F(rounding.combination_norm_upper(some, rows)) ** 2


def test_rows_without_weight_add_nothing_to_large_combinations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(3).standard_normal((6, 50))
    rows[4] *= 1e6
    weights = np.array([0.3, 0.0, 0.2, 0.5, -0.7, 0.0])
    some = rounding.combination_norm_upper(weights, rows)
    monkeypatch.setattr(rounding, "_LARGE", 10)
    whole = rounding.combination_norm_upper(weights, rows)
    assert combination(weights.clip(0.0), rows) <= F(whole) ** 2
    assert whole == pytest.approx(some, rel=1e-12)
    assert rounding.combination_norm_upper(np.array([0.0, -1.0]), rows[:2]) == math.inf
    rows[1, 3] = math.inf  # believed of nobody: then there is no bound
    assert rounding.combination_norm_upper(weights, rows) == math.inf


def test_combinations_of_nothing_and_of_zeros() -> None:
    rows = np.array([[1.0, 2.0], [-1.0, -2.0]])
    assert rounding.combination_norm_upper(np.zeros(2), rows) == math.inf
    assert rounding.combination_norm_upper(np.array([-1.0, 0.0]), rows) == math.inf
    assert rounding.combination_norm_upper(np.array([0.5, 0.5]), rows) == 0.0
    assert rounding.combination_norm_upper(np.array([math.nan, 1.0]), rows) >= math.sqrt(5.0)
    tiny = np.array([[2.0**-1074], [2.0**-1074]])
    assert rounding.combination_norm_upper(np.array([0.5, 0.5]), tiny) >= 2.0**-1074
    huge = np.array([[1.7e308], [1.7e308]])
    assert rounding.combination_norm_upper(np.array([1.0, 1.0]), huge) >= 1.7e308


def test_exact_combinations_next_to_the_ends_of_the_range() -> None:
    """A product too small to be split exactly, and one too large."""
    exact = rounding._combination_norm_exact
    two = np.ones(2)
    small = np.array([[-1.0], [2.0**-1000]])
    assert combination(two, small) <= F(exact(two, small)) ** 2
    assert exact(two, small) <= 0.5 * (1 + 1e-12)
    tiny = np.array([[2.0**-1000], [-(2.0**-1000)]])
    assert exact(two, tiny) <= 2.0**-1000
    with np.errstate(over="ignore", invalid="ignore"):
        assert exact(np.array([10.0]), np.array([[1e308]])) == math.inf
        assert exact(np.ones(2), np.full((2, 1), 1.7e308)) == math.inf
        assert exact(np.full(2, 10.0), np.array([[1e308], [-1e308]])) == math.inf
    least = np.array([2.0**-1074])
    assert rounding.combination_norm_upper(least, np.array([[1.0]])) >= 1.0


def test_products_are_split_exactly() -> None:
    rng = np.random.default_rng(0)
    a, b = 1.0 + rng.random((2, 3000, 1))
    product = a * b
    rest = rounding.product_error(a, b, product)
    rows = zip(*(part.ravel().tolist() for part in (a, b, product, rest)), strict=True)
    assert all(F(p) * F(q) == F(r) + F(s) for p, q, r, s in rows)


def test_cancelling_products_are_summed_exactly() -> None:
    """Products whose last digits matter: the plain bound is 1e-16, the truth far below."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = 1.0 + rng.random(2)
        weights = np.array([a, b])
        rows = np.array([[b], [-a]])  # a b - b a = 0
        assert rounding.combination_norm_upper(weights, rows) == 0.0
        shifted = rows + np.array([[0.0], [2.0**-52]])
        truth = combination(weights, shifted)
        bound = rounding.combination_norm_upper(weights, shifted)
        assert truth <= F(bound) ** 2 <= truth * (1 + F(1, 10**9))


def test_large_matrices_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    weights, rows = rng.random(3), rng.standard_normal((3, 50))
    whole = rounding._mean_moduli(weights, rows)
    honest = rounding.combination_norm_upper(weights, rows)
    for large in (1, 6, 149, 150):
        monkeypatch.setattr(rounding, "_LARGE", large)
        assert np.allclose(rounding._mean_moduli(weights, rows), whole, rtol=1e-15)
        bound = rounding.combination_norm_upper(weights, rows)
        assert combination(weights, rows) <= F(bound) ** 2
        assert bound <= honest * (1 + 1e-12)


# --- rationals -------------------------------------------------------------------------------


def test_roots_and_roundings_of_rationals() -> None:
    rng = np.random.default_rng(0)
    values = [F(int(a), int(b)) for a, b in rng.integers(1, 10**9, (200, 2))]
    values += [F(2) ** k * F(3, 7) for k in range(-900, 900, 60)]
    for q in values:
        high, low = rationals.sqrt_upper(q), sqrt_lower(q)
        assert F(low) ** 2 <= q <= F(high) ** 2
        assert high <= low * (1 + 2.0**-51)
        up, down = rationals.fraction_upper(q), fraction_lower(q)
        assert F(down) <= q <= F(up)
        assert up == down or math.nextafter(down, math.inf) == up
        assert rationals.fraction_upper(-q) == -down
    for root in (F(3, 2), F(1), F(2) ** 300, F(7, 2**400)):
        beside = root**2 * (1 + F(1, 2**300))  # hardly above a square
        assert beside <= F(rationals.sqrt_upper(beside)) ** 2
        beside = root**2 * (1 - F(1, 2**300))
        assert F(sqrt_lower(beside)) ** 2 <= beside
    for q in (F(9, 4), F(0), F(1, 4), F(2) ** 100, F(1, 2**1000)):
        assert F(rationals.sqrt_upper(q)) ** 2 == q == F(sqrt_lower(q)) ** 2
        assert F(rationals.fraction_upper(q)) == q
    huge = F(10) ** 400
    assert rationals.fraction_upper(huge) == math.inf
    assert rationals.fraction_upper(-huge) == -np.finfo(float).max
    assert fraction_lower(huge) == np.finfo(float).max
    assert (rationals.nearest_float(huge), rationals.nearest_float(-huge)) == (math.inf, -math.inf)
    assert rationals.sqrt_upper(huge**2) == math.inf
    tiny = F(1, 10**400)
    assert rationals.fraction_upper(tiny) == 2.0**-1074
    assert rationals.sqrt_upper(tiny) >= 1e-200
    assert F(rationals.sqrt_upper(tiny)) ** 2 <= tiny * (1 + F(1, 2**50))
    with pytest.raises(ValueError, match="nonnegative"):
        rationals.sqrt_upper(F(-1, 10**400))


def test_vectors_of_rationals() -> None:
    left, right = [F(1, 3), 0.5, 2], [3.0, F(1, 2), -1]
    truth = 1 + F(1, 4) - 2
    assert rationals.exact_dot(left, right) == truth
    assert rationals.exact_dot(np.array([1e16, 1.0, -1e16]), np.ones(3)) == 1
    assert rationals.exact_dot(np.array([1, 2]), np.array([3, 4])) == 11
    assert rationals.exact_dot(np.array([1.0, 2.0]), [F(1, 3), F(1, 3)]) == 1
    assert exact_combination([F(1, 3), -2], [[3, F(1, 2)], [0.5, 1]]) == [0, F(-11, 6)]
    assert exact_combination([0, 1], [[3.0], [F(1, 7)]]) == [F(1, 7)]
    assert rationals.squared_norm([F(1, 3), 0.5]) == F(13, 36)
    assert rationals.squared_distance([F(1, 3), 1.0], [F(1, 3), 3]) == 4
    assert rationals.squared_distance(np.array([1.0, 2.0]), [F(1), F(2)]) == 0
    assert rationals.squared_distance(np.array([1, 2]), np.array([4, 6])) == 25
    assert rationals.common_denominator([F(1, 6), 0.25, np.int64(2)]) == ([2, 3, 24], 12)
    assert rationals.to_fractions(np.array([1, 2])) == [1, 2]
    assert to_fraction(np.int64(3)) == 3
    for bad in (math.nan, math.inf):
        with pytest.raises(InputError):
            to_fraction(bad)
        with pytest.raises(InputError):
            rationals.common_denominator([1.0, bad])
    for wrong in (
        lambda: rationals.exact_dot([1], [1, 2]),
        lambda: exact_combination([1], [[1], [2]]),
        lambda: exact_combination([], []),
        lambda: exact_combination([1, 1], [[1], [1, 2]]),
        lambda: rationals.squared_distance([1], [1, 2]),
    ):
        with pytest.raises(ValueError, match=r"zip|reshape|mismatch"):
            wrong()


READ: list[tuple[Any, Any]] = [
    (np.array([0.5, -0.0]), [0.5, 0.0]), (np.float32([0.1]), [float(np.float32(0.1))]),
    ([1, 2.5], [1.0, 2.5]), (True, 1.0), ([False, True], [0.0, 1.0]), (np.uint8([200]), [200.0]),
    (2**53, 2.0**53), ([2**53 + 2, 0.5], [2.0**53 + 2, 0.5]), (np.array([2**60]), [2.0**60]),
    (-(2**70), -(2.0**70)), (F(1, 4), 0.25), ([F(1, 4), 1], [0.25, 1.0]), (Decimal("0.5"), 0.5),
    (np.longdouble(0.25), 0.25), (np.array([[np.longdouble(3)]]), [[3.0]]), ([], []),
    (np.array([], dtype=object), []), (np.float16(0.5), 0.5), ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    ([np.float64(1e300), 2**60], [1e300, 2.0**60]), (np.bool_(True), 1.0), (np.int64(3), 3.0),
]  # fmt: skip
LONG = np.longdouble(1) + np.longdouble(2) ** -60
REFUSED: list[Any] = [
    2**53 + 1, -(2**53) - 1, [2**53 + 1, 0.5], np.array([1, 2**53 + 1]), np.uint64([2**64 - 1]),
    F(1, 3), [0.5, F(1, 3)], Decimal("0.1"), LONG, [LONG], np.array([1.0, LONG]), F(10) ** 400,
    -(10**400), F(1, 10**400), np.longdouble("1e400"), [[2**53 + 1], [1]],
]  # fmt: skip
NO_NUMBERS: list[Any] = [
    "1", ["1"], b"1", 1j, [1j], None, [None], [[1], [2, 3]], np.datetime64("2020"), {1: 2},
    object(), np.ma.masked_array([1.0, 2.0]), np.ma.masked_array([1.0], mask=[True]),
    [Decimal(1), "a"],
]  # fmt: skip


@pytest.mark.parametrize("data", READ, ids=str)
def test_numbers_are_read_exactly(data: tuple[Any, Any]) -> None:
    given, numbers = data
    for finite in (True, False):
        found = rationals.exact_floats(given, finite=finite)
        assert found.dtype == np.float64
        assert found.tolist() == numbers
        assert found.shape == np.shape(numbers)


@pytest.mark.parametrize("given", REFUSED, ids=str)
def test_numbers_are_not_rounded(given: Any) -> None:
    for finite in (True, False):
        with pytest.raises(InputError, match=r"b is .*not a float64 number|b is inf"):
            rationals.exact_floats(given, "b", finite=finite)


@pytest.mark.parametrize("given", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_refused(given: Any) -> None:
    with pytest.raises(InputTypeError, match="b "):
        rationals.exact_floats(given, "b", finite=False)


def test_infinities_are_read_where_they_are_allowed() -> None:
    for given in (np.array([np.inf, 1.0]), [np.inf, 2**60], [-np.inf, F(1, 2)], [np.nan, LONG * 0],
                  np.array([np.inf], dtype=np.longdouble), [np.float32(np.inf)]):  # fmt: skip
        found = rationals.exact_floats(given, finite=False)
        assert not np.isfinite(found[0])
        with pytest.raises(InputError):
            rationals.exact_floats(given)
    with pytest.raises(InputError):
        rationals.exact_floats([Decimal("inf")], finite=False)


def test_sparse_matrices_are_read_exactly() -> None:
    rows = np.array([[200.0, 0.0], [0.0, 3.0]])
    for form in ("csr", "csc", "coo", "bsr", "dia", "dok", "lil"):
        found = rationals.exact_sparse(sparse.coo_array(rows).asformat(form), "A")
        assert found.toarray().tolist() == rows.tolist()
        wrong = sparse.coo_array(np.array([[2**53 + 1, 0], [0, 1]])).asformat(form)
        with pytest.raises(InputError, match="A is 9007199254740993"):
            rationals.exact_sparse(wrong, "A")
    twice = sparse.coo_array((np.array([200, 100], dtype=np.uint8), ([0, 0], [0, 0])), shape=(1, 1))
    assert rationals.exact_sparse(twice, "A").toarray().tolist() == [[300.0]]


def test_quotients_by_zero_have_no_number() -> None:
    with pytest.raises(Irrational, match="0"):
        Exact.of([1, 0]).reciprocal()
    assert Exact.of([F(2, 3), -4]).reciprocal().fractions == [F(3, 2), F(-1, 4)]
    reduced = Exact.of([F(1, 3**400)]) * Exact.of([3**400])
    assert (reduced.top.tolist(), reduced.den) == ([1], 1)


def series(*coefficients: list[Any]) -> list[Exact]:
    return [Exact.of(c) for c in coefficients]


def test_polynomials(monkeypatch: pytest.MonkeyPatch) -> None:
    def times(a: list[Exact], b: list[Exact]) -> list[Any]:
        return [c.fractions for c in nodes.times(a, b, lambda p, q: p * q)]

    assert [c.fractions for c in nodes.plus(series([2], [10]), series([3, 4][:1]))] == [[5], [10]]
    assert [c.fractions for c in nodes.plus(series([1]), series([3], [F(1, 3)]))] == [
        [4], [F(1, 3)]
    ]  # fmt: skip
    assert times(series([1], [2]), series([3], [0], [5])) == [[3], [6], [5], [10]]
    assert len(times(series([1]) * 33, series([1]) * 33)) == 65
    with pytest.raises(NotCertifiableError, match="degree"):
        times(series([1]) * 33, series([1]) * 34)
    monkeypatch.setattr(exact, "MAX_BITS", 10)
    for fits, long in ((F(1023), F(1024)), (F(1, 1023), F(1, 1024))):
        times(series([fits]), series([fits]))
        for factors in ((series([1]), series([1], [long])), (series([1, long]), series([1, 1]))):
            with pytest.raises(Irrational):
                times(*factors)


# --- inner products of floats ------------------------------------------------------------------


def test_inner_products_of_floats_are_exact() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 70, 200):
        for spread in (0, 30, 300):
            left, right = (
                rng.standard_normal(size) * 2.0 ** rng.integers(-spread, spread + 1, size)
                for _ in range(2)
            )
            left[rng.random(size) < 0.2] = 0.0
            truth = sum((F(a) * F(b) for a, b in zip(left.tolist(), right.tolist())), F(0))
            assert arrays.float_dot(left, right) == truth
    for a, b in ((2.0**-1074, 2.0**-1074), (-(2.0**1023), 2.0**1023), (5.0, -0.0)):
        assert arrays.float_dot(np.array([a, 1.0]), np.array([b, 1.0])) == F(a) * F(b) + 1
    most = np.nextafter(2.0, 0.0)
    many = np.full(5000, most)
    assert arrays.float_dot(many, -many) == -5000 * F(most) ** 2
    assert arrays.float_dot(np.zeros(0), np.zeros(0)) == 0
    for left, right in (
        (np.ones(2), np.ones(3)),
        (np.array([math.nan]), np.ones(1)),
        (np.ones(1), np.array([math.inf])),
    ):
        with pytest.raises(InputError):
            arrays.float_dot(left, right)


def test_rows_times_exact_vectors() -> None:
    rng = np.random.default_rng(0)
    for share in (0.0, 0.3, 1.0):
        values = [F(int(a), 7 if rng.random() < share else 8) for a in rng.integers(-99, 99, 40)]
        table = rng.standard_normal((20, 40)) * (rng.random((20, 40)) < 0.5)
        truth = [sum((F(a) * q for a, q in zip(row, values)), F(0)) for row in table.tolist()]
        assert arrays.row_products(sparse.csr_array(table), values) == truth


# --- verdicts --------------------------------------------------------------------------------


def test_a_verdict_is_that_of_all_checks() -> None:
    found = Verification(eps=1.0, delta=2.0, label="conditional")
    assert not found.ok
    assert not found
    assert found.add("one", True, "fine") is True
    assert found.ok
    assert found
    assert found.add("two", False, "wrong") is False
    assert found.add("three", True, "fine")
    assert not found.ok
    assert not found
    assert [(c.name, c.ok) for c in found.checks] == [("one", 1), ("two", 0), ("three", 1)]


def test_plain_numbers() -> None:
    for good in (1, 0.5, np.float64(2.0), np.float32(0.5), np.int64(3), math.inf):
        assert as_number("eps", good) == good
    for bad in (True, False, "1", None, 1j, [1.0], F(1, 2), np.bool_(True), np.array(1.0)):
        with pytest.raises(InputTypeError):
            as_number("eps", bad)
    with pytest.raises(InputError, match="range"):
        as_number("eps", 10**400)
