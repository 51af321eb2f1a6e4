"""Functions with kinks, written three times over: exactly, as a program would, as an expression.

A tree is made of scalar nodes. Each knows its exact value and the gradients it can have beside a
point (`Jet`, rationals), what a program with automatic differentiation would answer (`tape`,
floats, with a rule for ties), and itself in terms of the library's atoms (`expression`). The first
two share no code with the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.shortest import Row, dot, root_below

import goldstein as gs

#: Digits of what is irrational; numbers that are closer than `CLOSE` are then taken as equal.
DIGITS = 70
CLOSE = Fraction(1, 10**45)

Rule = str  # what a program says at a tie: "zero", "left", "right" or "mean"


@dataclass(frozen=True)
class Jet:
    """A value at the point, a gradient beside it, and a bound of the slope wherever one looks."""

    value: Fraction
    gradient: tuple[Fraction, ...]
    steepest: Fraction

    def scaled(self, factor: Fraction) -> tuple[Fraction, ...]:
        return tuple(factor * entry for entry in self.gradient)


#: A jet, and linear forms that are positive where it holds.
Branch = tuple[Jet, list[tuple[Fraction, ...]]]


def total(parts: Sequence[tuple[Fraction, ...]]) -> tuple[Fraction, ...]:
    return tuple(sum(entries, Fraction(0)) for entries in zip(*parts))


def minus(a: Row, b: Row) -> tuple[Fraction, ...]:
    return tuple(p - q for p, q in zip(a, b))


def root_above(square: Fraction) -> Fraction:
    return root_below(square) + Fraction(1, 1 << 99) if square else square


class Node:
    """One step of a function."""

    of: tuple[Node, ...]
    curved = False

    def branches(self, point: Row, jets: list[Jet], radius: Fraction) -> Iterator[Branch]:
        """Return every way in which the gradient can be continued, within `radius` of the point."""
        raise NotImplementedError

    def has_kinks_beside(self, jets: list[Jet], radius: Fraction) -> bool:
        """Whether a kink may be met within `radius` that does not go through the point."""
        return False

    def tape(self, x: Any, values: list[Any], tie: Rule) -> tuple[float, Any]:
        """Return value and gradient in floats, of the arguments' (value, gradient) pairs."""
        raise NotImplementedError

    def expression(self, w: Any, args: list[Any]) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Affine(Node):
    """One row of matrix @ x + offset; rows of one matrix are one node of the library."""

    matrix: tuple[tuple[float, ...], ...]
    offset: tuple[float, ...]
    row: int
    of = ()

    def branches(self, point: Row, jets: list[Jet], radius: Fraction) -> Iterator[Branch]:
        row = tuple(Fraction(a) for a in self.matrix[self.row])
        value = dot(row, point) + Fraction(self.offset[self.row])
        yield Jet(value, row, root_above(dot(row, row))), []

    def tape(self, x: Any, values: list[Any], tie: Rule) -> tuple[float, Any]:
        row = np.array(self.matrix[self.row])
        return float(row @ x) + self.offset[self.row], row

    def expression(self, w: Any, args: list[Any]) -> Any:
        return (np.array(self.matrix) @ w + np.array(self.offset))[self.row]

    def __str__(self) -> str:
        return f"({list(self.matrix[self.row])} . x + {self.offset[self.row]:g})"


