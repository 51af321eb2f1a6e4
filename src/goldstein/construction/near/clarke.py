"""When is the sum rule exact at a point? And how far is the Clarke subdifferential from 0?

At y the subdifferential lies in `Box = base + sum_i [0, 1] k_i a_i` over the kinks through y. The
two sets are equal if and only if the spans of {a_i : k_i > 0} and {a_i : k_i < 0} meet in 0 only,
that is, if the rank of all rows is the sum of the two ranks. Then the box gives the exact distance;
otherwise it gives a lower bound, and only limits of gradients give an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.calculus.expression import Expression
from goldstein.calculus.rows import Row
from goldstein.certificates.near import NearCertificate
from goldstein.checker.enclosed.point import require_finite
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Piecewise
from goldstein.checker.rationals import sqrt_upper, squared_norm, to_fractions
from goldstein.checker.sides import Point, Side
from goldstein.construction.near.evidence import additive_evidence, box_shares, generic_evidence
from goldstein.construction.near.kinks import Kink, Kinks, LocalModel, floats, local_model
from goldstein.errors import NotCertifiableError
from goldstein.numerics.directed import fraction_lower, sqrt_lower
from goldstein.numerics.exact import exact_rank
from goldstein.numerics.streams import stream

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
    rows = [form.row(nodes[k].of[0], i)[0] for k, i, _ in kinks]
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
            evidence = generic_evidence(form, here, some)
        else:
            evidence = additive_evidence(model, np.zeros((0, form.dim)), 0.0, rng)
        if evidence is None:
            return math.inf
        directions, weights = evidence.directions, evidence.weights
    try:
        pivot = to_fractions(here.y)
        return NearCertificate.prove(fun, floats(here.y), pivot, directions, weights).eps
    except NotCertifiableError:
        return math.inf
