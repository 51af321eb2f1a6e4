"""CMA-ES: a search by ranks, for values so noisy that differences of them lead nowhere any more.

After Hansen, The CMA Evolution Strategy: A Tutorial (2016, arXiv 1604.00772), with its default
constants: points are drawn from a normal distribution, whose mean moves to the better half of them,
whose covariance learns from the steps to better and to worse ones, and whose size grows while they
point the same way.

SciPy's searches by values, in few variables: a simplex that closes in, and quadratic models.

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

#: Generations without a lower mean of values, above what noise explains, before it ends: a few, and
#: some for each variable.
PATIENCE, PATIENCE_PER_VARIABLE = 10, 3

#: A larger population begins so much wider than the one before it has ended.
WIDER = 2.0


class Population:
    """The normal distribution, and how it changes.

    Parameters
    ----------
    mean : ndarray
    spread : float
        Standard deviation along each coordinate.
    size : int, optional
        Points of a generation.
    """

    def __init__(self, mean: Vector, spread: float, size: int | None = None) -> None:
        d = mean.size
        self.mean, self.spread = mean.copy(), spread
        self.size = size or 4 + int(3 * math.log(d))
        best = self.size // 2
        weights = math.log((self.size + 1) / 2) - np.log(np.arange(1, self.size + 1))
        self._weights = weights[:best] / weights[:best].sum()
        mass, worse = (float(w.sum() ** 2 / (w**2).sum()) for w in (weights[:best], weights[best:]))
        self._rates = (
            (mass + 2) / (d + mass + 5),
            (4 + mass / d) / (d + 4 + 2 * mass / d),
        )
        self._one = 2 / ((d + 1.3) ** 2 + mass)
        self._many = min(1 - self._one, 2 * (mass - 2 + 1 / mass) / ((d + 2) ** 2 + mass))
        # The worse half has negative weights, as long as the covariance stays positive definite.
        less = min(
            1 + self._one / self._many,
            1 + 2 * worse / (mass + 2),
            (1 - self._one - self._many) / (d * self._many),
        )
        of_worse = less * weights[best:] / np.abs(weights[best:]).sum()
        self._ranks = np.concatenate([self._weights, of_worse])
        self._damping = 1 + self._rates[0] + 2 * max(0.0, math.sqrt((mass - 1) / (d + 1)) - 1)
        self._mass, self._expected = mass, math.sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d))
        self._paths = np.zeros((2, d))
        self._covariance = np.eye(d)
        self._generation = 0
        self._axes, self._lengths = np.eye(d), np.ones(d)

    def larger(self) -> Population:
        """Return one of twice as many points with what was learned: noise counts for less in it."""
        grown = Population(self.mean, WIDER * self.spread, 2 * self.size)
        grown._covariance, grown._axes, grown._lengths = self._covariance, self._axes, self._lengths
        return grown

    def draw(self, rng: np.random.Generator) -> Matrix:
        """Return points, one per row."""
        normal = rng.standard_normal((self.size, self.mean.size))
        return self.mean + self.spread * (normal * self._lengths) @ self._axes.T

    def learn(self, points: Matrix, values: Vector) -> None:
        """Take the ranks of the values into account."""
        d = self.mean.size
        self._generation += 1
        steps = (points[np.argsort(values, kind="stable")] - self.mean) / self.spread
        step = self._weights @ steps[: self._weights.size]
        self.mean = self.mean + self.spread * step
        whitened = self._axes @ ((self._axes.T @ step) / self._lengths)
        sizes = (((steps @ self._axes) / self._lengths) ** 2).sum(axis=1)
        ranks = self._ranks * np.where(self._ranks < 0, d / np.maximum(sizes, 1e-30), 1.0)
        c_s, c_c = self._rates
        self._paths[0] *= 1 - c_s
        self._paths[0] += math.sqrt(c_s * (2 - c_s) * self._mass) * whitened
        length = float(np.linalg.norm(self._paths[0]))
        grown = math.sqrt(1 - (1 - c_s) ** (2 * self._generation))
        going = length / grown < (1.4 + 2 / (d + 1)) * self._expected
        self._paths[1] *= 1 - c_c
        if going:
            self._paths[1] += math.sqrt(c_c * (2 - c_c) * self._mass) * step
        kept = 1 - self._one - self._many * float(self._ranks.sum())
        kept += 0 if going else self._one * c_c * (2 - c_c)
        self._covariance = (
            kept * self._covariance
            + self._one * np.outer(self._paths[1], self._paths[1])
            + self._many * (steps.T * ranks) @ steps
        )
        self.spread *= math.exp(min(1.0, (length / self._expected - 1) * c_s / self._damping))
        squares, self._axes = np.linalg.eigh(0.5 * (self._covariance + self._covariance.T))
        self._lengths = np.sqrt(np.maximum(squares, 1e-20 * float(squares.max())))


def evolve(
    values_at: Callable[[Matrix], Vector],
    inside: Callable[[Matrix], Matrix],
    x: Vector,
    spread: float,
    noise: float,
    seed: int,
    deadline: Callable[[], bool],
    doublings: int = 0,
) -> Vector:
    """Return where a population from x ends: out of calls or time, or where only noise is left.

    Parameters
    ----------
    values_at : callable
        Values at points, one per row.
    inside : callable
        Puts points inside the bounds.
    x : ndarray
    spread : float
        About as far as x may be from where it should be.
    noise : float
        Standard deviation of the values.
    seed : int
    deadline : callable
        Whether time is up.
    doublings : int
        How often it goes on with twice as many points where only noise is left.

    Examples
    --------
    >>> def valley(p): return np.abs(p[:, 0] - p[:, 1]) + (p**2).sum(axis=1)
    >>> x = evolve(valley, lambda p: p, np.ones(2), 0.5, 1e-6, 0, lambda: False)
    >>> bool(np.abs(x).max() < 1e-3)
    True
    """
    population = Population(x, spread)
    lowest, idle, generation = math.inf, 0, 0
    while not deadline():
        if idle == PATIENCE + PATIENCE_PER_VARIABLE * x.size:
            if not doublings:
                break
            population, lowest, idle, doublings = population.larger(), math.inf, 0, doublings - 1
        points = inside(population.draw(stream(seed, generation, "evolution")))
        try:
            values = values_at(points)
        except OutOfCalls:
            break
        population.learn(points, np.where(np.isnan(values), np.inf, values))
        generation += 1
        level = float(np.median(values))
        idle = 0 if level < lowest - noise else idle + 1
        lowest = min(lowest, level)
    mean: Vector = inside(population.mean[None])[0]
    return mean


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
) -> tuple[Vector, float]:
    """Return where quadratic models of at most so many values lead from x, and f there.

    The search is SciPy's COBYQA. Where no value is left, x itself is returned, and infinity.

    Examples
    --------
    >>> x, _ = follow_models(lambda z: float(z @ z), np.ones(2), 0.0, 100, lambda: False)
    >>> bool(np.abs(x).max() < 1e-4)
    True
    """

    def stop(_: Vector) -> None:
        if late():
            raise StopIteration

    left, radius = min(most, MOST_OF_MODELS * (x.size + 1)), REACH * max(1.0, np.abs(x).max())
    sizes = {"initial_tr_radius": radius, "final_tr_radius": LEAST * radius} if noise else {}
    fun = np.inf
    while left > 0 and not late():
        options = {**sizes, "maxfev": left}
        found = optimize.minimize(value, x, method="COBYQA", callback=stop, options=options)
        x, fun, left = found.x, found.fun, left - found.nfev if noise else 0
    return x, float(fun)
