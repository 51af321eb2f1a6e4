"""
An antenna pattern with complex weights
=======================================

Sixteen antennas in a line, half a wavelength apart, hear a wave from direction t with phases
exp(i pi k sin t). Complex weights make their sum deaf elsewhere: the largest side lobe shall be as
low as possible, while the gain at 20 degrees is 1. The modulus of a complex number is a length in
the plane, so a complex weight is a pair of variables.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import LinearConstraint

import goldstein as gs

COUNT, AHEAD, WIDTH = 16, np.deg2rad(20.0), np.deg2rad(9.0)
angles = np.deg2rad(np.linspace(-90, 90, 121))
side = angles[np.abs(angles - AHEAD) > WIDTH]


def steering(t):
    """Real and imaginary part of sum_k (a_k + i b_k) exp(i pi k sin t) as rows for (a, b)."""
    phase = np.pi * np.outer(np.sin(np.atleast_1d(t)), np.arange(COUNT))
    c, s = np.cos(phase), np.sin(phase)
    return np.hstack([c, -s]), np.hstack([s, c])


real, imaginary = steering(side)
w = gs.Variable(2 * COUNT)
F = gs.max(gs.norm2(gs.stack([real @ w, imaginary @ w]).T, axis=1))

# %%
# The gain ahead is 1 and real: two linear equations, as SciPy writes them.

ahead = np.vstack(steering(AHEAD))
plain = np.linalg.pinv(ahead) @ [1.0, 0.0]
res = gs.minimize(
    F, plain, eps=1e-2, delta=1e-3, rng=0, constraints=LinearConstraint(ahead, [1, 0], [1, 0])
)
print(res)
print(f"side lobes: {20 * np.log10(F.value(plain)):.1f} dB before, {20 * np.log10(res.fun):.1f} dB")

# %%
# Many side lobes have the same height: as many kinks are met.

fine = np.deg2rad(np.linspace(-90, 90, 1001))
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for weights, color, label in ((plain, "#D55E00", "equal weights"), (res.x, "#0072B2", "minimax")):
    a, b = steering(fine)
    level = 20 * np.log10(np.maximum(np.hypot(a @ weights, b @ weights), 1e-4))
    axes.plot(np.rad2deg(fine), level, color=color, label=label)
axes.axhline(20 * np.log10(res.fun), color="0.6", linewidth=0.8)
axes.set(xlabel="direction, degrees", ylabel="gain, dB", ylim=(-60, 3), title="Array pattern")
axes.legend()
plt.show()
