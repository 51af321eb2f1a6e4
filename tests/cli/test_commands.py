"""The command line inside one process: tables, JSON, exit codes, one line per error."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import goldstein as gs
from goldstein.cli.app import app

EASY = ["--eps", "0.1", "--delta", "0.1"]

USER_FILE = """
import numpy as np
import goldstein as gs

x0 = [2.0, -1.0]
start = np.array([1.0, 1.0])

def fun(x):
    return float(np.abs(x).sum())

def jac(x):
    return np.sign(x)

pair = (fun, jac)
oracle = gs.FunctionOracle(fun, jac)
number = 3.0

class OneNorm(gs.Oracle):
    dim = 2
    x0 = np.array([5.0, 5.0])
    def value(self, x):
        return fun(x)
    def gradient(self, y):
        return jac(y)

instance = OneNorm()

def broken(x):
    raise RuntimeError("no answer today")

broken_pair = (broken, jac)
"""


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(USER_FILE)
    return path


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def facts(*arguments: Any) -> tuple[int, Any]:
    """Run with --json; stdout must be JSON and nothing else."""
    ran = run(*arguments, "--json")
    return ran.exit_code, json.loads(ran.stdout)


def error_of(*arguments: Any) -> str:
    """Exit code 2, one line on stderr, nothing on stdout, no traceback."""
    ran = run(*arguments)
    assert ran.exit_code == 2, ran.output
    assert ran.stdout == ""
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.stderr
    return ran.stderr


def test_solve_prints_a_table() -> None:
    ran = run("solve", "crescent", *EASY)
    assert ran.exit_code == 0, ran.output
    for word in ("VERIFIED", "f(x)", "Goldstein stationary", "gradients", "seed 0"):
        assert word in ran.stdout
    assert ran.stderr == ""


def test_solve_json_is_the_result() -> None:
    code, data = facts("solve", "chained_crescent_1", *EASY, "--d", 7, "--seed", 3)
    assert code == 0
    assert data["success"] is True
    assert data["status"] == "VERIFIED"
    assert len(data["x"]) == 7
    assert data["seed"] == 3
    assert data["certificate"]["eps"] <= 0.1
    p = gs.problems.get("chained_crescent_1", d=7)
    res = gs.minimize(p, p.x0, eps=0.1, delta=0.1, rng=3)
    assert data["x"] == res.x.tolist()
    assert data["certificate"]["digest"] == res.certificate.digest


def test_without_a_certificate_the_exit_code_is_1() -> None:
    ran = run("solve", "chained_crescent_1", "--eps", "1e-6", "--delta", "1e-6", "--max-calls", 5)
    assert ran.exit_code == 1
    assert "OUT_OF_CALLS" in ran.stdout
    code, data = facts("solve", "crescent", "--eps", 1e-6, "--delta", 1e-6, "--max-calls", 5)
    assert code == 1
    assert data["success"] is False
    assert data["nfev"] + data["ngev"] <= 5


@pytest.mark.parametrize("name", ["pair", "oracle", "instance", "fun"])
def test_problems_in_files(user_file: Path, name: str) -> None:
    code, data = facts("solve", f"{user_file}:{name}", *EASY)
    assert code == 0
    assert data["fun"] < 1.0


def test_a_function_that_returns_a_pair(tmp_path: Path) -> None:
    path = tmp_path / "both.py"
    path.write_text("import numpy as np\ndef f(x):\n    return abs(x).sum(), np.sign(x)\n")
    assert facts("solve", f"{path}:f", *EASY, "--x0", "1,-2,3")[0] == 0
    assert "has no start" in error_of("solve", f"{path}:f", *EASY)


@pytest.mark.parametrize("form", ["values", "npy", "txt", "csv", "python"])
def test_starts(user_file: Path, tmp_path: Path, form: str) -> None:
    np.save(tmp_path / "x.npy", [1.0, -1.0])
    (tmp_path / "x.txt").write_text("1.0\n-1.0\n")
    (tmp_path / "x.csv").write_text("1.0,-1.0\n")
    text = {
        "values": "1,-1", "npy": tmp_path / "x.npy", "txt": tmp_path / "x.txt",
        "csv": tmp_path / "x.csv", "python": f"{user_file}:start",
    }[form]  # fmt: skip
    assert facts("solve", f"{user_file}:pair", *EASY, "--x0", text)[0] == 0
    code, data = facts("certify", f"{user_file}:pair", "--x", text, "--delta", 0.1)
    assert code == 0
    assert data["certificate"]["eps"] == pytest.approx(np.sqrt(2))


def test_a_negative_first_number() -> None:
    assert facts("certify", "crescent", "--x", "-1,0", "--delta", 0.1)[0] == 0


def test_out_leaves_the_run_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    ran = run("solve", "crescent", *EASY, "--out", folder)
    assert ran.exit_code == 0
    data = json.loads((folder / "result.json").read_text())
    assert data["request"]["problem"] == "crescent"
    cert = gs.load_certificate(folder / "certificate.cert")
    assert cert.eps == data["certificate"]["eps"]
    assert cert.verify(gs.problems.get("crescent")).ok
    with open(folder / "history.csv") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["fun"]) == data["fun"]
    assert set(rows[0]) == {"calls", "fun", "bound", "radius", "time"}
    assert "goldstein verify" in ran.stdout


def test_resume_continues_and_a_new_run_starts_afresh(tmp_path: Path) -> None:
    task = ["solve", "chained_lq", "--eps", 1e-2, "--delta", 1e-2, "--out", tmp_path]
    assert facts(*task, "--max-calls", 20)[0] == 1
    code, resumed = facts(*task, "--resume")
    assert code == 0
    assert "reached its end: nothing to resume" in error_of(*task, "--resume")
    code, whole = facts(*task, "--force")
    assert code == 0
    for same in ("x", "fun", "nfev", "ngev", "nit"):
        assert resumed[same] == whole[same]
    assert facts(*task, "--max-calls", 20, "--force")[0] == 1
    assert "another problem" in error_of(*task, "--resume", "--seed", 1)


def test_certify_says_whether_the_wish_was_met(tmp_path: Path) -> None:
    ran = run("certify", "crescent", "--x", "0,0", "--delta", 1e-3, "--out", tmp_path / "c")
    assert ran.exit_code == 0
    assert "Goldstein stationary" in ran.stdout
    assert gs.load_certificate(tmp_path / "c.cert").verify(gs.problems.get("crescent")).ok
    ran = run("certify", "crescent", "--x", "1,1", "--delta", 1e-3, "--eps", 1e-3)
    assert ran.exit_code == 1
    assert ran.stdout.startswith(
        "NOT stationary to eps = 0.001 within delta = 0.001: f falls along"
    )
    assert "NOT met" in ran.stdout
    code, data = facts("certify", "crescent", "--x", "1,1", "--delta", 1e-3, "--eps", 1e-3)
    assert code == 1
    assert data["met"] is False
    assert len(data["certificate"]["descent"]) == 2
    ran = run("certify", "crescent", "--x", "1,1", "--delta", 1e-3)
    assert ran.exit_code == 0  # no bound was asked for
    assert ran.stdout.startswith("NOT stationary: f falls along")
    ran = run("certify", "crescent", "--x", "0,0", "--delta", 1e-3, "--eps", 1e-2)
    assert ran.exit_code == 0
    assert ran.stdout.startswith("stationary to eps = 0.01 within delta = 0.001: proved eps = ")


def test_a_bound_that_is_not_met_without_a_direction_is_not_called_wrong(tmp_path: Path) -> None:
    """Next to a kink that a few gradients have missed, f may fall nowhere."""
    ask = ["certify", "goffin", "--x", ",".join(["0"] * 50), "--delta", 1e-3, "--eps", 1e-9]
    ran = run(*ask, "--max-calls", 3)
    assert ran.exit_code == 1
    assert ran.stdout.startswith("NOT proved stationary to eps = 1e-09 within delta = 0.001: best")


def test_the_file_of_a_certificate_is_not_overwritten_unasked(tmp_path: Path) -> None:
    ask = ["certify", "crescent", "--x", "0,0", "--delta", 1e-3, "--out"]
    assert run(*ask, tmp_path / "c").exit_code == 0
    before = (tmp_path / "c.cert").read_bytes()
    assert "replace it with --force" in error_of(*ask, tmp_path / "c", "--seed", 1)
    assert (tmp_path / "c.cert").read_bytes() == before
    assert run(*ask, tmp_path / "c", "--seed", 1, "--force").exit_code == 0
    assert (tmp_path / "c.cert").read_bytes() != before
    assert "there is no folder" in error_of(*ask, tmp_path / "none" / "c")
    (tmp_path / "folder.cert").mkdir()
    assert "is a folder" in error_of(*ask, tmp_path / "folder.cert")


def test_a_point_that_cannot_be_certified_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "formula.py"
    path.write_text(
        "import goldstein as gs\nw = gs.Variable(1)\n"
        "F = gs.sum(1e16 * w + w - 1e16 * w)  # slope 1; in float64 constant\n"
    )
    ask = ["certify", path, "--x", 1, "--delta", 1e-3]
    ran = run(*ask)
    assert ran.exit_code == 1, ran.output
    assert ran.stdout.startswith("NOT certified: the gradients of")
    code, data = facts(*ask)
    assert (code, data["met"], data["certificate"]) == (1, False, None)
    assert "lost to rounding" in data["message"]


def test_near_stationarity_of_an_expression(tmp_path: Path) -> None:
    path = tmp_path / "formula.py"
    path.write_text(
        "import goldstein as gs\n"
        "w = gs.Variable(2)\n"
        "F = 0.5 * gs.sum_squares(w) + gs.norm1(w)\n"
        "x0 = [1.0, -2.0]\n"
    )
    near = ["--stationarity", "near", "--eps", 1e-3, "--delta", 1e-2]
    code, data = facts("solve", f"{path}:F", *near, "--out", tmp_path)
    assert code == 0
    assert data["certificate"]["label"] == "certified"
    assert run("verify", tmp_path / "certificate.cert", f"{path}:F").exit_code == 0
    ran = run("certify", f"{path}:F", "--x", "1e-4,0", *near)
    assert ran.exit_code == 0, ran.output
    assert "near stationary" in ran.stdout
    assert "whose kinks are known" in error_of("certify", "crescent", "--x", "0,0", *near)


def test_verify(tmp_path: Path, user_file: Path) -> None:
    run("solve", "chained_crescent_1", *EASY, "--d", 6, "--out", tmp_path)
    cert = tmp_path / "certificate.cert"
    ran = run("verify", cert, "chained_crescent_1")
    assert ran.exit_code == 0
    assert "VERIFIED" in ran.stdout
    code, data = facts("verify", cert, "chained_crescent_1", "--d", 6)
    assert (code, data["ok"]) == (0, True)
    assert {c["name"] for c in data["checks"]} >= {"ball", "gradients", "bound", "kinks"}
    for other in ("chained_crescent_2", f"{user_file}:pair"):
        code, data = facts("verify", cert, other)
        assert (code, data["ok"]) == (1, False)
        assert "NOT VERIFIED" in run("verify", cert, other).stdout


def test_verify_of_a_damaged_file(tmp_path: Path) -> None:
    run("solve", "crescent", *EASY, "--out", tmp_path)
    cert = tmp_path / "certificate.cert"
    cert.write_bytes(cert.read_bytes()[:-30])
    assert "not a readable certificate file" in error_of("verify", cert, "crescent")
    assert "no such certificate file" in error_of("verify", tmp_path / "none", "crescent")


def test_problems_lists_and_describes() -> None:
    ran = run("problems")
    assert ran.exit_code == 0
    for name in gs.problems.names("all"):
        assert name in ran.stdout
    ran = run("problems", "crescent")
    assert "source" in ran.stdout
    code, data = facts("problems", "chained_crescent_1", "--d", 8)
    assert (code, data["dim"], len(data["x0"])) == (0, 8, 8)
    code, data = facts("problems")
    assert [p["name"] for p in data] == gs.problems.names("all")


ERRORS: list[tuple[list[Any], str]] = [
    (["solve", "cresent", *EASY], "crescent"),
    (["solve", "crescent", "--eps", -1, "--delta", 1], "eps must be a positive finite number"),
    (["solve", "crescent", "--eps", 1, "--delta", "nan"], "delta must be a positive finite"),
    (["solve", "crescent", *EASY, "--method", "magic"], "unknown method 'magic'"),
    (["solve", "crescent", *EASY, "--x0", "1,zwei"], "is not a point"),
    (["solve", "crescent", *EASY, "--x0", "1,2,3"], "has 2 variables, but the point has 3"),
    (["solve", "crescent", *EASY, "--x0", "nothing.npy"], "nothing.npy"),
    (["solve", "crescent", *EASY, "--max-calls", 0], "max_calls must be a positive integer"),
    (["solve", "crescent", *EASY, "--max-time", -1], "max_time must be positive"),
    (["solve", "crescent", *EASY, "--resume"], "--resume needs --out"),
    (["solve", "crescent", *EASY, "--resume", "--out", "OUT"], "holds no run to resume"),
    (["solve", "crescent", *EASY, "--seed", -4], "rng must be a non-negative integer"),
    (["solve", "crescent", *EASY, "--stationarity", "x"], "stationarity must be"),
    (["solve", "nowhere.py:f", *EASY], "no such file"),
    (["solve", "FOLDER:f", *EASY], "a folder; a problem is"),
    (["solve", "FILE:missing", *EASY], "has no object 'missing'"),
    (["solve", "FILE:number", *EASY], "is float; expected an Oracle"),
    (["solve", "FILE:pair", *EASY, "--d", 3], "--d goes with built-in problems"),
    (["solve", "FILE:broken_pair", *EASY], "RuntimeError: no answer today (call 1"),
    (["solve", "SYNTAX:f", *EASY], "could not be run: SyntaxError"),
    (["certify", "crescent", "--x", "a", "--delta", 1], "is not a point"),
    (["certify", "crescent", "--x", "0,0", "--delta", 0], "delta must be a positive"),
    (["problems", "cresent"], "crescent"),
]


@pytest.mark.parametrize(("arguments", "words"), ERRORS)
def test_errors_are_one_line(
    user_file: Path, tmp_path: Path, arguments: list[Any], words: str
) -> None:
    (tmp_path / "syntax.py").write_text("def f(:\n")
    places = {
        "FOLDER": tmp_path,
        "FILE": user_file,
        "SYNTAX": tmp_path / "syntax.py",
        "OUT": tmp_path / "empty",
    }

    def fill(argument: Any) -> str:
        text = str(argument)
        for key, path in places.items():
            if text.split(":")[0] == key:
                text = text.replace(key, str(path), 1)
        return text

    filled = [fill(a) for a in arguments]
    assert words in error_of(*filled)
    ran = run(*filled, "--json")
    assert ran.exit_code == 2
    assert words in json.loads(ran.stdout)["error"]


@pytest.mark.parametrize(
    "arguments",
    [["solve"], ["nonsense"], ["solve", "crescent", "--no"]],
)
def test_usage_errors(arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.exit_code == 2
    assert "Error" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("given", [[], ["--eps", "1"], ["--delta", "1"]])
def test_without_a_question_one_is_proposed(given: list[str]) -> None:
    said = error_of("solve", "crescent", *given)
    proposal = said.partition("x0: ")[2].partition(";")[0].split()
    assert run("solve", "crescent", *proposal).exit_code == 0


def test_help_and_version() -> None:
    assert gs.__version__ in run("--version").stdout
    for command in ("solve", "certify", "verify", "problems"):
        assert command in run("--help").stdout
        assert "--json" in run(command, "--help").stdout


def test_warnings_are_one_line(user_file: Path) -> None:
    user_file.write_text(
        USER_FILE + "\ndef high(x):\n    return 1e12 + fun(x)\nhigh_pair = (high, jac)\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.filters", [])
        ran = run(
            "solve", f"{user_file}:high_pair", "--eps", 1e-9, "--delta", 1e-3, "--max-calls", 3
        )
    assert ran.exit_code == 1
    assert ran.stderr.startswith("warning: the descent test compares")
