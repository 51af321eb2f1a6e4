"""Machine code is made once, in a file, and the file decides: not who made it, nor when."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.api.inputs import COMPILED_LIMIT
from goldstein.errors import MissingExtraError
from goldstein.solvers.compiled import machine, warm_up

#: A run whose last digits depend on every rounding, and what becomes of the process it is in.
RUN = """
import sys
import goldstein as gs
for dim in (10, 50):
    problem = gs.problems.get("chained_mifflin_2", d=dim)
    res = gs.minimize(
        problem, problem.x0, eps=1e-4, delta=1e-4, rng=0, max_calls=3000, options={"compiled": True}
    )
    print(res.x.tobytes().hex(), res.nfev, res.ngev, res.method, "numba" in sys.modules)
"""


def in_a_process(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True,
        env={**os.environ, machine.FOLDER_VARIABLE: str(folder)},
    )  # fmt: skip


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Look for machine code in a folder of our own."""
    monkeypatch.setenv(machine.FOLDER_VARIABLE, str(tmp_path))
    machine.machine.cache_clear()
    machine.chosen.cache_clear()
    yield tmp_path
    machine.machine.cache_clear()
    machine.chosen.cache_clear()


@pytest.fixture
def compiled(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same with the code in it that other tests use."""
    monkeypatch.delenv(machine.FOLDER_VARIABLE)
    monkeypatch.setenv(machine.FOLDER_VARIABLE, SHARED)
    code = machine._stored() or machine._made()
    monkeypatch.setenv(machine.FOLDER_VARIABLE, str(elsewhere))
    machine._keep(machine._name(), code)
    return elsewhere


SHARED = os.environ[machine.FOLDER_VARIABLE]


@pytest.mark.slow
def test_compiled_just_now_or_long_ago_a_run_is_the_same(tmp_path: Path) -> None:
    made = in_a_process(tmp_path, RUN)
    stored = [path.read_bytes() for path in tmp_path.iterdir()]
    loaded = in_a_process(tmp_path, RUN)
    assert made.stdout == loaded.stdout
    assert "compiling the search" in made.stderr  # not silently in front of the first answer
    assert "compiling" not in loaded.stderr
    assert loaded.stdout.count("auto (compiled) False") == 2  # Numba is not even imported
    # And made again, by another process, it is the same code.
    assert stored == [machine._stored() or machine._made()]


def solve(**more: Any) -> gs.Result:
    x0 = more.pop("x0", [3.0, -1.0])
    ask = {"eps": 1e-2, "delta": 1e-2, "rng": 0, **more}
    return gs.minimize(lambda x: abs(x).sum(), x0, np.sign, **ask)


def test_no_run_is_compiled_before_somebody_wishes_so(compiled: Path) -> None:
    """That the code is there is not enough: a seed must lead to the same run tomorrow."""
    assert solve().method == "auto"
    assert solve(options={"compiled": True}).method == "auto (compiled)"
    assert solve().method == "auto"


def test_after_the_warm_up_runs_are_compiled_by_themselves(compiled: Path, tmp_path: Path) -> None:
    assert warm_up()
    asked = solve(options={"compiled": True})
    for res in (solve(), solve(options={"newton": True})):
        assert res.method == "auto (compiled)"
    assert np.array_equal(solve().x, asked.x)
    # What says otherwise, what compiled code does not know, and what may move to another machine.
    assert solve(options={"compiled": False}).method == "auto"
    assert solve(options={"memory": 30}).method == "auto"
    assert solve(checkpoint=tmp_path / "journal").method == "auto"
    assert solve(x0=np.ones(COMPILED_LIMIT + 1)).method == "auto"
    command = [sys.executable, "-m", "goldstein.cli", "warm-up"]
    for more, words in (([], "is compiled"), (["--off"], "is interpreted")):
        ran = subprocess.run([*command, *more], check=True, capture_output=True, text=True)
        assert f"method auto {words} from now on" in ran.stdout
    machine.chosen.cache_clear()
    assert solve().method == "auto"


def test_a_wish_without_code_waits_for_the_next_warm_up(compiled: Path) -> None:
    """As after an upgrade: nothing is compiled in front of an answer."""
    assert warm_up()
    (code,) = compiled.glob("*.o")
    code.unlink()
    machine.chosen.cache_clear()
    assert solve().method == "auto"
    assert list(compiled.glob("*.o")) == []


@pytest.mark.parametrize("package", ["numba", "llvmlite"])
def test_the_missing_extra_is_named(
    elsewhere: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    machine._name.cache_clear()
    with pytest.raises(MissingExtraError, match=r"\.\[fast\]"):
        solve(options={"compiled": True})
    assert solve().method == "auto"


def test_where_nothing_can_be_kept_runs_go_on(
    compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is a file: code cannot be written there."""
    code = machine._stored()
    blocked = compiled / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv(machine.FOLDER_VARIABLE, str(blocked))
    monkeypatch.setattr(machine, "_compile", lambda name: code)
    assert solve(options={"compiled": True}).success
    assert not warm_up()
