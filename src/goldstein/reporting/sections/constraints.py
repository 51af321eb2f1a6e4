"""Constraints: values, slacks and multipliers."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.reporting.blocks import Facts, Section, Table, number
from goldstein.reporting.subject import Subject


def constraints(subject: Subject) -> Section | None:
    """What pushes at x, and what is far away."""
    result = subject.result
    if result.violation is None:
        return None
    facts = [("largest violation at x", number(result.violation))]
    qualification = getattr(subject.certificate, "qualification", None)
    if qualification is not None:
        words = "degenerate: " if getattr(subject.certificate, "degenerate", False) else ""
        facts.append(
            ("how far active constraints are from cancelling", words + number(qualification))
        )
    blocks: list[Any] = [Facts(facts)]
    if subject.problem is not None and subject.problem.constraints.size:
        blocks.append(_rows(subject))
    elif result.multipliers is not None and result.multipliers.size:
        pairs = [(i, number(v)) for i, v in enumerate(result.multipliers.tolist())]
        blocks.append(Table.of("Multipliers", ("constraint", "multiplier"), pairs))
    blocks += _bounds(subject)
    return Section("constraints", "Constraints", blocks)


def _rows(subject: Subject) -> Table:
    assert subject.problem is not None
    system = subject.problem.constraints
    values = system.values(subject.problem.box.clip(subject.x))
    slack = np.minimum(values - system.lower, system.upper - values)
    multipliers = subject.result.multipliers
    if multipliers is None or multipliers.size != system.size:
        multipliers = np.full(system.size, np.nan)
    rows = [
        (i, system.name(i), number(low), number(value), number(high), number(room), number(force))
        for i, (low, value, high, room, force) in enumerate(
            zip(*(a.tolist() for a in (system.lower, values, system.upper, slack, multipliers)))
        )
    ]
    rows.sort(key=lambda row: -abs(multipliers[row[0]]) if np.isfinite(multipliers[row[0]]) else 0)
    head = ("number", "constraint", "lower", "value at x", "upper", "slack", "multiplier")
    return Table.of("Constraints, the strongest first", head, rows)


def _bounds(subject: Subject) -> list[Table]:
    forces = subject.result.bound_multipliers
    if forces is None or not np.any(forces):
        return []
    rows = [
        (i, number(float(subject.x[i]), 8), "lower" if forces[i] < 0 else "upper",
         number(float(forces[i])))
        for i in np.argsort(-np.abs(forces)).tolist() if forces[i] != 0
    ]  # fmt: skip
    return [Table.of("Active bounds", ("variable", "value", "bound", "multiplier"), rows)]
