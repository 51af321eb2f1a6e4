"""What holds at a point, for irrational and large functions.

Enclosures in float64 decide what their radii prove. Where they leave something open, exact numbers
decide, and of these only the entries that matter are computed.

Limits of gradients along many directions in one pass, where only rows of a matrix are tied.

The tied entries belong to one node, a function of rows times the variable plus constants; what is
above it is smooth here, for nothing else is tied. Along every direction the rest adds the same;
each tied row adds, or not, the jump of its derivative times the row.

A pivot that is known by a box: some point of it lies on kinks whose arguments are irrational.

A *switch* is a number whose vanishing is a tie: an entry minus a breakpoint, the difference of two
entries of a maximum or of sorted entries, an entry of a norm. The pieces at ties are fixed, and
smooth over the box. Then the switches B, as many as the box has variables J, have a common zero y*
in it: with C about the inverse of their Jacobian, enclosed by U over the box, all members of
K = -C u_B(c) + (I - C U) [-r, r] lie strictly inside [-r, r], and y -> y - C u_B(y) maps the box
into itself (Krawczyk; Brouwer's theorem). The other switches are shown to vanish where B does: they
are combinations of those, as affine forms of entries that are not looked into.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.checker.enclosed.arrays import Enclosure, Function, float_dot
from goldstein.checker.enclosed.irrational import LogSumExp, Norm2
from goldstein.checker.enclosed.part import Part
from goldstein.checker.errors import InputError, Irrational, NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Affine, Array, Kinked, Node, Piecewise, Product, Series
from goldstein.checker.rationals import squared_distance, squared_norm, to_fractions
from goldstein.checker.rounding import UNIT, norm_upper
from goldstein.checker.sides import Limits, Numbers, Pause, Point, Program, Side, exact_limits

#: Entries of the rows on kinks, or of the gradients, up to which they are written out.
WRITTEN_OUT = 10**7

#: Entries that are enclosed at a time.
BLOCK = 2**14


#: Above this many multiplications per gradient, or ten times as many for all gradients, enclosures
#: replace rationals. The choice must not depend on what is installed.
RATIONAL_WORK = 40_000


def work(program: Program) -> int:
    """Return how many multiplications one gradient takes, about."""
    return sum(map(_multiplications, program.nodes))


def _multiplications(node: Node) -> int:
    if isinstance(node, Affine):
        return int(getattr(node.matrix, "nnz", math.prod(node.matrix.shape))) * node.columns
    return node.size * (node.inner if isinstance(node, Product) else 1)


def is_small(program: Program, gradients: int = 1) -> bool:
    """Are exact numbers affordable for so many gradients?"""
    cost = work(program)
    return cost <= RATIONAL_WORK and cost * gradients <= 10 * RATIONAL_WORK


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
    tied: Indices = np.array(list(ties))
    some: Any = source.matrix[tied]
    rows: Matrix = np.asarray(some.toarray() if hasattr(some, "toarray") else some)
    # An entry whose row is 0 is constant, and stays on its breakpoint for good.
    moving: NDArray[np.bool_] = np.asarray(rows.any(axis=1))
    tied, rows = tied[moving], rows[moving]
    jumps = [node.jumps[level] for level in point.pieces[k][tied]]
    if not (jumps and all(jumps)):
        return None
    sides = signs_of_products(directions, rows)
    if not sides.all():
        return None  # a direction that stays on a kink: to be looked at one by one
    slopes = Side(point, None, nodes=[]).cotangents()  # the pieces at the point itself
    weights = slopes[k][tied] * Enclosure.of(jumps)
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


Form = dict[Any, Fraction]


class Switch(NamedTuple):
    """Entry i of a node minus a level; or minus entry j, where there is none."""

    node: int
    i: int
    j: int
    level: Fraction | None

    def start(self, program: Program) -> list[int]:
        """Return the switch as a combination of the node's entries."""
        factors = {self.i: 1} if self.j < 0 else {self.i: 1, self.j: -1}
        return [factors.get(e, 0) for e in range(program.nodes[self.node].size)]


def read_switches(program: Program, rows: Any) -> list[Switch]:
    """Return switches: a kinked node, an entry, and its breakpoint or the other entry, or -1."""
    found = []
    for k, i, j in np.asarray(rows).tolist():
        node: Any = program.nodes[k] if 0 < k <= program.last else None
        if not isinstance(node, Kinked) or not 0 <= i < node.sizes[0]:
            raise InputError(f"there is no kink at entry {i} of node {k}.")
        if isinstance(node, Piecewise):
            if not 0 <= j < len(node.breakpoints):
                raise InputError(f"node {k} has no breakpoint {j}.")
            found.append(Switch(node.of[0], i, -1, node.breakpoints[j]))
        elif isinstance(node, Norm2):
            found.append(Switch(node.of[0], i, -1, Fraction(0)))
        else:
            if not 0 <= j < node.sizes[0] or i == j or i // node.columns != j // node.columns:  # type: ignore[attr-defined]
                raise InputError(f"entries {i} and {j} of node {k} are no two of one row.")
            found.append(Switch(node.of[0], i, j, None))
    return found


