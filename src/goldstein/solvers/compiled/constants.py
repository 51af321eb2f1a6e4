"""The constants of `auto`, which the compiled search shares; they are explained over there."""

from __future__ import annotations

from goldstein.numerics import cone
from goldstein.solvers import auto, quasi_newton
from goldstein.solvers.base import VALUE_LIMIT

CLOSE = auto._CLOSE
CRAWL = auto._CRAWL
FAR = auto._FAR
FAR_NULL = auto._FAR_NULL
FAR_SHARE = auto._FAR_SHARE
FIRST = auto._FIRST
GATHER = auto._GATHER
INSIDE = auto._INSIDE
JITTER = auto._JITTER
LEAST = auto._LEAST
MOST = auto._MOST
PATIENCE = auto._PATIENCE
REWARD = auto._REWARD
SHARE = auto._SHARE
SHORT = auto._SHORT
SHRINK = auto._SHRINK
SMALL_MOVES = auto._SMALL_MOVES
SPARSE = auto._SPARSE
SPARSE_EVERY = auto._SPARSE_EVERY
ARMIJO = quasi_newton._ARMIJO
CURVATURE = quasi_newton._CURVATURE
HOPE = quasi_newton._HOPE
LOCALITY = quasi_newton._LOCALITY
MAX_TRIALS = quasi_newton._MAX_TRIALS
MAX_NULL_STEPS = quasi_newton.MAX_NULL_STEPS
MAX_PLANES = quasi_newton.MAX_PLANES
TOO_HIGH = quasi_newton._TOO_HIGH
WIDE = cone.WIDE

#: All of them, to tell whether stored machine code is out of date.
VALUES = [(name, value) for name, value in sorted(globals().items()) if name.isupper()]

__all__ = ["VALUES", "VALUE_LIMIT"]
