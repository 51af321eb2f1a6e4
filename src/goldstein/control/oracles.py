"""Spectral abscissa, spectral radius and H-infinity norm as functions with exact gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag, eig, eigvals

from goldstein.checker.arrays import Matrix, Vector
from goldstein.control.plant import AffineMatrix, Plant, System
from goldstein.errors import KinkError
from goldstein.oracles import Oracle

#: Relative accuracy of the level-set method, and its most rounds.
ACCURACY, ROUNDS = 1e-12, 60

#: Eigenvectors of left and right this near to orthogonal have no gradient: a double integrator.
DEFECTIVE = 1e-8

#: Eigenvalues this near to the imaginary axis, relative to their size, count as on it.
NEAR_AXIS = 1e-5


class _Eigenvalue(Oracle):
    """The largest real part, or modulus, of the eigenvalues of a matrix, but not below `floor`."""

    def __init__(self, matrix_of: AffineMatrix, modulus: bool, floor: float) -> None:
        self.matrix_of, self.modulus, self.floor = matrix_of, modulus, floor
        self.dim = matrix_of.dim

    @property
    def name(self) -> str:
        return "spectral radius" if self.modulus else "spectral abscissa"

    def value(self, x: Vector) -> float:
        values = np.linalg.eigvals(self.matrix_of(x))
        return max(float((np.abs(values) if self.modulus else values.real).max()), self.floor)

    def gradient(self, y: Vector) -> Vector:
        M = self.matrix_of
        values, left, right = eig(M(y), left=True)
        j = int((np.abs(values) if self.modulus else values.real).argmax())
        if (abs(values[j]) if self.modulus else values[j].real) < self.floor:
            return np.zeros(M.dim)
        slope = left[:, j].conj() @ right[:, j]
        if abs(slope) < DEFECTIVE:
            raise KinkError(f"the {self.name} has no gradient at a defective eigenvalue", y)
        turn = np.conj(values[j]) / abs(values[j]) if self.modulus and values[j] else 1.0
        table = np.outer(left[:, j].conj() @ M.left, M.right @ right[:, j]) * (turn / slope)
        answer: Vector = table.real[M.free]
        return answer


def abscissa(matrix_of: AffineMatrix, floor: float = -math.inf) -> Oracle:
    """Return the largest real part of the eigenvalues of M(x); negative: x' = M x is stable.

    With a floor the function is constant where that is lower: stable enough.

    Examples
    --------
    >>> plant = Plant([[0.0, 1.0], [-1.0, 0.0]], [[0.0], [1.0]], [[0.0, 1.0]])
    >>> abscissa(plant.feedback()).value(np.array([-1.0]))
    -0.5
    """
    return _Eigenvalue(matrix_of, modulus=False, floor=floor)


def radius(matrix_of: AffineMatrix, floor: float = 0.0) -> Oracle:
    """Return the largest modulus of the eigenvalues of M(x); below 1: x+ = M x is stable."""
    return _Eigenvalue(matrix_of, modulus=True, floor=floor)


class HInfNorm(Oracle):
    """The H-infinity norm of the closed loop in the free entries of K; infinite if unstable."""

    def __init__(self, plant: Plant, structure: ArrayLike | None = None) -> None:
        self.plant, self.loop = plant, plant.feedback(structure)
        self.dim = self.loop.dim
        self._seen: tuple[bytes, float, float] = (b"", 0.0, 0.0)

    @property
    def name(self) -> str:
        return f"hinfnorm of {self.plant.name}"

    def gain(self, x: Vector) -> Matrix:
        """Return K."""
        return self.loop.gain(x)

    def peak(self, x: Vector) -> tuple[float, float]:
        """Return the norm and the frequency where it is attained."""
        key = np.asarray(x, dtype=float).tobytes()
        if self._seen[0] != key:
            self._seen = key, *peak_gain(self.plant.closed_loop(self.gain(x)))
        return self._seen[1:]

    def value(self, x: Vector) -> float:
        return self.peak(x)[0]

    def gradient(self, y: Vector) -> Vector:
        norm, omega = self.peak(y)
        if not math.isfinite(norm):
            # Where the loop is unstable there is no norm: the way to the left half plane.
            return abscissa(self.loop).gradient(y)
        p, loop = self.plant, self.plant.closed_loop(self.gain(y))
        resolvent = _resolvent(loop.A, omega)
        u, _, vh = np.linalg.svd(loop.C @ resolvent @ loop.B + loop.D)
        left = u[:, 0].conj() @ (p.D12 + loop.C @ resolvent @ p.B)
        right = (p.C @ resolvent @ loop.B + p.D21) @ vh[0].conj()
        answer: Vector = np.real(np.outer(left, right))[self.loop.free]
        return answer


def hinfnorm(plant: Plant, structure: ArrayLike | None = None) -> HInfNorm:
    """Return the H-infinity norm of the closed loop as a function of the feedback.

    Parameters
    ----------
    plant : Plant
        `plant.with_states(k)` for controllers of order k.
    structure : array_like of bool, optional
        Which entries of K are variables; the others are 0. Default: all.

    Examples
    --------
    >>> f = hinfnorm(Plant([[-1.0]], [[1.0]], [[1.0]], D12=[[0.0]]))
    >>> f.value(np.array([-1.0])), f.gradient(np.array([-1.0]))
    (0.5, array([0.25]))
    """
    return HInfNorm(plant, structure)


def _resolvent(A: Matrix, omega: float) -> Any:
    if math.isinf(omega):
        return np.zeros(A.shape)
    return np.linalg.inv(1j * omega * np.eye(len(A)) - A)


def largest_gain(system: System, omega: float) -> float:
    """Return the largest singular value of the transfer function at a frequency."""
    A, B, C, D = system
    return float(np.linalg.norm(C @ _resolvent(A, omega) @ B + D, 2))


def peak_gain(system: System) -> tuple[float, float]:
    """Return the H-infinity norm and where it is attained, by level sets; infinite if unstable.

    The frequencies where some singular value equals a level are eigenvalues of a Hamiltonian matrix
    (Boyd, Balakrishnan and Kabamba 1989); the largest gain at the middles of the intervals between
    them is the next level (Bruinsma and Steinbuch 1990).
    """
    values = np.linalg.eigvals(system.A)
    if not values.real.max() < 0.0:
        return math.inf, 0.0
    tried = [0.0, math.inf, *np.abs(values.imag), *np.abs(values)]
    best, where = max((largest_gain(system, w), w) for w in tried)
    for _ in range(ROUNDS):
        level = best * (1.0 + 2.0 * ACCURACY) + 1e-300
        found = _level_eigenvalues(system, level)
        # One that is no crossing splits an interval and does no harm; a missed one would.
        size = NEAR_AXIS * (1.0 + np.abs(found))
        crossings = np.sort(np.abs(found.imag[np.abs(found.real) <= size]))
        if not crossings.size:
            break
        edges = np.concatenate([[0.0], np.unique(crossings), [2.0 * crossings[-1] + 1.0]])
        places = np.concatenate([(edges[1:] + edges[:-1]) / 2.0, crossings])
        higher, at = max((largest_gain(system, w), w) for w in places)
        if higher <= level:
            break
        best, where = higher, at
    return _polished(system, best, where)


def _level_eigenvalues(system: System, level: float) -> Any:
    """Return the eigenvalues whose imaginary ones are frequencies with a singular value `level`.

    They belong to x' = A x + B w, p' = -A'p - C'z, level z = C x + D w, level w = B'p + D'z. What
    w and z do not reach is a pencil in x and p; to solve for w and z would be to invert
    level^2 - D'D, which says nothing any more where the norm is hardly more than the one of D.
    """
    A, B, C, D = system
    z, w = D.shape
    states = np.vstack([block_diag(A, -A.T), block_diag(C, B.T)])
    signals = np.vstack([
        block_diag(B, -C.T), np.block([[D, -level * np.eye(z)], [-level * np.eye(w), D.T]])
    ])  # fmt: skip
    rows = np.linalg.qr(signals, mode="complete")[0][:, w + z :].T
    found = eigvals(rows @ states, rows[:, : 2 * len(A)])
    return found[np.isfinite(found)]


def _polished(system: System, best: float, where: float) -> tuple[float, float]:
    """Move the frequency to the top of its hill, by parabolas through three points."""
    if where == 0.0 or math.isinf(where):
        return best, where
    step = 1e-3 * where
    for _ in range(40):
        low, high = largest_gain(system, where - step), largest_gain(system, where + step)
        bend = low - 2.0 * best + high
        move = 0.5 * step * (low - high) / bend if bend < 0.0 else 0.0
        trial = where + float(np.clip(move, -step, step))
        gain = largest_gain(system, trial)
        if gain > best:
            best, where = gain, trial
        step *= 0.3
        if step <= 1e-9 * where:
            break
    return best, where
