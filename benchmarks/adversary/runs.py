"""Honest runs of every kind, from points of size 1 to 1e8, badly scaled; for success and machines.

The data of a run are the same on every machine, bit for bit: no product of matrices and no power of
an array makes them. What the user's own functions compute with them is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from benchmarks.adversary.suite import Rng
from scipy.optimize import LinearConstraint, NonlinearConstraint

import goldstein as gs

Function = tuple[Any, ...]


@dataclass
class Run:
    """What to call, and what `verify` is given afterwards."""

    call: Callable[[], Any]
    function: Function
    limits: dict[str, Any] = field(default_factory=dict)


class Setting:
    """Sizes that one run shares: where its points are, how it is scaled, what it asks for."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        self.dim = int(rng.integers(1, 7))
        # Where points are large, little of a float is left for the ball.
        self.size = float(10.0 ** rng.uniform(float(rng.choice([0.0, 5.0])), 8.0))
        self.centre = self.size * rng.uniform(-1, 1, self.dim)
        sizes = _powers(rng, -3, 3, self.dim)
        self.scale = sizes if rng.random() < 0.4 else np.ones(self.dim)
        self.start = self.centre + rng.standard_normal(self.dim)
        self.eps = float(10.0 ** rng.uniform(-6, -1))
        self.delta = max(float(10.0 ** rng.uniform(-6, -1)), 1e-13 * self.size)

    def __str__(self) -> str:
        return (
            f"d = {self.dim}, |x| = {self.size:.1g}, scales {np.round(self.scale, 3).tolist()}, "
            f"eps = {self.eps:.1g}, delta = {self.delta:.1g}"
        )

    @property
    def ask(self) -> dict[str, Any]:
        return {"eps": self.eps, "delta": self.delta, "rng": 0, "max_calls": 600}

    def minimised(
        self, function: Function, start: Any, limits: dict[str, Any] | None = None, **more: Any
    ) -> Run:
        """Return a run of `minimize`; bounds, constraints and terms are for `verify`, too."""
        limits = limits or {}
        fun, *jac = function
        ask = {**self.ask, **more, **limits}
        return Run(lambda: gs.minimize(fun, start, *jac, **ask), function, limits)

    def objective(self) -> Function:
        """Return a function with kinks and a minimum, and its gradient."""
        rows = int(self.rng.integers(self.dim, 2 * self.dim + 2))
        A = self.rng.standard_normal((rows, self.dim)) * self.scale
        b, centre = _products(A, self.centre), self.centre
        turned = centre + 1.0
        functions: tuple[Function, ...] = (
            (lambda x: float(np.abs(A @ x - b).sum()), lambda x: A.T @ np.sign(A @ x - b)),
            (lambda x: float(np.abs(A @ x - b).max()), lambda x: _largest_row(A, A @ x - b)),
            (
                lambda x: float(0.5 * (A @ x - b) @ (A @ x - b) + np.abs(x - centre).sum()),
                lambda x: A.T @ (A @ x - b) + np.sign(x - centre),
            ),
            (
                lambda x: float(np.abs(x - centre).sum() + 0.1 * ((x - turned) ** 2).sum()),
                lambda x: np.sign(x - centre) + 0.2 * (x - turned),
            ),
        )
        return functions[int(self.rng.integers(len(functions)))]


def _powers(rng: Rng, low: float, high: float, count: int) -> Any:
    return np.array([10.0**exponent for exponent in rng.uniform(low, high, count).tolist()])


def _products(A: Any, x: Any) -> Any:
    """Return A @ x, correctly rounded."""
    return np.array([math.fsum(row * x) for row in A])


def _largest_row(A: Any, residual: Any) -> Any:
    k = int(np.abs(residual).argmax())
    return np.sign(residual[k]) * A[k]


def plain(s: Setting) -> Run:
    return s.minimised(s.objective(), s.start)


def asked(s: Setting) -> Run:
    """`certify` where the minimum is, or beside it."""
    fun, jac = s.objective()
    at = s.centre if s.rng.random() < 0.5 else s.start
    return Run(lambda: gs.certify(fun, at, jac, delta=s.delta, rng=0), (fun, jac))


def cancelling(s: Setting) -> Run:
    """Up to 200 variables and fewer rows: A @ x - b vanishes at the minimum."""
    dim = int(10.0 ** s.rng.uniform(0.7, 2.3))
    rows = int(s.rng.integers(2, dim + 1)) if s.rng.random() < 0.8 else 2 * dim
    A = s.rng.standard_normal((rows, dim)) * 10.0 ** s.rng.uniform(-2, 2)
    b, weight = s.rng.standard_normal(rows), float(10.0 ** s.rng.uniform(-3, 0))
    functions: tuple[Function, ...] = (
        (
            lambda x: float(0.5 * (A @ x - b) @ (A @ x - b) + weight * np.abs(x).sum()),
            lambda x: A.T @ (A @ x - b) + weight * np.sign(x),
        ),
        (lambda x: float(0.5 * (A @ x - b) @ (A @ x - b)), lambda x: A.T @ (A @ x - b)),
        (
            lambda x: float(np.abs(A @ x - b).sum() + weight * 0.5 * x @ x),
            lambda x: A.T @ np.sign(A @ x - b) + weight * x,
        ),
    )
    return s.minimised(functions[int(s.rng.choice([0, 1, 1, 2]))], np.zeros(dim))


