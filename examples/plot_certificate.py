"""Draw what a Goldstein certificate is: a point, a ball, gradients, the shortest vector of a hull.

    python examples/plot_certificate.py docs/images/certificate.svg

The suffix chooses the format (SVG or PNG). The function is that of the README. Left: its level
lines, the point x, the ball, and the points of the certificate on both sides of the kink. Right:
their gradients. Every vector of the segment between them is a combination the certificate could
use; the shortest one is what it proves.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle

import goldstein as gs

POINT = np.array([0.5, 0.25])
DELTA = 0.2
BLUE, ORANGE, GREEN = "#1f5fa8", "#d9731a", "#2b8a57"


def f(x: np.ndarray) -> float:
    return float(abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2)


def grad(x: np.ndarray) -> np.ndarray:
    s = np.sign(x[1] - x[0] ** 2)
    return np.array([-2 * s * x[0] - 2 * (1 - x[0]), s])


def draw_points(axes: plt.Axes, certificate: gs.GoldsteinCertificate) -> None:
    """The plane of the variables."""
    x, y = np.meshgrid(np.linspace(0.15, 1.15, 201), np.linspace(-0.1, 1.1, 201))
    levels = np.abs(y - x**2) + (1 - x) ** 2
    axes.contour(x, y, levels, levels=16, colors="0.75", linewidths=0.8)
    along = np.linspace(0.15, 1.05, 100)
    axes.plot(along, along**2, color="black", linewidth=1.4)
    axes.annotate("kink", (0.93, 0.87), (-34, 2), textcoords="offset points")
    axes.plot(1, 1, "*", color=GREEN, markersize=12)
    axes.annotate("minimum", (1, 1), (-58, 4), textcoords="offset points", color=GREEN)
    axes.add_patch(Circle(tuple(POINT), DELTA, color=BLUE, alpha=0.15))
    axes.add_patch(Circle(tuple(POINT), DELTA, fill=False, edgecolor=BLUE, linewidth=1.2))
    axes.plot(*POINT, "o", color=BLUE)
    axes.annotate("$x$", POINT, (7, -10), textcoords="offset points", color=BLUE)
    axes.annotate(r"$\delta$-ball", POINT + [0.1, -0.17], (8, -6), textcoords="offset points")
    for j, y_j in enumerate(certificate.points, start=1):
        axes.plot(*y_j, "s", color=ORANGE)
        axes.annotate(f"$y_{j}$", y_j, (6, 3), textcoords="offset points", color=ORANGE)
    axes.set(title=r"points within $\delta$ of $x$", xlabel="$x_1$", ylabel="$x_2$")
    axes.set_aspect("equal")


def draw_gradients(axes: plt.Axes, certificate: gs.GoldsteinCertificate) -> None:
    """The plane of the gradients."""
    gradients = certificate.gradients
    axes.plot(*gradients.T, color=ORANGE, linewidth=2)
    for j, g in enumerate(gradients, start=1):
        axes.annotate("", g, (0, 0), arrowprops={"arrowstyle": "->", "color": ORANGE})
        place = (-12, 8) if g[1] > 0 else (-20, -16)
        name = rf"$\nabla f(y_{j})$"
        axes.annotate(name, g, place, textcoords="offset points", color=ORANGE)
    m = certificate.weights @ gradients
    arrow = {"arrowstyle": "->", "color": GREEN, "linewidth": 2.2}
    axes.annotate("", m, (0, 0), arrowprops=arrow)
    words = f"shortest vector\nof the hull:\n|m| = {certificate.eps:.2f} = eps"
    axes.annotate(words, m, (-118, -46), textcoords="offset points", color=GREEN)
    axes.plot(0, 0, "o", color="black", markersize=4)
    axes.annotate("0", (0, 0), (5, 5), textcoords="offset points")
    axes.set(title="their gradients", xlim=(-2.6, 0.9), ylim=(-1.5, 1.6))
    axes.set_aspect("equal")


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/certificate.svg")
    certificate = gs.certify(f, POINT, grad, delta=DELTA, rng=24)
    assert certificate.verify(f, grad).ok
    # The same bytes for the same picture.
    mpl.rcParams.update({"svg.hashsalt": "goldstein", "font.size": 10})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
    draw_points(left, certificate)
    draw_gradients(right, certificate)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
