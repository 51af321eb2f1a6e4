"""
Matrix completion: a picture of which half is missing
=====================================================

Half of the entries of a matrix are known, and the matrix is nearly of low rank, as tables of
ratings and pictures are. The nuclear norm, the sum of the singular values, prefers low rank; at the
answer half of the singular values are 0, where it has kinks.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import goldstein as gs

photo = load_sample_image("china.jpg").mean(axis=2)[:420] / 255.0
truth = photo.reshape(42, 10, 64, 10).mean(axis=(1, 3))
rng = np.random.default_rng(0)
known = rng.random(truth.shape) < 0.5
shape, weight = truth.shape, 0.2


def error(X):
    return np.where(known, X.reshape(shape) - truth, 0.0)


def f(X):
    return float((error(X) ** 2).sum() / 2)


def grad(X):
    return error(X).ravel()


# %%
# The nuclear norm is given as a term of its own, so that singular values which vanish are 0.

term = gs.prox.nuclear(weight, shape)
start = np.where(known, truth, truth[known].mean())
res = gs.minimize(f, start.ravel(), grad, plus=term, eps=1e-4, delta=1e-3, rng=0)
print(res)
print("verified:", res.certificate.verify(f, grad, plus=term).ok)

found = res.x.reshape(shape)
for name, picture in (("the mean", start), ("the answer", found)):
    print(
        f"mean error of {name} where nothing is known: {np.abs(picture - truth)[~known].mean():.3f}"
    )

# %%
# The function is convex, so the certificate says how much better any other matrix can be: by
# ``eps`` times its distance, and by what gradients within ``delta`` hide. A matrix that is better
# is not far, for its nuclear norm is at most ``res.fun / weight``.

eps, delta = res.certificate.eps, res.certificate.delta
farthest = np.linalg.norm(res.x) + res.fun / weight
gap = eps * (farthest + delta) + delta**2 / 2
print(f"of {res.fun:.2f}, no matrix is better by 0.01:", gap < 0.01)

# %%

figure, axes = plt.subplots(2, 2, figsize=(9, 5.6), layout="constrained")
shown = {"what is known": np.where(known, truth, np.nan), "the answer": found, "the truth": truth}
for axis, (name, picture) in zip(axes.flat, shown.items()):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1)
    axis.set_facecolor("#56B4E9")
    axis.set(title=name, xticks=[], yticks=[])
for matrix, color, name in ((truth, "#999999", "the truth"), (found, "#0072B2", "the answer")):
    values = np.linalg.svd(matrix, compute_uv=False)
    axes[1, 1].semilogy(np.where(values > 1e-8, values, np.nan), ".", color=color, label=name)
axes[1, 1].set(xlabel="singular values", title=f"rank {np.linalg.matrix_rank(found, 1e-8)}")
axes[1, 1].legend()
plt.show()
