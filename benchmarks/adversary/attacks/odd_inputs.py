"""Claims whose parts do not belong together, and functions and limits of unusual make.

Each case is a small function with slopes that are known, and a claim about it: true, or false by
construction. Most of them have to be refused by a check that nothing else reaches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import made, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen
from scipy.optimize import NonlinearConstraint

import goldstein as gs
from goldstein import calculus
from goldstein.calculus.atoms.piecewise import Elementwise, PiecewisePolynomial
from goldstein.checker import nodes
from goldstein.checker.constrained.limits import Box
from goldstein.checker.minimum.supports import Support
from goldstein.checker.sides import Program

#: What is asked, of what, with which limits; and whether it is true.
Case = tuple[Any, tuple[Any, ...], dict[str, Any], bool | None]


def _near(F: Any, pivot: Any, ways: Any, eps: float, **fields: Any) -> Any:
    ways = np.array(ways, dtype=float)
    x = np.array([float(q) for q in pivot])
    return made(
        gs.NearCertificate, **{
            "x": x, "exact_pivot": tuple(map(Fraction, pivot)), "delta": 0.0, "eps": eps,
            "directions": ways, "weights": np.ones(len(ways)), "gradients": np.zeros_like(ways),
            "errors": np.zeros(len(ways)), **fields,
        },
    )  # fmt: skip


def _near_kkt(F: Any, x: Any, row: Any, weight: float, **fields: Any) -> Any:
    x = np.array(x, dtype=float)
    return made(
        gs.NearKKTCertificate, **{
            "x": x, "exact_pivot": tuple(map(Fraction, x.tolist())), "delta": 0.0, "eps": 0.0,
            "directions": np.array([row], dtype=float), "weights": np.ones(1),
            "constraint_directions": np.array([row], dtype=float),
            "constraint_index": np.array([0]), "constraint_weights": np.array([weight]),
            "normal": np.zeros(x.size), "multipliers": np.array([weight]), **fields,
        },
    )  # fmt: skip


def _goldstein(x: Any, points: Any, gradients: Any, weights: Any, eps: float, delta: float) -> Any:
    arrays = (np.array(part, dtype=float) for part in (x, points, gradients, weights))
    x, points, gradients, weights = arrays
    return made(
        gs.GoldsteinCertificate, x=x, delta=delta, eps=eps, points=points, gradients=gradients,
        weights=weights,
    )  # fmt: skip


def _plus(term: Any, x: Any, v: Any, delta: float = 0.5) -> Any:
    """A claim about f + h where the gradient of f is -v."""
    x, v = np.array(x, dtype=float), np.array(v, dtype=float)
    claim = made(
        gs.PlusCertificate, x=x, delta=delta, eps=1e-9, points=x[None], gradients=-v[None],
        weights=np.ones(1), subgradient=v, term=term,
    )  # fmt: skip
    return claim, (lambda z: float(-v @ z), lambda z: -v)


class Told:
    """A term that calls itself something, to whoever asks."""

    def __init__(self, **record: Any) -> None:
        self.record = record

    def to_record(self) -> dict[str, Any]:
        return self.record


# --- near claims ----------------------------------------------------------------------------------


def another_dimension(rng: Rng) -> Case:
    """x has another number of entries than the function has variables."""
    F = gs.sum(gs.abs(gs.Variable(2)))
    return _near(F, [0, 0, 0], [[1, 1, 1], [-1, -1, -1]], 0.0), (F,), {}, False


def high_powers(rng: Rng) -> Case:
    """|x^81| + x: along a line the kink is left with a power that is refused."""
    w = gs.Variable(1)
    F = gs.abs(gs.sum((w**9) ** 9)) + gs.sum(w)
    eps = float(rng.choice([0.5, 1.0]))
    return _near(F, [0], [[1], [-1]], eps), (F,), {}, eps >= 1.0


def scattered_places(rng: Rng) -> Case:
    """exp x_0 + |x_0 - x_1| + a maximum of one entry, twice: slopes 1 and more in x_0."""
    w = gs.Variable(2)
    twice = gs.max(gs.stack([w[0], w[0]])) + calculus.sum_largest(gs.stack([w[0], w[1], w[0]]), 2)
    F = calculus.exp(w[0]) + gs.abs(w[0] - w[1]) + twice
    return _near(F, [0, 0], [[1, 0], [0, 1]], 0.5), (F,), {}, False


def odd_boxes(rng: Rng) -> Case:
    """A pivot known by a box that does not fit: radii, breakpoints, entries that do not exist."""
    w = gs.Variable(2)
    F = gs.abs(calculus.exp(w[0]) - 3.0) + gs.abs(w[1]) + calculus.norm2(w - 7.0)
    kinks = [k for k, n in enumerate(F.program().nodes) if isinstance(n, nodes.Kinked)]
    k = int(rng.choice(kinks))
    rows = [[[k, 0, 5]], [[k, 9, 0]], [[0, 0, 0]], [[k, 0, -1]], [[k, 0, 0]], [[k, 0, 0]]]
    radii = [[2.0**-40, 0.0]] * 4 + [[2.0**-40] * 3, [math.inf, 0.0]]
    j = int(rng.integers(len(rows)))
    claim = _near(
        F, [math.log(3.0), 0.0], [[1, 1], [-1, -1]], 0.0, delta=1.0,
        radii=np.array(radii[j]), switches=np.array(rows[j], dtype=np.int64),
    )  # fmt: skip
    return claim, (F,), {}, False


def norms_below_kinks(rng: Rng) -> Case:
    """A kink in the box depends on a norm that is 0: | |w| + exp(w_0) - 1 | + 3 w_0."""
    w = gs.Variable(2)
    length = calculus.norm2(w)
    F = gs.abs(length + calculus.exp(w[0]) - 1.0) + 3.0 * w[0]
    kinks = [k for k, n in enumerate(F.program().nodes) if isinstance(n, nodes.Kinked)]
    rows = [[k, 0, 0] for k in kinks[::-1]]
    claim = _near(
        F, [0, 0], [[1, 0], [-1, 0]], 0.0, delta=1.0, radii=np.array([2.0**-30, 0.0]),
        switches=np.array(rows, dtype=np.int64),
    )  # fmt: skip
    return claim, (F,), {}, False


def nodes_that_do_not_fit(rng: Rng) -> Case:
    """A function made by hand whose nodes do not belong together must not be read."""
    variable = nodes.Variable((), (), 2)
    half = Fraction(1, 2)
    tries: list[Callable[[], Any]] = [
        lambda: nodes.Product((0, 0), (2, 2), 2, 3, 1),
        lambda: nodes.Product((0,), (2,), 2, 2, 1),
        lambda: nodes.Piecewise((0,), (2,), 2, (half,), ((half,), (half, half))),
        lambda: nodes.Piecewise((0,), (2,), 2, (half,), ((half,), (Fraction(1),))),
        lambda: nodes.Order((0,), (2,), 1, 3, np.ones((1, 3))),
        lambda: nodes.Order((0,), (2,), 2, 2, np.ones((1, 3))),
        lambda: nodes.Max((0,), (2,), 1, 3),
        lambda: Program([variable, nodes.Add((0, 1), (2, 2), 2)]),
        lambda: Program([variable, nodes.Add((0,), (3,), 3)]),
        lambda: Program([variable]),
        lambda: Program([]),
    ]
    try:
        found = tries[int(rng.integers(len(tries)))]()
    except gs.GoldsteinError:
        return None, (), {}, False
    return _near(None, [0, 0], [[1, 1]], 1e9), (found,), {}, False


# --- near-KKT claims ------------------------------------------------------------------------------


def constant_pieces(rng: Rng) -> Case:
    """A constraint that is constant has no gradient that could hold f."""
    w = gs.Variable(1)
    nothing = Elementwise(PiecewisePolynomial("nothing", [], [[0]]), gs.sum(w))
    F, limits = gs.sum(w), {"constraints": [nothing <= 0.0]}
    return _near_kkt(F, [0.0], [1.0], 1.0), (F,), limits, False


def tied_constraints(rng: Rng) -> Case:
    """Constraints that hold at one point only hold nothing; x_0 <= 0 written with a tie does."""
    w = gs.Variable(2)
    c, holds = [
        (calculus.norm2(w), False),
        (calculus.sum_largest(gs.stack([w[0], -w[0], 0.0 * w[0]]), 1), False),
        (gs.max(gs.stack([w[0], -w[0]])), False),
        (calculus.sum_largest(gs.stack([w[0], 2.0 * w[0], 3.0 * w[0]]), 1), True),
        (calculus.sum_largest(gs.stack([w[0], 2.0 * w[0]]), 1) + 0.25 * gs.abs(w[1]), True),
        (2.0 * w[0] + calculus.norm2(w), True),
        (2.0 * w[0] + gs.abs(w[0]), True),
    ][int(rng.integers(7))]
    F = -1.0 * w[0] if holds else gs.sum(w)
    claim = _near_kkt(F, [0.0, 0.0], [1.0, 0.5], 1.0 / 3.0, eps=2.0)
    # With an eps of 2 nothing that holds is false of it.
    return claim, (F,), {"constraints": [c <= 0.0]}, None if holds else False


def black_constraints(rng: Rng) -> Case:
    """A near-KKT claim needs constraints whose kinks are known."""
    w = gs.Variable(1)
    F = gs.sum(w)
    black = NonlinearConstraint(lambda x: -x[0], -np.inf, 0.0, jac=lambda x: np.array([[-1.0]]))
    return _near_kkt(F, [0.0], [1.0], 1.0), (F,), {"constraints": [black]}, None


def boxes_of_others(rng: Rng) -> Case:
    """Bounds that were read for another problem."""
    w = gs.Variable(2)
    F = gs.sum(gs.abs(w))
    bounds = Box(np.zeros(3), np.ones(3))
    claim = _near_kkt(F, [0.0, 0.0], [1.0, 1.0], 1.0)
    return claim, (F,), {"bounds": bounds, "constraints": [-1.0 * w[0] <= 0.0]}, False


# --- KKT claims -----------------------------------------------------------------------------------


class Wall:
    """A constraint as an object: x_0 >= 0; its Jacobian may have another shape than it should."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def value(self, x: Any) -> Any:
        return -x[0]

    def gradient(self, x: Any) -> Any:
        return np.resize(np.array([-1.0, 0.0]), self.shape)


