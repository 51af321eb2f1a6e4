"""Gradients that are wrong everywhere by one fixed vector: a term that was forgotten, a wrong sign.

f is linear. The gradient that is given is
shorter, and wrong by more than what is believed of one; in several variables some directions are
nearly at right angles to what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, honest
from benchmarks.adversary.beliefs import SMALL_PART
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs


def skewed_gradients(rng: Rng, seen: Seen) -> None:
    d = int(10.0 ** rng.uniform(0.3, 1.6))
    slope, error = rng.standard_normal((2, d))
    length = float(np.sqrt(slope @ slope))
    part = float(rng.uniform(2.0, 8.0)) * SMALL_PART
    error *= part * length / float(np.sqrt(error @ error))
    error *= np.sign(error @ slope)
    delta = float(10.0 ** rng.uniform(-6, -1))
    seen.note(f"d = {d}, wrong by {part:.1%}, delta = {delta:.1g}")

    def value(x: Any) -> float:
        return float(slope @ x)

    def gradient(x: Any) -> Any:
        return slope - error

    def false(certificate: Any) -> str:
        return "every slope is longer" if below(certificate.eps, length) else ""

    x, seed = rng.standard_normal(d), int(rng.integers(100))
    honest(
        seen, lambda: gs.certify(value, x, gradient, delta=delta, rng=seed), (value, gradient),
        false, deterministic=False,
    )  # fmt: skip


ATTACK = Attack(
    "skewed-gradients",
    "gradients that are wrong everywhere by one fixed vector, 2 to 8 % of their length",
    weight=6,
    one=skewed_gradients,
)
