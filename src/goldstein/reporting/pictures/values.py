"""Values of distinct stationary points."""

from __future__ import annotations

from typing import Any

from goldstein.checker.arrays import Vector
from goldstein.reporting.palette import palette


def draw_values(ax: Any, values: Vector, counts: Any) -> None:
    """A stem for each value, as high as the number of runs that ended there."""
    colours = palette()
    ax.vlines(values, 0, counts, color=colours.point)
    ax.plot(values, counts, "o", color=colours.point)
    if len(values):
        ax.plot(values.min(), counts[values.argmin()], "*", color=colours.shortest, markersize=13)
    ax.set(xlabel="f", ylabel="runs that ended there")
    ax.set_ylim(bottom=0)
    ax.locator_params(axis="y", integer=True)
    ax.locator_params(axis="x", nbins=4)
