"""Which answers are the same stationary point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import GoldsteinError
from goldstein.result import Result

#: Where the function is looked at between two answers.
BETWEEN = (0.5, 0.25, 0.75)


@dataclass
class StationaryPoint:
    """A stationary point that was found, perhaps from several starts.

    Attributes
    ----------
    x : ndarray, or in the layout of the starts
    fun : float
    count : int
        How many starts led here.
    certificate : GoldsteinCertificate, ...
    starts : list of int
        Which ones.
    """

    x: Any
    fun: float
    certificate: Any
    starts: list[int]

    @property
    def count(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        return f"<StationaryPoint f = {self.fun:.10g}, reached {times}>"


def distinct(
    results: Sequence[Result | None],
    value: Callable[[Vector], float] | None,
    eps: float,
    delta: float,
) -> list[StationaryPoint]:
    """Return the stationary points among verified results, best first.

    Two answers are one point if their balls of radius `delta` meet, or if the function is flat to
    within `eps` between them: an answer may be anywhere on such a plain. The values are asked for
    there; without `value` only the balls count.

    Parameters
    ----------
    results : sequence of Result or None
    value : callable or None
        f of a vector.
    eps : float
        Slopes up to here count as flat.
    delta : float
    """
    found: list[tuple[StationaryPoint, Vector]] = []
    verified = [(k, res) for k, res in enumerate(results) if res is not None and res.success]
    for k, res in sorted(verified, key=lambda pair: (pair[1].fun, pair[0])):
        here = res.certificate.x
        for point, there in found:
            far = float(np.linalg.norm(here - there))
            if far <= 2.0 * delta or (
                value is not None and _flat(res.fun, here, point.fun, there, eps * far, value)
            ):
                point.starts.append(k)
                break
        else:
            found.append((StationaryPoint(res.x, res.fun, res.certificate, [k]), here))
    for point, _ in found:
        point.starts.sort()
    return [point for point, _ in found]


def _flat(
    f: float, x: Vector, g: float, y: Vector, rise: float, value: Callable[[Vector], float]
) -> bool:
    """Does the function stay within `rise` between x and y, as far as one sees?"""
    if abs(f - g) > rise:
        return False
    try:
        return all(value(y + t * (x - y)) <= max(f, g) + rise for t in BETWEEN)
    except GoldsteinError:  # the function does not answer there
        return False
