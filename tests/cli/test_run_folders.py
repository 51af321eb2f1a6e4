"""The folder of a run: kept, never overwritten unasked, resumed, verified."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from goldstein.cli.app import app
from goldstein.result import Status

EASY = ["--eps", "0.1", "--delta", "0.1"]


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def error_of(*arguments: Any) -> str:
    ran = run(*arguments)
    assert ran.exit_code == 2, ran.output
    assert ran.stderr.count("\n") == 1
    return str(ran.stderr)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_another_run_is_never_overwritten_without_force(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert run("solve", "crescent", *EASY, "--out", out).exit_code == 0
    before = content(out)
    assert set(before) == {"result.json", "certificate.cert", "history.csv"}
    for problem in ("crescent", "cb3"):
        said = error_of("solve", problem, *EASY, "--out", out)
        assert "holds a run of crescent already; replace it with --force" in said
    assert content(out) == before
    assert run("solve", "cb3", *EASY, "--out", out, "--force").exit_code == 0
    assert json.loads((out / "result.json").read_text())["request"]["problem"] == "cb3"


def test_a_run_that_was_cut_short_can_be_resumed_or_replaced(tmp_path: Path) -> None:
    task = ["solve", "chained_lq", "--eps", 1e-2, "--delta", 1e-2, "--out", tmp_path / "run"]
    assert run(*task, "--max-calls", 20).exit_code == 1
    assert "continue it with --resume, replace it with --force" in error_of(*task)
    for name in ("result.json", "history.csv"):  # what a killed process leaves
        (tmp_path / "run" / name).unlink(missing_ok=True)
    assert "a run that was cut short already; continue it with --resume" in error_of(*task)
    assert "choose one" in error_of(*task, "--resume", "--force")
    assert run(*task, "--resume").exit_code == 0


def test_a_certificate_of_an_earlier_part_does_not_stay(tmp_path: Path) -> None:
    task = ["solve", "crescent", "--eps", 1e-6, "--delta", 1e-6, "--max-calls", 3]
    assert run(*task, "--out", tmp_path).exit_code == 1
    (tmp_path / "certificate.cert").write_text("what an earlier part had proved")
    assert run(*task, "--out", tmp_path, "--resume").exit_code == 1
    assert not (tmp_path / "certificate.cert").exists()


def test_things_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("mine")
    said = error_of("solve", "crescent", *EASY, "--out", tmp_path)
    assert "other things under the names of a run (result.json)" in said
    assert (tmp_path / "result.json").read_text() == "mine"
    (tmp_path / "result.json").rename(tmp_path / "other.txt")
    assert run("solve", "crescent", *EASY, "--out", tmp_path).exit_code == 0
    assert run("solve", "crescent", *EASY, "--out", tmp_path, "--force").exit_code == 0
    assert (tmp_path / "other.txt").read_text() == "mine"


def test_a_place_that_cannot_hold_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    ask = ["solve", "crescent", *EASY, "--out"]
    assert "is a file; name a folder" in error_of(*ask, tmp_path / "file")
    assert "cannot be made (Not a directory)" in error_of(*ask, tmp_path / "file" / "run")
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    assert "cannot be written to; name another folder" in error_of(*ask, tmp_path / "run")
    assert "--force needs --out" in error_of(*ask[:-1], "--force")


def test_the_answer_is_told_before_it_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("goldstein.cli.folder.save", full)
    ran = run("solve", "crescent", *EASY, "--out", tmp_path / "run")
    assert ran.exit_code == 2
    assert "VERIFIED" in ran.stdout
    assert "No space left" in ran.stderr


CONTRACT = [
    ["mifflin_2", "--eps", "1e-3", "--delta", "1e-3"],
    ["crescent", "--eps", "1e-5", "--delta", "1e-5"],
    ["maxquad", "--eps", "1e-2", "--delta", "1e-3"],
    ["chained_cb3_1", "--d", "20", "--eps", "1e-3", "--delta", "1e-3"],
    ["chained_lq", "--d", "30", "--eps", "1e-2", "--delta", "1e-2", "--method", "bundle"],
    ["crescent", "--eps", "1e-6", "--delta", "1e-6", "--max-calls", "5"],
    ["mifflin_2", "--eps", "1e-6", "--delta", "1e-6", "--max-calls", "40"],
    ["maxquad", "--eps", "1e-6", "--delta", "1e-6", "--max-calls", "150"],
]


@pytest.mark.parametrize("ask", CONTRACT, ids=" ".join)
def test_success_is_said_exactly_when_the_printed_check_agrees(
    tmp_path: Path, ask: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    solved = run("solve", *ask, "--out", "run")
    success = json.loads(Path("run", "result.json").read_text())["success"]
    assert solved.exit_code == (0 if success else 1)
    printed = re.search(r"^check it: +goldstein (.*)$", solved.stdout, re.MULTILINE)
    if success:
        assert printed
        assert printed[1].startswith("verify run/certificate.cert ")
    if printed:
        assert (run(*shlex.split(printed[1])).exit_code == 0) == success
    assert (run("verify", "run").exit_code == 0) == success


def test_verify_of_a_folder_knows_the_problem_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("mine.py").write_text(
        "import numpy as np\nx0 = [1.0, -2.0]\n"
        "def f(x):\n    return abs(x).sum()\ndef grad(x):\n    return np.sign(x)\n"
    )
    for problem in ("mine.py", "mine.py:f"):
        assert run("solve", problem, *EASY, "--out", "run", "--force").exit_code == 0
        ran = run("verify", "run", "--json", "--trust")
        assert ran.exit_code == 0, ran.output
        found = json.loads(ran.stdout)
        assert (found["ok"], found["met"]) == (True, True)
        monkeypatch.chdir(tmp_path)
        assert run("verify", "work/run", "--trust").exit_code == 0
        shutil.copytree("work", "moved", dirs_exist_ok=True)
        Path("work").rename("gone")
        monkeypatch.chdir(tmp_path / "moved")  # the old place is gone: the same name from here
        assert run("verify", "run", "--trust").exit_code == 0
        Path("mine.py").rename("other.py")
        assert "mine.py: no such file" in error_of("verify", "run", "--trust")
        assert run("verify", "run", "other.py").exit_code == 0
        monkeypatch.chdir(tmp_path)
        shutil.rmtree("moved")
        Path("gone").rename("work")
        monkeypatch.chdir(tmp_path / "work")
    Path("mine.py").write_text(Path("mine.py").read_text().replace("np.sign(x)", "3 * np.sign(x)"))
    ran = run("verify", "run", "--trust")
    assert ran.exit_code == 1
    assert "NOT VERIFIED" in ran.stdout


def test_verify_of_a_folder_compares_with_the_request(tmp_path: Path) -> None:
    run("solve", "crescent", *EASY, "--out", tmp_path)
    file = tmp_path / "result.json"
    facts = json.loads(file.read_text())
    facts["request"]["eps"] = 1e-300
    file.write_text(json.dumps(facts))
    ran = run("verify", tmp_path)
    assert ran.exit_code == 1
    assert "asked for  (1e-300, 0.1)-Goldstein stationary: NOT met" in ran.stdout
    facts["request"] = {**facts["request"], "eps": 0.1, "stationarity": "near"}
    file.write_text(json.dumps(facts))
    assert run("verify", tmp_path).exit_code == 1  # a Goldstein certificate is the weaker one


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"request": {"problem": 3}}'])
def test_verify_of_a_folder_without_a_readable_result(tmp_path: Path, text: str) -> None:
    assert "not a run" in error_of("verify", tmp_path)
    (tmp_path / "result.json").write_text(text)
    assert "is not the result of a run" in error_of("verify", tmp_path)


def test_verify_without_a_problem_or_a_certificate(tmp_path: Path) -> None:
    run("solve", "crescent", *EASY, "--out", tmp_path / "run")
    assert "PROBLEM" in error_of("verify", tmp_path / "run" / "certificate.cert")
    ask = ["--eps", 1e-6, "--delta", 1e-6, "--max-calls", 3, "--out", tmp_path / "short"]
    assert run("solve", "crescent", *ask).exit_code == 1
    ran = run("verify", tmp_path / "short")
    assert ran.exit_code == 1
    assert "ended without a certificate (OUT_OF_CALLS)" in ran.stdout


def test_a_run_out_of_calls_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ask = ["chained_lq", "--d", "7", "--eps", "1e-3", "--delta", "1e-3", "--seed", "3"]
    whole = json.loads(run("solve", *ask, "--json").stdout)
    ran = run("solve", *ask, "--max-calls", 30, "--out", "a run")
    for _ in range(10):
        line = re.search(r"^continue it: goldstein (.*)$", ran.stdout, re.MULTILINE)
        if line is None:
            break
        ran = run(*shlex.split(line[1]))
    assert ran.exit_code == 0, ran.output
    resumed = json.loads(Path("a run", "result.json").read_text())
    for same in ("x", "fun", "nfev", "ngev", "seed"):
        assert resumed[same] == whole[same]
    assert "with --out DIR a run is kept" in run("solve", *ask, "--max-calls", 30).stdout


SLOW = """
import time, numpy as np
x0 = np.linspace(1.0, 2.0, 5)
def f(x):
    open("asked", "a").write("once more\\n")
    time.sleep(0.1)
    return float(np.abs(x).sum() + x @ x), np.sign(x) + 2 * x
