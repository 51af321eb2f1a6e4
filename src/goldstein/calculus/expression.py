"""Expressions: functions whose structure is known, and therefore whose kinks are known.

An expression is a graph of nodes over one variable. Every node answers the same few questions
(`forward`, `backward`, `bound`, ...), so that one description serves float64 evaluation, rigorous
enclosures and exact rationals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from goldstein.calculus.arithmetic import FLOAT, Arithmetic
from goldstein.calculus.set_once import SetOnce
from goldstein.calculus.stillness import Still
from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import common_denominator
from goldstein.errors import InputError, InputTypeError, KinkError, NotCertifiableError
from goldstein.numerics.exact_floats import exact_floats
from goldstein.oracles import Oracle
from goldstein.oracles.constraints import Comparison

if TYPE_CHECKING:
    from goldstein.apriori.explain import Explanation
    from goldstein.apriori.modulus import Domain
    from goldstein.apriori.outer_lipschitz import OuterLipschitz
    from goldstein.calculus.kinks import KinkForm
    from goldstein.checker.enclosed.arrays import Enclosure
    from goldstein.checker.sides import Program

Pieces = dict[int, Any]
#: Polynomials in t: coefficient arrays by power, for the path y + t v.
Jet = list[Any]
#: One exact coincidence of a kink node: (entry, breakpoint), or what the node needs.
Tie = tuple[int, int]
ExactEntry = Callable[[int], Fraction]
Leading = Callable[[int], Sequence[Fraction]]
#: Coefficients of an affine entry: places, integers, their common denominator.
IntegerRow = tuple[list[int], list[int], int]

_BY_IDENTITY = frozenset({"_last", "_own_form", "plan", "kink_nodes", "_relied_on"})


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


@dataclass(frozen=True)
class Bound:
    """What is known of a node on a ball: value at the centre, Lipschitz constant, radius."""

    value: Vector
    lipschitz: float
    radius: float

    @property
    def spread(self) -> float:
        """How far the node's value moves on the ball; 0 when it does not depend on x."""
        return 0.0 if self.lipschitz == 0.0 else self.lipschitz * self.radius

    @property
    def size(self) -> float:
        """Largest norm on the ball."""
        return float(np.linalg.norm(self.value)) + self.spread


