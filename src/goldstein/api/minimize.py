"""`minimize`: a solver searches, the certificate layer decides.

`Search`: `minimize` turned inside out, for functions that cannot be handed over.

The run is `minimize` itself, call by call: it goes on in a thread of its own, which stands still
while a question is open. All it depends on is the request and the answers so far, so these are what
is pickled; a search that comes back is told them again.
"""

from __future__ import annotations

import inspect
import math
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from goldstein.api import inputs
from goldstein.api.driver import Call, Task
from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError, KinkError
from goldstein.numerics.streams import seed_from
from goldstein.oracles import Oracle, PartiallySeparable
from goldstein.oracles.counted import BadAnswer, as_gradient, as_value
from goldstein.prox.term import Term
from goldstein.result import InNotebooks, Result, Status
from goldstein.solvers import Request, Solver, State
from goldstein.solvers.loop import ENDINGS, callback_of_layout
from goldstein.storage.journal import seed_in

#: Endings that more digits would not have changed.
_DONE = (Status.VERIFIED, Status.UNBOUNDED, *ENDINGS.values())


@inputs.in_words
def minimize(
    fun: Oracle | Callable[..., Any],
    x0: Any,
    jac: Callable[..., Any] | bool | str | None = None,
    *,
    args: Sequence[Any] = (),
    eps: float | None = None,
    delta: float | None = None,
    rel_eps: float | None = None,
    stationarity: Literal["goldstein", "near", "minimum"] = "goldstein",
    method: str | Solver = "auto",
    rng: inputs.RNG = None,
    lipschitz: float | None = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: Any = None,
    constraints: Any = (),
    plus: Term | None = None,
    curvature: float | None = None,
    callback: Callable[..., Any] | None = None,
    progress: bool | Callable[[State, int], None] = False,
    checkpoint: str | Path | None = None,
    workers: Callable[..., Any] | int | None = None,
    options: dict[str, Any] | None = None,
) -> Result:
    """Minimise a function with kinks and prove how stationary the answer is.

    Parameters
    ----------
    fun : callable, Oracle or Expression
        The function; with `jac=True` it returns (value, gradient). Sums of many terms of a few
        variables each are best written as `PartiallySeparable`.
    x0 : array_like, or dict, list or tuple of arrays
        Start. `fun`, `jac` and `res.x` have its shape; the certificate lists its numbers in order.
    jac : callable, True, "2-point" or "3-point"
        The gradient. It is asked for at randomly perturbed points only when it counts. The names of
        differences say that there are only values, as `method="values"` does.
    args : sequence
        Extra arguments of `fun` and `jac`.
    eps, delta : float
        The question: some convex combination of gradients within `delta` of x has norm <= `eps`.
        `suggest_target` proposes both.
    rel_eps : float, optional
        Instead of `eps`: this part of the length of the first gradient.
    stationarity : {"goldstein", "near", "minimum"}
        "near" asks for more: a point within `delta` has a Clarke subgradient of norm <= `eps`.
        It needs an Expression; the certificate is then a `NearCertificate`, exact. "minimum" asks
        for most: f is nowhere lower on a ball, in a box, or anywhere, but for a gap that is stated
        (`MinimumCertificate`). It needs an Expression, or `curvature`.
    method : str or Solver
        "auto", "bundle", "pingd", "psingd", "o2nc", or a configured solver; "values" and
        "zeroth-order" ask for values only, and end with a statistical `ValuesCertificate`.
    rng : None, int or Generator
        Same seed, same result; the seed used is in the result.
    lipschitz : float, optional
        Lipschitz constant; estimated and guarded if missing.
    max_calls : int, optional
        Limit on values plus gradients. Default 50,000 + 100 d, and 2,000 d where there are only
        values.
    max_time : float, optional
        Limit in seconds. It is looked at between two calls; a call that goes on for as long again
        is interrupted, in the main thread of Unix systems.
    bounds : scipy.optimize.Bounds or list of pairs, optional
        Bounds of the variables; None or an infinity for none. `fun` and `jac` are never asked
        outside them. The certificate is then a `KKTCertificate`, or a `NearKKTCertificate` where
        near stationarity is asked for and the constraints are expressions or linear.
    constraints : LinearConstraint, NonlinearConstraint, dict, or a list of them
        As SciPy takes them: lb <= c(x) <= ub, equalities where both are equal. Where one has no
        gradient, differences of its values are taken, and what is claimed in the end is
        statistical: a `ValuesKKTCertificate`.
        `res.multipliers` numbers all components in the order given; see also
        `res.bound_multipliers` and `res.violation`.
    plus : Term, optional
        A convex term h of `gs.prox` (`l1`, `group_l2`, `box`, `simplex`, `nuclear`): f + h is
        minimised, with exact zeros in x, and the certificate, a `PlusCertificate`, has exact
        subgradients of h. `res.fun` is f + h. Bounds may come with `l1` and `box`: they are part
        of h then, and f is asked within `delta` of them. With stationarity="near", which needs an
        Expression, f + h is written as one (`l1`, `box`).
    curvature : float, optional
        Declares that f - curvature/2 |x|^2 is convex: 0 for a convex f, a negative number for a
        weakly convex one. With stationarity="minimum" a black box can then have a
        `MinimumCertificate`, labelled conditional: the declaration is part of the claim.
    callback : callable
        `callback(x)` or `callback(intermediate_result=...)` after each descent step; StopIteration
        (or a true return value) stops the run.
    progress : bool or callable
        True shows a bar on stderr, on a terminal or in a notebook.
    checkpoint : path
        Journal of the run; if the file is there and belongs to this run, the run resumes from it.
    workers : map-like callable or int
        Something like `map`, or a number of processes of joblib, that evaluates in parallel: where
        there are only values, the points of a difference; where there are gradients, those that a
        claim is tested with. The result is the same without. Not with `checkpoint`, and where there
        are gradients not with `bounds`, `constraints` or `plus`.
    options : dict
        Parameters of the named method; and `check_gradient` (default True): compare a few
        differences of values with the gradients, and say so if they disagree; `go_on` (default
        True; method `auto`, without constraints): with a certificate in hand that leaves much to be
        gained, go on while f keeps falling cheaply; False ends a run with its first certificate;
        `leaps` (default True; method `auto`, without constraints): begin with jumps on a piecewise
        linear model, where `fun` is an expression with few kinks and some of them curved or
        nested; and, with inequalities, `feasible` (default False): every accepted point is
        feasible, from a feasible x0 on.

    Returns
    -------
    Result
        `success` is true exactly when `certificate` was verified and meets the request. Ctrl-C
        ends the run with the best point so far, and what can be proved of it.

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> def f(x): return abs(x[0]) + 2 * abs(x[1])
    >>> def g(x): return np.array([np.sign(x[0]), 2 * np.sign(x[1])])
    >>> res = gs.minimize(f, [3.0, -1.0], g, eps=1e-3, delta=1e-3, rng=0)
    >>> res.success
    True
    >>> res.certificate.verify(f, g).ok
    True
    """
    task = _read(SimpleNamespace(**locals()))
    result = task.searched()
    if not (task.on_values or task.limits):
        _warn_of_precision(result)
    return result


