"""Training of a model that was watched: eps beside the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from goldstein.reporting.palette import palette


def draw_training(ax: Any, seen: Sequence[Any]) -> None:
    """Draw what a monitor has seen, epoch by epoch."""
    colours = palette()
    epochs = np.array([look.epoch for look in seen], float)
    series = (
        ("loss", "loss", colours.point, "o"),
        ("eps", "eps: how stationary the weights are", colours.gradient, "s"),
    )
    for name, words, colour, mark in series:
        values = np.array([getattr(look, name) for look in seen], float)
        values = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        ax.plot(epochs, values, f"{mark}-", color=colour, markersize=4, label=words)
    if any(
        line.get_ydata().size and np.isfinite(line.get_ydata()).any() for line in ax.get_lines()
    ):
        ax.set_yscale("log", nonpositive="mask")
    ax.set_xlabel("epoch")
    ax.locator_params(axis="x", integer=True)
    ax.legend(loc="best", frameon=False)
