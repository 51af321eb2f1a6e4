"""What a combination of gradients, of a term and of constraints adds up to, against rationals."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from goldstein.checker.constrained.limits import as_box
from goldstein.checker.sampled import OBJECTIVE, rows_of

DIM = 3


def length(vectors: list[tuple[float, Any]]) -> float:
    """|sum of weights times vectors|, but for the last rounding."""
    sums = [Fraction(0)] * DIM
    for w, v in vectors:
        sums = [s + Fraction(float(w)) * Fraction(float(a)) for s, a in zip(sums, v)]
    return float(sum(s * s for s in sums)) ** 0.5


def claim(rng: np.random.Generator, box: Any, **more: Any) -> Any:
    """Three gradients with convex weights, and what else is given."""
    weights = rng.random(3)
    return SimpleNamespace(
        x=box.clip(np.zeros(DIM)), points=rng.standard_normal((3, DIM)),
        gradients=rng.standard_normal((3, DIM)), weights=weights / weights.sum(), **more,
    )  # fmt: skip


def tight(found: float, truth: float) -> bool:
    return truth <= found <= truth * (1 + 1e-12) + 1e-14


@pytest.mark.parametrize("seed", range(20))
def test_a_term_is_added_once(seed: int) -> None:
    rng, free = np.random.default_rng(seed), as_box(None, DIM)
    v = rng.standard_normal(DIM) if seed else np.zeros(DIM)
    for given in ({"subgradient": v}, {}):
        cert = claim(rng, free, **given)
        rows = rows_of(cert, SimpleNamespace(system=None, box=free))
        term = [(1.0, v)] if given else []
        # Convex up to rounding: what the weights miss of 1 is the term's.
        total = sum(map(Fraction, cert.weights.tolist()), Fraction(0))
        truth = length([*zip(cert.weights, cert.gradients), *((float(total), v) for _, v in term)])
        assert tight(rows.length(cert.gradients, rows.owners, rows.weights), truth)
        shifted = cert.gradients + (v if given else 0.0)
        mean = sum(w * np.linalg.norm(g) for w, g in zip(cert.weights, shifted))
        assert rows.scale(cert.gradients) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_constraints_and_normals_are_added_with_their_signs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    box = as_box([(0, None), (None, 0), (None, None)], DIM)
    signed, index = np.array([0.5, 0.0, -2.0]), np.array([1, 1, 0])
    cert = claim(
        rng, box, normal=np.array([-1.0, float(seed % 2), 0.0]), constraint_weights=signed,
        constraint_index=index, constraint_points=rng.standard_normal((3, DIM)),
        constraint_gradients=rng.standard_normal((3, DIM)),
    )  # fmt: skip
    rows = rows_of(cert, SimpleNamespace(system=True, box=box))
    assert rows.owners.tolist() == [OBJECTIVE] * 3 + [1, 0]
    assert rows.weights.tolist() == [*cert.weights, 0.5, 2.0]
    assert rows.sign == {OBJECTIVE: 1.0, 1: 1.0, 0: -1.0}
    used = signed != 0
    assert np.array_equal(rows.points, np.vstack([cert.points, cert.constraint_points[used]]))
    stated = np.sign(signed[used])[:, None] * cert.constraint_gradients[used]
    assert np.array_equal(rows.stored, np.vstack([cert.gradients, stated]))
    summed = rows.weights @ rows.stored
    # The normal may cancel what points out of the bounds, where one is stated.
    normal = np.array([min(-summed[0], 0.0), max(-summed[1], 0.0) if seed % 2 else 0.0, 0.0])
    truth = length([*zip(rows.weights, rows.stored), (1.0, normal)])
    assert tight(rows.length(rows.stored, rows.owners, rows.weights), truth)
    # Multipliers that cancel each other are no excuse for rounding.
    own = sum(w * np.linalg.norm(g) for w, g in zip(cert.weights, cert.gradients))
    rest = 0.5 * np.linalg.norm(stated[0]) + 2.0 * np.linalg.norm(stated[1])
    assert rows.scale(rows.stored) == pytest.approx(own + min(rest, 1e3 * own), rel=1e-9)


def test_a_claim_without_multipliers_has_the_rows_of_f() -> None:
    rng, box = np.random.default_rng(0), as_box([(0, 1)] * DIM, DIM)
    none = np.zeros((0, DIM))
    cert = claim(
        rng, box, normal=np.zeros(DIM), constraint_weights=np.zeros(0), constraint_points=none,
        constraint_index=np.zeros(0, dtype=np.intp), constraint_gradients=none,
    )  # fmt: skip
    rows = rows_of(cert, SimpleNamespace(system=True, box=box))
    assert (rows.owners == OBJECTIVE).all()
    assert not (rows.low | rows.high).any()
    truth = length([*zip(cert.weights, cert.gradients)])
    assert tight(rows.length(cert.gradients, rows.owners, rows.weights), truth)
