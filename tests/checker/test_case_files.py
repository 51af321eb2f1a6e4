"""Minima by trees of cases in proof files, put to goldstein-check and to the page's checker."""

from __future__ import annotations

import copy
import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.adversary import case_files
from benchmarks.adversary.case_files import FORGERS, random_function
from benchmarks.adversary.exact_oracle import rational
from benchmarks.differential import load_checker
from jsonschema import Draft202012Validator
from tests.checker.test_every_kind import altered, verdicts

import goldstein as gs
from goldstein.construction.cases import with_cases
from goldstein.construction.minimum import prove_minimum

DOCS = Path(__file__).parents[2] / "docs"


def worked_examples() -> list[Any]:
    """Return the files that are printed in the page about the format."""
    page, found = (DOCS / "proof_files.md").read_text(), []
    for part in page.split('\n    {"schema": "goldstein-proof"')[1:]:
        text = '{"schema": "goldstein-proof"' + part.partition("\n\n")[0]
        found.append(json.loads(text))
    return found


#: w^2/2 - 9/8 ramp(w - 1) at 0, split at the first kink.
NEAR, TREE, LIMITED = worked_examples()


def changed(*path: Any, document: Any = TREE) -> Any:
    """Return the example with another value in its cases."""
    return altered(document, "evidence", "cases", *path)


def claimed(**fields: Any) -> Any:
    return altered(TREE, "claim", TREE["claim"] | fields)


CASES = TREE["evidence"]["cases"]["tree"]
#: What a forger would change, and the words of the refusal that name it.
FORGED = [
    (claimed(global_gap="-1/1024", gap="1"), "negative"),
    (claimed(global_gap="1/1024"), "cases that show the gap"),
    (claimed(strict=True, within="0"), "cases that show the gap"),
    (claimed(within="1000"), "cases that show the gap"),
    (claimed(radius="1"), "cases that show the gap"),
    (claimed(unique=True), "unique"),
    (changed("growth", "1025/1024"), "without kinks"),
    (changed("growth", "0"), "without kinks"),
    (changed("growth", "-1"), "without kinks"),
    (changed("growth", "7/8", document=changed("tree", 1, "point", ["1"])), "case 1 is not closed"),
    (changed("tree", CASES[:2]), "a case is missing"),
    (changed("tree", []), "a case is missing"),
    (changed("tree", [*CASES, CASES[1]]), "more cases"),
    (changed("tree", [CASES[0], *CASES[:0:-1]]), "case 1 is not closed"),
    (changed("tree", [CASES[1]]), "case 0 is not closed"),
    (changed("tree", [*CASES[:2], CASES[1]]), "case 2 is not closed"),
    (changed("tree", 0, "t", "1/1024"), "case 1 is not closed"),
    (changed("tree", 0, "t", "-3"), "case 2 is not closed"),
    (changed("tree", 0, "slopes", ["1/1024"]), "infinite"),
    (changed("tree", 1, "slopes", ["1/1024"]), "case 1 is not closed"),
    (changed("tree", 2, "slopes", ["-1"]), "case 2 is not closed"),
    (altered(TREE, "x", ["1/1024"]), "pivot"),
    (altered(TREE, "function", 3, "rows", [["-3"]]), "case 2 is not closed"),
]
#: Of x = 9/8, the other minimum: all is right but the bound everywhere.
OTHER = altered(TREE, "x", ["9/8"])
OTHER["evidence"] |= {"pivot": ["9/8"], "reach": "1/8"}
FORGED.append((OTHER, "case 1 is not closed"))