def bounded(s: Setting) -> Run:
    width = _powers(s.rng, -2, 1, s.dim)
    shift = s.rng.choice([-1.0, 0.0, 1.0], s.dim) * width
    low, high = s.centre + shift - width, s.centre + shift + width
    return s.minimised(s.objective(), np.clip(s.start, low, high), {"bounds": list(zip(low, high))})


def linear(s: Setting) -> Run:
    rows = s.rng.standard_normal((int(s.rng.integers(1, s.dim + 1)), s.dim))
    level = _products(rows, s.centre) - s.rng.choice([0.0, 0.5, -0.5], len(rows))
    floor = level if s.rng.random() < 0.3 else -np.inf
    limits = {"constraints": [LinearConstraint(rows, floor, level)]}
    return s.minimised(s.objective(), s.start, limits)


def _ball(s: Setting, jac: Any = "2-point") -> Any:
    """A ball that holds the minimum, or not."""
    middle, room = s.centre + 1.0, float(s.rng.choice([0.5, 2.0, 10.0]))
    slope = (lambda x: 2 * (x - middle)[None]) if jac is True else jac
    return NonlinearConstraint(
        lambda x: float((x - middle) @ (x - middle)), -np.inf, room, jac=slope
    )


def nonlinear(s: Setting) -> Run:
    limits: dict[str, Any] = {"constraints": [_ball(s, jac=True)]}
    start = s.start
    if s.rng.random() < 0.4:
        low = s.centre - 0.7
        limits["bounds"] = list(zip(low, s.centre + 5.0))
        start = np.maximum(start, low)
    return s.minimised(s.objective(), start, limits)


def plus(s: Setting) -> Run:
    weight = float(10.0 ** s.rng.uniform(-2, 1))
    halves = [list(range(0, s.dim, 2)), list(range(1, s.dim, 2))]
    terms = (
        gs.prox.l1(weight), gs.prox.box(s.centre - 0.5, s.centre + 2.0),
        gs.prox.group_l2(weight, [half for half in halves if half]),
        gs.prox.simplex(max(1.0, float(math.fsum(np.abs(s.centre))))),
        gs.prox.nuclear(weight, (s.dim, 1)),
    )  # fmt: skip
    term = terms[int(s.rng.integers(len(terms)))]
    return s.minimised(s.objective(), s.start, {"plus": term})


def values(s: Setting) -> Run:
    more = {"eps": max(s.eps, 0.1), "max_calls": 3000}
    return s.minimised(s.objective()[:1], s.start, jac="2-point", **more)


def values_limited(s: Setting) -> Run:
    more = {"eps": max(s.eps, 0.1), "max_calls": 4000}
    limits = {"constraints": [_ball(s)]}
    return s.minimised(s.objective()[:1], s.start, limits, jac="2-point", **more)


def _expression(s: Setting) -> tuple[Any, Any, Any]:
    w, place = gs.Variable(s.dim), np.round(s.centre)
    rows = s.rng.integers(-2, 3, (s.dim + 1, s.dim)).astype(float)
    level = _products(rows, place)
    return w, place, gs.norm1(rows @ w - level) + 0.5 * gs.sum_squares(w - place - 1.0)


def near(s: Setting) -> Run:
    return s.minimised(_expression(s)[2:], s.start, stationarity="near")


def near_limited(s: Setting) -> Run:
    w, place, F = _expression(s)
    low, high = place - 2.0, place + 3.0
    limits = {
        "bounds": list(zip(low, high)), "constraints": [gs.sum(gs.abs(w - place)) <= 1.0],
    }  # fmt: skip
    return s.minimised((F,), np.clip(s.start, low, high), limits, stationarity="near")


def separable(s: Setting) -> Run:
    dim = s.dim + 2
    start = s.size * s.rng.uniform(-1, 1, dim)

    def value(u: Any) -> Any:
        return np.abs(u[:, 0] - u[:, 1]) + 0.1 * (u[:, 0] - 1.0) ** 2

    def gradient(u: Any) -> Any:
        sign = np.sign(u[:, 0] - u[:, 1])
        return np.stack([sign + 0.2 * (u[:, 0] - 1.0), -sign], axis=1)

    pairs = np.arange(dim - 1)[:, None] + [0, 1]
    return s.minimised((gs.PartiallySeparable((value, gradient), pairs),), start)


def told(s: Setting) -> Run:
    """The same run, asked and told."""
    fun, jac = s.objective()

    def call() -> Any:
        search = gs.Search(s.start, **s.ask)
        while (question := search.ask()) is not None:
            at = question.point
            search.tell(**({"value": fun(at)} if question.value else {"gradient": jac(at)}))
        return search.result

    return Run(call, (fun, jac))


#: Kinds, and how often each is drawn: claims from values take longer.
KINDS: dict[Callable[[Setting], Run], int] = {
    plain: 5, asked: 6, cancelling: 2, bounded: 6, linear: 6, nonlinear: 6, plus: 6, values: 2,
    values_limited: 1, near: 3, near_limited: 1, separable: 3, told: 1,
}  # fmt: skip


def drawn(rng: Rng, shares: dict[Callable[[Setting], Run], int]) -> tuple[Run, str]:
    """Return a run of a random kind, and words for it."""
    kinds = [kind for kind, share in shares.items() for _ in range(share)]
    kind, setting = kinds[int(rng.integers(len(kinds)))], Setting(rng)
    return kind(setting), f"{kind.__name__}, {setting}"
