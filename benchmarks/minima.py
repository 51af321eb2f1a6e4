"""Which runs end with a minimum on a ball, in a box, or everywhere: tables.

`python -m benchmarks.minima problems` takes public problems as expressions; `fits` fits of data
sets that come with scikit-learn; `ramps` ramp machines proved by a tree of cases, against a
mixed-integer solver (HiGHS); `starts` 200 starts at saddles and maxima.
Times are of one core.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import goldstein as gs
from goldstein.construction.cases import with_cases
from goldstein.construction.minimum import prove_minimum

TARGET: dict[str, Any] = {"eps": 1e-4, "delta": 1e-4, "stationarity": "minimum", "rng": 0}


def line(name: str, d: int, res: Any, seconds: float, F: Any, convex: str = "") -> str:
    """Return one row of a table, and count what was claimed."""
    cert = res.certificate
    if getattr(cert, "kind", "") != "minimum":
        why = res.message.removeprefix("the point was found, but ")[:48]
        return f"{name:28} {d:3} {convex:6} not proved                  {seconds:6.2f} s  {why}"
    assert cert.verify(F).ok, name
    kind = "unique" if cert.unique else "strict" if cert.strict else ""
    where = f"{cert.scope} {kind}".strip()
    radius = "" if math.isinf(cert.radius) else f"radius {cert.radius:.2g}"
    far = cert.global_gap is not None and cert.scope != "global"
    more = f", {cert.global_gap:.2g} everywhere" if far else ""
    gap = f"gap {cert.gap:8.1e}"
    return f"{name:28} {d:3} {convex:6} {where:14} {gap} {seconds:6.2f} s  {radius}{more}"


def classics() -> Iterator[tuple[str, Any, list[float], bool]]:
    """Return public problems as expressions: name, function, start, whether it is convex.

    Sources: Luksan and Vlcek (2000), Haarala, Miettinen and Makela (2004).
    """
    z, top = gs.Variable(2), lambda *parts: gs.max(gs.stack(list(parts)))
    a, b = z[0], z[1]
    first = a**2 + b**2
    yield "cb2", top(a**2 + b**4, (2 - a) ** 2 + (2 - b) ** 2, 2 * np.exp(b - a)), [1, -0.1], True
    yield "cb3", top(a**4 + b**2, (2 - a) ** 2 + (2 - b) ** 2, 2 * np.exp(b - a)), [2, 2], True
    yield "dem", top(5 * a + b, -5 * a + b, first + 4 * b), [1, 1], True
    ql = (-4 * a - b + 4, -a - 2 * b + 6)
    yield "ql", top(first, *(first + 10 * v for v in ql)), [-1, 5], True
    yield "lq", top(-a - b, -a - b + first - 1), [-0.5, -0.5], True
    yield "mifflin_1", -a + 20 * gs.relu(first - 1), [0.8, 0.6], True
    yield "mifflin_2", -a + 2 * (first - 1) + 1.75 * abs(first - 1), [-1, -1], False
    up = a**2 + (b - 1) ** 2 + b - 1
    yield "crescent", top(up, 2 * b - up), [-1.5, 2], False
    yield "rosenbrock_abs", abs(b - a**2) + (1 - a) ** 2, [-1.2, 1], False
    yield "sharp_valley", 10 * abs(b - a**2) + (1 - a) ** 2, [-1.2, 1], False
    w = gs.Variable(4)
    squares = w[0] ** 2 + w[1] ** 2 + 2 * w[2] ** 2 + w[3] ** 2
    f = squares - 5 * w[0] - 5 * w[1] - 21 * w[2] + 7 * w[3]
    g = (gs.sum(gs.square(w)) + w[0] - w[1] + w[2] - w[3] - 8,
         w[0] ** 2 + 2 * w[1] ** 2 + w[2] ** 2 + 2 * w[3] ** 2 - w[0] - w[3] - 10,
         squares + 2 * w[0] - w[1] - w[3] - 5 - w[2] ** 2)  # fmt: skip
    yield "rosen_suzuki", top(f, *(f + 10 * v for v in g)), [0, 0, 0, 0], True
    d = 10
    v = gs.Variable(d)
    yield "maxq", gs.max(gs.square(v)), [*range(1, 6), *range(-6, -11, -1)], True
    yield "goffin", d * gs.max(v) - gs.sum(v), list(np.arange(d) - (d - 1) / 2), True
    hilbert = 1 / (np.arange(d)[:, None] + np.arange(d) + 1.0)
    yield "maxhilb", gs.max(abs(hilbert @ v)), [1.0] * d, True
    pairs = [(v[i], v[i + 1]) for i in range(d - 1)]
    lq = [top(-p - q, -p - q + p**2 + q**2 - 1) for p, q in pairs]
    yield "chained_lq", gs.sum(gs.stack(lq)), [-0.5] * d, True
    low = [(p**2 + (q - 1) ** 2 + q - 1, q) for p, q in pairs]
    both = [gs.sum(gs.stack(part)) for part in ([u for u, _ in low], [2 * q - u for u, q in low])]
    yield "chained_crescent_1", top(*both), [-1.5, 2.0] * (d // 2), False
    chained = [-p + 2 * (p**2 + q**2 - 1) + 1.75 * abs(p**2 + q**2 - 1) for p, q in pairs]
    yield "chained_mifflin_2", gs.sum(gs.stack(chained)), [-1.0] * d, False


def problems(most: float) -> Iterator[str]:
    """Public problems as expressions."""
    counts: Counter[str] = Counter()
    for name, F, x0, convex in classics():
        begin = time.process_time()
        res = gs.minimize(F, np.array(x0, dtype=float), max_time=most, **TARGET)
        seconds = time.process_time() - begin
        scope = getattr(res.certificate, "scope", "not proved")
        counts[f"convex: {scope}" if convex else scope] += 1
        yield line(name, len(x0), res, seconds, F, "convex" if convex else "")
    yield ", ".join(f"{name}: {n}" for name, n in sorted(counts.items()))


def data() -> Iterator[tuple[str, Any, Any]]:
    """Return names, standardised features and targets; two classes are -1 and 1."""
    from sklearn import datasets

    for name in ("iris", "wine", "breast_cancer", "digits", "diabetes"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
        X = X[:, X.std(axis=0) > 0]
        if name == "diabetes":
            yield name, X, (y - y.mean()) / y.std()
        else:
            keep = np.flatnonzero(y < 2)[:200]
            yield name, X[keep], np.where(y[keep] == 0, -1.0, 1.0)


def fits(most: float) -> Iterator[str]:
    """Fits of data: convex losses, MCP and ramps."""
    for name, X, y in data():
        n, d = X.shape
        w = gs.Variable(d)
        Z, r = X * y[:, None], X @ w - y
        ridge = 0.05 * gs.sum(gs.square(w))
        models = {
            "l1 regression": (gs.sum(abs(r)) / n, True),
            "lasso": (gs.sum(gs.square(r)) / (2 * n) + 0.05 * gs.sum(abs(w)), True),
            "hinge + ridge": (gs.sum(gs.relu(1 - Z @ w)) / n + ridge, True),
            "MCP": (gs.sum(gs.square(r)) / (2 * n) + gs.sum(gs.mcp(w, lam=0.05, gamma=3.0)), False),
            "ramp + ridge": (gs.sum(gs.ramp(Z @ w, rho=1.0)) / n + ridge, False),
        }
        for model, (F, convex) in models.items():
            begin = time.process_time()
            res = gs.minimize(F, np.zeros(d) + 0.01, max_time=most, **TARGET)
            seconds = time.process_time() - begin
            yield line(f"{name}, {model}", d, res, seconds, F, "convex" if convex else "")


def machine(n: int, d: int, seed: int, noise: float = 0.5) -> tuple[Any, Any]:
    """Return a ramp machine with its rows."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    Z = X * np.sign(X @ w + noise * rng.standard_normal(n))[:, None]
    v = gs.Variable(d)
    return gs.sum(gs.ramp(Z @ v, rho=1.0)) / n + 0.05 * gs.sum(gs.square(v)), Z


