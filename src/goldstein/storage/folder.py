"""Folders with the finished parts of a long run: what is there is not done again.

`Folder` is held by one run at a time and says what it is a run of; `Store` is what the run itself
sees of it, and can be sent to other processes. Parts appear under their names when they are whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from goldstein import __version__
from goldstein.errors import CertificateFileError, CheckpointError, GoldsteinError, InputError
from goldstein.result import Result
from goldstein.storage.codec import Arrays, read_record, write_record
from goldstein.storage.files import CheckpointWarning, LockedFile, replacing
from goldstein.storage.journal import usable_seed
from goldstein.storage.records import result_from_record, result_record

T = TypeVar("T")

#: What the folder is about, and the file that whoever uses it has locked.
_RUN, _LOCK = "run.json", "run.lock"
_AFRESH = "Name another folder, or delete this one to start afresh."


class Folder:
    """A folder of finished parts, held by one run at a time; use it in a `with` statement.

    Parameters
    ----------
    path : path
        Made where it is missing.
    identity : dict
        What the run depends on, as JSON has it. A folder of another run is refused, or of another
        version of the library.
    """

    def __init__(self, path: str | Path, identity: dict[str, Any]) -> None:
        self.path = Path(path)
        self.identity = json.loads(json.dumps({"goldstein": __version__, **identity}))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as failure:
            raise _unusable(self.path, failure) from failure
        self._lock = LockedFile(self.path / _LOCK)
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        known = _read_identity(self.path)
        if known is not None and known != self.identity:
            raise CheckpointError(
                f"folder {self.path} belongs to another run: {_difference(known, self.identity)}. "
                f"{_AFRESH}"
            )
        try:
            for left in self.path.glob(".*.partial"):  # by a process that was killed
                left.unlink(missing_ok=True)
            if known is None:
                with replacing(self.path / _RUN) as file:
                    file.write(json.dumps(self.identity, indent=1, sort_keys=True).encode() + b"\n")
        except OSError as failure:
            raise _unusable(self.path, failure) from failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others use the folder."""
        self._lock.close()

    def load(self, index: int, start: str) -> Result | None:
        """Return the result of one search, or None if it is not there or cannot be read."""
        path = self._search(index)
        known = load_part(path, _SEARCH)
        if known is not None and known.tag != start:
            raise CheckpointError(
                f"{path} is not about search {index} of this run: another start or parameter. "
                f"{_AFRESH}"
            )
        return None if known is None else known.content

    def save(self, index: int, start: str, result: Result) -> None:
        """Write the result of one search, all or nothing."""
        save_part(self._search(index), _SEARCH, result, start)

    def _search(self, index: int) -> Path:
        return self.path / f"{index:06d}.search"


class Form(NamedTuple, Generic[T]):
    """How a part is written down and read."""

    kind: str
    write: Callable[[T], tuple[Arrays, dict[str, Any]]]
    read: Callable[[Arrays, dict[str, Any]], T]


_SEARCH = Form("search", result_record, result_from_record)


