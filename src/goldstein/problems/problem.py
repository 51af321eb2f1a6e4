"""A test problem: an oracle that also knows its start, its best known value and its source."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.oracles import Oracle

#: Numbers and sequences of them, of NumPy's kind or Python's: `Problem` makes floats and arrays of
#: what builders return.
ValueFunction = Callable[[Vector], Any]
PairFunction = Callable[[Vector], tuple[Any, Any]]
#: How arithmetic gives up far away: floats overflow or divide by zero, eigenvalues of inf fail.
BREAKDOWN = (OverflowError, ZeroDivisionError, np.linalg.LinAlgError)
BestValueKind = Literal["exact", "literature", "planted", "best-found", "none"]


class Objective(NamedTuple):
    """What a builder writes down: the value, and the pair of value and gradient."""

    value: ValueFunction
    both: PairFunction


class Instance(NamedTuple):
    """What a builder returns: the start, the function, and a planted solution or its value.

    `limits` are `bounds` and `constraints` as `minimize` takes them, where there are any.
    """

    x0: ArrayLike
    objective: Objective
    best: float | Vector | None = None
    limits: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Facts:
    """What is known about a problem before it is built."""

    name: str = ""
    family: str
    formula: str
    citation: str
    note: str = ""
    convex: bool = False
    smooth: bool = False
    bounded: bool = True
    locally_lipschitz: bool = True


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Problem(Facts, Oracle):
    """A test function with its start, facts and source; usable wherever an oracle is.

    At a kink `jac` returns the gradient of one active piece, as automatic differentiation would;
    it does not know that it stands on a kink (`knows_kinks` is False). Where the formula overflows
    the answer is not finite; there is neither a warning nor an exception.

    Attributes
    ----------
    name, family, formula, citation, note : str
        Identification in words.
    x0 : ndarray
        Standard start, read-only.
    dim : int
        Number of variables.
    best_value : float or None
        Best known value; `best_value_kind` says how it is known: `exact` (proved minimum),
        `literature`, `planted` (value at the solution the data were made from), `best-found`
        (our own solves) or `none`.
    reference_value : float or None
        What a reference BFGS reaches from `x0`: the fair target of a local method when the
        function is not convex.
    convex, smooth, bounded, locally_lipschitz : bool
        `bounded` means bounded below; `locally_lipschitz` refers to the points where the
        formula is finite.
    parameters : dict
        What the problem was built with.
    limits : dict
        `bounds` and `constraints`, where there are any: `gs.minimize(p, p.x0, **p.limits, ...)`.

    Examples
    --------
    >>> from goldstein import problems
    >>> problem = problems.get("chained_crescent_1", d=50)
    >>> problem
    <Problem chained_crescent_1, dim=50, best_value=0 (exact)>
    >>> value, gradient = problem.fun_and_jac(problem.x0)
    >>> value == problem.fun(problem.x0)
    True
    """

    x0: Vector
    objective: Objective
    best_value: float | None
    best_value_kind: BestValueKind
    reference_value: float | None
    parameters: dict[str, Any]
    #: A function and its arguments that make this problem again: closures cannot be pickled.
    recipe: tuple[Callable[..., Problem], tuple[Any, ...]]
    limits: dict[str, Any] = field(default_factory=dict)
    dim: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        start = np.array(self.x0, dtype=np.float64)
        start.setflags(write=False)
        object.__setattr__(self, "x0", start)
        object.__setattr__(self, "dim", start.size)

    def _checked(self, x: ArrayLike) -> Vector:
        point = np.asarray(x, dtype=np.float64)
        if point.shape != (self.dim,):
            raise InputError(
                f"{self.name}: got a point of shape {point.shape}, expected ({self.dim},)."
            )
        return point

    def value(self, x: ArrayLike) -> float:
        """Return f(x)."""
        point = self._checked(x)
        with np.errstate(all="ignore"):
            try:
                return float(self.objective.value(point))
            except BREAKDOWN:
                return math.inf

    def gradient(self, y: ArrayLike) -> Vector:
        """Return the gradient at y, or that of one active piece at a kink."""
        return self.fun_and_jac(y)[1]

    def fun_and_jac(self, x: ArrayLike) -> tuple[float, Vector]:
        """Return f(x) and the gradient, sharing work where the formula allows."""
        point = self._checked(x)
        with np.errstate(all="ignore"):
            try:
                value, gradient = self.objective.both(point)
            except BREAKDOWN:
                return self.value(x), np.full(self.dim, math.nan)
        return float(value), np.asarray(gradient, dtype=np.float64)

    fun = value
    jac = gradient

    def __reduce__(self) -> tuple[Callable[..., Problem], tuple[Any, ...]]:
        return self.recipe

    def __repr__(self) -> str:
        best = "unknown" if self.best_value is None else f"{self.best_value:.10g}"
        return f"<Problem {self.name}, dim={self.dim}, best_value={best} ({self.best_value_kind})>"


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
        objective=Objective(lambda y: problem.value(Q @ y + shift), both),
        reference_value=None,
        recipe=(rotated, (problem, seed)),
    )
