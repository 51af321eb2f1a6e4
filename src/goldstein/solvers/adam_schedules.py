"""Every constant of the per-coordinate online-to-nonconvex method, one small function each.

Notation of docs/adam_o2nc.md, where all of it is proved: `b` is the averaging, `D` the longest step
of a coordinate, `G_i^2` bounds the second moment of coordinate i of a stochastic gradient and
`sigma_i^2` its variance; `|G|_1` and `|sigma|_1` are their sums over the coordinates. Distances
between points are in the sup norm, averages of gradients in the 1-norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from goldstein.errors import InputError
from goldstein.numerics.streams import stream

#: The practical choice of `(b1, b2)`, and of the foresight; why: docs/adam_o2nc.md.
PRACTICAL_BETAS = (0.9, 0.9)
FORESIGHT = 2.0

#: A run lasts at least this many times `1 / (1 - b)`; the first steps then cost 1/20 of the bound.
MEMORIES = 20.0


def regret_constant(kappa: float = 1.0, foresight: float = 0.0, excess: float = 1.0) -> float:
    """Return the factor of `D sqrt(sum_t b1^(2(T-t)) g_t^2)` in the learner's bound.

    That is `excess / (2 kappa) + C` with `C = (k + sqrt(k^2 + 16)) / 2 + foresight k` and
    `k = (1 + foresight) kappa`.

    Parameters
    ----------
    kappa, foresight : float
    excess : float
        `sqrt(V_T)` in units of that root; 1 for `b2 = b1^2`, and `sqrt((1 - b1^2) / (1 - b2))` in
        the theorem.

    Examples
    --------
    >>> round(regret_constant(), 4), round(regret_constant(foresight=2.0), 4)
    (3.0616, 10.5)
    """
    if not (math.isfinite(kappa) and kappa > 0.0):
        raise InputError(f"kappa = {kappa} must be a positive finite number; 1.0 is the default.")
    if not (math.isfinite(foresight) and foresight >= 0.0):
        raise InputError(f"foresight = {foresight} must be a finite number, zero or more.")
    k = (1.0 + foresight) * kappa
    return 0.5 * excess / kappa + 0.5 * (k + math.sqrt(k**2 + 16.0)) + foresight * k


@dataclass(frozen=True)
class AdamO2NCSchedule:
    """The numbers one run of AdamO2NC needs.

    Attributes
    ----------
    averaging : float
        `b1`.
    step_radius : float
        `D`, the longest step of a coordinate: the learning rate.
    window : int
        `K`: the last K query points lie within `K D` of the iterate, in the sup norm.
    steps : int
        `T`.
    decay : bool
        Shrink D linearly to zero (a practical choice; the theorem keeps it constant).
    squares : float, optional
        `b2`; the square of `b1` unless given.
    foresight : float
        How much of the last gradient is expected to come again.
    """

    averaging: float
    step_radius: float
    window: int
    steps: int
    decay: bool = False
    squares: float | None = None
    foresight: float = 0.0

    @property
    def betas(self) -> tuple[float, float]:
        """`(b1, b2)`."""
        return self.averaging, self.averaging**2 if self.squares is None else self.squares

    @property
    def radius(self) -> float:
        """Radius `K D` of the sup-norm ball that holds a window."""
        return self.window * self.step_radius

    def shrink(self, step: int) -> float:
        """Factor of D at `step` (counted from 0), for `LambdaLR` and optax schedules of ints."""
        return max(0.0, 1.0 - step / self.steps) if self.decay else 1.0

    def output_step(self, seed: int) -> int:
        """Draw `tau`, the step after which the theorem stops: `P(t) = (1 - b^t) / T` for t < T.

        The last step takes the rest, `P(T) = (1 - b^T) / ((1 - b) T)`.

        Examples
        --------
        >>> adam_o2nc_practice(1e-3, 1000).output_step(0)
        865
        """
        rng = stream(seed, 0, "adam-o2nc output")
        # Draw t uniformly, keep it with probability 1 - b^t; the rest belongs to the last step.
        t = int(rng.integers(1, self.steps + 1))
        return t if rng.random() < 1.0 - self.averaging**t else self.steps

    def bound(self, *, gap: float, scale: float, noise: float = 0.0) -> float:
        """Return the theorem's bound on the expected 1-norm of the averaged gradient at `tau`.

        Parameters
        ----------
        gap : float
            `F(w_0) - inf F`.
        scale, noise : float
            `|G|_1` and `|sigma|_1`.
        """
        (b, squares), steps = self.betas, self.steps
        learner = ((1.0 - b) + b / steps) / math.sqrt(1.0 - b**2)
        excess = math.sqrt((1.0 - b**2) / (1.0 - squares))
        constant = regret_constant(foresight=self.foresight, excess=excess)
        return gap / (self.step_radius * steps) + learner * (constant * scale + noise)


def adam_o2nc_theory(
    eps: float, delta: float, *, scale: float, gap: float, noise: float | None = None
) -> AdamO2NCSchedule:
    """Return the schedule whose output is (eps, delta)-stationary in expectation.

    In the per-coordinate notion: gradients within `delta` of the output in the **sup norm** have a
    convex combination whose **1-norm** is at most `eps` in expectation. About
    `30 gap (3.07 |G|_1 + |sigma|_1)^2 ln(4 |G|_1 / eps) / (delta eps^3)` gradients.

    Parameters
    ----------
    eps, delta : float
    scale : float
        `|G|_1`: the sum over the coordinates of the root mean squares of the stochastic gradient.
    gap : float
        `F(w_0) - inf F`, or more.
    noise : float, optional
        `|sigma|_1`; at most `scale`, which is the default.

    Examples
    --------
    >>> s = adam_o2nc_theory(0.1, 0.1, scale=1.0, gap=1.0, noise=0.0)
    >>> s.window, round(s.radius, 12), s.bound(gap=1.0, scale=1.0) <= 0.05
    (17156, 0.1, True)
    """
    noise = scale if noise is None else noise
    for name, number in (("eps", eps), ("delta", delta), ("scale", scale), ("gap", gap)):
        if not (math.isfinite(number) and number > 0.0):
            raise InputError(f"{name} = {number} must be a positive finite number.")
    if not 0.0 <= noise <= scale:
        raise InputError(f"noise = {noise} must lie between 0 and scale = {scale}.")
    if eps > scale:
        raise InputError(
            f"eps = {eps:g} exceeds the scale {scale:g}: every point qualifies. Ask for less."
        )
    # A third of eps for the learner, a sixth for the descent, the rest for cutting the average.
    start_up = 1.0 + 1.0 / MEMORIES
    rho = eps / (3.0 * start_up * (regret_constant() * scale + noise))
    forgetting = 2.0 * rho**2 / (1.0 + rho**2)
    window = math.ceil(math.log(4.0 * scale / eps) / forgetting)
    steps = math.ceil(max(6.0 * gap * window / (delta * eps), MEMORIES / forgetting))
    return AdamO2NCSchedule(1.0 - forgetting, delta / window, window, steps)


def adam_o2nc_practice(
    lr: float,
    steps: int,
    *,
    betas: tuple[float, float] = PRACTICAL_BETAS,
    foresight: float = FORESIGHT,
) -> AdamO2NCSchedule:
    """Return what works at ordinary budgets: equal betas, foresight, linear decay from `D = lr`.

    The window holds 95 % of the average's weight.

    Examples
    --------
    >>> s = adam_o2nc_practice(1e-3, 500)
    >>> s.window, s.shrink(0), s.shrink(250)
    (29, 1.0, 0.5)
    """
    if not (math.isfinite(lr) and lr > 0.0):
        raise InputError(f"lr = {lr} must be a positive finite number; 1e-3 is a good start.")
    if steps < 1:
        raise InputError(f"steps = {steps} must be at least 1.")
    averaging, squares = betas
    return AdamO2NCSchedule(averaging, lr, window_of(averaging), steps, True, squares, foresight)


def window_of(averaging: float) -> int:
    """Return how many recent gradients hold 95 % of the average's weight."""
    if not 0.0 <= averaging < 1.0:
        raise InputError(f"averaging = {averaging} must lie in [0, 1).")
    return max(1, math.ceil(math.log(0.05) / math.log(averaging))) if averaging else 1
