"""A head start for expressions: jumps to the minima of piecewise linear models.

The expression is read as a chain of scalar functions: each takes an argument that depends on x and
on the functions below it, and what lies between them (sums, products, linear maps) is replaced by
its tangent. Kinks made of straight pieces stay as they are. Curved functions are replaced by their
tangents too, or, where the model is to be true far away, by straight lines between some knots. The
minimum of such a model over a box is a linear program where all pieces are convex and side by side,
and one with integers (which piece?) where they are nested or not convex. A function that is
piecewise linear itself is its own model: then the minimum is that of the function over the box.

Where kinks are curved or nested, as in Nesterov's Chebyshev-Rosenbrock functions, a search by
gradients creeps along a valley that is folded exponentially often, or ends in one of exponentially
many points that are stationary and no minima. The model sees the folds. Leaps
over boxes of shrinking size, with lines between knots in place of curved functions, find the
region; from where each of them lands, steps on tangents (the prox-linear method, which converges
quadratically to sharp minima) find the bottom. What comes out is a start for a search: nothing
here is trusted, and where a leap promises nothing it is the last.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from goldstein.calculus.evaluation import Evaluation, has_kinks
from goldstein.calculus.expression import Expression
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.irrational import Smooth
from goldstein.checker.nodes import Max, Node, Piecewise, Variable
from goldstein.errors import OutOfCalls
from goldstein.oracles import CountedOracle, Oracle

#: So many integers make a program that is solved in a second or so; one with 200 took six.
MOST_INTEGERS = 150

#: A program is solved up to this part of its value, or given up after so many branches: no clock,
#: or a seed would not give the same run again.
GAP, NODES = 0.05, 2000

#: Pieces that rule on a shorter part of the box are left out.
THIN = 1e-7

#: One entry of a node.
Key = tuple[int, int]
#: A straight piece: constant, slope, and the interval where it rules.
Piece = tuple[float, float, float, float]


def is_straight(node: Node) -> bool:
    """Is this node a kink between straight pieces, which the model has as it is?"""
    one = isinstance(node, Piecewise) or (isinstance(node, Max) and node.size == 1)
    return one and has_kinks(node) and node.flat


def links(found: Evaluation) -> list[int]:
    """Return the nodes that a model has as they are, or as lines between knots."""
    # Sums of squares are evaluated as one: their terms have no place of their own.
    return [
        k for k, n in enumerate(found.nodes) if found.at[k].stop and (is_straight(n) or (
            isinstance(n, Piecewise | Smooth) and not n.affine and not has_kinks(n)))
    ]  # fmt: skip


@dataclass
class Tangent:
    """What an argument adds to its value: slope d + the sum of c_k times what the k-th adds."""

    value: float
    slope: Vector
    below: dict[Key, float]


@dataclass
class Link:
    """One function of the chain: its node, its value, and the tangents of its arguments."""

    key: Key
    node: Node
    value: float
    arguments: list[Tangent]


@dataclass
class Model:
    """An expression about one point.

    Attributes
    ----------
    root : Tangent
        The expression itself.
    chain : list of Link
        From the bottom to the top.
    knots : int
        Lines in place of every curved function; 0 for its tangent.
    """

    root: Tangent
    chain: list[Link]
    knots: int

    @classmethod
    def at(cls, found: Evaluation, x: Vector, knots: int = 0) -> Model:
        """Return the model about x."""
        t, nodes = found.tape(x), found.nodes
        inside = [k for k in links(found) if knots > 0 or has_kinks(nodes[k])]
        stops = frozenset(inside)
        chain: list[Link] = []
        for k in inside:
            (arg,) = nodes[k].of
            us = [_tangent(found, arg, i, t, stops) for i in range(nodes[arg].size)]
            heights = t[found.at[k]].tolist()
            if isinstance(nodes[k], Max):
                chain.append(Link((k, 0), nodes[k], heights[0], us))
            else:
                chain += [Link((k, i), nodes[k], heights[i], [u]) for i, u in enumerate(us)]
        return cls(_tangent(found, found.last, 0, t, stops), chain, knots)

    def minimise(self, radius: float, seconds: float = math.inf) -> tuple[Vector, float] | None:
        """Return a step of entries at most `radius` and by how much the model falls, or None."""
        program = _Program(self, radius)
        return None if sum(program.whole) > MOST_INTEGERS else program.solve(seconds)


def _tangent(found: Evaluation, k: int, entry: int, t: Vector, stops: frozenset[int]) -> Tangent:
    """Return the derivatives of one entry in x and in the functions below, by reverse mode."""
    start = np.zeros(found.nodes[k].size)
    start[entry] = 1.0
    g = found.cotangents(t, None, k, start, stops)
    below = {(b, i): float(c) for b in sorted(stops) for i, c in enumerate(g[found.at[b]]) if c}
    return Tangent(float(t[found.at[k]][entry]), g[: found.dim].copy(), below)


class _Program:
    """The program of a model over a box, all of it in units of the radius and relative to x."""

    def __init__(self, model: Model, radius: float) -> None:
        self.model, self.radius = model, radius
        self.rows: list[tuple[dict[int, float], float, float]] = []
        self.place: dict[Key, int] = {}
        dim = self.model.root.slope.size
        self.low, self.high, self.whole = [-1.0] * dim, [1.0] * dim, [0] * dim
        nested = {key for link in self.model.chain for u in link.arguments for key in u.below}
        for link in self.model.chain:
            # With a sign known, a convex function may lie above its graph: the minimum is on it.
            weight = None if link.key in nested else self.model.root.below.get(link.key, 0.0)
            if isinstance(link.node, Max):
                self._largest(link, weight is not None and weight >= 0.0)
            else:
                self._scalar(link, weight)

    def _variable(self, low: float, high: float, whole: bool = False) -> int:
        self.low.append(low)
        self.high.append(high)
        self.whole.append(int(whole))
        return len(self.low) - 1

    def _row(self, terms: Iterable[tuple[int, float]], low: float, high: float) -> None:
        row: dict[int, float] = {}
        for place, c in terms:
            row[place] = row.get(place, 0.0) + c
        # HiGHS takes violations as they are, and repairs (and says so, with a line on stdout that
        # no option silences) what it finds too large: no row is larger than its unknowns.
        largest = max(map(abs, row.values()), default=0.0)
        if largest > 1.0 and math.isfinite(largest):
            row = {place: c / largest for place, c in row.items()}
            low, high = low / largest, high / largest
        self.rows.append((row, low, high))

    def _terms(self, u: Tangent, factor: float = 1.0) -> list[tuple[int, float]]:
        own = [(int(i), factor * float(u.slope[i])) for i in np.flatnonzero(u.slope)]
        return own + [(self.place[key], factor * c) for key, c in u.below.items()]

    def _range(self, u: Tangent) -> tuple[float, float]:
        ends = [(c * self.low[j], c * self.high[j]) for j, c in self._terms(u)]
        return math.fsum(map(min, ends)), math.fsum(map(max, ends))

    def _largest(self, link: Link, relaxed: bool) -> None:
        """t = max u_i: t >= u_i, and t <= u_i for the chosen one."""
        gaps = [(u.value - link.value) / self.radius for u in link.arguments]
        inner = map(self._range, link.arguments)
        ranges = [(gap + low, gap + high) for gap, (low, high) in zip(gaps, inner)]
        floor = max(low for low, _ in ranges)
        top = max(high for _, high in ranges)
        t = self.place[link.key] = self._variable(floor, top)
        choices = []
        for u, gap, (low, high) in zip(link.arguments, gaps, ranges):
            if high < floor:
                continue
            self._row([*self._terms(u), (t, -1.0)], -math.inf, -gap)
            if not relaxed:
                z = self._variable(0.0, 1.0, whole=True)
                choices.append(z)
                room = top - low
                self._row([(t, 1.0), (z, room), *self._terms(u, -1.0)], -math.inf, gap + room)
        if choices:
            self._row([(z, 1.0) for z in choices], 1.0, 1.0)

    def _scalar(self, link: Link, weight: float | None) -> None:
        (u,) = link.arguments
        pieces = self._pieces(link, *self._range(u))
        heights = [c + s * end for c, s, a, b in pieces for end in (a, b)]
        t = self.place[link.key] = self._variable(min(heights), max(heights))
        sign = -1.0 if weight is not None and weight < 0.0 else 1.0
        if len(pieces) == 1:
            c, s, _, _ = pieces[0]
            self._row([*self._terms(u, s), (t, -1.0)], -c, -c)
        elif weight is not None and all(sign * p[1] <= sign * q[1] for p, q in pairwise(pieces)):
            for c, s, _, _ in pieces:
                self._row([*self._terms(u, sign * s), (t, -sign)], -math.inf, -sign * c)
        else:
            self._choose(t, u, pieces)

    def _pieces(self, link: Link, low: float, high: float) -> list[Piece]:
        """Return the straight pieces between two ends of the argument."""
        node, u, unit = link.node, link.arguments[0].value, self.radius
        if isinstance(node, Piecewise) and is_straight(node):
            ends = [-math.inf, *((float(t) - u) / unit for t in node.breakpoints), math.inf]
            straight = [
                ((c - link.value + s * u) / unit, s, max(a, low), min(b, high))
                for (c, s), (a, b) in zip(_floats(node), pairwise(ends))
            ]
            return [piece for piece in straight if piece[3] - piece[2] > THIN] or straight[:1]
        at = np.linspace(low, high, self.model.knots + 1)
        at[np.abs(at).argmin()] = 0.0  # the model is exact at x
        with np.errstate(all="ignore"):  # parts of the box may be outside the domain
            heights = (_values(node, u + unit * at) - link.value) / unit
            slopes = np.diff(heights) / np.diff(at)
        if not (np.isfinite(heights).all() and np.isfinite(slopes).all()):
            return [(0.0, 0.0, low, high)]
        knots = zip(heights.tolist(), slopes.tolist(), pairwise(at.tolist()))
        return [(h - s * a, s, a, b) for h, s, (a, b) in knots]

    def _choose(self, t: int, u: Tangent, pieces: list[Piece]) -> None:
        """The argument is the sum of its parts, all of them 0 but that of the chosen piece."""
        parts = []
        for c, s, a, b in pieces:
            z = self._variable(0.0, 1.0, whole=True)
            part = self._variable(min(a, 0.0), max(b, 0.0))
            self._row([(part, 1.0), (z, -b)], -math.inf, 0.0)
            self._row([(part, -1.0), (z, a)], -math.inf, 0.0)
            parts.append((c, s, z, part))
        self._row([(z, 1.0) for _, _, z, _ in parts], 1.0, 1.0)
        self._row([*self._terms(u), *((part, -1.0) for *_, part in parts)], 0.0, 0.0)
        shares = [(part, s) for _, s, _, part in parts] + [(z, c) for c, _, z, _ in parts]
        self._row([(t, -1.0), *shares], 0.0, 0.0)

    def solve(self, seconds: float) -> tuple[Vector, float] | None:
        """Return the step and the fall."""
        root, count = self.model.root, len(self.low)
        cost = np.zeros(count)
        for place, c in self._terms(root):
            cost[place] += c
        entries = [(i, j, c) for i, (row, _, _) in enumerate(self.rows) for j, c in row.items()]
        if not (np.isfinite(cost).all() and all(math.isfinite(c) for *_, c in entries)):
            return None
        at, to, factors = (np.array(column) for column in zip(*entries))
        limits = LinearConstraint(
            sparse.csr_array((factors, (at, to)), shape=(len(self.rows), count)),
            [low for _, low, _ in self.rows], [high for _, _, high in self.rows],
        )  # fmt: skip
        found = milp(
            cost, integrality=np.array(self.whole), bounds=Bounds(self.low, self.high),
            constraints=limits,
            options={"node_limit": NODES, "mip_rel_gap": GAP}
            | ({} if math.isinf(seconds) else {"time_limit": seconds}),
        )  # fmt: skip
        if found.x is None:
            return None
        step: Vector = self.radius * found.x[: root.slope.size]
        return step, -self.radius * float(cost @ found.x)


def _floats(node: Piecewise) -> list[tuple[float, float]]:
    return [(float(c[0]), float(c[1])) for c in node.pieces]


def _values(node: Node, u: Vector) -> Vector:
    """Return the values of a function of one number."""
    variable, n = Variable((), (), u.size), u.size
    return Evaluation([variable, replace(node, of=(0,), sizes=(n,), size=n)]).tape(u)[n:]


#: Links of the chain at most: each is a row or two of a program, and a derivative to be computed.
MOST_LINKS = 80

#: Lines in place of a curved function.
KNOTS = 10

#: The first box reaches this far, in units of the largest entry of x (and of 1); each next one
#: half as far, so many times.
REACH, BOXES = 2.0, 10

#: From where they end the leaps begin again, so many times at most, while f falls by this part of
#: the whole fall: from another point the lines between knots are others.
ROUNDS, AGAIN = 4, 1e-6

#: Steps on tangents after each leap.
STEPS = 12

#: A leap that promises less than this part of what was gained so far is the last.
WORTH = 1e-9

#: A step is taken where f falls by this part of what the model promises.
ENOUGH, GOOD = 0.1, 0.7

#: Steps end where a model promises less than this, in units of the box.
FLAT = 1e-9

#: Part of the calls of a run that the head start may take.
SHARE = 0.25


def applies(root: Oracle) -> bool:
    """Are there few kinks, all of them straight, and some nested, or several and some curved?

    Where all arguments are affine the kinks lie side by side, and a single curved one makes one
    valley: searches by gradients do well there.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> x = Variable(2)
    >>> applies(sum(abs(x))), applies(abs(x[1] - 2 * abs(x[0])))
    (False, True)
    """
    if not isinstance(root, Expression) or root.shape != ():
        return False
    nodes, affine, kinked = root.evaluation.nodes, list[bool](), list[bool]()
    for node in nodes:
        affine.append(node.affine and all(affine[a] for a in node.of))
        kinked.append(has_kinks(node) or any(kinked[a] for a in node.of))
    kinks = [node for node in nodes if has_kinks(node)]
    curved = any(not affine[node.of[0]] for node in kinks)
    several = sum(nodes[node.of[0]].size for node in kinks) > 1
    nested = any(kinked[node.of[0]] for node in kinks)
    few = sum(nodes[k].sizes[0] for k in links(root.evaluation)) <= MOST_LINKS
    return few and all(map(is_straight, kinks)) and (nested or (curved and several))


def head_start(
    expression: Expression, oracle: CountedOracle, x: Vector, deadline: float = math.inf
) -> Vector:
    """Return a point where f is no larger than at x; `oracle` counts, and asks for the values."""
    search = _ProxLinear(expression, oracle, deadline)
    spare = (oracle.limit - oracle.calls) * (1.0 - SHARE)
    with oracle.reserved(0 if math.isinf(spare) else int(spare)):
        return search.run(x)


class _ProxLinear:
    def __init__(self, expression: Expression, oracle: CountedOracle, deadline: float) -> None:
        self.expression, self.oracle, self.deadline = expression, oracle, deadline
        self.best: tuple[float, Vector] = math.inf, np.zeros(0)

    def run(self, x: Vector) -> Vector:
        self.best = math.inf, x
        with suppress(OutOfCalls):
            first = self.value(x)
            for _ in range(ROUNDS):
                before = self.best[0]
                self.shrink(first)
                if before - self.best[0] <= AGAIN * (first - self.best[0]):
                    break
        return self.best[1]

    def shrink(self, first: float) -> None:
        """Go to the minima of models over boxes of shrinking size; f was `first` at the start."""
        reach = REACH * max(1.0, float(np.abs(self.best[1]).max()))
        for _ in range(BOXES):
            fx, x = self.best
            step, promised = self.minimise(x, reach, KNOTS)
            if promised <= WORTH * max(first - fx, reach):
                break
            y = x + step
            self.follow(y, self.value(y), reach / KNOTS)
            reach /= 2.0
        fx, x = self.best
        self.follow(x, fx, reach)

    def follow(self, x: Vector, fx: float, reach: float) -> None:
        """Go down on tangents."""
        for _ in range(STEPS):
            step, promised = self.minimise(x, reach)
            if promised <= FLAT * reach:
                return
            y = x + step
            fy = self.value(y)
            if fy <= fx - ENOUGH * promised:
                reach *= 2.0 if fx - fy > GOOD * promised else 1.0
                x, fx = y, fy
            else:
                reach = float(np.abs(step).max()) / 4.0

    def value(self, x: Vector) -> float:
        value = self.oracle.trial_value(x)
        if value < self.best[0]:
            self.best = value, x.copy()
        return value

    def minimise(self, x: Vector, reach: float, knots: int = 0) -> tuple[Vector, float]:
        """Return the step to the minimum of a model, and what it promises; 0 where there is none.

        All derivatives that a model is made of count as one gradient.
        """
        left = self.deadline - time.perf_counter()
        if left <= 0.0 or self.oracle.calls >= self.oracle.limit:
            raise OutOfCalls("a model")
        self.oracle.spend(0, 1)
        found = Model.at(self.expression.evaluation, x, knots).minimise(reach, left)
        return (np.zeros(x.size), 0.0) if found is None else found
