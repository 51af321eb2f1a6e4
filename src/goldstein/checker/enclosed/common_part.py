"""Limits of gradients along many directions in one pass, where only rows of a matrix are tied.

The tied entries belong to one node, a function of rows times the variable plus constants; what is
above it is smooth here, for nothing else is tied. Along every direction the rest adds the same;
each tied row adds, or not, the jump of its derivative times the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.enclosed.float_dot import float_dot
from goldstein.checker.nodes import Affine, Piecewise
from goldstein.checker.rounding import UNIT, norm_upper
from goldstein.checker.sides import Side

if TYPE_CHECKING:
    from goldstein.checker.enclosed.point import EnclosedPoint

#: Entries of the rows on kinks, or of the gradients, up to which they are written out.
WRITTEN_OUT = 10**7

#: Entries that are enclosed at a time.
BLOCK = 2**14


def limits(point: EnclosedPoint, directions: Matrix) -> tuple[Matrix, Matrix] | None:
    """Return midpoints and radii of the limits, or None where this is not the place for it."""
    program = point.program
    if len(point.ties) != 1 or len(directions) < 2 or directions.dtype != np.float64:
        return None
    ((k, ties),) = point.ties.items()
    node, source = program.nodes[k], program.nodes[program.nodes[k].of[0]]
    if not (isinstance(node, Piecewise) and isinstance(source, Affine) and source.of == (0,)):
        return None
    plain = source.columns == 1 and source.divisor is None
    if not plain or max(len(ties), len(directions)) * program.dim > WRITTEN_OUT:
        return None
    some: Any = source.matrix[np.array(list(ties))]
    rows: Matrix = np.asarray(some.toarray() if hasattr(some, "toarray") else some)
    # An entry whose row is 0 is constant, and stays on its breakpoint for good.
    moving: NDArray[np.bool_] = np.asarray(rows.any(axis=1))
    ties = {i: level for (i, level), moves in zip(ties.items(), moving) if moves}
    jumps = [node.jumps[level] for level in ties.values()]
    if not ties or not all(jumps):
        return None
    rows = rows[moving]
    sides = signs_of_products(directions, rows)
    if not sides.all():
        return None  # a direction that stays on a kink: to be looked at one by one
    slopes = Side(point, None, nodes=[]).cotangents()  # the pieces at the point itself
    weights = slopes[k][list(ties)] * Enclosure.of(jumps)
    mid, rad = np.empty((len(directions), program.dim)), np.empty(program.dim)
    above = Enclosure((sides > 0).astype(np.float64))
    step = max(1, BLOCK // max(sides.shape))
    for start in range(0, program.dim, step):
        block = slice(start, start + step)
        part = slopes[0][block] + above @ (Enclosure(rows[:, block]) * weights.reshape(-1, 1))
        # One radius per coordinate, the largest, serves all directions.
        mid[:, block], rad[block] = part.mid, part.rad.max(axis=0)
    return mid, np.broadcast_to(rad, mid.shape)


@np.errstate(all="ignore")
def signs_of_products(left: Matrix, right: Matrix) -> NDArray[np.int8]:
    """Return the exact signs of all inner products of a row of `left` and one of `right`."""
    d = left.shape[1]
    value = left @ right.T
    sizes = [np.array([norm_upper(row) for row in rows]) for rows in (left, right)]
    # Twice the bound of the rounding errors, for those of the bound itself; and underflow.
    error = 2 * (d + 4) * UNIT * np.multiply.outer(*sizes) + (d + 2) * 2.0**-1000
    decided = np.abs(value) > error  # False wherever something overflowed
    signs = np.where(decided, np.sign(value), 0).astype(np.int8)
    for i, j in zip(*np.nonzero(~decided)):
        exact = float_dot(left[i], right[j])
        signs[i, j] = (exact > 0) - (exact < 0)
    return signs


__all__ = ["limits", "signs_of_products"]
