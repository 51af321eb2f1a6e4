"""What the judge does when it is left alone."""

from __future__ import annotations

import numpy as np
from tests.functions import norm1

from goldstein.construction.judge import AFRESH, Judge
from goldstein.oracles import CountedOracle, as_oracle
from goldstein.solvers.base import Evidence, Request


def test_after_many_rejections_it_looks_for_itself() -> None:
    """Also where nothing is known of the run but its request, as in the rounds of `plus=`."""
    oracle = CountedOracle(as_oracle(norm1, np.sign), 10_000)
    judge = Judge(oracle, Request(1e-3, 1e-3, 0), {})
    x = np.zeros(2)
    one_sided = Evidence(x, np.full((1, 2), 1e-4), np.ones(1), np.ones(1, dtype=bool))
    found = [judge(one_sided)[0] for _ in range(AFRESH)]
    assert found[:-1] == [None] * (AFRESH - 1)
    assert found[-1] is not None
    assert found[-1].eps <= 1e-3
