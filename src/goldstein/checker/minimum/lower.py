"""Is a black box lower at another point? Two values say so, up to what they are rounded by.

How far values can be believed is measured where f falls most on the way: there differences of
values have to follow the gradient (`goldstein.checker.blackbox.differences`), and the steps that
f resolves, times its slope, are what both values may be wrong by.
"""

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.blackbox.differences import ROUNDING, Differences
from goldstein.checker.blackbox.errors import ContradictedError, UnresolvedError
from goldstein.checker.blackbox.perturbed import has_room
from goldstein.checker.constrained.limits import as_box
from goldstein.checker.errors import GoldsteinError
from goldstein.checker.rounding import distance_upper
from goldstein.checker.verification import Verification

#: Places on the way at which gradients are asked for; a fall is at most so many times what the
#: steepest of them says.
PLACES, STEEPER = 5, 2.0


def certain_fall(f: Any, x: Vector, point: Vector, seed: int = 0, rooms: float = 1.0) -> float:
    """Return f(x) - f(point), less so many times what rounding may make of it.

    Raises `ContradictedError` where the gradients do not say that f falls, and `UnresolvedError`
    where the two points are too close for its values.
    """
    way, away, box = point - x, distance_upper(point, x), as_box(None, x.size)
    high, low = f.value(x), f.value(point)
    parts = (np.arange(PLACES) + np.random.default_rng([seed, 2**22]).random(PLACES)) / PLACES
    rows = [(y, f.gradient(y)) for y in x + parts[:, None] * way]
    y, g = min(rows, key=lambda row: float(row[1] @ way))
    if not has_room(x, away, box, f.coarse):
        raise UnresolvedError(away)
    if not high - low <= -STEEPER * float(g @ way):
        raise ContradictedError
    step = Differences(f, y, away, box, seed).resolution([(y, g)])
    size = max(abs(high), abs(low), *(float(np.abs(h) @ np.abs(z)) for z, h in rows))
    units = ROUNDING * (2.0**-24 if f.coarse else 2.0**-53)
    return high - low - rooms * (float(np.abs(g) @ step) + units * size)


def check(cert: Any, f: Any) -> Verification:
    """Decide whether f is lower at a point by `fall`; its answers are believed."""
    found = Verification(math.inf, math.inf, "conditional")
    fits = cert.x.size == cert.point.size and cert.slope is None and cert.label == "conditional"
    usable = fits and bool(np.isfinite([cert.fall, *cert.x, *cert.point]).all())
    if not found.add("numbers", usable, "finite; a black box has no exact slope"):
        return found
    try:
        fall = certain_fall(f, cert.x, cert.point)
    except GoldsteinError as failure:
        found.add("fall", False, str(failure))
        return found
    right = fall >= cert.fall > 0
    found.add("fall", right, f"f falls by {fall:.6g} at least, claimed {cert.fall:.6g}")
    return found
