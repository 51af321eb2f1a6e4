"""From the text PROBLEM to a function: a built-in name, or an object in the user's file."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein import problems
from goldstein.errors import InputError
from goldstein.oracles import Oracle, as_oracle

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Chosen:
    """The problem of a command: its function, and its start where it has one."""

    name: str
    oracle: Oracle
    x0: Any = None


def choose(text: str, d: int | None = None) -> Chosen:
    """Return the problem that `text` names."""
    if ":" not in text:
        if text.endswith(".py"):
            raise InputError(f"{text} names a file only; say which object: {text}:name.")
        problem = problems.get(text, d=d)
        return Chosen(text, problem, problem.x0)
    if d is not None:
        raise InputError("--d goes with built-in problems; a problem in a file has its own size.")
    file, _, name = text.rpartition(":")
    module = _run(file)
    thing = _object(module, file, name)
    start = getattr(thing, "x0", getattr(module, "x0", None))
    return Chosen(text, _as_oracle(thing, module, text), start)


def choose_for(text: str, d: int | None, size: int) -> Chosen:
    """The same for a given number of variables: a built-in problem is scaled to fit."""
    chosen = choose(text, d)
    fits = chosen.oracle.dim is None or chosen.oracle.dim == size
    return chosen if fits or d is not None or ":" in text else choose(text, size)


def read_vector(text: str, what: str) -> Vector:
    """Read a point: `1,2,3`, a .npy or text file, or `file.py:name`."""
    path = Path(text)
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
        if ".py:" in text:
            file, _, name = text.rpartition(":")
            return np.asarray(_object(_run(file), file, name), dtype=np.float64)
        if path.is_file():
            return np.atleast_1d(np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None))
        return np.array([float(part) for part in text.split(",")])
    except (TypeError, ValueError, EOFError) as failure:
        raise InputError(
            f"{what} {text!r} is not a point ({failure}); give numbers such as 1,2.5,-3, "
            "a .npy, .csv or .txt file, or file.py:name."
        ) from failure


def _run(file: str) -> ModuleType:
    path = Path(file)
    if not path.is_file():
        raise InputError(f"{file}: no such file; a problem is a built-in name or file.py:object.")
    spec = importlib.util.spec_from_file_location(f"_goldstein_problem_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{file} is not a Python file; a problem is file.py:object.")
    module = importlib.util.module_from_spec(spec)
    # A problem may import its neighbours, as it would when run as a script.
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as failure:
        raise InputError(
            f"{file} could not be run: {type(failure).__name__}: {failure}."
        ) from failure
    finally:
        sys.path.pop(0)
    return module


def _object(module: ModuleType, file: str, name: str) -> Any:
    if not hasattr(module, name):
        public = ", ".join(n for n in vars(module) if not n.startswith("_")) or "nothing"
        raise InputError(f"{file} has no object {name!r}; it has: {public}.")
    return getattr(module, name)


def _as_oracle(thing: Any, module: ModuleType, text: str) -> Oracle:
    if isinstance(thing, Oracle):
        return thing
    if isinstance(thing, tuple) and len(thing) == 2:
        return as_oracle(*thing)
    if callable(thing):
        jac = getattr(module, "jac", None)
        return as_oracle(thing, jac if callable(jac) and jac is not thing else True)
    raise InputError(
        f"{text} is {type(thing).__name__}; expected an Oracle, an Expression, a pair (fun, jac), "
        "or a function with a `jac` beside it or returning (value, gradient)."
    )
