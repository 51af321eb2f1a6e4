"""Gradients from differences of values, for a search: they prove nothing.

Differences along coordinates are no gradients, not even at random points of a small box: along the
three axes, max(-x3, min(x3 - 3 x1, x3 - 2 x2)) has the differences 0 around 0, where no gradient
is. The basis is therefore turned at random each time, and claims are left to
`goldstein.certificates.values`, which needs no gradients.
"""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.rounding import UNIT
from goldstein.numerics.streams import stream
from goldstein.oracles.base import Oracle
from goldstein.oracles.counted import CountedOracle, Map


def with_room(point: Vector, lower: Vector, upper: Vector, room: Vector) -> Vector:
    """Return the nearest point from which one can go this far along all coordinates at once.

    There is room for rounding, too, where there is room at all.

    Examples
    --------
    >>> with_room(np.array([0.0]), np.array([0.0]), np.array([1.0]), np.array([0.1])).round(6)
    array([0.1])
    """
    spare = np.where(room > 0, room * (1 + 1e-9) + 2.0**-50 * np.abs(point), 0.0)
    return np.minimum(np.maximum(point, lower + spare), np.maximum(upper - spare, lower))


#: Steps without noise, relative to max(1, |x_i|): forward, and central.
FORWARD, CENTRAL = 2.0**-26, 1e-7

#: The noise is looked for with steps of this size.
LOOK = 1e-7

#: With noise a step is so long that this part of a gradient, times the fourth root of the noise, is
#: noise; and at most this many times its square root: a longer one, which would be better for
#: smooth functions, crosses kinks.
BLURRED, SHORT = 0.1, 0.3

#: The same where a search knows in which directions f changes alike; no step is longer than this
#: then, against the size of x.
BLURRED_IN_METRIC, LONG = 0.3, 0.1

#: A step is at most this part of the room between two bounds.
ROOM = 0.125

#: Values at the first point, the start, and at so many asked for lately.
REMEMBERED = 64

#: Below this part of the values noise is rounding.
NOISELESS = 2.0**-44

#: Points on a line that show noise, and lines: a kink may lie across one of them. So many of the
#: first points show already that values are smooth up to rounding, where they are.
ON_A_LINE, NOISE_LINES, FIRST_FEW = 7, 2, 4


