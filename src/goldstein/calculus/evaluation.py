"""A program in float64: values, gradients, and whether its kinks are far enough to be told.

What is to be done is written once, as Python source over NumPy, and compiled; small nodes of one
kind that do not depend on each other make one step. Values stay in local variables of the source.
Searches that choose the pieces themselves ask on a tape, on which the values of all nodes stand.
Proofs do not ask here.

Rows of affine parts of a function, exactly: asked from the program of the checker.
"""

import re
from collections.abc import Callable, Sequence
from contextvars import copy_context
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import exp, inf
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from goldstein.calculus.elementary import ELEMENTARY, Foreign
from goldstein.checker import nodes as kinds
from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.checker.enclosed.irrational import Norm2, Smooth
from goldstein.checker.enclosed.part import Part
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Node, Piecewise
from goldstein.checker.rationals import nearest_float
from goldstein.checker.rounding import UNIT
from goldstein.checker.sides import Program

#: Nodes of up to so many entries are evaluated together.
SMALL = 64

#: The pieces of u^2.
SQUARE = ((Fraction(0), Fraction(0), Fraction(1)),)

#: By number of a node the pieces of its entries, as the checker has them.
Pieces = dict[int, Any]

#: Values of the steps, and pieces that were needed to find them.
States = tuple[Any, ...]

#: NumPy keeps its warnings in the context; to enter one is quicker than `np.errstate`.
_QUIET = copy_context()
_QUIET.run(np.seterr, all="ignore")


def has_kinks(node: Node) -> bool:
    """Has a node kinks of its own?"""
    if isinstance(node, kinds.Max):
        return node.columns > 1
    if isinstance(node, kinds.Order):
        return node.matters(0, node.columns)
    return isinstance(node, Norm2) or (isinstance(node, kinds.Piecewise) and any(node.jumps))


class Step(NamedTuple):
    """Nodes that are evaluated together: where they stand, and source for them.

    In the source S is the value of the step, P the derivative in it, F the same as an array with an
    entry for each of S, K as a column, Q the pieces, O the order of its arguments; V and E say how
    large S is, and how wrong; U7 are entries of other steps (the seventh list of places), X7 the
    same as a vector even if it is one number, C7 coefficients that depend on the piece.

    Attributes
    ----------
    back : list of (places, source, plain)
        What is added to derivatives; plain if it is one number wherever P is one.
    early : bool
        Are the pieces found with the value?
    alias : bool
        Does it only name a row of entries of another step? It has no value of its own.
    """

    out: slice
    members: list[int]
    forward: str
    back: list[tuple[Indices, str, bool]]
    bound: str
    sides: str = ""
    before: str = ""
    clear: str = ""
    early: bool = False
    alias: bool = False


