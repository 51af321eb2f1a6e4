"""The language of functions: nine kinds of nodes, and the meaning of each.

A function is a list of nodes. Each computes a vector from the vectors of earlier ones; the first is
the variable, the last has one entry. The arithmetic is that of its arguments: `Enclosure` for all
entries at once, `Exact` for the few on which a decision hangs. Every kind says the same things:

* `forward`: its value; of series in t, its series (enclosures: up to the first power of t);
* `backward`: the derivatives in its arguments, the one in itself being given;
* `cut`: the same node for some of its entries, and the entries of the arguments that these need;
* `constant`: which entries do not change near a point.

Three kinds have pieces. `decide` returns the piece of every entry at a point, and the entries that
are exactly on a breakpoint: which side they go to depends on the direction in which the point is
left (`goldstein.checker.sides`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker.arrays import Indices, Vector
from goldstein.checker.enclosures import Enclosure
from goldstein.checker.errors import InputError, NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.smooth import FUNCTIONS

#: An array of enclosures, or of exact numbers.
Array = Any
#: Coefficients of 1, t, t^2, ... along a line.
Series = list[Array]
#: 0: may change near the point; CONSTANT: does not; ZERO: is 0 and stays 0.
Constancy = NDArray[np.int8]
CONSTANT, ZERO = 1, 2
#: Exact values of some entries of a node.
Ask = Callable[[Sequence[int]], Exact]
Coefficients = tuple[tuple[Fraction, ...], ...]

#: Polynomials of a higher degree are refused: their coefficients grow without bounds.
MAX_DEGREE = 64


@dataclass(frozen=True, eq=False)
class Node:
    """One step: `size` entries from the nodes `of`, which have `sizes` entries."""

    of: tuple[int, ...]
    sizes: tuple[int, ...]
    size: int

    #: An affine function of its arguments: `backward` asks for no values.
    affine = False
    #: Made of affine pieces.
    flat = False

    def __post_init__(self) -> None:
        if not self.fits():
            raise InputError(f"a node `{self.name}` does not fit its arguments.")

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    def fits(self) -> bool:
        """Do the sizes and the data belong together?"""
        return bool(self.sizes) and all(size == self.size for size in self.sizes)

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        raise NotImplementedError

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        raise NotImplementedError

    def cut(self, places: Indices, piece: Any) -> tuple[Node, Any, list[Indices]]:
        """Return the node of these entries, its piece, and the places of the arguments."""
        n = places.size
        return self._sized(n, n), piece, [places for _ in self.of]

    def _sized(self, size: int, *sizes: int) -> Any:
        sizes = sizes if len(sizes) == len(self.of) else sizes * len(self.of)
        return replace(self, sizes=sizes, size=size)

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        """Say what is constant; `loose` are the entries that are left on a breakpoint."""
        least: Constancy = np.minimum.reduce(args)
        return least


class Variable(Node):
    """The variable."""

    affine = flat = True

    def fits(self) -> bool:
        return not self.of


@dataclass(frozen=True, eq=False)
class Affine(Node):
    """(M u + offset) / divisor, all numbers float64; u is a table of `columns`, row by row.

    The matrix is dense, sparse by rows, or stays elsewhere and offers `@`, `T @` and its rows.
    """

    matrix: Any
    columns: int = 1
    offset: Vector | None = None
    divisor: Vector | None = None
    affine = flat = True

    def fits(self) -> bool:
        rows, width = self.matrix.shape
        divisible = self.divisor is None or bool(self.divisor.all())
        vectors = (v.shape == (self.size,) for v in (self.offset, self.divisor) if v is not None)
        sizes = self.size == rows * self.columns, self.sizes == (width * self.columns,)
        return self.columns > 0 and all(sizes) and divisible and all(vectors)

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        (u,) = args
        out = [self._product(self.matrix, c) for c in u]
        if self.offset is not None:
            out[0] = out[0] + Enclosure(self.offset)
        return out if self.divisor is None else [c / Enclosure(self.divisor) for c in out]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        g = g if self.divisor is None else g / Enclosure(self.divisor)
        return [self._product(self.matrix.T, g)]

    def _product(self, matrix: Any, v: Enclosure) -> Enclosure:
        answer: Enclosure = matrix @ (v if self.columns == 1 else v.reshape(-1, self.columns))
        return answer.reshape(-1)

    def cut(self, places: Indices, piece: Any) -> tuple[Node, Any, list[Indices]]:
        row, column = np.divmod(places, self.columns)
        some = sparse.csr_array(self.matrix[row])
        some.eliminate_zeros()
        counts = np.diff(some.indptr)
        at = some.indices.astype(np.intp) * self.columns + np.repeat(column, counts)
        offset, divisor = (None if v is None else v[places] for v in (self.offset, self.divisor))
        sums = Sums(self.of, (at.size,), places.size, some.data, some.indptr, offset, divisor)
        return sums, piece, [at]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        if not (sparse.issparse(self.matrix) or isinstance(self.matrix, np.ndarray)):
            return np.zeros(self.size, dtype=np.int8)
        used = (self.matrix != 0).astype(np.float64)
        table = args[0].reshape(-1, self.columns)
        still, zero = (np.asarray(used @ (table < c) == 0).reshape(-1) for c in (CONSTANT, ZERO))
        zero &= True if self.offset is None else self.offset == 0
        return _constancy(still, zero)


@dataclass(frozen=True, eq=False)
class Sums(Node):
    """Some entries of an affine node, exactly: sums of the argument's entries times numbers."""

    numbers: Vector
    ends: Indices
    offset: Vector | None
    divisor: Vector | None
    affine = flat = True

    def fits(self) -> bool:
        return True

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        return self.finished([(c * Exact.of(self.numbers)).segments(self.ends) for c in args[0]])

    def finished(self, sums: Series) -> Series:
        """Add the offset to the values, and divide."""
        if self.offset is not None:
            sums[0] = sums[0] + Exact.of(self.offset)
        return [self._divided(c) for c in sums]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        owner = np.repeat(np.arange(self.size), np.diff(self.ends))
        return [self._divided(g)[owner] * Exact.of(self.numbers)]

    def _divided(self, c: Exact) -> Exact:
        return c if self.divisor is None else c * Exact.of(self.divisor).reciprocal()


