"""Small minimax problems collected by Luksan and Vlcek as TEST06: formulas, and fits of data."""

from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems import forms
from goldstein.problems.registry import Instance, family

problem = family("test06", "Luksan, Vlcek (2000), TR 798, ICS Prague, TEST06 no. {}")


@problem(
    2, "max{x1+r+q, -x1+r+q, x1-r+q}/2, r = 10x1/(x1+0.1), q = 2x2^2", "2 (Watson, Fletcher)",
    reference=9.616638343378792e-36, note="pole at x1 = -0.1", start=[3.0, 1.0],
)  # fmt: skip
def wf(a: float, b: float) -> Any:
    """Minimiser 0."""
    r, slope = 10.0 * a / (a + 0.1), 1.0 / (a + 0.1) ** 2
    signs = ((1.0, 1.0), (-1.0, 1.0), (1.0, -1.0))
    values = [0.5 * (s * a + t * r) + b * b for s, t in signs]
    return forms.top(values, [(0.5 * (s + t * slope), 2.0 * b) for s, t in signs])


@problem(
    3, "max{s+x3^2-1, s+(x3-2)^2, x1+x2+x3-1, x1+x2-x3+1, 2x1^3+6x2^2+2(5x3-x1+1)^2, x1^2-9x3}, s ="
    " x1^2+x2^2", "4", best=3.5997192998262393, kind="literature", reference=3.5997192998262393,
    start=[1.0, 1.0, 1.0],
)  # fmt: skip
def evd52(a: float, b: float, c: float) -> Any:
    """Quadratics, planes and a cubic."""
    s, w = a * a + b * b, 5.0 * c - a + 1.0
    cubic, slope = 2.0 * a**3 + 6.0 * b * b + 2.0 * w * w, 6.0 * a * a - 4.0 * w
    pieces = (
        (s + c * c - 1.0, (2.0 * a, 2.0 * b, 2.0 * c)),
        (s + (c - 2.0) ** 2, (2.0 * a, 2.0 * b, 2.0 * c - 4.0)),
        (a + b + c - 1.0, (1.0, 1.0, 1.0)), (a + b - c + 1.0, (1.0, 1.0, -1.0)),
        (cubic, (slope, 12.0 * b, 20.0 * w)), (a * a - 9.0 * c, (2.0 * a, 0.0, -9.0)),
    )  # fmt: skip
    return forms.top(*zip(*pieces))


@problem(
    4, "Rosen-Suzuki in (a, x2-a^4, x3, x4), a = x1-(x4+1)^4", "6", best=-44.0,
    reference=-44.00000000000001,
)  # fmt: skip
def polak_6() -> Instance:
    """Rosen-Suzuki after a nonlinear bijection of the variables."""
    system = forms.SparsePolynomials(forms.rosen_suzuki_polynomials())

    def substitute(x: Vector) -> Vector:
        a = x[0] - (x[3] + 1.0) ** 4
        return np.array([a, x[1] - a**4, x[2], x[3]])

    def pieces(x: Vector) -> Any:
        p = system.values(substitute(x))
        return p[0], *(p[0] + 10.0 * p[1:])

    def row(x: Vector, i: int) -> Any:
        z = substitute(x)
        g = system.gradient(z, 0)
        if i > 0:
            g = g + 10.0 * system.gradient(z, i)
        along_a = g[0] - 4.0 * z[0] ** 3 * g[1]
        return along_a, g[1], g[2], g[3] - 4.0 * (x[3] + 1.0) ** 3 * along_a

    return Instance(np.zeros(4), forms.largest(pieces, row))


def wong_1_polynomials() -> list[forms.Polynomial]:
    """Objective and four constraints of Hock and Schittkowski's problem 100."""
    p0: list[forms.Term] = [
        (1, 1, 2, 10), (5, 2, 2, 12), (1, 3, 4, 0), (3, 4, 2, 11), (10, 5, 6, 0),
        (7, 6, 2, 0), (1, 7, 4, 0), (-10, 6, 1, 0), (-8, 7, 1, 0),
    ]  # fmt: skip
    return [
        (0.0, p0, [(-4, 6, 7)]),
        (-127.0, [(2, 1, 2, 0), (3, 2, 4, 0), (1, 3, 1, 0), (4, 4, 2, 0), (5, 5, 1, 0)], []),
        (-282.0, [(7, 1, 1, 0), (3, 2, 1, 0), (10, 3, 2, 0), (1, 4, 1, 0), (-1, 5, 1, 0)], []),
        (-196.0, [(23, 1, 1, 0), (1, 2, 2, 0), (6, 6, 2, 0), (-8, 7, 1, 0)], []),
        (0.0, [(4, 1, 2, 0), (1, 2, 2, 0), (2, 3, 2, 0), (5, 6, 1, 0), (-11, 7, 1, 0)],
         [(-3, 1, 2)]),
    ]  # fmt: skip


