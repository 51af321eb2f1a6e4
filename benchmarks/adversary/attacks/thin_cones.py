"""Constraints that say nothing, except in a cone so thin that random directions miss it.

c = min(-u0 - K |u1| - ..., u0 / 2) <= 0 holds everywhere: its gradients at 0 cancel each other,
one of them in a cone of width 1 / K. A multiplier of it proves anything about f.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import exact, five, honest, made, verdict
from benchmarks.adversary.constrained import Problem, unsupported
from benchmarks.adversary.suite import Attack, Rng, Seen
from benchmarks.adversary.trees import Affine, Max, Node, Sum, Tree, atom
from scipy.optimize import nnls

import goldstein as gs

#: An exact search that fails takes seconds: one instance in so many asks for it.
SELDOM = 25


def thin_cones(rng: Rng, seen: Seen) -> None:
    kind, delta = int(rng.integers(5)), float(10.0 ** rng.uniform(-6, -1))
    if kind == 4 and rng.integers(SELDOM) == 0:
        _asked_exactly(rng, seen)
        return
    problem, dim = _problem(rng)
    seen.note(str(problem))
    if kind < 2:
        _exact_claim(rng, seen, problem, dim)
    elif kind < 4:
        _black_box(rng, seen, problem, dim, delta)
    else:
        _searched(rng, seen, problem, dim, delta)


def _problem(rng: Rng) -> tuple[Problem, int]:
    dim = int(rng.integers(2, 6))
    turned, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
    if rng.random() < 0.4:
        turned = np.eye(dim)
    scale = float(10.0 ** rng.integers(-3, 4))
    matrix = tuple(tuple(scale * float(a) for a in row) for row in turned)
    u: list[Node] = [Affine(matrix, (0.0,) * dim, k) for k in range(dim)]
    steep = 10.0 ** rng.uniform(2, 5)
    square = Sum(tuple(atom("square", v) for v in u), (0.1,) * dim)
    objective = Tree(Sum((u[0], square), (float(steep), 1.0)), dim)
    limits = [_cone(rng, u, dim)]
    if rng.random() < 0.3:
        limits.append(_cone(rng, u[1:] + u[:1], dim))
    return Problem(objective, limits, tie=str(rng.choice(["zero", "left"]))), dim


def _cone(rng: Rng, u: list[Node], dim: int) -> Tree:
    """Return a constraint; one in four is what it seems, and its multipliers mean something."""
    width = float(10.0 ** rng.uniform(0.5, 4.0))
    sharp = int(rng.integers(1, dim))
    inside = Sum((u[0], *(atom("abs", v) for v in u[1 : sharp + 1])), (1.0, *[width] * sharp))
    back = -0.5 if rng.random() < 0.75 else 0.5
    # min(-a, -b) = -max(a, b)
    return Tree(Sum((Max((inside, Sum((u[0],), (back,)))),), (-1.0,)), dim)


def _rows(rng: Rng, problem: Problem, dim: int) -> tuple[Any, Any, Any, Any]:
    """Return directions, the gradients of the constraints along them, and multipliers for f.

    Only directions that anybody would try: random ones, and those along the axes.
    """
    ways = np.concatenate([rng.standard_normal((4 * dim, dim)), np.eye(dim), -np.eye(dim)])
    index = np.repeat(np.arange(len(problem.limits)), len(ways))
    slopes = [tree.program("left")[1] for tree in problem.limits]
    rows = np.array([slopes[i](way) for i, way in zip(index, np.tile(ways, (len(slopes), 1)))])
    goal = -problem.box[1](np.zeros(dim))
    weights, _ = nnls(rows.T, goal, maxiter=1000)
    used = np.flatnonzero(weights > 0)
    return np.tile(ways, (len(slopes), 1))[used], index[used], rows[used], weights[used]


def _exact_claim(rng: Rng, seen: Seen, problem: Problem, dim: int) -> None:
    """State a near-KKT claim at 0 with multipliers that cancel f."""
    ways, index, rows, weights = _rows(rng, problem, dim)
    multipliers = np.bincount(index, weights, len(problem.limits)).astype(float)
    gap = float(np.linalg.norm(problem.box[1](np.zeros(dim)) + weights @ rows))
    size = float(weights @ np.linalg.norm(rows, axis=1))
    claim = made(
        gs.NearKKTCertificate, x=np.zeros(dim), exact_pivot=(Fraction(0),) * dim, delta=0.0,
        eps=gap + 1e-9 * size, directions=rng.standard_normal((1, dim)), weights=np.ones(1),
        constraint_directions=ways, constraint_index=index, constraint_weights=weights,
        normal=np.zeros(dim), multipliers=multipliers,
    )  # fmt: skip
    if claim is None:
        seen.silent()
        return
    ok, label = verdict(claim, problem.objective.expression(), **problem.as_expressions())
    wrong = unsupported(problem, exact(claim.x), 0.0, claim.eps, multipliers.tolist())
    said = f"near-KKT, eps = {claim.eps:g}, multipliers {multipliers.tolist()}; {wrong}"
    seen.claim(ok, label, not wrong, said)


def _false(problem: Problem, claim: Any) -> str:
    """Say what is false about a KKT claim at 0.

    Gradients of the constraints are those beside 0 all over the ball; that of f, which has a
    square, changes with the distance.
    """
    if claim.x.any() or not hasattr(claim, "multipliers"):
        return ""  # away from the tip of the cone: nothing is known
    top: Any = problem.objective.top
    flat = Problem(Tree(Sum(top.of[:1], top.factors[:1]), claim.x.size), problem.limits)
    # The rows of the matrix are orthogonal, all of one length.
    curvature = 0.2 * float(np.sum(np.square(top.of[0].matrix[0]))) * (1.0 + 1e-9)
    eps = claim.eps + curvature * claim.delta
    return unsupported(flat, exact(claim.x), 0.0, eps, claim.multipliers.tolist())


def _black_box(rng: Rng, seen: Seen, problem: Problem, dim: int, delta: float) -> None:
    box, limits = problem.box, problem.as_black_box()
    honest(
        seen, lambda: gs.certify(box[0], np.zeros(dim), box[1], delta=delta, rng=0, **limits), box,
        lambda claim: _false(problem, claim), **limits,
    )  # fmt: skip
    if rng.random() < 0.5:
        return
    ways, index, rows, weights = _rows(rng, problem, dim)
    claim = made(
        gs.KKTCertificate, x=np.zeros(dim), delta=delta, eps=_slack(problem, delta, dim),
        feasibility=0.0, points=np.zeros((1, dim)), gradients=box[1](np.zeros(dim))[None],
        weights=np.ones(1), constraint_points=0.5 * delta * ways / _lengths(ways),
        constraint_index=index, constraint_gradients=rows, constraint_weights=weights,
        normal=np.zeros(dim), qualification=2e-3,
        multipliers=np.bincount(index, weights, len(problem.limits)).astype(float),
    )  # fmt: skip
    if claim is None:
        seen.silent()
        return
    accepted, _, label = five(claim, *box, **limits)
    wrong = _false(problem, claim)
    seen.claim(accepted > 0, label, not wrong, f"by hand, {claim.summary()}; {wrong}")


def _lengths(rows: Any) -> Any:
    return np.linalg.norm(rows, axis=1, keepdims=True)


def _slack(problem: Problem, delta: float, dim: int) -> float:
    """How much the square can add within the ball, and rounding besides."""
    return 1e-6 * float(np.linalg.norm(problem.box[1](np.zeros(dim)))) + 1e-3 * delta


def _searched(rng: Rng, seen: Seen, problem: Problem, dim: int, delta: float) -> None:
    """A run from the tip of the cone, and from beside it."""
    box, limits = problem.box, problem.as_black_box()
    start = np.zeros(dim) if rng.random() < 0.7 else 10 * delta * rng.standard_normal(dim)
    ask: dict[str, Any] = {"eps": 1.0, "delta": delta, "rng": 0, "max_calls": 300, **limits}
    honest(
        seen, lambda: gs.minimize(box[0], start, box[1], **ask), box,
        lambda claim: _false(problem, claim), **limits,
    )  # fmt: skip


def _asked_exactly(rng: Rng, seen: Seen) -> None:
    """An exact claim, asked for: 5 u0 + |u|^2 / 10 at the tip of a cone in the plane."""
    u: list[Node] = [Affine(((1.0, 0.0), (0.0, 1.0)), (0.0, 0.0), k) for k in range(2)]
    square = Sum(tuple(atom("square", v) for v in u), (0.1, 0.1))
    problem = Problem(Tree(Sum((u[0], square), (5.0, 1.0)), 2), [_cone(rng, u, 2)])
    seen.note(f"asked for an exact claim: {problem}")
    objective, limits = problem.objective.expression(), problem.as_expressions()
    ask: dict[str, Any] = {"delta": 1e-3, "stationarity": "near", "rng": 0, "max_calls": 50}

    def false(claim: Any) -> str:
        if not hasattr(claim, "exact_pivot"):
            return _false(problem, claim)
        multipliers = claim.multipliers.tolist()
        return unsupported(problem, list(claim.exact_pivot), 0.0, claim.eps, multipliers)

    honest(
        seen, lambda: gs.certify(objective, np.zeros(2), **ask, **limits), (objective,), false,
        **limits,
    )  # fmt: skip


ATTACK = Attack(
    "thin-cones",
    "constraints that say nothing except in thin cones: KKT and near-KKT claims, asked and stated",
    weight=8,
    one=thin_cones,
)
