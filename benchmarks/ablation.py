"""What a constant of `auto` is worth: the search without it, on problems no constant was chosen on.

    python -m benchmarks.ablation run FILE "crawl=0" "steep=inf"  # and the search as it is
    python -m benchmarks.ablation report FILE

Problems: the second half of the suite (`benchmarks.halves`), as it is and turned at random, and
members of its families with more variables. A setting is a list of constants of
`goldstein.solvers.tuning` and their values; finished runs are never repeated. The table says by how
much calls change in the geometric mean, and the largest factor either way: a mechanism stays where
that is 1 % or more, or where one of the sets changes by more, or a problem by a factor of 2 for the
worse. A run without a certificate counts as twice the limit.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import pkgutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.halves import half_of

import goldstein as gs
import goldstein.solvers
from goldstein.solvers.auto import AutoState
from goldstein.solvers.quasi_newton import QuasiNewton
from goldstein.solvers.tuning import TUNING

SEED, LIMIT = 20261, 10_000

#: Members with more variables, by name.
LARGE = {
    "maxq": (200, 1000), "chained_lq": (150, 1000), "active_faces": (150, 1000),
    "chained_crescent_1": (150, 1000), "test29_24": (150, 1000), "goffin": (100,),
}  # fmt: skip


def runs() -> Iterator[tuple[str, Any, float, int]]:
    """Name, problem, level and seed of every run."""
    half = [p for p in gs.problems.suite() if half_of(p.name) and p.bounded and p.dim <= 200]
    for p in half:
        for level, seed in ((1e-2, 0), (1e-3, 0), (1e-3, 1), (1e-6, 0)):
            yield f"plain {p.name} {level:g} {seed}", p, level, seed
    for p in half:
        if p.locally_lipschitz and p.dim <= 60:
            turned = gs.problems.rotated(p, SEED)
            for level in (1e-3, 1e-5):
                yield f"turned {p.name} {level:g} 0", turned, level, SEED
    for name, dims in LARGE.items():
        for dim in dims:
            yield f"large {name}-{dim} 0.01 0", gs.problems.get(name, d=dim), 1e-2, 0


def use(setting: str) -> None:
    """Let all searches of this process have these constants."""
    tuned = TUNING._replace(**eval(f"dict({setting})", {"inf": math.inf}))
    package = goldstein.solvers
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if ".compiled" not in found.name:
            module = importlib.import_module(found.name)
            if hasattr(module, "TUNING"):
                module.TUNING = tuned  # type: ignore[attr-defined]
    # Defaults are those of the time when the class was made.
    for made in (AutoState, QuasiNewton):
        defaults = made.__init__.__kwdefaults__
        defaults.update({name: getattr(tuned, name) for name in tuned._fields if name in defaults})


def run(path: Path, settings: list[str], only: str) -> None:
    warnings.simplefilter("ignore")
    done = {(row["setting"], row["run"]) for row in _rows(path)}
    for setting in settings:
        use(setting)
        for name, problem, level, seed in runs():
            if (setting, name) in done or only not in name:
                continue
            res = gs.minimize(
                problem, problem.x0, eps=level, delta=level, rng=seed, max_calls=LIMIT
            )
            calls = res.nfev + res.ngev if res.success else 2 * LIMIT
            row = {"setting": setting, "run": name, "calls": calls, "fun": float(res.fun)}
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def report(path: Path) -> None:
    found: dict[str, dict[str, Any]] = {}
    for row in _rows(path):
        found.setdefault(row["setting"], {})[row["run"]] = row
    base = found.pop("")
    print("| without | runs | certified | mean | plain, turned, large | worst | best | f higher |")
    print("|---|---|---|---|---|---|---|---|")
    for setting, rows in found.items():
        logs = {
            name: math.log(row["calls"] / base[name]["calls"])
            for name, row in rows.items()
            if name in base
        }
        parts = " ".join(
            f"{_mean([v for name, v in logs.items() if name.startswith(part)]):.3f}"
            for part in ("plain", "turned", "large")
        )
        problems: dict[str, list[float]] = {}
        for name, log in logs.items():
            problems.setdefault(name.split()[1], []).append(log)
        means = {name: sum(found) / len(found) for name, found in problems.items()}
        worst, best = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
        higher = sum(
            row["fun"] > base[n]["fun"] + 1e-3 * max(1.0, abs(base[n]["fun"]))
            for n, row in rows.items()
        )
        solved = sum(row["calls"] < 2 * LIMIT for row in rows.values())
        was = sum(base[name]["calls"] < 2 * LIMIT for name in logs)
        extremes = " | ".join(f"{math.exp(means[name]):.2f} {name}" for name in (worst, best))
        print(
            f"| {setting} | {len(logs)} | {solved} ({was}) | {_mean(list(logs.values())):.3f} | "
            f"{parts} | {extremes} | {higher} |"
        )


def _mean(logs: list[float]) -> float:
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("file", type=Path)
    parser.add_argument("settings", nargs="*")
    parser.add_argument("--only", default="", help="runs whose name has this in it")
    asked = parser.parse_args()
    if asked.command == "run":
        run(asked.file, ["", *asked.settings], asked.only)
    else:
        report(asked.file)


if __name__ == "__main__":
    main()
