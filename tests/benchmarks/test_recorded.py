"""Recorded runs: what differs is seen, down to the last bit, and what does not is not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.recorded.__main__ import differing, main
from benchmarks.recorded.families import solved
from benchmarks.recorded.fields import plain
from benchmarks.recorded.functions import VALLEY, VALLEY_START


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1.0, math.nextafter(1.0, 2.0)),
        (0.0, -0.0),
        (np.zeros(40), np.where(np.arange(40) == 39, 5e-324, 0.0)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(3), np.zeros(3, dtype=np.float32)),
        ([1.0, 2.0], [1.0, math.nextafter(2.0, 3.0)]),
        (list(range(20)), [*range(19), 20]),
        ({"a": 1.0}, {"a": 1}),
        ("a", "b"),
        (None, False),
    ],
)
def test_nothing_is_lost(one: Any, other: Any) -> None:
    assert json.dumps(plain(one)) == json.dumps(plain(one))
    assert json.dumps(plain(one)) != json.dumps(plain(other))


def test_a_run_is_recorded_alike_twice_and_another_seed_is_seen() -> None:
    fun, jac = VALLEY
    first, again, other = (
        {"found": solved(fun, VALLEY_START, jac, rng=seed)} for seed in (0, 0, 1)
    )
    assert differing(first, again) == {}
    seen = differing(first, other)
    assert {"seed", "certificate.points", "asked.points"} <= set(seen)
    assert "time" not in first["found"]
    assert differing(first, other, ("seed", "certificate.meta")).keys() < seen.keys()


def recording(path: Path, **found: Any) -> str:
    rows = [{"setting": {}}, {"task": "plain/one/0", "cpu": 0.1, "found": found}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_what_changed_is_said_and_is_a_failure(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    before = recording(tmp_path / "a.jsonl", x="0x1p+0", message="done " * 50 + "here")
    after = recording(tmp_path / "b.jsonl", x="0x1p+0", message="done " * 50 + "there")
    monkeypatch.setattr("sys.argv", ["recorded", "compare", before, before])
    main()
    assert "| all | 1 | 1 | 0 |" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["recorded", "compare", before, after])
    with pytest.raises(SystemExit, match="1"):
        main()
    said = capsys.readouterr().out
    assert "| all | 1 | 0 | 1 |" in said
    assert "there" in said
    monkeypatch.setattr("sys.argv", ["recorded", "compare", before, after, "--ignore", "message"])
    main()
