"""The guard between a user's function and everything else: counts, checks, budget."""

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, TypeVar

import numpy as np
from scipy.linalg.blas import ddot

from goldstein import errors
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.function import shown
from goldstein.oracles.base import Oracle, Wrapper

#: What a value usually is.
_NUMBERS = (float, int)


class BadAnswer(Exception):
    """Says in words what is wrong with an answer; the guard adds the point and the call.

    `value` is the offending number where a value was not finite; `advice` says what to do, and is
    empty where that depends on the point.
    """

    def __init__(self, message: str, value: float | None = None, advice: str = "") -> None:
        super().__init__(message)
        self.value = value
        self.advice = advice


def as_value(raw: Any) -> float:
    """Return the answer of `value` as a finite float.

    Examples
    --------
    >>> as_value(np.array([2.0]))
    2.0
    """
    if not isinstance(raw, _NUMBERS):
        array = _as_array(raw, "value", "a number")
        if array.size != 1:
            raise BadAnswer(
                f"value has shape {array.shape}, expected a number",
                advice="Reduce it to one number, for example with .sum() or .mean().",
            )
        raw = array.reshape(()).item()
    answer = float(raw)
    if not math.isfinite(answer):
        raise BadAnswer(f"value is {answer}, expected a finite number", answer)
    return answer


def as_gradient(raw: Any, shape: tuple[int, ...]) -> Vector:
    """Return the answer of `gradient` as a new finite float64 vector."""
    return measured_gradient(raw, shape)[0]


def measured_gradient(raw: Any, shape: tuple[int, ...]) -> tuple[Vector, float]:
    """Return the answer of `gradient` as a new finite float64 vector, and its squared length.

    It is always a copy: a buffer that the user's code reuses must not change under us. The square
    may overflow.
    """
    array = raw
    if not (isinstance(raw, np.ndarray) and raw.dtype.kind in "fiub"):
        array = _as_array(raw, "gradient", "an array of numbers")
    if array.shape != shape:
        raise BadAnswer(
            f"gradient has shape {array.shape}, expected {shape}", advice=_reshape(array, shape)
        )
    answer: Vector = np.array(array, dtype=np.float64)
    # A finite sum of squares proves all entries finite in one pass, without a temporary; BLAS
    # itself keeps silent about an overflow.
    square: float = ddot(answer, answer)
    if not math.isfinite(square) and not np.isfinite(answer).all():
        bad = int(np.flatnonzero(~np.isfinite(answer))[0])
        raise BadAnswer(f"gradient is {answer[bad]} at coordinate {bad}", math.inf)
    return answer, square


def too_long(gradient: Vector, longest: float) -> BadAnswer:
    """Say that a search cannot compute with this gradient."""
    size = float(np.abs(gradient).max())
    return BadAnswer(
        f"gradient has entries of size {size:.3g}",
        math.inf,
        advice=(
            f"A search squares them, and squares of numbers beyond {longest:g} overflow in "
            "float64: divide the function by a constant."
        ),
    )


def _as_array(raw: Any, what: str, expected: str) -> np.ndarray[Any, Any]:
    """Return the answer as an array of real numbers, or say what it is instead."""
    try:
        array = np.asarray(raw)
    except (TypeError, ValueError, RuntimeError):
        array = None
    if array is None or array.dtype.kind not in "fiub":
        raise BadAnswer(
            f"{what} is {_kind(raw)}, expected {expected}", advice=_convert(raw, array, what)
        )
    return array


def _kind(raw: Any) -> str:
    if raw is None:
        return "None (a missing return?)"
    if _is_torch(raw):
        return "a torch tensor"
    return f"an array of {raw.dtype}" if isinstance(raw, np.ndarray) else type(raw).__name__


def _is_torch(raw: Any) -> bool:
    return type(raw).__module__.partition(".")[0] == "torch"


