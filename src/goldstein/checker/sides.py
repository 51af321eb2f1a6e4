"""The function beside a point, decided exactly: limits of gradients along directions.

Let y be a point and v a direction such that every kink is left strictly on (y, y + t0 v] for some
t0 > 0. Then the function is smooth there, and the limit of its gradients as t -> 0+ is an element
of the Clarke subdifferential at y: the derivative at y of the pieces that rule beside it. An entry
that stays constant near y (or beside it) may sit on a kink for good: the kink is never crossed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix
from goldstein.checker.errors import InputError, Irrational, NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import (
    Array,
    Constancy,
    Max,
    Node,
    Norm2,
    Piecewise,
    Series,
    Variable,
)  # fmt: skip
from goldstein.checker.rationals import nearest_float, to_fractions

Numbers = Sequence[Any] | NDArray[Any]
Pause = Callable[[], None]

#: Above this many multiplications per gradient, or ten times as many for all gradients, enclosures
#: replace rationals. The choice must not depend on what is installed.
RATIONAL_WORK = 40_000


class Limits(NamedTuple):
    """Limits of gradients along directions.

    Attributes
    ----------
    exact : list of lists of Fraction, or None
        Where they are known exactly.
    mid, rad : ndarray, shape (k, d)
        Midpoints and radii of enclosures; rounded, without radii, where `exact` is known.
    """

    exact: list[list[Fraction]] | None
    mid: Matrix
    rad: Matrix


class Program:
    """A function: nodes in order of evaluation, the first its variable, the last one number."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        for k, node in enumerate(self.nodes):
            right = all(0 <= a < k for a in node.of) and isinstance(node, Variable) == (k == 0)
            if not right or node.sizes != tuple(self.nodes[a].size for a in node.of):
                raise InputError(f"node {k} of the function does not fit the nodes before it.")
        if not self.nodes or self.nodes[-1].size != 1:
            raise InputError("a function must have one number as its value.")
        self.dim = self.nodes[0].size
        self.last = len(self.nodes) - 1

    @cached_property
    def affine(self) -> list[bool]:
        """Which nodes are affine functions of the variable."""
        answer: list[bool] = []
        for node in self.nodes:
            answer.append(node.affine and all(answer[a] for a in node.of))
        return answer

    @cached_property
    def work(self) -> int:
        """Multiplications of one gradient, about."""
        return sum(node.work for node in self.nodes)

    def is_small(self, gradients: int = 1) -> bool:
        """Are exact numbers affordable for so many gradients?"""
        work = self.work
        return work <= RATIONAL_WORK and work * gradients <= 10 * RATIONAL_WORK

    def ancestors(self, k: int) -> list[int]:
        """Return a node and all it depends on, in order."""
        seen, stack = {k}, [k]
        while stack:
            new = set(self.nodes[stack.pop()].of) - seen
            seen |= new
            stack += new
        return sorted(seen)

    def extend(self, series: dict[int, Series], pieces: dict[int, Any], k: int) -> Series:
        """Compute the series of a node and of all that it depends on."""
        for b in [] if k in series else self.ancestors(k):
            if b not in series:
                args = [series[a] for a in self.nodes[b].of]
                series[b] = self.nodes[b].forward(args, pieces.get(b))
        return series[k]

    def pull_back(
        self, k: int, start: Array, pieces: dict[int, Any], value: Callable[[int], Array]
    ) -> dict[int, Array]:
        """Return the derivatives of start . node k in the nodes before it."""
        found = {k: start}
        for b in range(k, 0, -1):
            if b in found:
                node = self.nodes[b]
                args = [None if node.flat else value(a) for a in node.of]
                for a, part in zip(node.of, node.backward(found[b], args, pieces.get(b))):
                    found[a] = found[a] + part if a in found else part
        found.setdefault(0, type(start).of([0] * self.dim))
        return found


