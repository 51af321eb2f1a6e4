"""Journals from a stranger, all sums right: refused, or the run ends with what is true."""

from __future__ import annotations

import contextlib
import json
import os
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goldstein as gs

START = [2.0, -1.5, 1.0]
HEAD = struct.Struct("<B16sq")
MAGIC = b"goldstein journal 2\n"


def bowl(x: Any) -> float:
    return float(abs(x[0]) + 0.05 * np.abs(x[1:] - 3.0) @ np.abs(x[1:] - 3.0))


def slope(x: Any) -> Any:
    return np.array([np.sign(x[0]), *(0.1 * (x[1:] - 3.0))])


SPHERE = {"type": "eq", "fun": lambda x: x @ x - 4.0, "jac": lambda x: 2.0 * x}
BALL = {"type": "ineq", "fun": lambda x: 9.0 - x @ x}
TASKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (slope, {}),
    "bounds": (slope, {"bounds": [(-1.0, None)] * 3}),
    "constraints": (slope, {"constraints": SPHERE}),
    "values": ("2-point", {"max_calls": 300}),
    "values, constraints": ("2-point", {"max_calls": 300, "constraints": BALL}),
}

Record = list[Any]


def taken_apart(blob: bytes) -> tuple[bytes, list[Record]]:
    at = blob.index(b"\n", len(MAGIC)) + 1
    header, records = blob[:at], []
    while at < len(blob):
        width, digest, count = HEAD.unpack(blob[at : at + HEAD.size])
        stop = at + HEAD.size + 8 * count
        records.append([width, digest, np.frombuffer(blob[at + HEAD.size : stop])])
        at = stop + 4
    return header, records


def put_together(header: bytes, records: list[Record]) -> bytes:
    whole = header
    for width, digest, numbers in records:
        record = HEAD.pack(width, digest, len(numbers)) + np.asarray(numbers).tobytes()
        whole += record + struct.pack("<I", zlib.crc32(record))
    return whole


def forged(records: list[Record], rng: random.Random) -> list[Record]:
    """Change kinds, lengths, numbers, questions and order of some answers."""
    records = [list(record) for record in records]
    for _ in range(rng.choice([1, 1, 2, 5, 50])):
        record = rng.choice(records)
        numbers = record[2].copy()
        trick = rng.randrange(9)
        if trick == 0:
            record[0] = rng.choice([0, 2, 4, 8])
        elif trick == 1:
            record[2] = np.zeros(rng.choice([0, 1, 2, 3, 7, 100]))
        elif trick == 2 and numbers.size:
            strange = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 1e-320]
            numbers[rng.randrange(numbers.size)] = rng.choice(strange)
            record[2] = numbers
        elif trick == 3:
            with np.errstate(invalid="ignore"):  # 0 times an infinity that another trick planted
                record[2] = numbers * rng.choice([-1.0, 0.0, 2.0, 1.0 + 1e-6])
        elif trick == 4:
            record[2] = numbers + rng.choice([1e-3, 1.0, -5.0])
        elif trick == 5:
            records.append(list(record))
        elif trick == 6:
            record[1] = rng.choice(records)[1]
        elif trick == 7:
            rng.shuffle(records)
        else:
            record[0], record[2] = 0, np.zeros(0)
    return records


@pytest.mark.filterwarnings("ignore::goldstein.CheckpointWarning", "ignore:overflow")
@pytest.mark.parametrize("name", TASKS)
def test_forged_answers_are_refused_or_the_end_is_true(name: str, tmp_path: Path) -> None:
    jac, options = TASKS[name]
    path, rng = tmp_path / "run.journal", random.Random(name)
    ask: dict[str, Any] = {"eps": 0.3, "delta": 0.1, "rng": 0, "checkpoint": path, **options}
    gs.minimize(bowl, START, jac, **ask)
    header, records = taken_apart(path.read_bytes())
    ends, refused = 0, 0
    for _ in range(60):
        path.write_bytes(put_together(header, forged(records, rng)))
        with np.errstate(all="ignore"):
            try:
                res = gs.minimize(bowl, START, jac, **ask)
            except (gs.CheckpointError, gs.OracleError):
                refused += 1
                continue
        ends += 1
        assert res.fun == pytest.approx(bowl(res.x), abs=1e-8)
        if res.success:
            limits = {k: v for k, v in options.items() if k in ("bounds", "constraints")}
            assert res.certificate.verify(bowl, jac, **limits).ok
    assert ends > 5
    assert refused > 5


def test_answers_that_can_be_none_are_refused_by_name(tmp_path: Path) -> None:
    """Neither the function nor a bare exception is to blame for what a file says."""
    path = tmp_path / "run.journal"
    ask: dict[str, Any] = {"eps": 0.3, "delta": 0.1, "rng": 0, "constraints": SPHERE}
    gs.minimize(bowl, START, slope, checkpoint=path, **ask)
    header, records = taken_apart(path.read_bytes())
    for k in range(2, len(records), 7):
        kept, length = records[k], len(records[k][2])
        bad = [np.zeros(0), np.zeros(length + 1)] + ([np.full(3, np.inf)] if length == 3 else [])
        for numbers in bad:
            records[k] = [8, kept[1], numbers]
            path.write_bytes(put_together(header, records))
            with pytest.raises(gs.CheckpointError, match=r"was altered|was made with another"):
                gs.minimize(bowl, START, slope, checkpoint=path, **ask)
        records[k] = kept


def test_a_false_value_at_the_end_is_noticed(tmp_path: Path) -> None:
    """The certificate is true of x; f(x) would not be."""
    path = tmp_path / "run.journal"
    ask: dict[str, Any] = {"eps": 0.3, "delta": 0.1, "rng": 0, "checkpoint": path}
    whole = gs.minimize(bowl, START, slope, **ask)
    header, records = taken_apart(path.read_bytes())
    changed = 0
    for record in records:
        if len(record[2]) == 1 and record[2][0] == whole.fun:
            record[2], changed = record[2] - 1e-3, changed + 1
    assert changed
    path.write_bytes(put_together(header, records))
    with pytest.raises(gs.CheckpointError, match="another function"):
        gs.minimize(bowl, START, slope, **ask)


@pytest.mark.parametrize("seed", [-1, 2**64, 10**300, 1.5, "0", True, [0], {"a": 1}, None])
def test_any_seed_in_a_header(seed: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.journal"
    gs.minimize(bowl, START, slope, eps=0.3, delta=0.1, rng=0, checkpoint=path)
    line, rest = path.read_bytes()[len(MAGIC) :].split(b"\n", 1)
    line = json.dumps({**json.loads(line), "seed": seed}, sort_keys=True).encode()
    path.write_bytes(MAGIC + line + b"\n" + rest)
    with contextlib.suppress(gs.CheckpointError):
        assert gs.minimize(bowl, START, slope, eps=0.3, delta=0.1, checkpoint=path).success


def test_places_that_are_no_files(tmp_path: Path) -> None:
    """A pipe would be waited for, a device has no end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "alias").symlink_to(tmp_path / "mine")
    for name in ("pipe", "link", "loop", "alias", "a\0b", "."):
        with pytest.raises(gs.CheckpointError):
            gs.minimize(bowl, START, slope, eps=0.3, delta=0.1, checkpoint=tmp_path / name)
    assert (tmp_path / "mine").read_text() == "precious"
