"""Multipliers that prove too much: the traps of constrained problems, known from other projects.

Each case makes a problem and a claim about it, or asks the library for one, and knows the truth:
what is false about a claim, or "".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, five, forged, honest, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen
from scipy.optimize import LinearConstraint, NonlinearConstraint

import goldstein as gs


def _at_most_0(fun: Callable[[Any], Any], jac: Callable[[Any], Any]) -> Any:
    return NonlinearConstraint(fun, -np.inf, 0.0, jac=lambda x: np.atleast_2d(jac(x)))


def _linear(slope: Any) -> tuple[Any, Any]:
    return lambda x: float(slope @ x), lambda x: slope.copy()


def _ask(seen: Seen, box: Any, x0: Any, false: Callable[[Any], str], **limits: Any) -> None:
    """Certify a point, and search from it."""
    ask: dict[str, Any] = {"delta": 1e-3, "rng": 0, **limits}
    honest(seen, lambda: gs.certify(box[0], x0, box[1], **ask), box, false, **limits)
    run = lambda: gs.minimize(box[0], x0, box[1], eps=1e-2, max_calls=300, **ask)  # noqa: E731
    honest(seen, run, box, false, **limits)


# --- problems whose constraints say nothing ------------------------------------------------------


def vanishing(rng: Rng, seen: Seen) -> None:
    """x^2 <= 0: the gradient of the constraint vanishes where it is reached."""
    dim, power = int(rng.integers(1, 4)), int(rng.choice([2, 3, 4]))
    slope, scale = rng.uniform(0.5, 3.0, dim), float(10.0 ** rng.integers(-6, 7))
    box = _linear(slope)
    limit = _at_most_0(
        lambda x: scale * float((np.abs(x) ** power).sum()),
        lambda x: scale * power * np.sign(x) * np.abs(x) ** (power - 1),
    )
    seen.note(f"{slope.tolist()} . x subject to {scale:g} sum |x|^{power} <= 0")
    true = float(np.linalg.norm(slope))

    def false(claim: Any) -> str:
        return "no multiplier is large enough" if below(claim.eps, 0.9 * true) else ""

    if rng.random() < 0.5:
        start = np.zeros(dim) if rng.random() < 0.5 else 1e-4 * rng.standard_normal(dim)
        _ask(seen, box, start, false, constraints=[limit])
        return
    # By hand: beside 0 the gradient does not vanish, and a large multiplier makes up for it.
    at = -1e-4 * slope / true
    row = scale * power * np.sign(at) * np.abs(at) ** (power - 1)
    lam = float(true**2 / -(row @ slope))
    _degenerate(seen, box, limit, np.zeros(dim), at, row, lam, false, true)


def always_true(rng: Rng, seen: Seen) -> None:
    """-|x_0| <= 0 holds everywhere; its gradients form a line."""
    dim = int(rng.integers(1, 4))
    slope = np.zeros(dim)
    slope[0] = rng.uniform(1.0, 9.0)
    height = float(10.0 ** rng.integers(-3, 4))
    box = _linear(slope)
    limit = _at_most_0(
        lambda x: -height * abs(x[0]), lambda x: -height * np.sign(x[0]) * np.eye(dim)[0]
    )
    seen.note(f"{slope.tolist()} . x subject to -{height:g} |x_0| <= 0")

    def false(claim: Any) -> str:
        unqualified = abs(claim.x[0]) < 1e-6 * claim.delta and below(claim.eps, slope[0])
        return "the constraint excludes nothing" if unqualified else ""

    if rng.random() < 0.5:
        _ask(seen, box, np.zeros(dim), false, constraints=[limit])
        return
    at, row = 1e-4 * np.eye(dim)[0], -height * np.eye(dim)[0]
    _degenerate(seen, box, limit, np.zeros(dim), at, row, slope[0] / height, false, slope[0])


def always_true_where_held(rng: Rng, seen: Seen) -> None:
    """steep x_1 <= |x_0| holds wherever x_1 = 0 does; only across that its gradients differ."""
    steep, push = float(10.0 ** rng.uniform(-1, 2)), float(rng.uniform(1.0, 9.0))
    lift = float(rng.choice([0.0, -steep * push, rng.normal()]))  # what x_1 = 0 has to hold
    limits: dict[str, Any] = {}
    how = int(rng.integers(4))
    x = gs.Variable(2)
    f, limit = push * x[0] + lift * x[1], steep * x[1] - gs.abs(x[0]) <= 0.0
    if how == 0:
        limits = {"bounds": [(None, None), (0.0, 0.0)], "constraints": [limit]}
    else:
        bend = 0.5 * gs.square(x[0]) if how == 3 else 0.0 * x[0]
        row = LinearConstraint([[0.0, 1.0]], 0.0, 0.0) if how == 1 else x[1] + bend == 0.0
        limits = {"constraints": [limit, row]}
    seen.note(f"{push:g} x_0 + {lift:g} x_1 where {steep:g} x_1 <= |x_0|, x_1 held: {how}")

    def false(claim: Any) -> str:
        unqualified = abs(claim.x[0]) < 1e-6 * claim.delta + 1e-12 and below(claim.eps, 0.9 * push)
        return "the constraint excludes nothing" if unqualified else ""

    kind = {"stationarity": "near"} if rng.random() < 0.5 else {}
    ask: dict[str, Any] = {"delta": 1e-3, "rng": 0, **limits, **kind}
    honest(seen, lambda: gs.certify(f, np.zeros(2), **ask), (f,), false, **limits)


def _degenerate(
    seen: Seen, box: Any, limit: Any, x: Any, at: Any, row: Any, lam: float,
    false: Callable[[Any], str], size: float,
) -> None:  # fmt: skip
    """State that a multiplier of one gradient of the constraint cancels f, up to half of it."""
    g = box[1](x)[None]
    eps = float(np.linalg.norm(g[0] + lam * row)) * (1 + 1e-9) + 1e-9 * size
    claim = gs.KKTCertificate(
        x=x, delta=1e-3, eps=eps, feasibility=0.0, points=x[None], gradients=g, weights=np.ones(1),
        constraint_points=at[None], constraint_index=np.array([0]), constraint_gradients=row[None],
        constraint_weights=np.array([lam]), normal=np.zeros(x.size), multipliers=np.array([lam]),
        qualification=1.0,
    )  # fmt: skip
    _stated(seen, claim, box, {"constraints": [limit]}, false, "by hand")


def opposite(rng: Rng, seen: Seen) -> None:
    """An equality as two inequalities: with both multipliers anything cancels."""
    bend = float(rng.choice([0.0, 0.5, 1.0]))
    slope = rng.uniform(1.0, 3.0, 2)
    box = _linear(slope)

    def h(x: Any) -> float:
        return float(x[0] + bend * x[1] ** 2)

    def dh(x: Any) -> Any:
        return np.array([1.0, 2 * bend * x[1]])

    limits = {"constraints": [_at_most_0(h, dh), _at_most_0(lambda x: -h(x), lambda x: -dh(x))]}
    at = float(rng.choice([0.0, 0.5, -1.0]))
    x = np.array([-bend * at**2, at])
    seen.note(f"{slope.tolist()} . x on x_0 + {bend:g} x_1^2 = 0, written twice; x = {x.tolist()}")
    # Along the curve f changes by slope . (-2 bend x_1, 1).
    tangent = np.array([-2 * bend * at, 1.0])
    true = abs(float(slope @ tangent)) / float(np.linalg.norm(tangent))
    base = gs.certify(box[0], x, box[1], delta=1e-3, rng=0, **limits)

    def false(claim: Any) -> str:
        away = float(np.linalg.norm(claim.x - x)) > 1e-9
        return "" if away or not below(claim.eps, 0.9 * true) else f"along the curve {true!r}"

    _stated(seen, base, box, limits, false, "certified")
    # Rows of both that cancel each other, and f not at all.
    rows = np.array([dh(x), -dh(x)])
    weights = np.full(2, float(10.0 ** rng.integers(0, 9)))
    claim = forged(
        base, points=x[None], gradients=slope[None], weights=np.ones(1), eps=0.5 * true,
        constraint_points=np.array([x, x]), constraint_index=[0, 1], constraint_gradients=rows,
        constraint_weights=weights, multipliers=weights,
    )  # fmt: skip
    _stated(seen, claim, box, limits, false, "both multipliers")


def out_of_reach(rng: Rng, seen: Seen) -> None:
    """A limit that the ball does not reach: a slack band would let it carry a multiplier."""
    dim, delta = int(rng.integers(1, 4)), float(10.0 ** rng.integers(-6, 0))
    beyond = float(1.0 + 10.0 ** rng.uniform(-9, 0))
    slope = rng.uniform(0.5, 2.0)
    # -x_0 <= delta * beyond: the minimum of slope x_0 is there, and x = 0 is not.
    box = _linear(slope * np.eye(dim)[0])
    far = delta * beyond
    limit = _at_most_0(lambda x: -x[0] - far, lambda x: -np.eye(dim)[0])
    limits = {"constraints": [limit]}
    x = np.zeros(dim)
    seen.note(f"{slope:g} x_0 subject to x_0 >= -{far!r}; x = 0, delta = {delta!r}")

    def false(claim: Any) -> str:
        near = bool(np.array_equal(claim.x, x)) and claim.delta <= delta
        return "the ball does not reach the limit" if near and below(claim.eps, slope) else ""

    base = gs.certify(box[0], x, box[1], delta=delta, rng=0, **limits)
    _stated(seen, base, box, limits, false, "certified")
    edge = -(1.0 - 1e-10) * delta * np.eye(dim)[:1]
    claim = forged(
        base, delta=delta, points=x[None], gradients=slope * np.eye(dim)[:1], weights=np.ones(1),
        eps=1e-9, constraint_points=edge, constraint_index=[0],
        constraint_gradients=-np.eye(dim)[:1], constraint_weights=[slope], multipliers=[slope],
        qualification=1.0,
    )  # fmt: skip
    _stated(seen, claim, box, limits, false, "a multiplier on an inactive limit")


def never_reached(rng: Rng, seen: Seen) -> None:
    """c = -tiny + a tiny gradient: nearly active, and never reached."""
    dim = int(rng.integers(1, 4))
    slope = rng.uniform(0.5, 3.0, dim)
    slack, tiny = float(10.0 ** rng.uniform(-12, -2)), float(10.0 ** rng.uniform(-12, -4))
    limit = _at_most_0(lambda x: tiny * float(slope @ x) - slack, lambda x: tiny * slope)
    reached = slack <= tiny * 1e-3 * float(slope @ slope) ** 0.5

    def false(claim: Any) -> str:
        there = not reached and bool(np.array_equal(claim.x, np.zeros(dim)))
        true = float(np.linalg.norm(slope))
        return "c < 0 in the ball" if there and below(claim.eps, 0.999 * true) else ""

    seen.note(f"-{slope.tolist()} . x subject to {tiny:g} slope . x <= {slack:g}")
    box = _linear(-slope)
    honest(
        seen,
        lambda: gs.certify(
            box[0], np.zeros(dim), box[1], delta=1e-3, rng=0, constraints=[limit]
        ),
        box, false, constraints=[limit],
    )  # fmt: skip


# --- claims that are forged ----------------------------------------------------------------------


def _stated(
    seen: Seen, claim: Any, box: Any, limits: Any, false: Callable[[Any], str], deed: str
) -> None:
    if claim is None or getattr(claim, "degenerate", False):
        seen.silent()
        return
    accepted, _, label = five(claim, *box, **limits)
    said = f"{deed}: {claim.summary()}; {false(claim)}"
    seen.claim(accepted > 0, label, not false(claim), said)


def _corner(rng: Rng) -> tuple[Any, dict[str, Any], Any, Any]:
    """-2 x_0 + 3 x_1 + |x_2| where x_0 <= 1 and x_1 >= 0: a problem, and its honest claim."""
    scale = float(10.0 ** rng.integers(-6, 7))

    def fun(x: Any) -> float:
        return scale * float(-2 * x[0] + 3 * x[1] + abs(x[2]))

    def jac(x: Any) -> Any:
        return scale * np.array([-2.0, 3.0, np.sign(x[2])])

    limit = _at_most_0(lambda x: x[0] - 1.0, lambda x: np.eye(3)[0])
    limits = {"bounds": [(None, None), (0.0, None), (None, None)], "constraints": [limit]}
    base = gs.certify(fun, [1.0, 0.0, 0.0], jac, delta=1e-3, rng=0, **limits)
    return (fun, jac), limits, base, scale


def _corner_is_false(claim: Any, scale: float) -> str:
    """Say what is false about a claim for `_corner`, from its x, eps and feasibility alone."""
    x, delta = claim.x, claim.delta
    if not x[1] >= 0.0:
        return "x is outside the bounds"
    if x[0] - 1.0 > claim.feasibility:
        return "x violates a constraint by more than is stated"
    left = np.array([
        2.0 if x[0] + delta < 1.0 else 0.0, 0.0 if x[1] == 0.0 else 3.0,
        1.0 if abs(x[2]) > delta else 0.0,
    ])  # fmt: skip
    true = scale * float(np.linalg.norm(left))
    return f"the truth is {true!r}" if below(claim.eps, true, scale) else ""


def no_weight_on_f(rng: Rng, seen: Seen) -> None:
    """Weights that are all 0, or sum to little: the constraints alone prove anything."""
    box, limits, base, scale = _corner(rng)
    part = float(rng.choice([0.0, 1e-12, 1e-6, 0.5]))
    x = np.array([0.0, 1.0, 1.0])
    claim = forged(
        base, x=x, points=x[None], gradients=box[1](x)[None], weights=np.array([part]),
        constraint_points=x[None], constraint_index=[0], constraint_gradients=np.eye(3)[:1],
        constraint_weights=[0.0], multipliers=[0.0], normal=np.zeros(3),
        eps=part * 4.0 * scale, feasibility=0.0,
    )  # fmt: skip
    _stated(seen, claim, box, limits, lambda c: _corner_is_false(c, scale), f"weight {part:g}")


def scaled_residual(rng: Rng, seen: Seen) -> None:
    """The residual of a scaled problem: eps divided, gradients and weights as they were or not."""
    box, limits, _, scale = _corner(rng)
    x = np.array([0.5, 1.0, 0.5])
    base = gs.certify(box[0], x, box[1], delta=1e-3, rng=0, **limits)
    factor = float(10.0 ** -rng.integers(1, 12))
    deeds = (
        {"eps": factor * base.eps},
        {"eps": factor * base.eps, "gradients": factor * base.gradients},
        {"eps": factor * base.eps, "weights": factor * base.weights},
    )
    fields = deeds[int(rng.integers(len(deeds)))]
    claim = forged(base, **fields)
    false = lambda c: _corner_is_false(c, scale)  # noqa: E731
    _stated(seen, claim, box, limits, false, f"scaled by {factor:g}: {sorted(fields)}")


def off_the_bound(rng: Rng, seen: Seen) -> None:
    """x beside its bound or beyond its limit by an ulp or more: normals and feasibility lie."""
    box, limits, base, scale = _corner(rng)
    step = float(rng.choice([5e-324, 1e-300, 1e-16, 1e-9, 1e-6]))
    x = base.x.copy()
    if rng.random() < 0.5:
        x[1] += step * float(rng.choice([1.0, -1.0]))
    else:
        x[0] = np.nextafter(1.0, 2.0) if step < 1e-16 else 1.0 + step
    claim = forged(base, x=x, delta=2 * base.delta + 1e-5)
    false = lambda c: _corner_is_false(c, scale)  # noqa: E731
    _stated(seen, claim, box, limits, false, f"x moved to {x.tolist()}")


def wrong_signs(rng: Rng, seen: Seen) -> None:
    """Multipliers and normals with the sign that no limit gives them."""
    box, limits, _, scale = _corner(rng)
    x = np.array([1.0, 0.0, 0.0])

    def up(x: Any) -> float:
        return -box[0](x)

    def gradient(x: Any) -> Any:
        return -box[1](x)

    # The opposite of f is not stationary there: all signs are wrong.
    base = gs.certify(up, x, gradient, delta=1e-3, rng=0, **limits)
    normal = np.array([0.0, 3.0 * scale, 0.0])
    deeds = (
        {"normal": normal, "eps": 2.5 * scale},
        {
            "normal": normal, "eps": 1.5 * scale, "constraint_points": x[None],
            "constraint_index": [0], "constraint_gradients": np.eye(3)[:1],
            "constraint_weights": [-2.0 * scale], "multipliers": [-2.0 * scale],
        },
    )  # fmt: skip
    claim = forged(base, **deeds[int(rng.integers(2))])
    true = scale * float(np.hypot(2.0, 3.0))
    _stated(
        seen, claim, (up, gradient), limits,
        lambda c: f"the truth is {true!r}" if below(c.eps, 0.99 * true, scale) else "",
        "wrong signs",
    )  # fmt: skip


def two_gradients(rng: Rng, seen: Seen) -> None:
    """Whoever searches has one gradient, whoever checks another: of a function that is not f."""
    dim = int(rng.integers(1, 4))
    slope, target = rng.uniform(0.5, 2.0, dim), rng.standard_normal(dim)

    def fun(x: Any) -> float:
        return float(np.abs(x - target).sum() + slope @ x * 3.0)

    def other(x: Any) -> Any:  # forgets the linear part
        return np.sign(x - target)

    def jac(x: Any) -> Any:
        return np.sign(x - target) + 3.0 * slope

    limits: dict[str, Any] = {}
    if rng.random() < 0.5:
        limits["bounds"] = [(-1e3, 1e3)] * dim
    claim = gs.certify(
        lambda x: float(np.abs(x - target).sum()), target, other, delta=1e-3, rng=0, **limits
    )
    true = float(np.linalg.norm(np.maximum(3.0 * slope - 1.0, 0.0)))
    seen.note(f"found with the gradient of another function; the truth is {true!r}")
    for words, gradient in (("checked with its own", jac), ("with the same wrong one", other)):
        ok, label = verdict(claim, fun, gradient, **limits)
        seen.claim(ok, label, not below(claim.eps, true), f"{words}: {claim.summary()}")


def many_rows(rng: Rng, seen: Seen) -> None:
    """A tolerance that grows with the number of rows: what is left over is less than it."""
    dim, count = 2, int(rng.choice([2, 50, 500, 2000]))
    left = float(10.0 ** rng.uniform(-13, -7))

    def fun(x: Any) -> float:
        return abs(x[0]) + left * x[1]

    def jac(x: Any) -> Any:
        return np.array([np.sign(x[0]), left])

    points = np.zeros((count, dim))
    points[:, 0] = 1e-3 * np.where(np.arange(count) % 2, 1.0, -1.0)
    gradients = np.array([jac(y) for y in points])
    weights = np.full(count, 1.0 / count)
    claim = gs.GoldsteinCertificate(np.zeros(dim), 2e-3, 0.0, points, gradients, weights)
    ok, label = verdict(claim, fun, jac)
    seen.claim(ok, label, left <= 1e-12, f"eps = 0 of {count} rows; the truth is {left!r}")


def infeasible(rng: Rng, seen: Seen) -> None:
    """x >= 1 and x <= 0: nothing is KKT."""
    gap = float(10.0 ** rng.uniform(-3, 1))
    low = _at_most_0(lambda x: gap - x[0], lambda x: np.array([-1.0]))
    high = _at_most_0(lambda x: x[0], lambda x: np.array([1.0]))
    box = (lambda x: float(x[0] ** 2), lambda x: 2.0 * x)
    limits = {"constraints": [low, high]}
    start = [float(rng.uniform(-1, 1))]
    seen.note(f"x^2 subject to {gap!r} <= x <= 0 from {start}")

    def false(claim: Any) -> str:
        stated = getattr(claim, "feasibility", None)
        return "" if stated is None or stated >= 0.499 * gap else "no point is that feasible"

    honest(
        seen,
        lambda: gs.minimize(
            box[0], start, box[1], eps=1e-3, delta=1e-3, rng=0, max_calls=300, **limits
        ),
        box, false, deterministic=False, **limits,
    )  # fmt: skip


CASES = (
    vanishing, always_true, opposite, out_of_reach, never_reached, no_weight_on_f, scaled_residual,
    off_the_bound, wrong_signs, two_gradients, many_rows, infeasible,
    always_true_where_held,
)  # fmt: skip


def multipliers(rng: Rng, seen: Seen) -> None:
    case = CASES[int(rng.integers(len(CASES)))]
    seen.note(f"case {case.__name__}")
    case(rng, seen)


ATTACK = Attack(
    "multipliers",
    "traps of constrained problems: vanishing, opposite, inactive, scaled, unweighted, infeasible",
    weight=2,
    one=multipliers,
)
