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
           cases, with such a function for each, and every point is in one of them. Among feasible
           points: of f plus penalties, which are 0 there, and not negative elsewhere.
"""

# ruff: noqa: E401, E501, E701, I001 (to be read in one sitting: a tight layout)
# fmt: off
import collections, copy, decimal, functools, itertools, json, math, operator, os, re, sys, zlib
from fractions import Fraction

MAX_BYTES, MAX_SIZE, MAX_DEGREE = 2**26, 2**22, 32  # of the file; entries of a node; polynomials
MEMORY, BUDGET = 2**34, 6e11  # bits that are in use at one time; about nanoseconds
PRECISION = 320  # bits of an enclosure; exp, log and roots are bounded by multiples of 2^-Q
LONG, Q = 2 * PRECISION, PRECISION + 64  # longer denominators are rounded, where that is allowed
KINKED, SIDE = ("piecewise", "max", "norm2"), "on which side of a kink the point lies"
class Unreadable(Exception): """The file is not a proof file, or is too much work."""
class Refused(Exception): """The evidence does not prove the claim."""
INF, ZERO, spent = math.inf, Fraction(0), [0]  # about nanoseconds
class Room:
    """What holds memory, which is bounded, and gives it back in the end."""
    kept = room = 0  # bits, of all and of this
    def hold(self, bits):
        self.room += bits
        Room.kept += bits
        need(Room.kept <= MEMORY, "checking it takes too much memory")
    def __del__(self): Room.kept -= self.room
def spend(count, bits=64, other=64):  # bounds the time: products of numbers of so many bits
    spent[0] += count * (100 + (bits >> 5) * (other >> 5))
    need(spent[0] <= BUDGET, "checking it takes too long")
def need(condition, what, error=Unreadable):
    if not condition: raise error(what)
def refuse(condition, why): need(not condition, why, Refused)

# --- vectors of rationals, or of intervals -------------------------------------------------------
class Vec(Room):
    """Numbers in [lo/den, hi/den]; `lo is hi` where all are exact. Others are rounded where long."""
    def __init__(self, lo, hi, den):
        long = den.bit_length()
        if lo is not hi and long > LONG:
            top = max(longest(lo), longest(hi))
            k = PRECISION + max(0, long - top)
            spend(5 * len(lo), long, k + top - long + 64)
            lo, hi, den = [(a << k) // den for a in lo], [-((-b << k) // den) for b in hi], 1 << k
        self.lo, self.hi, self.den, self.exact = lo, hi, den, lo is hi
        self.bits = 1 + (longest(lo) if self.exact else max(longest(lo), longest(hi)))
        spend(2 * len(lo) + 50, self.bits)
        self.hold((2 - self.exact) * len(lo) * (500 + self.bits) + den.bit_length() + 4000)
    def each(self, function, den=1):
        """Return `function` of both ends, a list, over `den` times the denominator."""
        lo = function(self.lo, self.hi)
        return Vec(lo, lo if self.exact else function(self.hi, self.lo), self.den * den)
    def take(self, places): return self.each(lambda ends, _: [ends[i] for i in places])
    def __mul__(self, other):
        exactly = self.exact and other.exact
        spend((1 if exactly else 10) * len(self.lo), self.bits, other.bits)
        spend(1, self.den.bit_length(), other.den.bit_length())
        sides = [(v.lo,) if exactly else (v.lo, v.hi) for v in (self, other)]
        ends = [list(map(operator.mul, a, b)) for a, b in itertools.product(*sides)]
        lo = ends[0] if exactly else list(map(min, *ends))
        return Vec(lo, lo if exactly else list(map(max, *ends)), self.den * other.den)
    def __add__(self, other):
        den, exactly = math.lcm(self.den, other.den), self.exact and other.exact
        p, q = den // self.den, den // other.den
        spend(4 * len(self.lo) + 5, max(self.bits, other.bits), max(p, q).bit_length())
        def sums(a, b): return [x * p + y * q for x, y in zip(a, b, strict=True)]
        lo = sums(self.lo, other.lo)
        return Vec(lo, lo if exactly else sums(self.hi, other.hi), den)
def longest(ends): return max(map(int.bit_length, ends), default=0)
def bits_of(q): return longest(q.as_integer_ratio())
def exact(numbers):
    den = 1
    for q in numbers:
        spend(5, den.bit_length(), bits_of(q))
        den = math.lcm(den, q.denominator)
        need(len(numbers) * den.bit_length() <= MEMORY >> 1, "denominators are too long")
    for q in numbers: spend(5, den.bit_length(), bits_of(q))
    top = [q.numerator * (den // q.denominator) for q in numbers]
    return Vec(top, top, den)
def longer(v, bound):
    """Say whether vectors in v may be longer than a rational bound >= 0."""
    ends = [max(-a, b) for a, b in zip(v.lo, v.hi)]
    spend(len(ends) + 10, v.bits + bits_of(bound), v.bits + v.den.bit_length() + bits_of(bound))
    return sum([a * a for a in ends]) * bound.denominator**2 > (bound.numerator * v.den) ** 2

# --- polynomials in t: lists of vectors ----------------------------------------------------------
def add_series(a, b): return [p + q if p and q else p or q for p, q in itertools.zip_longest(a, b)]
def multiply_series(a, b):
    refuse(len(a) + len(b) > MAX_DEGREE + 2, "along a direction a degree is too high")
    return functools.reduce(add_series, ([None] * i + [p * q for q in b] for i, p in enumerate(a)))
def horner(tables, piece, u):
    """Evaluate the polynomial of its piece at every entry of a series."""
    out = [tables[-1].take(piece)]
    for table in tables[-2::-1]: out = add_series(multiply_series(out, u), [table.take(piece)])
    return out

# --- the function --------------------------------------------------------------------------------
class Node(Room):
    """One step, `op` of earlier nodes `of`. The argument may be a table of so many `columns`. An
    affine node has rows of pairs (place, integer) over `den`. `work` is what one pass costs."""
    offset = rows = at = None
    bends, den, columns = (), 1, 1
    def apply(self, v, rows):
        spend(2 * (2 - v.exact) * self.work, v.bits, self.bits)
        return v.each(lambda up, down: [sum([a * (up if a > 0 else down)[k * self.columns + j] for k, a in row])
                                        for row in rows for j in range(self.columns)], self.den)
    def forward(self, args, piece):
        """Return the node's series from those of its arguments."""
        u = args[0]
        match self.op:
            case "affine": return add_series([self.apply(c, self.table) for c in u], self.offset or ())
            case "add": return functools.reduce(add_series, args)
            case "multiply": return multiply_series(u, args[1])
            case "piecewise": return horner(self.pieces, piece, u)
            case "max": return [c.take(piece) for c in u]
        refuse(len(u) > 1, f"{self.op} is not a polynomial along a direction")
        return [rounded([smooth_row(self.op, spans(row))[0] for row in self.split(u[0])])]
    def backward(self, g, args, piece):
        """Return the derivatives in the arguments, g being that in the node."""
        match self.op:
            case "affine": return [self.apply(g, self.transposed)]
            case "add": return [g] * len(self.of)
            case "piecewise": return [g * horner(self.slopes, piece, args)[0]]
            case "multiply": return [g * args[1], g * args[0]]
        spread = g.take([i for i in range(self.size) for _ in range(self.columns)])
        if self.op == "max":
            chosen = [int(i == best) for k, best in enumerate(piece) for i in self.row(k)]
            return [spread * Vec(chosen, chosen, 1)]
        slopes = [smooth_row(self.op, spans(way))[1] if way else [NIL] * self.columns
                  for way in piece or self.split(args[0])]  # where norm2 is constantly 0: none
        return [spread * rounded([s for row in slopes for s in row])]
    def links(self, i, piece=None):
        """Return what an entry is made of: argument, place, and its factor (times den) in a sum."""
        row, j = divmod(i, self.columns)
        if self.op == "max": return [(0, piece[i], 1)]
        if self.op == "affine": return [(0, k * self.columns + j, a) for k, a in self.table[row]]
        if len(self.of) > 1: return [(a, i, 1) for a in range(len(self.of))]
        return [(0, j, 1) for j in self.row(i)]
    def row(self, i): return range(i * self.columns, (i + 1) * self.columns)  # of the argument
    def split(self, v): return [v.take(self.row(i)) for i in range(self.size)]

