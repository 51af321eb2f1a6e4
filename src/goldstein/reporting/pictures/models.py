"""What users of a model expect to see."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.reporting.palette import palette

#: Rows and neurons of the picture of activations, at most.
_ROWS, _NEURONS = 200, 100


def draw_margins(ax: Any, margins: Vector, low: float, high: float, kink: Any) -> None:
    """A histogram of the margins, with the kinks of the loss and the rows that sit on them."""
    colours = palette()
    # A few rows far away must not hide the others.
    ends = np.quantile(margins, [0.005, 0.995]) if len(margins) > 400 else [-np.inf, np.inf]
    left = max(min(margins.min(), low), min(float(ends[0]), low)) - 1e-9
    right = min(max(margins.max(), high), max(float(ends[1]), high)) + 1e-9
    bins = np.linspace(left, right, 41)
    seen = np.clip(margins, left, right)
    groups = [seen[margins < low], seen[margins >= low]]
    ax.hist(
        groups, bins=bins, stacked=True, color=[colours.gradient, colours.point],
        label=["outliers", "others"],
    )  # fmt: skip
    for k, level in enumerate((low, high)):
        ax.axvline(level, color=colours.ink, linestyle="--", linewidth=1,
                   label="kinks of the loss" if k == 0 else None)  # fmt: skip
    if kink.any():
        ax.plot(seen[kink], np.zeros(np.count_nonzero(kink)), "D", color=colours.shortest,
                markersize=6, clip_on=False, label="rows on a kink", linestyle="none")  # fmt: skip
    ax.set(xlabel="margin", ylabel="rows")
    ax.legend(loc="best", fontsize="small")


def draw_patterns(ax: Any, active: Any) -> None:
    """Rows against neurons; coloured where a neuron is on."""
    from matplotlib.colors import to_rgba

    rows = np.linspace(0, len(active) - 1, min(_ROWS, len(active))).astype(int)
    order = np.argsort(-active.mean(axis=0), kind="stable")
    order = order[np.linspace(0, len(order) - 1, min(_NEURONS, len(order))).astype(int)]
    shown = active[np.ix_(rows, order)]
    shown = shown[np.lexsort(shown.T[::-1])]
    image = np.zeros((*shown.shape, 4))
    image[shown] = to_rgba(palette().point, 0.85)
    ax.imshow(image, aspect="auto", interpolation="nearest")
    ax.set(xlabel="neuron, the busiest first", ylabel="row of the data")
    ax.locator_params(axis="x", integer=True)
