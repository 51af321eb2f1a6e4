"""Journals: locks, damage, full disks, sizes; and runs with constraints that resume."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import kill
from scipy.optimize import LinearConstraint, NonlinearConstraint

import goldstein as gs
from goldstein.storage import files as lock
from goldstein.storage.files import in_use
from goldstein.storage.journal import Journal


class PowerCut(BaseException):
    """What no code expects."""


class Mortal:
    """A problem with a constraint that counts its calls, and dies at a chosen one."""

    def __init__(self, fail_at: int | None = None, shift: float = 0.0) -> None:
        self.calls, self.fail_at, self.shift = 0, fail_at, shift

    def tick(self) -> None:
        self.calls += 1
        if self.calls == self.fail_at:
            raise PowerCut

    def fun(self, x: np.ndarray) -> float:
        self.tick()
        return float(np.abs(x - 1.0).sum() + (x[0] - 2 * x[1]) ** 2)

    def jac(self, x: np.ndarray) -> np.ndarray:
        self.tick()
        s = 2 * (x[0] - 2 * x[1])
        return np.sign(x - 1.0) + np.array([s, -2 * s])

    def disc(self, x: np.ndarray) -> float:
        self.tick()
        return float(x @ x) + self.shift

    def disc_slope(self, x: np.ndarray) -> np.ndarray:
        self.tick()
        return 2 * x

    def solve(self, path: Path | None, **changes: Any) -> gs.Result:
        disc = NonlinearConstraint(self.disc, -np.inf, changes.pop("most", 1.0), self.disc_slope)
        asked: dict[str, Any] = {
            "eps": 1e-2, "delta": 1e-2, "rng": 4, "checkpoint": path, "bounds": [(-2, 2)] * 2,
            "constraints": [disc, LinearConstraint([[1.0, 1.0]], -3.0, 3.0)], **changes,
        }  # fmt: skip
        return gs.minimize(self.fun, [-1.5, 0.3], self.jac, **asked)


def same(a: gs.Result, b: gs.Result) -> None:
    assert kill.outcome(a) == kill.outcome(b)
    assert (a.constr_nfev, a.constr_njev) == (b.constr_nfev, b.constr_njev)
    assert np.array_equal(a.multipliers, b.multipliers)


SETTINGS: dict[str, dict[str, Any]] = {
    "auto": {},
    "bundle": {"method": "bundle"},
    "feasible": {"options": {"feasible": True}, "method": "bundle"},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_constrained_runs_resume_bit_for_bit(setting: str, tmp_path: Path) -> None:
    counter = Mortal()
    x0 = {} if setting != "feasible" else {"most": 4.0}
    whole = counter.solve(None, **SETTINGS[setting], **x0)
    assert whole.success
    for place in sorted({1, 2, 3, counter.calls // 3, counter.calls // 2, counter.calls - 1}):
        path = tmp_path / f"{place}.journal"
        with pytest.raises(PowerCut):
            Mortal(fail_at=place).solve(path, **SETTINGS[setting], **x0)
        rest = Mortal()
        same(rest.solve(path, **SETTINGS[setting], **x0), whole)
        again = Mortal()
        same(again.solve(path, **SETTINGS[setting], **x0), whole)
        assert again.calls < counter.calls  # what is paid for is not paid again


def test_a_limit_on_a_constrained_run_can_be_raised(tmp_path: Path) -> None:
    """Also the head start depends on the budget: answers are found by what was asked."""
    path = tmp_path / "run.journal"
    for limit in (7, 25, 60):
        Mortal().solve(path, max_calls=limit)
    same(Mortal().solve(path), Mortal().solve(None))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"eps": 0.02}, "eps is 0.01 there and 0.02 here"),
        ({"bounds": [(-2, 2), (-2, 1.9)]}, "bounds is"),
        ({"bounds": None}, "bounds is"),
        ({"constraints": []}, "constraints differs"),
        ({"most": 1.1}, "constraints differs"),
        ({"constraints": [LinearConstraint([[1.0, 2.0]], -3.0, 3.0)]}, "constraints differs"),
        ({"options": {"feasible": True}}, "feasible is False there and True here"),
    ],
)
def test_another_constrained_request_is_refused(
    changes: dict[str, Any], what: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.journal"
    Mortal().solve(path)
    before = path.read_bytes()
    with pytest.raises(gs.CheckpointError, match=what):
        Mortal().solve(path, **changes)
    assert path.read_bytes() == before


def test_another_constraint_of_the_same_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    Mortal().solve(path)
    with pytest.raises(gs.CheckpointError, match="another function"):
        Mortal(shift=0.5).solve(path)


def test_infeasible_problems_resume(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    whole = Mortal().solve(path, most=-1.0)
    assert whole.status is gs.Status.INFEASIBLE
    again = Mortal().solve(path, most=-1.0)
    assert kill.outcome(again) == kill.outcome(whole)


def test_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    Mortal().solve(path)
    version = json.dumps(gs.__version__).encode()
    path.write_bytes(path.read_bytes().replace(version, b'"0.0.7"', 1))
    with pytest.raises(gs.CheckpointError, match=r"goldstein is 0\.0\.7 there"):
        Mortal().solve(path)
    path.write_bytes(b"goldstein journal 1\n{}\n")
    with pytest.raises(gs.CheckpointError, match="older version"):
        Mortal().solve(path)


# Locks.


def test_a_second_run_is_refused_and_told(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    said: list[str] = []

    class Nested(Mortal):
        def fun(self, x: np.ndarray) -> float:
            if not said:
                assert in_use(path)
                with pytest.raises(gs.CheckpointError, match="in use by another run") as caught:
                    Mortal().solve(path)
                said.append(str(caught.value))
            return super().fun(x)

    same(Nested().solve(path), Mortal().solve(None))
    assert said
    assert not in_use(path)


HOLDS = """
import sys, numpy as np, goldstein as gs
def f(x):
    print("asked", flush=True)
    sys.stdin.read()
    return abs(x).sum()
