"""A success here must be one elsewhere: certificates written and verified by other kernels."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from benchmarks.adversary.ask import scratch
from benchmarks.adversary.emulated import MACHINES, elsewhere, instance
from benchmarks.adversary.suite import BATCH, Attack, Rng, Seen

#: Machines among which the certificates of one batch are exchanged; a process each costs a second.
TOGETHER = 3

Places = dict[str, list[tuple[int, int]]]


def machines(streams: Sequence[Rng], instances: Sequence[Seen]) -> None:
    known = {(one.seed, one.index): one for one in instances}
    writers: Places = defaultdict(list)
    readers: Places = defaultdict(list)
    for rng, one in zip(streams, instances):
        writer, *others = rng.permutation(_together(one)).tolist()
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


def _together(one: Seen) -> list[str]:
    """Return the machines of a batch, the same for all of its instances."""
    rng = np.random.default_rng([one.seed, one.index // BATCH])
    return rng.permutation(list(MACHINES))[:TOGETHER].tolist()  # type: ignore[no-any-return]


ATTACK = Attack(
    "machines",
    "certificates written under one emulated machine and verified under another",
    weight=2,
    batch=machines,
    least=8,
)
