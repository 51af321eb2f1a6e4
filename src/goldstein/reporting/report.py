"""`Result.report`: one file about a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from goldstein.checker.layout import is_vector
from goldstein.errors import InputError
from goldstein.oracles import Oracle, as_oracle
from goldstein.oracles.structure import Structure
from goldstein.reporting.page import page
from goldstein.reporting.subject import Subject
from goldstein.result import Result
from goldstein.storage.files import replacing

_NO_FUNCTION = "Pass the function to report() for checks, level lines and the curve."


def write_report(
    result: Any,
    path: str | Path,
    fun: Any = None,
    jac: Callable[..., Any] | bool | None = None,
    limits: dict[str, Any] | None = None,
    title: str = "",
) -> Path:
    """Write the page of a result, or of many starts (`best`, `points`, `failures`)."""
    many = result if hasattr(result, "best") and hasattr(result, "points") else None
    best: Result = result if many is None else result.best
    if best is None:
        raise InputError("no run has ended with a result: there is nothing to report.")
    asked = best.asked
    oracle, known = (None, {}) if asked is None else (asked.fun, asked.limits)
    if fun is not None:
        oracle, known = _oracle(best, fun, jac), {}
    subject = Subject(
        best, title or _title(best, oracle), oracle, limits or known,
        remark="" if oracle is not None else _NO_FUNCTION, starts=many,
    )  # fmt: skip
    return write_page(subject, path)


def write_page(subject: Subject, path: str | Path) -> Path:
    """Write the page of a subject, all or nothing; the suffix .html is added if there is none."""
    target = Path(path)
    if not target.suffix:
        target = target.with_suffix(".html")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is no folder; make it, or name another one.")
    html = page(subject)
    with replacing(target) as file:
        file.write(html.encode())
    return target


def _oracle(result: Result, fun: Any, jac: Any) -> Oracle:
    layout = getattr(result.certificate, "layout", [0])
    return as_oracle(fun, jac, (), None if is_vector(layout) else Structure(layout))


def _title(result: Result, oracle: Oracle | None) -> str:
    recorded = getattr(result.certificate, "meta", {}).get("function")
    name = oracle.name if oracle is not None else recorded
    return f"A run on {name}" if isinstance(name, str) and name != "<lambda>" else "A run"
