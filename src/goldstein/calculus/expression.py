"""Expressions: functions whose structure is known, and therefore whose kinks are known.

An expression is a node of the language of the checker, with a shape, arguments and a name. What it
means is said there (`goldstein.checker.nodes`); `program` writes it down, made anew from its
definition each time. Values and gradients are those of the program in float64 (`evaluation`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import sparse

from goldstein.calculus.constants import BlockedRows, SetOnce
from goldstein.calculus.elementary import Foreign
from goldstein.calculus.evaluation import Evaluation, Pieces, States
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.arrays import FUNCTIONS
from goldstein.checker.enclosed.irrational import Norm2, Smooth
from goldstein.checker.enclosed.point import EnclosedPoint, is_small
from goldstein.checker.rationals import exact_floats
from goldstein.checker.sides import Program, Side
from goldstein.errors import InputError, InputTypeError, KinkError, NotCertifiableError
from goldstein.oracles import Oracle
from goldstein.oracles.problem import Comparison

if TYPE_CHECKING:
    from goldstein.apriori.explain import Explanation
    from goldstein.apriori.modulus import Domain
    from goldstein.apriori.rules import OuterLipschitz


_FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True)
class Ball:
    """A closed Euclidean ball: a bounded domain for Lipschitz constants.

    Examples
    --------
    >>> Ball(np.zeros(2), 1.0).radius
    1.0
    """

    centre: Vector
    radius: float


class Undescribed(InputTypeError, NotCertifiableError):
    """A part of the function has no exact description."""

    __module__ = "goldstein.errors"


class Expression(SetOnce, Oracle):
    """A function of one variable vector built from atoms, sums, products and linear maps.

    A scalar expression is an oracle: it goes straight into `minimize` and `certify`. Its gradient
    raises `KinkError` on every kink, decided exactly.

    Attributes
    ----------
    kind : type
        A kind of nodes of `goldstein.checker.nodes`, or `Foreign`. The sum of one argument is the
        argument, in a shape of its own.
    args : tuple of Expression
        The nodes this one is computed from.
    shape : tuple of int
        Shape of the value; `()` for a scalar.
    data : tuple
        What else the kind needs. A sparse matrix is (numbers, columns, ends of rows, shape), where
        None stands for ones, for the identity and for one number in each row.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> w = Variable(2)
    >>> F = sum(abs(w))
    >>> F.value(np.array([1.0, -2.0]))
    3.0
    >>> F.gradient(np.array([1.0, -2.0]))
    array([ 1., -1.])
    >>> F.gradient(np.array([0.0, 1.0]))
    Traceback (most recent call last):
        ...
    goldstein.errors.KinkError: ...
    """

    adjustable = frozenset({"_last"})
    is_written = True
    kind: type[nodes.Node]
    args: tuple[Expression, ...]
    data: tuple[Any, ...]
    _name: str
    shape: tuple[int, ...]
    variable: Variable

    def __init__(
        self, kind: type[nodes.Node], args: Sequence[Expression], shape: tuple[int, ...],
        data: tuple[Any, ...] = (), name: str = "",
    ) -> None:  # fmt: skip
        variables = [a.variable for a in args]
        if len(set(map(id, variables))) > 1:
            raise InputError(
                "an expression has one variable, got two different Variable objects; make one of "
                "the total length and slice it: w = Variable(5); a, b = w[:2], w[2:]."
            )
        # At once: each may be set once only, and many expressions are made.
        vars(self).update(
            kind=kind, args=tuple(args), data=data, _name=name, shape=tuple(map(int, shape)),
            variable=variables[0] if variables else self,
        )  # fmt: skip
        vars(self)["dim"] = self.variable.size

    @property
    def name(self) -> str:
        return self._name

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    # --- the program ---------------------------------------------------------------------------

    def program(self) -> Program:
        """Return the function as the checker reads it, made anew from its definition."""
        self._require_scalar("program")
        made, owners = numbered(self.anew())
        for node, owner in zip(made, owners):
            if isinstance(node, Foreign):
                raise _refusal("a LinearOperator" if node.derivative is None else owner.name)
        return Program(made)

    def anew(self) -> Expression:
        """Return the same function, made anew from its definition: nothing else is shared."""
        return self.over(Variable(self.variable.size))

    def over(self, variable: Expression, of: Expression | None = None) -> Expression:
        """Return the same function of another variable, in place of the old one or of `of`."""
        of = self.variable if of is None else of
        made = {id(of): variable.reshape(of.shape)}
        for e in in_order(self):
            if id(e) not in made and e.args and all(id(a) in made for a in e.args):
                made[id(e)] = e.rebuilt(made)
        return made[id(self)]

    def rebuilt(self, made: dict[int, Expression]) -> Expression:
        """Return this node over other arguments, found by identity."""
        if type(self) is not Expression:  # a subclass may mean more
            raise _refusal(self.name)
        args = [made[id(a)] for a in self.args]
        return Expression(self.kind, args, self.shape, self.data, self.name)

    def describe(self) -> list[dict[str, Any]]:
        """Return the function as a list of nodes with exact numbers, the language of proof files.

        Examples
        --------
        >>> from goldstein.calculus import Variable, abs, sum
        >>> for node in sum(abs(Variable(2))).describe():
        ...     print(node)
        {'op': 'variable', 'size': 2}
        {'op': 'piecewise', 'of': [0], 'breakpoints': ['0'], 'pieces': [['0', '-1'], ['0', '1']]}
        {'op': 'affine', 'of': [1], 'columns': 1, 'width': 2, 'rows': [['1', '1']]}
        """
        from goldstein.certificates.export import written_nodes

        return written_nodes(self.program())

    # --- float64 -------------------------------------------------------------------------------

    @cached_property
    def _numbered(self) -> tuple[list[nodes.Node], list[Expression]]:
        return numbered(self)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The function in float64, in the numbering of its program; for searches."""
        return Evaluation(self._numbered[0])

    @property
    def is_small(self) -> bool:
        """Is exact arithmetic affordable?"""
        return is_small(self._known[0])

    @property
    def knows_kinks(self) -> bool:  # type: ignore[override]
        """Are kinks decided exactly? Not those of a LinearOperator."""
        return not any(isinstance(n, Foreign) and n.derivative is None for n in self._numbered[0])

    def value(self, x: Vector) -> float:
        """Return F(x)."""
        self._require_scalar("value")
        return float(self._states(self._point(x))[self.evaluation.end])

    def __call__(self, x: Vector) -> Any:
        """Return the value, scalar or array."""
        # A copy: what the caller does with it must not reach the values kept for the next question.
        found = self._states(self._point(x))[self.evaluation.end]
        return np.reshape(found, self.shape).copy()

    def gradient(self, y: Vector) -> Vector:
        """Return the gradient at y, or raise `KinkError` when y is on a kink.

        Where a value that it depends on overflows, all entries are NaN.
        """
        self._require_scalar("gradient")
        point = self._point(y)
        found, states = self.evaluation, self._states(point)
        clear = found.slopes(states)
        if clear is not None and clear[0] < 1e300:
            return clear[1]
        t = found.on_tape(states)
        pieces = self._decided(point, t) if clear is None else None
        if not np.isfinite(t[found.relied_on]).all():
            # A partial sum that overflows says nothing of the sum, not even its sign.
            return np.full(point.shape, np.nan)
        return found.gradient(t, pieces)

    def _states(self, point: Vector) -> States:
        # One pass answers value and gradient at a point; the pair is replaced as a whole.
        key = point.tobytes()
        last: tuple[bytes, States] | None = self.__dict__.get("_last")
        if last is None or last[0] != key:
            last = self.__dict__["_last"] = key, self.evaluation.states(point)
        return last[1]

    @cached_property
    def _known(self) -> tuple[Program, list[bool]]:
        """The function with 0 for what is known in float64 only, and what does not depend on it."""
        known: list[bool] = []
        for node in self._numbered[0]:
            known.append(not isinstance(node, Foreign) and all(known[a] for a in node.of))
        plain = (_nothing(n) if isinstance(n, Foreign) else n for n in self._numbered[0])
        return Program(list(plain)), known

    def _decided(self, point: Vector, t: Vector) -> Pieces:
        """Return the pieces at a point as the checker finds them, or raise `KinkError`.

        Of what is known in float64 only, visible kinks are refused.
        """
        if not np.isfinite(point).all():
            raise InputError(f"the point has a non-finite entry: {point}.")
        (program, known), found, owners = self._known, self.evaluation, self._numbered[1]
        on: list[int] = []
        try:
            place = EnclosedPoint(program, point)
            on = [k for k in place.ties if known[k]]
            side = Side(place, None, nodes=on)
        except NotCertifiableError as why:
            where = f"{owners[on[0]].name} has its argument exactly on a kink" if on else str(why)
            raise _kink_error(point, where) from None
        pieces = found.pieces(t)
        for k, node in enumerate(found.nodes):
            if known[k] and k in side.pieces:
                piece = side.pieces[k]
                if isinstance(node, Norm2):  # what float64 lost to underflow has a direction
                    entries = np.arange(node.sizes[0]).reshape(-1, node.columns).tolist()
                    lost = set(pieces[k]) - set(piece)
                    piece = piece | {i: place.exact(node.of[0], entries[i]) for i in lost}
                pieces[k] = piece
            elif not known[k] and _is_on_kink(node, t[found.at[node.of[0]]]):
                raise _kink_error(point, f"{owners[k].name} has its argument on a kink")
        return pieces

    def __getstate__(self) -> dict[str, Any]:
        # Made again where they are needed; compiled code cannot go to another process.
        derived = ("_last", "_numbered", "_known", "evaluation")
        return {k: v for k, v in self.__dict__.items() if k not in derived}

    def _point(self, x: Any) -> Vector:
        if not (isinstance(x, np.ndarray) and x.dtype == _FLOAT64):
            x = exact_floats(x, "the point", finite=False)
        point: Vector = np.ascontiguousarray(x)
        if point.shape != self.variable.shape:
            raise InputError(f"got a point of shape {point.shape}, expected {self.variable.shape}.")
        return point

    def _require_scalar(self, what: str) -> None:
        if self.shape != ():
            raise InputTypeError(
                f"{what} needs a scalar expression, this one has shape {self.shape}; reduce it "
                "with sum(...), sum_squares(...), max(...) or norm2(...)."
            )

    # --- a priori: constants, triples, pivots, proofs --------------------------------------------

    def lipschitz(self, domain: Domain = None) -> float:
        """Return a Lipschitz constant on a `Ball`, a pair (centre, radius), or everywhere.

        Parameters
        ----------
        domain : Ball, tuple or None
            None asks for a global constant, which is `inf` where none exists.

        Examples
        --------
        >>> from goldstein.calculus import Variable, sum_squares
        >>> round(sum_squares(Variable(2)).lipschitz((np.array([3.0, 4.0]), 1.0)), 9)
        12.0
        """
        from goldstein.apriori.modulus import lipschitz

        return lipschitz(self, domain)

    def outer_lipschitz(self, *, pivot_radius: float, domain: Domain = None) -> OuterLipschitz:
        """Return the triple (delta, eta, kappa) for a wanted pivot radius, or say what is missing.

        Examples
        --------
        >>> from goldstein.calculus import Variable, abs, sum
        >>> sum(abs(Variable(1))).outer_lipschitz(pivot_radius=0.5).modulus
        0.0
        """
        from goldstein.apriori.explain import outer_lipschitz

        self._require_scalar("outer_lipschitz")
        return outer_lipschitz(self, pivot_radius=pivot_radius, domain=domain)

    def pivot(self, x: Vector, *, pivot_radius: float) -> Vector:
        """Return the pivot of x: a point within the radius that lies on every kink in reach."""
        from goldstein.apriori.explain import pivot

        self._require_scalar("pivot")
        return pivot(self, self._point(x), pivot_radius=pivot_radius)

    def explain(self, *, pivot_radius: float = 0.1, domain: Domain = None) -> Explanation:
        """Return the proof tree of the triple; on failure, the node and the missing assumption."""
        from goldstein.apriori.explain import explain

        self._require_scalar("explain")
        return explain(self, pivot_radius=pivot_radius, domain=domain)

    # --- building ------------------------------------------------------------------------------

    #: Pandas, too, leaves operators to us.
    __pandas_priority__ = 5000

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from goldstein.calculus.numpy_protocol import apply_ufunc

        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from goldstein.calculus.numpy_protocol import apply_function

        return apply_function(function, args, options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        from goldstein.calculus.numpy_protocol import as_object

        return as_object(self, dtype)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any, options: Any = None) -> Any:
        from goldstein.calculus.numpy_protocol import refuse_torch

        refuse_torch(function)

    def __pos__(self) -> Expression:
        return self

    def __neg__(self) -> Expression:
        return operators.scale(self, -1.0)

    def __abs__(self) -> Expression:
        return atoms.absolute(self)

    def __add__(self, other: Any) -> Expression:
        return operators.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Expression:
        return operators.subtract(self, other)

    def __rsub__(self, other: Any) -> Expression:
        return operators.add(-self, other)

    def __mul__(self, other: Any) -> Expression:
        return operators.multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Expression:
        return operators.divide(self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return operators.multiply(atoms.reciprocal(self), other)

    def __matmul__(self, other: Any) -> Expression:
        return operators.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Expression:
        return operators.linear(other, self)

    def __pow__(self, exponent: Any) -> Expression:
        return atoms.power(self, exponent)

    def __rpow__(self, base: Any) -> Expression:
        return atoms.power(base, self)

    def _no_remainder(self, other: Any) -> NoReturn:
        raise InputTypeError("an expression has no %, // or divmod: they jump.")

    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = _no_remainder
    __divmod__ = __rdivmod__ = _no_remainder

    def _no_rounding(self, digits: Any = None) -> NoReturn:
        raise InputTypeError(
            "an expression cannot be rounded: its value would jump. Round F.value(x), or res.x."
        )

    __round__ = __trunc__ = __floor__ = __ceil__ = _no_rounding

    def _no_order(self, other: Any) -> NoReturn:
        raise InputTypeError(
            "an expression has no truth value before a point is given: compare F.value(x) with a "
            "number; for the larger of two expressions use maximum(a, b)."
        )

    #: `<=`, `>=` and `==` with numbers make constraints, below.
    __lt__ = __gt__ = __contains__ = _no_order

    def __bool__(self) -> NoReturn:
        self._no_order(self)

    def __float__(self) -> NoReturn:
        raise InputTypeError(
            "an expression is a function, not a number: F.value(x) is its value at a point x, and "
            "goldstein's atoms (abs, maximum, square, ...) apply to it."
        )

    __int__ = __complex__ = __index__ = __float__

    def _compared(self, low: Any, high: Any) -> Comparison:
        flat = self.reshape(self.size)
        parts = [flat[i] for i in range(self.size)] if self.shape else [self]
        return Comparison(parts, low, high)

    def __le__(self, other: Any) -> Comparison:
        return self._compared(-np.inf, _limit(other)) if _is_limit(other) else self._no_order(other)

    def __ge__(self, other: Any) -> Comparison:
        return self._compared(_limit(other), np.inf) if _is_limit(other) else self._no_order(other)

    def __eq__(self, other: object) -> Any:
        """With a number: a constraint. Two expressions are equal if they are the same object."""
        if not _is_limit(other):
            return NotImplemented
        return self._compared(_limit(other), _limit(other))

    __hash__ = Oracle.__hash__

    def __getitem__(self, index: Any) -> Expression:
        try:
            return operators.gather(self, np.arange(self.size).reshape(self.shape)[index])
        except (IndexError, TypeError, ValueError) as failure:
            raise InputError(
                f"cannot index an expression of shape {self.shape} so: {failure}."
            ) from failure

    def reshape(self, *shape: Any) -> Expression:
        """Return the same entries in another shape."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        try:
            return operators.gather(self, np.arange(self.size).reshape(wanted))
        except (TypeError, ValueError) as failure:
            raise InputError(
                f"cannot reshape an expression of shape {self.shape}: {failure}."
            ) from failure

    @property
    def T(self) -> Expression:
        """The transpose."""
        return operators.gather(self, np.arange(self.size).reshape(self.shape).T)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Expression:
        """Return the sum of all entries, or along an axis."""
        return operators.sum_entries(self, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Expression:
        """Return the mean of all entries, or along an axis."""
        total = self.sum(axis, keepdims)
        return total / (self.size // total.size)

    def max(self, axis: Any = None, keepdims: bool = False) -> Expression:
        """Return the largest entry, or those along an axis."""
        return atoms.largest(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Expression:
        """Return the smallest entry, or those along an axis."""
        return atoms.smallest(self, axis=axis, keepdims=keepdims)

    def __len__(self) -> int:
        if not self.shape:
            raise InputTypeError("a scalar expression has no length; its size is 1.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Expression]:
        if not self.shape:
            raise InputTypeError("a scalar expression has no entries to iterate over.")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        return f"{self.name}(shape={self.shape}, dim={self.dim})"


class Variable(Expression):
    """The unknown vector.

    Parameters
    ----------
    dim : int
        Its length.

    Examples
    --------
    >>> w = Variable(3)
    >>> (np.eye(3) @ w + 1.0).shape
    (3,)
    """

    def __init__(self, dim: int) -> None:
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
            raise InputError(f"a Variable needs a positive number of entries, got {dim!r}.")
        super().__init__(nodes.Variable, (), (int(dim),), (), "Variable")


def in_order(
    root: Expression, arguments: Callable[[Expression], Sequence[Expression]] | None = None
) -> list[Expression]:
    """Return every node once, arguments before the nodes that use them."""
    arguments = arguments or (lambda e: e.args)
    order: list[Expression] = []
    seen: set[int] = set()
    stack: list[tuple[Expression, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((a, False) for a in reversed(arguments(node)))
    return order


def numbered(root: Expression) -> tuple[list[nodes.Node], list[Expression]]:
    """Return the nodes of an expression in order of evaluation, and whose they are.

    All of them are new; the data are shared, and nobody can write to them.
    """
    # The variable is first, even where nothing depends on it.
    made, at = [_node(root.variable, (), ())], {id(root.variable): 0}
    owners: list[Expression] = [root.variable]
    plain = [e for e in in_order(root) if e.args and meant(e) is e]
    uses = Counter(id(meant(a)) for e in plain for a in e.args)
    for e in plain:
        inner = [meant(a) for a in e.args]
        of = tuple(at[id(a)] for a in inner)
        node, before = _node(e, of, tuple(made[a].size for a in of)), made[of[0]]
        alone = of == (len(made) - 1,) and uses[id(inner[0])] == 1
        bare = isinstance(before, nodes.Affine) and before.offset is before.divisor is None
        if alone and _adds_numbers(e) and bare:
            made.pop(), owners.pop()
            node = replace(before, offset=node.offset)  # type: ignore[call-arg, attr-defined]
        at[id(e)] = len(made)
        made.append(node)
        owners.append(e)
    if len(made) == 1:
        made.append(nodes.Add((0,), (root.size,), root.size))
        owners.append(root)
    return made, owners


def meant(e: Expression) -> Expression:
    """Return the argument in place of a sum of one."""
    while e.kind is nodes.Add and len(e.args) == 1:
        e = e.args[0]
    return e


def _adds_numbers(e: Expression) -> bool:
    matrix = e.data[0] if e.kind is nodes.Affine and e.data[3] is None else None
    return isinstance(matrix, tuple) and all(part is None for part in matrix[:3])


def _node(e: Expression, of: tuple[int, ...], sizes: tuple[int, ...]) -> nodes.Node:
    data = e.data
    if e.kind is nodes.Affine:
        data = (as_matrix(data[0]), *data[1:])
    elif e.kind is Smooth:
        data = (FUNCTIONS[data[0]],)
    return e.kind(of, sizes, e.size, *data)


def as_matrix(matrix: Any) -> Any:
    """Return a matrix with nothing but its numbers: what a handle remembers is not shared."""
    if isinstance(matrix, BlockedRows):
        return matrix.anew()
    if not isinstance(matrix, tuple):
        return matrix
    numbers, columns, ends, shape = matrix
    n = shape[0]
    columns = np.arange(n) if columns is None else columns
    ends = np.arange(n + 1) if ends is None else ends
    numbers = np.ones(columns.size) if numbers is None else numbers
    return sparse.csr_array((numbers, columns, ends), shape=shape)


def _nothing(node: nodes.Node) -> nodes.Node:
    """Return the node that is 0 in place of one that the checker does not know."""
    empty = sparse.csr_array((node.size, node.sizes[0]))
    return nodes.Affine(node.of, node.sizes, node.size, empty)


def _is_on_kink(node: nodes.Node, u: Vector) -> bool:
    """Is an argument on a kink, as far as float64 sees?"""
    if isinstance(node, nodes.Piecewise):
        kinks = [float(t) for t, jump in zip(node.breakpoints, node.jumps) if jump]
        return any((np.abs(u - t) <= 2.0**-50 * abs(t)).any() for t in kinks)
    if isinstance(node, nodes.Max):
        table = node.rows(u)
        return bool(np.count_nonzero(table == table.max(axis=1, keepdims=True)) > node.size)
    if isinstance(node, nodes.Order):
        return bool((np.diff(np.sort(u.reshape(-1, node.columns), axis=1), axis=1) == 0).any())
    return isinstance(node, Norm2) and not node.rows(u).any(axis=1).all()


def holds_expressions(value: Any) -> bool:
    """True for a list, tuple or array with an expression in it."""
    if isinstance(value, np.ma.MaskedArray):
        return False
    if isinstance(value, np.ndarray):
        return value.dtype == object and holds_expressions(value.ravel().tolist())
    return isinstance(value, list | tuple) and any(
        isinstance(v, Expression) or holds_expressions(v) for v in value
    )


def as_expression(value: Any, what: str) -> Expression:
    """Return an expression as it is, a list or array of expressions stacked; refuse others."""
    if isinstance(value, Expression):
        return value
    if holds_expressions(value):
        return operators.stack(value)
    raise InputTypeError(
        f"{what} expects an expression, got {type(value).__name__}; make a Variable and build "
        "from it."
    )


def _refusal(name: str) -> Undescribed:
    return Undescribed(
        f"{name} is user code, whose exact values are not known. Use matrices (dense or sparse) "
        "instead of LinearOperators, and atoms instead of functions of your own."
    )


def _kink_error(point: Any, where: str) -> KinkError:
    """Return the error for a gradient asked for on a kink."""
    return KinkError(
        f"the function is not differentiable (or not provably so) at this point: {where}; "
        "ask for the gradient at a nearby point.",
        np.array(point, dtype=np.float64),
    )


def _is_limit(other: object) -> bool:
    """Whether something is a number, or an array of numbers."""
    if isinstance(other, bool):
        return False
    return isinstance(other, int | float | Fraction | Decimal | np.number | np.ndarray)


def _limit(other: Any) -> Any:
    limit = exact_floats(other, "a limit", finite=False)
    return limit.ravel() if limit.ndim else float(limit)


# They build expressions, and expressions have them as methods.
from goldstein.calculus import atoms, operators  # noqa: E402
