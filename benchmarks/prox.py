"""Lasso and group lasso next to scikit-learn: objective, zeros, calls, and whether the claim holds.

    python -m benchmarks.prox

For each problem: the objective of `minimize(..., plus=...)` above that of the peer (relative),
zeros found by both and by one of them alone, calls, and whether the certificate verifies. The peer
of the group lasso is 20,000 proximal gradient steps. Without `plus`, with h written into the
function, the same solver ends next to the zeros: shown for comparison. Leaves with 1 if a claim
fails its own check.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from sklearn.linear_model import Lasso

import goldstein as gs

EPS = DELTA = 1e-4


def data(n: int, d: int, used: int, correlation: float, seed: int) -> tuple[Any, Any]:
    """Rows with correlated columns, and a response of some of them with noise."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 1))
    A = np.sqrt(1 - correlation) * rng.standard_normal((n, d)) + np.sqrt(correlation) * common
    truth = np.zeros(d)
    truth[:used] = 2.0 * rng.standard_normal(used)
    return A, A @ truth + 0.5 * rng.standard_normal(n)


def line(name: str, f: Any, grad: Any, term: Any, peer: np.ndarray) -> bool:
    """Solve, compare, print; return whether the claim verifies."""
    best = f(peer) + term.value(peer)
    res = gs.minimize(f, np.zeros(peer.size), grad, plus=term, eps=EPS, delta=DELTA, rng=0)
    verified = res.certificate is not None and res.certificate.verify(f, grad, plus=term).ok
    both = int(((res.x == 0) & (peer == 0)).sum())
    one = int(((res.x == 0) ^ (peer == 0)).sum())
    plain = gs.minimize(
        lambda x: f(x) + term.value(x), np.zeros(peer.size), lambda x: grad(x) + term.slope(x),
        eps=EPS, delta=DELTA, rng=0, max_calls=20_000,
    )  # fmt: skip
    print(
        f"{name:<39} {res.status.name:<9} {verified!s:<6} {(res.fun - best) / abs(best):>10.1e} "
        f"{both:>5} {one:>4} {res.nfev + res.ngev:>6}   {plain.nfev + plain.ngev:>6} "
        f"{int((plain.x == 0).sum()):>3} {plain.status.name}",
        flush=True,
    )
    return verified or not res.success


def main() -> int:
    """Print the table."""
    print(
        f"{'problem':<39} {'status':<9} {'holds':<6} {'above':>10} {'zeros':>5} {'not':>4} "
        f"{'calls':>6}   without plus: calls, zeros"
    )
    good = True
    for n, d, used, correlation in [(100, 20, 5, 0.0), (200, 100, 10, 0.5), (80, 200, 8, 0.2)]:
        A, b = data(n, d, used, correlation, seed=d)

        def f(w: Any, A: Any = A, b: Any = b) -> float:
            return 0.5 * float(np.mean((A @ w - b) ** 2))

        def grad(w: Any, A: Any = A, b: Any = b) -> Any:
            return A.T @ (A @ w - b) / len(b)

        most = float(np.abs(A.T @ b).max()) / n
        for part in (0.5, 0.1, 0.01):
            weight = part * most
            model = Lasso(alpha=weight, fit_intercept=False, tol=1e-13, max_iter=200_000)
            peer = model.fit(A, b).coef_
            name = f"lasso {n} x {d}, weight {part:g} of largest"
            good &= line(name, f, grad, gs.prox.l1(weight), peer)
        groups = np.arange(d).reshape(-1, 5).tolist()
        term = gs.prox.group_l2(0.2 * most, groups)
        step, peer = 1.0 / float(np.linalg.norm(A.T @ A / n, 2)), np.zeros(d)
        for _ in range(20_000):
            peer = term.prox(peer - step * grad(peer), step)
        good &= line(f"group lasso {n} x {d}", f, grad, term, peer)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
