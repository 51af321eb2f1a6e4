"""A part of a program: what some entries of a node depend on, and nothing else, exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.checker.arrays import Indices
from goldstein.checker.enclosed.float_dot import row_products
from goldstein.checker.errors import Irrational
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Add, Affine, Max, Node, Norm2, Order, Product, Rowwise, Series
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


class Part:
    """The entries `places` of node k, in ascending order, as a small program.

    Parameters
    ----------
    pieces : dict
        The pieces of the nodes before it.
    """

    def __init__(self, program: Program, pieces: dict[int, Any], k: int, places: Any) -> None:
        self.k = k
        wanted: dict[int, Indices] = {k: np.asarray(places, dtype=np.intp)}
        steps = []
        for b in reversed(program.ancestors(k)):
            if b and b in wanted:
                node, piece, needs = cut(program.nodes[b], wanted[b], pieces.get(b))
                steps.append((b, node, piece, needs))
                for a, some in zip(node.of, needs):
                    if some.size:
                        wanted[a] = np.union1d(wanted.get(a, some), some)
        self.wanted = wanted
        #: The entries of the variable.
        self.places = wanted.get(0, np.zeros(0, dtype=np.intp))
        self.steps = [
            (b, node, piece, [np.searchsorted(wanted.get(a, s), s) for a, s in zip(node.of, needs)])
            for b, node, piece, needs in reversed(steps)
        ]

    def forward(self, *ends: Any) -> dict[int, Series | Irrational]:
        """Return the values at y, or the series along y + t v; or what is irrational."""
        found: dict[int, Series | Irrational] = {
            0: [Exact.of(_some(end, self.places)) for end in ends]
        }
        for b, node, piece, at in self.steps:
            try:
                if isinstance(node, Affine) and node.of == (0,) and _is_long(node):
                    found[b] = [self._long(node, at[0], end, k == 0) for k, end in enumerate(ends)]
                else:
                    if isinstance(node, Affine | Rowwise) and not node.rational:
                        raise Irrational(node.name)
                    args = [_known(found, a, some) for a, some in zip(node.of, at)]
                    found[b] = node.forward(args, piece)
            except Irrational as what:
                found[b] = what
        return found

    def _long(self, node: Affine, at: Indices, end: Any, first: bool) -> Exact:
        """Return a matrix times a long vector without an integer per term."""
        sums = Exact.of(row_products(node.matrix, _some(end, self.places[at])))
        rest = replace(node, matrix=sparse.csr_array(sparse.eye_array(node.size)),
                       sizes=(node.size,), offset=node.offset if first else None)  # fmt: skip
        return rest.forward([[sums]], None)[0]

    def series(self, *ends: Any) -> Series:
        """Return the same of the entries themselves."""
        return _known(self.forward(*ends), self.k, np.arange(self.wanted[self.k].size))

    def backward(self, start: Exact, values: dict[int, Series | Irrational]) -> Exact:
        """Return the derivative, in the entries `places` of the variable, of start . entries."""
        found = {self.k: start}
        for b, node, piece, at in reversed(self.steps):
            g = found.pop(b, None)
            if g is None:
                continue
            args: list[Any] = [None] * len(node.of)
            if not node.flat:
                args = [_known(values, a, some)[0] for a, some in zip(node.of, at)]
            for a, some, part in zip(node.of, at, node.backward(g, args, piece)):
                if some.size:
                    more = part.scattered(some, self.wanted[a].size)
                    found[a] = found[a] + more if a in found else more
        return found.get(0, Exact(np.zeros(self.places.size, dtype=object)))


def _known(found: dict[int, Series | Irrational], a: int, places: Indices) -> Series:
    """Return entries of the series of a node."""
    if not places.size:
        return [Exact(np.zeros(0, dtype=object))]
    series = found[a]
    if isinstance(series, Irrational):
        raise series
    return [c[places] for c in series]


def _is_long(node: Affine) -> bool:
    return bool(node.matrix.nnz >= LONG * node.size)


def _some(vector: Any, places: Indices) -> Any:
    return vector[places] if isinstance(vector, np.ndarray) else [vector[k] for k in places]


__all__ = ["Part", "cut"]
