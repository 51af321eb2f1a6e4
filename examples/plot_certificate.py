"""Draw what a Goldstein certificate is: a search, a proof, a check.

    python examples/plot_certificate.py docs/images/certificate.svg
    python examples/plot_certificate.py docs/_static/certificate_tall.svg    # for narrow screens

The suffix chooses the format (SVG or PNG). A run on the function of the README, with a ball large
enough to be seen. Left: the way of the search to x, along the kink at the bottom of a valley.
Middle: the ball around x and the points of the certificate, with their gradients: those from the
two sides of the kink point in opposite directions, and a combination of them is almost 0. Right:
what a check asks, which trusts nothing but the function.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import goldstein as gs

START = np.array([-1.2, 1.0])
EPS, DELTA = 0.05, 0.2


def f(x: np.ndarray) -> float:
    return float(abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2)


def grad(x: np.ndarray) -> np.ndarray:
    s = np.sign(x[1] - x[0] ** 2)
    return np.array([-2 * s * x[0] - 2 * (1 - x[0]), s])


def valley(ax: plt.Axes, low: tuple[float, float], high: tuple[float, float]) -> None:
    """Level lines, and the kink along the bottom."""
    across, up = np.meshgrid(*(np.linspace(a, b, 70) for a, b in zip(low, high)))
    height = np.sqrt(np.abs(up - across**2) + (1 - across) ** 2)
    ax.contourf(across, up, height, levels=12, cmap="Blues_r", alpha=0.75)
    along = np.linspace(low[0], high[0], 300)
    ax.plot(along, along**2, color="black", linewidth=1.4)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[], aspect="equal")


def draw_search(ax: plt.Axes, way: np.ndarray, x: np.ndarray) -> None:
    valley(ax, (-1.55, -0.55), (1.6, 2.6))
    ax.plot(*way.T, ".-", color="white", linewidth=1.8, markersize=7, markeredgecolor="0.3")
    ax.plot(*x, "o", color="#d55e00", markersize=9)
    ax.annotate("start", way[0], (-4, -18), textcoords="offset points", color="black")
    ax.annotate("kink", (-0.3, 0.0), (0, -16), textcoords="offset points")
    ax.annotate("x", x, (9, -4), textcoords="offset points", color="#8f3f00", weight="bold")
    ax.set_title("1  a search finds x", loc="left", weight="bold")


def draw_proof(ax: plt.Axes, certificate: gs.GoldsteinCertificate) -> None:
    x, delta = certificate.x, certificate.delta
    valley(ax, tuple(x - 1.9 * delta), tuple(x + 1.9 * delta))
    ax.add_patch(plt.Circle(x, delta, facecolor="white", alpha=0.45))
    ax.add_patch(plt.Circle(x, delta, fill=False, color="#d55e00", linewidth=1.8))
    ax.plot(*x, "o", color="#d55e00", markersize=9)
    for y, g in zip(certificate.points, certificate.gradients):
        ax.plot(*y, "s", color="black", markersize=6)
        ax.annotate(
            "", y + 0.55 * delta * g, y,
            arrowprops={"arrowstyle": "-|>", "linewidth": 2.0, "color": "black"},
        )  # fmt: skip
    ax.set_title(f"2  gradients within {delta:.1g} cancel", loc="left", weight="bold")


def draw_check(ax: plt.Axes, found: gs.Verification) -> None:
    ax.axis("off")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.set_title("3  anybody can check it", loc="left", weight="bold")
    said = f"({found.eps:.1g}, {found.delta:.1g})-Goldstein stationary"
    ax.text(0.0, 0.93, f"x is proved stationary:\n{said}", va="top", fontsize=11)
    for k, check in enumerate(found.checks):
        assert check.ok
        column, row = divmod(k, (len(found.checks) + 1) // 2)
        at = 0.02 + 0.5 * column, 0.62 - 0.105 * row
        ax.text(*at, "\N{CHECK MARK}", color="#007a55", weight="bold", fontsize=12)
        ax.text(at[0] + 0.09, at[1], check.name, fontsize=11)
    ax.text(0.0, 0.02, "res.certificate.verify(f)  \N{RIGHTWARDS ARROW}  ok", family="monospace")


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/certificate.svg")
    way: list[np.ndarray] = [START]
    res = gs.minimize(f, START, grad, eps=EPS, delta=DELTA, rng=0, callback=way.append)
    found = res.certificate.verify(f, grad)
    assert res.success
    assert found.ok
    # The same bytes for the same picture.
    mpl.rcParams.update({"svg.hashsalt": "goldstein", "font.size": 11})
    tall = target.stem.endswith("_tall")
    rows, size = (["a", "a", "b", "b", "c"], (4.4, 11.0)) if tall else (["abc"], (11.0, 3.9))
    figure, axes = plt.subplot_mosaic([list(row) for row in rows], figsize=size,
                                      layout="constrained")  # fmt: skip
    draw_search(axes["a"], np.array([*way, res.x]), res.x)
    draw_proof(axes["b"], res.certificate)
    draw_check(axes["c"], found)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
