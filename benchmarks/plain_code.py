"""Functions as people write them: traced, minimised without a gradient, and proved near.

`python -m benchmarks.plain_code` prints one line for each: the answer, what was proved, calls and
seconds; or why it was refused. `--speed` prints what value and gradient of a traced function cost
at d = 100, against the value of plain NumPy. Results: plain_code.md.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import goldstein as gs

RNG = np.random.default_rng(29)
T = np.linspace(0.0, 2.0, 9)
DECAY = 2.0 * np.exp(-0.7 * T) + 0.1 * RNG.standard_normal(9)
POINTS, CLOUD = RNG.standard_normal((12, 2)), RNG.standard_normal((10, 3))
Z, LABEL = RNG.standard_normal((20, 3)), np.sign(RNG.standard_normal(20))
RATE = 1.0 / (1.0 + np.exp(-Z @ [1.0, -1.0, 0.5])) + 0.05 * RNG.standard_normal(20)
RETURNS = 0.01 + 0.05 * RNG.standard_normal((15, 3))
GRID = np.linspace(-1.0, 1.0, 15)


def rosenbrock(x: Any) -> Any:
    return 8.0 * abs(x[0] ** 2 - x[1]) + (1.0 - x[0]) ** 2


def huber_fit(w: Any, k: float = 1.345) -> Any:
    r = Z @ w - RATE
    return np.where(np.abs(r) <= k, 0.5 * r**2, k * np.abs(r) - 0.5 * k**2).sum() + abs(w).sum()


def tukey_fit(w: Any, c: float = 2.0) -> Any:
    r = Z @ w - RATE
    return np.where(abs(r) < c, 1.0 - (1.0 - (r / c) ** 2) ** 3, 1.0).sum() + 0.5 * abs(w).sum()


def loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        total += max(abs(x[i] - math.cos(x[i + 1])), 0.1 * x[i] ** 2)
    return total + 0.05 * sum(v * v for v in x)


def branches(x: Any) -> Any:
    if x[0] > 0:
        return x[0]
    return -2.0 * x[0]


#: Name: (transcendental kinks?, function, start).
FUNCTIONS: dict[str, tuple[bool, Callable[[Any], Any], list[float]]] = {
    "kink on exp": (
        True,
        lambda x: abs(x[0] - np.exp(x[1])) + 0.1 * (x[0] - 2) ** 2 + 0.1 * x[1] ** 2,
        [1, 1],
    ),
    "kink on sin": (True, lambda x: abs(x[1] - np.sin(x[0])) + 0.5 * (x[0] - 1) ** 2, [0, 0]),
    "L1 decay": (True, lambda p: np.abs(p[0] * np.exp(-p[1] * T) - DECAY).sum(), [1, 1]),
    "enclosing circle": (
        True,
        lambda c: np.max(np.sqrt(((POINTS - c) ** 2).sum(axis=1))),
        [0.1, 0.2],
    ),
    "enclosing ball": (True, lambda c: np.max(np.linalg.norm(CLOUD - c, axis=1)), [0.1, 0.2, 0]),
    "rational kink": (
        False,
        lambda x: abs(x[0] / (1 + x[1] ** 2) - 0.5) + 0.1 * (x[0] - 1) ** 2 + 0.2 * (x[1] - 1) ** 2,
        [0, 0],
    ),
    "tanh, cos, relu": (
        True,
        lambda x: (
            abs(np.tanh(x[0]) - np.cos(x[1]))
            + max(x[1] - x[0], 0)
            + 0.1 * x[0] ** 2
            + 0.1 * (x[1] - 1) ** 2
        ),
        [0, 0],
    ),
    "nested": (
        True,
        lambda x: abs(abs(x[0] - np.cos(x[1])) - np.exp(x[1]) + 1.3) + 0.1 * (x @ x),
        [0.5, 0.5],
    ),
    "minimax exp": (
        True,
        lambda p: np.max(np.abs((p[0] + p[1] * GRID) / (1 + p[2] * GRID) - np.exp(GRID))),
        [1, 0.5, -0.4],
    ),
    "three curves": (
        True,
        lambda x: (
            abs(x[0] - np.exp(x[1]))
            + abs(x[2] - np.sin(x[0]))
            + max(x[0] - x[1] ** 2, 0)
            + 0.1 * ((x - 1) ** 2).sum()
        ),
        [0.5, 0.5, 0.5],
    ),
    "L1 sigmoid fit": (
        True,
        lambda w: np.abs(1 / (1 + np.exp(-Z @ w)) - RATE).sum() + 0.1 * np.abs(w).sum(),
        [0.1, 0.1, 0.1],
    ),
    "L1 tanh fit": (
        True,
        lambda w: np.abs(np.tanh(Z @ w) - RATE).mean() + 0.05 * np.abs(w).sum(),
        [0.1, 0.1, 0.1],
    ),
    "log barrier": (False, lambda x: np.abs(x - 1).sum() - 0.1 * np.log(x).sum(), [0.5, 2]),
    "entropy kink": (
        True,
        lambda x: abs(x[0] * np.log(x[0]) + 0.2) + (x[0] - 0.5) ** 2 + abs(x[1]),
        [0.5, 0.5],
    ),
    "arctan": (
        True,
        lambda x: abs(np.arctan(x[0]) - x[1]) + 0.2 * (x[0] - 1) ** 2 + 0.1 * x[1] ** 2,
        [0, 0],
    ),
    "max of exps": (
        True,
        lambda x: max(np.exp(x[0]), np.exp(-x[0]) + x[1], x[1] ** 2 - x[0]),
        [1, 1],
    ),
    "sum of roots": (
        True,
        lambda x: np.sqrt(1 + x[0] ** 2) + abs(np.sqrt(1 + x[1] ** 2) - 1.5) + 0.1 * x[1],
        [1, 1],
    ),
    "cosh": (
        True,
        lambda x: abs(np.cosh(x[0]) - 2.0 * x[1]) + 0.5 * (x[1] - 1) ** 2 + 0.1 * x[0],
        [0.5, 0.5],
    ),
    "loop with cos": (True, loop, [1, 0.5, 0.2]),
    "power": (True, lambda x: abs(x[0] ** 1.5 - x[1]) + (x[0] - 2) ** 2 + 0.3 * x[1], [1, 1]),
    "L1 fit": (False, lambda w: np.abs(Z @ w - RATE).sum(), [0, 0, 0]),
    "lasso": (
        False,
        lambda w: 0.5 * ((Z @ w - RATE) ** 2).mean() + 0.1 * np.abs(w).sum(),
        [1, 1, 1],
    ),
    "hinge": (False, lambda w: np.maximum(0, 1 - LABEL * (Z @ w)).sum() + 0.5 * w @ w, [0, 0, 0]),
    "logistic lasso": (
        False,
        lambda w: np.log1p(np.exp(-LABEL * (Z @ w))).sum() + np.abs(w).sum(),
        [1, 1, 1],
    ),
    "pinball": (
        False,
        lambda w: np.maximum(0.3 * (RATE - Z @ w), -0.7 * (RATE - Z @ w)).sum(),
        [0, 0, 0],
    ),
    "Huber": (False, huber_fit, [1, 1, 1]),
    "Tukey": (False, tukey_fit, [1, 1, 1]),
    "least median": (
        False,
        lambda w: np.median(np.abs(Z[:7] @ w - RATE[:7])) + 0.1 * w @ w,
        [0.5, 0.5, 0.5],
    ),
    "trimmed squares": (
        False,
        lambda w: np.sort((Z @ w - RATE) ** 2)[:15].sum() + 0.1 * np.abs(w).sum(),
        [1, 1, 1],
    ),
    "CVaR": (
        False,
        lambda w: -np.sort(RETURNS @ w)[:4].mean() + abs(w.sum() - 1) + 0.1 * w @ w,
        [0.3, 0.3, 0.3],
    ),
    "log-sum-exp": (False, lambda x: np.log(np.exp(x).sum()) + np.abs(x).sum(), [1, -1, 0.5]),
    "total variation": (
        False,
        lambda x: np.abs(np.diff(x)).sum() + 0.5 * ((x - [1, 2, 4, 3]) ** 2).sum(),
        [0, 0, 0, 0],
    ),
    "Fermat-Weber": (False, lambda c: np.linalg.norm(POINTS - c, axis=1).sum(), [0.3, 0.1]),
    "Rosenbrock with a kink": (False, rosenbrock, [-1.2, 1]),
    "maxq": (False, lambda x: np.max(x**2), [1, -2, 3]),
    "crescent": (
        False,
        lambda x: max(
            x[0] ** 2 + (x[1] - 1) ** 2 + x[1] - 1, -(x[0] ** 2) - (x[1] - 1) ** 2 + x[1] + 1
        ),
        [-1.5, 2],
    ),
    "branches": (False, branches, [1]),
    "a mask": (False, lambda x: x[x > 0].sum() + x @ x, [1, 1]),
    "singular values": (False, lambda x: np.linalg.svd(x.reshape(2, 2))[1].sum(), [1, 0, 0, 1]),
    "a step": (False, lambda x: np.where(x[0] > 0, 1.0, 0.0) + x[1] ** 2, [1, 1]),
}
REFUSED = ("branches", "a mask", "singular values", "a step")


def run(name: str, tol: float = 1e-4, seed: int = 0) -> gs.Result:
    """Minimise one of them, and ask for a proof of near stationarity."""
    _, f, start = FUNCTIONS[name]
    return gs.minimize(f, np.array(start, dtype=float), eps=tol, delta=tol, rng=seed,
                       stationarity="near", max_time=20)  # fmt: skip


#: For times per call, d = 100.
LARGE, TARGET = RNG.standard_normal((100, 100)) / 10.0, RNG.standard_normal(100)
SIDE, CENTRES = np.sign(TARGET), RNG.standard_normal((50, 2))


def walk(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        total += abs(x[i] - x[i + 1])
    return total


def large_huber(x: Any, k: float = 1.345) -> Any:
    r = LARGE @ x - TARGET
    return np.where(np.abs(r) <= k, 0.5 * r**2, k * np.abs(r) - 0.5 * k**2).sum()


TIMED: dict[str, Callable[[Any], Any]] = {
    "L1 fit": lambda x: np.abs(LARGE @ x - TARGET).sum(),
    "max, relu, squares": lambda x: np.max(x) + np.maximum(x, 0).sum() + (x**2).sum(),
    "loop over 99 terms": walk,
    "kinked Rosenbrock": lambda x: (8 * np.abs(x[:-1] ** 2 - x[1:]) + (1 - x[:-1]) ** 2).sum(),
    "logistic": lambda x: np.log1p(np.exp(-SIDE * (LARGE @ x))).sum(),
    "Huber": large_huber,
    "L1 tanh fit": lambda x: np.abs(np.tanh(LARGE @ x) - TARGET).sum() + 0.1 * np.abs(x).sum(),
    "lasso": lambda x: 0.5 * ((LARGE @ x - TARGET) ** 2).sum() + 0.1 * np.abs(x).sum(),
    "hinge": lambda x: np.maximum(0, 1 - SIDE * (LARGE @ x)).sum() + 0.5 * x @ x,
    "total variation": lambda x: np.abs(np.diff(x)).sum() + 0.5 * ((x - TARGET) ** 2).sum(),
    "maxq": lambda x: np.max(x**2),
    "max of affine": lambda x: np.max(LARGE @ x + TARGET),
    "distances": lambda x: np.linalg.norm(CENTRES - x.reshape(-1, 2), axis=1).sum(),
    "median": lambda x: np.median(np.abs(LARGE @ x - TARGET)),
    "trimmed squares": lambda x: np.sort((LARGE @ x - TARGET) ** 2)[:75].sum(),
    "exponentials": lambda x: np.abs(x[0] * np.exp(-0.5 * x) - TARGET).sum(),
}


def speed(repeats: int = 9) -> None:
    """Print microseconds per call: the best of some rounds over sixty points."""
    points, ratios = [RNG.standard_normal(100) for _ in range(60)], []

    def best(call: Callable[[Any], Any]) -> float:
        rounds = []
        for _ in range(repeats):
            begin = time.perf_counter()
            for x in points:
                call(x)
            rounds.append(time.perf_counter() - begin)
        return min(rounds) / len(points) * 1e6

    for name, f in TIMED.items():
        F = gs.trace(f, np.ones(100))
        plain, both = best(f), best(lambda x, F=F: (F.value(x), F.gradient(x)))
        ratios.append(both / plain)
        print(f"{name:20s} plain {plain:5.1f}  value and gradient {both:5.1f}  {ratios[-1]:.2f}")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.2f}, {sum(r <= 3.0 for r in ratios)} of {len(ratios)} up to 3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--speed", action="store_true")
    asked = parser.parse_args()
    if asked.speed:
        return speed()
    tol, proved = asked.tol, 0
    for name in FUNCTIONS:
        begin = time.thread_time()
        try:
            res = run(name, tol)
        except TypeError as refusal:
            print(f"{name:24s} refused: {str(refusal)[:110]}")
            continue
        proof, boxed = res.certificate, getattr(res.certificate, "radii", None) is not None
        proved += res.success
        print(f"{name:24s} {'proved' if res.success else 'NOT   '} eps {proof.eps:.1e} delta "
              f"{proof.delta:.1e} {'box' if boxed else '   '} {res.nfev}+{res.ngev} calls "
              f"{time.thread_time() - begin:.2f} s")  # fmt: skip
    print(f"{proved} of {len(FUNCTIONS)} proved near")


if __name__ == "__main__":
    main()
