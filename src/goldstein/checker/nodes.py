"""The language of functions: nine kinds of nodes, and the meaning of each.

A function is a list of nodes. Each computes a vector from the vectors of earlier ones; the first is
the variable, the last has one entry. The numbers are exact (`Exact`), or enclosed where a function
is irrational or large (`goldstein.checker.enclosed`). Every kind says the same few things:

* `forward`: its value; of series in t, its series (enclosures: up to the first power of t);
* `backward`: the derivatives in its arguments, the one in itself being given;
* `constant`: which entries do not change near a point.

Three kinds have pieces. `decide` returns the piece of every entry at a point, and the entries that
are exactly on a breakpoint: which side they go to depends on the direction in which the point is
left (`goldstein.checker.sides`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker.arrays import Indices, Vector
from goldstein.checker.errors import InputError, NotCertifiableError
from goldstein.checker.exact import Exact

#: An array of exact numbers, or of enclosures.
Array = Any
#: Coefficients of 1, t, t^2, ... along a line.
Series = list[Array]
#: 0: may change near the point; CONSTANT: does not; ZERO: is 0 and stays 0.
Constancy = NDArray[np.int8]
CONSTANT, ZERO = 1, 2
Coefficients = tuple[tuple[Fraction, ...], ...]

#: Polynomials of a higher degree are refused: their coefficients grow without bounds.
MAX_DEGREE = 64


@dataclass(frozen=True, eq=False)
class Node:
    """One step: `size` entries from the nodes `of`, which have `sizes` entries."""

    of: tuple[int, ...]
    sizes: tuple[int, ...]
    size: int

    #: An affine function of its arguments.
    affine = False
    #: Made of affine pieces: `backward` asks for no values.
    flat = False
    #: Of rational arguments its values are rational, and can be computed.
    rational = True

    def __post_init__(self) -> None:
        if not self.fits():
            raise InputError(f"a node `{self.name}` does not fit its arguments.")

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    @property
    def work(self) -> int:
        """Multiplications of one evaluation, about."""
        return self.size

    def fits(self) -> bool:
        """Do the sizes and the data belong together?"""
        return bool(self.sizes) and all(size == self.size for size in self.sizes)

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        raise NotImplementedError

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        raise NotImplementedError

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

    The matrix is dense, sparse by rows, or stays elsewhere: then its products are enclosed.
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

    def some_rows(self, places: Indices) -> sparse.csr_array:
        """Return a row for each of some entries, without zeros."""
        row, column = np.divmod(places, self.columns)
        if hasattr(self.matrix, "keep"):  # rows that are elsewhere, fetched together
            self.matrix.keep(row.tolist())
        some = sparse.csr_array(self.matrix[row])
        some.eliminate_zeros()
        at = some.indices.astype(np.intp) * self.columns + np.repeat(column, np.diff(some.indptr))
        return sparse.csr_array((some.data, at, some.indptr), shape=(places.size, self.sizes[0]))

    @cached_property
    def rows(self) -> sparse.csr_array:
        return self.some_rows(np.arange(self.size))

    @cached_property
    def entries(self) -> Exact:
        """The numbers in `rows`."""
        return Exact.of(self.rows.data)

    @cached_property
    def owners(self) -> Indices:
        """The row of each number in `rows`."""
        return np.repeat(np.arange(self.size), np.diff(self.rows.indptr))

    @property
    def rational(self) -> bool:  # type: ignore[override]
        """Is the matrix in memory?"""
        return sparse.issparse(self.matrix) or isinstance(self.matrix, np.ndarray)

    @property
    def work(self) -> int:
        matrix = self.matrix
        return (
            matrix.nnz if sparse.issparse(matrix) else int(np.prod(matrix.shape))
        ) * self.columns

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        (u,) = args
        out = [c.linear(self) for c in u]
        if self.offset is not None:
            out[0] = out[0] + type(u[0]).of(self.offset)
        return [self._divided(c) for c in out]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        return [self._divided(g).transposed(self)]

    def _divided(self, c: Array) -> Array:
        return c if self.divisor is None else c * type(c).of(self.divisor).reciprocal()

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        if not self.rational:
            return np.zeros(self.size, dtype=np.int8)
        still, zero = np.ones((2, self.size), bool)
        for answer, level in ((still, CONSTANT), (zero, ZERO)):
            answer[self.owners[args[0][self.rows.indices] < level]] = False
        return _constancy(still, zero & (self.offset is None or self.offset == 0))


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
        n, m = self.shape
        return self.size == self.batch * n * m

    @property
    def work(self) -> int:
        return self.size * self.inner

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of every product."""
        left, right = (s // (self.batch * self.inner) for s in self.sizes)
        return left, right

    def _tables(self, left: Array, right: Array) -> tuple[Array, Array]:
        n, m = self.shape
        return left.reshape(self.batch, n, self.inner), right.reshape(self.batch, self.inner, m)

    def _times(self, left: Array, right: Array) -> Array:
        a, b = self._tables(left, right)
        return (a @ b).reshape(-1)

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        left, right = args
        return times(left, right, self._times)

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        left, right = self._tables(*args)
        table = g.reshape(self.batch, *self.shape)
        return [(table @ right.swapped).reshape(-1), (left.swapped @ table).reshape(-1)]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        def never(left: Any, right: Any) -> Any:
            """Is there no product in which both factors are marked?"""
            return self._times(left.astype(np.float64), right.astype(np.float64)) == 0

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

    def decide(self, u: Array) -> tuple[Indices, dict[int, int]]:
        piece, ties = np.zeros(self.size, dtype=np.intp), {}
        for k, t in enumerate(self.breakpoints):
            signs = u.signs(t)
            piece += signs > 0
            ties.update(dict.fromkeys(np.flatnonzero(signs == 0).tolist(), k))
        return piece, ties

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        return _horner(self.pieces, args[0], piece)

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        if self.flat:
            return [g * type(g).of([slope[0] for slope in self.slopes])[piece]]
        return [g * _horner(self.slopes, [args[0]], piece)[0]]

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
    """A smooth function of one number, entry by entry: of `goldstein.checker.enclosed.smooth`."""

    function: Any
    rational = False

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        u, *more = args[0]
        return [u.apply(self.function), *(self.backward(c, [u], piece)[0] for c in more[:1])]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        return [g * self.function.slope_of(args[0])]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        return np.minimum(args[0], ZERO if self.function.keeps_zero else CONSTANT)


@dataclass(frozen=True, eq=False)
class Rowwise(Node):
    """A function of each row of a table with `columns` entries per row."""

    columns: int
    rational = False

    def fits(self) -> bool:
        return self.columns > 0 and self.sizes == (self.size * self.columns,)

    def rows(self, values: Any) -> Any:
        """Return the entries as a table."""
        return values.reshape(self.size, self.columns)

    def along(self, g: Array) -> Array:
        """Return numbers of the rows, one for each of their entries."""
        return g[np.repeat(np.arange(self.size), self.columns)]

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        u, *more = args[0]
        value = self.value(u)
        (unit,) = self.backward(type(u).of([1] * self.size), [u], piece) if more else (None,)
        return [value, *(self.rows(unit * c).sum(axis=1) for c in more[:1])]

    def value(self, u: Array) -> Array:
        raise NotImplementedError

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        least: Constancy = self.rows(args[0]).min(axis=1)
        return least


class LogSumExp(Rowwise):
    """log(exp(u_1) + ... + exp(u_k)) of each row."""

    def value(self, u: Array) -> Array:
        powers, top = u.powers(self)
        return self.rows(powers).sum(axis=1).apply(u.functions["log"]) + top

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        powers, _ = args[0].powers(self)
        return [powers * self.along(g * self.rows(powers).sum(axis=1).reciprocal())]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        return np.minimum(super().constant(args, piece, loose), CONSTANT)


class Norm2(Rowwise):
    """The Euclidean norm of each row; its kink is the origin.

    A piece holds, by row, the directions in which rows leave the origin.
    """

    def decide(self, u: Array) -> tuple[dict[int, Any], dict[int, list[int]]]:
        zero = np.flatnonzero(~self.rows(u.signs()).any(axis=1)).tolist()
        return {}, {row: list(range(row * self.columns, (row + 1) * self.columns)) for row in zero}

    def value(self, u: Array) -> Array:
        return self.rows(u * u).sum(axis=1).root()

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        u = args[0]
        for row, direction in piece.items():
            u = u.replaced(slice(row * self.columns, (row + 1) * self.columns), direction)
        return [u * self.along(g * self.value(u).reciprocal())]


class Max(Rowwise):
    """The largest entry of each row. A piece is the place of the entry that is the largest."""

    flat = rational = True

    def decide(self, u: Array) -> tuple[Indices, dict[int, list[int]]]:
        tied = u.largest(self.columns)
        piece = np.array([places[0] for places in tied], dtype=np.intp)
        return piece, {row: places for row, places in enumerate(tied) if len(places) > 1}

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        return [c[piece] for c in args[0]]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        return [g.scattered(piece, self.sizes[0])]

    def constant(self, args: Sequence[Constancy], piece: Any, loose: Any) -> Constancy:
        answer: Constancy = args[0][piece]
        for row, tied in loose.items():
            answer[row] = args[0][tied].min()
        return answer


# --- series, polynomials ---------------------------------------------------------------------


def plus(a: Series, b: Series) -> Series:
    """Return the sum of two series."""
    a, b = (b, a) if len(a) < len(b) else (a, b)
    return [c + b[k] if k < len(b) else c for k, c in enumerate(a)]


def times(a: Series, b: Series, product: Callable[[Array, Array], Array]) -> Series:
    """Return the product of two series; that of enclosures ends with the first power of t."""
    length = min(len(a) + len(b) - 1, a[0].longest or MAX_DEGREE + 2)
    if length > MAX_DEGREE + 1:
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
