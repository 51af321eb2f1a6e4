"""The function beside a point, decided exactly: limits of gradients along directions.

Let y be a point and v a direction such that every kink is left strictly on (y, y + t0 v] for some
t0 > 0. Then the function is smooth there, and the limit of its gradients as t -> 0+ is an element
of the Clarke subdifferential at y: the derivative at y of the pieces that rule beside it. An entry
that stays constant near y (or beside it) may sit on a kink for good: the kink is never crossed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix
from goldstein.checker.errors import InputError, Irrational, NotCertifiableError
from goldstein.checker.exact import Exact, Still
from goldstein.checker.nodes import Array, Kinked, Max, Node, Order, Piecewise, Series, Variable
from goldstein.checker.rationals import nearest_float, to_fraction

Numbers = Sequence[Any] | NDArray[Any]
Pause = Callable[[], None]


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


def exact_limits(exact: list[list[Fraction]]) -> Limits:
    """Return limits that are known exactly."""
    mid = np.array([[nearest_float(g) for g in row] for row in exact])
    return Limits(exact, mid, np.zeros_like(mid))


class Program:
    """A function: nodes in order of evaluation, the first its variable, the last one number."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        #: Which nodes are affine functions of the variable.
        self.affine: list[bool] = []
        for k, node in enumerate(self.nodes):
            right = all(0 <= a < k for a in node.of) and isinstance(node, Variable) == (k == 0)
            if not right or node.sizes != tuple(self.nodes[a].size for a in node.of):
                raise InputError(f"node {k} of the function does not fit the nodes before it.")
            self.affine.append(node.affine and all(self.affine[a] for a in node.of))
        if not self.nodes or self.nodes[-1].size != 1:
            raise InputError("a function must have one number as its value.")
        self.dim = self.nodes[0].size
        self.last = len(self.nodes) - 1

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
        self, k: int, start: Array, pieces: dict[int, Any], value: Callable[[int], Array],
        closed: Collection[int] = (),
    ) -> dict[int, Array]:  # fmt: skip
        """Return the derivatives of start . node k in the nodes before it, up to closed ones."""
        found = {k: start}
        for b in range(k, 0, -1):
            if b in found and b not in closed:
                node = self.nodes[b]
                args = [None if node.flat else value(a) for a in node.of]
                for a, part in zip(node.of, node.backward(found[b], args, pieces.get(b))):
                    found[a] = found[a] + part if a in found else part
        return found


class Point:
    """What holds at a point: values, pieces, and the entries exactly on breakpoints; all exact.

    `goldstein.checker.enclosed.point` has the same for irrational and large functions.
    """

    arithmetic = "exactly"

    def __init__(self, program: Program, y: Numbers) -> None:
        self.program, self.y = program, finite_numbers(y, program.dim, "point")
        self.pieces: dict[int, Any] = {}
        self.ties: dict[int, dict[int, list[int]]] = {}
        self.values: dict[int, Series] = {0: [self.start()]}
        for k, node in enumerate(program.nodes):
            if isinstance(node, Kinked):
                self.pieces[k], ties = node.decide(self.view(node.of[0]))
                if ties:
                    self.ties[k] = ties

    def start(self) -> Array:
        """Return the point in its arithmetic."""
        return self.enclosed(self.y)

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
        return bool(self.program.pull_back(k, start, side.pieces, self.value)[0].top.any())

    def limits(self, directions: Matrix | Sequence[Numbers], pause: Pause = lambda: None) -> Limits:
        """Return the limits of gradients along directions, each a subgradient at the point.

        Raises `NotCertifiableError` where a direction stays on a kink. `pause` is called between
        the steps, and may raise.
        """
        return exact_limits([Side(self, v, pause).gradient().fractions for v in directions])


