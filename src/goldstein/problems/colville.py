"""Colville's first problem, its data shared by the primal and the dual (Shell) form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goldstein.checker.arrays import Vector


class ColvilleData(NamedTuple):
    """Minimise d.x^3 + e.x + x'Cx subject to Ax >= b, x >= 0."""

    A: Vector
    b: Vector
    C: Vector
    d: Vector
    e: Vector


def colville_data() -> ColvilleData:
    """Return the constants of Colville (1968), IBM report 320-2949."""
    rows = (
        "-16 2 0 1 0; 0 -2 0 4 2; -3.5 0 2 0 0; 0 -2 0 -4 -1; 0 -9 -2 1 -2.8;"
        "2 0 -4 0 0; -1 -1 -1 -1 -1; -1 -2 -3 -2 -1; 1 2 3 4 5; 1 1 1 1 1"
    )
    quadratic = (
        "30 -20 -10 32 -10; -20 39 -6 -31 32; -10 -6 10 -6 -10; 32 -31 -6 39 -20; -10 32 -10 -20 30"
    )
    return ColvilleData(
        A=_matrix(rows),
        b=np.array([-40.0, -2.0, -0.25, -4.0, -4.0, -1.0, -40.0, -60.0, 5.0, 1.0]),
        C=_matrix(quadratic),
        d=np.array([4.0, 8.0, 10.0, 6.0, 2.0]),
        e=np.array([-15.0, -27.0, -36.0, -18.0, -12.0]),
    )


def _matrix(text: str) -> Vector:
    return np.array([[float(entry) for entry in row.split()] for row in text.split(";")])
