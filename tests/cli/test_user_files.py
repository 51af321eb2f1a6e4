"""The user's own file: what is found in it, and what it may print."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import goldstein as gs
from goldstein.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
EASY = ["--eps", "0.1", "--delta", "0.1"]


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def process(*arguments: Any, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "goldstein.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    """The snippet of the README in a file, as it stands."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code
    path = tmp_path / "first.py"
    path.write_text(code[1])
    return path


@pytest.mark.parametrize("name", ["", ":f"])
@pytest.mark.parametrize("start", [[], ["--x0", "-1.2,1.0"]])
def test_the_readme_saved_to_a_file_works_as_it_is(
    readme: Path, name: str, start: list[str]
) -> None:
    ask = ["solve", f"{readme}{name}", "--eps", 1e-3, "--delta", 1e-3, *start]
    ran = run(*ask, "--json")
    assert ran.exit_code == 0, ran.output
    answer = json.loads(ran.stdout)
    own: dict[str, Any] = {"__name__": "readme"}
    exec(compile(readme.read_text(), "first.py", "exec"), own)
    assert answer["x"] == own["res"].x.tolist()
    # What the file prints itself is there, and cannot be taken for the answer.
    assert "VERIFIED" in ran.stderr
    assert all(line.startswith("problem prints> ") for line in ran.stderr.splitlines())
    shown = run(*ask)
    assert shown.exit_code == 0
    assert "f of" in shown.stdout


def test_the_readme_file_is_solved_verified_checked_and_certified(readme: Path) -> None:
    folder = readme.parent
    solved = process(
        "solve", "first.py", "--eps", 1e-3, "--delta", 1e-3, "--out", "run", cwd=folder
    )
    assert solved.returncode == 0, solved.stderr
    command = re.search(r"goldstein (verify .*)", solved.stdout)
    assert command
    for words in (command[1].split(), ["verify", "run", "first.py"], ["check", "first.py"]):
        ran = process(*words, cwd=folder)
        assert ran.returncode == 0, ran.stderr
    ran = process("certify", "first.py", "--x", "0,0", "--delta", 0.01, "--eps", 0.1, cwd=folder)
    assert ran.returncode == 1
    assert ran.stdout.startswith("NOT stationary to eps = 0.1 within delta = 0.01")


FUN = "import numpy as np\ndef {f}(x):\n    return float(np.abs(x).sum())\n"
JAC = "def {g}(x):\n    return np.sign(x)\n"


@pytest.mark.parametrize("f", ["f", "fun", "func", "objective", "loss", "cost"])
@pytest.mark.parametrize("g", ["grad", "gradient", "jac", "df", "fprime", "{f}_grad", "grad_{f}"])
def test_names_people_use(tmp_path: Path, f: str, g: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FUN.format(f=f) + JAC.format(g=g.format(f=f)) + "x0 = [2.0, -1.0]\n")
    for text in (path, f"{path}:{f}"):
        ran = run("solve", text, *EASY)
        assert ran.exit_code == 0, ran.output
        assert f"gradient {g.format(f=f)}" in ran.stdout


@pytest.mark.parametrize(
    "start", ["x0 = 3.0", "start = [1.0, 2.0]", "x_init = np.ones(3)", "w0 = (1, 2)"]
)
def test_starts_people_use(tmp_path: Path, start: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FUN.format(f="f") + JAC.format(g="grad") + start + "\n")
    assert run("solve", path, *EASY).exit_code == 0


def test_a_clock_is_no_start(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        FUN.format(f="f") + JAC.format(g="grad") + "import time\nstart = time.time()\nw0 = print\n"
    )
    ran = run("solve", path, *EASY)
    assert ran.exit_code == 2
    assert "has no start; give one with --x0" in ran.stderr


