"""Oracles made from what users write: callables as in SciPy, finite sums, streams of samples."""

from __future__ import annotations

import copy
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.checker.function import BlackBox, Layout, is_vector, shown, taken_apart
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles.base import Oracle, name_of

#: Terms per block when the whole data set is visited: memory stays bounded for every n.
BLOCK = 256

#: What a second argument is called that noise is drawn from.
_RNG_NAMES = frozenset({"rng", "generator", "random_state"})


class FiniteSum(Oracle):
    """The mean of n terms f_0, ..., f_{n-1}.

    Solvers draw batches; certificates use all n terms, so they carry no sampling error.

    Parameters
    ----------
    grad_i : callable
        `grad_i(x, i)` returns the gradient of term i. With `vectorized=True`, i is an array of
        indices and the answer has one gradient per row.
    n : int
        Number of terms.
    batch_size : int
        Terms per noisy gradient, drawn without replacement.
    value_i : callable, optional
        `value_i(x, i)` returns the value of term i (an array of values when vectorized). Without it
        the objective has no value; the stochastic methods and their certificates do not need one.
    vectorized : bool
        Whether the callables take arrays of indices.

    Examples
    --------
    >>> import numpy as np
    >>> targets = np.array([1.0, 2.0, 6.0])
    >>> f = FiniteSum(lambda x, i: np.sign(x - targets[i]), n=3, batch_size=1)
    >>> f.gradient(np.array([3.0]))
    array([0.33333333])
    >>> f.sample(np.array([3.0]), np.random.default_rng(0)).shape
    (1,)
    """

    def __init__(
        self,
        grad_i: Callable[[Vector, Any], Any],
        n: int,
        batch_size: int = 1,
        *,
        value_i: Callable[[Vector, Any], Any] | None = None,
        vectorized: bool = False,
    ) -> None:
        _require_callable("grad_i", grad_i, "a callable grad_i(x, i)")
        if value_i is not None:
            _require_callable("value_i", value_i, "a callable value_i(x, i)")
        self._grad_i = grad_i
        self._value_i = value_i
        self._vectorized = vectorized
        self.n = _count("n", n)
        self.batch_size = _count("batch_size", batch_size)
        if self.batch_size > self.n:
            raise InputError(
                f"batch_size = {batch_size} exceeds n = {n}; use at most n terms per batch."
            )
        self._value: Callable[[Vector], Any] | None = None
        self.has_value = value_i is not None
        self._name = f"FiniteSum of {self.n} terms"

    def with_value(self, value: Callable[[Vector], Any]) -> FiniteSum:
        """Return the same sum with its values taken from `value(x)`."""
        other = copy.copy(self)
        other._value, other.has_value = value, True
        return other

    def value(self, x: Vector) -> float:
        if self._value is not None:
            return self._value(x)
        if self._value_i is None:
            raise InputTypeError(
                "this FiniteSum knows gradients only; pass value_i=... to ask for values."
            )
        total = 0.0
        for block in self._blocks():
            total += sum(float(np.sum(v)) for v in self._asked(self._value_i, x, block))
        return total / self.n

    def gradient(self, y: Vector) -> Vector:
        total = np.zeros_like(y, dtype=np.float64)
        for block in self._blocks():
            total += self._sum(y, block)
        total /= self.n
        return total

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        batch = rng.choice(self.n, self.batch_size, replace=False, shuffle=False)
        return self._sum(x, batch) / self.batch_size

    def _blocks(self) -> Iterator[NDArray[np.intp]]:
        for start in range(0, self.n, BLOCK):
            yield np.arange(start, min(start + BLOCK, self.n))

    def _asked(self, term: Any, x: Vector, indices: NDArray[np.intp]) -> Iterator[Any]:
        """Yield what is known of some terms: of all together, or one by one."""
        # Copies: a term that works in place must not move the point of the next one.
        for i in [indices] if self._vectorized else indices.tolist():
            yield term(x.copy(), i)

    def _sum(self, x: Vector, indices: NDArray[np.intp]) -> Vector:
        total = np.zeros(x.size)
        wanted = (indices.size, x.size) if self._vectorized else (x.size,)
        for answer in self._asked(self._grad_i, x, indices):
            rows = np.asarray(answer, dtype=np.float64)
            if rows.shape != wanted:
                raise InputError(
                    f"grad_i returned shape {rows.shape}, expected {wanted}: one gradient, or with "
                    "vectorized=True one in each row for an array of indices."
                )
            total += rows.sum(axis=0) if self._vectorized else rows
        return total