@dataclass(frozen=True, eq=False)
class Sum(Node):
    """sum_i factors_i u_i + constant."""

    of: tuple[Node, ...]
    factors: tuple[float, ...]
    constant: float = 0.0

    def branches(self, point: Row, jets: list[Jet], radius: Fraction) -> Iterator[Branch]:
        exact = [Fraction(f) for f in self.factors]
        value = sum((f * u.value for f, u in zip(exact, jets)), Fraction(self.constant))
        steepest = sum((abs(f) * u.steepest for f, u in zip(exact, jets)), Fraction(0))
        yield Jet(value, total([u.scaled(f) for f, u in zip(exact, jets)]), steepest), []

    def tape(self, x: Any, values: list[Any], tie: Rule) -> tuple[float, Any]:
        pairs = list(zip(self.factors, values))
        value = sum((f * v for f, (v, _) in pairs), self.constant)
        return value, sum((f * g for f, (_, g) in pairs), np.zeros(len(x)))

    def expression(self, w: Any, args: list[Any]) -> Any:
        parts = [f * u for f, u in zip(self.factors, args)]
        return sum(parts[1:], parts[0]) + self.constant

    def __str__(self) -> str:
        parts = [f"{f:g}*{u}" for f, u in zip(self.factors, self.of)]
        return "(" + " + ".join([*parts, f"{self.constant:g}"]) + ")"


@dataclass(frozen=True, eq=False)
class Product(Node):
    """u times v."""

    of: tuple[Node, ...]
    curved = True

    def branches(self, point: Row, jets: list[Jet], radius: Fraction) -> Iterator[Branch]:
        u, v = jets
        gradient = total([u.scaled(v.value), v.scaled(u.value)])
        yield Jet(u.value * v.value, gradient, Fraction(0)), []

    def tape(self, x: Any, values: list[Any], tie: Rule) -> tuple[float, Any]:
        (u, du), (v, dv) = values
        return u * v, v * du + u * dv

    def expression(self, w: Any, args: list[Any]) -> Any:
        return args[0] * args[1]

    def __str__(self) -> str:
        return f"{self.of[0]}*{self.of[1]}"


def _between(sides: Sequence[float], tie: Rule) -> float:
    """What a program says of two sides that meet."""
    if tie == "zero":
        return 0.0
    return {"left": sides[0], "right": sides[-1], "mean": sum(sides) / len(sides)}[tie]


@dataclass(frozen=True, eq=False)
class Piecewise(Node):
    """A continuous function of one argument, made of polynomials between breakpoints."""

    name: str
    make: Callable[[Any], Any]
    breaks: tuple[Fraction, ...]
    pieces: tuple[tuple[Fraction, ...], ...]
    of: tuple[Node, ...]

    @property
    def curved(self) -> bool:  # type: ignore[override]
        return any(len(piece) > 2 for piece in self.pieces)

    @staticmethod
    def at(piece: Sequence[Any], t: Any) -> Any:
        value = 0 * t
        for coefficient in reversed(piece):
            value = value * t + coefficient
        return value

    @staticmethod
    def slope(piece: Sequence[Any], t: Any) -> Any:
        return Piecewise.at([k * a for k, a in enumerate(piece)][1:] or [0], t)

    def branches(self, point: Row, jets: list[Jet], radius: Fraction) -> Iterator[Branch]:
        (u,) = jets
        reach = radius * u.steepest
        low = sum(b < u.value - reach - CLOSE for b in self.breaks)
        high = sum(b <= u.value + reach + CLOSE for b in self.breaks)
        value = self.at(self.pieces[sum(b < u.value for b in self.breaks)], u.value)
        slopes = [Fraction(self.slope(piece, u.value)) for piece in self.pieces]
        steepest = max(map(abs, slopes)) * u.steepest
        if len(set(slopes[low : high + 1])) == 1 or not any(u.gradient):
            yield Jet(value, u.scaled(slopes[low]), steepest), []
            return
        if reach:  # anywhere in the ball: every piece that may be met
            for slope in set(slopes[low : high + 1]):
                yield Jet(value, u.scaled(slope), steepest), []
            return
        yield Jet(value, u.scaled(slopes[low]), steepest), [u.scaled(Fraction(-1))]
        yield Jet(value, u.scaled(slopes[high]), steepest), [u.gradient]

    def has_kinks_beside(self, jets: list[Jet], radius: Fraction) -> bool:
        (u,) = jets
        return any(0 < abs(b - u.value) <= radius * u.steepest for b in self.breaks)

    def tape(self, x: Any, values: list[Any], tie: Rule) -> tuple[float, Any]:
        ((u, du),) = values
        breaks = [float(b) for b in self.breaks]
        piece = [float(a) for a in self.pieces[sum(b < u for b in breaks)]]
        if u in breaks:
            right = [float(a) for a in self.pieces[breaks.index(u) + 1]]
            slope = _between([self.slope(piece, u), self.slope(right, u)], tie)
        else:
            slope = self.slope(piece, u)
        return self.at(piece, u), slope * du

    def expression(self, w: Any, args: list[Any]) -> Any:
        return self.make(args[0])

    def __str__(self) -> str:
        return f"{self.name}{self.of[0]}"


