"""The certified eps of one point over a range of radii."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.reporting.palette import palette

#: A slope nearer to 0 is none.
FLAT = 0.005


def slopes(curve: Any) -> Vector:
    """Return d log eps / d log delta from each radius to the next; nan where eps is 0."""
    with np.errstate(all="ignore"):
        found = np.diff(np.log(curve.eps)) / np.diff(np.log(curve.deltas))
    return np.asarray(np.where(np.isfinite(found), found, np.nan))


def draw_curve(ax: Any, curve: Any, asked: tuple[float, float] | None = None) -> None:
    """Draw eps over delta on logarithmic scales; `asked` marks a target."""
    colours = palette()
    deltas, eps = np.asarray(curve.deltas), np.asarray(curve.eps)
    seen = eps > 0
    ax.plot(deltas[seen], eps[seen], "o-", color=colours.point, label="proved")
    if not seen.all():
        floor = 0.1 * float(eps[seen].min()) if seen.any() else 1e-16
        ax.plot(
            deltas[~seen], np.full(np.count_nonzero(~seen), floor), "v", color=colours.shortest,
            label="proved: exactly 0",
        )  # fmt: skip
    if asked is not None and asked[0] > 0:
        ax.plot(asked[1], asked[0], "P", color=colours.gradient, markersize=9, label="asked for")
    ax.set(xscale="log", yscale="log", xlabel="delta", ylabel="eps")
    found = slopes(curve)
    # Where the curve is flat up to rounding there is no slope worth a word.
    if (found < -FLAT).any():
        k = int(np.nanargmin(found))
        ax.annotate(
            f"slope {found[k]:.2g}",
            (np.sqrt(deltas[k] * deltas[k + 1]), np.sqrt(eps[k] * eps[k + 1])),
            (8, 4), textcoords="offset points", color=colours.ink,
        )  # fmt: skip
    ax.legend(loc="best", frameon=False)
