"""Constraints lb <= c(x) <= ub, all components numbered in the order given."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constraints import excess
from goldstein.errors import GoldsteinError, InputError, InputTypeError, OracleError
from goldstein.numerics.exact_floats import exact_floats, exact_sparse
from goldstein.oracles import Oracle
from goldstein.oracles.counted import Map
from goldstein.oracles.differences import Stencil, slopes_along
from goldstein.oracles.function import DIFFERENCES
from goldstein.oracles.journal import Journal
from goldstein.oracles.journalled import of_size
from goldstein.oracles.workers import Attempt

_EXPECTED = (
    "a scipy.optimize.LinearConstraint, a NonlinearConstraint, a dict with 'type' ('ineq' for "
    "fun(x) >= 0, 'eq'), 'fun' and 'jac', or a list of them"
)


#: Numbers remembered of points asked for lately, and points in any case.
REMEMBERED, AT_LEAST = 100_000, 16


class Comparison:
    """What `F <= 1`, `F >= 0` or `F == 0` say of an Expression: a constraint for `minimize`.

    Parameters
    ----------
    parts : sequence of Oracle
        One for each component.
    lb, ub : float or ndarray
    """

    def __init__(self, parts: Sequence[Oracle], lb: Any, ub: Any) -> None:
        self.parts, self.lb, self.ub = tuple(parts), lb, ub
        self.jac = self._rows

    def fun(self, x: Vector) -> Vector:
        return np.array([part.value(x) for part in self.parts])

    def _rows(self, x: Vector) -> Matrix:
        return np.array([part.gradient(x) for part in self.parts])

    def __bool__(self) -> bool:
        raise InputTypeError(
            "a comparison of an expression is a constraint, neither true nor false; two-sided "
            "limits are two comparisons: constraints=[F >= 0, F <= 1]."
        )

    def __repr__(self) -> str:
        return f"<{len(self.parts)} constraints, {self.lb} <= F(x) <= {self.ub}>"


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
    parts: tuple[Oracle | Vector, ...] = ()
    size: int = 0
    #: The last exception of one of the functions.
    failure: OracleError | None = None

    def values(self, x: Vector) -> Vector:
        raw = self._ask(self.fun, x, "value")
        found = np.array(raw, dtype=np.float64)
        found = np.atleast_1d(found)
        if found.ndim != 1:
            raise self._error(f"value has shape {found.shape}, expected a number or a vector", x)
        if self.size and found.size != self.size:
            raise self._error(
                f"value has {found.size} components here and {self.size} promised (by its bounds, "
                "or by its first answer); return one for each",
                x,
            )
        if not np.isfinite(found).all():
            raise self._error(f"value is {found[~np.isfinite(found)][0]}, expected finite", x)
        return found

    def rows(self, x: Vector) -> Matrix:
        assert self.jac is not None
        raw = self._ask(self.jac, x, "Jacobian")
        raw = raw.toarray() if hasattr(raw, "toarray") else raw
        found = np.array(raw, dtype=np.float64)
        if found.shape == (x.size,) and self.size == 1:
            found = found[None]
        if self.size == 1 and found.size == 1 == x.size:
            found = found.reshape(1, 1)
        if found.shape != (self.size, x.size):
            raise self._error(
                f"Jacobian has shape {found.shape}, expected {(self.size, x.size)}: one row for "
                "each component, one column for each variable",
                x,
            )
        if not np.isfinite(found).all():
            raise self._error("Jacobian has an entry that is not finite", x)
        return found

    def _ask(self, question: Callable[[Vector], Any], x: Vector, what: str) -> Any:
        try:
            return question(x.copy())
        except GoldsteinError:
            raise
        except Exception as failure:
            self.failure = self._error(f"{what} raised {type(failure).__name__}: {failure}", x)
            raise self.failure from failure

    def _error(self, what: str, x: Vector) -> OracleError:
        shown = np.array2string(x, threshold=8, edgeitems=3, precision=6)
        return OracleError(f"{self.name}: {what} (at x = {shown}).", x.copy(), 0)


@dataclass(eq=False)
class KeptGroup(Group):
    """A constraint whose answers are kept in a journal, under its number."""

    journal: Journal | None = None
    number: int = 0

    def values(self, x: Vector) -> Vector:
        assert self.journal is not None
        what = f"values of constraint {self.number}"
        return self.journal.asked(what, x, super().values, self._can_be_values)

    def _can_be_values(self, stored: Vector | None) -> bool:
        promised = self.size or (0 if stored is None else stored.size)
        return stored is not None and of_size(promised)(stored)

    def rows(self, x: Vector) -> Matrix:
        assert self.journal is not None
        what = f"Jacobian of constraint {self.number}"
        fits = of_size(self.size * x.size)
        return self.journal.asked(what, x, super().rows, fits).reshape(self.size, x.size)


class System:
    """All constraints together, each evaluated once per point.

    Attributes
    ----------
    size : int
        Components m of all constraints.
    lower, upper : ndarray, shape (m,)
    equal, linear : ndarray of bool, shape (m,)
    """

    def __init__(
        self, groups: Sequence[Group], x: Vector, stencil: Stencil | None = None, workers: Map = map
    ) -> None:
        self.groups = tuple(groups)
        self._stencil, self._workers = stencil, workers
        for group in self.groups:
            if group.jac is None and stencil is None:
                raise InputTypeError(
                    f"{group.name} has no gradient. Pass jac=the function that returns its "
                    "Jacobian, shape (components, variables), or jac=True if fun returns both; "
                    "methods 'auto' and 'values' take differences of its values, and what they "
                    "claim is then statistical."
                )
        lower, upper, linear = [], [], []
        for group in self.groups:
            group.size = _stated_size(group)
            group.size = group.values(x).size
            low, high = _limits(group)
            lower.append(low)
            upper.append(high)
            linear.append(np.full(group.size, group.linear))
        none = np.zeros(0)
        self.lower: Vector = np.concatenate([none, *lower])
        self.upper: Vector = np.concatenate([none, *upper])
        self.linear: NDArray[np.bool_] = np.concatenate([none.astype(bool), *linear])
        self.equal: NDArray[np.bool_] = self.lower == self.upper
        self.size = self.lower.size
        #: Points at which values and Jacobians were asked for.
        self.nfev = self.njev = 0
        self._known: dict[bytes, Vector] = {}
        self._rows_at: tuple[bytes, Matrix] = (b"", none[None])

    def name(self, i: int) -> str:
        """How messages call component i."""
        for group in self.groups:
            if i < group.size:
                return group.name if group.size == 1 else f"{group.name}, component {i}"
            i -= group.size
        raise IndexError(i)

    def values(self, x: Vector) -> Vector:
        key = x.tobytes()
        found = self._known.get(key)
        if found is None:
            self.nfev += 1
            found = self._known[key] = Values(self.groups)(x)
            if len(self._known) > max(AT_LEAST, REMEMBERED // (self.size + x.size)):
                del self._known[next(iter(self._known))]
        return found

    def rows(self, x: Vector) -> Matrix:
        """Return the Jacobian, shape (m, d)."""
        key = x.tobytes()
        if self._rows_at[0] != key:
            self.njev += 1
            differenced = self._differenced(x)
            parts = [
                next(differenced) if group.jac is None else group.rows(x) for group in self.groups
            ]
            self._rows_at = key, np.concatenate([np.zeros((0, x.size)), *parts])
        return self._rows_at[1]

    def many_values(self, points: Matrix, which: Sequence[Group] | None = None) -> Matrix:
        """Return the values of all constraints, or of some, at many points: one row for each."""
        asked = Values(self.groups if which is None else which)
        keys = [y.tobytes() for y in points]
        found = {key: self._known.get(key) if which is None else None for key in keys}
        fresh = {key: y for key, y in zip(keys, points) if found[key] is None}
        self.nfev += len(fresh)
        answers = self._workers(Attempt(asked), list(fresh.values()))
        for key, answer in zip(fresh, answers):
            if isinstance(answer, Exception):
                raise answer
            found[key] = answer
        return np.array([found[key] for key in keys]).reshape(len(points), -1)

    def _differenced(self, x: Vector) -> Iterator[Matrix]:
        """Give the Jacobians, from differences, of the constraints of which there are values."""
        blind = [group for group in self.groups if group.jac is None]
        if not blind:
            return
        assert self._stencil is not None
        place, ways = self._stencil.at(x)
        ahead, behind = place + ways, place - ways
        if self._stencil.central:
            both = self.many_values(np.vstack([ahead, behind]), blind)
            rises, ways = both[: len(ways)] - both[len(ways) :], ahead - behind
        else:
            sizes = np.concatenate([np.full(g.size, g.jac is None) for g in self.groups])
            here = self.values(place)[sizes]
            rises, ways = self.many_values(ahead, blind) - here, ahead - place
        slopes = slopes_along(ways, rises)
        yield from np.split(slopes, np.cumsum([group.size for group in blind])[:-1])

    def excess(self, values: Vector) -> Vector:
        """Return by how much each component is violated: positive above ub, negative below lb."""
        return excess(self, values)

    def violation(self, x: Vector) -> float:
        """Return the largest violation at x; 0 where all constraints hold."""
        return float(np.abs(self.excess(self.values(x))).max(initial=0.0))


class Values:
    """The values of several constraints at a point, as one question for a worker."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups

    def __call__(self, x: Vector) -> Vector:
        return np.concatenate([np.zeros(0), *(group.values(x) for group in self.groups)])


