"""Linear maps, sums, scalings, products and stacks of expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from goldstein.calculus.blocked_rows import BlockedRows
from goldstein.calculus.constants import hand_over, own, own_integers, own_sparse
from goldstein.calculus.expression import Expression, as_expression, holds_expressions
from goldstein.calculus.foreign import Foreign
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import fraction_upper
from goldstein.checker.rounding import norm_upper
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact_floats import exact_floats, exact_number
from goldstein.numerics.spectral import spectral_norm_upper

Shape = tuple[int, ...]

# --- one argument ----------------------------------------------------------------------------


def affine(
    name: str, u: Expression, shape: Shape, matrix: Any = None, *, columns: int = 1,
    offset: Any = None, divisor: Any = None,
) -> Expression:  # fmt: skip
    """Return (M u + offset) / divisor; a matrix of None is the identity."""
    matrix = (None, None, None, (u.size, u.size)) if matrix is None else matrix
    return Expression(nodes.Affine, (u,), shape, (matrix, columns, offset, divisor), name)


def gather(u: Expression, index: Any) -> Expression:
    """Return entries of an expression in another order or shape: slices, reshape, transpose."""
    index = np.asarray(index, dtype=np.intp)
    if index.size == u.size and (index.ravel() == np.arange(u.size)).all():
        return (
            u if index.shape == u.shape else Expression(nodes.Add, (u,), index.shape, (), "Gather")
        )
    picked = (None, own_integers(index.ravel()), None, (index.size, u.size))
    return affine("Gather", u, index.shape, picked)


def scale(u: Expression, factor: Any, name: str = "Scale") -> Expression:
    """Return an expression times a number, or entry by entry times an array."""
    factors = _entries(own(factor, "a factor"), u.shape)
    return affine(name, u, u.shape, (factors, None, None, (u.size, u.size)))


def rational_scale(u: Expression, factor: Fraction, name: str = "Scale") -> Expression:
    """Return an expression times a rational, exactly."""
    return Expression(nodes.Piecewise, (u,), u.shape, ((), ((Fraction(0), factor),)), name)


def shift(u: Expression, constant: Any) -> Expression:
    """Return an expression plus a constant."""
    offset = _entries(own(constant, "a constant term"), u.shape)
    return affine("Shift", u, u.shape, offset=offset)


def _entries(values: Vector, shape: Shape) -> Vector:
    """Return one number for each entry, in an array that nobody writes to."""
    if values.shape == shape and values.ndim == 1:
        return values
    return hand_over(np.array(np.broadcast_to(values, shape)).ravel())


def broadcast(u: Expression, shape: Shape) -> Expression:
    """Return an expression in a larger shape, its entries repeated as NumPy repeats them."""
    if u.shape == shape:
        return u
    return gather(u, np.broadcast_to(np.arange(u.size).reshape(u.shape), shape))


def common_shape(what: str, *shapes: Shape) -> Shape:
    """Return the shape that NumPy would broadcast to, or refuse."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(map(str, shapes))
        raise InputError(
            f"cannot {what} shapes {text}: they must agree, or one must be 1 in each dimension; "
            "reshape one of them."
        ) from None


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
    matrix: Any = A
    if sparse.issparse(A):
        matrix = own_sparse(A)
    elif not isinstance(A, LinearOperator | BlockedRows):
        matrix = own(A, "the matrix")
        if matrix.ndim == 1:
            return linear(matrix[None, :], u).reshape(*u.shape[1:])
    if len(matrix.shape) != 2 or u.ndim not in (1, 2) or matrix.shape[1] != u.shape[0]:
        raise InputError(f"cannot multiply a matrix of shape {matrix.shape} with shape {u.shape}.")
    shape = (matrix.shape[0], *u.shape[1:])
    if isinstance(A, LinearOperator):
        return Expression(Foreign, (u,), shape, (u.shape, A), "Linear")
    if sparse.issparse(A):  # entries of a handle can be exchanged, its arrays cannot
        matrix = (matrix.data, matrix.indices, matrix.indptr, matrix.shape)
    entries = (
        A.norms() if isinstance(A, BlockedRows) else matrix[0] if sparse.issparse(A) else matrix
    )
    if not np.isfinite(entries).all():
        raise InputError("the matrix has a NaN or an infinity; every entry must be finite.")
    return affine("Linear", u, shape, matrix, columns=math.prod(u.shape[1:]))


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
    if axis is not None and not (
        isinstance(axis, int | np.integer) and -inner.ndim <= axis < inner.ndim
    ):
        raise InputError(f"axis is {axis!r}, expected a whole number below {inner.ndim}.")
    if axis is None or inner.ndim == 1:
        return affine("Sum", inner, (), hand_over(np.ones((1, inner.size))))
    rows, columns = inner.shape
    if axis % 2 == 0:
        return linear(np.ones((1, rows)), inner).reshape(columns)
    return linear(np.ones((1, columns)), inner.T).reshape(rows)


