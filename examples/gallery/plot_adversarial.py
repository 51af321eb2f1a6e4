"""
The smallest change that fools a network
========================================

How far is the nearest picture that a network takes for another digit? Minimise the length of the
change under the constraint that the other class wins. Most attacks stop after some steps; this one
says whether it has converged: the KKT certificate holds for the network as it is, kinks and all.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import NonlinearConstraint
from sklearn.datasets import load_digits

import goldstein as gs
from goldstein.sklearn import ReLUNetClassifier

X, y = load_digits(return_X_y=True)
X = X / 16.0
net = ReLUNetClassifier(12, certificate="goldstein", random_state=0).fit(X[:600], y[:600])
W, V, c = net.hidden_coef_, net.output_coef_, net.output_intercept_
picture = X[700]
scores = net.decision_function(picture[None])[0]
true, rival = np.argsort(scores)[::-1][:2]


def lead(x):
    """By how much the true class is ahead of its rival."""
    hidden = np.maximum(W[:, :-1] @ x + W[:, -1], 0.0)
    return np.array([hidden @ (V[:, true] - V[:, rival]) + c[true] - c[rival]])


def slope(x):
    on = (W[:, :-1] @ x + W[:, -1] > 0).astype(float)
    return ((V[:, true] - V[:, rival]) * on @ W[:, :-1])[None]


def length(x):
    return float(np.linalg.norm(x - picture))


def direction(x):
    return (x - picture) / max(np.linalg.norm(x - picture), 1e-300)


# %%
# The start is another picture, which the network takes for the rival.

others = X[600:][net.predict(X[600:]) == net.classes_[rival]]
start = others[np.argmin(np.linalg.norm(others - picture, axis=1))]
res = gs.minimize(
    length, start, direction, eps=1e-3, delta=1e-4, rng=0,
    constraints=NonlinearConstraint(lead, -np.inf, 0.0, jac=slope),
)  # fmt: skip
print(res)
print(f"nearest other picture: {length(start):.2f}; nearest that is taken for it: {res.fun:.3f}")

# %%
# The change, and what it does.

figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
shown = (picture, res.x - picture, res.x)
for axis, image, title in zip(
    axes, shown, (f"a {net.classes_[true]}", "change", f"a {net.classes_[rival]}?")
):
    axis.imshow(image.reshape(8, 8), cmap="gray_r" if title != "change" else "RdBu")
    axis.set(title=title, xticks=[], yticks=[])
plt.show()
