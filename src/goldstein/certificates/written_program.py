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

from goldstein.checker import nodes
from goldstein.checker.enclosed.part import cut
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


def _affine(out: _Writer, node: nodes.Affine, of: list[int]) -> int:
    A, data = node.matrix, {}
    if sparse.issparse(A):
        spans = [slice(*ends) for ends in zip(A.indptr[:-1].tolist(), A.indptr[1:].tolist())]
        table = [A.data[span].tolist() for span in spans]
        data["at"] = [A.indices[span].tolist() for span in spans]
    else:
        table = (A if isinstance(A, np.ndarray) else A.toarray()).tolist()
    divisor = np.ones(node.size) if node.divisor is None else node.divisor
    if node.columns > 1 and node.divisor is not None:
        raise NotImplementedError("a table divided entry by entry")
    if any(a != 1 for row in table for a in row) or node.divisor is not None or "at" not in data:
        by = divisor[:: node.columns].tolist()
        data["rows"] = [[_quotient(a, q) for a in row] for row, q in zip(table, by)]
    if node.offset is not None:
        data["offset"] = [_quotient(c, q) for c, q in zip(node.offset.tolist(), divisor.tolist())]
    return out.affine(of[0], A.shape[1], columns=node.columns, **data)


def _quotient(a: float, q: float) -> str:
    return written(a if q == 1 else Fraction(a) / Fraction(q))


def _add(out: _Writer, node: nodes.Node, of: list[int]) -> int:
    return out.add("add", of)


def _product(out: _Writer, node: nodes.Product, of: list[int]) -> int:
    if node.inner == 1 and node.sizes == (node.size, node.size):
        return out.add("multiply", of)
    # All products one by one, and their sums.
    _, _, (left, right) = cut(node, np.arange(node.size), None)
    sides = [
        out.gather(argument, size, places[:, None])
        for argument, size, places in zip(of, node.sizes, (left, right))
    ]
    terms = out.add("multiply", sides)
    return out.gather(terms, left.size, np.arange(left.size).reshape(node.size, node.inner))


def _piecewise(out: _Writer, node: nodes.Piecewise, of: list[int]) -> int:
    breakpoints = [written(t) for t in node.breakpoints]
    pieces = [[written(c) for c in piece] for piece in node.pieces]
    return out.add("piecewise", of, breakpoints=breakpoints, pieces=pieces)


def _smooth(out: _Writer, node: nodes.Smooth, of: list[int]) -> int:
    if node.function.name != "pseudo_huber":
        return out.add(node.function.name, of)
    # |(1, u)| - 1, from rows (1, u).
    size, places = node.size, [[i] for i in range(node.size)]
    at = [place for i in range(size) for place in ([], [i])]
    pairs = out.affine(of[0], size, at=at, offset=["1", "0"] * size)
    norms = out.add("norm2", [pairs], columns=2)
    return out.affine(norms, size, at=places, offset=["-1"] * size)


def _rowwise(out: _Writer, node: nodes.Rowwise, of: list[int]) -> int:
    return out.add(node.name, of, columns=node.columns)


_WRITERS: dict[type, Callable[..., int]] = {
    nodes.Affine: _affine,
    nodes.Add: _add,
    nodes.Product: _product,
    nodes.Smooth: _smooth,
    nodes.LogSumExp: _rowwise,
    nodes.Piecewise: _piecewise,
    nodes.Max: _rowwise,
    nodes.Norm2: _rowwise,
}

__all__ = ["written_nodes"]
