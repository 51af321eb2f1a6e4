"""check_gradient names the coordinates that are wrong, and only those."""

from __future__ import annotations

import numpy as np
import pytest
from tests.functions import norm1

import goldstein as gs


@pytest.mark.parametrize("wrong", [[0], [3], [1, 4], [0, 1, 2, 3, 4, 5]])
def test_the_wrong_coordinates_are_named(wrong: list[int]) -> None:
    def gradient(x: np.ndarray) -> np.ndarray:
        g = np.sign(x)
        g[wrong] *= 1.5
        return g

    found = gs.check_gradient(norm1, gradient, np.linspace(-2, 3, 6))
    assert not found
    assert found.wrong_coordinates == wrong
    assert f"coordinate {wrong[0]}: gradient" in found.message
    assert "FAILED" in repr(found)


def test_a_sign_error_and_a_missing_factor() -> None:
    def f(x: np.ndarray) -> float:
        return 0.5 * float(x @ x) + abs(x[0] - x[1])

    def g(x: np.ndarray) -> np.ndarray:
        s = np.sign(x[0] - x[1])
        return x + np.array([s, s, 0.0])

    assert gs.check_gradient(f, g, [0.3, -0.2, 5.0]).wrong_coordinates == [1]


@pytest.mark.parametrize("scale", [1e-9, 1e-6, 1.0, 1e6])
def test_the_scale_of_the_function_does_not_matter(scale: float) -> None:
    def f(x: np.ndarray) -> float:
        return scale * norm1(x)

    x = np.array([1.0, -2.0, 0.5])
    assert gs.check_gradient(f, lambda x: scale * np.sign(x), x).ok
    assert gs.check_gradient(f, lambda x: 2 * scale * np.sign(x), x).wrong_coordinates == [0, 1, 2]
    assert gs.check_gradient(f, np.zeros_like, x).wrong_coordinates == [0, 1, 2]
    noisy = np.random.default_rng(0).normal(size=(3000, 3))
    long = gs.check_gradient(
        lambda x: scale * np.abs(noisy @ x).sum(), lambda x: scale * np.sign(noisy @ x) @ noisy, x
    )
    assert long.ok, long.message


def test_a_constant_function_has_the_gradient_zero() -> None:
    assert gs.check_gradient(lambda x: 7.0, np.zeros_like, [1.0, 2.0]).ok
    assert not gs.check_gradient(lambda x: 7.0, np.ones_like, [1.0, 2.0]).ok


def test_right_gradients_pass_even_around_a_kink_and_for_large_values() -> None:
    assert gs.check_gradient(norm1, np.sign, np.zeros(4)).ok
    big = gs.check_gradient(lambda x: 1e9 + norm1(x), np.sign, np.ones(3))
    assert big.ok, big.message
    assert gs.check_gradient(lambda x: float(x @ x), lambda x: 2 * x, 1e5 * np.ones(3)).ok


def test_every_built_in_kind_of_call() -> None:
    assert gs.check_gradient(lambda x: (norm1(x), np.sign(x)), True, [1.0, -2.0])
    assert gs.check_gradient(
        lambda x, c: c * norm1(x), lambda x, c: c * np.sign(x), [1.0], args=(2.0,)
    )


def test_large_dimensions_check_a_random_subset() -> None:
    found = gs.check_gradient(norm1, np.sign, np.ones(500), max_coordinates=20)
    assert found.message.startswith("20 coordinates agree")


def test_kinks_everywhere_and_bad_input() -> None:
    def kink(x: np.ndarray) -> np.ndarray:
        raise gs.KinkError("corner", x)

    with pytest.raises(ValueError, match="every random point hit a kink"):
        gs.check_gradient(norm1, kink, [1.0])
    with pytest.raises(ValueError, match="needs a point"):
        gs.check_gradient(norm1, np.sign)
    with pytest.raises(ValueError, match="finite vector"):
        gs.check_gradient(norm1, np.sign, [np.nan])
    with pytest.raises(ValueError, match="points must be at least 1"):
        gs.check_gradient(norm1, np.sign, [1.0], points=0)
