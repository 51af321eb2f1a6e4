"""Forged, honest and malformed proof files against an oracle that shares no code with a checker."""

from __future__ import annotations

import ast
import copy
import json
import random
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from benchmarks.adversary import exact_oracle, proof_files
from benchmarks.adversary.exact_oracle import Function, Oracle, Undecided, judge, rationals
from benchmarks.adversary.proof_files import (
    ABS,
    DAMAGE,
    FORGED,
    FORGED_TINY,
    KNOWN,
    RELU,
    TEXT,
    ProofFile,
    op,
    random_document,
    rows,
    variable,
)
from benchmarks.differential import judged, load_checker, run_files


@pytest.fixture(scope="module")
def checker() -> Any:
    return load_checker()


@pytest.fixture
def verdict(checker: Any, tmp_path: Path) -> Any:
    """Return a function that puts a document, or a text, to the checker."""

    def code(document: Any) -> int:
        text = document if isinstance(document, str) else json.dumps(document)
        return judged(ProofFile(text, "", None), checker, tmp_path / "proof.json")[0]

    return code


@pytest.mark.parametrize("name", FORGED)
def test_an_irrational_coefficient_is_not_0(name: str, verdict: Any) -> None:
    """The sign of the first coefficient decides, however long the second one is known."""
    document = copy.deepcopy(FORGED[name])
    truth = judge(document)
    assert truth.false
    assert truth.evidence == "fails"
    assert verdict(document) == 1
    assert truth.shown is not None
    for factor, code in ((1 + Fraction(1, 10**20), 0), (1 - Fraction(1, 10**20), 1)):
        eps = truth.shown * factor
        document["claim"]["eps"] = f"{hex(eps.numerator)}/{hex(eps.denominator)}"
        assert verdict(document) == code


@pytest.mark.parametrize("name", FORGED_TINY)
def test_a_coefficient_that_may_be_0_is_not_0(name: str, verdict: Any) -> None:
    document = FORGED_TINY[name]
    assert judge(document).false
    assert verdict(document) == 1


@pytest.mark.parametrize("name", KNOWN)
def test_claims_at_the_edge(name: str, verdict: Any) -> None:
    believed, document = KNOWN[name]
    assert (verdict(document) == 0) == believed


def kinked(*rest: Any) -> list[Any]:
    """w, c = log 2 + log 3 - log 6, which is 0 and nobody can tell, c w, and more."""
    constants = [op("piecewise", 0, breakpoints=[], pieces=[["2"]]),
                 rows(1, "1", "1", "1", offset=["0", "1", "4"]), op("log", 2), rows(3, "1 1 -1"),
                 op("multiply", 0, 4)]  # fmt: skip
    return [variable(1), *constants, *rest]