def walls(rng: Rng) -> Case:
    """x_0 is held by a wall, x_1 at its kink: the corner is a KKT point of x_0 + |x_1|."""
    shape = [(2,), (1, 2), (2, 2), (3,)][int(rng.integers(4))]
    wall = Wall(shape)
    limit = {"type": "ineq", "fun": lambda x: x[0], "jac": lambda x: -wall.gradient(x)}
    if rng.random() < 0.3:
        limit = {"type": "eq", "fun": Wall((2,))}
    elif rng.random() < 0.5:
        limit = NonlinearConstraint(wall.value, -np.inf, 0.0, jac=wall.gradient)
    signs = -1.0 if isinstance(limit, dict) else 1.0
    rows = np.array([[0.0, 0.25], [0.0, -0.25]])
    claim = made(
        gs.KKTCertificate, x=np.zeros(2), delta=0.5, eps=1e-9, points=rows,
        gradients=np.array([[1.0, 1.0], [1.0, -1.0]]), weights=np.full(2, 0.5),
        constraint_points=np.zeros((1, 2)), constraint_index=np.array([0]),
        constraint_gradients=np.array([[-signs, 0.0]]), constraint_weights=np.array([signs]),
        normal=np.zeros(2), multipliers=np.array([signs]), qualification=0.7, feasibility=0.0,
    )  # fmt: skip
    f = (lambda x: float(x[0] + abs(x[1])), lambda x: np.array([1.0, np.sign(x[1])]))
    return claim, f, {"constraints": [limit]}, None if shape in ((2,), (1, 2)) else False