@problem(
    7, "max{p0, p0+10p_k}, 4 constraints (Hock-Schittkowski 100)", "19", convex=True,
    best=680.6300573744022, kind="literature", reference=680.6300573744024,
)  # fmt: skip
def wong_1() -> Instance:
    """Wong's first problem, exactly penalised."""
    return Instance([1.0, 2, 0, 4, 0, 1, 1], forms.penalised(wong_1_polynomials()))


def wong_3_polynomials() -> list[forms.Polynomial]:
    """Objective and seventeen constraints."""
    p0: list[forms.Term] = [
        (1, 1, 2, 0), (1, 2, 2, 0), (-14, 1, 1, 0), (-16, 2, 1, 0), (1, 3, 2, 10), (4, 4, 2, 5),
        (1, 5, 2, 3), (2, 6, 2, 1), (5, 7, 2, 0), (7, 8, 2, 11), (2, 9, 2, 10), (1, 10, 2, 7),
        (1, 11, 2, 9), (10, 12, 2, 1), (5, 13, 2, 7), (4, 14, 2, 14), (27, 15, 2, 1),
        (1, 16, 4, 0), (1, 17, 2, 2), (13, 18, 2, 2), (1, 19, 2, 3), (1, 20, 2, 0),
    ]  # fmt: skip
    return [
        (95.0, p0, [(1, 1, 2)]),
        (-120.0, [(3, 1, 2, 2), (4, 2, 2, 3), (2, 3, 2, 0), (-7, 4, 1, 0)], []),
        (-40.0, [(5, 1, 2, 0), (8, 2, 1, 0), (1, 3, 2, 6), (-2, 4, 1, 0)], []),
        (-30.0, [(0.5, 1, 2, 8), (2, 2, 2, 4), (3, 5, 2, 0), (-1, 6, 1, 0)], []),
        (0.0, [(1, 1, 2, 0), (2, 2, 2, 2), (14, 5, 1, 0), (-6, 6, 1, 0)], [(-2, 1, 2)]),
        (-105.0, [(4, 1, 1, 0), (5, 2, 1, 0), (-3, 7, 1, 0), (9, 8, 1, 0)], []),
        (0.0, [(10, 1, 1, 0), (-8, 2, 1, 0), (-17, 7, 1, 0), (2, 8, 1, 0)], []),
        (0.0, [(-3, 1, 1, 0), (6, 2, 1, 0), (12, 9, 2, 8), (-7, 10, 1, 0)], []),
        (-12.0, [(-8, 1, 1, 0), (2, 2, 1, 0), (5, 9, 1, 0), (-2, 10, 1, 0)], []),
        (0.0, [(1, 1, 1, 0), (1, 2, 1, 0), (4, 11, 1, 0), (-21, 12, 1, 0)], []),
        (-28.0, [(1, 1, 2, 0), (15, 11, 1, 0), (-8, 12, 1, 0)], []),
        (-87.0, [(4, 1, 1, 0), (9, 2, 1, 0), (5, 13, 2, 0), (-9, 14, 1, 0)], []),
        (-10.0, [(3, 1, 1, 0), (4, 2, 1, 0), (3, 13, 2, 6), (-14, 14, 1, 0)], []),
        (-92.0, [(14, 1, 2, 0), (35, 15, 1, 0), (-79, 16, 1, 0)], []),
        (-54.0, [(15, 2, 2, 0), (11, 15, 1, 0), (-61, 16, 1, 0)], []),
        (-68.0, [(5, 1, 2, 0), (2, 2, 1, 0), (9, 17, 4, 0), (-1, 18, 1, 0)], []),
        (19.0, [(1, 1, 2, 0), (-1, 2, 1, 0), (19, 19, 1, 0), (-20, 20, 1, 0)], []),
        (0.0, [(7, 1, 2, 0), (5, 2, 2, 0), (1, 19, 2, 0), (-30, 20, 1, 0)], []),
    ]  # fmt: skip