#: Not the format.
BROKEN = [
    *(changed("tree", 0, "parts", value) for value in (3, -1, True, "2", None, 0, 1)),
    *(changed("tree", 1, "parts", value) for value in (2, 3, False, "0")),
    *(changed("tree", 0, "entry", value) for value in (1, -1, "0", None, True)),
    *(changed("tree", 0, "t", value) for value in (None, 0, ["0"])),
    *(changed("tree", 0, name, value) for name in ("point", "slopes")
      for value in ([], ["0", "0"], "0", [None], ["x"])),
    *(changed("growth", value) for value in (None, 1, "x")),
    *(changed("tree", value) for value in (None, {}, [0], [[]], [None])),
    changed("more", "1"), changed("tree", 1, "t", "0"), changed("tree", 1, "entry", 0),
    *(altered(TREE, "evidence", "cases", value) for value in (None, [], CASES)),
    *(claimed(global_gap=value) for value in (None, 0, "x")),
    altered(TREE, "evidence", {k: v for k, v in TREE["evidence"].items() if k != "cases"}),
    altered(TREE, "claim", {k: v for k, v in TREE["claim"].items() if k != "global_gap"}),
    changed("tree", [{k: v for k, v in CASES[0].items() if k != "t"}, *CASES[1:]]),
    changed("tree", [{k: v for k, v in CASES[0].items() if k != "parts"}, *CASES[1:]]),
    altered(NEAR, "evidence", NEAR["evidence"] | {"cases": TREE["evidence"]["cases"]}),
]  # fmt: skip


def test_worked_examples_of_the_page_are_true() -> None:
    assert [code for code, _ in verdicts([NEAR, TREE, LIMITED])] == [0, 0, 0]


def test_what_else_shows_the_same() -> None:
    """Another split, more parts than there must be, a ball with its bound everywhere."""
    again = [{**CASES[0], "parts": 1, "entry": 0, "t": "0"}, *CASES]
    again[0] = {k: v for k, v in again[0].items() if k not in ("entry", "t")}
    junk = {"point": ["7"], "slopes": ["5"], "parts": 0}
    ball = {"scope": "ball", "radius": "1", "strict": True, "within": "0"}
    true = [
        changed("tree", 0, "t", "-1/8"),
        changed("tree", again),
        changed("tree", [CASES[0], {**CASES[1], "parts": 1}, junk, CASES[2]]),
        changed("tree", [CASES[0], CASES[1], {**CASES[2], "parts": 2, "entry": 0, "t": "9"}]
                + [junk] * 2),
        claimed(gap="1", global_gap="1/2"),
        claimed(**ball),
        altered(OTHER, "claim", claimed(**ball | {"radius": "1/8"}, global_gap="63/128")["claim"]),
        changed("growth", "63/64"),
    ]  # fmt: skip
    found = verdicts(true)
    assert [code for code, _ in found] == [0] * len(true), found
    assert "nowhere lower by more than 0.4921875" in found[-2][1]


def test_every_forged_field_of_a_tree_is_refused_by_the_check_that_names_it() -> None:
    for (code, said), (_, words) in zip(verdicts([forged for forged, _ in FORGED]), FORGED):
        assert code == 1, said
        assert words in said


def test_what_is_no_tree_is_not_read() -> None:
    found = verdicts(BROKEN)
    assert {code for code, _ in found} == {2}, [
        (said, part) for (code, said), part in zip(found, BROKEN) if code != 2
    ]


def test_the_schema_holds_trees() -> None:
    schema = json.loads((DOCS / "proof_schema.json").read_text())
    valid = Draft202012Validator(schema).is_valid
    assert valid(TREE)
    assert all(valid(forged) for forged, _ in FORGED)
    # Sizes, and which entries there are, are not for a schema.
    passed = [part for part in BROKEN if valid(part)]
    assert passed == [
        changed("tree", 0, "entry", 1),
        *(
            changed("tree", 0, name, rows)
            for name in ("point", "slopes")
            for rows in ([], ["0"] * 2)
        ),
    ]


# --- functions of another form --------------------------------------------------------------------

SQUARE = {"op": "piecewise", "of": [0], "breakpoints": [], "pieces": [["0", "0", "1/2"]]}
MODULUS = {"op": "piecewise", "breakpoints": ["0"], "pieces": [["0", "-1"], ["0", "1"]]}


