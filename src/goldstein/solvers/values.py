"""`values`: `auto` on differences of values.

`zeroth-order`: O2NC fed with two values per step (Kornowski and Shamir 2024).

For u uniform on the sphere, V = d (f(y + r u) - f(y - r u)) / (2 r) u is unbiased for the gradient
of the mean of f over the ball of radius r around y, an element of the Goldstein set of that ball.
Its second moment is at most d^2 / (d - 1) L^2 in d >= 2 variables, and at most L^2 in one. Proof:
g(u) = f(y + r u) - f(y - r u) is odd, so its mean is 0, and it is Lipschitz on the sphere with
constant 2 r L. The first eigenvalue of the Laplacian on the sphere is d - 1, hence (Poincare)
E g^2 <= E |grad g|^2 / (d - 1) <= 4 r^2 L^2 / (d - 1), and |V|^2 = d^2 g^2 / (4 r^2). For linear f
it is d L^2, so nearly nothing is lost. (Shamir 2017 has O(d L^2), by concentration on the sphere.)
O2NC with G^2 of this size needs O(d Delta L^2 / (delta eps^3)) values, which is the best possible
dependence on d.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.oracles.base import Derived
from goldstein.oracles.counted import CountedOracle
from goldstein.oracles.differences import Differences
from goldstein.solvers.auto import Auto, AutoState
from goldstein.solvers.base import Request
from goldstein.solvers.quasi_newton import FactorMetric
from goldstein.solvers.stochastic import O2NC

#: Of a certificate, unless the user says otherwise.
CONFIDENCE = 0.95

#: Central differences are used once the bundle member works in balls as small as this,
#: against the size of x.
CLOSE = 1e-3


@dataclass(kw_only=True, eq=False)
class Values(Auto):
    """For functions of which only values can be had.

    Forward differences far away, central ones near the end, steps that fit the noise of the values.
    The certificate is statistical: see `ValuesCertificate`.

    Parameters
    ----------
    confidence : float
        Of the certificate.
    search_eps : float, optional
        What the search, which believes in differences, tries to reach; default eps / 2. A
        statistical claim of a small eps takes many values, a search does not: ask for a point as
        good as `search_eps` and for a claim of `eps`.
    newton, capacity, memory, line, max_memory, sweep, elements
        As in `auto`.

    Examples
    --------
    >>> import goldstein as gs
    >>> res = gs.minimize(lambda x: abs(x[0]) + x[1] ** 2, [1.0, 1.0], eps=0.1, delta=1e-3,
    ...                   method=gs.Values(confidence=0.99), rng=0)
    >>> res.success, res.ngev, res.certificate.confidence
    (True, 0, 0.99)
    """

    confidence: float = CONFIDENCE
    search_eps: float | None = None

    name = "values"
    needs = frozenset({"values only"})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.confidence = check_confidence(self.confidence)
        if self.search_eps is not None and not self.search_eps > 0.0:
            raise InputError(f"search_eps must be a positive number, got {self.search_eps!r}.")

    def step(self, oracle: CountedOracle, state: AutoState, request: Request) -> None:
        newton, inner = state.newton, oracle.inner
        if isinstance(inner, Differences):
            newton.steady = not inner.stencil.noise
            if isinstance(newton.metric, FactorMetric):
                inner.stencil.fit(newton.metric.factor, newton.g if newton.known else None)
            if state.working <= max(CLOSE, 10.0 * state.delta) or state.rejected is not None:
                inner.refine()
        super().step(oracle, state, request)


def check_confidence(confidence: float) -> float:
    """Return a probability as it must be."""
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence must lie strictly between 0 and 1, got {confidence!r}.")
    return float(confidence)


#: Of the radius delta, the part over which f is averaged; the windows have the rest.
AVERAGED = 0.5


def second_moment(dim: int, lipschitz: float) -> float:
    """Return a bound of the root mean square length of a two-point estimate.

    Examples
    --------
    >>> second_moment(1, 1.0), second_moment(2, 1.0), round(second_moment(50, 1.0), 3)
    (1.0, 2.0, 7.143)
    """
    return lipschitz if dim == 1 else dim / math.sqrt(dim - 1) * lipschitz


class TwoPoints(Derived):
    """Values, and two-point estimates along random directions in place of noisy gradients."""

    has_gradient = False

    def __init__(self, values: CountedOracle, radius: float) -> None:
        super().__init__(values)
        self.values, self.radius = values, radius

    def value(self, x: Vector) -> float:
        return self.values.value(x)

    def gradient(self, y: Vector) -> Vector:
        return self.values.gradient(y)

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        u = rng.standard_normal(x.size)
        u /= math.sqrt(float(u @ u))
        high, low = self.values.values_at(x + self.radius * np.array([u, -u]))
        estimate: Vector = x.size * (high - low) / (2.0 * self.radius) * u
        return estimate


@dataclass(kw_only=True, eq=False)
class ZerothOrder(O2NC):
    """The two-point method with a guarantee, as a reference; `values` is the one to use.

    Parameters
    ----------
    confidence : float
        Of the statistical certificate that is made at the end.
    schedule, steps, radius, window, gap
        As in `O2NC`; with schedule="optimal" the method has the rate of the theorem, and needs
        `lipschitz` (as an argument of `minimize`, or here) and `gap`.

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> res = gs.minimize(lambda x: np.abs(x).sum(), [1.0, -1.0], eps=0.5, delta=0.2,
    ...                   method="zeroth-order", max_calls=20_000, rng=0)
    >>> bool(np.abs(res.x).max() < 0.2), res.certificate.label
    (True, 'estimated')
    """

    confidence: float = CONFIDENCE
    #: That of differences is in their second moment.
    noise: float = field(default=0.0, init=False)

    name = "zeroth-order"
    needs = frozenset({"values only", "no limits"})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.confidence = check_confidence(self.confidence)

    def scaled(self, dim: int, lipschitz: float | None) -> O2NC:
        """Return O2NC with the size that two-point estimates have in this many variables."""
        bound = self.lipschitz if self.lipschitz is not None else lipschitz
        if self.schedule != "optimal" or bound is None:
            return self
        return O2NC(schedule="optimal", gap=self.gap, lipschitz=second_moment(dim, bound))