@dataclass(frozen=True, eq=False)
class Max(Node):
    """The largest of some arguments."""

    of: tuple[Node, ...]

    def branches(self, point: Row, jets: list[Jet], radius: Fraction) -> Iterator[Branch]:
        value = max(u.value for u in jets)
        steepest = max(u.steepest for u in jets)
        floor = max(u.value - radius * u.steepest for u in jets) - CLOSE
        active = {u.gradient: u for u in jets if u.value + radius * u.steepest >= floor}
        for gradient in active:
            rows = [minus(gradient, other) for other in active if other != gradient]
            yield Jet(value, gradient, steepest), [] if radius else rows

    def has_kinks_beside(self, jets: list[Jet], radius: Fraction) -> bool:
        top = max(u.value for u in jets)
        steepest = max(u.steepest for u in jets)
        return any(0 < top - u.value <= radius * (u.steepest + steepest) for u in jets)

    def tape(self, x: Any, values: list[Any], tie: Rule) -> tuple[float, Any]:
        top = max(u for u, _ in values)
        slopes = [g for u, g in values if u == top]
        if len(slopes) == 1 or tie == "left":
            return top, slopes[0]
        return top, slopes[-1] if tie == "right" else sum(slopes) / len(slopes)

    def expression(self, w: Any, args: list[Any]) -> Any:
        return gs.max(args)

    def __str__(self) -> str:
        return "max(" + ", ".join(map(str, self.of)) + ")"


def exactly(function: Callable[[Decimal], Decimal], t: Fraction) -> Fraction:
    """Return a function of a rational to many digits."""
    with localcontext(Context(prec=DIGITS)):
        return Fraction(function(Decimal(t.numerator) / Decimal(t.denominator)))


@dataclass(frozen=True, eq=False)
class Smooth(Node):
    """A smooth function of one argument whose values or slopes are irrational."""

    name: str
    make: Callable[[Any], Any]
    value: Callable[[Decimal], Decimal]
    slope: Callable[[Decimal], Decimal]
    of: tuple[Node, ...]
    curved = True

    def branches(self, point: Row, jets: list[Jet], radius: Fraction) -> Iterator[Branch]:
        (u,) = jets
        gradient = u.scaled(exactly(self.slope, u.value))
        yield Jet(exactly(self.value, u.value), gradient, Fraction(0)), []

    def tape(self, x: Any, values: list[Any], tie: Rule) -> tuple[float, Any]:
        ((u, du),) = values
        exact = Fraction(u)
        return float(exactly(self.value, exact)), float(exactly(self.slope, exact)) * du

    def expression(self, w: Any, args: list[Any]) -> Any:
        return self.make(args[0])

    def __str__(self) -> str:
        return f"{self.name}{self.of[0]}"


