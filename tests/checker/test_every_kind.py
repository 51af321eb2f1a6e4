"""Claims with bounds, constraints and terms, put to goldstein-check and to the page's checker."""

from __future__ import annotations

import copy
import gzip
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import browser_checker
from benchmarks.adversary import limit_files, minimum_files, proof_files
from benchmarks.differential import load_checker
from jsonschema import Draft202012Validator
from scipy.optimize import LinearConstraint

import goldstein as gs

X = {"op": "variable", "size": 2}
#: |x_1 - 2| + |x_2 - 2|, x_1 + x_2^2, |x - (3, 1/2)|^2 / 2
TO_TWO = [
    X,
    {"op": "affine", "of": [0], "columns": 1, "width": 2, "rows": [["1", "0"], ["0", "1"]],
     "offset": ["-2", "-2"]},
    {"op": "piecewise", "of": [1], "breakpoints": ["0"], "pieces": [["0", "-1"], ["0", "1"]]},
    {"op": "affine", "of": [2], "columns": 1, "width": 2, "at": [[0, 1]]},
]  # fmt: skip
CURVED = [
    X,
    {"op": "affine", "of": [0], "columns": 1, "width": 2, "at": [[1]]},
    {"op": "multiply", "of": [1, 1]},
    {"op": "affine", "of": [0], "columns": 1, "width": 2, "at": [[0]]},
    {"op": "add", "of": [2, 3]},
]
SQUARE = [
    X,
    {"op": "affine", "of": [0], "columns": 1, "width": 2, "rows": [["1", "0"], ["0", "1"]],
     "offset": ["-3", "-1/2"]},
    {"op": "piecewise", "of": [1], "breakpoints": [], "pieces": [["0", "0", "1/2"]]},
    {"op": "affine", "of": [2], "columns": 1, "width": 2, "at": [[0, 1]]},
]  # fmt: skip
HEAD = {"schema": "goldstein-proof", "version": 2}
#: At (1, 1): gradient (-1, -1) + 1/2 (1, 2) + (1/2, 0) = 0.
KKT = {
    **HEAD, "claim": {"kind": "near-kkt", "eps": "0", "delta": "1/10"}, "x": ["1", "21/20"],
    "function": TO_TWO, "bounds": {"lower": ["0", None], "upper": ["1", None]},
    "constraints": [{"function": CURVED, "lower": None, "upper": "2"}],
    "evidence": {
        "pivot": ["1", "1"], "directions": [["1", "1"]], "weights": ["1"], "normal": ["1/2", "0"],
        "rows": [{"constraint": 0, "weight": "1/2", "direction": ["1", "1"]}],
        "separation": ["0", "1"],
    },
}  # fmt: skip
#: The minimum of SQUARE + |x|_1 is (2, 0), where v = (1, 1/2).
PLUS = {
    **HEAD, "claim": {"kind": "plus", "eps": "0", "delta": "0"}, "x": ["2", "0"],
    "function": SQUARE,
    "term": {"name": "l1_box", "weight": ["1", "1"], "lower": [None] * 2, "upper": [None] * 2},
    "evidence": {"points": [["2", "0"]], "weights": ["1"], "subgradient": ["1", "1/2"]},
}  # fmt: skip
REFUTED = {
    **HEAD, "claim": {"kind": "refutation", "fall": "37/8"}, "x": ["0", "0"], "function": SQUARE,
    "evidence": {"point": ["3", "1/2"]},
}  # fmt: skip

both = pytest.mark.skipif(not browser_checker.available(), reason="NO NODE.JS: the page is not run")


def altered(document: Any, *path: Any) -> Any:
    """Return a document in which the last of `path` stands at the place the others name."""
    found = copy.deepcopy(document)
    *places, last, value = path
    part = found
    for place in places:
        part = part[place]
    part[last] = value
    return found


