"""Linear algebra over the rationals.

Stored float64 numbers are taken as exact rationals. python-flint, where installed, only makes the
linear algebra faster: both routes return the same rationals.

Numbers that a claim is about, taken exactly or refused, as the checker reads them.

Arithmetic on constants that rounds in the safe direction.

Nonnegative floats, infinity allowed. Each result is the nearest float on the safe side of the exact
one, so that a bound stays a bound and representable results stay exact. `0 * inf` is 0: a missing
term stays missing however large its factor.

Sums whose last bit does not depend on the order of the terms, freak cases aside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.cluster.hierarchy import DisjointSet

from goldstein.checker import rationals
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.enclosed.arrays import flint
from goldstein.errors import InputError, InputTypeError


def connected(sets: Sequence[Iterable[int]]) -> list[list[int]]:
    """Group the indices of sets that share members, directly or through others.

    Examples
    --------
    >>> connected([{0, 1}, {5}, {1, 2}, {2, 7}])
    [[0, 2, 3], [1]]
    """
    groups, first = DisjointSet(range(len(sets))), dict[int, int]()
    for index, members in enumerate(sets):
        for member in members:
            groups.merge(index, first.setdefault(member, index))
    return sorted(sorted(group) for group in groups.subsets())


#: Called between the steps of a long computation, with the seconds that the next step may take. It
#: may raise, and so end the computation.
Pause = Callable[[float], None]

_FLINT_MIN_ROWS = 3

#: A prime below 2^31.
_PRIME = 2**31 - 1

#: Seconds of a system of k equations in flint, in units of k^3: it cannot be interrupted.
_FLINT_SECONDS = 2e-7


def integer_dot(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(left, right, strict=True))


def same_length(got: int, expected: int) -> None:
    if got != expected:
        raise InputError(f"got vectors of lengths {got} and {expected}, expected equal lengths.")


def exact_rank(M: Any) -> int:
    """Return the rank of a matrix of floats or Fractions, exactly.

    Examples
    --------
    >>> exact_rank([[1.0, 2.0], [0.1, 0.2]]), exact_rank([[1.0, 3.0], [0.1, 0.3]])
    (1, 2)
    """
    return len(independent_rows(M))


def independent_rows(M: Any) -> list[int]:
    """Return the first rows, in order, that span the row space exactly.

    Examples
    --------
    >>> independent_rows([[1.0, 0.0], [2.0, 0.0], [1.0, 1.0]])
    [0, 2]
    """
    return _independent([rationals.common_denominator(row)[0] for row in _dense_rows(M)])


def project_exact(
    M: Any, t: Any, base: rationals.RationalVector, pause: Pause | None = None
) -> list[Fraction] | None:
    """Return the point of `{th : M th = t}` nearest to `base`, exactly.

    Dependent rows are allowed. Rows that share no variable are solved apart, so that a network
    costs the sum of its neurons.

    Parameters
    ----------
    M : array or sparse matrix, shape (k, n)
        Floats, or rows of Fractions.
    t : float or sequence of length k
    base : sequence of length n
    pause : callable, optional
        Called between steps; it may raise.

    Returns
    -------
    list of Fraction, or None
        None when no point satisfies the equations.

    Examples
    --------
    >>> project_exact([[1.0, 1.0], [2.0, 2.0]], [1.0, 2.0], [0.0, 0.0])
    [Fraction(1, 2), Fraction(1, 2)]
    >>> project_exact([[1.0, 1.0], [2.0, 2.0]], [1.0, 3.0], [0.0, 0.0]) is None
    True
    """
    rows = _dense_rows(M)
    levels = rationals.to_fractions([t] * len(rows) if np.ndim(t) == 0 else t)
    same_length(len(levels), len(rows))
    point = rationals.to_fractions(base)

    equations: list[tuple[dict[int, int], Fraction]] = []
    for row, level in zip(rows, levels, strict=True):
        same_length(len(row), len(point))
        entries, denominator = rationals.common_denominator(row)
        support = {column: entry for column, entry in enumerate(entries) if entry}
        if support:
            equations.append((support, level * denominator))
        elif level != 0:
            return None  # 0 = t
    for members in connected([support for support, _ in equations]):
        group = [equations[index] for index in members]
        columns = sorted({column for support, _ in group for column in support})
        solved = _project_group(
            [[support.get(column, 0) for column in columns] for support, _ in group],
            [level for _, level in group],
            [point[column] for column in columns],
            pause or _go_on,
        )
        if solved is None:
            return None
        for column, entry in zip(columns, solved, strict=True):
            point[column] = entry
    return point


def _go_on(seconds: float) -> None:
    """Pause for nobody."""


def _project_group(
    rows: list[list[int]], levels: list[Fraction], base: list[Fraction], pause: Pause
) -> list[Fraction] | None:
    chosen = _independent(rows, pause)
    picked = [rows[index] for index in chosen]
    tops, bottom = rationals.common_denominator(base)
    residual = [
        levels[index] - Fraction(integer_dot(rows[index], tops), bottom) for index in chosen
    ]
    if len(chosen) == len(base) == len(rows):
        # As many equations as variables: one point, whichever is nearest.
        moves = _solve(picked, residual, pause)
        return [start + move for start, move in zip(base, moves, strict=True)]
    multipliers = _solve(picked, residual, pause, gram=True)
    moved, scale = rationals.common_denominator(multipliers)
    # One fraction per coordinate: reducing long ones is what takes the time.
    point = []
    for top, column in zip(tops, zip(*picked, strict=True), strict=True):
        pause(0.0)
        step = bottom * integer_dot(moved, column)
        point.append(Fraction(top * scale + step, bottom * scale))
    tops, bottom = rationals.common_denominator(point)
    dependent = set(range(len(rows))).difference(chosen)
    # A dependent equation is a consequence of the chosen ones, or contradicts them.
    if any(Fraction(integer_dot(rows[i], tops), bottom) != levels[i] for i in dependent):
        return None
    return point


def _dense_rows(M: Any) -> list[list[Any]]:
    if sparse.issparse(M):
        M = M.toarray()
    if isinstance(M, np.ndarray):
        return np.atleast_2d(M).tolist() if M.size else []
    return [list(row) for row in M]


def _independent(rows: list[list[int]], pause: Pause = _go_on) -> list[int]:
    if _surely_independent(rows):
        return list(range(len(rows)))
    module = flint()
    if module is not None and len(rows) >= _FLINT_MIN_ROWS:
        pause(_FLINT_SECONDS * len(rows) ** 3)
        reduced, _, rank = module.fmpz_mat(rows).transpose().rref()
        return [
            next(column for column in range(len(rows)) if reduced[row, column] != 0)
            for row in range(rank)
        ]
    return [index for index, _, _ in _eliminated(rows, pause)]


def _surely_independent(rows: list[list[int]]) -> bool:
    """True when no combination of the rows vanishes modulo a prime: then none vanishes at all."""
    if not rows or len(rows) > len(rows[0]):
        return not rows
    work = np.array([[entry % _PRIME for entry in row] for row in rows], dtype=np.int64)
    for step in range(len(rows)):
        columns = np.flatnonzero(work[step])
        if not columns.size:
            return False
        lead = int(columns[0])
        head = pow(int(work[step, lead]), -1, _PRIME)
        factors = work[step + 1 :, lead] * head % _PRIME
        # Products of two numbers below 2^31 fit into 64 bits.
        work[step + 1 :] = (work[step + 1 :] - factors[:, None] * work[step] % _PRIME) % _PRIME
    return True


def _eliminated(rows: list[list[int]], pause: Pause) -> list[tuple[int, int, list[int]]]:
    """Eliminate without fractions; return (row, column of its pivot, what is left of it).

    What is left has zeros in the columns of earlier pivots. Rows that vanish are not there.
    """
    reduced: list[tuple[int, int, list[int]]] = []
    for index, rest in enumerate(rows):
        for _, lead, pivot in reduced:
            pause(0.0)
            if rest[lead]:
                head, tail = pivot[lead], rest[lead]
                rest = [head * a - tail * b for a, b in zip(rest, pivot, strict=True)]
                # Without this the entries would double in length with every pivot.
                common = math.gcd(*rest) or 1
                rest = [entry // common for entry in rest]
        lead = next((column for column, entry in enumerate(rest) if entry), -1)
        if lead >= 0:
            reduced.append((index, lead, rest))
    return reduced


def _solve(
    rows: list[list[int]], right: list[Fraction], pause: Pause, gram: bool = False
) -> list[Fraction]:
    """Solve `R w = right`, or `(R R^T) w = right`, for independent integer rows R."""
    if not rows:
        return []
    tops, bottom = rationals.common_denominator(right)
    module = flint()
    if module is not None and len(rows) >= _FLINT_MIN_ROWS:
        pause((1.0 + gram) * _FLINT_SECONDS * len(rows) ** 3)
        matrix = module.fmpz_mat(rows)
        matrix = matrix * matrix.transpose() if gram else matrix
        found = matrix.solve(module.fmpz_mat([[top] for top in tops])).tolist()
        solved = [Fraction(int(entry.p), int(entry.q)) for (entry,) in found]
    else:
        square = [[integer_dot(a, b) for b in rows] for a in rows] if gram else rows
        solved = _solve_by_elimination(square, tops, pause)
    return [entry / bottom for entry in solved]


def _solve_by_elimination(
    matrix: list[list[int]], right: list[int], pause: Pause
) -> list[Fraction]:
    """Solve an integer system with one solution, the last pivot first."""
    solved = [Fraction(0)] * len(matrix)
    work = _eliminated([[*row, top] for row, top in zip(matrix, right, strict=True)], pause)
    for _, lead, row in reversed(work):
        pause(0.0)
        known = rationals.exact_dot(row[:-1], solved)
        solved[lead] = (row[-1] - known) / row[lead]
    return solved


#: Rows whose triangular factor falls off by more than this count as dependent.
CONDITION = 1e-10

#: Columns among which those that move are chosen, per row.
CANDIDATES = 4


def point_on(
    rows: Matrix,
    levels: Sequence[Fraction],
    base: rationals.RationalVector,
    reach: float,
    *,
    exact_rows: Sequence[Sequence[Any]] | None = None,
    pause: Pause | None = None,
) -> list[Fraction] | None:
    """Return a point next to `base` with `rows @ point = levels`, exactly.

    As many variables are moved as there are rows: the others stay floats, and exact arithmetic with
    them is cheap. Where that leads too far, or rows depend on each other, all of them are.

    Parameters
    ----------
    rows : ndarray, shape (k, n)
    levels : sequence of Fraction, length k
    base : sequence of length n
        Floats or Fractions.
    reach : float
        How far the point may be from `base` when few variables are moved.
    exact_rows : sequence of rows, optional
        The rows as Fractions where floats only approximate them.
    pause : callable, optional
        As in `project_exact`.

    Returns
    -------
    list of Fraction, or None
        None when no point satisfies the equations.

    Examples
    --------
    >>> point_on(np.array([[0.1, 1.0]]), [Fraction(1)], np.array([1.0, 0.9]), 0.1)[0]
    Fraction(1, 1)
    """
    matrix: Any = rows if exact_rows is None else exact_rows
    point = rationals.to_fractions(base)
    if not len(rows):
        return point
    columns = _independent_columns(rows)
    if columns is not None:
        others = np.setdiff1d(np.arange(len(point)), columns)
        rest = [
            level - rationals.exact_dot(_taken(row, others), _taken(base, others))
            for row, level in zip(matrix, levels, strict=True)
        ]
        here = _taken(base, columns)
        part = rows[:, columns] if exact_rows is None else [_taken(r, columns) for r in matrix]
        moved = project_exact(part, rest, here, pause)
        if (
            moved is not None
            and rationals.sqrt_upper(rationals.squared_distance(moved, here)) <= reach
        ):
            for column, entry in zip(columns.tolist(), moved, strict=True):
                point[column] = entry
            return point
    return project_exact(matrix, levels, base, pause)


def _taken(vector: Any, places: NDArray[np.intp]) -> Any:
    return vector[places] if isinstance(vector, np.ndarray) else [vector[k] for k in places]


def _independent_columns(rows: Matrix) -> NDArray[np.intp] | None:
    """Return as many columns as there are rows, well conditioned, or None if there are none."""
    count, size = rows.shape
    if count > size:
        return None
    candidates = np.arange(size)
    if CANDIDATES * count < size:
        # Among the longest columns there are good ones; all of them would be a copy of the rows.
        candidates = np.argpartition(np.einsum("ij,ij->j", rows, rows), -CANDIDATES * count)
        candidates = candidates[-CANDIDATES * count :]
    triangle, order = linalg.qr(rows[:, candidates], mode="r", pivoting=True, check_finite=False)
    heads = np.abs(np.diag(triangle))
    return np.sort(candidates[order[:count]]) if heads[-1] > CONDITION * heads[0] else None


def exact_number(value: Any, what: str, *, truth: bool = False) -> Fraction:
    """Return one finite real number as an exact rational, or refuse it.

    Parameters
    ----------
    truth : bool
        Whether True and False count as 1 and 0; as a parameter they are a mistake.

    Examples
    --------
    >>> exact_number(np.float32(0.1), "slope")
    Fraction(13421773, 134217728)
    """
    if not isinstance(value, int | float | Fraction | Decimal | np.generic):
        try:
            array = np.asarray(value)
        except Exception as failure:  # whatever a foreign class raises
            raise InputTypeError(f"{what} must be a real number: {failure}") from failure
        if array.dtype == object or array.ndim:
            raise InputTypeError(f"{what} must be a real number, got {type(value).__name__}.")
        value = array[()]
    if isinstance(value, bool | np.bool_) and not truth:
        raise InputTypeError(f"{what} must be a real number, got the truth value {value}.")
    return rationals.to_fraction(value, what)


def exact_float(value: Any, what: str) -> float:
    """Return one finite real number as a float, exactly, or refuse it."""
    return float(rationals.exact_floats(exact_number(value, what), what))


def positive(name: str, value: Any) -> Fraction:
    """Return a positive parameter exactly, or refuse it."""
    number = exact_number(value, name)
    if number <= 0:
        raise InputError(f"{name} must be a positive finite number, got {value!r}.")
    return number


def fraction_lower(value: Fraction) -> float:
    """Return the largest float that is not above a rational."""
    return -rationals.fraction_upper(-value)


def sqrt_lower(value: Fraction) -> float:
    """Return a float that is at most the square root of a rational, within a few ulps."""
    upper = rationals.sqrt_upper(value)
    return fraction_lower(value / Fraction(upper)) if 0.0 < upper < math.inf else 0.0


def sum_up(terms: Iterable[float]) -> float:
    """Return an upper bound of a sum of nonnegative numbers.

    Examples
    --------
    >>> sum_up([3.0, 4.0]), sum_up([1.0, 1e-30]) > 1.0
    (7.0, True)
    """
    values = list(terms)
    if any(math.isinf(value) for value in values):
        return math.inf
    return rationals.fraction_upper(sum((Fraction(value) for value in values), Fraction(0)))


def product_up(*factors: float) -> float:
    """Return an upper bound of a product of nonnegative numbers."""
    values = list(factors)
    if any(value == 0.0 for value in values):
        return 0.0
    if any(math.isinf(value) for value in values):
        return math.inf
    return rationals.fraction_upper(math.prod(map(Fraction, values), start=Fraction(1)))


def quotient_up(top: float, bottom: float) -> float:
    """Return an upper bound of `top / bottom`, for nonnegative top and positive bottom."""
    return _quotient(top, bottom, up=True)


def quotient_down(top: float, bottom: float) -> float:
    """Return a lower bound of `top / bottom`, for nonnegative top and positive bottom.

    Examples
    --------
    >>> quotient_down(1.0, 4.0), Fraction(quotient_down(1.0, 3.0)) < Fraction(1, 3)
    (0.25, True)
    """
    return _quotient(top, bottom, up=False)


def _quotient(top: float, bottom: float, *, up: bool) -> float:
    if top == 0.0 or math.isinf(bottom):
        return 0.0
    if math.isinf(top):
        return math.inf
    exact = Fraction(top) / Fraction(bottom)
    return rationals.fraction_upper(exact) if up else fraction_lower(exact)


def root_up(value: float) -> float:
    """Return an upper bound of a square root."""
    return math.inf if math.isinf(value) else rationals.sqrt_upper(Fraction(value))


def root_sum_squares_up(terms: Iterable[float]) -> float:
    """Return an upper bound of the Euclidean norm of finitely many numbers.

    Examples
    --------
    >>> root_sum_squares_up([3.0, 4.0])
    5.0
    """
    values = list(terms)
    if any(math.isinf(value) for value in values):
        return math.inf
    return rationals.sqrt_upper(sum((Fraction(value) ** 2 for value in values), Fraction(0)))


#: Entries that are added at a time.
BLOCK = 2**15


class LongSum:
    """A float64 sum carried to twice the precision (Knuth's two-sum, the errors added apart).

    Parts of a sum that were formed elsewhere are joined without a loss: data in memory and data in
    chunks add up to the same float64 numbers.

    Examples
    --------
    >>> total = LongSum(1)
    >>> for term in (1e16, 1.0, -1e16):
    ...     total.add(np.array([term]))
    >>> total.total()
    array([1.])
    """

    def __init__(self, size: int) -> None:
        self.high: Vector = np.zeros(size)
        self.low: Vector = np.zeros(size)

    def add(self, term: Vector) -> None:
        """Add a vector, block by block: nothing of its size is made on the way."""
        for first in range(0, self.high.size, BLOCK):
            part = slice(first, first + BLOCK)
            high, more = self.high[part], term[part]
            total = high + more
            shadow = total - high
            self.low[part] += (high - (total - shadow)) + (more - shadow)
            high[:] = total

    def join(self, other: LongSum) -> Self:
        """Add another long sum; return self."""
        self.add(other.high)
        self.low += other.low
        return self

    def total(self) -> Vector:
        """Return the rounded sum."""
        # An infinite sum has no error term worth adding.
        total = self.high.copy()
        return np.add(total, self.low, out=total, where=np.isfinite(total))


def exact_sum(values: Vector) -> Fraction:
    """Return the sum of finite floats without any rounding, fast for many of them.

    Examples
    --------
    >>> exact_sum(np.array([1.0, 2.0**-60])) == 1 + Fraction(1, 2**60)
    True
    """
    total, rest = Fraction(0), values.tolist()
    try:
        # fsum rounds correctly: what it leaves shrinks until nothing is left.
        while part := math.fsum(rest):
            total += Fraction(part)
            rest.append(-part)
    except OverflowError:
        return sum(map(Fraction, values.tolist()), Fraction(0))
    return total
