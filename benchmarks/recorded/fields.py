"""A result as plain fields that can be compared bit for bit; clocks are left out.

Only public attributes are read, so a change below the surface cannot break a recording.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
from fractions import Fraction
from typing import Any

import numpy as np

Fields = dict[str, Any]

#: Fields of a result that depend on the clock, on the machine or on the caller, or come apart.
_LEFT_OUT = ("time", "asked", "certificate", "history", "extra", "x")


def digest(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(raw).hexdigest()[:16]


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it, and nothing of it lost: floats in hexadecimal."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value).hex()
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not all(isinstance(item, float) for item in value):
        items = [plain(item) for item in value]
        return items if len(items) < 9 else f"{len(items)} items {digest(json.dumps(items))}"
    if isinstance(value, list | tuple | np.ndarray) or hasattr(value, "__array__"):
        return _array(np.asarray(value))
    return repr(value)


def _array(values: np.ndarray) -> Any:
    """Return the shape, a hash of all entries, and the first of them for readers."""
    shape = "x".join(map(str, values.shape))
    if values.dtype == object:
        return f"[{shape}] {digest(repr(values.tolist()))}"
    exact = np.ascontiguousarray(values)
    first = " ".join(f"{number:.6g}" for number in exact.ravel()[:3])
    return f"{exact.dtype}[{shape}] {digest(exact.tobytes())} {first}"


def of_certificate(certificate: Any, name: str = "certificate") -> Fields:
    """Return everything that a certificate says, and its hash."""
    if certificate is None:
        return {name: None}
    found: Fields = {f"{name}.kind": certificate.kind, f"{name}.summary": certificate.summary()}
    for field in dataclasses.fields(certificate):
        if field.name == "digest":
            continue
        found[f"{name}.{field.name}"] = plain(getattr(certificate, field.name))
    found[f"{name}.content"] = certificate.content_digest()[:16]
    return found


def of_verification(certificate: Any, *about: Any, name: str = "verify", **limits: Any) -> Fields:
    """Return the checks of a verification with a seed, and their verdicts."""
    if certificate is None:
        return {}
    seed = {} if certificate.kind == "near" else {"seed": 1}
    seen = certificate.verify(*about, **seed, **limits)
    verdicts = " ".join(f"{check.name}{'+' if check.ok else '-'}" for check in seen.checks)
    return {
        f"{name}.ok": seen.ok, f"{name}.label": seen.label, f"{name}.checks": verdicts,
        f"{name}.eps": plain(seen.eps), f"{name}.delta": plain(seen.delta),
    }  # fmt: skip


def of_history(history: Any) -> Fields:
    """Return the course of a run without its clock."""
    columns = {key: value for key, value in history.as_arrays().items() if key != "time"}
    course = {key: plain(column) for key, column in columns.items()}
    return {"history": f"{len(history)} steps {digest(json.dumps(course, sort_keys=True))}"}


def of_result(result: Any) -> Fields:
    """Return everything that `minimize` found, but for the clock."""
    found: Fields = {"x": plain(result.x)}
    for key in result:
        if key not in _LEFT_OUT:
            found[key] = plain(result[key])
    return {**found, **of_history(result.history), **of_certificate(result.certificate)}


def of_scipy(result: Any) -> Fields:
    """Return the fields of an `OptimizeResult`."""
    found = {key: plain(result[key]) for key in sorted(result) if key not in _LEFT_OUT}
    return {"x": plain(result.x), **found, **of_certificate(result.get("certificate"))}


def of_error(error: BaseException) -> Fields:
    """Return what somebody is told who asked for something that does not go."""
    return {"error": type(error).__name__, "message": str(error)}
