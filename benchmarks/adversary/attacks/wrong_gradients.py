"""Gradients that are wrong somewhere or always, and noise: claims that are false by them.

f = slope . x + sum_i a_i |x_i - k_i|. Its values are right (but for noise), so whoever compares
differences of values with gradients can tell. The distance of 0 from its Goldstein sets is known.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, five, honest
from benchmarks.adversary.beliefs import NOISY_PART, SMALL_PART
from benchmarks.adversary.suite import Attack, Rng, Seen
from scipy.optimize import nnls

import goldstein as gs

Jac = Callable[[Any], Any]


@dataclass
class Known:
    """A function, and the truth about it."""

    slope: Any
    heights: Any
    kinks: Any

    def value(self, x: Any) -> float:
        return float(self.slope @ x + self.heights @ np.abs(x - self.kinks))

    def gradient(self, x: Any) -> Any:
        return self.slope + self.heights * np.sign(x - self.kinks)

    def least(self, x: Any, delta: float) -> float:
        """Return a lower bound of the distance between 0 and the Goldstein set."""
        far = np.abs(x - self.kinks) > delta
        here = np.abs(self.slope + self.heights * np.sign(x - self.kinks))
        both = np.maximum(np.abs(self.slope) - self.heights, 0.0)
        return float(np.linalg.norm(np.where(far, here, both)))


@dataclass
class Lie:
    """A wrong gradient, in words, and what exempts the claims that it leads to."""

    words: str
    jac: Jac
    belief: str | None = None


def _known(rng: Rng) -> Known:
    dim = int(rng.integers(1, 5))
    slope = np.zeros(dim)
    slope[0] = rng.uniform(1.0, 2.0)
    heights = np.where(np.arange(dim) > 0, rng.uniform(0.5, 2.0, dim), 0.0)
    if rng.random() < 0.5:
        heights[0] = 0.5 * slope[0]
    return Known(slope, heights, rng.choice([0.0, 1.0, -0.5], dim))


# --- lies ----------------------------------------------------------------------------------------


def _wrong_sign(f: Known, rng: Rng) -> Lie:
    return Lie("of the wrong sign on one side", lambda x: np.where(
        x > f.kinks, 1.0, -1.0
    ) * f.gradient(x))  # fmt: skip


def _omitted(f: Known, rng: Rng) -> Lie:
    """Forgets a slope: the part of |g| that is missing goes from 0.1 % to all."""
    part = float(10.0 ** rng.uniform(-3, 0))
    slope = f.slope.copy()
    size = float(np.linalg.norm(f.heights[1:])) or 1.0
    f.slope[0] = part * size
    f.heights[0] = 0.0
    share = part * size / float(np.hypot(part * size, size))
    believed = "small part of a gradient" if share <= SMALL_PART else None
    slope[0] = f.slope[0]
    words = f"without a slope of {100 * share:.2g} % of |g|"
    return Lie(words, lambda x: f.gradient(x) - slope, belief=believed)


def _one_sided(f: Known, rng: Rng) -> Lie:
    at = int(rng.integers(f.slope.size))
    return Lie(f"wrong where x_{at} is beyond its kink", lambda x: f.gradient(x) * np.where(
        (np.arange(x.size) == 0) & (x[at] > f.kinks[at]), -1.0, 1.0
    ))  # fmt: skip


def _sliver(f: Known, rng: Rng) -> Lie:
    width, at = float(10.0 ** rng.uniform(-6, -2)), int(rng.integers(f.slope.size))
    long = float(rng.choice([1.0, 10.0, 1000.0]))

    def jac(x: Any) -> Any:
        g = f.gradient(x)
        if abs(x[at] - f.kinks[at]) < width:
            g[0] *= -long
        return g

    return Lie(f"wrong by {long:g} within {width:.1g} of a kink", jac)


def _zero(f: Known, rng: Rng) -> Lie:
    return Lie("0 in the first entry", lambda x: f.gradient(x) * (np.arange(x.size) > 0))


def _by_bits(f: Known, rng: Rng) -> Lie:
    share = float(rng.choice([0.5, 0.1]))

    def jac(x: Any) -> Any:
        g = f.gradient(x)
        if zlib.crc32(x.tobytes()) < share * 2**32:
            g[0] *= -1.0 / share
        return g

    return Lie(f"wrong at {share:g} of all points", jac, "lies at pseudo-random places")


def _by_calls(f: Known, rng: Rng) -> Lie:
    calls = [0]

    def jac(x: Any) -> Any:
        calls[0] += 1
        return f.gradient(x) * np.where(np.arange(x.size) == 0, (-1.0) ** calls[0], 1.0)

    return Lie("wrong at every other call", jac, "lies at pseudo-random places")


def _noisy(f: Known, rng: Rng) -> Lie:
    level = float(10.0 ** rng.uniform(-6, 0))
    return Lie(
        f"with noise of {level:.1g}",
        lambda x: f.gradient(x) + level * rng.standard_normal(x.size),
        "lies at pseudo-random places",
    )


def _scaled(f: Known, rng: Rng) -> Lie:
    factor = float(rng.choice([0.5, 0.9, 2.0, 1.1]))
    return Lie(f"times {factor:g}", lambda x: factor * f.gradient(x))


def _shifted(f: Known, rng: Rng) -> Lie:
    """The gradient at another point: of f(x - c)."""
    shift = float(10.0 ** rng.uniform(-4, 0)) * rng.standard_normal(f.slope.size)
    return Lie(f"taken {np.linalg.norm(shift):.1g} away", lambda x: f.gradient(x + shift))


LIES = (
    _wrong_sign, _omitted, _omitted, _one_sided, _sliver, _zero, _by_bits, _by_calls, _noisy,
    _scaled, _shifted,
)  # fmt: skip


def wrong_gradients(rng: Rng, seen: Seen) -> None:
    f = _known(rng)
    lie = LIES[int(rng.integers(len(LIES)))](f, rng)
    delta = float(10.0 ** rng.uniform(-6, -1))
    noise = float(10.0 ** rng.uniform(-12, -4)) if rng.random() < 0.15 else 0.0
    dither = np.random.default_rng(0)
    seen.note(f"{f}, gradient {lie.words}, noise {noise:.1g} in values, delta = {delta!r}")

    def fun(x: Any) -> float:
        return f.value(x) + (noise * float(dither.standard_normal()) if noise else 0.0)

    def false(claim: Any) -> str:
        true = f.least(claim.x, claim.delta)
        return f"the truth is {true!r}" if below(claim.eps, true) else ""

    ask: dict[str, Any] = {"delta": delta, "rng": 0, "max_calls": 400}
    if noise > NOISY_PART * delta * f.least(f.kinks, delta):
        lie.belief = lie.belief or "noise hides the error"
    kind = int(rng.integers(3))
    if kind == 0:
        x0 = f.kinks + rng.uniform(-1, 1, f.slope.size)
        run = lambda: gs.minimize(fun, x0, lie.jac, eps=0.05, **ask)  # noqa: E731
    elif kind == 1:
        ask["options"] = {"check_gradient": False}
        x0 = f.kinks + 1.5 * delta * rng.uniform(-1, 1, f.slope.size)
        run = lambda: gs.minimize(fun, x0, lie.jac, eps=0.05, **ask)  # noqa: E731
    else:
        at = f.kinks + (rng.random() < 0.5) * rng.uniform(-1, 1, f.slope.size)
        run = lambda: gs.certify(fun, at, lie.jac, delta=delta, rng=0)  # noqa: E731
    # Where the gradient lies, a claim may well fail its own check.
    claim = honest(seen, run, (fun, lie.jac), false, belief=lie.belief, deterministic=False)
    if claim is None and rng.random() < 0.5:
        _by_hand(rng, seen, f, fun, lie, delta)


def _by_hand(rng: Rng, seen: Seen, f: Known, fun: Any, lie: Lie, delta: float) -> None:
    """State what the wrong gradients of many points of the ball support."""
    dim = f.slope.size
    offsets = rng.standard_normal((40, dim))
    offsets *= 0.9 * delta * rng.random((40, 1)) / np.linalg.norm(offsets, axis=1, keepdims=True)
    points = f.kinks + offsets
    gradients = np.array([lie.jac(y) for y in points])
    big = 1e3 * float(np.abs(gradients).max())
    system = np.vstack([gradients.T, np.full(len(points), big)])
    weights, _ = nnls(system, np.append(np.zeros(dim), big), maxiter=4000)
    weights /= weights.sum()
    eps = float(np.linalg.norm(weights @ gradients)) * (1 + 1e-9) + 1e-12
    claim = gs.GoldsteinCertificate(f.kinks, delta, eps, points, gradients, weights)
    accepted, _, label = five(claim, fun, lie.jac)
    true = f.least(f.kinks, delta)
    seen.claim(
        accepted > 0, label, not below(eps, true),
        f"by hand: eps = {eps!r}, {accepted} of 5 verify; the truth is {true!r}", belief=lie.belief,
    )  # fmt: skip


ATTACK = Attack(
    "wrong-gradients",
    "gradients that are wrong always, on one side, on slivers, at random; noise in values",
    weight=10,
    one=wrong_gradients,
)
