"""
A ReLU network, and what is proved about it
===========================================

A small network is fitted to a noisy curve with Huber's loss. Every neuron has a kink at every row,
and the objective is not convex. The estimator knows its kinks, so its certificate is exact: within
delta of the weights there is a point with a short subgradient.
"""

import matplotlib.pyplot as plt
import numpy as np

from goldstein.sklearn import ReLUNetRegressor

rng = np.random.default_rng(2)
u = np.sort(rng.uniform(-2, 2, 80))[:, None]
target = np.sin(2 * u[:, 0]) + 0.1 * rng.standard_normal(80)
target[::12] += 1.5  # outliers
networks = [
    ReLUNetRegressor(width=8, loss="huber", threshold=0.3, random_state=seed).fit(u, target)
    for seed in range(4)
]
best = max(networks, key=lambda network: network.score(u, target))
print(best.certificate_.summary())
print("verified again from the data:", best.certificate_.verify(best.objective(u, target)).ok)

# %%
# Four starts end at four stationary points: a certificate says that training is over, not that no
# better network exists.

grid = np.linspace(-2, 2, 400)[:, None]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.plot(u, target, ".", color="0.4", label="data, with outliers")
axes.plot(grid, np.sin(2 * grid), ":", color="0.4", label="the curve behind them")
for network in networks:
    axes.plot(grid, network.predict(grid), color="#56B4E9", alpha=0.7)
axes.plot(grid, best.predict(grid), color="#0072B2", label="best of four networks")
axes.set(xlabel="u", ylabel="target")
axes.legend()
plt.show()
