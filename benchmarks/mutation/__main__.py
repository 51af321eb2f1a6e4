"""Weaken the checker on purpose, line by line: some test must notice.

    python -m benchmarks.mutation                        all mutants; resumes where it was stopped
    python -m benchmarks.mutation --again                those again that survived
    python -m benchmarks.mutation --only kkt.py --lines 40-80

A mutant is the checker with one thing changed (`operators`). It is put to the tests that run the
changed line, until one fails (`trial`); one that no test notices survives, and is printed.
Survivors that weaken nothing are named with their reason in `benchmarks/mutation_survivors.md`.
Every finished mutant is a line of `build/mutation/trials.jsonl`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.mutation.operators import Mutant, mutants
from benchmarks.mutation.trial import Profile, Warm, fresh, in_child

ROOT = Path(__file__).parents[2]
CHECKER = ROOT / "src" / "goldstein" / "checker"
#: What decides claims first, then their arithmetic, then the checker that stands alone.
FIRST = (
    "goldstein", "beside", "near", "kkt", "near_kkt", "constraints", "box", "fenchel", "kinked",
    "sides", "nodes", "files",
)
FILES = [
    *(CHECKER / f"{name}.py" for name in FIRST),
    *(path for path in sorted(CHECKER.glob("*.py")) if path.stem not in FIRST),
    ROOT / "src" / "goldstein_check.py",
]
KEPT = ROOT / "build" / "mutation"
REASONS = ROOT / "benchmarks" / "mutation_survivors.md"

#: Tests that ask the checker something, and end within a minute altogether.
TESTS = (
    "src/goldstein/checker", "tests/checker", "tests/certificates", "tests/constrained",
    "tests/numerics/test_exact.py", "tests/numerics/test_exact_point.py",
    "tests/numerics/test_exact_vector.py", "tests/numerics/test_rounding.py",
    "tests/numerics/test_directed_and_spectral.py", "tests/prox",
    "tests/reliability/test_checker_attacked.py", "tests/calculus",
)  # fmt: skip

#: Those written for the checker tell most.
OWN = "tests/checker"

#: CPU seconds of one test, under observation; a slower one is left out.
SLOW = 4.0

#: What the log says of a mutant that was not tried.
NOT_YET = {"way": "warm", "by": ""}


class Telling:
    """Which tests to run for a mutant, and in which order: the quick ones that often notice."""

    def __init__(self, profiles: dict[str, Profile]) -> None:
        self.profiles = profiles
        self.seconds = {name: found.seconds for name, found in profiles.items()}
        self.noticed: Counter[tuple[str, str]] = Counter()

    def tests(self, mutant: Mutant, budget: float) -> list[str]:
        """Return the tests that run the changed statement, as many as the budget has room for."""
        file = mutant.path.name
        first, last = mutant.lines if mutant.function else (0, 10**9)

        def cost(name: str) -> float:
            often = 20 * self.noticed[name, file + mutant.function] + self.noticed[name, file]
            own = 0.1 if name.startswith(OWN) else 1.0
            return own * (0.02 + self.seconds[name]) / (1 + often)

        running = [
            name
            for name, profile in self.profiles.items()
            if any(first <= line <= last for line in profile.lines.get(file, []))
        ]
        chosen, total = [], 0.0
        for name in sorted(running, key=cost):
            total += self.seconds[name]
            if total > budget and chosen:
                break
            chosen.append(name)
        return chosen

    def notice(self, mutant: Mutant, name: str) -> None:
        for place in {mutant.path.name, mutant.path.name + mutant.function}:
            self.noticed[name.removesuffix(" does not end"), place] += 1


def profiles(warm: Warm) -> dict[str, Profile]:
    """Return what the tests run, as recorded before where nothing of it has changed."""
    kept = KEPT / "profiles.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    stamps = {path.name: _hash(path) for path in FILES}
    for number, name in enumerate(warm.items):
        before, test = known.get(name), _hash(ROOT / name.partition("::")[0])
        if before and before["test"] == test:
            if all(stamps.get(file) == stamp for file, stamp in before["files"].items()):
                continue
        found = warm.profile(name, {str(path) for path in FILES}, 2 * SLOW)
        found = found or Profile(math.inf, {})
        known[name] = {"test": test, "files": {file: stamps[file] for file in found.lines}}
        known[name] |= vars(found)
        if number % 100 == 99:
            _write(kept, known)
    _write(kept, known)
    return {
        name: Profile(known[name]["seconds"], known[name]["lines"])
        for name in warm.items
        if known[name]["seconds"] <= SLOW and known[name]["lines"]
    }


def _write(path: Path, what: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(what))


def _hash(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def explained() -> set[tuple[str, str, str]]:
    """Return the survivors that are listed with a reason: file, function, change."""
    listed = re.compile(r"- `([^`]+)` `([^`]*)`: `(.*)`")
    lines = REASONS.read_text().splitlines() if REASONS.exists() else []
    found = (listed.fullmatch(line) for line in lines)
    return {(match[1], match[2], match[3]) for match in found if match}


class Log:
    """What became of every mutant, one line each; the last line about a mutant counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stamps = {path: _hash(path) for path in FILES}

    def read(self) -> dict[str, dict[str, Any]]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found = {(line["key"], line["stamp"]): line for line in map(json.loads, lines)}
        return {key: line for (key, stamp), line in found.items() if stamp in self.stamps.values()}

    def add(self, mutant: Mutant, way: str, by: str, seconds: float, tests: int) -> None:
        line = {
            "key": mutant.key, "stamp": self.stamps[mutant.path], "way": way, "by": by,
            "seconds": round(seconds, 3), "tests": tests, "name": mutant.name,
        }  # fmt: skip
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def run(chosen: list[Mutant], log: Log, budget: float, stop: float, quick: bool) -> None:
    """Try mutants: those of functions warm, what takes effect on import, and survivors, fresh."""
    handed = KEPT / "handed.json"

    def work(warm: Warm) -> None:
        telling = Telling(profiles(warm))
        for mutant in chosen:
            if time.time() > stop:
                break
            tests = telling.tests(mutant, budget)
            if mutant.function and tests:
                _try(mutant, "warm", tests, telling, log, warm.trial)
            elif not tests:
                log.add(mutant, "untested", "", 0.0, 0)
        # What is to be tried afresh, with its tests, is for the process that has imported nothing.
        found = log.read()
        after = [
            (mutant.key, telling.tests(mutant, budget))
            for mutant in chosen
            if found.get(mutant.key, NOT_YET)["way"] == "warm"
            and not found.get(mutant.key, NOT_YET)["by"]
        ]
        _write(handed, {"seconds": telling.seconds, "tests": [pair for pair in after if pair[1]]})

    said = in_child(lambda say: Warm(TESTS, work) and None, 1e6)
    if said:
        raise SystemExit(f"the tests could not be run: {said}")
    if quick:
        return
    handed_over = json.loads(handed.read_text())
    telling = Telling({})
    telling.seconds = handed_over["seconds"]
    by_key = {m.key: m for m in chosen}
    for key, tests in handed_over["tests"]:
        if time.time() > stop:
            break
        _try(by_key[key], "fresh", tests, telling, log, fresh)


