"""Sums that leave the range of float64 on the way: their enclosures must not pretend to know."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from goldstein.calculus import Variable, logistic, softplus, square, sum
from goldstein.certificates.near import NearCertificate
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.errors import NotCertifiableError

HUGE = 1.7e308

#: Its sum is -HUGE, but the sum of the first two entries is beyond float64.
ROW = np.array([HUGE, HUGE, -HUGE, -HUGE, -HUGE])


def contains(box: Enclosure, exact: Fraction) -> bool:
    mid, rad = float(box.mid), float(box.rad)
    if not (np.isfinite(mid) and np.isfinite(rad)):
        return not np.isfinite(rad)
    return abs(Fraction(mid) - exact) <= Fraction(rad)


def test_a_sum_that_overflows_on_the_way_is_not_enclosed() -> None:
    exact = Fraction(-HUGE)
    ones = Enclosure(np.ones(5))
    assert contains((ROW[None, :] @ ones)[0], exact)
    assert contains((Enclosure(ROW[None, :]) @ ones)[0], exact)
    assert contains(Enclosure(ROW).sum(), exact)
    assert not contains(Enclosure(np.inf, 1.0), exact)


@pytest.mark.parametrize(("atom", "sign"), [(logistic, 1.0), (softplus, -1.0)])
def test_no_certificate_where_the_argument_overflows_on_the_way(atom, sign) -> None:
    # The exact slope is of size 1, and that of the overflowed argument is 0.
    F = 1e-300 * sum(atom((sign * ROW)[None, :] @ Variable(5)))
    with pytest.raises(NotCertifiableError):
        NearCertificate.prove(F, np.ones(5), np.ones(5), np.ones((1, 5)), [1.0])
    # On some machines the sum does not overflow: then the gradient is the right one.
    gradient = F.gradient(np.ones(5))
    right = 1e-300 * sign * ROW * (1.0 if atom is softplus else -1.0)
    assert np.isnan(gradient).all() or np.allclose(gradient, right, rtol=1e-12)


def test_a_value_that_overflows_does_no_harm_where_no_gradient_depends_on_it() -> None:
    F = 2.0 * sum(square(Variable(2)))
    assert F.gradient(np.array([1e200, -1e160])).tolist() == [4e200, -4e160]
