"""`goldstein report RUN -o report.html`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from goldstein import records
from goldstein.cli import folder
from goldstein.cli.arguments import Size
from goldstein.cli.completion import complete_problem
from goldstein.cli.output import say
from goldstein.cli.page import subject_of
from goldstein.cli.problem import Chosen, choose_for
from goldstein.errors import GoldsteinError, InputError
from goldstein.oracles.structure import Structure


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run: solve --out RUN.")],
    problem: Annotated[
        str | None,
        typer.Argument(
            help="A built-in name, file.py, or file.py:name; default: what the run names.",
            autocompletion=complete_problem,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; default: report.html in RUN.")
    ] = None,
    d: Size = None,
    blind: Annotated[
        bool, typer.Option("--blind", help="Do not load the problem: nothing of it is run.")
    ] = False,
) -> None:
    """Write a page about a run: one HTML file that opens anywhere and needs no network.

    The certificate is verified while the page is written; the problem is loaded for that.
    """
    from goldstein.reporting.report import write_page  # no other command needs it

    request = folder.read_request(run)
    result = records.read_run(run)
    named = problem or folder.recorded_problem(request)
    x = result.certificate.x if result.certificate is not None else Structure.of(result.x, "x")[1]
    chosen, remark = (None, "The problem was not loaded.")
    if not blind:
        chosen, remark = _loaded(named, d or request.get("d"), x, asked=problem is not None)
    written = write_page(subject_of(result, request, chosen, remark), out or run / "report.html")
    say(f"written: {written}")


def _loaded(name: str, d: Any, x: Any, asked: bool) -> tuple[Chosen | None, str]:
    """The problem, or why there is none; one that was named must be there."""
    if d is not None and not isinstance(d, int):
        raise InputError(f"the run says d = {d!r}; a size is an integer.")
    try:
        return choose_for(name, d, x), ""
    except (GoldsteinError, OSError) as failure:
        if asked:
            raise
        return None, f"The problem could not be loaded here: {failure}"