def task_of(**arguments: Any) -> Task:
    """Read the arguments of `minimize` for those who do not search, but ask the same thing."""
    asked = inspect.signature(minimize).bind(**arguments)
    asked.apply_defaults()
    return _read(SimpleNamespace(**asked.arguments))


def _read(asked: SimpleNamespace) -> Task:
    layout, start = inputs.as_start(asked.x0, asked.fun)
    delta = _check_question(asked.eps, asked.rel_eps, asked.delta, start)
    callback, checkpoint = asked.callback, asked.checkpoint
    if callback is not None and not callable(callback):
        raise InputTypeError(f"callback must be callable, got {type(callback).__name__}.")
    own, rest = inputs.split_options(asked.options)
    call = Call(
        asked.fun, asked.jac, asked.args, asked.x0, layout, start, asked.constraints, asked.method
    )
    # A journal may be read on another machine: what it is a journal of must not depend on this one.
    # And compiled code sees a sum of elements as a whole.
    interpreted = checkpoint is not None or isinstance(asked.fun, PartiallySeparable)
    named = "values" if call.on_values and asked.method == "auto" else asked.method
    solver = inputs.make_solver(named, rest, start.size, not interpreted)
    seed, most = _seed(asked.rng, checkpoint), 2_000 if solver.on_values else 100
    return Task.read(
        call, solver, asked.stationarity,
        Request(float(asked.eps or 1.0), delta, seed, asked.lipschitz),
        options=replace(own, curvature=inputs.declared(asked.curvature)), plus=asked.plus,
        bounds=asked.bounds, budget=inputs.call_budget(asked.max_calls, 50_000 + most * start.size),
        rel_eps=asked.rel_eps, max_time=asked.max_time, progress=asked.progress,
        checkpoint=checkpoint, workers=asked.workers,
        callback=callback_of_layout(callback, layout) if layout and callback else callback,
    )  # fmt: skip


def _seed(rng: inputs.RNG, checkpoint: str | Path | None) -> int:
    """Return the seed of a run: that of the journal where the user names none."""
    recorded = seed_in(checkpoint) if checkpoint is not None and rng is None else None
    return seed_from(rng) if recorded is None else recorded


