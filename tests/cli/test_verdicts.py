"""Exit codes of verify, certify and check: 0 only where it is so, whatever the file or function."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import goldstein as gs
from goldstein.cli.app import app

FUNCTIONS = """
import numpy as np
import goldstein as gs
x0 = [1.0, -2.0]
def f(x): return float(np.abs(x).sum())
def f_grad(x): return np.sign(x)
def shifted(x): return float(np.abs(x - 1.0).sum())
def shifted_grad(x): return np.sign(x - 1.0)
def wrong(x): return float(np.abs(x).sum())
def wrong_grad(x): return 3.0 * np.sign(x)
def fails(x): raise RuntimeError("no licence")
def fails_grad(x): return np.sign(x)
def nan(x): return float("nan")
def nan_grad(x): return np.sign(x)
def late(x):
    if abs(x[0]) < 0.5: raise RuntimeError("undefined")
    return float(np.abs(x).sum())
def late_grad(x): return np.sign(x)
def short(x): return float(np.abs(x).sum())
def short_grad(x): return np.sign(x[:1])
def word(x): return "word"
def word_grad(x): return np.sign(x)
def leaves(x): raise SystemExit(0)
def leaves_grad(x): return np.sign(x)
W = gs.Variable(2)
F = gs.norm1(W)
"""
NAMES = ["f", "shifted", "wrong", "fails", "nan", "late", "short", "word", "leaves", "F"]


def f(x: Any) -> float:
    return float(np.abs(x).sum())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with functions, and certificates of f: good, damaged and forged ones."""
    folder = tmp_path_factory.mktemp("verdicts")
    (folder / "problems.py").write_text(FUNCTIONS)
    w = gs.Variable(2)
    good = gs.certify(f, [0.0, 0.0], np.sign, delta=1e-2, rng=0)
    asked: dict[str, Any] = {"eps": 1e-2, "delta": 1e-2, "rng": 0}
    certificates = {
        "good": good,
        "near": gs.certify(gs.norm1(w), [0.0, 0.0], delta=1e-2, stationarity="near", rng=0),
        "kkt": gs.minimize(f, [1.0, 1.0], np.sign, bounds=[(0.5, None)] * 2, **asked).certificate,
        "plus": gs.minimize(f, [1.0, 1.0], np.sign, plus=gs.prox.l1(0.5), **asked).certificate,
        "values": gs.certify(f, [0.0, 0.0], "2-point", delta=1e-2, rng=0),
        "other point": replace(good, x=np.ones(2), digest=""),
        "smaller ball": replace(good, delta=good.delta / 2, digest=""),
        "other gradients": replace(good, gradients=0.0 * good.gradients, digest=""),
        "better label": replace(good, label="certified", digest=""),
        "altered": replace(good, eps=good.eps / 2),
    }
    for name, certificate in certificates.items():
        certificate.save(folder / f"{name}.cert")
    blob = (folder / "good.cert").read_bytes()
    (folder / "cut.cert").write_bytes(blob[: len(blob) // 2])
    (folder / "empty.cert").write_bytes(b"")
    (folder / "text.cert").write_text("VERIFIED")
    return folder


def code(*arguments: Any) -> int:
    answer = CliRunner().invoke(app, [str(a) for a in arguments])
    assert answer.exception is None or isinstance(answer.exception, SystemExit)
    assert "should not happen" not in answer.output
    if "verify" in arguments and answer.exit_code == 1:
        assert "NOT VERIFIED" in answer.stdout
    return answer.exit_code


#: Which functions a certificate is true of.
TRUE_OF = {
    "good": {"f", "F"},
    "near": {"F"},
    "plus": {"f", "F"},
    # Values alone: the gradients are not asked for.
    "values": {"f", "F", "wrong", "short"},
}
CUT = ("cut", "empty", "text", "missing")


@pytest.mark.parametrize(
    "name",
    [
        "good", "near", "kkt", "plus", "values", "other point", "smaller ball", "other gradients",
        "better label", "altered", *CUT,
    ],
)  # fmt: skip
def test_verify_says_yes_to_nothing_else(name: str, place: Path) -> None:
    for function in NAMES:
        found = code("verify", place / f"{name}.cert", f"{place}/problems.py:{function}")
        if function in TRUE_OF.get(name, set()):
            assert found == 0
        elif name in CUT:
            assert found == 2
        else:
            assert found in (1, 2)
            if function in ("shifted", "wrong") and name != "near":
                assert found == 1


def test_certify_and_check(place: Path) -> None:
    for function in NAMES:
        problem = f"{place}/problems.py:{function}"
        asked = ["certify", problem, "--x", "0,0", "--delta", 0.01, "--eps", 0.01]
        assert (code(*asked) == 0) == (function in ("f", "F"))
        right = ("f", "F", "shifted", "late")  # late is right where it is looked at
        assert (code("check", problem) == 0) == (function in right)
    problem = f"{place}/problems.py:f"
    assert code("certify", problem, "--x", "1,1", "--delta", 0.01, "--eps", 0.01) == 1
    for x in ("nan,0", "inf,0", "a,b", "", "1e400,0", "missing.npy", "problems.py:f"):
        assert code("certify", problem, "--x", x, "--delta", 0.01) == 2
    for delta in ("-1", "0", "nan", "inf"):
        assert code("certify", problem, "--x", "0,0", "--delta", delta) == 2
    assert code("certify", problem, "--x", "0,0", "--delta", 0.01, "--eps", "nan") == 2
    np.save(place / "long.npy", np.array([1.0, 1.0], dtype=np.longdouble) / 3)
    assert code("certify", problem, "--x", place / "long.npy", "--delta", 0.01) == 2
