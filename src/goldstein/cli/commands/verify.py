"""`goldstein verify CERT PROBLEM`, or `goldstein verify RUN_FOLDER`."""

from __future__ import annotations

from typing import Any

from goldstein.certificates import (
    NearCertificate,
    NearKKTCertificate,
    Verification,
    load_certificate,
)
from goldstein.cli import folder
from goldstein.cli.arguments import AsJson, CertificateOrRun, RunProblem, Size, Trust
from goldstein.cli.output import answer, print_verification, say
from goldstein.cli.problem import choose_for
from goldstein.storage.codec import limits_for
from goldstein.storage.records import verification_facts


def verify(
    cert: CertificateOrRun,
    problem: RunProblem = None,
    d: Size = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Re-derive every number of a certificate from the function.

    Of a run's folder also: whether the certificate is what was asked for.
    """
    cert, problem, request = folder.claim_and_problem(cert, problem, "verify", trust)
    if request is not None and not cert.exists():
        # A run without a certificate: that is an answer, not bad input.
        why = f"the run in {cert.parent} ended without a certificate ({request['status']})"
        nothing = {"certificate": None, "ok": False, "met": False, "message": why}
        return answer(as_json, nothing, lambda: say(f"NOT VERIFIED: {why}"), ok=False)
    certificate = load_certificate(cert)
    chosen = choose_for(problem, d, certificate.x)
    # Without limits a certificate may still be one of a bounded problem: its check will tell.
    limits = limits_for(certificate, chosen.limits)
    found = certificate.verify(chosen.oracle, **limits)
    met = None if request is None else _meets(certificate, found, request)
    facts = {"certificate": str(cert), "problem": problem, **verification_facts(found)}
    answer(
        as_json, facts if met is None else {**facts, "met": met},
        lambda: print_verification(found, f"{cert} for {problem}", _asked(request, met)),
        ok=found.ok and met is not False,
    )  # fmt: skip


def _meets(certificate: Any, found: Verification, request: dict[str, Any]) -> bool:
    near = isinstance(certificate, NearCertificate | NearKKTCertificate)
    strong = request.get("stationarity") != "near" or near
    return strong and found.eps <= request["eps"] and found.delta <= request["delta"]


def _asked(request: dict[str, Any] | None, met: bool | None) -> list[tuple[str, str]]:
    if request is None:
        return []
    kind = "near" if request.get("stationarity") == "near" else "Goldstein"
    wish = f"({request['eps']:g}, {request['delta']:g})-{kind} stationary"
    return [("asked for", f"{wish}: {'met' if met else 'NOT met'}")]
