"""
Where to build: facility location
=================================

Four depots serve 120 towns, each from the depot nearest to it. The sum of the distances is not
convex (which depot is nearest changes), and not smooth (a town halfway between two depots, or a
depot in a town).
"""

import matplotlib.pyplot as plt
import numpy as np

import goldstein as gs

rng = np.random.default_rng(4)
centres = np.array([[0, 0], [3, 1], [1, 3.5], [4, 4]])
towns = np.concatenate([c + 0.6 * rng.standard_normal((30, 2)) for c in centres])


def f(x):
    return np.linalg.norm(towns[:, None] - x.reshape(-1, 2), axis=2).min(axis=1).mean()


def grad(x):
    offsets = x.reshape(-1, 2) - towns[:, None]
    lengths = np.linalg.norm(offsets, axis=2)
    nearest = lengths.argmin(axis=1)
    g = np.zeros((len(x) // 2, 2))
    units = offsets[np.arange(len(towns)), nearest] / lengths.min(axis=1)[:, None]
    np.add.at(g, nearest, units / len(towns))
    return g.ravel()


# %%
# Many starts, for there are many local minima; each ends with its own certificate.

starts = [rng.uniform(-1, 5, 8) for _ in range(12)]
runs = [gs.minimize(f, x0, grad, eps=1e-4, delta=1e-4, rng=0) for x0 in starts]
res = min(runs, key=lambda run: run.fun)
print(res)
print("values of the stationary points:", sorted({round(run.fun, 3) for run in runs}))

# %%

depots = res.x.reshape(-1, 2)
nearest = np.linalg.norm(towns[:, None] - depots, axis=2).argmin(axis=1)
figure, axes = plt.subplots(figsize=(5.4, 5), layout="constrained")
for k, colour in enumerate(["#0072B2", "#D55E00", "#009E73", "#CC79A7"]):
    mine = towns[nearest == k]
    axes.plot(*mine.T, ".", color=colour)
    axes.plot(*depots[k], "*", color=colour, markersize=16, markeredgecolor="black")
axes.set(title=f"mean distance {res.fun:.3f}", aspect="equal")
plt.show()
