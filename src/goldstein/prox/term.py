"""What a search and a certificate need to know of a convex term h.

Terms of single entries: the l1 norm (exact zeros), a box, and both together.

The indicator function of a simplex: shares that sum to a total.

MCP and SCAD: l1 terms from which a smooth function is taken away.

They are not convex, so they are no `plus=` of their own. What the theory carries is the split

    f + h = (f - g) + weight |x|_1,     g = weight |x|_1 - h, convex, with a Lipschitz gradient:

`h.split(f, grad)` returns f - g and its gradient, `h.term` the l1 term, and a certificate about the
two is one about f + h, with exact zeros.

The group lasso: whole groups of entries that are 0.

The nuclear norm: matrices of low rank.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.fenchel import singular_upper
from goldstein.checker.rationals import exact_floats
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles.base import Derived, Oracle


class Chart:
    """Coordinates of the points that share a structure: those with the same zeros, say.

    This one is for terms whose structure is a set of variables that are not 0; h is smooth in them
    off a null set.
    """

    #: Bounds of the coordinates, as `minimize` takes them, where there are any.
    bounds: list[tuple[float, float]] | None = None

    def __init__(self, term: Term, x: Vector, free: Any) -> None:
        self.term, self.base, self.free = term, np.where(free, 0.0, x), np.flatnonzero(free)
        self.start: Vector = x[self.free].copy()

    def point(self, u: Vector) -> Vector:
        """Return the point with these coordinates."""
        x = self.base.copy()
        x[self.free] = u
        return x

    def vjp(self, g: Vector, u: Vector) -> Vector:
        """Return the gradient in the coordinates of a function with gradient g at the point."""
        found: Vector = g[self.free]
        return found

    def value(self, u: Vector) -> float:
        """h at the point."""
        return self.term.value(self.point(u))

    def slope(self, u: Vector) -> Vector:
        """The gradient of `value`."""
        return self.vjp(self.term.slope(self.point(u)), u)


class OnChart(Derived):
    """f + h in the coordinates of a structure."""

    def __init__(self, f: Oracle, chart: Chart) -> None:
        super().__init__(f)
        self.chart = chart

    def value(self, x: Vector) -> float:
        return self.inner.value(self.chart.point(x)) + self.chart.value(x)

    def gradient(self, y: Vector) -> Vector:
        return self.chart.vjp(self.inner.gradient(self.chart.point(y)), y) + self.chart.slope(y)


class Term(ABC):
    """A convex function h with a simple proximal map, exact in certificates.

    Attributes
    ----------
    name : str
        As in `gs.prox`.
    """

    name: str

    @abstractmethod
    def value(self, x: Vector) -> float:
        """h(x), infinity outside its domain."""

    @abstractmethod
    def prox(self, x: Vector, step: float) -> Vector:
        """Return the z that minimises h(z) + |z - x|^2 / (2 step)."""

    @abstractmethod
    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        """Return the subgradient of h at x that is nearest to a wish."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return the parameters as JSON has them."""

    @abstractmethod
    def check(self, size: int) -> None:
        """Refuse points of a size that the term is not about."""

    def slope(self, x: Vector) -> Vector:
        """Return the gradient of h where it has one."""
        return self.subgradient(x, np.zeros_like(x))

    def snap(self, x: Vector, width: float) -> Vector:
        """Return x with what is smaller than `width` removed: zeros, groups, singular values."""
        return x

    def chart(self, x: Vector) -> Chart | None:
        """Return coordinates of the points structured like x; None for an indicator function."""
        return None

    def everywhere(self, x: Vector) -> Chart:
        """Return coordinates of all points in the domain of h."""
        return Chart(self, x, np.ones(x.size, dtype=bool))

    def limits(self, size: int) -> dict[str, Any] | None:
        """Return the domain of an indicator function as `minimize` takes bounds and constraints."""
        return None

    def structure(self, x: Vector) -> str:
        """Say in a few words what is special about x."""
        return ""

    def bounded(self, lower: Vector, upper: Vector) -> Term:
        """Return h plus the indicator function of lower <= x <= upper."""
        raise InputError(
            f"bounds go together with plus=gs.prox.l1(...) and gs.prox.box(...), whose proximal "
            f"maps stay exact; {self.name} has none with bounds. Write {self.name} into fun, or "
            "the bounds."
        )

    def added_to(self, f: Any) -> tuple[Any, list[tuple[float, float]] | None]:
        """Return f + h as an Expression, and the bounds that are part of h."""
        raise InputError(
            f"near stationarity of f + h is proved for gs.prox.l1(...) and gs.prox.box(...), which "
            f"are written as expressions; write {self.name} into fun, or ask for 'goldstein'."
        )

    def to_record(self) -> dict[str, Any]:
        """Return name and parameters as JSON has them."""
        return {"name": self.name, **self.record()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self.to_record() == other.to_record()

    def __hash__(self) -> int:
        return hash(repr(self.to_record()))

    def __repr__(self) -> str:
        given = ", ".join(f"{key}={_short(value)}" for key, value in self.record().items())
        return f"{self.name}({given})"


def term_from_record(record: Any) -> Term:
    """Return the term that `to_record` wrote down; refuse what it cannot have written.

    Examples
    --------
    >>> from goldstein import prox
    >>> term_from_record(prox.l1(0.5).to_record())
    l1(weight=0.5)
    """
    names = ("l1", "l1_box", "group_l2", "box", "simplex", "nuclear")
    if not isinstance(record, dict) or record.get("name") not in names:
        raise InputError(f"a term must be one of {', '.join(names)}; got {str(record)[:80]}.")
    parameters = {key: value for key, value in record.items() if key != "name"}
    try:
        term: Term = globals()[record["name"]](**parameters)
    except TypeError as failure:
        raise InputError(f"a term {record['name']} with wrong parameters: {failure}.") from failure
    return term


def numbers(name: str, values: ArrayLike | float, *, least: float = -math.inf) -> Vector:
    """Return numbers as a read-only vector; one number is a vector of one."""
    array = np.array(exact_floats(values, name, finite=False), ndmin=1)
    if array.ndim != 1 or array.size == 0 or np.isnan(array).any() or (array < least).any():
        at_least = "" if least == -math.inf else f", at least {least:g}"
        raise InputError(f"{name} must be a number or a vector{at_least}; got {str(values)[:60]}.")
    array.setflags(write=False)
    return array


def weight_of(name: str, values: ArrayLike | float) -> Vector:
    """Return weights of a penalty: finite, not negative."""
    weights = numbers(name, values, least=0.0)
    if np.isinf(weights).any():
        raise InputError(f"{name} must be finite.")
    return weights


def inward(size: int) -> float:
    """Return by what factor vectors are shortened, so that rounding does not make them too long."""
    return 1.0 - 2.0 * (size + 16) * 2.0**-53


def plain(array: Vector) -> Any:
    """Return a number for a vector of one, a list otherwise."""
    return float(array[0]) if array.size == 1 else array.tolist()


def _short(value: Any) -> str:
    """Show a parameter; of many numbers the range, so that none is hidden behind the others."""
    text = repr(value)
    if len(text) <= 40:
        return text
    text = text[:37] + "..."
    if isinstance(value, list) and all(isinstance(part, int | float) for part in value):
        text += f" {len(value)} numbers from {min(value)!r} to {max(value)!r}"
    return text


class Separable(Term):
    """h(x) = sum_i weight_i |x_i| where lower <= x <= upper, infinity elsewhere.

    `l1` has no bounds, `box` no weights, `l1_box` both.
    """

    def __init__(
        self, name: str, weight: Any = 0.0, lower: Any = -math.inf, upper: Any = math.inf
    ) -> None:
        self.name, self.weight = name, weight_of("weight", weight)
        self.lower, self.upper = numbers("lower", lower), numbers("upper", upper)
        low, high = self.lower, self.upper
        if low.size > 1 and high.size > 1 and low.size != high.size:
            raise InputError(f"box: {low.size} lower and {high.size} upper bounds.")
        if (low > high).any() or (low == math.inf).any() or (high == -math.inf).any():
            raise InputError("box: a lower bound is above the upper one; there is no such point.")

    def value(self, x: Vector) -> float:
        inside = ((x >= self.lower) & (x <= self.upper)).all()
        return math.fsum((self.weight * np.abs(x)).tolist()) if inside else math.inf

    def prox(self, x: Vector, step: float) -> Vector:
        # In one variable the minimiser of a convex function in an interval is the clipped one.
        shrunk = np.sign(x) * np.maximum(np.abs(x) - step * self.weight, 0.0)
        return np.clip(shrunk, self.lower, self.upper) + 0.0

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        beside = self.weight * np.sign(x)
        left = np.where(x == self.lower, -np.inf, np.where(x == 0.0, -self.weight, beside))
        right = np.where(x == self.upper, np.inf, np.where(x == 0.0, self.weight, beside))
        return np.clip(wish, left, right) + 0.0

    def slope(self, x: Vector) -> Vector:
        # The bounds have none: the search minds them itself.
        return self.weight * np.sign(x) + 0.0

    def record(self) -> dict[str, Any]:
        names = {"l1": ["weight"], "box": ["lower", "upper"]}
        return {n: plain(vars(self)[n]) for n in names.get(self.name, ["weight", *names["box"]])}

    def check(self, size: int) -> None:
        for name in self.record():
            given = vars(self)[name].size  # one number fits every point
            if given not in (1, size):
                raise InputError(
                    f"{self.name}: {name} has {given} entries, but the point has {size}."
                )

    def snap(self, x: Vector, width: float) -> Vector:
        inside = (self.lower <= 0.0) & (self.upper >= 0.0)
        return np.where(inside & (np.abs(x) <= width) & (self.weight > 0), 0.0, x)

    def chart(self, x: Vector) -> Chart | None:
        free = (x != 0.0) | (self.weight == 0)
        return None if self.name == "box" else self._between(Chart(self, x, free))

    def everywhere(self, x: Vector) -> Chart:
        return self._between(super().everywhere(x))

    def _between(self, chart: Chart) -> Chart:
        if self.name == "l1_box":
            bounds = self._bounds(chart.base.size)
            chart.bounds = [bounds[k] for k in chart.free]
        return chart

    def _bounds(self, size: int) -> list[tuple[float, float]]:
        lower, upper = (np.broadcast_to(side, size) for side in (self.lower, self.upper))
        return list(zip(lower.tolist(), upper.tolist()))

    def limits(self, size: int) -> dict[str, Any] | None:
        return {"bounds": self._bounds(size)} if self.name == "box" else None

    def structure(self, x: Vector) -> str:
        zeros = f"{int((x == 0.0).sum())} of {x.size} entries are 0"
        ends = f"{int(((x == self.lower) | (x == self.upper)).sum())} of {x.size} on their bounds"
        return {"l1": zeros, "box": ends}.get(self.name, f"{zeros}, {ends}")

    def bounded(self, lower: Vector, upper: Vector) -> Term:
        name = "box" if self.name == "box" else "l1_box"
        low, high = np.maximum(self.lower, lower), np.minimum(self.upper, upper)
        return Separable(name, self.weight, low, high)

    def added_to(self, f: Any) -> tuple[Any, list[tuple[float, float]] | None]:
        bounds = None if self.name == "l1" else self._bounds(f.dim)
        if self.name == "box":
            return f, bounds
        # Between bounds of one sign |x_i| has no kink; at a bound of 0 it would only be in the way.
        weight, lower, upper = (
            np.broadcast_to(side, f.dim) for side in (self.weight, self.lower, self.upper)
        )
        known = np.where(lower >= 0.0, 1.0, np.where(upper <= 0.0, -1.0, 0.0))
        whole = f if bounds is None else f + (weight * known) @ f.variable
        across = np.flatnonzero(known == 0.0)
        if across.size:
            whole = whole + weight[across] @ abs(f.variable[across])
        return whole, bounds


def l1(weight: ArrayLike | float) -> Term:
    """Return h(x) = sum_i weight_i |x_i|.

    Parameters
    ----------
    weight : float or array_like
        One number for all entries, or one for each; 0 where an entry is free.

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.l1(0.5).prox(np.array([2.0, -0.25]), 1.0)
    array([1.5, 0. ])
    """
    return Separable("l1", weight)


def box(lower: ArrayLike | float, upper: ArrayLike | float) -> Term:
    """Return the indicator function of lower <= x <= upper.

    f is asked within delta of the box. Where it must not be, use `bounds=` of `minimize`.

    Parameters
    ----------
    lower, upper : float or array_like
        Infinite where there is no bound.

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.box(0.0, 1.0).prox(np.array([2.0, -0.25, 0.5]), 1.0)
    array([1. , 0. , 0.5])
    """
    return Separable("box", 0.0, lower, upper)


def l1_box(weight: ArrayLike | float, lower: ArrayLike | float, upper: ArrayLike | float) -> Term:
    """Return h(x) = sum_i weight_i |x_i| where lower <= x <= upper, infinity elsewhere.

    Examples
    --------
    >>> l1_box(0.5, -1.0, 1.0).prox(np.array([2.0, -0.25, -0.75]), 1.0)
    array([ 1.  ,  0.  , -0.25])
    """
    return Separable("l1_box", weight, lower, upper)


#: Sums of shares are exact up to this part of the total.
ROUNDING = 2.0**-40


class Simplex(Term):
    """h(x) = 0 where x >= 0 and sum x = total, infinity elsewhere."""

    name = "simplex"

    def __init__(self, total: float = 1.0) -> None:
        self.total = weight_of("total", total)
        if self.total.size != 1 or self.total[0] == 0.0:
            raise InputError(f"simplex: total must be one positive number, got {total!r}.")

    def value(self, x: Vector) -> float:
        total = float(self.total[0])
        exact = abs(math.fsum([*x.tolist(), -total])) <= ROUNDING * total
        return 0.0 if exact and (x >= 0).all() else math.inf

    def prox(self, x: Vector, step: float) -> Vector:
        total = float(self.total[0])
        falling = np.sort(x)[::-1]
        levels = (np.cumsum(falling) - total) / np.arange(1, x.size + 1)
        last = np.flatnonzero(falling > levels).max(initial=0)
        z: Vector = np.maximum(x - levels[last], 0.0) + 0.0
        # What rounding left over goes to the largest entry.
        largest = int(z.argmax())
        z[largest] += total - math.fsum(z.tolist())
        return z

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        support = x > 0
        common = list(wish[support].tolist())
        # Entries that are 0 may have less than the others, not more.
        for other in sorted(wish[~support].tolist(), reverse=True):
            if other <= math.fsum(common) / max(len(common), 1):
                break
            common.append(other)
        level = math.fsum(common) / max(len(common), 1)
        return np.where(support, level, np.minimum(wish, level))

    def record(self) -> dict[str, Any]:
        return {"total": plain(self.total)}

    def check(self, size: int) -> None:
        pass

    def limits(self, size: int) -> dict[str, Any]:
        total = float(self.total[0])
        whole = {
            "type": "eq",
            "fun": lambda x: np.array([x.sum() - total]),
            "jac": lambda x: np.ones((1, x.size)),
        }
        return {"bounds": [(0.0, None)] * size, "constraints": [whole]}

    def structure(self, x: Vector) -> str:
        return f"{int((x == 0.0).sum())} of {x.size} shares are 0"


def simplex(total: float = 1.0) -> Term:
    """Return the indicator function of x >= 0, sum x = total.

    Parameters
    ----------
    total : float

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.simplex().prox(np.array([0.75, 0.75, -3.0]), 1.0)
    array([0.5, 0.5, 0. ])
    """
    return Simplex(total)


def thresholded(penalty: str, x: float, step: float, weight: float, gamma: float) -> float:
    """Return the minimiser of h(z) + (z - x)^2 / (2 step) in one variable."""
    size = abs(x)
    soft = max(size - step * weight, 0.0)
    if penalty == "mcp" and size <= gamma * weight:
        soft /= 1.0 - step / gamma
    elif penalty == "scad" and (1.0 + step) * weight < size <= gamma * weight:
        soft = ((gamma - 1.0) * size - step * gamma * weight) / (gamma - 1.0 - step)
    elif penalty != "l1" and size > gamma * weight:
        soft = size
    return math.copysign(soft, x) if soft else 0.0


@dataclass(frozen=True)
class WeaklyConvex:
    """h(x) = sum_i mcp(x_i) or scad(x_i): curvature at least `-rho`.

    Attributes
    ----------
    name : {"mcp", "scad"}
    weight : float
        The slope at 0.
    gamma : float
        h is constant beyond gamma weight.
    """

    name: str
    weight: float
    gamma: float

    def __post_init__(self) -> None:
        least = 1.0 if self.name == "mcp" else 2.0
        if not (0.0 < self.weight < math.inf and least < self.gamma < math.inf):
            raise InputError(
                f"{self.name} needs weight > 0 and a parameter > {least:g}, finite; got "
                f"weight = {self.weight!r} and {self.gamma!r}."
            )

    @property
    def rho(self) -> float:
        """How concave it is: h + rho/2 |x|^2 is convex."""
        return 1.0 / (self.gamma if self.name == "mcp" else self.gamma - 1.0)

    @property
    def term(self) -> Term:
        """The l1 term of the split."""
        return l1(self.weight)

    def value(self, x: Vector) -> float:
        """h(x)."""
        size = np.abs(np.asarray(x, dtype=np.float64))
        return float(self.weight * size.sum() - self._taken(size).sum())

    def prox(self, x: Vector, step: float) -> Vector:
        """Return the z that minimises h(z) + |z - x|^2 / (2 step), one where step < 1 / rho."""
        if not 0.0 < step * self.rho < 1.0:
            raise InputError(
                f"step must be between 0 and 1 / rho = {1.0 / self.rho:g}, where the minimiser is "
                f"one; got {step!r}."
            )
        found = [thresholded(self.name, float(v), step, self.weight, self.gamma) for v in x]
        return np.array(found)

    def split(
        self, f: Callable[[Vector], Any], grad: Callable[[Vector], Any]
    ) -> tuple[Callable[[Vector], float], Callable[[Vector], Vector]]:
        """Return f - g and its gradient, to be minimised with `plus=self.term`."""

        def lower(x: Vector) -> float:
            return float(f(x)) - float(self._taken(np.abs(x)).sum())

        def slope(x: Vector) -> Vector:
            return np.asarray(grad(x)) - np.sign(x) * self._rate(np.abs(x))

        return lower, slope

    def _taken(self, size: Vector) -> Vector:
        """g entry by entry, where h = weight |x| - g."""
        w, end = self.weight, self.gamma * self.weight
        begin = 0.0 if self.name == "mcp" else w
        inner = np.clip(size, begin, end) - begin
        return self.rho / 2.0 * inner**2 + w * np.maximum(size - end, 0.0)

    def _rate(self, size: Vector) -> Vector:
        """The derivative of g in |x|."""
        begin = 0.0 if self.name == "mcp" else self.weight
        return np.minimum(self.rho * np.maximum(size - begin, 0.0), self.weight)


def mcp(weight: float, gamma: float = 3.0) -> WeaklyConvex:
    """Return the minimax concave penalty weight |x| - x^2/(2 gamma), constant beyond gamma weight.

    Examples
    --------
    >>> h = mcp(1.0, 3.0)
    >>> h.value(np.array([1.0, 9.0])), h.prox(np.array([0.5, 2.0, 9.0]), 1.0)
    (2.333..., array([0. , 1.5, 9. ]))
    """
    return WeaklyConvex("mcp", float(weight), float(gamma))


def scad(weight: float, a: float = 3.7) -> WeaklyConvex:
    """Return the smoothly clipped absolute deviation (Fan and Li 2001), constant beyond a weight.

    Examples
    --------
    >>> h = scad(1.0, 3.0)
    >>> h.value(np.array([0.5, 9.0])), h.prox(np.array([1.5, 9.0]), 1.0)
    (2.5, array([0.5, 9. ]))
    """
    return WeaklyConvex("scad", float(weight), float(a))


class GroupL2(Term):
    """h(x) = sum_k weight_k |x_k| over groups x_k of entries."""

    name = "group_l2"

    def __init__(self, weight: ArrayLike | float, groups: Sequence[Sequence[int]]) -> None:
        self.groups = _index_sets(groups)
        self.weight = weight_of("weight", weight)
        if self.weight.size not in (1, len(self.groups)):
            raise InputError(
                f"group_l2: {self.weight.size} weights for {len(self.groups)} groups; give one "
                "for all, or one for each."
            )
        self.each: Vector = np.broadcast_to(self.weight, (len(self.groups),))
        self._penalised = np.concatenate(self.groups)

    def _lengths(self, x: Vector) -> Vector:
        return np.array([np.linalg.norm(x[group]) for group in self.groups])

    def value(self, x: Vector) -> float:
        return math.fsum((self.each * self._lengths(x)).tolist())

    def prox(self, x: Vector, step: float) -> Vector:
        z = x.copy()
        for group, weight, length in zip(self.groups, self.each, self._lengths(x)):
            z[group] *= max(0.0, 1.0 - step * weight / length) if length > 0 else 0.0
        return z + 0.0

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        v = np.zeros_like(x)
        for group, weight, length in zip(self.groups, self.each, self._lengths(x)):
            if length > 0:
                v[group] = x[group] / length * (weight * inward(len(group)))
            else:
                longest = float(np.linalg.norm(wish[group]))
                v[group] = wish[group] * min(1.0, weight * inward(len(group)) / (longest or 1.0))
        return v

    def record(self) -> dict[str, Any]:
        return {"weight": plain(self.weight), "groups": [g.tolist() for g in self.groups]}

    def check(self, size: int) -> None:
        largest = int(self._penalised.max())
        if largest >= size:
            raise InputError(f"group_l2: a group has entry {largest}, the point has {size}.")

    def snap(self, x: Vector, width: float) -> Vector:
        z = x.copy()
        for group, length in zip(self.groups, self._lengths(x)):
            if length <= width:
                z[group] = 0.0
        return z

    def chart(self, x: Vector) -> Chart:
        free = np.ones(x.size, dtype=bool)
        for group in self.groups:
            free[group] = x[group].any()
        return Chart(self, x, free)

    def structure(self, x: Vector) -> str:
        gone = sum(not x[group].any() for group in self.groups)
        return f"{gone} of {len(self.groups)} groups are 0"


def group_l2(weight: ArrayLike | float, groups: Sequence[Sequence[int]]) -> Term:
    """Return h(x) = sum_k weight_k |x_k|, the sum of the lengths of groups of entries.

    Parameters
    ----------
    weight : float or array_like
        One number for all groups, or one for each.
    groups : sequence of sequences of int
        The entries of each group. Groups do not overlap; entries in no group are free.

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.group_l2(1.0, [[0, 1], [2]]).prox(np.array([3.0, 4.0, 0.5]), 1.0)
    array([2.4, 3.2, 0. ])
    """
    return GroupL2(weight, groups)


def _index_sets(groups: Any) -> list[NDArray[np.intp]]:
    try:
        sets = [np.array(group, dtype=object).ravel() for group in groups]
        whole = all(isinstance(i, int | np.integer) for group in sets for i in group)
        found = [group.astype(np.intp) for group in sets] if whole else []
    except TypeError:
        found = []
    if not found or any(group.size == 0 for group in found):
        raise InputTypeError("groups must be lists of indices, none of them empty.")
    everything = np.concatenate(found)
    if (everything < 0).any() or np.unique(everything).size < everything.size:
        raise InputError("groups must not overlap, and their indices count from 0.")
    return found


#: Singular values below this part of the largest are rounding errors.
VANISHED = 1e-12


class _Factors(Chart):
    """Matrices of a rank as products A B'; h is (|A|^2 + |B|^2) / 2 for the best factors."""

    def __init__(self, term: Nuclear, U: Matrix, s: Vector, W: Matrix) -> None:
        self.weight, self.shape, self.rank = float(term.weight[0]), term.shape, s.size
        root = np.sqrt(s)
        self.start = np.concatenate([(U * root).ravel(), (W.T * root).ravel()])

    def _factors(self, u: Vector) -> tuple[Matrix, Matrix]:
        rows, columns = self.shape
        cut = rows * self.rank
        return u[:cut].reshape(rows, self.rank), u[cut:].reshape(columns, self.rank)

    def point(self, u: Vector) -> Vector:
        A, B = self._factors(u)
        return (A @ B.T).ravel()

    def vjp(self, g: Vector, u: Vector) -> Vector:
        A, B = self._factors(u)
        G = g.reshape(self.shape)
        return np.concatenate([(G @ B).ravel(), (G.T @ A).ravel()])

    def value(self, u: Vector) -> float:
        return 0.5 * self.weight * float(u @ u)

    def slope(self, u: Vector) -> Vector:
        return self.weight * u


class Nuclear(Term):
    """h(X) = weight times the sum of the singular values of X."""

    name = "nuclear"

    def __init__(self, weight: float, shape: tuple[int, int]) -> None:
        self.weight = weight_of("weight", weight)
        if self.weight.size != 1:
            raise InputError(f"nuclear: weight must be one number, got {weight!r}.")
        sizes = tuple(shape) if isinstance(shape, list | tuple) else ()
        whole = all(isinstance(n, int | np.integer) and n > 0 for n in sizes)
        if len(sizes) != 2 or not whole:
            raise InputError(f"nuclear: shape must be (rows, columns), got {shape!r}.")
        self.shape = (int(sizes[0]), int(sizes[1]))

    def _parts(self, x: Vector, width: float = 0.0) -> tuple[Matrix, Vector, Matrix]:
        """Return the singular values above rounding and `width`, with their vectors."""
        U, s, W = np.linalg.svd(x.reshape(self.shape), full_matrices=False)
        kept = s > max(VANISHED * float(s.max(initial=0.0)), width)
        return U[:, kept], s[kept], W[kept]

    def value(self, x: Vector) -> float:
        s = np.linalg.svd(x.reshape(self.shape), compute_uv=False)
        return float(self.weight[0]) * math.fsum(s.tolist())

    def prox(self, x: Vector, step: float) -> Vector:
        less = step * float(self.weight[0])
        U, s, W = self._parts(x, less)
        return ((U * (s - less)) @ W).ravel()

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        weight = float(self.weight[0])
        U, _, W = self._parts(x)
        rest = wish.reshape(self.shape)
        rest = rest - U @ (U.T @ rest)
        rest = rest - (rest @ W.T) @ W
        P, t, Q = np.linalg.svd(rest, full_matrices=False)
        whole = weight * (U @ W) + (P * np.minimum(t, weight)) @ Q
        while (longest := singular_upper(whole)[0]) > weight:  # rounding: a little shorter
            whole = whole * (weight / longest * (1.0 - 2.0**-48))
        return np.asarray(whole).ravel()

    def record(self) -> dict[str, Any]:
        return {"weight": plain(self.weight), "shape": list(self.shape)}

    def check(self, size: int) -> None:
        if size != self.shape[0] * self.shape[1]:
            raise InputError(f"nuclear: shape {self.shape} for a point of {size} entries.")

    def snap(self, x: Vector, width: float) -> Vector:
        U, s, W = self._parts(x, width)
        return ((U * s) @ W).ravel()

    def chart(self, x: Vector) -> Chart:
        return _Factors(self, *self._parts(x))

    def structure(self, x: Vector) -> str:
        return f"rank {self._parts(x)[1].size} of {min(self.shape)}"


def nuclear(weight: float, shape: tuple[int, int]) -> Term:
    """Return h(X) = weight times the sum of the singular values of X.

    Parameters
    ----------
    weight : float
    shape : (int, int)
        Of the matrix; x0 may be a matrix of this shape, or its entries row by row.

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.nuclear(1.0, (2, 2)).prox(np.array([3.0, 0.0, 0.0, 0.5]), 1.0)
    array([2., 0., 0., 0.])
    """
    return Nuclear(weight, shape)
