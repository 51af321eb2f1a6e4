"""Black boxes that answer as automatic differentiation does, at points on their kinks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, exact, honest, made, radius, verdict
from benchmarks.adversary.cells import TooMany, least
from benchmarks.adversary.random_trees import random_tree, two_sided
from benchmarks.adversary.suite import Attack, Rng, Seen
from benchmarks.adversary.trees import Tree

import goldstein as gs

TIES = ("zero", "left", "right", "mean")


def tied_boxes(rng: Rng, seen: Seen) -> None:
    dim = int(rng.integers(1, 4))
    point = [Fraction(int(a), int(rng.choice([1, 2]))) for a in rng.integers(-2, 3, dim)]
    traps = rng.random() < 0.7
    tree = two_sided(rng, dim, point) if traps else random_tree(rng, dim, point, curved=False)
    tie = str(rng.choice(TIES))
    x, delta = np.array([float(q) for q in point]), float(10.0 ** rng.uniform(-8, -2))
    seen.note(f"f = {tree}, ties {tie}, x = {x.tolist()}, delta = {delta!r}")
    box = tree.program(tie)

    def false(claim: Any) -> str:
        return _false(tree, claim)

    try:
        kind = int(rng.integers(3))
        if kind == 0:
            honest(seen, lambda: gs.certify(box[0], x, box[1], delta=delta, rng=0), box, false)
        elif kind == 1:
            ask: dict[str, Any] = {"eps": 0.3, "delta": delta, "rng": 0, "max_calls": 200}
            honest(seen, lambda: gs.minimize(box[0], x, box[1], **ask), box, false)
        _by_hand(rng, seen, tree, box, x, delta)
    except TooMany:
        seen.silent("too many cells")


def _false(tree: Tree, claim: Any) -> str:
    """Say that a claim is stronger than the truth."""
    true = least(tree, exact(claim.x), radius(claim.delta))
    return f"no subgradient below {true!r}" if below(claim.eps, true) else ""


def _by_hand(rng: Rng, seen: Seen, tree: Tree, box: Any, x: Any, delta: float) -> None:
    """State a claim of what the box says on its kinks."""
    count = int(rng.integers(1, 4))
    points = np.array([x] * count)
    points[1:] += delta * rng.integers(-1, 2, (count - 1, x.size)) / (2 * x.size)
    gradients = np.array([box[1](y) for y in points])
    weights = np.full(count, 1.0 / count)
    length = float(np.linalg.norm(weights @ gradients))
    claim = made(
        gs.GoldsteinCertificate, x=x, delta=delta, eps=length, points=points, gradients=gradients,
        weights=weights,
    )  # fmt: skip
    wrong = _false(tree, claim)
    ok, label = verdict(claim, *box)
    seen.claim(ok, label, not wrong, f"by hand: eps = {length!r}; {wrong}")


ATTACK = Attack(
    "tied-boxes",
    "piecewise linear black boxes that answer anything at ties, asked at points on their kinks",
    weight=14,
    one=tied_boxes,
)