class Point:
    """What holds at a point: values, pieces, and the entries exactly on breakpoints; all exact.

    `goldstein.checker.enclosed.point` has the same for irrational and large functions.
    """

    arithmetic = "exactly"

    def __init__(self, program: Program, y: Numbers) -> None:
        self.program, self.y = program, finite_numbers(y, program.dim, "point")
        self.pieces: dict[int, Any] = {}
        self.ties: dict[int, Any] = {}
        self.values: dict[int, Series] = {0: [self.enclosed(self.y)]}
        for k, node in enumerate(program.nodes):
            if isinstance(node, Piecewise | Max | Norm2):
                self.pieces[k], ties = node.decide(self.view(node.of[0]))
                if ties:
                    self.ties[k] = ties

    def enclosed(self, vector: Any) -> Array:
        """Return a vector in the arithmetic of this point."""
        return Exact.of(vector)

    def value(self, k: int) -> Array:
        """Return the value of a node."""
        return self.program.extend(self.values, self.pieces, k)[0]

    def view(self, k: int) -> Any:
        """Return what decides about the signs of a node's entries."""
        return self.value(k)

    def between(self) -> tuple[Fraction, Fraction]:
        """Return numbers that enclose the function's value; equal ones where it is exact."""
        (value,) = self.value(self.program.last).fractions
        return value, value

    def path(self, side: Side, k: int, places: list[int]) -> Series:
        """Return the coefficients of t, t^2, ... of entries of a node, along a direction."""
        side.series.setdefault(0, [self.values[0][0], self.enclosed(side.v)])
        return [c[places] for c in self.program.extend(side.series, side.pieces, k)[1:]]

    def moves(self, side: Side, k: int, factors: dict[int, int]) -> bool:
        """Has a combination of a node's entries, affine here, a derivative other than 0?"""
        start = Exact.of(list(factors.values()))
        start = start.scattered(np.array(list(factors)), self.program.nodes[k].size)
        found = self.program.pull_back(k, start, side.pieces, self.value)[0]
        return bool(found.top.any())

    def limits(self, directions: Matrix, pause: Pause | None = None) -> Limits:
        """Return the limits of gradients along directions, each a subgradient at the point.

        Raises `NotCertifiableError` where a direction stays on a kink. `pause` is called between
        the steps, and may raise.
        """
        exact = []
        for v in directions:
            exact.append(Side(self, v, pause).gradient().fractions)
        mid = np.array([[nearest_float(g) for g in row] for row in exact])
        return Limits(exact, mid, np.zeros_like(mid))