class Side:
    """The function just beside y: on y + t v for all small t > 0, or at y itself if v is None.
    Which piece rules is decided exactly, entry by entry. An entry that is on a kink must leave it
    along v, unless it is constant here (`loose`): then the kink is never crossed. `felt` are the
    nodes that v takes to one side, and what depends on them. `values` at y are the same for all v;
    for values alone y is `fixed`: all is constant, and on a kink all pieces have the same value.

    On the line an argument of a kink is a polynomial in t, whose coefficients are numbers, or
    enclosed where constants are irrational. For small t the first one that is not 0 decides. An
    enclosure decides only if 0 is outside (for max: if it is apart from the others, for norm2: if
    some entry is not 0): all before it are exactly 0. If not, the line is refused: the next
    coefficient decides nothing."""
    def __init__(self, nodes, y, v, values, fixed=False):
        self.nodes, self.v, self.values = nodes, v, values
        self.pieces, self.loose, self.felt = {}, collections.defaultdict(set), set()
        self.masks, self.paths = {0: [fixed] * len(y.lo)}, {0: [y, v]}
        spend(20 * len(nodes))
        for k, node in enumerate(nodes[1:], 1):
            if not self.felt.isdisjoint(node.of): self.felt.add(k)
            if node.op in KINKED:
                rule, arg = getattr(self, node.op), node.of[0]
                self.pieces[k] = [rule(k, node, arg, values[arg], i) for i in range(node.size)]
            if k == len(values):
                values += node.forward([[values[a]] for a in node.of], self.pieces.get(k))
    def derived(self, known, k, rule):
        """Return what is known of node k, derived from that of all it depends on."""
        if k not in known:
            seen = {k}
            for a in filter(seen.__contains__, range(k, 0, -1)): seen.update(self.nodes[a].of)
            spend(k + sum(10 + len(self.nodes[a].of) for a in seen))
            for b in sorted(seen.difference(known)): known[b] = rule(b, [known[a] for a in self.nodes[b].of])
        return known[k]
    def steps(self, k, places):
        """Return the coefficients of t, t^2, ... of node k, unless these entries are constant."""
        if self.v is None or all(self.still(k)[i] for i in places): return []
        return self.derived(self.paths, k, lambda b, args: self.nodes[b].forward(args, self.pieces.get(b)))[1:]
    def mask(self, k, args):
        node, piece, values = self.nodes[k], self.pieces.get(k), [self.values[a] for a in self.nodes[k].of]
        spend(2 * node.work)
        def still(i):
            if node.op == "multiply" and any(m[i] and not v.lo[i] and not v.hi[i] for m, v in zip(args, values)):
                return True  # 0 times whatever moves
            if node.op == "piecewise" and i not in self.loose[k] and not any(node.tables[1][piece[i]]): return True
            return all(args[a][j] for a, j, _ in node.links(i, piece))  # what is tied is equal, or constant
        return list(map(still, range(node.size)))
    def still(self, k): return self.derived(self.masks, k, self.mask)  # which entries are constant
    def vanishes(self, k, entries):
        """Prove that a sum of entries of node k is constant: it is affine here, with derivative 0."""
        if not self.nodes[k].flat or k in self.felt: return False
        top = [entries.get(i, 0) for i in range(len(self.values[k].lo))]
        found = self.gradient(k, Vec(top, top, 1))
        return not any(found.lo) and not any(found.hi)
    def require_constant(self, k, places):
        right = all(self.still(k)[i] or self.vanishes(k, {i: 1}) for i in places)
        refuse(not right, "a point or direction stays on a kink, where the function need not be differentiable")
    def leave(self, k, arg, places, kinked=True):
        """Return the first coefficient along v that is not 0 at these places of the argument."""
        for c in self.steps(arg, places):
            found = c.take(places)
            if any(a > 0 or b < 0 for a, b in zip(found.lo, found.hi)):
                self.felt.add(k)
                return found
            require_exact(c, places)
        if kinked: self.require_constant(arg, places)
    def piecewise(self, k, node, arg, u, i):
        spend(4 * (1 + len(node.ends)), u.bits + u.den.bit_length(), node.bits)
        below = sum([u.lo[i] * t.denominator > t.numerator * u.den for t in node.ends])
        up_to = sum([u.hi[i] * t.denominator >= t.numerator * u.den for t in node.ends])
        if below == up_to: return below
        require_exact(u, [i], SIDE)
        lead = self.leave(k, arg, [i], node.bends[below])
        if not lead: self.loose[k].add(i)  # a smooth breakpoint may be kept
        return below + bool(lead and lead.lo[0] > 0)
    def max(self, k, node, arg, u, row):
        tied = at_y = largest(u, node.row(row), SIDE)
        for c in self.steps(arg, tied) if tied[1:] else (): tied = largest(c, tied)
        if tied != at_y: self.felt.add(k)
        best, *same = tied
        if same and not (self.nodes[arg].affine and all(self.vanishes(arg, {best: 1, i: -1}) for i in same)):
            self.require_constant(arg, tied)
        return best
    def norm2(self, k, node, arg, u, row):
        """Return the direction of a row; where it is 0, that in which it leaves, if it does."""
        places, way = node.row(row), u.take(node.row(row))
        if all(a <= 0 <= b for a, b in zip(way.lo, way.hi)):
            require_exact(u, places, SIDE)
            way = self.leave(k, arg, places)
        return way and Vec(way.lo, way.hi, 1)  # however small it is
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
def largest(v, places, *what):
    """Return the places of the largest entries."""
    spend(10 + 4 * len(places), v.bits)
    floor = max(v.lo[i] for i in places)
    tied = [i for i in places if v.hi[i] >= floor]
    if tied[1:]: require_exact(v, tied, *what)
    return tied
def require_exact(v, places, what="to which side of a kink a direction leads"):
    refuse(any(v.lo[i] != v.hi[i] for i in places), f"{what} is not decided")

# --- what holds at a point: values, and derivatives of all subgradients ---------------------------
def fractions(v): return [Fraction(a, v.den) for a in v.lo]
def spans(v): return [Span(Fraction(a, v.den), Fraction(b, v.den)) for a, b in zip(v.lo, v.hi)]
def rounded(row):
    """Return intervals as a vector over 2^Q."""
    lo, hi = ([(grid(u[a], a == 1) * 2**Q).numerator for u in row] for a in (0, 1))
    return Vec(lo, hi, 1 << Q)
def value_of(nodes, y):
    """Enclose f(y): exactly, where it is rational."""
    return spans(Side(nodes, y, None, [y], fixed=True).values[-1])[0]
def slopes_along(nodes, y, v):
    """Enclose <g, v> for all Clarke subgradients g of f at y.
    They are convex combinations of limits of gradients at points that tend to y and are on no kink.
    There the chain rule holds: a kink has one of the slopes it has next to y, a maximum the slope
    of one of its largest entries, the norm of a vector that tends to 0 some unit vector."""
    return Pass(nodes, fractions(y), ZERO, {}, along=fractions(v)).slopes[-1][0].get(0, NIL)

# --- bounds, constraints and terms ----------------------------------------------------------------
def check_near(claim, points):
    """Prove that points are within delta of x."""
    for y in dict.fromkeys(points):
        gap = exact(list(map(operator.sub, fractions(y), fractions(claim["x"]))))
        refuse(longer(gap, claim["delta"]), f"a point, or the pivot, is farther than delta = {show(claim['delta'])} from x")
def check_place(claim, y, slack=ZERO, bounds_only=False):
    """Prove that y is inside bounds, and constraints up to a slack; return enclosures and limits."""
    found = [(point(q), *ends) for q, *ends in zip(fractions(y), claim["lower"], claim["upper"])]
    if not bounds_only: found += [(value_of(f, y), low, up) for f, low, up in map(dict.values, claim["constraints"])]
    for k, ((lo, hi), low, up) in enumerate(found, -len(y.lo)):
        name, free = (f"constraint {k}", slack) if k >= 0 else ("one of the bounds", ZERO)
        refuse(not (low <= lo + free and hi - free <= up), f"{name} is not proved to hold at a point")
    return found
def check_multipliers(claim):
    """Prove that multipliers and normal belong to limits that y is at, and do not cancel."""
    y, normal, parts, used = claim["pivot"], fractions(claim["normal"]), claim["constraints"], {}
    for row in claim["rows"]:
        i, sign = row["constraint"], (row["weight"] > 0) - (row["weight"] < 0)
        if sign: refuse(used.setdefault(i, sign) != sign, f"weights of both signs on constraint {i}")
    at_y = check_place(claim, y)
    for (u, low, up), sign in zip(at_y, [*normal, *(used.get(i, 0) for i in range(len(parts)))]):
        refuse(sign and u != point(up if sign > 0 else low), "the normal, or a multiplier, is of what is not at its limit")
    lines = [low == up for _, low, up in at_y]
    curved = {i for i in used if not (lines[len(normal) + i] and parts[i]["function"][-1].affine)}
    v, cancel = claim["separation"], "constraints in use are not proved to rise along the separation"
    refuse(any(n * q < 0 or (q and line) for q, n, line in zip(fractions(v), normal, lines) if curved), cancel)
    for i, (part, line) in enumerate(zip(parts if curved else [], lines[len(normal):])):
        lo, hi = slopes_along(part["function"], y, v)
        refuse(min(used[i] * lo, used[i] * hi) <= 0 if i in curved else line and (lo or hi), cancel)