class Box:
    """What is claimed of a box around a point: radii, and the switches that vanish somewhere in it.

    The first switches, as many as there are positive radii, are solved for.
    """

    def __init__(self, program: Program, radii: Vector, rows: Any) -> None:
        if radii.shape != (program.dim,) or not (np.isfinite(radii) & (radii >= 0)).all():
            raise InputError("a box needs one finite radius >= 0 for each variable.")
        self.program, self.radii = program, radii
        self.free: Indices = np.flatnonzero(radii > 0)
        self.switches = read_switches(program, rows)
        if len(self.switches) < self.free.size:
            raise NotCertifiableError("a box has more variables than kinks to solve for.")
        self._levels = {(s.node, s.i, s.level) for s in self.switches if s.j < 0}
        self._class: dict[tuple[int, int], tuple[int, int]] = {}
        for s in self.switches:
            if s.j >= 0:
                one, two = (self._found((s.node, e)) for e in (s.i, s.j))
                if one != two:
                    self._class[one] = two

    def _found(self, entry: tuple[int, int]) -> tuple[int, int]:
        while entry in self._class:
            entry = self._class[entry]
        return entry

    def is_at(self, node: int, entry: int, level: Fraction) -> bool:
        """Is an entry claimed to be at a level?"""
        return (node, entry, level) in self._levels

    def are_tied(self, node: int, entries: list[int]) -> bool:
        """Are all of these entries claimed to be equal?"""
        return len({self._found((node, e)) for e in entries}) == 1

    def check(self, point: Any) -> None:
        """Prove that all switches vanish at one point of the box, or refuse."""
        program = self.program
        for s in self.switches:
            for b in program.ancestors(s.node):
                if isinstance(program.nodes[b], Norm2) and point.ties.get(b):
                    raise NotCertifiableError("a kink depends on a norm that is 0 at the pivot.")
        solved, rest = self.switches[: self.free.size], self.switches[self.free.size :]
        if solved:
            self._solve(point, solved)
        basis: list[Form] = []
        for s in solved:
            self._reduced(basis, self._form(point, s), True)
        for s in rest:
            if self._reduced(basis, self._form(point, s), False) and not self._is_zero(point, s):
                raise NotCertifiableError(
                    "a kink is not proved to be met where the others are: its argument is no "
                    "combination of theirs."
                )

    @np.errstate(all="ignore")
    def _solve(self, point: Any, solved: list[Switch]) -> None:
        program, free = self.program, self.free
        centre = {0: [Enclosure.of(point.y)]}
        gaps, rows = [], []
        for s in solved:
            u = program.extend(centre, point.pieces, s.node)[0]
            gaps.append(u[[s.i]] - (u[[s.j]] if s.level is None else Enclosure.of([s.level])))
            start = Enclosure.of(s.start(program))
            rows.append(program.pull_back(s.node, start, point.pieces, point.value)[0][free])
        mid, rad = (np.array([getattr(row, end) for row in rows]) for end in ("mid", "rad"))
        try:
            inverse = np.linalg.inv(mid)
        except np.linalg.LinAlgError:
            inverse = np.full_like(mid, np.nan)
        at = Enclosure(*(np.concatenate([getattr(g, end) for g in gaps]) for end in ("mid", "rad")))
        about = Enclosure(inverse)
        spread = Enclosure(np.eye(free.size)) - about @ Enclosure(mid, rad)
        radii = self.radii[free]
        image = spread @ Enclosure(np.zeros(free.size), radii) - about @ at
        if not (image.magnitude < radii).all():  # a NaN refuses
            raise NotCertifiableError(
                "the box is not proved to contain a point where its kinks meet: they may be "
                "tangential, or the box too small or too large."
            )

    def _form(self, point: Any, s: Switch) -> Form:
        """Return a switch as an affine form of the variables J and of entries not looked into."""
        program, y, form = self.program, Exact.of(point.y), dict[Any, Fraction]()
        fixed = Exact(y.top * np.where(self.radii > 0, 0, 1).astype(object), y.den)
        closed = {
            b: [Exact.of([0] * node.size)]
            for b, node in enumerate(program.nodes)
            if not node.flat or isinstance(node, Norm2)
        }
        try:
            start = Exact.of(s.start(program))
            entries = program.extend({0: [fixed], **closed}, point.pieces, s.node)[0].fractions
            found = program.pull_back(s.node, start, point.pieces, point.value, closed)
        except Irrational:
            return {s: Fraction(1)}  # nothing is known of it
        for b in {0, *closed} & set(found):
            for e, c in enumerate(found[b].fractions):
                if b or self.radii[e] > 0:
                    key = self._names[b], e
                    form[key] = form.get(key, Fraction(0)) + c
        constant = entries[s.i] - (entries[s.j] if s.j >= 0 else s.level or 0)
        return {key: c for key, c in form.items() if c} | ({0: constant} if constant else {})

    @cached_property
    def _names(self) -> list[int]:
        """For every node the first one that computes the same."""
        seen, names = dict[Any, int](), list[int]()
        for k, node in enumerate(self.program.nodes):
            data = [_frozen(getattr(node, f.name)) for f in fields(node) if f.name != "of"]
            key = type(node), tuple(names[a] for a in node.of), tuple(data)
            names.append(seen.setdefault(key, k))
        return names

    @staticmethod
    def _reduced(basis: list[Form], form: Form, keep: bool) -> Form:
        """Subtract combinations of forms from one; what is left is 0 if it is one of them."""
        for known in basis:
            head = next(iter(known))
            if head in form:
                share = form[head] / known[head]
                both = {k: form.get(k, Fraction(0)) - share * known.get(k, Fraction(0))
                        for k in form | known}  # fmt: skip
                form = {k: c for k, c in both.items() if c}
        if keep and form:
            basis.append(form)
        return form

    def _is_zero(self, point: Any, s: Switch) -> bool:
        """Is a switch 0 whatever the variables J are? Its value is known exactly."""
        try:
            places = sorted({s.i, s.j} - {-1})
            found = dict(zip(places, point.exact(s.node, places).fractions))
        except NotCertifiableError:
            return False
        return found[s.i] == (s.level if s.level is not None else found[s.j])


