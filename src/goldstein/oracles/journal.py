"""A checkpoint that needs nothing from the solver: the journal of all oracle answers.

Solvers are deterministic given the seed, so a run is resumed bit for bit by replaying the answers
that were paid for already. The file is appended to as the run goes; a half-written last record,
the mark of a killed process, is dropped. Some replayed answers (number 1, 2, 4, 8, ... and the
last) are asked for again: a journal of another function is noticed and refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, KinkError
from goldstein.oracles.answers import BadAnswer, as_gradient, as_value
from goldstein.oracles.base import Oracle

_MAGIC = b"goldstein journal 1\n"
_HEAD = struct.Struct("<c8sq")  # kind, digest of the point, number of floats


class JournalOracle(Oracle):
    """Answer from the journal as long as it lasts, then from the function, writing as we go.

    Parameters
    ----------
    inner : Oracle
    path : path of the journal
    identity : dict
        JSON-able description of the run; a journal of another run is refused.
    """

    def __init__(self, inner: Oracle, path: str | Path, identity: dict[str, Any]) -> None:
        self.inner = inner
        self.knows_kinks = inner.knows_kinks
        self.dim = inner.dim
        self.has_value = inner.has_value
        self.has_gradient = inner.has_gradient
        self.path = Path(path)
        self._replay: list[tuple[bytes, bytes, bytes]] = []
        self._next = 0
        self._silent = False
        header = _MAGIC + json.dumps(identity, sort_keys=True).encode() + b"\n"
        try:
            end = self._load(header) if self.path.exists() else None
            self._file: BinaryIO = open(self.path, "r+b" if end is not None else "wb")  # noqa: SIM115
        except OSError as failure:
            raise InputError(
                f"checkpoint {self.path} cannot be used ({failure.strerror}); name a file in an "
                "existing folder."
            ) from failure
        if end is None:
            self._file.write(header)
        else:
            self._file.seek(end)
            self._file.truncate()
        self._file.flush()

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def replayed(self) -> int:
        """Answers taken from the journal so far."""
        return self._next

    @contextlib.contextmanager
    def off_the_record(self) -> Iterator[None]:
        """Let questions pass by the journal: a longer run would not ask them."""
        self._silent = True
        try:
            yield
        finally:
            self._silent = False

    def close(self) -> None:
        self._file.close()

    def value(self, x: Vector) -> float:
        if self._silent:
            return self.inner.value(x)
        stored = self._recall(b"v", x)
        if stored is not None:
            answer = float(np.frombuffer(stored)[0])
            if self._doubt():
                self._compare(answer, self.inner.value(x))
            return answer
        place = _digest(x)  # before a function that works in place spoils the point
        raw = self.inner.value(x)
        try:
            answer = as_value(raw)
        except BadAnswer as bad:
            if bad.value is None:
                return raw  # the guard above us says what is wrong; nothing of it is kept
            answer = bad.value  # a run may step back from such a point and go on
        self._write(b"v", place, struct.pack("<d", answer))
        return answer

    def gradient(self, y: Vector) -> Vector:
        return self._gradient(self.inner.gradient, y)

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        return self._gradient(lambda z: self.inner.sample(z, rng), x)

    def _gradient(self, question: Callable[[Vector], Vector], y: Vector) -> Vector:
        if self._silent:
            return question(y)
        stored = self._recall(b"g", y)
        if stored is not None:
            answer = np.frombuffer(stored).copy()
            if self._doubt():
                self._compare(answer, question(y))
            return answer
        place = _digest(y)
        try:
            raw = question(y)
        except KinkError:
            self._write(b"k", place, b"")
            raise
        try:
            answer = as_gradient(raw, y.shape)
        except BadAnswer:
            return raw
        self._write(b"g", place, answer.tobytes())
        return answer

    def _doubt(self) -> bool:
        """Whether the answer just replayed is one of those that are asked for again."""
        number = self._next
        return number & (number - 1) == 0 or number == len(self._replay)

    def _compare(self, stored: Any, fresh: Any) -> None:
        size = float(np.abs(stored).max()) if np.isfinite(stored).all() else 0.0
        if not np.allclose(stored, fresh, rtol=1e-9, atol=1e-9 * size, equal_nan=True):
            raise InputError(
                f"checkpoint {self.path} was made with another function (answer {self._next} "
                "differs when asked again); name another file, or delete it to start afresh."
            )

    def _load(self, header: bytes) -> int:
        blob = self.path.read_bytes()
        if not blob.startswith(_MAGIC):
            raise InputError(
                f"checkpoint {self.path} is not a goldstein checkpoint; name another file."
            )
        if not blob.startswith(header):
            raise InputError(
                f"checkpoint {self.path} belongs to another problem, other options or another "
                "seed; name another file, or delete it to start afresh."
            )
        at = len(header)
        while at + _HEAD.size <= len(blob):
            kind, digest, count = _HEAD.unpack_from(blob, at)
            stop = at + _HEAD.size + 8 * count
            if kind not in (b"v", b"g", b"k") or count < 0 or stop > len(blob):
                break
            self._replay.append((kind, digest, blob[at + _HEAD.size : stop]))
            at = stop
        if self._replay and self._replay[-1][0] == b"v":
            # The run may have died of this answer; let the function, perhaps mended, say it again.
            payload = self._replay[-1][2]
            if not np.isfinite(np.frombuffer(payload)).all():
                self._replay.pop()
                at -= _HEAD.size + len(payload)
        return at

    def _recall(self, kind: bytes, x: Vector) -> bytes | None:
        if self._next >= len(self._replay):
            return None
        stored_kind, digest, payload = self._replay[self._next]
        if stored_kind == b"k" and kind == b"g" and digest == _digest(x):
            self._next += 1
            raise KinkError("the function has a kink there (from the checkpoint)", x.copy())
        if stored_kind != kind or digest != _digest(x):
            raise InputError(
                f"checkpoint {self.path} does not fit this run (answer {self._next + 1} was for "
                "another point); the function, the library or the machine has changed. "
                "Delete the file to start afresh."
            )
        self._next += 1
        return payload

    def _write(self, kind: bytes, place: bytes, payload: bytes) -> None:
        self._file.write(_HEAD.pack(kind, place, len(payload) // 8) + payload)
        self._file.flush()


def _digest(x: Vector) -> bytes:
    return hashlib.blake2b(x.tobytes(), digest_size=8).digest()


def seed_in(path: str | Path) -> int | None:
    """Return the seed recorded in a journal, so that `rng=None` can resume it."""
    source = Path(path)
    if not source.exists():
        return None
    with open(source, "rb") as file:
        if file.readline() != _MAGIC:
            return None
        try:
            identity = json.loads(file.readline())
        except (ValueError, RecursionError):
            return None
    seed = identity.get("seed") if isinstance(identity, dict) else None
    return seed if isinstance(seed, int) else None