class Evaluation:
    """Nodes in float64.

    Parameters
    ----------
    nodes : sequence of Node
        The first is the variable; each depends on earlier ones. The last is the function.

    Attributes
    ----------
    at : list of slice
        Where the values of a node stand on a tape.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> found = Evaluation(sum(abs(Variable(2))).program().nodes)
    >>> t = found.tape(np.array([3.0, -4.0]))
    >>> t[found.at[2]], found.gradient(t)
    (array([7.]), array([ 1., -1.]))
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.last, self.dim = len(self.nodes) - 1, self.nodes[0].size
        with np.errstate(all="ignore"):
            self._writer = _Writer(self.nodes)
        self.at, self.steps, self.size = self._writer.at, self._writer.steps, self._writer.size
        self._forward, self._slopes = self._writer.compiled()
        #: Where the value of the last node is among the states.
        self.end = sum(not step.alias for step in self.steps)
        self._foreign = any(isinstance(node, Foreign) for node in self.nodes)

    def _quietly(self, function: Callable[..., Any], *args: Any) -> Any:
        if self._foreign:  # user code has a context of its own
            with np.errstate(all="ignore"):
                return function(*args)
        return _QUIET.copy().run(function, *args)

    def states(self, x: Vector) -> States:
        """Return the values of all steps at a point."""
        return self._quietly(self._forward, x[0] if self.dim == 1 else x.copy())

    def slopes(self, states: States) -> tuple[float, Vector] | None:
        """Return a bound of all values, and the gradient; None if errors may hide a side."""
        return self._quietly(self._slopes, *states)

    def on_tape(self, states: States) -> Vector:
        """Return the values of all nodes."""
        t = np.empty(self.size)
        t[: self.dim] = states[0]
        for step, state in zip((step for step in self.steps if not step.alias), states[1:]):
            t[step.out] = state
        return t[self._writer.source]

    def tape(self, x: Vector) -> Vector:
        """Return the values of all nodes at a point."""
        return self.on_tape(self.states(x))

    def gradient(self, t: Vector, pieces: Pieces | None = None) -> Vector:
        """Return the gradient of the last node: of given pieces, or those nearest in float64."""
        return self.cotangents(t, pieces)[: self.dim].copy()

    def cotangents(
        self, t: Vector, pieces: Pieces | None = None, k: int = -1, start: Any = 1.0,
        stops: frozenset[int] = frozenset(),
    ) -> Vector:  # fmt: skip
        """Return the derivatives of start . node k in all nodes, but for those below `stops`."""
        g, chosen = np.zeros(self.size), self._chosen(t, pieces)
        g[self.at[k]] = start
        with np.errstate(all="ignore"):
            for step, back in zip(reversed(self.steps), reversed(self._tape_source[1])):
                if step.members[0] not in stops and g[step.out].any():
                    back(t, g, *chosen)
        return g

    def rows(self, k: int, entries: Sequence[int], t: Vector, pieces: Pieces | None) -> Matrix:
        """Return the derivatives of some entries of a node in the variable."""
        node, some = self.nodes[k], np.asarray(entries, dtype=np.intp)
        if k == 0:
            return np.eye(self.dim)[some]
        if isinstance(node, kinds.Affine) and node.of == (0,) and node.columns == 1:
            found = node.matrix[some]
            rows: Matrix = np.array(found.toarray() if sparse.issparse(found) else found)
            return rows if node.divisor is None else rows / node.divisor[some, None]
        starts = (np.arange(node.size) == entry for entry in some)
        found = [self.cotangents(t, pieces, k, start)[: self.dim] for start in starts]
        return np.array(found).reshape(len(some), self.dim)

    def pieces(self, t: Vector) -> Pieces:
        """Return the pieces that float64 sees; entries on a breakpoint get the lower one."""
        q, _ = self._chosen(t, None)
        found: Pieces = {}
        for k, node in enumerate(self.nodes):
            if isinstance(node, kinds.Piecewise | kinds.Max):
                found[k] = q[self.at[k]] - self._writer.shift.get(k, 0)
            elif isinstance(node, Norm2):
                zero = np.flatnonzero(~node.rows(t[self.at[node.of[0]]]).any(axis=1)).tolist()
                found[k] = dict.fromkeys(zero, np.ones(node.columns))
            elif isinstance(node, kinds.Order):
                found[k] = {0: (0, _order(t[self.at[node.of[0]]], node.columns).tolist())}
        return found

    @cached_property
    def _tape_source(self) -> tuple[Callable[..., None], list[Callable[..., None]]]:
        return self._writer.compiled_on_tape()

    def _chosen(self, t: Vector, pieces: Pieces | None) -> tuple[Indices, dict[int, Any]]:
        """Return the pieces on a tape, and by place the directions out of the kinks of norms."""
        q, directions = np.zeros(self.size, dtype=np.intp), dict[int, Any]()
        if pieces is None:
            with np.errstate(all="ignore"):
                self._tape_source[0](t, q)
        for k, node in enumerate(self.nodes):
            piece, at = (pieces or {}).get(k), self.at[k]
            if isinstance(node, kinds.Order):
                u = t[self.at[node.of[0]]]
                order = _order(u, node.columns) if piece is None else node.order(piece)
                directions[at.start] = order
            elif isinstance(piece, dict):
                directions |= {at.start + row: _floats(v) for row, v in piece.items()}
            elif piece is not None and at.stop:
                q[at] = piece + self._writer.shift.get(k, 0)
        return q, directions

    @cached_property
    def relied_on(self) -> Indices:
        """Places of the values, not only pieces, on which the gradient depends."""
        relied: set[int] = set()
        for k in range(self.last, -1, -1):
            if k in relied or not self.nodes[k].flat:
                relied.update(self.nodes[k].of)
        places = (np.arange(self.size)[self.at[k]] for k in sorted(relied))
        return np.concatenate([np.zeros(0, dtype=np.intp), *places])


def _floats(numbers: Any) -> Vector:
    """Return rationals in float64; of a direction, its largest entry about 1."""
    if isinstance(numbers, Exact):
        largest = max(map(abs, numbers.top.tolist()))
        return np.array([a / largest for a in numbers.top.tolist()])
    if hasattr(numbers, "mid"):
        numbers = numbers.mid
    return np.array([nearest_float(q) for q in numbers], dtype=np.float64)


# --- writing ---------------------------------------------------------------------------------


class _Term(NamedTuple):
    """Entries of a node, by their numbers, perhaps times factors; and where they are added."""

    node: int
    entries: Indices
    factors: Vector | None
    rows: Indices


_NAMES = ("absolute", "maximum", "minimum", "exp", "log", "sin", "cos", "tanh", "arctan", "sqrt",
          "hypot", "searchsorted", "dot", "logaddexp", "count_nonzero", "broadcast_to", "sort",
          "zeros", "full", "where", "copysign", "concatenate")  # fmt: skip
_TOKENS = re.compile(r"\b(?:([SPFKQOVE])|([UXC])(\d+))\b")


class _Writer:
    """The steps of a program, as source."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        uses = np.bincount(list(chain(*(n.of for n in nodes))), minlength=len(nodes))
        #: Sums of entries of nodes, each perhaps times a number; and what is done in one step with
        #: the nodes below: sums of squares, pseudo-Huber losses.
        self.terms: dict[int, list[_Term]] = {}
        self.fused: dict[int, int] = {}
        picks = {k: pick for k, node in enumerate(nodes) if (pick := _picked(node)) is not None}
        hidden: set[int] = set()
        for k, node in enumerate(nodes):
            if k in picks and picks[k].rows.size == node.size:
                self.terms[k] = [picks[k]]
            elif isinstance(node, kinds.Add):
                inside = {a for a in node.of if uses[a] == 1 and _is_bare(nodes[a]) and a in picks}
                terms = [picks[a] if a in inside else _whole(a, nodes) for a in node.of]
                rows = np.concatenate([term.rows for term in terms])
                whole = all(term.rows.size == node.size for term in terms)
                if not whole and not np.array_equal(rows, np.arange(node.size)):
                    inside, terms = set(), [_whole(a, nodes) for a in node.of]
                hidden |= inside
                self.terms[k] = terms
            else:
                inner = _fused(k, nodes, uses)
                hidden |= set(inner)
                self.fused |= {k: nodes[inner[-1]].of[0]} if inner else {}
        self.env: dict[str, Any] = {name: getattr(np, name) for name in _NAMES} | {
            "add_at": np.add.at, "total": np.add.reduce, "inf": inf, "lengths": _lengths,
            "units": _units, "order": _order, "top": _top, "low": _low, "directions": {},
            "scalar_exp": lambda v: exp(v) if v < 700.0 else inf,
        }  # fmt: skip
        #: Lists of places and of coefficients that source speaks of by number.
        self.lists: list[Any] = []
        #: Of a Max, where its arguments begin among those of its step.
        self.shift: dict[int, int] = {}
        self.at: list[slice] = [slice(0, 0)] * len(nodes)
        self.at[0], self.size = slice(0, nodes[0].size), nodes[0].size
        self.owner = np.zeros(nodes[0].size, dtype=np.intp)  # of each place: the step, from 1 on
        #: Of each place, the one that it is a copy of.
        self.source = np.arange(self.size)
        self.spans = [self.at[0]]
        self.steps: list[Step] = []
        for members in self._groups(hidden):
            for k in members:
                self.at[k] = slice(self.size, self.size + nodes[k].size)
                self.size += nodes[k].size
            more = np.full(self.size - self.owner.size, len(self.steps) + 1)
            self.owner = np.concatenate([self.owner, more])
            self.source = np.concatenate([self.source, np.arange(self.source.size, self.size)])
            self.spans.append(slice(self.at[members[0]].start, self.size))
            k = members[0]
            kind = "_sum" if k in self.terms else f"_{nodes[k].name}{'_fused' * (k in self.fused)}"
            self.steps.append(getattr(self, kind)(members))

    def _groups(self, hidden: set[int]) -> list[list[int]]:
        """Return nodes of one kind and depth together, if they are small; in order of depth."""
        depth, groups = [0] * len(self.nodes), dict[Any, list[int]]()
        for k, node in enumerate(self.nodes):
            of = [t.node for t in self.terms[k]] if k in self.terms else node.of
            of = [self.fused[k]] if k in self.fused else of
            depth[k] = 1 + max((depth[a] for a in of), default=-1)
            if k and k not in hidden:
                alike = self._alike(k, node) if node.size <= SMALL else None
                groups.setdefault((depth[k], k if alike is None else alike), []).append(k)
        return [groups[key] for key in sorted(groups, key=lambda key: key[0])]

    def _alike(self, k: int, node: Node) -> Any:
        """Return what nodes that can be evaluated together have in common; None for none."""
        if isinstance(node, kinds.Piecewise):
            return node.breakpoints, node.pieces, k in self.fused
        if isinstance(node, Smooth):
            return node.function.name
        if isinstance(node, kinds.Rowwise):
            return type(node), node.columns
        if k in self.terms:
            if any(term.rows.size != node.size for term in self.terms[k]):
                return None
            shifts = (getattr(node, name, None) is None for name in ("offset", "divisor"))
            return *shifts, *(term.factors is None for term in self.terms[k])
        entries = isinstance(node, kinds.Product) and node.inner == 1 and node.shape == (1, 1)
        return kinds.Product if entries else None

    # --- source --------------------------------------------------------------------------------

    def compiled(self) -> list[Callable[..., Any]]:
        """Return what finds values and pieces, and what finds the gradient from these."""
        steps = [(n, step) for n, step in enumerate(self.steps, 1) if not step.alias]
        names = ["s0", *(f"s{n}" for n, _ in steps), *(f"q{n}" for n, step in steps if step.early)]
        back = _Accumulation(self).source()
        used = set(re.findall(r"\bq\d+", "\n".join(back)))
        forward, clear = list[str](), ["v0 = float(top(s0))", "e0 = 0.0"]
        for n, step in steps:
            late = not step.early and f"q{n}" in used
            forward += [self.local(n, text) for text in (step.sides * step.early, step.forward)]
            clear += [self.local(n, text) for text in (step.sides * late, step.clear, step.bound)]
        sizes = " + ".join(f"v{n}" for n in (0, *(n for n, _ in steps)))
        clear = _needed(clear)
        return self._executed({
            "forward(s0)": [*forward, f"return {', '.join(names)},"],
            f"slopes({', '.join(names)})": [*clear, *back, f"return {sizes}, g0"],
        })  # fmt: skip

    def compiled_on_tape(self) -> tuple[Callable[..., None], list[Callable[..., None]]]:
        """Return what finds pieces, and the steps back, where values t, pieces q and derivatives g
        stand on tapes."""
        sides, bodies = list[str](), dict[str, list[str]]()
        for n, step in enumerate(self.steps, 1):
            if step.sides:
                sides += [self.local(n, step.sides), f"{self._on_tape('q', n)} = q{n}"]
            f = f"full(1, g{n})" if self._extent(n) == 1 else f"g{n}"
            lines = [self.local(n, step.before, f"g{n}", f, True)]
            for places, text, _ in step.back:
                lines += [self.added("g", places, self.local(n, text, f"g{n}", f, True))]
            bodies[f"back{n}(t, g, q, directions)"] = self._read_first("sqg", lines)
        found, *back = self._executed({"sides(t, q)": self._read_first("s", sides)} | bodies)
        return found, back

    def _on_tape(self, letter: str, n: int) -> str:
        span = self.spans[n]
        place = str(span.start) if self._extent(n) == 1 else f"{span.start}:{span.stop}"
        return f"{'t' if letter == 's' else letter}[{place}]"

    def _read_first(self, letters: str, lines: list[str]) -> list[str]:
        """Return lines after others that read from tapes what they speak of."""
        names = sorted(set(re.findall(rf"\b([{letters}])(\d+)\b", "\n".join(lines))))
        return [*(f"{a}{n} = {self._on_tape(a, int(n))}" for a, n in names), *lines]

    def _extent(self, n: int) -> int:
        return self.spans[n].stop - self.spans[n].start

    def _executed(self, bodies: dict[str, list[str]]) -> list[Callable[..., Any]]:
        source = [
            "\n    ".join([f"def {head}:", *chain(*(b.split("\n") for b in body if b)), "pass"])
            for head, body in bodies.items()
        ]
        exec(compile("\n".join(source), "<expression>", "exec"), self.env)
        return [self.env[head.split("(")[0]] for head in bodies]

    def local(self, n: int, text: str, p: str = "", f: str = "", given: bool = False) -> str:
        """Return source of a step over local variables; of pieces that are given, or its own."""
        own = {letter: f"{letter.lower()}{n}" for letter in "SQOVE"} | {"P": p, "F": f}
        own["K"] = p if f != p else f"{p}[:, None]"
        if given:
            own["O"] = f"directions[{self.spans[n].start}]"

        def read(found: re.Match[str]) -> str:
            letter, kind, which = found.groups()
            if letter:
                return own[letter]
            if kind == "C":
                return self.local(n, self._by_piece(self.lists[int(which)], given))
            return self.read(self.lists[int(which)], kind == "X")

        return _TOKENS.sub(read, text)

    def added(self, g: str, index: Indices, what: str, sign: str = "+=") -> str:
        """Return source that adds derivatives at places of an array."""
        name = str(index[0]) if index.shape == (1,) else self.span(index)
        if index.size == 1 or ":" in name or np.unique(index).size == index.size:
            if sign == "+=" and re.fullmatch(r"-\w+", what):
                return f"{g}[{name}] -= {what[1:]}"
            return f"{g}[{name}] {sign} {what}"
        # NumPy's add.at reads beyond the end of values that it should broadcast.
        return f"add_at({g}, {name}, broadcast_to({what}, {index.shape}))"

    def _name(self, value: Any) -> str:
        """Return source for a number, or the name of a constant; an array of one number is it."""
        if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1:
            value = float(value[0]) if value.size and (value == value[0]).all() else value
        return repr(value) if isinstance(value, float) else self._constant(value)

    def _constant(self, value: Any) -> str:
        """Return the name of a constant."""
        name = f"c{len(self.env)}"
        self.env[name] = value
        return name

    def span(self, places: Indices) -> str:
        """Return source for an index."""
        if places.ndim == 1 and places.size and (np.diff(places) == 1).all():
            return f"{places[0]}:{places[-1] + 1}"
        return self._name(places)

    def read(self, places: Indices, vector: bool) -> str:
        """Return source for entries of local variables; one is a number, unless as a vector."""
        owners = np.unique(self.owner[places]).tolist()
        sizes = [self.spans[o].stop - self.spans[o].start for o in owners]
        ends = np.cumsum([0, *sizes])
        if not owners:
            return f"zeros({places.shape})"
        index = places + np.array([e - self.spans[o].start for o, e in zip(owners, ends)])[
            np.searchsorted(owners, self.owner[places])]  # fmt: skip
        base, whole = f"s{owners[0]}", places.ndim == 1 and index.size == ends[-1]
        if len(owners) > 1:
            base = ", ".join(f"s{o}" + ".reshape(1)" * (n == 1) for o, n in zip(owners, sizes))
            base = f"concatenate(({base}))"
        elif ends[-1] == 1:
            shaped = f"{base}.reshape(1)" if vector else base
            return shaped if whole else f"full({places.shape}, {base})"
        if whole and (np.diff(index) == 1).all():
            return base
        if index.shape == (1,) and not vector:
            return f"{base}[{index[0]}]"
        return f"{base}[{self.span(index)}]"

    def _list(self, kind: str, value: Any) -> str:
        self.lists.append(value)
        return f"{kind}{len(self.lists) - 1}"

    def _args(self, members: list[int], j: int = 0) -> Indices:
        return np.concatenate([self.source[self.at[self.nodes[k].of[j]]] for k in members])

    def _size(self, places: Indices) -> tuple[str, str]:
        """Return source for the largest size v, and error e, of what stands at places."""
        owners = np.unique(self.owner[places]).tolist() or [0]
        v, e = (", ".join(f"{letter}{n}" for n in owners) for letter in "ve")
        return (v, e) if len(owners) == 1 else (f"max({v})", f"max({e})")

    def _step(
        self, members: list[int], forward: str, back: list[tuple[Indices, str, bool]],
        size: str, error: str, terms: int, **more: Any,
    ) -> Step:  # fmt: skip
        """Return a step whose values are rounded `terms` times; see `Step` for what else it has."""
        bound = f"V = {size}\nE = {error} + {1.1 * (terms + 2) * UNIT!r} * V + {2.0**-1000!r}"
        return Step(self.spans[-1], members, forward, back, bound, **more)

    # --- the kinds -----------------------------------------------------------------------------

    def _sum(self, members: list[int]) -> Step:
        """Sums of entries, each perhaps times a number, plus a number, divided by one."""
        columns = [list(column) for column in zip(*(self.terms[k] for k in members))]
        if len(columns) > 1 and sum(c[0].rows.size for c in columns) == self.nodes[members[0]].size:
            columns = [[column[0] for column in columns]]
        places = [
            np.concatenate([self.source[self.at[t.node]][t.entries] for t in column])
            for column in columns
        ]
        factors = [
            None if all(t.factors is None for t in column) else np.concatenate(
                [np.ones(t.entries.size) if t.factors is None else t.factors for t in column])
            for column in columns
        ]  # fmt: skip
        gains = dict[tuple[str, str], float]()
        for f, p in zip(factors, places):
            gain = 1.0 if f is None else float(np.abs(f).max(initial=0.0))
            gains[self._size(p)] = gains.get(self._size(p), 0.0) + gain
        scaled = ([_times(gain, part) for part in pair] for pair, gain in gains.items())
        size, error = map(" + ".join, zip(*scaled))
        if len(places) > 3 and not any(f is not None for f in factors):
            table = np.array(places)
            table = table.ravel() if table.shape[1] == 1 else table
            forward, back = f"total({self._list('X', table)})", [(table, "")]
        else:
            times = ["" if f is None else f" * {self._name(f)}" for f in factors]
            forward = " + ".join(f"{self._list('U', p)}{f}" for p, f in zip(places, times))
            forward = re.sub(r"\+ (U\d+) \* -1.0", r"- \1", forward)
            back = list(zip(places, times))
        return self._shifted(members, forward, back, size, error, len(places))

    def _shifted(
        self, members: list[int], forward: str, back: list[tuple[Indices, str]], size: str,
        error: str, terms: int, through: str = "{}",
    ) -> Step:  # fmt: skip
        """Add the offset and the divisor of affine nodes; derivatives are P times something."""
        offset, divisor = (
            None if getattr(self.nodes[members[0]], name, None) is None
            else np.concatenate([getattr(self.nodes[k], name) for k in members])
            for name in ("offset", "divisor")
        )  # fmt: skip
        p = "P" if through == "{}" else "F"
        if offset is not None:
            start = self._name(offset)
            turned = re.fullmatch(r"(U\d+) \* -1.0", forward)
            forward = f"{start} - {turned[1]}" if turned else f"{forward} + {start}"
            size += f" + {float(np.abs(offset).max(initial=0.0))!r}"
        if divisor is not None:
            reciprocal = self._name(1.0 / divisor)
            least = float(np.abs(divisor).min(initial=inf))
            forward, p = f"({forward}) * {reciprocal}", f"({p} * {reciprocal})"
            size, error = f"({size}) / {least!r}", f"({error}) / {least!r}"
        sources = [(places, through.format(p + times)) for places, times in back]
        made = [(places, text, not re.search(r"\bc\d", text)) for places, text in sources]
        same = re.fullmatch(r"U(\d+)", forward) and members[0] != len(self.nodes) - 1
        alias = bool(same) and ":" in self.span(back[0][0])
        if alias:
            self.source[self.spans[-1]] = back[0][0]
        return self._step(members, f"S = {forward}", made, size, error, terms + 3, alias=alias)

    def _affine(self, members: list[int]) -> Step:
        node: Any = self.nodes[members[0]]
        places, matrix, columns = self._args(members), node.matrix, node.columns
        u, terms, gain = self._list("X", places), matrix.shape[1], _row_sum(matrix)
        v, e = (_times(gain, s) for s in self._size(places))
        back, through = [(places, "")], "{}"
        if isinstance(matrix, np.ndarray) and matrix.shape[0] == columns == 1:
            row = self._name(matrix[0])
            ones, back = row == "1.0", [(places, "" if row == "1.0" else f" * {row}")]
            forward = f"total({u})" if ones else f"dot({self._constant(matrix[0].copy())}, {u})"
        else:
            name, turned = self._name(matrix), self._name(matrix.T)
            tall = "" if columns == 1 else f".reshape(-1, {columns})"
            flat = "" if columns == 1 else ".ravel()"
            dense = isinstance(matrix, np.ndarray) and columns == 1
            forward = f"dot({name}, {u})" if dense else f"({name} @ {u}{tall}){flat}"
            forward += "[0]" * (node.size == 1)
            through = f"({turned} @ ({{}}){tall}){flat}" + "[0]" * (places.size == 1)
        return self._shifted(members, forward, back, v, e, terms, through)

    def _affine_fused(self, members: list[int]) -> Step:
        """The sum of squares."""
        places = self.source[self.at[self.fused[members[0]]]]
        u, (v, e), n = self._list("U", places), self._size(places), float(places.size)
        back = [(places, f"{u} * P * 2.0", False)]
        error = f"{2.1 * n!r} * ({v} + {e}) * {e}"
        return self._step(
            members, f"S = dot({u}, {u})", back, f"{n!r} * {v} * {v}", error, places.size + 2
        )

    def _product(self, members: list[int]) -> Step:
        node: Any = self.nodes[members[0]]
        (n, m), k, both = node.shape, node.inner, [self._args(members, j) for j in (0, 1)]
        (va, ea), (vb, eb) = map(self._size, both)
        size = _times(k, f"{va} * {vb}")
        error = _times(k, f"({va} * {eb} + {vb} * {ea})")
        if n == m == 1 and 1 in (k, node.batch):
            a, b = (self._list("U", p) for p in both)
            forward = f"{a} * {b}" if k == 1 else f"dot({a}, {b})"
            parts = f"P * {b}", f"P * {a}"
        else:
            batch = f"{node.batch}, " if node.batch > 1 else ""
            a, b, p = (
                f"{name}.reshape({batch}{i}, {j})"
                for name, i, j in (
                    (self._list("X", both[0]), n, k), (self._list("X", both[1]), k, m), ("F", n, m))
            )  # fmt: skip
            forward, turn = f"({a} @ {b}).ravel()" + "[0]" * (node.size == 1), "swapaxes(-1, -2)"
            one, two = ("[0]" * (places.size == 1) for places in both)
            parts = f"({p} @ {b}.{turn}).ravel(){one}", f"({a}.{turn} @ {p}).ravel(){two}"
        back = [(places, part, False) for places, part in zip(both, parts)]
        # A product of two errors is less than either, or nothing is known.
        return self._step(members, f"S = {forward}", back, size, f"2.0 * {error}", k)

    def _piecewise(self, members: list[int]) -> Step:
        node: Any = self.nodes[members[0]]
        places, levels = self._args(members), _floats(node.breakpoints)
        u, (v, e) = self._list("U", places), self._size(places)
        values, slopes = (
            [list(map(nearest_float, piece)) for piece in table]
            for table in (node.pieces, node.slopes)
        )
        sides = f"Q = {u} > {float(levels[0])!r}" if len(levels) == 1 else ""
        sides = f"Q = searchsorted({self._name(levels)}, {u})" if len(levels) > 1 else sides
        table = [[self._coefficient(c, levels, u) for c in zip(*some)] for some in (values, slopes)]
        slope = _horner(table[1], u)
        lines = [_horner(map(repr, piece), u) for piece in values]
        size, early = f"absolute({u}{{}})", False
        if values == [[0.0, -1.0], [0.0, 1.0]] and not levels.any():
            forward, size = f"absolute({u})", "S"
        elif len(levels) == 1 and node.flat:
            larger = "maximum" if node.jumps[0] >= 0 else "minimum"
            forward = f"{larger}({', '.join(lines)})"
        else:
            forward, early = _horner(table[0], u), bool(sides)
        if not re.search(r"[UC]\d", forward):  # a constant
            forward = f"full({places.size}, {forward})" + "[0]" * (places.size == 1)
        tests = [
            f"if not low({size.format(f' - {t!r}' if t else '')}) > "
            f"2.0 * {e}{f' + {8 * UNIT * abs(t)!r}' if t else ''}: return None"
            for t, jump in zip(levels.tolist(), node.jumps) if jump
        ]  # fmt: skip
        wide = 2 * UNIT * float(np.abs(levels).max(initial=0.0))
        off = f"({e} + {wide!r})" if wide else e
        error = f"3.0 * {_largest(slopes, f'({v} + {e})')} * {off}"
        return self._step(
            members, f"S = {forward}",
            [(places, f"P * {slope}", not re.search(r"[UC]\d", slope))], _largest(values, v),
            error, 2 * len(values[0]), sides=sides, clear="\n".join(tests), early=early,
        )  # fmt: skip

    def _coefficient(self, numbers: Sequence[float], levels: Vector, u: str) -> str:
        alike = len(set(numbers)) == 1
        return repr(numbers[0]) if alike else self._list("C", (numbers, levels, u))

    def _by_piece(self, coefficients: Any, given: bool) -> str:
        """Return source for coefficients by piece, over local variables."""
        numbers, levels, u = coefficients
        if given or len(levels) > 1:
            return f"{self._constant(np.array(numbers))}[Q]"
        if numbers == (0.0, 1.0):
            return "Q"
        signs = numbers == (-1.0, 1.0) and not levels[0]
        return f"copysign(1.0, {u})" if signs else f"where(Q, {numbers[1]!r}, {numbers[0]!r})"

    def _piecewise_fused(self, members: list[int]) -> Step:
        """s^2 (sqrt(1 + (u/s)^2) - 1), where u/s may be too large."""
        (smooth,) = self.nodes[members[0]].of
        scale: Any = self.nodes[self.nodes[smooth].of[0]]
        s = repr(nearest_float(1 / scale.pieces[0][1]))
        places = np.concatenate([self.source[self.at[self.fused[k]]] for k in members])
        u, (v, e) = self._list("U", places), self._size(places)
        back = [(places, f"P * ({s} * ({u} / hypot({s}, {u})))", False)]
        forward = f"S = {s} * ({u} * ({u} / ({s} + hypot({s}, {u}))))"
        return self._step(members, forward, back, f"{s} * {v}", f"{s} * {e}", 8)

    def _smooth(self, members: list[int]) -> Step:
        node: Any = self.nodes[members[0]]
        places = self._args(members)
        u, (v, e) = self._list("U", places), self._size(places)
        value, slope, size, error = (
            text.format(u=u, v=v, e=e) for text in ELEMENTARY[node.function.name][:4]
        )
        back = [(places, f"P * ({slope})", False)]
        return self._step(members, f"S = {value}", back, size, error, 8)

    def _rowwise(self, members: list[int]) -> tuple[Indices, str, str, str, int, str]:
        places, columns = self._args(members), self.nodes[members[0]].columns  # type: ignore[attr-defined]
        rows, one = f"{self._list('X', places)}.reshape(-1, {columns})", places.size == columns
        return places, rows, *self._size(places), columns, "[0]" * one

    def _logsumexp(self, members: list[int]) -> Step:
        places, u, v, e, columns, one = self._rowwise(members)
        lift = "u - u.max(axis=1, keepdims=True)"
        forward = f"u = {u}\nS = (u.max(axis=1) + log(total(exp({lift}), axis=1))){one}"
        if columns == 2:
            forward = f"u = {u}\nS = logaddexp(u[:, 0], u[:, 1]){one}"
        back = "(w * (F / total(w, axis=1))[:, None]).ravel()" + "[0]" * (places.size == 1)
        return self._step(
            members, forward, [(places, back, False)], f"{v} + {float(columns)!r}", e, columns + 8,
            before=f"u = {u}\nw = exp({lift})",
        )  # fmt: skip

    def _norm2(self, members: list[int]) -> Step:
        places, u, v, e, columns, one = self._rowwise(members)
        root, start = f"{float(columns) ** 0.5!r}", self.spans[-1].start
        back = f"(units({u}, S, directions, {start}) * K).ravel()"
        return self._step(
            members, f"S = lengths({u}){one}",
            [(places, back + "[0]" * (places.size == 1), False)], f"{root} * {v}",
            f"{root} * {e}", columns + 8, clear=f"if not low(S) > 4.0 * {root} * {e}: return None",
        )  # fmt: skip

    def _max(self, members: list[int]) -> Step:
        places, u, v, e, columns, one = self._rowwise(members)
        rows = places.size // columns
        for k, begin in zip(members, np.cumsum([0, *(self.nodes[k].sizes[0] for k in members)])):
            self.shift[k] = int(begin)
        first = self._name(np.arange(rows) * columns)
        beaten, gap = f"count_nonzero({u} < (S - 4.0 * {e}){'' if one else '[:, None]'})", columns
        x = self._list("X", places)
        forward = f"S = {x}[Q]" if one else f"S = {u}.max(axis=1)"
        return self._step(
            members, forward, [(places, "w" + "[0]" * (places.size == 1), False)], v, e, 0,
            sides=f"Q = {x}.argmax()" if one else f"Q = {u}.argmax(axis=1) + {first}",
            clear=f"if {beaten} != {(gap - 1) * rows}: return None",
            before=f"w = zeros({places.size})\nw[Q] = P", early=bool(one),
        )  # fmt: skip

    def _order(self, members: list[int]) -> Step:
        node: Any = self.nodes[members[0]]
        places, columns, name = self._args(members), node.columns, self._name(node.weights)
        u, (v, e) = self._list("X", places), self._size(places)
        apart = np.flatnonzero((np.diff(node.weights, axis=1) != 0).any(axis=0))
        low, high = self._name(apart), self._name(apart + 1)
        gain = _row_sum(node.weights)
        if alone := places.size == columns and node.size == 1:
            row = self._constant(node.weights[0].copy())
            forward, back = f"S = dot({row}, sort({u}))", f"P * {row}"
        else:
            rows = f"{u}.reshape(-1, {columns})"
            forward = f"S = (sort({rows}, axis=1) @ {name}.T).ravel()" + "[0]" * (node.size == 1)
            back = f"(F.reshape(-1, {len(node.weights)}) @ {name}).ravel()"
        if alone and apart.size == 1:  # ties of equal weights may be in any order
            gap, order = f"{u}[O[{apart[0] + 1}]] - {u}[O[{apart[0]}]]", f"O = {u}.argsort()\n"
        else:
            order = f"O = order({u}, {columns})\ns = {u}[O].reshape(-1, {columns})\n"
            gap = f"low(s[:, {high}] - s[:, {low}])"
        clear = f"{order}if not {gap} > 4.0 * {e}: return None"
        size, error = (f"{gain!r} * {end}" for end in (v, e))
        return self._step(
            members, forward, [(places, "w" + "[0]" * (places.size == 1), False)], size, error,
            columns, clear=clear, before=f"w = zeros({places.size})\nw[O] = {back}",
        )  # fmt: skip

    def _foreign(self, members: list[int]) -> Step:
        places, node = self._args(members), self.nodes[members[0]]
        u, name = self._list("X", places), self._name(node)
        back = f"{name}.pulled_back(F, {u})" + "[0]" * (places.size == 1)
        forward = f"S = {name}.evaluated({u})" + "[0]" * (node.size == 1)
        return self._step(members, forward, [(places, back, False)], "inf", "inf", 0)