gs.minimize(f, [1.0], np.sign, eps=0.1, delta=0.1, rng=0, checkpoint=sys.argv[1])
"""


def test_a_dead_process_holds_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"

    def f(x: np.ndarray) -> float:
        return np.abs(x).sum()

    def solve() -> gs.Result:
        return gs.minimize(f, [1.0], np.sign, eps=0.1, delta=0.1, rng=0, checkpoint=path)

    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"asked\n"
        with pytest.raises(gs.CheckpointError, match="in use"):
            solve()
        holder.kill()
    assert solve().success


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # beside threads of the runner
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")  # and of JAX, where it is loaded
def test_children_neither_hold_nor_write_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    journal = Journal(path, {"seed": 1})
    asking, telling = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        words = b"wrote"
        try:
            journal.asked("value", np.zeros(1), np.square)
        except gs.CheckpointError as refused:
            words = str(refused).encode()
        os.write(telling[1], words)
        os.read(asking[0], 1)
        os._exit(0)
    assert b"process that began the run" in os.read(telling[0], 2**12)
    size = path.stat().st_size
    journal.close()
    Journal(path, {"seed": 1}).close()  # the child is alive, and in nobody's way
    assert path.stat().st_size == size
    os.write(asking[1], b".")
    os.waitpid(child, 0)
    for end in (*asking, *telling):
        os.close(end)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoLocks:
        LOCK_EX = LOCK_NB = 0

        @staticmethod
        def flock(descriptor: int, how: int) -> None:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(lock, "fcntl", NoLocks)
    with pytest.warns(gs.CheckpointWarning, match="no second run"):
        same(Mortal().solve(tmp_path / "run.journal"), Mortal().solve(None))


def test_the_locks_of_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[tuple[int, int]] = []

    class Windows:
        LK_NBLCK = 2

        @staticmethod
        def locking(descriptor: int, how: int, count: int) -> None:
            if held:
                raise OSError(errno.EACCES, "Permission denied")
            held.append((os.lseek(descriptor, 0, os.SEEK_CUR), count))

    monkeypatch.setattr(lock, "fcntl", None)
    monkeypatch.setattr(lock, "msvcrt", Windows)
    journal = Journal(tmp_path / "run.journal", {})
    assert held[0][0] > 2**41  # beyond any content
    with pytest.raises(gs.CheckpointError, match="in use"):
        Journal(tmp_path / "run.journal", {})
    journal.close()
    monkeypatch.setattr(lock, "msvcrt", None)
    with pytest.warns(gs.CheckpointWarning, match="no second run"):
        Journal(tmp_path / "other.journal", {}).close()


# Damage.


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "run.journal"
    with pytest.raises(PowerCut):
        Mortal(fail_at=25).solve(path)
    return path


def records_begin(path: Path) -> int:
    blob = path.read_bytes()
    return blob.index(b"\n", blob.index(b"\n") + 1) + 1


def test_a_flipped_byte_costs_answers_and_never_the_truth(journal: Path) -> None:
    whole, blob = Mortal().solve(None), journal.read_bytes()
    begin = records_begin(journal)
    for place in np.linspace(begin, len(blob) - 1, 12).astype(int):
        bad = bytearray(blob)
        bad[place] ^= 0x41
        journal.write_bytes(bad)
        with pytest.warns(gs.CheckpointWarning, match=r"damaged after \d+ answers"):
            same(Mortal().solve(journal), whole)


def test_an_unfinished_header_is_begun_again(journal: Path) -> None:
    blob = journal.read_bytes()
    for size in (0, 25, records_begin(journal) - 1):
        journal.write_bytes(blob[:size])
        if size:
            with pytest.warns(gs.CheckpointWarning, match="starts afresh"):
                same(Mortal().solve(journal), Mortal().solve(None))
        else:
            same(Mortal().solve(journal), Mortal().solve(None))


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"[" * 10**5, b"\xff", b"9" * 10_000, b'{"seed": ' + b"9" * 9999 + b"}"]
)
def test_a_damaged_header_is_refused(journal: Path, line: bytes) -> None:
    journal.write_bytes(b"goldstein journal 2\n" + line + b"\n")
    with pytest.raises(gs.CheckpointError, match=r"damaged header|belongs to another"):
        Mortal().solve(journal)


def test_a_record_that_claims_petabytes(journal: Path) -> None:
    """It is cut off; nothing of that size is allocated."""
    blob = journal.read_bytes()
    begin = records_begin(journal)
    huge = blob[: begin + 17] + (2**50).to_bytes(8, "little") + blob[begin + 25 :]
    journal.write_bytes(huge)
    with pytest.warns(gs.CheckpointWarning, match="damaged after 0 answers"):
        same(Mortal().solve(journal), Mortal().solve(None))


# Disks.


def limited_to(size: int, action: Callable[[], Any]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        action()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_ends_with_a_message_and_the_run_goes_on_later(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"

    def too_much() -> None:
        with pytest.raises(gs.CheckpointError, match=r"cannot be written.*same call continues"):
            Mortal().solve(path)

    limited_to(1500, too_much)
    assert 0 < path.stat().st_size <= 1500
    rest = Mortal()
    same(rest.solve(path), Mortal().solve(None))  # no damage: nothing was half written


def test_a_disk_without_room_for_the_header_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"

    def too_much() -> None:
        with pytest.raises(gs.CheckpointError, match="cannot be written"):
            Mortal().solve(path)

    limited_to(10, too_much)
    assert not path.exists()


def test_folders_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser may write anywhere: the refusal of the system is imitated."""

    def refuse(path: Any, flags: int, mode: int = 0o777) -> int:
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(gs.CheckpointError, match=r"Read-only file system.*can be written to"):
        Mortal().solve(tmp_path / "run.journal")


