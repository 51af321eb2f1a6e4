"""Read damaged and forged files, and count what becomes of them.

    python -m benchmarks.fuzz --files 100000

Half of the files are good ones after an accident (flipped, lost, repeated bytes), half are forged:
one number is changed and every hash made right again. Whatever reads them must refuse them, find
them unproved, or find a claim that is true. Anything else is printed, kept in a file, and counted:
another exception than those of the library, code that was run, a false claim that passed, a file
that takes longer than `SLOW` seconds or more than `MEMORY` bytes.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.fuzz.mutations import damaged
from benchmarks.fuzz.specimens import Broken, Specimen, specimens

SLOW, MEMORY = 20.0, 2**29

#: What no reader of files has to do.
_FORBIDDEN = (
    "pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen",
    "socket.connect", "ctypes.dlopen", "os.remove", "shutil.rmtree",
)  # fmt: skip

_watched = False
_seen: list[str] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched and event in _FORBIDDEN:
        _seen.append(event)


sys.addaudithook(_watch)


def _too_slow(number: int, frame: Any) -> None:
    raise Broken(f"took longer than {SLOW:g} s")


def attempt(specimen: Specimen, path: Path) -> str:
    """Say what became of one file; raise `Broken` if that must not be."""
    global _watched
    _seen.clear()
    _watched = True
    signal.setitimer(signal.ITIMER_REAL, SLOW)
    try:
        word = specimen.read(path)
    except Broken:
        raise
    except BaseException as failure:
        raise Broken(f"raised {type(failure).__name__}: {failure}") from failure
    finally:
        _watched = False
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    if _seen:
        raise Broken(f"did {_seen[0]}")
    return word


def fuzz(number: int, seed: int, keep: Path | None = None) -> tuple[Counter[Any], list[str]]:
    """Return outcomes counted by (specimen, damage, outcome), and what must not have happened."""
    rng = random.Random(seed)
    outcomes: Counter[Any] = Counter()
    broken: list[str] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    previous = signal.signal(signal.SIGALRM, _too_slow)
    try:
        with tempfile.TemporaryDirectory() as name:
            cases = specimens(Path(name))
            path = Path(name) / "file"
            for k in range(number):
                specimen = cases[k % len(cases)]
                forged = rng.random() < 0.5
                blob = specimen.forge(rng) if forged else damaged(specimen.blob, rng)
                path.write_bytes(blob)
                try:
                    word = attempt(specimen, path)
                except Broken as found:
                    word = "BROKEN"
                    broken.append(f"{specimen.name}, file {k} of seed {seed}: {found}")
                    if keep is not None:
                        keep.mkdir(exist_ok=True)
                        (keep / f"{seed}-{k}").write_bytes(blob)
                outcomes[specimen.name, "forged" if forged else "damaged", word] += 1
    finally:
        signal.signal(signal.SIGALRM, previous)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    if grown > MEMORY:
        broken.append(f"memory grew by {grown / 2**20:.0f} MiB")
    return outcomes, broken


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=None, help="by default another one each time")
    parser.add_argument("--keep", type=Path, default=None, help="folder for files that broke")
    asked = parser.parse_args(arguments)
    seed = random.randrange(2**31) if asked.seed is None else asked.seed
    begin = time.perf_counter()
    outcomes, broken = fuzz(asked.files, seed, asked.keep)
    words = sorted({word for _, _, word in outcomes})
    print(f"seed {seed}\n{'':44s}" + "".join(f"{word:>26s}" for word in words))
    for name, deed in sorted({key[:2] for key in outcomes}):
        counts = "".join(f"{outcomes[name, deed, word]:26d}" for word in words)
        print(f"{name + ', ' + deed:44s}{counts}")
    for line in broken:
        print("BROKEN:", line)
    seconds = time.perf_counter() - begin
    print(f"{outcomes.total()} files in {seconds:.0f} s, {len(broken)} that broke something")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
