"""Success against verify: what `minimize` calls a success must verify, for five people who look.

Nothing is known about the truth here; the runs are honest, and of every kind there is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.adversary.ask import honest
from benchmarks.adversary.runs import KINDS, drawn
from benchmarks.adversary.suite import Attack, Rng, Seen

#: One run in so many fits an estimator.
FITS = 50


def success(rng: Rng, seen: Seen) -> None:
    if rng.integers(FITS) == 0:
        _fit(rng, seen)
        return
    run, words = drawn(rng, KINDS)
    seen.note(words)
    honest(seen, run.call, run.function, None, **run.limits)


def _fit(rng: Rng, seen: Seen) -> None:
    """A small margin machine; its certificate is about the objective of its data."""
    from goldstein.sklearn import RhoMarginSVC

    X: Any = rng.standard_normal((12, 2)) * 10.0 ** rng.uniform(-2, 2)
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(12) > 0, 1, -1)
    y[:2] = [1, -1]
    seen.note(f"RhoMarginSVC of {X.tolist()}, {y.tolist()}")
    fitted = RhoMarginSVC(random_state=0, max_calls=2000).fit(X, y)
    honest(seen, lambda: fitted.certificate_, (fitted.objective(X, y),), None)


ATTACK = Attack(
    "success",
    "honest runs of fourteen kinds at |x| from 1 to 1e8, each success verified with five seeds",
    weight=11,
    one=success,
)