def _check_question(
    eps: float | None, rel_eps: float | None, delta: float | None, start: Vector
) -> float:
    """Return delta; refuse a question that is none."""
    if delta is None:
        raise InputTypeError(
            f"delta is missing: {inputs.DELTA}. Give eps= and delta=; "
            "gs.suggest_target proposes both."
        )
    inputs.check_target(1.0 if eps is None else eps, delta, start)
    if (eps is None) == (rel_eps is None):
        given = "eps must be a number, got NoneType" if eps is None else "got both"
        raise InputTypeError(
            f"{given}: give eps, the length that a combination of gradients must not exceed, or "
            "rel_eps, the same relative to the first gradient. gs.suggest_target proposes eps and "
            "delta."
        )
    if rel_eps is not None and not (inputs.is_number(rel_eps) and 0 < rel_eps < math.inf):
        raise InputError(f"rel_eps must be a positive finite number, got {rel_eps!r}.")
    return float(delta)


def _warn_of_precision(result: Result) -> None:
    asked = result.asked
    assert asked is not None
    size, test = abs(result.fun), asked.delta * asked.eps / 4
    if test < 8 * 2.0**-53 * size and result.status not in _DONE:
        warnings.warn(
            f"the descent test compares values to {test:.3g}, but |f| = {size:.3g} is only exact "
            f"to {size * 2.0**-52:.3g}; raise eps or delta, or shift f by a constant.",
            inputs.PrecisionWarning,
            stacklevel=4,
        )


#: What a search takes of the arguments of `minimize`, besides those it names.
_TAKEN = {"rel_eps", "lipschitz", "max_calls", "bounds", "constraints", "options"}


@dataclass(frozen=True)
class Question:
    """What a search wants to know about a point.

    Attributes
    ----------
    point : ndarray
    value, gradient : bool
        What is wanted there; whoever has both may tell both.
    """

    point: Vector
    value: bool
    gradient: bool


@dataclass(frozen=True)
class _Answer:
    """What was told; a gradient that was not asked for, and neither for a kink."""

    value: Any = None
    gradient: Any = None
    kink: bool = False


