"""`plot` of results, histories, certificates and curves: from the object to the right pictures."""

from typing import Any

import numpy as np

from goldstein.errors import InputError
from goldstein.reporting.geometry import geometry_of, grid_around, value_function
from goldstein.reporting.pictures import certificate as drawing
from goldstein.reporting.pictures.certificate import draw_course, draw_curve, draw_training
from goldstein.reporting.svg import matplotlib_for
from goldstein.result import History, Result

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
        return drawing.draw_lines(one, certificate, value_function(fun))
    axes = _axes(ax, 2, alone=1)
    if len(axes) == 2:
        geometry = geometry_of(certificate)
        levels = None
        if fun is not None and np.isfinite(geometry.radius):
            half = zoom * geometry.radius
            levels = grid_around(geometry, certificate.x, value_function(fun), half, LEVELS_TIME)
        drawing.draw_points(axes[0], geometry, zoom, levels)
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
        drawing.draw_multipliers(axes, certificate)
    else:
        drawing.draw_gradients(axes, geometry_of(certificate), float(certificate.eps))


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
