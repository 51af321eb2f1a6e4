"""Compositions: linear and nonlinear inner maps, smooth outer functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from goldstein.apriori.outer_lipschitz import OuterLipschitz
from goldstein.apriori.rules.checks import nonnegative, nonnegatives, positive, some_triples
from goldstein.checker.rounding import gamma
from goldstein.errors import InputError, NotCertifiableError
from goldstein.numerics.directed import (
    product_up,
    quotient_down,
    quotient_up,
    root_sum_squares_up,
    root_up,
    sum_up,
)
from goldstein.numerics.exact import exact_rank
from goldstein.numerics.spectral import singular_bounds, spectral_norm_upper


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
        quotient_up(triple.pivot_radius, bounds.smallest),
        quotient_down(triple.reach, bounds.largest),
        product_up(triple.modulus, bounds.largest, bounds.largest),
    )


def rowwise_composition(
    A: Any, reach: float, modulus: float = 0.0, *, limits: ArrayLike = math.inf, copies: int = 1
) -> OuterLipschitz:
    """Rule R3': `x -> sum_i f_i(a_i.x + b_i)`, each scalar f_i with its own radius.

    If f_i is `(r, r, kappa)` for every `r <= limits[i]`, the sum is
    `(sqrt(n) |Ahat+| eta, eta, kappa |A|^2)` for `eta = reach`, where Ahat has the rows of A
    divided by their norms. With `copies = m` the same rows act on m disjoint blocks (the neurons
    of a layer) and the radius gains a factor sqrt(m).

    Proof: give f_i the radius `eta_i = eta |a_i|`; then `|a_i.(z-x)| <= eta_i` on the ball, the
    pivot moves row i by at most eta_i, and `A+ diag(eta_i) = Ahat+ eta`.

    Sharpens the paper's chain separable sum + linear composition (E20), as `|Ahat+| <= |A+| |A|`.

    Examples
    --------
    >>> t = rowwise_composition([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]], reach=0.01)
    >>> round(t.pivot_radius, 9)
    0.023327062
    """
    reach = positive(reach, "reach")
    modulus = nonnegative(modulus, "modulus")
    if copies < 1:
        raise InputError(f"copies is {copies}, expected at least 1.")
    factor = pivot_factor(A)
    norms = row_norms_upper(A)
    allowed = np.broadcast_to(np.asarray(limits, dtype=np.float64), norms.shape)
    for row, (norm, limit) in enumerate(zip(norms.tolist(), allowed.tolist(), strict=True)):
        if product_up(reach, norm) > limit:
            raise NotCertifiableError(
                f"row {row} needs the radius {reach * norm:.6g}, but its function allows at most "
                f"{limit:.6g}; ask for a reach of at most {limit / norm:.6g}."
            )
    return OuterLipschitz(
        product_up(root_up(float(copies)), factor, reach),
        reach,
        product_up(modulus, spectral_norm_upper(A), spectral_norm_upper(A)),
    )


def pivot_factor(A: Any) -> float:
    """Return `sqrt(n) |Ahat+|`, rounded up: pivot radius per unit of reach (rule R3').

    Examples
    --------
    >>> round(pivot_factor([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]) / 2**0.5, 6)
    1.649472
    """
    require_onto(A)
    matrix = np.atleast_2d(np.asarray(A.toarray() if sparse.issparse(A) else A, dtype=np.float64))
    # A power of two per row is exact and protects the norms from over- and underflow.
    powers = 2.0 ** np.frexp(np.abs(matrix).max(axis=1))[1]
    scaled = matrix / powers[:, None]
    unit = scaled / np.linalg.norm(scaled, axis=1)[:, None]
    rows, columns = unit.shape
    # The exact row-normalised matrix differs entrywise by a few roundings.
    smallest = singular_bounds(unit).smallest - gamma(columns + 8) * 1.01 * math.sqrt(rows)
    if smallest <= 0.0:
        raise NotCertifiableError(
            "the rows are independent, but too nearly dependent for a bound in float64; use a "
            "transported certificate, which needs no rank."
        )
    return quotient_up(root_up(float(rows)), smallest)


def row_norms_upper(A: Any) -> np.ndarray:
    """Return upper bounds of the Euclidean norms of the rows."""
    matrix = np.atleast_2d(np.asarray(A.toarray() if sparse.issparse(A) else A, dtype=np.float64))
    answer: np.ndarray = np.linalg.norm(matrix, axis=1) * (1.0 + gamma(matrix.shape[1] + 8))
    return answer


def require_onto(A: Any) -> None:
    """Refuse a matrix whose rows are dependent, and say what the rank is."""
    rows, columns = A.shape if hasattr(A, "shape") else np.shape(A)
    if singular_bounds(A).smallest > 0.0 and rows <= columns:
        return
    rank = min(rows, columns) if rows > columns else exact_rank(A)
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
        sum_up([product_up(beta, inner, inner), product_up(triple.modulus, outer)]),
    )


def vector_rescale(
    triples: Sequence[OuterLipschitz],
    inner_lipschitz: Sequence[float],
    outer_slopes: Sequence[float],
    beta: float,
) -> OuterLipschitz:
    """Rule R4': `g(F_1(x_1), ..., F_m(x_m))` over disjoint blocks.

    Radius and reach as in `separable_sum`; the modulus is
    `beta (max L_i)^2 + max_i(sup|d_i g| kappa_i)`.

    Proof: where all F_i are differentiable `grad = (d_i g grad F_i)`, so the subdifferential is the
    product of the `d_i g dF_i`; bound the change of d_i g as in rule R4 and the rest as in R2.

    Sound form of the paper's chain for one-layer networks, which inherits E1 (E25).

    Examples
    --------
    >>> relu = OuterLipschitz(0.1, 0.1, 0.0)
    >>> vector_rescale([relu, relu], [1.0, 1.0], [1.0, 1.0], beta=0.25).modulus
    0.25
    """
    parts = some_triples(triples)
    inner = nonnegatives(inner_lipschitz, "inner_lipschitz")
    slopes = nonnegatives(outer_slopes, "outer_slopes")
    if not len(parts) == len(inner) == len(slopes):
        raise InputError(
            f"got {len(parts)} triples, {len(inner)} inner constants and {len(slopes)} outer "
            "slopes, expected one of each per block."
        )
    steepest = max(inner)
    kept = max(product_up(s, part.modulus) for s, part in zip(slopes, parts, strict=True))
    return OuterLipschitz(
        root_sum_squares_up(part.pivot_radius for part in parts),
        min(part.reach for part in parts),
        sum_up([product_up(nonnegative(beta, "beta"), steepest, steepest), kept]),
    )


def nonlinear_composition(
    triple: OuterLipschitz,
    smallest_singular: float,
    inner_lipschitz: float,
    jacobian_lipschitz: float,
    outer_lipschitz: float,
) -> OuterLipschitz:
    """Rule R7: `F o c` with `sigma_min(Jc) >= s` has `(delta/s, eta/Lc, kappa Lc^2 + M Lf)`.

    The constants hold on the ball of radius `delta/s` around the point and on its reach: Jc has
    singular values at least s = `smallest_singular` > 0, c is Lc-, Jc is M- and F is Lf-Lipschitz.

    Proof: Jc onto makes the chain rule an equality; follow `y' = Jc(y)^+ (q - c(x))` from x, which
    has speed at most delta/s and ends over the pivot q; then
    `|Jc(z)^T v - Jc(y)^T u| <= M |z-y| Lf + Lc kappa Lc |z-y|`.

    Not in the paper; contains its linear composition (`M = 0`).

    Examples
    --------
    >>> nonlinear_composition(OuterLipschitz(1.0, 1.0, 2.0), 0.5, 2.0, 3.0, 1.0)
    OuterLipschitz(pivot_radius=2.0, reach=0.5, modulus=11.0)
    """
    smallest = positive(smallest_singular, "smallest_singular")
    inner = positive(inner_lipschitz, "inner_lipschitz")
    bend = nonnegative(jacobian_lipschitz, "jacobian_lipschitz")
    outer = nonnegative(outer_lipschitz, "outer_lipschitz")
    return OuterLipschitz(
        quotient_up(triple.pivot_radius, smallest),
        quotient_down(triple.reach, inner),
        sum_up([product_up(triple.modulus, inner, inner), product_up(bend, outer)]),
    )
