"""Plain callables as oracles: SciPy's conventions, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import goldstein as gs
from goldstein.oracles import CountedOracle, as_oracle


def test_jac_true_asks_once_for_a_value_and_a_gradient_at_one_point() -> None:
    calls = []

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        calls.append(x.copy())
        return float(x @ x), 2 * x

    oracle = as_oracle(both, True)
    x = np.array([1.0, 2.0])
    assert oracle.value(x) == 5.0
    assert np.array_equal(oracle.gradient(x), [2.0, 4.0])
    assert len(calls) == 1
    assert np.array_equal(oracle.gradient(x + 1), [4.0, 6.0])
    assert len(calls) == 2


def test_args_reach_both() -> None:
    oracle = as_oracle(lambda x, a: a * x.sum(), lambda x, a: a * np.ones(2), args=(3.0,))
    assert oracle.value(np.ones(2)) == 6.0
    assert np.array_equal(oracle.gradient(np.ones(2)), [3.0, 3.0])
    assert as_oracle(lambda x, a: a, lambda x, a: a, args=7).value(np.ones(1)) == 7  # type: ignore[arg-type]


def test_no_gradient_says_what_to_pass() -> None:
    with pytest.raises(TypeError, match=r"Pass jac=your_gradient, or jac=True"):
        as_oracle(lambda x: 0.0)
    with pytest.raises(TypeError, match="no gradient: jac is '2-point'"):
        as_oracle(lambda x: 0.0, "2-point")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="fun must be a callable"):
        as_oracle(3.0)  # type: ignore[arg-type]


def test_an_oracle_brings_its_own_gradient() -> None:
    oracle = as_oracle(lambda x: 0.0, lambda x: x)
    assert as_oracle(oracle) is oracle
    with pytest.raises(TypeError, match="brings its own gradient"):
        as_oracle(oracle, lambda x: x)


def test_jac_true_without_a_pair() -> None:
    oracle = as_oracle(lambda x: 1.0, True)
    with pytest.raises(gs.InputTypeError, match=r"returns a pair \(value, gradient\)"):
        oracle.value(np.ones(1))


def test_a_pair_is_handed_on_as_it_is() -> None:
    """Converting it early hid single precision and dropped imaginary parts with a warning."""
    x = np.array([1.0, -2.0])
    for kind, words in ((np.complex128, "array of complex128"), (object, "array of object")):
        pair = as_oracle(lambda x, kind=kind: (0.0, np.sign(x).astype(kind)), True)
        with pytest.raises(gs.OracleError, match=words):
            CountedOracle(pair).gradient(x)
    with pytest.raises(gs.OracleError, match=r"gradient is None \(a missing return"):
        CountedOracle(as_oracle(lambda x: (0.0, None), True)).gradient(x)
    single = CountedOracle(as_oracle(lambda x: (0.0, np.sign(x).astype(np.float32)), True))
    assert single.gradient(x).dtype == np.float64
    with pytest.raises(gs.InputError, match="gradients in float32"):
        single.require_visible(x, 1e-9)


def test_a_list_of_value_and_gradient_is_a_pair() -> None:
    oracle = CountedOracle(as_oracle(lambda x: [x.sum(), [1, 1]], True))
    assert oracle.value(np.ones(2)) == 2.0
    assert np.array_equal(oracle.gradient(np.ones(2)), [1.0, 1.0])


@pytest.mark.parametrize("layout", [None, [2, 1]])
def test_a_function_goes_by_its_own_name(layout: list[int] | None) -> None:
    def valley(x: np.ndarray) -> tuple[float, None]:
        return 0.0, None

    oracle = CountedOracle(as_oracle(valley, lambda x: x, layout=layout))
    assert oracle.name == "valley"
    with pytest.raises(gs.OracleError, match=r"valley: gradient is None \(a missing return"):
        CountedOracle(as_oracle(valley, True)).gradient(np.ones(2))
