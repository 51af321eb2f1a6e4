"""Where the bundle looks after a failed step: every choice finds what the theory promises."""

from __future__ import annotations

import numpy as np
import pytest
from tests.functions import norm1

import goldstein as gs
from goldstein.errors import InputError
from goldstein.oracles import CountedOracle, as_oracle
from goldstein.solvers.ask_tell import drive
from goldstein.solvers.ball_state import LINES, BallState
from goldstein.solvers.logic.algorithm_one import HALF, aim, look, looked, told_half
from goldstein.solvers.logic.questions import NOTHING
from goldstein.solvers.tuning import TUNING


def gradients_along(
    line: str,
    oracle: CountedOracle,
    rng: np.random.Generator,
    x: np.ndarray,
    fx: float,
    m: np.ndarray,
    norm: float,
    radius: float,
    ratio: float,
    end_value: float,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """All points asked for after a step along -m that ended at `end_value`, with gradients."""
    ball = BallState(x=x, fx=fx, centre=x, centre_value=fx, m=m, rng=rng, line=LINES.index(line))
    found = []

    def told(ball: BallState) -> int:
        if ball.phase == HALF:
            return told_half(ball)
        found.append((ball.point, ball.found))
        return looked(ball)

    aim(ball, norm, radius, ratio)
    drive(oracle, ball, look(ball, radius, end_value), told, lambda ball: NOTHING)
    return found


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("method", ["auto", "bundle"])
@pytest.mark.parametrize("name", ["maxquad", "chained_lq", "chained_crescent_2"])
def test_every_line_oracle_leads_to_a_certificate(name: str, method: str, line: str) -> None:
    problem = gs.problems.get(name)
    res = gs.minimize(
        problem,
        problem.x0,
        eps=0.05,
        delta=0.05,
        method=method,
        rng=0,
        max_calls=20_000,
        options={"line": line},
    )
    assert res.success
    assert res.certificate.verify(problem).ok


@pytest.mark.parametrize("line", LINES)
def test_asked_points_lie_in_the_ball_and_miss_the_segment(line: str) -> None:
    oracle = CountedOracle(as_oracle(norm1, np.sign))
    rng = np.random.default_rng(0)
    x, m = np.array([0.3, -0.2, 0.1]), np.array([1.0, 1.0, 1.0])
    norm = float(np.linalg.norm(m))
    for _ in range(50):
        for y, g in gradients_along(line, oracle, rng, x, 0.6, m, norm, 0.5, 1.0, 0.55):
            step = y - x
            assert np.linalg.norm(step) <= 0.5
            # Off the line: a point drawn from the line itself could sit on a kink every time.
            assert np.linalg.norm(step - (step @ m) / 3.0 * m) > 1e-9
            assert np.array_equal(g, np.sign(y))


def test_bisection_finds_the_kink_of_a_convex_function_in_logarithmic_time() -> None:
    # f falls with slope 1 up to 2**-7 of the way and then rises: a random point misses that piece
    # almost always, and halving towards the larger slope needs one gradient.
    kink = 2.0**-7
    asked: list[float] = []

    def gradient(x: np.ndarray) -> np.ndarray:
        asked.append(-x[0])
        return np.array([-1.0 if -x[0] > kink else 1.0])

    oracle = CountedOracle(as_oracle(lambda x: abs(-x[0] - kink), gradient))
    rng = np.random.default_rng(0)
    found = gradients_along(
        "bisection", oracle, rng, np.zeros(1), kink, np.ones(1), 1.0, 1.0, 1.0, 0.8
    )
    assert len(found) == 1
    # The other way round the good piece is the last hundredth, and every halving leads to it.
    asked.clear()
    late = 1.0 - 1.0 / 8.0 - kink

    def late_gradient(x: np.ndarray) -> np.ndarray:
        asked.append(-x[0])
        return np.array([-40.0 if -x[0] > late else 1.0])

    def late_value(x: np.ndarray) -> float:
        return float(-x[0] * -1.0 if -x[0] <= late else -late + 40.0 * (-x[0] - late))

    oracle = CountedOracle(as_oracle(late_value, late_gradient))
    end = late_value(np.array([-0.875]))
    found = gradients_along(
        "bisection", oracle, rng, np.zeros(1), 0.0, np.ones(1), 1.0, 1.0, 1.0, end
    )
    assert found[-1][1][0] == -40.0
    assert np.all(np.diff(asked) > 0)
    assert len(asked) <= 8


def test_hybrid_falls_back_on_a_random_point_when_bisection_fails() -> None:
    oracle = CountedOracle(as_oracle(lambda x: -float(x[0]), lambda x: np.array([1.0, 0.0])))
    x, m = np.zeros(2), np.array([1.0, 0.0])
    count = {
        line: len(
            gradients_along(line, oracle, np.random.default_rng(0), x, 0.0, m, 1.0, 1.0, 1.0, 1.0)
        )
        for line in LINES
    }
    most = TUNING.no_descent
    assert count == {"random": 1, "bisection": most, "hybrid": most + 1}


def test_unknown_line_oracle_is_refused() -> None:
    with pytest.raises(InputError, match="line must be one of random, bisection, hybrid"):
        gs.minimize(abs, [1.0], lambda x: x, eps=1.0, delta=1.0, options={"line": "golden"})