def as_system(
    constraints: Any,
    x: Vector,
    journal: Journal | None = None,
    stencil: Stencil | None = None,
    workers: Map = map,
) -> System:
    """Read constraints as SciPy takes them; they are asked once, at x, for their sizes.

    Their answers are kept in the journal, if there is one; matrices answer at once. With a stencil
    there may be constraints without a gradient.
    """
    if isinstance(constraints, System):
        return constraints
    groups = _groups(constraints, x.size)
    if journal is not None:
        groups = [
            group if group.linear else KeptGroup(**vars(group), journal=journal, number=k)
            for k, group in enumerate(groups)
        ]
    return System(groups, x, stencil, workers)


def lacks_gradient(constraints: Any) -> bool:
    """Whether there is a constraint of which only values are given."""
    if isinstance(constraints, System) or not given(constraints):
        return False
    # The number of variables matters for matrices only, and these have gradients.
    several = constraints if isinstance(constraints, list | tuple) else [constraints]
    return any(
        _group(one, f"constraints[{k}]", 0).jac is None
        for k, one in enumerate(several)
        if not hasattr(one, "A")
    )


def system_identity(constraints: Any, dim: int) -> list[Any]:
    """Describe constraints, without asking them, for a checkpoint."""
    return [[group.name, _digest_of_numbers(group)] for group in _groups(constraints, dim)]


