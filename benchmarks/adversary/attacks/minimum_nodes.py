"""Claims about minima of functions with every kind of node: norms, exponentials, sorted entries.

As `minimum_forgeries`, with values in rationals of 60 digits. A claim on a ball, one everywhere,
one with bounds on some sides only, and refutations of both; then with fields changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from benchmarks.adversary.ask import made
from benchmarks.adversary.attacks.minimum_forgeries import lower, put
from benchmarks.adversary.suite import Attack, Rng, Seen
from benchmarks.minimum_hunt import Drawn, Exact, start

import goldstein as gs
from goldstein.certificates.minimum import limits_of
from goldstein.checker.minimum.supports import Sharp, Support
from goldstein.checker.nodes import Kinked
from goldstein.construction.minimum import prove_minimum, refuted, with_gap

a = gs.atoms

#: Irrational values have so many digits, and so small an error, relative to numbers below 1e6.
DIGITS, ERROR = 60, Fraction(1, 10**45)

#: Numbers larger than two to this power are cut down to it: they fill the memory.
LARGEST = 20_000

Term = tuple[Any, Exact]


def _exactly(function: Callable[[Any], Any]) -> Callable[[Fraction], Fraction]:
    def value(q: Fraction) -> Fraction:
        with mpmath.workdps(DIGITS):
            found = function(mpmath.mpf(q.numerator) / q.denominator)
            man, exp = found.man_exp
            exp = min(exp, LARGEST)  # nothing else is as large
            return Fraction(man) * Fraction(2) ** exp * (-1 if found < 0 and man > 0 else 1)

    return value


_exp, _sin, _root, _log = map(_exactly, (mpmath.exp, mpmath.sin, mpmath.sqrt, mpmath.log))


def _leaf(rng: Rng, x: Any, d: int) -> Term:
    scale = float(rng.choice([1.0, 1.0, 1.0, 0.5, 0.1]))
    row, b = (rng.integers(-2, 3, d) * scale).tolist(), float(rng.integers(-2, 3))
    exact = [Fraction(v) for v in row]
    return gs.sum(np.array(row) * x) + b, lambda z: sum(
        (v * q for v, q in zip(exact, z)), Fraction(b)
    )


def _applied(function: Any, exact: Callable[[Fraction], Fraction], term: Term) -> Term:
    u, value = term
    return function(u), lambda z: exact(value(z))


def _pseudo_huber(v: Fraction) -> Fraction:
    return _root(1 + v * v) - 1


def _softplus(v: Fraction) -> Fraction:
    return max(v, Fraction(0)) + _log(1 + _exp(-abs(v)))


#: Functions of one number, as an atom and exactly.
ONES: dict[str, tuple[Any, Callable[[Fraction], Fraction]]] = {
    "abs": (abs, abs),
    "relu": (gs.relu, lambda v: max(v, Fraction(0))),
    "square": (gs.square, lambda v: v * v),
    "itself times itself": (lambda u: u * u, lambda v: v * v),
    "cube": (lambda u: u**3, lambda v: v**3),
    "exp": (a.exp, _exp),
    "log": (lambda u: a.log(1 + u**2), lambda v: _log(1 + v * v)),
    "log of something": (lambda u: a.log(u + 5), lambda v: _log(v + 5) if v > -5 else Fraction(99)),
    "pseudo_huber": (a.pseudo_huber, _pseudo_huber),
    "softplus": (a.softplus, _softplus),
    "sin": (a.sin, _sin),
    "third": (lambda u: u / 3, lambda v: v / 3),
    "large": (lambda u: gs.square(u * 2.0**600), lambda v: v * v * 2**1200),
    "ramp": (lambda u: gs.ramp(u, rho=1.0), lambda v: min(Fraction(1), max(1 - v, Fraction(0)))),
}
USUAL = [3, 3, 2, 2, 1, 1, 1, 0.5, 1, 1, 0.5, 1, 0.3, 1]


def _one(rng: Rng, term: Term) -> Term:
    names = list(ONES)
    name = names[int(rng.choice(len(names), p=np.array(USUAL) / sum(USUAL)))]
    return _applied(*ONES[name], term)


def _norm(values: list[Fraction]) -> Fraction:
    return _root(sum(v * v for v in values))


def _some(rng: Rng, parts: list[Term]) -> Term:
    """A function of several numbers."""
    stacked = gs.stack([u for u, _ in parts])
    values = [value for _, value in parts]
    kind = int(rng.integers(9))
    if kind == 7:
        return gs.sum(gs.abs(stacked)), lambda z: sum(abs(v(z)) for v in values)
    if kind == 8:  # of every number and 0, by rows
        largest = gs.sum(a.maximum(stacked, 0.0 * stacked))
        return largest, lambda z: sum(max(v(z), Fraction(0)) for v in values)
    if kind < 2:
        return a.norm2(stacked), lambda z: _norm([v(z) for v in values])
    if kind < 4:
        return gs.max(stacked), lambda z: max(v(z) for v in values)
    if kind == 4:
        k = int(rng.integers(1, len(parts) + 1))
        return a.sum_largest(stacked, k), lambda z: sum(sorted(v(z) for v in values)[-k:])
    if kind == 5:
        return a.einsum("i,i->", stacked, stacked), lambda z: sum(v(z) ** 2 for v in values)
    (u, one), (v, other) = parts[0], parts[-1]
    return u * v, lambda z: one(z) * other(z)


def _term(rng: Rng, x: Any, d: int) -> Term:
    count = int(rng.integers(1, 4))
    parts = [_leaf(rng, x, d) for _ in range(count)]
    if rng.random() < 0.3:
        parts = [_one(rng, part) for part in parts]
    found = _some(rng, parts) if rng.random() < 0.6 else _one(rng, parts[0])
    return _one(rng, found) if rng.random() < 0.3 else found


def draw(rng: Rng, d: int) -> Drawn:
    """A weighted sum of few terms, and perhaps of squares of all variables."""
    x = gs.Variable(d)
    expression, values = None, list[tuple[Fraction, Exact]]()
    for _ in range(int(rng.integers(1, 3))):
        c = float(rng.choice([1.0, 1.0, 2.0, 0.5, -0.5, -1.0]))
        term, value = _term(rng, x, d)
        expression = c * term if expression is None else expression + c * term
        values.append((Fraction(c), value))
    if rng.random() < 0.6:
        expression = expression + gs.sum(gs.square(x))
        values.append((Fraction(1), lambda z: sum(q * q for q in z)))
    return Drawn(expression, lambda z: sum(c * value(z) for c, value in values))


def _limited(rng: Rng, d: int, y: list[Fraction]) -> tuple[dict[str, Any], Any]:
    """Bounds on some sides, and a constraint that may be curved, or an equation."""
    low = [q - int(rng.integers(0, 2)) if rng.random() < 0.6 else -math.inf for q in y]
    high = [q + int(rng.integers(0, 2)) if rng.random() < 0.6 else math.inf for q in y]
    ends = [tuple(map(float, pair)) for pair in zip(low, high)]
    limits: dict[str, Any] = {"bounds": ends}
    x = gs.Variable(d)
    own = rng.random() < 0.6
    u, value = _applied(*ONES[str(rng.choice(["abs", "square", "third"]))], _leaf(rng, x, d))
    most = math.ceil(value(y)) + int(rng.integers(0, 2))
    equal = own and value(y) == most and rng.random() < 0.5
    if own:
        limits["constraints"] = [u == most if equal else u <= most]

    def feasible(z: list[Fraction]) -> bool:
        inside = all(b <= q <= e for (b, e), q in zip(zip(low, high), z))
        return inside and (not own or (value(z) == most if equal else value(z) <= most))

    return limits, feasible


def _bold(rng: Rng, program: Any, at: Any, y: list[Fraction], radius: float, limits: Any) -> Any:
    """A claim that nothing supports: a small gap, and slopes of a few kinks, drawn at random."""
    found = []
    for k, node in enumerate(program.nodes):
        if isinstance(node, Kinked) and rng.random() < 0.5:
            row, width = int(rng.integers(node.size)), node.sizes[0] // node.size
            for place in range(row * width, (row + 1) * width):
                s = Fraction(int(rng.integers(-1, 3)), 2)
                found.append(
                    Support(k, row, place, Fraction(int(rng.integers(-1, 2))), s, Fraction(0))
                )
    fields: dict[str, Any] = {}
    if limits is not None:
        m = len(limits.parts)
        fields = {"multipliers": np.zeros(m), "normal": np.zeros(at.size)}
        fields["penalties"] = rng.integers(0, 9, m + at.size).astype(float)
    return made(
        gs.MinimumCertificate, x=at, exact_pivot=tuple(y), delta=0.0, radius=radius, reach=radius,
        eps=float(rng.choice([0.0, 1.0, 1e3])), gap=float(rng.choice([0.0, 1e-3, 10.0])),
        growth=float(rng.choice([0.0, 1.0, -8.0])), supports=tuple(found),
        scope="global" if math.isinf(radius) else "ball",
        sharp=tuple(Sharp(g.node, g.row, g.place, g.place, Fraction(1, 4)) for g in found[:1]),
        convexity=rng.choice([None, 0.0, 1.0]), **fields,
    )  # fmt: skip


def minimum_nodes(rng: Rng, seen: Seen) -> None:
    d = int(rng.integers(1, 4))
    f = draw(rng, d)
    y = [Fraction(int(v)) for v in rng.integers(-1, 2, d)]
    y = start(rng, f, d) if rng.random() < 0.7 else y
    at, limits, feasible = np.array([float(q) for q in y]), dict[str, Any](), _anywhere
    if rng.random() < 0.3:
        limits, feasible = _limited(rng, d, y)
    program, problem, denied = f.expression.program(), None, None
    if limits:
        problem = limits_of(at, limits["bounds"], limits.get("constraints", ()))
    radius = float(rng.choice([0.25, 1.0, 3.0]))
    try:
        cert = with_gap(program, at, y, radius, problem)
        if rng.random() < 0.1:
            cert = prove_minimum(program, at, y, problem=problem) or cert
        if cert is None or rng.random() < 0.3:
            denied = refuted(program, at, y, 0.0, problem=problem)
    except (gs.GoldsteinError, OverflowError):  # a search refuses numbers that are so large
        cert = None
    if denied is not None:
        lower(rng, seen, f, denied, limits, feasible, ERROR)
    honest = cert is not None
    if not honest or rng.random() < 0.1:
        radius = float(rng.choice([radius, math.inf]))
        cert, honest = _bold(rng, program, at, y, radius, problem), False
    if cert is None:
        seen.silent()
        return
    put(rng, seen, f, cert, y, limits, feasible, ERROR, own=honest)


def _anywhere(z: list[Fraction]) -> bool:
    return True


ATTACK = Attack(
    "minimum-nodes",
    "claims about minima of functions with norms, exponentials, logarithms, sorted entries",
    weight=5,
    one=minimum_nodes,
)
