"""A part of a program: what some entries of a node depend on, and nothing else, exactly."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.checker.arrays import Indices
from goldstein.checker.enclosed.arrays import row_products
from goldstein.checker.enclosed.irrational import Norm2
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Add, Affine, Max, Node, Order, Product, Rowwise, Series
from goldstein.checker.sides import Program

#: With fewer terms than this, on average, sums of Python's integers are as fast.
LONG = 64

Cut = tuple[Node, Any, list[Indices]]


def cut(node: Node, places: Indices, piece: Any) -> Cut:
    """Return the node of some entries, its piece, and the entries of its arguments it needs."""
    if isinstance(node, Affine):
        return _cut_affine(node, places)
    if isinstance(node, Product):
        return _cut_product(node, places)
    if isinstance(node, Max):  # the sum of one argument is the argument
        return Add(node.of, (places.size,), places.size), None, [piece[places]]
    if isinstance(node, Order):
        return _cut_order(node, places, piece)
    needed = places
    if isinstance(node, Rowwise):
        needed = (places[:, None] * node.columns + np.arange(node.columns)).reshape(-1)
    if isinstance(node, Norm2):
        piece = {k: piece[r] for k, r in enumerate(places.tolist()) if r in piece}
    elif piece is not None:
        piece = piece[places]
    sizes = (needed.size,) * len(node.of)
    return replace(node, sizes=sizes, size=places.size), piece, [needed for _ in node.of]


def _cut_order(node: Order, places: Indices, piece: Any) -> Cut:
    row, which = np.divmod(places, len(node.weights))
    at, column = np.nonzero(node.weights[which])
    columns = node.order(piece)[row[at] * node.columns + column]
    ends = np.searchsorted(at, np.arange(places.size + 1))
    numbers = node.weights[which[at], column]
    rows = sparse.csr_array((numbers, columns, ends), shape=(places.size, node.sizes[0]))
    return _cut_rows(node, places, rows)


def _cut_affine(node: Affine, places: Indices) -> Cut:
    offset, divisor = (None if v is None else v[places] for v in (node.offset, node.divisor))
    return _cut_rows(node, places, node.some_rows(places), offset, divisor)


def _cut_rows(
    node: Node, places: Indices, rows: Any, offset: Any = None, divisor: Any = None
) -> Cut:
    used, at = np.unique(rows.indices, return_inverse=True)
    matrix = sparse.csr_array((rows.data, at, rows.indptr), shape=(places.size, used.size))
    return Affine(node.of, (used.size,), places.size, matrix, 1, offset, divisor), None, [used]


def _cut_product(node: Product, places: Indices) -> Cut:
    (n, m), k, count = node.shape, node.inner, places.size
    block, i, j = np.unravel_index(places, (node.batch, n, m))
    along = np.arange(k)
    left = ((block * n + i)[:, None] * k + along).reshape(-1)
    right = ((block[:, None] * k + along) * m + j[:, None]).reshape(-1)
    return Product(node.of, (count * k, count * k), count, count, k), None, [left, right]


class Taken:
    """A node that is computed from some entries of its arguments; from none, it is constant."""

    def __init__(self, node: Node, needs: list[Indices], wanted: dict[int, Indices]) -> None:
        self.node, self.flat = node, node.flat
        used = [(a, some) for a, some in zip(node.of, needs) if some.size]
        self.of = tuple(a for a, _ in used)
        self.sizes = [wanted[a].size for a in self.of]
        self.at = [np.searchsorted(wanted[a], some) for a, some in used]

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        taken = [[c[at] for c in arg] for arg, at in zip(args, self.at)]
        return self.node.forward(taken or [[Exact.of([])]], piece)

    def backward(self, g: Exact, args: Sequence[Any], piece: Any) -> list[Exact]:
        taken = [None if arg is None else arg[at] for arg, at in zip(args, self.at)]
        parts = self.node.backward(g, taken, piece)
        return [part.scattered(at, n) for part, at, n in zip(parts, self.at, self.sizes)]


class Part(Program):
    """The entries `places` of node k, in ascending order, as a small program.

    Parameters
    ----------
    pieces : dict
        The pieces of the nodes before it.
    """

    def __init__(self, program: Program, pieces: dict[int, Any], k: int, places: Any) -> None:
        wanted: dict[int, Indices] = {k: np.asarray(places, dtype=np.intp)}
        cuts = dict[int, Cut]()
        for b in reversed(program.ancestors(k)):
            if b and b in wanted:
                cuts[b] = cut(program.nodes[b], wanted[b], pieces.get(b))
                for a, some in zip(cuts[b][0].of, cuts[b][2]):
                    if some.size:
                        wanted[a] = np.union1d(wanted.get(a, some), some)
        self.last, self.pieces = k, {b: piece for b, (_, piece, _) in cuts.items()}
        self.nodes: Any = {b: Taken(node, needs, wanted) for b, (node, _, needs) in cuts.items()}
        self.nodes[0] = program.nodes[0]
        #: Matrices times long vectors need no integer per term.
        self._long = [
            (b, taken.node, taken.at[0])
            for b, taken in self.nodes.items()
            if taken.of == (0,) and _is_long(taken.node)
        ]
        #: The entries of the variable.
        self.places = wanted.get(0, np.zeros(0, dtype=np.intp))

    def start(self, *ends: Any) -> dict[int, Series]:
        """Return y, or the series y + t v; and matrices times long vectors."""
        found = {0: [Exact.of(_some(end, self.places)) for end in ends]}
        for b, node, at in self._long:
            sums = (row_products(node.matrix, _some(end, self.places[at])) for end in ends)
            same = sparse.csr_array(sparse.eye_array(node.size))
            rest = replace(node, matrix=same, sizes=(node.size,))
            found[b] = rest.forward([[Exact.of(s) for s in sums]], None)
        return found

    def series(self, *ends: Any) -> Series:
        """Return the values of the entries at y, or their series along y + t v."""
        return self.extend(self.start(*ends), self.pieces, self.last)

    def backward(self, start: Exact, found: dict[int, Series]) -> Exact:
        """Return the derivative, in the entries `places` of the variable, of start . entries."""
        pulled = self.pull_back(
            self.last, start, self.pieces, lambda a: self.extend(found, self.pieces, a)[0]
        )
        return pulled.get(0, Exact.of([0] * self.places.size))


def _is_long(node: Node) -> bool:
    return isinstance(node, Affine) and bool(node.matrix.nnz >= LONG * node.size)


def _some(vector: Any, places: Indices) -> Any:
    return vector[places] if isinstance(vector, np.ndarray) else [vector[k] for k in places]