def term_gap(term, x, v):
    """Bound h(x) + h*(v) - <v, x> from above; also how far from x that is shown."""
    name, away, outside = term["name"], ZERO, "v is outside the domain of the conjugate of h"
    gap = -sum(map(operator.mul, v, x))
    if name == "l1_box":  # per entry, v t - w |t| is largest at a limit or next to 0
        for a, b, w, low, up in zip(x, v, term["weight"], term["lower"], term["upper"]):
            refuse(not low <= a <= up, "x is outside the bounds of h")
            most = max(times(b - w if t > 0 else b + w, t) for t in (low, up, min(max(low, ZERO), up)))
            refuse(most == INF, outside)
            gap += w * abs(a) + most
    elif name == "simplex":
        missing, largest = term["total"] - sum(x), max(range(len(x)), key=x.__getitem__)
        refuse(min(x) < 0 or x[largest] + missing < 0, "x is outside the simplex, or too far from it")
        gap, away = gap + max(v) * term["total"] - v[largest] * missing, abs(missing)
    elif name == "group_l2":
        free = set(range(len(x))).difference(*term["groups"])
        for group, w in [*zip(term["groups"], term["weight"]), (free, ZERO)]:
            refuse(sum(v[i] ** 2 for i in group) > w * w, outside)
            gap += w * root(sum((x[i] ** 2 for i in group), ZERO), True)
    else:  # |X| <= (|L|^2 + |R|^2)/2 + |X - LR'|, and that is at most sqrt(rank) times its length
        left, right, w, m, n = (term[a] for a in ("left", "right", "weight", "rows", "columns"))
        spend(m * n * (m + n + len(left[0])), 400, 400)
        squares = Curvature(n)
        squares.rows = [[-sum(map(operator.mul, v[i::n], v[j::n])) for j in range(n)] for i in range(n)]
        refuse(not squares.at_least(-w * w), outside)
        rest = sum((a - sum(map(operator.mul, *pair))) ** 2 for a, pair in zip(x, itertools.product(left, right)))
        sizes = sum(a * a for row in left + right for a in row) / 2
        gap += w * (sizes + root(min(m, n) * rest, True))
    return max(gap, ZERO), away

# --- intervals, the ends of which may be infinite -------------------------------------------------
def finite(a): return isinstance(a, Fraction)
def plus(a, b): return a + b if finite(a) and finite(b) else b if finite(a) else a
def times(a, b):
    if not a or not b: return ZERO
    return a * b if finite(a) and finite(b) else INF if (a > 0) == (b > 0) else -INF
