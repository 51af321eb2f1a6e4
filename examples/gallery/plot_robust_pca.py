"""
Robust PCA: pictures under scribbles
====================================

Pictures of one digit are much alike: as rows of a matrix they have few components. Scribbles on
them are few, and gross. Robust PCA writes the matrix as low rank plus sparse plus noise,
``M = L + S + noise``. Whatever L is, the best S is known, and what is left is the Huber loss of
``M - L`` plus the nuclear norm of L.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import goldstein as gs

X, y = load_digits(return_X_y=True)
clean = X[y == 0][:60] / 16.0
rng = np.random.default_rng(0)
scribbled = rng.random(clean.shape) < 0.05
M = np.where(scribbled, 1.0 - np.round(clean), clean)

shape, edge, weight = M.shape, 0.3, 2.0


def f(L):
    r = np.abs(M.ravel() - L.ravel())
    return float(np.where(r <= edge, r**2 / 2, edge * (r - edge / 2)).sum())


def grad(L):
    return np.clip(L.ravel() - M.ravel(), -edge, edge)


# %%
# The nuclear norm is given as a term of its own, so that singular values which vanish are 0.

term = gs.prox.nuclear(weight, shape)
res = gs.minimize(f, np.zeros(M.size), grad, plus=term, eps=1e-4, delta=1e-3, rng=0)
print(res)
print("verified:", res.certificate.verify(f, grad, plus=term).ok)

L = res.x.reshape(shape)
S = np.sign(M - L) * np.maximum(np.abs(M - L) - edge, 0.0)
print(f"scribbles that were found: {np.mean(S[scribbled] != 0):.0%}")
print(f"mean error under them: {np.abs(L - clean)[scribbled].mean():.3f}, was", end=" ")
print(f"{np.abs(M - clean)[scribbled].mean():.3f}")

# %%
# The function is convex, so the certificate says how much better any other L can be: by ``eps``
# times its distance, and by what gradients within ``delta`` hide. An L that is better is not far,
# for its nuclear norm is at most ``res.fun / weight``.

eps, delta = res.certificate.eps, res.certificate.delta
farthest = np.linalg.norm(res.x) + res.fun / weight
gap = eps * (farthest + delta) + delta**2 / 2
print(f"of {res.fun:.2f}, no L is better by 0.01:", gap < 0.01)

# %%

figure, axes = plt.subplots(4, 8, figsize=(8, 4.4), layout="constrained")
rows = {"given": M, "low rank": L, "sparse": S, "truth": clean}
for line, (name, pictures) in zip(axes, rows.items()):
    for axis, picture in zip(line, pictures):
        style = (
            {"cmap": "RdBu_r", "vmin": -1} if name == "sparse" else {"cmap": "gray_r", "vmin": 0}
        )
        axis.imshow(picture.reshape(8, 8), vmax=1, **style)
        axis.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
plt.show()