def with_function(*nodes: Any, slopes: int) -> Any:
    """x^2/2 plus something, at 2, with one case that shows a bound of 8."""
    tree = [{"point": ["0"], "slopes": ["0"] * slopes, "parts": 0}]
    found = changed("tree", tree, document=claimed(gap="8", global_gap="8", eps="8"))
    last = len(nodes) + 1
    function = [TREE["function"][0], SQUARE, *nodes, {"op": "add", "of": [1, last]}]
    found["evidence"] |= {"pivot": ["2"], "reach": "1/8", "growth": "-64"}
    return found | {"function": function, "x": ["2"]}


def test_only_sums_of_kinks_of_affine_functions() -> None:
    weigh = {"op": "affine", "columns": 1, "width": 1}
    minus = {**weigh, "of": [2], "rows": [["-1"]]}
    cubic = {
        "op": "piecewise",
        "of": [0],
        "breakpoints": ["4"],
        "pieces": [["0"], ["-64", "0", "0", "1"]],
    }
    found = verdicts([
        with_function({**MODULUS, "of": [0]}, slopes=1),
        with_function({"op": "max", "of": [0], "columns": 1}, slopes=0),
        with_function({"op": "norm2", "of": [0], "columns": 1}, slopes=0),
        with_function({"op": "logsumexp", "of": [0], "columns": 1}, slopes=0),
        # a convex rest may have kinks, a concave one may not
        with_function({"op": "norm2", "of": [0], "columns": 1}, minus, slopes=0),
        with_function({**MODULUS, "of": [1]}, slopes=1),
        with_function(cubic, slopes=1),
        with_function({**MODULUS, "of": [0]}, {"op": "multiply", "of": [2, 2]}, slopes=1),
        with_function({**MODULUS, "of": [0]}, {"op": "multiply", "of": [0, 2]}, slopes=1),
        with_function({**MODULUS, "of": [0]}, {**MODULUS, "of": [2]}, slopes=2),
        # of what f does not depend on any line will do
        with_function({**MODULUS, "of": [0]}, {**weigh, "of": [2], "rows": [["0"]]}, slopes=1),
    ])  # fmt: skip
    assert [code for code, _ in found] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0], found
    assert "concave" in found[4][1]
    assert all("cases have no rule for node" in said for _, said in found[5:10]), found


# --- lines, against many points -------------------------------------------------------------------


def test_lines_are_on_the_right_side() -> None:
    own, rng = load_checker(), random.Random(0)
    touched = refused = 0
    for _ in range(300):
        pieces = case_files.random_pieces(rng, 2)
        nodes = [own.read_node({"op": "variable", "size": 1}, 0, [])]
        nodes.append(own.read_node({"op": "piecewise", "of": [0], **pieces}, 1, nodes))
        line, s = own.Held(own.NIL), Fraction(rng.randint(-6, 6), 2)
        line.side = rng.choice([-1, 1])
        lo, hi = sorted(Fraction(rng.randint(-12, 12), 4) for _ in range(2))
        ends = [rng.choice([lo, lo, -own.INF]), rng.choice([hi, hi, own.INF])]
        try:
            line.lay(nodes[1], 0, s, own.Span(*ends))
        except own.Refused:
            refused += 1
            assert not all(map(own.finite, ends))
            continue
        left, right = (q if own.finite(q) else 60 * math.copysign(1, q) for q in ends)
        kinks = [t for t in nodes[1].ends if left <= t <= right]
        places = [*kinks, *(left + (right - left) * Fraction(k, 97) for k in range(98))]
        gaps = []
        for u in map(Fraction, places):
            value = own.over_pieces(nodes[1], nodes[1].tables[0], own.point(u))[0]
            gaps.append(line.side * (value - s * u - line.base[0]))
        assert min(gaps) >= 0
        touched += min(gaps) <= Fraction(1, 100)
    assert touched > 150
    assert refused > 20


# --- a search for claims that are too good --------------------------------------------------------


