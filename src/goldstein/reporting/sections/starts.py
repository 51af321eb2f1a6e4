"""Many starts: the distinct stationary values."""

from __future__ import annotations

import numpy as np

from goldstein.reporting.blocks import Figures, Section, Table, Text, number
from goldstein.reporting.pictures.values import draw_values
from goldstein.reporting.subject import Subject
from goldstein.reporting.svg import figure


def starts(subject: Subject) -> Section | None:
    """Which stationary points were met, and how often."""
    many = subject.starts
    if many is None:
        return None
    points = sorted(many.points, key=lambda point: float(point.fun))
    failed = len(many.failures)
    words = f"{sum(int(p.count) for p in points)} runs ended at {len(points)} distinct points"
    words += f"; {failed} failed." if failed else "."
    rows = [
        (k, number(float(p.fun), 10), int(p.count), number(p.certificate.eps),
         number(p.certificate.delta), p.certificate.label)
        if p.certificate is not None
        else (k, number(float(p.fun), 10), int(p.count), "", "", "nothing proved")
        for k, p in enumerate(points)
    ]  # fmt: skip
    values = np.array([float(p.fun) for p in points])
    counts = np.array([int(p.count) for p in points])
    caption = "Values of the distinct points, and how many runs ended there."
    head = ("point", "f", "runs", "eps", "delta", "label")
    return Section(
        "starts",
        "Many starts",
        [
            Text(words),
            Figures([figure(lambda ax: draw_values(ax, values, counts), caption)]),
            Table.of("Distinct stationary points", head, rows),
        ],
    )
