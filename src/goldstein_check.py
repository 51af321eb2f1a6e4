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

# ruff: noqa: E401, E701, I001 (at most 500 lines, to be read in one sitting: a tight layout)
# fmt: off
import functools, json, math, operator, os, re, stat, sys
from fractions import Fraction

MAX_BYTES, MAX_SIZE, MAX_BITS = 2**26, 2**22, 2**30  # of the file; entries, bits of a node's value
MAX_DEGREE, BUDGET = 32, 6e11  # of polynomials; about nanoseconds
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
def keep(series):  # bounds the memory
    global kept
    kept += sum(len(v.lo) * (v.bits + 400) for v in series)
    need(kept <= 64 * MAX_BITS, "checking it takes too much memory")
    return series
def spend(count, bits=64, other=64):  # bounds the time: products of numbers of so many bits
    global spent
    spent += count * (100 + (bits >> 5) * (other >> 5))
    need(spent <= BUDGET, "checking it takes too long")
def need(condition, what):
    if not condition: raise Unreadable(what)

# --- vectors of rationals, or of intervals -------------------------------------------------------
class Vec:
    """Numbers in [lo/den, hi/den]; `lo is hi` where all are exact. `soft` ones may be rounded."""
    def __init__(self, lo, hi, den, soft=False):
        if soft and den.bit_length() > LONG:
            top = max((max(abs(a), abs(b)) for a, b in zip(lo, hi)), default=0).bit_length()
            k = PRECISION + max(0, den.bit_length() - top)
            spend(2 * len(lo), den.bit_length(), k)
            lo, hi, den = [(a << k) // den for a in lo], [-((-b << k) // den) for b in hi], 1 << k
        self.lo, self.hi, self.den, self.soft = lo, hi, den, soft
        self.exact = lo is hi
        self.bits = max(map(int.bit_length, lo if self.exact else lo + hi), default=0) + 1
        room = len(lo) * (self.bits + den.bit_length())
        need(len(lo) <= MAX_SIZE and room <= MAX_BITS, "checking it takes too much memory")
    def each(self, function):
        spend(len(self.lo), self.bits)
        lo = function(self.lo)
        return Vec(lo, lo if self.exact else function(self.hi), self.den, self.soft)
    def take(self, places): return self.each(lambda ends: [ends[i] for i in places])
    def total(self, groups):  # of the entries of each group of places
        return self.each(lambda ends: [sum(ends[i] for i in group) for group in groups])
    def known(self, i):  # an entry where it is exact, else None
        spend(1, self.bits, self.den.bit_length())
        return Fraction(self.lo[i], self.den) if self.lo[i] == self.hi[i] else None
    def __mul__(self, other):
        exactly = self.exact and other.exact
        spend((1 if exactly else 4) * len(self.lo), self.bits, other.bits)
        if exactly: lo = hi = list(map(operator.mul, self.lo, other.lo))
        else:
            entries = zip(self.lo, self.hi, other.lo, other.hi, strict=True)
            ends = [(p * r, p * s, q * r, q * s) for p, q, r, s in entries]
            lo, hi = list(map(min, ends)), list(map(max, ends))
        return Vec(lo, hi, self.den * other.den, self.soft or other.soft)
    def __add__(self, other):
        den = math.lcm(self.den, other.den)
        p, q = den // self.den, den // other.den
        spend(2 * len(self.lo), max(self.bits, other.bits), max(p, q).bit_length())
        lo, hi = ([x * p + y * q for x, y in zip(*ends, strict=True)]
                  for ends in ((self.lo, other.lo), (self.hi, other.hi)))
        return Vec(lo, lo if self.exact and other.exact else hi, den, self.soft or other.soft)
    def square(self):
        v = self * self  # a product of an interval with itself is wider than its square
        return v if v.exact else Vec([max(a, 0) for a in v.lo], v.hi, v.den, v.soft)
def exact(numbers):
    den = 1
    spend(len(numbers))
    for q in numbers:
        if q.denominator > 1:
            spend(1, den.bit_length(), q.denominator.bit_length())
            den = math.lcm(den, q.denominator)
            need(len(numbers) * den.bit_length() <= MAX_BITS, "denominators are too long")
    top = [q.numerator * (den // q.denominator) for q in numbers]
    return Vec(top, top, den)
def unit(size, i, value=1): return exact([value * (k == i) for k in range(size)])
def joined(parts):
    den = math.lcm(*(v.den for v in parts))
    lo = [a * (den // v.den) for v in parts for a in v.lo]
    return Vec(lo, [a * (den // v.den) for v in parts for a in v.hi], den, True)

# --- exp, log, roots and reciprocals: integers over 2^Q, bounds from below, or from above if `up` -
def over(top, bottom, up): return -(-top // bottom) if up else top // bottom
def exp_minus(a, up):
    """Bound exp(-a) for a >= 0: a Taylor series at a/2^k, squared k times."""
    if a > 1024: return int(up)
    halvings, k = int(a).bit_length() + 8, 0
    r = over(a.numerator << Q, a.denominator << halvings, not up)
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
def log_of(u, up):
    """Bound log(u) = k log 2 - 2 atanh((1 - f)/(1 + f)) for u = 2^k f, 1/2 <= f <= 1."""
    k = u.numerator.bit_length() - u.denominator.bit_length()
    k += u > Fraction(2) ** k
    z = (1 - u / Fraction(2) ** k) / (1 + u / Fraction(2) ** k)
    part = atanh(over(z.numerator << Q, z.denominator, not up), not up)
    return k * LOG_2[up == (k > 0)] - 2 * part
def root_of(u, up):
    low = math.isqrt((u.numerator << 2 * Q) // u.denominator)
    return low + (up and low * low * u.denominator != u.numerator << 2 * Q)
def reciprocal(u, up): return over(u.denominator << Q, u.numerator, up)
def monotone(v, function, rising=True, least=0):
    """Enclose a monotone function of positive entries; `function(q, up)` bounds it over 2^Q."""
    if any(a <= least for a in v.lo):
        raise Refused("a norm or a logarithm is not proved to have an argument that is positive")
    spend(300 * len(v.lo), Q, Q + v.den.bit_length() + v.bits)
    ends = ((v.lo, False), (v.hi, True)) if rising else ((v.hi, False), (v.lo, True))
    return Vec(*([function(Fraction(a, v.den), up) for a in e] for e, up in ends), 1 << Q, True)
def powers(v, rows):
    """Return exp(u - m) for every entry, m the largest of its row, and all m."""
    spend(300 * len(v.lo), Q, Q + v.den.bit_length() + v.bits)
    tops = [max(v.hi[i] for i in row) for row in rows]
    gaps = [(i, m) for m, row in zip(tops, rows) for i in row]
    lo, hi = ([exp_minus(Fraction(m - ends[i], v.den), up) for i, m in gaps]
              for ends, up in ((v.lo, False), (v.hi, True)))
    return Vec(lo, hi, 1 << Q, True), Vec(tops, tops, v.den, v.soft)
def unit_vector(u):
    """Return u/|u|, and 0 for 0; dividing by the largest entry first is exact."""
    largest = max(max(abs(a), abs(b)) for a, b in zip(u.lo, u.hi))
    if not largest: return u
    u = Vec(u.lo, u.hi, largest, True)
    length = monotone(u.square().total([range(len(u.lo))]), root_of)
    return u * monotone(length, reciprocal, rising=False).take([0] * len(u.lo))

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
def horner(polynomials, piece, u):
    """Evaluate the polynomial of its piece at every entry of a series."""
    *tables, last = [exact(column).take(piece) for column in zip(*polynomials)]
    out = [last]
    for table in reversed(tables): out = add_series(multiply_series(out, u), [table])
    return out

# --- the function --------------------------------------------------------------------------------
class Node:
    """One step, `op` of earlier nodes `of`; `rows` are places of the argument's entries. An affine
    one has rows of pairs (place, integer) over `den`, for a table of `columns`, row by row."""
    def apply(self, v, rows):
        spend((1 + (not v.exact)) * self.columns * self.count, v.bits, self.bits)
        def sums(up, down):
            return [sum([a * (up if a > 0 else down)[k * self.columns + j] for k, a in row])
                    for row in rows for j in range(self.columns)]
        lo = sums(v.lo, v.hi)
        return Vec(lo, lo if v.exact else sums(v.hi, v.lo), v.den * self.den, v.soft)
    def forward(self, args, piece):
        """Return the node's series from those of its arguments."""
        u = args[0]
        match self.op:
            case "affine": return add_series([self.apply(c, self.table) for c in u], [self.offset])
            case "add": return functools.reduce(add_series, args)
            case "multiply": return multiply_series(u, args[1])
            case "piecewise": return horner(self.pieces, piece, u)
            case "max": return [c.take(piece) for c in u]
        if len(u) > 1: raise Refused(f"{self.op} is not a polynomial along a direction")
        match self.op:
            case "norm2": return [monotone(u[0].square().total(self.rows), root_of, least=-1)]
            case "log": return [monotone(u[0], log_of)]
        parts, tops = powers(u[0], self.rows)
        return [monotone(parts.total(self.rows), log_of) + tops]
    def backward(self, g, args, piece):
        """Return the derivatives in the arguments, g being that in the node."""
        match self.op:
            case "affine": return [self.apply(g, self.transposed)]
            case "add": return [g] * len(self.of)
            case "piecewise": return [g * horner(self.slopes, piece, [args[0]])[0]]
            case "multiply": return [g * args[1], g * args[0]]
            case "log": return [g * monotone(args[0], reciprocal, rising=False)]
        owner = [i for i, row in enumerate(self.rows) for _ in row]
        if self.op == "max":
            return [g.total([[i] if piece[i] == k else [] for k, i in enumerate(owner)])]
        if self.op == "norm2":
            ways = [piece.get(i) or args[0].take(row) for i, row in enumerate(self.rows)]
            return [g.take(owner) * joined([unit_vector(way) for way in ways])]
        parts, _ = powers(args[0], self.rows)
        sums = monotone(parts.total(self.rows), reciprocal, rising=False)
        return [g.take(owner) * (parts * sums.take(owner))]
    def still(self, args, piece, loose, vals):
        """Say which entries are constant near a point, the same of the arguments being known."""
        a = args[0]
        match self.op:
            case "affine":
                c = self.columns
                return [all(a[k * c + j] for k, _ in row) for row in self.table for j in range(c)]
            case "add": return list(map(all, zip(*args)))
            case "multiply":
                nil = ([s and v.known(i) == 0 for i, s in enumerate(m)] for m, v in zip(args, vals))
                return [(a and b) or p or q for a, b, p, q in zip(*args, *nil)]
            case "piecewise":
                flat = [not any(p[1:]) for p in self.pieces]
                return [s or (flat[piece[i]] and i not in loose) for i, s in enumerate(a)]
            case "max": return [all(a[k] for k in loose.get(i, [j])) for i, j in enumerate(piece)]
            case "log": return a
        return [all(a[k] for k in row) for row in self.rows]
def ancestors(nodes, k):
    """Return node k and all it depends on, in order."""
    seen, stack = {k}, [k]
    while stack:
        new = set(nodes[stack.pop()].of) - seen
        seen |= new
        stack += new
    spend(len(seen))
    return sorted(seen)

class Side:
    """The function just beside y: on y + t v for all small t > 0, or at y itself if v is None.
    Which piece rules is decided exactly, entry by entry. An entry that is on a kink must leave it
    along v, unless it is constant here (`loose`): then the kink is never crossed. `felt` are the
    nodes that v takes to one side. `values` at y are the same for all v."""
    def __init__(self, nodes, y, v, values, exact_values):
        self.nodes, self.v, self.values, self.exact_values = nodes, v, values, exact_values
        self.pieces, self.loose, self.felt = {}, {}, set()
        self.masks, self.paths = {0: [False] * len(y.lo)}, {0: [y, v]}
        for k, node in enumerate(nodes[1:], 1):
            if node.op in ("piecewise", "max", "norm2"):
                self.pieces[k] = getattr(self, node.op)(k, node, node.of[0], values[node.of[0]])
            if k == len(values):
                values += keep(node.forward([[values[a]] for a in node.of], self.pieces.get(k)))
    def entry(self, k, i):
        """Return the exact value at y of an entry of node k."""
        known = self.values[k].known(i)
        if known is None: known = self.extend(self.exact_values, k)[0].known(i)
        if known is None: raise Refused("on which side of a kink the point lies is not decided")
        return known
    def extend(self, series, k):
        """Compute the series of node k and of all that it depends on."""
        for b in ancestors(self.nodes, k):
            if b not in series:
                args = [series[a] for a in self.nodes[b].of]
                series[b] = keep(self.nodes[b].forward(args, self.pieces.get(b)))
        return series[k]
    def path(self, k, i):
        """Return the coefficients of t, t^2, ... of an entry of node k."""
        return [] if self.v is None else [c.known(i) for c in self.extend(self.paths, k)[1:]]
    def still(self, k):
        """Return which entries of node k are proved to be constant here."""
        for b in ancestors(self.nodes, k) if k not in self.masks else []:
            if b not in self.masks:
                node = self.nodes[b]
                masks, values = zip(*((self.masks[a], self.values[a]) for a in node.of))
                spend(node.size + sum(map(len, masks)))
                self.masks[b] = node.still(masks, self.pieces.get(b), self.loose.get(b), values)
        return self.masks[k]
    def vanishes(self, k, start):
        """Prove that `start` times node k is constant: it is affine here, with derivative 0."""
        flat = all(self.nodes[b].flat and b not in self.felt for b in ancestors(self.nodes, k))
        found = self.gradient(k, start) if flat else start
        return flat and not any(found.lo) and not any(found.hi)
    def require_constant(self, k, places):
        still, what = self.still(k), "a point is on" if self.v is None else "a direction stays on"
        if not all(still[i] or self.vanishes(k, unit(len(still), i)) for i in places):
            raise Refused(f"{what} a kink, where the function need not be differentiable")
    def piecewise(self, k, node, arg, u):
        piece, loose = [], self.loose.setdefault(k, set())
        levels = [(t.numerator * u.den, t.denominator) for t in node.breakpoints]
        spend(2 * len(u.lo) * (1 + len(levels)), u.bits)
        for i, (lo, hi) in enumerate(zip(u.lo, u.hi)):
            below = sum([lo * q > p for p, q in levels])
            if below < len(levels) and hi * levels[below][1] >= levels[below][0]:
                value = self.entry(arg, i)
                below = sum(value > t for t in node.breakpoints)
                if value in node.breakpoints:
                    path = [] if self.still(arg)[i] else self.path(arg, i)
                    lead = next((c for c in path if c), 0)
                    (self.felt.add(k) if lead else loose.add(i))
                    if node.jumps[below] and not lead:  # a smooth breakpoint may be kept
                        self.require_constant(arg, [i])
                    below += lead > 0
            piece.append(below)
        return piece
    def max(self, k, node, arg, u):
        piece, loose, affine = [], self.loose.setdefault(k, {}), self.nodes[arg].affine
        for row, places in enumerate(node.rows):
            floor = max(u.lo[i] for i in places)
            tied = [i for i in places if u.hi[i] >= floor]
            if len(tied) > 1:
                values = [self.entry(arg, i) for i in tied]
                top = max(values)
                tied = [i for i, value in zip(tied, values) if value == top]
            still = len(tied) == 1 or all(self.still(arg)[i] for i in tied)
            paths = [[] if still else self.path(arg, i) for i in tied]
            top = max(paths)
            best, *same = [i for i, path in zip(tied, paths) if path == top]
            gaps = [unit(len(u.lo), best) + unit(len(u.lo), i, -1) for i in same]
            if gaps and not (affine and all(self.vanishes(arg, gap) for gap in gaps)):
                self.require_constant(arg, tied)
                loose[row] = tied
            elif len(gaps) + 1 < len(tied): self.felt.add(k)
            piece.append(best)
        return piece
    def norm2(self, k, node, arg, u):
        piece = {}  # directions of the arguments that are too small to be seen, or 0
        for row, places in enumerate(node.rows):
            if all(u.lo[i] <= 0 <= u.hi[i] for i in places):
                piece[row] = exact([self.entry(arg, i) for i in places])
                if not any(piece[row].lo):
                    moving = not all(self.still(arg)[i] for i in places)
                    steps = zip(*(self.path(arg, i) for i in places)) if moving else []
                    piece[row] = next((exact(s) for s in steps if any(s)), piece[row])
                    if any(piece[row].lo): self.felt.add(k)
                    else: self.require_constant(arg, places)
        return piece
    def gradient(self, root, start):
        """Return the derivative of `start` times a node."""
        found = {root: start}
        for k in range(root, 0, -1):
            if k in found:
                node, args = self.nodes[k], [self.values[a] for a in self.nodes[k].of]
                for a, part in zip(node.of, node.backward(found.pop(k), args, self.pieces.get(k))):
                    found[a] = found[a] + part if a in found else part
        return found.get(0, unit(self.nodes[0].size, -1))

# --- the claim -----------------------------------------------------------------------------------
def check(claim, nodes):
    """Return a sentence that says what is proved, or raise `Refused`."""
    eps, delta, near = claim["eps"], claim["delta"], claim["kind"] == "near"
    used = [j for j, a in enumerate(claim["weights"]) if a > 0]
    if eps < 0 or delta < 0 or not used or min(claim["weights"]) < 0:
        raise Refused("eps, delta and weights must not be negative, nor all weights 0")
    points = [claim["pivot"]] if near else [claim["vectors"][j] for j in used]
    for y in points:
        gap = exact([a - b for a, b in zip(y, claim["x"], strict=True)])
        spend(len(y), gap.bits, gap.bits)
        if sum(a * a for a in gap.lo) > (delta * gap.den) ** 2:
            raise Refused(f"a point is farther than delta = {show(delta)} from x")
    for soft in (True, False):  # exactly only where rounding leaves it open
        whole, values = unit(nodes[0].size, -1), None
        for j in used:
            y, v = (points[0], claim["vectors"][j]) if near else (claim["vectors"][j], None)
            y, v = exact(y), v and exact(v)
            if not (near and values):
                values, exact_values = [Vec(y.lo, y.hi, y.den, soft)], {0: [y]}
            limit = Side(nodes, y, v, values, exact_values).gradient(len(nodes) - 1, unit(1, 0))
            whole += limit * exact([claim["weights"][j]] * nodes[0].size)
        spend(2 * len(whole.lo), whole.bits, whole.bits)
        bound = (eps * whole.den * sum(claim["weights"])) ** 2
        if sum(max(-a, b) ** 2 for a, b in zip(whole.lo, whole.hi)) <= bound:
            what = "limits of gradients at the pivot" if near else "gradients"
            return (f"x is ({show(eps)}, {show(delta)})-{claim['kind']} stationary for the function"
                    f" in this file, of {nodes[0].size} variables: {len(used)} {what} prove it")
        if sum(max(a, -b, 0) ** 2 for a, b in zip(whole.lo, whole.hi)) > bound: break
    raise Refused(f"the combination of the gradients is not proved to be at most {show(eps)}")
def show(q): return f"{float(q):.9g}" if q < 10**300 else "more than 1e300"

# --- reading: Python's own errors about wrong types count as unreadable, too ----------------------
WHOLE = r"0x[0-9a-f]{1,250000}|[0-9]{1,4000}"
RATIONAL = re.compile(f"(-?(?:{WHOLE}))(?:/({WHOLE}))?")
FLOAT = re.compile(r"(-?)0x([01])(?:\.([0-9a-f]{1,16}))?p([+-][0-9]{1,4})")
def number(text):
    found = FLOAT.fullmatch(text)
    if found:
        sign, lead, digits, exponent = found.groups(default="")
        need(abs(int(exponent)) <= 1100, "an exponent is beyond those of float64")
        value = Fraction(int(lead + digits, 16), 16 ** len(digits)) * Fraction(2) ** int(exponent)
        return -value if sign else value
    found = RATIONAL.fullmatch(text) or reject(text)
    spend(1, 8 * len(text), 8 * len(text))
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
    fields = set(data) - {"op", "of"} | (KINDS[op] & {"rows", "at", "offset"})
    node.op, node.of = op, indices(data.get("of", []), k)  # nodes refer to earlier ones only
    count = {"variable": 0, "multiply": 2, "add": max(1, len(node.of))}.get(op, 1)
    right = fields == KINDS[op] and len(node.of) == count and (op == "variable") == (k == 0)
    need(right and len({nodes[a].size for a in node.of}) <= 1, f"node {k} is malformed")
    node.size = nodes[node.of[0]].size if node.of else natural(data["size"])
    node.affine = op in ("variable", "affine", "add") and all(nodes[a].affine for a in node.of)
    node.flat = op in ("variable", "affine", "add", "max")
    if op == "piecewise": read_pieces(node, data)
    elif op == "affine": read_matrix(node, data)
    elif "columns" in data:
        columns = natural(data["columns"])
        need(node.size % columns == 0, f"node {k} has rows of a wrong length")
        node.rows = [range(start, start + columns) for start in range(0, node.size, columns)]
        node.size = len(node.rows)
    return node
def read_pieces(node, data):
    node.breakpoints, rows = numbers(data["breakpoints"]), [numbers(p) for p in data["pieces"]]
    need(len(rows) == len(node.breakpoints) + 1 <= 1000, "the number of pieces is wrong")
    width = max(map(len, rows))
    bits = max(abs(part).bit_length() for row in [node.breakpoints, *rows] for q in row
               for part in (q.numerator, q.denominator))
    need(0 < width <= MAX_DEGREE and bits < 9999, "a polynomial is empty, or too long")
    node.pieces = [p + [Fraction(0)] * (width - len(p)) for p in rows]
    node.slopes = [[j * p[j] for j in range(1, width)] or [Fraction(0)] for p in node.pieces]
    node.flat, node.jumps = not any(any(p[2:]) for p in node.pieces), []
    need(all(map(operator.lt, node.breakpoints, node.breakpoints[1:])), "breakpoints must ascend")
    for k, t in enumerate(node.breakpoints):
        jump, bend = (sum((b - a) * t**j for j, (a, b) in enumerate(zip(table[k], table[k + 1])))
                      for table in (node.pieces, node.slopes))
        need(jump == 0, "a piecewise function is not continuous")
        node.jumps.append(bend)
def read_matrix(node, data):
    node.columns, width = natural(data["columns"]), natural(data["width"])
    need(node.columns * width == node.size, "a matrix has another width than its argument")
    at = data["at"] if "at" in data else [list(range(width))] * len(data["rows"])
    rows = data["rows"] if "rows" in data else [["1"] * len(places) for places in at]
    need(len(rows) == len(at), "places and rows do not fit")
    need(all(len(set(indices(p, width))) == len(p) for p in at), "a place comes twice in a row")
    whole = exact([a for row, places in zip(rows, at) for a in numbers(row, len(places))])
    node.size, node.den, node.bits = natural(len(rows) * node.columns), whole.den, whole.bits
    entries, node.count = iter(whole.lo), len(whole.lo) + len(rows) + width
    node.table = [[(k, a) for k, a in zip(p, entries) if a] for p in at]
    node.transposed = [[] for _ in range(width)]
    for i, row in enumerate(node.table):
        for k, a in row: node.transposed[k].append((i, a))
    node.offset = exact(numbers(data.get("offset", ["0"] * node.size), node.size))
def read(path):
    """Return the claim with its evidence, and the nodes of the function."""
    with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
        need(stat.S_ISREG(os.fstat(file.fileno()).st_mode), "not a regular file")
        raw = file.read(MAX_BYTES + 1)
    need(len(raw) <= MAX_BYTES, f"more than {MAX_BYTES} bytes")
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
    claim |= {"x": numbers(data["x"], d), "vectors": [numbers(row, d) for row in rows]}
    claim |= {"weights": numbers(evidence["weights"]), "pivot": numbers(evidence.get("pivot", []))}
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
