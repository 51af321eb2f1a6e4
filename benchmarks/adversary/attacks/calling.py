"""How functions, bounds and constraints are given: all that SciPy's users write, and mistakes.

f = sum_i s_i |x_i - c_i| of a point in any layout, with jac=True, args, constraints as dicts,
matrices and functions that return rows, numbers or sparse matrices. All minima and KKT points are
known: where a bound or a constraint x_k <= c_k - 1 holds x back, the multiplier is s_k. Then one
thing is changed: a layout, an answer, a limit. What is then claimed is about another problem.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
from benchmarks.adversary.ask import forged, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import goldstein as gs

#: Layouts of four numbers: the point from a vector, and the vector from the point.
LAYOUTS: dict[str, tuple[Any, Any]] = {
    "vector": (lambda x: x, lambda p: p),
    "matrix": (lambda x: x.reshape(2, 2), lambda p: p.reshape(-1)),
    "dict": (
        lambda x: {"a": x[:1].reshape(1, 1), "b": x[1:]},
        lambda p: np.concatenate([p["a"].ravel(), p["b"]]),
    ),
    "list": (lambda x: [x[:3], x[3:]], np.concatenate),
    "tuple": (
        lambda x: (x[:2], {"c": x[2], "d": [x[3:]]}),
        lambda p: np.concatenate([p[0], [p[1]["c"]], p[1]["d"][0]]),
    ),
}


def calling(rng: Rng, seen: Seen) -> None:
    name = list(LAYOUTS)[int(rng.integers(len(LAYOUTS)))]
    build, flat = LAYOUTS[name]
    centre, steep = rng.integers(-8, 9, 4) / 2.0, rng.choice([1.0, 2.0, 0.5], 4)
    buffer = np.zeros(4)

    def fun(p: Any, *shift: float) -> float:
        return float(steep @ np.abs(np.asarray(flat(p)) - centre - sum(shift)))

    def jac(p: Any, *shift: float) -> Any:
        buffer[:] = steep * np.sign(np.asarray(flat(p)) - centre - sum(shift))
        return build(buffer)

    def both(p: Any, *shift: float) -> Any:
        return fun(p, *shift), jac(p, *shift)

    pair = rng.random() < 0.4
    function, gradient = (both, True) if pair else (fun, jac)
    k = int(rng.integers(4))
    limits, true_x = _limits(rng, centre, k, flat)
    seen.note(f"{name}, jac={gradient!r}, limits {list(limits)}, x_{k}")
    x0, delta = centre + rng.uniform(-2.0, -1.2, 4), 1e-3
    try:
        result = gs.minimize(
            function, build(x0), gradient, eps=1e-2, delta=delta, rng=0, max_calls=600, **limits
        )
    except gs.GoldsteinError as refusal:
        seen.silent(str(refusal))
        return
    claim = result.certificate
    if claim is None:
        seen.silent(result.message)
        return
    x = np.asarray(claim.x)
    here = bool((np.abs(x - true_x) <= delta + 1e-9).all())
    ok, label = verdict(claim, function, gradient, like=build(x0), **limits)
    repr(claim.verify(function, gradient, like=build(x0), **_taken(claim, limits)))
    seen.claim(ok, label, here if claim.eps < 0.3 else None, claim.summary(), own=result.success)
    for words, call, more in _changed(rng, function, gradient, build, x0, limits, k):
        if "limits" in words and not hasattr(claim, "multipliers"):
            continue
        for one in (claim, forged(claim, own_layout=False)):
            if one is not None:
                ok, label = verdict(one, *call, **more)
                seen.claim(ok, label, False if words.startswith("!") else None, words)


def _taken(claim: Any, limits: dict[str, Any]) -> dict[str, Any]:
    return limits if hasattr(claim, "multipliers") else {}


def _limits(rng: Rng, centre: Any, k: int, flat: Any) -> tuple[dict[str, Any], Any]:
    """x_k <= centre_k - 1, in one of the ways to say it, or not at all; and where x then is."""
    level, held = float(centre[k] - 1.0), centre.copy()
    held[k] = level
    row = np.zeros(4)
    row[k] = 1.0

    def value(p: Any, sign: float = 1.0) -> Any:
        return sign * (np.asarray(flat(p))[k] - level)

    ways: list[dict[str, Any]] = [
        {"bounds": [(None, level) if i == k else (-np.inf, None) for i in range(4)]},
        {"bounds": Bounds(-np.inf, np.where(row > 0, level, np.inf))},
        {"constraints": LinearConstraint(sparse.csr_array(row[None]), -np.inf, level)},
        {
            "constraints": SimpleNamespace(
                A=[row.astype(int).tolist()], lb=[-np.inf], ub=Fraction(level)
            )
        },
        {"constraints": NonlinearConstraint(value, -np.inf, Decimal(0), jac=lambda p: row)},
        {
            "constraints": NonlinearConstraint(
                value, [-np.inf], [0.0], jac=lambda p: sparse.csr_array(row[None])
            )
        },
        {
            "constraints": [
                {"type": "ineq", "fun": value, "args": (-1.0,), "jac": lambda p, s: s * row[None]}
            ]
        },
        {"constraints": {"type": "ineq", "fun": lambda p: (-value(p), -row), "jac": True}},
        {"constraints": {"type": "eq", "fun": value, "jac": lambda p, s: s * row, "args": 1.0}},
        {
            "constraints": NonlinearConstraint(
                lambda p: np.asarray(flat(p))[[k, k]] - level,
                -np.inf,
                [0.0, 9.0],
                jac=lambda p: np.vstack([row, row]),
            )
        },
    ]
    pick = int(rng.integers(2 * len(ways)))
    return (ways[pick], held) if pick < len(ways) else ({}, centre)


def _changed(
    rng: Rng, function: Any, gradient: Any, build: Any, x0: Any, limits: dict[str, Any], k: int
) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Return other calls; "!" where what is verified then is certainly another claim."""
    like = {"like": build(x0), **limits}
    other = {"like": {"z": x0}, **limits}

    def wrong(answer: Any) -> tuple[Any, Any]:
        return (lambda *p: answer, True) if gradient is True else (function, lambda *p: answer)

    def raises(*p: Any) -> Any:
        raise RuntimeError("out of order")

    bad: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("! another layout", (function, gradient), other),
        ("! a shift of f by args", (function, gradient, 3.0), like),
        ("! no pair", wrong(1.0), like),
        (
            "! a gradient of another layout",
            wrong((1.0, np.ones(3)) if gradient is True else np.ones(3)),
            like,
        ),
        (
            "! not finite",
            wrong(
                (np.nan, build(np.full(4, np.nan)))
                if gradient is True
                else build(np.full(4, np.nan))
            ),
            like,
        ),
        ("! text", wrong(("a", "b") if gradient is True else "b"), like),
        (
            "! complex",
            wrong((1j, build(1j * np.ones(4))) if gradient is True else 1j * np.ones(4)),
            like,
        ),
        ("! it raises", (raises, gradient), like),
        ("a gradient that is derived", (function, None), like),
        ("! nothing to call", (3.0, gradient), like),
        ("! two gradients", (SimpleNamespace(value=raises, gradient=raises), raises), like),
        ("! keys", (function, gradient), {"like": {1: x0}, **limits}),
        (
            "single precision",
            (
                (lambda *p: (function(*p)[0], np.float32(function(*p)[1])))
                if gradient is True
                else function,
                gradient if gradient is True else lambda *p: np.float32(gradient(*p)),
            ),
            like,
        ),
    ]
    lie = "! limits that cannot be read"
    for constraints in _unreadable(x0, k):
        bad.append((lie, (function, gradient), {**like, **constraints}))
    some = rng.permutation(len(bad))[:8]
    return [bad[i] for i in some]


