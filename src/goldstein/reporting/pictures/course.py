"""The course of a run: value and bound, call by call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.reporting.palette import palette
from goldstein.reporting.thinning import thinned
from goldstein.result import History

#: Points of a line, at most, and numbers that matplotlib can place.
_MOST, _LARGEST = 1000, 1e150

_ACROSS = {"calls": "calls of f and its gradient", "time": "seconds"}


def draw_course(ax: Any, history: History, eps: float | None = None) -> None:
    """Draw the bound, and how far f is above its last value, on one logarithmic scale."""
    colours = palette()
    columns = _columns(history)
    calls, above = columns["calls"], columns["fun"] - _lowest(columns["fun"])
    _line(ax, calls, above, color=colours.point, label="f above its lowest value")
    _line(ax, calls, columns["bound"], color=colours.gradient, label="bound", linestyle="--")
    _target(ax, eps)
    _logarithmic(ax)
    ax.set_xlabel(_ACROSS["calls"])
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="best", frameon=False)


def draw_value(ax: Any, history: History, against: str = "time") -> None:
    """Draw f; on a logarithmic scale where it falls through many decades."""
    columns = _columns(history)
    values = columns["fun"]
    _line(ax, _over(ax, columns, against), values, color=palette().point)
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() > 0 and finite.max() > 1e3 * finite.min():
        ax.set_yscale("log")
    else:
        ax.ticklabel_format(axis="y", useOffset=False, style="plain" if _plain(finite) else "sci")
    ax.set_ylabel("f(x)")


def draw_bound(ax: Any, history: History, eps: float | None, against: str = "time") -> None:
    """Draw the bound of the search on its way to eps."""
    columns = _columns(history)
    _line(ax, _over(ax, columns, against), columns["bound"], color=palette().gradient)
    _target(ax, eps)
    _logarithmic(ax)
    ax.set_ylabel("length of the combination")


def draw_calls(ax: Any, history: History) -> None:
    """Draw the calls over time."""
    columns = _columns(history)
    _line(ax, _over(ax, columns, "time"), columns["calls"], color=palette().shortest)
    ax.set_ylabel(_ACROSS["calls"])
    ax.set_ylim(bottom=0)


def draw_violation(ax: Any, history: History, against: str = "time") -> None:
    """Draw how much the constraints are violated; 0 cannot be seen on this scale."""
    columns = _columns(history)
    across, broken = _over(ax, columns, against), columns["violation"]
    ax.plot(across, np.where(broken > 0, broken, np.nan), ".", color=palette().constraint)
    ax.set_xlim(left=0)
    _logarithmic(ax)
    ax.set_ylabel("largest violation")


def _columns(history: History) -> dict[str, NDArray[np.float64]]:
    columns = {name: np.asarray(c, float) for name, c in history.as_arrays().items()}
    kept = thinned(columns, _MOST)
    return {name: np.where(np.abs(c) < _LARGEST, c, np.nan) for name, c in kept.items()}


def _over(ax: Any, columns: dict[str, NDArray[np.float64]], against: str) -> NDArray[np.float64]:
    """Return what is drawn across, in a unit that suits it, and name it."""
    across = columns[against]
    short = against == "time" and float(np.nan_to_num(across).max(initial=0.0)) < 0.5
    ax.set_xlabel("milliseconds" if short else _ACROSS[against])
    ax.locator_params(axis="x", nbins=5)
    return 1000 * across if short else across


def _line(ax: Any, across: Any, up: Any, **style: Any) -> None:
    up = np.where(np.isfinite(up), up, np.nan)
    few = np.count_nonzero(np.isfinite(up)) <= 40
    ax.plot(across, up, marker="o" if few else None, markersize=3, **style)


def _lowest(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.min()) if finite.size else 0.0


def _target(ax: Any, eps: float | None) -> None:
    if eps is None or not eps > 0:
        return
    colours = palette()
    ax.axhline(eps, color=colours.shortest, linestyle=":", label=f"asked for: {eps:.3g}")
    ax.annotate(
        f"asked for: {eps:.3g}", (0.02, eps), (0, 4), textcoords="offset points", ha="left",
        xycoords=("axes fraction", "data"), color=colours.ink, fontsize="small",
    )  # fmt: skip


def _logarithmic(ax: Any) -> None:
    """Where there is anything positive to see."""
    for line in ax.get_lines():
        across, up = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
        if (np.isfinite(across) & np.isfinite(up) & (up > 0)).any():
            ax.set_yscale("log", nonpositive="mask")
            return


def _plain(values: NDArray[np.float64]) -> bool:
    size = float(np.abs(values).max(initial=0.0))
    return 1e-3 <= size < 1e5
