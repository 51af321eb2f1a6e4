"""The folder of a run: result.json, certificate.cert, history.csv, and the journal to resume it.

What the commands print: tables for people, JSON for machines.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from goldstein.certificates import Verification
from goldstein.cli.problem import Chosen, is_file, split
from goldstein.cli.streams import answers
from goldstein.errors import InputError
from goldstein.result import Result
from goldstein.storage import records
from goldstein.storage.files import in_use
from goldstein.storage.records import CERTIFICATE, HISTORY, RESULT, plain, write_run

if TYPE_CHECKING:
    from goldstein.reporting.subject import Subject

CHECKPOINT = "checkpoint.journal"
_OURS = (RESULT, CERTIFICATE, HISTORY, CHECKPOINT)


def prepare(folder: Path | None, *, resume: bool, force: bool) -> Path | None:
    """Make the folder and return the path of the journal; nothing is overwritten unasked."""
    if folder is None:
        for option, asked in (("--resume", resume), ("--force", force)):
            if asked:
                raise InputError(f"{option} needs --out DIR, the folder of the run.")
        return None
    if resume and force:
        raise InputError("--resume continues a run and --force replaces it; choose one.")
    _make(folder)
    if resume:
        _require_journal(folder)
    elif force:
        if in_use(folder / CHECKPOINT):
            raise InputError(f"--force would replace a run in {folder} that is not over; stop it.")
        for name in _OURS:
            (folder / name).unlink(missing_ok=True)
    else:
        _require_free(folder)
    return folder / CHECKPOINT


def save(folder: Path, result: Result, request: dict[str, Any]) -> None:
    """Write the run; the journal of one that reached its end has done its duty."""
    if is_file(request["problem"]):
        request = {**request, "directory": os.getcwd()}
    write_run(folder, result, request)
    if result.success:
        (folder / CHECKPOINT).unlink(missing_ok=True)


def read_request(folder: Path) -> dict[str, Any]:
    """Return what was asked for in a run (problem, eps, delta, ...), and how it ended (status)."""
    try:
        for name in _OURS:
            if (folder / name).exists() and not (folder / name).is_file():
                raise TypeError(f"{name} is no file")
        facts = json.loads((folder / RESULT).read_text())
        request = facts["request"]
        if not isinstance(request["problem"], str):
            raise TypeError("no problem is named")
        numbers = {name: float(request[name]) for name in ("eps", "delta")}
        if not all(math.isfinite(number) and number > 0 for number in numbers.values()):
            raise ValueError("eps and delta are no positive numbers")
        return {**request, **numbers, "status": str(facts["status"])}
    except FileNotFoundError:
        unfinished = (folder / CHECKPOINT).exists()
        raise InputError(
            f"{folder} holds no {RESULT}"
            + (", only the journal of a run to --resume." if unfinished else ": not a run.")
        ) from None
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as failure:
        raise InputError(
            f"{folder / RESULT} is not the result of a run ({failure}); name the certificate and "
            f"the problem: goldstein verify {folder / CERTIFICATE} PROBLEM."
        ) from failure


def claim_and_problem(
    path: Path, problem: str | None, command: str, trust: bool
) -> tuple[Path, str, dict[str, Any] | None]:
    """Return the certificate, its problem, and what was asked for if `path` is a run's folder."""
    request = None
    if path.is_dir():
        request = read_request(path)
        problem = problem or recorded_problem(path, request, command, trust)
        path = path / CERTIFICATE
    if problem is None:
        raise InputError(
            f"{path} is about a function: name it, goldstein {command} {path} PROBLEM; only the "
            "folder of a run knows its own."
        )
    return path, problem, request


