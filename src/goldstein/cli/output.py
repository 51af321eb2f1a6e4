"""What the commands print: tables for people, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from goldstein.certificates import Verification
from goldstein.cli.streams import answers
from goldstein.storage.records import plain

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
