"""`goldstein explain`: the proof of an expression's triple, or the missing assumption."""

import json

import pytest
from typer.testing import CliRunner

from goldstein.cli.app import app

SOURCE = """
import numpy as np
import goldstein as gs

wide = gs.models.margin_svm(np.array([[1.0, 2, 0], [0, 1, -1]]), rho=1.0, lam=1.0)
tall = gs.models.margin_svm(np.array([[1.0, 2], [0, 1], [1, 1]]), rho=1.0, lam=1.0)
x0 = np.array([0.3, 0.4, -0.2])
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "svm.py"
    path.write_text(SOURCE)
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_constants_of_the_worked_example_are_printed(file):
    shown = run("explain", f"{file}:wide", "--pivot-radius", 0.1, "--eps", 0.1, "--delta", 0.1)
    assert shown.exit_code == 0, shown.output
    assert "0.0428686638" in shown.output
    assert "0.0150028224" in shown.output


def test_json_carries_the_same_tree(file):
    shown = run("explain", f"{file}:wide", "--eps", 0.1, "--delta", 0.1, "--json")
    facts = json.loads(shown.output)
    assert facts["proof"]["ok"]
    assert facts["proof"]["constants"]["modulus"] == 1.0
    assert facts["target"] == pytest.approx([0.05, 0.0150028224], rel=1e-8)


def test_a_missing_assumption_is_named_and_fails(file):
    shown = run("explain", f"{file}:tall", "--eps", 0.1, "--delta", 0.1)
    assert shown.exit_code == 1
    assert "rank 3 is needed" in shown.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["maxq"], "black box"), (["{file}:wide", "--eps", "0.1"], "go together")],
)
def test_bad_input_is_one_clear_line(file, arguments, said):
    shown = run("explain", *[a.format(file=file) for a in arguments])
    assert shown.exit_code == 2
    assert said in shown.output
    assert "Traceback" not in shown.output


def test_a_near_certificate_is_saved_by_solve_and_checked_by_verify(file, tmp_path):
    out = tmp_path / "run"
    solved = run(
        "solve", f"{file}:wide", "--eps", 1e-3, "--delta", 1e-2, "--stationarity", "near",
        "--out", out,
    )  # fmt: skip
    assert solved.exit_code == 0, solved.output
    assert "near stationary" in solved.output
    assert run("verify", out / "certificate.cert", f"{file}:wide").exit_code == 0
    assert run("verify", out / "certificate.cert", f"{file}:tall").exit_code != 0
