"""What the default solver has to show on the public suite, and what was measured.

Run: ``python -m benchmarks.acceptance`` on results that `benchmarks.run` left behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from benchmarks import results
from benchmarks.results import Run

OURS = "auto"
RIVAL = "pygranso"
#: The rival stopped by the tolerances of the question instead of its own.
LOOSE_RIVAL = "pygranso-loose"
SMALL = 250
TARGET = 1e-4

#: Wanted: 60 microseconds per call where the rival needs 634.
OWN_RATIO = 60 / 634

#: level -> (share of problems to certify, median calls allowed)
GOALS = {1e-2: (1.0, 200), 1e-3: (1.0, 300), 1e-4: (0.97, 400), 1e-6: (0.90, None)}

LARGE_FAMILY = (
    "maxq", "mxhilb", "chained_lq", "chained_cb3_1", "chained_cb3_2", "active_faces", "brown_2",
    "chained_mifflin_2", "chained_crescent_1", "chained_crescent_2",
)  # fmt: skip
LARGEST = ("chained_crescent_1", "chained_crescent_2", "active_faces")


def line(passed: bool | None, text: str) -> str:
    """One verdict; None means that the runs it needs are missing."""
    mark = {True: "yes", False: "NO ", None: " ? "}[passed]
    return f"[{mark}] {text}"


def in_class(run: Run) -> bool:
    """The problems the statements are about: small and bounded below."""
    return run.dim <= SMALL and run.bounded


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(math.log(r) for r in ratios) / len(ratios))


def best_known(runs: Sequence[Run]) -> dict[str, float]:
    """Lowest value of each problem over the literature and all runs."""
    best: dict[str, float] = {}
    for run in runs:
        lowest = min((m[4] for m in run.progress), default=math.inf)
        candidates = [best.get(run.problem, math.inf), run.fun, lowest]
        if run.best_value is not None:
            candidates.append(run.best_value)
        best[run.problem] = min(c for c in candidates if not math.isnan(c))
    return best


def by_problem(runs: Sequence[Run], method: str, level: float) -> dict[str, Run]:
    """The first run of a method at a level on every problem the statements are about."""
    return {
        r.problem: r
        for r in runs
        if (r.method, r.level, r.seed) == (method, level, 0) and in_class(r)
    }


def pairs(runs: Sequence[Run], level: float) -> list[tuple[Run, Run]]:
    """Our run and the rival's on the same problem."""
    ours, rival = by_problem(runs, OURS, level), by_problem(runs, RIVAL, level)
    return [(ours[name], rival[name]) for name in sorted(ours.keys() & rival.keys())]


def better_pairs(runs: Sequence[Run], level: float) -> list[tuple[Run, Run]]:
    """Our run and the rival's with those tolerances that serve it better on the problem."""
    loose = by_problem(runs, LOOSE_RIVAL, level)
    found = []
    for ours, rival in pairs(runs, level):
        other = loose.get(ours.problem, rival)
        found.append((ours, min(rival, other, key=lambda r: r.calls_with_certificate)))
    return found


def certified_shares(runs: Sequence[Run]) -> list[str]:
    lines = []
    for level, (share, calls) in GOALS.items():
        here = list(by_problem(runs, OURS, level).values())
        if not here:
            lines.append(line(None, f"certified at {level:g}: no runs"))
            continue
        good = [r for r in here if r.certified]
        missed = ", ".join(r.problem for r in here if not r.certified)
        lines.append(
            line(
                len(good) >= share * len(here),
                f"certified at {level:g}: {len(good)} of {len(here)} (wanted {share:.0%})"
                + (f"; missed: {missed}" if missed else ""),
            )
        )
        if calls is not None:
            middle = median(r.calls_with_certificate for r in here)
            lines.append(
                line(middle <= calls, f"median calls at {level:g}: {middle:g} (wanted {calls})")
            )
    return lines


