"""Constraints lb <= c(x) <= ub as the user gave them, all components numbered in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.checker.constrained.box import read_sides
from goldstein.checker.errors import GoldsteinError, InputError, InputTypeError, OracleError
from goldstein.checker.layout import Layout, flattened, is_vector, put_together, size_of
from goldstein.checker.rationals import exact_floats, exact_sparse

_EXPECTED = (
    "a scipy.optimize.LinearConstraint, a NonlinearConstraint, a dict with 'type' ('ineq' for "
    "fun(x) >= 0, 'eq'), 'fun' and 'jac', or a list of them"
)

#: Equalities, and inequalities at the end of a search, may be violated by this much (relative to
#: their limits, where these exceed 1); whatever is left is printed.
FEASIBLE = 1e-9


@dataclass(eq=False)
class Group:
    """One constraint as the user gave it; `size` components once it has been asked.

    `parts` are its components where they are known exactly: expressions, or rows of numbers. Where
    `jac` is None there are only values.
    """

    name: str
    fun: Callable[[Vector], Any]
    jac: Callable[[Vector], Any] | None
    lower: Any
    upper: Any
    linear: bool = False
    parts: tuple[Any, ...] = ()
    size: int = 0
    #: Of the points that black boxes are called with.
    layout: Layout | None = None
    #: The last exception of one of the functions.
    failure: OracleError | None = None

    def values(self, x: Vector) -> Vector:
        found = np.atleast_1d(self._numbers(self.fun, x, "value"))
        if found.ndim != 1 or self.size not in (0, found.size):
            said = f"{found.size} components here and {self.size} promised"
            raise self.error(f"value has shape {found.shape}, {said}; return one for each limit", x)
        return found

    def rows(self, x: Vector) -> Matrix:
        found: Matrix = self._numbers(self._in_order, x, "Jacobian")
        if self.size == 1 and found.ndim < 2:
            found = found.reshape(1, -1)
        if found.shape != (self.size, x.size):
            wanted = f"{(self.size, x.size)}: a row for each component, a column for each variable"
            raise self.error(f"Jacobian has shape {found.shape}, expected {wanted}", x)
        return found

    def _in_order(self, x: Any) -> Any:
        """Return the Jacobian; that of one component may be laid out as x is."""
        assert self.jac is not None
        raw, layout = self.jac(x), self.layout
        if layout is None or self.size != 1 or getattr(raw, "shape", None) == (1, size_of(layout)):
            return raw
        return flattened(raw, layout, "the gradient")

    def _numbers(self, question: Callable[[Vector], Any], x: Vector, what: str) -> Any:
        try:
            raw = question(x.copy() if self.layout is None else put_together(self.layout, x))
            found = np.array(raw.toarray() if hasattr(raw, "toarray") else raw, dtype=np.float64)
        except GoldsteinError:
            raise
        except Exception as failure:
            self.failure = self.error(f"{what} raised {type(failure).__name__}: {failure}", x)
            raise self.failure from failure
        if not np.isfinite(found).all():
            bad = found[~np.isfinite(found)].ravel()[0]
            error = self.error(f"{what} is {bad}, expected finite numbers", x)
            error.value = float(bad)  # a search steps back from such a point
            raise error
        return found

    def error(self, what: str, x: Vector) -> OracleError:
        shown = np.array2string(x, threshold=8, edgeitems=3, precision=6)
        return OracleError(f"{self.name}: {what} (at x = {shown}).", x.copy(), 0)


class Limits:
    """lower <= c(x) <= upper, all components numbered.

    Attributes
    ----------
    size : int
        Components m of all constraints.
    lower, upper : ndarray, shape (m,)
    equal, linear : ndarray of bool, shape (m,)
    """

    #: Components have values.
    has_value = True

    def __init__(self, groups: Sequence[Group], x: Vector) -> None:
        self.groups = tuple(groups)
        for group in self.groups:
            vectors = (side for side in (group.lower, group.upper) if np.ndim(side))
            group.size = max(map(np.size, vectors), default=0)
            group.size = group.values(x).size
        sides = [read_sides(g.lower, g.upper, g.size, g.name, "component") for g in self.groups]
        self.lower, self.upper = np.hstack([np.zeros((2, 0)), *sides])
        sizes = [group.size for group in self.groups]
        self.linear: Mask = np.repeat(np.array([g.linear for g in self.groups], bool), sizes)
        self.equal: Mask = self.lower == self.upper
        self.size = self.lower.size

    def name(self, i: int) -> str:
        """How messages call component i."""
        for group in self.groups:
            if i < group.size:
                return group.name if group.size == 1 else f"{group.name}, component {i}"
            i -= group.size
        raise IndexError(i)

    def values(self, x: Vector) -> Vector:
        return np.concatenate([np.zeros(0), *(group.values(x) for group in self.groups)])

    def rows(self, x: Vector) -> Matrix:
        """Return the Jacobian, shape (m, d)."""
        return np.concatenate([np.zeros((0, x.size)), *(group.rows(x) for group in self.groups)])

    def excess(self, values: Vector) -> Vector:
        """Return by how much each component is violated: positive above ub, negative below lb."""
        above, below = values - self.upper, self.lower - values
        return np.maximum(above, 0.0) - np.maximum(below, 0.0)

    def tolerances(self) -> Vector:
        """Return what each component may be violated by."""
        sides = [np.abs(np.where(np.isfinite(s), s, 0.0)) for s in (self.lower, self.upper)]
        return FEASIBLE * np.maximum(1.0, np.maximum(*sides))


class Component:
    """One component of the constraints as a function."""

    def __init__(self, system: Any, i: int) -> None:
        self.system, self.i, self.has_value = system, i, not system.linear[i]

    def value(self, x: Vector) -> float:
        return float(self.system.values(x)[self.i])

    def gradient(self, y: Vector) -> Vector:
        row: Vector = self.system.rows(y)[self.i]
        return row


def as_groups(constraints: Any, dim: int, layout: Layout | None = None) -> list[Group]:
    """Read constraints as SciPy takes them, without asking them.

    Black boxes are called with points in this layout.
    """
    given = constraints if isinstance(constraints, list | tuple) else [constraints]
    groups = [] if constraints is None else [
        _group(one, f"constraints[{k}]", dim) for k, one in enumerate(given)
    ]  # fmt: skip
    for group in groups:
        if layout is not None and not (is_vector(layout) or group.parts):
            group.layout = layout
    return groups


def _group(one: Any, name: str, dim: int) -> Group:
    if isinstance(one, dict):
        return _from_dict(one, name)
    if hasattr(one, "A") and hasattr(one, "lb"):
        return _linear(one, name, dim)
    if hasattr(one, "fun") and hasattr(one, "lb"):
        called = getattr(one.fun, "__name__", "")
        label = f"{name} ({called})" if called and called not in ("<lambda>", "fun") else name
        fun, jac = _pair(one.fun, getattr(one, "jac", None), (), label)
        parts = getattr(one, "parts", _known(one.fun))  # of an Expression that was compared
        return Group(label, fun, jac, one.lb, one.ub, parts=parts)
    raise InputTypeError(f"{name} is {type(one).__name__}, expected {_EXPECTED}.")


def _from_dict(one: dict[str, Any], name: str) -> Group:
    unknown = set(one) - {"type", "fun", "jac", "args"}
    if unknown or "fun" not in one or one.get("type") not in ("ineq", "eq"):
        raise InputError(
            f"{name} is a dict with keys {sorted(map(str, one))} and type {one.get('type')!r}; "
            "expected 'type' ('ineq' for fun(x) >= 0, or 'eq'), 'fun', 'jac' and perhaps 'args'."
        )
    args = one.get("args", ())
    args = tuple(args) if isinstance(args, tuple | list) else (args,)
    fun, jac = _pair(one["fun"], one.get("jac"), args, name)
    upper = np.inf if one["type"] == "ineq" else 0.0
    return Group(name, fun, jac, 0.0, upper, parts=_known(one["fun"]))


def _known(fun: Any) -> tuple[Any, ...]:
    """A function whose kinks are known is a part; of a black box there are none."""
    return (fun,) if hasattr(fun, "program") else ()


def _linear(one: Any, name: str, dim: int) -> Group:
    known = exact_sparse(one.A, f"{name}: A").toarray() if hasattr(one.A, "toarray") else one.A
    matrix = np.atleast_2d(np.array(exact_floats(known, f"{name}: A", finite=False)))
    if matrix.ndim != 2 or matrix.shape[1] != dim or not np.isfinite(matrix).all():
        raise InputError(
            f"{name}: the matrix A has shape {matrix.shape}; expected {dim} columns, one for each "
            "variable, and finite entries."
        )
    matrix.setflags(write=False)
    rows = tuple(matrix)
    return Group(name, lambda x: matrix @ x, lambda x: matrix, one.lb, one.ub, True, rows)


def _pair(
    fun: Any, jac: Any, args: tuple[Any, ...], name: str
) -> tuple[Callable[[Vector], Any], Callable[[Vector], Any] | None]:
    """Return value and Jacobian of a constraint as functions of x alone; None for no Jacobian."""
    if hasattr(fun, "value") and hasattr(fun, "gradient"):
        return fun.value, fun.gradient
    if not callable(fun):
        raise InputTypeError(f"{name}: fun must be callable, got {type(fun).__name__}.")
    if jac is True:
        return lambda x: fun(x, *args)[0], lambda x: fun(x, *args)[1]
    if callable(jac):
        return lambda x: fun(x, *args), lambda x: jac(x, *args)
    if jac not in (None, False, "2-point", "3-point", "cs"):
        raise InputTypeError(
            f"{name}: jac is {jac!r}, expected a function that returns the Jacobian, True if fun "
            "returns both, or '2-point' for differences of values."
        )
    return lambda x: fun(x, *args), None
