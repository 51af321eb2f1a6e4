"""Kinks hidden by rounding: large offsets, time stamps, single precision inside, long sums.

f = sum_i a_i (relu(z_i) - relu(-z_i) / 2) in reals, with z = x: along every coordinate that counts
it rises everywhere, by a_i / 2 at least. In floats z is (x + C) - C, so f is flat beside its kinks
and the gradient that a program returns at ties, 0 or one side, holds on whole intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, forged, honest, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs

Inner = Callable[[Any], Any]


def _offset(rng: Rng) -> tuple[str, Inner]:
    size = float(10.0 ** rng.uniform(3, 12))
    return f"(x + {size!r}) - {size!r}", lambda x: (x + size) - size


def _time_stamp(rng: Rng) -> tuple[str, Inner]:
    start = float(rng.choice([1.6e9, 1.7e9, 1.6e12, 20_000.0]))
    return f"seconds after {start!r}", lambda x: (start + x) - start


def _single(rng: Rng) -> tuple[str, Inner]:
    shift = np.float32(rng.choice([0.0, 1.0, 100.0, 3e4]))
    return (
        f"float32, shifted by {shift}",
        lambda x: ((x.astype(np.float32) + shift) - shift).astype(float),
    )


def _long_sum(rng: Rng) -> tuple[str, Inner]:
    terms = rng.standard_normal(int(rng.integers(2, 30))) * 10.0 ** rng.uniform(2, 10)

    def inner(x: Any) -> Any:
        z = np.array(x)
        for term in terms:
            z = z + term
        for term in terms[::-1]:
            z = z - term
        return z

    return f"plus and minus {terms.size} terms of size {np.abs(terms).max():.1g}", inner


def _scaled(rng: Rng) -> tuple[str, Inner]:
    size, factor = float(10.0 ** rng.uniform(3, 9)), float(10.0 ** rng.uniform(-3, 3))
    return (
        f"({factor:g} x + {size:g} - {size:g}) / {factor:g}",
        lambda x: ((factor * x + size) - size) / factor,
    )


INNER = (_offset, _time_stamp, _single, _long_sum, _scaled)


def hidden_kinks(rng: Rng, seen: Seen) -> None:
    dim = int(rng.choice([1, 1, 2, 3]))
    words, inner = INNER[int(rng.integers(len(INNER)))](rng)
    heights = np.where(np.arange(dim) < rng.integers(1, dim + 1), rng.uniform(0.5, 2.0, dim), 0.0)
    tie = float(rng.choice([0.0, 0.0, 0.5, 1.0]))

    def fun(x: Any) -> float:
        z = inner(x)
        rising = heights * (np.maximum(z, 0.0) - 0.5 * np.maximum(-z, 0.0))
        return float((rising + (heights == 0) * np.abs(x)).sum())

    def jac(x: Any) -> Any:
        z = inner(x)
        slope = np.where(z > 0, 1.0, np.where(z < 0, 0.5, tie))
        return heights * slope + (heights == 0) * np.sign(x)

    true = 0.5 * float(np.linalg.norm(heights))
    delta = float(10.0 ** rng.uniform(-10, -2))
    start = rng.choice([0.0, 1.0, 0.1, 1e-3, 1e-6], dim) * rng.choice([1.0, -1.0, 0.5], dim)
    seen.note(f"z = {words}, slopes {heights.tolist()}, at ties {tie:g}, delta = {delta!r}")
    seen.note(f"from {start.tolist()}, truth {true!r}")

    def false(claim: Any) -> str:
        return f"no slope below {true!r}" if below(claim.eps, true) else ""

    kind = int(rng.integers(3))
    if kind == 0:
        ask: dict[str, Any] = {"eps": 0.1, "delta": delta, "rng": 0, "max_calls": 300}
        honest(seen, lambda: gs.minimize(fun, start, jac, **ask), (fun, jac), false)
    elif kind == 1:
        at = start * (rng.random() < 0.5)
        honest(seen, lambda: gs.certify(fun, at, jac, delta=delta, rng=0), (fun, jac), false)
    else:
        _by_hand(seen, fun, jac, dim, delta, false)


def _by_hand(
    seen: Seen, fun: Any, jac: Any, dim: int, delta: float, false: Callable[[Any], str]
) -> None:
    """Claim what the box says at its kink, as another solver would."""
    x, zero = np.zeros(dim), np.zeros((1, dim))
    eps = float(np.linalg.norm(jac(x)))
    claim = gs.GoldsteinCertificate(x, delta, eps, zero, jac(x)[None], np.ones(1))
    for deed, one in (("at the kink", claim), ("a wider ball", forged(claim, delta=8 * delta))):
        ok, label = verdict(one, fun, jac)
        said = f"{deed}: eps = {eps!r}, delta = {one.delta!r}; {false(one)}"
        seen.claim(ok, label, not false(one), said)


ATTACK = Attack(
    "hidden-kinks",
    "kinks hidden by rounding: offsets, time stamps, float32 inside, long sums; honest runs",
    weight=14,
    one=hidden_kinks,
)
