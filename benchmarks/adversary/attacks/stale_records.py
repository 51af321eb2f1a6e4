"""Folders and journals of a function that has changed since: what they hold is not believed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, scratch, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs

#: What the function adds up; changed between two runs, as data on disk are.
DATA: dict[str, Any] = {}


def _value(x: Any) -> float:
    z, r = x - DATA["kinks"], DATA["dent"]
    # Within r of its kink f has moved it by r / 2, and is as it was elsewhere.
    inside = np.where(z < r / 2, (2 * r / 3) * (0.5 - z / max(r, 1e-300)), 2 * z - r)
    return float(np.where(np.abs(z) < r, inside, np.abs(z)).sum() + DATA["slope"] @ x)


def _gradient(x: Any) -> Any:
    z, r = x - DATA["kinks"], DATA["dent"]
    inside = np.where(z < r / 2, -2.0 / 3.0, 2.0)
    return np.where(np.abs(z) < r, inside, np.sign(z)) + DATA["slope"]


def stale_records(rng: Rng, seen: Seen) -> None:
    dim = int(rng.integers(1, 4))
    kinks = rng.uniform(-1, 1, dim)
    slope = np.zeros(dim)
    slope[0] = float(rng.choice([1.5, -2.0, 1.1]))
    DATA.update(kinks=kinks, slope=np.zeros(dim), dent=0.0)
    ask: dict[str, Any] = {"eps": 1e-2, "delta": 1e-3, "rng": 0, "max_calls": 400}
    place = scratch() / "stale"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    run = (_journal, _starts)[int(rng.integers(2))]
    changes: list[dict[str, Any]] = [{"kinks": kinks + 0.5}, {"slope": slope}, {"dent": 0.01}, {}]
    change = changes[int(rng.integers(4))]
    seen.note(f"{run.__name__}, kinks {kinks.tolist()}, then {change}")
    try:
        run(place, rng.uniform(-2, 2, dim), ask)
        DATA.update(change)  # the minimum is no longer stationary, or nothing has happened
        claims = run(place, rng.uniform(-2, 2, dim) if rng.random() < 0.2 else None, ask)
    except gs.GoldsteinError as refusal:
        seen.silent(f"refused: {refusal}")
        return
    for success, claim in claims:
        _judge(seen, success, claim)


def _judge(seen: Seen, success: bool, claim: Any) -> None:
    if claim is None or not success:
        seen.silent("no success")
        return
    kinks = DATA["kinks"] + DATA["dent"] / 2
    far = np.abs(claim.x - kinks) > claim.delta
    here = np.abs(_gradient(claim.x))
    both = np.maximum(np.abs(DATA["slope"]) - 1.0, 0.0)
    true = float(np.linalg.norm(np.where(far, here, both)))
    ok, label = verdict(claim, _value, _gradient)
    wrong = below(claim.eps, true)
    # What is called a success is believed, whether anybody verifies it or not.
    seen.claim(
        True, label, not wrong, f"a success, verified {ok}: {claim.summary()}; truth {true!r}"
    )


Runs = list[tuple[bool, Any]]
_last: list[Any] = []


def _journal(place: Path, start: Any, ask: dict[str, Any]) -> Runs:
    if start is not None:
        _last[:] = [start]
    result = gs.minimize(_value, _last[0], _gradient, checkpoint=place / "run.journal", **ask)
    return [(result.success, result.certificate)]


def _starts(place: Path, start: Any, ask: dict[str, Any]) -> Runs:
    from goldstein.parallel import multistart

    if start is not None:
        _last[:] = [start]
    starts = np.array([_last[0], -_last[0]])
    found = multistart(_value, starts, _gradient, folder=place / "starts", n_jobs=1, **ask)
    results = [result for result in found.results if result is not None]
    return [(result.success, result.certificate) for result in results]


ATTACK = Attack(
    "stale-records",
    "journals and folders of many starts of a function that has changed since",
    weight=2,
    one=stale_records,
)