#: What a forger would change, and the word of the refusal that names it.
FORGED = [
    (altered(KKT, "evidence", "separation", ["0", "-1"]), "separation"),
    (altered(KKT, "evidence", "separation", ["-1", "1/4"]), "separation"),
    (altered(KKT, "evidence", "normal", ["0", "1/2"]), "normal"),
    (altered(KKT, "evidence", "normal", ["-1/2", "0"]), "normal"),
    (altered(KKT, "evidence", "pivot", ["1", "17/16"]), "hold"),
    (altered(KKT, "evidence", "pivot", ["17/16", "1"]), "bounds"),
    (altered(KKT, "x", ["17/16", "1"]), "bounds"),
    (altered(KKT, "claim", "delta", "1/100"), "delta"),
    (altered(KKT, "evidence", "rows", 0, "weight", "-1/2"), "limit"),
    (altered(KKT, "evidence", "rows", 0, "weight", "1/4"), "combination"),
    (altered(KKT, "constraints", 0, "upper", "3"), "limit"),
    (altered(KKT, "constraints", 0, "upper", "1"), "hold"),
    (altered(KKT, "bounds", "upper", ["2", None]), "normal"),
    (altered(PLUS, "evidence", "subgradient", ["1", "2"]), "conjugate"),
    (altered(PLUS, "evidence", "subgradient", ["9/10", "1/2"]), "domain of h"),
    (altered(PLUS, "term", "weight", ["1/2", "1"]), "conjugate"),
    (altered(PLUS, "term", {"name": "group_l2", "groups": [[0]], "weight": ["1"]}), "conjugate"),
    (altered(PLUS, "term", "upper", ["1", None]), "bounds of h"),
    (altered(PLUS, "evidence", "points", [["2", "1/64"]]), "delta"),
    (altered(REFUTED, "claim", "fall", "38/8"), "fall"),
    (altered(REFUTED, "claim", "fall", "0"), "fall"),
    ({**REFUTED, "bounds": {"lower": ["0", "0"], "upper": ["1", "1"]}}, "bounds"),
    ({**REFUTED, "constraints": [{"function": CURVED, "lower": None, "upper": "2"}]}, "hold"),
]
#: Not the format.
BROKEN = [
    altered(KKT, "version", 1), altered(KKT, "evidence", "rows", 0, "constraint", 1),
    altered(KKT, "evidence", "rows", 0, "constraint", True), altered(PLUS, "term", "name", "l2"),
    altered(PLUS, "term", "weight", ["-1", "1"]), altered(PLUS, "term", "weight", ["1"]),
    {**PLUS, "bounds": {"lower": ["0", "0"], "upper": ["1", "1"]}}, {**KKT, "more": 1},
    altered(PLUS, "term", {"name": "group_l2", "groups": [[0, 1], [1]], "weight": ["1", "1"]}),
    altered(KKT, "constraints", 0, "function", 0, "size", 3),
    # What may be missing may not be null.
    {**REFUTED, "constraints": None}, {**REFUTED, "bounds": None},
    altered(REFUTED, "function", 0, "of", None), altered(REFUTED, "function", 1, "offset", None),
]  # fmt: skip


def verdicts(documents: list[Any]) -> list[tuple[int, str]]:
    """Ask goldstein-check, and where there is a Node.js the page's checker; they must agree."""
    texts = [json.dumps(document) for document in documents]
    found = browser_checker.python_codes(texts)
    if browser_checker.available():
        others = [browser_checker.CODES[v["verdict"]] for v in browser_checker.judged(texts)]
        assert [code for code, _ in found] == others
    return found


def test_true_claims_are_true() -> None:
    in_a_group = altered(
        PLUS, "term", {"name": "group_l2", "groups": [[0], [1]], "weight": ["1", "1"]}
    )
    nobody = altered(in_a_group, "term", "groups", [[0], [], [1]])
    nobody["term"]["weight"] = ["1"] * 3
    shares = altered(PLUS, "term", {"name": "simplex", "total": "2"})
    found = verdicts([KKT, PLUS, in_a_group, nobody, shares, REFUTED])
    assert [code for code, _ in found] == [0] * 6, found


def test_every_forged_field_is_refused_by_the_check_that_names_it() -> None:
    for (code, said), (_, word) in zip(verdicts([forged for forged, _ in FORGED]), FORGED):
        assert code == 1, said
        assert word in said


def test_what_is_no_proof_file_is_not_read() -> None:
    assert {code for code, _ in verdicts(BROKEN)} == {2}


@pytest.mark.parametrize("gap", [Fraction(1, 8), Fraction(1, 2)])
def test_a_gap_of_the_term_counts_as_the_theorem_says(gap: Fraction) -> None:
    """v = (1 - gap/2, 1/2) at (2, 0) has a Fenchel gap of `gap` for |x|_1, and misses by gap/2."""
    v = [str(1 - gap / 2), "1/2"]
    stated = gap / 2 + gap / 4  # |residual| + gap / delta
    claim = {"kind": "plus", "eps": str(stated), "delta": "4"}
    honest = altered(altered(PLUS, "evidence", "subgradient", v), "claim", claim)
    less = altered(honest, "claim", "eps", str(stated - Fraction(1, 10**9)))
    assert [code for code, _ in verdicts([honest, less])] == [0, 1]


