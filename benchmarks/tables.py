"""Markdown tables and profile plots of all runs on file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import profiles
from benchmarks.acceptance import SMALL, best_known, by_problem
from benchmarks.results import Run


def _first_seed(runs: Sequence[Run]) -> dict[tuple[str, str, float], Run]:
    return {(r.problem, r.method, r.level): r for r in runs if r.seed == 0}


def summary(runs: Sequence[Run]) -> str:
    """One row per method: certified share and median calls at every level."""
    levels = sorted({r.level for r in runs}, reverse=True)
    head = "| method | " + " | ".join(f"{level:g}" for level in levels) + " |"
    rows = [head, "|---" * (len(levels) + 1) + "|"]
    for method in ordered_methods(runs):
        cells = []
        for level in levels:
            here = list(by_problem(runs, method, level).values())
            if not here:
                cells.append("")
                continue
            good = sum(r.certified for r in here)
            middle = median(r.calls_with_certificate for r in here)
            calls = f"{middle:.0f}" if math.isfinite(middle) else "-"
            cells.append(f"{good}/{len(here)}, {calls}")
        rows.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def ordered_methods(runs: Sequence[Run]) -> list[str]:
    """Ours first, then references, then peers."""
    groups = {"ours": 0, "reference": 1, "peer": 2}
    return sorted({r.method for r in runs}, key=lambda m: (groups[_group(runs, m)], m))


def _group(runs: Sequence[Run], method: str) -> str:
    return next(r.group for r in runs if r.method == method)


def per_problem(runs: Sequence[Run], level: float) -> str:
    """One row per problem: calls to a certificate, and where f ended."""
    table = _first_seed(runs)
    methods = [m for m in ordered_methods(runs) if any(k[1:] == (m, level) for k in table)]
    best = best_known(runs)
    problems = sorted({k[0] for k in table if k[2] == level})
    rows = [
        "| problem | " + " | ".join(methods) + " |",
        "|---" * (len(methods) + 1) + "|",
    ]
    for problem in problems:
        cells = []
        for method in methods:
            run = table.get((problem, method, level))
            if run is None:
                cells.append("")
                continue
            calls = run.calls_with_certificate
            shown = f"**{calls:.0f}**" if math.isfinite(calls) else f"({run.certified_eps:.1e})"
            descent = run.start_fun - best[problem]
            gap = (run.fun - best[problem]) / descent if descent > 0 else 0.0
            cells.append(f"{shown} {gap:.0e}")
        rows.append(f"| {problem} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def write(runs: Sequence[Run], out: Path) -> None:
    """Write `tables.md` and the plots."""
    small = [r for r in runs if r.dim <= SMALL]
    parts = [
        "# Results",
        "Public problems with d <= 250, bounded below, seed 0. Each cell: "
        "problems certified / problems run, median calls (values plus gradients) to a certificate "
        "at eps = delta = the column. Methods without certificates pay for `gs.certify` too.",
        summary(small),
    ]
    for level in sorted({r.level for r in small}, reverse=True):
        parts += [
            f"## eps = delta = {level:g}",
            "Calls to a certificate in bold, or (the eps that could be proved); then the final "
            "(f - best) / (f at the start - best).",
            per_problem(small, level),
        ]
    (out / "tables.md").write_text("\n\n".join(parts) + "\n")
    profiles.write(small, out)