class Expression(SetOnce, Oracle):
    """A function of one variable vector built from atoms, sums, products and linear maps.

    A scalar expression is an oracle: it goes straight into `minimize` and `certify`. Its gradient
    raises `KinkError` on every kink, decided exactly.

    Attributes
    ----------
    shape : tuple of int
        Shape of the value; `()` for a scalar.
    args : tuple of Expression
        The nodes this one is computed from.

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
    knows_kinks = True
    #: The value is a polynomial of this degree of the arguments' values, piece by piece.
    own_degree: float = 1
    #: False for nodes whose exact value is not available (a matrix-free operator, user code).
    exact = True

    def __init__(self, args: Sequence[Expression], shape: tuple[int, ...]) -> None:
        self.args = tuple(args)
        self.shape = tuple(int(n) for n in shape)
        if not all(a.knows_kinks for a in self.args):
            self.knows_kinks = False
        variables = {id(v): v for a in self.args for v in (a.variable,)}
        if len(variables) > 1:
            raise InputError(
                "an expression has one variable, got two different Variable objects; make one of "
                "the total length and slice it: w = Variable(5); a, b = w[:2], w[2:]."
            )
        if variables:
            self.variable: Variable = next(iter(variables.values()))
            self.dim = self.variable.dim

    # --- the questions a node answers -----------------------------------------------------

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        """Return the node's value from its arguments' values."""
        raise NotImplementedError

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        """Return the cotangent of every argument."""
        raise NotImplementedError

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        """Return the bound of the node on a ball from its arguments' bounds."""
        raise NotImplementedError

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        """Return the node along y + t v as an exact polynomial in t."""
        raise NotCertifiableError(
            f"{self.name} is not a polynomial along a line; a kink that depends on it cannot be "
            "decided exactly."
        )

    def with_args(self, args: Sequence[Expression]) -> Expression:
        """Return this node over other arguments, made from its definition: nothing derived stays.

        Nodes that are defined by more than their arguments override it.
        """
        return type(self)(*args)  # type: ignore[arg-type]

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        """Return which entries do not change near a point, as far as that is proved.

        Parameters
        ----------
        args : sequence of Still
            What holds of the arguments.
        piece, touched
            The pieces of a kink node there, and the entries exactly on its breakpoints.
        """
        return Still.everywhere(self.shape, all(a.constant.all() for a in args))

    @property
    def has_kinks(self) -> bool:
        """True when this node itself (not its arguments) has kinks."""
        return False

    @property
    def own_affine(self) -> bool:
        """True when this node is an affine function of its arguments."""
        return False

    def row(self, index: int) -> dict[int, Fraction]:
        """Return the exact coefficients of one entry of an affine expression."""
        raise NotImplementedError

    def integer_row(self, index: int) -> IntegerRow:
        """Return the same coefficients as (places, integers, their common denominator)."""
        row = self.row(index)
        return (list(row), *common_denominator(list(row.values())))

    def offset(self, index: int) -> Fraction:
        """Return the exact constant of one entry of an affine expression."""
        raise NotImplementedError

    def magnitude(self) -> tuple[Vector, Vector]:
        """Return (G, B): the terms of entry i of an affine expression sum to <= G_i |x| + B_i."""
        raise NotImplementedError

    # --- derived ---------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @cached_property
    def is_affine(self) -> bool:
        """True when the expression is affine in the variable."""
        return self.own_affine and all(a.is_affine for a in self.args)

    @cached_property
    def degree(self) -> float:
        """Degree of the polynomial in t along a line, on one piece (inf if none)."""
        inner = max((a.degree for a in self.args), default=1)
        return inner * self.own_degree

    @cached_property
    def plan(self) -> tuple[Expression, ...]:
        """Every node once, arguments before the nodes that use them."""
        return tuple(_in_order(self))

    def anew(self) -> Expression:
        """Return the same function, made anew from its definition: its nodes and their data.

        Nothing else is shared. What was derived, kept or altered on the nodes of this expression
        does not reach the new one.
        """
        made: dict[int, Expression] = {}
        for node in _in_order(self):
            made[id(node)] = node.with_args([made[id(a)] for a in node.args])
        return made[id(self)]

    @cached_property
    def is_exact(self) -> bool:
        """True when every number the expression is made of is known exactly."""
        return all(node.exact for node in self.plan)

    @cached_property
    def kink_nodes(self) -> tuple[KinkNode, ...]:
        """The nodes of the graph that have kinks."""
        return tuple(n for n in self.plan if isinstance(n, KinkNode) and n.has_kinks)

    @cached_property
    def _relied_on(self) -> tuple[Expression, ...]:
        """The nodes on whose values, not only on their pieces, the gradient depends."""
        relied: dict[int, Expression] = {}
        for node in reversed(self.plan):
            linear = node.own_affine or (isinstance(node, KinkNode) and node.own_degree == 1)
            if id(node) in relied or not linear:
                relied |= {id(a): a for a in node.args}
        return tuple(relied.values())

    def program(self) -> Program:
        """Return the function as the checker reads it, made anew from its definition."""
        from goldstein.calculus.description import program_of

        self._require_scalar("program")
        return program_of(self)

    def describe(self) -> list[dict[str, Any]]:
        """Return the function as a list of nodes with exact numbers, the language of proof files.

        Examples
        --------
        >>> from goldstein.calculus import Variable, abs, sum
        >>> for node in sum(abs(Variable(2))).describe():
        ...     print(node)
        {'op': 'variable', 'size': 2}
        {'op': 'piecewise', 'of': [0], 'breakpoints': ['0'], 'pieces': [['0', '-1'], ['0', '1']]}
        {'op': 'affine', 'of': [1], 'columns': 1, 'width': 2, 'at': [[0, 1]]}
        """
        from goldstein.certificates.written_program import written_nodes

        return written_nodes(self.program())

    def kink_form(self) -> KinkForm:
        """Return a new kink form, through which searches see the function.

        It is made over `anew()`: whatever is done with this expression does not reach it.
        """
        from goldstein.calculus.kinks import KinkForm

        self._require_scalar("kink_form")
        return KinkForm(self.anew())

    @cached_property
    def _own_form(self) -> KinkForm:
        """The form over the nodes themselves, which remembers: for gradients, not for proofs."""
        from goldstein.calculus.kinks import KinkForm

        return KinkForm(self)

    def value(self, x: Vector) -> float:
        """Return F(x)."""
        self._require_scalar("value")
        return float(self._values(self._point(x))[id(self)])

    def __call__(self, x: Vector) -> Any:
        """Return the value, scalar or array."""
        # A copy: what the caller does with it must not reach the values kept for the next question.
        return np.array(self._values(self._point(x))[id(self)])

    def __getstate__(self) -> dict[str, Any]:
        # These refer to nodes by identity, which a copy or another process does not share.
        return {k: v for k, v in self.__dict__.items() if k not in _BY_IDENTITY}

    @np.errstate(over="ignore", invalid="ignore")
    def gradient(self, y: Vector) -> Vector:
        """Return the gradient at y, or raise `KinkError` when y is on a kink.

        Where a value that it depends on overflows, all entries are NaN.
        """
        self._require_scalar("gradient")
        point = self._point(y)
        values = self._values(point)
        pieces = self._pieces_if_clear(point, values)
        if pieces is None:
            pieces = self._own_form.require_smooth_point(point)
        if not all(np.isfinite(values[id(node)]).all() for node in self._relied_on):
            # A partial sum that overflows says nothing of the sum, not even its sign.
            return np.full(point.shape, np.nan)
        return np.array(self.pull_back(values, FLOAT, pieces), dtype=np.float64)

    def pull_back(self, values: dict[int, Any], arithmetic: Arithmetic, pieces: Pieces) -> Any:
        """Return the gradient of a scalar expression, the pieces being chosen (reverse mode)."""
        return self.cotangents(values, arithmetic, pieces)[id(self.variable)]

    def cotangents(
        self, values: dict[int, Any], arithmetic: Arithmetic, pieces: Pieces, start: Any = None
    ) -> dict[int, Any]:
        """Return the derivative in the value of every node: of a scalar, or of start times self."""
        found: dict[int, Any] = {id(self): arithmetic.one() if start is None else start}
        for node in reversed(self.plan):
            cotangent = found.get(id(node))
            if cotangent is None or not node.args:
                continue
            # Derivatives of affine nodes do not depend on values, which may be costly.
            inputs = () if node.own_affine else [values[id(a)] for a in node.args]
            parts = node.backward(cotangent, inputs, arithmetic, pieces.get(id(node)))
            for argument, part in zip(node.args, parts):
                before = found.get(id(argument))
                total = part if before is None else before + part
                found[id(argument)] = arithmetic.shaped(total, argument.shape)
        if id(self.variable) not in found:
            found[id(self.variable)] = arithmetic.zeros(self.variable.shape)
        return found

    def lipschitz(self, domain: Ball | tuple[Any, float] | None = None) -> float:
        """Return a Lipschitz constant on a `Ball`, a pair (centre, radius), or everywhere.

        Parameters
        ----------
        domain : Ball, tuple or None
            None asks for a global constant, which is `inf` where none exists.

        Examples
        --------
        >>> from goldstein.calculus import Variable, sum_squares
        >>> sum_squares(Variable(2)).lipschitz((np.array([3.0, 4.0]), 1.0))
        12.0
        """
        if domain is None:
            ball = Ball(np.zeros(self.variable.size), math.inf)
        elif isinstance(domain, Ball):
            ball = domain
        else:
            ball = Ball(exact_floats(domain[0], "the centre"), float(domain[1]))
        return self.bound_on(ball).lipschitz

    @np.errstate(over="ignore", invalid="ignore")
    def bound_on(self, ball: Ball) -> Bound:
        """Return value at the centre and Lipschitz constant of this expression on a ball."""
        found: dict[int, Bound] = {}
        for node in self.plan:
            if isinstance(node, Variable):
                found[id(node)] = Bound(self._point(ball.centre), 1.0, float(ball.radius))
            else:
                found[id(node)] = node.bound([found[id(a)] for a in node.args])
        return found[id(self)]

    # --- a priori: triples, pivots, proofs ----------------------------------------------------

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

    # --- float64 evaluation ------------------------------------------------------------------

    @np.errstate(over="ignore", invalid="ignore")
    def _values(self, point: Vector) -> dict[int, Any]:
        # One pass answers value and gradient at a point; the pair is replaced as a whole.
        key = point.tobytes()
        last: tuple[bytes, dict[int, Any]] | None = self.__dict__.get("_last")
        if last is not None and last[0] == key:
            return last[1]
        own = point.copy()
        values: dict[int, Any] = {}
        for node in self.plan:
            inputs = [values[id(a)] for a in node.args]
            values[id(node)] = own if not inputs else node.forward(inputs, FLOAT, None)
        self._last = key, values
        return values

    def _pieces_if_clear(self, point: Vector, values: dict[int, Any]) -> Pieces | None:
        """Return the pieces when a cheap error bound proves every sign; None when in doubt."""
        pieces: Pieces = {}
        length = float(np.abs(point).max(initial=0.0)) * point.size**0.5
        for node in self.kink_nodes:
            inner = node.args[0]
            if not (inner.is_affine and inner.is_exact):
                return None
            slack = inner.slack(length)
            piece = node.clear_piece(values[id(inner)], slack)
            if piece is None:
                return None
            pieces[id(node)] = piece
        return pieces

    def slack(self, length: float) -> Any:
        """Return a bound of the rounding error of an affine expression at |x| = length."""
        gain, shift = self._magnitude
        return self._unit * (gain * length + shift) + 2.0**-1000 * (1 + self._terms)

    @cached_property
    def _magnitude(self) -> tuple[Vector, Vector]:
        return self.magnitude()

    @cached_property
    def _terms(self) -> int:
        # Every entry passes through at most this many operations on its way.
        return sum(node.args[0].size if node.args else 1 for node in self.plan) + 8

    @cached_property
    def _unit(self) -> float:
        return 4.0 * self._terms * 2.0**-53

    def _point(self, x: Any) -> Vector:
        if not (isinstance(x, np.ndarray) and x.dtype == np.float64):
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

    # --- building ----------------------------------------------------------------------------

    def __add__(self, other: Any) -> Expression:
        from goldstein.calculus.affine import add

        return add(self, other)

    __radd__ = __add__

    #: Pandas, too, leaves operators to us.
    __pandas_priority__ = 5000

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        from goldstein.calculus.numpy_protocol import apply_ufunc

        return apply_ufunc(ufunc, method, inputs, options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        from goldstein.calculus.foreign import as_object

        return as_object(self, dtype)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any, options: Any = None) -> Any:
        from goldstein.calculus.foreign import refuse_torch

        refuse_torch(function)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        from goldstein.calculus.numpy_protocol import apply_function

        return apply_function(function, args, options)

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        from goldstein.calculus.atoms import absolute

        return absolute(self)

    def __pow__(self, exponent: Any) -> Expression:
        from goldstein.calculus.atoms import power

        return power(self, exponent)

    def __rpow__(self, base: Any) -> NoReturn:
        raise InputTypeError(
            f"{base!r} ** u is no polynomial of u; use smooth_function(u, value, derivative)."
        )

    def __neg__(self) -> Expression:
        from goldstein.calculus.affine import Scale

        return Scale(self, -1.0)

    def __sub__(self, other: Any) -> Expression:
        from goldstein.calculus.affine import subtract

        return subtract(self, other)

    def __rsub__(self, other: Any) -> Expression:
        from goldstein.calculus.affine import add

        return add(-self, other)

    def __mul__(self, other: Any) -> Expression:
        from goldstein.calculus.affine import multiply

        return multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Expression:
        from goldstein.calculus.affine import divide

        return divide(self, other)

    def __rtruediv__(self, other: Any) -> NoReturn:
        from goldstein.calculus.affine import refuse_quotient

        refuse_quotient()

    def _no_remainder(self, other: Any) -> NoReturn:
        raise InputTypeError("an expression has no %, // or divmod: they jump.")

    def _no_rounding(self, digits: Any = None) -> NoReturn:
        raise InputTypeError(
            "an expression cannot be rounded: its value would jump. Round F.value(x), or res.x."
        )

    __round__ = __trunc__ = __floor__ = __ceil__ = _no_rounding

    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = _no_remainder
    __divmod__ = __rdivmod__ = _no_remainder

    def _no_order(self, other: Any) -> NoReturn:
        raise InputTypeError(
            "an expression has no truth value before a point is given: compare F.value(x) with a "
            "number; for the larger of two expressions use maximum(a, b)."
        )

    #: `<=`, `>=` and `==` with numbers make constraints, below.
    __lt__ = __gt__ = _no_order

    def __bool__(self) -> NoReturn:
        self._no_order(self)

    def __float__(self) -> NoReturn:
        raise InputTypeError(
            "an expression is a function, not a number: F.value(x) is its value at a point x, and "
            "goldstein's atoms (abs, maximum, square, ...) apply to it."
        )

    __int__ = __complex__ = __index__ = __float__

    def __rmatmul__(self, other: Any) -> Expression:
        from goldstein.calculus.affine import linear

        return linear(other, self)

    def __matmul__(self, other: Any) -> Expression:
        from goldstein.calculus.affine import matmul

        return matmul(self, other)

    def _compared(self, low: Any, high: Any) -> Comparison:
        flat = self if self.shape in ((), (self.size,)) else self.reshape(self.size)
        parts = [flat] if not self.shape else [flat[i] for i in range(self.size)]
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
        from goldstein.calculus.affine import Gather

        try:
            return Gather(self, np.arange(self.size).reshape(self.shape)[index])
        except (IndexError, TypeError, ValueError) as failure:
            raise InputError(
                f"cannot index an expression of shape {self.shape} so: {failure}."
            ) from failure

    def reshape(self, *shape: Any) -> Expression:
        """Return the same entries in another shape."""
        from goldstein.calculus.affine import Gather

        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        try:
            return Gather(self, np.arange(self.size).reshape(wanted))
        except (TypeError, ValueError) as failure:
            raise InputError(
                f"cannot reshape an expression of shape {self.shape}: {failure}."
            ) from failure

    def sum(self, axis: int | None = None) -> Expression:
        """Return the sum of all entries, or along one axis."""
        from goldstein.calculus.affine import sum_entries

        return sum_entries(self, axis)

    def mean(self) -> Expression:
        """Return the mean of all entries."""
        return self.sum() / self.size

    def max(self) -> Expression:
        """Return the largest entry."""
        from goldstein.calculus.atoms import largest

        return largest(self)

    def min(self) -> Expression:
        """Return the smallest entry."""
        from goldstein.calculus.atoms import smallest

        return smallest(self)

    @property
    def T(self) -> Expression:
        """The transpose."""
        from goldstein.calculus.affine import Gather

        return Gather(self, np.arange(self.size).reshape(self.shape).T)

    def __len__(self) -> int:
        if not self.shape:
            raise InputTypeError("a scalar expression has no length; its size is 1.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Expression]:
        if not self.shape:
            raise InputTypeError("a scalar expression has no entries to iterate over.")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, item: Any) -> NoReturn:
        self._no_order(item)

    def __repr__(self) -> str:
        return f"{self.name}(shape={self.shape}, dim={self.dim})"


