"""`goldstein bench`: the same question to several methods, and a table of what was proved."""

import json

from typer.testing import CliRunner

from goldstein.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *[str(a) for a in arguments]])


def test_the_numbers_say_who_certified_what():
    shown = run("crescent", "cb3", "--methods", "auto,scipy-bfgs", "--level", 1e-2, "--json")
    assert shown.exit_code == 0, shown.output
    runs = json.loads(shown.output)["runs"]
    assert [(r["problem"], r["method"]) for r in runs] == [
        ("crescent", "auto"), ("crescent", "scipy-bfgs"), ("cb3", "auto"), ("cb3", "scipy-bfgs"),
    ]  # fmt: skip
    for r in runs:
        assert r["certified"] == (r["eps"] <= 1e-2)
        assert r["calls"] > 0
    assert all(r["certified"] for r in runs if r["method"] == "auto")


def test_the_table_ends_with_a_count_per_method():
    shown = run("crescent", "--methods", "auto", "--level", 1e-2)
    assert "auto: 1 of 1 certified" in shown.output


def test_an_unknown_method_is_one_clear_line():
    shown = run("crescent", "--methods", "adam")
    assert shown.exit_code == 2
    assert "unknown method 'adam'" in shown.output