def test_a_gradient_named_after_its_function_wins(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(
        FUN.format(f="f") + JAC.format(g="grad")
        + "def q(x):\n    return float(x @ x)\ndef q_grad(x):\n    return 2 * x\nx0 = [1.0, 3.0]\n"
    )  # fmt: skip
    assert run("check", f"{path}:q").exit_code == 0
    assert run("check", f"{path}:f").exit_code == 0


def test_a_function_that_returns_both_needs_no_gradient_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "both.py"
    path.write_text(
        "import numpy as np\nx0 = [1.0, 2.0]\ndef grad(x):\n    return 0 * x\n"
        "def both(x):\n    return abs(x).sum(), np.sign(x)\n"
    )
    ran = run("solve", f"{path}:both", *EASY)
    assert ran.exit_code == 0, ran.output
    assert "gradient grad" not in ran.stdout


def test_a_missing_gradient_and_a_missing_function_are_said(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FUN.format(f="f") + "x0 = [1.0]\n")
    ran = run("solve", path, *EASY)
    assert ran.exit_code == 0, ran.output
    assert "gradient derived from its code" in ran.stdout
    path.write_text("def f(x):\n    return x[0] if x[0] > 0 else -x[0]\nx0 = [1.0]\n")
    ran = run("solve", path, *EASY)
    assert ran.exit_code == 2
    assert "has no gradient of f: let f return (value, gradient), or put" in ran.stderr
    path.write_text("something = 3\n")
    ran = run("solve", path, *EASY)
    assert ran.exit_code == 2
    assert "names no function" in ran.stderr
    assert "it has: something" in ran.stderr
    ran = run("solve", str(path).removesuffix(".py"), *EASY)
    assert ran.exit_code == 2
    assert f"say {path}" in ran.stderr


def test_the_call_in_the_file_says_what_belongs_together(tmp_path: Path) -> None:
    """Names that mislead do not matter where the file itself calls minimize."""
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np\nfrom goldstein import minimize\n"
        "def target(x, c):\n    return c * float(np.abs(x).sum())\n"
        "def slope(x, c):\n    return c * np.sign(x)\n"
        "def grad(x):\n    return 0 * x\n"
        "answer = minimize(target, [1.0, -2.0], slope, args=(3.0,), eps=0.1, delta=0.1, rng=0)\n"
    )
    assert gs.minimize.__module__.startswith("goldstein.api")
    for text in (path, f"{path}:target"):
        ran = run("check", text, "--json")
        assert ran.exit_code == 0, ran.output
    assert gs.minimize.__module__.startswith("goldstein.api")


NOISY = """
import ctypes, os, sys, numpy as np
print("at import")
os.write(1, b"below Python\\n")
ctypes.CDLL(None).puts(b"from C, kept in a buffer until the end")
import atexit
atexit.register(print, "at exit")
x0 = [1.0, -2.0]
def f(x):
    print("value at", x)
    os.system("echo a child process")
    return float(np.abs(x).sum())
def grad(x):
    sys.stdout.write("gradient\\n")
    return np.sign(x)
"""


ECHOES = """
import sys
import numpy as np, typer
x0 = [1.0, -2.0]
def f(x):
    typer.echo("a value")
    typer.secho("in colour", fg="red")
    typer.echo(b"some bytes")
    sys.stdout.buffer.write(b"raw bytes")
    return float(np.abs(x).sum())
def grad(x):
    return np.sign(x)
"""


