"""`values`: `auto` on differences of values."""

from __future__ import annotations

from goldstein.errors import InputError
from goldstein.oracles import CountedOracle
from goldstein.oracles.differences import Differences
from goldstein.solvers.auto import Auto, AutoState
from goldstein.solvers.base import Request
from goldstein.solvers.metric import FactorMetric

#: Of a certificate, unless the user says otherwise.
CONFIDENCE = 0.95

#: Central differences are used once the bundle member works in balls as small as this,
#: against the size of x.
CLOSE = 1e-3


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
    newton, capacity, memory, line
        As in `auto`.

    Examples
    --------
    >>> import goldstein as gs
    >>> res = gs.minimize(lambda x: abs(x[0]) + x[1] ** 2, [1.0, 1.0], eps=0.1, delta=1e-3,
    ...                   method=gs.Values(confidence=0.99), rng=0)
    >>> res.success, res.ngev, res.certificate.confidence
    (True, 0, 0.99)
    """

    name = "values"
    needs = frozenset({"values only"})

    def __init__(
        self,
        *,
        confidence: float = CONFIDENCE,
        search_eps: float | None = None,
        newton: bool = True,
        capacity: int | None = None,
        memory: int | None = None,
        line: str = "random",
    ) -> None:
        super().__init__(newton=newton, capacity=capacity, memory=memory, line=line)
        self.confidence = check_confidence(confidence)
        if search_eps is not None and not search_eps > 0.0:
            raise InputError(f"search_eps must be a positive number, got {search_eps!r}.")
        self.search_eps = search_eps

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
