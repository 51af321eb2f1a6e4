"""Other libraries that take an expression for an array of numbers: words for what to write."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np

from goldstein.errors import InputTypeError

#: Modules whose products ask for an array of numbers instead of leaving `@` to the expression.
_INSTEAD = {
    "scipy.sparse.linalg._interface": "for a LinearOperator A write gs.linear(A, u)",
    "pandas.core.frame": "for a DataFrame write frame.to_numpy() @ u",
}


def as_object(expression: Any, dtype: Any) -> Any:
    """Return an array of one object, by which SciPy's sparse matrices know that `@` is ours.

    Those who would go on with it as if it were numbers are told what to write, before they fail
    with words of their own.
    """
    caller = sys._getframe(2).f_globals.get("__name__", "")
    if caller in _INSTEAD:
        raise InputTypeError(
            f"an expression is a function, not an array of numbers: {_INSTEAD[caller]}."
        )
    if dtype is not None and np.dtype(dtype) != object:
        raise InputTypeError(
            f"an expression is a function, not an array of {np.dtype(dtype)} numbers: F.value(x) "
            "is its value at a point x."
        )
    box = np.empty((), dtype=object)
    box[()] = expression
    return box


def refuse_torch(function: Any) -> NoReturn:
    """PyTorch's functions know tensors only."""
    name = getattr(function, "__name__", str(function))
    raise InputTypeError(
        f"torch.{name} is not known for expressions; write it with NumPy's functions and the atoms "
        "of goldstein (np.abs, np.maximum, gs.relu, ...), or keep the function in PyTorch and pass "
        "goldstein.torch.oracle(fn, params)."
    )
