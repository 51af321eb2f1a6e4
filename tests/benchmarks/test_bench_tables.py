"""Tables and profiles of hand-made runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from benchmarks import profiles, tables


@pytest.fixture
def runs(make_run: Any) -> list[Any]:
    def run(method: str, group: str, problem: str, calls: int, certified: bool = True) -> Any:
        course = [(calls, calls, 0.01 * calls, 0.0, 0.0 if certified else 9.0)]
        return make_run(
            method=method, group=group, problem=problem, values=calls, gradients=0,
            certify_values=0, certify_gradients=0, certified=certified, certified_eps=0.25,
            fun=0.0 if certified else 1.0, progress=course,
        )  # fmt: skip

    return [
        run("slow", "peer", "a", 60),
        run("slow", "peer", "b", 10, certified=False),
        run("auto", "ours", "a", 30),
        run("auto", "ours", "b", 90),
        run("ingd", "reference", "a", 300),
    ]


def drawn(axes: plt.Axes, label: str) -> tuple[np.ndarray, np.ndarray]:
    (curve,) = [c for c in axes.get_lines() if c.get_label() == label]
    return np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata())


def share(axes: plt.Axes, label: str, at: float) -> float:
    """Height of a step function."""
    x, y = drawn(axes, label)
    return float(y[np.flatnonzero(x <= at)[-1]])


def test_methods_stand_in_order(runs: list[Any]) -> None:
    assert tables.ordered_methods(runs) == ["auto", "ingd", "slow"]


def test_the_summary(runs: list[Any], make_run: Any) -> None:
    more = make_run(problem="a", level=0.01, values=5, gradients=2)
    assert tables.summary([*runs, more]).splitlines() == [
        "| method | 0.01 | 0.001 |",
        "|---|---|---|",
        "| auto | 1/1, 7 | 2/2, 60 |",
        "| ingd |  | 1/1, 300 |",
        "| slow |  | 1/2, - |",
    ]


def test_problems_one_by_one(runs: list[Any]) -> None:
    assert tables.per_problem(runs, 1e-3).splitlines() == [
        "| problem | auto | ingd | slow |",
        "|---|---|---|---|",
        "| a | **30** 0e+00 | **300** 0e+00 | **60** 0e+00 |",
        "| b | **90** 0e+00 |  | (2.5e-01) 1e-01 |",
    ]


def test_data_and_performance_profiles(runs: list[Any]) -> None:
    figure = profiles.certificate_profiles(runs)
    data, performance = figure.axes
    # Calls over d + 1 = 3: auto needs 10 and 30, slow 20 and for ever.
    assert [share(data, "auto", at) for at in (9.9, 10.1, 29.9, 30.1, 1e5)] == [0, 0.5, 0.5, 1, 1]
    assert [share(data, "slow", at) for at in (19.9, 20.1, 1e5)] == [0, 0.5, 0.5]
    # Against the fewest calls: auto is the best on both, slow twice as slow on one.
    assert share(performance, "auto", 1.0) == 1.0
    assert [share(performance, "slow", at) for at in (1.9, 2.1, 1e4)] == [0, 0.5, 0.5]
    # A method that has not run every problem is left out.
    assert {c.get_label() for c in data.get_lines()} == {"auto", "slow"}
    plt.close(figure)


def test_descent_profiles(runs: list[Any]) -> None:
    figure = profiles.descent_profiles(runs)
    gradients, seconds = figure.axes
    assert [share(gradients, "auto", at) for at in (9.9, 10.1, 30.1)] == [0, 0.5, 1]
    assert [share(gradients, "slow", at) for at in (19.9, 20.1, 1e5)] == [0, 0.5, 0.5]
    assert [share(seconds, "auto", at) for at in (0.29, 0.31, 0.91)] == [0, 0.5, 1]
    plt.close(figure)


def test_a_problem_nobody_certifies_counts_for_nobody(make_run: Any) -> None:
    both = [make_run(method=m, certified=False) for m in ("auto", "bundle")]
    figure = profiles.certificate_profiles(both)
    for axes in figure.axes:
        assert share(axes, "auto", math.inf) == 0.0
    plt.close(figure)


def test_everything_is_written(runs: list[Any], tmp_path: Path) -> None:
    tables.write(runs, tmp_path)
    text = (tmp_path / "tables.md").read_text()
    assert "| auto | 2/2, 60 |" in text
    assert "| a | **30** 0e+00 |" in text
    for name in ("certificates", "descent"):
        for kind in ("png", "svg"):
            assert (tmp_path / f"{name}.{kind}").stat().st_size > 1000
