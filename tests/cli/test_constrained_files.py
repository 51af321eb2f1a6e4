"""Bounds and constraints of a problem file reach solve, certify and verify."""

import json

import pytest
from typer.testing import CliRunner

from goldstein.cli.app import app

SOURCE = """
import numpy as np
from scipy.optimize import LinearConstraint

def f(x): return np.abs(x - [2.0, -1.0]).sum()
def grad(x): return np.sign(x - [2.0, -1.0])
x0 = [0.5, 0.5]
bounds = [(0, 1), (0, None)]
constraints = LinearConstraint([[1.0, 1.0]], 0.0, 0.75)
"""
OWN_CALL = """
import goldstein as gs
gs.minimize(f, x0, grad, eps=1, delta=1, rng=0, bounds=bounds)
"""


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "limited.py"
    path.write_text(SOURCE)
    return path


def test_solve_and_verify(file, tmp_path):
    out = tmp_path / "run"
    answer = run("solve", file, "--eps", 1e-3, "--delta", 1e-3, "--out", out, "--json")
    assert answer.exit_code == 0, answer.output
    facts = json.loads(answer.stdout)
    assert facts["x"] == pytest.approx([0.75, 0.0], abs=1e-6)
    assert facts["multipliers"] == pytest.approx([1.0], abs=1e-3)
    assert facts["bound_multipliers"] == pytest.approx([0.0, -2.0], abs=1e-3)
    assert facts["violation"] == 0.0
    assert run("verify", out).exit_code == 0
    assert run("verify", out / "certificate.cert", file).exit_code == 0


def test_certify(file):
    good = run("certify", file, "--x", "0.75,0", "--delta", 1e-3, "--eps", 1e-3)
    assert good.exit_code == 0, good.output
    assert run("certify", file, "--x", "0.5,0", "--delta", 1e-3, "--eps", 1e-3).exit_code == 1


def test_the_files_own_call_says_what_belongs_together(file):
    file.write_text(SOURCE + OWN_CALL)
    answer = run("solve", file, "--eps", 1e-3, "--delta", 1e-3, "--json")
    assert json.loads(answer.stdout)["x"] == pytest.approx([1.0, 0.0], abs=1e-6)
