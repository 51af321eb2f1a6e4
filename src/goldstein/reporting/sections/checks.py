"""Is it true? Every check with its sentence, and how much room there is."""

from __future__ import annotations

import math
from typing import Any

from goldstein.certificates import Verification
from goldstein.reporting.blocks import Section, Table, Text, number
from goldstein.reporting.subject import Subject


def checks(subject: Subject) -> Section | None:
    """The verification, made while the page was written."""
    if subject.certificate is None:
        return None
    found = subject.verification
    blocks: list[Any] = []
    if found is None:
        words = "The function is not known here, so nothing was asked again. " + subject.remark
        blocks.append(Text(words, "note"))
    elif isinstance(found, str):
        blocks.append(Text(found, "bad"))
    else:
        said = "Every check passed" if found.ok else "Some checks failed"
        exact = subject.certificate.kind.startswith("near")
        how = "derived again in rational arithmetic" if exact else "derived again from the function"
        words = f"{said} when this page was made: everything was {how}."
        blocks.append(Text(words, "good" if found.ok else "bad"))
    blocks.append(Table.of("Margins", ("", "asked for", "claimed", "found again", "room"),
                           _margins(subject, found)))  # fmt: skip
    if isinstance(found, Verification):
        rows = [(c.name, "passed" if c.ok else "FAILED", c.message) for c in found.checks]
        blocks.append(Table.of("Checks", ("check", "verdict", "what was found"), rows))
    return Section("checks", "Is it true?", blocks)


def _margins(subject: Subject, found: Verification | str | None) -> list[tuple[str, ...]]:
    """Asked, claimed, found; and which part of what was asked for is not used up."""
    rows: list[tuple[str, ...]] = []
    for k, name in enumerate(("eps", "delta")):
        asked = math.nan if subject.asked is None else subject.asked[k]
        claimed = float(getattr(subject.certificate, name))
        again = getattr(found, name) if isinstance(found, Verification) else math.nan
        room = "unknown" if not asked > 0 else f"{100 * (1 - claimed / asked):.1f} %"
        rows.append((name, number(asked), number(claimed), number(again), room))
    return rows