class Add(Node):
    """The sum of the arguments."""

    affine = flat = True

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        return reduce(plus, args)

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        return [g for _ in self.of]


@dataclass(frozen=True, eq=False)
class Product(Node):
    """Products of tables, `batch` of them: n x `inner` times `inner` x m entries, row by row.

    With a batch of single entries it is the product entry by entry.
    """

    batch: int
    inner: int

    def fits(self) -> bool:
        block = self.batch * self.inner
        if len(self.sizes) != 2 or block < 1 or any(s < 1 or s % block for s in self.sizes):
            return False
        n, m = self._shape
        return self.size == self.batch * n * m

    @property
    def _shape(self) -> tuple[int, int]:
        left, right = (s // (self.batch * self.inner) for s in self.sizes)
        return left, right

    def _tables(self, left: Array, right: Array) -> tuple[Array, Array]:
        n, m = self._shape
        return left.reshape(self.batch, n, self.inner), right.reshape(self.batch, self.inner, m)

    def _times(self, left: Array, right: Array) -> Array:
        a, b = self._tables(left, right)
        return (a @ b).reshape(-1)

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        return times(*args, self._times)

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        left, right = self._tables(*args)
        table = g.reshape(self.batch, *self._shape)
        return [(table @ right.swapped).reshape(-1), (left.swapped @ table).reshape(-1)]

    def cut(self, places: Indices, piece: Any) -> tuple[Node, Any, list[Indices]]:
        (n, m), k, count = self._shape, self.inner, places.size
        block, i, j = np.unravel_index(places, (self.batch, n, m))
        along = np.arange(k)
        left = ((block * n + i)[:, None] * k + along).reshape(-1)
        right = ((block[:, None] * k + along) * m + j[:, None]).reshape(-1)
        cut = Product(self.of, (count * k, count * k), count, count, k)
        return cut, piece, [left, right]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        def never(left: Any, right: Any) -> Any:
            """Is there no product in which both factors are marked?"""
            a, b = self._tables(left.astype(np.float64), right.astype(np.float64))
            return (a @ b == 0).reshape(-1)

        (a, b), (p, q) = ([arg < c for arg in args] for c in (CONSTANT, ZERO))
        return _constancy(never(a, q) & never(p, b), never(p, q))


@dataclass(frozen=True, eq=False)
class Piecewise(Node):
    """A continuous function of one number, a polynomial between breakpoints, entry by entry.

    `breakpoints` ascend; `pieces` are coefficients by ascending power, all of one length, one piece
    more than breakpoints.
    """

    breakpoints: tuple[Fraction, ...]
    pieces: Coefficients

    def fits(self) -> bool:
        lengths = {len(piece) for piece in self.pieces}
        ascending = all(a < b for a, b in pairwise(self.breakpoints))
        count = len(self.pieces) == len(self.breakpoints) + 1
        if not (super().fits() and ascending and count and len(lengths) == 1 and min(lengths) > 0):
            return False
        steps = zip(self.breakpoints, pairwise(self.pieces))
        return all(_at(left, t) == _at(right, t) for t, (left, right) in steps)

    @cached_property
    def flat(self) -> bool:  # type: ignore[override]
        return not any(any(piece[2:]) for piece in self.pieces)

    @cached_property
    def affine(self) -> bool:  # type: ignore[override]
        return self.flat and not self.breakpoints

    @cached_property
    def slopes(self) -> Coefficients:
        """The derivatives of the pieces."""
        slopes = (tuple(k * c for k, c in enumerate(piece))[1:] for piece in self.pieces)
        return tuple(slope or (Fraction(0),) for slope in slopes)

    @cached_property
    def jumps(self) -> list[Fraction]:
        """By how much the derivative jumps at each breakpoint; 0 is no kink."""
        steps = zip(self.breakpoints, pairwise(self.slopes))
        return [_at(right, t) - _at(left, t) for t, (left, right) in steps]

    def decide(self, u: Enclosure, exact: Ask) -> tuple[Indices, dict[int, int]]:
        piece, ties = np.zeros(self.size, dtype=np.intp), {}
        for k, t in enumerate(self.breakpoints):
            signs, decided = (u - Enclosure.of([t])).signs()
            piece += signs > 0
            doubtful = np.flatnonzero(~decided)
            if doubtful.size:
                signs = exact(doubtful.tolist()).signs(t)
                piece[doubtful] += signs > 0
                ties.update(dict.fromkeys(doubtful[signs == 0].tolist(), k))
        return piece, ties

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        return _horner(self.pieces, args[0], piece)

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        if self.flat:  # no value is needed, nor perhaps to be had
            return [g * type(g).of([slope[0] for slope in self.slopes])[piece]]
        return [g * _horner(self.slopes, [args[0]], piece)[0]]

    def cut(self, places: Indices, piece: Any) -> tuple[Node, Any, list[Indices]]:
        return self._sized(places.size, places.size), piece[places], [places]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        strictly = np.ones(self.size, bool)
        strictly[list(loose)] = False
        flat, zero = (
            np.array([not any(p[k:]) for p in self.pieces])[piece] & strictly for k in (1, 0)
        )
        keeps_zero = _at(self.pieces[sum(t < 0 for t in self.breakpoints)], Fraction(0)) == 0
        (arg,) = args
        return _constancy((arg >= CONSTANT) | flat, ((arg == ZERO) & keeps_zero) | zero)


@dataclass(frozen=True, eq=False)
class Smooth(Node):
    """A smooth function of one number, entry by entry, by its name in `goldstein.checker.smooth`."""

    function: str

    def fits(self) -> bool:
        return super().fits() and self.function in FUNCTIONS

    @property
    def name(self) -> str:
        return self.function

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        u, *more = args[0]
        value = u.apply(FUNCTIONS[self.function])
        return [value, *(self.backward(c, [u], piece)[0] for c in more[:1])]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        function = FUNCTIONS[self.function]
        function.require_domain(args[0])
        return [g * function.slope(args[0])]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        return np.minimum(args[0], CONSTANT)


@dataclass(frozen=True, eq=False)
class Rowwise(Node):
    """A function of each row of a table with `columns` entries per row."""

    columns: int

    def fits(self) -> bool:
        return self.columns > 0 and self.sizes == (self.size * self.columns,)

    def rows(self, values: Any) -> Any:
        """Return the entries as a table."""
        return values.reshape(self.size, self.columns)

    def along(self, g: Array) -> Array:
        """Return numbers of the rows, one for each of their entries."""
        return g[np.repeat(np.arange(self.size), self.columns)]

    def cut(self, places: Indices, piece: Any) -> tuple[Node, Any, list[Indices]]:
        needed = places[:, None] * self.columns + np.arange(self.columns)
        return self._sized(places.size, needed.size), piece, [needed.reshape(-1)]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        least: Constancy = self.rows(args[0]).min(axis=1)
        return least


class LogSumExp(Rowwise):
    """log(exp(u_1) + ... + exp(u_k)) of each row."""

    def _powers(self, u: Array) -> tuple[Array, Array]:
        """Return exp(u - m) by rows, m about the largest, and the m."""
        if isinstance(u, Exact):
            u.apply(self)  # says that it is irrational
        top = u.mid.reshape(self.size, self.columns).max(axis=1)
        return (u - self.along(Enclosure(top))).apply(FUNCTIONS["exp"]), Enclosure(top)

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        u, *more = args[0]
        powers, top = self._powers(u)
        value = self.rows(powers).sum(axis=1).apply(FUNCTIONS["log"]) + top
        (unit,) = self.backward(Enclosure(np.ones(self.size)), [u], piece)
        return [value, *(self.rows(unit * c).sum(axis=1) for c in more[:1])]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        powers, _ = self._powers(args[0])
        return [powers * self.along(g * self.rows(powers).sum(axis=1).reciprocal())]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        return np.minimum(super().constant(args, piece, loose), CONSTANT)


@dataclass(frozen=True, eq=False)
class Max(Rowwise):
    """The largest entry of each row. A piece is the place of the entry that is the largest."""

    flat = True

    @np.errstate(all="ignore")
    def decide(self, u: Enclosure, exact: Ask) -> tuple[Indices, dict[int, list[int]]]:
        low, high = self.rows(u).ends()
        # Written so that a NaN or an overflow counts as doubt.
        rivals = ~(high < low.max(axis=1, keepdims=True))
        start = np.arange(self.size) * self.columns
        piece, ties = start + rivals.argmax(axis=1), {}
        for row in np.flatnonzero(rivals.sum(axis=1) > 1).tolist():
            places = (start[row] + np.flatnonzero(rivals[row])).tolist()
            values = exact(places).top.tolist()
            best = max(values)
            tied = [place for place, value in zip(places, values) if value == best]
            piece[row] = tied[0]
            if len(tied) > 1:
                ties[row] = tied
        return piece, ties

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        return [c[piece] for c in args[0]]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        return [g.scattered(piece, self.sizes[0])]

    def cut(self, places: Indices, piece: Any) -> tuple[Node, Any, list[Indices]]:
        # The sum of one argument is the argument.
        return Add(self.of, (places.size,), places.size), None, [piece[places]]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        answer: Constancy = args[0][piece]
        for row, tied in loose.items():
            answer[row] = args[0][tied].min()
        return answer


@dataclass(frozen=True, eq=False)
class Norm2(Rowwise):
    """The Euclidean norm of each row; its kink is the origin.

    A piece holds directions, by row: of rows too small to be told from 0 by enclosures, and those
    in which rows leave the origin.
    """

    def decide(self, u: Enclosure, exact: Ask) -> tuple[dict[int, Any], dict[int, list[int]]]:
        piece: dict[int, Any] = {}
        ties: dict[int, list[int]] = {}
        _, decided = self.rows(u).signs()
        for row in np.flatnonzero(~decided.any(axis=1)).tolist():
            places = list(range(row * self.columns, (row + 1) * self.columns))
            values = exact(places)
            if values.top.any():
                piece[row] = values
            else:
                ties[row] = places
        return piece, ties

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        u, *more = args[0]
        value = self.rows(u * u).sum(axis=1).root()
        if not more:
            return [value]
        (unit,) = self.backward(type(u).of([1] * self.size), [u], piece)
        return [value, self.rows(unit * more[0]).sum(axis=1)]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        u = args[0]
        for row, values in piece.items():
            u = u.replaced(slice(row * self.columns, (row + 1) * self.columns), values)
        length = self.rows(u * u).sum(axis=1).root()
        return [u * self.along(g * length.reciprocal())]

    def cut(self, places: Indices, piece: Any) -> tuple[Node, Any, list[Indices]]:
        node, _, needed = super().cut(places, None)
        return node, {k: piece[r] for k, r in enumerate(places.tolist()) if r in piece}, needed


# --- series, polynomials ---------------------------------------------------------------------


def plus(a: Series, b: Series) -> Series:
    """Return the sum of two series."""
    a, b = (b, a) if len(a) < len(b) else (a, b)
    return [c + b[k] if k < len(b) else c for k, c in enumerate(a)]


def times(a: Series, b: Series, product: Callable[[Array, Array], Array]) -> Series:
    """Return the product of two series; that of enclosures ends with the first power of t."""
    length = len(a) + len(b) - 1
    if isinstance(a[0], Enclosure):
        length = min(length, 2)
    elif length > MAX_DEGREE + 1:
        raise NotCertifiableError("along a direction a polynomial has too high a degree.")
    out: list[Any] = [None] * length
    for i, p in enumerate(a):
        for j, q in enumerate(b[: max(0, length - i)]):
            term = product(p, q)
            out[i + j] = term if out[i + j] is None else out[i + j] + term
    return out


def _horner(table: Coefficients, u: Series, piece: Indices) -> Series:
    """Evaluate the polynomial of its piece at every entry."""
    columns = [type(u[0]).of(column)[piece] for column in zip(*table)]
    out = [columns[-1]]
    for column in reversed(columns[:-1]):
        out = plus(times(out, u, lambda p, q: p * q), [column])
    return out


def _at(coefficients: Sequence[Fraction], t: Fraction) -> Fraction:
    return sum((c * t**k for k, c in enumerate(coefficients)), Fraction(0))


def _constancy(constant: Any, zero: Any) -> Constancy:
    return np.where(constant, np.where(zero, ZERO, CONSTANT), 0).astype(np.int8)
