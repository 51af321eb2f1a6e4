"""Draw what a KKT certificate is: gradients of f and of a constraint that cancel.

    python examples/plot_kkt.py docs/images/kkt.png

The problem is the constrained Rosenbrock function of Curtis and Overton, a valley with a kink cut
by a constraint with a kink. Left: level lines, the points that are not allowed, and the way of the
search, with feasible iterates and without. Right: the gradients of the certificate. A combination
of those of f, plus the multiplier times one of the constraint, is as short as `eps` says.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import goldstein as gs

PROBLEM = gs.problems.get("curtis_overton")
BLUE, ORANGE, GREEN, RED = "#1f5fa8", "#d9731a", "#2b8a57", "#b3261e"


#: A start that is feasible.
START = np.array([-1.0, 0.1])


def course(**options: bool) -> tuple[gs.Result, np.ndarray]:
    """Return the answer and the accepted points before it."""
    seen: list[np.ndarray] = [START]
    res = gs.minimize(
        PROBLEM, START, eps=1e-3, delta=1e-3, rng=0, callback=seen.append, options=options,
        **PROBLEM.limits,
    )  # fmt: skip
    assert res.success
    return res, np.array([*seen, res.x])


def draw_ways(axes: plt.Axes) -> gs.KKTCertificate:
    """The plane of the variables; return the certificate of the ordinary search."""
    x, y = np.meshgrid(np.linspace(-1.25, 1.05, 231), np.linspace(-0.35, 1.25, 161))
    levels = 8 * np.abs(x**2 - y) + (1 - x) ** 2
    axes.contour(x, y, levels, levels=np.arange(1.0, 14, 3.0), colors="0.85", linewidths=0.7)
    outside = np.maximum(np.sqrt(2) * x, 2 * y) > 1.0
    axes.contourf(x, y, outside, levels=[0.5, 1.5], colors=[RED], alpha=0.12)
    axes.text(-0.4, 0.85, "not allowed", color=RED)
    along = np.linspace(-1.1, 1.0, 100)
    axes.plot(along, along**2, color="black", linewidth=1.0)
    found, way = course()
    axes.plot(*way.T, ".-", color=BLUE, linewidth=1.0, markersize=4, label="the usual search")
    _, inside = course(feasible=True)
    axes.plot(*inside.T, ".-", color=ORANGE, linewidth=1.0, markersize=4, label="feasible iterates")
    axes.plot(*found.x, "*", color=GREEN, markersize=12)
    axes.set(xlim=(-1.25, 1.05), ylim=(-0.35, 1.25), xlabel="$x_1$", ylabel="$x_2$")
    axes.set_title("minimise, with $\\max(\\sqrt{2} x_1, 2 x_2) \\leq 1$")
    axes.legend(loc="lower left", frameon=False)
    return found.certificate


def draw_gradients(axes: plt.Axes, certificate: gs.KKTCertificate) -> None:
    """The plane of the gradients, around 0."""
    mean = certificate.weights @ certificate.gradients
    push = certificate.constraint_weights @ certificate.constraint_gradients
    axes.plot(*certificate.gradients.T, color=BLUE, linewidth=1.5)
    axes.text(-0.95, -0.45, "combinations of\ngradients of f", color=BLUE)
    strong = {"arrowstyle": "->", "linewidth": 2.0}
    axes.annotate("", mean, (0, 0), arrowprops={**strong, "color": GREEN})
    axes.annotate("the one in use", mean, (-30, -14), textcoords="offset points", color=GREEN)
    axes.annotate("", push, (0, 0), arrowprops={**strong, "color": RED})
    words = f"multiplier {certificate.multipliers[0]:.3f} times\na gradient of the constraint"
    axes.annotate(words, push, (-92, 8), textcoords="offset points", color=RED)
    axes.plot(0, 0, "o", color="black", markersize=4)
    axes.set_title(f"what cancels, up to eps = {certificate.eps:.1e}")
    axes.set(xlim=(-1.0, 1.0), ylim=(-0.7, 0.7))


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/kkt.png")
    mpl.rcParams.update({"svg.hashsalt": "goldstein", "font.size": 10})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.9), layout="constrained")
    draw_gradients(right, draw_ways(left))
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None, dpi=72)
    plt.close(figure)


if __name__ == "__main__":
    main()
