"""
A margin machine for gene data with wrong labels
================================================

Two kinds of leukaemia, 38 patients, 200 genes. A ramp loss does not grow beyond 1, so a patient
with the wrong label costs a constant instead of pulling the machine over. The fit ends with a
certificate about its own objective.
"""

from importlib import resources

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import LinearSVC

from goldstein.sklearn import RhoMarginSVC

with resources.files("goldstein.problems").joinpath("data/golub200.npz").open("rb") as file:
    data = np.load(file)
    X, y = data["X"], np.where(data["y"] > data["y"].min(), 1, -1)
X = (X - X.mean(0)) / X.std(0)

# %%
# Four labels are turned over. The hinge loss of the linear SVM believes them.

flipped = np.array([0, 9, 20, 33])
given = y.copy()
given[flipped] *= -1
ramp = RhoMarginSVC(C=0.01, random_state=0).fit(X, given)
hinge = LinearSVC(C=0.01, loss="hinge", dual=True, max_iter=100_000, random_state=0).fit(X, given)
print(ramp.certificate_.summary())
print("verified again from the data:", ramp.certificate_.verify(ramp.objective(X, given)).ok)
for name, machine in (("ramp", ramp), ("hinge", hinge)):
    print(name, "agrees with the true labels on", int((machine.predict(X) == y).sum()), "of 38")

# %%
# Left of 0 a row is on the wrong side of the label it was given. The turned labels lie far to the
# left for the ramp, where they cost a constant; the hinge has fitted some of them.

figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 4.6), layout="constrained")
for axis, (name, machine) in zip(axes, (("ramp", ramp), ("hinge", hinge))):
    margin = given * machine.decision_function(X)
    right = np.setdiff1d(np.arange(y.size), flipped)
    axis.plot(margin[right], np.zeros(right.size), "|", color="#0072B2", markersize=18)
    axis.plot(margin[flipped], np.zeros(flipped.size), "x", color="#D55E00", markersize=9)
    axis.axvline(0, color="0.6", linewidth=0.8)
    axis.set(title=f"{name} loss: margins of right (|) and turned (x) labels", yticks=[])
axes[1].set(xlabel="margin")
plt.show()
