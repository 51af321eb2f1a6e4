"""The folder of a run: result.json, certificate.cert, history.csv, and the checkpoint."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from goldstein.cli.output import plain, result_facts
from goldstein.errors import InputError
from goldstein.result import Result

RESULT = "result.json"
CERTIFICATE = "certificate.cert"
HISTORY = "history.csv"
CHECKPOINT = "checkpoint.journal"


def prepare(folder: Path | None, resume: bool) -> Path | None:
    """Make the folder and return the path of the checkpoint; a new run forgets the old one."""
    if folder is None:
        if resume:
            raise InputError("--resume needs --out DIR, the folder of the run to continue.")
        return None
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / CHECKPOINT
    if not resume:
        for name in (CHECKPOINT, RESULT, CERTIFICATE, HISTORY):
            (folder / name).unlink(missing_ok=True)
    elif not checkpoint.exists():
        raise InputError(f"{folder} holds no run to resume; leave out --resume to start one.")
    return checkpoint


def save(folder: Path, result: Result, request: dict[str, Any]) -> None:
    """Write the run."""
    if result.certificate is not None:
        result.certificate.save(folder / CERTIFICATE)
    with open(folder / HISTORY, "w", newline="") as file:
        columns = result.history.as_arrays()
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values())))
    facts = {"request": request, **result_facts(result)}
    (folder / RESULT).write_text(json.dumps(plain(facts), allow_nan=False, indent=1) + "\n")