def boxed(cert: Any) -> tuple[Any, Any] | None:
    """Return the radii and switches of a pivot that is known by a box."""
    radii = getattr(cert, "radii", None)
    return None if radii is None else (radii, cert.switches)


def farthest(pivot: Sequence[Fraction], x: Vector, box: tuple[Any, Any] | None) -> Fraction:
    """Return the square of the distance of x from the farthest point of a box; exactly."""
    if box is None:
        return squared_distance(pivot, x)
    entries = zip(pivot, to_fractions(x), to_fractions(box[0]), strict=True)
    return squared_norm([abs(c - a) + r for c, a, r in entries])


def _frozen(value: Any) -> Any:
    """Return something that is equal for equal data, as far as that is seen."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if sparse.issparse(value):
        return value.shape, *(_frozen(getattr(value, n)) for n in ("data", "indices", "indptr"))
    return value if isinstance(value, int | tuple | Function) else id(value)


class EnclosedPoint(Point):
    """A point with enclosed values; what is decided about it is exact."""

    arithmetic = "enclosed in float64"

    def __init__(self, program: Program, y: Numbers, box: tuple[Any, Any] | None = None) -> None:
        self.box = None if box is None else Box(program, *box)
        super().__init__(program, y)
        if self.box is not None:
            self.box.check(self)

    def start(self) -> Enclosure:
        """Return the point; where it is only known by a box, all of that."""
        at = Enclosure.of(self.y)
        return at if self.box is None else at + Enclosure(np.zeros(at.size), self.box.radii)

    def _moves_in_box(self, part: Part) -> bool:
        return self.box is not None and bool(self.box.radii[part.places].any())

    def enclosed(self, vector: Any) -> Enclosure:
        return Enclosure.of(vector)

    def view(self, k: int) -> _View:
        return _View(self, k)

    def exact(self, k: int, places: list[int]) -> Exact:
        """Return exact values of some entries of a node, given in ascending order."""
        part = Part(self.program, self.pieces, k, places)
        try:
            if self._moves_in_box(part):
                raise Irrational("variables that are only enclosed")
            found: Exact = part.series(self.y)[0]
            return found
        except Irrational as what:
            if not Side(self, None, nodes=[]).still(k)[0][places].any():
                return Exact(np.zeros(len(places), dtype=object))
            raise NotCertifiableError(
                "whether an argument of a kink is exactly on it cannot be decided: it contains "
                f"{what}, and its enclosure straddles the kink."
            ) from None

    def between(self) -> tuple[Fraction, Fraction]:
        try:
            (value,) = self.exact(self.program.last, [0]).fractions
            return value, value
        except NotCertifiableError:  # an irrational number: an interval around it
            box: Enclosure = self.value(self.program.last)
            require_finite(box.mid, box.rad)
            mid, rad = Fraction(float(box.mid[0])), Fraction(float(box.rad[0]))
            return mid - rad, mid + rad

    def path(self, side: Side, k: int, places: list[int]) -> Series:
        part = Part(self.program, side.pieces, k, places)
        if not self._moves_in_box(part):
            with suppress(Irrational):
                return part.series(self.y, side.v)[1:]
        # The derivative along v, over all of the box. More coefficients would not help: that one
        # that is only enclosed is 0 cannot be known.
        return super().path(side, k, places)

    def moves(self, side: Side, k: int, factors: dict[int, int]) -> bool:
        places = sorted(factors)
        part = Part(self.program, side.pieces, k, places)
        return bool(part.backward(Exact.of([factors[i] for i in places]), {}).top.any())

    def limits(self, directions: Matrix | Sequence[Numbers], pause: Pause = lambda: None) -> Limits:
        small, boxed = is_small(self.program, len(directions)), self.box is not None
        boxes = None if small or boxed else limits(self, np.asarray(directions))
        if boxes is not None:
            require_finite(*boxes)
            return Limits(None, *boxes)
        sides = [Side(self, v, pause) for v in directions]
        irrational = any(isinstance(n, LogSumExp | Norm2) for n in self.program.nodes)
        if small and not boxed and not irrational:
            with suppress(Irrational):  # a logarithm has rational slopes
                return exact_limits([self._exact_gradient(side) for side in sides])
        found = [side.gradient() for side in sides]
        mids, rads = (np.array([getattr(g, end) for g in found]) for end in ("mid", "rad"))
        require_finite(mids, rads)
        return Limits(None, mids, rads)

    def _exact_gradient(self, side: Side) -> list[Fraction]:
        part = Part(self.program, side.pieces, self.program.last, [0])
        found = part.backward(Exact.of([1]), part.start(self.y))
        g = [Fraction(0)] * self.program.dim
        for place, entry in zip(part.places.tolist(), found.fractions):
            g[place] = entry
        return g


class _View:
    """A node's entries: signs that enclosures prove, and exact ones for the rest."""

    def __init__(self, point: EnclosedPoint, k: int) -> None:
        self.point, self.k = point, k

    def signs(self, level: Fraction = Fraction(0)) -> Indices:
        u: Enclosure = self.point.value(self.k)
        signs = u.signs(level)
        box, doubtful = self.point.box, np.flatnonzero(signs == 0)
        if box is not None:
            open_ = [i for i in doubtful.tolist() if not box.is_at(self.k, i, level)]
            doubtful = np.array(open_, dtype=np.intp)
        if doubtful.size:
            exact = self.point.exact(self.k, doubtful.tolist())
            signs[doubtful] = exact.signs(level)
            # What is known exactly is enclosed tightly from here on.
            mid, rad, tight = u.mid.copy(), u.rad.copy(), Enclosure.of(exact.fractions)
            mid[doubtful], rad[doubtful] = tight.mid, tight.rad
            self.point.values[self.k] = [Enclosure(mid, rad)]
        return signs

    def largest(self, columns: int) -> list[list[int]]:
        u: Enclosure = self.point.value(self.k)
        tied = u.largest(columns)
        for row, places in enumerate(tied):
            if len(places) > 1 and not self._tied(places):
                best = self.point.exact(self.k, places).largest(len(places))[0]
                tied[row] = [places[j] for j in best]
        return tied

    def _tied(self, places: list[int]) -> bool:
        return self.point.box is not None and self.point.box.are_tied(self.k, places)

    def ordered(self, columns: int, matters: Any) -> list[list[int]]:
        u: Enclosure = self.point.value(self.k)
        found, start = list[list[int]](), 0
        for chain in u.ordered(columns):
            if matters(start, len(chain)) and not self._tied(chain):
                places = sorted(chain)
                exact = self.point.exact(self.k, places).ordered(len(places))
                found += [[places[j] for j in same] for same in exact]
            else:
                found.append(chain)
            start += len(chain)
        return found


def require_finite(mid: Array, rad: Array) -> None:
    """Refuse enclosures that say nothing."""
    if not (np.isfinite(mid).all() and np.isfinite(rad).all()):
        raise NotCertifiableError(
            "the gradient or value could not be enclosed: it overflows, or divides by an interval "
            "around 0. Rescale the data."
        )
