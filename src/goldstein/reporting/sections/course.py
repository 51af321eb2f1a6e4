"""How it went: f, bound and calls over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.reporting.blocks import Figure, Figures, Section, Table, number
from goldstein.reporting.pictures.course import draw_bound, draw_calls, draw_value, draw_violation
from goldstein.reporting.subject import Subject
from goldstein.reporting.svg import figure
from goldstein.reporting.thinning import thinned

#: Rows of the table of numbers.
_ROWS = 200


def course(subject: Subject) -> Section | None:
    """Pictures over time, and the numbers behind them."""
    history = subject.history
    if not len(history):
        return None
    eps = None if subject.asked is None else subject.asked[0]
    pictures: list[Figure] = [
        figure(lambda ax: draw_value(ax, history), f"The value of f, {len(history)} entries.")
    ]
    if np.isfinite(np.asarray(history.bound, float)).any():
        words = "The bound of the search: how short a combination of gradients it has found."
        pictures.append(figure(lambda ax: draw_bound(ax, history, eps), words))
    pictures.append(
        figure(lambda ax: draw_calls(ax, history), "Calls of f and its gradient so far.")
    )
    if any(v > 0 for v in history.violation):
        words = "The largest violation of a constraint, where there is any."
        pictures.append(figure(lambda ax: draw_violation(ax, history), words))
    return Section("course", "How it went", [Figures(pictures), _numbers(history)])


def _numbers(history: Any) -> Table:
    columns = {name: np.asarray(c, float) for name, c in history.as_arrays().items()}
    kept = thinned(columns, _ROWS)
    rows = list(zip(*([number(v, 8) for v in column.tolist()] for column in kept.values())))
    part = "" if len(rows) == len(history) else f" ({len(rows)} of {len(history)} entries)"
    return Table.of(f"The numbers{part}", list(kept), rows, folded=True)