"""


#: A shell starts what it runs in the background deaf to Ctrl-C, and children inherit that.
HEARS_CTRL_C = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("goldstein.cli", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("kept", [True, False])
def test_ctrl_c_says_where_the_run_is_and_how_to_resume(tmp_path: Path, kept: bool) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    ask = ["solve", "slow.py:f", "--eps", "1e-9", "--delta", "1e-3"]
    out = ["--out", "my run"] if kept else []
    running = subprocess.Popen(
        [sys.executable, "-c", HEARS_CTRL_C, *ask, *out], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    asked, journal = tmp_path / "asked", tmp_path / "my run" / "checkpoint.journal"
    deadline = time.monotonic() + 60
    while not (asked.exists() and asked.read_text().count("once") >= 5):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=30)
    said = stdout + stderr
    assert running.returncode == 130, said
    assert "Traceback" not in said
    if not kept:
        assert "with --out DIR a run is kept" in said
        return
    line = re.search(r"^continue it: goldstein (.*)$", said, re.MULTILINE)
    assert line, said
    assert line[1].endswith("--out 'my run' --resume")
    assert "kept:        my run/checkpoint.journal" in said
    size = journal.stat().st_size
    again = subprocess.run(
        [sys.executable, "-m", "goldstein.cli", *shlex.split(line[1]), "--max-time", "1"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert again.returncode in (0, 1), again.stderr
    assert not journal.exists() or journal.stat().st_size >= size


def test_a_run_that_minimize_hands_back_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from goldstein.api import minimize

    def stopped(*args: Any, **kwargs: Any) -> Any:
        def enough(x: Any) -> bool:
            return True

        return minimize(*args, **kwargs, callback=enough)

    monkeypatch.setattr("goldstein.cli.commands.solve.minimize", stopped)
    ran = run("solve", "chained_lq", *EASY, "--out", tmp_path / "run")
    assert ran.exit_code == 130
    assert Status.STOPPED.name in ran.stdout
    assert "--resume" in ran.stdout
    ran = run("solve", "chained_lq", *EASY, "--out", tmp_path / "run", "--force", "--json")
    assert ran.exit_code == 130
    assert json.loads(ran.stdout)["status"] == Status.STOPPED.name
    assert "--resume" in ran.stderr
    monkeypatch.undo()
    assert run("solve", "chained_lq", *EASY, "--out", tmp_path / "run", "--resume").exit_code == 0


def test_a_run_is_exported_to_a_proof_file(tmp_path: Path) -> None:
    problem = tmp_path / "easy.py"
    problem.write_text(
        "import goldstein as gs\nw = gs.Variable(2)\nf = gs.norm1(w) + 0.5 * gs.sum_squares(w)\n"
        "x0 = [1.0, -0.5]\n"
    )
    out, proof = tmp_path / "run", tmp_path / "proof.json"
    task = ["solve", f"{problem}:f", *EASY, "--stationarity", "near", "--out", out]
    assert run(*task).exit_code == 0
    assert run("export", out, "--trust", "-o", proof).exit_code == 0
    claim = json.loads(proof.read_text())["claim"]
    assert claim["kind"] == "near"
    proof.unlink()
    certificate = out / "certificate.cert"
    assert "name it" in error_of("export", certificate, "-o", proof)
    assert "cannot be written down" in error_of("export", certificate, "crescent", "-o", proof)
    assert run("export", certificate, f"{problem}:f", "-o", proof).exit_code == 0
    checked = subprocess.run([sys.executable, "-m", "goldstein_check", str(proof)])
    assert checked.returncode == 0
