"""What an adversarial review of the checker found; each line was wrong once."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest

import goldstein as gs
from goldstein.calculus import Expression
from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates import NearCertificate as Near

BOTH = [[1.0, 1.0], [-1.0, -1.0]]


@pytest.fixture
def x() -> gs.Variable:
    return gs.Variable(2)


def test_a_rational_threshold_is_not_rounded(x) -> None:
    F = gs.sum(gs.pseudo_huber(x[:1], Fraction(5, 2**1075))) * 1e300
    exact = Fraction(5, 2**1075) * Fraction(1e300)
    try:
        claim = Near.prove(F, [1, 0], [1, 0], [[1.0, 1.0]], [1.0])
    except gs.NotCertifiableError:
        return
    assert Fraction(claim.eps) >= exact * Fraction(999, 1000)


def test_a_subclass_of_an_atom_is_not_its_base() -> None:
    class Odd(Expression):
        def value(self, x):
            return 5 * super().value(x)

    relu = gs.relu(gs.Variable(1))
    F = gs.sum(Odd(relu.kind, relu.args, relu.shape, relu.data, relu.name))
    with pytest.raises(gs.NotCertifiableError, match="user code"):
        Near.prove(F, [-1.0], [-1], [[1.0]], [1.0])


def test_gradients_that_cannot_be_bounded_are_not_called_short() -> None:
    """Every entry of the gradient is 1; in floats it may be anything up to 16."""
    B = np.zeros((200, 300))
    B[0], B[1], B[-1] = 1e17, 1.0, -1e17
    F, y = gs.sum(B @ gs.Variable(300)), np.ones(300)
    found = GoldsteinCertificate.from_gradients(y, y[None] + 0.01, F.gradient(y)[None]).verify(F)
    assert found.eps >= 300**0.5
    assert not found.ok


def test_empty_rows_of_large_data_are_no_kinks() -> None:
    rng = np.random.default_rng(0)
    A, b, e = rng.standard_normal((500, 100)), np.ones(500), np.eye(100)[0]
    A[0], A[1], b[:2] = 0.0, e, 0.0
    F = gs.sum(gs.relu(A @ gs.Variable(100) - b))
    claim = Near.prove(F, np.zeros(100), np.zeros(100), np.array([e, -e]) + 1e-3, [0.5, 0.5])
    assert claim.eps == pytest.approx(0.5, rel=1e-9)
    assert claim.verify(F).ok


def test_pseudo_huber_keeps_its_digits(x) -> None:
    def eps(F: gs.Expression, at: list[float]) -> float:
        return Near.prove(F, at, at, [[1.0, 1.0]], [1.0]).eps

    assert eps(gs.max(gs.pseudo_huber(x)), [1e-9, 2e-9]) == pytest.approx(2e-9)
    assert eps(gs.sum(gs.pseudo_huber(x, 1e100)), [1.0, 2.0]) == pytest.approx(5**0.5)
    squared = gs.square(gs.sum(gs.pseudo_huber(x, 1e10)))
    assert eps(squared, [1.0, 2.0]) == pytest.approx(5 * 5**0.5)


def test_slopes_of_logarithms_are_rational(x) -> None:
    F = gs.sum(gs.log_sum(x))
    assert Near.prove(F, [0, 0], [0, 0], BOTH, [1.0, 1.0]).eps == 0.0


@pytest.mark.parametrize("first", [True, False])
def test_kinks_elsewhere_do_not_matter(x, first: bool) -> None:
    parts = [gs.sum(gs.abs(x)), gs.relu(gs.norm2(x * 0.0))]
    F = parts[0] + parts[1] if first else parts[1] + parts[0]
    assert Near.prove(F, [0, 0], [0, 0], BOTH, [1.0, 1.0]).eps <= 1e-12


def test_empty_parts_add_nothing(x) -> None:
    for nothing in (gs.sum(x[:0]), gs.sum_squares(x[:0]), gs.sum(np.zeros((0, 2)) @ x)):
        F = nothing + gs.sum(gs.abs(x))
        assert Near.prove(F, [0, 0], [0, 0], BOTH, [1.0, 1.0]).eps == 0.0


def test_nested_squares_end() -> None:
    u = gs.Variable(1)
    for _ in range(17):
        u = gs.square(u)
    F, y = gs.sum(u), 1 + 2.0**-52
    began = time.process_time()
    claim = Near.prove(F, [y], [y], [[1.0]], [1.0])
    assert time.process_time() - began < 30
    assert claim.eps == pytest.approx(2.0**17, rel=1e-6)


def test_many_tied_rows_take_seconds() -> None:
    F = gs.sum(gs.row_max(gs.Variable(3000).reshape(1500, 2)))
    ways, at = np.random.default_rng(0).standard_normal((2, 3000)), np.zeros(3000)
    began = time.process_time()
    assert Near.prove(F, at, at, ways, [1.0, 1.0]).verify(F).ok
    assert time.process_time() - began < 30