def test_random_files_with_limits_get_the_verdict_they_must() -> None:
    files = [file for seed in range(5000, 5120) for file in limit_files.files(seed)]
    found = verdicts([json.loads(file.text) for file in files])
    seen = {code for code, _ in found}
    for file, (code, said) in zip(files, found):
        assert "TRUE" not in file.fault(code, said), (file.what, file.truth, said, file.text)
    assert seen >= {0, 1}


@both
def test_the_page_and_goldstein_check_agree_on_random_and_exported_files() -> None:
    texts = [json.dumps(document) for document in proof_files.FORGED.values()]
    texts += [file.text for seed in range(7000, 7060) for file in proof_files.files(seed)]
    texts += browser_checker.exported(range(7000, 7012))
    tally, wrong = browser_checker.disagreements(texts)
    assert wrong == []
    assert {(0, 0), (1, 1), (2, 2)} <= set(tally)


@both
def test_a_key_that_comes_twice_is_no_proof_for_either() -> None:
    text = json.dumps(PLUS).replace('"eps": "0"', '"eps": "0", "eps": "9"')
    assert browser_checker.disagreements([text, "\ufeff" + json.dumps(PLUS)])[0] == {(2, 2): 2}


@pytest.mark.parametrize("term", [gs.prox.l1(0.3), gs.prox.box(-0.5, 0.5), gs.prox.simplex(1.0),
                                  gs.prox.group_l2(0.2, [[0, 1], [2, 3], [4, 5]])])  # fmt: skip
def test_a_run_with_a_term_leaves_as_a_proof_file(term: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 6))
    F = gs.sum(gs.huber(A @ gs.Variable(6) - A @ [1, 0, 0, -2, 0, 0])) * (1 / 30)
    res = gs.minimize(F, np.full(6, 1 / 6), plus=term, eps=1e-3, delta=1e-3, rng=0)
    text = res.certificate.export(tmp_path / "plain", F).read_text()
    packed = res.certificate.export(tmp_path / "packed.json.gz", F)
    assert gzip.decompress(packed.read_bytes()).decode() == text
    assert packed.stat().st_size < len(text)
    assert [code for code, _ in verdicts([json.loads(text)])] == [0]


LIMITS = [
    {"bounds": [(0, 1), (None, None)]}, {"constraints": [gs.sum_squares(gs.Variable(2)) <= 2.0]},
    {"constraints": [LinearConstraint([[1.0, 1.0]], 1, 1)], "bounds": [(0, 3)] * 2},
    {"constraints": [gs.max(gs.Variable(2)) <= 1.0, gs.norm1(gs.Variable(2)) <= 1.5]},
]  # fmt: skip


@pytest.mark.parametrize("limits", LIMITS)
def test_a_constrained_run_leaves_as_a_proof_file(limits: Any, tmp_path: Path) -> None:
    F = gs.sum(abs(gs.Variable(2) - 2.0))
    res = gs.minimize(F, [0, 0], eps=1e-3, delta=1e-2, stationarity="near", rng=0, **limits)
    document = json.loads(res.certificate.export(tmp_path / "proof", F, **limits).read_text())
    moved = altered(document, "x", ["-1", "5"])
    assert [code for code, _ in verdicts([document, moved])] == [0, 1]


@pytest.mark.parametrize("shape", [(2, 2), (1, 6), (3, 2)])
def test_a_term_of_singular_values(shape: tuple[int, int], tmp_path: Path) -> None:
    """The nuclear norm is bounded by a factorisation, the singular values of v by elimination."""
    target = np.random.default_rng(0).standard_normal(shape).ravel()
    F = 0.5 * gs.sum_squares(gs.Variable(target.size) - target)
    x0, term = np.zeros(target.size), gs.prox.nuclear(0.3, shape)
    res = gs.minimize(F, x0, plus=term, eps=1e-3, delta=1e-3, rng=0)
    document = json.loads(res.certificate.export(tmp_path / "proof", F).read_text())
    own = document["term"]
    lies = [
        altered(document, "term", "weight", "1/4"),  # v has a singular value of about 0.3
        altered(document, "term", "left", [["0"] * len(row) for row in own["left"]]),
        altered(document, "term", "right", [["0x1p+3"] * len(row) for row in own["right"]]),
        altered(document, "x", [str(k) for k in range(target.size)]),
    ]
    broken = [
        altered(document, "term", "weight", "-1"), altered(document, "term", "rows", 7),
        altered(document, "term", "left", own["left"][1:]),
        altered(document, "term", "left", [row[1:] for row in own["left"]]),
    ]  # fmt: skip
    wanted = [0, *[1] * len(lies), *[2] * len(broken)]
    assert [code for code, _ in verdicts([document, *lies, *broken])] == wanted


