"""Minima of large functions of rows, f(x) = h(A x): proofs by multipliers, beside other solvers.

    python -m benchmarks.dense                      # all rows; --rows max_affine_1e4 ... for some
    python -m benchmarks.dense --seconds 60         # `max_time` of each run
    python -m benchmarks.dense --peers              # solvers of the same problem, in the same run

Every row is a process of its own: CPU seconds of `minimize(..., stationarity="minimum")` and of
`verify`, the gap and the radius that are proved, peak memory beyond imports and data. Peers:
HiGHS through `scipy.optimize.linprog`, scikit-learn's `QuantileRegressor` and `LinearSVC`; they
prove nothing, and f is that of their point.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import goldstein as gs

TARGET = {"eps": 1e-4, "delta": 1e-4, "rng": 0, "stationarity": "minimum"}

#: A problem: f, a start, and a peer that returns its point, if there is one.
Posed = tuple[Any, np.ndarray, Callable[[], np.ndarray] | None]


def dense(n: int, d: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


def max_affine(d: int) -> Posed:
    """max(A x + b): the last row is minus the sum of the others, so that it is bounded."""
    A, b = dense(200, d)
    A, b = np.vstack([A, -A.sum(axis=0)]), np.append(b, 1.0)

    def peer() -> np.ndarray:
        cost = np.append(np.zeros(d), 1.0)
        rows = np.hstack([A, -np.ones((len(A), 1))])
        return np.asarray(linprog(cost, rows, -b, bounds=(None, None)).x[:d])

    return gs.max(A @ gs.Variable(d) + b), np.ones(d), peer


def l1_regression(d: int, n: int = 200, weight: float = 0.1) -> Posed:
    """Mean |A x - b| + weight |x|_1 / 1: fewer rows than variables."""
    A, b = dense(n, d)
    x = gs.Variable(d)
    return (
        gs.sum(abs(A @ x - b)) / n + weight * gs.sum(abs(x)),
        np.zeros(d),
        lambda: lad(A, b, weight),
    )


def lad(A: Any, b: Any, weight: float) -> np.ndarray:
    """The same by HiGHS: A (p - q) + u - v = b."""
    n, d = A.shape
    cost = np.r_[np.full(2 * d, weight), np.full(2 * n, 1 / n)]
    rows = np.hstack([A, -A, np.eye(n), -np.eye(n)])
    found = linprog(cost, A_eq=rows, b_eq=b).x
    return np.asarray(found[:d] - found[d : 2 * d])


def lad_tall(n: int, d: int) -> Posed:
    A, b = dense(n, d)
    return gs.sum(abs(A @ gs.Variable(d) - b)) / n, np.zeros(d), lambda: lad(A, b, 0.0)


def thin(n: int, d: int) -> tuple[Any, Any]:
    """Sparse rows of about ten numbers, and targets."""
    rng = np.random.default_rng(7)
    at, numbers = rng.integers(0, d, 10 * n, dtype=np.int32), rng.standard_normal(10 * n)
    A = sparse.csr_array((numbers, at, np.arange(0, 10 * n + 1, 10, dtype=np.int32)), shape=(n, d))
    A.sum_duplicates()
    return A, A @ rng.standard_normal(d) + rng.standard_normal(n)


def quantile(n: int, d: int) -> Posed:
    A, b = thin(n, d)

    def peer() -> np.ndarray:
        from sklearn.linear_model import QuantileRegressor

        model = QuantileRegressor(quantile=0.7, alpha=0.0, fit_intercept=False, solver="highs")
        return np.asarray(model.fit(A, b).coef_)

    return gs.sum(gs.pinball(A @ gs.Variable(d) - b, 0.3)) / n, np.zeros(d), peer


def hinge(n: int, d: int) -> Posed:
    A, b = thin(n, d)
    Z, x, lam = sparse.csr_array(A * np.sign(b)[:, None]), gs.Variable(d), 1e-3

    def peer() -> np.ndarray:
        from sklearn.svm import LinearSVC

        C = 1 / (2 * lam * n)
        model = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-6, max_iter=100_000)
        return np.asarray(model.fit(A, np.sign(b)).coef_[0])

    return gs.sum(gs.relu(1 - Z @ x)) / n + lam * gs.sum(gs.square(x)), np.zeros(d), peer


def ramp(n: int, d: int) -> Posed:
    """Not convex."""
    A, b = thin(n, d)
    Z, x = sparse.csr_array(A * np.sign(b)[:, None]), gs.Variable(d)
    loss = gs.sum(gs.ramp(Z @ x, rho=1.0)) / n
    return loss + 1e-3 * gs.sum(gs.square(x)), np.zeros(d), None


def low_rank(side: int, rank: int) -> Posed:
    """Mean |U V - M| for M of that rank: not convex, its minimum is 0."""
    rng = np.random.default_rng(7)
    M = rng.standard_normal((side, rank)) @ rng.standard_normal((rank, side))
    x = gs.Variable(2 * side * rank)
    U, V = x[: side * rank].reshape(side, rank), x[side * rank :].reshape(rank, side)
    return gs.sum(abs(U @ V - M)) / side**2, rng.standard_normal(x.size), None


ROWS: dict[str, Callable[[], Posed]] = {
    "max_affine_1e4": lambda: max_affine(10**4), "max_affine_1e5": lambda: max_affine(10**5),
    "l1_regression_1e4": lambda: l1_regression(10**4),
    "l1_regression_1e5": lambda: l1_regression(10**5),
    "low_rank_1e4": lambda: low_rank(500, 10), "low_rank_1e5": lambda: low_rank(1000, 50),
    "lad_1000x100": lambda: lad_tall(1000, 100), "lad_20000x500": lambda: lad_tall(20000, 500),
    "quantile_1e5x1000": lambda: quantile(10**5, 1000),
    "quantile_1e6x1000": lambda: quantile(10**6, 1000),
    "hinge_1e5x1000": lambda: hinge(10**5, 1000), "hinge_1e6x1000": lambda: hinge(10**6, 1000),
    "ramp_1e5x1000": lambda: ramp(10**5, 1000),
}  # fmt: skip


def memory() -> float:
    """Peak memory in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def row(name: str, seconds: float, peers: bool) -> str:
    F, x0, peer = ROWS[name]()
    before, begin, clock = memory(), time.process_time(), time.perf_counter()
    res = gs.minimize(F, x0, max_time=seconds, **TARGET)
    took, wall, cert = time.process_time() - begin, time.perf_counter() - clock, res.certificate
    out = f"{name:20} f {res.fun:.9g}  {took:6.1f} s CPU, {wall:6.1f} s"
    if getattr(cert, "kind", "") == "minimum":
        begin = time.process_time()
        right = cert.verify(F).ok
        check = time.process_time() - begin
        out += (
            f"  {cert.scope} of radius {cert.radius:.3g}, gap {cert.gap:.1e}, verify {check:.2f} s"
        )
        out += "" if right and res.success else "  NOT VERIFIED"
    else:
        out += f"  not proved: {res.status.name}"
    out += f"  {memory() - before:.0f} MB"
    if peers and peer is not None:
        begin = time.process_time()
        x = peer()
        spent = time.process_time() - begin
        out += f"; peer f {F.value(x):.9g} in {spent:.1f} s CPU, ratio {took / spent:.3f}"
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    for name in given.rows:
        if given.here:
            print(row(name, given.seconds, given.peers), flush=True)
            continue
        more = ["--peers"] * given.peers + ["--seconds", str(given.seconds)]
        subprocess.run([sys.executable, "-m", "benchmarks.dense", "--here", "--rows", name, *more])


if __name__ == "__main__":
    main()
