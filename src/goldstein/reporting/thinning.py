"""Long series with few points that look the same."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def thinned(columns: dict[str, NDArray[np.float64]], most: int) -> dict[str, NDArray[np.float64]]:
    """Return at most about `most` rows: first, last, and the extremes of every stretch between.

    Examples
    --------
    >>> spike = np.zeros(10_000)
    >>> spike[1234] = 7.0
    >>> kept = thinned({"calls": np.arange(10_000.0), "fun": spike}, 200)
    >>> len(kept["fun"]) <= 200, float(kept["calls"][kept["fun"].argmax()])
    (True, 1234.0)
    """
    length = min((len(c) for c in columns.values()), default=0)
    if length <= most:
        return {name: column[:length] for name, column in columns.items()}
    stretches = max(1, (most - 2) // (2 * len(columns)))
    edges = np.linspace(0, length, stretches + 1).astype(int)
    kept = {0, length - 1}
    for column in columns.values():
        finite = np.where(np.isfinite(column[:length]), column[:length], np.nan)
        for low, high in pairwise(edges.tolist()):
            part = finite[low:high]
            if np.isfinite(part).any():
                kept |= {low + int(np.nanargmin(part)), low + int(np.nanargmax(part))}
    rows = np.array(sorted(kept))
    return {name: column[rows] for name, column in columns.items()}
