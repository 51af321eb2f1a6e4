"""A folder with one file for every search that is done: what is there is not done again."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from goldstein.certificates.writing import write_record
from goldstein.checker.files import read_record
from goldstein.errors import CertificateFileError, InputError, InputTypeError
from goldstein.records import result_from_record, result_record
from goldstein.result import Result

#: What the folder is about.
_RUN = "run.json"
_KIND = "search"


class Folder:
    """The results of one run of `multistart` or `sweep`, on disk.

    Parameters
    ----------
    path : path
        Made where it is missing.
    identity : dict
        What the run depends on, as JSON has it. A folder of another run is refused; how many
        searches there are is no part of it, so that a run can be made longer.
    """

    def __init__(self, path: str | Path, identity: dict[str, Any]) -> None:
        self.path = Path(path)
        self.identity = identity
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            known = _read_identity(self.path)
            if known is None:
                _write(self.path / _RUN, json.dumps(identity, indent=1, sort_keys=True) + "\n")
        except OSError as failure:
            raise InputError(
                f"folder {self.path} cannot be used ({failure.strerror}); name another one."
            ) from failure
        if known is not None and known != identity:
            raise InputError(
                f"folder {self.path} belongs to another run: {_difference(known, identity)}. Name "
                "another folder, or delete this one to start afresh."
            )

    def load(self, index: int, start: str) -> Result | None:
        """Return the result of one search, or None if it is not there or cannot be read."""
        path = self._file(index)
        if not path.exists():
            return None

        def make(kind: str, arrays: dict[str, Any], fields: dict[str, Any]) -> Result:
            if kind != _KIND or fields.get("start") != start:
                raise InputError(
                    f"{path} is not about search {index} of this run: another start or parameter. "
                    "Name another folder, or delete this one to start afresh."
                )
            return result_from_record(arrays, fields["result"])

        try:
            result: Result = read_record(path, make)
        except CertificateFileError as failure:
            if isinstance(failure.__cause__, InputError):
                raise failure.__cause__ from None
            return None  # damaged: done again
        return result

    def save(self, index: int, start: str, result: Result) -> None:
        """Write the result of one search, all or nothing."""
        arrays, fields = result_record(result)
        write_record(self._file(index), _KIND, arrays, {"start": start, "result": fields})

    def _file(self, index: int) -> Path:
        return self.path / f"{index:06d}.search"


def seed_in(path: str | Path | None) -> int | None:
    """Return the seed of the run in a folder, so that `rng=None` can resume it."""
    known = None if path is None else _read_identity(Path(path))
    seed = None if known is None else known.get("seed")
    return seed if isinstance(seed, int) else None


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
    name = getattr(value, "__qualname__", None)
    if name is not None:
        return f"{value.__module__}.{name}"
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return [kind, described(getattr(value, "__dict__", {}))]


def digest(point: Any) -> str:
    """Return a short hash of a point or a parameter."""
    if isinstance(point, np.ndarray) and point.dtype != object:
        content = repr((point.shape, str(point.dtype))).encode() + point.tobytes()
    else:
        content = json.dumps(described(point), sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _read_identity(path: Path) -> dict[str, Any] | None:
    if not (path / _RUN).exists():
        return None
    try:
        known = json.loads((path / _RUN).read_text())
    except (ValueError, RecursionError, OSError):
        known = None
    if not isinstance(known, dict):
        raise InputTypeError(f"{path / _RUN} is not a run of ours; name another folder.")
    return known


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(text)
    os.replace(partial, path)


def _difference(known: dict[str, Any], now: dict[str, Any]) -> str:
    changed = [name for name in sorted({*known, *now}) if known.get(name) != now.get(name)]
    return ", ".join(
        f"{name} was {json.dumps(known.get(name))} and is {json.dumps(now.get(name))}"
        for name in changed
    )
