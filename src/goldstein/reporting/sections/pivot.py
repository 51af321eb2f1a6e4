"""Near certificates: the pivot, and the rows that are exactly on a kink there."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.calculus import Expression
from goldstein.calculus.expression import numbered
from goldstein.checker.nodes import Piecewise
from goldstein.construction.near.kinks import Kinks
from goldstein.reporting.blocks import Facts, Section, Table, Text, number
from goldstein.reporting.subject import Subject

#: More variables than this are not examined for a page: exact arithmetic would take too long.
_MOST = 2000


def pivot(subject: Subject) -> Section | None:
    """Where the subgradient is taken."""
    certificate = subject.certificate
    y = getattr(certificate, "pivot", None)
    if y is None:
        return None
    moved = y - certificate.x
    facts = [
        ("distance of the pivot from x", number(float(np.linalg.norm(moved)))),
        ("variables that differ", f"{np.count_nonzero(moved)} of {y.size}"),
        ("ways to leave it that are used", str(len(certificate.directions))),
    ]
    blocks: list[Any] = [
        Text("The pivot is a point with rational coordinates near x; everything is proved there."),
        Facts(facts),
    ]
    if isinstance(subject.fun, Expression) and y.size <= _MOST:
        rows = _on_kinks(subject.fun, certificate)
        blocks.append(Table.of("Exactly on a kink at the pivot", ("atom", "row", "kink"), rows))
    return Section("pivot", "The pivot", blocks)


def _on_kinks(fun: Expression, certificate: Any) -> list[tuple[str, int, str]]:
    form, (_, owners), found = Kinks(fun), numbered(fun), []
    for k, entry, level in form.active(form.examine(certificate.exact_pivot)):
        node, where = form.nodes[k], f"tie {level}"
        if isinstance(node, Piecewise):
            where = f"argument = {float(node.breakpoints[level]):.6g}"
        found.append((owners[k].name, entry, where))
    return found
