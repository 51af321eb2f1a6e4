"""A certificate: x, the ball and the points in it; their gradients, the hull, its shortest vector.

What is drawn in which colour is said by words beside it, in the colour of the text.

Pictures of a run: value and bound call by call, other radii, training, starts, models.

`plot` of results, histories, certificates and curves: from the object to the right pictures.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError
from goldstein.reporting.geometry import Geometry, Grid, geometry_of, grid_around, value_function
from goldstein.reporting.svg import matplotlib_for, palette
from goldstein.result import History, Result

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


def hull_of(points: Matrix) -> Matrix:
    """Return the corners of the hull of points in a plane, in order."""
    from scipy.spatial import ConvexHull, QhullError

    if len(points) <= 2:
        return points
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:  # all on a line
        along = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][0]
        return np.asarray(points[np.argsort(points @ along)[[0, -1]]])


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
        ax.contourf(
            forbidden.across - origin[0], forbidden.up - origin[1], forbidden.values,
            levels=[0.0, 2 * float(np.nanmax(forbidden.values)) + 1],
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


def thinned(columns: dict[str, NDArray[np.float64]], most: int) -> dict[str, NDArray[np.float64]]:
    """Return at most about `most` rows: first, last, and the extremes of every stretch between.

    Examples
    --------
    >>> spike = np.zeros(10_000)
    >>> spike[1234] = 7.0
    >>> kept = thinned({"calls": np.arange(10_000.0), "fun": spike}, 200)
    >>> len(kept["fun"]) <= 200, float(kept["calls"][kept["fun"].argmax()])
    (True, 1234.0)
    """
    length = min((len(c) for c in columns.values()), default=0)
    if length <= most:
        return {name: column[:length] for name, column in columns.items()}
    stretches = max(1, (most - 2) // (2 * len(columns)))
    edges = np.linspace(0, length, stretches + 1).astype(int)
    kept = {0, length - 1}
    for column in columns.values():
        finite = np.where(np.isfinite(column[:length]), column[:length], np.nan)
        for low, high in pairwise(edges.tolist()):
            part = finite[low:high]
            if np.isfinite(part).any():
                kept |= {low + int(np.nanargmin(part)), low + int(np.nanargmax(part))}
    return {name: column[np.array(sorted(kept))] for name, column in columns.items()}


#: Points of a line, at most, and numbers that matplotlib can place.
_MOST, _LARGEST = 1000, 1e150

_CALLS = "calls of f and its gradient"


def draw_course(ax: Any, history: History, eps: float | None = None) -> None:
    """Draw the bound, and how far f is above its last value, on one logarithmic scale."""
    colours = palette()
    columns = _columns(history)
    lowest = np.min(columns["fun"], where=np.isfinite(columns["fun"]), initial=np.inf)
    calls, above = columns["calls"], columns["fun"] - lowest
    _line(ax, calls, above, color=colours.point, label="f above its lowest value")
    _line(ax, calls, columns["bound"], color=colours.gradient, label="bound", linestyle="--")
    _target(ax, eps)
    _logarithmic(ax)
    ax.set_xlabel(_CALLS)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="best", frameon=False)


def draw_value(ax: Any, history: History) -> None:
    """Draw f; on a logarithmic scale where it falls through many decades."""
    across, values = _over(ax, history, "fun")
    _line(ax, across, values, color=palette().point)
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() > 0 and finite.max() > 1e3 * finite.min():
        ax.set_yscale("log")
    else:
        plain = 1e-3 <= float(np.abs(finite).max(initial=0.0)) < 1e5
        ax.ticklabel_format(axis="y", useOffset=False, style="plain" if plain else "sci")
    ax.set_ylabel("f(x)")


def draw_bound(ax: Any, history: History, eps: float | None) -> None:
    """Draw the bound of the search on its way to eps."""
    _line(ax, *_over(ax, history, "bound"), color=palette().gradient)
    _target(ax, eps)
    _logarithmic(ax)
    ax.set_ylabel("length of the combination")


def draw_calls(ax: Any, history: History) -> None:
    """Draw the calls over time."""
    _line(ax, *_over(ax, history, "calls"), color=palette().shortest)
    ax.set_ylabel(_CALLS)
    ax.set_ylim(bottom=0)


def draw_violation(ax: Any, history: History) -> None:
    """Draw how much the constraints are violated; 0 cannot be seen on this scale."""
    across, broken = _over(ax, history, "violation")
    ax.plot(across, np.where(broken > 0, broken, np.nan), ".", color=palette().constraint)
    ax.set_xlim(left=0)
    _logarithmic(ax)
    ax.set_ylabel("largest violation")


def _columns(history: History) -> dict[str, NDArray[np.float64]]:
    columns = {name: np.asarray(c, float) for name, c in history.as_arrays().items()}
    kept = thinned(columns, _MOST)
    return {name: np.where(np.abs(c) < _LARGEST, c, np.nan) for name, c in kept.items()}


def _over(ax: Any, history: History, name: str) -> tuple[Vector, Vector]:
    """Return the time, in a unit that suits it and is named, and a column."""
    columns = _columns(history)
    across = columns["time"]
    short = float(np.nan_to_num(across).max(initial=0.0)) < 0.5
    ax.set_xlabel("milliseconds" if short else "seconds")
    ax.locator_params(axis="x", nbins=5)
    return 1000 * across if short else across, columns[name]


def _line(ax: Any, across: Any, up: Any, **style: Any) -> None:
    up = np.where(np.isfinite(up), up, np.nan)
    few = np.count_nonzero(np.isfinite(up)) <= 40
    ax.plot(across, up, marker="o" if few else None, markersize=3, **style)


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
    _logarithmic(ax)
    ax.set_xlabel("epoch")
    ax.locator_params(axis="x", integer=True)
    ax.legend(loc="best", frameon=False)


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


#: Rows and neurons of the picture of activations, at most.
_PATTERN_ROWS, _NEURONS = 200, 100


def draw_margins(ax: Any, margins: Vector, low: float, high: float, kink: Any) -> None:
    """A histogram of the margins, with the kinks of the loss and the rows that sit on them."""
    colours = palette()
    # A few rows far away must not hide the others.
    ends = np.quantile(margins, [0.005, 0.995]) if len(margins) > 400 else [-np.inf, np.inf]
    left = max(min(margins.min(), low), min(float(ends[0]), low)) - 1e-9
    right = min(max(margins.max(), high), max(float(ends[1]), high)) + 1e-9
    bins = np.linspace(left, right, 41)
    seen = np.clip(margins, left, right)
    ax.hist(
        [seen[margins < low], seen[margins >= low]], bins=bins, stacked=True,
        color=[colours.gradient, colours.point], label=["outliers", "others"],
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

    rows = np.linspace(0, len(active) - 1, min(_PATTERN_ROWS, len(active))).astype(int)
    order = np.argsort(-active.mean(axis=0), kind="stable")
    order = order[np.linspace(0, len(order) - 1, min(_NEURONS, len(order))).astype(int)]
    shown = active[np.ix_(rows, order)]
    shown = shown[np.lexsort(shown.T[::-1])]
    image = np.zeros((*shown.shape, 4))
    image[shown] = to_rgba(palette().point, 0.85)
    ax.imshow(image, aspect="auto", interpolation="nearest")
    ax.set(xlabel="neuron, the busiest first", ylabel="row of the data")
    ax.locator_params(axis="x", integer=True)


#: Seconds that level lines may take.
LEVELS_TIME = 1.0


def plot(thing: Any, ax: Any = None) -> Any:
    """Draw a history, a curve or what a monitor has seen into one Axes and return it."""
    (axes,) = _axes(ax, 1)
    if isinstance(thing, History):
        draw_course(axes, thing)
    elif hasattr(thing, "history"):
        draw_training(axes, thing.history)
    else:
        draw_curve(axes, thing)
    return axes


def plot_certificate(certificate: Any, ax: Any = None, fun: Any = None, zoom: float = 1.6) -> Any:
    """Draw points and gradients; into one Axes the gradients only."""
    if not (np.isfinite(zoom) and zoom > 0):
        raise InputError(f"zoom must be a positive number of radii, got {zoom!r}.")
    if certificate.kind in ("minimum", "refutation"):
        if fun is None:
            raise InputError("a picture of a minimum needs the function: plot(fun=...).")
        (one,) = _axes(ax, 1)
        return draw_lines(one, certificate, value_function(fun))
    axes = _axes(ax, 2, alone=1)
    if len(axes) == 2:
        geometry = geometry_of(certificate)
        levels = None
        if fun is not None and np.isfinite(geometry.radius):
            half = zoom * geometry.radius
            levels = grid_around(geometry, certificate.x, value_function(fun), half, LEVELS_TIME)
        draw_points(axes[0], geometry, zoom, levels)
    _draw_second(axes[-1], certificate)
    return ax if len(axes) == 1 else axes


def plot_result(result: Result, ax: Any = None) -> Any:
    """Draw the course of the run and the gradients of its certificate; into one Axes the course."""
    axes = _axes(ax, 2, alone=1)
    asked = result.asked
    draw_course(axes[0], result.history, None if asked is None else asked.eps)
    axes[0].set_title(f"{result.status.name}: f = {result.fun:.6g}")
    if len(axes) == 1:
        return ax
    if result.certificate is None:
        axes[1].set_axis_off()
        axes[1].set_title("nothing was proved")
    else:
        _draw_second(axes[1], result.certificate)
    return axes


def _draw_second(axes: Any, certificate: Any) -> None:
    if hasattr(certificate, "said"):
        axes.set_axis_off()
        axes.set_title(certificate.said(), fontsize="small")
    elif hasattr(certificate, "multipliers") and not hasattr(certificate, "gradients"):
        draw_multipliers(axes, certificate)
    else:
        draw_gradients(axes, geometry_of(certificate), float(certificate.eps))


def _axes(ax: Any, count: int, alone: int | None = None) -> Any:
    """Return the Axes to draw into: those given, or new ones side by side."""
    matplotlib_for("plot()")
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    if ax is None:
        size = (4.6 * count, 4.0)
        return plt.subplots(1, count, figsize=size, layout="constrained", squeeze=False)[1][0]
    given = [ax] if isinstance(ax, Axes) else list(np.ravel(ax))
    fits = len(given) in {count, alone} and all(isinstance(one, Axes) for one in given)
    if not fits:
        raise InputError(
            f"ax must be {'one Axes' if count == 1 else f'one Axes or {count} of them'}, got "
            f"{type(ax).__name__} with {len(given)} entries."
        )
    return np.array(given, dtype=object)