class Side:
    """The pieces that rule at y + t v for all small t > 0; without v, at y itself.

    Without v an entry on a kink must be constant near y: the function is differentiable there.

    Attributes
    ----------
    loose : dict
        For each node the rows that are left on a kink, and their places in the argument.
    felt : set
        The nodes that v takes to one side.
    """

    def __init__(
        self, point: Point, v: Numbers | None, pause: Pause = lambda: None,
        nodes: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        pause()
        self.point, self.program = point, point.program
        self.v = None if v is None else finite_numbers(v, self.program.dim, "direction")
        self.pieces, self.series, self.felt = dict(point.pieces), dict[int, Series](), set[int]()
        self.loose = dict(point.ties)
        self._still: dict[int, Series] = {0: [Still.of(np.ones(self.program.dim))] * 2}
        for k in point.ties if nodes is None else nodes:
            self._leave(k)

    def gradient(self) -> Array:
        """Return the limit of the gradients, in the arithmetic of the point."""
        return self.cotangents()[0]

    def cotangents(self) -> dict[int, Array]:
        """Return the derivatives of the function in the values of its nodes."""
        start, point = self.point.enclosed(np.ones(1)), self.point
        return self.program.pull_back(self.program.last, start, self.pieces, point.value)

    def _leave(self, k: int) -> None:
        """Decide to which side of its kinks v takes a node."""
        node: Any = self.program.nodes[k]
        (arg,), rows, piece, end = node.of, self.loose[k], self.pieces[k].copy(), 0
        moving = {row: places for row, places in rows.items() if self._moving(arg, places)}
        places = list(chain(*moving.values()))
        path = self.point.path(self, arg, places) if places and self.v is not None else []
        self.pieces[k], self.loose[k] = piece, {r: at for r, at in rows.items() if r not in moving}
        for row, places in moving.items():
            start, end = end, end + len(places)
            piece[row], stay = node.leave(piece[row], places, [c[start:end] for c in path])
            if len(stay) < len(places):
                self.felt.add(k)
            if stay and not (isinstance(node, Max | Order) and self._agree(arg, stay)):
                # On a smooth breakpoint either piece has the right derivative.
                if not isinstance(node, Piecewise) or node.jumps[self.point.pieces[k][row]]:
                    self._require_constant(arg, places)
                self.loose[k][row] = places

    def _moving(self, k: int, places: list[int]) -> list[int]:
        """Leave out the entries that are proved to be constant here, by their structure."""
        if self.program.affine[k]:
            return places
        constant = self.constant(k)
        return [i for i in places if not constant[i]]

    def _agree(self, k: int, places: Sequence[int]) -> bool:
        """Are these entries, which have one value at y, one affine function?"""
        pairs = ({places[0]: 1, other: -1} for other in places[1:])
        return self.program.affine[k] and not any(self.point.moves(self, k, p) for p in pairs)

    def _require_constant(self, k: int, places: list[int]) -> None:
        """Refuse unless the entries are constant here: affine, with derivative 0."""
        places = self._moving(k, places)
        ancestors = self.program.ancestors(k) if places else []
        flat = all(self.program.nodes[b].flat and b not in self.felt for b in ancestors)
        if places and not (flat and not any(self.point.moves(self, k, {i: 1}) for i in places)):
            what = "the point is on" if self.v is None else "the direction stays on"
            raise NotCertifiableError(f"{what} a kink: f need not be differentiable there.")

    def constant(self, k: int) -> NDArray[np.bool_]:
        """Return which entries of a node are proved to be constant here."""
        return np.asarray(self.still(k)[1] == 0)

    def still(self, k: int) -> Series:
        """Return where a node may be other than 0 here, and where it may move."""
        for b in [] if k in self._still else self.program.ancestors(k):
            if b not in self._still:
                node, loose = self.program.nodes[b], self.loose.get(b, {})
                args = [self._still[a] for a in node.of]
                self._still[b] = list(map(Still.of, node.still(args, self.pieces.get(b), loose)))
        return self._still[k]


def finite_numbers(values: Numbers, size: int, name: str) -> Any:
    """Return a vector of float64 numbers, or of Fractions where some are none; all finite."""
    if len(values) != size:
        raise InputError(f"got a {name} of length {len(values)}, expected {size}.")
    plain = isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 1
    if plain and np.isfinite(values).all():
        return np.array(values)
    exact = [to_fraction(value, f"an entry of the {name}") for value in values]
    floats = np.array([nearest_float(q) for q in exact])
    return floats if all(map(Fraction.__eq__, exact, floats.tolist())) else exact


#: Multiplications of a gradient up to which all of a function is computed in integers; of a larger
#: one signs are enclosed first, and integers decide only what that leaves open.
WHOLE = 2000


def point_at(program: Program, y: Numbers, gradients: int = 1, box: Any = None) -> Point:
    """Return what holds at a point; exactly, unless the function is irrational or large.

    With a box, radii and switches, it is a point of it that lies on kinks.
    """
    from goldstein.checker.enclosed.point import EnclosedPoint, is_small, work

    rational = box is None and all(node.rational for node in program.nodes)
    if rational and is_small(program, gradients) and work(program) <= WHOLE:
        with suppress(Irrational):  # a number of too many digits
            return Point(program, y)
    return EnclosedPoint(program, y, box)
