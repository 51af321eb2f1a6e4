"""What users see of a fixed set of runs, bit for bit, before and after a change.

    python -m benchmarks.recorded record before.jsonl --source ../old/src
    python -m benchmarks.recorded record after.jsonl --jobs 2
    python -m benchmarks.recorded compare before.jsonl after.jsonl

A run is a line of JSON: x, f, status, message, counts, course, certificate, the checks of its
verification, all but the clock; floats in hexadecimal, arrays as a hash with their first entries.
Families, see `families.py` and `ecosystems.py`: the public suite of problems with up to 60
variables, compiled runs, bounds, constraints, exact terms, values only, near, other methods, sums
of elements, many variables, `certify`, curves, ask-tell, checkpoints, layouts, failures, refusals,
SciPy, many starts, estimators, torch, JAX, files, the shell, the surface. No run has a limit in
seconds; fits have a folder, because a near proof of a fit is limited by the clock otherwise.
A recording that was interrupted is continued by the same command. Only the public interface is
used. Machine code is made once and kept beside the recordings.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.recorded.fields import digest

Row = dict[str, Any]

#: A run that takes longer than this has not come to its end for another reason than the clock.
HANGS = 300.0

HERE = Path(__file__).parents[2]


class Worker:
    """A process that makes runs with one tree of sources."""

    def __init__(self, source: Path, only: str, seeds: int, cache: Path) -> None:
        path = os.pathsep.join([str(source), str(HERE)])
        env = {
            **os.environ, "PYTHONPATH": path, "GOLDSTEIN_CACHE_DIR": str(cache),
            "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
            "MPLBACKEND": "agg", "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.recorded.worker", only, str(seeds)],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env,
        )  # fmt: skip
        self.tasks: list[str] = json.loads(self._line(HANGS) or sys.exit("no worker."))

    def run(self, task: str) -> Row | None:
        """Return what was found; None where the process has ended."""
        assert self._process.stdin is not None
        print(task, file=self._process.stdin, flush=True)
        line = self._line(HANGS)
        return json.loads(line) if line else None

    def _line(self, seconds: float) -> str:
        assert self._process.stdout is not None
        watch = threading.Timer(seconds, self._process.kill)
        watch.start()
        try:
            return self._process.stdout.readline()
        finally:
            watch.cancel()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def setting(source: Path) -> Row:
    """Return what else decides about the last bits."""
    packages = ("numpy", "scipy", "scikit-learn", "torch", "jax", "numba", "python-flint")
    versions = {name: version(name) for name in packages}
    return {"python": platform.python_version(), "machine": platform.machine(), **versions}


def read(path: Path) -> tuple[Row, dict[str, Row]]:
    """Return the setting and the rows by task."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    header = lines[0]["setting"] if lines else {}
    return header, {row["task"]: row for row in lines[1:]}


