"""The larger and the smaller of two, entry by entry."""

from __future__ import annotations

from typing import Any

from goldstein.calculus.atoms.activations import relu
from goldstein.calculus.expression import Expression, as_expression, holds_expressions


def maximum(a: Any, b: Any) -> Expression:
    """Return the larger of two, entry by entry, as `np.maximum`; one of them may be a constant.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, maximum
    >>> maximum(Variable(3), [0.0, 1.0, 2.0])(np.array([-1.0, 2.0, 0.5]))
    array([0., 2., 2.])
    """
    if not (isinstance(a, Expression) or holds_expressions(a)):
        a, b = b, a
    left = as_expression(a, "maximum")
    # max(a, b) = b + max(a - b, 0), which is exact in proofs.
    above: Expression = relu(left - b) + b
    return above


def minimum(a: Any, b: Any) -> Expression:
    """Return the smaller of two, entry by entry, as `np.minimum`; one of them may be a constant.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, minimum
    >>> minimum(Variable(2), 1.0)(np.array([-1.0, 2.0]))
    array([-1.,  1.])
    """
    if not (isinstance(a, Expression) or holds_expressions(a)):
        a, b = b, a
    left = as_expression(a, "minimum")
    return left - relu(left - b)


__all__ = ["maximum", "minimum"]