# --- Goldstein claims and terms -------------------------------------------------------------------


def steep_walls(rng: Rng) -> Case:
    """c |x| with slopes next to the largest float: they cancel, or not by a little."""
    c = float(rng.choice([1e300, 1e305, 1.5e308]))
    lean = float(rng.choice([0.0, 0.25])) * c
    f = (lambda x: float(c * abs(x[0])) + lean * x[0], lambda x: c * np.sign(x) + lean)
    rows = [[c + lean], [lean - c]]
    return _goldstein([0.0], [[0.25], [-0.25]], rows, [0.5, 0.5], 0.0, 0.5), f, {}, lean == 0.0


def large_tables(rng: Rng) -> Case:
    """sum |A w - 1| with a dense matrix of integers: its gradient at 0 is known exactly."""
    n, k = (330, 210) if rng.random() < 0.5 else (210, 330)
    A = rng.integers(-3, 4, (n, k)).astype(float)
    F = gs.sum(gs.abs(A @ gs.Variable(k) - 1.0))
    square = int((A.sum(axis=0).astype(int) ** 2).sum())
    eps = math.sqrt(square) * float(rng.choice([1.0 + 1e-9, 1.0 - 1e-9]))
    claim = _near(F, [0] * k, [np.ones(k)], eps)
    return claim, (F,), {}, Fraction(eps) ** 2 >= square


