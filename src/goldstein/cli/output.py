"""What the commands print: tables for people, JSON for machines, one line for errors."""

from __future__ import annotations

import functools
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TextIO

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from goldstein.certificates import Verification
from goldstein.errors import GoldsteinError
from goldstein.result import Result

NOT_CERTIFIED = 1
BAD_INPUT = 2


def one_line_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn our errors into one line and exit code 2; in JSON mode also on stdout."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                command(*args, **kwargs)
            except (GoldsteinError, OSError) as failure:
                fail(str(failure), as_json=bool(kwargs.get("as_json")))

    return guarded


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    sys.stderr.write(f"warning: {message}\n")


def fail(message: str, *, as_json: bool = False) -> NoReturn:
    """Say what is wrong and leave with exit code 2."""
    line = " ".join(message.split())
    if as_json:
        print_json({"error": line})
    sys.stderr.write(f"error: {line}\n")
    raise typer.Exit(BAD_INPUT)


def print_json(data: Any) -> None:
    """Write strict JSON to stdout: numbers JSON does not have become null."""
    sys.stdout.write(json.dumps(plain(data), allow_nan=False) + "\n")


def plain(data: Any) -> Any:
    """Return the data as JSON has it: lists, dicts, finite numbers, text."""
    if isinstance(data, dict):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, np.ndarray):
        return plain(data.tolist())
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    if isinstance(data, np.generic):
        return plain(data.item())
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def table(rows: Iterable[tuple[str, Any]], title: str) -> None:
    """Print a table of names and values."""
    shown = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    shown.add_column(style="bold", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, value in rows:
        shown.add_row(name, "-" if value is None else str(value))
    Console(highlight=False, soft_wrap=False).print(shown, markup=False)


def vector(x: np.ndarray) -> str:
    """The first entries of a point."""
    return np.array2string(x, threshold=8, edgeitems=3, precision=8, max_line_width=10_000)


def certificate_facts(certificate: Any) -> dict[str, Any] | None:
    """The numbers of a certificate without its arrays."""
    if certificate is None:
        return None
    facts = {"kind": type(certificate).__name__, "summary": certificate.summary()}
    for name in ("eps", "delta", "label", "digest"):
        facts[name] = getattr(certificate, name, None)
    descent = getattr(certificate, "descent", None)
    if descent is not None:
        facts["descent"] = descent
        facts["descent_step"] = certificate.meta.get("descent_step")
    return facts


def result_facts(result: Result) -> dict[str, Any]:
    """A result as JSON has it."""
    facts = {
        name: getattr(result, name)
        for name in ("success", "message", "fun", "nit", "nfev", "ngev", "seed", "time", "method")
    }
    return {
        **facts,
        "status": result.status.name,
        "x": result.x,
        "certificate": certificate_facts(result.certificate),
    }


def verification_facts(found: Verification) -> dict[str, Any]:
    """A verification as JSON has it."""
    return {
        "ok": found.ok,
        "eps": found.eps,
        "delta": found.delta,
        "label": found.label,
        "checks": [{"name": c.name, "ok": c.ok, "message": c.message} for c in found.checks],
    }


def print_verification(found: Verification, title: str) -> None:
    """The verdict, and a line for each check."""
    verdict = "VERIFIED" if found.ok else "NOT VERIFIED"
    head = (
        "verdict",
        f"{verdict}: eps = {found.eps:.6g}, delta = {found.delta:.6g}, {found.label}",
    )
    rows = [(c.name, f"{'ok  ' if c.ok else 'FAIL'}  {c.message}") for c in found.checks]
    table([head, *rows], title)