def _digest_of_numbers(group: Group) -> str:
    limits = [np.asarray(side, dtype=object).tolist() for side in (group.lower, group.upper)]
    matrix = np.array(group.parts).tobytes() if group.linear else b""
    return hashlib.blake2b(repr(limits).encode() + matrix, digest_size=8).hexdigest()


def _groups(constraints: Any, dim: int) -> list[Group]:
    given = constraints if isinstance(constraints, list | tuple) else [constraints]
    return [_group(one, f"constraints[{k}]", dim) for k, one in enumerate(given)]


def given(constraints: Any) -> bool:
    """Whether there are any: None and an empty list mean none."""
    return constraints is not None and not (
        isinstance(constraints, list | tuple) and not constraints
    )


def _group(one: Any, name: str, dim: int) -> Group:
    if isinstance(one, dict):
        return _from_dict(one, name)
    if hasattr(one, "A") and hasattr(one, "lb"):
        return _linear(one, name, dim)
    if hasattr(one, "fun") and hasattr(one, "lb"):
        called = getattr(one.fun, "__name__", "")
        label = f"{name} ({called})" if called and called != "<lambda>" else name
        fun, jac = _pair(one.fun, getattr(one, "jac", None), (), label)
        parts = one.parts if isinstance(one, Comparison) else _known(one.fun)
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
    args = args if isinstance(args, tuple | list) else (args,)
    fun, jac = _pair(one["fun"], one.get("jac"), tuple(args), name)
    upper = np.inf if one["type"] == "ineq" else 0.0
    return Group(name, fun, jac, 0.0, upper, parts=_known(one["fun"]))


