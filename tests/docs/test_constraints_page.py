"""The code of docs/constraints.md prints what the page shows; what it names is there."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import goldstein as gs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "constraints.md"


def test_every_block_prints_what_is_shown() -> None:
    shown = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(shown) == 2
    for code, expected in shown:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, {})
        assert out.getvalue().split() == expected.split()


def test_names_and_pictures_exist() -> None:
    text = PAGE.read_text()
    for name in re.findall(r"\bgs\.(\w+)", text):
        assert hasattr(gs, name), name
    for picture in re.findall(r"\]\((images/[^)]*)\)", text):
        assert (PAGE.parent / picture).stat().st_size < 60_000
