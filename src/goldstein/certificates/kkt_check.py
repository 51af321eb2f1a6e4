"""The check of a KKT certificate: `goldstein.checker.kkt` decides, the rest can only refuse."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from goldstein.certificates.kkt import KKTCertificate
from goldstein.certificates.near import Described
from goldstein.checker import kkt
from goldstein.checker.arrays import Vector
from goldstein.checker.box import Box
from goldstein.checker.goldstein import check_rounding
from goldstein.checker.kkt import Asked
from goldstein.checker.verification import Verification
from goldstein.constrained.problem import Problem
from goldstein.constrained.reduction import Component, Folded
from goldstein.errors import GoldsteinError, NotCertifiableError
from goldstein.numerics.conic_hull import conic_weights
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.agreement import gradient_is_wrong, gradients_are_wrong_at, heaviest


def asked_of(problem: Problem) -> Asked:
    """Return what the checker asks of a problem."""
    return Asked(problem.objective.gradient, problem.box, problem.system, conic_weights)


def check_kkt(
    cert: KKTCertificate,
    oracle: Oracle,
    bounds: Any,
    constraints: Any,
    seed: int,
    check_values: bool,
) -> Verification:
    """Return what was found."""
    try:
        # Constraints are asked for their sizes, at a finite point whatever the certificate says.
        problem = Problem.of(oracle, np.nan_to_num(cert.x), bounds, constraints)
    except GoldsteinError as failure:
        found = Verification(eps=math.inf, delta=math.inf, label="conditional")
        found.add("problem", False, f"bounds or constraints do not fit: {failure}")
        return found

    def gradient(y: Vector) -> Vector:
        answer = problem.objective.gradient(y)
        problem.objective.require_visible(cert.x, cert.delta)
        return answer

    asked = Asked(gradient, problem.box, problem.system, conic_weights)
    found = kkt.check_kkt(cert, asked, seed)
    if found.ok and check_values:
        _check_values(found, cert, problem, seed)
    plain = oracle.plain
    if found.ok and isinstance(plain, Described):
        with contextlib.suppress(NotCertifiableError):  # user code: nothing more is known
            check_rounding(found, cert, plain.program())
    return found


def _check_values(found: Verification, cert: KKTCertificate, problem: Problem, seed: int) -> None:
    """A gradient of another function proves nothing about this one."""
    system = problem.system
    functions: list[Oracle] = [problem.objective.inner]
    functions += [Component(system, i) for i in cert.active if not system.linear[i]]
    try:
        wrong = wrong_gradients(functions, problem.box, cert.x, cert.delta, seed)
        wrong += _wrong_at_points(cert, functions, problem.box, seed)
    except GoldsteinError as failure:
        found.add("values", False, f"a function could not be evaluated: {failure}")
        return
    found.add(
        "values",
        not wrong,
        f"differences of values contradict the gradient of {wrong[0]}"
        if wrong
        else "differences of values do not contradict the gradients",
    )


def _wrong_at_points(
    cert: KKTCertificate, functions: list[Oracle], box: Box, seed: int
) -> list[str]:
    """Return the names of functions whose gradients are wrong at points that the claim rests on."""
    places = [heaviest(cert.weights, cert.points, cert.gradients)]
    for function in functions[1:]:
        own = cert.constraint_index == function.index  # type: ignore[attr-defined]
        places.append(
            heaviest(
                cert.constraint_weights[own],
                cert.constraint_points[own],
                cert.constraint_gradients[own],
            )
        )
    return [
        function.name
        for function, points in zip(functions, places)
        if gradients_are_wrong_at(
            CountedOracle(Folded(function, box)), points, cert.x, cert.delta, seed
        )
    ]


def wrong_gradients(
    functions: list[Oracle], box: Box, x: Vector, radius: float, seed: int
) -> list[str]:
    """Return the names of functions whose gradients differences of values contradict."""
    return [
        function.name
        for function in functions
        if gradient_is_wrong(CountedOracle(Folded(function, box)), x, radius, seed)
    ]
