"""One line of JSON per run: written at once, read back to resume and to report."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

Key = tuple[str, str, float, int]


@dataclass(frozen=True)
class Run:
    """What was measured in one run.

    Attributes
    ----------
    problem, dim, convex, bounded, locally_lipschitz
        The problem and its facts.
    method, group, level, seed
        What was run; `level` is both eps and delta.
    certified, certified_eps
        The final point has a certificate that meets the level; the bound that was proved.
    values, gradients, own_cpu, oracle_cpu, wall
        Spent by the method itself. CPU seconds of the method exclude those of the function.
    certify_values, certify_gradients, certify_ok
        Spent afterwards by `gs.certify` at the final point, from nothing but that point.
    start_fun, fun, best_value
        Value at the start, at the final point, and the best known one.
    progress
        (values, gradients, own CPU, oracle CPU, f) whenever the best value improved, thinned.
    """

    problem: str
    dim: int
    convex: bool
    bounded: bool
    locally_lipschitz: bool
    method: str
    group: str
    level: float
    seed: int
    status: str
    certified: bool
    certified_eps: float
    values: int
    gradients: int
    own_cpu: float
    oracle_cpu: float
    wall: float
    certify_values: int
    certify_gradients: int
    certify_ok: bool
    start_fun: float
    fun: float
    best_value: float | None
    progress: list[tuple[int, int, float, float, float]] = field(default_factory=list)

    @property
    def key(self) -> Key:
        return self.problem, self.method, self.level, self.seed

    @property
    def calls(self) -> int:
        """Values plus gradients of the method."""
        return self.values + self.gradients

    @property
    def calls_with_certificate(self) -> float:
        """Calls until a certificate is in hand, infinite without one.

        A method without certificates of its own pays for `gs.certify` as well.
        """
        if not self.certified:
            return math.inf
        if self.group == "peer":
            return self.calls + self.certify_values + self.certify_gradients
        return self.calls

    def first_below(self, value: float) -> tuple[int, int, float, float, float] | None:
        """The moment at which f first fell to `value`, if it did."""
        return next((moment for moment in self.progress if moment[4] <= value), None)


def append(path: Path, run: Run) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def load(paths: Iterable[Path]) -> list[Run]:
    """Read all complete lines; a later run of the same key replaces an earlier one."""
    found: dict[Key, Run] = {}
    for path in paths:
        if not path.exists():
            continue
        for line in path.read_text().splitlines():
            try:
                fields = json.loads(line)
            except json.JSONDecodeError:
                continue  # the mark of an interrupted run
            fields["progress"] = [tuple(moment) for moment in fields["progress"]]
            run = Run(**fields)
            found[run.key] = run
    return list(found.values())
