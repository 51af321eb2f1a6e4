"""From the text PROBLEM to a function: a built-in name, or a function in the user's file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from goldstein import problems
from goldstein.checker.arrays import Vector
from goldstein.cli.user_file import GRADIENTS, UserFile, run_file
from goldstein.errors import InputError
from goldstein.numerics.exact_floats import exact_floats
from goldstein.oracles import Oracle, as_oracle


@dataclass(frozen=True)
class Chosen:
    """The problem of a command: its function, its start, and the names they were found under."""

    oracle: Oracle
    x0: Any = None
    found: str = ""
    #: `bounds` and `constraints`, as far as there are any.
    limits: dict[str, Any] = field(default_factory=dict)

    def start(self, text: str, option: str) -> Any:
        """Return the start, or say how to give one."""
        if self.x0 is None:
            raise InputError(
                f"{text} has no start; give one with {option}, such as {option} 1,2.5,-3, or put "
                "x0 into the file."
            )
        return self.x0


def is_file(text: str) -> bool:
    """Whether PROBLEM names a file of the user."""
    return ":" in text or text.endswith(".py")


def split(text: str) -> tuple[str, str]:
    """Return file and name of `file.py:name`; without a name it is empty."""
    path, _, name = (text, "", "") if text.endswith(".py") else text.rpartition(":")
    return path, name


def choose(text: str, d: int | None = None, x: Vector | None = None) -> Chosen:
    """Return the problem that `text` names; `x` replaces its start."""
    if not is_file(text):
        if text not in problems.names("all") and Path(f"{text}.py").is_file():
            raise InputError(f"{text} is no built-in problem; {text}.py is a file: say {text}.py.")
        problem = problems.get(text, d=d)
        start = problem.x0 if x is None else x
        return Chosen(problem, start, ", ".join(problem.limits), problem.limits)
    if d is not None:
        raise InputError("--d goes with built-in problems; a problem in a file has its own size.")
    path, name = split(text)
    file = run_file(path)
    name, thing = (name, file.get(name)) if name else file.function()
    call = file.call_of(thing)
    where, start = _start(file, thing) if x is None else ("", x)
    if call is not None:
        oracle, gradient = as_oracle(call.fun, call.jac, call.args), ""
        where = "gradient and start of its own call of minimize"
    else:
        oracle, gradient = _as_oracle(thing, name, file, start)
    limits = file.limits() if call is None else call.limits
    parts = [f"{name} of {path}", gradient, where, *limits]
    return Chosen(oracle, start, ", ".join(filter(None, parts)), limits)


def choose_for(text: str, d: int | None, x: Vector) -> Chosen:
    """The same at a given point: a built-in problem is scaled to fit it."""
    chosen = choose(text, d, x)
    fits = chosen.oracle.dim is None or chosen.oracle.dim == x.size
    return chosen if fits or d is not None or is_file(text) else choose(text, x.size, x)


def read_vector(text: str, what: str) -> Vector:
    """Read a point: `1,2,3`, a .npy, .csv or .txt file, or `file.py:name`."""
    path = Path(text)
    try:
        if path.suffix == ".npy":
            return exact_floats(np.load(path, allow_pickle=False), what)
        if ".py:" in text:
            file, _, name = text.rpartition(":")
            return exact_floats(run_file(file).get(name), what)
        if path.is_file():
            return np.atleast_1d(np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None))
        return np.array([float(part) for part in re.split(r"\s*,\s*|\s+", text.strip(" []()"))])
    except (TypeError, ValueError, EOFError, OSError) as failure:
        raise InputError(
            f"{what} {text!r} is not a point ({failure}); give numbers such as 1,2.5,-3, "
            "a .npy, .csv or .txt file, or file.py:name."
        ) from failure


def _start(file: UserFile, thing: Any) -> tuple[str, Any]:
    """The start that belongs to an object of the file, and where it was found."""
    call = file.call_of(thing)
    if call is not None:
        return "", call.x0
    if getattr(thing, "x0", None) is not None:
        return "start x0", thing.x0
    name, start = file.start()
    return name and f"start {name}", start


def _as_oracle(thing: Any, name: str, file: UserFile, x: Any) -> tuple[Oracle, str]:
    """Return the function as an oracle, and the gradient that was found beside it."""
    if isinstance(thing, Oracle):
        return thing, ""
    if isinstance(thing, tuple) and len(thing) == 2:
        return as_oracle(*thing), ""
    if not callable(thing):
        raise InputError(
            f"{file.path}:{name} is {type(thing).__name__}; expected an Oracle, an Expression, a "
            "pair (fun, jac), or a function with its gradient beside it or returning "
            "(value, gradient)."
        )
    pair = _returns_pair(thing, x)
    gradient, jac = file.gradient_of(name, thing)
    if pair or (pair is None and jac is None):
        return as_oracle(thing, True), ""
    if jac is None:
        raise InputError(
            f"{file.path} has no gradient of {name}: let {name} return (value, gradient), or put "
            f"its gradient beside it, called {', '.join(GRADIENTS[:3])} or {name}_grad."
        )
    return as_oracle(thing, jac), f"gradient {gradient}"


def _returns_pair(fun: Any, x: Any) -> bool | None:
    """Ask once whether a function returns (value, gradient); None where that does not show."""
    if x is None:
        return None
    try:
        answer = fun(np.array(x, dtype=np.float64))
    except Exception:  # the run itself will say what is wrong, with the point and the call
        return None
    return isinstance(answer, tuple | list) and len(answer) == 2