class Side:
    """The pieces that rule at y + t v for all small t > 0; without v, at y itself.

    Without v an entry on a kink must be constant near y: the function is differentiable there.

    Attributes
    ----------
    loose : dict
        For each node the entries that are left on their breakpoints.
    felt : set
        The nodes that v takes to one side.
    """

    def __init__(
        self,
        point: Point,
        v: Numbers | None,
        pause: Pause | None = None,
        nodes: Sequence[int] | None = None,
    ) -> None:
        self.point, self.program = point, point.program
        self.v = None if v is None else finite_numbers(v, self.program.dim, "direction")
        self.pause = pause or (lambda: None)
        self.pieces, self.loose = dict(point.pieces), dict(point.ties)
        self.series: dict[int, Series] = {}
        self.felt: set[int] = set()
        self._constant: dict[int, Constancy] = {0: np.zeros(self.program.dim, dtype=np.int8)}
        self.pause()
        for k in point.ties if nodes is None else nodes:
            node = self.program.nodes[k]
            if isinstance(node, Piecewise):
                self._piecewise(k, node)
            else:
                self._rowwise(k, node)

    def gradient(self) -> Array:
        """Return the limit of the gradients, in the arithmetic of the point."""
        self.pause()
        return self.cotangents()[0]

    def cotangents(self) -> dict[int, Array]:
        """Return the derivatives of the function in the values of its nodes."""
        start, point = self.point.enclosed(np.ones(1)), self.point
        return self.program.pull_back(self.program.last, start, self.pieces, point.value)

    def _path(self, k: int, places: list[int]) -> Series:
        return [] if self.v is None or not places else self.point.path(self, k, places)

    def _piecewise(self, k: int, node: Piecewise) -> None:
        (arg,) = node.of
        ties: dict[int, int] = self.loose[k]
        moving = self._moving(arg, sorted(ties))
        kinks = [i for i in moving if node.jumps[ties[i]]]
        signs = np.zeros(len(moving), dtype=np.intp)
        for c in self._path(arg, moving):
            signs = np.where(signs == 0, c.signs(), signs)
        left = {i for i, sign in zip(moving, signs.tolist()) if sign}
        if left:
            self.felt.add(k)
        # On a smooth breakpoint either piece has the right derivative.
        self._require_constant(arg, [i for i in kinks if i not in left])
        piece = self.pieces[k].copy()
        piece[moving] += signs > 0
        self.pieces[k] = piece
        self.loose[k] = {i: level for i, level in ties.items() if i not in left}

    def _rowwise(self, k: int, node: Node) -> None:
        """Leave the ties of a maximum, or the origin of a norm."""
        (arg,) = node.of
        rows: dict[int, list[int]] = self.loose[k]
        moving = {row: places for row, places in rows.items() if self._moving(arg, places)}
        path = self._path(arg, list(chain(*moving.values())))
        piece, ends = self.pieces[k].copy(), 0
        self.loose[k] = {row: places for row, places in rows.items() if row not in moving}
        for row, places in moving.items():
            start, ends = ends, ends + len(places)
            some = [c[start:ends] for c in path]
            if isinstance(node, Max):
                piece[row] = self._largest(k, arg, row, places, some)
            else:
                piece[row] = self._direction(k, arg, row, places, some)
        if isinstance(node, Norm2):  # nothing depends on these
            piece |= {row: self.point.enclosed(_first(node.columns)) for row in self.loose[k]}
        self.pieces[k] = piece

    def _largest(self, k: int, arg: int, row: int, tied: list[int], path: Series) -> int:
        best = list(range(len(tied)))
        for c in path:
            best = [best[j] for j in c[best].largest(len(best))[0]] if len(best) > 1 else best
        winner, *same = (tied[j] for j in best)
        if same and not (self.program.affine[arg] and self._agree(arg, winner, same)):
            self._require_constant(arg, tied)
            self.loose[k][row] = tied
        elif len(best) < len(tied):
            self.felt.add(k)
        return winner

    def _direction(self, k: int, arg: int, row: int, places: list[int], path: Series) -> Any:
        for c in path:
            if c.signs().any():
                self.felt.add(k)
                return c
        self._require_constant(arg, places)
        self.loose[k][row] = places
        return self.point.enclosed(_first(len(places)))

    def _moving(self, k: int, places: list[int]) -> list[int]:
        """Leave out the entries that are proved to be constant here, by their structure."""
        if self.program.affine[k]:
            return places
        constant = self.constant(k)
        return [i for i in places if not constant[i]]

    def _agree(self, k: int, one: int, others: Sequence[int]) -> bool:
        """Are these affine entries, which have one value at y, one function?"""
        return not any(self.point.moves(self, k, {one: 1, other: -1}) for other in others)

    def _require_constant(self, k: int, places: list[int]) -> None:
        """Refuse unless the entries are constant here: affine, with derivative 0."""
        places = self._moving(k, places)
        ancestors = self.program.ancestors(k) if places else []
        flat = all(self.program.nodes[b].flat and b not in self.felt for b in ancestors)
        if places and not (flat and not any(self.point.moves(self, k, {i: 1}) for i in places)):
            what = "the point is on" if self.v is None else "the direction stays on"
            raise NotCertifiableError(
                f"{what} a kink: it does not show a point of differentiability."
            )

    def constant(self, k: int) -> Constancy:
        """Return which entries of a node are proved to be constant here, and which to be 0."""
        for b in [] if k in self._constant else self.program.ancestors(k):
            if b not in self._constant:
                node = self.program.nodes[b]
                args, loose = [self._constant[a] for a in node.of], self.loose.get(b, {})
                self._constant[b] = node.constant(args, self.pieces.get(b), loose)
        return self._constant[k]


def _first(size: int) -> list[int]:
    return [1, *[0] * (size - 1)]


def finite_numbers(values: Numbers, size: int, name: str) -> Any:
    """Return a vector of float64 numbers, or of Fractions where some are none; all finite."""
    if len(values) != size:
        raise InputError(f"got a {name} of length {len(values)}, expected {size}.")
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 1:
        if not np.isfinite(values).all():
            raise InputError(f"the {name} has a NaN or an infinity; expected finite numbers.")
        return values.copy()
    exact = to_fractions(values)
    floats = np.array([nearest_float(q) for q in exact])
    same = np.isfinite(floats).all() and all(map(Fraction.__eq__, exact, floats.tolist()))
    return floats if same else exact


def point_at(program: Program, y: Numbers, gradients: int = 1) -> Point:
    """Return what holds at a point; exactly, unless the function is irrational or large."""
    if program.is_small(gradients) and all(node.rational for node in program.nodes):
        with suppress(Irrational):  # a number of too many digits
            return Point(program, y)
    from goldstein.checker.enclosed.point import EnclosedPoint

    return EnclosedPoint(program, y)


__all__ = ["Limits", "Pause", "Point", "Program", "Side", "finite_numbers", "point_at"]
