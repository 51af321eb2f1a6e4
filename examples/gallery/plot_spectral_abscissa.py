"""
Stabilising a plant: the spectral abscissa
==========================================

A feedback ``u = K y`` is good if the rightmost eigenvalue of ``A + B K C`` is far to the left. At
the best ``K`` several eigenvalues are rightmost together: the function has a kink there, and is
neither convex nor, where eigenvalues coalesce, Lipschitz. Nothing is known of it but values and
gradients.
"""

import matplotlib.pyplot as plt
import numpy as np

import goldstein as gs

rng = np.random.default_rng(4)
n, inputs, outputs = 6, 2, 2
A = rng.standard_normal((n, n)) + 0.3 * np.eye(n)
B, C = rng.standard_normal((n, inputs)), rng.standard_normal((outputs, n))


def closed_loop(k):
    return A + B @ k.reshape(inputs, outputs) @ C


def abscissa(k):
    return np.linalg.eigvals(closed_loop(k)).real.max()


# %%
# The gradient of a simple eigenvalue is made of its left and right eigenvectors.


def gradient(k):
    values, right = np.linalg.eig(closed_loop(k))
    j = values.real.argmax()
    left = np.linalg.inv(right)[j]
    return np.real(np.outer(B.T @ left, C @ right[:, j])).ravel()


print(gs.check_gradient(abscissa, gradient, np.ones(4)))
starts = np.random.default_rng(0).standard_normal((6, 4))
runs = [
    gs.minimize(abscissa, x0, gradient, eps=1e-2, delta=1e-3, rng=0, max_calls=4000)
    for x0 in starts
]
res = min(runs, key=lambda run: run.fun)
print(res)

# %%
# Before and after. Around the answer several eigenvalues share the largest real part; what is far
# to the left of them decays at once and is left out of the picture.

before, after = np.linalg.eigvals(A), np.linalg.eigvals(closed_loop(res.x))
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].axvline(0, color="0.6", linewidth=0.8)
axes[0].plot(before.real, before.imag, "x", color="#D55E00", label="without feedback")
axes[0].plot(after.real, after.imag, "o", color="#0072B2", label="with feedback")
axes[0].axvline(res.fun, color="#0072B2", linestyle="--", linewidth=0.8)
shown = -1.0, before.real.max() + 0.1
far = int((after.real < shown[0]).sum())
axes[0].set(
    xlim=shown, xlabel=f"real part ({far} of {after.size} with feedback are farther left)",
    ylabel="imaginary part", title=f"abscissa {res.fun:.3f}",
)  # fmt: skip
axes[0].legend()
for run in runs:
    axes[1].plot(run.history.calls, run.history.fun, color="#0072B2", alpha=0.6)
axes[1].set(xlabel="calls", ylabel="spectral abscissa", title="six starts")
plt.show()
