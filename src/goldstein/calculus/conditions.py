"""`where`: choices by a comparison, if both sides agree where it changes; else refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyadd, polymul, polytrim

from goldstein.calculus.atoms.order import maximum, minimum
from goldstein.calculus.atoms.piecewise import Elementwise, PiecewisePolynomial
from goldstein.calculus.expression import (
    Expression,
    Variable,
    as_expression,
    in_order,
    meant,
    numbered,
)
from goldstein.calculus.operators import broadcast, common_shape
from goldstein.checker import nodes
from goldstein.checker.enclosed import irrational
from goldstein.checker.errors import Irrational
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import polynomial as power
from goldstein.checker.rationals import nearest_float
from goldstein.errors import GoldsteinError, InputError, InputTypeError, NotCertifiableError
from goldstein.numerics.streams import stream

#: Jumps up to so many units in the last place are constants that were rounded; they are closed.
SNAP = 8

#: Coefficients, rationals; NumPy adds and multiplies what it is given.
Polynomial = Any


class Condition:
    """A comparison of expressions, entry by entry, or a combination of some."""

    __array_ufunc__ = None

    def __init__(self, kind: str, parts: tuple[Any, ...], trace: Any = None) -> None:
        self.kind, self.parts, self.trace = kind, parts, trace

    @classmethod
    def compare(cls, sign: str, a: Any, b: Any, trace: Any = None) -> Condition:
        """Return a >= b or a <= b; whether strictly does not matter where both sides agree."""
        return cls(">=", (a, b) if sign[0] == ">" else (b, a), trace)

    @property
    def shape(self) -> tuple[int, ...]:
        return common_shape("compare", *(np.shape(p) for p in self.parts))

    def __and__(self, other: Any) -> Condition:
        return Condition("and", (self, other), self.trace)

    def __or__(self, other: Any) -> Condition:
        return Condition("or", (self, other), self.trace)

    def __invert__(self) -> Condition:
        return Condition("not", (self,), self.trace)

    def __mul__(self, factor: Any) -> Any:
        if self.trace is None:
            return where(self, factor, 0.0)
        return self.trace.call(where, self, factor, 0.0)

    __rmul__ = __mul__

    def _refuse(self, *_: Any) -> Any:
        message = "chooses by value; write np.where(condition, a, b) or np.maximum(a, b)"
        if self.trace is not None:
            self.trace.refuse("bool")
        raise InputTypeError(message)

    __bool__ = __float__ = __int__ = __index__ = __len__ = __iter__ = _refuse
    sum = any = all = mean = astype = _refuse


def where(condition: Any, a: Any, b: Any) -> Expression:
    """Return a where a condition holds, b elsewhere; both must agree where it changes.

    Parameters
    ----------
    condition : Condition
        `gs.atoms.greater(u, v)`, or a comparison in code that is traced.
    a, b : Expression or numbers

    Raises
    ------
    InputError
        Where the function jumps, or cannot be shown not to.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> from goldstein.calculus.conditions import greater
    >>> w = Variable(2)
    >>> where(greater(w, 0.0), w, 0.5 * w)(np.array([-1.0, 2.0]))
    array([-0.5,  2. ])
    """
    if not isinstance(condition, Condition):
        raise InputTypeError("where takes a comparison: where(greater(u, v), a, b).")
    if condition.kind == "not":
        return where(condition.parts[0], b, a)
    one, two = condition.parts
    if condition.kind == "and":
        return where(one, where(two, a, b), b)
    return where(one, a, where(two, a, b)) if condition.kind == "or" else _chosen(one, two, a, b)


def greater(u: Any, v: Any) -> Condition:
    """Return the condition u >= v, for `where`."""
    return Condition.compare(">=", u, v)


def _chosen(p: Any, q: Any, a: Any, b: Any) -> Expression:
    """Return a where p >= q, else b."""
    if _alike(p, a) and _alike(q, b):
        return maximum(p, q)
    if _alike(p, b) and _alike(q, a):
        return minimum(p, q)
    shape = common_shape("choose among", *(np.shape(e) for e in (p, q, a, b)))
    minus = p - q if isinstance(p, Expression) else -(q - p)
    gap = broadcast(as_expression(minus, "where"), shape)
    sides = [broadcast(e, shape) if isinstance(e, Expression) else e for e in (a, b)]
    # What the condition is a function of, entry by entry; the innermost first.
    bases = [e for e in in_order(gap) if e.size == gap.size and meant(e) is e]
    for base in bases:
        try:
            forms = [_form(e, base, {}) for e in (gap, *sides)]
        except NotCertifiableError:
            continue
        return _merged(base, *forms)
    for base in bases:
        with suppress(NotCertifiableError):
            return _split(base, gap, *sides)
    raise InputError(f"where cannot be shown to be continuous: {_look(gap, *sides)}")


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, Expression) and isinstance(b, Expression):
        return meant(a) is meant(b)
    return not isinstance(a, Expression) and not isinstance(b, Expression) and np.array_equal(a, b)


# --- functions of one entry --------------------------------------------------------------------


class _Pieces(NamedTuple):
    """A function of one number: breakpoints, and a polynomial for each piece."""

    breaks: list[Fraction]
    polynomials: list[Polynomial]

    def at(self, t: Fraction) -> Polynomial:
        """Return the polynomial that rules at a point, to the left of a breakpoint."""
        return self.polynomials[sum(s < t for s in self.breaks)]

    def refined(self, breaks: list[Fraction]) -> list[Polynomial]:
        return [self.at(t) for t in _inside(breaks)]


def _inside(breaks: list[Fraction]) -> list[Fraction]:
    """Return a point inside each piece."""
    if not breaks:
        return [Fraction(0)]
    return [breaks[0] - 1, *((a + b) / 2 for a, b in pairwise(breaks)), breaks[-1] + 1]


def _joined(
    one: _Pieces, two: _Pieces, combine: Callable[[Polynomial, Polynomial], Polynomial]
) -> _Pieces:
    breaks = sorted({*one.breaks, *two.breaks})
    return _Pieces(breaks, list(map(combine, one.refined(breaks), two.refined(breaks))))


def _composed(outer: Polynomial, inner: Polynomial) -> Polynomial:
    def step(out: Polynomial, c: Any) -> Polynomial:
        return polyadd(polymul(out, inner), [c])

    return reduce(step, reversed(outer), [Fraction(0)])


def _roots(polynomial: Polynomial) -> list[Fraction]:
    """Return the roots of a polynomial of degree 2 at most, which must be rational."""
    rest: Polynomial = polytrim(polynomial)
    if len(rest) <= 1:
        return []
    if len(rest) == 2:
        return [-rest[0] / rest[1]]
    if len(rest) > 3:
        raise NotCertifiableError("a condition of a higher degree")
    c, b, a = rest
    square = b * b - 4 * a * c
    if square < 0:
        return []
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if root * root != square:
        raise NotCertifiableError("a condition that changes at an irrational number")
    return [(-b - root) / (2 * a), (-b + root) / (2 * a)]


def _crossings(form: _Pieces, level: Any) -> list[Fraction]:
    """Return where a function may cross a level."""
    ends: list[Any] = [None, *form.breaks, None]
    found = []
    for (low, high), polynomial in zip(pairwise(ends), form.polynomials):
        found += [t for t in _roots(polyadd(polynomial, [-level]))
                  if (low is None or low <= t) and (high is None or t <= high)]  # fmt: skip
    return found


def _form(e: Any, base: Expression, known: dict[int, _Pieces]) -> _Pieces:
    """Return an expression as a function of each entry of another one, the same for all."""
    if not isinstance(e, Expression):
        numbers = np.ravel(np.asarray(e, dtype=np.float64))
        return _Pieces([], [[_alone(numbers)]])
    if meant(e) is meant(base):
        return _Pieces([], [[Fraction(0), Fraction(1)]])
    if id(e) not in known:
        known[id(e)] = _made(e, base, known)
    return known[id(e)]


def _alone(numbers: Any) -> Fraction:
    if not numbers.size or (numbers != numbers[0]).any() or not np.isfinite(numbers[0]):
        raise NotCertifiableError("numbers that differ from entry to entry")
    return Fraction(float(numbers[0]))


def _made(e: Expression, base: Expression, known: dict[int, _Pieces]) -> _Pieces:
    inner = [_form(a, base, known) for a in e.args]
    if not inner or any(a.size != e.size for a in e.args):
        raise NotCertifiableError("no function of the base")
    if e.kind is nodes.Add:
        return reduce(lambda one, two: _joined(one, two, polyadd), inner)
    if e.kind is nodes.Product and e.data[1] == 1:
        return _joined(inner[0], inner[1], polymul)
    if e.kind is nodes.Affine and isinstance(e.data[0], tuple):
        (numbers, places, ends, _), _, offset, divisor = e.data
        if places is None and ends is None:
            by = 1 / (Fraction(1) if divisor is None else _alone(divisor))
            slope = by * (Fraction(1) if numbers is None else _alone(numbers))
            start = by * (Fraction(0) if offset is None else _alone(offset))
            return _Pieces(inner[0].breaks, [_composed([start, slope], p) for p in
                                             inner[0].polynomials])  # fmt: skip
    if e.kind is nodes.Piecewise:
        return _after(_Pieces(list(e.data[0]), [list(p) for p in e.data[1]]), inner[0])
    raise NotCertifiableError("no polynomial of the base")


def _after(outer: _Pieces, inner: _Pieces) -> _Pieces:
    more = [t for level in outer.breaks for t in _crossings(inner, level)]
    breaks = sorted({*inner.breaks, *more})
    parts = zip(_inside(breaks), inner.refined(breaks))
    return _Pieces(breaks, [_composed(outer.at(power(p, t)), p) for t, p in parts])


def _merged(base: Expression, gap: _Pieces, a: _Pieces, b: _Pieces) -> Expression:
    """Return the function of one entry that is a where gap >= 0; close rounded jumps."""
    breaks = sorted({*gap.breaks, *a.breaks, *b.breaks, *_crossings(gap, Fraction(0))})
    inside = _inside(breaks)
    chosen = [(a if power(gap.at(t), t) > 0 else b).at(t) for t in inside]
    middle = min(range(len(chosen)), key=lambda k: abs(inside[k]))
    chosen = [polytrim(piece).tolist() for piece in _snapped(breaks, chosen, middle)]
    kept, merged = list[Fraction](), [chosen[0]]
    for t, piece in zip(breaks, chosen[1:]):
        if piece != merged[-1]:
            kept.append(t)
            merged.append(piece)
    return Elementwise(PiecewisePolynomial("where", kept, merged), base)


def _snapped(breaks: list[Fraction], chosen: list[Polynomial], middle: int) -> list[Polynomial]:
    """Change constants of outer pieces, from the middle outwards, by what was rounded off them."""
    chosen = [list(piece) for piece in chosen]
    order = [(k, k - 1, k - 1) for k in range(middle + 1, len(chosen))]
    order += [(k, k + 1, k) for k in range(middle - 1, -1, -1)]
    for k, neighbour, at in order:
        t = breaks[at]
        jump = power(chosen[neighbour], t) - power(chosen[k], t)
        scale = max(abs(c * t**j) for piece in (chosen[k], chosen[neighbour])
                    for j, c in enumerate(piece))  # fmt: skip
        if abs(jump) > SNAP * Fraction(2) ** -52 * scale:
            raise InputError(
                f"where jumps by {nearest_float(jump):.6g} where its argument is "
                f"{nearest_float(t):.6g}: no subgradients are defined there."
            )
        chosen[k][0] += jump
    return chosen


# --- substitution --------------------------------------------------------------------------------


def _split(base: Expression, gap: Expression, a: Any, b: Any) -> Expression:
    """Return a(max(r, t)) + b(min(r, t)) - a(t) where both are functions of r with a(t) = b(t)."""
    form = _form(gap, base, {})
    if form.breaks or len(polytrim(form.polynomials[0])) != 2:
        raise NotCertifiableError("a condition that changes more than once")
    start, slope = form.polynomials[0][:2]
    t = nearest_float(-start / slope)
    if Fraction(t) != -start / slope or not all(_is_entrywise(e, base) for e in (a, b)):
        raise NotCertifiableError("no functions of the base, entry by entry")
    if slope < 0:
        a, b = b, a
    try:
        values = [_exactly(e, base, t) for e in (a, b)]
    except (Irrational, GoldsteinError) as failure:
        raise NotCertifiableError("values that are not rational") from failure
    common = nearest_float(values[0][0])
    if values[0] != values[1] or set(values[0]) != {Fraction(common)}:
        raise NotCertifiableError("other values on the other side")
    above, below = (
        e.over(limit(base, t), base) if isinstance(e, Expression) else e
        for e, limit in ((a, maximum), (b, minimum))
    )
    return above + below - common


def _is_entrywise(e: Any, base: Expression) -> bool:
    """Is each entry a function of the same entry of the base?"""
    if not isinstance(e, Expression):
        return True
    for step in in_order(e, lambda s: () if s is base else s.args):
        diagonal = step.kind is nodes.Affine and isinstance(step.data[0], tuple) and (
            step.data[0][1] is step.data[0][2] is None)  # fmt: skip
        entry = step.kind is nodes.Product and step.data[1] == 1
        plainly = step.kind in (nodes.Add, nodes.Piecewise, irrational.Smooth)
        fits = (plainly or diagonal or entry) and all(c.size == step.size for c in step.args)
        if not fits and step is not base:
            return False
    return True


def _exactly(e: Any, base: Expression, t: float) -> list[Fraction]:
    """Return the values of a function of a base where that is t everywhere."""
    if not isinstance(e, Expression):
        return [_alone(np.ravel(np.asarray(e, dtype=np.float64)))] * base.size
    inner = e.over(Variable(base.size), base)
    made, _ = numbered(inner)
    values = [Exact.of([t] * base.size)]
    for node in made[1:]:
        args = [[values[k]] for k in node.of]
        piece = node.decide(values[node.of[0]])[0] if isinstance(node, nodes.Piecewise) else None
        values.append(node.forward(args, piece)[0])
    return values[-1].fractions


def _look(gap: Expression, a: Any, b: Any) -> str:
    """Look for a jump in float64, and say what was found."""
    rng, dim = stream(0, 0, "where"), gap.variable.size
    for _ in range(40):
        ends = rng.standard_normal((2, dim)) * np.exp(rng.uniform(-3.0, 3.0))
        sides = [np.ravel(gap(x)) for x in ends]
        for i in np.flatnonzero(sides[0] * sides[1] < 0)[:1]:
            left, right = ends if sides[0][i] < 0 else ends[::-1]
            for _ in range(60):
                middle = 0.5 * (left + right)
                left, right = (middle, right) if np.ravel(gap(middle))[i] < 0 else (left, middle)
            values = [float(np.ravel(np.broadcast_to(e(right) if isinstance(e, Expression) else e,
                                                     gap.shape))[i]) for e in (a, b)]  # fmt: skip
            if abs(values[0] - values[1]) > 1e-9 * (1.0 + abs(values[0])):
                place = np.array2string(right, precision=4, threshold=6)
                return f"it jumps by {values[0] - values[1]:.3g} at x = {place}."
    return (
        "no jump was seen, but that proves nothing; write it with np.maximum, np.minimum, np.abs "
        "or np.clip."
    )
