"""What an attack is, what one instance of it has shown, and how all of them are run.

An attack is a function of a random generator and a `Seen`. It makes one instance, puts it to the
library through what is public, and says what the truth is; the truth comes from exact arithmetic
that shares no code with the library. The same (attack, seed, index) is the same instance.
"""

from __future__ import annotations

import importlib
import math
import os
import pkgutil
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from benchmarks.adversary.beliefs import BELIEFS

Rng = np.random.Generator

#: What must not happen; the words of the last line.
FALSE_CERTIFIED, FALSE_CONDITIONAL, CONTRADICTION = (
    "false certified", "false conditional", "contradictions",
)  # fmt: skip
FAULTS = (FALSE_CERTIFIED, FALSE_CONDITIONAL, CONTRADICTION)

#: Statistical claims may be wrong as often as they say; more often than chance allows at this
#: level, over all instances of one attack, and what is too much counts as false.
LEVEL = 1e-6

#: Instances that a process is given at once; of attacks that start processes themselves, more.
CHUNK, BATCH = 40, 600


@dataclass
class Seen:
    """What one instance has shown."""

    attack: str
    seed: int
    index: int
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: For each statistical claim the stated probability of error, and whether it was false.
    chances: list[tuple[float, bool]] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say what the instance is; printed where something is wrong with it."""
        self.notes.append(text)

    def claim(
        self,
        accepted: bool,
        label: str,
        true: bool | None,
        said: str,
        *,
        own: bool = False,
        belief: str | None = None,
        miss: float = 0.0,
    ) -> None:
        """Judge one verdict of the library.

        Parameters
        ----------
        accepted : bool
            The library verified the claim.
        label : str
            What it called the claim, or what the claim calls itself.
        true : bool or None
            The truth; None where it is not known.
        said : str
            The claim and the truth, for people.
        own : bool
            The library made the claim itself, of a function that answers alike: it must verify.
        belief : str, optional
            The entry of `beliefs` that exempts a false claim.
        miss : float
            The probability of error that a statistical claim states.
        """
        assert belief is None or belief in BELIEFS, belief
        statistical = label == "estimated"
        if not accepted:
            self.counts["refused"] += 1
            if own:
                self.fault(CONTRADICTION, f"stated, but not verified: {said}")
            return
        self.counts["accepted"] += 1
        if true is False and belief:
            self.counts["believed"] += 1
        elif statistical and true is not None:
            self.chances.append((miss, not true))
        elif true is False:
            word = FALSE_CERTIFIED if label == "certified" else FALSE_CONDITIONAL
            self.fault(word, f"{label}, but false: {said}")

    def fault(self, word: str, said: str) -> None:
        self.faults.append((word, said))

    def silent(self, why: str = "") -> None:
        """No claim was made."""
        self.counts["no claim"] += 1
        if why:
            self.note(why)

    def __str__(self) -> str:
        where = f"--attack {self.attack} --seed {self.seed} --index {self.index}"
        lines = [f"  {word}: {said}" for word, said in self.faults]
        return "\n".join([where, *(f"  {note}" for note in self.notes), *lines])


OneByOne = Callable[[Rng, Seen], None]
Batch = Callable[[Sequence[Rng], Sequence[Seen]], None]


@dataclass(frozen=True)
class Attack:
    """A generator of instances that asks the library about each.

    Attributes
    ----------
    name, about : str
    weight : float
        Its share of all instances, divided by the sum of the weights of all attacks.
    one, batch : callable
        One of the two: an instance at a time, or as many as there are (processes are started).
    least : int
        Fewer instances than this are not worth the start of its processes or libraries.
    """

    name: str
    about: str
    weight: float
    one: OneByOne | None = None
    batch: Batch | None = None
    least: int = 1

    def run(self, seed: int, indices: Iterable[int]) -> list[Seen]:
        """Make some instances, and return what they have shown."""
        seen = [Seen(self.name, seed, index) for index in indices]
        streams = [self._stream(seed, one.index) for one in seen]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if self.batch is not None:
                self.batch(streams, seen)
                return seen
            for rng, one in zip(streams, seen):
                self._guarded(rng, one)
        return seen

    def _guarded(self, rng: Rng, one: Seen) -> None:
        assert self.one is not None
        try:
            self.one(rng, one)
        except Exception:  # an error that is not the library's own is a verdict that is missing
            one.fault(CONTRADICTION, "raised\n" + traceback.format_exc())

    def _stream(self, seed: int, index: int) -> Rng:
        return np.random.default_rng([seed, index, zlib.crc32(self.name.encode())])


def attacks() -> dict[str, Attack]:
    """Return all attacks by name, one for each file of `benchmarks.adversary.attacks`."""
    from benchmarks.adversary import attacks as folder

    found = {}
    for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda m: m.name):
        attack = importlib.import_module(f"{folder.__name__}.{module.name}").ATTACK
        if attack is not None:
            found[attack.name] = attack
    return found


def shares(n: int, chosen: Sequence[Attack]) -> dict[str, int]:
    """Share n instances among attacks by their weights; every one gets `least`, or nothing."""
    total = sum(attack.weight for attack in chosen)
    exact = {attack.name: n * attack.weight / total for attack in chosen}
    given = {name: int(share) for name, share in exact.items()}
    left = sorted(exact, key=lambda name: given[name] - exact[name])
    for name in left[: n - sum(given.values())]:
        given[name] += 1
    return {a.name: given[a.name] if given[a.name] >= a.least else 0 for a in chosen}


@dataclass
class Tally:
    """What all instances of one attack have shown."""

    name: str
    instances: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    chances: list[tuple[float, bool]] = field(default_factory=list)
    wrong: list[Seen] = field(default_factory=list)

    def add(self, one: Seen) -> None:
        self.instances += 1
        self.counts += one.counts
        self.faults.update(word for word, _ in one.faults)
        self.chances += one.chances
        if one.faults:
            self.wrong.append(one)

    def close(self) -> None:
        """Of claims of one confidence as many are false as are wrong beyond what they say."""
        for level in {miss for miss, _ in self.chances}:
            group = [(miss, false) for miss, false in self.chances if miss == level]
            missed = sum(false for _, false in group)
            self.faults[FALSE_CONDITIONAL] += max(0, missed - allowed_misses(group))

    @property
    def line(self) -> str:
        words = ("accepted", "refused", "no claim", "believed")
        counts = ", ".join(f"{word} {self.counts[word]}" for word in words)
        if self.chances:
            expected = sum(miss for miss, _ in self.chances)
            missed = sum(false for _, false in self.chances)
            counts += f", estimated {missed} of {len(self.chances)} wrong (stated {expected:.1f})"
        faults = ", ".join(f"{word} {self.faults[word]}" for word in FAULTS)
        return f"{self.name:18s} {self.instances:7d} in {self.seconds:6.1f} s: {counts}; {faults}"


def allowed_misses(chances: Sequence[tuple[float, bool]]) -> int:
    """Return how many claims may be wrong by chance (Chernoff's bound of the tail at `LEVEL`)."""
    mean = sum(miss for miss, _ in chances)
    most = math.ceil(mean)
    while mean and most + 1 - mean - (most + 1) * math.log((most + 1) / mean) > math.log(LEVEL):
        most += 1
    return most


def _part(name: str, seed: int, indices: range) -> tuple[str, list[Seen], float]:
    begin = sum(os.times()[:4])  # of this process and those it started: the machine may be busy
    return name, attacks()[name].run(seed, indices), sum(os.times()[:4]) - begin


def _parts(given: dict[str, int], known: dict[str, Attack]) -> Iterator[tuple[str, range]]:
    for name, count in given.items():
        size = BATCH if known[name].batch else CHUNK
        for first in range(0, count, size):
            yield name, range(first, min(first + size, count))


def run(
    n: int,
    seed: int,
    names: Sequence[str] = (),
    *,
    jobs: int = 1,
    watch: Callable[[Seen], Any] = lambda one: None,
) -> dict[str, Tally]:
    """Run n instances of some attacks, of all by default; `watch` sees what went wrong."""
    known = attacks()
    given = shares(n, [known[name] for name in (names or known)])
    tallies = {name: Tally(name) for name in given}
    parts = list(_parts(given, known))

    def keep(done: tuple[str, list[Seen], float]) -> None:
        name, seen, seconds = done
        tallies[name].seconds += seconds
        for one in seen:
            tallies[name].add(one)
            if one.faults:
                watch(one)

    if jobs == 1:
        for name, indices in parts:
            keep(_part(name, seed, indices))
    else:
        with ProcessPoolExecutor(jobs) as pool:
            for future in [pool.submit(_part, name, seed, indices) for name, indices in parts]:
                keep(future.result())
    for tally in tallies.values():
        tally.close()
    return tallies


def last_line(tallies: Iterable[Tally]) -> str:
    """Return the sentence that everything ends with."""
    total: Counter[str] = Counter()
    for tally in tallies:
        total += tally.faults
    return ", ".join(f"{word}: {total[word]}" for word in FAULTS)
