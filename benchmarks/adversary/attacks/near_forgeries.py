"""Near certificates of random expressions at rational points on kinks, honest and forged."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import (
    below,
    forged,
    proof_file_is_true,
    radius,
    square_distance,
    verdict,
)
from benchmarks.adversary.cells import TooMany, least
from benchmarks.adversary.random_trees import random_tree, two_sided
from benchmarks.adversary.suite import Attack, Rng, Seen
from benchmarks.adversary.trees import Tree

import goldstein as gs

#: Forged claims per function, and how many of them are put to goldstein-check as well.
FORGERIES, FILED = 3, 0.3


def near_forgeries(rng: Rng, seen: Seen) -> None:
    dim = int(rng.integers(1, 4))
    pivot = [Fraction(int(a), int(rng.choice([1, 1, 1, 2, 3]))) for a in rng.integers(-1, 2, dim)]
    kind = rng.random()
    tree = two_sided(rng, dim, pivot) if kind < 0.3 else random_tree(
        rng, dim, pivot, curved=kind < 0.75
    )  # fmt: skip
    seen.note(f"f = {tree}, pivot {[str(q) for q in pivot]}")
    try:
        truth = Truth(tree, pivot)
    except TooMany:
        seen.silent("too many cells")
        return
    honest, own = _honest(rng, truth)
    if own:  # what the library states itself must hold, and must not be more than the truth
        _judge(seen, honest, truth, "as it was made", own=True)
    deeds = list(_forgeries(rng, honest, truth))
    first = 1 if truth.here > 0 else 0
    others = first + rng.choice(len(deeds) - first, FORGERIES - first, replace=False)
    for k in [0, *others.tolist()] if first else others.tolist():
        _judge(seen, deeds[k][1], truth, deeds[k][0], filed=bool(rng.random() < FILED))


class Truth:
    """A function, and how stationary its points are."""

    def __init__(self, tree: Tree, pivot: list[Fraction]) -> None:
        self.tree, self.pivot = tree, pivot
        self.expression = tree.expression()
        self._known: dict[tuple[Fraction, ...], float] = {}
        self.here = self.least(tuple(pivot))

    def least(self, pivot: tuple[Fraction, ...]) -> float:
        if pivot not in self._known:
            self._known[pivot] = least(self.tree, pivot)
        return self._known[pivot]

    def false(self, claim: Any) -> str:
        """Say what the evidence of a claim does not support."""
        if square_distance(claim.exact_pivot, claim.x.tolist()) > radius(claim.delta) ** 2:
            return f"the pivot is further than delta = {claim.delta!r} from x"
        true = self.least(claim.exact_pivot)
        return f"the pivot has no subgradient below {true!r}" if below(claim.eps, true) else ""


def _judge(
    seen: Seen, claim: Any, truth: Truth, deed: str, own: bool = False, filed: bool = False
) -> None:
    if claim is None:
        seen.silent()
        return
    try:
        wrong = truth.false(claim)
    except TooMany:
        return
    ok, label = verdict(claim, truth.expression)
    said = f"{deed}: eps = {claim.eps!r}, delta = {claim.delta!r}; {wrong}"
    seen.claim(ok, label, not wrong, said, own=own)
    exported = proof_file_is_true(claim, truth.expression) if filed else None
    if exported is not None:
        seen.claim(exported, "certified", not wrong, f"goldstein-check, {said}")


def _honest(rng: Rng, truth: Truth) -> tuple[Any, bool]:
    """Return a claim, and whether the library has proved it."""
    dim, count = truth.tree.dim, int(rng.integers(1, 4))
    x = np.array([float(q) for q in truth.pivot])
    if rng.random() < 0.5:
        x = x + 2.0 ** -int(rng.integers(1, 40)) * rng.integers(-1, 2, dim)
    ways = rng.standard_normal((count, dim))
    weights = rng.random(count) + 0.1
    try:
        return gs.NearCertificate.prove(truth.expression, x, truth.pivot, ways, weights), True
    except gs.GoldsteinError:  # a claim by hand, which nothing supports
        nothing = np.zeros((count, dim))
        fields = (ways, weights, nothing, np.zeros(count))
        return gs.NearCertificate(x, tuple(truth.pivot), 100.0, truth.here, *fields), False


def _forgeries(rng: Rng, honest: Any, truth: Truth) -> Iterator[tuple[str, Any]]:
    """Change one thing after the other, and claim what would follow."""
    dim = honest.x.size
    if truth.here > 0:
        part = float(rng.choice([0.5, 0.99, 1.0 - 1e-6]))
        yield "just below the truth", forged(honest, eps=part * truth.here)
    on_kinks = rng.integers(-1, 2, honest.directions.shape).astype(float)
    yield (
        "directions along kinks",
        forged(honest, directions=on_kinks, eps=0.999 * min(truth.here, honest.eps)),
    )
    yield "nothing but f", forged(honest, directions=0.0 * on_kinks, eps=0.5 * truth.here)
    step = Fraction(1, int(rng.choice([1, 2, 2**20, 2**52, 2**80]))) * int(rng.choice([-1, 1]))
    at = int(rng.integers(dim))
    moved = tuple(q + step * (k == at) for k, q in enumerate(honest.exact_pivot))
    yield "the pivot moved", forged(honest, exact_pivot=moved)
    yield "delta lowered", forged(honest, delta=math.nextafter(honest.delta, 0.0))
    yield "delta zero", forged(honest, delta=0.0)
    weights = honest.weights.copy()
    weights[int(rng.integers(weights.size))] *= float(rng.choice([-1.0, 0.0, 1e-300, 3.0, 1e300]))
    yield "a weight changed", forged(honest, weights=weights)
    yield "eps lowered", forged(honest, eps=honest.eps * float(rng.choice([0.0, 0.75, 1 - 2**-40])))
    yield "x moved", forged(honest, x=honest.x + rng.choice([1.0, 2.0**-45, 1e-9], dim))
    yield (
        "gradients exchanged",
        forged(
            honest,
            gradients=0.0 * honest.gradients,
            errors=0.0 * honest.errors,
            eps=0.5 * truth.here,
        ),
    )


ATTACK = Attack(
    "near-forgeries",
    "random expressions at rational points on kinks: near claims, honest and changed by field",
    weight=14,
    one=near_forgeries,
)