def irrational_rows(rng: Rng) -> Case:
    """Gradients of an expression that are irrational: exp(x) - 2 x at 0 and 1."""
    w = gs.Variable(1)
    F = gs.sum(calculus.exp(w) - 2.0 * w)
    rows = [[-1.0], [math.e - 2.0]]
    share = (math.e - 2.0) / (math.e - 1.0)
    weights, eps = [share, 1.0 - share], float(rng.choice([1e-9, 1.0]))
    if rng.random() < 0.5:
        weights, eps = [0.5, 0.5], 0.1  # 0.14 is left
    claim = _goldstein([0.5], [[0.0], [1.0]], rows, weights, eps, 0.5)
    return claim, (F,), {}, weights[0] != 0.5


def other_layouts(rng: Rng) -> Case:
    """A lower point of f, which is called with another number of entries."""
    point = np.array([0.0, 0.0])
    claim = made(
        gs.Refutation, x=np.ones(2), point=point, direction=-np.ones(2), fall=1.0,
        label="conditional", exact_pivot=(Fraction(1),) * 2,
    )  # fmt: skip
    f = (lambda x: float(np.abs(x).sum()), np.sign)
    like = [np.zeros(3), np.zeros((2, 1)), [np.zeros(1), np.zeros(2)]][int(rng.integers(3))]
    # A vector of another length lays out nothing: f is called with vectors all the same.
    return claim, f, {"like": like}, None if isinstance(like, np.ndarray) else False


def odd_terms(rng: Rng) -> Case:
    """Terms that are no convex functions, unknown ones, overlapping groups; x off the simplex."""
    which = int(rng.integers(7))
    if which == 0:  # 3 times too far from the simplex
        claim, f = _plus(gs.prox.simplex(1.0), [0.05, 0.01], [1.0, 1.0])
        return claim, f, {}, False
    if which == 1:  # 0 is a subgradient of the nuclear norm at 0
        claim, f = _plus(gs.prox.nuclear(1.0, (1, 2)), [0.0, 0.0], [0.0, 0.0])
        return claim, f, {}, True
    claim, f = _plus(gs.prox.l1(1.0), [0.0, 0.0], [0.5, -0.5])
    plus = [
        Told(name="l1", weight=-1.0), Told(name="l0", weight=1.0), Told(name="l1", weight=math.nan),
        Told(name="group_l2", weight=[1.0, 1.0], groups=[[0, 1], [1]]),
        Told(name="simplex", total=math.inf),
    ][which - 2]  # fmt: skip
    return claim, f, {"plus": plus}, False


class Remembering(gs.Oracle):
    """|x - 1| + (x - 1)^2, whose values come with its gradients."""

    dim = 2

    def __init__(self, lie: float) -> None:
        self.seen: dict[bytes, float] = {}
        self.lie = lie

    def value(self, x: Any) -> float:
        return float(np.abs(x - 1.0).sum() + ((x - 1.0) ** 2).sum())

    def gradient(self, y: Any) -> Any:
        self.seen[y.tobytes()] = self.value(y)
        return np.sign(y - 1.0) + 2.0 * (y - 1.0) + self.lie

    def known_value(self, x: Any) -> float | None:
        return self.seen.get(x.tobytes())


def remembered(rng: Rng) -> Case:
    """A function that remembers values; it is honest, or its gradients are not."""
    lie = float(rng.choice([0.0, 0.0, 0.7]))
    f = Remembering(lie)
    claim = gs.certify(f, np.ones(2) + rng.choice([0.0, 1e-5], 2), delta=1e-3, rng=0)
    # Lies that are smaller than the jump at the kink leave 0 between its slopes.
    return claim, (Remembering(lie),), {}, None if lie else claim.eps >= 0.0


def fewer_numbers(rng: Rng) -> Case:
    """Integers of NumPy, masked arrays and longer ones as bounds of a corner: x >= 0."""
    w = gs.Variable(2)
    F = gs.sum(w)
    kind = int(rng.integers(3))
    low: Any = np.array([np.int64(0), np.int64(0)], dtype=object)
    if kind == 1:
        low = np.ma.masked_array([0.0, 0.0], mask=[True, False])
    if kind == 2:
        low = [Fraction(1, 3), 0]
    limits = {"bounds": _Bounds(low, np.array([1.0, 1.0]))}
    claim = made(
        gs.NearKKTCertificate, x=np.zeros(2), exact_pivot=(Fraction(0),) * 2, delta=0.0, eps=0.0,
        directions=np.ones((1, 2)), weights=np.ones(1), constraint_directions=np.zeros((0, 2)),
        constraint_index=np.zeros(0, int), constraint_weights=np.zeros(0),
        normal=np.array([-1.0, -1.0]), multipliers=np.zeros(0),
    )  # fmt: skip
    return claim, (F,), limits, kind == 0


