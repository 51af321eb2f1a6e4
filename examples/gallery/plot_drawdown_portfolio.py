"""
A portfolio with the smallest drawdown
======================================

The drawdown is how far a portfolio has fallen below the highest it ever was; investors leave when
it is large. The largest drawdown in three years is a maximum over all pairs of days, a peak and a
later trough: a convex function with a kink wherever two pairs are equally bad. Shares are not
negative, none exceeds 40 %, they add up to one and must earn enough.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import LinearConstraint

import goldstein as gs

rng = np.random.default_rng(3)
days, assets = 750, 8
scale = np.linspace(0.4, 1.6, assets)
market = 0.5 * rng.standard_t(4, (days, 1))
returns = scale * (0.03 + market + 0.8 * rng.standard_t(4, (days, assets)))  # percent a day
wealth = np.vstack([np.zeros(assets), returns.cumsum(axis=0)])  # without compounding


def falls(w):
    """How far each day is below the highest day before it."""
    height = wealth @ w
    return np.maximum.accumulate(height) - height


def drawdown(w):
    return float(falls(w).max())


def gradient(w):
    trough = falls(w).argmax()
    peak = (wealth[: trough + 1] @ w).argmax()
    return wealth[peak] - wealth[trough]


# %%
# Bounds, an equality and an inequality, as SciPy takes them.

equal = np.full(assets, 1 / assets)
limits = {
    "bounds": [(0, 0.4)] * assets,
    "constraints": [
        LinearConstraint(np.ones(assets), 1.0, 1.0),
        LinearConstraint(returns.mean(axis=0), 0.05, np.inf),
    ],
}
res = gs.minimize(drawdown, equal, gradient, eps=1e-4, delta=1e-5, rng=0, **limits)
print(res)
print("verified:", res.certificate.verify(drawdown, gradient, **limits).ok)

# %%
# The problem is convex, and no two portfolios are farther apart than the square root of 2: what is
# proved near the answer bounds what any other portfolio could gain.

gap = res.certificate.gap(drawdown, gradient, radius=np.sqrt(2), constraints=limits["constraints"])
print(f"drawdown {drawdown(equal):.2f} % with equal shares, {res.fun:.2f} % with these")
print("no portfolio within the limits is better by 0.001 %:", gap < 1e-3)

# %%

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=[1, 2])
axes[0].bar(np.arange(assets), res.x, color="#0072B2")
axes[0].axhline(0.4, color="0.6", linewidth=0.8)
axes[0].set(xlabel="asset", ylabel="share")
for w, color, label in ((equal, "#999999", "equal shares"), (res.x, "#0072B2", "this portfolio")):
    axes[1].fill_between(np.arange(days + 1), -falls(w), color=color, alpha=0.6, label=label)
axes[1].axhline(-res.fun, color="#D55E00", label=f"largest drawdown {res.fun:.2f} %")
axes[1].set(xlabel="day", ylabel="below the highest day so far, %")
axes[1].legend(loc="lower right")
plt.show()
