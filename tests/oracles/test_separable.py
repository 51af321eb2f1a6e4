"""Sums of elements: the sum is the sum, and bad input is refused in words."""

import numpy as np
import pytest

import goldstein as gs
from goldstein.errors import InputError, InputTypeError


def stacked(u):
    return np.abs(u[:, 0] - u[:, 1]) + u[:, 1] ** 2


def stacked_gradient(u):
    s = np.sign(u[:, 0] - u[:, 1])
    return np.stack([s, 2 * u[:, 1] - s], axis=1)


PAIR = (stacked, stacked_gradient)


@pytest.mark.parametrize("seed", range(5))
def test_value_and_gradient_are_the_sums_of_the_elements(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 30))
    table = np.array([rng.choice(d, 2, replace=False) for _ in range(40)])
    # The same, with elements of one and of three variables, one by one and stacked.
    triple = rng.choice(d, 3, replace=False)
    alone = np.arange(d)[:, None]
    f = gs.PartiallySeparable(
        [PAIR, (lambda u: u @ u, lambda u: 2 * u), (lambda u: u[:, 0] ** 4, lambda u: 4 * u**3)],
        [table, triple, alone],
    )
    assert f.dim == d
    assert f.elements == 41 + d
    for _ in range(3):
        x = rng.standard_normal(d)
        by_hand = sum(stacked(x[row][None])[0] for row in table)
        by_hand += (x[triple] ** 2).sum() + (x**4).sum()
        gradient = 4 * x**3
        np.add.at(gradient, triple, 2 * x[triple])
        for row in table:
            np.add.at(gradient, row, stacked_gradient(x[row][None])[0])
        assert np.isclose(f.value(x), by_hand, rtol=1e-13)
        assert np.allclose(f.gradient(x), gradient, rtol=1e-13, atol=1e-13)
        assert np.isclose(f.element_values(x).sum(), by_hand, rtol=1e-13)


def test_a_variable_in_no_element_has_derivative_zero():
    f = gs.PartiallySeparable(PAIR, [[0, 1]], dim=4)
    assert f.gradient(np.ones(4)).tolist() == [0.0, 2.0, 0.0, 0.0]


def test_what_is_remembered_is_not_what_the_caller_overwrites():
    f = gs.PartiallySeparable(PAIR, [[0, 1], [1, 2]])
    x = np.array([3.0, 1.0, 0.0])
    before = f.value(x)
    x[:] = 0.0
    assert f.value(x) == 0.0
    assert f.value(np.array([3.0, 1.0, 0.0])) == before


def test_an_evaluation_of_the_sum_is_one_call_and_asks_every_element_once():
    asked = []

    def value(u):
        asked.append(len(u))
        return stacked(u)

    f = gs.PartiallySeparable((value, stacked_gradient), np.arange(20)[:, None] + [0, 1])
    res = gs.minimize(f, np.ones(21), eps=1e-2, delta=1e-2, rng=0)
    assert res.success
    assert set(asked) == {20}
    assert len(asked) <= res.nfev + 5  # checks of the gradient besides


@pytest.mark.parametrize(
    ("terms", "indices", "words"),
    [
        (PAIR, [[0, -1]], r"\[0, -1\].*count from 0"),
        (PAIR, [[0, 1], [2, 2]], r"element 1 .*\[2, 2\].*twice"),
        (PAIR, [], "shape"),
        (PAIR, [[[0, 1]]], "shape"),
        (PAIR, [[0, 1], [2]], "no array"),
        ([PAIR, PAIR], [[[0, 1]]], "2 pairs in terms, 1 entries"),
        ([PAIR], 3, "entries in indices"),
    ],
)
def test_bad_indices_are_refused_in_words(terms, indices, words):
    with pytest.raises(InputError, match=words):
        gs.PartiallySeparable(terms, indices)


def test_bad_types_are_refused_in_words():
    with pytest.raises(InputTypeError, match="expected integers"):
        gs.PartiallySeparable(PAIR, [[0.0, 1.0]])
    with pytest.raises(InputTypeError, match="pair"):
        gs.PartiallySeparable(stacked, [[0, 1]])
    with pytest.raises(InputTypeError, match=r"terms\[0\]"):
        gs.PartiallySeparable([stacked], [[0, 1]])
    with pytest.raises(InputError, match="dim = 2"):
        gs.PartiallySeparable(PAIR, [[0, 3]], dim=2)
    with pytest.raises(InputTypeError, match="dim must be"):
        gs.PartiallySeparable(PAIR, [[0, 3]], dim=4.0)


def test_answers_of_a_wrong_shape_are_refused_in_words():
    chain = np.arange(9)[:, None] + [0, 1]
    f = gs.PartiallySeparable((lambda u: u.sum(), stacked_gradient), chain)
    with pytest.raises(InputError, match=r"expected \(9,\)"):
        f.value(np.ones(10))
    f = gs.PartiallySeparable((stacked, lambda u: u[:, 0]), chain)
    with pytest.raises(InputError, match=r"expected \(9, 2\)"):
        f.gradient(np.ones(10))
    with pytest.raises(InputError, match="10"):
        gs.minimize(f, np.ones(7), eps=1e-2, delta=1e-2)


def test_a_check_is_not_answered_from_memory():
    """The elements at the last point are remembered for the search; the sum is always asked."""
    shift = np.zeros(1)
    f = gs.PartiallySeparable(
        (lambda u: (u[:, 0] - shift[0]) ** 2, lambda u: 2 * (u - shift[0])), np.arange(3)[:, None]
    )
    x = np.ones(3)
    told = f.value(x), f.gradient(x)
    shift[0] = 5.0  # another function from now on
    assert f.value(x) == 48.0 != told[0]
    assert f.gradient(x).tolist() == [-8.0] * 3 != told[1].tolist()
    for answers in (f.element_values(x), f.element_gradients(x)):
        with pytest.raises(ValueError, match="read-only"):
            answers[0] = 7.0
