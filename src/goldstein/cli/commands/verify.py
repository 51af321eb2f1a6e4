"""`goldstein verify CERT PROBLEM`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldstein.certificates import load_certificate
from goldstein.cli.output import NOT_CERTIFIED, print_json, print_verification, verification_facts
from goldstein.cli.problem import choose_for


def verify(
    cert: Annotated[Path, typer.Argument(help="A certificate file.")],
    problem: Annotated[str, typer.Argument(help="A built-in name, or file.py:object.")],
    d: Annotated[int | None, typer.Option("--d", help="Size of a built-in problem.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Re-derive every number of a certificate from the function."""
    certificate = load_certificate(cert)
    oracle = choose_for(problem, d, certificate.x.size).oracle
    found = certificate.verify(oracle)
    if as_json:
        print_json({"certificate": str(cert), "problem": problem, **verification_facts(found)})
    else:
        print_verification(found, f"{cert} for {problem}")
    if not found.ok:
        raise typer.Exit(NOT_CERTIFIED)
