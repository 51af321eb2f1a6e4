"""Claims in which one thing is false and all the rest is right: only one check can refuse them.

f = a x_0 + b x_1 + (l, r)(x_2): slopes l and r on both sides of a kink at 0. With x_0 >= -1 and the
bound x_1 >= 0 the corner (-1, 0, 0) is a KKT point if a, b > 0 and l < 0 < r; everywhere else, or
with other signs, it is not, and the lies say that it is. Each is told to every kind of claim that
has such a field; `truth` is told as well, and must pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import five, made, through_a_file
from benchmarks.adversary.suite import Attack, Rng, Seen
from scipy.optimize import NonlinearConstraint

import goldstein as gs


@dataclass
class Draft:
    """A claim at the corner, and the function it is about; lies change one of them."""

    rng: Rng
    delta: float
    slopes: Any  # a, b, l, r
    x: Any = None
    points: Any = None
    weights: Any = None
    multiplier: float = 0.0
    normal: float = 0.0
    witness: Any = None
    gradients: Any = None
    constraint_gradient: Any = None
    feasibility: float = 0.0
    eps: float = 0.0
    ball: float = 0.0
    label: str | None = None
    tie: float | None = None
    shift: dict[int, Fraction] = field(default_factory=dict)

    @classmethod
    def honest(cls, rng: Rng) -> Draft:
        a, b, l, r = rng.uniform(0.5, 3.0, 4)
        draft = cls(rng, float(10.0 ** rng.uniform(-6, -2)), np.array([a, b, -l, r]))
        draft.x = np.array([-1.0, 0.0, 0.0])
        draft.points = draft.x + 0.5 * draft.delta * np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
        draft.weights = np.array([r, l]) / (l + r)
        draft.multiplier, draft.normal = a, -b
        draft.witness = draft.x.copy()
        draft.eps, draft.ball = 1e-9, draft.delta
        return draft

    def small(self) -> float:
        """A number that is not 0, and often hard to tell from it."""
        return float(10.0 ** self.rng.uniform(-11, 0))

    def fun(self, x: Any) -> float:
        a, b, l, r = self.slopes
        return float(a * x[0] + b * x[1] + r * max(x[2], 0.0) - l * max(-x[2], 0.0))

    def jac(self, x: Any) -> Any:
        a, b, l, r = self.slopes
        tied = self.tie is not None and x[2] == 0.0
        return np.array([a, b, self.tie if tied else (r if x[2] > 0 else l)])

    def expression(self, w: Any) -> Any:
        a, b, l, r = (float(s) for s in self.slopes)
        return a * w[0] + b * w[1] + r * gs.relu(w[2]) - l * gs.relu(-1.0 * w[2])


# --- lies: what is false, for the kinds that can be told -----------------------------------------


def truth(d: Draft) -> None:
    """Nothing is false."""


def off_the_bound(d: Draft) -> None:
    """x is not on the bound whose normal is used."""
    step = d.small()
    for point in (d.x, d.witness, *d.points):
        point[1] = step


def wrong_normal(d: Draft) -> None:
    """f pushes away from the bound: the normal has the sign of the other one."""
    d.slopes[1] = -d.slopes[1]
    d.normal = -d.normal


def beyond_reach(d: Draft) -> None:
    """The constraint is further away than the ball reaches; the witness is at the end of it."""
    far = d.delta * (1.0 + d.small())
    for point in (d.x, *d.points):
        point[0] = -1.0 + far
    d.witness = d.x - [0.999 * d.delta, 0.0, 0.0]


def wrong_multiplier(d: Draft) -> None:
    """f pushes away from the constraint: the multiplier has the sign of no limit."""
    d.slopes[0] = -d.slopes[0]
    d.multiplier = -d.multiplier


def not_feasible(d: Draft) -> None:
    """x violates the constraint, and says that it does not."""
    step = d.small()
    for point in (d.x, d.witness, *d.points):
        point[0] = -1.0 - step


def outside_the_bounds(d: Draft) -> None:
    """x is outside, its points are inside."""
    d.x[1] = -min(d.small(), 0.5 * d.delta)


def idle_constraint(d: Draft) -> None:
    """x violates a constraint that has no multiplier, and says that it does not."""
    not_feasible(d)
    d.slopes[0], d.multiplier = 0.0, 0.0


def idle_bound(d: Draft) -> None:
    """A point, or the pivot, is outside a bound whose normal is not used."""
    d.slopes[1], d.normal = 0.0, 0.0
    step = min(d.small(), 0.4 * d.delta)
    for point in d.points:
        point[1] = -step


def outside_the_ball(d: Draft) -> None:
    """The kink is further away than delta, the points are on both sides of it."""
    far = d.delta * float(d.rng.choice([1.6, 3.0, 1e3]))
    d.x = d.x + [0.0, 0.0, far]
    d.witness = d.x.copy()


def smaller_ball(d: Draft) -> None:
    """The points are where they are, and delta is stated to be less than their distance."""
    shift = 0.3 * d.delta
    d.x = d.x + [0.0, 0.0, shift]
    d.witness, d.ball = d.x.copy(), float(d.rng.uniform(0.0, 0.99)) * shift


def half_weights(d: Draft) -> None:
    """The weights of f sum to less than 1: all is divided by as much."""
    part = float(d.rng.choice([0.5, 0.9, 1e-3, 0.0]))
    d.slopes[2:] = np.abs(d.slopes[2:])  # and f rises along x_2
    rise = float(d.slopes[2:].min())
    d.weights = part * np.array([1.0, 0.0] if d.slopes[2] < d.slopes[3] else [0.0, 1.0])
    d.multiplier, d.normal = part * d.multiplier, part * d.normal
    d.eps = part * rise * (1 + 1e-9) + 1e-300


def negative_weights(d: Draft) -> None:
    """f rises on both sides; a weight below 0 cancels that."""
    l, r = sorted(np.abs(d.slopes[2:]) + [0.0, 0.5])
    d.slopes[2:] = [l, r]
    d.weights = np.array([r, -l]) / (r - l)


def other_gradients(d: Draft) -> None:
    """f rises on both sides, the stored gradients say that it does not."""
    d.slopes[2:] = np.abs(d.slopes[2:])
    stored = np.array([d.jac(y) for y in d.points])
    stored[:, 2] = 0.0
    d.gradients = stored


def other_constraint_gradient(d: Draft) -> None:
    """The stored gradient of the constraint is not its own."""
    d.slopes[0] = -d.slopes[0]
    d.constraint_gradient = np.array([1.0, 0.0, 0.0])


def on_the_kink(d: Draft) -> None:
    """f rises on both sides; at the kink the program says 0."""
    d.slopes[2:] = np.abs(d.slopes[2:])
    d.tie = 0.0
    d.points = np.array([d.x, d.x])
    d.weights = np.array([0.5, 0.5])


def stronger(d: Draft) -> None:
    """Nothing cancels, and less is claimed than is left."""
    d.slopes[2:] = np.abs(d.slopes[2:])
    left = min(d.slopes[2:])
    d.weights = np.array([1.0, 0.0] if d.slopes[2] < d.slopes[3] else [0.0, 1.0])
    d.eps = float(left * (1.0 - 10.0 ** d.rng.uniform(-6, 0)))


def by_next_to_nothing(d: Draft) -> None:
    """The pivot is off its bound, or off its limit, by less than floats can tell."""
    step = Fraction(int(d.rng.choice([-1, 1])), 2 ** int(d.rng.integers(60, 300)))
    d.shift[int(d.rng.integers(2))] = step


def another_label(d: Draft) -> None:
    """A black box is no proof."""
    d.label = "certified"


LIES: dict[Callable[[Draft], None], tuple[str, ...]] = {
    truth: ("goldstein", "kkt", "near", "near-kkt", "plus", "values"),
    off_the_bound: ("kkt", "near-kkt", "plus"),
    wrong_normal: ("kkt", "near-kkt", "plus"),
    beyond_reach: ("kkt", "near-kkt"),
    wrong_multiplier: ("kkt", "near-kkt"),
    not_feasible: ("kkt", "near-kkt"),
    idle_constraint: ("kkt", "near-kkt"),
    outside_the_bounds: ("kkt", "near-kkt"),
    idle_bound: ("kkt", "near-kkt"),
    outside_the_ball: ("goldstein", "kkt", "near", "near-kkt", "plus", "values"),
    smaller_ball: ("goldstein", "kkt", "near", "near-kkt", "plus", "values"),
    half_weights: ("goldstein", "kkt", "plus", "values"),
    negative_weights: ("goldstein", "kkt", "near", "near-kkt", "plus", "values"),
    other_gradients: ("goldstein", "kkt", "plus"),
    other_constraint_gradient: ("kkt",),
    on_the_kink: ("goldstein", "kkt", "plus"),
    stronger: ("goldstein", "kkt", "near", "near-kkt", "plus", "values"),
    by_next_to_nothing: ("near-kkt",),
    another_label: ("goldstein", "kkt", "plus"),
}


# --- the kinds of claims -------------------------------------------------------------------------

FLOOR = NonlinearConstraint(
    lambda x: -x[0] - 1.0, -np.inf, 0.0, jac=lambda x: np.array([[-1.0, 0.0, 0.0]])
)
BOUNDS = [(-10.0, 10.0), (0.0, 10.0), (-10.0, 10.0)]

Put = tuple[Any, tuple[Any, ...], dict[str, Any]]


def _labelled(d: Draft) -> dict[str, Any]:
    return {} if d.label is None else {"label": d.label}


def _stored(d: Draft) -> Any:
    return np.array([d.jac(y) for y in d.points]) if d.gradients is None else d.gradients


def _goldstein(d: Draft) -> Put:
    """Only x_2 counts: the other slopes are 0."""
    d.slopes[:2] = 0.0
    stored = _stored(d)
    stored[:, :2] = 0.0
    claim = made(
        gs.GoldsteinCertificate, x=d.x, delta=d.ball, eps=d.eps, points=d.points,
        gradients=stored, weights=d.weights, **_labelled(d),
    )  # fmt: skip
    return claim, (d.fun, d.jac), {}


def _kkt(d: Draft) -> Put:
    row = np.array([-1.0, 0.0, 0.0]) if d.constraint_gradient is None else d.constraint_gradient
    claim = made(
        gs.KKTCertificate, x=d.x, delta=d.ball, eps=d.eps, feasibility=d.feasibility,
        points=d.points, gradients=_stored(d), weights=d.weights,
        constraint_points=d.witness[None], constraint_index=np.array([0]),
        constraint_gradients=row[None], constraint_weights=np.array([d.multiplier]),
        normal=np.array([0.0, d.normal, 0.0]), multipliers=np.array([d.multiplier]),
        qualification=0.7, **_labelled(d),
    )  # fmt: skip
    return claim, (d.fun, d.jac), {"bounds": BOUNDS, "constraints": [FLOOR]}


#: Directions to both sides of the kink.
WAYS = np.array([[0.3, 0.2, -1.0], [0.3, 0.2, 1.0]])


def _near(d: Draft) -> Put:
    """Only x_2 counts, at an exact pivot."""
    d.slopes[:2] = 0.0
    F = d.expression(gs.Variable(3))
    pivot = tuple(Fraction(float(q)) for q in (*d.x[:2], 0.0))
    claim = made(
        gs.NearCertificate, x=d.x, exact_pivot=pivot, delta=d.ball, eps=d.eps, directions=WAYS,
        weights=d.weights, gradients=np.zeros((2, 3)), errors=np.zeros(2),
    )  # fmt: skip
    return claim, (F,), {}


def _near_kkt(d: Draft) -> Put:
    """The same at an exact pivot, with both sides of the kink as directions."""
    w = gs.Variable(3)
    F, limits = d.expression(w), {"bounds": BOUNDS, "constraints": [-1.0 * w[0] - 1.0 <= 0.0]}
    pivot = d.x.copy()
    pivot[2] = 0.0
    if not np.array_equal(d.points[0][:2], d.x[:2]):
        pivot[:2] = d.points[0][:2]
    exact = tuple(Fraction(float(q)) + d.shift.get(k, 0) for k, q in enumerate(pivot))
    claim = made(
        gs.NearKKTCertificate, x=d.x, exact_pivot=exact, delta=d.ball, eps=d.eps,
        directions=WAYS, weights=d.weights,
        constraint_directions=np.array([[0.1, 0.1, 0.1]]),
        constraint_index=np.array([0]), constraint_weights=np.array([d.multiplier]),
        normal=np.array([0.0, d.normal, 0.0]), multipliers=np.array([d.multiplier]),
    )  # fmt: skip
    return claim, (F,), limits


def _plus(d: Draft) -> Put:
    """The bound as a term: its normal is the subgradient."""
    d.slopes[0] = 0.0
    stored = _stored(d)
    stored[:, 0] = 0.0
    term = gs.prox.box([-10.0, 0.0, -10.0], 10.0)
    claim = made(
        gs.PlusCertificate, x=d.x, delta=d.ball, eps=d.eps, points=d.points, gradients=stored,
        weights=d.weights, subgradient=np.array([0.0, d.normal, 0.0]), term=term, **_labelled(d),
    )  # fmt: skip
    return claim, (d.fun, d.jac), {"plus": term}


def _values(d: Draft) -> Put:
    """Differences in small boxes around the points; half of the least slope is claimed, or less."""
    d.slopes[:2] = 0.0
    width, slope = 0.05 * d.delta, 1.5 * float(np.abs(d.slopes).max())
    eps = max(d.eps, 0.5 * float(np.abs(d.slopes[2:]).min()))
    claim = made(
        gs.ValuesCertificate, x=d.x, delta=d.ball, eps=eps, points=d.points, weights=d.weights,
        widths=np.full(3, width), slopes=np.full(3, slope), confidence=1.0 - 1e-6, samples=400,
        mean=np.zeros(3), grain=0.0, lower=np.full(3, -np.inf), upper=np.full(3, np.inf),
    )  # fmt: skip
    return claim, (d.fun,), {}


KINDS = {
    "goldstein": _goldstein, "kkt": _kkt, "near": _near, "near-kkt": _near_kkt, "plus": _plus,
    "values": _values,
}  # fmt: skip


def single_lies(rng: Rng, seen: Seen) -> None:
    lies = list(LIES)
    lie = lies[int(rng.integers(len(lies)))]
    kind = LIES[lie][int(rng.integers(len(LIES[lie])))]
    draft = Draft.honest(rng)
    lie(draft)
    if kind == "plus" and lie is off_the_bound:
        # Within delta of the bound its normals count.
        for point in (draft.x, *draft.points):
            point[1] = max(point[1], 3.0 * draft.delta)
    claim, function, limits = KINDS[kind](draft)
    seen.note(f"{kind}, {lie.__name__}: {draft}")
    if claim is None:
        seen.silent("cannot be stated")
        return
    if rng.random() < 0.1:
        claim = through_a_file(claim)
    accepted, _, label = (
        (0, 1, "conditional") if claim is None else five(claim, *function, **limits)
    )
    stated = "certified" if lie is another_label else label
    miss = 1.0 - getattr(claim, "confidence", 1.0)
    seen.claim(accepted > 0, stated, lie is truth, f"{kind}, {lie.__doc__}", miss=5 * miss)
    if lie is truth and not accepted:
        seen.note("the truth was refused")


ATTACK = Attack(
    "single-lies",
    "claims in which one thing is false and all the rest is right, of every kind with such a field",
    weight=10,
    one=single_lies,
)
