"""A job on a worker: it answers, or says what went wrong."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from goldstein.errors import InputError, InputTypeError
from goldstein.parallel.threads import blas_threads

#: The arguments of `guarded`.
Call = tuple[Callable[[Any], Any], int, Any, int]


@dataclass(frozen=True)
class Trouble:
    """Why a job has no answer.

    Attributes
    ----------
    reason : str
        One line.
    traceback : str
        Where it was raised; empty if the worker died.
    tries : int
        How often it was tried.
    refused : InputError or InputTypeError, optional
        The error itself, where the input was refused: no second try.
    """

    reason: str
    traceback: str = ""
    tries: int = 0
    refused: Exception | None = None


@dataclass(frozen=True)
class Done:
    """The answer to a job, or the trouble with it."""

    position: int
    answer: Any = None
    trouble: Trouble | None = None


def guarded(work: Callable[[Any], Any], position: int, job: Any, threads: int) -> Done:
    """Do one job on a worker. Errors travel as text: not every exception can be pickled."""
    try:
        with blas_threads(threads):
            return Done(position, work(job))
    except Exception as failure:
        refused = failure if isinstance(failure, InputError | InputTypeError) else None
        reason = f"{type(failure).__name__}: {first_line(failure)}"
        return Done(position, trouble=Trouble(reason, traceback.format_exc(), refused=refused))


def first_line(failure: BaseException) -> str:
    """Return the first line of a message."""
    lines = str(failure).strip().splitlines()
    return lines[0] if lines else "no message"