def test_the_gap_of_the_nuclear_norm_is_never_too_small() -> None:
    """Against singular values of NumPy: h(x) + h*(v) - <v, x>, or a refusal."""
    own, rng = load_checker(), np.random.default_rng(1)
    seen = 0
    for _ in range(60):
        m, n, k = (int(a) for a in rng.integers(1, 4, 3))
        left, right, error = (rng.integers(-2, 3, s) for s in ((m, k), (n, k), (m, n)))
        X, V = left @ right.T + error * int(rng.random() < 0.3), rng.integers(-1, 2, (m, n))
        w = int(rng.integers(1, 4))
        rows = {name: [[Fraction(int(a)) for a in row] for row in table]
                for name, table in (("left", left), ("right", right))}  # fmt: skip
        term = {"name": "nuclear", "rows": m, "columns": n, "weight": Fraction(w), **rows}
        x, v = ([Fraction(int(a)) for a in table.ravel()] for table in (X, V))
        inside = np.linalg.norm(V, 2) <= w + 1e-12
        try:
            gap, away = own.term_gap(term, x, v)
        except own.Refused:
            assert not inside
            continue
        seen += 1
        assert inside
        assert away == 0
        assert gap >= w * np.linalg.norm(X, "nuc") - np.sum(V * X) - 1e-9
    assert seen > 20


def test_the_schema_holds_every_kind_and_nothing_broken() -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs" / "proof_schema.json").read_text())
    valid = Draft202012Validator(schema).is_valid
    random = [json.loads(file.text) for seed in range(20) for file in limit_files.files(seed)]
    assert all(map(valid, [KKT, PLUS, REFUTED, *random]))
    shapes = [KKT, PLUS, REFUTED]
    assert not any(valid({**document, "more": 1}) for document in shapes)
    assert not valid(altered(PLUS, "term", "name", "l2"))
    assert not valid(altered(KKT, "x", [1, 2]))


# --- minima ---------------------------------------------------------------------------------------

ABS = {"breakpoints": ["0"], "pieces": [["0", "-1"], ["0", "1"]]}


def minimum(nodes: list[Any], x: list[str], reach: str | None, **more: Any) -> dict[str, Any]:
    """Return a claim about a minimum at x with the pivot there; `more` goes where it belongs."""
    claim = {"kind": "minimum", "eps": "0", "delta": "0", "gap": "0", "radius": reach,
             "within": None, "scope": "ball" if reach else "global", "strict": False,
             "unique": False}  # fmt: skip
    evidence = {
        "pivot": x,
        "reach": reach,
        "growth": "0",
        "convexity": None,
        "supports": [],
        "sharp": [],
    }
    for name, value in more.items():
        (claim if name in claim else evidence)[name] = value
    return {**HEAD, "claim": claim, "x": x, "function": nodes, "evidence": evidence}


def one(*nodes: dict[str, Any]) -> list[Any]:
    return [{"op": "variable", "size": 1}, *nodes]


def flat(node: int, t: str = "0", s: str = "0") -> dict[str, Any]:
    """A horizontal support of the first entry of a node."""
    return {"node": node, "row": 0, "place": 0, "s": s, "t": t, "p": "0"}


MODULUS = one({"op": "piecewise", "of": [0], **ABS})
SHARP = [{"node": 1, "row": 0, "one": 0, "other": 0, "sigma": "1", "bend": "0"}]
STRICT = minimum(
    MODULUS, ["0"], "5", supports=[flat(1)], sharp=SHARP, growth="2/5", strict=True, within="0"
)
EVERYWHERE = {**STRICT["claim"], "scope": "global", "radius": None}
CUBE = one({"op": "piecewise", "of": [0], "breakpoints": [], "pieces": [["0", "0", "0", "1"]]})
SLAB = [X, {"op": "affine", "of": [0], "columns": 1, "width": 2, "at": [[0]]},
        {"op": "piecewise", "of": [1], "breakpoints": [], "pieces": [["0", "0", "1"]]}]  # fmt: skip
#: ||w| - 1|
DOUBLE = [*MODULUS,
          {"op": "affine", "of": [1], "columns": 1, "width": 1, "at": [[0]], "offset": ["-1"]},
          {"op": "piecewise", "of": [2], **ABS}]  # fmt: skip
#: |w| - |w|: the adjoint of the shared kink is 0.
NOTHING = [*MODULUS, {"op": "affine", "of": [1], "columns": 1, "width": 1, "rows": [["-1"]]},
           {"op": "add", "of": [1, 2]}]  # fmt: skip
