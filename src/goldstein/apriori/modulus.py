"""The modulus of an expression: how fast the gradients of its smooth pieces move (rule R8).

On one smooth piece the Hessian of a scalar expression is a sum over its nonlinear nodes,
`J^T (lambda . D^2 node) J`: a forward pass bounds values and Jacobians J, a backward pass the
cotangents lambda, and each node adds its own bend. Blocks of disjoint variables are told apart,
which makes the constants of the paper's three applications come out sharp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.calculus.operators import Add, Gather, Linear, MatMul, Multiply, Scale, Shift, Sum
from goldstein.calculus.atoms.base import Elementwise, interval
from goldstein.calculus.atoms.maximum import Max
from goldstein.calculus.atoms.norms import Norm2, SumSquares
from goldstein.calculus.atoms.softmax import SoftmaxCrossEntropy
from goldstein.calculus.expression import Ball, Expression, Variable
from goldstein.calculus.stacking import Concatenate
from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, NotCertifiableError

#: Covers the rounding of the short chains of float operations below.
_OUTWARD = 1.0 + 1e-12


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
    total = math.fsum(bend.amount for bend in bends) if _finite(bends) else math.inf
    exact = len(bends) <= 1 or total == 0.0
    return Modulus(total if exact else total * _OUTWARD, bends, ranges)


def _finite(bends: list[Bend]) -> bool:
    return all(math.isfinite(bend.amount) for bend in bends)


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


def _forward(root: Expression, domain: Domain) -> dict[int, _Range]:
    variable = root.variable
    blocks = _Blocks(domain, variable.size)
    ranges: dict[int, _Range] = {}
    for node in root.plan:
        if isinstance(node, Variable):
            everything = np.arange(variable.size)
            support = np.ones(variable.size, dtype=bool)
            ranges[id(node)] = _Range(blocks.centre, blocks.radius(everything), 1.0, support)
        elif isinstance(node, Gather) and isinstance(node.args[0], Variable):
            ranges[id(node)] = _gathered(node, blocks)
        else:
            ranges[id(node)] = _range(node, [ranges[id(a)] for a in node.args])
    return ranges


def _gathered(node: Gather, blocks: _Blocks) -> _Range:
    index = node.index.ravel()
    support = np.zeros(blocks.centre.size, dtype=bool)
    support[index] = True
    repeats = _repeats(node)
    radius = blocks.radius(np.unique(index))
    return _Range(blocks.centre[node.index], _times(repeats, radius), repeats, support)


def _repeats(node: Gather) -> float:
    return math.sqrt(float(np.bincount(node.index.ravel()).max(initial=1)))


def _range(node: Expression, inner: list[_Range]) -> _Range:
    support = np.logical_or.reduce([r.support for r in inner])
    first = inner[0]
    if isinstance(node, Multiply | MatMul):
        return _product_range(node, inner[0], inner[1], support)
    if isinstance(node, Add):
        centre = np.sum([r.centre for r in inner], axis=0)
        spread = math.fsum(r.spread for r in inner) if _bounded(inner) else math.inf
        return _Range(centre, spread, _join([r.lipschitz for r in inner], inner), support)
    if isinstance(node, Concatenate):
        centre = np.concatenate([r.centre.reshape(-1) for r in inner])
        spread = math.hypot(*(r.spread for r in inner)) * _OUTWARD
        slope = math.hypot(*(r.lipschitz for r in inner)) * _OUTWARD
        return _Range(centre, spread, slope, support)
    if isinstance(node, Elementwise):
        gain = steepest(node, first)
        centre = node.function.value(first.centre)
    elif isinstance(node, SumSquares):
        gain, centre = 2.0 * first.size, np.asarray(float((first.centre**2).sum()))
    elif isinstance(node, Linear):
        if node.matrix_free:
            raise NotCertifiableError(
                "the norm of a LinearOperator can only be estimated; pass the matrix (dense or "
                "sparse) to get a modulus."
            )
        gain, centre = node.norm, np.asarray(node.A @ first.centre)
    elif isinstance(node, Scale):
        gain, centre = node.gain, first.centre * node.factor
    elif isinstance(node, Shift):
        gain, centre = 1.0, first.centre + node.constant
    elif isinstance(node, Gather):
        gain, centre = _repeats(node), first.centre.ravel()[node.index]
    elif isinstance(node, Sum):
        gain, centre = math.sqrt(first.centre.size), np.asarray(first.centre.sum())
    elif isinstance(node, Norm2):
        gain, centre = 1.0, np.asarray(np.linalg.norm(first.centre))
    elif isinstance(node, Max):
        gain, centre = 1.0, np.asarray(first.centre.max())
    elif isinstance(node, SoftmaxCrossEntropy):
        gain = node.steepest
        centre = np.asarray(0.0)  # only its derivatives matter
    else:
        raise NotCertifiableError(
            f"the calculus has no rule for {node.name}; use a transported certificate instead."
        )
    return _Range(centre, _times(gain, first.spread), _times(gain, first.lipschitz), support)


def steepest(node: Elementwise, inner: _Range) -> float:
    """Return a bound of the slopes of an atom over the range of its argument."""
    local = node.function.steepest(*interval(inner.centre, inner.spread))
    everywhere = node.function.lipschitz
    # A constant that is almost attained is rounded up to the one in the textbooks.
    return everywhere if local > 0.99 * everywhere else local


def _product_range(
    node: Multiply | MatMul, u: _Range, v: _Range, support: NDArray[np.bool_]
) -> _Range:
    if isinstance(node, Multiply):
        centre, u_size, v_size = u.centre * v.centre, u.top, v.top
    else:
        centre, u_size, v_size = np.asarray(u.centre @ v.centre), u.size, v.size
    still = float(np.linalg.norm(u.centre)) * _OUTWARD if isinstance(node, MatMul) else u_size
    spread = _times(v_size, u.spread) + _times(min(still, u_size), v.spread)
    slopes = [_times(v_size, u.lipschitz), _times(u_size, v.lipschitz)]
    return _Range(centre, spread, _join(slopes, [u, v]), support)


def _join(slopes: list[float], inner: list[_Range]) -> float:
    """Jacobians of parts side by side: root sum of squares if the variables are disjoint."""
    if _disjoint(inner):
        return math.hypot(*slopes)
    return math.fsum(slopes) if all(map(math.isfinite, slopes)) else math.inf


def _disjoint(inner: list[_Range]) -> bool:
    return int(np.sum([r.support for r in inner], axis=0).max(initial=0)) <= 1


def _bounded(inner: list[_Range]) -> bool:
    return all(math.isfinite(r.spread) for r in inner)


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0.0 or b == 0.0 else a * b


# --- backward: cotangents and bends -----------------------------------------------------------


def _backward(root: Expression, ranges: dict[int, _Range]) -> list[Bend]:
    cotangents: dict[int, _Cotangent] = {id(node): _Cotangent() for node in root.plan}
    cotangents[id(root)].add(1.0, 1.0)
    bends: list[Bend] = []
    for node in reversed(root.plan):
        if not node.args:
            continue
        inner = [ranges[id(a)] for a in node.args]
        given = cotangents[id(node)]
        for argument, (norm, top) in zip(node.args, _pull(node, given, inner), strict=True):
            cotangents[id(argument)].add(norm, top)
        bend = _bend(node, given, inner)
        if bend is not None and bend.amount > 0.0:
            bends.append(bend)
    return list(reversed(bends))


def _pull(node: Expression, given: _Cotangent, inner: list[_Range]) -> list[tuple[float, float]]:
    first = inner[0]
    if isinstance(node, Add | Concatenate):
        return [(given.norm, given.top)] * len(inner)
    if isinstance(node, Multiply):
        return [
            (_times(given.norm, other.top), _times(given.top, other.top))
            for other in reversed(inner)
        ]
    if isinstance(node, MatMul):
        return [(size := _times(given.norm, other.size), size) for other in reversed(inner)]
    if isinstance(node, Sum):
        return [(given.norm * math.sqrt(first.centre.size), given.norm)]
    if isinstance(node, SumSquares):
        return [(_times(2.0 * given.norm, first.size), _times(2.0 * given.norm, first.top))]
    if isinstance(node, SoftmaxCrossEntropy):
        return [(given.norm * node.steepest, given.norm * node.largest_weight)]
    if isinstance(node, Elementwise):
        gain = steepest(node, first)
    elif isinstance(node, Linear):
        return [(_times(node.norm, given.norm), math.inf)]
    elif isinstance(node, Scale):
        gain = node.gain
    elif isinstance(node, Gather):
        gain = float(np.bincount(node.index.ravel()).max(initial=1))
    else:
        gain = 1.0
    return [(_times(gain, given.norm), _times(gain, given.top))]


def _bend(node: Expression, given: _Cotangent, inner: list[_Range]) -> Bend | None:
    first = inner[0]
    if isinstance(node, Elementwise):
        curvature = node.function.curvature
        if math.isinf(curvature):  # higher powers bend without bound, but not on a bounded domain
            curvature = node.function.sharpest(*interval(first.centre, first.spread))
        amount = _times(_times(curvature, given.top), first.lipschitz**2)
        return Bend(node, amount, f"|lambda| sup|{node.name}''| |J|^2")
    if isinstance(node, SumSquares):
        return Bend(node, _times(2.0 * given.norm, first.lipschitz**2), "2 |lambda| |J|^2")
    if isinstance(node, SoftmaxCrossEntropy):
        curvature = 0.5 * node.largest_weight
        return Bend(node, _times(curvature * given.norm, first.lipschitz**2), "|lambda|/2 |J|^2")
    if isinstance(node, Norm2):
        return Bend(node, math.inf, "the norm bends without bound near its kink")
    if isinstance(node, Multiply | MatMul):
        u, v = inner
        cross = 1.0 if _disjoint(inner) else 2.0
        size = given.top if isinstance(node, Multiply) else given.norm
        amount = _times(cross * size, _times(u.lipschitz, v.lipschitz))
        return Bend(node, amount, "|lambda| |J_left| |J_right|")
    return None