def test_no_tree_shows_more_than_there_is() -> None:
    """Honest trees of too good claims, and random changes of their numbers: none is a proof."""
    own, rng, documents = load_checker(), random.Random(5), []
    names = sorted(set(FORGERS) - {"another x", "another claim", "a field less", "a smaller gap"})
    for seed in range(150):
        own_rng = random.Random(seed)
        function, growth = random_function(own_rng)
        if function[0]["size"] > 1:
            continue
        nodes: list[Any] = []
        for k, node in enumerate(function):
            nodes.append(own.read_node(copy.deepcopy(node), k, nodes))
        x = Fraction(rng.randint(-32, 32), 8)
        places = [Fraction(k, 8) for k in range(-160, 161)]
        lowest = min(own.value_of(nodes, own.exact([z]))[1] for z in places)
        here = own.value_of(nodes, own.exact([x]))[0]
        trees = (case_files.found_by_the_library(own_rng, function, lowest - more)
                 for more in (Fraction(1, 100), Fraction(1)))  # fmt: skip
        tree = next(filter(None, trees), None)
        if tree is None or here - lowest < 1:
            continue
        claim = {"eps": "1000000", "gap": "1000000", "global_gap": str((here - lowest) * 99 / 100)}
        for _ in range(16):
            moved = copy.deepcopy(tree)
            cases = {"growth": str(growth), "tree": moved}
            for name in rng.choices(names, k=rng.randint(0, 3)) if documents else []:
                if moved:
                    FORGERS[name](rng, {"evidence": {"cases": cases}}, moved)
            found = altered(claimed(**claim), "evidence", "cases", cases)
            found |= {"x": [str(x)], "function": function}
            found["evidence"] |= {"pivot": [str(x)], "reach": "1/1024", "growth": "-1000"}
            documents.append(found)
    found = verdicts(documents)
    assert len(documents) > 300
    assert {code for code, _ in found} == {1, 2}
    assert sum("closed" in said for _, said in found) > 100


def test_random_trees_and_forgeries(tmp_path: Path) -> None:
    files = [file for seed in range(6000, 6060) for file in case_files.files(seed, tmp_path)]
    found = verdicts([json.loads(file.text) for file in files])
    for file, (code, said) in zip(files, found):
        assert "TRUE" not in file.fault(code, said), (file.what, file.truth, said, file.text)
    assert {code for code, _ in found} == {0, 1, 2}
    assert sum(code == 0 for code, _ in found) > 20


# --- what the library exports ---------------------------------------------------------------------


def ramps(n: int, d: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), gs.Variable(d)
    rows = X * np.sign(X @ rng.standard_normal(d) + 0.8 * rng.standard_normal(n))[:, None]
    return gs.sum(gs.ramp(rows @ w, rho=1.0)) / n + 0.05 * gs.sum(gs.square(w))


def test_global_minima_by_cases_leave_as_proof_files(tmp_path: Path) -> None:
    F = ramps(16, 2, 1)
    res = gs.minimize(F, [0.5, 0.5], eps=1e-5, delta=1e-5, stationarity="minimum", rng=0)
    cert = res.certificate
    assert cert.scope == "global"
    assert cert.verify(F).ok
    document = json.loads(cert.export(tmp_path / "proof", F).read_text())
    assert len(document["evidence"]["cases"]["tree"]) == len(cert.case_points)
    less = str(rational(document["claim"]["global_gap"]) / 10**9)
    found = verdicts([document, altered(document, "claim", "global_gap", less)])
    assert [code for code, _ in found] == [0, 1]
    assert "is not closed" in found[1][1]
    ball = prove_minimum(F.program(), cert.x, cert.x.tolist())
    assert ball is not None
    part, _ = with_cases(F.program(), ball, 1)
    assert part.scope == "ball"
    open_gap = json.loads(part.export(tmp_path / "part", F).read_text())
    assert [code for code, _ in verdicts([open_gap])] == [0]