class _Accumulation:
    """The way back over local variables: g7 is the derivative in the seventh step.

    What comes first is assigned, what comes later added; one number stands for an array of it.
    """

    def __init__(self, writer: _Writer) -> None:
        self.writer, self.lines = writer, list[str]()
        #: The name of each derivative that is known, or the number that it is.
        self.known: dict[int, str] = {}
        self.single: set[int] = set()  # one number for many
        self.owned: set[int] = set()  # arrays that nobody else has

    def source(self) -> list[str]:
        w, last = self.writer, len(self.writer.steps)
        self.known[last] = "1.0"
        for n in range(last, 0, -1):
            step = w.steps[n - 1]
            if n in self.known:
                size, p = step.out.stop - step.out.start, self.known[n]
                number = n == last or size == 1 or n in self.single
                f = f"full({size}, {p})" if number else p
                self.lines += [w.local(n, step.before, p, f)]
                for places, text, plain in step.back:
                    what = w.local(n, text, p, f)
                    what = re.sub(r"(?<![\w.])1\.0 \* (?=\(|[sc]\d)", "", what)
                    what = re.sub(r"^([a-z]\d+) \* -1\.0$", r"-\1", what)
                    what = re.sub(r"^([\d.]+) \* copysign\(1\.0", r"copysign(\1", what)
                    self._add(places, what, plain and number)
        size = w.nodes[0].size
        if 0 not in self.known:
            self.lines += [f"g0 = zeros({size})"]
        elif 0 in self.single or size == 1:
            self.lines += [f"g0 = full({size}, {self.known[0]})"]
        return self.lines

    def _add(self, places: Indices, what: str, number: bool) -> None:
        """Add derivatives at places; is it one number for all?"""
        owner = self.writer.owner[places]
        owners = np.unique(owner).tolist()
        if len(owners) > 1:
            broad = f"broadcast_to({what}, {places.shape}).ravel()"
            self.lines += [f"w = {broad if number or places.ndim > 1 else what}"]
            for o in owners:
                inside = np.flatnonzero(owner.ravel() == o)
                part = f"w[{inside[0]}]" if inside.size == 1 else f"w[{self.writer.span(inside)}]"
                self._to(o, places.ravel()[inside], part, False)
        elif owners:
            self._to(owners[0], places, what, number)

    def _to(self, o: int, places: Indices, what: str, number: bool) -> None:
        span, g = self.writer.spans[o], f"g{o}"
        size, index, first = span.stop - span.start, places - span.start, o not in self.known
        if places.size > 1 and (index == index.flat[0]).all():
            what = what if places.ndim == 1 else f"broadcast_to({what}, {places.shape})"
            what = f"{places.size}.0 * ({what})" if number else f"total({what}, axis=None)"
            index, number = index.ravel()[:1], False
        if index.ndim == 1 and index.size == size and (np.diff(index) == 1).all():
            if first and re.fullmatch(r"[-+*.() e\d]+", what):
                self.known[o] = repr(float(eval(what)))
            else:
                self.lines += [f"{g} = {what}" if first else f"{g} = {self.known[o]} + {what}"]
                self.known[o] = g
            if first and number and size > 1:
                self.single |= {o}
            elif not number:
                self.single -= {o}
            shared = first and re.fullmatch(r"\w+(\[[\w:]+\])?", what)
            self.owned = self.owned - {o} if shared else self.owned | {o}
            return
        sign = "+="
        if first:
            self.lines += [f"{g} = zeros({size})"]
            sign = "="
        elif o in self.single:
            self.lines += [f"{g} = full({size}, {self.known[o]})"]
        elif o not in self.owned:
            self.lines += [f"{g} = {g}.copy()"]
        self.known[o], self.single, self.owned = g, self.single - {o}, self.owned | {o}
        self.lines += [self.writer.added(g, index, what, sign)]


