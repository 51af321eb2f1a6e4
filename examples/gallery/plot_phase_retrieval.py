"""
Phase retrieval with gross errors
=================================

Only the squares of measurements are known, and a tenth of them is wrong by any amount. The absolute
error ``mean |(a.x)^2 - b|`` does not mind the wrong ones, and is neither smooth nor convex.
"""

import matplotlib.pyplot as plt
import numpy as np

import goldstein as gs

rng = np.random.default_rng(1)
d, m = 40, 240
signal = np.sin(np.linspace(0, 4 * np.pi, d)) * np.hanning(d)
rows = rng.standard_normal((m, d))
squares = (rows @ signal) ** 2
wrong = rng.choice(m, m // 10, replace=False)
squares[wrong] += rng.exponential(10.0, wrong.size)


def f(x):
    return np.abs((rows @ x) ** 2 - squares).mean()


def grad(x):
    inner = rows @ x
    return 2 / m * rows.T @ (np.sign(inner**2 - squares) * inner)


# %%
# A start by the spectral method: the leading eigenvector of the measurements, weighted.

small = squares <= 9 * np.median(squares)
_, vectors = np.linalg.eigh(rows[small].T @ (squares[small, None] * rows[small]))
x0 = vectors[:, -1] * np.sqrt(np.median(squares) / 0.455)
res = gs.minimize(f, x0, grad, eps=1e-3, delta=1e-6, rng=0)
print(res)
found = res.x * np.sign(res.x @ signal)  # the sign of the signal is lost in the squares
print("largest error of the signal:", np.abs(found - signal).max())

# %%

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].plot(signal, color="0.5", linewidth=4, alpha=0.5, label="signal")
axes[0].plot(x0 * np.sign(x0 @ signal), ":", color="#D55E00", label="start")
axes[0].plot(found, color="#0072B2", label="answer")
axes[0].legend()
axes[0].set(title="exact, although 10 % of the data are wrong")
axes[1].semilogy(res.history.calls, np.maximum(res.history.fun, 1e-16) - f(signal) + 1e-12)
axes[1].set(xlabel="calls", ylabel="f - f(signal)")
plt.show()
