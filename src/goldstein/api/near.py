"""Near stationarity: Goldstein runs at shrinking targets, each tried as a near certificate.

The calculus can name a Goldstein target that is small enough for certain; transporting the
certificate usually succeeds long before, so larger targets are tried first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from goldstein.certificates import GoldsteinCertificate
from goldstein.errors import InputTypeError, NotCertifiableError
from goldstein.oracles import Oracle

if TYPE_CHECKING:
    from goldstein.construction.near.pivot_proof import NearSearch

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
    if not hasattr(oracle, "program"):
        raise InputTypeError(
            f"stationarity='near' needs a function whose kinks are known, got the black box "
            f"{oracle.name}; build it from goldstein.Variable and the atoms of goldstein, or use "
            "goldstein.models."
        )


def prove_near(
    oracle: Any,
    certificate: GoldsteinCertificate,
    eps: float,
    delta: float,
    seed: int,
    deadline: float | None = None,
    max_work: int | None = None,
) -> Any:
    """Return the best verified near certificate found from Goldstein evidence, or None."""
    return attempt_near(
        oracle, certificate, eps, delta, seed, deadline=deadline, max_work=max_work
    ).certificate


def attempt_near(
    oracle: Any,
    certificate: GoldsteinCertificate,
    eps: float,
    delta: float,
    seed: int,
    *,
    deadline: float | None = None,
    max_work: int | None = None,
) -> NearSearch:
    """Search for a near certificate, verify it, and say in a note how that ended.

    Parameters
    ----------
    oracle : Expression
    certificate : GoldsteinCertificate
        Where to look.
    eps, delta : float
        What to prove.
    seed : int
    deadline : float, optional
        When to stop, as `time.perf_counter()` tells the time.
    max_work : int, optional
        Steps after which to stop; see `goldstein.calculus.near_certificate`.
    """
    from goldstein.construction.near.pivot_proof import MAX_WORK, NearSearch, search_near

    try:
        found = search_near(
            oracle, certificate, delta, eps, seed=seed, deadline=deadline,
            max_work=MAX_WORK if max_work is None else max_work,
        )  # fmt: skip
    except NotCertifiableError as why:
        return NearSearch(None, f"not proved: {why}")
    if found.certificate is not None and not found.certificate.verify(oracle).ok:
        return NearSearch(None, "not proved: what was found did not pass its verification")
    return found
