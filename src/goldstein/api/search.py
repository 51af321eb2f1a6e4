"""`Search`: `minimize` turned inside out, for functions that cannot be handed over.

The run is `minimize` itself, call by call: it goes on in a thread of its own, which stands still
while a question is open. All it depends on is the request and the answers so far, so these are what
is pickled; a search that comes back is told them again.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from goldstein.api.inputs import RNG, as_vector, did_you_mean
from goldstein.api.minimize import minimize
from goldstein.checker.arrays import Vector
from goldstein.display import InNotebooks
from goldstein.errors import InputError, KinkError
from goldstein.numerics.streams import seed_from
from goldstein.oracles import Oracle
from goldstein.oracles.counted import BadAnswer, as_gradient, as_value
from goldstein.result import Result
from goldstein.solvers import Solver

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
        rng: RNG = None,
        **more: Any,
    ) -> None:
        unknown = sorted(set(more) - _TAKEN)
        if unknown:
            raise InputError(
                f"Search does not take {', '.join(unknown)}: whoever asks and tells has the "
                f"function, the clock and the answers.{did_you_mean(unknown[0], _TAKEN)}"
            )
        start = as_vector(x0, "x0", exact=False)
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
        if value is not None:
            as_value(value)
        if gradient is not None:
            as_gradient(gradient, point.shape)
    except BadAnswer as bad:
        if bad.value is None:
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
        self._last: tuple[Vector, _Answer] | None = None

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
        answer = self._volunteered(x, "value")
        return self._asked(x, "value").value if answer is None else answer

    def gradient(self, y: Vector) -> Any:
        answer = self._volunteered(y, "gradient")
        if answer is None:
            told = self._asked(y, "gradient")
            if told.kink:
                raise KinkError("the function was told to have a kink there", y.copy())
            answer = told.gradient
        return answer

    def _volunteered(self, x: Vector, what: str) -> Any:
        """Return what was told about this point together with the last answer."""
        if self._last is None or not np.array_equal(self._last[0], x):
            return None
        return getattr(self._last[1], what)

    def _asked(self, x: Vector, what: str) -> _Answer:
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
