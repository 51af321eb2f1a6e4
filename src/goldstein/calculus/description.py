"""An expression in the language of the checker: the nodes of `goldstein.checker`.

The data are handed over as they are; nothing is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from goldstein.checker import kinked, nodes
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

    def same(self, kind: Callable[..., nodes.Node], of: int, *data: Any) -> int:
        """Append a node with as many entries as its argument."""
        return self.add(kind, [of], self.nodes[of].size, *data)

    def polynomial(self, of: int, breakpoints: Sequence[Any], pieces: Sequence[Any]) -> int:
        width = max(len(piece) for piece in pieces)
        table = tuple(
            tuple(Fraction(piece[k]) if k < len(piece) else Fraction(0) for k in range(width))
            for piece in pieces
        )
        return self.same(kinked.Piecewise, of, tuple(map(Fraction, breakpoints)), table)


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
    ['variable', 'piecewise', 'total']
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
    last = made.at[id(tree)]
    if last != len(made.nodes) - 1:
        made.add(nodes.Take, [last], 1, np.zeros(1, dtype=np.intp))
    return Program(made.nodes)


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
    return made.add(nodes.Linear, of, node.size, A, math.prod(node.shape[1:]))


def _gather(made: _Builder, node: Gather, of: list[int]) -> int:
    return made.add(nodes.Take, of, node.size, node.index.reshape(-1).astype(np.intp))


def _scale(made: _Builder, node: Scale, of: list[int]) -> int:
    return made.same(nodes.Scale, of[0], _entries(node.factor, node))


def _divide(made: _Builder, node: Divide, of: list[int]) -> int:
    divisor = node.divisor
    if not isinstance(divisor, Fraction):
        divisor = _entries(divisor, node)
    return made.same(nodes.Scale, of[0], divisor, True)


def _entries(values: Any, node: Expression) -> Any:
    return np.broadcast_to(np.asarray(values, dtype=np.float64), node.shape).reshape(-1)


def _shift(made: _Builder, node: Shift, of: list[int]) -> int:
    return made.same(nodes.Shift, of[0], _entries(node.constant, node))


def _add(made: _Builder, node: Expression, of: list[int]) -> int:
    return made.add(nodes.Add, of, node.size)


def _sum(made: _Builder, node: Expression, of: list[int]) -> int:
    return made.add(nodes.Total, of, 1)


def _stack(made: _Builder, node: Expression, of: list[int]) -> int:
    return made.add(nodes.Stack, of, node.size)


def _multiply(made: _Builder, node: Expression, of: list[int]) -> int:
    return made.add(nodes.Multiply, of, node.size)


def _matmul(made: _Builder, node: MatMul, of: list[int]) -> int:
    return made.add(nodes.Product, of, node.size, int(node.args[0].shape[-1]))


def _sum_squares(made: _Builder, node: SumSquares, of: list[int]) -> int:
    return made.add(nodes.Total, [made.polynomial(of[0], [], [[0, 0, 1]])], 1)


def _max(made: _Builder, node: Max, of: list[int]) -> int:
    return made.add(kinked.Max, of, 1, node.args[0].size)


def _row_max(made: _Builder, node: RowMax, of: list[int]) -> int:
    return made.add(kinked.Max, of, node.size, node.columns)


def _norm2(made: _Builder, node: Norm2, of: list[int]) -> int:
    return made.add(kinked.Norm2, of, 1, node.args[0].size)


def _softmax(made: _Builder, node: SoftmaxCrossEntropy, of: list[int]) -> int:
    n, classes = node.args[0].shape
    logs = made.add(nodes.LogSumExp, of, n, classes)
    index = (np.arange(n) * classes + node.labels).astype(np.intp)
    minus = made.same(nodes.Scale, made.add(nodes.Take, of, n, index), np.full(n, -1.0))
    terms = made.same(nodes.Scale, made.add(nodes.Add, [logs, minus], n), node.weights)
    return made.add(nodes.Total, [terms], 1)


def _elementwise(made: _Builder, node: Elementwise, of: list[int]) -> int:
    write = _FUNCTIONS.get(type(node.function))
    if write is None:
        raise _refusal(node.name)
    return write(made, node.function, of[0], node.size)


def _polynomial(made: _Builder, function: PiecewisePolynomial, of: int, size: int) -> int:
    return made.polynomial(of, function.breakpoints, function.pieces)


def _softplus(made: _Builder, function: Softplus, of: int, size: int) -> int:
    """log(exp(0) + exp(sign u)), from rows (0, sign u)."""
    twice = made.add(nodes.Take, [of], 2 * size, np.repeat(np.arange(size), 2))
    rows = made.same(nodes.Scale, twice, np.tile([0.0, float(function.sign)], size))
    return made.add(nodes.LogSumExp, [rows], size, 2)


def _pseudo_huber(made: _Builder, function: PseudoHuber, of: int, size: int) -> int:
    return made.same(nodes.PseudoHuber, of, Fraction(function.threshold))


def _log_sum(made: _Builder, function: LogSum, of: int, size: int) -> int:
    """lam log(1 + |u|/eps): a logarithm of a function with one kink."""
    inner = made.polynomial(of, [0], [[1, -1 / function.eps], [1, 1 / function.eps]])
    return made.same(nodes.Scale, made.same(nodes.Log, inner), Fraction(function.lam))


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
