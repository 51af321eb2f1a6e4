"""The shortest vector of a hull plus a cone, in rational arithmetic.

An active set that is never wrong about a sign: Wolfe's algorithm (1976) with rows of a cone besides
those of a hull. Everything is a Fraction, so what it returns is the minimum, and 0 means 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

Row = Sequence[Fraction]


def dot(a: Row, b: Row) -> Fraction:
    return sum((p * q for p, q in zip(a, b)), Fraction(0))


def fractions(rows: Sequence[Sequence[float]]) -> list[list[Fraction]]:
    """Return rows of numbers, taken exactly."""
    return [[Fraction(entry) for entry in row] for row in rows]


def root_below(square: Fraction, bits: int = 100) -> Fraction:
    """Return a lower bound of a square root, close by 2^-bits."""
    scale = 1 << (2 * bits)
    return Fraction(isqrt(square.numerator * scale // square.denominator), 1 << bits)


def solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Solve a regular system by elimination."""
    n = len(right)
    rows = [[*row, b] for row, b in zip(matrix, right)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n):
            if i != k and rows[i][k]:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k])]
    return [rows[k][n] / rows[k][k] for k in range(n)]


def _best_of(rows: list[Row], in_hull: list[bool], active: list[int]) -> list[Fraction]:
    """Minimise |sum_i t_i rows_i| over the active rows, those of the hull adding up to 1."""
    n = len(active)
    matrix = [[dot(rows[i], rows[j]) for j in active] for i in active]
    ones = [Fraction(int(in_hull[i])) for i in active]
    matrix = [[*row, one] for row, one in zip(matrix, ones)] + [[*ones, Fraction(0)]]
    return solve(matrix, [Fraction(0)] * n + [Fraction(1)])[:n]


def shortest(hull: Sequence[Row], cone: Sequence[Row] = ()) -> list[Fraction]:
    """Return the shortest vector of conv(hull) + cone(cone).

    Examples
    --------
    >>> [str(entry) for entry in shortest(fractions([[1, 2], [1, -4]]), fractions([[-3, 1]]))]
    ['0', '0']
    >>> [str(entry) for entry in shortest(fractions([[2, 2], [1, -4]]), fractions([[3, 1]]))]
    ['60/37', '-10/37']
    """
    rows = [*hull, *cone]
    in_hull = [True] * len(hull) + [False] * len(cone)
    start = min(range(len(hull)), key=lambda i: dot(hull[i], hull[i]))
    weights = {start: Fraction(1)}
    while True:
        vector = [sum((t * rows[i][k] for i, t in weights.items()), Fraction(0))
                  for k in range(len(rows[0]))]  # fmt: skip
        square = dot(vector, vector)
        gains = [dot(row, vector) - (square if inside else 0) for row, inside in zip(rows, in_hull)]
        entering = min(range(len(rows)), key=lambda i: gains[i])
        if gains[entering] >= 0:
            return vector
        weights.setdefault(entering, Fraction(0))
        _descend(rows, in_hull, weights)


def _descend(rows: list[Row], in_hull: list[bool], weights: dict[int, Fraction]) -> None:
    """Move the weights to the minimum over their rows, or as far as none becomes negative."""
    while True:
        active = list(weights)
        best = dict(zip(active, _best_of(rows, in_hull, active)))
        falling = [i for i in active if best[i] <= 0]
        if not falling:
            weights.update(best)
            return
        step = min(weights[i] / (weights[i] - best[i]) for i in falling if weights[i] > best[i])
        for i in active:
            weights[i] += step * (best[i] - weights[i])
        # The rows that were left behind; the entering one is never among them.
        for i in [i for i in active if weights[i] <= 0]:
            del weights[i]


def length_below(vector: Row) -> float:
    """Return the length of a vector as a float that is no larger, but for its last digits."""
    return float(root_below(dot(vector, vector)))


def distance(hull: Sequence[Row], cone: Sequence[Row] = ()) -> float:
    """Return the distance between 0 and conv(hull) + cone(cone).

    Examples
    --------
    >>> distance(fractions([[3, 4], [6, 8]])), distance(fractions([[1, 0], [-1, 0]]))
    (5.0, 0.0)
    """
    return length_below(shortest(hull, cone))
