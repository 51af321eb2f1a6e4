"""The application: finds the commands in the folder `commands` and registers them."""

import contextlib
import functools
import importlib
import inspect
import os
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import goldstein
from goldstein.cli import commands, folder, streams
from goldstein.errors import GoldsteinError

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
        with streams.prints_to_stderr(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                command(*args, **kwargs)
            except (typer.Exit, BrokenPipeError):
                raise
            except SystemExit as left:
                _fail(f"the problem ended the program: sys.exit({left.code!r}).", as_json=as_json)
            except KeyboardInterrupt:
                sys.stderr.write("interrupted\n")
                raise typer.Exit(folder.INTERRUPTED) from None
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
    line = folder.printable(" ".join(message.split()))
    sys.stderr.write(f"error: {line}\n")
    if as_json:
        with contextlib.suppress(OSError):  # the error may be that nothing can be written there
            folder.print_json({"error": line})
    raise typer.Exit(folder.BAD_INPUT)


def _show_warning(message: Warning | str, *rest: Any, **more: Any) -> None:
    sys.stderr.write(f"warning: {message}\n")


app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"goldstein {goldstein.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Minimise functions with kinks, and get a proof of how stationary the answer is.

    PROBLEM is a built-in name (see `goldstein problems`), `file.py` or `file.py:name`: an Oracle,
    an Expression, a pair (fun, jac), a function that returns (value, gradient), or a function
    with its gradient beside it. Without a name, f, fun, objective, loss, ... are looked for.

    Exit code: 0 certified or verified, 1 not, 2 bad input, 130 interrupted.
    """


for _module in pkgutil.iter_modules(commands.__path__):
    _command = getattr(importlib.import_module(f"{commands.__name__}.{_module.name}"), _module.name)
    app.command(_module.name.replace("_", "-"))(guarded(_command))
