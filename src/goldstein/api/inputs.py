"""Checks of what the user passed: each refusal says what was got, expected, and what to do.

`method` and `options` become a solver.
"""

import difflib
import functools
import inspect
import math
import time
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldstein.checker.arrays import Vector
from goldstein.checker.function import Layout
from goldstein.checker.rationals import exact_floats
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact import exact_float
from goldstein.numerics.streams import LONGEST, size_of, smallest_delta
from goldstein.oracles import Oracle
from goldstein.oracles.function import flat_point
from goldstein.reductions.base import USUAL, Options
from goldstein.solvers import REGISTRY, Solver
from goldstein.solvers.compiled import CompiledAuto
from goldstein.solvers.compiled.machine import chosen as is_chosen
from goldstein.solvers.tuning import TUNING

RNG = int | np.random.Generator | None


class PrecisionWarning(UserWarning):
    """The request is close to what float64 can distinguish."""


def as_vector(values: ArrayLike, name: str, exact: bool = True) -> Vector:
    if not isinstance(values, np.ndarray) and hasattr(values, "detach") and hasattr(values, "cpu"):
        values = values.detach().cpu()  # a tensor of PyTorch, wherever it lives
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "fiubO" or values is None:
            raise TypeError(f"got {_kind(raw)}")
        array = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as failure:
        hint = _vector_hint(values, name)
        raise InputTypeError(f"{name} must be a vector of numbers: {hint or failure}.") from failure
    if exact:
        exact_floats(values, name, finite=False)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1 or array.size == 0:
        raise InputError(
            f"{name} must be a non-empty vector, got shape {array.shape}; use ravel()."
        )
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InputError(f"{name} must be finite, but {name}[{bad}] is {array[bad]}.")
    return array


def as_point(values: Any, name: str, exact: bool = True) -> tuple[Layout | None, Vector]:
    """Return a point as one vector, and its layout where it is not a vector already."""
    nested = isinstance(values, list | tuple) and any(
        isinstance(part, dict | list | tuple) or getattr(part, "ndim", 0) for part in values
    )
    shaped = not isinstance(values, list | tuple | str) and getattr(values, "ndim", 1) > 1
    if _has_point(values) or not (isinstance(values, dict) or nested or shaped):
        return None, as_vector(values, name, exact)
    layout, flat = flat_point(values, name, exact)
    return layout, as_vector(flat, name)


def in_own_layout(fun: Any, point: Any) -> Any:
    """Return the vector of a point laid out like what an oracle was made from; others stay."""
    flat = getattr(fun, "flat", None) if isinstance(fun, Oracle) else None
    return point if flat is None else flat(point)


def as_start(x0: Any, fun: Any = None) -> tuple[Layout | None, Vector]:
    """Return the point that a run starts from; no claim is about it, so it may be rounded."""
    x0 = in_own_layout(fun, x0)
    try:
        return as_point(x0, "x0")
    except InputError as refusal:
        rounded = as_point(x0, "x0", exact=False)  # all other mistakes are refused here, too
        warnings.warn(
            f"the run starts at x0 rounded to float64: {refusal}", PrecisionWarning, stacklevel=5
        )
        return rounded


def _has_point(values: Any) -> bool:
    """Is it what an optimizer returned? SciPy's results are dicts too."""
    return hasattr(values, "x") and not callable(values)


def _kind(raw: NDArray[Any]) -> str:
    kinds = {"c": "complex numbers, which have no order", "U": "text", "S": "bytes", "O": "None"}
    return kinds.get(raw.dtype.kind, str(raw.dtype))


def _vector_hint(values: Any, name: str) -> str:
    """What was probably meant by something that is no vector, where we can tell."""
    if type(values).__module__.partition(".")[0] == "torch":
        return (
            f"got a torch tensor that NumPy cannot read; for a function of tensors use "
            f"goldstein.torch.oracle, otherwise pass {name}.detach().cpu().numpy()"
        )
    if _has_point(values):
        return (
            f"got {type(values).__name__}, a result; pass its x, or the whole to gs.certify_result"
        )
    if isinstance(values, Oracle) or callable(values):
        return f"got a function; the order is fun, {name}, jac"
    return ""


def sized(oracle: Oracle, x: Vector) -> Oracle:
    if oracle.dim is not None and oracle.dim != x.size:
        raise InputError(f"{oracle.name} has {oracle.dim} variables, but the point has {x.size}.")
    return oracle


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def declared(curvature: Any) -> float | None:
    """Return the curvature that a user declares, or refuse what is no number."""
    if curvature is None:
        return None
    if not (is_number(curvature) and math.isfinite(curvature)):
        raise InputError(f"curvature must be a finite number or None, got {curvature!r}.")
    return float(curvature)


def tolerance(eps: float) -> float:
    """The `eps` of certify: 0 asks for the smallest bound the budget allows."""
    if not is_number(eps):
        raise InputTypeError(f"eps must be a number, got {type(eps).__name__}.")
    if not (math.isfinite(eps) and eps >= 0):
        raise InputError(f"eps must be finite and not negative, got {eps!r}.")
    return exact_float(eps, "eps")


