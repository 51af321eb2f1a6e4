"""Rows of affine parts of a function, exactly: asked from the program of the checker."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from goldstein.checker.enclosed.part import Part
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Piecewise
from goldstein.checker.sides import Program

Row = dict[int, Fraction]


def affine_row(program: Program, k: int, entry: int) -> tuple[Row, Fraction]:
    """Return the coefficients of an entry of an affine node, and its constant."""
    nodes = enumerate(program.nodes[: k + 1])
    pieces = {b: np.zeros(n.size, np.intp) for b, n in nodes if isinstance(n, Piecewise)}
    part = Part(program, pieces, k, [entry])
    slopes = part.backward(Exact.of([1]), {}).fractions
    (constant,) = part.series(np.zeros(program.dim))[0].fractions
    return {i: a for i, a in zip(part.places.tolist(), slopes) if a}, constant
