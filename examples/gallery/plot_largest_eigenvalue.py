"""
The largest eigenvalue of a family of matrices
==============================================

The largest eigenvalue of ``A(x) = A0 + sum x_i A_i`` is to be as small as possible. At the best x
several eigenvalues meet, and the function has no gradient there.
"""

import matplotlib.pyplot as plt
import numpy as np

import goldstein as gs

rng = np.random.default_rng(8)
n, d = 12, 6
symmetric = [(M + M.T) / 2 for M in rng.standard_normal((d + 1, n, n))]


def matrix(x):
    return symmetric[0] + np.tensordot(x, symmetric[1:], 1)


def largest(x):
    return np.linalg.eigvalsh(matrix(x))[-1]


def gradient(x):
    v = np.linalg.eigh(matrix(x))[1][:, -1]
    return np.array([v @ M @ v for M in symmetric[1:]])


res = gs.minimize(largest, np.zeros(d), gradient, eps=1e-3, delta=1e-4, rng=0)
print(res)

# %%
# How stationary is the answer at other radii? One gradient is never short; within a ball that
# contains the kink, a combination is.

curve = gs.stationarity_curve(largest, res.x, gradient, deltas=np.logspace(-7, -1, 13))
print(curve)

# %%

along = np.linspace(-0.3, 0.3, 200)
direction = np.random.default_rng(0).standard_normal(d)
spectrum = np.array([np.linalg.eigvalsh(matrix(res.x + t * direction)) for t in along])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].plot(along, spectrum[:, -5:], color="0.6")
axes[0].plot(along, spectrum[:, -1], color="#0072B2", linewidth=2)
axes[0].set(xlabel="along a random line through the answer", ylabel="five largest eigenvalues")
axes[1].loglog(curve.deltas, curve.eps, "o-", color="#0072B2")
axes[1].set(xlabel=r"$\delta$", ylabel=r"certified $\varepsilon$")
plt.show()