#: Start of Wong's third problem; the second one has its first ten variables.
WONG_START = (2.0, 3, 5, 5, 1, 2, 7, 3, 6, 10, 2, 2, 6, 15, 1, 2, 1, 2, 1, 3)


@problem(
    20, "max{p0, p0+10p_k}, 17 polynomial constraints", "21", convex=True, best=133.72827616781444,
    kind="literature", reference=133.72827616782362,
)  # fmt: skip
def wong_3() -> Instance:
    """Wong's third problem, exactly penalised."""
    return Instance(WONG_START, forms.penalised(wong_3_polynomials()))


@problem(
    11, "max_{k<=10} sum_i (i+k-1)exp((x_i-sin(2i+k-3))^2)", "23", convex=True,
    best=261.08258060636683, kind="literature", reference=261.08258060636683,
    note="texts with weights 1/(i+k) describe another function",
)  # fmt: skip
def polak_3() -> Instance:
    """Polak's third problem with the weights of the distributed code."""
    i, k = np.arange(1.0, 12.0), np.arange(1.0, 11.0)[:, None]
    weights, centres = i + k - 1.0, np.sin(2.0 * i + k - 3.0)

    def row(x: Vector, j: int) -> Any:
        gap = x - centres[j]
        return 2.0 * weights[j] * gap * np.exp(gap**2)

    objective = forms.largest(lambda x: np.sum(weights * np.exp((x - centres) ** 2), axis=1), row)
    return Instance(np.ones(11), objective)


@problem(
    3, "max_i |y_i-x1-i/((16-i)x2+min(i,16-i)x3)|, 15 points", "8", best=0.050816326530612244,
    kind="literature", reference=0.0508163265306123,
)  # fmt: skip
def bard() -> Instance:
    """Bard's rational fit."""
    y = np.array([14, 18, 22, 25, 29, 32, 35, 39, 37, 58, 73, 96, 134, 210, 439]) / 100.0
    i = np.arange(1.0, 16.0)
    v, w = 16.0 - i, np.minimum(i, 16.0 - i)

    def row(x: Vector, k: int) -> Any:
        q = i[k] / (v[k] * x[1] + w[k] * x[2]) ** 2
        return -1.0, q * v[k], q * w[k]

    objective = forms.largest_modulus(lambda x: y - x[0] - i / (v * x[1] + w * x[2]), row)
    return Instance(np.ones(3), objective)


@problem(
    4, "max_i |(x1+x2 t-e^t)^2+(x3+x4 sin t-cos t)^2|, t = i/5, 20 points", "10", convex=True,
    best=115.70643952100677, kind="literature", reference=115.70643952100677,
)  # fmt: skip
def davidon_2() -> Instance:
    """Davidon's second problem."""
    t = 0.2 * np.arange(1.0, 21.0)
    exponential, sine, cosine = np.exp(t), np.sin(t), np.cos(t)

    def row(x: Vector, k: int) -> Any:
        a = 2.0 * (x[0] + x[1] * t[k] - exponential[k])
        b = 2.0 * (x[2] + x[3] * sine[k] - cosine[k])
        return a, a * t[k], b, b * sine[k]

    def pieces(x: Vector) -> Any:
        return (x[0] + x[1] * t - exponential) ** 2 + (x[2] + x[3] * sine - cosine) ** 2

    return Instance([25.0, 5.0, -5.0, -1.0], forms.largest(pieces, row))


@problem(
    4, "max_i |x4-(x1 t^2+x2 t+x3)^2-sqrt t|, 21 points", "11", best=0.002635973497368771,
    kind="literature", reference=0.002675373887125021,
)  # fmt: skip
def oet_5() -> Instance:
    """Approximation of the square root on [1/4, 1]."""
    t = 0.25 + 0.75 * np.arange(21) / 20.0
    root = np.sqrt(t)

    def row(x: Vector, k: int) -> Any:
        s = t[k]
        q = -2.0 * (x[0] * s**2 + x[1] * s + x[2])
        return q * s**2, q * s, q, 1.0

    def residuals(x: Vector) -> Any:
        return x[3] - (x[0] * t**2 + x[1] * t + x[2]) ** 2 - root

    return Instance(np.ones(4), forms.largest_modulus(residuals, row))


