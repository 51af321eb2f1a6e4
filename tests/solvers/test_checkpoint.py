"""Checkpoints: a run that was cut short continues bit for bit, and only its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goldstein as gs

METHODS = ["bundle", "pingd", "auto"]


class PowerCut(BaseException):
    """What no code expects."""


class Recorded:
    """Counts calls, and fails at a chosen one."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.calls = 0
        self.fail_at = fail_at

    def tick(self) -> None:
        self.calls += 1
        if self.calls == self.fail_at:
            raise PowerCut if self.calls % 2 else RuntimeError("power cut")

    def fun(self, x: np.ndarray) -> float:
        self.tick()
        return float(np.abs(x).sum() + abs(x[0] - 2 * x[1]))

    def jac(self, x: np.ndarray) -> np.ndarray:
        self.tick()
        s = np.sign(x[0] - 2 * x[1])
        return np.sign(x) + np.array([s, -2 * s, 0.0])


def solve(f: Recorded, path: Path | None, **changes: Any) -> gs.Result:
    asked: dict[str, Any] = {
        "eps": 0.05, "delta": 0.05, "method": "bundle", "rng": 5, "checkpoint": path, **changes
    }  # fmt: skip
    return gs.minimize(f.fun, [3.0, -2.0, 1.0], f.jac, **asked)


def same(a: gs.Result, b: gs.Result) -> None:
    assert np.array_equal(a.x, b.x)
    assert (a.fun, a.status, a.nit, a.nfev, a.ngev, a.seed) == (
        b.fun, b.status, b.nit, b.nfev, b.ngev, b.seed
    )  # fmt: skip
    assert a.certificate.digest == b.certificate.digest
    assert a.history.fun == b.history.fun
    assert a.history.calls == b.history.calls