def test_a_problem_may_use_the_tools_of_command_lines(tmp_path: Path) -> None:
    """They ask a stream whether it takes bytes by writing none to it."""
    (tmp_path / "echoes.py").write_text(ECHOES)
    ran = process("solve", "echoes.py", *EASY, "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["success"]
    for line in ("problem prints> a value", "in colour", "some bytes", "raw bytes"):
        assert line in ran.stderr


def test_json_is_clean_whatever_the_problem_prints(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    asked = [
        ["solve", "noisy.py", *EASY, "--out", "run"],
        ["verify", "run", "--trust"],
        ["solve", "noisy.py:nothing", *EASY],
    ]
    for words in asked:
        ran = process(*words, "--json", cwd=tmp_path)
        assert isinstance(json.loads(ran.stdout), dict), ran.stdout
        for line in ("at import", "below Python", "from C", "at exit"):
            assert line in ran.stderr
    file = str(tmp_path / "noisy_too.py")
    Path(file).write_text(NOISY.replace("atexit.register", "print"))
    inside = [
        ["verify", tmp_path / "run" / "certificate.cert", f"{file}:f"],
        ["certify", f"{file}:f", "--x", "0,0", "--delta", "0.1"],
        ["check", file, "--points", "1"],
    ]
    for words in inside:
        assert isinstance(json.loads(run(*words, "--json").stdout), dict)
    shown = process("check", "noisy.py", "--points", "1", cwd=tmp_path)
    assert shown.stdout.startswith("noisy.py")
    assert "value at" not in shown.stdout


def test_an_exception_in_the_file_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("x0 = [1.0, 2.0]\ndef f(x):\n    return x[7]\ndef grad(x):\n    return x\n")
    ran = run("solve", path, *EASY)
    assert ran.exit_code == 2
    assert ran.stderr.count("\n") == 1
    assert f"{path}, line 3" in ran.stderr
    assert "--traceback shows more" in ran.stderr
    ran = run("solve", path, *EASY, "--traceback")
    assert ran.exit_code == 2
    assert "Traceback (most recent call last)" in ran.stderr
    assert "IndexError" in ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("error: f: value raised IndexError")


def test_leaving_in_the_file_or_in_the_function_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import sys\nsys.exit(0)\n")
    ran = run("solve", path, *EASY)
    assert ran.exit_code == 2
    assert "could not be run: SystemExit" in ran.stderr
    path.write_text("import sys\nx0 = [1.0]\ndef f(x):\n    sys.exit(0)\ngrad = abs\n")
    ran = run("solve", path, *EASY)
    assert ran.exit_code == 2
    assert "the problem ended the program: sys.exit(0)" in ran.stderr


def test_an_error_of_our_own_is_one_sentence_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("goldstein.cli.commands.solve.minimize", broken)
    ran = run("solve", "crescent", *EASY)
    assert ran.exit_code == 2
    assert ran.stderr.count("\n") == 1
    assert "KeyError: 'lost'" in ran.stderr
    assert "--traceback" in ran.stderr
    assert "Traceback" in run("solve", "crescent", *EASY, "--traceback").stderr


@pytest.mark.parametrize("text", ["1 -1", "[1, -1]", "(1,-1)", " 1,-1 "])
def test_points_as_people_type_them(text: str) -> None:
    typed = run("certify", "crescent", "--x", text, "--delta", 0.1, "--json")
    assert typed.exit_code == 0, typed.output
    plain = run("certify", "crescent", "--x", "1,-1", "--delta", 0.1, "--json")
    assert typed.stdout == plain.stdout


def test_a_start_of_the_wrong_length_says_so(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np\nA = np.eye(2)\ndef f(x):\n    return float(np.abs(A @ x).sum())\n"
        "def grad(x):\n    return A.T @ np.sign(A @ x)\n"
    )
    ran = run("solve", path, *EASY, "--x0", "1,2,3")
    assert ran.exit_code == 2
    assert "of length 3" in ran.stderr
    assert run("solve", path, *EASY, "--x0", "1,2").exit_code == 0
    for bad in ("", "one,two", "1,,2", "nothing.csv"):
        ran = run("solve", path, *EASY, "--x0", bad)
        assert ran.exit_code == 2
        assert "is not a point" in ran.stderr
        assert "give numbers such as 1,2.5,-3" in ran.stderr


def test_a_wrong_gradient_names_its_coordinates(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np\nx0 = np.array([1.0, 2.0, -3.0])\n"
        "def f(x):\n    return float(np.abs(x).sum())\n"
        "def grad(x):\n    return np.sign(x) * [1, 2, 1]\n"
    )
    ran = run("check", path)
    assert ran.exit_code == 1
    assert "WRONG" in ran.stdout
    assert "coordinate 1: gradient 2, differences of values say 1" in ran.stdout
    ran = run("check", f"{path}:f", "--x", "5,5,5", "--json")
    assert ran.exit_code == 1
    assert json.loads(ran.stdout)["wrong_coordinates"] == [1]
    path.write_text(path.read_text().replace("[1, 2, 1]", "1"))
    assert run("check", path).exit_code == 0
    assert run("check", "chained_crescent_1", "--d", 7).exit_code == 0


def test_a_wrong_gradient_names_the_command_that_looks_at_it(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(
        "import numpy as np\n"
        "def f(x): return np.abs(x).sum()\n"
        "def grad(x): return np.sign(x) * [1.0, 2.0]\n"
        "x0 = [1.0, 2.0]\n"
    )
    ran = run("solve", file, "--eps", 1e-3, "--delta", 1e-3)
    assert ran.exit_code == 1
    assert f"goldstein check {file}" in ran.stdout