class _Bounds:
    def __init__(self, lb: Any, ub: Any) -> None:
        self.lb, self.ub = lb, ub


# --- minima ---------------------------------------------------------------------------------------


def _minimum(x: Any, **fields: Any) -> Any:
    x = np.array(x, dtype=float)
    return made(
        gs.MinimumCertificate, **{
            "x": x, "exact_pivot": tuple(map(Fraction, x.tolist())), "delta": 0.0, "eps": 0.0,
            "gap": 0.0, "radius": 1.0, "reach": 1.0, **fields,
        },
    )  # fmt: skip


def too_large(rng: Rng) -> Case:
    """Functions that are too large for a table of second derivatives; x = 1 is no minimum."""
    if rng.random() < 0.5:
        return _minimum(np.ones(6000)), (gs.sum(gs.abs(gs.Variable(6000))),), {}, False
    wide = 150 * 150
    parts = [
        nodes.Variable((), (), 1),
        nodes.Affine((0,), (1,), wide, np.ones((wide, 1))),
        nodes.Product((1, 1), (wide, wide), wide, 1, 150),
        nodes.Affine((2,), (wide,), 1, np.ones((1, wide))),
    ]
    return _minimum([1.0]), (Program(parts),), {}, False


def dead_nodes(rng: Rng) -> Case:
    """x, or |x|, with a node that nothing depends on: everywhere at least 0, or not."""
    kink = nodes.Piecewise(
        (0,), (1,), 1, (Fraction(0),),
        ((Fraction(0), Fraction(-1)), (Fraction(0), Fraction(1))),
    )  # fmt: skip
    own, k = bool(rng.random() < 0.5), int(rng.integers(1, 3))
    idle = nodes.Affine((0,), (1,), 1, np.array([[2.0]]))
    last = nodes.Affine((k if own else 0,), (1,), 1, np.array([[1.0]]))
    parts = [nodes.Variable((), (), 1), *([kink, idle] if k == 1 else [idle, kink]), last]
    far = {"reach": math.inf, "radius": math.inf, "scope": "global"}
    held = (Support(k, 0, 0, Fraction(0), Fraction(0), Fraction(0)),)
    return _minimum([0.0], **far, supports=held), (Program(parts),), {}, own


def longer_points(rng: Rng) -> Case:
    """A lower point with another number of entries, or a fall that is no number."""
    point, fall = (np.zeros(3), 1.0) if rng.random() < 0.5 else (np.zeros(2), math.nan)
    claim = made(
        gs.Refutation, x=np.ones(2), point=point, direction=-np.ones(point.size), fall=fall,
        label=str(rng.choice(["conditional", "refuted"])), exact_pivot=(Fraction(1),) * 2,
    )  # fmt: skip
    if rng.random() < 0.5:
        return claim, (gs.sum(gs.abs(gs.Variable(2))),), {}, False
    return claim, (lambda x: float(np.abs(x).sum()), np.sign), {}, False


CASES: list[Callable[[Rng], Case]] = [
    another_dimension, high_powers, scattered_places, odd_boxes, odd_boxes, norms_below_kinks,
    nodes_that_do_not_fit, nodes_that_do_not_fit, constant_pieces, tied_constraints,
    black_constraints, boxes_of_others, walls, steep_walls, irrational_rows, large_tables,
    other_layouts, too_large, dead_nodes, longer_points, odd_terms, odd_terms, remembered,
    fewer_numbers,
]  # fmt: skip


def odd_inputs(rng: Rng, seen: Seen) -> None:
    for case in _some(rng):
        try:
            claim, function, limits, true = case(rng)
        except gs.GoldsteinError as refusal:
            seen.silent(f"{case.__name__}: {refusal}")
            continue
        if claim is None:
            seen.silent(f"{case.__name__}: cannot be stated")
            continue
        ok, label = verdict(claim, *function, **limits)
        seen.claim(ok, label, true, f"{case.__name__}: {case.__doc__}")


def _some(rng: Rng) -> Iterator[Callable[[Rng], Case]]:
    for k in rng.choice(len(CASES), 4, replace=False).tolist():
        yield CASES[k]


ATTACK = Attack(
    "odd-inputs",
    "claims whose parts do not belong together; functions, limits and terms of unusual make",
    weight=3,
    one=odd_inputs,
)
