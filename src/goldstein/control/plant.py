"""Plants, and the closed loops that feedbacks of a given structure make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError


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

    def closed_loop(self, K: Matrix) -> System:
        """Return the system from w to z under u = K y."""
        return System(
            self.A + self.B @ K @ self.C, self.B1 + self.B @ K @ self.D21,
            self.C1 + self.D12 @ K @ self.C, self.D11 + self.D12 @ K @ self.D21,
        )  # fmt: skip


def _matrix(name: str, value: Any) -> Matrix:
    matrix = np.array(value, dtype=np.float64, ndmin=2)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise InputError(f"{name} must be a matrix of finite numbers.")
    matrix.setflags(write=False)
    return matrix
