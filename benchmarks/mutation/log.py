"""What became of every mutant, in a file; and the survivors that are explained, in another."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.mutation.operators import FILES, ROOT, Mutant
from benchmarks.mutation.telling import stamp

REASONS = ROOT / "benchmarks" / "mutation_survivors.md"


def explained() -> set[tuple[str, str, str]]:
    """Return the survivors that are listed with a reason: file, function, change."""
    listed = re.compile(r"- `([^`]+)` `([^`]*)`: `(.*)`")
    lines = REASONS.read_text().splitlines() if REASONS.exists() else []
    found = (listed.fullmatch(line) for line in lines)
    return {(match[1], match[2], match[3]) for match in found if match}


class Log:
    """What became of every mutant, one line each; who was killed once is dead."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stamps = {path: stamp(path) for path in FILES}

    def read(self) -> dict[str, dict[str, Any]]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found: dict[str, dict[str, Any]] = {}
        for line in map(json.loads, lines):
            alive = not found.get(line["key"], {}).get("by")
            if line["stamp"] in self.stamps.values() and alive:
                found[line["key"]] = line
        return found

    def add(self, mutant: Mutant, way: str, by: str, seconds: float, tests: int) -> None:
        line = {
            "key": mutant.key, "stamp": self.stamps[mutant.path], "way": way, "by": by,
            "seconds": round(seconds, 3), "tests": tests, "name": mutant.name,
        }  # fmt: skip
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