def check_target(eps: float, delta: float, x: Vector) -> None:
    for name, value in (("eps", eps), ("delta", delta)):
        if not is_number(value):
            raise InputTypeError(f"{name} must be a number, got {type(value).__name__}.")
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"{name} must be a positive finite number, got {value!r}.")
        exact_float(value, name)
    check_size(x, delta)
    floor = smallest_delta(x)
    if delta < floor:
        raise InputError(
            f"delta = {delta:g} is below {floor:.3g}, the smallest ball float64 can sample at a "
            "point of this size; raise delta or rescale the variables."
        )


def check_size(x: Vector, delta: float = 0.0) -> None:
    """Refuse what a search cannot square."""
    size = size_of(x)
    if max(size * math.sqrt(x.size), delta) > LONGEST:
        raise InputError(
            f"the point has entries of size {size:.3g} and delta is {delta:.3g}, but squares of "
            f"numbers beyond {LONGEST:g} overflow in float64; rescale the variables."
        )


def call_budget(max_calls: int | None, default: int) -> int:
    if max_calls is None:
        return default
    if isinstance(max_calls, bool) or not isinstance(max_calls, int | np.integer) or max_calls < 1:
        raise InputError(f"max_calls must be a positive integer or None, got {max_calls!r}.")
    return int(max_calls)


def deadline_after(max_time: float | None) -> float:
    """Return when a run that begins now must end, on the clock of `time.perf_counter`."""
    if max_time is None:
        return math.inf
    if not (is_number(max_time) and max_time > 0):
        raise InputError(f"max_time must be positive seconds or None, got {max_time!r}.")
    return time.perf_counter() + float(max_time)


#: What a call has that does not go together, and what is said of it. Solvers, kinds of
#: stationarity and terms declare what they need (`needs`); arguments go by their names.
TABLE: dict[tuple[str, ...], str] = {
    ("values only", "an expression"): (
        "stationarity={kind!r} is proved from the structure of an Expression; values alone support "
        "'goldstein', with a confidence."
    ),
    ("values only", "plus"): (
        "plus= needs a gradient of fun, and only values are asked for here; pass jac=, or write "
        "the term into fun."
    ),
    ("differences", "gradients"): (
        "jac={jac!r} goes with method='auto' or 'values', not with {method!r}: it needs gradients."
    ),
    ("no limits", "limits"): (
        "method={method!r} knows no bounds and no constraints; method='values' does."
    ),
    ("values only", "layout", "constraints"): (
        "statistics of constraints need points that are vectors, and x0 is none; ravel it and "
        "unpack it in the functions, or give fun and every constraint a jac."
    ),
    ("plus", "constraints"): "plus= does not go together with constraints; write h into fun.",
    ("checkpoint", "workers"): (
        "a checkpoint is a journal of answers one by one, and workers take many at a time; drop "
        "checkpoint= or workers=."
    ),
    ("feasible", "unlimited"): (
        "options={{'feasible': True}} is about constraints, and there are none."
    ),
}

#: What of it is about what an argument is, not about its value.
_OF_TYPES = {"an expression", "layout"}


def refuse(present: set[str], **words: object) -> None:
    """Refuse the first pair of the table that a call has."""
    for several, sentence in TABLE.items():
        if present.issuperset(several):
            error = InputError if _OF_TYPES.isdisjoint(several) else InputTypeError
            raise error(sentence.format(**words))


P = ParamSpec("P")
R = TypeVar("R")

#: Options and arguments of other libraries, and what is meant here.
_ELSEWHERE: dict[str, str] = {
    "tol": "accuracy is eps=... and delta=...; gs.suggest_target proposes both",
    **dict.fromkeys(("hess", "hessp"), "second derivatives are not used; leave them out"),
    **dict.fromkeys(("grad", "gradient"), "the gradient is jac=..., the third argument"),
    "max_iter": "the limit is max_calls=...",
    **dict.fromkeys(("maxiter", "maxfun", "maxfev"), "the limit is max_calls=..., an argument of "
                                                     "minimize"),
    "disp": "progress=True, an argument of minimize, shows the run",
    "gtol": "accuracy is eps=... and delta=..., arguments of minimize",
    "ftol": "accuracy is eps=... and delta=...; gs.suggest_target finds both for an f_tol",
    "xtol": "accuracy is eps=... and delta=...; delta is the one in x",
}  # fmt: skip

#: What a type of an option is called, and what is taken for it.
_KINDS: dict[Any, tuple[str, tuple[type, ...]]] = {
    bool: ("True or False", (bool, np.bool_)),
    int: ("an integer", (int, np.integer)),
    float: ("a number", (int, float, np.integer, np.floating)),
    str: ("a string", (str,)),
    type(None): ("None", (type(None),)),
}


#: What a keyword that must be given is.
DELTA = "the radius, in the units of x, within which gradients may cancel"


