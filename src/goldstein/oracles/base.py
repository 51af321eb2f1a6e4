"""The oracle contract: two separate questions, `value` and `gradient`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import KinkError


class Oracle(ABC):
    """A function that answers `value(x)` everywhere and `gradient(y)` almost everywhere.

    `value` is total. `gradient` returns the gradient at a point of differentiability, and raises
    `KinkError` elsewhere *if the function is able to know* (`knows_kinks`). A black box cannot
    know; it is then trusted, which is why its certificates are labelled `conditional`.
    """

    #: True when `gradient` raises `KinkError` at every point of non-differentiability.
    knows_kinks: bool = False

    #: True of an Expression: its formula is known, so that what is proved of it is exact.
    is_written: bool = False

    #: Number of variables, or None when any length is accepted.
    dim: int | None = None

    #: False when `value` cannot be asked.
    has_value: bool = True

    #: False when `gradient` cannot be asked, because only noisy samples of it exist.
    has_gradient: bool = True

    #: What messages and certificate files call it; its class, if nothing.
    _name: str = ""

    def __repr__(self) -> str:
        size = "any number of" if self.dim is None else self.dim
        return f"<{type(self).__name__} {self.name}, {size} variables>"

    @abstractmethod
    def value(self, x: Vector) -> float:
        """Return f(x)."""

    @abstractmethod
    def gradient(self, y: Vector) -> Vector:
        """Return the gradient of f at y, or raise `KinkError`."""

    def known_value(self, x: Vector) -> float | None:
        """Return f(x) where it costs nothing because it came with the gradient there."""
        return None

    def gradients_at(self, points: Matrix) -> Iterator[Vector | None]:
        """Yield the gradients at many points, in their order, and None for a kink."""
        for y in points:
            try:
                answer = self.gradient(y)
            except KinkError:
                yield None
            else:
                yield answer

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        """Return a noisy gradient at x, its mean over `rng` the gradient; here without noise."""
        return self.gradient(x)

    @property
    def plain(self) -> Oracle:
        """The function itself, without what counts, guards or journals its answers."""
        return self

    @property
    def name(self) -> str:
        """A short name for messages and certificate files."""
        return self._name or type(self).__name__


def name_of(fun: Any) -> str:
    """Return the name of an oracle, or of what users write in its place."""
    return fun.name if isinstance(fun, Oracle) else getattr(fun, "__name__", type(fun).__name__)


class Derived(Oracle):
    """A function that is made of another one, and goes by its name."""

    def __init__(self, inner: Oracle) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name


class Wrapper(Derived):
    """An oracle that answers for another one, whose description it has."""

    def __init__(self, inner: Oracle) -> None:
        super().__init__(inner)
        for trait in ("knows_kinks", "dim", "has_value", "has_gradient"):
            setattr(self, trait, getattr(inner, trait))

    @property
    def plain(self) -> Oracle:
        return self.inner.plain
