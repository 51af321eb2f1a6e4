"""SciPy's searches by values, in few variables: a simplex that closes in, and quadratic models.

Where differences of values cross kinks because noise keeps them long, ranks of values still lead
down. In few variables a simplex needs far fewer of them than a population does. Models of values
far apart see through noise that differences of near ones drown in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from scipy import optimize

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import OutOfCalls
from goldstein.numerics.streams import stream

#: Values for each variable, and one more, at most: of a simplex, and of models.
MOST, MOST_OF_MODELS = 30, 200

#: With noise, how far models reach at first, against the size of x, and at last, against that:
#: then they begin again.
REACH, LEAST = 0.1, 0.01


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
    # Infinities of a function that has none to offer are compared, and differ by NaN.
    with suppress(OutOfCalls), np.errstate(invalid="ignore"):
        optimize.minimize(ask, x, method="Nelder-Mead", options=options)
    return best


def follow_models(
    value: Callable[[Vector], float], x: Vector, noise: float, most: int, late: Callable[[], bool]
) -> Vector:
    """Return where quadratic models of at most so many values lead from x: SciPy's COBYQA.

    Examples
    --------
    >>> x = follow_models(lambda z: float(z @ z), np.ones(2), 0.0, 100, lambda: False)
    >>> bool(np.abs(x).max() < 1e-4)
    True
    """

    def stop(_: Vector) -> None:
        if late():
            raise StopIteration

    left, radius = min(most, MOST_OF_MODELS * (x.size + 1)), REACH * max(1.0, np.abs(x).max())
    sizes = {"initial_tr_radius": radius, "final_tr_radius": LEAST * radius} if noise else {}
    while left > 0 and not late():
        options = {**sizes, "maxfev": left}
        found = optimize.minimize(value, x, method="COBYQA", callback=stop, options=options)
        x, left = found.x, left - found.nfev if noise else 0
    return x