def in_words(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse unknown keywords of a function with what they are called here; ask for delta."""
    parameters = inspect.signature(function).parameters
    known = list(parameters)
    needed = "delta" in parameters and parameters["delta"].default is inspect.Parameter.empty

    @functools.wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        if needed and "delta" not in keywords:
            raise InputTypeError(
                f"delta is missing: {DELTA}. Give delta=...; gs.stationarity_curve shows what each "
                "radius would give."
            )
        for name in keywords:
            if name not in known:
                hint = f" Here {_ELSEWHERE[name]}." if name in _ELSEWHERE else ""
                raise InputTypeError(
                    f"{function.__name__}() has no argument {name!r}."
                    f"{hint or did_you_mean(name, known)}"
                )
        return function(*args, **keywords)

    return call


#: Above this many variables the arithmetic of NumPy is as fast as that of the compiled search.
COMPILED_LIMIT = 200


def make_solver(
    method: str | Solver, options: dict[str, Any] | None, size: int = 0, may_compile: bool = False
) -> Solver:
    """Return the solver of that name, made with these options, for so many variables.

    `may_compile` says that the choice between an interpreted and a compiled `auto` is ours.
    """
    if isinstance(method, Solver):
        if options:
            raise InputTypeError(
                "options go with a method name; set them on the solver object instead."
            )
        return method
    if not isinstance(method, str):
        raise InputTypeError(
            f"method must be a name or a solver object, got {type(method).__name__}."
        )
    if method not in REGISTRY:
        raise InputError(
            f"unknown method {method!r}; known: {', '.join(sorted(REGISTRY))}."
            f"{did_you_mean(method, REGISTRY)}"
        )
    if not isinstance(options or {}, dict):
        raise InputTypeError(
            f"options of method {method!r} must be a dict of names and values, got {options!r}."
        )
    chosen = dict(options or {})
    kind: type[Solver] = REGISTRY[method]
    if method == "auto" and "compiled" in chosen:
        _require_kind(method, "compiled", chosen["compiled"], bool)
        if chosen.pop("compiled"):
            if size <= TUNING.dense_limit:
                kind = CompiledAuto
            else:  # with its dense matrices it would be the slower one
                chosen.pop("stretch", None)
    elif method == "auto" and may_compile and size <= COMPILED_LIMIT and is_chosen():
        kind = CompiledAuto if set(chosen) <= set(_parameters(CompiledAuto)) else kind
    known = _parameters(kind)
    for name, value in chosen.items():
        if name not in known:
            more = ["check_gradient", *(["compiled"] if method == "auto" else [])]
            raise InputTypeError(_unknown(method, name, [*known, *more]))
        _require_kind(method, name, value, known[name])
    return kind(**chosen)


def method_options(method: str | Solver) -> list[str]:
    """Return the names of the options that go with a method name; of others there are none."""
    if not isinstance(method, str) or method not in REGISTRY:
        return []
    return [*_parameters(REGISTRY[method]), *_OWN, *(["compiled"] if method == "auto" else [])]


#: The options of `minimize` itself, in order.
_OWN = dict.fromkeys(("check_gradient", "feasible", "go_on", "leaps")).keys()


def split_options(options: dict[str, Any] | None) -> tuple[Options, dict[str, Any] | None]:
    """Return the options of `minimize` itself, and those of the method."""
    if not isinstance(options, dict):
        return USUAL, options
    own = _OWN & options.keys()
    for name in own:
        if not isinstance(options[name], bool):
            raise InputTypeError(f"option {name!r} must be True or False, got {options[name]!r}.")
    rest = {name: value for name, value in options.items() if name not in own}
    return Options(**{name: options[name] for name in own}), rest if own else options


@functools.cache
def _parameters(kind: type[Solver]) -> dict[str, Any]:
    """Return what the solver can be told, by name, with the types it declares."""
    hints = typing.get_type_hints(kind.__init__)
    return {name: hint for name, hint in hints.items() if name != "return"}


def _require_kind(method: str, name: str, value: Any, declared: Any) -> None:
    """Refuse a value of another type than the solver declares; values are its own affair."""
    if typing.get_origin(declared) is typing.Literal:
        return
    union = typing.get_origin(declared) in (typing.Union, types.UnionType)
    expected = typing.get_args(declared) if union else (declared,)
    for one in expected:
        if isinstance(value, _KINDS[one][1]) and (one is bool or not isinstance(value, bool)):
            return
    wanted = " or ".join(_KINDS[one][0] for one in expected)
    raise InputTypeError(
        f"option {name!r} of method {method!r} must be {wanted}, got {value!r} "
        f"({type(value).__name__})."
    )


def _unknown(method: str, name: Any, known: list[str]) -> str:
    hint = f" Here {_ELSEWHERE[name]}." if name in _ELSEWHERE else did_you_mean(name, known)
    return (
        f"options of method {method!r}: unknown option {name!r}; known: "
        f"{', '.join(sorted(known))}.{hint}"
    )


def did_you_mean(name: Any, known: typing.Iterable[str]) -> str:
    """Return a sentence about the name that was probably meant, or nothing."""
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
