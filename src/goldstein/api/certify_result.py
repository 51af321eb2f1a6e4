"""`certify_result`: how stationary is what another optimizer returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from goldstein.api.certify import certify
from goldstein.api.inputs import RNG, as_vector
from goldstein.api.options import in_words
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.box import as_box
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles import Oracle


@in_words
def certify_result(
    res: Any,
    fun: Oracle | Callable[..., Any],
    jac: Callable[..., Any] | bool | str | None = None,
    *,
    delta: float,
    eps: float = 0.0,
    args: Sequence[Any] = (),
    bounds: Any = None,
    constraints: Any = (),
    stationarity: Literal["goldstein", "near"] = "goldstein",
    rng: RNG = None,
    max_calls: int | None = None,
    max_time: float | None = None,
) -> Any:
    """Say how stationary the answer of another optimizer is, whatever it says itself.

    Parameters
    ----------
    res : OptimizeResult, or anything with an `x`
        What `scipy.optimize.minimize`, `basinhopping`, ... returned; a mapping with "x" will do.
    fun, jac, args, delta, eps, bounds, constraints, stationarity, rng, max_calls, max_time
        As in `certify`. A point that misses its bounds by less than `delta`, as some methods leave
        it, is moved onto them; `certificate.x` is the point that the claim is about, and
        `certificate.meta["moved"]` how far that is from `res.x`.

    Returns
    -------
    The certificate, as `certify` returns it; `verify` checks it.

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> from scipy.optimize import minimize
    >>> def f(x): return abs(x[0]) + 2 * abs(x[1])
    >>> def g(x): return np.array([np.sign(x[0]), 2 * np.sign(x[1])])
    >>> res = minimize(f, [3.0, -1.0], method="Nelder-Mead")
    >>> certificate = gs.certify_result(res, f, g, delta=1e-3, rng=0)
    >>> certificate.eps < 1e-6, certificate.verify(f, g).ok
    (True, True)
    """
    x = as_vector(_point(res), "res.x")
    moved = 0.0
    if bounds is not None:
        x, moved = _inside(x, bounds, delta)
    request: dict[str, Any] = {
        "args": args, "delta": delta, "eps": eps, "bounds": bounds, "constraints": constraints,
        "stationarity": stationarity, "rng": rng, "max_calls": max_calls, "max_time": max_time,
    }  # fmt: skip
    found: Any = certify(fun, x, jac, **request)
    return replace(found, meta={**found.meta, "moved": moved}, digest="") if moved else found


def _point(res: Any) -> Any:
    try:
        return res["x"] if isinstance(res, dict) else res.x
    except (KeyError, AttributeError):
        raise InputTypeError(
            f"{type(res).__name__} has no x; pass what the optimizer returned, or call "
            "gs.certify(fun, x, jac, delta=...) with the point itself."
        ) from None


def _inside(x: Vector, bounds: Any, delta: float) -> tuple[Vector, float]:
    inside = as_box(bounds, x.size).clip(x)
    moved = float(np.linalg.norm(inside - x))
    if moved > delta:
        raise InputError(
            f"res.x is {moved:g} outside the bounds, more than delta = {delta:g}: it is no point "
            "of this problem."
        )
    return inside, moved
