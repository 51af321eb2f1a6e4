"""`goldstein-check` on proof files of random programs over every kind of node, and forged ones."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json

from benchmarks.adversary.ask import scratch
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein_check

#: How many instances are claims that are false by construction.
FORGED = 0.2


def proof_files(rng: Rng, seen: Seen) -> None:
    from benchmarks.adversary import proof_files as made

    if rng.random() < FORGED:
        names = list(made.FORGED)
        name = names[int(rng.integers(len(names)))]
        code, said = checked(json.dumps(made.FORGED[name]))
        seen.claim(code == 0, "certified", False, f"{name}: {said}")
        return
    number = int(rng.integers(2**31))
    seen.note(f"proof_files.files({number})")
    for file in made.files(number):
        code, said = checked(file.text)
        fault = file.fault(code, said)
        if file.truth is None:  # no proof file at all
            seen.claim(code == 0, "certified", False, f"{file.what}: read, {said}")
        else:
            known = None if file.truth.evidence == "open" else not fault.endswith("TRUE")
            seen.claim(code == 0, "certified", known, f"{file.what}: {fault}, {said}")


def checked(text: str) -> tuple[int, str]:
    """Return the exit code of `goldstein-check`, and what it says."""
    path = scratch() / "file.json"
    path.write_text(text)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = goldstein_check.main([str(path)])
    return code, said.getvalue().strip()[:300]


ATTACK = (
    Attack(
        "proof-files",
        "goldstein-check on proof files of random programs with every kind of node; forged ones",
        weight=3,
        one=proof_files,
    )
    if importlib.util.find_spec("benchmarks.adversary.proof_files")
    else None
)
