"""Self-checks a user can run on a function before trusting a result.

Whoever states a claim compares values with gradients as whoever verifies it: more strictly.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from goldstein import errors
from goldstein.checker.arrays import Vector
from goldstein.checker.blackbox.differences import COARSEST, HEAVY, RESOLVED, Differences
from goldstein.checker.constrained.limits import Box, as_box
from goldstein.numerics.streams import seed_from, stream
from goldstein.oracles.base import Oracle
from goldstein.oracles.counted import CountedOracle
from goldstein.oracles.function import as_oracle
from goldstein.result import InNotebooks

#: Steps of the differences, relative to max(1, |x_i|).
_STEPS = (6e-6, 1e-7, 1e-4)


@dataclass(frozen=True)
class GradientCheck(InNotebooks):
    """What `check_gradient` found.

    Attributes
    ----------
    ok : bool
    wrong_coordinates : list of int
        Coordinates in which the gradient disagrees with differences of values.
    worst_error : float
        Largest disagreement relative to the size of the gradient.
    message : str
    """

    ok: bool
    wrong_coordinates: list[int]
    worst_error: float
    message: str

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return f"<GradientCheck {'ok' if self.ok else 'FAILED'}: {self.message}>"


def check_gradient(
    fun: Oracle | Callable[..., Any],
    jac: Callable[..., Any] | bool | None = None,
    x: ArrayLike | None = None,
    *,
    args: Sequence[Any] = (),
    points: int = 5,
    radius: float = 1e-2,
    tolerance: float = 1e-4,
    max_coordinates: int = 100,
    rng: int | np.random.Generator | None = 0,
) -> GradientCheck:
    """Compare the gradient with differences of values at random points near x.

    Parameters
    ----------
    fun, jac, args
        As in `minimize`.
    x : array_like
        Centre; the points are drawn around it, because x itself may sit on a kink.
    points : int
        Number of random points.
    radius : float
        How far from x, relative to max(1, |x_i|).
    tolerance : float
        Allowed disagreement relative to the largest entry of the gradient, beyond the rounding of
        the values.
    max_coordinates : int
        Beyond this dimension a random subset of the coordinates is checked.

    Returns
    -------
    GradientCheck

    Notes
    -----
    A point next to a kink fails for honest reasons; a coordinate is called wrong only if it
    disagrees at more than half of the points.

    Examples
    --------
    >>> import numpy as np
    >>> check_gradient(lambda x: np.abs(x).sum(), np.sign, [1.0, 2.0]).ok
    True
    >>> check_gradient(lambda x: np.abs(x).sum(), lambda x: np.array([1.0, 5.0]), [1.0, 2.0])
    <GradientCheck FAILED: coordinate 1: gradient 5, differences of values say 1>
    """
    if x is None:
        raise errors.InputError("check_gradient needs a point x around which to look.")
    if points < 1:
        raise errors.InputError(f"points must be at least 1, got {points}.")
    oracle = CountedOracle(as_oracle(fun, jac, args))
    centre = np.asarray(x, dtype=np.float64)
    if centre.ndim != 1 or not np.isfinite(centre).all():
        raise errors.InputError(f"x must be a finite vector, got shape {centre.shape}.")
    draw = stream(seed_from(rng), 0, "check_gradient")
    looked_at = np.arange(centre.size)
    if centre.size > max_coordinates:
        looked_at = np.sort(draw.choice(centre.size, max_coordinates, replace=False))
    off = np.full((points, looked_at.size), np.nan)
    gradients, slopes = np.zeros((2, *off.shape))
    for p in range(points):
        y = centre + radius * np.maximum(1.0, np.abs(centre)) * draw.uniform(-1, 1, centre.size)
        try:
            g = oracle.gradient(y)
        except errors.KinkError:
            continue
        gradients[p], size = g[looked_at], float(np.abs(g).max())
        for j, i in enumerate(looked_at):
            slopes[p, j], off[p, j] = _slope(oracle, y, int(i), float(g[i]), tolerance * size)
        # A gradient of zeros is measured by the slopes it misses.
        off[p] /= max(size, float(np.abs(slopes[p]).max())) or 1.0
    if np.isnan(off).all():
        raise errors.InputError("every random point hit a kink; give another x or a larger radius.")
    typical = np.nanmedian(off, axis=0)
    bad = np.flatnonzero(typical > tolerance)
    worst, message = float(typical.max()), f"{looked_at.size} coordinates agree at {points} points"
    if bad.size:
        message = "; ".join(
            f"coordinate {looked_at[j]}: gradient {gradients[p, j]:.6g}, "
            f"differences of values say {slopes[p, j]:.6g}"
            for j, p in zip(bad[:3], np.nanargmax(off[:, bad[:3]], axis=0))
        ) + (f" (and {bad.size - 3} more)" if bad.size > 3 else "")
    return GradientCheck(not bad.size, looked_at[bad].tolist(), worst, message)


def _slope(oracle: Oracle, y: Vector, i: int, expected: float, close: float) -> tuple[float, float]:
    """Central difference along coordinate i and its error; of several steps the best.

    A short step misses kinks, a long one drowns the noise of the values; the first that comes
    close will do.
    """
    best = (np.nan, np.inf)
    for relative in _STEPS:
        h = relative * max(1.0, abs(y[i]))
        ahead, behind = y.copy(), y.copy()
        ahead[i] += h
        behind[i] -= h
        high, low = oracle.value(ahead), oracle.value(behind)
        width = ahead[i] - behind[i]
        slope = (high - low) / width
        # Values are rounded too: differences say nothing finer than this.
        blur = 16 * np.finfo(float).eps * max(abs(high), abs(low)) / width
        error = max(abs(slope - expected) - blur, 0.0)
        if error < best[1]:
            best = (slope, error)
        if error <= close:
            break
    return best


#: What is stated rests on steps that are shorter than a check wants them.
STRICTLY = COARSEST / 4.0

#: Nothing is stated where points have to be displaced by more than this part of delta.
COARSE = 2.0**-7

#: Where f resolves no less than this part of delta a look may have been lucky.
FINE = 2.0**-10

#: Where values show nothing, the step along which gradients change in proportion is found by luck:
#: a check may find one that is so many times as long.
BY_LUCK = 16.0

#: Looks at each heavy point, so many times as far as a check begins: no kink may be as near.
LOOKS, WIDER = 3, 2.0

#: From this many variables on memory is worth saving.
FEW = 1000

Known = list[tuple[Vector, Vector]]


class _Trials:
    """A counted function at points that may be outside its domain; around one x, each once."""

    def __init__(self, oracle: CountedOracle, x: Vector) -> None:
        here = x.tobytes()
        if oracle.looked is None or oracle.looked[0] != here:
            oracle.looked = here, {}
        self._told = oracle.looked[1]
        self._oracle, self.known_value = oracle, oracle.known_value
        self.size = abs(oracle.last_value) if oracle.values else None
        self.coarse = oracle.coarse

    def value(self, y: Vector) -> float:
        return float(self._once(self._oracle.trial_value, y))

    def gradient(self, y: Vector) -> Vector:
        return self._once(self._oracle.gradient, y)

    def _once(self, ask: Callable[[Vector], Any], y: Vector) -> Any:
        key = ask.__name__, y.tobytes()
        if key in self._told:
            return self._told[key]
        found = ask(y)
        if y.size < FEW:
            self._told[key] = found
        return found


def _differences(
    oracle: CountedOracle, x: Vector, delta: float, seed: int, box: Box | None
) -> Differences | None:
    """None where there is nothing to compare, or no need: gradients of a formula are enclosed."""
    if not (oracle.has_value and oracle.has_gradient) or _is_enclosed(oracle.plain):
        return None
    return Differences(_Trials(oracle, x), x, delta, box or as_box(None, x.size), seed)


def _is_enclosed(f: Any) -> bool:
    """Does a check read the formula of f, whatever float64 makes of it?"""
    if f.is_written:
        with suppress(errors.NotCertifiableError):
            return f.program() is not None
    return False


def resolution_of(
    oracle: CountedOracle, x: Vector, delta: float, seed: int, known: Known, box: Box | None = None
) -> Vector | float:
    """Return steps that f resolves near x, for each coordinate; 0 where nothing is known.

    Raises
    ------
    ContradictedError, UnresolvedError
    """
    looked = _differences(oracle, x, delta, seed, box)
    if looked is None:
        return 0.0
    found = looked.resolution(known, STRICTLY, HEAVY)
    if not looked.clear or found.max() > FINE * delta:
        # With longer steps a check may see what shorter ones do not show.
        again = Differences(looked.f, x, delta, looked.box, seed + 1)
        found = np.maximum(found, again.resolution(known))
        steps = [(y, g, WIDER * again.finest(y, g)) for y, g in known[:HEAVY] for _ in range(LOOKS)]
        if not (looked.clear and again.clear):
            found = np.maximum(found, np.minimum(BY_LUCK * found, COARSE * delta))
        elif not all(again.agree(*step)[0] for step in steps):
            raise errors.UnresolvedError(STRICTLY * delta)
    if found.max() > COARSE * delta:
        raise errors.UnresolvedError(STRICTLY * delta)
    return found


def likely_resolution(
    oracle: CountedOracle, x: Vector, delta: float, known: Iterable[tuple[Vector, Vector]]
) -> float:
    """Return what f will hardly resolve less than, by the digits that its values have."""
    looked = _differences(oracle, x, delta, 0, None) if oracle.values else None
    if looked is None:
        return 0.0
    steps = [RESOLVED * looked.finest(y, g) for y, g in known if g.any()]
    return min(max(steps, default=0.0), COARSE * delta)


def required_resolution(
    oracle: CountedOracle, x: Vector, delta: float, seed: int, known: Known
) -> Vector | float:
    """Return the same; where values contradict gradients, say who is to blame.

    Raises
    ------
    NotDeterministicError, WrongGradientError, UnresolvedError
    """
    try:
        return resolution_of(oracle, x, delta, seed, known)
    except errors.ContradictedError as found:
        if found.gap:
            raise errors.NotDeterministicError(oracle.name, found.gap) from None
        raise errors.WrongGradientError(oracle.name) from None


def gradient_is_wrong(
    oracle: Oracle, x: Vector, radius: float, seed: int, box: Box | None = None
) -> bool:
    """Decide whether differences of values contradict the gradients at random points around x.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.oracles import FunctionOracle
    >>> right = FunctionOracle(lambda x: np.abs(x).sum(), np.sign)
    >>> wrong = FunctionOracle(lambda x: np.abs(x).sum(), lambda x: 2 * np.sign(x))
    >>> [gradient_is_wrong(f, np.array([1.0, 2.0]), 0.1, 0) for f in (right, wrong)]
    [False, True]
    """
    counted = oracle if isinstance(oracle, CountedOracle) else CountedOracle(oracle)
    looked = _differences(counted, x, radius, seed, box)
    if looked is not None:
        try:
            looked.at_random()
        except errors.ContradictedError:
            return True
    return False
