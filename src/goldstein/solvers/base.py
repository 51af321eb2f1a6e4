"""What a solver is: `start` and `step` over a small state. The loop owns everything else.

The other side of a search that asks and is told: the function answers, once at each point.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import KinkError, OracleError
from goldstein.numerics.hull import MANY_VARIABLES, min_norm_weights
from goldstein.oracles import CountedOracle
from goldstein.result import Status
from goldstein.solvers.logic.questions import NOTHING, TRIAL, VALUE

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


#: Numbers that are kept of points and gradients: a search asks again, if at all, before long.
NUMBERS = 1_000_000

#: Gradients in a row that are not finite before that is no matter of steps that go too far.
LOST = 100


class Answers:
    """What a function has said to a search, by point: no question is asked twice.

    Those who judge, and look for noise, ask the function itself.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.oracles.function import FunctionOracle
    >>> oracle = CountedOracle(FunctionOracle(lambda x: float(x @ x), lambda x: 2 * x))
    >>> answers, x = Answers(2), np.ones(2)
    >>> answers.value(oracle, x, TRIAL), answers.value(oracle, x, VALUE), oracle.calls
    (2.0, 2.0, 1)
    """

    def __init__(self, dim: int, patience: int = LOST) -> None:
        self._patience, self._lost = patience, 0
        #: In many variables memory is worth saving: values by a digest of the point, no gradients.
        self._many = dim >= MANY_VARIABLES
        self._most = NUMBERS // (1 if self._many else dim)
        self._values: dict[bytes, float] = {}
        self._gradients: dict[bytes, Vector | None] = {}

    def value(self, oracle: CountedOracle, x: Vector, question: int) -> float:
        key = self._key(x)
        known = self._values.get(key)
        # Where a value is not finite the oracle says so to those who have to know.
        if known is None or (question == VALUE and known in (float("inf"), float("-inf"))):
            known = oracle.trial_value(x) if question == TRIAL else oracle.value(x)
            self._keep(self._values, key, known)
        return known

    def known_value(self, x: Vector) -> float | None:
        """Return f(x) where that was told."""
        return self._values.get(self._key(x))

    def gradient(self, oracle: CountedOracle, y: Vector) -> Vector | None:
        """Return the gradient, or None where there is none: at a kink, or not finite."""
        key = self._key(y)
        if key in self._gradients:
            return self._gradients[key]
        try:
            found, self._lost = oracle.gradient(y), 0
        except KinkError:
            found = None
        except OracleError as failure:
            found, self._lost = None, self._lost + 1
            if failure.value is None or self._lost > self._patience:
                raise
        if not self._many:
            self._keep(self._gradients, key, found)
        return found

    def _key(self, x: Vector) -> bytes:
        return hashlib.blake2b(x.tobytes()).digest() if self._many else x.tobytes()

    def _keep(self, table: dict[bytes, Any], key: bytes, answer: Any) -> None:
        if len(table) >= self._most:
            del table[next(iter(table))]
        table[key] = answer


def drive(
    oracle: CountedOracle,
    search: Any,
    question: int,
    told: Callable[[Any], int],
    kinked: Callable[[Any], int],
) -> None:
    """Answer the questions of a search until it has none.

    The question is about `search.point`; values are told as `search.reply`, gradients as
    `search.found`, and where there is no gradient the search is told that.
    """
    while question != NOTHING:
        if question in (TRIAL, VALUE):
            search.reply = value_of(oracle, search.point, question)
            question = told(search)
        elif (found := gradient_of(oracle, search.point)) is None:
            question = kinked(search)
        else:
            search.found = found
            question = told(search)


def value_of(oracle: CountedOracle, x: Vector, question: int) -> float:
    """Return f(x); what a TRIAL asks for may be infinite."""
    if oracle.answers is not None:
        known: float = oracle.answers.value(oracle, x, question)
        return known
    return oracle.trial_value(x) if question == TRIAL else oracle.value(x)


def gradient_of(oracle: CountedOracle, y: Vector) -> Vector | None:
    """Return the gradient at y, or None where there is none."""
    answers = oracle.answers or Answers(y.size, patience=0)
    found: Vector | None = answers.gradient(oracle, y)
    return found
