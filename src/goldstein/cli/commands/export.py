"""`goldstein export CERT PROBLEM -o FILE`, or `goldstein export RUN_FOLDER -o FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldstein.certificates import load_certificate
from goldstein.cli import folder
from goldstein.cli.arguments import AsJson, CertificateOrRun, RunProblem, Size, Trust
from goldstein.cli.output import answer, say
from goldstein.cli.problem import choose_for


def export(
    cert: CertificateOrRun,
    problem: RunProblem = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The proof file.")] = Path("proof.json"),
    d: Size = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write certificate and function to one file, for `goldstein-check`.

    Whoever gets it can check the claim without this library, and without the problem's code. The
    function must be an Expression.
    """
    cert, problem, _ = folder.claim_and_problem(cert, problem, "export", trust)
    certificate = load_certificate(cert)
    path = certificate.export(out, choose_for(problem, d, certificate.x).oracle)
    facts = {"proof": str(path), "certificate": str(cert), "problem": problem}
    answer(as_json, facts, lambda: say(f"{path}: check it with goldstein-check {path}"))
