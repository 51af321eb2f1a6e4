"""A pivot that is known by a box: some point of it lies on kinks whose arguments are irrational.

A *switch* is a number whose vanishing is a tie: an entry minus a breakpoint, the difference of two
entries of a maximum or of sorted entries, an entry of a norm. The pieces at ties are fixed, and
smooth over the box. Then the switches B, as many as the box has variables J, have a common zero y*
in it: with C about the inverse of their Jacobian, enclosed by U over the box, all members of
K = -C u_B(c) + (I - C U) [-r, r] lie strictly inside [-r, r], and y -> y - C u_B(y) maps the box
into itself (Krawczyk; Brouwer's theorem). The other switches are shown to vanish where B does: they
are combinations of those, as affine forms of entries that are not looked into.
"""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from goldstein.checker.arrays import Indices, Vector
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.enclosed.smooth import Function
from goldstein.checker.errors import InputError, Irrational, NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Kinked, Norm2, Piecewise
from goldstein.checker.sides import Program

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


def _frozen(value: Any) -> Any:
    """Return something that is equal for equal data, as far as that is seen."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if sparse.issparse(value):
        return value.shape, *(_frozen(getattr(value, n)) for n in ("data", "indices", "indptr"))
    return value if isinstance(value, int | tuple | Function) else id(value)


__all__ = ["Box", "Switch", "read_switches"]
