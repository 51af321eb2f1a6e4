"""Near-KKT claims, stated and checked: `goldstein.checker.near_kkt` decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.certificates.near import CHANGE_OF_MACHINE, program_of
from goldstein.certificates.near_kkt import NearKKTCertificate
from goldstein.checker import near_kkt
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.near_kkt import ExactPart, ExactProblem, Row, Written, residual
from goldstein.checker.rationals import sqrt_upper, squared_distance
from goldstein.checker.verification import Verification
from goldstein.constrained.box import as_box
from goldstein.constrained.system import System, as_system
from goldstein.errors import GoldsteinError, InputTypeError, NotCertifiableError
from goldstein.numerics.conic_hull import conic_weights


def exact_parts(system: System, dim: int) -> list[ExactPart]:
    """Return every component of a system for exact questions; a black box is refused."""
    found: list[ExactPart] = []
    for group in system.groups:
        if len(group.parts) != group.size:
            raise InputTypeError(
                f"stationarity='near' needs constraints whose kinks are known, and {group.name} is "
                "a black box; write it as an Expression (F <= 1, F == 0) or as a LinearConstraint."
            )
        for part in group.parts:
            if isinstance(part, np.ndarray):
                found.append(Row(part))
            else:
                found.append(_written(part, group.name, dim))
    return found


def _written(expression: Any, name: str, dim: int) -> Written:
    if not expression.is_exact:
        raise NotCertifiableError(
            f"{name} contains a LinearOperator or user code, known in float64 only; pass the "
            "matrix, or write the constraint with atoms, to get a near certificate."
        )
    if expression.dim != dim:
        raise NotCertifiableError(
            f"{name} is a function of {expression.dim} variables, the point has {dim}."
        )
    return Written(expression.program())


def exact_problem(fun: Any, x: Vector, bounds: Any, constraints: Any) -> ExactProblem:
    """Read the arguments as `minimize` takes them; all nodes are made for this purpose alone."""
    box = as_box(bounds, x.size)
    system = as_system(() if constraints is None else constraints, box.clip(x))
    parts = exact_parts(system, x.size)
    return ExactProblem(program_of(fun), box, system, parts, conic_weights)


def check_near_kkt(
    cert: NearKKTCertificate, fun: Any, bounds: Any, constraints: Any, seed: int
) -> Verification:
    """Return what was found."""
    try:
        problem = exact_problem(fun, np.nan_to_num(cert.x), bounds, constraints)
    except GoldsteinError as failure:
        found = Verification(eps=math.inf, delta=math.inf, label="conditional")
        found.add("problem", False, f"function, bounds or constraints do not fit: {failure}")
        return found
    return near_kkt.check_near_kkt(cert, problem, seed)


def prove_near_kkt(
    problem: ExactProblem,
    x: Vector,
    pivot: Sequence[Fraction],
    directions: Matrix,
    weights: Vector,
    rows: list[tuple[int, Vector, float]],
    normal: Vector,
    meta: dict[str, Any],
) -> NearKKTCertificate:
    """Derive eps and delta, and state them; `rows` are (component, direction, signed weight).

    Raises
    ------
    NotCertifiableError
        When a direction does not show an element of a subdifferential.
    """
    multipliers = np.zeros(problem.system.size)
    for i in {i for i, _, _ in rows}:
        multipliers[i] = math.fsum(w for k, _, w in rows if k == i)
    claim: dict[str, Any] = {
        "x": x, "exact_pivot": tuple(pivot), "directions": directions, "weights": weights,
        "constraint_directions": np.array([v for _, v, _ in rows]).reshape(-1, x.size),
        "constraint_index": np.array([i for i, _, _ in rows], dtype=np.int64),
        "constraint_weights": np.array([w for _, _, w in rows]),
        "normal": normal, "multipliers": multipliers, "meta": dict(meta),
        "delta": sqrt_upper(squared_distance(tuple(pivot), x)),
    }  # fmt: skip
    eps = residual(NearKKTCertificate(**claim, eps=0.0), problem, CHANGE_OF_MACHINE)
    return NearKKTCertificate(**claim, eps=eps)


__all__ = ["check_near_kkt", "exact_parts", "exact_problem", "prove_near_kkt"]
