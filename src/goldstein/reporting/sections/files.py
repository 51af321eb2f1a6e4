"""For whoever wants to check: the certificate, the proof file, and what to type."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from goldstein.calculus import Expression
from goldstein.certificates.export import NoProofFile
from goldstein.errors import GoldsteinError
from goldstein.reporting.blocks import Code, Download, Section, Text
from goldstein.reporting.subject import Subject
from goldstein.storage.codec import save_certificate

#: Bytes of a file inside the page; larger ones stay outside.
_MOST_CERTIFICATE, _MOST_PROOF = 500_000, 300_000

#: Coordinates of x that are written out.
_MOST_NUMBERS = 1000


def files(subject: Subject) -> Section | None:
    """Downloads and commands."""
    blocks: list[Any] = []
    if subject.certificate is not None:
        blocks += _certificate(subject)
        blocks += _proof(subject)
    x = subject.x
    if x.size <= _MOST_NUMBERS:
        blocks.append(Code("x", json.dumps(x.tolist())))
    return Section("files", "Check it yourself", blocks) if blocks else None


def _certificate(subject: Subject) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = save_certificate(subject.certificate, Path(folder) / "certificate.cert")
        content = file.read_bytes()
    verify = Code("verify it", subject.command or _python(subject))
    if len(content) > _MOST_CERTIFICATE:
        words = f"The certificate is a file of {len(content) / 1e6:.1f} MB, too long for this page."
        return [Text(words), verify]
    return [Download("certificate.cert", "application/zip", content), verify]


def _proof(subject: Subject) -> list[Any]:
    """A proof file, for functions that can be written down and are not too long."""
    fun, certificate = subject.fun, subject.certificate
    if not isinstance(fun, Expression) or isinstance(certificate, NoProofFile):
        return []
    if not fun.kink_form().is_small:
        return []
    with tempfile.TemporaryDirectory() as folder:
        try:
            content = certificate.export(Path(folder) / "proof.json", fun).read_bytes()
        except GoldsteinError as failure:
            return [Text(f"There is no proof file: {failure}", "note")]
    if len(content) > _MOST_PROOF:
        return []
    words = (
        "The proof file holds certificate and function; goldstein-check decides about it with "
        "rational arithmetic and needs nothing else."
    )
    return [
        Text(words),
        Download("proof.json", "application/json", content),
        Code("check the proof", "goldstein-check proof.json"),
    ]


def _python(subject: Subject) -> str:
    kind = subject.certificate.kind
    function = "F" if kind.startswith("near") else "fun" if kind == "values" else "fun, jac"
    limits = "".join(f", {name}={name}" for name in subject.taken)
    return (
        "import goldstein as gs\n"
        f'print(gs.load_certificate("certificate.cert").verify({function}{limits}))'
    )