class SampleStream(Oracle):
    """An endless stream: `grad(x, rng)` draws a sample and returns its gradient.

    There is no last sample, hence no full gradient and no deterministic certificate; see
    `goldstein.certificates.confidence` for a bound that holds with a stated confidence.

    Examples
    --------
    >>> import numpy as np
    >>> f = SampleStream(lambda x, rng: np.sign(x - rng.normal(size=x.size)))
    >>> f.sample(np.array([9.0]), np.random.default_rng(0))
    array([1.])
    """

    has_gradient = False

    def __init__(
        self,
        grad: Callable[[Vector, np.random.Generator], Any],
        value: Callable[[Vector], Any] | None = None,
    ) -> None:
        _require_callable("grad", grad, "grad(x, rng)")
        self._grad, self._name = grad, name_of(grad)
        self._value = value
        self.has_value = value is not None

    def with_value(self, value: Callable[[Vector], Any]) -> SampleStream:
        """Return the same stream with its values taken from `value(x)`."""
        return SampleStream(self._grad, value)

    def value(self, x: Vector) -> float:
        if self._value is None:
            raise InputTypeError(
                f"{self.name} is a stream of gradients and knows no values; pass value=... "
                "to ask for values."
            )
        return self._value(x)

    def gradient(self, y: Vector) -> Vector:
        raise InputTypeError(
            f"{self.name} is a stream of samples and has no full gradient; use method='o2nc' or "
            "'psingd', FiniteSum for data that can be visited completely, and "
            "goldstein.confidence_bound for a bound with confidence."
        )

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        row = np.asarray(self._grad(x, rng), dtype=np.float64)
        if row.shape != x.shape:
            raise InputError(
                f"{self.name}(x, rng) has shape {row.shape}, expected the shape of x, {x.shape}."
            )
        return row


_NOISY = (FiniteSum, SampleStream)

#: What a gradient usually is; to ask whether it is an oracle takes longer.
_FUNCTIONS = (FunctionType, MethodType)


def as_stochastic(fun: Any, jac: Any = None) -> FiniteSum | SampleStream | None:
    """Read `fun` and `jac` as a noisy problem, or return None when they describe an ordinary one.

    Understood are a `FiniteSum` or `SampleStream` in either place, and in either place a gradient
    `grad(x, rng)` whose second argument is called rng. A callable `fun` beside it gives the values.
    """
    if jac is None:
        if isinstance(fun, _NOISY):
            return fun
        return SampleStream(fun) if _takes_rng(fun) else None
    noisy = None if isinstance(jac, _FUNCTIONS) or not isinstance(jac, _NOISY) else jac
    if noisy is None and not _takes_rng(jac):
        return None
    value = fun if callable(fun) and not isinstance(fun, Oracle) else None
    if noisy is None:
        return SampleStream(jac, value=value)
    return noisy if value is None else noisy.with_value(value)


