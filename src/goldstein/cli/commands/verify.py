"""`goldstein verify CERT PROBLEM`, or `goldstein verify RUN_FOLDER`."""

import json
import math
from pathlib import Path
from typing import Any

from goldstein.certificates import Verification, load_certificate
from goldstein.cli import folder
from goldstein.cli.arguments import AsJson, CertificateOrRun, RunProblem, Size, Trust
from goldstein.cli.folder import answer, print_verification, say, table
from goldstein.cli.problem import choose_for
from goldstein.errors import InputError
from goldstein.storage.bundle import PROOF, decide, opened_bundle, proof_number
from goldstein.storage.codec import limits_for
from goldstein.storage.records import CERTIFICATE, verification_facts


def verify(
    cert: CertificateOrRun,
    problem: RunProblem = None,
    d: Size = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Re-derive every number of a certificate from the function.

    Of a run's folder also: whether the certificate is what was asked for. A bundle (.zip, see
    `goldstein export`) that holds a proof file needs no function.
    """
    if cert.suffix == ".zip":
        with opened_bundle(cert) as run:
            if problem is None:
                return _decided(cert, run, as_json)
            return verify(run, problem, d, trust, as_json)
    cert, problem, request = folder.claim_and_problem(cert, problem, "verify", trust)
    if request is not None and not cert.exists():
        # A run without a certificate: that is an answer, not bad input.
        why = f"the run in {cert.parent} ended without a certificate ({request['status']})"
        nothing = {"certificate": None, "ok": False, "met": False, "message": why}
        return answer(as_json, nothing, lambda: say(f"NOT VERIFIED: {why}"), ok=False)
    certificate = load_certificate(cert)
    chosen = choose_for(problem, d, certificate.x)
    # Without limits a certificate may still be one of a bounded problem: its check will tell.
    found = certificate.verify(chosen.oracle, **limits_for(certificate, chosen.limits))
    met = None if request is None else _meets(certificate, found, request)
    facts = {"certificate": str(cert), "problem": problem, **verification_facts(found)}
    answer(
        as_json, facts if met is None else {**facts, "met": met},
        lambda: print_verification(found, f"{cert} for {problem}", _asked(request, met)),
        ok=found.ok and met is not False,
    )  # fmt: skip


def _decided(bundle: Path, run: Path, as_json: bool) -> None:
    """Decide the proof of a bundle, and whether it is about the certificate beside it."""
    if not (run / PROOF).exists():
        raise InputError(f"{bundle} holds no {PROOF}: name the problem that it is about.")
    request, certificate = folder.read_request(run), load_certificate(run / CERTIFICATE)
    verdict, said = decide(run / PROOF)
    file = json.loads((run / PROOF).read_text()) if verdict == "TRUE" else {}
    claim = {
        name: proof_number(text) for name, text in file.get("claim", {}).items() if name != "kind"
    }
    same = [proof_number(text) for text in file.get("x", [])] == certificate.x.tolist()
    met = all(claim.get(name, math.inf) <= request[name] for name in ("eps", "delta"))
    wish = f"eps {request['eps']:g}, delta {request['delta']:g}"
    rows = [
        ("proof", f"{verdict}: {said}"),
        ("certificate", certificate.summary() if same else "NOT about the point of the proof"),
        ("asked for", f"{wish}: {'met' if met else 'NOT met'}"),
    ]  # fmt: skip
    facts = {"bundle": str(bundle), "verdict": verdict, "why": said, "same": same, "met": met}
    answer(as_json, facts, lambda: table(rows, str(bundle)), ok=verdict == "TRUE" and same and met)


def _meets(certificate: Any, found: Verification, request: dict[str, Any]) -> bool:
    kind, asked = certificate.kind, str(request.get("stationarity"))
    strong = {"near": kind.startswith("near"), "minimum": kind == "minimum"}.get(asked, True)
    return strong and found.eps <= request["eps"] and found.delta <= request["delta"]


def _asked(request: dict[str, Any] | None, met: bool | None) -> list[tuple[str, str]]:
    if request is None:
        return []
    asked = str(request.get("stationarity"))
    kind = {"near": "near stationary", "minimum": "stationary minimum"}.get(asked)
    wish = f"({request['eps']:g}, {request['delta']:g})-{kind or 'Goldstein stationary'}"
    return [("asked for", f"{wish}: {'met' if met else 'NOT met'}")]
