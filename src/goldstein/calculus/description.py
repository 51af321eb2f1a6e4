"""An expression in the language of the checker: the nodes of `goldstein.checker`.

The data are handed over as they are; nothing is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
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
from goldstein.calculus.atoms.activations import Abs, Relu
from goldstein.calculus.atoms.base import Elementwise, PiecewisePolynomial
from goldstein.calculus.atoms.maximum import Max
from goldstein.calculus.atoms.norms import Norm2, SumSquares
from goldstein.calculus.atoms.penalties import LogSum
from goldstein.calculus.atoms.row_maximum import RowMax
from goldstein.calculus.atoms.softmax import SoftmaxCrossEntropy
from goldstein.calculus.atoms.transcendental import PseudoHuber, Softplus
from goldstein.calculus.expression import Expression, Variable
from goldstein.calculus.stacking import Concatenate
from goldstein.checker import nodes
from goldstein.checker.enclosed.smooth import FUNCTIONS
from goldstein.checker.sides import Program
from goldstein.errors import InputTypeError, NotCertifiableError


class _Builder:
    """The nodes so far, and where each expression's value is among them."""

    def __init__(self, variables: int) -> None:
        # First, even where nothing depends on it.
        self.nodes: list[nodes.Node] = [nodes.Variable((), (), variables)]
        self.at: dict[int, int] = {}

    def add(self, kind: Callable[..., nodes.Node], of: Sequence[int], size: int, *data: Any) -> int:
        """Append a node and return its number."""
        sizes = tuple(self.nodes[a].size for a in of)
        self.nodes.append(kind(tuple(of), sizes, size, *data))
        return len(self.nodes) - 1

    def affine(self, of: int, matrix: Any, columns: int = 1, *vectors: Any) -> int:
        """Append (M u + offset) / divisor."""
        size = matrix.shape[0] * columns
        return self.add(nodes.Affine, [of], size, matrix, columns, *vectors)

    def scaled(self, of: int, factor: Any) -> int:
        """Append a rational times the argument."""
        return self.polynomial(of, [], [[0, factor]])

    def polynomial(self, of: int, breakpoints: Sequence[Any], pieces: Sequence[Any]) -> int:
        width = max(len(piece) for piece in pieces)
        table = tuple(
            tuple(Fraction(piece[k]) if k < len(piece) else Fraction(0) for k in range(width))
            for piece in pieces
        )
        size = self.nodes[of].size
        return self.add(nodes.Piecewise, [of], size, tuple(map(Fraction, breakpoints)), table)

    def program(self, last: int) -> Program:
        """Return the function whose value is this node, without nodes that it does not need."""
        used = sorted({0, *_ancestors(self.nodes, last)})
        number = {old: new for new, old in enumerate(used)}
        kept = [
            replace(n, of=tuple(number[a] for a in n.of)) for n in map(self.nodes.__getitem__, used)
        ]
        if last == 0:
            kept.append(nodes.Add((0,), (1,), 1))
        return Program(kept)


def _ancestors(nodes: Sequence[nodes.Node], k: int) -> set[int]:
    seen, stack = {k}, [k]
    while stack:
        new = set(nodes[stack.pop()].of) - seen
        seen |= new
        stack += new
    return seen


def selection(index: Any, width: int, numbers: Any = None) -> sparse.csr_array:
    """Return the matrix that picks entries, perhaps times numbers."""
    index = np.asarray(index, dtype=np.intp)
    data = np.ones(index.size) if numbers is None else np.asarray(numbers, dtype=np.float64)
    return sparse.csr_array((data, index, np.arange(index.size + 1)), shape=(index.size, width))


def program_of(root: Expression) -> Program:
    """Return a scalar expression as the checker reads it.

    Raises
    ------
    InputTypeError
        When a part of it has no exact description: a LinearOperator, user code.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> [node.name for node in program_of(sum(abs(Variable(2)))).nodes]
    ['variable', 'piecewise', 'affine']
    """
    tree = root.anew()
    made = _Builder(tree.variable.size)
    for node in tree.plan:
        if isinstance(node, Variable):
            made.at[id(node)] = 0
            continue
        write = _WRITERS.get(type(node))
        if write is None:
            raise _refusal(node.name)
        made.at[id(node)] = write(made, node, [made.at[id(a)] for a in node.args])
    return made.program(made.at[id(tree)])


class Undescribed(InputTypeError, NotCertifiableError):
    """A part of the function has no exact description."""

    __module__ = "goldstein.errors"


def _refusal(name: str) -> Undescribed:
    return Undescribed(
        f"{name} is user code, whose exact values are not known. Use matrices (dense or sparse) "
        "instead of LinearOperators, and atoms instead of functions of your own."
    )


def _linear(made: _Builder, node: Linear, of: list[int]) -> int:
    if node.matrix_free:
        raise _refusal("a LinearOperator")
    A = node.A
    if sparse.issparse(A):
        A = sparse.csr_array(A)
    return made.affine(of[0], A, math.prod(node.shape[1:]))


def _gather(made: _Builder, node: Gather, of: list[int]) -> int:
    return made.affine(of[0], selection(node.index.reshape(-1), made.nodes[of[0]].size))


def _scale(made: _Builder, node: Scale, of: list[int]) -> int:
    return made.affine(
        of[0], selection(np.arange(node.size), node.size, _entries(node.factor, node))
    )


