"""Where the bundle looks after a failed step: what Algorithm 1 promises of that point."""

from __future__ import annotations

import numpy as np
import pytest
from tests.functions import norm1

import goldstein as gs
from goldstein.errors import InputError
from goldstein.solvers import Auto
from goldstein.solvers.ball_state import BallState
from goldstein.solvers.logic.bundle_member import aim, look


@pytest.mark.parametrize("method", ["auto", "bundle"])
@pytest.mark.parametrize("name", ["maxquad", "chained_lq", "chained_crescent_2"])
def test_the_segment_leads_to_a_certificate(name: str, method: str) -> None:
    problem = gs.problems.get(name)
    request = {"eps": 0.05, "delta": 0.05, "max_calls": 20_000}
    res = gs.minimize(problem, problem.x0, method=method, rng=0, **request)
    assert res.success
    assert res.certificate.verify(problem).ok


def test_asked_points_lie_in_the_ball_and_miss_the_segment() -> None:
    rng = np.random.default_rng(0)
    x, m = np.array([0.3, -0.2, 0.1]), np.array([1.0, 1.0, 1.0])
    ball = BallState(x=x, fx=0.6, centre=x, centre_value=0.6, m=m, rng=rng)
    aim(ball, float(np.linalg.norm(m)), 0.5, 1.0)
    for _ in range(50):
        look(ball, 0.5)
        step = ball.point - x
        assert np.linalg.norm(step) <= 0.5
        # Off the line: a point drawn from the line itself could sit on a kink every time.
        assert np.linalg.norm(step - (step @ m) / 3.0 * m) > 1e-9


def test_other_choices_are_ignored_with_a_warning() -> None:
    request = {"eps": 0.1, "delta": 0.1, "rng": 0}
    plain = gs.minimize(norm1, [0.3, -0.2], np.sign, **request)
    with pytest.warns(DeprecationWarning, match="line='bisection' is ignored"):
        res = gs.minimize(norm1, [0.3, -0.2], np.sign, options={"line": "bisection"}, **request)
    assert np.array_equal(res.x, plain.x)
    with pytest.raises(InputError, match="line must be one of random, bisection, hybrid"):
        Auto(line="nowhere")
