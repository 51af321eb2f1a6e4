"""The folder of a run from a stranger: nothing in it is run, and its words decide nothing."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import goldstein as gs
from goldstein.cli.app import app

EASY = ["--eps", "0.1", "--delta", "0.1"]
SOURCE = """
from pathlib import Path
import goldstein as gs
Path(__file__).with_name("ran").write_text("")
w = gs.Variable(2)
f = gs.norm1(w) + 0.5 * gs.sum_squares(w)
x0 = [1.0, -0.5]
"""


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("solved")
    (place / "mine.py").write_text(SOURCE)
    ask = ["solve", f"{place}/mine.py:f", *EASY, "--stationarity", "near", "--out", place / "run"]
    assert run(*ask).exit_code == 0
    (place / "ran").unlink()
    return place


@pytest.fixture
def place(solved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with mine.py, and run/, a run of it; the user stands there."""
    shutil.copytree(solved, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    forge("mine.py:f", directory=str(tmp_path))
    return tmp_path


def forge(problem: Any, **more: Any) -> None:
    """Let the run say that it was a run of something else."""
    facts = json.loads(Path("run/result.json").read_text())
    facts["request"] |= {"problem": problem, **more}
    Path("run/result.json").write_text(json.dumps(facts))


def ran_anything(place: Path) -> bool:
    return any(path.name == "ran" for path in place.rglob("*"))


COMMANDS = {
    "verify": ["verify", "run"],
    "export": ["export", "run", "-o", "proof.json"],
    "report": ["report", "run", "-o", "page.html"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_recorded_file_runs_only_when_named_or_trusted(command: str, place: Path) -> None:
    untrusted = run(*COMMANDS[command])
    assert not ran_anything(place)
    # A page can be made without the function, and says so.
    assert untrusted.exit_code == (0 if command == "report" else 2)
    said = " ".join(untrusted.output.split())
    assert f"goldstein {command} run {place / 'mine.py'}:f" in said
    assert "--trust" in said
    trusted = run(*COMMANDS[command], "--trust")
    assert trusted.exit_code == 0, trusted.output
    assert ran_anything(place)
    Path("ran").unlink()
    assert run(*COMMANDS[command][:2], "mine.py:f").exit_code == 0
    assert ran_anything(place)


@pytest.mark.parametrize("command", COMMANDS)
def test_built_in_problems_need_no_trust(command: str, place: Path) -> None:
    shutil.rmtree("run")
    assert run("solve", "crescent", *EASY, "--out", "run").exit_code == 0
    Path("crescent.py").write_text(SOURCE)
    answer = run(*COMMANDS[command])
    assert answer.exit_code == 0 or "cannot be written down" in answer.output
    assert not ran_anything(place)


#: How a record may point into the folder that it came in: problem and directory.
INTO_THE_RUN = {
    "relative": lambda place: ("run/evil.py:f", place),
    "absolute": lambda place: (f"{place}/run/evil.py", "."),
    "absolute, with directory": lambda place: (f"{place}/run/evil.py:f", "/"),
    "in its own directory": lambda place: ("evil.py", place / "run"),
    "through ..": lambda place: ("run/../run/deep/../evil.py:f", place),
    "through .. from elsewhere": lambda place: ("../run/evil.py", place / "elsewhere"),
    "from here": lambda place: ("run/evil.py", place / "no such folder"),
    "a link to the folder": lambda place: ("alias/evil.py", place),
    "a link to the file": lambda place: ("linked.py:f", place),
    "a link that leads out": lambda place: ("run/out.py:f", place),
    "a folder that leads out": lambda place: ("run/way/mine.py", place),
    "deeper": lambda place: ("run/deep/evil.py:f", place),
    "bytecode": lambda place: ("run/evil.pyc:f", place),
}


@pytest.mark.parametrize("trick", INTO_THE_RUN)
@pytest.mark.parametrize("command", ["verify", "export"])
def test_a_file_inside_the_run_never_runs(command: str, trick: str, place: Path) -> None:
    for name in ("evil.py", "evil.pyc", "deep/evil.py"):
        Path("run", name).parent.mkdir(exist_ok=True)
        Path("run", name).write_text(SOURCE)
    Path("elsewhere").mkdir()
    for link, target in (("alias", "run"), ("linked.py", "run/evil.py"), ("run/way", place)):
        Path(link).symlink_to(target)
    Path("run/out.py").symlink_to(place / "mine.py")
    problem, directory = INTO_THE_RUN[trick](place)
    forge(problem, directory=str(directory))
    for folder in ("run", "alias", place / "run", "elsewhere/../run"):
        for trust in ([], ["--trust"]):
            answer = run(command, folder, *COMMANDS[command][2:], *trust)
            assert not ran_anything(place)
            assert answer.exit_code == 2
    said = " ".join(answer.output.split())
    assert "inside the folder of the run" in said
    assert f"goldstein {command}" in said


def test_from_within_the_run_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("run/evil.py").write_text(SOURCE)
    forge("evil.py", directory="/nowhere")
    monkeypatch.chdir(place / "run")
    for folder in (".", "../run", place / "run"):
        for command in ("verify", "export"):
            assert run(command, folder, "--trust").exit_code == 2
    assert run("report", ".", "--trust").exit_code == 0
    assert not ran_anything(place)


@pytest.mark.parametrize(
    "problem",
    [
        "os:system", "os", "goldstein.problems:get", "mine", "crescent:f", "crescent ", "run", "",
        ":", "mine.py\0:f", "/dev/null:f", "a" * 5000 + ".py", "http://example.org/evil.py",
        "evil.so:f", "./mine", ["mine.py"], {"mine.py": "f"}, None, 3,
    ],
    ids=lambda p: str(p)[:30],
)  # fmt: skip
def test_names_that_are_no_problems(problem: Any, place: Path) -> None:
    Path("evil.so").write_text(SOURCE)
    forge(problem)
    for trust in ([], ["--trust"]):
        for command in ("verify", "export"):
            answer = run(*COMMANDS[command], *trust)
            assert answer.exit_code == 2, answer.output
            assert answer.stderr.count("\n") == 1
            assert "should not happen" not in answer.stderr
    assert not ran_anything(place)


#: What a stranger may write into result.json, and what is then said.
DAMAGED = {
    "deep": "[" * 100_000,
    "long numbers": '{"request": {"problem": "crescent", "eps": 1%s, "delta": 1}}' % ("0" * 400),
    "longer numbers": '{"request": {"problem": "crescent", "eps": 1%s, "delta": 1}}' % ("0" * 5000),
    "lists": '{"request": ["crescent", 1, 1]}',
    "no numbers": '{"request": {"problem": "crescent", "eps": {}, "delta": []}}',
    "NaN": '{"request": {"problem": "crescent", "eps": NaN, "delta": 1}, "status": "VERIFIED"}',
    "infinite": '{"request": {"problem": "crescent", "eps": 1, "delta": Infinity}, "status": "V"}',
    "negative": '{"request": {"problem": "crescent", "eps": -1, "delta": 1}, "status": "V"}',
    "bytes": "\udcff\udcfe",
    "null": "null",
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_damaged_result_is_bad_input(command: str, damage: str, place: Path) -> None:
    Path("run/result.json").write_bytes(os.fsencode(DAMAGED[damage]))
    answer = run(*COMMANDS[command], "--trust")
    assert answer.exit_code == 2, answer.output
    assert "should not happen" not in answer.stderr
    assert not ran_anything(place)


def test_a_page_is_not_written_through_links(place: Path) -> None:
    Path("precious").write_text("mine")
    Path("run/report.html").symlink_to(place / "precious")
    for who in (os.getpid(), f"{os.getpid()}-{threading.get_ident()}"):
        Path("run", f".report.html.{who}.partial").symlink_to(place / "precious")
    assert run("report", "run").exit_code == 0
    assert Path("precious").read_text() == "mine"
    assert not Path("run/report.html").is_symlink()


def test_a_recorded_size_asks_for_no_memory(place: Path) -> None:
    shutil.rmtree("run")
    assert run("solve", "chained_lq", *EASY, "--d", 5, "--out", "run").exit_code == 0
    for d in (10**15, ["5"]):
        forge("chained_lq", d=d)
        assert run("report", "run").exit_code == 0
        assert "Every check passed" in Path("run/report.html").read_text()


def test_the_verdict_is_about_the_certificate_that_is_there(place: Path) -> None:
    """Whatever result.json says of it: a success, a better eps, a label."""
    facts = json.loads(Path("run/result.json").read_text())
    certificate = gs.load_certificate("run/certificate.cert")
    # A true certificate of another function, or of less than was asked for.
    other = gs.certify(lambda x: float(x @ x), [1.0, 2.0], lambda x: 2 * x, delta=0.1, rng=0)
    other.save("run/certificate.cert")
    facts["success"], facts["status"] = True, "VERIFIED"
    facts["certificate"] |= {"eps": 0.0, "label": "certified"}
    Path("run/result.json").write_text(json.dumps(facts))
    answer = run("verify", "run", "mine.py:f")
    assert answer.exit_code == 1
    assert "NOT VERIFIED" in answer.stdout
    certificate.save("run/certificate.cert")
    assert run("verify", "run", "mine.py:f").exit_code == 0
    Path("run/certificate.cert").write_bytes(b"PK" + bytes(100))
    assert run("verify", "run", "mine.py:f").exit_code == 2
    Path("run/certificate.cert").unlink()
    assert run("verify", "run", "mine.py:f").exit_code == 1
    Path("run/certificate.cert").mkdir()
    assert run("verify", "run", "mine.py:f").exit_code == 2


def test_words_of_a_stranger_do_not_steer_the_terminal(place: Path) -> None:
    facts = json.loads(Path("run/result.json").read_text())
    facts["status"] = "\x1b[2J\x1b[H\rVERIFIED [bold]really[/bold]"
    Path("run/result.json").write_text(json.dumps(facts))
    Path("run/certificate.cert").unlink()
    answer = run("verify", "run", "mine.py:f")
    assert answer.exit_code == 1
    assert answer.stdout.startswith("NOT VERIFIED")
    assert not {"\x1b", "\r"} & set(answer.output)
    forge("\x1b]0;title\x07.py")
    assert not {"\x1b", "\x07"} & set(run("verify", "run").output)


def test_names_are_no_markup(place: Path) -> None:
    Path("a[").mkdir()
    Path("a[/b][red].py").write_text(SOURCE)
    answer = run("solve", "a[/b][red].py:f", *EASY)
    assert answer.exit_code == 0, answer.output
    assert "a[/b][red].py:f" in answer.stdout
