"""The sections of a page, in order: a new one is a function that makes blocks, and a line here."""

from collections.abc import Callable
from typing import Any

from goldstein.errors import MissingExtraError
from goldstein.reporting.blocks import Section, Text
from goldstein.reporting.sections import certificate, run
from goldstein.reporting.subject import Subject

#: Name, title, and what makes the blocks: a function of the subject, or None of them.
ORDER: tuple[tuple[str, str, Callable[[Subject], list[Any] | None]], ...] = (
    ("checks", "Is it true?", certificate.checks),
    ("self-check", "This page checks itself", certificate.self_check),
    ("course", "How it went", run.course),
    ("geometry", "What was found", certificate.geometry),
    ("model", "The support vector machine", run.machine), ("model", "The network", run.network),
    ("curve", "Other radii", run.curve),
    ("structure", "Which pieces meet near x", certificate.structure),
    ("pivot", "The pivot", certificate.pivot), ("constraints", "Constraints", run.constraints),
    ("starts", "Many starts", run.starts), ("proof", "Why", certificate.proof),
    ("files", "Check it yourself", certificate.files),
)  # fmt: skip

#: While a run goes on: what costs no calls of its function.
LIVE = ("course",)


def sections_of(subject: Subject) -> list[Section]:
    """Return what there is to say; a section that fails says so, and the others stay."""
    found: list[Section] = []
    for name, title, make in ORDER:
        if subject.running and name not in LIVE:
            continue
        try:
            blocks = make(subject)
        except MissingExtraError:
            raise
        except Exception as failure:  # the user's function is asked here, and may do anything
            words = f"This part could not be made: {type(failure).__name__}: {failure}"
            title, blocks = name.capitalize(), [Text(words, "note")]
        if blocks is not None:
            found.append(Section(name, title, blocks))
    return found
