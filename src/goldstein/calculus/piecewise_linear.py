"""A model of an expression about a point: smooth parts by their tangents, kinks as they are.

F is written as a chain of kinks: each is a piecewise linear function of an argument that depends
smoothly on x and on the kinks below it. With tangents in place of the smooth parts the model is
piecewise linear, and its minimum over a box is a linear program where the kinks are convex and
unnested, and one with a few integers (which piece?) where they are not. A function that is
piecewise linear itself is its own model: then the minimum is that of F over the box.

Nothing here is trusted. A search jumps to such a minimum, and asks the function what it is worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from goldstein.calculus.arithmetic import FLOAT
from goldstein.calculus.atoms.base import Elementwise, PiecewisePolynomial
from goldstein.calculus.atoms.maximum import Max
from goldstein.calculus.expression import Expression, KinkNode
from goldstein.checker.arrays import Vector

#: So many entries of kinks are a small program, and so many pieces that need an integer.
MOST_KINKS, MOST_INTEGERS = 120, 60

#: Seconds that one program may take.
PATIENCE = 1.0


def is_modelled(node: Expression) -> bool:
    """Is this kink piecewise linear, so that the model has it as it is?"""
    if isinstance(node, Max):
        return node.has_kinks
    return (
        isinstance(node, Elementwise)
        and node.has_kinks
        and isinstance(node.function, PiecewisePolynomial)
        and node.function.degree <= 1
    )


def applies(root: Expression) -> bool:
    """Has the function few kinks, all piecewise linear, and some that are curved or nested?

    Where all of them are flat and side by side the searches by gradients do well.
    """
    nodes = root.kink_nodes
    return (
        bool(nodes)
        and all(is_modelled(node) for node in nodes)
        and sum(node.args[0].size for node in nodes) <= MOST_KINKS
        and any(not node.args[0].is_affine for node in nodes)
    )


@dataclass
class Tangent:
    """An affine function of the step and of the kinks below: constant + slope d + sum c_k t_k."""

    constant: float
    slope: Vector
    below: dict[tuple[int, int], float]


@dataclass
class Model:
    """The tangents of a function at one point.

    Attributes
    ----------
    root : Tangent
        The function itself.
    kinks : list of (key, node, arguments)
        Kinks from the bottom to the top; the key of entry i of a node is (id(node), i).
    """

    root: Tangent
    kinks: list[tuple[tuple[int, int], KinkNode, list[Tangent]]]

    @classmethod
    def at(cls, expression: Expression, x: Vector) -> Model:
        """Return the model about x."""
        values = expression._values(x)
        heights = {id(node): np.reshape(values[id(node)], -1) for node in expression.kink_nodes}

        def tangent(node: Expression, entry: int) -> Tangent:
            start = np.zeros(node.size)
            start[entry] = 1.0
            slope, kinks = _sweep(node, start.reshape(node.shape), values)
            below = {
                (key, i): float(c)
                for key, row in kinks.items()
                for i, c in enumerate(np.reshape(row, -1))
                if c
            }
            constant = float(np.reshape(values[id(node)], -1)[entry])
            constant -= math.fsum(c * float(heights[key][i]) for (key, i), c in below.items())
            return Tangent(constant, np.reshape(slope, -1), below)

        kinks: list[tuple[tuple[int, int], KinkNode, list[Tangent]]] = []
        for node in expression.kink_nodes:
            inner = node.args[0]
            arguments = [tangent(inner, i) for i in range(inner.size)]
            if isinstance(node, Max):
                kinks.append(((id(node), 0), node, arguments))
            else:
                kinks += [((id(node), i), node, [u]) for i, u in enumerate(arguments)]
        return cls(tangent(expression, 0), kinks)

    def minimise(self, radius: float, seconds: float = PATIENCE) -> tuple[Vector, float] | None:
        """Return a step of entries at most `radius` and the model there, or None."""
        program = _Program(self, radius)
        return None if program.integers > MOST_INTEGERS else program.solve(seconds)


def _sweep(node: Expression, start: Any, values: dict[int, Any]) -> tuple[Any, dict[int, Any]]:
    """Return derivatives in x and in the outputs of kinks, down to the first kink of every way."""
    found: dict[int, Any] = {id(node): start}
    kinks: dict[int, Any] = {}
    for part in reversed(node.plan):
        cotangent = found.get(id(part))
        if cotangent is None or not part.args:
            continue
        if is_modelled(part):
            kinks[id(part)] = cotangent
            continue
        inputs = [values[id(a)] for a in part.args]
        for argument, more in zip(part.args, part.backward(cotangent, inputs, FLOAT, None)):
            before = found.get(id(argument))
            total = more if before is None else before + more
            found[id(argument)] = FLOAT.shaped(total, argument.shape)
    slope = found.get(id(node.variable))
    return (np.zeros(node.variable.shape) if slope is None else slope), kinks


@dataclass
class _Program:
    """The linear program (with integers) of a model over a box."""

    model: Model
    radius: float
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        dim = self.model.root.slope.size
        self.low, self.high = [-self.radius] * dim, [self.radius] * dim
        self.whole = [0] * dim
        self.place: dict[tuple[int, int], int] = {}
        nested = {key for _, _, us in self.model.kinks for u in us for key in u.below}
        for key, node, arguments in self.model.kinks:
            free = key not in nested
            weight = self.model.root.below.get(key, 0.0)
            if isinstance(node, Max):
                self._largest(key, arguments, relaxed=free and weight >= 0.0)
            else:
                self._piecewise(key, node, arguments[0], weight if free else math.nan)

    @property
    def integers(self) -> int:
        return sum(self.whole)

    def _variable(self, low: float, high: float, whole: bool = False) -> int:
        self.low.append(low)
        self.high.append(high)
        self.whole.append(int(whole))
        return len(self.low) - 1

    def _row(self, terms: Iterable[tuple[int, float]], low: float, high: float) -> None:
        row: dict[int, float] = {}
        for place, c in terms:
            row[place] = row.get(place, 0.0) + c
        self.rows.append((row, low, high))

    def _terms(self, u: Tangent, factor: float = 1.0) -> list[tuple[int, float]]:
        own = [(int(i), factor * float(u.slope[i])) for i in np.flatnonzero(u.slope)]
        return own + [(self.place[key], factor * c) for key, c in u.below.items()]

    def _range(self, u: Tangent) -> tuple[float, float]:
        low = high = u.constant
        for place, c in self._terms(u):
            ends = c * self.low[place], c * self.high[place]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def _largest(self, key: tuple[int, int], arguments: list[Tangent], relaxed: bool) -> None:
        ranges = [self._range(u) for u in arguments]
        floor = max(low for low, _ in ranges)
        t = self.place[key] = self._variable(floor, max(high for _, high in ranges))
        rivals = [(u, r) for u, r in zip(arguments, ranges) if r[1] >= floor]
        for u, _ in rivals:
            self._row([*self._terms(u), (t, -1.0)], -math.inf, -u.constant)
        if relaxed:
            return
        choices = [self._variable(0.0, 1.0, whole=True) for _ in rivals]
        for (u, (low, _)), z in zip(rivals, choices):
            room = self.high[t] - low
            self._row([(t, 1.0), (z, room), *self._terms(u, -1.0)], -math.inf, u.constant + room)
        self._row([(z, 1.0) for z in choices], 1.0, 1.0)

    def _piecewise(self, key: tuple[int, int], node: KinkNode, u: Tangent, weight: float) -> None:
        assert isinstance(node, Elementwise)
        function = node.function
        assert isinstance(function, PiecewisePolynomial)
        low, high = self._range(u)
        ends = [-math.inf, *function.levels.tolist(), math.inf]
        pieces = [
            (float(c[0]), float(c[1]), max(a, low), min(b, high))
            for c, a, b in zip(function.pieces, ends, ends[1:])
            if max(a, low) <= min(b, high)
        ]
        heights = [c + s * end for c, s, a, b in pieces for end in (a, b)]
        t = self.place[key] = self._variable(min(heights), max(heights))
        slopes = [s for _, s, _, _ in pieces]
        sign = 1.0 if weight >= 0.0 else -1.0
        if len(pieces) == 1:
            c, s, _, _ = pieces[0]
            self._row([*self._terms(u, s), (t, -1.0)], -c - s * u.constant, -c - s * u.constant)
        elif not math.isnan(weight) and all(sign * a <= sign * b for a, b in pairwise(slopes)):
            for c, s, _, _ in pieces:  # convex and to be small, or concave and to be large
                self._row(
                    [*self._terms(u, sign * s), (t, -sign)],
                    -math.inf, -sign * (c + s * u.constant),
                )  # fmt: skip
        else:
            self._choice(t, u, pieces)

    def _choice(self, t: int, u: Tangent, pieces: list[tuple[float, float, float, float]]) -> None:
        parts = []
        for c, s, a, b in pieces:
            z = self._variable(0.0, 1.0, whole=True)
            part = self._variable(min(a, 0.0), max(b, 0.0))
            self._row([(part, 1.0), (z, -b)], -math.inf, 0.0)
            self._row([(part, -1.0), (z, a)], -math.inf, 0.0)
            parts.append((c, s, z, part))
        self._row([(z, 1.0) for _, _, z, _ in parts], 1.0, 1.0)
        self._row(
            [*self._terms(u), *((part, -1.0) for *_, part in parts)], -u.constant, -u.constant
        )
        shares = [(part, s) for _, s, _, part in parts] + [(z, c) for c, _, z, _ in parts]
        self._row([(t, -1.0), *shares], 0.0, 0.0)

    def solve(self, seconds: float) -> tuple[Vector, float] | None:
        """Return the step and the model's value there."""
        root, count = self.model.root, len(self.low)
        cost = np.zeros(count)
        for place, c in self._terms(root):
            cost[place] += c
        entries = [(i, j, c) for i, (row, _, _) in enumerate(self.rows) for j, c in row.items()]
        i, j, c = (np.array(column) for column in zip(*entries))
        matrix = sparse.csr_array((c, (i, j)), shape=(len(self.rows), count))
        limits = LinearConstraint(
            matrix, [low for _, low, _ in self.rows], [high for _, _, high in self.rows]
        )
        found = milp(
            cost, integrality=np.array(self.whole), bounds=Bounds(self.low, self.high),
            constraints=limits, options={"time_limit": seconds},
        )  # fmt: skip
        if found.x is None:
            return None
        return found.x[: root.slope.size], root.constant + float(cost @ found.x)
