#!/usr/bin/env python3
"""Check a proof file: `python3 -I goldstein_check.py FILE` prints TRUE or FALSE, and why.

Exit code 0: the claim is true. 1: it is not proved. 2: the file cannot be read, or is too large.

A proof file holds a function f as a list of nodes, a point x, a claim (eps, delta) and evidence;
docs/proof_files.md of the library `goldstein` describes it. This file needs Python 3.11 and nothing
else, and may be copied anywhere. All numbers are rationals, or intervals with rational ends.

near       A pivot y with |y - x| <= delta, directions v_j, weights a_j >= 0. Along y + t v_j, as
           t -> 0+, no kink is met, and the gradients tend to g_j, an element of the Clarke
           subdifferential of f at y, which is convex. True if |sum a_j g_j| <= eps sum a_j.
goldstein  Points y_j on no kink, |y_j - x| <= delta, with gradients g_j. True if the same holds.
"""

import json
import math
import operator
import os
import re
import stat
import sys
from fractions import Fraction

MAX_BYTES = 2**26  # of the file
MAX_SIZE = 2**22  # entries of one node
MAX_BITS = 2**30  # of one vector
MAX_DEGREE = 32  # of polynomials
BUDGET = 6e11  # about nanoseconds
PRECISION = 320  # bits of an enclosure
LONG = 2 * PRECISION  # denominators of more bits than this are rounded, where that is allowed
Q = PRECISION + 64  # exp, log and roots are bounded by integers over 2^Q

FIELDS = {  # what a node of each kind holds, besides `op` and `of`
    "variable": {"size"}, "affine": {"columns", "width", "rows", "at", "offset"}, "add": set(),
    "multiply": set(), "piecewise": {"breakpoints", "pieces"}, "max": {"columns"},
    "norm2": {"columns"}, "logsumexp": {"columns"}, "log": set(),
}  # fmt: skip


class Unreadable(Exception):
    """The file does not say what a proof file says, or is too much work."""


class Refused(Exception):
    """The evidence does not prove the claim."""


spent = 0.0


def spend(count, bits=64, other=64):
    """Bound the time: `count` products of numbers of so many bits."""
    global spent
    spent += count * (100 + (bits >> 5) * (other >> 5))
    need(spent <= BUDGET, "checking it takes too long")


def need(condition, what):
    if not condition:
        raise Unreadable(what)


# --- vectors of rationals, or of intervals -------------------------------------------------------


