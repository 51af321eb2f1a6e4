"""Minimax approximation problems of TEST06: fits of data in the max-norm."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.fitting import el_attar_fit, el_attar_start
from goldstein.problems.forms import largest, largest_modulus
from goldstein.problems.minimax import FAMILY, SOURCE
from goldstein.problems.problem import Instance
from goldstein.problems.registry import problem


@problem(
    dims=3,
    family=FAMILY,
    formula="max_i |y_i-x1-i/((16-i)x2+min(i,16-i)x3)|, 15 points",
    citation=SOURCE + "8",
    best=0.050816326530612244,
    kind="literature",
    reference=0.0508163265306123,
)
def bard() -> Instance:
    """Bard's rational fit."""
    y = np.array([14, 18, 22, 25, 29, 32, 35, 39, 37, 58, 73, 96, 134, 210, 439]) / 100.0
    i = np.arange(1.0, 16.0)
    v, w = 16.0 - i, np.minimum(i, 16.0 - i)

    def row(x: Vector, k: int) -> Vector:
        q = i[k] / (v[k] * x[1] + w[k] * x[2]) ** 2
        return np.array([-1.0, q * v[k], q * w[k]])

    return Instance(
        np.ones(3), largest_modulus(lambda x: y - x[0] - i / (v * x[1] + w * x[2]), row)
    )


@problem(
    dims=4,
    family=FAMILY,
    citation=SOURCE + "10",
    best=115.70643952100677,
    formula="max_i |(x1+x2 t-e^t)^2+(x3+x4 sin t-cos t)^2|, t = i/5, 20 points",
    kind="literature",
    convex=True,
    reference=115.70643952100677,
)
def davidon_2() -> Instance:
    """Davidon's second problem."""
    t = 0.2 * np.arange(1.0, 21.0)
    exponential, sine, cosine = np.exp(t), np.sin(t), np.cos(t)

    def pieces(x: Vector) -> Vector:
        first, second = x[0] + x[1] * t - exponential, x[2] + x[3] * sine - cosine
        return np.asarray(first**2 + second**2)

    def row(x: Vector, k: int) -> Vector:
        a = 2.0 * (x[0] + x[1] * t[k] - exponential[k])
        b = 2.0 * (x[2] + x[3] * sine[k] - cosine[k])
        return np.array([a, a * t[k], b, b * sine[k]])

    return Instance(np.array([25.0, 5.0, -5.0, -1.0]), largest(pieces, row))


@problem(
    dims=4,
    family=FAMILY,
    formula="max_i |x4-(x1 t^2+x2 t+x3)^2-sqrt t|, 21 points",
    citation=SOURCE + "11",
    best=0.002635973497368771,
    kind="literature",
    reference=0.002675373887125021,
)
def oet_5() -> Instance:
    """Approximation of the square root on [1/4, 1]."""
    t = 0.25 + 0.75 * np.arange(21) / 20.0
    root = np.sqrt(t)

    def row(x: Vector, k: int) -> Vector:
        s = t[k]
        q = -2.0 * (x[0] * s**2 + x[1] * s + x[2])
        return np.array([q * s**2, q * s, q, 1.0])

    return Instance(
        np.ones(4),
        largest_modulus(lambda x: x[3] - (x[0] * t**2 + x[1] * t + x[2]) ** 2 - root, row),
    )


@problem(
    dims=5,
    family=FAMILY,
    citation=SOURCE + "14",
    best=0.00012237125114733516,
    formula="max_i |(x1+x2 t)/(1+x3 t+x4 t^2+x5 t^3)-e^t|, 21 points of [-1, 1]",
    kind="literature",
    reference=0.0001223712511475017,
    note="poles of the rational function",
)
def exp() -> Instance:
    """Rational approximation of the exponential."""
    t = -1.0 + 0.1 * np.arange(21)
    target = np.exp(t)

    def row(x: Vector, k: int) -> Vector:
        s = t[k]
        bottom = 1.0 + x[2] * s + x[3] * s**2 + x[4] * s**3
        q = -(x[0] + x[1] * s) / bottom**2
        return np.array([1.0 / bottom, s / bottom, q * s, q * s**2, q * s**3])

    def residuals(x: Vector) -> Vector:
        bottom = 1.0 + x[2] * t + x[3] * t**2 + x[4] * t**3
        return np.asarray((x[0] + x[1] * t) / bottom - target)

    return Instance(np.array([0.5, 0.0, 0.0, 0.0, 0.0]), largest_modulus(residuals, row))


@problem(
    dims=6,
    family=FAMILY,
    citation=SOURCE + "16",
    best=0.03490492653638133,
    formula="max_{i<=51} |x1 exp(-x2 t)cos(x3 t+x4)+x5 exp(-x6 t)-y(t)|, t = (i-1)/10",
    kind="literature",
    reference=0.03490492653638158,
)
def evd61() -> Instance:
    """El-Attar's fit in the max-norm."""
    residuals, row, _ = el_attar_fit()
    return Instance(el_attar_start(), largest_modulus(residuals, row))


