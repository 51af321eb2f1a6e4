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

# ruff: noqa: E401, E701, I001 (to be read in one sitting: a tight layout)
# fmt: off
import functools, json, math, operator, os, re, stat, sys
from fractions import Fraction

MAX_BYTES, MAX_SIZE, MAX_DEGREE = 2**26, 2**22, 32  # of the file; entries of a node; polynomials
MEMORY, BUDGET = 2**34, 6e11  # bits that are in use at one time; about nanoseconds
PRECISION = 320  # bits of an enclosure; exp, log and roots are bounded by integers over 2^Q
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
        self.room, self.exact = 0, lo is hi
        if soft and den.bit_length() > LONG:
            top = max(longest(lo), longest(hi))
            k = PRECISION + max(0, den.bit_length() - top)
            spend(5 * len(lo), den.bit_length(), k + top - den.bit_length() + 64)
            lo, hi, den = [(a << k) // den for a in lo], [-((-b << k) // den) for b in hi], 1 << k
            self.exact = False
        self.lo, self.hi, self.den, self.soft = lo, hi, den, soft
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
    def spread(self, columns):  # every entry so many times
        size = columns * len(self.lo)
        return self.each(lambda ends: [a for a in ends for _ in range(columns)], size)
    def totals(self, columns):  # of all rows of so many entries
        starts = range(0, len(self.lo), columns)
        return self.each(lambda ends: [sum(ends[i:i + columns]) for i in starts], len(self.lo))
    def __mul__(self, other):
        exactly = self.exact and other.exact
        spend((1 if exactly else 10) * len(self.lo), self.bits, other.bits)
        spend(1, self.den.bit_length(), other.den.bit_length())
        if exactly: lo = hi = list(map(operator.mul, self.lo, other.lo))
        else:
            lo, hi = ([best(p * r, p * s, q * r, q * s) for p, q, r, s
                       in zip(self.lo, self.hi, other.lo, other.hi, strict=True)]
                      for best in (min, max))
        return Vec(lo, hi, self.den * other.den, self.soft or other.soft)
    def __add__(self, other):
        spend(5, self.den.bit_length(), other.den.bit_length())
        den, exactly = math.lcm(self.den, other.den), self.exact and other.exact
        p, q = den // self.den, den // other.den
        spend((4 - 2 * exactly) * len(self.lo), max(self.bits, other.bits), max(p, q).bit_length())
        def sums(a, b): return [x * p + y * q for x, y in zip(a, b, strict=True)]
        lo = sums(self.lo, other.lo)
        hi = lo if exactly else sums(self.hi, other.hi)
        return Vec(lo, hi, den, self.soft or other.soft)
    def square(self):
        v = self * self  # a product of an interval with itself is wider than its square
        return v if v.exact else Vec([max(a, 0) for a in v.lo], v.hi, v.den, v.soft)
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
def longer(ends, den, bound):
    """Say whether integers over `den` are a longer vector than a rational bound >= 0."""
    bits, more = longest(ends), bound.numerator.bit_length() + bound.denominator.bit_length()
    spend(len(ends), bits, bits)
    spend(10, 2 * (bits + den.bit_length() + more), 2 * more + den.bit_length())
    return sum([a * a for a in ends]) * bound.denominator**2 > (bound.numerator * den) ** 2

# --- exp, log, roots and reciprocals of rationals top/bottom: integers over 2^Q, bounds from below,
# --- or from above if `up` ------------------------------------------------------------------------
def over(top, bottom, up): return -(-top // bottom) if up else top // bottom
def exp_minus(top, bottom, up):
    """Bound exp(-a) for a = top/bottom >= 0: a Taylor series at a/2^k, squared k times."""
    if top > 1024 * bottom: return int(up)
    halvings, k = (top // bottom).bit_length() + 8, 0
    r = over(top << Q, bottom << halvings, not up)
    low = high = term_low = term_high = 1 << Q
    while term_high > 1:
        k += 1
        term_low, term_high = over(term_low * r, k << Q, False), over(term_high * r, k << Q, True)
        less, more = (-term_high, -term_low) if k % 2 else (term_low, term_high)
        low, high = low + less, high + more
    bound = high + 2 if up else max(low - 2, 0)  # the rest alternates, and is below the last term
    for _ in range(halvings): bound = over(bound * bound, 1 << Q, up)
    return bound
def atanh(z, up):
    """Bound atanh(z) for z over 2^Q, 0 <= z <= 1/3."""
    total, power, k = 0, z, 1
    while power > 1:
        total, power, k = total + over(power, k, up), over(power * z * z, 1 << 2 * Q, up), k + 2
    return total + 4 * up  # the rest is below a geometric series
LOG_2 = 2 * atanh((1 << Q) // 3, False), 2 * atanh((1 << Q) // 3 + 1, True)
def log_of(top, bottom, up):
    """Bound log(u) = k log 2 - 2 atanh((1 - f)/(1 + f)) for u = 2^k f, 1/2 <= f <= 1."""
    k = top.bit_length() - bottom.bit_length()
    k += top << max(0, -k) > bottom << max(0, k)
    a, b = top << max(0, -k), bottom << max(0, k)  # f = a/b
    part = atanh(over((b - a) << Q, b + a, not up), not up)
    return k * LOG_2[up == (k > 0)] - 2 * part
def root_of(top, bottom, up):
    low = math.isqrt((top << 2 * Q) // bottom)
    return low + (up and low * low * bottom != top << 2 * Q)
def reciprocal(top, bottom, up): return over(bottom << Q, top, up)
def monotone(v, function, rising=True, least=0):
    """Enclose a monotone function of positive entries; `function(top, bottom, up)` bounds it."""
    if any(a <= least for a in v.lo):
        raise Refused("a norm or a logarithm is not proved to have an argument that is positive")
    cost = 40 if function is log_of else 1
    spend(cost * len(v.lo), v.bits + 2 * Q, v.bits + v.den.bit_length() + 20 * Q)
    ends = ((v.lo, False), (v.hi, True)) if rising else ((v.hi, False), (v.lo, True))
    return Vec(*([function(a, v.den, up) for a in e] for e, up in ends), 1 << Q, True)
def powers(v, columns):
    """Return exp(u - m) for every entry, m the largest of its row, and all m."""
    spend(15 * len(v.lo), v.bits + 2 * Q, v.bits + v.den.bit_length() + 20 * Q)
    tops = [max(v.hi[i:i + columns]) for i in range(0, len(v.hi), columns)]
    lo, hi = ([exp_minus(tops[i // columns] - a, v.den, up) for i, a in enumerate(ends)]
              for ends, up in ((v.lo, False), (v.hi, True)))
    return Vec(lo, hi, 1 << Q, True), Vec(tops, tops, v.den, v.soft)
def unit_rows(v, columns):
    """Return u/|u| for every row u, 0 for 0; of all others an entry is proved not to be 0."""
    spend(10 * len(v.lo), v.bits + 2 * Q, v.bits + 2 * Q)
    lo, hi = [], []
    for i in range(0, len(v.lo), columns):
        pairs = list(zip(v.lo[i:i + columns], v.hi[i:i + columns]))
        short = root_of(sum([max(a, -b, 0) ** 2 for a, b in pairs]), 1, False) or 1
        long = root_of(sum([max(-a, b) ** 2 for a, b in pairs]), 1, True) or 1
        lo += [over(a << 2 * Q, long if a > 0 else short, False) for a, _ in pairs]
        hi += [over(b << 2 * Q, short if b > 0 else long, True) for _, b in pairs]
    return Vec(lo, hi, 1 << Q, True)

# --- polynomials in t: lists of vectors ----------------------------------------------------------
def add_series(a, b):
    a, b = (b, a) if len(a) < len(b) else (a, b)
    return [c + b[k] if k < len(b) else c for k, c in enumerate(a)]
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
        match self.op:
            case "norm2": return [monotone(u[0].square().totals(self.columns), root_of, least=-1)]
            case "log": return [monotone(u[0], log_of)]
        parts, tops = powers(u[0], self.columns)
        return [monotone(parts.totals(self.columns), log_of) + tops]
    def backward(self, g, args, piece):
        """Return the derivatives in the arguments, g being that in the node."""
        match self.op:
            case "affine": return [self.apply(g, self.transposed)]
            case "add": return [g] * len(self.of)
            case "piecewise": return [g * horner(self.slopes, piece, args)[0]]
            case "multiply": return [g * args[1], g * args[0]]
            case "log": return [g * monotone(args[0], reciprocal, rising=False)]
            case "max":
                def scattered(ends):
                    out = [0] * (self.size * self.columns)
                    for i, a in zip(piece, ends): out[i] = a
                    return out
                return [g.each(scattered, self.size * self.columns)]
            case "norm2": return [g.spread(self.columns) * unit_rows(piece, self.columns)]
        parts, _ = powers(args[0], self.columns)
        sums = monotone(parts.totals(self.columns), reciprocal, rising=False)
        return [g.spread(self.columns) * (parts * sums.spread(self.columns))]
    def still(self, args, piece, loose, vals):
        """Say which entries are constant near a point, the same of the arguments being known."""
        a, c = args[0], self.columns
        match self.op:
            case "affine":
                return [all(a[k * c + j] for k, _ in row) for row in self.table for j in range(c)]
            case "add": return list(map(all, zip(*args)))
            case "multiply":  # also 0 times whatever moves
                nil = ([s and not p and not q for s, p, q in zip(mask, v.lo, v.hi)]
                       for mask, v in zip(args, vals))
                return [(a and b) or p or q for a, b, p, q in zip(*args, *nil)]
            case "piecewise":
                return [s or (self.constant[p] and not l) for s, p, l in zip(a, piece, loose)]
            case "max": return [a[j] for j in piece]  # what stays tied is equal to it, or constant
            case "log": return a
        return [all(a[i] for i in row) for row in self.rows()]
    def rows(self):  # places of the argument
        return (range(i * self.columns, (i + 1) * self.columns) for i in range(self.size))
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
    def __init__(self, nodes, y, v, values, exact_values):
        self.nodes, self.v, self.values, self.exact_values = nodes, v, values, exact_values
        self.pieces, self.loose, self.felt = {}, {}, set()
        self.masks, self.paths = {0: [False] * len(y.lo)}, {0: [y, v]}
        spend(20 * len(nodes))
        for k, node in enumerate(nodes[1:], 1):
            if node.op in ("piecewise", "max", "norm2"):
                self.pieces[k] = getattr(self, node.op)(k, node, node.of[0], values[node.of[0]])
            if k == len(values):
                values += node.forward([[values[a]] for a in node.of], self.pieces.get(k))
    def exactly(self, k, places):
        """Return the values at y of some entries of node k, which must be exact."""
        v = self.values[k].take(places)
        if v.lo != v.hi: v = self.extend(self.exact_values, k)[0].take(places)
        if v.lo != v.hi: raise Refused("on which side of a kink the point lies is not decided")
        return v
    def extend(self, series, k):
        """Compute the series of node k and of all that it depends on."""
        for b in ancestors(self.nodes, k) if k not in series else []:
            if b not in series:
                args = [series[a] for a in self.nodes[b].of]
                series[b] = self.nodes[b].forward(args, self.pieces.get(b))
        return series[k]
    def steps(self, k):
        """Return the coefficients of t, t^2, ... of node k."""
        return [] if self.v is None else self.extend(self.paths, k)[1:]
    def still(self, k):
        """Return which entries of node k are proved to be constant here."""
        for b in ancestors(self.nodes, k) if k not in self.masks else []:
            if b not in self.masks:
                node = self.nodes[b]
                masks, values = zip(*((self.masks[a], self.values[a]) for a in node.of))
                spend(2 * node.work)
                self.masks[b] = node.still(masks, self.pieces.get(b), self.loose.get(b), values)
        return self.masks[k]
    def vanishes(self, k, start):
        """Prove that `start` times node k is constant: it is affine here, with derivative 0."""
        flat = all(self.nodes[b].flat and b not in self.felt for b in ancestors(self.nodes, k))
        found = self.gradient(k, start) if flat else start
        return flat and not any(found.lo) and not any(found.hi)
    def require_constant(self, k, places):
        still, what = self.still(k), "a point is on" if self.v is None else "a direction stays on"
        if not all(still[i] or self.vanishes(k, units(len(still), {i: 1})) for i in places):
            raise Refused(f"{what} a kink, where the function need not be differentiable")
    def piecewise(self, k, node, arg, u):
        piece, loose = [], self.loose.setdefault(k, bytearray(len(u.lo)))
        levels = [(p * u.den, q) for p, q in node.levels]
        spend(2 * (1 + len(u.lo)) * (1 + len(levels)), u.bits + u.den.bit_length(), node.bits)
        for i, (lo, hi) in enumerate(zip(u.lo, u.hi)):
            below = sum([lo * q > p for p, q in levels])
            if below < len(levels) and hi * levels[below][1] >= levels[below][0]:
                v = self.exactly(arg, [i])
                spend(20 + 4 * len(levels), v.bits + v.den.bit_length(), node.bits)
                gaps = [v.lo[0] * q - p * v.den for p, q in node.levels]
                below = sum([gap > 0 for gap in gaps])
                if 0 in gaps:
                    lead = 0 if self.still(arg)[i] else self.sign(arg, i)
                    if lead: self.felt.add(k)
                    elif node.bends[below]: self.require_constant(arg, [i])
                    loose[i] = not lead  # a smooth breakpoint may be kept
                    below += lead > 0
            piece.append(below)
        return piece
    def sign(self, k, i):
        """Return the sign of entry i of node k less its value at y, along v."""
        for c in self.steps(k):
            spend(10)
            if c.lo[i] > 0 or c.hi[i] < 0: return 1 if c.lo[i] > 0 else -1
            require_exact(c, [i])
        return 0
    def max(self, k, node, arg, u):
        piece = []
        spend(4 * len(u.lo), u.bits)
        for places in node.rows():
            floor = max(u.lo[i] for i in places)
            tied = [i for i in places if u.hi[i] >= floor]
            if len(tied) > 1:
                values = self.exactly(arg, tied).lo
                top = max(values)
                tied = [i for i, value in zip(tied, values) if value == top]
            moving = len(tied) > 1 and not all(self.still(arg)[i] for i in tied)
            for c in self.steps(arg) if moving else []:
                spend(10 + 4 * len(tied), c.bits)
                floor, before = max(c.lo[i] for i in tied), len(tied)
                tied = [i for i in tied if c.hi[i] >= floor]
                if len(tied) < before: self.felt.add(k)
                if len(tied) > 1: require_exact(c, tied)
            best, *same = tied
            gaps = (units(len(u.lo), {best: 1, i: -1}) for i in same)
            if same and not (self.nodes[arg].affine and all(self.vanishes(arg, g) for g in gaps)):
                self.require_constant(arg, tied)
            piece.append(best)
        return piece
    def norm2(self, k, node, arg, u):
        """Return the argument; its direction where it is 0, or too small to be seen."""
        lo, hi = u.lo[:], u.hi[:]
        spend(4 * len(lo))
        for places in node.rows():
            if all(lo[i] <= 0 <= hi[i] for i in places):
                way = self.exactly(arg, places)
                if not any(way.lo):
                    moving = not all(self.still(arg)[i] for i in places)
                    for c in self.steps(arg) if moving else []:
                        way = c.take(places)
                        if any(a > 0 or b < 0 for a, b in zip(way.lo, way.hi)): break
                        require_exact(c, places)
                    else: self.require_constant(arg, places)
                lo[places.start:places.stop], hi[places.start:places.stop] = way.lo, way.hi
        return Vec(lo, hi, 1)
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
def require_exact(v, places):
    if any(v.lo[i] != v.hi[i] for i in places):
        raise Refused("to which side of a kink a direction leads is not decided")

# --- the claim -----------------------------------------------------------------------------------
def check(claim, nodes):
    """Return a sentence that says what is proved, or raise `Refused`."""
    eps, delta, near = claim["eps"], claim["delta"], claim["kind"] == "near"
    weights = claim["weights"].lo  # the denominator cancels
    used = [j for j, a in enumerate(weights) if a > 0]
    if eps < 0 or delta < 0 or not used or min(weights) < 0:
        raise Refused("eps, delta and weights must not be negative, nor all weights 0")
    minus = [-a for a in claim["x"].lo]
    for y in [claim["pivot"]] if near else [claim["vectors"][j] for j in used]:
        gap = y + Vec(minus, minus, claim["x"].den)
        if longer(gap.lo, gap.den, delta):
            raise Refused(f"a point is farther than delta = {show(delta)} from x")
    for soft in (True, False):  # exactly only where rounding leaves it open
        whole, values = units(nodes[0].size, {}), None
        for j in used:
            y, v = (claim["pivot"], claim["vectors"][j]) if near else (claim["vectors"][j], None)
            if not (near and values):
                values, exact_values = [Vec(y.lo, y.hi, y.den, soft)], {0: [y]}
            side = Side(nodes, y, v, values, exact_values)
            whole += side.gradient(len(nodes) - 1, units(1, {0: weights[j]}))
        bound = eps * sum(weights)
        if not longer([max(-a, b) for a, b in zip(whole.lo, whole.hi)], whole.den, bound):
            what = "limits of gradients at the pivot" if near else "gradients"
            return (f"x is ({show(eps)}, {show(delta)})-{claim['kind']} stationary for the function"
                    f" in this file, of {nodes[0].size} variables: {len(used)} {what} prove it")
        if longer([max(a, -b, 0) for a, b in zip(whole.lo, whole.hi)], whole.den, bound): break
    raise Refused(f"the combination of the gradients is not proved to be at most {show(eps)}")
def show(q): return f"{float(q):.9g}" if q < 10**300 else "more than 1e300"

# --- reading: Python's own errors about wrong types count as unreadable, too ----------------------
WHOLE = r"0x[0-9a-f]{1,250000}|[0-9]{1,4000}"
RATIONAL = re.compile(f"(-?(?:{WHOLE}))(?:/({WHOLE}))?")
FLOAT = re.compile(r"(-?)0x([01])(?:\.([0-9a-f]{1,16}))?p([+-][0-9]{1,4})")
def number(text):
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
def numbers(texts, size=None):
    need(isinstance(texts, list) and size in (None, len(texts)), "a list has a wrong length")
    return [number(text) for text in texts]
def natural(value):
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
    node.work, node.columns = node.size * (1 + len(node.of)), 1
    node.affine = op in ("variable", "affine", "add") and all(nodes[a].affine for a in node.of)
    node.flat = op in ("variable", "affine", "add", "max")
    if op == "piecewise": read_pieces(node, data)
    elif op == "affine": read_matrix(node, data)
    elif "columns" in data:
        node.columns = natural(data["columns"])
        need(node.size % node.columns == 0, f"node {k} has rows of a wrong length")
        node.size //= node.columns
    return node
def read_pieces(node, data):
    breakpoints, rows = numbers(data["breakpoints"]), [numbers(p) for p in data["pieces"]]
    need(len(rows) == len(breakpoints) + 1 <= 1000, "the number of pieces is wrong")
    width = max(map(len, rows))
    spend(60 * len(rows) * (width + 1))
    node.levels = [(t.numerator, t.denominator) for t in breakpoints]
    node.bits = max(longest(q.as_integer_ratio()) for row in [breakpoints, *rows] for q in row)
    need(0 < width <= MAX_DEGREE and node.bits < 9999, "a polynomial is empty, or too long")
    rows = [p + [Fraction(0)] * (width - len(p)) for p in rows]
    slopes = [[j * p[j] for j in range(1, width)] or [Fraction(0)] for p in rows]
    node.pieces, node.slopes = ([exact(c) for c in zip(*table)] for table in (rows, slopes))
    node.constant, node.flat = [not any(p[1:]) for p in rows], not any(any(p[2:]) for p in rows)
    need(all(map(operator.lt, breakpoints, breakpoints[1:])), "breakpoints must ascend")
    jumps, node.bends = ([value_at([b - a for a, b in zip(*pair)], t) for t, *pair
                          in zip(breakpoints, table, table[1:])] for table in (rows, slopes))
    need(not any(jumps), "a piecewise function is not continuous")
def value_at(coefficients, t):
    """Return a polynomial at t, times a positive number."""
    v, total, power = exact(coefficients), 0, 1
    bits = longest(t.as_integer_ratio())
    spend(4 * len(v.lo), v.bits + len(v.lo) * bits, bits)
    for a in reversed(v.lo): total, power = total * t.numerator + a * power, power * t.denominator
    return total
def read_matrix(node, data):
    node.columns, width = natural(data["columns"]), natural(data["width"])
    need(node.columns * width == node.size, "a matrix has another width than its argument")
    at = data["at"] if "at" in data else [list(range(width))] * len(data["rows"])
    rows = data["rows"] if "rows" in data else [["1"] * len(places) for places in at]
    need(len(rows) == len(at), "places and rows do not fit")
    node.size, count = natural(len(rows) * node.columns), width + len(at) + sum(map(len, at))
    node.work = node.columns * count
    hold(1100 * count)
    need(all(len(set(indices(p, width))) == len(p) for p in at), "a place comes twice in a row")
    whole = exact([a for row, places in zip(rows, at) for a in numbers(row, len(places))])
    hold(whole.room)
    entries, node.den, node.bits = iter(whole.lo), whole.den, whole.bits
    node.table = [[(k, a) for k, a in zip(p, entries) if a] for p in at]
    node.transposed = [[] for _ in range(width)]
    for i, row in enumerate(node.table):
        for k, a in row: node.transposed[k].append((i, a))
    node.offset = [exact(numbers(data["offset"], node.size))] if "offset" in data else []
def read(path):
    """Return the claim with its evidence, and the nodes of the function."""
    with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
        need(stat.S_ISREG(os.fstat(file.fileno()).st_mode), "not a regular file")
        raw = file.read(MAX_BYTES + 1)
    need(len(raw) <= MAX_BYTES, f"more than {MAX_BYTES} bytes")
    hold(24 * len(raw) + 1200 * sum(map(raw.count, (b",", b"[", b"{"))))  # of what is read
    data = json.loads(raw.decode("utf-8"), object_pairs_hook=distinct, parse_constant=reject,
                      parse_float=reject, parse_int=lambda t: int(t) if len(t) < 16 else reject(t))
    top = {"schema", "version", "claim", "x", "evidence", "function"}
    need(set(data) == top and (data["schema"], data["version"]) == ("goldstein-proof", 1),
         "not the fields of a proof file, or another schema or version")
    claim, evidence, nodes = data["claim"], data["evidence"], []
    need(set(claim) == {"kind", "eps", "delta"}, "not the fields of a claim")
    vectors = {"near": "directions", "goldstein": "points"}[claim["kind"]]
    fields = {"weights", vectors} | ({"pivot"} if claim["kind"] == "near" else set())
    need(set(evidence) == fields, "not the evidence of this kind of claim")
    for k, node in enumerate(data["function"]):
        nodes.append(read_node(node, k, nodes))
    need(nodes and nodes[-1].size == 1, "the last node must be one number")
    d, rows = nodes[0].size, evidence[vectors]
    need(len(rows) == len(evidence["weights"]), "one weight per vector is needed")
    claim |= {"eps": number(claim["eps"]), "delta": number(claim["delta"])}
    claim |= {"x": exact(numbers(data["x"], d)), "weights": exact(numbers(evidence["weights"]))}
    claim |= {"vectors": [exact(numbers(row, d)) for row in rows]}
    claim |= {"pivot": exact(numbers(evidence.get("pivot", ["0"] * d), d))}
    return claim, nodes
def distinct(pairs):
    need(len(dict(pairs)) == len(pairs), "a key comes twice")
    return dict(pairs)
def reject(text): raise Unreadable(f"not a number of a proof file: {text[:40]}")
def main(arguments=None):
    global spent, kept
    spent, kept, arguments = 0.0, 0, sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"): return print(__doc__) or 2
    try: said, code = f"TRUE: {check(*read(arguments[0]))}", 0
    except Refused as why: said, code = f"FALSE: {why}", 1
    except Exception as why:  # a file from a stranger: whatever is wrong with it, it proves nothing
        name = "" if isinstance(why, Unreadable) else f"{type(why).__name__}: "
        said, code = f"UNREADABLE: {name}{str(why)[:200]}", 2
    print(f"{said}.")
    return code
if __name__ == "__main__":
    sys.exit(main())
