"""The numbers of the large studies that the tables use: one line per split, one column per method.

    python -m benchmarks.studies.condense

Writes results/NAME.csv from results/NAME.jsonl, which a study writes and which is not kept in the
repository. `python -m benchmarks.studies.report` reads the log of a study if it is there, else the
condensed numbers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parent / "results"

#: What tells the splits of a study apart, and what is kept of each method.
STUDIES = {
    "robust_classification": (
        ["set", "kind", "level", "seed"],
        ["accuracy", "balanced", "verified", "label", "eps"],
    ),
    "defaults": (["set", "level", "seed"], ["accuracy"]),
}

#: Fields that only these methods need.
ONLY = {"balanced": ("RhoMarginSVC", "LinearSVC(hinge)")}

#: Between a field and a method in the name of a column.
OF = " of "


def read(name: str) -> pd.DataFrame:
    """Return the results of a study, a row per run: from its log, else from the condensed file."""
    log, condensed = RESULTS / f"{name}.jsonl", RESULTS / f"{name}.csv"
    if log.exists():
        return pd.DataFrame([json.loads(line) for line in log.read_text().splitlines()])
    return expand(pd.read_csv(condensed), name) if condensed.exists() else pd.DataFrame()


def condense(runs: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return one row per split, with a column for every field of every method."""
    keys, fields = STUDIES[name]
    columns = {}
    for field in fields:
        for method, part in runs.groupby("method"):
            values = part.set_index(keys)[field].dropna()
            if not values.empty and method in ONLY.get(field, (method,)):
                columns[f"{field}{OF}{method}"] = values
    return pd.DataFrame(columns).sort_index().reset_index()


def expand(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a row per run from a row per split."""
    keys, _ = STUDIES[name]
    methods = dict.fromkeys(column.partition(OF)[2] for column in table.columns if OF in column)
    parts = []
    for method in methods:
        own = [column for column in table.columns if column.partition(OF)[2] == method]
        part = table[[*keys, *own]].dropna(subset=own, how="all")
        parts.append(part.rename(columns=lambda c: c.partition(OF)[0]).assign(method=method))
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    for name in STUDIES:
        log = RESULTS / f"{name}.jsonl"
        if log.exists():
            table = condense(read(name), name)
            table.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
