"""Proof files, and the checker that shares no code with the library."""

import ast
import copy
import functools
import json
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from benchmarks.differential import CHECKER, load_checker, run
from scipy.sparse.linalg import aslinearoperator
from tests.atoms import EXAMPLES

import goldstein as gs
from goldstein.certificates import NearCertificate
from goldstein.errors import InputTypeError, NotCertifiableError


def check(path: Path) -> tuple[int, str]:
    """Run the checker where nothing is installed."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(CHECKER), str(path)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def checker():
    return load_checker()


@pytest.fixture
def judge(checker, tmp_path, capsys):
    """Return a function that puts a document, or raw text, to the checker."""

    def verdict(document: object) -> tuple[int, str]:
        path = tmp_path / "proof.json"
        text = document if isinstance(document, str) else json.dumps(document)
        path.write_text(text)
        code = checker.main([str(path)])
        return code, capsys.readouterr().out

    return verdict


def small_proof(tmp_path: Path) -> dict[str, object]:
    """A proof about |w_1 - 1| + 2 |w_2| + |w|^2/2 at (0.05, 0.02): the pivot is (0, 0)."""
    w = gs.Variable(2)
    F = gs.sum(gs.abs(w * np.array([1.0, 2.0])) + 0.5 * w) + gs.max(w + np.array([0.0, 1.0]))
    ways = [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    cert = NearCertificate.prove(F, [0.05, 0.02], [0, 0], ways, [0.2, 0.3, 0.4, 0.1])
    return json.loads(cert.export(tmp_path / "small", F).read_text())


@functools.cache
def judged(seed: int) -> tuple[Counter[str], list[str]]:
    """Honest and forged certificates of one random function, judged by both checkers."""
    return run(1, seed)


SEEDS = range(22)


@pytest.mark.parametrize("seed", SEEDS)
def test_both_checkers_agree_on_honest_and_forged_certificates(seed: int) -> None:
    assert judged(seed)[1] == []


def test_honest_and_forged_certificates_are_judged_both_ways() -> None:
    tally = sum((judged(seed)[0] for seed in SEEDS), Counter())
    for kind in ("NearCertificate", "GoldsteinCertificate"):
        for verdict in ("true", "false"):
            found = sum(n for what, n in tally.items() if kind in what and what.endswith(verdict))
            assert found >= 30, tally


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_atom_can_be_exported(name, judge, tmp_path) -> None:
    rng = np.random.default_rng(0)
    F = EXAMPLES[name](gs.Variable(3) * np.array([1.0, 2.0, -1.0]))
    pivot = [Fraction(1, 3), Fraction(0), Fraction(-1)]
    ways, weights = rng.standard_normal((3, 3)), [1.0, 2.0, 0.5]
    cert = NearCertificate.prove(F, [0.3, 0.0, -1.0], pivot, ways, weights)
    document = json.loads(cert.export(tmp_path / "atom", F).read_text())
    assert judge(document)[0] == 0
    if cert.eps > 0:
        document["claim"]["eps"] = float(0.99 * cert.eps).hex()
        assert judge(document)[0] == 1


def test_breast_cancer_svm_is_checked_with_nothing_installed(tmp_path) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    from goldstein.sklearn import RhoMarginSVC

    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    machine = RhoMarginSVC(random_state=0).fit(X, y)
    cert, F = machine.certificate_, machine.objective(X, y)
    assert isinstance(cert, NearCertificate)
    path = cert.export(tmp_path / "svm.json", F)
    assert check(path)[0] == 0
    document = json.loads(path.read_text())
    document["claim"]["eps"] = float(0.9 * cert.eps).hex()
    path.write_text(json.dumps(document))
    assert check(path)[0] == 1


def test_two_layer_network_on_diabetes_is_checked_with_nothing_installed(tmp_path) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.load_diabetes(return_X_y=True)
    X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
    F = gs.models.relu_two_layer(X, y, width=3, ridge=1e-2, mean=True)
    res = gs.minimize(F, F.start(0), eps=1e-1, delta=1e-1, stationarity="near", rng=0)
    assert res.success
    assert check(res.certificate.export(tmp_path / "net.json", F))[0] == 0


def test_maximum_of_affine_functions_is_checked_with_nothing_installed(tmp_path) -> None:
    rng = np.random.default_rng(0)
    F = gs.max_affine(rng.standard_normal((60, 8)), rng.standard_normal(60), gs.Variable(8))
    res = gs.minimize(F, np.zeros(8), eps=1e-3, delta=1e-3, stationarity="near", rng=0)
    code, said = check(res.certificate.export(tmp_path / "max.json", F))
    assert code == 0
    assert said.startswith("TRUE")


def test_goldstein_certificate_of_an_expression(judge, tmp_path) -> None:
    w = gs.Variable(2)
    F = gs.sum(gs.abs(w)) + 0.5 * gs.sum_squares(w)
    res = gs.minimize(F, np.array([1.0, -0.7]), eps=1e-2, delta=1e-2, rng=0)
    document = json.loads(res.certificate.export(tmp_path / "goldstein", F).read_text())
    assert document["claim"]["kind"] == "goldstein"
    assert judge(document)[0] == 0
    on_kink = copy.deepcopy(document)
    on_kink["evidence"]["points"][0][0] = "0"
    on_kink["claim"] |= {"eps": "1000", "delta": "1000"}
    code, said = judge(on_kink)
    assert code == 1
    assert "kink" in said


def test_slope_at_a_kink_that_no_piece_has_is_refused(judge, tmp_path) -> None:
    # (relu(w) + 1)^2/2 + (relu(-w) - 1)^2/2 has derivative 1 at 0; a sum of subgradients gives 0.
    w = gs.Variable(1)
    F = 0.5 * gs.sum_squares(gs.relu(w) + 1.0) + 0.5 * gs.sum_squares(gs.relu(-w) - 1.0)
    cert = NearCertificate.prove(F, [0.0], [0], [[1.0], [-1.0]], [0.5, 0.5])
    document = json.loads(cert.export(tmp_path / "trap", F).read_text())
    assert judge(document)[0] == 0
    document["claim"]["eps"] = "99/100"
    assert judge(document)[0] == 1


def test_direction_along_a_kink_needs_a_constant_argument(judge, tmp_path) -> None:
    w = gs.Variable(2)
    dead = gs.relu(w[0] * gs.relu(w[1]))  # w_2 < 0: the argument is 0 around the pivot
    cert = NearCertificate.prove(
        gs.sum_squares(w) + dead, [1.0, -1.0], [1, -1], [[1.0, 0.0]], [1.0]
    )
    good = json.loads(cert.export(tmp_path / "dead", gs.sum_squares(w) + dead).read_text())
    assert judge(good)[0] == 0
    good["evidence"]["pivot"] = ["1", "0"]  # here the direction stays on the kink of relu(w_2)
    good["claim"] |= {"eps": "100", "delta": "100"}
    assert judge(good)[0] == 1


def test_argument_that_is_constant_on_one_side_only_is_not_constant(judge, tmp_path) -> None:
    w = gs.Variable(2)
    kinked = [
        (gs.sum(gs.abs(gs.hard_tanh(w[0]) * w[1])), [3, 0], [1.0, 0.0]),
        (gs.sum(gs.abs(gs.mcp(w[:1], 1.0, 2.0) - 1.0)), [-2, 0], [0.0, 1.0]),
    ]
    for F, pivot, way in kinked:
        x = np.array(pivot, dtype=float)
        claim = NearCertificate(x, tuple(pivot), 1.0, 100.0, [way], [1.0], [[0.0, 0.0]], [0.0])
        assert not claim.verify(F).ok
        assert judge(claim.export(tmp_path / "claim.json", F).read_text())[0] == 1


def test_line_through_a_smooth_breakpoint(judge, tmp_path) -> None:
    # mcp(w) is 1 for w >= 2 and 1 - (w - 2)^2/4 below: |mcp(w) - 1| is smooth at 2, its slope is 0.
    F = gs.sum(gs.relu(1.0 - gs.mcp(gs.Variable(1), 1.0, 2.0)))
    cert = NearCertificate.prove(F, [2.0], [2], [[-1.0]], [1.0])
    assert cert.eps == 0.0
    assert cert.verify(F).ok
    assert judge(cert.export(tmp_path / "line.json", F).read_text())[0] == 0


TAMPERED = {
    "eps": lambda p: p["claim"].update(eps="0"),
    "delta": lambda p: p["claim"].update(delta="1/100"),
    "negative delta": lambda p: p["claim"].update(delta="-1"),
    "kind": lambda p: p["claim"].update(kind="goldstein"),
    "unknown kind": lambda p: p["claim"].update(kind="global"),
    "x": lambda p: p["x"].__setitem__(0, "1"),
    "pivot": lambda p: p["evidence"]["pivot"].__setitem__(0, "1/64"),
    "direction": lambda p: p["evidence"]["directions"].__setitem__(0, ["0", "1"]),
    "weights": lambda p: p["evidence"].update(weights=["1", "0", "0", "0"]),
    "negative weight": lambda p: p["evidence"]["weights"].__setitem__(0, "-1/8"),
    "no weight": lambda p: p["evidence"].update(weights=["0"] * 4),
    "schema": lambda p: p.update(schema="another"),
    "version": lambda p: p.update(version=3),
    "a field more": lambda p: p.update(note="believe me"),
    "a row": lambda p: p["function"][1]["rows"].__setitem__(0, ["7"]),
    "a breakpoint": lambda p: p["function"][2].update(breakpoints=["1/1000"]),
    "a piece": lambda p: p["function"][2].update(pieces=[["0", "-1"], ["0", "9"]]),
    "an offset": lambda p: p["function"][-3].update(offset=["5", "1"]),
    "a node less": lambda p: p["function"].pop(1),
    "another order": lambda p: p["function"].reverse(),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_tampered_proof_is_refused(what, judge, tmp_path) -> None:
    proof = small_proof(tmp_path)
    assert judge(proof)[0] == 0
    TAMPERED[what](proof)
    assert judge(proof)[0] in (1, 2)


def node(**fields: object) -> str:
    """A proof with one hostile node after the variable."""
    function = [{"op": "variable", "size": 1}, {"of": [0], **fields}]
    return json.dumps(
        {
            "schema": "goldstein-proof", "version": 1, "x": ["0"],
            "claim": {"kind": "near", "eps": "1", "delta": "1"},
            "evidence": {"pivot": ["0"], "directions": [["1"]], "weights": ["1"]},
            "function": function,
        }
    )  # fmt: skip


PLAIN = node(op="piecewise", breakpoints=["0"], pieces=[["0", "-1"], ["0", "1"]])
HOSTILE = {
    "empty": "",
    "not JSON": "{",
    "a list": "[]",
    "a number": "7",
    "deep": "[" * 200_000,
    "deep inside": PLAIN.replace('["0"]', "[" * 50_000 + "]" * 50_000, 1),
    "not text": "\udcff",
    "duplicate key": PLAIN.replace('"version": 1', '"version": 2, "version": 1'),
    "NaN": PLAIN.replace('"x": ["0"]', '"x": [NaN]'),
    "NaN as text": PLAIN.replace('"x": ["0"]', '"x": ["NaN"]'),
    "infinity": PLAIN.replace('"eps": "1"', '"eps": "Infinity"'),
    "a float": PLAIN.replace('"eps": "1"', '"eps": 1.0'),
    "decimal": PLAIN.replace('"eps": "1"', '"eps": "1.5"'),
    "huge exponent": PLAIN.replace('"eps": "1"', '"eps": "0x1p+9999"'),
    "longer exponent": PLAIN.replace('"eps": "1"', '"eps": "0x1p+99999999"'),
    "power": PLAIN.replace('"eps": "1"', '"eps": "1e999999999"'),
    "denominator 0": PLAIN.replace('"eps": "1"', '"eps": "1/0"'),
    "long integer": PLAIN.replace('"eps": "1"', f'"eps": "{"9" * 5000}"'),
    "huge JSON integer": PLAIN.replace('"version": 1', f'"version": {"9" * 5000}'),
    "cycle": node(op="add").replace('"of": [0]', '"of": [1]'),
    "forward": node(op="add").replace('"of": [0]', '"of": [7]'),
    "backwards": node(op="add").replace('"of": [0]', '"of": [-1]'),
    "truth value": node(op="add").replace('"of": [0]', '"of": [false]'),
    "unknown node": node(op="system", command="ls"),
    "large table": node(op="affine", columns=1, width=10**9, rows=[["1"]]),
    "no rows": node(op="affine", columns=1, width=1, rows=[], at=[]),
    "twice": node(op="affine", columns=1, width=1, rows=[["1", "1"]], at=[[0, 0]]),
    "discontinuous": node(op="piecewise", breakpoints=["0"], pieces=[["0"], ["1"]]),
    "descending": node(op="piecewise", breakpoints=["1", "0"], pieces=[["0"]] * 3),
    "high degree": node(op="piecewise", breakpoints=[], pieces=[["0"] * 1000]),
    "long breakpoint": node(op="piecewise", breakpoints=["0x" + "f" * 90_000], pieces=[["0"]] * 2),
    "no coefficients": node(op="piecewise", breakpoints=[], pieces=[[]]),
    "a table as answer": PLAIN.replace('"size": 1', '"size": 2').replace('["0"]', '["0", "0"]'),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_file_is_unreadable_and_nothing_worse(what, checker, tmp_path, capsys) -> None:
    path = tmp_path / "hostile.json"
    path.write_bytes(HOSTILE[what].encode("utf-8", "surrogateescape"))
    assert checker.main([str(path)]) == 2
    assert capsys.readouterr().out.startswith("UNREADABLE")


def test_plain_template_of_the_hostile_files_is_true(judge) -> None:
    assert judge(PLAIN)[0] == 0


def test_folders_devices_and_missing_files_are_unreadable(checker, tmp_path) -> None:
    for path in (tmp_path, "/dev/zero", tmp_path / "nothing"):
        assert checker.main([str(path)]) == 2


def test_repeated_squaring_ends(judge) -> None:
    # Each node squares the one before: exact numbers would double their length 60 times.
    nodes = [{"op": "variable", "size": 1}]
    nodes += [{"op": "multiply", "of": [k, k]} for k in range(60)]
    nodes += [{"op": "piecewise", "of": [60], "breakpoints": ["0"], "pieces": [["0"], ["0", "1"]]}]
    proof = json.loads(PLAIN)
    proof["function"] = nodes
    proof["evidence"]["pivot"] = ["1/3"]
    proof["claim"]["eps"] = "0"
    assert judge(proof)[0] in (0, 1, 2)


def test_checker_is_one_small_file_of_the_standard_library() -> None:
    text = CHECKER.read_text()
    assert len(text.splitlines()) < 1150
    names = set()
    for part in ast.walk(ast.parse(text)):
        if isinstance(part, ast.Import):
            names |= {alias.name.split(".")[0] for alias in part.names}
        elif isinstance(part, ast.ImportFrom):
            names.add((part.module or "").split(".")[0])
    assert names <= sys.stdlib_module_names
    assert "float(" not in text.replace("{float(q):.{digits}g}", "")  # floats only to print


def test_what_cannot_be_written_down_is_refused(tmp_path) -> None:
    w = gs.Variable(2)
    free = gs.sum(gs.abs(gs.linear(aslinearoperator(np.eye(2)), w)))
    own = gs.sum(gs.smooth_function(w, np.sin, np.cos))
    cert = NearCertificate.prove(gs.norm1(w), [0.0, 0.0], [0, 0], [[1.0, 1.0]], [1.0])
    for F, word in ((free, "LinearOperator"), (own, "sin"), (np.sum, "cannot be written down")):
        with pytest.raises(InputTypeError, match=word):
            cert.export(tmp_path / "no.json", F)
    assert list(tmp_path.iterdir()) == []


def test_claims_that_rest_on_beliefs_are_refused_with_a_reason(tmp_path) -> None:
    F, x = gs.sum(gs.abs(gs.Variable(1) - 2.0)), [1.0]
    values = gs.minimize(F.value, x, jac="2-point", eps=0.5, delta=0.5, rng=0)
    found = {
        "kkt": gs.certify(F, x, delta=1e-3, rng=0, bounds=[(0.0, 1.0)]),
        "values": values.certificate,
    }
    for kind, certificate in found.items():
        assert certificate.kind == kind
        for limits in ({}, {"bounds": [(0.0, 1.0)]}):
            with pytest.raises(InputTypeError, match=f"{kind} certificate: it rests on"):
                certificate.export(tmp_path / "no.json", F, **limits)
    assert list(tmp_path.iterdir()) == []


def test_nodes_without_a_description_are_refused_in_constraints_too(tmp_path) -> None:
    w = gs.Variable(3)
    F, limits = gs.norm1(w) + gs.sum_squares(w), {"constraints": [np.sort(w)[1] <= 0.5]}
    res = gs.minimize(F, np.ones(3), stationarity="near", eps=0.1, delta=0.1, rng=0, **limits)
    assert res.certificate.kind == "near-kkt"
    with pytest.raises(InputTypeError, match="no node for order"):
        res.certificate.export(tmp_path / "no.json", F, **limits)
    assert list(tmp_path.iterdir()) == []


def test_pivots_in_a_box_are_refused_by_name(tmp_path) -> None:
    w = gs.Variable(1)
    F = abs(gs.sum(gs.logistic(w)) - 1.0) + 0.01 * gs.sum_squares(w)
    res = gs.minimize(F, [1.0], stationarity="near", eps=1e-2, delta=1e-2, rng=0)
    with pytest.raises(NotCertifiableError, match="known by a box only"):
        res.certificate.export(tmp_path / "no.json", F)
