"""`method` and `options`: from names and values to a solver."""

from __future__ import annotations

import difflib
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from goldstein.errors import InputError, InputTypeError
from goldstein.reductions.base import USUAL, Options
from goldstein.solvers import REGISTRY, Solver
from goldstein.solvers.compiled import CompiledAuto
from goldstein.solvers.compiled.machine import chosen as is_chosen

P = ParamSpec("P")
R = TypeVar("R")

#: Options and arguments of other libraries, and what is meant here.
_ELSEWHERE = {
    "tol": "accuracy is eps=... and delta=...; gs.suggest_target proposes both",
    "hess": "second derivatives are not used; leave them out",
    "hessp": "second derivatives are not used; leave them out",
    "max_iter": "the limit is max_calls=...",
    "grad": "the gradient is jac=..., the third argument",
    "gradient": "the gradient is jac=..., the third argument",
    "maxiter": "the limit is max_calls=..., an argument of minimize",
    "maxfun": "the limit is max_calls=..., an argument of minimize",
    "maxfev": "the limit is max_calls=..., an argument of minimize",
    "disp": "progress=True, an argument of minimize, shows the run",
    "gtol": "accuracy is eps=... and delta=..., arguments of minimize",
    "ftol": "accuracy is eps=... and delta=...; gs.suggest_target finds both for an f_tol",
    "xtol": "accuracy is eps=... and delta=...; delta is the one in x",
}

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
    method: str | Solver, options: dict[str, Any] | None, size: int | None = None
) -> Solver:
    """Return the solver of that name, made with these options.

    `size` is the number of variables where the choice between an interpreted and a compiled `auto`
    is ours, None where the former is expected.
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
        kind = CompiledAuto if chosen.pop("compiled") else kind
    elif method == "auto" and size is not None and size <= COMPILED_LIMIT and is_chosen():
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
    if declared is bool and isinstance(value, bool):
        return
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
