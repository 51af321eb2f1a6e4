"""What a page is made of. Sections hold data; only the template knows HTML."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

#: Rows of a table, at most; a note says how many there are.
MOST_ROWS = 200
#: Longer tables are folded away at first.
LONG = 20


class Block:
    """A part of a section; its template is named after its class."""

    @property
    def block(self) -> str:
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Text(Block):
    """A paragraph; `tone` is "", "good", "bad" or "note"."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Facts(Block):
    """Names and values."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table(Block):
    """A table that can be sorted by any column."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    total: int = 0
    #: Folded away at first.
    folded: bool = False

    @classmethod
    def of(
        cls, caption: str, head: Sequence[str], rows: Sequence[Sequence[Any]], folded: bool = False
    ) -> Table:
        """Return the table of the first rows; a long one is folded."""
        return cls(caption, head, rows[:MOST_ROWS], len(rows), folded or len(rows) > LONG)


@dataclass(frozen=True)
class Figure(Block):
    """A picture with its words; the SVG is ours, and safe."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Figures(Block):
    """Pictures side by side, as far as there is room."""

    figures: Sequence[Figure]


@dataclass(frozen=True)
class Tree(Block):
    """A proof: steps that rest on steps."""

    claim: str
    remark: str
    ok: bool
    steps: Sequence[Tree]


@dataclass(frozen=True)
class Code(Block):
    """Something to copy."""

    name: str
    text: str


@dataclass(frozen=True)
class Download(Block):
    """A file inside the page."""

    filename: str
    kind: str
    content: bytes

    @property
    def url(self) -> str:
        return f"data:{self.kind};base64,{base64.b64encode(self.content).decode()}"


@dataclass(frozen=True)
class Proof(Download):
    """A proof file that the page itself decides about."""


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    name: str
    title: str
    blocks: Sequence[Any] = field(default_factory=tuple)


def number(value: float | None, digits: int = 4) -> str:
    """Write a number for people.

    Examples
    --------
    >>> number(0.000123456), number(None), number(float("inf"))
    ('0.0001235', 'unknown', 'infinite')
    """
    if value is None or math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    return f"{value:.{digits}g}"
