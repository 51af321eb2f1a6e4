"""The command line as users meet it: real processes, a terminal, a missing extra."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.terminal import shown_on_a_terminal

import goldstein as gs


def goldstein(*arguments: str | Path, **how: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "goldstein.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **how)  # type: ignore[call-overload, no-any-return]


def test_one_process_solves_another_verifies_a_third_refuses(tmp_path: Path) -> None:
    solved = goldstein(
        "solve", "mifflin_2", "--eps", "1e-2", "--delta", "1e-2", "--out", tmp_path, "--json"
    )
    assert solved.returncode == 0, solved.stderr
    assert json.loads(solved.stdout)["success"]
    assert solved.stderr == ""
    cert = tmp_path / "certificate.cert"
    verified = goldstein("verify", cert, "mifflin_2")
    assert verified.returncode == 0
    assert "VERIFIED" in verified.stdout
    refused = goldstein("verify", cert, "mifflin_1")
    assert refused.returncode == 1
    assert "NOT VERIFIED" in refused.stdout


def test_a_certificate_of_the_library_is_verified_by_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\ndef f(x):\n    return abs(x).sum(), np.sign(x)\n"
    )
    cert = gs.certify(lambda x: np.abs(x).sum(), [0.0, 0.0], np.sign, delta=0.1, rng=0)
    cert.save(tmp_path / "c.cert")
    ran = goldstein("verify", "c.cert", "mine.py:f", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_the_installed_script_is_there() -> None:
    script = Path(sys.executable).parent / "goldstein"
    ran = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"goldstein {gs.__version__}\n"


def test_bad_input_is_one_line_without_traceback() -> None:
    ran = goldstein("solve", "no-such-problem", "--eps", "1", "--delta", "1")
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--json", "--traceback"])
def test_an_answer_that_cannot_be_written_is_not_success(option: str) -> None:
    command = [sys.executable, "-m", "goldstein.cli", "problems", "crescent", option]
    with open("/dev/full", "w") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1] == "error: [Errno 28] No space left on device"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_it_says_how_to_install(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from goldstein.cli import main; sys.argv = ['goldstein', 'problems']; main()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert f"needs {missing}" in ran.stderr
    assert 'pip install ".[cli]"' in ran.stderr


def test_a_terminal_shows_progress_and_a_pipe_does_not(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time, numpy as np\n"
        "x0 = np.ones(5)\n"
        "def f(x):\n    time.sleep(0.02)\n    return abs(x).sum() + x @ x, np.sign(x) + 2 * x\n"
    )
    task = ["solve", "slow.py:f", "--eps", "1e-9", "--delta", "1e-3", "--max-time", "0.8"]
    command = [sys.executable, "-m", "goldstein.cli", *task]
    seen, _ = shown_on_a_terminal(command, tmp_path)
    assert "calls" in seen
    assert "bound" in seen
    piped = goldstein(*task, cwd=tmp_path)
    assert piped.stderr == ""
