"""Which branches of the checker the adversaries reach, by room; coverage.py must be installed.

python -m benchmarks.adversary.branches --n 5000 --seed 0
python -m benchmarks.adversary.branches --attack minimum-forgeries --n 200 --missing
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import coverage
from benchmarks.adversary.suite import FAULTS, run

CHECKER = Path(__file__).parents[2] / "src" / "goldstein" / "checker"

#: Every room must be reached by so much.
LEAST = 95.0


def measured(n: int, seed: int, names: list[str]) -> tuple[dict[Path, Any], int]:
    """Run instances in this process; return what coverage.py says by files, and the faults."""
    watcher = coverage.Coverage(branch=True, source=[str(CHECKER)], data_file=None)
    watcher.start()
    tallies = run(n, seed, names)
    watcher.stop()
    for tally in tallies.values():
        print(tally.line, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "coverage.json")
        watcher.json_report(outfile=path)
        files = json.loads(Path(path).read_text())["files"]
    found = {Path(name).resolve().relative_to(CHECKER): part for name, part in files.items()}
    return found, sum(tally.faults[word] for tally in tallies.values() for word in FAULTS)


def percent(parts: list[Any], kind: str) -> float:
    """Return the share of statements or branches that were reached."""
    of, name = {"lines": ("num_statements", "covered_lines")}.get(
        kind, ("num_branches", "covered_branches")
    )
    total = sum(part["summary"][of] for part in parts)
    return 100.0 * sum(part["summary"][name] for part in parts) / total if total else 100.0


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--attack", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--missing", action="store_true", help="name what was not reached")
    asked = parser.parse_args(given)
    files, faults = measured(asked.n, asked.seed, asked.attack)
    rooms: dict[str, list[Any]] = defaultdict(list)
    for name, part in sorted(files.items()):
        rooms[name.parts[0] if len(name.parts) > 1 else "checker"].append(part)
        if asked.missing and part["missing_branches"]:
            pairs = ", ".join(f"{a}->{b}" for a, b in part["missing_branches"])
            print(f"{name}: {percent([part], 'branches'):.1f} %: {pairs}")
    print("| room | branches | reached | statements reached |\n|---|---|---|---|")
    for room, parts in rooms.items():
        count = sum(part["summary"]["num_branches"] for part in parts)
        shares = (f"{percent(parts, kind):.1f} %" for kind in ("branches", "lines"))
        print(f"| `{room}` | {count} | {' | '.join(shares)} |")
    least = min(percent(parts, "branches") for parts in rooms.values())
    return 1 if faults or least < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
