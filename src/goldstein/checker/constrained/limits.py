"""Constraints lb <= c(x) <= ub as the user gave them, all components numbered in their order.

Bounds on the variables: read as SciPy takes them, compared exactly, never left.

What multipliers have to satisfy: signs, activity, and constraints that say something about f.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.checker.errors import GoldsteinError, InputError, InputTypeError, OracleError
from goldstein.checker.function import Layout, flattened, is_vector, put_together, size_of
from goldstein.checker.rationals import exact_floats, exact_sparse
from goldstein.checker.verification import Verification


@dataclass(frozen=True, eq=False)
class Box:
    """lower <= x <= upper, either side possibly infinite.

    Examples
    --------
    >>> box = Box(np.array([0.0, -np.inf]), np.array([1.0, np.inf]))
    >>> box.clip(np.array([2.0, 5.0])), box.reflect(np.array([1.25, 5.0]))
    (array([1., 5.]), array([0.75, 5.  ]))
    """

    lower: Vector
    upper: Vector

    @cached_property
    def free(self) -> bool:
        """Is there no bound? Then points stay as they are, at no cost."""
        return bool((self.lower == -np.inf).all() and (self.upper == np.inf).all())

    @property
    def fixed(self) -> Mask:
        """Coordinates that cannot move."""
        return self.lower == self.upper

    def contains(self, points: NDArray[Any]) -> bool:
        """Are all points inside? Rationals are compared exactly."""
        return bool(((points >= self.lower) & (points <= self.upper)).all())

    def clip(self, point: Vector, margin: float | Vector = 0.0) -> Vector:
        """Return the nearest point of the box, or of a box with less room on all sides."""
        if self.free:
            return np.array(point)
        return np.minimum(np.maximum(point, self.lower + margin), self.upper - margin)

    def reflect(self, point: Vector) -> Vector:
        """Reflect a point at the bounds it has crossed.

        Unlike a clipped point it does not stick to a face, where functions like to have kinks; and
        it is no further from any point of the box than before.
        """
        crossed = self.clip(point)
        if self.free:
            return crossed
        return self.clip(np.where(crossed == point, point, 2.0 * crossed - point))

    def normal_fits(self, normal: Vector, at: Any) -> tuple[bool, str]:
        """Is a vector normal to the bounds at a point, given in floats or rationals?"""
        for k, (n, q) in enumerate(zip(normal.tolist(), at)):
            if (n < 0 and q != self.lower[k]) or (n > 0 and q != self.upper[k]):
                return False, f"entry {k} is {n:g}, but the point is not on that bound"
        return True, "normal to the bounds"

    def normal_signs(self, x: Vector) -> tuple[Mask, Mask]:
        """Return where the normal cone at x allows negative and where positive entries."""
        return x == self.lower, x == self.upper


def as_box(bounds: Any, dim: int) -> Box:
    """Read bounds as SciPy takes them: `Bounds`, or one pair (low, high) per variable."""
    if isinstance(bounds, Box):
        sides: Any = bounds.lower, bounds.upper
        if bounds.lower.shape != (dim,):
            raise InputError(f"bounds are for {bounds.lower.size} variables, the point has {dim}.")
    elif bounds is None:
        return Box(*np.broadcast_to([[-np.inf], [np.inf]], (2, dim)))
    elif hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        sides = bounds.lb, bounds.ub
    else:
        sides = _from_pairs(bounds, dim)
    return Box(*read_sides(sides[0], sides[1], dim, "the bounds", "variable"))


def read_sides(lower: Any, upper: Any, size: int, name: str, entry: str) -> tuple[Vector, Vector]:
    """Read lower and upper limits of so many entries, exactly: one for all, or one for each."""
    sides = []
    for side, given in (("lb", lower), ("ub", upper)):
        values = exact_floats(given, f"{name}: {side}", finite=False)
        if values.size not in (1, size):
            raise InputError(
                f"{name}: {side} has shape {values.shape}; give one number, or one for each of the "
                f"{size} {entry}s."
            )
        sides.append(np.array(np.broadcast_to(values.ravel(), size)))
    low, high = sides
    bad = np.flatnonzero(~((low <= high) & (low < np.inf) & (high > -np.inf)))
    if bad.size:
        k = int(bad[0])
        raise InputError(
            f"{name}: {entry} {k} has lb = {low[k]:g} and ub = {high[k]:g}, which no number "
            "satisfies; exchange or mend them (None or an infinity is no limit)."
        )
    return low, high


def _from_pairs(bounds: Any, dim: int) -> tuple[list[Any], list[Any]]:
    try:
        pairs = [(low, high) for low, high in bounds]
    except (TypeError, ValueError):
        raise InputTypeError(
            "bounds must be a scipy.optimize.Bounds, or a list with one pair (low, high) for each "
            f"variable; got {bounds!r}."
        ) from None
    if len(pairs) != dim:
        raise InputError(f"bounds hold {len(pairs)} pairs, but the point has {dim} variables.")
    lower = [-np.inf if low is None else low for low, _ in pairs]
    return lower, [np.inf if high is None else high for _, high in pairs]


def best_normal(total: Vector, low: Mask, high: Mask) -> Vector:
    """Return the normal vector that cancels most of `total`.

    Its entries may be negative where `low` is true and positive where `high` is.
    """
    found: Vector = np.where(low, np.minimum(-total, 0.0), 0.0)
    return found + np.where(high, np.maximum(-total, 0.0), 0.0) + 0.0


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


#: Constraints whose gradients come this close to cancelling each other (relative to their lengths)
#: say nothing about f.
DEGENERATE = 1e-3


def check(found: Verification, cert: Any, system: Limits, box: Any) -> None:
    """Signs; and, of multipliers that fit, whether their constraints are reached."""
    if check_signs(found, cert, system, box):
        _check_activity(found, cert, system)


def check_signs(found: Verification, cert: Any, system: Limits, box: Any) -> bool:
    """Multipliers fit the constraints: as many, of the sign of their limits; so does the normal."""
    stated, size, index = cert.multipliers.size, system.size, cert.constraint_index
    advice = "" if stated == size else "; pass the constraints= that minimize was given"
    fits = stated == size and bool(((index >= 0) & (index < size)).all())
    if found.add("constraints", fits, f"{stated} multipliers for {size} components{advice}"):
        found.add("multipliers", *_signs_fit(cert, system))
        found.add("normal", *box.normal_fits(cert.normal, getattr(cert, "exact_pivot", cert.x)))
    return found.ok


def _signs_fit(cert: Any, system: Limits) -> tuple[bool, str]:
    for i in range(system.size):
        weights = cert.constraint_weights[cert.constraint_index == i]
        if (weights > 0).any() and (weights < 0).any():
            return False, f"{system.name(i)}: weights of both signs cancel each other"
        total = math.fsum(weights.tolist())
        if not abs(total - cert.multipliers[i]) <= 1e-9 * abs(total):
            return False, f"{system.name(i)}: {cert.multipliers[i]:g} is stated, {total:g} is used"
        if total and not math.isfinite(system.upper[i] if total > 0 else system.lower[i]):
            return False, f"{system.name(i)}: {total:g} has the wrong sign, there is no such limit"
    return True, "signs fit the limits"


def _check_activity(found: Verification, cert: Any, system: Limits) -> None:
    """Feasible at x, and every constraint with a multiplier reached in the ball."""
    values = system.values(cert.x)
    excess = np.abs(system.excess(values))
    violation = float(excess.max(initial=0.0))
    # Another machine rounds the user's own code differently.
    feasible = (excess <= cert.feasibility + 2.0**-48 * np.abs(values)).all()
    words = f"violation {violation:.3g} at x, claimed {cert.feasibility:.3g}"
    found.add("feasibility", bool(feasible), words)
    used = np.flatnonzero(cert.multipliers).tolist()
    missing = [i for i in used if not _reached(cert, system, i)]
    words = "every constraint with a multiplier is reached in the ball"
    if missing:
        words = f"a multiplier on {system.name(missing[0])}, which no stored point reaches"
    found.add("activity", not missing, words)


def _reached(cert: Any, system: Limits, i: int) -> bool:
    """Do stored points reach the limit that the multiplier of component i belongs to?

    An equality holds at x, or has values on both sides of its limit.
    """
    of_f = cert.points[cert.weights > 0]  # others may be anywhere
    points = (cert.x, *cert.constraint_points[cert.constraint_index == i], *of_f)
    values = np.array([system.values(y)[i] for y in points])
    above, below = bool((values >= system.upper[i]).any()), bool((values <= system.lower[i]).any())
    if system.equal[i]:
        return bool(abs(values[0] - system.upper[i]) <= system.tolerances()[i]) or (above and below)
    return above if cert.multipliers[i] > 0 else below


def readings(cert: Any, system: Limits, linear: Mask) -> list[Mask]:
    """Which equalities form a line: linear ones; and, where curved ones are in use, these besides.

    The smaller qualification counts: the sign of a multiplier may be that of a rounding error.
    """
    curved = (cert.multipliers != 0) & system.equal & ~linear
    return [linear, linear | curved] if curved.any() else [linear]


def meant(cert: Any, system: Limits, linear: Mask) -> tuple[list[int], list[int]]:
    """Components that a qualification is about: those with a multiplier, but linear equalities.

    The gradients of these form a line by nature. The others have to say something along them, and
    along equalities without a multiplier: these are returned besides.
    """
    used = cert.multipliers != 0
    some, across = used & ~(linear & system.equal), system.equal & (linear | ~used)
    return np.flatnonzero(some).tolist(), np.flatnonzero(across).tolist()