def grid(q, up, k=Q):
    """Round to a multiple of 2^-k."""
    return Fraction(-((-q.numerator << k) // q.denominator) if up else (q.numerator << k) // q.denominator, 1 << k)
def root(q, up):
    if not finite(q): return INF
    low = math.isqrt((q.numerator << 2 * Q) // q.denominator)
    return Fraction(low + (up and low * low * q.denominator != q.numerator << 2 * Q), 1 << Q)
def trim(a, up):
    """Round a number where it is long."""
    bits = a.denominator.bit_length() if finite(a) else 0
    spend(40, bits, bits)
    return a if bits <= LONG else grid(a, up, PRECISION + max(0, bits - a.numerator.bit_length()))
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
    def bounded(self): return all(map(finite, self))
    def mid(self): return (self[0] + self[1]) / 2
    def radius(self): return (self[1] - self[0]) / 2
    def square(self):
        part = Span(max(self[0], -self[1], ZERO), self.size())
        return part * part
def point(q): return Span(q, q)
NIL, ONE, UNIT = point(ZERO), point(Fraction(1)), Span(Fraction(-1), Fraction(1))
def union(parts): return functools.reduce(operator.or_, parts)
def row_length(row):
    """Enclose the norm of an interval vector."""
    low, high = sum((u.square() for u in row), NIL)
    return Span(root(low, False), root(high, True))
def length(row): return row_length(row.values())[1]
def hull_of(rows): return {k: union(row.get(k, NIL) for row in rows) for k in set().union(*rows)}
def combine(terms):
    """Return sum factor * row for interval vectors."""
    out = {}
    for factor, row in terms:
        for k, u in row.items(): out[k] = out[k] + factor * u if k in out else factor * u
    return {k: u for k, u in out.items() if u != NIL}
def poly_range(p, u):
    """Enclose a polynomial on an interval by Bernstein coefficients: exact up to degree 1."""
    while len(p) > 1 and not p[-1]: p = p[:-1]
    lo, hi = u
    if len(p) <= 2: return sum((point(c) * u for c in p[1:]), point(p[0]))
    if not u.bounded():
        if len(p) > 3: return Span(-INF, INF)
        return Span(vertex(p, u), INF) if p[2] > 0 else Span(-INF, vertex(p, u))
    n, wide = len(p) - 1, hi - lo
    spend(40 * n * n, *(part.bit_length() + 200 for part in wide.as_integer_ratio()))
    at = [sum((p[j] * math.comb(j, i) * lo ** (j - i) for j in range(i, n + 1)), ZERO) * wide**i for i in range(n + 1)]
    values = [sum(Fraction(math.comb(i, j), math.comb(n, j)) * at[j] for j in range(i + 1)) for i in range(n + 1)]
    return Span(trim(min(values), False), trim(max(values), True))
def vertex(p, u): return value_in(p, min(max(-p[1] / (2 * p[2]), u[0]), u[1]))  # of a parabola on u
def derived(p): return [j * c for j, c in enumerate(p)][1:] or [ZERO]
def value_in(p, t):
    spend(20 * len(p), (bits := max(map(bits_of, p))) + len(p) * bits_of(t), bits + bits_of(t))
    return functools.reduce(lambda total, c: total * t + c, reversed(p))
def in_pieces(node, rows, u):
    """Return what belongs to every piece that an interval meets, with the part of it there."""
    spend(100 * len(rows))
    ends = itertools.pairwise([-INF, *node.ends, INF])
    parts = [(p, u & Span(*end)) for p, end in zip(rows, ends)]
    return [(p, part) for p, part in parts if part[0] <= part[1]]
def over_pieces(node, rows, u, closed=False):
    """Enclose polynomials, one per piece, on the parts of an interval that have more than a point."""
    return union(poly_range(p, v) for p, v in in_pieces(node, rows, u) if v[0] < v[1] or closed or u[0] == u[1])
DIGITS = [decimal.Context(130, way, -10**9, 10**9) for way in (decimal.ROUND_FLOOR, decimal.ROUND_CEILING)]
def decimal_bound(name, q, up):
    """Bound exp or ln of a rational, both of which rise. `decimal` has them correctly rounded to
    130 digits; its division is rounded to the side that is asked for."""
    spend(20, 2 * Q + bits_of(q), 2 * Q)
    found = Fraction(getattr(DIGITS[up], name)(DIGITS[up].divide(*map(decimal.Decimal, q.as_integer_ratio()))))
    return grid(found + (1 if up else -1) * abs(found) / 10**129, up)
def exponential(q, up):  # of q <= 0, or infinite; less than 2^-Q is between 0 and that
    return decimal_bound("exp", max(q, -1024), up) if finite(q) else INF if q > 0 else ZERO
def logarithm(q, up): return decimal_bound("ln", q, up) if finite(q) else INF
def inverse(u): return Span(*(1 / q if finite(q) else ZERO for q in u[::-1]))  # of u > 0
def smooth_row(op, row):
    """Enclose norm2, log or logsumexp of a row of intervals, its slopes, and how it bends."""
    if op == "norm2":
        size = row_length(row)
        if not size[0] > 0: return size, [UNIT] * len(row), NIL
        return size, [u * inverse(size) & UNIT for u in row], Span(ZERO, inverse(size)[1])
    if op == "log":
        refuse(not row[0][0] > 0, "a logarithm is not proved to have an argument that is positive")
        slope = inverse(row[0])
        return Span(logarithm(row[0][0], False), logarithm(row[0][1], True)), [slope], slope * slope * point(-ONE[0])
    top = max((q for u in row for q in u if finite(q)), default=ZERO)
    low, high = ([exponential(plus(u[a], -top), a == 1) for u in row] for a in (0, 1))
    least, most, endless = sum(low), sum(filter(finite, high), ZERO), high.count(INF)
    value = Span(max([u[0] for u in row] + [top + logarithm(q, False) for q in [least] if q]),
                 INF if endless else top + logarithm(most, True))
    def share(a, rest): return ONE[0] if not finite(a) else a / (a + rest) if a else ZERO
    slopes = [Span(ZERO if endless > (b == INF) else share(a, most - (b if finite(b) else 0)), share(b, least - a))
              for a, b in zip(low, high)]
    return value, slopes, Span(ZERO, Fraction(1, 2))

# --- curvature: f - z'Mz/2 is convex on a ball around y, or everywhere -----------------------------
# One entry on a region: its value; how it depends on entries (argument, place, slope); by how much it
# bends in them (interval, place) or (interval, place, place); which `signs` of its adjoint kinks inside
# ask for. Its gradient is in the hull of those of `ways`, if there are any, to depend on entries. With
# a substitute that is `held`, `back` and bends are those of the function below f.
Entry = collections.namedtuple("Entry", "value back bends signs ways held", defaults=[(), (), (), None])
class Pass(Room):
    """Intervals of the values and gradients of every entry on |z - y| <= r, inside a box if there is
    one; r may be infinite. `held` are substitutes below some entries. Values are those with or
    without them; where `only` is set they take the place of the entries. With `along`, derivatives
    along this vector of all subgradients at y."""
    def __init__(self, nodes, y, r, held, only=False, along=None, box=None):
        self.nodes, self.r, self.held, self.only, self.along, self.box = nodes, r, held, only, along, box
        self.here = Pass(nodes, y, ZERO, held) if r else None
        start = [(point(q) + Span(-r, r)) & wall for q, wall in zip(y, box or [Span(-INF, INF)] * len(y))]
        self.sides = [(u + point(-q)).size() for u, q in zip(start, y)]
        self.values, self.entries = [start], [[]]
        self.slopes = [[{0: point(q)} for q in along] if along else [{k: ONE} for k in range(len(y))]]
        for k, node in enumerate(nodes[1:], 1):
            rule, args = getattr(self, node.op), [self.values[a] for a in node.of]
            for rows in (self.entries, self.values, self.slopes): rows.append([])
            for i in range(node.size):
                entry = rule(node, i, *args)
                if i in held.get(k, ()): entry = held[k][i].instead(self, node, entry)
                g, u = self.gradient(node, entry), entry.value
                if r: u &= self.here.values[k][i] + UNIT * point(self.reach(g))
                for rows, found in zip((self.entries, self.values, self.slopes), (entry, u, g)): rows[k].append(found)
                spend(100 + len(g))
                self.hold(14000 + 2500 * len(g))
    def reach(self, g):
        """Bound how far an entry with these gradients moves from its value at y."""
        steps = [times(u.size(), self.sides[k]) for k, u in g.items() if self.box]
        return min(times(self.r, length(g)), functools.reduce(plus, steps, ZERO) if self.box else INF)
    def gradient(self, node, entry):
        """Enclose the gradients of an entry, those of its substitute included."""
        rows = [combine((s, self.slopes[node.of[a]][i]) for a, i, s in way) for way in entry.ways or [entry.back]]
        if self.along and node.op == "norm2":
            far = row_length([self.slopes[node.of[0]][i].get(0, NIL) for _, i, _ in entry.back])[1]
            return {0: rows[0].get(0, NIL) & Span(-far, far)}
        return hull_of(rows) if rows[1:] else rows[0]
    def affine(self, node, i, *args):
        links = [(a, p, point(Fraction(q, node.den))) for a, p, q in node.links(i)]
        shift = Fraction(node.offset[0].lo[i], node.offset[0].den) if node.offset else ZERO
        return Entry(sum((s * args[a][p] for a, p, s in links), point(shift)), links)
    add = affine
    def multiply(self, node, i, u, v):
        g, h = (self.slopes[a][i] for a in node.of)
        one = u is v or (g == h and all(lo == hi for lo, hi in g.values()))
        bend = (point(Fraction(2)), i) if one else (ONE, i, i)
        return Entry(u[i].square() if u is v else u[i] * v[i], [(0, i, v[i]), (1, i, u[i])], [bend])
    def piecewise(self, node, i, values):
        u = values[i]
        value, slope, bend = (over_pieces(node, rows, u, self.along) for rows in node.tables)
        signs = [jump for t, jump in zip(node.ends, node.bends) if jump and u[0] < t < u[1]]
        return Entry(value, [(0, i, slope)], [(bend, i)], signs)
    def max(self, node, i, values):
        some = self.largest(node.of[0], node.row(i))
        value = Span(*(max(values[j][a] for j in node.row(i)) for a in (0, 1)))
        share = Span(ZERO, ONE[0]) if some[1:] else ONE
        return Entry(value, [(0, j, share) for j in some], (), [1] * len(some[1:]), [[(0, j, ONE)] for j in some])
    def largest(self, arg, places):
        """Return the entries of a row that may be the largest; one of them is kept for certain."""
        values, slopes, at = self.values[arg], self.slopes[arg], (self.here or self).values[arg]
        best = max(places, key=lambda i: at[i][0])
        def above(i):
            gap = plus(at[i][1] - at[best][0], self.reach(combine([(ONE, slopes[i]), (point(-ONE[0]), slopes[best])])))
            return gap >= 0 if self.along else gap > 0 and values[i][1] > values[best][0]
        return [i for i in places if i == best or above(i)]
    def smooth(self, node, i, values):
        places = node.row(i)
        value, slopes, bend = smooth_row(node.op, [values[j] for j in places])
        wide = node.op == "logsumexp" and any(high - low > Fraction(1, 2) for low, high in slopes)
        signs, ways = [1] * (node.op == "norm2" and bend == NIL), [[(0, j, ONE)] for j in places] if wide else ()
        return Entry(value, [(0, *link) for link in zip(places, slopes)], [(bend, j) for j in places], signs, ways)
    norm2 = log = logsumexp = smooth
    def backward(self, last, start, slopes_only=False):
        """Return a lower bound of the curvature of `start` times a node, and its gradients, going
        back by adjoints: intervals that contain the derivatives in every entry."""
        total, found = Curvature(self.nodes[0].size), {last: start}
        for k in range(last, 0, -1):
            node = self.nodes[k]
            for i, (alpha, entry) in enumerate(zip(found.pop(k, ()), self.entries[k])):
                for a, p, slope in entry.back:
                    into = found.setdefault(node.of[a], [NIL] * len(self.values[node.of[a]]))
                    into[p] += alpha * slope
                if slopes_only: continue
                if entry.held and alpha != NIL: entry.held.check(self, node, i, alpha)
                wrong = any(not min(sign * q for q in alpha) >= 0 for sign in entry.signs)
                refuse(wrong, f"a concave kink of node {k} is inside the ball")
                for bend, *places in entry.bends:
                    total.add(alpha * bend, *(self.slopes[a][p] for a, p in zip(node.of[-len(places):], places)))
        return total, dict(enumerate(found.get(0, ())))

class Curvature(Room):
    """A symmetric matrix, the sum of lower bounds of what entries add."""
    def __init__(self, d):
        self.hold(2000 * d * d)
        self.rows, self.d = [[ZERO] * d for _ in range(d)], d
    def add(self, alpha, g, h=None):
        """Add a lower bound of alpha (gh' + hg'): that of midpoints, less errors on the diagonal.
        Without h: of alpha gg'; for alpha >= 0 also 0 is one."""
        if h is None:
            exactly = finite(alpha[0]) and all(u.bounded() and u[0] == u[1] for u in g.values())
            alpha, h = point(alpha[0] / 2 if alpha[0] <= 0 or exactly else ZERO), g
        for (i, u), (j, v) in itertools.product(g.items(), h.items()) if alpha != NIL else ():
            part = alpha * u * v
            refuse(not part.bounded(), "the curvature is not bounded from below")
            for a, b in ((i, j), (j, i)):
                self.rows[a][b] += part.mid()
                self.rows[a][a] -= part.radius()
    def at_least(self, growth):
        """Prove M >= growth I, by elimination."""
        rows = self.rows
        if self.d * max(q.denominator.bit_length() for row in rows for q in row) > 4000:
            rows = [[grid(q, False, 160) for q in row] for row in rows]  # shorter, and a little less
            growth += Fraction(self.d, 1 << 160)
        rows = [[q - growth * (i == j) for j, q in enumerate(row)] for i, row in enumerate(rows)]
        while rows:
            (pivot, *top), *rest = rows
            if pivot < 0 or (not pivot and any(top)): return False
            spend(4 * len(rest) ** 2, *(part.bit_length() + 400 for part in pivot.as_integer_ratio()))
            rows = [[b - a * c / (pivot or 1) for b, c in zip(row, top)] for a, *row in rest]
        return True

class Held:
    """A substitute below an entry, by how much it is sharper, and what it costs: the sum of
    s (u - t) + p/2 (u - t)^2 over `parts`, places with t, s, p. That of a piecewise node has one
    part, and phi(t) is added. Those of max and norm2 have weights s, and t = p = 0. A line s u + base
    of a case is below phi(u), u being in a range, or above it where f falls with it (`side` -1)."""
    charge, least, side = ZERO, ZERO, 1  # of nodes that f does not depend on
    def __init__(self, base=None): self.parts, self.sharp, self.base = {}, [], base
    def instead(self, run, node, entry):
        """Return what is this in place of an entry, or (unless it is held alone) itself or this."""
        value, back, bends, ways = self.base or NIL, [], [], entry.ways or [entry.back]
        for i, (t, s, p) in self.parts.items():
            step = run.values[node.of[0]][i] + point(-t)
            value += point(s) * step + point(p / 2) * step.square()
            if node.op == "piecewise" and not self.base: value += over_pieces(node, node.tables[0], point(t))
            back.append((0, i, point(s) + point(p) * step))
            bends.append((point(p), i))
        if not run.only: value, ways = entry.value | value, [*ways, back]
        return Entry(value, back, bends, (), () if run.only else ways, self)
    def check(self, run, node, i, a):
        """Refuse unless it is on the right side of the entry on the whole region."""
        self.side, slack = 1 if a[0] >= 0 else -1, sum((sigma for *_, sigma, _ in self.sharp), ZERO)
        refuse(self.side < 0 and (a[1] > 0 or node.op != "piecewise"), "a support has an adjoint without a sign")
        self.least, weights = min(self.side * q for q in a), {j: s for j, (_, s, _) in self.parts.items()}
        if node.op == "piecewise": return self.base or self.check_piece(run, node, i, a.size(), slack)
        if node.op == "norm2":
            long = slack > 1 or sum(q * q for q in weights.values()) > (1 - slack) ** 2
            return refuse(long, "weights of a norm are longer than 1")
        refuse(sum(weights.values()) != 1, "weights of a maximum are not of sum 1")
        for one, other, sigma, _ in self.sharp:
            refuse(one == other or not {one, other} <= set(weights), "a pair is none")
            for place in (one, other): weights[place] -= sigma
        refuse(min(weights.values()) < 0, "weights of a maximum are negative, or leave no room for sharpness")
    def check_piece(self, run, node, i, most, slack):
        (arg,), (_, slopes, bends), (t, s, p), side = node.of, node.tables, self.parts[i], self.side
        u, at = run.values[arg][i] | point(t), run.here.values[arg][i]
        beside = [side * value_in(p, t) for p, _ in in_pieces(node, slopes, point(t))]
        refuse(not beside[0] + slack <= side * s <= beside[-1] - slack, "the slope of a support is not one of its kink")
        refuse(side * p > (over_pieces(node, bends, u) * point(Fraction(side)))[0], "a support bends more than its entry")
        for k, jump in zip(node.ends, node.bends):  # a concave kink costs what it weighs at most
            if u[0] < k < u[1] and k != t and side * jump < 0:
                margin = plus(k, -at[1]) if t < k else plus(at[0], -k)
                refuse(not margin > 0, "a support is next to a concave kink")
                far = plus(run.reach(run.slopes[arg][i]), -margin)
                self.charge = plus(self.charge, times(times(most, abs(jump)), max(far, ZERO)))
    def lay(self, node, i, s, u):
        """Make it the best line of slope s: its base the least phi(u) - s u, or the largest."""
        def least(row, part):
            p = [self.side * q for q in [row[0], row[1] - s, *(row[2:3] or [ZERO])]]
            return vertex(p, part) if p[2] > 0 else poly_range(p, part)[0]
        low = min(least(row, part) for row, part in in_pieces(node, node.tables[0], u))
        refuse(not finite(low), "a line is not below its kink: a range is infinite")
        self.parts, self.base = {i: (ZERO, s, ZERO)}, point(self.side * low)

# --- minima --------------------------------------------------------------------------------------
def penalised(nodes, claim):
    """Return f plus weights times the distances of constraints, then of variables, from their
    limits: f itself where these hold."""
    out, ends, constraints = list(nodes), [len(nodes) - 1], claim["constraints"]
    def add(op, *of, **data): out.append(read_node({"op": op, "of": list(of)} | data, len(out), out))
    for k, w in enumerate(claim["penalties"], -len(constraints)):
        if not w: continue
        end = len(out) - 1
        f, low, up = constraints[k].values() if k < 0 else (nodes[:1], claim["lower"][k], claim["upper"][k])
        for node in f[1:]:
            out.append(copy.copy(node))
            out[-1].of, out[-1].room = [a and a + end for a in node.of], 0
        if k >= 0: add("affine", 0, columns=1, width=nodes[0].size, at=[[k]])
        rows = [[low, -ONE[0]]] * finite(low) + [[ZERO]] * (low < up) + [[-up, ONE[0]]] * finite(up)
        arg = len(out) - 1 if len(out) - 1 > end else 0
        add("piecewise", arg, pieces=rows, breakpoints=sorted({low, up} - {-INF, INF}))
        add("affine", len(out) - 1, columns=1, width=1, rows=[[w]])
        ends.append(len(out) - 1)
    if ends[1:]: add("add", *ends)
    return out
def minorant(nodes, y, r, held, box=None):
    """Return curvature, loss and eps: f(z) >= f(y) - loss - eps |h| + h'Mh/2, h = z - y, |h| <= r."""
    last, parts = len(nodes) - 1, [(nodes[k], row, part) for k, own in held.items() for row, part in own.items()]
    at, total = Pass(nodes, y, ZERO, held, only=True), Pass(nodes, y, r, held, box=box).backward(last, [ONE])[0]
    loss = max(value_of(nodes, exact(list(y)))[1] - at.values[last][0][0], ZERO)
    costs = [(loss, length(at.backward(last, [ONE], slopes_only=True)[1])), *((part.charge, ZERO) for *_, part in parts)]
    bare = Pass(nodes, y, r, {}, box=box) if any(part.sharp for *_, part in parts) else None
    costs += [sharpness(bare, node, row, part, sharp, total) for node, row, part in parts for sharp in part.sharp]
    return total, *(functools.reduce(plus, column) for column in zip(*costs))
def sharpness(bare, node, row, part, sharp, total):
    """Add the curvature of sigma |v|, v = 0 near y; return what v(y), and the blur of v', cost."""
    (one, other, sigma, bend), (arg,) = sharp, node.of
    if not sigma or not part.least: return ZERO, ZERO
    refuse(not finite(bare.r), "sharpness needs a ball of finite radius")  # then adjoints are finite
    slopes, values, affine = bare.here.slopes[arg], bare.here.values[arg], bare.nodes[arg].affine
    refuse(node.op == "norm2" and not affine, "a norm of a curved argument is not sharp here")
    pair, kappa = {one: ONE} | ({other: point(-ONE[0])} if node.op == "max" else {}), part.least * sigma
    ways = [{i: ONE} for i in node.row(row)] if node.op == "norm2" else [pair]
    rows = [combine((c, slopes[i]) for i, c in way.items()) for way in ways]
    gaps = [sum((c * values[i] for i, c in way.items()), point(-part.parts.get(one, [ZERO])[0])) for way in ways]
    gap = row_length(gaps)[1] if node.op == "norm2" else gaps[0].size()
    mids = [{j: point(u.mid()) for j, u in g.items()} for g in rows]
    size = row_length([u for g in mids for u in g.values()])[1]
    if not size: return ZERO, ZERO
    for sign in () if affine else (ONE, point(-ONE[0])):
        start = [sign * pair.get(i, NIL) for i in range(bare.nodes[arg].size)]
        refuse(not bare.backward(arg, start)[0].at_least(-bend), "an argument bends more than is stated")
    for g in mids: total.add(point(2 * kappa / (bare.r * size)), g)
    for j in range(total.d): total.rows[j][j] -= 0 if affine else kappa * bend
    return kappa * gap, kappa * sum(row_length([point(u.radius()) for u in g.values()])[1] for g in rows)
def check_cases(claim, nodes):
    """Prove f >= goal = f(x) - global_gap everywhere, by a tree of cases.
    f = r + sum b phi(u), the phi being all piecewise functions with kinks, of degree 2 at most, the u
    affine, the b numbers, and r - growth/2 |z|^2 convex. In a case the u are in ranges, so that lines
    can be put below all b phi: f >= m there, and f(z) >= m(y) - eps t + growth/2 t^2 for t = |z - y|,
    eps the length of the gradient of m at y, any point. Either that is never below goal: the case is
    closed; or z with f(z) < goal are in a ball around y, which makes the ranges smaller. These are
    looked at again, or split: u <= t, or u >= t. In the beginning ranges are infinite."""
    held, growth, last = claim["lines"], claim["cases"]["growth"], len(nodes) - 1
    for k, node in enumerate(nodes):
        args = [nodes[a] for a in node.of]
        right = node.op in ("affine", "add") or not any(arg.kinked for arg in args)
        if k in held: right = args[0].affine and not any(any(p[3:]) for p in node.tables[0])
        refuse(not right, f"cases have no rule for node {k}")
    run = Pass(nodes, [ZERO] * nodes[0].size, INF, held, only=True)
    curved = growth > 0 and run.backward(last, [ONE])[0].at_least(growth)
    refuse(not curved, f"what is left without kinks is not proved to have a curvature of {show(growth)}")
    lines = [(nodes[k].of[0], i, nodes[k], line) for k, own in held.items() for i, line in own.items()]
    steep = [length(run.slopes[arg][i]) for arg, i, *_ in lines]
    goal, left = value_of(nodes, claim["x"])[1] - claim["global_gap"], [[Span(-INF, INF)] * len(lines)]
    nowhere = [Span(INF, -INF)]  # the ranges of a case without points, or without any where f is below goal
    for k, case in enumerate(claim["cases"]["tree"]):
        refuse(not left, "there are more cases than parts of others")
        ranges, rest = left.pop(), nowhere
        if all(lo <= hi for lo, hi in ranges):
            for (_, i, node, line), s, u in zip(lines, case["slopes"], ranges): line.lay(node, i, s, u)
            at = Pass(nodes, case["point"], ZERO, held, only=True)
            eps = length(at.backward(last, [ONE], slopes_only=True)[1])
            square = eps * eps + 2 * growth * (goal - at.values[last][0][0])
            if square > 0:
                far = (eps + root(square, True)) / growth
                rest = [u & (at.values[arg][i] + UNIT * point(far * b)) for u, b, (arg, i, *_) in zip(ranges, steep, lines)]
        refuse(rest is not nowhere and not case["parts"], f"case {k} is not closed")
        sides = [Span(case["t"], INF), Span(-INF, case["t"])] if "t" in case else [nowhere] * case["parts"]
        left += [[u & side if j == case.get("entry") else u for j, u in enumerate(rest)] for side in sides]
    refuse(left, "a case is missing")
def check_minimum(claim):
    """Decide ball and global claims: f >= f(x) - gap within radius of x, or everywhere; with
    penalties, among feasible points: they are 0 there, and not negative elsewhere."""
    x, pivot, delta, eps, most, growth, convex, r, radius, within, strict, unique = map(claim.get, (
        "x", "pivot", "delta", "eps", "gap", "growth", "convexity", "reach", "radius", "within", "strict", "unique"))
    y, nodes, whole, slack = fractions(pivot), claim["program"], claim.get("global_gap", INF), claim.get("violation", ZERO)
    everywhere, least = claim["scope"] == "global", min(delta, eps, most, whole, radius, slack, *claim.get("penalties", ()))
    refuse(least < 0 or not r > 0, "a radius, gap, bound or weight is negative")
    check_near(claim, [pivot])
    local, walls = strict or finite(within), [Span(*ends) for ends in zip(claim["lower"], claim["upper"])]
    check_place(claim, x, slack)
    check_place(claim, pivot, bounds_only=not local)
    covered = row_length([u + point(-q) for u, q in zip(walls, y)])[1] <= r
    box, flat = walls if "penalties" in claim else None, all(part["function"][-1].affine for part in claim["constraints"])
    total, loss, found = minorant(nodes, y, r, claim["held"], box)
    refuse(not total.at_least(growth), f"the curvature is not proved to be at least {show(growth)}")
    refuse(not found <= eps, f"the gradient of the minorant is not proved to be at most {show(eps)}")
    t = min(r, eps / growth) if growth > 0 else r if growth or eps else ZERO  # there it is lowest
    refuse(not finite(t), "there is no finite gap: no growth, and eps is not 0")
    gap = plus(loss, eps * t - growth * t * t / 2 + value_of(nodes, x)[1] - value_of(nodes, pivot)[0])
    refuse(max(gap, 0) > most, f"the gap is not proved to be at most {show(most)}")
    if local:
        far = (eps + root(eps * eps + 2 * growth * loss, True)) / growth if growth > 0 else INF
        refuse(not far < r, "the lowest points are not proved to be inside the ball")
        refuse(not far + delta <= within < radius, "a minimiser is not proved to be so close, and in the ball around x")
    if finite(convex):
        bare = Pass(nodes, y, INF if everywhere else r, {}, box=box).backward(len(nodes) - 1, [ONE])[0]
        refuse(convex < 0 or not bare.at_least(convex), "f is not proved to be so convex")
    refuse(unique and not (strict and flat and 0 < convex < INF), "unique needs strict, and strict convexity")
    if everywhere:
        closed = covered or (strict and finite(convex)) or (whole <= most and not local)
        refuse(finite(radius) or not closed, "global needs curvature everywhere, or convexity, or cases that show the gap")
    else: refuse(not finite(radius) or radius + delta > r, "the ball around x is not inside the one around the pivot")
    if finite(whole): check_cases(claim, nodes)
    kind = "a unique" if unique else "a strict" if strict else "a"
    where = "global minimum" if everywhere else f"minimum on a ball of radius {show(radius)}"
    more = f", and f is nowhere lower by more than {show(whole)}" if finite(whole) else ""
    return (f"x is {kind} {where}{' among feasible points' if box else ''} up to a gap of {show(most)}"
            f" for the function in this file, of {len(y)} variables{more}")

# --- the claim -----------------------------------------------------------------------------------
def check(claim, nodes):
    """Return a sentence that says what is proved, or raise `Refused`."""
    kind, x = claim["kind"], claim["x"]
    if kind == "minimum": return check_minimum(claim)
    if kind == "refutation":
        check_place(claim, claim["point"])
        gap, fall = value_of(nodes, x)[0] - value_of(nodes, claim["point"])[1], claim["fall"]
        refuse(fall <= 0 or gap < fall, f"f is not proved to fall by {show(fall)}")
        return f"x is not a minimum: at a point of this file f is lower by {show(fall)}, or more"
    eps, delta, pivot = claim["eps"], claim["delta"], claim.get("pivot")
    shift = fractions(claim.get("normal") or claim.get("subgradient") or exact([ZERO] * len(x.lo)))
    weights = exact(claim["weights"]).lo  # their denominator cancels
    places = zip(claim["directions"], itertools.repeat(pivot)) if pivot else zip(itertools.repeat(None), claim["points"])
    parts = [(nodes, y, v, Fraction(a)) for (v, y), a in zip(places, weights) if a > 0]
    refuse(min(eps, delta, *weights) < 0 or not parts, "eps, delta or a weight is negative, or all weights are 0")
    check_near(claim, [y for _, y, *_ in parts])
    total, bound = sum(weights), eps
    if kind == "near-kkt":
        check_place(claim, x, bounds_only=True)
        check_multipliers(claim)
        parts += [(claim["constraints"][i]["function"], pivot, way, total * weight)
                  for i, weight, way in map(dict.values, claim["rows"]) if weight]
    if kind == "plus":
        gap, away = term_gap(claim["term"], fractions(x), shift)
        refuse((gap and away >= delta) or away > delta, "x is too far from the domain of h")
        bound -= gap / (delta - away) if gap else 0
    whole, seen = exact([total * q for q in shift]), {}
    for f, y, v, weight in parts:
        whole += Side(f, y, v, seen.setdefault(id(f), [y]) if pivot else [y]).gradient(len(f) - 1, exact([weight]))
    refuse(bound < 0 or longer(whole, bound * total), f"the combination is not proved to be at most {show(eps)}")
    how = {"near-kkt": "near KKT", "plus": "stationary with its term"}.get(kind, f"{kind} stationary")
    what = "limits of gradients at the pivot" if pivot else "gradients"
    return (f"x is ({show(eps)}, {show(delta)})-{how} for the function in this file,"
            f" of {len(x.lo)} variables: {len(parts)} {what} prove it")
def show(q, digits=9):
    return f"{float(q):.{digits}g}" if abs(q) < 10**308 else "-" * (q < 0) + "more than 1e300"

# --- the function in words: which one exactly? ---------------------------------------------------
NAMES = {(((0,)), ((0, -1), (0, 1))): "abs", ((0,), ((0, 0), (0, 1))): "relu",
         ((), ((0, 0, 1),)): "square", ((0, 1), ((0, 0), (0, 1), (1, 0))): "ramp"}
def short(q): return show(q, 6)
def elided(texts, most=3): return ", ".join(texts if len(texts) <= most else [*texts[:most - 1], "...", texts[-1]])
def total(parts): return " + ".join(parts).replace("+ -", "- ") or "0"
def terms(coefficients, names):
    """Return 2 a - b + 3 for numbers and names, the last of which may be empty."""
    return total([("-" if q < 0 else "") + f"{'' if abs(q) == 1 and name else short(abs(q))} {name}".strip()
                  for q, name in zip(coefficients, names) if q])
def describe(nodes, name="f(x)"):
    """Return lines of a formula; rows of matrices are elided."""
    texts, notes, uses = [], [], collections.Counter(a for node in nodes for a in node.of)
    for k, node in enumerate(nodes):
        args, wide = [texts[a] for a in node.of], f" of {node.columns}-rows" if node.size > 1 < node.columns else ""
        match node.op:
            case "variable": text = "x"
            case "affine": text = describe_affine(node, k, *args, notes)
            case "add": text = total(args)
            case "multiply": text = f"({args[0]})^2" if len(set(node.of)) < 2 else "({}) ({})".format(*args)
            case "piecewise": text = f"{describe_pieces(node, k, notes)}({args[0]})"
            case _: text = f"{node.op}{wide}({args[0]})"
        if (uses[k] > 1 and len(text) > 3) or len(text) > 300:
            notes.append(f"u{k} = {text}")
            text = f"u{k}"
        texts.append(text)
    return "\n  ".join([f"{name} = {texts[-1]}", *notes])
def describe_pieces(node, k, notes):
    if found := NAMES.get((tuple(node.ends), tuple(map(tuple, node.tables[0])))): return found
    rows = [terms(row, ["", "t", *(f"t^{j}" for j in range(2, len(row)))]) for row in node.tables[0]]
    said = [f"{row} up to {short(t)}" for row, t in zip(rows, node.ends)] + rows[-1:]
    notes.append(f"p{k}(t) = " + ", then ".join(said[:5] + ["..."] * (len(said) > 5)))
    return f"p{k}"
def describe_affine(node, k, bare, notes):
    u = bare if bare.isalnum() or (bare.endswith(")") and " " not in bare) else f"({bare})"
    offset, width, row = fractions(node.offset[0]) if node.offset else [], len(node.transposed), node.table[0]
    values, names = [Fraction(a, node.den) for _, a in row], [f"{u}[{p}]" for p, _ in row]
    if width == len(row) and len(set(values)) == 1: names = [u if width == 1 else f"sum({bare})"]
    if len(node.table) == 1 == node.columns and len(names) <= 4: return terms([*values[:len(names)], *offset], [*names, ""])
    plus = f" + b{k}" if any(offset) else ""
    if plus: notes.append(f"b{k} = ({elided(list(map(short, offset)))})")
    if all(row == [(i, node.den)] for i, row in enumerate(node.table)): return f"{bare}{plus}"
    first = elided([terms([q], [name]) for q, name in zip(values, names)]) or "0"
    notes.append(f"A{k} is {len(node.table)} x {width}, and begins with {first}")
    return f"A{k} {u}{plus}"
def describe_limits(claim):
    """Return lines about bounds, constraints and the term."""
    def within(low, name, up): return f"{short(low)} <= " * finite(low) + name + f" <= {short(up)}" * finite(up)
    bounds = [within(low, f"x[{k}]", up) for k, (low, up) in enumerate(zip(claim["lower"], claim["upper"]))]
    if some := [text for text in bounds if "=" in text]: yield f"where {elided(some, 5)}"
    for i, (f, low, up) in enumerate(map(dict.values, claim["constraints"])):
        yield within(low, name := f"c{i}(x)", up) + f", where \n{describe(f, name)}"
    if "term" in claim: yield f"and h is {claim['term']['name']}"

# --- reading: Python's own errors about wrong types count as unreadable, too ----------------------
WHOLE = r"0x[0-9a-f]{1,250000}|[0-9]{1,4000}"
RATIONAL = re.compile(f"(-?(?:{WHOLE}))(?:/({WHOLE}))?")
FLOAT = re.compile(r"(-?)0x([01])(?:\.([0-9a-f]{1,16}))?p([+-](?:0?[0-9]{1,3}|10[0-9]{2}|1100))")
def number(text, d=None):
    if isinstance(text, Fraction): return text  # of a node that is made here
    spend(50)
    if found := FLOAT.fullmatch(text):
        sign, lead, digits, exponent = found.groups(default="")
        return Fraction(int(sign + lead + digits, 16)) * Fraction(2) ** (int(exponent) - 4 * len(digits))
    found = RATIONAL.fullmatch(text) or reject(text)
    spend(2, 2 * len(text), 2 * len(text))
    return Fraction(*(int(part, 16 if "x" in part else 10) for part in found.groups(default="1")))
def above(text, d=None): return INF if text is None else number(text)
def below(text, d=None): return -INF if text is None else number(text)
def plain(value, d): return value
def record(data, form, d):
    """Read a value by its form: a reader, or for an object one for every field, and no others. A
    field whose name ends with ? may be missing."""
    if not isinstance(form, dict): return form(data, d)
    form = {n.rstrip("?"): read for n, read in form.items() if n[-1] != "?" or n[:-1] in data}
    need(set(data) == set(form), f"not the fields {', '.join(form)}")
    return {name: record(data[name], read, d) for name, read in form.items()}
def many(form, whole=False):
    """Return a reader of lists; if `whole`, with one entry for each variable."""
    def listed(values, d=None):
        need(isinstance(values, list) and (not whole or d in (None, len(values))), "no list, or one of a wrong length")
        return [record(value, form, d) for value in values]
    return listed
def sure(form, right, what):
    """Return a reader that asks more of what it has read."""
    def asked(data, d=None):
        need(right(found := record(data, form, d), d), what)
        return found
    return asked
weight = sure(number, lambda q, _: q >= 0, "a weight is negative: the term is not convex")
flag = sure(plain, lambda value, _: type(value) is bool, "not true or false")
natural = sure(plain, lambda n, _: type(n) is int and 0 < n <= MAX_SIZE, "a size is not positive, or too large")
indices = sure(plain, lambda row, size: isinstance(row, list) and all(type(k) is int and 0 <= k < size for k in row),
               "a list of places is wrong, or a place is out of range")
def place(k, size): return indices([k], size)[0]
numbers = many(number, whole=True)
def vector(texts, d): return exact(numbers(texts, d))
def read_function(data, d=None):
    nodes = []
    for k, node in enumerate(data): nodes.append(read_node(node, k, nodes))
    need(nodes and nodes[-1].size == 1, "the last node must be one number")
    need(d in (None, nodes[0].size), "a constraint has another number of variables")
    return nodes
def read_node(data, k, nodes):
    node, op = Node(), data["op"]
    node.hold(6000)
    vars(node).update(record({"of": []} | data, KINDS[op], k))
    count = {"variable": 0, "multiply": 2, "add": max(1, len(node.of))}.get(op, 1)
    right = len(node.of) == count and (op == "variable") == (k == 0)
    need(right and len({nodes[a].size for a in node.of}) <= 1, f"node {k} is malformed")
    if node.of: node.size = nodes[node.of[0]].size
    node.work = node.size * (1 + len(node.of))
    node.affine = op in ("variable", "affine", "add") and all(nodes[a].affine for a in node.of)
    node.flat = op in ("variable", "affine", "add", *KINKED[:2]) and all(nodes[a].flat for a in node.of)
    need(node.size % node.columns == 0, f"node {k} has rows of a wrong length")
    node.size //= node.columns
    if op == "piecewise": read_pieces(node)
    if op == "affine": read_matrix(node)
    node.kinked = any(node.bends) or any(nodes[a].kinked for a in node.of)
    return node
def read_pieces(node):
    ends, rows = node.breakpoints, node.pieces
    need(len(rows) == len(ends) + 1 <= 1000, "the number of pieces is wrong")
    width = max(map(len, rows))
    spend(60 * len(rows) * (width + 1))
    node.bits = max(bits_of(q) for row in [ends, *rows] for q in row)
    need(0 < width <= MAX_DEGREE and node.bits < 9999, "a polynomial is empty, or too long")
    need(all(map(operator.lt, ends, ends[1:])), "breakpoints must ascend")
    rows = [p + [ZERO] * (width - len(p)) for p in rows]
    slopes = list(map(derived, rows))
    node.ends, node.tables = ends, (rows, slopes, list(map(derived, slopes)))
    node.pieces, node.slopes = ([exact(c) for c in zip(*table)] for table in (rows, slopes))
    node.flat &= not any(any(p[2:]) for p in rows)
    jumps, node.bends = ([value_in(list(map(operator.sub, q, p)), t) for t, p, q in zip(ends, table, table[1:])]
                         for table in (rows, slopes))
    need(not any(jumps), "a piecewise function is not continuous")
def read_matrix(node):
    at = [list(range(node.width))] * len(node.rows) if node.at is None else node.at
    rows = [["1"] * len(places) for places in at] if node.rows is None else node.rows
    need(node.width == node.size and len(rows) == len(at), "a matrix does not fit its argument, or its places")
    node.size, count = natural(len(rows) * node.columns), node.width + len(at) + sum(map(len, at))
    node.work = node.columns * count
    node.hold(1100 * count)
    need(all(len(set(indices(p, node.width))) == len(p) for p in at), "a place comes twice in a row")
    whole = exact([a for row, places in zip(rows, at) for a in numbers(row, len(places))])
    node.hold(whole.room)
    entries, node.den, node.bits = iter(whole.lo), whole.den, whole.bits
    node.table = [[(k, a) for k, a in zip(p, entries) if a] for p in at]
    node.transposed = [[] for _ in range(node.width)]
    for i, row in enumerate(node.table):
        for k, a in row: node.transposed[k].append((i, a))
    need(node.offset is None or len(node.offset) == node.size, "an offset has a wrong length")
    node.offset = node.offset and [exact(node.offset)]
def read_term(data, d):
    name = data.pop("name")
    return {"name": name} | record(data, TERMS[name], d)
FIELDS = {name: reader for reader, names in {  # what a field of that name is, if nothing else is said
    number: "eps delta gap global_gap violation fall growth total weight s t p sigma bend", flag: "strict unique",
    above: "radius within reach convexity upper", below: "lower", natural: "size width columns", indices: "of",
    plain: "schema version function op scope constraint node row place one other parts entry", many(plain): "rows at",
    vector: "x pivot point direction normal separation subgradient", many(vector): "directions points",
    many(number): "weights penalties slopes offset breakpoints", many(many(number)): "pieces left right",
    many(indices): "groups", read_term: "term"}.items() for name in names.split()}
def form(names, **own): return {name: (FIELDS | own)[name.rstrip("?")] for name in names.split()}
KINDS = {op: form(f"op of {names}") for op, names in {  # nodes of earlier ones only
    "variable": "size", "affine": "columns width rows? at? offset?", "piecewise": "breakpoints pieces", "add": "",
    "multiply": "", "max": "columns", "norm2": "columns", "logsumexp": "columns", "log": ""}.items()}
FIELDS |= {"bounds": form("lower upper", lower=many(below, whole=True), upper=many(above, whole=True)),
           "constraints": many(form("function lower upper", function=read_function)),
           "supports": many(form("node row place s t? p?")), "sharp": many(form("node row one other sigma bend")),
           "cases": form("growth tree", tree=many(form("point slopes parts entry? t?", point=numbers))),
           "rows": many(form("constraint weight direction"))}
LIMITS = "bounds? constraints?"
CLAIMS = {  # numbers of the claim, evidence, and what else the file has
    "near": ("eps delta", "pivot directions weights", ""), "goldstein": ("eps delta", "points weights", ""),
    "near-kkt": ("eps delta", "pivot directions weights rows normal separation", LIMITS),
    "plus": ("eps delta", "points weights subgradient", "term"), "refutation": ("fall", "point", LIMITS),
    "minimum": ("eps delta gap radius within scope strict unique",
                "pivot reach growth convexity supports sharp penalties? cases?", "")}
def apart(term, _):
    """Say whether groups are disjoint, with one weight each."""
    groups = term["groups"]
    return len(term["weight"]) == len(groups) and len(set().union(*groups)) == sum(map(len, groups))
def shaped(term, d):
    """Say whether tables have the sizes that are stated."""
    sizes, sides = [term["rows"], term["columns"]], [term["left"], term["right"]]
    return math.prod(sizes) == d and sizes == list(map(len, sides)) and len(set(map(len, sides[0] + sides[1]))) == 1
TERMS = {
    "l1_box": FIELDS["bounds"] | {"weight": many(weight, whole=True)}, "simplex": form("total"),
    "group_l2": sure(form("groups weight", weight=many(weight)), apart, "groups overlap, or have not one weight each"),
    "nuclear": sure(form("weight rows columns left right", weight=weight, rows=natural), shaped, "a wrong shape")}
def read(path):
    """Return the claim with its evidence, and the nodes of the function."""
    need(os.path.isfile(path), "not a regular file")
    with open(path, "rb") as file: raw = file.read(MAX_BYTES + 1)
    if raw[:2] == b"\x1f\x8b": raw = zlib.decompressobj(31).decompress(raw, MAX_BYTES + 1)
    need(len(raw) <= MAX_BYTES, f"more than {MAX_BYTES} bytes")
    text = Room()
    text.hold(24 * len(raw) + 1200 * sum(map(raw.count, (b",", b"[", b"{"))))  # of what is read
    data = json.loads(raw.decode("utf-8"), object_pairs_hook=distinct, parse_constant=reject,
                      parse_float=reject, parse_int=lambda t: int(t) if len(t) < 16 else reject(t))
    version, kind = data["version"], data["claim"].pop("kind")
    known = type(version) is int and (version == 2 or (version == 1 and kind in ("near", "goldstein")))
    need(known and data["schema"] == "goldstein-proof", "another schema or version, or one without such a claim")
    numbers, evidence, more = CLAIMS[kind]
    nodes = read_function(data["function"])
    d = nodes[0].size
    if "cases" in data["evidence"]: numbers += " global_gap"
    if "penalties" in data["evidence"]: numbers, more = numbers + " violation", LIMITS
    whole = form(f"schema version function x claim evidence {more}", claim=form(numbers), evidence=form(evidence))
    found = record(data, whole, d)
    claim = {"kind": kind, "lower": [-INF] * d, "upper": [INF] * d, "constraints": [], "program": nodes} | found
    for name in ("claim", "evidence", "bounds"): claim |= found.get(name, {})
    indices([row["constraint"] for row in claim.get("rows", [])], len(claim["constraints"]))
    need(len(claim.get("directions", claim.get("points", []))) == len(claim.get("weights", [])), "one weight per vector")
    if kind == "minimum": read_minimum(claim, nodes)
    return claim, nodes
def read_minimum(claim, nodes):
    """Find the program that supports, substitutes for entries by node and row, and cases are about.
    A tree has lines for all entries with kinks. The lower side of a split is the last."""
    need(claim["scope"] in ("ball", "global"), "this scope of a minimum is outside this checker")
    if "penalties" in claim:
        need(len(claim["penalties"]) == len(claim["constraints"]) + nodes[0].size, "a penalty is missing, or one too many")
        nodes = claim["program"] = penalised(nodes, claim)
    held = claim["held"] = collections.defaultdict(dict)
    for part in claim["supports"] + claim["sharp"]:
        k, i = place(part["node"], len(nodes)), place(part["row"], nodes[part["node"]].size)
        op, row, own = nodes[k].op, nodes[k].row(i), held[k].setdefault(i, Held())
        places = [place(part[name], row.stop) for name in ("place", "one", "other") if name in part]
        need(op in KINKED and min(places) in row, "a support is of another node, or another row")
        if "sigma" in part:
            need(own.parts and part["sigma"] >= 0, "a sharpness is none")
            own.sharp.append([part[name] for name in ("one", "other", "sigma", "bend")])
        else:
            need((op == "piecewise") == ("t" in part) == ("p" in part) and places[0] not in own.parts, "a support is none")
            own.parts[places[0]] = part.get("t", ZERO), part["s"], part.get("p", ZERO)
    if "cases" in claim:
        claim["lines"] = {k: {i: Held(NIL) for i in range(node.size)} for k, node in enumerate(nodes) if any(node.bends)}
        size = sum(map(len, claim["lines"].values()))
        for case in claim["cases"]["tree"]:
            need(len(case["slopes"]) == size, "a case has not one slope for each entry with kinks")
            need((place(case["parts"], 3) == 2) == ("entry" in case) == ("t" in case), "a split is none")
            if "entry" in case: place(case["entry"], size)
def distinct(pairs):
    need(len(dict(pairs)) == len(pairs), "a key comes twice")
    return dict(pairs)
def reject(text): raise Unreadable(f"not a number of a proof file: {text[:40]}")
def main(arguments=None):
    spent[0], Room.kept, arguments = 0, 0, sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"): return print(__doc__) or 2
    try:
        claim, nodes = read(arguments[0])
        said, code = f"TRUE: {check(claim, nodes)}", 0
    except Refused as why: said, code = f"FALSE: {why}", 1
    except Exception as why:  # a file from a stranger: whatever is wrong with it, it proves nothing
        said, code = f"UNREADABLE: {why if isinstance(why, Unreadable) else repr(why)}"[:200], 2
    print(f"{said}.")
    if code < 2: print("\n".join([describe(nodes), *describe_limits(claim)]))
    return code
if __name__ == "__main__": sys.exit(main())
