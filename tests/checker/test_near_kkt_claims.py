"""Near-KKT claims, true ones and forged ones: rational arithmetic leaves no room on either side.

Minimise -2 x_1 + 3 x_2 + |x_3| over 0 <= x <= 4 with x_1 <= 1 and (x_1 - 1)^2 + x_2 + x_3 <= 3: the
answer is (1, 0, 0). A forged claim is refused by the check that names the lie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.forging import Forgery, bad_entries

import goldstein as gs
from goldstein.certificates import NearKKTCertificate
from goldstein.certificates.near import separating
from goldstein.checker import near
from goldstein.checker.constrained.limits import Box, Limits
from goldstein.checker.constrained.near import ExactProblem, linear_program
from goldstein.checker.sides import point_at
from goldstein.checker.verification import Verification

W = gs.Variable(3)
F = gs.sum(W * np.array([-2.0, 3.0, 0.0])) + gs.abs(W[2])
ROUND = gs.sum_squares(W[:1] - 1.0) + W[1] + W[2]
TINY = Fraction(1, 10**400)


@dataclass
class Levels(Limits):
    """lower <= c <= upper."""

    lower: Any
    upper: Any
    straight: bool = True

    def __post_init__(self) -> None:
        self.size = len(self.upper)
        self.equal = self.lower == self.upper
        self.linear = np.full(self.size, self.straight)

    def name(self, i: int) -> str:
        return f"c[{i}]"


ROW = linear_program(np.array([1.0, 0.0, 0.0]))
PROBLEM = ExactProblem(
    box=Box(np.zeros(3), np.full(3, 4.0)),
    system=Levels(np.full(2, -np.inf), np.array([1.0, 3.0])),
    parts=[ROW, ROUND.program()],
    separate=separating,
)
HONEST = NearKKTCertificate(
    x=[1.125, 0.0, 0.0], exact_pivot=(Fraction(1), Fraction(0), Fraction(0)), delta=0.125, eps=0.0,
    directions=[[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]], weights=[3.0, 3.0],
    constraint_directions=[[1.0, 0.0, 0.0]], constraint_index=[0], constraint_weights=[2.0],
    normal=[0.0, -3.0, 0.0], multipliers=[2.0, 0.0],
)  # fmt: skip


def check(
    claim: NearKKTCertificate, problem: ExactProblem = PROBLEM, fun: gs.Expression = F
) -> Verification:
    return near.check(claim, fun.program(), problem, 0)


FORGERY = Forgery(HONEST, check)
forged, failed = FORGERY.forged, FORGERY.failed


def test_the_honest_claim_is_true() -> None:
    found = check(HONEST)
    assert found.ok
    assert (found.eps, found.delta, found.label) == (0.0, 0.125, "certified")
    names = [
        "numbers", "dimension", "ball", "content", "constraints", "multipliers", "normal", "sizes",
        "bounds", "feasibility", "activity", "qualification", "subgradients", "bound", "label",
    ]  # fmt: skip
    assert [c.name for c in found.checks] == names


ARRAYS = [
    "x", "directions", "weights", "constraint_directions", "constraint_weights", "normal",
    "multipliers",
]  # fmt: skip


@bad_entries
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_finite(name: str, bad: float) -> None:
    check = "numbers" if name in ("x", "directions", "weights") else "content"
    assert failed(FORGERY.spoiled(name, bad)) == {check}


@pytest.mark.parametrize("bad", [math.nan, -(2.0**-1074), -math.inf])
@pytest.mark.parametrize("name", ["eps", "delta"])
def test_numbers_are_not_negative(name: str, bad: float) -> None:
    assert failed(forged(**{name: bad})) == {"numbers"}


def test_a_changed_field_shows() -> None:
    assert failed(replace(HONEST, eps=0.5)) == {"content"}


@pytest.mark.parametrize("weights", [[0.0, 0.0], [3.0, -(2.0**-1074)], [1e308, 1e308]])
def test_weights_of_f(weights: list[float]) -> None:
    assert failed(forged(weights=weights, eps=9.0)) == {"numbers"}


def test_labels() -> None:
    for label in ("certified", "conditional", "estimated"):
        assert check(forged(label=label)).ok
    assert failed(forged(label="refuted")) == {"label"}
    assert check(forged(eps=0.0, normal=[0.0, -2.0, 0.0])).label == "conditional"


def test_dimensions() -> None:
    assert failed(HONEST, fun=gs.sum(gs.Variable(2))) == {"dimension"}
    box = replace(PROBLEM, box=Box(np.zeros(2), np.ones(2)))
    assert failed(HONEST, box) == {"sizes"}
    part = replace(PROBLEM, parts=[gs.sum(gs.Variable(2)).program(), PROBLEM.parts[1]])
    assert failed(HONEST, part) == {"sizes"}
    assert failed(forged(multipliers=[2.0])) == {"constraints"}
    assert failed(forged(constraint_index=[2])) == {"constraints"}
    assert failed(forged(constraint_index=[-1])) == {"constraints"}


def test_the_ball_is_closed_and_no_larger() -> None:
    assert failed(forged(delta=math.nextafter(0.125, 0.0))) == {"ball"}
    assert failed(forged(x=[math.nextafter(1.125, 2.0), 0.0, 0.0])) == {"ball"}


def test_x_and_pivot_are_inside_the_bounds() -> None:
    assert failed(forged(x=[1.0, -(2.0**-1074), 0.0])) == {"bounds"}
    low = forged(exact_pivot=(Fraction(1), Fraction(0), -TINY), delta=0.25)
    assert "bounds" in failed(low)
    far = forged(
        exact_pivot=(Fraction(1), Fraction(4) + TINY, Fraction(0)), delta=5.0, normal=np.zeros(3)
    )
    assert "bounds" in failed(far)


def test_the_normal_is_one_of_the_bounds_at_the_pivot() -> None:
    off = forged(exact_pivot=(Fraction(1), TINY, Fraction(0)), delta=1.0)
    assert failed(off) == {"normal"}
    assert failed(forged(normal=[0.0, 2.0**-1074, 0.0], eps=4.0)) == {"normal"}
    assert failed(forged(normal=[2.0**-1074, -3.0, 0.0])) == {"normal"}
    assert failed(forged(normal=[-(2.0**-1074), -3.0, 0.0])) == {"normal"}
    box = Box(np.zeros(3), np.array([1.0, 4.0, 4.0]))
    on = forged(x=[0.875, 0.0, 0.0], normal=[0.5, -3.0, 0.0], eps=0.5)
    assert check(on, replace(PROBLEM, box=box)).ok
    beside = forged(on, exact_pivot=(1 - TINY, Fraction(0), Fraction(0)))
    assert failed(beside, replace(PROBLEM, box=box)) == {"normal"}


def test_constraints_hold_at_the_pivot() -> None:
    above = forged(exact_pivot=(1 + TINY, Fraction(0), Fraction(0)))
    assert failed(above) == {"feasibility", "activity"}
    low = replace(PROBLEM, system=Levels(np.array([-np.inf, 0.0]), np.array([1.0, 3.0])))
    assert check(HONEST, low).ok
    low = replace(PROBLEM, system=Levels(np.array([-np.inf, 2.0**-1074]), np.array([1.0, 3.0])))
    assert failed(HONEST, low) == {"feasibility"}
    high = replace(PROBLEM, system=Levels(np.full(2, -np.inf), np.array([1.0, -(2.0**-1074)])))
    assert failed(HONEST, high) == {"feasibility"}


def test_a_constraint_with_a_multiplier_is_at_its_limit() -> None:
    below = forged(exact_pivot=(1 - TINY, Fraction(0), Fraction(0)), delta=1.0)
    assert failed(below) == {"activity"}
    # x_1 is 1, its lower limit; a negative multiplier belongs to that one.
    system = Levels(np.array([1.0, -np.inf]), np.array([2.0, 3.0]))
    lower = forged(constraint_weights=[-2.0], multipliers=[-2.0, 0.0], eps=4.0)
    assert check(lower, replace(PROBLEM, system=system)).ok
    assert failed(HONEST, replace(PROBLEM, system=system)) == {"activity"}
    assert failed(lower, replace(PROBLEM, system=Levels(np.zeros(2), np.array([1.0, 3.0])))) == {
        "activity"
    }


@pytest.mark.parametrize("stated", [2.0 * (1 + 1.1e-9), -2.0, 0.0])
def test_multipliers_are_the_weights_used(stated: float) -> None:
    system = Levels(np.array([1.0, -np.inf]), np.array([1.0, 3.0]))
    found = failed(forged(multipliers=[stated, 0.0]), replace(PROBLEM, system=system))
    assert found == {"multipliers"}


def test_the_bound_is_exact() -> None:
    claim = forged(normal=[0.0, -2.0, 0.0], eps=1.0)
    assert check(claim).ok
    found = check(forged(claim, eps=math.nextafter(1.0, 0.0)))
    assert {c.name for c in found.checks if not c.ok} == {"bound"}
    # f has weight 1 altogether, whatever its weights sum to.
    assert check(forged(claim, weights=[0.25, 0.25])).eps == 1.0
    tilted = forged(weights=[3.0, 1.0], eps=0.5)
    assert check(tilted).eps == 0.5


def test_a_direction_that_stays_on_a_kink_shows_nothing() -> None:
    assert failed(forged(directions=[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])) == {"subgradients"}


def irrational(level: float) -> ExactProblem:
    """log(e^x_1 + e^x_2) is 1.3132616875182228... at (1, 0): no rational number."""
    part = gs.softmax_cross_entropy(W[:2].reshape(1, 2), [1]) + 0.0 * W[2]
    system = Levels(np.full(2, -np.inf), np.array([1.0, level]), straight=False)
    return replace(PROBLEM, system=system, parts=[PROBLEM.parts[0], part.program()])


def test_an_irrational_value_is_enclosed() -> None:
    assert check(HONEST, irrational(1.313261687519)).ok
    assert failed(HONEST, irrational(1.313261687518)) == {"feasibility"}
    low, high = point_at(irrational(2.0).parts[1], HONEST.exact_pivot).between()
    assert low < Fraction("1.31326168751822283405") < high
    assert high - low < Fraction(1, 10**12)
    # A number that is not known exactly is not at a limit.
    on = forged(
        constraint_directions=[[1.0, 0.0, 0.0]] * 2, constraint_index=[0, 1],
        constraint_weights=[2.0, 1.0], multipliers=[2.0, 1.0], eps=9.0,
    )  # fmt: skip
    assert "activity" in failed(on, irrational(1.313261687519))


def test_radii_of_enclosures_count() -> None:
    problem = irrational(2.0)
    claim = forged(weights=[3.0, 0.0], constraint_weights=[0.0], multipliers=[0.0, 0.0])
    limits = point_at(problem.parts[1], claim.exact_pivot).limits(claim.directions[:1])
    plain, wide = (problem.residual(claim, limits, np.ones(1), times) for times in (1, 10**6))
    assert plain < wide
    truth = math.hypot(0.7310585786300049, 0.7310585786300049 + 3.0)
    assert truth <= plain <= truth * (1 + 1e-12)


def test_gradients_that_cancel_qualify_nothing() -> None:
    """x_1 <= 1 and -x_1 <= -1 as two inequalities, and as one equation."""
    twice = replace(
        PROBLEM,
        system=Levels(np.full(2, -np.inf), np.array([1.0, -1.0])),
        parts=[ROW, linear_program(np.array([-1.0, 0.0, 0.0]))],
    )
    both = forged(
        constraint_directions=[[1.0, 0.0, 0.0]] * 2, constraint_index=[0, 1],
        constraint_weights=[3.0, 1.0], multipliers=[3.0, 1.0],
    )  # fmt: skip
    assert failed(both, twice) == {"qualification"}
    equation = replace(PROBLEM, system=Levels(np.array([1.0, -np.inf]), np.array([1.0, 3.0])))
    assert check(HONEST, equation).ok


@pytest.mark.parametrize(("slope", "expected"), [(0.9e-3, {"qualification"}), (1.1e-3, set())])
def test_a_constraint_whose_own_gradients_nearly_cancel(slope: float, expected: set[str]) -> None:
    """|x_1 - 1| + slope x_3 <= 0: (0, 0, slope) is in the hull of its gradients at the pivot."""
    bent = gs.abs(W[0] - 1.0) + slope * W[2]
    fun = gs.sum(W * np.array([-2.0, 3.0, -4.0 * slope]))
    problem = replace(
        PROBLEM,
        system=Levels(np.full(2, -np.inf), np.array([0.0, 3.0]), straight=False),
        parts=[bent.program(), PROBLEM.parts[1]],
    )
    claim = forged(
        constraint_directions=[[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], constraint_index=[0, 0],
        constraint_weights=[3.0, 1.0], multipliers=[4.0, 0.0],
    )  # fmt: skip
    assert failed(claim, problem, fun) == expected


def test_equations_that_are_not_linear_qualify_too() -> None:
    """|x_1 - 1| + x_3 / 2000 = 0: its own gradients nearly cancel."""
    bent = gs.abs(W[0] - 1.0) + W[2] / 2000
    problem = replace(
        PROBLEM,
        system=Levels(np.array([0.0, -np.inf]), np.array([0.0, 3.0]), straight=False),
        parts=[bent.program(), PROBLEM.parts[1]],
    )
    assert "qualification" in failed(forged(eps=9.0), problem)


def test_linear_equations_may_depend_on_each_other() -> None:
    """x_1 = 1 and -x_1 = -1: gradients of equations form a line by nature."""
    twice = replace(
        PROBLEM,
        system=Levels(np.array([1.0, -1.0]), np.array([1.0, -1.0])),
        parts=[ROW, linear_program(np.array([-1.0, 0.0, 0.0]))],
    )
    both = forged(
        constraint_directions=[[1.0, 0.0, 0.0]] * 2, constraint_index=[0, 1],
        constraint_weights=[3.0, 1.0], multipliers=[3.0, 1.0],
    )  # fmt: skip
    assert check(both, twice).ok


def concave(width: float, **fields: Any) -> tuple[NearKKTCertificate, ExactProblem, gs.Expression]:
    """3 x_1 where 5 x_2 + width x_3 <= |x_1 - 1|, held at x_2 = 0: every x_1 is feasible."""
    bent = 5.0 * W[1] + width * W[2] - gs.abs(W[0] - 1.0)
    problem = replace(
        PROBLEM,
        box=Box(np.full(3, -4.0), np.full(3, 4.0)),
        system=Levels(np.array([-np.inf, 0.0]), np.zeros(2), straight=False),
        parts=[bent.program(), linear_program(np.array([0.0, 1.0, 0.0]))],
    )
    problem.system.linear = np.array([False, True])
    claim = forged(
        exact_pivot=(1, 0, 0), constraint_directions=[[1.0, 0.25, 0.5], [1.0, 0.0, 0.0]],
        constraint_index=[0, 1], constraint_weights=[3.0, -15.0], multipliers=[3.0, -15.0],
        normal=np.zeros(3), eps=3.0 * width,
    )  # fmt: skip
    return replace(claim, digest="", **fields), problem, 3.0 * W[0] + 0.0 * gs.sum(W)


def test_constraints_say_something_along_linear_equations() -> None:
    """Gradients (+-1, 5, 0) are far from 0, but not those that move along x_2 = 0."""
    assert failed(*concave(0.0)) == {"qualification"}
    claim, problem, fun = concave(0.0, constraint_index=[0, 0], constraint_weights=[3.0, 0.0],
                                  multipliers=[3.0, 0.0], eps=15.0)  # fmt: skip
    assert failed(claim, problem, fun) == {"qualification"}  # an equation holds without multiplier
    # So does an equation written as an expression, or a curved one.
    for equation in (W[1] + 0.0 * gs.sum(W), W[1] + gs.square(W[0] - 1.0) + 0.0 * W[2]):
        other = replace(problem, parts=[problem.parts[0], equation.program()])
        other.system.linear = np.zeros(2, dtype=bool)
        assert failed(claim, other, fun) == {"qualification"}
        assert failed(*concave(0.0)[:1], other, fun) == {"qualification"}
    # Bounds that fix x_2 say the same.
    held = replace(
        problem,
        box=Box(np.array([-4.0, 0.0, -4.0]), np.array([4.0, 0.0, 4.0])),
        system=Levels(np.array([-np.inf]), np.zeros(1), straight=False),
        parts=problem.parts[:1],
    )
    fixed = forged(claim, multipliers=[3.0], normal=[0.0, -15.0, 0.0], eps=0.0)
    assert failed(fixed, held, fun) == {"qualification"}


def test_constraints_that_fall_along_linear_equations_are_qualified() -> None:
    """(+-1, 5, 1): along x_3 they all rise, by 1 / sqrt 27 of their length."""
    claim, problem, fun = concave(1.0)
    found = check(claim, problem, fun)
    assert found.ok
    assert problem.qualification(claim, 0) == pytest.approx(1.0 / math.sqrt(27.0))
    # x_1 + x_2 + x_3 = 1 instead: (+-1, 5, 1) / sqrt 27 without what is along (1, 1, 1).
    slanted = replace(problem, parts=[problem.parts[0], linear_program(np.ones(3))])
    rows = np.array([[1.0, 5.0, 1.0], [-1.0, 5.0, 1.0]])
    flat = rows - rows.mean(axis=1, keepdims=True)
    shares = np.linspace(0.0, 1.0, 10001)[:, None]
    least = np.linalg.norm(shares * flat[0] + (1 - shares) * flat[1], axis=1).min()
    assert slanted.qualification(claim, 0) == pytest.approx(least / math.sqrt(27.0), rel=1e-6)


def test_gradients_beyond_float64_qualify_nothing() -> None:
    steep = gs.sum(((W[:1] - 1.0) * 1e300) * 1e300)
    problem = replace(PROBLEM, parts=[steep.program(), PROBLEM.parts[1]])
    problem = replace(problem, system=Levels(np.full(2, -np.inf), np.array([0.0, 3.0])))
    assert problem.qualification(HONEST, 0) == 0.0
    assert {"bound", "qualification"} <= failed(HONEST, problem)


def test_directions_are_not_believed() -> None:
    """What is proposed counts only if all gradients rise along it, and nothing forbids it."""
    claim, problem, _ = concave(1.0)
    for v, proved in (
        ([0, 0, 1], 1.0 / math.sqrt(27.0)),
        ([0.0, 0.0, 2.0**-900], 1.0 / math.sqrt(27.0)),
        ([0, 0, 0], 0.0),  # no direction
        ([0, 0, -1], 0.0),  # all of them fall
        ([1, 0, 0], 0.0),  # one of them falls
        ([0, Fraction(1, 10**400), 1], 0.0),  # across the equation x_2 = 0
        ([0, 1, 0], 0.0),
    ):
        only = replace(problem, separate=lambda *_, v=v: [v])
        assert only.qualification(claim, 0) == pytest.approx(proved)
        found = {c.name: c.ok for c in check(claim, only, 3.0 * W[0] + 0.0 * gs.sum(W)).checks}
        assert found["qualification"] == (proved > 0)
    assert replace(problem, separate=lambda *_: []).qualification(claim, 0) == 0.0
    # Against a normal, even by less than floats have; along a coordinate that is fixed.
    bound = replace(problem, box=Box(np.array([-4.0, -4.0, 0.0]), np.full(3, 4.0)))
    for normal in (-1.0, -(2.0**-1074)):
        held = replace(claim, normal=[0.0, 0.0, normal], digest="")
        for third in (Fraction(1), Fraction(1, 10**400)):
            only = replace(bound, separate=lambda *_, a=third: [[0, 0, a]])
            assert only.qualification(held, 0) == 0.0
    free = replace(bound, separate=lambda *_: [[0, 0, 1]])
    assert free.qualification(replace(claim, normal=[0.0, 0.0, 1.0], digest=""), 0) > 0.0
    fixed = replace(free, box=Box(np.array([-4.0, -4.0, 0.0]), np.array([4.0, 4.0, 0.0])))
    assert fixed.qualification(claim, 0) == 0.0
    # The other way round: gradients that rise along -x_3.
    claim, problem, _ = concave(-1.0)
    down = replace(problem, separate=lambda *_: [[0, 0, -1]])
    for normal, good in ((0.0, True), (-1.0, True), (1.0, False), (2.0**-1074, False)):
        held = replace(claim, normal=[0.0, 0.0, normal], digest="")
        assert (down.qualification(held, 0) > 0.0) == good


def test_a_proof_file_of_other_limits_is_not_written(tmp_path: Any) -> None:
    """Without them the file would be a false claim, and `goldstein-check` says so."""
    limits: dict[str, Any] = {"bounds": [(0, 4)] * 3, "constraints": [W[0] <= 1.0, ROUND <= 3.0]}
    path = HONEST.export(tmp_path / "right", F, **limits)
    assert path.exists()
    for missing in ({}, {"bounds": limits["bounds"]}, {"constraints": limits["constraints"]}):
        with pytest.raises(gs.InputError, match="pass the bounds= and constraints="):
            HONEST.export(tmp_path / "wrong", F, **missing)
    assert not (tmp_path / "wrong.json").exists()
