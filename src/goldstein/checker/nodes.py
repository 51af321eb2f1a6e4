"""The language of functions: seven kinds of nodes, and the meaning of each.

A function is a list of nodes. Each computes a vector from the vectors of earlier ones; the first is
the variable, the last has one entry. The numbers are exact (`Exact`), or enclosed where a function
is irrational or large (`goldstein.checker.enclosed`). Every kind says the same few things:

* `forward`: its value; of series in t, its series (enclosures: up to the first power of t); of what
  stays constant near a point (`Still`), which of its entries do;
* `backward`: the derivatives in its arguments, the one in itself being given.

Four kinds have pieces. `decide` returns the piece of every entry at a point, and the entries that
are exactly on a breakpoint: which side they go to depends on the direction in which the point is
left (`goldstein.checker.sides`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from operator import add, matmul, mul
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.checker import errors, exact
from goldstein.checker.arrays import Indices, Vector

#: An array of exact numbers, or of enclosures.
Array = Any
#: Coefficients of 1, t, t^2, ... along a line.
Series = list[Array]
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
            raise errors.InputError(f"a node `{self.name}` does not fit its arguments.")

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

    def still(self, args: Sequence[Series], piece: Any, loose: dict[int, list[int]]) -> Series:
        """Say what is constant; a row that is left on a breakpoint only if all its places are."""
        answer = plus(self.forward(args, piece), [exact.Still.of([0] * self.size)] * 2)
        for row, places in loose.items():
            for part, arg in zip(answer, args[0]):
                part[row] += arg[places].sum()
        return answer


class Kinked(Node):
    """One with kinks: rows of its argument are tied, and leave the tie with a direction.

    `decide` returns the pieces at a point, and of the rows that are exactly on a breakpoint the
    places in the argument; `leave`
    the piece beside a tie, and the places that stay tied: of the coefficients of t, t^2, ... of a
    row the first one other than 0 decides.
    """

    decide: Callable[..., tuple[Any, dict[int, list[int]]]]
    leave: Callable[..., tuple[Any, list[int]]]


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
        own = sparse.csr_array(self.matrix) if self.columns == 1 and self.rational else None
        whole = own is not None and own.data.all()
        return own if whole else self.some_rows(np.arange(self.size))

    @cached_property
    def entries(self) -> exact.Exact:
        """The numbers in `rows`."""
        return exact.Exact.of(self.rows.data)

    @cached_property
    def owners(self) -> Indices:
        """The row of each number in `rows`."""
        return np.repeat(np.arange(self.size), np.diff(self.rows.indptr))

    @property
    def rational(self) -> bool:  # type: ignore[override]
        """Is the matrix in memory?"""
        return sparse.issparse(self.matrix) or isinstance(self.matrix, np.ndarray)

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
        tables = block > 0 and all(s > 0 and s % block == 0 for s in self.sizes)
        right = tables and len(self.sizes) == 2
        return right and self.size == self.batch * self.shape[0] * self.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of every product."""
        left, right = (s // (self.batch * self.inner) for s in self.sizes)
        return left, right

    def _tables(self, left: Array, right: Array) -> tuple[Array, Array]:
        n, m = self.shape
        return left.reshape(self.batch, n, self.inner), right.reshape(self.batch, self.inner, m)

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        left, right = args
        return times(left, right, lambda a, b: matmul(*self._tables(a, b)).reshape(-1))

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        left, right = self._tables(*args)
        table = g.reshape(self.batch, *self.shape)
        return [(table @ right.swapped).reshape(-1), (left.swapped @ table).reshape(-1)]


@dataclass(frozen=True, eq=False)
class Piecewise(Kinked):
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
        right = super().fits() and ascending and count and len(lengths) == 1 and min(lengths) > 0
        steps = zip(self.breakpoints, pairwise(self.pieces))
        return right and all(polynomial(a, t) == polynomial(b, t) for t, (a, b) in steps)

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
    def beside(self) -> list[tuple[Fraction, Fraction]]:
        """The derivatives on both sides of each breakpoint."""
        steps = zip(self.breakpoints, pairwise(self.slopes))
        return [(polynomial(left, t), polynomial(right, t)) for t, (left, right) in steps]

    @cached_property
    def jumps(self) -> list[Fraction]:
        """By how much the derivative jumps at each breakpoint; 0 is no kink."""
        return [right - left for left, right in self.beside]

    def decide(self, u: Array) -> tuple[Indices, dict[int, list[int]]]:
        """The piece of an entry on a breakpoint is the one below it: both have one number."""
        piece, tied = np.zeros(self.size, dtype=np.intp), np.zeros(self.size, dtype=bool)
        for signs in map(u.signs, self.breakpoints):
            piece += signs > 0
            tied |= signs == 0
        return piece, {i: [i] for i in np.flatnonzero(tied).tolist()}

    def leave(self, piece: Any, places: list[int], path: Series) -> tuple[Any, list[int]]:
        signs = (int(c.signs()[0]) for c in path)
        sign = next(filter(None, signs), 0)
        return piece + (sign > 0), [] if sign else places

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        return _horner(self.pieces, args[0], piece)

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        if self.flat:
            return [g * type(g).of([slope[0] for slope in self.slopes])[piece]]
        return [g * _horner(self.slopes, [args[0]], piece)[0]]


@dataclass(frozen=True, eq=False)
class Rowwise(Node):
    """A function of each row of a table with `columns` entries per row."""

    columns: int

    def fits(self) -> bool:
        return self.columns > 0 and self.sizes == (self.size * self.columns,)

    def rows(self, values: Any) -> Any:
        """Return the entries as a table."""
        return values.reshape(self.size, self.columns)


class Max(Rowwise, Kinked):
    """The largest entry of each row. A piece is the place of the entry that is the largest."""

    flat = True

    def decide(self, u: Array) -> tuple[Indices, dict[int, list[int]]]:
        tied = u.largest(self.columns)
        piece = np.array([places[0] for places in tied], dtype=np.intp)
        return piece, {row: places for row, places in enumerate(tied) if len(places) > 1}

    def leave(self, piece: Any, places: list[int], path: Series) -> tuple[Any, list[int]]:
        best = list(range(len(places)))
        for c in path:
            best = [best[j] for j in c[best].largest(len(best))[0]]
        winner, *same = (places[j] for j in best)
        return winner, [winner, *same] if same else []

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        return [c[piece] for c in args[0]]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        return [g.scattered(piece, self.sizes[0])]


@dataclass(frozen=True, eq=False)
class Order(Kinked):
    """Combinations, `weights` by row, of the entries of each row of a table in ascending order.

    A piece has chains of places in ascending order, each by its first place in that order; equal
    entries whose order matters are one chain.
    """

    columns: int
    weights: Any
    flat = True

    def fits(self) -> bool:
        n = self.columns
        table = n > 0 and len(self.sizes) == 1 and self.sizes[0] % n == 0
        right = table and self.weights.ndim == 2 and self.weights.shape[1] == n
        return right and self.size == self.sizes[0] // n * len(self.weights)

    def matters(self, start: int, length: int) -> bool:
        """Does the order of so many entries from a place on, numbered over all rows, matter?"""
        some = self.weights[:, start % self.columns :][:, :length]
        return length > 1 and bool((some != some[:, :1]).any())

    def decide(self, u: Array) -> tuple[dict[int, Any], dict[int, list[int]]]:
        chains = u.ordered(self.columns, self.matters)
        starts = accumulate(map(len, chains), initial=0)
        piece = {start: (start, chain) for start, chain in zip(starts, chains)}
        return piece, {at: chain for at, chain in piece.values() if self.matters(at, len(chain))}

    def leave(self, piece: Any, places: list[int], path: Series) -> tuple[Any, list[int]]:
        start, chains = piece[0], [list(range(len(places)))]
        found, stay = list[int](), list[int]()
        for c in path:
            chains = [[some[j] for j in same] for some in chains
                      for same in c[some].ordered(len(some))]  # fmt: skip
        for some in chains:
            if self.matters(start + len(found), len(some)):
                stay += [places[j] for j in some]
            found += [places[j] for j in some]
        return (start, found), stay

    def order(self, piece: dict[int, Any]) -> Indices:
        """Return the places of all entries, row by row in ascending order."""
        return np.array([place for _, chain in piece.values() for place in chain], dtype=np.intp)

    def _weights(self, kind: Any) -> Array:
        return kind.of(self.weights.ravel()).reshape(*self.weights.shape)

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        order, turned = self.order(piece), self._weights(type(args[0][0])).swapped
        return [(c[order].reshape(-1, self.columns) @ turned).reshape(-1) for c in args[0]]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        table = g.reshape(-1, len(self.weights)) @ self._weights(type(g))
        return [table.reshape(-1).scattered(self.order(piece), self.sizes[0])]

    def still(self, args: Sequence[Series], piece: Any, loose: dict[int, list[int]]) -> Series:
        rows = (c.reshape(-1, self.columns).sum(axis=1) for c in args[0])
        return [row.repeat(len(self.weights)) for row in rows]


# --- series, polynomials ---------------------------------------------------------------------


def plus(a: Series, b: Series) -> Series:
    """Return the sum of two series."""
    a, b = (b, a) if len(a) < len(b) else (a, b)
    return [c + b[k] if k < len(b) else c for k, c in enumerate(a)]


def times(a: Series, b: Series, product: Callable[[Array, Array], Array]) -> Series:
    """Return the product of two series; that of enclosures ends with the first power of t."""
    length = min(len(a) + len(b) - 1, a[0].longest or MAX_DEGREE + 2)
    if length > MAX_DEGREE + 1:
        raise errors.NotCertifiableError("along a direction a polynomial has too high a degree.")
    places = (range(max(0, n + 1 - len(b)), min(n + 1, len(a))) for n in range(length))
    return [reduce(add, (product(a[i], b[n - i]) for i in some)) for n, some in enumerate(places)]


def _horner(table: Coefficients, u: Series, piece: Indices) -> Series:
    """Evaluate the polynomial of its piece at every entry."""
    first, *rest = reversed([type(u[0]).of(column)[piece] for column in zip(*table)])
    return reduce(lambda out, column: plus(times(out, u, mul), [column]), rest, [first])


def polynomial(coefficients: Sequence[Fraction], t: Fraction) -> Fraction:
    """Return the value of a polynomial."""
    return sum((c * t**k for k, c in enumerate(coefficients)), Fraction(0))
