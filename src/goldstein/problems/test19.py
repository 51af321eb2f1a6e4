"""The classical small nonsmooth problems collected by Luksan and Vlcek as TEST19."""

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems import forms, haarala, test06
from goldstein.problems.registry import AnyDimension, Instance, family, together

problem = family("test19", "Luksan, Vlcek (2000), TR 798, ICS Prague, TEST19 no. {}")


@problem(2, "100(x2-x1^2)^2+(1-x1)^2", "1", smooth=True, reference=0.0, start=[-1.2, 1.0])
def rosenbrock(a: float, b: float) -> Any:
    """Rosenbrock's curved valley, the smooth one."""
    r = b - a * a
    return 100.0 * r**2 + (1.0 - a) ** 2, (-400.0 * a * r - 2.0 * (1.0 - a), 200.0 * r)


@problem(2, "x2+|x1^2+(x2-1)^2-1|", "2", reference=-9.448020225922091e-17, start=[-1.5, 2.0])
def crescent(a: float, b: float) -> Any:
    """Two circles that touch at the minimiser 0."""
    r = a * a + (b - 1.0) ** 2
    s = 2.0 if r >= 1.0 else -2.0
    return b + abs(r - 1.0), (s * a, s * (b - 1.0) + 1.0)


def cb3_pair(a: float, b: float) -> tuple[float, tuple[float, float]]:
    """Return the largest of the three CB3 pieces and its gradient."""
    growth = 2.0 * math.exp(b - a)
    pieces = (a**4 + b * b, (2.0 - a) ** 2 + (2.0 - b) ** 2, growth)
    return forms.top(
        pieces, ((4.0 * a**3, 2.0 * b), (2.0 * a - 4.0, 2.0 * b - 4.0), (-growth, growth))
    )


#: Minimiser (1, 1), where all three pieces meet.
problem(
    2, "max{x1^4+x2^2, (2-x1)^2+(2-x2)^2, 2exp(x2-x1)}", "4 (Charalambous, Bandler)", convex=True,
    best=2.0, reference=2.0, start=[2.0, 2.0], name="cb3",
)(cb3_pair)  # fmt: skip


@problem(
    2, "max{5x1+x2, -5x1+x2, x1^2+x2^2+4x2}", "5 (Demyanov, Malozemov)", convex=True, best=-3.0,
    reference=-3.0, start=[1.0, 1.0],
)  # fmt: skip
def dem(a: float, b: float) -> Any:
    """Minimiser (0, -3)."""
    sharp, round_ = 5.0 * abs(a) + b, a * a + b * b + 4.0 * b
    if sharp >= round_:
        return sharp, (5.0 * forms.sign(a), 1.0)
    return round_, (2.0 * a, 2.0 * b + 4.0)


@problem(
    2, "max{-x1-x2, -x1-x2+x1^2+x2^2-1}", "7", convex=True, best=-math.sqrt(2.0),
    reference=-1.4142135623730951,
)  # fmt: skip
def lq() -> Instance:
    """The one link of the chained LQ problem."""
    return Instance(np.full(2, -0.5), haarala.chained_lq_objective())


@problem(
    2, "-x1+20max{x1^2+x2^2-1, 0}", "8", convex=True, best=-1.0, reference=-0.9999999999999348,
    note="x0 lies on the kink", start=[0.8, 0.6],
)  # fmt: skip
def mifflin_1(a: float, b: float) -> Any:
    """Minimiser (1, 0)."""
    y = a * a + b * b
    slope = 40.0 if y > 1.0 else 0.0
    return -a + 20.0 * max(y - 1.0, 0.0), (slope * a - 1.0, slope * b)


@problem(2, "-x1+2y+1.75|y|, y = x1^2+x2^2-1", "9", best=-1.0, reference=-1.0, start=[-1.0, -1.0])
def mifflin_2(a: float, b: float) -> Any:
    """Minimiser (1, 0); not convex because |y| is not."""
    y = a * a + b * b - 1.0
    slope = 7.5 if a * a + b * b >= 1.0 else 0.5
    return -a + 2.0 * y + 1.75 * abs(y), (slope * a - 1.0, slope * b)


