"""
A simulator without gradients
=============================

A ball is thrown against a wall; where it comes to rest is known by simulation alone. The force of
the throw is to be small, and hitting the target is enforced by an absolute value. No gradient is
given: differences of values stand for it, and what is said about the answer is a statement with a
confidence, not a proof.
"""

import matplotlib.pyplot as plt
import numpy as np

import goldstein as gs


def flight(x, steps=400, dt=0.01):
    """Return the path of a ball thrown with velocity x, with drag and a wall at 4 that bounces."""
    place, speed = np.zeros(2), np.array(x, dtype=float)
    path = [place.copy()]
    for _ in range(steps):
        speed = speed - dt * (np.array([0.0, 9.81]) + 0.05 * np.linalg.norm(speed) * speed)
        place = place + dt * speed
        if place[0] > 4.0:
            place[0], speed[0] = 8.0 - place[0], -0.7 * speed[0]
        path.append(place.copy())
        if place[1] < 0:
            break
    return np.array(path)


def landing(x):
    before, after = flight(x)[-2:]
    share = before[1] / (before[1] - after[1])
    return before[0] + share * (after[0] - before[0])


def f(x):
    return 0.01 * (x @ x) + abs(landing(x) - 2.0)


res = gs.minimize(f, [9.0, 7.0], method="values", eps=0.2, delta=0.05, rng=0, max_calls=6000)
print(res)

# %%

figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.axvline(4.0, color="black", linewidth=3)
axes.plot(*flight(np.array([9.0, 7.0])).T, ":", color="#D55E00", label="start")
axes.plot(*flight(res.x).T, color="#0072B2", label="answer")
axes.plot(2.0, 0.0, "*", color="#009E73", markersize=16, label="target")
axes.set(xlabel="distance", ylabel="height", ylim=(-0.1, None))
axes.legend()
plt.show()
