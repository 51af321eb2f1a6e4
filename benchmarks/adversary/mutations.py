"""Fields of a claim, changed by what they are: numbers, arrays, rationals, labels, remarks."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.suite import Rng

import goldstein as gs

LABELS = ("certified", "conditional", "estimated", "refuted", "proved", "")


def changed_fields(claim: Any, rng: Rng) -> dict[str, Any]:
    """Return one or two fields of a claim with other content."""
    names = [field.name for field in dataclasses.fields(claim) if field.name != "digest"]
    some = rng.choice(names, int(rng.choice([1, 1, 2])), replace=False).tolist()
    if rng.random() < 0.4:  # and the claim is to gain by it
        some = [*(name for name in some if name != "eps"), "eps"]
    return {name: changed(name, getattr(claim, name), rng) for name in some}


def changed(name: str, value: Any, rng: Rng) -> Any:
    """Return something else of the same kind."""
    if isinstance(value, np.ndarray):
        return _array(value, rng)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return int(rng.choice([0, 1, value // 2, value * 2, -value, value - 1]))
    if isinstance(value, float):
        return _number(value, rng)
    if name == "label":
        return str(rng.choice(LABELS))
    if isinstance(value, dict):
        return _remarks(value, rng)
    if isinstance(value, tuple):  # a rational point
        at, step = int(rng.integers(len(value))), Fraction(1, 2 ** int(rng.integers(0, 90)))
        return tuple(q + step * (k == at) for k, q in enumerate(value))
    return TERMS[int(rng.integers(len(TERMS)))]


#: Other terms than the one a claim is about.
TERMS = (gs.prox.l1(2.0), gs.prox.l1(1e-3), gs.prox.box(-1e3, 1e3), gs.prox.simplex(1.0))


def _number(value: float, rng: Rng) -> float:
    down, up = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
    others = [0.0, value / 2, value * (1 - 1e-6), down, up, 2 * value, -value, 1e-12, 5e-324, 1e300]
    others += [math.nan, math.inf]
    return float(others[int(rng.integers(len(others)))])


def _array(value: Any, rng: Rng) -> Any:
    array = np.array(value)
    if not array.size:
        return array
    if array.dtype.kind in "iu":
        array.flat[int(rng.integers(array.size))] += int(rng.choice([-1, 1, 7]))
        return array
    deed, at = int(rng.integers(9)), int(rng.integers(array.size))
    if deed < 4:
        array.flat[at] = _number(float(array.flat[at]), rng)
    elif deed == 4:
        array = array * float(rng.choice([0.0, -1.0, 0.5, 1e-6]))
    elif deed == 5:
        array = array + 10.0 ** -int(rng.integers(0, 13)) * rng.integers(-1, 2, array.shape)
    elif deed == 6:
        array = array[::-1].copy()
    elif deed == 7:
        array = array[:-1] if len(array) > 1 else array
    else:
        array[...] = array.reshape(len(array), -1)[0] if array.ndim > 1 else array[0]
    return array


def _remarks(value: dict[str, Any], rng: Rng) -> dict[str, Any]:
    more = [
        {"structure": [3, 1]}, {"structure": [1, 3]}, {"asked_eps": 1e9}, {"near": "proved"},
        {"descent_step": 1.0}, {"slopes": "given"}, {"active": []}, {},
    ]  # fmt: skip
    return {**value, **more[int(rng.integers(len(more)))]}
