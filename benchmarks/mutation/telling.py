"""Which tests can notice a mutant: those that run its line, the quick and telling ones first."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from pathlib import Path

from benchmarks.mutation.operators import FILES, ROOT, Mutant, label
from benchmarks.mutation.trial import Profile, Warm

#: Tests that ask the checker something, and end within a minute altogether.
TESTS = (
    "src/goldstein/checker", "tests/checker", "tests/certificates", "tests/constrained",
    "tests/numerics/test_exact.py", "tests/numerics/test_exact_point.py",
    "tests/numerics/test_float_dot.py", "tests/numerics/test_rounding.py",
    "tests/numerics/test_directed_and_spectral.py", "tests/prox",
    "tests/reliability/test_checker_attacked.py", "tests/calculus",
)  # fmt: skip

#: The tests written for a file tell most.
OWN = {
    "goldstein.py": "goldstein_claims", "beside.py": "beside", "near.py": "near_claims",
    "kkt.py": "kkt_claims", "near_kkt.py": "near_kkt_claims", "constraints.py": "limits",
    "box.py": "limits", "fenchel.py": "fenchel_gaps", "kinked.py": "nodes", "nodes.py": "nodes",
    "sides.py": "sides", "files.py": "files", "enclosures.py": "enclosures_contain",
    "float_dot.py": "numbers", "rationals.py": "numbers",
    "rounding.py": "numbers", "verification.py": "numbers", "goldstein_check.py": "alone",
}  # fmt: skip

#: CPU seconds of one test, under observation; a slower one is left out.
SLOW = 4.0


def stamp(path: Path) -> str:
    """Return a mark that changes with the content of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


class Telling:
    """Which tests to run for a mutant, and in which order: the quick ones that often notice."""

    def __init__(self, profiles: dict[str, Profile]) -> None:
        self.profiles = profiles
        self.seconds = {name: found.seconds for name, found in profiles.items()}
        self.noticed: Counter[tuple[str, str]] = Counter()
        self.running: dict[tuple[str, int], set[str]] = {}
        for name, profile in profiles.items():
            for file, lines in profile.lines.items():
                for line in lines:
                    self.running.setdefault((file, line), set()).add(name)

    def tests(self, mutant: Mutant, budget: float) -> list[str]:
        """Return the tests that run the changed statement, as many as the budget has room for."""
        file = label(mutant.path)

        def cost(name: str) -> float:
            often = 20 * self.noticed[name, file + mutant.function] + self.noticed[name, file]
            own = name.startswith(f"tests/checker/test_{OWN.get(file, '')}.py")
            return (0.02 if own else 1.0) * (0.02 + self.seconds[name]) / (1 + often)

        if mutant.function:
            first, last = mutant.lines
            places = [self.running.get((file, line), set()) for line in range(first, last + 1)]
        else:  # it may matter anywhere in the file
            places = [names for (where, _), names in self.running.items() if where == file]
        running = set().union(*places)
        chosen, total = [], 0.0
        for name in sorted(sorted(running), key=cost):
            total += self.seconds[name]
            if total > budget and chosen:
                break
            chosen.append(name)
        return chosen

    def notice(self, mutant: Mutant, name: str) -> None:
        for place in {label(mutant.path), label(mutant.path) + mutant.function}:
            self.noticed[name.removesuffix(" does not end"), place] += 1


def profiles(warm: Warm, kept: Path) -> dict[str, Profile]:
    """Return what the tests run, as recorded before where nothing of it has changed."""
    known = json.loads(kept.read_text()) if kept.exists() else {}
    stamps = {label(path): stamp(path) for path in FILES}
    for number, name in enumerate(warm.items):
        before, test = known.get(name), stamp(ROOT / name.partition("::")[0])
        marks = before["files"].items() if before and before["test"] == test else None
        if marks is not None and all(stamps.get(file) == mark for file, mark in marks):
            continue
        found = warm.profile(name, {str(path) for path in FILES}, 2 * SLOW)
        found = found or Profile(math.inf, {})
        known[name] = {"test": test, "files": {file: stamps[file] for file in found.lines}}
        known[name] |= vars(found)
        if number % 100 == 99:
            kept.write_text(json.dumps(known))
    kept.write_text(json.dumps(known))
    return {
        name: Profile(known[name]["seconds"], known[name]["lines"])
        for name in warm.items
        if known[name]["seconds"] <= SLOW and known[name]["lines"]
    }
