"""A certificate that decides how f is called: shapes that broadcast make another function of it.

f = sum |x - c| is written for a vector. Given a column it is the sum over all pairs, which has
other stationary points; a claim about that one must not pass for a claim about f.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, forged, through_a_file, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs


def layouts(rng: Rng, seen: Seen) -> None:
    dim = int(rng.integers(2, 5))
    centre = np.sort(rng.integers(-8, 9, dim)).astype(float)
    weights = rng.choice([1.0, 2.0, 0.5], dim)
    shape = [(dim, 1), (1, dim), (dim, 1, 1)][int(rng.integers(3))]

    def fun(x: Any) -> float:
        return float((weights * np.abs(x - centre)).sum())

    def jac(x: Any) -> Any:
        signs = weights * np.sign(x - centre)
        # Where shapes broadcast, the derivative sums over what was repeated.
        return signs if signs.shape == x.shape else _summed(signs, x.shape)

    delta = float(10.0 ** rng.uniform(-6, -2))
    x0 = rng.uniform(-3, 3, shape)
    ask: dict[str, Any] = {"eps": 1e-2, "delta": delta, "rng": 0, "max_calls": 400}
    seen.note(f"c = {centre.tolist()}, weights {weights.tolist()}, x0 of shape {shape}")
    try:
        result = gs.minimize(fun, x0, jac, **ask)
        claim, success = result.certificate, result.success
    except gs.GoldsteinError as refusal:
        seen.silent(str(refusal))
        return
    if claim is None:
        seen.silent("no certificate")
        return
    one_of_ours = rng.random() < 0.7
    if not one_of_ours:
        claim = forged(claim, x=np.full(dim, float(np.median(centre))), eps=0.0) or claim
    stranger = through_a_file(claim)
    for words, one in (("at once", claim), ("through a file", stranger)):
        _judge(seen, one, fun, jac, centre, weights, words)
    if one_of_ours:  # and for what it was made it holds
        ok, label = verdict(claim, fun, jac, like=x0)
        seen.claim(ok, label, None, f"in its own layout: {claim.summary()}", own=success)


def _summed(signs: Any, shape: tuple[int, ...]) -> Any:
    """Return the sums of an array over the axes along which `shape` was repeated."""
    extra = tuple(range(signs.ndim - len(shape)))
    signs = signs.sum(axis=extra)
    axes = tuple(k for k, n in enumerate(shape) if n == 1 and signs.shape[k] > 1)
    return signs.sum(axis=axes, keepdims=True)


def _judge(
    seen: Seen, claim: Any, fun: Any, jac: Any, centre: Any, weights: Any, words: str
) -> None:
    """Verify for vectors, as somebody does who has f and knows what it is written for."""
    if claim is None:
        seen.silent()
        return
    x = np.asarray(claim.x).ravel()
    far = np.abs(x - centre) > claim.delta
    true = float(np.linalg.norm(weights[far]))
    ok, label = verdict(claim, fun, jac, like=x)
    wrong = f"for vectors the truth is {true!r}" if below(claim.eps, true) else ""
    said = f"{words}: eps = {claim.eps!r} at {x.tolist()}; {wrong}"
    seen.claim(ok, label, not wrong, said)


ATTACK = Attack(
    "layouts",
    "certificates whose layout makes another function of f: shapes that broadcast",
    weight=3,
    one=layouts,
)
