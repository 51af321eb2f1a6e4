"""The function beside a point, decided exactly: limits of gradients along directions.

Let y be a point and v a direction such that every kink is left strictly on (y, y + t0 v] for some
t0 > 0. Then the function is smooth there, and the limit of its gradients as t -> 0+ is an element
of the Clarke subdifferential at y: the derivative at y of the pieces that rule beside it. An entry
that stays constant near y (or beside it) may sit on a kink for good: the kink is never crossed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.checker.enclosures import Enclosure
from goldstein.checker.errors import InputError, Irrational, NotCertifiableError
from goldstein.checker.exact_vector import ExactVector
from goldstein.checker.kinked import Max, Norm2, Piecewise
from goldstein.checker.nodes import Linear, Node, Product, Shift, Still, Variable
from goldstein.checker.rationals import (
    Polynomial,
    Q,
    nearest_float,
    sqrt_upper,
    squared_distance,
    to_fraction,
    to_fractions,
)
from goldstein.checker.rounding import UNIT, norm_upper

Pause = Callable[[], None]

#: Above this many multiplications per gradient, or ten times as many for all gradients, enclosures
#: replace rationals. The choice must not depend on what is installed.
RATIONAL_WORK = 40_000

#: Entries of the rows on kinks, or of the gradients, up to which they are written out.
WRITTEN_OUT = 10**7

#: Entries that are enclosed at a time.
BLOCK = 2**14


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
        matrices = (n for n in self.nodes if isinstance(n, Linear))
        tables = (n for n in self.nodes if isinstance(n, Product))
        return (
            sum(int(np.prod(n.matrix.shape)) * n.columns for n in matrices)
            + sum(n.size * n.inner for n in tables)
            + sum(n.size for n in self.nodes)
        )

    def ancestors(self, k: int) -> list[int]:
        """Return a node and all it depends on, in order."""
        seen, stack = {k}, [k]
        while stack:
            new = set(self.nodes[stack.pop()].of) - seen
            seen |= new
            stack += new
        return sorted(seen)


class Line:
    """Exact entries of nodes along y + t v, polynomials in t; at y itself without v."""

    def __init__(
        self, program: Program, y: ExactVector, v: ExactVector | None, pieces: dict[int, Any]
    ) -> None:
        self.program, self.y, self.v, self.pieces = program, y, v, pieces
        self.known: dict[int, dict[int, Polynomial]] = {}

    def at(self, k: int, places: Iterable[int]) -> list[Polynomial]:
        """Return some entries of a node; what they depend on is computed, and nothing else."""
        wanted = list(places)
        needed: dict[int, set[int]] = {k: set(wanted)}
        missing: dict[int, set[int]] = {}
        ahead = [-k]  # the nodes to visit, the last ones first
        while ahead:
            b = -heapq.heappop(ahead)
            node, known = self.program.nodes[b], self.known.setdefault(b, {})
            missing[b] = {p for p in needed[b] if p not in known}
            if not missing[b] or self._is_plain(node):
                continue
            for a, some in zip(node.of, node.needs(missing[b], self.pieces.get(b))):
                if a not in needed:
                    needed[a] = set()
                    heapq.heappush(ahead, -a)
                needed[a].update(some)
        for b in sorted(missing):
            if missing[b]:
                self.known[b].update(self._entries(b, missing[b]))
        return [self.known[k][p] for p in wanted]

    def _is_plain(self, node: Node) -> bool:
        """True for a matrix times the variable: its rows are multiplied as they are."""
        return isinstance(node, Linear) and node.of == (0,) and node.columns == 1

    def _entries(self, b: int, places: set[int]) -> dict[int, Polynomial]:
        node = self.program.nodes[b]
        ends = [self.y] if self.v is None else [self.y, self.v]
        if isinstance(node, Variable):
            return {p: [Q(end.fractions[p]) for end in ends] for p in places}
        if self._is_plain(node):
            assert isinstance(node, Linear)
            if hasattr(node.matrix, "keep"):  # rows that are elsewhere, fetched together
                node.matrix.keep(sorted(places))
            rows = {p: node.row(p) for p in places}
            return {p: [Q(end.dot(*row)) for end in ends] for p, row in rows.items()}
        args = [self.known.get(a, {}) for a in node.of]
        return node.entries(places, args, self.pieces.get(b))


class Point:
    """What holds at a point: enclosed values, pieces, and the entries exactly on breakpoints."""

    def __init__(self, program: Program, point: Sequence[Any] | NDArray[Any]) -> None:
        self.program, self.y = program, ExactVector(point)
        if len(self.y) != program.dim:
            raise InputError(f"got a point of length {len(self.y)}, expected {program.dim}.")
        self.pieces: dict[int, Any] = {}
        self.ties: dict[int, Any] = {}
        self.line = Line(program, self.y, None, self.pieces)
        self._values: dict[int, Enclosure] = {0: enclosed_point(self.y)}
        for k, node in enumerate(program.nodes):
            if isinstance(node, Piecewise | Max | Norm2):
                (arg,) = node.of
                self.pieces[k], ties = node.decide(self.value(arg), partial(self.exact, arg))
                if ties:
                    self.ties[k] = ties

    def value(self, k: int) -> Enclosure:
        """Return an enclosure of the value of a node."""
        if k not in self._values:
            for b in self.program.ancestors(k):
                if b not in self._values:
                    args = [self._values[a] for a in self.program.nodes[b].of]
                    value = self.program.nodes[b].forward(args, self.pieces.get(b))
                    self._values[b] = value
        return self._values[k]

    def exact(self, k: int, places: Sequence[int]) -> list[Fraction]:
        """Return exact values of some entries of a node."""
        if not places:
            return []
        try:
            return [to_fraction(path[0]) for path in self.line.at(k, places)]
        except Irrational as what:
            still = Side(self, None, []).still(k).zero
            if still[list(places)].all():
                return [Fraction(0)] * len(places)
            raise NotCertifiableError(
                "whether an argument of a kink is exactly on it cannot be decided: it contains "
                f"{what}, and its enclosure straddles the kink."
            ) from None

    def limits(
        self, directions: Sequence[Sequence[Any]] | NDArray[Any], pause: Pause | None = None
    ) -> Limits:
        """Return the limits of gradients along directions, each a subgradient at the point.

        Raises `NotCertifiableError` where a direction stays on a kink. `pause` is called between
        the steps, and may raise.
        """
        pause = pause or _go_on
        work = self.program.work
        small = work <= RATIONAL_WORK and work * len(directions) <= 10 * RATIONAL_WORK
        if not small:
            boxes = self._from_common_part(np.asarray(directions))
            if boxes is not None:
                return Limits(None, *boxes)
        sides = []
        for v in directions:
            pause()
            sides.append(Side(self, ExactVector(v)))
        if small:
            try:
                exact = []
                for side in sides:
                    pause()
                    exact.append(side.exact_gradient())
                mid = np.array([[nearest_float(g) for g in row] for row in exact])
                return Limits(exact, mid, np.zeros_like(mid))
            except Irrational:
                pass
        found = []
        for side in sides:
            pause()
            found.append(side.gradient())
        mids, rads = (np.array([getattr(g, end) for g in found]) for end in ("mid", "rad"))
        return Limits(None, mids, rads)

    def _from_common_part(self, ways: Matrix) -> tuple[Matrix, Matrix] | None:
        """Enclose limits along many directions in one pass, where only rows of a matrix are tied.

        The tied entries belong to one node, a function of rows times the variable plus constants,
        and what is above it is affine. Along every direction the rest adds the same; each tied row
        adds, or not, the jump of its derivative times the row.
        """
        if len(self.ties) != 1 or len(ways) < 2 or ways.dtype != np.float64:
            return None
        ((k, ties),) = self.ties.items()
        node = self.program.nodes[k]
        rows = self._rows(k, list(ties))
        if rows is None or not isinstance(node, Piecewise) or not self._affine_above(k):
            return None
        # An entry whose row is 0 is constant, and stays on its breakpoint for good.
        moving: Mask = np.asarray(rows.any(axis=1))
        ties = {i: level for (i, level), moves in zip(ties.items(), moving) if moves}
        rows = rows[moving]
        if not ties:
            return None
        jumps = [node.jumps[level] for level in ties.values()]
        if max(len(ties), len(ways)) * self.program.dim > WRITTEN_OUT or not all(jumps):
            return None
        sides = signs_of_products(ways, rows)
        if not sides.all():
            return None  # a direction that stays on a kink: to be looked at one by one
        base = Side(self, None, [])
        slopes = base.cotangents()
        weights = slopes[k][list(ties)] * Enclosure.from_fractions(jumps)
        mid, rad = np.empty((len(ways), self.program.dim)), np.empty(self.program.dim)
        above = Enclosure((sides > 0).astype(np.float64))
        step = max(1, BLOCK // max(sides.shape))
        for start in range(0, self.program.dim, step):
            some = slice(start, start + step)
            part = slopes[0][some] + above @ (Enclosure(rows[:, some]) * weights.reshape(-1, 1))
            # One radius per coordinate, the largest, serves all directions.
            mid[:, some], rad[some] = part.mid, part.rad.max(axis=0)
        _require_finite(mid, rad)
        return mid, np.broadcast_to(rad, mid.shape)

    def _rows(self, k: int, entries: list[int]) -> Matrix | None:
        """Return the rows that the entries of a node's argument are, plus constants; or None."""
        node = self.program.nodes[self.program.nodes[k].of[0]]
        while isinstance(node, Shift):
            node = self.program.nodes[node.of[0]]
        if not (isinstance(node, Linear) and node.of == (0,) and node.columns == 1):
            return None
        if len(entries) * self.program.dim > WRITTEN_OUT:
            return None
        rows = node.matrix[np.array(entries)]
        return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)

    def _affine_above(self, k: int) -> bool:
        above = {k}
        for b in range(k + 1, len(self.program.nodes)):
            if above.intersection(self.program.nodes[b].of):
                if not self.program.nodes[b].affine:
                    return False
                above.add(b)
        return True


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
        self, point: Point, v: ExactVector | None, nodes: Sequence[int] | None = None
    ) -> None:
        self.point, self.program = point, point.program
        if v is not None and len(v) != self.program.dim:
            raise InputError(f"got a direction of length {len(v)}, expected {self.program.dim}.")
        self.v, self.pieces = v, dict(point.pieces)
        self.line = Line(self.program, point.y, v, self.pieces)
        self.loose: dict[int, Any] = dict(point.ties)
        self.felt: set[int] = set()
        self._still = {0: Still(*(np.zeros(self.program.dim, bool) for _ in range(2)))}
        for k in point.ties if nodes is None else nodes:
            node = self.program.nodes[k]
            if isinstance(node, Piecewise):
                self._piecewise(k, node)
            elif isinstance(node, Max):
                self._max(k, node)
            elif isinstance(node, Norm2):
                self._norm(k, node)

    def _paths(self, k: int, places: Sequence[int]) -> list[Polynomial]:
        """Return the coefficients of t, t^2, ... of some entries of a node."""
        if self.v is None:
            return [[] for _ in places]
        try:
            return [path[1:] for path in self.line.at(k, places)]
        except Irrational as what:
            raise NotCertifiableError(f"{what} has no polynomial along a line.") from None

    def _prepare(self, k: int, rows: dict[int, list[int]]) -> None:
        """Compute the paths of all tied entries together, where there are any."""
        with suppress(NotCertifiableError):
            self._paths(k, [place for places in rows.values() for place in places])

    def _piecewise(self, k: int, node: Piecewise) -> None:
        (arg,) = node.of
        ties: dict[int, int] = self.loose[k]
        moving = ties
        if not self.program.affine[arg]:
            still = self.still(arg).constant
            moving = {i: level for i, level in ties.items() if not still[i]}
        try:
            leads = [next((c for c in path if c), 0) for path in self._paths(arg, list(moving))]
        except NotCertifiableError:
            # On a smooth breakpoint either piece has the right derivative.
            if any(node.jumps[level] for level in moving.values()):
                raise
            leads = [0] * len(moving)
        piece = self.pieces[k].copy()
        for (i, level), lead in zip(moving.items(), leads):
            if lead:
                piece[i] += lead > 0
                self.felt.add(k)
            elif node.jumps[level]:
                self._require_constant(arg, [i])
        left = {i for (i, _), lead in zip(moving.items(), leads) if lead}
        self.pieces[k] = piece
        self.loose[k] = {i: level for i, level in ties.items() if i not in left}

    def _max(self, k: int, node: Max) -> None:
        (arg,) = node.of
        piece, loose = self.pieces[k].copy(), {}
        self._prepare(arg, self.loose[k])
        for row, tied in self.loose[k].items():
            if not self.program.affine[arg] and self.still(arg).constant[tied].all():
                loose[row] = tied
                continue
            paths = self._paths(arg, tied)
            padded = _padded(paths)
            best = max(padded)
            winner, *same = [i for i, path in zip(tied, padded) if path == best]
            if same and not (self.program.affine[arg] and self._agree(arg, winner, same)):
                self._require_constant(arg, tied)
                loose[row] = tied
            elif len(same) + 1 < len(tied):
                self.felt.add(k)
            piece[row] = winner
        self.pieces[k], self.loose[k] = piece, loose

    def _agree(self, k: int, one: int, others: Sequence[int]) -> bool:
        """Are these affine entries, which have one value at y, one function?"""
        return all(not self._derivative(k, {one: Q(1), other: Q(-1)}) for other in others)

    def _norm(self, k: int, node: Norm2) -> None:
        (arg,) = node.of
        piece, loose = dict(self.pieces[k]), {}
        self._prepare(arg, self.loose[k])
        for row, places in self.loose[k].items():
            still = not self.program.affine[arg] and self.still(arg).constant[places].all()
            paths = self._paths(arg, places) if not still else [[] for _ in places]
            steps = (list(step) for step in zip(*_padded(paths)))
            way = next((step for step in steps if any(step)), None)
            if way is not None:
                self.felt.add(k)
            else:
                if not still:
                    self._require_constant(arg, places)
                loose[row] = places
                way = [1, *[0] * (len(places) - 1)]  # nothing depends on it
            piece[row] = [to_fraction(c) for c in way]
        self.pieces[k], self.loose[k] = piece, loose

    def _require_constant(self, k: int, places: Sequence[int]) -> None:
        """Refuse unless the entries are constant here: affine, with derivative 0."""
        flat = all(
            self.program.nodes[b].flat and b not in self.felt for b in self.program.ancestors(k)
        )
        still = self.still(k).constant if not self.program.affine[k] else np.zeros(0)
        for i in places:
            if still.size and still[i]:
                continue
            if not flat or self._derivative(k, {i: Q(1)}):
                what = "the point is on" if self.v is None else "the direction stays on"
                raise NotCertifiableError(
                    f"{what} a kink: it does not show a point of differentiability."
                )

    def still(self, k: int) -> Still:
        """Return which entries of a node are proved to be constant here."""
        if k not in self._still:
            for b in self.program.ancestors(k):
                if b not in self._still:
                    node = self.program.nodes[b]
                    args = [self._still[a] for a in node.of]
                    loose = self.loose.get(b, {})
                    self._still[b] = node.still(args, self.pieces.get(b), loose)
        return self._still[k]

    def _derivative(self, k: int, start: dict[int, Any]) -> dict[int, Any]:
        """Return the exact derivative of a combination of entries of a node, without zeros."""
        found: dict[int, dict[int, Any]] = {k: start}
        for b in range(k, 0, -1):
            g = found.pop(b, None)
            if not g:
                continue
            node = self.program.nodes[b]
            exact = [partial(self._exact, a) for a in node.of]
            for a, part in zip(node.of, node.pull(g, exact, self.pieces.get(b))):
                total = found.setdefault(a, {})
                found[a] = _added(total, part)
        return {p: c for p, c in found.get(0, {}).items() if c}

    def _exact(self, k: int, places: Iterable[int]) -> list[Any]:
        return [path[0] for path in self.point.line.at(k, places)]

    def exact_gradient(self) -> list[Fraction]:
        """Return the limit of the gradients, exactly."""
        found = self._derivative(len(self.program.nodes) - 1, {0: Q(1)})
        return [
            to_fraction(found[p]) if p in found else Fraction(0) for p in range(self.program.dim)
        ]

    def cotangents(self) -> dict[int, Enclosure]:
        """Return enclosures of the derivatives of the function in the values of its nodes."""
        nodes = self.program.nodes
        found = {len(nodes) - 1: Enclosure(np.ones(1))}
        for b in range(len(nodes) - 1, 0, -1):
            if b not in found:
                continue
            args = [] if nodes[b].affine else [self.point.value(a) for a in nodes[b].of]
            for a, part in zip(nodes[b].of, nodes[b].backward(found[b], args, self.pieces.get(b))):
                found[a] = found[a] + part if a in found else part
        found.setdefault(0, Enclosure(np.zeros(self.program.dim)))
        return found

    def gradient(self) -> Enclosure:
        """Return an enclosure of the limit of the gradients."""
        g = self.cotangents()[0]
        _require_finite(g.mid, g.rad)
        return g


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
    everywhere = np.arange(d)
    for i, j in zip(*np.nonzero(~decided)):
        exact = ExactVector(left[i]).dot(everywhere, right[j])
        signs[i, j] = (exact > 0) - (exact < 0)
    return signs