class Stencil:
    """Where differences around a point are taken: inside the bounds, in a basis turned at random.

    The last point is remembered: whoever asks about it again, for another function, takes the same
    points.

    Parameters
    ----------
    lower, upper : ndarray
        Bounds, or infinities; no point is outside them.
    seed : int
    central : bool
        Central differences from the beginning; otherwise forward ones until `refine`.
    """

    def __init__(self, lower: Vector, upper: Vector, seed: int, *, central: bool = False) -> None:
        self.lower, self.upper, self.seed, self.central = lower, upper, seed, central
        #: Standard deviation of the values, where it is more than rounding.
        self.noise = 0.0
        #: How long gradients are, about: 0 where none has been seen.
        self.steep = 0.0
        #: A factor J of the metric J J' of a search: directions in which f changes alike. Steps of
        #: one length would see nothing but noise along a valley, or cross the kinks beside it.
        self._factor: Matrix | None = None
        self._free = not np.isfinite(np.concatenate([lower, upper])).any()
        self._steep_in_metric = 0.0
        self._asked = 0
        self._last: tuple[bytes, Vector, Matrix] = (b"", lower, np.zeros((0, lower.size)))

    def at(self, y: Vector) -> tuple[Vector, Matrix]:
        """Return the point nearest to y that has room, and the basis of steps there."""
        factor = self._factor
        step = self.step(y)
        key = y.tobytes() + (step if factor is None else factor).tobytes()
        if self._last[0] != key:
            self._asked += 1
            basis = self._basis(step, step > 0.0) if factor is None else self._scaled(y, factor)
            centre = with_room(y, self.lower, self.upper, step) if factor is None else y
            self._last = key, centre, basis
        return self._last[1:]

    def fit(self, factor: Matrix | None, slope: Vector | None) -> None:
        """Take the metric of a search over, with the gradient where it is.

        Without noise steps are short anyway, and between bounds they go along the coordinates.
        """
        self._factor = None
        if factor is None or not (self.noise and self._free and np.isfinite(factor).all()):
            return
        self._factor = factor.copy()
        if slope is not None:
            self._steep_in_metric = float(np.linalg.norm(slope @ factor))

    def saw(self, slope: Vector) -> None:
        """Take note of how long a gradient is."""
        length = float(np.linalg.norm(slope))
        self.steep = 0.8 * self.steep + 0.2 * length if self.steep else length
        if self._factor is not None:
            length = float(np.linalg.norm(slope @ self._factor))
            before = self._steep_in_metric
            self._steep_in_metric = 0.5 * (before + length) if before else length

    def _scaled(self, y: Vector, factor: Matrix) -> Matrix:
        """Return a random basis of directions in which f changes alike."""
        d, size = y.size, max(1.0, float(np.abs(y).max()))
        turned = np.linalg.qr(stream(self.seed, self._asked, "basis").standard_normal((d, d)))[0]
        clear = math.sqrt(2.0 * d) * self.noise**0.75 / BLURRED_IN_METRIC
        # Axis by axis: to shorten the steps themselves would bury in noise what is steep.
        axes, lengths, _ = np.linalg.svd(clear / (self._steep_in_metric or 1.0) * factor)
        return ((axes * np.clip(lengths, FORWARD * size, LONG * size)) @ turned).T

    def step(self, y: Vector) -> Vector:
        """Return the steps at y along each coordinate."""
        relative = CENTRAL if self.central else FORWARD
        if self.noise:
            clear = math.sqrt(2.0 * y.size) * self.noise**0.75 / (BLURRED * (self.steep or 1.0))
            relative = max(relative, min(clear, SHORT * math.sqrt(min(self.noise, 1.0))))
        return self.limited(relative * np.maximum(1.0, np.abs(y)))

    def limited(self, step: Vector) -> Vector:
        """Return steps that leave room between the bounds."""
        return np.minimum(step, ROOM * (self.upper - self.lower))

    def _basis(self, step: Vector, free: NDArray[np.bool_]) -> Matrix:
        """Return a random basis of the coordinates that can move, as long as their steps."""
        count = int(free.sum())
        rng = stream(self.seed, self._asked, "basis")
        turned = np.linalg.qr(rng.standard_normal((count, count)))[0]
        basis = np.zeros((count, step.size))
        basis[:, free] = turned * step[free]
        return basis


def slopes_along(basis: Matrix, rises: Matrix | Vector) -> Matrix | Vector:
    """Return the gradients of functions that rise so much along the basis: one, or one per column.

    Coordinates that no direction leads along have slope 0.
    """
    free = basis.any(axis=0)
    slopes = np.zeros((*rises.shape[1:], basis.shape[1]))
    if free.any():
        slopes[..., free] = np.linalg.solve(basis[:, free], rises).T
    return slopes


