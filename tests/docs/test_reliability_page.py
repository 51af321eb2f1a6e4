"""Every row of docs/reliability.md is linked to a test that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
LINK = re.compile(r"\]\(\.\./(tests/[^)#]+)#([^)]+)\)")


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_linked_tests_are_there() -> None:
    links = LINK.findall(PAGE.read_text())
    assert len(links) > 40
    for file, name in links:
        assert name in functions_of(ROOT / file), (file, name)


def test_every_row_of_a_table_of_tests_has_one() -> None:
    in_table = False
    for line in PAGE.read_text().splitlines():
        if re.fullmatch(r"\|.*\| test \|", line):
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not set(line) <= set("|-"):
            assert LINK.search(line), line


def test_every_test_of_faults_has_a_row() -> None:
    """A fault with a test and without a documented outcome is half the work."""
    named = {name for _, name in LINK.findall(PAGE.read_text())}
    found = {name for name in functions_of(ROOT / "tests/reliability/test_faults.py")
             if name.startswith("test_")}  # fmt: skip
    assert found <= named, found - named
