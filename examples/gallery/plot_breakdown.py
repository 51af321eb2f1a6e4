"""
Regression when two fifths of the rows are wrong
================================================

Two fifths of the rows belong to something else, far out: a high-breakdown fit finds the line of the
others, and says which rows it did not believe. Least squares and Huber's loss follow the wrong.
Quantiles that may not cross show the spread of the data that are left.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import HuberRegressor, LinearRegression

from goldstein.sklearn import QuantileRegressor, RobustRegressor

rng = np.random.default_rng(3)
x = rng.uniform(0, 10, 100)
y = 2.0 + 0.8 * x + 0.15 * (1 + x) * rng.standard_normal(100)
x[:40], y[:40] = 8.0 + 0.7 * rng.standard_normal(40), -6.0 + 0.7 * rng.standard_normal(40)
X = x[:, None]

robust = RobustRegressor("trimmed", random_state=0).fit(X, y)
print(robust.certificate_)
outliers = np.abs(y - robust.predict(X)) > 3.5 * robust.scale_
print(f"{outliers.sum()} rows are not believed, {outliers[:40].sum()} of the 40 wrong ones")

# %%
# On the others: three quantiles, in order everywhere between the data, with a proved gap.

quantiles = QuantileRegressor([0.1, 0.5, 0.9], non_crossing=True, random_state=0)
quantiles.fit(X[~outliers], y[~outliers])
print(quantiles.minimum_, quantiles.gap_)

# %%

line = np.linspace(0, 10, 50)[:, None]
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
axes.scatter(x, y, c=np.where(outliers, "#999999", "#0072B2"), s=14)
for model, style, label in (
    (LinearRegression().fit(X, y), ":", "least squares"),
    (HuberRegressor().fit(X, y), "--", "Huber"),
    (robust, "-", "least trimmed squares"),
):
    axes.plot(line, model.predict(line), style, color="#D55E00", label=label)
axes.plot(line, quantiles.predict(line), color="#009E73", linewidth=0.9)
axes.set(xlabel="x", ylabel="y", title="Breakdown; quantiles 0.1, 0.5, 0.9 in green")
axes.legend()
plt.show()