#: max(w, -w, ...) with the same entry twice.
TWICE = one({"op": "affine", "of": [0], "columns": 1, "width": 1, "rows": [["1"], ["1"], ["-1"]]},
            {"op": "max", "of": [1], "columns": 3})  # fmt: skip
HALVES = [{"node": 2, "row": 0, "place": k, "s": s} for k, s in enumerate(("1/4", "1/4", "1/2"))]
#: 10 |w_2 - w_1^2| + (1 - w_1)^2
VALLEY = [
    X, {"op": "affine", "of": [0], "columns": 1, "width": 2, "at": [[0]]},
    {"op": "piecewise", "of": [1], "breakpoints": [], "pieces": [["0", "0", "-1"]]},
    {"op": "affine", "of": [0], "columns": 1, "width": 2, "at": [[1]]}, {"op": "add", "of": [2, 3]},
    {"op": "piecewise", "of": [4], "breakpoints": ["0"], "pieces": [["0", "-10"], ["0", "10"]]},
    {"op": "piecewise", "of": [1], "breakpoints": [], "pieces": [["1", "-2", "1"]]},
    {"op": "add", "of": [5, 6]},
]  # fmt: skip

#: w^2/2 - |w|, with a concave kink at 0
HAT = one(
    {
        "op": "piecewise",
        "of": [0],
        "breakpoints": ["0"],
        "pieces": [["0", "1", "1/2"], ["0", "-1", "1/2"]],
    }
)

#: w^2 on the left, 3 w^2 on the right; w^2 with a coefficient too many
CURL = one(
    {
        "op": "piecewise",
        "of": [0],
        "breakpoints": ["0"],
        "pieces": [["0", "0", "1"], ["0", "0", "3"]],
    }
)
PADDED = one({"op": "piecewise", "of": [0], "breakpoints": [], "pieces": [["0", "0", "1", "0"]]})

#: -max(2 w, w + 1/2): a concave kink at 1/2
LOWERED = one(
    {"op": "affine", "of": [0], "columns": 1, "width": 1, "rows": [["2"], ["1"]],
     "offset": ["0", "1/2"]},
    {"op": "max", "of": [1], "columns": 2},
    {"op": "affine", "of": [2], "columns": 1, "width": 1, "rows": [["-1"]]},
)  # fmt: skip
#: (w_2/8 + w_1^2/2) (w_2/8 - w_1^2/2): the slopes have the same ranges on a ball, and differ.
CROSSED = [
    X, {"op": "affine", "of": [0], "columns": 1, "width": 2, "at": [[0]]},
    {"op": "piecewise", "of": [1], "breakpoints": [], "pieces": [["0", "0", "1/2"]]},
    {"op": "affine", "of": [0], "columns": 1, "width": 2, "at": [[1]], "rows": [["1/8"]]},
    {"op": "add", "of": [2, 3]},
    {"op": "affine", "of": [2], "columns": 1, "width": 1, "rows": [["-1"]]},
    {"op": "add", "of": [3, 5]},
    {"op": "multiply", "of": [4, 6]},
]  # fmt: skip

#: -log w, whose second derivative is 1/9 at 3
NEGLOG = one({"op": "log", "of": [0]},
             {"op": "affine", "of": [1], "columns": 1, "width": 1, "rows": [["-1"]]})  # fmt: skip

