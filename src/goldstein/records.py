"""Results, certificates and verifications as plain data; the files of a run, out and in."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from goldstein.certificates import Verification, load_certificate
from goldstein.certificates.kinds import certificate_kind
from goldstein.certificates.writing import replacing
from goldstein.checker.files import Arrays
from goldstein.errors import InputError
from goldstein.oracles.structure import Structure
from goldstein.result import Asked, History, Result, Status

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


#: Fields of a result that a record holds as they are.
_PLAIN = (
    "fun", "success", "message", "nit", "nfev", "ngev", "seed", "time", "method", "gradient_scale",
    "violation", "constr_nfev", "constr_njev",
)  # fmt: skip
_ARRAYS = ("multipliers", "bound_multipliers")


def result_record(result: Result) -> tuple[Arrays, dict[str, Any]]:
    """Return a whole result as arrays and JSON fields, for a file.

    Examples
    --------
    >>> import goldstein as gs
    >>> res = gs.minimize(lambda x: x @ x, np.ones(2), lambda x: 2 * x, eps=9.0, delta=1.0, rng=0)
    >>> again = result_from_record(*result_record(res))
    >>> again.certificate.digest == res.certificate.digest
    True
    """
    structure, x = Structure.of(result.x, "x")
    arrays: Arrays = {"x": x}
    arrays |= {f"history.{name}": part for name, part in result.history.as_arrays().items()}
    arrays |= {name: part for name in _ARRAYS if (part := getattr(result, name)) is not None}
    fields = {name: _unboxed(getattr(result, name)) for name in _PLAIN}
    fields |= {"status": result.status.name, "structure": structure.spec}
    if result.certificate is not None:
        kind, parts, rest = result.certificate.to_record()
        arrays |= {f"certificate.{name}": part for name, part in parts.items()}
        fields["certificate"] = {"kind": kind, "fields": rest}
    return arrays, fields


def result_from_record(arrays: Arrays, fields: dict[str, Any]) -> Result:
    """Return the result that `result_record` wrote down; refuse what it cannot have written."""
    missing = [name for name in (*_PLAIN, "status", "structure") if name not in fields]
    if missing or "x" not in arrays:
        raise InputError(f"this is not the record of a result: {missing or 'x'} is missing.")
    certificate, written = None, fields.get("certificate")
    if written is not None:
        parts = _below("certificate.", arrays)
        certificate = certificate_kind(written["kind"]).from_record(parts, written["fields"])
    history = {name: part.tolist() for name, part in _below("history.", arrays).items()}
    rest: dict[str, Any] = {name: fields[name] for name in _PLAIN}
    rest |= {name: arrays.get(name) for name in _ARRAYS}
    return Result(
        x=Structure.read(fields["structure"]).build(arrays["x"]),
        status=Status[fields["status"]],
        certificate=certificate,
        history=History(**history),
        **rest,
    )


def _below(prefix: str, arrays: Arrays) -> Arrays:
    return {k.removeprefix(prefix): array for k, array in arrays.items() if k.startswith(prefix)}


def _unboxed(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def read_run(folder: Path) -> Result:
    """Read what `write_run` has written; the function itself is not in the files.

    Raises
    ------
    InputError
        With the file and what is wrong with it.
    """
    certificate = None
    if (folder / CERTIFICATE).exists():
        certificate = load_certificate(folder / CERTIFICATE)
    try:
        facts = json.loads((folder / RESULT).read_text())
        return _result(facts, certificate, _read_history(folder / HISTORY))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as failure:
        raise InputError(
            f"{folder} is not a run as `goldstein solve --out` leaves it "
            f"({type(failure).__name__}: {failure})."
        ) from failure


def _result(facts: dict[str, Any], certificate: Any, history: History) -> Result:
    request = facts["request"]
    counted: dict[str, Any] = {name: int(facts[name]) for name in ("nit", "nfev", "ngev", "seed")}
    violation = facts.get("violation")
    forces: dict[str, Any] = {
        name: None if facts.get(name) is None else np.array(facts[name], dtype=np.float64)
        for name in ("multipliers", "bound_multipliers")
    }
    return Result(
        x=_point(facts["x"]),
        fun=_number(facts["fun"]),
        success=facts["success"] is True,
        status=Status[facts["status"]],
        message=str(facts["message"]),
        certificate=certificate,
        history=history,
        time=_number(facts["time"]),
        method=str(facts["method"]),
        violation=None if violation is None else _number(violation),
        asked=Asked(
            _number(request["eps"]), _number(request["delta"]), str(request.get("stationarity"))
        ),
        **counted,
        **forces,
    )


def _number(value: Any) -> float:
    """A number as JSON has it; null stands for one that is not finite."""
    return math.nan if value is None else float(value)


def _point(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _point(part) for key, part in value.items()}
    return np.array(value, dtype=np.float64)


def _read_history(path: Path) -> History:
    with open(path, newline="") as file:
        names, *rows = list(csv.reader(file))
    history = History()
    columns = np.array(rows, dtype=np.float64).reshape(len(rows), len(names)).T
    for name, column in zip(names, columns):
        known = getattr(history, name)
        known.extend(column.tolist() if name != "calls" else column.astype(int).tolist())
    return history