def _needed(lines: list[str]) -> list[str]:
    """Return lines without errors that nobody asks for."""
    kept, wanted = list[str](), set[str]()
    for line in reversed("\n".join(lines).split("\n")):
        name = line.partition(" = ")[0]
        if not re.fullmatch(r"e\d+", name) or name in wanted:
            kept.append(line)
            wanted |= set(re.findall(r"\be\d+", line)) - {name}
    return kept[::-1]


def _times(factor: float, text: str) -> str:
    return text if factor == 1 else f"{float(factor)!r} * {text}"


def _top(u: Any) -> Any:
    """Return the largest size of an entry."""
    size = np.absolute(u)
    return size.max(initial=0.0) if size.ndim == 0 or not size.size else size[size.argmax()]


def _low(u: Any) -> Any:
    """Return the least entry."""
    return u if u.ndim == 0 else u.ravel()[u.argmin()] if u.size else inf


def _order(u: Vector, columns: int) -> Indices:
    """Return the places of rows in ascending order."""
    if u.size == columns:
        return u.argsort(kind="stable")
    rows = u.reshape(-1, columns).argsort(axis=1, kind="stable")
    return (rows + np.arange(len(rows))[:, None] * columns).ravel()


def _whole(a: int, nodes: Sequence[Node]) -> _Term:
    everything = np.arange(nodes[a].size)
    return _Term(a, everything, None, everything)


