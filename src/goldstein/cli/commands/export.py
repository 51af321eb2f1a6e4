"""`goldstein export CERT PROBLEM -o FILE`, or `goldstein export RUN_FOLDER -o FILE`."""

from pathlib import Path
from typing import Annotated

import typer

from goldstein.certificates import load_certificate
from goldstein.cli import folder
from goldstein.cli.arguments import AsJson, CertificateOrRun, RunProblem, Size, Trust
from goldstein.cli.folder import answer, say
from goldstein.cli.problem import choose_for
from goldstein.errors import InputError
from goldstein.storage.bundle import PROOF, write_bundle
from goldstein.storage.codec import limits_for


def export(
    cert: CertificateOrRun,
    problem: RunProblem = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The proof file (.json, .json.gz), or a .zip.")
    ] = Path("proof.json"),
    d: Size = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write certificate and function to one file, for `goldstein-check`.

    Whoever gets it can check the claim without this library, and without the problem's code. The
    function must be an Expression. With `-o NAME.zip` and the folder of a run: a bundle of the run,
    its proof, and its report if there is one, which `goldstein verify NAME.zip` checks.
    """
    run, bundled = cert, out.suffix == ".zip"
    if bundled and not run.is_dir():
        raise InputError(f"a bundle is made of the folder of a run, and {run} is none.")
    cert, problem, _ = folder.claim_and_problem(cert, problem, "export", trust)
    certificate = load_certificate(cert)
    chosen = choose_for(problem, d, certificate.x)
    target = run / PROOF if bundled else out
    path = certificate.export(target, chosen.oracle, **limits_for(certificate, chosen.limits))
    facts = {"proof": str(path), "certificate": str(cert), "problem": problem}
    if bundled:
        facts["bundle"], names = str(out), write_bundle(run, out)
        return answer(as_json, facts, lambda: say(f"{out}: {', '.join(names)}"))
    answer(as_json, facts, lambda: say(f"{path}: check it with goldstein-check {path}"))
