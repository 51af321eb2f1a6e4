"""What a check found: a verdict, and a sentence for each thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Literal

Label = Literal["certified", "conditional", "estimated", "refuted"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    message: str


@dataclass
class Verification:
    """The outcome of verifying a certificate.

    Attributes
    ----------
    ok : bool
        True when every check passed.
    eps, delta : float
        What was re-derived, not what was claimed.
    label : str
        The strongest label this verification supports.
    checks : list of Check
    """

    eps: float
    delta: float
    label: Label
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return bool(self.checks) and all(check.ok for check in self.checks)

    def add(self, name: str, ok: bool, message: str) -> bool:
        """Record one check and return its verdict."""
        self.checks.append(Check(name, bool(ok), message))
        return bool(ok)

    def conclude(self, claimed: str) -> Verification:
        """A claim that passed all checks is certified; it may state less."""
        self.label = "certified" if self.ok else self.label
        supported = claimed in ("certified", "conditional", "estimated")
        self.add("label", supported, f"claimed {claimed}, this check proves {self.label}")
        return self

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        verdict = "VERIFIED" if self.ok else "NOT VERIFIED"
        head = f"{verdict}: eps = {self.eps:.6g}, delta = {self.delta:.6g}, label {self.label}"
        lines = (f"  [{'ok' if c.ok else 'FAIL'}] {c.name}: {c.message}" for c in self.checks)
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"
