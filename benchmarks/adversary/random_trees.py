"""Random functions of one to three variables, with points that lie on their kinks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from benchmarks.adversary.suite import Rng
from benchmarks.adversary.trees import (
    KINKED,
    LINEAR,
    SMOOTH,
    Affine,
    LogSumExp,
    Max,
    Node,
    Norm2,
    Piecewise,
    Product,
    Sum,
    Tree,
    atom,
)


def small(rng: Rng, size: int) -> tuple[float, ...]:
    """Numbers that often coincide, and are often 0."""
    return tuple(float(a) for a in rng.integers(-2, 3, size) * rng.choice([1.0, 1.0, 0.5, 3.0]))


def rows(rng: Rng, dim: int, point: Sequence[Fraction]) -> list[Node]:
    """Return affine functions, most of which are 0 at the point, some equal, some constant."""
    matrix = [small(rng, dim) for _ in range(int(rng.integers(2, 5)))]
    if rng.random() < 0.3:
        matrix.append(matrix[0])
    if rng.random() < 0.3:
        matrix.append(tuple(a + b for a, b in zip(matrix[0], matrix[1])))
    offset = []
    for row in matrix:
        there = -sum((Fraction(a) * p for a, p in zip(row, point)), Fraction(0))
        if Fraction(float(there)) != there or rng.random() < 0.2:
            there = Fraction(int(rng.integers(-1, 2)))
        offset.append(float(there + (rng.choice([0, 0, 0, 1, -1]) if rng.random() < 0.5 else 0)))
    return [Affine(tuple(matrix), tuple(offset), k) for k in range(len(matrix))]


def _one(rng: Rng, choices: Sequence[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _step(rng: Rng, pool: list[Node], curved: bool) -> Node:
    """Return a further node over those that are there."""
    kind = rng.random()
    if kind < 0.55:
        names: Sequence[str] = LINEAR if not curved or rng.random() < 0.5 else KINKED
        common = rng.random() < 0.5
        return atom(_one(rng, ("relu", "abs")) if common else _one(rng, names), _one(rng, pool))
    if kind < 0.7:
        return Max(tuple(_one(rng, pool) for _ in range(int(rng.integers(2, 4)))))
    if kind < 0.85 or not curved:
        some = tuple(_one(rng, pool) for _ in range(int(rng.integers(1, 4))))
        return Sum(some, small(rng, len(some)), float(rng.choice([0.0, 0.0, 1.0, -0.5])))
    return Product((_one(rng, pool), _one(rng, pool)))


def _irrational(rng: Rng, pool: list[Node], dim: int) -> Node:
    """Return a kink whose argument has an irrational slope, and bends: log 2 u - u^2."""
    nothing = Affine(((0.0,) * dim,), (float(rng.choice([0.0, 1.0])),), 0)
    u = _one(rng, pool)
    steep = Product((atom(str(rng.choice(["softplus", "logistic"])), nothing), u))
    bent = Product((u, _one(rng, [u, *pool])))
    inner = Sum((steep, bent), tuple(float(f) for f in rng.choice([1.0, -1.0], 2)))
    return atom(str(rng.choice(["relu", "abs"])), inner)


def _end(rng: Rng, pool: list[Node]) -> Node:
    """Return a node that only a sum may stand over: it has gradients without end, or irrational."""
    some = tuple(_one(rng, pool) for _ in range(int(rng.integers(1, 4))))
    kind = rng.random()
    if kind < 0.35:
        return Norm2(some)
    return LogSumExp(some) if kind < 0.6 else atom(_one(rng, SMOOTH), some[0])


def random_tree(rng: Rng, dim: int, point: Sequence[Fraction], *, curved: bool) -> Tree:
    """Return a function with kinks through the point."""
    pool = rows(rng, dim, point)
    for _ in range(int(rng.integers(2, 6))):
        pool.append(_step(rng, pool, curved))
    if curved and rng.random() < 0.3:
        pool.append(_irrational(rng, pool, dim))
    kinks = [node for node in pool if isinstance(node, Piecewise | Max | Product)] or pool
    if curved and rng.random() < 0.2:  # nothing else hides what becomes of an irrational slope
        some = [_irrational(rng, pool[:2], dim) for _ in range(int(rng.integers(1, 4)))]
        return Tree(Sum(tuple(some), tuple(rng.choice([1.0, -1.0], len(some)).tolist())), dim)
    parts = [_one(rng, kinks) for _ in range(int(rng.integers(1, 4)))] + [pool[-1]]
    parts.append(pool[0])
    if curved and rng.random() < 0.4:
        parts.append(_end(rng, pool))
    factors = tuple(float(f) for f in rng.choice([1.0, -1.0, 2.0, 0.5, -0.25, 3.0], len(parts)))
    return Tree(Sum(tuple(parts), factors), dim)


def two_sided(rng: Rng, dim: int, point: Sequence[Fraction]) -> Tree:
    """Return a sum of kinks with any two slopes, written as programs write them.

    At a tie automatic differentiation says 0 for r relu(u) - l relu(-u), whatever r and l are.
    """
    parts: list[Node] = []
    factors: list[float] = []
    for u in rows(rng, dim, point)[: int(rng.integers(1, 4))]:
        left, right = (float(a) for a in rng.choice([1.0, 2.0, 0.5, -1.0, 3.0], 2))
        parts += [atom("relu", u), atom("relu", Sum((u,), (-1.0,)))]
        factors += [right, -left]
    return Tree(Sum(tuple(parts), tuple(factors)), dim)
