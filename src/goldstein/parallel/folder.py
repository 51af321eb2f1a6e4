"""The folder of `multistart` and `sweep`: one file for every search that is done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goldstein.errors import CheckpointError
from goldstein.kept import Folder as Held
from goldstein.kept import Form, load_part, save_part
from goldstein.records import result_from_record, result_record
from goldstein.result import Result

_SEARCH = Form("search", result_record, result_from_record)


class Folder(Held):
    """The results of one run of `multistart` or `sweep`, on disk.

    How many searches there are is no part of the run's identity: it can be made longer.
    """

    def load(self, index: int, start: str) -> Result | None:
        """Return the result of one search, or None if it is not there or cannot be read."""
        path = self._file(index)
        known = load_part(path, _SEARCH)
        if known is None:
            return None
        if known.tag != start:
            raise CheckpointError(
                f"{path} is not about search {index} of this run: another start or parameter. "
                "Name another folder, or delete this one to start afresh."
            )
        return known.content

    def save(self, index: int, start: str, result: Result) -> None:
        """Write the result of one search, all or nothing."""
        save_part(self._file(index), _SEARCH, result, start)

    def _file(self, index: int) -> Path:
        return self.path / f"{index:06d}.search"


@contextlib.contextmanager
def folder_at(path: str | Path | None, identity: dict[str, Any]) -> Iterator[Folder | None]:
    """Hold the folder of a run; None without a path."""
    if path is None:
        yield None
        return
    with Folder(path, identity) as folder:
        yield folder
