"""PROBLEM on the command line: a built-in one, or what is found in the user's file."""

import contextlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import goldstein
from goldstein import problems
from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import exact_floats
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles import Oracle, as_oracle
from goldstein.oracles.base import name_of
from goldstein.oracles.problem import given

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
            return name_of(call.fun), call.fun
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
        oracle, gradient = as_oracle(call.fun, call.jac, call.args, like=_vector(start)), ""
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
    if jac is None and x is not None:
        with contextlib.suppress(InputTypeError):
            return as_oracle(thing, like=_vector(x)), "gradient derived from its code"
    if jac is None:
        raise InputError(
            f"{file.path} has no gradient of {name}: let {name} return (value, gradient), or put "
            f"its gradient beside it, called {', '.join(GRADIENTS[:3])} or {name}_grad."
        )
    return as_oracle(thing, jac), f"gradient {gradient}"


def _vector(x: Any) -> Vector | None:
    return None if x is None else np.ravel(np.asarray(x, dtype=np.float64))


def _returns_pair(fun: Any, x: Any) -> bool | None:
    """Ask once whether a function returns (value, gradient); None where that does not show."""
    if x is None:
        return None
    try:
        answer = fun(np.array(x, dtype=np.float64))
    except Exception:  # the run itself will say what is wrong, with the point and the call
        return None
    return isinstance(answer, tuple | list) and len(answer) == 2
