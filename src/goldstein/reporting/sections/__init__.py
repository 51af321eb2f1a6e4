"""The sections of a page, in order. Each is a function from a subject to a Section, or None.

A new one is a new file, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable

from goldstein.errors import MissingExtraError
from goldstein.reporting.blocks import Section, Text
from goldstein.reporting.sections.certificate import (
    checks,
    files,
    geometry,
    pivot,
    proof,
    structure,
)
from goldstein.reporting.sections.run import constraints, course, curve, model, starts
from goldstein.reporting.subject import Subject

ORDER: tuple[Callable[[Subject], Section | None], ...] = (
    checks, course, geometry, model, curve, structure, pivot, constraints, starts, proof, files,
)  # fmt: skip

#: While a run goes on: what costs no calls of its function.
LIVE = (course,)


def sections_of(subject: Subject) -> list[Section]:
    """Return what there is to say; a section that fails says so, and the others stay."""
    found: list[Section] = []
    for make in LIVE if subject.running else ORDER:
        try:
            section = make(subject)
        except MissingExtraError:
            raise
        except Exception as failure:  # the user's function is asked here, and may do anything
            name = make.__name__
            words = f"This part could not be made: {type(failure).__name__}: {failure}"
            section = Section(name, name.capitalize(), [Text(words, "note")])
        if section is not None:
            found.append(section)
    return found
