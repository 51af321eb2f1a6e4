"""Check a proof file: `python3 -I goldstein_check.py FILE` prints TRUE or FALSE, and why.
Exit code 0: the claim is true. 1: it is not proved. 2: the file cannot be read, or is too large.
A proof file holds a function f as a list of nodes, a point x, a claim (eps, delta) and evidence;
docs/proof_files.md of the library `goldstein` describes it. This file needs Python 3.11 and nothing
else, and may be copied anywhere. All numbers are rationals, or intervals with rational ends.
near       A pivot y with |y - x| <= delta, directions v_j, weights a_j >= 0. Along y + t v_j, as
           t -> 0+, no kink is met, and the gradients tend to g_j, an element of the Clarke
           subdifferential of f at y, which is convex. True if |sum a_j g_j| <= eps sum a_j.
goldstein  Points y_j on no kink, |y_j - x| <= delta, with gradients g_j. True if the same holds.
near-kkt   As near, inside bounds and constraints, all of which hold at y. Gradients of constraints
           that are at their limit at y, times multipliers of the right sign, and a normal of the
           bounds at y, are added to the combination; f has weight 1. Along one direction all
           constraints in use rise strictly, so that they do not cancel each other.
plus       As goldstein, for f + h with a convex term h: a vector v is added, of which the gap
           h(x) + h*(v) - <v, x> is at most g. True if the length of the sum is at most
           eps - g / delta.
refutation A point z (inside bounds and constraints) with f(z) <= f(x) - fall.
minimum    A function below f, strongly convex on a ball around a pivot, or everywhere; or a tree of
           cases, with such a function for each, and every point is in one of them.
"""

# ruff: noqa: E401, E501, E701, I001 (to be read in one sitting: a tight layout)
# fmt: off
import collections, decimal, functools, itertools, json, math, operator, os, re, stat, sys, zlib
from fractions import Fraction

MAX_BYTES, MAX_SIZE, MAX_DEGREE = 2**26, 2**22, 32  # of the file; entries of a node; polynomials
MEMORY, BUDGET = 2**34, 6e11  # bits that are in use at one time; about nanoseconds
PRECISION = 320  # bits of an enclosure; exp, log and roots are bounded by multiples of 2^-Q
LONG, Q = 2 * PRECISION, PRECISION + 64  # longer denominators are rounded, where that is allowed
KINDS = {  # what a node of each kind holds, besides `op` and `of`
    "variable": {"size"}, "affine": {"columns", "width", "rows", "at", "offset"}, "add": set(),
    "multiply": set(), "piecewise": {"breakpoints", "pieces"}, "max": {"columns"},
    "norm2": {"columns"}, "logsumexp": {"columns"}, "log": set(),
}
class Unreadable(Exception): """The file is not a proof file, or is too much work."""
class Refused(Exception): """The evidence does not prove the claim."""
spent, kept = 0.0, 0
def hold(bits):  # bounds the memory; vectors give back what they held
    global kept
    kept += bits
    need(kept <= MEMORY, "checking it takes too much memory")
def spend(count, bits=64, other=64):  # bounds the time: products of numbers of so many bits
    global spent
    spent += count * (100 + (bits >> 5) * (other >> 5))
    need(spent <= BUDGET, "checking it takes too long")
def need(condition, what):
    if not condition: raise Unreadable(what)

