"""The function of a proof file: the nodes of a program in the few kinds of docs/proof_files.md.

Every number is exact. Nothing here is trusted: a file that describes another function proves
something about that function, and says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.checker import kinked, nodes
from goldstein.checker.sides import Program
from goldstein.numerics.written import written

Written = dict[str, Any]


class _Writer:
    """The nodes so far, and which of them has the value of each node of the program."""

    def __init__(self, program: Program) -> None:
        self.nodes: list[Written] = [{"op": "variable", "size": program.dim}]
        self.at = [0]
        for node in program.nodes[1:]:
            self.at.append(_WRITERS[type(node)](self, node, [self.at[a] for a in node.of]))

    def add(self, op: str, of: Sequence[int], **data: Any) -> int:
        """Append a node and return its number."""
        self.nodes.append({"op": op, "of": list(of), **data})
        return len(self.nodes) - 1

    def affine(self, of: int, width: int, *, columns: int = 1, **data: Any) -> int:
        return self.add("affine", [of], columns=columns, width=width, **data)

    def gather(self, of: int, width: int, groups: Iterable[Sequence[int]]) -> int:
        """Append sums of entries, one for each group of places."""
        return self.affine(of, width, at=[list(map(int, group)) for group in groups])


def written_nodes(program: Program) -> list[Written]:
    """Return the nodes that compute a function, in order of evaluation, as plain data."""
    return _Writer(program).nodes


def _take(out: _Writer, node: nodes.Take, of: list[int]) -> int:
    return out.gather(of[0], node.sizes[0], node.index.reshape(-1, 1))


def _linear(out: _Writer, node: nodes.Linear, of: list[int]) -> int:
    A, width = node.matrix, node.matrix.shape[1]
    if sparse.issparse(A):
        spans = [slice(*ends) for ends in zip(A.indptr[:-1].tolist(), A.indptr[1:].tolist())]
        rows = [[written(a) for a in A.data[span].tolist()] for span in spans]
        at = [A.indices[span].tolist() for span in spans]
        return out.affine(of[0], width, columns=node.columns, rows=rows, at=at)
    dense = A if isinstance(A, np.ndarray) else A.toarray()
    rows = [[written(a) for a in row] for row in dense.tolist()]
    return out.affine(of[0], width, columns=node.columns, rows=rows)


def _scale(out: _Writer, node: nodes.Scale, of: list[int]) -> int:
    if isinstance(node.factor, Fraction):
        factors: list[Any] = [node.factor] * node.size
    else:
        factors = node.factor.tolist()
    if node.inverse:
        factors = [1 / Fraction(factor) for factor in factors]
    rows = [[written(factor)] for factor in factors]
    return out.affine(of[0], node.size, rows=rows, at=[[i] for i in range(node.size)])


def _shift(out: _Writer, node: nodes.Shift, of: list[int]) -> int:
    offset = [written(c) for c in node.constant.tolist()]
    at = [[i] for i in range(node.size)]
    return out.affine(of[0], node.size, at=at, offset=offset)


def _add(out: _Writer, node: nodes.Node, of: list[int]) -> int:
    return out.add("add", of)


def _stack(out: _Writer, node: nodes.Node, of: list[int]) -> int:
    parts, start = [], 0
    for argument, size in zip(of, node.sizes):
        groups = [[i - start] if 0 <= i - start < size else [] for i in range(node.size)]
        parts.append(out.gather(argument, size, groups))
        start += size
    return out.add("add", parts)


def _total(out: _Writer, node: nodes.Node, of: list[int]) -> int:
    return out.gather(of[0], node.sizes[0], [range(node.sizes[0])])


def _multiply(out: _Writer, node: nodes.Node, of: list[int]) -> int:
    return out.add("multiply", of)


def _product(out: _Writer, node: nodes.Product, of: list[int]) -> int:
    k = node.inner
    n, m = node.sizes[0] // k, node.sizes[1] // k
    i, j, l = (a.ravel() for a in np.meshgrid(range(n), range(m), range(k), indexing="ij"))
    left = out.gather(of[0], n * k, (i * k + l)[:, None])
    right = out.gather(of[1], k * m, (l * m + j)[:, None])
    terms = out.add("multiply", [left, right])
    return out.gather(terms, n * m * k, np.arange(n * m * k).reshape(n * m, k))


def _piecewise(out: _Writer, node: kinked.Piecewise, of: list[int]) -> int:
    breakpoints = [written(t) for t in node.breakpoints]
    pieces = [[written(c) for c in piece] for piece in node.pieces]
    return out.add("piecewise", of, breakpoints=breakpoints, pieces=pieces)


def _log(out: _Writer, node: nodes.Node, of: list[int]) -> int:
    return out.add("log", of)


def _pseudo_huber(out: _Writer, node: nodes.PseudoHuber, of: list[int]) -> int:
    """t |(t, u)| - t^2, from rows (t, u)."""
    t, size = node.threshold, node.size
    at = [place for i in range(size) for place in ([], [i])]
    offset = [written(c) for _ in range(size) for c in (t, Fraction(0))]
    pairs = out.affine(of[0], size, at=at, offset=offset)
    norms = out.add("norm2", [pairs], columns=2)
    rows, places = [[written(t)]] * size, [[i] for i in range(size)]
    return out.affine(norms, size, rows=rows, at=places, offset=[written(-t * t)] * size)


def _rowwise(out: _Writer, node: nodes.Rowwise, of: list[int]) -> int:
    return out.add(node.name, of, columns=node.columns)


_WRITERS: dict[type, Callable[..., int]] = {
    nodes.Take: _take,
    nodes.Linear: _linear,
    nodes.Scale: _scale,
    nodes.Shift: _shift,
    nodes.Add: _add,
    nodes.Stack: _stack,
    nodes.Total: _total,
    nodes.Multiply: _multiply,
    nodes.Product: _product,
    nodes.Log: _log,
    nodes.PseudoHuber: _pseudo_huber,
    nodes.LogSumExp: _rowwise,
    kinked.Piecewise: _piecewise,
    kinked.Max: _rowwise,
    kinked.Norm2: _rowwise,
}

__all__ = ["written_nodes"]
