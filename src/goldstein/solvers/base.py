"""What a solver is: `start` and `step` over a small state. The loop owns everything else."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.numerics.hull import min_norm_weights
from goldstein.oracles import CountedOracle
from goldstein.result import Status

#: Below this value a function is called unbounded.
VALUE_LIMIT = -1e100


#: Who may stop a run.
CTRL_C, CALLBACK = "Ctrl-C", "the callback"


@dataclass
class Stop:
    """Whether the user has stopped the run, and how; all searches of one run share it.

    `x` is the best point so far, as the user has it, where searches have coordinates of their own
    or something goes on besides them.
    """

    by: str = ""
    x: Vector | None = None

    def note(self, cause: BaseException) -> None:
        self.by = CTRL_C if isinstance(cause, KeyboardInterrupt) else CALLBACK


@dataclass(frozen=True)
class Request:
    """What the user asked for, and that they ask for no more."""

    eps: float
    delta: float
    seed: int
    lipschitz: float | None = None
    stop: Stop = field(default_factory=Stop, repr=False, compare=False)


@dataclass(frozen=True)
class Evidence:
    """What a solver offers in support of a claim; the certificate layer re-derives it.

    Attributes
    ----------
    x : ndarray
    points : ndarray, shape (k, d)
        Points within delta of x.
    weights : ndarray, shape (k,)
        A convex combination the solver believes in.
    perturbed : ndarray of bool, shape (k,)
        True where the point was drawn at random, so that the gradient there can be trusted.
        The others are displaced at random before they are used.
    gradients : ndarray, shape (k, d), or None
        What the oracle answered there; used only when no call is left to ask again.
    """

    x: Vector
    points: Matrix
    weights: Vector
    perturbed: NDArray[np.bool_]
    gradients: Matrix | None = None

    @classmethod
    def of(
        cls,
        x: Vector,
        points: Any,
        gradients: Any,
        perturbed: Any = True,
        weights: Vector | None = None,
    ) -> Evidence:
        """Return what carries weight; by default that of the shortest vector of the hull."""
        rows = np.asarray(gradients)
        weights = min_norm_weights(rows) if weights is None else weights
        used = (weights > 0).nonzero()[0]
        safe = np.broadcast_to(perturbed, weights.shape)[used]
        return cls(x.copy(), np.asarray(points)[used], weights[used], safe, rows[used])

    def length(self) -> float:
        """Return the length of the combination of its gradients."""
        assert self.gradients is not None
        m = self.weights @ self.gradients
        return math.sqrt(m @ m)

    def about(self, x: Vector) -> Evidence:
        """Return the same in support of a claim about x."""
        return Evidence(x, self.points, self.weights, self.perturbed, self.gradients)


@dataclass(slots=True)
class State:
    """Where a solver stands. Solvers subclass it with what they remember.

    Attributes
    ----------
    x, fx : the best point so far and its value
    bound : norm of the current combination of gradients
    radius : the ball it was taken in
    steps : descent steps made so far
    moved : the last step changed x (the loop then records history)
    evidence : set when the solver believes to have met the request
    rejected : certificate layer's fresh (points, gradients) after evidence was turned down
    status : set when the solver gives up
    earlier : f at x between a quarter and a member of the steps ago, where a solver keeps that
    doubts : how often evidence was offered that may not survive
    midway : what the solver is in the midst of shows in f at its end only
    violation : of the constraints at x, where there are any, for those who watch
    """

    x: Vector
    fx: float
    bound: float = np.inf
    radius: float = np.inf
    steps: int = 0
    moved: bool = False
    evidence: Evidence | None = None
    rejected: tuple[Matrix, Matrix] | None = None
    status: Status | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    violation: float | None = None
    earlier: float = -np.inf
    doubts: int = 0
    midway: bool = False


class Solver(ABC):
    """A method. Instances hold options only; all that changes during a run lives in the state."""

    #: The string `minimize(method=...)` knows it by.
    name: str = ""

    #: What it asks of a problem: "gradients" or "values only"; and "no limits" if it knows none.
    needs: frozenset[str] = frozenset({"gradients"})

    @property
    def on_values(self) -> bool:
        """Whether values are all that is asked of the function."""
        return "values only" in self.needs

    @abstractmethod
    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> Any:
        """Return the first state."""

    @abstractmethod
    def step(self, oracle: CountedOracle, state: Any, request: Request) -> None:
        """Advance the state by a few oracle calls."""

    def best_evidence(self, state: Any) -> Evidence | None:
        """Return the best evidence at the current x when the run ends without a certificate."""
        return None

    def retarget(self, state: Any, eps: float, delta: float) -> bool:
        """Go on from here with another request; return False where that is not possible."""
        return False

    def known(self, state: Any) -> tuple[Matrix, Matrix]:
        """Return the points whose gradients are in memory, and the gradients."""
        return np.empty((0, state.x.size)), np.empty((0, state.x.size))