def _known(fun: Any) -> tuple[Oracle | Vector, ...]:
    """A function whose kinks are known is a part; of a black box there are none."""
    return (fun,) if isinstance(fun, Oracle) and hasattr(fun, "kink_form") else ()


def _linear(one: Any, name: str, dim: int) -> Group:
    label = f"{name}: A"
    dense = not hasattr(one.A, "toarray")
    rows = exact_floats(one.A, label) if dense else exact_sparse(one.A, label).toarray()
    matrix = np.array(rows, ndmin=2)
    if matrix.ndim != 2 or matrix.shape[1] != dim:
        raise InputError(
            f"{name}: the matrix A has shape {matrix.shape}; expected {dim} columns, one for each "
            "variable."
        )
    matrix.setflags(write=False)
    return Group(
        name, lambda x: matrix @ x, lambda x: matrix, one.lb, one.ub, linear=True,
        parts=tuple(matrix),
    )  # fmt: skip


def _pair(
    fun: Any, jac: Any, args: tuple[Any, ...], name: str
) -> tuple[Callable[[Vector], Any], Callable[[Vector], Any] | None]:
    """Return value and Jacobian of a constraint as functions of x alone; None for no Jacobian."""
    if isinstance(fun, Oracle):
        return fun.value, fun.gradient
    if not callable(fun):
        raise InputTypeError(f"{name}: fun must be callable, got {type(fun).__name__}.")
    if jac is True:
        return lambda x: fun(x, *args)[0], lambda x: fun(x, *args)[1]
    if callable(jac):
        return lambda x: fun(x, *args), lambda x: jac(x, *args)
    if jac not in (None, False, *DIFFERENCES, "cs"):
        raise InputTypeError(
            f"{name}: jac is {jac!r}, expected a function that returns the Jacobian, True if fun "
            "returns both, or '2-point' for differences of values."
        )
    return lambda x: fun(x, *args), None


def _stated_size(group: Group) -> int:
    """The number of components that the limits promise; 0 where they are single numbers."""
    return max((np.size(side) for side in (group.lower, group.upper) if np.ndim(side)), default=0)


def _limits(group: Group) -> tuple[Vector, Vector]:
    sides = [
        exact_floats(side, f"{group.name}: {name}", finite=False)
        for name, side in (("lb", group.lower), ("ub", group.upper))
    ]
    try:
        low, high = (np.broadcast_to(side, (group.size,)).copy() for side in sides)
    except ValueError as failure:
        raise InputError(
            f"{group.name}: lb and ub must be numbers, or vectors with one entry for each of its "
            f"{group.size} components: {failure}."
        ) from failure
    if np.isnan(low).any() or np.isnan(high).any():
        raise InputError(f"{group.name}: lb or ub is nan; write an infinity for no limit.")
    bad = np.flatnonzero((low > high) | (low == np.inf) | (high == -np.inf))
    if bad.size:
        k = int(bad[0])
        raise InputError(
            f"{group.name}: component {k} has lb = {low[k]:g} and ub = {high[k]:g}, which no value "
            "satisfies; exchange or mend them."
        )
    return low, high
