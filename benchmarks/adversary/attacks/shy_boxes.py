"""Black boxes that refuse to answer at some places: they say that there is a kink.

The claims are those of `single_lies`, true or with one lie, about the same function; its gradients,
or those of the constraints, raise `KinkError` at pseudo-random places, or everywhere but at the
points of the claim. Who does not answer must not be believed more than who does.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.adversary.ask import made, verdict
from benchmarks.adversary.attacks.single_lies import (
    BOUNDS,
    LIES,
    Draft,
    another_label,
    idle_constraint,
    truth,
)
from benchmarks.adversary.suite import Attack, Rng, Seen
from scipy.optimize import LinearConstraint, NonlinearConstraint

import goldstein as gs


def shy(jac: Callable[[Any], Any], often: float, known: Any) -> Callable[[Any], Any]:
    """Return a gradient that refuses to answer so often, but never at known points."""
    answered = {np.asarray(y).tobytes() for y in known}

    def ask(y: Any) -> Any:
        key = np.asarray(y).tobytes()
        if key not in answered and zlib.crc32(key) < often * 2**32:
            raise gs.KinkError("a kink, perhaps", y)
        return jac(y)

    return ask


#: The same gradient at the corner, and curved or straight.
def _floor(kind: str, often: float, known: Any) -> list[Any]:
    row = np.array([[-1.0, 0.0, 0.0]])
    if kind == "straight":
        return [LinearConstraint(row, -np.inf, 1.0)]
    if kind == "equation":  # besides, and without a multiplier
        jac = shy(lambda x: np.array([[0.0, x[1] + 1.0, 0.0]]), often, known)
        side = NonlinearConstraint(lambda x: x[1] + 0.5 * x[1] ** 2, 0.0, 0.0, jac=jac)
        return [LinearConstraint(row, -np.inf, 1.0), side]
    if kind == "nothing":  # 0 <= 0: a multiplier of it says nothing, and nothing violates it
        return [LinearConstraint(0.0 * row, -np.inf, 0.0)]
    bend = 0.0 if kind == "written as curved" else 1.0
    return [
        NonlinearConstraint(
            lambda x: -x[0] - 1.0 + bend * (x[1] ** 2 + x[2] ** 2) / 2, -np.inf, 0.0,
            jac=shy(lambda x: np.array([[-1.0, bend * x[1], bend * x[2]]]), often, known),
        )
    ]  # fmt: skip


def _hidden(d: Draft) -> list[Any]:
    """The floor, which says nothing next to x; the witness of the claim is elsewhere."""
    row = np.array([[-1.0, 0.0, 0.0]])
    d.witness = d.x + np.array([0.0, 0.5 * d.delta, 0.0])
    x, near = d.x.copy(), 0.2 * d.delta

    def jac(y: Any) -> Any:
        if 0.0 < np.abs(y - x).max() < near:
            raise gs.KinkError("a kink, perhaps", y)
        return row.copy()

    return [NonlinearConstraint(lambda y: -y[0] - 1.0, -np.inf, 0.0, jac=jac)]


FLOORS = ("straight", "equation", "nothing", "curved", "written as curved")


def _kkt(rng: Rng, d: Draft, known: list[Any]) -> Any:
    """The claim of `single_lies`, with rows on one constraint that may cancel each other."""
    kind, often = str(rng.choice(FLOORS)), float(rng.choice([0.0, 0.3, 1.0, 1.0]))
    hidden = rng.random() < 0.2
    limits = _hidden(d) if hidden else _floor(kind, often, [*known, d.x, d.witness])
    kind = "curved" if hidden else kind
    m = 1 + (kind == "equation")
    row, weights = np.array([[-1.0, 0.0, 0.0]]) * (kind != "nothing"), np.array([d.multiplier])
    if rng.random() < 0.2:  # both signs, the sum as it should be
        row, weights = np.tile(row, (2, 1)), np.array([2.0, -1.0]) * d.multiplier
    stored = np.array([d.jac(y) for y in d.points]) if d.gradients is None else d.gradients
    claim = made(
        gs.KKTCertificate, x=d.x, delta=d.ball, eps=d.eps, feasibility=d.feasibility,
        points=d.points, gradients=stored, weights=d.weights,
        constraint_points=np.tile(d.witness, (len(row), 1)),
        constraint_index=np.zeros(len(row), int), constraint_gradients=row,
        constraint_weights=weights, normal=np.array([0.0, d.normal, 0.0]),
        multipliers=np.append(d.multiplier, np.zeros(m - 1)),
        qualification=float(rng.choice([0.7, 0.1])),
    )  # fmt: skip
    nonsense = d.multiplier != 0.0 and (kind == "nothing" or len(row) > 1)
    return claim, {"bounds": BOUNDS, "constraints": limits}, kind == "nothing", nonsense


def _goldstein(d: Draft) -> Any:
    d.slopes[:2] = 0.0
    stored = np.array([d.jac(y) for y in d.points]) if d.gradients is None else d.gradients
    stored[:, :2] = 0.0
    return made(
        gs.GoldsteinCertificate, x=d.x, delta=d.ball, eps=d.eps, points=d.points,
        gradients=stored, weights=d.weights,
    )  # fmt: skip


def _lying_aside(d: Draft) -> Callable[[Any], Any]:
    """Return a gradient that is wrong next to points of little weight, where errors cancel."""
    ends = np.where(np.arange(len(d.points)) % 2, -1.0, 1.0)
    errors = np.where(np.arange(len(d.points)) < 2, 0.0, 1e-3 * ends / d.weights)

    def jac(y: Any) -> Any:
        found = np.array(d.jac(y))
        away = np.abs(d.points - y).max(axis=1)
        found[2] += errors[away.argmin()] * (away.min() < 0.01 * d.delta)
        return found

    d.gradients = np.array([jac(y) for y in d.points])
    return jac


def shy_boxes(rng: Rng, seen: Seen) -> None:
    kind = str(rng.choice(["goldstein", "kkt"]))
    lies = [lie for lie, kinds in LIES.items() if kind in kinds and lie is not another_label]
    lie = lies[int(rng.integers(len(lies)))] if rng.random() < 0.5 else truth
    draft = Draft.honest(rng)
    if rng.random() < 0.4:  # many points of little weight
        more = draft.points + 0.1 * draft.delta * rng.uniform(-1, 1, (6, 1, 3))
        draft.points = np.concatenate([draft.points, *more])
        draft.weights = np.tile(draft.weights, 7) * np.repeat([0.94, *[0.01] * 6], 2)
        draft.points[:, 1] = np.maximum(draft.points[:, 1], 0.0)
    if rng.random() < 0.3:  # next to the kink: values on both sides of it disagree
        draft.points[:2] = draft.x + (draft.points[:2] - draft.x) * 10.0 ** -rng.uniform(2, 9)
    lie(draft)
    known = [*draft.points, draft.x] if rng.random() < 0.8 else []
    often, limits = float(rng.choice([0.0, 0.05, 0.5, 1.0])), dict[str, Any]()
    empty = nonsense = False
    height = float(rng.choice([0.0, 0.0, 1e6, 1e15]))  # values show nothing from there
    honest = draft.jac
    if lie is truth and len(draft.points) > 2 and rng.random() < 0.5:
        honest = _lying_aside(draft)
    if kind == "kkt":
        claim, limits, empty, nonsense = _kkt(rng, draft, known)
    else:
        claim = _goldstein(draft)
    jac = shy(honest, often, known)
    seen.note(f"{kind}, {lie.__name__}, {often}: {draft}, {limits}")
    if claim is None:
        seen.silent("cannot be stated")
        return
    if rng.random() < 0.2:
        function: Any = (lambda x: (height + draft.fun(x), jac(x)), True)
    else:
        function = (lambda x: height + draft.fun(x), jac)
    ok, label = verdict(claim, *function, seed=1, **limits)
    true = (lie is truth or (empty and lie is idle_constraint)) and not nonsense
    seen.claim(ok, label, true, f"{kind}, {lie.__doc__}")


ATTACK = Attack(
    "shy-boxes",
    "claims of black boxes that do not answer at some places; one thing false or nothing",
    weight=8,
    one=shy_boxes,
)