def _convert(raw: Any, array: np.ndarray[Any, Any] | None, what: str) -> str:
    """What to do about an answer that is no array of real numbers."""
    if raw is None:
        return f"End the function with `return` and its {what}."
    if isinstance(raw, tuple | list) and len(raw) == 2 and _ndim(raw[0]) == 0 < _ndim(raw[1]):
        return (
            "It returns a pair (value, gradient): pass that function as fun with jac=True."
            if what != "value"
            else "It returns a pair (value, gradient): pass jac=True and no other gradient."
        )
    if _is_torch(raw):
        return (
            "Differentiate torch functions with goldstein.torch.oracle, or return "
            f"{'value.item()' if what == 'value' else 'gradient.detach().cpu().numpy()'}."
        )
    if hasattr(raw, "toarray"):
        return "Make it dense: return it with .toarray().ravel()."
    if array is not None and array.dtype.kind == "c":
        return "Return a real number: take .real where the imaginary part is rounding alone."
    if array is not None and array.dtype.kind == "O" and array.size:
        entries = {type(entry).__name__ for entry in array.ravel()[:1000]} - {"float", "int"}
        return f"Convert it to floats; it holds {' and '.join(sorted(entries)) or 'numbers'}."
    return "Convert it to floats: float(...) or np.array(..., dtype=float)."


