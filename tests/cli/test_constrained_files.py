"""Bounds and constraints of a problem file reach solve, certify and verify."""

import json

import pytest
from typer.testing import CliRunner

import goldstein_check
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
    assert run("verify", out, "--trust").exit_code == 0
    assert run("verify", out / "certificate.cert", file).exit_code == 0


def test_certify(file):
    good = run("certify", file, "--x", "0.75,0", "--delta", 1e-3, "--eps", 1e-3)
    assert good.exit_code == 0, good.output
    assert run("certify", file, "--x", "0.5,0", "--delta", 1e-3, "--eps", 1e-3).exit_code == 1


def test_the_files_own_call_says_what_belongs_together(file):
    file.write_text(SOURCE + OWN_CALL)
    answer = run("solve", file, "--eps", 1e-3, "--delta", 1e-3, "--json")
    assert json.loads(answer.stdout)["x"] == pytest.approx([1.0, 0.0], abs=1e-6)


EXACT = """
import goldstein as gs
x = gs.Variable(2)
f = gs.norm1(x - [2.0, -1.0])
x0 = [0.5, 0.5]
bounds = [(0, 1), (0, None)]
constraints = gs.sum(x) <= 0.75
"""


def test_near_kkt_of_a_file(tmp_path):
    file, out = tmp_path / "exact.py", tmp_path / "run"
    file.write_text(EXACT)
    near = ("--eps", 1e-3, "--delta", 1e-3, "--stationarity", "near")
    answer = run("solve", f"{file}:f", *near, "--out", out, "--json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["certificate"]["label"] == "certified"
    assert run("verify", out, "--trust").exit_code == 0
    assert run("verify", out / "certificate.cert", f"{file}:f").exit_code == 0
    assert run("export", out, "--trust", "--out", tmp_path / "proof.json").exit_code == 0
    assert goldstein_check.main([str(tmp_path / "proof.json")]) == 0
    file.write_text(EXACT.replace("0.75", "0.5"))
    assert run("verify", out, "--trust").exit_code == 1


def test_built_in_constrained_problems(tmp_path):
    listed = run("problems", "--json")
    assert {"mad_1", "pentagon"} <= {p["name"] for p in json.loads(listed.stdout)}
    assert "constraints" in run("problems", "mad_4").output
    out = tmp_path / "run"
    answer = run("solve", "mad_1", "--eps", 1e-3, "--delta", 1e-3, "--out", out, "--json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["fun"] == pytest.approx(-0.38965952, abs=1e-4)
    assert "violation" in (out / "history.csv").read_text().splitlines()[0]
    assert run("verify", out).exit_code == 0