# --- vectors of rationals, or of intervals -------------------------------------------------------
class Vec:
    """Numbers in [lo/den, hi/den]; `lo is hi` where all are exact. `soft` ones may be rounded."""
    __slots__ = ("bits", "den", "exact", "hi", "lo", "room", "soft")
    def __init__(self, lo, hi, den, soft=False):
        self.room = 0
        if soft and den.bit_length() > LONG:
            top = max(longest(lo), longest(hi))
            k = PRECISION + max(0, den.bit_length() - top)
            spend(5 * len(lo), den.bit_length(), k + top - den.bit_length() + 64)
            lo, hi, den = [(a << k) // den for a in lo], [-((-b << k) // den) for b in hi], 1 << k
        self.lo, self.hi, self.den, self.soft, self.exact = lo, hi, den, soft, lo is hi
        self.bits = 1 + (longest(lo) if self.exact else max(longest(lo), longest(hi)))
        spend(len(lo) + 50)
        self.room = (2 - self.exact) * len(lo) * (500 + self.bits) + den.bit_length() + 4000
        hold(self.room)
    def __del__(self):
        global kept
        kept -= self.room
    def each(self, function, size):
        """Return `function` of both ends, a list of so many entries."""
        spend((2 - self.exact) * size, self.bits)
        lo = function(self.lo)
        return Vec(lo, lo if self.exact else function(self.hi), self.den, self.soft)
    def take(self, places): return self.each(lambda ends: [ends[i] for i in places], len(places))
    def __mul__(self, other):
        exactly = self.exact and other.exact
        spend((1 if exactly else 10) * len(self.lo), self.bits, other.bits)
        spend(1, self.den.bit_length(), other.den.bit_length())
        def ends(best):
            pairs = zip(self.lo, self.hi, other.lo, other.hi, strict=True)
            return [best(p * r, p * s, q * r, q * s) for p, q, r, s in pairs]
        lo = list(map(operator.mul, self.lo, other.lo)) if exactly else ends(min)
        return Vec(lo, lo if exactly else ends(max), self.den * other.den, self.soft or other.soft)
    def __add__(self, other):
        spend(5, self.den.bit_length(), other.den.bit_length())
        den, exactly = math.lcm(self.den, other.den), self.exact and other.exact
        p, q = den // self.den, den // other.den
        spend((4 - 2 * exactly) * len(self.lo), max(self.bits, other.bits), max(p, q).bit_length())
        def sums(a, b): return [x * p + y * q for x, y in zip(a, b, strict=True)]
        lo = sums(self.lo, other.lo)
        return Vec(lo, lo if exactly else sums(self.hi, other.hi), den, self.soft or other.soft)
def longest(ends): return max(map(int.bit_length, ends), default=0)
def exact(numbers):
    den = 1
    for q in numbers:
        if q.denominator > 1:
            spend(5, den.bit_length(), q.denominator.bit_length())
            den = math.lcm(den, q.denominator)
            need(len(numbers) * den.bit_length() <= MEMORY >> 1, "denominators are too long")
    for q in numbers:
        spend(5, den.bit_length(), max(q.numerator.bit_length(), q.denominator.bit_length()))
    top = [q.numerator * (den // q.denominator) for q in numbers]
    return Vec(top, top, den)
def units(size, entries):  # 0, except for some entries
    top = [0] * size
    for i, a in entries.items(): top[i] = a
    return Vec(top, top, 1)
def longer(v, bound, surely=False):
    """Say whether vectors in v may be longer than a rational bound >= 0, or all of them are."""
    ends = [max(a, -b, 0) if surely else max(-a, b) for a, b in zip(v.lo, v.hi)]
    more = bound.numerator.bit_length() + bound.denominator.bit_length()
    spend(len(ends), v.bits, v.bits)
    spend(10, 2 * (v.bits + v.den.bit_length() + more), 2 * more + v.den.bit_length())
    return sum([a * a for a in ends]) * bound.denominator**2 > (bound.numerator * v.den) ** 2

# --- polynomials in t: lists of vectors ----------------------------------------------------------
def add_series(a, b):
    return [p + q if p and q else p or q for p, q in itertools.zip_longest(a, b)]
def multiply_series(a, b):
    if len(a) + len(b) > MAX_DEGREE + 2: raise Refused("along a direction a degree is too high")
    out = [None] * (len(a) + len(b) - 1)
    for i, p in enumerate(a):
        for j, q in enumerate(b):
            out[i + j] = p * q if out[i + j] is None else out[i + j] + p * q
    return out
def horner(tables, piece, u):
    """Evaluate the polynomial of its piece at every entry of a series."""
    out = [tables[-1].take(piece)]
    for table in tables[-2::-1]: out = add_series(multiply_series(out, u), [table.take(piece)])
    return out

# --- the function --------------------------------------------------------------------------------
class Node:
    """One step, `op` of earlier nodes `of`. The argument may be a table of so many `columns`. An
    affine node has rows of pairs (place, integer) over `den`. `work` is what one pass costs."""
    offset = bends = ()
    def apply(self, v, rows):
        spend(2 * (2 - v.exact) * self.work, v.bits, self.bits)
        spend(1, v.den.bit_length(), self.den.bit_length())
        def sums(up, down):
            return [sum([a * (up if a > 0 else down)[k * self.columns + j] for k, a in row])
                    for row in rows for j in range(self.columns)]
        lo = sums(v.lo, v.hi)
        return Vec(lo, lo if v.exact else sums(v.hi, v.lo), v.den * self.den, v.soft)
    def forward(self, args, piece):
        """Return the node's series from those of its arguments."""
        u = args[0]
        match self.op:
            case "affine": return add_series([self.apply(c, self.table) for c in u], self.offset)
            case "add": return functools.reduce(add_series, args)
            case "multiply": return multiply_series(u, args[1])
            case "piecewise": return horner(self.pieces, piece, u)
            case "max": return [c.take(piece) for c in u]
        if len(u) > 1: raise Refused(f"{self.op} is not a polynomial along a direction")
        return [rounded([value for value, _ in self.smooth(u[0])])]
    def smooth(self, v, rows=None):
        """Return what norm2, log or logsumexp is, row by row, and its slopes; 0 is its direction 0."""
        out = []
        for way in rows or map(v.take, self.rows()):
            spend(20 * len(way.lo), way.bits + 2 * Q, way.bits + way.den.bit_length() + 20 * Q)
            row = spans(way)
            nil = self.op == "norm2" and not any(map(any, row))
            out.append((NIL, row) if nil else smooth_row(self.op, row))
        return out
    def backward(self, g, args, piece):
        """Return the derivatives in the arguments, g being that in the node."""
        match self.op:
            case "affine": return [self.apply(g, self.transposed)]
            case "add": return [g] * len(self.of)
            case "piecewise": return [g * horner(self.slopes, piece, args)[0]]
            case "multiply": return [g * args[1], g * args[0]]
            case "max":
                size, row_of = self.size * self.columns, {i: k for k, i in enumerate(piece)}
                return [g.each(lambda ends: [ends[row_of[i]] if i in row_of else 0
                                             for i in range(size)], size)]
        rows = self.smooth(args[0], piece)
        spread = g.take([i for i in range(self.size) for _ in range(self.columns)])
        return [spread * rounded([s for _, slopes in rows for s in slopes])]
    def still(self, i, args, piece, loose, values):
        """Say whether entry i is constant near a point, the same of the arguments being known."""
        match self.op:
            case "affine" | "add": return all(args[a][j] for a, j, _ in self.links(i))
            case "multiply":  # also 0 times whatever moves
                nil = [m[i] and not v.lo[i] and not v.hi[i] for m, v in zip(args, values)]
                return any(nil) or all(m[i] for m in args)
            case "piecewise":
                return args[0][i] or (not any(self.tables[1][piece[i]]) and i not in loose)
            case "max": return args[0][piece[i]]  # what stays tied is equal to it, or constant
        return all(args[0][j] for j in self.row(i))
    def links(self, i):
        """Return what an entry of a sum, or of an affine node, is made of: argument, place, factor."""
        if self.op == "add": return [(a, i, 1) for a in range(len(self.of))]
        row, j = divmod(i, self.columns)
        return [(0, k * self.columns + j, Fraction(a, self.den)) for k, a in self.table[row]]
    def row(self, i): return range(i * self.columns, (i + 1) * self.columns)  # of the argument
    def rows(self): return map(self.row, range(self.size))
def ancestors(nodes, k):
    """Return node k and all it depends on, in order."""
    seen, stack = {k}, [k]
    while stack:
        of = nodes[stack.pop()].of
        spend(10 + len(of))
        new = set(of) - seen
        seen |= new
        stack += new
    return sorted(seen)

class Side:
    """The function just beside y: on y + t v for all small t > 0, or at y itself if v is None.
    Which piece rules is decided exactly, entry by entry. An entry that is on a kink must leave it
    along v, unless it is constant here (`loose`): then the kink is never crossed. `felt` are the
    nodes that v takes to one side. `values` at y are the same for all v.

    On the line an argument of a kink is a polynomial in t, whose coefficients are numbers, or
    enclosed where constants are irrational. For small t the first one that is not 0 decides. An
    enclosure decides only if 0 is outside (for max: if it is apart from the others, for norm2: if
    some entry is not 0): all before it are exactly 0. If not, the line is refused: the next
    coefficient decides nothing."""
    def __init__(self, nodes, y, v, values, exact_values, only_values=False):
        self.nodes, self.v, self.values, self.exact_values = nodes, v, values, exact_values
        self.only_values = only_values  # on a kink all pieces have the same value
        self.pieces, self.loose, self.felt = {}, {}, set()
        self.masks, self.paths = {0: [False] * len(y.lo)}, {0: [y, v]}
        spend(20 * len(nodes))
        for k, node in enumerate(nodes[1:], 1):
            if node.op in ("piecewise", "max", "norm2"):
                rule, self.loose[k], arg = getattr(self, node.op), set(), node.of[0]
                self.pieces[k] = [rule(k, node, arg, values[arg], i) for i in range(node.size)]
            if k == len(values):
                values += node.forward([[values[a]] for a in node.of], self.pieces.get(k))
    def exactly(self, k, places):
        """Return the values at y of some entries of node k, which must be exact."""
        v = self.values[k].take(places)
        if v.lo != v.hi: v = self.derived(self.exact_values, k, self.series)[0].take(places)
        refuse(v.lo != v.hi, "on which side of a kink the point lies is not decided")
        return v
    def derived(self, known, k, rule):
        """Return what is known of node k, derived from that of all it depends on."""
        for b in ancestors(self.nodes, k) if k not in known else []:
            if b not in known: known[b] = rule(b, [known[a] for a in self.nodes[b].of])
        return known[k]
    def series(self, b, args): return self.nodes[b].forward(args, self.pieces.get(b))
    def steps(self, k):
        """Return the coefficients of t, t^2, ... of node k."""
        return [] if self.v is None else self.derived(self.paths, k, self.series)[1:]
    def mask(self, b, masks):
        spend(2 * self.nodes[b].work)
        values = [self.values[a] for a in self.nodes[b].of]
        known = masks, self.pieces.get(b), self.loose.get(b), values
        return [self.nodes[b].still(i, *known) for i in range(self.nodes[b].size)]
    def still(self, k): return self.derived(self.masks, k, self.mask)  # which entries are constant
    def vanishes(self, k, start):
        """Prove that `start` times node k is constant: it is affine here, with derivative 0."""
        flat = all(self.nodes[b].flat and b not in self.felt for b in ancestors(self.nodes, k))
        found = self.gradient(k, start) if flat else start
        return flat and not any(found.lo) and not any(found.hi)
    def require_constant(self, k, places):
        if self.only_values: return
        still, what = self.still(k), "a point is on" if self.v is None else "a direction stays on"
        if not all(still[i] or self.vanishes(k, units(len(still), {i: 1})) for i in places):
            raise Refused(f"{what} a kink, where the function need not be differentiable")
    def piecewise(self, k, node, arg, u, i):
        def places(v, i):
            """Return how many breakpoints are below entry i, and how many are not above it."""
            spend(4 * (1 + len(node.ends)), v.bits + v.den.bit_length(), node.bits)
            return (sum([v.lo[i] * t.denominator > t.numerator * v.den for t in node.ends]),
                    sum([v.hi[i] * t.denominator >= t.numerator * v.den for t in node.ends]))
        below, up_to = places(u, i)
        if below < up_to: below, up_to = places(self.exactly(arg, [i]), 0)
        if below == up_to: return below
        lead = self.lead(arg, [i])
        if lead: self.felt.add(k)
        elif node.bends[below]: self.require_constant(arg, [i])
        if not lead: self.loose[k].add(i)  # a smooth breakpoint may be kept
        return below + (bool(lead) and lead.lo[0] > 0)
    def lead(self, k, places):
        """Return the first coefficient along v that is not 0 at these places of node k."""
        for c in self.steps(k) if not all(self.still(k)[i] for i in places) else []:
            found = c.take(places)
            if any(a > 0 or b < 0 for a, b in zip(found.lo, found.hi)): return found
            require_exact(c, places)
    def max(self, k, node, arg, u, row):
        tied = largest(u, node.row(row))
        if len(tied) > 1:
            tied = [tied[j] for j in largest(self.exactly(arg, tied), range(len(tied)))]
        at_y, moving = len(tied), len(tied) > 1 and not all(self.still(arg)[i] for i in tied)
        for c in self.steps(arg) if moving else []:
            tied = largest(c, tied)
            if len(tied) > 1: require_exact(c, tied)
        if len(tied) < at_y: self.felt.add(k)
        best, *same = tied
        gaps = (units(len(u.lo), {best: 1, i: -1}) for i in same)
        if same and not (self.nodes[arg].affine and all(self.vanishes(arg, g) for g in gaps)):
            self.require_constant(arg, tied)
        return best
    def norm2(self, k, node, arg, u, row):
        """Return the direction of a row; where it is 0, that in which it leaves."""
        places, way = node.row(row), u.take(node.row(row))
        if all(a <= 0 <= b for a, b in zip(way.lo, way.hi)): way = self.exactly(arg, places)
        if not any(way.lo) and not any(way.hi):
            lead = self.lead(arg, places)
            if not lead: self.require_constant(arg, places)
            way = lead or way
        return Vec(way.lo, way.hi, 1)  # however small it is
    def gradient(self, root, start):
        """Return the derivative of `start` times a node."""
        found = {root: start}
        spend(root)
        for k in range(root, 0, -1):
            if k in found:
                node, args = self.nodes[k], [self.values[a] for a in self.nodes[k].of]
                for a, part in zip(node.of, node.backward(found.pop(k), args, self.pieces.get(k))):
                    found[a] = found[a] + part if a in found else part
        return found[0]
def largest(v, places):
    """Return the places whose entry may be the largest of them."""
    spend(10 + 4 * len(places), v.bits)
    floor = max(v.lo[i] for i in places)
    return [i for i in places if v.hi[i] >= floor]
def require_exact(v, places):
    refuse(any(v.lo[i] != v.hi[i] for i in places),
           "to which side of a kink a direction leads is not decided")


# --- what holds at a point: values, and derivatives of all subgradients ---------------------------
def values_at(nodes, y): return Side(nodes, y, None, [y], {0: [y]}, only_values=True).values
def spans(v): return [Span(Fraction(a, v.den), Fraction(b, v.den)) for a, b in zip(v.lo, v.hi)]
def rounded(row):
    """Return intervals as a vector over 2^Q."""
    lo, hi = ([(grid(u[a], a == 1) * 2**Q).numerator for u in row] for a in (0, 1))
    return Vec(lo, hi, 1 << Q, True)
def value_of(nodes, y): return spans(values_at(nodes, y)[-1])[0]  # exactly, where it is rational
def slopes_along(nodes, y, v):
    """Enclose <g, v> for all Clarke subgradients g of f at y.
    They are convex combinations of limits of gradients at points that tend to y and are on no kink.
    There the chain rule holds: a kink has one of the slopes it has next to y, a maximum the slope
    of one of its largest entries, the norm of a vector that tends to 0 some unit vector."""
    run = Pass(nodes, fractions(y), ZERO, {}, along=fractions(v), known=values_at(nodes, y))
    return run.slopes[-1][0].get(0, NIL)

# --- bounds, constraints and terms ----------------------------------------------------------------
def refuse(condition, why):
    if condition: raise Refused(why)
def fractions(v): return [Fraction(a, v.den) for a in v.lo]
def check_bounds(claim, y):
    for q, low, up in zip(fractions(y), claim["lower"], claim["upper"]):
        refuse(not low <= q <= up, "a point is outside the bounds")
def check_place(claim, y):
    """Prove that y is inside bounds and constraints; return enclosures of these."""
    check_bounds(claim, y)
    values = [value_of(part["nodes"], y) for part in claim["constraints"]]
    for i, ((lo, hi), part) in enumerate(zip(values, claim["constraints"])):
        refuse(not (part["lower"] <= lo and hi <= part["upper"]),
               f"constraint {i} is not proved to hold at a point")
    return values
def check_multipliers(claim):
    """Prove that multipliers and normal belong to limits that y is at, and do not cancel."""
    y, normal, parts = claim["pivot"], fractions(claim["normal"]), claim["constraints"]
    values, signs = check_place(claim, y), [0] * len(parts)
    for q, n, low, up in zip(fractions(y), normal, claim["lower"], claim["upper"]):
        refuse((n > 0 and q != up) or (n < 0 and q != low), "the normal is none of the bounds at y")
    for row in claim["rows"]:
        i, sign = row["constraint"], (row["weight"] > 0) - (row["weight"] < 0)
        refuse(sign * signs[i] < 0, f"weights of both signs on constraint {i}")
        signs[i] = signs[i] or sign
    for i, (sign, part, (lo, hi)) in enumerate(zip(signs, parts, values)):
        refuse(sign and not lo == hi == part["upper" if sign > 0 else "lower"],
               f"constraint {i} has a multiplier, and is not at its limit")
    lines = [part["lower"] == part["upper"] for part in parts]
    curved = [sign and not (line and part["nodes"][-1].affine)
              for sign, line, part in zip(signs, lines, parts)]
    if any(curved):
        v, cancel = claim["separation"], "constraints in use are not proved to rise along the separation"
        for n, q, low, up in zip(normal, fractions(v), claim["lower"], claim["upper"]):
            refuse(n * q < 0 or (q and low == up), cancel)
        for sign, line, rising, part in zip(signs, lines, curved, parts):
            lo, hi = slopes_along(part["nodes"], y, v)
            refuse(not (min(sign * lo, sign * hi) > 0 if rising else lo == hi == 0 or not line), cancel)
def term_gap(term, x, v):
    """Bound h(x) + h*(v) - <v, x> from above; also how far from x that is shown."""
    name, away, outside = term["name"], ZERO, "v is outside the domain of the conjugate of h"
    gap = -sum(map(operator.mul, v, x))
    if name == "l1_box":  # per entry, v t - w |t| is largest at a limit or next to 0
        for a, b, w, low, up in zip(x, v, term["weight"], term["lower"], term["upper"]):
            refuse(not low <= a <= up, "x is outside the bounds of h")
            refuse((up == INF and b > w) or (low == -INF and b < -w), outside)
            ends = [t for t in (low, up) if finite(t)] + [ZERO] * (low < 0 < up)
            gap += w * abs(a) + max(b * t - w * abs(t) for t in ends)
    elif name == "simplex":
        refuse(min(x) < 0, "x is outside the simplex")
        missing, largest = term["total"] - sum(x), max(range(len(x)), key=x.__getitem__)
        refuse(x[largest] + missing < 0, "x is too far from the simplex")
        gap, away = gap + max(v) * term["total"] - v[largest] * missing, abs(missing)
    elif name == "group_l2":
        free = set(range(len(x)))
        for group, w in zip(term["groups"], term["weight"]):
            free -= set(group)
            refuse(sum(v[i] ** 2 for i in group) > w * w, outside)
            gap += w * root(sum(x[i] ** 2 for i in group), True)
        refuse(any(v[i] for i in free), outside)
    else:  # |X| <= (|L|^2 + |R|^2)/2 + |X - LR'|, and that is at most sqrt(rank) times its length
        left, right, w = term["left"], term["right"], term["weight"]
        m, n = term["rows"], term["columns"]
        spend(m * n * (m + n + len(left[0])), 400, 400)
        squares = Curvature(n)
        for i, j in itertools.product(range(n), repeat=2):
            squares.rows[i][j] = -sum(v[k + i] * v[k + j] for k in range(0, m * n, n))
        refuse(not squares.at_least(-w * w), outside)
        products = [sum(map(operator.mul, a, b)) for a in left for b in right]
        rest = sum((a - b) ** 2 for a, b in zip(x, products))
        sizes = sum(a * a for row in left + right for a in row) / 2
        gap += w * (sizes + root(min(m, n) * rest, True))
    return max(gap, ZERO), away

# --- intervals, the ends of which may be infinite -------------------------------------------------
INF, ZERO, ONE = math.inf, Fraction(0), Fraction(1)
def finite(a): return isinstance(a, Fraction)
def plus(a, b): return a + b if finite(a) and finite(b) else b if finite(a) else a
def times(a, b):
    if not a or not b: return ZERO
    return a * b if finite(a) and finite(b) else INF if (a > 0) == (b > 0) else -INF
def over(top, bottom, up): return -(-top // bottom) if up else top // bottom
def grid(q, up): return Fraction(over(q.numerator << Q, q.denominator, up), 1 << Q)
def root(q, up):
    if not finite(q): return INF
    low = math.isqrt((q.numerator << 2 * Q) // q.denominator)
    return Fraction(low + (up and low * low * q.denominator != q.numerator << 2 * Q), 1 << Q)
def trim(a, up):
    """Round a number where it is long."""
    bits = a.denominator.bit_length() if finite(a) else 0
    spend(1, bits, bits)
    if bits <= LONG: return a
    k = PRECISION + max(0, bits - a.numerator.bit_length())
    return Fraction(over(a.numerator << k, a.denominator, up), 1 << k)
class Span(tuple):
    """An interval. Sums and products are rounded outwards; u | v is the hull, u & v the meet."""
    def __new__(cls, lo, hi): return super().__new__(cls, (lo, hi))
    def __add__(self, v): return Span(trim(plus(self[0], v[0]), False), trim(plus(self[1], v[1]), True))
    def __mul__(self, v):
        ends = [times(a, b) for a in self for b in v]
        return Span(trim(min(ends), False), trim(max(ends), True))
    def __or__(self, v): return Span(min(self[0], v[0]), max(self[1], v[1]))
    def __and__(self, v): return Span(max(self[0], v[0]), min(self[1], v[1]))
    def size(self): return max(-self[0], self[1])
    def bounded(self): return finite(self[0]) and finite(self[1])
    def mid(self): return (self[0] + self[1]) / 2
    def radius(self): return (self[1] - self[0]) / 2
    def square(self):
        part = Span(max(self[0], -self[1], ZERO), self.size())
        return part * part
def point(q): return Span(q, q)
NIL, UNIT = point(ZERO), Span(-ONE, ONE)
def union(parts): return functools.reduce(operator.or_, parts)
def row_length(row):
    """Enclose the norm of an interval vector."""
    low, high = sum((u.square() for u in row), NIL)
    return Span(root(low, False), root(high, True))
def length(row): return row_length(row.values())[1]
def hull_of(rows):
    return {k: union(row.get(k, NIL) for row in rows) for k in set().union(*rows)}
def combine(terms):
    """Return sum factor * row for interval vectors."""
    out = {}
    for factor, row in terms:
        for k, u in row.items():
            part = factor * u
            if part != NIL: out[k] = out[k] + part if k in out else part
    return out
def poly_range(p, u):
    """Enclose a polynomial on an interval by Bernstein coefficients: exact up to degree 1."""
    while len(p) > 1 and not p[-1]: p = p[:-1]
    lo, hi = u
    if len(p) <= 2: return sum((point(c) * u for c in p[1:]), point(p[0]))
    if not u.bounded():
        if len(p) > 3: return Span(-INF, INF)
        best = value_in(p, min(max(-p[1] / (2 * p[2]), lo), hi))
        return Span(best, INF) if p[2] > 0 else Span(-INF, best)
    n, wide = len(p) - 1, hi - lo
    at = [sum((p[j] * math.comb(j, i) * lo ** (j - i) for j in range(i, n + 1)), ZERO) * wide**i
          for i in range(n + 1)]
    values = [sum(Fraction(math.comb(i, j), math.comb(n, j)) * at[j] for j in range(i + 1))
              for i in range(n + 1)]
    return Span(trim(min(values), False), trim(max(values), True))
def derived(p): return [j * c for j, c in enumerate(p)][1:] or [ZERO]
def value_in(p, t):
    """Return a polynomial at t, by integers over one denominator."""
    v, total, power, bits = exact(p), 0, 1, longest(t.as_integer_ratio())
    spend(4 * len(p), v.bits + len(p) * bits, bits)
    for a in reversed(v.lo): total, power = total * t.numerator + a * power, power * t.denominator
    return Fraction(total * t.denominator, v.den * power)
def over_pieces(node, rows, u, closed=False):
    """Enclose polynomials, one per piece, on the parts of an interval that have more than a point."""
    return union(poly_range(p, part) for p, part in in_pieces(node, rows, u)
                 if part[0] < part[1] or closed or u[0] == u[1])
def in_pieces(node, rows, u):
    """Return what belongs to every piece that an interval meets, with the part of it there."""
    ends = itertools.pairwise([-INF, *node.ends, INF])
    parts = [(p, u & Span(*end)) for p, end in zip(rows, ends)]
    return [(p, part) for p, part in parts if part[0] <= part[1]]
DIGITS = {up: decimal.Context(130, way, -10**9, 10**9)
          for up, way in ((False, decimal.ROUND_FLOOR), (True, decimal.ROUND_CEILING))}
def decimal_bound(name, q, up):
    """Bound exp or ln of a rational, both of which rise. `decimal` has them correctly rounded to
    130 digits; its division is rounded to the side that is asked for."""
    context = DIGITS[up]
    found = getattr(context, name)(context.divide(*map(decimal.Decimal, q.as_integer_ratio())))
    error = abs(Fraction(found)) / 10**129
    return grid(Fraction(found) + (error if up else -error), up)
def exponential(q, up):  # of q <= 0, or infinite
    if not finite(q): return INF if q > 0 else ZERO
    return decimal_bound("exp", q, up) if q > -1024 else Fraction(up, 1 << Q)
def logarithm(q, up): return decimal_bound("ln", q, up) if finite(q) else INF
def inverse(u): return Span(*(1 / q if finite(q) else ZERO for q in u[::-1]))  # of u > 0
def smooth_row(op, row):
    """Enclose norm2, log or logsumexp of a row of intervals, and its slopes."""
    if op == "norm2":
        size = row_length(row)
        return size, [u * inverse(size) & UNIT if size[0] > 0 else UNIT for u in row]
    if op == "log":
        (u,) = row
        refuse(not u[0] > 0, "a logarithm is not proved to have an argument that is positive")
        return Span(logarithm(u[0], False), logarithm(u[1], True)), [inverse(u)]
    top = max((q for u in row for q in u if finite(q)), default=ZERO)
    low, high = ([exponential(plus(u[a], -top), a == 1) for u in row] for a in (0, 1))
    least, most, endless = sum(low), sum(filter(finite, high), ZERO), high.count(INF)
    value = Span(max([u[0] for u in row] + [top + logarithm(q, False) for q in [least] if q]),
                 INF if endless else top + logarithm(most, True))
    def share(a, rest): return ONE if not finite(a) else a / (a + rest) if a else ZERO
    return value, [Span(ZERO if endless > (b == INF) else share(a, most - (b if finite(b) else 0)),
                        share(b, least - a)) for a, b in zip(low, high)]

# --- curvature: f - z'Mz/2 is convex on a ball around y, or everywhere -----------------------------
class Entry:
    """One entry on a region: its value; how it depends on entries (argument, place, slope); by how
    much it bends in them (interval, place) or (interval, place, place); and which `signs` of its
    adjoint kinks inside ask for. The slope of a hull is one of the slopes. `held` is a substitute:
    the function below f has the slopes `back`."""
    def __init__(self, value, links, bends=(), signs=(), hull=False):
        self.value, self.links, self.bends, self.signs, self.hull = value, links, bends, signs, hull
        self.back, self.held = links, None
class Pass:
    """Intervals of the values and gradients of every entry on |z - y| <= r; r may be infinite.
    `held` are substitutes below some entries. Values are those with or without them; where `only`
    is set they take the place of the entries. With `along`, derivatives along this vector of all
    subgradients at y, the values there being `known`."""
    def __init__(self, nodes, y, r, held, only=False, along=None, known=None):
        self.nodes, self.r, self.held, self.only, self.along = nodes, r, held, only, along
        self.here = Pass(nodes, y, ZERO, held) if r else self
        self.values, self.entries = [[Span(q, q) + Span(-r, r) for q in y]], [[]]
        self.slopes = [[{0: point(q)} for q in along] if along else
                       [{k: point(ONE)} for k in range(len(y))]]
        for k, node in enumerate(nodes[1:], 1):
            spend(40 * node.work * (2 if along else 1 + len(y)), 400, 400)
            rule, args = getattr(self, node.op), [self.values[a] for a in node.of]
            entries = [rule(node, i, *args) for i in range(node.size)]
            for i, part in held.get(k, {}).items(): part.hold(self, node, entries[i])
            slopes = [self.gradient(node, e) for e in entries]
            values = spans(known[k]) if along else [e.value for e in entries]
            if r:
                reach = [times(r, length(g)) for g in slopes]
                values = [u & (at + Span(-far, far))
                          for u, at, far in zip(values, self.here.values[k], reach)]
            self.entries.append(entries)
            self.values.append(values)
            self.slopes.append(slopes)
    def gradient(self, node, entry):
        """Enclose the gradients of an entry, those of its substitute included."""
        found = self.through(node, entry.links, entry.hull)
        return hull_of([found, self.through(node, entry.back)]) if entry.held else found
    def through(self, node, links, hull=False):
        rows = [(s, self.slopes[node.of[a]][i]) for a, i, s in links]
        if hull: return hull_of([row for _, row in rows])
        found = combine(rows)
        if self.along and node.op == "norm2":
            far = row_length([row.get(0, NIL) for _, row in rows])[1]
            found = {0: found.get(0, NIL) & Span(-far, far)}
        return found
    def affine(self, node, i, *args):
        links = [(a, p, point(Fraction(q))) for a, p, q in node.links(i)]
        shift = Fraction(node.offset[0].lo[i], node.offset[0].den) if node.offset else ZERO
        return Entry(sum((s * args[a][p] for a, p, s in links), point(shift)), links)
    add = affine
    def multiply(self, node, i, u, v):
        a, b = node.of
        g, h = self.slopes[a][i], self.slopes[b][i]
        same = a == b or (g == h and all(lo == hi for lo, hi in g.values()))
        bend = (point(2 * ONE), i) if same else (point(ONE), i, i)
        value = u[i].square() if a == b else u[i] * v[i]
        return Entry(value, [(0, i, v[i]), (1, i, u[i])], [bend])
    def piecewise(self, node, i, values):
        u = values[i]
        value, slope, bend = (over_pieces(node, rows, u, self.along) for rows in node.tables)
        signs = [jump for t, jump in zip(node.ends, node.bends) if jump and u[0] < t < u[1]]
        return Entry(value, [(0, i, slope)], [(bend, i)], signs)
    def max(self, node, i, values):
        some = self.largest(node, node.row(i))
        share = point(ONE) if len(some) == 1 else Span(ZERO, ONE)
        value = Span(*(max(values[j][a] for j in node.row(i)) for a in (0, 1)))
        return Entry(value, [(0, j, share) for j in some], (), [1] * (len(some) > 1), True)
    def largest(self, node, places):
        """Return the entries of a row that may be the largest; one of them is kept for certain."""
        (arg,) = node.of
        values, slopes, at = self.values[arg], self.slopes[arg], self.here.values[arg]
        best = max(places, key=lambda i: at[i][0])
        def above(i):
            if self.along: return values[i][1] >= values[best][0]
            gap = length(combine([(point(ONE), slopes[i]), (point(-ONE), slopes[best])]))
            return values[i][1] > values[best][0] and plus(
                plus(at[i][1], -at[best][0]), times(self.r, gap)) > 0
        return [i for i in places if i == best or above(i)]
    def smooth(self, node, i, values):
        value, slopes = smooth_row(node.op, [values[j] for j in node.row(i)])
        bend, signs, wide = Span(ZERO, ONE / 2), (), False
        match node.op:
            case "log": bend = point(-ONE) * slopes[0] * slopes[0]
            case "logsumexp": wide = any(high - low > ONE / 2 for low, high in slopes)
            case "norm2" if value[0] > 0: bend = Span(ZERO, inverse(value)[1])
            case "norm2": bend, signs = NIL, [1]
        links = [(0, j, slope) for j, slope in zip(node.row(i), slopes)]
        return Entry(value, links, [(bend, j) for j in node.row(i)], signs, wide)
    norm2 = log = logsumexp = smooth
    def backward(self, last, start, slopes_only=False):
        """Return a lower bound of the curvature of `start` times a node, and its gradients, going
        back by adjoints: intervals that contain the derivatives in every entry."""
        total, found = Curvature(self.nodes[0].size), {last: start}
        for k in range(last, 0, -1):
            node = self.nodes[k]
            for i, (alpha, entry) in enumerate(zip(found.pop(k, ()), self.entries[k])):
                spend(40 * (1 + len(entry.links)) * (1 + total.d), 400, 400)
                if not slopes_only: self.bend(k, node, i, alpha, entry, total)
                for a, p, slope in entry.back:
                    into = found.setdefault(node.of[a], [NIL] * len(self.values[node.of[a]]))
                    into[p] += alpha * slope
        return total, dict(enumerate(found.get(0, ())))
    def bend(self, k, node, i, alpha, entry, total):
        """Add what one entry bends; refuse where it has a kink of the wrong side."""
        if entry.held and alpha != NIL: entry.held.check(self, node, i, alpha)
        for sign in entry.signs:
            refuse(not (alpha[0] >= 0 if sign > 0 else alpha[1] <= 0),
                   f"a concave kink of node {k} is inside the ball")
        for bend, *places in entry.bends:
            rows = [self.slopes[a][p] for a, p in zip(node.of[-len(places):], places)]
            if len(rows) == 1: total.outer((alpha * bend)[0], *rows)
            else: total.product(alpha * bend, *rows)

class Curvature:
    """A symmetric matrix, the sum of lower bounds of what entries add."""
    def __init__(self, d): self.rows, self.d = [[ZERO] * d for _ in range(d)], d
    def outer(self, c, g):
        """Add a lower bound of c gg'; for c >= 0 also 0 is one."""
        sharp = finite(c) and all(u.bounded() and u[0] == u[1] for u in g.values())
        if c <= 0 or sharp: self.product(point(c / 2), g, g)
    def product(self, alpha, g, h):
        """Add a lower bound of alpha (gh' + hg'): that of midpoints, less errors on the diagonal."""
        if alpha == NIL or not g or not h: return
        refuse(not all(u.bounded() for u in (alpha, *g.values(), *h.values())),
               "the curvature is not bounded from below")
        c, wide = alpha.mid(), alpha.radius()
        spend(4 * (1 + len(g)) * (1 + len(h)), 400, 400)
        for one, two in ((g, h), (h, g)):
            most = sum(abs(u.mid()) + u.radius() for u in two.values())
            blur = sum(u.radius() for u in two.values())
            for i, u in one.items():
                a, e = u.mid(), u.radius()
                for j, v in two.items(): self.rows[i][j] += c * a * v.mid()
                self.rows[i][i] -= abs(c) * (abs(a) * blur + e * most) + wide * (abs(a) + e) * most
    def at_least(self, growth):
        """Prove M >= growth I, by elimination."""
        rows = [row[:] for row in self.rows]
        if self.d * max(q.denominator.bit_length() for row in rows for q in row) > 4000:
            unit = 1 << 160  # shorter numbers, and a little less
            rows = [[Fraction(math.floor(q * unit), unit) for q in row] for row in rows]
            growth += Fraction(self.d, unit)
        for i in range(self.d): rows[i][i] -= growth
        while rows:
            k = max(range(len(rows)), key=lambda i: rows[i][i])
            top, pivot = rows[k], rows[k][k]
            if pivot <= 0: return not pivot and not any(map(any, rows))
            rest = [i for i in range(len(rows)) if i != k]
            sizes = (part.bit_length() + 400 for part in pivot.as_integer_ratio())
            spend(4 * len(rest) ** 2, *sizes)
            rows = [[rows[i][j] - top[i] * top[j] / pivot for j in rest] for i in rest]
        return True

class Held:
    """A substitute below an entry, by how much it is sharper, and what it costs: the sum of
    s (u - t) + p/2 (u - t)^2 over `parts`, places with t, s, p. That of a piecewise node has one
    part, and phi(t) is added; those of max and norm2 have weights s, and t = p = 0."""
    charge = least = ZERO  # of nodes that f does not depend on
    base = None  # of a piecewise node phi(t), unless it is given
    def __init__(self): self.parts, self.sharp = {}, []
    def slack(self): return sum((sigma for *_, sigma, _ in self.sharp), ZERO)
    def hold(self, run, node, entry):
        """Let the entry be this, or (unless it is held alone) itself or this."""
        value, entry.back, entry.bends, entry.signs, entry.held = NIL, [], [], (), self
        for i, (t, s, p) in self.parts.items():
            step = run.values[node.of[0]][i] + point(-t)
            value += point(s) * step + point(p / 2) * step.square()
            if node.op == "piecewise":
                value += self.base or over_pieces(node, node.tables[0], point(t))
            entry.back.append((0, i, point(s) + point(p) * step))
            entry.bends.append((point(p), i))
        if run.only: entry.value, entry.links, entry.hull = value, entry.back, False
        else: entry.value |= value
    def check(self, run, node, i, a):
        """Refuse unless it is on the right side of the entry on the whole region."""
        side = 1 if a[0] >= 0 else -1
        refuse(side < 0 and (a[1] > 0 or node.op != "piecewise"),
               "a support has an adjoint without a sign")
        self.least, slack = (a * point(Fraction(side)))[0], self.slack()
        weights = {place: s for place, (_, s, _) in self.parts.items()}
        if node.op == "piecewise": return self.check_piece(run, node, i, a.size(), side)
        if node.op == "norm2":
            return refuse(slack > 1 or sum(q * q for q in weights.values()) > (1 - slack) ** 2,
                          "weights of a norm are longer than 1")
        refuse(min(weights.values()) < 0 or sum(weights.values()) != 1,
               "weights of a maximum are negative, or not of sum 1")
        for one, other, sigma, _ in self.sharp:
            refuse(one == other or not {one, other} <= set(weights), "a pair is none")
            for place in (one, other): weights[place] -= sigma
        refuse(min(weights.values()) < 0, "the weights leave no room for so much sharpness")
    def check_piece(self, run, node, i, most, side):
        (arg,), (_, slopes, bends), (t, s, p) = node.of, node.tables, self.parts[i]
        u, at = run.values[arg][i] | point(t), run.here.values[arg][i]
        left, right = (side * value_in(slopes[sum(test(k, t) for k in node.ends)], t)
                       for test in (operator.lt, operator.le))
        refuse(not left + self.slack() <= side * s <= right - self.slack(),
               "the slope of a support is not between those of its kink")
        bend = over_pieces(node, bends, u) * point(Fraction(side))
        refuse(side * p > bend[0], "a support bends more than its entry")
        for k, jump in zip(node.ends, node.bends):  # a concave kink costs what it weighs at most
            if u[0] < k < u[1] and k != t and side * jump < 0:
                margin = plus(k, -at[1]) if t < k else plus(at[0], -k)
                refuse(not margin > 0, "a support is next to a concave kink")
                far = plus(times(run.r, length(run.slopes[arg][i])), -margin)
                self.charge = plus(self.charge, times(times(most, abs(jump)), max(far, ZERO)))
        refuse(not finite(self.charge), "a concave kink inside has no finite charge")
class Line(Held):
    """A line s u + c, of a case: below the piecewise entry, its argument u being in a range, or above
    it where f falls with it (`side` -1)."""
    side = 1
    def check_piece(self, run, node, i, most, side): self.side = side
    def lay(self, node, i, s, u):
        """Let c be the best of slope s: the least phi(u) - s u, or the largest."""
        def least(row, part):
            a, b, c, *_ = [self.side * q for q in [row[0], row[1] - s, *row[2:], ZERO]]
            if c <= 0: return poly_range([a, b, c], part)[0]
            return value_in([a, b, c], min(max(-b / (2 * c), part[0]), part[1]))
        low = min(least(row, part) for row, part in in_pieces(node, node.tables[0], u))
        refuse(not finite(low), "a line is not below its kink: a range is infinite")
        self.parts, self.base = {i: (ZERO, s, ZERO)}, point(self.side * low)

def minorant(nodes, y, r, held):
    """Return curvature, eps and loss: f(z) >= f(y) - loss - eps |h| + h'Mh/2, h = z - y, |h| <= r."""
    last, one = len(nodes) - 1, [point(ONE)]
    run, at = Pass(nodes, y, r, held), Pass(nodes, y, ZERO, held, only=True)
    total, _ = run.backward(last, one)
    loss = max(value_of(nodes, exact(list(y)))[1] - at.values[last][0][0], ZERO)
    eps = length(at.backward(last, one, slopes_only=True)[1])
    parts = [(nodes[k], row, part) for k, own in held.items() for row, part in own.items()]
    bare = Pass(nodes, y, r, {}) if any(part.sharp for *_, part in parts) else None
    for node, row, part in parts:
        loss += part.charge
        for sharp in part.sharp:
            more, blur = sharpness(bare, node, row, part, sharp, total)
            loss, eps = loss + more, plus(eps, blur)
    return total, eps, loss
def sharpness(bare, node, row, part, sharp, total):
    """Add the curvature of sigma |v|, v = 0 near y; return what v(y), and the blur of v', cost."""
    (one, other, sigma, bend), (arg,) = sharp, node.of
    if not sigma or not part.least: return ZERO, ZERO
    refuse(not finite(bare.r), "sharpness needs a ball of finite radius")
    refuse(not finite(part.least), "an adjoint is not bounded")
    slopes, values, affine = bare.here.slopes[arg], bare.here.values[arg], bare.nodes[arg].affine
    refuse(node.op == "norm2" and not affine, "a norm of a curved argument is not sharp here")
    kappa = part.least * sigma
    factors = {one: point(ONE)} | ({other: point(-ONE)} if node.op == "max" else {})
    rows = [combine((c, slopes[i]) for i, c in factors.items())]
    gap = sum((c * values[i] for i, c in factors.items()), point(-part.parts[one][0]))
    if node.op == "norm2":
        rows = [slopes[i] for i in node.row(row)]
        gap = row_length([values[i] for i in node.row(row)])
    mids = [{j: point(u.mid()) for j, u in g.items()} for g in rows]
    size = row_length([u for g in mids for u in g.values()])[1]
    if not size: return ZERO, ZERO
    for sign in () if affine else (point(ONE), point(-ONE)):
        start = [sign * factors.get(i, NIL) for i in range(bare.nodes[arg].size)]
        refuse(not bare.backward(arg, start)[0].at_least(-bend),
               "an argument bends more than is stated")
    for g in mids: total.outer(2 * kappa / (bare.r * size), g)
    for j in range(total.d): total.rows[j][j] -= 0 if affine else kappa * bend
    blur = sum(row_length([point(u.radius()) for u in g.values()])[1] for g in rows)
    return kappa * gap.size(), kappa * blur
def check_cases(claim, nodes):
    """Prove f >= goal = f(x) - global_gap everywhere, by a tree of cases.
    f = r + sum b phi(u), the phi being all piecewise functions with kinks, of degree 2 at most, the u
    affine, the b numbers, and r - growth/2 |z|^2 convex. In a case the u are in ranges, so that lines
    can be put below all b phi: f >= m there, and f(z) >= m(y) - eps t + growth/2 t^2 for t = |z - y|,
    eps the length of the gradient of m at y, any point. Either that is never below goal: the case is
    closed; or z with f(z) < goal are in a ball around y, which makes the ranges smaller. These are
    looked at again, or split: u <= t, or u >= t. In the beginning ranges are infinite."""
    held, growth, one, last = claim["lines"], claim["cases"]["growth"], [point(ONE)], len(nodes) - 1
    for k, node in enumerate(nodes):
        if k in held: right = nodes[node.of[0]].affine and not any(any(p[3:]) for p in node.tables[0])
        else: right = node.op in ("affine", "add") or not any(nodes[a].kinked for a in node.of)
        refuse(not right, f"cases have no rule for node {k}")
    run = Pass(nodes, [ZERO] * nodes[0].size, INF, held, only=True)
    refuse(growth <= 0 or not run.backward(last, one)[0].at_least(growth),
           f"what is left without kinks is not proved to have a curvature of {show(growth)}")
    lines = [(nodes[k].of[0], i, nodes[k], line) for k, own in held.items() for i, line in own.items()]
    steep = [length(run.slopes[arg][i]) for arg, i, *_ in lines]
    goal, left = value_of(nodes, claim["x"])[1] - claim["global_gap"], [[Span(-INF, INF)] * len(lines)]
    for k, case in enumerate(claim["cases"]["tree"]):
        refuse(not left, "there are more cases than parts of others")
        ranges, rest = left.pop(), None  # None where no point is, or none where f is below goal
        if ranges is not None and all(lo <= hi for lo, hi in ranges):
            for (_, i, node, line), s, u in zip(lines, case["slopes"], ranges): line.lay(node, i, s, u)
            at = Pass(nodes, case["point"], ZERO, held, only=True)
            eps = length(at.backward(last, one, slopes_only=True)[1])
            square = eps * eps + 2 * growth * (goal - at.values[last][0][0])
            if square > 0:
                far = (eps + root(square, True)) / growth
                rest = [u & (at.values[arg][i] + Span(-far * b, far * b))
                        for u, b, (arg, i, *_) in zip(ranges, steep, lines)]
        refuse(rest is not None and not case["sides"], f"case {k} is not closed")
        left += [rest and [u & side if j == case.get("entry") else u for j, u in enumerate(rest)]
                 for side in case["sides"]]
    refuse(left, "a case is missing")
def check_minimum(claim, nodes):
    """Decide ball and global claims: f >= f(x) - gap within radius of x, or everywhere."""
    names = ("delta", "eps", "growth", "convexity", "reach", "radius", "within", "strict", "unique")
    delta, eps, growth, convex, r, radius, within, strict, unique = (claim[n] for n in names)
    y, x, everywhere = fractions(claim["pivot"]), fractions(claim["x"]), claim["scope"] == "global"
    whole, by_cases = claim.get("global_gap", ZERO), "cases" in claim
    refuse(min(delta, eps, claim["gap"], whole, radius) < 0 or not r > 0, "a radius, gap or bound is negative")
    refuse(sum((a - b) ** 2 for a, b in zip(x, y)) > delta**2, f"the pivot is farther than {show(delta)} from x")
    total, found, loss = minorant(nodes, y, r, claim["held"])
    refuse(not total.at_least(growth), f"the curvature is not proved to be at least {show(growth)}")
    refuse(not found <= eps, f"the gradient of the minorant is not proved to be at most {show(eps)}")
    if growth > 0 and times(growth, r) > eps: gap = loss + eps * eps / (2 * growth)
    else:
        refuse(not finite(r) and (growth < 0 or eps > 0), "there is no finite gap: no growth, and eps is not 0")
        gap = loss + (eps * r - growth * r * r / 2 if finite(r) else 0)
    gap += value_of(nodes, claim["x"])[1] - value_of(nodes, claim["pivot"])[0]
    refuse(max(gap, 0) > claim["gap"], f"the gap is not proved to be at most {show(claim['gap'])}")
    if strict or finite(within):
        far = (eps + root(eps * eps + 2 * growth * loss, True)) / growth if growth > 0 else INF
        refuse(not far < r, "the lowest points are not proved to be inside the ball")
        refuse(not finite(within) or far + delta > within, "a minimiser is not proved to be so close")
        refuse(finite(radius) and within >= radius, "a minimiser is not proved to be in the ball around x")
    if finite(convex):
        bare = Pass(nodes, y, INF if everywhere else r, {}).backward(len(nodes) - 1, [point(ONE)])[0]
        refuse(convex < 0 or not bare.at_least(convex), "f is not proved to be so convex")
    refuse(unique and not (strict and 0 < convex < INF), "unique needs strict, and strict convexity")
    if everywhere:
        closed = by_cases and whole <= claim["gap"] and not strict and not finite(within)
        refuse(finite(radius) or (finite(r) and not (strict and finite(convex)) and not closed),
               "global needs curvature everywhere, or a strict minimum of a convex function, or cases that show the gap")
    else:
        refuse(not finite(radius) or radius + delta > r,
               "the ball around x is not inside the one around the pivot")
    if by_cases: check_cases(claim, nodes)
    kind = "a unique" if unique else "a strict" if strict else "a"
    where = "global minimum" if everywhere else f"minimum on a ball of radius {show(radius)}"
    more = f", and f is nowhere lower by more than {show(whole)}" if by_cases else ""
    return f"x is {kind} {where} up to a gap of {show(claim['gap'])} for the function in this file, of {len(x)} variables{more}"

STATIONARY = {"near": "near stationary", "goldstein": "goldstein stationary",
              "near-kkt": "near KKT", "plus": "stationary with its term"}
# --- the claim -----------------------------------------------------------------------------------
def check(claim, nodes):
    """Return a sentence that says what is proved, or raise `Refused`."""
    kind, x = claim["kind"], claim["x"]
    if kind == "minimum": return check_minimum(claim, nodes)
    if kind == "refutation":
        z, fall = claim["point"], claim["fall"]
        check_place(claim, z)
        gap = value_of(nodes, x)[0] - value_of(nodes, z)[1]
        refuse(fall <= 0 or gap < fall, f"f is not proved to fall by {show(fall)}")
        return f"x is not a minimum: at a point of this file f is lower by {show(fall)}, or more"
    eps, delta, at_pivot = claim["eps"], claim["delta"], "pivot" in claim
    weights = exact(claim["weights"]).lo  # the denominator cancels
    places = ([(claim["pivot"], v) for v in claim["directions"]] if at_pivot else
              [(y, None) for y in claim["points"]])
    parts = [(nodes, y, v, Fraction(a)) for (y, v), a in zip(places, weights) if a > 0]
    refuse(eps < 0 or delta < 0 or not parts or min(weights) < 0,
           "eps, delta and weights must not be negative, nor all weights 0")
    total, minus = sum(weights), [-a for a in x.lo]
    for y in {id(y): y for _, y, *_ in parts}.values():
        gap = y + Vec(minus, minus, x.den)
        refuse(longer(gap, delta), f"a point is farther than delta = {show(delta)} from x")
    bound, fixed = eps, units(len(minus), {})
    if kind == "near-kkt":
        check_bounds(claim, x)
        check_multipliers(claim)
        parts += [(claim["constraints"][row["constraint"]]["nodes"], claim["pivot"],
                   row["direction"], total * row["weight"]) for row in claim["rows"] if row["weight"]]
        fixed = exact([total * n for n in fractions(claim["normal"])])
    if kind == "plus":
        v = fractions(claim["subgradient"])
        gap, away = term_gap(claim["term"], fractions(x), v)
        refuse((gap and away >= delta) or away > delta, "x is too far from the domain of h")
        bound, fixed = eps - (gap / (delta - away) if gap else 0), exact([total * q for q in v])
    for soft in (True, False):  # exactly only where rounding leaves it open
        whole, seen = fixed, {}
        for f, y, v, weight in parts:
            start = ([Vec(y.lo, y.hi, y.den, soft)], {0: [y]})
            side = Side(f, y, v, *(seen.setdefault(id(f), start) if at_pivot else start))
            whole += side.gradient(len(f) - 1, exact([weight]))
        most = max(bound, 0) * total
        if bound >= 0 and not longer(whole, most):
            what = "limits of gradients at the pivot" if at_pivot else "gradients"
            return (f"x is ({show(eps)}, {show(delta)})-{STATIONARY[kind]} for the function"
                    f" in this file, of {len(minus)} variables: {len(parts)} {what} prove it")
        if longer(whole, most, surely=True): break
    raise Refused(f"the combination of the gradients is not proved to be at most {show(eps)}")
def show(q, digits=9):
    return f"{float(q):.{digits}g}" if abs(q) < 10**308 else "-" * (q < 0) + "more than 1e300"

# --- the function in words: which one exactly? ---------------------------------------------------
NAMES = {(((0,)), ((0, -1), (0, 1))): "abs", ((0,), ((0, 0), (0, 1))): "relu",
         ((), ((0, 0, 1),)): "square", ((0, 1), ((0, 0), (0, 1), (1, 0))): "ramp"}
def short(q): return show(q, 6)
def elided(values, most=3):
    values = list(map(short, values))
    return ", ".join(values if len(values) <= most else [*values[:most - 1], "...", values[-1]])
def terms(coefficients, names):
    """Return 2 a - b + 3 for numbers and names, the last of which may be empty."""
    out = ""
    for q, name in zip(coefficients, names):
        size = "" if abs(q) == 1 and name else short(abs(q))
        if q: out += (" - " if q < 0 else " + ") + f"{size} {name}".strip()
    return (out.removeprefix(" + ") if out[:2] != " -" else "-" + out[3:]) or "0"
def describe(nodes, name="f(x)"):
    """Return lines of a formula; rows of matrices are elided."""
    texts, notes = [], []
    uses = collections.Counter(a for node in nodes for a in node.of)
    for k, node in enumerate(nodes):
        u, c = texts[node.of[0]] if node.of else "x", node.columns
        match node.op:
            case "variable": text = "x"
            case "affine": text = describe_affine(node, k, u, notes)
            case "add": text = " + ".join(texts[a] for a in node.of).replace("+ -", "- ")
            case "multiply":
                text = f"({u})^2" if len(set(node.of)) < 2 else f"({u}) ({texts[node.of[1]]})"
            case "piecewise":
                rows, ends = node.tables[0], node.ends
                found = NAMES.get((tuple(ends), tuple(map(tuple, rows))))
                said = [terms(row, ["", "t", *(f"t^{j}" for j in range(2, 32))]) for row in rows]
                if not found: notes.append(f"p{k}(t) = {said[0]}" + "".join(
                    f" up to {short(t)}, then {then}" for t, then in zip(ends[:4], said[1:5]))
                    + (", ..." if len(ends) > 4 else ""))
                text = f"{found or f'p{k}'}({u})"
            case op: text = f"{op}{f' of {c}-rows' if node.size > 1 < c else ''}({u})"
        if (uses[k] > 1 and len(text) > 3) or len(text) > 300:
            notes.append(f"u{k} = {text}")
            text = f"u{k}"
        texts.append(text)
    return "\n  ".join([f"{name} = {texts[-1]}", *notes])
def describe_limits(claim):
    """Return lines about bounds, constraints and the term."""
    def within(low, name, up):
        return (f"{short(low)} <= " if finite(low) else "") + name + (
            f" <= {short(up)}" if finite(up) else "")
    ends = list(enumerate(zip(claim["lower"], claim["upper"])))
    some = [within(low, f"x[{k}]", up) for k, (low, up) in ends if finite(low) or finite(up)]
    if some: yield "where " + ", ".join(some[:4] + ["..."] * (len(some) > 4))
    for i, part in enumerate(claim["constraints"]):
        yield within(part["lower"], f"c{i}(x)", part["upper"]) + ", where "
        yield describe(part["nodes"], f"c{i}(x)")
    if "term" in claim: yield f"and h is {claim['term']['name']}"
def describe_affine(node, k, u, notes):
    bare, u = u, u if u.isalnum() or (u.endswith(")") and " " not in u) else f"({u})"
    rows = [[(p, Fraction(a, node.den)) for p, a in row] for row in node.table]
    offset, width = fractions(node.offset[0]) if node.offset else [], len(node.transposed)
    if len(rows) == 1 == node.columns:
        values, last = [a for _, a in rows[0]], offset or [Fraction(0)]
        if width == len(values) and len(set(values)) == 1:
            return terms([values[0], *last], [u if width == 1 else f"sum({bare})", ""])
        if len(values) <= 4:
            return terms([*values, *last], [*(f"{u}[{p}]" for p, _ in rows[0]), ""])
    plus = f" + b{k}" if any(offset) else ""
    if plus: notes.append(f"b{k} = ({elided(offset)})")
    if all(row == [(i, 1)] for i, row in enumerate(rows)): return f"{bare}{plus}"
    first = elided([a for _, a in rows[0]]) or "0"
    if len(rows[0]) not in (0, width):
        first += " at " + ", ".join([*(str(p) for p, _ in rows[0][:3]), "..."][:len(rows[0])])
    notes.append(f"A{k} is {len(rows)} x {width}, its first row {first}")
    return f"A{k} {u}{plus}"

# --- reading: Python's own errors about wrong types count as unreadable, too ----------------------
WHOLE = r"0x[0-9a-f]{1,250000}|[0-9]{1,4000}"
RATIONAL = re.compile(f"(-?(?:{WHOLE}))(?:/({WHOLE}))?")
FLOAT = re.compile(r"(-?)0x([01])(?:\.([0-9a-f]{1,16}))?p([+-][0-9]{1,4})")
def number(text, d=None):
    found = FLOAT.fullmatch(text)
    spend(50)
    if found:
        sign, lead, digits, exponent = found.groups(default="")
        need(abs(int(exponent)) <= 1100, "an exponent is beyond those of float64")
        top, power = int(sign + lead + digits, 16), int(exponent) - 4 * len(digits)
        return Fraction(top << max(power, 0), 1 << max(-power, 0))
    found = RATIONAL.fullmatch(text) or reject(text)
    spend(2, 2 * len(text), 2 * len(text))
    top, bottom = (int(part, 16 if "x" in part else 10) for part in found.groups(default="1"))
    return Fraction(top, bottom)
def many(read, whole=False):
    """Return a reader of lists; if `whole`, with one entry for each variable."""
    def listed(values, d=None):
        right = isinstance(values, list) and (not whole or d in (None, len(values)))
        need(right, "a list is missing, or has a wrong length")
        return [read(value, d) for value in values]
    return listed
numbers = many(number, whole=True)
def natural(value, d=None):
    need(type(value) is int and 0 < value <= MAX_SIZE, "a size is not positive, or too large")
    return value
def indices(values, size):
    places = isinstance(values, list) and all(type(k) is int and 0 <= k < size for k in values)
    need(places, "a list of places is wrong, or a place is out of range")
    return values
def read_node(data, k, nodes):
    node, op = Node(), data["op"]
    hold(6000)
    fields = set(data) - {"op", "of"} | (KINDS[op] & {"rows", "at", "offset"})
    node.op, node.of = op, indices(data.get("of", []), k)  # nodes refer to earlier ones only
    count = {"variable": 0, "multiply": 2, "add": max(1, len(node.of))}.get(op, 1)
    right = fields == KINDS[op] and len(node.of) == count and (op == "variable") == (k == 0)
    need(right and len({nodes[a].size for a in node.of}) <= 1, f"node {k} is malformed")
    node.size = nodes[node.of[0]].size if node.of else natural(data["size"])
    node.work, node.columns = node.size * (1 + len(node.of)), natural(data.get("columns", 1))
    node.affine = op in ("variable", "affine", "add") and all(nodes[a].affine for a in node.of)
    node.flat = op in ("variable", "affine", "add", "max")
    need(node.size % node.columns == 0, f"node {k} has rows of a wrong length")
    node.size //= node.columns
    if op == "piecewise": read_pieces(node, data)
    if op == "affine": read_matrix(node, data)
    node.kinked = any(node.bends) or any(nodes[a].kinked for a in node.of)
    return node
def read_pieces(node, data):
    breakpoints, rows = numbers(data["breakpoints"]), [numbers(p) for p in data["pieces"]]
    need(len(rows) == len(breakpoints) + 1 <= 1000, "the number of pieces is wrong")
    width = max(map(len, rows))
    spend(60 * len(rows) * (width + 1))
    node.bits = max(longest(q.as_integer_ratio()) for row in [breakpoints, *rows] for q in row)
    need(0 < width <= MAX_DEGREE and node.bits < 9999, "a polynomial is empty, or too long")
    rows = [p + [ZERO] * (width - len(p)) for p in rows]
    slopes = list(map(derived, rows))
    node.ends, node.tables = breakpoints, (rows, slopes, list(map(derived, slopes)))
    node.pieces, node.slopes = ([exact(c) for c in zip(*table)] for table in (rows, slopes))
    node.flat = not any(any(p[2:]) for p in rows)
    need(all(map(operator.lt, breakpoints, breakpoints[1:])), "breakpoints must ascend")
    jumps, node.bends = ([value_in([b - a for a, b in zip(*pair)], t) for t, *pair
                          in zip(breakpoints, table, table[1:])] for table in (rows, slopes))
    need(not any(jumps), "a piecewise function is not continuous")
def read_matrix(node, data):
    width = node.size
    need(data["width"] == width, "a matrix has another width than its argument")
    at = data["at"] if "at" in data else [list(range(width))] * len(data["rows"])
    rows = data["rows"] if "rows" in data else [["1"] * len(places) for places in at]
    node.size, count = natural(len(rows) * node.columns), width + len(at) + sum(map(len, at))
    node.work = node.columns * count
    hold(1100 * count)
    need(all(len(set(indices(p, width))) == len(p) for p in at), "a place comes twice in a row")
    need(len(rows) == len(at), "places and rows do not fit")
    whole = exact([a for row, places in zip(rows, at) for a in numbers(row, len(places))])
    hold(whole.room)
    entries, node.den, node.bits = iter(whole.lo), whole.den, whole.bits
    node.table = [[(k, a) for k, a in zip(p, entries) if a] for p in at]
    node.transposed = [[] for _ in range(width)]
    for i, row in enumerate(node.table):
        for k, a in row: node.transposed[k].append((i, a))
    if "offset" in data: node.offset = [exact(numbers(data["offset"], node.size))]
def record(data, fields, d):
    """Read an object that has these fields, and no others, each by its reader."""
    need(set(data) == set(fields), f"not the fields {', '.join(fields)}")
    return {name: read(data[name], d) for name, read in fields.items()}
def above(text, d=None): return INF if text is None else number(text)
def below(text, d=None): return -INF if text is None else number(text)
def vector(texts, d): return exact(numbers(texts, d))
def plain(value, d): return value
def flag(value, d):
    need(type(value) is bool, "not true or false")
    return value
def multiplier(data, d):
    return record(data, {"constraint": plain, "weight": number, "direction": vector}, d)
BALL = {"eps": number, "delta": number}
LIMITS = {"lower": many(below, whole=True), "upper": many(above, whole=True)}
POINTS = {"points": many(vector), "weights": many(number)}
NEAR = {"pivot": vector, "directions": many(vector), "weights": many(number)}
CLAIMS = {  # numbers of the claim, evidence, and what else the file has, or may have
    "near": (BALL, NEAR, ""),
    "goldstein": (BALL, POINTS, ""),
    "near-kkt": (BALL, NEAR | {"rows": many(multiplier), "normal": vector, "separation": vector},
                 "bounds constraints"),
    "plus": (BALL, POINTS | {"subgradient": vector}, "term"),
    "refutation": ({"fall": number}, {"point": vector}, "bounds constraints"),
    "minimum": (BALL | {"gap": number, "radius": above, "within": above, "scope": plain,
                        "strict": flag, "unique": flag},
                {"pivot": vector, "reach": above, "growth": number, "convexity": above,
                 "supports": many(plain), "sharp": many(plain)}, ""),
}
TERMS = {
    "l1_box": LIMITS | {"weight": numbers}, "simplex": {"total": number},
    "group_l2": {"groups": many(indices), "weight": many(number)},
    "nuclear": {"weight": number, "rows": natural, "columns": natural, "left": many(many(number)),
                "right": many(many(number))},
}
def read(path):
    """Return the claim with its evidence, and the nodes of the function."""
    with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
        need(stat.S_ISREG(os.fstat(file.fileno()).st_mode), "not a regular file")
        raw = file.read(MAX_BYTES + 1)
    if raw[:2] == b"\x1f\x8b": raw = zlib.decompressobj(31).decompress(raw, MAX_BYTES + 1)
    need(len(raw) <= MAX_BYTES, f"more than {MAX_BYTES} bytes")
    hold(24 * len(raw) + 1200 * sum(map(raw.count, (b",", b"[", b"{"))))  # of what is read
    data = json.loads(raw.decode("utf-8"), object_pairs_hook=distinct, parse_constant=reject,
                      parse_float=reject, parse_int=lambda t: int(t) if len(t) < 16 else reject(t))
    version, kind = data["version"], data["claim"].pop("kind")
    need(data["schema"] == "goldstein-proof" and type(version) is int and version in (1, 2),
         "not a proof file, or another schema or version")
    need(version == 2 or kind in ("near", "goldstein"), "version 1 has no such claim")
    stated, shown, more = CLAIMS[kind]
    if kind == "minimum" and "cases" in data["evidence"]:
        stated, shown = stated | {"global_gap": number}, shown | {"cases": plain}
    fields = {"schema", "version", "claim", "x", "evidence", "function", *more.split()}
    need(fields - {"bounds", "constraints"} <= set(data) <= fields, "not the fields of a proof file")
    nodes = read_function(data["function"])
    d = nodes[0].size
    claim = {"kind": kind, "x": vector(data["x"], d), "lower": [-INF] * d, "upper": [INF] * d}
    claim |= record(data["claim"], stated, d) | record(data["evidence"], shown, d)
    if "bounds" in data: claim |= record(data["bounds"], LIMITS, d)
    parts = claim["constraints"] = many(read_constraint)(data.get("constraints", []), d)
    indices([part["constraint"] for part in claim.get("rows", [])], len(parts))
    vectors = claim.get("directions", claim.get("points", []))
    need(len(vectors) == len(claim.get("weights", [])), "one weight per vector is needed")
    if kind == "plus": claim["term"] = read_term(data["term"], d)
    if kind == "minimum": claim["held"] = read_supports(claim, nodes)
    if "cases" in claim: read_cases(claim, nodes)
    return claim, nodes
def read_cases(claim, nodes):
    """Read a tree; it has lines for all entries with kinks. The lower side of a split is the last."""
    claim["lines"] = {k: {i: Line() for i in range(node.size)} for k, node in enumerate(nodes)
                      if any(node.bends)}
    size = sum(map(len, claim["lines"].values()))
    def slopes(values, d): return numbers(values, size)
    def case(data, d):
        (parts,) = indices([data["parts"]], 3)
        split = {"entry": plain, "t": number} if parts == 2 else {}
        found = record(data, {"point": numbers, "slopes": slopes, "parts": plain} | split, d)
        if not split: return found | {"sides": [Span(-INF, INF)] * parts}
        indices([found["entry"]], size)
        return found | {"sides": [Span(found["t"], INF), Span(-INF, found["t"])]}
    fields = {"growth": number, "tree": many(case)}
    claim["cases"] = record(claim["cases"], fields, nodes[0].size)
def read_supports(claim, nodes):
    """Return the substitutes for entries, by node and row."""
    need(claim["scope"] in ("ball", "global"), "this scope of a minimum is outside this checker")
    held = {}
    def entry(part, names, *places):
        fields = dict.fromkeys(("node", "row", *places), plain) | dict.fromkeys(names, number)
        found = record(part, fields, None)
        (k,) = indices([found["node"]], len(nodes))
        (i,) = indices([found["row"]], nodes[k].size)
        at, row = [found[name] for name in places], nodes[k].row(i)
        need(nodes[k].op in ("piecewise", "max", "norm2") and min(indices(at, row.stop)) in row,
             "a support is of a node that has none, or of another row")
        return found, nodes[k].op, held.setdefault(k, {}).setdefault(i, Held())
    for part in claim["supports"]:
        found, op, own = entry(part, "stp" if "t" in part else "s", "place")
        need((op == "piecewise") == ("t" in part) and found["place"] not in own.parts,
             "a support is none, or comes twice")
        own.parts[found["place"]] = found.get("t", ZERO), found["s"], found.get("p", ZERO)
    for part in claim["sharp"]:
        found, _, own = entry(part, ("sigma", "bend"), "one", "other")
        need(own.parts and found["sigma"] >= 0, "a sharpness is none")
        own.sharp.append([found[name] for name in ("one", "other", "sigma", "bend")])
    return held
def read_function(data):
    nodes = []
    for k, node in enumerate(data): nodes.append(read_node(node, k, nodes))
    need(nodes and nodes[-1].size == 1, "the last node must be one number")
    return nodes
def read_constraint(data, d):
    part = record(data, {"function": plain, "lower": below, "upper": above}, d)
    part["nodes"] = read_function(data["function"])
    need(part["nodes"][0].size == d, "a constraint has another number of variables")
    return part
def read_term(data, d):
    name = data.pop("name")
    term = {"name": name} | record(data, TERMS[name], d)
    if name == "group_l2":
        places = [i for group in term["groups"] for i in group]
        need(len(set(places)) == len(places), "groups overlap")
        need(len(term["weight"]) == len(term["groups"]), "one weight per group is needed")
    if name == "nuclear":
        sides = term["left"] + term["right"]
        need(term["rows"] * term["columns"] == d and len(term["left"]) == term["rows"]
             and len(sides) == term["rows"] + term["columns"] and len(set(map(len, sides))) == 1,
             "a matrix has a wrong shape")
    weights = term.get("weight", [])
    need(min([weights] if name == "nuclear" else weights, default=0) >= 0,
         "a weight is negative: the term is not convex")
    return term
def distinct(pairs):
    need(len(dict(pairs)) == len(pairs), "a key comes twice")
    return dict(pairs)
def reject(text): raise Unreadable(f"not a number of a proof file: {text[:40]}")
def main(arguments=None):
    global spent, kept
    spent, kept, arguments = 0.0, 0, sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"): return print(__doc__) or 2
    try:
        claim, nodes = read(arguments[0])
        said, code = f"TRUE: {check(claim, nodes)}", 0
    except Refused as why: said, code = f"FALSE: {why}", 1
    except Exception as why:  # a file from a stranger: whatever is wrong with it, it proves nothing
        name = "" if isinstance(why, Unreadable) else f"{type(why).__name__}: "
        said, code = f"UNREADABLE: {name}{str(why)[:200]}", 2
    print(f"{said}.")
    if code < 2: print("\n".join([describe(nodes), *describe_limits(claim)]))
    return code
if __name__ == "__main__":
    sys.exit(main())