class Search(InNotebooks):
    """A run of `minimize` that asks and is told, instead of calling a function.

    Parameters
    ----------
    x0 : array_like
        Start.
    eps, delta, method, rng
        As in `minimize`.
    **more
        Other arguments of `minimize` that have nothing to do with the function or the clock:
        `rel_eps`, `lipschitz`, `max_calls`, `bounds`, `constraints`, `options`. Functions among
        the constraints are called, not asked for.

    Notes
    -----
    A pickled search is its request and the answers so far. Answers are believed: what a search that
    somebody else began proves is proved of the function that was in their hands. Before you believe
    its result, verify the certificate with your own, `search.result.certificate.verify(f, grad)`.
    And unpickle nothing from strangers: a pickle can run any code.

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> search = gs.Search([3.0, -1.0], eps=1e-3, delta=1e-3, rng=0)
    >>> while (question := search.ask()) is not None:
    ...     if question.value:
    ...         search.tell(value=abs(question.point).sum())
    ...     else:
    ...         search.tell(gradient=np.sign(question.point))
    >>> search.result.success
    True
    """

    _request: dict[str, Any]
    _open: Question | None
    _result: Result | None
    _dialogue: _Dialogue
    _thread: threading.Thread

    def __init__(
        self,
        x0: ArrayLike,
        *,
        eps: float | None = None,
        delta: float,
        method: str | Solver = "auto",
        rng: inputs.RNG = None,
        **more: Any,
    ) -> None:
        unknown = sorted(set(more) - _TAKEN)
        if unknown:
            raise InputError(
                f"Search does not take {', '.join(unknown)}: whoever asks and tells has the "
                f"function, the clock and the answers.{inputs.did_you_mean(unknown[0], _TAKEN)}"
            )
        start = inputs.as_vector(x0, "x0", exact=False)
        options = more.get("options") or {}
        if method == "auto" and isinstance(options, dict):
            # It may come back on another machine: nothing is left to what is compiled there.
            more["options"] = {"compiled": False, **options}
        request = {**more, "eps": eps, "delta": delta, "method": method, "rng": seed_from(rng)}
        self._begin({"x0": start, **request}, [])

    def __repr__(self) -> str:
        if self._result is not None:
            return f"<Search, ended: {self._result.status.name}>"
        return f"<Search, {'waits to be asked' if self._open is None else f'asks: {self._open}'}>"

    def ask(self) -> Question | None:
        """Return what the search wants to know, the same until it is told; None when it is over.

        A run that ends with an error, because an answer was bad, raises it here.
        """
        if self._open is None and self._result is None:
            if self._thread.ident is None:  # it has not begun
                self._thread.start()
            news = self._dialogue.questions.get()
            if isinstance(news, BaseException):
                self._dialogue.questions.put(news)  # the next to ask gets it too
                raise news
            if isinstance(news, Result):
                self._result = news
            else:
                self._open = news
        return self._open

    def tell(self, *, value: Any = None, gradient: Any = None, kink: bool = False) -> None:
        """Answer the open question.

        Whoever computes both may tell both: the other half is kept in case it is asked for next.
        `kink` says that there is no gradient at this point. A value may be an infinity or nan where
        the function is not defined; the search steps back from there. What cannot be an answer (a
        gradient of the wrong length, a word) is refused, and the question stays open.
        """
        question = self.ask()
        if question is None:
            raise InputError("the search is over and asks nothing; see its result.")
        wanted, given = ("value", value) if question.value else ("gradient", gradient)
        if given is None and not (kink and question.gradient):
            raise InputError(f"the search asks for the {wanted}; tell({wanted}=...).")
        _check_told(value, gradient, question.point)
        self._open = None
        self._dialogue.tell(_Answer(_own(value), _own(gradient), kink))

    @property
    def result(self) -> Result | None:
        """The result, as `minimize` returns it; None as long as there are questions."""
        return None if self.ask() is not None else self._result

    def __getstate__(self) -> dict[str, Any]:
        return {"request": self._request, "answers": list(self._dialogue.told)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        try:
            request, answers = dict(state["request"]), list(state["answers"])
        except (KeyError, TypeError, ValueError) as failure:
            raise InputError(f"this is not the state of a Search: {failure!r}.") from failure
        if not all(isinstance(answer, _Answer) for answer in answers):
            raise InputError("this is not the state of a Search: it holds what are no answers.")
        self._begin(request, answers)

    def _begin(self, request: dict[str, Any], known: list[_Answer]) -> None:
        self._request = request
        self._open, self._result = None, None
        self._dialogue = _Dialogue(known)
        self._thread = threading.Thread(
            target=self._dialogue.run, args=(request,), name="goldstein search", daemon=True
        )
        # The thread knows the dialogue only: a search that nobody holds any more ends it.
        weakref.finalize(self, self._dialogue.answers.put, None)


def _check_told(value: Any, gradient: Any, point: Vector) -> None:
    """Refuse what can be no answer; a value that is not finite is one, far away."""
    try:
        if gradient is not None:
            as_gradient(gradient, point.shape)
            gradient = None
        if value is not None:
            as_value(value)
    except BadAnswer as bad:
        if bad.value is None or gradient is not None:
            raise InputError(f"{bad}. {bad.advice}".strip()) from None


def _own(answer: Any) -> Any:
    """Return an answer that stays as it is: whoever told it may use the array for the next one."""
    return answer if answer is None or isinstance(answer, int | float) else np.array(answer)


class _Abandoned(BaseException):
    """Nobody will answer."""


class _Dialogue(Oracle):
    """The function as the run sees it: every call is a question to the other thread."""

    def __init__(self, known: list[_Answer]) -> None:
        self.told = list(known)
        self._replayed, self._known = 0, len(known)
        self.questions: SimpleQueue[Any] = SimpleQueue()
        self.answers: SimpleQueue[_Answer | None] = SimpleQueue()
        self._last: tuple[Vector, _Answer] = np.zeros(0), _Answer()

    def run(self, request: dict[str, Any]) -> None:
        try:
            self.questions.put(minimize(self, **request))
        except _Abandoned:
            return
        except BaseException as failure:
            self.questions.put(failure)

    def tell(self, answer: _Answer) -> None:
        self.told.append(answer)
        self.answers.put(answer)

    @property
    def name(self) -> str:
        return "search"

    def value(self, x: Vector) -> Any:
        return self._asked(x, "value").value

    def gradient(self, y: Vector) -> Any:
        told = self._asked(y, "gradient")
        if told.kink:
            raise KinkError("the function was told to have a kink there", y.copy())
        return told.gradient

    def _asked(self, x: Vector, what: str) -> _Answer:
        """Return what was told of this point, now or with the answer before."""
        point, told = self._last
        if getattr(told, what) is not None and np.array_equal(point, x):
            return told
        if self._replayed < self._known:
            answer: _Answer | None = self.told[self._replayed]
            self._replayed += 1
        else:
            self.questions.put(Question(x.copy(), what == "value", what == "gradient"))
            answer = self.answers.get()
        if answer is None:
            raise _Abandoned
        self._last = x.copy(), answer
        return answer