def enclosed_point(exact: ExactVector) -> Enclosure:
    """Enclose a rational point; coordinates that are floats stay exact."""
    radius = np.zeros(len(exact))
    rounded = exact.others
    radius[rounded] = Enclosure.from_fractions([exact.fractions[k] for k in rounded.tolist()]).rad
    return Enclosure(exact.floats, radius)


def _padded(paths: list[Polynomial]) -> list[Polynomial]:
    length = max(len(path) for path in paths)
    return [[*path, *[Q(0)] * (length - len(path))] for path in paths]


def _added(total: dict[int, Any], part: dict[int, Any]) -> dict[int, Any]:
    if not total:
        return dict(part)
    for place, c in part.items():
        total[place] = total[place] + c if place in total else c
    return total


def _require_finite(mid: Any, rad: Any) -> None:
    if not (np.isfinite(mid).all() and np.isfinite(rad).all()):
        raise NotCertifiableError(
            "the gradient could not be enclosed: it overflows, or divides by an interval around 0. "
            "Rescale the data."
        )


def _go_on() -> None:
    pass


__all__ = [
    "Limits",
    "Pause",
    "Point",
    "Program",
    "Side",
    "enclosed_point",
    "gradient_gap",
    "limiting_gradients",
    "signs_of_products",
]