def _divide(made: _Builder, node: Divide, of: list[int]) -> int:
    if isinstance(node.divisor, Fraction):
        return made.scaled(of[0], 1 / node.divisor)
    same = selection(np.arange(node.size), node.size)
    return made.affine(of[0], same, 1, None, _entries(node.divisor, node))


def _entries(values: Any, node: Expression) -> Any:
    return np.broadcast_to(np.asarray(values, dtype=np.float64), node.shape).reshape(-1)


def _shift(made: _Builder, node: Shift, of: list[int]) -> int:
    before, constant = made.nodes[of[0]], _entries(node.constant, node)
    if isinstance(before, nodes.Affine) and before.offset is None and before.divisor is None:
        return made.affine(before.of[0], before.matrix, before.columns, constant)
    return made.affine(of[0], selection(np.arange(node.size), node.size), 1, constant)


def _add(made: _Builder, node: Expression, of: list[int]) -> int:
    return made.add(nodes.Add, of, node.size)


def _sum(made: _Builder, node: Expression, of: list[int]) -> int:
    return made.affine(of[0], np.ones((1, made.nodes[of[0]].size)))


def _stack(made: _Builder, node: Expression, of: list[int]) -> int:
    parts, start = [], 0
    for argument in of:
        size = made.nodes[argument].size
        rows = np.arange(start, start + size)
        data = (np.ones(size), (rows, np.arange(size)))
        parts.append(made.affine(argument, sparse.csr_array(data, shape=(node.size, size))))
        start += size
    return made.add(nodes.Add, parts, node.size)


def _multiply(made: _Builder, node: Expression, of: list[int]) -> int:
    return made.add(nodes.Product, of, node.size, node.size, 1)


def _matmul(made: _Builder, node: MatMul, of: list[int]) -> int:
    return made.add(nodes.Product, of, node.size, 1, int(node.args[0].shape[-1]))


def _sum_squares(made: _Builder, node: SumSquares, of: list[int]) -> int:
    return _sum(made, node, [made.polynomial(of[0], [], [[0, 0, 1]])])


def _max(made: _Builder, node: Max, of: list[int]) -> int:
    return made.add(nodes.Max, of, 1, node.args[0].size)


def _row_max(made: _Builder, node: RowMax, of: list[int]) -> int:
    return made.add(nodes.Max, of, node.size, node.columns)


def _norm2(made: _Builder, node: Norm2, of: list[int]) -> int:
    return made.add(nodes.Norm2, of, 1, node.args[0].size)


def _softmax(made: _Builder, node: SoftmaxCrossEntropy, of: list[int]) -> int:
    n, classes = node.args[0].shape
    index, weights = np.arange(n) * classes + node.labels, np.asarray(node.weights, dtype=float)
    logs = made.affine(made.add(nodes.LogSumExp, of, n, classes), weights[None])
    right = np.zeros((1, n * classes))
    right[0, index] = -weights
    return made.add(nodes.Add, [logs, made.affine(of[0], right)], 1)


def _elementwise(made: _Builder, node: Elementwise, of: list[int]) -> int:
    write = _FUNCTIONS.get(type(node.function))
    if write is None:
        raise _refusal(node.name)
    return write(made, node.function, of[0], node.size)


def _polynomial(made: _Builder, function: PiecewisePolynomial, of: int, size: int) -> int:
    return made.polynomial(of, function.breakpoints, function.pieces)


def _softplus(made: _Builder, function: Softplus, of: int, size: int) -> int:
    """log(exp(0) + exp(sign u)), from rows (0, sign u)."""
    numbers, ends = np.full(size, float(function.sign)), np.repeat(np.arange(size + 1), 2)[:-1]
    rows = sparse.csr_array((numbers, np.arange(size), ends), shape=(2 * size, size))
    return made.add(nodes.LogSumExp, [made.affine(of, rows)], size, 2)


def _pseudo_huber(made: _Builder, function: PseudoHuber, of: int, size: int) -> int:
    """t^2 (sqrt(1 + (u/t)^2) - 1)."""
    t = Fraction(function.threshold)
    return made.scaled(
        made.add(nodes.Smooth, [made.scaled(of, 1 / t)], size, FUNCTIONS["pseudo_huber"]), t * t
    )


def _log_sum(made: _Builder, function: LogSum, of: int, size: int) -> int:
    """lam log(1 + |u|/eps): a logarithm of a function with one kink."""
    inner = made.polynomial(of, [0], [[1, -1 / function.eps], [1, 1 / function.eps]])
    return made.scaled(
        made.add(nodes.Smooth, [inner], size, FUNCTIONS["log"]), Fraction(function.lam)
    )


_FUNCTIONS: dict[type, Callable[..., int]] = {
    PiecewisePolynomial: _polynomial,
    Abs: _polynomial,
    Relu: _polynomial,
    Softplus: _softplus,
    PseudoHuber: _pseudo_huber,
    LogSum: _log_sum,
}

#: How the nodes of the library are written. The exact type counts: a subclass may mean more.
_WRITERS: dict[type, Callable[..., int]] = {
    Linear: _linear,
    Gather: _gather,
    Scale: _scale,
    Divide: _divide,
    Shift: _shift,
    Add: _add,
    Sum: _sum,
    Concatenate: _stack,
    Multiply: _multiply,
    MatMul: _matmul,
    SumSquares: _sum_squares,
    Max: _max,
    RowMax: _row_max,
    Norm2: _norm2,
    SoftmaxCrossEntropy: _softmax,
    Elementwise: _elementwise,
}

__all__ = ["Undescribed", "program_of"]