def ramps(most: float) -> Iterator[str]:
    """Ramp machines by cases, and how low HiGHS finds the piecewise linear problem."""
    cases = 1000
    for n, d, seed in ((20, 3, 0), (30, 4, 1), (30, 4, 2), (30, 5, 3), (60, 4, 1)):
        F, Z = machine(n, d, seed)
        program, begin = F.program(), time.process_time()
        x, lower, rounds = None, np.full(d, 0.1), 0
        while lower is not None and rounds < 5:
            x = gs.minimize(F, lower, eps=1e-6, delta=1e-6, rng=0).x
            found, rounds = prove_minimum(program, x, x.tolist()), rounds + 1
            found, lower = with_cases(program, found, cases, time.perf_counter() + most)
        proof, begin = time.process_time() - begin, time.process_time()
        assert found.verify(F).ok
        check, f = time.process_time() - begin, F.value(x)
        yield (
            f"{n} rows, d = {d}, seed {seed}: f = {f:.6f}, {found.scope}, f is nowhere lower by "
            f"more than {found.global_gap:.2g} ({100 * found.global_gap / f:.2g} %), "
            f"{len(found.case_points)} cases, proof {proof:.1f} s, check {check:.1f} s; "
            f"{highs(F, Z, f, most)}"
        )


def highs(F: Any, Z: Any, f: float, most: float) -> str:
    """Bound the same function by mixed-integer linear programs: the ridge by tangents, in rounds.

    min 0.1 q + sum(s) / n, s_i >= 1 - z_i.w - M o_i, s_i >= o_i, o_i in {0, 1}, q >= tangents.
    """
    n, d = Z.shape
    reach = math.sqrt(2 * f / 0.1)
    big = 1 + np.linalg.norm(Z, axis=1) * reach
    cost = np.concatenate([np.zeros(d), [0.1], np.full(n, 1 / n), np.zeros(n)])
    rows = np.hstack([Z, np.zeros((n, 1)), np.eye(n), np.diag(big)])
    outliers = np.hstack([np.zeros((n, d + 1)), np.eye(n), -np.eye(n)])
    whole = np.concatenate([np.zeros(d + 1 + n), np.ones(n)])
    bounds = Bounds(
        np.concatenate([np.full(d, -reach), np.zeros(1 + 2 * n)]),
        np.concatenate([np.full(d, reach), [np.inf], np.full(n, np.inf), np.ones(n)]),
    )
    tangents, bound, begin = [np.zeros(d)], -math.inf, time.process_time()
    limits = [LinearConstraint(rows, np.ones(n), np.inf), LinearConstraint(outliers, 0, np.inf)]
    while time.process_time() - begin < most:
        # q >= |p|^2 / 2 + p.(w - p)
        cuts = [np.concatenate([-p, [1.0], np.zeros(2 * n)]) for p in tangents]
        least = [-float(p @ p) / 2 for p in tangents]
        left = most - (time.process_time() - begin)
        found = milp(
            cost, constraints=[*limits, LinearConstraint(np.array(cuts), least, np.inf)],
            bounds=bounds, integrality=whole, options={"time_limit": left, "mip_rel_gap": 1e-6},
        )  # fmt: skip
        bound = max(bound, getattr(found, "mip_dual_bound", None) or -math.inf)
        if found.x is None or f - bound < 1e-4 * f:
            break
        tangents.append(found.x[:d])
    seconds = time.process_time() - begin
    return f"HiGHS: bound {bound:.6f} ({100 * (f - bound) / f:.2g} % below) in {seconds:.1f} s"


