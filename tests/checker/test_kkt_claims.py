"""KKT claims, true ones and forged ones: each threshold just inside and just outside.

Minimise -2 x_1 + 3 x_2 over 0 <= x <= 4 with x_1 <= 1: the answer is (1, 0), with multiplier 2 on
the constraint and -3 on the lower bound of x_2. A forged claim is refused by the check that names
the lie, and by no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.forging import Forgery, bad_entries, bad_numbers

from goldstein.certificates import KKTCertificate
from goldstein.certificates.kkt import convex_gap
from goldstein.checker import sampled
from goldstein.checker.blackbox.beside import MORE_WEIGHT, rebound
from goldstein.checker.blackbox.perturbed import Neighbourhood, radius, resample
from goldstein.checker.blackbox.qualification import LESS, qualification
from goldstein.checker.constrained import limits
from goldstein.checker.constrained.limits import Box, Limits
from goldstein.checker.function import Asked
from goldstein.checker.rationals import sqrt_upper
from goldstein.checker.verification import Verification
from goldstein.errors import GoldsteinError, KinkError
from goldstein.numerics.hull_problems import conic_weights

BOX = Box(np.zeros(2), np.full(2, 4.0))
JUST_ABOVE, JUST_BELOW = math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0)


class Slopes:
    """A black box of which nothing is known but gradients."""

    has_value = False

    def __init__(self, gradient: Any) -> None:
        self.gradient = gradient


@dataclass
class System(Limits):
    """Constraints as the checker sees them; by default x_1 <= 1 and x_2 <= 3."""

    function: Callable[[Any], Any] = lambda x: x
    jacobian: Callable[[Any], Any] = lambda x: np.eye(2)
    lower: Any = field(default_factory=lambda: np.full(2, -np.inf))
    upper: Any = field(default_factory=lambda: np.array([1.0, 3.0]))
    straight: bool = False

    def __post_init__(self) -> None:
        self.size = len(self.upper)
        self.equal = self.lower == self.upper
        self.linear = np.full(self.size, self.straight)

    def name(self, i: int) -> str:
        return f"c[{i}]"

    def values(self, x: Any) -> Any:
        return np.array(self.function(x), dtype=float)

    def rows(self, x: Any) -> Any:
        return np.array(self.jacobian(x), dtype=float)


HONEST = KKTCertificate(
    x=[1.0, 0.0], delta=0.25, eps=0.0, feasibility=0.0,
    points=[[1.125, 0.125]], gradients=[[-2.0, 3.0]], weights=[1.0],
    constraint_points=[[1.0, 0.0]], constraint_index=[0], constraint_gradients=[[1.0, 0.0]],
    constraint_weights=[2.0], normal=[0.0, -3.0], multipliers=[2.0, 0.0], qualification=1.0,
)  # fmt: skip


def constant(x: Any) -> Any:
    return np.array([-2.0, 3.0])


def problem(
    system: System, gradient: Any = constant, box: Box = BOX, propose: Any = conic_weights
) -> sampled.Problem:
    return sampled.Problem(Asked(Slopes(gradient)), box, propose, [2], system=system)


def check(
    claim: KKTCertificate, system: System | None = None, gradient: Any = constant, box: Box = BOX
) -> Verification:
    return sampled.check(claim, problem(system or System(), gradient, box), 0, check_values=False)


FORGERY = Forgery(HONEST, check)
forged, failed = FORGERY.forged, FORGERY.failed


def test_the_honest_claim_is_true() -> None:
    found = check(HONEST)
    assert found.ok
    assert (found.eps, found.label) == (0.0, "conditional")
    assert found.delta == pytest.approx(0.125 * math.sqrt(2.0))
    names = [
        "numbers", "content", "weights", "label", "layout", "bounds", "ball", "constraints",
        "multipliers", "normal", "feasibility", "activity", "gradients", "bound", "kinks",
        "qualification",
    ]  # fmt: skip
    assert [c.name for c in found.checks] == names


ARRAYS = [
    "x", "points", "gradients", "weights", "constraint_points", "constraint_gradients",
    "constraint_weights", "normal", "multipliers",
]  # fmt: skip


@bad_entries
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_finite(name: str, bad: float) -> None:
    assert failed(FORGERY.spoiled(name, bad)) == {"numbers"}


@bad_numbers
@pytest.mark.parametrize("name", ["eps", "delta", "feasibility", "qualification"])
def test_numbers_are_finite_and_not_negative(name: str, bad: float) -> None:
    assert failed(forged(**{name: bad})) == {"numbers"}


def test_a_claim_needs_a_gradient_of_f() -> None:
    nothing = np.zeros((0, 2))
    assert failed(forged(points=nothing, gradients=nothing, weights=[])) == {"numbers"}


def test_a_changed_field_shows() -> None:
    assert failed(replace(HONEST, eps=0.5)) == {"content"}


@pytest.mark.parametrize("weights", [[1.0, 1.01e-9], [1.0, -1.01e-9], [1.0, -(2.0**-1074)]])
def test_weights_that_are_not_convex(weights: list[float]) -> None:
    twice = {"points": [HONEST.points[0]] * 2, "gradients": [HONEST.gradients[0]] * 2}
    assert failed(forged(weights=weights, eps=1.0, **twice)) == {"weights"}


@pytest.mark.parametrize("weights", [[1.0 + 0.9e-9], [1.0 - 0.9e-9]])
def test_weights_that_are_convex_up_to_rounding(weights: list[float]) -> None:
    assert check(forged(weights=weights, eps=1e-7)).ok


def test_points_of_f_without_weight_say_nothing() -> None:
    def gradient(x: Any) -> Any:
        if x[1] > 0.2:
            raise KinkError("a kink")
        return constant(x)

    extra = forged(
        points=[*HONEST.points, [1.0, 0.1]], gradients=[*HONEST.gradients, [-2.0, 3.0]],
        weights=[1.0, 0.0],
    )  # fmt: skip
    assert check(extra, gradient=gradient).ok
    assert check(extra).eps == 0.0


def test_labels() -> None:
    assert check(forged(label="estimated")).ok
    for label in ("certified", "refuted"):
        assert failed(forged(label=label)) == {"label"}


@pytest.mark.parametrize("name", ["points", "constraint_points"])
@pytest.mark.parametrize("place", [[1.0, -(2.0**-1074)], [1.0, math.nextafter(4.0, 5.0)]])
def test_no_point_is_outside_the_bounds(name: str, place: list[float]) -> None:
    assert failed(forged(**{name: [place]}, delta=9.0)) == {"bounds"}


def test_x_is_inside_the_bounds() -> None:
    assert failed(forged(x=[1.0, -(2.0**-1074)])) == {"bounds"}


def test_the_ball() -> None:
    reach = sqrt_upper(Fraction(1, 32))
    assert check(forged(delta=reach)).ok
    assert failed(forged(delta=math.nextafter(reach, 0.0))) == {"ball"}
    assert failed(forged(constraint_points=[[1.0, 0.3]])) == {"ball"}


def test_the_normal_is_one_of_the_bounds_at_x() -> None:
    assert failed(forged(normal=[0.0, 2.0**-1074])) == {"normal"}
    assert failed(forged(normal=[2.0**-1074, -3.0])) == {"normal"}
    assert failed(forged(normal=[-(2.0**-1074), -3.0])) == {"normal"}
    off = forged(x=[1.0, 2.0**-1074])
    assert failed(off) == {"normal"}


def test_normals_at_upper_bounds() -> None:
    """The same with x_2 turned round."""
    turned = Box(np.array([0.0, -4.0]), np.array([4.0, 0.0]))
    claim = forged(
        points=[[1.125, -0.125]], gradients=[[-2.0, -3.0]], normal=[0.0, 3.0], x=[1.0, 0.0]
    )

    def gradient(x: Any) -> Any:
        return np.array([-2.0, -3.0])

    assert check(claim, gradient=gradient, box=turned).ok
    assert failed(forged(claim, normal=[0.0, -3.0]), gradient=gradient, box=turned) == {"normal"}
    below = forged(claim, x=[1.0, -(2.0**-1074)])
    assert failed(below, gradient=gradient, box=turned) == {"normal"}


@pytest.mark.parametrize("multipliers", [[2.0], [2.0, 0.0, 0.0], []])
def test_one_multiplier_for_each_constraint(multipliers: list[float]) -> None:
    assert failed(forged(multipliers=multipliers)) == {"constraints"}


@pytest.mark.parametrize("index", [-1, 2])
def test_rows_belong_to_a_constraint(index: int) -> None:
    assert failed(forged(constraint_index=[index])) == {"constraints"}


@pytest.mark.parametrize("stated", [2.0 * (1 + 1.1e-9), 2.0 * (1 - 1.1e-9), -2.0, 0.0])
def test_multipliers_are_the_weights_used(stated: float) -> None:
    assert failed(forged(multipliers=[stated, 0.0])) == {"multipliers"}


@pytest.mark.parametrize("stated", [2.0 * (1 + 0.9e-9), 2.0 * (1 - 0.9e-9)])
def test_multipliers_may_be_rounded(stated: float) -> None:
    assert check(forged(multipliers=[stated, 0.0])).ok


def with_row(index: int, weight: float, place: Any = (1.0, 0.0)) -> Any:
    """A claim with a further row, its gradient true, and without the bound."""
    return forged(
        constraint_points=[*HONEST.constraint_points, place],
        constraint_index=[0, index],
        constraint_gradients=[[1.0, 0.0], np.eye(2)[index]],
        constraint_weights=[2.0, weight],
        multipliers=HONEST.multipliers + weight * np.eye(2)[index],
        normal=[0.0, 0.0],
        eps=3.0 + abs(weight),
    )


def test_weights_of_one_constraint_have_one_sign() -> None:
    assert failed(with_row(0, -(2.0**-60))) == {"multipliers"}


def test_a_multiplier_has_the_sign_of_its_limit() -> None:
    assert failed(with_row(1, -0.125)) == {"multipliers"}


def test_a_constraint_with_a_multiplier_is_reached() -> None:
    at_limit = System(upper=np.array([1.0, 0.125]))
    claim = with_row(1, 0.125, (1.0, 0.125))
    assert check(claim, at_limit).ok
    assert failed(claim, System(upper=np.array([1.0, 0.13]))) == {"activity"}
    # A point of f reaches it as well, and so does x.
    assert check(with_row(1, 0.125), at_limit).ok
    assert check(with_row(1, 0.125), System(upper=np.array([1.0, 0.0]))).ok


def test_lower_limits() -> None:
    """-x_1 >= -1 is the same constraint."""
    turned = System(lambda x: -x, lambda x: -np.eye(2), np.array([-1.0, -3.0]), np.full(2, np.inf))
    claim = forged(
        constraint_gradients=[[-1.0, 0.0]], constraint_weights=[-2.0], multipliers=[-2.0, 0.0]
    )
    assert check(claim, turned).ok
    far = replace(turned, lower=np.array([-1.0 - 0.2, -3.0]))
    assert failed(claim, far) == {"activity"}
    assert [c.name for c in check(claim, far).checks][-1] == "activity"  # nothing is asked then
    assert failed(HONEST, turned) == {"multipliers"}


def test_feasibility_is_what_is_stated() -> None:
    tight = System(upper=np.array([1.0 - 2.0**-20, 3.0]))
    assert failed(HONEST, tight) == {"feasibility"}
    assert check(forged(feasibility=2.0**-20), tight).ok
    slack = 2.0**-48  # of the largest value, which is 1
    assert check(forged(feasibility=2.0**-20 - 0.9 * slack), tight).ok
    assert failed(forged(feasibility=2.0**-20 - 1.1 * slack), tight) == {"feasibility"}


def test_the_room_for_rounding_is_relative_to_the_values() -> None:
    small = System(lambda x: x - np.array([1.0 - 2.0**-30, 0.0]), upper=np.array([0.0, 3.0]))
    assert check(forged(feasibility=2.0**-30), small).ok
    assert failed(forged(feasibility=2.0**-30 - 2.0**-60), small) == {"feasibility"}


def equation(level: float, straight: bool = False) -> System:
    """x_1 = level."""
    limits = np.array([level, 3.0])
    return System(lower=np.array([level, -np.inf]), upper=limits, straight=straight)


def test_equations_hold_at_x_or_are_crossed() -> None:
    alone = forged(points=[[1.0, 0.0]])
    for level in (1.0 + 0.9e-9, 1.0 - 0.9e-9):
        assert check(forged(alone, feasibility=1e-8), equation(level, True)).ok
    for level in (1.0 + 1.1e-9, 1.0 - 1.1e-9):
        assert failed(forged(alone, feasibility=1e-8), equation(level, True)) == {"activity"}
    # Values on both sides.
    crossed = forged(feasibility=1.0)
    assert check(crossed, equation(1.0 + 2.0**-20, True)).ok
    assert failed(crossed, equation(1.0 - 2.0**-20, True)) == {"activity"}
    # The tolerance is relative to large limits.
    large = replace(equation(1.0, True), function=lambda x: 1000.0 * x - np.array([0.5e-6, 0.0]))
    large = replace(large, lower=np.array([1e3, -np.inf]), upper=np.array([1e3, 1e9]))
    assert check(forged(alone, feasibility=1e-5), large).ok


def test_an_equation_that_holds_at_another_point_only() -> None:
    claim = forged(points=[[1.0, 0.0]], constraint_points=[[0.9 + 0.5e-9, 0.0]], feasibility=0.2)
    assert failed(claim, equation(0.9, True)) == {"activity"}


def test_limits_that_are_reached_exactly() -> None:
    alone = forged(points=[[1.0, 0.0]])
    assert check(alone).ok
    assert failed(alone, System(upper=np.array([JUST_ABOVE, 3.0]))) == {"activity"}
    turned = System(lambda x: -x, lambda x: -np.eye(2), np.array([-1.0, -3.0]), np.full(2, np.inf))
    lower = forged(
        alone, constraint_gradients=[[-1.0, 0.0]], constraint_weights=[-2.0],
        multipliers=[-2.0, 0.0],
    )  # fmt: skip
    assert check(lower, turned).ok
    assert failed(lower, replace(turned, lower=np.array([-JUST_ABOVE, -3.0]))) == {"activity"}


def test_gradients_asked_again_are_the_same() -> None:
    """Weighted lengths: |(-2, 3)| of f and 2 of the constraint; 1e-9 of them is allowed."""
    size = math.sqrt(13.0) + 2.0
    for off, allowed in ((0.99e-9, set()), (1.01e-9, {"gradients"})):
        assert failed(forged(gradients=[[-2.0, 3.0 + off * size]])) == allowed
        assert failed(forged(constraint_gradients=[[1.0 + off * size / 2, 0.0]])) == allowed


def test_a_hundredth_of_eps_is_allowed_to_gradients() -> None:
    for off, allowed in ((0.0099, set()), (0.0101, {"gradients"})):
        assert failed(forged(eps=1.0, gradients=[[-2.0, 3.0 + off]])) == allowed


def test_the_bound_is_recomputed() -> None:
    claim = forged(normal=[0.0, 0.0], eps=3.0)
    assert check(claim).ok
    assert check(forged(claim, eps=3.0 - 1e-14)).ok
    found = check(forged(claim, eps=3.0 - 1e-11))
    assert {c.name for c in found.checks if not c.ok} == {"bound"}
    assert found.eps == pytest.approx(3.0)
    assert [c.name for c in found.checks][-1] == "bound"  # nothing is asked after that


def beside(there: list[float]) -> Any:
    """The gradient of f is something else wherever it is not stored."""
    return lambda x: np.array([-2.0, 3.0] if x[0] == 1.125 else there)


def test_what_holds_at_a_point_holds_beside_it() -> None:
    hardly = check(HONEST, gradient=beside([-2.0 - 1e-9, 3.0]))
    assert hardly.ok
    assert hardly.eps == 0.0  # that of the stored points
    assert failed(HONEST, gradient=beside([-2.0, -3.0])) == {"kinks"}
    found = check(HONEST, gradient=beside([-2.0, -3.0]))
    assert found.eps == pytest.approx(3.0)


def test_multipliers_chosen_anew_are_not_much_larger() -> None:
    """A steeper f beside its point needs more of the constraint: up to four times."""
    system = System(lambda x: 2.0 * x, lambda x: 2.0 * np.eye(2), upper=np.array([2.0, 6.0]))
    claim = forged(
        constraint_gradients=[[2.0, 0.0]], constraint_weights=[1.0], multipliers=[1.0, 0.0]
    )
    assert check(claim, system).ok
    assert check(claim, system, beside([-7.9, 3.0])).ok
    assert check(claim, system, beside([-1.0, 3.0])).ok  # half of it
    assert failed(claim, system, beside([-8.1, 3.0])) == {"kinks"}
    # eps is added to what is allowed: 4 * 2 + 1.
    more = forged(claim, eps=1.0)
    assert check(more, system, beside([-8.9, 3.0])).ok
    assert failed(more, system, beside([-10.5, 3.0])) == {"kinks"}


@pytest.mark.parametrize("error", [KinkError, GoldsteinError])
def test_a_function_that_does_not_answer(error: type[Exception]) -> None:
    def gradient(y: Any) -> Any:
        raise error("no")

    found = check(HONEST, gradient=gradient)
    assert {c.name for c in found.checks if not c.ok} == {"gradients"}
    assert found.eps == math.inf


def test_the_qualification_is_what_is_stated() -> None:
    """It is 1 here; ten times more may be stated, for it is measured on samples."""
    assert check(forged(qualification=10.0 * (1 - 1e-9))).ok
    assert failed(forged(qualification=10.0 * (1 + 1e-9))) == {"qualification"}
    assert check(forged(qualification=1.001e-3)).ok
    assert failed(forged(qualification=1e-3)) == {"qualification"}


@pytest.mark.parametrize(("angle", "expected"), [(1.9e-3, {"qualification"}), (2.1e-3, set())])
def test_gradients_that_nearly_cancel_qualify_nothing(angle: float, expected: set[str]) -> None:
    """x_1 <= 1 and -x_1 + angle x_2 <= -1: the hull of the gradients is angle / 2 away from 0."""
    system = System(
        lambda x: np.array([x[0], angle * x[1] - x[0]]),
        lambda x: np.array([[1.0, 0.0], [-1.0, angle]]),
        upper=np.array([1.0, -1.0]),
        straight=True,
    )
    claim = forged(
        gradients=[[-2.0, -angle]],
        constraint_points=[[1.0, 0.0]] * 2,
        constraint_index=[0, 1],
        constraint_gradients=[[1.0, 0.0], [-1.0, angle]],
        constraint_weights=[3.0, 1.0],
        multipliers=[3.0, 1.0],
        normal=[0.0, 0.0],
        qualification=1.01e-3,
    )

    def gradient(x: Any) -> Any:
        return np.array([-2.0, -angle])

    assert failed(claim, system, gradient) == expected
    # With the normal (0, -1) of the bound in use they cancel whatever the angle.
    with_normal = forged(claim, normal=[0.0, -1.0], eps=1.0)
    assert failed(with_normal, system, gradient) == {"qualification"}


def test_a_gradient_that_vanishes_at_x_qualifies_nothing() -> None:
    """(x_1 - 1)^3 <= 0 has no gradient at 1; far from it there is one."""
    cube = System(
        lambda x: np.array([(x[0] - 1.0) ** 3, x[1]]),
        lambda x: np.array([[3.0 * (x[0] - 1.0) ** 2, 0.0], [0.0, 1.0]]),
        upper=np.array([0.0, 3.0]),
    )
    claim = forged(
        constraint_points=[[1.2, 0.0]],
        constraint_gradients=[cube.rows([1.2, 0.0])[0]],
        constraint_weights=[2.0 / (3.0 * 0.2**2)],
        multipliers=[2.0 / (3.0 * 0.2**2), 0.0],
        eps=1e-6,
    )
    found = failed(claim, cube)
    assert found == {"qualification"}


def flat_at_x(least: float, width: float = 0.1) -> System:
    """x_1 <= 1, whose gradient near x is said to be shorter than further away."""

    def jacobian(x: Any) -> Any:
        return np.array([[least if abs(x[0] - 1.0) < width else 1.0, 0.0], [0.0, 1.0]])

    return System(jacobian=jacobian)


@pytest.mark.parametrize(("least", "expected"), [(0.019, {"qualification"}), (0.021, set())])
def test_a_gradient_that_nearly_vanishes_at_x(least: float, expected: set[str]) -> None:
    """Shorter than a fiftieth of what it is elsewhere: at a stored point, or anywhere around."""
    claim = forged(constraint_points=[[1.2, 0.0]], qualification=0.05)
    assert failed(claim, flat_at_x(least)) == expected
    at_x = forged(
        constraint_gradients=[[least, 0.0]], constraint_weights=[2.0 / least],
        multipliers=[2.0 / least, 0.0], qualification=0.05,
    )  # fmt: skip
    assert failed(at_x, flat_at_x(least, 0.01)) == expected


def qualified(
    claim: KKTCertificate, system: System, rows: Any, box: Box = BOX, seed: int = 0, pairs: int = 2
) -> float:
    rng = np.random.default_rng(seed)
    return qualification(claim, problem(system, box=box), rows, rng, 0.0, pairs)


def test_stored_gradients_tell_how_long_they_are_elsewhere() -> None:
    """Nobody else meets the long one."""

    def jacobian(x: Any) -> Any:
        return np.array([[1.0 if x[0] == 1.2 else 0.01, 0.0], [0.0, 1.0]])

    claim, found = forged(normal=[0.0, 0.0]), {}
    for index in (0, 1):
        rows = [(index, np.array([1.0, 0.0]))]
        found[index] = qualified(claim, System(jacobian=jacobian), rows)
    assert found == {0: 0.0, 1: pytest.approx(1.0)}


def test_x_is_close_to_a_constraint_with_a_multiplier() -> None:
    """Within 1e-4 of delta, as far as the gradient there tells; a linear one may be further."""
    for straight in (False, True):
        for away, allowed in ((2.4e-5, True), (2.6e-5, straight)):
            claim = forged(feasibility=1e-4)
            system = System(upper=np.array([1.0 - away, 3.0]), straight=straight)
            assert failed(claim, system) == (set() if allowed else {"qualification"})


def measured(system: System, pairs: int = 2, **more: Any) -> float:
    """The qualification of the honest claim."""
    return qualified(HONEST, system, [(0, np.array([1.0, 0.0]))], pairs=pairs, **more)


def test_who_looks_more_often_is_stricter() -> None:
    """Twice as strict with four times as many pairs."""
    for away, pairs, expected in ((1.2e-5, 8, 1.0), (1.3e-5, 8, 0.0), (2.4e-5, 2, 1.0)):
        assert measured(System(upper=np.array([1.0 - away, 3.0])), pairs) == pytest.approx(expected)
    for least, pairs, expected in ((0.021, 2, 0.021), (0.021, 8, 0.0), (0.041, 8, 0.041)):
        assert measured(flat_at_x(least), pairs) == pytest.approx(expected)


def test_a_constraint_that_is_nothing_but_kinks_near_x_qualifies_nothing() -> None:
    def jacobian(x: Any) -> Any:
        if 0.0 < abs(x[0] - 1.0) < 1e-3:
            raise KinkError("a kink")
        return np.eye(2)

    system = System(jacobian=jacobian)
    assert measured(system) == 0.0
    assert measured(replace(system, straight=True)) == 1.0


def test_constraints_are_asked_on_both_sides_of_x() -> None:
    """|x_1 - 1| + 0.01 x_2 <= 0 has opposite gradients there, whichever was stored."""
    bent = System(
        lambda x: np.array([abs(x[0] - 1.0) + 0.01 * x[1], x[1]]),
        lambda x: np.array([[np.sign(x[0] - 1.0), 0.01], [0.0, 1.0]]),
        upper=np.array([0.0, 3.0]),
    )
    assert measured(bent, box=Box(np.full(2, -4.0), np.full(2, 4.0))) < 0.02
    asked_at: list[float] = []

    def jacobian(x: Any) -> Any:
        asked_at.append(x[0] - 1.0)
        return np.eye(2)

    measured(System(jacobian=jacobian))
    steps = []
    for seed in range(200):
        asked_at.clear()
        assert measured(System(jacobian=jacobian), seed=seed)
        near, far = asked_at[:4], asked_at[-4:]
        assert max(map(abs, near)) < 1e-9
        for first, second in zip(near[::2], near[1::2]):
            assert first == pytest.approx(-second, rel=1e-3)
        steps.append(far)
    assert 0.4 < np.std(steps) / 0.25 < 0.7  # everywhere in the ball


def test_constraints_are_asked_along_the_direction_that_separates_them() -> None:
    """x_1 - 1, and in a cone that random points miss -x_1: nothing is left of a qualification."""

    def jacobian(x: Any) -> Any:
        thin = abs(x[1] - 2.0) <= 1e-4 * (x[0] - 1.0)
        return np.array([[-1.0 if thin else 1.0, 0.0], [0.0, 1.0]])

    claim = forged(x=[1.0, 2.0], normal=[0.0, 0.0])
    rows = [(0, np.array([1.0, 0.0]))]
    for seed in range(20):
        assert qualified(claim, System(jacobian=jacobian), rows, seed=seed) == 0.0


def test_a_gradient_that_vanishes_on_one_side_of_x() -> None:
    def jacobian(x: Any) -> Any:
        return np.array([[0.01 if x[0] < 1.0 else 1.0, 0.0], [0.0, 1.0]])

    assert measured(System(jacobian=jacobian)) == 0.0


def test_linear_equations_are_left_out_of_the_qualification() -> None:
    assert measured(equation(1.0, True)) == 1.0
    claim = forged(normal=[0.0, 0.0])
    rows = [(0, np.array([1.0, 0.0])), (0, np.array([-1.0, 0.0]))]
    assert qualified(claim, equation(1.0, True), rows) == 1.0
    assert qualified(claim, equation(1.0, False), rows) == 0.0


def test_constraints_say_something_along_linear_equations() -> None:
    """5 x_2 <= |x_1 - 1| with x_2 = 0: rows (+-1, 5) are far from 0, but not along x_2 = 0."""
    bent = System(
        lambda x: np.array([5.0 * x[1] - abs(x[0] - 1.0), x[1]]),
        lambda x: np.array([[-np.sign(x[0] - 1.0), 5.0], [0.0, 1.0]]),
        np.array([-np.inf, 0.0]), np.zeros(2),
    )  # fmt: skip
    rows, claim = [(0, np.array([-1.0, 5.0]))], forged(normal=[0.0, 0.0], multipliers=[3.0, -15.0])
    free = Box(np.full(2, -4.0), np.full(2, 4.0))
    bent.linear = np.array([False, True])
    assert qualified(claim, bent, rows, free) < 1e-3
    bent.equal = np.zeros(2, dtype=bool)
    claim = forged(claim, multipliers=[3.0, 0.0])
    assert qualified(claim, bent, rows, free) == pytest.approx(5.0 / math.sqrt(26.0))
    fixed = Box(np.array([-4.0, 0.0]), np.array([4.0, 0.0]))
    assert qualified(claim, bent, rows, fixed) < 1e-3


def test_the_sign_of_a_multiplier_turns_its_gradients() -> None:
    """Rows (1, 0) and (-1, 0) of two constraints cancel with equal signs, not with opposite."""
    system = System(straight=True, lower=np.array([-np.inf, -1.0]))
    rows = [(0, np.array([1.0, 0.0])), (1, np.array([-1.0, 0.0]))]
    for second, expected in ((1.0, 0.0), (-1.0, 1.0)):
        claim = forged(normal=[0.0, 0.0], multipliers=[1.0, second])
        assert qualified(claim, system, rows) == expected


# --- what is asked beside the points ---------------------------------------------------------

FREE = Box(np.full(2, -4.0), np.full(2, 4.0))
TWO = KKTCertificate(
    x=[0.0, 0.0], delta=0.25, eps=0.0, feasibility=0.0,
    points=[[0.125, 0.0], [-0.125, 0.0]], gradients=[[1.0, 0.0], [-1.0, 0.0]], weights=[0.5, 0.5],
    constraint_points=np.zeros((0, 2)), constraint_index=[],
    constraint_gradients=np.zeros((0, 2)), constraint_weights=[], normal=[0.0, 0.0],
    multipliers=[0.0, 0.0], qualification=1.0,
)  # fmt: skip
ONE = replace(TWO, points=[[0.125, 0.0]], gradients=[[0.0, 0.0]], weights=[1.0], digest="")


def sign(x: Any) -> Any:
    return np.array([np.sign(x[0]), 0.0])


def first_of(hull: Any, cone: Any) -> Any:
    return np.eye(len(hull))[0], np.zeros(len(cone))


def resampled(
    claim: KKTCertificate, gradient: Any, optimise: Any = conic_weights, goal: float = 0.0,
    seed: int = 0,
) -> float:  # fmt: skip
    rows = sampled.rows_of(claim, problem(System(), gradient, FREE, optimise))
    place = Neighbourhood(claim.x, claim.delta, FREE)
    best = partial(rebound, rows)
    return resample(rows.ask, place, rows.points, rows.owners, rows.weights, best, goal, seed)


def surveyed(
    claim: KKTCertificate, gradient: Any, optimise: Any = conic_weights, goal: float = 0.0
) -> tuple[float, int]:
    """The bound found beside the points, and how many gradients were asked for it."""
    calls: list[Any] = []

    def count(x: Any) -> Any:
        calls.append(x)
        return gradient(x)

    return resampled(claim, count, optimise, goal), len(calls)


def test_stored_weights_do_where_they_do() -> None:
    assert surveyed(TWO, sign, first_of) == (0.0, 4)  # a draw, and its twins


def test_a_long_gradient_is_given_up_after_eight_draws() -> None:
    found, calls = surveyed(ONE, lambda x: np.array([1.0, 0.0]))
    assert (found, calls) == (pytest.approx(1.0), 8)


def test_gradients_of_several_draws_are_combined() -> None:
    turn: list[float] = []

    def gradient(x: Any) -> Any:
        turn.append(-1.0 if len(turn) % 2 else 1.0)
        return np.array([turn[-1], 0.0])

    found, calls = surveyed(ONE, gradient, goal=1e-12)
    assert found < 1e-12
    assert calls == 4


def test_weights_are_chosen_anew() -> None:
    """1 and -3 by turns: three quarters of one, one quarter of the other."""
    turn: list[float] = []

    def gradient(x: Any) -> Any:
        turn.append(-3.0 if len(turn) % 2 else 1.0)
        return np.array([turn[-1], 0.0])

    assert surveyed(ONE, gradient, goal=1e-12)[0] < 1e-12


def test_twins_are_closer_than_perturbed_points() -> None:
    steps = []
    for seed in range(60):
        places: list[Any] = []

        def gradient(x: Any, places: list[Any] = places) -> Any:
            places.append(x)
            return np.zeros(2)

        resampled(ONE, gradient, seed=seed)
        first, twin = places
        steps.append((twin - first) / radius(first, ONE.delta))
    assert np.abs(steps).min() > 0.2
    assert np.abs(steps).max() < 0.55


def test_a_twin_finds_out_a_point_on_a_kink() -> None:
    seen: list[float] = []

    def gradient(x: Any) -> Any:
        seen.append(x[0])
        return np.array([float(x[0] != seen[0]), 0.0])

    found, _ = surveyed(ONE, gradient)
    assert found == pytest.approx(1.0)


def test_many_points_are_drawn_less_often() -> None:
    many = {"points": [[0.125, 0.0]] * 900, "gradients": np.zeros((900, 2))}
    claim = forged(ONE, weights=np.full(900, 1.0 / 900), **many)
    assert surveyed(claim, lambda x: np.array([1.0, 0.0]), first_of)[1] == 1800


def test_twins_are_asked_whatever_is_allowed_for_rounding() -> None:
    """The first points beside the stored ones cancel as those do; nothing else does."""
    calls: list[Any] = []

    def gradient(x: Any) -> Any:
        calls.append(x)
        return sign(x) if len(calls) <= 4 else np.array([5.0, 0.0])

    assert failed(TWO, gradient=gradient, box=FREE) == {"kinks"}


def test_proposed_weights_of_f_sum_to_one() -> None:
    def half(hull: Any, cone: Any) -> Any:
        return np.full(len(hull), 0.25 / len(hull)), np.zeros(len(cone))

    assert surveyed(ONE, lambda x: np.array([1.0, 0.0]), half)[0] == pytest.approx(1.0)


def test_kinks_are_passed_over() -> None:
    calls: list[float] = []

    def gradient(x: Any) -> Any:
        calls.append(x[0])
        if len(calls) in (1, 3):
            raise KinkError("a kink")
        return np.zeros(2)

    assert surveyed(ONE, gradient) == (0.0, 5)

    def never(x: Any) -> Any:
        raise KinkError("a kink")

    assert surveyed(ONE, never) == (math.inf, 8)


@pytest.mark.parametrize("weights", [math.nan, 0.0, -1.0, math.inf])
def test_weights_that_are_none_are_not_used(weights: float) -> None:
    """Whatever the search for better weights returns, it proves nothing by itself."""

    def useless(hull: Any, cone: Any) -> Any:
        return np.full(len(hull), weights), np.full(len(cone), weights)

    with np.errstate(all="ignore"):
        found, _ = surveyed(ONE, lambda x: np.array([1.0, 0.0]), useless)
        assert found >= 1.0
        assert surveyed(TWO, sign, useless)[0] == 0.0


def test_displaced_points_stay_in_ball_and_box() -> None:
    rng = np.random.default_rng(0)
    place = Neighbourhood(np.array([0.0, 4.0]), 0.25, BOX)
    for _ in range(100):
        for z in (place.perturbed(rng, place.x), place.twin(rng, place.x)):
            assert BOX.contains(z)
            assert (z != place.x).all()
            assert np.linalg.norm(z - place.x) <= 0.25


# --- convex problems -------------------------------------------------------------------------


def gap(claim: KKTCertificate, system: System, radius: float, curve: float = 0.0) -> float:
    def value(x: Any) -> float:
        return float(-2.0 * x[0] + 3.0 * x[1] + curve * (x[0] - 1.125) ** 2)

    return convex_gap(claim, value, system, radius)


def test_the_gap_of_a_convex_problem() -> None:
    """eps times the radius, errors of linearisations, and what is left to the limits."""
    nothing = gap(HONEST, System(), 3.0)
    assert 0.0 <= nothing < 1e-13
    assert gap(forged(eps=0.5), System(), 3.0) == pytest.approx(1.5, rel=1e-9)
    assert gap(forged(eps=0.5), System(), 3.0) >= 1.5
    # f is 1/64 above its linearisation at the stored point, whose gradient is the same.
    assert gap(HONEST, System(), 3.0, 1.0) == pytest.approx(1.0 / 64.0)
    # The limit is 1/8 away, the multiplier 2.
    far = System(upper=np.array([1.125, 3.0]))
    assert gap(HONEST, far, 3.0) == pytest.approx(0.25)
    # Crossed limits make up for nothing.
    assert gap(HONEST, System(upper=np.array([0.5, 3.0])), 3.0) < 1e-12


def test_the_gap_of_curved_constraints() -> None:
    """x_1^2 <= 1, linearised at 1.125: (1/8)^2 at x, with weight 1."""
    square = System(lambda x: x**2, lambda x: np.diag(2.0 * x))
    claim = forged(
        constraint_points=[[1.125, 0.0]], constraint_gradients=[[2.25, 0.0]],
        constraint_weights=[1.0], multipliers=[1.0, 0.0],
    )  # fmt: skip
    assert gap(claim, square, 0.0) == pytest.approx(1.0 / 64.0)
    # As a lower limit, turned round: -x_1^2 >= -1.
    turned = System(
        lambda x: -(x**2), lambda x: np.diag(-2.0 * x), np.full(2, -1.0), np.full(2, np.inf)
    )
    lower = forged(
        claim, constraint_gradients=[[-2.25, 0.0]], constraint_weights=[-1.0],
        multipliers=[-1.0, 0.0],
    )  # fmt: skip
    assert gap(lower, turned, 0.0) == pytest.approx(1.0 / 64.0)
    slack = replace(turned, lower=np.array([-1.5, -3.0]))
    assert gap(lower, slack, 0.0) == pytest.approx(1.0 / 64.0 + 0.5)


def test_the_gap_covers_the_rounding_of_terms_that_cancel() -> None:
    """Errors of about 3e8 and -3e8, whose sum is of size 1."""
    rng = np.random.default_rng(0)
    for k in range(100):
        steep, large = (1e8, 1.0) if k % 2 else (1.0, 1e8)
        y = 1.0 + (1e4 if k % 4 == 1 else 1.0) * rng.random(2)
        g = steep * (1.0 + rng.random(2))
        claim = forged(
            points=[y], gradients=[g], constraint_points=[y], constraint_gradients=[-g],
            constraint_weights=[1.0], multipliers=[1.0, 0.0],
        )  # fmt: skip
        values = {tuple(claim.x): rng.random(), tuple(y): large * rng.random()}
        system = System(lambda x, known=values: np.array([-known[tuple(x)], 0.0]))
        bound = convex_gap(claim, lambda x, known=values: 1.0 + known[tuple(x)], system, 0.0)
        # What f loses the constraint gains, but for rounding; the limit is met at most.
        slack = max(Fraction(0), 1 - Fraction(-values[tuple(claim.x)]))
        assert Fraction(bound) >= slack
        assert bound <= float(slack) + 0.1


def test_the_gap_covers_the_rounding_of_long_steps() -> None:
    """Steps of 1e4 along gradients of 1e8, three times as far for the constraint."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        step, g = 1e4 * rng.random(2), 1e8 * (1.0 + rng.random(2))
        points = HONEST.x + step, HONEST.x + 3.0 * step
        claim = forged(
            points=points[:1], gradients=[g], constraint_points=points[1:],
            constraint_gradients=[-g / 3.0], constraint_weights=[1.0], multipliers=[1.0, 0.0],
        )  # fmt: skip
        bound = convex_gap(claim, lambda x: 0.0, System(lambda x: np.array([1.0, 0.0])), 0.0)
        truth = Fraction(0)
        for y, slope in ((points[0], g), (points[1], -g / 3.0)):
            pairs = zip(slope.tolist(), claim.x.tolist(), y.tolist(), strict=True)
            truth -= sum((Fraction(a) * (Fraction(b) - Fraction(c)) for a, b, c in pairs), 0)
        assert Fraction(bound) >= truth


def test_how_far_a_claim_may_be_off() -> None:
    """Larger ones would believe more: whoever changes them says so here, too."""
    assert (MORE_WEIGHT, LESS, limits.DEGENERATE) == (4.0, 10.0, 1e-3)
    assert check(forged()).ok
