"""`goldstein attest RUN -o FILE`, `goldstein attest --check FILE`: in-toto Statements."""

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

import goldstein
from goldstein.certificates import load_certificate
from goldstein.cli import arguments, folder, problem
from goldstein.cli.folder import answer, table
from goldstein.errors import InputError
from goldstein.storage.bundle import PROOF, decide
from goldstein.storage.files import replacing
from goldstein.storage.records import CERTIFICATE, RESULT, certificate_facts, plain

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:goldstein:claim:v1"


def attest(
    run: Annotated[
        Path, typer.Argument(help="The folder of a run; with --check the statement itself.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The statement; default: RUN/claim.intoto.json."),
    ] = None,
    subject: Annotated[
        list[Path] | None, typer.Option(help="A file that the claim is about: data, weights.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the files with a statement; decide its proof.")
    ] = False,
    as_json: arguments.AsJson = False,
) -> None:
    """Write, or check, an in-toto Statement about a run.

    Its subjects are the files that the claim is about, by their hashes; its predicate is the claim,
    with the hash of its proof (`goldstein export RUN -o RUN/proof.json`). Sign it as you sign
    others.
    """
    if check:
        rows = _checked(run)
        ok = all(good for _, good, _ in rows)
        shown = [("verdict", "HOLDS" if ok else "DOES NOT HOLD")]
        shown += [(name, f"{'ok  ' if good else 'FAIL'}  {said}") for name, good, said in rows]
        facts = {"ok": ok, "checks": [{"name": n, "ok": g, "message": s} for n, g, s in rows]}
        return answer(as_json, facts, lambda: table(shown, str(run)), ok=ok)
    target = out or run / "claim.intoto.json"
    statement = _statement(run, list(subject or []), target.parent)
    with replacing(target) as file:
        file.write((json.dumps(statement, indent=1, allow_nan=False) + "\n").encode())
    names = ", ".join(part["name"] for part in statement["subject"])
    answer(as_json, statement, lambda: table([("written", target), ("about", names)], str(run)))


def _hashed(path: Path, base: Path) -> dict[str, Any]:
    """Return a file's name, as seen from the statement, and its hash."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as failure:
        raise InputError(f"{path} cannot be read ({failure.strerror}).") from failure
    name = os.path.relpath(path.resolve(), base.resolve())
    return {"name": Path(name).as_posix(), "digest": {"sha256": digest}}


def _statement(run: Path, subjects: list[Path], base: Path) -> dict[str, Any]:
    request = folder.read_request(run)
    if not (run / CERTIFICATE).is_file():
        raise InputError(f"the run in {run} ended without a certificate: nothing to attest.")
    if problem.is_file(request["problem"]):
        named = Path(problem.split(request["problem"])[0])
        recorded = Path(str(request.get("directory", "."))) / named
        subjects = [recorded if recorded.is_file() else named, *subjects]
    asked = {name: value for name, value in request.items() if name not in ("directory", "problem")}
    claim = {**(certificate_facts(load_certificate(run / CERTIFICATE)) or {}), "asked": asked}
    predicate = {"claim": claim, "certificate": _hashed(run / CERTIFICATE, base)}
    if (run / PROOF).is_file():
        verdict, said = decide(run / PROOF)
        predicate["proof"] = {**_hashed(run / PROOF, base), "verdict": verdict, "sentence": said}
    predicate["made"] = {"by": "goldstein", "version": goldstein.__version__}
    return {
        "_type": STATEMENT,
        "subject": [_hashed(path, base) for path in [run / RESULT, *subjects]],
        "predicateType": PREDICATE,
        "predicate": plain(predicate),
    }


def _checked(path: Path) -> list[tuple[str, bool, str]]:
    """Compare everything that a statement names with what is there."""
    try:
        statement = json.loads(path.read_text())
        kind = statement["_type"], statement["predicateType"]
        predicate, parts = statement["predicate"], list(statement["subject"])
        parts += [predicate[name] for name in ("certificate", "proof") if name in predicate]
        wanted = [(str(part["name"]), str(part["digest"]["sha256"])) for part in parts]
        claim = predicate["claim"]
    except (OSError, ValueError, KeyError, TypeError) as failure:
        raise InputError(f"{path} is no statement of goldstein attest ({failure}).") from failure
    rows = [("type", kind == (STATEMENT, PREDICATE), " ".join(map(str, kind)))]
    for name, digest in wanted:
        file = path.parent / name
        there = file.is_file()
        same = there and hashlib.sha256(file.read_bytes()).hexdigest() == digest
        rows.append((name, same, "unchanged" if same else "changed" if there else "missing"))
    if all(good for _, good, _ in rows):
        facts = plain(
            certificate_facts(load_certificate(path.parent / predicate["certificate"]["name"]))
        )
        same = all(claim.get(name) == value for name, value in (facts or {}).items())
        rows.append(("claim", same, claim.get("summary", "") if same else "not the certificate's"))
        if "proof" in predicate:
            verdict, said = decide(path.parent / predicate["proof"]["name"])
            rows.append(("proof", verdict == "TRUE", said))
    return rows