@problem(
    4, "q1+10max{0, q2, q3, q4}, Rosen and Suzuki's quadratics", "11", convex=True, best=-44.0,
    reference=-44.000000000000014,
)  # fmt: skip
def rosen_suzuki() -> Instance:
    """Minimiser (0, 1, 2, -1)."""
    return Instance(np.zeros(4), forms.penalised(forms.rosen_suzuki_polynomials()))


def _matrix(text: str) -> Vector:
    return np.array([[float(entry) for entry in row.split()] for row in text.split(";")])


def _colville() -> tuple[Vector, Vector, Vector, Vector, Vector]:
    """A, b, C, d, e of Colville (1968), IBM report 320-2949: d.x^3 + e.x + x'Cx with Ax >= b."""
    rows = _matrix(
        "-16 2 0 1 0; 0 -2 0 4 2; -3.5 0 2 0 0; 0 -2 0 -4 -1; 0 -9 -2 1 -2.8;"
        "2 0 -4 0 0; -1 -1 -1 -1 -1; -1 -2 -3 -2 -1; 1 2 3 4 5; 1 1 1 1 1"
    )
    quadratic = _matrix(
        "30 -20 -10 32 -10; -20 39 -6 -31 32; -10 -6 10 -6 -10; 32 -31 -6 39 -20; -10 32 -10 -20 30"
    )
    b = np.array([-40.0, -2.0, -0.25, -4.0, -4.0, -1.0, -40.0, -60.0, 5.0, 1.0])
    return rows, b, quadratic, np.array([4.0, 8, 10, 6, 2]), np.array([-15.0, -27, -36, -18, -12])


@problem(
    5, "sum d_j x_j^3+e'x+x'Cx+50max{0, max_i (b-Ax)_i}", "13 (Colville)", bounded=False,
    best=-32.3486789657226, kind="literature", reference=-32.348678965722684,
    note="a local minimum: the cubic is unbounded below for x_j -> -inf",
)  # fmt: skip
def colville_1() -> Instance:
    """Colville's first problem with an exact penalty."""
    A, b, C, d, e = _colville()

    def both(x: Vector) -> Any:
        slack = b - A @ x
        i = int(np.argmax(slack))
        Cx = C @ x
        value = d @ x**3 + e @ x + x @ Cx + 50.0 * max(slack[i], 0.0)
        gradient = 3.0 * d * x**2 + e + 2.0 * Cx
        if slack[i] > 0.0:
            gradient -= 50.0 * A[i]
        return float(value), gradient

    return Instance([0.0, 0.0, 0.0, 0.0, 1.0], together(both))


@problem(
    6, "sum_{i<=51} |x1 exp(-x2 t)cos(x3 t+x4)+x5 exp(-x6 t)-y(t)|, t = (i-1)/10", "15 (El-Attar)",
    best=0.5598130653607176, kind="literature", reference=0.5598130653607202,
)  # fmt: skip
def el_attar() -> Instance:
    """A least absolute deviation fit."""
    residuals, _, pullback = test06.el_attar_fit()
    return Instance(test06.EL_ATTAR_START, forms.sum_of_moduli(residuals, pullback))


@problem(
    10, "max_{k<=5} x'A_k x-b_k'x", "16 (Lemarechal)", convex=True, best=-0.8414083345964147,
    kind="literature", reference=-0.8414083345963921,
)  # fmt: skip
def maxquad() -> Instance:
    """Lemarechal's maximum of five convex quadratics."""
    i = np.arange(1.0, 11.0)
    k = np.arange(1.0, 6.0)[:, None]
    ratio = np.minimum.outer(i, i) / np.maximum.outer(i, i)
    matrices = np.sin(k)[:, :, None] * np.exp(ratio) * np.cos(np.outer(i, i))
    on_diagonal = np.arange(10)
    matrices[:, on_diagonal, on_diagonal] = 0.0
    dominant = np.abs(np.sin(k)) * i / 10.0 + np.sum(np.abs(matrices), axis=2)
    matrices[:, on_diagonal, on_diagonal] = dominant
    vectors = np.exp(i / k) * np.sin(i * k)
    objective = forms.largest(
        lambda x: (matrices @ x) @ x - vectors @ x,
        lambda x, j: 2.0 * matrices[j] @ x - vectors[j],
    )
    return Instance(np.ones(10), objective)


