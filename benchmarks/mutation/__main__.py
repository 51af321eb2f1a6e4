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
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutation.log import REASONS, Log, explained
from benchmarks.mutation.operators import FILES, ROOT, Mutant, label, mutants
from benchmarks.mutation.telling import TESTS, Telling, profiles
from benchmarks.mutation.trial import Warm, fresh, in_child

#: What the log says of a mutant that was not tried.
NOT_YET = {"way": "warm", "by": ""}


@dataclass
class Session:
    """Mutants put to tests, and where it is written down."""

    folder: Path
    tests: Sequence[str]
    budget: float
    stop: float

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = Log(self.folder / "trials.jsonl")

    def warm(self, chosen: list[Mutant]) -> None:
        """Try mutants of functions, and hand over what is to be tried afresh."""

        def work(warm: Warm) -> None:
            telling = Telling(profiles(warm, self.folder / "profiles.json"))
            for mutant in chosen:
                if time.time() > self.stop:
                    break
                tests = telling.tests(mutant, self.budget)
                if mutant.function and tests:
                    self._try(mutant, "warm", tests, telling, warm.trial)
                elif not tests:
                    self.log.add(mutant, "untested", "", 0.0, 0)
            found = self.log.read()
            left = [m for m in chosen if _is_open(found.get(m.key, NOT_YET))]
            pairs = [(m.key, telling.tests(m, self.budget)) for m in left]
            handed = {"seconds": telling.seconds, "tests": [pair for pair in pairs if pair[1]]}
            self._handed.write_text(json.dumps(handed))

        # This process itself imports nothing of the library.
        said = in_child(lambda say: Warm(self.tests, work) and None, 1e6)
        if said:
            raise SystemExit(f"the tests could not be run: {said}")

    def fresh(self, chosen: list[Mutant]) -> None:
        """Try what takes effect on import, and what survived."""
        handed = json.loads(self._handed.read_text())
        telling, by_key = Telling({}), {mutant.key: mutant for mutant in chosen}
        telling.seconds = handed["seconds"]
        for key, tests in handed["tests"]:
            if time.time() > self.stop:
                break
            self._try(by_key[key], "fresh", tests, telling, fresh)

    @property
    def _handed(self) -> Path:
        return self.folder / "handed.json"

    def _try(
        self,
        mutant: Mutant,
        way: str,
        tests: list[str],
        telling: Telling,
        trial: Callable[..., str],
    ) -> None:
        begin = time.perf_counter()
        limit = 120.0 + 20 * sum(telling.seconds[name] for name in tests)
        by = trial(mutant, tests, telling.seconds, limit)
        if by:
            telling.notice(mutant, by)
        self.log.add(mutant, way, by, time.perf_counter() - begin, len(tests))


def _is_open(line: dict[str, str]) -> bool:
    return line["way"] != "untested" and not line["by"]


def _wanted(asked: argparse.Namespace) -> Iterator[Mutant]:
    first, _, last = (asked.lines or "1-999999").partition("-")
    for path in FILES:
        if asked.only is None or label(path) in asked.only:
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
    parser.add_argument("--budget", type=float, default=10.0, help="CPU seconds of tests a mutant")
    parser.add_argument("--quick", action="store_true", help="not what needs a fresh process")
    parser.add_argument("--again", action="store_true", help="unexplained survivors, too")
    parser.add_argument("--tests", nargs="*", default=TESTS)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutation")
    asked = parser.parse_args(arguments)
    chosen, reasons = list(_wanted(asked)), explained()
    if asked.sample is not None and asked.sample < len(chosen):
        chosen = random.Random(asked.seed).sample(chosen, asked.sample)
    begin = time.perf_counter()
    session = Session(asked.folder, asked.tests, asked.budget, time.time() + 60 * asked.minutes)
    before = session.log.read()
    survived = {key for key, line in before.items() if not line["by"]}
    todo = [
        m
        for m in chosen
        if m.key not in before or (asked.again and m.key in survived and m.place not in reasons)
    ]
    todo.sort(key=lambda mutant: mutant.key in before)  # new ones first
    session.warm(todo)
    if not asked.quick:
        session.fresh(todo)
    found = session.log.read()
    tried = [mutant for mutant in chosen if mutant.key in found]
    lived = [mutant for mutant in tried if not found[mutant.key]["by"]]
    unexplained = [mutant for mutant in lived if mutant.place not in reasons]
    for mutant in unexplained:
        print(f"SURVIVES {found[mutant.key]['tests']} tests, unexplained: {mutant.name}")
    print(
        f"{len(tried)} of {len(chosen)} mutants tried: {len(tried) - len(lived)} killed, "
        f"{len(lived)} survive, {len(unexplained)} of them without a reason in {REASONS.name}; "
        f"{time.perf_counter() - begin:.0f} s"
    )
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