@problem(
    5, "max_i |(x1+x2 t)/(1+x3 t+x4 t^2+x5 t^3)-e^t|, 21 points of [-1, 1]", "14",
    best=0.00012237125114733516, kind="literature", reference=0.0001223712511475017,
    note="poles of the rational function",
)  # fmt: skip
def exp() -> Instance:
    """Rational approximation of the exponential."""
    t = -1.0 + 0.1 * np.arange(21)
    target = np.exp(t)

    def bottom(x: Vector, s: Any) -> Any:
        return 1.0 + x[2] * s + x[3] * s**2 + x[4] * s**3

    def row(x: Vector, k: int) -> Any:
        s, below = t[k], bottom(x, t[k])
        q = -(x[0] + x[1] * s) / below**2
        return 1.0 / below, s / below, q * s, q * s**2, q * s**3

    objective = forms.largest_modulus(lambda x: (x[0] + x[1] * t) / bottom(x, t) - target, row)
    return Instance([0.5, 0.0, 0.0, 0.0, 0.0], objective)


#: Start of El-Attar's fit, in the 1-norm and in the max-norm.
EL_ATTAR_START = (2.0, 2.0, 7.0, 0.0, -2.0, 1.0)


def el_attar_fit() -> tuple[Any, Any, Any]:
    """Residuals of x1 exp(-x2 t) cos(x3 t + x4) + x5 exp(-x6 t) at t = 0, 0.1, ..., 5."""
    t = np.arange(51) / 10.0
    target = (
        0.5 * np.exp(-t) - np.exp(-2.0 * t) + 0.5 * np.exp(-3.0 * t)
        + 1.5 * np.exp(-1.5 * t) * np.sin(7.0 * t) + np.exp(-2.5 * t) * np.sin(5.0 * t)
    )  # fmt: skip

    def residuals(x: Vector) -> Any:
        wave = x[0] * np.exp(-x[1] * t) * np.cos(x[2] * t + x[3])
        return wave + x[4] * np.exp(-x[5] * t) - target

    def jacobian(x: Vector, s: Any) -> Vector:
        """Columns of partial derivatives at the times s."""
        decay, tail = np.exp(-x[1] * s), np.exp(-x[5] * s)
        even, odd = decay * np.cos(x[2] * s + x[3]), -x[0] * decay * np.sin(x[2] * s + x[3])
        return np.array([even, -s * x[0] * even, s * odd, odd, tail, -s * x[4] * tail])

    return residuals, lambda x, i: jacobian(x, t[i]), lambda x, s: jacobian(x, t) @ s


@problem(
    6, "max_{i<=51} |x1 exp(-x2 t)cos(x3 t+x4)+x5 exp(-x6 t)-y(t)|, t = (i-1)/10", "16",
    best=0.03490492653638133, kind="literature", reference=0.03490492653638158,
)  # fmt: skip
def evd61() -> Instance:
    """El-Attar's fit in the max-norm."""
    residuals, row, _ = el_attar_fit()
    return Instance(EL_ATTAR_START, forms.largest_modulus(residuals, row))