UNDECIDED: dict[str, list[Any]] = {
    "piecewise": kinked(op("multiply", 0, 0), op("add", 5, 6), op("piecewise", 7, **RELU)),
    "max": kinked(rows(5, "1", "0"), op("max", 6, columns=2)),
    "max, both": kinked(rows(5, "1", "2"), op("max", 6, columns=2)),
    "norm2": kinked(op("multiply", 0, 0), rows(5, "1", "0"), rows(6, "0", "1"), op("add", 7, 8),
                    op("norm2", 9, columns=2)),
    "one entry of a norm": kinked(rows(5, "1", "0"), op("norm2", 6, columns=2)),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_may_be_0_decides_nothing(name: str, verdict: Any) -> None:
    """0 is inside the enclosure of the first coefficient: nothing is claimed of the next."""
    document = proof_files.proof(UNDECIDED[name], ["0"], [["1"], ["-1"]], eps="99")
    assert verdict(document) == 1


#: Functions of slope 1, 1 and 2, with kinks in z = w + c and -z, where z = 0 and nobody can tell.
VALUES: dict[str, list[Any]] = {
    "piecewise": kinked(rows(0, "1", "-1"), rows(4, "1", "-1"), op("add", 6, 7),
                        op("piecewise", 8, **RELU), rows(9, "1 -1")),
    "max": kinked(rows(0, "1", "0", "-1", "0"), rows(4, "1", "0", "-1", "0"), op("add", 6, 7),
                  op("max", 8, columns=2), rows(9, "1 -1")),
    "norm2": kinked(rows(0, "1", "-1"), op("piecewise", 6, **RELU), rows(4, "1", "1"),
                    op("add", 7, 8), op("norm2", 9, columns=1), rows(10, "1 -1"),
                    op("add", 0, 11)),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_a_value_that_may_be_on_a_kink_is_on_no_side_of_it(name: str, verdict: Any) -> None:
    document = proof_files.proof(VALUES[name], ["0"], [["1"], ["-1"]], eps="1/2")
    assert judge(document).false
    assert verdict(document) == 1
    document["claim"]["eps"] = "99"
    assert verdict(document) == 1


def test_a_maximum_is_as_constant_as_the_entry_that_rules(verdict: Any) -> None:
    """relu(z) - relu(-z) for z = max(w_1, w_2), along which z stays 0 and is not constant."""
    ends = [rows(1, "1", "-1"), op("piecewise", 2, **RELU), rows(3, "1 -1")]
    moving = [variable(2), op("max", 0, columns=2), *ends]
    document = proof_files.proof(moving, ["0", "0"], [["0", "-1"]], eps="1/2")
    assert judge(document).false
    assert verdict(document) == 1
    constant = [variable(2), rows(0, "0 0", "0 1"), op("max", 1, columns=2), rows(2, "1", "-1"),
                op("piecewise", 3, **RELU), rows(4, "1 -1")]  # fmt: skip
    document = proof_files.proof(constant, ["0", "0"], [["0", "-1"]])
    assert verdict(document) == 0


def test_an_entry_that_is_not_0_gives_a_norm_its_direction(verdict: Any) -> None:
    """|(c w, w)| is |w|, though nobody can tell that c = 0."""
    norm = kinked(rows(5, "1", "0"), rows(0, "0", "1"), op("add", 6, 7), op("norm2", 8, columns=2))
    document = proof_files.proof(norm, ["0"], [["1"]], eps="1000001/1000000")
    assert verdict(document) == 0
    document["claim"]["eps"] = "999999/1000000"
    assert verdict(document) == 1


@pytest.mark.parametrize("name", [*DAMAGE, *TEXT])
def test_damaged_files_are_unreadable(name: str, verdict: Any) -> None:
    rng = random.Random(0)
    for seed in range(6):
        document = random_document(seed)
        text = json.dumps(document)
        if name in TEXT:
            text = TEXT[name](text)
        else:
            DAMAGE[name](document, rng)
            text = json.dumps(document)
        assert verdict(text) == 2


def test_random_files_get_the_verdict_that_is_true() -> None:
    tally, faults = run_files(400, library=False)
    assert faults == []
    assert tally["supports: TRUE"] >= 40, tally
    assert tally["fails: FALSE"] >= 80, tally
    assert tally["claims known to be false"] >= 30, tally
    assert tally["malformed: UNREADABLE"] >= 60, tally
    assert tally["refused"] <= tally["supports: TRUE"], tally


def test_the_library_never_contradicts_the_truth_either() -> None:
    tally, faults = run_files(150, first_seed=10_000)
    assert faults == []
    assert tally["the library agrees"] >= 20, tally


# --- the oracle -----------------------------------------------------------------------------------


def oracle(*nodes: Any) -> Oracle:
    return Oracle(Function(nodes))


def found(limits: set[tuple[Decimal, ...]]) -> set[tuple[float, ...]]:
    return {tuple(round(float(a), 9) + 0.0 for a in limit) for limit in limits}


TWO = variable(2)
#: Functions of two variables, all limits of gradients at 0, and the distance of 0 from their hull.
AT_0: Any = {
    "|w_1| + 2 |w_2|": ([TWO, op("piecewise", 0, **ABS), rows(1, "1 2")],
                        {(1, 2), (1, -2), (-1, 2), (-1, -2)}, 0.0),
    "max(2 x, -2 x, y)": ([TWO, rows(0, "2 0", "-2 0", "0 1"), op("max", 1, columns=3)],
                          {(2, 0), (-2, 0), (0, 1)}, 0.0),
    "relu(x) - relu(-x)": ([TWO, rows(0, "1 0", "-1 0"), op("piecewise", 1, **RELU),
                            rows(2, "1 -1")], {(1, 0)}, 1.0),
    "max(x, y) + 2 x": ([TWO, op("max", 0, columns=2), rows(0, "2 0"), op("add", 1, 2)],
                        {(3, 0), (2, 1)}, 5**0.5),
    "kinks that touch": ([TWO, op("multiply", 0, 0), rows(1, "0 0", "-1 0"), rows(0, "0 1", "0 1"),
                          op("add", 2, 3), op("piecewise", 4, **RELU), rows(5, "1 -1")],
                         {(0, 0), (0, 1), (0, -1)}, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_0)
def test_all_limits_of_gradients(name: str) -> None:
    function, limits, distance = AT_0[name]
    one = oracle(*function)
    assert found(one.outer([Fraction(0)] * 2)) == limits
    least = one.least_distance([Fraction(0)] * 2)
    assert least is not None
    assert distance - 1e-3 <= least <= distance + 1e-12


def test_a_limit_between_kinks_that_touch_is_met_on_curves_alone() -> None:
    """relu(y) - relu(y - x^2): between 0 and x^2 its slope is (0, 1), which no line sees."""
    one = oracle(*AT_0["kinks that touch"][0])
    ways = [(1, 1), (1, -1), (0, 1), (-1, 2)]
    straight = [one.limit(rationals(["0", "0"]), [Fraction(a) for a in way]) for way in ways]
    assert found({limit.slope for limit in straight if limit.slope}) == {(0.0, 0.0)}
    assert (0.0, 1.0) in found(set(one.sampled(rationals(["0", "0"]), 400)))


@pytest.mark.parametrize("seed", range(0, 120, 4))
def test_sampled_gradients_are_among_all_limits(seed: int) -> None:
    """What is seen near the pivot is what going through all sides finds."""
    for k in range(seed, seed + 4):
        document = random_document(k)
        if document["claim"]["kind"] != "near":
            continue
        pivot, function = rationals(document["evidence"]["pivot"]), Function(document["function"])
        function.look_at(pivot)
        try:
            one = Oracle(function)
            limits = one.outer(pivot)
        except Undecided:
            continue
        for slope in one.sampled(pivot, 5):
            gaps = [max(abs(a - b) for a, b in zip(slope, limit)) for limit in limits]
            assert min(gaps) < Decimal("1e-9") * (1 + max(map(abs, slope)))


def test_limits_along_directions() -> None:
    one = oracle(TWO, op("piecewise", 0, **ABS), rows(1, "1 2"))
    here = rationals(["0", "1/3"])
    for way, slope in ((["1", "0"], (1, 2)), (["-1", "9"], (-1, 2)), (["0", "1"], None)):
        limit = one.limit(here, rationals(way))
        assert limit.slope == slope
    assert one.limit(rationals(["2", "-1"]), None).slope == (1, -2)
    assert one.limit(here, None).slope is None


def test_the_oracle_stands_alone() -> None:
    for module, also in ((exact_oracle, set()), (proof_files, {"benchmarks"})):
        names = set()
        for part in ast.walk(ast.parse(Path(module.__file__).read_text())):
            if isinstance(part, ast.Import):
                names |= {alias.name.split(".")[0] for alias in part.names}
            elif isinstance(part, ast.ImportFrom):
                names.add((part.module or "").split(".")[0])
        assert names <= sys.stdlib_module_names | also