def _is_bare(node: Node) -> bool:
    return isinstance(node, kinds.Affine) and node.offset is node.divisor is None


def _is_sum(node: Node) -> bool:
    """Does a node sum all entries?"""
    if not (isinstance(node, kinds.Affine) and _is_bare(node) and node.size == 1):
        return False
    return isinstance(node.matrix, np.ndarray) and bool((node.matrix == 1.0).all())


def _fused(k: int, nodes: Sequence[Node], uses: Any) -> list[int]:
    """Return the nodes below one with which it is evaluated in one step; none as a rule."""
    below = [k]
    while len(below) < 3 and len(nodes[below[-1]].of) == 1 and uses[nodes[below[-1]].of[0]] == 1:
        below.append(nodes[below[-1]].of[0])
    _, *inner = below
    made: list[Any] = [nodes[b] for b in below]
    if len(made) > 1 and _is_sum(made[0]) and made[1].name == "piecewise":
        return inner[:1] if made[1].pieces == SQUARE else []
    scaled = [n.name == "piecewise" and n.affine and not n.pieces[0][0] for n in made[::2]]
    if len(made) < 3 or not all(scaled) or made[1].name != "smooth":
        return []
    inverse = made[0].pieces[0][1] * made[2].pieces[0][1] ** 2 == 1
    return inner if inverse and made[1].function.name == "pseudo_huber" else []