def recorded_problem(folder: Path, request: dict[str, Any], command: str, trust: bool) -> str:
    """The problem of a run; its file where it was then, or under the same name from here.

    That file is code, and the folder may be a stranger's: it is run only where the user says so,
    and never from a place in the folder or through it.
    """
    text: str = request["problem"]
    if not is_file(text):
        return text
    path, name = split(text)
    file = Path(str(request.get("directory", "."))) / path
    file = file if file.is_file() else Path(path)
    problem = f"{file}:{name}" if name else str(file)
    named = f"name it, {shlex.join(['goldstein', command, str(folder), problem])}"
    if not trust:
        raise InputError(
            f"{folder} says that it is a run of {file}, and that file would be run: {named}, or "
            "say --trust if the folder is yours."
        )
    places = [*file.absolute().parents, *file.resolve().parents] if file.is_file() else []
    if any(place.samefile(folder) for place in places):
        raise InputError(
            f"{folder} says that it is a run of {file}, which is inside the folder of the run: "
            f"such a file is not run unless you {named}."
        )
    return problem


def _make(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder} is a file; name a folder for the run.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise InputError(
            f"--out {folder} cannot be made ({failure.strerror}); name another folder."
        ) from failure
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"--out {folder} cannot be written to; name another folder.")


def _require_journal(folder: Path) -> None:
    if (folder / CHECKPOINT).exists():
        return
    if (folder / RESULT).exists():
        raise InputError(
            f"{folder} holds a run that reached its end: nothing to resume. Verify it with "
            f"`goldstein verify {folder}`, or replace it with --force instead of --resume."
        )
    raise InputError(f"{folder} holds no run to resume; leave out --resume to start one.")


def _require_free(folder: Path) -> None:
    """Refuse to overwrite a run, or files of others that happen to have our names."""
    there = [name for name in _OURS if (folder / name).exists()]
    if not there:
        return
    what = f"other things under the names of a run ({', '.join(there)})"
    choices = "replace them with --force"
    with contextlib.suppress(InputError):
        what = f"a run of {read_request(folder)['problem']}"
        choices = "replace it with --force"
    if CHECKPOINT in there:
        what = what if RESULT in there else "a run that was cut short"
        choices = "continue it with --resume, replace it with --force"
    raise InputError(f"--out {folder} holds {what} already; {choices}, or name another folder.")


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


#: Exit codes beside 0.
NOT_CERTIFIED, BAD_INPUT, INTERRUPTED = 1, 2, 130


def print_json(data: Any) -> None:
    """Write strict JSON to stdout: numbers JSON does not have become null."""
    say(json.dumps(plain(data), allow_nan=False))


def answer(as_json: bool, facts: Any, show: Callable[[], None], ok: bool = True) -> None:
    """Tell machines or people; what is not certified ends with its own exit code."""
    if as_json:
        print_json(facts)
    else:
        show()
    if not ok:
        raise typer.Exit(NOT_CERTIFIED)


def printable(text: str) -> str:
    """Return text that does not steer a terminal, whoever wrote it."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def say(line: str) -> None:
    """Write one line of the answer."""
    # Flushed: a full disk shows now, not after the exit code.
    print(printable(line), file=answers(), flush=True)


def console() -> Console:
    """Where tables of the answer are printed."""
    return Console(file=answers(), highlight=False, soft_wrap=False, markup=False)


def table(rows: Iterable[tuple[str, Any]], title: str) -> None:
    """Print a table of names and values."""
    shown = Table(
        title=printable(title), title_justify="left", show_header=False, box=None, pad_edge=False
    )
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in rows:
        shown.add_row(name, "-" if value is None else printable(str(value)))
    console().print(shown)


def vector(x: np.ndarray) -> str:
    """The first entries of a point."""
    return np.array2string(x, threshold=8, edgeitems=3, precision=8, max_line_width=10_000)


def print_verification(
    found: Verification, title: str, more: Sequence[tuple[str, str]] = ()
) -> None:
    """The verdict, what else is to be said, and a line for each check."""
    verdict = "VERIFIED" if found.ok else "NOT VERIFIED"
    claim = f"{verdict}: eps = {found.eps:.6g}, delta = {found.delta:.6g}, {found.label}"
    rows = [(c.name, f"{'ok  ' if c.ok else 'FAIL'}  {c.message}") for c in found.checks]
    table([("verdict", claim), *more, *rows], title)
