"""Values acquit right gradients cheaply and convict wrong ones, whatever is known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from goldstein.checker.arrays import Vector
from goldstein.errors import ContradictedError
from goldstein.oracles import CountedOracle, FunctionOracle
from goldstein.oracles.diagnose import Known, resolution_of

X = np.array([0.3, -1.2, 0.7])


def value(x: Vector) -> float:
    return float(np.abs(x).sum() + 50.0 * x @ x)


def gradient(x: Vector) -> Vector:
    return np.sign(x) + 100.0 * x


def contradicted(oracle: CountedOracle, x: Vector, radius: float, seed: int, known: Known) -> bool:
    try:
        resolution_of(oracle, x, radius, seed, known)
        return False
    except ContradictedError:
        return True


class Knowing(FunctionOracle):
    """Remembers the value that came with a gradient."""

    def known_value(self, x: Vector) -> float | None:
        return self.value(x)


@pytest.mark.parametrize("kind", [Knowing, FunctionOracle])
def test_values_alone_acquit(kind: type[FunctionOracle]) -> None:
    """No gradients are asked for where those of the claim agree with values."""
    oracle = CountedOracle(kind(value, gradient))
    oracle.value(X)
    assert not contradicted(oracle, X, 0.1, 0, [(y, gradient(y)) for y in (X + 1e-3, X - 1e-3)])
    assert oracle.gradients == 0


@pytest.mark.parametrize("kind", [Knowing, FunctionOracle])
@pytest.mark.parametrize("radius", [0.1, 1e-6])
@pytest.mark.parametrize("asked_before", [True, False])
def test_a_gradient_that_is_wrong_at_the_points_of_a_claim_is_found(
    kind: type[FunctionOracle], radius: float, asked_before: bool
) -> None:
    """Also where it is right everywhere else, and where nothing is known of the values yet."""

    def wrong(x: Vector) -> Vector:
        near = np.linalg.norm(x - X) <= 0.5 * radius
        return gradient(x) * (np.array([1.0, -1.0, 1.0]) if near else 1.0)

    far = X + np.array([0.9 * radius, 0.0, 0.0])
    right, mistaken = (far, wrong(far)), (X, wrong(X))
    for seed in range(20):
        for rests_on in ([mistaken], [right], [right, mistaken]):
            oracle = CountedOracle(kind(value, wrong))
            if asked_before:
                oracle.value(X)
            found = contradicted(oracle, X, radius, seed, rests_on)
            assert found == (rests_on[-1] is mistaken)


def test_curvature_on_one_side_accuses_nobody() -> None:
    """Next to a minimum a difference on one side is all curvature; both sides together agree."""
    oracle = CountedOracle(Knowing(lambda x: float(1e6 * x @ x), lambda x: 2e6 * x))
    for seed in range(20):
        y = np.random.default_rng(seed).normal(size=3) * 1e-9
        assert not contradicted(oracle, np.zeros(3), 1.0, seed, [(y, 2e6 * y)])
