"""Linear maps, sums, scalings and products of expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from goldstein.calculus.arithmetic import ENCLOSURE, FLOAT, RATIONAL, Arithmetic
from goldstein.calculus.blocked_rows import BlockedRows
from goldstein.calculus.constants import own, own_integers, own_sparse
from goldstein.calculus.expression import (
    Bound,
    Expression,
    IntegerRow,
    Jet,
    as_expression,
    holds_expressions,
)
from goldstein.calculus.stillness import Still, products
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.rationals import common_denominator, fraction_upper
from goldstein.checker.rounding import norm_upper
from goldstein.errors import InputError, InputTypeError, NotCertifiableError
from goldstein.numerics.exact_floats import exact_floats, exact_number
from goldstein.numerics.spectral import spectral_norm_upper

#: Charged for products that underflow, before a later factor can make the loss visible again.
UNDERFLOW = 2.0**-940


class _Affine(Expression):
    """A node that is affine in its arguments."""

    @property
    def own_affine(self) -> bool:
        return True


class Linear(_Affine):
    """A constant matrix times an expression: `A @ u`.

    A is dense, sparse, a LinearOperator, or in blocks of rows.
    """

    def __init__(self, A: Any, arg: Expression) -> None:
        self.A = A
        self.matrix_free = isinstance(A, LinearOperator)
        self.exact = not self.matrix_free
        # Entries of a sparse handle can be exchanged; the arrays that define the matrix cannot.
        self._arrays = (A.data, A.indices, A.indptr) if sparse.issparse(A) else None
        super().__init__((arg,), (A.shape[0], *arg.shape[1:]))
        if self.matrix_free and self.knows_kinks:
            self.knows_kinks = False

    def with_args(self, args: Sequence[Expression]) -> Linear:
        A = self.A
        if self._arrays is not None:
            A = sparse.csr_array(self._arrays, shape=(self.shape[0], self.args[0].shape[0]))
        elif isinstance(A, BlockedRows):
            A = A.anew()
        return Linear(A, args[0])

    @cached_property
    def norm(self) -> float:
        """Spectral norm, rounded up (estimated for a LinearOperator)."""
        if self.matrix_free:
            from scipy.sparse.linalg import svds

            if min(self.A.shape) <= 2:
                return float(np.linalg.norm(self.A @ np.eye(self.A.shape[1]), 2))
            return float(svds(self.A, k=1, return_singular_vectors=False, random_state=0)[0])
        if isinstance(self.A, BlockedRows):
            return norm_upper(self.A.norms() * (1.0 + 2.0**-40))
        return spectral_norm_upper(self.A)

    def _matrix(self, arithmetic: Arithmetic) -> Any:
        if arithmetic is RATIONAL:
            self._require_matrix()
            return self._exact_matrix
        return self.A

    @cached_property
    def _exact_matrix(self) -> Any:
        blocked = isinstance(self.A, BlockedRows)
        return RATIONAL.constant(self.A.toarray() if blocked else self.A)

    def _require_matrix(self) -> None:
        if self.matrix_free:
            raise NotCertifiableError(
                "a LinearOperator has no entries to compute with exactly; pass the matrix "
                "(dense or sparse) to get certified results."
            )

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        if isinstance(values[0], Enclosure):
            self._require_matrix()
        return self._matrix(arithmetic) @ values[0]

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        if isinstance(cotangent, Enclosure):
            self._require_matrix()
        return (self._matrix(arithmetic).T @ cotangent,)

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        return Bound(self.A @ b.value, self.norm * b.lipschitz, b.radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        matrix = self._matrix(RATIONAL)
        return [matrix @ coefficient for coefficient in jets[0]]

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        (inner,) = args
        if self.matrix_free or isinstance(self.A, BlockedRows):
            return Still.everywhere(self.shape, False)
        filled = (abs(self.A) > 0).astype(np.float64)
        # An entry is constant, or 0, if all those are that it is made of.
        constant, zero = (
            filled @ (~mask).astype(np.float64) == 0.0 for mask in (inner.constant, inner.zero)
        )
        return Still(constant, zero)

    def _terms_of(self, index: int) -> list[tuple[int, Fraction]]:
        """Pairs (argument's flat index, exact coefficient) of one entry."""
        self._require_matrix()
        columns = self.args[0].size // self.args[0].shape[0]
        i, j = divmod(index, columns)
        if sparse.issparse(self.A):
            span = slice(self.A.indptr[i], self.A.indptr[i + 1])
            entries = zip(self.A.indices[span].tolist(), self.A.data[span].tolist())
        else:
            entries = enumerate(self.A[i].tolist())  # type: ignore[assignment]
        return [(k * columns + j, Fraction(a)) for k, a in entries if a]

    def row(self, index: int) -> dict[int, Fraction]:
        if self._places is not None:
            return {self._places[k]: a for k, a in self._terms_of(index)}
        return _combine((self.args[0].row(k), a) for k, a in self._terms_of(index))

    def integer_row(self, index: int) -> IntegerRow:
        if self.args[0] is not self.variable:
            return super().integer_row(index)
        self._require_matrix()
        if sparse.issparse(self.A):
            span = slice(self.A.indptr[index], self.A.indptr[index + 1])
            places, entries = self.A.indices[span], self.A.data[span]
        else:
            places, entries = np.arange(self.A.shape[1]), self.A[index]
        filled = entries != 0
        return (places[filled].tolist(), *common_denominator(entries[filled]))

    def offset(self, index: int) -> Fraction:
        if self._places is not None:
            return Fraction(0)
        inner = self.args[0]
        return sum((a * inner.offset(k) for k, a in self._terms_of(index)), Fraction(0))

    @cached_property
    def _places(self) -> list[int] | None:
        """Where the argument's entries stand in the variable; None if they are more than that."""
        inner, places = self.args[0], np.arange(self.args[0].size)
        while isinstance(inner, Gather):
            places = inner.index.ravel()[places]
            inner = inner.args[0]
        alone = inner is self.variable and np.unique(places).size == places.size
        return places.tolist() if alone else None

    def magnitude(self) -> tuple[Vector, Vector]:
        self._require_matrix()
        inner = self.args[0]
        if isinstance(self.A, BlockedRows):
            return self.A.norms(), np.full(self.size, UNDERFLOW)
        gain, shift = inner.magnitude()
        size = abs(self.A)
        B = np.asarray(size @ shift.reshape(inner.shape)).ravel() + UNDERFLOW
        if inner is self.variable:
            # Cauchy-Schwarz on the row itself is sharper than on its entries one by one.
            return row_norms(size), B
        return np.asarray(size @ gain.reshape(inner.shape)).ravel(), B


class Gather(_Affine):
    """Entries of an expression in another order or shape: slices, reshape, transpose."""

    def __init__(self, arg: Expression, index: Any) -> None:
        self.index: NDArray[np.intp] = own_integers(index)
        super().__init__((arg,), self.index.shape)

    def with_args(self, args: Sequence[Expression]) -> Gather:
        return Gather(args[0], self.index)

    @cached_property
    def _start(self) -> int:
        return int(self.index.flat[0]) if self.index.size else 0

    @cached_property
    def _contiguous(self) -> bool:
        return bool(self.index.size and (np.diff(self.index.ravel()) == 1).all())

    @cached_property
    def _distinct(self) -> bool:
        return self._contiguous or np.unique(self.index).size == self.index.size

    def _take(self, value: Any) -> Any:
        flat = value.reshape(-1)
        if self._contiguous:
            return flat[self._start : self._start + self.size].reshape(self.shape)
        return flat[self.index]

    def _put(self, cotangent: Any) -> Any:
        if isinstance(cotangent, Enclosure):
            if not self._distinct:
                flat = cotangent.reshape(-1).scattered(self.index.ravel(), self.args[0].size)
                return flat.reshape(self.args[0].shape)
            return Enclosure(self._put(cotangent.mid), self._put(cotangent.rad))
        out = np.zeros(self.args[0].size, dtype=cotangent.dtype)
        if cotangent.dtype == object:
            out = RATIONAL.zeros((self.args[0].size,))
        if self._contiguous:
            out[self._start : self._start + self.size] = cotangent.reshape(-1)
        elif self._distinct:
            out[self.index.ravel()] = cotangent.reshape(-1)
        else:
            np.add.at(out, self.index.ravel(), cotangent.reshape(-1))
        return out.reshape(self.args[0].shape)

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        return self._take(values[0])

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        return (self._put(cotangent),)

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        (inner,) = args
        return Still(self._take(inner.constant), self._take(inner.zero))

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        repeats = 1.0 if self._distinct else float(np.sqrt(np.bincount(self.index.ravel()).max()))
        return Bound(self._take(b.value), repeats * b.lipschitz, b.radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        return [self._take(coefficient) for coefficient in jets[0]]

    def row(self, index: int) -> dict[int, Fraction]:
        return self.args[0].row(int(self.index.flat[index]))

    def offset(self, index: int) -> Fraction:
        return self.args[0].offset(int(self.index.flat[index]))

    def magnitude(self) -> tuple[Vector, Vector]:
        gain, shift = self.args[0].magnitude()
        return gain[self.index.ravel()], shift[self.index.ravel()]


class Scale(_Affine):
    """An expression times a constant number, or entrywise times a constant array."""

    def __init__(self, arg: Expression, factor: Any) -> None:
        self.factor: Vector = own(factor, "a factor")
        shape = np.broadcast_shapes(arg.shape, self.factor.shape)
        if shape != arg.shape:
            raise InputError(f"cannot multiply shape {arg.shape} by shape {self.factor.shape}.")
        super().__init__((arg,), shape)

    def with_args(self, args: Sequence[Expression]) -> Scale:
        return Scale(args[0], self.factor)

    @property
    def gain(self) -> float:
        """Upper bound of the factors' sizes."""
        return float(np.abs(self.factor).max(initial=0.0))

    def _factor(self, arithmetic: Arithmetic) -> Any:
        if arithmetic is RATIONAL:
            return RATIONAL.constant(self.factor)
        return self.factor

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        return values[0] * self._factor(arithmetic)

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        return (cotangent * self._factor(arithmetic),)

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        (inner,) = args
        nothing = np.broadcast_to(self.factor == 0.0, self.shape)
        return Still(inner.constant | nothing, inner.zero | nothing)

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        return Bound(b.value * self.factor, _product(self.gain, b.lipschitz), b.radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        factor = self._factor(RATIONAL)
        return [coefficient * factor for coefficient in jets[0]]

    def _at(self, index: int) -> Fraction:
        return Fraction(float(np.broadcast_to(self.factor, self.shape).flat[index]))

    def row(self, index: int) -> dict[int, Fraction]:
        factor = self._at(index)
        return {k: a * factor for k, a in self.args[0].row(index).items() if factor}

    def offset(self, index: int) -> Fraction:
        return self._at(index) * self.args[0].offset(index)

    def magnitude(self) -> tuple[Vector, Vector]:
        gain, shift = self.args[0].magnitude()
        factor = np.abs(np.broadcast_to(self.factor, self.shape)).ravel()
        return factor * gain, factor * shift + UNDERFLOW


class Divide(Scale):
    """An expression divided by constants: proofs use the quotient, not a rounded reciprocal.

    Parameters
    ----------
    divisor : float, int, Fraction or array
        Not 0. Numbers are taken exactly, arrays as float64.
    """

    def __init__(self, arg: Expression, divisor: Any) -> None:
        self.divisor = _as_divisor(divisor)
        reciprocal = np.asarray(_reciprocal(self.divisor))
        # Below the normal numbers a float64 reciprocal says too little.
        if not (np.isfinite(reciprocal) & (np.abs(reciprocal) >= 2.0**-1022)).all():
            raise InputError(
                f"cannot divide by {divisor!r}: a divisor must be finite and not 0, and so must "
                "its reciprocal in float64."
            )
        super().__init__(arg, reciprocal)

    def with_args(self, args: Sequence[Expression]) -> Divide:
        return Divide(args[0], self.divisor)

    @property
    def gain(self) -> float:
        return math.nextafter(super().gain, math.inf)

    def _factor(self, arithmetic: Arithmetic) -> Any:
        if arithmetic is FLOAT:
            return self.factor
        if arithmetic is RATIONAL:
            return 1 / RATIONAL.constant(self.divisor)
        if isinstance(self.divisor, Fraction):
            return ENCLOSURE.constant(1 / self.divisor)
        return Enclosure(self.divisor).reciprocal()

    def _at(self, index: int) -> Fraction:
        if isinstance(self.divisor, Fraction):
            return 1 / self.divisor
        return 1 / Fraction(float(np.broadcast_to(self.divisor, self.shape).flat[index]))


class Shift(_Affine):
    """An expression plus a constant."""

    def __init__(self, arg: Expression, constant: Any) -> None:
        self._given = own(constant, "a constant term")
        try:
            self.constant: Vector = np.broadcast_to(self._given, arg.shape)
        except ValueError:
            raise InputError(
                f"cannot add a constant of shape {self._given.shape} to an expression of shape "
                f"{arg.shape}."
            ) from None
        super().__init__((arg,), arg.shape)

    def with_args(self, args: Sequence[Expression]) -> Shift:
        return Shift(args[0], self._given)

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        return values[0] + arithmetic.constant(self.constant)

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        return (cotangent,)

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        (inner,) = args
        return Still(inner.constant, inner.zero & (self.constant == 0.0))

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        return Bound(b.value + self.constant, b.lipschitz, b.radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        first, *rest = jets[0]
        return [first + RATIONAL.constant(self.constant), *rest]

    def integer_row(self, index: int) -> IntegerRow:
        return self.args[0].integer_row(index)

    def row(self, index: int) -> dict[int, Fraction]:
        return self.args[0].row(index)

    def offset(self, index: int) -> Fraction:
        return self.args[0].offset(index) + Fraction(float(self.constant.flat[index]))

    def magnitude(self) -> tuple[Vector, Vector]:
        gain, shift = self.args[0].magnitude()
        return gain, shift + np.abs(self.constant).ravel()


class Add(_Affine):
    """The sum of expressions of one shape."""

    def __init__(self, args: Sequence[Expression]) -> None:
        flat: list[Expression] = []
        for a in args:
            flat.extend(a.args if type(a) is Add else (a,))
        shapes = {a.shape for a in flat}
        if len(shapes) != 1:
            raise InputError(f"cannot add expressions of shapes {sorted(shapes)}.")
        super().__init__(flat, flat[0].shape)

    def with_args(self, args: Sequence[Expression]) -> Add:
        return Add(args)

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        total = values[0]
        for value in values[1:]:
            total = total + value
        return total

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        return (cotangent,) * len(self.args)

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        return Still(
            np.logical_and.reduce([a.constant for a in args]),
            np.logical_and.reduce([a.zero for a in args]),
        )

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        value = np.sum([b.value for b in bounds], axis=0)
        return Bound(value, sum(b.lipschitz for b in bounds), bounds[0].radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        return add_jets(jets)

    def row(self, index: int) -> dict[int, Fraction]:
        return _combine((a.row(index), Fraction(1)) for a in self.args)

    def offset(self, index: int) -> Fraction:
        return sum((a.offset(index) for a in self.args), Fraction(0))

    def magnitude(self) -> tuple[Vector, Vector]:
        pairs = [a.magnitude() for a in self.args]
        return np.sum([g for g, _ in pairs], axis=0), np.sum([s for _, s in pairs], axis=0)


class Sum(_Affine):
    """The sum of all entries."""

    def __init__(self, arg: Expression) -> None:
        super().__init__((arg,), ())

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        total = values[0].sum()
        return total if isinstance(total, Enclosure) else np.asarray(total)

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        shape = self.args[0].shape
        if isinstance(cotangent, Enclosure):
            return (
                Enclosure(
                    np.broadcast_to(cotangent.mid, shape), np.broadcast_to(cotangent.rad, shape)
                ),
            )
        return (np.broadcast_to(cotangent, shape),)

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        (inner,) = args
        return Still.everywhere((), bool(inner.constant.all()), bool(inner.zero.all()))

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        return Bound(
            np.asarray(b.value.sum()), float(np.sqrt(self.args[0].size)) * b.lipschitz, b.radius
        )

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        return [np.asarray(coefficient.sum(), dtype=object) for coefficient in jets[0]]

    def row(self, index: int) -> dict[int, Fraction]:
        inner = self.args[0]
        return _combine((inner.row(k), Fraction(1)) for k in range(inner.size))

    def offset(self, index: int) -> Fraction:
        inner = self.args[0]
        return sum((inner.offset(k) for k in range(inner.size)), Fraction(0))

    def magnitude(self) -> tuple[Vector, Vector]:
        gain, shift = self.args[0].magnitude()
        return np.array([gain.sum()]), np.array([shift.sum()])


class Multiply(Expression):
    """The entrywise product of two expressions."""

    def __init__(self, left: Expression, right: Expression) -> None:
        if left.shape != right.shape:
            raise InputError(
                f"cannot multiply expressions of shapes {left.shape} and {right.shape}; "
                "reshape one of them."
            )
        super().__init__((left, right), left.shape)

    @cached_property
    def degree(self) -> float:
        return self.args[0].degree + self.args[1].degree

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        return values[0] * values[1]

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        return cotangent * values[1], cotangent * values[0]

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        a, b = args
        moving = (~a.constant & ~b.zero) | (~b.constant & ~a.zero)
        return Still(~moving, a.zero | b.zero)

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        a, b = bounds
        top_a = float(np.abs(a.value).max(initial=0.0)) + a.spread
        top_b = float(np.abs(b.value).max(initial=0.0)) + b.spread
        lipschitz = _product(top_a, b.lipschitz) + _product(top_b, a.lipschitz)
        return Bound(a.value * b.value, lipschitz, a.radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        return multiply_jets(jets[0], jets[1], lambda a, b: a * b)


class MatMul(Expression):
    """The matrix product of two expressions."""

    def __init__(self, left: Expression, right: Expression) -> None:
        if not left.shape or not right.shape or left.shape[-1] != right.shape[0]:
            raise InputError(f"cannot multiply shapes {left.shape} and {right.shape}.")
        super().__init__((left, right), (*left.shape[:-1], *right.shape[1:]))

    @cached_property
    def degree(self) -> float:
        return self.args[0].degree + self.args[1].degree

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        out = values[0] @ values[1]
        return out if isinstance(out, Enclosure) else np.asarray(out)

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        left, right = (a.shape for a in self.args)
        rows = left[0] if len(left) == 2 else 1
        columns = right[1] if len(right) == 2 else 1
        g = cotangent.reshape(rows, columns)
        a = values[0].reshape(rows, left[-1])
        b = values[1].reshape(left[-1], columns)
        return (g @ b.T).reshape(left), (a.T @ g).reshape(right)

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        return products(*args)

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        a, b = bounds
        value = np.asarray(a.value @ b.value)
        return Bound(value, _product(a.size, b.lipschitz) + _product(b.size, a.lipschitz), a.radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        return multiply_jets(
            jets[0], jets[1], lambda a, b: np.asarray(a @ b, dtype=object).reshape(self.shape)
        )


def broadcast(u: Expression, shape: tuple[int, ...]) -> Expression:
    """Return an expression in a larger shape, its entries repeated as NumPy repeats them."""
    if u.shape == shape:
        return u
    return Gather(u, np.broadcast_to(np.arange(u.size).reshape(u.shape), shape))


def common_shape(what: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that NumPy would broadcast to, or refuse."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(map(str, shapes))
        raise InputError(
            f"cannot {what} shapes {text}: they must agree, or one must be 1 in each dimension; "
            "reshape one of them."
        ) from None


def row_norms(matrix: Any) -> Vector:
    """Return the Euclidean norms of the rows, safe from over- and underflow of squares."""
    size = abs(matrix)
    top = size.max(axis=1)
    largest: Vector = (top.toarray() if sparse.issparse(top) else np.asarray(top)).ravel()
    # Powers of two scale exactly.
    unit = np.ldexp(1.0, -np.frexp(np.where(largest > 0, largest, 1.0))[1].clip(-1000, 1000))
    if sparse.issparse(size):
        scaled = sparse.diags_array(unit) @ size
        squares = np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel()
    else:
        squares = ((size * unit[:, None]) ** 2).sum(axis=1)
    answer: Vector = np.sqrt(squares) / unit
    return answer


def size_upper(point: Vector) -> float:
    """Return a bound of |x| that does not square: tiny points must not look like 0."""
    return float(np.abs(point).max(initial=0.0)) * math.sqrt(point.size)


def _product(a: float, b: float) -> float:
    return 0.0 if a == 0.0 or b == 0.0 else a * b


def _combine(parts: Any) -> dict[int, Fraction]:
    total: dict[int, Fraction] = {}
    for row, factor in parts:
        for k, a in row.items():
            total[k] = total.get(k, Fraction(0)) + factor * a
    return {k: a for k, a in total.items() if a}


def add_jets(jets: Sequence[Jet]) -> Jet:
    """Add polynomials of different degrees."""
    longest = max(len(jet) for jet in jets)
    total: Jet = []
    for power in range(longest):
        parts = [jet[power] for jet in jets if power < len(jet)]
        total.append(sum(parts[1:], parts[0]))
    return total


def multiply_jets(left: Jet, right: Jet, times: Any) -> Jet:
    """Multiply polynomials whose coefficients multiply by `times`."""
    powers: list[list[Any]] = [[] for _ in range(len(left) + len(right) - 1)]
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            powers[i + j].append(times(a, b))
    return [sum(parts[1:], parts[0]) for parts in powers]


def linear(A: Any, u: Expression) -> Expression:
    """Return `A @ u`; needed by name for a `LinearOperator`, whose `@` refuses expressions.

    Examples
    --------
    >>> from scipy.sparse.linalg import aslinearoperator
    >>> from goldstein.calculus import Variable
    >>> linear(aslinearoperator(np.eye(2)), Variable(2)).shape
    (2,)
    """
    u = as_expression(u, "linear")
    if isinstance(A, BlockedRows) and u is not u.variable:
        raise InputTypeError("rows in blocks multiply the variable itself, not an expression.")
    if isinstance(A, LinearOperator | BlockedRows):
        matrix: Any = A
    elif sparse.issparse(A):
        matrix = own_sparse(A)
    else:
        matrix = own(A, "the matrix")
        if matrix.ndim == 1:
            return linear(matrix[None, :], u).reshape(*u.shape[1:])
    if len(matrix.shape) != 2 or u.ndim not in (1, 2) or matrix.shape[1] != u.shape[0]:
        raise InputError(f"cannot multiply a matrix of shape {matrix.shape} with shape {u.shape}.")
    if isinstance(A, BlockedRows):
        entries = A.norms()
    else:
        entries = matrix.data if sparse.issparse(matrix) else matrix
    if not isinstance(A, LinearOperator) and not np.isfinite(entries).all():
        raise InputError("the matrix has a NaN or an infinity; every entry must be finite.")
    return Linear(matrix, u)


def matmul(u: Expression, other: Any) -> Expression:
    """Return `u @ other` for a constant or an expression."""
    if isinstance(other, Expression) or holds_expressions(other):
        return MatMul(u, as_expression(other, "@"))
    kept = sparse.issparse(other) or isinstance(other, LinearOperator)
    matrix = other if kept else exact_floats(other, "the matrix")
    if matrix.ndim == 1:
        return linear(matrix, u.T)
    return linear(matrix.T, u.T).T


def add(u: Expression, other: Any) -> Expression:
    """Return `u + other` for a constant or an expression."""
    other = _operand(other, "a constant term")
    shape = common_shape("add", u.shape, other.shape)
    if isinstance(other, Expression):
        return Add((broadcast(u, shape), broadcast(other, shape)))
    return Shift(broadcast(u, shape), other)


def subtract(u: Expression, other: Any) -> Expression:
    """Return `u - other` for a constant or an expression."""
    # In float64: the negative of a short or unsigned integer may be another number.
    return add(u, -_operand(other, "a constant term"))


def multiply(u: Expression, other: Any) -> Expression:
    """Return `u * other`, entry by entry, for a constant or an expression."""
    other = _operand(other, "a factor")
    shape = common_shape("multiply", u.shape, other.shape)
    if isinstance(other, Expression):
        return Multiply(broadcast(u, shape), broadcast(other, shape))
    return Scale(broadcast(u, shape), other)


def divide(u: Expression, divisor: Any) -> Expression:
    """Return `u / divisor`, entry by entry, for a constant."""
    if isinstance(divisor, Expression) or holds_expressions(divisor):
        refuse_quotient()
    exact = _as_divisor(divisor)
    shape = () if isinstance(exact, Fraction) else exact.shape
    quotient = Divide(broadcast(u, common_shape("divide", u.shape, shape)), exact)
    if isinstance(quotient.divisor, Fraction):
        return quotient
    powers_of_two = np.abs(np.frexp(quotient.divisor)[0]) == 0.5
    # Their reciprocals are floats, and products need no enclosure.
    return Scale(quotient.args[0], quotient.factor) if powers_of_two.all() else quotient


def refuse_quotient() -> NoReturn:
    raise InputTypeError(
        "cannot divide by an expression: its kinks could not be decided exactly. Multiply the "
        "other side by it, or use smooth_function(u, value, derivative) for a quotient of one u."
    )


def _operand(other: Any, what: str) -> Any:
    """Return the other operand: an expression, or numbers, exactly."""
    if isinstance(other, Expression):
        return other
    return as_expression(other, what) if holds_expressions(other) else exact_floats(other, what)


def _as_divisor(value: Any) -> Any:
    """Return a divisor as float64, or as a Fraction where float64 would round it."""
    if not isinstance(value, int | float | np.number | Decimal | Fraction):
        return own(value, "a divisor")
    exact = exact_number(value, "a divisor", truth=True)
    try:
        nearest = float(exact)
    except OverflowError:
        return exact
    return own(nearest) if Fraction(nearest) == exact else exact


def _reciprocal(divisor: Any) -> Any:
    if isinstance(divisor, Fraction):
        return fraction_upper(1 / divisor)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return 1.0 / divisor


def sum_entries(u: Any, axis: int | None = None) -> Expression:
    """Return the sum of all entries, or along one axis of a table (public name: `sum`).

    Examples
    --------
    >>> from goldstein.calculus import Variable, sum
    >>> sum(Variable(2)).value(np.array([1.0, 2.0]))
    3.0
    >>> sum(Variable(4).reshape(2, 2), axis=0)(np.arange(4.0))
    array([2., 4.])
    """
    inner = as_expression(u, "sum")
    if axis is None:
        return Sum(inner)
    if not isinstance(axis, int | np.integer) or not -inner.ndim <= axis < inner.ndim:
        raise InputError(f"axis is {axis!r}, expected a whole number below {inner.ndim}.")
    if inner.ndim == 1:
        return Sum(inner)
    rows, columns = inner.shape
    if axis % 2 == 0:
        return linear(np.ones((1, rows)), inner).reshape(columns)
    return linear(np.ones((1, columns)), inner.T).reshape(rows)


__all__ = [
    "Add",
    "Divide",
    "Gather",
    "Linear",
    "MatMul",
    "Multiply",
    "Scale",
    "Shift",
    "Sum",
    "broadcast",
    "common_shape",
    "divide",
    "linear",
    "matmul",
    "refuse_quotient",
    "row_norms",
    "size_upper",
    "subtract",
    "sum_entries",
]
