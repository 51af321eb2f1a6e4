"""Sums: what happens to a triple when functions are added or multiplied by a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from goldstein.apriori.outer_lipschitz import OuterLipschitz
from goldstein.apriori.rules.checks import nonnegative, nonnegatives, some_triples
from goldstein.checker.rationals import sqrt_upper
from goldstein.errors import InputError
from goldstein.numerics.directed import product_up, root_sum_squares_up, sum_up
from goldstein.numerics.spectral import spectral_norm_upper


def scale(triple: OuterLipschitz, factor: float) -> OuterLipschitz:
    """Rule R0: `c F` has `(delta, eta, |c| kappa)`.

    Proof: `d(cF) = c dF` for every real c, and c times a ball of radius r has radius |c| r.

    Examples
    --------
    >>> scale(OuterLipschitz(0.1, 0.1, 2.0), -3.0).modulus
    6.0
    """
    size = nonnegative(abs(factor), "the size of the factor")
    return OuterLipschitz(triple.pivot_radius, triple.reach, product_up(size, triple.modulus))


def smooth_sum(triple: OuterLipschitz, beta: float) -> OuterLipschitz:
    """Rule R1: `F + g` with a `beta`-smooth g has `(delta, eta, kappa + beta)`.

    Proof: `d(F+g) = dF + grad g`, an equality because g is continuously differentiable; the same
    pivot works and `|grad g(z) - grad g(y)| <= beta |z - y|`.

    The paper's proposition on smooth regularization, correct as printed.

    Examples
    --------
    >>> smooth_sum(OuterLipschitz(0.1, 0.1, 0.0), 1.0)
    OuterLipschitz(pivot_radius=0.1, reach=0.1, modulus=1.0)
    """
    beta = nonnegative(beta, "beta")
    return OuterLipschitz(triple.pivot_radius, triple.reach, sum_up([triple.modulus, beta]))


def separable_sum(triples: Sequence[OuterLipschitz]) -> OuterLipschitz:
    """Rule R2: `sum_i F_i(x_i)` over disjoint blocks has `(|delta|, min eta_i, max kappa_i)`.

    Proof: the subdifferential is the product of the blocks', the pivot is taken block by block, and
    `|v-u|^2 <= sum_i kappa_i^2 |z_i-y_i|^2 <= (max kappa_i)^2 |z-y|^2`.

    The paper's proposition on separable sums prints `sqrt(sum kappa_i^2)`: valid but loose (E4).

    Examples
    --------
    >>> separable_sum([OuterLipschitz(3.0, 1.0, 3.0), OuterLipschitz(4.0, 2.0, 4.0)])
    OuterLipschitz(pivot_radius=5.0, reach=1.0, modulus=4.0)
    """
    parts = some_triples(triples)
    return OuterLipschitz(
        root_sum_squares_up(part.pivot_radius for part in parts),
        min(part.reach for part in parts),
        max(part.modulus for part in parts),
    )


def shared_pivot_sum(triples: Sequence[OuterLipschitz]) -> OuterLipschitz:
    """Rule R5: a sum of maps with ONE shared pivot has `(min delta_i, min eta_i, sum kappa_i)`.

    Proof: at the shared pivot y, `sum_i G_i(z) subset sum_i (G_i(y) + kappa_i |z-y| B)`; the
    pivot lies within every delta_i, hence within the smallest.

    For functions the caller must know `sum_i dF_i(y) subset dF(y)` AT the pivot; elsewhere Clarke's
    inclusion suffices. The paper's sum proposition, whose proof prints `G_1(y)` for `G_i(y)` (E21).

    Examples
    --------
    >>> shared_pivot_sum([OuterLipschitz(1.0, 1.0, 3.0), OuterLipschitz(2.0, 0.5, 4.0)])
    OuterLipschitz(pivot_radius=1.0, reach=0.5, modulus=7.0)
    """
    parts = some_triples(triples)
    return OuterLipschitz(
        min(part.pivot_radius for part in parts),
        min(part.reach for part in parts),
        sum_up(part.modulus for part in parts),
    )


@dataclass(frozen=True)
class ArrowBlock:
    """How the error of one summand depends on the shared and on its own block of variables.

    `|e_shared| <= shared_shared r_0 + shared_own s` and `|e_own| <= own_shared r_0 + own_own s`,
    where r_0 and s are the distances moved in the shared and in the own block.
    """

    shared_shared: float
    shared_own: float
    own_shared: float
    own_own: float

    def __post_init__(self) -> None:
        nonnegatives(
            (self.shared_shared, self.shared_own, self.own_shared, self.own_own), "an arrow block"
        )


def partially_separable_sum(
    triples: Sequence[OuterLipschitz],
    blocks: Sequence[ArrowBlock] | None = None,
    *,
    shared_move: float = 0.0,
) -> OuterLipschitz:
    """Rule R6: `sum_i G_i(x_0, x_i)` with pivots that agree on x_0.

    The triple is `(sqrt(sum delta_i^2 - (m-1) |y_0-x_0|^2), min eta_i, sum kappa_i)`. With
    `blocks` the modulus is the norm of the arrow matrix `[[sum p, q], [q', diag t]]` if smaller.

    Proof: `|y-x|^2 = |y_0-x_0|^2 + sum_i |y_i-x_i|^2` and `|y_i-x_i|^2 <= delta_i^2 - |y_0-x_0|^2`;
    the block errors are bounded entrywise by the arrow matrix applied to the distances moved.

    The paper's corollary on partially separable sums; `sum kappa_i` is needed in general, since
    `G_i = (kappa_i x_0, 0)` attains it, and its radius is loose (E22).

    Parameters
    ----------
    triples : sequence of OuterLipschitz
        One per summand.
    blocks : sequence of ArrowBlock, optional
        One per summand.
    shared_move : float
        A lower bound of `|y_0 - x_0|`, the move that all summands share.

    Examples
    --------
    >>> both = [OuterLipschitz(3.0, 1.0, 1.0), OuterLipschitz(4.0, 1.0, 2.0)]
    >>> partially_separable_sum(both)
    OuterLipschitz(pivot_radius=5.0, reach=1.0, modulus=3.0)
    >>> decoupled = [ArrowBlock(0.0, 0.0, 0.0, 1.0), ArrowBlock(0.0, 0.0, 0.0, 2.0)]
    >>> round(partially_separable_sum(both, decoupled).modulus, 9)
    2.0
    """
    parts = some_triples(triples)
    move = nonnegative(shared_move, "shared_move")
    if any(part.pivot_radius < move for part in parts):
        raise InputError(
            f"shared_move is {move}, larger than a summand's pivot_radius; every pivot moves the "
            "shared block, so it is at most the smallest radius."
        )
    squares = sum((Fraction(part.pivot_radius) ** 2 for part in parts), Fraction(0))
    radius = sqrt_upper(squares - (len(parts) - 1) * Fraction(move) ** 2)
    modulus = sum_up(part.modulus for part in parts)
    if blocks is not None:
        if len(blocks) != len(parts):
            raise InputError(
                f"got {len(blocks)} arrow blocks for {len(parts)} summands, expected one each."
            )
        modulus = min(modulus, arrow_modulus(blocks))
    return OuterLipschitz(radius, min(part.reach for part in parts), modulus)


def arrow_modulus(blocks: Sequence[ArrowBlock]) -> float:
    """Return the norm of the arrow matrix of the block errors, rounded up."""
    size = len(blocks) + 1
    arrow = np.zeros((size, size))
    arrow[0, 0] = sum_up(block.shared_shared for block in blocks)
    for index, block in enumerate(blocks, start=1):
        arrow[0, index] = block.shared_own
        arrow[index, 0] = block.own_shared
        arrow[index, index] = block.own_own
    return spectral_norm_upper(arrow)
