"""Stability and H-infinity bounds decided with fractions alone; nothing of the package is imported.

A second opinion on `Stability` and `NormBound`: plain lists, an LDL' factorisation, and for the
bound the Riccati inequality instead of the matrix with three blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

#: Rows of fractions.
Rows = list[list[Fraction]]


def rows(matrix: Iterable[Iterable[float]]) -> Rows:
    """Return a matrix of floats without rounding; NaN and infinity raise."""
    return [[Fraction(float(entry)) for entry in row] for row in matrix]


def times(X: Rows, Y: Rows) -> Rows:
    columns = transposed(Y)
    return [[sum((a * b for a, b in zip(x, y, strict=True)), Fraction()) for y in columns]
            for x in X]  # fmt: skip


def plus(X: Rows, Y: Rows, factor: Fraction | int = 1) -> Rows:
    return [[a + factor * b for a, b in zip(x, y, strict=True)] for x, y in zip(X, Y, strict=True)]


def transposed(X: Rows) -> Rows:
    return [list(column) for column in zip(*X, strict=True)]


def identity(n: int, factor: Fraction | int = 1) -> Rows:
    return [[Fraction(factor if i == j else 0) for j in range(n)] for i in range(n)]


def factorised(S: Rows) -> tuple[Rows, list[Fraction]]:
    """Return L and d of S = L diag(d) L', L with ones on its diagonal; d ends at the first <= 0."""
    L, d = identity(len(S)), list[Fraction]()
    for j in range(len(S)):
        d.append(S[j][j] - sum(L[j][k] ** 2 * d[k] for k in range(j)))
        if d[j] <= 0:
            break
        for i in range(j + 1, len(S)):
            L[i][j] = (S[i][j] - sum(L[i][k] * L[j][k] * d[k] for k in range(j))) / d[j]
    return L, d


def is_positive(S: Rows) -> bool:
    """Whether a matrix is symmetric and positive definite."""
    return transposed(S) == S and factorised(S)[1][-1] > 0


def weighed(S: Rows, X: Rows) -> Rows:
    """Return X' S^-1 X of a positive S: with L Y = X it is Y' diag(1 / d) Y."""
    L, d = factorised(S)
    Y: Rows = []
    for i, row in enumerate(X):
        Y.append([x - sum((L[i][k] * Y[k][c] for k in range(i)), Fraction())
                  for c, x in enumerate(row)])  # fmt: skip
    return times(transposed(Y), [[y / pivot for y in row] for row, pivot in zip(Y, d, strict=True)])


def closed_loop(plant: Any, K: Any) -> tuple[Rows, Rows, Rows, Rows]:
    """Return A, B, C, D of the system from w to z under u = K y."""
    gain = rows(K)
    left, low = times(rows(plant.B), gain), times(rows(plant.D12), gain)
    return (
        plus(rows(plant.A), times(left, rows(plant.C))),
        plus(rows(plant.B1), times(left, rows(plant.D21))),
        plus(rows(plant.C1), times(low, rows(plant.C))),
        plus(rows(plant.D11), times(low, rows(plant.D21))),
    )


def is_stable(plant: Any, K: Any, P: Any) -> bool:
    """Whether P > 0 and A'P + PA < 0 for the closed loop."""
    A, P = closed_loop(plant, K)[0], rows(P)
    PA = times(P, A)
    decay = [[-a for a in row] for row in plus(PA, transposed(PA))]
    return is_positive(P) and is_positive(decay)


def is_bounded(plant: Any, K: Any, P: Any, gamma: float) -> bool:
    """Whether P > 0 proves that the closed loop is stable with a norm below gamma.

    With R = gamma - D'D / gamma > 0: A'P + PA + C'C / gamma + S R^-1 S' < 0 for
    S = PB + C'D / gamma.
    """
    A, B, C, D = closed_loop(plant, K)
    P, g = rows(P), Fraction(gamma)
    R = plus(identity(len(B[0]), g), times(transposed(D), D), -1 / g)
    if not (g > 0 and is_positive(P) and is_positive(R)):
        return False
    PA = times(P, A)
    S = plus(times(P, B), times(transposed(C), D), 1 / g)
    total = plus(plus(PA, transposed(PA)), times(transposed(C), C), 1 / g)
    total = plus(total, weighed(R, transposed(S)))
    return is_positive([[-a for a in row] for row in total])
