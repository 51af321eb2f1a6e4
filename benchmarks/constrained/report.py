"""What `python -m benchmarks.constrained.run` found, as a page; also from its rows alone:

python -m benchmarks.constrained.report rows.json [more rows.json ...]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

EPS = DELTA = 1e-3

#: What the settings of PyGRANSO are called on the page.
NAMES = {
    "pygranso": "PyGRANSO",
    "pygranso-loose": "PyGRANSO, opt_tol = evaldist = 1e-3",
}

PAGE = Path(__file__).parent / "results.md"

#: The page for users, whose part between the marks is written here.
USERS = Path(__file__).parents[2] / "docs" / "constraints.md"
BEGIN, END = "<!-- begin measured -->\n", "<!-- end measured -->"

Row = dict[str, Any]


def feasible(row: Row) -> bool:
    return bool(row["violation"] <= 1e-9)


def low(row: Row) -> bool:
    """Feasible, and f within 1e-4 of the best known."""
    return bool(feasible(row) and row["gap"] <= 1e-4 * max(1.0, abs(row["fun"])))


def certified(row: Row) -> bool:
    return bool(feasible(row) and row["kkt_eps"] <= EPS)


def arrived(row: Row) -> bool:
    return low(row) and certified(row)


def by_method(rows: list[Row]) -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row["method"], {})[row["problem"]] = row
    return found


def together(rows: list[Row]) -> list[Row]:
    """Sort rows by problem and say how high each ends; the lowest is best where none is known."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["problem"], []).append(row)
    for mine in found.values():
        lowest = min((row["fun"] for row in mine if feasible(row)), default=np.nan)
        for row in mine:
            row["gap"] = row["fun"] - (lowest if row["best"] is None else row["best"])
    return [row for mine in found.values() for row in mine]


def summary(rows: list[Row]) -> str:
    lines = [
        "| method | problems | feasible | f within 1e-4 | certified | all three | median calls |",
        "|---|---|---|---|---|---|---|",
    ]
    for method, mine in by_method(rows).items():
        kept = list(mine.values())
        counts = [sum(map(test, kept)) for test in (feasible, low, certified, arrived)]
        median = int(np.median([row["calls"] for row in kept]))
        cells = [NAMES.get(method, method), len(kept), *counts, median]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def against(rows: list[Row]) -> str:
    """Compare calls with each setting of PyGRANSO, and with those of its runs that arrive."""
    methods, lines = by_method(rows), []
    ours = methods.get("goldstein", {})
    rivals = {name: methods[name] for name in NAMES if name in methods}
    for name, theirs in rivals.items():
        both = [p for p in ours if p in theirs]
        fewer = [p for p in both if ours[p]["calls"] < theirs[p]["calls"]]
        lines.append(
            f"* Fewer calls than {NAMES[name]}, whatever it ends with: {len(fewer)} of {len(both)}."
        )
    for proof, remark in ((0, "before its certificate is paid for"), (1, "with its certificate")):
        names = [p for p in ours if any(p in theirs for theirs in rivals.values())]
        first = [
            p
            for p in names
            if arrived(ours[p])
            and all(
                ours[p]["calls"] < theirs[p]["calls"] + proof * theirs[p]["proof"]
                for theirs in rivals.values()
                if p in theirs and arrived(theirs[p])
            )
        ]
        if names:
            lines.append(
                "* To a point that is feasible, low and certified in fewer calls than PyGRANSO "
                f"with either setting ({remark}), or alone: {len(first)} of {len(names)}."
            )
    return "\n".join(lines)


def table(rows: list[Row]) -> str:
    lines = [
        "| problem | method | ended | calls | constraints | seconds | violation | f - best "
        "| KKT eps |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row["problem"], NAMES.get(row["method"], row["method"]), row["status"], row["calls"],
            row["constraints"], f"{row['time']:.2f}", f"{row['violation']:.1e}",
            f"{row['gap']:.1e}", f"{row['kkt_eps']:.1e}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def page(rows: list[Row]) -> str:
    return f"""# Bounds and constraints: against other methods

Written by `python -m benchmarks.constrained.run`, one run of each method from the same start, eps =
delta = {EPS:g}. Feasible: violation at most 1e-9. Certified: a KKT certificate of the last point at
({EPS:g}, {DELTA:g}) that verifies, whoever found the point. Calls are values plus gradients of f;
those of goldstein include its own certificate and its check. Constraints: values plus Jacobians of
nonlinear constraints. Seconds are those of the whole run, on a busy machine. PyGRANSO may use
50,000 calls and 10 seconds, SLSQP and COBYLA 3000 iterations, trust-constr 500.

{summary(rows)}

{against(rows)}

{table(rows)}
"""


def for_users(rows: list[Row]) -> str:
    """Return what users are told: who ends where, and with how many calls."""
    return f"{summary(rows)}\n\n{against(rows)}\n"


def write(rows: list[Row]) -> None:
    """Write the page, and the part of the page for users."""
    PAGE.write_text(page(rows))
    before, rest = USERS.read_text().split(BEGIN)
    USERS.write_text(before + BEGIN + for_users(rows) + END + rest.split(END)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, nargs="+")
    files = parser.parse_args().rows
    rows = together([row for file in files for row in json.loads(file.read_text())])
    write(rows)


if __name__ == "__main__":
    main()
