"""The truth about a proof file, by brute force: an evaluator that shares no code with any checker.

A proof file claims that limits of gradients along directions cancel. Nothing is decided here about
sides of kinks: the function is evaluated, with its derivative, in decimals of some hundred digits
at points y + t v + s u with a tiny t, a far tinier s and random u. What the gradients do there as t
and u change is what they do. `judge` says whether the evidence supports the claim.

`least_distance` bounds from below how far 0 is from all subgradients at a point of at most three
variables: at every kink one goes on with both sides, as long as the derivatives of the arguments
leave a direction for it. Kinks of affine arguments are known exactly. Curved ones may touch, so a
direction along them counts for both sides: what is found is all there is, and perhaps some more.

Standard library only. What is below 10^-(digits - 80) counts as 0: what is said here is certain up
to that.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

Document = dict[str, Any]
Slope = tuple[Decimal, ...]
#: Combinations of sides that are gone through before a function is given up.
MOST = 400
#: Orders of contact that are looked at, and digits: with exponentials they take long.
DEEPEST, DIGITS, DIGITS_OF_EXP = 40, 7000, 1000


class Undecided(Exception):
    """The oracle cannot say: not defined there, beyond its range, or too much work."""


def rational(text: str) -> Fraction:
    """Return a number of a proof file.

    Examples
    --------
    >>> [str(rational(text)) for text in ("-3", "0x1f/0x10", "-0x1.8p+1")]
    ['-3', '31/16', '-3']
    """
    if "p" in text:
        mantissa, exponent = text.split("p")
        whole, _, digits = mantissa.replace("0x", "").partition(".")
        return int(whole + digits, 16) * Fraction(2) ** (int(exponent) - 4 * len(digits))
    top, _, bottom = text.partition("/")
    return Fraction(int(top, 0), int(bottom or "1", 0))


def rationals(texts: Sequence[str]) -> list[Fraction]:
    return [rational(text) for text in texts]


def decimal(q: Fraction) -> Decimal:
    return Decimal(q.numerator) / Decimal(q.denominator)


class Jet(NamedTuple):
    """A number and its derivative; `curved` unless it is affine near the point."""

    value: Decimal
    slope: Slope
    curved: bool = False


def combined(terms: Sequence[tuple[Decimal, Jet]], start: Decimal, dim: int) -> Jet:
    value, slope, curved = start, [Decimal(0)] * dim, False
    for a, jet in terms:
        value += a * jet.value
        slope = [p + a * q for p, q in zip(slope, jet.slope)]
        curved = curved or jet.curved
    return Jet(value, tuple(slope), curved)


# --- which piece rules ----------------------------------------------------------------------------


@dataclass
class ByValue:
    """The piece that the value is on. `doubt`: it is on two, and moves."""

    tiny: Decimal
    doubt: bool = False

    def _meet(self, *slopes: Slope) -> None:
        if any(abs(a - b) > self.tiny for other in slopes[1:] for a, b in zip(slopes[0], other)):
            self.doubt = True

    def piece(self, u: Jet, breakpoints: Sequence[Decimal], bends: Sequence[bool]) -> int:
        for t, bend in zip(breakpoints, bends):
            if bend and abs(u.value - t) <= self.tiny:
                self._meet(u.slope, (Decimal(0),) * len(u.slope))
        return sum(u.value > t for t in breakpoints)

    def largest(self, row: Sequence[Jet]) -> int:
        top = max(jet.value for jet in row)
        tied = [i for i, jet in enumerate(row) if top - jet.value <= self.tiny]
        self._meet(*(row[i].slope for i in tied))
        return tied[0]

    def direction(self, row: Sequence[Jet]) -> list[Decimal]:
        if all(abs(jet.value) <= self.tiny for jet in row):
            for jet in row:
                self._meet(jet.slope, (Decimal(0),) * len(jet.slope))
            return [Decimal(0)] * len(row)
        return [jet.value for jet in row]


@dataclass
class BySides:
    """One of the pieces that meet in a point: `path` says which, as far as it goes.

    A side is taken if some direction leads there: `exact` rows must be positive along it, all
    `rows` must not be negative along its limit.
    """

    tiny: Decimal
    path: list[int]
    dim: int
    exact: list[Slope] = field(default_factory=list)
    rows: list[Slope] = field(default_factory=list)
    taken: int = 0
    others: list[list[int]] = field(default_factory=list)

    def _choose(self, options: list[tuple[int, list[tuple[Slope, bool]]]]) -> int:
        """Take the next choice of the path, or the first; say which others there were."""
        open_ = [k for k, (_, needs) in enumerate(options) if self._leads(needs)]
        if not open_:
            raise Undecided("no side is left")
        if self.taken == len(self.path):
            self.others += [[*self.path, k] for k in open_[1:]]
            self.path = [*self.path, open_[0]]
        answer, needs = options[self.path[self.taken]]
        self.taken += 1
        self.rows += [row for row, _ in needs]
        self.exact += [row for row, curved in needs if not curved]
        return answer

    def _leads(self, needs: list[tuple[Slope, bool]]) -> bool:
        exact = [*self.exact, *(row for row, curved in needs if not curved)]
        rows = [*self.rows, *(row for row, _ in needs)]
        if not feasible(exact, [], self.dim, self.tiny):
            return False
        one, none = Decimal(1), Decimal(0)
        axes = [tuple(s * one if i == k else none for i in range(self.dim))
                for k in range(self.dim) for s in (1, -1)]  # fmt: skip
        return any(feasible([axis], rows, self.dim, self.tiny) for axis in axes)

    def _moves(self, slope: Slope) -> bool:
        return any(abs(a) > self.tiny for a in slope)

    def piece(self, u: Jet, breakpoints: Sequence[Decimal], bends: Sequence[bool]) -> int:
        below = sum(u.value > t + self.tiny for t in breakpoints)
        on = below < len(breakpoints) and abs(u.value - breakpoints[below]) <= self.tiny
        if not on or not bends[below] or not (self._moves(u.slope) or u.curved):
            return below
        if not self._moves(u.slope):
            return self._choose([(below, []), (below + 1, [])])
        down = tuple(-a for a in u.slope)
        return self._choose([(below, [(down, u.curved)]), (below + 1, [(u.slope, u.curved)])])

    def largest(self, row: Sequence[Jet]) -> int:
        top = max(jet.value for jet in row)
        tied = [i for i, jet in enumerate(row) if top - jet.value <= self.tiny]
        options = []
        for i in tied:
            gaps = [
                (tuple(a - b for a, b in zip(row[i].slope, row[j].slope)), row[j].curved)
                for j in tied
                if j != i
            ]
            # Affine entries that are equal are one entry.
            needs = [(g, row[i].curved or c) for g, c in gaps if self._moves(g)]
            options.append((i, needs))
        return tied[0] if len(tied) == 1 else self._choose(options)

    def direction(self, row: Sequence[Jet]) -> list[Decimal]:
        if any(abs(jet.value) > self.tiny for jet in row):
            return [jet.value for jet in row]
        if not any(self._moves(jet.slope) for jet in row):
            return [Decimal(0)] * len(row)
        if self.dim > 1:
            raise Undecided("a norm has infinitely many gradients at 0")
        sign = self._choose([(s, [((Decimal(s),), False)]) for s in (1, -1)])
        return [sign * jet.slope[0] for jet in row]


def feasible(strict: list[Slope], weak: list[Slope], dim: int, tiny: Decimal) -> bool:
    """Decide whether some v has <a, v> > 0 for all strict and >= 0 for all weak rows.

    Variables are eliminated one by one (Fourier and Motzkin).

    Examples
    --------
    >>> D = Decimal
    >>> feasible([(D(1),), (D(2),)], [], 1, D(0)), feasible([(D(1),)], [(D(-1),)], 1, D(0))
    (True, False)
    """
    rows = {(_normal(a, tiny), True) for a in strict} | {(_normal(a, tiny), False) for a in weak}
    for k in range(dim):
        above = [row for row in rows if row[0][k] > 0]
        below = [row for row in rows if row[0][k] < 0]
        rows = {row for row in rows if row[0][k] == 0}
        for a, first in above:
            for b, second in below:
                mixed = tuple(q * a[k] - p * b[k] for p, q in zip(a, b))
                rows.add((_normal(mixed, tiny), first or second))
        if len(rows) > 10 * MOST:
            raise Undecided("too many rows")
    return not any(strictly for _, strictly in rows)


def half(tiny: Decimal) -> Decimal:
    """Return a power of ten about the root of another."""
    return Decimal(1).scaleb(tiny.adjusted() // 2)


def _normal(row: Slope, tiny: Decimal) -> Slope:
    """Scale the largest entry to 1, and round what is next to nothing."""
    top = max(map(abs, row))
    places = half(tiny)
    return tuple(
        (a / top).quantize(places) if top > tiny and abs(a) > tiny * top else Decimal(0)
        for a in row
    )


# --- the function ---------------------------------------------------------------------------------


class Function:
    """The function of a proof file."""

    def __init__(self, nodes: Sequence[Document]) -> None:
        self.nodes = nodes
        self.dim: int = nodes[0]["size"]
        self.degree, self.size = 1, 1
        self._orders: list[int] = []
        for node in nodes:
            self._orders.append(self._order(node))
        self.degree = min(max(self._orders), DEEPEST)

    def _order(self, node: Document) -> int:
        """Return the degree of a node, and note how many digits its data have."""
        of = [self._orders[a] for a in node.get("of", [])]
        data = [node.get("offset", []), node.get("breakpoints", [])]
        for row in [*data, *node.get("rows", []), *node.get("pieces", [])]:
            self.look_at(rationals(row))
        if node["op"] == "multiply":
            return sum(of)
        if node["op"] == "piecewise":
            return max(of) * max(1, max(len(piece) for piece in node["pieces"]) - 1)
        if node["op"] in ("log", "logsumexp", "norm2"):
            return 2 * max(of)
        return max(of, default=1)

    def look_at(self, numbers: Sequence[Fraction]) -> None:
        for q in numbers:
            self.size = max(self.size, len(str(max(abs(q.numerator), q.denominator))))

    def jets(self, point: Sequence[Decimal], sides: ByValue | BySides) -> Jet:
        """Return value and derivative at a point, in the decimals of the context."""
        units = [[Decimal(int(i == k)) for i in range(self.dim)] for k in range(self.dim)]
        values: list[list[Jet]] = [[Jet(a, tuple(u)) for a, u in zip(point, units)]]
        for node in self.nodes[1:]:
            args = [values[a] for a in node["of"]]
            values.append(list(getattr(self, "_" + node["op"])(node, args, sides)))
        return values[-1][0]

    def _affine(self, node: Document, args: list[list[Jet]], sides: Any) -> Iterator[Jet]:
        columns, u = node["columns"], args[0]
        at = node.get("at") or [range(node["width"])] * len(node["rows"])
        rows = node.get("rows") or [["1"] * len(places) for places in at]
        offset = iter(node.get("offset") or ["0"] * (len(rows) * columns))
        for row, places in zip(rows, at):
            factors = [decimal(q) for q in rationals(row)]
            for j in range(columns):
                terms = [(a, u[k * columns + j]) for a, k in zip(factors, places) if a]
                yield combined(terms, decimal(rational(next(offset))), self.dim)

    def _add(self, node: Document, args: list[list[Jet]], sides: Any) -> Iterator[Jet]:
        one = Decimal(1)
        for entries in zip(*args):
            yield combined([(one, jet) for jet in entries], Decimal(0), self.dim)

    def _multiply(self, node: Document, args: list[list[Jet]], sides: Any) -> Iterator[Jet]:
        for a, b in zip(*args):
            still = any(_still(jet, sides.tiny) for jet in (a, b))
            both = combined([(b.value, a), (a.value, b)], Decimal(0), self.dim)
            yield Jet(a.value * b.value, both.slope, both.curved or not still)

    def _piecewise(self, node: Document, args: list[list[Jet]], sides: Any) -> Iterator[Jet]:
        exact, pieces = rationals(node["breakpoints"]), [rationals(p) for p in node["pieces"]]
        bends = [
            sum(j * c * t ** (j - 1) for j, c in enumerate(a) if j)
            != sum(j * c * t ** (j - 1) for j, c in enumerate(b) if j)
            for t, a, b in zip(exact, pieces, pieces[1:])
        ]
        breakpoints = [decimal(t) for t in exact]
        for u in args[0]:
            piece = pieces[sides.piece(u, breakpoints, bends)]
            value = slope = Decimal(0)
            for c in reversed(piece):
                value, slope = value * u.value + decimal(c), slope * u.value + value
            # On a smooth breakpoint it has two pieces.
            smooth = [t for t, bend in zip(breakpoints, bends) if not bend]
            two = any(abs(u.value - t) <= sides.tiny for t in smooth)
            curved = u.curved or two or any(piece[2:])
            yield Jet(
                value, tuple(slope * a for a in u.slope), curved and not _still(u, sides.tiny)
            )

    def _rows(self, node: Document, args: list[list[Jet]]) -> Iterator[list[Jet]]:
        columns = node["columns"]
        for start in range(0, len(args[0]), columns):
            yield args[0][start : start + columns]

    def _max(self, node: Document, args: list[list[Jet]], sides: Any) -> Iterator[Jet]:
        for row in self._rows(node, args):
            yield row[sides.largest(row)]

    def _norm2(self, node: Document, args: list[list[Jet]], sides: Any) -> Iterator[Jet]:
        for row in self._rows(node, args):
            way = sides.direction(row)
            length = sum((a * a for a in way), Decimal(0)).sqrt()
            size = sum((jet.value**2 for jet in row), Decimal(0)).sqrt()
            shares = [a / length if length else a for a in way]
            slope = combined(list(zip(shares, row)), Decimal(0), self.dim).slope
            yield Jet(size, slope, not all(_still(jet, sides.tiny) for jet in row))

    def _logsumexp(self, node: Document, args: list[list[Jet]], sides: Any) -> Iterator[Jet]:
        for row in self._rows(node, args):
            top = max(jet.value for jet in row)
            powers = [(jet.value - top).exp() for jet in row]
            total = sum(powers, Decimal(0))
            slope = combined([(p / total, jet) for p, jet in zip(powers, row)], top, self.dim).slope
            still = all(_still(jet, sides.tiny) for jet in row)
            yield Jet(total.ln() + top, slope, not still)

    def _log(self, node: Document, args: list[list[Jet]], sides: Any) -> Iterator[Jet]:
        for u in args[0]:
            if u.value <= sides.tiny:
                raise Undecided("the logarithm of what is not positive")
            slope = tuple(a / u.value for a in u.slope)
            yield Jet(u.value.ln(), slope, not _still(u, sides.tiny))


def _still(jet: Jet, tiny: Decimal) -> bool:
    """Is it constant near the point?"""
    return not jet.curved and not any(abs(a) > tiny for a in jet.slope)


# --- limits of gradients --------------------------------------------------------------------------


@dataclass(frozen=True)
class Limit:
    """What gradients tend to, up to `error`; None where they differ from side to side."""

    slope: Slope | None
    error: Decimal


class Oracle:
    """The truth about a function near rational points; numbers have about `size` digits.

    Attributes
    ----------
    near, nearer : int
        Points are taken 10^-near along a direction, and 10^-nearer beside it: nearer than any power
        of the former that a kink's argument may have.
    """

    def __init__(self, function: Function, seed: int = 0) -> None:
        d, e = function.degree, function.size
        self.function, self.rng = function, random.Random(seed)
        self.near = 30 + 2 * e
        self.nearer = (d + 1) * (self.near + 5 + 2 * e) + 40
        self.context = Context(
            prec=self.nearer + 4 * e * d + 160,
            Emin=-(10**12),
            Emax=10**12,
            traps=[InvalidOperation],
        )
        slow = any(node["op"] in ("log", "logsumexp") for node in function.nodes)
        if self.context.prec > (DIGITS_OF_EXP if slow else DIGITS):
            raise Undecided("too many digits")
        self.tiny = Decimal(1).scaleb(80 - self.context.prec)

    def _gradient(self, y: list[Decimal], v: list[Decimal], t: int, beside: list[int]) -> Limit:
        far, off = Decimal(10) ** -t, Decimal(10) ** -self.nearer
        point = [a + far * b + off * c for a, b, c in zip(y, v, beside)]
        sides = ByValue(self.tiny)
        jet = self.function.jets(point, sides)
        return Limit(None if sides.doubt else jet.slope, Decimal(0))

    def limit(self, y: Sequence[Fraction], v: Sequence[Fraction] | None) -> Limit:
        """Return the limit of gradients at y along v, or the gradient at y itself."""
        with localcontext(self.context):
            at = [decimal(q) for q in y]
            way = [decimal(q) for q in v] if v is not None else [Decimal(0)] * len(at)
            one, two = ([self.rng.randint(-(10**6), 10**6) for _ in at] for _ in range(2))
            places = [(0, one), (0, [-c for c in one]), (0, two), (5, one)]
            found = [self._gradient(at, way, self.near + k, c).slope for k, c in places]
            if None in found:
                return Limit(None, Decimal(0))
            slopes = [slope for slope in found if slope is not None]
            scale = 1 + max(abs(a) for slope in slopes for a in slope)
            error = max(abs(a - b) for s in slopes for a, b in zip(s, slopes[-1]))
            if error > scale * Decimal(10) ** -8:
                return Limit(None, error)
            beside = Decimal(1).scaleb(40 - self.nearer)  # what curvature makes of the step aside
            return Limit(slopes[-1], 2 * error + scale * beside)

    def sampled(self, y: Sequence[Fraction], count: int) -> list[Slope]:
        """Return gradients at points y + t v + t^2 w, for random v and w: some of the limits."""
        with localcontext(self.context):
            at, found = [decimal(q) for q in y], []
            for _ in range(count):
                v, w = ([Decimal(self.rng.randint(-9, 9)) for _ in at] for _ in range(2))
                t = Decimal(10) ** -self.near
                bent = [a + t * b for a, b in zip(v, w)]
                slope = self._gradient(at, bent, self.near, [self.rng.randint(1, 9) for _ in at])
                if slope.slope is not None:
                    found.append(slope.slope)
            return found

    def outer(self, y: Sequence[Fraction]) -> set[Slope]:
        """Return all limits of gradients at y, and perhaps some more; at most three variables."""
        if len(y) > 3:
            raise Undecided("more than three variables")
        with localcontext(self.context):
            at, found, open_ = [decimal(q) for q in y], set(), [[]]
            for _ in range(MOST):
                if not open_:
                    return found
                sides = BySides(self.tiny, open_.pop(), len(y))
                slope = self.function.jets(at, sides).slope
                found.add(tuple(a.quantize(half(self.tiny)) for a in slope))
                open_ += sides.others
        raise Undecided("too many sides")

    def least_distance(self, y: Sequence[Fraction]) -> Fraction | None:
        """Return a lower bound of the distance of 0 from all subgradients at y, if there is one."""
        try:
            slopes = self.outer(y)
        except Undecided:
            return None
        with localcontext(self.context):
            return Fraction(separation(slopes) * (1 - Decimal(10) ** -20))


def separation(slopes: set[Slope]) -> Decimal:
    """Return min <h, g>/|h| over the vectors g, for a direction h that makes it large (or 0).

    Examples
    --------
    >>> D = Decimal
    >>> round(separation({(D(1), D(1)), (D(1), D(-1))}), 6)
    Decimal('1.000000')
    """
    vectors = [[float(a) for a in slope] for slope in slopes]
    h = min(vectors, key=lambda g: math.hypot(*g))
    for k in range(400):  # Gilbert's algorithm: towards the shortest vector of the hull
        worst = min(vectors, key=lambda g: sum(a * b for a, b in zip(g, h)))
        gap = [a - b for a, b in zip(h, worst)]
        square = sum(a * a for a in gap)
        if square == 0.0 or k == 399:
            break
        step = min(1.0, max(0.0, sum(a * b for a, b in zip(h, gap)) / square))
        h = [a - step * b for a, b in zip(h, gap)]
    length = sum((Decimal(a) ** 2 for a in h), Decimal(0)).sqrt()
    if not length:
        return Decimal(0)
    return max(Decimal(0), min(sum(Decimal(a) * b for a, b in zip(h, g)) for g in slopes) / length)


# --- claims ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """What is true of a proof file.

    Attributes
    ----------
    evidence : str
        It "supports" the claim, "fails", or "open": too close to tell, or beyond the oracle.
    reason : str
    shown, margin : Fraction
        The eps that the evidence shows, and how far off that may be; None if it shows nothing.
    least : Fraction or None
        A lower bound of the distance of 0 from all subgradients at x.
    false : bool
        The claim is about x alone, and no subgradient at x is short enough.
    """

    evidence: str
    reason: str = ""
    shown: Fraction | None = None
    margin: Fraction = Fraction(0)
    least: Fraction | None = None
    false: bool = False


def judge(document: Document, seed: int = 0) -> Truth:
    """Say whether the evidence of a well-formed proof file supports its claim."""
    claim, evidence = document["claim"], document["evidence"]
    eps, delta = rational(claim["eps"]), rational(claim["delta"])
    x, weights = rationals(document["x"]), rationals(evidence["weights"])
    near = claim["kind"] == "near"
    vectors = [rationals(row) for row in evidence["directions" if near else "points"]]
    if eps < 0 or delta < 0 or min(weights) < 0 or not any(weights):
        return Truth("fails", "numbers")
    used = [(a, v) for a, v in zip(weights, vectors) if a > 0]
    points = [rationals(evidence["pivot"])] if near else [v for _, v in used]
    if any(sum((a - b) ** 2 for a, b in zip(x, y)) > delta**2 for y in points):
        return Truth("fails", "distance")
    function = Function(document["function"])
    for row in [x, *points, *(v for _, v in used)]:
        function.look_at(row)
    try:
        oracle = Oracle(function, seed)
        least = oracle.least_distance(x) if near and delta == 0 and len(x) <= 3 else None
        limits = [oracle.limit(points[0], v) if near else oracle.limit(v, None) for _, v in used]
    except (Undecided, InvalidOperation) as why:
        return Truth("open", str(why))
    false = least is not None and least > eps
    if any(limit.slope is None for limit in limits):
        return Truth("fails", "kink", least=least, false=false)
    with localcontext(oracle.context):
        shares = [decimal(a / sum(weights)) for a, _ in used]
        terms = [(a, Jet(Decimal(0), limit.slope or ())) for a, limit in zip(shares, limits)]
        whole = combined(terms, Decimal(0), function.dim).slope
        shown = Fraction(sum((a * a for a in whole), Decimal(0)).sqrt())
        margin = Fraction(2 * function.dim * max(limit.error for limit in limits))
    if abs(shown - eps) <= margin:
        return Truth("open", "close", shown, margin, least, false)
    return Truth("fails" if shown > eps else "supports", "combination", shown, margin, least, false)


__all__ = ["Function", "Limit", "Oracle", "Truth", "Undecided", "judge", "rational", "separation"]
