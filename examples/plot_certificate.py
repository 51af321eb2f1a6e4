"""Draw what a Goldstein certificate is: a point, a ball, gradients, the shortest vector of a hull.

    python examples/plot_certificate.py docs/images/certificate.svg

The suffix chooses the format (SVG or PNG). A run on the function of the README, with a ball large
enough to be seen. Left: level lines, the kink, the way of the search to x, the ball, and the points
of the certificate on both sides of the kink. Right: their gradients point in opposite directions,
so that a combination of them is almost 0. That is what the certificate proves.
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


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/certificate.svg")
    way: list[np.ndarray] = [START]
    res = gs.minimize(f, START, grad, eps=EPS, delta=DELTA, rng=0, callback=way.append)
    assert res.success
    assert res.certificate.verify(f, grad).ok
    # The same bytes for the same picture.
    mpl.rcParams.update({"svg.hashsalt": "goldstein", "font.size": 10})
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.6), layout="constrained")
    left, right = res.certificate.plot(ax=axes, fun=f, zoom=4.0)
    along = np.linspace(-1.5, 1.5, 200)
    left.plot(along, along**2, color="black", linewidth=1.2, label="kink")
    left.plot(*np.array(way).T, ".-", color="0.45", linewidth=1.0, label="the search")
    left.plot(1, 1, "+", color="black", markersize=12, markeredgewidth=2, label="minimum")
    left.legend(loc="lower right", fontsize="small")
    left.set_title(f"x is found: f(x) = {res.fun:.1g}, proved stationary")
    right.set_title(f"the gradients cancel: eps = {res.certificate.eps:.1g}")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
