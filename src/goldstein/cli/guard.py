"""What surrounds every command: clean standard output, one sentence per error, `--traceback`."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import goldstein
from goldstein.cli.output import print_json, printable
from goldstein.cli.streams import prints_to_stderr
from goldstein.errors import GoldsteinError

BAD_INPUT = 2
INTERRUPTED = 130

_TRACEBACK = inspect.Parameter(
    "show_traceback",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--traceback", help="On an error show where it happened.")
    ],
)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option `--traceback`, and turn its errors into one line and a code."""

    @functools.wraps(command)
    def run(*args: Any, show_traceback: bool = False, **kwargs: Any) -> None:
        as_json = bool(kwargs.get("as_json"))
        with prints_to_stderr(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                command(*args, **kwargs)
            except (typer.Exit, BrokenPipeError):
                raise
            except SystemExit as left:
                _fail(f"the problem ended the program: sys.exit({left.code!r}).", as_json=as_json)
            except KeyboardInterrupt:
                sys.stderr.write("interrupted\n")
                raise typer.Exit(INTERRUPTED) from None
            except Exception as failure:
                if show_traceback:
                    traceback.print_exception(failure)
                _fail(_sentence(failure, hint=not show_traceback), as_json=as_json)

    signature = inspect.signature(command, eval_str=True)
    parameters = [*signature.parameters.values(), _TRACEBACK]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    del run.__wrapped__  # its signature lacks the option
    return run


def _sentence(failure: Exception, *, hint: bool) -> str:
    if isinstance(failure, GoldsteinError | OSError):
        message = str(failure)
        place = _user_line(failure.__cause__)
        if place:
            message += f" (raised in {place}{'; --traceback shows more' if hint else ''})"
        return message
    more = "" if hint is False else "; --traceback shows where"
    return f"{type(failure).__name__}: {failure} (this should not happen: please report it{more})"


def _user_line(cause: BaseException | None) -> str:
    """File and line where the user's code raised, if an error of ours was caused by that."""
    frames = [] if cause is None else traceback.extract_tb(cause.__traceback__)
    theirs = [frame for frame in frames if _is_users(frame.filename)]
    return f"{theirs[-1].filename}, line {theirs[-1].lineno}" if theirs else ""


def _is_users(filename: str) -> bool:
    """Neither ours, nor of an installed package, nor of Python itself."""
    path = Path(filename)
    inside = {Path(goldstein.__file__).parent, Path(os.__file__).parent}
    return path.is_file() and not (inside & set(path.parents) or "site-packages" in path.parts)


def _fail(message: str, *, as_json: bool) -> NoReturn:
    line = printable(" ".join(message.split()))
    sys.stderr.write(f"error: {line}\n")
    if as_json:
        with contextlib.suppress(OSError):  # the error may be that nothing can be written there
            print_json({"error": line})
    raise typer.Exit(BAD_INPUT)


def _show_warning(message: Warning | str, *rest: Any, **more: Any) -> None:
    sys.stderr.write(f"warning: {message}\n")