def _try(
    mutant: Mutant,
    way: str,
    tests: list[str],
    telling: Telling,
    log: Log,
    trial: Callable[..., str],
) -> None:
    begin = time.perf_counter()
    limit = 120.0 + 20 * sum(telling.seconds[name] for name in tests)
    by = trial(mutant, tests, telling.seconds, limit)
    if by:
        telling.notice(mutant, by)
    log.add(mutant, way, by, time.perf_counter() - begin, len(tests))


def _wanted(asked: argparse.Namespace) -> Iterator[Mutant]:
    first, _, last = (asked.lines or "1-999999").partition("-")
    for path in FILES:
        if asked.only is None or path.name in asked.only:
            for mutant in mutants(path):
                if int(first) <= mutant.line <= int(last or first):
                    yield mutant


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=None, help="so many, drawn at random")
    parser.add_argument("--only", nargs="*", default=None, help="files of the checker")
    parser.add_argument("--lines", default=None, help="of that file, as in 10-20")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6, help="at most, all in all")
    parser.add_argument("--budget", type=float, default=15.0, help="CPU seconds of tests a mutant")
    parser.add_argument("--quick", action="store_true", help="not what needs a fresh process")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    asked = parser.parse_args(arguments)
    chosen = list(_wanted(asked))
    if asked.sample is not None and asked.sample < len(chosen):
        chosen = random.Random(asked.seed).sample(chosen, asked.sample)
    log = Log(KEPT / "trials.jsonl")
    before = log.read()
    todo = [m for m in chosen if m.key not in before or (asked.again and not before[m.key]["by"])]
    begin = time.perf_counter()
    run(todo, log, asked.budget, time.time() + 60 * asked.minutes, asked.quick)
    found, reasons = log.read(), explained()
    tried = [mutant for mutant in chosen if mutant.key in found]
    lived = [mutant for mutant in tried if not found[mutant.key]["by"]]
    open_ones = [m for m in lived if (m.path.name, m.function, m.what) not in reasons]
    for mutant in open_ones:
        tests = found[mutant.key]["tests"]
        print(f"SURVIVES {tests} tests, unexplained: {mutant.name}")
    print(
        f"{len(tried)} of {len(chosen)} mutants tried: {len(tried) - len(lived)} killed, "
        f"{len(lived)} survive, {len(open_ones)} of them without a reason in {REASONS.name}; "
        f"{time.perf_counter() - begin:.0f} s"
    )
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main())
