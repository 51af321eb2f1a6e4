"""Near stationarity: Goldstein runs at shrinking targets, each tried as a near certificate.

The calculus can name a Goldstein target that is small enough for certain; transporting the
certificate usually succeeds long before, so larger targets are tried first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goldstein.certificates import GoldsteinCertificate
from goldstein.errors import InputTypeError, NotCertifiableError
from goldstein.oracles import Oracle

#: First Goldstein target relative to the near one, and how the next follow from it.
_FIRST_EPS, _FIRST_DELTA = 0.5, 0.25
_NEXT_EPS, _NEXT_DELTA = 0.5, 0.1


def near_targets(eps: float, delta: float, smallest: float) -> Iterator[tuple[float, float]]:
    """Yield Goldstein targets (eps', delta'), down to the smallest radius float64 can sample.

    Examples
    --------
    >>> next(near_targets(1e-3, 1e-2, 1e-9))
    (0.0005, 0.0025)
    """
    e, d = _FIRST_EPS * eps, max(_FIRST_DELTA * delta, smallest)
    while True:
        yield e, d
        if d <= smallest:
            return
        e, d = _NEXT_EPS * e, max(_NEXT_DELTA * d, smallest)


def require_structure(oracle: Oracle) -> None:
    """Refuse a black box: its kinks are unknown, so no pivot can be verified."""
    if not hasattr(oracle, "kink_form"):
        raise InputTypeError(
            f"stationarity='near' needs a function whose kinks are known, got the black box "
            f"{oracle.name}; build it from goldstein.Variable and the atoms of goldstein, or use "
            "goldstein.models."
        )


def prove_near(
    oracle: Any, certificate: GoldsteinCertificate, eps: float, delta: float, seed: int
) -> Any:
    """Return the best verified near certificate found from Goldstein evidence, or None."""
    from goldstein.calculus.near import near_certificate

    try:
        near = near_certificate(oracle, certificate, delta, eps, seed=seed)
    except NotCertifiableError:
        return None
    return near if near is not None and near.verify(oracle).ok else None
