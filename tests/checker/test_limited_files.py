"""Minima among feasible points in proof files: every checker builds the penalties from the file."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmarks.adversary import minimum_files
from benchmarks.three_checkers import kernel_says
from jsonschema import Draft202012Validator
from tests.checker.test_case_files import DOCS, LIMITED
from tests.checker.test_every_kind import altered, verdicts
from tests.checker.test_minimum_feasible import KNOWN, proved

import goldstein as gs

SUPPORT = LIMITED["evidence"]["supports"][0]


def claimed(document: Any = LIMITED, **fields: Any) -> Any:
    return altered(document, "claim", document["claim"] | fields)


def shown(document: Any = LIMITED, **fields: Any) -> Any:
    return altered(document, "evidence", document["evidence"] | fields)


def without(part: str, name: str) -> Any:
    return altered(LIMITED, part, {k: v for k, v in LIMITED[part].items() if k != name})


#: w^2 <= 1, which nothing holds, besides the bound w <= 1.
SQUARE = {
    "lower": None, "upper": "1", "function": [
        {"op": "variable", "size": 1},
        {"op": "piecewise", "of": [0], "breakpoints": [], "pieces": [["0", "0", "1"]]},
    ],
}  # fmt: skip
CURVED = shown({**LIMITED, "constraints": [SQUARE]}, penalties=["0", "2"])
#: On [-1, 1]: the support pays for the distance of every point from 1, so that x is strict.
BALL = shown(
    claimed(radius="1", scope="ball", strict=True, within="0"), reach="1", growth="1",
    sharp=[{"node": 3, "row": 0, "one": 0, "other": 0, "sigma": "1/2", "bend": "0"}],
)  # fmt: skip
BALL["claim"]["radius"] = "7/8"
#: f = -w^2 on [-1/2, 1]: concave, lowest at a corner.
CONCAVE = {
    **shown(
        reach="3/2", growth="1/2", penalties=["4"], supports=[{**SUPPORT, "node": 3, "s": "1/2"}],
        sharp=[{"node": 3, "row": 0, "one": 0, "other": 0, "sigma": "1/2", "bend": "0"}],
    ),
    "bounds": {"lower": ["-1/2"], "upper": ["1"]},
    "function": [
        {"op": "variable", "size": 1},
        {"op": "piecewise", "of": [0], "breakpoints": [], "pieces": [["0", "0", "-1"]]},
    ],
}  # fmt: skip

TRUE = [
    LIMITED,
    CURVED,
    BALL,
    CONCAVE,
    claimed(violation="3"),
    altered(LIMITED, "bounds", "lower", ["-5"]),
    # x is outside a constraint, and says so.
    claimed(altered(CURVED, "constraints", 0, "upper", "1/2"), violation="1/2"),
    # A limit that is met exactly, as an equality.
    altered(LIMITED, "bounds", "lower", ["1"]),
    # One variable is the constraint: no bounds at all.
    shown({**{k: v for k, v in LIMITED.items() if k != "bounds"},
           "constraints": [{"lower": None, "upper": "1", "function": LIMITED["function"][:1]}]},
          penalties=["2", "0"], supports=[{**SUPPORT, "node": 2}]),
]  # fmt: skip
FORGED = [
    (shown(penalties=["1"]), "gradient"),
    (shown(penalties=["-2"]), "negative"),
    (shown(penalties=["0"], supports=[]), "gradient"),
    (shown(supports=[]), "gradient"),
    (shown(supports=[{**SUPPORT, "s": "3/2"}]), "slope"),
    (shown(supports=[{**SUPPORT, "s": "-1/2"}]), "slope"),
    (shown(supports=[{**SUPPORT, "t": "1/2", "s": "0"}]), "gradient"),
    (claimed(violation="-1"), "negative"),
    (claimed(strict=True, within="0"), "inside the ball"),
    (claimed(unique=True), "unique"),
    (claimed(gap="-1"), "negative"),
    (altered(LIMITED, "bounds", "upper", ["2"]), "slope"),
    (altered(LIMITED, "bounds", "upper", ["1/2"]), "bound"),
    (altered(LIMITED, "bounds", {"lower": ["3/2"], "upper": ["2"]}), "bound"),
    (altered(LIMITED, "bounds", "upper", [None]), "slope"),
    (altered(LIMITED, "function", 1, "rows", [["-2"]]), "gradient"),
    (altered(LIMITED, "x", ["1/2"]), "pivot"),
    (altered(CURVED, "constraints", 0, "upper", "1/2"), "constraint 0"),
    (claimed(altered(CURVED, "constraints", 0, "upper", "1/2"), violation="1/4"), "constraint 0"),
    # Strict is said of a pivot that is feasible.
    (claimed({**shown(BALL, penalties=["0", "2"]), "constraints": [{**SQUARE, "upper": "1/2"}]},
             violation="1"), "constraint 0"),
    # Bounds that are not within reach, or not there.
    (shown(CONCAVE, reach="1"), "global"),
    (altered(CONCAVE, "bounds", "lower", [None]), "global"),
    (altered(CONCAVE, "bounds", "lower", ["-2"]), "global"),
    # A unique minimum needs a convex set.
    (shown(claimed({**BALL, "constraints": [SQUARE]}, unique=True), penalties=["0", "2"],
           convexity="0"), "unique"),
]  # fmt: skip
BROKEN = [
    without("claim", "violation"), without("evidence", "penalties"), shown(penalties=[]),
    shown(penalties=["2", "0"]), shown(penalties="2"), shown(penalties=[None]),
    claimed(violation=None), altered(LIMITED, "bounds", "upper", ["1", "1"]),
    altered(LIMITED, "bounds", {"upper": ["1"]}), {**LIMITED, "constraints": [{}]},
    shown(supports=[{**SUPPORT, "node": 2}]), shown(supports=[{**SUPPORT, "node": 9}]),
    altered(LIMITED, "version", 1), altered(LIMITED, "bounds", "lower", ["3/2"]),
]  # fmt: skip


def test_true_claims_are_true_for_all_three() -> None:
    found = verdicts(TRUE)
    assert [code for code, _ in found] == [0] * len(TRUE), found
    assert all("among feasible points" in said for _, said in found)
    assert all(map(kernel_says, TRUE))


def test_every_forged_field_is_refused_by_the_check_that_names_it() -> None:
    for (code, said), (forged, words) in zip(verdicts([f for f, _ in FORGED]), FORGED):
        assert code == 1, said
        assert words in said, said
        assert not kernel_says(forged)


def test_what_is_no_proof_file_is_not_read() -> None:
    assert [code for code, _ in verdicts(BROKEN)] == [2] * len(BROKEN)


def test_the_schema_holds_them() -> None:
    schema = json.loads((DOCS / "proof_schema.json").read_text())
    assert all(map(Draft202012Validator(schema).is_valid, TRUE))


@pytest.mark.parametrize(("F", "x", "limits"), [case[:3] for case in KNOWN])
def test_certificates_leave_as_proof_files(F: Any, x: Any, limits: Any, tmp_path: Path) -> None:
    path = proved(F, x, **limits).export(tmp_path / "proof", F, **limits)
    ((code, said),) = verdicts([json.loads(path.read_text())])
    assert code == 0, said


def test_a_run_leaves_as_a_proof_file(tmp_path: Path) -> None:
    w = gs.Variable(3)
    F = gs.sum(abs(w - 2)) + gs.max(w)
    limits: dict[str, Any] = {"bounds": [(0, 1)] * 3, "constraints": [gs.sum(w) <= 2.5]}
    res = gs.minimize(F, [0.0] * 3, stationarity="minimum", eps=1e-4, delta=1e-4, rng=0, **limits)
    document = json.loads(res.certificate.export(tmp_path / "proof", F, **limits).read_text())
    ((code, said),) = verdicts([document])
    assert code == 0, said
    assert "global minimum among feasible points" in said


def test_refutations_leave_with_their_limits(tmp_path: Path) -> None:
    w = gs.Variable(1)
    F, limits = gs.sum(-abs(w)), {"bounds": [(-1, 2)]}
    found = gs.certify(F, [0.0], delta=1e-6, stationarity="minimum", **limits)
    document = json.loads(found.export(tmp_path / "proof", F, **limits).read_text())
    assert document["bounds"] == {"lower": ["-1"], "upper": ["2"]}
    assert [code for code, _ in verdicts([document])] == [0]


def test_random_files_get_one_verdict_and_nothing_false_is_true(tmp_path: Path) -> None:
    made = [file for seed in range(0, 360, 3) for file in minimum_files.files(seed, tmp_path)]
    tally = Counter[int]()
    for (code, said), file in zip(verdicts([json.loads(file.text) for file in made]), made):
        tally[code] += 1
        assert code or not file.truth.false, (said, file.text)
    assert tally[0] > 5 < tally[1], tally
