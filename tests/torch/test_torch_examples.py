"""The training studies run from start to end."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_digits_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = EXAMPLES / "train_digits.py"
    arguments = ["--steps", "4", "--seeds", "1", "--max-calls", "3", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    runpy.run_path(str(script), run_name="__main__")
    results = json.loads((tmp_path / "digits.json").read_text())
    assert [r["method"] for r in results] == ["Adam", "SGD momentum", "PSINGD", "O2NC"]
    assert all(eps > 0 for r in results for eps in r["eps"])
    assert (tmp_path / "digits.png").stat().st_size > 10_000
    assert (tmp_path / "digits.md").read_text() in capsys.readouterr().out


def test_svm_study(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    script = EXAMPLES / "train_svm.py"
    arguments = ["--steps", "4", "--seeds", "1", "--max-calls", "5"]
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.count("\n| ") == 4
