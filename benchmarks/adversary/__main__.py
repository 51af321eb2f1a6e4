"""Attack the library, and count what is false.

python -m benchmarks.adversary --n 5000 --seed 0
python -m benchmarks.adversary --attack thin-cones --seed 0 --index 17
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.adversary.suite import FAULTS, Seen, Tally, attacks, last_line, run

#: Instances that are printed whole, per attack.
SHOWN = 5


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.adversary", description=__doc__)
    parser.add_argument("--n", type=int, default=5000, help="instances, shared among the attacks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--attack", nargs="+", default=[], metavar="NAME", choices=list(attacks()))
    parser.add_argument("--index", type=int, help="replay one instance of one attack")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shown", type=int, default=SHOWN, help="wrong instances to print")
    parser.add_argument("--list", action="store_true", help="say what the attacks are")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    asked = _arguments(given)
    known = attacks()
    if asked.list:
        for attack in known.values():
            print(f"{attack.name:18s} {attack.weight:4g}  {attack.about}")
        return 0
    if asked.index is not None:
        tallies = _replayed(asked.attack, asked.seed, asked.index)
    else:
        tallies = run(asked.n, asked.seed, asked.attack, jobs=asked.jobs)
    for tally in tallies.values():
        for one in tally.wrong[: asked.shown]:
            print(one)
        print(tally.line, flush=True)
    print(last_line(tallies.values()))
    return 1 if any(tally.faults[word] for tally in tallies.values() for word in FAULTS) else 0


def _replayed(names: list[str], seed: int, index: int) -> dict[str, Tally]:
    tallies = {}
    for name in names:
        tallies[name] = Tally(name)
        for one in attacks()[name].run(seed, [index]):
            print(_in_full(one))
            tallies[name].add(one)
            tallies[name].wrong.clear()  # it has been printed
    return tallies


def _in_full(one: Seen) -> str:
    counts = ", ".join(f"{word} {count}" for word, count in sorted(one.counts.items()))
    return f"{one}\n  seen: {counts}"


if __name__ == "__main__":
    sys.exit(main())