# --- two arguments ---------------------------------------------------------------------------


def add(u: Expression, other: Any) -> Expression:
    """Return `u + other` for a constant or an expression."""
    other = _operand(other, "a constant term")
    shape = common_shape("add", u.shape, other.shape)
    if not isinstance(other, Expression):
        return shift(broadcast(u, shape), other)
    terms: list[Expression] = []
    for a in (broadcast(u, shape), broadcast(other, shape)):
        terms += a.args if a.kind is nodes.Add and len(a.args) > 1 else [a]
    return Expression(nodes.Add, terms, shape, (), "Add")


def subtract(u: Expression, other: Any) -> Expression:
    """Return `u - other` for a constant or an expression."""
    # In float64: the negative of a short or unsigned integer may be another number.
    return add(u, -_operand(other, "a constant term"))


def multiply(u: Expression, other: Any) -> Expression:
    """Return `u * other`, entry by entry, for a constant or an expression."""
    other = _operand(other, "a factor")
    shape = common_shape("multiply", u.shape, other.shape)
    if not isinstance(other, Expression):
        return scale(broadcast(u, shape), other)
    both = broadcast(u, shape), broadcast(other, shape)
    return Expression(nodes.Product, both, shape, (max(1, both[0].size), 1), "Multiply")


def matmul(u: Expression, other: Any) -> Expression:
    """Return `u @ other` for a constant or an expression."""
    if isinstance(other, Expression) or holds_expressions(other):
        right = as_expression(other, "@")
        if not u.shape or not right.shape or u.shape[-1] != right.shape[0]:
            raise InputError(f"cannot multiply shapes {u.shape} and {right.shape}.")
        shape = (*u.shape[:-1], *right.shape[1:])
        return Expression(nodes.Product, (u, right), shape, (1, u.shape[-1]), "MatMul")
    kept = sparse.issparse(other) or isinstance(other, LinearOperator)
    matrix = other if kept else exact_floats(other, "the matrix")
    return linear(matrix, u.T) if matrix.ndim == 1 else linear(matrix.T, u.T).T


def divide(u: Expression, divisor: Any) -> Expression:
    """Return `u / divisor`, entry by entry, for a constant: proofs use the exact quotient."""
    if isinstance(divisor, Expression) or holds_expressions(divisor):
        refuse_quotient()
    exact = _as_divisor(divisor)
    with np.errstate(all="ignore"):
        rational = isinstance(exact, Fraction)
        reciprocal = np.asarray(fraction_upper(1 / exact) if rational and exact else 1.0 / exact)
    # Below the normal numbers a float64 reciprocal says too little.
    if not (np.isfinite(reciprocal) & (np.abs(reciprocal) >= 2.0**-1022)).all():
        raise InputError(
            f"cannot divide by {divisor!r}: a divisor must be finite and not 0, and so must its "
            "reciprocal in float64."
        )
    if isinstance(exact, Fraction):
        return rational_scale(u, 1 / exact, "Divide")
    u = broadcast(u, common_shape("divide", u.shape, exact.shape))
    if (np.abs(np.frexp(exact)[0]) == 0.5).all():
        return scale(u, reciprocal)  # powers of two: products need no enclosure
    return affine("Divide", u, u.shape, divisor=_entries(exact, u.shape))


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


