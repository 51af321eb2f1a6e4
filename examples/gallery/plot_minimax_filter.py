"""
A low-pass filter, minimax
==========================

A linear-phase filter of 21 taps is a sum of cosines. Its largest deviation from the wanted response
is a maximum over frequencies: as many kinks as there are frequencies, and at the best filter some
dozen of them are met at once.
"""

# %%
# The response is ``C @ h``; in the stop band deviations count ten times.

import matplotlib.pyplot as plt
import numpy as np

import goldstein as gs

TAPS = 11
frequencies = np.concatenate([np.linspace(0, 0.4, 60), np.linspace(0.5, 1.0, 60)]) * np.pi
wanted = (frequencies <= 0.4 * np.pi).astype(float)
weight = np.where(wanted > 0, 1.0, 10.0)
C = np.cos(np.outer(frequencies, np.arange(TAPS)))

h = gs.Variable(TAPS)
F = gs.max(gs.abs(weight[:, None] * C @ h - weight * wanted))
res = gs.minimize(F, np.zeros(TAPS), eps=1e-4, delta=1e-5, rng=0)
print(res)

# %%
# The function is an expression, so more can be proved: a point within ``delta`` has a subgradient
# of at most this norm, in rational arithmetic. The function is convex, and a stationary point is
# the best filter there is.

near = gs.certify(F, res.x, stationarity="near", delta=1e-3, eps=1e-3)
print(near.summary())

# %%
# The error ripples between equal heights, as Chebyshev knew.

grid = np.linspace(0, np.pi, 800)
response = np.cos(np.outer(grid, np.arange(TAPS))) @ res.x
figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5), layout="constrained")
axes[0].plot(grid / np.pi, response, color="#0072B2")
axes[0].plot([0, 0.4], [1, 1], color="0.4", linestyle="--")
axes[0].plot([0.5, 1], [0, 0], color="0.4", linestyle="--")
axes[0].set(ylabel="response", title=f"largest weighted deviation {res.fun:.4f}")
axes[1].plot(frequencies / np.pi, weight * (C @ res.x - wanted), ".", color="#D55E00")
axes[1].axhline(res.fun, color="0.4", linestyle="--")
axes[1].axhline(-res.fun, color="0.4", linestyle="--")
axes[1].set(xlabel=r"frequency / $\pi$", ylabel="weighted error")
plt.show()
