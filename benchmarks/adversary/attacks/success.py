"""Success against verify: honest runs of twelve kinds, at points of size 1 to 1e8, badly scaled.

Nothing is known about the truth here; but what `minimize` calls a success must verify, for five
people who draw displacements of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, NonlinearConstraint

import goldstein as gs
from benchmarks.adversary.ask import honest
from benchmarks.adversary.suite import Attack, Rng, Seen

Box = tuple[Callable[[Any], float], Callable[[Any], Any]]


class Setting:
    """Sizes that one run shares: where its points are, how it is scaled, what it asks for."""

    def __init__(self, rng: Rng, seen: Seen) -> None:
        self.rng = rng
        self.dim = int(rng.integers(1, 7))
        self.size = float(10.0 ** rng.uniform(0, 8))
        self.centre = self.size * rng.uniform(-1, 1, self.dim)
        self.scale = 10.0 ** rng.uniform(-3, 3, self.dim) if rng.random() < 0.4 else np.ones(self.dim)
        self.start = self.centre + rng.standard_normal(self.dim)
        self.eps = float(10.0 ** rng.uniform(-6, -1))
        self.delta = max(float(10.0 ** rng.uniform(-6, -1)), 1e-13 * self.size)
        seen.note(
            f"d = {self.dim}, |x| = {self.size:.1g}, scales {np.round(self.scale, 3).tolist()}, "
            f"eps = {self.eps:.1g}, delta = {self.delta:.1g}"
        )

    @property
    def ask(self) -> dict[str, Any]:
        return {"eps": self.eps, "delta": self.delta, "rng": 0, "max_calls": 600}

    def objective(self) -> Box:
        """Return a function with kinks and a minimum."""
        rows = int(self.rng.integers(self.dim, 2 * self.dim + 2))
        A = self.rng.standard_normal((rows, self.dim)) * self.scale
        b = A @ self.centre
        kind = int(self.rng.integers(4))
        if kind == 0:
            return lambda x: float(np.abs(A @ x - b).sum()), lambda x: A.T @ np.sign(A @ x - b)
        if kind == 1:
            return (
                lambda x: float(np.abs(A @ x - b).max()),
                lambda x: _steepest_row(A, A @ x - b),
            )
        if kind == 2:
            return (
                lambda x: float(0.5 * (A @ x - b) @ (A @ x - b) + np.abs(x - self.centre).sum()),
                lambda x: A.T @ (A @ x - b) + np.sign(x - self.centre),
            )
        turned = self.centre + 1.0
        return (
            lambda x: float(np.abs(x - self.centre).sum() + 0.1 * ((x - turned) ** 2).sum()),
            lambda x: np.sign(x - self.centre) + 0.2 * (x - turned),
        )


def _steepest_row(A: Any, residual: Any) -> Any:
    k = int(np.abs(residual).argmax())
    return np.sign(residual[k]) * A[k]


def plain(s: Setting, seen: Seen) -> None:
    fun, jac = s.objective()
    honest(seen, lambda: gs.minimize(fun, s.start, jac, **s.ask), (fun, jac), None)


def asked(s: Setting, seen: Seen) -> None:
    """`certify` where the minimum is, or beside it."""
    fun, jac = s.objective()
    at = s.centre if s.rng.random() < 0.5 else s.start
    honest(seen, lambda: gs.certify(fun, at, jac, delta=s.delta, rng=0), (fun, jac), None)


def bounded(s: Setting, seen: Seen) -> None:
    fun, jac = s.objective()
    width = 10.0 ** s.rng.uniform(-2, 1, s.dim)
    shift = s.rng.choice([-1.0, 0.0, 1.0], s.dim) * width
    limits = {"bounds": list(zip(s.centre + shift - width, s.centre + shift + width))}
    start = np.clip(s.start, *np.array(limits["bounds"]).T)
    run = lambda: gs.minimize(fun, start, jac, **s.ask, **limits)  # noqa: E731
    honest(seen, run, (fun, jac), None, **limits)


def linear(s: Setting, seen: Seen) -> None:
    fun, jac = s.objective()
    rows = s.rng.standard_normal((int(s.rng.integers(1, s.dim + 1)), s.dim))
    level = rows @ s.centre - s.rng.choice([0.0, 0.5, -0.5], len(rows))
    equal = s.rng.random() < 0.3
    limits = {"constraints": [LinearConstraint(rows, level if equal else -np.inf, level)]}
    run = lambda: gs.minimize(fun, s.start, jac, **s.ask, **limits)  # noqa: E731
    honest(seen, run, (fun, jac), None, **limits)


def _ball(s: Setting) -> Any:
    """A ball that holds the minimum, or not."""
    middle, room = s.centre + 1.0, float(s.rng.choice([0.5, 2.0, 10.0]))
    return NonlinearConstraint(
        lambda x: float((x - middle) @ (x - middle)), -np.inf, room,
        jac=lambda x: 2 * (x - middle)[None],
    )  # fmt: skip


def nonlinear(s: Setting, seen: Seen) -> None:
    fun, jac = s.objective()
    limits: dict[str, Any] = {"constraints": [_ball(s)]}
    if s.rng.random() < 0.4:
        limits["bounds"] = list(zip(s.centre - 0.7, s.centre + 5.0))
    start = np.maximum(s.start, s.centre - 0.7) if "bounds" in limits else s.start
    run = lambda: gs.minimize(fun, start, jac, **s.ask, **limits)  # noqa: E731
    honest(seen, run, (fun, jac), None, **limits)


def plus(s: Setting, seen: Seen) -> None:
    fun, jac = s.objective()
    weight = float(10.0 ** s.rng.uniform(-2, 1))
    halves = [list(range(0, s.dim, 2)), list(range(1, s.dim, 2))]
    terms = [
        gs.prox.l1(weight), gs.prox.box(s.centre - 0.5, s.centre + 2.0),
        gs.prox.group_l2(weight, [half for half in halves if half]),
        gs.prox.simplex(max(1.0, float(np.abs(s.centre).sum()))),
        gs.prox.nuclear(weight, (s.dim, 1)),
    ]  # fmt: skip
    term = terms[int(s.rng.integers(len(terms)))]
    seen.note(repr(term)[:200])
    run = lambda: gs.minimize(fun, s.start, jac, plus=term, **s.ask)  # noqa: E731
    honest(seen, run, (fun, jac), None, plus=term)


def values(s: Setting, seen: Seen) -> None:
    fun, _ = s.objective()
    ask = {**s.ask, "eps": max(s.eps, 0.1), "delta": max(s.delta, 1e-3), "max_calls": 3000}
    honest(seen, lambda: gs.minimize(fun, s.start, "2-point", **ask), (fun,), None)


def values_limited(s: Setting, seen: Seen) -> None:
    fun, _ = s.objective()
    ball = _ball(s)
    limits = {"constraints": [NonlinearConstraint(ball.fun, ball.lb, ball.ub)]}
    ask = {**s.ask, "eps": max(s.eps, 0.1), "delta": max(s.delta, 1e-3), "max_calls": 4000}
    run = lambda: gs.minimize(fun, s.start, "2-point", **ask, **limits)  # noqa: E731
    honest(seen, run, (fun,), None, **limits)


def _expression(s: Setting) -> Any:
    w = gs.Variable(s.dim)
    rows = s.rng.integers(-2, 3, (s.dim + 1, s.dim)).astype(float)
    place = np.round(s.centre)
    return w, gs.norm1(rows @ w - rows @ place) + 0.5 * gs.sum_squares(w - place - 1.0)


def near(s: Setting, seen: Seen) -> None:
    _, F = _expression(s)
    run = lambda: gs.minimize(F, s.start, stationarity="near", **s.ask)  # noqa: E731
    honest(seen, run, (F,), None)


def near_limited(s: Setting, seen: Seen) -> None:
    w, F = _expression(s)
    place = np.round(s.centre)
    limits = {
        "bounds": list(zip(place - 2.0, place + 3.0)),
        "constraints": [gs.sum(gs.abs(w - place)) <= 1.0],
    }
    start = np.clip(s.start, place - 2.0, place + 3.0)
    run = lambda: gs.minimize(F, start, stationarity="near", **s.ask, **limits)  # noqa: E731
    honest(seen, run, (F,), None, **limits)


def separable(s: Setting, seen: Seen) -> None:
    dim = s.dim + 2
    centre = s.size * s.rng.uniform(-1, 1, dim)

    def value(u: Any) -> Any:
        return np.abs(u[:, 0] - u[:, 1]) + 0.1 * (u[:, 0] - 1.0) ** 2

    def gradient(u: Any) -> Any:
        s_ = np.sign(u[:, 0] - u[:, 1])
        return np.stack([s_ + 0.2 * (u[:, 0] - 1.0), -s_], axis=1)

    pairs = np.arange(dim - 1)[:, None] + [0, 1]
    f = gs.PartiallySeparable((value, gradient), pairs)
    honest(seen, lambda: gs.minimize(f, centre, **s.ask), (f,), None)


def told(s: Setting, seen: Seen) -> None:
    """The same run, asked and told."""
    fun, jac = s.objective()

    def run() -> Any:
        search = gs.Search(s.start, **s.ask)
        while (question := search.ask()) is not None:
            at = question.point
            if question.value:
                search.tell(value=fun(at))
            else:
                search.tell(gradient=jac(at))
        return search.result

    honest(seen, run, (fun, jac), None)


def machine(s: Setting, seen: Seen) -> None:
    """A small margin machine; its certificate is about the objective of its data."""
    from goldstein.sklearn import RhoMarginSVC

    X = s.rng.standard_normal((12, 2)) * 10.0 ** s.rng.uniform(-2, 2)
    y = np.where(X[:, 0] + 0.3 * s.rng.standard_normal(12) > 0, 1, -1)
    y[:2] = [1, -1]

    def run() -> Any:
        fitted.append(RhoMarginSVC(random_state=0, max_calls=2000).fit(X, y))
        return fitted[0].certificate_

    fitted: list[Any] = []
    run_once = run()
    F = fitted[0].objective(X, y)
    honest(seen, lambda: run_once, (F,), None)


#: Kinds, and how often each is drawn: claims from values and fits take longer.
KINDS: dict[Callable[[Setting, Seen], None], int] = {
    plain: 6, asked: 6, bounded: 6, linear: 6, nonlinear: 6, plus: 6, values: 2, values_limited: 1,
    near: 3, near_limited: 1, separable: 3, told: 1, machine: 1,
}  # fmt: skip


def success(rng: Rng, seen: Seen) -> None:
    kinds = [kind for kind, share in KINDS.items() for _ in range(share)]
    kind = kinds[int(rng.integers(len(kinds)))]
    seen.note(f"kind {kind.__name__}")
    kind(Setting(rng, seen), seen)


ATTACK = Attack(
    "success",
    "honest runs of thirteen kinds at |x| from 1 to 1e8, badly scaled: each success verified five times",
    weight=14,
    one=success,
)