# --- several side by side --------------------------------------------------------------------


def stack(parts: Any) -> Expression:
    """Return expressions and numbers of one shape as the rows of one expression, as `np.stack`.

    Parameters
    ----------
    parts : sequence
        Expressions, numbers and arrays; at least one expression.

    Examples
    --------
    >>> from goldstein.calculus import Variable, max, stack
    >>> x, y = Variable(2)
    >>> max(stack([x + y, x * y, 1.0])).value(np.array([2.0, 3.0]))
    6.0
    """
    entries = list(parts) if isinstance(parts, list | tuple | np.ndarray) else [parts]
    known = [p for p in entries if isinstance(p, Expression)]
    if any(holds_expressions(p) for p in entries if not isinstance(p, Expression)):
        return stack([stack(p) if holds_expressions(p) else p for p in entries])
    if not known:
        raise InputTypeError("stack needs at least one expression; make a Variable first.")
    shape = known[0].shape
    made = [p if isinstance(p, Expression) else _constant(p, known[0].variable, shape)
            for p in entries]  # fmt: skip
    if any(p.shape != shape for p in made):
        raise InputError(
            f"cannot stack shapes {', '.join(str(p.shape) for p in made)}: they must agree."
        )
    return _side_by_side(made).reshape(len(made), *shape)


def concatenate(parts: Any) -> Expression:
    """Return the entries of vectors one after the other, as `np.concatenate`.

    Examples
    --------
    >>> from goldstein.calculus import Variable, concatenate
    >>> w = Variable(3)
    >>> concatenate([w[:1], 2.0 * w[1:], [7.0]])(np.array([1.0, 2.0, 3.0]))
    array([1., 4., 6., 7.])
    """
    entries = list(parts)
    known = [p for p in entries if isinstance(p, Expression)]
    if not known:
        raise InputTypeError("concatenate needs at least one expression; make a Variable first.")
    made = [p if isinstance(p, Expression) else _constant(p, known[0].variable) for p in entries]
    if any(p.ndim != 1 for p in made):
        raise InputError(
            f"concatenate takes vectors, got shapes {', '.join(str(p.shape) for p in made)}; "
            "reshape them, or use stack."
        )
    return _side_by_side(made)


def _side_by_side(parts: Sequence[Expression]) -> Expression:
    """Return the entries of several expressions in one vector: the sum of vectors filled with 0."""
    if len(parts) == 1:
        return parts[0].reshape(parts[0].size)
    ends = np.cumsum([0, *(p.size for p in parts)])
    total = int(ends[-1])
    placed = [
        affine("Concatenate", p, (total,), (
            None, hand_over(np.arange(p.size)),
            hand_over(np.clip(np.arange(total + 1) - start, 0, p.size)), (total, p.size),
        ))
        for p, start in zip(parts, ends.tolist())
    ]  # fmt: skip
    return Expression(nodes.Add, placed, (total,), (), "Concatenate")


def _constant(value: Any, variable: Expression, shape: Shape | None = None) -> Expression:
    """Return numbers as an expression that does not depend on the variable."""
    numbers = exact_floats(value, "an entry")
    shape = numbers.shape if shape is None else common_shape("stack", numbers.shape, shape)
    nothing = scale(gather(variable, np.zeros(shape, dtype=np.intp)), 0.0)
    return shift(nothing, numbers)


# --- sizes -----------------------------------------------------------------------------------


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


def matrix_norm(matrix: Any) -> float:
    """Return the spectral norm, rounded up; of rows in blocks, that of Frobenius."""
    if isinstance(matrix, BlockedRows):
        return norm_upper(matrix.norms() * (1.0 + 2.0**-40))
    return spectral_norm_upper(matrix)


def size_upper(point: Vector) -> float:
    """Return a bound of |x| that does not square: tiny points must not look like 0."""
    return float(np.abs(point).max(initial=0.0)) * math.sqrt(point.size)


__all__ = ["linear", "matrix_norm", "row_norms", "size_upper", "stack", "sum_entries"]
