"""Running the user's file, and finding its function, gradient and start by the names people use."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import goldstein
from goldstein.errors import InputError
from goldstein.oracles import Oracle
from goldstein.oracles.constraints import given

FUNCTIONS = (
    "problem", "f", "F", "fun", "func", "function", "objective", "loss", "cost", "oracle", "pair",
)  # fmt: skip
GRADIENTS = (
    "grad", "gradient", "jac", "jacobian", "df", "fprime", "f_prime", "subgrad", "subgradient",
    "g",
)  # fmt: skip
#: How a gradient is named after its function; these win over the general names.
NAMED_AFTER = (
    "{}_grad", "grad_{}", "{}_gradient", "gradient_{}", "{}_jac", "jac_{}", "d{}", "{}prime",
    "{}_prime", "grad{}", "{}_subgradient", "{}_subgrad",
)  # fmt: skip
STARTS = ("x0", "start", "x_0", "x_start", "x_init", "initial", "starting_point", "w0", "theta0")


@dataclass(frozen=True)
class Call:
    """A call of `gs.minimize` that the file makes itself: it says what belongs together."""

    fun: Any
    x0: Any
    jac: Any = None
    args: Any = ()
    limits: dict[str, Any] = field(default_factory=dict)


@dataclass
class UserFile:
    """A file that has been run: its objects, and its own calls of `gs.minimize`."""

    path: str
    module: ModuleType
    calls: list[Call] = field(default_factory=list)

    def get(self, name: str) -> Any:
        """Return the object called `name`."""
        if not hasattr(self.module, name):
            raise InputError(f"{self.path} has no object {name!r}; it has: {self._public()}.")
        return getattr(self.module, name)

    def function(self) -> tuple[str, Any]:
        """Return name and object of the function a newcomer would mean."""
        for call in self.calls:
            return _name(call.fun), call.fun
        for name in FUNCTIONS:
            thing = getattr(self.module, name, None)
            if callable(thing) or isinstance(thing, Oracle) or _is_pair(thing):
                return name, thing
        raise InputError(
            f"{self.path} names no function: none of {', '.join(FUNCTIONS)} is one. Say which "
            f"object: {self.path}:NAME; it has: {self._public()}."
        )

    def gradient_of(self, name: str, fun: Any) -> tuple[str, Any]:
        """Return name and callable of the gradient beside a function; ("", None) without one."""
        for candidate in [*(pattern.format(name) for pattern in NAMED_AFTER), *GRADIENTS]:
            thing = getattr(self.module, candidate, None)
            if callable(thing) and thing is not fun:
                return candidate, thing
        return "", None

    def call_of(self, fun: Any) -> Call | None:
        """Return the file's own first call of `gs.minimize` with this function."""
        return next((call for call in self.calls if call.fun is fun), None)

    def start(self) -> tuple[str, Any]:
        """Return name and value of the start; ("", None) without one."""
        for name in STARTS:
            thing = getattr(self.module, name, None)
            # `start = time.time()` is no point; `x0 = 3.0` is one.
            if thing is not None and _is_point(thing) and (name == "x0" or np.ndim(thing) > 0):
                return name, thing
        return "", None

    def limits(self) -> dict[str, Any]:
        """Return `bounds` and `constraints` of the file, as far as it has them."""
        return _limits(vars(self.module))

    def _public(self) -> str:
        return ", ".join(n for n in vars(self.module) if not n.startswith("_")) or "nothing"


def run_file(path: str) -> UserFile:
    """Run a Python file as a module (`__name__` is not "__main__"), and keep what it defines."""
    source = Path(path)
    if not source.is_file():
        what = "a folder" if source.is_dir() else "no such file"
        raise InputError(f"{path}: {what}; a problem is a built-in name, file.py or file.py:name.")
    spec = importlib.util.spec_from_file_location(f"_goldstein_problem_{source.stem}", source)
    if source.suffix != ".py" or spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file; a problem is file.py or file.py:name.")
    found = UserFile(path, importlib.util.module_from_spec(spec))
    folder = str(source.resolve().parent)
    if folder not in sys.path:  # a problem may import its neighbours, now or when it is called
        sys.path.insert(0, folder)
    try:
        with _noting_calls(found.calls):
            spec.loader.exec_module(found.module)
    except (Exception, SystemExit) as failure:
        raise InputError(
            f"{path} could not be run: {type(failure).__name__}: {failure}."
        ) from failure
    return found


@contextlib.contextmanager
def _noting_calls(calls: list[Call]) -> Iterator[None]:
    """Note what the file itself hands to `gs.minimize`; the calls are made as they stand."""
    minimize = goldstein.minimize

    def noted(fun: Any, x0: Any, jac: Any = None, *, args: Sequence[Any] = (), **rest: Any) -> Any:
        calls.append(Call(fun, x0, jac, args, _limits(rest)))
        return minimize(fun, x0, jac, args=args, **rest)

    vars(goldstein)["minimize"] = noted
    try:
        yield
    finally:
        vars(goldstein)["minimize"] = minimize


def _limits(names: dict[str, Any]) -> dict[str, Any]:
    """Pick out what limits a problem; functions of these names are something else."""
    found = {name: names.get(name) for name in ("bounds", "constraints")}
    return {name: thing for name, thing in found.items() if given(thing) and not callable(thing)}


def _is_pair(thing: Any) -> bool:
    return isinstance(thing, tuple) and len(thing) == 2 and all(map(callable, thing))


def _is_point(thing: Any) -> bool:
    if callable(thing):
        return False
    try:
        return np.asarray(thing).dtype.kind in "fiu"
    except (TypeError, ValueError, RuntimeError):
        return False


def _name(fun: Any) -> str:
    return fun.name if isinstance(fun, Oracle) else getattr(fun, "__name__", type(fun).__name__)
