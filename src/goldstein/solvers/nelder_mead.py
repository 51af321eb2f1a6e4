"""A simplex that closes in: SciPy's Nelder-Mead, for a few noisy values in few variables.

Where differences of values cross kinks because noise keeps them long, ranks of values still lead
down. In few variables a simplex needs far fewer of them than a population does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import optimize

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import OutOfCalls
from goldstein.numerics.streams import stream

#: Values for each variable, and one more, at most.
MOST = 30


def close_in(
    values_at: Callable[[Matrix], Vector],
    inside: Callable[[Matrix], Matrix],
    x: Vector,
    size: float,
    noise: float,
    seed: int,
    deadline: Callable[[], bool],
) -> Vector:
    """Return the best point of a simplex from x: where it sees noise only, or out of calls or time.

    Parameters
    ----------
    values_at, inside, x, noise, seed, deadline
        As in `evolution.evolve`.
    size : float
        Length of the edges from x, which point along a random basis.

    Examples
    --------
    >>> def valley(p): return np.abs(p[:, 0] - p[:, 1]) + (p**2).sum(axis=1)
    >>> x = close_in(valley, lambda p: p, np.full(2, 0.1), 0.05, 1e-8, 0, lambda: False)
    >>> bool(np.abs(x).max() < 1e-3)
    True
    """
    d = x.size
    basis = np.linalg.qr(stream(seed, 0, "simplex").standard_normal((d, d)))[0]
    best, lowest = x, math.inf

    def ask(place: Vector) -> float:
        nonlocal best, lowest
        if deadline():
            raise OutOfCalls("value")
        point = inside(place[None])[0]
        value = float(values_at(point[None])[0])
        if value < lowest:
            best, lowest = point, value
        return math.inf if math.isnan(value) else value

    options = {
        "initial_simplex": np.vstack([x, x + size * basis]),
        "adaptive": d > 2,
        "maxfev": MOST * (d + 1),
        "fatol": noise,
        "xatol": math.inf,
    }
    try:
        # Infinities of a function that has none to offer are compared, and differ by NaN.
        with np.errstate(invalid="ignore"):
            optimize.minimize(ask, x, method="Nelder-Mead", options=options)
    except OutOfCalls:
        pass
    return best
