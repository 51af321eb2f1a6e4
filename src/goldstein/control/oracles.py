"""Spectral abscissa, spectral radius and H-infinity norm as functions with exact gradients.

Plants, and the closed loops that feedbacks of a given structure make of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag, eig, eigvals

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError, KinkError
from goldstein.oracles import Oracle


class System(NamedTuple):
    """x' = A x + B w, z = C x + D w."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix


@dataclass(frozen=True)
class AffineMatrix:
    """The matrix base + sum_i x_i left[:, r_i] right[s_i, :] of the free entries (r_i, s_i) of K.

    Attributes
    ----------
    base, left, right : ndarray
        M(K) = base + left K right.
    free : ndarray of bool
        Entries of K that are variables, row by row; the others are 0.
    """

    base: Matrix
    left: Matrix
    right: Matrix
    free: NDArray[np.bool_]

    @property
    def dim(self) -> int:
        return int(self.free.sum())

    def gain(self, x: Vector) -> Matrix:
        """Return K."""
        K = np.zeros(self.free.shape)
        K[self.free] = x
        return K

    def __call__(self, x: Vector) -> Matrix:
        return self.base + self.left @ self.gain(x) @ self.right


@dataclass(frozen=True, eq=False)
class Plant:
    """x' = A x + B1 w + B u, z = C1 x + D11 w + D12 u, y = C x + D21 w.

    Parameters
    ----------
    A, B, C : array_like
        Dynamics, inputs of the controller, measurements.
    B1, C1, D11, D12, D21 : array_like, optional
        Disturbances and what is to be kept small. Without B1 and C1 as in COMPleib: both are the
        identity, and the last rows of z contain the controls.
    name : str

    Examples
    --------
    >>> Plant([[1.0]], [[1.0]], [[1.0]]).closed_loop(np.array([[-3.0]])).A
    array([[-2.]])
    """

    A: Any
    B: Any
    C: Any
    B1: Any = None
    C1: Any = None
    D11: Any = None
    D12: Any = None
    D21: Any = None
    name: str = "plant"

    def __post_init__(self) -> None:
        (n, _), (_, m), (p, _) = (np.atleast_2d(M).shape for M in (self.A, self.B, self.C))
        if 0 in (n, m, p):
            raise InputError(f"a plant needs states, controls and measurements, got {n}, {m}, {p}.")
        B1 = np.eye(n) if self.B1 is None else _matrix("B1", self.B1)
        C1 = np.eye(n) if self.C1 is None else _matrix("C1", self.C1)
        w, z = B1.shape[1], len(C1)
        D12 = self.D12
        if D12 is None:
            if z < m:
                raise InputError(f"z has {z} entries for {m} controls; give D12.")
            D12 = np.vstack([np.zeros((z - m, m)), np.eye(m)])
        given = {
            "A": (self.A, (n, n)), "B": (self.B, (n, m)), "C": (self.C, (p, n)),
            "B1": (B1, (n, w)), "C1": (C1, (z, n)), "D12": (D12, (z, m)),
            "D11": (np.zeros((z, w)) if self.D11 is None else self.D11, (z, w)),
            "D21": (np.zeros((p, w)) if self.D21 is None else self.D21, (p, w)),
        }  # fmt: skip
        for name, (value, shape) in given.items():
            matrix = _matrix(name, value)
            if matrix.shape != shape:
                raise InputError(f"{name} must have shape {shape}, got {matrix.shape}.")
            object.__setattr__(self, name, matrix)

    @classmethod
    def from_control(cls, system: Any, controls: int, measurements: int) -> Plant:
        """Return the plant of a `control.StateSpace` whose last inputs are u and last outputs y."""
        A, B, C, D = (
            np.asarray(part, dtype=float) for part in (system.A, system.B, system.C, system.D)
        )
        if D[-measurements:, -controls:].any():
            raise InputError("the controls must not act on the measurements directly (D22 = 0).")
        return cls(
            A, B[:, -controls:], C[-measurements:], B[:, :-controls], C[:-measurements],
            D[:-measurements, :-controls], D[:-measurements, -controls:],
            D[-measurements:, :-controls],
        )  # fmt: skip

    def with_states(self, order: int) -> Plant:
        """Return the plant whose static feedbacks [[D, C], [B, A]] are controllers with states."""
        if order == 0:
            return self
        k, w, z = order, self.B1.shape[1], len(self.C1)
        one = np.eye(k)
        return Plant(
            block_diag(self.A, 0.0 * one), block_diag(self.B, one), block_diag(self.C, one),
            np.vstack([self.B1, np.zeros((k, w))]), np.hstack([self.C1, np.zeros((z, k))]),
            self.D11, np.hstack([self.D12, np.zeros((z, k))]),
            np.vstack([self.D21, np.zeros((k, w))]), name=f"{self.name}, order {order}",
        )  # fmt: skip

    def feedback(self, structure: ArrayLike | None = None) -> AffineMatrix:
        """Return A + B K C as a function of the entries of K that a mask leaves free."""
        shape = self.B.shape[1], len(self.C)
        free = np.ones(shape, bool) if structure is None else np.array(structure, dtype=bool)
        if free.shape != shape or not free.any():
            raise InputError(
                f"structure must be a mask of shape {shape} with free entries; got {free.shape}."
            )
        return AffineMatrix(self.A, self.B, self.C, free)

    def closed_loop(self, K: Any, kind: Callable[[Any], Any] = np.asarray) -> System:
        """Return the system from w to z under u = K y, in numbers of a kind: floats, rationals."""
        left, low, right, far = map(kind, (self.B, self.D12, self.C, self.D21))
        left, low = left @ kind(K), low @ kind(K)
        return System(
            kind(self.A) + left @ right, kind(self.B1) + left @ far,
            kind(self.C1) + low @ right, kind(self.D11) + low @ far,
        )  # fmt: skip


def _matrix(name: str, value: Any) -> Matrix:
    matrix = np.array(value, dtype=np.float64, ndmin=2)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise InputError(f"{name} must be a matrix of finite numbers.")
    matrix.setflags(write=False)
    return matrix


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
        return table.real[M.free]


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

    def peak(self, x: Vector) -> tuple[float, float]:
        """Return the norm and the frequency where it is attained."""
        key = np.asarray(x, dtype=float).tobytes()
        if self._seen[0] != key:
            self._seen = key, *peak_gain(self.plant.closed_loop(self.loop.gain(x)))
        return self._seen[1:]

    def value(self, x: Vector) -> float:
        return self.peak(x)[0]

    def gradient(self, y: Vector) -> Vector:
        norm, omega = self.peak(y)
        if not math.isfinite(norm):
            # Where the loop is unstable there is no norm: the way to the left half plane.
            return abscissa(self.loop).gradient(y)
        p, loop = self.plant, self.plant.closed_loop(self.loop.gain(y))
        resolvent = _resolvent(loop.A, omega)
        u, _, vh = np.linalg.svd(loop.C @ resolvent @ loop.B + loop.D)
        left = u[:, 0].conj() @ (p.D12 + loop.C @ resolvent @ p.B)
        right = (p.C @ resolvent @ loop.B + p.D21) @ vh[0].conj()
        return np.real(np.outer(left, right))[self.loop.free]


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
