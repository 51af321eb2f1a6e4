"""The application: finds the commands in the folder `commands` and registers them."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Annotated

import typer

import goldstein
from goldstein.cli import commands
from goldstein.cli.guard import guarded

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
