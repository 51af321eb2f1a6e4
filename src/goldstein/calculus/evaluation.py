"""A program in float64: values, gradients, and whether its kinks are far enough to be told.

The values of all nodes stand on one tape, the pieces that rule on another. What is to be done is
written once, as Python source over NumPy, and compiled; small nodes of one kind that do not depend
on each other make one step. Searches ask here, proofs do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import exp, inf
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from goldstein.calculus.elementary import ELEMENTARY
from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import (
    Add,
    Affine,
    Max,
    Node,
    Norm2,
    Order,
    Piecewise,
    Product,
    Rowwise,
    Smooth,
)  # fmt: skip
from goldstein.checker.rationals import nearest_float
from goldstein.checker.rounding import UNIT

#: Nodes of up to so many entries are evaluated together.
SMALL = 64

#: The pieces of u^2.
SQUARE = ((Fraction(0), Fraction(0), Fraction(1)),)

#: By number of a node the pieces of its entries, as the checker has them.
Pieces = dict[int, Any]


def has_kinks(node: Node) -> bool:
    """Has a node kinks of its own?"""
    if isinstance(node, Max):
        return node.columns > 1
    if isinstance(node, Order):
        return node.matters(0, node.columns)
    return isinstance(node, Norm2) or (isinstance(node, Piecewise) and any(node.jumps))


class Step(NamedTuple):
    """Nodes that are evaluated together: where they stand, and source for them.

    `sides` finds the pieces q of values t, `backward` adds to derivatives g. `bound` says how large
    the values are (v) and how wrong (e), `clear` whether an error hides the side of a kink.
    """

    out: slice
    members: list[int]
    forward: str
    sides: str
    backward: str
    bound: str
    clear: str


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
            writer = _Writer(self.nodes)
        self.at, self.steps, self.size = writer.at, writer.steps, writer.size
        self._forward, self._sides, self._backward, self._clear, self._back = writer.compiled()

    def tape(self, x: Vector) -> Vector:
        """Return the values of all nodes at a point."""
        t = np.empty(self.size)
        t[: self.dim] = x
        with np.errstate(all="ignore"):
            self._forward(t)
        return t

    def clear(self, t: Vector) -> float | None:
        """Return a bound of all values if rounding errors hide no side of a kink, else None."""
        with np.errstate(all="ignore"):
            found: float | None = self._clear(t, float(np.abs(t[: self.dim]).max()))
        return found

    def gradient(self, t: Vector, pieces: Pieces | None = None) -> Vector:
        """Return the gradient of the last node: of given pieces, or those nearest in float64."""
        g = np.zeros(self.size)
        g[self.at[self.last]] = 1.0
        with np.errstate(all="ignore"):
            self._backward(t, g, *self._chosen(t, pieces))
        return g[: self.dim].copy()

    def cotangents(
        self, t: Vector, pieces: Pieces | None = None, k: int = -1, start: Any = 1.0,
        stops: frozenset[int] = frozenset(),
    ) -> Vector:  # fmt: skip
        """Return the derivatives of start . node k in all nodes, but for those below `stops`."""
        g, chosen = np.zeros(self.size), self._chosen(t, pieces)
        g[self.at[k]] = start
        with np.errstate(all="ignore"):
            for step, back in zip(reversed(self.steps), reversed(self._back)):
                if step.members[0] not in stops and g[step.out].any():
                    back(t, g, *chosen)
        return g

    def rows(self, k: int, entries: Sequence[int], t: Vector, pieces: Pieces | None) -> Matrix:
        """Return the derivatives of some entries of a node in the variable."""
        node, some = self.nodes[k], np.asarray(entries, dtype=np.intp)
        if k == 0:
            return np.eye(self.dim)[some]
        if isinstance(node, Affine) and node.of == (0,) and node.columns == 1:
            found = node.matrix[some]
            rows: Matrix = np.array(found.toarray() if sparse.issparse(found) else found)
            return rows if node.divisor is None else rows / node.divisor[some, None]
        unit = np.eye(node.size)[some] if node.size <= SMALL else None
        starts = (unit[i] if unit is not None else np.arange(node.size) == entry
                  for i, entry in enumerate(some))  # fmt: skip
        found = [self.cotangents(t, pieces, k, start)[: self.dim] for start in starts]
        return np.array(found).reshape(len(some), self.dim)

    def pieces(self, t: Vector) -> Pieces:
        """Return the pieces that float64 sees; entries on a breakpoint get the lower one."""
        q, _ = self._chosen(t, None)
        found: Pieces = {}
        for k, node in enumerate(self.nodes):
            if isinstance(node, Piecewise | Max):
                found[k] = q[self.at[k]] - (
                    self.at[node.of[0]].start if isinstance(node, Max) else 0
                )
            elif isinstance(node, Norm2):
                zero = np.flatnonzero(~node.rows(t[self.at[node.of[0]]]).any(axis=1)).tolist()
                found[k] = dict.fromkeys(zero, np.ones(node.columns))
            elif isinstance(node, Order):
                found[k] = {0: (0, _order(t[self.at[node.of[0]]], node.columns).tolist())}
        return found

    def _chosen(self, t: Vector, pieces: Pieces | None) -> tuple[Indices, dict[int, Any]]:
        """Return the pieces on a tape, and by place the directions out of the kinks of norms."""
        q, directions = np.zeros(self.size, dtype=np.intp), dict[int, Any]()
        if pieces is None:
            with np.errstate(all="ignore"):
                self._sides(t, q)
        for k, piece in (pieces or {}).items():
            node = self.nodes[k]
            if isinstance(node, Order):
                directions[self.at[k].start] = node.order(piece)
            elif isinstance(piece, dict):
                directions |= {self.at[k].start + row: _floats(way) for row, way in piece.items()}
            elif self.at[k].stop:
                first = self.at[self.nodes[k].of[0]].start
                q[self.at[k]] = piece + first if isinstance(self.nodes[k], Max) else piece
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


class _Writer:
    """The steps of a program, as source. In it OUT are the places of a step, U those of arguments,
    V and E how large and how wrong its values are."""

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
            elif isinstance(node, Add):
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
        names = ("absolute", "maximum", "minimum", "exp", "log", "sin", "cos", "tanh", "arctan",
                 "sqrt", "hypot", "searchsorted", "dot", "logaddexp", "count_nonzero",
                 "broadcast_to", "sort")  # fmt: skip
        self.env: dict[str, Any] = {name: getattr(np, name) for name in names} | {
            "add_at": np.add.at, "inf": inf, "lengths": _lengths, "units": _units, "order": _order,
            "scalar_exp": lambda v: exp(v) if v < 700.0 else inf,
        }  # fmt: skip
        self.at: list[slice] = [slice(0, 0)] * len(nodes)
        self.at[0], self.size = slice(0, nodes[0].size), nodes[0].size
        self.owner = np.zeros(nodes[0].size, dtype=np.intp)  # of each place: the step, from 1 on
        self.steps: list[Step] = []
        for members in self._groups(hidden):
            for k in members:
                self.at[k] = slice(self.size, self.size + nodes[k].size)
                self.size += nodes[k].size
            more = np.full(self.size - self.owner.size, len(self.steps) + 1)
            self.owner = np.concatenate([self.owner, more])
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
        if isinstance(node, Piecewise):
            return node.breakpoints, node.pieces, k in self.fused
        if isinstance(node, Smooth):
            return node.function.name
        if isinstance(node, Rowwise):
            return type(node), node.columns
        if k in self.terms:
            if any(term.rows.size != node.size for term in self.terms[k]):
                return None
            shifts = (getattr(node, name, None) is None for name in ("offset", "divisor"))
            return *shifts, *(term.factors is None for term in self.terms[k])
        entries = isinstance(node, Product) and node.inner == 1 and node.shape == (1, 1)
        return Product if entries else None

    def compiled(self) -> tuple[Any, Any, Any, Any, list[Callable[..., None]]]:
        """Return what finds values, pieces, derivatives and clear sides, and the steps back."""
        sizes = " + ".join(f"v{n}" for n in range(len(self.steps) + 1))
        bodies = {
            "forward(t)": [step.forward for step in self.steps],
            "sides(t, q)": [step.sides for step in self.steps],
            "backward(t, g, q, directions)": [step.backward for step in reversed(self.steps)],
            "clear(t, v0)": [
                "e0 = 0.0", *chain(*((s.clear, s.bound) for s in self.steps)), f"return {sizes}",
            ],
            **{f"back{n}(t, g, q, directions)": [s.backward] for n, s in enumerate(self.steps)},
        }  # fmt: skip
        source = [
            "\n    ".join([f"def {head}:", *chain(*(b.split("\n") for b in body if b)), "pass"])
            for head, body in bodies.items()
        ]
        exec(compile("\n".join(source), "<expression>", "exec"), self.env)
        functions = [self.env[head.split("(")[0]] for head in bodies]
        return (*functions[:4], functions[4:])

    # --- places and numbers, as source ---------------------------------------------------------

    def _name(self, value: Any) -> str:
        """Return source for a number, or the name of a constant; an array of one number is it."""
        if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1:
            value = float(value[0]) if value.size and (value == value[0]).all() else value
        if isinstance(value, float):
            return repr(value)
        name = f"c{len(self.env)}"
        self.env[name] = value
        return name

    def _span(self, places: Indices) -> str:
        """Return source for an index."""
        if places.ndim == 1 and places.size and (np.diff(places) == 1).all():
            return f"{places[0]}:{places[-1] + 1}"
        return self._name(places)

    def _add(self, places: Indices, what: str) -> str:
        """Return source that adds derivatives at places."""
        span = self._span(places)
        distinct = ":" in span or np.unique(places).size == places.size
        # NumPy's add.at reads beyond the end of values that it should broadcast.
        whole = what if places.ndim == 1 else f"broadcast_to({what}, {places.shape})"
        return f"g[{span}] += {what}" if distinct else f"add_at(g, {span}, {whole})"

    def _args(self, members: list[int], j: int = 0) -> Indices:
        return np.concatenate([np.arange(self.size)[self.at[self.nodes[k].of[j]]] for k in members])

    def _size(self, places: Indices) -> tuple[str, str]:
        """Return source for the largest size v, and error e, of what stands at places."""
        owners = np.unique(self.owner[places]).tolist() or [0]
        v, e = (", ".join(f"{letter}{n}" for n in owners) for letter in "ve")
        return (v, e) if len(owners) == 1 else (f"max({v})", f"max({e})")

    def _step(
        self, members: list[int], forward: str, backward: str, size: str, error: str, terms: int,
        sides: str = "", clear: str = "",
    ) -> Step:  # fmt: skip
        """Return a step whose values are rounded `terms` times."""
        n, out = len(self.steps) + 1, slice(self.at[members[0]].start, self.at[members[-1]].stop)
        bound = f"V = {size}\nE = {error} + {1.1 * (terms + 2) * UNIT!r} * V + {2.0**-1000!r}"
        texts = [
            text.replace("OUT", f"{out.start}:{out.stop}")
            .replace("V", f"v{n}")
            .replace("E", f"e{n}")
            for text in (forward, sides, backward, bound, clear)
        ]
        return Step(out, members, *texts)

    # --- the kinds -----------------------------------------------------------------------------

    def _sum(self, members: list[int]) -> Step:
        """Sums of entries, each perhaps times a number, plus a number, divided by one."""
        columns = [list(column) for column in zip(*(self.terms[k] for k in members))]
        if len(columns) > 1 and sum(c[0].rows.size for c in columns) == self.nodes[members[0]].size:
            columns = [[column[0] for column in columns]]
        places = [
            np.concatenate([np.arange(self.size)[self.at[t.node]][t.entries] for t in column])
            for column in columns
        ]
        factors = [
            None if all(t.factors is None for t in column) else np.concatenate(
                [np.ones(t.entries.size) if t.factors is None else t.factors for t in column])
            for column in columns
        ]  # fmt: skip
        tops = [1.0 if f is None else float(np.abs(f).max(initial=0.0)) for f in factors]
        pairs = [[f"{c!r} * {s}" for s in self._size(p)] for c, p in zip(tops, places)]
        size, error = (" + ".join(parts) for parts in zip(*pairs))
        if len(places) > 3 and not any(f is not None for f in factors):
            table = np.array(places)
            table = table.ravel() if table.shape[1] == 1 else table
            forward = f"t[OUT] = t[{self._span(table)}].sum({'' if table.ndim == 1 else 'axis=0'})"
            backward = self._add(table, "p")
        else:
            times = ["" if f is None else f" * {self._name(f)}" for f in factors]
            parts = (f"t[{self._span(p)}]{f}" for p, f in zip(places, times))
            forward = f"t[OUT] = {' + '.join(parts)}"
            backward = "\n".join(self._add(p, f"p{f}") for p, f in zip(places, times))
        return self._shifted(members, forward, backward, size, error, len(places))

    def _shifted(
        self, members: list[int], forward: str, backward: str, size: str, error: str, terms: int
    ) -> Step:
        """Add the offset and the divisor of affine nodes; derivatives come as p."""
        offset, divisor = (
            None if getattr(self.nodes[members[0]], name, None) is None
            else np.concatenate([getattr(self.nodes[k], name) for k in members])
            for name in ("offset", "divisor")
        )  # fmt: skip
        p = "g[OUT]"
        if offset is not None:
            forward += f"\nt[OUT] += {self._name(offset)}"
            size += f" + {float(np.abs(offset).max(initial=0.0))!r}"
        if divisor is not None:
            reciprocal = self._name(1.0 / divisor)
            p, least = f"g[OUT] * {reciprocal}", float(np.abs(divisor).min(initial=inf))
            forward += f"\nt[OUT] *= {reciprocal}"
            size, error = f"({size}) / {least!r}", f"({error}) / {least!r}"
        return self._step(members, forward, f"p = {p}\n{backward}", size, error, terms + 3)

    def _affine(self, members: list[int]) -> Step:
        node: Any = self.nodes[members[0]]
        places, matrix, columns = self._args(members), node.matrix, node.columns
        u, terms, gain = f"t[{self._span(places)}]", matrix.shape[1], _row_sum(matrix)
        plain = isinstance(matrix, np.ndarray) and columns == 1
        if plain and len(matrix) == 1 and (matrix == 1.0).all():
            forward, back = f"t[OUT] = {u}.sum()", "p"
        else:
            name, turned = self._name(matrix), self._name(matrix.T)
            tall = "" if columns == 1 else f".reshape(-1, {columns})"
            flat = "" if columns == 1 else ".ravel()"
            forward = f"t[OUT] = ({name} @ {u}{tall}){flat}"
            if plain and matrix.flags.c_contiguous:
                forward = f"dot({name}, {u}, t[OUT])"
            back = f"({turned} @ p{tall}){flat}"
        v, e = (f"{gain!r} * {s}" for s in self._size(places))
        return self._shifted(members, forward, self._add(places, back), v, e, terms)

    def _affine_fused(self, members: list[int]) -> Step:
        """The sum of squares."""
        places = np.arange(self.size)[self.at[self.fused[members[0]]]]
        u, (v, e), n = f"t[{self._span(places)}]", self._size(places), float(places.size)
        back = self._add(places, f"{u} * g[OUT] * 2.0")
        error = f"{2.1 * n!r} * ({v} + {e}) * {e}"
        return self._step(
            members, f"t[OUT] = dot({u}, {u})", back, f"{n!r} * {v} * {v}", error, places.size + 2
        )

    def _product(self, members: list[int]) -> Step:
        node: Any = self.nodes[members[0]]
        (n, m), k, both = node.shape, node.inner, [self._args(members, j) for j in (0, 1)]
        a, b = (f"t[{self._span(p)}]" for p in both)
        (va, ea), (vb, eb) = map(self._size, both)
        size, error = f"{float(k)!r} * {va} * {vb}", f"{float(k)!r} * ({va} * {eb} + {vb} * {ea})"
        if k == n == m == 1:
            forward, parts = f"{a} * {b}", (f"g[OUT] * {b}", f"g[OUT] * {a}")
        else:
            batch = f"{node.batch}, " if node.batch > 1 else ""
            a, b, p = (
                f"{name}.reshape({batch}{i}, {j})"
                for name, i, j in ((a, n, k), (b, k, m), ("g[OUT]", n, m))
            )
            forward, turn = f"({a} @ {b}).ravel()", "swapaxes(-1, -2)"
            parts = f"({p} @ {b}.{turn}).ravel()", f"({a}.{turn} @ {p}).ravel()"
        back = "\n".join(self._add(places, part) for places, part in zip(both, parts))
        # A product of two errors is less than either, or nothing is known.
        return self._step(members, f"t[OUT] = {forward}", back, size, f"2.0 * {error}", k)

    def _piecewise(self, members: list[int]) -> Step:
        node: Any = self.nodes[members[0]]
        places, levels = self._args(members), _floats(node.breakpoints)
        u, (v, e) = f"t[{self._span(places)}]", self._size(places)
        values, slopes = (
            [list(map(nearest_float, piece)) for piece in table]
            for table in (node.pieces, node.slopes)
        )
        sides = f"({u} > {float(levels[0])!r})" if len(levels) == 1 else ""
        sides = f"searchsorted({self._name(levels)}, {u})" if len(levels) > 1 else sides
        table = [[self._by_piece(c) for c in zip(*some)] for some in (values, slopes)]
        slope = _horner(table[1] if sides else map(repr, slopes[0]), u)
        lines = [_horner(map(repr, piece), u) for piece in values]
        if values == [[0.0, -1.0], [0.0, 1.0]] and not levels.any():
            forward = f"absolute({u}, t[OUT])"
        elif len(levels) == 1 and node.flat:
            larger = "maximum" if node.jumps[0] >= 0 else "minimum"
            forward = f"t[OUT] = {larger}({', '.join(lines)})"
        elif sides:
            inside = f"{sides}.astype(int)" if len(levels) == 1 else sides
            forward = f"q = {inside}\nt[OUT] = {_horner(table[0], u)}".replace("q[OUT]", "q")
        else:
            forward = f"t[OUT] = {lines[0]}"
        tests = [
            f"if not absolute({u}{f' - {t!r}' if t else ''}).min(initial=inf) > "
            f"2.0 * {e} + {8 * UNIT * abs(t)!r}: return None"
            for t, jump in zip(levels.tolist(), node.jumps) if jump
        ]  # fmt: skip
        off = f"({e} + {2 * UNIT * float(np.abs(levels).max(initial=0.0))!r})"
        error = f"3.0 * {_largest(slopes, f'({v} + {e})')} * {off}"
        return self._step(
            members, forward, self._add(places, f"g[OUT] * {slope}"), _largest(values, v), error,
            2 * len(values[0]), f"q[OUT] = {sides}" if sides else "", "\n".join(tests),
        )  # fmt: skip

    def _piecewise_fused(self, members: list[int]) -> Step:
        """s^2 (sqrt(1 + (u/s)^2) - 1), where u/s may be too large."""
        (smooth,) = self.nodes[members[0]].of
        scale: Any = self.nodes[self.nodes[smooth].of[0]]
        s = repr(nearest_float(1 / scale.pieces[0][1]))
        places = np.concatenate([np.arange(self.size)[self.at[self.fused[k]]] for k in members])
        u, (v, e) = f"t[{self._span(places)}]", self._size(places)
        back = self._add(places, f"g[OUT] * ({s} * ({u} / hypot({s}, {u})))")
        forward = f"t[OUT] = {s} * ({u} * ({u} / ({s} + hypot({s}, {u}))))"
        return self._step(members, forward, back, f"{s} * {v}", f"{s} * {e}", 8)

    def _by_piece(self, coefficients: Sequence[float]) -> str:
        alike = len(set(coefficients)) == 1
        return repr(coefficients[0]) if alike else f"{self._name(np.array(coefficients))}[q[OUT]]"

    def _smooth(self, members: list[int]) -> Step:
        node: Any = self.nodes[members[0]]
        places = self._args(members)
        v, e = self._size(places)
        value, slope, size, error = (
            text.format(u=f"t[{self._span(places)}]", v=v, e=e)
            for text in ELEMENTARY[node.function.name][:4]
        )
        back = self._add(places, f"g[OUT] * ({slope})")
        return self._step(members, f"t[OUT] = {value}", back, size, error, 8)

    def _rowwise(self, members: list[int]) -> tuple[Indices, str, str, str, int]:
        places, columns = self._args(members), self.nodes[members[0]].columns  # type: ignore[attr-defined]
        return (
            places,
            f"t[{self._span(places)}].reshape(-1, {columns})",
            *self._size(places),
            columns,
        )

    def _logsumexp(self, members: list[int]) -> Step:
        places, u, v, e, columns = self._rowwise(members)
        lift = "u - u.max(axis=1, keepdims=True)"
        forward = f"u = {u}\nt[OUT] = u.max(axis=1) + log(exp({lift}).sum(axis=1))"
        if columns == 2:
            forward = f"u = {u}\nt[OUT] = logaddexp(u[:, 0], u[:, 1])"
        back = self._add(places, "(w * (g[OUT] / w.sum(axis=1))[:, None]).ravel()")
        return self._step(
            members, forward, f"u = {u}\nw = exp({lift})\n{back}", f"{v} + {float(columns)!r}", e,
            columns + 8,
        )  # fmt: skip

    def _norm2(self, members: list[int]) -> Step:
        places, u, v, e, columns = self._rowwise(members)
        root = f"{float(columns) ** 0.5!r}"
        start = self.at[members[0]].start
        back = self._add(places, f"(units({u}, directions, {start}) * g[OUT][:, None]).ravel()")
        clear = f"if not t[OUT].min(initial=inf) > 4.0 * {root} * {e}: return None"
        return self._step(
            members, f"t[OUT] = lengths({u})", back, f"{root} * {v}", f"{root} * {e}", columns + 8,
            clear=clear,
        )  # fmt: skip

    def _max(self, members: list[int]) -> Step:
        places, u, v, e, columns = self._rowwise(members)
        rows = places.size // columns
        first = self._name(np.arange(rows) * columns)
        sides = f"q[OUT] = {self._name(places)}[{u}.argmax(axis=1) + {first}]"
        beaten = f"count_nonzero({u} + 2.0 * {e} < t[OUT][:, None] - 2.0 * {e})"
        clear = f"if {beaten} != {(columns - 1) * rows}: return None"
        return self._step(
            members, f"t[OUT] = {u}.max(axis=1)", "add_at(g, q[OUT], g[OUT])", v, e, 0, sides, clear
        )

    def _order(self, members: list[int]) -> Step:
        node: Any = self.nodes[members[0]]
        places, columns, name = self._args(members), node.columns, self._name(node.weights)
        u, (v, e) = f"t[{self._span(places)}]", self._size(places)
        rows, start = f"{u}.reshape(-1, {columns})", self.at[members[0]].start
        forward = f"t[OUT] = (sort({rows}, axis=1) @ {name}.T).ravel()"
        order = f"o = directions[{start}] if {start} in directions else order({u}, {columns})"
        back = f"(g[OUT].reshape(-1, {len(node.weights)}) @ {name}).ravel()"
        backward = f"{order}\ng[{self._name(places)}[o]] += {back}"
        gain = _row_sum(node.weights)
        apart = self._name(np.flatnonzero((np.diff(node.weights, axis=1) != 0).any(axis=0)))
        gaps = f"(s[:, 1:] - s[:, :-1])[:, {apart}].min(initial=inf)"
        clear = f"s = sort({rows}, axis=1)\nif not {gaps} > 4.0 * {e}: return None"
        size, error = (f"{gain!r} * {end}" for end in (v, e))
        return self._step(members, forward, backward, size, error, columns, clear=clear)

    def _foreign(self, members: list[int]) -> Step:
        places = self._args(members)
        u, name = f"t[{self._span(places)}]", self._name(self.nodes[members[0]])
        back = self._add(places, f"{name}.pulled_back(g[OUT], {u})")
        return self._step(members, f"t[OUT] = {name}.evaluated({u})", back, "inf", "inf", 0)


def _order(u: Vector, columns: int) -> Indices:
    """Return the places of rows in ascending order."""
    rows = u.reshape(-1, columns).argsort(axis=1, kind="stable")
    return (rows + np.arange(len(rows))[:, None] * columns).ravel()


def _whole(a: int, nodes: Sequence[Node]) -> _Term:
    everything = np.arange(nodes[a].size)
    return _Term(a, everything, None, everything)


def _is_bare(node: Node) -> bool:
    return isinstance(node, Affine) and node.offset is node.divisor is None


def _is_sum(node: Node) -> bool:
    """Does a node sum all entries?"""
    dense = isinstance(node, Affine) and _is_bare(node) and isinstance(node.matrix, np.ndarray)
    return dense and node.size == 1 and bool((node.matrix == 1.0).all())  # type: ignore[attr-defined]


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
    if not (isinstance(node, Affine) and sparse.issparse(node.matrix) and node.columns == 1):
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
    power = np.frexp(np.abs(u).max(axis=1))[1]
    answer: Vector = np.ldexp(_euclidean(np.ldexp(u, -power[:, None])), power)
    return answer


def _euclidean(u: Matrix) -> Vector:
    answer: Vector = np.sqrt(np.vecdot(u, u))
    return answer


def _units(u: Matrix, directions: dict[int, Vector], start: int) -> Matrix:
    """Return rows divided by their lengths, or directions given by place; 0 where there is none."""
    u = u.copy()
    for place, direction in directions.items():
        if start <= place < start + len(u):
            u[place - start] = direction
    u = np.ldexp(u, -np.frexp(np.abs(u).max(axis=1))[1][:, None])
    size = _euclidean(u)
    answer: Matrix = u / np.where(size == 0.0, 1.0, size)[:, None]
    return answer


__all__ = ["Evaluation", "Pieces", "has_kinks"]
