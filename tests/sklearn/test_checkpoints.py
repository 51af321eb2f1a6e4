"""Fits that are killed, refused, damaged or cut short, and what becomes of them."""

from __future__ import annotations

import os
import pickle
import random
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import kill
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from tests.keyboard import Keyboard

import goldstein as gs
from goldstein.certificates.near import Attempt
from goldstein.fitting import fit as fitting
from goldstein.fitting import margin_fit
from goldstein.sklearn import ReLUNetClassifier, ReLUNetRegressor, RhoMarginSVC

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)

#: An estimator, its data, and the function that its parts come from.
CASES: dict[str, tuple[Any, Any, tuple[Any, str]]] = {
    "ovr": (RhoMarginSVC(multi_class="ovr", n_init=2), IRIS, (margin_fit, "minimise_margin")),
    "native": (RhoMarginSVC(n_init=2), IRIS, (fitting, "minimize")),
    "two classes": (
        RhoMarginSVC(n_init=3, certificate="goldstein"),
        (IRIS[0][50:], IRIS[1][50:]),
        (margin_fit, "minimise_margin"),
    ),
    "regressor": (
        ReLUNetRegressor(width=3, n_init=3, certificate="goldstein"),
        DIABETES,
        (fitting, "minimize"),
    ),
    "mini-batches": (
        ReLUNetClassifier(width=3, n_init=2, solver="psingd", max_calls=400),
        IRIS,
        (fitting, "minimize"),
    ),
    "early": (
        ReLUNetClassifier(width=3, n_init=2, early_stopping=True, max_calls=300),
        IRIS,
        (fitting, "minimize"),
    ),
}


@pytest.fixture(autouse=True)
def short_fits_may_end_early() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fitted(estimator: Any, data: Any, checkpoint: Any = None, **changes: Any) -> Any:
    ready = clone(estimator).set_params(**{"checkpoint": checkpoint, "random_state": 3, **changes})
    return ready.fit(*data)


def same(a: Any, b: Any) -> None:
    assert kill.outcome(a) == kill.outcome(b)


class PowerCut(BaseException):
    """What no code expects."""


def die_after(monkeypatch: pytest.MonkeyPatch, where: tuple[Any, str], calls: int) -> list[int]:
    """Let a fit die at the end of some call; return the list that counts them."""
    module, name = where
    whole, count = getattr(module, name), []

    def mortal(*args: Any, **options: Any) -> Any:
        count.append(1)
        answer = whole(*args, **options)
        if len(count) == calls:
            raise PowerCut
        return answer

    monkeypatch.setattr(module, name, mortal)
    return count


@pytest.mark.parametrize("name", CASES)
def test_interrupted_fits_resume_bit_for_bit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator, data, where = CASES[name]
    whole = fitted(estimator, data)
    with monkeypatch.context() as patched:
        counted = die_after(patched, where, 0)
        same(fitted(estimator, data), whole)
        total = len(counted)
    for calls in sorted({1, 2, total}):
        folder = tmp_path / str(calls)
        with monkeypatch.context() as patched:
            die_after(patched, where, calls)
            with pytest.raises(PowerCut):
                fitted(estimator, data, folder)
        with monkeypatch.context() as patched:
            again = die_after(patched, where, 0)
            same(fitted(estimator, data, folder), whole)
            assert len(again) <= total - calls + 2  # one start at most is done again
        with monkeypatch.context() as patched:
            none = die_after(patched, where, 0)
            same(fitted(estimator, data, folder), whole)
            assert not none


@pytest.mark.parametrize("name", ["native", "regressor", "early"])
def test_ctrl_c_ends_a_fit_which_then_resumes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator, data, _ = CASES[name]
    keyboard = Keyboard(monkeypatch)
    whole = fitted(estimator, data)
    for part in (3, 2):
        keyboard.at, keyboard.calls = keyboard.calls // part, 0
        with pytest.raises(KeyboardInterrupt):
            fitted(estimator, data, tmp_path)
    same(fitted(estimator, data, tmp_path), whole)


