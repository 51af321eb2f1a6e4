"""Claims that only a weakened checker would take: each kills mutants that other tests let live."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.certificates import NearCertificate
from goldstein.errors import GoldsteinError

TINY = Fraction(1, 10**400)


def near(F: gs.Expression, pivot: list[Fraction], ways: list[list[float]]) -> NearCertificate:
    weights = [1.0 / len(ways)] * len(ways)
    return NearCertificate.prove(F, [0.0] * len(pivot), pivot, ways, weights)


@pytest.mark.parametrize("pivot", [[TINY, Fraction(0)], [Fraction(0), -TINY], [TINY, TINY]])
def test_a_row_beside_the_origin_is_not_on_it(pivot: list[Fraction]) -> None:
    """Too small for enclosures, and not 0: the norm has one gradient there, of length 1."""
    z = gs.Variable(2)
    ways = [[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]]
    try:
        claim = near(gs.norm2(z), pivot, ways)
    except GoldsteinError:
        return
    assert claim.eps >= 1.0 - 1e-12


def test_the_origin_itself_is_a_kink() -> None:
    z = gs.Variable(2)
    ways = [[0.0, 1.0], [0.0, -1.0]]
    assert near(gs.norm2(z), [Fraction(0), Fraction(0)], ways).eps <= 1e-12


def test_a_tiny_step_beside_a_kink_is_not_on_it() -> None:
    z = gs.Variable(1)
    try:
        claim = near(gs.sum(gs.abs(z)), [TINY], [[1.0], [-1.0]])
    except GoldsteinError:
        return
    assert claim.eps >= 1.0


def test_weights_that_do_not_sum_to_one_prove_nothing() -> None:
    """Gradients that do not cancel, made short by small weights."""
    certificate = gs.certify(lambda x: np.abs(x).sum(), [1.0], np.sign, delta=1e-3, rng=0)
    small = replace(certificate, weights=certificate.weights * 1e-6, eps=1e-5, digest="")
    assert not small.verify(lambda x: np.abs(x).sum(), np.sign).ok


@pytest.mark.parametrize("name", ["eps", "delta"])
@pytest.mark.parametrize("value", ["0.1", True, None, [0.1], 1j, 10**400, Fraction(1, 10)])
def test_a_claim_is_made_of_numbers(name: str, value: Any) -> None:
    """`float` would read texts and truth values; a claim holds neither."""
    certificate = gs.certify(lambda x: np.abs(x).sum(), [0.0], np.sign, delta=1e-3, rng=0)
    with pytest.raises((gs.InputError, gs.InputTypeError)):
        replace(certificate, **{name: value}, digest="")
