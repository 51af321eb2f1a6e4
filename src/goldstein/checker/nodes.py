"""The language in which a function is given to the checker, and the meaning of its words.

A function is a list of nodes. Each computes a vector from the vectors of earlier ones; the first is
the variable, the last has one entry. Every kind of node says the same few things:

* `forward`, `backward`: enclosures of its value, and of the derivatives in its arguments;
* `needs`, `entries`: some of its entries exactly, as polynomials in t along y + t v;
* `pull`: the exact derivatives in its arguments, those in some of its entries being given;
* `still`: which entries are constant near a point.

`goldstein.checker.kinked` has the kinds that have kinks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker.arrays import Indices, Mask
from goldstein.checker.enclosures import Enclosure, enclose_function, joined, scattered
from goldstein.checker.errors import InputError, Irrational
from goldstein.checker.rationals import Polynomial, Q, combined, multiplied

Floats = NDArray[np.float64]
Args = Sequence[Enclosure]
Places = Iterable[int]
#: Exact entries at some places: numbers, or polynomials in t.
Numbers = dict[int, Any]
Exact = Sequence[Callable[[Places], list[Any]]]
Paths = dict[int, Polynomial]


class Still(NamedTuple):
    """Entries that are proved to be constant near a point, and those proved to be 0 there."""

    constant: Mask
    zero: Mask


@dataclass(frozen=True, eq=False)
class Node:
    """One step: `size` entries from the nodes `of`, which have `sizes` entries.

    Attributes
    ----------
    of, sizes : tuple of int
    size : int
    """

    of: tuple[int, ...]
    sizes: tuple[int, ...]
    size: int

    #: An affine function of its arguments: `backward` and `pull` ask for no values.
    affine = True
    #: Made of affine pieces.
    flat = True
    #: It has pieces: `decide` says which one rules where.
    decides = False

    def __post_init__(self) -> None:
        if not self.fits():
            raise InputError(f"a node `{self.name}` does not fit its arguments.")

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    def fits(self) -> bool:
        """Do the sizes and the data belong together?"""
        return bool(self.sizes) and all(size == self.size for size in self.sizes)

    def forward(self, args: Args, piece: Any) -> Enclosure:
        raise NotImplementedError

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        raise NotImplementedError

    def needs(self, places: Places, piece: Any) -> list[Places]:
        """Return the places of the arguments on which some entries depend."""
        return [places for _ in self.of]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        raise Irrational(self.name)

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        raise Irrational(self.name)

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        """Say what is constant; `loose` are the entries that are left on a breakpoint."""
        return Still(*(np.logical_and.reduce(masks) for masks in zip(*args)))


class Variable(Node):
    """The variable."""

    def fits(self) -> bool:
        return not self.of


@dataclass(frozen=True, eq=False)
class Take(Node):
    """Entries of the argument, in any order, perhaps repeated."""

    index: Indices

    def fits(self) -> bool:
        inside = ((self.index >= 0) & (self.index < self.sizes[0])).all()
        return self.index.shape == (self.size,) and bool(inside)

    def forward(self, args: Args, piece: Any) -> Enclosure:
        return args[0][self.index]

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [scattered(g, self.index, self.sizes[0])]

    def needs(self, places: Places, piece: Any) -> list[Places]:
        return [[int(self.index[p]) for p in places]]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        return {p: args[0][int(self.index[p])] for p in places}

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        return [gathered((int(self.index[p]), c) for p, c in g.items())]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        return Still(args[0].constant[self.index], args[0].zero[self.index])


@dataclass(frozen=True, eq=False)
class Linear(Node):
    """A matrix of float64 numbers times the argument, a table of `columns` given row by row.

    The matrix is dense, sparse by rows, or stays elsewhere and offers `@`, `T @` and its rows.
    """

    matrix: Any
    columns: int

    def fits(self) -> bool:
        rows, width = self.matrix.shape
        return (self.size, self.sizes[0]) == (rows * self.columns, width * self.columns)

    def forward(self, args: Args, piece: Any) -> Enclosure:
        return self._product(self.matrix, args[0])

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [self._product(self.matrix.T, g)]

    def _product(self, matrix: Any, v: Enclosure) -> Enclosure:
        if self.columns > 1:
            v = v.reshape(-1, self.columns)
        answer: Enclosure = matrix @ v
        return answer.reshape(-1)

    def row(self, i: int) -> tuple[Indices, Floats]:
        """Return places and numbers of a row of the matrix, without zeros."""
        if sparse.issparse(self.matrix):
            span = slice(self.matrix.indptr[i], self.matrix.indptr[i + 1])
            places, numbers = self.matrix.indices[span], self.matrix.data[span]
        else:
            numbers = self.matrix[i]
            places = np.arange(numbers.size)
        used = numbers != 0
        return places[used].astype(np.intp), numbers[used]

    def _terms(self, place: int) -> list[tuple[int, Any]]:
        i, column = divmod(place, self.columns)
        places, numbers = self.row(i)
        return list(zip((places * self.columns + column).tolist(), map(Q, numbers.tolist())))

    def needs(self, places: Places, piece: Any) -> list[Places]:
        rows = ((*divmod(p, self.columns),) for p in places)
        return [{k for i, c in rows for k in (self.row(i)[0] * self.columns + c).tolist()}]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        return {p: combined((a, args[0][k]) for k, a in self._terms(p)) for p in places}

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        return [gathered((k, c * a) for p, c in g.items() for k, a in self._terms(p))]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        if not (sparse.issparse(self.matrix) or isinstance(self.matrix, np.ndarray)):
            return Still(np.zeros(self.size, bool), np.zeros(self.size, bool))
        used = (self.matrix != 0).astype(np.float64)
        moving = ((~mask).reshape(-1, self.columns).astype(np.float64) for mask in args[0])
        return Still(*(np.asarray(used @ table == 0).reshape(-1) for table in moving))


@dataclass(frozen=True, eq=False)
class Scale(Node):
    """The argument times numbers, or divided by them: a rational, or one float64 per entry."""

    factor: Floats | Fraction
    inverse: bool = False

    def fits(self) -> bool:
        if isinstance(self.factor, Fraction):
            return super().fits() and not (self.inverse and self.factor == 0)
        usable = (self.factor.shape == (self.size,)) and not (
            self.inverse and not self.factor.all()
        )
        return super().fits() and usable

    def forward(self, args: Args, piece: Any) -> Enclosure:
        factor = self.factor
        if isinstance(factor, Fraction):
            return args[0] * Enclosure.from_fractions([1 / factor if self.inverse else factor])
        return args[0] / factor if self.inverse else args[0] * factor

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [self.forward([g], piece)]

    def _number(self, place: int) -> Any:
        number = Q(self.factor if isinstance(self.factor, Fraction) else float(self.factor[place]))
        return 1 / number if self.inverse else number

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        return {p: combined([(self._number(p), args[0][p])]) for p in places}

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        return [{p: c * self._number(p) for p, c in g.items()}]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        nothing = self.factor == 0
        return Still(args[0].constant | nothing, args[0].zero | nothing)


@dataclass(frozen=True, eq=False)
class Shift(Node):
    """The argument plus float64 numbers."""

    constant: Floats

    def fits(self) -> bool:
        return super().fits() and self.constant.shape == (self.size,)

    def forward(self, args: Args, piece: Any) -> Enclosure:
        return args[0] + self.constant

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [g]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        one = Q(1)
        shift = self.constant
        return {p: combined([(one, args[0][p]), (one, [Q(float(shift[p]))])]) for p in places}

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        return [g]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        return Still(args[0].constant, args[0].zero & (self.constant == 0))


class Add(Node):
    """The sum of the arguments."""

    def forward(self, args: Args, piece: Any) -> Enclosure:
        total = args[0]
        for other in args[1:]:
            total = total + other
        return total

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [g for _ in self.of]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        one = Q(1)
        return {p: combined([(one, arg[p]) for arg in args]) for p in places}

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        return [g for _ in self.of]


class Stack(Node):
    """The entries of the arguments, one argument after the other."""

    def fits(self) -> bool:
        return bool(self.sizes) and sum(self.sizes) == self.size

    @property
    def _parts(self) -> list[range]:
        ends = np.cumsum([0, *self.sizes]).tolist()
        return [range(a, b) for a, b in pairwise(ends)]

    def forward(self, args: Args, piece: Any) -> Enclosure:
        return joined(args)

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [g[part.start : part.stop] for part in self._parts]

    def needs(self, places: Places, piece: Any) -> list[Places]:
        return [[p - part.start for p in places if p in part] for part in self._parts]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        parts = [(part, arg) for part, arg in zip(self._parts, args)]
        return {p: arg[p - part.start] for p in places for part, arg in parts if p in part}

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        return [{p - part.start: c for p, c in g.items() if p in part} for part in self._parts]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        return Still(*(np.concatenate(masks) for masks in zip(*args)))


class Total(Node):
    """The sum of all entries."""

    def fits(self) -> bool:
        return self.size == 1

    def forward(self, args: Args, piece: Any) -> Enclosure:
        return args[0].sum().reshape(1)

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [g[np.zeros(self.sizes[0], dtype=np.intp)]]

    def needs(self, places: Places, piece: Any) -> list[Places]:
        return [range(self.sizes[0])]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        one = Q(1)
        return {0: combined((one, args[0][k]) for k in range(self.sizes[0]))}

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        return [{k: c for c in g.values() for k in range(self.sizes[0])}]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        return Still(*(np.array([bool(mask.all())]) for mask in args[0]))


class Multiply(Node):
    """The product of two arguments, entry by entry."""

    affine = flat = False

    def fits(self) -> bool:
        return super().fits() and len(self.of) == 2

    def forward(self, args: Args, piece: Any) -> Enclosure:
        return args[0] * args[1]

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [g * args[1], g * args[0]]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        return {p: multiplied(args[0][p], args[1][p]) for p in places}

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        left, right = exact[0](g), exact[1](g)
        return [{p: c * u for (p, c), u in zip(g.items(), side)} for side in (right, left)]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        nothing = args[0].zero | args[1].zero
        return Still((args[0].constant & args[1].constant) | nothing, nothing)


@dataclass(frozen=True, eq=False)
class Product(Node):
    """The product of two tables, of n x k and k x m entries, row by row."""

    inner: int
    affine = flat = False

    def fits(self) -> bool:
        if len(self.sizes) != 2 or self.inner < 1 or any(s % self.inner for s in self.sizes):
            return False
        n, m = self._shape
        return self.size == n * m

    @property
    def _shape(self) -> tuple[int, int]:
        return self.sizes[0] // self.inner, self.sizes[1] // self.inner

    def _tables(self, args: Sequence[Any]) -> tuple[Any, Any]:
        n, m = self._shape
        return args[0].reshape(n, self.inner), args[1].reshape(self.inner, m)

    def forward(self, args: Args, piece: Any) -> Enclosure:
        left, right = self._tables(args)
        answer: Enclosure = left @ right
        return answer.reshape(-1)

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        left, right = self._tables(args)
        table = g.reshape(self._shape)
        return [(table @ right.T).reshape(-1), (left.T @ table).reshape(-1)]

    def _pairs(self, place: int) -> list[tuple[int, int]]:
        m = self._shape[1]
        i, j = divmod(place, m)
        return [(i * self.inner + k, k * m + j) for k in range(self.inner)]

    def needs(self, places: Places, piece: Any) -> list[Places]:
        pairs = [pair for p in places for pair in self._pairs(p)]
        return [{a for a, _ in pairs}, {b for _, b in pairs}]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        one, (left, right) = Q(1), args
        return {
            p: combined((one, multiplied(left[a], right[b])) for a, b in self._pairs(p))
            for p in places
        }

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        needed = [sorted(places) for places in self.needs(g, piece)]
        left, right = (dict(zip(places, ask(places))) for places, ask in zip(needed, exact))
        terms = [(a, b, c) for p, c in g.items() for a, b in self._pairs(p)]
        return [
            gathered((a, c * right[b]) for a, b, c in terms),
            gathered((b, c * left[a]) for a, b, c in terms),
        ]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        (c, d), (y, z) = (self._tables([arg[k] for arg in args]) for k in (0, 1))

        def none(left: Mask, right: Mask) -> Mask:
            """Is every product excluded in which both factors are marked?"""
            return np.asarray(left.astype(float) @ right.astype(float) == 0).reshape(-1)

        return Still(none(~c, ~z) & none(~y, ~d), none(~y, ~z))


class Log(Node):
    """The natural logarithm of positive entries."""

    affine = flat = False

    def forward(self, args: Args, piece: Any) -> Enclosure:
        return enclose_function(args[0], lambda flint, ball: ball.log())

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [g / args[0]]

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        return [{p: c / u for (p, c), u in zip(g.items(), exact[0](g))}]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        return Still(args[0].constant, np.zeros(self.size, bool))


@dataclass(frozen=True, eq=False)
class PseudoHuber(Node):
    """T^2 (sqrt(1 + (u/T)^2) - 1), written as u^2 / (1 + sqrt(...)): nothing cancels."""

    threshold: Fraction
    affine = flat = False

    def fits(self) -> bool:
        return super().fits() and self.threshold > 0

    def _root(self, u: Enclosure) -> Enclosure:
        ratio = u * Enclosure.from_fractions([1 / self.threshold])
        return (ratio * ratio + 1.0).root()

    def forward(self, args: Args, piece: Any) -> Enclosure:
        return args[0] * args[0] / (self._root(args[0]) + 1.0)

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [g * args[0] / self._root(args[0])]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        return args[0]


@dataclass(frozen=True, eq=False)
class Rowwise(Node):
    """A function of each row of a table with `columns` entries per row."""

    columns: int
    affine = flat = False

    def fits(self) -> bool:
        return self.columns > 0 and self.sizes == (self.size * self.columns,)

    def rows(self, values: Any) -> Any:
        """Return the entries as a table."""
        return values.reshape(self.size, self.columns)

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        return Still(*(self.rows(mask).all(axis=1) for mask in args[0]))


class LogSumExp(Rowwise):
    """log(exp(u_1) + ... + exp(u_k)) of each row."""

    def _powers(self, u: Enclosure) -> tuple[Enclosure, Enclosure]:
        """Return exp(u - m) by rows, m about the largest, and the m."""
        table = self.rows(u)
        top = Enclosure(table.mid.max(axis=1, keepdims=True))
        return enclose_function(table - top, lambda flint, ball: ball.exp()), top.reshape(-1)

    def forward(self, args: Args, piece: Any) -> Enclosure:
        powers, top = self._powers(args[0])
        return enclose_function(powers @ np.ones(self.columns), lambda _, ball: ball.log()) + top

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        powers, _ = self._powers(args[0])
        sums = (powers @ np.ones(self.columns)).reshape(-1, 1)
        return [(powers / sums * g.reshape(-1, 1)).reshape(-1)]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        return Still(super().still(args, piece, loose).constant, np.zeros(self.size, bool))


def gathered(terms: Iterable[tuple[int, Any]]) -> Numbers:
    """Add up numbers by place; zeros are left out."""
    total: Numbers = {}
    for place, number in terms:
        total[place] = total[place] + number if place in total else number
    return {place: number for place, number in total.items() if number}
