"""From a search to a line on file."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import results
from benchmarks.answer import Answer
from benchmarks.methods import METHODS, Method
from benchmarks.recorder import Recorder
from benchmarks.run import chosen_problems, fastest, judge, label, run_all, search

import goldstein as gs

PROBLEM = gs.problems.get("crescent")


def options(out: Path, **said: Any) -> argparse.Namespace:
    usual: dict[str, Any] = {
        "budget": math.inf, "again": False, "out": out, "seeds": 1, "problems": ["crescent"],
        "dims": [2], "levels": [1e-2], "max_calls": 5000, "max_cpu": 20.0,
        "repeat": 1, "in_turns": False,
    }  # fmt: skip
    return argparse.Namespace(**(usual | said))


def test_the_default_solver_from_search_to_verdict() -> None:
    solved = search(PROBLEM, METHODS["auto"], 1e-2, 0, 5000, 20.0)
    run = judge(PROBLEM, METHODS["auto"], 1e-2, 0, solved)
    assert run.certified
    assert run.certify_ok
    assert run.certified_eps == solved.certificate.eps <= 1e-2  # type: ignore[union-attr]
    assert (run.values, run.gradients) == (solved.oracle.values, solved.oracle.gradients)
    assert run.key == ("crescent-2", "auto", 1e-2, 0)
    assert run.fun == PROBLEM.value(solved.x)
    assert run.start_fun == PROBLEM.value(PROBLEM.x0)
    assert run.progress[-1][4] == solved.oracle.best_fun


def test_the_fastest_of_equal_runs_counts() -> None:
    times = iter([3.0, 1.0, 2.0])

    def solve(oracle: Recorder, x0: np.ndarray, *_: Any) -> Answer:
        oracle.remote_cpu = next(times)
        return Answer(x0, "done")

    question = (PROBLEM, Method("timed", "peer", solve), 1e-2, 0, 10, 20.0)
    assert fastest(3, *question).own_cpu == 1.0
    assert next(times, None) is None


def test_a_run_that_runs_out_ends_at_its_best_point() -> None:
    def endless(oracle: Recorder, x0: np.ndarray, *_: Any) -> Answer:
        while True:
            oracle.both(x0)
            x0 = 0.9 * x0

    solved = search(PROBLEM, Method("endless", "peer", endless), 1e-2, 0, 10, 20.0)
    assert solved.status == "out of calls"
    assert solved.oracle.calls == 10
    np.testing.assert_array_equal(solved.x, solved.oracle.best_x)


def test_a_peer_is_judged_by_certify_and_not_by_its_word() -> None:
    def at(point: list[float], group: Any) -> results.Run:
        def solve(oracle: Recorder, *_: Any) -> Answer:
            oracle.value(np.array(point))
            return Answer(np.array(point), "converged")

        method = Method("toy", group, solve)
        return judge(PROBLEM, method, 1e-2, 0, search(PROBLEM, method, 1e-2, 0, 99, 9.0))

    best, far = at([0.0, 0.0], "peer"), at([3.0, 2.0], "peer")
    assert best.certified
    assert best.certified_eps <= 1e-2
    assert best.calls == 1
    assert best.certify_gradients > 0
    assert not far.certified
    assert far.certified_eps > 1e-2
    # Who has certificates of its own has to bring one.
    assert not at([0.0, 0.0], "ours").certified


def test_a_certificate_of_a_larger_ball_is_none_of_this_level() -> None:
    def wide(oracle: Recorder, *_: Any) -> Answer:
        x = np.zeros(2)
        points = [x + np.array([0.5, 0.3]), x - np.array([0.5, 0.3])]
        return Answer.with_evidence(x, "wide", points, [np.ones(2), -np.ones(2)])

    method = Method("wide", "reference", wide)
    run = judge(PROBLEM, method, 1e-2, 0, search(PROBLEM, method, 1e-2, 0, 99, 9.0))
    assert not run.certified
    assert run.certified_eps == math.inf


def test_methods_can_take_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["auto", "scipy-lbfgsb"]
    run_all(options(tmp_path, problems=["crescent", "wf"], dims=[], in_turns=True), names)
    lines = [line.split()[1:3] for line in capsys.readouterr().out.splitlines()]
    assert lines == [[name, problem] for problem in ("wf-2", "crescent-2") for name in names]


def test_finished_runs_are_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_all(options(tmp_path), ["auto"])
    assert capsys.readouterr().out.startswith("1/1 auto")
    run_all(options(tmp_path), ["auto"])
    assert capsys.readouterr().out == ""
    run_all(options(tmp_path, levels=[1e-2, 1e-1]), ["auto"])
    assert len(results.load([tmp_path / "auto.jsonl"])) == 2
    run_all(options(tmp_path, again=True), ["auto"])
    assert len((tmp_path / "auto.jsonl").read_text().splitlines()) == 3
    assert len(results.load([tmp_path / "auto.jsonl"])) == 2


def test_problems_are_chosen_by_name_and_dimension() -> None:
    assert [label(p) for p in chosen_problems(["maxq"], [5, 7])] == ["maxq-5", "maxq-7"]
    assert {p.name for p in chosen_problems(["crescent"], [])} == {"crescent"}
    assert len(chosen_problems([], [])) == len(gs.problems.suite("public"))
    with pytest.raises(SystemExit, match="nonsense"):
        chosen_problems(["nonsense"], [])
