"""Folders of many starts from a stranger: every file in them is confirmed, and honest ones are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.parallel import multistart
from goldstein.result import Status
from goldstein.storage.folder import Folder, described, digest

STARTS = [np.array([2.0, 1.0]), np.array([1.5, -1.0])]
W = gs.Variable(2)


def total(x: Any) -> float:
    return float(np.abs(x).sum())


def at_least_one(x: Any) -> float:
    return float(x[0] - 1.0)


def first(x: Any) -> Any:
    return np.array([1.0, 0.0])


def never(x: Any) -> float:
    return float(-1.0 - x @ x)


ABOVE = {"type": "ineq", "fun": at_least_one, "jac": first}
NOWHERE = {"type": "ineq", "fun": never, "jac": lambda x: -2.0 * x}
ROUGH = {"eps": 0.5, "delta": 0.5}

#: What can be asked: f, its gradient, and the rest.
MODES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "plain": (total, np.sign, {}),
    "relative": (total, np.sign, {"eps": None, "rel_eps": 1e-2}),
    "bounds": (total, np.sign, {"bounds": [(0.5, None), (None, None)]}),
    "bounds, relative": (
        total, np.sign, {"bounds": [(0.5, None), (None, None)], "eps": None, "rel_eps": 1e-2},
    ),
    "constraints": (total, np.sign, {"constraints": ABOVE}),
    "constraint without gradient": (
        total, np.sign, {**ROUGH, "constraints": {"type": "ineq", "fun": at_least_one}},
    ),
    "infeasible": (total, np.sign, {"constraints": NOWHERE}),
    "plus": (total, np.sign, {"plus": gs.prox.l1(0.5)}),
    "plus and bounds": (total, np.sign, {"plus": gs.prox.l1(0.5), "bounds": [(-1.0, 3.0)] * 2}),
    "near": (gs.norm1(W), None, {"stationarity": "near"}),
    "near, constraints": (
        gs.norm1(W), None, {"stationarity": "near", "constraints": W[0] >= 1.0},
    ),
    "values": (total, "2-point", ROUGH),
    "values, relative": (total, "2-point", {**ROUGH, "eps": None, "rel_eps": 0.3}),
    "values, bounds": (total, "2-point", {**ROUGH, "bounds": [(-1.0, 3.0)] * 2}),
    "values, infeasible": (total, "2-point", {**ROUGH, "constraints": {**NOWHERE, "jac": None}}),
}  # fmt: skip


def run(mode: str, folder: Path) -> Any:
    fun, jac, options = MODES[mode]
    asked = {"eps": 1e-2, "delta": 1e-2, "rng": 0, "n_jobs": 1, **options}
    return multistart(fun, STARTS, jac, folder=folder, **asked)


@pytest.mark.parametrize("mode", MODES)
def test_honest_folders_are_resumed(mode: str, tmp_path: Path) -> None:
    made, again = run(mode, tmp_path), run(mode, tmp_path)
    assert [r.status for r in again.results] == [r.status for r in made.results]
    assert [r.time for r in again.results] == [r.time for r in made.results]  # not done again


Change = Callable[[gs.Result], gs.Result]


def forge(mode: str, folder: Path, change: Change) -> None:
    """Put another result in the place of the first, with all hashes right."""
    honest = run(mode, folder)
    options = {"eps": 1e-2, "delta": 1e-2, **MODES[mode][2]}
    fun = MODES[mode][0]
    name = fun.name if isinstance(fun, gs.Expression) else fun.__name__
    identity = {"kind": "multistart", "function": name, "seed": 0, "options": described(options)}
    with Folder(folder, identity) as held:
        held.save(0, digest(STARTS[0]), change(honest.results[0]))


def moved(x: Any, certificate: Any, fun: float | None = None) -> Change:
    there = np.array(x, dtype=float)
    value = total(there) if fun is None else fun
    return lambda r: replace(r, x=there, fun=value, certificate=certificate)


def stationary() -> Any:
    """True of f alone."""
    return gs.certify(total, [0.0, 0.0], np.sign, delta=1e-3, rng=0)


def weak() -> Any:
    return gs.certify(total, [1.5, 1.5], np.sign, delta=1e-3, rng=0)


def statistical() -> Any:
    return gs.certify(total, [0.0, 0.0], "2-point", delta=1e-2, eps=1e-2, rng=0)


FORGED: dict[str, tuple[str, Callable[[], Change]]] = {
    "a claim that forgets the constraints": ("constraints", lambda: moved([0, 0], stationary())),
    "a claim that forgets the bounds": ("bounds", lambda: moved([0, 0], stationary())),
    "statistics for a proof": ("plain", lambda: moved([0, 0], statistical())),
    "less than was asked for": ("plain", lambda: moved([1.5, 1.5], weak())),
    "less than was asked for, relatively": ("relative", lambda: moved([1.5, 1.5], weak())),
    "less, relatively, with bounds": ("bounds, relative", lambda: moved([1.5, 1.5], weak())),
    "Goldstein for near": (
        "near", lambda: moved([0, 0], gs.certify(gs.norm1(W), [0.0, 0.0], delta=1e-3, rng=0)),
    ),
    "no claim": ("plain", lambda: lambda r: replace(r, certificate=None)),
    "another value": ("plain", lambda: lambda r: replace(r, fun=r.fun - 1.0)),
    "no value": ("plain", lambda: lambda r: replace(r, fun=np.nan)),
    "another point": ("plain", lambda: lambda r: replace(r, x=r.x + 1.0)),
    "another layout": ("plain", lambda: lambda r: replace(r, x={"a": r.x})),
    "Ctrl-C, which ends all starts": (
        "plain",
        lambda: lambda r: replace(r, stopped_by="Ctrl-C", success=False, status=Status.STOPPED),
    ),
    "verified, and no success": ("plain", lambda: lambda r: replace(r, success=False)),
    "infeasible without constraints": (
        "plain", lambda: lambda r: replace(r, success=False, status=Status.INFEASIBLE),
    ),
    "infeasible, which is not so": (
        "constraints", lambda: lambda r: replace(r, success=False, status=Status.INFEASIBLE),
    ),
    "other multipliers": ("constraints", lambda: lambda r: replace(r, multipliers=np.ones(1))),
    "other bound multipliers": (
        "bounds", lambda: lambda r: replace(r, bound_multipliers=np.ones(2)),
    ),
    "another violation": ("constraints", lambda: lambda r: replace(r, violation=-1.0)),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_forged_results_are_refused(what: str, tmp_path: Path) -> None:
    mode, change = FORGED[what]
    forge(mode, tmp_path, change())
    with pytest.raises(gs.InputError, match="results of another function"):
        run(mode, tmp_path)


def test_files_that_are_none(tmp_path: Path) -> None:
    """A device has no end, and a folder no content."""
    made = run("plain", tmp_path)
    (tmp_path / "000000.search").unlink()
    (tmp_path / "000000.search").symlink_to("/dev/zero")
    with pytest.warns(gs.CheckpointWarning, match="is damaged, and done again"):
        again = run("plain", tmp_path)
    assert np.array_equal(again.results[0].x, made.results[0].x)
    for name, words in (("run.json", "not a run of ours"), ("run.lock", "cannot be used")):
        (tmp_path / name).unlink()
        (tmp_path / name).symlink_to("/dev/zero")
        with pytest.raises(gs.CheckpointError, match=words):
            run("plain", tmp_path)
        (tmp_path / name).unlink()
