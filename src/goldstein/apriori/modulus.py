"""The modulus of an expression: how fast the gradients of its smooth pieces move (rule R8).

On one smooth piece the Hessian of a scalar expression is a sum over its nonlinear nodes,
`J^T (lambda . D^2 node) J`: a forward pass bounds values and Jacobians J, a backward pass the
cotangents lambda, and each node adds its own bend. Blocks of disjoint variables are told apart,
which makes the constants of the paper's three applications come out sharp.

Functions of one number before a run: slopes, curvatures, kinks, and how far pivots may reach.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations
from math import inf, isinf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import svds

from goldstein.calculus.atoms.piecewise import Atom, Curve
from goldstein.calculus.elementary import Foreign
from goldstein.calculus.expression import Ball, Expression, Variable, as_matrix, in_order
from goldstein.calculus.operators import matrix_norm, picked
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed import irrational
from goldstein.checker.nodes import Piecewise
from goldstein.checker.nodes import polynomial as power
from goldstein.checker.rationals import fraction_upper
from goldstein.errors import InputError, NotCertifiableError
from goldstein.numerics.exact import fraction_lower

Bound = Callable[[float, float], float]


@dataclass(frozen=True)
class Scalar:
    """A function of one number.

    Attributes
    ----------
    kinks : tuple of Fraction
    steepest, sharpest : callable
        (low, high) -> an upper bound of |derivative|, and of |second derivative| off the kinks.
    value : callable
        The function in float64.
    pivot_limit : (float, bool)
        The nearest-kink pivot rule is valid for every radius below, and perhaps at the limit too.
    """

    kinks: tuple[Fraction, ...]
    steepest: Bound
    sharpest: Bound
    value: Callable[[Vector], Vector]
    pivot_limit: tuple[float, bool] = (inf, True)

    @cached_property
    def lipschitz(self) -> float:
        return self.steepest(-inf, inf)

    @cached_property
    def curvature(self) -> float:
        return self.sharpest(-inf, inf)


def scalar_of(e: Expression) -> Scalar | None:
    """Return what is known of an expression that is a function of each entry of another one."""
    if isinstance(e, Atom) and isinstance(e.known, Curve):
        steepest, curvature, kinks = e.known
        sharpest = curvature if callable(curvature) else lambda low, high: curvature
        return Scalar(kinks, steepest, sharpest, partial(_value, e.args[0], e.of))
    if isinstance(e, Atom) or e.kind is not Piecewise:
        return None
    node = Piecewise((0,), (1,), 1, *e.data)
    bends = [[j * c for j, c in enumerate(slope)][1:] for slope in node.slopes]
    steepest, sharpest = (partial(_extreme, node, table) for table in (node.slopes, bends))
    kinks = tuple(t for t, jump in zip(node.breakpoints, node.jumps) if jump)
    limit = _pivot_limit(node, sharpest(-inf, inf))
    return Scalar(kinks, steepest, sharpest, partial(_value, e, e.args[0]), limit)


def _value(meaning: Expression, of: Expression, u: Vector) -> Vector:
    """Return the value of an expression where a part of it is u."""
    return np.asarray(meaning.over(Variable(of.size), of)(np.ravel(u)))


def _extreme(
    node: Piecewise, polynomials: Sequence[Sequence[Fraction]], low: float, high: float
) -> float:
    """Return an upper bound of |polynomials|, one for each piece, on an interval."""
    levels = [-inf, *map(float, node.breakpoints), inf]
    parts = zip(polynomials, levels, levels[1:])
    return max(_largest(p, max(low, a), min(high, b)) for p, a, b in parts)


def _largest(polynomial: Sequence[Fraction], left: float, right: float) -> float:
    if left > right or not polynomial:
        return 0.0
    if any(polynomial[1:]) and (isinf(left) or isinf(right)):
        return inf
    ends = [Fraction(0) if isinf(end) else Fraction(end) for end in (left, right)]
    if not any(polynomial[2:]):  # at most linear: the ends are the extremes
        return fraction_upper(max(abs(power(polynomial, end)) for end in ends))
    return fraction_upper(power([abs(a) for a in polynomial], max(map(abs, ends))))


def _pivot_limit(node: Piecewise, curvature: float) -> tuple[float, bool]:
    """Return the radius up to which the nearest kink in a ball is a pivot of it.

    Two kinks may be in one ball if the slopes at each, up to what curvature explains, are among
    those at the other; else the radius is below half their distance. At half, ties go to the kink
    nearest 0: that is right if its slopes contain the other's.
    """
    steps = zip(node.breakpoints, node.slopes, node.slopes[1:], node.jumps)
    sides = {t: sorted((power(a, t), power(b, t))) for t, a, b, jump in steps if jump}

    def contains(a: Fraction, b: Fraction) -> bool:
        slack = abs(a - b) * Fraction(0.0 if isinf(curvature) else curvature)
        (low, high), (first, last) = sides[a], sides[b]
        return low - slack <= first and last <= high + slack

    limits = [(inf, True)]
    for a, b in combinations(sorted(sides, key=abs), 2):
        if not (contains(a, b) and contains(b, a)):
            limits.append((fraction_lower(abs(a - b) / 2), abs(a) != abs(b) and contains(a, b)))
    return min(limits)  # at one limit, not attained comes first


#: Covers the rounding of the short chains of float operations below.
_OUTWARD = 1.0 + 1e-12


#: Atoms of all entries with a rule of their own.
SQUARES, SOFTMAX = "SumSquares", "SoftmaxCrossEntropy"


@dataclass(frozen=True)
class Block:
    """Some entries of the variable, kept in a ball of their own.

    Examples
    --------
    >>> Block(slice(0, 2), 3.0).radius
    3.0
    """

    entries: slice | Sequence[int]
    radius: float
    centre: Vector | None = None


Domain = Ball | tuple[Any, float] | Sequence[Block] | None


@dataclass(frozen=True)
class Bend:
    """What one node adds to the modulus.

    Attributes
    ----------
    node : Expression
    amount : float
        Its share; `inf` when no bound exists on the domain.
    rule : str
        Where the share comes from.
    """

    node: Expression
    amount: float
    rule: str


@dataclass
class _Range:
    """A node on the domain: value at the centre, how far it moves, Jacobian, variables it uses."""

    centre: NDArray[np.float64]
    spread: float
    lipschitz: float
    support: NDArray[np.bool_]

    @property
    def size(self) -> float:
        return float(np.linalg.norm(self.centre)) * _OUTWARD + self.spread

    @property
    def top(self) -> float:
        return float(np.abs(self.centre).max(initial=0.0)) * _OUTWARD + self.spread


@dataclass
class _Cotangent:
    """Bounds of a derivative in a node: Euclidean norm and largest entry."""

    norm: float = 0.0
    top: float = 0.0

    def add(self, norm: float, top: float) -> None:
        self.norm += norm
        self.top += min(top, norm)


@dataclass
class Modulus:
    """The modulus of an expression on a domain and where it comes from.

    Attributes
    ----------
    total : float
        Upper bound of the Lipschitz constants of all pieces' gradients.
    bends : list of Bend
        One per nonlinear node; they add up to the total.
    """

    total: float
    bends: list[Bend]
    ranges: dict[int, _Range] = field(repr=False, default_factory=dict)


def tree_of(fun: Expression) -> Expression:
    """Return the node graph behind a model, or the expression itself."""
    while isinstance(inner := getattr(fun, "tree", None), Expression):
        fun = inner
    return fun


def arguments(e: Expression) -> tuple[Expression, ...]:
    """Return what an expression is a function of; an atom is one step."""
    return (e.of,) if isinstance(e, Atom) else e.args


def plan(root: Expression) -> list[Expression]:
    """Return every step once, arguments before those that use them."""
    return in_order(root, arguments)


@np.errstate(over="ignore", invalid="ignore")
def lipschitz(fun: Expression, domain: Domain = None) -> float:
    """Return a Lipschitz constant on a domain; norms of LinearOperators are estimated."""
    root = tree_of(fun)
    return _forward(root, domain, estimate=True)[id(root)].lipschitz


def piece_modulus(fun: Expression, domain: Domain = None) -> Modulus:
    """Return a bound of the Lipschitz constants of the gradients of all smooth pieces.

    Parameters
    ----------
    fun : Expression
        Scalar.
    domain : Ball, (centre, radius), sequence of Block, or None
        Where the bound must hold; None means everywhere, which may give `inf`.

    Examples
    --------
    >>> from goldstein.calculus import Variable, relu, sum, sum_squares
    >>> w = Variable(2)
    >>> piece_modulus(1.5 * sum_squares(w) + sum(relu(w))).total
    3.0
    """
    root = tree_of(fun)
    ranges = _forward(root, domain)
    bends = _backward(root, ranges)
    total = _total([bend.amount for bend in bends])
    exact = len(bends) <= 1 or total == 0.0
    return Modulus(total if exact else total * _OUTWARD, bends, ranges)


# --- forward: values, spreads, Jacobians ------------------------------------------------------


def _blocks(domain: Domain) -> list[Block]:
    if domain is None:
        return [Block(slice(None), math.inf)]
    if isinstance(domain, Ball):
        return [Block(slice(None), domain.radius, domain.centre)]
    parts: list[Any] = list(domain)
    if all(isinstance(part, Block) for part in parts):
        return parts
    if len(parts) != 2:
        raise InputError(
            f"got a domain of {len(parts)} parts, expected a Ball, a pair (centre, radius), or a "
            "list of Block."
        )
    return [Block(slice(None), float(parts[1]), np.asarray(parts[0], dtype=np.float64))]


class _Blocks:
    """A domain as centre and radius of any set of entries of the variable."""

    def __init__(self, domain: Domain, dim: int) -> None:
        self.centre = np.zeros(dim)
        self.block_of = np.full(dim, -1)
        self.radii: list[float] = []
        for number, block in enumerate(_blocks(domain)):
            if not block.radius >= 0.0:
                raise InputError(f"a block has radius {block.radius}, expected a number >= 0.")
            where = np.arange(dim)[block.entries]
            if (self.block_of[where] >= 0).any():
                raise InputError("two blocks of the domain share entries; they must be disjoint.")
            self.block_of[where] = number
            if block.centre is not None:
                self.centre[where] = block.centre
            self.radii.append(float(block.radius))

    def radius(self, entries: NDArray[np.intp]) -> float:
        touched = np.unique(self.block_of[entries])
        if (touched < 0).any():
            return math.inf
        return math.hypot(*(self.radii[number] for number in touched)) * _OUTWARD


def _forward(root: Expression, domain: Domain, estimate: bool = False) -> dict[int, _Range]:
    variable = root.variable
    blocks = _Blocks(domain, variable.size)
    ranges: dict[int, _Range] = {}
    for e in plan(root):
        inner = [ranges[id(a)] for a in arguments(e)]
        if not inner:
            everything = np.arange(variable.size)
            support = np.ones(variable.size, dtype=bool)
            ranges[id(e)] = _Range(blocks.centre, blocks.radius(everything), 1.0, support)
        elif (index := picked(e)) is not None and e.args[0] is variable:
            ranges[id(e)] = _gathered(index, blocks)
        elif e.kind is Foreign and not isinstance(e, Atom):
            ranges[id(e)] = _operator(e, inner[0], estimate)
        else:
            step, support = _step(e, inner), np.logical_or.reduce([r.support for r in inner])
            ranges[id(e)] = _Range(step.centre(), step.spread, step.lipschitz, support)
        # Where tables are multiplied they need their shape.
        ranges[id(e)].centre = ranges[id(e)].centre.reshape(e.shape)
    return ranges


def _gathered(index: NDArray[np.intp], blocks: _Blocks) -> _Range:
    support = np.zeros(blocks.centre.size, dtype=bool)
    support[index] = True
    repeats = math.sqrt(_repeats(index))
    radius = blocks.radius(np.unique(index))
    return _Range(blocks.centre[index], _times(repeats, radius), repeats, support)


def _repeats(index: NDArray[np.intp]) -> float:
    return float(np.bincount(index).max(initial=1))


def _operator(e: Expression, first: _Range, estimate: bool) -> _Range:
    operator = e.data[1]
    if not estimate:
        raise NotCertifiableError(
            "the norm of a LinearOperator can only be estimated; pass the matrix (dense or "
            "sparse) to get a modulus."
        )
    if min(operator.shape) <= 2:
        gain = float(np.linalg.norm(operator @ np.eye(operator.shape[1]), 2))
    else:
        gain = float(svds(operator, k=1, return_singular_vectors=False, random_state=0)[0])
    centre = np.asarray(operator @ first.centre)
    return _Range(centre, _times(gain, first.spread), _times(gain, first.lipschitz), first.support)


def _gains(e: Expression) -> tuple[float, float, float]:
    """Return bounds of an affine step: of its Jacobian; of what it does to norm and top of
    cotangents."""
    matrix, divisor = e.data[0], e.data[3]
    if (index := picked(e)) is not None:
        most = _repeats(index)
        return math.sqrt(most), most, most
    if isinstance(matrix, tuple) and any(part is None for part in matrix[:3]):
        gain = 1.0 if matrix[0] is None else float(np.abs(matrix[0]).max(initial=0.0))
        if divisor is not None:
            gain = math.nextafter(gain / float(np.abs(divisor).min()), math.inf)
        return gain, gain, gain
    if e.size == 1 and isinstance(matrix, np.ndarray) and (matrix == 1.0).all():  # a sum
        gain = math.sqrt(e.args[0].size)
        return gain, gain, 1.0
    gain = matrix_norm(as_matrix(matrix))
    return gain, gain, math.inf


class _Step(NamedTuple):
    """What a node does: its value at the centre, how far that moves, a bound of its Jacobian.

    Of a cotangent `pulled` bounds norm and top of the products with the Jacobians, argument by
    argument, and `bend` what the node adds to the modulus; with the reason.
    """

    centre: Callable[[], Any]
    spread: float
    lipschitz: float
    pulled: list[tuple[float, float]]
    bend: tuple[float, str] = (0.0, "")


def _step(e: Expression, inner: list[_Range], given: _Cotangent | None = None) -> _Step:
    given = given or _Cotangent()
    if e.kind is nodes.Product:
        return _product(e, inner[0], inner[1], given)
    if e.kind is nodes.Add and not isinstance(e, Atom):
        return _sum(e, inner, given)
    (u,), centre, norm, top = inner, inner[0].centre, given.norm, given.top
    function = scalar_of(e)
    if _special(e) == SQUARES:
        pulled = _times(2.0 * norm, u.size), _times(2.0 * norm, u.top)
        value, bend = lambda: np.asarray(float((centre**2).sum())), (2.0 * norm, "2 |lambda| |J|^2")
        return _of_one(u, value, 2.0 * u.size, pulled, *bend)
    if _special(e) == SOFTMAX:  # a row's derivative is at most sqrt(2) times its weight
        weights: Any = e.known  # type: ignore[attr-defined]
        slope, most = float(np.sqrt(2.0 * (weights @ weights))), float(weights.max(initial=0.0))
        bend = 0.5 * most * norm, "|lambda|/2 |J|^2"
        return _of_one(u, lambda: np.zeros(()), slope, (norm * slope, norm * most), *bend)
    if function is not None:
        slope, curvature = steepest(function, u), function.curvature
        if math.isinf(curvature):  # higher powers bend without bound, but not on a bounded domain
            curvature = function.sharpest(*_interval(u))
        bend = _times(curvature, top), f"|lambda| sup|{e.name}''| |J|^2"
        pulled = _times(slope, norm), _times(slope, top)
        return _of_one(u, partial(function.value, centre), slope, pulled, *bend)
    if e.kind is nodes.Affine:
        gain, on_norm, on_top = _gains(e)
        pulled = _times(on_norm, norm), _times(on_top, top)
        return _of_one(u, partial(_image, e, centre), gain, pulled)
    if e.kind in (nodes.Max, irrational.Norm2):
        rows = centre.reshape(-1, e.data[0])
        if e.kind is nodes.Max:
            return _of_one(u, partial(np.max, rows, axis=1), 1.0, (norm, top))
        bend = math.inf, "the norm bends without bound near its kink"
        return _of_one(u, partial(np.linalg.norm, rows, axis=1), 1.0, (norm, top), *bend)
    raise NotCertifiableError(
        f"the calculus has no rule for {e.name}; use a transported certificate instead."
    )


def _of_one(
    u: _Range, centre: Any, gain: float, pulled: tuple[float, float], bend: float = 0.0,
    rule: str = "",
) -> _Step:  # fmt: skip
    """Return a step of one argument; it bends at most at `bend` times |J|^2."""
    spread, slope = _times(gain, u.spread), _times(gain, u.lipschitz)
    return _Step(centre, spread, slope, [pulled], (_times(bend, u.lipschitz * u.lipschitz), rule))


def _sum(e: Expression, inner: list[_Range], given: _Cotangent) -> _Step:
    spreads, slopes = [r.spread for r in inner], [r.lipschitz for r in inner]
    if e.name == "Concatenate":  # parts side by side
        spread, slope = (math.hypot(*sizes) * _OUTWARD for sizes in (spreads, slopes))
    else:
        spread, slope = _total(spreads), _join(slopes, inner)
    pulled = [(given.norm, given.top) for _ in inner]
    return _Step(lambda: np.sum([r.centre.ravel() for r in inner], axis=0), spread, slope, pulled)


def _product(e: Expression, u: _Range, v: _Range, given: _Cotangent) -> _Step:
    disjoint, entries = _disjoint([u, v]), e.name == "Multiply"  # entry by entry
    if entries:
        combine, still, sizes, size = operator.mul, u.top, (u.top, v.top), given.top
        pulled = [(_times(given.norm, most), _times(size, most)) for most in (v.top, u.top)]
    else:
        combine, still = operator.matmul, float(np.linalg.norm(u.centre)) * _OUTWARD
        sizes, size = (u.size, v.size), given.norm
        pulled = [(_times(size, most), _times(size, most)) for most in (v.size, u.size)]
    spread = _times(sizes[1], u.spread) + _times(min(still, sizes[0]), v.spread)
    slopes = [_times(sizes[1], u.lipschitz), _times(sizes[0], v.lipschitz)]
    cross = (1.0 if disjoint else 2.0) * size
    bend = _times(cross, _times(u.lipschitz, v.lipschitz)), "|lambda| |J_left| |J_right|"
    centre = lambda: np.asarray(combine(u.centre, v.centre))  # noqa: E731
    return _Step(centre, spread, _join(slopes, [u, v]), pulled, bend)


def _image(e: Expression, u: Vector) -> Vector:
    matrix, columns, offset, divisor = e.data
    product = np.ravel(as_matrix(matrix) @ u.reshape(-1, columns))
    moved = product + (0.0 if offset is None else offset)
    return np.asarray(moved / (1.0 if divisor is None else divisor))


def _special(e: Expression) -> str:
    """Return the name of an atom that is no function of one number."""
    return e.name if isinstance(e, Atom) and not isinstance(e.known, Curve) else ""


def steepest(function: Scalar, inner: _Range) -> float:
    """Return a bound of the slopes of an atom over the range of its argument."""
    local = function.steepest(*_interval(inner))
    everywhere = function.lipschitz
    # A constant that is almost attained is rounded up to the one in the textbooks.
    return everywhere if local > 0.99 * everywhere else local


def _interval(inner: _Range) -> tuple[float, float]:
    """Return an interval that holds all entries."""
    low = float(np.min(inner.centre, initial=math.inf)) - inner.spread
    high = float(np.max(inner.centre, initial=-math.inf)) + inner.spread
    # A centre that overflowed says nothing.
    return (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)


def _join(slopes: list[float], inner: list[_Range]) -> float:
    """Jacobians of parts side by side: root sum of squares if the variables are disjoint."""
    return math.hypot(*slopes) if _disjoint(inner) else _total(slopes)


def _total(numbers: list[float]) -> float:
    return math.fsum(numbers) if all(map(math.isfinite, numbers)) else math.inf


def _disjoint(inner: list[_Range]) -> bool:
    return int(np.sum([r.support for r in inner], axis=0).max(initial=0)) <= 1


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0.0 or b == 0.0 else a * b


# --- backward: cotangents and bends -----------------------------------------------------------


def _backward(root: Expression, ranges: dict[int, _Range]) -> list[Bend]:
    steps = plan(root)
    cotangents: dict[int, _Cotangent] = {id(e): _Cotangent() for e in steps}
    cotangents[id(root)].add(1.0, 1.0)
    bends: list[Bend] = []
    for e in reversed(steps):
        if not arguments(e):
            continue
        step = _step(e, [ranges[id(a)] for a in arguments(e)], cotangents[id(e)])
        for argument, pulled in zip(arguments(e), step.pulled, strict=True):
            cotangents[id(argument)].add(*pulled)
        bends.append(Bend(e, *step.bend))
    return [bend for bend in reversed(bends) if bend.amount > 0.0]
