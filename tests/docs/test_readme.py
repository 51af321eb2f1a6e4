"""The code of the README, of CONTRIBUTING and of the users' pages runs, and prints what they say.

Run this file (`python tests/docs/test_readme.py`) to write the present output into the pages.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import goldstein as gs
from goldstein.cli.problem import FUNCTIONS

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
BLOCK = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
SECONDS = re.compile(r"[\d.e+-]+ s,")
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


DOCS = ROOT / "docs"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    DOCS / "running.md",
    DOCS / "accuracy.md",
    DOCS / "constraints.md",
    DOCS / "from_scipy.md",
    DOCS / "values_only.md",
    DOCS / "many_starts.md",
    DOCS / "many_variables.md",
    DOCS / "seeing.md",
    DOCS / "proof_files.md",
    DOCS / "index.md",
    DOCS / "quickstart.md",
    DOCS / "coming_from.md",
    *sorted((DOCS / "tutorials").glob("*.md")),
    DOCS / "prox.md",
    DOCS / "in_your_field.md",
    DOCS / "minimum.md",
    DOCS / "no_gradient.md",
]


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


def output_of(code: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_has_its_output(page: Path) -> None:
    assert page.read_text().count("```python") == len(blocks(page)) >= 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of a page run one after the other, as somebody who copies them would."""
    monkeypatch.chdir(tmp_path)  # what the code writes is left there
    names: dict[str, Any] = {"__name__": "readme"}
    for code, promised in blocks(page):
        got = SECONDS.sub("", output_of(code, names))
        promised = SECONDS.sub("", promised)
        # Words exactly; numbers to three digits, for other machines round differently.
        assert NUMBER.sub("#", got) == NUMBER.sub("#", promised)
        for mine, theirs in zip(NUMBER.findall(got), NUMBER.findall(promised), strict=True):
            assert math.isclose(float(mine), float(theirs), rel_tol=1e-3, abs_tol=1e-12)


#: Pages whose blocks are run by tests of their own.
ELSEWHERE = {
    "estimators.md": "test_estimators_page.py",
    "expressions.md": "test_expressions_page.py",
    "training.md": "test_training_page.py",
    "near.md": "../theory/test_near_tutorial.py",
}


def test_no_block_of_any_page_is_left_out() -> None:
    for page in DOCS.rglob("*.md"):
        if "```python" in page.read_text() and page not in PAGES:
            assert (Path(__file__).parent / ELSEWHERE[page.name]).exists(), page.name


def test_the_reference_names_everything_public() -> None:
    text = (DOCS / "reference.md").read_text()
    modules = ("certificates", "models", "problems", "prox", "scipy", "parallel", "sklearn",
               "torch", "jax")  # fmt: skip
    public = {"goldstein": {*gs.__all__} - {"__version__", *gs._MODULES}}
    for module in modules:
        found = importlib.import_module(f"goldstein.{module}")
        public[found.__name__] = {n for n in found.__all__ if callable(getattr(found, n))}
    for module, names in public.items():
        listed = re.findall(rf"currentmodule:: {re.escape(module)}\n(.*?)```", text, re.DOTALL)
        assert names <= set(" ".join(listed).split()), module


def test_the_certificate_and_the_verification_are_shown_early() -> None:
    head = "\n".join(README.read_text().splitlines()[:40])
    assert "Goldstein stationary" in head
    assert "VERIFIED" in head
    assert "verify: True" in head
    assert "docs/images/certificate.svg" in head
    assert "Python 3.11" in head


def test_the_picture_is_that_of_a_run_that_succeeded(tmp_path: Path) -> None:
    # The example asserts success and a verification before it draws.
    words = [sys.executable, str(ROOT / "examples" / "plot_certificate.py"), "picture.svg"]
    subprocess.run(words, cwd=tmp_path, check=True, env={**os.environ, "MPLBACKEND": "agg"})
    assert "proved stationary" in (tmp_path / "picture.svg").read_text()


def test_every_link_leads_somewhere() -> None:
    for page in [README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith(("http:", "https:")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_name_on_the_page_exists() -> None:
    for name in set(re.findall(r"\bgs\.(\w+)", README.read_text())):
        assert hasattr(gs, name), name
    for module, name in re.findall(
        r"`goldstein\.(sklearn|torch|jax|scipy|parallel)\.(\w+)", README.read_text()
    ):
        assert hasattr(importlib.import_module(f"goldstein.{module}"), name), name


@pytest.mark.slow
def test_the_shell_commands_of_the_command_line_page_work(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(blocks(README)[0][0])
    text = (ROOT / "docs" / "command_line.md").read_text()
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(lines) >= 9
    for line in lines:
        command, _, said = line.partition("#")
        words = [sys.executable, "-m", "goldstein.cli", *command.split()[1:]]
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == (1 if "exit code 1" in said else 0), (line, ran.stderr)


def test_the_names_on_the_command_line_page_are_those_looked_for() -> None:
    text = (ROOT / "docs" / "command_line.md").read_text()
    assert ", ".join(f"`{name}`" for name in FUNCTIONS) in text


def test_the_shell_commands_on_the_page_work(tmp_path: Path) -> None:
    lines = re.findall(r"^goldstein .*$", README.read_text(), re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        command = [sys.executable, "-m", "goldstein.cli", *line.split()[1:]]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr


if __name__ == "__main__":
    pages = {page: page.read_text() for page in PAGES}
    os.chdir(tempfile.mkdtemp())
    for page, text in pages.items():
        names: dict[str, Any] = {"__name__": "readme"}
        for code, old in BLOCK.findall(text):
            new = output_of(code, names)
            before, after = (f"{code}```\n\n```text\n{out}```" for out in (old, new))
            text = text.replace(before, after)
        page.write_text(text)
