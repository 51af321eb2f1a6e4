"""Accelerated forward-backward steps on f + h: they find the structure where f is smooth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import KinkError
from goldstein.oracles import CountedOracle
from goldstein.prox.term import Term

#: Steps at most; and steps without a change of structure after which it is taken for found.
MOST, SETTLED = 300, 15

#: A move this small against delta that does not fit a parabola, although its step is so much
#: smaller than one that did, shows a kink of f.
KINK, SMALLER = 0.1, 2.0**-6

#: Before the first step that did: this part of a step as long as x.
UNKNOWN = 2.0**-20


def forward_backward(
    f: CountedOracle,
    term: Term,
    x: Vector,
    eps: float,
    delta: float,
    better: Callable[[Vector], object],
) -> tuple[Vector, bool]:
    """Return a better point, and whether f looked smooth on the way, where `better` is told more.

    For a norm the steps end when the structure is found; in a set they go on, and f is asked in it.
    """
    in_set = term.limits(x.size) is not None
    best = x
    total = f.value(x) + term.value(x)
    ahead, momentum, step, good = x, 1.0, 0.0, 0.0
    pattern, since = term.structure(x), 0
    for _ in range(MOST):
        try:
            here, g = f.value(ahead), f.gradient(ahead)
        except KinkError:  # f is not smooth where h leads
            return best, False
        length = float(np.linalg.norm(g))
        step = step * 1.3 if step else (1.0 + float(np.linalg.norm(x))) / max(length, 1e-300)
        good = good or UNKNOWN * step
        while True:
            z = term.prox(ahead - step * g, step)
            move = z - ahead
            far = float(np.linalg.norm(move))
            there = f.trial_value(z)
            rounding = 2.0**-48 * (abs(here) + abs(there)) if math.isfinite(there) else 0.0
            if there <= here + float(g @ move) + far**2 / (2.0 * step) + rounding:
                break
            if far <= KINK * delta and step <= SMALLER * good:
                return best, False
            step *= 0.5
        good = step
        new = there + term.value(z)
        if new > total and momentum > 1.0:
            ahead, momentum = best, 1.0  # too fast: begin again
            continue
        if new >= total and far <= eps * step:
            return best, True
        faster = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        ahead = z + (momentum - 1.0) / faster * (z - best)
        if in_set:
            ahead = term.prox(ahead, 0.0)
        momentum = faster
        if new <= total:
            best, total = z, new
            better(best)
        now = term.structure(z)
        since = since + 1 if now == pattern else 0
        pattern = now
        if far <= 0.1 * eps * step or (since >= SETTLED and not in_set):
            break
    return best, True