@problem(
    6, "max_i |reflection coefficient| of a three-section line, 11 frequencies", "17 (Bandler)",
    best=0.14182338663167735, kind="best-found", reference=0.197290626922829,
    note="the literature's 0.19729063 is a local minimum",
)  # fmt: skip
def transformer() -> Instance:
    """A microwave transformer; x holds length and impedance of each section."""
    beta = 0.5 * np.pi * np.array([0.5, 0.6, 0.7, 0.77, 0.9, 1.0, 1.1, 1.23, 1.3, 1.4, 1.5])

    def reflections(x: Vector) -> Any:
        voltage, current = np.full(11, 10.0 + 0.0j), np.ones(11, dtype=complex)
        for k in (2, 1, 0):
            length, impedance = x[2 * k], x[2 * k + 1]
            c, s = np.cos(beta * length), 1j * np.sin(beta * length)
            voltage, current = (
                c * voltage + s * impedance * current,
                s / impedance * voltage + c * current,
            )
        return (voltage - current) / (voltage + current)

    def row(x: Vector, i: int) -> Any:
        """Forward-mode derivative at one frequency: rows of `d` follow voltage and current."""
        state = np.array([10.0, 1.0], dtype=complex)
        d = np.zeros((2, 6), dtype=complex)
        for k in (2, 1, 0):
            length, impedance = x[2 * k], x[2 * k + 1]
            c, s = np.cos(beta[i] * length), 1j * np.sin(beta[i] * length)
            section = np.array([[c, s * impedance], [s / impedance, c]])
            turn = 1j * beta[i] * np.array([[s, c * impedance], [c / impedance, s]])
            stretch = np.array([[0.0, s], [-s / impedance**2, 0.0]])
            d = section @ d
            d[:, 2 * k] += turn @ state
            d[:, 2 * k + 1] += stretch @ state
            state = section @ state
        total = state[0] + state[1]
        rho = (state[0] - state[1]) / total
        derivative = ((d[0] - d[1]) - rho * (d[0] + d[1])) / total
        return np.real(np.conj(rho) * derivative) / abs(rho)

    return Instance(
        [0.8, 1.5, 1.2, 3.0, 0.8, 6.0], forms.largest(lambda x: np.abs(reflections(x)), row)
    )


@problem(
    20, "max-norm of Watson's 31 residuals", "24", best=3.3190850068365307e-10, kind="best-found",
    reference=1.3698653988925003e-08, note="badly scaled; literature 1.4743027e-8",
)  # fmt: skip
def watson() -> Instance:
    """Watson's differential equation, polynomial of degree 19."""
    powers = (np.arange(1.0, 30.0)[:, None] / 29.0) ** np.arange(20)
    slopes = np.zeros((29, 20))
    slopes[:, 1:] = np.arange(1, 20) * powers[:, :-1]

    def residuals(x: Vector) -> Any:
        ends = (x[0], x[1] - x[0] ** 2 - 1.0)
        return np.concatenate([ends, slopes @ x - (powers @ x) ** 2 - 1.0])

    def row(x: Vector, k: int) -> Any:
        if k >= 2:
            return slopes[k - 2] - 2.0 * (powers[k - 2] @ x) * powers[k - 2]
        g = np.zeros(20)
        g[:2] = (1.0, 0.0) if k == 0 else (-2.0 * x[0], 1.0)
        return g

    return Instance(np.zeros(20), forms.largest_modulus(residuals, row))


@problem(
    11, "max_i |y_i-x1 exp(-x5 t)-sum_{k=2}^4 x_k exp(-x_{k+4}(t-x_{k+7})^2)|, 65 points", "25",
    best=0.04802740071257516, kind="literature", reference=0.048027477088250226,
)  # fmt: skip
def osborne_2() -> Instance:
    """Osborne's second fit: a decay and three bells."""
    t = 0.1 * np.arange(65)
    thousandths = (
        "1366 1191 1112 1013 991 885 831 847 786 725 746 679 608 655 616 606 602 626 651 724 649 "
        "649 694 644 624 661 612 558 553 495 500 423 395 375 372 391 396 405 428 429 523 562 607 "
        "653 672 708 633 668 645 632 591 559 597 625 739 710 729 720 636 581 428 292 162 98 54"
    )
    y = np.array([float(entry) for entry in thousandths.split()]) / 1000.0

    def residuals(x: Vector) -> Any:
        return y - x[0] * np.exp(-x[4] * t) - np.exp(-x[5:8] * (t[:, None] - x[8:]) ** 2) @ x[1:4]

    def row(x: Vector, k: int) -> Any:
        decay, gap = np.exp(-x[4] * t[k]), t[k] - x[8:]
        bells = np.exp(-x[5:8] * gap**2)
        weighted = x[1:4] * bells
        late = weighted * gap**2, -2.0 * weighted * x[5:8] * gap
        return np.concatenate([[-decay], -bells, [x[0] * t[k] * decay], *late])

    start = [1.3, 0.65, 0.65, 0.7, 0.6, 3.0, 5.0, 7.0, 2.0, 4.5, 5.5]
    return Instance(start, forms.largest_modulus(residuals, row))
