"""Results, certificates and verifications as plain data; the files of a run, out and in."""

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from goldstein.checker.function import put_together, taken_apart
from goldstein.checker.verification import Verification
from goldstein.errors import InputError
from goldstein.result import Asked, History, Result, Status
from goldstein.storage.codec import Arrays, certificate_kind, is_layout, load_certificate
from goldstein.storage.files import replacing

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


def _number(value: Any) -> float:
    """A number as JSON has it; null stands for one that is not finite."""
    return math.nan if value is None else float(value)


#: How a field of a type is read that is written as it is.
_READ: dict[Any, Callable[[Any], Any]] = {
    "float": _number, "int": int, "str": str, "bool": lambda value: value is True,
}  # fmt: skip
#: Such fields of a result; those that not every run has; and those that are arrays.
_SCALARS = {f.name: _READ[f.type] for f in fields(Result) if f.type in _READ}
_OPTIONAL = {f.name: _READ[t] for f in fields(Result) if (t := f"{f.type}"[:-7]) in _READ}
_ARRAYS = [f.name for f in fields(Result) if f"{f.type}".startswith("NDArray")]


def _written(result: Result) -> tuple[dict[str, Any], Arrays]:
    """Return the fields of a result that need no words of their own, and its forces."""
    known = {name: getattr(result, name) for name in (*_SCALARS, *_OPTIONAL)}
    known = {name: v.item() if isinstance(v, np.generic) else v for name, v in known.items()}
    forces = {name: part for name in _ARRAYS if (part := getattr(result, name)) is not None}
    return {**known, "status": result.status.name}, forces


def _restored(known: dict[str, Any], forces: dict[str, Any], **rest: Any) -> Result:
    """Return the result of which `_written` wrote down a part; `rest` is the other one."""
    scalars = {name: read(known[name]) for name, read in _SCALARS.items()}
    for name, read in _OPTIONAL.items():
        scalars[name] = None if known.get(name) is None else read(known[name])
    parts: dict[str, Any] = {
        name: None if forces.get(name) is None else np.array(forces[name], dtype=np.float64)
        for name in _ARRAYS
    }
    return Result(status=Status[known["status"]], **scalars, **parts, **rest)


def result_facts(result: Result) -> dict[str, Any]:
    """A result as JSON has it, for people; `result_record` is the whole of it."""
    known, forces = _written(result)
    facts = {name: value for name, value in known.items() if value is not None}
    claim = certificate_facts(result.certificate)
    return {**facts, **forces, "x": result.x, "certificate": claim}


def verification_facts(found: Verification) -> dict[str, Any]:
    """A verification as JSON has it."""
    facts = {name: getattr(found, name) for name in ("ok", "eps", "delta", "label")}
    checks = [{"name": c.name, "ok": c.ok, "message": c.message} for c in found.checks]
    return {**facts, "checks": checks}


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
    layout, parts = taken_apart(result.x, "x")
    arrays: Arrays = {"x": np.concatenate([np.zeros(0), *(part.ravel() for part in parts)])}
    arrays |= {f"history.{name}": part for name, part in result.history.as_arrays().items()}
    known, forces = _written(result)
    claim, written = certificate_parts("certificate", result.certificate)
    return arrays | forces | claim, {**known, "structure": layout, "certificate": written}


def result_from_record(arrays: Arrays, fields: dict[str, Any]) -> Result:
    """Return the result that `result_record` wrote down; refuse what it cannot have written."""
    needed = (*_SCALARS, *_OPTIONAL, "status", "structure")
    missing = [name for name in needed if name not in fields]
    if missing or "x" not in arrays:
        raise InputError(f"this is not the record of a result: {missing or 'x'} is missing.")
    if not is_layout(fields["structure"]):
        raise InputError("the layout of the point in this certificate is not one of ours.")
    certificate = certificate_from_parts("certificate", arrays, fields.get("certificate"))
    history = {name: part.tolist() for name, part in _below("history.", arrays).items()}
    x = put_together(fields["structure"], arrays["x"])
    return _restored(fields, arrays, x=x, certificate=certificate, history=History(**history))


def certificate_parts(name: str, certificate: Any) -> tuple[Arrays, dict[str, Any] | None]:
    """Return a certificate as arrays under a name and one JSON field, for a larger record."""
    if certificate is None:
        return {}, None
    kind, arrays, fields = certificate.to_record()
    return {f"{name}.{k}": part for k, part in arrays.items()}, {"kind": kind, "fields": fields}


def certificate_from_parts(name: str, arrays: Arrays, written: dict[str, Any] | None) -> Any:
    """Return the certificate that `certificate_parts` wrote down, None if there was none."""
    if written is None:
        return None
    kind = certificate_kind(written["kind"])
    return kind.from_record(_below(f"{name}.", arrays), written["fields"])


def _below(prefix: str, arrays: Arrays) -> Arrays:
    return {k.removeprefix(prefix): array for k, array in arrays.items() if k.startswith(prefix)}


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
        request = facts["request"]
        asked = Asked(
            _number(request["eps"]), _number(request["delta"]), str(request.get("stationarity"))
        )
        history = _read_history(folder / HISTORY)
        return _restored(
            facts, facts, x=_point(facts["x"]), certificate=certificate, history=history,
            asked=asked,
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as failure:
        raise InputError(
            f"{folder} is not a run as `goldstein solve --out` leaves it "
            f"({type(failure).__name__}: {failure})."
        ) from failure


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
