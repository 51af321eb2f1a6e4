"""The shape of a small tree, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import shape

FILES = {
    "goldstein/__init__.py": '"""Words."""\n\nfrom goldstein.a import one\n',
    "goldstein/a.py": (
        "from . import b\n\n\n# a comment\ndef one(x: int) -> int:\n    return b.two()\n"
    ),
    "goldstein/b.py": (
        "from typing import Any\n\n\nclass Tuning:\n    share: float = 1.0\n\n\n"
        'def two(a: Any = 0, *rest: list[Any], c: int = 0) -> "int":\n'
        '    """Words\n    over two lines.\n    """\n    import goldstein.room.c\n\n    return 2\n'
    ),
    "goldstein/room/__init__.py": "from . import c\n",
    "goldstein/room/c.py": "from ..b import two\n\nfound = two()\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_lines_are_those_of_code(tree: Path) -> None:
    lines = {name: len(shape.lines_of_code(tree / name)) for name in FILES}
    assert list(lines.values()) == [1, 3, 6, 1, 2]
    assert shape.rooms(tree)["goldstein/room"] == (3, 2)


def test_importers_are_counted_wherever_the_import_stands(tree: Path) -> None:
    found = shape.importers(tree)
    assert found["goldstein.a"] == {"goldstein"}
    assert found["goldstein.b"] == {"goldstein.a", "goldstein.room.c"}
    assert found["goldstein.room.c"] == {"goldstein.b", "goldstein.room"}


def test_signatures(tree: Path) -> None:
    found = {name: function for _, name, function in shape.functions(tree)}
    assert set(found) == {"one", "two"}
    assert shape.says_any(found["two"]) == 2
    assert shape.says_any(found["one"]) == 0
    assert len(shape.arguments(found["two"])) == 2


def test_a_walk_counts_files_and_changes(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """a, b, b, a, b: three changes among three functions of two files."""
    (tree / "walked_a.py").write_text(
        "import walked_b\n\n\ndef go():\n    walked_b.two()\n    again()\n\n\n"
        "def again():\n    walked_b.one()\n"
    )
    (tree / "walked_b.py").write_text("def one():\n    pass\n\n\ndef two():\n    one()\n")
    monkeypatch.syspath_prepend(tree)
    import walked_a

    seen = shape.walk(walked_a.go, str(tree))
    assert seen == {"files": 2, "changes": 3, "calls": 5}
    lines = shape.executed(walked_a.go, str(tree))
    assert {Path(name).name: line for name, line in lines if line < 3} == {"walked_b.py": 2}
    assert len(shape.entered(walked_a.go, str(tree))) == 9