def test_what_is_believed_or_constrained_is_refused_with_its_reason(tmp_path: Path) -> None:
    def f(x: Any) -> float:
        return float(np.abs(x).sum())

    kept: dict[str, Any] = {"delta": 1e-4, "stationarity": "minimum", "rng": 0}
    believed = gs.certify(f, [0.0, 0.0], np.sign, curvature=0.0, **kept)
    F = gs.norm1(gs.Variable(2))
    with pytest.raises(TypeError, match="rests on a curvature that was declared"):
        believed.export(tmp_path / "proof", F)
    # Of a formula the curvature is derived: what was declared is not needed.
    derived = gs.certify(F, [0.0, 0.0], curvature=0.0, **kept)
    assert (derived.label, derived.curvature) == ("certified", None)
    assert [code for code, _ in verdicts(
        [json.loads(derived.export(tmp_path / "proof", F).read_text())]
    )] == [0]  # fmt: skip
    inside = gs.certify(F, [0.0, 0.0], bounds=[(-1, 1)] * 2, **kept)
    with pytest.raises(ValueError, match="not about these bounds and constraints"):
        inside.export(tmp_path / "inside", F)
    with pytest.raises(ValueError, match="not about these bounds and constraints"):
        derived.export(tmp_path / "inside", F, bounds=[(-1, 1)] * 2)


def test_a_sharp_norm_is_sharp_in_all_its_entries() -> None:
    """Which entry of a row a sharpness names is nothing that its weights have to have."""
    found = copy.deepcopy(TREE)
    del found["claim"]["global_gap"], found["evidence"]["cases"]
    found["claim"] |= {"radius": "1", "within": "0", "scope": "ball", "strict": True}
    found |= {"x": ["0", "0"], "function": [
        {"op": "variable", "size": 2}, {"op": "norm2", "of": [0], "columns": 2},
    ]}  # fmt: skip
    documents = []
    for place, one, other in ((0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 1)):
        sharp = {"node": 1, "row": 0, "one": one, "other": other, "sigma": "1", "bend": "0"}
        shown = {"pivot": ["0", "0"], "sharp": [sharp],
                 "supports": [{"node": 1, "row": 0, "place": place, "s": "0"}]}  # fmt: skip
        documents.append({**found, "evidence": {**found["evidence"], **shown}})
    assert [code for code, _ in verdicts(documents)] == [0] * 4


def test_the_logarithm_of_1_is_0() -> None:
    """It is on a breakpoint, where the slopes are one: no side is to be decided."""
    bent = {"breakpoints": ["0"], "pieces": [["0", "1"], ["0", "1", "-1"]]}
    function = [
        {"op": "variable", "size": 1},
        {"op": "piecewise", "of": [0], "breakpoints": [], "pieces": [["1"]]},
        {"op": "log", "of": [1]}, {"op": "piecewise", "of": [2], **bent},
        {"op": "add", "of": [0, 3]},
    ]  # fmt: skip
    found = copy.deepcopy(NEAR) | {"x": ["0"], "function": function}
    found["claim"] |= {"eps": "1", "delta": "0"}
    found["evidence"] = {"pivot": ["0"], "directions": [["1"]], "weights": ["1"]}
    assert [code for code, _ in verdicts([found])] == [0]


def test_no_entry_of_a_norm_has_a_slope_above_1() -> None:
    """|w + log 2| at 1: what is enclosed is not longer than 1, to the last digit."""
    function = [
        {"op": "variable", "size": 1},
        {"op": "piecewise", "of": [0], "breakpoints": [], "pieces": [["2"]]},
        {"op": "log", "of": [1]}, {"op": "add", "of": [0, 2]},
        {"op": "norm2", "of": [3], "columns": 1},
    ]  # fmt: skip
    found = copy.deepcopy(NEAR) | {"x": ["1"], "function": function}
    found["claim"] |= {"eps": "1", "delta": "0"}
    found["evidence"] = {"pivot": ["1"], "directions": [["1"], ["-1"]], "weights": ["1", "1"]}
    assert [code for code, _ in verdicts([found])] == [0]
