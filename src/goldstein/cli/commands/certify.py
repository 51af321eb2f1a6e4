"""`goldstein certify PROBLEM --x POINT --delta D`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from goldstein.api import certify as certify_point
from goldstein.certificates import Verification
from goldstein.cli.arguments import AsJson, MaxCalls, Problem, Seed, Size, Stationarity
from goldstein.cli.folder import answer, say, table, vector
from goldstein.cli.problem import choose_for, read_vector
from goldstein.errors import InputError, NotCertifiableError
from goldstein.oracles import Oracle
from goldstein.result import minimality
from goldstein.storage.records import certificate_facts, verification_facts


def certify(
    problem: Problem,
    x: Annotated[str, typer.Option("--x", help="The point: 1,2,3 or a .npy, .csv or .txt file.")],
    delta: Annotated[float, typer.Option(help="Radius of the ball.")],
    eps: Annotated[
        float | None, typer.Option(help="Wanted bound; without it the smallest that is found.")
    ] = None,
    stationarity: Stationarity = "goldstein",
    seed: Seed = 0,
    d: Size = None,
    max_calls: MaxCalls = None,
    out: Annotated[Path | None, typer.Option(help="File for the certificate.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file in --out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say how stationary a point is; the point is never moved.

    With --eps the exit code is 1 where that bound is not met.
    """
    point = read_vector(x, "--x")
    chosen = choose_for(problem, d, point)
    target = _file_for(out, force)
    kind: Any = stationarity  # certify itself refuses other words
    try:
        certificate = certify_point(
            chosen.oracle, point, delta=delta, eps=eps or 0.0, stationarity=kind, rng=seed,
            max_calls=max_calls, **chosen.limits,
        )  # fmt: skip
    except NotCertifiableError as failure:
        why = str(failure)  # no certificate at all: that is an answer, not bad input
        facts = {"problem": problem, "met": False, "certificate": None, "message": why}
        return answer(as_json, facts, lambda: say(f"NOT certified: {why}"), ok=False)
    found = certificate.verify(chosen.oracle, **chosen.limits)
    met = found.ok and (eps is None or certificate.eps <= eps)
    saved = None if target is None else certificate.save(target)
    wanted = "" if eps is None else f"eps <= {eps:g}: {'met' if met else 'NOT met'}"
    rows = [
        ("x", vector(point)), ("certificate", certificate.summary()),
        ("minimum", minimality(certificate)),
        ("verified", "yes" if found.ok else "NO"), ("wanted", wanted), ("function", chosen.found),
        ("saved", saved or ""),
    ]  # fmt: skip

    def show() -> None:
        say(_headline(certificate, found, eps, delta, chosen.oracle))
        table([row for row in rows if row[1]], problem)

    claim, checks = certificate_facts(certificate), verification_facts(found)
    facts = {"problem": problem, "met": met, "certificate": claim, "verification": checks}
    return answer(as_json, facts, show, ok=met)


def _headline(
    certificate: Any, found: Verification, eps: float | None, delta: float, oracle: Oracle
) -> str:
    """The verdict in one line, the bad news first."""
    if not found.ok:
        failed = "; ".join(f"{c.name}: {c.message}" for c in found.checks if not c.ok)
        return f"NOT VERIFIED ({failed})"
    if hasattr(certificate, "said"):
        return str(certificate.summary())
    proved = f"eps = {certificate.eps:.6g} within {certificate.delta:.6g}"
    if eps is not None and certificate.eps <= eps:
        return f"stationary to eps = {eps:g} within delta = {delta:g}: proved {proved}"
    falls = _fall(certificate, oracle)
    if eps is None and falls and certificate.is_short:
        return f"stationary: proved {proved}; but not a minimum: {falls}"
    if eps is None:
        return f"NOT stationary: {falls}; best bound {proved}" if falls else f"proved: {proved}"
    verdict = (
        f"NOT {'' if falls else 'proved '}stationary to eps = {eps:g} within delta = {delta:g}"
    )
    return f"{verdict}: {falls + '; ' if falls else ''}best bound {proved}"


def _fall(certificate: Any, oracle: Oracle) -> str:
    """What f does along the certificate's direction of descent, if it has one."""
    descent = getattr(certificate, "descent", None)
    if descent is None:
        return ""
    step = certificate.meta["descent_step"]
    fall = oracle.value(certificate.x) - oracle.value(certificate.x + step * descent)
    return f"f falls along {vector(descent)} by {fall:.3g} in a step of {step:.3g}"


def _file_for(out: Path | None, force: bool) -> Path | None:
    """The file of the certificate; a file that is there is not overwritten unasked."""
    if out is None:
        return None
    target = out if out.suffix else out.with_suffix(".cert")
    if target.is_dir():
        raise InputError(f"--out {out} is a folder; name a file for the certificate.")
    if target.exists() and not force:
        raise InputError(f"--out {target} is there already; replace it with --force.")
    if not target.parent.is_dir():
        raise InputError(f"--out {target}: there is no folder {target.parent}; make it first.")
    return target
