"""The checker of proof files: thresholds, numbers, enclosures, refusals, one by one."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.differential import load_checker
from benchmarks.shape import lines_of_code

F = Fraction
TINY = F(1, 10**400)
#: |w_1| + 2 |w_2| + w_2
NODES = [
    {"op": "variable", "size": 2},
    {"op": "piecewise", "of": [0], "breakpoints": ["0"], "pieces": [["0", "-1"], ["0", "1"]]},
    {"op": "affine", "of": [1], "columns": 1, "width": 2, "rows": [["1", "2"]]},
    {"op": "affine", "of": [0], "columns": 1, "width": 2, "rows": [["1"]], "at": [[1]]},
    {"op": "add", "of": [2, 3]},
]
NEAR = {
    "schema": "goldstein-proof", "version": 1, "x": ["3/8", "1/2"],
    "claim": {"kind": "near", "eps": "1/2", "delta": "5/8"},
    "evidence": {
        "pivot": ["0", "0"], "directions": [["1", "1"], ["-1", "-1"]], "weights": ["1", "3"],
    },
    "function": NODES,
}  # fmt: skip
GOLDSTEIN = {
    **NEAR,
    "claim": {"kind": "goldstein", "eps": "1/2", "delta": "5/8"},
    "evidence": {"points": [["3/8", "9/8"], ["-1/8", "1/8"]], "weights": ["1", "3"]},
}


@pytest.fixture(scope="module")
def checker() -> Any:
    return load_checker()


@pytest.fixture
def judge(checker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def verdict(document: Any, **changes: Any) -> int:
        altered = copy.deepcopy(document)
        for place, value in changes.items():
            part, _, name = place.rpartition("__")
            (altered[part] if part else altered)[name] = value
        path = tmp_path / "proof.json"
        path.write_text(json.dumps(altered))
        code = checker.main([str(path)])
        said = capsys.readouterr().out
        assert said.startswith(("TRUE: ", "FALSE: ", "UNREADABLE: ")[code])
        return int(code)

    return verdict


def text(q: Fraction) -> str:
    return f"{q.numerator}/{q.denominator}"


def test_thresholds_of_a_near_claim(judge: Any) -> None:
    """Gradients (1, 3) and (-1, -1), with weights 1 and 3: (-1/2, 0)."""
    assert judge(NEAR) == 0
    assert judge(NEAR, claim__eps=text(F(1, 2) - TINY)) == 1
    assert judge(NEAR, claim__delta=text(F(5, 8) - TINY)) == 1
    assert judge(NEAR, x=["3/8", text(F(1, 2) + TINY)]) == 1
    assert judge(NEAR, x=["0", "0"], claim__delta="0") == 0
    for name in ("claim__eps", "claim__delta"):
        assert judge(NEAR, **{name: text(-TINY)}) == 1
    assert judge(NEAR, evidence__weights=["1", text(3 + TINY)]) == 1
    assert judge(NEAR, evidence__weights=["2", "6"]) == 0
    assert judge(NEAR, evidence__weights=["0", "0"], claim__eps="9") == 1
    assert judge(NEAR, evidence__weights=["4", text(-TINY)], claim__eps="9") == 1
    assert judge(NEAR, evidence__weights=["1", "0"], claim__eps="4") == 0
    assert judge(NEAR, evidence__weights=["1", "0"], claim__eps="3") == 1
    # What has no weight is not looked at.
    ways = [["1", "1"], ["-1", "-1"], ["1", "0"]]
    three = {"evidence__directions": ways, "claim__eps": "1"}
    assert judge(NEAR, evidence__weights=["1", "3", "0"], **three) == 0
    assert judge(NEAR, evidence__weights=["1", "3", text(TINY)], **three) == 1
    # Beside the kinks there is one gradient.
    assert judge(NEAR, evidence__pivot=[text(TINY), "0"]) == 1
    assert judge(NEAR, evidence__pivot=["0", text(-TINY)]) == 1


def test_thresholds_of_a_goldstein_claim(judge: Any) -> None:
    """Gradients (1, 3) and (-1, 3), and (-1, -1) with a point on the other side."""
    assert judge(GOLDSTEIN) == 1
    points = [["3/8", "9/8"], ["-1/8", "-1/8"]]
    honest = {"evidence__points": points, "claim__delta": "1"}
    assert judge(GOLDSTEIN, **honest) == 0
    assert judge(GOLDSTEIN, **honest, claim__eps=text(F(1, 2) - TINY)) == 1
    # The further point is sqrt(41) / 8 away.
    assert judge(GOLDSTEIN, evidence__points=points, claim__delta="800390/1000000") == 1
    assert judge(GOLDSTEIN, evidence__points=points, claim__delta="800391/1000000") == 0
    on_kink = [["3/8", "9/8"], ["0", "-1/8"]]
    assert judge(GOLDSTEIN, evidence__points=on_kink, claim__eps="9") == 1
    without = [["3/8", "9/8"], ["-1/8", "-1/8"], ["0", "99"]]
    weights = {"evidence__weights": ["1", "3", "0"]}
    assert judge(GOLDSTEIN, evidence__points=without, **weights, claim__delta="1") == 0


UNREADABLE: dict[str, dict[str, Any]] = {
    "schema": {"schema": "goldstein"},
    "version": {"version": 3},
    "version, no number": {"version": True},
    "a field more": {"note": "1"},
    "claim's fields": {"claim__note": "1"},
    "kind": {"claim__kind": "kkt"},
    "evidence of another kind": {"claim__kind": "goldstein"},
    "evidence's fields": {"evidence__points": [["0", "0"]]},
    "x's length": {"x": ["0"]},
    "x's type": {"x": "00"},
    "pivot's length": {"evidence__pivot": ["0"]},
    "a direction's length": {"evidence__directions": [["1", "1"], ["-1"]]},
    "a weight too few": {"evidence__weights": ["1"]},
    "a weight too many": {"evidence__weights": ["1", "1", "1"]},
    "no function": {"function": []},
    "two numbers": {"function": NODES[:2]},
    "no variable": {"function": NODES[1:]},
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_files_that_are_no_proofs(name: str, judge: Any) -> None:
    assert judge(NEAR, **UNREADABLE[name]) in ((1, 2) if name == "pivot's length" else (2,))


def nodes(**fields: Any) -> list[dict[str, Any]]:
    """A variable of two entries, a node, and a sum that makes one number of it."""
    size = fields.pop("size", 2)
    total = {"op": "affine", "of": [1], "columns": 1, "width": size, "rows": [["1"] * size]}
    return [{"op": "variable", "size": 2}, {"of": [0], **fields}, total]


PIECES = [["0", "-1"], ["0", "1"]]
GOOD_NODES: dict[str, list[dict[str, Any]]] = {
    "piecewise": nodes(op="piecewise", breakpoints=["0"], pieces=PIECES),
    "short pieces": nodes(op="piecewise", breakpoints=["0"], pieces=[["0"], ["0", "1"]]),
    "degree 31": nodes(op="piecewise", breakpoints=[], pieces=[["0"] * 31 + ["1"]]),
    "max": nodes(op="max", columns=2, size=1),
    "norm2": nodes(op="norm2", columns=1),
    "logsumexp": nodes(op="logsumexp", columns=2, size=1),
    "affine": nodes(op="affine", columns=1, width=2, rows=[["1", "2"]] * 3, size=3),
    "columns": nodes(op="affine", columns=2, width=1, rows=[["3"]] * 2, size=4),
    "places": nodes(op="affine", columns=1, width=2, rows=[["1"], []], at=[[1], []]),
    "ones": nodes(op="affine", columns=1, width=2, at=[[1], [0, 1]]),
    "offset": nodes(op="affine", columns=1, width=2, rows=[["1", "1"]], offset=["7"], size=1),
    "multiply": nodes(op="multiply", of=[0, 0]),
    "add": nodes(op="add", of=[0, 0, 0]),
    "one summand": nodes(op="add"),
}
BAD_NODES: dict[str, list[dict[str, Any]]] = {
    "a field more": nodes(op="add", columns=1),
    "a field less": nodes(op="max"),
    "rows of a wrong length": nodes(op="max", columns=3, size=1),
    "columns 0": nodes(op="max", columns=0),
    "columns true": nodes(op="max", columns=True),
    "two arguments": nodes(op="max", of=[0, 0], columns=2, size=1),
    "one factor": nodes(op="multiply"),
    "three factors": nodes(op="multiply", of=[0, 0, 0]),
    "nothing added": nodes(op="add", of=[]),
    "width": nodes(op="affine", columns=1, width=3, rows=[["1", "2", "3"]] * 2),
    "columns and width": nodes(op="affine", columns=2, width=2, rows=[["1", "2"]]),
    "a long row": nodes(op="affine", columns=1, width=2, rows=[["1", "2", "3"]] * 2),
    "places and rows": nodes(op="affine", columns=1, width=2, rows=[["1"]] * 2, at=[[1]]),
    "places and numbers": nodes(
        op="affine", columns=1, width=2, rows=[["1"]] * 2, at=[[1], [0, 1]]
    ),
    "a place twice": nodes(op="affine", columns=1, width=2, rows=[["1", "1"]] * 2, at=[[1, 1]] * 2),
    "a place twice in one": nodes(op="affine", columns=1, width=2, at=[[1, 1], [0]]),
    "of": [{"op": "variable", "size": 2, "of": ""}, *nodes(op="add")[1:]],
    "a place beyond": nodes(op="affine", columns=1, width=2, rows=[["1"]] * 2, at=[[2], [0]]),
    "a negative place": nodes(op="affine", columns=1, width=2, rows=[["1"]] * 2, at=[[-1], [0]]),
    "offset's length": nodes(op="affine", columns=1, width=2, rows=[["1", "1"]] * 2, offset=["7"]),
    "a piece less": nodes(op="piecewise", breakpoints=["0"], pieces=PIECES[:1]),
    "a piece more": nodes(op="piecewise", breakpoints=[], pieces=[["0"], ["0"]]),
    "equal breakpoints": nodes(op="piecewise", breakpoints=["0", "0"], pieces=[["0"]] * 3),
    "a jump": nodes(op="piecewise", breakpoints=["0"], pieces=[["0"], ["1"]]),
    "a jump at 1": nodes(op="piecewise", breakpoints=["1"], pieces=[["0", "1"], ["0", "2"]]),
    "degree 32": nodes(op="piecewise", breakpoints=[], pieces=[["0"] * 32 + ["1"]]),
    "a variable": nodes(op="variable", of=[]),
}


@pytest.mark.parametrize("name", GOOD_NODES)
def test_nodes_that_can_be_read(name: str, judge: Any) -> None:
    ways = {"evidence__directions": [["1", "3"], ["1", "2"]]}
    point = {"x": ["1", "2"], "evidence__pivot": ["1", "2"]}
    claim = {"claim__eps": "0x1p+1000"}
    assert judge(NEAR, function=GOOD_NODES[name], **ways, **point, **claim) == 0


@pytest.mark.parametrize("name", BAD_NODES)
def test_nodes_that_cannot_be_read(name: str, judge: Any) -> None:
    claim = {"claim__eps": "0x1p+1000", "claim__delta": "0x1p+1000"}
    assert judge(NEAR, function=BAD_NODES[name], **claim) == 2


def test_numbers(checker: Any) -> None:
    good = {
        "0": F(0), "-7": F(-7), "3/4": F(3, 4), "-3/4": F(-3, 4), "0x10": F(16),
        "-0x1f/0x10": F(-31, 16), "0x1p+0": F(1), "-0x1p-1": F(-1, 2), "0x1.8p+1": F(3),
        "0x0p+0": F(0), "0x1.08p-4": F(33, 512), "0x1p+1100": F(2) ** 1100,
        "0x1p-1100": F(1, 2**1100), "0x0.8p+1": F(1),
    }  # fmt: skip
    for written, value in good.items():
        assert checker.number(written) == value
    for bad in (
        "", " 1", "1 ", "+1", "1.5", "1e3", "nan", "inf", "0x", "0x1p+1101", "0x1p-1101", "0x1p1",
        "0x2p+0", "1/", "/2", "1/-2", "0X10", "0x1.p+0", "1_000",
    ):  # fmt: skip
        with pytest.raises(checker.Unreadable):
            checker.number(bad)
    with pytest.raises(ZeroDivisionError):
        checker.number("1/0")


def sample(checker: Any, rng: Any, size: int, exact: bool, positive: bool = False) -> Any:
    low = 1 if positive else -20
    lo = [int(a) for a in rng.integers(low, 21, size)]
    hi = lo if exact else [a + int(b) for a, b in zip(lo, rng.integers(0, 9, size))]
    return checker.Vec(lo, hi, int(rng.integers(1, 8)))


def ends(v: Any) -> list[tuple[Fraction, Fraction]]:
    return [(F(a, v.den), F(b, v.den)) for a, b in zip(v.lo, v.hi)]


@pytest.mark.parametrize("kinds", list(itertools.product((True, False), repeat=2)))
def test_sums_and_products_of_intervals(kinds: tuple[bool, bool], checker: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        u, v = (sample(checker, rng, 5, kind) for kind in kinds)
        for operation in (lambda a, b: a + b, lambda a, b: a * b):
            found = operation(u, v)
            assert found.exact == all(kinds)
            truth = [[operation(a, b) for a in p for b in q] for p, q in zip(ends(u), ends(v))]
            assert ends(found) == [(min(t), max(t)) for t in truth]
        for own, (a, b) in zip(checker.spans(u), ends(u)):
            least = F(0) if a <= 0 <= b else min(a * a, b * b)
            assert own.square() == (least, max(a * a, b * b))
        assert ends(u.take([4, 0, 0])) == [ends(u)[k] for k in (4, 0, 0)]


def test_long_denominators_are_rounded_outwards_unless_numbers_are_exact(checker: Any) -> None:
    den = 3**600
    same = [7, -5 * den]
    assert ends(checker.Vec(same, same, den)) == [(F(a, den), F(a, den)) for a in same]
    for lo, hi in (([7], [9]), ([-7], [9]), ([-9], [-7]), ([den * 5 + 1], [den * 7 + 2])):
        soft = checker.Vec(lo, hi, den)
        ((c, d),), (a, b) = ends(soft), (F(lo[0], den), F(hi[0], den))
        assert c <= a <= b <= d
        assert d - c <= (b - a) * (1 + F(1, 2**300)) + F(2, 2**310) * max(abs(a), abs(b))
        assert soft.den.bit_count() == 1


def test_exp_log_and_roots_are_bounded_by_multiples_of_a_power_of_two(checker: Any) -> None:
    unit = F(1, 1 << checker.Q)
    assert [checker.grid(F(7, 2), up, 0) for up in (False, True)] == [3, 4]
    assert [checker.grid(F(-7, 2), up, 0) for up in (False, True)] == [-4, -3]
    assert checker.root(F(9, 4), False) == checker.root(F(9, 4), True) == F(3, 2)
    low, high = (checker.root(F(2), up) for up in (False, True))
    assert (high - low, low**2 < 2, high**2 > 2) == (unit, True, True)
    thirds = checker.rounded([checker.Span(F(1, 3), F(1, 3)), checker.Span(F(4), F(4))])
    assert [b - a for a, b in zip(thirds.lo, thirds.hi)] == [1, 0]
    assert [F(a, thirds.den) <= q for a, q in zip(thirds.lo, (F(1, 3), F(4)))] == [True, True]
    assert checker.exponential(F(0), False) <= 1 <= checker.exponential(F(0), True)
    for far in (F(-2000), F(-(10**400))):
        assert [checker.exponential(far, up) for up in (False, True)] == [0, unit]
    assert [checker.exponential(q, True) for q in (-math.inf, math.inf)] == [0, math.inf]
    assert checker.logarithm(math.inf, False) == math.inf
    assert checker.logarithm(F(1), False) <= 0 <= checker.logarithm(F(1), True)
    for q in (F(1), F(2), F(1, 2), F(3), F(1, 1000), F(10**9), F(4), F(5, 4), F(10**400)):
        low, high = (checker.logarithm(q, up) for up in (False, True))
        assert low <= high
        assert high - low < F(1, 2**300)
        truth = math.log(q.numerator) - math.log(q.denominator)
        assert abs(float(low) - truth) < 1e-12 * (1 + abs(truth))
        # exp(-log) is the reciprocal.
        if q > 1:
            least, most = checker.exponential(-high, False), checker.exponential(-low, True)
            assert least <= 1 / q <= most
            assert most - least < F(1, 2**300)


def test_exp_and_log_contain_series_of_rationals(checker: Any) -> None:
    """Against sums of rationals: those of exp(-q) alternate, those of log come from atanh."""
    for q in (F(1, 3), F(1), F(7, 5), F(22, 7), F(9)):
        parts = [(-q) ** k / math.factorial(k) for k in range(400)]
        truth, more = sum(parts), abs(parts[-1])
        low, high = (checker.exponential(-q, up) for up in (False, True))
        assert low - more <= truth <= high + more
        assert 0 < high - low < F(1, 2**300)
        z = (q - 1) / (q + 1)
        truth = 2 * sum(z**k / k for k in range(1, 2600, 2))
        low, high = (checker.logarithm(q, up) for up in (False, True))
        assert low - F(1, 2**320) <= truth <= high + F(1, 2**320)


def test_curvature_of_slopes_that_are_only_enclosed(checker: Any) -> None:
    """-g^2 for g in [1, 2] is as low as -4; of g^2 nothing is known but that it is positive."""
    for c, least in ((F(-1), F(-4)), (F(1), F(0))):
        total = checker.Curvature(1)
        total.add(checker.Span(c, c), {0: checker.Span(F(1), F(2))})
        assert total.rows[0][0] <= least
        assert not total.at_least(least + F(1, 10))


@pytest.mark.parametrize(
    ("rows", "right"),
    [
        ([[0, 1], [1, 0]], False), ([[0, 0], [0, 1]], True), ([[1, 1], [1, 1]], True),
        ([[1, 2], [2, 1]], False), ([[-1, 0], [0, 1]], False), ([[0, 0], [0, -1]], False),
        ([[0, 0, 0], [0, 0, 1], [0, 1, 9]], False), ([[2, 1, 1], [1, 2, 1], [1, 1, 2]], True),
    ],
)  # fmt: skip
def test_elimination_finds_what_is_positive(
    rows: list[list[int]], right: bool, checker: Any
) -> None:
    total = checker.Curvature(len(rows))
    total.rows = [[F(q + 3 * (i == j)) for j, q in enumerate(row)] for i, row in enumerate(rows)]
    assert total.at_least(F(3)) == right
    assert not total.at_least(F(13))


def test_slack_is_for_constraints_not_for_bounds(judge: Any) -> None:
    """The lowest feasible point of -w for w <= 1 is 1: x may miss a constraint, but no bound."""
    function = [{"op": "variable", "size": 1}, row(0, "-1")]
    claim = {"kind": "minimum", "eps": "0", "delta": "1/8", "gap": "1/8", "radius": None,
             "within": None, "scope": "global", "strict": False, "unique": False,
             "violation": "1/8"}  # fmt: skip
    support = {"node": 3, "row": 0, "place": 0, "t": "1", "s": "1/2", "p": "0"}
    evidence = {"pivot": ["1"], "reach": None, "growth": "0", "convexity": None, "sharp": [],
                "penalties": ["2"], "supports": [support]}  # fmt: skip
    document: dict[str, Any] = {
        "schema": "goldstein-proof", "version": 2, "x": ["9/8"], "claim": claim,
        "evidence": evidence, "function": function,
    }  # fmt: skip
    bounds = {"lower": [None], "upper": ["1"]}
    assert judge(document, bounds=bounds) == 1
    assert judge(document, bounds=bounds, x=["1"]) == 0
    one = [{"op": "variable", "size": 1}, row(0, "1")]
    document["constraints"] = [{"function": one, "lower": None, "upper": "1"}]
    document["evidence"]["penalties"] = ["2", "0"]
    assert judge(document) == 0
    assert judge(document, claim__violation="1/9") == 1


def test_how_close_a_minimiser_is_and_a_concave_norm(judge: Any) -> None:
    """w^2 has its minimum 1/8 from 1/8; -|w| falls to both sides of 0."""
    square = op("piecewise", 0, breakpoints=[], pieces=[["0", "0", "1"]])
    claim = {"kind": "minimum", "eps": "0", "delta": "1/8", "gap": "1/64", "radius": "1/2",
             "within": "1/8", "scope": "ball", "strict": True, "unique": False}  # fmt: skip
    evidence = {"pivot": ["0"], "reach": "1", "growth": "2", "convexity": None, "supports": [],
                "sharp": []}  # fmt: skip
    document: dict[str, Any] = {
        "schema": "goldstein-proof", "version": 2, "x": ["1/8"], "claim": claim,
        "evidence": evidence, "function": [{"op": "variable", "size": 1}, square],
    }  # fmt: skip
    assert judge(document) == 0
    assert judge(document, claim__within="1/9") == 1
    assert judge(document, claim__within="1/2") == 1
    norm = [{"op": "variable", "size": 1}, op("norm2", 0, columns=1), row(1, "-1")]
    loose = {"claim__eps": "1", "claim__gap": "2", "evidence__growth": "0", "x": ["0"]}
    around = {"claim__strict": False, "claim__within": None, "function": norm}
    assert judge(document, **loose, **around) == 1


def test_functions_of_rows_of_intervals(checker: Any) -> None:
    """Whatever the numbers are, values and slopes are inside; ends of one variable are attained."""

    def spans(*pairs: tuple[Any, Any]) -> list[Any]:
        return [checker.Span(*(q if abs(q) == math.inf else F(q) for q in p)) for p in pairs]

    value, (slope,), bend = checker.smooth_row("norm2", spans((F(1, 4), F(1))))
    assert value == (F(1, 4), 1)
    assert slope == (F(1, 4), 1)
    assert bend == (0, 4)
    assert checker.smooth_row("norm2", spans((3, 3), (-4, -4)))[0] == (5, 5)
    assert checker.smooth_row("norm2", spans((-1, 2), (0, 0)))[1:] == ([(-1, 1)] * 2, (0, 0))
    value, (slope,), bend = checker.smooth_row("log", spans((2, math.inf)))
    assert slope == (0, F(1, 2))
    assert bend == (F(-1, 4), 0)
    assert value[1] == math.inf
    assert float(value[0]) == pytest.approx(math.log(2))
    for low in (0, -1):
        with pytest.raises(checker.Refused):
            checker.smooth_row("log", spans((low, 5)))
    value, shares, bend = checker.smooth_row("logsumexp", spans((0, math.inf), (0, 0)))
    assert [float(q) for q in shares[0] + shares[1]] == pytest.approx([0.5, 1.5])
    assert value[1] == math.inf
    assert bend == (0, F(1, 2))
    value, (share,), _ = checker.smooth_row("logsumexp", spans((0, 0)))
    assert value[0] <= 0 <= value[1]
    assert share == (1, 1)
    everything = spans((-math.inf, math.inf)) * 2
    assert checker.smooth_row("logsumexp", everything)[:2] == ((-math.inf, math.inf), [(0, 1)] * 2)
    rng = np.random.default_rng(0)
    for _ in range(60):
        lo = rng.integers(-9, 10, 3).tolist()
        pairs = [(a, a + b) for a, b in zip(lo, rng.integers(0, 6, 3).tolist())]
        for op in ("norm2", "logsumexp"):
            value, slopes, _ = checker.smooth_row(op, spans(*pairs))
            for u in itertools.product(*pairs):
                size = math.hypot(*u) if op == "norm2" else math.log(sum(map(math.exp, u)))
                parts = [math.exp(a - size) for a in u]
                if op == "norm2":
                    parts = [a / size if size else 0.0 for a in u]
                for (low, high), q in zip([value, *slopes], [size, *parts]):
                    assert float(low) - 1e-12 <= q <= float(high) + 1e-12


def test_directions_of_rows(checker: Any) -> None:
    """A row that is 0 and stays so has slope 0; a long one has its direction."""
    entries = [3, -4, 3 * 10**50, -4 * 10**50, 0, 0, -7, 0]
    nodes = [checker.read_node({"op": "variable", "size": 8}, 0, [])]
    norm = checker.read_node({"op": "norm2", "of": [0], "columns": 2}, 1, nodes)
    start = checker.exact([F(1)] * 4)
    rows = [entries[i : i + 2] for i in range(0, 8, 2)]
    ways = [checker.Vec(row, row, 7) if any(row) else None for row in rows]
    (slopes,) = norm.backward(start, [None], ways)
    found = ends(slopes)
    for (low, high), truth in zip(found, [F(3, 5), F(-4, 5)] * 2):
        assert low <= truth <= high
        assert high - low < F(1, 2**300)
    assert found[4:] == [(0, 0), (0, 0), (-1, -1), (0, 0)]


def test_series(checker: Any) -> None:
    """Polynomials in t whose coefficients are vectors."""

    def make(*rows: list[int]) -> list[Any]:
        return [checker.exact([F(a) for a in row]) for row in rows]

    def values(series: list[Any]) -> list[list[Fraction]]:
        return [[a for a, _ in ends(c)] for c in series]

    a, b = make([1, 2], [3, 4]), make([5, 6], [7, 8], [9, 1])
    assert values(checker.add_series(a, b)) == values(checker.add_series(b, a)) == [
        [6, 8], [10, 12], [9, 1],
    ]  # fmt: skip
    assert values(checker.multiply_series(a, b)) == [[5, 12], [22, 40], [30, 34], [27, 4]]
    long = make(*[[1]] * 17)
    assert len(checker.multiply_series(long, long)) == 33
    with pytest.raises(checker.Refused, match="degree"):
        checker.multiply_series(long, make(*[[1]] * 18))
    tables = make([1, 0], [2, -1], [3, 0])  # 1 + 2 u + 3 u^2, and -u
    assert values(checker.horner(tables, [0, 1], make([2, 2], [1, 1]))) == [
        [17, -2], [14, -1], [3, 0],
    ]  # fmt: skip


@pytest.mark.parametrize("limit", ["MAX_BYTES", "BUDGET", "MEMORY", "MAX_SIZE"])
def test_what_is_too_much_is_unreadable(
    limit: str, judge: Any, checker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    small: dict[str, Any] = {"MAX_BYTES": 100, "BUDGET": 1e3, "MEMORY": 2, "MAX_SIZE": 1}
    assert judge(NEAR) == 0
    monkeypatch.setattr(checker, limit, small[limit])
    assert judge(NEAR) == 2


def test_counts_begin_anew_with_every_file(judge: Any, checker: Any) -> None:
    judge(NEAR)
    spent = checker.spent[0]
    assert spent > 0
    assert checker.Room.kept == 0
    judge(NEAR)
    assert checker.spent[0] == spent
    assert checker.Room.kept == 0


def test_help_and_wrong_arguments(checker: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["-h"], ["--help"], ["a", "b"]):
        assert checker.main(arguments) == 2
        assert "goldstein_check.py FILE" in capsys.readouterr().out


def test_a_smooth_breakpoint_may_be_kept(judge: Any) -> None:
    """0 below 0, w^2 above: on the breakpoint, along no direction, its slope is 0."""
    square = nodes(op="piecewise", breakpoints=["0"], pieces=[["0"], ["0", "0", "1"]])
    still = {"x": ["0", "0"], "evidence__pivot": ["0", "0"], "evidence__weights": ["1", "0"]}
    assert judge(NEAR, function=square, **still, claim__eps="0") == 0
    kinked = nodes(op="piecewise", breakpoints=["0"], pieces=[["0"], ["0", "1"]])
    along = {**still, "evidence__directions": [["0", "1"], ["1", "1"]]}
    assert judge(NEAR, function=square, **along, claim__eps="0") == 0
    assert judge(NEAR, function=kinked, **along, claim__eps="9") == 1
    across = {**still, "evidence__directions": [["-1", "1"], ["1", "1"]]}
    assert judge(NEAR, function=kinked, **across, claim__eps="1") == 0
    assert judge(NEAR, function=kinked, **across, claim__eps="99/100") == 1


def row(of: int, *rows: str, **fields: Any) -> dict[str, Any]:
    """A matrix times an earlier node; a row is written as in "1 -2"."""
    entries = [line.split() for line in rows]
    return {
        "op": "affine", "of": [of], "columns": 1, "width": len(entries[0]), "rows": entries,
    } | fields  # fmt: skip


def absolute(of: int, at: str = "0") -> dict[str, Any]:
    return {
        "op": "piecewise", "of": [of], "breakpoints": [at],
        "pieces": [[at, "-1"], ["-" + at, "1"]],
    }  # fmt: skip


def op(name: str, *of: int, **fields: Any) -> dict[str, Any]:
    return {"op": name, "of": list(of), **fields}


TWO = {"op": "variable", "size": 2}
HALF = {"breakpoints": ["0"], "pieces": [["0"], ["0", "1"]]}
SQUARE = {"breakpoints": ["0"], "pieces": [["0"], ["0", "0", "1"]]}
#: Too long to be kept as it is: a little more than 1, or a little less, or than 0.
ABOVE, MORE, BELOW = (hex(2**2000 + k) + "/" + hex(2**2000) for k in (1, 2, -1))
SMALL = "1/" + hex(2**2000)

#: Functions: nodes; then pivot, direction, and the gradient beside the pivot, none if refused.
FUNCTIONS: Any = (
    (
        "three planes",
        [TWO, row(0, "1 0", "0 2", "-1 -3"), op("max", 1, columns=3)],
        ("0 0", "1 0", "1 0"), ("0 0", "0 1", "0 2"), ("0 0", "-1 -1", "-1 -3"),
        ("0 0", "2 1", ""), ("5 1", "-9 9", "1 0"), ("1 1", "-9 9", "0 2"),
    ),
    (
        "a plane twice",
        [TWO, row(0, "1 0", "1 0", "0 1"), op("max", 1, columns=3)],
        ("0 0", "1 0", "1 0"), ("0 0", "0 1", "0 1"), ("0 0", "1 1", ""),
    ),
    (
        "a plane and 0",
        [TWO, row(0, "1 0", "0 0"), op("max", 1, columns=2)],
        ("0 0", "1 0", "1 0"), ("0 0", "-1 0", "0 0"), ("0 0", "0 1", ""),
    ),
    (
        "ties that rounding makes",
        [TWO, op("max", 0, columns=2)],
        (f"{ABOVE} {MORE}", "1 0", "0 1"), (f"{MORE} {ABOVE}", "0 1", "1 0"),
        (f"{MORE} {MORE}", "1 0", "1 0"), (f"{MORE} {MORE}", "0 1", "0 1"),
        (f"{MORE} {MORE}", "1 1", ""),
    ),
    (
        "kinks that rounding makes",
        [TWO, absolute(0, "1"), row(1, "1 2")],
        (f"{ABOVE} {BELOW}", "-1 1", "1 -2"), (f"{BELOW} {ABOVE}", "1 -1", "-1 2"),
        ("1 1", "-1 1", "-1 2"), ("1 1", "1 0", ""),
    ),
    (
        "a kink at a fraction",
        [TWO, absolute(0, "7/2"), row(1, "1 2")],
        ("7/2 0", "0 1", ""), ("7/2 0", "1 0", "1 -2"), ("7/2 9/2", "-1 -1", "-1 2"),
    ),
    (
        "kinks of kinks with one value",
        [TWO, absolute(0), op("max", 1, columns=2)],
        ("1 1", "1 1", ""), ("1 1", "2 1", "1 0"), ("1 -1", "1 -2", "0 -1"),
    ),
    (
        "the same twice, but not affine",
        [TWO, absolute(0), row(1, "1 0", "1 0"), op("max", 2, columns=2)],
        ("1 1", "1 1", ""),
    ),
    (
        "half of it not affine",
        [TWO, absolute(0), row(1, "1 0", "1 0"), row(0, "1 0", "1 0"), op("add", 2, 3),
         op("max", 4, columns=2)],
        ("1 1", "1 1", ""),
    ),
    (
        "what the direction decided is not constant",
        [TWO, op("max", 0, columns=2), row(0, "-1 0"), op("add", 1, 2), absolute(3)],
        ("0 0", "1 0", ""), ("0 0", "0 1", "-1 1"), ("1 0", "1 0", "0 0"),
    ),
    (
        "the difference of a thing and itself",
        [TWO, op("piecewise", 0, **HALF), row(1, "1 0"), row(1, "-1 0"), op("add", 2, 3),
         absolute(4)],
        ("1 1", "0 1", "0 0"), ("-1 1", "0 1", "0 0"), ("0 1", "0 1", ""),
    ),
    (
        "constants on a kink",
        [TWO, row(0, "0 0", "1 0", offset=["0", "0"]), absolute(1), row(2, "1 1")],
        ("0 0", "1 0", "1 0"), ("0 0", "-1 0", "-1 0"), ("0 0", "0 1", ""),
    ),
    (
        "a constant and what moves",
        [TWO, row(0, "0 0", "1 0"), row(1, "1 1"), absolute(2)],
        ("0 0", "1 0", "1 0"), ("0 0", "0 1", ""),
    ),
    (
        "flat pieces",
        [TWO, op("piecewise", 0, **HALF), absolute(1, "0"), row(2, "1 0")],
        ("-1 1", "0 1", "0 0"), ("0 1", "-1 1", "0 0"), ("0 1", "1 1", "1 0"), ("0 1", "0 1", ""),
    ),
    (
        "pieces that are not flat",
        [TWO, op("piecewise", 0, **HALF), absolute(1, "1"), row(2, "1 0")],
        ("1 1", "0 1", ""), ("1 1", "-1 1", "-1 0"),
    ),
    (
        "derivative 0, but not constant",
        [TWO, op("piecewise", 0, **SQUARE), absolute(1), row(2, "1 0")],
        ("0 1", "0 1", ""), ("0 1", "1 0", "0 0"),
    ),
    (
        "a line of what has derivative 0, but is not constant",
        [TWO, op("piecewise", 0, **SQUARE), op("piecewise", 1, breakpoints=[], pieces=[["0", "1"]]),
         absolute(2), row(3, "1 0")],
        ("0 1", "0 1", ""), ("0 1", "1 0", "0 0"),
    ),
    (
        "a constant that is the largest, beside what moves",
        [TWO, row(0, "0 0", "1 0", offset=["0", "-5"]), op("max", 1, columns=2), absolute(2)],
        ("0 0", "1 0", "0 0"), ("5 0", "1 0", "1 0"), ("5 0", "0 1", ""),
    ),
    (
        "a piece without a linear term",
        [TWO, op("piecewise", 0, **SQUARE), absolute(1, "1"), row(2, "1 0")],
        ("1 1", "0 1", ""), ("1 1", "-1 1", "-2 0"),
    ),
    (
        "a constant piece",
        [TWO, op("piecewise", 0, breakpoints=[], pieces=[["5"]]), row(1, "1 2")],
        ("0 1", "0 1", "0 0"),
    ),
    (
        "0 times something",
        [TWO, row(0, "0 0"), row(0, "1 0"), op("multiply", 1, 2), op("multiply", 2, 1),
         op("add", 3, 4), absolute(5)],
        ("0 0", "0 1", "0 0"),
    ),
    (
        "3 times something",
        [TWO, row(0, "0 0", offset=["3"]), row(0, "1 0"), op("multiply", 1, 2), absolute(3)],
        ("0 0", "0 1", ""), ("0 0", "1 0", "3 0"),
    ),
    (
        "something times 3",
        [TWO, row(0, "0 0", offset=["3"]), row(0, "1 0"), op("multiply", 2, 1), absolute(3)],
        ("0 0", "0 1", ""), ("0 0", "1 0", "3 0"),
    ),
    (
        "3 times 3",
        [TWO, row(0, "0 0", offset=["3"]), op("multiply", 1, 1), absolute(2, "9")],
        ("0 0", "0 1", "0 0"),
    ),
    (
        "a product",
        [TWO, row(0, "1 0"), row(0, "0 1"), op("multiply", 1, 2)],
        ("3 5", "0 1", "5 3"),
    ),
    (
        "columns",
        [TWO, row(0, "1 0", "0 1", "2 0", "0 3"),
         op("affine", 1, columns=2, width=2, rows=[["0", "1"], ["1", "1"]]), row(2, "1 2 3 4")],
        ("3 5", "0 1", "11 22"),
    ),
    (
        "columns of constants",
        [TWO, row(0, "0 1", "1 0", "0 1", "1 0"),
         row(0, "0 0", "0 0", "0 0", "0 0", offset=["1", "0", "1", "1"]), op("multiply", 1, 2),
         op("affine", 3, columns=2, width=2, rows=[["0", "1"]]), absolute(4), row(5, "1 1")],
        ("0 0", "0 1", ""), ("0 0", "1 1", "1 1"),
    ),
    (
        "a norm of constants",
        [TWO, row(0, "0 0", "0 0"), op("norm2", 1, columns=2), absolute(2)],
        ("0 0", "0 1", "0 0"),
    ),
    (
        "a norm of a constant and of what moves",
        [TWO, row(0, "0 0", "1 0"), op("norm2", 1, columns=2)],
        ("0 0", "0 1", ""),
    ),
    (
        "a norm on a kink",
        [TWO, row(0, "0 0", "1 0"), op("norm2", 1, columns=2), absolute(2, "1")],
        ("1 0", "0 1", ""), ("1 0", "1 0", ""),
    ),
    (
        "a norm less a part of it",
        [TWO, op("norm2", 0, columns=2), row(0, "-1 0"), op("add", 1, 2), absolute(3)],
        ("1 0", "1 1", ""),
    ),
    (
        "norms so small that they are rounded to 0",
        [TWO, op("norm2", 0, columns=1), row(1, "1 2")],
        (f"1 {SMALL}", "0 -1", "1 2"), (f"1 -{SMALL}", "0 1", "1 -2"), ("1 0", "0 1", "1 2"),
        ("1 0", "0 -1", "1 -2"), ("1 0", "1 0", ""),
    ),
    (
        "norms of pairs so small that they are rounded to 0",
        [TWO, row(0, "1 0", "0 0", "0 1", "0 0"), op("norm2", 1, columns=2), row(2, "1 2")],
        (f"1 {SMALL}", "0 -1", "1 2"),
    ),
)  # fmt: skip
BESIDE: dict[str, Any] = {
    f"{name}, {number}": (function, *case)
    for name, function, *cases in FUNCTIONS
    for number, case in enumerate(cases)
}


@pytest.mark.parametrize("name", BESIDE)
def test_gradients_beside_a_point(name: str, judge: Any) -> None:
    """The function less its gradient has gradient 0, and no other."""
    function, pivot, way, slope = BESIDE[name]
    place = {"x": pivot.split(), "evidence__pivot": pivot.split(), "claim__delta": "0"}
    along = {"evidence__directions": [way.split()], "evidence__weights": ["1"]}
    if not slope:
        assert judge(NEAR, function=function, **place, **along, claim__eps="99") == 1
        return
    last = len(function) - 1
    for wrong in ("0", "1"):
        one, other = slope.split()
        less = row(0, f"-{one} {F(other) * -1 + F(wrong)}".replace("--", ""))
        whole = [*function, less, op("add", last, last + 1)]
        verdict = judge(NEAR, function=whole, **place, **along, claim__eps="0")
        assert verdict == int(wrong)


def test_gradients_that_are_enclosed(judge: Any) -> None:
    """Of a norm: of length 1, which an enclosure neither proves nor refutes."""
    norm = op("norm2", 0, columns=2)
    for function in (
        [TWO, norm],
        [TWO, norm, absolute(1)],  # an interval beside a kink
        [TWO, norm, absolute(1, "9")],
        [TWO, norm, row(1, "1", "0"), op("max", 2, columns=2)],  # nothing is tied
        [TWO, norm, op("norm2", 1, columns=1)],
        [TWO, norm, row(1, "1", "0"), op("norm2", 2, columns=2)],
        [TWO, norm, row(0, "0 0"), op("multiply", 1, 2), row(3, "1", "1"),
         op("max", 4, columns=2), op("add", 1, 5)],  # tied, but constant
    ):  # fmt: skip
        alone: dict[str, Any] = {"function": function, "evidence__weights": ["1", "0"]}
        alone |= {"x": ["1", "1"], "evidence__pivot": ["1", "1"]}
        assert judge(NEAR, **alone, claim__eps=text(1 + F(1, 10**90))) == 0
        assert judge(NEAR, **alone, claim__eps=text(1 - TINY)) == 1
        assert judge(NEAR, **alone, claim__eps=text(1 - F(1, 10**90))) == 1
    # A breakpoint within the enclosure of the norm: on which side the point is stays open.
    root = F(math.isqrt(2 << 768), 2**384)
    open_ = [TWO, norm, row(1, "1", offset=[text(-root)]), absolute(2)]
    assert judge(NEAR, **alone | {"function": open_}, claim__eps="9") == 1
    logarithm = [TWO, row(0, "1 0"), op("log", 1)]
    assert judge(NEAR, **alone | {"function": logarithm}, claim__eps=text(1 + F(1, 10**90))) == 0


def test_matrices_of_intervals(checker: Any) -> None:
    """Every entry of the product is enclosed, and no more than that."""
    variable = checker.read_node({"op": "variable", "size": 4}, 0, [])
    table: list[list[Any]] = [[1, -2], [3, 0], [F(-1, 2), 2]]
    rows = [[str(a) for a in line] for line in table]
    data = {"op": "affine", "of": [0], "columns": 2, "width": 2, "rows": rows}
    node = checker.read_node(data, 1, [variable])
    lo, hi = [-3, 1, 0, -5], [-1, 4, 2, 7]
    want = []
    for line in table:
        for j in range(2):
            sides = [sorted((a * lo[2 * k + j], a * hi[2 * k + j])) for k, a in enumerate(line)]
            want.append((sum(side[0] for side in sides), sum(side[1] for side in sides)))
    assert ends(node.apply(checker.Vec(lo, hi, 1), node.table)) == want
    assert node.apply(checker.Vec(lo, lo, 1), node.table).exact


def test_bits_and_memory_are_counted(checker: Any) -> None:
    assert checker.Vec([1, 2**100], [3, 2**100], 1).bits >= 101
    assert checker.Vec([1, 2], [1, 2**100], 1).bits >= 101
    before = checker.Room.kept
    short = checker.Vec([1] * 50, [1] * 50, 1)
    assert checker.Room.kept >= before + 2 * 50 * 500
    middle = checker.Room.kept
    long = checker.Vec([2**1000] * 50, [2**1000] * 50, 1)
    assert checker.Room.kept >= middle + 2 * 50 * 1500
    # What nobody holds any more does not count.
    del short, long
    assert checker.Room.kept == before


def test_signs_sizes_and_keys(judge: Any, checker: Any, tmp_path: Path) -> None:
    """What squares would forget, what `zip` would cut off, what a later key would replace."""
    assert judge(NEAR, claim__eps="-1/2") == 1
    assert judge(NEAR, claim__delta="-5/8") == 1
    # The second of two entries is constant: no derivative is asked of it.
    pair = row(0, "1 0", "0 0")
    for function in (
        [TWO, pair],
        [TWO, pair, row(1, "1")],
        [TWO, pair, row(0, "1 0"), op("multiply", 2, 1)],
        [TWO, row(0, "1 0", "0 1", "1 1"), op("max", 1, columns=2)],  # a row and a half
    ):
        assert judge(NEAR, function=function, claim__eps="99") == 2
    nothing = [{"op": "variable", "size": 0}, op("affine", 0, columns=1, width=0, rows=[[]])]
    point: dict[str, Any] = {"x": [], "evidence__pivot": [], "evidence__directions": [[], []]}
    assert judge(NEAR, function=nothing, **point) == 2
    assert judge(NEAR) == 0
    path = tmp_path / "proof.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 1, "version": 1'))
    assert checker.main([str(path)]) == 2


def test_limits_one_by_one(
    judge: Any, checker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judge(NEAR) == 0
    path = tmp_path / "proof.json"
    size = path.stat().st_size
    path.write_text(path.read_text() + "  ")
    monkeypatch.setattr("sys.argv", ["goldstein_check.py", str(path)])
    assert checker.main() == 0
    with monkeypatch.context() as patch:
        patch.setattr(checker, "MAX_BYTES", size)
        assert checker.main() == 2
    monkeypatch.setattr(checker, "MEMORY", checker.Room.kept + 1)
    full = checker.Room()
    full.hold(1)
    for more in (lambda: checker.Room().hold(1), lambda: checker.Vec([1, 2], [1, 2], 1)):
        with pytest.raises(checker.Unreadable):
            more()


def test_as_a_script(checker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `main` returns is the exit code."""
    monkeypatch.setattr("sys.argv", ["goldstein_check.py"])
    spec = importlib.util.spec_from_file_location("__main__", checker.__file__)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(SystemExit) as end:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert end.value.code == 2


def test_a_number_that_is_no_float_is_printed(judge: Any) -> None:
    """16^400 x, and its negative: the verdict stands, and the function follows."""
    huge = "0x1" + "0" * 400
    for sign in ("", "-"):
        function = [{"op": "variable", "size": 1}, row(0, sign + huge)]
        points = {"evidence__points": [["0"]], "evidence__weights": ["1"], "x": ["0"]}
        assert judge(GOLDSTEIN, function=function, **points, claim__eps=huge) == 0
        assert judge(GOLDSTEIN, function=function, **points, claim__eps=sign + "1") == 1


#: Lines of code, without blanks, comments and docstrings. It may fall, not rise.
CEILING = 900


def test_it_can_be_read_in_one_sitting(checker: Any) -> None:
    assert len(lines_of_code(Path(checker.__file__))) <= CEILING
