"""The checker that is proved in Coq: the proof stands, and the program does what it says.

Where Coq can neither be found nor installed, all of this is skipped, and build.sh says so.
"""

import copy
import gzip
import json
import random
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from benchmarks.adversary.exact_oracle import rational
from benchmarks.adversary.proof_files import FORGED, files
from benchmarks.differential import cases
from benchmarks.verified import PROGRAM, ROOT, build, judge, verdict
from scipy.optimize import LinearConstraint

import goldstein as gs

SOURCES = ROOT / "verified"

X_NODE = {"op": "variable", "size": 3}

#: |w| at 0: both directions and equal weights are needed.
SMALL = {
    "schema": "goldstein-proof", "version": 1, "x": ["0"],
    "claim": {"kind": "near", "eps": "0", "delta": "0"},
    "evidence": {"pivot": ["0"], "directions": [["1"], ["-1"]], "weights": ["1", "0x1p+0"]},
    "function": [
        {"op": "variable", "size": 1},
        {"op": "piecewise", "of": [0], "breakpoints": ["0"], "pieces": [["0", "-1"], ["0", "1"]]},
    ],
}  # fmt: skip


@pytest.fixture(scope="session")
def built() -> str:
    code, said = build()
    if code == 77:
        pytest.skip("NO COQ: the proof of the checker is not checked. " + said)
    assert code == 0, said
    return said


def test_the_proof_rests_on_the_axioms_of_the_reals_only(built) -> None:
    names = (PROGRAM.parent / "assumed.names").read_text().split()
    allowed = (SOURCES / "assumptions.txt").read_text().split()
    assert names  # what Coq printed was understood
    assert set(names) <= set(allowed)
    assert "accepted by coqchk" in built


def compiles(folder: Path, *modules: str) -> bool:
    for module in modules:
        command = ["coqc", "-q", "-Q", ".", "Verified", f"{module}.v"]
        if subprocess.run(command, cwd=folder, capture_output=True, timeout=300).returncode:
            return False
    return True


#: What the checker says, and what it would say with a bug in it.
BUGS = {
    "a direction may stay on a kink": (
        "Some Eq => if constant e then Some p else None",
        "Some Eq => Some p",
    ),
    "the far side of a breakpoint": (
        "match compare (along e) (Poly [b]) with",
        "match compare (Poly [b]) (along e) with",
    ),
    "tied rows of a maximum": ("| Some Eq => constant e && constant f", "| Some Eq => true"),
    "half of the product rule": (
        "row := [(a, i, start (along f)); (b, i, start (along e))]",
        "row := [(a, i, start (along f))]",
    ),
    "one constant factor": ("(constant e && constant f) ||", "(constant e || constant f) ||"),
    "negative weights": ("| Gt, Some (total, s)", "| _, Some (total, s)"),
    "points that are too far": (
        "fun y => if within f y then limit p y [] else None",
        "fun y => limit p y []",
    ),
    "a multiplier away from its limit": (
        "match snd l with Some b => Qeq_bool b q | None => false end",
        "match snd l with Some b => true | None => false end",
    ),
    "a fall outside the constraints": (
        "&& forallb (stays_inside d z) (constraints m)",
        "&& true",
    ),
    "gradients that are left over": (
        "if all (all is_zero) rest then Some g else None",
        "Some g",
    ),
}


def with_bug(bug: str, folder: Path) -> Path:
    """Copy what is built, and put a bug into the checker."""
    shutil.copytree(PROGRAM.parent, folder)
    right, wrong = BUGS[bug]
    text = (SOURCES / "Check.v").read_text()
    assert text.count(right) == 1
    (folder / "Check.v").write_text(text.replace(right, wrong))
    return folder


@pytest.mark.parametrize("bug", ["a direction may stay on a kink", "half of the product rule"])
def test_a_bug_in_the_checker_breaks_its_proof(bug, built, tmp_path) -> None:
    folder = with_bug(bug, tmp_path / "verified")
    assert compiles(folder, "Check")
    assert not compiles(folder, "Sound")


def test_agrees_with_goldstein_check_and_with_the_truth(built) -> None:
    found = list(judge(range(12), own=False))
    assert not [j for j in found if j.fault]
    inside = [j for j in found if j.verified != 3 and j.plain != 2]
    assert sum(j.plain == j.verified == 0 for j in inside) >= 40
    assert sum(j.plain == j.verified == 1 for j in inside) >= 40
    assert sum(j.plain != j.verified for j in inside) <= 0.05 * len(inside)