@dataclass(frozen=True, eq=False)
class LogSumExp(Node):
    """log sum_i exp(u_i) - u_0: what softmax_cross_entropy makes of a row."""

    of: tuple[Node, ...]
    curved = True

    def branches(self, point: Row, jets: list[Jet], radius: Fraction) -> Iterator[Branch]:
        top = max(u.value for u in jets)
        powers = [exactly(lambda t: t.exp(), u.value - top) for u in jets]
        whole = sum(powers, Fraction(0))
        value = exactly(lambda t: t.ln(), whole) + top - jets[0].value
        mean = total([u.scaled(p / whole) for p, u in zip(powers, jets)])
        yield Jet(value, minus(mean, jets[0].gradient), Fraction(0)), []

    def tape(self, x: Any, values: list[Any], tie: Rule) -> tuple[float, Any]:
        u = np.array([v for v, _ in values])
        powers = np.exp(u - u.max())
        mean = sum((p * g for p, (_, g) in zip(powers / powers.sum(), values)), np.zeros(len(x)))
        return float(np.log(powers.sum()) + u.max() - u[0]), mean - values[0][1]

    def expression(self, w: Any, args: list[Any]) -> Any:
        return gs.softmax_cross_entropy(gs.stack(args).reshape(1, len(args)), [0])

    def __str__(self) -> str:
        return "cross_entropy(" + ", ".join(map(str, self.of)) + ")"


@dataclass(frozen=True, eq=False)
class Norm2(Node):
    """The length of a vector; at 0 its gradients are taken from a box around the unit ball."""

    of: tuple[Node, ...]
    curved = True

    def branches(self, point: Row, jets: list[Jet], radius: Fraction) -> Iterator[Branch]:
        square = sum((u.value**2 for u in jets), Fraction(0))
        if square:
            length = root_below(square, 8 * DIGITS)
            yield Jet(length, total([u.scaled(u.value / length) for u in jets]), Fraction(0)), []
            return
        for corner in range(2 ** len(jets)):
            signs = [Fraction(1 if corner >> k & 1 else -1) for k in range(len(jets))]
            parts = [u.scaled(s) for s, u in zip(signs, jets)]
            yield Jet(Fraction(0), total(parts), Fraction(0)), []

    def tape(self, x: Any, values: list[Any], tie: Rule) -> tuple[float, Any]:
        u = np.array([v for v, _ in values])
        length = math.hypot(*u)
        rates = u / length if length else 0.0 * u
        return length, sum((r * g for r, (_, g) in zip(rates, values)), np.zeros(len(x)))

    def expression(self, w: Any, args: list[Any]) -> Any:
        return gs.norm2(gs.stack(args))

    def __str__(self) -> str:
        return "norm2(" + ", ".join(map(str, self.of)) + ")"


class Tree:
    """A function of `dim` variables, given by its last node."""

    def __init__(self, top: Node, dim: int) -> None:
        self.top, self.dim = top, dim
        self.nodes: list[Node] = []
        self._number: dict[int, int] = {}
        self._list(top)

    def _list(self, node: Node) -> None:
        if id(node) in self._number:
            return
        for child in node.of:
            self._list(child)
        self._number[id(node)] = len(self.nodes)
        self.nodes.append(node)

    def args(self, node: Node, found: Sequence[Any]) -> list[Any]:
        """Return what was found for the arguments of a node."""
        return [found[self._number[id(child)]] for child in node.of]

    @property
    def curved(self) -> bool:
        """Whether anything in it is not made of affine pieces."""
        return any(node.curved for node in self.nodes)

    def program(self, tie: Rule) -> tuple[Callable[[Any], float], Callable[[Any], Any]]:
        """Return value and gradient as a program with automatic differentiation has them."""

        def run(x: Any) -> tuple[float, Any]:
            found: list[Any] = []
            for node in self.nodes:
                found.append(node.tape(x, self.args(node, found), tie))
            return found[-1]  # type: ignore[no-any-return]

        return lambda x: run(x)[0], lambda x: np.array(run(x)[1])

    def expression(self) -> Any:
        """Return the function in terms of the library's atoms."""
        w = gs.Variable(self.dim)
        found: list[Any] = []
        for node in self.nodes:
            found.append(node.expression(w, self.args(node, found)))
        return found[-1]

    def __str__(self) -> str:
        return str(self.top)


