"""The claims of proof files, of every kind, read as certificates of the library.

Their numbers are rounded to float64 first; what is then true of them says `exact_oracle`, anew.
"""

from __future__ import annotations

import json
import random
from decimal import InvalidOperation
from fractions import Fraction

from benchmarks.adversary import limit_files, minimum_files, proof_files
from benchmarks.adversary.ask import scratch
from benchmarks.adversary.exact_oracle import Document, Undecided, judge, rational
from benchmarks.adversary.suite import Attack, Rng, Seen
from benchmarks.differential import NotWritten
from benchmarks.three_checkers import kernel_says, rounded

import goldstein as gs

#: Gradients of these are asked for in float64, and claims have room for their rounding.
SAMPLED = ("goldstein", "plus")
ROOM = Fraction(1, 10**6)


def truth(document: Document, number: int) -> tuple[bool | None, str]:
    """Return whether the evidence supports the claim, None where that is not known, and why."""
    claim = document["claim"]
    kind = claim["kind"]
    if kind == "minimum":
        wrong = minimum_files.refuted(document, random.Random(number))
        return False if wrong else None, wrong
    if kind in ("near", "goldstein"):
        found = judge(document, number)
        why, shown, sure = found.reason, found.shown, found.evidence == "supports"
        failed = found.evidence == "fails" and why != "combination"
    else:
        fails, shown, sure = limit_files.truth_of(document)
        why = ", ".join(sorted(set(fails) - {"separation"}))  # that the library finds by itself
        failed, sure = bool(why), sure and not fails
    if failed:
        return (None if kind in SAMPLED and why == "distance" else False), why
    if shown is None:
        return None, why
    if kind == "refutation":
        return shown >= rational(claim["fall"]) > 0, f"f falls by {float(shown)!r}"
    eps = rational(claim["eps"])
    room = ROOM * (1 + abs(shown)) if kind in SAMPLED else Fraction(0)
    if kind in ("near", "goldstein"):  # what is shown may be wrong by as much
        room += found.margin
    if shown > eps + room:
        return False, f"shown is {float(shown)!r}, claimed {float(eps)!r}"
    return sure or None, why


def kernel_files(rng: Rng, seen: Seen) -> None:
    number = int(rng.integers(2**31))
    family = str(rng.choice(["near", "limits", "minimum", "minimum"]))
    seen.note(f"{family}: {number}")
    if family == "near":
        files = list(proof_files.files(number))
    elif family == "limits":
        files = list(limit_files.files(number))
    else:
        files = list(minimum_files.files(number, scratch()))
    for file in files:
        if file.truth is None:  # no proof file at all
            continue
        document = rounded(json.loads(file.text))
        if document["claim"]["kind"] == "refutation" and number % 2:
            document = {k: v for k, v in document.items() if k not in ("bounds", "constraints")}
        try:
            ok = kernel_says(document)
            known, why = truth(document, number)
        except (NotWritten, gs.GoldsteinError, NotImplementedError, Undecided, InvalidOperation):
            seen.silent()
            continue
        label = "conditional" if document["claim"]["kind"] in SAMPLED else "certified"
        seen.claim(ok, label, known, f"{file.what}: {why}")


ATTACK = Attack(
    "kernel-files",
    "the claims of proof files, of every kind, put to the library itself",
    weight=6,
    one=kernel_files,
)
