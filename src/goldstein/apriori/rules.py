"""The rules of the outer-Lipschitz calculus as plain functions on triples.

Each docstring states the rule, proves it in two lines, and names the proposition or the erratum of
Tian, Zhou and So (ICML 2022). Radii and moduli are rounded up, reaches down.

The triple (delta, eta, kappa) of an outer Lipschitz continuous subdifferential.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker.rationals import sqrt_upper
from goldstein.errors import InputError, NotCertifiableError
from goldstein.numerics import exact
from goldstein.numerics.spectral import singular_bounds, spectral_norm_upper


@dataclass(frozen=True)
class OuterLipschitz:
    """A claim about a subdifferential: near every point, one pivot controls a whole ball.

    For every `x` there is a pivot `y` with `|y - x| <= pivot_radius` such that
    `dF(z) subset dF(y) + modulus |z - y| B` for all `z` with `|z - x| <= reach`. Both balls are
    closed. The claim stays true when `pivot_radius` grows, `reach` shrinks or `modulus` grows.

    Parameters
    ----------
    pivot_radius : float
        delta >= 0: how far the pivot may lie from the point.
    reach : float
        eta > 0, possibly infinite: radius of the ball that the pivot controls.
    modulus : float
        kappa >= 0.

    Examples
    --------
    >>> relu = OuterLipschitz(pivot_radius=0.1, reach=0.1, modulus=0.0)
    >>> relu.implies(OuterLipschitz(0.2, 0.05, 1.0))
    True
    >>> delta, eta, kappa = relu
    >>> eta
    0.1
    """

    pivot_radius: float
    reach: float
    modulus: float

    def __post_init__(self) -> None:
        for name in ("pivot_radius", "reach", "modulus"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not (self.pivot_radius >= 0.0 and math.isfinite(self.pivot_radius)):
            raise InputError(
                f"pivot_radius is {self.pivot_radius}, expected a finite number >= 0; it is the "
                "distance from a point to its pivot."
            )
        if not self.reach > 0.0:
            raise InputError(
                f"reach is {self.reach}, expected a number > 0 (inf for a smooth function); it is "
                "the radius of the ball that a pivot controls."
            )
        if not (self.modulus >= 0.0 and math.isfinite(self.modulus)):
            raise InputError(
                f"modulus is {self.modulus}, expected a finite number >= 0; where no global "
                "bound exists, restrict the function to a bounded domain."
            )

    def __iter__(self) -> Iterator[float]:
        return iter((self.pivot_radius, self.reach, self.modulus))

    def implies(self, weaker: OuterLipschitz) -> bool:
        """Return True when monotonicity alone turns this claim into `weaker`."""
        return (
            self.pivot_radius <= weaker.pivot_radius
            and self.reach >= weaker.reach
            and self.modulus <= weaker.modulus
        )


def nonnegative(value: float, name: str) -> float:
    """Return a finite nonnegative number as a float, or refuse it by name."""
    number = float(value)
    if not (number >= 0.0 and math.isfinite(number)):
        raise InputError(
            f"{name} is {number}, expected a finite number >= 0; where no global bound exists, "
            "give one that holds on a bounded domain."
        )
    return number


def positive(value: float, name: str) -> float:
    """Return a finite positive number as a float, or refuse it by name."""
    if nonnegative(value, name) == 0.0:
        raise InputError(f"{name} is 0, expected a number > 0.")
    return float(value)


def some_triples(triples: Sequence[OuterLipschitz]) -> list[OuterLipschitz]:
    """Return a nonempty list of triples."""
    parts = list(triples)
    if not parts:
        raise InputError("got no triples, expected at least one summand.")
    return parts


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
    return OuterLipschitz(triple.pivot_radius, triple.reach, exact.sum_up([triple.modulus, beta]))


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
        exact.root_sum_squares_up(part.pivot_radius for part in parts),
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
        exact.sum_up(part.modulus for part in parts),
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
        for index, value in enumerate(vars(self).values()):
            nonnegative(value, f"entry {index} of an arrow block")


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
    modulus = exact.sum_up(part.modulus for part in parts)
    if blocks is not None:
        if len(blocks) != len(parts):
            raise InputError(
                f"got {len(blocks)} arrow blocks for {len(parts)} summands, expected one each."
            )
        modulus = min(modulus, arrow_modulus(blocks))
    return OuterLipschitz(radius, min(part.reach for part in parts), modulus)


def arrow_modulus(blocks: Sequence[ArrowBlock]) -> float:
    """Return the norm of the arrow matrix of the block errors, rounded up."""
    shared = exact.sum_up(block.shared_shared for block in blocks)
    arrow = np.diag([shared, *(block.own_own for block in blocks)])
    arrow[0, 1:] = [block.shared_own for block in blocks]
    arrow[1:, 0] = [block.own_shared for block in blocks]
    return spectral_norm_upper(arrow)


def linear_composition(triple: OuterLipschitz, A: Any) -> OuterLipschitz:
    """Rule R3: `x -> F(Ax + b)` with A onto has `(delta |A+|, eta / |A|, kappa |A|^2)`.

    Proof: A onto makes the chain rule `d(F o A)(x) = A^T dF(Ax+b)` an equality; lift the pivot q of
    Ax+b by `y = x + A+ (q - Ax - b)`, and use `|Az - Ay| <= |A| |z-y|` twice.

    The paper's proposition on linear composition, correct; `rowwise_composition` is tighter (E20).

    Raises
    ------
    NotCertifiableError
        If the rows of A are linearly dependent.

    Examples
    --------
    >>> t = linear_composition(OuterLipschitz(1.0, 1.0, 1.0), [[3.0, 0.0], [0.0, 0.5]])
    >>> [round(number, 9) for number in t]
    [2.0, 0.333333333, 9.0]
    """
    require_onto(A)
    bounds = singular_bounds(A)
    return OuterLipschitz(
        exact.quotient_up(triple.pivot_radius, bounds.smallest),
        exact.quotient_down(triple.reach, bounds.largest),
        exact.product_up(triple.modulus, bounds.largest, bounds.largest),
    )


def require_onto(A: Any) -> None:
    """Refuse a matrix whose rows are dependent, and say what the rank is."""
    rows, columns = A.shape if hasattr(A, "shape") else np.shape(A)
    if singular_bounds(A).smallest > 0.0 and rows <= columns:
        return
    rank = min(rows, columns) if rows > columns else exact.exact_rank(A)
    if rows > columns or rank < rows:
        known = f"at most {rank}" if rows > columns else f"{rank}"
        raise NotCertifiableError(
            f"the {rows} x {columns} matrix has rank {known}, but this rule needs rank {rows} "
            "(independent rows); use a transported certificate, which needs no rank."
        )
    raise NotCertifiableError(
        f"the {rows} x {columns} matrix has full rank, but floats cannot bound its smallest "
        "singular value away from 0; use a transported certificate, which needs no rank."
    )


def rescale(
    triple: OuterLipschitz, inner_lipschitz: float, outer_lipschitz: float, beta: float
) -> OuterLipschitz:
    """Rule R4: `g o F` with smooth g has `(delta, eta, beta L1^2 + kappa L2)`.

    L1 = `inner_lipschitz` bounds the Lipschitz constant of F, L2 = `outer_lipschitz` bounds |g'|,
    and g' is `beta`-Lipschitz, all on the domain in use.

    Proof: `d(g o F) = g'(F) dF`; for v in dF(z) and a matching u in dF(y),
    `|g'(F(z)) v - g'(F(y)) u| <= beta L1 |z-y| |v| + L2 kappa |z-y|` and `|v| <= L1`.

    The paper's proposition on rescaling prints `beta L1 + kappa L2`, which is FALSE (E1):
    F = 10 x and a Huber g need 100, not 10.

    Examples
    --------
    >>> rescale(OuterLipschitz(0.1, 0.1, 0.0), 10.0, 1.0, 1.0).modulus
    100.0
    """
    inner = nonnegative(inner_lipschitz, "inner_lipschitz")
    outer = nonnegative(outer_lipschitz, "outer_lipschitz")
    beta = nonnegative(beta, "beta")
    return OuterLipschitz(
        triple.pivot_radius,
        triple.reach,
        exact.sum_up(
            [exact.product_up(beta, inner, inner), exact.product_up(triple.modulus, outer)]
        ),
    )


def near_from_goldstein(
    eps: float, triple: OuterLipschitz, radius: float | None = None
) -> tuple[float, float]:
    """Return `(eps + kappa (delta + r), delta)`: near stationarity from Goldstein stationarity.

    A point that is `(eps, r)`-Goldstein stationary with `r <= reach` is near stationary with the
    returned pair.

    Proof: match each `g_j` in dF(y_j) by `u_j` in dF(y) with `|u_j-g_j| <= kappa |y_j-y|`, where
    `|y_j-y| <= r + delta`; `sum alpha_j u_j` lies in dF(y), a convex set.

    The paper's theorem "NAS by GAS", correct; it uses `r = reach`, the default.

    Parameters
    ----------
    eps : float
        Goldstein accuracy.
    triple : OuterLipschitz
        Triple of the function.
    radius : float, optional
        Goldstein radius r, at most the reach; needed when the reach is infinite.

    Returns
    -------
    tuple of float
        `(eps, delta)` of near stationarity, rounded up.

    Examples
    --------
    >>> near_from_goldstein(0.25, OuterLipschitz(0.5, 0.25, 1.0))
    (1.0, 0.5)
    """
    radius = triple.reach if radius is None else nonnegative(radius, "radius")
    if radius > triple.reach:
        raise InputError(
            f"radius is {radius}, but the triple reaches only {triple.reach}; certify Goldstein "
            "stationarity at a radius of at most the reach."
        )
    moved = exact.product_up(triple.modulus, exact.sum_up([triple.pivot_radius, radius]))
    return exact.sum_up([nonnegative(eps, "eps"), moved]), triple.pivot_radius


def nearest_kink(
    u: Fraction, kinks: Sequence[Fraction], squared_radius: Fraction
) -> Fraction | None:
    """Return the nearest kink if its squared distance is at most the given number, exactly.

    Examples
    --------
    >>> nearest_kink(Fraction(1, 3), [Fraction(0), Fraction(1)], Fraction(1, 9))
    Fraction(0, 1)
    """
    best = min(kinks, key=lambda kink: (abs(u - kink), abs(kink)), default=None)
    # <=, not <: the ball is closed, and a kink on its boundary is met.
    return best if best is not None and (u - best) ** 2 <= squared_radius else None


def levelled(values: Sequence[Fraction], squared_reach: Fraction) -> list[Fraction]:
    """Average the values within `sqrt(2) reach` of the largest, exactly."""
    largest = max(values)
    top = [(largest - v) ** 2 <= 2 * squared_reach for v in values]
    mean = sum((v for v, near in zip(values, top) if near), Fraction(0)) / sum(top)
    return [mean if near else v for v, near in zip(values, top)]
