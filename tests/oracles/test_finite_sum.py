"""Finite sums and streams: unbiased batches, exact full gradients, clear refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.functions import norm1

from goldstein.errors import InputError, InputTypeError
from goldstein.oracles.function import FiniteSum, FunctionOracle, SampleStream, as_stochastic


def least_absolute(n: int, d: int, batch: int, vectorized: bool = False) -> tuple[FiniteSum, tuple]:
    rng = np.random.default_rng(n * 31 + d)
    rows, targets = rng.normal(size=(n, d)), rng.normal(size=n)

    def grad_i(x, i):
        residual = rows[i] @ x - targets[i]
        return np.sign(residual)[..., None] * rows[i] if vectorized else np.sign(residual) * rows[i]

    def value_i(x, i):
        return np.abs(rows[i] @ x - targets[i])

    return FiniteSum(grad_i, n, batch, value_i=value_i, vectorized=vectorized), (rows, targets)


@given(n=st.integers(1, 700), d=st.integers(1, 5), vectorized=st.booleans())
def test_full_gradient_and_value_are_the_mean(n: int, d: int, vectorized: bool) -> None:
    oracle, (rows, targets) = least_absolute(n, d, 1, vectorized)
    x = np.linspace(-1.0, 1.0, d)
    expected = (np.sign(rows @ x - targets)[:, None] * rows).mean(axis=0)
    np.testing.assert_allclose(oracle.gradient(x), expected, atol=1e-13)
    assert oracle.value(x) == pytest.approx(np.abs(rows @ x - targets).mean(), rel=1e-12)


@pytest.mark.parametrize("batch", [1, 7, 40])
def test_batches_are_unbiased(batch: int) -> None:
    oracle, _ = least_absolute(40, 3, batch)
    x = np.array([0.3, -0.2, 0.1])
    rng = np.random.default_rng(5)
    draws = np.array([oracle.sample(x, rng) for _ in range(4000)])
    error = np.abs(draws.mean(axis=0) - oracle.gradient(x))
    assert (error <= 5.0 * draws.std(axis=0) / np.sqrt(4000) + 1e-12).all()


def test_a_batch_of_everything_has_no_noise() -> None:
    oracle, _ = least_absolute(9, 2, 9)
    x = np.array([0.1, 0.2])
    drawn = oracle.sample(x, np.random.default_rng(0))
    np.testing.assert_allclose(drawn, oracle.gradient(x), atol=1e-15)


def test_full_gradient_never_holds_more_than_a_block_of_rows() -> None:
    largest = 0

    def grad_i(x, i):
        nonlocal largest
        largest = max(largest, len(i))
        return np.ones((len(i), x.size))

    FiniteSum(grad_i, 10_000, 10, vectorized=True).gradient(np.zeros(2))
    assert largest <= 256


@pytest.mark.parametrize(
    ("arguments", "kind", "word"),
    [
        ({"grad_i": 3, "n": 2, "batch_size": 1}, InputTypeError, "grad_i"),
        ({"grad_i": np.sign, "n": 0, "batch_size": 1}, InputError, "n = 0"),
        ({"grad_i": np.sign, "n": 2.5, "batch_size": 1}, InputTypeError, "n is float"),
        ({"grad_i": np.sign, "n": 2, "batch_size": 3}, InputError, "exceeds"),
        ({"grad_i": np.sign, "n": 2, "batch_size": 1, "value_i": 1.0}, InputTypeError, "value_i"),
    ],
)
def test_bad_constructions_say_what_to_do(arguments: dict, kind: type, word: str) -> None:
    with pytest.raises(kind, match=word):
        FiniteSum(**arguments)


@pytest.mark.parametrize("vectorized", [False, True])
def test_wrong_gradient_shape_is_reported(vectorized: bool) -> None:
    oracle = FiniteSum(lambda x, i: np.zeros(7), 4, 2, vectorized=vectorized)
    with pytest.raises(InputError, match="shape"):
        oracle.gradient(np.zeros(3))


def test_values_and_full_gradients_that_do_not_exist() -> None:
    with pytest.raises(InputTypeError, match="value_i"):
        FiniteSum(lambda x, i: x, 2).value(np.zeros(1))
    stream = SampleStream(lambda x, rng: x)
    with pytest.raises(InputTypeError, match="no full gradient"):
        stream.gradient(np.zeros(1))
    with pytest.raises(InputTypeError, match="value"):
        stream.value(np.zeros(1))
    with pytest.raises(InputError, match="shape"):
        SampleStream(lambda x, rng: np.zeros(2)).sample(np.zeros(1), np.random.default_rng(0))


def test_reading_fun_and_jac() -> None:
    def noisy(x, rng):
        return x + rng.normal(size=x.size)

    def ordinary(x, scale):
        return scale * x

    finite = FiniteSum(lambda x, i: x, 3)
    assert as_stochastic(finite) is finite
    valued = as_stochastic(np.sum, finite)
    assert isinstance(valued, FiniteSum)
    assert valued.value(np.ones(3)) == 3.0
    assert not finite.has_value
    stream = as_stochastic(np.sum, noisy)
    assert isinstance(stream, SampleStream)
    assert stream.has_value
    assert stream.value(np.ones(2)) == 2.0
    assert isinstance(as_stochastic(noisy), SampleStream)
    assert as_stochastic(np.sum, np.sign) is None
    assert as_stochastic(ordinary) is None


def test_an_ordinary_oracle_is_a_noiseless_one() -> None:
    oracle = FunctionOracle(norm1, np.sign)
    x = np.array([2.0, -1.0])
    np.testing.assert_array_equal(oracle.sample(x, np.random.default_rng(0)), oracle.gradient(x))


@pytest.mark.parametrize("vectorized", [False, True])
def test_terms_may_work_in_place(vectorized: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next term, the next block and the caller still see the point that was asked."""
    monkeypatch.setattr("goldstein.oracles.function.BLOCK", 3)
    centres = np.arange(12.0).reshape(6, 2)

    def value(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        x -= np.atleast_2d(centres[i])[0]
        return np.abs(x[0]) if np.ndim(i) == 0 else np.full(len(i), np.abs(x[0]))

    def gradient(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        x *= 2.0
        return x if np.ndim(i) == 0 else np.tile(x, (len(i), 1))

    f = FiniteSum(gradient, 6, value_i=value, vectorized=vectorized)
    x = np.array([1.0, -1.0])
    expected = np.repeat(centres[::3, 0], 3) if vectorized else centres[:, 0]
    assert f.value(x) == pytest.approx(np.abs(1.0 - expected).mean())
    assert f.gradient(x).tolist() == [2.0, -2.0]
    assert x.tolist() == [1.0, -1.0]