@problem(
    12, "weighted sum of 13 distances between 6 movable points, 6 fixed points and 2 ends", "18",
    convex=True, best=16.703837553679037, kind="literature", reference=16.703837553679037,
)  # fmt: skip
def steiner_2() -> Instance:
    """A Steiner tree of fixed topology; x holds six abscissas, then six ordinates."""
    fixed = np.array([[0.0, 2, 3, 4, 5, 6], [2.0, 3, -1, -0.5, 2, 2]])
    last = np.array([5.5, -1.0])
    to_fixed, between = np.array([2.0, 1, 1, 5, 1, 1]), np.array([1.0, 1, 2, 3, 2])
    weights = np.concatenate([[1.0, 1.0], to_fixed, between])

    start = np.empty((2, 6))
    start[:, 0] = (2.0 / 3.0, 5.0 / 3.0)
    for j in range(1, 5):
        start[:, j] = (start[:, j - 1] + fixed[:, j] + fixed[:, j + 1]) / 3.0
    start[:, 5] = (start[:, 4] + fixed[:, 5] + last) / 3.0

    def links(x: Vector) -> Vector:
        z = x.reshape(2, 6)
        return np.column_stack([z[:, 0], z[:, 5] - last, z - fixed, z[:, :-1] - z[:, 1:]])

    def both(x: Vector) -> Any:
        r = links(x)
        lengths = np.hypot(r[0], r[1])
        pull = r * (weights / np.where(lengths > 0.0, lengths, np.inf))
        g = pull[:, 2:8].copy()
        g[:, 0] += pull[:, 0]
        g[:, 5] += pull[:, 1]
        g[:, :-1] += pull[:, 8:]
        g[:, 1:] -= pull[:, 8:]
        return weights @ lengths, g.ravel()

    return Instance(start.ravel(), together(both))


@problem(20, "max_i x_i^2", "19", convex=True, reference=1.7932198186884777e-15)
def maxq_20() -> Instance:
    """MAXQ at its classical size."""
    return Instance(haarala.ramp_start(20), haarala.max_square())


@problem(
    AnyDimension(2), "d max_i x_i - sum x_i", "22", convex=True,
    reference=1.4240865171932562e-15, note="every constant vector is a minimiser", size=50,
    start=lambda d: np.arange(1.0, d + 1.0) - 0.5 * (d + 1.0),
)  # fmt: skip
def goffin(x: Vector) -> Any:
    """Goffin's polyhedral function."""
    g = np.full(x.size, -1.0)
    g[int(np.argmax(x))] += x.size
    return x.size * x.max() - np.sum(x), g


@problem(
    15, "2|sum d_j x_j^3|+x'Cx-b'y+100(sum max{0, A'y-2Cx-3dx^2-e}+sum max{0, -(x,y)})", "25",
    bounded=False, best=32.3486789657226, kind="literature", reference=32.35036748331836,
    note="a local minimum: far away the penalty is too weak, where mixed signs"
    " of x with sum d_j x_j^3 = 0 let y grow like |x|^2",
)  # fmt: skip
def shell_dual() -> Instance:
    """The dual of Colville's problem with an exact penalty; x has 5 entries, y has 10."""
    A, b, C, cubic, e = _colville()

    def both(z: Vector) -> Any:
        x, y = z[:5], z[5:]
        Cx = C @ x
        cube = float(cubic @ x**3)
        violation = A.T @ y - 2.0 * Cx - 3.0 * cubic * x**2 - e
        penalty = np.sum(np.maximum(violation, 0.0)) - np.sum(np.minimum(z, 0.0))
        value = 2.0 * abs(cube) + x @ Cx - b @ y + 100.0 * penalty
        active = (violation > 0.0).astype(np.float64)
        g = np.empty(15)
        g[:5] = 6.0 * forms.sign(cube) * cubic * x**2 + 2.0 * Cx
        g[:5] -= 200.0 * (C @ active + 3.0 * cubic * x * active)
        g[5:] = 100.0 * (A @ active) - b
        g[z < 0.0] -= 100.0
        return float(value), g

    x0 = np.full(15, 1e-4)
    x0[11] = 60.0
    return Instance(x0, together(both))