def _picked(node: Node) -> _Term | None:
    """Return the entries that an affine node picks, at most one for each of its own."""
    if not (isinstance(node, kinds.Affine) and sparse.issparse(node.matrix) and node.columns == 1):
        return None
    lengths, numbers = np.diff(node.matrix.indptr), node.matrix.data
    if lengths.max(initial=0) > 1:
        return None
    factors = None if (numbers == 1.0).all() else numbers
    return _Term(node.of[0], node.matrix.indices.astype(np.intp), factors, np.flatnonzero(lengths))


def _row_sum(matrix: Any) -> float:
    """Return a bound of the sums of sizes in the rows."""
    if hasattr(matrix, "norms"):  # rows that are elsewhere
        return float(matrix.norms().max() * matrix.shape[1] ** 0.5 * 1.01)
    if sparse.issparse(matrix):
        return float(abs(matrix).sum(axis=1).max()) if matrix.nnz else 0.0
    step = max(1, 2**16 // max(1, matrix.shape[1]))  # block by block, without a copy of the data
    sums = (np.abs(matrix[i : i + step]).sum(axis=1).max() for i in range(0, len(matrix), step))
    return float(max(sums, default=0.0))


def _horner(coefficients: Any, u: str) -> str:
    """Return source for a polynomial of u."""
    rest: list[str] = list(coefficients)
    out = rest.pop()
    while rest and out == "0.0":
        out = rest.pop()
    for c in reversed(rest):
        out = u if out == "1.0" else f"{out} * {u}"
        out = f"({out})" if c == "0.0" else f"({out} + {c})"
    return out


def _largest(table: Sequence[Sequence[float]], v: str) -> str:
    """Return source for a bound of polynomials up to a size."""
    return _horner((repr(max(map(abs, column))) for column in zip(*table)), v)


def _lengths(u: Matrix) -> Vector:
    """Return the lengths of rows; a power of two keeps squares from over- and underflow."""
    squares: Vector = np.vecdot(u, u)
    if squares.size and squares[squares.argmin()] > 1e-280 and squares[squares.argmax()] < 1e280:
        return np.sqrt(squares)
    power = np.frexp(np.abs(u).max(axis=1))[1]
    scaled = np.ldexp(u, -power[:, None])
    return np.ldexp(np.sqrt(np.vecdot(scaled, scaled)), power)


def _units(u: Matrix, size: Any, directions: dict[int, Vector], start: int) -> Matrix:
    """Return rows divided by their lengths, or directions given by place; 0 where there is none."""
    if not directions and _low(size) > 1e-140 and _top(size) < 1e140:
        return u / np.reshape(size, (-1, 1))
    u = u.copy()
    for place, direction in directions.items():
        if start <= place < start + len(u):
            u[place - start] = direction
    u = np.ldexp(u, -np.frexp(np.abs(u).max(axis=1))[1][:, None])
    length = np.sqrt(np.vecdot(u, u))
    return u / np.where(length == 0.0, 1.0, length)[:, None]


Row = dict[int, Fraction]


def affine_row(program: Program, k: int, entry: int) -> tuple[Row, Fraction]:
    """Return the coefficients of an entry of an affine node, and its constant."""
    nodes = enumerate(program.nodes[: k + 1])
    pieces = {b: np.zeros(n.size, np.intp) for b, n in nodes if isinstance(n, Piecewise)}
    part = Part(program, pieces, k, [entry])
    slopes = part.backward(Exact.of([1]), {}).fractions
    (constant,) = part.series(np.zeros(program.dim))[0].fractions
    return {i: a for i, a in zip(part.places.tolist(), slopes) if a}, constant
