"""Every parameter of the stochastic methods, one small function each.

Notation of Algorithm 2 of Tian, Zhou and So (ICML 2022): `L` bounds the Lipschitz constant and
`sigma` the noise, `G = sqrt(L^2 + sigma^2)`, `Delta = f(x1) - inf f`. Two corrections to the
printed algorithm are built in: the window `K` is rounded up, and the slack is therefore `omega =
delta p - K` (the printed slack lets a rounded window leave the ball).

Every constant of the per-coordinate online-to-nonconvex method, one small function each.

Notation of docs/adam_o2nc.md, where all of it is proved: `b` is the averaging, `D` the longest step
of a coordinate, `G_i^2` bounds the second moment of coordinate i of a stochastic gradient and
`sigma_i^2` its variance; `|G|_1` and `|sigma|_1` are their sums over the coordinates. Distances
between points are in the sup norm, averages of gradients in the 1-norm.
"""

import math
from dataclasses import dataclass

from goldstein.errors import InputError
from goldstein.numerics.streams import stream


def gradient_scale(lipschitz: float, noise: float) -> float:
    """Return `G = sqrt(L^2 + sigma^2)`, the root mean square bound of a stochastic gradient.

    Examples
    --------
    >>> gradient_scale(3.0, 4.0)
    5.0
    """
    return math.hypot(_positive("lipschitz", lipschitz), _at_least_zero("noise", noise))


def log_factor(eps: float, scale: float) -> float:
    """Return `Lg = ln(16 G / eps)`; needs `eps <= G`, beyond that every point qualifies."""
    _positive("eps", eps)
    if eps > scale:
        raise InputError(
            f"eps = {eps:g} exceeds G = {scale:g}: every point is already (eps, delta)-stationary. "
            "Ask for a smaller eps."
        )
    return math.log(16.0 * scale / eps)


def averaging(eps: float, scale: float) -> float:
    """Return `beta = 1 - eps^2 / (64 G^2)`, the weight of the old average."""
    return 1.0 - eps**2 / (64.0 * scale**2)


def inverse_longest_step(eps: float, delta: float, scale: float) -> float:
    """Return `p = 64 G^2 Lg / (delta eps^2)`; no step is longer than `1/p`."""
    return 64.0 * scale**2 * log_factor(eps, scale) / (_positive("delta", delta) * eps**2)


def step_offset(eps: float, delta: float, scale: float) -> float:
    """Return `q = 4 G p`, which keeps steps short when the average is small."""
    return 4.0 * scale * inverse_longest_step(eps, delta, scale)


def window_length(eps: float, scale: float) -> int:
    """Return `K = ceil(Lg / ln(1/beta))`: older gradients weigh at most `eps / (16 G)` together."""
    # log1p keeps ln(1/beta) accurate when beta is within rounding of one.
    rate = -math.log1p(-(eps**2) / (64.0 * scale**2))
    return math.ceil(log_factor(eps, scale) / rate)


def window_slack(eps: float, delta: float, scale: float) -> float:
    """Return `omega = delta p - K`, at least 0.386: what the perturbation may use of the ball."""
    return delta * inverse_longest_step(eps, delta, scale) - window_length(eps, scale)


def perturbation_radius(eps: float, delta: float, lipschitz: float, noise: float) -> float:
    """Return `zeta = min(omega / p, eps^2 / (510 q (L + G)))`."""
    scale = gradient_scale(lipschitz, noise)
    inside = window_slack(eps, delta, scale) / inverse_longest_step(eps, delta, scale)
    harmless = eps**2 / (510.0 * step_offset(eps, delta, scale) * (lipschitz + scale))
    return min(inside, harmless)


def step_count(eps: float, delta: float, scale: float, gap: float) -> int:
    """Return `T = ceil(2^16 G^3 Delta Lg / (eps^4 delta) * max(1, G delta / (8 Delta)))`."""
    _positive("gap", gap)
    steps = 2.0**16 * scale**3 * gap * log_factor(eps, scale) / (eps**4 * _positive("delta", delta))
    return math.ceil(steps * max(1.0, scale * delta / (8.0 * gap)))


@dataclass(frozen=True)
class PSINGDSchedule:
    """The numbers one run of PSINGD needs.

    Attributes
    ----------
    averaging : float
        `beta`, weight of the old average.
    inverse_longest_step : float
        `p`.
    offset : float or None
        `q`; the step is `m / (p |m| + q)`. None means `p G` with G measured during the run.
    window : int
        `K`, how many recent gradients the average effectively holds.
    perturbation : float
        `zeta`, radius of the perturbation.
    steps : int
        `T`.
    decay : bool
        Shrink step and perturbation linearly to zero over the run (a practical choice; the
        theorem keeps them constant).
    """

    averaging: float
    inverse_longest_step: float
    offset: float | None
    window: int
    perturbation: float
    steps: int
    decay: bool = False

    @property
    def radius(self) -> float:
        """Radius of the ball that holds a window: `K / p + zeta`."""
        return self.window / self.inverse_longest_step + self.perturbation

    def shrink(self, step: int) -> float:
        """Factor of step and perturbation at `step` (counted from 0)."""
        return 1.0 - step / self.steps if self.decay else 1.0


def psingd_theory(
    eps: float, delta: float, *, lipschitz: float, noise: float, gap: float
) -> PSINGDSchedule:
    """Return the schedule of the theorem: `(eps, delta)` with probability at least 3/5.

    Examples
    --------
    >>> s = psingd_theory(0.1, 0.1, lipschitz=1.0, noise=0.0, gap=1.0)
    >>> s.window, round(s.inverse_longest_step), s.steps > 3e10
    (32479, 324811, True)
    """
    scale = gradient_scale(lipschitz, noise)
    return PSINGDSchedule(
        averaging=averaging(eps, scale),
        inverse_longest_step=inverse_longest_step(eps, delta, scale),
        offset=step_offset(eps, delta, scale),
        window=window_length(eps, scale),
        perturbation=perturbation_radius(eps, delta, lipschitz, noise),
        steps=step_count(eps, delta, scale, gap),
    )


