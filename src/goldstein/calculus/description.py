"""An expression as data: a list of nodes of a few kinds, for proof files.

The language is that of docs/proof_files.md; every number is exact. Nothing here is trusted: a file
that describes another function proves something about that function, and says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.calculus.affine import (
    Add,
    Divide,
    Gather,
    Linear,
    MatMul,
    Multiply,
    Scale,
    Shift,
    Sum,
)
from goldstein.calculus.atoms.base import Elementwise, PiecewisePolynomial
from goldstein.calculus.atoms.maximum import Max
from goldstein.calculus.atoms.norms import Norm2, SumSquares
from goldstein.calculus.atoms.penalties import LogSum
from goldstein.calculus.atoms.row_maximum import RowMax
from goldstein.calculus.atoms.softmax import SoftmaxCrossEntropy
from goldstein.calculus.atoms.transcendental import PseudoHuber, Softplus
from goldstein.calculus.blocked_rows import BlockedRows
from goldstein.calculus.expression import Expression, Variable
from goldstein.errors import InputTypeError
from goldstein.numerics.written import written

Node = dict[str, Any]


class _Description:
    """The nodes so far, and where each expression's value is among them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.at: dict[int, int] = {}

    def add(self, op: str, of: Sequence[int], **data: Any) -> int:
        """Append a node and return its number."""
        self.nodes.append({"op": op, "of": list(of), **data})
        return len(self.nodes) - 1

    def affine(self, of: int, width: int, *, columns: int = 1, **data: Any) -> int:
        return self.add("affine", [of], columns=columns, width=width, **data)

    def gather(self, of: int, width: int, groups: Iterable[Sequence[int]]) -> int:
        """Append sums of entries, one for each group of places."""
        return self.affine(of, width, at=[list(map(int, group)) for group in groups])

    def scale(self, of: int, factors: Sequence[Any]) -> int:
        rows = [[written(f)] for f in factors]
        return self.affine(of, len(rows), rows=rows, at=[[i] for i in range(len(rows))])

    def polynomial(self, of: int, breakpoints: Sequence[Any], pieces: Sequence[Any]) -> int:
        table = [[written(c) for c in piece] for piece in pieces]
        return self.add(
            "piecewise", [of], breakpoints=[written(t) for t in breakpoints], pieces=table
        )


def describe(root: Expression) -> list[Node]:
    """Return the nodes that compute a scalar expression, in order of evaluation.

    Raises
    ------
    InputTypeError
        When a part of it has no exact description: a LinearOperator, user code.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> for node in describe(sum(abs(Variable(2)))):
    ...     print(node)
    {'op': 'variable', 'size': 2}
    {'op': 'piecewise', 'of': [0], 'breakpoints': ['0'], 'pieces': [['0', '-1'], ['0', '1']]}
    {'op': 'affine', 'of': [1], 'columns': 1, 'width': 2, 'at': [[0, 1]]}
    """
    tree = root.anew()
    made = _Description()
    # First, even where nothing depends on it.
    made.nodes.append({"op": "variable", "size": tree.variable.size})
    for node in tree.plan:
        if isinstance(node, Variable):
            made.at[id(node)] = 0
            continue
        write = _WRITERS.get(type(node))
        if write is None:
            raise _refusal(node.name)
        made.at[id(node)] = write(made, node, [made.at[id(a)] for a in node.args])
    if made.at[id(tree)] != len(made.nodes) - 1:
        made.gather(made.at[id(tree)], tree.size, [[0]])
    return made.nodes


def _refusal(name: str) -> InputTypeError:
    return InputTypeError(
        f"{name} cannot be written to a proof file: its exact values are not known. Use matrices "
        "(dense or sparse) instead of LinearOperators, and atoms instead of functions of your own."
    )


def _linear(made: _Description, node: Linear, of: list[int]) -> int:
    if node.matrix_free:
        raise _refusal("a LinearOperator")
    width = node.args[0].shape[0]
    columns = node.args[0].size // width
    A = node.A.toarray() if isinstance(node.A, BlockedRows) else node.A
    if not sparse.issparse(A):
        rows = [[written(a) for a in row] for row in A.tolist()]
        return made.affine(of[0], width, columns=columns, rows=rows)
    A = sparse.csr_array(A)
    spans = [slice(*ends) for ends in zip(A.indptr[:-1].tolist(), A.indptr[1:].tolist())]
    rows = [[written(a) for a in A.data[span].tolist()] for span in spans]
    at = [A.indices[span].tolist() for span in spans]
    return made.affine(of[0], width, columns=columns, rows=rows, at=at)


def _gather(made: _Description, node: Gather, of: list[int]) -> int:
    return made.gather(of[0], node.args[0].size, node.index.reshape(-1, 1))


def _scale(made: _Description, node: Scale, of: list[int]) -> int:
    return made.scale(of[0], np.broadcast_to(node.factor, node.shape).ravel().tolist())


def _divide(made: _Description, node: Divide, of: list[int]) -> int:
    divisor = node.divisor
    if isinstance(divisor, Fraction):
        return made.scale(of[0], [1 / divisor] * node.size)
    numbers = np.broadcast_to(divisor, node.shape).ravel().tolist()
    return made.scale(of[0], [1 / Fraction(number) for number in numbers])