def _reshape(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> str:
    """What to do about a gradient of the wrong shape."""
    d = math.prod(shape)
    if array.size == d and array.ndim:
        return "It is a row or a column: return it with .ravel()."
    if array.size == d:
        return "Return an array with one entry: np.array([g])."
    if array.shape == (d, d):
        return "That is a matrix: a Hessian, or the Jacobian of a vector; fun must be one number."
    if array.ndim == 0:
        return f"Return one entry for each of the {d} variables."
    return f"x has {d} entries, and the gradient one for each; is the point of the right length?"


def _ndim(raw: Any) -> int:
    try:
        return np.ndim(raw)
    except (TypeError, ValueError, RuntimeError):
        return 1


#: From this size on memory is worth saving.
_LARGE = 10_000

#: What numbers usually are.
_DOUBLE = np.dtype(np.float64)

#: A hundred units of single precision.
_COARSE_FLOOR = 100 * 2.0**-24


E = TypeVar("E", bound=errors.GoldsteinError)
S = TypeVar("S")

#: Something like `map`: it may evaluate in any order, and returns the answers in the order given.
Map = Callable[[Callable[[Vector], Any], list[Vector]], Iterable[Any]]


def is_coarse(dtype: Any) -> bool:
    """Is it one of NumPy's, with fewer digits than a double?"""
    return isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize < 8


class Attempt:
    """A function whose exceptions are answers, so that one of many does not cost the others.

    An array among the answers is a copy: many are read after all were given, and a function may
    write each into the same place.

    Examples
    --------
    >>> Attempt(float)("one")
    ValueError("could not convert string to float: 'one'")
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, item: Any) -> Any:
        try:
            answer = self.function(item)
            return answer.copy() if isinstance(answer, np.ndarray) else answer
        except Exception as failure:
            return failure


class CountedOracle(Wrapper):
    """Wrap an oracle: count calls, refuse bad answers by name, stop at the budget.

    Parameters
    ----------
    inner : Oracle
    max_calls : int, optional
    longest : float
        Longer gradients are refused; a search passes `LONGEST`.
    workers : map-like, optional
        Asks for the gradients of `gradients_at` in one round.

    Attributes
    ----------
    values, gradients : int
        Calls made so far, kinks included.
    """

    def __init__(
        self,
        inner: Oracle,
        max_calls: int | None = None,
        longest: float = math.inf,
        workers: Map | None = None,
    ) -> None:
        super().__init__(inner)
        self.workers = workers
        self.longest = longest
        self._longest_square = longest * longest
        #: Values, gradients, and both together.
        self.values = self.gradients = self.calls = 0
        self.limit = math.inf if max_calls is None else max_calls
        #: When the last call may begin, as `time.perf_counter()` tells the time.
        self.deadline = math.inf
        #: Whether the function was given up.
        self.closed = False
        #: The value that was asked for last.
        self.last_value = 0.0
        #: Length of the first gradient: what a relative accuracy is relative to.
        self.first_length: float | None = None
        #: Set when gradients arrive in less than double precision: the name of that precision.
        self.coarse = ""
        #: The last exception of the function; whoever asked may have held it back.
        self.failure: errors.OracleError | None = None
        #: What it has said to the search that runs, where that is remembered.
        self.answers: Any = None
        #: The point around which values and gradients were compared last, and what was said there.
        self.looked: tuple[bytes, dict[Any, Any]] | None = None
        self._spare: Vector | None = None

    @property
    def billed(self) -> int:
        """Calls of the user's function; for one that stands for it, those that were made of it."""
        return self.calls

    def _count(self, values: int = 0, gradients: int = 0) -> None:
        self.values += values
        self.gradients += gradients
        self.calls += values + gradients

    def seen(self, state: S) -> S:
        """Return the state of a search as users see it: of one that stands for f, in terms of f."""
        return state

    def value(self, x: Vector) -> float:
        self._require_room("value")
        self._count(values=1)
        raw = self._asked(self.inner.value, x, "value")
        try:
            self.last_value = as_value(raw)
            return self.last_value
        except BadAnswer as bad:
            error = self._error(str(bad), x, bad.advice or self._finite(self.values == 1))
            error.value = bad.value
            raise error from None

    def known_value(self, x: Vector) -> float | None:
        return self.inner.known_value(x)

    def values_at(self, points: Matrix, workers: Map = map) -> Vector:
        """Return the values at many points, asked for through a map that may work in parallel."""
        if self.calls + len(points) > self.limit:
            raise errors.OutOfCalls("values")
        self._count(values=len(points))
        answers = np.empty(len(points))
        for k, raw in enumerate(workers(Attempt(self.inner.value), list(points.copy()))):
            try:
                if isinstance(raw, Exception):
                    self._fail(raw, points[k], "value")
                answers[k] = as_value(raw)
            except BadAnswer as bad:
                if bad.value is None:
                    raise self._error(str(bad), points[k], bad.advice) from None
                answers[k] = bad.value
        return answers

    @np.errstate(over="ignore", invalid="ignore")
    def trial_value(self, x: Vector) -> float:
        """Return the value at a far trial point, where overflow or NaN only mean: too far (inf).

        The solver steps back from such a point; it must ask `value` again if it cannot.
        """
        try:
            return self.value(x)
        except errors.OracleError as failure:
            if failure.value is not None:
                return math.inf
            raise

    def gradient(self, y: Vector) -> Vector:
        return self._gradient(self.inner.gradient, y, "gradient")

    def gradients_at(self, points: Matrix) -> Iterator[Vector | None]:
        """Yield the gradients at many points, None for a kink; counts and errors as one by one.

        With workers they are asked for in one round, as many as calls are left: read them all
        before the next question.
        """
        if self.workers is None or time.perf_counter() > self.deadline:
            yield from super().gradients_at(points)
            return
        now = points[: max(0, int(min(self.limit - self.calls, len(points))))]
        answers = self.workers(Attempt(self.inner.gradient), list(now.copy()))
        for y, raw in zip(now, answers, strict=True):
            self._count(gradients=1)
            if isinstance(raw, errors.KinkError):
                yield None
            elif isinstance(raw, Exception):
                self._fail(raw, y, "gradient")
            else:
                yield self._checked(raw, y)
        yield from super().gradients_at(points[len(now) :])

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        """Ask for a noisy gradient; it counts like any gradient."""
        return self._gradient(lambda z: self.inner.sample(z, rng), x, "noisy gradient")

    def _gradient(self, question: Callable[[Vector], Any], y: Vector, what: str) -> Vector:
        self._require_room(what)
        self._count(gradients=1)
        return self._checked(self._asked(question, y, what), y)

    def _require_room(self, what: str) -> None:
        if self.calls >= self.limit:
            raise errors.OutOfCalls(what)
        if self.deadline < math.inf and time.perf_counter() > self.deadline:
            raise errors.OutOfTime(what)

    def _asked(self, question: Callable[[Vector], Any], y: Vector, what: str) -> Any:
        try:
            return question(y.copy() if y.size < _LARGE else self._lent(y))
        except errors.GoldsteinError as ours:  # a kink, a refused checkpoint: messages of our own
            self._noted(ours)
            raise
        except Exception as failure:
            raise self._raised(failure, y, what) from failure

    def _fail(self, failure: Exception, y: Vector, what: str) -> NoReturn:
        """Raise an exception that was the answer of an `Attempt`."""
        if isinstance(failure, errors.GoldsteinError):
            raise failure
        raise self._raised(failure, y, what) from failure

    def _checked(self, raw: Any, y: Vector) -> Vector:
        """Return the answer at y as a gradient, or say what is wrong with it."""
        dtype = getattr(raw, "dtype", _DOUBLE)
        if dtype is not _DOUBLE and is_coarse(dtype):
            self.coarse = dtype.name
        try:
            answer, square = measured_gradient(raw, y.shape)
            if square > self._longest_square:
                raise too_long(answer, self.longest)
            if self.first_length is None:
                self.first_length = math.sqrt(square)
            return answer
        except BadAnswer as bad:
            first = self.gradients == 1
            error = self._error(str(bad), y, bad.advice or self._finite(first))
            error.value = None if first else bad.value  # a search turns back from there
            raise error from None

    def spend(self, values: int, gradients: int) -> None:
        """Count calls that compiled code made without coming by here; it must know the limit."""
        self._count(values, gradients)
        if self.calls > self.limit:
            raise errors.OutOfCalls(f"{self.calls - int(self.limit)} calls too many were made")

    def close(self) -> None:
        """Ask nothing any more, whatever was kept back: the function does not return."""
        self.closed, self.limit = True, -(10**18)

    @contextlib.contextmanager
    def reserved(self, calls: int) -> Iterator[None]:
        """Keep some calls back for what comes after."""
        self.limit -= calls
        try:
            yield
        finally:
            self.limit += calls

    @contextlib.contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """Refuse calls after this time, as `time.perf_counter()` tells it."""
        before, self.deadline = self.deadline, deadline
        try:
            yield
        finally:
            self.deadline = before

    def require_visible(self, x: Vector, delta: float) -> None:
        """Refuse a ball that a function computed in single precision cannot tell from its centre.

        There every point of the ball is rounded to a few, which may be kinks.
        """
        if not self.coarse:
            return
        floor = _COARSE_FLOOR * max(1.0, float(np.abs(x).max()))
        if delta < floor:
            raise errors.InputError(
                f"{self.name} returns gradients in {self.coarse}, which cannot resolve a ball of "
                f"radius {delta:g}; compute in float64, or ask for delta >= {floor:.2g}."
            )

    def _lent(self, x: Vector) -> Vector:
        """A copy for the user: a function that works in place must not move our points.

        It is large, and lent again once nobody but us holds it; fresh memory costs more than the
        copying.
        """
        if self._spare is None or self._spare.size != x.size or sys.getrefcount(self._spare) > 2:
            self._spare = x.copy()
        else:
            np.copyto(self._spare, x)
        return self._spare

    def _raised(self, failure: Exception, at: Vector, what: str) -> errors.OracleError:
        raised = f"{what} raised {type(failure).__name__}: {failure}"
        return self._noted(self._error(raised, at, self._mend(failure, at)))

    def _noted(self, error: E) -> E:
        if isinstance(error, errors.OracleError):
            self.failure = error
        return error

    def _error(self, what: str, at: Vector, advice: str) -> errors.OracleError:
        shown = np.array2string(at, threshold=8, edgeitems=3, precision=6)
        if not np.isfinite(at).all():
            advice = (
                "The search itself overflowed on its way there: squares of numbers beyond 1e154 "
                "do. Divide the function by a constant, or start elsewhere."
            )
        return errors.OracleError(
            f"{self.name}: {what} (call {self.calls}, at x = {shown}). {advice}",
            np.array(at),
            self.calls,
        )

    @staticmethod
    def _finite(first: bool) -> str:
        """What to do about an answer that is not finite: it depends on who chose the point."""
        if first:
            return "The function must be finite at the start: start elsewhere, or mend it there."
        return (
            "The search came to a point where the function is not defined; make the function "
            "finite there (look for log, sqrt, exp and divisions; x / |x| is nan at 0)."
        )

    def _mend(self, failure: Exception, at: Vector) -> str:
        """What to do about an exception of the user's code."""
        if hasattr(self.inner, "how_called"):
            return str(self.inner.how_called())
        tensors = "Tensor", "'numpy.ndarray' object has no attribute"
        if any(words in str(failure) for words in tensors):
            return "It gets NumPy arrays; for a function of tensors use goldstein.torch.oracle."
        if self.values > 1 or self.gradients > 1:
            return "The error is in that function, which must answer at every point."
        layout = getattr(self.inner, "layout", None)
        vector = f"a NumPy vector of length {at.size}"
        called_with = f"{shown(layout)}, the layout of the point" if layout else vector
        return (
            f"The error is in that function; it is called with {called_with} (and with args, if "
            "any)."
        )
