"""What the calculus says before a run: `clarke_distance`, pivots and triples, Goldstein targets."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, exact
from benchmarks.adversary.cells import TooMany, gradients, least
from benchmarks.adversary.random_trees import random_tree
from benchmarks.adversary.shortest import distance
from benchmarks.adversary.suite import Attack, Rng, Seen
from benchmarks.adversary.trees import LINEAR, Affine, Sum, Tree, atom

import goldstein as gs

#: Further points at which a triple or a target is tried.
TRIED = 6


def calculus(rng: Rng, seen: Seen) -> None:
    try:
        kind = int(rng.integers(3))
        (_distance, _triple, _target)[kind](rng, seen)
    except TooMany:
        seen.silent("too many cells")
    except gs.GoldsteinError as refusal:
        seen.silent(f"refused: {type(refusal).__name__}")


def _distance(rng: Rng, seen: Seen) -> None:
    """lower <= distance of 0 from the Clarke set <= upper."""
    dim = int(rng.integers(1, 4))
    point = [Fraction(int(a), int(rng.choice([1, 2, 3]))) for a in rng.integers(-1, 2, dim)]
    tree = random_tree(rng, dim, point, curved=bool(rng.random() < 0.4))
    seen.note(f"f = {tree} at {[str(q) for q in point]}")
    found, true = gs.clarke_distance(tree.expression(), point, seed=0), least(tree, point)
    said = f"clarke_distance says {found.lower!r} to {found.upper!r}, the truth is {true!r}"
    seen.claim(True, "certified", not below(found.upper, true), said)
    if not tree.curved:  # then the truth is exact
        seen.claim(True, "certified", not below(true, found.lower), said)


def _independent(rng: Rng) -> tuple[Tree, int]:
    """Return a sum of atoms on independent rows, as the theory wants it."""
    dim = int(rng.integers(1, 3))
    matrices = {1: [((1.0,),), ((2.0,),)], 2: [((1.0, 0.0), (0.0, 1.0)), ((1.0, 1.0), (0.0, 2.0))]}
    matrix = matrices[dim][int(rng.integers(2))]
    offset = tuple(float(a) for a in rng.integers(-1, 2, dim))
    parts = tuple(atom(str(rng.choice(LINEAR)), Affine(matrix, offset, k)) for k in range(dim))
    factors = tuple(float(a) for a in rng.choice([1.0, -1.0, 2.0], dim))
    slope = Affine((tuple(float(a) for a in rng.choice([0.0, 0.5, -1.0], dim)),), (0.0,), 0)
    return Tree(Sum((*parts, slope), (*factors, 1.0)), dim), dim


def _around(rng: Rng, dim: int, radius: float) -> list[Any]:
    """Return offsets within a radius: random ones, and those along the axes to the boundary."""
    some = rng.uniform(-1, 1, (TRIED, dim))
    some *= radius / np.maximum(np.linalg.norm(some, axis=1, keepdims=True), 1.0)
    ends = [s * radius * np.eye(dim)[k] for k, s in itertools.product(range(dim), (1.0, -1.0))]
    return [np.zeros(dim), *some, *ends]


def _triple(rng: Rng, seen: Seen) -> None:
    """Gradients within reach of x are gradients at its pivot, up to the modulus (here 0)."""
    tree, dim = _independent(rng)
    F, radius = tree.expression(), float(rng.choice([0.125, 0.25, 0.5]))
    triple = F.outer_lipschitz(pivot_radius=radius)
    x = rng.integers(-16, 17, dim) / 8.0
    y = F.pivot(x, pivot_radius=radius)
    seen.note(f"f = {tree}, {triple}, x = {x.tolist()}, pivot {y.tolist()}")
    seen.claim(
        True, "certified", float(np.linalg.norm(y - x)) <= triple.pivot_radius * (1 + 1e-12),
        "the pivot is further away than the triple says",
    )  # fmt: skip
    pivot = [Fraction(float(q)).limit_denominator(1024) for q in y]
    hull = sorted(gradients(tree, pivot))
    for step in _around(rng, dim, triple.reach):
        z = [Fraction(float(q)).limit_denominator(1 << 20) for q in x + step * (1 - 2.0**-18)]
        for g in gradients(tree, z):
            gap = distance([[a - b for a, b in zip(h, g)] for h in hull])
            room = triple.modulus * float(np.linalg.norm([float(a - b) for a, b in zip(z, pivot)]))
            said = f"a gradient at {[str(q) for q in z]} is {gap!r} from those at the pivot"
            seen.claim(True, "certified", gap <= room + 1e-9, said)


def _target(rng: Rng, seen: Seen) -> None:
    """(eps', delta')-Goldstein implies (eps, delta)-near, on a line where both are known."""
    tree, dim = _independent(rng)
    if dim > 1:
        seen.silent("more than one variable")
        return
    F = tree.expression()
    eps, delta = float(rng.choice([0.1, 0.5])), float(rng.choice([0.1, 0.3, 1.0]))
    target = gs.goldstein_target(F, eps=eps, delta=delta)
    seen.note(f"f = {tree}, wanted ({eps}, {delta}), {target}")
    for x in rng.uniform(-4, 4, TRIED):
        here = exact([x])
        if below(target.eps, least(tree, here, Fraction(target.delta))):
            continue  # not Goldstein stationary, or not for sure
        # Kinks are at multiples of 1/4; between them the slope is constant.
        ends = [here[0] - Fraction(delta), here[0] + Fraction(delta)]
        tried = [*ends, *(Fraction(k, 8) for k in range(-48, 49))]
        true = min(least(tree, [y]) for y in tried if ends[0] <= y <= ends[1])
        seen.claim(
            True, "certified", not below(eps, true), f"at {x!r} nothing below {true!r} is near"
        )


ATTACK = Attack(
    "calculus",
    "clarke_distance, pivots, triples and Goldstein targets against brute force",
    weight=6,
    one=calculus,
)
