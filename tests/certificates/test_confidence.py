"""Bounds with confidence: the promised coverage holds, false premises are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import goldstein as gs
from goldstein.certificates.confidence import confidence_bound, confidence_of, sampling_slack


def noisy_sign(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gradient of E|x - U|, U uniform on [-1, 1]: its mean is x on [-1, 1]."""
    return np.sign(x - rng.uniform(-1.0, 1.0, x.size))


STREAM = gs.SampleStream(noisy_sign)


def test_slack_is_the_formula() -> None:
    gamma, n, bound = 0.05, 400, 3.0
    expected = bound * (1 + math.sqrt(2 * math.log(1 / gamma))) / math.sqrt(n)
    assert sampling_slack(n, bound, 1 - gamma) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_coverage(confidence: float) -> None:
    """At x = 0.3 the combined gradient is 0.3; the bound may be below it at most 1 - confidence."""
    points, weights = [[0.2], [0.4]], [0.5, 0.5]
    failures = 0
    for seed in range(200):
        bound = confidence_bound(
            STREAM, [0.3], points, weights, samples=25, gradient_bound=1.0,
            confidence=confidence, rng=np.random.default_rng(seed),
        )  # fmt: skip
        failures += bound.eps < 0.3
    assert failures <= (1 - confidence) * 200


@pytest.mark.parametrize("dim", [1, 20])
def test_deviation_of_the_mean_is_within_the_slack(dim: int) -> None:
    """Vectors on the unit sphere, the worst case of the inequality."""
    rng = np.random.default_rng(dim)
    misses = 0
    for _ in range(300):
        v = rng.normal(size=(50, dim))
        v /= np.linalg.norm(v, axis=1)[:, None]
        misses += np.linalg.norm(v.mean(axis=0)) > sampling_slack(50, 1.0, 0.9)
    assert misses <= 30


def test_bound_shrinks_like_the_root_of_the_samples() -> None:
    slacks = [sampling_slack(n, 1.0, 0.99) for n in (100, 400)]
    assert slacks[0] / slacks[1] == pytest.approx(2.0)


def test_all_points_share_each_sample() -> None:
    seen: list[float] = []

    def gradient(x, rng):
        seen.append(float(rng.uniform()))
        return np.zeros(1)

    confidence_bound(
        gs.SampleStream(gradient), [0.0], [[0.1], [-0.1]], [0.5, 0.5], samples=5,
        gradient_bound=1.0, rng=np.random.default_rng(0),
    )  # fmt: skip
    assert seen[0::2] == seen[1::2]
    assert len(set(seen)) == 5


def test_certificate_of_training_data_carries_over() -> None:
    rng = np.random.default_rng(1)
    data = rng.uniform(-1.0, 1.0, 200)
    train = gs.FiniteSum(lambda x, i: np.sign(x - data[i]), 200, 10)
    found = gs.minimize(train, [0.5], eps=0.02, delta=0.05, method="o2nc", rng=0)
    assert found.success
    bound = confidence_of(
        found.certificate, STREAM, samples=4000, gradient_bound=1.0, rng=np.random.default_rng(5)
    )
    # The population gradient at x is x itself.
    assert abs(found.x[0]) - 0.05 <= bound.eps <= 0.3
    assert bound.label == "estimated"
    assert bound.delta <= 0.05
    assert "confidence 0.99" in repr(bound)


def test_a_wrong_gradient_bound_is_noticed() -> None:
    with pytest.raises(gs.InputError, match="gradient_bound"):
        confidence_bound(
            STREAM, [0.0], [[0.1]], [1.0], samples=3, gradient_bound=0.5,
            rng=np.random.default_rng(0),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"weights": [0.7, 0.7]}, "weights"),
        ({"weights": [1.5, -0.5]}, "weights"),
        ({"points": [[0.1]]}, "shape"),
        ({"samples": 0}, "samples"),
        ({"confidence": 1.0}, "confidence"),
        ({"gradient_bound": -1.0}, "gradient_bound"),
    ],
)
def test_bad_premises_are_named(change: dict, word: str) -> None:
    arguments = {
        "points": [[0.1], [-0.1]], "weights": [0.5, 0.5], "samples": 5, "gradient_bound": 1.0,
        "confidence": 0.9, "rng": np.random.default_rng(0),
    }  # fmt: skip
    with pytest.raises(gs.InputError, match=word):
        confidence_bound(STREAM, [0.0], **{**arguments, **change})


def test_samples_may_be_drawn_in_place() -> None:
    def in_place(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        x[:] = np.sign(x - 0.25)
        return x

    points, weights = np.array([[0.2], [0.3]]), [0.5, 0.5]
    found = confidence_bound(
        gs.SampleStream(in_place), [0.25], points, weights, samples=10, gradient_bound=1.0,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert found.observed == 0.0
    assert points.tolist() == [[0.2], [0.3]]