class Differences(Oracle):
    """The values of an oracle, and differences of them in place of gradients.

    Parameters
    ----------
    values : CountedOracle
        All that is asked counts here.
    stencil : Stencil
    workers : map-like
    exact : bool
        Gradients are asked for after all: it is for other functions that there are only values.
    """

    def __init__(
        self, values: CountedOracle, stencil: Stencil, workers: Map = map, *, exact: bool = False
    ) -> None:
        self.values, self.stencil, self.workers, self.exact = values, stencil, workers, exact
        self.dim, self._name = stencil.lower.size, values.name
        self._known: dict[bytes, float] = {}

    def refine(self) -> None:
        """Use central differences from now on."""
        self.stencil.central = True

    def measure_noise(self, x: Vector) -> None:
        """Find out how noisy the values are around x."""
        stencil = self.stencil
        rng = stream(stencil.seed, 0, "noise")
        step = stencil.limited(LOOK * np.maximum(1.0, np.abs(x)))
        inside = with_room(x, stencil.lower, stencil.upper, 8.0 * step)
        known = self.value(inside)
        stencil.noise = noise_level(self.values, inside, step, rng, self.workers, known)

    def blur(self, x: Vector) -> float:
        """Return how far a value at x may be from what is meant: noise, or rounding."""
        return max(self.stencil.noise, 4.0 * UNIT * abs(self.value(x)))

    def value(self, x: Vector) -> float:
        key = x.tobytes()
        if key not in self._known:
            self._remember(key, self.values.trial_value(x))
        return self._known[key]

    def gradient(self, y: Vector) -> Vector:
        if self.exact:
            return self.values.gradient(y)
        place, basis = self.stencil.at(y)
        count, ahead = len(basis), place + basis
        if self.stencil.central:
            behind = place - basis
            answers = self.values.values_at(np.vstack([ahead, behind]), self.workers)
            rises, basis = answers[:count] - answers[count:], ahead - behind
        else:
            key = place.tobytes()
            points = ahead if key in self._known else np.vstack([ahead, place])
            answers = self.values.values_at(points, self.workers)
            if len(points) > count:
                self._remember(key, float(answers[-1]))
            rises, basis = answers[:count] - self._known[key], ahead - place
        slope = slopes_along(basis, rises)
        self.stencil.saw(slope)
        return slope

    def _remember(self, key: bytes, value: float) -> None:
        self._known[key] = value
        if len(self._known) > REMEMBERED:
            del self._known[next(itertools.islice(self._known, 1, None))]


def noise_level(
    oracle: CountedOracle,
    x: Vector,
    step: Vector,
    rng: np.random.Generator,
    workers: Map = map,
    known: float | None = None,
) -> float:
    """Return the standard deviation of the noise of f around x; 0 if it is but rounding.

    After More and Wild, Estimating computational noise (2011): along a line, differences of order k
    of a smooth function fall with k, those of noise grow by a known factor.

    Parameters
    ----------
    oracle : CountedOracle
    x : ndarray
        The points asked are within `ON_A_LINE * step` of it.
    step : ndarray
        Along each coordinate; 0 where x must not move.
    rng, workers
    known : float, optional
        The value at x, which is not asked for then.

    Examples
    --------
    >>> from goldstein.oracles.function import ValueOracle
    >>> draw = np.random.default_rng(0)
    >>> noisy = CountedOracle(ValueOracle(lambda x: x @ x + 1e-3 * draw.standard_normal()))
    >>> level = noise_level(noisy, np.ones(3), np.full(3, 1e-7), np.random.default_rng(1))
    >>> 2e-4 < level < 5e-3
    True
    """
    start = oracle.values_at(x[None], workers)[0] if known is None else known
    levels = []
    for _ in range(NOISE_LINES):
        direction = step * rng.uniform(-1.0, 1.0, x.size)
        points = x + np.arange(ON_A_LINE)[:, None] * direction
        values = np.append(start, oracle.values_at(points[1:FIRST_FEW], workers))
        if not np.isfinite(values).all():
            continue
        rounding = NOISELESS * float(np.abs(values).max())
        if _level_at(np.diff(values, FIRST_FEW - 1), FIRST_FEW - 1) <= rounding:
            return 0.0
        values = np.append(values, oracle.values_at(points[FIRST_FEW:], workers))
        if not np.isfinite(values).all():
            continue
        level = _level(values)
        if level <= rounding:
            return 0.0
        levels.append(level)
    return min(levels, default=0.0)


def _level_at(differences: Vector, order: int) -> float:
    """Return the standard deviation of noise that has differences of an order of this size."""
    factor = math.factorial(order) ** 2 / math.factorial(2 * order)
    return math.sqrt(factor * float(np.mean(differences**2)))


def _level(values: Vector) -> float:
    """Return the smallest level that two orders of differences agree on; 0 where none do."""
    table, found = values, []
    for order in range(1, 6):
        table = np.diff(table)
        level = _level_at(table, order)
        changes = bool((table > 0).any() and (table < 0).any())
        found.append(level if changes else math.inf)
    pairs = [max(a, b) for a, b in itertools.pairwise(found) if max(a, b) < 4.0 * min(a, b)]
    return min(filter(math.isfinite, pairs), default=0.0)