class Vec:
    """Numbers in [lo/den, hi/den]; `lo is hi` where all are exact. `soft` ones may be rounded."""

    def __init__(self, lo, hi, den, soft=False):
        if soft and den.bit_length() > LONG:
            top = max((max(abs(a), abs(b)) for a, b in zip(lo, hi)), default=0).bit_length()
            k = PRECISION + max(0, den.bit_length() - top)
            spend(2 * len(lo), den.bit_length(), k)
            lo, hi = [(a << k) // den for a in lo], [-((-b << k) // den) for b in hi]
            den = 1 << k
        self.lo, self.hi, self.den, self.soft = lo, hi, den, soft
        self.bits = max(map(int.bit_length, lo if lo is hi else lo + hi), default=0) + 1
        room = len(lo) * (self.bits + den.bit_length())
        need(len(lo) <= MAX_SIZE and room <= MAX_BITS, "checking it takes too much memory")

    def take(self, places):
        lo = [self.lo[i] for i in places]
        return Vec(lo, self._other(lo, lambda hi: [hi[i] for i in places]), self.den, self.soft)

    def total(self, groups):
        """Sum the entries of each group of places."""
        spend(sum(map(len, groups)), self.bits)
        lo = [sum(self.lo[i] for i in group) for group in groups]
        hi = self._other(lo, lambda hi: [sum(hi[i] for i in group) for group in groups])
        return Vec(lo, hi, self.den, self.soft)

    def _other(self, lo, function):
        return lo if self.lo is self.hi else function(self.hi)

    def known(self, i):
        """Return entry i where it is exact, else None."""
        return Fraction(self.lo[i], self.den) if self.lo[i] == self.hi[i] else None

    def __mul__(self, other):
        exactly = self.lo is self.hi and other.lo is other.hi
        spend((1 if exactly else 4) * len(self.lo), self.bits, other.bits)
        lo = hi = list(map(operator.mul, self.lo, other.lo)) if exactly else []
        if not exactly:
            entries = zip(self.lo, self.hi, other.lo, other.hi, strict=True)
            ends = [(p * r, p * s, q * r, q * s) for p, q, r, s in entries]
            lo, hi = list(map(min, ends)), list(map(max, ends))
        return Vec(lo, hi, self.den * other.den, self.soft or other.soft)

    def __add__(self, other):
        den = math.lcm(self.den, other.den)
        p, q = den // self.den, den // other.den
        spend(2 * len(self.lo), max(self.bits, other.bits), max(p, q).bit_length())
        lo = hi = [x * p + y * q for x, y in zip(self.lo, other.lo, strict=True)]
        if self.lo is not self.hi or other.lo is not other.hi:
            hi = [x * p + y * q for x, y in zip(self.hi, other.hi)]
        return Vec(lo, hi, den, self.soft or other.soft)

    def square(self):
        v = self * self
        return v if self.lo is self.hi else Vec([max(a, 0) for a in v.lo], v.hi, v.den, v.soft)


def exact(numbers):
    den = 1
    for q in numbers:
        if q.denominator > 1:
            spend(1, den.bit_length(), q.denominator.bit_length())
            den = math.lcm(den, q.denominator)
            need(len(numbers) * den.bit_length() <= MAX_BITS, "denominators are too long")
    top = [q.numerator * (den // q.denominator) for q in numbers]
    return Vec(top, top, den)


def unit(size, i, value=1):
    return exact([value * (k == i) for k in range(size)])


class Matrix:
    """Rows of integers over one denominator; `places` are the columns of a row's entries."""

    def __init__(self, rows, places, width, den):
        self.rows, self.places, self.width, self.den = rows, places, width, den
        self.bits = max((a.bit_length() for row in rows for a in row), default=0)

    def transposed(self):
        rows, places = [[] for _ in range(self.width)], [[] for _ in range(self.width)]
        for i, (row, at) in enumerate(zip(self.rows, self.places)):
            for k, a in zip(at, row):
                rows[k].append(a)
                places[k].append(i)
        return Matrix(rows, places, len(self.rows), self.den)

    def apply(self, v, columns):
        """Multiply a table that has so many columns and is stored row by row."""
        if v.lo is v.hi:
            top = self._sums(v.lo, columns, self.rows, v.bits)
            return Vec(top, top, v.den * self.den, v.soft)
        # Twice the midpoints and twice the radii.
        mid = self._sums([a + b for a, b in zip(v.lo, v.hi)], columns, self.rows, v.bits)
        sizes = [[abs(a) for a in row] for row in self.rows]
        rad = self._sums([b - a for a, b in zip(v.lo, v.hi)], columns, sizes, v.bits)
        lo, hi = [m - r for m, r in zip(mid, rad)], [m + r for m, r in zip(mid, rad)]
        return Vec(lo, hi, 2 * v.den * self.den, v.soft)

    def _sums(self, entries, columns, rows, bits):
        spend((sum(map(len, rows)) + len(rows)) * columns, bits, self.bits)
        out = [0] * (len(rows) * columns)
        for j in range(columns):
            column = entries[j::columns]
            out[j::columns] = [
                sum(map(operator.mul, row, [column[k] for k in at]))
                for row, at in zip(rows, self.places)
            ]
        return out


# --- enclosures of exp, log, roots and reciprocals: integers over 2^Q, bounds from below or above -


def exp_minus(a, up):
    """Bound exp(-a) for a >= 0: a Taylor series at a/2^k, squared k times."""
    if a > 1024:
        return int(up)
    halvings = int(a).bit_length() + 8
    r = (a.numerator << Q) // (a.denominator << halvings) + (not up)
    low = high = term_low = term_high = 1 << Q
    k = 0
    while term_high > 1:
        k += 1
        term_low, term_high = term_low * r // (k << Q), -(-term_high * r // (k << Q))
        low, high = (
            (low - term_high, high - term_low) if k % 2 else (low + term_low, high + term_high)
        )
    low, high = max(low - 2, 0), high + 2  # what is left alternates, and is below the last term
    for _ in range(halvings):
        low, high = low * low >> Q, -(-high * high >> Q)
    return high if up else low


def atanh(z, up):
    """Bound atanh(z) for z over 2^Q, 0 <= z <= 1/3."""
    total, power, k = 0, z, 1
    while power > 1:
        total += -(-power // k) if up else power // k
        power = -(-power * z * z >> 2 * Q) if up else power * z * z >> 2 * Q
        k += 2
    return total + 4 * up  # what is left is below a geometric series


LOG_2 = 2 * atanh((1 << Q) // 3, False), 2 * atanh((1 << Q) // 3 + 1, True)


def log_of(u, up):
    """Bound log(u) = k log 2 - 2 atanh((1 - f)/(1 + f)) for u = 2^k f, 1/2 <= f <= 1."""
    k = u.numerator.bit_length() - u.denominator.bit_length()
    k += u > Fraction(2) ** k
    f = u / Fraction(2) ** k
    z = (1 - f) / (1 + f)
    part = atanh((z.numerator << Q) // z.denominator + (not up), not up)
    return k * LOG_2[up == (k > 0)] - 2 * part


def root_of(u, up):
    low = math.isqrt((u.numerator << 2 * Q) // u.denominator)
    return low + (up and low * low * u.denominator != u.numerator << 2 * Q)


def reciprocal(u, up):
    return -(-(u.denominator << Q) // u.numerator) if up else (u.denominator << Q) // u.numerator


def monotone(v, function, rising=True, least=0):
    """Enclose a monotone function of positive entries; `function(q, up)` bounds it over 2^Q."""
    if any(a <= least for a in v.lo):
        raise Refused("a norm or a logarithm is not proved to have an argument that is positive")
    spend(300 * len(v.lo), Q, Q + v.den.bit_length() + v.bits)
    first, last = (v.lo, v.hi) if rising else (v.hi, v.lo)
    lo = [function(Fraction(a, v.den), False) for a in first]
    return Vec(lo, [function(Fraction(b, v.den), True) for b in last], 1 << Q, True)


def powers(v, rows):
    """Return exp(u - m) for every entry, m the largest of its row, and all m."""
    spend(300 * len(v.lo), Q, Q + v.den.bit_length() + v.bits)
    tops = [max(v.hi[i] for i in row) for row in rows]
    gaps = [(i, m) for m, row in zip(tops, rows) for i in row]
    lo = [exp_minus(Fraction(m - v.lo[i], v.den), False) for i, m in gaps]
    hi = [exp_minus(Fraction(m - v.hi[i], v.den), True) for i, m in gaps]
    return Vec(lo, hi, 1 << Q, True), Vec(tops, tops, v.den, v.soft)


def unit_vector(u):
    """Return u/|u|; dividing by the largest entry first is exact, and keeps squares in range."""
    largest = max(max(abs(a), abs(b)) for a, b in zip(u.lo, u.hi))
    u = Vec(u.lo, u.hi, largest or 1, True)
    length = monotone(u.square().total([range(len(u.lo))]), root_of)
    return u * monotone(length, reciprocal, rising=False).take([0] * len(u.lo))


# --- polynomials in t: lists of vectors ----------------------------------------------------------


def add_series(a, b):
    a, b = (b, a) if len(a) < len(b) else (a, b)
    return [c + b[k] if k < len(b) else c for k, c in enumerate(a)]


def multiply_series(a, b):
    if len(a) + len(b) > MAX_DEGREE + 2:
        raise Refused(f"along a direction an expression has a degree above {MAX_DEGREE}")
    out = [None] * (len(a) + len(b) - 1)
    for i, p in enumerate(a):
        for j, q in enumerate(b):
            out[i + j] = p * q if out[i + j] is None else out[i + j] + p * q
    return out


def horner(polynomials, piece, u):
    """Evaluate the polynomial of its piece at every entry of a series."""
    tables = [exact(column).take(piece) for column in zip(*polynomials)]
    out = [tables[-1]]
    for table in reversed(tables[:-1]):
        out = add_series(multiply_series(out, u), [table])
    return out


# --- the function --------------------------------------------------------------------------------


class Node:
    """One step: `op` of earlier nodes. Entries are stored in rows of `columns`."""

    def forward(self, args, piece):
        """Return the node's series from those of its arguments."""
        u = args[0]
        if self.op == "affine":
            out = [self.matrix.apply(c, self.columns) for c in u]
            return [out[0] + self.offset, *out[1:]]
        if self.op == "add":
            for other in args[1:]:
                u = add_series(u, other)
            return u
        if self.op == "multiply":
            return multiply_series(u, args[1])
        if self.op == "piecewise":
            return horner(self.pieces, piece, u)
        if self.op == "max":
            return [c.take(piece) for c in u]
        if len(u) > 1:
            raise Refused(f"{self.op} is not a polynomial along a direction")
        if self.op == "norm2":
            return [monotone(u[0].square().total(self.rows), root_of, least=-1)]
        if self.op == "log":
            return [monotone(u[0], log_of)]
        parts, tops = powers(u[0], self.rows)
        return [monotone(parts.total(self.rows), log_of) + tops]

    def backward(self, g, args, piece):
        """Return the derivatives in the arguments, g being that in the node."""
        if self.op == "affine":
            return [self.transposed.apply(g, self.columns)]
        if self.op == "add":
            return [g] * len(self.of)
        if self.op == "max":
            return [
                g.total([[i] if k == piece[i] else [] for i, r in enumerate(self.rows) for k in r])
            ]
        if self.op == "piecewise":
            return [g * horner(self.slopes, piece, [args[0]])[0]]
        if self.op == "multiply":
            return [g * args[1], g * args[0]]
        if self.op == "log":
            return [g * monotone(args[0], reciprocal, rising=False)]
        owner = [i for i, row in enumerate(self.rows) for _ in row]
        if self.op == "norm2":
            ways = [piece.get(i) or args[0].take(row) for i, row in enumerate(self.rows)]
            return [
                g.take(owner)
                * joined([unit_vector(w) if any(w.hi) or any(w.lo) else w for w in ways])
            ]
        parts, _ = powers(args[0], self.rows)
        sums = monotone(parts.total(self.rows), reciprocal, rising=False)
        return [g.take(owner) * (parts * sums.take(owner))]

    def still(self, args, piece, loose, values):
        """Say which entries are constant near a point, the same of the arguments being known."""
        a = args[0]
        if self.op == "affine":
            c = self.columns
            return [all(a[k * c + j] for k in at) for at in self.matrix.places for j in range(c)]
        if self.op == "add":
            return [all(parts) for parts in zip(*args)]
        if self.op == "multiply":
            nil = [[s and v.known(i) == 0 for i, s in enumerate(b)] for b, v in zip(args, values)]
            return [(p and q) or m or n for p, q, m, n in zip(*args, *nil)]
        if self.op == "piecewise":
            flat = [not any(p[1:]) for p in self.pieces]
            return [s or (flat[piece[i]] and i not in loose) for i, s in enumerate(a)]
        if self.op == "max":
            return [all(a[k] for k in loose.get(i, [piece[i]])) for i in range(self.size)]
        return a if self.op == "log" else [all(a[k] for k in row) for row in self.rows]


def joined(parts):
    den = math.lcm(*(v.den for v in parts))
    ends = [[(x * (den // v.den), y * (den // v.den)) for x, y in zip(v.lo, v.hi)] for v in parts]
    both = [pair for part in ends for pair in part]
    return Vec([a for a, _ in both], [b for _, b in both], den, True)


def ancestors(nodes, k):
    """Return node k and all it depends on, in order."""
    seen, stack = {k}, [k]
    while stack:
        new = set(nodes[stack.pop()].of) - seen
        seen |= new
        stack += new
    spend(len(seen))
    return sorted(seen)


class Point:
    """The function at a point: values, pieces, and the entries that are exactly on breakpoints.

    `ties` are those on kinks, `bent` those where the polynomial changes smoothly.
    """

    def __init__(self, nodes, y, soft):
        self.nodes, self.y, self.exact_values = nodes, y, {0: [y]}
        self.pieces, self.ties, self.bent = {}, {}, {}
        self.values = [Vec(y.lo, y.hi, y.den, soft)]
        for k, node in enumerate(nodes[1:], 1):
            if node.op in ("piecewise", "max", "norm2"):
                u = self.values[node.of[0]]
                getattr(self, f"_{node.op}")(k, node, u)
            self.values.append(
                node.forward([[self.values[a]] for a in node.of], self.pieces.get(k))[0]
            )

    def entry(self, k, i):
        """Return the exact value of an entry of node k."""
        known = self.values[k].known(i)
        if known is None:
            for b in ancestors(self.nodes, k):
                if b not in self.exact_values:
                    args = [self.exact_values[a] for a in self.nodes[b].of]
                    self.exact_values[b] = self.nodes[b].forward(args, self.pieces.get(b))
            known = self.exact_values[k][0].known(i)
        if known is None:
            raise Refused("on which side of a kink the point lies cannot be decided")
        return known

    def _piecewise(self, k, node, u):
        piece, self.ties[k], self.bent[k] = [], [], []
        levels = [(t.numerator * u.den, t.denominator) for t in node.breakpoints]
        spend(2 * len(u.lo) * (1 + len(levels)), u.bits)
        for i, (lo, hi) in enumerate(zip(u.lo, u.hi)):
            below = sum(lo * q > p for p, q in levels)
            if below < len(levels) and hi * levels[below][1] >= levels[below][0]:
                value = self.entry(node.of[0], i)
                below = sum(value > t for t in node.breakpoints)
                if value in node.breakpoints:
                    (self.ties if node.jumps[below] else self.bent)[k].append(i)
            piece.append(below)
        self.pieces[k] = piece

    def _max(self, k, node, u):
        self.pieces[k], self.ties[k] = [], {}
        for row, places in enumerate(node.rows):
            floor = max(u.lo[i] for i in places)
            rivals = [i for i in places if u.hi[i] >= floor]
            if len(rivals) > 1:
                values = {i: self.entry(node.of[0], i) for i in rivals}
                top = max(values.values())
                rivals = [i for i in rivals if values[i] == top]
            if len(rivals) > 1:
                self.ties[k][row] = rivals
            self.pieces[k].append(rivals[0])

    def _norm2(self, k, node, u):
        self.pieces[k], self.ties[k] = {}, []
        for row, places in enumerate(node.rows):
            if all(u.lo[i] <= 0 <= u.hi[i] for i in places):
                at = self.pieces[k][row] = exact([self.entry(node.of[0], i) for i in places])
                self.ties[k] += [] if any(at.lo) else [row]

    def gradient(self, pieces, root=None, start=None):
        """Return the derivative of the last node, or of `start` times another one."""
        root = len(self.nodes) - 1 if root is None else root
        found = {root: unit(1, 0) if start is None else start}
        for k in range(root, 0, -1):
            if k in found:
                node = self.nodes[k]
                args = [self.values[a] for a in node.of]
                for a, part in zip(node.of, node.backward(found.pop(k), args, pieces.get(k))):
                    found[a] = found[a] + part if a in found else part
        return found.get(0, unit(self.nodes[0].size, -1))


class Beside:
    """The function just beside a point: on y + t v for all small t > 0, or at y itself.

    A kink counts unless its argument is constant here (`loose`): then it is never crossed.
    """

    def __init__(self, point, v):
        self.point, self.nodes, self.v = point, point.nodes, v
        self.pieces, self.loose, self.felt = dict(point.pieces), {}, set()
        self.masks, self.paths = {0: [False] * len(point.y.lo)}, {0: [point.y, v]}
        for k, node in enumerate(self.nodes):
            if point.ties.get(k) or point.bent.get(k):
                getattr(self, f"_{node.op}")(k, node.of[0], self.nodes[node.of[0]])

    def still(self, k):
        """Return which entries of node k are proved to be constant here."""
        for b in ancestors(self.nodes, k):
            if b not in self.masks:
                node = self.nodes[b]
                masks = [self.masks[a] for a in node.of]
                values = [self.point.values[a] for a in node.of]
                spend(node.size + sum(map(len, masks)))
                loose = self.loose.get(b, {})
                self.masks[b] = node.still(masks, self.pieces.get(b), loose, values)
        return self.masks[k]

    def path(self, k, i):
        """Return the coefficients of t, t^2, ... of an entry of node k."""
        if self.v is None:
            return []
        for b in ancestors(self.nodes, k):
            if b not in self.paths:
                if b in self.felt and self.point.bent.get(b):
                    raise Refused("along a direction a polynomial changes exactly at the pivot")
                args = [self.paths[a] for a in self.nodes[b].of]
                self.paths[b] = self.nodes[b].forward(args, self.pieces.get(b))
        return [c.known(i) for c in self.paths[k][1:]]

    def vanishes(self, k, start):
        """Prove that `start` times node k is constant: it is affine here, with derivative 0."""
        flat = all(self.nodes[b].flat and b not in self.felt for b in ancestors(self.nodes, k))
        return flat and not any(self.point.gradient(self.pieces, k, start).lo)

    def constant(self, k, i):
        masked = not self.nodes[k].affine and self.still(k)[i]
        return masked or self.vanishes(k, unit(self.nodes[k].size, i))

    def refuse(self):
        what = "a point is on" if self.v is None else "a direction stays on"
        raise Refused(f"{what} a kink, where the function need not be differentiable")

    def _piecewise(self, k, arg, inner):
        piece = self.pieces[k] = list(self.pieces[k])
        loose = self.loose[k] = set(self.point.bent[k])
        for i in self.point.ties[k]:
            masked = not inner.affine and self.still(arg)[i]
            lead = 0 if masked else next((c for c in self.path(arg, i) if c), 0)
            if lead:
                piece[i] += lead > 0
                self.felt.add(k)
            elif masked or self.vanishes(arg, unit(inner.size, i)):
                loose.add(i)
            else:
                self.refuse()
        if any(not self.constant(arg, i) for i in self.point.bent[k]):
            self.felt.add(k)

    def _max(self, k, arg, inner):
        piece = self.pieces[k] = list(self.pieces[k])
        loose = self.loose[k] = {}
        for row, tied in self.point.ties[k].items():
            if not inner.affine and all(self.still(arg)[i] for i in tied):
                loose[row] = tied
                continue
            paths = {i: self.path(arg, i) for i in tied}
            top = max(paths.values())
            best = [i for i in tied if paths[i] == top]
            piece[row] = best[0]
            gaps = [unit(inner.size, best[0]) + unit(inner.size, i, -1) for i in best[1:]]
            if inner.affine and all(self.vanishes(arg, gap) for gap in gaps) or not gaps:
                self.felt |= {k} if len(best) < len(tied) else set()
            elif all(self.constant(arg, i) for i in tied):
                loose[row] = tied
            else:
                self.refuse()

    def _norm2(self, k, arg, inner):
        self.pieces[k] = dict(self.pieces[k])
        for row in self.point.ties[k]:
            places = self.nodes[k].rows[row]
            if not inner.affine and all(self.still(arg)[i] for i in places):
                continue
            for coefficients in zip(*(self.path(arg, i) for i in places)):
                if any(coefficients):
                    self.pieces[k][row] = exact(coefficients)
                    self.felt.add(k)
                    break
            else:
                if not all(self.constant(arg, i) for i in places):
                    self.refuse()


# --- the claim -----------------------------------------------------------------------------------


def check(claim, nodes):
    """Return a sentence that says what is proved, or raise `Refused`."""
    eps, delta, near = claim["eps"], claim["delta"], claim["kind"] == "near"
    used = [j for j, a in enumerate(claim["weights"]) if a > 0]
    if eps < 0 or delta < 0 or not used or min(claim["weights"]) < 0:
        raise Refused("eps, delta and weights must not be negative, nor all weights 0")
    for y in claim["points"]:
        gap = exact([a - b for a, b in zip(y, claim["x"])])
        spend(len(y), gap.bits, gap.bits)
        if sum(a * a for a in gap.lo) > (delta * gap.den) ** 2:
            raise Refused(f"a point is farther than delta = {show(delta)} from x")
    for soft in (True, False):
        if near:
            place = Point(nodes, exact(claim["points"][0]), soft)
            sides = [(place, exact(claim["directions"][j])) for j in used]
        else:
            sides = [(Point(nodes, exact(claim["points"][j]), soft), None) for j in used]
        limits = [place.gradient(Beside(place, v).pieces) for place, v in sides]
        whole = unit(nodes[0].size, -1)
        for j, limit in zip(used, limits):
            whole += limit * exact([claim["weights"][j]] * nodes[0].size)
        spend(2 * len(whole.lo), whole.bits, whole.bits)
        scale = (eps * whole.den * sum(claim["weights"])) ** 2
        if sum(max(-a, b) ** 2 for a, b in zip(whole.lo, whole.hi)) <= scale:
            return (
                f"x is ({show(eps)}, {show(delta)})-{claim['kind']} stationary for the function in "
                f"this file, of {nodes[0].size} variables: {len(used)} "
                f"{'limits of gradients at the pivot' if near else 'gradients'} prove it"
            )
        if sum(max(a, -b, 0) ** 2 for a, b in zip(whole.lo, whole.hi)) > scale:
            break
    raise Refused(f"the combination of the gradients is not proved to be at most {show(eps)}")


def show(q):
    return f"{float(q):.9g}" if q < 10**300 else "more than 1e300"


# --- reading -------------------------------------------------------------------------------------

WHOLE = r"(0x[0-9a-f]{1,250000}|[0-9]{1,4000})"
RATIONAL = re.compile(f"(-?){WHOLE}(?:/{WHOLE})?")
FLOAT = re.compile(r"(-?)0x([01])(?:\.([0-9a-f]{1,16}))?p([+-][0-9]{1,4})")


def number(text):
    need(isinstance(text, str), 'numbers must be strings, such as "3/4" or "0x1.8p+1"')
    found = FLOAT.fullmatch(text)
    if found:
        sign, lead, digits, exponent = found.groups(default="")
        need(abs(int(exponent)) <= 1100, "an exponent is beyond those of float64")
        value = Fraction(int(lead + digits, 16), 16 ** len(digits)) * Fraction(2) ** int(exponent)
    else:
        found = RATIONAL.fullmatch(text)
        need(found, f"not a number: {text[:40]!r}")
        spend(1, 8 * len(text), 8 * len(text))
        sign, *parts = found.groups(default="1")
        top, bottom = (int(part, 16 if part.startswith("0x") else 10) for part in parts)
        need(bottom, "a denominator is 0")
        value = Fraction(top, bottom)
    return -value if sign == "-" else value


def numbers(texts, size=None):
    need(isinstance(texts, list) and size in (None, len(texts)), "a list has a wrong length")
    return [number(text) for text in texts]


def natural(value):
    need(type(value) is int and 0 < value <= MAX_SIZE, "a size is not positive, or too large")
    return value


def indices(values, size):
    need(isinstance(values, list), "places must be in a list")
    need(all(type(k) is int and 0 <= k < size for k in values), "a place is out of range")
    return values


def read_node(data, k, nodes):
    need(isinstance(data, dict) and data.get("op") in FIELDS, f"node {k} is of no known kind")
    node, op = Node(), data["op"]
    fields = set(data) - {"op", "of"} | (FIELDS[op] & {"rows", "at", "offset"})
    node.op, node.of = op, indices(data.get("of", []), k)  # nodes refer to earlier ones only
    count = {"variable": 0, "multiply": 2, "add": max(1, len(node.of))}.get(op, 1)
    right = fields == FIELDS[op] and len(node.of) == count and (op == "variable") == (k == 0)
    need(right, f"node {k} has wrong fields or arguments")
    need(len({nodes[a].size for a in node.of}) <= 1, f"node {k} has arguments of different sizes")
    node.size = nodes[node.of[0]].size if node.of else natural(data["size"])
    node.affine = op in ("variable", "affine", "add") and all(nodes[a].affine for a in node.of)
    node.flat = op in ("variable", "affine", "add", "max")
    if op == "piecewise":
        read_pieces(node, data)
    elif op == "affine":
        read_matrix(node, data)
    elif "columns" in data:
        columns = natural(data["columns"])
        need(node.size % columns == 0, f"node {k} has rows of a wrong length")
        node.rows = [range(start, start + columns) for start in range(0, node.size, columns)]
        node.size = len(node.rows)
    return node


def read_pieces(node, data):
    node.breakpoints, pieces = numbers(data["breakpoints"]), data["pieces"]
    need(isinstance(pieces, list) and 1 <= len(pieces) <= 1000, "too few or too many pieces")
    need(len(pieces) == len(node.breakpoints) + 1, "one piece more than breakpoints is needed")
    rows = [numbers(p) for p in pieces]
    width = max(map(len, rows))
    need(0 < width <= MAX_DEGREE, "a polynomial has no or too many coefficients")
    node.pieces = [p + [Fraction(0)] * (width - len(p)) for p in rows]
    node.slopes = [[j * p[j] for j in range(1, width)] or [Fraction(0)] for p in node.pieces]
    node.flat, node.jumps = not any(any(p[2:]) for p in node.pieces), []
    need(all(map(operator.lt, node.breakpoints, node.breakpoints[1:])), "breakpoints must ascend")
    for k, t in enumerate(node.breakpoints):
        gaps = [
            sum((b - a) * t**j for j, (a, b) in enumerate(zip(table[k], table[k + 1])))
            for table in (node.pieces, node.slopes)
        ]
        need(gaps[0] == 0, "a piecewise function is not continuous")
        node.jumps.append(gaps[1])


def read_matrix(node, data):
    node.columns, width = natural(data["columns"]), natural(data["width"])
    need(node.columns * width == node.size, "a matrix has another width than its argument")
    need("rows" in data or "at" in data, "a matrix needs rows or places")
    at = data.get("at", [list(range(width))] * len(data.get("rows", [])))
    need(isinstance(at, list), "places must be a list of lists")
    at = [indices(places, width) for places in at]
    rows = data.get("rows", [["1"] * len(places) for places in at])
    need(isinstance(rows, list) and len(rows) == len(at), "places and rows do not fit")
    need(all(len(set(places)) == len(places) for places in at), "a place comes twice in a row")
    whole = exact([a for row, places in zip(rows, at) for a in numbers(row, len(places))])
    node.size = natural(len(rows) * node.columns)
    ints = iter(whole.lo)
    filled = [[(a, k) for a, k in [(next(ints), k) for k in places] if a] for places in at]
    table = [[a for a, _ in row] for row in filled], [[k for _, k in row] for row in filled]
    node.matrix = Matrix(*table, width, whole.den)
    node.transposed = node.matrix.transposed()
    node.offset = exact(numbers(data.get("offset", ["0"] * node.size), node.size))


def read(path):
    """Return the claim with its evidence, and the nodes of the function."""
    with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
        need(stat.S_ISREG(os.fstat(file.fileno()).st_mode), "not a regular file")
        raw = file.read(MAX_BYTES + 1)
    need(len(raw) <= MAX_BYTES, f"more than {MAX_BYTES} bytes")
    data = json.loads(
        raw.decode("utf-8"), object_pairs_hook=distinct, parse_constant=reject, parse_float=reject,
        parse_int=lambda text: int(text) if len(text) < 16 else reject(text),
    )  # fmt: skip
    top = {"schema", "version", "claim", "x", "evidence", "function"}
    need(isinstance(data, dict) and set(data) == top, "not the fields of a proof file")
    known = data["schema"] == "goldstein-proof" and data["version"] == 1
    need(known, "another schema, or another version of it")
    claim, evidence, nodes = data["claim"], data["evidence"], []
    need(isinstance(claim, dict) and set(claim) == {"kind", "eps", "delta"}, "not a claim")
    near = claim["kind"] == "near"
    need(near or claim["kind"] == "goldstein", "a claim of an unknown kind")
    wanted = {"pivot", "directions", "weights"} if near else {"points", "weights"}
    need(isinstance(evidence, dict) and set(evidence) == wanted, "not the evidence of the claim")
    need(isinstance(data["function"], list) and data["function"], "a function is a list of nodes")
    for k, node in enumerate(data["function"]):
        nodes.append(read_node(node, k, nodes))
    need(nodes[-1].size == 1, "the last node must be one number")
    d, found = nodes[0].size, {"kind": claim["kind"]}
    found |= {"eps": number(claim["eps"]), "delta": number(claim["delta"])}
    found |= {"x": numbers(data["x"], d), "weights": numbers(evidence["weights"])}
    rows = evidence["directions" if near else "points"]
    need(isinstance(rows, list) and len(rows) == len(found["weights"]), "one weight per vector")
    vectors = [numbers(row, d) for row in rows]
    found["points"] = [numbers(evidence["pivot"], d)] if near else vectors
    return {**found, "directions": vectors}, nodes


def distinct(pairs):
    need(len(dict(pairs)) == len(pairs), "a key comes twice")
    return dict(pairs)


def reject(text):
    raise Unreadable(f"not a number of a proof file: {text[:40]}")


def main(arguments=None):
    global spent
    spent, arguments = 0.0, sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(f"TRUE: {check(*read(arguments[0]))}.")
        return 0
    except Refused as why:
        print(f"FALSE: {why}.")
        return 1
    except (Unreadable, OSError, ValueError, RecursionError, MemoryError, OverflowError) as why:
        print(f"UNREADABLE: {str(why)[:200] or type(why).__name__}.")
        return 2


if __name__ == "__main__":
    sys.exit(main())