TRUE_MINIMA = [
    minimum(NEGLOG, ["2"], "1", growth="1/9", eps="1/2", gap="1/2"),
    minimum(one(), ["0"], "1", eps="1", gap="1"),
    minimum(LOWERED, ["0"], "1/2", eps="1", gap="1/2"),
    minimum(CROSSED, ["0", "0"], "1", growth="-6", gap="3"),
    minimum(CURL, ["0"], "1", supports=[{**flat(1), "p": "2"}], growth="2"),
    minimum(PADDED, ["0"], "1", growth="2"),
    STRICT,
    altered(altered(STRICT, "evidence", "convexity", "0"), "claim", EVERYWHERE),
    minimum(CUBE, ["0"], "1/2", growth="-3", gap="3/8"),
    minimum(SLAB, ["0", "0"], None),
    minimum(DOUBLE, ["1"], None, supports=[flat(3)]),
    minimum(HAT, ["1"], "1", growth="1"),
    minimum(NOTHING, ["0"], None),
    minimum(TWICE, ["0"], None, supports=HALVES),
    minimum(VALLEY, ["1", "1"], None, supports=[flat(5)]),
]  # fmt: skip
#: With the word of the refusal.
FALSE_MINIMA = [
    (minimum(NEGLOG, ["2"], "1", growth="1/8", eps="1/2", gap="1/2"), "curvature"),
    (minimum(one(), ["0"], "1", eps="1", gap="1/2"), "gap"),
    (minimum(LOWERED, ["0"], "1", eps="1", gap="1"), "concave"),
    # At (1, 0) the second derivative along the first axis is -3.
    (minimum(CROSSED, ["0", "0"], "1", growth="-5/2", gap="5/4"), "curvature"),
    (minimum(CURL, ["0"], "1", supports=[{**flat(1), "p": "6"}], growth="6"), "bends"),
    (altered(STRICT, "evidence", "sharp", 0, "sigma", "1000001/1000000"), "slope"),
    (altered(STRICT, "evidence", "supports", [flat(1, s="1/1000000")]), "slope"),
    (altered(STRICT, "evidence", "growth", "401/1000"), "curvature"),
    (altered(STRICT, "claim", "within", None), "close"),
    (altered(STRICT, "claim", "radius", "51/10"), "ball around"),
    (altered(STRICT, "claim", "unique", True), "unique"),
    (altered(STRICT, "claim", EVERYWHERE), "global"),
    (altered(STRICT, "x", ["1/10"]), "pivot"),
    (minimum(MODULUS, ["0"], "5", strict=True, within="0", supports=[flat(1)]), "lowest"),
    (minimum(MODULUS, ["0"], "1"), "gradient"),
    (minimum(CUBE, ["0"], "1/2", growth="-3", gap="37/100"), "gap"),
    (minimum(CUBE, ["0"], "1/2", growth="-29/10", gap="1"), "curvature"),
    (minimum(SLAB, ["0", "0"], None, growth="2"), "curvature"),
    (minimum(HAT, ["1"], str(1 + Fraction(1, 2**50)), growth="1"), "concave"),
    (minimum(DOUBLE, ["0"], "1/2"), "concave"),
    (minimum(TWICE, ["0"], None, supports=[{**HALVES[0], "s": "1/2"}, *HALVES[1:]]), "sum 1"),
    (minimum(VALLEY, ["1", "1"], None), "curvature"),
    (minimum(VALLEY, ["1", "1"], None, supports=[flat(5, s="11")]), "slope"),
    (minimum(VALLEY, ["1", "0"], None, supports=[flat(5)]), "gap"),
]  # fmt: skip


def test_true_minima_are_true() -> None:
    found = verdicts(TRUE_MINIMA)
    assert [code for code, _ in found] == [0] * len(TRUE_MINIMA), found


def test_minima_that_are_none_are_refused_by_the_check_that_names_it() -> None:
    for (code, said), (_, word) in zip(verdicts([f for f, _ in FALSE_MINIMA]), FALSE_MINIMA):
        assert code == 1, said
        assert word in said


def test_supports_are_of_their_kind_and_come_once() -> None:
    """Of pieces with a place of contact, of rows without one."""
    row = {key: value for key, value in flat(1).items() if key in ("node", "row", "place", "s")}
    wrong = [
        minimum(MODULUS, ["0"], "5", supports=[row]),
        minimum(MODULUS, ["0"], "5", supports=[flat(1), flat(1)]),
        minimum(TWICE, ["0"], None, supports=[{**HALVES[0], "t": "0", "p": "0"}, *HALVES[1:]]),
        minimum(TWICE, ["0"], None, supports=[*HALVES, HALVES[0]]),
    ]
    assert [code for code, _ in verdicts(wrong)] == [2] * 4


def test_no_lower_point_is_found_where_a_minimum_is_proved(tmp_path: Path) -> None:
    files = [file for seed in range(9000, 9070) for file in minimum_files.files(seed, tmp_path)]
    found = verdicts([json.loads(file.text) for file in files])
    for file, (code, said) in zip(files, found):
        assert "TRUE" not in file.fault(code, said), (file.what, file.truth, said, file.text)
    assert sum(code == 0 for code, _ in found) > 10


def _formulas() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    w, x, Z = gs.Variable(4), gs.Variable(2), rng.standard_normal((30, 4))
    return {
        "valley": (10 * abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2, [1.0, 1.0]),
        "a maximum": (gs.max(gs.stack([x[0] ** 2 + x[1], x[1] ** 2 - x[1], -x[0] - x[1]])), [0, 0]),
        "absolute deviations": (gs.norm1(Z @ w - Z @ [1.0, 0.0, -1.0, 2.0]), [1.0, 0.0, -1.0, 2.0]),
        "logistic": (gs.sum(gs.logistic(Z @ w)) + 5.0 * gs.sum_squares(w), np.zeros(4)),
        "a norm": (gs.norm2(w) + 0.5 * gs.sum_squares(w), np.zeros(4)),
        "a hilltop": (gs.sum(x * x / 2 - abs(x)), [0.0, 0.0]),
    }


