"""The kink form: which smooth piece rules at a point and just beside it, for searches.

Let y be a point and v a direction such that every kink decision is strict on (y, y + t0 v] for
some t0 > 0. Then F is smooth there, and the limit of its gradients as t -> 0+ is an element of the
Clarke subdifferential of F at y. It equals the gradient at y of the pieces chosen beside y. This
needs no rank condition, no constants, and no convexity of the pieces' domains; for affine kinks and
v = y_j - y it is the transport theorem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.calculus.affine import Linear, Shift
from goldstein.calculus.arithmetic import (
    ENCLOSURE,
    FLOAT,
    RATIONAL,
    Arithmetic,
    Irrational,
    rationals,
    to_fraction,
)
from goldstein.calculus.atoms.base import Elementwise
from goldstein.calculus.blocked_rows import BlockedRows
from goldstein.calculus.expression import (
    Expression,
    IntegerRow,
    Jet,
    KinkNode,
    Pieces,
    Tie,
    Variable,
    kink_error,
)
from goldstein.calculus.stillness import Still
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.enclosed.exact_vector import ExactVector
from goldstein.checker.sides import RATIONAL_WORK
from goldstein.errors import GoldsteinError, InputError, NotCertifiableError

#: Longest row of integers that is kept: a long one takes more memory than time.
KEPT_ROW = 1000

#: From this length on, rows of float64 data are multiplied as they are.
LONG_ROW = 64


@dataclass
class Kink:
    """One kink that passes exactly through a point: entry and breakpoint of a node."""

    node: KinkNode
    entry: int
    level: int


@dataclass
class Examination:
    """What holds at one exact point: enclosed values, pieces, and the exact ties."""

    form: KinkForm
    at: ExactVector
    pieces: Pieces = field(default_factory=dict)
    ties: dict[int, list[Tie]] = field(default_factory=dict)
    #: Nodes with an entry exactly on a smooth breakpoint: their polynomials are one-sided.
    bent: set[int] = field(default_factory=set)
    #: Entries exactly on breakpoints, whether or not they matter.
    touched: dict[int, frozenset[int]] = field(default_factory=dict)
    _rows: dict[tuple[int, int], dict[int, Fraction]] = field(default_factory=dict)
    _integer_rows: dict[tuple[int, int], IntegerRow] = field(default_factory=dict)

    def __post_init__(self) -> None:
        #: Enclosures of the nodes' values, on demand.
        self.values = _Values(
            self,
            ENCLOSURE,
            Enclosure.of(self.at.fractions) if self.at.others.size else Enclosure(self.at.floats),
        )
        #: Which entries of the nodes do not change near the point, on demand.
        self.still = _Stillness(self.form.root, self.pieces, self.touched)

    @property
    def point(self) -> tuple[Fraction, ...]:
        """The examined point."""
        return self.at.fractions

    @cached_property
    def exact(self) -> _Values:
        """Exact values of the nodes, on demand; most points need none."""
        return _Values(self, RATIONAL, rationals(np.array(self.point, dtype=object)))

    @property
    def is_smooth(self) -> bool:
        """True when no kink passes through the point."""
        return not self.ties

    def entry(self, node: Expression, index: int) -> Fraction:
        """Return the exact value of one entry of a node."""
        if node.is_affine:
            return node.offset(index) + self.product(node, index, self.at)
        if self.still[id(node)].zero.flat[index]:
            return Fraction(0)  # without the exact values of everything below
        try:
            return to_fraction(self.exact[id(node)].reshape(-1)[index])
        except Irrational as what:
            raise NotCertifiableError(
                f"whether an argument of a kink is exactly on it cannot be decided: it contains "
                f"{what}, and its enclosure straddles the kink."
            ) from None

    def product(self, node: Expression, index: int, vector: ExactVector) -> Fraction:
        """Return an affine entry's coefficients times an exact vector."""
        stored = _stored_row(node, index)
        if stored is not None:
            return vector.dot(*stored)
        places, tops, bottom = self.integer_row(node, index)
        entries, denominator = vector.integers
        total = sum(top * entries[k] for k, top in zip(places, tops))
        return Fraction(total, bottom * denominator)

    def integer_row(self, node: Expression, index: int) -> IntegerRow:
        """Return the coefficients of an affine entry as integers; short ones are kept."""
        key = (id(node), index)
        known = self._integer_rows.get(key)
        if known is None:
            known = node.integer_row(index)
            if len(known[0]) <= KEPT_ROW:
                self._integer_rows[key] = known
        return known

    def row(self, node: Expression, index: int) -> dict[int, Fraction]:
        """Return the exact coefficients of an affine entry, kept for the next question."""
        key = (id(node), index)
        if key not in self._rows:
            self._rows[key] = node.row(index)
        return self._rows[key]