def test_known_forgeries_are_not_true(built, tmp_path) -> None:
    path = tmp_path / "proof.json"
    for forged in FORGED.values():
        path.write_text(json.dumps(forged))
        assert verdict(path)[0] != 0


def test_a_minimum_has_no_lower_point(built, tmp_path) -> None:
    """Where f is said to be convex, f(z) >= f(y) - eps |z - y| at random z, near and far."""
    rng, path, found = np.random.default_rng(0), tmp_path / "proof.json", 0
    for seed in range(60):
        case = cases(seed)[0]
        assert case.deed == "near"
        case.certificate.export(path, case.function)
        code, said = verdict(path)
        if code or "MINIMUM" not in said:
            continue
        f, found = case.function, found + 1
        y = np.array([float(q) for q in case.certificate.exact_pivot])
        for size in (1e-3, 1.0, 100.0):
            for z in y + size * rng.standard_normal((30, y.size)):
                fall = f(y) - case.certificate.eps * np.linalg.norm(z - y) - f(z)
                assert fall <= 1e-9 * (1 + abs(f(y)) + abs(f(z)))
    assert found >= 5


def test_what_is_not_convex_has_no_minimum(built, tmp_path) -> None:
    """Pieces with slopes that fall, or curve downwards, at a stationary point."""
    path = tmp_path / "proof.json"
    for breakpoints, pieces in (
        (["0"], [["0", "1"], ["0", "-1"]]),  # -|w|
        ([], [["0", "0", "-1"]]),
        ([], [["0", "0", "0", "1"]]),
        (["-1", "1"], [["1"], ["0", "-1"], ["-1"]]),  # a ramp
    ):
        node = SMALL["function"][1] | {"breakpoints": breakpoints, "pieces": pieces}
        document = SMALL | {"function": [SMALL["function"][0], node]}
        document["claim"] = SMALL["claim"] | {"eps": "1"}
        path.write_text(json.dumps(document))
        code, said = verdict(path)
        assert code == 0
        assert "MINIMUM" not in said
    path.write_text(json.dumps(SMALL))
    assert "MINIMUM" in verdict(path)[1]


def test_bounds_and_affine_constraints(built, tmp_path) -> None:
    """A KKT point in bounds and below a plane; each lie about it is refused."""
    rng = np.random.default_rng(0)
    X, y, w = rng.standard_normal((20, 3)), rng.standard_normal(20), gs.Variable(3)
    F = gs.sum(gs.abs(X @ w - y)) + 0.5 * gs.sum_squares(w - 1.0)
    limits = {
        "bounds": [(0, 1)] * 3,
        "constraints": [LinearConstraint(np.ones((1, 3)), -np.inf, [0.25])],
    }
    target = {"eps": 1e-2, "delta": 1e-2, "stationarity": "near", "rng": 0}
    res = gs.minimize(F, np.full(3, 0.05), **limits, **target)
    assert res.success
    path = res.certificate.export(tmp_path / "kkt.json", F, **limits)
    assert verdict(path)[0] == 0
    honest = json.loads(path.read_text())
    used = [k for k, row in enumerate(honest["evidence"]["rows"]) if rational(row["weight"]) > 0]
    assert used  # the plane holds the point

    def said(*where: object, value: object) -> int:
        document = copy.deepcopy(honest)
        part = document
        for step in where[:-1]:
            part = part[step]
        assert part[where[-1]] != value
        part[where[-1]] = value
        path.write_text(json.dumps(document))
        return verdict(path)[0]

    assert said("constraints", 0, "upper", value="1/5") == 1  # the pivot is beyond it
    assert said("constraints", 0, "upper", value="1/3") == 1  # it is away from it: no multiplier
    assert said("bounds", "lower", value=["1/2"] * 3) == 1
    assert said("evidence", "normal", 0, value="9") == 1
    for k in used:
        assert said("evidence", "rows", k, "weight", value="-1") == 1
    assert said("claim", "eps", value="0") == 1
    kinked = [X_NODE, {"op": "max", "of": [0], "columns": 3}]
    assert said("constraints", 0, "function", value=kinked) == 3


