"""
The portfolio with the best omega ratio
=======================================

The omega ratio divides what a portfolio gains above a threshold by what it loses below it, in the
mean of all days. It is a quotient of two sums of kinks, neither concave nor smooth. Written as an
expression it is known exactly, so that its stationarity can be proved in rational arithmetic.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import LinearConstraint

import goldstein as gs

rng = np.random.default_rng(8)
days, assets, threshold = 250, 6, 0.02
scale = np.linspace(0.5, 1.5, assets)
market = 0.5 * rng.standard_t(4, (days, 1))
returns = scale * (0.08 + market + 0.8 * rng.standard_t(4, (days, assets)))  # percent a day

w = gs.Variable(assets)
excess = returns @ w - threshold
gain, loss = gs.sum(gs.relu(excess)) / days, gs.sum(gs.relu(-excess)) / days

# %%
# Losses over gains shall be small. No share is negative or above 40 %, and they add up to one.

equal = np.full(assets, 1 / assets)
limits = {
    "bounds": [(0, 0.4)] * assets,
    "constraints": LinearConstraint(np.ones(assets), 1.0, 1.0),
}
res = gs.minimize(loss / gain, equal, eps=1e-3, delta=1e-3, rng=0, stationarity="near", **limits)
print(res)
print("verified:", res.certificate.verify(loss / gain, **limits).ok)
print(f"omega: {gain.value(equal) / loss.value(equal):.3f} with equal shares, {1 / res.fun:.3f}")

# %%
# Stationary is not yet best. But omega is below r wherever ``gain - r loss`` is negative, and
# gain - loss is the mean excess: it is enough that ``(r - 1) loss - mean excess`` is positive. This
# function is convex, and how low it is among all portfolios can be proved.

ratio = np.ceil(1e6 / res.fun) / 1e6  # ours, rounded up
shortfall = (ratio - 1) * loss - gs.sum(excess) / days
best = gs.minimize(shortfall, res.x, eps=1e-6, delta=1e-6, stationarity="minimum", rng=0, **limits)
proof = best.certificate
print(proof.summary())
print("verified:", proof.verify(shortfall, **limits).ok)
print(f"no portfolio has an omega of {ratio:.6f}:", best.fun - proof.gap > 0)

# %%
# Omega is a quotient of two areas beside the distribution function.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=[1, 2])
axes[0].bar(np.arange(assets), res.x, color="#0072B2")
axes[0].axhline(0.4, color="0.6", linewidth=0.8)
axes[0].set(xlabel="asset", ylabel="share")
earned, share = np.sort(returns @ res.x), np.arange(1, days + 1) / days
below = earned <= threshold
kinds = {"step": "post", "alpha": 0.5}
axes[1].fill_between(earned[below], share[below], color="#D55E00", label="losses", **kinds)
axes[1].fill_between(earned[~below], share[~below], 1, color="#0072B2", label="gains", **kinds)
axes[1].step(earned, share, color="black", where="post", linewidth=1)
axes[1].axvline(threshold, color="0.4", linestyle="--", label="threshold")
axes[1].set(xlabel="return of a day, %", ylabel="share of days", title=f"omega {1 / res.fun:.3f}")
axes[1].legend()
plt.show()
