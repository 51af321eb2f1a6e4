"""Quantities of the theory that the library has no use for, and the tests of the theory have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from goldstein.apriori.rules import (
    OuterLipschitz,
    levelled,
    nearest_kink,
    nonnegative,
    positive,
    require_onto,
    some_triples,
)
from goldstein.checker.rationals import to_fractions
from goldstein.checker.rounding import gamma, norms_upper
from goldstein.errors import InputError, NotCertifiableError
from goldstein.numerics.exact import (
    product_up,
    quotient_down,
    quotient_up,
    root_sum_squares_up,
    root_up,
    sum_up,
)
from goldstein.numerics.spectral import singular_bounds, spectral_norm_upper
from goldstein.solvers import ball_state


def nonnegatives(values: Iterable[float], name: str) -> list[float]:
    """Return finite nonnegative numbers as floats, or refuse the first bad one."""
    return [nonnegative(value, f"entry {index} of {name}") for index, value in enumerate(values)]


def contraction(q: float) -> float:
    """Return c1(q) >= 1/5 with E|m'|^2 <= (1 - c1 q^2) |m|^2 after a failed descent step."""
    return (16 - 8 * q + q * q) / (64 - 16 * q + q * q - 8 * q**3 + q**4)


def oracle_bound(
    lipschitz: float,
    gap: float,
    eps: float,
    delta: float,
    gamma: float,
    round_failure: float = ball_state.CHEAP_ROUND_FAILURE,
) -> tuple[int, int]:
    """Return the theorem's bound (values, gradients) for a certificate w.p. >= 1 - gamma."""
    moves = ball_state.descent_steps(gap, eps, delta)
    steps = ball_state.steps_per_round(lipschitz, eps, round_failure)
    total = moves * ball_state.rounds(moves, gamma, round_failure) * steps
    return total + 1, total


def max_pivot(point: Any, reach: float) -> Any:
    """Return the pivot of the maximum of coordinates."""
    levels = levelled(to_fractions(np.asarray(point)), Fraction(reach) ** 2)
    return np.array([float(level) for level in levels])


def smooth(beta: float) -> OuterLipschitz:
    """Return the triple of a function with a `beta`-Lipschitz gradient: its own point is the pivot.

    Examples
    --------
    >>> smooth(2.0)
    OuterLipschitz(pivot_radius=0.0, reach=inf, modulus=2.0)
    """
    return OuterLipschitz(0.0, math.inf, beta)


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
    dense = A.toarray() if sparse.issparse(A) else np.atleast_2d(np.asarray(A))
    norms = np.array(norms_upper(dense))
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


def pieces(pivot_radius: float, reach: float, piece_moduli: Sequence[float]) -> OuterLipschitz:
    """Rule R8: with kinks on hyperplanes the modulus is the largest of the smooth pieces'.

    The pivot must lie on every kink that the ball of radius `reach` meets, and on the point's side
    of all others; all pivots of the rules R2, R3 and R3' do.

    Proof: every cell that meets the ball has the pivot y in its closure, so the segment [y, z]
    stays in one closed cell, along which one smooth piece's gradient moves by at most kappa |z-y|.

    Not in the paper; usually much tighter than R4 to R6.

    Examples
    --------
    >>> pieces(0.2, 0.1, [1.0, 3.0, 2.0]).modulus
    3.0
    """
    return OuterLipschitz(pivot_radius, reach, max(nonnegatives(piece_moduli, "piece_moduli")))


def scalar_pieces(
    radius: float, kinks: Sequence[float], piece_moduli: Sequence[float]
) -> OuterLipschitz:
    """Rule R8 on the line: `(r, r, max beta)` while r is below half the smallest gap of kinks.

    Proof: a closed ball of radius r < gap/2 around x meets at most one kink, and the pivot is that
    kink if it does (the nearest one within r), else x.

    Examples
    --------
    >>> scalar_pieces(0.4, [0.0, 1.0], [0.0, 2.0, 0.0])
    OuterLipschitz(pivot_radius=0.4, reach=0.4, modulus=2.0)
    """
    radius = positive(radius, "radius")
    ordered = sorted(Fraction(kink) for kink in kinks)
    gap = min((b - a for a, b in pairwise(ordered)), default=None)
    if gap is not None and not 2 * Fraction(radius) < gap:
        raise NotCertifiableError(
            f"radius is {radius}, but kinks are only {float(gap)} apart; a radius below "
            f"{float(gap / 2)} works."
        )
    return pieces(radius, radius, piece_moduli)


def nearest_kink_pivot(u: float, kinks: Sequence[float], radius: float) -> float:
    """Return the nearest kink if it lies within `radius` of u (closed), else u.

    Ties go to the kink nearest 0.

    Examples
    --------
    >>> nearest_kink_pivot(0.5, [0.0, 1.0], 0.5), nearest_kink_pivot(0.5, [0.0, 1.0], 0.4)
    (0.0, 0.5)
    """
    radius = nonnegative(radius, "radius")
    exact = [Fraction(kink) for kink in kinks]
    found = nearest_kink(Fraction(u), exact, Fraction(radius) ** 2)
    return u if found is None else float(found)


def gated_pivot(point: Sequence[float], radius: float) -> tuple[float, float]:
    """Return the pivot of `(a, b) -> a max(b, 0)`: put b on its kink if `|b| <= radius`.

    The paper prints `|x|` for `|b|` (E3), which sends nothing to the kink when a is large.

    Examples
    --------
    >>> gated_pivot((5.0, 0.05), 0.1)
    (5.0, 0.0)
    """
    gate, argument = point
    return gate, nearest_kink_pivot(argument, [0.0], radius)
