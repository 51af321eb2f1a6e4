"""A process that makes recorded runs: it says which there are, then makes those named to it.

It is started by `python -m benchmarks.recorded`, with the sources that are to be recorded.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import Any

from benchmarks.recorded import ecosystems, families  # noqa: F401  (they register their families)
from benchmarks.recorded.families import FAMILIES
from benchmarks.recorded.fields import of_error


def all_tasks(only: list[str], seeds: int) -> dict[str, Any]:
    """Return functions by name; all families with the first seed come before the second."""
    unknown = sorted(set(only) - set(FAMILIES))
    if unknown:
        sys.exit(f"no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}.")
    chosen = {name: FAMILIES[name] for name in only or FAMILIES}
    made = {name: list(tasks()) for name, (tasks, _) in chosen.items()}
    return {
        f"{name}/{task}/{seed}": (run, seed)
        for seed in range(seeds)
        for name, (_, most) in chosen.items()
        if seed < most
        for task, run in made[name]
    }


def main() -> None:
    # What a library prints must not get into the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    only, seeds = sys.argv[1].split(",") if sys.argv[1] else [], int(sys.argv[2])
    tasks = all_tasks(only, seeds)
    print(json.dumps(list(tasks)), file=answers, flush=True)
    for line in sys.stdin:
        name = line.rstrip("\n")
        run, seed = tasks[name]
        begin = time.process_time()
        try:
            found = run(seed)
        except Exception as error:  # whatever it is, it is what a user would see
            found = {"raised": True, **of_error(error)}
        row = {"task": name, "cpu": round(time.process_time() - begin, 4), "found": found}
        print(json.dumps(row), file=answers, flush=True)


if __name__ == "__main__":
    main()