def record(options: argparse.Namespace) -> None:
    """Make the runs that are not in the file yet."""
    source, cache = options.source.resolve(), options.file.resolve().parent / "machine-code"
    cache.mkdir(parents=True, exist_ok=True)
    _, done = read(options.file)
    first = Worker(source, options.only, options.seeds, cache)
    tasks = [task for task in first.tasks if task not in done]
    print(f"{len(first.tasks)} runs, {len(tasks)} of them to be made", flush=True)
    if not options.file.exists():
        options.file.write_text(json.dumps({"setting": setting(source)}) + "\n")
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    begin, lock = time.monotonic(), threading.Lock()

    def work(worker: Worker | None) -> None:
        while time.monotonic() - begin < options.budget:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                break
            worker = worker or Worker(source, options.only, options.seeds, cache)
            row = worker.run(task)
            if row is None:
                worker, row = None, {"task": task, "cpu": 0.0, "found": {"error": "no answer"}}
            row["digest"] = digest(json.dumps(row["found"], sort_keys=True))
            with lock, options.file.open("a") as out:
                out.write(json.dumps(row) + "\n")
        if worker is not None:
            worker.close()

    threads = [
        threading.Thread(target=work, args=(w,)) for w in [first, *[None] * (options.jobs - 1)]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _, done = read(options.file)
    print(f"{time.monotonic() - begin:.0f} s; in the file:\n")
    print(times(done))


def times(rows: dict[str, Row]) -> str:
    """Return runs and CPU seconds by family, as a table."""
    count = Counter(family_of(task) for task in rows)
    seconds = Counter[str]()
    for task, row in rows.items():
        seconds[family_of(task)] += row["cpu"]
    lines = ["| family | runs | CPU s |", "|---|---|---|"]
    lines += [f"| {name} | {count[name]} | {seconds[name]:.1f} |" for name in count]
    return "\n".join([*lines, f"| all | {len(rows)} | {sum(seconds.values()):.1f} |"])


def family_of(task: str) -> str:
    return task.split("/", 1)[0]


def differing(before: Row, after: Row, ignored: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields that changed, with both contents."""
    a, b = before["found"], after["found"]
    missing = "(not there)"
    return {
        key: (a.get(key, missing), b.get(key, missing))
        for key in [*a, *(key for key in b if key not in a)]
        if a.get(key, missing) != b.get(key, missing) and not key.startswith(ignored)
    }


def compare(options: argparse.Namespace) -> None:
    """Say what is identical and what changed, by family and field by field; exit 1 if anything."""
    (setting_a, a), (setting_b, b) = read(options.before), read(options.after)
    if setting_a != setting_b:
        print(f"Another setting: {setting_a}\nand {setting_b}\n")
    common = [task for task in a if task in b]
    ignored = tuple(filter(None, options.ignore.split(",")))
    found = {task: differing(a[task], b[task], ignored) for task in common}
    changed = {task: diff for task, diff in found.items() if diff}
    print("| family | runs | identical | changed | CPU s before | after |\n" + "|---" * 6 + "|")
    for name in [*dict.fromkeys(map(family_of, common)), "all"]:
        tasks = [task for task in common if name in ("all", family_of(task))]
        different = sum(task in changed for task in tasks)
        before, after = (sum(rows[task]["cpu"] for task in tasks) for rows in (a, b))
        print(
            f"| {name} | {len(tasks)} | {len(tasks) - different} | {different} | {before:.1f} | "
            f"{after:.1f} |"
        )
    for rows, name in ((set(a) - set(b), options.before), (set(b) - set(a), options.after)):
        if rows:
            print(f"\n{len(rows)} runs only in {name}, such as {min(rows)}")
    if not changed:
        return
    fields = Counter(key for diff in changed.values() for key in diff)
    print("\n| field | runs in which it changed |\n|---|---|")
    print("\n".join(f"| {key} | {count} |" for key, count in fields.most_common()))
    for task, diff in list(changed.items())[: options.show]:
        print(f"\n{task}")
        for key, (old, new) in diff.items():
            print(f"    {key}: {around(old, new)}\n    {' ' * len(key)}  {around(new, old)}")
    if len(changed) > options.show:
        print(f"\n... and {len(changed) - options.show} more; --show {len(changed)} lists all")
    sys.exit(1)


def around(value: Any, other: Any, most: int = 120) -> str:
    """Return a value in one line; a long one from shortly before where it differs."""
    text, second = str(value), str(other)
    if max(len(text), len(second)) <= most:
        return repr(text)
    pairs = enumerate(zip(text, second))
    begin = max(0, next((k for k, (a, b) in pairs if a != b), len(second)) - most // 3)
    return "..." * (begin > 0) + repr(text[begin : begin + most])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("record", help="make the runs that are not in FILE yet")
    one.add_argument("file", type=Path)
    one.add_argument("--source", type=Path, default=HERE / "src", help="the sources to be run")
    one.add_argument("--only", default="", help="families, separated by commas")
    one.add_argument("--seeds", type=int, default=5)
    one.add_argument("--jobs", type=int, default=1, help="processes")
    one.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds; run again to go on"
    )
    one.set_defaults(act=record)
    two = commands.add_parser("compare", help="say what changed")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path)
    two.add_argument("--show", type=int, default=20, help="runs listed field by field")
    two.add_argument("--ignore", default="", help="beginnings of fields, such as verify.,history")
    two.set_defaults(act=compare)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
