"""Results, certificates and verifications as plain data, and the files of a run."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from goldstein.certificates import Verification
from goldstein.certificates.writing import replacing
from goldstein.result import Result

#: The files of a run.
RESULT, CERTIFICATE, HISTORY = "result.json", "certificate.cert", "history.csv"


def plain(data: Any) -> Any:
    """Return the data as JSON has it: lists, dicts, finite numbers, text."""
    if isinstance(data, dict):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, np.ndarray):
        return plain(data.tolist())
    if isinstance(data, list | tuple):
        return [plain(value) for value in data]
    if isinstance(data, np.generic):
        return plain(data.item())
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def certificate_facts(certificate: Any) -> dict[str, Any] | None:
    """The numbers of a certificate without its arrays."""
    if certificate is None:
        return None
    facts = {"kind": type(certificate).__name__, "summary": certificate.summary()}
    for name in ("eps", "delta", "label", "digest"):
        facts[name] = getattr(certificate, name, None)
    descent = getattr(certificate, "descent", None)
    if descent is not None:
        facts["descent"] = descent
        facts["descent_step"] = certificate.meta.get("descent_step")
    return facts


def result_facts(result: Result) -> dict[str, Any]:
    """A result as JSON has it."""
    facts = {
        name: getattr(result, name)
        for name in ("success", "message", "fun", "nit", "nfev", "ngev", "seed", "time", "method")
    }
    if result.violation is not None:
        for name in ("violation", "multipliers", "bound_multipliers"):
            facts[name] = getattr(result, name)
    return {
        **facts,
        "status": result.status.name,
        "x": result.x,
        "certificate": certificate_facts(result.certificate),
    }


def verification_facts(found: Verification) -> dict[str, Any]:
    """A verification as JSON has it."""
    return {
        "ok": found.ok,
        "eps": found.eps,
        "delta": found.delta,
        "label": found.label,
        "checks": [{"name": c.name, "ok": c.ok, "message": c.message} for c in found.checks],
    }


def write_run(folder: Path, result: Result, request: dict[str, Any]) -> None:
    """Write what was asked for and what came of it: certificate.cert, history.csv, result.json.

    Each appears under its name when it is whole, and result.json, which speaks of all, last.
    """
    if result.certificate is not None:
        result.certificate.save(folder / CERTIFICATE)
    else:
        (folder / CERTIFICATE).unlink(missing_ok=True)  # of a part of this run
    columns = result.history.as_arrays()
    rows = io.StringIO(newline="")
    csv.writer(rows).writerows([columns, *zip(*(c.tolist() for c in columns.values()))])
    facts = {"request": request, **result_facts(result)}
    text = json.dumps(plain(facts), allow_nan=False, indent=1) + "\n"
    for name, content in ((HISTORY, rows.getvalue()), (RESULT, text)):
        with replacing(folder / name) as file:
            file.write(content.encode())