@pytest.mark.parametrize("name", ["native", "regressor"])
def test_a_proof_has_as_much_time_after_a_kill(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the clock would decide which certificate a fit that resumes, and is short, has."""
    estimator, data, where = CASES[name]
    left = []

    def slow(*args: Any, deadline: float, **options: Any) -> Any:
        left.append(deadline - time.perf_counter())
        return Attempt(None, "not proved: it takes long")

    monkeypatch.setattr(fitting, "attempt_near", slow)
    with monkeypatch.context() as patched:
        die_after(patched, where, 2)
        with pytest.raises(PowerCut):
            fitted(estimator, data, tmp_path, certificate="near")
    fitted(estimator, data, tmp_path, certificate="near")
    fitted(estimator, data, tmp_path / "undisturbed", certificate="near")
    assert len(left) == 2
    assert min(left) > 0.9 * fitting.KEPT_GRACE


@pytest.mark.slow
@pytest.mark.parametrize("task", kill.FITS[::3], ids=lambda task: task.name)
def test_killed_fits_end_as_undisturbed_ones(task: kill.Task, tmp_path: Path) -> None:
    expected = kill.finished(task, None, kill.PATIENCE)
    assert expected is not None
    assert "failed" not in expected
    kills, rng = 0, random.Random(5)
    while not kills:  # a fit may be quicker than its first life
        told, kills = kill.killed_until_done(task, tmp_path, rng, whole=0.4)
        assert told == expected


REGRESSOR = CASES["regressor"][0]


@pytest.mark.parametrize(
    ("changes", "data", "what"),
    [
        ({"eps": 0.5}, DIABETES, '"eps": 0.01.* and is .*"eps": 0.5'),
        ({"width": 2}, DIABETES, '"width": 3.* and is .*"width": 2'),
        ({"random_state": 4}, DIABETES, "seed was"),
        ({}, (DIABETES[0] + 1e-12, DIABETES[1]), "X was"),
        ({}, (DIABETES[0], DIABETES[1][::-1]), "y was"),
        ({}, (*DIABETES, np.arange(1.0, 443.0)), "weights was"),
    ],
)
def test_another_fit_is_refused_with_the_reason(
    changes: dict[str, Any], data: Any, what: str, tmp_path: Path
) -> None:
    fitted(REGRESSOR, DIABETES, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(gs.CheckpointError, match=f"belongs to another run: .*{what}"):
        fitted(REGRESSOR, data, tmp_path, **changes)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_version_is_refused(tmp_path: Path) -> None:
    fitted(REGRESSOR, DIABETES, tmp_path)
    run = tmp_path / "run.json"
    run.write_text(run.read_text().replace(gs.__version__, "0.0.7"))
    with pytest.raises(gs.CheckpointError, match=r'goldstein was "0\.0\.7"'):
        fitted(REGRESSOR, DIABETES, tmp_path)
    run.write_text("[1, 2")
    with pytest.raises(gs.CheckpointError, match="not a run of ours"):
        fitted(REGRESSOR, DIABETES, tmp_path)


def test_damaged_parts_are_done_again_with_a_message(tmp_path: Path) -> None:
    whole = fitted(REGRESSOR, DIABETES, tmp_path)
    for part in sorted(tmp_path.glob("*.part")):
        blob = bytearray(part.read_bytes())
        for k in range(
            len(blob) // 2, len(blob) // 2 + 64
        ):  # one byte may be a date of the archive
            blob[k] ^= 0x41
        part.write_bytes(blob)
        if part.name != "whole.part":  # else the others are not looked at
            (tmp_path / "whole.part").unlink()
        with pytest.warns(gs.CheckpointWarning, match=f"damaged, and done again: .*{part.name}"):
            same(fitted(REGRESSOR, DIABETES, tmp_path), whole)


@pytest.mark.parametrize("name", ["regressor", "two classes", "native"])
@pytest.mark.parametrize("lie", ["x", "value", "eps"])
def test_forged_parts_are_refused(name: str, lie: str, tmp_path: Path) -> None:
    """A file may be made by anybody: what it says must hold for the data."""
    from dataclasses import replace

    from goldstein.fitting.fit import FIT
    from goldstein.storage.folder import load_part, save_part

    estimator, data, _ = CASES[name]
    fitted(estimator, data, tmp_path)
    (path,) = tmp_path.glob("*whole.part")
    found = load_part(path, FIT)
    assert found is not None
    fit = found.content
    claim = fit.goldstein
    fresh = {"digest": ""} if hasattr(claim, "digest") else {}
    if lie == "x":
        there = fit.x + 0.5
        fit = replace(fit, x=there, goldstein=replace(claim, x=there, **fresh), near=None)
    elif lie == "value":
        fit = replace(fit, value=fit.value - 0.01)
    else:
        fit = replace(fit, goldstein=replace(claim, eps=claim.eps / 100, **fresh), near=None)
    save_part(path, FIT, fit, found.tag, found.seconds)
    with pytest.raises(gs.CheckpointError, match="about another function"):
        fitted(estimator, data, tmp_path)


def test_a_second_fit_is_refused_while_the_first_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, said = fitting.minimize, []

    def nested(*args: Any, **options: Any) -> Any:
        if not said:
            with pytest.raises(gs.CheckpointError, match="in use by another run") as caught:
                fitted(REGRESSOR, DIABETES, tmp_path)
            said.append(str(caught.value))
        return whole(*args, **options)

    monkeypatch.setattr(fitting, "minimize", nested)
    same(fitted(REGRESSOR, DIABETES, tmp_path), fitted(REGRESSOR, DIABETES))
    assert said


def test_a_larger_limit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fitted(REGRESSOR, DIABETES)
    for limit in (20, 60):
        fitted(REGRESSOR, DIABETES, tmp_path, max_calls=limit)
    asked: list[int] = []
    recall = gs.storage.journal.Journal._asked_now

    def counting(self: Any, *question: Any) -> Any:
        asked.append(1)
        return recall(self, *question)

    monkeypatch.setattr(gs.storage.journal.Journal, "_asked_now", counting)
    same(fitted(REGRESSOR, DIABETES, tmp_path), whole)
    fresh = len(asked)
    fitted(REGRESSOR, DIABETES, tmp_path / "another")
    assert len(asked) - fresh >= fresh + 3 * 20  # answers of the shorter fits were not asked for


def test_a_fit_without_a_seed_takes_that_of_its_checkpoint(tmp_path: Path) -> None:
    first = fitted(REGRESSOR, DIABETES, tmp_path, random_state=None)
    same(fitted(REGRESSOR, DIABETES, tmp_path, random_state=None), first)


def test_other_kinds_of_data(tmp_path: Path) -> None:
    X, y = IRIS
    machine = RhoMarginSVC(multi_class="ovr", certificate="goldstein")
    names = np.array(["a", "b", "c"], dtype=object)[y]
    for k, data in enumerate([(sparse.csr_array(X), y), (X, names)]):
        same(fitted(machine, data, tmp_path / str(k)), fitted(machine, data))
        same(fitted(machine, data, tmp_path / str(k)), fitted(machine, data))
    same(fitted(machine, IRIS, tmp_path / "two", n_jobs=2), fitted(machine, IRIS))
    other = sparse.csr_array(X + np.eye(150, 4))
    with pytest.raises(gs.CheckpointError, match="X was"):
        fitted(machine, (other, y), tmp_path / "0")


def test_dask_arrays(tmp_path: Path) -> None:
    da = pytest.importorskip("dask.array")
    X, y = IRIS
    machine = RhoMarginSVC(multi_class="ovr", certificate="goldstein")
    chunks = da.from_array(X, chunks=(50, 4))
    same(fitted(machine, (chunks, y), tmp_path), fitted(machine, (chunks, y)))
    same(
        fitted(machine, (da.from_array(X, chunks=(50, 4)), y), tmp_path),
        fitted(machine, (chunks, y)),
    )
    with pytest.raises(gs.CheckpointError, match="X was"):
        fitted(machine, (da.from_array(X[::-1], chunks=(50, 4)), y), tmp_path)


def test_a_full_disk_is_said_and_the_fit_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, full = os.fsync, threading.Event()

    def no_room(descriptor: int) -> None:
        if full.is_set():
            raise OSError(28, os.strerror(28))
        whole(descriptor)

    def fills(*args: Any, **options: Any) -> Any:
        full.set()
        return minimise(*args, **options)

    minimise = margin_fit.minimise_margin
    machine = RhoMarginSVC(multi_class="ovr")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", no_room)
        patched.setattr(margin_fit, "minimise_margin", fills)
        with pytest.raises(gs.CheckpointError, match=r"No space left.*same call continues"):
            fitted(machine, IRIS, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "run.lock"}
    same(fitted(machine, IRIS, tmp_path), fitted(machine, IRIS))


def test_places_that_are_no_folders(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(gs.CheckpointError, match="cannot be used"):
            fitted(REGRESSOR, DIABETES, path)
    assert (tmp_path / "file").read_text() == "mine"
    for wrong in (3, b"folder", [tmp_path]):
        with pytest.raises(gs.InputTypeError, match="checkpoint must be the path of a folder"):
            fitted(REGRESSOR, DIABETES, wrong)


def test_what_a_killed_writer_left_is_swept(tmp_path: Path) -> None:
    fitted(REGRESSOR, DIABETES, tmp_path)
    (tmp_path / ".whole.part.77-8.partial").write_bytes(b"half")
    fitted(REGRESSOR, DIABETES, tmp_path)
    assert not list(tmp_path.glob(".*"))


def test_estimators_with_a_checkpoint_are_cloned_and_pickled(tmp_path: Path) -> None:
    fit = fitted(REGRESSOR, DIABETES, tmp_path)
    assert clone(fit).checkpoint == tmp_path
    assert np.array_equal(pickle.loads(pickle.dumps(fit)).parameters_, fit.parameters_)


def test_a_weaker_kind_does_not_pass_for_a_near_certificate(tmp_path: Path) -> None:
    """A Goldstein certificate where a near one belongs is damage: the part is done again."""
    from dataclasses import replace

    from goldstein.fitting.fit import FIT
    from goldstein.storage.folder import load_part, save_part

    estimator, data, _ = CASES["two classes"]
    whole = fitted(estimator, data, tmp_path)
    (path,) = tmp_path.glob("*whole.part")
    found = load_part(path, FIT)
    assert found is not None
    fit: Any = replace(found.content, near=found.content.goldstein)
    assert isinstance(fit.near, gs.GoldsteinCertificate)
    save_part(path, FIT, fit, found.tag, found.seconds)
    with pytest.warns(gs.CheckpointWarning, match="a near certificate"):
        same(fitted(estimator, data, tmp_path), whole)
    assert whole.near_stationarity_ is None


@pytest.mark.parametrize(
    ("name", "lie"),
    [("two classes", lie) for lie in ("shape", "not finite", "rows")]
    + [("native", lie) for lie in ("shape", "not finite")],
)
def test_forged_searches_are_refused(name: str, lie: str, tmp_path: Path) -> None:
    from goldstein.storage.codec import read_record, write_record

    estimator, data, _ = CASES[name]
    fitted(estimator, data, tmp_path)
    for path in tmp_path.glob("*whole.part"):
        path.unlink()
    path = min(tmp_path.glob("*start-0.part"))
    kind, arrays, fields = read_record(path, lambda *parts: parts)
    point = "v" if "v" in arrays else "x"
    if lie == "shape":
        arrays[point] = arrays[point][:-1]
    elif lie == "not finite":
        arrays[point] = arrays[point] * np.nan
    else:
        arrays["active"], arrays["shares"] = np.array([10**6]), np.ones(1)
    write_record(path, kind, arrays, fields)
    refused = gs.CheckpointError, gs.CheckpointWarning
    with pytest.raises(refused, match=r"about another function|damaged, and done again"):
        fitted(estimator, data, tmp_path)
