"""The kinks of a function as searches see them, and the pieces around one point.

What holds at a point is asked from the program of the checker, exactly; everything else is float64.
When all kinks through y are kinks of affine entries and none feeds another, the gradients of the
pieces around y are `base + sum of slope_i row_i over the kinks on whose upper side the piece lies`.

The shortest vector of a Clarke subdifferential, searched in float64.

The answer is evidence: directions out of the point, and weights. Nothing here is trusted.

When is the sum rule exact at a point? And how far is the Clarke subdifferential from 0?

At y the subdifferential lies in `Box = base + sum_i [0, 1] k_i a_i` over the kinks through y. The
two sets are equal if and only if the spans of {a_i : k_i > 0} and {a_i : k_i < 0} meet in 0 only,
that is, if the rank of all rows is the sum of the two ranks. Then the box gives the exact distance;
otherwise it gives a lower bound, and only limits of gradients give an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from goldstein.calculus.evaluation import Evaluation, Pieces, Row, affine_row, has_kinks
from goldstein.calculus.expression import Expression
from goldstein.certificates.near import NearCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.enclosed.point import is_small, require_finite
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Piecewise
from goldstein.checker.rationals import nearest_float, sqrt_upper, squared_norm, to_fractions
from goldstein.checker.sides import Numbers, Point, Program, Side, point_at
from goldstein.errors import NotCertifiableError
from goldstein.numerics.budget import Budget
from goldstein.numerics.exact import exact_rank, fraction_lower, sqrt_lower
from goldstein.numerics.hull import Hull
from goldstein.numerics.streams import stream


class Kink(NamedTuple):
    """An entry of the argument of node k on a breakpoint, by its number; or in a row of ties."""

    k: int
    entry: int
    level: int


class Kinks:
    """A function seen through its kinks.

    Attributes
    ----------
    program : Program
    evaluation : Evaluation
        The same nodes in float64.
    places : list of int
        The nodes that have kinks.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> kinks = Kinks(sum(abs(Variable(2))))
    >>> [kink.entry for kink in kinks.active(kinks.examine([0.0, 1.0]))]
    [0]
    """

    def __init__(self, fun: Expression | Program) -> None:
        self.program = fun if isinstance(fun, Program) else fun.program()
        self.nodes, self.dim = self.program.nodes, self.program.dim
        self.evaluation = Evaluation(self.nodes)
        self.places = [k for k, node in enumerate(self.nodes) if has_kinks(node)]
        self._point: tuple[Any, Point] | None = None
        self._tape: tuple[bytes, Vector] = b"", np.zeros(0)

    # --- exactly -------------------------------------------------------------------------------

    def examine(self, y: Numbers, gradients: int = 1, box: Any = None) -> Point:
        """Decide on which side of every kink a point lies, or that it is on it.

        With a box, radii and switches: of a point in it.
        """
        if box is not None:
            return point_at(self.program, y, gradients, box)
        key = is_small(self.program, gradients), tuple(to_fractions(y))
        if self._point is None or self._point[0] != key:
            self._point = key, point_at(self.program, y, gradients)
        return self._point[1]

    def active(self, point: Point) -> list[Kink]:
        """Return the kinks through a point that it can leave, those of all nodes in one list."""
        side, found = Side(point, None, nodes=[]), list[Kink]()
        for k, ties in point.ties.items():
            node, arg, at = self.nodes[k], self.nodes[k].of[0], point.pieces[k]
            still = np.zeros(self.nodes[arg].size) if self.affine(k) else side.constant(arg)
            if isinstance(node, Piecewise):
                moving = (i for i in ties if node.jumps[at[i]] and not still[i])
                found += [Kink(k, i, int(at[i])) for i in moving]
            else:
                found += [
                    Kink(k, i, row) for row, tied in ties.items() if not still[tied].all()
                    for i in tied
                ]  # fmt: skip
        return found

    def affine(self, k: int) -> bool:
        """Is the argument of a node an affine function of the variable?"""
        return self.program.affine[self.nodes[k].of[0]]

    def levels(self, k: int) -> list[Fraction]:
        """Return the breakpoints at which a node has kinks."""
        node: Any = self.nodes[k]
        return [t for t, jump in zip(node.breakpoints, node.jumps) if jump]

    # --- float64 -------------------------------------------------------------------------------

    def tape(self, x: Vector) -> Vector:
        """Return the values of all nodes at a point."""
        key = x.tobytes()
        if self._tape[0] != key:
            self._tape = key, self.evaluation.tape(x)
        return self._tape[1]

    def argument(self, k: int, x: Vector) -> Vector:
        """Return the value of the argument of a node at a point."""
        return self.tape(x)[self.evaluation.at[self.nodes[k].of[0]]]

    def pieces(self, x: Vector) -> Pieces:
        """Return the pieces that float64 sees at a point."""
        return self.evaluation.pieces(self.tape(x))

    def gradient(self, x: Vector, pieces: Pieces) -> Vector:
        """Return the gradient of given pieces."""
        return self.evaluation.gradient(self.tape(x), pieces)

    def rows(self, point: Point, kinks: Sequence[Kink]) -> Matrix:
        """Return the derivatives of the entries that are on kinks."""
        t, found = self.tape(floats(point.y)), [np.zeros((0, self.dim))]
        for k, some in groupby(kinks, lambda kink: kink.k):
            entries = [kink.entry for kink in some]
            found.append(self.evaluation.rows(self.nodes[k].of[0], entries, t, point.pieces))
        return np.concatenate(found)

    def is_additive(self, kinks: Sequence[Kink], *, curved: bool = False) -> bool:
        """Return True when every choice of sides adds its own term to the gradient.

        Kinks of affine entries only, unless `curved` ones may be among them: to first order they
        are no different, which is enough for a search.
        """
        places = {kink.k for kink in kinks}
        if not all(isinstance(self.nodes[k], Piecewise) for k in places):
            return False
        if not (curved or all(map(self.affine, places))):
            return False
        # A kink inside another one would multiply with it instead.
        return not any(places & set(self.program.ancestors(k)) - {k} for k in places)


@dataclass
class LocalModel:
    """The pieces around a point in float64.

    Attributes
    ----------
    base : ndarray, shape (d,)
        Gradient of the piece below all kinks.
    kinks : list of Kink
        Those that move.
    rows : ndarray, shape (k, d)
    slopes : ndarray, shape (k,)
        Jump of the derivative along each row.
    """

    base: Vector
    kinks: list[Kink]
    rows: Matrix
    slopes: Vector

    @cached_property
    def terms(self) -> Matrix:
        """What each kink adds to the gradient on its upper side."""
        return self.slopes[:, None] * self.rows

    @cached_property
    def _lengths(self) -> Vector:
        return np.linalg.norm(self.rows, axis=1)

    def limit(self, v: Vector) -> Vector | None:
        """Return the gradient next to the point in a direction; None where that is on a kink."""
        length, rates = float(np.linalg.norm(v)), self.rows @ v
        if not 0.0 < length < np.inf or (np.abs(rates) <= 1e-11 * self._lengths * length).any():
            return None
        return self.base + (rates > 0) @ self.terms


@np.errstate(all="ignore")
def local_model(form: Kinks, point: Point) -> LocalModel:
    """Return the float64 model at a point whose kinks are additive."""
    kinks = form.active(point)
    rows = form.rows(point, kinks)
    moving = np.any(rows != 0.0, axis=1)
    kinks, rows = [kink for kink, moves in zip(kinks, moving) if moves], rows[moving]
    g = form.evaluation.cotangents(form.tape(floats(point.y)), point.pieces)
    outer = np.array([g[form.evaluation.at[k].start + i] for k, i, _ in kinks], dtype=float)
    nodes: Any = form.nodes
    jumps = np.array([nearest_float(nodes[k].jumps[t]) for k, _, t in kinks], dtype=float)
    model = LocalModel(g[: form.dim], kinks, rows, outer * jumps)
    if not all(np.isfinite(part).all() for part in (model.base, model.rows, model.slopes)):
        raise NotCertifiableError("the derivatives at this point overflow; rescale the data.")
    return model


def floats(y: Any) -> Vector:
    """Return exact numbers in float64."""
    if isinstance(y, np.ndarray):
        return y
    return np.array([nearest_float(q) for q in y])


#: Directions against the shortest vector, generated one after the other.
ROUNDS = 200

#: Random directions that are tried together; when they do not help, no more are.
CHUNK = 16


@dataclass
class Evidence:
    """Directions out of a point, and how to weigh the limits of gradients along them."""

    directions: Matrix
    weights: Vector
    eps: float

    @classmethod
    def of(cls, directions: list[Vector], weights: Vector, shortest: Vector) -> Evidence:
        """Return the directions that have weight."""
        used = np.flatnonzero(weights > 0)
        return cls(np.array(directions)[used], weights[used], float(np.linalg.norm(shortest)))


def box_shares(model: LocalModel) -> Vector:
    """Return the shares in [0, 1] that make `base + shares @ terms` shortest."""
    terms = model.terms
    if not np.any(terms):
        return np.zeros(len(terms))
    return np.asarray(lsq_linear(terms.T, -model.base, bounds=(0.0, 1.0), method="bvls").x)


#: Shows the limit of gradients along a direction; None where that stays on a kink.
Limit = Callable[[Vector], Vector | None]


def generic_evidence(
    form: Kinks,
    at: Point,
    batches: Sequence[Matrix],
    eps: float,
    rng: np.random.Generator,
    budget: Budget,
) -> Evidence | None:
    """Weigh the limits of gradients along directions, whatever kinks there are.

    A batch of directions is tried only if those before it do not suffice. Then directions against
    the shortest vector are added as long as they help: for a convex function the limit along such a
    direction is the most useful one there is.
    """
    point = floats(at.y)

    def limit(v: Vector) -> Vector | None:
        budget.spend()
        with suppress(NotCertifiableError):
            return form.gradient(point, Side(at, v).pieces)
        return None

    found = _Limits(limit, point.size, eps)
    return found.evidence(batches, partial(_against, found, rng), budget)


def additive_evidence(
    model: LocalModel,
    hints: Matrix,
    eps: float,
    rng: np.random.Generator,
    budget: Budget,
) -> Evidence | None:
    """Weigh them at a point whose kinks are additive.

    Independent kinks allow every choice of sides, so the box's shortest vector is split into
    choices. Otherwise directions are generated against the current shortest vector, as long as
    they help.
    """
    found = _Limits(model.limit, model.base.size, eps)
    batches = (
        np.concatenate([hints, _threshold_directions(model, box_shares(model))]),
        rng.standard_normal((32, model.base.size)),
        rng.standard_normal((64, len(model.rows))) @ model.rows,
    )
    return found.evidence(batches, partial(_descent_directions, model, found, rng), budget)


class _Limits:
    """Limits of gradients along directions, and the shortest vector of their hull so far."""

    def __init__(self, limit: Limit, dim: int, eps: float) -> None:
        self.limit, self.eps, self.hull = limit, eps, Hull(dim)
        self.directions: list[Vector] = []
        self._seen: set[bytes] = set()
        self.weights, self.shortest = np.zeros(0), np.full(dim, np.inf)
        self.length = math.inf

    def evidence(
        self, batches: Sequence[Matrix], more: Callable[[], Iterable[Vector]], budget: Budget
    ) -> Evidence | None:
        """Take batches as long as they help, the first one whole; then more, in rounds."""
        for batch in batches:
            for some in np.split(batch, range(CHUNK, len(batch), CHUNK)):
                if not self.shortened_by(some) and batch is not batches[0]:
                    break
        if not self.directions:
            return None
        for _ in range(ROUNDS):
            budget.spend()
            if self.length <= 0.5 * self.eps or not self.shortened_by(more()):
                break
        return Evidence.of(self.directions, self.weights, self.shortest)

    def shortened_by(self, some: Iterable[Vector]) -> bool:
        """Take directions, unless those so far suffice; return whether less is left with them."""
        before = self.length
        if self.length > 0.5 * self.eps and self._offer(some):
            self.weights, self.shortest = self.hull.solve()
            self.length = float(np.linalg.norm(self.shortest))
        return self.length <= before * (1.0 - 1e-6)

    def _offer(self, some: Iterable[Vector]) -> bool:
        """Take the directions that show something new; return whether there was one."""
        before = len(self.directions)
        for v in some:
            gradient = self.limit(v)
            if gradient is None or not np.isfinite(gradient).all():
                continue
            key = gradient.tobytes()
            if key not in self._seen:
                self._seen.add(key)
                self.directions.append(v)
                self.hull.add(gradient)
        return len(self.directions) > before


def _against(found: _Limits, rng: np.random.Generator) -> Iterator[Vector]:
    """Yield directions against the shortest vector, ties broken at random."""
    aim = -found.shortest / found.length
    for scale in (1e-6, 1e-3, 1e-1):
        yield aim + scale * rng.standard_normal(aim.size) / np.sqrt(aim.size)


def _threshold_directions(model: LocalModel, shares: Vector) -> Matrix:
    """Directions whose sides are the level sets of the shares: they average to the shares."""
    levels = np.unique(np.concatenate([[0.0], shares[(shares > 1e-9) & (shares < 1 - 1e-9)]]))
    sides = np.array([np.where(shares > t + 1e-12, 1.0, -1.0) for t in levels])
    rates = sides * np.linalg.norm(model.rows, axis=1)
    return np.linalg.lstsq(model.rows, rates.T, rcond=None)[0].T


def _descent_directions(model: LocalModel, found: _Limits, rng: np.random.Generator) -> Matrix:
    """Directions whose gradients point against the shortest vector, ties broken at random."""
    wanted = -np.sign(model.slopes) * (model.rows @ found.shortest)
    aim = np.linalg.lstsq(model.rows, wanted, rcond=None)[0]
    size = float(np.linalg.norm(aim)) or 1.0
    noise = rng.standard_normal((12, aim.size)) / np.sqrt(aim.size)
    aims = [aim + scale * size * e for e, scale in zip(noise, np.geomspace(1e-9, 1.0, 12))]
    mean = found.weights @ np.array(found.directions)
    return np.array([*aims, *(mean + size * 1e-3 * e for e in noise[:2])])


#: An exact number, or an interval around it: (midpoint, radius).
Proven = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class SpanTest:
    """The outcome of the span test at a point.

    Attributes
    ----------
    holds : bool
        The box is the subdifferential. False also when a slope's sign could not be proved.
    rank, rank_positive, rank_negative : int
        Exact ranks of all rows, of those with k_i > 0 and of those with k_i < 0.
    undecided : int
        Kinks whose slope could not be told from 0.
    """

    holds: bool
    rank: int
    rank_positive: int
    rank_negative: int
    undecided: int = 0


@dataclass(frozen=True)
class ClarkeDistance:
    """Proved bounds of the distance of 0 from the Clarke subdifferential at a point.

    Attributes
    ----------
    lower, upper : float
        Rounded down and up.
    test : SpanTest or None
        None when the kinks at the point are not additive.
    """

    lower: float
    upper: float
    test: SpanTest | None


def span_test(fun: Expression, point: Sequence[Any]) -> SpanTest:
    """Test in exact arithmetic whether the sum rule is exact at a point.

    Parameters
    ----------
    fun : Expression
    point : sequence of float or Fraction

    Examples
    --------
    >>> from goldstein.calculus import Variable, relu
    >>> d = Variable(2)
    >>> trap = relu(d[0]) + relu(d[1]) - relu(d[0] + d[1])
    >>> span_test(trap, [0, 0])
    SpanTest(holds=False, rank=2, rank_positive=2, rank_negative=1, undecided=0)
    """
    form = Kinks(fun)
    here = form.examine(point)
    if not form.is_additive(form.active(here)):
        raise NotCertifiableError(
            "the span test needs kinks of affine entries that do not feed each other; at this "
            "point there are others (max, norm2, or a kink inside a kink)."
        )
    return _span_test(_proven_model(form, here, form.active(here)), form.dim)


@dataclass
class _ProvenModel:
    """The pieces around a point with proved numbers: midpoints and radii, exact rows."""

    base: list[Proven]
    rows: list[Row]
    slopes: list[Proven]


def _proven_model(form: Kinks, point: Point, kinks: Sequence[Kink]) -> _ProvenModel:
    """Return the model at a point whose kinks are additive, with proved numbers."""
    nodes: Any = form.nodes
    rows = [affine_row(form.program, nodes[k].of[0], i)[0] for k, i, _ in kinks]
    others = [k for k in point.ties if not isinstance(nodes[k], Piecewise)]
    found = Side(point, None, nodes=others).cotangents()
    number = type(found[0]).of
    slopes = [found[k][[i]] * number([nodes[k].jumps[t]]) for k, i, t in kinks]
    return _ProvenModel(_proven(found[0]), rows, [_proven(slope)[0] for slope in slopes])


def _proven(numbers: Any) -> list[Proven]:
    if isinstance(numbers, Exact):
        return [(q, Fraction(0)) for q in numbers.fractions]
    require_finite(numbers.mid, numbers.rad)
    return list(zip(to_fractions(numbers.mid), to_fractions(numbers.rad)))


def _span_test(model: _ProvenModel, dim: int) -> SpanTest:
    groups: dict[int, list[Row]] = {1: [], -1: [], 0: []}
    for row, (mid, rad) in zip(model.rows, model.slopes, strict=True):
        if mid == 0 and rad == 0:
            continue
        groups[0 if abs(mid) <= rad else (1 if mid > 0 else -1)].append(row)
    some = (groups[1], groups[-1], groups[1] + groups[-1])
    dense = ([[row.get(k, Fraction(0)) for k in range(dim)] for row in rows] for rows in some)
    plus, minus, whole = map(exact_rank, dense)
    undecided = len(groups[0])
    return SpanTest(not undecided and whole == plus + minus, whole, plus, minus, undecided)


def clarke_distance(fun: Expression, point: Sequence[Any], *, seed: int = 0) -> ClarkeDistance:
    """Bound the distance of 0 from the Clarke subdifferential at a point, rigorously.

    Parameters
    ----------
    fun : Expression
    point : sequence of float or Fraction
        Taken exactly.
    seed : int
        Seed of the search for directions where the span test fails.

    Returns
    -------
    ClarkeDistance
        Where the span test holds, the two bounds agree up to the accuracy of a least-squares
        solver. `upper` is inf when no limit of gradients was found.

    Examples
    --------
    >>> from goldstein.calculus import Variable, norm1
    >>> clarke_distance(norm1(Variable(2)), [0, 1])
    ClarkeDistance(lower=1.0, upper=1.0, test=SpanTest(holds=True, rank=1, ...))
    """
    form = Kinks(fun)
    here = form.examine(point)
    if not form.is_additive(form.active(here)):
        return ClarkeDistance(0.0, _shown(fun, form, here, None, seed), None)
    local = local_model(form, here)
    model = _proven_model(form, here, local.kinks)
    test = _span_test(model, form.dim)
    shares = box_shares(local)
    nearest = local.base + shares @ local.terms
    lower = _box_lower(model, nearest)
    upper = _box_upper(model, shares) if test.holds else _shown(fun, form, here, local, seed)
    return ClarkeDistance(lower, upper, test)


def _box_lower(model: _ProvenModel, direction: Any) -> float:
    """Return a lower bound of |g| over the box, from one direction (weak duality)."""
    d = [Fraction(float(v)) for v in direction]
    if not any(d):
        return 0.0
    total = sum((m * v - r * abs(v) for (m, r), v in zip(model.base, d)), Fraction(0))
    for row, (mid, rad) in zip(model.rows, model.slopes):
        rate = sum((a * d[k] for k, a in row.items()), Fraction(0))
        total += min(Fraction(0), mid * rate - rad * abs(rate))
    if total <= 0:
        return 0.0
    # |d| is irrational: divide the squares.
    return max(0.0, fraction_lower(Fraction(sqrt_lower(total * total / squared_norm(d)))))


def _box_upper(model: _ProvenModel, shares: Any) -> float:
    """Return an upper bound of |base + sum share_i k_i a_i|; the shares are taken exactly."""
    total: list[Proven] = list(model.base)
    for share, row, (mid, rad) in zip(shares.tolist(), model.rows, model.slopes):
        weight = Fraction(min(max(share, 0.0), 1.0))
        for k, a in row.items():
            m, r = total[k]
            total[k] = (m + weight * mid * a, r + weight * rad * abs(a))
    return sqrt_upper(squared_norm([abs(m) + r for m, r in total]))


def _shown(fun: Expression, form: Kinks, here: Point, model: LocalModel | None, seed: int) -> float:
    """Return the best upper bound that directions show."""
    rng = stream(seed, 0, "clarke")
    directions, weights = np.ones((1, form.dim)), np.ones(1)
    if model is None or len(model.rows):
        if model is None:
            some = rng.standard_normal((8 * form.dim + 32, form.dim))
            evidence = generic_evidence(form, here, [some], 0.0, rng, Budget())
        else:
            evidence = additive_evidence(model, np.zeros((0, form.dim)), 0.0, rng, Budget())
        if evidence is None:
            return math.inf
        directions, weights = evidence.directions, evidence.weights
    try:
        pivot = to_fractions(here.y)
        return NearCertificate.prove(fun, floats(here.y), pivot, directions, weights).eps
    except NotCertifiableError:
        return math.inf