def _in_order(root: Expression) -> list[Expression]:
    """Return every node once, arguments before the nodes that use them."""
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
            stack.extend((a, False) for a in reversed(node.args))
    return order


class KinkNode(Expression):
    """A node that chooses between smooth pieces; its only argument decides which."""

    @property
    def needs_no_decision(self) -> bool:
        """True when there is one piece only."""
        return False

    def clear_piece(self, u: Vector, slack: Any) -> Any:
        """Return the pieces at u if errors of size `slack` cannot change them, else None."""
        raise NotImplementedError

    def nearest_piece(self, u: Vector) -> Any:
        """Return the pieces that float64 sees at u."""
        raise NotImplementedError

    def examine(self, u: Enclosure, exact: ExactEntry) -> tuple[Any, list[Tie], list[int]]:
        """Return (pieces, exact ties, entries that sit on a smooth breakpoint).

        `exact(i)` gives the exact value of entry i; it is asked only where `u` does not decide.
        """
        raise NotImplementedError

    def felt(self, ties: list[Tie], moves: Callable[[int], bool]) -> list[Tie]:
        """Return the ties that matter: those of arguments that change near the point."""
        raise NotImplementedError

    def split(self, piece: Any, ties: list[Tie], leading: Leading) -> Any:
        """Return the pieces just beside the point, where the ties are broken by a direction.

        `leading(i)` gives the coefficients of t, t^2, ... of entry i along that direction.
        """
        raise NotImplementedError


