"""Colours by what they stand for, told apart by colour-blind readers too (Okabe and Ito, 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from goldstein.extras import missing_extra


@dataclass(frozen=True)
class Palette:
    """What is drawn in which colour; shapes and words say the same once more."""

    point: str = "#0072b2"
    gradient: str = "#d55e00"
    shortest: str = "#009e73"
    constraint: str = "#cc79a7"
    other: str = "#e69f00"
    ink: str = "black"
    faint: str = "0.6"


def matplotlib_for(what: str) -> Any:
    """Return matplotlib, or say which extra it comes with."""
    try:
        import matplotlib
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        raise missing_extra(what, "matplotlib", "report") from None
    return matplotlib


def palette() -> Palette:
    """Return our colours, or those of the style the user has chosen."""
    mpl = matplotlib_for("a picture")
    ink, faint = mpl.rcParams["text.color"], mpl.rcParams["grid.color"]
    cycle = mpl.rcParams["axes.prop_cycle"].by_key().get("color", [])
    usual = mpl.rcParamsDefault["axes.prop_cycle"].by_key()["color"]
    if cycle == usual or len(cycle) < 5:
        return Palette(ink=ink, faint=faint)
    point, gradient, shortest, constraint, other = cycle[:5]
    return Palette(point, gradient, shortest, constraint, other, ink, faint)
