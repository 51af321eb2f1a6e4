"""
Sparse robust regression
========================

Absolute errors do not mind outliers, and the penalty MCP sets coefficients to zero without
shrinking the large ones. Both have kinks, and MCP is not convex. Written with atoms, the answer
comes with a proof of *near* stationarity, in rational arithmetic.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

import goldstein as gs

X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)[:200]
y = (y - y.mean())[:200] / y.std()
rng = np.random.default_rng(0)
X = np.hstack([X, rng.standard_normal((200, 10))])  # ten columns that mean nothing
wrong = rng.choice(200, 20, replace=False)
y[wrong] += 10.0  # and twenty rows that are wrong

w = gs.Variable(X.shape[1])
F = gs.sum(gs.abs(X @ w - y)) / len(y) + 0.1 * gs.sum(gs.mcp(w, lam=1.0, gamma=3.0))
res = gs.minimize(
    F, np.zeros(X.shape[1]), eps=1e-3, delta=1e-3, stationarity="near", rng=0, max_time=30
)
print(res)

# %%
# At the pivot, which is what was proved about, zeros are exact.

pivot = res.certificate.pivot if res.success else res.x
print("coefficients that are exactly 0:", int((pivot == 0).sum()), "of", pivot.size)
ridge = Ridge().fit(X, y)
figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
place = np.arange(pivot.size)
axes.bar(place - 0.2, ridge.coef_, 0.4, color="#999999", label="ridge regression")
axes.bar(place + 0.2, pivot, 0.4, color="#0072B2", label="absolute errors and MCP")
axes.axvline(9.5, color="0.3", linestyle="--", linewidth=0.8)
axes.text(9.7, axes.get_ylim()[1] * 0.85, "columns of noise")
axes.set(xlabel="coefficient", title="a tenth of the rows is wrong by 10 standard deviations")
axes.legend(loc="lower right")
plt.show()
