"""A few mutants of the checker are put to its tests, as `make mutation` does with all of them."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.mutation.log import explained
from benchmarks.mutation.operators import FILES, ROOT, mutants

NAMES = ("alone", "forged_files", "every_kind", "limited_files", "case_files")
TESTS = [f"tests/checker/test_{name}.py" for name in NAMES]


def mutation(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "benchmarks.mutation", "--folder", str(folder), *arguments]
    alone = {**os.environ, "GOLDSTEIN_WITHOUT_NODE": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, env=alone)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


def test_weakened_checks_are_noticed(tmp_path: Path) -> None:
    """Of the checker that stands alone."""
    where = ["--quick", "--sample", "12", "--only", "goldstein_check.py"]
    code, said = mutation(tmp_path, *where, "--tests", *TESTS)
    if " 0 killed" in said:  # what the tests run could not be recorded: on a crowded machine
        tmp_path = tmp_path / "again"
        tmp_path.mkdir()
        code, said = mutation(tmp_path, *where, "--tests", *TESTS)
    assert (code, said.count("SURVIVES")) == (0, 0), said
    lines = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    assert len(lines) >= 10
    assert sum(bool(line["by"]) for line in lines) >= 6


def test_a_mutant_that_no_test_runs_survives(tmp_path: Path) -> None:
    where = ["--quick", "--sample", "5", "--only", "fenchel.py"]
    code, said = mutation(tmp_path, *where, "--tests", "tests/checker/test_limits.py")
    assert code == 1
    assert "SURVIVES 0 tests" in said


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_mutant_is_another_program(path: Path) -> None:
    """Compiled without an error, and not the file as it is."""
    honest = compile(ast.parse(path.read_text()), str(path), "exec", dont_inherit=True)
    found = mutants(path)
    assert len({mutant.key for mutant in found}) == len(found)
    for mutant in found[:: max(1, len(found) // 10)]:
        assert mutant.code() != honest


def test_reasons_belong_to_mutants() -> None:
    """What is explained exists."""
    there = {mutant.place for path in FILES for mutant in mutants(path)}
    assert explained() <= there