def against_rival(runs: Sequence[Run]) -> list[str]:
    best = best_known(runs)
    gradients, cpu, own = [], [], []
    reached = {OURS: 0, RIVAL: 0}
    tight = pairs(runs, min(GOALS))
    for ours, rival in tight:
        value = best[ours.problem] + TARGET * (ours.start_fun - best[ours.problem])
        mine, theirs = ours.first_below(value), rival.first_below(value)
        reached[OURS] += mine is not None
        reached[RIVAL] += theirs is not None
        if mine and theirs and theirs[1] > 1:
            gradients.append(max(mine[1], 1) / theirs[1])
            cpu.append((mine[2] + mine[3]) / (theirs[2] + theirs[3]))
            own.append(max(mine[2], 1e-6) / max(theirs[2], 1e-6))
    lines = []
    if gradients:
        ratio = geometric_mean(gradients)
        lines.append(
            line(
                ratio <= 0.5,
                f"gradients to within {TARGET:g} of the best, against {RIVAL}: {ratio:.2f} "
                f"(wanted 0.5; {len(gradients)} problems where both get there; "
                f"{reached[OURS]} and {reached[RIVAL]} of {len(tight)} get there)",
            )
        )
        lines.append(
            line(
                geometric_mean(cpu) <= 0.15,
                f"CPU time to the same value, against {RIVAL}: {geometric_mean(cpu):.3f} with the "
                f"function, {geometric_mean(own):.3f} without (wanted 0.15)",
            )
        )
    else:
        lines.append(line(None, f"gradients and CPU time against {RIVAL}: no runs"))
    for title, found in (
        (f"{RIVAL} plus certify", pairs(runs, 1e-3)),
        (f"the better of {RIVAL} and {LOOSE_RIVAL} plus certify", better_pairs(runs, 1e-3)),
    ):
        lines += calls_and_time(title, found)
    return lines


def calls_and_time(title: str, found: Sequence[tuple[Run, Run]]) -> list[str]:
    """Who needs fewer calls to a certificate at 1e-3, and how much CPU time."""
    if not found:
        return [line(None, f"calls against {title} at 0.001: no runs")]
    lost = [o.problem for o, r in found if o.calls_with_certificate >= r.calls_with_certificate]
    won = len(found) - len(lost)
    certified = sum(r.certified for _, r in found)
    lines = [
        line(
            won >= 0.85 * len(found),
            f"fewer calls than {title} at 0.001: {won} of {len(found)} = {won / len(found):.0%} "
            f"(wanted 85%; it is certified on {certified})"
            + (f"; not on: {', '.join(lost)}" if lost else ""),
        )
    ]
    spent = [
        (o.own_cpu + o.oracle_cpu) / (r.own_cpu + r.oracle_cpu)
        for o, r in found
        if o.certified and r.certified
    ]
    if spent:
        ratio = geometric_mean(spent)
        lines.append(
            line(
                ratio <= 0.15,
                f"CPU time of the whole run at 0.001 (its certify is free): {ratio:.3f} "
                f"(wanted 0.15; {len(spent)} problems)",
            )
        )
    return lines


def own_time(runs: Sequence[Run]) -> list[str]:
    """Microseconds of the solver itself per call in about ten variables, ours and the rival's.

    Machines differ, so the ratio is judged.
    """
    found = [(o, r) for o, r in pairs(runs, 1e-3) if 7 <= o.dim <= 13]
    if not found:
        return [line(None, f"own time per call against {RIVAL}: no runs")]
    ours, rival = (
        median(1e6 * run.own_cpu / run.calls for run in side) for side in zip(*found, strict=True)
    )
    return [
        line(
            ours / rival <= OWN_RATIO,
            f"own time per call at 7 <= d <= 13 ({len(found)} problems, median): {ours:.0f} us, "
            f"{RIVAL} {rival:.0f} us, ratio {ours / rival:.3f} (wanted {OWN_RATIO:.3f})",
        )
    ]


def certify_alone(runs: Sequence[Run]) -> list[str]:
    lines = []
    for level in GOALS:
        good = [r for r in by_problem(runs, OURS, level).values() if r.certified]
        if not good:
            continue
        ratio = median(r.certify_gradients / (2 * r.dim + 50) for r in good)
        middle = median(r.certify_gradients for r in good)
        worked = sum(r.certify_ok for r in good)
        lines.append(
            line(
                ratio <= 1.0,
                f"certify alone at {level:g}: median {middle:g} gradients, {ratio:.2f} of 2d + 50 "
                f"(wanted 1); reached eps on {worked} of {len(good)} certified points",
            )
        )
    return lines or [line(None, "certify alone: no runs")]


