"""Which Goldstein accuracy implies the wanted near stationarity, a priori."""

from __future__ import annotations

import math
from typing import NamedTuple

from goldstein.apriori.arrangement import Arrangement
from goldstein.apriori.explain import outer_lipschitz
from goldstein.apriori.modulus import Domain
from goldstein.apriori.rules import positive
from goldstein.calculus.expression import Expression
from goldstein.numerics.directed import product_up, quotient_down, sum_up


class GoldsteinTarget(NamedTuple):
    """Accuracy and radius of Goldstein stationarity.

    Attributes
    ----------
    eps, delta : float
    """

    eps: float
    delta: float


def goldstein_target(
    fun: Expression, *, eps: float, delta: float, domain: Domain = None
) -> GoldsteinTarget:
    """Return `(eps', delta')` such that Goldstein stationarity at it implies `(eps, delta)`-near.

    With pivots within `factor * reach` and modulus kappa,
    `delta' = min(delta / factor, (eps - eps') / (kappa (1 + factor)))` and `eps' = eps / 2`;
    where the pieces are linear (kappa = 0) nothing is lost and `eps' = eps`.

    Parameters
    ----------
    fun : Expression
        Scalar, with kinks on independent affine rows.
    eps, delta : float
        The wanted near stationarity.
    domain : Ball, (centre, radius), sequence of Block, or None
        Where the modulus must hold; None means everywhere.

    Raises
    ------
    MissingAssumption
        When no a-priori constant exists; transported certificates need none.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, ramp, sum, sum_squares
    >>> Z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    >>> w = Variable(3)
    >>> target = goldstein_target(0.5 * sum_squares(w) + sum(ramp(Z @ w)), eps=0.1, delta=0.1)
    >>> target.eps, round(target.delta, 7)
    (0.05, 0.0150028)
    """
    eps, delta = positive(eps, "eps"), positive(delta, "delta")
    triple = outer_lipschitz(fun, pivot_radius=delta, domain=domain)
    if triple.modulus == 0.0:
        return GoldsteinTarget(eps, min(triple.reach, delta))
    arrangement = Arrangement(fun)
    spent = product_up(triple.modulus, sum_up([1.0, arrangement.factor]))
    radius = min(triple.reach, quotient_down(eps / 2.0, spent))
    if math.isinf(triple.reach):  # smooth: the near point may be any point of the ball
        radius = min(radius, delta)
    return GoldsteinTarget(eps / 2.0, radius)
