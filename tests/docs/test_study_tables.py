"""The tables of docs/estimator_studies.md are those of the recorded results."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pandas")

from benchmarks.studies import condense, report

ROOT = Path(__file__).resolve().parents[2]
TABLES = report.tables()


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_is_what_the_results_say(name: str) -> None:
    page = (ROOT / "docs" / "estimator_studies.md").read_text()
    assert f"<!-- {name} -->\n{TABLES[name]}\n<!-- end {name} -->" in page


@pytest.mark.parametrize("name", condense.STUDIES)
def test_condensing_keeps_every_number_of_the_tables(name: str) -> None:
    runs = condense.read(name)
    again = condense.expand(condense.condense(runs, name), name)
    keys, fields = condense.STUDIES[name]
    order = [*keys, "method"]
    for field in fields:
        kept = again.dropna(subset=[field]).sort_values(order)
        given = runs.dropna(subset=[field]).sort_values(order)
        given = given[given.method.isin(kept.method.unique())]
        assert kept[field].tolist() == given[field].tolist()


def test_no_large_file_of_raw_results_is_kept() -> None:
    for path in (ROOT / "benchmarks" / "studies" / "results").glob("*.csv"):
        assert path.stat().st_size < 200_000
