"""Tables and the figure of the studies, from the result files.

    python -m benchmarks.studies.report

Rewrites the parts of docs/estimator_studies.md between the markers, and its figure.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.studies.condense import read
from benchmarks.studies.defaults import GROUPS, LEVELS
from benchmarks.studies.pima_ramp import PUBLISHED

PAGE = Path(__file__).parents[2] / "docs" / "estimator_studies.md"
FIGURE = PAGE.parent / "images" / "estimators_robust.png"
PEER = "LinearSVC(hinge)"
OURS = "RhoMarginSVC"
KERNEL = "Nystroem + RhoMarginSVC"
TITLES = {
    "feature_outliers": "gross feature outliers",
    "one_sided_flips": "one-sided flips",
    "symmetric_flips": "symmetric flips",
}


def markdown(header: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def pima_table() -> str:
    frame = read("pima_ramp")
    rows = []
    for level, (hinge, ramp) in PUBLISHED.items():
        part = frame[frame.level == level]
        gap = abs(part.ramp.mean() - ramp)
        rows.append(
            [f"{level:.2f}", f"{hinge:.3f}", f"{part.hinge.mean():.3f} ± {part.hinge.std():.3f}",
             f"{ramp:.3f}", f"{part.ramp.mean():.3f} ± {part.ramp.std():.3f}",
             f"{gap / part.ramp.std():.2f}", len(part)]
        )  # fmt: skip
    header = ["share of outliers", "hinge, published", "hinge, LinearSVC", "ramp, published",
              "ramp, RhoMarginSVC", "difference / std", "trials"]  # fmt: skip
    return markdown(header, rows)


def robust_runs() -> pd.DataFrame:
    """The repeats that both linear machines finished on every set at every level."""
    frame = read("robust_classification")
    pairs = frame[frame.method.isin([OURS, PEER])].groupby("seed").size()
    return frame[frame.seed.isin(pairs.index[pairs == pairs.max()])]


def verdict(gap: float, error: float) -> str:
    return "better" if gap > error else "worse" if -gap > error else "tie"


def level_table() -> str:
    """Per kind and level: the mean over the sets, and on how many sets we win, tie and lose."""
    frame = robust_runs()
    table = frame.pivot_table(
        index=["kind", "level", "set", "seed"], columns="method", values=["accuracy", "balanced"]
    )
    rows = []
    for (kind, level), part in table.groupby(["kind", "level"]):
        gap = part["accuracy"][OURS] - part["accuracy"][PEER]
        fair = part["balanced"][OURS] - part["balanced"][PEER]
        sets = gap.groupby("set")
        errors = sets.std() / np.sqrt(sets.count())
        found = [verdict(g, e) for g, e in zip(sets.mean(), errors)]
        means, fair_means = sets.mean(), fair.groupby("set").mean()
        rows.append(
            [f"{TITLES[kind]} {level:.0%}" if level else "none",
             f"{100 * means.mean():+.2f} ± {100 * means.std() / np.sqrt(len(means)):.2f}",
             f"{100 * fair_means.mean():+.2f} "
             f"± {100 * fair_means.std() / np.sqrt(len(fair_means)):.2f}",
             *(found.count(word) for word in ("better", "tie", "worse")),
             f"{int((gap > 0).sum())} / {int((gap == 0).sum())} / {int((gap < 0).sum())}"]
        )  # fmt: skip
    header = ["corruption", "accuracy, points", "balanced accuracy, points", "sets better",
              "sets tied", "sets worse", "runs won / equal / lost"]  # fmt: skip
    return markdown(header, rows)


def differences(frame: pd.DataFrame, *kinds: str) -> pd.DataFrame:
    """Per set: mean and standard error of the paired difference of accuracies, levels above 0."""
    part = frame[frame.kind.isin(kinds) & (frame.level > 0)]
    table = part.pivot_table(
        index=["set", "kind", "level", "seed"], columns="method", values="accuracy"
    ).dropna(subset=[OURS, PEER])
    gap = (table[OURS] - table[PEER]).groupby("set")
    means = table[[OURS, PEER]].groupby("set").mean()
    return means.assign(gap=gap.mean(), error=gap.std() / np.sqrt(gap.count()), runs=gap.count())


def robust_tables() -> str:
    frame = robust_runs()
    text = []
    groups = {title: (kind,) for kind, title in TITLES.items()}
    groups["feature outliers and one-sided flips together"] = tuple(TITLES)[:2]
    for title, kinds in groups.items():
        table = differences(frame, *kinds)
        rows = []
        for name, r in table.iterrows():
            rows.append(
                [name, f"{r[OURS]:.3f}", f"{r[PEER]:.3f}", f"{r.gap:+.4f} ± {r.error:.4f}",
                 verdict(r.gap, r.error), int(r.runs)]
            )  # fmt: skip
        better = sum(row[4] == "better" for row in rows)
        worse = sum(row[4] == "worse" for row in rows)
        least = int((table.gap >= 0).sum())
        text.append(f"**{title.capitalize()}**\n")
        text.append(
            markdown(["set", OURS, PEER, "difference ± standard error", "verdict", "runs"], rows)
        )
        text.append(
            f"\nMean at least the hinge's on {least} of {len(rows)} sets; better by more than one "
            f"standard error on {better}, worse on {worse}.\n"
        )
    return "\n".join(text)


def method_table() -> str:
    """All methods but the kernel one, on the runs that each of them finished."""
    frame = robust_runs()
    return accuracy_table(frame[frame.method != KERNEL], "SVC(rbf)")


def kernel_table() -> str:
    """All methods on the runs that the kernel one finished."""
    return accuracy_table(read("robust_classification"), KERNEL)


def accuracy_table(frame: pd.DataFrame, rarest: str) -> str:
    keys = ["set", "kind", "level", "seed"]
    frame = frame.merge(frame[frame.method == rarest][keys], on=keys)
    table = frame.pivot_table(index="method", columns=["kind", "level"], values="accuracy")
    header = ["method", *(f"{TITLES[k]} {level:.0%}" if level else "clean" for k, level in table)]
    rows = [[m, *("" if np.isnan(a) else f"{a:.3f}" for a in r)] for m, r in table.iterrows()]
    return markdown(header, rows)


def proof_table() -> str:
    rows = []
    for name, study in (("pima_ramp", "pima"), ("robust_classification", "robust classification"),
                        ("networks", "networks")):  # fmt: skip
        frame = read(name)
        if "label" not in frame:
            continue
        part = frame[frame.label.notna()]
        groups = part.groupby("method") if "method" in part else [(OURS, part)]
        for method, group in groups:
            rows.append(
                [study, method, len(group), f"{group.verified.astype(float).mean():.1%}",
                 f"{(group.label == 'certified').mean():.1%}", f"{group.eps.max():.2g}"]
            )  # fmt: skip
    header = ["study", "estimator", "fits", "verified", "certified near", "largest eps"]
    return markdown(header, rows)


def network_table() -> str:
    frame = read("networks")
    if frame.empty:
        return "(not run)"
    table = frame.pivot_table(index=["set", "seed"], columns="method", values="score").dropna()
    gap = (table.ReLUNet - table.MLP).groupby("set")
    means = table.groupby("set").mean()
    rows = []
    for name, r in means.iterrows():
        error = gap.std()[name] / np.sqrt(gap.count()[name])
        d = gap.mean()[name]
        rows.append(
            [name, f"{r.ReLUNet:.3f}", f"{r.MLP:.3f}", f"{d:+.4f} ± {error:.4f}",
             verdict(d, error), int(gap.count()[name])]
        )  # fmt: skip
    return markdown(
        ["set", "ReLUNet", "MLP", "difference ± standard error", "verdict", "runs"], rows
    )


def speed_table() -> str:
    frame = read("estimators").drop_duplicates(
        subset=["data", "rows", "features", "machine"], keep="last"
    )
    order = {"dense": 0, "text": 1, "genes": 2}
    frame = frame.assign(place=frame.data.map(order)).sort_values(["place", "rows"], kind="stable")
    rows = [
        [r.data, f"{r.rows:,} x {r.features:,}", r.machine, f"{r.fit:.2f}", f"{r.ratio:.2f}",
         "" if r.machine == "LinearSVC" else f"{r.verify:.2f}", f"{r.memory:.1f}",
         "" if r.machine == "LinearSVC" else f"{r.label}, {r.eps:.1e}",
         f"{r.train:.3f}", f"{r.test:.3f}"]
        for r in frame.itertuples()
    ]  # fmt: skip
    header = ["data", "size", "machine", "fit, s", "ratio", "verify, s", "memory / X",
              "proved, eps", "training", "test"]  # fmt: skip
    return markdown(header, rows)


def default_gaps(names: tuple[str, ...]) -> pd.DataFrame:
    """Accuracy minus that of LinearSVC in percentage points: a row per run, a column per method."""
    frame = read("defaults")
    table = frame[frame.set.isin(names)].pivot_table(
        index=["set", "level", "seed"], columns="method", values="accuracy"
    )
    return 100.0 * table.sub(table["LinearSVC"], axis=0)


def with_error(gap: pd.Series) -> str:
    gap = gap.dropna()
    return f"{gap.mean():+.2f} ± {gap.std() / np.sqrt(len(gap)):.2f}"


def default_table(*groups: str) -> str:
    """Per method and share of wrong labels: mean over sets and repeats."""
    rows = []
    for group in groups:
        gaps = default_gaps(GROUPS[group])
        order = ["RhoMarginSVC", "LogisticRegression", "LinearSVC(loss='hinge')"]
        order += sorted(set(gaps.columns).difference([*order, "LinearSVC"]))
        for method in order:
            runs = gaps[method].dropna()
            by_level = runs.groupby("level")
            title = [group.split(",")[0], method] if len(groups) > 1 else [method]
            rows.append([*title, *(with_error(by_level.get_group(x)) for x in LEVELS), len(runs)])
    head = ["sets", "method"] if len(groups) > 1 else ["method"]
    return markdown([*head, *(f"{x:.0%} wrong" if x else "clean" for x in LEVELS), "runs"], rows)


def default_set_table() -> str:
    rows = []
    for names in GROUPS.values():
        gaps = default_gaps(names)["RhoMarginSVC"].dropna()
        for name in names:
            if name in gaps.index.get_level_values("set"):
                levels = gaps.xs(name, level="set").groupby("level")
                rows.append([name, *(with_error(levels.get_group(x)) for x in LEVELS)])
    return markdown(["set", *(f"{x:.0%} wrong" if x else "clean" for x in LEVELS)], rows)


def figure(path: Path) -> None:
    import matplotlib.pyplot as plt

    frame = robust_runs()
    sets = sorted(frame.set.unique())
    axes_figure, axes = plt.subplots(
        1, 3, figsize=(11, 4), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (kind, title) in zip(axes, TITLES.items()):
        table = differences(frame, kind).reindex(sets)
        place = np.arange(len(sets))
        axis.axvline(0, color="0.6", linewidth=1)
        axis.errorbar(
            100 * table.gap, place, xerr=100 * table.error, fmt="o", color="#0072b2", capsize=3
        )
        axis.set_title(title)
        axis.set_xlabel("accuracy, RhoMarginSVC minus hinge\n(percentage points, ± standard error)")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(np.arange(len(sets)), sets)
    axes_figure.savefig(path, dpi=110)
    plt.close(axes_figure)


def tables() -> dict[str, str]:
    """Return every table of the page, by the name of its markers."""
    return {
        "pima": pima_table(), "levels": level_table(), "robust": robust_tables(),
        "kernel": kernel_table(), "methods": method_table(),
        "proofs": proof_table(), "networks": network_table(), "speed": speed_table(),
        "defaults two": default_table("two classes, choice"),
        "defaults more": default_table("more classes, choice"),
        "defaults confirmed": default_table(
            "two classes, confirmation", "more classes, confirmation"
        ),
        "defaults sets": default_set_table(),
    }  # fmt: skip


def main() -> None:
    page = PAGE.read_text()
    for name, text in tables().items():
        block = f"<!-- {name} -->\n{text}\n<!-- end {name} -->"
        page = re.sub(
            rf"<!-- {name} -->.*?<!-- end {name} -->", lambda _, b=block: b, page, flags=re.DOTALL
        )
    PAGE.write_text(page)
    figure(FIGURE)


if __name__ == "__main__":
    main()
