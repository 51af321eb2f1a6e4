"""What a page about a run of the command line shows; the room of the pages is loaded on demand."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from goldstein.cli.problem import Chosen
from goldstein.result import Result
from goldstein.storage import records

if TYPE_CHECKING:
    from goldstein.reporting.subject import Subject


def subject_of(
    result: Result, request: dict[str, Any], chosen: Chosen | None, remark: str = ""
) -> Subject:
    """Return the run with the command that verifies it."""
    from goldstein.reporting.subject import Subject

    words = ["goldstein", "verify", records.CERTIFICATE, str(request["problem"])]
    if request.get("d") is not None:
        words += ["--d", str(request["d"])]
    fun, limits = (None, {}) if chosen is None else (chosen.oracle, chosen.limits)
    return Subject(
        result, str(request["problem"]), fun, limits, command=shlex.join(words), remark=remark
    )
