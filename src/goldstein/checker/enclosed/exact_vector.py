"""Rational vectors most of whose entries are float64 numbers, kept as such."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.float_dot import float_dot
from goldstein.checker.rationals import (
    common_denominator,
    exact_dot,
    nearest_float,
    to_fractions,
)  # fmt: skip

Places = NDArray[np.intp]

#: With fewer terms than this, Python's integers are faster.
_FEW_TERMS = 64


class ExactVector:
    """An exact vector: float64 numbers, and the few entries that are none.

    Attributes
    ----------
    floats : ndarray
        The vector, its other entries rounded to the nearest float64 number (infinite beyond).
    others : ndarray of int
        The places of those other entries, in order.

    Examples
    --------
    >>> y = ExactVector([Fraction(1, 2), Fraction(1, 3)])
    >>> y.floats[0], y.others
    (np.float64(0.5), array([1]))
    >>> y.dot(np.array([0, 1]), np.array([4.0, 3.0]))
    Fraction(3, 1)
    """

    floats: Vector
    others: Places

    def __init__(self, values: Sequence[Any] | NDArray[Any]) -> None:
        if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 1:
            self.floats = np.array(values)
            self.others = np.zeros(0, dtype=np.intp)
            self._rationals: list[Fraction] = []
            if not np.isfinite(values).all():
                to_fractions(values)  # says what is wrong
            return
        exact = to_fractions(values)
        self.floats = np.array([nearest_float(entry) for entry in exact], dtype=np.float64)
        # Both ratios are in lowest terms.
        self.others = np.array(
            [
                place
                for place, (entry, near) in enumerate(zip(exact, self.floats.tolist(), strict=True))
                if not np.isfinite(near)
                or near.as_integer_ratio() != (entry.numerator, entry.denominator)
            ],
            dtype=np.intp,
        )
        self._rationals = [exact[place] for place in self.others.tolist()]
        self.fractions = tuple(exact)

    def __len__(self) -> int:
        return self.floats.size

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ExactVector)
            and np.array_equal(self.floats, other.floats)
            and np.array_equal(self.others, other.others)
            and self._rationals == other._rationals
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def fractions(self) -> tuple[Fraction, ...]:
        """All entries as Fractions."""
        return tuple(to_fractions(self.floats))

    @cached_property
    def integers(self) -> tuple[list[int], int]:
        """All entries as integers over one denominator."""
        return common_denominator(self.fractions if self.others.size else self.floats)

    @cached_property
    def _other_integers(self) -> tuple[list[int], int]:
        return common_denominator(self._rationals)

    def dot(self, places: Places, coefficients: Vector) -> Fraction:
        """Return the sum of float64 coefficients times the entries at distinct places, exactly."""
        if places.size < _FEW_TERMS:
            some: Any = self.floats[places]
            if self.others.size:
                some = [self.fractions[place] for place in places.tolist()]
            return exact_dot(coefficients.tolist(), some)
        if not self.others.size:
            return float_dot(coefficients, self.floats[places])
        slot = np.minimum(np.searchsorted(self.others, places), self.others.size - 1)
        other = self.others[slot] == places
        known = float_dot(coefficients[~other], self.floats[places[~other]])
        entries, bottom = self._other_integers
        tops, denominator = common_denominator(coefficients[other])
        total = sum(a * entries[k] for k, a in zip(slot[other].tolist(), tops, strict=True))
        return known + Fraction(total, bottom * denominator)


__all__ = ["ExactVector"]
