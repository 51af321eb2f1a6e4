"""From Goldstein to near: what a triple makes of a Goldstein stationary point."""

from __future__ import annotations

from goldstein.apriori.outer_lipschitz import OuterLipschitz
from goldstein.apriori.rules.checks import nonnegative
from goldstein.errors import InputError
from goldstein.numerics.directed import product_up, sum_up


def near_from_goldstein(
    eps: float, triple: OuterLipschitz, radius: float | None = None
) -> tuple[float, float]:
    """Return `(eps + kappa (delta + r), delta)`: near stationarity from Goldstein stationarity.

    A point that is `(eps, r)`-Goldstein stationary with `r <= reach` is near stationary with the
    returned pair.

    Proof: match each `g_j` in dF(y_j) by `u_j` in dF(y) with `|u_j-g_j| <= kappa |y_j-y|`, where
    `|y_j-y| <= r + delta`; `sum alpha_j u_j` lies in dF(y), a convex set.

    The paper's theorem "NAS by GAS", correct; it uses `r = reach`, the default.

    Parameters
    ----------
    eps : float
        Goldstein accuracy.
    triple : OuterLipschitz
        Triple of the function.
    radius : float, optional
        Goldstein radius r, at most the reach; needed when the reach is infinite.

    Returns
    -------
    tuple of float
        `(eps, delta)` of near stationarity, rounded up.

    Examples
    --------
    >>> near_from_goldstein(0.25, OuterLipschitz(0.5, 0.25, 1.0))
    (1.0, 0.5)
    """
    radius = triple.reach if radius is None else nonnegative(radius, "radius")
    if radius > triple.reach:
        raise InputError(
            f"radius is {radius}, but the triple reaches only {triple.reach}; certify Goldstein "
            "stationarity at a radius of at most the reach."
        )
    moved = product_up(triple.modulus, sum_up([triple.pivot_radius, radius]))
    return sum_up([nonnegative(eps, "eps"), moved]), triple.pivot_radius
