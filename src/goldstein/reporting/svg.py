"""Pictures inside a page: SVG whose colours follow the page, light or dark."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from goldstein.extras import missing_extra
from goldstein.reporting.blocks import Figure


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


#: Colours while drawing; in the page each becomes a variable of the style sheet.
_INK, _FAINT, _PAPER = "#14213d", "#9a9fa8", "#fdfdfc"

_STYLE = {
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "text.color": _INK, "axes.labelcolor": _INK, "axes.edgecolor": _FAINT,
    "xtick.color": _FAINT, "ytick.color": _FAINT, "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK, "grid.color": _FAINT, "legend.facecolor": _PAPER,
    "legend.edgecolor": _FAINT, "legend.framealpha": 0.8, "axes.spines.top": False,
    "axes.spines.right": False, "font.size": 11, "svg.fonttype": "none",
    "axes.titlesize": 11, "lines.linewidth": 1.6,
    # Never a mathematical formula: what is written is what is meant.
    "text.parse_math": False,
}  # fmt: skip

_VARIABLES = {
    **{getattr(Palette(), name): name for name in ("point", "gradient", "shortest", "constraint",
                                                   "other")},
    _INK: "ink", _FAINT: "faint", _PAPER: "paper",
}  # fmt: skip


def figure(
    draw: Callable[..., Any], caption: str, *given: Any, size: tuple[float, float] = (4.4, 3.4)
) -> Figure:
    """Draw what is given into an Axes and return the picture as part of a page."""
    mpl = matplotlib_for("a report")
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import FuncFormatter, NullFormatter

    with mpl.rc_context():
        mpl.rcdefaults()
        # Names inside a picture are made of this: no two pictures of a page share any.
        mpl.rcParams.update({**_STYLE, "svg.hashsalt": caption})
        canvas = Canvas(figsize=size, layout="constrained")
        axes = canvas.subplots()
        draw(axes, *given)
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                axis.set_major_formatter(FuncFormatter(_power))
                axis.set_minor_formatter(NullFormatter())
        written = io.StringIO()
        canvas.savefig(
            written, format="svg", metadata={"Date": None, "Creator": None, "Type": None}
        )
    return Figure(_themed(written.getvalue(), caption), caption)


def _power(value: float, place: int) -> str:
    """Write a tick of a logarithmic axis without a formula.

    Examples
    --------
    >>> _power(1e-13, 0), _power(10.0, 0)
    ('1e-13', '10')
    """
    if 1e-2 <= value < 1e4:
        return f"{value:g}"
    mantissa, _, power = f"{value:.0e}".partition("e")
    return f"{mantissa}e{int(power)}"


def _themed(svg: str, caption: str) -> str:
    """Leave the head of the file behind, and let the style sheet choose colours and size."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r"font: (?:\d+ )?([\d.]+px) [^;\"]*", r"font-size: \1", svg)
    head, _, rest = svg.partition(">")
    box = re.search(r'viewBox="[\d. ]+"', head)
    assert box is not None
    for colour, name in _VARIABLES.items():
        rest = rest.replace(colour, f"var(--{name})")
    label = escape(caption, quote=True)
    return f'<svg {box.group()} role="img" aria-label="{label}" class="picture">{rest}'