@pytest.mark.parametrize("name", _formulas())
def test_claims_about_minima_leave_as_proof_files(name: str, tmp_path: Path) -> None:
    F, x = _formulas()[name]
    cert = gs.certify(F, x, delta=1.0, stationarity="minimum")
    assert cert.kind == ("refutation" if name == "a hilltop" else "minimum")
    assert cert.verify(F).ok
    document = json.loads(cert.export(tmp_path / "proof", F).read_text())
    forged = altered(document, "claim", "fall" if cert.kind == "refutation" else "eps", "9")
    if cert.kind == "minimum":
        forged = altered(document, "evidence", "growth", "1000")
    assert [code for code, _ in verdicts([document, forged])] == [0, 1]


def test_functions_that_files_cannot_hold_are_refused_by_name(tmp_path: Path) -> None:
    F = gs.trace(lambda x: abs(x[0] - np.exp(x[1])) + x @ x, 2)
    cert = gs.certify(F, [1.5, 0.5], delta=1e-3, rng=0)
    with pytest.raises(TypeError, match="no node for exp"):
        cert.export(tmp_path / "proof", F)
    assert list(tmp_path.iterdir()) == []


def test_a_version_is_a_number() -> None:
    assert [
        code for code, _ in verdicts([altered(PLUS, "version", True), {**PLUS, "version": 3}])
    ] == [2, 2]


def test_supports_of_what_f_does_not_depend_on_are_not_asked_about() -> None:
    """c |x| + x^2 / 2 at 0 with a weight of 2, which is longer than 1: it matters where c does."""
    size = {"op": "norm2", "of": [0], "columns": 1}
    square = {"op": "piecewise", "of": [0], "breakpoints": [], "pieces": [["0", "0", "1/2"]]}
    held = [{"node": 1, "row": 0, "place": 0, "s": "2"}]
    claims = []
    for c in ("0", "1"):
        times = {"op": "affine", "of": [1], "columns": 1, "width": 1, "rows": [[c]]}
        nodes = [{"op": "variable", "size": 1}, size, times, square, {"op": "add", "of": [2, 3]}]
        claims.append(minimum(nodes, ["0"], "1", growth="1", supports=held, eps="4", gap="16"))
    codes = verdicts(claims)
    assert [code for code, _ in codes] == [0, 1]
    assert "longer than 1" in codes[1][1]


@pytest.mark.parametrize("op", ["max", "norm2"])
def test_a_substitute_does_not_lift_the_function_where_it_seems_not_to_matter(op: str) -> None:
    """|x - 1| + relu(c - 100) has no minimum at 0, whatever weights are stated for c.

    Of c = 2, the largest entry or the norm of constants, f does not depend: relu is 0 there. With a
    weight of 1000 it does, and the minorant would be 900 too high.
    """
    pieces = {"breakpoints": ["0"], "pieces": [["0", "-1"], ["0", "1"]]}
    one_row = {"op": "affine", "of": [0], "columns": 1, "width": 1}
    constants = ["1", "2"] if op == "max" else ["0", "2"]
    nodes = [
        {"op": "variable", "size": 1},
        {**one_row, "rows": [["1"]], "offset": ["-1"]},
        {"op": "piecewise", "of": [1], **pieces},
        {**one_row, "rows": [["0"], ["0"]], "offset": constants},
        {"op": op, "of": [3], "columns": 2},
        {"op": "piecewise", "of": [4], "breakpoints": ["100"], "pieces": [["0"], ["-100", "1"]]},
        {"op": "add", "of": [2, 5]},
    ]
    flat = {"node": 2, "row": 0, "place": 0, "t": "0", "s": "0", "p": "0"}
    claims = [
        minimum(nodes, x, reach, supports=[flat, {"node": 4, "row": 0, "place": 1, "s": weight}])
        for weight in ("1", "1000")
        for x in (["0"], ["1"])
        for reach in (None, "3")
    ]
    assert [code for code, _ in verdicts(claims)] == [1, 1, 0, 0, 1, 1, 1, 1]


