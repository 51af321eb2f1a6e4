"""Runs on file, and what is read off one run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from benchmarks import results


def test_runs_come_back_from_the_file_as_they_went(make_run: Any, tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "auto.jsonl"
    moments = [(1, 0, 0.1, 0.2, 3.0), (2, 2, 0.3, 0.4, -1.5)]
    runs = [
        make_run(progress=moments, best_value=None),
        make_run(level=0.1 + 0.2, certified=False, certified_eps=math.inf, fun=1e-310),
    ]
    for run in runs:
        results.append(path, run)
    assert results.load([path]) == runs


def test_nan_survives_the_file(make_run: Any, tmp_path: Path) -> None:
    results.append(tmp_path / "a.jsonl", make_run(fun=math.nan))
    (back,) = results.load([tmp_path / "a.jsonl"])
    assert math.isnan(back.fun)


def test_a_later_run_of_the_same_key_replaces_an_earlier_one(make_run: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    results.append(first, make_run(values=1))
    results.append(first, make_run(values=2))
    results.append(first, make_run(values=3, seed=1))
    results.append(second, make_run(values=4))
    assert [r.values for r in results.load([first])] == [2, 3]
    assert sorted(r.values for r in results.load([first, second])) == [3, 4]


@pytest.mark.parametrize(
    "change", [{"problem": "q-2"}, {"method": "b"}, {"level": 1.0}, {"seed": 9}]
)
def test_runs_of_other_questions_are_kept_apart(
    make_run: Any, tmp_path: Path, change: dict[str, Any]
) -> None:
    path = tmp_path / "a.jsonl"
    results.append(path, make_run())
    results.append(path, make_run(**change))
    assert len(results.load([path])) == 2


def test_an_interrupted_line_and_a_missing_file_are_passed_over(
    make_run: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    results.append(path, make_run())
    text = path.read_text()
    path.write_text(text + text[: len(text) // 2])
    assert results.load([tmp_path / "none.jsonl", path]) == [make_run()]


def test_calls_to_a_certificate(make_run: Any) -> None:
    assert make_run().calls == 50
    assert make_run().calls_with_certificate == 50
    assert make_run(group="reference").calls_with_certificate == 50
    # A peer has no certificate of its own and pays for the one that is made for it.
    assert make_run(group="peer").calls_with_certificate == 57
    for group in ("ours", "reference", "peer"):
        assert make_run(group=group, certified=False).calls_with_certificate == math.inf


def test_first_below(make_run: Any) -> None:
    moments = [(1, 0, 0.0, 0.0, 8.0), (5, 3, 0.0, 0.0, 2.0), (9, 6, 0.0, 0.0, 1.0)]
    run = make_run(progress=moments)
    assert run.first_below(9.0) == moments[0]
    assert run.first_below(2.0) == moments[1]
    assert run.first_below(1.5) == moments[2]
    assert run.first_below(0.5) is None
    assert make_run().first_below(math.inf) is None
