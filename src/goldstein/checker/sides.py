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

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.checker.enclosures import Enclosure
from goldstein.checker.errors import InputError, Irrational, NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.fast import common_part, long_sums
from goldstein.checker.nodes import (
    ZERO, Affine, Constancy, Max, Node, Norm2, Piecewise, Product, Series, Sums, Variable,
)  # fmt: skip
from goldstein.checker.rationals import (
    nearest_float,
    sqrt_upper,
    squared_distance,
    to_fractions,
)
from goldstein.checker.rounding import norm_upper

Pause = Callable[[], None]
Point_ = Sequence[Any] | NDArray[Any]

#: Above this many multiplications per gradient, or ten times as many for all gradients, enclosures
#: replace rationals. The choice must not depend on what is installed.
RATIONAL_WORK = 40_000


class Limits(NamedTuple):
    """Limits of gradients along directions.

    Attributes
    ----------
    exact : list of lists of Fraction, or None
        Where rationals are affordable.
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
        terms = 0
        for n in self.nodes:
            terms += int(np.prod(n.matrix.shape)) * n.columns if isinstance(n, Affine) else 0
            terms += n.size * (n.inner if isinstance(n, Product) else 1)
        return terms

    def ancestors(self, k: int) -> list[int]:
        """Return a node and all it depends on, in order."""
        seen, stack = {k}, [k]
        while stack:
            new = set(self.nodes[stack.pop()].of) - seen
            seen |= new
            stack += new
        return sorted(seen)


class Part:
    """What some entries of a node depend on, and nothing else: a small program for exact numbers.

    Parameters
    ----------
    pieces : dict
        The pieces of the nodes before it.
    k, places
        The node and its entries, in ascending order.
    """

    def __init__(self, program: Program, pieces: dict[int, Any], k: int, places: Any) -> None:
        self.k, self.size = k, len(places)
        wanted: dict[int, Indices] = {k: np.asarray(places, dtype=np.intp)}
        steps = []
        for b in reversed(program.ancestors(k)):
            if b and b in wanted:
                node, piece, needs = program.nodes[b].cut(wanted[b], pieces.get(b))
                steps.append((b, node, piece, needs))
                for a, some in zip(node.of, needs):
                    if some.size:
                        wanted[a] = np.union1d(wanted.get(a, some), some)
        #: The entries of the variable.
        self.places = wanted.get(0, np.zeros(0, dtype=np.intp))
        self.steps = [
            (b, node, piece, [np.searchsorted(wanted.get(a, some), some) for a, some in zip(node.of, needs)])
            for b, node, piece, needs in reversed(steps)
        ]
        self.sizes = {a: some.size for a, some in wanted.items()}

    def forward(self, *ends: Point_) -> dict[int, Series | Irrational]:
        """Return the values at y, or the series along y + t v; or what is irrational."""
        found: dict[int, Series | Irrational] = {0: [_exactly(end, self.places) for end in ends]}
        for b, node, piece, at in self.steps:
            try:
                if isinstance(node, Sums) and node.of == (0,) and long_sums.pays(node):
                    found[b] = long_sums.forward(node, self.places[at[0]], ends)
                else:
                    args = [_known(found, a, some) for a, some in zip(node.of, at)]
                    found[b] = node.forward(args, piece)
            except Irrational as what:
                found[b] = what
        return found

    def series(self, *ends: Point_) -> Series:
        """Return the same of the entries themselves."""
        return _known(self.forward(*ends), self.k, np.arange(self.size))

    def backward(self, start: Exact, values: dict[int, Series | Irrational]) -> Exact:
        """Return the derivative, in the entries `places` of the variable, of start . entries."""
        found = {self.k: start}
        for b, node, piece, at in reversed(self.steps):
            g = found.pop(b, None)
            if g is None:
                continue
            args: list[Any] = [None] * len(node.of)
            if not node.flat:
                args = [_known(values, a, some)[0] for a, some in zip(node.of, at)]
            for a, some, part in zip(node.of, at, node.backward(g, args, piece)):
                if some.size:
                    more = part.scattered(some, self.sizes[a])
                    found[a] = found[a] + more if a in found else more
        return found.get(0, Exact(np.zeros(self.places.size, dtype=object)))


def _known(found: dict[int, Series | Irrational], a: int, places: Indices) -> Series:
    """Return entries of the series of a node."""
    if not places.size:
        return [Exact(np.zeros(0, dtype=object))]
    series = found[a]
    if isinstance(series, Irrational):
        raise series
    return [c[places] for c in series]


class Point:
    """What holds at a point: enclosed values, pieces, and the entries exactly on breakpoints."""

    def __init__(self, program: Program, point: Point_) -> None:
        self.program, self.y = program, _as_numbers(point)
        if len(self.y) != program.dim:
            raise InputError(f"got a point of length {len(self.y)}, expected {program.dim}.")
        self.pieces: dict[int, Any] = {}
        self.ties: dict[int, Any] = {}
        self._values: dict[int, Enclosure] = {0: _enclosed(self.y)}
        for k, node in enumerate(program.nodes):
            if isinstance(node, Piecewise | Max | Norm2):
                (arg,) = node.of
                self.pieces[k], ties = node.decide(self.value(arg), self._ask(arg))
                if ties:
                    self.ties[k] = ties

    def value(self, k: int) -> Enclosure:
        """Return an enclosure of the value of a node."""
        if k not in self._values:
            for b in self.program.ancestors(k):
                if b not in self._values:
                    args = [[self._values[a]] for a in self.program.nodes[b].of]
                    (self._values[b],) = self.program.nodes[b].forward(args, self.pieces.get(b))
        return self._values[k]

    def _ask(self, k: int) -> Callable[[Sequence[int]], Exact]:
        return lambda places: self.exact(k, places)

    def exact(self, k: int, places: Sequence[int]) -> Exact:
        """Return exact values of some entries of a node, given in ascending order."""
        try:
            return Part(self.program, self.pieces, k, places).series(self.y)[0]  # type: ignore[no-any-return]
        except Irrational as what:
            if (Side(self, None, []).constant(k)[list(places)] == ZERO).all():
                return Exact(np.zeros(len(places), dtype=object))
            raise NotCertifiableError(
                "whether an argument of a kink is exactly on it cannot be decided: it contains "
                f"{what}, and its enclosure straddles the kink."
            ) from None

    def limits(self, directions: Matrix, pause: Pause | None = None) -> Limits:
        """Return the limits of gradients along directions, each a subgradient at the point.

        Raises `NotCertifiableError` where a direction stays on a kink. `pause` is called between
        the steps, and may raise.
        """
        pause = pause or _go_on
        work = self.program.work
        small = work <= RATIONAL_WORK and work * len(directions) <= 10 * RATIONAL_WORK
        if not small:
            boxes = common_part.limits(self, np.asarray(directions), Side)
            if boxes is not None:
                require_finite(*boxes)
                return Limits(None, *boxes)
        sides = []
        for v in directions:
            pause()
            sides.append(Side(self, v))
        if small:
            with suppress(Irrational):
                exact = []
                for side in sides:
                    pause()
                    exact.append(side.exact_gradient())
                mid = np.array([[nearest_float(g) for g in row] for row in exact])
                return Limits(exact, mid, np.zeros_like(mid))
        found = []
        for side in sides:
            pause()
            found.append(side.gradient())
        mids, rads = (np.array([getattr(g, end) for g in found]) for end in ("mid", "rad"))
        return Limits(None, mids, rads)


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
        self, point: Point, v: Point_ | None, nodes: Sequence[int] | None = None
    ) -> None:
        self.point, self.program = point, point.program
        self.v = None if v is None else _as_numbers(v)
        if self.v is not None and len(self.v) != self.program.dim:
            raise InputError(
                f"got a direction of length {len(self.v)}, expected {self.program.dim}."
            )
        self.pieces = dict(point.pieces)
        self.loose: dict[int, Any] = dict(point.ties)
        self.felt: set[int] = set()
        self._constant: dict[int, Constancy] = {0: np.zeros(self.program.dim, dtype=np.int8)}
        self._tangents: dict[int, Series] = {}
        for k in point.ties if nodes is None else nodes:
            node = self.program.nodes[k]
            leave = {Piecewise: self._piecewise, Max: self._max, Norm2: self._norm}[type(node)]
            leave(k, node)

    def _path(self, k: int, places: Sequence[int]) -> Series:
        """Return the coefficients of t, t^2, ... of some entries of a node, in ascending order.

        Exact ones, as far as they are needed; where there are none, an enclosure of the first.
        """
        if self.v is None or not places:
            return []
        try:
            return Part(self.program, self.pieces, k, places).series(self.point.y, self.v)[1:]
        except Irrational:
            return [self._tangent(k)[np.asarray(places)]]

    def _tangent(self, k: int) -> Enclosure:
        """Return an enclosure of the derivative of a node along v."""
        if not self._tangents:
            self._tangents[0] = [self.point.value(0), _enclosed(self.v)]  # type: ignore[arg-type]
        for b in self.program.ancestors(k):
            if b not in self._tangents:
                args = [self._tangents[a] for a in self.program.nodes[b].of]
                self._tangents[b] = self.program.nodes[b].forward(args, self.pieces.get(b))
        series = self._tangents[k]
        return series[1] if len(series) > 1 else Enclosure(np.zeros(self.program.nodes[k].size))

    def _piecewise(self, k: int, node: Piecewise) -> None:
        (arg,) = node.of
        ties: dict[int, int] = self.loose[k]
        moving = self._moving(arg, sorted(ties))
        signs = np.zeros(len(moving), dtype=np.intp)
        for c in self._path(arg, moving):
            found, decided = c.signs() if isinstance(c, Enclosure) else (c.signs(), True)
            kinks = np.array([bool(node.jumps[ties[i]]) for i in moving])
            if not (decided | ~kinks).all():
                raise NotCertifiableError("on which side of a kink a direction goes is undecided.")
            signs = np.where(signs == 0, found, signs).astype(np.intp)
        piece = self.pieces[k].copy()
        piece[moving] += signs > 0
        left = {i for i, sign in zip(moving, signs.tolist()) if sign}
        if left:
            self.felt.add(k)
        # On a smooth breakpoint either piece has the right derivative.
        self._require_constant(arg, [i for i in moving if i not in left and node.jumps[ties[i]]])
        self.pieces[k] = piece
        self.loose[k] = {i: level for i, level in ties.items() if i not in left}

    def _max(self, k: int, node: Max) -> None:
        (arg,) = node.of
        piece, loose, path = self.pieces[k].copy(), {}, _Rows(self, arg, self.loose[k])
        for row, tied in self.loose[k].items():
            if path.still(row):
                loose[row] = tied
                continue
            winner, *same = path.largest(row, tied)
            if same and not (self.program.affine[arg] and self._agree(arg, winner, same)):
                self._require_constant(arg, tied)
                loose[row] = tied
            elif len(same) + 1 < len(tied):
                self.felt.add(k)
            piece[row] = winner
        self.pieces[k], self.loose[k] = piece, loose

    def _norm(self, k: int, node: Norm2) -> None:
        (arg,) = node.of
        piece, loose, path = dict(self.pieces[k]), {}, _Rows(self, arg, self.loose[k])
        for row, places in self.loose[k].items():
            direction = None if path.still(row) else path.first_step(row)
            if direction is not None:
                self.felt.add(k)
            else:
                if not path.still(row):
                    self._require_constant(arg, places)
                loose[row] = places
                direction = Exact.of([1, *[0] * (len(places) - 1)])  # nothing depends on it
            piece[row] = direction
        self.pieces[k], self.loose[k] = piece, loose

    def _moving(self, k: int, places: list[int]) -> list[int]:
        """Leave out the entries that are proved to be constant here, by their structure."""
        if self.program.affine[k]:
            return places
        constant = self.constant(k)
        return [i for i in places if not constant[i]]

    def _agree(self, k: int, one: int, others: Sequence[int]) -> bool:
        """Are these affine entries, which have one value at y, one function?"""
        return not any(self._moves(k, {one: 1, other: -1}) for other in others)

    def _require_constant(self, k: int, places: Sequence[int]) -> None:
        """Refuse unless the entries are constant here: affine, with derivative 0."""
        places = self._moving(k, list(places))
        flat = all(
            self.program.nodes[b].flat and b not in self.felt for b in self.program.ancestors(k)
        )
        if places and not (flat and not any(self._moves(k, {i: 1}) for i in places)):
            what = "the point is on" if self.v is None else "the direction stays on"
            raise NotCertifiableError(
                f"{what} a kink: it does not show a point of differentiability."
            )

    def _moves(self, k: int, factors: dict[int, int]) -> bool:
        """Has a combination of entries, all of them affine here, a derivative other than 0?"""
        places = sorted(factors)
        part = Part(self.program, self.pieces, k, places)
        return bool(part.backward(Exact.of([factors[i] for i in places]), {}).top.any())

    def constant(self, k: int) -> Constancy:
        """Return which entries of a node are proved to be constant here, and which to be 0."""
        if k not in self._constant:
            for b in self.program.ancestors(k):
                if b not in self._constant:
                    node = self.program.nodes[b]
                    args = [self._constant[a] for a in node.of]
                    loose = self.loose.get(b, {})
                    self._constant[b] = node.constant(args, self.pieces.get(b), loose)
        return self._constant[k]

    def exact_gradient(self) -> list[Fraction]:
        """Return the limit of the gradients, exactly."""
        part = Part(self.program, self.pieces, len(self.program.nodes) - 1, [0])
        found = part.backward(Exact.of([1]), part.forward(self.point.y))
        g = [Fraction(0)] * self.program.dim
        for place, entry in zip(part.places.tolist(), found.fractions):
            g[place] = entry
        return g

    def cotangents(self) -> dict[int, Enclosure]:
        """Return enclosures of the derivatives of the function in the values of its nodes."""
        nodes = self.program.nodes
        found = {len(nodes) - 1: Enclosure(np.ones(1))}
        for b in range(len(nodes) - 1, 0, -1):
            if b not in found:
                continue
            args = [None if nodes[b].flat else self.point.value(a) for a in nodes[b].of]
            for a, part in zip(nodes[b].of, nodes[b].backward(found[b], args, self.pieces.get(b))):
                found[a] = found[a] + part if a in found else part
        found.setdefault(0, Enclosure(np.zeros(self.program.dim)))
        return found

    def gradient(self) -> Enclosure:
        """Return an enclosure of the limit of the gradients."""
        g = self.cotangents()[0]
        require_finite(g.mid, g.rad)
        return g


class _Rows:
    """The entries of an argument that are tied row by row, along a direction."""

    def __init__(self, side: Side, arg: int, rows: dict[int, list[int]]) -> None:
        moving = {row: side._moving(arg, places) for row, places in rows.items()}
        self._rows = {row: rows[row] for row, some in moving.items() if some}
        places = list(chain(*self._rows.values()))
        self._path = side._path(arg, places)
        ends = np.cumsum([0, *map(len, self._rows.values())]).tolist()
        self._spans = dict(zip(self._rows, zip(ends, ends[1:])))

    def still(self, row: int) -> bool:
        """Are all tied entries of a row constant here, by their structure?"""
        return row not in self._rows

    def largest(self, row: int, tied: list[int]) -> list[int]:
        """Return the tied entries that are the largest beside the point; they agree there."""
        some = slice(*self._spans[row])
        for c in self._path:
            if isinstance(c, Enclosure):
                low, high = c[some].ends()
                best = int(low.argmax())
                if not (np.delete(high, best) < low[best]).all():
                    raise NotCertifiableError("which entry of a maximum rules is undecided.")
                return [tied[best]]
        steps = list(zip(*(c.top[some].tolist() for c in self._path))) or [()] * len(tied)
        best_step = max(steps)
        return [i for i, step in zip(tied, steps) if step == best_step]

    def first_step(self, row: int) -> Any:
        """Return the first coefficient of t that is not 0, or None."""
        some = slice(*self._spans[row])
        for c in self._path:
            if isinstance(c, Enclosure):
                if not c[some].signs()[1].any():
                    raise NotCertifiableError("in which direction a norm leaves 0 is undecided.")
                return c[some]
            if c.top[some].any():
                return c[some]
        return None


def limiting_gradients(
    program: Program, point: Sequence[Any], directions: Any
) -> list[tuple[list[Fraction], list[Fraction]]]:
    """Return the limits of gradients as rationals: midpoints, and radii, 0 where exact."""
    exact, mids, rads = Point(program, point).limits(directions)
    rows = [to_fractions(mid) for mid in mids] if exact is None else exact
    return [(row, to_fractions(rad)) for row, rad in zip(rows, rads, strict=True)]


def gradient_gap(program: Program, y: Vector, stored: Vector, allowed: float) -> tuple[float, bool]:
    """Return by how much a stored gradient at a point surely differs from the exact one.

    0 where it is proved to differ by at most `allowed`. Where sums cancel, enclosures are wide, and
    rationals decide, if they are affordable; if not, the second answer is False: undecided.
    """
    side = Side(Point(program, y), None)
    g = side.gradient()
    if norm_upper(np.abs(stored - g.mid) + g.rad) <= allowed:
        return 0.0, True
    if program.work <= RATIONAL_WORK:
        with suppress(Irrational):
            exact = side.exact_gradient()
            return sqrt_upper(squared_distance(exact, to_fractions(stored))), True
    gaps = np.abs(stored - g.mid) * (1.0 - 2.0**-50) - g.rad * (1.0 + 2.0**-50)
    least = float(np.linalg.norm(np.maximum(gaps, 0.0))) * (1.0 - 2.0**-40)
    return least, least > allowed


def require_finite(mid: Any, rad: Any) -> None:
    """Refuse enclosures that say nothing."""
    if not (np.isfinite(mid).all() and np.isfinite(rad).all()):
        raise NotCertifiableError(
            "the gradient could not be enclosed: it overflows, or divides by an interval around 0. "
            "Rescale the data."
        )


def _go_on() -> None:
    pass


def _as_numbers(values: Point_) -> Any:
    """Return a vector of float64 numbers, or of Fractions where some are none; all finite."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 1:
        if not np.isfinite(values).all():
            raise InputError("got a NaN or an infinity, expected finite numbers.")
        return values.copy()
    exact = to_fractions(values)
    floats = np.array([nearest_float(q) for q in exact])
    same = np.isfinite(floats).all() and all(map(Fraction.__eq__, exact, floats.tolist()))
    return floats if same else exact


def _exactly(vector: Any, places: Indices) -> Exact:
    if isinstance(vector, np.ndarray):
        return Exact.of(vector[places])
    return Exact.of([vector[k] for k in places.tolist()])


def _enclosed(vector: Any) -> Enclosure:
    return Enclosure(vector) if isinstance(vector, np.ndarray) else Enclosure.of(vector)


__all__ = ["Limits", "Part", "Pause", "Point", "Program", "Side", "require_finite"]
