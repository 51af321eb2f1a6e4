"""Several expressions side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.calculus.affine import Gather, Scale, Shift, common_shape
from goldstein.calculus.arithmetic import RATIONAL, Arithmetic
from goldstein.calculus.expression import Bound, Expression, Jet, holds_expressions
from goldstein.calculus.stillness import Still
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact_floats import exact_floats


class Concatenate(Expression):
    """The entries of several expressions in one vector, in order."""

    def __init__(self, args: Sequence[Expression]) -> None:
        super().__init__(args, (sum(a.size for a in args),))
        self._ends = tuple(np.cumsum([a.size for a in args]).tolist())

    def with_args(self, args: Sequence[Expression]) -> Concatenate:
        return Concatenate(args)

    @property
    def own_affine(self) -> bool:
        return True

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        flat = [value.reshape(-1) for value in values]
        if isinstance(flat[0], Enclosure):
            mid, rad = ([getattr(v, part) for v in flat] for part in ("mid", "rad"))
            return Enclosure(np.concatenate(mid), np.concatenate(rad))
        return np.concatenate(flat)

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        starts = (0, *self._ends)
        return tuple(
            cotangent[start:end].reshape(a.shape)
            for a, start, end in zip(self.args, starts, self._ends)
        )

    def still(self, args: Sequence[Still], piece: Any, touched: frozenset[int]) -> Still:
        return Still(
            np.concatenate([a.constant.reshape(-1) for a in args]),
            np.concatenate([a.zero.reshape(-1) for a in args]),
        )

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        value = np.concatenate([b.value.reshape(-1) for b in bounds])
        return Bound(value, math.hypot(*(b.lipschitz for b in bounds)), bounds[0].radius)

    def jet(self, jets: Sequence[Jet], piece: Any) -> Jet:
        longest = max(len(jet) for jet in jets)
        nothing = [RATIONAL.zeros((a.size,)) for a in self.args]
        return [
            np.concatenate(
                [
                    jet[power].reshape(-1) if power < len(jet) else none
                    for jet, none in zip(jets, nothing)
                ]
            )
            for power in range(longest)
        ]

    def _place(self, index: int) -> tuple[Expression, int]:
        start = 0
        for argument, end in zip(self.args, self._ends):
            if index < end:
                return argument, index - start
            start = end
        raise IndexError(index)

    def row(self, index: int) -> dict[int, Fraction]:
        argument, place = self._place(index)
        return argument.row(place)

    def offset(self, index: int) -> Fraction:
        argument, place = self._place(index)
        return argument.offset(place)

    def magnitude(self) -> tuple[Vector, Vector]:
        pairs = [a.magnitude() for a in self.args]
        return np.concatenate([g for g, _ in pairs]), np.concatenate([s for _, s in pairs])


def stack(parts: Any) -> Expression:
    """Return expressions and numbers of one shape as the rows of one expression, as `np.stack`.

    Parameters
    ----------
    parts : sequence
        Expressions, numbers and arrays; at least one expression.

    Examples
    --------
    >>> from goldstein.calculus import Variable, max, stack
    >>> x, y = Variable(2)
    >>> max(stack([x + y, x * y, 1.0])).value(np.array([2.0, 3.0]))
    6.0
    """
    entries = list(parts) if isinstance(parts, list | tuple | np.ndarray) else [parts]
    known = [p for p in entries if isinstance(p, Expression)]
    nested = [p for p in entries if not isinstance(p, Expression) and holds_expressions(p)]
    if nested:
        return stack([stack(p) if holds_expressions(p) else p for p in entries])
    if not known:
        raise InputTypeError("stack needs at least one expression; make a Variable first.")
    shape = known[0].shape
    made = [
        p if isinstance(p, Expression) else _constant(p, known[0].variable, shape) for p in entries
    ]
    if any(p.shape != shape for p in made):
        raise InputError(
            f"cannot stack shapes {', '.join(str(p.shape) for p in made)}: they must agree."
        )
    return Concatenate(made).reshape(len(made), *shape)


def concatenate(parts: Any) -> Expression:
    """Return the entries of vectors one after the other, as `np.concatenate`.

    Examples
    --------
    >>> from goldstein.calculus import Variable, concatenate
    >>> w = Variable(3)
    >>> concatenate([w[:1], 2.0 * w[1:], [7.0]])(np.array([1.0, 2.0, 3.0]))
    array([1., 4., 6., 7.])
    """
    entries = list(parts)
    known = [p for p in entries if isinstance(p, Expression)]
    if not known:
        raise InputTypeError("concatenate needs at least one expression; make a Variable first.")
    made = [p if isinstance(p, Expression) else _constant(p, known[0].variable) for p in entries]
    if any(p.ndim != 1 for p in made):
        raise InputError(
            f"concatenate takes vectors, got shapes {', '.join(str(p.shape) for p in made)}; "
            "reshape them, or use stack."
        )
    return Concatenate(made)


def _constant(value: Any, variable: Expression, shape: tuple[int, ...] | None = None) -> Expression:
    """Return numbers as an expression that does not depend on the variable."""
    numbers = exact_floats(value, "an entry")
    shape = numbers.shape if shape is None else common_shape("stack", numbers.shape, shape)
    nothing = Scale(Gather(variable, np.zeros(shape, dtype=np.intp)), 0.0)
    return Shift(nothing, numbers)


__all__ = ["Concatenate", "concatenate", "stack"]
