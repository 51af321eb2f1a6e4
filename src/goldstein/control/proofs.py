"""Stability and norms proved in rational arithmetic: a matrix that anybody can check.

`verify` forms the closed loop of the float64 numbers of plant and feedback in rationals, without
rounding, and looks for positive pivots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from goldstein.checker.arrays import Matrix
from goldstein.control.oracles import peak_gain
from goldstein.control.plant import Plant, System

#: Bits that a matrix of a proof keeps: enough for the inequality, and few for the pivots.
BITS = 40

#: Parts of the room between norm and bound that the Riccati equation may use, as tried.
SHARES = (0.5, 0.1, 0.9, 0.01)

#: A matrix of `Fraction`.
Exact = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Stability:
    """Proof that x' = (A + B K C) x is stable: P > 0 and A'P + PA < 0, a Lyapunov matrix."""

    K: Matrix
    P: Matrix

    def verify(self, plant: Plant) -> bool:
        """Check both inequalities in rational arithmetic."""
        if not _is_about(self, plant):
            return False
        A = exact_loop(plant, self.K)[0]
        P = exact(self.P)
        left = A.T @ P
        return is_symmetric(P) and is_positive(P) and is_positive(-left - left.T)


@dataclass(frozen=True, eq=False)
class NormBound:
    """Proof that the loop is stable with H-infinity norm below `gamma`: the bounded real lemma.

    With P > 0 the matrix [[A'P + PA, PB, C'], [B'P, -gamma, D'], [C, D, -gamma]] is negative.
    """

    K: Matrix
    P: Matrix
    gamma: float

    def verify(self, plant: Plant) -> bool:
        """Check both inequalities in rational arithmetic."""
        if not (_is_about(self, plant) and 0.0 < self.gamma < math.inf):
            return False
        A, B, C, D = exact_loop(plant, self.K)
        P, g = exact(self.P), Fraction(self.gamma)
        left, PB = A.T @ P, P @ B
        (z, w), one = D.shape, exact(np.eye(max(D.shape)))
        total = np.block([
            [left + left.T, PB, C.T], [PB.T, -g * one[:w, :w], D.T], [C, D, -g * one[:z, :z]]
        ])  # fmt: skip
        return is_symmetric(P) and is_positive(P) and is_positive(-total)


def _is_about(claim: Stability | NormBound, plant: Plant) -> bool:
    """Whether the matrices of a claim are finite and of the sizes of the plant."""
    K, P = np.asarray(claim.K, dtype=float), np.asarray(claim.P, dtype=float)
    sizes = K.shape == (plant.B.shape[1], len(plant.C)) and P.shape == plant.A.shape
    return sizes and bool(np.isfinite(K).all() and np.isfinite(P).all())


def exact(M: Any) -> Exact:
    """Return a matrix of floats in rationals."""
    rational: Exact = np.vectorize(Fraction, otypes=[object])(np.asarray(M, dtype=float))
    return rational


def exact_loop(plant: Plant, K: Matrix) -> tuple[Exact, Exact, Exact, Exact]:
    """Return the matrices of the closed loop without rounding."""
    gain, right, far = exact(K), exact(plant.C), exact(plant.D21)
    left, low = exact(plant.B) @ gain, exact(plant.D12) @ gain
    return (
        exact(plant.A) + left @ right, exact(plant.B1) + left @ far,
        exact(plant.C1) + low @ right, exact(plant.D11) + low @ far,
    )  # fmt: skip


def is_symmetric(M: Exact) -> bool:
    return bool((M == M.T).all())


def is_positive(M: Exact) -> bool:
    """Return whether a symmetric matrix is positive definite: all pivots are positive.

    Examples
    --------
    >>> is_positive(exact([[2.0, 1.0], [1.0, 1.0]])), is_positive(exact([[1.0, 1.0], [1.0, 1.0]]))
    (True, False)
    """
    rows = M.copy()
    for k, pivot in enumerate(rows):
        if pivot[k] <= 0:
            return False
        below = k + 1 + np.flatnonzero(rows[k + 1 :, k])
        rows[below, k:] -= np.outer(rows[below, k] / pivot[k], pivot[k:])
    return True


def prove_stability(plant: Plant, K: Matrix) -> Stability | None:
    """Return a proof that K makes the plant stable, or None."""
    A = plant.closed_loop(K).A
    if not np.linalg.eigvals(A).real.max() < 0.0:
        return None
    P = linalg.solve_continuous_lyapunov(A.T, -np.eye(len(A)))
    for bits in (BITS, 52):
        claim = Stability(np.array(K), _rounded(P, bits))
        if np.isfinite(P).all() and claim.verify(plant):
            return claim
    return None


def prove_norm(plant: Plant, K: Matrix, gamma: float) -> NormBound | None:
    """Return a proof that the norm of the closed loop is below gamma, or None."""
    loop = plant.closed_loop(K)
    if not np.linalg.eigvals(loop.A).real.max() < 0.0:
        return None
    for share in SHARES:
        P = _bounded_real(loop, gamma, share)
        if P is None:
            continue
        for bits in (BITS, 52):
            claim = NormBound(np.array(K), _rounded(P, bits), float(gamma))
            if claim.verify(plant):
                return claim
    return None


def _bounded_real(system: System, gamma: float, share: float) -> Matrix | None:
    """Return P with room in the inequality: of the Riccati equation for more output, less gamma."""
    # In balanced coordinates; powers of two round nothing on the way back.
    A, (scale, _) = linalg.matrix_balance(system.A, permute=False, separate=True)
    level = gamma * (1.0 - 0.5e-6)
    size = math.sqrt(level)
    B, C = system.B / scale[:, None] / size, system.C * scale / size
    D = system.D / level  # the norm is below 1 now
    # Half of the room is left to w and z; what may be added to C'C is a part of the other half.
    one = np.eye(len(A))
    inner = peak_gain(System(A, B, one, np.zeros(B.shape)))[0]
    Q = C.T @ C + share * 1e-6 / max(inner, 1e-100) ** 2 * one
    try:
        P = linalg.solve_continuous_are(A, B, Q, D.T @ D - np.eye(B.shape[1]), s=C.T @ D)
    except (linalg.LinAlgError, ValueError):
        return None
    return P / scale / scale[:, None] if np.isfinite(P).all() else None


def _rounded(P: Matrix, bits: int) -> Matrix:
    """Return a symmetric matrix with few bits per entry, relative to its rows and columns."""
    P = (P + P.T) / 2.0
    if bits >= 52:
        return P
    root = np.sqrt(np.maximum(np.abs(np.diag(P)), 1e-300))
    unit = 2.0 ** (np.floor(np.log2(np.outer(root, root))) - bits)
    return np.round(P / unit) * unit
