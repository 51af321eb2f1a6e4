"""`goldstein export CERT PROBLEM -o FILE`, or `goldstein export RUN_FOLDER -o FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldstein import records
from goldstein.certificates import load_certificate
from goldstein.cli import folder
from goldstein.cli.arguments import AsJson, Size, Trust
from goldstein.cli.completion import complete_problem
from goldstein.cli.output import print_json, say
from goldstein.cli.problem import choose_for
from goldstein.errors import InputError


def export(
    cert: Annotated[Path, typer.Argument(help="A certificate file, or the folder of a run.")],
    problem: Annotated[
        str | None,
        typer.Argument(
            help="A built-in name, file.py, or file.py:name; default: the run's, see --trust.",
            autocompletion=complete_problem,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The proof file.")] = Path("proof.json"),
    d: Size = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write certificate and function to one file, for `goldstein-check`.

    Whoever gets it can check the claim without this library, and without the problem's code. The
    function must be an Expression.
    """
    if cert.is_dir():
        request = folder.read_request(cert)
        problem = problem or folder.recorded_problem(cert, request, "export", trust)
        cert = cert / records.CERTIFICATE  # missing where the run proved nothing: loading says so
    certificate = load_certificate(cert)
    if problem is None:
        raise InputError(
            f"{cert} is about a function: name it, goldstein export {cert} PROBLEM; only the "
            "folder of a run knows its own."
        )
    path = certificate.export(out, choose_for(problem, d, certificate.x).oracle)
    if as_json:
        print_json({"proof": str(path), "certificate": str(cert), "problem": problem})
    else:
        say(f"{path}: check it with goldstein-check {path}")
