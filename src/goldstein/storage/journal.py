"""A checkpoint that needs nothing from the solver: the journal of all answers.

Solvers are deterministic given the seed, so a run is resumed bit for bit by giving the answers that
were paid for already: each record says what was asked, where, and what was answered. The file is
appended to as the run goes; damaged records are cut off, with a message. Some answers (number 1, 2,
4, 8, ... and the last) are asked for again: a journal of another function is noticed and refused.

A journal stops growing at `LIMIT` bytes: long answers are then left out, and asked for again by a
run that resumes.
"""

import contextlib
import hashlib
import json
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.errors import CheckpointError, KinkError
from goldstein.storage.files import LockedFile

#: Bytes at which a journal stops to keep answers longer than `SHORT` bytes.
LIMIT = 4 * 2**30
SHORT = 2**10

_MAGIC = b"goldstein journal 2\n"
_OLDER = b"goldstein journal 1\n"
_HEADER_LIMIT = 2**20
_HEAD = struct.Struct("<B16sq")  # bytes of a number (0: a kink), digest of the question, numbers
_SUM = struct.Struct("<I")
_TYPES = {8: np.float64, 4: np.float32, 2: np.float16}
_AFRESH = "name another file, or delete it to start afresh"


Question = Callable[[Vector], NDArray[Any]]
Fits = Callable[[Vector | None], bool]


class _Record(NamedTuple):
    width: int  # bytes of a number; 0 for a kink
    at: int  # where the numbers begin
    size: int