#: Breakpoints and pieces of the library's piecewise polynomials, from their definitions.
_ATOMS: dict[str, tuple[Callable[[Any], Any], list[Any], list[list[Any]]]] = {
    "relu": (gs.relu, [0], [[0], [0, 1]]),
    "abs": (gs.abs, [0], [[0, -1], [0, 1]]),
    "leaky_relu": (lambda u: gs.leaky_relu(u, 0.25), [0], [[0, Fraction(1, 4)], [0, 1]]),
    "hinge": (gs.hinge, [1], [[1, -1], [0]]),
    "pinball": (lambda u: gs.pinball(u, 0.25), [0], [[0, Fraction(-3, 4)], [0, Fraction(1, 4)]]),
    "ramp": (lambda u: gs.ramp(u, rho=2.0), [0, 2], [[1], [1, Fraction(-1, 2)], [0]]),
    "hard_tanh": (gs.hard_tanh, [-1, 1], [[-1], [0, 1], [1]]),
    "relu6": (gs.relu6, [0, 6], [[0], [0, 1], [6]]),
    "soft_threshold": (lambda u: gs.soft_threshold(u, 0.5), [Fraction(-1, 2), Fraction(1, 2)],
                       [[Fraction(1, 2), 1], [0], [Fraction(-1, 2), 1]]),
    "eps_insensitive": (lambda u: gs.eps_insensitive(u, 1.0), [-1, 1], [[-1, -1], [0], [-1, 1]]),
    "capped_l1": (gs.capped_l1, [-1, 0, 1], [[1], [0, -1], [0, 1], [1]]),
    "scad": (lambda u: gs.scad(u, 1.0, 3.0), [-3, -1, 0, 1, 3],
             [[2], [Fraction(-1, 4), Fraction(-3, 2), Fraction(-1, 4)], [0, -1], [0, 1],
              [Fraction(-1, 4), Fraction(3, 2), Fraction(-1, 4)], [2]]),
    "mcp": (lambda u: gs.mcp(u, 1.0, 2.0), [-2, 0, 2],
            [[1], [0, -1, Fraction(-1, 4)], [0, 1, Fraction(-1, 4)], [1]]),
    "huber": (gs.huber, [-1, 1],
              [[Fraction(-1, 2), -1], [0, 0, Fraction(1, 2)], [Fraction(-1, 2), 1]]),
    "squared_hinge": (gs.squared_hinge, [1], [[1, -2, 1], [0]]),
    "square": (gs.square, [], [[0, 0, 1]]),
    "cube": (lambda u: u**3, [], [[0, 0, 0, 1]]),
}  # fmt: skip

_HALF = Decimal("0.5")
_SMOOTH: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "softplus": (gs.softplus, lambda t: (1 + t.exp()).ln(), lambda t: 1 / (1 + (-t).exp())),
    "logistic": (gs.logistic, lambda t: (1 + (-t).exp()).ln(), lambda t: -1 / (1 + t.exp())),
    "pseudo_huber": (
        lambda u: gs.pseudo_huber(u, 0.5),
        lambda t: _HALF**2 * ((1 + (t / _HALF) ** 2).sqrt() - 1),
        lambda t: t / (1 + (t / _HALF) ** 2).sqrt(),
    ),
}

LINEAR = tuple(name for name, (_, _, pieces) in _ATOMS.items() if max(map(len, pieces)) <= 2)
KINKED = tuple(name for name, (_, breaks, _) in _ATOMS.items() if breaks)
SMOOTH = (*_SMOOTH, "log_sum")


def atom(name: str, u: Node) -> Node:
    """Return an atom of the library, by name."""
    if name == "log_sum":  # log(1 + |u|): as a smooth function of |u|
        return Smooth(name, gs.log_sum, lambda t: (1 + t).ln(), lambda t: 1 / (1 + t), (
            atom("abs", u),
        ))  # fmt: skip
    if name in _SMOOTH:
        return Smooth(name, *_SMOOTH[name], (u,))
    make, breaks, pieces = _ATOMS[name]
    exact = tuple(tuple(Fraction(a) for a in piece) for piece in pieces)
    return Piecewise(name, make, tuple(map(Fraction, breaks)), exact, (u,))
