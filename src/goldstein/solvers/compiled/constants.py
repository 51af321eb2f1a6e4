"""The constants of `auto`, which the compiled search shares; they are explained over there."""

from __future__ import annotations

from goldstein.numerics import cone
from goldstein.solvers.base import VALUE_LIMIT
from goldstein.solvers.tuning import TUNING

CLOSE = TUNING.close
CRAWL = TUNING.crawl
FAR = TUNING.far
FAR_NULL = TUNING.far_null
FAR_SHARE = TUNING.far_share
FIRST = TUNING.first
GATHER = TUNING.gather
INSIDE = TUNING.inside
JITTER = TUNING.jitter
LEAST = TUNING.least
MOST = TUNING.most
PATIENCE = TUNING.patience
REWARD = TUNING.reward
SHARE = TUNING.share
SHORT = TUNING.short
SHRINK = TUNING.shrink
SMALL_MOVES = TUNING.small_moves
SPARSE = TUNING.sparse
SPARSE_EVERY = TUNING.sparse_every
ARMIJO = TUNING.armijo
CURVATURE = TUNING.curvature
HOPE = TUNING.hope
LOCALITY = TUNING.locality
TOO_HIGH = TUNING.too_high
MAX_TRIALS = TUNING.trials
MAX_NULL_STEPS = TUNING.null_steps
MAX_PLANES = TUNING.planes
WIDE = cone.WIDE

#: All of them, to tell whether stored machine code is out of date.
VALUES = [
    (name, value)
    for name, value in sorted(globals().items())
    if name.isupper() and name != "TUNING"
]

__all__ = ["VALUES", "VALUE_LIMIT"]
