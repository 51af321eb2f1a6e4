"""Files that would take a checker hours or gigabytes: it ends within its bounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.adversary.heavy_files import HEAVY
from benchmarks.differential import CHECKER

#: Run the checker with small bounds, in a process that has little more memory than they say.
RUN = """
import importlib.util, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (640 << 20, 640 << 20))
spec = importlib.util.spec_from_file_location("checker", sys.argv[1])
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
checker.MEMORY, checker.BUDGET = 2**31, float(sys.argv[3])  # 256 MB, and nanoseconds
sys.exit(checker.main([sys.argv[2]]))
"""


def _judged(name: str, folder: Path, seconds: int) -> str:
    path = folder / "heavy.json"
    path.write_text(HEAVY[name](1000))
    assert path.stat().st_size < 2**25
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", RUN, str(CHECKER), str(path), f"{seconds}e9"],
        capture_output=True, text=True, timeout=30 + seconds,
    )  # fmt: skip
    assert done.returncode in (0, 1, 2)
    assert done.stdout.startswith(("TRUE: ", "FALSE: ", "UNREADABLE: ")[done.returncode])
    assert "MemoryError" not in done.stdout
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("name", HEAVY)
def test_time_and_memory_are_bounded(name: str, tmp_path: Path) -> None:
    _judged(name, tmp_path, 1)


@pytest.mark.parametrize("name", ["entries of a minimum", "variables of a minimum"])
def test_memory_of_minima_is_counted(name: str, tmp_path: Path) -> None:
    assert "too much memory" in _judged(name, tmp_path, 60)
