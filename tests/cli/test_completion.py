"""Tab in the shell: commands, built-in problems, files, methods."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from goldstein import problems
from goldstein.cli.app import app
from goldstein.solvers import REGISTRY


def offered(*words: str) -> list[str]:
    """What bash would offer for the last of the words."""
    env = {
        "COMP_WORDS": " ".join(["goldstein", *words]),
        "COMP_CWORD": str(len(words)),
        "_GOLDSTEIN_COMPLETE": "complete_bash",
    }
    return str(CliRunner().invoke(app, [], env=env, prog_name="goldstein").stdout).split()


def test_what_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chained.py").write_text("")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "mine.py").write_text("")
    built_in = [name for name in problems.names() if name.startswith("chain")]
    assert offered("solve", "chain") == [*built_in, "chained.py"]
    assert offered("solve", "deep/") == ["deep/mine.py"]
    assert offered("solve", "x", "--method", "") == sorted(REGISTRY)
    assert offered("certify", "x", "--stationarity", "n") == ["near"]
    assert offered("ver") == ["verify"]
    assert offered("problems", "chain") == built_in


def test_the_script_of_bash_works(tmp_path: Path) -> None:
    """A real bash reads the script and completes with the real program."""
    program = tmp_path / "goldstein"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m goldstein.cli "$@"\n')
    program.chmod(0o755)
    lines = (
        'eval "$(goldstein --show-completion bash)"; COMP_WORDS=(goldstein solve mifflin_); '
        "COMP_CWORD=2; _goldstein_completion goldstein; echo ${COMPREPLY[@]}"
    )
    ran = subprocess.run(
        ["bash", "-c", lines], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert ran.stdout.split() == [n for n in problems.names() if n.startswith("mifflin_")]