def leading_sign(coefficients: Sequence[Fraction]) -> int:
    """Return the sign of a polynomial for small t > 0; refuse the zero polynomial."""
    for c in coefficients:
        if c:
            return 1 if c > 0 else -1
    raise NotCertifiableError(
        "the direction stays on a kink: it does not show a point of differentiability."
    )


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
        super().__init__((), (int(dim),))
        self.variable = self
        self.dim = int(dim)

    def with_args(self, args: Sequence[Expression]) -> Variable:
        return Variable(self.size)

    @property
    def own_affine(self) -> bool:
        return True

    def row(self, index: int) -> dict[int, Fraction]:
        return {index: Fraction(1)}

    def offset(self, index: int) -> Fraction:
        return Fraction(0)

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        return Still.everywhere(self.shape, False)

    def magnitude(self) -> tuple[Vector, Vector]:
        return np.ones(self.size), np.zeros(self.size)


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
        from goldstein.calculus.stacking import stack

        return stack(value)
    raise InputTypeError(
        f"{what} expects an expression, got {type(value).__name__}; make a Variable and build "
        "from it."
    )


def kink_error(point: Any, where: str) -> KinkError:
    """Return the error for a gradient asked for on a kink."""
    return KinkError(
        f"the function is not differentiable (or not provably so) at this point: {where}; "
        "ask for the gradient at a nearby point.",
        np.array(point, dtype=np.float64),
    )


__all__ = ["Ball", "Bound", "Expression", "Variable"]


def _is_limit(other: object) -> bool:
    """Whether something is a number, or an array of numbers."""
    if isinstance(other, bool):
        return False
    return isinstance(other, int | float | Fraction | Decimal | np.number | np.ndarray)


def _limit(other: Any) -> Any:
    limit = exact_floats(other, "a limit", finite=False)
    return limit.ravel() if limit.ndim else float(limit)