def final_values(runs: Sequence[Run]) -> list[str]:
    level = min(GOALS)
    here = [r for r in runs if r.level == level and r.seed == 0 and in_class(r) and r.convex]
    ours = {r.problem: r for r in here if r.method == OURS}
    peers: dict[str, float] = {}
    for run in here:
        if run.group == "peer" and not math.isnan(run.fun):
            peers[run.problem] = min(run.fun, peers.get(run.problem, math.inf))
    shared = sorted(ours.keys() & peers.keys())
    if not shared:
        return [line(None, "final values on convex problems: no runs of peers")]
    best = best_known(runs)
    bad = []
    for name in shared:
        scale = max(ours[name].start_fun - best[name], 1e-300)
        # Written so that a NaN is bad.
        if not ours[name].fun - peers[name] <= 1e-4 * scale:
            bad.append(name)
    good = len(shared) - len(bad)
    return [
        line(
            good >= 0.8 * len(shared),
            f"final f at {level:g} not worse than the best peer by 1e-4 of the descent: {good} of "
            f"{len(shared)} convex problems (wanted 80%)"
            + (f"; worse: {', '.join(bad)}" if bad else ""),
        )
    ]


def large(runs: Sequence[Run]) -> list[str]:
    lines = []
    here = {
        (r.problem, r.dim): r
        for r in runs
        if r.method == OURS and r.level == 1e-2 and r.seed == 0 and r.dim > SMALL
    }
    for dim, names, limit in ((1000, LARGE_FAMILY, math.inf), (10_000, LARGEST, 60.0)):
        for name in names:
            run = here.get((f"{name}-{dim}", dim))
            if run is None:
                lines.append(line(None, f"{name} at d = {dim}: no run"))
                continue
            lines.append(
                line(
                    run.certified and run.wall < limit,
                    f"{name} at d = {dim}, level 0.01: "
                    f"{'certified' if run.certified else 'not certified'}, {run.calls} calls, "
                    f"{run.wall:.1f} s, eps {run.certified_eps:.2g}",
                )
            )
    return lines


def spread(runs: Sequence[Run]) -> list[str]:
    lines = []
    for level in GOALS:
        groups: dict[str, list[Run]] = {}
        for run in runs:
            if run.method == OURS and run.level == level and in_class(run):
                groups.setdefault(run.problem, []).append(run)
        several = {name: group for name, group in groups.items() if len(group) > 1}
        if not several:
            continue
        seeds = max(len(group) for group in several.values())
        shares = [np.mean([r.certified for r in group]) for group in several.values()]
        mixed = [n for n, g in several.items() if len({r.certified for r in g}) > 1]
        ratios = [
            max(r.calls for r in group) / min(r.calls for r in group)
            for group in several.values()
            if all(r.certified for r in group)
        ]
        quartiles = np.quantile(ratios, [0.5, 0.9]) if ratios else (math.nan, math.nan)
        lines.append(
            line(
                not mixed,
                f"{seeds} seeds at {level:g}: certified {np.mean(shares):.1%}; most calls over "
                f"fewest per problem: median {quartiles[0]:.2f}, 90% of problems below "
                f"{quartiles[1]:.2f}"
                + (f"; depends on the seed: {', '.join(mixed)}" if mixed else ""),
            )
        )
    return lines or [line(None, "spread over seeds: one seed only")]


SECTIONS: tuple[tuple[str, Callable[[Sequence[Run]], list[str]]], ...] = (
    ("Certificates", certified_shares),
    ("Against PyGRANSO", against_rival),
    ("Own time", own_time),
    ("Stand-alone certify", certify_alone),
    ("Final values", final_values),
    ("Large problems", large),
    ("Seeds", spread),
)


def report(runs: Sequence[Run]) -> str:
    """All lines, section by section."""
    parts = []
    for title, section in SECTIONS:
        parts.append("\n".join([title, *section(runs)]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(report(results.load(sorted(Path(__file__).with_name("results").glob("*.jsonl")))))