def test_a_certificate_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    certificate = gs.certify(lambda x: np.abs(x).sum(), np.zeros(200), np.sign, delta=0.1, rng=0)
    path = certificate.save(tmp_path / "good.cert")
    before = path.read_bytes()

    def too_much() -> None:
        with pytest.raises(OSError, match=r"nothing was written or changed.*good\.cert"):
            certificate.save(path)

    limited_to(len(before) // 2, too_much)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["good.cert"]


def test_two_threads_save_to_one_name(tmp_path: Path) -> None:
    certificates = [
        gs.certify(lambda x: np.abs(x).sum(), np.zeros(3), np.sign, delta=0.1, rng=seed)
        for seed in range(4)
    ]
    threads = [
        threading.Thread(target=lambda c=c: [c.save(tmp_path / "one.cert") for _ in range(10)])
        for c in certificates
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = gs.load_certificate(tmp_path / "one.cert").digest
    assert found in {c.digest for c in certificates}
    assert len(list(tmp_path.iterdir())) == 1


# Sizes.


def test_a_journal_stops_growing_and_still_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goldstein.storage.journal.LIMIT", 50_000)
    path = tmp_path / "run.journal"

    def solve(checkpoint: Path | None) -> gs.Result:
        return gs.minimize(
            lambda x: np.abs(x).sum(), np.linspace(1, 2, 1000), np.sign,
            eps=1e-3, delta=1e-2, rng=0, max_calls=80, checkpoint=checkpoint,
        )  # fmt: skip

    with pytest.warns(gs.CheckpointWarning, match="not kept"):
        first = solve(path)
    assert first.ngev * 8000 > 100_000 > path.stat().st_size
    with pytest.warns(gs.CheckpointWarning, match="not kept"):
        again = solve(path)
    assert kill.outcome(again) == kill.outcome(first) == kill.outcome(solve(None))


def test_a_journal_in_a_million_variables(tmp_path: Path) -> None:
    """Gradients of 8 MB: the file is as large as what was answered, and no larger."""
    path = tmp_path / "run.journal"
    x0 = np.full(10**6, 1.5)

    def solve(checkpoint: Path | None) -> gs.Result:
        return gs.minimize(
            lambda x: np.abs(x).sum(), x0, np.sign, eps=1e-3, delta=1e-2, rng=0, max_calls=8,
            checkpoint=checkpoint,
        )  # fmt: skip

    first = solve(path)
    payload = 8 * 10**6 * first.ngev
    assert payload <= path.stat().st_size <= payload + 10**4
    assert kill.outcome(solve(path)) == kill.outcome(first)


def test_single_precision_stays_visible_through_a_checkpoint(tmp_path: Path) -> None:
    """A ball that float32 cannot resolve is refused in a resumed run as in any other."""
    path = tmp_path / "run.journal"

    def solve(jac: Any) -> gs.Result:
        return gs.minimize(
            lambda x: np.abs(x).sum(), [1.0, 2.0], jac, eps=1e-3, delta=1e-9, rng=0,
            checkpoint=path,
        )  # fmt: skip

    for _ in range(2):
        with pytest.raises(gs.InputError, match="float32"):
            solve(lambda x: np.sign(x).astype(np.float32))


# Kills.


@pytest.mark.parametrize("number", [0, 4, 5], ids=lambda number: kill.TASKS[number].name)
def test_killed_runs_end_as_undisturbed_ones(number: int, tmp_path: Path) -> None:
    task = kill.TASKS[number]
    expected = kill.finished(task, None, kill.PATIENCE)
    assert expected is not None
    assert "failed" not in expected
    rng, kills = random.Random(number), 0
    while kills < 3:
        told, times = kill.killed_until_done(task, tmp_path, rng, whole=0.4)
        assert told == expected
        kills += times


def test_an_exact_constrained_run_resumes(tmp_path: Path) -> None:
    """The proof is about the expression, whatever journals its answers."""
    z = gs.Variable(2)

    def solve(path: Path | None) -> gs.Result:
        return gs.minimize(
            gs.abs(z[0]) + 2 * gs.abs(z[1]), [0.9, 0.9], constraints=z[0] >= 0.5, eps=1e-3,
            delta=1e-3, rng=0, stationarity="near", checkpoint=path,
        )  # fmt: skip

    path = tmp_path / "run.journal"
    whole = solve(None)
    assert type(whole.certificate) is gs.NearKKTCertificate
    for _ in range(2):
        assert kill.outcome(solve(path)) == kill.outcome(whole)


@pytest.mark.parametrize("room", [600, 700, 900, 1200, 1800, 2600, 4000])
def test_a_full_disk_is_never_hidden(room: int, tmp_path: Path) -> None:
    """Not by a head start, a check or a blame that live with errors of the function."""
    path = tmp_path / "run.journal"
    Mortal().solve(path)
    assert path.stat().st_size > 4000
    path.unlink()

    def too_much() -> None:
        with pytest.raises(gs.CheckpointError, match="cannot be written"):
            Mortal().solve(path)

    limited_to(room, too_much)
    same(Mortal().solve(path), Mortal().solve(None))