@problem(
    dims=6,
    family=FAMILY,
    citation=SOURCE + "17 (Bandler)",
    formula="max_i |reflection coefficient| of a three-section line, 11 frequencies",
    best=0.14182338663167735,
    kind="best-found",
    reference=0.197290626922829,
    note="the literature's 0.19729063 is a local minimum",
)
def transformer() -> Instance:
    """A microwave transformer; x holds length and impedance of each section."""
    frequencies = np.array([0.5, 0.6, 0.7, 0.77, 0.9, 1.0, 1.1, 1.23, 1.3, 1.4, 1.5])
    beta = 0.5 * np.pi * frequencies

    def reflections(x: Vector) -> Vector:
        voltage, current = np.full(11, 10.0 + 0.0j), np.ones(11, dtype=complex)
        for k in (2, 1, 0):
            length, impedance = x[2 * k], x[2 * k + 1]
            c, s = np.cos(beta * length), 1j * np.sin(beta * length)
            voltage, current = (
                c * voltage + s * impedance * current,
                s / impedance * voltage + c * current,
            )
        return np.asarray((voltage - current) / (voltage + current))

    def row(x: Vector, i: int) -> Vector:
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
        return np.asarray(np.real(np.conj(rho) * derivative) / abs(rho))

    objective = largest(lambda x: np.abs(reflections(x)), row)
    return Instance(np.array([0.8, 1.5, 1.2, 3.0, 0.8, 6.0]), objective)


@problem(
    dims=20,
    family=FAMILY,
    formula="max-norm of Watson's 31 residuals",
    citation=SOURCE + "24",
    best=3.3190850068365307e-10,
    kind="best-found",
    reference=1.3698653988925003e-08,
    note="badly scaled; literature 1.4743027e-8",
)
def watson() -> Instance:
    """Watson's differential equation, polynomial of degree 19."""
    t = np.arange(1.0, 30.0)[:, None] / 29.0
    powers = t ** np.arange(20)
    slopes = np.zeros((29, 20))
    slopes[:, 1:] = np.arange(1, 20) * powers[:, :-1]

    def residuals(x: Vector) -> Vector:
        ends = (x[0], x[1] - x[0] ** 2 - 1.0)
        return np.concatenate([ends, slopes @ x - (powers @ x) ** 2 - 1.0])

    def row(x: Vector, k: int) -> Vector:
        if k >= 2:
            return np.asarray(slopes[k - 2] - 2.0 * (powers[k - 2] @ x) * powers[k - 2])
        g = np.zeros(20)
        g[:2] = (1.0, 0.0) if k == 0 else (-2.0 * x[0], 1.0)
        return g

    return Instance(np.zeros(20), largest_modulus(residuals, row))


@problem(
    dims=11,
    family=FAMILY,
    formula="max_i |y_i-x1 exp(-x5 t)-sum_{k=2}^4 x_k exp(-x_{k+4}(t-x_{k+7})^2)|, 65 points",
    citation=SOURCE + "25",
    best=0.04802740071257516,
    kind="literature",
    reference=0.048027477088250226,
)
def osborne_2() -> Instance:
    """Osborne's second fit: a decay and three bells."""
    t = 0.1 * np.arange(65)
    thousandths = (
        "1366 1191 1112 1013 991 885 831 847 786 725 746 679 608 655 616 606 602 626 651 724 649 "
        "649 694 644 624 661 612 558 553 495 500 423 395 375 372 391 396 405 428 429 523 562 607 "
        "653 672 708 633 668 645 632 591 559 597 625 739 710 729 720 636 581 428 292 162 98 54"
    )
    y = np.array([float(entry) for entry in thousandths.split()]) / 1000.0

    def residuals(x: Vector) -> Vector:
        bells = np.exp(-x[5:8] * (t[:, None] - x[8:]) ** 2)
        return np.asarray(y - x[0] * np.exp(-x[4] * t) - bells @ x[1:4])

    def row(x: Vector, k: int) -> Vector:
        s = t[k]
        decay, gap = np.exp(-x[4] * s), s - x[8:]
        bells = np.exp(-x[5:8] * gap**2)
        weighted = x[1:4] * bells
        return np.concatenate(
            [
                [-decay],
                -bells,
                [x[0] * s * decay],
                weighted * gap**2,
                -2.0 * weighted * x[5:8] * gap,
            ]
        )

    x0 = np.array([1.3, 0.65, 0.65, 0.7, 0.6, 3.0, 5.0, 7.0, 2.0, 4.5, 5.5])
    return Instance(x0, largest_modulus(residuals, row))
