"""A success here must be one elsewhere: certificates written and verified by other kernels."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.adversary.ask import scratch
from benchmarks.adversary.emulated import MACHINES, elsewhere, instance
from benchmarks.adversary.suite import Attack, Rng, Seen

#: A machine is worth the start of its process for so many instances.
EACH = 15


def machines(streams: Sequence[Rng], instances: Sequence[Seen]) -> None:
    count = max(2, min(len(MACHINES), len(instances) // EACH))
    known = {(one.seed, one.index): one for one in instances}
    writers: dict[str, list[tuple[int, int]]] = defaultdict(list)
    readers: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for rng, one in zip(streams, instances):
        writer, *others = rng.permutation(list(MACHINES)[:count])[:3].tolist()
        one.note(f"{instance(one.seed, one.index)[1]}; written as {writer}, verified as {others}")
        writers[writer].append((one.seed, one.index))
        for reader in others:
            readers[reader].append((one.seed, one.index))
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        for machine, some in writers.items():
            elsewhere(machine, "write", Path(folder), some)
        for machine, some in readers.items():
            for found in elsewhere(machine, "verify", Path(folder), some):
                one = known[found["seed"], found["index"]]
                said = f"as {machine}: {found['said']}"
                one.claim(found["all"], found["label"], None, said, own=True)
    for one in instances:
        if not one.counts:
            one.silent("no success where it was written")


ATTACK = Attack(
    "machines",
    "certificates written under one emulated machine and verified under another",
    weight=2,
    batch=machines,
    least=8,
)
