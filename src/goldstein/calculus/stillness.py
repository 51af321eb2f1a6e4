"""Which entries of an expression do not change at all near a point.

A kink inside a part that stays constant is no kink of the function: relu(relu(w)) is 0 around every
w < 0, although the argument of the outer relu is exactly on its kink there.

An entry counts as constant near y only if that is proved, by induction over the nodes:

* a number that does not depend on x is constant;
* a node of constant arguments is constant, and a product with an entry that is 0 near y is 0 too;
* where the argument of an atom is strictly between two breakpoints, it stays there near y, because
  it is continuous; if the atom's piece there is a constant polynomial, the value is that constant;
* where one entry is strictly the largest of a maximum, it stays so near y.

Whichever piece is chosen for a kink whose argument is constant, the gradient is the right one: the
chosen slope multiplies the derivative of the argument, which is 0, and in these cases is computed
as 0, or as an enclosure of it. The argument stays constant beside y too, so no direction needs to
say which side it leaves the kink to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goldstein.checker.arrays import Mask


@dataclass(frozen=True)
class Still:
    """The entries of a node near a point.

    Attributes
    ----------
    constant : ndarray of bool
        True where the entry is proved not to change near the point.
    zero : ndarray of bool
        True where it is proved to be 0 near the point; `constant` is True there as well.
    """

    constant: Mask
    zero: Mask

    def __post_init__(self) -> None:
        # NumPy unwraps arrays without dimensions.
        for name in ("constant", "zero"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))

    @classmethod
    def everywhere(cls, shape: tuple[int, ...], constant: bool, zero: bool = False) -> Still:
        """Say the same of all entries."""
        return cls(np.full(shape, constant), np.full(shape, zero and constant))


def products(left: Still, right: Still) -> Still:
    """Return what holds of the sums of products of two tables, row by column."""
    moving = _any_product(~left.constant, ~right.zero) | _any_product(~left.zero, ~right.constant)
    return Still(~moving, ~_any_product(~left.zero, ~right.zero))


def _any_product(left: Mask, right: Mask) -> Mask:
    """Return whether some term of a product is not excluded."""
    answer: Mask = left.astype(np.float64) @ right.astype(np.float64) > 0.0
    return answer


__all__ = ["Mask", "Still", "products"]