def _unreadable(x0: Any, k: int) -> list[dict[str, Any]]:
    row = np.eye(4)[k]

    def nonlinear(
        fun: Any = lambda p: 0.0, low: Any = -np.inf, high: Any = 0.0, jac: Any = None
    ) -> Any:
        return NonlinearConstraint(fun, low, high, jac=jac or (lambda p: row))

    bounds: list[Any] = [
        3,
        "ab",
        [(0, 1)],
        [(0, 1, 2)] * 4,
        [(1, 0)] * 4,
        [(np.nan, 1)] * 4,
        [("a", 1)] * 4,
        SimpleNamespace(lb=[0.0] * 3, ub=1.0),
        [(1j, None)] * 4,
        [(np.inf, None)] * 4,
        [(2**53 + 1, None)] * 4,
        [(Fraction(1, 3), None)] * 4,
        np.ma.masked_array(np.zeros((4, 2))),
        [(2**60, np.longdouble(2) ** 80)] * 4,
        gs.prox,
        [(None, np.longdouble(1) / 3)] * 4,
    ]
    constraints: list[Any] = [
        3,
        {"type": "ineq"},
        {"type": "le", "fun": abs},
        nonlinear(low=1.0),
        nonlinear(high=[0.0] * 3),
        nonlinear(fun=lambda p: np.zeros((2, 2))),
        nonlinear(fun=lambda p: np.nan),
        nonlinear(fun=lambda p: 1 / 0),
        nonlinear(jac=lambda p: np.eye(3)),
        nonlinear(jac="4-point"),
        nonlinear(jac="2-point"),
        nonlinear(fun=5),
        nonlinear(fun=lambda p: "a"),
        nonlinear(jac=lambda p: [np.nan] * 4),
        LinearConstraint(np.ones((1, 3)), 0, 1),
        SimpleNamespace(A=[[Fraction(1, 3)] * 4], lb=0, ub=1),
        nonlinear(high=np.nan),
        SimpleNamespace(A=sparse.dok_array(np.ones((1, 4)) * (2**53 + 2)), lb=0, ub=1),
        SimpleNamespace(A=sparse.csr_array(np.array([[2**53 + 1, 0, 0, 0]])), lb=0, ub=1),
    ]
    return [{"bounds": b} for b in bounds] + [{"constraints": c} for c in constraints]


ATTACK = Attack(
    "calling",
    "functions, bounds and constraints in every form that is read, and in some that are not",
    weight=2,
    one=calling,
)
