"""A certificate: x, the ball and the points in it; their gradients, the hull, its shortest vector.

What is drawn in which colour is said by words beside it, in the colour of the text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.reporting.geometry import Geometry, Grid, hull_of
from goldstein.reporting.svg import palette

#: Points and arrows that get a name; more of them would cover each other.
_NAMED = 6
#: Arrows that are drawn.
_ARROWS = 60
#: Shorter arrows, against the longest gradient, are a head without a shaft.
_VISIBLE = 0.03


def draw_points(
    ax: Any, geometry: Geometry, zoom: float, levels: Any = None, forbidden: Any = None
) -> None:
    """The plane of the variables around x; `forbidden` is positive where constraints are broken."""
    from matplotlib.patches import Circle

    colours, delta = palette(), geometry.radius
    half = zoom * delta if delta > 0 else 1.0
    # Close to x its digits would fill the axes.
    origin = geometry.centre if half < 0.01 * np.abs(geometry.centre).max() else np.zeros(2)
    centre = geometry.centre - origin
    _shade(ax, levels, forbidden, origin)
    ball = {"facecolor": colours.point, "edgecolor": "none", "alpha": 0.15, "zorder": 1.5}
    ax.add_patch(Circle(tuple(centre), delta, **ball))
    ax.add_patch(Circle(tuple(centre), delta, fill=False, edgecolor=colours.point, zorder=2.5))
    if len(geometry.points):
        ax.plot(
            *(geometry.points - origin).T, "s", color=colours.gradient, markersize=5,
            label="points", linestyle="none", zorder=3,
        )  # fmt: skip
    if geometry.pivot is not None:
        for v in geometry.directions[:_ARROWS]:
            length = float(np.linalg.norm(v))
            if length > 0:
                tail = geometry.pivot - origin
                _arrow(ax, tail, tail + 0.45 * delta * v / length, colours.gradient)
        ax.plot(
            *(geometry.pivot - origin), "D", color=colours.shortest, markersize=7, label="pivot",
            zorder=4,
        )  # fmt: skip
    ax.plot(*centre, "o", color=colours.point, markersize=6, label="x", zorder=4)
    _square(ax, centre, half, 4)
    ax.set_title(f"points within delta = {delta:.2g} of x")
    away = "" if geometry.exact and not origin.any() else ", from x"
    ax.set(xlabel=geometry.axes[0] + away, ylabel=geometry.axes[1] + away)
    _legend(ax)


def draw_gradients(ax: Any, geometry: Geometry, eps: float, near: float = 0.0) -> None:
    """The plane of the gradients around 0; within twice `near` of it, where that is given."""
    colours = palette()
    vectors = geometry.gradients
    if len(vectors):
        corners = hull_of(vectors)
        if len(corners) > 2:
            ax.fill(*corners.T, color=colours.gradient, alpha=0.15, zorder=1)
        closed = np.concatenate([corners, corners[:1]])
        ax.plot(*closed.T, color=colours.gradient, linewidth=1.2, zorder=2, label="gradients, hull")
    for g in vectors[:_ARROWS]:
        _arrow(ax, np.zeros(2), g, colours.gradient)
    pushed = bool(geometry.pushes)
    if pushed:
        _arrow(ax, np.zeros(2), geometry.mean, colours.point, strong=True, label="mean of f's")
    for name, push in geometry.pushes[:_NAMED]:
        colour = colours.other if name == "bounds" else colours.constraint
        _arrow(ax, np.zeros(2), push, colour, strong=True, label=name)
    longest = float(np.linalg.norm(vectors, axis=1).max(initial=0.0))
    if np.linalg.norm(geometry.rest) > _VISIBLE * longest:
        _arrow(ax, np.zeros(2), geometry.rest, colours.shortest, strong=True)
    words = "left over" if pushed else "shortest vector"
    ax.plot(*geometry.rest, "*", color=colours.shortest, markersize=9, zorder=5,
            linestyle="none", label=f"{words} ≤ {eps:.2g}")  # fmt: skip
    ax.plot(0, 0, "o", color=colours.ink, markersize=4, zorder=4)
    ends = np.concatenate([vectors, [geometry.rest, geometry.mean, np.zeros(2)],
                           [push for _, push in geometry.pushes] or np.zeros((0, 2))])  # fmt: skip
    low, high = ends.min(axis=0), ends.max(axis=0)
    _square(ax, (low + high) / 2, 0.62 * float((high - low).max()) or 1.0, 5)
    ax.set_title("their gradients")
    ax.set(xlabel=geometry.axes[0], ylabel=geometry.axes[1])
    if near:
        ax.set(xlim=(-2 * near, 2 * near), ylim=(-2 * near, 2 * near), title="the same, close to 0")
    _legend(ax)


def closer(geometry: Geometry) -> float:
    """How close to 0 one has to look to see what cancels; 0 where that is seen anyway."""
    longest = float(np.linalg.norm(geometry.gradients, axis=1).max(initial=0.0))
    forces = [geometry.rest, geometry.mean, *(push for _, push in geometry.pushes)]
    size = max(float(np.linalg.norm(force)) for force in forces)
    return size if 1e-9 * longest < size < 0.15 * longest else 0.0


def draw_multipliers(ax: Any, certificate: Any) -> None:
    """Bars, where a certificate has multipliers but stores no gradients."""
    colours = palette()
    values, what = np.asarray(certificate.multipliers), "constraint"
    if not values.size:
        values, what = np.asarray(certificate.normal), "bound of variable"
    ax.axhline(0, color=colours.faint, linewidth=1)
    ax.bar(np.arange(values.size), values, width=0.5, color=colours.constraint)
    ax.set(title="multipliers", xlabel=what, ylabel="multiplier", xlim=(-0.9, values.size - 0.1))
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def _shade(ax: Any, levels: Grid | None, forbidden: Grid | None, origin: Vector) -> None:
    colours = palette()
    if levels is not None:
        ax.contour(
            levels.across - origin[0], levels.up - origin[1], levels.values, levels=14,
            colors=[colours.faint], linewidths=0.7, zorder=1,
        )  # fmt: skip
    if forbidden is not None and (forbidden.values > 0).any():
        top = float(np.nanmax(forbidden.values))
        ax.contourf(
            forbidden.across - origin[0], forbidden.up - origin[1], forbidden.values,
            levels=[0.0, 2 * top + 1],
            colors=[colours.constraint], alpha=0.25, zorder=0.5,
        )  # fmt: skip


def _arrow(
    ax: Any, tail: Vector, tip: Vector, colour: str, *, strong: bool = False, label: str = ""
) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2.2 if strong else 1.0,
             "shrinkA": 0, "shrinkB": 0}  # fmt: skip
    ax.annotate("", tip, tail, arrowprops=style, zorder=4 if strong else 2)
    if label:
        ax.plot([], [], color=colour, linewidth=2.2, label=label)


def _legend(ax: Any) -> None:
    """Below, where it covers nothing."""
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, fontsize="small",
        columnspacing=1.2, handlelength=1.4,
    )  # fmt: skip


def _square(ax: Any, middle: Vector, half: float, ticks: int) -> None:
    ax.set_xlim(middle[0] - half, middle[0] + half)
    ax.set_ylim(middle[1] - half, middle[1] + half)
    ax.set_aspect("equal")
    ax.locator_params(nbins=ticks)


def draw_lines(axes: Any, certificate: Any, value: Any) -> Any:
    """Draw f along random lines through x, out to the radius of a claim about a minimum."""
    x = np.asarray(certificate.x)
    radius = float(getattr(certificate, "radius", np.linalg.norm(_to_point(certificate))))
    radius = radius if np.isfinite(radius) else 1.0
    ways = np.random.default_rng(0).standard_normal((8, x.size))
    if certificate.kind == "refutation":
        ways[0] = _to_point(certificate)
    t, here = np.linspace(-radius, radius, 101), float(value(x))
    for h in ways / np.linalg.norm(ways, axis=1, keepdims=True):
        axes.plot(t, [value(x + s * h) - here for s in t], lw=1)
    low = certificate.fall if certificate.kind == "refutation" else certificate.gap
    axes.axhline(-float(low), ls="--", color="black")
    axes.set_xlabel("distance from x")
    axes.set_ylabel("f - f(x)")
    axes.set_title(certificate.said(), fontsize="small")
    return axes


def _to_point(certificate: Any) -> Any:
    return np.asarray(getattr(certificate, "point", certificate.x)) - np.asarray(certificate.x)