def starts(most: float) -> Iterator[str]:
    """Starts at saddles and maxima: none may be returned as a success."""
    z, counts = gs.Variable(2), Counter[str]()
    rng = np.random.default_rng(0)
    for k in range(200):
        a, b, c = (float(v) / 4 for v in rng.integers(2, 9, 3))
        F, x0 = [
            (a * abs(z[0]) - b * abs(z[1]) + c * z[1] ** 2, [0.0, 0.0]),
            (c * gs.sum(gs.square(z)) - a * abs(z[0]) - b * abs(z[1]), [0.0, 0.0]),
            (a * abs(abs(z[0]) - 1) + b * z[1] ** 2, [0.0, 0.0]),
            (gs.max(gs.stack([a * z[0] ** 2, b * abs(z[1])])) - c * abs(z[0] - z[1]) +
             2 * gs.sum(gs.square(z)), [0.0, 0.0]),
        ][k % 4]  # fmt: skip
        res = gs.minimize(F, x0, max_time=most, eps=1e-3, delta=1e-3, stationarity="minimum", rng=k)
        stuck = bool(res.success and np.linalg.norm(res.x - np.array(x0)) < 1e-2)
        counts["success"] += res.success
        counts["success at the start"] += stuck
        counts["verified"] += bool(res.success and res.certificate.verify(F).ok)
    yield ", ".join(f"{name}: {n}" for name, n in counts.items())


TABLES = {"problems": problems, "fits": fits, "ramps": ramps, "starts": starts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--seconds", type=float, default=20.0, help="for one row, by the clock")
    given = parser.parse_args()
    for row in TABLES[given.table](given.seconds):
        print(row, flush=True)


if __name__ == "__main__":
    main()
