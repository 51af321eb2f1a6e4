"""The comparison with the best peer, on runs made up for the purpose."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks import halves, results
from benchmarks.peers import shared_library
from benchmarks.recorder import OutOfBudget, Recorder

import goldstein as gs


def run(method: str, progress: list[tuple[int, int, float, float, float]]) -> results.Run:
    return results.Run(
        problem="maxq-50", dim=50, convex=True, bounded=True, locally_lipschitz=True,
        method=method, group="ours", level=1e-6, seed=0, status="", certified=True,
        certified_eps=0.0, values=0, gradients=0, own_cpu=0.0, oracle_cpu=0.0, wall=0.0,
        certify_values=0, certify_gradients=0, certify_ok=True, start_fun=1.0, fun=0.0,
        best_value=0.0, progress=progress,
    )  # fmt: skip


RUNS = [
    run("auto", [(1, 1, 0.1, 0.0, 1.0), (60, 30, 0.2, 0.1, 1e-5)]),
    run("lmbm", [(1, 1, 0.1, 0.0, 1.0), (20, 20, 0.5, 0.1, 1e-4), (90, 90, 1.0, 0.5, 0.0)]),
    run("nonopt", [(1, 1, 0.1, 0.0, 1.0), (50, 10, 0.4, 0.2, 9e-5)]),
    run("adam", [(1, 1, 0.0, 0.0, 0.0)]),
]


def test_each_cost_has_its_own_best_peer() -> None:
    (found,) = halves.compare(RUNS, 1e-6, 1e-4)
    assert found.ratio("auto", halves.COSTS["values + gradients"]) == (90 / 40, "lmbm")
    assert found.ratio("auto", halves.COSTS["gradients"]) == (3.0, "nonopt")
    ratio, peer = found.ratio("auto", halves.COSTS["CPU"]) or (0.0, "")
    assert (ratio, peer) == (pytest.approx(0.5), "lmbm")


def test_who_does_not_get_there_has_no_ratio() -> None:
    (found,) = halves.compare(RUNS, 1e-6, 1e-6)
    assert found.ratio("auto", halves.COSTS["CPU"]) is None
    text = halves.report(RUNS)
    assert "solved of 1: auto 0, lmbm 1, nonopt 0" in text
    assert "solved by a peer only: maxq-50" in text
    assert "maxq-50, 2.2 times the calls of lmbm" in text


def test_other_levels_and_seeds_are_left_out() -> None:
    others = [replace(RUNS[0], level=1e-3), replace(RUNS[1], seed=1)]
    assert halves.compare(others, 1e-6, 1e-4) == []


def test_the_halves_are_both_large_and_do_not_depend_on_the_size() -> None:
    names = [p.name for p in gs.problems.suite()]
    second = sum(halves.half_of(f"{name}-7") for name in names)
    assert 0.35 * len(names) < second < 0.65 * len(names)
    assert all(halves.half_of(f"{n}-7") == halves.half_of(f"{n}-1000") for n in names)


def test_a_peer_that_was_not_built_says_how(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("GOLDSTEIN_PEERS", str(tmp_path))
    reason = shared_library.missing("lmbm")
    assert reason is not None
    assert "GOLDSTEIN_PEERS" in reason


C_PEER = """
#include "peer.h"
int peer_solve(int n, double *x, peer_ask ask, double tolerance, int calls)
{
  double f, g[2];
  for (int k = 0; k < 50; k++) {
    if (ask(PEER_VALUE, x, &f, 0) || ask(PEER_GRADIENT, x, 0, g))
      return -1;
    for (int i = 0; i < n; i++)
      x[i] -= 0.05 * g[i];
  }
  return ask(PEER_VALUE | PEER_GRADIENT, x, &f, g);
}
"""


def test_a_library_asks_and_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    import shutil
    import subprocess
    from pathlib import Path

    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "mine.c").write_text(C_PEER)
    header = Path(shared_library.__file__).with_name("native")
    subprocess.run(
        [compiler, "-shared", "-fPIC", f"-I{header}", tmp_path / "mine.c", "-o",
         tmp_path / "mine.so"], check=True,
    )  # fmt: skip
    monkeypatch.setenv("GOLDSTEIN_PEERS", str(tmp_path))
    assert shared_library.missing("mine") is None
    problem = gs.problems.get("crescent")
    oracle = Recorder(problem, max_calls=1000, max_cpu=10.0)
    answer = shared_library.solve("mine", oracle, problem.x0, 1e-3, 1e-3, 0)
    assert (oracle.values, oracle.gradients) == (51, 51)
    assert problem.fun(answer.x) < problem.fun(problem.x0)
    with pytest.raises(OutOfBudget):
        shared_library.solve(
            "mine", Recorder(problem, max_calls=7, max_cpu=10.0), problem.x0, 1e-3, 1e-3, 0
        )
