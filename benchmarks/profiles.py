"""Data and performance profiles (More and Wild 2009; Dolan and More 2002)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.acceptance import TARGET, best_known, in_class
from benchmarks.results import Run

GROUP_STYLE = {"ours": ("-", 2.2), "reference": ("--", 1.3), "peer": ("-", 1.3)}


def _costs(runs: Sequence[Run], level: float) -> dict[str, dict[str, float]]:
    """method -> problem -> calls to a certificate."""
    table: dict[str, dict[str, float]] = {}
    for run in runs:
        if run.level == level and run.seed == 0 and in_class(run):
            table.setdefault(run.method, {})[run.problem] = run.calls_with_certificate
    return table


def _complete(table: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Only the methods that have run every problem: a profile over different ones would lie."""
    problems = {problem for row in table.values() for problem in row}
    return {method: row for method, row in table.items() if row.keys() == problems}


def _steps(axes: plt.Axes, numbers: np.ndarray, end: float, **style: object) -> None:
    finite = np.sort(numbers[np.isfinite(numbers)])
    heights = np.arange(1, finite.size + 1) / numbers.size
    x = np.concatenate([[1e-9], finite, [end]])
    y = np.concatenate([[0.0], heights, [heights[-1] if finite.size else 0.0]])
    axes.step(x, y, where="post", **style)


def _styles(runs: Sequence[Run]) -> dict[str, dict[str, object]]:
    groups = {r.method: r.group for r in runs}
    order = {"ours": 0, "reference": 1, "peer": 2}
    colours = plt.get_cmap("tab20").colors
    colours = colours[::2] + colours[1::2]
    styles = {}
    for place, method in enumerate(sorted(groups, key=lambda m: (order[groups[m]], m))):
        dashes, width = GROUP_STYLE[groups[method]]
        styles[method] = {
            "linestyle": dashes,
            "linewidth": width,
            "color": colours[place % len(colours)],
            "label": method,
        }
    return styles


def certificate_profiles(runs: Sequence[Run]) -> plt.Figure:
    """Calls to a certificate: data profiles above, performance profiles below."""
    levels = sorted({r.level for r in runs}, reverse=True)
    styles = _styles(runs)
    dims = {r.problem: r.dim for r in runs}
    figure, grid = plt.subplots(
        2, len(levels), figsize=(4 * len(levels), 7), squeeze=False, layout="constrained"
    )
    for column, level in enumerate(levels):
        table = _complete(_costs(runs, level))
        problems = sorted({problem for row in table.values() for problem in row})
        upper, lower = grid[0, column], grid[1, column]
        fewest = np.array(
            [min((row[p] for row in table.values()), default=math.inf) for p in problems]
        )
        for method in (m for m in styles if m in table):
            calls = np.array([table[method][p] for p in problems])
            sizes = np.array([dims[p] + 1 for p in problems])
            _steps(upper, calls / sizes, 1e5, **styles[method])
            with np.errstate(invalid="ignore"):
                ratios = np.where(np.isfinite(fewest), calls / fewest, math.inf)
            _steps(lower, ratios, 1e4, **styles[method])
        upper.set(
            title=f"eps = delta = {level:g}, {len(problems)} problems",
            xscale="log",
            ylim=(0, 1.02),
            xlim=(0.5, 2e4),
            xlabel="calls / (d + 1)",
        )
        lower.set(xscale="log", ylim=(0, 1.02), xlim=(1, 1e3), xlabel="calls / fewest calls")
        for axes in (upper, lower):
            axes.grid(alpha=0.3)
    grid[0, 0].set_ylabel("share of problems certified")
    grid[1, 0].set_ylabel("share of problems certified")
    shown = {
        text: handle for axes in grid[0] for handle, text in zip(*axes.get_legend_handles_labels())
    }
    figure.legend(shown.values(), shown, loc="outside lower center", ncols=6, frameon=False)
    return figure


def descent_profiles(runs: Sequence[Run]) -> plt.Figure:
    """Gradients and CPU time until f is within TARGET of the best, at the tightest level."""
    best = best_known(runs)
    level = min(r.level for r in runs)
    here = [r for r in runs if r.level == level and r.seed == 0 and in_class(r)]
    styles = _styles(runs)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    gradients: dict[str, dict[str, float]] = {}
    seconds: dict[str, dict[str, float]] = {}
    for run in here:
        low = best[run.problem]
        moment = run.first_below(low + TARGET * (run.start_fun - low))
        spent, used = (math.inf, math.inf) if moment is None else (moment[2] + moment[3], moment[1])
        gradients.setdefault(run.method, {})[run.problem] = max(1.0, used) / (run.dim + 1)
        seconds.setdefault(run.method, {})[run.problem] = spent
    gradients, seconds = _complete(gradients), _complete(seconds)
    problems = {problem for row in gradients.values() for problem in row}
    for method in (m for m in styles if m in gradients):
        _steps(left, np.array([*gradients[method].values()]), 1e5, **styles[method])
        _steps(right, np.array([*seconds[method].values()]), 1e3, **styles[method])
    title = f"f within {TARGET:g} of the best, {len(problems)} problems"
    left.set(xscale="log", xlim=(0.05, 1e4), ylim=(0, 1.02), xlabel="gradients / (d + 1)")
    right.set(
        xscale="log", xlim=(1e-4, 30), ylim=(0, 1.02), xlabel="CPU seconds, function included"
    )
    left.set(title=title, ylabel="share of problems")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    right.legend(fontsize=8, frameon=False, loc="upper left")
    return figure


def write(runs: Sequence[Run], out: Path) -> None:
    """Write the plots as PNG and SVG."""
    mpl.rcParams["svg.hashsalt"] = "goldstein"
    for name, draw in (("certificates", certificate_profiles), ("descent", descent_profiles)):
        figure = draw(runs)
        figure.savefig(out / f"{name}.png", dpi=110)
        figure.savefig(out / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)