@pytest.mark.parametrize("method", METHODS)
def test_resume_is_bit_for_bit(method: str, tmp_path: Path) -> None:
    whole = solve(Recorded(), None, method=method)
    assert whole.success
    total = whole.nfev + whole.ngev
    for place in sorted({1, 2, 3, 10, total // 3, total // 2, total - 1, total}):
        path = tmp_path / f"{method}-{place}.journal"
        with pytest.raises((PowerCut, gs.OracleError)):
            solve(Recorded(fail_at=place), path, method=method)
        rest = Recorded()
        same(solve(rest, path, method=method), whole)
        # Replayed answers are not paid for again, but for the spot checks and the verification,
        # which also asks values around four points of the claim.
        checks = 2 + int(np.log2(max(place, 2))) + 3 * len(whole.certificate.weights) + 4 * 2
        assert rest.calls <= total - (place - 1) + checks + 2


def test_several_cuts_in_a_row(tmp_path: Path) -> None:
    whole = solve(Recorded(), None)
    path = tmp_path / "run.journal"
    for _ in range(8):
        with pytest.raises((PowerCut, gs.OracleError)):
            solve(Recorded(fail_at=9), path)
    same(solve(Recorded(), path), whole)


def test_a_finished_run_answers_again_without_new_work(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    first = solve(Recorded(), path)
    again = Recorded()
    same(solve(again, path), first)
    assert again.calls < first.nfev + first.ngev


@pytest.mark.parametrize("cut", [1, 5, 8, 17, 30])
def test_a_half_written_record_is_dropped(cut: int, tmp_path: Path) -> None:
    whole = solve(Recorded(), None)
    path = tmp_path / "run.journal"
    with pytest.raises((PowerCut, gs.OracleError)):
        solve(Recorded(fail_at=20), path)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.warns(gs.CheckpointWarning, match=r"damaged after 18 answers.*cut off"):
        same(solve(Recorded(), path), whole)


def test_the_seed_of_the_checkpoint_is_taken_up(tmp_path: Path) -> None:
    for seed in (0, 7):  # 0 is a seed like any other
        path = tmp_path / f"{seed}.journal"
        whole = solve(Recorded(), path, rng=seed)
        assert solve(Recorded(), path, rng=None).seed == seed
        same(solve(Recorded(), path, rng=None), whole)


@pytest.mark.parametrize(
    "changes",
    [{"eps": 0.04}, {"delta": 0.04}, {"rng": 6}, {"method": "pingd"}, {"lipschitz": 9.0}]
    + [{"options": {"expand": False}}],
)
def test_another_request_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    solve(Recorded(), path)
    before = path.read_bytes()
    with pytest.raises(gs.InputError, match=r"belongs to another problem.*delete it"):
        solve(Recorded(), path, **changes)
    assert path.read_bytes() == before


def test_another_start_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    f = Recorded()
    solve(f, path)
    with pytest.raises(gs.InputError, match="belongs to another problem"):
        gs.minimize(
            f.fun, [3.0, -2.0, 1.5], f.jac,
            eps=0.05, delta=0.05, method="bundle", rng=5, checkpoint=path,
        )  # fmt: skip


class Shifted(Recorded):
    def fun(self, x: np.ndarray) -> float:
        return super().fun(x) + 1.0


class Steeper(Recorded):
    """Agrees with the original on half of the space, the start included."""

    def fun(self, x: np.ndarray) -> float:
        return super().fun(x) + max(0.0, 0.5 - x[0])

    def jac(self, x: np.ndarray) -> np.ndarray:
        return super().jac(x) - np.array([float(x[0] < 0.5), 0.0, 0.0])


@pytest.mark.parametrize("foreign", [Shifted, Steeper])
def test_another_function_of_the_same_name_is_refused(
    foreign: type[Recorded], tmp_path: Path
) -> None:
    """Its journal would hand over a certificate of the first function: a false one."""
    path = tmp_path / "run.journal"
    assert solve(Recorded(), path).success
    with pytest.raises(gs.InputError, match="another function"):
        solve(foreign(), path)


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "thesis.tex"
    path.write_text("do not lose me")
    with pytest.raises(gs.InputError, match="not a goldstein checkpoint"):
        solve(Recorded(), path)
    assert path.read_text() == "do not lose me"
    with pytest.raises(gs.InputError, match="existing folder"):
        solve(Recorded(), tmp_path / "no" / "such" / "folder")
    with pytest.raises(gs.InputError, match="cannot be used"):
        solve(Recorded(), tmp_path)


def test_kinks_are_part_of_the_journal(tmp_path: Path) -> None:
    class Moody(gs.Oracle):
        def __init__(self, fail_at: int | None = None) -> None:
            self.f = Recorded(fail_at)

        def value(self, x: np.ndarray) -> float:
            return self.f.fun(x)

        def gradient(self, y: np.ndarray) -> np.ndarray:
            g = self.f.jac(y)
            if int(abs(y[0]) * 1e9) % 3 == 0:
                raise gs.KinkError("corner", y)
            return g

    ask: dict[str, Any] = {"eps": 0.3, "delta": 0.05, "method": "bundle", "rng": 2}
    whole = gs.minimize(Moody(), [3.0, -2.0, 1.0], **ask)
    path = tmp_path / "run.journal"
    total = whole.nfev + whole.ngev
    with pytest.raises((PowerCut, gs.OracleError)):
        gs.minimize(Moody(total - 4), [3.0, -2.0, 1.0], checkpoint=path, **ask)
    same(gs.minimize(Moody(), [3.0, -2.0, 1.0], checkpoint=path, **ask), whole)


def test_a_bad_answer_is_not_kept(tmp_path: Path) -> None:
    """The run died of a NaN; with the function mended it goes on."""
    path = tmp_path / "run.journal"
    f = Recorded()
    broken = True

    def jac(x: np.ndarray) -> np.ndarray:
        return f.jac(x) * (float("nan") if broken and f.calls > 12 else 1.0)

    ask: dict[str, Any] = {"eps": 0.05, "delta": 0.05, "method": "bundle", "rng": 5}
    with pytest.raises(gs.OracleError, match="gradient is nan"):
        gs.minimize(f.fun, [3.0, -2.0, 1.0], jac, checkpoint=path, **ask)
    broken = False
    res = gs.minimize(f.fun, [3.0, -2.0, 1.0], jac, checkpoint=path, **ask)
    same(res, gs.minimize(f.fun, [3.0, -2.0, 1.0], jac, **ask))


def test_a_larger_budget_continues(tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    assert not solve(Recorded(), path, max_calls=15).success
    same(solve(Recorded(), path), solve(Recorded(), None))