@dataclass
class Store:
    """The parts of a run that are done: recalled where they are there, else made and kept.

    Attributes
    ----------
    path : Path or None
        The folder; without one nothing is kept.
    prefix : str
        What the names of files begin with.
    seconds : float
        What the recalled parts took when they were made: limits of time count it.
    """

    path: Path | None = None
    prefix: str = ""
    seconds: float = 0.0

    def under(self, name: str) -> Store:
        """Return what is kept of one part that has parts itself."""
        return Store(self.path, f"{self.prefix}{name}.")

    def journal(self, name: str) -> Path | None:
        """Return where `minimize` may keep the answers of a search; None if nothing is kept."""
        return None if self.path is None else self.path / f"{self.prefix}{name}.journal"

    def part(
        self,
        name: str,
        form: Form[T],
        make: Callable[[], T],
        limits: Any = None,
        holds: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """Return a part from the folder, or make and keep it.

        Anybody can write a file: a recalled part that no longer `holds` is refused.

        A part that was made under other `limits` is made again, from its journal: with more calls
        or more time a search goes on, also where it has a certificate.
        """
        if self.path is None:
            return make()
        path = self.path / f"{self.prefix}{name}.part"
        known = load_part(path, form)
        if known is not None and known.tag == limits:
            if not holds(known.content):
                raise CheckpointError(
                    f"{path} is about another function: asked again, it answers otherwise. "
                    f"{_AFRESH}"
                )
            self.seconds += known.seconds
            return known.content
        begin, before = time.perf_counter(), self.seconds
        made = make()
        spent = time.perf_counter() - begin + self.seconds - before
        save_part(path, form, made, limits, spent)
        return made


#: What a run sees that stores nothing.
NO_STORE = Store()


class Part(NamedTuple, Generic[T]):
    """What is in the file of a part: beside it, under what it was made, and how long it took."""

    content: T
    tag: Any
    seconds: float


def load_part(path: Path, form: Form[T]) -> Part[T] | None:
    """Return a part; None if it is not there, or damaged, which is said."""
    if not path.exists():
        return None

    def make(kind: str, arrays: Arrays, fields: dict[str, Any]) -> Part[T]:
        if kind != form.kind:
            raise InputError(f"it holds a {kind}, expected a {form.kind}.")
        content = form.read(arrays, fields["fields"])
        return Part(content, fields["tag"], float(fields["seconds"]))

    try:
        found: Part[T] = read_record(path, make)
    except CertificateFileError as failure:
        warnings.warn(
            f"a part of checkpoint {path.parent} is damaged, and done again: {failure}",
            CheckpointWarning,
            stacklevel=2,
        )
        return None
    return found


def save_part(path: Path, form: Form[T], part: T, tag: Any = None, seconds: float = 0.0) -> None:
    """Write a part, all or nothing."""
    arrays, fields = form.write(part)
    try:
        write_record(path, form.kind, arrays, {"tag": tag, "seconds": seconds, "fields": fields})
    except OSError as failure:
        raise CheckpointError(
            f"checkpoint {path.parent} cannot be written to ({failure.strerror}). The parts so far "
            "are in it: mend that (make room?), and the same call continues."
        ) from failure


def seed_in(path: str | Path | None) -> int | None:
    """Return the seed of the run in a folder, so that a run without a seed can resume it."""
    return usable_seed((None if path is None else _read_identity(Path(path))) or {})


def described(value: Any) -> Any:
    """Return what a value is, as JSON has it and the same in every process.

    Examples
    --------
    >>> described({"method": "auto", "callback": print})
    {'callback': 'builtins.print', 'method': 'auto'}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return digest(value)
    if isinstance(value, dict):
        return {str(key): described(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list | tuple):
        return [described(part) for part in value]
    if hasattr(value, "gradients_at"):  # an oracle; an expression, as it is written
        with contextlib.suppress(AttributeError, GoldsteinError):
            return digest(value.describe())
        return value.name
    name = getattr(value, "__qualname__", None)
    if name is not None:
        return f"{value.__module__}.{name}"
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return [kind, described(getattr(value, "__dict__", {}))]


def digest(point: Any) -> str:
    """Return a short hash of an array or a parameter."""
    if isinstance(point, np.ndarray) and point.dtype != object:
        content = repr((point.shape, str(point.dtype))).encode() + point.tobytes()
    else:
        content = json.dumps(described(point), sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _read_identity(path: Path) -> dict[str, Any] | None:
    if not (path / _RUN).exists():
        return None
    known = None
    with contextlib.suppress(ValueError, RecursionError, OSError):
        known = json.loads((path / _RUN).read_text()) if (path / _RUN).is_file() else None
    if not isinstance(known, dict):
        raise CheckpointError(f"{path / _RUN} is not a run of ours; name another folder.")
    return known


def _unusable(path: Path, failure: OSError) -> CheckpointError:
    return CheckpointError(
        f"folder {path} cannot be used ({failure.strerror}); name another one that can be "
        "written to."
    )


def _difference(known: dict[str, Any], now: dict[str, Any]) -> str:
    changed = [name for name in sorted({*known, *now}) if known.get(name) != now.get(name)]
    return ", ".join(
        f"{name} was {json.dumps(known.get(name))} and is {json.dumps(now.get(name))}"
        for name in changed
    )
