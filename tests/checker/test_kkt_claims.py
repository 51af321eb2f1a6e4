"""KKT claims, true ones and forged ones: each threshold just inside and just outside.

Minimise -2 x_1 + 3 x_2 over 0 <= x <= 4 with x_1 <= 1: the answer is (1, 0), with multiplier 2 on
the constraint and -3 on the lower bound of x_2. A forged claim is refused by the check that names
the lie, and by no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from goldstein.certificates import KKTCertificate
from goldstein.checker.box import Box
from goldstein.checker.kkt import Asked, check_kkt
from goldstein.checker.verification import Verification
from goldstein.errors import GoldsteinError, KinkError
from goldstein.numerics.conic_hull import conic_weights

BOX = Box(np.zeros(2), np.full(2, 4.0))
JUST_ABOVE, JUST_BELOW = math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0)


@dataclass
class System:
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


def check(
    claim: KKTCertificate, system: System | None = None, gradient: Any = constant, box: Box = BOX
) -> Verification:
    return check_kkt(claim, Asked(gradient, box, system or System(), conic_weights), 0)


def failed(*claim: Any, **how: Any) -> set[str]:
    return {c.name for c in check(*claim, **how).checks if not c.ok}


def forged(claim: KKTCertificate = HONEST, **fields: Any) -> KKTCertificate:
    return replace(claim, digest="", **fields)


def test_the_honest_claim_is_true() -> None:
    found = check(HONEST)
    assert found.ok
    assert (found.eps, found.label) == (0.0, "conditional")
    assert found.delta == pytest.approx(0.125 * math.sqrt(2.0))
    names = [
        "numbers", "content", "weights", "label", "bounds", "ball", "normal", "constraints",
        "multipliers", "feasibility", "activity", "gradients", "bound", "kinks", "qualification",
    ]  # fmt: skip
    assert [c.name for c in found.checks] == names


ARRAYS = [
    "x", "points", "gradients", "weights", "constraint_points", "constraint_gradients",
    "constraint_weights", "normal", "multipliers",
]  # fmt: skip


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_finite(name: str, bad: float) -> None:
    array = getattr(HONEST, name).copy()
    array.flat[-1] = bad
    assert failed(forged(**{name: array})) == {"numbers"}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -(2.0**-1074)])
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
    reach = check(HONEST).delta
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
    assert failed(HONEST, turned) == {"multipliers"}


def test_feasibility_is_what_is_stated() -> None:
    tight = System(upper=np.array([1.0 - 2.0**-20, 3.0]))
    assert failed(HONEST, tight) == {"feasibility"}
    assert check(forged(feasibility=2.0**-20), tight).ok
    slack = 2.0**-48  # of the largest value, which is 1
    assert check(forged(feasibility=2.0**-20 - 0.9 * slack), tight).ok
    assert failed(forged(feasibility=2.0**-20 - 1.1 * slack), tight) == {"feasibility"}


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
    claim = forged(normal=[0.0, -2.0], eps=1.0)
    assert check(claim).ok
    assert check(forged(claim, eps=1.0 - 1e-14)).ok
    found = check(forged(claim, eps=1.0 - 1e-11))
    assert {c.name for c in found.checks if not c.ok} == {"bound"}
    assert found.eps == pytest.approx(1.0)
    assert [c.name for c in found.checks][-1] == "bound"  # nothing is asked after that


def beside(there: list[float]) -> Any:
    """The gradient of f is something else wherever it is not stored."""
    return lambda x: np.array([-2.0, 3.0] if x[0] == 1.125 else there)


def test_what_holds_at_a_point_holds_beside_it() -> None:
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