SQUARE = {"op": "piecewise", "of": [0], "breakpoints": [], "pieces": [["0", "0", "1"]]}
#: |w| at -3/2, and lower at 1/2 where w^2 <= 1/4; the kink of |w| is no obstacle.
FALL = {
    **SMALL, "version": 2, "x": ["-3/2"], "claim": {"kind": "refutation", "fall": "1"},
    "evidence": {"point": ["1/2"]}, "bounds": {"lower": [None], "upper": ["1/2"]},
    "constraints": [
        {"function": [SMALL["function"][0], SQUARE], "lower": None, "upper": "1/4"},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("lie", "code"),
    [
        ({}, 0), ({"evidence": {"point": ["0"]}}, 0), ({"x": ["-1"]}, 1),
        ({"claim": {"kind": "refutation", "fall": "5/4"}}, 1),
        ({"claim": {"kind": "refutation", "fall": "0"}}, 1),
        ({"claim": {"kind": "refutation", "fall": "-1"}}, 1),
        ({"evidence": {"point": ["3/2"]}}, 1), ({"evidence": {"point": ["-1"]}}, 1),
        ({"bounds": {"lower": [None], "upper": ["1/4"]}}, 1), ({"version": 1}, 2),
        ({"evidence": {"point": ["0", "0"]}}, 2), ({"constraints": {}}, 2),
        ({"claim": {"kind": "minimum", "strict": True, "unique": False}}, 3),
        ({"claim": {"kind": "plus"}}, 3),
    ],
)  # fmt: skip
def test_refutations(lie, code, built, tmp_path) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(FALL | lie))
    assert verdict(path)[0] == code
    if code == 0:
        printed = json.loads(verdict(path, "--print")[1])
        assert plain(printed) == plain(FALL | lie)


def test_compressed_files(built, tmp_path) -> None:
    path, text = tmp_path / "proof.json.gz", json.dumps(SMALL).encode()
    for lie, code in ((text, 0), (text.replace(b'"eps": "0"', b'"eps": "-1"'), 1), (b"{", 2)):
        path.write_bytes(gzip.compress(lie))
        assert verdict(path)[0] == code
    path.write_bytes(gzip.compress(text)[:-9])
    assert verdict(path)[0] == 2
    path.write_bytes(gzip.compress(b" " * (2**26 + 1)))
    assert verdict(path)[0] == 2


# --- the reader: what is believed and not proved --------------------------------------------------


def plain(document: object) -> object:
    """Say the same with all numbers as fractions, all rows with places, nothing left out."""
    if isinstance(document, dict):
        document = {key: plain(value) for key, value in document.items()}
        if document.get("op") == "variable":
            document.pop("of", None)
        if document.get("op") == "affine":
            at = document.get("at") or [list(range(document["width"]))] * len(document["rows"])
            rows = document.get("rows") or [[Fraction(1)] * len(places) for places in at]
            document |= {"at": at, "rows": rows}
        return document
    if isinstance(document, list):
        return [plain(value) for value in document]
    try:
        return rational(document) if isinstance(document, str) else document
    except ValueError:
        return document


def test_what_is_read_is_what_is_written(built, tmp_path) -> None:
    path, read = tmp_path / "proof.json", 0
    for seed in range(40):
        for file in files(seed):
            path.write_text(file.text)
            code, printed = verdict(path, "--print")
            if code == 0 and file.truth is not None:
                assert plain(json.loads(printed)) == plain(json.loads(file.text))
                read += 1
    assert read >= 30


def test_exit_codes_are_those_of_goldstein_check(built, tmp_path) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(SMALL))
    assert verdict(path) == (0, verdict(path)[1])
    assert verdict(path)[1].startswith("TRUE")
    path.write_text(json.dumps(SMALL | {"x": ["1"]}))
    assert verdict(path)[0] == 1
    path.write_text("{}")
    assert verdict(path)[0] == 2
    assert verdict(tmp_path / "none.json")[0] == 2


def test_damaged_files_are_never_more_true(built, tmp_path) -> None:
    """One byte changed: the program ends with a verdict, and TRUE only if the claim still holds.

    About |w| at 0 with eps = 0 every proof needs both directions, and equal weights.
    """
    rng, path, text = random.Random(0), tmp_path / "proof.json", json.dumps(SMALL)
    verdicts = set()
    for _ in range(300):
        at = rng.randrange(len(text))
        changed = text[:at] + rng.choice(["", chr(rng.randrange(32, 127)), "0", '"', "[", "}"])
        path.write_text(changed + text[at + 1 :])
        code, said = verdict(path)
        assert code in (0, 1, 2, 3), said
        verdicts.add(code)
        if code == 0:
            read = json.loads(path.read_text())
            slopes = [rational(piece[1]) for piece in read["function"][1]["pieces"]]
            ways = [rational(way[0]) > 0 for way in read["evidence"]["directions"]]
            weights = [rational(w) for w in read["evidence"]["weights"]]
            terms = (a * slopes[way] for a, way in zip(weights, ways, strict=True))
            assert abs(sum(terms)) <= rational(read["claim"]["eps"]) * sum(weights)
    assert {1, 2} <= verdicts
