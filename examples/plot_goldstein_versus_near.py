"""Draw max(2x, -2x, y) around (0, 2 delta): Goldstein stationary there, near stationary only at 0.

    python examples/plot_goldstein_versus_near.py docs/images/goldstein_versus_near.svg

The suffix chooses the format (SVG or PNG). The left panel shows the function and the ball, the
right one the gradients: the hull of those met inside the ball contains 0, but no single point of
the ball has a subgradient shorter than 2/sqrt(5).
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Polygon

DELTA = 0.1
POINT = np.array([0.0, 2 * DELTA])
#: Two points of the ball beyond the kinks, one on either side.
SIDES = POINT + DELTA * np.array([[0.85, -0.45], [-0.85, -0.45]])
GRADIENTS = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]])
BLUE, ORANGE, GREEN, GREY = "#1f5fa8", "#d9731a", "#2b8a57", "#6b6b6b"


def draw_function(axes: plt.Axes) -> None:
    """Level lines, kinks, the ball, the points and the pivot."""
    across = np.linspace(-0.22, 0.22, 221)
    up = np.linspace(-0.1, 0.34, 221)
    x, y = np.meshgrid(across, up)
    axes.contour(x, y, np.maximum(2 * np.abs(x), y), levels=12, colors="0.75", linewidths=0.8)
    for side in (-1, 1):
        axes.plot([0, side * 0.17], [0, 0.34], color="black", linewidth=1.4)
    axes.plot([0, 0], [-0.1, 0], color="black", linewidth=1.4)
    axes.add_patch(Circle(tuple(POINT), DELTA, color=BLUE, alpha=0.15))
    axes.add_patch(Circle(tuple(POINT), DELTA, fill=False, edgecolor=BLUE, linewidth=1.2))
    axes.plot(*POINT, "o", color=BLUE)
    axes.annotate(r"$x=(0,2\delta)$", POINT, (0, 9), textcoords="offset points", ha="center")
    axes.plot(*SIDES.T, "s", color=ORANGE)
    for side, name, shift in zip(SIDES, ("$y_1$", "$y_2$"), (9, -20), strict=True):
        axes.annotate(name, side, (shift, -4), textcoords="offset points", color=ORANGE)
    axes.plot(0, 0, "D", color=GREEN)
    axes.annotate("pivot", (0, 0), (10, -12), textcoords="offset points", color=GREEN)
    axes.annotate("", (0, 0), POINT, arrowprops={"arrowstyle": "->", "color": GREEN, "ls": "--"})
    axes.set(title=r"level lines of $\max(2x,-2x,y)$", xlabel="$x$", ylabel="$y$")
    axes.set_aspect("equal")


def draw_gradients(axes: plt.Axes) -> None:
    """The hull of gradients in the ball, and the shortest subgradient of a single point of it."""
    axes.add_patch(Polygon(GRADIENTS, closed=True, color=BLUE, alpha=0.12))
    axes.plot(*GRADIENTS[[0, 1]].T, color=ORANGE, linewidth=2)
    axes.annotate(r"hull of $\nabla f(y_1),\nabla f(y_2)$", (-1.95, -0.24), color=ORANGE)
    axes.plot(*GRADIENTS[[0, 2]].T, color=GREY, linewidth=1.2)
    axes.plot(*GRADIENTS[[1, 2]].T, color=GREY, linewidth=1.2)
    axes.plot(*GRADIENTS.T, "s", color="black", markersize=5)
    shortest = np.array([0.4, 0.8])
    axes.annotate("", shortest, (0, 0), arrowprops={"arrowstyle": "->", "color": GREY})
    axes.annotate(r"$2/\sqrt{5}$", shortest / 2, (6, -6), textcoords="offset points", color=GREY)
    axes.annotate("one kink", (1.15, 0.5), color=GREY)
    axes.plot(0, 0, "o", color=GREEN)
    axes.annotate("0", (0, 0), (-12, 6), textcoords="offset points", color=GREEN)
    axes.set(title="gradients met in the ball", xlim=(-2.3, 2.3), ylim=(-0.5, 1.3))
    axes.set_aspect("equal")


def main(target: Path) -> None:
    """Write the picture; the same bytes every time."""
    mpl.rcParams["svg.hashsalt"] = "goldstein"
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
    draw_function(left)
    draw_gradients(right)
    target.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if target.suffix == ".svg" else None
    figure.savefig(target, metadata=metadata, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    mpl.use("Agg")
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "goldstein_versus_near.svg"))
