"""The page of `benchmarks.constrained`: who arrives, and with how many calls."""

from __future__ import annotations

import json
import sys

from benchmarks.constrained import report
from benchmarks.constrained.problems import all_problems


def row(problem, method, calls, violation=0.0, gap=0.0, eps=1e-4, proof=0):
    return {
        "problem": problem, "method": method, "status": "end", "calls": calls, "constraints": 0,
        "time": 0.1, "violation": violation, "fun": 1.0 + gap, "best": 1.0, "gap": gap,
        "kkt_eps": eps,
        "proof": proof,
    }  # fmt: skip


ROWS = [
    row("a", "goldstein", 100), row("a", "pygranso", 90), row("a", "pygranso-loose", 50, gap=1e-3),
    row("b", "goldstein", 100), row("b", "pygranso", 80, violation=1e-6),
    row("b", "pygranso-loose", 120, eps=0.1),
    row("c", "goldstein", 100, eps=float("inf")), row("c", "pygranso", 300, proof=20),
    row("c", "pygranso-loose", 300),
]  # fmt: skip


def test_feasible_low_and_certified_are_counted_apart():
    text = report.summary(ROWS)
    assert "| goldstein | 3 | 3 | 3 | 2 | 2 | 100 |" in text
    assert "| PyGRANSO | 3 | 2 | 2 | 2 | 2 | 90 |" in text


def test_only_runs_that_arrive_are_rivals():
    text = report.against(ROWS)
    assert "Fewer calls than PyGRANSO, whatever it ends with: 1 of 3." in text
    assert "opt_tol = evaldist = 1e-3, whatever it ends with: 2 of 3." in text
    # On a the rival is first, on b nobody else arrives, on c goldstein does not.
    assert "(before its certificate is paid for), or alone: 1 of 3." in text


def test_the_page_comes_from_rows_alone(tmp_path, monkeypatch):
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file, rows in zip(files, (ROWS[:3], ROWS[3:]), strict=True):
        file.write_text(json.dumps(rows))
    page, users = tmp_path / "results.md", tmp_path / "users.md"
    users.write_text(f"# Before\n{report.BEGIN}stale\n{report.END}\nafter\n")
    monkeypatch.setattr(report, "PAGE", page)
    monkeypatch.setattr(report, "USERS", users)
    monkeypatch.setattr(sys, "argv", ["report", *map(str, files)])
    report.main()
    assert page.read_text() == report.page(ROWS)
    assert page.read_text().count("\n| a |") == 3
    told = users.read_text()
    assert told.startswith("# Before\n")
    assert told.endswith(f"{report.END}\nafter\n")
    assert report.for_users(ROWS) in told
    assert "stale" not in told


def test_where_no_answer_is_known_the_lowest_feasible_value_is_one():
    rows = [row("a", "goldstein", 1, gap=0.5), row("a", "SLSQP", 1, gap=0.2)]
    rows += [row("a", "COBYLA", 1, gap=0.1, violation=1.0)]
    for one in rows:
        one["best"] = None
    assert [round(one["gap"], 9) for one in report.together(rows)] == [0.3, 0.0, -0.1]


def test_the_page_that_is_kept_has_all_problems():
    text = report.PAGE.read_text()
    told = report.USERS.read_text().split(report.BEGIN)[1].split(report.END)[0]
    assert told in text  # both pages tell the same
    methods = ("goldstein", *report.NAMES.values(), "SLSQP")
    for problem in all_problems():
        for method in methods:
            assert text.count(f"\n| {problem.name} | {method} |") == 1, (problem.name, method)
