"""
Hyper-parameters of a certified inner problem
=============================================

The two weights of an elastic net are chosen by the error on data that it has not seen. Each value
of that error needs the answer of an inner problem, and has a kink wherever a coefficient enters or
leaves the model. Every inner answer comes with a certificate, which bounds how wrong it is; the
hyper-parameters that are found come with one, too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNet

import goldstein as gs

X, y = load_diabetes(return_X_y=True)
X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
order = np.random.default_rng(1).permutation(len(y))
train, unseen = order[:100], order[100:]
A, b = X[train], y[train]

# %%
# The inner problem is a quadratic plus an l1 norm, which is treated exactly: zeros are zeros. It is
# strongly convex, so a certificate bounds the distance to the true coefficients. Once zeros and
# signs are known, the rest is a linear system, solved to all digits: the outer problem needs them.

distances = []


def coefficients(weights):
    l1, l2 = np.exp(weights)
    H, c = A.T @ A / len(b) + l2 * np.eye(A.shape[1]), A.T @ b / len(b)

    def f(w):
        return w @ H @ w / 2 - c @ w

    def grad(w):
        return H @ w - c

    term = gs.prox.l1(l1)
    inner = gs.minimize(f, np.zeros(len(c)), grad, plus=term, eps=1e-6, delta=1e-6, rng=0)
    w, on = inner.x.copy(), inner.x != 0
    w[on] = np.linalg.solve(H[np.ix_(on, on)], (c - l1 * np.sign(w))[on])
    proof = gs.certify(f, w, grad, plus=term, delta=1e-6, eps=1e-8, rng=0)
    if not proof.verify(f, grad, plus=term).ok:
        raise ArithmeticError("an inner answer is not verified")
    flattest, steepest = np.linalg.eigvalsh(H)[[0, -1]]
    distances.append(proof.delta + (proof.eps + 2 * steepest * proof.delta) / flattest)
    return w, H


# %%
# The outer problem. Where ``w`` is not 0, it solves ``H w = c - l1 sign w``, and this can be
# differentiated.


def error(weights):
    w, _ = coefficients(weights)
    return float(((X[unseen] @ w - y[unseen]) ** 2).mean())


def slope(weights):
    w, H = coefficients(weights)
    on = w != 0
    outer = 2 * X[unseen][:, on].T @ (X[unseen] @ w - y[unseen]) / len(unseen)
    adjoint = np.linalg.solve(H[np.ix_(on, on)], outer)
    return -np.exp(weights) * [adjoint @ np.sign(w[on]), adjoint @ w[on]]


start, bounds = np.array([-1.0, -1.0]), [(-6.0, 0.0)] * 2  # logarithms of the weights
res = gs.minimize(error, start, slope, eps=1e-3, delta=1e-3, rng=0, bounds=bounds)
print(res)
print("verified:", res.certificate.verify(error, slope, bounds=bounds).ok)
print(len(distances), "inner answers, all within 1e-4 of the true ones:", max(distances) < 1e-4)
print(f"error {error(start):.4f} at the start, {res.fun:.4f} at the end")

# %%
# The error over both weights, by scikit-learn on a grid. Lines show where the number of
# coefficients changes: there are the kinks.

grid = np.linspace(-6.0, 0.0, 40)
errors, counts = np.empty((2, len(grid), len(grid)))
for i, l2 in enumerate(np.exp(grid)):
    for j, l1 in enumerate(np.exp(grid)):
        net = ElasticNet(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2), fit_intercept=False).fit(A, b)
        errors[i, j] = ((net.predict(X[unseen]) - y[unseen]) ** 2).mean()
        counts[i, j] = np.count_nonzero(net.coef_)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
levels = errors.min() + np.linspace(0.0, 0.02, 11)
shades = axes[0].contourf(grid, grid, errors, levels, cmap="Blues", extend="max")
figure.colorbar(shades, ax=axes[0], label="error on unseen data", format="%.3f")
axes[0].contour(grid, grid, counts, np.arange(10) + 0.5, colors="#E69F00", linewidths=0.8)
axes[0].plot(*start, "o", color="white", markeredgecolor="black", label="start")
axes[0].plot(*res.x, "*", color="#D55E00", markersize=14, label="answer")
axes[0].set(xlabel="log of the l1 weight", ylabel="log of the l2 weight")
axes[0].legend(loc="lower left")
path = np.array([coefficients([l1, res.x[1]])[0] for l1 in grid])
axes[1].plot(grid, path, linewidth=1)
axes[1].axvline(res.x[0], color="#D55E00", label="answer")
axes[1].set(xlabel="log of the l1 weight", ylabel="coefficients")
axes[1].legend()
plt.show()
