"""Proof files: a certificate and its function in one JSON file, for somebody who has neither.

docs/proof_files.md describes them; `goldstein-check` decides about them, without this library.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.blackbox.perturbed import SAME
from goldstein.checker.exact import exact_combination
from goldstein.checker.rationals import sqrt_upper, squared_norm
from goldstein.checker.rounding import mean_length, rounding_slack
from goldstein.checker.sides import point_at
from goldstein.errors import GoldsteinError, InputError, InputTypeError
from goldstein.numerics.written import written
from goldstein.storage.files import replacing

SCHEMA = "goldstein-proof"
VERSION = 1


class NoProofFile:
    """A kind of claim that proof files do not hold; `export` says so."""

    kind: ClassVar[str]

    def export(self, path: str | Path, fun: Any = None) -> Path:
        """Refuse: `goldstein-check` decides near and Goldstein claims about a function alone."""
        raise InputTypeError(
            f"a proof file holds a near or a Goldstein claim about one function, and this is a "
            f"{self.kind} certificate: goldstein-check knows neither bounds and constraints, nor "
            "exact terms, nor statistics. Hand over what certificate.save(...) writes; "
            "certificate.verify(...) or `goldstein verify` checks it."
        )


def export_proof(
    path: str | Path,
    fun: Any,
    *,
    kind: str,
    eps: float,
    delta: float,
    x: NDArray[np.float64],
    evidence: dict[str, Any],
) -> Path:
    """Write a proof file (suffix .json is added if there is none), all or nothing."""
    if not (hasattr(fun, "describe") and hasattr(fun, "dim")):
        raise InputTypeError(
            f"a proof file carries the function, and {type(fun).__name__} cannot be written down; "
            "build the function as a goldstein Expression, or pass a model's objective."
        )
    if fun.dim != len(x):
        raise InputError(f"the certificate has {len(x)} variables, the function {fun.dim}.")
    if not (np.isfinite(eps) and np.isfinite(delta)):
        raise InputError(f"eps = {eps} and delta = {delta} must be finite to be proved.")
    target = Path(path)
    if not target.suffix:
        target = target.with_suffix(".json")
    parts = {
        "schema": SCHEMA,
        "version": VERSION,
        "claim": {"kind": kind, "eps": written(eps), "delta": written(delta)},
        "x": _texts(x),
        "evidence": {name: _texts(values) for name, values in evidence.items()},
    }
    lines = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in parts.items()]
    nodes = ",\n".join(json.dumps(node) for node in fun.describe())
    text = "{" + ",\n".join([*lines, f'"function": [\n{nodes}\n]']) + "}\n"
    with replacing(target) as file:
        file.write(text.encode())
    return target


def _texts(values: Any) -> Any:
    """Return numbers, or lists of them, as exact texts."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, float | Fraction):
        return written(values)
    return [_texts(value) for value in values]


def proved_eps(fun: Any, points: Any, gradients: Any, weights: Any, eps: float) -> float:
    """Return what exact gradients prove, where rounding alone makes that more than `eps`.

    A Goldstein certificate bounds a combination of gradients in float64. The exact combination is
    a few units in the last place away, and a proof file is about the exact one.
    """
    used = np.flatnonzero(weights > 0)
    try:
        program, direction = fun.program(), np.ones((1, points.shape[1]))
        limits = [point_at(program, points[j]).limits(direction) for j in used]
        shares = [Fraction(a) for a in weights[used].tolist()]
        centres = [found.exact[0] if found.exact else found.mid[0] for found in limits]
        mid = exact_combination(shares, centres)
        rad = exact_combination(shares, [found.rad[0] for found in limits])
        total = sum(shares, Fraction(0))
        middle = sqrt_upper(squared_norm(mid) / total**2)
        wide = [abs(m) + r for m, r in zip(mid, rad, strict=True)]
        exact = sqrt_upper(squared_norm(wide) / total**2)
    except (AttributeError, GoldsteinError, OverflowError):
        return eps  # the check will say what is wrong
    mean = mean_length(weights[used], gradients[used])
    slack = rounding_slack(used.size, mean) + SAME * mean
    return max(eps, exact) if middle <= eps + slack else eps
