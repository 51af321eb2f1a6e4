"""The kinks of a function as searches see them, and the pieces around one point.

What holds at a point is asked from the program of the checker, exactly; everything else is float64.
When all kinks through y are kinks of affine entries and none feeds another, the gradients of the
pieces around y are `base + sum of slope_i row_i over the kinks on whose upper side the piece lies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from goldstein.calculus.evaluation import Evaluation, Pieces, has_kinks
from goldstein.calculus.expression import Expression
from goldstein.calculus.rows import Row, affine_row
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.nodes import Piecewise
from goldstein.checker.rationals import nearest_float, to_fractions
from goldstein.checker.sides import Numbers, Point, Program, Side, point_at
from goldstein.errors import NotCertifiableError


class Kink(NamedTuple):
    """An entry of the argument of node k on a breakpoint, by its number; or in a row of ties."""

    k: int
    entry: int
    level: int


class Kinks:
    """A function seen through its kinks.

    Attributes
    ----------
    program : Program
    evaluation : Evaluation
        The same nodes in float64.
    places : list of int
        The nodes that have kinks.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> kinks = Kinks(sum(abs(Variable(2))))
    >>> [kink.entry for kink in kinks.active(kinks.examine([0.0, 1.0]))]
    [0]
    """

    def __init__(self, fun: Expression | Program) -> None:
        self.program = fun if isinstance(fun, Program) else fun.program()
        self.nodes, self.dim = self.program.nodes, self.program.dim
        self.evaluation = Evaluation(self.nodes)
        self.places = [k for k, node in enumerate(self.nodes) if has_kinks(node)]
        self._point: tuple[Any, Point] | None = None
        self._tape: tuple[bytes, Vector] = b"", np.zeros(0)

    # --- exactly -------------------------------------------------------------------------------

    def examine(self, y: Numbers, gradients: int = 1, box: Any = None) -> Point:
        """Decide on which side of every kink a point lies, or that it is on it.

        With a box, radii and switches: of a point in it.
        """
        if box is not None:
            return point_at(self.program, y, gradients, box)
        key = self.program.is_small(gradients), tuple(to_fractions(y))
        if self._point is None or self._point[0] != key:
            self._point = key, point_at(self.program, y, gradients)
        return self._point[1]

    def active(self, point: Point) -> list[Kink]:
        """Return the kinks through a point that it can leave, those of all nodes in one list."""
        side, found = Side(point, None, nodes=[]), list[Kink]()
        for k, ties in point.ties.items():
            node, arg = self.nodes[k], self.nodes[k].of[0]
            still = np.zeros(self.nodes[arg].size) if self.affine(k) else side.constant(arg)
            if isinstance(node, Piecewise):
                found += [Kink(k, i, t) for i, t in ties.items() if node.jumps[t] and not still[i]]
            else:
                found += [
                    Kink(k, i, row) for row, tied in ties.items() if not still[tied].all()
                    for i in tied
                ]  # fmt: skip
        return found

    def affine(self, k: int) -> bool:
        """Is the argument of a node an affine function of the variable?"""
        return self.program.affine[self.nodes[k].of[0]]

    def levels(self, k: int) -> list[Fraction]:
        """Return the breakpoints at which a node has kinks."""
        node: Any = self.nodes[k]
        return [t for t, jump in zip(node.breakpoints, node.jumps) if jump]

    def row(self, k: int, entry: int) -> tuple[Row, Fraction]:
        """Return the exact coefficients of an entry of an affine node, and its constant."""
        return affine_row(self.program, k, entry)

    # --- float64 -------------------------------------------------------------------------------

    def tape(self, x: Vector) -> Vector:
        """Return the values of all nodes at a point."""
        key = x.tobytes()
        if self._tape[0] != key:
            self._tape = key, self.evaluation.tape(x)
        return self._tape[1]

    def argument(self, k: int, x: Vector) -> Vector:
        """Return the value of the argument of a node at a point."""
        return self.tape(x)[self.evaluation.at[self.nodes[k].of[0]]]

    def pieces(self, x: Vector) -> Pieces:
        """Return the pieces that float64 sees at a point."""
        return self.evaluation.pieces(self.tape(x))

    def gradient(self, x: Vector, pieces: Pieces) -> Vector:
        """Return the gradient of given pieces."""
        return self.evaluation.gradient(self.tape(x), pieces)

    def rows(self, point: Point, kinks: Sequence[Kink]) -> Matrix:
        """Return the derivatives of the entries that are on kinks."""
        t, found = self.tape(floats(point.y)), [np.zeros((0, self.dim))]
        for k, some in groupby(kinks, lambda kink: kink.k):
            entries = [kink.entry for kink in some]
            found.append(self.evaluation.rows(self.nodes[k].of[0], entries, t, point.pieces))
        return np.concatenate(found)

    def is_additive(self, kinks: Sequence[Kink], *, curved: bool = False) -> bool:
        """Return True when every choice of sides adds its own term to the gradient.

        Kinks of affine entries only, unless `curved` ones may be among them: to first order they
        are no different, which is enough for a search.
        """
        places = {kink.k for kink in kinks}
        if not all(isinstance(self.nodes[k], Piecewise) for k in places):
            return False
        if not (curved or all(map(self.affine, places))):
            return False
        # A kink inside another one would multiply with it instead.
        return not any(places & set(self.program.ancestors(k)) - {k} for k in places)


@dataclass
class LocalModel:
    """The pieces around a point in float64.

    Attributes
    ----------
    base : ndarray, shape (d,)
        Gradient of the piece below all kinks.
    kinks : list of Kink
        Those that move.
    rows : ndarray, shape (k, d)
    slopes : ndarray, shape (k,)
        Jump of the derivative along each row.
    """

    base: Vector
    kinks: list[Kink]
    rows: Matrix
    slopes: Vector

    @property
    def terms(self) -> Matrix:
        """What each kink adds to the gradient on its upper side."""
        return self.slopes[:, None] * self.rows


@np.errstate(all="ignore")
def local_model(form: Kinks, point: Point) -> LocalModel:
    """Return the float64 model at a point whose kinks are additive."""
    kinks = form.active(point)
    rows = form.rows(point, kinks)
    moving = np.any(rows != 0.0, axis=1)
    kinks, rows = [kink for kink, moves in zip(kinks, moving) if moves], rows[moving]
    g = form.evaluation.cotangents(form.tape(floats(point.y)), point.pieces)
    outer = np.array([g[form.evaluation.at[k].start + i] for k, i, _ in kinks], dtype=float)
    nodes: Any = form.nodes
    jumps = np.array([nearest_float(nodes[k].jumps[t]) for k, _, t in kinks], dtype=float)
    model = LocalModel(g[: form.dim], kinks, rows, outer * jumps)
    if not all(np.isfinite(part).all() for part in (model.base, model.rows, model.slopes)):
        raise NotCertifiableError("the derivatives at this point overflow; rescale the data.")
    return model


def floats(y: Any) -> Vector:
    """Return exact numbers in float64."""
    if isinstance(y, np.ndarray):
        return y
    return np.array([nearest_float(q) for q in y])