def test_a_sharp_kink_of_curved_arguments() -> None:
    """max(c x^2 + x, x^2 - x) on [-1, 1], from how sharply it rises at 0; v has c - 1 twice."""
    square = {"op": "piecewise", "of": [0], "breakpoints": [], "pieces": [["0", "0", "1"]]}
    slopes = {"op": "affine", "of": [0], "columns": 1, "width": 1, "rows": [["1"], ["-1"]]}
    held = [{"node": 5, "row": 0, "place": j, "s": "1/2"} for j in (0, 1)]
    found = []
    for c, bend, growth in (
        ("1", "0", "4"), ("1", "0", "33/8"), ("3", "4", "4"), ("3", "3", "4"), ("3", "4", "33/8"),
    ):  # fmt: skip
        curves = {**slopes, "of": [1], "rows": [[c], ["1"]]}
        nodes = [{"op": "variable", "size": 1}, square, slopes, curves,
                 {"op": "add", "of": [2, 3]}, {"op": "max", "of": [4], "columns": 2}]  # fmt: skip
        sharp = {"node": 5, "row": 0, "one": 0, "other": 1, "sigma": "1/2", "bend": bend}
        found.append(minimum(nodes, ["0"], "1", growth=growth, supports=held, sharp=[sharp]))
    codes = verdicts(found)
    assert [code for code, _ in codes] == [0, 1, 0, 1, 1]
    assert "bends more" in codes[3][1]


def test_a_separation_stays_on_equalities() -> None:
    """x_1 = x_2 besides: along (1, 1) the other constraint rises, along (0, 1) this one moves."""
    line = {"op": "affine", "of": [0], "columns": 1, "width": 2, "rows": [["1", "-1"]]}
    held = {"function": [X, line], "lower": "0", "upper": "0"}
    document = altered(KKT, "constraints", [*KKT["constraints"], held])
    both_ways = [altered(document, "evidence", "separation", v) for v in (["1", "1"], ["0", "1"])]
    assert [code for code, _ in verdicts(both_ways)] == [0, 1]


def test_what_is_used_twice_is_named_once(tmp_path: Path, capsys: Any) -> None:
    """x_1 + x_2^2 in words, and with a square that is used twice."""
    path, own = tmp_path / "proof.json", load_checker()
    square = {"op": "multiply", "of": [0, 0]}
    twice = [{"op": "variable", "size": 1}, square, {"op": "multiply", "of": [1, 1]}]
    for function, x, words in (
        (CURVED, ["0", "0"], "f(x) = (u1)^2 + x[0]\n  u1 = x[1]\n"),
        (twice, ["0"], "f(x) = (u1)^2\n  u1 = (x)^2\n"),
    ):
        evidence = {"points": [x], "weights": ["1"]}
        claim = {"kind": "goldstein", "eps": "1", "delta": "0"}
        parts = {"claim": claim, "x": x, "function": function, "evidence": evidence}
        path.write_text(json.dumps({**HEAD, **parts}))
        assert own.main([str(path)]) == 0
        assert words in capsys.readouterr().out


def test_a_term_is_looked_at_within_delta_of_x() -> None:
    """The nearest point of the simplex is 1/2 away, and its gap is 0 there."""
    far = {**PLUS, "x": ["1/2", "0"], "term": {"name": "simplex", "total": "1"}}
    far["evidence"] = {"points": [["1/2", "0"]], "weights": ["1"], "subgradient": ["0", "0"]}
    claims = [{"kind": "plus", "eps": "9", "delta": delta} for delta in ("1/4", "1/2")]
    assert [code for code, _ in verdicts([{**far, "claim": c} for c in claims])] == [1, 0]


def test_a_sharpness_is_of_places_in_its_own_row() -> None:
    nodes = [X, {"op": "piecewise", "of": [0], **ABS},
             {"op": "affine", "of": [1], "columns": 1, "width": 2, "at": [[0, 1]]}]  # fmt: skip
    held = [flat(1), {**flat(1), "row": 1, "place": 1}]
    sharp = [{**SHARP[0], "row": 1, "one": place, "other": 1} for place in (1, 0)]
    found = [minimum(nodes, ["0", "0"], "1", supports=held, sharp=[part]) for part in sharp]
    codes = verdicts(found)
    assert [code for code, _ in codes] == [0, 2], codes
    assert "another row" in codes[1][1]


def test_the_example_of_a_tree_is_true() -> None:
    """It stands in the page about the format."""
    page = (Path(__file__).parents[2] / "docs" / "proof_files.md").read_text()
    tree = page.split('\n    {"schema": "goldstein-proof"')[2].partition("\n\n")[0]
    assert verdicts([json.loads('{"schema": "goldstein-proof"' + tree)])[0][0] == 0
