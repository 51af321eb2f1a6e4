"""`suggest_target`: which eps and delta answer the question that a user has in mind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.api.inputs import RNG, as_start, check_size, is_number, sized
from goldstein.display import InNotebooks
from goldstein.errors import InputError, KinkError
from goldstein.numerics.ball import LONGEST, smallest_delta, uniform_in_ball
from goldstein.numerics.streams import seed_from, stream
from goldstein.oracles import CountedOracle, Oracle, as_oracle

#: Gradients looked at.
_GRADIENTS = 5

#: Accuracies relative to the size of x and of the gradients, unless the user says otherwise.
_RELATIVE = 1e-3


@dataclass(frozen=True)
class Target(InNotebooks):
    """A proposal for `minimize` and `certify`.

    Attributes
    ----------
    eps, delta : float
    gradient_scale : float
        Length of a typical gradient near x0, in units of f per unit of x.
    x_scale : float
        Size of x0, or 1 where x0 is smaller.
    """

    eps: float
    delta: float
    gradient_scale: float
    x_scale: float

    def __repr__(self) -> str:
        return (
            f"Target(eps={self.eps:.3g}, delta={self.delta:.3g}): gradients near x0 have length "
            f"{self.gradient_scale:.3g}, x0 has size {self.x_scale:.3g}"
        )


def suggest_target(
    fun: Oracle | Callable[..., Any],
    x0: Any,
    jac: Callable[..., Any] | bool | None = None,
    *,
    args: Sequence[Any] = (),
    f_tol: float | None = None,
    x_tol: float | None = None,
    rng: RNG = 0,
) -> Target:
    """Propose eps and delta from the start, a few gradients, and what matters to you.

    Parameters
    ----------
    fun, x0, jac, args, rng
        As in `minimize`.
    f_tol : float, optional
        A difference of f that does not matter. For a convex f with a minimiser within R of x,
        (eps, delta)-stationarity gives f(x) - min f <= eps R + 2 G delta, with G a bound of the
        gradients; the proposal makes this at most `f_tol` for R = `x_scale`, with the G that
        was seen.
    x_tol : float, optional
        A difference of x that does not matter: the largest delta.

    Returns
    -------
    Target

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> gs.suggest_target(lambda x: 5 * np.abs(x).sum(), [100.0], lambda x: 5 * np.sign(x))
    Target(eps=0.005, delta=0.1): gradients near x0 have length 5, x0 has size 100
    """
    for name, value in (("f_tol", f_tol), ("x_tol", x_tol)):
        if value is not None and not (is_number(value) and 0 < value < np.inf):
            raise InputError(f"{name} must be a positive finite number or None, got {value!r}.")
    layout, start = as_start(x0, fun)
    check_size(start)
    oracle = CountedOracle(sized(as_oracle(fun, jac, args, layout, start), start), longest=LONGEST)
    size = max(1.0, float(np.abs(start).max()))
    draw = stream(seed_from(rng), 0, "suggest")
    lengths = []
    for _ in range(_GRADIENTS):
        try:
            lengths.append(
                np.linalg.norm(oracle.gradient(uniform_in_ball(draw, start, _RELATIVE * size)))
            )
        except KinkError:
            continue
    steep = float(np.median(lengths)) if lengths else 0.0
    if steep == 0.0:
        raise InputError(
            "every gradient near x0 is 0 or on a kink, so nothing can be proposed; give another x0."
        )
    delta = _RELATIVE * size if x_tol is None else float(x_tol)
    eps = _RELATIVE * steep
    if f_tol is not None:
        delta = min(delta, f_tol / (4.0 * steep))
        eps = f_tol / (2.0 * size)
    return Target(eps, max(delta, smallest_delta(start)), steep, size)