class Journal:
    """Answers kept in a file.

    Parameters
    ----------
    path : path
        A new file, or a journal of the same run.
    identity : dict
        JSON-able description of the run; a journal of another run is refused.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(folder + "/run.journal", {"seed": 0})
    ...     answer = journal.asked("square", np.array([3.0]), np.square)
    ...     journal.close()
    >>> answer
    array([9.])
    """

    def __init__(self, path: str | Path, identity: dict[str, Any]) -> None:
        self.path = Path(path)
        #: Answers taken from the journal so far.
        self.recalled = 0
        #: Why the journal cannot be used any more; whatever a search does about an error of the
        #: function must not hide it.
        self.failure: CheckpointError | None = None
        self._known: dict[bytes, list[_Record]] = defaultdict(list)
        self._asked: dict[bytes, int] = defaultdict(int)
        self._last: _Record | None = None
        self._full = False
        self._file = LockedFile(path)
        try:
            self._begin(json.loads(json.dumps(identity)))
        except BaseException:
            self._file.close()
            raise

    def _begin(self, identity: dict[str, Any]) -> None:
        file = self._file
        file.end = self._require_ours(identity) if file.size else 0
        if file.end:
            self._scan()
            return
        file.cut()
        try:
            file.append(_MAGIC + json.dumps(identity, sort_keys=True).encode() + b"\n")
        except CheckpointError:
            with contextlib.suppress(OSError):
                self.path.unlink()
            raise

    def _require_ours(self, identity: dict[str, Any]) -> int:
        """Return where the records begin, 0 if there is not even a whole header."""
        magic = self._file.read(0, len(_MAGIC))
        if magic == _OLDER:
            raise self._refused("was written by an older version of goldstein")
        if magic != _MAGIC:
            raise CheckpointError(
                f"checkpoint {self.path} is not a goldstein checkpoint; name another file."
            )
        line, newline, _ = self._file.read(len(_MAGIC), _HEADER_LIMIT).partition(b"\n")
        if not newline and self._file.size < _HEADER_LIMIT:
            self._file.say("holds nothing but a part of its header: the run starts afresh")
            return 0
        recorded = _parsed(line)
        if recorded is None:
            raise self._refused("has a damaged header")
        if recorded != identity:
            raise self._refused(
                "belongs to another problem, other options, another seed or another version: "
                + _differences(recorded, identity)
            )
        return len(_MAGIC) + len(line) + 1

    def _refused(self, why: str) -> CheckpointError:
        return CheckpointError(f"checkpoint {self.path} {why}; {_AFRESH}.")

    def _scan(self) -> None:
        """Learn what is there, and cut off what is damaged."""
        file, number, digest = self._file, 0, b""
        while (found := self._record_at(file.end)) is not None:
            self._last, digest = found
            self._known[digest].append(self._last)
            number, file.end = number + 1, self._last.at + 8 * self._last.size + _SUM.size
        if file.end < file.size:
            file.say(
                f"is damaged after {number} answers, as a run leaves it that was stopped while "
                f"writing; its last {file.size - file.end} bytes are cut off, and asked for again"
            )
        last = self._last
        if last is not None and last.size == 1 and not np.isfinite(self._numbers(last)).all():
            # The run may have died of this answer; let the function, perhaps mended, say it again.
            self._known[digest].pop()
            file.end, self._last = last.at - _HEAD.size, None
        if file.end < file.size:
            file.cut()

    def _record_at(self, place: int) -> tuple[_Record, bytes] | None:
        """Return the record there and the digest of its question, None if it is not whole."""
        head = self._file.read(place, _HEAD.size)
        if len(head) < _HEAD.size:
            return None
        width, digest, count = _HEAD.unpack(head)
        begin = place + _HEAD.size
        stop = begin + 8 * count
        if width not in (0, *_TYPES) or count < 0 or stop + _SUM.size > self._file.size:
            return None
        total = zlib.crc32(head)
        for piece in range(begin, stop, 2**20):  # the whole may be larger than memory
            total = zlib.crc32(self._file.read(piece, min(2**20, stop - piece)), total)
        whole = self._file.read(stop, _SUM.size) == _SUM.pack(total)
        return (_Record(width, begin, count), digest) if whole else None

    def asked(
        self, what: str, x: Vector, ask: Question, fits: Fits = lambda _: True, more: bytes = b""
    ) -> NDArray[Any]:
        """Return the answer to a question about x from the journal, or ask and keep it.

        `what` is the question in a word, `more` what it depends on besides. Answers are flat arrays
        of floats; a `KinkError` is an answer too. Anybody can write a file: an answer in it that
        does not fit (None for a kink) is refused.
        """
        key = b"\0".join((what.encode(), more, x.tobytes()))
        digest = hashlib.blake2b(key, digest_size=16).digest()
        number = self._asked[digest]
        self._asked[digest] += 1
        known = self._known.get(digest, ())
        try:
            if self.failure is not None:
                raise self.failure
            if number >= len(known):
                return self._asked_now(digest, x, ask)
            self.recalled += 1
            stored = self._numbers(known[number]) if known[number].width else None
            if not fits(stored):
                said = f"what it has as the {what} of a point can be none"
                raise self._refused(f"was altered: {said}")
            if stored is None:
                raise KinkError("there is a kink, according to the checkpoint", x.copy())
            if self.recalled & (self.recalled - 1) == 0 or known[number] is self._last:
                self._ask_again(stored, what, x, ask)
            return stored.astype(_TYPES[known[number].width])
        except CheckpointError as failure:
            self.failure = failure
            raise

    def _asked_now(self, digest: bytes, x: Vector, question: Question) -> NDArray[Any]:
        try:
            answer = question(x)
        except KinkError:
            self._keep(0, digest, b"")
            raise
        self._keep(answer.itemsize, digest, answer.astype(np.float64).tobytes())
        return answer.ravel()

    def _ask_again(self, stored: Vector, what: str, x: Vector, question: Question) -> None:
        try:
            fresh = question(x).ravel()
        except KinkError:
            fresh = np.zeros(0)
        if not _close(stored, fresh):
            raise self._refused(
                f"was made with another function (the {what} of answer {self.recalled} differs "
                "when asked again)"
            )

    def _numbers(self, record: _Record) -> Vector:
        return np.frombuffer(self._file.read(record.at, 8 * record.size)).copy()

    def _keep(self, width: int, digest: bytes, payload: bytes) -> None:
        end = self._file.end
        if len(payload) > SHORT and end + len(payload) > LIMIT:
            if not self._full:
                self._full = True
                self._file.say(
                    f"has reached {end / 2**20:.0f} MiB; from here on answers of more than {SHORT} "
                    "bytes are not kept, and a run that resumes asks for them again"
                )
            return
        record = _HEAD.pack(width, digest, len(payload) // 8) + payload
        self._file.append(record + _SUM.pack(zlib.crc32(record)))

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


def same_value(stored: float, fresh: float) -> bool:
    """Whether a value in a file can be one of a function, perhaps on another machine."""
    return abs(fresh - stored) <= 1e-9 * max(1.0, abs(stored))


def _close(stored: Vector, fresh: NDArray[Any]) -> bool:
    if stored.shape != fresh.shape:
        return False
    size = float(np.abs(stored).max(initial=0.0)) if np.isfinite(stored).all() else 0.0
    return bool(np.allclose(stored, fresh, rtol=1e-9, atol=1e-9 * size, equal_nan=True))


def _differences(recorded: dict[str, Any], expected: dict[str, Any]) -> str:
    """Name what differs, shortly."""
    words = []
    for name in sorted({*recorded, *expected}):
        there, here = (str(side.get(name, "nothing")) for side in (recorded, expected))
        if there != here:
            short = max(len(there), len(here)) <= 40
            words.append(f"{name} is {there} there and {here} here" if short else f"{name} differs")
    return ", ".join(words)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        identity = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return identity if isinstance(identity, dict) else None


def seed_in(path: str | Path) -> int | None:
    """Return the seed recorded in a journal, so that `rng=None` can resume it."""
    if not Path(path).is_file():
        return None
    try:
        with open(path, "rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return None
            identity = _parsed(file.readline(_HEADER_LIMIT)) or {}
    except OSError:
        return None
    return usable_seed(identity)


def usable_seed(identity: dict[str, Any]) -> int | None:
    """Return the seed in what a file says of its run, None where there is none."""
    seed = identity.get("seed")
    return seed if type(seed) is int and seed >= 0 else None


@contextlib.contextmanager
def journal_at(path: str | Path | None, identity: dict[str, Any]) -> Iterator[Journal | None]:
    """Open the journal of a run; None without a path."""
    if path is None:
        yield None
        return
    journal = Journal(path, identity)
    try:
        yield journal
    finally:
        journal.close()
    if journal.failure is not None:
        raise journal.failure
