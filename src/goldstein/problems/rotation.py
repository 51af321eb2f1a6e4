"""The same problem without its coordinate structure."""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.problems.problem import Objective, Problem

#: A dense rotation needs d^2 numbers: 200 MB here.
LARGEST_DIMENSION = 5000


def rotated(problem: Problem, seed: int) -> Problem:
    """Return y -> f(Qy + s) with a random orthogonal Q and a random shift s.

    Same best value and geometry, but nothing is aligned with the coordinates any more.

    Parameters
    ----------
    problem : Problem
        At most 5000 variables: the rotation is a dense matrix.
    seed : int
        Fixes Q and s.

    Returns
    -------
    Problem

    Examples
    --------
    >>> from goldstein import problems
    >>> plain = problems.get("maxq", d=4)
    >>> turned = problems.rotated(plain, seed=1)
    >>> abs(turned.fun(turned.x0) - plain.fun(plain.x0)) < 1e-12
    True
    """
    if problem.dim > LARGEST_DIMENSION:
        raise InputError(
            f"{problem.name} has {problem.dim} variables, but a rotation is a dense matrix; "
            f"use at most {LARGEST_DIMENSION}."
        )
    if problem.limits:
        raise InputError(
            f"{problem.name} has {' and '.join(problem.limits)}, which a rotation does not turn; "
            "rotate problems without them."
        )
    rng = np.random.default_rng(operator.index(seed))
    Q, R = np.linalg.qr(rng.standard_normal((problem.dim, problem.dim)))
    Q = Q * np.where(np.diag(R) >= 0.0, 1.0, -1.0)
    shift = rng.standard_normal(problem.dim)

    def both(y: Vector) -> tuple[float, Vector]:
        value, gradient = problem.fun_and_jac(Q @ y + shift)
        return value, np.asarray(gradient @ Q)

    return replace(
        problem,
        name=f"{problem.name}_rotated_{seed}",
        note=f"random rotation and shift of {problem.name}",
        x0=Q.T @ (problem.x0 - shift),
        objective=Objective(
            lambda y: problem.value(Q @ y + shift),
            lambda y: np.asarray(problem.gradient(Q @ y + shift) @ Q),
            both,
        ),
        reference_value=None,
        recipe=(rotated, (problem, seed)),
    )
