"""`goldstein report RUN -o report.html`."""

from pathlib import Path
from typing import Annotated

import typer

from goldstein.cli import folder
from goldstein.cli.arguments import RunProblem, Size, Trust
from goldstein.cli.folder import say, subject_of
from goldstein.cli.problem import choose_for
from goldstein.errors import GoldsteinError
from goldstein.oracles.function import flat_point
from goldstein.storage import records


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run: solve --out RUN.")],
    problem: RunProblem = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; default: report.html in RUN.")
    ] = None,
    d: Size = None,
    trust: Trust = False,
    blind: Annotated[
        bool, typer.Option("--blind", help="Do not load the problem: nothing of it is run.")
    ] = False,
) -> None:
    """Write a page about a run: one HTML file that opens anywhere and needs no network.

    The certificate is verified while the page is written; the problem is loaded for that.
    """
    from goldstein.reporting.page import write_page  # no other command needs it

    request = folder.read_request(run)
    result = records.read_run(run)
    x = result.certificate.x if result.certificate is not None else flat_point(result.x, "x")[1]
    chosen, remark = None, "The problem was not loaded."
    if not blind:
        try:
            named = problem or folder.recorded_problem(run, request, "report", trust)
            chosen, remark = choose_for(named, d, x), ""
        except (GoldsteinError, OSError) as failure:
            if problem is not None:
                raise
            remark = f"The problem was not loaded: {failure}"
    written = write_page(subject_of(result, request, chosen, remark), out or run / "report.html")
    say(f"written: {written}")
    if remark:
        say(remark)
