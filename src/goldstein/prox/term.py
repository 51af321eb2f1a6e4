"""What a search and a certificate need to know of a convex term h."""

from __future__ import annotations

import importlib
import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import exact_floats
from goldstein.errors import InputError


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

    def pull(self, g: Vector, u: Vector) -> Vector:
        """Return the gradient in the coordinates of a function with gradient g at the point."""
        found: Vector = g[self.free]
        return found

    def value(self, u: Vector) -> float:
        """h at the point."""
        return self.term.value(self.point(u))

    def slope(self, u: Vector) -> Vector:
        """The gradient of `value`."""
        return self.pull(self.term.slope(self.point(u)), u)


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
    where = "goldstein.prox.separable" if record["name"] == "l1_box" else "goldstein.prox"
    make = getattr(importlib.import_module(where), record["name"])
    try:
        term: Term = make(**parameters)
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


def same_size(term: str, name: str, given: int, size: int) -> None:
    """Refuse a vector of parameters that does not fit the point; one number fits every point."""
    if given not in (1, size):
        raise InputError(f"{term}: {name} has {given} entries, but the point has {size}.")


def _short(value: Any) -> str:
    """Show a parameter; of many numbers the range, so that none is hidden behind the others."""
    text = repr(value)
    if len(text) <= 40:
        return text
    text = text[:37] + "..."
    if isinstance(value, list) and all(isinstance(part, int | float) for part in value):
        text += f" {len(value)} numbers from {min(value)!r} to {max(value)!r}"
    return text
