"""Problems of a third set, written down before anything was tuned and run only to report.

They have little in common with the public suite: functions of the field and of its neighbours with
random data, some of them with several basins, some with as many kinks as data. Name -> (f and its
gradient at once, start). `python -m benchmarks.calls --set third` runs them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from goldstein.checker.arrays import Vector

Pair = Callable[[Vector], tuple[float, Vector]]


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(7000 + seed)


def soft_margin() -> tuple[Pair, Vector]:
    """Squared norm and hinge losses of 60 points, d = 8."""
    rng = _rng(1)
    X = rng.standard_normal((60, 8))
    y = np.sign(X @ rng.standard_normal(8) + 0.7 * rng.standard_normal(60))

    def f(x: Vector) -> tuple[float, Vector]:
        gap = 1.0 - y * (X @ x)
        on = gap > 0
        return float(0.05 * x @ x + gap[on].sum() / 60), 0.1 * x - (y * on) @ X / 60

    return f, np.zeros(8) + 0.1


def quantile_line() -> tuple[Pair, Vector]:
    """Quantile regression, level 0.3, 50 data with heavy tails, d = 6."""
    rng = _rng(2)
    A = np.column_stack([np.ones(50), rng.standard_normal((50, 5))])
    b = A @ rng.standard_normal(6) + rng.standard_t(2, 50)

    def f(x: Vector) -> tuple[float, Vector]:
        r = b - A @ x
        s = np.where(r >= 0, 0.3, -0.7)
        return float(s @ r), -(s @ A)

    return f, np.zeros(6)


def ellipsoid_cover() -> tuple[Pair, Vector]:
    """The smallest ball around 40 points of 5 dimensions: max of distances."""
    P = _rng(3).standard_normal((40, 5)) * np.array([1.0, 2.0, 0.5, 3.0, 1.0])

    def f(x: Vector) -> tuple[float, Vector]:
        r = np.linalg.norm(P - x, axis=1)
        i = int(r.argmax())
        return float(r[i]), (x - P[i]) / r[i]

    return f, np.full(5, 4.0)


def weber_three() -> tuple[Pair, Vector]:
    """Three facilities: every customer goes to its nearest one; several basins, d = 6."""
    rng = _rng(4)
    P, w = rng.uniform(-5, 5, (30, 2)), rng.uniform(0.5, 2.0, 30)

    def f(x: Vector) -> tuple[float, Vector]:
        c = x.reshape(3, 2)
        r = np.linalg.norm(P[:, None] - c[None], axis=2)
        j = r.argmin(axis=1)
        d = r[np.arange(30), j]
        g = np.zeros((3, 2))
        np.add.at(g, j, (w / np.maximum(d, 1e-300))[:, None] * (c[j] - P))
        return float(w @ d), g.ravel()

    return f, rng.standard_normal(6)


def trimmed_fit() -> tuple[Pair, Vector]:
    """The 30 smallest of 40 absolute residuals of a line with outliers: not convex, d = 5."""
    rng = _rng(5)
    A = rng.standard_normal((40, 5))
    b = A @ np.arange(1.0, 6.0) + 0.1 * rng.standard_normal(40)
    b[:8] += rng.uniform(5, 20, 8)

    def f(x: Vector) -> tuple[float, Vector]:
        r = A @ x - b
        low = np.argsort(np.abs(r), kind="stable")[:30]
        return float(np.abs(r[low]).sum()), np.sign(r[low]) @ A[low]

    return f, np.zeros(5)


def second_eigenvalue() -> tuple[Pair, Vector]:
    """The sum of the two largest eigenvalues of an affine family, 10 x 10, d = 7."""
    rng = _rng(6)
    M = rng.standard_normal((8, 10, 10))
    M = M + M.transpose(0, 2, 1)

    def f(x: Vector) -> tuple[float, Vector]:
        values, V = np.linalg.eigh(M[0] + np.tensordot(x, M[1:], 1))
        top = V[:, -2:]
        g = np.array([np.trace(top.T @ A @ top) for A in M[1:]])
        return float(values[-2:].sum()) + 0.1 * float(x @ x), g + 0.2 * x

    return f, np.ones(7)


def condition_number() -> tuple[Pair, Vector]:
    """log of the condition number of I + a symmetric family, 6 x 6, d = 5: quasiconvex."""
    rng = _rng(7)
    M = rng.standard_normal((5, 6, 6)) * 0.3
    M = M + M.transpose(0, 2, 1)
    base = np.diag(np.arange(1.0, 7.0))

    def f(x: Vector) -> tuple[float, Vector]:
        values, V = np.linalg.eigh(base + np.tensordot(x, M, 1))
        low, high = values[0], values[-1]
        if low <= 0:
            return np.inf, np.full(5, np.nan)
        g = [V[:, -1] @ A @ V[:, -1] / high - V[:, 0] @ A @ V[:, 0] / low for A in M]
        return float(np.log(high / low)), np.array(g)

    return f, np.zeros(5) + 0.05


def rational_approximation() -> tuple[Pair, Vector]:
    """exp on [-1, 1] by p/q with degrees 2 and 2, uniformly on 41 points, d = 5."""
    t = np.linspace(-1, 1, 41)
    N, D = np.vander(t, 3, increasing=True), np.vander(t, 3, increasing=True)[:, 1:]

    def f(x: Vector) -> tuple[float, Vector]:
        p, q = N @ x[:3], 1.0 + D @ x[3:]
        if (q <= 0).any():
            return np.inf, np.full(5, np.nan)
        r = p / q - np.exp(t)
        i = int(np.abs(r).argmax())
        s = np.sign(r[i])
        return float(abs(r[i])), s * np.concatenate([N[i] / q[i], -p[i] / q[i] ** 2 * D[i]])

    return f, np.array([1.0, 0.0, 0.0, 0.0, 0.0])


def total_variation() -> tuple[Pair, Vector]:
    """A signal of 25 numbers with three jumps, fitted by squares and total variation."""
    rng = _rng(8)
    b = np.repeat([0.0, 2.0, -1.0, 1.0], [7, 6, 5, 7]) + 0.3 * rng.standard_normal(25)

    def f(x: Vector) -> tuple[float, Vector]:
        d = np.diff(x)
        s = np.sign(d)
        g = x - b
        g[:-1] -= 0.5 * s
        g[1:] += 0.5 * s
        return float(0.5 * (x - b) @ (x - b) + 0.5 * np.abs(d).sum()), g

    return f, b.copy()


def matrix_game() -> tuple[Pair, Vector]:
    """The value of a 12 x 10 game, strategies as shares of squares: max of rows, d = 10."""
    A = _rng(9).uniform(-1, 1, (12, 10))

    def f(x: Vector) -> tuple[float, Vector]:
        n = float(x @ x)
        p = x * x / n
        v = A @ p
        i = int(v.argmax())
        return float(v[i]), 2.0 * x / n * (A[i] - v[i])

    return f, np.linspace(0.5, 1.5, 10)


def sensor_location() -> tuple[Pair, Vector]:
    """Five sensors in the plane from noisy distances, sum of absolute errors: basins, d = 10."""
    rng = _rng(10)
    anchors, truth = rng.uniform(-3, 3, (4, 2)), rng.uniform(-3, 3, (5, 2))
    far = np.linalg.norm(truth[:, None] - anchors[None], axis=2) + 0.05 * rng.standard_normal(
        (5, 4)
    )
    i, j = np.triu_indices(5, 1)
    near = np.linalg.norm(truth[i] - truth[j], axis=1) + 0.05 * rng.standard_normal(10)

    def f(x: Vector) -> tuple[float, Vector]:
        s = x.reshape(5, 2)
        a, c = s[:, None] - anchors[None], s[i] - s[j]
        ra, rc = np.linalg.norm(a, axis=2), np.linalg.norm(c, axis=1)
        g = (np.sign(ra - far) / ra)[:, :, None] * a
        g = g.sum(axis=1)
        pull = (np.sign(rc - near) / rc)[:, None] * c
        np.add.at(g, i, pull)
        np.add.at(g, j, -pull)
        return float(np.abs(ra - far).sum() + np.abs(rc - near).sum()), g.ravel()

    return f, rng.uniform(-1, 1, 10)


def small_relu() -> tuple[Pair, Vector]:
    """Absolute errors of a net with 4 units on 30 points of the line: d = 13."""
    rng = _rng(11)
    t = np.linspace(-2, 2, 30)
    b = np.abs(np.sin(2 * t)) + 0.05 * rng.standard_normal(30)

    def f(x: Vector) -> tuple[float, Vector]:
        w, v, u, c = x[:4], x[4:8], x[8:12], x[12]
        z = np.outer(t, w) + v
        h = np.maximum(z, 0.0)
        r = h @ u + c - b
        s = np.sign(r) / 30
        back = np.outer(s, u) * (z > 0)
        g = np.concatenate([t @ back, back.sum(axis=0), s @ h, [s.sum()]])
        return float(np.abs(r).mean()), g

    return f, rng.standard_normal(13)


def steep_valley() -> tuple[Pair, Vector]:
    """100 |x_2 - x_1^2| + |1 - x_1|, six times over with coupled ends, d = 12."""

    def f(x: Vector) -> tuple[float, Vector]:
        a, b = x[::2], x[1::2]
        r, q, c = b - a * a, 1.0 - a, np.diff(b)
        g = np.zeros(12)
        g[::2] = -20.0 * a * np.sign(r) - np.sign(q)
        g[1::2] = 10.0 * np.sign(r)
        g[1:-1:2] -= np.sign(c)
        g[3::2] += np.sign(c)
        return float(10.0 * np.abs(r).sum() + np.abs(q).sum() + np.abs(c).sum()), g

    return f, np.tile([-1.2, 1.0], 6)


def spectral_abscissa() -> tuple[Pair, Vector]:
    """The spectral abscissa of A + B K C by its gain K (4 entries), not Lipschitz at the best."""
    rng = _rng(12)
    A, B, C = rng.standard_normal((6, 6)), rng.standard_normal((6, 2)), rng.standard_normal((2, 6))

    def f(x: Vector) -> tuple[float, Vector]:
        values, V = np.linalg.eig(A + B @ x.reshape(2, 2) @ C)
        i = int(values.real.argmax())
        W = np.linalg.inv(V)
        return float(values[i].real) + 0.01 * float(x @ x), (
            np.real(np.outer(W[i] @ B, C @ V[:, i])).ravel() + 0.02 * x
        )

    return f, np.zeros(4) + 0.1


def dual_transport() -> tuple[Pair, Vector]:
    """The dual of a transportation problem with 8 sources and 8 sinks, in the 8 prices."""
    rng = _rng(13)
    C, a, b = rng.uniform(0, 10, (8, 8)), rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))

    def f(x: Vector) -> tuple[float, Vector]:
        M = C - x
        j = M.argmin(axis=1)
        g = np.zeros(8)
        np.add.at(g, j, a)
        return -float(a @ M[np.arange(8), j] + b @ x), g - b

    return f, np.zeros(8)


def ill_conditioned_max() -> tuple[Pair, Vector]:
    """The largest of 10 convex quadratics whose condition numbers are 1e5, d = 15."""
    rng = _rng(14)
    Q = []
    for _ in range(10):
        U = np.linalg.qr(rng.standard_normal((15, 15)))[0]
        Q.append((U * np.logspace(-3, 2, 15)) @ U.T)
    H, c = np.array(Q), rng.standard_normal((10, 15))

    def f(x: Vector) -> tuple[float, Vector]:
        v = 0.5 * (H @ x) @ x + c @ x
        i = int(v.argmax())
        return float(v[i]), H[i] @ x + c[i]

    return f, np.ones(15)


PROBLEMS = {
    made.__name__: made
    for made in (
        soft_margin, quantile_line, ellipsoid_cover, weber_three, trimmed_fit, second_eigenvalue,
        condition_number, rational_approximation, total_variation, matrix_game, sensor_location,
        small_relu, steep_valley, spectral_abscissa, dual_transport, ill_conditioned_max,
    )
}  # fmt: skip
