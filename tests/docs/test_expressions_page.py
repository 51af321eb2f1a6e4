"""The code of docs/expressions.md gives the output it shows; what its table names is there."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import numpy as np

import goldstein as gs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "expressions.md"


def test_every_block_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 3
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, PAGE.name, 0)
    runner = doctest.DocTestRunner(optionflags=flags)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_names_of_the_table_exist() -> None:
    text = PAGE.read_text()
    for name in re.findall(r"\bgs\.(\w+)", text):
        assert hasattr(gs, name), name
    for path in re.findall(r"\bnp\.((?:linalg\.)?\w+)", text):
        thing = np
        for part in path.split("."):
            thing = getattr(thing, part)
