"""The margin objective's own kink form must say what the general one says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.limits import limiting_gradients

from goldstein.certificates import NearCertificate
from goldstein.checker import sides
from goldstein.checker.enclosed import point as enclosed
from goldstein.checker.enclosed.point import EnclosedPoint
from goldstein.errors import NotCertifiableError
from goldstein.models import margin_svm
from goldstein.models.margin_svm import MarginSVM
from goldstein.numerics.exact import project_exact


def model_and_pivot(
    seed: int, *, on_ramp: int, on_flat: int, thin: bool, n: int = 6000, d: int = 8
) -> tuple[MarginSVM, list[Fraction]]:
    """A model too large for rationals, and a point on some convex and some concave kinks."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    Z[:, -1] = rng.choice([-1.0, 1.0], n)
    rho, shift = rng.choice([1.0, 0.7]), rng.choice([0.0, -0.3])
    weights = rng.random(n)
    data = sparse.csr_array(Z) if thin else Z
    model = margin_svm(data, rho, 0.1, weights=weights, shift=shift, intercept=True)
    kinks = rng.choice(n, on_ramp + on_flat, replace=False)
    levels = [Fraction(shift) + Fraction(rho)] * on_ramp + [Fraction(shift)] * on_flat
    pivot = project_exact(Z[kinks], levels, rng.standard_normal(d))
    assert pivot is not None
    return model, pivot


@given(
    seed=st.integers(0, 10**6),
    on_ramp=st.integers(0, 4),
    on_flat=st.integers(0, 3),
    thin=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_limits_agree_with_the_general_form(
    seed: int, on_ramp: int, on_flat: int, thin: bool
) -> None:
    model, pivot = model_and_pivot(seed, on_ramp=on_ramp, on_flat=on_flat, thin=thin)
    ways = np.random.default_rng(seed).standard_normal((5, model.dim))
    own = limiting_gradients(model, pivot, ways)
    general = [limit for v in ways for limit in limiting_gradients(model, pivot, [v])]
    for (mid, rad), (other, spread) in zip(own, general, strict=True):
        for a, r, b, s in zip(mid, rad, other, spread, strict=True):
            assert abs(a - b) <= r + s
            assert r <= 2 * s


def test_a_direction_along_a_kink_is_refused() -> None:
    model, pivot = model_and_pivot(1, on_ramp=2, on_flat=1, thin=False)
    (ties,) = sides.point_at(model.program(), pivot).ties.values()
    row = model.Z[next(iter(ties))]
    along = np.zeros(model.dim)
    along[:2] = [row[1], -row[0]]
    with pytest.raises(NotCertifiableError, match="stays on a kink"):
        limiting_gradients(model, pivot, np.vstack([along, np.ones(model.dim)]))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_claims_from_enclosures_are_not_below_the_exact_bound(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pivot = model_and_pivot(seed, on_ramp=2, on_flat=1, thin=bool(seed % 2))
    rng = np.random.default_rng(seed)
    ways, weights = rng.standard_normal((6, model.dim)), rng.random(6)
    x = np.array([float(q) for q in pivot])
    claim = NearCertificate.prove(model, x, pivot, ways, weights)
    assert claim.verify(model).ok
    monkeypatch.setattr(enclosed, "RATIONAL_WORK", 10**9)
    exact = NearCertificate.prove(model, x, pivot, ways, weights)
    assert exact.eps <= claim.eps <= exact.eps * (1 + 1e-9)
    assert (np.abs(exact.gradients - claim.gradients).max(axis=1) <= claim.errors + 1e-12).all()


def test_a_reduced_proof_of_a_large_function_verifies() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3000, 20))
    model = margin_svm(rows, 1.0, 1.0)
    pivot = project_exact(rows[:3], [1.0] * 3, 0.1 * rng.standard_normal(20))
    assert pivot is not None
    x = np.array([float(q) for q in pivot])
    proof = NearCertificate.prove(model, x, pivot, rng.standard_normal((60, 20)), rng.random(60))
    assert proof.errors.any()
    reduced = proof.reduce()
    assert len(reduced.weights) <= 21
    assert reduced.verify(model).ok


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1.0, 1e-160, 1e-320, 1e160]))
@settings(max_examples=60, deadline=None)
def test_signs_of_all_products_are_exact(seed: int, scale: float) -> None:
    """Sums that cancel, over- and underflow: integers say what floats cannot."""
    rng = np.random.default_rng(seed)
    left = rng.integers(-2, 3, (4, 6)) * rng.choice([1.0, 1e-17, 0.1], (4, 6)) * scale
    right = rng.integers(-2, 3, (3, 6)) * rng.choice([1.0, 1e17, 0.3], (3, 6)) * scale
    left[0, :2], right[0] = [0.1 * scale, -0.1 * scale], [1, 1, 0, 0, 0, 0]
    expected = [
        [int(np.sign(sum(Fraction(a) * Fraction(b) for a, b in zip(x, y)))) for y in right.tolist()]
        for x in left.tolist()
    ]
    assert enclosed.signs_of_products(left, right).tolist() == expected


@pytest.mark.parametrize("thin", [False, True])
def test_many_variables_are_enclosed_block_by_block(
    thin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pivot = model_and_pivot(5, on_ramp=3, on_flat=2, thin=thin, n=500, d=100)
    ways = np.random.default_rng(0).standard_normal((7, model.dim))
    point = EnclosedPoint(model.program(), pivot)
    whole = point.limits(ways)
    monkeypatch.setattr(enclosed, "BLOCK", 7 * 13)
    blocks = point.limits(ways)
    general = [point.limits(v[None]) for v in ways]
    mids, rads = (np.vstack([getattr(one, end) for one in general]) for end in ("mid", "rad"))
    for _, mid, rad in (whole, blocks):
        assert mid.shape == rad.shape == (7, 100)
        assert (np.abs(mid - mids) <= rad + rads).all()
        assert (rad <= 2 * rads.max(axis=0)).all()
