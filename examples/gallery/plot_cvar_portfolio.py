"""
A portfolio with the smallest bad days
======================================

The conditional value at risk is the mean loss on the worst twentieth of all days: a sum of kinks.
Shares are not negative, add up to one, and must earn enough: bounds, an equality and an inequality,
as SciPy takes them. The answer comes with multipliers and a KKT certificate.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import LinearConstraint

import goldstein as gs

rng = np.random.default_rng(6)
days, assets, worst = 500, 8, 0.05
scale = np.linspace(0.5, 2.0, assets)
returns = 0.03 * scale + scale * (
    0.6 * rng.standard_t(4, (days, 1)) + rng.standard_t(4, (days, assets))
)


def losses(z):  # z = (shares, value at risk)
    return -returns @ z[:-1] - z[-1]


def cvar(z):
    return z[-1] + np.maximum(losses(z), 0).sum() / (worst * days)


def gradient(z):
    bad = losses(z) > 0
    return np.append(-(bad @ returns), worst * days - bad.sum()) / (worst * days)


wanted = 0.04
limits = [
    LinearConstraint(np.append(np.ones(assets), 0.0), 1.0, 1.0),
    LinearConstraint(np.append(returns.mean(0), 0.0), wanted, np.inf),
]
bounds = [(0, 1)] * assets + [(None, None)]
start = np.append(np.full(assets, 1 / assets), 1.0)
res = gs.minimize(
    cvar, start, gradient, eps=1e-2, delta=1e-4, rng=0, bounds=bounds, constraints=limits
)
print(res)
print("what one more unit of return would cost:", -res.multipliers[1])

# %%

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
place = np.arange(assets)
axes[0].bar(place, res.x[:-1], color="#0072B2")
axes[0].set(xlabel="asset", ylabel="share", title="assets at 0 are exactly at their bound")
equal = returns @ np.full(assets, 1 / assets)
axes[1].hist(-equal, 40, color="#999999", alpha=0.7, label="equal shares")
axes[1].hist(-returns @ res.x[:-1], 40, color="#0072B2", alpha=0.6, label="this portfolio")
axes[1].axvline(res.fun, color="#D55E00", label=f"mean of the worst 5 %: {res.fun:.2f}")
axes[1].set(xlabel="loss of a day")
axes[1].legend()
plt.show()
