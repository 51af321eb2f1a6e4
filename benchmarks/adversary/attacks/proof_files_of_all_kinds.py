"""`goldstein-check` on proof files with limits and terms, and of minima, random and forged."""

from __future__ import annotations

from benchmarks.adversary import case_files, limit_files, minimum_files
from benchmarks.adversary.ask import scratch
from benchmarks.adversary.attacks.proof_files import checked
from benchmarks.adversary.suite import Attack, Rng, Seen


def proof_files_of_all_kinds(rng: Rng, seen: Seen) -> None:
    number = int(rng.integers(2**31))
    kind = rng.random()
    if kind < 0.5:
        seen.note(f"limit_files.files({number})")
        files = list(limit_files.files(number))
    else:
        made = minimum_files if kind < 0.8 else case_files
        seen.note(f"{made.__name__}.files({number})")
        files = list(made.files(number, scratch()))
    for file in files:
        code, said = checked(file.text)
        assert file.truth is not None
        fault = file.fault(code, said)
        known = None if file.truth.evidence == "open" else not fault.endswith("TRUE")
        seen.claim(code == 0, "certified", known, f"{file.what}: {fault}, {said}")


ATTACK = Attack(
    "proof-files-of-all-kinds",
    "goldstein-check on near-KKT, prox, refutation and minimum files; the last attacked by search",
    weight=2,
    one=proof_files_of_all_kinds,
)
