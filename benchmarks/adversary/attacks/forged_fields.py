"""Certificates of every kind with fields changed and seals made right again.

The problems are small and made of affine pieces, so that the truth of whatever a changed
certificate says is known exactly: `false` reads it from the certificate's own fields.
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import (
    below,
    exact,
    forged,
    radius,
    square_distance,
    through_a_file,
    verdict,
)
from benchmarks.adversary.cells import gradients, least
from benchmarks.adversary.constrained import Problem
from benchmarks.adversary.mutations import changed_fields
from benchmarks.adversary.random_trees import two_sided
from benchmarks.adversary.shortest import distance
from benchmarks.adversary.suite import Attack, Rng, Seen
from benchmarks.adversary.trees import Affine, Node, Sum, Tree, atom

import goldstein as gs

#: Different honest certificates of each kind; each is changed in many ways.
VARIANTS = 8


@dataclass
class Base:
    """An honest certificate, what it is verified with, and the truth about claims like it."""

    claim: Any
    function: tuple[Any, ...]
    limits: dict[str, Any]
    false: Callable[[Any], str]


def _convex(rng: Rng, dim: int) -> Tree:
    """Return a sum of kinks that has a minimum, and a slope elsewhere."""
    u: list[Node] = [Affine(np.eye(dim).tolist(), (0.0,) * dim, k) for k in range(dim)]
    u = [Sum((v,), (1.0,), float(rng.integers(-1, 2))) for v in u]
    mixed = Sum(tuple(u), tuple(float(a) for a in rng.integers(-1, 2, dim)), 0.5)
    parts = (*(atom("abs", v) for v in u), atom("relu", mixed), u[0])
    return Tree(Sum(parts, (*[1.0] * dim, 0.5, 0.25)), dim)


def _start(kind: str, variant: int) -> tuple[Rng, int, Tree, Any]:
    rng = np.random.default_rng([variant, *kind.encode()])
    dim = int(rng.integers(1, 4))
    point = [Fraction(int(a), 2) for a in rng.integers(-3, 4, dim)]
    tree = _convex(rng, dim) if variant % 2 else two_sided(rng, dim, point)
    return rng, dim, tree, np.array([float(q) for q in point])


def _not_black_box(claim: Any) -> str:
    return "a black box cannot be certified" if claim.label == "certified" else ""


def _goldstein(variant: int) -> Base:
    _, _, tree, x = _start("goldstein", variant)
    box = tree.program("left")
    ask: dict[str, Any] = {"delta": 1e-3, "rng": variant}
    if variant % 4 == 1:
        claim = gs.minimize(*_first(box, x), eps=1e-2, **ask).certificate
    else:
        claim = gs.certify(*_first(box, x), **ask)
    return Base(claim, box, {}, lambda c: _not_black_box(c) or _beyond(tree, c))


def _first(box: Any, x: Any) -> tuple[Any, Any, Any]:
    return box[0], x, box[1]


def _beyond(tree: Tree, claim: Any) -> str:
    true = least(tree, exact(claim.x), radius(claim.delta))
    return f"the truth is {true!r}" if below(claim.eps, true) else ""


def _near(variant: int) -> Base:
    rng, dim, tree, x = _start("near", variant)
    F, pivot = tree.expression(), exact(x)
    claim = gs.NearCertificate.prove(
        F, x + 2.0**-20, pivot, rng.standard_normal((3, dim)), np.ones(3)
    )

    def false(c: Any) -> str:
        if square_distance(c.exact_pivot, c.x.tolist()) > radius(c.delta) ** 2:
            return "the pivot is outside the ball"
        true = least(tree, c.exact_pivot)
        return f"the truth is {true!r}" if below(c.eps, true) else ""

    return Base(claim, (F,), {}, false)


def _limited(rng: Rng, dim: int, tree: Tree) -> Problem:
    """x_0 + ... <= 0 and |x_last| <= 2 between bounds: a convex set with corners."""
    u: list[Node] = [Affine(np.eye(dim).tolist(), (0.0,) * dim, k) for k in range(dim)]
    row = Tree(Sum(tuple(u), (1.0,) * dim), dim)
    kink = Tree(Sum((atom("abs", u[-1]),), (1.0,), -2.0), dim)
    return Problem(tree, [row, kink], bounds=[(-3.0, 3.0)] * dim, tie="left")


def _value(tree: Tree, x: list[Fraction]) -> Fraction:
    """Return the exact value of a tree at a point."""
    jets: list[Any] = []
    for node in tree.nodes:
        jets.append(next(node.branches(x, tree.args(node, jets), Fraction(0)))[0])
    return Fraction(jets[-1].value)


def _kkt_is_false(problem: Problem, claim: Any) -> str:
    """Read bounds, feasibility, activity and the residual from a KKT claim."""
    x, reach = exact(claim.x), radius(claim.delta)
    for q, (low, high) in zip(x, problem.bounds or []):
        if not low <= q <= high:
            return "x is outside the bounds"
    values = [_value(tree, x) for tree in problem.limits]
    if max(values) > Fraction(claim.feasibility) + Fraction(1, 10**12):
        return "a constraint is violated by more than is stated"
    active = [v + _steepest(t, x) * reach >= 0 for t, v in zip(problem.limits, values)]
    for is_active, multiplier in zip(active, claim.multipliers.tolist()):
        if multiplier and not is_active:
            return "a multiplier on a constraint that the ball does not reach"
    hull = sorted(gradients(problem.objective, x, reach))
    reached = [tree for tree, is_active in zip(problem.limits, active) if is_active]
    cone = [g for tree in reached for g in sorted(gradients(tree, x, reach))]
    true = distance(hull, [*cone, *problem.normals(x)])
    return f"the truth is {true!r}" if below(claim.eps, true) else ""


def _steepest(tree: Tree, x: list[Fraction]) -> Fraction:
    jets: list[Any] = []
    for node in tree.nodes:
        jets.append(next(node.branches(x, tree.args(node, jets), Fraction(0)))[0])
    return Fraction(jets[-1].steepest)


def _kkt(variant: int) -> Base:
    rng, dim, tree, x = _start("kkt", variant)
    problem = _limited(rng, dim, tree)
    limits, box = problem.as_black_box(), problem.box
    ask: dict[str, Any] = {"delta": 1e-3, "rng": variant, **limits}
    if variant % 2:
        claim = gs.minimize(*_first(box, x), eps=1e-2, max_calls=2000, **ask).certificate
    else:
        claim = gs.certify(box[0], np.minimum(x, -0.5), box[1], **ask)
    return Base(claim, box, limits, lambda c: _not_black_box(c) or _kkt_is_false(problem, c))


def _near_kkt(variant: int) -> Base:
    rng, dim, tree, x = _start("near-kkt", 2 * variant + 1)
    problem = _limited(rng, dim, tree)
    limits, F = problem.as_expressions(), tree.expression()
    ask: dict[str, Any] = {"eps": 1e-2, "delta": 1e-2, "rng": variant, "max_calls": 2000}
    claim = gs.minimize(F, x, stationarity="near", **ask, **limits).certificate

    def false(c: Any) -> str:
        y = list(c.exact_pivot)
        if square_distance(y, c.x.tolist()) > radius(c.delta) ** 2:
            return "the pivot is outside the ball"
        if not all(-3 <= q <= 3 for q in [*y, *exact(c.x)]):
            return "x or the pivot is outside the bounds"
        values = [_value(t, y) for t in problem.limits]
        if max(values) > 0:
            return "the pivot is not feasible"
        if any(m and v for m, v in zip(c.multipliers.tolist(), values)):
            return "a multiplier on a constraint that is not at its limit"
        cone = [g for t, v in zip(problem.limits, values) if v == 0 for g in gradients(t, y)]
        true = distance(sorted(gradients(tree, y)), [*sorted(cone), *problem.normals(y)])
        return f"the truth is {true!r}" if below(c.eps, true) else ""

    return Base(claim, (F,), limits, false)


def _plus(variant: int) -> Base:
    _, _, tree, x = _start("plus", variant)
    box, term = tree.program("left"), gs.prox.l1(0.5)
    ask: dict[str, Any] = {"eps": 1e-2, "delta": 1e-3, "rng": variant, "max_calls": 2000}
    claim = gs.minimize(*_first(box, x), plus=term, **ask).certificate
    if claim is None:  # no minimum: a claim by hand
        base = gs.certify(*_first(box, x + 0.7), delta=1e-3, rng=0)
        v = 0.5 * np.sign(base.x)
        eps = float(np.linalg.norm(base.weights @ base.gradients + v)) * (1 + 1e-9)
        claim = gs.PlusCertificate(
            base.x, base.delta, eps, base.points, base.gradients, base.weights, v, term
        )
    return Base(claim, box, {"plus": term}, lambda c: _not_black_box(c) or _plus_is_false(tree, c))


def _plus_is_false(tree: Tree, claim: Any) -> str:
    """f + |x|_1 / 2: entries further than delta from 0 have one slope, the others both."""
    x, reach = exact(claim.x), radius(claim.delta)
    half = Fraction(1, 2)
    sides = [(half if q > 0 else -half,) if abs(q) > reach else (-half, half) for q in x]
    rows = [
        tuple(a + b for a, b in zip(g, v))
        for g in gradients(tree, x, reach)
        for v in itertools.product(*sides)
    ]
    true = distance(sorted(set(rows)))
    return f"the truth is {true!r}" if below(claim.eps, true) else ""


def _values(variant: int) -> Base:
    _, _, tree, x = _start("values", variant)
    fun = tree.program("left")[0]
    claim = gs.certify(fun, x, "2-point", delta=1e-2, eps=0.5, rng=variant)
    return Base(claim, (fun,), {}, lambda c: _beyond(tree, c))


def _values_kkt(variant: int) -> Base:
    rng, dim, tree, x = _start("values-kkt", 2 * variant + 1)
    problem = _limited(rng, dim, tree)
    limits, fun = problem.as_black_box(), problem.box[0]
    ask: dict[str, Any] = {"eps": 0.5, "delta": 1e-2, "rng": variant, "max_calls": 4000}
    claim = gs.minimize(fun, np.minimum(x, -0.5), "2-point", **ask, **limits).certificate
    return Base(claim, (fun,), limits, lambda c: _kkt_is_false(problem, c))


MAKERS: dict[str, Callable[[int], Base]] = {
    "goldstein": _goldstein, "near": _near, "kkt": _kkt, "near-kkt": _near_kkt, "plus": _plus,
    "values": _values, "values-kkt": _values_kkt,
}  # fmt: skip

#: Claims from values take long to verify.
SHARES = {name: (1 if name.startswith("values") else 5) for name in MAKERS}


@functools.cache
def base(kind: str, variant: int) -> Base:
    return MAKERS[kind](variant)


def forged_fields(rng: Rng, seen: Seen) -> None:
    names = [name for name, share in SHARES.items() for _ in range(share)]
    kind, variant = names[int(rng.integers(len(names)))], int(rng.integers(VARIANTS))
    of = base(kind, variant)
    if of.claim is None:
        seen.silent(f"{kind} {variant}: no honest certificate")
        return
    fields = changed_fields(of.claim, rng)
    seen.note(f"{kind}, variant {variant}: {of.claim!r}, changed {_short(fields)}")
    claim = forged(of.claim, **fields)
    if claim is not None and rng.random() < 0.2:
        claim = through_a_file(claim) if rng.random() < 0.5 else pickle.loads(pickle.dumps(claim))
    if claim is None:
        seen.silent("cannot be held")
        return
    ok, label = verdict(claim, *of.function, seed=int(rng.integers(2**31)), **of.limits)
    wrong = of.false(claim) if ok else ""
    believed = "slopes of values" if "slopes" in fields else None
    miss = 1.0 - getattr(claim, "confidence", 1.0)
    # A label that the check does not give is a claim, too.
    stated = "certified" if "certified" in (label, claim.label) else label
    seen.claim(
        ok, stated, not wrong, f"{sorted(fields)}: {wrong}", belief=believed, miss=miss
    )  # fmt: skip


def _short(fields: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {str(value)[:200]}" for name, value in fields.items())


ATTACK = Attack(
    "forged-fields",
    "certificates of every kind with one or two fields changed, sealed again, some through files",
    weight=16,
    one=forged_fields,
)
