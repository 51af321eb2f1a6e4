"""
An H-infinity controller of a given structure
=============================================

A static feedback of three measurements of a supersonic aircraft (AC15 of COMPleib) shall keep the
H-infinity norm of the closed loop small. The norm is a maximum over frequencies, not convex in the
feedback, and has kinks where two peaks are equally high. Three statements come with the answer:
stability and the bound of the norm, each by a matrix in rational numbers, and local stationarity.
"""

import matplotlib.pyplot as plt
import numpy as np

import goldstein as gs
from goldstein.control.oracles import largest_gain

plant = gs.control.Plant(
    A=[[-0.037, 0.0123, 0.00055, -1], [0, 0, 1, 0], [-6.37, 0, -0.23, 0.0618],
       [1.25, 0, 0.016, -0.0457]],
    B=[[0.00084, 0.000236], [0, 0], [0.08, 0.804], [-0.0862, -0.0665]],
    C=[[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
    B1=np.eye(4), C1=np.vstack([np.eye(4), np.zeros((2, 4))]),
    D12=np.vstack([np.zeros((4, 2)), np.eye(2)]), name="AC15",
)  # fmt: skip
design = gs.control.synthesise(plant, max_calls=2000, rng=0)
print(design.K.round(3))
print(f"norm {design.norm:.4f}; black-box runs reach 15.17")
print("stable, proved:", design.stability.verify(design.plant))
print(f"norm below {design.bound.gamma:.5f}, proved:", design.bound.verify(design.plant))
print(design.certificate)

# %%
# The largest gain over all frequencies, without and with feedback: the peak is cut off, and what is
# left of it is hardly higher than the gain at low frequencies.

frequencies = np.logspace(-2, 2, 2000)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for K, label in ((0.0 * design.K, "without feedback"), (design.K, "with feedback")):
    gains = [largest_gain(plant.closed_loop(K), w) for w in frequencies]
    axes.loglog(frequencies, gains, label=label)
axes.axhline(design.bound.gamma, color="#D55E00", linewidth=0.8, label="proved bound")
axes.set(xlabel="frequency", ylabel="largest gain", title=f"norm below {design.bound.gamma:.4g}")
axes.legend()
plt.show()