class KinkForm:
    """A scalar expression seen through its kinks.

    Parameters
    ----------
    root : Expression
        A scalar expression.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> form = KinkForm(sum(abs(Variable(2))))
    >>> [kink.entry for kink in form.active_kinks(form.examine([0.0, 1.0]))]
    [0]
    """

    def __init__(self, root: Expression) -> None:
        self.root = root
        self.dim = root.variable.size
        self._last: Examination | None = None

    def __getstate__(self) -> dict[str, Any]:
        # An examination refers to nodes by identity, which a copy does not share.
        return {**self.__dict__, "_last": None}

    def examine(self, point: Sequence[Any] | NDArray[Any]) -> Examination:
        """Decide exactly, for every kink, on which side of it a point lies, or that it is on it."""
        exact = ExactVector(point)
        if len(exact) != self.dim:
            raise InputError(f"got a point of length {len(exact)}, expected {self.dim}.")
        last = self._last
        if last is not None and last.at == exact:
            return last
        found = Examination(self, exact)
        for node in self.root.plan:
            # Smooth atoms with breakpoints need their pieces too, so all of them are decided.
            if isinstance(node, KinkNode):
                self._decide(node, found)
        self._last = found
        return found

    def _decide(self, node: KinkNode, found: Examination) -> None:
        inner = node.args[0]
        if node.needs_no_decision:
            found.pieces[id(node)] = np.zeros(node.shape, dtype=np.intp)
            return
        u = found.values[id(inner)]
        _fetch_together(node, u)
        piece, ties, bent = node.examine(u, lambda i: found.entry(inner, i))
        found.pieces[id(node)] = piece
        if not ties and not bent:
            return
        found.touched[id(node)] = frozenset([entry for entry, _ in ties] + bent)
        # An entry that stays what it is near the point never crosses its kink.
        moves = partial(self._moves, found, inner)
        ties = node.felt(ties, moves)
        if ties:
            found.ties[id(node)] = ties
        if any(moves(entry) for entry in bent):
            found.bent.add(id(node))

    def _moves(self, found: Examination, inner: Expression, index: int) -> bool:
        """Return False only if an entry is proved to be constant near the point."""
        if inner.is_affine:
            stored = _stored_row(inner, index)
            return bool(found.integer_row(inner, index)[0] if stored is None else stored[0].size)
        if found.still[id(inner)].constant.flat[index]:
            return False
        return not (self._is_flat(found, inner) and self._derivative_vanishes(found, inner, index))

    def _is_flat(self, found: Examination, inner: Expression) -> bool:
        """True when an expression is affine near the point: linear pieces, no kink felt."""
        return inner.degree == 1 and not any(
            id(node) in found.ties or id(node) in found.bent for node in inner.plan
        )

    def _derivative_vanishes(self, found: Examination, inner: Expression, index: int) -> bool:
        if not self.is_small:
            return False
        start = RATIONAL.zeros((inner.size,))
        start[index] = RATIONAL.one()[()]
        cotangents = inner.cotangents(
            found.exact, RATIONAL, found.pieces, start.reshape(inner.shape)
        )
        return not any(to_fraction(g) for g in cotangents[id(inner.variable)].ravel())

    def require_smooth_point(self, point: Vector) -> Pieces:
        """Return the pieces at a point, or raise `KinkError` if it is not surely off all kinks."""
        if not np.isfinite(point).all():
            raise InputError(f"the point has a non-finite entry: {point}.")
        try:
            found = self.examine(point)
        except NotCertifiableError as why:
            if not self.root.is_exact:
                return self._float_pieces(point)
            raise kink_error(point, str(why)) from None
        if found.ties:
            node = next(n for n in self.root.kink_nodes if id(n) in found.ties)
            raise kink_error(point, f"{node.name} has its argument exactly on a kink")
        return found.pieces

    def _float_pieces(self, point: Vector) -> Pieces:
        """Without the entries of a matrix, floats are all there is: refuse visible kinks only."""
        values = self.root._values(point)
        pieces: Pieces = {}
        for node in self.root.kink_nodes:
            u = values[id(node.args[0])]
            piece = node.clear_piece(u, np.zeros(u.shape))
            if piece is None:
                raise kink_error(point, f"{node.name} has its argument on a kink")
            pieces[id(node)] = piece
        return pieces

    def pieces_beside(self, found: Examination, direction: Sequence[Any]) -> Pieces:
        """Return the pieces that rule at y + t v for all small t > 0."""
        if len(direction) != self.dim:
            raise InputError(f"got a direction of length {len(direction)}, expected {self.dim}.")
        pieces = dict(found.pieces)
        if not found.ties:
            return pieces
        path = _Path(found, ExactVector(direction), pieces)
        for node in self.root.plan:
            if not isinstance(node, KinkNode):
                continue
            ties = found.ties.get(id(node))
            if ties:
                ties = path.felt(node, ties)
            if ties:
                leading = partial(path.leading, node.args[0])
                pieces[id(node)] = node.split(pieces[id(node)], ties, leading)
            if id(node) in found.bent:
                path.leave_smooth_breakpoints(node)
        return pieces

    @property
    def is_small(self) -> bool:
        """True when exact rationals are affordable for a whole gradient."""
        return self._work <= RATIONAL_WORK

    @cached_property
    def _work(self) -> int:
        return sum(
            int(np.prod(node.A.shape)) * (node.size // node.shape[0])
            for node in self.root.plan
            if isinstance(node, Linear)
        ) + sum(node.size for node in self.root.plan)

    # --- float64, for the search ---------------------------------------------------------------

    def active_kinks(self, found: Examination) -> list[Kink]:
        """Return the kinks through a point, those of all nodes in one list."""
        return [
            Kink(node, entry, level)
            for node in self.root.kink_nodes
            for entry, level in found.ties.get(id(node), [])
        ]

    def float_pieces(self, point: Vector) -> Pieces:
        """Return the pieces that float64 sees at a point; entries on a kink get either side."""
        values = self.root._values(np.ascontiguousarray(point))
        return {id(n): n.nearest_piece(values[id(n.args[0])]) for n in self.root.kink_nodes}

    def float_gradient(self, point: Vector, pieces: Pieces) -> Vector:
        """Return the gradient at a float point of the given pieces."""
        g: Vector = self.root.pull_back(self.root._values(point), FLOAT, pieces)
        return np.array(np.broadcast_to(g, (self.dim,)))


class _Values(dict[int, Any]):
    """Values of nodes at the examined point, computed when something asks for them."""

    def __init__(self, found: Examination, arithmetic: Arithmetic, point: Any) -> None:
        root = found.form.root
        super().__init__({id(root.variable): point})
        self._arithmetic, self._pieces = arithmetic, found.pieces
        self._nodes = {id(node): node for node in root.plan}

    def __missing__(self, key: int) -> Any:
        node = self._nodes[key]
        inputs = [self[id(a)] for a in node.args]
        value = node.forward(inputs, self._arithmetic, self._pieces.get(key))
        self[key] = self._arithmetic.shaped(value, node.shape)
        return self[key]


class _Stillness(dict[int, Still]):
    """What is constant near a point, node by node; the kinks below must have been decided."""

    def __init__(
        self, root: Expression, pieces: Pieces, touched: dict[int, frozenset[int]]
    ) -> None:
        super().__init__()
        self._nodes = {id(node): node for node in root.plan}
        self._pieces, self._touched = pieces, touched

    def __missing__(self, key: int) -> Still:
        node = self._nodes[key]
        args = [self[id(a)] for a in node.args]
        touched = self._touched.get(key, frozenset())
        self[key] = node.still(args, self._pieces.get(key), touched)
        return self[key]


@dataclass
class _Path:
    """The line y + t v: exact polynomials in t, under the pieces chosen so far."""

    found: Examination
    steps: ExactVector
    pieces: Pieces
    _jets: dict[int, Jet] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._touched = dict(self.found.touched)
        self._still = _Stillness(self.found.form.root, self.pieces, self._touched)

    def felt(self, node: KinkNode, ties: list[Tie]) -> list[Tie]:
        """Return the ties that the line breaks, or must break.

        On y + t v with a small t > 0 all decisions below the node are strict, so that the argument
        may be constant near every point of it: relu(relu(w)) beside 0, to the left. It then keeps
        the value that it has at y, and is on the kink for good.
        """
        inner = node.args[0]
        if not inner.is_affine:
            ties = node.felt(ties, lambda i: not self._still[id(inner)].constant.flat[i])
        # What the line breaks is strictly beside its breakpoint.
        broken = {entry for entry, _ in ties}
        self._touched[id(node)] = self._touched[id(node)] - broken
        return ties

    def leading(self, node: Expression, index: int) -> list[Fraction]:
        """Return the coefficients of t, t^2, ... of one entry."""
        if node.is_affine:
            return [self.found.product(node, index, self.steps)]
        try:
            jet = self._jet(node)
        except Irrational as what:
            raise NotCertifiableError(f"{what} has no polynomial along a line.") from None
        return [to_fraction(c.reshape(-1)[index]) for c in jet[1:]]

    def _jet(self, node: Expression) -> Jet:
        if id(node) not in self._jets:
            if isinstance(node, Variable):
                jet: Jet = [
                    self.found.exact[id(node)],
                    rationals(np.array(self.steps.fractions, dtype=object)),
                ]
            else:
                jets = [self._jet(a) for a in node.args]
                jet = node.jet(jets, self.pieces.get(id(node)))
            self._jets[id(node)] = [RATIONAL.shaped(c, node.shape) for c in jet]
        return self._jets[id(node)]

    def leave_smooth_breakpoints(self, node: KinkNode) -> None:
        """Choose the pieces for small t > 0 of entries on breakpoints without a kink.

        The derivative is that of either piece; further along the line the polynomials differ.
        """
        try:
            inner = self._jet(node.args[0])
        except GoldsteinError:  # no polynomial: nothing above can be followed along the line either
            return
        chosen = self.pieces[id(node)].copy()
        felt = {entry for entry, _ in self.found.ties.get(id(node), [])}
        for i in self.found.touched[id(node)] - felt:
            lead = next((c.reshape(-1)[i] for c in inner[1:] if c.reshape(-1)[i]), 0)
            if lead:
                chosen.flat[i] += lead > 0
                self._touched[id(node)] = self._touched[id(node)] - {i}
        self.pieces[id(node)] = chosen


def _fetch_together(node: KinkNode, u: Enclosure) -> None:
    """Rows that are elsewhere: those in doubt will be asked for, one after the other."""
    inner = node.args[0]
    while isinstance(inner, Shift):
        inner = inner.args[0]
    if not (isinstance(inner, Linear) and isinstance(node, Elementwise)):
        return
    if isinstance(inner.A, BlockedRows):
        inner.A.keep(node.in_doubt(u).tolist())


def _stored_row(node: Expression, index: int) -> tuple[NDArray[np.intp], Vector] | None:
    """Return the coefficients of an affine entry (places, numbers) where float64 data hold them.

    Long rows only: short ones are turned into integers once, and kept.
    """
    while isinstance(node, Shift):
        node = node.args[0]
    if not isinstance(node, Linear) or node.matrix_free or node.args[0] is not node.variable:
        return None
    if node.ndim != 1 or node.A.shape[1] < LONG_ROW:
        return None
    if sparse.issparse(node.A):
        if node.A.format != "csr":
            return None
        span = slice(node.A.indptr[index], node.A.indptr[index + 1])
        places, entries = node.A.indices[span], node.A.data[span]
        filled = entries != 0
        return places[filled].astype(np.intp), entries[filled]
    row = node.A[index]
    places = np.flatnonzero(row)
    return places, row[places]


__all__ = ["Examination", "Kink", "KinkForm"]