def _shift(made: _Description, node: Shift, of: list[int]) -> int:
    offset = [written(c) for c in node.constant.ravel().tolist()]
    at = [[i] for i in range(node.size)]
    return made.affine(of[0], node.size, at=at, offset=offset)


def _add(made: _Description, node: Expression, of: list[int]) -> int:
    return made.add("add", of)


def _sum(made: _Description, node: Expression, of: list[int]) -> int:
    size = node.args[0].size
    return made.gather(of[0], size, [range(size)])


def _multiply(made: _Description, node: Expression, of: list[int]) -> int:
    return made.add("multiply", of)


def _matmul(made: _Description, node: MatMul, of: list[int]) -> int:
    k = node.args[0].shape[-1]
    n, m = node.args[0].size // k, node.args[1].size // k
    i, j, l = (a.ravel() for a in np.meshgrid(range(n), range(m), range(k), indexing="ij"))
    a = made.gather(of[0], n * k, (i * k + l)[:, None])
    b = made.gather(of[1], k * m, (l * m + j)[:, None])
    product = made.add("multiply", [a, b])
    return made.gather(product, n * m * k, np.arange(n * m * k).reshape(n * m, k))


def _sum_squares(made: _Description, node: SumSquares, of: list[int]) -> int:
    squares = made.polynomial(of[0], [], [[0, 0, 1]])
    return _sum(made, node, [squares])


def _max(made: _Description, node: Max, of: list[int]) -> int:
    return made.add("max", of, columns=node.args[0].size)


def _row_max(made: _Description, node: RowMax, of: list[int]) -> int:
    return made.add("max", of, columns=node.columns)


def _norm2(made: _Description, node: Norm2, of: list[int]) -> int:
    return made.add("norm2", of, columns=node.args[0].size)


def _softmax(made: _Description, node: SoftmaxCrossEntropy, of: list[int]) -> int:
    n, classes = node.args[0].shape
    weights = [[written(p) for p in node.weights.tolist()]]
    logs = made.add("logsumexp", of, columns=classes)
    label = [(np.arange(n) * classes + node.labels).tolist()]
    minus = [[written(-p) for p in node.weights.tolist()]]
    picked = made.affine(of[0], n * classes, rows=minus, at=label)
    return made.add("add", [made.affine(logs, n, rows=weights), picked])


def _elementwise(made: _Description, node: Elementwise, of: list[int]) -> int:
    write = next((w for kind, w in _FUNCTIONS if isinstance(node.function, kind)), None)
    if write is None:
        raise _refusal(node.name)
    return write(made, node.function, of[0], node.size)


def _polynomial(made: _Description, function: PiecewisePolynomial, of: int, size: int) -> int:
    return made.polynomial(of, function.breakpoints, function.pieces)


def _softplus(made: _Description, function: Softplus, of: int, size: int) -> int:
    """log(exp(0) + exp(sign u)), from rows (0, sign u)."""
    rows = [row for _ in range(size) for row in ([], [written(function.sign)])]
    pairs = made.affine(of, size, rows=rows, at=_second_of_pairs(size))
    return made.add("logsumexp", [pairs], columns=2)


def _pseudo_huber(made: _Description, function: PseudoHuber, of: int, size: int) -> int:
    """t |(t, u)| - t^2, from rows (t, u)."""
    t = function.threshold
    offset = [written(c) for _ in range(size) for c in (t, 0)]
    pairs = made.affine(of, size, at=_second_of_pairs(size), offset=offset)
    norms = made.add("norm2", [pairs], columns=2)
    at = [[i] for i in range(size)]
    offset = [written(-t * t)] * size
    return made.affine(norms, size, rows=[[written(t)]] * size, at=at, offset=offset)


def _log_sum(made: _Description, function: LogSum, of: int, size: int) -> int:
    """lam log(1 + |u|/eps): a logarithm of a function with one kink."""
    inner = made.polynomial(of, [0], [[1, -1 / function.eps], [1, 1 / function.eps]])
    return made.scale(made.add("log", [inner]), [function.lam] * size)


def _second_of_pairs(size: int) -> list[list[int]]:
    return [place for i in range(size) for place in ([], [i])]


_FUNCTIONS: list[tuple[type, Callable[..., int]]] = [
    (PiecewisePolynomial, _polynomial),
    (Softplus, _softplus),
    (PseudoHuber, _pseudo_huber),
    (LogSum, _log_sum),
]

#: How the nodes of the library are written. The exact type counts: a subclass may mean more.
_WRITERS: dict[type, Callable[..., int]] = {
    Linear: _linear,
    Gather: _gather,
    Scale: _scale,
    Divide: _divide,
    Shift: _shift,
    Add: _add,
    Sum: _sum,
    Multiply: _multiply,
    MatMul: _matmul,
    SumSquares: _sum_squares,
    Max: _max,
    RowMax: _row_max,
    Norm2: _norm2,
    SoftmaxCrossEntropy: _softmax,
    Elementwise: _elementwise,
}

__all__ = ["describe"]
