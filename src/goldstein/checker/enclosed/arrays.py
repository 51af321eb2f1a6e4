"""Arrays of rigorous enclosures: a float64 midpoint and a float64 radius for every entry.

Every operation returns an array that contains all results of the operation on all members of its
operands. Rounding follows the standard model (Higham, Accuracy and Stability of Numerical
Algorithms, section 3.1): a sum of n products in any order errs by at most g(n) |a|.|b|.

Long inner products as exact rationals, without an integer per entry.

A product of two floats is the sum of two floats. Of all of these the leading digits are summed, so
few that nothing is rounded; then those of what is left (Rump, Ogita, Oishi, SIAM J. Sci. Comput.
31, 2008: with 2^M > n + 1 and all terms at most 2^-M s, s a power of two, (s + p) - s has the
digits of p from 2^-53 s on, and sums of n such numbers are exact, in any order).

Smooth functions of one number, by name: enclosures of the value, the slope, the domain.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker.arrays import Vector
from goldstein.checker.errors import InputError, Irrational, MissingExtraError, NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.rationals import exact_dot, nearest_float
from goldstein.checker.rounding import UNIT, gamma, product_error


def float_dot(left: Vector, right: Vector) -> Fraction:
    """Return the inner product of two float64 vectors, exactly.

    Examples
    --------
    >>> float_dot(np.array([1e16, 1.0, -1e16]), np.array([1.0, 0.5, 1.0]))
    Fraction(1, 2)
    """
    if left.shape != right.shape:
        raise InputError(f"got vectors of shapes {left.shape} and {right.shape}, expected equal.")
    with np.errstate(all="ignore"):
        product = left * right
        safe = np.abs(product).sum() < 2.0**1000  # so no sum overflows
    error = product_error(left, right, product)
    if not (safe and np.isfinite(error).all()):
        return exact_dot(left, right)
    total, rest = Fraction(0), np.concatenate([product, error])
    while rest.any():
        top = math.frexp(np.abs(rest).max())[1] + rest.size.bit_length() + 1
        part = (math.ldexp(1.0, top) + rest) - math.ldexp(1.0, top)
        total += Fraction(float(part.sum()))
        rest = rest - part
    return total


def row_products(rows: Any, vector: Vector | Sequence[Fraction]) -> list[Fraction]:
    """Return the products of a sparse float64 matrix with a vector, exactly.

    Of a vector of rationals the nearest floats are multiplied, and what these leave of it.
    """
    found, spans = [], list(pairwise(rows.indptr.tolist()))
    if isinstance(vector, np.ndarray):
        return [float_dot(rows.data[a:b], vector[rows.indices[a:b]]) for a, b in spans]
    floats = np.array([nearest_float(v) if abs(v) < 2**1023 else 0.0 for v in vector])
    left = np.array([v - Fraction(a) for v, a in zip(vector, floats.tolist())], dtype=object)
    for a, b in spans:
        places, numbers = rows.indices[a:b], rows.data[a:b]
        some = np.flatnonzero(left[places])
        rest = exact_dot(numbers[some], left[places[some]])
        found.append(float_dot(numbers, floats[places]) + rest)
    return found


@dataclass(frozen=True)
class Function:
    """A function that is smooth on its domain.

    Attributes
    ----------
    name : str
    slope : callable
        The derivative of an array, enclosed or exact.
    exact : callable
        The value at a rational number where it is rational and known, else None.
    domain : str
        What the arguments must be: "positive", "nonzero", or "" for any number.
    value : callable or str
        The function of an `Enclosure`, or what python-flint calls it; by default its name.
    """

    name: str
    slope: Callable[[Any], Any]
    exact: Callable[[Fraction], Fraction | None]
    domain: str = ""
    value: Callable[[Any], Any] | str = ""

    def at(self, u: Any) -> Any:
        """Return the function of every entry, inside the domain; of rationals if it is rational."""
        self.require_domain(u)
        if isinstance(u, Exact):
            found = [self.exact(q) for q in u.fractions]
            if None in found:
                raise Irrational(self.name)
            return Exact.of(found).reshape(*u.top.shape)
        return self.value(u) if callable(self.value) else u.balls(self.value or self.name)

    @property
    def keeps_zero(self) -> bool:
        """Is it 0 at 0?"""
        return not self.domain and self.exact(Fraction(0)) == 0

    def require_domain(self, u: Any) -> None:
        """Refuse arguments that are not proved to be inside the domain."""
        signs = u.signs() if self.domain else None
        inside = signs is None or (signs > 0 if self.domain == "positive" else signs != 0).all()
        if not inside:
            raise NotCertifiableError(
                f"the argument of {self.name} is not proved to be {self.domain}."
            )

    def slope_of(self, u: Any) -> Any:
        """Return the derivative, inside the domain."""
        self.require_domain(u)
        return self.slope(u)


def _numbers(u: Any, *values: int) -> Any:
    return type(u).of(list(values))


def hypotenuse(u: Any) -> Any:
    return (u * u + _numbers(u, 1)).root()


def _of(name: str, u: Any) -> Any:
    return FUNCTIONS[name].at(u)


def _squared(name: str, u: Any) -> Any:
    return _of(name, u) * _of(name, u)


def _negative(u: Any) -> Any:
    return u * _numbers(u, -1)


def _square_root(q: Fraction) -> Fraction | None:
    """Return the root of the square of a rational."""
    if q < 0:
        return None
    root = Fraction(math.isqrt(q.numerator), math.isqrt(q.denominator))
    return root if root * root == q else None


def _at(q: int, value: int) -> Callable[[Fraction], Fraction | None]:
    return lambda at: Fraction(value) if at == q else None


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("exp", lambda u: _of("exp", u), _at(0, 1)),
        Function("log", lambda u: u.reciprocal(), _at(1, 0), "positive"),
        Function("sin", lambda u: _of("cos", u), _at(0, 0)),
        Function("cos", lambda u: _negative(_of("sin", u)), _at(0, 1)),
        Function("tanh", lambda u: _numbers(u, 1) + _negative(_squared("tanh", u)), _at(0, 0)),
        Function("arctan", lambda u: (u * u + _numbers(u, 1)).reciprocal(), _at(0, 0), "", "atan"),
        Function(
            "sqrt", lambda u: (_of("sqrt", u) * _numbers(u, 2)).reciprocal(), _square_root,
            "positive", lambda u: u.root(),
        ),
        Function(
            "reciprocal", lambda u: _negative(_squared("reciprocal", u)),
            lambda q: 1 / q if q else None, "nonzero", lambda u: u.reciprocal(),
        ),
        Function(
            "pseudo_huber", lambda u: u * hypotenuse(u).reciprocal(), _at(0, 0),
            value=lambda u: u * u * (hypotenuse(u) + 1.0).reciprocal(),  # nothing cancels
        ),
    )
}  # fmt: skip


Floats = NDArray[np.float64]

#: Larger than the absolute error of any operation that underflows, even if subnormals are flushed.
_TINY = 2.0**-1000

#: What a product loses at most when it underflows; a large factor can make the loss visible.
_LOST = 2.0**-1074

#: Entries of a matrix whose absolute values are formed at a time.
_BLOCK = 2**16


def _outward(radius: Any) -> Floats:
    """Round a radius, computed with a handful of operations, upwards."""
    return np.asarray(radius * (1.0 + 2.0**-49) + _TINY)


class Enclosure:
    """An array of closed intervals `[mid - rad, mid + rad]`.

    Plain arrays and numbers mix in as exact constants.

    Examples
    --------
    >>> third = Enclosure(np.array([3.0])).reciprocal()
    >>> bool(abs(Fraction(float(third.mid[0])) - Fraction(1, 3)) <= Fraction(float(third.rad[0])))
    True
    """

    __array_ufunc__ = None
    #: Series end with the first power of t.
    longest: int | None = 2

    def __init__(self, mid: Any, rad: Any = None) -> None:
        self.mid: Floats = np.asarray(mid, dtype=np.float64)
        rad = np.zeros_like(self.mid) if rad is None else rad
        self.rad: Floats = np.asarray(rad, dtype=np.float64)

    @classmethod
    def of(cls, values: Sequence[Fraction | int] | NDArray[Any]) -> Enclosure:
        """Return the tightest enclosures of some rationals; those that are floats stay exact."""
        if isinstance(values, np.ndarray):
            return cls(values)
        near = [nearest_float(value) for value in values]
        mid = np.array(near, dtype=np.float64)
        rounded = [math.isinf(m) or Fraction(m) != value for m, value in zip(near, values)]
        with np.errstate(all="ignore"):
            return cls(mid, np.where(rounded, _outward(UNIT * np.abs(mid)), 0.0))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mid.shape

    @property
    def size(self) -> int:
        return self.mid.size

    @property
    def swapped(self) -> Enclosure:
        """The last two axes exchanged."""
        return Enclosure(self.mid.swapaxes(-1, -2), self.rad.swapaxes(-1, -2))

    @property
    def magnitude(self) -> Floats:
        """Upper bound of the absolute values."""
        return _outward(np.abs(self.mid) + self.rad)

    @np.errstate(all="ignore")
    def signs(self, level: Fraction = Fraction(0)) -> NDArray[np.intp]:
        """Return the signs of the entries minus a level; 0 where they are not proved."""
        gap = self - Enclosure.of([level]) if level else self
        decided = np.abs(gap.mid) > _outward(gap.rad)
        return np.where(decided, np.sign(gap.mid), 0.0).astype(np.intp)

    @np.errstate(all="ignore")
    def largest(self, columns: int) -> list[list[int]]:
        """Return, for every row of a table, the places of what may be its largest entry."""
        low, high = self.reshape(-1, columns).ends()
        # Written so that a NaN or an overflow counts as doubt.
        rows = enumerate(~(high < low.max(axis=1, keepdims=True)))
        return [(r * columns + np.flatnonzero(row)).tolist() for r, row in rows]

    def ordered(self, columns: int, matters: Any = None) -> list[list[int]]:
        """Return the places of each row in ascending order, those that may be equal together."""
        low, high = (end.reshape(-1, columns) for end in self.ends())
        found: list[list[int]] = []
        for r, order in enumerate(np.argsort(low, axis=1, kind="stable")):
            # A row with a NaN may have any order.
            highest = np.maximum.accumulate(high[r, order])
            apart = (highest[:-1] < low[r, order[1:]]) & (low[r] == low[r]).all()
            found += [(r * columns + part).tolist()
                      for part in np.split(order, np.flatnonzero(apart) + 1)]  # fmt: skip
        return found

    @np.errstate(all="ignore")
    def ends(self) -> tuple[Floats, Floats]:
        """Return lower and upper bounds."""
        wide = _outward(self.rad + UNIT * np.abs(self.mid))
        return self.mid - wide, self.mid + wide

    def reshape(self, *shape: Any) -> Enclosure:
        return Enclosure(self.mid.reshape(*shape), self.rad.reshape(*shape))

    def __getitem__(self, index: Any) -> Enclosure:
        return Enclosure(self.mid[index], self.rad[index])

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.mid, self.rad)

    @np.errstate(all="ignore")
    def __add__(self, other: Any) -> Enclosure:
        b = enclose(other)
        mid = self.mid + b.mid
        return Enclosure(mid, _outward(self.rad + b.rad + UNIT * np.abs(mid)))

    def __sub__(self, other: Any) -> Enclosure:
        return self + (-enclose(other))

    @np.errstate(all="ignore")
    def __mul__(self, other: Any) -> Enclosure:
        b = enclose(other)
        mid = self.mid * b.mid
        spread = np.abs(self.mid) * b.rad + np.abs(b.mid) * self.rad + self.rad * b.rad
        return Enclosure(mid, _outward(spread + UNIT * np.abs(mid)))

    @np.errstate(all="ignore")
    def reciprocal(self) -> Enclosure:
        """Return 1/self; the radius is infinite where 0 is not excluded."""
        size = np.abs(self.mid)
        gap = size * (1.0 - 2.0**-50) - self.rad
        mid = 1.0 / self.mid
        rad = _outward(_outward(self.rad / size) / gap + UNIT * np.abs(mid))
        return Enclosure(mid, np.where(gap > 0, rad, np.inf))

    @np.errstate(all="ignore")
    def root(self) -> Enclosure:
        """Return the square root, for enclosures of nonnegative numbers."""
        high = np.sqrt(np.maximum(self.mid + self.rad, 0.0)) * (1.0 + 2.0**-50) + 2.0**-490
        low = np.sqrt(np.maximum(self.mid - self.rad, 0.0)) * (1.0 - 2.0**-50)
        mid = low + 0.5 * (high - low)
        return Enclosure(mid, _outward(np.maximum(high - mid, mid - low) + UNIT * high))

    @np.errstate(all="ignore")
    def __matmul__(self, other: Any) -> Enclosure:
        b = enclose(other)
        terms = self.shape[-1]
        mid = self.mid @ b.mid
        size = np.abs(b.mid) + b.rad
        rounding = gamma(terms + 2) * np.abs(b.mid) + _LOST
        spread = np.abs(self.mid) @ (b.rad + rounding) + self.rad @ size
        return _summed(mid, spread, terms)

    @np.errstate(all="ignore")
    def __rmatmul__(self, other: Any) -> Enclosure:
        # The matrix is exact: one product less than the general case.
        terms = other.shape[-1]
        return sum_of_parts([product_part(other, self, terms)], terms)

    @np.errstate(all="ignore")
    def sum(self, axis: int | None = None) -> Enclosure:
        terms = self.size if axis is None else self.shape[axis]
        spread = (self.rad + gamma(terms + 2) * np.abs(self.mid)).sum(axis=axis)
        return _summed(self.mid.sum(axis=axis), spread, terms)

    @np.errstate(all="ignore")
    def scattered(self, places: NDArray[np.intp], size: int) -> Enclosure:
        """Return a vector of zeros to whose entries these are added at their places.

        Examples
        --------
        >>> Enclosure(np.array([1.0, 2.0, 4.0])).scattered(np.array([0, 1, 0]), 2).mid
        array([5., 2.])
        """
        terms = int(np.bincount(places, minlength=1).max())
        mid, spread = np.zeros(size), np.zeros(size)
        if terms <= 1:  # nothing is added
            mid[places], spread[places] = self.mid, self.rad
            return Enclosure(mid, spread)
        np.add.at(mid, places, self.mid)
        np.add.at(spread, places, self.rad + gamma(terms + 2) * np.abs(self.mid))
        return _summed(mid, spread, terms)

    def replaced(self, places: slice, row: Enclosure | Exact) -> Enclosure:
        """Return this vector with a row replaced by one of the given direction."""
        mid, rad = self.mid.copy(), self.rad.copy()
        if isinstance(row, Exact):
            # Divided by the largest entry: its square does not underflow.
            largest = max(map(abs, row.top.tolist()))
            row = Enclosure.of([Fraction(a, largest) for a in row.top.tolist()])
        mid[places], rad[places] = row.mid, row.rad
        return Enclosure(mid, rad)

    def linear(self, node: Any) -> Enclosure:
        """Return the matrix of an affine node times this vector."""
        return self._product(node.matrix, node.columns)

    def transposed(self, node: Any) -> Enclosure:
        """Return the transposed matrix times this vector."""
        return self._product(node.matrix.T, node.columns)

    def _product(self, matrix: Any, columns: int) -> Enclosure:
        answer: Enclosure = matrix @ (self if columns == 1 else self.reshape(-1, columns))
        return answer.reshape(-1)

    def balls(self, function: str | Callable[[Any], Any]) -> Enclosure:
        """Return a function of every entry by the ball arithmetic of python-flint."""
        module = flint()
        if module is None:
            raise MissingExtraError(
                "the enclosure of a transcendental function needs ball arithmetic (python-flint), "
                'from the extra `exact`; in a clone of the project run: pip install ".[exact]"'
            )
        mid, rad = np.empty(self.size), np.empty(self.size)
        pairs = zip(self.mid.ravel().tolist(), self.rad.ravel().tolist())
        for place, (m, r) in enumerate(pairs):
            ball = module.arb(m, r)
            ball = getattr(ball, function)() if isinstance(function, str) else function(ball)
            centre = float(ball.mid())
            # `rad` of a ball is rounded up; the conversion of the centre errs by u |m|.
            radius = float(ball.rad()) * (1.0 + 2.0**-20) + 2.0**-52 * abs(centre) + 2.0**-1000
            mid[place], rad[place] = centre, radius
        return Enclosure(mid.reshape(self.shape), rad.reshape(self.shape))


@np.errstate(all="ignore")
def product_part(matrix: Any, vector: Enclosure, terms: int) -> tuple[Any, Any]:
    """Return midpoint and spread of an exact matrix times a vector, one part of a longer sum.

    Parameters
    ----------
    terms : int
        Products that each entry of the whole sum has, those of the other parts included.
    """
    rounding = gamma(terms + 2) * np.abs(vector.mid) + _LOST
    return matrix @ vector.mid, _absolute_product(matrix, vector.rad + rounding)


@np.errstate(all="ignore")
def sum_of_parts(parts: Sequence[tuple[Any, Any]], terms: int) -> Enclosure:
    """Return the enclosure of a sum whose parts were formed one by one, perhaps elsewhere.

    The bound of the rounding errors holds for every order of summation: how the terms were divided
    does not change the radius by more than its own rounding.

    Examples
    --------
    >>> A, v = np.arange(6.0).reshape(2, 3), Enclosure(np.ones(3), np.full(3, 0.5))
    >>> halves = [product_part(A[:, :1], v[:1], 3), product_part(A[:, 1:], v[1:], 3)]
    >>> sum_of_parts(halves, 3).mid, bool(np.allclose(sum_of_parts(halves, 3).rad, (A @ v).rad))
    (array([ 3., 12.]), True)
    """
    mid = functools.reduce(np.add, [mid for mid, _ in parts])
    spread = functools.reduce(np.add, [spread for _, spread in parts])
    return _summed(mid, spread, terms)


def _absolute_product(matrix: Any, vector: Floats) -> Any:
    """Return |matrix| @ vector; large dense data are taken block by block, without a copy."""
    if sparse.issparse(matrix) or matrix.ndim != 2 or matrix.size <= _BLOCK:
        return abs(matrix) @ vector
    n, k = matrix.shape
    if n >= k:
        step = max(1, _BLOCK // k)
        return np.concatenate([np.abs(matrix[i : i + step]) @ vector for i in range(0, n, step)])
    step = max(1, _BLOCK // n)
    parts = (np.abs(matrix[:, j : j + step]) @ vector[j : j + step] for j in range(0, k, step))
    return functools.reduce(np.add, parts)


def _summed(mid: Any, spread: Any, terms: int) -> Enclosure:
    """Charge the rounding of the radius' own sum, and underflow of every product."""
    radius = _outward(spread * (1.0 + 4 * gamma(terms + 4)) + (terms + 2) * _TINY)
    # A partial sum that overflows says nothing of the sum, not even its sign.
    return Enclosure(mid, np.where(np.isfinite(mid), radius, np.inf))


def flint() -> ModuleType | None:
    """Return python-flint, or None where it is not installed."""
    try:
        return importlib.import_module("flint")
    except ImportError:
        return None


def enclose(value: Any) -> Enclosure:
    """Return a number or array as an enclosure; float64 data are exact."""
    return value if isinstance(value, Enclosure) else Enclosure(value)
