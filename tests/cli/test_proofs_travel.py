"""Proofs in pipelines: bundles, in-toto Statements, the checker page, and pytest itself."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from goldstein.cli.app import app

PROBLEM = (
    "import goldstein as gs\nw = gs.Variable(2)\nf = gs.norm1(w) + 0.5 * gs.sum_squares(w)\n"
    "other = f + gs.norm1(w - 1.0)\nx0 = [1.0, -0.5]\n"
)


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def solved(tmp_path: Path) -> Path:
    """The folder of a run with its proof, next to the file of its problem."""
    (tmp_path / "easy.py").write_text(PROBLEM)
    task = ["--eps", "0.1", "--delta", "0.1", "--stationarity", "near", "--out", tmp_path / "run"]
    assert run("solve", f"{tmp_path / 'easy.py'}:f", *task).exit_code == 0
    assert (
        run("export", tmp_path / "run", "--trust", "-o", tmp_path / "run" / "proof.json").exit_code
        == 0
    )
    return tmp_path / "run"


def test_a_bundle_is_verified_without_its_problem(solved: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "run.zip"
    assert run("export", solved, "--trust", "-o", bundle).exit_code == 0
    assert set(zipfile.ZipFile(bundle).namelist()) >= {
        "result.json",
        "certificate.cert",
        "proof.json",
    }
    ran = run("verify", bundle)
    assert ran.exit_code == 0, ran.output
    assert "TRUE" in ran.stdout
    assert run("verify", bundle, f"{tmp_path / 'easy.py'}:f").exit_code == 0
    assert run("verify", bundle, f"{tmp_path / 'easy.py'}:other").exit_code == 1


def changed(bundle: Path, name: str, old: str, new: str) -> Path:
    """Return a bundle in which a text of one file is another one."""
    target = bundle.with_name("changed.zip")
    with zipfile.ZipFile(bundle) as source, zipfile.ZipFile(target, "w") as out:
        for entry in source.namelist():
            raw = source.read(entry)
            if entry == name:
                assert old.encode() in raw
                raw = raw.replace(old.encode(), new.encode(), 1)
            out.writestr(entry, raw)
    return target


def test_a_tampered_bundle_is_refused(solved: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "run.zip"
    assert run("export", solved, "--trust", "-o", bundle).exit_code == 0
    proof = json.loads((solved / "proof.json").read_text())
    moved = changed(bundle, "proof.json", f'"x": ["{proof["x"][0]}"', '"x": ["9"')
    assert run("verify", moved).exit_code == 1
    with zipfile.ZipFile(bundle, "a") as out:
        out.writestr("../evil.py", "print(1)")
    ran = run("verify", bundle)
    assert ran.exit_code == 2
    assert "no bundle" in ran.stderr
    (tmp_path / "no.zip").write_text("no")
    assert run("verify", tmp_path / "no.zip").exit_code == 2


def test_a_statement_holds_until_a_file_changes(solved: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("1,2\n")
    statement = tmp_path / "claim.json"
    assert run("attest", solved, "-o", statement, "--subject", data).exit_code == 0
    told = json.loads(statement.read_text())
    assert told["_type"] == "https://in-toto.io/Statement/v1"
    assert {part["name"] for part in told["subject"]} == {"run/result.json", "easy.py", "data.csv"}
    assert str(tmp_path) not in statement.read_text()
    assert run("attest", "--check", statement).exit_code == 0
    for path, old, new in (
        (data, "1,2", "1,3"), (tmp_path / "easy.py", "0.5", "0.6"),
        (solved / "proof.json", '"near"', '"goldstein"'),
        (statement, '"certified"', '"conditional"'), (statement, "Statement/v1", "Statement/v0"),
    ):  # fmt: skip
        before = path.read_text()
        path.write_text(before.replace(old, new, 1))
        assert run("attest", "--check", statement).exit_code == 1, path
        path.write_text(before)
    data.unlink()
    ran = run("attest", "--check", statement)
    assert ran.exit_code == 1
    assert "missing" in ran.stdout
    (tmp_path / "no.json").write_text("[]")
    assert run("attest", "--check", tmp_path / "no.json").exit_code == 2


def test_the_checker_page_is_one_file(tmp_path: Path) -> None:
    page = tmp_path / "check.html"
    assert run("checker-page", "-o", page).exit_code == 0
    text = page.read_text()
    assert "proof-verdict" in text
    assert "http" not in text.replace("http-equiv", "")


def test_every_claim_of_a_folder_is_a_test(solved: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PROBLEM)

    def tested(*options: str) -> tuple[int, str]:
        own = str(Path(sys.executable).with_name("pytest"))  # which does not look beside itself
        command = [own, "-q", "-p", "no:cacheprovider", "--rootdir", "."]
        if "goldstein.pytest_plugin" not in installed():
            command += ["-p", "goldstein.pytest_plugin"]
        done = subprocess.run(
            [*command, "--goldstein-certificates", "run", *options],
            cwd=tmp_path, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout

    code, said = tested("--goldstein-function", "mine:f")
    assert code == 0, said
    assert "2 passed" in said
    code, said = tested("--goldstein-function", "*.cert=mine:other")
    assert (code, "1 failed, 1 passed" in said) == (1, True), said
    code, said = tested()
    assert "name it, --goldstein-function" in said
    proof = (solved / "proof.json").read_text()
    (solved / "proof.json").write_text(proof.replace('"directions": [["', '"directions": [["-', 1))
    code, said = tested("--goldstein-function", "mine:f")
    assert code == 1


def installed() -> set[str]:
    from importlib.metadata import entry_points

    return {entry.value for entry in entry_points(group="pytest11")}
