"""The code of docs/near.md gives the output it shows, and its picture can be drawn."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_block_of_the_tutorial_runs():
    text = (ROOT / "docs" / "near.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 6
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "near.md", "near.md", 0)
    runner = doctest.DocTestRunner(optionflags=flags)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_the_picture_is_drawn_and_reproducible(tmp_path):
    script = ROOT / "examples" / "plot_goldstein_versus_near.py"
    pictures = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for picture in pictures:
        subprocess.run([sys.executable, script, picture], check=True)
    first, second = (picture.read_bytes() for picture in pictures)
    assert first.startswith(b"<?xml")
    assert first == second
