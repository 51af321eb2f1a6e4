"""Linear maps, sums, scalings, products and stacks of expressions."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from goldstein.calculus.constants import BlockedRows, hand_over, own, own_integers, own_sparse
from goldstein.calculus.elementary import Foreign
from goldstein.calculus.expression import (
    Expression,
    as_expression,
    as_matrix,
    holds_expressions,
    meant,
)
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import exact_floats, fraction_upper
from goldstein.checker.rounding import norm_upper
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact import exact_number
from goldstein.numerics.spectral import spectral_norm_upper

Shape = tuple[int, ...]

# --- one argument ----------------------------------------------------------------------------


def affine(
    name: str, u: Expression, shape: Shape, matrix: Any = None, *, columns: int = 1,
    offset: Any = None, divisor: Any = None,
) -> Expression:  # fmt: skip
    """Return (M u + offset) / divisor; a matrix of None is the identity."""
    order = meant(u)
    if order.kind is nodes.Order and matrix is not None and columns == 1:
        weights = _combined(order, matrix)
        if weights is not None:
            data = (order.data[0], weights)
            u, matrix = Expression(nodes.Order, order.args, shape, data, order.name), None
            if offset is divisor is None:
                return u
    matrix = (None, None, None, (u.size, u.size)) if matrix is None else matrix
    return Expression(nodes.Affine, (u,), shape, (matrix, columns, offset, divisor), name)


def _combined(order: Expression, matrix: Any) -> Vector | None:
    """Return the weights of a matrix times sorted entries of one row, if it is simply those."""
    width, weights = order.data
    chosen = ((weights == 0) | (weights == 1)).all() and (weights.sum(axis=1) == 1).all()
    if not chosen or weights.sum(axis=0).max() > 1 or order.args[0].size != width:
        return None
    table = as_matrix(matrix)
    return hand_over(np.asarray((table.toarray() if sparse.issparse(table) else table) @ weights))


def gather(u: Expression, index: Any) -> Expression:
    """Return entries of an expression in another order or shape: slices, reshape, transpose."""
    index = np.asarray(index, dtype=np.intp)
    if (inner := picked(u)) is not None:
        return gather(u.args[0], inner[index])
    if index.size == u.size and (index.ravel() == np.arange(u.size)).all():
        return (
            u if index.shape == u.shape else Expression(nodes.Add, (u,), index.shape, (), "Gather")
        )
    table = (None, own_integers(index.ravel()), None, (index.size, u.size))
    return affine("Gather", u, index.shape, table)


def picked(e: Expression) -> NDArray[np.intp] | None:
    """Return the entries that an expression picks, if it does nothing else."""
    picks = e.kind is nodes.Affine and isinstance(e.data[0], tuple)
    numbers, columns, ends, _ = e.data[0] if picks else (0, None, 0, 0)
    return columns if numbers is None and ends is None and e.data[2] is e.data[3] is None else None


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
        if max(matrix.ndim, u.ndim) > 2 and min(matrix.ndim, u.ndim) > 0:
            return batched(matrix, u)
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


def sum_entries(u: Any, axis: Any = None, keepdims: bool = False) -> Expression:
    """Return the sum of all entries, or along an axis or several (public name: `sum`).

    Examples
    --------
    >>> from goldstein.calculus import Variable, sum
    >>> sum(Variable(2)).value(np.array([1.0, 2.0]))
    3.0
    >>> sum(Variable(4).reshape(2, 2), axis=0)(np.arange(4.0))
    array([2., 4.])
    """
    inner = as_expression(u, "sum")
    if axis is None and not keepdims:
        return affine("Sum", inner, (), hand_over(np.ones((1, inner.size))))
    places, shape = rows_along(inner, axis, keepdims)
    if inner.ndim == 2 and axis in (0, -2) and not keepdims:
        return linear(np.ones((1, len(inner))), inner).reshape(shape)
    ends = hand_over(np.arange(len(places) + 1) * places.shape[1])
    numbers = hand_over(np.ones(places.size))
    table = (numbers, own_integers(places.ravel()), ends, (len(places), inner.size))
    return affine("Sum", inner, shape, table)


def rows_along(
    u: Expression, axis: Any = None, keepdims: bool = False
) -> tuple[NDArray[np.intp], Shape]:
    """Return the places of the entries along an axis or several, row by row, and the shape left."""
    axes = tuple(range(u.ndim)) if axis is None else axis
    try:
        if not all(isinstance(a, int | np.integer) for a in np.atleast_1d(np.array(axes, object))):
            raise TypeError
        axes = normalize_axis_tuple(axes, u.ndim)
    except (TypeError, ValueError):
        raise InputError(f"axis is {axis!r}, expected a whole number below {u.ndim}.") from None
    places = np.arange(u.size).reshape(u.shape)
    rows = np.moveaxis(places, axes, range(u.ndim - len(axes), u.ndim))
    left = [n for a, n in enumerate(u.shape) if a not in axes]
    shape = [1 if a in axes else n for a, n in enumerate(u.shape)] if keepdims else left
    return rows.reshape(math.prod(left), -1), tuple(shape)


def table_along(
    u: Any, axis: Any = None, keepdims: bool = False, what: str = "max"
) -> tuple[Expression, Shape]:
    """Return the entries along an axis as the rows of a table, and the shape left."""
    u = as_expression(u, what)
    if u.size == 0:
        raise InputError(f"{what} expects at least one entry, got none.")
    places, shape = rows_along(u, axis, keepdims)
    return gather(u, places), shape


# --- two arguments ---------------------------------------------------------------------------


def add(u: Expression, other: Any) -> Expression:
    """Return `u + other` for a constant or an expression."""
    other = _operand(other, "a constant term")
    shape = common_shape("add", u.shape, other.shape)
    if not isinstance(other, Expression):
        return shift(broadcast(u, shape), other) if other.any() else broadcast(u, shape)
    for log, m in ((u, other), (other, u)):
        merged = atoms.lifted(log, m) if log.name == "log" and log.shape == shape else None
        if merged is not None:
            return merged
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
        if u.shape and right.shape and max(u.ndim, right.ndim) > 2:
            return batched(u, right)
        if not u.shape or not right.shape or u.shape[-1] != right.shape[0]:
            raise InputError(f"cannot multiply shapes {u.shape} and {right.shape}.")
        shape = (*u.shape[:-1], *right.shape[1:])
        return Expression(nodes.Product, (u, right), shape, (1, u.shape[-1]), "MatMul")
    kept = sparse.issparse(other) or isinstance(other, LinearOperator)
    matrix = other if kept else exact_floats(other, "the matrix")
    if max(matrix.ndim, u.ndim) > 2 and min(matrix.ndim, u.ndim) > 0:
        return batched(u, matrix)
    return linear(matrix, u.T) if matrix.ndim == 1 else linear(matrix.T, u.T).T


def batched(u: Any, v: Any) -> Expression:
    """Return `u @ v` of stacks of tables, one of them perhaps numbers."""
    shapes, names = [np.shape(a) for a in (u, v)], "abcdefghijklm"
    left = "x" if len(shapes[0]) == 1 else names[: len(shapes[0]) - 2][::-1] + "yx"
    right = "x" if len(shapes[1]) == 1 else names[: len(shapes[1]) - 2][::-1] + "xz"
    batch = max(left[:-2], right[:-2], key=len)
    rest = "y" * ("y" in left) + "z" * ("z" in right)
    return einsum(f"{left},{right}->{batch}{rest}", u, v)


def einsum(subscripts: str, *operands: Any) -> Expression:
    """Return sums of products of one or two operands, as `np.einsum`; one may be numbers.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> w = Variable(2)
    >>> einsum("i,j->ij", w, w)(np.array([1.0, 3.0]))
    array([[1., 3.],
           [3., 9.]])
    """
    inputs, _, out = subscripts.replace(" ", "").partition("->")
    names = inputs.split(",")
    if "." in subscripts or len(names) != len(operands) or len(operands) > 2:
        raise InputError(f"einsum takes one or two operands and no dots, got {subscripts!r}.")
    if "->" not in subscripts:
        out = "".join(sorted(c for c in set(inputs) - {","} if inputs.count(c) == 1))
    sizes = {c: n for name, u in zip(names, operands) for c, n in zip(name, np.shape(u)) if n != 1}
    parts = [_axes(u, name, out + "".join(names[1 - k :][:1]) * (len(names) == 2))
             for k, (u, name) in enumerate(zip(operands, names))]  # fmt: skip
    if len(parts) == 1:
        u, name = parts[0]
        return gather(u, np.einsum(f"{name}->{out}", np.arange(u.size).reshape(u.shape)))
    (u, a), (v, b) = parts
    shared = [c for c in a if c in b]
    batch, inner = ([c for c in shared if (c in out) == kept] for kept in (True, False))
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]

    def laid_out(w: Any, name: str, order: list[str]) -> Any:
        given = np.arange(np.size(w)).reshape(np.shape(w))
        places = np.einsum(f"{name}->{''.join(order)}", given)
        whole = np.broadcast_to(places, [sizes.get(c, 1) for c in order])
        return gather(w, whole) if isinstance(w, Expression) else np.ravel(w)[whole]

    size = [math.prod(sizes.get(c, 1) for c in some) for some in (batch, rows, inner, columns)]
    left, right = laid_out(u, a, batch + rows + inner), laid_out(v, b, batch + inner + columns)
    order = batch + rows + columns
    shape = tuple(sizes.get(c, 1) for c in order)
    if isinstance(left, Expression) and isinstance(right, Expression):
        data = (size[0], size[2])
        made = Expression(nodes.Product, (left, right), shape, data, "MatMul")
    else:  # every product, and their sums
        turned = np.reshape(right, (size[0], size[2], 1, size[3]))
        terms = np.reshape(left, (size[0], size[1], 1, size[2])) * np.transpose(
            turned, (0, 2, 3, 1)
        )
        made = sum_entries(terms, axis=3).reshape(shape)
    places = np.arange(made.size).reshape(made.shape)
    return gather(made, np.einsum(f"{''.join(order)}->{out}", places))


def _axes(u: Any, name: str, kept: str) -> tuple[Any, str]:
    """Sum over axes that nobody else names, and take diagonals."""
    if len(name) != np.ndim(u):
        raise InputError(f"einsum: {name!r} names {len(name)} axes, the operand has {np.ndim(u)}.")
    if len(set(name)) < len(name):
        single = "".join(dict.fromkeys(name))
        places = np.einsum(f"{name}->{single}", np.arange(np.size(u)).reshape(np.shape(u)))
        u, name = (gather(u, places) if isinstance(u, Expression) else np.ravel(u)[places]), single
    lone = tuple(k for k, c in enumerate(name) if c not in kept)
    if lone:
        u = sum_entries(u, lone) if isinstance(u, Expression) else np.sum(u, lone)
    return u, "".join(c for c in name if c in kept)


def product(u: Any, axis: Any = None) -> Expression:
    """Return the product of all entries, or along an axis (public name: `prod`).

    Examples
    --------
    >>> from goldstein.calculus import Variable, prod
    >>> prod(Variable(3)).value(np.array([2.0, 3.0, 4.0]))
    24.0
    """
    rows, shape = table_along(u, axis, what="prod")
    while rows.shape[1] > 1:
        half = rows.shape[1] // 2
        both = multiply(rows[:, :half], rows[:, half : 2 * half])
        rows = side_by_side([both, rows[:, 2 * half :]], 1) if rows.shape[1] % 2 else both
    return rows.reshape(shape)


def cumulated(u: Any, axis: Any = None) -> Expression:
    """Return the sums up to each entry, of all entries or along an axis (public name: `cumsum`).

    Examples
    --------
    >>> from goldstein.calculus import Variable, cumsum
    >>> cumsum(Variable(3))(np.array([1.0, 2.0, 3.0]))
    array([1., 3., 6.])
    """
    u = as_expression(u, "cumsum")
    u, axis = (u.reshape(u.size), 0) if axis is None else (u, axis)
    places, _ = rows_along(u, axis)
    k = places.shape[1]
    sums = linear(np.tril(np.ones((k, k))), gather(u, places.T))
    return moveaxis(sums, axis, u)


def moveaxis(table: Expression, axis: int, like: Expression) -> Expression:
    """Return columns of a table in the shape of an expression, along one of its axes."""
    places, _ = rows_along(like, axis)
    order = np.empty(like.size, dtype=np.intp)
    order[places.T.ravel()] = np.arange(like.size)
    return gather(table, order.reshape(like.shape))


def divide(u: Expression, divisor: Any) -> Expression:
    """Return `u / divisor`, entry by entry, for a constant: proofs use the exact quotient."""
    if isinstance(divisor, Expression) or holds_expressions(divisor):
        return atoms.quotient(u, as_expression(divisor, "a divisor"))
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
    made = [p if isinstance(p, Expression) else constant(p, known[0].variable, shape)
            for p in entries]  # fmt: skip
    if any(p.shape != shape for p in made):
        raise InputError(
            f"cannot stack shapes {', '.join(str(p.shape) for p in made)}: they must agree."
        )
    return side_by_side(made).reshape(len(made), *shape)


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
    if not any(isinstance(p, Expression) for p in entries):
        raise InputTypeError("concatenate needs at least one expression; make a Variable first.")
    return moved(entries, np.concatenate)


def moved(parts: Sequence[Any], arrange: Callable[[list[NDArray[np.intp]]], Any]) -> Any:
    """Return entries of expressions and arrays as a function of NumPy would place them.

    `arrange` gets arrays of places instead; place 0 stands for the number 0.
    """
    variable = next(p for p in parts if isinstance(p, Expression)).variable
    made = [p if isinstance(p, Expression) else constant(p, variable) for p in parts]
    starts = np.cumsum([1, *(p.size for p in made)])
    places = [np.arange(start, start + p.size).reshape(p.shape) for p, start in zip(made, starts)]
    try:
        found = arrange(places)
    except (TypeError, ValueError, IndexError) as failure:
        shapes = ", ".join(str(p.shape) for p in made)
        raise InputError(f"NumPy refuses shapes {shapes}: {failure}.") from failure
    flat = side_by_side(made)
    if isinstance(found, list | tuple):
        return type(found)(_placed(flat, index) for index in found)
    return _placed(flat, found)


def _placed(flat: Expression, index: NDArray[np.intp]) -> Expression:
    index = np.asarray(index)
    if (index > 0).all():
        return gather(flat, index - 1)
    places = index.ravel()
    ends = hand_over(np.concatenate([[0], np.cumsum(places > 0)]))
    table = (None, own_integers(places[places > 0] - 1), ends, (places.size, flat.size))
    return affine("Concatenate", flat, index.shape, table)


def side_by_side(parts: Sequence[Expression], axis: int | None = None) -> Expression:
    """Return the entries of several expressions in one vector: the sum of vectors filled with 0.

    With an axis, as tables joined along it.
    """
    if axis is not None:
        return moved(parts, lambda places: np.concatenate(places, axis))
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


def constant(value: Any, variable: Expression, shape: Shape | None = None) -> Expression:
    """Return numbers as an expression that does not depend on the variable."""
    numbers = exact_floats(value, "an entry")
    shape = numbers.shape if shape is None else common_shape("stack", numbers.shape, shape)
    nothing = scale(gather(variable, np.zeros(shape, dtype=np.intp)), 0.0)
    return shift(nothing, numbers)


# --- sizes -----------------------------------------------------------------------------------


def row_norms(matrix: Any) -> Vector:
    """Return the Euclidean norms of the rows, safe from over- and underflow of squares."""
    if isinstance(matrix, BlockedRows):
        return matrix.norms()
    n = matrix.shape[0]
    # In blocks: the norms of all rows at once would need copies of the data.
    block = max(1, 2**16 * n // max(matrix.size, 1))
    parts = (_row_norms(matrix[i : i + block]) for i in range(0, n, block))
    return np.concatenate([np.zeros(0), *parts])


def _row_norms(matrix: Any) -> Vector:
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
    return np.sqrt(squares) / unit


def matrix_norm(matrix: Any) -> float:
    """Return the spectral norm, rounded up; of rows in blocks, that of Frobenius."""
    if isinstance(matrix, BlockedRows):
        return norm_upper(matrix.norms() * (1.0 + 2.0**-40))
    return spectral_norm_upper(matrix)


def size_upper(point: Vector) -> float:
    """Return a bound of |x| that does not square: tiny points must not look like 0."""
    return float(np.abs(point).max(initial=0.0)) * math.sqrt(point.size)


# They build on what is above.
from goldstein.calculus import atoms  # noqa: E402