def psingd_practice(radius: float, steps: int, *, averaging: float = 0.9) -> PSINGDSchedule:
    """Return a schedule that works at ordinary budgets; it keeps the window invariant.

    The offset follows the measured scale of the gradients. The window holds 95 % of the average's
    weight, `radius` is the ball of the first window, and step and perturbation decay linearly.

    Parameters
    ----------
    radius : float
        Radius of the first window (about ten times the final `delta` works well).
    steps : int
        Gradient budget.
    averaging : float
        Weight of the old average.

    Examples
    --------
    >>> s = psingd_practice(0.5, 1000)
    >>> s.window, round(s.radius, 12)
    (29, 0.5)
    """
    _positive("radius", radius)
    window, slack = window_of(averaging), 1e-3
    if steps < 1:
        raise InputError(f"steps = {steps} must be at least 1.")
    p = (window + slack) / radius
    return PSINGDSchedule(
        averaging=averaging,
        inverse_longest_step=p,
        offset=None,
        window=window,
        perturbation=slack / p,
        steps=steps,
        decay=True,
    )


@dataclass(frozen=True)
class O2NCSchedule:
    """The numbers one run of O2NC needs.

    Attributes
    ----------
    window : int
        `M`, steps per window.
    step_radius : float
        `D`, the longest step; a window lies in a ball of radius `M D`.
    steps : int
        `N`, gradients in all.
    gradient_scale : float or None
        `G` of the optimal-rate learner; None selects the parameter-free AdaGrad learner.
    decay : bool
        Shrink `D` linearly from window to window.
    restart : bool
        Forget the learner's step size all at once after each window (the theory) or gradually.
    """

    window: int
    step_radius: float
    steps: int
    gradient_scale: float | None = None
    decay: bool = False
    restart: bool = True

    @property
    def windows(self) -> int:
        """Number of complete windows."""
        return max(1, self.steps // self.window)

    @property
    def radius(self) -> float:
        """Radius of the ball that holds a window: `M D`."""
        return self.window * self.step_radius

    def shrink(self, step: int) -> float:
        """Factor of `D` at `step` (counted from 0); constant inside a window."""
        if not self.decay:
            return 1.0
        return max(1.0 - (step // self.window) / self.windows, 1.0 / self.windows)


def o2nc_optimal(eps: float, delta: float, *, scale: float, gap: float) -> O2NCSchedule:
    """Return the optimal-rate schedule: `N = O(Delta G^2 / (delta eps^3))` gradients.

    From `E dist <= Delta / (D N) + 3 G / (2 sqrt M)` (Cutkosky, Mehta and Orabona 2023), each term
    at most `eps / 2`: `M = ceil(9 G^2 / eps^2)`, `D = delta / M`, `N = ceil(2 Delta M / (delta
    eps))`.

    Examples
    --------
    >>> s = o2nc_optimal(0.1, 0.1, scale=1.0, gap=1.0)
    >>> s.window, s.steps
    (900, 180000)
    """
    for name, number in (("eps", eps), ("delta", delta), ("scale", scale), ("gap", gap)):
        _positive(name, number)
    window = _ceil(9.0 * scale**2 / eps**2)
    steps = _ceil(2.0 * gap * window / (delta * eps))
    return O2NCSchedule(
        window=window, step_radius=delta / window, steps=max(steps, window), gradient_scale=scale
    )


def o2nc_parameter_free(delta: float, steps: int) -> O2NCSchedule:
    """Return the schedule that knows no constant of the problem: `M = min(N/2, (delta N)^(2/3))`.

    Examples
    --------
    >>> o2nc_parameter_free(0.1, 8000).window
    87
    """
    _positive("delta", delta)
    if steps < 1:
        raise InputError(f"steps = {steps} must be at least 1.")
    window = max(1, min(_ceil(steps / 2.0), _ceil((delta * steps) ** (2.0 / 3.0))))
    return O2NCSchedule(window=window, step_radius=delta / window, steps=steps)


def o2nc_practice(radius: float, steps: int, *, window: int = 21) -> O2NCSchedule:
    """Return the decaying-radius schedule: short windows, first ball `radius`, last ball near 0.

    Examples
    --------
    >>> s = o2nc_practice(0.3, 2100)
    >>> round(s.radius, 12), s.shrink(0), round(s.shrink(2099), 12)
    (0.3, 1.0, 0.01)
    """
    _positive("radius", radius)
    if steps < 1 or window < 1:
        raise InputError(f"steps = {steps} and window = {window} must be at least 1.")
    window = min(window, steps)
    return O2NCSchedule(
        window=window, step_radius=radius / window, steps=steps, decay=True, restart=False
    )


def _ceil(number: float) -> int:
    # A quotient such as 9 / 0.1**2 must not gain a step from rounding in its last bits.
    return math.ceil(number * (1.0 - 1e-12))


def _positive(name: str, number: float) -> float:
    if not (math.isfinite(number) and number > 0.0):
        raise InputError(f"{name} = {number} must be a positive finite number.")
    return float(number)


def _at_least_zero(name: str, number: float) -> float:
    if not (math.isfinite(number) and number >= 0.0):
        raise InputError(f"{name} = {number} must be a finite number, zero or more.")
    return float(number)


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
        _positive(name, number)
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
        raise InputError(f"averaging = {averaging} must lie in [0, 1); 0.9 is a good start.")
    return max(1, math.ceil(math.log(0.05) / math.log(averaging))) if averaging else 1