def _takes_rng(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    plain = not hasattr(function, "__wrapped__") and not hasattr(function, "__signature__")
    if code is not None and plain and _RNG_NAMES.isdisjoint(code.co_varnames):
        return False  # a signature takes its time
    if not callable(function) or isinstance(function, Oracle):
        return False
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(required) == 2 and required[1].name in _RNG_NAMES


def _require_callable(name: str, given: Any, expected: str) -> None:
    if not callable(given):
        raise InputTypeError(f"{name} is {type(given).__name__}, expected {expected}.")


def _count(name: str, number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise InputTypeError(f"{name} is {type(number).__name__}, expected an integer.")
    if number < 1:
        raise InputError(f"{name} = {number} must be at least 1.")
    return int(number)


#: What `jac` may be instead of a gradient: SciPy's names for differences of values.
DIFFERENCES = ("2-point", "3-point")


def flat_point(point: Any, name: str, exact: bool = False) -> tuple[Layout, Vector]:
    """Return the layout of a point, and its numbers; refuse to round them where `exact`.

    Examples
    --------
    >>> layout, flat = flat_point({"b": 1.0, "W": np.ones((2, 2))}, "x0")
    >>> flat
    array([1., 1., 1., 1., 1.])
    >>> from goldstein.checker.function import put_together
    >>> put_together(layout, flat)["W"].shape
    (2, 2)
    """
    layout, arrays = taken_apart(point, name, exact)
    return layout, np.concatenate([np.zeros(0), *(array.ravel() for array in arrays)])


class _Called(BlackBox, Oracle):
    """A user's callable, by its own name; what it answers is left to the guard to judge."""

    def _both(self, x: Vector) -> tuple[Any, Any]:
        key, last = x.tobytes(), self._last  # as a whole: threads may ask
        if last[0] != key:
            answer = self._call(self.fun, x)
            if not (isinstance(answer, tuple | list) and len(answer) == 2):
                raise InputTypeError(
                    f"jac=True says that {self.name} returns a pair (value, gradient), but it "
                    f"returned {type(answer).__name__}; return both, or pass jac=your_gradient."
                )
            # A buffer that the user's code reuses must not change under us.
            raw = self._flat(answer[1])
            gradient = raw.copy() if isinstance(raw, np.ndarray) else raw
            last = self._last = key, (answer[0], gradient)
        return last[1]


class FunctionOracle(_Called):
    """A black box: `fun(x, *args)` and `jac(x, *args)`, or one `fun` that returns both.

    Parameters
    ----------
    fun : callable
        Returns f(x), or the pair (f(x), gradient) when `jac` is True.
    jac : callable or True
        Returns the gradient.
    args : sequence
        Extra arguments handed to both.
    layout : list, optional
        The layout of the points that both are written for; a vector by default.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = FunctionOracle(lambda x: np.abs(x).sum(), np.sign)
    >>> oracle.value(np.array([1.0, -2.0]))
    np.float64(3.0)
    """

    def __init__(
        self, fun: Callable[..., Any], jac: Callable[..., Any] | bool, args: Sequence[Any] = (),
        layout: Layout | None = None,
    ) -> None:  # fmt: skip
        super().__init__(fun, jac, args, layout)
        self._name = name_of(fun)
        if callable(jac) and not self.args and layout is None:
            # Nothing stands between the guard and the user's functions.
            self.value, self.gradient = fun, jac  # type: ignore[method-assign]


class ValueOracle(_Called):
    """A function of which only values can be had.

    Parameters
    ----------
    fun : callable or Oracle
    args : sequence
        Extra arguments.
    layout : list, optional
        As in `FunctionOracle`.
    """

    has_gradient = False

    def __init__(self, fun: Any, args: Sequence[Any] = (), layout: Layout | None = None) -> None:
        super().__init__(fun, False, args, layout)
        self._name = name_of(fun)
        if isinstance(fun, Oracle):
            self.dim, self.value = fun.dim, fun.value  # type: ignore[method-assign]
        elif not self.args and layout is None:
            self.value = fun  # type: ignore[method-assign]

    def gradient(self, y: Vector) -> Vector:
        raise InputTypeError(f"of {self.name} only values can be had; its gradient was asked for.")


def values_of(fun: Any, jac: Any, args: Sequence[Any] = (), layout: Layout | None = None) -> Oracle:
    """Return the values of what the user gave; a gradient that comes with them stays unasked."""
    if jac is True or callable(jac):
        return ValueOracle(as_oracle(fun, jac, args, layout))
    args = args if isinstance(args, tuple | list) else (args,)
    layout = None if layout is None or is_vector(layout) else layout
    if isinstance(fun, Oracle):
        if args or layout is not None or not fun.has_value:
            raise InputTypeError(
                f"{fun.name} is an oracle: it takes one vector and no args, and must have values."
            )
    elif not callable(fun):
        raise InputTypeError(
            f"fun must be a callable or a goldstein.Oracle, got {type(fun).__name__}."
        )
    return ValueOracle(fun, args, layout)


def as_oracle(
    fun: Oracle | Callable[..., Any],
    jac: Callable[..., Any] | bool | None = None,
    args: Sequence[Any] = (),
    layout: Layout | None = None,
    like: Vector | None = None,
) -> Oracle:
    """Return `fun` as an Oracle over a vector, or explain what is missing.

    `layout` says how the vector is laid out in the point that `fun` and `jac` know. Code without a
    gradient is traced, where `like` says how long the vector is.
    """
    if not isinstance(args, tuple | list):
        args = (args,)
    layout = None if layout is None or is_vector(layout) else layout
    plain = layout is None or isinstance(fun, Oracle) or not callable(fun)
    noisy = as_stochastic(fun, jac) if plain else None
    if noisy is not None and not args:
        return noisy
    if isinstance(fun, Oracle):
        if jac is not None or args:
            raise InputTypeError(
                f"fun is already an oracle ({fun.name}) and brings its own gradient; "
                "drop jac and args."
            )
        if layout is not None:
            raise InputTypeError(
                f"{fun.name} is an oracle over one vector, but the point has the layout "
                f"{shown(layout)}; pass a vector."
            )
        return fun
    if not callable(fun):
        raise InputTypeError(
            f"fun must be a callable, a goldstein.Oracle or a goldstein.Expression, "
            f"got {type(fun).__name__}."
        )
    if jac is True or callable(jac):
        return FunctionOracle(fun, jac, args, layout)
    why = ""
    if jac is None and like is not None:
        # From above: a function of code is an expression.
        tracing = importlib.import_module("goldstein.calculus.tracing")
        try:
            return tracing.traced_oracle(fun, args, like, layout)
        except tracing.TraceError as refusal:
            why = f" None could be derived from the code of fun: {refusal}"
    raise InputTypeError(
        f"no gradient: jac is {jac!r}.{why} Pass jac=your_gradient, or jac=True if fun returns "
        "(value, gradient); for automatic differentiation see goldstein.torch.oracle and "
        "goldstein.jax.oracle. Where there are only values: jac='2-point' or method='values', and "
        "what is proved is then statistical."
    )
