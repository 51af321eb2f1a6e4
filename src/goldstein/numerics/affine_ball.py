"""Where in a ball gradients that change like an affine function would be shortest."""

from __future__ import annotations

import math

import numpy as np

from goldstein.checker.arrays import Matrix, Vector

#: Halvings of the interval in which the multiplier of the ball is looked for, in powers of ten.
HALVINGS, SMALLEST, LARGEST = 40, -13.0, 6.0


def shortest_in_ball(offsets: Matrix, gradients: Matrix, radius: float) -> Vector:
    """Return weights that sum to 1, negative ones too, with a short combination of gradients.

    Were the gradient an affine function of the point, the combination of the gradients would be the
    gradient at the combination of the points; `offsets` are these points from the centre of a ball,
    and the weights keep their combination within `radius`, up to rounding, where that is possible.

    Examples
    --------
    >>> offsets = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> gradients = np.array([[3.0, 1.0], [2.0, 1.0]])
    >>> shortest_in_ball(offsets, gradients, 10.0).round(6)
    array([-2.,  3.])
    >>> shortest_in_ball(offsets, gradients, 2.0).round(6)
    array([-1.,  2.])
    """
    squared, far = gradients @ gradients.T, offsets @ offsets.T
    squared, far_scaled = squared / (np.trace(squared) or 1.0), far / (np.trace(far) or 1.0)
    ones, small = np.ones(len(far)), 1e-14 * np.eye(len(far))

    def weights(power: float) -> tuple[Vector, float]:
        """The shortest combination, with a price for its distance from the centre."""
        w: Vector = np.linalg.lstsq(squared + 10.0**power * far_scaled + small, ones)[0]
        w /= w.sum()
        return w, math.sqrt(max(float(w @ far @ w), 0.0))

    found, distance = weights(SMALLEST)
    if distance <= radius:
        return found
    low, high = SMALLEST, LARGEST
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if weights(middle)[1] > radius else (low, middle)
    return weights(high)[0]
